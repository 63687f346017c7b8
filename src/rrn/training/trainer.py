"""``rrn train``: the training loop on an experiment, in a run folder."""

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

import torch

from rrn.errors import InputError, needs_extra, plural
from rrn.io.files import locked, replacing_folder, write_atomically
from rrn.io.machine import machine
from rrn.io.pretrained import CURVES, find_weights, read_weights, save_pretrained, settings, write_description
from rrn.training.checkpoints import list_checkpoints
from rrn.training.display import Display
from rrn.training.experiment import Experiment, ExperimentObjective, check_divisible
from rrn.training.loop import Average, Callback, Loop
from rrn.training.presets import BUDGET_FIELDS, Preset, check_flags, stage_presets
from rrn.training.processes import Accelerator, Precision, Processes, ProcessLost


@dataclasses.dataclass(frozen=True)
class Outcome:
    folder: Path
    update: int
    minutes: float
    """Of all stages."""
    best: dict[str, float]
    finished: bool
    signal: int = 0
    """The signal that stopped the run; 0 in processes other than the leading one."""
    is_leader: bool = True
    """Whether this is the leading process, the only one that prints."""
    stage: int = 1
    best_folder: Path = Path("best")
    """The weights with the best validation of the stage."""


@dataclasses.dataclass(frozen=True)
class Stage:
    """Where a stage of a run writes; a run of one stage has no folders of stages."""

    run: Path
    whole: Preset
    """The preset with all its stages."""
    number: int = 1

    @property
    def is_last(self) -> bool:
        return self.number == max(len(self.whole.stages), 1)

    @property
    def folder(self) -> Path:
        return self.run / f"stage-{self.number}" if len(self.whole.stages) > 1 else self.run

    @property
    def best(self) -> Path:
        return (self.run if self.is_last else self.folder) / "best"

    @property
    def before(self) -> "list[Stage]":
        return [dataclasses.replace(self, number=number) for number in range(1, self.number)]

    @property
    def title(self) -> str:
        return self.whole.name + (f", stage {self.number} of {len(self.whole.stages)}" if self.whole.stages else "")


def train_stages(
    preset: Preset,
    make: Callable[[Preset, Preset], Experiment[Any]],
    folder: str | Path,
    *,
    stage: int | None = None,
    accelerator: Accelerator = "cpu",
    devices: int = 1,
    precision: Precision = "32",
    quiet: bool = False,
    tensorboard: bool = False,
) -> Outcome:
    """Train all stages of a preset in order, or one of them, in a run folder that no other process uses meanwhile::

        config.json       the preset
        metrics.jsonl     one line per validation
        checkpoint-*      the newest checkpoints: weights, their average, optimizer, random state, curriculum
        best/             the weights with the best validation, as `from_pretrained` reads them

    Each stage has such a folder, ``stage-1``, ``stage-2``, …, in the run folder, and starts with the best weights of
    the stage before it. It validates them first, so a stage never ends with worse ones. Those of the last stage are in
    ``best/`` of the run folder. A run resumes in the last stage that has a checkpoint. ``make`` builds the experiment
    of a stage and the preset. With ``devices`` > 1, or under torchrun or srun, every batch is divided among that many
    processes.
    """
    presets = stage_presets(preset)
    check_flags(preset)
    for each in presets:
        check_divisible(each, devices)
    if stage is not None and stage > len(presets):
        raise InputError(f"--stage {stage}: {preset.name} has {plural(len(presets), 'stage')}")
    processes = Processes(accelerator, devices, precision)
    for each in presets:
        check_divisible(each, processes.world)
    stages = [Stage(Path(folder), preset, number) for number in range(1, len(presets) + 1)]
    with ExitStack() as stack:
        if len(stages) > 1:
            processes.run_on_leader(lambda: stack.enter_context(locked(Path(folder))))
        first = processes.run_on_leader(lambda: _first_stage(stages)) if stage is None else stage
        for current in stages[first - 1 : stage]:
            settings = presets[current.number - 1]
            if current.before:
                start = current.before[-1].best
                if not start.is_dir():
                    raise InputError(
                        f"--stage {current.number}: {start} does not exist; train stage {len(current.before)} first"
                    )
                settings = dataclasses.replace(settings, start_from=start)
            with _global_state(settings.threads):
                experiment = make(settings, preset)
                try:
                    loop = make_loop(
                        experiment, current.folder, processes, quiet=quiet, tensorboard=tensorboard, stage=current
                    ).fit()
                except ProcessLost:
                    processes.abandon()
                    raise
            if loop.stop_signal or not loop.finished:
                break
    processes.end()
    finished = loop.finished and (current.is_last or stage is not None)
    signal = loop.stop_signal if processes.is_leader and not finished else 0
    minutes = loop.seconds / 60 + _spent_before(current, "minutes")
    leads, number = processes.is_leader, current.number
    return Outcome(Path(folder), loop.update, minutes, loop.best, finished, signal, leads, number, current.best)


