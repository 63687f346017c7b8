"""docs/architecture.md is true: its files and names exist, and its three flows run through them in that order."""

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
from starlette.testclient import TestClient

from rrn._compat import COMPILED
from rrn.tasks.sudoku import experiment
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.web.app import create_app

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "rrn"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
NAMED = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.py)`(?:: ((?:`[\w.]+`(?:, )?)+))?")
MOST_FILES = 8


def test_files_and_names_are_there() -> None:
    named = NAMED.findall(PAGE)
    assert len(named) > 20
    for file, names in named:
        path = (ROOT if file.startswith("tests/") else PACKAGE) / file
        if "/" not in file and not path.exists():  # a module of every task
            path = PACKAGE / "tasks" / "sudoku" / file
        assert path.is_file(), file
        for name in re.findall(r"`([\w.]+)`", names):
            assert name.split(".")[-1] in path.read_text(), f"{name} in {file}"


def test_the_readme_points_to_it() -> None:
    assert "(docs/architecture.md)" in (ROOT / "README.md").read_text()


def flows() -> list[list[str]]:
    """Of each flow the functions in their order, such as "network.py RRN.run"."""
    table = PAGE.split("What happens in them")[1].split("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| `")]
    columns = [NAMED.findall(" ".join(column)) for column in zip(*rows, strict=True)]
    return [[f"{file} {name}" for file, names in flow for name in re.findall(r"`(.+?)`", names)] for flow in columns]


def solve(call: Callable[..., tuple[int, str, str]], folder: Path) -> None:
    assert call("solve", EXAMPLES[0])[0] == 0


def train(call: Callable[..., tuple[int, str, str]], folder: Path) -> None:
    small = [
        "--hidden",
        8,
        "--message-width",
        2,
        "--layer-width",
        16,
        "--batch-size",
        4,
        "--slot-steps",
        8,
        8,
        "--few-givens-pool",
        0,
    ]
    flags = ["--segment", 8, "--updates", 2, "--minutes", "None", "--quiet", "--folder", folder]
    code, _, errors = call("train", "sudoku", *small, *flags)
    assert code == 0, errors


def ask_the_page(call: Callable[..., tuple[int, str, str]], folder: Path) -> None:
    client = TestClient(create_app({"sudoku": "sudoku"}, workers=1), base_url="http://localhost")
    assert client.post("/api/sudoku/solve", json={"puzzles": [EXAMPLES[0]]}).status_code == 200


@pytest.mark.parametrize(("number", "entry_point"), [(0, solve), (1, train), (2, ask_the_page)])
def test_a_flow_runs_through_its_functions(
    number: int,
    entry_point: Callable[..., None],
    call: Callable[..., tuple[int, str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(experiment, "VALIDATION", 4)
    met: list[str] = []

    def meet(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            name = frame.f_code.co_qualname.split("<locals>.")[-1]
            met.append(f"{Path(frame.f_code.co_filename).relative_to(PACKAGE)} {name}")

    threading.setprofile(meet)
    sys.setprofile(meet)
    try:
        entry_point(call, tmp_path)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    flow = [place for place in flows()[number] if COMPILED or not place.startswith("engines/")]
    assert len({place.split()[0] for place in flow}) <= MOST_FILES
    missed = [place for place in flow if place not in met]
    assert not missed
    times = [met.index(place) for place in flow]
    assert times == sorted(times), flow
