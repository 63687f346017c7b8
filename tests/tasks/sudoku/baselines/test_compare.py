"""The systems of the paper's table answer to one interface, and each does better than before it learned or ran."""

import numpy as np
import pytest
import torch

from rrn import tasks
from rrn.errors import InputError
from rrn.tasks.sudoku.baselines import compare
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.predict import answers_by_step
from rrn.tasks.weights import from_pretrained

BY_HEART = "sudoku-rn-graph"
TRAINED = [system.name for system in compare.SYSTEMS if system.make is None and system.name != BY_HEART]


@pytest.fixture(scope="module")
def easy() -> tuple[np.ndarray, np.ndarray]:
    return generate(24, np.random.default_rng(3), 17)


@pytest.mark.parametrize("system", compare.SYSTEMS, ids=lambda system: system.name)
def test_a_batch_of_puzzles_in_probabilities_of_every_step_out(
    system: compare.System, easy: tuple[np.ndarray, np.ndarray]
) -> None:
    network = system.make() if system.make else from_pretrained(system.name)
    puzzles = torch.from_numpy(easy[0][:2]).long()
    with torch.no_grad():
        outputs, state = network({"puzzle": puzzles}, steps=2)
        again, _ = network({"puzzle": puzzles}, steps=1, state=state)
    digits = outputs[..., int(network.first_class) :]
    assert digits.shape == (2, 2 * 81, 9)
    assert again.shape == (1, *outputs.shape[1:])
    assert torch.isfinite(digits.softmax(-1)).all()


@pytest.mark.parametrize("name", TRAINED)
def test_shipped_weights_do_better_than_none(name: str, easy: tuple[np.ndarray, np.ndarray]) -> None:
    puzzles, solutions = easy
    trained = from_pretrained(name)
    preset = trained.preset
    torch.manual_seed(0)
    untrained = tasks.build_network(preset).eval()

    def right(network: torch.nn.Module) -> float:
        return float((answers_by_step(network, puzzles, min(preset.steps, 16))[-1] == solutions).mean())

    assert right(trained) > right(untrained) + 0.02


def test_the_graph_centric_network_learns_two_puzzles_by_heart(easy: tuple[np.ndarray, np.ndarray]) -> None:
    """In minutes it learns nothing that holds for other puzzles."""
    experiment = tasks.make_experiment(tasks.find_preset(BY_HEART))
    network = experiment.network()
    optimizer = torch.optim.Adam(network.parameters(), 2e-3)
    batch = {"puzzle": torch.from_numpy(easy[0][:2]).long(), "solution": torch.from_numpy(easy[1][:2]).long()}
    losses, shares = [], []
    for _ in range(25):
        outputs, _ = network(batch, steps=1)
        loss = experiment.loss(outputs, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        shares.append(experiment.measure(outputs.detach(), batch)["cells"])
    assert losses[-1] < losses[0] - 0.2
    assert shares[-1] > shares[0] + 0.05


def test_a_row(easy: tuple[np.ndarray, np.ndarray]) -> None:
    (system,) = compare.find_systems("parallel")
    row = compare.measure(system, *easy)
    assert row["n"] == 24
    assert row["accuracy"] > 0.9
    assert row["accuracy_by_steps"]["1"] < row["accuracy_by_steps"]["64"] == row["accuracy"]
    assert row["givens"] == [int((easy[0] > 0).sum(1).min()), int((easy[0] > 0).sum(1).max())]


def test_givens_are_added_up_to_a_number() -> None:
    puzzles, solutions = generate(50, np.random.default_rng(4))
    more = compare._with_givens(puzzles, solutions, (30, 36))
    counts = (more > 0).sum(1)
    assert counts.min() >= 30
    assert counts.max() <= 36
    assert (more[puzzles > 0] == puzzles[puzzles > 0]).all()
    assert (more[more > 0] == solutions[more > 0]).all()


def test_unknown_systems_are_named() -> None:
    with pytest.raises(InputError, match="--systems: no system 'serial'; there are sudoku, modified, random"):
        compare.find_systems("parallel,serial")
