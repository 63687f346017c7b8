"""Problems as JSON files (``problem.schema.json`` describes them), and solvers as folders."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from rrn.constraints.declaring import Constraints, Problem
from rrn.constraints.solving import Solver, make_network
from rrn.errors import InputError, blaming, quote, shorten
from rrn.io.files import read_bytes, write_json
from rrn.io.pretrained import build_with_weights, save_network
from rrn.nn.updates import SharedLayerUpdate

SOLVER = "solver.json"
MOST_BYTES = 64 << 20
MOST_CANDIDATES = 1_000_000
RULES = ("exactly_one", "at_most_one")
FIELDS = ("candidates", *RULES, "given", "excluded")
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')

Place = tuple[str | int, ...]
"""Where something stands in a file: keys and positions, from the outside to the inside."""


def read_problem(path: str | Path) -> Problem:
    """The problem of a JSON file. What is wrong with it is said with its line and name."""
    with blaming(f"{path}: cannot be read"):
        text = read_bytes(Path(path), MOST_BYTES).decode()
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: line {error.lineno}: not JSON ({error.msg})") from error
    except RecursionError as error:
        raise InputError(f"{path}: lists within lists within lists …: not a problem") from error
    except ValueError as error:  # Python reads no number of thousands of digits
        raise InputError(f"{path}: a number in it is too long to be meant") from error
    return _File(str(path), text).problem(value)


class _File:
    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text

    def refuse(self, place: Place, why: str) -> NoReturn:
        """With the line on which it stands, and its name: ``exactly_one, row, group 2``."""
        lines: dict[Place, int] = {}
        for at, line in _places(self.text):
            lines.setdefault(at, line)
        words = [f"group {part + 1}" if isinstance(part, int) and n == 2 else part for n, part in enumerate(place)]
        where = ", ".join(shorten(word) for word in words if not isinstance(word, int))
        raise InputError(f"{self.name}: line {lines.get(place, 1)}: {where + ': ' if where else ''}{why}")

    def problem(self, value: Any) -> Problem:
        if not isinstance(value, dict):
            self.refuse((), "expected an object with candidates and groups")
        for at, line in _twice(self.text):
            raise InputError(f"{self.name}: line {line}: {quote(str(at[-1]))} stands there twice")
        unknown = next((field for field in value if field not in (*FIELDS, "$schema")), None)
        if unknown is not None:
            self.refuse((unknown,), f"no such field; there are {', '.join(FIELDS)}")
        if "candidates" not in value:
            self.refuse((), "candidates: missing")
        if not any(rule in value for rule in RULES):
            self.refuse((), f"expected {' or '.join(RULES)}")
        names = value["candidates"]
        if isinstance(names, int) and not isinstance(names, bool):
            if not 1 <= names <= MOST_CANDIDATES:
                self.refuse(("candidates",), f"expected 1 to {MOST_CANDIDATES:,}, got {names}")
            known = set(range(names))
        else:
            known = set(self._names(value, ("candidates",), None, least=1))
        for rule in RULES:
            self._check_kinds(value, rule, known)
        for field in ("given", "excluded"):
            if field in value:
                self._names(value, (field,), known)
        shared = [name for name in value.get("excluded", []) if name in value.get("given", [])]
        if shared:
            self.refuse(("excluded", value["excluded"].index(shared[0])), f"{shared[0]!r} is given as well")
        kinds = (value.get(rule) for rule in RULES)
        try:
            constraints = Constraints(names, *kinds)
        except InputError as error:
            self.refuse(("candidates",), str(error))
        try:
            return constraints.problem(value.get("given", ()), value.get("excluded", ()))
        except InputError as error:
            self.refuse(("given",), str(error).removeprefix("given: "))

    def _check_kinds(self, value: dict[str, Any], rule: str, known: set[Any]) -> None:
        kinds = value.get(rule, {})
        if not isinstance(kinds, dict) or (rule in value and not kinds):
            self.refuse((rule,), "expected an object: lists of groups by the name of their kind")
        for kind, groups in kinds.items():
            if rule == RULES[1] and kind in value.get(RULES[0], {}):
                self.refuse((rule, kind), f"the kind is in {RULES[0]} as well")
            if not isinstance(groups, list):
                self.refuse((rule, kind), "expected a list of groups")
            for number in range(len(groups)):
                self._names(value, (rule, kind, number), known, least=1)

    def _names(self, value: Any, place: Place, known: set[Any] | None, least: int = 0) -> list[Any]:
        """The list at a place, if it is one of names, each once and each known."""
        for part in place:
            value = value[part]
        if not isinstance(value, list) or len(value) < least:
            self.refuse(place, f"expected a list of {'one or more ' if least else ''}names")
        met: set[Any] = set()
        for number, name in enumerate(value):
            if not isinstance(name, str | int) or isinstance(name, bool):
                self.refuse((*place, number), "expected names: text or whole numbers")
            if name in met:
                self.refuse((*place, number), f"{name!r} stands there twice")
            if known is not None and name not in known:
                self.refuse((*place, number), f"{shorten(name)!r} is no candidate")
            met.add(name)
        return value


def _places(text: str) -> Iterator[tuple[Place, int]]:
    """Where everything stands in a text that is JSON, and its line; what an object names twice comes twice."""
    line, end = 1, 0
    path: list[str | int] = []
    inside: list[str] = []
    key = False  # whether the next text is a key
    for token in TOKEN.finditer(text):
        line += text.count("\n", end, token.start())
        end = token.start()
        word = token[0]
        if word in "}]":
            inside.pop()
            path.pop()
            key = False
        elif word == ",":
            key = inside[-1] == "{"
            if not key:
                path[-1] = int(path[-1]) + 1
        elif key:
            path[-1] = json.loads(word)
            key = False
            yield tuple(path), line
        elif word != ":":
            if not inside or inside[-1] == "[":
                yield tuple(path), line
            if word in "{[":
                inside.append(word)
                path.append(0)
                key = word == "{"


def _twice(text: str) -> Iterator[tuple[Place, int]]:
    """What an object names twice: JSON would keep the last and say nothing."""
    met: set[Place] = set()
    for place, line in _places(text):
        if place in met:
            yield place, line
        met.add(place)


def save_solver(solver: Solver, folder: Path) -> None:
    update = solver.network.update
    assert isinstance(update, SharedLayerUpdate)
    save_network(solver.network, folder)
    sizes = {
        "hidden": update.hidden,
        "message_width": solver.network.hidden // len(solver.kinds),
        "layer_width": update.first.shape[1],
    }
    write_json(folder / SOLVER, {"kinds": list(solver.kinds), "refutes": solver.refutes, **sizes})


def load_solver(folder: Path) -> Solver:
    path = folder / SOLVER
    with blaming(f"{path}: not the settings of a solver"):
        settings = json.loads(read_bytes(path, MOST_BYTES))
        kinds, refutes = [str(kind) for kind in settings.pop("kinds")], bool(settings.pop("refutes", False))
    network = build_with_weights(lambda: make_network(len(kinds), **settings), folder)
    return Solver(network, kinds, refutes)
