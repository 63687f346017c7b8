"""bAbI: the paper's network and its ablations, one that learns on a CPU, and two baselines of the paper's table."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from rrn.presets import Dropped, Preset, Range, Share, Weight, Width


@dataclass(frozen=True, kw_only=True)
class BabiPreset(Preset):
    task = "babi"

    network: Literal["roles", "paper", "lstm", "memn2n"] = "roles"
    """roles: words in roles, messages that compete, pointers at facts. paper: LSTMs, MLPs and sums. lstm: one LSTM over
    the whole story. memn2n: end-to-end memory network."""
    hidden: Width = 96
    """Units of the state."""
    word_width: Width = 64
    """Units of a word's code (paper, lstm: units of the sentence LSTMs' input too)."""
    roles: Width = 6
    """roles: words picked out of each sentence, to be compared with those of others."""
    edge_features: Width = 16
    """roles: what of the comparison of two facts a message sees."""
    heads: Width = 6
    """roles: softmaxes over senders a step."""
    head_width: Width = 16
    """roles: units of a head."""
    update_width: Width = 128
    """roles: products in g."""
    encoding: Literal["mlp", "linear", "none"] = "mlp"
    """paper: how fact, question and position become x: by an MLP, a linear layer, or fact and position alone."""
    dropout: Dropped = 0.0
    """paper: share dropped in the last two layers of r."""
    support_loss: Weight = 1.0
    """roles: weight of the loss on which facts support the answer (strong supervision). 0: answers alone."""
    max_facts: Annotated[int, Range(least=1, most=1000)] = 20
    """Facts kept before a question, the last ones."""
    by_error: Share = 0.9
    """Share of the questions drawn from tasks in proportion to their running error; the rest from all tasks alike."""
    data: Path | None = None
    """A folder or archive of official files to train on. Unset: generated questions, ever new."""
    tasks: Annotated[tuple[int, ...], Range(least=1, most=20)] = tuple(range(1, 21))
    """The tasks trained on."""


PAPER = BabiPreset(
    name="babi-paper",
    about="bAbI as in the paper's appendix: LSTMs of 32 units, MLPs of 3 layers of 128, the question on every edge.",
    network="paper",
    hidden=128,
    word_width=32,
    dropout=0.5,
    support_loss=0.0,
    by_error=0.0,
    steps=3,
    batch_size=512,
    updates=5_000_000,
    optimizer="adam",
    lr=2e-4,
    l2=1e-5,
    schedule="constant",
    warmup=0,
    clip=None,
    ema=None,
    validate_every=500,
)

_ROLES = BabiPreset(
    name="babi",
    about="All 20 tasks of bAbI in one network: words in roles, messages that compete, pointers at the facts. "
    "Strongly supervised: in training it is told which facts support the answer.",
    max_facts=30,
    steps=4,
    batch_size=64,
    updates=1_500,
    lr=2e-3,
    weight_decay=1e-4,
    ema=0.998,
    validate_every=150,
)

PRESETS = (
    _ROLES,
    replace(
        _ROLES,
        name="babi-answers",
        about="As babi, but told answers alone, not which facts support them: what the paper's network is told.",
        support_loss=0.0,
    ),
    PAPER,
    replace(
        PAPER,
        name="babi-paper-linear",
        about="Ablation of babi-paper: fact, question and position encoded by one linear layer.",
        encoding="linear",
    ),
    replace(
        PAPER,
        name="babi-paper-apart",
        about="Ablation of babi-paper: facts encoded without the question.",
        encoding="none",
    ),
    replace(
        PAPER,
        name="babi-paper-no-dropout",
        about="Ablation of babi-paper: no dropout.",
        dropout=0.0,
    ),
    BabiPreset(
        name="babi-lstm",
        about="A baseline of the paper's table: one LSTM over all words of the story and the question.",
        network="lstm",
        hidden=128,
        word_width=32,
        support_loss=0.0,
        by_error=0.0,
        steps=1,
        batch_size=64,
        updates=5_000,
        lr=2e-3,
        ema=0.998,
        validate_every=250,
    ),
    BabiPreset(
        name="babi-memn2n",
        about="A baseline of the paper's table: the end-to-end memory network with three hops.",
        network="memn2n",
        hidden=64,
        support_loss=0.0,
        by_error=0.0,
        max_facts=50,
        steps=3,
        loss="last",
        batch_size=64,
        updates=5_000,
        lr=2e-3,
        ema=0.998,
        validate_every=250,
    ),
)
