import numpy as np
import torch

from rrn import tasks
from rrn.tasks.sudoku.baselines.factor_graph import SUDOKU
from rrn.tasks.sudoku.baselines.learned_messages import LearnedMessages
from rrn.tasks.sudoku.exact import generate
from rrn.training.experiment import make_optimizer


def test_a_message_does_not_depend_on_whom_it_goes_to() -> None:
    network = LearnedMessages(16)
    heard = torch.rand(1, SUDOKU.places, 9)
    changed = heard.clone()
    changed[0, 40] = torch.rand(9)
    before, after = network.messages(heard)[0], network.messages(changed)[0]
    moved = [place for place in range(SUDOKU.places) if not torch.allclose(before[place], after[place], atol=1e-6)]
    assert moved == [place for place in range(36, 45) if place != 40]


def test_givens_stay_and_steps_in_parts_are_the_same_steps() -> None:
    puzzles, _ = generate(3, np.random.default_rng(0))
    batch = {"puzzle": torch.from_numpy(puzzles).long()}
    network = LearnedMessages(16)
    whole, _ = network(batch, steps=5)
    first, state = network(batch, steps=2)
    torch.testing.assert_close(torch.cat([first, network(batch, steps=3, state=state)[0]]), whole)
    given = puzzles.flatten() > 0
    assert ((whole[-1].argmax(-1) + 1).numpy() == puzzles.flatten())[given].all()


def test_it_learns() -> None:
    """Thirty updates on easy puzzles lower the loss on others."""
    preset = tasks.find_preset("sudoku-learned-messages")
    experiment = tasks.make_experiment(preset)
    network = experiment.network()
    optimizer = make_optimizer(network, preset)
    puzzles, solutions = generate(40, np.random.default_rng(1), 17)
    held_out = {"puzzle": torch.from_numpy(puzzles).long(), "solution": torch.from_numpy(solutions).long()}

    def loss() -> float:
        with torch.no_grad():
            return float(experiment.loss(network(held_out, steps=4)[0], held_out))

    untrained = loss()
    for update in range(30):
        batch = experiment.sample(np.random.default_rng(update))
        optimizer.zero_grad()
        experiment.loss(network(batch, steps=4)[0], batch).backward()
        optimizer.step()
    assert loss() < untrained - 0.1
