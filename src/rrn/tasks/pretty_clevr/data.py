"""Pretty-CLEVR: scenes of eight objects, and questions of the form "start at green, jump three times: where?".

A scene holds 8 objects. Each of 8 colours and each of 8 shapes is used exactly once. A jump goes to the closest
object not visited yet. A question that names its start by colour is answered by a shape, and the reverse, so starts
and answers share one numbering of 16: **0-7 are the colours, 8-15 the shapes**, in the order of `NAMES`.

Scenes are uniform over all placements in which no two objects overlap when drawn and no object is at (nearly) the same
distance from two others (rejection sampling).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rrn.errors import InputError
from rrn.io.datasets import SIDECAR, expected_array, read_dataset, write_dataset

COLOURS = ("red", "orange", "yellow", "green", "cyan", "blue", "purple", "black")
SHAPES = ("circle", "square", "triangle", "diamond", "plus", "cross", "star", "heart")
NAMES = COLOURS + SHAPES

OBJECTS = 8
JUMPS = 8
"""Numbers of jumps a question can ask for: 0 to 7."""
STARTS = 16
QUESTIONS = STARTS * JUMPS
"""Questions per scene."""

OBJECT_RADIUS = 0.06
"""Every drawn object stays within this distance of its position; the picture is the unit square."""
MIN_DISTANCE = 0.16
MARGIN = 0.08
"""Positions lie in [MARGIN, 1 - MARGIN]²."""
TIE = 1e-3
"""The distances from one object to any two others differ by at least this factor: d₁ · (1 + TIE) <= d₂."""

SPLITS = {"train": 100_000, "valid": 1_000, "test": 1_000}
"""Size of each split. The index in this order is part of the seed."""
GENERATOR_VERSION = 1

_CHUNK = 1_000  # scenes made from one seed, so that a shorter split is the beginning of a longer one
_BLOCK = 8_192  # placements tried at a time: small enough to stay in cache
_TRIES = 30  # placements per scene; one in 29 is accepted


@dataclass(frozen=True)
class Scene:
    """One scene: positions (8, 2) with x to the right and y upwards, colours (8,), shapes (8,), paths (8, 8)."""

    positions: np.ndarray
    colours: np.ndarray
    shapes: np.ndarray
    paths: np.ndarray

    def object_named(self, start: int) -> int:
        """The object with the colour (0-7) or the shape (8-15) ``start``."""
        matches = self.colours == start if start < OBJECTS else self.shapes == start - OBJECTS
        return int(np.flatnonzero(matches)[0])

    def path(self, start: int, jumps: int) -> list[int]:
        """The objects visited, the start first: ``jumps + 1`` of them."""
        return [int(visited) for visited in self.paths[self.object_named(start), : jumps + 1]]

    def answer(self, start: int, jumps: int) -> int:
        last = self.path(start, jumps)[-1]
        return int(self.shapes[last]) + OBJECTS if start < OBJECTS else int(self.colours[last])


@dataclass(frozen=True)
class Scenes:
    """n scenes: positions float32 (n, 8, 2), colours uint8 (n, 8), shapes uint8 (n, 8), paths uint8 (n, 8, 8).

    ``paths[scene, o, j]`` is the object reached from object ``o`` by ``j`` jumps; ``paths[scene, o, 0] == o``.
    """

    positions: np.ndarray
    colours: np.ndarray
    shapes: np.ndarray
    paths: np.ndarray

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, chosen: slice | np.ndarray | Sequence[int]) -> Scenes:
        return Scenes(*(array[chosen] for array in vars(self).values()))

    def scene(self, index: int) -> Scene:
        return Scene(*(array[index] for array in vars(self).values()))


class Questions(NamedTuple):
    """Arrays of one shape, int64: the start's name (0-15), the number of jumps (0-7), the answer's name (0-15)."""

    start: np.ndarray
    jumps: np.ndarray
    answer: np.ndarray


def questions(scenes: Scenes, scene: np.ndarray, question: np.ndarray) -> Questions:
    """The questions numbered ``question`` (0-127) about the scenes numbered ``scene``; the two broadcast.

    Question ``start * 8 + jumps`` starts at the object named ``start``; `question_number` makes that number.
    """
    scene, question = np.broadcast_arrays(scene, question)
    start, jumps = np.divmod(question.astype(np.int64), JUMPS)
    last = np.take_along_axis(full_paths(scenes, scene, start), jumps[..., None], -1)[..., 0]
    shape, colour = scenes.shapes[scene, last].astype(np.int64), scenes.colours[scene, last]
    return Questions(start, jumps, np.where(start < OBJECTS, shape + OBJECTS, colour))


def full_paths(scenes: Scenes, scene: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The full path from the object named ``start`` (0-15) in each scene: object indices, int64 (…, 8)."""
    names = np.where((start < OBJECTS)[..., None], scenes.colours[scene], scenes.shapes[scene] + np.int64(OBJECTS))
    return scenes.paths[scene, (names == start[..., None]).argmax(-1)].astype(np.int64)


