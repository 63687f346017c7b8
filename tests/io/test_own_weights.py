"""`RRN.save_pretrained` and `RRN.from_pretrained`: networks without a preset."""

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor

from rrn import RRN, InputError
from rrn.nn.messages import AttentionMessage, GatedMessage, MLPMessage
from rrn.nn.readouts import NodeReadout
from rrn.nn.updates import LSTMUpdate, State

SETTINGS: dict[str, Any] = {
    "features": 3,
    "hidden": 6,
    "outputs": 2,
    "edge_features": 1,
    "update": "gru",
    "readout": "graph",
    "aggregate": ("sum", "max"),
    "encoder_layers": 2,
}
GRAPH = (torch.randn(4, 3), torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.randn(3, 1))


def test_round_trip(tmp_path: Path) -> None:
    network = RRN(**SETTINGS).eval()
    network.save_pretrained(tmp_path / "mine")
    again = RRN.from_pretrained(tmp_path / "mine")
    assert not again.training
    assert again.settings == network.settings
    assert torch.equal(again(*GRAPH, steps=3), network(*GRAPH, steps=3))
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == ["config.json", "model.safetensors"]


def test_the_layout_is_that_of_the_hub_mixin_both_ways(tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")

    class OnHub(hub.PyTorchModelHubMixin, RRN):  # type: ignore[misc, name-defined]
        pass

    network = RRN(**SETTINGS).eval()
    network.save_pretrained(tmp_path / "ours")
    theirs = OnHub.from_pretrained(tmp_path / "ours")
    assert torch.equal(theirs(*GRAPH, steps=3), network(*GRAPH, steps=3))
    theirs.save_pretrained(tmp_path / "theirs")
    back = RRN.from_pretrained(tmp_path / "theirs")
    assert torch.equal(back(*GRAPH, steps=3), network(*GRAPH, steps=3))


def test_the_names_of_weights_are_stable() -> None:
    pairs = ["bias", "weight"]
    common = [f"{part}.mlp.linears.{i}.{p}" for part in ("message", "update.reader") for i in (0, 1) for p in pairs]
    common += [f"encoder.linears.{i}.{p}" for i in (0, 1) for p in pairs]
    common += [f"readout.mlp.linears.0.{p}" for p in pairs]
    by_update = {
        "lstm": ["update.gates.weight", "update.gates.bias"],
        "gru": [f"update.cell.{kind}_{of}" for kind in ("weight", "bias") for of in ("ih", "hh")],
        "mlp": [],
    }
    for update, names in by_update.items():
        assert sorted(RRN(3, 6, 2, update=update).state_dict()) == sorted(common + names)


class Halved(LSTMUpdate):
    """A custom part: the readout reads half of h."""

    def readout_state(self, state: State) -> Tensor:
        return state.h / 2


def test_custom_parts_are_passed_when_loading(tmp_path: Path) -> None:
    network = RRN(**SETTINGS | {"outputs": None, "update": Halved(6), "readout": NodeReadout(6, 4)}).eval()
    network.save_pretrained(tmp_path)
    again = RRN.from_pretrained(tmp_path, update=Halved(6), readout=NodeReadout(6, 4))
    assert torch.equal(again(*GRAPH, steps=3), network(*GRAPH, steps=3))
    assert again.settings == network.settings
    message = r": it has a custom update; pass it: RRN\.from_pretrained\('.*', update=Halved\(…\)\)"
    with pytest.raises(InputError, match=message):
        RRN.from_pretrained(tmp_path, readout=NodeReadout(6, 4))
    with pytest.raises(InputError, match="update: the network was saved with Halved, got LSTMUpdate"):
        RRN.from_pretrained(tmp_path, update=LSTMUpdate(6), readout=NodeReadout(6, 4))
    with pytest.raises(InputError, match="message: the network was saved with no custom part, got MLPMessage"):
        RRN.from_pretrained(tmp_path, update=Halved(6), readout=NodeReadout(6, 4), message=MLPMessage(6, 1))
    with pytest.raises(InputError, match=r"model\.safetensors: not the weights of this network"):
        RRN.from_pretrained(tmp_path, update=Halved(6), readout=NodeReadout(6, 5))


def test_a_custom_message_is_passed_when_loading(tmp_path: Path) -> None:
    network = RRN(3, 6, 2, edge_features=1, message=GatedMessage(6, 1)).eval()
    network.save_pretrained(tmp_path)
    again = RRN.from_pretrained(tmp_path, message=GatedMessage(6, 1))
    assert torch.equal(again(*GRAPH, steps=3), network(*GRAPH, steps=3))


def test_weights_of_a_preset_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"ages: the weights of a preset; load them with rrn\.from_pretrained\('ages'\)"
    ):
        RRN.from_pretrained("ages")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": 10**5}, r"not the weights of this network: .* expected \[100000\]"),
        ({"hidden": 10**9}, "not the settings of a network"),
        ({"hidden": 10**30}, "not the settings of a network"),
        ({"hidden": -3}, "hidden: expected at least 1, got -3"),
        ({"hidden": "6"}, "hidden: expected an integer"),
        ({"hidden": None}, "hidden: expected an integer"),
        ({"message_layers": 65}, "65 layers exceed the limit of 64"),
        ({"message_layers": 10**9}, "1,000,000,000 layers exceed the limit of 64"),
        ({"aggregate": ["sum"] * 100_000}, "not the settings of a network|not the weights of this network"),
        ({"update": {"lstm": 1}}, "update: expected a name"),
        ({"dropout": "much"}, "dropout: expected a number"),
    ],
)
def test_settings_that_do_not_match_the_weights_are_refused(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    RRN(3, 6, 2, readout_layers=1).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(InputError, match=message):
        RRN.from_pretrained(tmp_path)


def test_unknown_settings_are_named(tmp_path: Path) -> None:
    RRN(3, 6, 2).save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"depth": 3}')
    with pytest.raises(InputError, match=r"config\.json: not the settings of a network .*depth"):
        RRN.from_pretrained(tmp_path)
    RRN(3, 6, 2).save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    for name in ("update", "update_inputs", "readout", "aggregate"):
        (tmp_path / "config.json").write_text(json.dumps(settings | {name: "y" * 9999}))
        with pytest.raises(InputError, match=f"{name}: expected .*, got 'yyy") as refused:
            RRN.from_pretrained(tmp_path)
        assert len(str(refused.value)) < 300


