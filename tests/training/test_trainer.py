"""The loop on a toy task: resuming, truncation, stopping, diverging. And age arithmetic killed for good."""

import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.training.runs import train
from torch import Tensor, nn

from rrn import RRN, CompleteGraphs, State
from rrn.cli import main
from rrn.errors import InputError
from rrn.training.checkpoints import list_checkpoints, load_checkpoint
from rrn.training.experiment import Batch, Experiment, Shard, check_divisible, make_optimizer, seeded
from rrn.training.loop import Average, Diverged, learning_rate
from rrn.training.presets import Preset
from rrn.training.trainer import Outcome


@dataclass(frozen=True, kw_only=True)
class ToyPreset(Preset):
    task = "toy"

    name: str = "toy"
    about: str = "Is the sum of three numbers positive?"
    update: str = "lstm"
    dropout: float = 0.3


TOY = ToyPreset(steps=6, segment=2, batch_size=4, updates=11, warmup=3, lr=1e-2, validate_every=4, checkpoint_minutes=0)


class ToyNetwork(nn.Module):
    def __init__(self, preset: ToyPreset) -> None:
        super().__init__()
        readout = {"readout": "graph", "readout_layers": 1, "dropout": preset.dropout}
        self.rrn = RRN(1, 5, 2, update=preset.update, **readout)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        x = batch["x"]
        return self.rrn.run(x.flatten(0, 1), CompleteGraphs(len(x), 3), steps=steps, state=state)


class Toy(Experiment[ToyPreset]):
    """``then`` is called with the number of the update in `observe`; the level rises at each and scales the data."""

    def __init__(self, preset: ToyPreset = TOY, then: Callable[[int], None] = lambda update: None) -> None:
        super().__init__(preset)
        self.then, self.level, self.scores = then, 0, iter(())

    def network(self) -> nn.Module:
        return ToyNetwork(self.preset)

    def sample(self, rng: np.random.Generator) -> Batch:
        x = torch.from_numpy(rng.normal(size=(self.preset.batch_size, 3, 1)) * (1 + self.level / 10)).float()
        return {"x": x, "y": (x.sum((1, 2)) > 0).long()}

    def targets(self, batch: Batch) -> Tensor:
        return batch["y"]

    def observe(self, measures: dict[str, float]) -> None:
        self.level += 1
        self.then(self.level)

    def curriculum_state(self) -> dict[str, float]:
        return {"level": self.level}

    def restore(self, position: dict[str, float]) -> None:
        self.level = int(position["level"])

    def validate(self, network: nn.Module) -> dict[str, float]:
        return {"score": float(next(self.scores, self.level))}


class Crash(Exception):
    pass


def crash_at(update: int) -> Callable[[int], None]:
    def then(now: int) -> None:
        if now == update:
            raise Crash

    return then


