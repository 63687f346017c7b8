"""Settings: every number has a range, and it is kept wherever the number comes from."""

import dataclasses
import math
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest

from rrn import tasks
from rrn.errors import InputError
from rrn.tasks.sudoku.settings import CandidatesPreset
from rrn.training.presets import Preset, Range, check_flags, checked

KINDS = list(dict.fromkeys(type(preset) for preset in tasks.presets().values()))


def numbers_without_range(hint: Any, ranged: bool = False) -> bool:
    if get_origin(hint) is Annotated:
        ranged = ranged or any(isinstance(part, Range) for part in hint.__metadata__)
        return numbers_without_range(get_args(hint)[0], ranged)
    if hint in (int, float):
        return not ranged
    return any(numbers_without_range(part, ranged) for part in get_args(hint))


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_of_every_preset_has_a_range(kind: type[Preset]) -> None:
    hints = get_type_hints(kind, include_extras=True)
    fields = [field.name for field in dataclasses.fields(kind)]
    assert [name for name in fields if numbers_without_range(hints[name])] == []
    assert numbers_without_range(tuple[int, ...] | None)


@pytest.mark.parametrize("name", tasks.presets())
def test_every_preset_keeps_its_own_ranges(name: str) -> None:
    preset = tasks.find_preset(name)
    check_flags(preset)
    values = {field.name: getattr(preset, field.name) for field in dataclasses.fields(preset)}
    assert type(preset)(**checked(type(preset), values)) == preset


@pytest.mark.parametrize("wrong", [math.nan, -math.inf, math.inf, 10**300, -(10**300), True, "8", [8], {}])
def test_no_number_takes_what_is_none(wrong: Any) -> None:
    hints = get_type_hints(Preset, include_extras=True)
    for name in ("steps", "minutes", "lr", "warmup", "clip", "ema", "seed", "threads", "checkpoint_minutes"):
        if wrong == 10**300 and name in ("lr", "clip"):
            continue  # foolish, but a number
        with pytest.raises(InputError, match=f"^{name}: expected .*, got "):
            checked(dataclasses.make_dataclass("One", [(name, hints[name])]), {name: wrong})


def test_values_of_json_get_their_types() -> None:
    values = {"name": "mine", "about": "", "slot_steps": [4, 8], "pool": "x.csv", "segment": None, "lr": 1}
    fitting = checked(CandidatesPreset, values)
    assert fitting["slot_steps"] == (4, 8)
    assert fitting["pool"] == (Path("x.csv"),), "a single one is what older files have"
    for name, wrong, expected in [
        ("slot_steps", [4], "2 numbers"),
        ("slot_steps", 4, "2 numbers"),
        ("slot_steps", [4, "8"], "a whole number"),
        ("extra_givens", [4, 3], "the smaller number first"),
        ("network", "recurrent", "one of candidates"),
        ("name", None, "text"),
        ("pool", 7, "a path"),
        ("steps", 8.0, "a whole number"),
        ("steps", None, "a whole number"),
    ]:
        with pytest.raises(InputError, match=f"{name}: expected {expected}"):
            checked(CandidatesPreset, values | {name: wrong})
    with pytest.raises(InputError, match="name: missing"):
        checked(CandidatesPreset, {"about": ""})
    with pytest.raises(InputError, match="got a number of more than 100 digits"):
        checked(CandidatesPreset, values | {"seed": 10**5000})
