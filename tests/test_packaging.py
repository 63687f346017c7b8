"""The package under its name: what is built, what is in it, and that nothing tells a user to install another one."""

import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import rrn
from rrn.errors import DISTRIBUTION, command, needs_extra

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TEXTS = ("*.md", "*.py", "*.toml", "*.yml", "*.yaml", "*.cff", "*.html", "*.js", "Makefile", "run")
FOLDERS = ("src", "docs", "examples", "benchmarks", "static_site", "results", ".ci")
PUZZLE = "12.4567894567891.378912345623456789156789123489123456734567891267891234591234567."


def texts() -> list[Path]:
    """What a user may read: documents, source with its hints, and the page."""
    found = [path for pattern in TEXTS for path in ROOT.glob(pattern)]
    found += [path for folder in FOLDERS for pattern in TEXTS for path in (ROOT / folder).rglob(pattern)]
    return [path for path in found if path.is_file()]


def others_named(text: str) -> list[str]:
    """What a text tells to install that is neither this package, with extras that exist, nor this checkout."""
    extras = set(PROJECT["optional-dependencies"])
    wrong = re.findall(r"(?<![\w.-])rrn\[[\w,]+\]", text)
    for arguments in re.findall(r"\bpip3? install ((?:'[^']*'|[^\s`\"')#;,]+|[ \t])+)", text):
        words = [word.strip("'\"") for word in arguments.split()]
        after_option = {words[i + 1] for i, word in enumerate(words[:-1]) if word in ("-c", "--constraint")}
        for word in words:
            if word.startswith(("-", "$", "{")) or word in after_option:
                continue
            named = re.fullmatch(rf"(?:{DISTRIBUTION}|\.|dist/torch_rrn-\S+\.whl)(?:\[([\w,]+)\])?", word)
            if not named or not set((named[1] or "").split(",")) - {""} <= extras:
                wrong.append(word)
    return wrong


def test_no_text_names_a_package_that_is_not_ours() -> None:
    assert PROJECT["name"] == DISTRIBUTION != "rrn"
    wrong = {str(path.relative_to(ROOT)): found for path in texts() if (found := others_named(path.read_text()))}
    assert wrong == {}
    assert len(texts()) > 100


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("pip install rrn", ["rrn"]),
        ("`pip install 'rrn[figures]'`", ["rrn[figures]", "rrn[figures]"]),
        ("$ pip install scikit-learn  # for it", ["scikit-learn"]),
        ("pip install 'torch-rrn[pictures]'", ["torch-rrn[pictures]"]),
        ("pip install -c constraints.txt '.[graphs,export]'      # both", []),
        ("pip install 'torch-rrn[figures]' and more", ["and", "more"]),
        ("from `pip install` to a network", []),
        ("see docs/rrn and torch-rrn[web]", []),
    ],
)
def test_the_search_finds_what_is_wrong(text: str, named: list[str]) -> None:
    assert others_named(text) == named


def test_hints_name_the_extra_and_a_pip_that_is_there() -> None:
    said = str(needs_extra("drawing", "figures"))
    found = re.fullmatch(rf"drawing needs the extra 'figures': (\S.*) install '{DISTRIBUTION}\[figures\]'", said)
    assert found, said
    subprocess.run([*found[1].split(), "--version"], check=True, capture_output=True)
    for extra in re.findall(r"needs_extra\(.*\"(\w+)\"\)", "".join(path.read_text() for path in texts())):
        assert extra in PROJECT["optional-dependencies"]


def test_commands_are_shown_by_name_where_that_finds_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "env" / "bin" / "rrn"
    script.parent.mkdir(parents=True)
    script.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    monkeypatch.setenv("PATH", "/nowhere")
    assert command("rrn") == str(script)
    monkeypatch.chdir(tmp_path)
    assert command("rrn") == "env/bin/rrn"
    monkeypatch.setenv("PATH", str(script.parent))
    assert command("rrn") == "rrn"
    assert command("pip") == "env/bin/python -m pip"


def test_one_version_everywhere() -> None:
    assert f"\nversion: {rrn.__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT, check=True)
    return {path.name.removeprefix(f"torch_rrn-{rrn.__version__}"): path for path in folder.iterdir()}


def test_wheel_and_sdist_hold_the_package_its_weights_and_the_page(built: dict[str, Path]) -> None:
    package = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "rrn").rglob("*")}
    package = {name for name in package if (ROOT / "src" / name).is_file() and "__pycache__" not in name}
    assert {"rrn/weights/sudoku/model.safetensors", "rrn/web/static/index.html", "rrn/py.typed"} <= package
    with zipfile.ZipFile(built["-py3-none-any.whl"]) as wheel:
        inside = set(wheel.namelist())
    assert {name for name in inside if name.startswith("rrn/")} == package
    with tarfile.open(built[".tar.gz"]) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames()}
    assert {f"src/{name}" for name in package} <= names
    assert {"README.md", "Makefile", "constraints.txt", "pyproject.toml", "LICENSE"} <= names


@pytest.mark.parametrize("kind", ["-py3-none-any.whl", ".tar.gz"])
def test_it_installs_into_an_empty_environment(
    kind: str, built: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dependencies are lent by this environment, without its own ``rrn``, so that no package index is needed."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    venv.create("env")
    python, script = tmp_path / "env" / "bin" / "python", tmp_path / "env" / "bin" / "rrn"

    def ran(*words: str | Path) -> str:
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    site = Path(ran(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"))
    (site / "lent.pth").write_text(sysconfig.get_path("purelib"))
    flags = ["--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation"]
    ran(sys.executable, "-m", "pip", "--python", python, "install", *flags, built[kind])
    assert Path(ran(python, "-c", "import rrn; print(rrn.__file__)")).is_relative_to(site)
    assert ran(script, "--version") == f"rrn {rrn.__version__}"
    if kind.endswith("whl"):
        assert '"valid": true' in ran(script, "solve", PUZZLE, "--json")


def test_the_workflow_of_github_calls_what_ci_calls() -> None:
    """On Linux .ci/run itself; elsewhere the test command of the Makefile, without the browser tests."""
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]
    commands = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    assert commands["linux"] == ["bash .ci/run"]
    makefile = (ROOT / "Makefile").read_text()
    tests = re.search(r"-m (pytest [^\n]+)", makefile)
    assert tests
    assert commands["others"][-1] == f"python -m {tests[1]} --ignore tests/web"
    versions = [
        f"Programming Language :: Python :: {version}" for version in jobs["linux"]["strategy"]["matrix"]["python"]
    ]
    assert versions == [
        name for name in PROJECT["classifiers"] if name.startswith("Programming Language :: Python :: 3.")
    ]
