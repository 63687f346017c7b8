"""The page in a browser. ``RRN_SCREENSHOTS=docs`` also writes the screenshots of the documentation."""

import json
import math
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from tests.web.browsing import DESK, status_text, until

from rrn.tasks.evaluation import ACCURACY
from rrn.tasks.sudoku.exact import count_solutions, generate
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.grid import BOXES, grid_to_line, solves
from rrn.web.panels.sudoku import EXTREME, IMPOSSIBLE, read_puzzle

CONTRAST = (Path(__file__).parent / "contrast.js").read_text()
ENOUGH = 4.5
PHONE = {"width": 360, "height": 740}
TASKS = ("sudoku", "babi", "pretty-clevr", "ages")


UNNAMED = """() => {
    const kinds = "button, input, select, textarea, [role=gridcell], [role=img], svg:not([aria-hidden])";
    const name = (element) => element.getAttribute("aria-label") || element.labels?.length || element.innerText?.trim();
    const shown = [...document.querySelectorAll(kinds)].filter((element) => element.checkVisibility());
    return shown.filter((element) => !name(element)).map((element) => element.outerHTML.slice(0, 120));
}"""


def shown_digits(page: Any, parts: int = 3) -> list[list[float]]:
    """Cells × digits: the probabilities. Checks that digits are sized by them, up to the size of their square."""
    cells = page.evaluate(
        """() => [...document.querySelectorAll(".cell")].map((cell) =>
        [...cell.querySelectorAll(".digit")].map((digit) => ({
            p: Number(digit.dataset.probability),
            hidden: digit.hidden,
            scale: digit.hidden ? null : new DOMMatrix(getComputedStyle(digit).transform).a,
        })))"""
    )
    for digit in (digit for cell in cells for digit in cell):
        assert digit["hidden"] == (digit["p"] < 0.01)
        if not digit["hidden"]:
            scales = [min(digit["p"] ** 0.5, 1.2 * side / parts) for side in range(1, parts + 1)]
            assert any(digit["scale"] == pytest.approx(scale, abs=1e-3) for scale in scales)
    return [[digit["p"] for digit in cell] for cell in cells]


def shown_grid(page: Any, size: int = 9) -> np.ndarray:
    return np.argmax(shown_digits(page, math.ceil(size**0.5)), axis=1).astype(np.uint8) + 1


def paste(page: Any, text: str) -> None:
    page.locator(".cell").first.focus()
    page.evaluate(
        """(text) => {
        const data = new DataTransfer();
        data.setData("text", text);
        const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
        document.activeElement.dispatchEvent(event);
        }""",
        text,
    )


def set_slider(page: Any, step: int) -> None:
    slider = page.locator("[role=tabpanel]:not([hidden]) .player input")
    slider.evaluate("(slider, step) => { slider.value = step; slider.dispatchEvent(new Event('input')); }", step)


def test_paste_play_solved(visit: Any, easy: str) -> None:
    there = visit(reduced_motion="no-preference")
    page = there.open()
    paste(page, easy)
    page.wait_for_selector(".player:visible")
    assert page.get_by_role("button", name="Pause").is_visible(), "the player starts automatically"
    page.wait_for_selector(".verdict.good")
    page.wait_for_timeout(300)  # the transition of the last digits
    assert status_text(page).startswith("Solved\nIn ")
    assert solves(shown_grid(page), read_puzzle(easy, "")).all()
    assert page.locator(".cell.given").count() == sum(map(str.isdigit, easy))
    assert page.locator(".cell.clash").count() == 0
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Pause").click()
    paused_at = page.locator(".player output").inner_text()
    page.get_by_role("button", name="Next step").click()
    assert page.locator(".player output").inner_text() != paused_at


def test_the_slider_shows_the_probabilities_of_the_api(visit: Any, client: Any, easy: str) -> None:
    page = visit().open(f"#sudoku?puzzle={easy}")
    page.wait_for_selector(".verdict.good")
    body = {"puzzles": [easy], "attempts": 9}
    (found,) = client.post("/api/sudoku/solve", json=body).json()["puzzles"]
    givens = read_puzzle(easy, "")
    for step in (1, 2, found["steps"] // 2, found["steps"]):
        set_slider(page, step)
        assert page.locator(".player output").inner_text() == f"Step {step} of {found['steps']}"
        expected = np.array(found["probabilities"][step - 1])
        expected[givens > 0] = np.eye(9)[givens[givens > 0] - 1]
        np.testing.assert_allclose(shown_digits(page), expected, atol=1e-9)
    set_slider(page, found["steps"] + 1)
    assert page.locator(".player output").inner_text() == "Answer"
    assert "".join(map(str, shown_grid(page))) == found["answer"]
    set_slider(page, 0)
    np.testing.assert_array_equal(np.sum(shown_digits(page), axis=1), givens > 0)
    points = page.locator(".chart .line").get_attribute("points").split()
    assert len(points) == found["steps"] + 1


def test_typing_a_puzzle_with_the_keyboard(visit: Any, easy: str) -> None:
    page = visit().open()
    page.get_by_role("button", name="Clear", exact=True).click()
    page.locator(".cell").first.focus()
    for digit in easy:
        page.keyboard.press("Delete" if digit == "." else digit)
        page.keyboard.press("ArrowRight")
        if page.evaluate("document.activeElement.classList.contains('c0')"):
            page.keyboard.press("ArrowDown")
    assert page.get_by_label("Or type or paste a puzzle").input_value() == easy
    first = page.locator(".cell").first
    first.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("Row 9, column 9:")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".verdict.good")
    page.keyboard.press("Backspace")
    assert page.get_by_role("gridcell", name="Row 1, column 1: empty").is_visible()
    assert status_text(page) == "", "an edit removes the result"
    assert page.locator(".cell[tabindex='0']").count() == 1, "the grid is one tab stop"


