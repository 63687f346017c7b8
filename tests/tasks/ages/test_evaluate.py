import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from rrn import tasks
from rrn.errors import InputError
from rrn.nn.updates import State
from rrn.tasks.ages.data import AGES, PERSONS, held_out_questions
from rrn.tasks.ages.evaluate import draw_result, evaluate, right_by_step, tables
from rrn.tasks.evaluation import EvaluateOptions, step_list
from rrn.training.experiment import Batch


class Knowing(nn.Module):
    """Knows every answer at most ``t`` differences away after t steps, and says 0 to the others."""

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        asked = batch["asked"][:, None]
        ages, distances = (batch[name].gather(1, asked)[:, 0] for name in ("ages", "distances"))
        reached = distances <= torch.arange(1, steps + 1)[:, None]
        said = torch.where(reached, ages, (ages + 1) % AGES)
        return nn.functional.one_hot(said, AGES).float() * 9, State(torch.zeros(1))


PRESET = tasks.find_preset("ages")


def measure(**options: object) -> dict:
    return evaluate(Knowing(), PRESET, EvaluateOptions(**options), lambda done, total: None)


def test_accuracy_by_length_and_steps() -> None:
    result = measure(limit=700)
    questions = held_out_questions(700)
    assert result["n"] == 700
    assert result["accuracy"] == 1.0
    assert result["random"] == 0.01
    assert result["steps"] == result["training_steps"] == 8
    assert list(result["accuracy_by_length_and_steps"]["0"]) == [str(t) for t in range(1, 9)]
    for length, figures in result["accuracy_by_length_and_steps"].items():
        assert result["n_by_length"][length] == (questions.length == int(length)).sum()
        assert figures == {str(t): float(t >= int(length)) for t in range(1, 9)}


def test_the_last_of_the_steps_counts() -> None:
    result = measure(limit=300, steps="2,1")
    lengths = held_out_questions(300).length
    assert result["accuracy"] == pytest.approx((lengths <= 2).mean())
    assert result["accuracy_by_length"]["2"] == 1
    assert result["accuracy_by_length"]["3"] == 0


def test_chunks_report_their_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrn.tasks.ages.evaluate.CHUNK", 4)
    seen: list[tuple[int, int]] = []
    right = right_by_step(Knowing(), held_out_questions(10), 3, lambda done, of: seen.append((done, of)))
    assert right.shape == (3, 10)
    assert seen == [(4, 10), (8, 10), (10, 10)]


def test_table_and_figure(tmp_path: Path) -> None:
    result = measure(limit=200) | {"preset": "ages"}
    table, summary = tables(result)
    assert table.row_count == len(result["n_by_length"]) <= PERSONS
    assert "100.00% of 200 questions" in summary
    pytest.importorskip("matplotlib")
    draw_result(result, tmp_path / "deep" / "figure.svg")
    assert "<svg" in (tmp_path / "deep" / "figure.svg").read_text()
    with pytest.raises(InputError, match=r"figure\.xyz: expected a name that ends in one of"):
        draw_result(result, tmp_path / "figure.xyz")
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]


@pytest.mark.parametrize("command", [["evaluate", "ages"], ["compare", "sudoku", "--systems", "parallel"]])
def test_a_figure_that_cannot_be_drawn_is_refused_before_measuring(
    command: list[str], call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(*_: object) -> None:
        raise AssertionError("measured")

    monkeypatch.setattr("rrn.tasks.ages.evaluate.evaluate", measure)
    monkeypatch.setattr("rrn.tasks.sudoku.baselines.compare.measure", measure)
    code, out, err = call(*command, "--figure", "figure.xyz")
    assert (code, out) == (2, "")
    assert "figure.xyz: expected a name that ends in one of" in err
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "needs the extra 'figures'" in call(*command, "--figure", "figure.png")[2]


def test_step_lists() -> None:
    assert step_list("8,1,8") == [1, 8]
    for bad in ("x", "", "0", "3,-1", "1.5"):
        with pytest.raises(InputError, match="--steps: expected numbers"):
            step_list(bad)
