"""The locked versions of development and CI: complete, with hashes, without index addresses, under free licences."""

import re
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ENTRY = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)(?P<marker> ;[^\\]*)? \\\n(?P<hashes>(?: {4}--hash=.*\n)+)", re.M
)
FREE = (
    r"MIT(-CMU|-0)?|BSD|0BSD|Apache|PSF|Python Software Foundation|ISC|MPL|Mozilla Public License|Zlib|CC0-1\.0|"
    r"BSL-1\.0|3-Clause BSD"
)
"""Licences that allow use with MIT-licensed code. MPL concerns changes of its own files only."""


def required(extra: str | None = None) -> list[Requirement]:
    """The requirements of the package, or of an extra, with those of the extras that it names."""
    project = PROJECT["project"]
    lines = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    found = []
    for requirement in map(Requirement, lines):
        if requirement.name == project["name"]:
            found += [part for name in requirement.extras for part in required(name)]
        else:
            found.append(requirement)
    return found


def licence(package: Distribution) -> str:
    """What the package declares: an SPDX expression, else classifiers, else the first line of free text."""
    about = package.metadata
    classifiers = [line.split(" :: ")[-1] for line in about.get_all("Classifier") or [] if line.startswith("License")]
    return (
        about.get("License-Expression") or " AND ".join(classifiers) or (about.get("License") or "").partition("\n")[0]
    )


def is_free(text: str) -> bool:
    """Whether all of the licences are free, or one of the alternatives is."""
    if re.search(r"\bOR\b", text):
        return any(map(is_free, re.split(r"\s+OR\s+", text.strip("()"))))
    return bool(text) and all(re.match(FREE, part.strip("() ")) for part in re.split(r"\s+AND\s+", text))


def locked() -> dict[str, re.Match[str]]:
    return {canonicalize_name(entry["name"]): entry for entry in ENTRY.finditer(LOCK)}


def test_every_requirement_is_locked_within_its_range() -> None:
    versions, exempt = locked(), {"torch"}  # pinned in constraints.txt: the hash depends on the build
    for requirement in [*required(), *required("dev")]:
        name = canonicalize_name(requirement.name)
        if name not in exempt:
            assert name in versions, f"{name}: run make lock"
            assert requirement.specifier.contains(versions[name]["version"], prereleases=True), name
    assert re.search(r"^torch==", (ROOT / "constraints.txt").read_text(), re.M)


def test_every_line_is_an_entry_with_hashes_or_a_comment() -> None:
    rest = [line for line in ENTRY.sub("", LOCK).splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert rest == []
    assert "://" not in LOCK
    assert len(locked()) > 100


def test_setup_and_ci_install_the_lock() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert "--require-hashes --no-deps --requirement requirements.lock" in makefile
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_every_licence_is_free() -> None:
    found = {}
    for name in ("torch", *locked()):
        try:
            found[name] = licence(distribution(name))
        except PackageNotFoundError:  # for another system
            continue
    assert {name: text for name, text in found.items() if not is_free(text)} == {}
    assert len(found) > 100


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("MIT", True),
        ("BSD-3-Clause AND MIT", True),
        ("GPL-3.0-or-later OR MIT", True),
        ("MIT AND AGPL-3.0-only", False),
        ("GNU General Public License v3 (GPLv3)", False),
        ("Other/Proprietary License", False),
        ("", False),
    ],
)
def test_the_audit_finds_what_is_wrong(text: str, free: bool) -> None:
    assert is_free(text) == free
