"""Every preset has the settings of its own network, and refuses those that would do nothing."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import rrn
from rrn import tasks
from rrn.io.pretrained import save_pretrained
from rrn.tasks.weights import from_pretrained, read_config
from rrn.training.presets import RENAMED_SETTINGS, with_new_names

Call = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("ages", "--dropout"),
        ("ages-answers", "--layers"),
        ("ages-paper", "--message-width"),
        ("babi", "--encoding"),
        ("babi-paper", "--support-loss"),
        ("babi-lstm", "--roles"),
        ("babi-memn2n", "--word-width"),
        ("babi-entnet", "--dropout"),
        ("pretty-clevr", "--update-inputs"),
        ("pretty-clevr-distances", "--path-loss"),
        ("pretty-clevr-paper", "--heads"),
        ("pretty-clevr-mlp", "--update-width"),
        ("sudoku", "--tied-digit-units"),
        ("sudoku-paper", "--message-width"),
        ("sudoku-rn-graph", "--slot-steps"),
        ("sudoku-convolutional", "--layers"),
    ],
)
def test_a_flag_of_another_network_is_refused(name: str, flag: str, call: Call) -> None:
    code, out, error = call("train", name, flag, "1")
    assert code == 2
    assert flag in out + error


@pytest.mark.parametrize(
    ("flags", "without"),
    [
        (("--stay", "0.5", "--slot-steps", "None"), "without --slot-steps"),
        (("--noise-share", "0.3"), "without --noise"),
        (("--noise-share", "0.1"), "without --noise"),  # what it is anyway, and does nothing all the same
        (("--pool_share=0.3", "--few-givens-pool", "0"), "without --pool or --few-givens-pool"),
        (("--pool-extra-givens", "1", "2", "--few-givens-pool", "0"), "without --pool or --few-givens-pool"),
        (("--extra-givens-decrement", "0.1", "--slot-steps", "None"), "without --slot-steps"),
        (("--l2", "0.1"), "without --optimizer adam"),
        (("--weight-decay", "0.01", "--optimizer", "adam"), "without --optimizer adamw"),
    ],
)
def test_a_flag_that_would_do_nothing_is_refused(flags: tuple[str, ...], without: str, call: Call) -> None:
    code, _, error = call("train", "sudoku", *flags)
    flag = flags[0].split("=")[0].replace("_", "-")
    assert code == 2
    assert f"{flag}: does nothing {without}; leave it" in error


@pytest.mark.parametrize("task", ["ages", "babi", "pretty-clevr"])
def test_segments_are_refused_where_every_question_is_run_as_a_whole(task: str, call: Call) -> None:
    for name in (name for name, preset in tasks.presets().items() if preset.task == task):
        code, out, error = call("train", name, "--segment", "2")
        assert code == 2, name
        assert "--segment" in out + error


@pytest.mark.parametrize("task", tasks.TASKS)
def test_every_network_has_a_class_of_settings_by_its_name(task: str) -> None:
    module = tasks.folder(task, "presets")
    assert {type(preset) for preset in module.PRESETS} == set(module.KINDS)
    assert len({kind.network for kind in module.KINDS}) == len(module.KINDS)


def test_settings_of_earlier_versions_load_under_their_new_names(tmp_path: Path) -> None:
    network = from_pretrained("sudoku-hard")
    preset = network.preset
    save_pretrained(network, tmp_path, preset, {})
    config = json.loads((tmp_path / "config.json").read_text())
    for old, new in RENAMED_SETTINGS.items():
        if new in config["preset"]:
            config["preset"][old] = config["preset"].pop(new)
    config["preset"] |= {"copies": 4, "lives": True, "start_noise": 1.0}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert "wrong" in config["preset"]
    assert read_config(tmp_path)[0] == preset


def test_shipped_configurations_use_the_names_of_today() -> None:
    for path in (Path(rrn.__file__).parent / "weights").glob("*/config.json"):
        settings = json.loads(path.read_text())["preset"]
        assert list(with_new_names(settings)) == list(settings), path
