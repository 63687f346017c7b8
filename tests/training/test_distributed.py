"""Two processes are one: the same parameters from the same global batch, under --devices, torchrun and srun."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from benchmarks.orphans import attack

from rrn.cli import main
from rrn.training.checkpoints import list_checkpoints, load_checkpoint
from rrn.training.processes import Processes, ProcessLost

pytest.importorskip("lightning_fabric")
pytestmark = pytest.mark.slow
TIMEOUT = 240
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "rrn.cli"]


def start(command: list[str]) -> subprocess.Popen[str]:
    """In a process group of its own, so that what it starts can be ended with it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    """What it printed; nothing of it is left running, whatever happens."""
    try:
        printed, _ = process.communicate(timeout=TIMEOUT)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == code, printed
    return printed


def parameters(folder: Path) -> torch.Tensor:
    loaded = load_checkpoint(folder)
    assert loaded is not None
    return torch.cat([tensor.flatten() for name, tensor in loaded[0].items() if name.startswith("network.")])


def assert_same_parameters(a: Path, b: Path, update: int) -> None:
    ours, theirs = load_checkpoint(a), load_checkpoint(b)
    assert ours is not None
    assert theirs is not None
    assert ours[1]["update"] == theirs[1]["update"] == update
    for name, tensor in ours[0].items():
        if name.startswith(("network.", "average.")):
            torch.testing.assert_close(tensor, theirs[0][name], atol=1e-5, rtol=0)


def test_two_processes_are_one(tmp_path: Path, tiny_ages_flags: list[str]) -> None:
    """20 updates under --devices 2, then 10 more of the same run under torchrun."""
    common = ["train", "ages", *tiny_ages_flags, "--schedule", "constant", "--warmup", "5", "--stage", "1"]
    one, two = tmp_path / "one", tmp_path / "two"
    assert main([*common, "--updates", "20", "--folder", str(one), "--quiet"]) == 0
    command = [sys.executable, "-m", "rrn.cli", *common, "--updates", "20", "--folder", str(two), "--devices", "2"]
    printed = finish(start(command))
    assert printed.count("finished at update 20") == 1
    assert_same_parameters(one / "stage-1", two / "stage-1", 20)
    start_of_run = torch.cat(
        [t.flatten() for n, t in load_checkpoint(one / "stage-1")[0].items() if n.startswith("network.")]
    )

    resumed = tmp_path / "resumed"
    shutil.copytree(two, resumed)
    assert main([*common, "--updates", "30", "--folder", str(one), "--quiet"]) == 0
    printed = finish(start([*TORCHRUN, *common, "--updates", "30", "--folder", str(resumed)]))
    assert printed.count("resuming from update 20") == printed.count("finished at update 30") == 1
    assert_same_parameters(one / "stage-1", resumed / "stage-1", 30)
    end_of_run = torch.cat(
        [t.flatten() for n, t in load_checkpoint(one / "stage-1")[0].items() if n.startswith("network.")]
    )
    assert (end_of_run - start_of_run).abs().max() > 1e-3


