"""Baselines of the paper's table on bAbI: an LSTM, the end-to-end memory network and the recurrent entity network."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from rrn.nn.updates import State
from rrn.tasks.babi.data import MIN_WIDTH
from rrn.tasks.babi.model import distinct_sentences
from rrn.tasks.babi.presets import EntNetPreset, LSTMPreset, MemN2NPreset
from rrn.tasks.babi.vocabulary import WORDS
from rrn.training.experiment import Batch


class StoryLSTM(nn.Module):
    """One LSTM over all words of the facts and the question. All steps have the same output."""

    def __init__(self, preset: LSTMPreset) -> None:
        super().__init__()
        self.words = nn.Embedding(len(WORDS) + 1, preset.word_width, padding_idx=0)
        self.lstm = nn.LSTM(preset.word_width, preset.hidden, batch_first=True)
        self.answer = nn.Linear(preset.hidden, len(WORDS))

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the answer, equal at every step: (steps, n, 177)."""
        words = batch["words"].flatten(1)
        known = words > 0
        words = words.gather(1, (~known).int().argsort(dim=1, stable=True))
        lengths = known.sum(1)
        packed = pack_padded_sequence(
            self.words(words[:, : int(lengths.max())]), lengths, batch_first=True, enforce_sorted=False
        )
        _, (last, _) = self.lstm(packed)
        logits = self.answer(last[0])
        return logits.expand(steps, -1, -1), State(logits)


class MemN2N(nn.Module):
    """The end-to-end memory network with weights tied across hops; a step is a hop.

    A sentence is a sum of word vectors weighted by position; facts also have a vector of their age.
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
        position = torch.arange(facts.shape[1], device=facts.device)
        age = (counts[:, None] - 1 - position).clamp(min=0)
        keys = self._sentences(words, self.remember)[facts] + self.remember_age(age)
        values = self._sentences(words, self.say)[facts] + self.say_age(age)
        u = self._sentences(words, self.question)[which[:, -1]] if state is None else state.h
        outputs = []
        for _ in range(steps):
            scores = (keys @ u[..., None])[..., 0].masked_fill(position >= counts[:, None], float("-inf"))
            u = self.carry(u) + (scores.softmax(1)[:, None] @ values)[:, 0]
            outputs.append(self.answer(u))
        return torch.stack(outputs), State(u)

    def _sentences(self, words: Tensor, table: nn.Embedding) -> Tensor:
        codes, known = table(words), words > 0
        position = torch.arange(1, words.shape[1] + 1, device=words.device)
        position = (position / known.sum(1, keepdim=True).clamp(min=1))[..., None]
        unit = torch.arange(1, codes.shape[-1] + 1, device=words.device) / codes.shape[-1]
        weights = (1 - position - unit * (1 - 2 * position)) * known[..., None]
        return (weights * codes).sum(1)


class EntNet(nn.Module):
    """The recurrent entity network, which reads the facts once in order. All steps have the same output.

    With s a fact, w_j the key of a memory slot, h_j its content and q the question::

        g_j = σ(s·h_j + s·w_j)                        gate of the slot
        h_j ← norm(h_j + g_j φ(U h_j + V w_j + W s))  new content
        answer = R φ(q + H Σ_j softmax_j(q·h_j) h_j)

    A sentence is the sum of its word vectors, each multiplied by a learned mask of its position.
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
        """Logits of the answer, equal at every step: (steps, n, 177)."""
        words, which = distinct_sentences(batch)
        counts, order = batch["fact_counts"].sort(descending=True)  # finished stories are at the end
        codes, question = (self._sentences(words, positions) for positions in (self.fact_places, self.question_places))
        facts, about_key, from_fact = (
            part[which[order, :-1]] for part in (codes, codes @ self.keys.T, self.from_fact(codes))
        )
        question = question[which[order, -1]]
        content, from_key, finished = self.keys.expand(len(facts), -1, -1), self.from_key(self.keys), []
        for index in range(int(counts[0])):
            running = int((counts > index).sum())
            finished.append(content[running:])
            content, fact = content[:running], (slice(running), index)
            gate = ((content @ facts[fact][..., None])[..., 0] + about_key[fact]).sigmoid()[..., None]
            new = self.keep(self.from_content(content) + from_key + from_fact[fact][:, None])
            content = F.normalize(content + gate * new, dim=-1)
        content = torch.cat([content, *reversed(finished)])
        share = (content @ question[..., None]).softmax(1)
        logits = self.answer(self.show(question + self.read((share * content).sum(1))))[order.argsort()]
        return logits.expand(steps, -1, -1), State(logits)

    def _sentences(self, words: Tensor, positions: Tensor) -> Tensor:
        beyond = max(0, words.shape[1] - MIN_WIDTH)
        masks = F.pad(positions, (0, 0, 0, beyond))[: words.shape[1]]
        return (self.words(words) * masks).sum(1)
