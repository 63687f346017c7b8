"""The recurrent entity network: slots that each keep track of something, fact by fact."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.nn.updates import State
from rrn.tasks.babi.data import MIN_WIDTH
from rrn.tasks.babi.model import distinct_sentences
from rrn.tasks.babi.presets import EntNetPreset
from rrn.tasks.babi.vocabulary import WORDS
from rrn.training.experiment import Batch


class EntNet(nn.Module):
    """It has no steps: it reads the facts once, in their order. With s a fact, w_j a slot's key and h_j its content::

        g_j = σ(s·h_j + s·w_j)                        how much the fact is about the slot
        h_j ← norm(h_j + g_j φ(U h_j + V w_j + W s))  what it keeps of it
        answer = R φ(q + H Σ_j softmax_j(q·h_j) h_j)  q the question

    A sentence is the sum of its words' codes, each times a learned mask of its place.
    """

    def __init__(self, preset: EntNetPreset) -> None:
        super().__init__()
        width = preset.hidden
        self.words = nn.Embedding(len(WORDS) + 1, width, padding_idx=0)
        self.fact_places, self.question_places = (nn.Parameter(torch.ones(MIN_WIDTH, width)) for _ in range(2))
        self.keys = nn.Parameter(torch.randn(preset.slots, width) * 0.1)
        self.from_content, self.from_key, self.from_fact = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.keep, self.show = nn.PReLU(init=1.0), nn.PReLU(init=1.0)
        self.read = nn.Linear(width, width, bias=False)
        self.answer = nn.Linear(width, len(WORDS))
        nn.init.normal_(self.words.weight, std=0.1)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the answer, the same at every step: (steps, n, 177)."""
        words, which = distinct_sentences(batch)
        counts, order = batch["fact_counts"].sort(descending=True)  # so that stories leave from the end as they end
        codes, question = (self._sentences(words, places) for places in (self.fact_places, self.question_places))
        facts, about_key, from_fact = (
            part[which[order, :-1]] for part in (codes, codes @ self.keys.T, self.from_fact(codes))
        )
        question = question[which[order, -1]]
        content, from_key, ended = self.keys.expand(len(facts), -1, -1), self.from_key(self.keys), []
        for index in range(int(counts[0])):
            going = int((counts > index).sum())
            ended.append(content[going:])
            content, fact = content[:going], (slice(going), index)
            gate = ((content @ facts[fact][..., None])[..., 0] + about_key[fact]).sigmoid()[..., None]
            new = self.keep(self.from_content(content) + from_key + from_fact[fact][:, None])
            content = F.normalize(content + gate * new, dim=-1)
        content = torch.cat([content, *reversed(ended)])
        share = (content @ question[..., None]).softmax(1)
        logits = self.answer(self.show(question + self.read((share * content).sum(1))))[order.argsort()]
        return logits.expand(steps, -1, -1), State(logits)

    def _sentences(self, words: Tensor, places: Tensor) -> Tensor:
        beyond = max(0, words.shape[1] - MIN_WIDTH)
        masks = F.pad(places, (0, 0, 0, beyond))[: words.shape[1]]
        return (self.words(words) * masks).sum(1)
