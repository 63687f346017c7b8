"""rrn train PRESET: train, or resume a training. Every setting of the preset is a flag."""

import dataclasses
import hashlib
import os
import re
import sys
import time
from pathlib import Path
from typing import Annotated, Generic, Literal, TypeVar

import tyro

from rrn import tasks
from rrn.cli import parse, print_json
from rrn.training.pace import PATIENCE, Pace, Ticker
from rrn.training.presets import BUDGET_FIELDS, Preset, Range, without_settings

HELP = """usage: rrn train PRESET [--folder DIR] [--stage K] [--accelerator KIND] [--devices N] [settings …]

Presets: {names}.
A preset with stages trains all of them in order; a setting given as a flag applies to every stage.
'rrn train PRESET --help' lists every setting with its default. A stopped run (Ctrl+C, SIGTERM) exits with 128 plus
the signal's number; the same command resumes it."""
LONGEST_NAME = 80

P = TypeVar("P", bound=Preset)


@dataclasses.dataclass(frozen=True)
class Options(Generic[P]):
    preset: tyro.conf.OmitArgPrefixes[P]
    folder: Path | None = None
    """The run folder. A run in it with the same settings is resumed. Default: runs/ and the preset's name, followed by
    the settings that differ from the preset."""
    stage: Annotated[int, Range(least=1, most=100)] | None = None
    """Train this stage only, from the best weights of the stage before it in the run folder. Unset: all stages."""
    accelerator: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """The kind of device. auto: a GPU if available."""
    devices: Annotated[int, Range(least=1, most=1024)] = 1
    """Number of GPUs, or of processes on the CPU. For several machines see docs/scaling.md."""
    precision: Literal["32", "bf16"] = "32"
    """bf16: matrix products in bfloat16, everything else in 32 bits."""
    tensorboard: bool = False
    """Also write TensorBoard files to the run folder."""
    quiet: bool = False
    """Print nothing."""
    json: bool = False
    """At the end, print one JSON object to standard output."""


def main(arguments: list[str]) -> int:
    names = ", ".join(tasks.presets())
    if not arguments or arguments[0] in ("-h", "--help"):
        print(HELP.format(names=names))
        return 0 if arguments else 2
    preset = tasks.find_preset(arguments[0])
    options = parse(Options[type(preset)], arguments[1:], f"rrn train {preset.name}", preset.about, Options(preset))  # type: ignore[misc, arg-type]
    trained = without_settings(options.preset, _passed(arguments[1:]))
    folder = options.folder or default_folder(trained)
    quiet = options.quiet or not _leads()
    if not quiet:
        print(
            f"training {preset.name} in {folder}; Ctrl+C stops, the same command resumes", file=sys.stderr, flush=True
        )
    with _loading(quiet):
        from rrn._compat import keep_freed_memory
        from rrn.training.trainer import train_stages

    keep_freed_memory()
    outcome = train_stages(
        trained,
        tasks.make_experiment,
        folder,
        stage=options.stage,
        accelerator=options.accelerator,
        devices=options.devices,
        precision=options.precision,
        quiet=options.quiet,
        tensorboard=options.tensorboard,
    )
    if not options.quiet and outcome.is_leader and outcome.best:
        best = ", ".join(f"{name} {value:.4g}" for name, value in outcome.best.items())
        state = "finished" if outcome.finished else "stopped"
        where = f" of stage {outcome.stage} of {len(trained.stages)}" if trained.stages else ""
        after = f"after {outcome.minutes:.1f} minutes"
        print(f"{state} at update {outcome.update}{where} {after}; best: {best}", file=sys.stderr)
        print(f"evaluate with: rrn evaluate {preset.name} --weights {outcome.best_folder}", file=sys.stderr)
    if options.json and outcome.is_leader:
        fields = ("update", "minutes", "finished", "best", "stage")
        print_json({"folder": str(outcome.folder), **{name: getattr(outcome, name) for name in fields}})
    return 128 + outcome.signal if outcome.signal else 0


def _leads() -> bool:
    """Whether this is the first of several processes, or the only one."""
    return all(os.environ.get(name, "0") == "0" for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID"))


def _loading(quiet: bool) -> Ticker:
    """A thread that says, at a `Pace`, for how long PyTorch has been loading."""
    pace, began = Pace(), time.monotonic()
    pace.printed()

    def tick() -> None:
        if not quiet and pace.is_due(PATIENCE):
            pace.printed()
            print(f"{time.monotonic() - began:7.0f} s    loading PyTorch", file=sys.stderr, flush=True)

    return Ticker(tick)


def _passed(arguments: list[str]) -> set[str]:
    """The names of the settings that are set by flags."""
    flags = [argument.partition("=")[0] for argument in arguments if argument.startswith("--")]
    return {flag.removeprefix("--").removeprefix(no).replace("-", "_") for flag in flags for no in ("no-", "")}


def default_folder(preset: Preset) -> Path:
    """A run folder for each seed and settings: runs/ages, runs/ages-seed1, runs/ages-hidden64-seed1."""
    default = without_settings(tasks.find_preset(preset.name), BUDGET_FIELDS)
    preset = without_settings(preset, BUDGET_FIELDS)
    names = [field.name for field in dataclasses.fields(preset) if field.name not in BUDGET_FIELDS | {"stages"}]
    changed = {name: getattr(preset, name) for name in names if getattr(preset, name) != getattr(default, name)}
    if preset.stages != without_settings(default, changed).stages:
        changed["stages"] = preset.stages  # a flag equal to the preset's value, but not to that of a stage
    listed = "".join(f"-{name.replace('_', '-')}{value}" for name, value in changed.items())
    if len(listed) > LONGEST_NAME or not re.fullmatch(r"[\w.-]*", listed):
        listed = f"-{hashlib.sha256(listed.encode()).hexdigest()[:12]}"
    return Path("runs") / f"{preset.name}{listed}"
