"""The notebook runs from its first cell to its last, and does what it says."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parent.parent / "examples" / "quickstart.ipynb"


def cells() -> list[dict[str, Any]]:
    return json.loads(NOTEBOOK.read_text())["cells"]


def run(code: str, names: dict[str, Any]) -> Any:
    """Run a cell; what its last line shows."""
    tree = ast.parse(code)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(code, names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.slow
def test_ten_cells_that_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    shown = [run("".join(cell["source"]), names) for cell in cells() if cell["cell_type"] == "code"]
    assert len(cells()) == 10
    assert shown[4] > 0.95
    by_steps = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines() if "steps:" in line]
    assert by_steps[0] < by_steps[1] < by_steps[2]
    assert by_steps[2] > 0.9
    assert "step 5" in shown[6]._repr_mimebundle_()["image/svg+xml"]
    assert list(shown[7]._repr_mimebundle_()) == ["image/png"]


def test_it_is_committed_without_what_a_run_leaves_behind() -> None:
    for cell in cells():
        assert cell["cell_type"] != "code" or (cell["outputs"] == [] and cell["execution_count"] is None)
