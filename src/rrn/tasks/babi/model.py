"""bAbI as a graph: the facts of a story are the nodes, and everyone hears everyone.

Every network here takes the same batch (`as_batch`) and returns logits of the 177 words for every step. All of bAbI
has a few thousand distinct sentences, so each distinct sentence of a batch is encoded once.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.graphs import EdgeList, Graph, PackedGraphs
from rrn.network import RRN
from rrn.nn.layers import Product
from rrn.nn.messages import AttentionMessage
from rrn.nn.readouts import Outputs, Readout
from rrn.nn.updates import ResidualUpdate, State
from rrn.tasks.babi.data import MIN_WIDTH, SentenceTable
from rrn.tasks.babi.data import Batch as Questions
from rrn.tasks.babi.presets import BabiPreset, EntNetPreset, LSTMPreset, MemN2NPreset, PaperPreset, RolesPreset
from rrn.tasks.babi.vocabulary import WORDS
from rrn.training.experiment import Batch

POINTERS = 3
"""Supporting facts that the roles network points at one by one. Most questions have no more."""
POINTS = POINTERS + 1
"""Logits per node: the pointers, and whether it supports the answer at all."""
SHORT = 10
"""Questions with at most this many facts are run apart from longer ones, so that few edges are padding."""
TIME_FEATURES = 9
ROLE_SHARPNESS = 20.0
"""Scale of the logits that choose words for roles: large enough that roles differ before anything is learned."""


def as_batch(questions: Questions, table: SentenceTable) -> Batch:
    """Questions as tensors, the question itself as the last sentence.

    ``sentences`` (n, F + 1): numbers, equal where sentences are; ``words`` (n, F + 1, words): word number + 1, 0 behind
    the sentence's end; ``fact_counts``, ``support``, ``answers`` and ``tasks`` as in `rrn.tasks.babi.data.Batch`.
    """
    words = torch.from_numpy(table.words.astype("int64")) + 1
    lengths = torch.from_numpy(table.lengths.astype("int64"))
    words = words * (torch.arange(words.shape[1], device=words.device) < lengths[:, None])
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
    from rrn.tasks.babi import baselines

    match preset:
        case RolesPreset():
            return RolesNetwork(preset)
        case PaperPreset():
            return PaperNetwork(preset)
        case LSTMPreset():
            return baselines.StoryLSTM(preset)
        case MemN2NPreset():
            return baselines.MemN2N(preset)
        case EntNetPreset():
            return baselines.EntNet(preset)
    raise TypeError(f"no network for {type(preset).__name__}")


def distinct_sentences(batch: Batch) -> tuple[Tensor, Tensor]:
    """The words of each distinct sentence (distinct, words), and which of them stands where (n, F + 1).

    In the order of their first places in the batch, not of their numbers: those depend on all that the table has seen,
    and a resumed run, whose table is younger, must add the same gradients in the same order.
    """
    numbers = batch["sentences"]
    distinct, which = numbers.flatten().unique(return_inverse=True)
    places = torch.arange(len(which), device=which.device)
    first = torch.full_like(distinct, len(which)).scatter_reduce_(0, which, places, "amin")
    first, order = first.sort()
    return batch["words"].flatten(0, 1)[first], order.argsort()[which].view_as(numbers)


class SentenceLSTM(nn.Module):
    """The state of an LSTM after a sentence's last word: words (n, words) → (n, hidden)."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.words = nn.Embedding(len(WORDS) + 1, width, padding_idx=0)
        self.lstm = nn.LSTM(width, hidden, batch_first=True)

    def forward(self, words: Tensor) -> Tensor:
        states, _ = self.lstm(self.words(words))
        last = (words > 0).sum(1).clamp(min=1) - 1
        return states[torch.arange(len(words), device=words.device), last]


