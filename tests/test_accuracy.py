"""What the demo and the page say of the networks is what results/ says."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rrn.tasks.evaluation import ACCURACY
from rrn.tasks.weights import read_config

RESULTS = Path(__file__).parent.parent / "results"


def result(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text())


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def test_every_sentence_is_what_was_measured() -> None:
    sudoku, babi = result("sudoku_17"), result("babi_limits")
    unanswerable = babi["limits"]["unanswerable"]
    measured = {
        "sudoku": f"Of {sudoku['n']:,} puzzles with 17 givens that it never saw, it solves "
        f"{percent(sudoku['accuracy'][str(sudoku['steps'][-1])])} in the first attempt and "
        f"{percent(sudoku['accuracy_attempts'])} within {sudoku['attempts']} attempts.",
        "babi": f"Of {babi['n']:,} questions of the official bAbI files, it answers "
        f"{percent(1 - babi['mean_error'], 2)} right; of {unanswerable['n']:,} whose answer is not in the story, it "
        f"detects that for {percent(unanswerable['accuracy'], 2)}.",
    }
    for name, file, what in (
        ("pretty-clevr", "pretty_clevr", "questions about scenes"),
        ("ages", "ages", "questions"),
    ):
        found = result(file)
        measured[name] = f"Of {found['n']:,} {what} that it never saw, it answers {percent(found['accuracy'])} right."
    assert measured == ACCURACY


def test_what_was_measured_are_the_weights_that_ship() -> None:
    files = {
        "sudoku": "sudoku_17",
        "sudoku-hard": "sudoku_extreme",
        "babi": "babi",
        "babi-limits": "babi_limits",
        "pretty-clevr": "pretty_clevr",
    }
    for name, file in (files | {"ages": "ages"}).items():
        _, config = read_config(name)
        assert config["trained"] == result(file)["trained"], name


def commands_in(part: Any) -> Iterator[str]:
    """The commands anywhere in a file of results."""
    if isinstance(part, dict):
        yield from ([part["command"]] if isinstance(part.get("command"), str) else [])
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else []:
        yield from commands_in(inner)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_the_command_of_a_result_names_nothing_outside_the_repository(path: Path) -> None:
    """Test pools are files in the folder where a reader runs the command: the docs name their sources."""
    for command in commands_in(json.loads(path.read_text())):
        assert not re.search(r"(^|[ =])(/|~|\.\./)", command), command
