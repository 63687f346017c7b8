"""Sudoku: the paper's network and its comparisons with itself, and a smaller, better one on the candidate graph."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from rrn.presets import Preset, Range, Share, Weight, Width

Givens = Annotated[tuple[int, int], Range(least=0, most=81, rising=True)]


@dataclass(frozen=True, kw_only=True)
class SudokuPreset(Preset):
    task = "sudoku"

    network: Literal["candidates", "paper", "rn-graph", "learned-messages", "convolutional"] = "candidates"
    """candidates: one node per candidate. paper: one node per cell. rn-graph: the graph-centric relational network. The
    others are baselines."""
    hidden: Width = 48
    """Units of the state, of the network behind a learned message, or filters of a convolutional layer."""
    layers: Annotated[int, Range(least=1, most=100)] = 3
    """paper, rn-graph: ReLU layers of each MLP. With one, the edge feature that is always zero is left out as well."""
    digit_units: Annotated[int, Range(least=0, most=10_000)] = 0
    """paper: this many units of every layer belong to each digit, the rest to none, and training keeps weights equal
    that renaming digits maps onto each other, so that a puzzle teaches all digits at once. 0: no weights are tied."""
    message_width: Width = 16
    """candidates: units of a message of each kind."""
    layer_width: Width = 128
    """candidates: units of the layer from which both the messages and the change of the state are read."""

    slot_steps: Annotated[tuple[int, int], Range(least=1, most=100_000)] | None = None
    """A puzzle keeps its place in the batch, and its state, until it is solved or has had this many steps: the first
    number at the start of training, the second at its end. Unset: a new batch every --steps."""
    extra_givens: Givens = (0, 0)
    """Digits added to a generated minimal puzzle: from the first number to the second."""
    easier: Annotated[int, Range(least=0, most=81)] = 0
    """At the start of training up to this many more digits are added, then fewer and fewer until half of it is over."""
    lower_by: Weight = 0.0
    """With slots: while 7 of 10 puzzles leave solved, an update lowers the number of extra digits by this much, from
    --easier down to --extra-givens. 0: the time that has passed lowers it."""
    stay: Share = 0.0
    """With slots: the share of solved puzzles that keep their place for another segment."""
    pool: Path | None = None
    """A file of puzzles to train on beside generated ones."""
    pool_skip: Annotated[int, Range(least=0, most=10**12)] = 0
    """This many puzzles at the head of --pool are kept for testing: neither they nor their relatives are trained on."""
    pool_avoid: Path | None = None
    """A file of puzzles kept for testing: what is related to one of them is left out of --pool."""
    pool_share: Share = 0.5
    """The share of puzzles that come from --pool."""
    pool_extra_givens: Givens = (0, 4)
    """Digits added to a puzzle of --pool."""
    noise: Weight = 0.0
    """With slots: standard deviation of noise that some segments start with, so that the network learns to recover."""
    noise_share: Share = 0.1
    """The share of segments that start with --noise."""
    start_noise: Weight = 0.0
    """With slots: standard deviation of the state in which a puzzle starts; 0: all start alike."""
    copies: Annotated[int, Range(least=1, most=1000)] = 1
    """With slots: this many places work on the same puzzle, each with noise of its own, and only the one with the
    smallest loss learns from it; a solution of one is a solution of all. --batch-size is a multiple of it."""
    lives: bool = False
    """With slots: each puzzle stays for a number of steps drawn up to the limit of --slot-steps, solved or not, so that
    the network learns from deep states and to keep what it has found."""


_ORIGINAL = SudokuPreset(
    name="sudoku-paper-original",
    about="The paper's network with the paper's own hyperparameters: for a GPU, and days.",
    network="paper",
    hidden=96,
    steps=32,
    batch_size=256,
    updates=300_000,
    optimizer="adam",
    lr=2e-4,
    l2=1e-4,
    schedule="constant",
    warmup=0,
    clip=None,
    ema=None,
    extra_givens=(0, 17),
    validate_every=500,
)

_LEARNED_MESSAGES = SudokuPreset(
    name="sudoku-learned-messages",
    about="Deeply learned messages (Lin 2015) on the graph of cells and units, 32 steps, a loss at every step.",
    network="learned-messages",
    hidden=64,
    steps=32,
    batch_size=8,
    minutes=7,
    lr=3e-3,
    extra_givens=(0, 17),
    ema=0.99,
    validate_every=200,
)

_SHALLOW = SudokuPreset(
    name="sudoku-paper-shallow",
    about="The first stage of sudoku-paper: one ReLU layer in each MLP, digits treated alike, many givens at first.",
    network="paper",
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

PRESETS = (
    SudokuPreset(
        name="sudoku",
        about="Sudoku on the graph of open candidates: no digit, row or column has a name, so it learns in minutes.",
        steps=64,
        segment=8,
        slot_steps=(32, 64),
        easier=12,
        batch_size=8,
        updates=1_000_000,
        minutes=55,
        lr=2e-3,
        weight_decay=0.01,
        ema=0.998,
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
    replace(
        _ORIGINAL,
        name="sudoku-rn-node",
        about="The node-centric relational network: the paper's network, run for one step.",
        steps=1,
    ),
    replace(
        _ORIGINAL,
        name="sudoku-rn-graph",
        about="The graph-centric relational network: one step, all messages summed, 81 cells read from the sum.",
        network="rn-graph",
        hidden=256,
        steps=1,
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
    SudokuPreset(
        name="sudoku-convolutional",
        about="A convolutional network on the grid as an image (Park 2016), of 32 filters per layer instead of 512.",
        network="convolutional",
        hidden=32,
        steps=1,
        batch_size=64,
        minutes=8,
        lr=3e-3,
        extra_givens=(3, 14),
        ema=0.99,
        validate_every=1000,
    ),
)
