"""bAbI: the paper's network and its ablations, one that learns on a CPU, and baselines of the paper's table."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from rrn.training.presets import PAPERS_OPTIMIZER, Dropped, Needs, Preset, Range, Share, Weight, Width

Few = Annotated[int, Range(least=1, most=64)]


@dataclass(frozen=True, kw_only=True)
class BabiPreset(Preset):
    """What all networks of this task share."""

    task = "babi"

    network: Annotated[str, tyro.conf.Suppress] = ""
    segment: Annotated[Literal[None], tyro.conf.Suppress] = None
    """Every question is run as a whole."""

    hidden: Width = 96
    """Units of the state."""
    max_facts: Annotated[int, Range(least=1, most=1000)] = 20
    """Facts kept before a question, the last ones."""
    by_error: Share = 0.0
    """Share of the questions drawn from tasks in proportion to their running error; the rest from all tasks alike."""
    short_first: bool = False
    """Begin with the tenth of each task's questions that have the fewest facts, and take twice as many whenever the
    task's running error has fallen below a third."""
    data: Path | None = None
    """A folder or archive of official files to train on. Unset: generated questions, ever new."""
    tasks: Annotated[tuple[int, ...], Range(least=1, most=20)] = tuple(range(1, 21))
    """The tasks trained on."""
    unanswerable: Annotated[Share, Needs("data", False)] = 0.0
    """Share of the generated questions whose answer is not in the story."""
    everyday: Annotated[Share, Needs("data", False)] = 0.0
    """Share of the generated questions of tasks 1–3 and 5–8 that are about stories as a person may tell them: short, of
    any people in any places."""


@dataclass(frozen=True, kw_only=True)
class RolesPreset(BabiPreset):
    """Words in roles, messages that compete, pointers at facts."""

    network: Annotated[Literal["roles"], tyro.conf.Suppress] = "roles"
    word_width: Width = 64
    """Units of a word's code."""
    roles: Few = 6
    """Words picked out of each sentence, to be compared with those of others."""
    edge_features: Width = 16
    """What of the comparison of two facts a message sees."""
    heads: Few = 6
    """Softmaxes over senders per step."""
    head_width: Width = 16
    """Units of a head."""
    update_width: Width = 128
    """Products in g."""
    support_loss: Weight = 1.0
    """Weight of the loss on which facts support the answer (strong supervision). 0: answers alone."""


@dataclass(frozen=True, kw_only=True)
class PaperPreset(BabiPreset):
    """LSTMs, MLPs and sums."""

    network: Annotated[Literal["paper"], tyro.conf.Suppress] = "paper"
    word_width: Width = 32
    """Units of a word's code and of a sentence's."""
    layers: Annotated[int, Range(least=1, most=100)] = 3
    """ReLU layers of each MLP (of r one fewer, but at least one)."""
    encoding: Literal["mlp", "linear", "none"] = "mlp"
    """How fact, question and position become x: by an MLP, a linear layer, or fact and position alone."""
    dropout: Dropped = 0.0
    """Share dropped in the last two layers of r."""
    shift: Annotated[int, Range(least=0, most=1000)] = 20
    """In training the positions of a story's facts, which count from 1, are shifted by a random number below this, as
    in the paper. 0: they stay as they are."""


@dataclass(frozen=True, kw_only=True)
class LSTMPreset(BabiPreset):
    """One LSTM over the whole story. It has no steps."""

    network: Annotated[Literal["lstm"], tyro.conf.Suppress] = "lstm"
    word_width: Width = 32
    """Units of a word's code."""


@dataclass(frozen=True, kw_only=True)
class MemN2NPreset(BabiPreset):
    """The end-to-end memory network; a step is a hop."""

    network: Annotated[Literal["memn2n"], tyro.conf.Suppress] = "memn2n"


@dataclass(frozen=True, kw_only=True)
class EntNetPreset(BabiPreset):
    """The recurrent entity network. It has no steps."""

    network: Annotated[Literal["entnet"], tyro.conf.Suppress] = "entnet"
    slots: Width = 20
    """Entities it keeps track of."""


