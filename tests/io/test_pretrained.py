import dataclasses
import json
import re
import resource
from pathlib import Path

import pytest
import torch
from torch import nn

import rrn
from rrn import RRN, from_pretrained, tasks
from rrn.cli import main
from rrn.errors import InputError
from rrn.io.pretrained import save_pretrained, shipped
from rrn.nn import LSTMUpdate
from rrn.tasks import weights
from rrn.tasks.ages.data import held_out_questions
from rrn.tasks.ages.model import as_batch
from rrn.tasks.weights import average, read_config
from rrn.training.presets import Preset


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, nn.Module, Preset]:
    preset = dataclasses.replace(tasks.find_preset("ages"), hidden=12, message_width=8, update_width=8)
    network = tasks.build_network(preset).eval()
    save_pretrained(network, tmp_path / "weights", preset, {"score": 0.5}, tasks.find_preset("ages"))
    return tmp_path / "weights", network, preset


def test_round_trip_is_bit_exact(saved: tuple[Path, nn.Module, Preset]) -> None:
    folder, network, preset = saved
    loaded = from_pretrained(folder)
    assert loaded.preset == preset
    assert loaded.config["trained"] == {"score": 0.5}
    assert not loaded.training
    batch = as_batch(held_out_questions(5))
    with torch.no_grad():
        assert torch.equal(loaded(batch, steps=3)[0].answer, network(batch, steps=3)[0].answer)


def test_the_card_names_the_command_that_trains_it(tmp_path: Path) -> None:
    preset = dataclasses.replace(
        tasks.find_preset("sudoku"), pool=(tmp_path / "pool.csv",), slot_steps=(4, 8), minutes=None, clip=0.5
    )
    save_pretrained(tasks.build_network(preset), tmp_path, preset, {"score": 0.5}, tasks.find_preset("sudoku"))
    command = "rrn train sudoku --minutes None --clip 0.5 --slot-steps 4 8 --pool pool.csv"
    assert f"`{command}`" in (tmp_path / "README.md").read_text()


def test_the_mean_of_weights(saved: tuple[Path, nn.Module, Preset], tmp_path: Path) -> None:
    folder, network, preset = saved
    others = [tasks.build_network(preset) for _ in range(2)]
    for number, other in enumerate(others):
        save_pretrained(other, tmp_path / f"run{number}" / "best", preset, {})
    mean = average([folder, *(tmp_path / f"run{number}" / "best" for number in range(2))])
    assert mean.preset == preset
    for name, weight in mean.state_dict().items():
        expected = (network.state_dict()[name] + others[0].state_dict()[name] + others[1].state_dict()[name]) / 3
        assert torch.allclose(weight, expected, atol=1e-6)
    out = tmp_path / "mean"
    assert main(["average", str(folder), str(tmp_path / "run1" / "best"), "--out", str(out)]) == 0
    assert read_config(out)[1]["trained"] == {"mean_of": f"{folder}, run1"}
    assert "the mean of several weights" in (out / "README.md").read_text()
    with pytest.raises(InputError, match="two or more"):
        average([folder])
    with pytest.raises(InputError, match="for the task 'sudoku', not for 'ages'"):
        average([folder, "sudoku"])
    save_pretrained(tasks.build_network(tasks.find_preset("ages")), tmp_path / "wide", tasks.find_preset("ages"), {})
    with pytest.raises(InputError, match="not the shapes of"):
        average([folder, tmp_path / "wide"])


def test_the_mean_keeps_integers_of_the_first(
    saved: tuple[Path, nn.Module, Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = saved[2]

    def load(name: object, **_: object) -> nn.Module:
        loaded = tasks.build_network(preset)
        loaded.register_buffer("counter", torch.tensor(int(str(name))))
        loaded.preset = preset
        return loaded

    monkeypatch.setattr(weights, "from_pretrained", load)
    assert int(average(["3", "4"]).counter) == 3


def test_the_folder_says_what_it_is(saved: tuple[Path, nn.Module, Preset]) -> None:
    folder, network, _ = saved
    _, config = read_config(str(folder))
    parameters = sum(p.numel() for p in network.parameters())
    assert (config["task"], config["parameters"], config["trained"]) == ("ages", parameters, {"score": 0.5})
    card = (folder / "README.md").read_text()
    assert f"{parameters:,} parameters" in card
    assert "\n|" not in card, "a card has no table of validation figures"
    assert "Validation score 0.5. " in card
    assert "`rrn train ages --hidden 12 --message-width 8 --update-width 8`" in card
    assert sorted(file.name for file in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]


def test_wrong_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no config\.json in this folder, so it does not hold saved weights"):
        from_pretrained(tmp_path)
    with pytest.raises(InputError, match="no weights 'nothing': no such folder; shipped weights: ages,"):
        from_pretrained("nothing")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"config\.json: not the configuration of saved weights"):
        from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"task": "chess", "preset": {}, "parameters": 1, "trained": {}}')
    with pytest.raises(InputError, match=r"config\.json: for the task 'chess', which this version does not have"):
        from_pretrained(tmp_path)


