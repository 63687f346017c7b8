"""Every preset starts as it always did."""

import pytest

from rrn import tasks
from tests import pinned_losses


def test_all_presets_are_pinned_and_nothing_else_is() -> None:
    assert sorted(pinned_losses.read()) == sorted(tasks.presets()), "run: python -m tests.pinned_losses"


@pytest.mark.parametrize("name", tasks.presets())
def test_first_losses(name: str) -> None:
    expected = pinned_losses.read().get(name)
    assert expected, f"run: python -m tests.pinned_losses {name}"
    assert pinned_losses.first_losses(name) == pytest.approx(expected, rel=1e-4)
