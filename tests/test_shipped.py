"""Every shipped network is what ``rrn train NAME`` makes: its config.json equals its preset, its card has the command.

The exceptions are listed with the reason; the list must only become shorter.
"""

import json
import re
from importlib import resources

import pytest

from rrn import tasks
from rrn.io.pretrained import find_weights, settings, shipped

CONTENT = json.loads((resources.files("rrn.tasks") / "reproduce.json").read_text("utf-8"))
NOT_YET: dict[str, str] = CONTENT["not_yet_by_one_command"]
"""Also in docs/reproduce.md."""
MADE = [name for name in shipped() if name not in NOT_YET]


def test_exceptions_are_shipped() -> None:
    assert set(NOT_YET) <= set(shipped())
    assert len(NOT_YET) <= 13


@pytest.mark.parametrize("name", MADE)
def test_the_settings_are_those_of_the_preset(name: str) -> None:
    config = json.loads((find_weights(name) / "config.json").read_text())
    assert config["preset"] == json.loads(json.dumps(settings(tasks.find_preset(name))))


@pytest.mark.parametrize("name", MADE)
def test_the_card_has_the_command(name: str) -> None:
    card = (find_weights(name) / "README.md").read_text()
    assert re.findall(r"`(rrn train[^`]*)`", card) == [f"rrn train {name}"]
