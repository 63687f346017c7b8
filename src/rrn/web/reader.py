"""The weights of the digit reader as one file that the page loads. ``python -m rrn.web.reader`` writes it."""

from pathlib import Path

import numpy as np
from torch import nn

from rrn.tasks.photo.predict import load_reader

FILE = Path(__file__).parent / "static" / "photo" / "reader.bin"


def numbers(network: nn.Module) -> np.ndarray:
    """float32: the number of filters, then weights and biases of all layers in order."""
    parameters = [parameter.detach().numpy().ravel() for parameter in network.parameters()]
    return np.concatenate([[len(parameters[1])], *parameters]).astype("<f4")


if __name__ == "__main__":
    FILE.write_bytes(numbers(load_reader()).tobytes())
