"""Write the measured tables of docs/compared.md anew from results/*.json: ``python -m benchmarks.peers.page``.

A table is between the lines ``<!-- NAME -->`` and ``<!-- /NAME -->``. Rows of other people's figures are marked
"published": they come from their papers and pages and were not measured here.
"""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "compared.md"

EXTREME_HEAD = ("system", "% right", "95 % interval", "counted", "parameters", "training data", "training", "n")
PUBLISHED_EXTREME = (
    ("LDT, arXiv 2605.08605", "100", "branching search", "0.8M", "–", "–", "300"),
    ("arXiv 2609.01449", "99.90", "10,000 steps", "–", "3.8M puzzles", "–", "423,000"),
    ("DEC-w192", "99.10", "one pass", "0.79M", "–", "–", "–"),
    ("DEC-w192", "99.88", "128 restarts", "0.79M", "–", "–", "–"),
    ("EqR", "93.0", "64 steps", "5.0M", "1,000 puzzles, augmented", "GPU", "423,168"),
    ("EqR", "99.8", "128 restarts of 64", "5.0M", "1,000 puzzles, augmented", "GPU", "423,168"),
    ("FRM", "99.5", "best checkpoint", "7M", "–", "–", "1,000"),
    ("GoM", "99.82", "compiled search, percentiles 50–90", "97K", "–", "laptop, 26 min", "13,000"),
    ("sotaku v2", "99.12", "1,024 iterations", "0.80M", "2.7M puzzles", "H200", "25,000"),
    ("PTRM", "98.75", "100 rollouts", "5M", "–", "–", "–"),
    ("RSM", "97.5", "longer runs at test", "2.5–5M", "full training set", "A100, 1 h", "–"),
    ("SE-RRM", "93.7", "16 steps", "2M", "1,000 puzzles, augmented", "A100", "–"),
    ("SE-RRM", "98.8", "128 steps", "2M", "1,000 puzzles, augmented", "A100", "–"),
    ("TRM", "87.4", "16 steps", "5M", "1,000 puzzles, augmented", "L40S, 18 h", "423,000"),
    ("CMM, arXiv 2603.22871", "85.4", "–", "0.26M", "–", "–", "–"),
    ("HRM", "55.0", "–", "27M", "1,000 puzzles, augmented", "8 GPUs, 10 min", "–"),
)
OUR_TRAINING = {
    "sudoku-hard": "one core, 227 min",
    "sudoku": "one core, 60 min",
    "sudoku-paper": "one core, 289 min",
    "dgl": "not stated",
}
"""Minutes of the shipped weights: their cards have them."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" if line[0] != "---" else "|---" * len(line) + "|" for line in lines)


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def interval(figure: dict[str, Any]) -> str:
    low, high = figure["interval"]
    return f"{percent(low)} – {percent(high)}"


def extreme(result: dict[str, Any]) -> str:
    """Ours and published systems on Sudoku-Extreme."""
    steps, attempts = result["steps_per_attempt"], result["attempts"]
    ours = [
        (
            f"**{result['network']}**",
            f"**{percent(figure['accuracy'])}**",
            interval(figure),
            counted,
            f"{result['parameters']:,}",
            "800 of it, others",
            OUR_TRAINING.get(result["network"], "–"),
            f"{result['n']:,}",
        )
        for figure, counted in (
            (result["one_attempt"], f"1 attempt of {steps}"),
            (result["all_attempts"], f"{attempts} attempts of {steps}"),
        )
    ]
    published = [(f"{name}, published", accuracy, "–", *rest) for name, accuracy, *rest in PUBLISHED_EXTREME]
    return table(EXTREME_HEAD, [*ours, *published])


def extreme_compute(result: dict[str, Any]) -> str:
    """Accuracy against all steps of all attempts."""
    chosen = {t: figure for t, figure in result["by_all_steps"].items() if int(t) >= 32}
    head = ["steps of all attempts", *(f"{int(t):,}" for t in chosen)]
    rows = [
        ["% right", *(percent(figure["accuracy"]) for figure in chosen.values())],
        ["95 % interval", *(interval(figure).replace(" ", "") for figure in chosen.values())],
    ]
    return table(head, rows)


def extreme_difficulty(result: dict[str, Any]) -> str:
    """Accuracy by the guesses of the exact solver."""
    about = (
        "By difficulty: the guesses that our exact solver needs, in quarters of the set, and the percentiles 50 to 90\n"
        'that GoM reports (there by another measure). "Steps" is the mean over all attempts:'
    )
    head = ("difficulty", "guesses", "n", "1 attempt, %", f"{result['attempts']} attempts, %", "95 % interval", "steps")
    made = table(
        head,
        [
            (
                name,
                f"{band['guesses'][0]:,} – {band['guesses'][1]:,}",
                f"{band['n']:,}",
                percent(band["one_attempt"]["accuracy"]),
                percent(band["all_attempts"]["accuracy"]),
                interval(band["all_attempts"]),
                f"{band['mean_steps']:,.0f}",
            )
            for name, band in result["by_guesses"].items()
        ],
    )
    return f"{about}\n\n{made}"


def extreme_time(result: dict[str, Any]) -> str:
    """Seconds per puzzle."""
    name, shared = result["network"], f"{result['processor_seconds_per_puzzle']:.2f}"
    rows = [(f"`{name}`, batches, a shared core", shared, "–", "–", f"{result['n']:,}")]
    if times := result.get("timing"):
        own = (f"{times[key]:.2f}" for key in ("mean_seconds", "median_seconds", "longest_seconds"))
        rows.append((f"`{name}`, one at a time", *own, str(times["n"])))
        exact = f"{times['exact_solver_mean_seconds']:.6f}"
        rows.append(("our exact solver, no network", exact, "–", "–", str(times["n"])))
    return "Time per puzzle, one core:\n\n" + table(("solver", "mean s", "median s", "longest s", "n"), rows)


def dgl(result: dict[str, Any]) -> str:
    """Deep Graph Library's network and ours at the same steps."""
    sets, steps = list(result["sets"]), [str(t) for t in result["steps"][-2:]]
    columns = [f"{name}, {t} steps" for name in sets for t in steps]
    rows = []
    for name, row in result["networks"].items():
        times = result["timing"].get(name, {})
        rows.append(
            (
                "DGL" if name == "dgl" else f"`{name}`",
                f"{row['parameters']:,}",
                OUR_TRAINING[name],
                f"{row[sets[0]]['n']:,}",
                *(percent(row[s]["at_step"][t]["accuracy"]) for s in sets for t in steps),
                str(times.get("puzzles_per_second", "–")),
                str(times.get("peak_megabytes", "–")),
            )
        )
    return table(("network", "parameters", "training", "n each", *columns, "puzzles / s", "MB"), rows)