def test_bf16_is_said_and_learns(
    tmp_path: Path, tiny_ages_flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Matrix products alone: weights stay in 32 bits, and a loss is not the one of 32 bits, nor far from it."""
    losses = []
    for precision in ("32", "bf16"):
        folder, flags = tmp_path / precision, ["--updates", "3", "--precision", precision, "--stage", "1"]
        assert main(["train", "ages", *tiny_ages_flags, *flags, "--folder", str(folder)]) == 0
        losses.append(json.loads((folder / "metrics.jsonl").read_text())["loss"])
    assert "training on cpu, 1 process, bf16 where it is safe" in capsys.readouterr().err
    assert losses[0] != losses[1] == pytest.approx(losses[0], rel=0.02)
    loaded = load_checkpoint(tmp_path / "bf16" / "stage-1")
    assert loaded is not None
    assert {tensor.dtype for name, tensor in loaded[0].items() if name.startswith("network.")} == {torch.float32}


def test_processes_that_srun_starts_are_one(
    tmp_path: Path, tiny_ages_flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the variables that SLURM sets, for two tasks on one machine; all stages."""
    common = ["train", "ages", *tiny_ages_flags, "--schedule", "constant", "--warmup", "5", "--updates", "5"]
    one, two = tmp_path / "one", tmp_path / "two"
    assert main([*common, "--folder", str(one), "--quiet"]) == 0
    variables = {"JOB_ID": "1", "STEP_ID": "0", "NNODES": "1", "NODEID": "0", "NODELIST": "localhost", "NTASKS": "2"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("MASTER_PORT", str(free.getsockname()[1]))
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    for name, value in variables.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    command = [sys.executable, "-m", "rrn.cli", *common, "--folder", str(two)]
    assert main(command[3:]) == 2  # --ntasks alone does not say how they are spread over machines
    monkeypatch.setenv("SLURM_NTASKS_PER_NODE", "2")
    tasks = []
    for rank in ("0", "1"):
        monkeypatch.setenv("SLURM_PROCID", rank)
        monkeypatch.setenv("SLURM_LOCALID", rank)
        tasks.append(start(command))
    printed = [finish(task) for task in tasks]
    assert "training on cpu, 2 processes, 32 bits" in printed[0]
    assert_same_parameters(one / "stage-2", two / "stage-2", 5)


def test_a_signal_to_one_process_stops_all_of_them(tmp_path: Path, tiny_ages_flags: list[str]) -> None:
    flags = [*tiny_ages_flags, "--updates", "1000000", "--checkpoint-minutes", "0", "--folder", str(tmp_path)]
    process = start([sys.executable, "-m", "rrn.cli", "train", "ages", *flags, "--devices", "2"])
    try:
        deadline = time.monotonic() + TIMEOUT
        while not list_checkpoints(tmp_path / "stage-1"):
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    printed = finish(process, 128 + signal.SIGTERM)
    assert "run the same command to resume" in printed
    loaded = load_checkpoint(tmp_path / "stage-1")
    assert loaded is not None
    assert f"stopped at update {loaded[1]['update']};" in printed


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_where_one_process_hangs_or_dies_the_others_end_with_a_message(
    number: int, tmp_path: Path, tiny_ages_flags: list[str]
) -> None:
    """Lightning starts its processes by running the same script again, so a script can shorten the wait."""
    script = tmp_path / "impatient.py"
    script.write_text(
        "import sys\nfrom rrn.cli import main\nfrom rrn.training import processes\n"
        "processes.SILENT_SECONDS = 5.0\nsys.exit(main())\n"
    )
    flags = [*tiny_ages_flags, "--updates", "1000000", "--checkpoint-minutes", "0", "--folder", str(tmp_path / "run")]
    process = start([sys.executable, str(script), "train", "ages", *flags, "--devices", "2"])
    try:
        deadline = time.monotonic() + TIMEOUT
        while not list_checkpoints(tmp_path / "run" / "stage-1"):
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.05)
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(child), number)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    printed = finish(process, 1)
    assert "Traceback" not in printed
    assert re.search(r"rrn: (process 1 of 2 has ended|another process has ended)", printed)
    assert "checkpoint is intact; run the same command to resume from it" in printed
    stat, deadline = Path(f"/proc/{child}/stat"), time.monotonic() + 20
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "XZ":  # ended, if not buried
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_batch_that_does_not_divide_is_named_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--batch-size", "7", "--devices", "2", "--folder", str(tmp_path / "run")]
    assert main(["train", "ages", *flags]) == 2
    assert "--batch-size 7 does not divide among 2 processes" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_carried_state_is_resumed_in_every_process(tmp_path: Path) -> None:
    """Sudoku's slots carry puzzles and states from update to update, some in each process."""
    sizes = [
        "--hidden",
        "8",
        "--message-width",
        "4",
        "--layer-width",
        "24",
        "--batch-size",
        "4",
        "--few-givens-pool",
        "0",
    ]
    common = [sys.executable, "-m", "rrn.cli", "train", "sudoku", *sizes, "--schedule", "constant", "--devices", "2"]
    common += [
        "--stage",
        "1",
        "--segment",
        "2",
        "--slot-steps",
        "4",
        "4",
        "--extra-givens-start",
        "0",
        "--validate-every",
        "100000",
    ]
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    for folder, updates in ((whole, 7), (halves, 3), (halves, 7)):
        finish(start([*common, "--updates", str(updates), "--folder", str(folder)]))
    ours, theirs = load_checkpoint(whole / "stage-1"), load_checkpoint(halves / "stage-1")
    assert ours is not None
    assert theirs is not None
    assert ours[0].keys() == theirs[0].keys()
    assert any(name.startswith("state.") for name in ours[0])
    for name, tensor in ours[0].items():
        assert torch.equal(tensor, theirs[0][name]), name


@pytest.mark.parametrize(
    ("said", "lost"),
    [("gloo/transport/tcp/pair.cc:537 Read error: Connection reset by peer", True), ("mat1 and mat2 shapes", False)],
)
def test_only_what_the_others_did_is_called_a_lost_process(said: str, lost: bool) -> None:
    """Whichever call hears of it first, a forward pass included; a fault of our own keeps its traceback."""

    class Fabric:
        def setup(self, network: object, optimizer: object) -> tuple[object, object]:
            def forward() -> None:
                raise RuntimeError(said)

            return forward, optimizer

    processes = Processes()
    processes.fabric, processes.world = Fabric(), 2
    called, _ = processes.setup(torch.nn.Identity(), torch.optim.SGD([torch.zeros(1)]))
    with pytest.raises(ProcessLost if lost else RuntimeError) as caught:
        called()
    assert isinstance(caught.value, ProcessLost) == lost


ORPHAN = """
import os
from rrn.training.processes import LEADER, Processes
os.environ |= {LEADER: "1", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "9", "WORLD_SIZE": "2"}
Processes("cpu", 2)
"""


def test_a_process_whose_leader_has_ended_does_not_wait_for_it() -> None:
    printed = finish(start([sys.executable, "-c", ORPHAN]), code=1)
    assert "rrn: the leading process has ended, so all end" in printed


def test_a_leader_killed_before_the_processes_are_connected_leaves_none(tmp_path: Path) -> None:
    assert attack(tmp_path, 1, seed=0) == []
