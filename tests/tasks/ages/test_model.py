import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn import tasks
from rrn.nn.readouts import Outputs, answer_of
from rrn.tasks.ages import data
from rrn.tasks.ages.data import AGES, PERSONS, Questions, sample
from rrn.tasks.ages.experiment import AgesExperiment, make
from rrn.tasks.ages.model import FREQUENCIES, PaperNetwork, angles, as_batch
from rrn.tasks.ages.presets import LAST_LEVEL, AgesPreset, PaperPreset
from rrn.training.experiment import Batch, RunningBatch, Shard, seeded


def small(name: str, **changes: object) -> AgesPreset:
    preset = tasks.find_preset(name)
    assert isinstance(preset, AgesPreset)
    widths = {} if isinstance(preset, PaperPreset) else {"message_width": 10, "update_width": 9}
    return dataclasses.replace(preset, hidden=12, batch_size=6, **widths, **changes)


def logits(network: nn.Module, batch: Batch, steps: int) -> Tensor:
    return answer_of(network(batch, steps=steps)[0])


@pytest.fixture(scope="module")
def questions() -> Questions:
    return sample("train", 6, np.random.default_rng(0))


@pytest.mark.parametrize("name", ["ages", "ages-answers", "ages-paper"])
def test_answers_have_the_right_shape_and_do_not_depend_on_the_order_of_facts(name: str, questions: Questions) -> None:
    network, batch = tasks.build_network(small(name)).eval(), as_batch(questions)
    with torch.no_grad():
        outputs, state = network(batch, steps=3)
        assert answer_of(outputs).shape == (3, 6, AGES)
        shuffled = logits(network, batch | {"facts": batch["facts"][:, torch.randperm(PERSONS)]}, 3)
        torch.testing.assert_close(shuffled, answer_of(outputs), atol=1e-4, rtol=1e-4)
        further, _ = network(batch, steps=2, state=state)
        torch.testing.assert_close(answer_of(further), logits(network, batch, 5)[3:], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["ages", "ages-answers"])
def test_our_networks_are_not_told_who_is_who(name: str, questions: Questions) -> None:
    network = tasks.build_network(small(name)).eval()
    renamed = torch.randperm(PERSONS)
    batch = as_batch(questions)
    facts = batch["facts"].clone()
    facts[..., :2] = renamed[facts[..., :2]]
    with torch.no_grad():
        outputs = logits(network, batch, 3)
        others = logits(network, batch | {"facts": facts, "asked": renamed[batch["asked"]]}, 3)
    torch.testing.assert_close(others, outputs, atol=1e-4, rtol=1e-4)


def test_the_answer_is_what_the_facts_about_the_person_asked_believe(questions: Questions) -> None:
    network, batch = tasks.build_network(small("ages-answers")).eval(), as_batch(questions)
    seen: list[Tensor] = []
    network.rrn.readout.register_forward_hook(lambda module, inputs, said: seen.append(said))  # type: ignore[operator, union-attr]
    with torch.no_grad():
        outputs = logits(network, batch, 1)
    for q in range(6):
        code = torch.zeros(2 * len(FREQUENCIES))
        for fact, said in zip(batch["facts"][q], seen[0].view(6, PERSONS, -1)[q], strict=True):
            for person, belief in zip(fact[:2], said.chunk(2), strict=True):
                code += belief * (person == batch["asked"][q])
        torch.testing.assert_close(outputs[0, q], code @ angles(torch.arange(AGES)).T, atol=1e-5, rtol=1e-4)


def test_the_papers_network() -> None:
    network = tasks.build_network(tasks.find_preset("ages-paper"))
    assert isinstance(network, PaperNetwork)
    assert network.rrn.encoder.linears[0].in_features == 127
    assert network.rrn.message.mlp.linears[0].in_features == 2 * 128 + 8
    assert len(network.rrn.readout.mlp.linears) == 4


def test_angles_add() -> None:
    width = len(FREQUENCIES)
    code = angles(torch.arange(AGES).double())
    cos, sin = code[:, :width], code[:, width:]
    for a, b in ((3, 4), (60, 39), (0, 99)):
        turned = torch.cat([cos[a] * cos[b] - sin[a] * sin[b], sin[a] * cos[b] + cos[a] * sin[b]])
        torch.testing.assert_close(turned.float(), code[a + b].float(), atol=1e-5, rtol=1e-5)
    nearest = (code @ code.T).argmax(1)
    assert nearest.tolist() == list(range(AGES))


