"""What several commands share: parsing by dataclass, lists of steps, JSON on standard output."""

import json
from typing import Any, TypeVar

import tyro

from rrn.presets import check_flags

T = TypeVar("T")


def parse(kind: type[T], arguments: list[str], program: str, description: str, default: T | None = None) -> T:
    """Flags of a dataclass, one per field, each in the range that its type declares."""
    given: dict[str, Any] = {} if default is None else {"default": default}
    options = tyro.cli(kind, args=arguments, prog=program, description=description, **given)
    check_flags(options)
    return options


def print_json(value: Any) -> None:
    print(json.dumps(value, allow_nan=False))