PUBLISHED_MAZES = (
    ("arXiv 2609.01449", "98.9", "–"),
    ("FRM", "98.0", "7M"),
    ("EqR", "93.0", "5.0M"),
    ("URM", "51.4", "–"),
    ("TRM", "44.9", "5M"),
    ("HRM", "0.3", "27M"),
)


ALGORITHM_NAMES = {"bfs": "BFS", "dijkstra": "Dijkstra", "mst_prim": "MST", "eccentricity": "eccentricity"}


def mazes(result: dict[str, Any]) -> str:
    """Ours and published systems on mazes."""
    rows = []
    for name, row in result.items():
        if not isinstance(row, dict):
            continue
        trained, at = row["trained"], row["exact_at_step"]
        given = "start, goal, open neighbours"
        training = f"{trained['cells_of_training_mazes']} cells a side, one core, {trained['processor_minutes']} min"
        figures = f"**{percent(row['exact_think'])}**", *(percent(value) for value in at.values())
        rest = percent(row["filling_dead_ends"]), f"{trained['parameters']:,}", given, training, f"{row['n']:,}"
        rows.append((f"**ours**, {name.replace('_', ' ')}", *figures, *rest))
    steps = next(row["exact_at_step"] for row in result.values() if isinstance(row, dict))
    rows += [
        (
            f"{name}, published",
            accuracy,
            *["–"] * len(steps),
            "–",
            parameters,
            "the whole grid",
            "GPUs, 30 cells a side",
            "–",
        )
        for name, accuracy, parameters in PUBLISHED_MAZES
    ]
    at_steps = (f"% at {count} steps" for count in steps)
    head = ("system", "% exact", *at_steps, "dead ends filled, %", "parameters", "given", "training", "n")
    return table(head, rows)


