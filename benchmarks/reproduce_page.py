"""Write docs/reproduce.md from src/rrn/tasks/reproduce.json: ``make reproduce``. No part of ``make bench``."""

from pathlib import Path
from typing import Any

from rrn.cli.reproduce import COLUMNS, read_content, shown_figure

PAGE = Path(__file__).parent.parent / "docs" / "reproduce.md"


def page(content: dict[str, Any]) -> str:
    """A table for each table and figure of the paper."""
    lines = [*content["page"], *(f"- `{task}` rows: {text}" for task, text in content["now_differs"].items())]
    names = ["id", "what", *COLUMNS.values(), "files in results/", "command", "minutes"]
    for section in content["sections"]:
        lines += ["", f"## {section['title']}", "", f"In the table: {section['metric']}.", ""]
        lines += ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
        for row in section["rows"]:
            files = [f"`{Path(row[key]['file']).name}`" for key in ("same_inputs", "best") if row[key]]
            command = f"`{row['command']}`" if row["command"] else "not implemented"
            cells = [f"`{row['id']}`", row["what"], *(shown_figure(row[key]) for key in COLUMNS)]
            lines.append("| " + " | ".join([*cells, ", ".join(files), command, f"{row['minutes'] or ''}"]) + " |")
        for row in section["rows"]:
            lines += ["", f"`{row['id']}`: {row['note']}"] if row["note"] and row["command"] else []
    lines += ["", "## Weights", "", "`rrn train NAME` makes the shipped weights NAME from nothing, except:", ""]
    lines += [f"- `{name}`: {why}" for name, why in content["not_yet_by_one_command"].items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(read_content()))
