"""Runs of every task's default preset, killed again and again: they are to end as if nobody had touched them.

A run of a few updates, with a checkpoint after each, is killed by SIGKILL, gone on with, killed again, and so on; half
of the kills come at any moment, from the reading of the data on, and half at a random line of the code that writes a
checkpoint. What is left in the end is compared with an uninterrupted run: every tensor bit by bit, the position, the
lines of metrics, best/, and that no half-written file is left.
"""

import contextlib
import json
import math
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from rrn import tasks
from rrn.io import files as storage
from rrn.io.pretrained import CURVES as METRICS
from rrn.tasks.ages import experiment as ages
from rrn.tasks.babi import experiment as babi
from rrn.tasks.pretty_clevr import experiment as pretty_clevr
from rrn.tasks.sudoku import experiment as sudoku
from rrn.training import checkpoints
from rrn.training.checkpoints import load_checkpoint, save_checkpoint
from rrn.training.trainer import train_stages

DEFAULTS = ("ages", "sudoku", "babi", "pretty-clevr")
UPDATES = 10
CHAIN = 5
"""Kills that one run lives through."""
LITTLE = {"updates": UPDATES, "batch_size": 4, "minutes": None, "checkpoint_minutes": 0.0, "validate_every": 4}
"""What differs from the presets: a run of seconds, with two validations on the way and a checkpoint at each update."""
WRITERS = {checkpoints.__file__, storage.__file__}
TIMED = ("minutes", "seconds", "validation_seconds")


@dataclass
class Tally:
    """``kills`` at any moment and ``in_writing``, of ``runs``; ``losses`` says which did not end as they should."""

    kills: int = 0
    in_writing: int = 0
    runs: int = 0
    losses: list[str] = field(default_factory=list)


def little_data() -> None:
    """Pools of bAbI questions change every three updates, so that runs go on across them; validations are short."""
    babi.POOL, babi.POOL_UPDATES, babi.VALIDATION = 12, 3, 4
    ages.VALIDATION, pretty_clevr.VALIDATION, sudoku.VALIDATION = 200, 200, 8


def attack(task: str, folder: Path, kills: int, seed: int = 0) -> Tally:
    """Kill runs of a task so often, and compare each that ends with one that nobody touched."""
    rng, tally = random.Random(f"{task} {seed}"), Tally()
    whole = folder / "whole"
    for run in (folder / "first", whole):  # the first compiles, and reads, what the processes below inherit
        begun = time.monotonic()
        _train(task, run)
        seconds = time.monotonic() - begun
    while tally.kills + tally.in_writing < kills and not tally.losses:
        tally.runs += 1
        killed = folder / f"killed-{tally.runs}"
        for _ in range(min(CHAIN, kills - tally.kills - tally.in_writing)):
            if tally.in_writing < math.ceil(kills / 2) and (tally.kills >= kills // 2 or rng.random() < 0.5):
                save, line = rng.randint(1, 3), rng.randint(1, 40)
                dead = _run(task, killed, lambda save=save, line=line: _die_writing(save, line), None, tally)  # type: ignore[misc]
                tally.in_writing += dead
            else:
                dead = _run(task, killed, lambda: None, rng.uniform(0, seconds), tally)
                tally.kills += dead
            if not dead:
                break  # it ended before
        _run(task, killed, lambda: None, None, tally)
        tally.losses += [f"{task}, run {tally.runs}: {what}" for what in differences(whole, killed)]
    return tally


def _train(task: str, folder: Path) -> None:
    little_data()
    preset = replace(tasks.find_preset(task), stages=(), **LITTLE)  # type: ignore[arg-type]
    train_stages(preset, tasks.make_experiment, folder, quiet=True)


def _run(task: str, folder: Path, prepare: Callable[[], None], seconds: float | None, tally: Tally) -> bool:
    """Train in a process of its own, which is killed after so many seconds; whether it was killed."""
    folder.mkdir(parents=True, exist_ok=True)
    said = folder.with_name(folder.name + ".log")
    process = os.fork()
    if not process:
        _train_and_leave(task, folder, prepare, said)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)
    status = os.waitpid(process, 0)[1]
    if status and os.WTERMSIG(status) != signal.SIGKILL:
        tally.losses.append(f"{task}: ended with status {status}: {said.read_text()[-500:]}")
    return bool(status)


def _train_and_leave(task: str, folder: Path, prepare: Callable[[], None], said: Path) -> None:
    code = 1
    try:
        with open(said, "w") as file, contextlib.redirect_stderr(file), contextlib.redirect_stdout(file):
            prepare()
            _train(task, folder)
        code = 0
    except BaseException as error:
        said.write_text(repr(error))
    finally:
        os._exit(code)


def _die_writing(save: int, line: int) -> None:
    """Let this process kill itself at a line of the code that writes a checkpoint, from the ``save``-th on: in the
    first that has so many."""
    saves = lines = 0
    inside = False

    def count(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines, inside
        if event == "line":
            lines += 1
            if lines == line:
                os.kill(os.getpid(), signal.SIGKILL)
        elif event == "return" and frame.f_code is save_checkpoint.__code__:
            inside = False
        return count

    def called(frame: FrameType, event: str, _: object) -> Any:
        nonlocal saves, lines, inside
        if frame.f_code is save_checkpoint.__code__:
            saves, lines, inside = saves + 1, 0, saves + 1 >= save
        return count if inside and frame.f_code.co_filename in WRITERS else None

    sys.settrace(called)


def differences(whole: Path, killed: Path) -> list[str]:
    """What a run that was killed on its way has otherwise than one that was not."""
    ours, theirs = load_checkpoint(whole), load_checkpoint(killed)
    if ours is None or theirs is None:
        return ["no checkpoint"]
    found = []
    bits = [name for name in ours[0].keys() | theirs[0].keys() if not _same(ours[0].get(name), theirs[0].get(name))]
    if bits:
        found.append(f"{len(bits)} of {len(ours[0])} tensors differ, such as {min(bits)}")
    if _untimed(ours[1]) != _untimed(theirs[1]):
        found.append("facts of the checkpoint differ")
    lines = [
        [_untimed(json.loads(line)) for line in (run / METRICS).read_text().splitlines()] for run in (whole, killed)
    ]
    if lines[0] != lines[1]:
        found.append(f"metrics differ: {len(lines[0])} and {len(lines[1])} lines")
    if (whole / "best/model.safetensors").read_bytes() != (killed / "best/model.safetensors").read_bytes():
        found.append("best/ differs")
    left = [
        path.name for path in killed.rglob("*") if path.name.startswith(".") or path.suffix in (".damaged", ".before")
    ]
    return found + ([f"left behind: {', '.join(left)}"] if left else [])


def _same(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    return one is not None and other is not None and torch.equal(one, other)


def _untimed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _untimed(part) for name, part in value.items() if name not in TIMED}