def algorithms(result: dict[str, Any]) -> str:
    """Accuracy by network, algorithm and size, a mean over the graph families; rows are networks."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    columns = [f"{algorithm}, {size:,}" for algorithm in ALGORITHM_NAMES.values() for size in (160, 1600)]
    for algorithm, networks in result["algorithms"].items():
        for name, row in networks.items():
            network = name.removeprefix(f"{algorithm}_").replace("_", ", seed ")
            for steps in ("given", "think"):
                for size in (160, 1600):
                    found = [split for key, split in row.get(steps, {}).items() if key.endswith(f"_{size}")]
                    values = [split.get("node_accuracy", split.get("accuracy")) for split in found]
                    if values:
                        column = f"{ALGORITHM_NAMES[algorithm]}, {size:,}"
                        cells.setdefault((network, steps), {})[column] = percent(sum(values) / len(values))
    rows = [(*name, *(of_row.get(column, "–") for column in columns)) for name, of_row in sorted(cells.items())]
    return table(["network", "steps", *columns], rows)


def visual(result: dict[str, Any]) -> str:
    """Visual Sudoku beside SATNet's published figures, at about 36 givens."""
    head = ("system", "% right, 36 givens", "counted", "parameters", "given", "training", "n")
    n, training = str(result["n_by_givens"]["36"]), f"one core, {result['trained']['minutes']:.0f} min"
    counted = {"accuracy_by_givens": "1 attempt", "accuracy_attempts_by_givens": f"{result['attempts']} attempts"}
    circumstances = (f"{result['parameters']:,}", "no labels", training, n)
    ours = [("**visual-sudoku**", percent(result[field]["36"]), how, *circumstances) for field, how in counted.items()]
    published = ((0.632, "labels leaked"), (0.0, "no labels"))
    theirs = [("SATNet, published", percent(value), "–", "–", given, "–", "–") for value, given in published]
    return table(head, [*ours, *theirs])


TABLES: dict[str, tuple[str, str | None, Callable[[dict[str, Any]], str]]] = {
    "extreme": ("peers.json", "extreme", extreme),
    "extreme compute": ("peers.json", "extreme", extreme_compute),
    "extreme difficulty": ("peers.json", "extreme", extreme_difficulty),
    "extreme time": ("peers.json", "extreme", extreme_time),
    "dgl": ("peers.json", "dgl", dgl),
    "mazes": ("peers.json", "mazes", mazes),
    "algorithms": ("peers.json", "algorithms", algorithms),
    "visual": ("visual_sudoku.json", None, visual),
}
"""By name: the file in results/, the key in it, and what makes the table."""


def renew(text: str, results: Path = ROOT / "results") -> str:
    """The page with its tables made anew. A table without a result stays as it is."""
    for name, (file, key, make) in TABLES.items():
        data = json.loads((results / file).read_text()) if (results / file).exists() else {}
        result = data if key is None else data.get(key, {})
        if result:
            block = re.compile(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
            text = block.sub(rf"\g<1>\n{make(result)}\n\n\g<2>", text)
    return text


def main() -> None:
    PAGE.write_text(renew(PAGE.read_text()))


if __name__ == "__main__":
    main()