def test_the_loss_by_hand() -> None:
    """The mean over all answers that can be known by their step: of the age asked for, and of those in the facts."""
    experiment = AgesExperiment(small("ages"))
    experiment.curriculum.longest = 3
    batch = experiment.sample(np.random.default_rng(0))
    said = torch.randn(5, 6, 17, AGES)

    def outputs(of: slice) -> Outputs:
        return Outputs(said[:, of, 0], {"persons": said[:, of, 1:]})

    asked, facts = [], []
    for t in range(5):
        for q in range(6):
            persons = [int(batch["asked"][q]), *batch["facts"][q, :, :2].flatten().tolist()]
            for slot, person in enumerate(persons):
                distance = int(batch["distances"][q, person])
                if distance <= min(3, t + 1):
                    loss = F.cross_entropy(said[t, q, slot], batch["ages"][q, person])
                    (facts if slot else asked).append(loss)
    expected = torch.stack(asked).mean() + torch.stack(facts).mean()
    assert experiment.steps_of(RunningBatch(batch)) == 5
    torch.testing.assert_close(experiment.loss(outputs(slice(6)), batch), expected)
    halves = [experiment.loss(outputs(slice(3 * r, 3 * r + 3)), Shard(r, 2).take(batch)) for r in range(2)]
    torch.testing.assert_close(torch.stack(halves).mean(), expected)  # what two processes average


@pytest.mark.parametrize(("kind", "begins"), [("every", lambda length: max(length, 1)), ("last", lambda length: 5)])
def test_the_loss_of_answers_alone_by_hand(kind: str, begins: Callable[[int], int]) -> None:
    """Each question's mean over the steps by which its answer can be known, then the mean over questions."""
    experiment = AgesExperiment(small("ages-answers", loss=kind))
    experiment.curriculum.longest = 3
    batch = experiment.sample(np.random.default_rng(0))
    outputs = torch.randn(5, 6, AGES)
    expected = []
    for q, asked in enumerate(batch["asked"].tolist()):
        first = begins(int(batch["distances"][q, asked]))
        losses = [F.cross_entropy(outputs[t, q], batch["ages"][q, asked]) for t in range(first - 1, 5)]
        expected.append(torch.stack(losses).mean())
    torch.testing.assert_close(experiment.loss(outputs, batch), torch.stack(expected).mean())


def test_the_curriculum_moves_on_and_is_restored() -> None:
    experiment = AgesExperiment(small("ages", pass_mark=0.5))
    assert experiment.steps_of(RunningBatch({})) == 2
    seen = []
    for _ in range(40):
        experiment.observe({"furthest": 1.0})
        seen.append(experiment.curriculum.longest)
    assert seen[12] == 0  # 1 - 0.95^13 < 0.5
    assert seen[13] == 1
    assert seen[-1] == 2
    again = AgesExperiment(small("ages", pass_mark=0.5))
    again.restore(experiment.curriculum_state())
    assert (again.curriculum.longest, again.curriculum.running) == (
        experiment.curriculum.longest,
        experiment.curriculum.running,
    )
    batch = again.sample(seeded(0, 1, 0))
    assert batch["distances"].gather(1, batch["asked"][:, None]).max() <= 2
    assert make(small("ages-paper-original")).curriculum.longest == len(data.LEVELS) - 1


def test_the_papers_network_begins_with_few_people() -> None:
    experiment = make(dataclasses.replace(small("ages-paper"), batch_size=16))
    batch = experiment.sample(seeded(0, 1, 0))
    assert batch["facts"].shape == (128, 1, 4)
    experiment.curriculum.longest = 3
    levels = []
    for update in range(60):
        batch = experiment.sample(seeded(0, 1, update))
        levels.append(int(batch["level"][0]))
        people = data.LEVELS[levels[-1]].people
        assert batch["facts"].shape == (128 // people, people, 4)
        assert experiment.steps_of(RunningBatch(batch)) == data.LEVELS[levels[-1]].longest + 2
        furthest = experiment.reach(batch) == experiment.curriculum.longest
        assert furthest.any() == (levels[-1] == 3)
    assert set(levels) == {0, 1, 2, 3}
    assert 0.6 < np.mean(np.array(levels) == 3) < 0.9
    assert make(small("ages-paper", curriculum_level=8)).sample(seeded(0, 1, 0))["facts"].shape == (6, PERSONS, 4)
    assert len(data.LEVELS) - 1 == LAST_LEVEL


def test_number_waves_make_close_numbers_start_alike() -> None:
    def weights(**changes: object) -> tuple[Tensor, Tensor]:
        torch.manual_seed(0)
        network = tasks.build_network(dataclasses.replace(tasks.find_preset("ages-paper"), **changes))
        assert isinstance(network, PaperNetwork)
        return network.rrn.encoder.linears[0].weight, network.rrn.readout.mlp.linears[-1].weight.T

    def likeness(first: Tensor, second: Tensor) -> float:
        return float(torch.cosine_similarity(first, second, dim=0).mean().detach())

    numbers, answers = weights(number_waves=True)
    for part in (numbers[:, 19:119], answers):
        assert likeness(part[:, :-1], part[:, 1:]) > likeness(part[:, :-7], part[:, 7:]) + 0.1
    plain, plain_answers = weights(number_waves=False)
    assert abs(likeness(plain[:, 19:118], plain[:, 20:119])) < 0.05
    others = [*range(19), *range(119, 127)]
    assert torch.equal(numbers[:, others], plain[:, others])
    assert float(answers.detach().std()) == pytest.approx(float(plain_answers.detach().std()), rel=0.15)
