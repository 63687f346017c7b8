import numpy as np
import pytest
import torch

from rrn import tasks
from rrn.errors import InputError
from rrn.graphs import CompleteGraphs, EdgeList
from rrn.nn.readouts import answer_of
from rrn.tasks.pretty_clevr import data
from rrn.tasks.pretty_clevr.model import ReceiverAttentionMessage, as_batch, build, distance_ranks, distances

SCENES = data.scenes("valid", 6)
COUNTS = {
    "pretty-clevr-paper": 155_920,
    "pretty-clevr-paper-count": 139_536,
    "pretty-clevr-rn": 155_920,
    "pretty-clevr-mlp": 261_136,
}
RELATIONAL = ["pretty-clevr", "pretty-clevr-distances", "pretty-clevr-paper", "pretty-clevr-paper-count"]
ALL = [*RELATIONAL, "pretty-clevr-mlp"]


def some_batch(count: int = 20) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(3)
    return as_batch(SCENES, rng.integers(len(SCENES), size=count), rng.integers(data.QUESTIONS, size=count))


def logits(name: str, batch: dict[str, torch.Tensor], steps: int = 3) -> torch.Tensor:
    torch.manual_seed(1)
    network = build(tasks.find_preset(name)).eval()
    with torch.no_grad():
        return answer_of(network(batch, steps=steps)[0])


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_parameters_are_those_of_the_paper(name: str, count: int) -> None:
    assert sum(p.numel() for p in build(tasks.find_preset(name)).parameters()) == count


def test_a_batch_says_what_the_data_says() -> None:
    scene, question = np.array([0, 5, 2]), np.array([3 * 8 + 2, 12 * 8 + 7, 0])
    batch = as_batch(SCENES, scene, question)
    for row, (s, q) in enumerate(zip(scene, question, strict=True)):
        start, jumps = divmod(int(q), data.JUMPS)
        assert int(batch["answer"][row]) == SCENES.scene(s).answer(start, jumps)
        assert batch["path"][row].tolist() == SCENES.scene(s).path(start, 7)
        assert (int(batch["start"][row]), int(batch["jumps"][row])) == (start, jumps)


