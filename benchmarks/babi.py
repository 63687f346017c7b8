"""bAbI on one core: questions generated per second; and the paper's network, ours against plain ways of writing it.

Plain: stories padded to the longest of the batch, every sentence of every question through its LSTM, and the whole
MLP of f on every edge of (questions, facts, facts). Packed: the same without the padding. Ours: each distinct
sentence once, facts packed, f's first and last layers on nodes. All have the same weights and must reach the same
loss. Seconds are of the processor, so that other work on the machine counts little.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

QUESTIONS, REPEATS, GENERATED = 128, 3, 200


def measure() -> dict[str, object]:
    import torch

    torch.set_num_threads(1)
    plain, packed, ours = _train(_plain_forward), _train(_packed_forward), _train(_forward)
    difference = max(abs(other["loss"] - ours["loss"]) for other in (plain, packed))
    if difference > 1e-4:
        raise RuntimeError(f"the forms disagree: loss {plain['loss']}, {packed['loss']} and {ours['loss']}")
    return {
        "about": f"one core; babi-paper, {QUESTIONS} questions per update, forward, backward, step; best of {REPEATS}",
        "generated_questions_per_second": _generate(),
        "plain": plain,
        "packed": packed,
        "ours": ours,
        "loss_difference": difference,
        "speedup": plain["seconds"] / ours["seconds"],
        "speedup_over_packed": packed["seconds"] / ours["seconds"],
        "default": _train(_forward, "babi"),
    }


def _generate() -> float:
    """Over the mix of all 20 tasks, encoded, ready to sample from."""
    from rrn.tasks.babi.data import EndlessQuestions

    EndlessQuestions(1).take(10)
    started = time.process_time()
    questions = EndlessQuestions(0).take(GENERATED)
    return len(questions) / (time.process_time() - started)


def _train(forward: Callable[[Any, Any, int], Any], name: str = "babi-paper") -> dict[str, float]:
    """An update from the same weights on the same batch."""
    import torch

    from rrn import tasks
    from rrn.training.experiment import make_optimizer, seeded

    preset: Any = tasks.find_preset(name)
    settings = {"batch_size": QUESTIONS} | ({"dropout": 0.0} if hasattr(preset, "dropout") else {})
    experiment: Any = tasks.make_experiment(dataclasses.replace(preset, **settings))
    batch = experiment.sample(seeded(0))
    seconds = []
    for _ in range(REPEATS):
        torch.manual_seed(0)
        network = experiment.network()
        optimizer = make_optimizer(network, preset)
        torch.manual_seed(1)
        started = time.process_time()
        loss = experiment.loss(forward(network, batch, preset.steps), batch)
        loss.backward()
        optimizer.step()
        seconds.append(time.process_time() - started)
    return {"seconds": min(seconds), "questions_per_second": QUESTIONS / min(seconds), "loss": float(loss.detach())}


def _forward(network: Any, batch: Any, steps: int) -> Any:
    return network(batch, steps=steps)[0]


def _packed_forward(network: Any, batch: Any, steps: int) -> Any:
    """Our network with every sentence taken for another, and f's plain form."""
    import torch
    from torch import nn

    class Plain(nn.Module):
        def __init__(self, message: Any) -> None:
            super().__init__()
            self.message = message

        def encode_edges(self, edge_attr: Any) -> Any:
            return edge_attr

        def forward(self, *arguments: Any) -> Any:
            return self.message.plain(*arguments)

    network.rrn.message = Plain(network.rrn.message)
    distinct = torch.arange(batch["sentences"].numel()).view_as(batch["sentences"])
    return network(batch | {"sentences": distinct}, steps=steps)[0]


def _plain_forward(network: Any, batch: Any, steps: int) -> Any:
    """The appendix's equations on padded tensors."""
    import torch
    import torch.nn.functional as F

    rrn, (n, facts) = network.rrn, batch["support"].shape
    exists = (torch.arange(facts) < batch["fact_counts"][:, None]).float()[..., None]
    said = network.facts(batch["words"][:, :-1].flatten(0, 1)).view(n, facts, -1)
    asked = network.question(batch["words"][:, -1])[:, None].expand(-1, facts, -1)
    place = torch.arange(facts) + torch.randint(network.max_facts, (n,))[:, None]
    x = rrn.encoder(torch.cat([said, asked, F.one_hot(place, 2 * network.max_facts).float()], dim=-1))
    on_edges = asked[:, None].expand(-1, facts, -1, -1)
    edges = (exists[:, :, None] * (1 - torch.eye(facts))[None, ..., None]) * exists[:, None]
    state, outputs = rrn.update.initial_state(x), []
    for _ in range(steps):
        ends = [state.h[:, :, None].expand(-1, -1, facts, -1), state.h[:, None].expand(-1, facts, -1, -1)]
        messages = rrn.message.mlp(torch.cat([*ends, on_edges], dim=-1))
        state = rrn.update(state, x, (messages * edges).sum(1))
        outputs.append(rrn.readout.mlp((state.h * exists).sum(1)))
    return torch.stack(outputs)
