"""Runs killed at any moment, and while they write, end like uninterrupted runs. More in benchmarks.faults."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from benchmarks import comparisons, declared, hungry
from benchmarks.kills import differences
from benchmarks.mutants import LOADERS
from safetensors.torch import load_file, save_file

from rrn.engines import threads
from rrn.training.checkpoints import list_checkpoints, load_checkpoint, save_checkpoint

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_no_kill_loses_anything(tmp_path: Path) -> None:
    """In a process of its own: it forks, which a process with threads had better not."""
    out = tmp_path / "faults.json"
    command = [sys.executable, "-m", "benchmarks.faults", "kills", "--kills", "8", "--out", str(out)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    table = json.loads(out.read_text())["kills"]["table"]
    assert {what: (row["trials"], row["in_writing"], row["losses"]) for what, row in table.items()} == {
        f"SIGKILL, {task}": (2, 1, 0) for task in ("ages", "sudoku", "babi", "pretty-clevr")
    }


def another_bit(run: Path) -> None:
    tensors, facts = load_checkpoint(run) or ({}, {})
    name = next(name for name in tensors if name.startswith("optimizer."))
    save_checkpoint(run, facts["update"], tensors | {name: tensors[name] + 1}, facts)


def another_position(run: Path) -> None:
    tensors, facts = load_checkpoint(run) or ({}, {})
    save_checkpoint(run, facts["update"], tensors, facts | {"position": {"longest": 99}})


def a_line_twice(run: Path) -> None:
    (run / "metrics.jsonl").write_text((run / "metrics.jsonl").read_text() * 2)


def other_weights(run: Path) -> None:
    path = run / "best" / "model.safetensors"
    save_file({name: tensor + 1 for name, tensor in load_file(path).items()}, path)


def half_a_file(run: Path) -> None:
    (run / ".rrn-x.part").write_bytes(b"half")


def nothing(run: Path) -> None:
    for path in list_checkpoints(run):
        path.unlink()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (another_bit, "1 of "),
        (another_position, "facts of the checkpoint differ"),
        (a_line_twice, "metrics differ: 1 and 2 lines"),
        (other_weights, "best/ differs"),
        (half_a_file, "left behind: .rrn-x.part"),
        (nothing, "no checkpoint"),
    ],
)
def test_what_differs_is_seen(change: Callable[[Path], None], found: str, tiny_ages_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_ages_run, run)
    assert differences(tiny_ages_run, run) == []
    change(run)
    (said,) = differences(tiny_ages_run, run)
    assert said.startswith(found)


def test_published_results_have_no_loss() -> None:
    served = json.loads((ROOT / "results" / "serve.json").read_text())["dropping"]
    assert served["errors"] == []
    assert served["dropped"] > 100
    assert served["answered"] > 100
    assert not served["memory_mb"]["grew"]
    parts = {name: part["table"] for name, part in json.loads((ROOT / "results" / "faults.json").read_text()).items()}
    assert set(parts) == {"kills", "mutants", "requests", "clients", "engines", "declared", "memory", "orphans"}
    assert all(row["losses"] == 0 for table in parts.values() for row in table.values())
    assert sum(row["trials"] for row in parts["kills"].values()) >= 100
    assert all(2 * row["in_writing"] >= row["trials"] for row in parts["kills"].values())
    assert all(row["trials"] >= 1000 for row in parts["mutants"].values())
    assert {f"mutants, {name}" for name in LOADERS} <= set(parts["mutants"]), "a reader was not tested"
    assert sum(row["trials"] for row in parts["requests"].values()) >= 10_000
    assert {f"engines, {name}" for name in comparisons.ATTACKS} == set(parts["engines"])
    assert sum(row["trials"] for row in parts["engines"].values()) >= 5000
    assert sum(row["trials"] for row in parts["declared"].values()) >= 5000
    assert sum(row["trials"] for row in parts["orphans"].values()) >= 20
    assert {"one address with many requests", "one address with many connections"} <= set(parts["clients"])


@pytest.mark.parametrize("name", comparisons.ATTACKS)
def test_engines_do_what_plain_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "CHUNK_FLOATS", 8)
    before = torch.get_num_threads()
    try:
        assert [found for number in range(6) if (found := comparisons.one(name, number, seed=1))] == []
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("name", hungry.FILES)
def test_small_files_get_little_memory(name: str, tmp_path: Path) -> None:
    assert hungry.attack(name, tmp_path, 2, seed=22) == []


def test_answers_of_declared_problems_keep_the_rules() -> None:
    counts, losses = declared.attack(40, seed=1)
    assert losses == []
    assert counts["solved"] > 5
