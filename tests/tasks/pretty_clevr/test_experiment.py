import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from rrn import tasks
from rrn.nn.readouts import Outputs
from rrn.tasks.pretty_clevr import data
from rrn.tasks.pretty_clevr.experiment import PrettyClevrExperiment
from rrn.tasks.pretty_clevr.presets import PaperPreset, PrettyClevrPreset
from rrn.tasks.weights import from_pretrained
from rrn.training.experiment import RunningBatch, Shard, seeded


def small(name: str = "pretty-clevr", **changes: object) -> PrettyClevrExperiment:
    preset = tasks.find_preset(name)
    assert isinstance(preset, PrettyClevrPreset)
    return PrettyClevrExperiment(dataclasses.replace(preset, scenes=50, **changes))  # type: ignore[arg-type]


def test_the_curriculum_goes_one_jump_further_when_the_furthest_are_right() -> None:
    experiment = small()
    assert set(experiment.sample(seeded(0))["jumps"].tolist()) == {0}
    assert experiment.steps_of(RunningBatch({})) == 2
    for _ in range(20):
        experiment.observe({"furthest": 0.9})
    assert experiment.curriculum.longest == 0
    for _ in range(60):
        experiment.observe({"furthest": 1.0})
    assert experiment.curriculum.longest == 1
    position = experiment.curriculum_state()
    resumed = small()
    resumed.restore(position)
    assert resumed.curriculum_state() == position
    resumed.curriculum.longest = 7
    assert set(resumed.sample(seeded(0))["jumps"].tolist()) == set(range(8))
    assert resumed.steps_of(RunningBatch({})) == 8


def test_towards_the_end_all_jumps_are_asked_alike_whether_passed_or_not() -> None:
    experiment = small("pretty-clevr-rn", batch_size=800, all_jumps_from=0.5)
    experiment.progress = 0.49
    experiment.observe({"furthest": 0.0})
    assert set(experiment.sample(seeded(0))["jumps"].tolist()) == {0}
    experiment.progress = 0.5
    experiment.observe({"furthest": 0.0})
    counts = experiment.sample(seeded(0))["jumps"].bincount(minlength=8)
    assert counts.min() > 60
    assert counts.max() < 140


def test_without_the_curriculum_all_jumps_come_at_once() -> None:
    assert set(small(curriculum=False).sample(seeded(0))["jumps"].tolist()) == set(range(8))


def test_the_same_update_draws_the_same_batch() -> None:
    one, two = small(augment=True), small(augment=True)
    for name, tensor in one.sample(seeded(3)).items():
        assert torch.equal(tensor, two.sample(seeded(3))[name])
    assert not torch.equal(one.sample(seeded(3))["positions"], one.sample(seeded(4))["positions"])


def test_augmentation_moves_the_objects_and_keeps_the_answers() -> None:
    plain, moved = small().sample(seeded(1)), small(augment=True).sample(seeded(1))
    assert torch.equal(plain["answer"], moved["answer"])
    assert not torch.allclose(plain["positions"], moved["positions"], atol=0.01)
    start = plain["path"][:, 0].numpy()
    walked = data.find_paths(data.squared_distances(moved["positions"].numpy()))[np.arange(len(start)), start]
    assert torch.equal(torch.from_numpy(walked.astype(np.int64)), moved["path"])


def test_a_loss_begins_at_the_step_by_which_the_walk_has_arrived() -> None:
    experiment = small(curriculum=False, path_loss=0.5)
    batch = {name: tensor[:5] for name, tensor in experiment.sample(seeded(0)).items()}
    batch["jumps"] = torch.tensor([0, 1, 2, 3, 7])
    outputs = Outputs(torch.randn(3, 5, 16), {"path": torch.randn(3, 5, 8, 8)})
    expected = []
    for q in range(5):
        first = min(int(batch["jumps"][q]), 3)
        answers = [F.cross_entropy(outputs.answer[t - 1, q], batch["answer"][q]) for t in (1, 2, 3) if t >= first]
        walks = [
            F.cross_entropy(outputs.extras["path"][t - 1, q, jump], batch["path"][q, jump])
            for t in (1, 2, 3)
            for jump in range(t + 1)
        ]
        expected.append(sum(answers) / len(answers) + 0.5 * sum(walks) / len(walks))
    torch.testing.assert_close(experiment.loss(outputs, batch), sum(expected) / 5)


def test_with_a_loss_at_the_last_step_only_that_step_counts() -> None:
    experiment = small("pretty-clevr-paper", loss="last")
    batch = experiment.sample(seeded(0))
    outputs = torch.randn(3, len(batch["answer"]), 16)
    torch.testing.assert_close(experiment.loss(outputs, batch), F.cross_entropy(outputs[-1], batch["answer"]))


@pytest.mark.parametrize("name", ["pretty-clevr", "pretty-clevr-distances", "pretty-clevr-paper"])
def test_the_losses_of_two_shares_add_up_to_that_of_the_batch(name: str) -> None:
    experiment = small(name, curriculum=False, batch_size=12)
    batch = experiment.sample(seeded(0))
    network = experiment.network().train()
    whole = experiment.loss(network(batch, steps=4)[0], batch)
    shares = [Shard(rank, 2).take(batch) for rank in range(2)]
    halves = [experiment.loss(network(share, steps=4)[0], share) for share in shares]
    torch.testing.assert_close(sum(halves) / 2, whole)


