"""Networks keep their answers when they run longer than in training: a smaller form of ``benchmarks.staying``."""

import json
from pathlib import Path

import pytest
from benchmarks.staying import MOST_LOST, measure, recurrent

from rrn.tasks.evaluation import LOSE_ANSWERS, loses_answers
from rrn.tasks.weights import read_config

MEASURED = json.loads((Path(__file__).parents[1] / "results" / "staying.json").read_text())["networks"]


NOT_YET = {"visual-sudoku"}
"""Not measured yet: its evaluation reports the last step alone. Measured rows must leave this list."""


def test_every_recurrent_network_was_measured() -> None:
    assert sorted({*MEASURED, *NOT_YET}) == recurrent()
    assert not NOT_YET & set(MEASURED)
    assert {name for name, row in MEASURED.items() if not row["stays"]} == LOSE_ANSWERS - NOT_YET


@pytest.mark.parametrize("name", MEASURED)
def test_stays_is_what_the_figures_tell(name: str) -> None:
    row = MEASURED[name]
    steps, at = row["training_steps"], row["accuracy_at_step"]
    assert [int(t) for t in at] == [steps, 2 * steps, 4 * steps, 8 * steps]
    assert row["stays"] == (min(at.values()) >= at[str(steps)] - MOST_LOST)


@pytest.mark.parametrize("name", ["pretty-clevr", "pretty-clevr-distances"])
def test_it_stays(name: str) -> None:
    row = measure(name, 200)
    steps = str(row["training_steps"])
    assert min(row["accuracy_at_step"].values()) >= row["accuracy_at_step"][steps] - 0.02, "a few of two hundred"


def test_a_network_that_never_saw_longer_runs_is_warned_of() -> None:
    preset, _ = read_config("pretty-clevr")
    assert not loses_answers(preset, "runs/pretty-clevr/best", [])
    assert loses_answers(type(preset)(name="mine", about="", steps=8), "runs/mine/best", [])
    assert loses_answers(preset, "pretty-clevr-pixels", ["pretty-clevr-pixels"])
