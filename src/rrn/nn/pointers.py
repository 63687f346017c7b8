"""Pointers: every node chooses one of the edges that leave it, by the scores of an edge readout.

An edge readout with one output gives a score per edge, (steps, edges, 1). A node points to the receiver of its edge
with the highest score. To let a node point to itself, add a self-loop.
"""

import torch
from torch import Tensor

from rrn.errors import InputError


def pointers(scores: Tensor, edge_index: Tensor, nodes: int) -> Tensor:
    """The node that each node points to: scores (steps, edges, 1) → (steps, nodes); -1 for a node without edges.

    Of edges with equal scores the last one in ``edge_index`` is chosen.
    """
    scores, senders = _check(scores, edge_index)
    highest = scores.new_full((len(scores), nodes), -torch.inf).scatter_reduce(1, senders, scores, "amax")
    numbers = torch.arange(scores.shape[1], device=scores.device).expand_as(senders)
    chosen = torch.where(scores == highest.gather(1, senders), numbers, -1)
    edges = chosen.new_full((len(scores), nodes), -1).scatter_reduce(1, senders, chosen, "amax")
    return torch.where(edges < 0, -1, edge_index[1][edges.clamp(min=0)])


def pointer_losses(scores: Tensor, edge_index: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of each node's pointer: a softmax over the edges that leave the node.

    Args:
        scores: (steps, edges, 1), the outputs of an edge readout.
        edge_index: (2, edges), senders in row 0.
        targets: the node that each node points to: (nodes,), the same at every step, or (steps, nodes), one for each
            step. An edge to it must exist. -100: unknown.

    Returns:
        (steps, nodes), 0 where the target is unknown.
    """
    scores, senders = _check(scores, edge_index)
    steps, nodes = len(scores), targets.shape[-1]
    if targets.dim() not in (1, 2) or (targets.dim() == 2 and len(targets) != steps):
        raise InputError(f"targets: expected shape (nodes,) or ({steps}, nodes), got {tuple(targets.shape)}")
    targets = targets.expand(steps, nodes)
    right = (edge_index[1] == targets.gather(1, senders)).to(scores)
    zeros, known = scores.new_zeros(steps, nodes), targets != -100
    if not bool((zeros.index_add(1, edge_index[0], right)[known] == 1).all()):
        raise InputError("targets: expected exactly one edge from each node to its target")
    highest = (zeros - torch.inf).scatter_reduce(1, senders, scores.detach(), "amax")
    shifted = scores - highest.gather(1, senders)
    total = zeros.index_add(1, edge_index[0], shifted.exp())
    chosen = zeros.index_add(1, edge_index[0], shifted * right)
    return torch.where(known, total.clamp(min=1e-30).log() - chosen, 0)


def _check(scores: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
    """The scores as (steps, edges), and the sender of each."""
    if scores.dim() != 3 or scores.shape[1:] != (edge_index.shape[1], 1):
        raise InputError(f"scores: expected shape (steps, {edge_index.shape[1]}, 1), got {tuple(scores.shape)}")
    return scores[..., 0], edge_index[0].expand(len(scores), -1)
