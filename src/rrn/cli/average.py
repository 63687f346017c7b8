"""rrn average: the average of the weights of several trainings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rrn.cli import parse, report
from rrn.io.files import check_writable
from rrn.training.presets import Json

ABOUT = (
    "Average weights of one network. The average is often better than each of them if all trainings started from the "
    "same weights (--start-from), and useless otherwise. Measure it: 'rrn evaluate PRESET --weights FOLDER'."
)


@dataclass(frozen=True)
class Options:
    weights: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Two or more folders of weights, or names of shipped ones. The settings are those of the first."""
    out: Path = Path("runs/average")
    """The folder to write."""
    json: Json = False


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn average", ABOUT)
    from rrn.io.pretrained import CONFIG, save_pretrained
    from rrn.tasks import presets
    from rrn.tasks.weights import average

    check_writable(options.out / CONFIG)
    network = average(options.weights)
    preset = network.preset
    names = ", ".join(Path(name).parent.name if Path(name).name == "best" else name for name in options.weights)
    save_pretrained(network, options.out, preset, {"mean_of": names}, presets().get(preset.name))
    message = f"written: {options.out}; evaluate with: rrn evaluate {preset.name} --weights {options.out}"
    fields = {"out": str(options.out), "preset": preset.name, "mean_of": list(options.weights)}
    return report(message, fields, options.json)
