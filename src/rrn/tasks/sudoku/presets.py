"""Sudoku: the paper's network and its comparisons with itself, and a smaller, better one on the candidate graph."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from rrn.presets import PAPERS_OPTIMIZER, Needs, Range, Share, SlotPreset, Weight, Width

Givens = Annotated[tuple[int, int], Range(least=0, most=81, rising=True)]
DigitUnits = Annotated[int, Range(least=0, most=10_000)]
Layers = Annotated[int, Range(least=1, most=100)]


@dataclass(frozen=True, kw_only=True)
class SudokuPreset(SlotPreset):
    """What all networks of this task share: the puzzles."""

    task = "sudoku"

    network: Annotated[str, tyro.conf.Suppress] = ""
    hidden: Width = 48
    """Units of the state, of the network behind a learned message, or filters of a convolutional layer."""
    extra_givens: Givens = (0, 0)
    """Digits added to a generated minimal puzzle: from the first number to the second."""
    easier: Annotated[int, Range(least=0, most=81)] = 0
    """At the start of training up to this many more digits are added, then fewer and fewer until half of it is over."""
    lower_by: Annotated[Weight, Needs("slot_steps")] = 0.0
    """While 7 of 10 puzzles leave solved, an update lowers the number of extra digits by this much, from --easier down
    to --extra-givens. 0: the time that has passed lowers it."""
    pool: tuple[Path, ...] = ()
    """Files of puzzles to train on beside generated ones, each of them as often as the others."""
    pool_skip: Annotated[int, Range(least=0, most=10**12), Needs("pool")] = 0
    """This many puzzles at the head of the first --pool are kept for testing: neither they nor their relatives are
    trained on."""
    pool_avoid: Annotated[tuple[Path, ...], Needs("pool")] = ()
    """Files of puzzles kept for testing: what is related to one of them is left out of --pool."""
    thin: Annotated[int, Range(least=0, most=10_000_000)] = 0
    """As training begins, this many puzzles with few givens, some 20, are made, as one more --pool: a hundred per
    second."""
    pool_share: Annotated[Share, Needs("pool", otherwise="thin")] = 0.4
    """The share of puzzles that come from --pool and --thin."""
    pool_extra_givens: Annotated[Givens, Needs("pool", otherwise="thin"), Needs("lower_by", False)] = (0, 3)
    """Digits added to a puzzle of --pool and --thin."""


@dataclass(frozen=True, kw_only=True)
class CandidatesPreset(SudokuPreset):
    """One node per candidate."""

    network: Annotated[Literal["candidates"], tyro.conf.Suppress] = "candidates"
    message_width: Width = 16
    """Units of a message of each kind."""
    layer_width: Width = 128
    """Units of the layer from which both the messages and the change of the state are read."""
    lines_alike: bool = False
    """Training keeps weights equal that exchanging rows and columns maps onto each other."""
    wrong: Share = 0.0
    """The share of puzzles that get a wrong digit, so that nothing solves them. The network learns to say so: besides
    the digits a cell has the class "none", whose logit is always zero. Then it can search: see `rrn.guessing`."""


@dataclass(frozen=True, kw_only=True)
class PaperPreset(SudokuPreset):
    """One node per cell."""

    network: Annotated[Literal["paper"], tyro.conf.Suppress] = "paper"
    layers: Layers = 3
    """ReLU layers of each MLP. With one, the edge feature that is always zero is left out as well."""
    digit_units: DigitUnits = 0
    """This many units of every layer belong to each digit, the rest to none, and training keeps weights equal that
    renaming digits maps onto each other, so that a puzzle teaches all digits at once. 0: no weights are tied."""


@dataclass(frozen=True, kw_only=True)
class _WithoutSlots(SudokuPreset):
    """For networks without a state to go on from."""

    slot_steps: Annotated[Literal[None], tyro.conf.Suppress] = None


@dataclass(frozen=True, kw_only=True)
class WholeGraphPreset(_WithoutSlots):
    """The graph-centric relational network."""

    network: Annotated[Literal["rn-graph"], tyro.conf.Suppress] = "rn-graph"
    layers: Layers = 3
    """ReLU layers of each MLP."""


@dataclass(frozen=True, kw_only=True)
class LearnedMessagesPreset(_WithoutSlots):
    network: Annotated[Literal["learned-messages"], tyro.conf.Suppress] = "learned-messages"


@dataclass(frozen=True, kw_only=True)
class ConvolutionalPreset(_WithoutSlots):
    network: Annotated[Literal["convolutional"], tyro.conf.Suppress] = "convolutional"
    digit_units: DigitUnits = 0
    """This many filters of every layer belong to each digit, the rest to none: see sudoku-paper."""


KINDS = (CandidatesPreset, PaperPreset, WholeGraphPreset, LearnedMessagesPreset, ConvolutionalPreset)
"""Each network's own settings."""

