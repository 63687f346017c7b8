"""Stages: a preset trains in parts, each of which starts with the best weights of the one before it."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rrn import from_pretrained, tasks
from rrn.cli import main
from rrn.cli.train import default_folder
from rrn.errors import InputError
from rrn.io.pretrained import read_weights
from rrn.tasks.ages import experiment as ages
from rrn.training.checkpoints import load_checkpoint
from rrn.training.experiment import Experiment
from rrn.training.presets import Preset, stage_presets, without_settings
from rrn.training.trainer import train_stages

SMALL = {
    "batch_size": 4,
    "hidden": 8,
    "steps": 2,
    "minutes": None,
    "checkpoint_minutes": 0.0,
    "validate_every": 3,
    "burn_in": 6,
}
"""A little network; its stages only differ in what follows."""
STAGES: tuple[dict[str, Any], ...] = (
    {"layers": 1, "updates": 4, "burn_in": 0},
    {"layers": 1, "updates": 5, "lr": 3e-4, "curriculum": False},
    {"updates": 3, "lr": 1e-4},
)
WHOLE: Any = dataclasses.replace(tasks.find_preset("ages-paper"), stages=STAGES, layers=2, **SMALL)


class Crash(Exception):
    pass


@pytest.fixture(autouse=True)
def _little_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ages, "VALIDATION", 100)


def run(folder: Path, whole: Preset = WHOLE, crash: tuple[int, int] | None = None, **options: Any) -> Any:
    """Train; ``crash`` is the stage and the update after which the process ends."""

    def make(preset: Preset, whole: Preset) -> Experiment[Any]:
        experiment = tasks.make_experiment(preset, whole)
        observe, done = experiment.observe, iter(range(1, 10**6))

        def observe_and_crash(measures: dict[str, float]) -> None:
            observe(measures)
            if crash == (1 + preset.seed, next(done)):
                raise Crash

        experiment.observe = observe_and_crash  # type: ignore[method-assign]
        return experiment

    return train_stages(whole, make, folder, quiet=True, **options)


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ages, "VALIDATION", 100)
        outcome = run(folder)
    assert outcome.finished
    assert (outcome.stage, outcome.update) == (3, 3)
    return folder


def test_a_stage_changes_what_it_lists_and_has_a_seed_of_its_own() -> None:
    first, second, third = stage_presets(WHOLE)
    assert (first.layers, second.layers, third.layers) == (1, 1, 2)
    assert (first.lr, second.lr, third.lr) == (WHOLE.lr, 3e-4, 1e-4)
    assert (first.seed, second.seed, third.seed) == (0, 1, 2)
    assert first.stages == ()
    assert stage_presets(third) == [third]
    with pytest.raises(InputError, match="stage 2: no setting of a stage is called layer"):
        stage_presets(dataclasses.replace(WHOLE, stages=({}, {"layer": 2})))
    with pytest.raises(InputError, match="stage 1: lr: expected more than 0"):
        stage_presets(dataclasses.replace(WHOLE, stages=({"lr": 0.0},)))


def test_a_flag_applies_to_every_stage() -> None:
    preset = without_settings(dataclasses.replace(WHOLE, lr=5e-4), {"lr", "layers"})
    assert [(stage.lr, stage.layers) for stage in stage_presets(preset)] == [(5e-4, 2)] * 3


def test_the_folder_of_a_run_names_the_flags_but_not_the_budget() -> None:
    named: Any = tasks.find_preset("ages")
    assert default_folder(without_settings(named, {"minutes"})) == Path("runs/ages")
    assert default_folder(without_settings(dataclasses.replace(named, lr=5e-4), {"lr"})) == Path("runs/ages-lr0.0005")
    assert default_folder(without_settings(named, {"lr"})) != Path("runs/ages"), "the value of the first stage in all"


def test_the_run_folder_holds_what_ships(whole_run: Path) -> None:
    best = whole_run / "best"
    network = from_pretrained(best)
    assert network.preset.stages
    assert stage_presets(network.preset) == stage_presets(WHOLE)
    trained = network.config["trained"]
    assert trained.keys() >= {"score", "stage", "update", "minutes", "minutes_of_training", "machine"}
    assert sorted(path.name for path in best.iterdir()) == [
        "README.md", "config.json", "metrics.jsonl", "model.safetensors"
    ]  # fmt: skip
    card = (best / "README.md").read_text()
    assert "trained with seed 0 in 3 stages by\n`rrn train ages-paper " in card
    assert f"{trained['minutes']:.1f} minutes on {trained['machine']}." in card
    lines = [json.loads(line) for line in (best / "metrics.jsonl").read_text().splitlines()]
    assert [(line["stage"], line["update"]) for line in lines] == [
        (1, 3), (1, 4), (2, 4), (2, 7), (2, 9), (3, 9), (3, 12)
    ]  # fmt: skip
    minutes = [line["minutes"] for line in lines]
    assert minutes == sorted(minutes)


def test_a_stage_starts_with_the_best_weights_of_the_one_before_it(whole_run: Path) -> None:
    for stage in (2, 3):
        before = [json.loads(line) for line in (whole_run / f"stage-{stage - 1}" / "metrics.jsonl").open()]
        first = json.loads((whole_run / f"stage-{stage}" / "metrics.jsonl").open().readline())
        assert first["update"] == 0
        assert first["score"] == max(line["score"] for line in before), "grown: the same outputs"


def test_weights_of_an_earlier_stage_are_kept_where_later_ones_are_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = iter([0.3, 0.5, 0.5, 0.4])  # at updates 3 and 4 of the first stage, 0 and 3 of the second
    monkeypatch.setattr(ages.AgesExperiment, "validate", lambda *_: {"score": next(scores)})
    run(tmp_path, dataclasses.replace(WHOLE, stages=({"updates": 4}, {"updates": 3})))
    kept, first = (read_weights(tmp_path / folder / "best") for folder in ("", "stage-1"))
    assert all(torch.equal(kept[name], tensor) for name, tensor in first.items())
    trained = json.loads((tmp_path / "best" / "config.json").read_text())["trained"]
    assert (trained["score"], trained["stage"], trained["update"]) == (0.5, 2, 0)


def test_the_score_is_the_same_in_every_stage_and_at_every_level() -> None:
    network = tasks.make_experiment(WHOLE).network().eval()
    first, _, last = (tasks.make_experiment(stage, WHOLE) for stage in stage_presets(WHOLE))
    before = first.validate(network)["score"]
    first.restore({"longest": 5, "running": 0.0})
    assert before == first.validate(network)["score"] == last.validate(network)["score"]


@pytest.mark.parametrize("crash", [(1, 3), (2, 1), (2, 4), (3, 2)])
def test_killed_in_any_stage_it_ends_with_the_same_bits(
    crash: tuple[int, int], whole_run: Path, tmp_path: Path
) -> None:
    with pytest.raises(Crash):
        run(tmp_path, crash=crash)
    assert run(tmp_path).finished
    for folder in ("stage-1", "stage-2", "stage-3"):
        resumed, whole = load_checkpoint(tmp_path / folder), load_checkpoint(whole_run / folder)
        assert resumed is not None
        assert whole is not None
        assert [key for key, tensor in whole[0].items() if not torch.equal(tensor, resumed[0][key])] == []
    resumed_best, whole_best = read_weights(tmp_path / "best"), read_weights(whole_run / "best")
    assert all(torch.equal(tensor, resumed_best[name]) for name, tensor in whole_best.items())


def test_one_stage_alone(whole_run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--stage 2: .* does not exist; train stage 1 first"):
        run(tmp_path, stage=2)
    with pytest.raises(InputError, match="--stage 4: ages-paper has 3 stages"):
        run(tmp_path, stage=4)
    assert run(tmp_path, stage=1).finished
    assert not (tmp_path / "stage-2").exists()
    outcome = run(tmp_path, stage=2)
    assert outcome.stage == 2
    assert outcome.best_folder == tmp_path / "stage-2" / "best"
    second, whole = (read_weights(folder / "stage-2" / "best") for folder in (tmp_path, whole_run))
    assert all(torch.equal(tensor, second[name]) for name, tensor in whole.items())


def test_the_command_shows_its_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {"updates": 2, "hidden": 8, "message-width": 4, "update-width": 4, "batch-size": 2, "validate-every": 5}
    small = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    flags = [*small, "--minutes", "5", "--burn-in", "3", "--folder", str(tmp_path)]
    assert main(["train", "ages", *flags, "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["stage"] == 3
    assert "ages, stage 1 of 3" in printed.err
    assert "finished at update 2 of stage 3 of 3" in printed.err
    config = json.loads((tmp_path / "best" / "config.json").read_text())
    assert all("updates" not in stage for stage in config["preset"]["stages"])


def test_a_burn_in_runs_without_gradient_before_the_loss() -> None:
    """The steps with the loss see states deep in a run; without a burn-in, batches are those of earlier versions."""
    from rrn.training.experiment import ExperimentObjective
    from rrn.training.processes import Processes

    def steps_run(**settings: Any) -> list[int]:
        preset = dataclasses.replace(tasks.find_preset("pretty-clevr"), scenes=20, batch_size=2, stages=(), **settings)
        experiment = tasks.make_experiment(preset)
        network, ran = experiment.network(), list[int]()

        def forward(batch: Any, steps: int, state: Any) -> Any:
            ran.append(steps if torch.is_grad_enabled() else -steps)
            return network(batch, steps=steps, state=state)

        objective = ExperimentObjective(experiment, forward, Processes())
        for update in range(40):
            loss = objective.loss(update, 0.0)
            assert loss.isfinite()
            objective.after_update(float(loss.detach()))
        return ran

    assert all(steps > 0 for steps in steps_run(burn_in=0))
    burned = [-steps for steps in steps_run(burn_in=9, burn_in_share=0.5) if steps < 0]
    assert 10 < len(burned) < 30
    assert max(burned) <= 9
    assert len(np.unique(burned)) > 4
