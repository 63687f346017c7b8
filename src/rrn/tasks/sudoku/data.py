"""Data sets on disk: generated puzzles, hard puzzles, and the paper's sets from a pool."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rrn.errors import InputError, as_input_error
from rrn.io import datasets
from rrn.tasks.parallel import make_in_jobs
from rrn.tasks.sudoku.exact import GENERATOR_VERSION, generate, generate_hard
from rrn.tasks.sudoku.files import Progress, read_puzzles
from rrn.tasks.sudoku.grid import CELLS, grid_to_line
from rrn.tasks.sudoku.symmetry import draw_relabellings, fingerprints

PUZZLES_PER_JOB, HARD_PER_JOB = 1000, 40
MOST_EXTRA = 17
PAPER_SETS = ("train", "valid", "test")
_no_progress: Progress = lambda _what, _done, _total: None  # noqa: E731


class PuzzleSet(NamedTuple):
    """Puzzles and their solutions, uint8 (n, 81) each."""

    puzzles: np.ndarray
    solutions: np.ndarray


def read_pools(
    pool_file: str | Path,
    *,
    test: int = 10_000,
    valid: int = 1_000,
    split_seed: int | None = None,
    skip_bad: bool = False,
    processes: int = 1,
    progress: Progress = _no_progress,
) -> tuple[dict[str, PuzzleSet], dict[str, Any]]:
    """Read a pool, prove every puzzle unique, and split it into test (first), valid and train; returns these parts and
    a description of the pool.

    With a ``split_seed`` the pool is shuffled first. No part has a relative of a puzzle of another part. Two puzzles
    are relatives if a symmetry of Sudoku maps the solution of one onto the solution of the other. This includes equal
    puzzles and different puzzles of one grid. See `rrn.io.datasets.split_dataset`.
    """
    pool = read_puzzles(pool_file, prove="all", skip_bad=skip_bad, processes=processes, progress=progress)
    grids, what = fingerprints(pool.solutions), f"{pool_file}: {len(pool.solutions)} puzzles"
    rows, relatives = datasets.split_dataset(grids, what, test=test, valid=valid, seed=split_seed)
    sets = {name: PuzzleSet(pool.puzzles[part], pool.solutions[part]) for name, part in rows.items()}
    about = {
        "file": Path(pool_file).name,
        "sha256": datasets.sha256_of(pool_file),
        "split_seed": split_seed,
        "parts": {name: len(part) for name, part in rows.items()},
        "relatives_left_out": len(relatives),
        "bad_left_out": list(pool.bad),
    }
    return sets, about


def add_givens(
    puzzles: np.ndarray, solutions: np.ndarray, extra: int | np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Puzzles (n, 81) with ``extra`` (one number, or n) more cells filled in, drawn uniformly."""
    if ((puzzles == 0).sum(axis=1) < extra).any():
        raise InputError(f"a puzzle has fewer empty cells than the {np.max(extra)} extra givens asked for")
    keys = np.where(puzzles == 0, rng.random(puzzles.shape), 2.0)
    rank = np.argsort(np.argsort(keys, axis=1), axis=1)
    return np.where(rank < np.reshape(extra, (-1, 1)), solutions, puzzles)


def write_generated(
    folder: str | Path,
    count: int,
    seed: int,
    extra_givens: int | tuple[int, int] = (0, MOST_EXTRA),
    processes: int = 1,
    progress: Progress = _no_progress,
) -> dict[str, Any]:
    """Write a folder with one set, ``generated``, of `generate`'s puzzles; returns its sidecar.

    The bytes do not depend on the number of processes.
    """
    generate(1, np.random.default_rng(0), extra_givens)  # checks the arguments, and compiles before processes start
    shown = partial(progress, "generating")
    made = make_in_jobs(generate, count, PUZZLES_PER_JOB, seed, (extra_givens,), processes, shown)
    givens = extra_givens if isinstance(extra_givens, tuple) else (extra_givens, extra_givens)
    about = {"seed": seed, "extra_givens": list(givens), "counts": {"generated": count}}
    return _write(folder, "generated", {"generated": PuzzleSet(*made)}, about)