_PAPERS: dict[str, Any] = {"batch_size": 256, "updates": 300_000, "extra_givens": (0, 17), "validate_every": 500}
_PAPERS |= {**PAPERS_OPTIMIZER, "l2": 1e-4}

_ORIGINAL = PaperPreset(
    name="sudoku-paper-original",
    about="The paper's network with the paper's own hyperparameters: for a GPU, and days.",
    hidden=96,
    steps=32,
    **_PAPERS,
)

_ONE_LOOK: dict[str, Any] = {
    "extra_givens": (0, 17),
    "easier": 30,
    "batch_size": 64,
    "updates": 1_000_000,
    "minutes": 12,
}
_ONE_LOOK |= {"lr": 1e-3, "ema": 0.998, "validate_every": 100}

_LEARNED_MESSAGES = LearnedMessagesPreset(
    name="sudoku-learned-messages",
    about="Deeply learned messages (Lin 2015) on the graph of cells and units, 32 steps, a loss at every step.",
    hidden=64,
    steps=32,
    batch_size=8,
    updates=1_000_000,
    minutes=12,
    lr=3e-3,
    extra_givens=(0, 17),
    easier=30,
    ema=0.99,
    validate_every=200,
)

_SHALLOW = PaperPreset(
    name="sudoku-paper-shallow",
    about="The first stage of sudoku-paper: one ReLU layer in each MLP, digits treated alike, many givens at first.",
    hidden=96,
    layers=1,
    digit_units=8,
    steps=64,
    segment=8,
    slot_steps=(32, 48),
    easier=45,
    lower_by=0.1,
    stay=0.5,
    batch_size=32,
    updates=1_000_000,
    minutes=40,
    lr=2e-3,
    beta2=0.95,
    ema=0.998,
    validate_every=500,
)

_CANDIDATES = CandidatesPreset(
    name="sudoku",
    about="Sudoku on the graph of open candidates: no digit, row or column has a name, so it learns in minutes.",
    steps=64,
    segment=8,
    slot_steps=(32, 40),
    lines_alike=True,
    easier=12,
    thin=2_000,
    batch_size=8,
    updates=1_000_000,
    minutes=10,
    lr=2e-3,
    weight_decay=0.01,
    ema=0.998,
    validate_every=5000,
)

STRONGEST = "sudoku-hard"
"""The shipped weights for what those of `sudoku` leave."""

PRESETS = (
    _CANDIDATES,
    replace(
        _CANDIDATES,
        name=STRONGEST,
        about="A wider network of that kind, for puzzles that only search solves: it guesses, and says which guesses "
        "to trust. --start-from weights of sudoku.",
        hidden=96,
        message_width=24,
        layer_width=256,
        segment=16,
        slot_steps=(32, 64),
        stay=0.2,
        easier=0,
        wrong=0.4,
        pool_share=0.85,
        pool_extra_givens=(0, 6),
        minutes=60,
        lr=1e-3,
        validate_every=4000,
    ),
    _SHALLOW,
    replace(
        _SHALLOW,
        name="sudoku-paper",
        about="Sudoku as in the paper: one node per cell, 96 units, an LSTM. Grown: --start-from weights of "
        "sudoku-paper-shallow.",
        layers=3,
        slot_steps=(40, 64),
        easier=0,
        batch_size=16,
        minutes=55,
        lr=1e-3,
        validate_every=250,
    ),
    _ORIGINAL,
    replace(
        _SHALLOW,
        name="sudoku-last-loss",
        about="sudoku-paper-shallow with a loss at the last step of a segment only.",
        loss="last",
    ),
    PaperPreset(
        name="sudoku-rn-node",
        about="The node-centric relational network: the paper's network, run for one step. Digits treated alike, many "
        "givens at first.",
        hidden=96,
        digit_units=8,
        steps=1,
        **_ONE_LOOK,
    ),
    WholeGraphPreset(
        name="sudoku-rn-graph",
        about="The graph-centric relational network: one step, all messages summed, 81 cells read from the sum. Many "
        "givens at first.",
        hidden=256,
        steps=1,
        **_ONE_LOOK,
    ),
    _LEARNED_MESSAGES,
    replace(
        _LEARNED_MESSAGES,
        name="sudoku-learned-messages-last",
        about="Deeply learned messages, 32 steps, a loss at the last step only.",
        loss="last",
    ),
    replace(
        _LEARNED_MESSAGES,
        name="sudoku-learned-messages-one",
        about="Deeply learned messages as first presented: a single step.",
        steps=1,
        batch_size=64,
    ),
    ConvolutionalPreset(
        name="sudoku-convolutional",
        about="A convolutional network on the grid as an image (Park 2016), of 64 filters per layer instead of 512. "
        "Digits are treated alike.",
        hidden=64,
        digit_units=6,
        steps=1,
        batch_size=64,
        updates=5_000,
        lr=2e-3,
        extra_givens=(0, 40),
        ema=0.995,
        validate_every=500,
    ),
)