def test_the_furthest_questions_are_measured() -> None:
    experiment = small()
    experiment.curriculum.longest = 2
    batch = {"answer": torch.tensor([1, 2, 3, 4]), "jumps": torch.tensor([0, 2, 2, 1])}
    outputs = F.one_hot(torch.tensor([[1, 2, 9, 9]]), 16).float()
    assert experiment.measure(outputs, batch) == {"accuracy": 0.5, "furthest": 0.5, "longest": 2.0}


def test_the_default_learns_the_start_in_a_few_updates() -> None:
    experiment = small(batch_size=32)
    torch.manual_seed(0)
    network = experiment.network()
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    losses = []
    for update in range(40):
        batch = experiment.sample(seeded(0, update))
        outputs, _ = network(batch, steps=2)
        loss = experiment.loss(outputs, batch)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert experiment.measure(outputs, batch)["accuracy"] > 0.9
    assert losses[-1] < 0.5 * losses[0]


def test_half_of_the_questions_ask_for_the_most_jumps() -> None:
    experiment = small("pretty-clevr-paper", batch_size=2_000)
    experiment.curriculum.longest = 3
    share = (experiment.sample(seeded(0))["jumps"] == 3).float().mean()
    assert share == pytest.approx(0.5 + 0.5 / 4, abs=0.04)


def test_the_score_counts_the_jumps_that_training_ends_with_at_every_level_of_the_curriculum() -> None:
    """Not those that the curriculum has reached so far: with those, a score would sum over more and more questions."""
    for name, scored in (("pretty-clevr", 8), ("pretty-clevr-rn", 8), ("pretty-clevr-paper", 5)):
        experiment = small(name, burn_in=0)
        network = experiment.network().eval()
        figures = experiment.validate(network)
        assert all(0 <= figures[f"jumps_{jumps}"] < 0.6 for jumps in range(8))
        each = [figures[f"jumps_{jumps}"] for jumps in range(scored)]
        assert figures["score"] == pytest.approx(sum(each) / scored)
        experiment.curriculum.longest = 2
        assert experiment.validate(network)["score"] == figures["score"]


def test_weights_to_start_from_are_brought_to_the_scale_of_distances() -> None:
    network = from_pretrained("pretty-clevr-paper")
    preset = network.preset
    assert isinstance(preset, PaperPreset)
    finer = dataclasses.replace(
        preset,
        distance_scale=4 * preset.distance_scale,
        start_from=Path("pretty-clevr-paper"),
        scenes=50,
        batch_size=20,
    )
    experiment = PrettyClevrExperiment(finer)
    batch = experiment.sample(seeded(0, 1, 0))
    started = experiment.network()
    experiment.start_from(started, network.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(started(batch, steps=3)[0], network(batch, steps=3)[0], atol=1e-3, rtol=1e-4)
        started.distance_scale = preset.distance_scale
        assert not torch.allclose(started(batch, steps=3)[0], network(batch, steps=3)[0], atol=0.1)


def test_questions_of_near_ties_are_chosen() -> None:
    def narrowness(share: float) -> tuple[torch.Tensor, list[float]]:
        preset = small("pretty-clevr-paper", near_tie_share=share, furthest_share=1.0).preset
        experiment = PrettyClevrExperiment(dataclasses.replace(preset, scenes=200, batch_size=120))
        experiment.curriculum.longest = 4
        batch = experiment.sample(seeded(0))
        assert len(batch["jumps"]) == 120
        return batch["jumps"], _narrowest(batch)

    jumps, plain = narrowness(0.0)
    assert (jumps == 4).all()
    _, half = narrowness(0.5)
    assert np.median(half) < 0.6 * np.median(plain)


def _narrowest(batch: dict[str, torch.Tensor]) -> list[float]:
    """By walking each question's path and sorting what is left, up to the scale of the picture."""
    found = []
    for positions, path, jumps in zip(batch["positions"], batch["path"], batch["jumps"].tolist(), strict=True):
        size = torch.cdist(positions, positions).max()
        gaps = []
        for jump in range(jumps):
            here, left = positions[path[jump]], positions[path[jump + 1 :]]
            nearest = (left - here).norm(dim=1).sort().values
            gaps.append(float((nearest[1] - nearest[0]) / size))
        found.append(min(gaps))
    return found


def test_the_narrowest_choice_of_a_question() -> None:
    scenes = data.sample_scenes(20, np.random.default_rng(0))
    scene, question = np.arange(20), np.arange(20) * 5 % 128
    found = data.smallest_margins(scenes, scene, question)
    for index in range(20):
        one = scenes.scene(index)
        path = one.path(int(question[index] // 8), int(question[index] % 8))
        gaps = [np.inf]
        for at, here in enumerate(path[:-1]):
            left = sorted(
                np.linalg.norm(one.positions[o] - one.positions[here]) for o in range(8) if o not in path[: at + 1]
            )
            gaps += [left[1] - left[0]] if len(left) > 1 else []
        assert found[index] == pytest.approx(min(gaps), abs=1e-6)


def test_the_curriculum_does_not_go_beyond_the_number_of_steps() -> None:
    experiment = small("pretty-clevr-paper")
    for _ in range(1000):
        experiment.observe({"furthest": 1.0})
    assert experiment.curriculum.longest == 4
