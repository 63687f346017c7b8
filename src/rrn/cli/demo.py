"""rrn demo: five hard Sudokus solved, one of them step by step."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from rrn.cli.options import parse

GO_ON = """
rrn solve 'PUZZLE' --trace          a Sudoku of your own: 81 characters, or a file of them
rrn serve --open                    the page: watch networks reason, on input of your own
rrn ask ages                        "Ann is 20. Ann is 4 years older than Bob. How old is Bob?"
rrn evaluate sudoku                 how often the network is right, by givens and steps
rrn train sudoku                    train it yourself, from puzzles made on the spot
rrn presets                         all experiments; rrn --help: all commands"""


@dataclass(frozen=True)
class Options:
    gif: Path = Path("demo.gif")
    """The animation to write."""
    weights: str = "sudoku"
    """A folder of weights, shipped weights by name, or a hub id."""


def main(arguments: list[str]) -> int:
    options = parse(Options, arguments, "rrn demo", "Solve five Sudokus of 17 givens, and watch one of them.")
    from rrn.cli.solve import show_grid, show_list, show_trace, verdict, why_not
    from rrn.tasks.sudoku.examples import EXAMPLES
    from rrn.tasks.sudoku.figures import draw_gif
    from rrn.tasks.sudoku.files import parse_puzzles
    from rrn.tasks.sudoku.solving import solve

    max_steps = 128
    puzzles = parse_puzzles("\n".join(EXAMPLES), "examples").puzzles
    solved = solve(puzzles, max_steps=max_steps, weights=options.weights, trace=True)
    assert solved.probabilities is not None
    reasons = why_not(puzzles, solved)
    console = Console(highlight=False)
    console.print("[bold]Five Sudokus with 17 givens, the fewest a Sudoku can have[/bold]\n")
    show_list(console, puzzles, solved, reasons)
    shown = int(solved.valid.argmax())
    steps = solved.probabilities[: solved.steps[shown], shown]
    console.print(f"\n[bold]Number {shown + 1}, step by step[/bold]\n")
    show_trace(console, puzzles[shown], steps)
    show_grid(console, puzzles[shown], solved.grids[shown])
    console.print(verdict(puzzles, solved, shown, reasons[shown], max_steps), soft_wrap=True)
    draw_gif(options.gif, puzzles[shown], steps)
    console.print(f"\nAs an animation: [bold]{options.gif}[/bold]\nTo go on:{GO_ON}", soft_wrap=True)
    return 0 if solved.valid.all() else 1
