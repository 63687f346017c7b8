"""The systems the paper compares itself with on Sudoku.

All have the call of the RRN, ``network({"puzzle": (n, 81)}, steps=…, state=…)``. They return log-probabilities or
logits of the nine digits after every step, (steps, n · 81, 9), so `rrn.tasks.sudoku.predict` runs all of them.
`compare` measures them on the same puzzles.
"""
