"""Input of all kinds against the API's own description: a few cases of each. Many more in benchmarks.faults."""

from typing import Any

import pytest
from benchmarks.requests import HOST, TYPED, attack

from rrn.web.app import create_app

CASES = 30


@pytest.mark.slow
def test_no_case_breaks_the_api(weights: dict[str, Any]) -> None:
    app = create_app(weights, workers=1, hosts={HOST})  # one of its own: it is shut down in the end
    tried, losses = attack(app, CASES)
    assert losses == []
    operations = sum(len(methods) for methods in app.openapi()["paths"].values())
    assert len(tried) == operations + len(TYPED)
    assert sum(tried.values()) > 15 * CASES
