"""What a network answers to a batch, on whichever device it lives."""

import torch
from torch import Tensor, nn

from rrn.nn.readouts import answer_of
from rrn.training.experiment import Batch


@torch.no_grad()
def answer_logits(network: nn.Module, batch: Batch, steps: int) -> Tensor:
    """The logits of the answers after each step, (steps, n, classes), on the CPU; computed where the network is."""
    device = next((parameter.device for parameter in network.parameters()), torch.device("cpu"))
    outputs, _ = network({name: tensor.to(device) for name, tensor in batch.items()}, steps=steps)
    return answer_of(outputs).to("cpu", torch.float32)
