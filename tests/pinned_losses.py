"""The losses of the first three updates of every preset, of its first stage, with batches of four.

They change only when what is trained changes: the data, the network, the loss or the optimizer. Where that is meant,
write `tests/pinned_losses.json` anew with ``python -m tests.pinned_losses [PRESET …]`` and say why in the change.
"""

import dataclasses
import json
import sys
from pathlib import Path

from rrn import engines, tasks
from rrn.io.files import write_json
from rrn.training.presets import stage_presets
from rrn.training.processes import Processes
from rrn.training.trainer import make_loop

FILE = Path(__file__).with_suffix(".json")
UPDATES, BATCH = 3, 4


def first_losses(name: str) -> list[float]:
    preset = stage_presets(tasks.find_preset(name))[0]
    few = {"few_givens_pool": 8, "hard_pool": 0} if getattr(preset, "few_givens_pool", 0) else {}
    preset = dataclasses.replace(preset, batch_size=BATCH, **few)
    loop = make_loop(tasks.make_experiment(preset), Path("never written"), Processes())
    with engines.only("plain"):  # Adam's first updates turn a rounding of a zero gradient into a step
        return [loop.one_update() for _ in range(UPDATES)]


def read() -> dict[str, list[float]]:
    return json.loads(FILE.read_text()) if FILE.exists() else {}


if __name__ == "__main__":
    renewed = {name: first_losses(name) for name in sys.argv[1:] or tasks.presets()}
    known = {name: losses for name, losses in (read() | renewed).items() if name in tasks.presets()}
    write_json(FILE, dict(sorted(known.items())))
    print(f"written: {FILE}")
