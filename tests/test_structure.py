"""The shape of the package and its words: read from the files, nothing runs."""

import ast
import re
from pathlib import Path

import pytest

from rrn.inference.result import Result

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "rrn"
SOURCES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES, MOST_ENTRIES = 450, 18
CORE = ("constraints", "engines", "estimators", "graphs", "inference", "io", "nn", "training", "viewing", "network.py")

PHRASES = (
    "of the 12 hours that it is to get",
    "which has the first elimination by the givens in it",
    "says which guesses to trust",
    "Steps are free at test time",
    "are subclasses of a page each",
    "a cache's worth at a time",
    "problems that leave when finished",
    "is the network's word",
    "the network's word",
    "Who says what becomes of the places",
    "rows of its own",
    "set even where they say what is said anyway",
    "longer than it can be in earnest",
    "more than can be meant",
    "to be had",
    "say one of them; they count the same",
    "that nobody will ask for one",
    "at which of its units the narrower one's stand",
    "how-manieth",
    "for who computes that in another way",
    "through the house",
    "wits' end",
    "a clean start",
    "told what the paper's was told",
    "told more",
    "short first",
    "treat alike",
    "lines alike",
    "a start that counts",
)
"""Of the private language that the project once had."""
PEOPLE = r"\b(?:whoever|whomever|nobody|somebody|at its wits)\b"
"""A tensor, a slot or a branch is no person."""


def texts() -> list[Path]:
    """Sources, the page and the documentation, but not the log, which quotes earlier names."""
    pages = [ROOT / "README.md", *(path for path in (ROOT / "docs").glob("*.md") if path.name != "LOG.md")]
    static = [path for path in (PACKAGE / "web" / "static").rglob("*") if path.suffix in (".js", ".html", ".css")]
    return [*SOURCES, *pages, *static]


def test_no_file_is_long_and_the_package_has_few_entries() -> None:
    long = {path.name: lines for path in SOURCES if (lines := len(path.read_text().splitlines())) > MOST_LINES}
    assert not long
    entries = [path for path in PACKAGE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= MOST_ENTRIES


def test_gradients_are_computed_in_the_training_loop_only() -> None:
    found = {path.relative_to(PACKAGE).as_posix() for path in SOURCES if re.search(r"\.backward\(", path.read_text())}
    assert found == {"training/loop.py"}


def test_the_core_imports_no_task_and_no_entry_point() -> None:
    for name in CORE:
        for path in [PACKAGE / name] if name.endswith(".py") else (PACKAGE / name).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                imported = node.module or "" if isinstance(node, ast.ImportFrom) else ""
                assert not re.match(r"rrn\.(tasks|cli|web)\b", imported), f"{path} imports {imported}"


def test_every_entry_point_of_inference_returns_the_one_result() -> None:
    import inspect

    from rrn import RRN
    from rrn.constraints import Solver
    from rrn.constraints.cp_sat import solve_exactly
    from rrn.inference import Service
    from rrn.inference.attempts import run_attempts
    from rrn.tasks.ages import predict as ages
    from rrn.tasks.babi import predict as babi
    from rrn.tasks.pretty_clevr import predict as pretty_clevr
    from rrn.tasks.sudoku import solve

    functions = (RRN.think, Solver.solve, solve_exactly, Service.solve, run_attempts, solve)
    for function in (*functions, ages.predict, babi.predict, pretty_clevr.predict):
        assert inspect.signature(function).return_annotation is Result, function
    named = [
        path for path in SOURCES if re.search(r"^class (\w*Result|Found|Solved|Solutions)\b", path.read_text(), re.M)
    ]
    assert [path.name for path in named] == ["result.py"]


@pytest.mark.parametrize("phrase", PHRASES)
def test_no_phrase_of_the_private_language_is_left(phrase: str) -> None:
    words = re.compile(r"\s+".join(map(re.escape, phrase.split())), re.IGNORECASE)
    assert not [path.name for path in texts() if words.search(path.read_text())]


def test_things_are_no_people() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in texts()
        for line in path.read_text().splitlines()
        if re.search(PEOPLE, line, re.IGNORECASE) and ".nobody" not in line  # the name of a weight in old folders
    }
    assert not found
