"""Problems get harder as they are solved."""

import pytest

from rrn.training.curriculum import ADVANCE_ABOVE, GivensCurriculum


def test_the_share_solved_is_a_running_mean_and_lowers_how_easy_problems_are() -> None:
    curriculum = GivensCurriculum(extra=3.0, least=2.0, decrement=0.6, memory=0.1)
    curriculum.observe(4, 1.0)
    assert curriculum.solved_share == pytest.approx(0.4)
    curriculum.advance()
    assert curriculum.extra == 3.0, f"not before more than {ADVANCE_ABOVE:.0%} are solved"
    curriculum.observe(6, 1.0)
    assert curriculum.solved_share == pytest.approx(0.4 + 0.6 * 0.6)
    curriculum.advance()
    assert curriculum.extra == pytest.approx(2.4)
    curriculum.advance()
    assert curriculum.extra == 2.0, "no lower than the least"
    other = GivensCurriculum(3.0, 2.0, 0.6, 0.1)
    other.restore(curriculum.state())
    assert (other.extra, other.solved_share) == (curriculum.extra, curriculum.solved_share)
