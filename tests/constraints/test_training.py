"""Training on declared problems: validation, resumption, budget, divergence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.constraints.test_declare import squares
from tests.elsewhere import elsewhere

from rrn.constraints import Solver
from rrn.errors import InputError
from rrn.training.loop import Diverged, Loop

SMALL: dict[str, Any] = {"slots": 4, "pool": 10, "hidden": 12, "message_width": 4, "layer_width": 24, "segment": 4}


def fit(**settings: Any) -> Solver:
    return squares(4).fit(lambda rng: squares(int(rng.integers(3, 5))).dig(rng), **SMALL | settings)


def weights(solver: Solver) -> list[list[float]]:
    return [parameter.flatten().tolist() for parameter in solver.network.parameters()]


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("settings", [{}, {"pool": 0, "noise": 0.0, "contradiction_share": 0.3, "validation": 3}])
def test_an_interrupted_fit_resumes_with_the_same_result(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"updates": 12, "validate_every": 5, **settings}
    seen: list[list[tuple[int, float, float]]] = [[], []]
    whole = fit(**settings, callback=lambda *measures: seen[0].append(measures))
    one_update = Loop.one_update

    def interrupt(loop: Loop) -> float:
        loop.checkpoint_minutes = 0
        if loop.update == 7:
            raise Interrupted
        return one_update(loop)

    monkeypatch.setattr(Loop, "one_update", interrupt)
    with pytest.raises(Interrupted):
        fit(**settings, checkpoint=tmp_path)
    monkeypatch.undo()
    before = torch.get_rng_state()
    resumed = fit(**settings, checkpoint=tmp_path, callback=lambda *measures: seen[1].append(measures))
    assert torch.equal(torch.get_rng_state(), before)
    assert seen[1] == seen[0][7:]
    assert weights(resumed) == weights(whole)
    with pytest.raises(InputError, match=r"other settings \(hidden was 12 and is 16\); give another checkpoint folder"):
        fit(**settings | {"hidden": 16}, checkpoint=tmp_path)
    with pytest.raises(InputError, match="make: draws other problems than those of the checkpoint"):
        squares(4).fit(lambda rng: squares(2).dig(rng), **SMALL | settings, checkpoint=tmp_path)


def test_the_weights_that_solve_most_held_out_problems_are_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    from rrn.constraints import training

    scores, seen = iter([0.1, 0.7, 0.3, 0.2]), []

    def validate(objective: object, network: torch.nn.Module) -> dict[str, float]:
        seen.append([parameter.flatten().tolist() for parameter in network.parameters()])
        return {"score": next(scores)}

    monkeypatch.setattr(training.SlotObjective, "validate", validate)
    assert weights(fit(updates=8, validation=2, validate_every=2)) == seen[1]
    assert len(seen) == 4


def test_patience_and_minutes_end_training() -> None:
    updates: list[int] = []
    fit(updates=50, validation=2, validate_every=2, patience=2, lr=1e-9, callback=lambda *now: updates.append(now[0]))
    assert updates[-1] == 6, "the first validation is the best, two more are not better"
    updates.clear()
    fit(updates=10**6, minutes=0.005, callback=lambda *now: updates.append(now[0]))
    assert 1 <= updates[-1] < 10**4
    with pytest.raises(InputError, match="minutes: expected more than 0, got 0"):
        fit(updates=1, minutes=0)


@pytest.mark.parametrize("name", ["updates", "slots", "segment", "validate_every"])
def test_numbers_below_one_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name}: expected at least 1, got 0"):
        fit(**{"updates": 1, name: 0})


def test_diverging_training_is_named() -> None:
    with pytest.raises(Diverged, match=r"at update \d+\. Use a lower lr \(now 1e\+30\)"):
        fit(updates=20, lr=1e30, clip=None)


def test_another_device_gives_the_same_weights() -> None:
    with elsewhere() as device:
        there = fit(updates=2, device=str(device))
        moved = [parameter.to("cpu").flatten().tolist() for parameter in there.network.parameters()]
    np.testing.assert_allclose(np.concatenate(moved), np.concatenate(weights(fit(updates=2))), atol=1e-5)
