"""Every number in the tables of docs/results.md is in the file that its row names; README quotes that page."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results.md"
README = ROOT / "README.md"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
Row = dict[str, str]


def numbers(cell: str) -> list[str]:
    return [number.replace(",", "") for number in NUMBER.findall(cell)]


def tables(text: str) -> Iterator[tuple[str, list[Row]]]:
    """The heading above each table, and its rows by column."""
    heading = ""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("#"):
            heading = line.strip("# ")
        if line.startswith("|---"):
            columns = cells_of(lines[number - 1])
            end = next((i for i in range(number + 1, len(lines)) if not lines[i].startswith("|")), len(lines))
            yield heading, [dict(zip(columns, cells_of(row), strict=True)) for row in lines[number + 1 : end]]


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def of_table(text: str, column: str) -> list[Row]:
    return [row for _, rows in tables(text) for row in rows if column in row]


def value_at(data: Any, key: str) -> tuple[Any, list[Any]]:
    """The value of a key such as ``runs/0/accuracy``, and the objects that contain it, the nearest first."""
    path = [data]
    for part in key.split("/"):
        path.append(path[-1][int(part)] if isinstance(path[-1], list) else path[-1][part])
    return path[-1], path[-2::-1]


def agrees(cell: str, value: float) -> bool:
    """Whether a number of a table is the value, as rounded to the decimals of the table."""
    decimals = len(cell.partition(".")[2])
    return abs(float(cell) - value) <= 0.5 * 10**-decimals + 1e-9


def everything(data: Any) -> Iterator[float]:
    """All numbers of a file, also those in its keys and texts."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from everything(key)
            yield from everything(value)
    elif isinstance(data, list):
        yield float(len(data))
        for value in data:
            yield from everything(value)
    elif isinstance(data, str):
        yield from map(float, numbers(data))
    elif isinstance(data, int | float):
        yield float(data)


def wilson(share: float, n: int) -> tuple[float, float]:
    z = 1.959964
    centre, half = share + z * z / 2 / n, z * math.sqrt(share * (1 - share) / n + (z / 2 / n) ** 2)
    return (centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)


def name_of(row: Row) -> str:
    return row["file"] + row["key"]


@pytest.mark.parametrize("row", of_table(RESULTS.read_text(), "%"), ids=name_of)
def test_a_figure_is_the_value_in_its_file(row: Row) -> None:
    data = json.loads((ROOT / "results" / row["file"].strip("`")).read_text())
    value, around = value_at(data, row["key"].strip("`"))
    figure, *deviation = numbers(row["%"])
    assert agrees(figure, 100 * value)
    if deviation:
        assert agrees(deviation[0], 100 * around[0]["deviation"])
    if "failed" in row:
        failed = around[0]["failed_tasks"]
        assert float(row["failed"]) == (sum(failed) / len(failed) if "runs" in around[0] else len(failed))
    if row["95 % interval"] != "–":
        (n,) = numbers(row["n"])
        assert all(map(agrees, numbers(row["95 % interval"]), [100 * end for end in wilson(value, int(n))]))


@pytest.mark.parametrize("row", of_table(RESULTS.read_text(), "%"), ids=name_of)
def test_the_circumstances_of_a_figure_are_in_its_file(row: Row) -> None:
    """n, seed, parameters, steps and minutes; the minutes of several stages are in the card of the weights."""
    data = json.loads((ROOT / "results" / row["file"].strip("`")).read_text())
    found = list(everything(data))
    for column in ("n", "seed", "parameters", "counted"):
        for number in numbers(row[column]):
            assert any(agrees(number, value) for value in found), column
    weights = row["weights and data"].split("`")[1] if "`" in row["weights and data"] else ""
    card = ROOT / "src" / "rrn" / "weights" / weights / "README.md"
    known = [*found, *(everything(card.read_text()) if weights and card.exists() else ())]
    for number in numbers(row["minutes"]):
        assert any(agrees(number, value) for value in known), "minutes"
    if row["machine"] != "–":
        assert row["machine"] in json.dumps(data)


OPEN_PROBLEMS = of_table((ROOT / "docs" / "constraints.md").read_text(), "CP-SAT, ms")


@pytest.mark.parametrize("row", OPEN_PROBLEMS, ids=lambda row: row["problems"])
def test_the_figures_of_open_problems_are_in_their_file(row: Row) -> None:
    """Shares of solved instances, and milliseconds per instance; a cell with two numbers has two attempts' figures."""
    family, _, name = row["problems"].partition(": ")
    found = json.loads((ROOT / "results" / "constraints.json").read_text())[family]["rows"][name]
    for column, system in (("network", "trained"), ("untrained", "untrained"), ("random choices", "random_choices")):
        one, every, alone = numbers(row[column])
        assert agrees(one, 100 * found[system].get("one_attempt", found[system]["all_attempts"]))
        assert agrees(every, 100 * found[system]["all_attempts"])
        assert agrees(alone, 100 * found[system]["choices_alone"])
    assert agrees(row["n"], found["n"])
    assert agrees(row["network, ms"], 1000 * found["trained"]["seconds_per_instance"])
    assert agrees(row["CP-SAT, ms"], 1000 * found["cp_sat"]["seconds_per_instance"])


