"""Every entry point runs through `RRN`: `RRN.run` computes what solve, ask, train, evaluate and the page return.

The steps that an entry point reports are compared with those that `RRN.run` ran, so that a path around it is noticed.
With numba and without: the second in a process that cannot import it.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from rrn import RRN, tasks
from rrn.tasks.ages import experiment as ages
from rrn.tasks.babi import experiment as babi
from rrn.tasks.pretty_clevr import experiment as pretty_clevr
from rrn.tasks.sudoku import experiment as sudoku
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.visual_sudoku import experiment as visual_sudoku
from rrn.web.app import create_app

Call = Callable[..., tuple[int, str, str]]
SMALL = {
    "sudoku": ["--hidden", 8, "--message-width", 2, "--layer-width", 16, "--few-givens-pool", 0],
    "babi": ["--hidden", 16, "--tasks", "1"],
    "pretty-clevr": ["--hidden", 16],
    "ages": ["--hidden", 16, "--message-width", 16, "--update-width", 16],
    "visual-sudoku": ["--hidden", 12, "--tied-digit-units", 1, "--start-from", "None"],
}
STORY = "Mary went to the kitchen. John moved to the garden."
AGES = "Ann is 20. Ann is 4 years older than Bob. How old is Bob?"
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "sudoku": ("solve", {"puzzles": [EXAMPLES[0]], "probabilities": False}),
    "babi": ("ask", {"facts": STORY, "question": "Where is Mary?", "steps": 3}),
    "pretty-clevr": ("ask", {"seed": 7, "start": "green", "jumps": 2, "steps": 3}),
    "ages": ("ask", {"story": AGES, "steps": 3}),
}


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps of each call of `RRN.run`."""
    run, calls = RRN.run, list[int]()

    def counted(self: RRN, *args: Any, steps: int, **kwargs: Any) -> Any:
        calls.append(steps)
        return run(self, *args, steps=steps, **kwargs)

    monkeypatch.setattr(RRN, "run", counted)
    return calls


def test_solve(call: Call, entered: list[int]) -> None:
    code, out, _ = call("solve", EXAMPLES[0], "--json")
    assert code == 0
    solved = json.loads(out)
    assert solved["valid"]
    assert sum(entered) >= solved["steps"] > 0


@pytest.mark.parametrize(
    ("task", "question"),
    [
        ("babi", [STORY, "Where is Mary?"]),
        ("pretty-clevr", ["--seed", 7, "--start", "green", "--jumps", 2]),
        ("ages", [AGES]),
    ],
)
def test_ask(task: str, question: list[object], call: Call, entered: list[int]) -> None:
    code, out, _ = call("ask", task, *question, "--steps", 3, "--json")
    assert code == 0
    assert entered[0] == len(json.loads(out)["steps"]) == 3


WITH_RRN = [task for task in tasks.TASKS if task != "photo"]
"""The digit reader is a convolutional network; what it reads is solved by an RRN."""


@pytest.mark.parametrize("task", WITH_RRN)
def test_train(task: str, call: Call, entered: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for room in (ages, babi, pretty_clevr, sudoku, visual_sudoku):
        monkeypatch.setattr(room, "VALIDATION", 64 if room is pretty_clevr else 8)
    flags = ["--batch-size", 4, "--minutes", "None", "--updates", 2, "--folder", tmp_path / "run", "--quiet"]
    code, _, errors = call("train", task, *SMALL[task], *flags)
    assert code == 0, errors
    assert len(entered) > 2  # an update each, and the validation
    assert sum(entered[2:]) >= tasks.find_preset(task).steps


@pytest.mark.parametrize("task", WITH_RRN)
def test_evaluate(task: str, call: Call, entered: list[int], tmp_path: Path) -> None:
    (tmp_path / "puzzles.txt").write_text("\n".join(EXAMPLES[:2]))
    few = ["--data", tmp_path / "puzzles.txt"] if task == "sudoku" else ["--limit", 8]
    code, out, errors = call("evaluate", task, *few, "--steps", "2,5", "--json")
    assert code == 0, errors
    assert json.loads(out)["n"] == (2 if task == "sudoku" else 8)
    assert sum(entered) >= 5


@pytest.mark.parametrize("task", REQUESTS)
def test_the_page(task: str, entered: list[int]) -> None:
    client = TestClient(create_app({task: task}, workers=1), base_url="http://localhost")
    entered.clear()
    endpoint, request = REQUESTS[task]
    response = client.post(f"/api/{task}/{endpoint}", json=request)
    assert response.status_code == 200, response.text
    answer = response.json()
    said = answer["puzzles"][0]["steps"] if task == "sudoku" else len(answer["steps"])
    assert sum(entered) >= said > 0


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None  # as if it were not installed
import pytest
from rrn._compat import COMPILED
assert not COMPILED
sys.exit(pytest.main([sys.argv[1], "-q", "-p", "no:cacheprovider", "--deselect", sys.argv[2]]))
"""


def test_without_numba() -> None:
    here = Path(__file__)
    this = f"{here.relative_to(here.parent.parent)}::test_without_numba"
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA, str(here), this], cwd=here.parent.parent, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
