"""Progress is visible at once, on a terminal and in a log file."""

import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rrn import tasks
from rrn.cli import train
from rrn.training.display import SLOW, Display
from rrn.training.pace import LONGEST, PATIENCE
from rrn.training.processes import Processes
from rrn.training.trainer import make_loop

LOOP: Any = SimpleNamespace(
    update=1, last_loss=0.5, seconds=6.0, seconds_left=61.0, updates_per_second=2.0, progress=0.1, folder=None
)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which the tests set."""
    time_now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: time_now[0])
    return time_now


def test_a_log_file_gets_a_line_after_the_first_update_soon_again_and_then_every_half_a_minute(
    now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    display, at = Display("ages", 32, lines=True), []
    for second in range(120):
        display.on_update(LOOP)
        if line := capsys.readouterr().err:
            at.append(second)
            assert line == "    0.1 min  update 1  loss 0.5000  64/s  ETA 0:01:01\n"
        now[0] += 1
    assert at == [0, 1, 3, 7, 15, 31, 61, 91]
    assert at[-1] - at[-2] == LONGEST
    silent = Display("training", 32)
    silent.on_update(LOOP)
    assert capsys.readouterr().err == ""


def test_a_log_file_gets_lines_about_the_preparation(now: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    display = Display("sudoku", 32, lines=True)
    for made in range(8):
        display.report(f"generated {made} of 8")
        now[0] += 2
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"{2 * made:7} s    generated {made} of 8" for made in (0, 1, 2, 4)]
    Display("training", 32).report("drawing a batch")
    assert capsys.readouterr().err == ""


def test_work_that_takes_long_is_shown_again_while_it_goes_on(
    now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """What the thread does, without the thread: nothing else is printed, before the first update and in a later one."""
    display = Display("sudoku", 32, lines=True)
    display.report("update 1: forward pass, steps: 32")
    now[0] += 1 + PATIENCE
    display._show_activity()
    display._show_activity()
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"{second:7} s    update 1: forward pass, steps: 32" for second in (0, 2)]
    display.on_update(LOOP)
    display.report("update 2: backward pass")
    now[0] += 2
    display._show_activity()
    assert len(capsys.readouterr().err.splitlines()) == 1, "the update; a line about the next one is not yet due"
    now[0] += LONGEST
    display._show_activity()
    assert "update 2: backward pass" in capsys.readouterr().err


def test_a_bar_shows_what_is_done_until_updates_do(now: list[float]) -> None:
    display = Display("sudoku", 32)
    display.live = True
    status = lambda: display.progress.tasks[0].fields["status"]  # noqa: E731
    display.report("generated 8 of 100 difficult puzzles")
    assert status() == "generated 8 of 100 difficult puzzles"
    now[0] += 1
    display.on_update(LOOP)
    display.report("update 2: forward pass, steps: 32")
    now[0] += 1
    display._show_activity()
    assert status().startswith("update 1  loss 0.5000"), "updates are quick: they are shown"
    now[0] += SLOW
    display._show_activity()
    assert status() == "update 2: forward pass, steps: 32"


def test_the_thread_shows_long_work_and_ends_with_training(capsys: pytest.CaptureFixture[str]) -> None:
    display = Display("sudoku", 32, lines=True)
    display.on_start(LOOP, resumed=False)
    display.report("validating")
    deadline = time.monotonic() + 60
    seen = ""
    while seen.count("validating") < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
        seen += capsys.readouterr().err
    display.on_end(SimpleNamespace(stop_signal=0))  # type: ignore[arg-type]
    assert re.findall(r"^ +\d+ s    validating$", seen, re.M)[:2]
    assert seen.count("validating") == 2
    assert not display.ticker.thread.is_alive()


@pytest.mark.parametrize("quiet", [False, True])
def test_the_command_says_that_torch_is_loading(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with train._loading(quiet) as ticker:
        time.sleep(1 + PATIENCE + 1)
    lines = capsys.readouterr().err.splitlines()
    assert not ticker.thread.is_alive()
    assert bool(lines) != quiet
    assert all(re.fullmatch(r" +\d+ s    loading PyTorch", line) for line in lines)


class EnoughError(Exception):
    pass


@pytest.mark.parametrize(
    ("variable", "rank"), [("", ""), ("LOCAL_RANK", "0"), ("LOCAL_RANK", "1"), ("SLURM_PROCID", "3")]
)
def test_of_several_processes_only_the_first_prints(
    variable: str, rank: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise EnoughError

    monkeypatch.setattr("rrn.training.trainer.train_stages", stop)
    if variable:
        monkeypatch.setenv(variable, rank)
    with pytest.raises(EnoughError):
        train.main(["ages", "--folder", str(tmp_path)])
    assert ("training ages in" in capsys.readouterr().err) == (rank in ("", "0"))


@pytest.mark.parametrize("preset", tasks.presets())
def test_every_preset_says_what_it_does_before_its_first_update(
    preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first line after the description, of every preset at its full size; the batch itself is not drawn."""
    if preset == "visual-sudoku":
        pytest.importorskip("rrn.tasks.visual_sudoku.strokes")
    seen: list[str] = []
    monkeypatch.setattr(Display, "report", lambda self, activity: seen.append(activity))
    whole = tasks.find_preset(preset)
    experiment = tasks.make_experiment(whole, whole)

    def stop(*_: object) -> None:
        raise EnoughError

    monkeypatch.setattr(type(experiment), "first_batch", stop)
    loop = make_loop(experiment, tmp_path, Processes(), quiet=False)
    with pytest.raises(EnoughError):
        loop.objective.loss(0, 0.0)
    assert seen == ["update 1: drawing a batch"]


PROGRAM = """
import sys
from rrn.cli import main
sys.exit(main(["train", *sys.argv[1:]]))
"""
SHOWN = r"(update \d+:? .*|(?:preparing|generated [\d,]+ of [\d,]+) difficult puzzles)"
"""What is done and how far it is, or an update."""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the processor time of another process from /proc")
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("preset", ["ages", "sudoku-hard", "sudoku-paper-original"])
def test_training_shows_progress_within_five_seconds_and_it_moves(preset: str, terminal: bool, tmp_path: Path) -> None:
    """Five seconds of the processor, as other tests may use the machine. sudoku-hard generates puzzles first, and an
    update of sudoku-paper-original takes longer than that."""
    import pty

    ours, theirs = pty.openpty() if terminal else os.pipe()
    command = [sys.executable, "-c", PROGRAM, preset, "--folder", str(tmp_path / "run")]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=theirs, env=os.environ | {"COLUMNS": "160", "TERM": "xterm"}
    )
    os.close(theirs)
    seen, spent, first = "", 0.0, 0.0
    try:
        while len(set(re.findall(f".*{SHOWN}.*", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", seen)))) < 2:
            if select.select([ours], [], [], 0.5)[0]:
                seen += os.read(ours, 1000).decode(errors="replace")
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            spent = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            first = first or (spent if re.search(SHOWN, seen) else 0.0)
            assert spent < 5 or first, seen
            assert spent < 10, f"it does not move: {seen}"
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert f"training {preset} in" in seen
