import math

import pytest
import torch

from rrn.errors import InputError
from rrn.losses import accuracy_by_step, every_step, last_step, step_losses

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