class PaperNetwork(nn.Module):
    """The appendix's network: LSTMs for facts and question, the question on every edge, one answer per step."""

    def __init__(self, preset: PaperPreset) -> None:
        super().__init__()
        code, self.max_facts, self.joint = preset.word_width, preset.max_facts, preset.encoding != "none"
        if preset.shift > self.max_facts:
            raise InputError(f"--shift {preset.shift}: positions are shifted by --max-facts, {self.max_facts}, at most")
        self.shift = preset.shift
        self.facts = SentenceLSTM(preset.word_width, code)
        self.question = SentenceLSTM(preset.word_width, code)
        self.rrn = RRN(
            features=code * (1 + self.joint) + 2 * self.max_facts,
            hidden=preset.hidden,
            outputs=len(WORDS),
            edge_features=code,
            encoder_layers=0 if preset.encoding == "linear" else preset.layers,
            message_layers=preset.layers,
            update="lstm",
            update_layers=preset.layers,
            readout="graph",
            readout_layers=max(preset.layers - 1, 1),
            dropout=preset.dropout,
            dropout_layers=2,
        )

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the answer: (steps, n, 177)."""
        counts = batch["fact_counts"]
        facts = {"sentences": batch["sentences"][:, :-1], "words": batch["words"][:, :-1]}
        asked = {"sentences": batch["sentences"][:, -1:], "words": batch["words"][:, -1:]}
        words, which = distinct_sentences(facts)
        exists = torch.arange(which.shape[1], device=which.device) < counts[:, None]
        codes = self.facts(words)[which[exists]]
        words, which = distinct_sentences(asked)
        question = self.question(words)[which[:, 0]]
        graph_of_node, place = exists.nonzero().T
        offset = torch.zeros_like(counts)
        if self.training and self.shift:
            offset = torch.randint(self.shift, (len(counts),), device=counts.device)
        place = F.one_hot(place + offset[graph_of_node], 2 * self.max_facts).float()
        x = torch.cat([codes, question[graph_of_node], place] if self.joint else [codes, place], dim=-1)
        edges = complete_edges_of(counts)
        edge_attr = question[graph_of_node[edges[0]]]
        graph = EdgeList(edges, len(x))
        return self.rrn.run(x, graph, edge_attr, graph_of_node, steps=steps, state=state)


def complete_edges_of(counts: Tensor) -> Tensor:
    """The ``edge_index`` (2, edges) of packed complete graphs with ``counts`` nodes each, ordered by receiver."""
    size = counts.repeat_interleave(counts)
    first = (counts.cumsum(0) - counts).repeat_interleave(counts)
    receiver = torch.arange(len(size), device=counts.device).repeat_interleave(size - 1)
    skipped = torch.arange(len(receiver), device=counts.device) - ((size - 1).cumsum(0) - (size - 1)).repeat_interleave(
        size - 1
    )
    sender = first[receiver] + skipped
    return torch.stack([sender + (sender >= receiver), receiver])


class RoleEncoder(nn.Module):
    """A sentence as a code, and as the words that play its roles: whoever acts, the thing, the place …, as learned.

    A role is a softmax over the sentence's words, by each word and its two neighbours; what it picks is the word's
    own code, so that the roles of two sentences can be compared.
    """

    def __init__(self, width: int, roles: int, hidden: int) -> None:
        super().__init__()
        self.words = nn.Embedding(len(WORDS) + 1, width, padding_idx=0)
        with torch.no_grad():
            self.words.weight[1:] = torch.randn(len(WORDS), width) * width**-0.5
        self.context = nn.Linear(width, 6 * width)
        self.places = nn.Parameter(torch.zeros(MIN_WIDTH, 2 * width))
        self.role = nn.Linear(width, roles)
        self.out = nn.Linear((roles + 1) * width, hidden)

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Words (n, words) → codes (n, hidden), roles (n, roles, width)."""
        known = (words > 0)[..., None]
        before, here, after = self.context(self.words.weight).chunk(3, dim=-1)  # of each word there is, not each read
        around = F.pad(words, (1, 1))
        context = F.embedding(around[:, :-2], before) + F.embedding(words, here) + F.embedding(around[:, 2:], after)
        places = F.pad(self.places, (0, 0, 0, max(0, words.shape[1] - MIN_WIDTH)))[: words.shape[1]]
        value, gate = (context + places).chunk(2, dim=-1)
        context = value * gate.sigmoid()
        share = (ROLE_SHARPNESS * self.role(context)).masked_fill(~known, -1e4).softmax(1)
        roles = share.transpose(1, 2) @ self.words(words)
        gist = (context * known).sum(1) / known.sum(1).clamp(min=1).sqrt()
        return self.out(torch.cat([roles.flatten(1), gist], dim=-1)), roles


