"""The static site: the page as files that run the networks in the browser. ``make site`` builds it.

It has the panels of ``rrn serve``. ``local/backend.js`` replaces ``backend.js``: it runs ONNX exports of the networks
with onnxruntime-web. That package is downloaded from npm once and verified by its hash. Visitors load files of the
site only.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from rrn.errors import InputError
from rrn.io.export import write_onnx
from rrn.io.files import replacing_folder
from rrn.tasks.babi import vocabulary
from rrn.tasks.evaluation import ACCURACY
from rrn.tasks.pretty_clevr import data as clevr
from rrn.tasks.pretty_clevr.figures import PALETTE, outline
from rrn.tasks.pretty_clevr.predict import scene_of
from rrn.tasks.weights import from_pretrained
from rrn.web.app import STATIC
from rrn.web.panels import PANELS, ages, babi, panel_info, sudoku
from static_site.networks import PROGRAMS

LOCAL = Path(__file__).parent / "local"
RUNTIME = "onnxruntime-web"
VERSION = "1.30.0"
SHA512 = (
    "ab4cbe26baedba45d2cec05610c71c55fa97db92d19a8b171c5f8269126683ca"
    "590a5cdc57bb2f35ce2b298de32f4d956fb42644c0ecd528a0a91e025c07ca61"
)
RUNTIME_FILES = ("dist/ort.wasm.bundle.min.mjs", "dist/ort-wasm-simd-threaded.wasm", "README.md")
SERVER_FILES = ("backend.js", "reference.html", "reference.js")
POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; object-src 'none'; base-uri 'none'; form-action 'none'"
)
SCENES = 1_000
STORIES = 50
"""Stories of each bAbI task."""


@dataclass(frozen=True)
class Options:
    out: Path = Path("build/site")
    """The folder to write; an existing one is replaced."""
    downloads: Path = Path("build/npm")
    """Folder of the package from npm; it is downloaded once."""


def main(arguments: list[str] | None = None) -> int:
    options = tyro.cli(
        Options, args=arguments, prog="python -m static_site.build", description="Build the static page."
    )
    try:
        build(options.out, options.downloads)
    except InputError as error:
        print(f"rrn: {error}", file=sys.stderr)
        return 2
    size = sum(path.stat().st_size for path in options.out.rglob("*") if path.is_file()) / 1e6
    print(f"written: {options.out} ({size:.0f} MB); try it with: python3 -m http.server -d {options.out}")
    return 0


def build(out: Path, downloads: Path) -> None:
    """Write the site to a folder; after an error the folder is unchanged."""
    runtime = fetch_runtime(downloads)
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing_folder(out) as part:
        _write(part, runtime)


def _write(part: Path, runtime: Path) -> None:
    shutil.copytree(STATIC, part, ignore=shutil.ignore_patterns(*SERVER_FILES), dirs_exist_ok=True)
    shutil.copytree(LOCAL, part / "local", ignore=shutil.ignore_patterns("backend.js"))
    shutil.copy(LOCAL / "backend.js", part / "backend.js")
    _set_policy(part / "index.html")
    _unpack(runtime, part / "ort")
    (part / "networks").mkdir()
    panels = []
    for name, panel in PANELS.items():
        network = from_pretrained(panel.weights)
        preset = network.preset
        print(f"exporting {name} …", file=sys.stderr, flush=True)
        outputs = ["outputs", "next_state_0", "next_state_1"] if name == "sudoku" else ["outputs"]
        write_onnx(PROGRAMS[name](network, preset.steps), part / "networks" / f"{name}.onnx", outputs)
        panels.append(panel_info(name, network, preset.steps, ACCURACY[name]).model_dump())
    for name, content in {"panels": panels, **_data()}.items():
        path = part / "data" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content, separators=(",", ":")))


def fetch_runtime(downloads: Path) -> Path:
    """The path of the package from npm: downloaded if missing, verified by its hash."""
    archive = downloads / f"{RUNTIME}-{VERSION}.tgz"
    if not archive.is_file():
        npm = shutil.which("npm")
        if npm is None:
            raise InputError(f"{archive} is missing and npm is not installed; install npm, or copy the file there")
        downloads.mkdir(parents=True, exist_ok=True)
        command = [npm, "pack", f"{RUNTIME}@{VERSION}", "--silent", "--pack-destination", str(downloads.absolute())]
        print(f"downloading {RUNTIME} {VERSION} from npm …", file=sys.stderr, flush=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not archive.is_file():
            raise InputError(f"npm could not download {RUNTIME} {VERSION}: {done.stderr.strip() or 'no file'}")
    if hashlib.sha512(archive.read_bytes()).hexdigest() != SHA512:
        raise InputError(f"{archive} differs from the published {RUNTIME} {VERSION}; delete it and try again")
    return archive


def _unpack(archive: Path, folder: Path) -> None:
    folder.mkdir()
    with tarfile.open(archive) as package:
        for name in RUNTIME_FILES:
            member = package.extractfile(f"package/{name}")
            assert member is not None
            (folder / Path(name).name).write_bytes(member.read())


def _set_policy(page: Path) -> None:
    """Add the policy to the page; the server sends it as a header instead."""
    first = '<meta charset="utf-8">'
    text = page.read_text()
    assert text.count(first) == 1
    page.write_text(text.replace(first, f'{first}\n  <meta http-equiv="Content-Security-Policy" content="{POLICY}">'))


def _data() -> dict[str, Any]:
    """Examples, vocabulary and scenes, by file name."""
    stories = [[story.model_dump() for story in babi.examples(number)] for number in range(STORIES)]
    return {
        "sudoku": [example.model_dump() for example in sudoku.examples()],
        "ages": {"examples": [example.model_dump() for example in ages.examples()]},
        "babi": {
            "examples": stories,
            "words": babi.known_words().model_dump(),
            "vocabulary": vocabulary.WORDS,
            "answers": vocabulary.ANSWERS,
            "like": [[title, words.split()] for title, words in vocabulary.TOPIC_EXAMPLES.items()],
        },
        "scenes": {
            "colours": clevr.COLOURS,
            "shapes": clevr.SHAPES,
            "palette": PALETTE,
            "outlines": [np.round(clevr.OBJECT_RADIUS * outline(shape), 5).tolist() for shape in clevr.SHAPES],
            "scenes": [_scene(seed) for seed in range(SCENES)],
        },
    }


def _scene(seed: int) -> list[list[float]]:
    """x, y, colours and shapes; nine digits represent a float32 exactly."""
    scene = scene_of(seed).scene(0)
    x, y = ([float(f"{value:.9g}") for value in scene.positions[:, axis]] for axis in (0, 1))
    return [x, y, scene.colours.tolist(), scene.shapes.tolist()]


if __name__ == "__main__":
    sys.exit(main())
