"""The API: responses, refusals and headers."""

import http.client
import json
import re
import shutil
import socket
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

import rrn
from rrn import tasks
from rrn.tasks.babi.predict import StoryQuestion
from rrn.tasks.babi.predict import predict as babi_predict
from rrn.tasks.babi.vocabulary import NO_ANSWER
from rrn.tasks.sudoku.exact import count_solutions, generate
from rrn.tasks.sudoku.examples import EXAMPLES
from rrn.tasks.sudoku.grid import BOXES, grid_to_line, solves
from rrn.tasks.sudoku.predict import solve
from rrn.tasks.weights import from_pretrained
from rrn.web import limits
from rrn.web.app import STATIC, create_app
from rrn.web.panels import PANELS, pretty_clevr
from rrn.web.panels.sudoku import EXTREME, IMPOSSIBLE, read_puzzle

URL = "http://localhost"
SVG, PAPER = "http://www.w3.org/2000/svg", "https://arxiv.org/abs/1711.08028"
STORY = "Ann is 20. Ann is 4 years older than Bob. Cleo is 6 younger than Bob. How old is Cleo?"


def ask(client: TestClient, path: str, **body: Any) -> Any:
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def refused(client: TestClient, path: str, status: int, **body: Any) -> str:
    response = client.post(path, json=body)
    assert response.status_code == status
    assert list(response.json()) == ["error"]
    return response.json()["error"]


def digits(text: str) -> np.ndarray:
    return read_puzzle(text, "")


def test_the_larger_network_tries_every_puzzle_that_the_first_does_not_solve(
    client: TestClient, tmp_path: Path
) -> None:
    """8 steps are too few for either network. Custom weights have no fallback."""
    for puzzles in ([EXAMPLES[0]], list(EXAMPLES[:2])):
        for row in ask(client, "/api/sudoku/solve", puzzles=puzzles, steps=8, attempts=2)["puzzles"]:
            assert (row["solved"], row["fallback"], row["attempts"]) == (False, True, 4)
    custom = tmp_path / "custom"
    shutil.copytree(Path(rrn.__file__).parent / "weights" / "sudoku", custom)
    alone = TestClient(create_app({"sudoku": custom}, workers=1), base_url=URL)
    (row,) = ask(alone, "/api/sudoku/solve", puzzles=[EXAMPLES[0]], steps=8, attempts=2)["puzzles"]
    assert (row["fallback"], row["attempts"]) == (False, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("12345", "The puzzle: row 1 of the grid has 5 cells, not"),
        ("." * 80, "The puzzle: 80 cells where a puzzle has"),
        ("", "The puzzle: found 0 puzzles, expected one."),
        ("[" * 1000, "The puzzle: not JSON: nested too deeply."),
        ("[" * 500 + "]" * 500, "The puzzle: expected a string of cells"),
    ],
)
def test_text_that_is_not_a_puzzle_is_explained(text: str, message: str, client: TestClient) -> None:
    found = ask(client, "/api/sudoku/read", text=text)
    assert found["puzzle"] is None
    assert found["message"].startswith(message)
    assert refused(client, "/api/sudoku/solve", 422, puzzles=[text]) == found["message"]


def test_puzzles_are_read_in_many_forms(client: TestClient, easy: str) -> None:
    rows = [easy[start : start + 9] for start in range(0, 81, 9)]
    ruled = "\n".join([*rows[:3], "------+-------+------", *rows[3:]])
    for text in (easy, "\n".join(rows), easy.replace(".", "-"), *(ruled.replace(".", empty) for empty in "0_·*x?")):
        assert ask(client, "/api/sudoku/read", text=text) == {"puzzle": easy, "message": ""}
    clashing = "55" + "." * 79
    assert ask(client, "/api/sudoku/read", text=clashing)["puzzle"] == clashing, "the page marks clashes"


def test_letters_that_fold_to_ascii_are_refused(client: TestClient) -> None:
    facts = ["Mary rushe\u017f to the kitchen.", "John p\u0131cks up the milk.", "John leave\u017f."]
    for fact in facts:
        assert "does not know the word" in refused(client, "/api/babi/ask", 422, facts=fact, question="Where is Mary?")
    for story in ("Ann \u0131s 20. How old is Ann?", "An\u017f is 20. Bob is 3 older than ans. How old is ANS?"):
        assert client.post("/api/ages/ask", json={"story": story}).status_code in (200, 422)


