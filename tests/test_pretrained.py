import dataclasses
import json
import re
from pathlib import Path

import pytest
import torch
from torch import nn

import rrn
from rrn import tasks
from rrn.errors import InputError
from rrn.presets import Preset
from rrn.pretrained import from_pretrained, read_config, save_pretrained, shipped
from rrn.tasks.ages.data import held_out_questions
from rrn.tasks.ages.model import as_batch


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, nn.Module, Preset]:
    preset = dataclasses.replace(tasks.find_preset("ages"), hidden=12, message_width=8, update_width=8)
    network = tasks.build_network(preset).eval()
    save_pretrained(network, tmp_path / "weights", preset, {"score": 0.5})
    return tmp_path / "weights", network, preset


def test_round_trip_is_bit_exact(saved: tuple[Path, nn.Module, Preset]) -> None:
    folder, network, preset = saved
    loaded, preset_again = from_pretrained(folder)
    assert preset_again == preset
    assert not loaded.training
    batch = as_batch(held_out_questions(5))
    with torch.no_grad():
        assert torch.equal(loaded(batch, steps=3)[0].answer, network(batch, steps=3)[0].answer)


def test_the_card_names_the_command_that_trains_it(tmp_path: Path) -> None:
    preset = dataclasses.replace(
        tasks.find_preset("sudoku"), pool=tmp_path / "pool.csv", slot_steps=(4, 8), minutes=None, clip=0.5
    )
    save_pretrained(tasks.build_network(preset), tmp_path, preset, {"score": 0.5})
    command = "rrn train sudoku --minutes None --clip 0.5 --slot-steps 4 8 --pool pool.csv"
    assert f"`{command}`" in (tmp_path / "README.md").read_text()


def test_the_folder_says_what_it_is(saved: tuple[Path, nn.Module, Preset]) -> None:
    folder, network, _ = saved
    _, config = read_config(str(folder))
    parameters = sum(p.numel() for p in network.parameters())
    assert (config["task"], config["parameters"], config["trained"]) == ("ages", parameters, {"score": 0.5})
    card = (folder / "README.md").read_text()
    assert f"{parameters:,} parameters" in card
    assert "| score | 0.5 |" in card
    assert "`rrn train ages --hidden 12 --message-width 8 --update-width 8`" in card
    assert sorted(file.name for file in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]


def test_wrong_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no config\.json in it, so not a folder of saved weights"):
        from_pretrained(tmp_path)
    with pytest.raises(InputError, match="no weights 'nothing': no such folder, and shipped are"):
        from_pretrained("nothing")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"config\.json: not the configuration of saved weights"):
        from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"task": "chess", "preset": {}}')
    with pytest.raises(InputError, match=r"config\.json: for the task 'chess', which this version does not know"):
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
    with pytest.raises(InputError, match=r"model\.safetensors: not the weights of this network"):
        from_pretrained(folder)


def test_settings_of_another_version_are_named(saved: tuple[Path, nn.Module, Preset]) -> None:
    path = saved[0] / "config.json"
    config = json.loads(path.read_text())
    config["preset"]["colour"] = "red"
    path.write_text(json.dumps(config))
    with pytest.raises(InputError, match="unknown settings colour; the weights are of another version"):
        from_pretrained(saved[0])


def test_a_hub_id_that_cannot_be_had_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")

    def offline(*_: object, **__: object) -> str:
        raise OSError("no network")

    monkeypatch.setattr(hub, "snapshot_download", offline)
    with pytest.raises(
        InputError, match=r"somebody/weights: neither a folder nor to be had from the hub \(no network\)"
    ):
        from_pretrained("somebody/weights")


def test_a_hub_id_is_fetched(saved: tuple[Path, nn.Module, Preset], monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub, "snapshot_download", lambda name, **_: str(saved[0]))
    assert from_pretrained("somebody/weights")[1] == saved[2]


def test_shipped_names_load_and_a_folder_of_the_same_name_does_not_hide_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in shipped():
        (tmp_path / name).mkdir()
        network, preset = from_pretrained(name)
        assert preset.task in tasks.TASKS
        assert sum(p.numel() for p in network.parameters()) == read_config(name)[1]["parameters"]


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
    with pytest.raises(InputError, match="of a network 'guessing', which this version does not know"):
        read_config(folder)
