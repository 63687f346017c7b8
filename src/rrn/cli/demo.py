"""rrn demo: four networks at work in half a minute: a Sudoku, a story, a riddle of ages, jumps in a scene."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.text import Text

from rrn.cli import parse
from rrn.cli.ask import RIDDLE, STORY, STORY_QUESTION
from rrn.cli.puzzles import DECIDED, beside, decided_cells, framed, plain_if_needed
from rrn.errors import DISTRIBUTION, command, plural
from rrn.tasks.evaluation import ACCURACY
from rrn.tasks.sudoku.examples import EXAMPLES

if TYPE_CHECKING:
    from rrn.inference.result import Result

PUZZLE = EXAMPLES[1]
SCENE, START, JUMPS = 7, "green", 5
SUDOKU_SECONDS, ANSWER_SECONDS = 10.0, 4.0


@dataclass(frozen=True)
class Options:
    """No flags."""


def main(arguments: list[str]) -> int:
    parse(Options, arguments, "rrn demo", "Four networks at work in half a minute, step by step.")
    stage = Stage(Console(highlight=False))
    with stage.console.status("Loading torch and four networks …"):
        acts = [_sudoku(), _babi(), _ages(), _pretty_clevr()]
    right = [act(stage) for act in acts]
    stage.print(Text.assemble(("\nHow good is it? ", "bold"), ACCURACY["sudoku"], "\n"))
    stage.print(_next_commands(), whole_lines=True)
    return 0 if all(right) else 1


class Stage:
    """Plays frames at one position of a terminal; without a terminal it prints the last frame only."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def print(self, text: Text, whole_lines: bool = False) -> None:
        """Print text, wrapped at the width of the terminal unless ``whole_lines``, which are easier to copy."""
        whole_lines = whole_lines or not self.console.is_terminal
        self.console.print(plain_if_needed(self.console, text), soft_wrap=whole_lines)

    def play(self, frames: Sequence[Text], seconds: float) -> None:
        if not self.console.is_terminal:
            self.print(frames[-1])
            return
        with Live(console=self.console, auto_refresh=False) as live:
            for frame in frames:
                live.update(plain_if_needed(self.console, frame), refresh=True)
                time.sleep(seconds / len(frames))


Act = Callable[[Stage], bool]
"""Shows a result that was computed before; returns whether it is right."""


def _sudoku() -> Act:
    from rrn.tasks.sudoku.files import parse_puzzle
    from rrn.tasks.sudoku.predict import solve

    puzzle = parse_puzzle(PUZZLE)
    result = solve(puzzle[None], record=True)[0]
    steps, valid = result.record, result.solved

    def act(stage: Stage) -> bool:
        stage.print(
            Text.assemble(
                ("A Sudoku with 17 givens, the minimum.\n", "bold"),
                "Candidates exchange messages along rows, columns and boxes: bright digits have a probability of at "
                "least one half, dim ones less.\n",
            )
        )
        frames = [_grid(puzzle, steps[t - 1] if t else None, t, len(steps)) for t in range(len(steps) + 1)]
        end = _grid(puzzle, np.eye(9)[result.answers - 1], len(steps), len(steps))
        verdict = f"solved in {plural(len(steps), 'step')}" if valid else "unsolved"
        stage.play(
            [*frames, Text.assemble(end, "\n", (verdict, "bold green" if valid else "bold red"))], SUDOKU_SECONDS
        )
        if not stage.console.is_terminal:
            filled = [int((grid > 0).sum()) for grid in decided_cells(puzzle, steps)]
            stage.print(Text(f"cells decided after each step: {' '.join(map(str, filled))}"))
        return valid

    return act


def _grid(puzzle: np.ndarray, probabilities: np.ndarray | None, step: int, last: int) -> Text:
    """The puzzle, the most probable digits, and the share of decided cells."""
    if probabilities is None:
        grid, sure = puzzle, puzzle > 0
    else:
        grid = np.where(puzzle > 0, puzzle, probabilities.argmax(-1) + 1)
        sure = (puzzle > 0) | (probabilities.max(-1) >= DECIDED)
        grid = np.where((probabilities.max(-1) > 0.2) | (puzzle > 0), grid, 0)
    decided = int(sure.sum())
    bar = "█" * round(decided / 81 * 27)
    return Text.assemble(
        beside(framed(puzzle, puzzle), framed(puzzle, grid, sure=sure)),
        f"\nstep {step:>2} of {last}  ",
        (bar, "cyan"),
        ("░" * (27 - len(bar)), "dim"),
        f"  {decided} of 81 cells decided",
    )


