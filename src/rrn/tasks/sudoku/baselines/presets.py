"""Presets of the networks that the paper compares itself with on Sudoku."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import tyro

from rrn.tasks.sudoku.settings import DigitUnits, Layers, PaperPreset, SudokuPreset


@dataclass(frozen=True, kw_only=True)
class _WithoutSlots(SudokuPreset):
    """For networks that cannot resume from a state."""

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
    tied_digit_units: DigitUnits = 0
    """This many filters of every layer belong to each digit, as in sudoku-paper."""


KINDS = (WholeGraphPreset, LearnedMessagesPreset, ConvolutionalPreset)

_COMPARED: dict[str, Any] = {"extra_givens": (0, 17), "extra_givens_start": 30, "updates": 1_000_000}
_ONE_STEP = _COMPARED | {"ema": 0.998, "minutes": 12, "validate_every": 100}

_LEARNED_MESSAGES = LearnedMessagesPreset(
    name="sudoku-learned-messages",
    about="Deeply learned messages (Lin 2015) on the graph of cells and units, 32 steps, a loss at every step.",
    hidden=64,
    steps=32,
    batch_size=8,
    lr=3e-3,
    ema=0.99,
    minutes=7,
    validate_every=200,
    **_COMPARED,
)

PRESETS = (
    PaperPreset(
        name="sudoku-rn-node",
        about="The node-centric relational network: the paper's network, run for one step. Tied digits, many givens "
        "and one ReLU layer at first, then grown to three layers.",
        hidden=96,
        tied_digit_units=8,
        steps=1,
        stages=(
            {"layers": 1, "minutes": 7, "lr": 2e-3, "extra_givens_start": 33},
            {"minutes": 6, "extra_givens_start": 0, "seed": 0},
        ),
        **_ONE_STEP,
    ),
    WholeGraphPreset(
        name="sudoku-rn-graph",
        about="The graph-centric relational network: one step, all messages summed, 81 cells read from the sum. Many "
        "givens at first.",
        hidden=256,
        steps=1,
        **_ONE_STEP,
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
        minutes=4,
    ),
    ConvolutionalPreset(
        name="sudoku-convolutional",
        about="A convolutional network on the grid as an image (Park 2016), of 64 filters per layer instead of 512. "
        "Digits are tied.",
        hidden=64,
        tied_digit_units=6,
        steps=1,
        updates=5_000,
        lr=2e-3,
        extra_givens=(0, 40),
        ema=0.995,
        validate_every=500,
    ),
)
