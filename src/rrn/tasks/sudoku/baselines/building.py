"""The networks of the baselines' presets."""

from rrn.tasks.sudoku.baselines.convolutional import ConvolutionalSudoku
from rrn.tasks.sudoku.baselines.learned_messages import LearnedMessages
from rrn.tasks.sudoku.baselines.presets import ConvolutionalPreset, LearnedMessagesPreset, WholeGraphPreset
from rrn.tasks.sudoku.model import CellSudoku
from rrn.tasks.sudoku.puzzle_network import PuzzleNetwork
from rrn.tasks.sudoku.settings import SudokuPreset


def build_baseline(preset: SudokuPreset) -> PuzzleNetwork:
    match preset:
        case WholeGraphPreset():  # the relational network that sums everything
            whole = {"outputs": 810, "update": "none", "readout": "graph", "readout_layers": preset.layers}
            return CellSudoku(preset, **whole)
        case LearnedMessagesPreset():
            return LearnedMessages(preset.hidden)
        case ConvolutionalPreset():
            return ConvolutionalSudoku(preset.hidden, preset.tied_digit_units)
    raise AssertionError(preset)
