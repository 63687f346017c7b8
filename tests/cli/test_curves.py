"""rrn curves: what the validations of several runs measured."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """A folder of a run, and a copy of another's lines."""
    lines = ['{"update": 5, "minutes": 0.5, "loss": 2.0}', '{"update": 10, "minutes": 1.5, "loss": 1.5, "cells": 0.5}']
    folder, copy = tmp_path / "first", tmp_path / "second_training.jsonl"
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    copy.write_text('{"update": 7, "minutes": 2.0, "loss": 3.0, "cells": 0.25}\n')
    return [folder, copy]


def test_all_points_of_all_runs(call: Call, runs: list[Path], tmp_path: Path) -> None:
    figure = tmp_path / "curves.png"
    code, out, _ = call("curves", *runs, "--of", "loss", "--json", "--figure", figure)
    assert code == 0
    assert json.loads(out) == {"first": [[5, 2.0], [10, 1.5]], "second": [[7, 3.0]]}
    assert figure.read_bytes().startswith(b"\x89PNG")
    _, out, _ = call("curves", *runs, "--of", "cells", "--against", "minutes", "--json")
    assert json.loads(out) == {"first": [[1.5, 0.5]], "second": [[2.0, 0.25]]}


def test_the_table(call: Call, runs: list[Path]) -> None:
    _, out, _ = call("curves", *runs, "--of", "loss")
    rows = [line.split() for line in out.splitlines()]
    assert rows[1] == ["first", "2", "10", "1.5", "1.5", "2"]
    assert rows[2] == ["second", "1", "7", "3", "3", "3"]


def test_what_is_refused(call: Call, runs: list[Path], tmp_path: Path) -> None:
    code, _, err = call("curves", *runs)
    assert (code, "no metric 'score'; there are cells, loss, minutes, update" in err) == (2, True)
    code, _, err = call("curves", runs[0], runs[0], "--of", "loss")
    assert (code, "two runs have the same name" in err) == (2, True)
    code, _, err = call("curves", tmp_path / "nowhere")
    assert (code, "nowhere: expected lines of JSON" in err) == (2, True)
    runs[1].write_text("update 5\n")
    code, _, err = call("curves", runs[1])
    assert (code, "second_training.jsonl: expected lines of JSON" in err) == (2, True)


def test_values_that_are_not_finite(call: Call, runs: list[Path], tmp_path: Path) -> None:
    lines = ['{"update": 1, "loss": NaN}', '{"update": 2, "loss": 1e999}', '{"update": 3, "loss": 0.5}']
    (runs[0] / "metrics.jsonl").write_text("\n".join(lines))
    figure = tmp_path / "curves.png"
    code, out, err = call("curves", runs[0], "--of", "loss", "--json", "--figure", figure)
    assert (code, json.loads(out)) == (0, {"first": [[1, None], [2, None], [3, 0.5]]}), err
    code, out, _ = call("curves", runs[0], "--of", "loss")
    assert (code, out.splitlines()[1].split()) == (0, ["first", "3", "3", "0.5", "0.5", "0.5"])
    (runs[0] / "metrics.jsonl").write_text('{"update": NaN, "loss": 1}')
    code, _, err = call("curves", runs[0], "--of", "loss")
    assert (code, "update is not a finite number" in err) == (2, True)


@pytest.mark.parametrize(
    "line", ['["loss", 1]', "7", '{"update": 1, "loss": [1, "a"]}', '{"update": {}, "loss": 1}', "[" * 3000]
)
def test_lines_of_other_things_are_refused(call: Call, runs: list[Path], line: str) -> None:
    with (runs[0] / "metrics.jsonl").open("a") as file:
        file.write(line + "\n")
    code, _, err = call("curves", runs[0], "--of", "loss")
    assert (code, "expected lines of JSON" in err) == (2, True)


def test_markup_and_control_characters_in_names(call: Call, tmp_path: Path) -> None:
    run = tmp_path / "[red]x\x1b[31m$_{"
    run.mkdir()
    (run / "metrics.jsonl").write_text('{"update": 1, "loss": 1, "\\u001b[2J": 2}\n')
    code, out, err = call("curves", run, "--of", "loss", "--figure", tmp_path / "curves.png")
    assert (code, "[red]x[31m$_{" in out, "\x1b" in out) == (0, True, False), err
    code, _, err = call("curves", run, "--of", "nothing")
    assert (code, "\x1b" in err, "[2J" in err) == (2, False, True)
