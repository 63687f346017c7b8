"""Leading processes of ``--devices 2`` killed before or while the processes are connected: none may be left.

The script below stands for ``rrn train``: lightning starts it a second time.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

SCRIPT = """
from rrn.training.processes import Processes
Processes("cpu", 2)
print("connected", flush=True)
import time
time.sleep(600)
"""
LONGEST = 120.0
"""Seconds within which the other process must end, on a busy machine."""


def attack(folder: Path, trials: int, seed: int) -> list[str]:
    """Kill ``trials`` leaders, each at a random moment after it has started the other process. Returns the losses."""
    script, rng, losses = folder / "orphans_script.py", random.Random(seed), []
    script.write_text(SCRIPT)
    for trial in range(trials):
        leader = subprocess.Popen(
            [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            other = _child(leader)
            time.sleep(rng.choice([0, rng.uniform(0, 1), rng.uniform(0, 10)]))
            os.kill(leader.pid, signal.SIGKILL)
            leader.wait()
            deadline = time.monotonic() + LONGEST
            while _alive(other) and time.monotonic() < deadline:
                time.sleep(0.2)
            if _alive(other):
                losses.append(f"trial {trial}: process {other} is left {LONGEST:.0f} s after its leader")
        finally:
            _end_group(leader)
    return losses


def _child(leader: subprocess.Popen[bytes]) -> int:
    """The process that the leader starts, as soon as it exists."""
    path = Path(f"/proc/{leader.pid}/task/{leader.pid}/children")
    while leader.poll() is None:
        if children := path.read_text().split():
            return int(children[0])
        time.sleep(0.02)
    raise RuntimeError(f"the leading process ended by itself, with code {leader.returncode}")


def _alive(process: int) -> bool:
    """Whether it runs: neither gone nor waiting to be reaped."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _end_group(leader: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(leader.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        leader.wait()
