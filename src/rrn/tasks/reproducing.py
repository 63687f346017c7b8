"""Every table and figure of the paper, beside what was measured here and the command that measures it again.

Our figures are read from the files of ``results/``. An installed package has no such folder: it has
``reproduced.json``, which is the same list, written by ``rrn reproduce --list --json --out src/rrn/reproduced.json``.
"""

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from rrn.errors import InputError, quote

Measured = dict[str, Any]
"""What one network reached: the JSON of a command, of a file of results, or a part of either."""
PACKAGED = "reproduced.json"
EXAMPLE = "........96.....31...75.........13.........8.7....6.......8..7.54........31......."
"""A puzzle with 17 givens, of the project's own (`rrn.tasks.sudoku.examples`)."""


@dataclass(frozen=True)
class Figure:
    """A figure in words, and a number to compare it by: the higher the better."""

    score: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of a table of the paper, or a curve of a figure."""

    id: str
    where: str
    """The table or figure of the paper."""
    title: str
    paper: str
    """What the paper says."""
    like: str | None = None
    """The preset, or the system of ``rrn compare``, that is told what the paper's network was told."""
    best: str | None = None
    """The preset that is told more, or does better."""
    arguments: tuple[str, ...] = ()
    """Of the ``rrn`` command that measures it; {preset} is the network. None: it is not built here."""
    figure: Callable[[Measured], Figure | None] = lambda measured: None
    files: tuple[str, ...] = ("{preset}",)
    """The names of files in results/ that may hold it, the first that does counts."""
    trained: bool = True
    """Whether the system has weights."""
    minutes: float = 0.0
    """How long the command takes on two cores, about."""
    note: str = ""

    def measurable(self, shipped: list[str]) -> str | None:
        """The network that can be measured at once: the one told as much as the paper's if possible."""
        named = [name for name in (self.like, self.best) if name is not None]
        return next((name for name in named if not self.trained or name in shipped), None)

    def command(self, shipped: list[str]) -> str | None:
        """What to type to measure it; where no weights ship, what to type to train them first."""
        preset = self.measurable(shipped)
        if preset is not None:
            return "rrn " + shlex.join(self.words(preset))
        preset = self.like or self.best
        if preset is None:
            return None
        return f"rrn train {preset} && rrn {shlex.join([*self.words(preset), '--weights', f'runs/{preset}/best'])}"

    def words(self, preset: str) -> list[str]:
        return [word.format(preset=preset) for word in self.arguments]


def percent(share: float) -> str:
    """Never 100 where something is missing from it."""
    return f"{100 * share:.0f}" if share in (0.0, 1.0) else f"{min(100 * share, 99.99):.{2 if share > 0.99 else 1}f}"


def _solved(measured: Measured) -> Figure | None:
    """The share of Sudokus solved, those with 17 givens if there are any, at 64 steps and at the last."""
    if "givens" in measured:  # a row of rrn compare
        low, high = measured["givens"]
        puzzles = f"{measured['n']:,} puzzles with {_span(low, high)} givens"
        said = f"{percent(measured['accuracy'])} % of {puzzles}, {_steps(measured['steps'])}"
        return Figure(measured["accuracy"], f"{said}; {percent(measured['cells'])} % of the empty cells")
    if "n_by_givens" not in measured:
        return None
    givens = [int(number) for number in measured["n_by_givens"]]
    if 17 in givens and len(givens) > 1:
        shares, n, low, high = measured["accuracy_by_givens_and_steps"]["17"], measured["n_by_givens"]["17"], 17, 17
    else:
        shares, n, low, high = measured["accuracy"], measured["n"], min(givens), max(givens)
    word = "within"
    if "accuracy_at_step" in measured and shares is measured["accuracy"]:
        shares, word = measured["accuracy_at_step"], "at"
    taken = [int(t) for t in shares]
    chosen = {max([t for t in taken if t <= 64] or [min(taken)]), max(taken)}
    said = ", ".join(f"{percent(shares[str(t)])} % {word} {_steps(t)}" for t in sorted(chosen))
    return Figure(shares[str(max(chosen))], f"{said}; {n:,} puzzles with {_span(low, high)} givens")


