"""What several commands share: parsing by dataclass, lists of steps, JSON on standard output."""

import json
from typing import Any, TypeVar

import tyro

T = TypeVar("T")


def parse(kind: type[T], arguments: list[str], program: str, description: str, default: T | None = None) -> T:
    """Flags of a dataclass, one a field."""
    options: dict[str, Any] = {} if default is None else {"default": default}
    return tyro.cli(kind, args=arguments, prog=program, description=description, **options)


def print_json(value: Any) -> None:
    print(json.dumps(value, allow_nan=False))
