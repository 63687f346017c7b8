"""--device: a network elsewhere is called as one that is here."""

import pytest
import torch
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.inference.devices import find_device, move, place
from rrn.nn.readouts import Outputs
from rrn.nn.updates import State


class Elsewhere(nn.Module):
    """Insists on the meta device, where it lives, and has seen what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.seen: set[str] = set()

    def forward(self, batch: dict[str, Tensor], *, state: State) -> int:
        self.seen = {part.device.type for part in (*batch.values(), *state.parts())}
        return 7


def test_inputs_go_to_the_network() -> None:
    network = place(Elsewhere(), torch.device("meta"))
    here = torch.zeros(3)
    assert network({"x": here}, state=State(here, (here,))) == 7
    assert network.seen == {"meta"}
    assert next(network.parameters()).device.type == "meta"


def test_a_network_that_keeps_devices_is_only_placed() -> None:
    network = Elsewhere()
    network.keeps_device = True
    here = torch.zeros(3)
    place(network, torch.device("meta"))({"x": here}, state=State(here))
    assert network.seen == {"cpu"}


def test_everything_within_a_value_moves() -> None:
    meta, here = torch.device("meta"), torch.zeros(3)
    outputs, state = move((Outputs(here, {"walk": here}), State(here, (here,))), meta)
    assert {part.device.type for part in (outputs.answer, outputs.extras["walk"], *state.parts())} == {"meta"}
    assert move({"steps": 3, "names": ["a"]}, meta) == {"steps": 3, "names": ["a"]}


def test_devices_by_name() -> None:
    assert find_device("cpu").type == "cpu"
    assert find_device("auto").type in ("cpu", "cuda", "mps")
    with pytest.raises(InputError, match="--device abacus: not available on this machine"):
        find_device("abacus")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match=r"--device cuda: .*try --device auto"):
            find_device("cuda")
