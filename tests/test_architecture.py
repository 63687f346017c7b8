"""The picture of the house names files that are there, and what is said to be in them."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_files_and_names_are_there() -> None:
    named = re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`(?:: ((?:`[\w.]+`(?:, )?)+))?", PAGE)
    assert len(named) > 20
    for file, names in named:
        path = ROOT / "src" / "rrn" / file
        if "/" not in file and not path.exists():  # a room of every task
            path = ROOT / "src" / "rrn" / "tasks" / "sudoku" / file
        assert path.is_file(), file
        for name in re.findall(r"`([\w.]+)`", names):
            assert name.split(".")[-1] in path.read_text(), f"{name} in {file}"
