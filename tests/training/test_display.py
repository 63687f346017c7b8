"""Progress is visible at once, on a terminal and in a log file."""

import time
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
