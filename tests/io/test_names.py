"""One rule for names of weights: shipped weights first, then a folder, whatever it is called, in every command."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import rrn
from rrn import RRN, RRNRegressor
from rrn.constraints import Constraints, Solver
from rrn.inference.candidates import make_network

Call = Callable[..., tuple[int, str, str]]
PROBLEM = {"candidates": ["a", "b"], "exactly_one": {"pair": [["a", "b"]]}, "excluded": ["a"]}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("problem.json").write_text(json.dumps(PROBLEM))


def test_a_network_saved_as_np_loads_as_np() -> None:
    RRN(2, 4, 1).save_pretrained("np")
    for loaded in (rrn.from_pretrained("np"), RRN.from_pretrained("np"), RRN.from_pretrained(Path("np"))):
        assert loaded.hidden == 4


def test_a_preset_saved_as_np_loads_as_np(call: Call, tiny_ages_run: Path) -> None:
    shutil.copytree(tiny_ages_run / "best", "np")
    code, out, _ = call("evaluate", "ages", "--weights", "np", "--limit", 20, "--json")
    assert (code, json.loads(out)["n"]) == (0, 20)
    code, _, _ = call("ask", "ages", "Ann is 3. Bob is 2 years older than Ann. How old is Bob?", "--weights", "np")
    assert code == 0


def test_an_estimator_saved_as_np_loads_as_np() -> None:
    graphs = [(np.ones((2, 1), np.float32), np.array([[0, 1], [1, 0]]))] * 4
    estimator = RRNRegressor(hidden=4, epochs=1, validation_fraction=0, progress=False).fit(graphs, [1.0, 2.0] * 2)
    estimator.save("np")
    assert (RRNRegressor.load("np").predict(graphs) == estimator.predict(graphs)).all()


def test_a_solver_saved_as_np_loads_as_np(call: Call) -> None:
    Solver(make_network(1), ("pair",)).save("np")
    pair = Constraints(["a", "b"], exactly={"pair": [["a", "b"]]})
    assert Solver.load("np").solve(pair.problem(excluded=["a"])).answers == [["b"]]
    code, out, _ = call("solve", "problem.json", "--weights", "np")
    assert (code, out.splitlines()[0]) == (0, "b")


def test_a_folder_of_a_solver_does_not_hide_shipped_weights_of_its_name(call: Call) -> None:
    Solver(make_network(1), ("pair",)).save("sudoku")
    code, _, err = call("solve", "problem.json", "--weights", "sudoku")
    assert code == 2
    assert "Train a network for these group types" in err, "the shipped network has other group types"
    code, out, _ = call("solve", "problem.json", "--weights", "./sudoku")
    assert (code, out.splitlines()[0]) == (0, "b")