def _solved_by_steps(measured: Measured) -> Figure | None:
    """The hardest puzzles at 32 and 64 steps, and those with 33 givens at 10."""
    if "accuracy_by_givens_and_steps" not in measured:
        return None
    shares, counts = measured["accuracy_by_givens_and_steps"], measured["n_by_givens"]
    givens = [int(number) for number in shares]
    hardest = [17] if 17 in givens else [number for number in givens if number <= 26] or [min(givens)]
    parts, score = [], 0.0
    for some, steps in ((hardest, (32, 64)), ([33] if 33 in givens else [max(givens)], (10,))):
        n = sum(counts[str(g)] for g in some)
        reached = {}
        for t in steps:
            if str(t) in shares[str(some[0])]:
                reached[t] = sum(shares[str(g)][str(t)] * counts[str(g)] for g in some) / n
        said = ", ".join(f"{percent(share)} % within {_steps(t)}" for t, share in reached.items())
        parts.append(f"{_span(min(some), max(some))} givens ({n:,}): {said}")
        score = score or max(reached.values(), default=0.0)
    return Figure(score, "; ".join(parts))


def _unfolding(measured: Measured) -> Figure | None:
    if "status" not in measured:
        return None
    filled = [sum(cell.isdigit() and cell != "0" for cell in grid) for grid in measured["trace"]]
    shown = [t for t in (1, 8, 16, 24) if t < len(filled)]
    cells = ", ".join(f"{filled[t - 1]} at step {t}" for t in shown)
    said = f"17 givens, {measured['status']} after {_steps(measured['steps'])}; cells decided: {cells}"
    return Figure(-measured["steps"] if measured["valid"] else -1e9, said)


def _answer(measured: Measured) -> Figure | None:
    if "truth" not in measured:
        return None
    said = f"{measured['start']}, {measured['jumps']} jumps: {measured['answer']}"
    return Figure(float(measured["right"]), f"{said}, {'right' if measured['right'] else 'wrong'}")


def _error(measured: Measured, steps: int | None = None) -> Figure | None:
    """bAbI's mean error over the tasks, over seeds where several were measured."""
    if "mean_error" not in measured:
        return None
    data = f"{measured['n']:,} questions ({measured['data'].removesuffix(' questions')})"
    if steps is not None:
        error = measured.get("mean_error_by_steps", {}).get(str(steps))
        return None if error is None else Figure(-error, f"{100 * error:.2f} % mean error; {data}")
    seeds = measured.get("over_seeds", {"runs": 1})
    if seeds["runs"] > 1:
        error, failed = seeds["mean_error"], max(seeds["failed_tasks"])
        said = f"{100 * error:.2f} ± {100 * seeds['deviation']:.2f} % mean error over {seeds['runs']} seeds"
        return Figure(-error, f"{said}, {_tasks(failed)} failed at most; {data}")
    error, failed = measured["mean_error"], len(measured["failed_tasks"])
    return Figure(-error, f"{100 * error:.2f} % mean error, {_tasks(failed)} failed; {data}")


def _by(what: str, key: str, measured: Measured) -> Figure | None:
    """Accuracies by number of jumps or of differences, after the first step and after the last."""
    if key not in measured:
        return None
    table = measured[key]
    steps = [int(t) for t in next(iter(table.values()))]
    said = [
        f"{_steps(t)}: {' / '.join(percent(row[str(t)]) for row in table.values())} %"
        for t in sorted({steps[0], steps[-1]})
    ]
    return Figure(
        measured["accuracy"], f"{what} {_span(*(int(end) for end in (min(table), max(table))))}, " + "; ".join(said)
    )


_jumps = partial(_by, "jumps", "accuracy_by_jumps_and_steps")
_differences = partial(_by, "differences", "accuracy_by_length_and_steps")


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _steps(count: int) -> str:
    return f"{count} step{'s' * (count != 1)}"


def _tasks(count: int) -> str:
    return f"{count or 'no'} task{'s' * (count > 1)}"


_COMPARE = ("compare", "sudoku", "--systems", "{preset}", "--limit", "100")
_EVALUATE = ("evaluate", "{preset}")
_SUDOKU, _BABI, _ABLATION = "Table 2, Sudoku", "Table 1, bAbI", "Table 3, bAbI ablations"
_SCENES, _AGES = "Figure 2, Pretty-CLEVR", "Figure 5, age arithmetic"


def _system(name: str, like: str, title: str, paper: str, minutes: float, trained: bool = True) -> Row:
    return Row(
        id=f"sudoku-table-{name}",
        where=_SUDOKU,
        title=title,
        paper=paper,
        like=like,
        arguments=_COMPARE,
        figure=_solved,
        trained=trained,
        minutes=minutes,
    )


def _babi(id: str, where: str, title: str, paper: str, like: str | None, steps: int | None = None) -> Row:
    return Row(
        id=id,
        where=where,
        title=title,
        paper=paper,
        like=like,
        best="babi" if like == "babi-answers" else None,
        arguments=(*_EVALUATE, "--limit", "4000") if like else (),
        figure=partial(_error, steps=steps),
        minutes=0.5,
        note="" if like else "Quoted by the paper from elsewhere; this system is not built here.",
    )


