"""Problems as JSON files; ``problem.schema.json`` describes them."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from rrn.constraints.declare import Constraints
from rrn.constraints.problem import Problem
from rrn.errors import InputError, as_input_error, quote, shorten
from rrn.io.files import read_bytes

MOST_BYTES = 64 << 20
MOST_CANDIDATES = 1_000_000
RULES = ("exactly_one", "at_most_one", "exactly", "at_most", "at_least")
"""Of the first two, k is 1 and a type is a list of groups; of the others a type has "k" and "groups"."""
FIELDS = ("candidates", *RULES, "given", "excluded", "preferences")
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')

Place = tuple[str | int, ...]
"""The path of a value in a file: keys and positions, from the outside to the inside."""


def read_problem(path: str | Path) -> Problem:
    """The problem in a JSON file. Errors name the line and the field."""
    with as_input_error(f"{path}: cannot be read"):
        text = read_bytes(Path(path), MOST_BYTES).decode()
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: line {error.lineno}: not JSON ({error.msg})") from error
    except RecursionError as error:
        raise InputError(f"{path}: nested too deeply to be a problem") from error
    except ValueError as error:  # Python reads no number of thousands of digits
        raise InputError(f"{path}: a number has too many digits") from error
    return _File(str(path), text).problem(value)


class _File:
    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text

    def refuse(self, place: Place, why: str) -> NoReturn:
        """Raise an error with the line and the path of a value: ``exactly_one, row, group 2``."""
        lines: dict[Place, int] = {}
        for at, line in _places(self.text):
            lines.setdefault(at, line)
        level = 3 if len(place) > 3 and place[2] == "groups" else 2
        words = [f"group {part + 1}" if isinstance(part, int) and n == level else part for n, part in enumerate(place)]
        where = ", ".join(shorten(word) for word in words if not isinstance(word, int))
        raise InputError(f"{self.name}: line {lines.get(place, 1)}: {where + ': ' if where else ''}{why}")

    def problem(self, value: Any) -> Problem:
        if not isinstance(value, dict):
            self.refuse((), "expected an object with candidates and groups")
        for at, line in _twice(self.text):
            raise InputError(f"{self.name}: line {line}: {quote(str(at[-1]))} is named twice")
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
        types: dict[str, dict[str, Any]] = {"exactly": {}, "at_most": {}, "at_least": {}}
        bounds: dict[str, Any] = {}
        for rule in RULES:
            self._read_types(value, rule, known, types, bounds)
        for field in ("given", "excluded"):
            if field in value:
                self._names(value, (field,), known)
        given = set(value.get("given", []))
        for number, name in enumerate(value.get("excluded", [])):
            if name in given:
                self.refuse(("excluded", number), f"{name!r} is given as well")
        preferences = self._preferences(value, known)
        try:
            constraints = Constraints(names, **types, k=bounds)
        except InputError as error:
            self.refuse(("candidates",), str(error))
        try:
            return constraints.problem(value.get("given", ()), value.get("excluded", ()), preferences=preferences)
        except InputError as error:
            self.refuse(("given",), str(error).removeprefix("given: "))

    def _read_types(
        self,
        value: dict[str, Any],
        rule: str,
        known: set[Any],
        types: dict[str, dict[str, Any]],
        bounds: dict[str, Any],
    ) -> None:
        """Add the group types of a rule, and their k where it is not 1."""
        declared = value.get(rule, {})
        if not isinstance(declared, dict) or (rule in value and not declared):
            self.refuse((rule,), "expected an object: groups by the name of their type")
        for name, groups in declared.items():
            earlier = next((other for other in RULES[: RULES.index(rule)] if name in value.get(other, {})), None)
            if earlier is not None:
                self.refuse((rule, name), f"the type is also in {earlier}")
            place: Place = (rule, name)
            if not rule.endswith("_one"):
                if not isinstance(groups, dict) or set(groups) != {"k", "groups"}:
                    self.refuse(place, 'expected an object with "k" and "groups"')
                bounds[name], groups, place = groups["k"], groups["groups"], (*place, "groups")
            if not isinstance(groups, list):
                self.refuse(place, "expected a list of groups")
            for number in range(len(groups)):
                self._names(value, (*place, number), known, least=1)
            if name in bounds:
                k = bounds[name]
                each = k if isinstance(k, list) else [k] * len(groups)
                whole = all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in each)
                if not whole or len(each) != len(groups):
                    self.refuse(
                        (rule, name, "k"), f"expected a whole number from 0, or a list of {len(groups)} of them"
                    )
            types[rule.removesuffix("_one")][name] = groups

    def _preferences(self, value: dict[str, Any], known: set[Any]) -> dict[Any, float] | None:
        """Pairs of a candidate and its weight."""
        if "preferences" not in value:
            return None
        pairs, found = value["preferences"], dict[Any, float]()
        if not isinstance(pairs, list):
            self.refuse(("preferences",), "expected a list of pairs: a candidate and its weight")
        for number, pair in enumerate(pairs):
            good = isinstance(pair, list) and len(pair) == 2 and not isinstance(pair[1], bool)
            if not good or not isinstance(pair[1], int | float) or not math.isfinite(pair[1]):
                self.refuse(("preferences", number), "expected pairs: a candidate and its weight")
            name = pair[0]
            if not isinstance(name, str | int) or isinstance(name, bool) or name not in known:
                self.refuse(("preferences", number), f"{shorten(name)!r} is no candidate")
            if name in found:
                self.refuse(("preferences", number), f"{name!r} is named twice")
            found[name] = pair[1]
        return found

    def _names(self, value: Any, place: Place, known: set[Any] | None, least: int = 0) -> list[Any]:
        """The list at a path, if it is a list of distinct, known names."""
        for part in place:
            value = value[part]
        if not isinstance(value, list) or len(value) < least:
            self.refuse(place, f"expected a list of {'one or more ' if least else ''}names")
        met: set[Any] = set()
        for number, name in enumerate(value):
            if not isinstance(name, str | int) or isinstance(name, bool):
                self.refuse((*place, number), "expected names: text or whole numbers")
            if name in met:
                self.refuse((*place, number), f"{name!r} is named twice")
            if known is not None and name not in known:
                self.refuse((*place, number), f"{shorten(name)!r} is no candidate")
            met.add(name)
        return value


def _places(text: str) -> Iterator[tuple[Place, int]]:
    """The path and the line of every value in a JSON text; a key that an object repeats comes twice."""
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
    """Keys that an object repeats: JSON would silently keep the last value."""
    met: set[Place] = set()
    for place, line in _places(text):
        if place in met:
            yield place, line
        met.add(place)
