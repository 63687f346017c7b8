"""Networks out of PyTorch: torch.export and ONNX give what the module gives, on graphs of other sizes too."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from rrn import RRN, InputError, State
from rrn.errors import needs_extra
from rrn.io.export import run_program, start_program, step_program, write_onnx
from rrn.tasks.sudoku import export as sudoku_export
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.grid import candidates_of
from rrn.tasks.weights import from_pretrained

onnxruntime = pytest.importorskip("onnxruntime")
ROOT = Path(__file__).parents[2]
TOLERANCE = {"atol": 1e-4, "rtol": 0.0}


def random_graphs(nodes: int, edges: int, graphs: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch = torch.arange(nodes) * graphs // nodes
    return torch.randn(nodes, 3), torch.randint(nodes, (2, edges)), torch.randn(edges, 2), batch


def run_onnx(path: Path, *inputs: Tensor) -> list[Tensor]:
    session = onnxruntime.InferenceSession(path)
    feed = {given.name: tensor.detach().numpy() for given, tensor in zip(session.get_inputs(), inputs, strict=True)}
    return [torch.from_numpy(output) for output in session.run(None, feed)]


def test_a_step_of_graph_answers_in_onnx_and_torch_export(tmp_path: Path) -> None:
    network = RRN(3, 8, 2, edge_features=2, message_layers=2, readout="graph").eval()
    program = step_program(network, *random_graphs(6, 9, 2))
    write_onnx(program, tmp_path / "step.onnx")
    for shape in [(11, 25, 4), (1, 1, 1)]:
        x, edge_index, edge_attr, batch = random_graphs(*shape)
        _, state = network.step(network.initial_state(x), x, edge_index, edge_attr, batch)
        outputs, after = network.step(state, x, edge_index, edge_attr, batch)
        expected = [outputs, after.h, *after.memory]
        exported = program.module()(
            x=x, edge_index=edge_index, edge_attr=edge_attr, batch=batch, state=(state.h, *state.memory)
        )
        torch.testing.assert_close(list(exported), expected)
        found = run_onnx(tmp_path / "step.onnx", x, edge_index, edge_attr, batch, state.h, *state.memory)
        torch.testing.assert_close(found, expected, **TOLERANCE)


def test_a_run_of_answers_about_edges_in_onnx(tmp_path: Path) -> None:
    network = RRN(3, 8, 2, edge_features=2, readout="edge").eval()
    program = run_program(network, *random_graphs(6, 9, 1)[:3], steps=2)
    write_onnx(program, tmp_path / "run.onnx")
    graph = random_graphs(11, 25, 1)[:3]
    (found,) = run_onnx(tmp_path / "run.onnx", *graph)
    torch.testing.assert_close(found, network(*graph, steps=2).detach(), **TOLERANCE)


def test_a_run_and_a_start_of_the_shortest_paths_example(tmp_path: Path) -> None:
    """The network of examples/shortest_paths.py, on the graphs it is for."""
    from examples.shortest_paths import make_batch

    network = RRN(features=2, hidden=48, outputs=3, update="gru").eval()
    x, edge_index, _ = make_batch(2, (5, 9), torch.Generator().manual_seed(0))
    write_onnx(run_program(network, x, edge_index, steps=3), tmp_path / "run.onnx")
    write_onnx(start_program(network, x), tmp_path / "start.onnx")
    x, edge_index, _ = make_batch(3, (20, 30), torch.Generator().manual_seed(1))
    (found,) = run_onnx(tmp_path / "run.onnx", x, edge_index)
    torch.testing.assert_close(found, network(x, edge_index, steps=3), **TOLERANCE)
    (h,) = run_onnx(tmp_path / "start.onnx", x)
    torch.testing.assert_close(h, network.initial_state(x).h, **TOLERANCE)


def test_sudoku_in_onnx_is_sudoku_in_torch(tmp_path: Path) -> None:
    network = from_pretrained("sudoku")
    puzzles = torch.from_numpy(generate(4, np.random.default_rng(0))[0]).long()
    write_onnx(sudoku_export.run_program(network, 2), tmp_path / "run.onnx")
    with torch.inference_mode():
        outputs, state = network({"puzzle": puzzles}, steps=2)
    (found,) = run_onnx(tmp_path / "run.onnx", puzzles)
    torch.testing.assert_close(found, outputs.view(2, 4, 81, 9), **TOLERANCE)

    write_onnx(sudoku_export.step_program(network), tmp_path / "step.onnx")
    open_ = candidates_of(puzzles)[1]  # the program has a row for every candidate
    parts = [torch.zeros(4, 729, part.shape[1]).masked_scatter(open_[..., None], part) for part in state.parts()]
    with torch.inference_mode():
        outputs, after = network({"puzzle": puzzles}, steps=1, state=state)
    found_outputs, *found_state = run_onnx(tmp_path / "step.onnx", puzzles, *parts)
    torch.testing.assert_close(found_outputs, outputs.view(4, 81, 9), **TOLERANCE)
    for mine, theirs in zip(found_state, after.parts(), strict=True):
        torch.testing.assert_close(mine[open_], theirs, **TOLERANCE)
    _solves_without_torch(tmp_path / "step.onnx", tmp_path)


def _solves_without_torch(step: Path, folder: Path) -> None:
    """examples/sudoku_onnx.py with torch and rrn made impossible to import."""
    for absent in ("torch", "rrn"):
        (folder / f"{absent}.py").write_text("raise ImportError('not installed here')\n")
    easy = "...5.7.2..6...4.7...7.123..3..8...16.25....4.6...297...1...6.....6...192.84.316.7"
    script = ROOT / "examples" / "sudoku_onnx.py"
    done = subprocess.run(
        [sys.executable, "-c", f"import runpy, sys; sys.argv = ['', {str(step)!r}, {easy!r}]; "
         f"sys.path.insert(0, {str(folder)!r}); runpy.run_path({str(script)!r}, run_name='__main__')"],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("4 9 3 5 6 7 8 2 1\n")


def test_scripts_are_as_short_as_they_say() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in (ROOT / "examples").glob("*.py")}
    assert lengths.pop("sudoku_onnx.py") < 60
    assert max(lengths.values()) <= 120, lengths


def test_export_of_an_own_network_by_command(call: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    network = RRN(3, 8, 2, edge_features=2, update="mlp").eval()
    network.save_pretrained(tmp_path / "mine")
    flags = ["--what", "run", "--steps", 1, "--json"]
    code, out, errors = call("export", tmp_path / "mine", "--out", tmp_path / "run.onnx", *flags)
    size = (tmp_path / "run.onnx").stat().st_size
    assert json.loads(out) == {
        "out": str(tmp_path / "run.onnx"), "of": str(tmp_path / "mine"), "what": "run", "bytes": size
    }  # fmt: skip
    assert code == 0, errors
    x, edge_index, edge_attr, _ = random_graphs(7, 12, 1)
    (found,) = run_onnx(tmp_path / "run.onnx", x, edge_index, edge_attr)
    torch.testing.assert_close(found, network(x, edge_index, edge_attr, steps=1), **TOLERANCE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ages"], "no export for the task 'ages'; supported: sudoku"),
        (["sudokku"], "did you mean 'sudoku'"),
        (["sudoku", "--what", "run", "--steps", "0"], "steps: expected at least 1, got 0"),
    ],
)
def test_export_refuses(call: Callable[..., tuple[int, str, str]], arguments: list[str], message: str) -> None:
    code, _, errors = call("export", *arguments)
    assert code == 2
    assert message in errors


def test_missing_packages_are_named_before_any_work(
    call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rrn.io.export.find_spec", lambda package: None)
    code, _, errors = call("export", "sudoku", "--out", "there.onnx")
    assert code == 2
    assert errors == f"rrn: {needs_extra('there.onnx: writing ONNX', 'export')}\n"


def test_an_example_too_small_to_generalise_from_is_refused() -> None:
    with pytest.raises(InputError, match="at least 2 nodes and 2 edges"):
        step_program(RRN(3, 8, 2), torch.randn(1, 3), torch.zeros(2, 1).long())


def test_compile_traces_the_whole_module_and_changes_nothing() -> None:
    network = RRN(3, 8, 2, edge_features=2, message_layers=2, readout="graph")
    compiled = torch.compile(network, backend="eager", fullgraph=True)
    x, edge_index, edge_attr, _ = random_graphs(6, 9, 1)
    torch.testing.assert_close(compiled(x, edge_index, edge_attr, steps=2), network(x, edge_index, edge_attr, steps=2))


@pytest.mark.parametrize("update", ["lstm", "gru", "mlp"])
def test_autocast_runs_forward_and_backward_near_full_precision(update: str) -> None:
    network = RRN(3, 16, 2, edge_features=2, message_layers=2, update=update)
    graph = random_graphs(9, 30, 1)[:3]
    exact = network(*graph, steps=4)
    with torch.autocast("cpu", torch.bfloat16):
        rough = network(*graph, steps=4)
        rough.float().square().sum().backward()
    torch.testing.assert_close(rough.float(), exact, atol=0.05, rtol=0.05)
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


def test_a_state_of_one_network_goes_on_in_another_with_the_same_weights(tmp_path: Path) -> None:
    network = RRN(3, 8, 2).eval()
    network.save_pretrained(tmp_path)
    x, edge_index, _, _ = random_graphs(6, 9, 1)
    first, state = network.run(x, edge_index, steps=2)
    second = RRN.from_pretrained(tmp_path)(x, edge_index, steps=2, state=State(state.h, state.memory))
    torch.testing.assert_close(torch.cat([first, second]), network(x, edge_index, steps=4))
