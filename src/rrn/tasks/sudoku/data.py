"""Data sets: generated puzzles, hard ones, or the paper's sets from a pool; written to disk and read back."""

import gzip
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rrn.errors import InputError, blaming
from rrn.parallel import adding_up, run_jobs
from rrn.storage import expected_array, read_dataset, write_atomically, write_dataset, write_json
from rrn.tasks.sudoku.exact import GENERATOR_VERSION, generate, generate_hard
from rrn.tasks.sudoku.files import Progress, read_puzzles
from rrn.tasks.sudoku.grid import CELLS, grid_to_line
from rrn.tasks.sudoku.symmetry import draw_relabellings, fingerprints

PUZZLES_PER_JOB, HARD_PER_JOB = 1000, 40
MOST_EXTRA = 17
PAPER_PER_GIVENS = {"train": 10_000, "valid": 1_000, "test": 1_000}
_no_progress: Progress = lambda _what, _done, _total: None  # noqa: E731


class PuzzleSet(NamedTuple):
    """Puzzles and their solutions, uint8 (n, 81) each."""

    puzzles: np.ndarray
    solutions: np.ndarray

    def givens(self) -> np.ndarray:
        """The number of givens of each puzzle: (n,)."""
        return (self.puzzles > 0).sum(axis=1)


@dataclass(frozen=True)
class Pools:
    """A pool file in three parts without relatives across them; ``rows`` are each part's places in the pool, which is
    the file without its ``bad`` puzzles. ``relatives`` are the places of those in no part."""

    sets: dict[str, PuzzleSet]
    rows: dict[str, np.ndarray]
    relatives: np.ndarray
    bad: tuple[str, ...]
    sha256: str


