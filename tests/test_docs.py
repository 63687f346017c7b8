"""Every block of Python in README.md and docs/ runs, and every command in them exists."""

import gzip
import hashlib
import inspect
import re
import shlex
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import rrn.constraints
import rrn.estimators
import rrn.inference
import rrn.viewing
from rrn.cli import COMMANDS, main
from rrn.tasks import presets
from rrn.tasks.visual_sudoku.data import read_digits

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, *languages: str) -> list[tuple[int, str]]:
    """The line on which each block begins, and its text."""
    text = page.read_text()
    return [(text[: m.start(2)].count("\n"), m[2]) for m in BLOCK.finditer(text) if m[1] in languages]


def commands(page: Path) -> list[str]:
    lines = [
        line.removeprefix("$ ").removeprefix(".venv/bin/")
        for _, block in blocks(page, "", "console")
        for line in block.splitlines()
    ]
    return [line.split("  #")[0].strip() for line in lines if re.match(r"(rrn|make|python) ", line)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: str(page.relative_to(ROOT))
)
def test_python_in_the_docs_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From top to bottom, as one program; errors name the line of the page."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__docs__"}
    for line, code in blocks(page, "python"):
        exec(compile("\n" * line + code, str(page), "exec"), names)


def test_every_public_name_has_an_example() -> None:
    """In a block of the reference, which `test_python_in_the_docs_runs` runs."""
    used = "\n".join(code for page in (ROOT / "docs" / "api").glob("*.md") for _, code in blocks(page, "python"))
    names = {name for name in rrn.__all__ if not inspect.ismodule(getattr(rrn, name))} - {"__version__"}
    for package in (rrn.constraints, rrn.inference, rrn.viewing, rrn.estimators):
        names |= set(package.__all__)
    lines = [line for line in used.splitlines() if not re.match(r"(from|import) ", line)]
    assert not {name for name in names if not re.search(rf"\b{name}\b", "\n".join(lines))}


LINK = re.compile(r"\]\(([^)\s]+)\)")


def links(page: Path) -> list[str]:
    """The targets of a page's links and pictures that are not on the web."""
    prose = BLOCK.sub("", page.read_text())
    return [target for target in LINK.findall(prose) if not target.startswith(("http:", "https:", "mailto:"))]


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    titles = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in links(page):
        file, _, anchor = target.partition("#")
        path = page.parent / file if file else page
        assert path.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in headings(path), f"{page.name} links to {target}"


def test_every_page_and_picture_is_linked() -> None:
    linked = {(page.parent / target.partition("#")[0]).resolve() for page in PAGES for target in links(page)}
    files = {file for ending in ("md", "png", "gif", "svg") for file in (ROOT / "docs").rglob(f"*.{ending}")}
    assert not {file.name for file in files if file.resolve() not in linked}
    navigation = (ROOT / "mkdocs.yml").read_text()
    assert not {page.name for page in PAGES[1:] if str(page.relative_to(ROOT / "docs")) not in navigation}
    gallery = (ROOT / "docs" / "gallery.md").read_text()
    assert not {file.name for file in files if file.suffix != ".md" and file.name not in gallery}


def test_the_file_of_the_constraints_page_is_solved_as_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = ROOT / "docs" / "constraints.md"
    test_python_in_the_docs_runs(page, tmp_path, monkeypatch)
    ((_, problem),) = blocks(page, "json")
    (command,) = commands(page)
    (refusal,) = re.findall(r"`(problem\.json: [^`]+)`", page.read_text())
    file = tmp_path / shlex.split(command)[2]
    file.write_text(problem)
    capsys.readouterr()
    assert main(shlex.split(command)[1:]) == 0
    out, _ = capsys.readouterr()
    assert {"a is 1", "b is 2", "c is 2", "d is 1"} == {line.strip() for line in out.splitlines() if " is " in line}
    file.write_text(problem.replace('["b is 1", "b is 2"]', '["b is 1", "b is 3"]'))
    assert main(shlex.split(command)[1:]) == 2
    assert " ".join(refusal.split()) in " ".join(capsys.readouterr().err.split())