def test_folders_of_earlier_versions_load(tmp_path: Path) -> None:
    """An explicit "xm" of an MLP update stays; custom parts were named "own"."""
    RRN(3, 6, 2, update="mlp", update_inputs="xm").save_pretrained(tmp_path / "mlp")
    assert RRN.from_pretrained(tmp_path / "mlp").update.reader.inputs == "xm"
    network = RRN(**SETTINGS | {"update": Halved(6)}).eval()
    network.save_pretrained(tmp_path / "custom")
    path = tmp_path / "custom" / "config.json"
    config = json.loads(path.read_text())
    assert config["update"] == {"custom": "Halved"}
    path.write_text(json.dumps(config | {"update": {"own": "Halved"}, "update_inputs": "xm"}))
    again = RRN.from_pretrained(tmp_path / "custom", update=Halved(6))
    assert torch.equal(again(*GRAPH, steps=3), network(*GRAPH, steps=3))


def test_tensors_of_earlier_versions_load(tmp_path: Path) -> None:
    RRN(3, 6, 2, edge_features=1, message=AttentionMessage(6, 1, 2, 3)).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    tensors["message.nobody"] = tensors.pop("message.no_sender") + 3
    safetensors.torch.save_file(tensors, path)
    again = RRN.from_pretrained(tmp_path, message=AttentionMessage(6, 1, 2, 3))
    assert again.message.no_sender.tolist() == [3, 3]