def test_the_pad_types_digits_without_a_keyboard(visit: Any) -> None:
    page = visit(viewport=PHONE, has_touch=True, is_mobile=True).open()
    page.locator(".cell").nth(40).tap()
    page.get_by_role("button", name="Type 7").tap()
    assert page.get_by_role("gridcell", name="Row 5, column 5: 7, given").count() == 1
    page.get_by_role("button", name="Clear the cell").tap()
    assert page.get_by_role("gridcell", name="Row 5, column 5: empty").count() == 1


def test_a_contradictory_puzzle_is_refused_and_its_clashes_are_marked(visit: Any) -> None:
    there = visit()
    there.expected.append("422")
    page = there.open()
    page.get_by_role("button", name="Clear", exact=True).click()
    page.locator(".cell").first.focus()
    page.keyboard.press("5")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("5")
    assert page.locator(".cell.clash").count() == 2
    assert page.get_by_role("gridcell", name="Row 2, column 1: 5, given, clashes").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_selector(".verdict.bad p:has-text('contradicts itself')")
    assert status_text(page) == (
        "Not solved\nThe puzzle contradicts itself: 5 in row 1, column 1 and in row 2, column 1."
    )


def test_an_impossible_puzzle_is_reported(visit: Any) -> None:
    page = visit().open()
    page.get_by_label("Example").select_option(IMPOSSIBLE)
    page.wait_for_selector(".verdict.bad")
    text = status_text(page)
    assert text.startswith("No solution\nThe puzzle has no solution, proved by exact search.")
    marked = page.locator(".cell.clash").count()
    assert f"{marked} cells clash" in text or (marked == 0 and "clash" not in text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("12345", "The puzzle: row 1 of the grid has 5 cells, not 9."),
        ("<img src=x onerror=alert(1)>", "The puzzle: 24 cells where a puzzle has 16, 36, 81 or 256."),
    ],
)
def test_text_that_is_not_a_puzzle_is_refused(text: str, message: str, visit: Any) -> None:
    page = visit().open()
    page.wait_for_selector(".verdict.good")
    page.get_by_label("Or type or paste a puzzle").fill(text)
    page.get_by_role("button", name="Solve").click()
    page.wait_for_selector(".verdict.bad")
    assert status_text(page) == f"Not a puzzle\n{message}"
    assert page.locator("main img").count() == 0


def test_a_refused_puzzle_stops_the_player_and_clears_the_board(visit: Any) -> None:
    page = visit(reduced_motion="no-preference").open()
    page.wait_for_selector(".player:visible")
    page.get_by_label("Speed").select_option("4")
    page.locator(".cell:not(.given)").first.hover()
    page.get_by_label("Or type or paste a puzzle").fill("1....\n..2..\n.3...\n...4.")
    page.get_by_role("button", name="Solve").click()
    page.wait_for_selector(".verdict.bad")
    page.wait_for_timeout(4000)  # longer than the steps take at this speed
    assert status_text(page).startswith("Not a puzzle\n")
    assert page.locator(".player:visible").count() == 0
    assert page.locator(".cell.given, .cell.decided, .cell.clash, .cell.influential, .cell.selected").count() == 0
    assert page.locator(".digit:visible").count() == 0
    assert page.locator(".chart-area").inner_text() == ""


def test_a_failed_request_stops_the_player(visit: Any, easy: str) -> None:
    there = visit(reduced_motion="no-preference")
    there.expected.append("500")
    page = there.open()
    page.wait_for_selector(".player:visible")
    page.get_by_label("Speed").select_option("4")
    page.route("**/api/sudoku/solve", lambda route: route.fulfill(status=500, json={"error": "Internal error."}))
    page.get_by_role("button", name="Solve").click()
    page.wait_for_selector(".verdict.bad")
    page.wait_for_timeout(4000)
    assert status_text(page) == "Not solved\nInternal error."
    assert page.locator(".player:visible").count() == 0
    assert page.locator(".digit:visible").count() == page.locator(".cell.given").count() == 17


