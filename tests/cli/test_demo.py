"""rrn demo: on a terminal a show in place, elsewhere plain; and its advice works as typed."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rrn.cli import COMMANDS, demo
from rrn.errors import command
from rrn.tasks.evaluation import ACCURACY

Call = Callable[..., tuple[int, str, str]]


def test_the_demo_where_there_is_no_terminal(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "PIL", None)
    code, out, err = call("demo")
    assert (code, err) == (0, "")
    assert list(tmp_path.iterdir()) == [], "it writes nothing"
    assert "\x1b" not in out
    assert re.search(r"solved in \d+ steps\ncells decided after each step: \d+ .* 81\n", out)
    assert out.count(", right\n") == 3
    assert ACCURACY["sudoku"] in out
    commands = [line.strip() for line in out.split("Now you:\n")[1].splitlines()]
    assert len(commands) == 3
    for line in commands:
        assert line.split(" && ")[-1].split()[1] in COMMANDS
        assert line.split(" && ")[-1].startswith(command("rrn") + " ")


def test_on_a_terminal_it_is_redrawn_in_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import io

    from rich.console import Console

    slept: list[float] = []
    monkeypatch.setattr(demo.time, "sleep", slept.append)
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=100, highlight=False)
    monkeypatch.setattr(demo, "Console", lambda **_: console)
    assert demo.main([]) == 0
    assert 15 < sum(slept) < 30, "half a minute, with the loading"
    up = written.getvalue().count("\x1b[1A")
    assert up > 20 * 13, "every frame of the Sudoku is drawn over the one before"
    assert len(written.getvalue().splitlines()) < 1000
