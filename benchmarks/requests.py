"""Random requests from the OpenAPI description and from typical input. Every response must be as described."""

import json
from collections.abc import Callable
from typing import Any

import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SECONDS = 300
"""Time limit of a request on a busy machine."""
HOST = "testserver"
"""Host name of the requests, one of the application's ``hosts``."""

PUZZLES = st.text("0123456789._ |-+\nx²\ud800", min_size=79, max_size=85) | st.text(
    "." * 30 + "123456789", min_size=81, max_size=81
)
PUZZLES |= st.integers(1, 1000).map(lambda depth: "[" * depth)
NAMES = st.sampled_from(["Ann", "Bob", "Cleo", "É", "_", "ann"])
NUMBERS = st.sampled_from(["0", "7", "99", "100", "-3", "٣", "9" * 30])
FACTS = st.builds("{} is {}".format, NAMES, NUMBERS) | st.builds(
    "{} is {} {} than {}".format, NAMES, NUMBERS, st.sampled_from(["older", "younger", "wiser"]), NAMES
)
WORDS = st.sampled_from(
    [
        "Mary",
        "went",
        "rushe\u017f",
        "p\u0131cks",
        "to",
        "the",
        "kitchen",
        "Where",
        "is",
        "?",
        ".",
        "milk,football",
        "\x00",
        "\u2028",
    ]
)
TYPED = {
    "/api/sudoku/solve": st.fixed_dictionaries(
        {
            "puzzles": st.lists(PUZZLES, min_size=1, max_size=3),
            "steps": st.integers(1, 3),
            "probabilities": st.booleans(),
        }
    ),
    "/api/ages/ask": st.builds(
        lambda facts, asked, mark: {"story": f"{'. '.join(facts)}. How old is {asked}{mark}", "steps": 1},
        st.lists(FACTS, max_size=9),
        NAMES,
        st.sampled_from(["?", "", "!?\n"]),
    ),
    "/api/babi/ask": st.builds(
        lambda facts, question: {"facts": " ".join(facts), "question": " ".join(question), "steps": 1},
        st.lists(WORDS, max_size=40),
        st.lists(WORDS, max_size=6),
    ),
}
"""Typical input by path."""


def attack(app: FastAPI, cases: int, seed: int = 0) -> tuple[dict[str, int], list[str]]:
    """Send ``cases`` valid and invalid requests to each operation, and typical input.

    Returns the number of requests by operation, and the failures."""
    tried: dict[str, int] = {}
    losses: list[str] = []

    def send(label: str, ask: Callable[[], Any]) -> None:
        tried[label] = tried.get(label, 0) + 1
        try:
            ask()
        except BaseException as error:  # including exception groups
            if isinstance(error, KeyboardInterrupt):
                raise
            losses.append(f"{label}: {error!r:.300}")

    described = schemathesis.openapi.from_asgi("/openapi.json", app, timeout=SECONDS)
    for operation in (result.ok() for result in described.get_all_operations()):
        for mode in GenerationMode if operation.body or operation.query else (GenerationMode.POSITIVE,):
            each = operation.as_strategy(generation_mode=mode)
            _try(
                each,
                cases,
                seed,
                lambda case, at=operation.label: send(
                    at, lambda: case.call_and_validate(checks=CHECKS, timeout=SECONDS)
                ),
            )  # type: ignore[misc]
    client = TestClient(app, raise_server_exceptions=False, base_url=f"http://{HOST}")
    for path in TYPED.keys() & app.openapi()["paths"].keys():
        _try(TYPED[path], cases, seed, lambda body, at=path: send(f"typed for {at}", lambda: _post(client, at, body)))  # type: ignore[misc]
    return tried, losses


def _try(each: Any, cases: int, number: int, what: Callable[[Any], None]) -> None:
    @seed(number)
    @given(each)
    @settings(max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def one(case: Any) -> None:
        what(case)

    one()


def _post(client: TestClient, path: str, body: dict[str, Any]) -> None:
    response = client.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
    if response.status_code not in (200, 422):
        raise AssertionError(f"{response.status_code} for {body!r:.200}")
