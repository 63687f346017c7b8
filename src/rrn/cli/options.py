"""What several commands share: parsing by dataclass, lists of steps, JSON on standard output."""

import dataclasses
import json
import re
from typing import Any, TypeVar

import tyro

from rrn.training.presets import check_flags

T = TypeVar("T")


def parse(kind: type[T], arguments: list[str], program: str, description: str, default: T | None = None) -> T:
    """Flags of a dataclass, one per field, each in the range that its type declares.

    Lists of numbers are written with commas (``--tasks 1,2``), as ``--steps`` is, or with spaces between them.
    """
    given: dict[str, Any] = {} if default is None else {"default": default}
    listed = _list_flags(kind if default is None else default)
    options = tyro.cli(kind, args=_apart(arguments, listed), prog=program, description=description, **given)
    check_flags(options, {argument.partition("=")[0].replace("_", "-") for argument in arguments})
    return options


def _list_flags(options: Any) -> set[str]:
    """The flags of a dataclass, or of an instance with others in it, that take several values."""
    found: set[str] = set()
    for field in dataclasses.fields(options):
        value = getattr(options, field.name, None)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            found |= _list_flags(value)
        elif "tuple[" in str(field.type):
            found.add(f"--{field.name.replace('_', '-')}")
    return found


def _apart(arguments: list[str], flags: set[str]) -> list[str]:
    """Numbers joined by commas after one of these flags, one by one."""
    parts: list[str] = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        joined = before.replace("_", "-") in flags and re.fullmatch(r"[\d.]+(,[\d.]+)+", argument)
        parts += argument.split(",") if joined else [argument]
    return parts


def print_json(value: Any) -> None:
    print(json.dumps(value, allow_nan=False))
