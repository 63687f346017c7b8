"""The weights of the digit reader as one file that the page loads. ``python -m static_site.digit_reader`` writes it."""

import numpy as np
from torch import nn

from rrn.tasks.photo.predict import load_reader
from rrn.web.app import STATIC

FILE = STATIC / "photo" / "reader.bin"


def numbers(network: nn.Module) -> np.ndarray:
    """float32: the number of filters, then weights and biases of all layers in order."""
    parameters = [parameter.detach().numpy().ravel() for parameter in network.parameters()]
    return np.concatenate([[len(parameters[1])], *parameters]).astype("<f4")


if __name__ == "__main__":
    FILE.write_bytes(numbers(load_reader()).tobytes())