ROWS = (
    Row(
        id="sudoku-table-rrn",
        where=_SUDOKU,
        title="recurrent relational network",
        paper="96.6 % at 64 steps; 17 givens",
        like="sudoku-paper",
        best="sudoku",
        arguments=(*_EVALUATE, "--limit", "360", "--steps", "32,64", "--never-stop"),
        figure=_solved,
        files=("{preset}_17", "{preset}"),
        minutes=1,
    ),
    _system("modified-bp", "modified", "loopy BP, modified (Khan 2014)", "92.5 %; 17 givens", 2, trained=False),
    _system("random-bp", "random", "loopy BP, random (Bauke 2008)", "61.7 %; 17 givens", 1, trained=False),
    _system("parallel-bp", "parallel", "loopy BP, parallel (Bauke 2008)", "53.2 %; 17 givens", 1, trained=False),
    _system("learned-messages", "sudoku-learned-messages", "deeply learned messages (Lin 2015)", "0 %; 17 givens", 0.2),
    _system("rn-node", "sudoku-rn-node", "relational network, node (Santoro 2017)", "0 %; 17 givens", 0.2),
    _system("rn-graph", "sudoku-rn-graph", "relational network, graph (Santoro 2017)", "0 %; 17 givens", 0.2),
    _system("convolutional", "sudoku-convolutional", "convolutional network (Park 2016)", "70 %; 24 to 36 givens", 0.2),
    Row(
        id="sudoku-steps",
        where="Figure 4, Sudokus solved against steps",
        title="accuracy by givens and steps",
        paper="17 givens: 94.1 % at 32 steps, 96.6 % at 64; 33 givens: about all at 10",
        like="sudoku-paper",
        best="sudoku",
        arguments=(*_EVALUATE, "--limit", "360", "--steps", "10,32,64"),
        figure=_solved_by_steps,
        minutes=1,
    ),
    Row(
        id="sudoku-unfolding",
        where="Figure 3 and appendix, a Sudoku step by step",
        title="one Sudoku with 17 givens, its cells after each step",
        paper="17 givens, solved; steps 0, 1, 8 and 24 are shown",
        like="sudoku-paper",
        best="sudoku",
        arguments=("solve", EXAMPLE, "--weights", "{preset}", "--restarts", "0", "--trace"),
        figure=_unfolding,
        files=("{preset}_unfolding",),
        minutes=0.1,
        note="With `--png FILE` the command draws the digits sized by their probability, as the paper does.",
    ),
    Row(
        id="sudoku-positions",
        where="Section 3.3, rows and columns set to zero",
        title="row and column embeddings multiplied by zero",
        paper="96.7 % at 64 steps (96.6 % with them); 17 givens",
        like="sudoku-paper",
        arguments=(*_EVALUATE, "--limit", "360", "--steps", "32,64", "--zero-positions"),
        figure=_solved,
        files=("{preset}_zero_positions",),
        minutes=1,
        note="The preset `sudoku` has no such embeddings: row `sudoku-table-rrn` is its figure.",
    ),
    Row(
        id="sudoku-last-loss",
        where="Section 3.3, a loss at the last step only",
        title="the same network with a loss at the last step only",
        paper="harder to train, worse, not convergent; no number",
        like="sudoku-last-loss",
        arguments=(*_EVALUATE, "--limit", "360", "--steps", "32,64"),
        figure=_solved,
        minutes=1,
    ),
    _babi(
        "babi-table-rrn",
        _BABI,
        "recurrent relational network",
        "0.46 ± 0.77 %, 0.13 ± 0.35 tasks failed; 15 runs",
        "babi-answers",
    ),
    _babi("babi-table-sdnc", _BABI, "SDNC (Rae 2016)", "6.4 ± 2.5 %, 4.1 ± 1.6 tasks failed; 15 runs", None),
    _babi("babi-table-dam", _BABI, "DAM (Rae 2016)", "8.7 ± 6.4 %, 5.4 ± 3.4 tasks failed; 15 runs", None),
    _babi("babi-table-sam", _BABI, "SAM (Rae 2016)", "11.5 ± 5.9 %, 7.1 ± 3.4 tasks failed; 15 runs", None),
    _babi("babi-table-dnc", _BABI, "DNC (Rae 2016)", "12.8 ± 4.7 %, 8.2 ± 2.5 tasks failed; 15 runs", None),
    _babi("babi-table-ntm", _BABI, "NTM (Rae 2016)", "26.6 ± 3.7 %, 15.5 ± 1.7 tasks failed; 15 runs", None),
    _babi("babi-table-lstm", _BABI, "LSTM (Rae 2016)", "28.7 ± 0.5 %, 17.1 ± 0.8 tasks failed; 15 runs", "babi-lstm"),
    _babi(
        "babi-table-entnet", _BABI, "EntNet (Henaff 2016)", "9.7 ± 2.6 %, 5 ± 1.2 tasks failed; 5 runs", "babi-entnet"
    ),
    _babi("babi-table-remo", _BABI, "ReMo (Yang 2018)", "1.2 %, 1 task failed; 1 run", None),
    _babi("babi-table-rn", _BABI, "RN (Santoro 2017)", "2 tasks failed; 1 run", None),
    _babi("babi-table-memn2n", _BABI, "MemN2N (Sukhbaatar 2015)", "7.5 %, 6 tasks failed; 1 run", "babi-memn2n"),
    _babi("babi-steps-3", _ABLATION, "after 3 steps", "0.46 ± 0.77 % (1.83 ± 1.06 % at 1M updates)", "babi-answers", 3),
    _babi("babi-steps-2", _ABLATION, "after 2 steps", "0.46 ± 0.76 % (1.83 ± 1.06 % at 1M updates)", "babi-answers", 2),
    _babi("babi-steps-1", _ABLATION, "after 1 step", "0.48 ± 0.79 % (1.84 ± 1.06 % at 1M updates)", "babi-answers", 1),
    _babi(
        "babi-network",
        _ABLATION,
        "the paper's own network",
        "0.46 ± 0.77 % (1.83 ± 1.06 % at 1M updates)",
        "babi-paper",
    ),
    _babi(
        "babi-linear", _ABLATION, "linear encoding", "0.20 ± 0.01 % (0.63 ± 0.69 % at 1M updates)", "babi-paper-linear"
    ),
    _babi(
        "babi-apart",
        _ABLATION,
        "no encoding of fact and question together",
        "0.53 ± 0.91 % (2.39 ± 1.73 % at 1M updates)",
        "babi-paper-apart",
    ),
    _babi(
        "babi-no-dropout",
        _ABLATION,
        "no dropout",
        "1.74 ± 1.28 % (2.57 ± 0.95 % at 1M updates)",
        "babi-paper-no-dropout",
    ),
    Row(
        id="pretty-clevr-example",
        where=_SCENES,
        title="a scene and a question about it",
        paper="green, 3 jumps: plus",
        like="pretty-clevr-distances",
        best="pretty-clevr",
        arguments=("ask", "pretty-clevr", "--seed", "7", "--start", "green", "--jumps", "3", "--weights", "{preset}"),
        figure=_answer,
        files=("{preset}_example",),
        minutes=0.1,
        note="A scene of our own; with `--out FILE` the command draws it.",
    ),
    Row(
        id="pretty-clevr-jumps",
        where=_SCENES,
        title="recurrent relational network, accuracy by jumps and steps",
        paper="solves jumps up to its number of steps, 1 to 4, and falls off beyond; a plot without numbers",
        like="pretty-clevr-distances",
        best="pretty-clevr",
        arguments=(*_EVALUATE, "--limit", "12800"),
        figure=_jumps,
        minutes=0.5,
    ),
    *(
        Row(
            id=f"pretty-clevr-jumps-{name}",
            where=_SCENES,
            title=title,
            paper=paper,
            like=f"pretty-clevr-{name}",
            arguments=(*_EVALUATE, "--limit", "12800"),
            figure=_jumps,
            minutes=0.3,
        )
        for name, title, paper in (
            (
                "paper",
                "the paper's own network, 4 steps",
                "about all up to 4 jumps, then falls off; a plot without numbers",
            ),
            ("rn", "relational network", "about all at 0 and 1 jump, then falls off sharply; a plot without numbers"),
            ("mlp", "perceptron on the whole scene", "all at 0 jumps, struggles from 1 on; a plot without numbers"),
        )
    ),
    Row(
        id="ages-steps",
        where=_AGES,
        title="accuracy by length of the path and by steps",
        paper="rises with steps up to the length, 8 steps in training; a plot without numbers",
        like="ages-answers",
        best="ages",
        arguments=(*_EVALUATE, "--limit", "4000"),
        figure=_differences,
        minutes=0.3,
    ),
    Row(
        id="ages-steps-paper",
        where=_AGES,
        title="the same by the paper's own network",
        paper="rises with steps up to the length, 8 steps in training; a plot without numbers",
        like="ages-paper",
        arguments=(*_EVALUATE, "--limit", "4000"),
        figure=_differences,
        minutes=0.5,
    ),
)