def test_damaged_weights_are_named(saved: tuple[Path, nn.Module, Preset]) -> None:
    folder, _, preset = saved
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"model\.safetensors: not a file of weights"):
        from_pretrained(folder)
    weights.unlink()
    with pytest.raises(InputError, match=r"model\.safetensors: not a file of weights"):
        from_pretrained(folder)
    save_pretrained(nn.Linear(2, 2), folder, preset, {})
    with pytest.raises(
        InputError, match=r"model\.safetensors: not the weights of this network: 'bias' is \[2\], expected"
    ):
        from_pretrained(folder)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(number: float, saved: tuple[Path, nn.Module, Preset]) -> None:
    folder, network, preset = saved
    next(network.parameters()).data.view(-1)[3] = number
    save_pretrained(network, folder, preset, {})
    with pytest.raises(InputError, match=r"model\.safetensors: '.*' holds numbers that are not finite"):
        from_pretrained(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": 10**9}, "hidden: expected at most 16,384, got 1000000000"),
        ({"hidden": -3}, "hidden: expected at least 1, got -3"),
        ({"hidden": "12"}, "hidden: expected a whole number, got '12'"),
        ({"hidden": 2**14, "message_width": 2**14}, r"not the weights of this network: .* differ"),
        ({"steps": None}, "steps: expected a whole number, got None"),
        ({"network": "recurrent"}, "of a network 'recurrent', which this version does not have"),
        ({"lr": float("nan")}, "lr: expected a number, got None"),
    ],
)
def test_settings_are_checked_before_anything_is_built(
    change: dict[str, object], message: str, saved: tuple[Path, nn.Module, Preset]
) -> None:
    """The widest that is in range would take gigabytes: it is compared with the weights first."""
    path = saved[0] / "config.json"
    config = json.loads(path.read_text())
    config["preset"] |= change
    path.write_text(json.dumps(config))
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match=message) as refused:
        from_pretrained(saved[0])
    assert str(path.parent) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - taken < 600_000  # kilobytes; imports of torch included


def test_a_wide_network_loads_after_its_shapes_were_compared(tmp_path: Path) -> None:
    preset = dataclasses.replace(tasks.find_preset("ages"), hidden=1040, message_width=8, update_width=8)
    network = tasks.build_network(preset).eval()
    save_pretrained(network, tmp_path, preset, {})
    again = from_pretrained(tmp_path)
    assert {tensor.device.type for tensor in again.state_dict().values()} == {"cpu"}
    batch = as_batch(held_out_questions(2))
    with torch.no_grad():
        assert torch.equal(again(batch, steps=1)[0].answer, network(batch, steps=1)[0].answer)


def test_weights_of_another_task_are_refused(saved: tuple[Path, nn.Module, Preset]) -> None:
    assert from_pretrained(saved[0], task="ages").preset.task == "ages"
    with pytest.raises(InputError, match="for the task 'ages', not for 'sudoku'"):
        from_pretrained(saved[0], task="sudoku")


