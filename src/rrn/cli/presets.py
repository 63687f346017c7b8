"""rrn presets: list the experiments that can be trained and evaluated."""

from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from rrn import tasks
from rrn.cli import parse, print_json
from rrn.training.presets import Json


@dataclass(frozen=True)
class Options:
    json: Json = False


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn presets", "List the presets: experiments with their networks.")
    from rrn.io.pretrained import shipped

    with_weights = shipped()
    rows = [
        {
            "name": preset.name,
            "task": preset.task,
            "parameters": sum(p.numel() for p in tasks.build_network(preset).parameters()),
            "weights": preset.name in with_weights,
            "about": preset.about,
        }
        for preset in tasks.presets().values()
    ]
    if options.json:
        print_json(rows)
        return 0
    console = Console(highlight=False)
    for row in rows:
        weights = ", weights shipped" if row["weights"] else ""
        console.print(Text.assemble((str(row["name"]), "bold"), f"  {row['parameters']:,} parameters{weights}"))
        console.print(Padding(Text(str(row["about"])), (0, 0, 0, 4)))
    return 0