def question_number(start: int, jumps: int) -> int:
    return start * JUMPS + jumps


def number_of(name: str) -> int:
    """The number (0-15) of a colour or shape by its English name."""
    try:
        return NAMES.index(name.strip().lower())
    except ValueError:
        raise InputError(
            f"{name!r} is no colour or shape; colours: {', '.join(COLOURS)}; shapes: {', '.join(SHAPES)}"
        ) from None


def describe(scene: Scene) -> str:
    """The eight objects, one per line, in the order of their colours."""
    lines = []
    for index in np.argsort(scene.colours):
        x, y = scene.positions[index]
        lines.append(f"{COLOURS[scene.colours[index]]} {SHAPES[scene.shapes[index]]} at ({x:.3f}, {y:.3f})")
    return "\n".join(lines)


def describe_question(scene: Scene, start: int, jumps: int) -> str:
    """Such as ``green, 3 jumps → plus``."""
    return f"{NAMES[start]}, {jumps} jump{'' if jumps == 1 else 's'} → {NAMES[scene.answer(start, jumps)]}"


def squared_distances(positions: np.ndarray) -> np.ndarray:
    """Between all pairs of objects, float64 (n, 8, 8), from positions (n, 8, 2)."""
    x, y = positions[..., 0].astype(np.float64), positions[..., 1].astype(np.float64)
    return (x[:, :, None] - x[:, None, :]) ** 2 + (y[:, :, None] - y[:, None, :]) ** 2


def smallest_margins(scenes: Scenes, scene: np.ndarray, question: np.ndarray) -> np.ndarray:
    """The smallest difference, over the jumps of a question, of the distances to the nearest two objects: (n,).

    Infinite for questions without a choice.
    """
    start, jumps = np.divmod(question, JUMPS)
    rows, paths = np.arange(len(scene)), full_paths(scenes, scene, start)
    apart = np.sqrt(squared_distances(scenes.positions[scene]))
    smallest = np.full(len(scene), np.inf)
    for jump in range(1, OBJECTS - 1):
        left = np.sort(np.take_along_axis(apart[rows, paths[:, jump - 1]], paths[:, jump:], 1), axis=1)
        smallest = np.where(jump <= jumps, np.minimum(smallest, left[:, 1] - left[:, 0]), smallest)
    return smallest


def sample_scenes(count: int, rng: np.random.Generator) -> Scenes:
    """``count`` random scenes, deterministic for a state of ``rng``."""
    found: list[np.ndarray] = []
    paths: list[np.ndarray] = []
    missing = count
    while missing > 0:
        positions = _place(min(missing * _TRIES, _BLOCK), rng)
        distances = squared_distances(positions)
        clear = ~has_ties(distances)
        found.append(positions[clear][:missing])
        paths.append(find_paths(distances[clear][:missing]))
        missing -= len(found[-1])
    if not found:
        found, paths = [np.empty((0, OBJECTS, 2), np.float32)], [np.empty((0, OBJECTS, JUMPS), np.uint8)]
    names = np.broadcast_to(np.arange(OBJECTS, dtype=np.uint8), (count, OBJECTS))
    colours, shapes = rng.permuted(names, axis=1), rng.permuted(names, axis=1)
    return Scenes(np.concatenate(found), colours, shapes, np.concatenate(paths))


