"""Progress is visible at once, on a terminal and in a log file."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from rrn.training.display import SECONDS_PER_LINE, Display


def test_a_log_file_gets_a_line_after_the_first_update_and_every_half_a_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    display = Display("ages", 32, lines=True)
    loop = SimpleNamespace(
        update=1, last_loss=0.5, seconds=6.0, seconds_left=61.0, updates_per_second=2.0, progress=0.1
    )
    for _ in range(3):
        display.on_update(loop)  # type: ignore[arg-type]
    now[0] += SECONDS_PER_LINE + 1
    display.on_update(loop)  # type: ignore[arg-type]
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["    0.1 min  update 1  loss 0.5000  64/s  ETA 0:01:01"] * 2
    silent = Display("training", 32)
    silent.on_update(loop)  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""


def test_a_log_file_gets_lines_about_the_preparation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    display = Display("sudoku", 32, lines=True)
    for made in range(8):
        display.report(f"generated {made} of 8")
        now[0] += 10
    assert capsys.readouterr().err.splitlines() == [f"generated {made} of 8" for made in (0, 3, 6)]


PROGRAM = """
import sys
from rrn.cli import main
sys.exit(main(["train", *sys.argv[1:]]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the processor time of another process from /proc")
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("preset", ["ages", "sudoku-hard"])
def test_training_shows_something_within_five_seconds(preset: str, terminal: bool, tmp_path: Path) -> None:
    """Five seconds of the processor, as other tests may use the machine. sudoku-hard generates puzzles first."""
    import pty

    ours, theirs = pty.openpty() if terminal else os.pipe()
    command = [sys.executable, "-c", PROGRAM, preset, "--folder", str(tmp_path / "run")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    seen, spent = "", 0.0
    try:
        with open(ours, "rb", buffering=0) as stream:
            while "update" not in seen and "generated" not in seen:
                seen += stream.read(1000).decode(errors="replace")
                fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
                spent = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
                assert spent < 5 or f"training {preset} in" in seen, seen
    finally:
        process.kill()
        process.wait()
    assert f"training {preset} in" in seen
