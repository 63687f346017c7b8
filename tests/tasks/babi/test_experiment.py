import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from rrn import tasks
from rrn.errors import InputError
from rrn.tasks.babi import experiment as module
from rrn.tasks.babi.data import EncodedQuestions, EndlessQuestions, write_babi
from rrn.tasks.babi.experiment import BabiExperiment, pointer_loss
from rrn.tasks.babi.presets import BabiPreset
from rrn.training.experiment import Shard, seeded

SMALL = {"hidden": 24, "word_width": 16, "update_width": 24, "head_width": 4, "roles": 3, "heads": 3, "batch_size": 40}


@pytest.fixture(autouse=True)
def _small_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POOL", 50)
    monkeypatch.setattr(module, "POOL_UPDATES", 3)
    monkeypatch.setattr(module, "VALIDATION", 10)


def small(name: str = "babi", **changes: object) -> BabiExperiment:
    preset = tasks.find_preset(name)
    assert isinstance(preset, BabiPreset)
    own = {field.name for field in dataclasses.fields(preset)}
    smaller = {name: value for name, value in SMALL.items() if name in own}
    return BabiExperiment(dataclasses.replace(preset, **{**smaller, **changes}))  # type: ignore[arg-type]


def test_the_same_update_of_a_resumed_run_draws_the_same_batch() -> None:
    one, two = small(), small()
    for update in range(5):
        batch = one.sample(seeded(0, 1, update))
    two.restore(one.curriculum_state() | {"drawn": 4})
    again = two.sample(seeded(0, 1, 4))
    for name in ("words", "fact_counts", "support", "answers", "tasks"):
        assert torch.equal(batch[name], again[name]), name
    assert two.curriculum_state() == one.curriculum_state()


def test_pools_are_new_and_hold_no_validation_question() -> None:
    experiment = small(tasks=(3,))
    experiment.sample(seeded(0))
    first = experiment.pool
    for update in range(3):
        experiment.sample(seeded(0, update))
    assert first is not None
    assert experiment.pool is not None
    assert not np.array_equal(first.story_facts[:100], experiment.pool.story_facts[:100])
    assert not np.array_equal(first.story_facts[:100], experiment.validation.story_facts[:100])


def test_a_task_that_is_understood_gets_new_questions_and_one_that_is_not_sees_few_again_and_again() -> None:
    experiment = small(tasks=(1, 3), sampling_by_error=1.0)
    experiment.errors = {1: 0.1, 3: 0.3}  # so 30 and 90 of the 120 questions of the pool's three updates
    experiment.sample(seeded(0))
    assert experiment.pooled == {1: 50, 3: 50}
    experiment.drawn, experiment.errors = 3, {1: 0.01, 3: 0.19}
    experiment.sample(seeded(0))
    assert experiment.pooled == {1: 50, 3: 114}
    assert experiment.pool is not None
    assert len(experiment.pool.rows_by_task[3]) == 114
    again = small(tasks=(1, 3), sampling_by_error=1.0)
    again.restore(experiment.curriculum_state())
    again.sample(seeded(0))
    assert len(again.pool or ()) == len(experiment.pool)


def test_tasks_are_drawn_by_their_errors() -> None:
    experiment = small(batch_size=1000, sampling_by_error=0.5, tasks=(1, 4, 6))
    asked = {f"asked_{task}": 1 / 3 for task in (1, 4, 6)}
    for _ in range(5):
        experiment.observe(asked | {"wrong_1": 0.0, "wrong_4": 1 / 3, "wrong_6": 0.0})
    assert experiment.errors[1] == module.LEAST_ERROR
    assert experiment.errors[4] == pytest.approx(1)
    drawn = experiment.sample(seeded(0))["tasks"].bincount(minlength=7)
    assert drawn[4] / 1000 == pytest.approx(1 / 6 + 1 / 2, abs=0.06)
    assert drawn[1] / 1000 == pytest.approx(1 / 6, abs=0.05)


def test_a_task_not_asked_keeps_its_error() -> None:
    experiment = small(tasks=(1, 2))
    experiment.observe({"asked_1": 1.0, "wrong_1": 0.0, "asked_2": 0.0, "wrong_2": 0.0})
    assert experiment.errors[2] == 1.0
    assert experiment.errors[1] < 0.5


def test_the_pointers_loss_by_hand() -> None:
    points = torch.randn(2, 3, 5, 4)  # 2 steps, 3 questions, up to 4 facts
    batch = {
        "fact_counts": torch.tensor([4, 2, 4]),
        "support": torch.tensor([[0, 2, 0, 1], [1, 0, 0, 0], [1, 2, 3, 4]]),
    }
    pointing, relevant = [], []
    for step in points:
        for q, (row, count) in enumerate(zip(batch["support"].tolist(), [4, 2, 4], strict=True)):
            for k in range(3):
                target = row.index(k + 1) + 1 if k + 1 in row else 0
                told = max(row) <= 3
                pointing.append(F.cross_entropy(step[q, : count + 1, k], torch.tensor(target)) * told)
            truth = torch.tensor(row[:count]).clamp(max=1).float()
            relevant.append(F.binary_cross_entropy_with_logits(step[q, 1 : count + 1, 3], truth, reduction="sum") / 4)
    expected = torch.stack(pointing).mean() + torch.stack(relevant).mean()
    torch.testing.assert_close(pointer_loss(points, batch), expected)