def _first_stage(stages: Sequence[Stage]) -> int:
    """The stage to resume in: the last one with a checkpoint."""
    return max((stage.number for stage in stages if list_checkpoints(stage.folder)), default=1)


@contextmanager
def _global_state(threads: int) -> Iterator[None]:
    """Torch's threads and random generators; as before after the block."""
    before = torch.get_num_threads()
    with torch.random.fork_rng(devices=list(range(torch.cuda.device_count()))):
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def make_loop(
    experiment: Experiment[Any],
    folder: Path,
    processes: Processes,
    *,
    quiet: bool = True,
    tensorboard: bool = False,
    stage: Stage | None = None,
) -> Loop:
    """The training loop of an experiment, with a new network. It seeds torch's global generator."""
    preset = experiment.preset
    stage = stage or Stage(folder, preset)
    torch.manual_seed(preset.seed)
    network = experiment.network()
    if preset.start_from is not None and not list_checkpoints(folder):  # a checkpoint has all weights
        experiment.start_from(network, read_weights(find_weights(str(preset.start_from))))
        if any(tied.broken() for tied in experiment.ties(network)):
            raise InputError(
                f"--start-from {preset.start_from}: trained without weight tying, which would average its weights; "
                f"disable weight tying ({experiment.without_ties})"
            )
    average = Average(network, preset.ema)
    average.network.to(processes.device)
    forward, optimizer = processes.setup(network, experiment.optimizer(network))
    about = ": ".join(filter(None, [stage.title if stage.whole.stages else "", processes.description]))
    about = "\n".join(filter(None, [about, experiment.preparation]))
    display = [] if quiet else [Display(stage.title, preset.batch_size, True, about)]
    if display and processes.is_leader:
        experiment.report = display[0].report
    return Loop(
        network=network,
        objective=ExperimentObjective(experiment, forward, processes),
        optimizer=optimizer,
        rate=preset.lr,
        schedule=preset.schedule,
        warmup=preset.warmup,
        updates=preset.updates,
        minutes=preset.minutes,
        clip=preset.clip,
        average=average,
        validate_every=preset.validate_every,
        validate_first=bool(stage.before),
        folder=folder,
        checkpoint_minutes=preset.checkpoint_minutes,
        settings=settings(preset),
        budget=frozenset(BUDGET_FIELDS),
        remedy=f"The last good checkpoint is in {folder}. Use a lower --lr (now {preset.lr:g}), a longer --warmup "
        f"(now {preset.warmup}) or a smaller --clip (now {preset.clip}) in a new --folder.",
        stop_on_signal=True,
        processes=processes,
        callbacks=[RunFolder(experiment, stage, tensorboard and processes.is_leader), *display],
    )