def find_row(id: str) -> Row:
    known = {row.id: row for row in ROWS}
    if id not in known:
        near = get_close_matches(id, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "'rrn reproduce --list' names them"
        raise InputError(f"no row {quote(id)}; {hint}")
    return known[id]


def listed(shipped: list[str]) -> list[dict[str, Any]]:
    """All rows as JSON: the paper's figure, ours told as much, our best, the command and its minutes."""
    folder = results_folder()
    if folder is None:
        return json.loads((resources.files("rrn") / PACKAGED).read_text())
    results = read_results(folder)
    return [as_json(row, results, shipped) for row in ROWS]


def as_json(row: Row, results: dict[str, Measured], shipped: list[str]) -> dict[str, Any]:
    like, better = (published(row, name, results) for name in (row.like, row.best))
    figures = [figure for figure in (like, better) if figure is not None]
    command = row.command(shipped)
    return {
        "id": row.id,
        "paper": row.paper,
        "like_for_like": like.text if like else None,
        "best": max(figures, key=lambda figure: figure.score).text if figures else None,
        "command": command,
        "minutes": row.minutes if command else None,
    }


def results_folder() -> Path | None:
    """results/ of the checkout that this package lies in, if it lies in one."""
    root = Path(__file__).resolve().parents[2]
    return root / "results" if (root / "results").is_dir() and (root / "pyproject.toml").is_file() else None


def read_results(folder: Path) -> dict[str, Measured]:
    """The files of results by name; of one that ``rrn reproduce --out`` wrote, what the command printed."""
    contents = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    return {name: content.get("result", content) for name, content in contents.items() if isinstance(content, dict)}


def published(row: Row, preset: str | None, results: dict[str, Measured]) -> Figure | None:
    """The figure of one network: in a file of its own, or else beside others."""
    if preset is None:
        return None
    for name in row.files:
        content = results.get(name.format(preset=preset.replace("-", "_")))
        if content is not None and (figure := row.figure(content)):
            return figure
    if "{preset}" not in row.files:
        return None
    parts = (part_of(content, preset) for content in results.values())
    return next((figure for part in parts if part and (figure := row.figure(part))), None)


def part_of(content: Measured, preset: str) -> Measured | None:
    """What a result holds of one of several networks: the systems of a comparison, or those measured beside another."""
    for group in ("systems", "beside"):
        if preset in content.get(group, {}):
            return {key: content[key] for key in ("n", "data") if key in content} | content[group][preset]
    return None


HEAD = """# The paper's tables and figures, measured here

<!-- Made by: rrn reproduce --list --markdown --out docs/reproduce.md -->

`rrn reproduce ID` measures one row with the shipped weights, on data made on the spot, and prints it beside the paper's
figure; `rrn reproduce --list` prints this page's table, `--json` for machines. Nothing is trained and nothing is
written, unless `--out FILE` says where.

- **Like for like**: a network that is told what the paper's was told. **Best**: whatever is told beyond that; `docs/`
  says what. Both are read from the files in `results/`, which name their data, command, seed, minutes and machine.
- Published Sudoku figures for 17 givens are of Gordon Royle's list of such puzzles, from its beginning; bAbI's of the
  *en-valid-10k* files of its release 1.2. Neither set is part of this repository: with a copy of your own,
  `rrn reproduce ID --data FILE` measures on it. Without, generated puzzles (22 givens and more) and generated
  questions take their place.
- Minutes are about those of two cores, without training. Where a command begins with `rrn train`, no weights ship yet.
- The paper's other figures (1, and the unrolled network in its appendix) are diagrams of equations 1 to 4;
  `tests/test_network.py` works them out by hand on three nodes.
"""


def markdown(rows: list[dict[str, Any]]) -> str:
    """docs/reproduce.md: a table for each table and figure of the paper."""
    by_id = {entry["id"]: entry for entry in rows}
    lines, where = [HEAD], None
    for row in ROWS:
        if row.where != where:
            where = row.where
            lines.append(f"\n## {where}\n\n| id | | the paper | like for like | best | command | minutes |")
            lines.append("|---|---|---|---|---|---|---|")
        entry = by_id[row.id]
        command = f"`{entry['command']}`" if entry["command"] else ""
        said = [entry["like_for_like"] or "–", entry["best"] or "–", command or "not built here"]
        minutes = f"{entry['minutes']:g}" if entry["minutes"] else ""
        title = row.title + (f". {row.note}" if row.note and row.arguments else "")
        lines.append("| " + " | ".join([f"`{row.id}`", title, row.paper, *said, minutes]) + " |")
    return "\n".join(lines) + "\n"
