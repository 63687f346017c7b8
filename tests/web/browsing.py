"""Helpers to test the page in a browser."""

import time
from typing import Any

DESK = {"width": 1280, "height": 800}
SLOW = 60_000  # milliseconds; the machine may be busy


class Visit:
    """A browser page; closing it fails if the page logged errors or requested another origin."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.url = url
        self.context = browser.new_context(**{"viewport": DESK, "reduced_motion": "reduce", **options})
        self.page = self.context.new_page()
        self.page.set_default_timeout(SLOW)
        self.errors: list[str] = []
        self.expected: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self._logged(message))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _logged(self, message: Any) -> None:
        if message.type in ("error", "warning") and not any(text in message.text for text in self.expected):
            self.errors.append(message.text)

    def open(self, address: str = "") -> Any:
        self.page.goto(self.url + address)
        self.page.wait_for_selector("[role=tabpanel]:not([hidden]) .about")
        return self.page

    def solved(self) -> None:
        self.page.wait_for_selector(".verdict.good, .verdict.bad")

    def close(self) -> None:
        self.context.close()
        assert self.errors == []
        assert [url for url in self.requests if not url.startswith(self.url)] == []


def until(page: Any, expression: str, arg: Any = None) -> None:
    """Wait for a JavaScript expression. Playwright's wait_for_function needs eval, which the page's policy forbids."""
    deadline = time.monotonic() + SLOW / 1000
    while not page.evaluate(expression, arg):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(50)


def status_text(page: Any, task: str = "sudoku") -> str:
    return page.locator(f"#panel-{task} .verdict").inner_text().replace("\n\n", "\n")
