"""A photo on the page: upload, correct one digit, solve; on a phone too. ``RRN_SCREENSHOTS=docs`` writes pictures."""

import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from tests.tasks.photo.drawing import draw_grid
from tests.web.browsing import DESK, status_text, until

from rrn.tasks.photo.render import Photo, render_photo

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Photo]:
    made = render_photo(np.random.default_rng(1))
    path = tmp_path_factory.mktemp("photo") / "photo.jpg"
    cv2.imwrite(str(path), cv2.cvtColor(made.image, cv2.COLOR_RGB2BGR))
    return path, made


def shown(page: Any) -> list[int]:
    return [int(text or 0) for text in page.locator(".reading button").all_inner_texts()]


@pytest.mark.parametrize("options", [{"viewport": DESK}, PHONE], ids=["desk", "phone"])
def test_upload_correct_solve(options: dict[str, Any], visit: Any, photo: tuple[Path, Photo]) -> None:
    path, made = photo
    there = visit(**options)
    page = there.open()
    there.solved()  # the example that the page opens with
    before = len(there.requests)
    page.locator("input[aria-label='Read a photo']").set_input_files(path)
    page.wait_for_selector(".photo:visible")
    assert shown(page) == made.puzzle.tolist()
    assert "read in the photo" in status_text(page)
    asked = {url.rsplit("/", 1)[1] for url in there.requests[before:]} - {"icon.svg"}
    assert asked == {"reader.bin"}, "the photo stays in the browser"
    cell = int(np.flatnonzero(made.puzzle)[2])
    button = page.locator(".reading button").nth(cell)
    button.tap() if "has_touch" in options else button.click()
    assert shown(page)[cell] != made.puzzle[cell], "a tap takes the next likely reading"
    button.press(str(made.puzzle[cell]))
    assert shown(page) == made.puzzle.tolist()
    if folder := os.environ.get("RRN_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/page_photo{'_phone' if 'has_touch' in options else ''}.png", full_page=True)
    page.get_by_role("button", name="Solve").click()
    page.wait_for_selector(".verdict.good")
    assert status_text(page).startswith("Solved")
    wide = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1], "nothing sticks out of the screen"


def test_what_is_no_photo_gets_a_sentence(visit: Any, tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "empty.png"), draw_grid())
    cv2.imwrite(str(tmp_path / "small.png"), draw_grid()[:50])
    cv2.imwrite(str(tmp_path / "blank.png"), np.full((300, 300), 200, np.uint8))
    (tmp_path / "page.pdf").write_bytes(b"%PDF-1.7")
    (tmp_path / "damaged.png").write_bytes((tmp_path / "empty.png").read_bytes()[:300])
    there = visit()
    page = there.open()
    there.solved()
    expected = {
        "empty.png": "The grid in the photo is empty",
        "small.png": "pixels are too few",
        "blank.png": "No Sudoku grid",
        "page.pdf": "This is a PDF",
        "damaged.png": "not a readable picture",
    }
    for name, message in expected.items():
        page.locator("input[aria-label='Read a photo']").set_input_files(tmp_path / name)
        until(
            page, "(message) => document.querySelector('#panel-sudoku .verdict').innerText.includes(message)", message
        )
        assert not page.locator(".photo").is_visible()


def test_a_photo_is_dropped_or_pasted(visit: Any, photo: tuple[Path, Photo]) -> None:
    path, made = photo
    there = visit()
    page = there.open()
    there.solved()
    deliver = """([bytes, kind]) => {
        const data = new DataTransfer();
        data.items.add(new File([Uint8Array.from(bytes)], "photo.jpg", { type: "image/jpeg" }));
        const event = kind === "drop"
            ? new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })
            : new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
        document.querySelector("#panel-sudoku .grid").dispatchEvent(event);
    }"""
    for kind in ("drop", "paste"):
        page.get_by_role("button", name="Clear", exact=True).click()
        assert not page.locator(".photo").is_visible()
        page.evaluate(deliver, [list(path.read_bytes()), kind])
        page.wait_for_selector(".photo:visible")
        assert shown(page) == made.puzzle.tolist()
