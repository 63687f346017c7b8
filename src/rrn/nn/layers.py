"""The multi-layer perceptron that every learned function of the network is made of."""

from itertools import pairwise

from torch import Tensor, nn


def linear(inputs: int, outputs: int) -> nn.Linear:
    """A linear layer with Glorot's initialisation and no bias at first.

    With torch's own, a ReLU layer passes on 0.4 of what it gets: after the many layers between a feature and an answer
    too little is left to learn from.
    """
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class MLP(nn.Module):
    """``layers`` ReLU layers of ``hidden`` units, then one linear layer.

    With ``dropout`` the outputs of the last ``dropout_layers`` ReLU layers are dropped out in training.
    """

    def __init__(
        self, inputs: int, hidden: int, outputs: int, layers: int, *, dropout: float = 0.0, dropout_layers: int = 1
    ) -> None:
        super().__init__()
        widths = [inputs, *[hidden] * layers, outputs]
        self.linears = nn.ModuleList(linear(a, b) for a, b in pairwise(widths))
        self.dropout = nn.Dropout(dropout)
        self.first_dropped = max(0, layers - dropout_layers) if dropout else layers

    def weights(self) -> list[tuple[Tensor, Tensor]]:
        """Weight and bias of each layer, the first first."""
        return [(linear.weight, linear.bias) for linear in self.linears]  # type: ignore[misc]

    def forward(self, x: Tensor) -> Tensor:
        return self.after_first(self.linears[0](x))

    def after_first(self, x: Tensor) -> Tensor:
        """What follows the product of the first layer, for who computes that in another way."""
        for index, linear in enumerate(list(self.linears)[1:]):
            x = x.relu_()
            x = linear(self.dropout(x) if index >= self.first_dropped else x)
        return x


class Product(nn.Module):
    """One hidden layer whose units are products of two linear functions of the input, then a linear layer.

    Where a ReLU layer adds and compares, this one multiplies: it can gate one part of the input by another, or turn
    an angle by an angle, exactly and after little training.
    """

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.factors = nn.Linear(inputs, 2 * hidden)
        self.out = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.factors(x).chunk(2, dim=-1)
        return self.out(a * b)
