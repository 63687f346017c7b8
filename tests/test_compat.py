"""Private APIs of other libraries: only `rrn._compat` uses them, and nothing depends on their presence."""

import ast
import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import rrn._compat

SOURCE = Path(rrn._compat.__file__).parent
STANDARD = ("_exit", "_replace", "_asdict")
"""Names with an underscore that Python documents."""

# Run in one new process: for each API, hide it while the package is imported, and print what the package computes.
WORK = """
import ctypes, json, sys, tempfile, threading
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest import mock

import lightning_fabric, numba, torch, uvicorn


@contextmanager
def without(owner, name):
    if not hasattr(owner, name):  # this version of the library never had it
        yield
        return
    real = getattr(owner, name)
    delattr(owner, name)
    try:
        yield
    finally:
        setattr(owner, name, real)


@contextmanager
def without_module(name):
    real = sys.modules.get(name)
    sys.modules[name] = None
    try:
        yield
    finally:
        del sys.modules[name]
        if real is not None:
            sys.modules[name] = real


def without_c_function(name):
    real = ctypes.CDLL

    class Library:
        def __init__(self, *arguments, **options):
            self.__dict__["library"] = real(*arguments, **options)

        def __getattr__(self, asked):
            if asked == name:
                raise AttributeError(asked)
            return getattr(self.library, asked)

    return mock.patch("ctypes.CDLL", Library)


HIDDEN = {
    "nothing": nullcontext(),
    "numba": without_module("numba"),
    "compilation": mock.patch("numba.config.DISABLE_JIT", 1),
    "torch.func's transforms": without(torch._C, "_are_functorch_transforms_active"),
    "dispatch modes": without(torch._C, "_len_torch_dispatch_stack"),
    "saved-tensor hooks": without(torch._C._autograd, "_top_saved_tensors_default_hooks"),
    "_foreach_lerp_": without(torch, "_foreach_lerp_"),
    "OpenMP": without_c_function("GOMP_parallel"),
    "renameat2": without_c_function("renameat2"),
    "mallopt": without_c_function("mallopt"),
    "uvicorn's protocol": without_module("uvicorn.protocols.http.h11_impl"),
}


def compute():
    from rrn import RRN, EdgeList, NeighbourTable
    from rrn.graphs import Groups
    from rrn.nn.messages import GroupMessage
    from rrn.nn.readouts import DotReadout
    from rrn.nn.updates import SharedLayerUpdate
    from rrn.training.loop import Average

    torch.manual_seed(0)
    edges, table = EdgeList(torch.randint(40, (2, 300)), 40), NeighbourTable.repeat(torch.randint(10, (10, 60)), 40)
    groups = Groups(torch.randint(4, (9, 3)), (4, 4, 4))
    parts = {"message": GroupMessage(3, 4), "update": SharedLayerUpdate(6, 12, 20), "readout": DotReadout(6)}
    cases = {
        "edges": (RRN(3, 32, 2).double(), torch.randn(40, 3).double(), edges),
        "chunked": (RRN(3, 32, 2, message_layers=2).double(), torch.randn(400, 3).double(), table),
        "many rows": (RRN(3, 32, 2), torch.randn(600, 3), EdgeList(torch.randint(600, (2, 900)), 600)),
        "groups": (RRN(1, 12, encoder_layers=None, **parts), torch.ones(9, 1), groups),
    }
    values = {}
    for name, (network, x, graph) in cases.items():
        for checkpoint in (None, 2):
            network.zero_grad()
            outputs = network(x, graph, steps=3, checkpoint=checkpoint)
            outputs.square().sum().backward()
            gradients = [float(parameter.grad.norm()) for parameter in network.parameters()]
            values[f"{name} {checkpoint}"] = [float(outputs.detach().norm()), *gradients]
        parameters = {key: value.detach() for key, value in network.named_parameters()}

        def loss(given):
            return torch.func.functional_call(network, given, (x, graph), {"steps": 2}).square().sum()

        values[f"{name} torch.func"] = [float(g.norm()) for g in torch.func.grad(loss)(parameters).values()]
        average = Average(network, 0.9)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter += 1
        average.follow(network, 100)
        values[f"{name} average"] = [float(parameter.norm()) for parameter in average.network.parameters()]
    return values


def exchange():
    from rrn.io.files import replacing_folder

    with tempfile.TemporaryDirectory() as folder:
        for content in ("old", "new"):
            with replacing_folder(Path(folder) / "best") as made:
                (made / content).touch()
        return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*"))


torch.set_num_threads(2)
found = {}
for name, hidden in HIDDEN.items():
    for module in [module for module in sys.modules if module.split(".")[0] == "rrn"]:
        del sys.modules[module]
    with hidden:
        import rrn._compat
        import rrn.network
        import rrn.training.loop
        import rrn.web.server

        rrn.network.SMALL = 0
        folders = exchange()
        rrn._compat.keep_freed_memory()
    found[name] = {"folders": folders, "has": rrn._compat.COMPILED, "values": compute()}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-c", WORK]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "name",
    [
        "numba",
        "compilation",
        "torch.func's transforms",
        "dispatch modes",
        "saved-tensor hooks",
        "_foreach_lerp_",
        "OpenMP",
        "renameat2",
        "mallopt",
        "uvicorn's protocol",
    ],
)
def test_values_are_the_same_without(name: str, found: dict[str, Any]) -> None:
    assert found["nothing"]["folders"] == found[name]["folders"] == ["best", "best/new"]
    assert found[name]["has"] == (found["nothing"]["has"] and name not in ("numba", "compilation"))
    for key, values in found["nothing"]["values"].items():
        precision = 1e-4 if key.startswith(("groups", "many rows")) else 1e-9
        assert found[name]["values"][key] == pytest.approx(values, rel=precision, abs=1e-7), key


def test_the_package_imports_with_compilation_disabled() -> None:
    work = "from rrn.tasks.sudoku.exact import bitboards; from rrn._compat import COMPILED; print(COMPILED)"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout == "False\n", done.stderr


def test_lightnings_observer_is_stopped_and_may_be_absent() -> None:
    from rrn._compat import stop_lightning_observer

    stop_lightning_observer()
    ended = threading.Event()
    thread = threading.Thread(name="child-process-observer", daemon=True, target=ended.wait)
    thread.start()
    stop_lightning_observer()
    thread._run = lambda: False  # type: ignore[attr-defined]
    stop_lightning_observer()
    assert thread._run()  # type: ignore[attr-defined]
    ended.set()


def private_uses(path: Path) -> Iterator[str]:
    """Private attributes of imported packages, private imports, and ctypes, in one file."""
    tree = ast.parse(path.read_text())
    foreign = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            for alias in node.names:
                full = f"{module}.{alias.name}".strip(".")
                if not full.startswith("rrn"):
                    foreign.add((alias.asname or alias.name).split(".")[0])
                    parts = full.split(".")
                    if "ctypes" in parts or any(p.startswith("_") and not p.startswith("__") for p in parts):
                        yield f"{path.name}:{node.lineno} imports {full}"
                    if full.startswith(("numba", "uvicorn.protocols")):
                        yield f"{path.name}:{node.lineno} imports {full}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            root = node.value
            while isinstance(root, ast.Attribute | ast.Call):
                root = root.value if isinstance(root, ast.Attribute) else root.func
            inside = node.attr in ("_cache", "_run", "_C")
            if (inside or (isinstance(root, ast.Name) and root.id in foreign)) and node.attr not in STANDARD:
                own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                if not own:
                    yield f"{path.name}:{node.lineno} uses {ast.unparse(node)}"


def test_no_other_file_uses_private_apis() -> None:
    assert list(private_uses(Path(rrn._compat.__file__)))
    others = [path for path in SOURCE.rglob("*.py") if path.name != "_compat.py"]
    assert [use for path in others for use in private_uses(path)] == []


def test_every_private_attribute_is_defined_in_the_package() -> None:
    """Else it is one of another library, on an object of it."""
    trees = {path: ast.parse(path.read_text()) for path in SOURCE.rglob("*.py") if path.name != "_compat.py"}
    nodes = [(path, node) for path, tree in trees.items() for node in ast.walk(tree)]
    defined = {
        node.name for _, node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    defined |= {node.id for _, node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    attributes = [
        (path, node)
        for path, node in nodes
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
    ]
    defined |= {node.attr for _, node in attributes if isinstance(node.ctx, ast.Store)}
    unknown = [(path.name, node.attr) for path, node in attributes if node.attr not in {*defined, *STANDARD}]
    assert unknown == []


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "counting.py"
    path.write_text(
        "from rrn._compat import compiled\n\n\n@compiled\ndef count_bits(bits):\n    count = 0\n    while bits:\n"
        "        bits &= bits - 1\n        count += 1\n    return count\n"
    )
    return path


needs_numba = pytest.mark.skipif(not rrn._compat.COMPILED, reason="numba is not installed")


@needs_numba
def test_functions_compile_without_a_folder_for_the_cache(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rrn._compat._FunctionCache._impl_class, "_locator_classes", ())
    assert load("uncached", source).count_bits(0b1011) == 3


@needs_numba
def test_numbas_own_cache_is_used_if_its_classes_are_unknown(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caching = pytest.importorskip("numba.core.caching")
    with monkeypatch.context() as hidden:
        hidden.delattr(caching, "CompileResultCacheImpl")
        assert rrn._compat._make_function_cache() is None
    monkeypatch.setattr(rrn._compat, "_FunctionCache", None)
    assert load("cached", source).count_bits(0b1011) == 3
    assert list(source.parent.rglob("*.nbi"))


@needs_numba
def test_the_cache_is_in_a_folder_of_this_user_alone(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the package is installed where this user cannot write."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "platform", "linux")
    folder = rrn._compat._cache_folder()
    assert folder == tmp_path / "cache" / "rrn" / "numba"
    assert folder.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(rrn._compat, "_FOLDER", folder)
    assert load("cached", source).count_bits(0b1011) == 3
    assert {path.suffix for path in folder.rglob("*.nb*")} == {".nbi", ".nbc"}
    folder.chmod(0o777)
    assert rrn._compat._cache_folder() is None


@needs_numba
def test_damaged_cache_files_are_compiled_again(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rrn._compat, "_FOLDER", tmp_path / "cache")
    assert load("cached", source).count_bits(0b1011) == 3
    files = [path for path in (tmp_path / "cache").rglob("*.nb*") if path.is_file()]
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    for damaged in files:
        damaged.write_bytes(b"not what it was")
    assert load("cached", source).count_bits(0b10111) == 4
    again = load("cached", source)
    assert again.count_bits(0b1) == 1
    assert sum(again.count_bits.stats.cache_hits.values()) == 1


def test_without_numba_a_function_is_not_wrapped(source: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "numba", None)
        plain = load("plain_compiled", Path(rrn._compat.__file__))
        patch.setitem(sys.modules, "rrn._compat", plain)
        module = load("plain_counting", source)
    assert not plain.COMPILED
    assert type(module.count_bits) is type(load)
    assert module.count_bits(0b1011) == 3
