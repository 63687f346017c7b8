"""The training loop: knows experiments, presets and run folders, and no task."""

import dataclasses
import json
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rrn.errors import InputError, NotFiniteError
from rrn.growing import grow_into
from rrn.hints import needs_extra
from rrn.memory import keep_freed_memory
from rrn.pretrained import read_weights, save_pretrained, settings
from rrn.storage import write_atomically, write_json
from rrn.training.checkpoints import load_checkpoint, save_checkpoint
from rrn.training.display import Display
from rrn.training.experiment import Carry, Experiment, Shard, seeded, whole_batches
from rrn.training.optimizing import Average, learning_rate, load_optimizer, make_optimizer, optimizer_tensors
from rrn.updates import State

BUDGET_FIELDS = {"updates", "minutes", "checkpoint_minutes", "validate_every", "threads", "about"}
"""Settings in which a resumed run may differ from the one it continues."""


class Diverged(RuntimeError):
    """The loss is no longer a number. The last good checkpoint is kept."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    folder: Path
    update: int
    minutes: float
    best: dict[str, float]
    finished: bool


def train(
    experiment: Experiment[Any], folder: str | Path, *, devices: int = 1, quiet: bool = False, tensorboard: bool = False
) -> Outcome:
    """Train, or go on training, in a run folder::

        config.json       the preset
        metrics.jsonl     a line a validation
        checkpoint-*      the newest checkpoints: weights, their average, optimizer, random state, position
        best/             the weights that validated best, as `from_pretrained` reads them

    A run in a folder that already has a checkpoint continues from it. ``devices`` > 1, or a start under torchrun,
    spreads every batch over that many processes.
    """
    whole_batches(experiment.preset, devices)
    with _distributed(devices) as fabric:
        run = _Run(experiment, Path(folder), fabric, quiet, tensorboard)
        return run.go()


@contextmanager
def _distributed(devices: int) -> Iterator[Any]:
    if devices == 1 and "TORCHELASTIC_RUN_ID" not in os.environ:
        yield None
        return
    try:
        from lightning_fabric import Fabric
    except ImportError as error:
        raise needs_extra("training in several processes", "train") from error
    if "TORCHELASTIC_RUN_ID" in os.environ:
        devices = int(os.environ["LOCAL_WORLD_SIZE"])
    nodes = int(os.environ.get("GROUP_WORLD_SIZE", 1))
    fabric = Fabric(accelerator="cpu", devices=devices, num_nodes=nodes, strategy="ddp")
    fabric.launch()
    yield fabric


class _Run:
    def __init__(self, experiment: Experiment[Any], folder: Path, fabric: Any, quiet: bool, tensorboard: bool) -> None:
        self.experiment, self.preset, self.folder, self.fabric = experiment, experiment.preset, folder, fabric
        self.shard = Shard(fabric.global_rank, fabric.world_size) if fabric else Shard()
        self.leads = self.shard.rank == 0
        whole_batches(self.preset, self.shard.world)
        keep_freed_memory()
        torch.set_num_threads(self.preset.threads)
        torch.manual_seed(self.preset.seed)
        self.network: nn.Module = experiment.network()
        if self.preset.start_from is not None:
            grow_into(self.network, read_weights(self.preset.start_from))
        self.parameters = sum(p.numel() for p in self.network.parameters())
        self.average = Average(self.network, self.preset.ema)
        self.optimizer = make_optimizer(self.network, self.preset)
        self.called: Callable[..., Any] = self.network
        if fabric:
            self.called, self.optimizer = fabric.setup(self.network, self.optimizer)
        self.carry: Carry | None = None
        self.update = 0
        self.seconds = 0.0
        self.best: dict[str, float] = {}
        self.stopping = _Stopping()
        self.display = Display(self.preset.name, enabled=self.leads and not quiet)
        self.board = self._board() if tensorboard and self.leads else None

    def go(self) -> Outcome:
        resumed = self._take_up()
        if self.leads:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(self.folder / "config.json", settings(self.preset))
            if resumed:
                self._cut_metrics()
                self.display.say(f"going on from update {self.update} in {self.folder}")
        self._meet()
        before, started = self.seconds, time.monotonic()
        saved, first_update = self.seconds, self.update
        stopped = False
        with self.stopping, self.display:
            while not self._done() and not stopped:
                loss, measures = self._one_update()
                self.seconds = before + time.monotonic() - started
                stopped = self._agree()
                rate = (self.update - first_update) / max(self.seconds - before, 1e-9)
                self.display.update(
                    self._progress(), self.update, loss, rate * self.preset.batch_size, self._seconds_left(rate)
                )
                if self.update % self.preset.validate_every == 0 or self._done():
                    self._validate(loss, measures)
                if self.seconds - saved > 60 * self.preset.checkpoint_minutes:
                    self._save()
                    saved = self.seconds
        finished = self._done()
        self._save()
        self._meet()
        if stopped and not finished:
            self.display.say(f"stopped at update {self.update}; the same command goes on from here")
        if self.board:
            self.board.close()
        return Outcome(self.folder, self.update, self.seconds / 60, self.best, finished)

    def _one_update(self) -> tuple[float, dict[str, float]]:
        rng = seeded(self.preset.seed, 1, self.update)
        self.experiment.progress = self._progress()
        carry = self.carry or self.experiment.begin(rng, self.shard)
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
        self.fabric.backward(loss) if self.fabric else loss.backward()
        if self.preset.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.preset.clip)
        rate = learning_rate(self.preset, self.update, self._progress())
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.average.follow(self.network, self.update)
        with torch.no_grad():
            measures = self._over_processes(self.experiment.measure(outputs, carry.batch))
            carry = Carry(carry.batch, state.detach(), carry.done + steps)
            self.carry = self.experiment.proceed(carry, outputs, rng, self.shard)
        self.experiment.observe(measures)
        self.update += 1
        return value, measures

    def _validate(self, loss: float, measures: dict[str, float]) -> None:
        if self.leads:
            started = time.monotonic()
            with torch.no_grad():
                figures = self.experiment.validate(self.average.network.eval())
            minutes = self.seconds / 60
            line = {"update": self.update, "minutes": round(minutes, 3), "loss": loss, **figures}
            line |= {f"train_{name}": value for name, value in measures.items()}
            line["validation_seconds"] = round(time.monotonic() - started, 2)
            with open(self.folder / "metrics.jsonl", "a") as file:
                file.write(json.dumps(line) + "\n")
            if self.board:
                for name, value in line.items():
                    self.board.add_scalar(name, value, self.update)
            self.display.validated(self.update, minutes, {"loss": loss, **figures})
            if figures["score"] >= self.best.get("score", -math.inf):
                self.best = {**figures, "update": self.update, "minutes": round(minutes, 2)}
                save_pretrained(self.average.network, self.folder / "best", self.preset, self.best)
        self._meet()

    def _progress(self) -> float:
        """The share of the budget that is spent: of updates or of time, whichever is further."""
        spent = self.update / self.preset.updates
        return spent if self.preset.minutes is None else max(spent, self.seconds / 60 / self.preset.minutes)

    def _done(self) -> bool:
        return self._progress() >= 1

    def _seconds_left(self, updates_a_second: float) -> float:
        left = (self.preset.updates - self.update) / max(updates_a_second, 1e-9)
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
        facts = {
            "update": self.update,
            "seconds": self.seconds,
            "best": self.best,
            "position": self.experiment.position(),
            "preset": settings(self.preset),
        }
        if self.carry:
            facts["done"] = self.carry.done
        save_checkpoint(self.folder, self.update, _unshared(tensors | carried), facts)

    def _carried(self) -> dict[str, Tensor]:
        """The batch and the state that the next update works on, of all processes, gathered in one order."""
        if not self.carry:
            return {}
        state = self.carry.state
        parts = [] if state is None else [state.h, *state.memory]
        mine = {f"batch.{name}": value for name, value in self.carry.batch.items()}
        mine |= {f"state.{index}": part for index, part in enumerate(parts)}
        if not self.fabric:
            return mine
        return {name: self.fabric.all_gather(tensor).flatten(0, 1) for name, tensor in sorted(mine.items())}

    def _take_up(self) -> bool:
        loaded = load_checkpoint(self.folder)
        if loaded is None:
            return False
        tensors, facts = loaded
        self._refuse_other_preset(facts["preset"])
        self.network.load_state_dict(_part(tensors, "network."))
        self.average.network.load_state_dict(_part(tensors, "average."))
        load_optimizer(self.optimizer, tensors)
        torch.set_rng_state(tensors["random"])
        self.update, self.seconds, self.best = facts["update"], facts["seconds"], facts["best"]
        self.experiment.restore(facts["position"])
        if "done" in facts:
            parts = [part for _, part in sorted(self.shard.take(_part(tensors, "state.")).items())]
            state = State(parts[0], tuple(parts[1:])) if parts else None
            self.carry = Carry(self.shard.take(_part(tensors, "batch.")), state, facts["done"])
        return True

    def _refuse_other_preset(self, before: dict[str, Any]) -> None:
        now = settings(self.preset)
        changed = [name for name in now if name not in BUDGET_FIELDS and _plain(now[name]) != before.get(name)]
        if changed:
            listed = ", ".join(f"{name} was {before.get(name)!r} and is {now[name]!r}" for name in changed)
            raise InputError(f"{self.folder} holds a run with other settings ({listed}); give another --folder")

    def _cut_metrics(self) -> None:
        """Drop lines of updates that the checkpoint does not have: they will be written again."""
        path = self.folder / "metrics.jsonl"
        if path.exists():
            whole = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
            write_atomically(path, "".join(line for line in whole if json.loads(line)["update"] <= self.update))

    def _meet(self) -> None:
        if self.fabric:
            self.fabric.barrier()

    def _agree(self) -> bool:
        """Whether any process was asked to stop. All go by the slowest clock, so that all stop at the same update."""
        if not self.fabric:
            return self.stopping.asked
        mine = torch.tensor([self.seconds, self.stopping.asked], dtype=torch.float64)
        self.seconds, asked = self.fabric.all_reduce(mine, reduce_op="max").tolist()
        return asked > 0

    def _over_processes(self, measures: dict[str, float]) -> dict[str, float]:
        if not self.fabric:
            return measures
        values = self.fabric.all_reduce(torch.tensor(list(measures.values())), reduce_op="mean")
        return dict(zip(measures, values.tolist(), strict=True))

    def _board(self) -> Any:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise needs_extra("--tensorboard", "train") from error
        return SummaryWriter(str(self.folder / "tensorboard"))


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


class _Stopping:
    """Lets an interrupt or a terminate signal end the run after the current update, with a checkpoint."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> "_Stopping":
        try:
            self.before = {s: signal.signal(s, self._ask) for s in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not in the main thread
            self.before = {}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
