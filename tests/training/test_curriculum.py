"""Problems get harder as they are solved."""

import pytest

from rrn.training.curriculum import LOWER_FROM, Easing


def test_the_share_solved_is_a_running_mean_and_lowers_how_easy_problems_are() -> None:
    easing = Easing(most=3.0, least=2.0, by=0.6, memory=0.1)
    easing.leave(4, 1.0)
    assert easing.solved_share == pytest.approx(0.4)
    easing.lower()
    assert easing.most == 3.0, f"not before more than {LOWER_FROM:.0%} are solved"
    easing.leave(6, 1.0)
    assert easing.solved_share == pytest.approx(0.4 + 0.6 * 0.6)
    easing.lower()
    assert easing.most == pytest.approx(2.4)
    easing.lower()
    assert easing.most == 2.0, "no lower than the least"
    other = Easing(3.0, 2.0, 0.6, 0.1)
    other.restore(easing.position())
    assert (other.most, other.solved_share) == (easing.most, easing.solved_share)
