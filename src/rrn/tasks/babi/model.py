"""bAbI as a graph: the facts of a story are the nodes, the question one more, and everyone hears everyone."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.graphs import Graph, PackedGraphs
from rrn.layers import Product
from rrn.messages import AttentionMessage
from rrn.network import RRN
from rrn.readouts import Readout
from rrn.tasks.babi.data import EncodedQuestions, SentenceTable
from rrn.tasks.babi.data import Batch as Questions
from rrn.tasks.babi.presets import BabiPreset
from rrn.tasks.babi.vocabulary import WORDS
from rrn.training.experiment import Batch
from rrn.updates import ResidualUpdate, State

POINTERS = 3
SHORT = 10
PLACE_FEATURES = 9


def as_batch(questions: Questions, table: SentenceTable) -> Batch:
    words = torch.from_numpy(table.words.astype("int64")) + 1
    words = words * (torch.arange(words.shape[1]) < torch.from_numpy(table.lengths.astype("int64"))[:, None])
    facts, asked = torch.from_numpy(questions.facts), torch.from_numpy(questions.questions)
    return {
        "sentences": torch.cat([facts, asked[:, None]], dim=1),
        "words": torch.cat([words[facts], words[asked][:, None]], dim=1),
        "fact_counts": torch.from_numpy(questions.fact_counts),
        "support": torch.from_numpy(questions.support),
        "answers": torch.from_numpy(questions.answers),
        "tasks": torch.from_numpy(questions.tasks),
    }


def build(preset: BabiPreset) -> nn.Module:
    return RolesNetwork(preset)


class RoleEncoder(nn.Module):
    def __init__(self, width: int, roles: int, hidden: int) -> None:
        super().__init__()
        self.words = nn.Embedding(len(WORDS) + 1, width, padding_idx=0)
        with torch.no_grad():
            self.words.weight[1:] = torch.randn(len(WORDS), width) * width**-0.5
        self.places = nn.Parameter(torch.zeros(12, 2 * width))
        self.context = nn.Linear(width, 6 * width)
        self.role = nn.Linear(width, roles)
        self.out = nn.Linear((roles + 1) * width, hidden)

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """(n, 12) -> codes (n, hidden), roles (n, roles, width)"""
        known = words > 0
        codes = self.words(words)
        before, here, after = self.context(self.words.weight).chunk(3, dim=-1)
        around = F.pad(words, (1, 1))
        context = F.embedding(around[:, :-2], before) + F.embedding(words, here) + F.embedding(around[:, 2:], after)
        a, b = (context + self.places[: words.shape[1]]).chunk(2, dim=-1)
        context = a * b.sigmoid()
        share = self.role(context).masked_fill(~known[..., None], -1e4).softmax(1)
        roles = share.transpose(1, 2) @ codes
        mean = (context * known[..., None]).sum(1) * 0.3
        return self.out(torch.cat([roles.flatten(1), mean], dim=-1)), roles


class RolesNetwork(nn.Module):
    def __init__(self, preset: BabiPreset) -> None:
        super().__init__()
        hidden, roles = preset.hidden, preset.roles
        self.roles = roles
        self.encoder = RoleEncoder(preset.word_width, roles, hidden)
        self.join = Product(2 * hidden + roles * roles + 1, preset.update_width, hidden)
        self.join_plain = nn.Linear(2 * hidden + roles * roles + 1, hidden)
        self.norm = nn.LayerNorm(hidden)
        edge_features = preset.edge_features
        self.edge_match = nn.Linear(roles * roles, edge_features, bias=False)
        self.place = nn.Linear(PLACE_FEATURES, edge_features)
        self.readout = PointerReadout(hidden, preset.update_width, self.encoder.words)
        self.rrn = RRN(
            features=hidden,
            hidden=hidden,
            outputs=len(WORDS),
            edge_features=edge_features,
            encoder_layers=None,
            message=AttentionMessage(hidden, edge_features, preset.heads, preset.head_width),
            update=ResidualUpdate(hidden, preset.update_width, kind="product"),
            readout=self.readout,
        )

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        counts = batch["fact_counts"]
        n, width = batch["sentences"].shape
        distinct, which = batch["sentences"].flatten().unique(return_inverse=True)
        first = torch.empty_like(distinct).scatter_(0, which, torch.arange(len(which)))
        codes, roles = self.encoder(batch["words"].flatten(0, 1)[first])
        which = which.view(n, width)
        short = counts <= SHORT
        parts = [rows for rows in (short.nonzero()[:, 0], (~short).nonzero()[:, 0]) if len(rows)]
        outputs = []
        for rows in parts:
            output, state = self._run(which[rows], counts[rows], codes, roles, steps)
            outputs.append(F.pad(output, (0, (POINTERS + 1) * width + len(WORDS) - output.shape[-1])) if self.training else output)
        back = torch.cat(parts).argsort()
        return torch.cat(outputs, dim=1)[:, back], state

    def _run(self, which: Tensor, counts: Tensor, codes: Tensor, roles: Tensor, steps: int) -> tuple[Tensor, State]:
        graphs = PackedGraphs(counts + 1)
        n, width, _ = graphs.edge_shape
        nodes = torch.cat([which[:, -1:], which[:, : width - 1]], dim=1).flatten()[graphs.places]
        code = codes[nodes]
        padded = graphs.pad(roles.flatten(1)[nodes]).view(n, width, self.roles, -1)
        ours, theirs = padded.flatten(1, 2), padded.permute(0, 3, 2, 1).flatten(2)
        match = (ours @ theirs).view(n, width, -1, width)  # (n, receiver, roles², sender)
        to_question = graphs.pack(match[..., 0])
        question = code[(counts + 1).cumsum(0) - counts - 1].repeat_interleave(counts + 1, 0)
        is_question = graphs.places[:, None] % width == 0
        x = torch.cat([code, question, to_question, is_question.float()], dim=-1)
        x = self.norm(self.join(x) + self.join_plain(x))
        places = self.place(_places(width)).permute(0, 2, 3, 1)
        edges = self.edge_match.weight @ match + places
        return self.rrn.run(x, graphs, edges.permute(0, 3, 1, 2), steps=steps)


def _places(width: int) -> Tensor:
    """How the facts of an edge lie in time: (1, sender, receiver, PLACE_FEATURES). Node 0 is the question."""
    at = torch.arange(width)
    apart = at[None] - at[:, None]  # receiver minus sender
    facts = (at[None] > 0) & (at[:, None] > 0)
    before, after = (apart > 0) & facts, (apart < 0) & facts
    from_question = (at[:, None] == 0).expand(width, width)
    to_question = (at[None] == 0).expand(width, width)
    features = [
        before,
        after,
        before * apart / 4,
        after * -apart / 4,
        before & (apart == 1),
        after & (apart == -1),
        from_question,
        to_question,
        to_question * at[:, None] / 4,
    ]
    return torch.stack([f.float() for f in features], dim=-1)[None]


class PointerReadout(Readout):
    def __init__(self, hidden: int, width: int, words: nn.Embedding) -> None:
        super().__init__()
        self.point = nn.Linear(hidden, POINTERS + 1)
        self.answer = Product((POINTERS + 2) * hidden, width, words.weight.shape[1])
        self.answer_plain = nn.Linear((POINTERS + 2) * hidden, words.weight.shape[1])
        self.bias = nn.Parameter(torch.zeros(len(WORDS)))
        self.scale = nn.Parameter(torch.tensor(4.0))
        self.words = [words]

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Tensor:
        assert isinstance(graph, PackedGraphs)
        mask = graph.padded.mask
        points = graph.pad(self.point(h))  # (n, S, 4)
        pointers = points[..., :POINTERS].masked_fill(~mask[..., None], float("-inf"))
        share = torch.cat([pointers.softmax(1), (points[..., POINTERS:].sigmoid() * mask[..., None])], dim=-1)
        padded = graph.pad(h)
        said = (share.transpose(1, 2) @ padded).flatten(1)
        z = torch.cat([padded[:, 0], said], dim=-1)
        z = self.answer(z) + self.answer_plain(z)
        logits = self.scale * z @ self.words[0].weight[1:].T + self.bias
        if not self.training:
            return logits
        return torch.cat([logits, points.flatten(1)], dim=-1)