def test_answers_alone_need_no_supporting_facts() -> None:
    experiment = small("babi-answers")
    batch = experiment.sample(seeded(0))
    outputs, _ = experiment.network()(batch, steps=2)
    loss = experiment.loss(outputs, batch)
    torch.testing.assert_close(experiment.loss(outputs, batch | {"support": torch.zeros_like(batch["support"])}), loss)
    told = small("babi").loss(outputs, batch)
    assert told > loss + 0.1


@pytest.mark.parametrize("name", ["babi", "babi-paper-no-dropout", "babi-lstm", "babi-memn2n", "babi-entnet"])
def test_the_losses_of_two_shares_add_up_to_that_of_the_batch(name: str) -> None:
    experiment = small(name)
    batch = experiment.sample(seeded(0))
    network = experiment.network().train()
    shares = [Shard(rank, 2).take(batch) for rank in range(2)]
    if name == "babi-paper-no-dropout":
        network.eval()  # else positions are moved at random
    whole = experiment.loss(network(batch, steps=2)[0], batch)
    halves = [experiment.loss(network(share, steps=2)[0], share) for share in shares]
    torch.testing.assert_close(sum(halves) / 2, whole)


def test_measures_of_a_batch() -> None:
    experiment = small(tasks=(1, 2))
    batch = {"answers": torch.tensor([1, 2, 3, 4]), "tasks": torch.tensor([1, 1, 2, 2])}
    outputs = F.one_hot(torch.tensor([[1, 9, 9, 9]]), 200).float()
    expected = {"error": 0.75, "asked_1": 0.5, "wrong_1": 0.25, "asked_2": 0.5, "wrong_2": 0.5}
    assert experiment.measure(outputs, batch) == expected


def test_official_files_can_be_trained_on(tmp_path: Path) -> None:
    write_babi(tmp_path, {"train": 20, "valid": 5}, seed=9)
    experiment = small(data=tmp_path, tasks=(1, 2))
    for update in range(5):
        batch = experiment.sample(seeded(update))
    assert len(experiment.pool or ()) == 40
    assert set(batch["tasks"].tolist()) == {1, 2}


def test_of_official_questions_too_few_are_seen_at_a_time_until_a_task_is_understood(tmp_path: Path) -> None:
    write_babi(tmp_path, {"train": 120}, seed=9)
    experiment = small(data=tmp_path, tasks=(1, 2))  # pools of 50, each for three updates
    experiment.errors = {1: 1.0, 2: 0.05}
    seen = []
    for update in range(9):
        experiment.sample(seeded(update))
        assert experiment.pool is not None
        assert len(experiment.pool.rows_by_task[1]) == 50
        seen.append(set(experiment.pool.starts[experiment.pool.rows_by_task[1]]))
    assert seen[0] == seen[2]
    assert seen[0].isdisjoint(seen[3])
    assert seen[0] & seen[6]  # the third pool begins at question 100 of 120, and goes on with the first


def test_short_stories_come_first_if_asked_for() -> None:
    experiment = small(tasks=(1, 3), curriculum_by_length=True)
    pool = EndlessQuestions(0, (1, 3), experiment.table).take(200)
    experiment.pool, experiment.drawn = pool, 1
    few = experiment.sample(seeded(0))
    lengths = {task: np.sort(pool.ends[rows] - pool.starts[rows]) for task, rows in pool.rows_by_task.items()}
    for task, facts in zip(few["tasks"].tolist(), few["fact_counts"].tolist(), strict=True):
        assert facts <= lengths[task][19]
    for _ in range(200):
        experiment.observe({"asked_1": 0.5, "wrong_1": 0.1, "asked_3": 0.5, "wrong_3": 0.4})
    assert experiment.shortest == {1: 1.0, 3: 0.1}
    again = small(tasks=(1, 3), curriculum_by_length=True)
    again.restore(experiment.curriculum_state())
    assert again.shortest == experiment.shortest


def test_unknown_tasks_are_named() -> None:
    with pytest.raises(InputError, match="21"):
        small(tasks=(1, 21))


def test_the_default_learns_the_first_task_in_seconds() -> None:
    preset = tasks.find_preset("babi")
    assert isinstance(preset, BabiPreset)
    experiment = BabiExperiment(dataclasses.replace(preset, tasks=(1,), batch_size=32, steps=2))
    torch.manual_seed(0)
    network = experiment.network()
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3)
    errors = []
    for update in range(100):
        batch = experiment.sample(seeded(0, update))
        outputs, _ = network.train()(batch, steps=2)
        optimizer.zero_grad()
        experiment.loss(outputs, batch).backward()
        optimizer.step()
        errors.append(experiment.measure(outputs, batch)["error"])
    assert np.mean(errors[:10]) > 0.6
    assert np.mean(errors[-5:]) < 0.3
    figures = experiment.validate(network.eval())
    assert figures["score"] == 1 - figures["error_1"]
    assert figures["score"] >= 0.6


def test_with_a_burn_in_the_score_counts_longer_runs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """All right after the steps of training, half wrong ever after."""

    def wrong_by_step(_: object, questions: EncodedQuestions, steps: int, *__: object) -> np.ndarray:
        wrong = np.tile(np.arange(len(questions)) % 2 == 1, (steps, 1))
        wrong[3] = False
        return wrong

    monkeypatch.setattr(module, "wrong_by_step", wrong_by_step)
    network = torch.nn.Linear(1, 1)
    assert small(steps=4).validate(network)["score"] == 1
    longer = small(steps=4, burn_in=5).validate(network)
    assert longer["score"] == pytest.approx(0.75)
    assert longer["error_1"] == 0
