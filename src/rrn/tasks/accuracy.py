"""The accuracy of the shipped networks, a sentence each, for the demo and the page; tests compare it with results/."""

ACCURACY = {
    "sudoku": "Of 10,000 puzzles with 17 givens that it never saw, it solves 98.5 % in the first attempt and 99.8 % "
    "within 9 attempts.",
    "babi": "Of 20,002 questions of the official bAbI files, it answers 99.98 % right; of 10,074 whose answer is not "
    "in the story, it detects that for 99.97 %.",
    "pretty-clevr": "Of 128,000 questions about scenes that it never saw, it answers 100.0 % right.",
    "ages": "Of 20,000 questions that it never saw, it answers 100.0 % right.",
}
"""By the name of the panel."""

LOSE_ANSWERS = frozenset(
    {
        "ages",
        "ages-paper",
        "babi-memn2n",
        "babi-paper",
        "babi-paper-apart",
        "babi-paper-no-dropout",
        "pretty-clevr-paper",
        "pretty-clevr-pixels",
    }
)
"""Shipped networks whose accuracy at 2, 4 or 8 times the steps of training is more than 0.5 points lower than at the
steps of training: ``results/staying.json``, by ``python -m benchmarks.staying``."""