OVERLAPS = """() => [...document.querySelectorAll(".cell")].flatMap((cell, number) => {
    const boxes = [...cell.querySelectorAll(".digit:not([hidden])")].map((digit) => {
        const range = document.createRange();
        range.selectNodeContents(digit);
        return range.getBoundingClientRect();
    });
    const around = cell.getBoundingClientRect();
    const apart = (a, b) => a.right <= b.left + 0.1 || b.right <= a.left + 0.1
        || a.bottom <= b.top + 0.1 || b.bottom <= a.top + 0.1;
    const inside = (a) => a.left >= around.left - 1 && a.right <= around.right + 1
        && a.top >= around.top - 1 && a.bottom <= around.bottom + 1;
    return boxes.every((a, k) => inside(a) && boxes.slice(k + 1).every((b) => apart(a, b))) ? [] : [number];
})"""


@pytest.mark.parametrize("width", [1280, 390])
def test_digits_do_not_overlap(width: int, visit: Any) -> None:
    page = visit(viewport={"width": width, "height": 844}).open(f"#sudoku?puzzle={EXAMPLES[0]}")
    page.wait_for_selector(".verdict.good")
    last = int(page.locator(".player input").get_attribute("max"))
    for step in range(1, last + 1):
        set_slider(page, step)
        assert page.evaluate(OVERLAPS) == [], f"step {step}"


