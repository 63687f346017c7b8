"""Passes over a chunk of edges before, between and after the matrix products of f's hidden layers.

``senders`` and ``receivers`` are the ends of these edges. Without edge terms, ``terms`` has no rows. Gradients are
added in place. `rrn.engines.fused` has the same functions in compiled code.
"""

import torch
from torch import Tensor


def first_layer(source: Tensor, target: Tensor, terms: Tensor, senders: Tensor, receivers: Tensor, out: Tensor) -> None:
    """relu(source_i + target_j + term_ij) of every edge."""
    torch.index_select(source, 0, senders, out=out).add_(target.index_select(0, receivers))
    (out.add_(terms) if len(terms) else out).relu_()


def add_relu(z: Tensor, bias: Tensor, out: Tensor) -> None:
    """relu(z + bias) of a matrix product z."""
    torch.add(z, bias, out=out).relu_()


def collect(z: Tensor, bias: Tensor, receivers: Tensor, total: Tensor, positive: Tensor) -> None:
    """Add relu(z + bias) to the receivers. ``positive``, unless it is empty, becomes the mask of values above 0."""
    total.index_add_(0, receivers, z.add_(bias).relu_())
    if len(positive):
        torch.gt(z, 0, out=positive)


def spread(gradient: Tensor, receivers: Tensor, positive: Tensor, flow: Tensor, to_bias: Tensor) -> None:
    """`collect` backwards: ``flow`` becomes the gradient of z."""
    through_relu(torch.index_select(gradient, 0, receivers, out=flow), positive, to_bias)


def through_relu(flow: Tensor, z: Tensor, to_bias: Tensor) -> None:
    """``flow``, the gradient behind a ReLU, becomes the one before it."""
    to_bias += flow.masked_fill_(z <= 0, 0).sum(0)


def to_ends(
    flow: Tensor,
    z: Tensor,
    senders: Tensor,
    receivers: Tensor,
    to_source: Tensor,
    to_target: Tensor,
    to_terms: Tensor,
) -> None:
    """`first_layer` backwards; z is its result."""
    torch.ops.aten.threshold_backward.grad_input(flow, z, 0, grad_input=flow)
    to_source.index_add_(0, senders, flow)
    to_target.index_add_(0, receivers, flow)
    if len(to_terms):
        to_terms.copy_(flow)
