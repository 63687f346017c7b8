"""Presets: an experiment as a frozen dataclass. Every field is a flag of ``rrn train``.

This module does not import torch, so that presets are listed and parsed at once.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from rrn.errors import InputError, shorten

BUDGET_FIELDS = {"updates", "minutes", "checkpoint_minutes", "validate_every", "threads", "about"}
"""Settings in which a resumed run may differ from the one it continues."""


@dataclass(frozen=True)
class Range:
    """The numbers that a setting may have, as an annotation of its type: see `checked`."""

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf
    rising: bool = False
    """Several numbers must be in ascending order."""

    def refusal(self, number: float) -> str | None:
        """What is expected instead of a number out of range, or None."""
        bounds = {
            f"at least {self.least:,}": number >= self.least,
            f"more than {self.above:,}": number > self.above,
            f"at most {self.most:,}": number <= self.most,
            f"less than {self.below:,}": number < self.below,
        }
        wrong = (expected for expected, holds in bounds.items() if not holds)
        finite = isinstance(number, int) or math.isfinite(number)
        return next(wrong, None) if finite else "a finite number"


@dataclass(frozen=True)
class Needs:
    """Another setting that a setting has no effect without, as an annotation of its type: see `check_flags`.

    ``value`` is the required value: True for anything but off, False for off. ``otherwise`` is an alternative setting.
    """

    setting: str
    value: bool | str = True
    otherwise: str | None = None

    def refusal(self, options: Any) -> str | None:
        """Why the setting has no effect, or None."""
        held, flag = getattr(options, self.setting), _flag(self.setting)
        if held == self.value or (isinstance(self.value, bool) and bool(held) == self.value):
            return None
        if self.otherwise and getattr(options, self.otherwise):
            return None
        if self.value is False:
            return f"with {flag}"
        also = f" or {_flag(self.otherwise)}" if self.otherwise else ""
        return f"without {flag}{'' if self.value is True else ' ' + self.value}{also}"


Count = Annotated[int, Range(least=1, most=10**12)]
Steps = Annotated[int, Range(least=1, most=100_000)]
Width = Annotated[int, Range(least=1, most=2**14)]
Seed = Annotated[int, Range(least=0, most=2**32 - 1)]
Share = Annotated[float, Range(least=0, most=1)]
Dropped = Annotated[float, Range(least=0, below=1)]
Weight = Annotated[float, Range(least=0, most=1_000_000)]
Minutes = Annotated[float, Range(above=0, most=10_000_000)]
Json = Annotated[bool, tyro.conf.arg(help="Print one JSON object, and nothing else, to standard output.")]
Device = Annotated[str, tyro.conf.arg(help="The device: auto (a GPU if available), cpu, cuda, cuda:1, mps …")]


def checked(kind: type, values: Mapping[str, Any], spell: Callable[[str], str] = str) -> dict[str, Any]:
    """The values of a dataclass's fields, each of the type and in the range that the class declares.

    They may come from JSON: lists become tuples, strings become paths. ``spell`` names a field in errors.
    """
    hints = get_type_hints(kind, include_extras=True)
    fitting = {}
    for field in fields(kind):
        if field.name in values:
            fitting[field.name] = _fitting(values[field.name], hints[field.name], spell(field.name))
        elif field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"{spell(field.name)}: missing")
    return fitting


def check_flags(options: Any, passed: Collection[str] = ()) -> None:
    """Check that all numbers of a dataclass are in their ranges, and that no setting without effect is set.

    Nested dataclasses are checked too. Flags in ``passed`` count as set even if they have the default value.
    """
    hints = get_type_hints(type(options), include_extras=True)
    for field in fields(options):
        value, flag = getattr(options, field.name), _flag(field.name)
        if is_dataclass(value):
            check_flags(value, passed)
            continue
        _fitting(value, hints[field.name], flag)
        if value != field.default or flag in passed:
            needs = (part for part in getattr(hints[field.name], "__metadata__", ()) if isinstance(part, Needs))
            for why in filter(None, (need.refusal(options) for need in needs)):
                off = any(field.default is off for off in (None, False, ()))
                raise InputError(f"{flag}: does nothing {why}; leave it {'out' if off else f'at {field.default}'}")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _fitting(value: Any, hint: Any, name: str, allowed: Range | None = None) -> Any:
    kind, parts = get_origin(hint), get_args(hint)

    def refuse(what: object) -> InputError:
        return InputError(f"{name}: expected {what}, got {shorten(_shown(value))}")

    if kind is Annotated:
        return _fitting(value, parts[0], name, next((part for part in parts[1:] if isinstance(part, Range)), allowed))
    if NoneType in parts:
        inner = next(part for part in parts if part is not NoneType)
        return None if value is None else _fitting(value, inner, name, allowed)
    if kind is Literal:
        if value not in parts:
            raise refuse(f"one of {', '.join(map(str, parts))}")
    elif kind is tuple:
        if parts == (Path, ...) and (
            value is None or isinstance(value, str)
        ):  # a config.json from before there could be several
            value = [value] if value else []
        if not isinstance(value, list | tuple) or (... not in parts and len(value) != len(parts)):
            several = "a path, or several" if parts[0] is Path else "several numbers"
            raise refuse(several if ... in parts else f"{len(parts)} numbers")
        value = tuple(_fitting(part, parts[0], name, allowed) for part in value)
        if allowed and allowed.rising and list(value) != sorted(value):
            raise refuse("the smaller number first")
    elif kind is Mapping:
        if not isinstance(value, Mapping):
            raise refuse("settings by name")
    elif hint is Path:
        if not isinstance(value, str | Path):
            raise refuse("a path")
        return Path(value)
    elif hint in (int, float):
        if isinstance(value, bool) or not isinstance(value, int if hint is int else int | float):
            raise refuse("a whole number" if hint is int else "a number")
        if allowed and (expected := allowed.refusal(value)):
            raise refuse(expected)
    elif hint in (bool, str) and not isinstance(value, hint):
        raise refuse("true or false" if hint is bool else "text")
    return value


def _shown(value: Any) -> str:
    if isinstance(value, int) and abs(value) > 10**100:
        return "a number of more than 100 digits"
    return repr(value) if isinstance(value, str | list | dict) else str(value)


def _weights_path(text: str) -> Path:
    """A path such as ./sudoku becomes absolute: as ``sudoku`` it would be the name of shipped weights."""
    return Path(text).absolute() if text.startswith(("./", "../")) else Path(text)


WeightsPath = Annotated[
    Path,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="PATH",
        instance_from_str=lambda texts: _weights_path(texts[0]),
        is_instance=lambda value: isinstance(value, Path),
        str_from_instance=lambda path: [str(path)],
    ),
]


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Settings of all experiments. A task adds those of its network and its data."""

    task: ClassVar[str]

    name: Annotated[str, tyro.conf.Suppress]
    about: Annotated[str, tyro.conf.Suppress]

    steps: Steps = 8
    """Steps of message passing in training."""
    segment: Count | None = None
    """Back-propagate through this many steps, then update and continue from the detached state. Unset: all steps."""
    loss: Literal["every", "last"] = "every"
    """The steps that have a loss."""

    burn_in: Annotated[int, Range(least=0, most=100_000)] = 0
    """For networks that keep their answer when they run longer: --burn-in-share of the batches first run a random
    number of steps, up to this, without gradient. The steps with the loss follow."""
    burn_in_share: Annotated[Share, Needs("burn_in")] = 0.5
    """The share of batches that start with a --burn-in."""

    batch_size: Annotated[int, Range(least=1, most=1_000_000)] = 64
    """Graphs per update, over all processes together."""
    updates: Count = 100_000
    """Gradient updates at most."""
    minutes: Minutes | None = None
    """Wall-clock budget of training; the schedule ends with it. Unset: no limit."""

    optimizer: Literal["adam", "adamw"] = "adamw"
    lr: Annotated[float, Range(above=0)] = 1e-3
    """Learning rate after warm-up."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """The learning rate after warm-up: falling to 0 at the end, or constant."""
    warmup: Annotated[int, Range(least=0, most=10**12)] = 100
    """Updates over which the learning rate rises from 0."""
    weight_decay: Annotated[Weight, Needs("optimizer", "adamw")] = 0.0
    """adamw: share taken off each weight matrix per update, times the learning rate."""
    beta2: Annotated[float, Range(least=0, below=1)] = 0.999
    """Memory of Adam's running mean of squared gradients."""
    l2: Annotated[Weight, Needs("optimizer", "adam")] = 0.0
    """adam: the paper's L2 term, l2/2 times the sum of squares of all weight matrices, added to the loss."""
    clip: Annotated[float, Range(above=0)] | None = 1.0
    """Gradients are scaled down to this norm."""
    ema: Dropped | None = 0.999
    """Decay of the weight average, which is validated and saved. Unset: the weights themselves."""

    start_from: WeightsPath | None = None
    """Weights of the same network, or of a shallower one, to start from: a shipped name, a folder or
    hf://owner/name. Unset: random weights."""
    stages: Annotated[tuple[Mapping[str, Any], ...], tyro.conf.Suppress] = ()
    """The stages of training in order, each the settings in which it differs from the preset: see `stage_presets`."""
    seed: Seed = 0
    validate_every: Count = 1000
    """Updates between validations."""
    checkpoint_minutes: Annotated[float, Range(least=0, most=10_000_000)] = 3.0
    """Minutes between checkpoints."""
    threads: Annotated[int, Range(least=1, most=256)] = 1
    """Threads of each process."""