def test_nearness_by_hand() -> None:
    """Objects on a line at 0, 1, 3, 7, 15 …: each is nearest to the one before it."""
    along = torch.tensor([2.0**k - 1 for k in range(8)])
    near = distance_ranks(torch.stack([along, torch.zeros(8)], dim=-1)[None])[0]
    assert near.shape == (8, 8, 7)
    ranks = (near * torch.arange(1, 8)).sum(-1)
    assert ranks[0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert ranks[3].tolist() == [3, 2, 1, 0, 4, 5, 6, 7]
    assert ranks[7].tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


def test_nearness_says_where_a_walk_goes() -> None:
    near = distance_ranks(torch.from_numpy(SCENES.positions)).numpy()
    for scene in range(len(SCENES)):
        for start in range(8):
            visited = [start]
            for _ in range(7):
                order = (near[scene, visited[-1]] * np.arange(1, 8)).sum(-1)
                order[visited] = 99
                visited.append(int(order.argmin()))
            assert visited == SCENES.paths[scene, start].tolist()


@pytest.mark.parametrize("name", ALL)
def test_the_order_of_the_objects_does_not_matter(name: str) -> None:
    batch = some_batch()
    order = torch.tensor([3, 1, 7, 0, 2, 6, 5, 4])
    shuffled = {
        key: value[:, order] if key in ("positions", "colours", "shapes") else value for key, value in batch.items()
    }
    torch.testing.assert_close(logits(name, shuffled), logits(name, batch), atol=1e-4, rtol=1e-4)


def test_turning_and_scaling_a_scene_changes_nothing_for_the_default() -> None:
    batch = some_batch()
    turned = {
        **batch,
        "positions": torch.from_numpy(data.augment(batch["positions"].numpy(), np.random.default_rng(0))),
    }
    assert not torch.allclose(distances(turned["positions"]), distances(batch["positions"]), atol=1e-2)
    assert torch.equal(logits("pretty-clevr", turned), logits("pretty-clevr", batch))
    assert not torch.allclose(logits("pretty-clevr-paper", turned), logits("pretty-clevr-paper", batch), atol=1e-3)


@pytest.mark.parametrize("name", ["pretty-clevr", "pretty-clevr-distances"])
def test_renaming_the_colours_renames_the_answers_of_our_networks(name: str) -> None:
    batch = some_batch()
    new = torch.tensor([5, 2, 0, 7, 1, 3, 6, 4])
    by_colour = batch["start"] < 8
    renamed = {**batch, "colours": new[batch["colours"]]}
    renamed["start"] = torch.where(by_colour, new[batch["start"] % 8], batch["start"])
    before, after = logits(name, batch), logits(name, renamed)
    torch.testing.assert_close(after[..., new], before[..., :8], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(after[..., 8:], before[..., 8:], atol=1e-5, rtol=1e-5)
    assert float((before[..., :8].amax(-1) - before[..., :8].amin(-1)).min()) > 1e-4


def test_the_default_also_tells_its_walk_in_training_and_out_of_it() -> None:
    torch.manual_seed(1)
    network = build(tasks.find_preset("pretty-clevr"))
    batch = some_batch()
    trained, _ = network.train()(batch, steps=2)
    assert trained.extras["path"].shape == (2, 20, 8, 8)
    asked, _ = network.eval()(batch, steps=2)
    torch.testing.assert_close(asked, trained)
    torch.testing.assert_close(asked.answer, logits("pretty-clevr", batch, steps=2))


def test_receivers_compete_for_what_a_sender_hands_on() -> None:
    """m_j = W·Σ_i a_ij relu(U h_i) + b with a_ij a softmax over j ≠ i, by hand; and what each sends adds up to 1."""
    torch.manual_seed(1)
    message, h, between = (
        ReceiverAttentionMessage(6, 1, heads=2, width=3),
        torch.randn(2 * 4, 6),
        torch.rand(2, 4, 4, 1),
    )
    arrived = message(h, CompleteGraphs(2, 4), message.encode_edges(between)).view(2, 4, 6)
    query, key, value = message.project(h).view(2, 4, 3, 2, 3).unbind(2)  # (graphs, nodes, heads, width)
    sharp = message.log_sharpness.exp()
    for g in range(2):
        heads = torch.zeros(4, 2, 3)
        for head in range(2):
            for i in range(4):
                others = [j for j in range(4) if j != i]
                near = [
                    (query[g, i, head] @ key[g, j, head]) / 3**0.5
                    + message.prefer.weight[head, 0] * between[g, i, j, 0]
                    for j in others
                ]
                share = (sharp[head] * torch.stack(near)).softmax(0)
                for j, part in zip(others, share, strict=True):
                    heads[j, head] += part * value[g, i, head].relu()
        torch.testing.assert_close(arrived[g], message.out(heads.flatten(1)), atol=1e-5, rtol=1e-4)


def test_choosing_needs_distances_and_complete_graphs() -> None:
    message = ReceiverAttentionMessage(6, 1, heads=2, width=3)
    with pytest.raises(InputError, match="edge_attr"):
        message.encode_edges(None)
    with pytest.raises(InputError, match="CompleteGraphs, got EdgeList"):
        message(torch.zeros(3, 6), EdgeList(torch.tensor([[0], [1]]), 3), torch.zeros(1))


@pytest.mark.parametrize("name", RELATIONAL)
def test_going_on_from_a_state_is_one_longer_run(name: str) -> None:
    network, batch = build(tasks.find_preset(name)).eval(), some_batch()
    whole, _ = network(batch, steps=4)
    first, state = network(batch, steps=1)
    rest, _ = network(batch, steps=3, state=state)
    torch.testing.assert_close(torch.cat([answer_of(first), answer_of(rest)]), answer_of(whole))


def test_the_perceptron_says_the_same_at_every_step() -> None:
    outputs = logits("pretty-clevr-mlp", some_batch())
    assert outputs.shape == (3, 20, 16)
    assert torch.equal(outputs[0], outputs[2])
    other = {**some_batch(), "positions": some_batch()["positions"] * 0.9}
    assert not torch.allclose(logits("pretty-clevr-mlp", other), outputs, atol=1e-3)
