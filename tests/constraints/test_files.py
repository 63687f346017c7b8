"""Problems as JSON files: read, refused by line and name, and as the schema has it; solved by ``rrn solve``."""

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from rrn.constraints.files import read_problem
from rrn.constraints.solving import Solver, make_network
from rrn.errors import InputError
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
    assert problem.constraints.kinds == ("pair", "middle")
    assert [problem.constraints.names[number] for number in problem.given] == ["a"]
    assert problem.still_open.tolist() == [False, False, True, True]
    assert read(tmp_path, '{"candidates": 2, "exactly_one": {"a": [[0, 1]]}}').constraints.names == (0, 1)


BAD = [
    ('["a", "b", "c", 4],', '["a", "b", "c", 4]', "line 3: not JSON"),
    ('"c", 4],', '"c", "b"],', "line 2: candidates: 'b' stands there twice"),
    ('"c", 4],', '"c", 4.5],', "line 2: candidates: expected names: text or whole numbers"),
    ('"candidates"', '"candidate"', "line 2: candidate: no such field; there are candidates, exactly_one"),
    ('["c", 4]]', '["c",\n  "x"]]', "line 5: exactly_one, pair, group 2: 'x' is no candidate"),
    ('["c", 4]]', "[]]", "line 4: exactly_one, pair, group 2: expected a list of one or more names"),
    ('[["a", "b"], ["c", 4]]', "7", "line 4: exactly_one, pair: expected a list of groups"),
    ('{"middle": [["b", "c"]]}', "[]", "line 6: at_most_one: expected an object"),
    ('"middle"', '"pair"', "line 6: at_most_one, pair: the kind is in exactly_one as well"),
    ('"given": ["a"]', '"given": ["a", "b"]', "line 7: given: 'a' and 'b' stand in the same group (pair)"),
    ('"excluded": []', '"excluded": ["a"]', "line 8: excluded: 'a' is given as well"),
    ('"excluded": []', '"given": []', "line 8: 'given' stands there twice"),
    ('["a", "b", "c", 4]', "0", "line 2: candidates: expected 1 to 1,000,000, got 0"),
    ('["a", "b", "c", 4]', "true", "line 2: candidates: expected a list of one or more names"),
]


@pytest.mark.parametrize(("before", "after", "message"), BAD, ids=[message for _, _, message in BAD])
def test_bad_files_are_answered_by_line_and_name(tmp_path: Path, before: str, after: str, message: str) -> None:
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
    """It takes what is read; what it cannot see (names that are not candidates, rules that are broken) it takes too."""
    check = jsonschema_rs.Draft202012Validator(SCHEMA)
    assert jsonschema_rs.meta.is_valid(SCHEMA)
    assert check.is_valid(json.loads(GOOD))
    unseen = ("not JSON", "is no candidate", "as well", "same group", "'given' stands there twice")
    for before, after, message in BAD:
        if not any(part in message for part in unseen):
            assert not check.is_valid(json.loads(GOOD.replace(before, after))), message


def declared_sudoku(puzzle: str) -> dict[str, Any]:
    constraints = sudoku()
    groups: dict[str, list[list[str]]] = {}
    names = ["".join(str(part + 1) for part in name) for name in constraints.names]
    for kind, column in zip(constraints.kinds, constraints.member_of.T, strict=True):
        of_kind: dict[int, list[str]] = {}
        for name, group in zip(names, column.tolist(), strict=True):
            of_kind.setdefault(group, []).append(name)
        groups[kind] = list(of_kind.values())
    given = [f"{cell // 9 + 1}{cell % 9 + 1}{digit}" for cell, digit in enumerate(puzzle) if digit in "123456789"]
    exactly, at_most = ({kind: groups[kind] for kind in rule} for rule in (EXACTLY, AT_MOST))
    return {"candidates": names, "exactly_one": exactly, "at_most_one": at_most, "given": given}


def test_rrn_solve_takes_a_declared_problem(tmp_path: Path, call: Callable[..., tuple[int, str, str]]) -> None:
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


def test_rrn_solve_says_why_not(tmp_path: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    Solver(make_network(2), ("pair", "middle")).save(tmp_path / "weights")
    path = tmp_path / "problem.json"
    path.write_text(GOOD.replace('"excluded": []', '"excluded": ["c", 4]'))
    code, out, _ = call("solve", path, "--weights", tmp_path / "weights", "--max-steps", 4)
    assert code == 1
    assert "no solution: 8 starts of 4 steps; the problem has no solution, as an exact search shows" in " ".join(
        out.split()
    )
    code, out, _ = call("solve", path, "--weights", tmp_path / "weights", "--json", "--restarts", 0)
    assert (code, json.loads(out)["status"], json.loads(out)["starts"]) == (1, "no solution", 1)
    path.write_text(GOOD)
    assert call("solve", path, "--weights", tmp_path / "weights")[0] in (0, 1)
    code, out, error = call("solve", path)
    assert (code, out) == (2, "")
    assert "problem has pair, middle" in " ".join(error.split())
    code, _, error = call("solve", path, "--trace")
    assert code == 2
    assert "--trace: shows Sudokus" in error
