import dataclasses
import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from rich.console import Console
from torch import Tensor, nn

from rrn import tasks
from rrn.errors import InputError
from rrn.io.pretrained import save_pretrained
from rrn.tasks.babi.data import EndlessQuestions, write_babi
from rrn.tasks.babi.evaluate import Options, draw_result, evaluate, tables, wrong_by_step
from rrn.tasks.babi.presets import BabiPreset
from rrn.tasks.babi.vocabulary import WORDS
from rrn.tasks.weights import from_pretrained
from rrn.training.presets import check_flags


class GivesUpOnSomeTasks(nn.Module):
    """Right at once on tasks below 10, from step 2 on tasks below 19, never on 19 and 20."""

    def forward(self, batch: dict[str, Tensor], *, steps: int, state: object = None) -> tuple[Tensor, None]:
        step = torch.arange(1, steps + 1)[:, None]
        right = (batch["tasks"] < 10) | ((step >= 2) & (batch["tasks"] < 19))
        said = torch.where(right, batch["answers"], (batch["answers"] + 1) % len(WORDS))
        return F.one_hot(said, len(WORDS)).float(), None


def default() -> BabiPreset:
    preset = tasks.find_preset("babi")
    assert isinstance(preset, BabiPreset)
    return preset


def measured(options: Options, told: list[tuple[int, int]] | None = None) -> dict[str, object]:
    heard = [] if told is None else told
    return evaluate(GivesUpOnSomeTasks(), default(), options, lambda *at: heard.append(at))


def test_errors_by_task_and_step() -> None:
    told: list[tuple[int, int]] = []
    result = measured(Options(limit=100, steps="1,3"), told)
    assert result["n"] == 100
    assert result["n_by_task"] == {str(task): 5 for task in range(1, 21)}
    assert result["failed_tasks"] == [19, 20]
    assert result["mean_error"] == pytest.approx(2 / 20)
    assert result["error_by_task"] == {str(task): float(task >= 19) for task in range(1, 21)}
    assert result["error_by_task_and_steps"]["12"] == {"1": 1.0, "3": 0.0}
    assert result["mean_error_by_steps"] == {"1": pytest.approx(11 / 20), "3": pytest.approx(2 / 20)}
    assert result["data"] == "generated questions"
    assert told[-1] == (100, 100)


def test_files_are_measured_on_test_before_valid(tmp_path: Path) -> None:
    write_babi(tmp_path, {"train": 6, "valid": 3}, seed=1)
    assert measured(Options(data=tmp_path))["n"] == 60
    assert measured(Options(data=tmp_path, split="train"))["n"] == 120
    write_babi(tmp_path, {"train": 6, "valid": 3, "test": 4}, seed=1)
    result = measured(Options(data=tmp_path))
    assert (result["n"], result["data"]) == (80, "official test files")


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no bAbI valid files"):
        measured(Options(data=tmp_path))
    with pytest.raises(InputError, match="nowhere"):
        measured(Options(data=tmp_path / "nowhere"))
    with pytest.raises(InputError, match="--max-facts"):
        check_flags(Options(limit=20, max_facts=-1))
    paper = tasks.find_preset("babi-paper")
    with pytest.raises(InputError, match="reads at most 20 facts"):
        evaluate(GivesUpOnSomeTasks(), paper, Options(limit=20, max_facts=21), lambda done, of: None)  # type: ignore[arg-type]


def test_wrong_by_step_and_question() -> None:
    questions = EndlessQuestions(0, (5, 15)).take(3)
    wrong = wrong_by_step(GivesUpOnSomeTasks(), questions, 2, 20)
    assert wrong.tolist() == [[False] * 3 + [True] * 3, [False] * 6]


def test_tables_and_the_heat_map(tmp_path: Path) -> None:
    result = measured(Options(limit=60)) | {"preset": "babi"}
    console = Console(record=True, width=160)
    for renderable in tables(result):
        console.print(renderable)
    text = console.export_text()
    assert "path finding" in text
    assert "failed tasks (error > 5%): 19, 20" in text
    assert "Generated questions, not the released ones" in text
    draw_result(result, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 20_000


def test_other_seeds_and_baselines_are_measured_beside_it(tmp_path: Path) -> None:
    other_seed = dataclasses.replace(default(), seed=4, updates=77)
    for folder, preset in (("seed4/best", other_seed), ("lstm", tasks.find_preset("babi-lstm"))):
        save_pretrained(tasks.build_network(preset), tmp_path / folder, preset, {"update": 7, "minutes": 0.5})
    beside = (str(tmp_path / "seed4/best"), str(tmp_path / "lstm"))
    result = measured(Options(limit=40, beside=beside)) | {"preset": "babi"}
    assert list(result["beside"]) == ["seed4", "lstm"]
    assert result["beside"]["lstm"]["preset"] == "babi-lstm"
    assert result["beside"]["lstm"]["mean_error_by_steps"].keys() == {"1"}
    seeds = result["over_seeds"]
    errors = [0.1, result["beside"]["seed4"]["mean_error"]]
    assert seeds["runs"] == 2
    assert seeds["mean_error"] == pytest.approx(sum(errors) / 2)
    assert seeds["deviation"] == pytest.approx(abs(errors[0] - errors[1]) / 2**0.5)
    assert any("2 seeds of babi" in str(renderable) for renderable in tables(result))
    json.dumps(result)
    with pytest.raises(InputError, match="ages"):
        measured(Options(limit=40, beside=("ages",)))


def test_the_shipped_weights_solve_every_task_of_generated_questions() -> None:
    network = from_pretrained("babi")
    preset = network.preset
    assert isinstance(preset, BabiPreset)
    questions = EndlessQuestions(77).take(40)
    wrong = wrong_by_step(network, questions, preset.steps, preset.max_facts)[-1]
    errors = {task: wrong[rows].mean() for task, rows in questions.rows_by_task.items()}
    assert sum(error <= 0.05 for error in errors.values()) >= 18, errors
    assert wrong.mean() <= 0.03, errors
