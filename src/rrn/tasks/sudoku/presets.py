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

SHALLOW = PaperPreset(
    name="sudoku-paper-shallow",
    about="As sudoku-paper, with one ReLU layer in each MLP and less training.",
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

PAPER = replace(
    SHALLOW,
    name="sudoku-paper",
    about="Sudoku as in the paper: one node per cell, 96 units, an LSTM. One ReLU layer and many givens at first, "
    "then grown to three layers.",
    layers=3,
    slot_steps=(40, 64),
    extra_givens_start=0,
    batch_size=16,
    minutes=55,
    lr=1e-3,
    validate_every=250,
    few_givens_pool=10_000,
    stages=(
        {
            "layers": 1,
            "extra_givens_start": 45,
            "easy_share": 0.25,
            "stay": 0.7,
            "slot_steps": (32, 64),
            "batch_size": 32,
            "lr": 2e-3,
            "minutes": 240,
            "validate_every": 1000,
        },
        {
            "layers": 1,
            "extra_givens_start": 30,
            "easy_share": 0.15,
            "stay": 0.3,
            "segment": 16,
            "slot_steps": (32, 32),
            "pool_share": 0.6,
            "batch_size": 24,
            "lr": 1.2e-3,
            "minutes": 45,
            "validate_every": 500,
        },
        {
            "layers": 1,
            "extra_givens_start": 30,
            "easy_share": 0.3,
            "stay": 0.88,
            "segment": 16,
            "slot_steps": (64, 512),
            "pool_share": 0.6,
            "batch_size": 32,
            "lr": 8e-4,
            "minutes": 24,
            "validate_every": 500,
        },
        {
            "extra_givens_start": 30,
            "few_givens_pool": 0,
            "updates": 1,
            "validate_every": 1,
        },  # grown, not trained further
    ),
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
    stages=(
        {},
        {
            "minutes": 50,
            "lr": 1.5e-3,
            "extra_givens_start": 0,
            "slot_steps": (32, 64),
            "noise": 0.15,
            "few_givens_pool": 10_000,
            "pool_share": 0.5,
            "pool_extra_givens": (0, 2),
        },
    ),
    **_IN_SLOTS,
)

_NARROW: dict[str, Any] = {
    "hidden": 48, "message_width": 16, "layer_width": 128, "segment": 8, "contradiction_share": 0.0, "stay": 0.0
}  # fmt: skip
"""The first stages of sudoku-hard have the network of sudoku."""

_MANY_HARD: dict[str, Any] = {"few_givens_pool": 10_000, "hard_pool": 2_500}

STRONGEST = "sudoku-hard"
"""The shipped weights for puzzles that those of `sudoku` do not solve."""

PRESETS = (
    _CANDIDATES,
    replace(
        _CANDIDATES,
        name=STRONGEST,
        about="A wider network on the candidate graph that also detects contradictions, for best-first search on the "
        "hardest puzzles. Widened from the network of sudoku.",
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
        stages=(
            {**_NARROW, "extra_givens_start": 12, "slot_steps": (32, 40), "pool_share": 0.4, "minutes": 10, "lr": 2e-3},
            {
                **_NARROW,
                **_MANY_HARD,
                "slot_steps": (32, 48),
                "noise": 0.15,
                "pool_share": 0.5,
                "pool_extra_givens": (0, 2),
                "minutes": 30,
                "lr": 1.5e-3,
            },
            {
                **_MANY_HARD,
                "slot_steps": (48, 96),
                "noise": 0.15,
                "contradiction_share": 0.0,
                "pool_extra_givens": (0, 1),
                "minutes": 20,
            },
            {**_MANY_HARD, "minutes": 60},
            {
                **_MANY_HARD,
                "slot_steps": (48, 96),
                "contradiction_share": 0.3,
                "pool_share": 0.9,
                "pool_extra_givens": (0, 3),
                "minutes": 110,
            },
        ),
    ),
    SHALLOW,
    PAPER,
    PaperPreset(
        name="sudoku-paper-original",
        about="The paper's network with the paper's hyperparameters: takes days on a GPU.",
        hidden=96,
        steps=32,
        **_PAPERS,
    ),
    replace(
        SHALLOW,
        name="sudoku-last-loss",
        about="sudoku-paper-shallow with a loss at the last step of a segment only.",
        loss="last",
    ),
    *baselines.PRESETS,
)
