"""Presets of bAbI: the paper's network and its ablations, a network that trains fast on a CPU, and baselines."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from rrn.training.presets import PAPERS_OPTIMIZER, Dropped, Needs, Preset, Range, Share, Weight, Width

Few = Annotated[int, Range(least=1, most=64)]


@dataclass(frozen=True, kw_only=True)
class BabiPreset(Preset):
    """Settings of all networks of this task."""

    task = "babi"

    network: Annotated[str, tyro.conf.Suppress] = ""
    segment: Annotated[Literal[None], tyro.conf.Suppress] = None
    """Always unset: each update runs all steps."""

    hidden: Width = 96
    """Units of the state."""
    max_facts: Annotated[int, Range(least=1, most=1000)] = 20
    """Facts read before a question, the last ones."""
    sampling_by_error: Share = 0.0
    """Share of the questions sampled from tasks in proportion to their running error; the rest is sampled uniformly."""
    curriculum_by_length: bool = False
    """Start with the tenth of each task's questions that has the fewest facts. The share doubles whenever the task's
    running error is below a third."""
    shortened_share: Share = 0.0
    """Share of the questions of tasks 2, 16, 18 and 19 whose stories lose some of the facts that do not support the
    answer, as a curriculum."""
    data: Path | None = None
    """Folder or archive of official files to train on. Unset: newly generated questions."""
    tasks: Annotated[tuple[int, ...], Range(least=1, most=20)] = tuple(range(1, 21))
    """Tasks to train on."""
    unanswerable_share: Annotated[Share, Needs("data", False)] = 0.0
    """Share of the generated questions whose answer is not in the story."""
    varied_share: Annotated[Share, Needs("data", False)] = 0.0
    """Share of the generated questions of tasks 1–3 and 5–8 about short stories with any people in any places."""
    composed_share: Annotated[Share, Needs("data", False)] = 0.0
    """Share of the generated questions of tasks 1–3 and 5–8 about short stories that mix sentences of several tasks."""
    fewer_hops_share: Annotated[Share, Needs("data", False)] = 0.0
    """Share of the generated questions of tasks 16, 17 and 18 that need fewer facts than the task's own, as a
    curriculum."""


@dataclass(frozen=True, kw_only=True)
class RolesPreset(BabiPreset):
    """Semantic roles of words, attention between sentences, pointers to facts."""

    network: Annotated[Literal["roles"], tyro.conf.Suppress] = "roles"
    word_width: Width = 64
    """Width of a word vector."""
    roles: Few = 6
    """Semantic roles of a sentence; edges compare the words in each pair of roles."""
    edge_features: Width = 16
    """Features of an edge."""
    heads: Few = 6
    """Attention heads."""
    head_width: Width = 16
    """Units of a head."""
    update_width: Width = 128
    """Product units of the update."""
    support_loss: Weight = 1.0
    """Weight of the loss on which facts support the answer (strong supervision). 0: answers alone."""


@dataclass(frozen=True, kw_only=True)
class PaperPreset(BabiPreset):
    """The paper's network: LSTMs, MLPs and sums."""

    network: Annotated[Literal["paper"], tyro.conf.Suppress] = "paper"
    word_width: Width = 32
    """Width of a word vector and of a sentence vector."""
    layers: Annotated[int, Range(least=1, most=100)] = 3
    """ReLU layers of each MLP; the readout has one fewer, but at least one."""
    encoding: Literal["mlp", "linear", "none"] = "mlp"
    """Encoder of fact, question and position: an MLP, a linear layer, or an MLP without the question."""
    dropout: Dropped = 0.0
    """Dropout rate of the last two layers of the readout."""
    position_shift: Annotated[int, Range(least=0, most=1000)] = 20
    """In training, the positions of the facts are shifted by a random number below this, as in the paper. 0: never."""


@dataclass(frozen=True, kw_only=True)
class LSTMPreset(BabiPreset):
    """One LSTM over the whole story. It has no steps."""

    network: Annotated[Literal["lstm"], tyro.conf.Suppress] = "lstm"
    word_width: Width = 32
    """Width of a word vector."""


@dataclass(frozen=True, kw_only=True)
class MemN2NPreset(BabiPreset):
    """The end-to-end memory network; a step is a hop."""

    network: Annotated[Literal["memn2n"], tyro.conf.Suppress] = "memn2n"


@dataclass(frozen=True, kw_only=True)
class EntNetPreset(BabiPreset):
    """The recurrent entity network. It has no steps."""

    network: Annotated[Literal["entnet"], tyro.conf.Suppress] = "entnet"
    slots: Width = 20
    """Memory slots."""


KINDS = (RolesPreset, PaperPreset, LSTMPreset, MemN2NPreset, EntNetPreset)
"""The settings class of each network."""

_GROWN: dict[str, Any] = {"updates": 1, "lr": 1e-6, "curriculum_by_length": False, "validate_every": 1}
"""A last stage that adds layers which change nothing, and is not trained further."""

