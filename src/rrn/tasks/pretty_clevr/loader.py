"""Pretty-CLEVR as torch data sets: state descriptions or images, with questions.

Needs torch, numpy and the data and figures modules beside it, nothing else of the package::

    from rrn.tasks.pretty_clevr import data, loader

    train = loader.StateQuestions(data.scenes("train", 10_000), augment=True)
    for batch in loader.batches(train, 128, shuffle=True):
        batch["positions"], batch["colours"], batch["shapes"], batch["start"], batch["jumps"], batch["answer"]

Element ``scene * 128 + question`` is one question about one scene (`data.questions` numbers them). A data set also
takes a list of numbers and gives them stacked, which `batches` uses: many times faster than collating one by one. A
plain ``DataLoader(train, batch_size=128)`` works too.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, Sampler, SequentialSampler

from rrn.errors import InputError
from rrn.tasks.pretty_clevr.data import QUESTIONS, Scenes, augment, questions
from rrn.tasks.pretty_clevr.figures import image_path, read_image, render


class _Questions(Dataset[dict[str, torch.Tensor]]):
    def __init__(self, scenes: Scenes) -> None:
        self.scenes = scenes

    def __len__(self) -> int:
        return len(self.scenes) * QUESTIONS

    def __getitem__(self, index: int | Sequence[int]) -> dict[str, torch.Tensor]:
        wanted = np.atleast_1d(np.asarray(index, dtype=np.int64))
        if wanted.size and not (-len(self) <= wanted.min() and wanted.max() < len(self)):
            raise IndexError(f"question {index} of {len(self)}")
        scene, question = np.divmod(wanted % max(len(self), 1), QUESTIONS)
        asked = questions(self.scenes, scene, question)
        batch = {**self._observe(scene), **{name: torch.from_numpy(array) for name, array in asked._asdict().items()}}
        return batch if np.ndim(index) else {name: tensor[0] for name, tensor in batch.items()}

    def _observe(self, scene: np.ndarray) -> dict[str, torch.Tensor]:
        raise NotImplementedError


class StateQuestions(_Questions):
    """Questions about scenes given as positions float32 (8, 2), colours and shapes int64 (8,), each 0-7.

    Beside them ``start`` (0-15), ``jumps`` (0-7) and ``answer`` (0-15), int64 scalars. With ``augment`` each access
    turns, mirrors and scales the scene anew, with numbers from torch's generator (each worker of a loader has its own).
    """

    def __init__(self, scenes: Scenes, augment: bool = False) -> None:
        super().__init__(scenes)
        self.augment = augment

    def _observe(self, scene: np.ndarray) -> dict[str, torch.Tensor]:
        positions = self.scenes.positions[scene]
        if self.augment:
            seed = int(torch.randint(2**63 - 1, ()))
            positions = augment(positions, np.random.default_rng(seed))
        return {
            "positions": torch.from_numpy(positions),
            "colours": torch.from_numpy(self.scenes.colours[scene].astype(np.int64)),
            "shapes": torch.from_numpy(self.scenes.shapes[scene].astype(np.int64)),
        }


class ImageQuestions(_Questions):
    """Questions about scenes given as ``image``, uint8 (3, size, size), beside start, jumps and answer.

    Drawn when asked for, or, with ``folder``, read from the PNG files that `data.write` put into ``<split>/images``.
    A batch draws or reads each of its scenes once.
    """

    def __init__(self, scenes: Scenes, size: int = 128, folder: str | Path | None = None) -> None:
        super().__init__(scenes)
        self.size = size
        self.folder = folder

    def _observe(self, scene: np.ndarray) -> dict[str, torch.Tensor]:
        distinct, place = np.unique(scene, return_inverse=True)
        images = np.array([self._image(int(index)) for index in distinct]).reshape(-1, self.size, self.size, 3)
        return {"image": torch.from_numpy(np.ascontiguousarray(images[place].transpose(0, 3, 1, 2)))}

    def _image(self, index: int) -> np.ndarray:
        if self.folder is None:
            return render(self.scenes.scene(index), self.size)
        path = image_path(self.folder, index)
        image = read_image(path)
        if image.shape[:2] != (self.size, self.size):
            raise InputError(f"{path}: {image.shape[1]} pixels wide; ask for size={image.shape[1]}, not {self.size}")
        return image


def batches(
    dataset: StateQuestions | ImageQuestions,
    batch_size: int,
    shuffle: bool = False,
    drop_last: bool = False,
    generator: torch.Generator | None = None,
    **options: Any,
) -> DataLoader[dict[str, torch.Tensor]]:
    """A `DataLoader` that fetches whole batches; ``options`` (workers, pinning ...) go to it."""
    order: Sampler[int] = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
    sampler = BatchSampler(order, batch_size, drop_last)
    return DataLoader(dataset, batch_size=None, sampler=sampler, generator=generator, **options)
