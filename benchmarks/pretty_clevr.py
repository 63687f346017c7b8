"""Pretty-CLEVR on one core: scenes generated with all their answers, and questions trained on, a second."""

import dataclasses
import time

import numpy as np
import torch

SCENES, UPDATES, LONGEST = 20_000, 20, 7


def measure() -> dict[str, object]:
    return {
        "about": f"one core: {SCENES:,} scenes with 128 answers each; {UPDATES} updates on questions of up to 7 jumps",
        "scenes_per_second": _generate(),
        "questions_per_second": {name: _train(name) for name in ("pretty-clevr", "pretty-clevr-paper")},
    }


def _generate() -> float:
    from rrn.tasks.pretty_clevr.data import JUMPS, OBJECTS, STARTS, scenes

    scenes("train", 1_000)
    started = time.perf_counter()
    drawn, scene = scenes("train", SCENES), np.arange(SCENES)[:, None]
    by_colour = drawn.paths[scene, drawn.colours.argsort(1)].reshape(SCENES, -1)
    by_shape = drawn.paths[scene, drawn.shapes.argsort(1)].reshape(SCENES, -1)
    answers = np.concatenate([drawn.shapes[scene, by_colour] + np.uint8(OBJECTS), drawn.colours[scene, by_shape]], 1)
    seconds = time.perf_counter() - started
    if answers.shape != (SCENES, STARTS * JUMPS):
        raise RuntimeError(f"expected all answers of {SCENES} scenes, got shape {answers.shape}")
    return SCENES / seconds


def _train(name: str) -> float:
    """Batches, forward, backward and optimizer step, at the end of the curriculum."""
    from rrn import tasks
    from rrn.training.experiment import RunningBatch, make_optimizer

    torch.set_num_threads(1)
    experiment = tasks.make_experiment(dataclasses.replace(tasks.find_preset(name), scenes=1_000))
    experiment.restore({"longest": LONGEST, "running": 0.0})
    network = experiment.network()
    optimizer = make_optimizer(network, experiment.preset)
    rng = np.random.default_rng(0)
    started = time.perf_counter()
    for update in range(UPDATES + 1):
        if update == 1:
            started = time.perf_counter()
        batch = experiment.sample(rng)
        outputs, _ = network(batch, steps=experiment.steps_of(RunningBatch(batch)))
        optimizer.zero_grad()
        experiment.loss(outputs, batch).backward()
        optimizer.step()
    return UPDATES * experiment.preset.batch_size / (time.perf_counter() - started)
