"""The training loop: knows experiments, presets and run folders, and no task."""

import dataclasses
import json
import math
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rrn.errors import Failure, InputError, NotFiniteError, blaming, needs_extra
from rrn.io.files import locked, replacing_folder, write_atomically, write_json
from rrn.io.pretrained import CONFIG, find_weights, read_weights, save_pretrained, settings
from rrn.nn.updates import State
from rrn.training.checkpoints import find_checkpoint, read_checkpoint, save_checkpoint
from rrn.training.display import Display
from rrn.training.experiment import Carry, Experiment, Shard, seeded, whole_batches
from rrn.training.optimizing import Average, learning_rate, load_optimizer, optimizer_tensors
from rrn.training.presets import BUDGET_FIELDS, check_flags
from rrn.training.processes import Accelerator, Lost, Precision, Processes

METRICS = "metrics.jsonl"


class Diverged(Failure):
    """The loss is no longer a number. The last good checkpoint is kept."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    folder: Path
    update: int
    minutes: float
    best: dict[str, float]
    finished: bool
    signal: int = 0
    """By which it was stopped; 0 in processes other than the leading one."""
    leads: bool = True
    """Whether this process speaks for all."""


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
    """Train, or go on training, in a run folder, which no other process may use meanwhile::

        config.json       the preset
        metrics.jsonl     one line per validation
        checkpoint-*      the newest checkpoints: weights, their average, optimizer, random state, position
        best/             the weights that validated best, as `from_pretrained` reads them

    A run in a folder that already has a checkpoint continues from it. ``devices`` > 1, or a start under torchrun or
    srun, spreads every batch over that many processes.
    """
    check_flags(experiment.preset)
    whole_batches(experiment.preset, devices)
    folder, processes = Path(folder), Processes(accelerator, devices, precision)
    with ExitStack() as held:
        processes.led(lambda: held.enter_context(locked(folder)))
        try:
            return _Run(experiment, folder, processes, quiet, tensorboard).go()
        except Lost:
            processes.abandon()
            raise


class _Run:
    def __init__(
        self, experiment: Experiment[Any], folder: Path, processes: Processes, quiet: bool, tensorboard: bool
    ) -> None:
        self.experiment, self.preset, self.folder, self.processes = experiment, experiment.preset, folder, processes
        self.shard = Shard(processes.rank, processes.world)
        self.leads = processes.leads
        whole_batches(self.preset, self.shard.world)
        torch.set_num_threads(self.preset.threads)
        torch.manual_seed(self.preset.seed)
        self.network: nn.Module = experiment.network()
        if self.preset.start_from is not None:
            experiment.start_from(self.network, read_weights(find_weights(str(self.preset.start_from))))
            if any(tied.broken() for tied in experiment.ties(self.network)):
                raise InputError(
                    f"--start-from {self.preset.start_from}: trained without ties, which would average its weights; "
                    f"train on without them too ({experiment.without_ties})"
                )
        self.average = Average(self.network, self.preset.ema)
        self.average.network.to(processes.device)
        self.called, self.optimizer = processes.setup(self.network, experiment.optimizer(self.network))
        self.carry: Carry | None = None
        self.due: dict[str, Any] = {}
        """Loss and measures of an update that is to be validated next; empty: none is."""
        self.update = 0
        self.seconds = 0.0
        self.best: dict[str, float] = {}
        self.stopping = _Stopping()
        self.display = Display(self.preset.name, enabled=self.leads and not quiet)
        self.board = self._board() if tensorboard and self.leads else None

    def go(self) -> Outcome:
        resumed = self.resume()
        if self.leads:
            write_json(self.folder / CONFIG, settings(self.preset))
            self._cut_metrics()
            self.display.say(self.processes.about)
            if resumed:
                self.display.say(f"going on from update {self.update} in {self.folder}")
        self.processes.barrier()
        before, started = self.seconds, time.monotonic()
        saved, first_update = self.seconds, self.update
        stopped = 0
        with self.stopping, self.display:
            while not stopped and (self.due or not self._done()):
                if self.due:
                    self._validate()
                    stopped = self._agree()
                else:
                    loss, measures = self._one_update()
                    self.seconds = before + time.monotonic() - started
                    stopped = self._agree()
                    if self.update % self.preset.validate_every == 0 or self._done():
                        self.due = {"loss": loss, "measures": measures}
                    rate = (self.update - first_update) / max(self.seconds - before, 1e-9)
                    self.display.update(
                        self._progress(), self.update, loss, rate * self.preset.batch_size, self._seconds_left(rate)
                    )
                if not self.due and self.seconds - saved > 60 * self.preset.checkpoint_minutes:
                    self._save()
                    saved = self.seconds
            self._save()
        self.processes.barrier()
        self.processes.end()
        finished = self._done() and not self.due
        if not finished:
            self.display.say(f"stopped at update {self.update}; the same command goes on from here")
        if self.board:
            self.board.close()
        signal_number = stopped if self.leads and not finished else 0
        return Outcome(self.folder, self.update, self.seconds / 60, self.best, finished, signal_number, self.leads)

    def _one_update(self) -> tuple[float, dict[str, float]]:
        rng = seeded(self.preset.seed, 1, self.update)
        self.experiment.progress = self._progress()
        carry = self.carry or self._placed(self.experiment.begin(rng, self.shard))
        self.network.train()
        steps = self.experiment.steps_of(carry)
        try:
            outputs, state = self.called(carry.batch, steps=steps, state=carry.state)
        except NotFiniteError as error:
            if not all(bool(values.isfinite().all()) for values in carry.batch.values()):
                raise
            raise self._diverged("what the network computes is not finite") from error
        loss = self.experiment.loss(outputs, carry.batch)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise self._diverged(f"the loss is {value}")
        self.optimizer.zero_grad(set_to_none=True)
        self.processes.backward(loss)
        if self.preset.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.preset.clip)
        rate = learning_rate(self.preset, self.update, self._progress())
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.average.follow(self.network, self.update)
        with torch.no_grad():
            measures = self.processes.mean(self.experiment.measure(outputs, carry.batch))
            carry = Carry(carry.batch, state.detach(), carry.done + steps)
            self.carry = self.experiment.proceed(carry, outputs, rng, self.shard)
        self.experiment.observe(measures)
        self.update += 1
        return value, measures

    def _validate(self) -> None:
        """By the leading process alone. A signal ends it at once; it is then still due when the run goes on."""
        if not self.leads:
            self.due = {}
        else:
            started = time.monotonic()
            try:
                with self.stopping.at_once(), torch.no_grad():
                    figures = self.experiment.validate(self.average.network.eval())
            except _StopNow:
                pass
            else:
                self._record(figures, time.monotonic() - started)
                self.due = {}
        self.processes.barrier()

    def _record(self, figures: dict[str, float], seconds: float) -> None:
        minutes, loss = self.seconds / 60, self.due["loss"]
        line = {"update": self.update, "minutes": round(minutes, 3), "loss": loss, **figures}
        line |= {f"train_{name}": value for name, value in self.due["measures"].items()}
        line["validation_seconds"] = round(seconds, 2)
        with open(self.folder / METRICS, "a") as file:
            file.write(json.dumps(line) + "\n")
        if self.board:
            for name, value in line.items():
                self.board.add_scalar(name, value, self.update)
        self.display.validated(self.update, minutes, {"loss": loss, **figures})
        if figures["score"] >= self.best.get("score", -math.inf):
            self.best = {**figures, "update": self.update, "minutes": round(minutes, 2)}
            with replacing_folder(self.folder / "best") as new:
                save_pretrained(self.average.network, new, self.preset, self.best)

    def _progress(self) -> float:
        """The share of the budget that is spent: of updates or of time, whichever is further."""
        spent = self.update / self.preset.updates
        return spent if self.preset.minutes is None else max(spent, self.seconds / 60 / self.preset.minutes)

    def _done(self) -> bool:
        return self._progress() >= 1

    def _seconds_left(self, updates_per_second: float) -> float:
        left = (self.preset.updates - self.update) / max(updates_per_second, 1e-9)
        return left if self.preset.minutes is None else min(left, 60 * self.preset.minutes - self.seconds)

    def _diverged(self, what: str) -> Diverged:
        return Diverged(
            f"{what} at update {self.update}. The last good checkpoint is kept in {self.folder}. "
            f"Try a lower --lr (now {self.preset.lr:g}), a longer --warmup (now {self.preset.warmup}) "
            f"or a smaller --clip (now {self.preset.clip}) in a new --folder."
        )

    def _save(self) -> None:
        if not all(bool(parameter.isfinite().all()) for parameter in self.network.parameters()):
            raise self._diverged("a weight is not finite")
        carried = self._carried()
        if not self.leads:
            return
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        tensors |= {f"average.{name}": value for name, value in self.average.network.state_dict().items()}
        tensors |= optimizer_tensors(self.optimizer)
        tensors["random"] = torch.get_rng_state()
        if self.processes.device.type == "cuda":
            tensors["random_cuda"] = torch.cuda.get_rng_state(self.processes.device)
        facts = {
            "update": self.update,
            "seconds": self.seconds,
            "best": self.best,
            "position": self.experiment.position(),
            "preset": settings(self.preset),
        }
        if self.carry:
            facts["done"] = self.carry.done
        if self.due:
            facts["due"] = self.due
        save_checkpoint(self.folder, self.update, _unshared(tensors | carried), facts)

    def _carried(self) -> dict[str, Tensor]:
        """The batch and the state that the next update works on, of all processes, gathered in one order."""
        if not self.carry:
            return {}
        state = self.carry.state
        parts = [] if state is None else [state.h, *state.memory]
        mine = {f"batch.{name}": value for name, value in self.carry.batch.items()}
        mine |= {f"state.{index}": part for index, part in enumerate(parts)}
        return {name: self.processes.gather(tensor) for name, tensor in sorted(mine.items())}

    def _placed(self, carry: Carry) -> Carry:
        """On the device of this process."""
        device = self.processes.device
        batch = {name: tensor.to(device) for name, tensor in carry.batch.items()}
        state = carry.state
        return Carry(batch, state and state.map(lambda part: part.to(device)), carry.done)

    def resume(self) -> bool:
        """Go back to the newest whole checkpoint of the run folder; whether there was one."""
        path = self.processes.led(self._find_checkpoint)
        if path is None:
            return False
        tensors, facts = read_checkpoint(path)
        with blaming(f"{path}: of another version of rrn, so the run cannot go on; give another --folder"):
            self.network.load_state_dict(_part(tensors, "network."))
            self.average.network.load_state_dict(_part(tensors, "average."))
            load_optimizer(self.optimizer, tensors)
            self.experiment.restore(facts["position"])
        torch.set_rng_state(tensors["random"])
        if "random_cuda" in tensors and self.processes.device.type == "cuda":
            torch.cuda.set_rng_state(tensors["random_cuda"], self.processes.device)
        self.update, self.seconds, self.best = facts["update"], facts["seconds"], facts["best"]
        self.due = facts.get("due", {})
        if "done" in facts:
            batch, parts = _part(tensors, "batch."), [part for _, part in sorted(_part(tensors, "state.").items())]
            state = State.of(self.shard.take_rows(parts, self.experiment.rows_of(batch))) if parts else None
            self.carry = self._placed(Carry(self.shard.take(batch), state, facts["done"]))
        return True

    def _find_checkpoint(self) -> Path | None:
        """The checkpoint to go on from, if the run in the folder has the same settings."""
        path = find_checkpoint(self.folder)
        before = _settings_in(self.folder / CONFIG) if path is None else read_checkpoint(path)[1]["preset"]
        now = settings(self.preset)
        changed = [name for name in now if name not in BUDGET_FIELDS and _plain(now[name]) != before.get(name)]
        if before and changed:
            listed = ", ".join(f"{name} was {before.get(name)!r} and is {now[name]!r}" for name in changed)
            raise InputError(f"{self.folder} holds a run with other settings ({listed}); give another --folder")
        return path

    def _cut_metrics(self) -> None:
        """Drop lines that are damaged, and those of updates that are still to be made: they will be written again."""
        path = self.folder / METRICS
        if path.exists():
            known = self.update - 1 if self.due else self.update
            lines = path.read_text(errors="replace").splitlines(keepends=True)
            write_atomically(path, "".join(line for line in lines if 0 < _update_in(line) <= known))

    def _agree(self) -> int:
        """The signal by which any process was asked to stop, 0 if none was. All go by the slowest clock, so that all
        stop at the same update."""
        self.seconds, asked = self.processes.greatest(self.seconds, self.stopping.asked)
        return int(asked)

    def _board(self) -> Any:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise needs_extra("--tensorboard", "train") from error
        return SummaryWriter(str(self.folder / "tensorboard"))


def _update_in(line: str) -> int:
    """Of a line of metrics; 0 where it is damaged."""
    try:
        return int(json.loads(line)["update"]) if line.endswith("\n") else 0
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0


def _settings_in(path: Path) -> dict[str, Any]:
    """Of a run that has no checkpoint yet; none where the file is damaged: then there is nothing to lose."""
    try:
        values = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _plain(value: Any) -> Any:
    """As it comes back from JSON."""
    return json.loads(json.dumps(value))


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _unshared(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies where two names share memory (an LSTM's hidden state is also h): safetensors refuses those."""
    seen: set[int] = set()
    result = {}
    for name, tensor in tensors.items():
        result[name] = tensor.clone() if tensor.data_ptr() in seen else tensor
        seen.add(tensor.data_ptr())
    return result


class _StopNow(BaseException):
    """A signal came while nothing would be lost by stopping at once."""


class _Stopping:
    """Lets an interrupt or a terminate signal end the run after the current update, with a checkpoint."""

    def __init__(self) -> None:
        self.asked = 0
        """The number of the signal."""
        self.interrupting = False

    def __enter__(self) -> "_Stopping":
        try:
            self.before = {s: signal.signal(s, self._ask) for s in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not in the main thread
            self.before = {}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """In this block a signal raises `_StopNow`."""
        self.interrupting = True
        try:
            if self.asked:
                raise _StopNow
            yield
        finally:
            self.interrupting = False

    def _ask(self, number: int, frame: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = number
        if self.interrupting:
            raise _StopNow
