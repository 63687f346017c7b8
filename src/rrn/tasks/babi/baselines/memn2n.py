"""The end-to-end memory network."""

import torch
from torch import Tensor, nn

from rrn.nn.updates import State
from rrn.tasks.babi.model import distinct_sentences
from rrn.tasks.babi.presets import MemN2NPreset
from rrn.tasks.babi.vocabulary import WORDS
from rrn.training.experiment import Batch


class MemN2N(nn.Module):
    """Its weights are tied from hop to hop; a step is a hop.

    Sentences are sums of word codes weighted by place, facts carry a code of their age.
    """

    def __init__(self, preset: MemN2NPreset) -> None:
        super().__init__()
        width = preset.hidden
        self.question, self.remember, self.say = (nn.Embedding(len(WORDS) + 1, width, padding_idx=0) for _ in range(3))
        self.remember_age, self.say_age = (nn.Embedding(preset.max_facts, width) for _ in range(2))
        self.carry = nn.Linear(width, width)
        self.answer = nn.Linear(width, len(WORDS))
        for table in (self.question, self.remember, self.say, self.remember_age, self.say_age):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the answer after each hop: (steps, n, 177)."""
        words, which = distinct_sentences(batch)
        facts, counts = which[:, :-1], batch["fact_counts"]
        place = torch.arange(facts.shape[1], device=facts.device)
        age = (counts[:, None] - 1 - place).clamp(min=0)
        keys = self._sentences(words, self.remember)[facts] + self.remember_age(age)
        values = self._sentences(words, self.say)[facts] + self.say_age(age)
        u = self._sentences(words, self.question)[which[:, -1]] if state is None else state.h
        outputs = []
        for _ in range(steps):
            scores = (keys @ u[..., None])[..., 0].masked_fill(place >= counts[:, None], float("-inf"))
            u = self.carry(u) + (scores.softmax(1)[:, None] @ values)[:, 0]
            outputs.append(self.answer(u))
        return torch.stack(outputs), State(u)

    def _sentences(self, words: Tensor, table: nn.Embedding) -> Tensor:
        codes, known = table(words), words > 0
        place = torch.arange(1, words.shape[1] + 1, device=words.device)
        place = (place / known.sum(1, keepdim=True).clamp(min=1))[..., None]
        unit = torch.arange(1, codes.shape[-1] + 1, device=words.device) / codes.shape[-1]
        weights = (1 - place - unit * (1 - 2 * place)) * known[..., None]
        return (weights * codes).sum(1)