def contents(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The newest checkpoint, without what depends on the clock."""
    loaded = load_checkpoint(folder)
    assert loaded is not None
    tensors, facts = loaded
    facts.pop("seconds")
    facts["best"].pop("minutes", None)
    return tensors, facts


def assert_same_run(a: Path, b: Path) -> None:
    (tensors, facts), (others, other_facts) = contents(a), contents(b)
    assert facts == other_facts
    assert set(tensors) == set(others)
    different = [name for name, tensor in tensors.items() if not torch.equal(tensor, others[name])]
    assert not different
    kinds = {name.split(".")[0] for name in tensors}
    assert {"network", "average", "optimizer", "random"} <= kinds


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    torch.set_num_threads(1)
    assert train(Toy(), folder, quiet=True).finished
    return folder


@pytest.mark.parametrize("update", [2, 4, 5, 9])
def test_a_crashed_run_goes_on_as_if_nothing_had_happened(update: int, whole_run: Path, tmp_path: Path) -> None:
    """A batch lasts three updates here, so most of these crashes are in the middle of one, its state carried over."""
    with pytest.raises(Crash):
        train(Toy(then=crash_at(update)), tmp_path, quiet=True)
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded[1]["update"] == update - 1
    assert ("done" in loaded[1]) == ((update - 1) % 3 != 0)
    torch.manual_seed(99)
    assert train(Toy(), tmp_path, quiet=True).update == 11
    assert_same_run(tmp_path, whole_run)
    updates = [json.loads(line)["update"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert updates == [4, 8, 11]


def test_a_damaged_newest_checkpoint_costs_one_checkpoint(whole_run: Path, tmp_path: Path) -> None:
    with pytest.raises(Crash):
        train(Toy(then=crash_at(6)), tmp_path, quiet=True)
    newest = list_checkpoints(tmp_path)[-1]
    newest.write_bytes(newest.read_bytes()[:-1])
    (tmp_path / "metrics.jsonl").open("a").write('{"update": 4, "lo')
    with pytest.warns(UserWarning, match="is damaged"):
        train(Toy(), tmp_path, quiet=True)
    assert_same_run(tmp_path, whole_run)


@pytest.mark.filterwarnings("ignore:checkpoint-")
def test_a_run_whose_checkpoints_are_all_damaged_is_refused_and_loses_nothing(tmp_path: Path) -> None:
    train(Toy(), tmp_path, quiet=True)
    best = (tmp_path / "best" / "model.safetensors").read_bytes()
    metrics = (tmp_path / "metrics.jsonl").read_text()
    for path in list_checkpoints(tmp_path):
        path.write_bytes(path.read_bytes()[:-1])
    before = {path.name: path.stat().st_size for path in list_checkpoints(tmp_path)}
    for _ in range(2):
        with pytest.raises(InputError, match="all its checkpoints are damaged"):
            train(Toy(dataclasses.replace(TOY, updates=20)), tmp_path, quiet=True)
    assert (tmp_path / "best" / "model.safetensors").read_bytes() == best
    assert (tmp_path / "metrics.jsonl").read_text() == metrics
    assert {path.name: path.stat().st_size for path in list_checkpoints(tmp_path)} == before


def updates_in(folder: Path) -> list[int]:
    return [json.loads(line)["update"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "line",
    [
        '{"update": 4, "lo',
        "null\n",
        "[]\n",
        '{"update": "x"}\n',
        '{"update": 1e999}\n',
        "\udc80\ud800\n",
        "[" * 9999 + "\n",
    ],
)
def test_a_bad_line_of_metrics_is_skipped(line: str, tmp_path: Path) -> None:
    with pytest.raises(Crash):
        train(Toy(then=crash_at(6)), tmp_path, quiet=True)
    (tmp_path / "metrics.jsonl").open("ab").write(line.encode("utf-8", "surrogatepass"))
    train(Toy(), tmp_path, quiet=True)
    assert updates_in(tmp_path) == [4, 8, 11]


@pytest.mark.parametrize("update", [5, 9])
def test_a_kill_before_the_first_checkpoint_leaves_no_line_twice(update: int, whole_run: Path, tmp_path: Path) -> None:
    preset = dataclasses.replace(TOY, checkpoint_minutes=60)
    with pytest.raises(Crash):
        train(Toy(preset, then=crash_at(update)), tmp_path, quiet=True)
    assert not list_checkpoints(tmp_path)
    with pytest.raises(InputError, match=r"other settings \(seed was 0 and is 1\)"):
        train(Toy(dataclasses.replace(preset, seed=1)), tmp_path, quiet=True)
    train(Toy(preset), tmp_path, quiet=True)
    assert updates_in(tmp_path) == [4, 8, 11]
    tensors, other = contents(tmp_path)[0], contents(whole_run)[0]
    assert all(torch.equal(tensor, other[name]) for name, tensor in tensors.items())


@pytest.mark.parametrize("update", [4, 11])
def test_a_signal_in_a_validation_stops_at_once_and_the_next_run_makes_up_for_it(
    update: int, whole_run: Path, tmp_path: Path
) -> None:
    class Slow(Toy):
        def validate(self, network: nn.Module) -> dict[str, float]:
            if self.level == update:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(60)
            return super().validate(network)

    started = time.monotonic()
    outcome = train(Slow(), tmp_path, quiet=True)
    assert time.monotonic() - started < 30
    assert (outcome.finished, outcome.update, outcome.signal) == (False, update, signal.SIGTERM)
    assert outcome.best.get("update", 0) < update
    assert train(Toy(), tmp_path, quiet=True).finished
    assert_same_run(tmp_path, whole_run)
    assert updates_in(tmp_path) == [4, 8, 11]
    assert (tmp_path / "metrics.jsonl").read_text().count("\n") == 3
    whole = [json.loads(line) for line in (whole_run / "metrics.jsonl").read_text().splitlines()]
    ours = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    timed = ("minutes", "validation_seconds")
    assert [{k: v for k, v in line.items() if k not in timed} for line in ours] == [
        {k: v for k, v in line.items() if k not in timed} for line in whole
    ]


def test_a_signal_while_the_data_is_prepared_stops_at_once(whole_run: Path, tmp_path: Path) -> None:
    class Slow(Toy):
        def prepare(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)

    started = time.monotonic()
    outcome = train(Slow(), tmp_path, quiet=True)
    assert time.monotonic() - started < 30
    assert (outcome.finished, outcome.update, outcome.signal) == (False, 0, signal.SIGINT)
    assert train(Toy(), tmp_path, quiet=True).finished
    assert_same_run(tmp_path, whole_run)


def test_weights_that_cannot_be_written_leave_the_best_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(Toy(), tmp_path, quiet=True)
    before = {path.name: path.read_bytes() for path in (tmp_path / "best").iterdir()}

    def half(network: nn.Module, folder: Path, *_: object) -> None:
        (folder / "model.safetensors").write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("rrn.training.trainer.save_pretrained", half)
    with pytest.raises(OSError, match="disk full"):
        train(Toy(dataclasses.replace(TOY, updates=20)), tmp_path, quiet=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "best").iterdir()} == before
    assert not list(tmp_path.glob(".*"))


def test_numbers_out_of_range_are_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--clip: expected more than 0, got -1"):
        train(Toy(dataclasses.replace(TOY, clip=-1.0)), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_same_seed_same_parameters_and_another_seed_others(whole_run: Path, tmp_path: Path) -> None:
    train(Toy(), tmp_path / "again", quiet=True)
    assert_same_run(tmp_path / "again", whole_run)
    train(Toy(dataclasses.replace(TOY, seed=1)), tmp_path / "other", quiet=True)
    ours, other = contents(whole_run)[0], contents(tmp_path / "other")[0]
    assert not torch.equal(
        ours["network.rrn.message.mlp.linears.0.weight"], other["network.rrn.message.mlp.linears.0.weight"]
    )
    assert not torch.equal(ours["batch.x"], other["batch.x"])


def test_segments_by_hand(tmp_path: Path) -> None:
    """Three updates on one batch: two steps each, from where the last left off, without its gradient."""
    preset = dataclasses.replace(TOY, updates=3, dropout=0.0, clip=0.1, ema=None, weight_decay=0.1, schedule="constant")
    train(Toy(preset), tmp_path, quiet=True)
    torch.manual_seed(preset.seed)
    experiment = Toy(preset)
    network = experiment.network()
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in network.parameters() if p.dim() == 2], "weight_decay": 0.1},
            {"params": [p for p in network.parameters() if p.dim() == 1], "weight_decay": 0.0},
        ]
    )
    batch, state = experiment.sample(seeded(0, 1, 0)), None
    for update in range(3):
        outputs, state = network(batch, steps=2, state=state)
        assert outputs.shape[0] == 2
        loss = sum(F.cross_entropy(output, batch["y"]) for output in outputs) / 2
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 0.1)
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * (update + 1) / 3
        optimizer.step()
        state = state.detach()
    tensors = contents(tmp_path)[0]
    for name, value in network.state_dict().items():
        torch.testing.assert_close(tensors[f"network.{name}"], value, atol=1e-7, rtol=1e-6)
        assert torch.equal(tensors[f"average.{name}"], tensors[f"network.{name}"])


def test_a_non_finite_loss_stops_the_run_and_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    class Diverging(Toy):
        def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
            return super().loss(outputs, batch) * (float("nan") if self.level == 5 else 1.0)

    with pytest.raises(
        Diverged, match=r"the loss is nan at update 5\. The last good checkpoint .*--lr \(now 0\.01\)"
    ) as e:
        train(Diverging(), tmp_path, quiet=True)
    assert str(tmp_path) in str(e.value)
    assert all(word in str(e.value) for word in ("--warmup", "--clip", "--folder"))
    tensors, facts = contents(tmp_path)
    assert facts["update"] == 5
    assert all(tensor.isfinite().all() for tensor in tensors.values())


def test_weights_that_are_not_finite_never_become_a_checkpoint(tmp_path: Path) -> None:
    class Overflowing(Toy):
        def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
            loss = super().loss(outputs, batch)
            return loss + (outputs.sum() * 0).sqrt() if self.level == 5 else loss  # 0 with an infinite slope

    with pytest.raises(Diverged, match="a weight is not finite at update 6"):
        train(Overflowing(), tmp_path, quiet=True)
    tensors, facts = contents(tmp_path)
    assert facts["update"] == 5
    assert all(tensor.isfinite().all() for tensor in tensors.values())


def test_other_settings_are_refused_in_the_same_folder(whole_run: Path) -> None:
    before = (whole_run / "config.json").read_text()
    with pytest.raises(
        InputError, match=r"holds a run with other settings \(lr was 0\.01 and is 0\.5\); give another --folder"
    ):
        train(Toy(dataclasses.replace(TOY, lr=0.5)), whole_run, quiet=True)
    assert (whole_run / "config.json").read_text() == before


def test_a_finished_run_may_be_given_more_updates(tmp_path: Path) -> None:
    train(Toy(), tmp_path, quiet=True)
    assert train(Toy(dataclasses.replace(TOY, updates=13, about="Reworded.")), tmp_path, quiet=True).update == 13


def test_the_minutes_end_a_run(tmp_path: Path) -> None:
    preset = dataclasses.replace(TOY, updates=10**9, minutes=0.01, validate_every=10**9, checkpoint_minutes=5)
    started = time.monotonic()
    outcome = train(Toy(preset), tmp_path, quiet=True)
    assert time.monotonic() - started < 60
    assert outcome.finished
    assert 0.01 <= outcome.minutes < 0.5
    assert (tmp_path / "best" / "model.safetensors").is_file()
    assert contents(tmp_path)[1]["update"] == outcome.update


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_a_checkpoint_and_says_how_to_go_on(
    number: int, whole_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preset = dataclasses.replace(TOY, checkpoint_minutes=60)
    before = signal.getsignal(number)
    outcome = train(Toy(preset, lambda now: os.kill(os.getpid(), number) if now == 5 else None), tmp_path)
    assert signal.getsignal(number) is before
    assert not outcome.finished
    assert outcome.update == 5
    assert "stopped at update 5; run the same command to resume" in capsys.readouterr().err
    assert train(Toy(preset), tmp_path).finished
    assert f"resuming from update 5 in {tmp_path}" in capsys.readouterr().err
    tensors, other = contents(tmp_path)[0], contents(whole_run)[0]
    assert all(torch.equal(tensor, other[name]) for name, tensor in tensors.items())


def test_the_best_weights_are_kept(tmp_path: Path) -> None:
    experiment = Toy(dataclasses.replace(TOY, validate_every=2))
    experiment.scores = iter([0.1, 0.7, 0.3, 0.2, 0.1, 0.0])
    outcome: Outcome = train(experiment, tmp_path, quiet=True)
    assert (outcome.best["score"], outcome.best["update"]) == (0.7, 4)
    assert json.loads((tmp_path / "best" / "config.json").read_text())["trained"]["update"] == 4
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["score"] for line in lines] == [0.1, 0.7, 0.3, 0.2, 0.1, 0.0]
    assert all({"update", "minutes", "loss", "train_accuracy"} <= set(line) for line in lines)


def test_tensorboard_files(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    train(Toy(dataclasses.replace(TOY, updates=1)), tmp_path, quiet=True, tensorboard=True)
    assert list((tmp_path / "tensorboard").glob("events.*"))


def test_learning_rates() -> None:
    constant = [learning_rate(2.0, update, 0.9, "constant", 4) for update in (0, 1, 3, 100)]
    assert constant == [0.5, 1.0, 2.0, 2.0]
    rates = [learning_rate(2.0, 100, progress, "cosine", 4) for progress in (0, 1 / 3, 0.5, 1, 7)]
    assert rates == pytest.approx([2.0, 1.5, 1.0, 0.0, 0.0])
    assert learning_rate(2.0, 1, 0.5, "cosine", 4) == pytest.approx(0.5)
    assert learning_rate(2.0, 0, 0.0) == 2.0


def test_the_average_by_hand() -> None:
    network = nn.Linear(1, 1, bias=False)
    nn.init.constant_(network.weight, 1.0)
    average = Average(network, 0.4)
    expected = 1.0
    for update, value in enumerate([2.0, 3.0, 5.0, 8.0, 9.0, 7.0]):
        nn.init.constant_(network.weight, value)
        average.follow(network, update)
        decay = min(0.4, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * value
        assert average.network.weight.item() == pytest.approx(expected, rel=1e-6)
    assert math.isclose((1 + 5) / (10 + 5), 0.4)  # the last update above is the first with the full decay
    assert not average.network.weight.requires_grad


def test_weight_decay_takes_off_matrices_only() -> None:
    network = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    before = [p.detach().clone() for p in network.parameters()]
    optimizer = make_optimizer(network, dataclasses.replace(TOY, lr=0.1, weight_decay=0.5, l2=9.0))
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for parameter, old in zip(network.parameters(), before, strict=True):
        torch.testing.assert_close(parameter.detach(), old * (1 - 0.1 * 0.5) if old.dim() == 2 else old)


def test_l2_is_the_term_in_the_loss() -> None:
    """Adam with l2 moves as Adam does on loss + l2/2 · Σ W²."""
    ours, theirs = nn.Linear(4, 2).double(), nn.Linear(4, 2).double()
    theirs.load_state_dict(ours.state_dict())
    preset = dataclasses.replace(TOY, optimizer="adam", lr=0.05, l2=0.3, weight_decay=9.0)
    optimizer, other = make_optimizer(ours, preset), torch.optim.Adam(theirs.parameters(), lr=0.05)
    x = torch.randn(6, 4).double()
    for _ in range(5):
        optimizer.zero_grad()
        ours(x).square().mean().backward()
        optimizer.step()
        other.zero_grad()
        (theirs(x).square().mean() + 0.3 / 2 * theirs.weight.square().sum()).backward()
        other.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-10)


def test_shards_make_up_the_batch() -> None:
    batch = {"x": torch.arange(12).view(6, 2), "y": torch.arange(6)}
    parts = [Shard(rank, 3).take(batch) for rank in range(3)]
    assert all(torch.equal(torch.cat([part[name] for part in parts]), batch[name]) for name in batch)
    with pytest.raises(InputError, match="--batch-size 4 does not divide among 3 processes"):
        check_divisible(TOY, 3)


def test_seeded_generators_are_the_same_everywhere() -> None:
    assert seeded(0, 1, 2).integers(1000, size=3).tolist() == seeded(0, 1, 2).integers(1000, size=3).tolist()
    assert seeded(0, 1, 2).integers(10**9) != seeded(0, 1, 3).integers(10**9)


def test_killed_and_resumed_is_uninterrupted(tmp_path: Path, tiny_ages_flags: list[str]) -> None:
    """The real thing: SIGKILL to a process that writes a checkpoint after every update."""
    flags = [*tiny_ages_flags, "--updates", "150", "--checkpoint-minutes", "0", "--pass-mark", "0.001"]
    flags += ["--stage", "1", "--quiet"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = subprocess.Popen([sys.executable, "-m", "rrn.cli", "train", "ages", *flags, "--folder", str(killed)])
    try:
        deadline = time.monotonic() + 600
        while not any(int(path.name.split("-")[1]) >= 20 for path in list_checkpoints(killed / "stage-1")):
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.002)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    reached = contents(killed / "stage-1")[1]["update"]
    assert 20 <= reached < 150
    assert not (killed / "stage-1" / "best").exists()
    assert main(["train", "ages", *flags, "--folder", str(killed)]) == 0
    assert main(["train", "ages", *flags, "--checkpoint-minutes", "60", "--folder", str(whole)]) == 0
    (tensors, facts), (others, other_facts) = contents(killed / "stage-1"), contents(whole / "stage-1")
    assert facts["position"] == other_facts["position"]
    assert facts["position"]["longest"] > 0  # the curriculum had moved on
    assert facts["update"] == other_facts["update"] == 150
    different = [name for name, tensor in tensors.items() if not torch.equal(tensor, others[name])]
    assert set(tensors) == set(others)
    assert not different
