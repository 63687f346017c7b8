"""The panels of the page: one per task, each with its API."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fastapi import APIRouter
from pydantic import BaseModel, Field
from torch import nn

from rrn.tasks.babi.presets import ASK_WEIGHTS
from rrn.tasks.sudoku.presets import STRONGEST
from rrn.web.panels import ages, babi, pretty_clevr, sudoku


@dataclass(frozen=True)
class Panel:
    title: str
    about: str
    weights: str
    """Name of the shipped weights."""
    router: Callable[..., APIRouter]
    """Takes the network, its preset and the pool; if ``batched``, also the service and the ``others``."""
    warm_up: Callable[[nn.Module], object]
    """Called once after startup, so that the first request does not wait for compilers and caches."""
    batched: bool = False
    """Whether all requests share a running batch."""
    others: tuple[str, ...] = ()
    """Names of further shipped weights that a request may choose. The first tries what ``weights`` does not solve."""


PANELS = {
    "sudoku": Panel(
        "Sudoku",
        "The network passes messages between the candidates of a puzzle. After every step it predicts the digit of "
        "every cell.",
        "sudoku",
        sudoku.router,
        sudoku.warm_up,
        batched=True,
        others=(STRONGEST, "sudoku-paper"),
    ),
    "babi": Panel(
        "bAbI stories",
        "Facts and a question in words. The network finds the relevant facts in several steps, or that the story does "
        "not contain the answer.",
        ASK_WEIGHTS,
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
        "One age and some differences between ages. The network adds them up, one difference after the other.",
        "ages",
        ages.router,
        ages.warm_up,
    ),
}
"""By name in the API, in the order of the page."""


class PanelInfo(BaseModel):
    """A loaded network."""

    task: str
    title: str
    about: str
    accuracy: str = Field(description="Accuracy of the shipped weights; empty for others.")
    parameters: int
    steps: int
    others: dict[str, int] = Field(description="Further networks that a request may choose, with their parameters.")


def panel_info(
    name: str, network: nn.Module, steps: int, accuracy: str, others: Mapping[str, nn.Module] | None = None
) -> PanelInfo:
    panel = PANELS[name]
    sizes = {other: _parameters(second) for other, second in (others or {}).items()}
    return PanelInfo(
        task=name,
        title=panel.title,
        about=panel.about,
        accuracy=accuracy,
        parameters=_parameters(network),
        steps=steps,
        others=sizes,
    )


def _parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())
