"""The compiled passes of an LSTM's gates equal torch's."""

import numpy as np
import pytest
import torch

from rrn._compat import COMPILED
from rrn.engines import edges as passes
from rrn.nn.updates import lstm

pytestmark = pytest.mark.skipif(not COMPILED, reason="numba is not installed")


def test_tanh_has_the_precision_of_32_bits() -> None:
    x = np.linspace(-12, 12, 100_001, dtype=np.float32)
    found = np.array([passes._tanh(value) for value in x])
    assert np.abs(found - np.tanh(x.astype(np.float64))).max() < 4e-7
    assert np.isnan(passes._tanh(np.float32(np.nan)))
    assert passes._tanh(np.float32(np.inf)) == pytest.approx(1.0, abs=4e-7)


@pytest.mark.parametrize("width", [1, 3, 16, 96])
def test_the_gates_and_their_gradients(width: int) -> None:
    generator = torch.Generator().manual_seed(width)
    sums, bias = 3 * torch.randn(7, 4 * width, generator=generator), torch.randn(4 * width, generator=generator)
    cell = torch.randn(7, width, generator=generator)
    arriving = torch.randn(2, 7, width, generator=generator)
    exact = [(sums + bias).double().requires_grad_(), cell.double().requires_grad_()]
    expected = lstm(*exact)
    gradients = torch.autograd.grad(expected, exact, list(arriving.double()))
    gates, (hidden, after, squashed) = sums.clone(), torch.empty(3, 7, width)
    passes._through_gates(bias.numpy(), *(part.numpy() for part in (gates, cell, hidden, after, squashed)))
    for found, wanted in zip((hidden, after), expected, strict=True):
        torch.testing.assert_close(found.double(), wanted.detach(), atol=2e-6, rtol=0)
    to_sums, to_cell = torch.empty(7, 4 * width), torch.empty(7, width)
    to_bias = torch.ones(4 * width, dtype=torch.float64)
    passes._back_through_gates(
        *(part.numpy() for part in (gates, squashed, cell, arriving[0], arriving[1], to_sums, to_cell, to_bias))
    )
    for found, wanted in zip((to_sums, to_cell), gradients, strict=True):
        torch.testing.assert_close(found.double(), wanted, atol=5e-6, rtol=0)
    torch.testing.assert_close(to_bias - 1, gradients[0].sum(0), atol=2e-5, rtol=0)
