from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from rich.console import Console
from torch import Tensor, nn

from rrn import tasks
from rrn.errors import InputError
from rrn.io.pretrained import shipped
from rrn.tasks.pretty_clevr import data
from rrn.tasks.pretty_clevr.evaluate import Options, draw_result, evaluate, right_by_step, tables
from rrn.tasks.weights import from_pretrained


class AsFarAsItsSteps(nn.Module):
    """Answers right from the step on that the number of jumps asks for, and wrong before."""

    def forward(self, batch: dict[str, Tensor], *, steps: int, state: object = None) -> tuple[Tensor, None]:
        step = torch.arange(1, steps + 1)[:, None]
        said = torch.where(step >= batch["jumps"], batch["answer"], (batch["answer"] + 1) % 16)
        return 20 * F.one_hot(said, 16).float(), None


def measured(options: Options, told: list[tuple[int, int]] | None = None) -> dict[str, object]:
    heard = [] if told is None else told
    return evaluate(AsFarAsItsSteps(), tasks.find_preset("pretty-clevr"), options, lambda *at: heard.append(at))


def test_right_by_step_and_question() -> None:
    right = right_by_step(AsFarAsItsSteps(), data.scenes("test", 10), np.arange(1280), 4)
    assert right.shape == (4, 1280)
    np.testing.assert_array_equal(right, np.arange(1, 5)[:, None] >= np.arange(1280) % 8)


def test_accuracy_by_jumps_and_steps() -> None:
    told: list[tuple[int, int]] = []
    result = measured(Options(limit=256, steps="2,5"), told)
    assert result["n"] == 256
    assert result["accuracy_by_jumps"] == {str(jumps): float(jumps <= 5) for jumps in range(8)}
    assert result["accuracy_by_jumps_and_steps"]["4"] == {"2": 0.0, "5": 1.0}
    assert result["accuracy"] == 6 / 8
    assert result["random"] == 1 / 8
    assert told[-1][0] == told[-1][1]


BESIDE = ("pretty-clevr-paper", "pretty-clevr-rn", "pretty-clevr-mlp")


def test_the_papers_networks_are_measured_beside_it_when_asked() -> None:
    assert measured(Options(limit=128))["beside"] == {}
    result = measured(Options(limit=128, beside=BESIDE))
    assert {name: other["steps"] for name, other in result["beside"].items()} == dict(
        zip(BESIDE, (4, 1, 1), strict=True)
    )
    assert all(other["parameters"] > 100_000 for other in result["beside"].values())
    with pytest.raises(InputError, match="weights 'ages': for the task 'ages', not for 'pretty-clevr'"):
        measured(Options(limit=128, beside=("ages",)))


def test_a_data_set_on_disk_is_measured(tmp_path: Path) -> None:
    data.write(tmp_path, {"test": 3}, seed=5)
    assert measured(Options(data=tmp_path))["n"] == 3 * 128


def test_tables_and_the_figure(tmp_path: Path) -> None:
    result = measured(Options(limit=128, beside=BESIDE)) | {"preset": "pretty-clevr", "parameters": 1}
    console = Console(record=True, width=160)
    for renderable in tables(result):
        console.print(renderable)
    text = console.export_text()
    assert "87.5%" not in text.splitlines()[1]
    assert "8 steps" in text
    assert "pretty-clevr-rn" in text
    draw_result(result, tmp_path / "figure.png")
    draw_result(result | {"beside": {}}, tmp_path / "alone.svg")
    assert (tmp_path / "figure.png").stat().st_size > 20_000
    assert "<svg" in (tmp_path / "alone.svg").read_text()


@pytest.mark.parametrize(
    ("name", "floors"),
    [
        ("pretty-clevr", [0.97] * 3 + [0.95] * 5),
        ("pretty-clevr-distances", [0.97] * 8),
        ("pretty-clevr-paper", [0.99, 0.96, 0.92, 0.87, 0.72]),
        ("pretty-clevr-rn", [0.99, 0.94]),
        ("pretty-clevr-mlp", [0.99]),
    ],
)
def test_the_shipped_weights_do_what_is_said_of_them(name: str, floors: list[float]) -> None:
    assert name in shipped()
    network = from_pretrained(name)
    preset = network.preset
    right = right_by_step(network, data.scenes("test", 20), np.arange(20 * 128), preset.steps)[-1]
    for jumps, floor in enumerate(floors):
        assert right[np.arange(20 * 128) % 8 == jumps].mean() >= floor
    if name in ("pretty-clevr-rn", "pretty-clevr-mlp"):
        assert right[np.arange(20 * 128) % 8 == len(floors) + 1].mean() < 0.5, "but no further than that"