def write_hard(
    path: str | Path,
    count: int,
    seed: int,
    least_guesses: int = 20,
    avoid: Sequence[str | Path] = (),
    processes: int = 1,
    progress: Progress = _no_progress,
) -> dict[str, Any]:
    """Write puzzles of `generate_hard` as a file ``puzzle,solution,guesses`` (.csv or .csv.gz), for ``train --pool``.

    The settings go to a .json file of the same name, and are returned. No puzzle is related to one of the files to
    ``avoid``. The bytes do not depend on the number of processes.
    """
    datasets.check_table(path)
    avoided = []
    for file in avoid:
        progress(f"reading {Path(file).name}", 0, 1)
        avoided.append(fingerprints(read_puzzles(file, prove="unsolved", processes=processes).solutions))
        progress(f"reading {Path(file).name}", 1, 1)
    unwanted = np.unique(np.concatenate([np.zeros(0, np.uint64), *avoided]))
    progress("compiling", 0, 1)
    generate_hard(1, np.random.default_rng(0), min(least_guesses, 1))  # checks it, and compiles before processes start
    progress("compiling", 1, 1)
    settings, shown = (least_guesses, unwanted), partial(progress, "searching")
    puzzles, solutions, guesses = make_in_jobs(generate_hard, count, HARD_PER_JOB, seed, settings, processes, shown)
    columns: dict[str, Any] = {
        "puzzle": [grid_to_line(puzzle).replace(".", "0") for puzzle in puzzles],
        "solution": [grid_to_line(solution) for solution in solutions],
        "guesses": guesses,
    }
    quantiles = np.quantile(guesses, [0, 0.25, 0.5, 0.75, 1]).tolist()
    about = _kind("hard") | {
        "seed": seed,
        "least_guesses": least_guesses,
        "counts": {"hard": count},
        "guesses": dict(zip(("least", "quarter", "half", "three_quarters", "most"), quantiles, strict=True)),
        "avoided": {Path(file).name: datasets.sha256_of(file) for file in avoid},
    }
    return datasets.write_table(path, columns, about)


def write_paper_sets(
    folder: str | Path,
    pools: tuple[dict[str, PuzzleSet], dict[str, Any]],
    seed: int,
    per_givens: Mapping[str, int],
    progress: Progress = _no_progress,
) -> dict[str, Any]:
    """Write a folder with some of the sets ``train``, ``valid`` and ``test`` of the paper; returns its sidecar.

    Each set gets ``per_givens`` samples for each of 0 to 17 extra givens. They are drawn with replacement from its part
    of the pool (`read_pools`), with permuted digits.
    """
    seeds = dict(zip(PAPER_SETS, np.random.SeedSequence(seed).spawn(len(PAPER_SETS)), strict=True))
    done, total = 0, (MOST_EXTRA + 1) * sum(per_givens.values())
    sets: dict[str, PuzzleSet] = {}
    for name, count in per_givens.items():
        pool, parts = pools[0][name], []
        for extra, rng in enumerate(map(np.random.default_rng, seeds[name].spawn(MOST_EXTRA + 1))):
            chosen = rng.integers(len(pool.puzzles), size=count)
            puzzles = add_givens(pool.puzzles[chosen], pool.solutions[chosen], extra, rng)
            relabelled = draw_relabellings(count, rng)
            parts.append((relabelled.apply(puzzles), relabelled.apply(pool.solutions[chosen])))
            done += count
            progress("sampling", done, total)
        sets[name] = PuzzleSet(*map(np.concatenate, zip(*parts, strict=True)))
    about = {
        "seed": seed,
        "extra_givens": [0, MOST_EXTRA],
        "per_givens": dict(per_givens),
        "counts": {name: len(made.puzzles) for name, made in sets.items()},
        "pool": pools[1],
    }
    return _write(folder, "paper", sets, about)


def read_sets(folder: str | Path) -> tuple[dict[str, PuzzleSet], dict[str, Any]]:
    """The sets of a folder that `write_generated` or `write_paper_sets` wrote, by name, and its sidecar."""
    arrays, about = datasets.read_dataset(folder, "sudoku")
    with as_input_error(f"{folder}: damaged; write the data set again"):
        names = list(about["counts"])
    grids = partial(datasets.expected_array, arrays, source=folder, dtype=np.uint8, shape=(CELLS,), least=0, most=9)
    return {name: PuzzleSet(grids(f"{name}_puzzles"), grids(f"{name}_solutions")) for name in names}, about


def _kind(kind: str) -> dict[str, Any]:
    return {"task": "sudoku", "kind": kind, "generator_version": GENERATOR_VERSION}


def _write(folder: str | Path, kind: str, sets: dict[str, PuzzleSet], about: dict[str, Any]) -> dict[str, Any]:
    arrays = {f"{name}_{part}": array for name, made in sets.items() for part, array in made._asdict().items()}
    about = _kind(kind) | about
    datasets.write_dataset(folder, arrays, about)
    return about
