"""Pretty-CLEVR as a torch data set."""

from collections.abc import Sequence

import numpy as np
import torch
from torch.utils.data import Dataset

from rrn.tasks.pretty_clevr.data import QUESTIONS, Scenes, augment
from rrn.tasks.pretty_clevr.model import as_batch
from rrn.training.experiment import Batch


class StateQuestions(Dataset[Batch]):
    """Element ``scene * 128 + question`` is a question about a scene (`data.questions`); a list of indices is a batch.

    With ``augment``, each access rotates, mirrors and scales the scenes at random, with torch's generator.
    """

    def __init__(self, scenes: Scenes, augment: bool = False) -> None:
        self.scenes, self.augment = scenes, augment

    def __len__(self) -> int:
        return len(self.scenes) * QUESTIONS

    def __getitem__(self, index: int | Sequence[int]) -> Batch:
        batch = as_batch(self.scenes, *np.divmod(np.arange(len(self))[np.atleast_1d(index)], QUESTIONS))
        if self.augment:
            rng = np.random.default_rng(int(torch.randint(2**63 - 1, ())))
            batch["positions"] = torch.from_numpy(augment(batch["positions"].numpy(), rng))
        return batch if np.ndim(index) else {name: tensor[0] for name, tensor in batch.items()}