def test_a_folder_does_not_hide_shipped_weights_of_its_name(
    saved: tuple[Path, nn.Module, Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _, preset = saved
    monkeypatch.chdir(folder.parent)
    folder.rename("ages")
    assert from_pretrained("ages").preset != preset
    assert from_pretrained("./ages").preset == from_pretrained(Path("ages")).preset == preset


@pytest.mark.parametrize("name", ["np", "mine", "runs/best", "./best"])
def test_a_folder_of_any_other_name_loads(
    name: str, saved: tuple[Path, nn.Module, Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _, preset = saved
    monkeypatch.chdir(folder.parent)
    Path("runs").mkdir()
    folder.rename(name)
    assert from_pretrained(name).preset == from_pretrained(Path(name)).preset == preset
    monkeypatch.chdir(name)
    assert from_pretrained(".").preset == preset


def test_networks_with_and_without_a_preset_load_by_one_function(tmp_path: Path) -> None:
    RRN(3, 6, 2, update=LSTMUpdate(6)).save_pretrained(tmp_path)
    network, shipped_network = from_pretrained(tmp_path, update=LSTMUpdate(6)), from_pretrained("ages")
    assert isinstance(network, RRN)
    for loaded in (network, shipped_network):
        assert isinstance(loaded, nn.Module)
        assert not loaded.training
    assert (network.preset, network.config["hidden"]) == (None, 6)
    assert shipped_network.preset == read_config("ages")[0]
    with pytest.raises(InputError, match="without a preset, not for 'ages'"):
        from_pretrained(tmp_path, task="ages")
    with pytest.raises(InputError, match="update: only for an RRN with custom parts; 'ages' has a preset"):
        from_pretrained("ages", update=LSTMUpdate(6))


@pytest.mark.parametrize("name", ["x" * 5000, "y/" * 3000, "a\0b", "", "\udc80", "owner/" + "z" * 3000])
def test_names_of_all_kinds_are_refused_in_a_line(name: str) -> None:
    with pytest.raises(InputError) as refused:
        from_pretrained(name)
    assert len(str(refused.value)) < 1000
    assert "\n" not in str(refused.value)


def test_settings_of_another_version_are_named(saved: tuple[Path, nn.Module, Preset]) -> None:
    path = saved[0] / "config.json"
    config = json.loads(path.read_text())
    config["preset"]["colour"] = "red"
    path.write_text(json.dumps(config))
    with pytest.raises(InputError, match="unknown settings colour; the weights are of another version"):
        from_pretrained(saved[0])


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, saved: tuple[Path, nn.Module, Preset]) -> list[tuple[str, object]]:
    """The downloads from the hub, by repository and revision; each of them gives the saved folder."""
    asked: list[tuple[str, object]] = []

    def download(name: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        asked.append((name, revision))
        return str(saved[0])

    monkeypatch.setattr(pytest.importorskip("huggingface_hub"), "snapshot_download", download)
    return asked


def test_a_hub_id_needs_its_prefix(hub: list[tuple[str, object]], saved: tuple[Path, nn.Module, Preset]) -> None:
    assert from_pretrained("hf://owner/weights").preset == saved[2]
    assert hub == [("owner/weights", None)]
    from_pretrained("hf://owner/weights", revision="1f2e3d")
    assert hub[1:] == [("owner/weights", "1f2e3d")]


@pytest.mark.parametrize("name", ["owner/weights", "runs/best", "./best", "../weights", "/owner/weights", "best"])
def test_the_hub_is_not_asked_without_the_prefix(name: str, hub: list[tuple[str, object]]) -> None:
    with pytest.raises(InputError, match=f"no weights '{re.escape(name)}': no such folder"):
        from_pretrained(name)
    with pytest.raises(InputError, match="no such folder"):
        from_pretrained(Path(name))
    with pytest.raises(InputError, match="no such folder"):
        RRN.from_pretrained(name)
    assert not hub


@pytest.mark.parametrize("name", ["hf://", "hf://owner", "hf://owner/name/more", "hf://../weights/..", "hf://a b/c"])
def test_malformed_hub_ids_are_refused(name: str, hub: list[tuple[str, object]]) -> None:
    with pytest.raises(InputError, match="weights: expected hf://owner/name, got 'hf://"):
        from_pretrained(name)
    assert not hub


def test_a_failed_download_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> str:
        raise OSError("no network")

    monkeypatch.setattr(pytest.importorskip("huggingface_hub"), "snapshot_download", offline)
    with pytest.raises(InputError, match=r"'hf://owner/weights': hub download failed \(no network\)"):
        from_pretrained("hf://owner/weights")


def test_a_revision_is_for_the_hub_only() -> None:
    with pytest.raises(InputError, match=r"revision: only for weights on the hub \(hf://owner/name\), got the name"):
        from_pretrained("ages", revision="1f2e3d")


def test_shipped_names_load_and_a_folder_of_the_same_name_does_not_hide_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in shipped():
        (tmp_path / name).mkdir()
        network = from_pretrained(name)
        assert network.preset.task in tasks.TASKS
        assert sum(p.numel() for p in network.parameters()) == network.config["parameters"]


def test_no_pickle_on_any_load_path() -> None:
    forbidden = re.compile(
        r"(?<!safetensors\.)torch\.(load|save)\(|pickle\.\w+\(|import pickle|allow_pickle=True|joblib"
    )
    sources = list(Path(rrn.__file__).parent.rglob("*.py"))
    assert len(sources) > 30
    lines = [(path, line) for path in sources for line in path.read_text().splitlines()]
    assert not [(path.name, line) for path, line in lines if forbidden.search(line)]
    assert forbidden.search("weights = torch.load(path)")


def test_weights_that_name_the_settings_of_other_networks_too_are_read(saved: tuple[Path, nn.Module, Preset]) -> None:
    """As weights did while a task had one class of settings for all of its networks."""
    folder, _, preset = saved
    config = json.loads((folder / "config.json").read_text())
    config["preset"]["dropout"] = 0.0  # of ages-paper
    (folder / "config.json").write_text(json.dumps(config))
    assert read_config(folder)[0] == preset
    config["preset"]["dropuot"] = 0.0
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="unknown settings dropuot"):
        read_config(folder)
    config["preset"]["network"] = "guessing"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="of a network 'guessing', which this version does not have"):
        read_config(folder)