def test_a_panel_is_served_if_and_only_if_it_has_weights(
    client: TestClient, weights: dict[str, Any], easy: str
) -> None:
    panels = client.get("/api/panels").json()
    assert [panel["task"] for panel in panels] == [name for name in PANELS if name in weights]
    for panel in panels:
        network = from_pretrained(weights[panel["task"]])
        preset = network.preset
        assert panel["parameters"] == sum(p.numel() for p in network.parameters())
        assert panel["steps"] == preset.steps
    alone = TestClient(create_app({"ages": weights["ages"]}, workers=1), base_url=URL)
    assert [panel["task"] for panel in alone.get("/api/panels").json()] == ["ages"]
    assert alone.post("/api/sudoku/solve", json={"puzzles": [easy]}).status_code in (404, 405)
    assert create_app({}, workers=1).openapi()["paths"].keys() == {"/api/panels"}


def test_solving_returns_every_step(client: TestClient, easy: str) -> None:
    (row,) = ask(client, "/api/sudoku/solve", puzzles=[easy])["puzzles"]
    found = solve(easy, attempts=1, record=True)[0]
    assert row["solved"] is found.solved is True
    assert row["message"] == ""
    assert solves(digits(row["answer"]), digits(easy)).all()
    assert row["steps"] == found.steps == len(row["probabilities"]) == len(row["grids"]) == len(row["decided"])
    np.testing.assert_allclose(row["probabilities"], found.record, atol=5.1e-4)
    assert row["grids"][-1] == row["answer"]
    assert row["decided"][-1] <= 81


def test_a_batch_gives_the_same_results_as_single_puzzles(client: TestClient, easy: str) -> None:
    texts = [easy, "\n".join(EXTREME[9 * row : 9 * row + 9] for row in range(9)), IMPOSSIBLE.replace(".", "0")]
    asked = {"steps": 24, "probabilities": False}
    together = ask(client, "/api/sudoku/solve", puzzles=texts, **asked)["puzzles"]
    one_by_one = [ask(client, "/api/sudoku/solve", puzzles=[text], **asked)["puzzles"][0] for text in texts]
    assert [row["puzzle"] for row in together] == [easy, EXTREME, IMPOSSIBLE]
    for a, b in zip(together, one_by_one, strict=True):
        assert a["probabilities"] is None
        assert {name: a[name] for name in ("solved", "answer", "steps", "attempts")} == {
            name: b[name] for name in ("solved", "answer", "steps", "attempts")
        }