SHOWN = re.compile(r"^```console\n\$ (rrn [^\n]+)\n```\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
TYPED = [(page, *match) for page in PAGES for match in SHOWN.findall(page.read_text())]
PERCENT = re.compile(r"\d+\.\d%")


def same_line(shown: str, printed: str) -> bool:
    """Spaces aside; percentages may differ by one point, as other processors round differently."""
    texts = [PERCENT.sub("%", " ".join(line.split())) for line in (shown, printed)]
    percentages = [[float(number[:-1]) for number in PERCENT.findall(line)] for line in (shown, printed)]
    return texts[0] == texts[1] and all(abs(a - b) <= 1 for a, b in zip(*percentages, strict=True))


@pytest.mark.parametrize(("page", "command", "shown"), TYPED, ids=[page.stem for page, *_ in TYPED])
def test_a_command_prints_what_its_page_shows(
    page: Path, command: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its lines in order; … stands for lines left out."""
    monkeypatch.setenv("COLUMNS", "120")
    assert main(shlex.split(command)[1:]) == 0
    printed = iter(capsys.readouterr().out.splitlines())
    for line in shown.splitlines():
        assert line.strip() == "…" or any(same_line(line, other) for other in printed), line


def test_the_guide_prints_the_stages_that_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    page = ROOT / "docs" / "training.md"
    ((_, code),) = blocks(page, "python")
    exec(code, {})
    for line in capsys.readouterr().out.splitlines():
        assert f"# {line}\n" in code


def component_parity(nodes: int, generator: torch.Generator) -> tuple[tuple[Tensor, Tensor], list[str]]:
    """Whether the component of each node has an odd number of nodes: a problem that is not in the docs."""
    pairs = torch.randint(nodes, (2, nodes // 2 + 1), generator=generator)
    pairs = pairs[:, pairs[0] != pairs[1]]
    component = torch.eye(nodes, dtype=torch.bool)
    component[pairs[0], pairs[1]] = component[pairs[1], pairs[0]] = True
    for _ in range(3):
        component = component.float() @ component.float() > 0
    odd = ["yes" if size % 2 else "no" for size in component.sum(1).tolist()]
    return (torch.ones(nodes, 1), torch.cat([pairs, pairs.flip(0)], dim=1)), odd


@pytest.mark.slow
def test_the_loop_of_the_guide_learns_a_problem_that_is_not_in_it() -> None:
    """With a gradient as it comes, and three times the rate, some runs collapse on the way (docs/LOG.md)."""
    page = ROOT / "docs" / "your-own-graph.md"
    (loop,) = [code for _, code in blocks(page, "python") if "for update in range(150):" in code]
    assert "clip_grad_norm_" in loop
    generator = torch.Generator().manual_seed(0)
    problems = [component_parity(6, generator) for _ in range(1200)]
    graphs, labels = ([problem[part] for problem in problems] for part in (0, 1))
    loop = loop.replace("range(150)", "range(200)").replace("250", "1000").replace("steps=16", "steps=8")
    exec(loop, {"torch": torch, "generator": generator, "graphs": graphs, "labels": labels})


@pytest.mark.parametrize(
    "page", [page for page in PAGES if commands(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_commands_in_the_docs_exist(page: Path) -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in commands(page):
        program, first, *rest = shlex.split(command)
        if program == "rrn":
            assert first in COMMANDS or first.startswith("-"), command
            if first in ("train", "evaluate"):
                assert rest[0] in presets(), command
        elif program == "make":
            assert first in targets, command
        elif first == "-m":
            module = ROOT / rest[0].replace(".", "/")
            assert module.is_dir() or module.with_suffix(".py").exists() or rest[0] in ("pip", "venv"), command
        else:
            assert (ROOT / first).is_file(), command


def test_every_public_data_set_has_a_link_and_a_file() -> None:
    rows = [line.split("|")[1:-1] for line in (ROOT / "docs" / "data.md").read_text().splitlines() if "](http" in line]
    named = [row[0].strip() for row in rows]
    for name in ("17 givens", "Sudoku-Extreme", "hardest known", "bAbI", "MNIST", "Maze-Unique", "SALSA-CLRS"):
        assert any(name in each for each in named), name
    assert all(len(row) == 4 and row[2].strip() for row in rows)


def test_mnist_is_converted_as_the_page_says(tmp_path: Path) -> None:
    """With files of the form of MNIST's: a header, then the pixels or the labels of 300 and 100 images."""
    rng, images, labels = np.random.default_rng(0), [], []
    for part, count in (("train", 300), ("t10k", 100)):
        images.append(rng.integers(0, 256, (count, 28, 28), dtype=np.uint8))
        labels.append((np.arange(count) % 10).astype(np.uint8))
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(16) + images[-1].tobytes()))
        (tmp_path / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes(8) + labels[-1].tobytes()))
    ((_, code),) = blocks(ROOT / "docs" / "data.md", "python")
    names: dict[str, Any] = {}
    exec(code, names)
    names["convert_mnist"](tmp_path, tmp_path / "mnist.npz")
    digits, every = read_digits(tmp_path / "mnist.npz"), np.concatenate(labels)
    np.testing.assert_array_equal(digits.images, np.concatenate(images)[every > 0])
    np.testing.assert_array_equal(digits.labels, every[every > 0])


def test_checksums_of_public_files_are_those_of_the_page() -> None:
    archive = ROOT.parent / "shared" / "data" / "babi" / "en-valid-10k-train-valid.tar.gz"
    if not archive.is_file():
        pytest.skip(f"{archive} is not here")
    page = (ROOT / "docs" / "data.md").read_text()
    named = dict(re.findall(r"^\| `(en-valid-10k/\S+)` \| `([0-9a-f]{16})` \|$", page, re.MULTILINE))
    assert len(named) == 2
    with tarfile.open(archive) as tar:
        for name, begins in named.items():
            file = tar.extractfile(next(each for each in tar.getnames() if each.endswith(name)))
            assert file is not None
            assert hashlib.sha256(file.read()).hexdigest().startswith(begins), name


def test_the_guide_says_how_to_use_tensorboard() -> None:
    guide = (ROOT / "docs" / "training.md").read_text()
    assert "rrn train ages --tensorboard" in commands(ROOT / "docs" / "training.md")
    assert "tensorboard --logdir runs" in guide
    assert "`train`" in guide, "the extra that has it"


def test_the_guide_shows_what_the_examples_reached() -> None:
    """No placeholder is left, and every example is listed."""
    guide = (ROOT / "docs" / "your-own-graph.md").read_text()
    for example in (ROOT / "examples").glob("[!_]*.py"):
        assert f"`examples/{example.name}`" in guide, example.name
    assert not re.findall(r"\| [A-Z]{4,} \|", guide)