def scenes(
    split: str, count: int | None = None, seed: int = 0, progress: Callable[[int, int], None] = lambda done, total: None
) -> Scenes:
    """The first ``count`` scenes of a split (by default all), always the same.

    Splits use independent random streams. ``progress`` is called with the scenes done and the total.
    """
    if split not in SPLITS:
        raise InputError(f"no split {split!r}; there are {', '.join(SPLITS)}")
    count = SPLITS[split] if count is None else count
    if count < 1:
        raise InputError(f"{count} scenes asked of split {split!r}; ask for 1 or more")
    chunks = []
    for chunk in range(-(-count // _CHUNK)):
        stream = np.random.SeedSequence(seed, spawn_key=(list(SPLITS).index(split), chunk))
        chunks.append(sample_scenes(_CHUNK, np.random.default_rng(stream)))
        progress(min((chunk + 1) * _CHUNK, count), count)
    return Scenes(*map(np.concatenate, zip(*(vars(chunk).values() for chunk in chunks), strict=True)))[:count]


def has_ties(squared: np.ndarray) -> np.ndarray:
    """Which scenes, bool (n,), have an object (nearly) as far from one object as from another."""
    ordered = np.sort(squared, axis=-1)[..., 1:]
    close: np.ndarray = ordered[..., 1:] < ordered[..., :-1] * (1 + TIE) ** 2
    return np.asarray(close.any(axis=(1, 2)))


def augment(
    positions: np.ndarray, rng: np.random.Generator, scale: tuple[float, float] = (0.8, 1.2), reflect: bool = True
) -> np.ndarray:
    """Rotate, scale and (half of the scenes) mirror each scene about the centre of the image; float32 (n, 8, 2).

    All distances of a scene change by one factor, so its paths and answers do not change. Coordinates stay within
    0.5 ± ``scale[1]`` · (0.5 - MARGIN) · √2: with the default scale within [-0.22, 1.22].
    """
    n = len(positions)
    angle = rng.uniform(0, 2 * np.pi, n)
    factor = rng.uniform(*scale, n)
    mirror = np.where(rng.random(n) < 0.5, -1.0, 1.0) if reflect else np.ones(n)
    cos, sin = factor * np.cos(angle), factor * np.sin(angle)
    x, y = mirror[:, None] * (positions[..., 0] - 0.5), positions[..., 1] - 0.5
    turned = [cos[:, None] * x - sin[:, None] * y, sin[:, None] * x + cos[:, None] * y]
    return (np.stack(turned, axis=-1) + 0.5).astype(np.float32)


def write(
    folder: str | Path,
    counts: dict[str, int] = SPLITS,
    seed: int = 0,
    image_size: int | None = None,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> None:
    """Write each split as ``<folder>/<split>/`` (arrays and sidecar), with ``image_size`` also as PNG files.

    The picture of scene 17 is ``<folder>/<split>/images/000017.png``. ``progress`` is called with the stage
    (``train``, ``train images``, …), the number done and the total.
    """
    for split, count in counts.items():
        made = scenes(split, count, seed, partial(progress, split))
        target = Path(folder) / split
        if image_size is not None:
            from rrn.tasks.pretty_clevr.figures import write_images

            (target / SIDECAR).unlink(missing_ok=True)
            write_images(target / "images", made, image_size, partial(progress, f"{split} images"))
        about: dict[str, Any] = {
            "task": "pretty-clevr",
            "generator_version": GENERATOR_VERSION,
            "split": split,
            "scenes": count,
            "questions": count * QUESTIONS,
            "seed": seed,
            "image_size": image_size,
            "colours": COLOURS,
            "shapes": SHAPES,
        }
        write_dataset(target, vars(made), about)


def read(folder: str | Path, split: str) -> Scenes:
    """The scenes of a split that `write` wrote to ``folder``."""
    source = Path(folder) / split
    arrays, _ = read_dataset(source, "pretty-clevr")
    positions = expected_array(arrays, "positions", source, np.float32, (OBJECTS, 2), 0, 1)
    of_objects = {"colours": (OBJECTS,), "shapes": (OBJECTS,), "paths": (OBJECTS, JUMPS)}
    numbers = {
        name: expected_array(arrays, name, source, np.uint8, shape, 0, OBJECTS - 1)
        for name, shape in of_objects.items()
    }
    made = Scenes(positions, **numbers)
    if any((np.sort(numbers[name], axis=1) != np.arange(OBJECTS)).any() for name in ("colours", "shapes")):
        raise InputError(f"{source}: two objects share a colour or a shape; write the data set again")
    return made


def _place(tries: int, rng: np.random.Generator) -> np.ndarray:
    """Of ``tries`` uniform placements those without overlap, float32 (fewer, 8, 2)."""
    x, y = np.float32(MARGIN) + np.float32(1 - 2 * MARGIN) * rng.random((2, OBJECTS, tries), dtype=np.float32)
    for k in range(1, OBJECTS):
        apart = ((x[:k] - x[k]) ** 2 + (y[:k] - y[k]) ** 2 >= np.float32(MIN_DISTANCE**2)).all(0)
        x, y = x[:, apart], y[:, apart]
    return np.stack([x.T, y.T], axis=-1)


def find_paths(squared: np.ndarray) -> np.ndarray:
    """From every object of every scene: the objects reached by 0 to 7 jumps, uint8 (n, 8 starts, 8 jumps)."""
    n = len(squared)
    each, start = np.arange(n)[:, None], np.arange(OBJECTS)
    paths = np.empty((n, OBJECTS, JUMPS), np.uint8)
    paths[:, :, 0] = here = np.broadcast_to(start, (n, OBJECTS))
    visited = np.zeros((n, OBJECTS, OBJECTS), bool)
    for jump in range(1, JUMPS):
        visited[each, start, here] = True
        paths[:, :, jump] = here = np.where(visited, np.inf, squared[each, here]).argmin(-1)
    return paths
