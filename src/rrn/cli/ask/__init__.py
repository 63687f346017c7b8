"""rrn ask TASK …: ask a trained network a question."""

from dataclasses import dataclass
from typing import Any

from rich.table import Table

from rrn.cli import run_task_command
from rrn.training.presets import Device, Json, Steps

ABOUT = {
    "ages": "facts about ages, in words",
    "babi": "a story in bAbI's words, in a line or at a prompt",
    "pretty-clevr": "a scene of eight objects, and where some jumps lead",
}
Choices = list[list[tuple[str, float]]]
"""For each step the most probable answers with their probabilities."""


@dataclass(frozen=True)
class AskOptions:
    """The flags that all tasks share."""

    steps: Steps | None = None
    """Message-passing steps. Unset: as in training."""
    weights: str = ""
    """A folder of weights, shipped weights by name, or a hub id."""
    device: Device = "auto"
    json: Json = False

    def network(self, task: str) -> Any:
        """The network for a task, on the device."""
        from rrn.inference.devices import find_device, place
        from rrn.tasks.weights import from_pretrained

        return place(from_pretrained(self.weights, task=task), find_device(self.device))


def main(arguments: list[str]) -> int:
    return run_task_command("ask", ABOUT, arguments)


def steps_as_json(best: Choices) -> list[dict[str, Any]]:
    return [{"step": t, "answer": row[0][0], "probability": round(row[0][1], 4)} for t, row in enumerate(best, start=1)]


def steps_table(best: Choices, title: str = "answer", truth: str | None = None) -> Table:
    """The most probable answers after each step; steps with the true answer are green."""
    others = "runner-up" if len(best[0]) == 2 else "runners-up"
    table = Table("step", title, "probability", others, box=None, header_style="bold")
    for t, ((first, p), *next_best) in enumerate(best, start=1):
        listed = ", ".join(f"{word} ({q:.1%})" for word, q in next_best)
        table.add_row(str(t), first, f"{p:6.1%}", listed, style="green" if first == truth else "")
    return table
