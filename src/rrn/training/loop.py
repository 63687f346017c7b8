"""The training loop under ``rrn train``, the estimators and ``Constraints.fit``.

An `Objective` draws batches and computes their loss; the `Loop` does the rest: gradients, clipping, learning rate,
optimizer, weight average, validation, early stopping, checkpoints and budget. A resumed loop continues bit by bit.
"""

import copy
import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from rrn._compat import torch_api
from rrn.errors import Failure, InputError, NotFiniteError, as_input_error
from rrn.io.files import locked, write_json
from rrn.training.checkpoints import find_checkpoint, read_checkpoint, save_checkpoint
from rrn.training.processes import Processes
from rrn.training.stopping import StopNow, Stopping

CONFIG = "config.json"
T = TypeVar("T")
_lerp_all = torch_api().lerp_all


class Diverged(Failure):
    """The loss or a weight is NaN or infinite. The last good checkpoint, if there is one, stays as it is."""


class Objective(ABC):
    """What the loop minimises: batches, their loss, and the validation."""

    def prepare(self) -> None:  # noqa: B027 (nothing by default)
        """Called before the first update of a run, for work that takes long; a signal interrupts it."""

    @abstractmethod
    def loss(self, update: int, progress: float) -> Tensor:
        """Draw the batch of an update and compute its loss. ``progress`` is the share of the budget spent, 0 to 1."""

    def after_update(self, loss: float) -> dict[str, float]:
        """Called after the optimizer's step, without gradients. Returns measures of the batch."""
        return {}

    def validate(self, network: nn.Module) -> dict[str, float]:
        """Figures on held-out data. The weights with the highest ``score``, if there is one, are the best."""
        return {}

    def inputs_are_finite(self) -> bool:
        """Whether the current batch is free of NaN and infinity."""
        return True

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON values that a checkpoint needs to continue from here."""
        return {}, {}

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:  # noqa: B027 (no state by default)
        """Continue from what `state` returned; both hold entries of the loop as well."""


class Callback:
    """Hooks of the loop. They are called in the leading process only."""

    def on_start(self, loop: "Loop", resumed: bool) -> None:
        """Before the first update."""

    def on_update(self, loop: "Loop") -> None:
        """After every update: see `Loop.last_loss` and `Loop.measures`."""

    def on_validation(self, loop: "Loop", figures: dict[str, float], is_best: bool) -> None:
        """After every validation."""

    def on_end(self, loop: "Loop") -> None:
        """After the last update of this run, or when it was stopped."""


class Average:
    """An exponential moving average of a network's weights, in a copy of the network."""

    def __init__(self, network: nn.Module, decay: float | None) -> None:
        self.decay = decay
        self.network = copy.deepcopy(network).eval()
        self.network.requires_grad_(False)

    @torch.no_grad()
    def follow(self, network: nn.Module, update: int) -> None:
        """Called after an update. The decay is smaller at first, so that initial weights soon lose influence."""
        decay = min(self.decay or 0.0, (1 + update) / (10 + update))
        mine: list[Tensor] = list(self.network.parameters())
        theirs: list[Tensor] = list(network.parameters())
        _lerp_all(mine, theirs, 1 - decay)
        for a, b in zip(self.network.buffers(), network.buffers(), strict=True):
            a.copy_(b)


def learning_rate(
    rate: float, update: int, progress: float, schedule: Literal["cosine", "constant"] = "cosine", warmup: int = 0
) -> float:
    """The rate of an update when ``progress`` (0 to 1) of the budget is spent."""
    if schedule == "cosine":
        rate *= 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    return rate * min(1.0, (update + 1) / warmup) if warmup else rate


