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
        self.words = nn.Embedding(len(WORDS) + 1, width)
        nn.init.normal_(self.words.weight, std=width**-0.5)
        self.places = nn.Parameter(torch.zeros(12, width))
        self.context = nn.Linear(3 * width, 2 * width)
        self.role = nn.Linear(width, roles)
        self.out = nn.Linear((roles + 1) * width, hidden)

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """(n, 12) -> codes (n, hidden), roles (n, roles, width)"""
        known = words > 0
        codes = self.words(words) * known[..., None]
        around = F.pad(codes, (0, 0, 1, 1))
        n = words.shape[1]
        context = self.context(torch.cat([around[:, :n], codes + self.places[:n], around[:, 2:]], dim=-1))
        a, b = context.chunk(2, dim=-1)
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
        edge_features = roles * roles + PLACE_FEATURES
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
        # question first, then facts
        order = torch.cat([torch.tensor([width - 1]), torch.arange(width - 1)])
        sentences, words = batch["sentences"][:, order], batch["words"][:, order]
        graphs = PackedGraphs(counts + 1)
        assert graphs.edge_shape[1] == width
        flat = sentences.flatten()[graphs.places]
        distinct, which = flat.unique(return_inverse=True)
        first = torch.empty_like(distinct).scatter_(0, which, graphs.places)
        codes, roles = self.encoder(words.flatten(0, 1)[first])
        code, role = codes[which], roles[which].flatten(1)
        roles = graphs.pad(role).view(n, width, self.roles, -1)
        padded = roles.flatten(1, 2)
        match = (padded @ padded.transpose(1, 2)).view(n, width, self.roles, width, self.roles)
        match = match.transpose(2, 3).flatten(3)  # (n, i, j, roles²)
        to_question = graphs.pack(match[:, :, 0])
        question = code[(counts + 1).cumsum(0) - counts - 1].repeat_interleave(counts + 1, 0)
        is_question = graphs.places[:, None] % width == 0
        x = torch.cat([code, question, to_question, is_question.float()], dim=-1)
        x = self.norm(self.join(x) + self.join_plain(x))
        edges = torch.cat([match, _places(width).expand(n, -1, -1, -1)], dim=-1)
        return self.rrn.run(x, graphs, edges, steps=steps, state=state)


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
        self.say = nn.Linear(hidden, (POINTERS + 1) * hidden)
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
        said = graph.pad(self.say(h)).unflatten(-1, (POINTERS + 1, -1))
        said = (share[..., None] * said).sum(1).flatten(1)
        first = graph.pad(h)[:, 0]
        z = torch.cat([first, said], dim=-1)
        z = self.answer(z) + self.answer_plain(z)
        logits = self.scale * z @ self.words[0].weight[1:].T + self.bias
        if not self.training:
            return logits
        return torch.cat([logits, points.flatten(1)], dim=-1)
