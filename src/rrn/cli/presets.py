"""rrn presets: the experiments that can be trained and evaluated."""

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from rrn import tasks
from rrn.cli.options import parse, print_json


@dataclass(frozen=True)
class Options:
    json: bool = False
    """Print one JSON array and nothing else."""


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn presets", "List the experiments with their networks.")
    from rrn.pretrained import shipped

    rows = [
        {
            "name": preset.name,
            "task": preset.task,
            "parameters": sum(p.numel() for p in tasks.build_network(preset).parameters()),
            "about": preset.about,
        }
        for preset in tasks.presets().values()
    ]
    if options.json:
        print_json(rows)
        return 0
    table = Table("preset", "task", "parameters", "weights", "about", box=None, header_style="bold")
    with_weights = shipped()
    for row in rows:
        weights = "shipped" if row["name"] in with_weights else ""
        table.add_row(str(row["name"]), str(row["task"]), f"{row['parameters']:,}", weights, str(row["about"]))
    Console().print(table)
    return 0