_PAPER = PaperPreset(
    name="babi-paper",
    about="bAbI as in the paper's appendix: LSTMs of 32 units, MLPs of 3 layers of 128, the question on every edge. "
    "One ReLU layer at first, then grown to three.",
    hidden=128,
    dropout=0.5,
    position_shift=0,
    sampling_by_error=0.5,
    curriculum_by_length=True,
    steps=3,
    updates=1_000_000,
    minutes=12,
    beta2=0.98,
    ema=0.998,
    validate_every=500,
    stages=(
        {"layers": 1},
        {"updates": 200, "minutes": 20, "lr": 3e-4, "curriculum_by_length": False, "validate_every": 200, "seed": 0},
    ),
)

_ROLES = RolesPreset(
    name="babi",
    about="All 20 tasks of bAbI in one network: semantic roles, attention between sentences, pointers to facts. "
    "Extra supervision in training: the supporting facts.",
    max_facts=30,
    sampling_by_error=0.9,
    steps=4,
    updates=1_500,
    lr=2e-3,
    weight_decay=1e-4,
    ema=0.998,
    validate_every=150,
)

_COMPARED: dict[str, Any] = {"updates": 1_000_000, "minutes": 20, "lr": 2e-3, "ema": 0.998, "validate_every": 250}
_COMPARED |= {"curriculum_by_length": True}

ASK_WEIGHTS = "babi-limits"
"""Default weights of ``rrn ask babi``: they recognise unanswerable questions."""

PRESETS = (
    _ROLES,
    replace(
        _ROLES,
        name="babi-answers",
        about="As babi, but supervised by the answers alone, as the paper's network is.",
        support_loss=0.0,
        updates=10_000,
        validate_every=500,
        stages=({"seed": 1}, {"seed": 1}),
    ),
    replace(
        _ROLES,
        name=ASK_WEIGHTS,
        about="As babi, fine-tuned on unanswerable questions, more varied and composed stories.",
        sampling_by_error=0.5,
        unanswerable_share=0.25,
        varied_share=0.25,
        composed_share=0.25,
        updates=2_000,
        lr=1e-3,
        validate_every=250,
        stages=(
            {
                "sampling_by_error": _ROLES.sampling_by_error,
                "unanswerable_share": 0.0,
                "varied_share": 0.0,
                "composed_share": 0.0,
                "updates": _ROLES.updates,
                "lr": _ROLES.lr,
                "validate_every": _ROLES.validate_every,
            },
            {"seed": 0, "composed_share": 0.0},
            {"seed": 0, "updates": 1_000},
        ),
    ),
    _PAPER,
    replace(
        _PAPER,
        name="babi-paper-original",
        about="The paper's network with the paper's hyperparameters, for days of training on a GPU.",
        position_shift=20,
        sampling_by_error=0.0,
        curriculum_by_length=False,
        batch_size=512,
        updates=5_000_000,
        minutes=None,
        l2=1e-5,
        beta2=0.999,
        stages=(),
        **PAPERS_OPTIMIZER,
    ),
    replace(
        _PAPER,
        name="babi-paper-linear",
        about="Ablation of babi-paper: fact, question and position encoded by one linear layer.",
        encoding="linear",
        minutes=None,
        schedule="constant",
        validate_every=2_500,
        stages=(
            {"layers": 1, "updates": 22_500},
            {"layers": 1, "updates": 47_500, "lr": 3e-4, "curriculum_by_length": False},
            {
                "layers": 1,
                "updates": 35_000,
                "lr": 5e-4,
                "curriculum_by_length": False,
                "shortened_share": 0.4,
            },
            {
                "layers": 1,
                "updates": 60_000,
                "lr": 1e-3,
                "schedule": "cosine",
                "curriculum_by_length": False,
                "shortened_share": 0.3,
                "fewer_hops_share": 0.3,
            },
            _GROWN,
        ),
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
        updates=100_000,
        minutes=None,
        validate_every=2_500,
        stages=(
            {"layers": 1, "updates": 22_500, "schedule": "constant"},
            {"layers": 1, "updates": 42_500, "lr": 5e-4, "curriculum_by_length": False},
            _GROWN,
        ),
    ),
    LSTMPreset(
        name="babi-lstm",
        about="A baseline of the paper's table: one LSTM over all words of the story and the question.",
        hidden=128,
        steps=1,
        stages=({"seed": 1, "updates": 100_000, "minutes": 25},),
        **_COMPARED,
    ),
    MemN2NPreset(
        name="babi-memn2n",
        about="A baseline of the paper's table: the end-to-end memory network with three hops.",
        hidden=64,
        max_facts=50,
        steps=3,
        loss="last",
        sampling_by_error=0.5,
        stages=({"seed": 1, "updates": 100_000},),
        **_COMPARED,
    ),
    EntNetPreset(
        name="babi-entnet",
        about="A baseline of the paper's table: the recurrent entity network with 20 slots of 100 units.",
        hidden=100,
        max_facts=50,
        steps=1,
        sampling_by_error=0.5,
        stages=({"seed": 1, "updates": 100_000},),
        **_COMPARED,
    ),
)