class RolesNetwork(nn.Module):
    """Facts that know which words they share, in which roles, and which came first.

    The question is a node as well, the first of its graph. An edge knows how the words of its two sentences compare,
    role by role, and how they lie in time; messages compete (`AttentionMessage`); r points at facts.
    """

    def __init__(self, preset: RolesPreset) -> None:
        super().__init__()
        hidden, width, pairs = preset.hidden, preset.update_width, preset.roles**2
        self.encoder = RoleEncoder(preset.word_width, preset.roles, hidden)
        self.join = Product(2 * hidden + pairs + 1, width, hidden)
        self.join_straight = nn.Linear(2 * hidden + pairs + 1, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.compare = nn.Linear(pairs, preset.edge_features, bias=False)
        self.time = nn.Linear(TIME_FEATURES, preset.edge_features)
        self.rrn = RRN(
            features=hidden,
            hidden=hidden,
            edge_features=preset.edge_features,
            encoder_layers=None,
            message=AttentionMessage(hidden, preset.edge_features, preset.heads, preset.head_width),
            update=ResidualUpdate(hidden, width, kind="product"),
            readout=PointerReadout(hidden, width, preset.word_width),
        )
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.bias = nn.Parameter(torch.zeros(len(WORDS)))

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Outputs, State]:
        """Logits of the answer (steps, n, 177): how near each word's code is to what is read out. Beside them, as
        ``points``, those of each node, the question's first: (steps, n, F + 1, 4), see `PointerReadout`.

        The state is that of the last graphs run; no run can go on from it.
        """
        if state is not None:
            raise InputError("state: this network sorts its graphs by size and cannot go on from a state; leave it out")
        words, which = distinct_sentences(batch)
        codes, roles = self.encoder(words)
        short = batch["fact_counts"] <= SHORT
        parts = [rows for rows in (short.nonzero()[:, 0], (~short).nonzero()[:, 0]) if len(rows)]
        answers, points = [], []
        for rows in parts:
            graphs = PackedGraphs(batch["fact_counts"][rows] + 1)
            said, state = self.read(which[rows], graphs, codes, roles, steps)
            answers.append(self.logits(said.answer))
            missing = which.shape[1] - said.extras["points"].shape[2]
            points.append(F.pad(said.extras["points"], (0, 0, 0, missing)))
        assert state is not None
        order = torch.cat(parts).argsort()
        return Outputs(torch.cat(answers, dim=1)[:, order], {"points": torch.cat(points, dim=1)[:, order]}), state

    def logits(self, said: Tensor) -> Tensor:
        """Of the words, by how near each word's code is to what is read out."""
        return self.scale * (said @ self.encoder.words.weight[1:].T) + self.bias

    def read(
        self, which: Tensor, graphs: PackedGraphs, codes: Tensor, roles: Tensor, steps: int
    ) -> tuple[Outputs, State]:
        """What r says of stories whose sentences are numbered in ``which`` (n, F + 1), the question last."""
        n, size, _ = graphs.edge_shape
        node = which[:, torch.arange(size, device=which.device) - 1].flatten()[graphs.places]  # the question first
        code = codes[node]
        padded = graphs.pad(roles.flatten(1)[node]).view(n, size, *roles.shape[1:])
        receivers, senders = padded.flatten(1, 2), padded.permute(0, 3, 2, 1).flatten(2)
        same = (receivers @ senders).view(n, size, -1, size)  # (n, receiver, roles², sender)
        question = graphs.pack(graphs.pad(code)[:, :1].expand(-1, size, -1))
        first = (torch.arange(size, device=which.device) == 0).float()
        is_question = graphs.pack(first.expand(n, -1)[..., None])
        x = torch.cat([code, question, graphs.pack(same[..., 0]), is_question], dim=-1)
        x = self.norm(self.join(x) + self.join_straight(x))
        edges = self.compare.weight @ same + self.time(_time_features(size, which.device)).permute(1, 2, 0)
        return self.rrn.run(x, graphs, edges.permute(0, 3, 1, 2), steps=steps)


def _time_features(size: int, device: torch.device) -> Tensor:
    """How two nodes lie in time: (sender, receiver, TIME_FEATURES). Node 0 is the question, the others facts."""
    receiver = torch.arange(size, device=device)
    sender = receiver[:, None]
    facts = (sender > 0) & (receiver > 0)
    later = receiver - sender
    before, after = facts & (later > 0), facts & (later < 0)
    to_question = (receiver == 0).expand(size, size)
    features = [
        before,
        after,
        before * later / 4,
        after * -later / 4,
        facts & (later == 1),
        facts & (later == -1),
        (sender == 0).expand(size, size),
        to_question,
        to_question * sender / 4,
    ]
    return torch.stack([feature.float() for feature in features], dim=-1)


class PointerReadout(Readout):
    """r reads the question's node, three facts that it points at (softmaxes over the nodes; the question's node
    stands for no fact), and the sum of all facts that it holds relevant (a sigmoid each).

    (graphs, outputs); beside it, as ``points``, the logits by which it chose: (graphs, size, 4), one for each pointer
    and one for being relevant.
    """

    def __init__(self, hidden: int, width: int, outputs: int) -> None:
        super().__init__()
        self.point = nn.Linear(hidden, POINTS)
        self.answer = Product((POINTS + 1) * hidden, width, outputs)
        self.answer_straight = nn.Linear((POINTS + 1) * hidden, outputs)

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Outputs:
        assert isinstance(graph, PackedGraphs)
        padded, points = graph.pad(h), graph.pad(self.point(h))
        exists = graph.exists[..., None]
        pointers = points[..., :POINTERS].masked_fill(~exists, float("-inf")).softmax(1)
        share = torch.cat([pointers, points[..., POINTERS:].sigmoid() * exists], dim=-1)
        read = torch.cat([padded[:, 0], (share.transpose(1, 2) @ padded).flatten(1)], dim=-1)
        answer = self.answer(read) + self.answer_straight(read)
        return Outputs(answer, {"points": points})
