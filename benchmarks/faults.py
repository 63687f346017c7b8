"""Everything that SECURITY.md promises, attacked: ``python -m benchmarks.faults`` writes results/faults.json.

``python -m benchmarks.faults mutants clients`` runs parts of it, and keeps what the file says of the others. About half
an hour of one core; nothing here is a measure of speed. It ends with an error code if anything was lost.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import torch
import tyro

from benchmarks import clients, comparisons, declared, hungry, kills, mutants, orphans
from rrn.io.files import write_json
from rrn.io.machine import machine

OUT = Path(__file__).parent.parent / "results" / "faults.json"
SHOWN = 5
"""Losses of each kind that are described in the file."""

Row = tuple[dict[str, Any], list[str]]
"""``trials``, and what else there is to say; and the losses, in words."""


@dataclass
class Options:
    parts: tyro.conf.Positional[tuple[str, ...]] = ()
    """Which of kills, mutants, requests, clients, engines, declared, memory and orphans; unset: all."""
    kills: int = 100
    """SIGKILLs, spread over the tasks."""
    mutants: int = 1000
    """Damaged files for each loader."""
    requests: int = 10_000
    clients: int = 60
    """Clients that leave, and that idle; a fifth as many read nothing, and a tenth as many servers are ended."""
    comparisons: int = 6000
    """Comparisons of engines with plain, spread over the attacks of benchmarks.comparisons."""
    problems: int = 6000
    """Declared problems."""
    hungry: int = 10
    """Small files of each kind that ask for much memory."""
    orphans: int = 20
    """Leading processes that are killed."""
    seed: int = 0
    out: Path = OUT


def killed(options: Options, folder: Path) -> dict[str, Row]:
    rows = {}
    for number, task in enumerate(kills.DEFAULTS):
        share = (options.kills + number) // len(kills.DEFAULTS)
        tally = kills.attack(task, folder / task, share, options.seed)
        trials = {"trials": tally.kills + tally.in_writing, "in_writing": tally.in_writing, "runs": tally.runs}
        rows[f"SIGKILL, {task}"] = trials, tally.losses
    return rows


def damaged(options: Options, folder: Path) -> dict[str, Row]:
    return {
        f"mutants, {name}": (
            {"trials": options.mutants},
            mutants.attack(name, folder / str(number), options.mutants, options.seed),
        )
        for number, name in enumerate(mutants.LOADERS)
    }


def requested(options: Options, _: Path) -> dict[str, Row]:
    from benchmarks import requests  # needs the packages that only tests need
    from rrn.web.app import create_app

    trials, losses, seed = 0, [], options.seed
    while trials < options.requests:
        app = create_app(workers=1, hosts={requests.HOST})  # one each time: it is shut down in the end
        tried, lost = requests.attack(app, max(1, min(100, (options.requests - trials) // 16)), seed)
        trials, losses, seed = trials + sum(tried.values()), losses + lost, seed + 1
    return {"requests of a schema fuzzer": ({"trials": trials, "operations": len(tried)}, losses)}


def badly_behaved(options: Options, _: Path) -> dict[str, Row]:
    with clients.serve() as served:
        rows = {
            "clients that leave": clients.drop(served, options.clients),
            "clients that never finish asking": clients.idle(served, options.clients),
            "clients that do not read": clients.slow(served, max(options.clients // 5, 1)),
            "one address with many requests": clients.starve(served, 24),
            "one address with many connections": clients.crowd(served, 600),
        }
    return rows | {"SIGTERM with such clients": clients.terminate(max(options.clients // 10, 1))}


def compared(options: Options, _: Path) -> dict[str, Row]:
    share = -(-options.comparisons // len(comparisons.ATTACKS))
    return {
        f"engines, {name}": ({"trials": share}, comparisons.attack(name, share, options.seed))
        for name in comparisons.ATTACKS
    }


def declared_problems(options: Options, _: Path) -> dict[str, Row]:
    return {"declared problems, checked independently": declared.attack(options.problems, options.seed)}


def hungry_files(options: Options, folder: Path) -> dict[str, Row]:
    return {
        f"memory, {name}": ({"trials": options.hungry}, hungry.attack(name, folder, options.hungry, options.seed))
        for name in hungry.FILES
    }


def orphaned(options: Options, folder: Path) -> dict[str, Row]:
    losses = orphans.attack(folder, options.orphans, options.seed)
    return {"leading processes killed before they connect": ({"trials": options.orphans}, losses)}


PARTS: dict[str, Callable[[Options, Path], dict[str, Row]]] = {
    "kills": killed,
    "mutants": damaged,
    "requests": requested,
    "clients": badly_behaved,
    "engines": compared,
    "declared": declared_problems,
    "memory": hungry_files,
    "orphans": orphaned,
}


def main() -> int:
    options = tyro.cli(Options, description=__doc__)
    names = options.parts or tuple(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    lost = 0
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        begun, processor = time.monotonic(), sum(os.times()[:4])
        with tempfile.TemporaryDirectory() as folder:
            rows = PARTS[name](options, Path(folder))
        part = {
            "command": f"python -m benchmarks.faults {name}",
            "seed": options.seed,
            "table": {what: about | {"losses": len(losses)} for what, (about, losses) in rows.items()},
            "losses": [loss for _, losses in rows.values() for loss in losses[:SHOWN]],
            "minutes": round((time.monotonic() - begun) / 60, 1),
            "processor_minutes": round((sum(os.times()[:4]) - processor) / 60, 1),
            "date": date.today().isoformat(),
            "machine": machine(),
        }
        print(json.dumps(part, indent=2), flush=True)
        earlier = json.loads(options.out.read_text()) if options.out.exists() else {}
        write_json(
            options.out, {key: (earlier | {name: part}).get(key) for key in PARTS if key in earlier or key == name}
        )
        lost += sum(len(losses) for _, losses in rows.values())
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
