"""Networks for bAbI: the facts of a story are the nodes of a complete graph.

Every network takes the same batch (`rrn.tasks.babi.data.EncodedQuestions.batch`) and returns the logits of the 177
words after every step. Each distinct sentence of a batch is encoded once.
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
from rrn.tasks.babi.data import MIN_WIDTH
from rrn.tasks.babi.presets import BabiPreset, EntNetPreset, LSTMPreset, MemN2NPreset, PaperPreset, RolesPreset
from rrn.tasks.babi.vocabulary import WORDS
from rrn.training.experiment import Batch

POINTERS = 3
"""Supporting facts with a pointer each. Most questions have no more."""
POINTS = POINTERS + 1
"""Logits per node: one for each pointer, and one for whether the fact supports the answer."""
SHORT = 10
"""Stories with at most this many facts are padded separately from longer ones, to save padded edges."""
TIME_FEATURES = 9
ROLE_SHARPNESS = 20.0
"""Scale of the role logits: large enough that roles differ at initialisation."""


def build(preset: BabiPreset) -> nn.Module:
    from rrn.tasks.babi.baselines import EntNet, MemN2N, StoryLSTM

    networks = {RolesPreset: RolesNetwork, PaperPreset: PaperNetwork}
    return (networks | {LSTMPreset: StoryLSTM, MemN2NPreset: MemN2N, EntNetPreset: EntNet})[type(preset)](preset)


def distinct_sentences(batch: Batch) -> tuple[Tensor, Tensor]:
    """The words of each distinct sentence (distinct, words), and the index of each sentence of the batch (n, F + 1).

    They are sorted by first occurrence in the batch. Indices of the table depend on its history, which differs in a
    resumed run, and the order of gradient sums must not.
    """
    sentences = batch["sentences"]
    distinct, index = sentences.flatten().unique(return_inverse=True)
    positions = torch.arange(len(index), device=index.device)
    first = torch.full_like(distinct, len(index)).scatter_reduce_(0, index, positions, "amin")
    first, order = first.sort()
    return batch["words"].flatten(0, 1)[first], order.argsort()[index].view_as(sentences)


class SentenceLSTM(nn.Module):
    """The LSTM state after the last word of each sentence: words (n, words) → (n, hidden)."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.words = nn.Embedding(len(WORDS) + 1, width, padding_idx=0)
        self.lstm = nn.LSTM(width, hidden, batch_first=True)

    def forward(self, words: Tensor) -> Tensor:
        states, _ = self.lstm(self.words(words))
        last = (words > 0).sum(1).clamp(min=1) - 1
        return states[torch.arange(len(words), device=words.device), last]


class PaperNetwork(nn.Module):
    """The paper's network: LSTMs encode facts and question, the question is a feature of every edge."""

    def __init__(self, preset: PaperPreset) -> None:
        super().__init__()
        code, self.max_facts, self.joint = preset.word_width, preset.max_facts, preset.encoding != "none"
        if preset.position_shift > self.max_facts:
            raise InputError(
                f"--position-shift: expected at most --max-facts, {self.max_facts}, got {preset.position_shift}"
            )
        self.shift = preset.position_shift
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
        facts, asked = ({name: batch[name][:, part] for name in ("sentences", "words")} for part in _FACTS_AND_QUESTION)
        words, index = distinct_sentences(facts)
        exists = torch.arange(index.shape[1], device=index.device) < counts[:, None]
        codes = self.facts(words)[index[exists]]
        words, index = distinct_sentences(asked)
        question = self.question(words)[index[:, 0]]
        graph_of_node, position = exists.nonzero().T
        offset = torch.zeros_like(counts)
        if self.training and self.shift:
            offset = torch.randint(self.shift, (len(counts),), device=counts.device)
        position = F.one_hot(position + offset[graph_of_node], 2 * self.max_facts).float()
        x = torch.cat([codes, question[graph_of_node], position] if self.joint else [codes, position], dim=-1)
        edges = complete_edges_of(counts)
        edge_attr = question[graph_of_node[edges[0]]]
        graph = EdgeList(edges, len(x))
        return self.rrn.run(x, graph, edge_attr, graph_of_node, steps=steps, state=state)


