"""The devices and the processes of a run, as the training loop uses them.

One process on the CPU in 32 bits needs torch alone. Everything else uses lightning's Fabric (the extra ``train``):
GPUs, bf16, several processes on this machine (``devices``) or on several machines (torchrun, srun).
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
"""Seconds without a heartbeat after which a process counts as hung, and the others end."""
BEAT_SECONDS = 1.0
LEADER = "RRN_LEADER_PROCESS"
"""The environment variable in which the leading process tells its id to the processes that it starts."""
RESUME = "the last checkpoint is intact; run the same command to resume from it"

T = TypeVar("T")


class ProcessLost(Failure):
    """Another process of the run has died or hangs. The last checkpoint is intact."""


class Processes:
    """This process among those of its run: ``rank`` of ``world``, working on ``device``."""

    def __init__(self, accelerator: Accelerator = "cpu", devices: int = 1, precision: Precision = "32") -> None:
        self.rank, self.world, self.device = 0, 1, torch.device("cpu")
        self.fabric: Any = None
        self.heartbeat: _Heartbeat | None = None
        self.ended = threading.Event()
        _watch_leader(self.ended)
        outside = _external_launcher()
        kind = _choose(accelerator, 1 if outside else devices)
        self.description = f"training on {kind}, 1 process, {_bits(precision)}"
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
        os.environ.setdefault(LEADER, str(os.getpid()))
        try:
            self.fabric.launch()
        finally:
            del os.environ[LEADER]
        self.rank, self.world, self.device = self.fabric.global_rank, self.fabric.world_size, self.fabric.device
        many = f"{self.world} processes" + f" on {machines} machines" * (machines > 1)
        self.description = f"training on {kind}, {many if self.world > 1 else '1 process'}, {_bits(precision)}"
        if self.world > 1:
            self.heartbeat = _Heartbeat(self)

    @property
    def is_leader(self) -> bool:
        return self.rank == 0

    def setup(self, network: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[Callable[..., Any], Any]:
        """Move the network to its device. Returns what to call instead of it, and the optimizer to step."""
        if not self.fabric:
            return network, optimizer
        called, stepped = self._together(self.fabric.setup, network, optimizer)
        return partial(self._together, called), stepped  # a forward pass communicates too: it syncs buffers

    def backward(self, loss: Tensor) -> None:
        self._together(self.fabric.backward, loss)

    def barrier(self) -> None:
        if self.fabric:
            self._together(self.fabric.barrier)

    def max(self, *values: float) -> list[float]:
        """The largest of each value among the processes."""
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

    def run_on_leader(self, work: Callable[[], T]) -> T:
        """Call ``work`` in the leading process and return its result in all. An `InputError` in it ends all."""
        if self.world == 1:
            return work()
        outcome: tuple[Any, str | None] = (None, None)
        if self.is_leader:
            try:
                outcome = (work(), None)
            except (InputError, OSError) as error:
                outcome = (None, str(error))
        value, refusal = self._together(self.fabric.broadcast, outcome)
        if refusal is not None:
            self.end()
            raise InputError(refusal) if self.is_leader else SystemExit(2)
        return value

    def end(self) -> None:
        """Stop the heartbeat: no process waits for another any more."""
        self.ended.set()

    def abandon(self) -> None:
        """Kill the processes that this one started; SIGKILL also ends stopped ones."""
        self.end()
        launcher = getattr(getattr(self.fabric, "strategy", None), "launcher", None)
        for process in getattr(launcher, "procs", []):
            process.kill()

    def _together(self, call: Callable[..., T], *arguments: Any, **options: Any) -> T:
        try:
            return call(*arguments, **options)
        except RuntimeError as error:
            if self.world == 1 or not _is_process_lost(error):
                raise
            raise ProcessLost(f"another process has ended ({shorten(error)}), so all end; {RESUME}") from error


class _Heartbeat(threading.Thread):
    """Sends a heartbeat every second, and ends this process when another sends none for `SILENT_SECONDS`.

    A process that is stopped, swaps or waits for a lost disk never answers. Without a heartbeat the others would wait
    for half an hour, the timeout of their collectives.
    """

    def __init__(self, processes: Processes) -> None:
        from datetime import timedelta

        from torch.distributed import TCPStore

        super().__init__(daemon=True, name="heartbeat")
        self.processes, self.ended = processes, processes.ended
        host, patience = os.environ["MASTER_ADDR"], timedelta(seconds=SILENT_SECONDS)
        store = (
            TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=patience) if processes.is_leader else None
        )
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
            except RuntimeError:  # the leading process holds the store and does not answer
                silent = [0]
            else:
                now = time.monotonic()
                heard |= {rank: (beat, now) for rank, beat in beats.items() if beat != heard[rank][0]}
                silent = [rank for rank, (_, at) in heard.items() if now - at > SILENT_SECONDS]
            if silent and not self.ended.wait(2 * BEAT_SECONDS):
                print(f"rrn: {lost(silent[0], self.processes.world)}", file=sys.stderr, flush=True)
                self.processes.abandon()
                os._exit(1)


def _watch_leader(ended: threading.Event) -> None:
    """End this process when the leading process that started it has ended, also before they are connected.

    Without this it would wait for half an hour for a connection.
    """
    leader = os.environ.get(LEADER)
    if leader is None:
        return

    def watch() -> None:
        while os.getppid() == int(leader):
            if ended.wait(BEAT_SECONDS):
                return
        if not ended.wait(2 * BEAT_SECONDS):
            print(f"rrn: the leading process has ended, so all end; {RESUME}", file=sys.stderr, flush=True)
            os._exit(1)

    threading.Thread(target=watch, daemon=True, name="watch-leader").start()


def lost(rank: int, world: int) -> str:
    return f"process {rank} of {world} has ended, or sent nothing for {SILENT_SECONDS:.0f} s, so all end; {RESUME}"


def _is_process_lost(error: RuntimeError) -> bool:
    """Whether an error comes from another process, not from the computation of this one."""
    from torch.distributed import DistError

    words = "gloo|nccl|socket|connection|peer|broken pipe|timed out|timeout|store"
    return isinstance(error, DistError) or re.search(words, str(error), re.IGNORECASE) is not None


def _external_launcher() -> tuple[str, int, int] | None:
    """The launcher of the processes, if it is not rrn: its name, processes per machine, machines."""
    known = os.environ
    if "TORCHELASTIC_RUN_ID" in known:
        return "torchrun", int(known["LOCAL_WORLD_SIZE"]), int(known.get("GROUP_WORLD_SIZE", 1))
    if "SLURM_STEP_ID" in known and int(known.get("SLURM_NTASKS", 1)) > 1:
        machines = int(known.get("SLURM_NNODES", 1))
        return "srun", int(known["SLURM_NTASKS"]) // machines, machines
    return None


def _choose(accelerator: Accelerator, devices: int) -> str:
    """The accelerator, if this machine has it."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    kind = next(name for name, found in available.items() if found) if accelerator == "auto" else accelerator
    if not available[kind]:
        raise InputError(f"--accelerator {kind}: torch finds no such device; use --accelerator auto")
    count = {"cuda": torch.cuda.device_count, "mps": lambda: 1}.get(kind, lambda: devices)()
    if devices > count:
        raise InputError(f"--devices {devices}: this machine has {count} devices of kind {kind!r}")
    return kind


def _bits(precision: Precision) -> str:
    return "32 bits" if precision == "32" else "bf16 where it is safe, 32 bits elsewhere"
