"""Golden outputs of shipped weights for a small fixed input.

`tests/golden/<name>.json` holds them for every name in `rrn.io.pretrained.shipped()`. Write them anew, after weights
were replaced on purpose, with::

    python -m tests.golden            # all
    python -m tests.golden ages       # one

A new task adds one function to `INPUTS`.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rrn.io.files import write_json
from rrn.nn.readouts import answer_of
from rrn.tasks.weights import from_pretrained
from rrn.training.experiment import Batch

FOLDER = Path(__file__).parent
TOLERANCE = 1e-4
STEPS = (1, 8)
"""The steps whose outputs are stored."""


def ages() -> Batch:
    from rrn.tasks.ages.data import held_out_questions
    from rrn.tasks.ages.model import as_batch

    return as_batch(held_out_questions(3))


def pretty_clevr() -> Batch:
    from rrn.tasks.pretty_clevr.data import scenes
    from rrn.tasks.pretty_clevr.model import as_batch

    return as_batch(scenes("test", 3), np.arange(3), np.array([0 * 8 + 0, 4 * 8 + 3, 13 * 8 + 7]))


def sudoku() -> Batch:
    """A puzzle of 17 givens, of our own."""
    from rrn.tasks.sudoku.examples import EXAMPLES
    from rrn.tasks.sudoku.files import parse_puzzle

    return {"puzzle": torch.from_numpy(parse_puzzle(EXAMPLES[1])).long().view(1, 81)}


def babi() -> Batch:
    """Generated questions of tasks 1, 3 and 19."""
    from rrn.tasks.babi.data import EndlessQuestions

    questions = EndlessQuestions(0, (1, 3, 19)).take(1)
    return questions.batch(slice(None))


def visual_sudoku() -> Batch:
    """The puzzle of `sudoku`, its givens drawn from strokes."""
    from rrn.tasks.visual_sudoku.data import drawn_digits

    cells = drawn_digits().draw_cells(sudoku()["puzzle"].numpy(), np.random.default_rng(0))
    return {"cells": torch.from_numpy(cells)}


def photo() -> Batch:
    """A digit of each kind, and an empty cell."""
    from rrn.tasks.visual_sudoku.data import drawn_digits

    return {"cells": torch.from_numpy(np.concatenate([drawn_digits().images[:9], np.zeros((1, 28, 28))])).float() / 255}


INPUTS: dict[str, Callable[[], Batch]] = {
    "ages": ages,
    "sudoku": sudoku,
    "pretty-clevr": pretty_clevr,
    "babi": babi,
    "visual-sudoku": visual_sudoku,
    "photo": photo,
}
"""A fixed input for each task with shipped weights."""


def outputs(weights: str | Path) -> dict[str, Any]:
    """The logits after each of `STEPS`, as nested lists by step."""
    network = from_pretrained(weights)
    preset = network.preset
    if preset.task not in INPUTS:
        raise LookupError(
            f"weights ship for the task {preset.task!r}: add a fixed input for it to INPUTS in {__file__}"
        )
    torch.set_num_threads(1)
    with torch.no_grad():
        outputs, _ = network(INPUTS[preset.task](), steps=max(STEPS))
    logits = answer_of(outputs)
    return {
        str(step): [[round(v, 5) for v in row] for row in logits[step - 1].flatten(0, -2).tolist()] for step in STEPS
    }


def differences(weights: str | Path, golden: Path) -> dict[str, float]:
    """By how much the outputs differ at each step, as a share of the largest of them (at least 1)."""
    expected, found = json.loads(golden.read_text()), outputs(weights)
    result = {}
    for step, rows in expected.items():
        theirs, ours = torch.tensor(rows), torch.tensor(found[step])
        result[step] = float((ours - theirs).abs().max() / theirs.abs().max().clamp(min=1))
    return result


def write(name: str) -> None:
    write_json(FOLDER / f"{name}.json", outputs(name))