@dataclass(kw_only=True, eq=False)
class Loop:
    """One training run. `fit` runs it; `one_update` is a single update.

    Attributes:
        rate, schedule, warmup: arguments of `learning_rate`.
        updates, minutes: the budget; whichever is spent first ends the run.
        clip: gradients are scaled down to this norm.
        average: the weight average, which is then validated instead of the network.
        validate_every: updates between validations; the last update is validated too. None: no validation.
        validate_first: validate once before the first update, so that the initial weights can be the best.
        patience: stop after this many validations without a better score.
        keep_best: end with the weights of the best validation.
        folder: for checkpoints, one per ``checkpoint_minutes``; a run in a folder with a checkpoint resumes from it.
        settings: written to the folder. A run resumes only if these are the same, ``budget`` aside.
        folder_flag: how a user names another folder, for messages.
        remedy: what to do when training diverges, for the message.
        stop_on_signal: SIGINT and SIGTERM end the run after the current update, with a checkpoint.
    """

    network: nn.Module
    objective: Objective
    optimizer: torch.optim.Optimizer
    rate: float
    updates: int
    schedule: Literal["cosine", "constant"] = "cosine"
    warmup: int = 0
    minutes: float | None = None
    clip: float | None = 1.0
    average: Average | None = None
    validate_every: int | None = None
    validate_first: bool = False
    patience: int | None = None
    keep_best: bool = False
    folder: Path | None = None
    checkpoint_minutes: float = 3.0
    settings: dict[str, Any] = field(default_factory=dict)
    budget: frozenset[str] = frozenset()
    folder_flag: str = "--folder"
    remedy: str = ""
    stop_on_signal: bool = False
    processes: Processes | None = None
    callbacks: Sequence[Callback] = ()

    update: int = field(default=0, init=False)
    seconds: float = field(default=0.0, init=False)
    best: dict[str, float] = field(default_factory=dict, init=False)
    last_loss: float = field(default=math.nan, init=False)
    measures: dict[str, float] = field(default_factory=dict, init=False)
    validation_seconds: float = field(default=0.0, init=False)
    updates_per_second: float = field(default=0.0, init=False)
    stop_signal: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.validation_pending = False
        self.validations_since_best = 0
        self.best_weights: dict[str, Tensor] = {}
        self.stopping = Stopping() if self.stop_on_signal else None
        self.parallel = self.processes if self.processes is not None and self.processes.fabric is not None else None
        self.is_leader = self.parallel is None or self.parallel.is_leader

    @property
    def validated(self) -> nn.Module:
        """The network that is validated: the weight average, if there is one."""
        return self.network if self.average is None else self.average.network

    @property
    def progress(self) -> float:
        """The share of the budget that is spent: of updates or of time, whichever is larger."""
        spent = self.update / self.updates
        return spent if self.minutes is None else max(spent, self.seconds / 60 / self.minutes)

    @property
    def seconds_left(self) -> float:
        left = (self.updates - self.update) / max(self.updates_per_second, 1e-9)
        return left if self.minutes is None else min(left, 60 * self.minutes - self.seconds)

    @property
    def finished(self) -> bool:
        """Whether the budget is spent, or early stopping ended the run, and the last validation is done."""
        stopped_early = self.patience is not None and self.validations_since_best >= self.patience
        return (self.progress >= 1 or stopped_early) and not self.validation_pending

    def fit(self) -> "Loop":
        """Train until the budget is spent; from the newest checkpoint on, if the folder has one."""
        with ExitStack() as stack:
            if self.folder is not None:
                folder = self.folder
                self._on_leader(lambda: stack.enter_context(locked(folder)))
            stack.callback(self._call, "on_end")
            self._start()
            if self.stopping is not None:
                stack.enter_context(self.stopping)
            self._run()
            if self.parallel is not None:
                self.parallel.barrier()
        if self.keep_best and self.best_weights:
            self.validated.load_state_dict(self.best_weights)
        return self

    def _start(self) -> None:
        resumed = self.folder is not None and self.resume()
        self.validation_pending |= self.validate_first and not resumed
        if self.is_leader and self.folder is not None:
            write_json(self.folder / CONFIG, self.settings)
        self._call("on_start", resumed)
        if self.parallel is not None:
            self.parallel.barrier()

    def _run(self) -> None:
        if not self.stop_signal and not self.finished:
            with suppress(StopNow), self._interruptible():
                self.objective.prepare()
            self._agree()
        before, started = self.seconds, time.monotonic()
        saved, first_update = self.seconds, self.update
        while not self.stop_signal and not self.finished:
            if self.validation_pending:
                self._validate()
                self._agree()
            else:
                self.one_update()
                self.seconds = before + time.monotonic() - started
                self.updates_per_second = (self.update - first_update) / max(self.seconds - before, 1e-9)
                self._agree()
                if self.validate_every is not None:
                    self.validation_pending = self.update % self.validate_every == 0 or self.progress >= 1
                self._call("on_update")
            if not self.validation_pending and self.seconds - saved > 60 * self.checkpoint_minutes:
                self._save()
                saved = self.seconds
        self._save()

    def _interruptible(self) -> AbstractContextManager[None]:
        """In this block a signal raises `StopNow`."""
        return nullcontext() if self.stopping is None else self.stopping.at_once()

    def _agree(self) -> None:
        """All processes use the slowest clock and stop for the same signal, so that all stop at the same update."""
        self.stop_signal = 0 if self.stopping is None else self.stopping.asked
        if self.parallel is not None:
            self.seconds, asked = self.parallel.max(self.seconds, self.stop_signal)
            self.stop_signal = int(asked)

    def one_update(self) -> float:
        """Draw a batch, compute its loss and gradients, and step the optimizer. Returns the loss."""
        progress = self.progress
        self.network.train()
        try:
            loss = self.objective.loss(self.update, progress)
        except NotFiniteError as error:
            if not self.objective.inputs_are_finite():
                raise
            raise self._diverged("an output of the network is not finite") from error
        self.last_loss = float(loss.detach())
        if not math.isfinite(self.last_loss):
            raise self._diverged(f"the loss is {self.last_loss}")
        self.optimizer.zero_grad(set_to_none=True)
        if self.parallel is None:
            loss.backward()
        else:
            self.parallel.backward(loss)
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.clip)
        rate = learning_rate(self.rate, self.update, progress, self.schedule, self.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        if self.average is not None:
            self.average.follow(self.network, self.update)
        with torch.no_grad():
            self.measures = self.objective.after_update(self.last_loss)
        self.update += 1
        return self.last_loss

    def _validate(self) -> None:
        """Validate in the leading process alone. A signal interrupts it; a resumed run then repeats it."""
        if not self.is_leader:
            self.validation_pending = False
        else:
            started = time.monotonic()
            try:
                with self._interruptible(), torch.no_grad():
                    figures = self.objective.validate(self.validated.eval())
            except StopNow:
                pass
            else:
                self.validation_seconds = time.monotonic() - started
                self._compare(figures)
                self.validation_pending = False
        if self.parallel is not None:
            self.parallel.barrier()

    def _compare(self, figures: dict[str, float]) -> None:
        """Remember the best validation. With ``patience``, an equal score is no improvement."""
        score, best = figures.get("score"), self.best.get("score", -math.inf)
        is_best = score is not None and (score > best if self.patience else score >= best)
        self.validations_since_best += score is not None
        if is_best:
            self.best = {**figures, "update": self.update, "minutes": round(self.seconds / 60, 2)}
            self.validations_since_best = 0
            if self.keep_best:
                self.best_weights = copy.deepcopy(self.validated.state_dict())
        self._call("on_validation", figures, is_best)

    def _on_leader(self, work: Callable[[], T]) -> T:
        return work() if self.parallel is None else self.parallel.run_on_leader(work)

    def _call(self, hook: str, *arguments: Any) -> None:
        if self.is_leader:
            for callback in self.callbacks:
                getattr(callback, hook)(self, *arguments)

    def _diverged(self, what: str) -> Diverged:
        return Diverged(f"{what} at update {self.update}. {self.remedy}")

    def _save(self) -> None:
        if not all(bool(parameter.isfinite().all()) for parameter in self.network.parameters()):
            raise self._diverged("a weight is not finite")
        if self.folder is None:
            return
        objective_tensors, objective_facts = self.objective.state()
        if not self.is_leader:
            return
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        if self.average is not None:
            tensors |= {f"average.{name}": value for name, value in self.average.network.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in self.best_weights.items()}
        tensors |= _optimizer_tensors(self.optimizer)
        tensors["random"] = torch.get_rng_state()
        device = next(self.network.parameters()).device
        if device.type == "cuda":
            tensors["random_cuda"] = torch.cuda.get_rng_state(device)
        facts = {"update": self.update, "seconds": self.seconds, "best": self.best, "preset": self.settings}
        facts |= objective_facts
        if self.patience is not None:
            facts["validations_since_best"] = self.validations_since_best
        if self.validation_pending:
            facts["due"] = {"loss": self.last_loss, "measures": self.measures}
        save_checkpoint(self.folder, self.update, tensors | objective_tensors, facts)

    def resume(self) -> bool:
        """Continue from the newest undamaged checkpoint of the folder. Returns whether there is one."""
        path = self._on_leader(self._find_checkpoint)
        if path is None:
            return False
        tensors, facts = read_checkpoint(path)
        with as_input_error(
            f"{path}: of another version of rrn, so the run cannot resume; give another {self.folder_flag}"
        ):
            self.network.load_state_dict(part_of(tensors, "network."))
            if self.average is not None:
                self.average.network.load_state_dict(part_of(tensors, "average."))
            _load_optimizer(self.optimizer, tensors)
            self.objective.restore(tensors, facts)
        device = next(self.network.parameters()).device
        torch.set_rng_state(tensors["random"])
        if "random_cuda" in tensors and device.type == "cuda":
            torch.cuda.set_rng_state(tensors["random_cuda"], device)
        self.best_weights = {name: value.to(device) for name, value in part_of(tensors, "best.").items()}
        self.update, self.seconds, self.best = facts["update"], facts["seconds"], facts["best"]
        self.validations_since_best = facts.get("validations_since_best", 0)
        if pending := facts.get("due"):
            self.validation_pending, self.last_loss, self.measures = True, pending["loss"], pending["measures"]
        return True

    def _find_checkpoint(self) -> Path | None:
        """The checkpoint to resume from, if the run in the folder has the same settings."""
        assert self.folder is not None
        path = find_checkpoint(self.folder)
        before = _read_settings(self.folder / CONFIG) if path is None else read_checkpoint(path)[1]["preset"]
        now = json.loads(json.dumps(self.settings))
        changed = [name for name in now if name not in self.budget and now[name] != before.get(name)]
        if before and changed:
            listed = ", ".join(f"{name} was {before.get(name)!r} and is {now[name]!r}" for name in changed)
            raise InputError(
                f"{self.folder} holds a run with other settings ({listed}); give another {self.folder_flag}"
            )
        return path


def _read_settings(path: Path) -> dict[str, Any]:
    """The settings of a run without a checkpoint; empty where the file is damaged, as there is nothing to lose."""
    try:
        values = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def part_of(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"optimizer.{index}.{key}": value if isinstance(value, Tensor) else torch.tensor(value, device="cpu")
        for index, state in optimizer.state_dict()["state"].items()
        for key, value in state.items()
    }


def _load_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in part_of(tensors, "optimizer.").items():
        index, key = name.split(".")
        state.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