def split_pool(
    solutions: np.ndarray, *, test: int, valid: int, seed: int | None = None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Split a pool, known by its solutions (n, 81), into test, valid and train; returns their rows, and those left out.

    Test are the first rows, validation the next, training all the rest; with a ``seed`` the pool is shuffled before.
    No part has a relative of another part's puzzle: puzzles count as relatives when any symmetry of Sudoku turns
    the solution of one into the solution of the other. That covers equal puzzles, puzzles equal up to digits, order
    of lines or transposition, and different puzzles of one grid, which extra givens would make alike. A relative of
    a test puzzle is passed over for validation and training, one of a validation puzzle for training.
    """
    order = np.arange(len(solutions)) if seed is None else np.random.default_rng(seed).permutation(len(solutions))
    grids = fingerprints(solutions)
    test_rows, rest = order[:test], order[test:]
    unrelated = rest[~np.isin(grids[rest], grids[test_rows])]
    valid_rows, rest_of_unrelated = unrelated[:valid], unrelated[valid:]
    train_rows = rest_of_unrelated[~np.isin(grids[rest_of_unrelated], grids[valid_rows])]
    rows = {"train": train_rows, "valid": valid_rows, "test": test_rows}
    if len(test_rows) < test or len(valid_rows) < valid or not len(train_rows):
        raise InputError(
            f"{len(solutions)} puzzles, relatives left out, do not give {test} for testing, {valid} for validation and "
            "at least one for training; ask for smaller parts"
        )
    return rows, np.setdiff1d(order, np.concatenate(list(rows.values())))


def read_pools(
    pool_file: str | Path,
    *,
    test: int = 10_000,
    valid: int = 1_000,
    split_seed: int | None = None,
    skip_bad: bool = False,
    processes: int = 1,
    progress: Progress = _no_progress,
) -> Pools:
    """Read a pool, prove every puzzle unique, and split it as `split_pool` does."""
    pool = read_puzzles(pool_file, prove="all", skip_bad=skip_bad, processes=processes, progress=progress)
    try:
        rows, relatives = split_pool(pool.solutions, test=test, valid=valid, seed=split_seed)
    except InputError as error:
        raise InputError(f"{pool_file}: {error}") from error
    sets = {name: PuzzleSet(pool.puzzles[part], pool.solutions[part]) for name, part in rows.items()}
    return Pools(sets, rows, relatives, pool.bad, hashlib.sha256(Path(pool_file).read_bytes()).hexdigest())


def add_givens(
    puzzles: np.ndarray, solutions: np.ndarray, extra: int | np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Puzzles (n, 81) with ``extra`` (one number, or n) more cells of the solution filled in, drawn uniformly."""
    if ((puzzles == 0).sum(axis=1) < extra).any():
        raise InputError(f"a puzzle has fewer empty cells than the {np.max(extra)} extra givens asked for")
    keys = np.where(puzzles == 0, rng.random(puzzles.shape), 2.0)
    rank = np.argsort(np.argsort(keys, axis=1), axis=1)
    return np.where(rank < np.reshape(extra, (-1, 1)), solutions, puzzles)


def sample_with_extra_givens(pool: PuzzleSet, count: int, extra: int, rng: np.random.Generator) -> PuzzleSet:
    """``count`` puzzles drawn from the pool with replacement, ``extra`` givens added, the digits permuted."""
    chosen = rng.integers(len(pool.puzzles), size=count)
    puzzles, solutions = pool.puzzles[chosen], pool.solutions[chosen]
    puzzles = add_givens(puzzles, solutions, extra, rng)
    relabelled = draw_relabellings(count, rng)
    return PuzzleSet(relabelled.apply(puzzles), relabelled.apply(solutions))


def write_generated(
    folder: str | Path,
    count: int,
    seed: int,
    extra_givens: int | tuple[int, int] = (0, MOST_EXTRA),
    processes: int = 1,
    progress: Progress = _no_progress,
) -> dict[str, Any]:
    """Write a folder with one set, ``generated``, of `generate`'s puzzles; returns its sidecar.

    The bytes depend on count, seed and extra givens, never on the number of processes.
    """
    if count < 1:
        raise InputError(f"a set of {count} puzzles: ask for at least one")
    sizes = [min(PUZZLES_PER_JOB, count - start) for start in range(0, count, PUZZLES_PER_JOB)]
    seeds = np.random.SeedSequence(seed).spawn(len(sizes))
    generate(1, np.random.default_rng(0), extra_givens)  # checks the arguments, and compiles before processes start
    parts = run_jobs(
        _generate_job,
        [(size, own, extra_givens) for size, own in zip(sizes, seeds, strict=True)],
        processes,
        adding_up(sizes, partial(progress, "generating")),
    )
    about = {
        "task": "sudoku",
        "kind": "generated",
        "generator_version": GENERATOR_VERSION,
        "seed": seed,
        "extra_givens": list(extra_givens) if isinstance(extra_givens, tuple) else [extra_givens, extra_givens],
        "counts": {"generated": count},
    }
    return _write(folder, {"generated": _joined(parts)}, about)


def write_hard(
    path: str | Path,
    count: int,
    seed: int,
    least_guesses: int = 20,
    avoid: Sequence[str | Path] = (),
    processes: int = 1,
    progress: Progress = _no_progress,
) -> dict[str, Any]:
    """Write puzzles of `generate_hard` as a file ``puzzle,solution,guesses`` (.csv or .csv.gz), for training's --pool.

    What made it goes to a file of the same name that ends in .json, and is returned. No puzzle is related to one of the
    files to ``avoid``. The bytes depend on count, seed, least guesses and those files, never on the processes.
    """
    path = Path(path)
    stem, dot, ending = path.name.partition(".csv")
    if not (stem and dot and ending in ("", ".gz")):
        raise InputError(f"{path}: expected the name of a file that ends in .csv or .csv.gz")
    existing = next(folder for folder in path.absolute().parents if folder.exists())
    if path.is_dir() or not existing.is_dir() or not os.access(existing, os.W_OK):
        raise InputError(f"{path}: cannot be written there; name a file in a folder of your own")
    if count < 1:
        raise InputError(f"a set of {count} puzzles: ask for at least one")
    avoided = [fingerprints(read_puzzles(file, prove="unsolved", processes=processes).solutions) for file in avoid]
    unwanted = np.unique(np.concatenate(avoided)) if avoided else np.zeros(0, np.uint64)
    sizes = [min(HARD_PER_JOB, count - start) for start in range(0, count, HARD_PER_JOB)]
    seeds = np.random.SeedSequence(seed).spawn(len(sizes))
    generate_hard(1, np.random.default_rng(0), min(least_guesses, 1))  # checks it, and compiles before processes start
    jobs = [(size, own, least_guesses, unwanted) for size, own in zip(sizes, seeds, strict=True)]
    parts = run_jobs(_hard_job, jobs, processes, adding_up(sizes, partial(progress, "searching")))
    puzzles, solutions, guesses = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    lines = [
        f"{grid_to_line(puzzle).replace('.', '0')},{grid_to_line(solution)},{needed}"
        for puzzle, solution, needed in zip(puzzles, solutions, guesses, strict=True)
    ]
    content = "\n".join(["puzzle,solution,guesses", *lines, ""]).encode()
    quantiles = np.quantile(guesses, [0, 0.25, 0.5, 0.75, 1]).tolist()
    about = {
        "task": "sudoku",
        "kind": "hard",
        "generator_version": GENERATOR_VERSION,
        "seed": seed,
        "least_guesses": least_guesses,
        "counts": {"hard": count},
        "guesses": dict(zip(("least", "quarter", "half", "three_quarters", "most"), quantiles, strict=True)),
        "avoided": {Path(file).name: hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in avoid},
        "sha256_of_lines": hashlib.sha256(content).hexdigest(),
    }
    sidecar = path.with_name(f"{stem}.json")
    sidecar.unlink(missing_ok=True)
    write_atomically(path, gzip.compress(content, mtime=0) if ending else content)
    write_json(sidecar, about)
    return about


def write_paper_sets(
    folder: str | Path,
    pool_file: str | Path,
    seed: int,
    per_givens: Mapping[str, int] = PAPER_PER_GIVENS,
    *,
    test: int = 10_000,
    valid: int = 1_000,
    split_seed: int | None = None,
    skip_bad: bool = False,
    processes: int = 1,
    progress: Progress = _no_progress,
) -> dict[str, Any]:
    """Write a folder with the sets ``train``, ``valid`` and ``test`` as the paper makes them; returns its sidecar.

    The pool is split first (`read_pools`); then each set gets, for each of 0 to 17 extra givens in turn, as many
    samples as ``per_givens`` says, drawn from its own part with replacement, the digits permuted.
    """
    unknown = set(per_givens) - set(PAPER_PER_GIVENS)
    if unknown or any(count < 1 for count in per_givens.values()):
        raise InputError(f"per_givens {dict(per_givens)}: must give at least one puzzle to some of train, valid, test")
    pools = read_pools(
        pool_file,
        test=test,
        valid=valid,
        split_seed=split_seed,
        skip_bad=skip_bad,
        processes=processes,
        progress=progress,
    )
    seeds = dict(zip(PAPER_PER_GIVENS, np.random.SeedSequence(seed).spawn(len(PAPER_PER_GIVENS)), strict=True))
    sizes = [per_givens[name] for name in per_givens for _ in range(MOST_EXTRA + 1)]
    report = adding_up(sizes, partial(progress, "sampling"))
    sets: dict[str, PuzzleSet] = {}
    for name, count in per_givens.items():
        parts = []
        for extra, own in enumerate(seeds[name].spawn(MOST_EXTRA + 1)):
            parts.append(sample_with_extra_givens(pools.sets[name], count, extra, np.random.default_rng(own)))
            report(len(sets) * (MOST_EXTRA + 1) + extra)
        sets[name] = _joined(parts)
    about = {
        "task": "sudoku",
        "kind": "paper",
        "generator_version": GENERATOR_VERSION,
        "seed": seed,
        "extra_givens": [0, MOST_EXTRA],
        "per_givens": dict(per_givens),
        "counts": {name: len(made.puzzles) for name, made in sets.items()},
        "pool": {
            "file": Path(pool_file).name,
            "sha256": pools.sha256,
            "split_seed": split_seed,
            "parts": {name: len(rows) for name, rows in pools.rows.items()},
            "relatives_left_out": len(pools.relatives),
            "bad_left_out": list(pools.bad),
        },
    }
    return _write(folder, sets, about)


def read_sets(folder: str | Path) -> tuple[dict[str, PuzzleSet], dict[str, Any]]:
    """The sets of a folder that `write_generated` or `write_paper_sets` wrote, by name, and its sidecar."""
    arrays, about = read_dataset(folder)
    if about.get("task") != "sudoku":
        raise InputError(f"{folder}: a data set of {about.get('task', 'another task')}, not of sudoku")
    with blaming(f"{folder}: damaged; write the data set again"):
        names = list(about["counts"])
    return {
        name: PuzzleSet(*(_grids(arrays, f"{name}_{part}", folder) for part in PuzzleSet._fields)) for name in names
    }, about


def _grids(arrays: dict[str, np.ndarray], name: str, folder: str | Path) -> np.ndarray:
    return expected_array(arrays, name, folder, np.uint8, (CELLS,), 0, 9)


def _generate_job(job: tuple[int, np.random.SeedSequence, int | tuple[int, int]]) -> PuzzleSet:
    count, seed, extra_givens = job
    return PuzzleSet(*generate(count, np.random.default_rng(seed), extra_givens))


def _hard_job(job: tuple[int, np.random.SeedSequence, int, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    count, seed, least_guesses, avoid = job
    return generate_hard(count, np.random.default_rng(seed), least_guesses, avoid)


def _joined(parts: list[PuzzleSet]) -> PuzzleSet:
    return PuzzleSet(
        np.concatenate([part.puzzles for part in parts]), np.concatenate([part.solutions for part in parts])
    )


def _write(folder: str | Path, sets: dict[str, PuzzleSet], about: dict[str, Any]) -> dict[str, Any]:
    arrays = {}
    for name, made in sets.items():
        arrays[f"{name}_puzzles"], arrays[f"{name}_solutions"] = made
    write_dataset(folder, arrays, about)
    return about
