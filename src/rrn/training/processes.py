"""The devices and the processes of a run, behind the few calls that the training loop needs of them.

One process on the CPU in 32 bits needs nothing but torch. Everything else goes through lightning's Fabric (the extra
``train``): GPUs, bf16, several processes here (``devices``) or on several machines (torchrun, srun).
"""

import os
import re
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from rrn._compat import stop_lightning_observer
from rrn.errors import Failure, InputError, needs_extra, shorten

Accelerator = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["32", "bf16"]

SILENT_SECONDS = 60.0
"""A process that the others have not heard of for so long has hung, and they end."""
BEAT_SECONDS = 1.0
KEPT = "the last checkpoint is kept, and the same command goes on from it"

T = TypeVar("T")


class Lost(Failure):
    """Another process of the run has died or hangs. The last checkpoint is kept."""


class Processes:
    """This process among those of its run: ``rank`` of ``world``, working on ``device``."""

    def __init__(self, accelerator: Accelerator = "cpu", devices: int = 1, precision: Precision = "32") -> None:
        self.rank, self.world, self.device = 0, 1, torch.device("cpu")
        self.fabric: Any = None
        self.pulse: _Pulse | None = None
        outside = _started_outside()
        kind = _choose(accelerator, 1 if outside else devices)
        self.about = f"training on {kind}, 1 process, {_bits(precision)}"
        if outside is None and (kind, devices, precision) == ("cpu", 1, "32"):
            return
        try:
            from lightning_fabric import Fabric
            from lightning_fabric.plugins.environments import (
                LightningEnvironment,
                SLURMEnvironment,
                TorchElasticEnvironment,
            )
        except ImportError as error:
            one = outside is None and devices == 1
            asked = f"training on {kind} in {precision}" if one else "training in several processes"
            raise needs_extra(asked, "train") from error
        environments = {None: LightningEnvironment, "torchrun": TorchElasticEnvironment, "srun": SLURMEnvironment}
        how, here, machines = outside or (None, devices, 1)
        try:
            environment = environments[how]()
        except RuntimeError as error:  # such as --ntasks where it wants --ntasks-per-node
            raise InputError(f"{how}: {shorten(error)}") from error
        self.fabric = Fabric(
            accelerator=kind,
            devices=here,
            num_nodes=machines,
            strategy="ddp" if here * machines > 1 else "auto",
            precision="bf16-mixed" if precision == "bf16" else "32-true",
            plugins=[environment],
        )
        self.fabric.launch()
        self.rank, self.world, self.device = self.fabric.global_rank, self.fabric.world_size, self.fabric.device
        many = f"{self.world} processes" + f" on {machines} machines" * (machines > 1)
        self.about = f"training on {kind}, {many if self.world > 1 else '1 process'}, {_bits(precision)}"
        if self.world > 1:
            self.pulse = _Pulse(self)

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def setup(self, network: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[Callable[..., Any], Any]:
        """What to call instead of the network, which moves to its device, and the optimizer to step."""
        if not self.fabric:
            return network, optimizer
        called, stepped = self._together(self.fabric.setup, network, optimizer)
        return partial(self._together, called), stepped  # also a forward pass hears of the others: it shares buffers

    def backward(self, loss: Tensor) -> None:
        self._together(self.fabric.backward, loss) if self.fabric else loss.backward()

    def barrier(self) -> None:
        if self.fabric:
            self._together(self.fabric.barrier)

    def greatest(self, *values: float) -> list[float]:
        """Each value where it is greatest among the processes."""
        return self._reduced(values, "max")

    def mean(self, values: dict[str, float]) -> dict[str, float]:
        return dict(zip(values, self._reduced(tuple(values.values()), "mean"), strict=True))

    def _reduced(self, values: tuple[float, ...], how: str) -> list[float]:
        if not self.fabric:
            return list(values)
        precise = torch.float32 if self.device.type == "mps" else torch.float64
        mine = torch.tensor(values, dtype=precise, device=self.device)
        return self._together(self.fabric.all_reduce, mine, reduce_op=how).tolist()

    def gather(self, tensor: Tensor) -> Tensor:
        """The rows of all processes, in order."""
        if self.world == 1:
            return tensor
        counts = (
            self._together(self.fabric.all_gather, torch.tensor([len(tensor)], device=tensor.device)).flatten().tolist()
        )
        padded = torch.cat([tensor, tensor.new_zeros(max(counts) - len(tensor), *tensor.shape[1:])])
        every = self._together(self.fabric.all_gather, padded)
        return torch.cat([part[:count] for part, count in zip(every, counts, strict=True)])

    def led(self, work: Callable[[], T]) -> T:
        """What ``work`` gives in the leading process, in all of them. What it refuses ends them all."""
        if self.world == 1:
            return work()
        outcome: tuple[Any, str | None] = (None, None)
        if self.leads:
            try:
                outcome = (work(), None)
            except (InputError, OSError) as error:
                outcome = (None, str(error))
        value, refusal = self._together(self.fabric.broadcast, outcome)
        if refusal is not None:
            self.end()
            raise InputError(refusal) if self.leads else SystemExit(2)
        return value

    def end(self) -> None:
        """No process waits for another from here on."""
        if self.pulse:
            self.pulse.ended.set()

    def abandon(self) -> None:
        """End the processes that this one started, also those that are stopped and hear no other signal."""
        self.end()
        launcher = getattr(getattr(self.fabric, "strategy", None), "launcher", None)
        for process in getattr(launcher, "procs", []):
            process.kill()

    def _together(self, call: Callable[..., T], *arguments: Any, **options: Any) -> T:
        try:
            return call(*arguments, **options)
        except RuntimeError as error:
            if self.world == 1 or not _says_lost(error):
                raise
            raise Lost(f"another process has ended ({shorten(error)}), so all end; {KEPT}") from error


class _Pulse(threading.Thread):
    """Says every second that this process lives, and ends it when another has been silent for too long.

    A process that is stopped, or swaps, or waits for a disk that is gone, never answers. Without this the others would
    wait for it until the timeout of their collectives, half an hour.
    """

    def __init__(self, processes: Processes) -> None:
        from datetime import timedelta

        from torch.distributed import TCPStore

        super().__init__(daemon=True, name="pulse")
        self.processes, self.ended = processes, threading.Event()
        host, patience = os.environ["MASTER_ADDR"], timedelta(seconds=SILENT_SECONDS)
        store = TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=patience) if processes.leads else None
        port = processes.fabric.broadcast(store.port if store else 0)
        self.store = store or TCPStore(host, port, is_master=False, timeout=patience)
        stop_lightning_observer()
        self.start()

    def run(self) -> None:
        others = [rank for rank in range(self.processes.world) if rank != self.processes.rank]
        heard = {rank: (0, time.monotonic()) for rank in others}
        while not self.ended.wait(BEAT_SECONDS):
            try:
                self.store.add(str(self.processes.rank), 1)
                beats = {rank: self.store.add(str(rank), 0) for rank in others}
            except RuntimeError:  # the store is in the leading process, which does not answer
                silent = [0]
            else:
                now = time.monotonic()
                heard |= {rank: (beat, now) for rank, beat in beats.items() if beat != heard[rank][0]}
                silent = [rank for rank, (_, at) in heard.items() if now - at > SILENT_SECONDS]
            if silent and not self.ended.wait(2 * BEAT_SECONDS):
                print(f"rrn: {lost(silent[0], self.processes.world)}", file=sys.stderr, flush=True)
                self.processes.abandon()
                os._exit(1)