_FACTS_AND_QUESTION = slice(None, -1), slice(-1, None)


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
    """Encodes a sentence as a vector and as one word vector for each of several learned semantic roles.

    A role is a softmax over the words of the sentence, computed from each word and its two neighbours. Its value is the
    mean word vector, so roles of different sentences can be compared.
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
        """Words (n, words) → sentence vectors (n, hidden), role vectors (n, roles, width)."""
        known = (words > 0)[..., None]
        before, here, after = self.context(self.words.weight).chunk(3, dim=-1)  # one product per word of the vocabulary
        around = F.pad(words, (1, 1))
        context = F.embedding(around[:, :-2], before) + F.embedding(words, here) + F.embedding(around[:, 2:], after)
        positions = F.pad(self.places, (0, 0, 0, max(0, words.shape[1] - MIN_WIDTH)))[: words.shape[1]]
        value, gate = (context + positions).chunk(2, dim=-1)
        context = value * gate.sigmoid()
        share = (ROLE_SHARPNESS * self.role(context)).masked_fill(~known, -1e4).softmax(1)
        roles = share.transpose(1, 2) @ self.words(words)
        gist = (context * known).sum(1) / known.sum(1).clamp(min=1).sqrt()
        return self.out(torch.cat([roles.flatten(1), gist], dim=-1)), roles


class Bucket:
    """Stories padded to the same number of nodes; node 0 of a story is its question, the others are its facts.

    Args:
        sizes: (stories,) nodes of each story.
        first: index of the bucket's first node among the packed nodes of all buckets.
    """

    logits: Tensor
    """Attention logits from the edge features: (stories, receiver, heads, sender)."""
    features: Tensor
    """Edge features, sender first: (stories, receiver, sender, features)."""

    def __init__(self, sizes: Tensor, first: int) -> None:
        self.stories, self.size = len(sizes), int(sizes.max())
        self.exists = torch.arange(self.size, device=sizes.device) < sizes[:, None]
        self.positions = self.exists.flatten().nonzero()[:, 0]
        self.nodes = slice(first, first + len(self.positions))
        others = ~torch.eye(self.size, dtype=torch.bool, device=sizes.device)
        self.no_edge = ~(self.exists[:, None] & others)[:, :, None]
        """(stories, receiver, 1, sender): whether there is no edge, because the sender is padding or the receiver."""

    def pad(self, packed: Tensor) -> Tensor:
        """(nodes of the bucket, width) → (stories, size, width), zeros at padding."""
        padded = packed.new_zeros(self.stories * self.size, packed.shape[-1]).index_copy(0, self.positions, packed)
        return padded.view(self.stories, self.size, -1)

    def pack(self, padded: Tensor) -> Tensor:
        """(stories, size, width) → (nodes of the bucket, width)."""
        return padded.flatten(0, 1).index_select(0, self.positions)


class StoryGraphs(PackedGraphs):
    """One complete graph per story, in `buckets` of short and long stories; their nodes are packed in this order."""

    buckets: list[Bucket]

    def __init__(self, sizes: Tensor, buckets: list[Bucket]) -> None:
        super().__init__(sizes)
        self.buckets = buckets


class RolesNetwork(nn.Module):
    """Attention between sentences whose edges compare their words role by role and give their order in time.

    The question is a node, the first of its graph. The message is `FactMessage`, the readout points at facts.
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
            encoder_layers=None,
            message=FactMessage(hidden, preset.edge_features, preset.heads, preset.head_width),
            update=ResidualUpdate(hidden, width, kind="product"),
            readout=PointerReadout(hidden, width, preset.word_width),
        )
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.bias = nn.Parameter(torch.zeros(len(WORDS)))

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Outputs, State]:
        """Logits of the answer (steps, n, 177): similarity of each word vector to the readout. The extra output
        ``points`` holds the logits of each node, the question first: (steps, n, F + 1, 4), see `PointerReadout`.

        The state has a row per sentence, stories with few facts first; the same batch can resume from it.
        """
        words, index = distinct_sentences(batch)
        vectors, roles = self.encoder(words)
        sizes = batch["fact_counts"] + 1
        short = sizes <= SHORT + 1
        rows = [part for part in (short.nonzero()[:, 0], (~short).nonzero()[:, 0]) if len(part)]
        buckets: list[Bucket] = []
        for part in rows:
            buckets.append(Bucket(sizes[part], buckets[-1].nodes.stop if buckets else 0))
        order = torch.cat(rows)
        graphs = StoryGraphs(sizes[order], buckets)
        outputs, state = self.run(graphs, [index[part] for part in rows], vectors, roles, steps, state)
        order, points = order.argsort(), outputs.extras["points"]
        points = F.pad(points, (0, 0, 0, index.shape[1] - points.shape[2]))
        return Outputs(self.logits(outputs.answer)[:, order], {"points": points[:, order]}), state

    def logits(self, answer: Tensor) -> Tensor:
        """Readout (…, word width) → logits of the words (…, 177), by similarity to each word vector."""
        return self.scale * (answer @ self.encoder.words.weight[1:].T) + self.bias

    def run(
        self,
        graphs: StoryGraphs,
        sentences: list[Tensor],
        vectors: Tensor,
        roles: Tensor,
        steps: int,
        state: State | None = None,
    ) -> tuple[Outputs, State]:
        """Run the RRN. ``sentences`` has, for each bucket, indices (stories, F + 1) of `RoleEncoder` outputs, the
        question last. The story order of the outputs is that of the buckets."""
        x = torch.cat([self._nodes(*pair, vectors, roles) for pair in zip(graphs.buckets, sentences, strict=True)])
        x = self.norm(self.join(x) + self.join_straight(x))
        return self.rrn.run(x, graphs, steps=steps, state=state)

    def _nodes(self, bucket: Bucket, sentences: Tensor, vectors: Tensor, roles: Tensor) -> Tensor:
        """Node features of a bucket (nodes, features); sets the edge features of the bucket."""
        n, size, device = bucket.stories, bucket.size, sentences.device
        node = sentences[:, torch.arange(size, device=device) - 1].flatten()[bucket.positions]  # the question first
        code = vectors[node]
        padded = bucket.pad(roles.flatten(1)[node]).view(n, size, *roles.shape[1:])
        receivers, senders = padded.flatten(1, 2), padded.permute(0, 3, 2, 1).flatten(2)
        same = (receivers @ senders).view(n, size, -1, size)  # (n, receiver, roles², sender)
        edges = self.compare.weight @ same + self.time(_time_features(size, device)).permute(1, 2, 0)
        message = self.rrn.message
        assert isinstance(message, FactMessage)
        bucket.logits, bucket.features = message.prefer.weight @ edges, edges.transpose(2, 3)
        question = bucket.pack(bucket.pad(code)[:, :1].expand(-1, size, -1))
        first = (torch.arange(size, device=device) == 0).float()
        is_question = bucket.pack(first.expand(n, -1)[..., None])
        return torch.cat([code, question, bucket.pack(same[..., 0]), is_question], dim=-1)


