"""One panel per task: what the page asks of the API, and how the network answers."""

from collections.abc import Callable
from dataclasses import dataclass

from fastapi import APIRouter
from torch import nn

from rrn.tasks.babi.presets import ASKED
from rrn.tasks.sudoku.presets import STRONGEST
from rrn.web.panels import ages, babi, pretty_clevr, sudoku


@dataclass(frozen=True)
class Panel:
    title: str
    about: str
    weights: str
    """The name of the shipped weights."""
    router: Callable[..., APIRouter]
    """Told the network, its preset and the pool; and, as ``stronger``, the network for what this one leaves, if any."""
    warm_up: Callable[[nn.Module], object]
    """Called once after the start, so that the first request need not wait for compilers and caches."""
    stronger: str = ""
    """The name of shipped weights for what these leave."""


PANELS = {
    "sudoku": Panel(
        "Sudoku",
        "The network sees a puzzle's givens and passes messages between its candidates. After every step it has an "
        "opinion on every cell.",
        "sudoku",
        sudoku.router,
        sudoku.warm_up,
        STRONGEST,
    ),
    "babi": Panel(
        "bAbI stories",
        "Facts and a question in words. Which facts matter is for the network to find out, in several steps, and "
        "whether they hold an answer at all.",
        ASKED,
        babi.router,
        babi.warm_up,
    ),
    "pretty-clevr": Panel(
        "Pretty-CLEVR",
        "Start at an object and jump to the nearest one not visited yet, several times. Where do you end up?",
        "pretty-clevr",
        pretty_clevr.router,
        pretty_clevr.warm_up,
    ),
    "ages": Panel(
        "Ages",
        "One age and some differences. How old somebody is follows, one difference after the other.",
        "ages",
        ages.router,
        ages.warm_up,
    ),
}
"""By their names in the API, in the order of the page."""