P = TypeVar("P", bound=Preset)


def stage_presets(preset: P) -> list[P]:
    """The settings of each stage. Unless a stage sets its seed, each has a seed one higher than the stage before it."""
    alone = replace(preset, stages=())
    known = {field.name for field in fields(preset)} - {"name", "about", "stages", "start_from"}
    every = []
    for number, stage in enumerate(preset.stages or ({},)):
        if unknown := sorted(set(stage) - known):
            raise InputError(f"stage {number + 1}: no setting of a stage is called {shorten(', '.join(unknown))}")
        values = {"name": preset.name, "about": preset.about, "seed": preset.seed + number, **stage}
        spell = partial("stage {}: {}".format, number + 1)
        every.append(replace(alone, **checked(type(preset), values, spell)))
    return every


def without_settings(preset: P, names: Collection[str]) -> P:
    """The preset with stages that do not change these settings."""
    stages = tuple({name: value for name, value in stage.items() if name not in names} for stage in preset.stages)
    return replace(preset, stages=stages)


RENAMED_SETTINGS = {
    "by_error": "sampling_by_error",
    "digit_units": "tied_digit_units",
    "easier": "extra_givens_start",
    "everyday": "varied_share",
    "level": "curriculum_level",
    "lines_alike": "tie_rows_and_columns",
    "lower_by": "extra_givens_decrement",
    "magnify": "distance_scale",
    "near_ties": "near_tie_share",
    "shift": "position_shift",
    "short_first": "curriculum_by_length",
    "thin": "few_givens_pool",
    "unanswerable": "unanswerable_share",
    "walk_loss": "path_loss",
    "wrong": "contradiction_share",
}
"""Old → new names of settings, for weights saved by earlier versions."""
RENAMED_NETWORKS = {
    "beliefs": "estimates",
    "choosing": "attention",
    "seeing": "image",
    "turning": "angles",
    "walking": "ranks",
}
"""Old → new values of the setting ``network``."""
REMOVED_SETTINGS = {"copies", "facts_loss", "lives", "sparse", "start_noise"}
"""Settings of earlier versions that no longer exist; they affected training only."""


