"""Sudoku: the paper's network, and a smaller, better one on the candidate graph; what they are compared with is in
`baselines`."""

from dataclasses import replace
from typing import Any

from rrn.tasks.sudoku.baselines import presets as baselines
from rrn.tasks.sudoku.settings import CandidatesPreset, PaperPreset
from rrn.training.presets import PAPERS_OPTIMIZER

KINDS = (CandidatesPreset, PaperPreset, *baselines.KINDS)
"""Each network's own settings."""

_PAPERS: dict[str, Any] = {"batch_size": 256, "updates": 300_000, "extra_givens": (0, 17), "validate_every": 500}
_PAPERS |= {**PAPERS_OPTIMIZER, "l2": 1e-4}

_IN_SLOTS: dict[str, Any] = {"steps": 64, "segment": 8, "updates": 1_000_000, "lr": 2e-3, "ema": 0.998}

_SHALLOW = PaperPreset(
    name="sudoku-paper-shallow",
    about="The first stage of sudoku-paper: one ReLU layer in each MLP, digits treated alike, many givens at first.",
    hidden=96,
    layers=1,
    digit_units=8,
    slot_steps=(32, 48),
    easier=45,
    lower_by=0.1,
    stay=0.5,
    batch_size=32,
    minutes=40,
    beta2=0.95,
    validate_every=500,
    **_IN_SLOTS,
)

_CANDIDATES = CandidatesPreset(
    name="sudoku",
    about="Sudoku on the graph of open candidates: no digit, row or column has a name, so it learns in minutes.",
    slot_steps=(32, 40),
    lines_alike=True,
    easier=12,
    thin=2_000,
    batch_size=8,
    minutes=10,
    weight_decay=0.01,
    validate_every=5000,
    **_IN_SLOTS,
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
    PaperPreset(
        name="sudoku-paper-original",
        about="The paper's network with the paper's own hyperparameters: for a GPU, and days.",
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
