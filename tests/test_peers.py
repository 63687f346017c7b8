"""The commands of ``benchmarks.peers`` at a small size, and the page made from their results."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.peers.__main__ import main, run
from benchmarks.peers.counting import wilson
from benchmarks.peers.dgl_network import DGLSudoku
from benchmarks.peers.extreme import BLOCK, summarise
from benchmarks.peers.page import PAGE, TABLES, renew
from safetensors.torch import save_file

from rrn.errors import InputError
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.grid import grid_to_line, neighbours


@pytest.fixture
def puzzles(tmp_path: Path) -> Path:
    path = tmp_path / "puzzles.csv"
    grids = zip(*generate(4, np.random.default_rng(0), 20), strict=True)
    path.write_text("puzzle,solution\n" + "".join(f"{grid_to_line(p)},{grid_to_line(s)}\n" for p, s in grids))
    return path


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """Random weights under the names of the peer's file."""
    torch.manual_seed(0)
    path = tmp_path / "peer.safetensors"
    names = DGLSudoku().state_dict().items()
    save_file({name.replace("message", "rrn.rrn_layer.msg_layer"): value for name, value in names}, path)
    return path


def test_extreme_counts_attempts_and_resumes(puzzles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "record.jsonl"
    options = ["--data", str(puzzles), "--limit", "3", "--network", "sudoku", "--steps", "24", "--attempts", "2"]
    main(["extreme", *options, "--timing", "none", "--resume", str(record), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert result["n"] == 3
    assert result["all_attempts"]["accuracy"] >= result["one_attempt"]["accuracy"] > 0
    header, *rows = [json.loads(line) for line in record.read_text().splitlines()]
    assert len(rows) == 3
    assert header["attempts"] == 2
    record.write_text("".join(json.dumps(row) + "\n" for row in (header, *rows * BLOCK)))
    assert run("extreme", [*options, "--timing", "none", "--resume", str(record), "--minutes", "0"])["n"] == 3
    with pytest.raises(InputError, match="other settings"):
        run("extreme", [*options[:-1], "1", "--resume", str(record)])


def test_all_steps_of_all_attempts_count() -> None:
    rows = [
        {"right": True, "attempt": 1, "all_steps": 20, "seconds": 1.0},
        {"right": True, "attempt": 2, "all_steps": 100, "seconds": 1.0},
        {"right": False, "attempt": 2, "all_steps": 128, "seconds": 1.0},
        {"right": True, "attempt": 1, "all_steps": 40, "seconds": 1.0},
    ]
    result = summarise(rows, np.array([0, 10, 30, 20]))
    assert [result["by_all_steps"][t]["accuracy"] for t in ("16", "32", "64", "128")] == [0, 0.25, 0.5, 0.75]
    assert (result["one_attempt"]["accuracy"], result["all_attempts"]["accuracy"]) == (0.5, 0.75)
    assert [band["n"] for band in result["by_guesses"].values()] == [1, 1, 1, 1, 1]


def test_the_interval_is_wilsons() -> None:
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 10)[0] == 0


def test_the_peer_runs_beside_ours(puzzles: Path, weights: Path) -> None:
    options = ["--weights", str(weights), "--timing", "none", "--networks", "dgl", "sudoku"]
    result = run("dgl", ["--data", str(puzzles), *options])
    peer, ours = (result["networks"][name] for name in ("dgl", "sudoku"))
    assert peer["parameters"] == 191_114
    assert peer["puzzles.csv"]["at_step"]["64"]["accuracy"] == 0
    assert ours["puzzles.csv"]["at_step"]["64"]["accuracy"] == 1


def test_the_peers_messages_are_those_of_its_equations() -> None:
    """The sum over 21 senders of an MLP of (h_sender, h_receiver), computed edge by edge."""
    torch.manual_seed(0)
    network, h = DGLSudoku(), torch.randn(81, 96)
    with torch.no_grad():
        cell = 40
        expected = sum(network.message(torch.cat([h[sender], h[cell]])) for sender in [*neighbours()[cell], cell])
        assert torch.allclose(network.messages(h)[cell], expected, atol=1e-4)


def test_an_unknown_problem_is_refused() -> None:
    with pytest.raises(SystemExit, match="no problem 'chess'"):
        main(["chess"])


def test_the_page_has_the_figures_of_the_results() -> None:
    text = PAGE.read_text()
    assert renew(text) == text, "run python -m benchmarks.peers.page"
    assert all(text.count(f"<!-- {name} -->") == text.count(f"<!-- /{name} -->") == 1 for name in TABLES)
    assert sum(not line.startswith("|") for line in text.splitlines()) <= 140, "too long without its tables"
