"""Input of all kinds against the API's own description: nothing gives a 500, and every response is as described.

``RRN_FUZZ=1000`` tries that many cases of each operation and each test; by default it is a few.
"""

import json
import os
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from rrn.web.app import create_app

CASES = int(os.environ.get("RRN_FUZZ", "30"))
relaxed = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]

PUZZLES = st.text("0123456789._ |-+\nx²\ud800", min_size=79, max_size=85) | st.text(
    "." * 30 + "123456789", min_size=81, max_size=81
)
NAMES = st.sampled_from(["Ann", "Bob", "Cleo", "É", "_", "ann"])
NUMBERS = st.sampled_from(["0", "7", "99", "100", "-3", "٣", "9" * 30])
FACTS = st.builds("{} is {}".format, NAMES, NUMBERS) | st.builds(
    "{} is {} {} than {}".format, NAMES, NUMBERS, st.sampled_from(["older", "younger", "wiser"]), NAMES
)
WORDS = st.sampled_from(
    ["Mary", "went", "to", "the", "kitchen", "Where", "is", "?", ".", "milk,football", "\x00", "\u2028"]
)


def test_no_case_breaks_the_api(weights: dict[str, Any]) -> None:
    app = create_app(weights, workers=1, hosts={"testserver"})  # one of its own: it is shut down in the end
    described = schemathesis.openapi.from_asgi("/openapi.json", app)
    tried = set()
    for operation in (result.ok() for result in described.get_all_operations()):
        for mode in GenerationMode if operation.body or operation.query else (GenerationMode.POSITIVE,):

            @given(case=operation.as_strategy(generation_mode=mode))
            @relaxed
            def try_it(case: Any) -> None:
                case.call_and_validate(checks=CHECKS)

            try_it()
            tried.add(operation.label)
    assert len(tried) == sum(len(methods) for methods in app.openapi()["paths"].values())


@given(puzzles=st.lists(PUZZLES, min_size=1, max_size=3), steps=st.integers(1, 3), probabilities=st.booleans())
@relaxed
def test_puzzles_of_all_kinds(client: TestClient, puzzles: list[str], steps: int, probabilities: bool) -> None:
    body = {"puzzles": puzzles, "steps": steps, "probabilities": probabilities}
    response = client.post("/api/sudoku/solve", content=json.dumps(body), headers={"content-type": "application/json"})
    assert response.status_code in (200, 422)


@given(facts=st.lists(FACTS, max_size=9), asked=NAMES, mark=st.sampled_from(["?", "", "!?\n"]))
@relaxed
def test_age_stories_of_all_kinds(client: TestClient, facts: list[str], asked: str, mark: str) -> None:
    body = {"story": f"{'. '.join(facts)}. How old is {asked}{mark}", "steps": 1}
    assert client.post("/api/ages/ask", json=body).status_code in (200, 422)


@given(facts=st.lists(WORDS, max_size=40).map(" ".join), question=st.lists(WORDS, max_size=6).map(" ".join))
@relaxed
def test_stories_of_all_kinds(client: TestClient, weights: dict[str, Any], facts: str, question: str) -> None:
    if "babi" in weights:
        body = {"facts": facts, "question": question, "steps": 1}
        assert client.post("/api/babi/ask", json=body).status_code in (200, 422)