@pytest.mark.parametrize("cells", [16, 36, 256])
def test_puzzles_of_other_sizes(cells: int, client: TestClient) -> None:
    puzzles, _ = generate(1, np.random.default_rng(1), extra_givens=cells // 6, box=BOXES[cells])
    text = grid_to_line(puzzles[0])
    assert ask(client, "/api/sudoku/read", text=text)["puzzle"] == text
    (row,) = ask(client, "/api/sudoku/solve", puzzles=[text], steps=32, attempts=9)["puzzles"]
    assert row["solved"]
    assert solves(digits(row["answer"]), puzzles, BOXES[cells]).all()
    assert np.shape(row["probabilities"]) == (row["steps"], cells, round(cells**0.5))
    assert row["grids"][-1] == row["answer"]
    assert "81 cells" in refused(client, "/api/sudoku/influence", 422, puzzle=text, step=1)


def test_a_request_chooses_a_network(client: TestClient, easy: str) -> None:
    (panel,) = (panel for panel in client.get("/api/panels").json() if panel["task"] == "sudoku")
    assert list(panel["others"]) == ["sudoku-hard", "sudoku-paper"]
    for name in panel["others"]:
        (row,) = ask(client, "/api/sudoku/solve", puzzles=[easy], network=name, steps=32)["puzzles"]
        expected = solve(easy, network=from_pretrained(name), max_steps=32, attempts=1)[0]
        assert (row["solved"], row["steps"], row["fallback"]) == (expected.solved, expected.steps, False)


def test_metrics_are_in_the_text_format_of_prometheus(weights: dict[str, Any]) -> None:
    client = TestClient(create_app({"sudoku": weights["sudoku"]}, workers=1), base_url=URL)
    ask(client, "/api/sudoku/solve", puzzles=[EXAMPLES[0]], steps=8)
    refused(client, "/api/sudoku/solve", 422, puzzles=["?"])
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = response.text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert all(re.fullmatch(r"rrn_\w+(\{\w+=\"[^\"]+\"\})?", name) for name in values)
    named = {name.split("{")[0] for name in values}
    for name, kind in (line.split()[2:] for line in lines if line.startswith("# TYPE")):
        assert kind in ("counter", "gauge", "histogram")
        assert any(found.startswith(name) for found in named)
    assert values['rrn_responses_total{status="200"}'] == values['rrn_responses_total{status="422"}'] == "1"
    assert values['rrn_requests_total{outcome="answered"}'] == values["rrn_request_seconds_count"] == "1"
    assert values['rrn_request_seconds_bucket{le="+Inf"}'] == "1"
    assert values["rrn_unfinished_puzzles"] == "0"
    assert values["rrn_slots"] == "5"


def test_the_status_explains_why_a_puzzle_is_not_solved(client: TestClient) -> None:
    (row,) = ask(client, "/api/sudoku/solve", puzzles=[IMPOSSIBLE], steps=8, attempts=2)["puzzles"]
    assert (row["solved"], row["status"]) == (False, "impossible")
    assert row["message"] == "The puzzle has no solution, proved by exact search."
    assert row["attempts"] == 1, "no further attempts at an impossible puzzle"
    (row,) = ask(client, "/api/sudoku/solve", puzzles=["." * 81], steps=1)["puzzles"]
    assert row["solved"] or (row["status"], row["message"]) == (
        "ambiguous",
        "The puzzle has several solutions, and the network found none of them.",
    )
    (row,) = ask(client, "/api/sudoku/solve", puzzles=[EXTREME], steps=1)["puzzles"]
    assert row["status"] == "unsolved"
    assert row["message"] == "The puzzle has one solution, which the network did not find."


def test_the_exact_search_is_limited(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SEARCH_GUESSES", 3)
    (row,) = ask(client, "/api/sudoku/solve", puzzles=[IMPOSSIBLE], steps=1)["puzzles"]
    assert row["message"] == "The puzzle may have no solution: the exact search reached its limit."


def test_a_full_valid_grid_is_already_solved(client: TestClient) -> None:
    full = "".join("123456789"[(3 * row + row // 3 + column) % 9] for row in range(9) for column in range(9))
    (row,) = ask(client, "/api/sudoku/solve", puzzles=[full], steps=8)["puzzles"]
    assert (row["solved"], row["status"], row["steps"], row["attempts"]) == (True, "already solved", 0, 0)
    assert row["answer"] == full


def test_the_examples_match_their_names(client: TestClient) -> None:
    examples = client.get("/api/sudoku/examples").json()
    assert [example["puzzle"] for example in examples] == [*EXAMPLES, EXTREME, IMPOSSIBLE]
    counts = count_solutions(np.stack([digits(example["puzzle"]) for example in examples]))
    assert counts.tolist() == [1] * (len(EXAMPLES) + 1) + [0]
    for example in examples[: len(EXAMPLES)]:
        assert example["name"].startswith(f"{sum(map(str.isdigit, example['puzzle']))} givens")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"puzzles": ["55" + "." * 79]}, "The puzzle contradicts itself: 5 in row 1, column 1 and in row 1, column 2."),
        ({"puzzles": ["5" * 80]}, "The puzzle: 80 cells where a puzzle has"),
        ({"puzzles": ["." * 81, "." * 16]}, "Puzzle 2 has 16 cells, the first one 81; send one size per request."),
        ({"puzzles": ["." * 256], "steps": 256, "attempts": 9}, "puzzles × steps × attempts is"),
        ({"puzzles": ["." * 81], "network": "none"}, "network: expected one of"),
        ({"puzzles": ["." * 16], "network": "sudoku-paper"}, "box: only networks on candidates"),
        ({"puzzles": ["z" * 81]}, "The puzzle: 'z' in cell 1 is neither a digit nor an empty cell (0, . or _)."),
        ({"puzzles": ["." * 81, "²" * 81]}, "Puzzle 2: '²' in cell 1 is neither"),
        ({"puzzles": []}, "puzzles: List should have at least 1 item"),
        ({"puzzles": ["." * 81] * 65}, "puzzles: List should have at most 64 items"),
        ({"puzzles": ["." * 1001]}, "puzzles.0: String should have at most 1000 characters"),
        ({"puzzles": ["." * 81], "steps": 257}, "steps: Input should be less than or equal to 256"),
        ({"puzzles": ["." * 81], "steps": 0}, "steps: Input should be greater than or equal to 1"),
        ({"puzzles": ["." * 81], "attempts": 10}, "attempts: Input should be less than or equal to 9"),
        ({"puzzles": ["." * 81], "attempts": 0}, "attempts: Input should be greater than or equal to 1"),
        ({"puzzles": ["." * 81], "steps": "8"}, "steps: Input should be a valid integer"),
        ({"puzzles": ["." * 81], "step": 8}, "step: Extra inputs are not permitted"),
        ({"puzzles": ["." * 81] * 64, "attempts": 2}, "puzzles × steps × attempts is 16,384; the limit is 10,000."),
        ({"puzzles": ["." * 81] * 64}, "puzzles × steps is 8,192; with probabilities the limit is 2,048."),
        ({}, "puzzles: Field required"),
    ],
)
def test_invalid_puzzle_requests_are_refused(body: dict[str, Any], message: str, client: TestClient) -> None:
    assert refused(client, "/api/sudoku/solve", 422, **body).startswith(message)


def test_ages(client: TestClient) -> None:
    result = ask(client, "/api/ages/ask", story=STORY, steps=5)
    assert (result["person"], result["truth"], result["differences"]) == ("Cleo", 10, 2)
    assert [step["step"] for step in result["steps"]] == [1, 2, 3, 4, 5]
    assert (
        np.argmax(result["distribution"][-1])
        == result["answer"]
        == int(result["steps"][-1]["predictions"][0]["answer"])
    )
    assert np.sum(result["distribution"], axis=1) == pytest.approx(np.ones(5), abs=0.01)
    assert refused(client, "/api/ages/ask", 422, story="Ann is blue.").startswith("cannot read 'Ann is blue'")
    assert "one too many" in refused(
        client, "/api/ages/ask", 422, story=" ".join(f"P{k} is 1 older than P{k + 1}." for k in range(9))
    )
    assert refused(client, "/api/ages/ask", 422, story=STORY, steps=65).startswith("steps: Input should be less")
    assert refused(client, "/api/ages/ask", 422, story="a" * 4001).startswith("story: String should have at most 4000")


def test_all_age_examples_are_answered_except_the_contradiction(client: TestClient) -> None:
    examples = client.get("/api/ages/examples").json()
    states = [client.post("/api/ages/ask", json={"story": example["story"]}).status_code for example in examples]
    assert states == [200] * (len(examples) - 1) + [422]


def test_pretty_clevr(client: TestClient) -> None:
    scene = client.get("/api/pretty-clevr/scene", params={"seed": 7}).json()
    assert scene == client.get("/api/pretty-clevr/scene", params={"seed": 7}).json()
    assert len({thing["colour"] for thing in scene["objects"]}) == len({t["shape"] for t in scene["objects"]}) == 8
    for start in (scene["objects"][2]["colour"], scene["objects"][2]["shape"]):
        result = ask(client, "/api/pretty-clevr/ask", seed=7, start=start, jumps=4)
        assert result["path"][0] == 2
        assert len(set(result["path"])) == 5
        last = scene["objects"][result["path"][-1]]
        assert result["truth"] in (last["colour"], last["shape"])
        assert result["answer"] == result["steps"][-1]["predictions"][0]["answer"]
        here, nearest = (scene["objects"][index] for index in result["path"][:2])
        reach = [np.hypot(here["x"] - t["x"], here["y"] - t["y"]) for t in scene["objects"] if t is not here]
        assert min(reach) == pytest.approx(np.hypot(here["x"] - nearest["x"], here["y"] - nearest["y"]))
    assert refused(client, "/api/pretty-clevr/ask", 422, seed=7, start="pink", jumps=1).startswith(
        "start: Input should"
    )
    assert refused(client, "/api/pretty-clevr/ask", 422, seed=7, start="red", jumps=8).startswith("jumps: Input should")
    assert client.get("/api/pretty-clevr/scene", params={"seed": -1}).status_code == 422


def test_moved_objects_change_the_path(client: TestClient) -> None:
    scene = client.get("/api/pretty-clevr/scene", params={"seed": 7}).json()["objects"]
    at = [[thing["x"], thing["y"]] for thing in scene]
    asked = {"seed": 7, "start": scene[2]["colour"], "jumps": 1}
    unmoved = ask(client, "/api/pretty-clevr/ask", **asked, positions=at)
    assert unmoved["path"] == ask(client, "/api/pretty-clevr/ask", **asked)["path"]
    far = max(range(8), key=lambda k: np.hypot(*np.subtract(at[k], at[2])))
    at[far] = [at[2][0] + 9, at[2][1]] if at[2][0] < 50 else [at[2][0] - 9, at[2][1]]
    moved = ask(client, "/api/pretty-clevr/ask", **asked, positions=at)
    assert moved["path"] == [2, far]
    assert moved["truth"] == scene[far]["shape"]
    assert refused(client, "/api/pretty-clevr/ask", 422, **asked, positions=at[:7]).startswith("positions: List should")
    at[0] = [101, 0]
    assert refused(client, "/api/pretty-clevr/ask", 422, **asked, positions=at).startswith("positions.0.0: Input")


def test_the_names_in_the_api_are_those_of_the_task() -> None:
    from typing import get_args

    from rrn.tasks.pretty_clevr.data import NAMES

    assert get_args(pretty_clevr.Name) == NAMES


def needs_babi(weights: dict[str, Any]) -> None:
    if "babi" not in weights:
        pytest.skip("no weights of babi")


def test_stories_are_answered_with_the_importance_of_each_fact(client: TestClient, weights: dict[str, Any]) -> None:
    needs_babi(weights)
    facts = ["Mary went to the kitchen.", "John moved to the garden.", "Sandra took the milk."]
    result = ask(client, "/api/babi/ask", facts=" ".join(facts), question="Where is Mary?", steps=3)
    assert [fact["text"] for fact in result["facts"]] == facts
    assert all(0 <= fact["importance"] <= 1 for fact in result["facts"])
    assert result["answer"] == result["steps"][-1]["predictions"][0]["answer"]
    network = from_pretrained(weights["babi"])
    expected = babi_predict(network, StoryQuestion(facts, "Where is Mary?"), 3, 20)
    predicted = [step["predictions"][0]["probability"] for step in result["steps"]]
    assert predicted == pytest.approx(expected.record.max(1), abs=1e-3)
    assert result["unanswerable"] == pytest.approx(expected.record[-1, 0], abs=1e-3)
    importance = [fact["importance"] for fact in result["facts"]]
    assert importance == pytest.approx(np.clip(expected.details["importance"], 0, 1), abs=1e-3)


@pytest.mark.parametrize(
    ("facts", "question", "message"),
    [
        ("", "Where is Mary?", "No facts"),
        ("Mary left. " * 21, "Where is Mary?", "21 facts; the limit is 20."),
        ("Mary left.", "", "The question must be one sentence"),
        ("Mary left.", "Where is Mary? Why?", "The question must be one sentence"),
        (
            "Mary left.",
            "Where is Marry?",
            "'Where is Marry?': the network does not know the word 'marry'",
        ),
        ("Mary left " + "and left " * 12, "Where is Mary?", "'Mary left and left"),
    ],
)
def test_invalid_stories_are_refused(
    facts: str, question: str, message: str, client: TestClient, weights: dict[str, Any]
) -> None:
    needs_babi(weights)
    assert refused(client, "/api/babi/ask", 422, facts=facts, question=question).startswith(message)


def test_every_task_has_an_example_story(client: TestClient, weights: dict[str, Any]) -> None:
    needs_babi(weights)
    examples = client.get("/api/babi/examples", params={"number": 3}).json()
    assert [example["task"] for example in examples] == list(range(1, 22))
    assert examples[-1]["answer"] == NO_ANSWER
    for example in examples:
        asked = ask(client, "/api/babi/ask", facts=example["facts"], question=example["question"], steps=1)
        assert [fact["text"] for fact in asked["facts"]] == example["facts"].split("\n")
    assert client.get("/api/babi/examples", params={"number": 1000}).status_code == 422


def test_the_body_size_is_limited_with_and_without_content_length(client: TestClient) -> None:
    long = b'{"puzzles": ["' + b"." * limits.BODY_BYTES + b'"]}'
    expected = {"error": f"The body exceeds the limit of {limits.BODY_BYTES:,} bytes."}
    response = client.post("/api/sudoku/solve", content=long)
    assert (response.status_code, response.json()) == (413, expected)
    chunks = (long[low : low + 1000] for low in range(0, len(long), 1000))
    response = client.post("/api/sudoku/solve", content=chunks)
    assert (response.status_code, response.json()) == (413, expected)
    json_type = {"content-type": "application/json"}
    response = client.post("/api/sudoku/solve", content=b"{", headers=json_type)
    assert (response.status_code, response.json()) == (400, {"error": "The body is not JSON."})


def test_a_body_that_does_not_arrive_is_refused(live: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", live.port), timeout=20) as connection:
        connection.sendall(b"POST /api/sudoku/solve HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{")
        assert connection.recv(4000).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(
    "path",
    [
        "/../app.py",
        "/..%2fapp.py",
        "/%2e%2e/app.py",
        "/%2e%2e%2f%2e%2e%2fweights/ages/config.json",
        "/..\\app.py",
        "/..%5capp.py",
        "/panels/../../app.py",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/....//....//etc/passwd",
        "/%00",
        "/.",
    ],
)
def test_paths_outside_the_static_folder_are_not_served(path: str, live: Any) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", live.port, timeout=20)
    connection.putrequest("GET", path, skip_host=False)
    connection.endheaders()
    response = connection.getresponse()
    body = response.read()
    assert response.status in (200, 307, 400, 404), response.status
    if response.status == 307:
        assert response.getheader("location", "").startswith(live.url)
    if response.status == 200:
        assert body == (STATIC / "index.html").read_bytes()


def test_a_full_queue_gives_429_and_the_page_is_still_served(weights: dict[str, Any]) -> None:
    app = create_app({"ages": weights["ages"]}, workers=1, waiting=1)
    client, release = TestClient(app, base_url=URL), threading.Event()
    blocked = [app.state.pool.submit(release.wait) for _ in range(2)]
    response = client.post("/api/ages/ask", json={"story": STORY})
    assert (response.status_code, response.headers["retry-after"]) == (429, "1")
    assert "try again" in response.json()["error"]
    assert client.get("/").status_code == client.get("/api/panels").status_code == 200
    release.set()
    for future in blocked:
        future.result(10)
    assert client.post("/api/ages/ask", json={"story": STORY}).status_code == 200


def test_a_failed_request_frees_its_slot_in_the_queue(weights: dict[str, Any]) -> None:
    app = create_app({"ages": weights["ages"]}, workers=1, waiting=0)
    client = TestClient(app, base_url=URL)
    for _ in range(5):
        assert client.post("/api/ages/ask", json={"story": "?"}).status_code == 422
        time.sleep(0.01)
    assert client.post("/api/ages/ask", json={"story": STORY}).status_code == 200


def test_internal_errors_reveal_no_details(client: TestClient, monkeypatch: pytest.MonkeyPatch, easy: str) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr("rrn.web.panels.sudoku.Stages", broken)
    response = client.post("/api/sudoku/solve", json={"puzzles": [easy]})
    assert response.status_code == 500
    assert "secret" not in response.text
    assert response.json() == {"error": "Internal error; see the server's log."}
    assert response.headers["content-security-policy"].startswith("default-src 'self';")
    assert response.headers["x-content-type-options"] == "nosniff"


def test_every_response_has_the_security_headers(client: TestClient) -> None:
    for path in ("/", "/app.js", "/api/panels", "/openapi.json", "/nowhere"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self';"), path
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_static_files_are_served_with_their_content_types(client: TestClient) -> None:
    kinds = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    kinds[".bin"] = "application/octet-stream"
    files = [path for path in STATIC.rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        response = client.get(f"/{path.relative_to(STATIC).as_posix()}")
        assert response.status_code == 200
        assert response.headers["content-type"].startswith(kinds[path.suffix])
        assert response.content == path.read_bytes()


def test_the_page_loads_nothing_from_other_sites_and_builds_no_html_from_strings() -> None:
    for path in STATIC.rglob("*.*"):
        text = path.read_bytes().decode("latin-1")
        elsewhere = [url for url in re.findall(r"https?://[^\s\"'`)]+", text) if url not in (SVG, PAPER)]
        assert not elsewhere, f"{path.name}: {elsewhere}"
        forbidden = re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|DOMParser", text)
        assert not forbidden, f"{path.name}: {forbidden}"


def test_only_the_command_imports_the_web_package() -> None:
    home = Path(rrn.__file__).parent
    importers = [
        path.relative_to(home).as_posix()
        for path in home.rglob("*.py")
        if home / "web" not in path.parents and re.search(r"(from|import) rrn\.web", path.read_text())
    ]
    assert importers == ["cli/serve.py"]


def test_openapi_describes_every_refusal(app: FastAPI) -> None:
    paths = app.openapi()["paths"]
    assert len(paths) >= 7
    for path, methods in paths.items():
        for method, entry in methods.items():
            assert entry["summary"]
            if method == "post":
                assert {"200", "400", "408", "413", "422", "429"} <= set(entry["responses"]), path
    assert json.dumps(paths).count("HTTPValidationError") == 0


def test_each_panel_belongs_to_a_task() -> None:
    assert set(PANELS) - {"babi"} <= set(tasks.TASKS)