KINDS = (RolesPreset, PaperPreset, LSTMPreset, MemN2NPreset, EntNetPreset)
"""Each network's own settings."""

_PAPER = PaperPreset(
    name="babi-paper",
    about="bAbI as in the paper's appendix: LSTMs of 32 units, MLPs of 3 layers of 128, the question on every edge. "
    "Grown: --layers 1 first, then --start-from its weights.",
    hidden=128,
    dropout=0.5,
    shift=0,
    by_error=0.5,
    short_first=True,
    steps=3,
    batch_size=64,
    updates=1_000_000,
    minutes=12,
    lr=1e-3,
    beta2=0.98,
    ema=0.998,
    validate_every=500,
)

_ROLES = RolesPreset(
    name="babi",
    about="All 20 tasks of bAbI in one network: words in roles, messages that compete, pointers at the facts. "
    "Strongly supervised: in training it is told which facts support the answer.",
    max_facts=30,
    by_error=0.9,
    steps=4,
    batch_size=64,
    updates=1_500,
    lr=2e-3,
    weight_decay=1e-4,
    ema=0.998,
    validate_every=150,
)

ASKED = "babi-limits"
"""The shipped weights that are asked where none are named: they know when the answer is not in the story."""

PRESETS = (
    _ROLES,
    replace(
        _ROLES,
        name="babi-answers",
        about="As babi, but told answers alone, not which facts support them: what the paper's network is told.",
        support_loss=0.0,
        updates=10_000,
        validate_every=500,
    ),
    replace(
        _ROLES,
        name=ASKED,
        about="As babi, trained on (--start-from weights of babi) until it also knows when the answer is not in the "
        "story, and reads stories as a person may tell them.",
        by_error=0.5,
        unanswerable=0.25,
        everyday=0.25,
        updates=2_000,
        lr=1e-3,
        validate_every=250,
    ),
    _PAPER,
    replace(
        _PAPER,
        name="babi-paper-original",
        about="The paper's network with the paper's own hyperparameters: for a GPU, and days.",
        shift=20,
        by_error=0.0,
        short_first=False,
        batch_size=512,
        updates=5_000_000,
        minutes=None,
        l2=1e-5,
        beta2=0.999,
        **PAPERS_OPTIMIZER,
    ),
    replace(
        _PAPER,
        name="babi-paper-linear",
        about="Ablation of babi-paper: fact, question and position encoded by one linear layer.",
        encoding="linear",
    ),
    replace(
        _PAPER,
        name="babi-paper-apart",
        about="Ablation of babi-paper: facts encoded without the question.",
        encoding="none",
    ),
    replace(
        _PAPER,
        name="babi-paper-no-dropout",
        about="Ablation of babi-paper: no dropout.",
        dropout=0.0,
    ),
    LSTMPreset(
        name="babi-lstm",
        about="A baseline of the paper's table: one LSTM over all words of the story and the question.",
        hidden=128,
        steps=1,
        batch_size=64,
        updates=1_000_000,
        minutes=20,
        lr=2e-3,
        short_first=True,
        ema=0.998,
        validate_every=250,
    ),
    MemN2NPreset(
        name="babi-memn2n",
        about="A baseline of the paper's table: the end-to-end memory network with three hops.",
        hidden=64,
        max_facts=50,
        steps=3,
        loss="last",
        batch_size=64,
        updates=1_000_000,
        minutes=20,
        lr=2e-3,
        short_first=True,
        by_error=0.5,
        ema=0.998,
        validate_every=250,
    ),
    EntNetPreset(
        name="babi-entnet",
        about="A baseline of the paper's table: the recurrent entity network with 20 slots of 100 units.",
        hidden=100,
        max_facts=50,
        steps=1,
        batch_size=64,
        updates=1_000_000,
        minutes=20,
        lr=2e-3,
        short_first=True,
        by_error=0.5,
        ema=0.998,
        validate_every=250,
    ),
)
