"""Training: slots of a batch that get a new puzzle when theirs is solved or at its limit."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.training.runs import train
from torch import Tensor

from rrn import tasks
from rrn.errors import InputError
from rrn.nn.updates import State
from rrn.tasks.sudoku import experiment as experiment_module
from rrn.tasks.sudoku.exact import count_solutions, generate
from rrn.tasks.sudoku.experiment import SudokuExperiment
from rrn.tasks.sudoku.grid import clashes, grid_to_line, solves
from rrn.tasks.sudoku.settings import CandidatesPreset
from rrn.tasks.sudoku.symmetry import fingerprints, random_symmetry
from rrn.tasks.weights import from_pretrained
from rrn.training.checkpoints import load_checkpoint
from rrn.training.experiment import RunningBatch, Shard, seeded
from rrn.training.processes import Processes
from rrn.training.trainer import make_loop

TINY = CandidatesPreset(
    name="tiny",
    about="",
    hidden=8,
    message_width=4,
    layer_width=30,
    steps=6,
    segment=2,
    slot_steps=(6, 12),
    batch_size=4,
    updates=5,
    warmup=0,
    schedule="constant",
    extra_givens=(10, 10),
)


def tiny(**changes: object) -> SudokuExperiment:
    return SudokuExperiment(dataclasses.replace(TINY, **changes))  # type: ignore[arg-type]


def carried(experiment: SudokuExperiment, ages: list[int], limit: int = 12) -> RunningBatch:
    """A batch with given ages, and a state of ones."""
    batch = experiment.first_batch(seeded(0), Shard()).batch
    batch["age"], batch["limit"] = torch.tensor(ages), torch.full((len(ages),), limit)
    rows = int(experiment.rows_of(batch).sum())
    state = State(torch.ones(rows, 24), (torch.ones(rows, 8),))
    return RunningBatch(batch, state, 8)


def answers(batch: dict[str, Tensor], right: list[list[bool]]) -> Tensor:
    """Logits (steps, puzzles · 81, 9) that are right where ``right`` is true; elsewhere one cell is wrong."""
    outputs, digits = [], batch["solution"] - 1
    first_empty = F.one_hot((batch["puzzle"] == 0).int().argmax(1), 81).bool()
    for row in right:
        chosen = torch.where(first_empty & ~torch.tensor(row)[:, None], (digits + 1) % 9, digits)
        outputs.append(F.one_hot(chosen.flatten(), 9).float())
    return torch.stack(outputs)


def test_a_batch_of_slots() -> None:
    batch = tiny().first_batch(seeded(0), Shard()).batch
    assert {name: tuple(tensor.shape) for name, tensor in batch.items()} == {
        "puzzle": (4, 81), "solution": (4, 81), "age": (4,), "limit": (4,), "open": (4, 729), "known": (4, 729)
    }  # fmt: skip
    assert solves(batch["solution"].numpy(), batch["puzzle"].numpy()).all()
    assert batch["age"].tolist() == [0] * 4
    half = tiny().first_batch(seeded(0), Shard(1, 2)).batch
    assert torch.equal(half["puzzle"], batch["puzzle"][2:])


def test_solved_puzzles_free_their_slots_for_new_ones() -> None:
    experiment = tiny()
    carry = carried(experiment, [2, 2, 2, 2])
    outputs = answers(carry.batch, [[True, True, False, False], [True, False, True, False]])
    after = experiment.next_batch(carry, outputs, seeded(1), Shard())
    assert after is not None
    assert after.state is not None
    stay = [1, 2, 3]  # the first was right at the first and at the last step of the segment
    assert torch.equal(after.batch["puzzle"][:3], carry.batch["puzzle"][stay])
    assert not (after.batch["puzzle"][3] == carry.batch["puzzle"]).all(1).any()
    assert after.batch["age"].tolist() == [4, 4, 4, 0]
    assert solves(after.batch["solution"].numpy(), after.batch["puzzle"].numpy()).all()
    rows = experiment.rows_of(after.batch)
    assert torch.equal(rows, after.batch["open"].sum(1))
    for part in after.state.parts():
        old, new = part.split([int(rows[:3].sum()), int(rows[3])])
        assert old.eq(1).all()
        assert new.eq(0).all()
    assert carry.state.h.eq(1).all(), "the argument is not changed"
    assert carry.batch["age"].tolist() == [2, 2, 2, 2]


def test_puzzles_at_their_limit_free_their_slots() -> None:
    experiment = tiny()
    carry = carried(experiment, [9, 10, 11, 0])
    after = experiment.next_batch(carry, answers(carry.batch, [[False] * 4] * 2), seeded(1), Shard())
    assert after is not None
    assert after.batch["age"].tolist() == [11, 2, 0, 0]
    nothing = experiment.next_batch(
        carried(experiment, [0] * 4), answers(carry.batch, [[False] * 4] * 2), seeded(1), Shard()
    )
    assert nothing is not None
    assert torch.equal(nothing.batch["puzzle"], carry.batch["puzzle"])


@pytest.mark.parametrize(("progress", "limit"), [(0.0, 6), (0.5, 9), (1.0, 12), (1.3, 12)])
def test_limits_grow_during_training(progress: float, limit: int) -> None:
    experiment = tiny()
    experiment.progress = progress
    assert experiment.sample(seeded(0))["limit"].tolist() == [limit] * 4
    carry = carried(experiment, [11, 0, 0, 0])
    after = experiment.next_batch(carry, answers(carry.batch, [[False] * 4] * 2), seeded(1), Shard())
    assert after is not None
    assert after.batch["limit"].tolist() == [12, 12, 12, limit]


def test_an_update_runs_a_segment_and_without_slots_a_batch_has_its_steps() -> None:
    slots, plain = tiny(), tiny(slot_steps=None)
    assert slots.steps_of(RunningBatch({}, None, 100)) == 2
    assert plain.steps_of(RunningBatch({}, None, 5)) == 1
    assert set(plain.sample(seeded(0))) == {"puzzle", "solution", "open", "known"}
    assert plain.next_batch(RunningBatch({}, None, 6), torch.zeros(0), seeded(0), Shard()) is None


def test_noise_is_added_to_some_of_the_puzzles() -> None:
    experiment = tiny(noise=0.5, noise_share=0.5, batch_size=16)
    carry = carried(experiment, [2] * 16)
    after = experiment.next_batch(carry, answers(carry.batch, [[False] * 16] * 2), seeded(4), Shard())
    assert after is not None
    assert after.state is not None
    assert torch.equal(after.state.h, carry.state.h)
    change = after.state.memory[0] - carry.state.memory[0]
    by_puzzle = change.split(experiment.rows_of(carry.batch).tolist())
    noisy = [part for part in by_puzzle if part.ne(0).any()]
    assert 0 < len(noisy) < 16
    assert float(torch.cat(noisy).std()) == pytest.approx(0.5, rel=0.05)


def write_pool(path: Path) -> tuple[Path, int]:
    """A pool of one puzzle, and the fingerprint of its grid."""
    puzzles, solutions = generate(1, np.random.default_rng(77))
    path.write_text(f"{grid_to_line(puzzles[0])},{grid_to_line(solutions[0])}\n")
    return path, int(fingerprints(solutions)[0])


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_share_of_the_puzzles_comes_from_the_pool(share: float, tmp_path: Path) -> None:
    pool, grid = write_pool(tmp_path / "pool.csv")
    experiment = tiny(pool=(pool,), pool_share=share, pool_extra_givens=(3, 3))
    puzzles, solutions = (part.numpy() for part in experiment.draw(200, seeded(0)).values())
    assert solves(solutions, puzzles).all()
    pooled = fingerprints(solutions) == grid
    assert pooled.mean() == pytest.approx(share, abs=0.1)
    givens = (puzzles[pooled] > 0).sum(1)
    assert len(set(givens)) <= 1
    if 0 < share < 1:
        assert not pooled[: pooled.sum()].all(), "shuffled, not in order"


def test_puzzles_with_few_givens_are_made_once_and_join_the_pool(tmp_path: Path) -> None:
    pool, grid = write_pool(tmp_path / "pool.csv")
    experiment = tiny(pool=(pool,), few_givens_pool=3, pool_share=1.0, pool_extra_givens=(0, 0))
    drawn = experiment.draw(60, np.random.default_rng(0))
    puzzles, solutions = drawn["puzzle"].numpy(), drawn["solution"].numpy().astype(np.uint8)
    grids, givens = fingerprints(solutions), (puzzles > 0).sum(1)
    assert len(np.unique(grids)) <= 4
    assert givens[grids != grid].max() < 23
    assert 0.05 < (grids == grid).mean() < 0.6


def test_training_says_that_puzzles_are_generated_before_the_first_update(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rrn.tasks.sudoku.experiment.COMPILED", True)
    experiment = tiny(few_givens_pool=10_000, hard_pool=100)
    loop = make_loop(experiment, tmp_path, Processes(), quiet=False)
    loop.stop_signal = 2  # before the first update
    loop.fit()
    assert "before the first update, difficult puzzles are generated: about 120 s" in capsys.readouterr().err
    assert not tiny(few_givens_pool=0).preparation


def test_training_says_how_many_puzzles_are_generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrn.tasks.sudoku.experiment.COMPILED", True)
    monkeypatch.setattr("rrn.tasks.sudoku.experiment.LEAST_GUESSES", 1)
    seen: list[str] = []
    monkeypatch.setattr("rrn.training.display.Display.report", lambda self, text: seen.append(text))
    experiment = tiny(few_givens_pool=10, hard_pool=1)
    make_loop(experiment, tmp_path, Processes(), quiet=False)
    assert not seen
    experiment.draw(1, seeded(0))
    assert seen[0] == "preparing difficult puzzles"
    assert seen[1:3] == [f"generated {made} of 11 difficult puzzles" for made in (0, 8)]
    assert seen[-1] == "generated 11 of 11 difficult puzzles"


def test_the_head_of_the_pool_and_its_symmetric_puzzles_are_not_drawn(tmp_path: Path) -> None:
    puzzles, solutions = generate(3, np.random.default_rng(78))
    turned = random_symmetry(puzzles, solutions, np.random.default_rng(79))
    puzzles, solutions = (
        np.concatenate([all_of, some[:1]]) for all_of, some in zip((puzzles, solutions), turned, strict=True)
    )
    lines = [
        f"{grid_to_line(puzzle)},{grid_to_line(solution)}" for puzzle, solution in zip(puzzles, solutions, strict=True)
    ]
    (tmp_path / "pool.csv").write_text("\n".join(lines))
    experiment = tiny(pool=(tmp_path / "pool.csv",), pool_share=1.0, pool_skip=2)
    drawn = experiment.draw(50, seeded(0))["solution"].numpy()
    assert set(fingerprints(drawn)) == {fingerprints(solutions)[2]}


def test_symmetric_puzzles_of_another_file_are_avoided(tmp_path: Path) -> None:
    puzzles, solutions = generate(3, np.random.default_rng(78))
    lines = [
        f"{grid_to_line(puzzle)},{grid_to_line(solution)}" for puzzle, solution in zip(puzzles, solutions, strict=True)
    ]
    (tmp_path / "pool.csv").write_text("\n".join(lines))
    turned, _ = random_symmetry(puzzles[1:2], solutions[1:2], np.random.default_rng(79))
    (tmp_path / "test.csv").write_text(grid_to_line(turned[0]))
    experiment = tiny(pool=(tmp_path / "pool.csv",), pool_share=1.0, pool_avoid=(tmp_path / "test.csv",))
    drawn = experiment.draw(50, seeded(0))["solution"].numpy()
    assert set(fingerprints(drawn)) == set(fingerprints(solutions)[[0, 2]])


def test_every_file_has_the_same_share_without_symmetric_puzzles_of_the_head(tmp_path: Path) -> None:
    puzzles, solutions = generate(4, np.random.default_rng(80))
    lines = [
        f"{grid_to_line(puzzle)},{grid_to_line(solution)}" for puzzle, solution in zip(puzzles, solutions, strict=True)
    ]
    (tmp_path / "one.csv").write_text("\n".join(lines[:3]))
    (tmp_path / "two.csv").write_text("\n".join([lines[0], lines[3]]))
    experiment = tiny(pool=(tmp_path / "one.csv", tmp_path / "two.csv"), pool_share=1.0, pool_skip=1)
    drawn = fingerprints(experiment.draw(300, seeded(0))["solution"].numpy())
    shares = [(drawn == grid).mean() for grid in fingerprints(solutions)]
    assert shares == pytest.approx([0, 0.25, 0.25, 0.5], abs=0.08)
    with pytest.raises(InputError, match=r"two\.csv: nothing is left to train on"):
        tiny(pool=(tmp_path / "two.csv",), pool_share=1.0, pool_skip=2)


def test_a_share_of_the_puzzles_has_no_solution() -> None:
    batch = tiny(contradiction_share=0.5, extra_givens=(0, 3)).draw(60, seeded(0))
    solvable = count_solutions(batch["puzzle"].numpy()) == 1
    assert batch["contradictory"].tolist() == (~solvable).tolist()
    assert 0.3 < solvable.mean() < 0.7
    assert not clashes(batch["puzzle"].numpy().astype(np.uint8)).any()


def test_class_none_is_right_for_contradictory_puzzles() -> None:
    experiment = tiny(contradiction_share=0.5, batch_size=8)
    batch = experiment.first_batch(seeded(0), Shard()).batch
    batch["contradictory"] = torch.arange(8) < 4
    sure = 10.0 * F.one_hot(batch["solution"] - 1, 9).float().flatten(0, 1)[None]
    none = torch.full_like(sure, -10.0)
    assert experiment.right(sure, batch)[0].tolist() == [False] * 4 + [True] * 4
    assert experiment.right(none, batch)[0].tolist() == [True] * 4 + [False] * 4
    assert experiment.loss(torch.where(batch["contradictory"].repeat_interleave(81)[:, None], none, sure), batch) < 0.01
    assert experiment.loss(torch.where(batch["contradictory"].repeat_interleave(81)[:, None], sure, none), batch) > 5


@pytest.mark.parametrize(("progress", "most"), [(0.0, 12), (0.25, 7), (0.5, 2), (0.9, 2)])
def test_puzzles_are_easier_at_first(progress: float, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(experiment_module, "generate", lambda *args: calls.append(args) or generate(*args))
    experiment = tiny(extra_givens=(1, 2), extra_givens_start=10)
    experiment.progress = progress
    experiment.draw(4, seeded(0))
    assert calls[0][2] == (1, most)


def test_easy_puzzles_get_further_givens_at_the_end_of_the_curriculum() -> None:
    def givens(share: float) -> np.ndarray:
        experiment = tiny(extra_givens=(0, 0), extra_givens_start=40, extra_givens_decrement=1.0, easy_share=share)
        assert experiment.curriculum is not None
        experiment.curriculum.extra = 0  # the last level
        batch = experiment.draw(200, seeded(0))
        assert solves(batch["solution"].numpy(), batch["puzzle"].numpy()).all()
        return (batch["puzzle"].numpy() > 0).sum(1)

    assert givens(0.0).max() < 40
    assert 0.08 < (givens(0.25) > 40).mean() < 0.3
    assert givens(1.0).max() > 55


def test_the_same_update_draws_the_same_puzzles() -> None:
    one, two, other = (tiny().sample(seeded(0, 1, update))["puzzle"] for update in (5, 5, 6))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_the_loss_is_of_empty_cells_at_every_step() -> None:
    experiment = tiny()
    batch = experiment.sample(seeded(0))
    outputs = torch.randn(2, 4 * 81, 9)
    empty = (batch["puzzle"] == 0).flatten()
    targets = batch["solution"].flatten() - 1
    each = [F.cross_entropy(output[empty], targets[empty]) for output in outputs]
    torch.testing.assert_close(experiment.loss(outputs, batch), sum(each) / 2)
    torch.testing.assert_close(tiny(loss="last").loss(outputs, batch), each[1])
    paper = SudokuExperiment(tasks.find_preset("sudoku-paper-original"))
    with_empty_class = torch.randn(2, 4 * 81, 10)
    expected = sum(F.cross_entropy(output, targets + 1) for output in with_empty_class) / 2
    torch.testing.assert_close(paper.loss(with_empty_class, batch), expected)


def test_the_measures_of_training() -> None:
    experiment = tiny()
    batch = experiment.sample(seeded(0))
    measured = experiment.measure(answers(batch, [[False] * 4, [True, True, True, False]]), batch)
    assert measured == {"cells": pytest.approx(1 - 1 / (4 * 81)), "solved": 0.75}


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment_module, "VALIDATION", 4)
    fixed = {"slot_steps": (4, 4), "noise": 0.3, "validate_every": 100}
    train(tiny(**fixed, updates=6), tmp_path / "whole", quiet=True)
    train(tiny(**fixed, updates=3), tmp_path / "parts", quiet=True)
    train(tiny(**fixed, updates=6), tmp_path / "parts", quiet=True)
    (whole, _), (parts, _) = (load_checkpoint(tmp_path / run) for run in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    torch.manual_seed(0)
    untrained = tiny().network().state_dict()
    assert not any(torch.equal(whole[f"network.{name}"], untrained[name]) for name in untrained)


def test_validation_counts_solved_puzzles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment_module, "VALIDATION", 6)
    figures = tiny().validate(from_pretrained("sudoku"))
    assert set(figures) == {"score", "solved", "cells"}
    assert figures["score"] == pytest.approx(figures["solved"] + 0.01 * figures["cells"])
    assert 0.3 < figures["cells"] <= 1


@pytest.mark.parametrize("lost_after", [24, 1000])
def test_validation_subtracts_answers_that_are_lost_in_a_longer_run(
    lost_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --stay: right at half of the six steps, at the sixth, and up to step ``lost_after``."""
    monkeypatch.setattr(experiment_module, "VALIDATION", 2)
    experiment = tiny(stay=0.5)
    solutions = {puzzle.tobytes(): solution for puzzle, solution in zip(*experiment.validation, strict=True)}

    def answers_by_step(_: object, puzzles: np.ndarray, steps: int) -> np.ndarray:
        right = np.stack([solutions[puzzle.tobytes()] for puzzle in puzzles])
        return np.stack([right if step <= lost_after else 0 * right for step in range(1, steps + 1)])

    monkeypatch.setattr(experiment_module, "answers_by_step", answers_by_step)
    figures = experiment.validate(from_pretrained("sudoku"))
    lost = float(lost_after < 8 * 6)
    assert (figures["solved"], figures["solved_at_half"], figures["lost"]) == (1, 1, lost)
    assert figures["score"] == pytest.approx(1.01 - lost)
