"""What can be set: of all experiments on Sudoku, the puzzles; and of each network."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from rrn.training.presets import Needs, Range, Share, SlotPreset, Weight, Width

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
    the digits a cell has the class "none", whose logit is always zero. Then it can search
    (`rrn.inference.search`)."""


@dataclass(frozen=True, kw_only=True)
class PaperPreset(SudokuPreset):
    """One node per cell."""

    network: Annotated[Literal["paper"], tyro.conf.Suppress] = "paper"
    layers: Layers = 3
    """ReLU layers of each MLP. With one, the edge feature that is always zero is left out as well."""
    digit_units: DigitUnits = 0
    """This many units of every layer belong to each digit, the rest to none, and training keeps weights equal that
    renaming digits maps onto each other, so that a puzzle teaches all digits at once. 0: no weights are tied."""