def test_the_hardest_puzzles_are_solved_in_the_seconds_of_the_docs() -> None:
    found = json.loads((ROOT / "results" / "sudoku_hardest.json").read_text())
    named = [found["puzzles"].pop(name)["processor_seconds"] for name in ("AI Escargot", "Golden Nugget")]
    others = [row["processor_seconds"] for row in found["puzzles"].values()]
    assert (found["solved"], len(others)) == (12, 10)
    page = (ROOT / "docs" / "sudoku.md").read_text()
    (said,) = re.findall(
        r"AI Escargot in (\d+) s, Golden Nugget in (\d+) s.*?guesses most in (\d+) to (\d+) s", page, re.S
    )
    assert all(map(agrees, said, [*named, min(others), max(others)]))


ESTIMATORS = (ROOT / "docs" / "estimators.md").read_text()
OURS = "`RRNClassifier`, `RRNRegressor`"


def test_estimators_out_of_the_box_are_those_of_their_file() -> None:
    found = json.loads((ROOT / "results" / "out_of_the_box.json").read_text())
    names = {"parity": "parity of", "diameter": "diameter", "components": "connected", "triangles": "triangles"}
    rows = of_table(ESTIMATORS, "GatedGraphConv")
    assert set(found["tasks"]) == set(names)
    for task, start in names.items():
        (row,) = [row for row in rows if row["task"].startswith(start)]
        for system, column in (("rrn", OURS), ("GIN", "GIN"), ("GatedGraphConv", "GatedGraphConv")):
            figures = found["tasks"][task][system]
            assert 0.9 <= figures["processor_minutes"] <= 1.1
            score = 100 * figures["accuracy"] if task == "parity" else figures["r2"]
            assert agrees(row[column].strip("*"), score), (task, system)
        best = max(float(row[column].strip("*")) for column in (OURS, "GIN", "GatedGraphConv"))
        for column in (OURS, "GIN", "GatedGraphConv"):
            assert row[column].startswith("**") == (float(row[column].strip("*")) == best), "the best is bold"
    for key in ("parameters", "updates"):
        (row,) = [row for row in rows if row["task"].startswith(key)]
        for system, column in (("rrn", OURS), ("GIN", "GIN"), ("GatedGraphConv", "GatedGraphConv")):
            assert numbers(row[column]) == [str(found["tasks"]["parity"][system][key])]


def test_small_work_does_not_wait_for_threads() -> None:
    found = json.loads((ROOT / "results" / "busy.json").read_text())
    assert (found["busy_loops"], found["default_threads"], found["processors"]) == (2, 2, 2)
    ratios = [row["ratio"] for row in found["workloads"].values()]
    assert all(map(agrees, [row["ratio"] for row in of_table(ESTIMATORS, "ratio")], ratios))
    assert max(ratios[:2]) <= 1.5, "the estimators and the examples as they are run"


def test_preferences_and_composed_stories_are_in_their_files() -> None:
    rows = json.loads((ROOT / "results" / "constraints.json").read_text())["roster"]["rows"]["with preferences"]
    (said,) = re.findall(r"Mean sum of preferences: ([^[]+)\. \[", (ROOT / "docs" / "constraints.md").read_text())
    systems = ("trained", "untrained", "random_choices", "cp_sat")
    assert all(map(agrees, numbers(said), [rows[system]["mean_preference"] for system in systems]))
    limits = json.loads((ROOT / "results" / "babi_limits.json").read_text())["limits"]
    page = {row["generated questions"]: row for row in of_table((ROOT / "docs" / "babi.md").read_text(), "right, %")}
    for name, figures in (
        ("answer in the story", limits["answerable"]),
        ("answer not in the story", limits["unanswerable"]),
        ("composed stories, answer in the story", limits["composed"]["answerable"]),
        ("composed stories, answer not in it", limits["composed"]["unanswerable"]),
    ):
        assert agrees(page[name]["right, %"], 100 * figures["accuracy"])
        assert numbers(page[name]["n"]) == [str(figures["n"])]


def test_every_family_of_open_problems_is_in_the_docs() -> None:
    measured = json.loads((ROOT / "results" / "constraints.json").read_text())
    named = [f"{family}: {name}" for family, figures in measured.items() for name in figures["rows"]]
    assert [row["problems"] for row in OPEN_PROBLEMS] == named
    assert all(figures["training"]["processor_minutes"] <= 5 for figures in measured.values())
    rows = [row for figures in measured.values() for row in figures["rows"].values()]
    trained, untrained, at_random = (
        sum(row[system]["choices_alone"] for row in rows) / len(rows)
        for system in ("trained", "untrained", "random_choices")
    )
    assert trained > untrained + 0.15
    assert untrained > at_random + 0.1


BY_LENGTH = [
    *of_table(RESULTS.read_text(), "% right by jumps"),
    *of_table(RESULTS.read_text(), "% right by path length"),
]