def with_new_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in a ``config.json`` of an earlier version, under the names of today."""
    renamed = {
        RENAMED_SETTINGS.get(name, name): value for name, value in settings.items() if name not in REMOVED_SETTINGS
    }
    if isinstance(network := renamed.get("network"), str):
        renamed["network"] = RENAMED_NETWORKS.get(network, network)
    if isinstance(stages := renamed.get("stages"), list):
        renamed["stages"] = [with_new_names(stage) if isinstance(stage, Mapping) else stage for stage in stages]
    return renamed


PAPERS_OPTIMIZER: dict[str, Any] = {
    "optimizer": "adam", "lr": 2e-4, "schedule": "constant", "warmup": 0, "clip": None, "ema": None
}  # fmt: skip
"""The same in all experiments of the paper's appendix."""


@dataclass(frozen=True, kw_only=True)
class CurriculumPreset(Preset):
    """Settings of experiments with a curriculum by length: `rrn.training.curriculum`."""

    segment: Annotated[Literal[None], tyro.conf.Suppress] = None
    """Every question is run as a whole."""
    curriculum: bool = True
    """Begin with the shortest questions; add longer ones when the longest are answered correctly."""
    pass_mark: Annotated[Share, Needs("curriculum")] = 0.93
    """The running accuracy on the longest questions at which the curriculum adds longer ones."""


@dataclass(frozen=True, kw_only=True)
class SlotPreset(Preset):
    """Settings of experiments in which a problem keeps its slot in the batch: `rrn.training.slots`."""

    burn_in: Annotated[int, Range(least=0, most=100_000), Needs("slot_steps", False)] = 0
    """As in other tasks, for new batches; with --slot-steps use --stay."""
    slot_steps: Annotated[tuple[int, int], Range(least=1, most=100_000)] | None = None
    """A problem keeps its slot in the batch, and its state, until it is solved or has had this many steps: the first
    number at the start of training, the second at its end. Unset: a new batch every --steps."""
    stay: Annotated[Share, Needs("slot_steps")] = 0.0
    """The share of solved problems that stay in their slot for another segment, for networks that keep their answer:
    with 0 the network never sees states after a solution, and may lose the answer when it runs longer."""
    noise: Annotated[Weight, Needs("slot_steps")] = 0.0
    """Standard deviation of noise that some segments start with, so that the network learns to recover."""
    noise_share: Annotated[Share, Needs("noise")] = 0.1
    """The share of segments that start with --noise."""