def _babi() -> Act:
    from rrn.tasks.answers import important_facts
    from rrn.tasks.babi.predict import dialogue, predict
    from rrn.tasks.babi.presets import ASK_WEIGHTS
    from rrn.tasks.weights import from_pretrained

    network = from_pretrained(ASK_WEIGHTS)
    [asked] = dialogue(STORY, STORY_QUESTION)
    result = predict(network, asked, network.preset.steps, network.preset.max_facts)
    needed = sorted((fact for fact, _ in important_facts(result, 2)), key=result.details["facts"].index)
    reason = f"It needed: {' '.join(needed)}"
    return lambda stage: _answer(stage, "A story.", STORY, STORY_QUESTION, _best(result), "office", reason)


def _ages() -> Act:
    from rrn.tasks.ages.predict import parse as read
    from rrn.tasks.ages.predict import predict
    from rrn.tasks.weights import from_pretrained

    network = from_pretrained("ages")
    asked = read(RIDDLE)
    result = predict(network, asked, network.preset.steps)
    truth, far = result.details["truth"], plural(int(asked.questions.length[0]), "difference")
    question = result.details["question"]
    reason = f"{far} away from the one age that is given."
    return lambda stage: _answer(stage, "A riddle.", RIDDLE, question, _best(result), truth, reason)


def _pretty_clevr() -> Act:
    from rrn.tasks.pretty_clevr.predict import parse as read
    from rrn.tasks.pretty_clevr.predict import predict
    from rrn.tasks.weights import from_pretrained

    network = from_pretrained("pretty-clevr")
    asked = read(SCENE, START, JUMPS)
    result = predict(network, asked, network.preset.steps)
    about = "Eight objects. From one, jump to the nearest object not visited yet, again and again."
    question = f"From the {START} one, where do {JUMPS} jumps lead?"
    truth, path = result.details["truth"], " → ".join(asked.path)
    return lambda stage: _answer(stage, "A walk.", about, question, _best(result), truth, path)


def _best(result: "Result") -> list[tuple[str, float]]:
    """The most probable answer after each step."""
    from rrn.tasks.answers import top_choices

    return [best[0] for best in top_choices(result, 1)]


def _answer(
    stage: Stage, title: str, text: str, question: str, steps: list[tuple[str, float]], truth: str, reason: str
) -> bool:
    """Show the question and its answer after each step."""
    right = steps[-1][0] == truth
    stage.print(Text.assemble(("\n" + title, "bold"), f" {text}"))
    frames = []
    for step, (answer, chance) in enumerate(steps, start=1):
        bar = "█" * round(20 * chance)
        style = "green" if answer == truth else "yellow"
        frames.append(
            Text.assemble(
                (question, "bold"),
                f"  step {step} of {len(steps)}: ",
                (f"{answer:<9}", f"bold {style}"),
                (bar, "cyan"),
                ("░" * (20 - len(bar)), "dim"),
                f" {chance:.0%}",
            )
        )
    verdict = "right" if right else f"wrong: it is {truth}"
    stage.play([*frames, Text.assemble(frames[-1], f", {verdict}")], ANSWER_SECONDS)
    stage.print(Text(reason, "dim"))
    return right


def _next_commands() -> Text:
    from importlib.util import find_spec

    rrn = command("rrn")
    page = f"{rrn} serve --open"
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        page = f"{command('pip')} install '{DISTRIBUTION}[web]' && {page}"
    return Text.assemble(
        ("Now you:\n", "bold"),
        f"  {rrn} solve {EXAMPLES[0]} --trace\n",
        f"  {rrn} ask babi      # type a story at a prompt\n",
        f"  {page}      # the web page: all four on your input",
    )
