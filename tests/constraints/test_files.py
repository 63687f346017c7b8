"""Problems as JSON files: reading, errors by line and field, the schema, and ``rrn solve problem.json``."""

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import torch

from rrn.constraints.files import read_problem
from rrn.constraints.solve import Solver
from rrn.errors import InputError
from rrn.inference.candidates import make_network
from rrn.tasks.sudoku.declared import AT_MOST, EXACTLY, sudoku
from rrn.tasks.sudoku.examples import EXAMPLES

SCHEMA = json.loads(resources.files("rrn.constraints").joinpath("problem.schema.json").read_text())
GOOD = """{
  "candidates": ["a", "b", "c", 4],
  "exactly_one": {
    "pair": [["a", "b"], ["c", 4]]
  },
  "at_most_one": {"middle": [["b", "c"]]},
  "given": ["a"],
  "excluded": []
}"""


def read(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "problem.json"
    path.write_text(text)
    return read_problem(path)


def test_a_problem_is_read(tmp_path: Path) -> None:
    problem = read(tmp_path, GOOD)
    assert problem.constraints.group_types == ("pair", "middle")
    assert problem.given == ["a"]
    assert problem.open.tolist() == [False, False, True, True]
    assert read(tmp_path, '{"candidates": 2, "exactly_one": {"a": [[0, 1]]}}').constraints.candidates == (0, 1)


BAD = [
    ('["a", "b", "c", 4],', '["a", "b", "c", 4]', "line 3: not JSON"),
    ('"c", 4],', '"c", "b"],', "line 2: candidates: 'b' is named twice"),
    ('"c", 4],', '"c", 4.5],', "line 2: candidates: expected names: text or whole numbers"),
    ('"candidates"', '"candidate"', "line 2: candidate: no such field; there are candidates, exactly_one"),
    ('["c", 4]]', '["c",\n  "x"]]', "line 5: exactly_one, pair, group 2: 'x' is no candidate"),
    ('["c", 4]]', "[]]", "line 4: exactly_one, pair, group 2: expected a list of one or more names"),
    ('[["a", "b"], ["c", 4]]', "7", "line 4: exactly_one, pair: expected a list of groups"),
    ('{"middle": [["b", "c"]]}', "[]", "line 6: at_most_one: expected an object"),
    ('"middle"', '"pair"', "line 6: at_most_one, pair: the type is also in exactly_one"),
    ('"given": ["a"]', '"given": ["a", "b"]', "line 7: given: 'a' and 'b' are in the same group (pair)"),
    ('"excluded": []', '"excluded": ["a"]', "line 8: excluded: 'a' is given as well"),
    ('"excluded": []', '"given": []', "line 8: 'given' is named twice"),
    ('["a", "b", "c", 4]', "0", "line 2: candidates: expected 1 to 1,000,000, got 0"),
    ('["a", "b", "c", 4]', "true", "line 2: candidates: expected a list of one or more names"),
]


@pytest.mark.parametrize(("before", "after", "message"), BAD, ids=[message for _, _, message in BAD])
def test_errors_name_the_line_and_the_field(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in GOOD
    with pytest.raises(InputError) as refused:
        read(tmp_path, GOOD.replace(before, after))
    assert str(refused.value).startswith(f"{tmp_path / 'problem.json'}: {message}")


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        '{"candidates": 2}',
        '{"exactly_one": {"a": [[0]]}}',
        "[" * 100_000,
        "\xff",
        f'{{"candidates": {"9" * 5000}}}',
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "problem.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"problem\.json: "):
        read_problem(path)


def test_the_schema_agrees() -> None:
    """It accepts what is read, and what a schema cannot check: unknown names and broken rules."""
    check = jsonschema_rs.Draft202012Validator(SCHEMA)
    assert jsonschema_rs.meta.is_valid(SCHEMA)
    assert check.is_valid(json.loads(GOOD))
    unchecked = (
        "not JSON",
        "is no candidate",
        "as well",
        "also in",
        "same group",
        "'given' is named",
    )
    for before, after, message in BAD:
        if not any(part in message for part in unchecked):
            assert not check.is_valid(json.loads(GOOD.replace(before, after))), message


def declared_sudoku(puzzle: str) -> dict[str, Any]:
    constraints = sudoku()
    groups: dict[str, list[list[str]]] = {}
    names = ["".join(str(part + 1) for part in name) for name in constraints.candidates]
    for group_type, column in zip(constraints.group_types, constraints.member_of.T, strict=True):
        of_type: dict[int, list[str]] = {}
        for name, group in zip(names, column.tolist(), strict=True):
            of_type.setdefault(group, []).append(name)
        groups[group_type] = list(of_type.values())
    given = [f"{cell // 9 + 1}{cell % 9 + 1}{digit}" for cell, digit in enumerate(puzzle) if digit in "123456789"]
    exactly, at_most = ({name: groups[name] for name in rule} for rule in (EXACTLY, AT_MOST))
    return {"candidates": names, "exactly_one": exactly, "at_most_one": at_most, "given": given}


def test_rrn_solve_solves_a_declared_problem(tmp_path: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    path = tmp_path / "sudoku.json"
    path.write_text(json.dumps(declared_sudoku(EXAMPLES[0])))
    code, out, _ = call("solve", path, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["status"] == "solved"
    _, expected, _ = call("solve", EXAMPLES[0], "--json")
    assert "".join(name[2] for name in found["solution"]) == json.loads(expected)["solution"]
    code, out, _ = call("solve", path, "--quiet")
    assert code == 0
    assert out.startswith("solved in ")


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    Solver(make_network(2), ("pair", "middle")).save(tmp_path / "weights")
    return tmp_path / "weights"


def test_rrn_solve_reports_why_a_problem_is_not_solved(
    tmp_path: Path, weights: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    path = tmp_path / "problem.json"
    path.write_text(GOOD)
    assert call("solve", path, "--weights", weights)[0] in (0, 1)
    code, out, error = call("solve", path)
    assert (code, out) == (2, "")
    assert "problem has pair, middle" in " ".join(error.split())
    code, _, error = call("solve", path, "--trace")
    assert code == 2
    assert "--trace: shows Sudokus" in error


IMPOSSIBLE = """{
  "candidates": [0, 1, 2, 3],
  "exactly_one": {"pair": [[0, 1], [2, 3]]},
  "at_most_one": {"middle": [[0, 2], [1, 3], [0, 3], [1, 2]]}
}"""
"""Every pair of candidates excludes each other, though nothing is given."""


def save_solver(folder: Path, problem: Any) -> Path:
    Solver(make_network(len(problem.constraints.group_types)), problem.constraints.group_types).save(folder)
    return folder


@pytest.mark.parametrize("attempts", [None, 5])
def test_an_impossible_problem_costs_one_attempt(
    tmp_path: Path, call: Callable[..., tuple[int, str, str]], attempts: int | None
) -> None:
    problem = read(tmp_path, IMPOSSIBLE)
    weights = save_solver(tmp_path / "weights", problem)
    flags = ["--weights", weights, "--max-steps", 4, *([] if attempts is None else ["--attempts", attempts])]
    code, out, _ = call("solve", tmp_path / "problem.json", "--json", *flags)
    found = json.loads(out)
    assert (code, found["status"], found["valid"], found["attempts"]) == (1, "impossible", False, 1)
    assert "no solution" in found["message"]
    assert not {"solution", "answer"} & found.keys()
    code, out, _ = call("solve", tmp_path / "problem.json", *flags)
    assert code == 1
    assert " ".join(out.split()).startswith("impossible: the problem has no solution, proved by exact search")


def test_a_problem_with_an_empty_group_is_impossible_without_an_attempt(
    tmp_path: Path, weights: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    path = tmp_path / "problem.json"
    path.write_text(GOOD.replace('"excluded": []', '"excluded": ["c", 4]'))
    code, out, _ = call("solve", path, "--weights", weights, "--json")
    found = json.loads(out)
    assert (code, found["status"], found["attempts"], found["steps"]) == (1, "impossible", 0, 0)
    assert "pair: 0 true instead of exactly one of c, 4" in found["message"]


def test_a_complete_problem_is_already_solved(
    tmp_path: Path, weights: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    path = tmp_path / "problem.json"
    path.write_text(GOOD.replace('"given": ["a"]', '"given": ["a", "c"]'))
    code, out, _ = call("solve", path, "--weights", weights, "--json")
    found = json.loads(out)
    assert (code, found["status"], found["valid"], found["attempts"]) == (0, "already solved", True, 0)
    assert found["solution"] == ["a", "c"]


def test_an_ambiguous_problem_gets_all_attempts(tmp_path: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    """A network whose logits are all zero never decides, so none of the two solutions is found."""
    problem = read(
        tmp_path, '{"candidates": 4, "exactly_one": {"a": [[0, 1], [2, 3]]}, "at_most_one": {"b": [[0, 2]]}}'
    )
    network = make_network(2)
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
    Solver(network, problem.constraints.group_types).save(tmp_path / "weights")
    path, flags = tmp_path / "problem.json", ["--weights", tmp_path / "weights", "--max-steps", 4, "--attempts", 3]
    code, out, _ = call("solve", path, "--json", *flags)
    found = json.loads(out)
    assert (code, found["status"], found["valid"], found["attempts"]) == (1, "ambiguous", False, 3)
    assert "several solutions" in found["message"]
    assert "answer" in found
    assert call("solve", path, *flags)[1].startswith("ambiguous: the problem has several solutions")
