"""The published figures of photos, and a few of the photos measured again."""

import json
from pathlib import Path

import pytest

from rrn.tasks.photo.evaluate import PHOTOS, SEED, Options, evaluate
from rrn.tasks.photo.predict import load_reader

RESULTS = Path(__file__).parents[3] / "results" / "photos.json"


def test_published_photos() -> None:
    found = json.loads(RESULTS.read_text())
    assert (found["n"], found["photo_seed"]) == (PHOTOS, SEED) == (200, 2018)
    assert found["by_kind"]["all"]["solved"] >= 0.95
    assert found["by_kind"]["all"]["cells_right"] >= 0.99


@pytest.mark.slow
def test_the_first_photos_are_read_and_solved() -> None:
    network = load_reader()
    found = evaluate(network, network.preset, Options(limit=10), lambda done, of: None)
    assert found["by_kind"]["all"] == {"n": 10, "grids_found": 1, "cells_right": 1, "read_right": 1, "solved": 1}
