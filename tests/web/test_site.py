"""The static site: the networks in the browser give the results of Python.

``RRN_SITE=build/site`` tests an existing build.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from static_site import build as building
from tests.web.browsing import Visit, status_text, until

from rrn.errors import InputError
from rrn.tasks.babi.presets import ASK_WEIGHTS
from rrn.tasks.sudoku.exact import count_solutions, generate
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.grid import grid_to_line
from rrn.tasks.sudoku.influence import influence
from rrn.tasks.sudoku.predict import solve
from rrn.tasks.weights import from_pretrained
from rrn.web.panels import ages, babi, pretty_clevr
from rrn.web.panels.sudoku import EXTREME, IMPOSSIBLE, read_puzzle

NEAR = 1e-4
DOWNLOADS = Path(__file__).parents[2] / "build" / "npm"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if "RRN_SITE" in os.environ:
        return Path(os.environ["RRN_SITE"])
    if shutil.which("npm") is None and not list(DOWNLOADS.glob("*.tgz")):
        message = "NO BROWSER: NO NPM: the static site is not tested; apt-get install npm"
        pytest.fail(message) if os.environ.get("RRN_BROWSER_REQUIRED") else pytest.skip(message)
    out = tmp_path_factory.mktemp("static") / "site"
    building.build(out, DOWNLOADS)
    return out


@pytest.fixture(scope="module")
def url(site: Path) -> Iterator[str]:
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(site)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://[\d.]+:\d+/", server.stdout.readline())
        assert found
        yield found[0]
        server.kill()


@pytest.fixture(scope="module")
def there(browser: Any, url: str) -> Iterator[Visit]:
    """One page for all tests; closing it fails if it requested another origin."""
    visit = Visit(browser, url)
    visit.open()
    yield visit
    visit.close()


def ask(there: Visit, panel: str, call: str, *asked: Any) -> Any:
    script = "([panel, call, asked]) => import('./backend.js').then((backend) => backend[panel][call](...asked))"
    return there.page.evaluate(script, [panel, call, list(asked)])


def by_step(found: dict[str, Any]) -> list[dict[str, float]]:
    return [{each["answer"]: each["probability"] for each in step["predictions"]} for step in found["steps"]]


def check_predictions(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """The probabilities of Python are rounded to four digits."""
    assert found["answer"] == expected["answer"]
    for ours, theirs in zip(by_step(found), by_step(expected), strict=True):
        both = ours.keys() & theirs.keys()
        assert len(both) >= 2
        for name in both:
            assert ours[name] == pytest.approx(theirs[name], abs=NEAR + 6e-5), name


def test_sudoku_is_solved_as_in_python(there: Visit, easy: str) -> None:
    network = from_pretrained("sudoku")
    for puzzle in (easy, *EXAMPLES[:3]):
        (found,) = ask(there, "sudoku", "solve", {"puzzles": [puzzle], "steps": 128, "attempts": 1})["puzzles"]
        expected = solve(puzzle, network=network, attempts=1, record=True)[0]
        assert (found["status"], found["steps"], found["attempts"]) == ("solved", expected.steps, 1)
        assert found["answer"] == grid_to_line(expected.answers)
        np.testing.assert_allclose(found["probabilities"], expected.record, atol=NEAR)
        assert found["confidence"] == pytest.approx(expected.confidence, abs=NEAR)
    step = 5
    changes = ask(there, "sudoku", "influence", {"puzzle": EXAMPLES[0], "step": step})
    np.testing.assert_allclose(changes["influence"], influence(network, read_puzzle(EXAMPLES[0], ""), step), atol=NEAR)


def test_the_status_explains_why_a_puzzle_is_not_solved(there: Visit) -> None:
    asked = {"puzzles": [IMPOSSIBLE, EXTREME], "steps": 4, "attempts": 2}
    impossible, extreme = ask(there, "sudoku", "solve", asked)["puzzles"]
    assert (impossible["status"], impossible["attempts"]) == ("impossible", 1)
    assert (extreme["status"], extreme["attempts"]) == ("unsolved", 2)
    assert extreme["message"] == "The puzzle has one solution, which the network did not find."
    full = "".join("123456789"[(3 * row + row // 3 + column) % 9] for row in range(9) for column in range(9))
    (found,) = ask(there, "sudoku", "solve", {"puzzles": [full]})["puzzles"]
    assert (found["status"], found["steps"], found["attempts"]) == ("already solved", 0, 0)
    with pytest.raises(Exception, match="contradicts itself: 5 in row 1, column 1 and in row 2, column 1"):
        ask(there, "sudoku", "solve", {"puzzles": ["5........5" + "." * 71]})


def test_the_exact_search_counts_as_in_python(there: Visit) -> None:
    puzzles, _ = generate(6, np.random.default_rng(5))
    for row, puzzle in enumerate(puzzles):
        given = np.flatnonzero(puzzle)
        if row % 3 == 1:
            puzzle[given[0]] = 0
        elif row % 3 == 2:
            puzzle[given[0]] = puzzle[given[0]] % 9 + 1
    counts = there.page.evaluate(
        "(puzzles) => import('./exact.js').then(({ countSolutions }) => puzzles.map((p) => countSolutions(p)))",
        puzzles.tolist(),
    )
    assert counts == count_solutions(puzzles).tolist()
    assert set(counts) == {0, 1, 2}
    tries = "import('./exact.js').then(({ countSolutions }) => countSolutions(Array(81).fill(0), 3))"
    assert there.page.evaluate(tries) == -1


def test_ages_are_answered_as_in_python(there: Visit) -> None:
    network = from_pretrained("ages")
    preset = network.preset
    stories = [
        *list(ages.EXAMPLES.values())[:3],
        "Zoë is 7. Jean-Luc is 1 year older than Zoë. How old is jean-luc?",
        "Ann is as old as Bob. Bob is 99. How old is Ann?",
    ]
    for story in stories:
        found = ask(there, "ages", "ask", {"story": story})
        expected = ages._ask(network, preset.steps, ages.AskRequest(story=story))
        assert {key: found[key] for key in ("person", "answer", "truth", "differences")} == {
            key: expected[key] for key in ("person", "answer", "truth", "differences")
        }
        np.testing.assert_allclose(found["distribution"], expected["distribution"], atol=NEAR + 6e-5)
        check_predictions({**found, "answer": None}, {**expected, "answer": None})
    bad = [
        "Ann is blue. How old is Ann?",
        "Ann is 20.",
        "Ann is 20. How old is Bob?",
        ages.EXAMPLES["Contradictory facts"],
        "Ann is 20. Bob is 3. How old is Bob?",
        "Ann is 20. Bob is 90 older than Ann. How old is Bob?",
        "Ann is 20. Bob is 3 older than Cid. How old is Bob?",
        "Ann is 2. Bob is 1 older than Ann. Bob is 1 older than Ann. How old is Bob?",
    ]
    for story in bad:
        with pytest.raises(InputError) as refused:
            ages._ask(network, preset.steps, ages.AskRequest(story=story))
        with pytest.raises(Exception, match=re.escape(str(refused.value))):
            ask(there, "ages", "ask", {"story": story})


def test_paths_are_those_of_python(there: Visit) -> None:
    network = from_pretrained("pretty-clevr")
    preset = network.preset
    for seed, start, jumps in ((7, "green", 3), (0, "star", 7), (999, "black", 0), (12, "heart", 5)):
        scenes = ask(there, "prettyClevr", "scene", seed)["objects"], pretty_clevr._scene(seed)["objects"]
        for ours, theirs in zip(*scenes, strict=True):
            for name in ("x", "y", "outline"):
                np.testing.assert_allclose(ours.pop(name), theirs.pop(name), atol=0.011)
            assert ours == theirs
        found = ask(there, "prettyClevr", "ask", {"seed": seed, "start": start, "jumps": jumps})
        request = pretty_clevr.AskRequest(seed=seed, start=start, jumps=jumps)  # type: ignore[arg-type]
        expected = pretty_clevr._ask(network, preset.steps, request)
        assert (found["path"], found["truth"]) == (expected["path"], expected["truth"])
        check_predictions(found, expected)
    with pytest.raises(Exception, match="This site has the scenes 0 to 999; 1000 does not exist"):
        ask(there, "prettyClevr", "scene", 1000)


def test_stories_are_answered_as_in_python(there: Visit) -> None:
    network = from_pretrained(ASK_WEIGHTS)
    preset = network.preset
    asked = [(story["facts"], story["question"]) for story in ask(there, "babi", "examples", 3)]
    assert len(asked) == 21
    asked.append(("Mary walked into the corridor. Mary put the ball down.", "Where's the ball?"))
    asked.append(("John went to the office.", "Where is John?"))
    for facts, question in asked:
        found = ask(there, "babi", "ask", {"facts": facts, "question": question})
        expected = babi._ask(network, preset.steps, babi.AskRequest(facts=facts, question=question))
        check_predictions(found, expected)
        assert found["unanswerable"] == pytest.approx(expected["unanswerable"], abs=NEAR + 6e-5)
        assert [fact["text"] for fact in found["facts"]] == [fact["text"] for fact in expected["facts"]]
        importance = [[fact["importance"] for fact in each["facts"]] for each in (found, expected)]
        np.testing.assert_allclose(importance[0], importance[1], atol=NEAR + 6e-5)
        assert [tuple(pair) for pair in found["read_as"]] == expected["read_as"]
    for facts, message in (
        ("Anna went to the office.", "it knows Mary, John"),
        ("Mary went to the ofice.", "did you mean 'office'"),
    ):
        with pytest.raises(Exception, match=message):
            ask(there, "babi", "ask", {"facts": facts, "question": "Where is Mary?"})


def test_the_four_panels(there: Visit) -> None:
    """The main use of each panel."""
    page = there.page
    page.wait_for_selector("#panel-sudoku .verdict.good")
    assert status_text(page).startswith("Solved\nIn ")
    page.get_by_role("button", name="Surprise me").click()
    until(page, "(first) => !location.hash.includes(first)", EXAMPLES[0])
    page.wait_for_selector("#panel-sudoku .verdict.good, #panel-sudoku .verdict.bad")
    page.evaluate("(puzzle) => { location.hash = `sudoku?puzzle=${puzzle}`; }", EXAMPLES[1])
    page.wait_for_selector("#panel-sudoku .verdict.good")
    page.locator(".cell:not(.given)").first.hover()
    page.wait_for_selector("div.influence li")
    for task, answered in (("ages", "Eve is 29"), ("babi", "garden"), ("pretty-clevr", "jumps:")):
        page.evaluate("(task) => { location.hash = task; }", task)
        page.wait_for_selector(f"#panel-{task} .verdict.good")
        assert answered in status_text(page, task)
        assert page.locator(f"#panel-{task} .player").is_visible()
        page.get_by_role("button", name="Surprise me").locator("visible=true").click()
        until(page, "(task) => !location.hash.endsWith(`#${task}`)", task)
        page.wait_for_selector(f"#panel-{task} .verdict.good")
    assert page.locator("footer a").count() == 0, "the static site has no API"


def test_the_site_is_complete(site: Path) -> None:
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    assert {"index.html", "backend.js", "networks/sudoku.onnx", "ort/ort-wasm-simd-threaded.wasm"} <= files
    assert not files & {"reference.html", "reference.js", "local/backend.js"}
    ours = [site / name for name in files if name.endswith((".js", ".html", ".css"))]
    addresses = {url for path in ours for url in re.findall(r"https?://[^\"'\s)]+", path.read_text())}
    links = {"https://arxiv.org/abs/1711.08028"}
    assert addresses - links == {"http://www.w3.org/2000/svg"}, "an XML namespace, which is not loaded"


def test_a_modified_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{building.RUNTIME}-{building.VERSION}.tgz").write_bytes(b"something else")
    with pytest.raises(InputError, match=r"differs from the published onnxruntime-web"):
        building.fetch_runtime(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match="npm is not installed"):
        building.fetch_runtime(tmp_path / "other")
