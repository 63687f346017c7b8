import pytest

from rrn.viewing.plots import add_legend, plot_lines, subplots, transpose


def test_lines_are_in_the_order_of_their_numbers() -> None:
    pytest.importorskip("matplotlib")
    _, axes = subplots(figsize=(4, 3))
    plot_lines(axes, transpose({"2": {"8": 0.5, "16": 0.7}, "10": {"8": 0.1, "16": 0.4}}, "{} steps".format))
    add_legend(axes, "steps")
    assert [line.get_label() for line in axes.get_lines()] == ["8 steps", "16 steps"]
    assert list(axes.get_lines()[1].get_xdata()) == [2, 10]
    assert list(axes.get_lines()[1].get_ydata()) == [0.7, 0.4]