class FactMessage(AttentionMessage):
    """`AttentionMessage` on `StoryGraphs`, bucket by bucket. The edge features are those of the buckets."""

    def encode_edges(self, edge_attr: Tensor | None) -> None:
        """The edge features are in the buckets."""

    def forward(self, h: Tensor, graph: Graph, edge_term: Tensor | None) -> Tensor:
        assert isinstance(graph, StoryGraphs)
        projected, received = self.project(h), []
        for bucket in graph.buckets:
            shape = (bucket.stories, bucket.size, self.heads, self.width)
            query, key, value = (part.reshape(shape) for part in bucket.pad(projected[bucket.nodes]).chunk(3, dim=-1))
            scores = (query.transpose(1, 2) @ key.permute(0, 2, 3, 1)).transpose(1, 2) * self.width**-0.5
            scores = (scores + bucket.logits).masked_fill(bucket.no_edge, float("-inf"))
            no_sender = self.no_sender[:, None].expand(bucket.stories, bucket.size, -1, 1)
            share = torch.cat([scores, no_sender], dim=-1).softmax(-1)[..., :-1]  # (stories, receiver, heads, sender)
            values = (share.transpose(1, 2) @ value.transpose(1, 2)).transpose(1, 2)
            both = torch.cat([values.flatten(2), (share @ bucket.features).flatten(2)], dim=-1)
            received.append(bucket.pack(both))
        return self.norm(self.out(torch.cat(received)))


def _time_features(size: int, device: torch.device) -> Tensor:
    """Order and distance in time of two nodes: (sender, receiver, TIME_FEATURES). Node 0 is the question."""
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
    """Reads the question's node, three facts chosen by pointers, and the sum of all relevant facts.

    A pointer is a softmax over the nodes, where the question's node means no fact. Relevance is a sigmoid per fact.
    The output is (graphs, outputs); the extra output ``points`` holds the logits of the pointers and of the relevance:
    (graphs, size, 4).
    """

    def __init__(self, hidden: int, width: int, outputs: int) -> None:
        super().__init__()
        self.point = nn.Linear(hidden, POINTS)
        self.answer = Product((POINTS + 1) * hidden, width, outputs)
        self.answer_straight = nn.Linear((POINTS + 1) * hidden, outputs)

    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Outputs:
        assert isinstance(graph, StoryGraphs)
        logits, size, reads, all_points = self.point(h), max(bucket.size for bucket in graph.buckets), [], []
        for bucket in graph.buckets:
            padded, points = bucket.pad(h[bucket.nodes]), bucket.pad(logits[bucket.nodes])
            exists = bucket.exists[..., None]
            pointers = points[..., :POINTERS].masked_fill(~exists, float("-inf")).softmax(1)
            share = torch.cat([pointers, points[..., POINTERS:].sigmoid() * exists], dim=-1)
            reads.append(torch.cat([padded[:, 0], (share.transpose(1, 2) @ padded).flatten(1)], dim=-1))
            all_points.append(F.pad(points, (0, 0, 0, size - bucket.size)))
        read = torch.cat(reads)
        return Outputs(self.answer(read) + self.answer_straight(read), {"points": torch.cat(all_points)})