def lost(rank: int, world: int) -> str:
    return (
        f"process {rank} of {world} has ended, or has been silent for {SILENT_SECONDS:.0f} seconds, so all end; {KEPT}"
    )


def _says_lost(error: RuntimeError) -> bool:
    """Whether an error is about another process, and not about what this one computes."""
    from torch.distributed import DistError

    words = "gloo|nccl|socket|connection|peer|broken pipe|timed out|timeout|store"
    return isinstance(error, DistError) or re.search(words, str(error), re.IGNORECASE) is not None


def _started_outside() -> tuple[str, int, int] | None:
    """By whom the processes were started, if not by us: the name, processes on each machine, machines."""
    known = os.environ
    if "TORCHELASTIC_RUN_ID" in known:
        return "torchrun", int(known["LOCAL_WORLD_SIZE"]), int(known.get("GROUP_WORLD_SIZE", 1))
    if "SLURM_STEP_ID" in known and int(known.get("SLURM_NTASKS", 1)) > 1:
        machines = int(known.get("SLURM_NNODES", 1))
        return "srun", int(known["SLURM_NTASKS"]) // machines, machines
    return None


def _choose(accelerator: Accelerator, devices: int) -> str:
    """The accelerator meant, if it is there."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    kind = next(name for name, found in there.items() if found) if accelerator == "auto" else accelerator
    if not there[kind]:
        raise InputError(f"--accelerator {kind}: torch finds no such device here; 'auto' takes what there is")
    count = {"cuda": torch.cuda.device_count, "mps": lambda: 1}.get(kind, lambda: devices)()
    if devices > count:
        raise InputError(f"--devices {devices}: there are {count} devices of the kind {kind!r} here")
    return kind


def _bits(precision: Precision) -> str:
    return "32 bits" if precision == "32" else "bf16 where it is safe, 32 bits elsewhere"
