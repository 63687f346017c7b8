"""The systems the paper compares itself with on Sudoku.

All are called as the RRN is, ``network({"puzzle": (n, 81)}, steps=…, state=…)``, and return log-probabilities or logits
of the nine digits after every step, (steps, n · 81, 9), so that `rrn.tasks.sudoku.predict` runs them all.
`compare` measures them on the same puzzles.
"""
