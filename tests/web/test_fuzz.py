"""Random requests against the OpenAPI description of the API. benchmarks.faults runs many more."""

from typing import Any

import pytest
from benchmarks.requests import HOST, TYPED, attack

from rrn.web.app import create_app

CASES = 30


@pytest.mark.slow
def test_random_requests_get_documented_responses(weights: dict[str, Any]) -> None:
    app = create_app(weights, workers=1, hosts={HOST})  # a separate app: schemathesis shuts it down
    tried, losses = attack(app, CASES)
    assert losses == []
    operations = sum(len(methods) for methods in app.openapi()["paths"].values())
    assert len(tried) == operations + len(TYPED)
    assert sum(tried.values()) > 15 * CASES
