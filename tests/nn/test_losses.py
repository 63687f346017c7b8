import math

import pytest
import torch

from rrn.errors import InputError
from rrn.nn.losses import IGNORE, accuracy_by_step, every_step, last_step, squared_error, step_losses

OUTPUTS = torch.tensor([[[0.0, 0.0], [0.0, 0.0]], [[math.log(3.0), 0.0], [math.log(3.0), 0.0]]])  # 2 steps, 2 nodes
TARGETS = torch.tensor([0, 1])


def test_losses_by_hand() -> None:
    """Step 1: both classes 1/2. Step 2: 3/4 and 1/4."""
    expected = [math.log(2), (math.log(4 / 3) + math.log(4)) / 2]
    assert step_losses(OUTPUTS, TARGETS).tolist() == pytest.approx(expected)
    assert every_step(OUTPUTS, TARGETS).item() == pytest.approx(sum(expected) / 2)
    assert last_step(OUTPUTS, TARGETS).item() == pytest.approx(expected[1])


def test_accuracy_by_step() -> None:
    outputs = torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
    assert accuracy_by_step(outputs, TARGETS).tolist() == [0.5, 1.0]


def test_the_last_step_alone_has_a_gradient() -> None:
    outputs = OUTPUTS.clone().requires_grad_()
    last_step(outputs, TARGETS).backward()
    assert outputs.grad is not None
    assert not outputs.grad[0].any()
    assert outputs.grad[1].any()


@pytest.mark.parametrize("targets", [torch.tensor([0]), torch.tensor([[0, 1]])])
def test_targets_of_another_shape_are_named(targets: torch.Tensor) -> None:
    with pytest.raises(InputError, match=r"targets: expected shape \(2,\) .*= \(2, 2, 2\), got"):
        every_step(OUTPUTS, targets)
    with pytest.raises(InputError, match="targets: expected shape"):
        every_step(OUTPUTS[0], TARGETS)


THREE = torch.cat([OUTPUTS, torch.full((2, 1, 2), 7.0)], dim=1)
"""A third node, whose target is not known."""


def test_unknown_targets_are_skipped() -> None:
    """The mean is over what counts: a third node, ignored, changes neither losses nor accuracies."""
    for unknown, ignore in (([-100], {}), ([-1], {"ignore_index": -1})):
        targets = torch.cat([TARGETS, torch.tensor(unknown)])
        outputs = THREE.clone().requires_grad_()
        losses = step_losses(outputs, targets, **ignore)
        torch.testing.assert_close(losses, step_losses(OUTPUTS, TARGETS))
        losses.sum().backward()
        assert outputs.grad is not None
        assert outputs.grad[:, :2].any()
        assert not outputs.grad[:, 2].any()
        torch.testing.assert_close(every_step(THREE, targets, **ignore), every_step(OUTPUTS, TARGETS))
        torch.testing.assert_close(last_step(THREE, targets, **ignore), last_step(OUTPUTS, TARGETS))
        assert accuracy_by_step(THREE, targets, **ignore).tolist() == accuracy_by_step(OUTPUTS, TARGETS).tolist()


def test_without_known_targets_the_loss_is_zero() -> None:
    outputs = OUTPUTS.clone().requires_grad_()
    loss = every_step(outputs, torch.tensor([-100, -100]))
    loss.backward()
    assert loss.item() == 0
    assert outputs.grad is not None
    assert not outputs.grad.any()
    assert accuracy_by_step(OUTPUTS, torch.tensor([-100, -100])).isnan().all()


def test_weights_are_those_of_a_mean() -> None:
    weighted = step_losses(OUTPUTS, TARGETS, weights=torch.tensor([3.0, 1.0]))
    assert weighted.tolist() == pytest.approx([math.log(2), (3 * math.log(4 / 3) + math.log(4)) / 4])
    by_step = torch.tensor([[1.0, 1.0], [0.0, 5.0]])
    assert step_losses(OUTPUTS, TARGETS, weights=by_step).tolist() == pytest.approx([math.log(2), math.log(4)])
    assert last_step(OUTPUTS, TARGETS, weights=by_step).item() == pytest.approx(math.log(4))
    with pytest.raises(InputError, match=r"weights: expected shape \(2,\) or \(2, 2\), got \(3,\)"):
        step_losses(OUTPUTS, TARGETS, weights=torch.ones(3))


def test_targets_may_differ_by_step() -> None:
    outputs, targets = torch.randn(4, 5, 3), torch.randint(3, (4, 5))
    targets[1, 2] = IGNORE
    by_step = step_losses(outputs, targets)
    each = torch.cat([step_losses(outputs[step : step + 1], targets[step]) for step in range(4)])
    torch.testing.assert_close(by_step, each)
    torch.testing.assert_close(last_step(outputs, targets), each[-1])
    torch.testing.assert_close(every_step(outputs, targets), each.mean())
    right = torch.cat([accuracy_by_step(outputs[step : step + 1], targets[step]) for step in range(4)])
    torch.testing.assert_close(accuracy_by_step(outputs, targets), right)


def test_squared_error_skips_nan() -> None:
    outputs = torch.tensor([[[1.0], [2.0], [9.0]]])
    targets = torch.tensor([3.0, 2.0, math.nan])
    assert step_losses(outputs, targets, criterion=squared_error).tolist() == [2]
    pairs = torch.tensor([[[1.0, 0.0], [2.0, 4.0]]]).requires_grad_()
    of_pairs = torch.tensor([[2.0, math.nan], [2.0, 1.0]])
    loss = every_step(pairs, of_pairs, criterion=squared_error, weights=torch.tensor([1.0, 0.5]))
    assert loss.item() == pytest.approx((1 + 0.5 * 0 + 0.5 * 9) / 2)
    loss.backward()
    assert pairs.grad is not None
    assert pairs.grad.isfinite().all()
    with pytest.raises(InputError, match=r"targets: expected 2 numbers per answer, got shape \(2,\)"):
        every_step(pairs, torch.tensor([2.0, 2.0]), criterion=squared_error)


def test_answers_may_have_any_shape() -> None:
    """Those of the edges of a complete graph, for instance: (steps, graphs, size, size, classes)."""
    outputs, targets = torch.randn(3, 2, 4, 4, 5), torch.randint(5, (2, 4, 4))
    targets[:, range(4), range(4)] = -100
    flat = outputs.flatten(1, 3), targets.flatten()
    torch.testing.assert_close(step_losses(outputs, targets), step_losses(*flat))
    torch.testing.assert_close(accuracy_by_step(outputs, targets), accuracy_by_step(*flat))


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (torch.tensor([0, 2]), "targets: expected classes 0 to 1, or ignore_index, got 2"),
        (torch.tensor([-1, 0]), "targets: expected classes 0 to 1, or ignore_index, got -1"),
        (torch.tensor([0.0, 1.0]), r"targets: expected classes as integers, got torch.float32; .*squared_error"),
    ],
)
def test_targets_that_are_not_classes_are_named(targets: torch.Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        every_step(OUTPUTS, targets)


def test_accuracies_check_shapes_too() -> None:
    with pytest.raises(InputError, match=r"targets: expected shape \(2,\)"):
        accuracy_by_step(OUTPUTS, torch.tensor([0]))
