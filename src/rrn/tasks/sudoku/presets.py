"""Presets of Sudoku: the paper's network, and a smaller, better one on the candidate graph. `baselines` has the
systems that they are compared with."""

from dataclasses import replace
from typing import Any

from rrn.tasks.sudoku.baselines import presets as baselines
from rrn.tasks.sudoku.settings import CandidatesPreset, PaperPreset
from rrn.training.presets import PAPERS_OPTIMIZER

KINDS = (CandidatesPreset, PaperPreset, *baselines.KINDS)
"""The settings class of each network."""

_PAPERS: dict[str, Any] = {"batch_size": 256, "updates": 300_000, "extra_givens": (0, 17), "validate_every": 500}
_PAPERS |= {**PAPERS_OPTIMIZER, "l2": 1e-4}

_IN_SLOTS: dict[str, Any] = {"steps": 64, "segment": 8, "updates": 1_000_000, "lr": 2e-3, "ema": 0.998}

_SHALLOW = PaperPreset(
    name="sudoku-paper-shallow",
    about="The first stage of sudoku-paper: one ReLU layer in each MLP, tied digits, many givens at first.",
    hidden=96,
    layers=1,
    tied_digit_units=8,
    slot_steps=(32, 48),
    extra_givens_start=45,
    extra_givens_decrement=0.1,
    stay=0.5,
    batch_size=32,
    minutes=40,
    beta2=0.95,
    validate_every=500,
    **_IN_SLOTS,
)

_CANDIDATES = CandidatesPreset(
    name="sudoku",
    about="Sudoku on the candidate graph: all digits, rows and columns share weights, so it learns in minutes.",
    slot_steps=(32, 40),
    tie_rows_and_columns=True,
    extra_givens_start=12,
    few_givens_pool=2_000,
    batch_size=8,
    minutes=10,
    weight_decay=0.01,
    validate_every=5000,
    **_IN_SLOTS,
)

STRONGEST = "sudoku-hard"
"""The shipped weights for puzzles that those of `sudoku` do not solve."""

PRESETS = (
    _CANDIDATES,
    replace(
        _CANDIDATES,
        name=STRONGEST,
        about="A wider network on the candidate graph that also detects contradictions, for best-first search on the "
        "hardest puzzles. --start-from weights of sudoku.",
        hidden=96,
        message_width=24,
        layer_width=256,
        segment=16,
        slot_steps=(32, 64),
        stay=0.2,
        extra_givens_start=0,
        contradiction_share=0.4,
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
        extra_givens_start=0,
        batch_size=16,
        minutes=55,
        lr=1e-3,
        validate_every=250,
    ),
    PaperPreset(
        name="sudoku-paper-original",
        about="The paper's network with the paper's hyperparameters: takes days on a GPU.",
        hidden=96,
        steps=32,
        **_PAPERS,
    ),
    replace(
        _SHALLOW,
        name="sudoku-last-loss",
        about="sudoku-paper-shallow with a loss at the last step of a segment only.",
        loss="last",
    ),
    *baselines.PRESETS,
)
