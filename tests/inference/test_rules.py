"""The rules of problems of candidates: compiled and plain code agree."""

import numpy as np
import pytest
import torch

from rrn import _compat
from rrn.inference import rules
from rrn.inference.rules import CandidateLayout, StackedLayouts
from rrn.tasks.sudoku.declared import sudoku
from rrn.tasks.sudoku.exact import generate


def random_layout(rng: np.random.Generator, candidates: int) -> CandidateLayout:
    """Cells of two candidates, and groups of another type in which not all candidates are."""
    cells, others = candidates // 2, 4
    groups = np.stack([np.arange(candidates) // 2, rng.integers(-1, others, candidates)], axis=1)
    groups[:, 1] = np.where(groups[:, 1] < 0, -1, groups[:, 1] + cells)
    lower = np.concatenate([np.ones(cells, np.int64), np.zeros(others, np.int64)])
    upper = np.concatenate([np.ones(cells, np.int64), np.full(others, 2)])
    return CandidateLayout(groups, lower, upper, (cells, others))


@pytest.mark.skipif(not _compat.COMPILED, reason="numba is not installed")
@pytest.mark.parametrize("layouts", [1, 3])
def test_compiled_and_plain_code_agree(monkeypatch: pytest.MonkeyPatch, layouts: int) -> None:
    rng, generator = np.random.default_rng(layouts), torch.Generator().manual_seed(layouts)
    stacked = StackedLayouts.of([random_layout(rng, 6) for _ in range(layouts)], 6)
    problems = torch.tensor([2, 0, 1, 0])
    logits = torch.randn(200, 4, 6, generator=generator).round(decimals=1)
    logits[torch.rand(logits.shape, generator=generator) < 0.1] = float("-inf")
    logits[torch.rand(logits.shape, generator=generator) < 0.02] = float("nan")
    true = torch.rand(4, 6, generator=generator) < 0.2
    chosen = stacked.largest_of_cells(logits, problems)
    valid = stacked.keep_rules(chosen, true, problems)
    monkeypatch.setattr(rules, "COMPILED", False)
    assert torch.equal(chosen, stacked.largest_of_cells(logits, problems))
    assert torch.equal(valid, stacked.keep_rules(chosen, true, problems))
    assert 0 < valid.float().mean() < 1


@pytest.mark.parametrize("how", [True, False])
def test_a_solution_keeps_the_rules_and_a_changed_one_does_not(monkeypatch: pytest.MonkeyPatch, how: bool) -> None:
    monkeypatch.setattr(rules, "COMPILED", how and _compat.COMPILED)
    puzzles, solutions = generate(2, np.random.default_rng(0))
    stacked = StackedLayouts.of([sudoku().layout], 729)
    solved = torch.nn.functional.one_hot(torch.from_numpy(solutions).long() - 1, 9).flatten(1).bool()
    given = solved & torch.from_numpy(puzzles > 0).repeat_interleave(9, 1)
    swapped = solved.clone()
    swapped[0, :18] = solved[0, :18].view(2, 9).flip(0).flatten()
    found = stacked.keep_rules(torch.stack([solved, swapped, solved.flip(0)]), given, torch.arange(2))
    assert found.tolist() == [[True, True], [False, True], [False, False]]
