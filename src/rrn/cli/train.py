"""rrn train PRESET: train, or go on training. Every setting of the preset is a flag."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import tyro

from rrn import tasks
from rrn.cli.options import parse
from rrn.errors import InputError
from rrn.presets import Preset

HELP = "usage: rrn train PRESET [--folder DIR] [--devices N] [settings …]\n\nPresets: {names}.\n"

P = TypeVar("P", bound=Preset)


@dataclass(frozen=True)
class Options(Generic[P]):
    preset: tyro.conf.OmitArgPrefixes[P]
    folder: Path
    """The run folder. One that holds a run with the same settings is gone on with."""
    devices: int = 1
    """Processes on this machine; several machines: start under torchrun."""
    tensorboard: bool = False
    """Also write TensorBoard files to the run folder."""
    quiet: bool = False
    """Print nothing."""


def main(arguments: list[str]) -> int:
    names = ", ".join(tasks.presets())
    if not arguments or arguments[0] in ("-h", "--help"):
        print(HELP.format(names=names) + "'rrn train PRESET --help' lists every setting with its default.")
        return 0 if arguments else 2
    preset = tasks.find_preset(arguments[0])
    start = Options(preset, folder=Path("runs") / preset.name)
    options = parse(Options[type(preset)], arguments[1:], f"rrn train {preset.name}", preset.about, start)  # type: ignore[misc, arg-type]
    if options.devices < 1:
        raise InputError(f"--devices: expected at least 1, got {options.devices}")
    _check(options.preset)
    from rrn.training.trainer import Diverged, train

    try:
        outcome = train(
            tasks.make_experiment(options.preset),
            options.folder,
            devices=options.devices,
            quiet=options.quiet,
            tensorboard=options.tensorboard,
        )
    except Diverged as error:
        print(f"rrn: {error}", file=sys.stderr)
        return 1
    if not options.quiet and outcome.best:
        best = ", ".join(f"{name} {value:.4g}" for name, value in outcome.best.items())
        state = "finished" if outcome.finished else "stopped"
        print(f"{state} at update {outcome.update} after {outcome.minutes:.1f} minutes; best: {best}", file=sys.stderr)
        print(f"evaluate with: rrn evaluate {preset.name} --weights {outcome.folder / 'best'}", file=sys.stderr)
    return 0


def _check(preset: Preset) -> None:
    for name in ("steps", "batch_size", "updates", "validate_every", "threads"):
        if getattr(preset, name) < 1:
            raise InputError(f"--{name.replace('_', '-')}: expected at least 1, got {getattr(preset, name)}")
    if preset.segment is not None and preset.segment < 1:
        raise InputError(f"--segment: expected at least 1, got {preset.segment}")
    if preset.minutes is not None and preset.minutes <= 0:
        raise InputError(f"--minutes: expected more than 0, got {preset.minutes}")
    if preset.lr <= 0:
        raise InputError(f"--lr: expected more than 0, got {preset.lr}")
    if preset.ema is not None and not 0 <= preset.ema < 1:
        raise InputError(f"--ema: expected 0 or more and less than 1, got {preset.ema}")
