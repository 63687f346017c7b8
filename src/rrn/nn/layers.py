"""The layers that every learned function of the network is built from."""

from itertools import pairwise

from torch import Tensor, nn

from rrn.errors import InputError


class Resettable(nn.Module):
    """A module whose `reset_parameters` resets all of its submodules, in the order in which they were assigned."""

    def reset_parameters(self) -> None:
        """Draw new initial weights. A subclass with parameters outside its submodules overrides this."""
        _reset(self)


def _reset(module: nn.Module) -> None:
    if any(True for _ in module.parameters(recurse=False)):
        raise InputError(f"{type(module).__name__}: it has parameters but no reset_parameters(); define one")
    for child in module.children():
        reset = getattr(child, "reset_parameters", None)
        if callable(reset):
            reset()
        else:
            _reset(child)


class Linear(nn.Linear):
    """A linear layer with Glorot initialisation and zero bias.

    With torch's default, a ReLU layer scales its input by about 0.4. After the many layers between a feature and an
    output, too little signal is left to learn from.
    """

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)


class MLP(Resettable):
    """``layers`` ReLU layers of ``hidden`` units, then one linear layer.

    In training, ``dropout`` applies to the outputs of the last ``dropout_layers`` ReLU layers.
    """

    def __init__(
        self, inputs: int, hidden: int, outputs: int, layers: int, *, dropout: float = 0.0, dropout_layers: int = 1
    ) -> None:
        super().__init__()
        widths = [inputs, *[hidden] * layers, outputs]
        self.linears = nn.ModuleList(Linear(a, b) for a, b in pairwise(widths))
        self.dropout = nn.Dropout(dropout)
        self.first_dropped = max(0, layers - dropout_layers) if dropout else layers

    def weights(self) -> list[tuple[Tensor, Tensor]]:
        """Weight and bias of each layer, in order."""
        return [(linear.weight, linear.bias) for linear in self.linears]  # type: ignore[misc]

    def has_widths(self, *widths: int) -> bool:
        """Whether the layers have these numbers of inputs and outputs, in weights and biases."""
        found = [(weight.shape, bias.shape) for weight, bias in self.weights()]
        return found == [((outputs, inputs), (outputs,)) for inputs, outputs in pairwise(widths)]

    def forward(self, x: Tensor) -> Tensor:
        return self.after_first(self.linears[0](x))

    def after_first(self, x: Tensor) -> Tensor:
        """Apply everything after the first matrix product, for callers that precompute the first product."""
        for index, linear in enumerate(list(self.linears)[1:]):
            x = x.relu_()
            x = linear(self.dropout(x) if index >= self.first_dropped else x)
        return x


class Product(Resettable):
    """One hidden layer whose units are products of two linear functions of the input, then a linear layer.

    A ReLU layer adds and compares; this layer multiplies. It can gate one part of the input by another, or rotate by
    an angle, exactly.
    """

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.factors = nn.Linear(inputs, 2 * hidden)
        self.out = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.factors(x).chunk(2, dim=-1)
        return self.out(a * b)
