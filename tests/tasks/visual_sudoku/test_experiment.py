"""Training on images: what the loss sees, what is frozen, and what weights it starts from."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from rrn import tasks
from rrn.io.pretrained import find_weights, read_weights
from rrn.nn.losses import IGNORE
from rrn.tasks.visual_sudoku.data import drawn_digits
from rrn.tasks.visual_sudoku.experiment import VisualSudokuExperiment
from rrn.tasks.visual_sudoku.model import VisualSudoku
from rrn.tasks.visual_sudoku.presets import VisualSudokuPreset
from rrn.training.presets import stage_presets
from rrn.training.trainer import RunFolder, Stage


def make(**changes: object) -> VisualSudokuExperiment:
    preset = tasks.find_preset("visual-sudoku")
    experiment = tasks.make_experiment(dataclasses.replace(preset, batch_size=3, stages=(), **changes))
    assert isinstance(experiment, VisualSudokuExperiment)
    return experiment


def test_the_loss_is_on_empty_cells_only() -> None:
    experiment = make()
    batch = experiment.sample(np.random.default_rng(0))
    known = experiment.targets(batch) != IGNORE
    np.testing.assert_array_equal(known, batch["puzzle"].flatten() == 0)
    other = dict(batch, solution=batch["solution"].where(batch["puzzle"] == 0, 1))  # other labels of the images
    outputs = torch.randn(2, 3 * 81, 10)
    assert experiment.loss(outputs, batch) == experiment.loss(outputs, other)


def test_with_labels_it_is_on_all_cells() -> None:
    experiment = make(labels=True)
    assert (experiment.targets(experiment.sample(np.random.default_rng(0))) != IGNORE).all()


def test_own_answers_count_where_the_whole_grid_is_right_by_the_rules() -> None:
    """No label of an image is used: answers are compared with the empty cells, and with the rules."""
    experiment = make(own_answers=True)
    experiment.built.eval()
    batch = experiment.sample(np.random.default_rng(0))
    outputs = torch.nn.functional.one_hot(batch["solution"].flatten(), 10)[None].float()
    other = dict(batch, solution=batch["solution"].where(batch["puzzle"] == 0, 1))
    loss = experiment.loss(outputs, batch)
    assert loss == experiment.loss(outputs, other)
    assert 2.1 < loss.item() < 2.3
    loss.backward()
    assert all(
        weight.grad is not None and weight.grad.abs().sum() > 0 for weight in experiment.built.encoder.parameters()
    )
    for puzzle in range(3):  # a given cell's answer that breaks a rule, in each of the puzzles
        cell = int((batch["puzzle"][puzzle] > 0).nonzero()[0])
        outputs[0, 81 * puzzle + cell] = 0
        outputs[0, 81 * puzzle + cell, int(batch["solution"][puzzle, cell]) % 9 + 1] = 1
    assert experiment.loss(outputs, batch) == 0


def test_own_answers_are_distorted_differently_in_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[float] = []

    def unchanged(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        drawn.append(rng.random())
        return images

    monkeypatch.setattr("rrn.tasks.visual_sudoku.experiment.distorted", unchanged)
    experiment = make(own_answers=True)
    for seed in (0, 1, 1):
        batch = experiment.sample(np.random.default_rng(seed))
        experiment.loss(torch.nn.functional.one_hot(batch["solution"].flatten(), 10)[None].float(), batch)
    assert drawn[0] != drawn[1]
    assert drawn[1] == drawn[2]


def test_with_labels_all_images_count_whatever_the_answers_are() -> None:
    experiment = make(own_answers=True, labels=True)
    experiment.built.eval()
    batch = experiment.sample(np.random.default_rng(0))
    wrong = torch.zeros(1, batch["solution"].numel(), 10)
    right = torch.nn.functional.one_hot(batch["solution"].flatten(), 10)[None].float()
    assert experiment.loss(wrong, batch) == experiment.loss(right, batch) > 0
    assert make(own_answers=True).loss(wrong, batch) == 0


def test_own_answers_need_no_gradient_of_the_reasoner() -> None:
    experiment = make(own_answers=True)
    outputs, _ = experiment.network()(experiment.sample(np.random.default_rng(0)), steps=2)
    assert not outputs.requires_grad


def test_no_test_image_is_trained_on() -> None:
    experiment = make()
    train, test = (
        {image.tobytes() for image in images.images}
        for images in (experiment.training_digits, experiment.digits.part("test"))
    )
    assert not train & test


def test_the_weights_of_the_last_stage_record_which_digits_they_were_trained_on(tmp_path: Path) -> None:
    digits = drawn_digits()
    np.savez(tmp_path / "digits.npz", images=digits.images, labels=digits.labels)
    whole = dataclasses.replace(tasks.find_preset("visual-sudoku"), digits=tmp_path / "digits.npz")
    for number, stage in enumerate(stage_presets(whole), 1):
        experiment = tasks.make_experiment(stage, whole)
        saved = RunFolder(experiment, Stage(tmp_path, whole, number), tensorboard=False).preset
        assert isinstance(saved, VisualSudokuPreset)
        assert saved.digits_checksum == digits.checksum


def test_the_first_stages_train_the_image_encoder_alone() -> None:
    stages = stage_presets(tasks.find_preset("visual-sudoku"))
    assert [stage.train_reasoner for stage in stages] == [False, False, True]
    assert [stage.own_answers for stage in stages] == [False, True, False]


@pytest.mark.parametrize("trained", [False, True])
def test_only_what_is_trained_gets_gradients(trained: bool) -> None:
    experiment = make(train_reasoner=trained)
    network = experiment.network()
    assert isinstance(network, VisualSudoku)
    outputs, _ = network(experiment.sample(np.random.default_rng(0)), steps=2)
    outputs.square().mean().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in network.encoder.parameters())
    assert any(weight.grad is not None for weight in network.reasoner.parameters()) == trained


def test_it_starts_from_weights_of_the_reasoner_or_of_the_whole() -> None:
    experiment = make()
    network = experiment.network()
    reasoner = read_weights(find_weights("sudoku-paper"))
    experiment.start_from(network, reasoner)
    torch.testing.assert_close(network.state_dict()["reasoner.digit.weight"], reasoner["digit.weight"])
    other = make().network()
    experiment.start_from(other, network.state_dict())
    torch.testing.assert_close(dict(other.state_dict()), dict(network.state_dict()))


def test_probabilities_of_certain_digits_are_the_digits() -> None:
    """With one-hot probabilities, the reasoner computes what it computes from symbols."""
    network = make().network()
    assert isinstance(network, VisualSudoku)
    puzzle = make().sample(np.random.default_rng(0))["puzzle"]
    from_symbols, _ = network.reasoner({"puzzle": puzzle}, steps=2)
    from_probabilities, _ = network.reasoner({"puzzle": torch.nn.functional.one_hot(puzzle, 10).float()}, steps=2)
    torch.testing.assert_close(from_symbols, from_probabilities)


def test_the_settings_name_the_file_of_digits(tmp_path: Path) -> None:
    assert make().preset.digits_checksum == ""
    digits = make().digits
    np.savez(tmp_path / "digits.npz", images=digits.images[:900], labels=digits.labels[:900])
    assert len(make(digits=tmp_path / "digits.npz").preset.digits_checksum) == 16


def test_a_digit_is_read_as_the_mean_of_five_shifted_images() -> None:
    network = make().built
    images = torch.from_numpy(drawn_digits().images[:4])
    network.eval()
    shifted = [torch.roll(images, shift, (1, 2)) for shift in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))]
    assert not torch.cat([images[:, [0, -1]].flatten(), images[:, :, [0, -1]].flatten()]).any(), "no ink may wrap"
    expected = torch.stack([network.encoder(each[:, None].float() / 255) for each in shifted]).mean(0)
    torch.testing.assert_close(network.encode(images), expected)


def test_own_answers_are_read_without_dropout() -> None:
    cells = torch.from_numpy(drawn_digits().images[:81])[None]
    for own_answers in (True, False):
        network = make(own_answers=own_answers, encoder_dropout=0.5).built.train()
        assert torch.equal(network.read(cells), network.read(cells)) == own_answers
        assert network.encoder.training
