"""Example puzzles with 17 givens, the minimum.

A search from generated minimal puzzles found them: it replaces two givens by one while the solution stays unique, or
exchanges one given for another, until 17 remain. Each puzzle then got a random symmetry.
"""

EXAMPLES = (
    ".......26.....8.......61..93.......1........82..4......1.....7....3...4..89......",
    "........96.....31...75.........13.........8.7....6.......8..7.54........31.......",
    "..6....2.....4.9....8..3...5...9...7..2....6.....7....1........9..7..........6.8.",
    "....5.9....3...4...1...2...8....1.....4...3.......8..7..9.4............6...8....1",
    ".....1..4..9.....7.5.6......8.....5.4....7..........3..325.....7.......1...8.....",
)