@pytest.mark.parametrize("row", BY_LENGTH, ids=name_of)
def test_figures_by_length_are_those_in_their_file(row: Row) -> None:
    data = json.loads((ROOT / "results" / row["file"].strip("`")).read_text())
    values, _ = value_at(data, row["key"].strip("`"))
    assert len(values) == sum(column.isdigit() for column in row)
    for length, value in values.items():
        assert agrees(row[length], 100 * value), length


def papers_figures() -> list[float]:
    return list(everything(json.loads((ROOT / "src" / "rrn" / "tasks" / "reproduce.json").read_text())))


def test_the_results_of_the_readme_are_those_of_the_page() -> None:
    """Each of our numbers is in the section of docs/results.md that its row links to, the paper's in reproduce.json."""
    sections: dict[str, list[Row]] = {}
    for heading, rows in tables(RESULTS.read_text()):
        sections.setdefault(heading.lower().replace(" ", "-"), []).extend(rows)
    rows = of_table(README.read_text(), "training time")
    assert 0 < len(rows) <= 8
    for row in rows:
        section = sections[row["task"].partition("docs/results.md#")[2].rstrip(")")]
        figures = [other for other in section if "%" in other]
        shown = {number for other in figures for name in ("%", "failed") for number in numbers(other.get(name, ""))[:1]}
        for column in ("ours, paper's inputs", "ours, best"):
            for number in numbers(row[column]):
                assert any(agrees(number, float(other)) for other in shown), (row["task"], column)
        (value,) = numbers(row["ours, best"]) or numbers(row["ours, paper's inputs"])
        best = [
            other
            for other in figures
            if other["parameters"] == row["parameters"]
            and any(agrees(value, float(shown)) for shown in numbers(f"{other['%']} {other.get('failed', '')}"))
        ]
        assert best, (row["task"], "parameters")
        (minutes,) = numbers(row["training time"])
        assert any(agrees(minutes, sum(map(float, numbers(other["minutes"])))) for other in best), row["task"]
        assert all(any(agrees(number, value) for value in papers_figures()) for number in numbers(row["paper"]))


QUOTING = re.compile(r"results\.md#([a-z-]+)\)[^\n]*\n(?:[^\n|]+\n)*\n((?:\|[^\n]*\n)+)")
"""A table below a link to a section of docs/results.md."""
QUOTES = [
    (page.name, section, table)
    for page in sorted((ROOT / "docs").glob("*.md"))
    for section, table in QUOTING.findall(page.read_text())
    if page.name != "LOG.md"
]


@pytest.mark.parametrize(("page", "section", "table"), QUOTES, ids=[page for page, _, _ in QUOTES])
def test_a_table_that_quotes_the_results_has_their_numbers(page: str, section: str, table: str) -> None:
    by_heading = {
        part.partition("\n")[0].lower().replace(" ", "-"): part for part in RESULTS.read_text().split("\n## ")
    }
    known = [*map(float, numbers(by_heading[section])), *papers_figures()]
    shown = [number for line in table.splitlines()[2:] for cell in cells_of(line)[1:] for number in numbers(cell)]
    assert shown
    for number in shown:
        assert "." not in number or any(agrees(number, value) for value in known), number


def test_the_comparison_of_the_readme_is_that_of_the_page() -> None:
    """A row of docs/compared.md has the parameters, the training, the figure and the n of each row."""
    page = (ROOT / "docs" / "compared.md").read_text()
    others = [set(other.values()) for _, rows in tables(page) for other in rows]
    others = [{cell.strip("*") for cell in other} for other in others]
    rows = of_table(README.read_text(), "% solved")
    assert rows
    for row in rows:
        assert any({row[name] for name in ("parameters", "training", "% solved", "n")} <= other for other in others), (
            row
        )


def test_the_readme_is_short() -> None:
    text = README.read_text()
    assert len(text.split()) <= 900
    assert len(text.splitlines()) <= 150
    for _, rows in tables(text):
        for cell in (cell for row in rows for cell in row.values()):
            assert len(cell) <= 60, cell


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_a_page_is_short(page: Path) -> None:
    assert page.name == "LOG.md" or len(page.read_text().splitlines()) <= 180


def test_a_version_of_the_changelog_has_at_most_ten_lines() -> None:
    versions = re.split(r"^## .*$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    assert versions
    assert all(len(version.strip().splitlines()) <= 10 for version in versions)


@pytest.mark.parametrize(
    "card", sorted((ROOT / "src/rrn/weights").glob("*/README.md")), ids=lambda card: card.parent.name
)
def test_a_card_has_no_table(card: Path) -> None:
    assert not re.findall(r"^\|", card.read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    "card", sorted((ROOT / "src/rrn/weights").glob("*/README.md")), ids=lambda card: card.parent.name
)
def test_a_card_states_accuracy_inputs_supervision_limits_and_a_command(card: Path) -> None:
    text = card.read_text()
    for part in ("- Measured: ", "- Inputs: ", " Supervision: ", "- Limits: ", "- Command: `rrn "):
        assert text.count(part) == 1, part
