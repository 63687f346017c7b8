"""Settings of Sudoku experiments: the puzzles of all of them, and the network of each."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from rrn.training.presets import Needs, Range, Share, SlotPreset, Weight, Width

Givens = Annotated[tuple[int, int], Range(least=0, most=81, rising=True)]
DigitUnits = Annotated[int, Range(least=0, most=10_000)]
Layers = Annotated[int, Range(least=1, most=64)]


@dataclass(frozen=True, kw_only=True)
class SudokuPreset(SlotPreset):
    """Settings of all networks of this task: the puzzles."""

    task = "sudoku"

    network: Annotated[str, tyro.conf.Suppress] = ""
    hidden: Width = 48
    """Units of the state, of the network behind a learned message, or filters of a convolutional layer."""
    extra_givens: Givens = (0, 0)
    """Least and greatest number of digits added to a generated minimal puzzle."""
    extra_givens_start: Annotated[int, Range(least=0, most=81)] = 0
    """Curriculum: training starts with up to this many more digits. The number falls to 0 at half of training, or as
    --extra-givens-decrement sets it."""
    extra_givens_decrement: Annotated[Weight, Needs("slot_steps")] = 0.0
    """Curriculum: while more than 7 of 10 puzzles are solved, an update lowers the number of extra digits by this much,
    from --extra-givens-start down to --extra-givens. 0: elapsed training time lowers it."""
    easy_share: Annotated[Share, Needs("extra_givens_decrement")] = 0.0
    """The share of generated puzzles that get further givens at every level of the curriculum. Their number is
    drawn from the whole range, from --extra-givens up to --extra-givens-start."""
    pool: tuple[Path, ...] = ()
    """Files of puzzles to train on besides generated ones; all files are equally likely."""
    pool_skip: Annotated[int, Range(least=0, most=10**12), Needs("pool")] = 0
    """The first puzzles of the first --pool are for testing: neither they nor their relatives are trained on."""
    pool_avoid: Annotated[tuple[Path, ...], Needs("pool")] = ()
    """Files of puzzles for testing: their relatives are left out of --pool."""
    few_givens_pool: Annotated[int, Range(least=0, most=10_000_000)] = 0
    """Generate this many puzzles with few givens (about 20) when training starts, as one more --pool; about 100 per
    second."""
    hard_pool: Annotated[int, Range(least=0, most=10_000_000), Needs("few_givens_pool")] = 0
    """Generate this many puzzles that need guesses when training starts, as one more --pool; about 5 per second."""
    pool_share: Annotated[Share, Needs("pool", otherwise="few_givens_pool")] = 0.4
    """The share of puzzles that come from --pool, --few-givens-pool and --hard-pool."""
    pool_extra_givens: Annotated[
        Givens, Needs("pool", otherwise="few_givens_pool"), Needs("extra_givens_decrement", False)
    ] = (0, 3)
    """Least and greatest number of digits added to a puzzle of --pool, --few-givens-pool and --hard-pool."""


@dataclass(frozen=True, kw_only=True)
class CandidatesPreset(SudokuPreset):
    """One node per candidate."""

    network: Annotated[Literal["candidates"], tyro.conf.Suppress] = "candidates"
    message_width: Width = 16
    """Units of a message of each group type."""
    layer_width: Width = 128
    """Units of the layer that computes the messages and the change of the state."""
    tie_rows_and_columns: bool = False
    """Weight tying: weights that exchanging rows and columns maps onto each other stay equal in training."""
    contradiction_share: Share = 0.0
    """The share of puzzles that get a wrong digit and so have no solution. The network learns to detect them: a cell
    has the additional class "none", whose logit is always zero. Such a network can search (`rrn.inference.search`)."""


@dataclass(frozen=True, kw_only=True)
class PaperPreset(SudokuPreset):
    """One node per cell."""

    network: Annotated[Literal["paper"], tyro.conf.Suppress] = "paper"
    layers: Layers = 3
    """ReLU layers of each MLP. With one layer, the constant edge feature is left out as well."""
    tied_digit_units: DigitUnits = 0
    """Weight tying: each digit has this many units of every layer, the remaining units belong to no digit. Weights
    that renaming digits maps onto each other stay equal, so a puzzle teaches all digits at once. 0: no tying."""
