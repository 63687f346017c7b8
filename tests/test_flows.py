"""Five flows through the package: files entered and hops between files, counted on a second, warm run.

A hop is a call that enters another file of the package than the one that ran before. The limits are those of
docs/architecture.md.
"""

import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

import rrn
from rrn import Constraints, RRNClassifier, tasks
from rrn._compat import COMPILED
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.training.processes import Processes
from rrn.training.trainer import make_loop
from rrn.web.app import create_app

PACKAGE = str(Path(rrn.__file__).parent)
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
Call = Callable[..., tuple[int, str, str]]


def limits() -> dict[str, tuple[int, int]]:
    """Most files and hops of each flow, from the table of the page."""
    rows = re.findall(r"^\| ([^|]+?) \| (\d+) \| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    return {name: (int(files), int(hops)) for name, files, hops in rows}


class Profile:
    """Counts while ``enabled``. Threads that start while it is installed are followed too, each by itself."""

    def __init__(self) -> None:
        self.enabled, self.files, self.hops = False, set[str](), 0
        self.current: dict[int, str] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code if event == "call" else frame.f_back.f_code if event == "return" and frame.f_back else None
        if not self.enabled or code is None or not code.co_filename.startswith(PACKAGE):
            return
        thread = threading.get_ident()
        if event == "call":
            self.files.add(code.co_filename)
            self.hops += self.current.get(thread) != code.co_filename
        self.current[thread] = code.co_filename


@pytest.fixture(autouse=True)
def profile() -> Iterator[Profile]:
    installed = Profile()
    threading.setprofile(installed)
    sys.setprofile(installed)
    yield installed
    sys.setprofile(None)
    threading.setprofile(None)


def check(profile: Profile, name: str, run: Callable[[], Any]) -> None:
    """The second run of a flow stays within the limits of its row."""
    most_files, most_hops = limits()[name]
    run()
    profile.enabled = True
    run()
    profile.enabled = False
    listed = sorted(Path(file).relative_to(PACKAGE).as_posix() for file in profile.files)
    assert 3 < len(listed) <= most_files, f"{len(listed)} files: {listed}"
    assert profile.hops <= most_hops


pytestmark = pytest.mark.skipif(not COMPILED, reason="engines without numba take other files")


def test_a_solved_puzzle(call: Call, profile: Profile) -> None:
    check(profile, "rrn solve, one puzzle", lambda: call("solve", EXAMPLES[0]))


def test_an_update_of_babi(tmp_path: Path, profile: Profile) -> None:
    loop = make_loop(tasks.make_experiment(tasks.find_preset("babi")), tmp_path, Processes("cpu", 1, "32"))
    check(profile, "one update of rrn train babi", loop.one_update)


def test_a_request_of_the_page(profile: Profile) -> None:
    client = TestClient(create_app({"sudoku": "sudoku"}, workers=1), base_url="http://localhost")
    request = {"puzzles": [EXAMPLES[0]]}
    check(profile, "a request of the page", lambda: client.post("/api/sudoku/solve", json=request).raise_for_status())


def test_fit_and_solve_of_declared_constraints(profile: Profile) -> None:
    squares = Constraints(
        [(row, column, digit) for row in range(4) for column in range(4) for digit in range(4)],
        exactly={
            "cell": lambda c: (c[0], c[1]),
            "row": lambda c: (c[0], c[2]),
            "column": lambda c: (c[1], c[2]),
        },
    )
    problem = squares.dig(np.random.default_rng(0))

    def run() -> None:
        solver = squares.fit(lambda rng: problem, updates=1, progress=False)
        solver.solve(problem, max_steps=8, attempts=1)

    check(profile, "Constraints.fit and solve", run)


def test_a_fit_of_the_classifier(profile: Profile) -> None:
    torch.manual_seed(0)
    graphs = [(torch.randn(5, 3), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])) for _ in range(4)]
    labels = [np.arange(5) % 2 for _ in graphs]
    classifier = RRNClassifier(epochs=1, validation_fraction=0, progress=False)
    check(profile, "RRNClassifier.fit", lambda: classifier.fit(graphs, labels))