class RunFolder(Callback):
    """Writes metrics.jsonl, best/ and TensorBoard files."""

    def __init__(self, experiment: Experiment[Any], stage: Stage, tensorboard: bool) -> None:
        self.stage, self.named_preset = stage, experiment.named_preset
        self.preset = experiment.whole if stage.is_last else experiment.preset
        self.metrics = stage.folder / CURVES
        self.board: Any = None
        if tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise needs_extra("--tensorboard", "train") from error
            self.board = SummaryWriter(str(stage.folder / "tensorboard"))

    def on_start(self, loop: Loop, resumed: bool) -> None:
        """Remove damaged lines, and those of updates after the checkpoint: they are written again."""
        if self.metrics.exists():
            known = loop.update - 1 if loop.validation_pending else loop.update
            lines = self.metrics.read_text(errors="replace").splitlines(keepends=True)
            write_atomically(self.metrics, "".join(line for line in lines if 0 <= _update_of(line) <= known))

    def on_validation(self, loop: Loop, figures: dict[str, float], is_best: bool) -> None:
        line = {"update": loop.update, "minutes": round(loop.seconds / 60, 3), "loss": loop.last_loss, **figures}
        if loop.update == 0:
            del line["loss"]
        line |= {f"train_{name}": value for name, value in loop.measures.items()}
        line["validation_seconds"] = round(loop.validation_seconds, 2)
        with open(self.metrics, "a") as file:
            file.write(json.dumps(line) + "\n")
        if self.stage.folder != self.stage.run:
            write_atomically(self.stage.run / CURVES, "".join(self._curve()))
        if self.board:
            for name, value in line.items():
                self.board.add_scalar(name, value, loop.update)
        if is_best:
            with replacing_folder(self.stage.best) as new:
                save_pretrained(loop.validated, new, self.preset, self._trained(loop), self.named_preset)

    def on_end(self, loop: Loop) -> None:
        """Complete best/ when training is finished: its card has the minutes of all stages, metrics.jsonl their
        validations."""
        if self.board:
            self.board.close()
        if loop.finished and self.stage.best.is_dir():
            spent = {"minutes_of_training": round(_spent_before(self.stage, "minutes") + loop.seconds / 60, 2)}
            trained = self._trained(loop) | spent
            write_atomically(self.stage.best / CURVES, "".join(self._curve()))
            write_description(loop.validated, self.stage.best, self.preset, trained, self.named_preset)

    def _trained(self, loop: Loop) -> dict[str, Any]:
        """The figures of the best validation, for config.json; minutes are of all stages until then."""
        minutes = round(_spent_before(self.stage, "minutes") + loop.best["minutes"], 2)
        stage = {"stage": self.stage.number} if self.stage.whole.stages else {}
        return {**loop.best, "minutes": minutes, **stage, "machine": machine()}

    def _curve(self) -> Iterator[str]:
        """The lines of metrics.jsonl of all stages; updates and minutes count from the beginning of the first."""
        for stage in [*self.stage.before, self.stage]:
            before = {key: _spent_before(stage, key) for key in ("update", "minutes")}
            path = stage.folder / CURVES
            for text in path.read_text().splitlines() if path.exists() else ():
                line = json.loads(text)
                line |= {key: round(line[key] + value, 3) for key, value in before.items()}
                yield json.dumps({"stage": stage.number, **line} if stage.whole.stages else line) + "\n"


def _spent_before(stage: Stage, key: Literal["update", "minutes"]) -> float:
    """The updates or minutes of the stages before one, from their last validations."""
    spent = 0
    for earlier in stage.before:
        path = earlier.folder / CURVES
        lines = path.read_text().splitlines() if path.exists() else []
        spent += json.loads(lines[-1])[key] if lines else 0
    return spent


def _update_of(line: str) -> int:
    """The update of a line of metrics; -1 where it is damaged."""
    try:
        return int(json.loads(line)["update"]) if line.endswith("\n") else -1
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return -1
