"""The training loop: one for `rrn train`, the estimators and `Constraints.fit`."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import rrn
from rrn.training.loop import Callback, Diverged, Loop, Objective

SOURCE = Path(rrn.__file__).parent


def test_only_the_loop_and_the_engines_compute_gradients() -> None:
    found = {
        path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if ".backward(" in path.read_text()
    }  # fmt: skip
    assert {path for path in found if not path.startswith("engines/")} == {"training/loop.py"}


class Slope(Objective):
    """Moves a weight by its gradient, which is always 1; validations find the scores given."""

    def __init__(self, network: nn.Linear, scores: tuple[float, ...] = (), bad: int | None = None) -> None:
        self.network, self.scores, self.bad = network, iter(scores), bad

    def loss(self, update: int, progress: float) -> Tensor:
        return self.network.weight.sum() * (math.nan if update == self.bad else 1.0)

    def validate(self, network: nn.Module) -> dict[str, float]:
        return {"score": next(self.scores)}


class Seen(Callback):
    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_start(self, loop: Loop, resumed: bool) -> None:
        self.calls.append("start")

    def on_update(self, loop: Loop) -> None:
        self.calls.append(f"update {loop.update}")

    def on_validation(self, loop: Loop, figures: dict[str, float], is_best: bool) -> None:
        self.calls.append(f"validation {loop.update}{' best' * is_best}")

    def on_end(self, loop: Loop) -> None:
        self.calls.append("end")


def loop(scores: tuple[float, ...] = (), bad: int | None = None, **settings: object) -> Loop:
    network = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(network.weight)
    optimizer = torch.optim.SGD(network.parameters())
    settings = {"updates": 6, "clip": None, **settings}
    settings |= {"rate": 1.0, "schedule": "constant"}
    return Loop(network=network, objective=Slope(network, scores, bad), optimizer=optimizer, **settings)  # type: ignore[arg-type]


def test_callbacks_early_stopping_and_the_best_weights() -> None:
    seen = Seen()
    run = loop((0.5, 0.9, 0.9, 0.1), validate_every=1, patience=2, keep_best=True, callbacks=[seen]).fit()
    validations = ["validation 1 best", "validation 2 best", "validation 3", "validation 4"]
    expected = [call for number, call in enumerate(validations, 1) for call in (f"update {number}", call)]
    assert seen.calls == ["start", *expected, "end"]
    assert run.finished
    assert run.best["update"] == 2
    assert run.network.weight.item() == -2.0, "the weights after the second update"


def test_clipping_and_the_last_validation() -> None:
    run = loop((0.5, 0.4), validate_every=4, clip=0.5).fit()
    assert run.network.weight.item() == pytest.approx(-3.0)
    assert run.best["update"] == 4


def test_a_loss_that_is_not_finite_ends_training_and_callbacks_end() -> None:
    seen = Seen()
    with pytest.raises(Diverged, match=r"the loss is nan at update 2\. Try less\."):
        loop(bad=2, remedy="Try less.", callbacks=[seen]).fit()
    assert seen.calls[-2:] == ["update 2", "end"]
