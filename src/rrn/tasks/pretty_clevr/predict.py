"""Questions about a scene, and the answer of a network."""

from dataclasses import dataclass, replace

import numpy as np
from torch import nn

from rrn.inference.result import Result
from rrn.tasks.answers import answer_logits, answer_result
from rrn.tasks.pretty_clevr import data
from rrn.tasks.pretty_clevr.model import as_batch


@dataclass(frozen=True)
class SceneQuestion:
    """A scene, the name (0-15) of the object to start at, and how many jumps (0-7) to make from there."""

    scenes: data.Scenes
    start: int
    jumps: int

    @property
    def scene(self) -> data.Scene:
        return self.scenes.scene(0)

    @property
    def path(self) -> list[str]:
        """The true path, such as ``green star``, …"""
        scene = self.scene
        return [
            f"{data.COLOURS[scene.colours[visited]]} {data.SHAPES[scene.shapes[visited]]}"
            for visited in scene.path(self.start, self.jumps)
        ]


def scene_of(seed: int) -> data.Scenes:
    """The scene of a seed, on the command line and on the page."""
    return data.sample_scenes(1, np.random.default_rng(seed))


def parse(seed: int, start: str, jumps: int, positions: np.ndarray | None = None) -> SceneQuestion:
    """The question about the scene of a seed; ``start`` is the English name of a colour or a shape.

    ``positions`` (8, 2) replace those of its objects.
    """
    scenes = scene_of(seed)
    if positions is not None:
        moved = positions[None].astype(np.float32)
        scenes = replace(scenes, positions=moved, paths=data.find_paths(data.squared_distances(moved)))
    return SceneQuestion(scenes, data.number_of(start), jumps)


def predict(network: nn.Module, asked: SceneQuestion, steps: int) -> Result:
    """The name of the object reached; the record holds the probability of each name after each step."""
    number = np.array([data.question_number(asked.start, asked.jumps)])
    question = f"{data.NAMES[asked.start]}, {asked.jumps} jump{'s' * (asked.jumps != 1)}"
    truth = data.NAMES[asked.scene.answer(asked.start, asked.jumps)]
    shares = probabilities(network, asked.scenes, number, steps)[:, 0]
    return answer_result(shares, data.NAMES, question, truth=truth)


def probabilities(network: nn.Module, scenes: data.Scenes, numbers: np.ndarray, steps: int) -> np.ndarray:
    """The probability of each of the 16 names after each step: (steps, n, 16).

    Question ``scene * 128 + question`` of ``numbers`` (n,) is about that scene; `data.questions` numbers the 128.
    """
    batch = as_batch(scenes, *np.divmod(numbers, data.QUESTIONS))
    shares: np.ndarray = answer_logits(network, batch, steps).softmax(-1).numpy()
    return shares
