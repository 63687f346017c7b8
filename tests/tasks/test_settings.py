"""Every preset has the settings of its own network, and refuses those that would do nothing."""

from collections.abc import Callable

import pytest

from rrn import tasks

Call = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("ages", "--dropout"),
        ("ages-answers", "--facts-loss"),
        ("ages-paper", "--message-width"),
        ("babi", "--encoding"),
        ("babi-paper", "--support-loss"),
        ("babi-lstm", "--roles"),
        ("babi-memn2n", "--word-width"),
        ("babi-entnet", "--dropout"),
        ("pretty-clevr", "--update-inputs"),
        ("pretty-clevr-distances", "--walk-loss"),
        ("pretty-clevr-paper", "--heads"),
        ("pretty-clevr-mlp", "--update-width"),
    ],
)
def test_a_flag_of_another_network_is_refused(name: str, flag: str, call: Call) -> None:
    code, out, error = call("train", name, flag, "1")
    assert code == 2
    assert flag in out + error


@pytest.mark.parametrize("task", ["ages", "babi", "pretty-clevr"])
def test_segments_are_refused_where_every_question_is_run_as_a_whole(task: str, call: Call) -> None:
    for name in (name for name, preset in tasks.presets().items() if preset.task == task):
        code, out, error = call("train", name, "--segment", "2")
        assert code == 2, name
        assert "--segment" in out + error


@pytest.mark.parametrize("task", ["ages", "babi", "pretty-clevr"])
def test_every_network_has_a_class_of_settings_by_its_name(task: str) -> None:
    room = tasks.folder(task, "presets")
    assert {type(preset) for preset in room.PRESETS} == set(room.KINDS)
    assert len({kind.network for kind in room.KINDS}) == len(room.KINDS)
