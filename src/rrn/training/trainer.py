"""``rrn train``: the training loop on an experiment, in a run folder."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

from rrn.errors import InputError, needs_extra
from rrn.io.files import replacing_folder, write_atomically
from rrn.io.pretrained import find_weights, read_weights, save_pretrained, settings
from rrn.training.display import Display
from rrn.training.experiment import Experiment, ExperimentObjective, check_divisible
from rrn.training.loop import Average, Callback, Loop, learning_rate
from rrn.training.presets import BUDGET_FIELDS, check_flags
from rrn.training.processes import Accelerator, Precision, Processes, ProcessLost

METRICS = "metrics.jsonl"


@dataclasses.dataclass(frozen=True)
class Outcome:
    folder: Path
    update: int
    minutes: float
    best: dict[str, float]
    finished: bool
    signal: int = 0
    """The signal that stopped the run; 0 in processes other than the leading one."""
    is_leader: bool = True
    """Whether this is the leading process, the only one that prints."""


def train(
    experiment: Experiment[Any],
    folder: str | Path,
    *,
    accelerator: Accelerator = "cpu",
    devices: int = 1,
    precision: Precision = "32",
    quiet: bool = False,
    tensorboard: bool = False,
) -> Outcome:
    """Train, or resume training, in a run folder. No other process may use the folder meanwhile::

        config.json       the preset
        metrics.jsonl     one line per validation
        checkpoint-*      the newest checkpoints: weights, their average, optimizer, random state, curriculum
        best/             the weights with the best validation, as `from_pretrained` reads them

    A run in a folder with a checkpoint resumes from it. With ``devices`` > 1, or under torchrun or srun, every batch
    is divided among that many processes.
    """
    check_flags(experiment.preset)
    check_divisible(experiment.preset, devices)
    processes = Processes(accelerator, devices, precision)
    check_divisible(experiment.preset, processes.world)
    with _global_state(experiment.preset.threads):
        try:
            loop = make_loop(experiment, Path(folder), processes, quiet=quiet, tensorboard=tensorboard).fit()
        except ProcessLost:
            processes.abandon()
            raise
    signal = loop.stop_signal if processes.is_leader and not loop.finished else 0
    minutes = loop.seconds / 60
    return Outcome(Path(folder), loop.update, minutes, loop.best, loop.finished, signal, processes.is_leader)


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
    experiment: Experiment[Any], folder: Path, processes: Processes, *, quiet: bool = True, tensorboard: bool = False
) -> Loop:
    """The training loop of an experiment, with a new network. It seeds torch's global generator."""
    preset = experiment.preset
    torch.manual_seed(preset.seed)
    network = experiment.network()
    if preset.start_from is not None:
        experiment.start_from(network, read_weights(find_weights(str(preset.start_from))))
        if any(tied.broken() for tied in experiment.ties(network)):
            raise InputError(
                f"--start-from {preset.start_from}: trained without weight tying, which would average its weights; "
                f"disable weight tying ({experiment.without_ties})"
            )
    average = Average(network, preset.ema)
    average.network.to(processes.device)
    forward, optimizer = processes.setup(network, experiment.optimizer(network))
    display = [] if quiet else [Display(preset.name, preset.batch_size, True, processes.description)]
    return Loop(
        network=network,
        objective=ExperimentObjective(experiment, forward, processes),
        optimizer=optimizer,
        rate=partial(learning_rate, preset.lr, schedule=preset.schedule, warmup=preset.warmup),
        updates=preset.updates,
        minutes=preset.minutes,
        clip=preset.clip,
        average=average,
        validate_every=preset.validate_every,
        folder=folder,
        checkpoint_minutes=preset.checkpoint_minutes,
        settings=settings(preset),
        budget=frozenset(BUDGET_FIELDS),
        remedy=f"The last good checkpoint is in {folder}. Use a lower --lr (now {preset.lr:g}), a longer --warmup "
        f"(now {preset.warmup}) or a smaller --clip (now {preset.clip}) in a new --folder.",
        stop_on_signal=True,
        processes=processes,
        callbacks=[RunFolder(experiment, folder, tensorboard and processes.is_leader), *display],
    )


class RunFolder(Callback):
    """Writes metrics.jsonl, best/ and TensorBoard files."""

    def __init__(self, experiment: Experiment[Any], folder: Path, tensorboard: bool) -> None:
        self.preset, self.named_preset, self.folder = experiment.preset, experiment.named_preset, folder
        self.board: Any = None
        if tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise needs_extra("--tensorboard", "train") from error
            self.board = SummaryWriter(str(folder / "tensorboard"))

    def on_start(self, loop: Loop, resumed: bool) -> None:
        """Remove damaged lines, and those of updates after the checkpoint: they are written again."""
        path = self.folder / METRICS
        if path.exists():
            known = loop.update - 1 if loop.validation_pending else loop.update
            lines = path.read_text(errors="replace").splitlines(keepends=True)
            write_atomically(path, "".join(line for line in lines if 0 < _update_of(line) <= known))

    def on_validation(self, loop: Loop, figures: dict[str, float], is_best: bool) -> None:
        line = {"update": loop.update, "minutes": round(loop.seconds / 60, 3), "loss": loop.last_loss, **figures}
        line |= {f"train_{name}": value for name, value in loop.measures.items()}
        line["validation_seconds"] = round(loop.validation_seconds, 2)
        with open(self.folder / METRICS, "a") as file:
            file.write(json.dumps(line) + "\n")
        if self.board:
            for name, value in line.items():
                self.board.add_scalar(name, value, loop.update)
        if is_best:
            with replacing_folder(self.folder / "best") as new:
                save_pretrained(loop.validated, new, self.preset, loop.best, self.named_preset)

    def on_end(self, loop: Loop) -> None:
        if self.board:
            self.board.close()


def _update_of(line: str) -> int:
    """The update of a line of metrics; 0 where it is damaged."""
    try:
        return int(json.loads(line)["update"]) if line.endswith("\n") else 0
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0