@pytest.mark.parametrize("cells", [16, 36, 256])
def test_puzzles_of_other_sizes(cells: int, visit: Any) -> None:
    size, box = round(cells**0.5), BOXES[cells]
    puzzles, _ = generate(1, np.random.default_rng(2), extra_givens=cells // 5, box=box)
    page = visit().open()
    page.wait_for_selector(".verdict.good")
    paste(page, grid_to_line(puzzles[0]))
    until(page, f"document.querySelectorAll('.cell').length === {cells}")
    page.wait_for_selector(".verdict.good")
    assert solves(shown_grid(page, size), puzzles, box).all()
    assert page.get_by_role("button", name="Type ").count() == size
    assert page.locator(".chart .axis", has_text=re.compile(f"^{cells}$")).count() >= 1
    assert page.evaluate(OVERLAPS) == []
    last = int(page.locator(".player input").get_attribute("max"))
    set_slider(page, max(last // 3, 1))
    assert page.evaluate(OVERLAPS) == []
    edges = page.locator(".row").first.locator(".box-right").count()
    assert edges == size // box[1]
    page.locator(".cell").first.focus()
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith(f"Row 1, column {size}")
    page.get_by_text("Network, steps and size").click()
    page.get_by_label("Size").select_option("4")
    until(page, "document.querySelectorAll('.cell').length === 16")
    page.locator(".cell").first.focus()
    page.keyboard.press("5")
    assert page.get_by_role("gridcell", name="Row 1, column 1: empty").count() == 1, "there is no 5 in a 4 × 4"
    page.keyboard.press("4")
    assert page.get_by_role("gridcell", name="Row 1, column 1: 4, given").count() == 1


def test_network_steps_and_attempts_can_be_chosen(visit: Any) -> None:
    there = visit()
    asked: list[Any] = []
    there.page.on("request", lambda sent: sent.url.endswith("/solve") and asked.append(sent.post_data_json))
    page = there.open(f"#sudoku?puzzle={EXAMPLES[0]}")
    page.wait_for_selector(".verdict.good")
    assert asked[-1] == {"puzzles": [EXAMPLES[0]], "network": None, "steps": 128, "attempts": 9, "seed": 0}
    page.get_by_text("Network, steps and size").click()
    for label, value in (("Network", "sudoku-paper"), ("Steps of an attempt", "32"), ("Attempts", "1")):
        page.get_by_label(label, exact=True).select_option(value)
        page.wait_for_selector(".verdict.good, .verdict.bad")
    until(page, "document.querySelector('.verdict.good, .verdict.bad') !== null")
    assert asked[-1] == {"puzzles": [EXAMPLES[0]], "network": "sudoku-paper", "steps": 32, "attempts": 1, "seed": 0}


def test_two_networks_side_by_side(visit: Any, client: Any, easy: str) -> None:
    page = visit().open(f"#sudoku?puzzle={easy}")
    page.wait_for_selector(".verdict.good")
    page.get_by_text("Network, steps and size").click()
    page.get_by_label("Second network beside it").select_option("sudoku-paper")
    page.wait_for_selector(".beside .verdict.good")
    assert page.locator(".beside .cell").count() == 81
    assert "sudoku-paper" in page.locator(".beside h2").inner_text()
    both = [
        client.post("/api/sudoku/solve", json={"puzzles": [easy], "attempts": 9, "network": name}).json()["puzzles"][0]
        for name in (None, "sudoku-paper")
    ]
    steps = max(row["steps"] for row in both)
    assert page.locator(".player input").get_attribute("max") == str(steps + 1)
    set_slider(page, 2)
    shown = np.array(shown_digits(page)).reshape(2, 81, 9)
    for row, digits in zip(both, shown, strict=True):
        open_ = read_puzzle(easy, "") == 0
        np.testing.assert_allclose(digits[open_], np.array(row["probabilities"][1])[open_], atol=1e-9)
    assert page.locator(".beside .verdict.good").count() == 0, "not yet solved at this step"
    page.get_by_label("Second network beside it").select_option("none")
    until(page, "document.querySelectorAll('.cell').length === 81")


def test_think_longer_asks_the_larger_network_again(visit: Any) -> None:
    there = visit()
    asked: list[Any] = []
    there.page.on("request", lambda sent: sent.url.endswith("/solve") and asked.append(sent.post_data_json))
    page = there.open(f"#sudoku?puzzle={EXTREME}")
    page.wait_for_selector(".verdict.good, .verdict.bad")
    page.get_by_text("Network, steps and size").click()
    page.get_by_label("Attempts", exact=True).select_option("1")
    page.get_by_label("Steps of an attempt").select_option("32")
    page.wait_for_selector(".verdict.bad")
    page.get_by_role("button", name="Think longer").click()
    page.wait_for_selector(".verdict.good")
    assert asked[-1]["network"] == "sudoku-hard"
    assert (asked[-1]["steps"], asked[-1]["attempts"], asked[-1]["seed"]) == (256, 9, 1)
    assert page.get_by_role("button", name="Think longer").count() == 0


def test_what_is_this(visit: Any) -> None:
    page = visit().open()
    page.get_by_text("What is this?").click()
    assert "graph neural network" in page.locator(".what p").inner_text()
    assert page.locator(".what a").get_attribute("href") == "https://arxiv.org/abs/1711.08028"


def test_objects_can_be_dragged_and_the_answer_follows(visit: Any, client: Any) -> None:
    page = visit().open("#pretty-clevr?seed=7&start=0&jumps=1")
    page.wait_for_selector("#panel-pretty-clevr .verdict.good")
    page.get_by_label("Show the true path").check()
    scene = client.get("/api/pretty-clevr/scene?seed=7").json()["objects"]
    far = max(range(8), key=lambda k: np.hypot(scene[k]["x"] - scene[0]["x"], scene[k]["y"] - scene[0]["y"]))
    picture = page.locator(".scene svg").bounding_box()

    def at(x: float, y: float) -> tuple[float, float]:
        return picture["x"] + x * picture["width"] / 100, picture["y"] + y * picture["height"] / 100

    aside = 9 if scene[0]["x"] < 50 else -9
    page.mouse.move(*at(scene[far]["x"], scene[far]["y"]))
    page.mouse.down()
    page.mouse.move(*at(50, 50))
    page.mouse.move(*at(scene[0]["x"] + aside, scene[0]["y"]), steps=4)
    page.mouse.up()
    right = f"{scene[0]['colour']}, 1 jump: {scene[far]['shape']}"
    page.wait_for_selector(f"#panel-pretty-clevr .verdict.good strong:has-text('{right}')")
    assert "start=0" in page.url, "dragging does not choose the start"
    page.locator(".object").nth(far).focus()
    for _ in range(40):
        page.keyboard.press("ArrowDown")
    page.wait_for_selector(f"#panel-pretty-clevr .verdict strong:not(:has-text('{scene[far]['shape']}'))")


def test_ages(visit: Any) -> None:
    page = visit().open("#ages")
    page.wait_for_selector("#panel-ages .verdict.good")
    assert page.locator("#panel-ages .verdict strong").inner_text() == "Eve is 29"
    assert page.locator("#panel-ages tbody tr").count() == 8
    page.get_by_role("button", name="Show step 2").click()
    assert page.locator("#panel-ages tr[aria-current=step] td").first.inner_text() == "2"
    page.get_by_label("Facts and a question").fill("Zoe is 7. Zoe is 3 younger than Max. How old is Max?")
    page.get_by_role("button", name="Ask").click()
    page.wait_for_selector("#panel-ages .verdict strong:has-text('Max is 10')")
    assert "Zoe+is+7" in page.url


def test_markup_in_the_address_is_shown_as_text(visit: Any) -> None:
    there = visit()
    there.expected.append("422")
    story = "<img src=x onerror=alert(1)> is 7. How old is <b>?"
    page = there.open(f"#ages?story={quote(story)}")
    page.wait_for_selector("#panel-ages .verdict.bad")
    assert page.get_by_label("Facts and a question").input_value() == story
    assert "<img src=x onerror=alert(1)>" in status_text(page, "ages")
    assert page.locator("main img, main b").count() == 0


def test_pretty_clevr(visit: Any, client: Any) -> None:
    page = visit().open("#pretty-clevr?seed=7&start=0&jumps=2")
    page.wait_for_selector("#panel-pretty-clevr .verdict.good")
    scene = client.get("/api/pretty-clevr/scene?seed=7").json()["objects"]
    assert page.locator(".object").count() == 8
    name = f"{scene[3]['colour']} {scene[3]['shape']}"
    page.get_by_role("button", name=name).click()
    page.wait_for_selector(f"#panel-pretty-clevr .verdict strong:has-text('{scene[3]['colour']}, 2 jumps')")
    assert page.locator(".object[aria-pressed=true]").get_attribute("aria-label") == name
    page.get_by_label("Describe the start by").select_option("shape")
    page.wait_for_selector(f"#panel-pretty-clevr .verdict strong:has-text('{scene[3]['shape']}, 2 jumps')")
    assert page.locator(".path .shaft").count() == 0
    page.get_by_label("Show the true path").check()
    assert page.locator(".path .shaft").count() == 2
    body = {"seed": 7, "start": scene[3]["shape"], "jumps": 2}
    found = client.post("/api/pretty-clevr/ask", json=body).json()
    best = found["steps"][-1]["predictions"][0]["answer"]
    answered = next(thing for thing in scene if thing["colour"] == best)
    assert float(page.locator(".ring.answer").get_attribute("cx")) == answered["x"]
    page.locator(".object").nth(5).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#panel-pretty-clevr .verdict strong:has-text('{scene[5]['shape']}, 2 jumps')")
    assert "start=5" in page.url
    page.get_by_role("button", name="Surprise me").locator("visible=true").click()
    until(page, "!location.hash.includes('seed=7&')")


def test_babi(visit: Any, weights: dict[str, Any], client: Any) -> None:
    if "babi" not in weights:
        pytest.skip("no weights of babi")
    page = visit().open("#babi")
    page.wait_for_selector("#panel-babi tbody tr")
    examples = client.get("/api/babi/examples").json()
    assert page.get_by_label("Example").locator("option").count() == 21
    page.get_by_label("Example").select_option("2")
    until(page, "(text) => document.querySelector('#panel-babi textarea').value === text", arg=examples[1]["facts"])
    page.wait_for_selector("#panel-babi tbody tr")
    facts = page.locator(".facts li span:first-child").all_inner_texts()
    assert facts == examples[1]["facts"].split("\n")
    page.get_by_label("Facts, oldest first").fill("Mary went to the kitchen.\nJohn moved to the garden.")
    page.get_by_label("Question").fill("Where is Mary?")
    page.get_by_label("Question").press("Enter")
    until(page, "document.querySelectorAll('.facts li').length === 2")
    body = {"facts": "Mary went to the kitchen. John moved to the garden.", "question": "Where is Mary?"}
    answer = client.post("/api/babi/ask", json=body).json()["answer"]
    assert page.locator("#panel-babi .verdict strong").inner_text() == answer
    page.get_by_label("Question").fill("Where is Daniel?")
    page.get_by_label("Question").press("Enter")
    until(page, "document.querySelector('#panel-babi .verdict strong').innerText === 'not in the story'")
    assert "Probability that the story does not contain the answer: " in status_text(page, "babi")
    page.get_by_role("button", name="Surprise me").locator("visible=true").click()
    until(page, "!document.querySelector('#panel-babi textarea').value.startsWith('Mary went to the kitchen.')")


OUTSIDE = """() => [...document.querySelectorAll(".facts li")].filter((row) => {
    const share = row.querySelector(".share-of")?.getBoundingClientRect();
    const around = row.getBoundingClientRect();
    return share && (share.top < around.top - 1 || share.bottom > around.bottom + 1);
}).length"""


def test_the_importance_of_a_fact_stays_in_its_row_on_a_phone(visit: Any) -> None:
    page = visit(viewport={"width": 390, "height": 844}).open("#babi")
    page.wait_for_selector(".facts li.important .share-of")
    assert page.locator(".facts li.important .share-of").count() >= 2
    assert page.evaluate(OUTSIDE) == 0


def test_a_shared_link_opens_the_same_puzzle(visit: Any, easy: str) -> None:
    first = visit(permissions=["clipboard-read", "clipboard-write"])
    page = first.open()
    paste(page, easy)
    page.wait_for_selector(".verdict.good")
    page.get_by_role("button", name="Copy link").click()
    page.wait_for_selector("text=Copied.")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(first.url)
    other = visit().open(link.removeprefix(first.url))
    other.wait_for_selector(".verdict.good")
    assert (shown_grid(other) == shown_grid(page)).all()


def test_tabs_by_keyboard_and_by_address(visit: Any, weights: dict[str, Any]) -> None:
    page = visit().open()
    tabs = page.get_by_role("tab")
    assert tabs.count() == len(weights)
    assert tabs.first.get_attribute("aria-selected") == "true"
    tabs.first.focus()
    page.keyboard.press("End")
    page.wait_for_selector("#panel-ages .verdict.good")
    assert page.locator("[role=tabpanel]:visible").count() == 1
    assert page.url.endswith(quote("How old is Eve?", safe="").replace("%20", "+"))
    page.evaluate("location.hash = '#sudoku'")
    page.wait_for_selector("#panel-sudoku:visible .grid")


def test_the_player_starts_automatically_and_its_speed_can_be_chosen(visit: Any) -> None:
    there = visit(reduced_motion="no-preference")
    there.page.add_init_script(
        "window.paces = []; const begin = window.setInterval;"
        "window.setInterval = (work, pace) => { window.paces.push(pace); return begin(work, pace); };"
    )
    page = there.open()
    page.wait_for_selector(".player:visible")
    assert page.get_by_role("button", name="Pause").is_visible()
    assert page.locator(".cell.given").count() == 17
    page.get_by_label("Speed").select_option("4")
    page.wait_for_selector(".verdict.good")
    usual, quick = page.evaluate("window.paces")
    assert usual == 4 * quick


def test_the_main_parts_are_visible_without_scrolling(visit: Any, weights: dict[str, Any]) -> None:
    there = visit()
    page = there.open()
    page.wait_for_selector(".verdict.good")
    assert ACCURACY["sudoku"] in page.locator("#panel-sudoku .about").inner_text()
    legend = page.get_by_role("list", name="Legend")
    assert "size: probability" in legend.inner_text()
    assert "red: clash" in legend.inner_text()
    for task in weights:
        page.evaluate("(task) => { location.hash = task; }", task)
        page.wait_for_selector(f"#panel-{task} .player:visible")
        shown = [".player", ".grid", ".legend", ".buttons"] if task == "sudoku" else [".player"]
        for part in shown:
            box = page.locator(f"#panel-{task} {part}").first.bounding_box()
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= DESK["height"], (task, part)
        assert ACCURACY[task] in page.locator(f"#panel-{task} .about").inner_text()


def test_the_grid_is_visible_on_a_phone_after_solve(visit: Any, easy: str) -> None:
    page = visit(viewport=PHONE, has_touch=True, is_mobile=True).open()
    page.wait_for_selector(".verdict.good")
    page.get_by_label("Or type or paste a puzzle").fill(easy)
    page.get_by_label("Or type or paste a puzzle").scroll_into_view_if_needed()
    page.get_by_role("button", name="Solve").tap()
    page.wait_for_selector(".verdict.good")
    for part in (".grid", ".player"):
        box = page.locator(f"#panel-sudoku {part}").bounding_box()
        assert box["y"] >= 0, part
        assert box["y"] + box["height"] <= PHONE["height"], part
        assert box["x"] + box["width"] <= PHONE["width"], part


def test_pointing_at_a_cell_shows_which_groups_influence_it(visit: Any, client: Any, easy: str) -> None:
    page = visit().open(f"#sudoku?puzzle={easy}")
    page.wait_for_selector(".verdict.good")
    set_slider(page, 3)
    expected = client.post("/api/sudoku/influence", json={"puzzle": easy, "step": 3}).json()
    cell = int(np.max(expected["influence"], axis=1).argmax())
    page.locator(".cell").nth(cell).hover()
    page.wait_for_selector("div.influence li")
    influence = dict(zip(["its own digits", "row", "column", "box"], expected["influence"][cell], strict=True))
    rows = [row.split("\n") for row in page.locator("div.influence li").all_inner_texts()]
    assert [name for name, _ in rows] == sorted(influence, key=lambda name: -influence[name])
    for name, share in rows:
        assert float(share.strip("> %\u00a0")) == pytest.approx(100 * influence[name], abs=0.11)
    assert f"Row {cell // 9 + 1}, column {cell % 9 + 1}, step 3:" in page.locator("div.influence").inner_text()
    assert "Which groups influence this cell?" in page.locator("div.influence").inner_text()
    assert page.locator(".cell.selected").count() == 1
    shades = page.locator(".cell").evaluate_all(
        "cells => cells.map(c => Number(c.style.getPropertyValue('--influence')))"
    )
    for other, shade in enumerate(shades):
        shared = (
            other // 9 == cell // 9,
            other % 9 == cell % 9,
            (other // 27, other % 9 // 3) == (cell // 27, cell % 9 // 3),
        )
        groups = [influence[name] for name, same in zip(("row", "column", "box"), shared, strict=True) if same]
        assert shade == pytest.approx(max(groups, default=0) if other != cell else 0, abs=1e-3), "absolute influence"
    given = next(cell for cell, digit in enumerate(easy) if digit != ".")
    page.locator(".cell").nth(given).hover()
    page.wait_for_selector("div.influence:has-text('no group influences it')")
    page.locator("h1").hover()
    until(page, "!document.querySelector('.cell.influential')")
    phone = visit(viewport=PHONE, has_touch=True, is_mobile=True).open(f"#sudoku?puzzle={easy}")
    phone.wait_for_selector(".verdict.good")
    set_slider(phone, 3)
    phone.locator(".cell").nth(cell).tap()
    phone.wait_for_selector("div.influence li")


def test_a_cell_without_influence_has_no_shades(visit: Any, easy: str) -> None:
    there = visit()
    none = {"groups": ["cell", "row", "column", "box"], "influence": [[0.0004, 0.0, 0.0001, 0.0]] * 81}
    there.page.route("**/api/sudoku/influence", lambda route: route.fulfill(json=none))
    page = there.open(f"#sudoku?puzzle={easy}")
    page.wait_for_selector(".verdict.good")
    page.locator(".cell").nth(easy.index(".")).hover()
    page.wait_for_selector("div.influence:has-text('No group influences this cell in this step.')")
    assert page.locator(".cell.influential, div.influence li").count() == 0
    assert page.locator(".cell.selected").count() == 1


def test_surprise_me_gives_another_puzzle_with_one_solution(visit: Any) -> None:
    page = visit().open()
    page.wait_for_selector(".verdict.good")
    page.get_by_role("button", name="Surprise me").click()
    until(page, "(first) => !location.hash.includes(first)", EXAMPLES[0])
    page.wait_for_selector(".verdict.good, .verdict.bad")
    text = page.get_by_label("Or type or paste a puzzle").input_value()
    assert count_solutions(read_puzzle(text, "")).tolist() == [1]
    assert text not in EXAMPLES


def test_puzzles_can_be_written_in_many_forms(visit: Any, easy: str) -> None:
    page = visit().open()
    field = page.get_by_label("Or type or paste a puzzle")
    rows = [easy[start : start + 9] for start in range(0, 81, 9)]
    ruled = "\n".join([*rows[:3], "------+-------+------", *rows[3:]])
    for text in (*(ruled.replace(".", empty) for empty in "0_·*x?"), easy.replace(".", "-"), "\n".join(rows)):
        field.fill("." * 81)
        until(page, "!location.hash.includes('puzzle')")
        field.fill(text)
        until(page, "(text) => location.hash.includes(text)", easy)


def test_the_vocabulary_is_listed(visit: Any, client: Any) -> None:
    there = visit()
    there.expected.append("422")
    page = there.open("#babi")
    page.wait_for_selector("#panel-babi tbody tr")
    assert page.get_by_label("Example").input_value() == "2", "the first story needs two facts"
    assert page.locator(".facts li.important").count() >= 2
    page.get_by_text("Vocabulary").click()
    page.wait_for_selector(".words dd")
    listed = page.locator(".words").inner_text()
    assert "Mary, John, Sandra" in listed
    assert "walked (went)" in listed
    page.get_by_label("Facts, oldest first").fill("Anna went to the kitchen.")
    page.get_by_role("button", name="Ask").locator("visible=true").click()
    page.wait_for_selector("#panel-babi .verdict.bad")
    assert "'anna'" in status_text(page, "babi")
    assert "--" not in status_text(page, "babi")


def test_every_element_has_an_accessible_name(visit: Any, weights: dict[str, Any]) -> None:
    page = visit().open()
    for task in weights:
        page.evaluate("(task) => { location.hash = task; }", task)
        page.wait_for_selector(f"#panel-{task}:visible .about")
        until(page, f"!document.querySelector('#panel-{task}').innerText.includes('Running …')")
        unnamed = page.evaluate(UNNAMED)
        assert unnamed == [], task
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator(".verdict[role=status][aria-live=polite]").count() == len(weights)


def test_a_panel_that_was_left_does_not_take_the_address_back(visit: Any) -> None:
    page = visit().open()
    page.evaluate("() => { location.hash = 'ages'; history.replaceState(null, '', '#sudoku'); }")
    page.wait_for_selector("#panel-ages:visible .about")
    page.evaluate("() => { location.hash = 'babi'; }")
    page.wait_for_selector("#panel-babi:visible .about")
    assert page.evaluate("() => location.hash").startswith("#babi")
    page.evaluate("import('./share.js').then((share) => share.writeAddress('ages', { story: 'x' }))")
    assert page.evaluate("() => location.hash").startswith("#babi")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_sufficient_and_nothing_is_wider_than_a_phone(
    scheme: str, visit: Any, weights: dict[str, Any], easy: str
) -> None:
    there = visit(color_scheme=scheme, viewport=PHONE)
    there.expected.append("422")
    addresses = {
        "sudoku": [f"#sudoku?puzzle={IMPOSSIBLE}", f"#sudoku?puzzle={easy}", "#sudoku?puzzle=12"],
        "babi": ["#babi"],
        "pretty-clevr": ["#pretty-clevr?seed=7&jumps=7"],
        "ages": ["#ages", "#ages?story=x"],
    }
    page = there.open()
    checked = 0
    for task in weights:
        for address in addresses[task]:
            page.evaluate("(address) => { location.hash = address; }", address)
            page.wait_for_selector(f"#panel-{task}:visible .about")
            until(
                page,
                f"document.querySelector('#panel-{task} .verdict')?.innerText && "
                f"!document.querySelector('#panel-{task} .verdict').innerText.includes('Running …')",
            )
            if task == "pretty-clevr":
                page.get_by_label("Show the true path").check()
            if address.endswith(easy):
                set_slider(page, 1)
            found = page.evaluate(CONTRAST)
            checked += len(found)
            weak = [entry for entry in found if entry["ratio"] < ENOUGH]
            assert weak == [], f"{address}: {json.dumps(weak[:3])}"
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], address
    page.goto(there.url + "reference.html")
    page.wait_for_selector("h2")
    assert [entry for entry in page.evaluate(CONTRAST) if entry["ratio"] < ENOUGH] == []
    assert checked > 300


def test_the_contrast_check_finds_weak_text(visit: Any) -> None:
    page = visit().open()
    page.evaluate("document.querySelector('h1').style.color = '#999'")
    worst = page.evaluate(CONTRAST)[0]
    assert worst["text"] == "Watch a network reason"
    assert worst["ratio"] < 3


def test_the_api_documentation_lists_every_operation(visit: Any, client: Any) -> None:
    there = visit()
    there.page.goto(there.url + "reference.html")
    there.page.wait_for_selector("h2")
    operations = {
        f"{method.upper()} {path}"
        for path, methods in client.get("/openapi.json").json()["paths"].items()
        for method in methods
    }
    assert set(there.page.locator("h2").all_inner_texts()) == operations
    assert re.search(r"puzzles\s+list of string", there.page.locator("main").inner_text())


@pytest.mark.skipif("RRN_SCREENSHOTS" not in os.environ, reason="RRN_SCREENSHOTS=docs writes the screenshots")
def test_take_the_screenshots(visit: Any, weights: dict[str, Any]) -> None:
    folder = Path(os.environ["RRN_SCREENSHOTS"])
    hard = next((puzzle for puzzle in EXAMPLES if puzzle.count(".") == 64), EXTREME)
    large, _ = generate(1, np.random.default_rng(2), extra_givens=20, box=(4, 4))
    shots = [
        ("page_sudoku", f"#sudoku?puzzle={hard}", 0.35, {}),
        ("page_sudoku_dark", f"#sudoku?puzzle={hard}", 1.0, {"color_scheme": "dark"}),
        ("page_not_solved", f"#sudoku?puzzle={IMPOSSIBLE}", 1.0, {}),
        ("page_phone", f"#sudoku?puzzle={hard}", 0.35, {"viewport": PHONE, "device_scale_factor": 2}),
        ("page_two_networks", f"#sudoku?puzzle={hard}", 0.5, {}),
        ("page_sizes", f"#sudoku?puzzle={grid_to_line(large[0])}", 0.15, {}),
        ("page_babi", "#babi", 1.0, {}),
        ("page_pretty_clevr", "#pretty-clevr?seed=7&start=0&jumps=5", 1.0, {}),
        ("page_ages", "#ages", 0.6, {"color_scheme": "dark"}),
    ]
    for name, address, share, options in shots:
        task = address[1:].split("?")[0]
        if task not in weights:
            continue
        there = visit(**options)
        page = there.open(address)
        page.wait_for_selector(f"#panel-{task} .verdict.good, #panel-{task} .verdict.bad")
        if task == "babi":
            page.get_by_label("Example").select_option("2")
            page.wait_for_selector(".facts li:nth-child(4)")
            page.wait_for_selector("#panel-babi .player:visible")
        if name == "page_two_networks":
            page.get_by_text("Network, steps and size").click()
            page.get_by_label("Second network beside it").select_option("sudoku-paper")
            page.wait_for_selector(".beside .verdict.good, .beside .verdict.bad")
        last = int(page.locator(f"#panel-{task} .player input").get_attribute("max"))
        set_slider(page, max(1, round(share * last)))
        if task == "pretty-clevr":
            page.get_by_label("Show the true path").check()
        page.wait_for_timeout(300)
        page.screenshot(path=folder / f"{name}.png", full_page=True)
