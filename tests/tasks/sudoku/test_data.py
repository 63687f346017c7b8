import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from rrn.errors import InputError
from rrn.io.datasets import split_dataset
from rrn.tasks.sudoku import data
from rrn.tasks.sudoku.data import (
    add_givens,
    read_pools,
    read_sets,
    write_generated,
    write_hard,
    write_paper_sets,
)
from rrn.tasks.sudoku.exact import count_guesses, count_solutions
from rrn.tasks.sudoku.files import read_puzzles
from rrn.tasks.sudoku.grid import grid_to_line, solves
from rrn.tasks.sudoku.symmetry import draw_relabellings, draw_symmetries, fingerprints

Some = tuple[np.ndarray, np.ndarray]


@pytest.fixture
def pool_file(some: Some, tmp_path: Path) -> Path:
    path = tmp_path / "pool.txt"
    path.write_text("\n".join(map(grid_to_line, some[0])) + "\n")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_given_cells_are_added_as_asked(some: Some) -> None:
    puzzles, solutions = some
    extra = np.arange(len(puzzles)) % 18
    more = add_givens(puzzles, solutions, extra, np.random.default_rng(0))
    assert more.dtype == np.uint8
    assert (((more > 0).sum(axis=1) - (puzzles > 0).sum(axis=1)) == extra).all()
    assert solves(solutions, more).all()
    assert ((more == puzzles) | (puzzles == 0)).all()


def test_more_givens_than_empty_cells_are_refused(some: Some) -> None:
    with pytest.raises(InputError, match="fewer empty cells"):
        add_givens(some[1], some[1], 1, np.random.default_rng(0))


@pytest.mark.parametrize("draw", [draw_relabellings, draw_symmetries])
def test_relatives_stay_on_one_side(some: Some, draw: object) -> None:
    solutions = some[1].copy()
    related = [11, 20, 30]
    solutions[related] = draw(3, np.random.default_rng(0)).apply(solutions[[2, 3, 12]])  # type: ignore[operator]
    solutions[1] = solutions[0]
    solutions[41] = solutions[40]
    rows, relatives = split_dataset(fingerprints(solutions), "puzzles", test=10, valid=5)
    assert relatives.tolist() == related
    assert rows["test"].tolist() == list(range(10))
    assert rows["valid"].tolist() == [10, 12, 13, 14, 15]
    assert {40, 41} <= set(rows["train"].tolist())
    prints = fingerprints(solutions)
    for one, other in (("test", "valid"), ("test", "train"), ("valid", "train")):
        assert not np.isin(prints[rows[one]], prints[rows[other]]).any()


def test_a_pool_too_small_is_refused_by_name(pool_file: Path) -> None:
    with pytest.raises(InputError, match=r"pool\.txt: 60 puzzles"):
        read_pools(pool_file, test=50, valid=10)


def test_a_pool_must_be_proved(some: Some, tmp_path: Path) -> None:
    path = tmp_path / "pool.txt"
    path.write_text("\n".join([*map(grid_to_line, some[0][:20]), "." * 81]))
    with pytest.raises(InputError, match=r"pool\.txt:21: the puzzle has more than one solution"):
        read_pools(path, test=5, valid=5)
    pools = read_pools(path, test=5, valid=5, skip_bad=True)
    assert len(pools[1]["bad_left_out"]) == 1
    assert len(pools[0]["train"].puzzles) == 10
    assert (pools[0]["test"].solutions == some[1][:5]).all()


def test_paper_sets(some: Some, pool_file: Path, tmp_path: Path) -> None:
    sizes = {"train": 4, "valid": 3, "test": 2}
    seen: list[tuple[str, int, int]] = []
    folder = tmp_path / "sets"
    pools = read_pools(pool_file, test=20, valid=10, progress=lambda *report: seen.append(report))
    about = write_paper_sets(folder, pools, 3, sizes, lambda *report: seen.append(report))
    sets, sidecar = read_sets(folder)
    assert {name: len(made.puzzles) for name, made in sets.items()} == {"train": 72, "valid": 54, "test": 36}
    assert sidecar["seed"] == 3
    assert sidecar["pool"]["sha256"] == hashlib.sha256(pool_file.read_bytes()).hexdigest()
    assert sidecar["pool"]["parts"] == {"train": 30, "valid": 10, "test": 20}
    assert about["counts"] == sidecar["counts"] == {"train": 72, "valid": 54, "test": 36}
    assert sidecar["generator_version"] == 2
    assert seen[-1] == ("sampling", 162, 162)
    assert ("proving", 60, 60) in seen

    prints = fingerprints(some[1])
    parts = {"test": slice(0, 20), "valid": slice(20, 30), "train": slice(30, 60)}
    fewest = (some[0] > 0).sum(axis=1)
    for name, made in sets.items():
        assert made.puzzles.dtype == np.uint8
        assert solves(made.solutions, made.puzzles).all()
        assert (count_solutions(made.puzzles) == 1).all()
        from_part = fingerprints(made.solutions)
        assert np.isin(from_part, prints[parts[name]]).all()
        source = np.array([int(np.flatnonzero(prints == number)[0]) for number in from_part])
        extra = (made.puzzles > 0).sum(axis=1) - fewest[source]
        assert extra.tolist() == np.repeat(np.arange(18), sizes[name]).tolist()
        same_places = ((some[0][source] > 0) <= (made.puzzles > 0)).all(axis=1)
        assert same_places.all()
        assert (made.solutions != some[1][source]).any(axis=1).mean() > 0.9


def test_the_same_seed_writes_the_same_bytes(pool_file: Path, tmp_path: Path) -> None:
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        write_paper_sets(tmp_path / name, read_pools(pool_file, test=20, valid=10), seed, {"test": 2})
    one, two, three = (contents(tmp_path / name) for name in ("one", "two", "three"))
    assert one == two
    assert one["test_puzzles.npy"] != three["test_puzzles.npy"]
    assert set(one) == {"test_puzzles.npy", "test_solutions.npy", "dataset.json"}


def test_a_set_does_not_depend_on_which_others_are_written(pool_file: Path, tmp_path: Path) -> None:
    write_paper_sets(tmp_path / "one", read_pools(pool_file, test=20, valid=10), 3, {"test": 2})
    write_paper_sets(tmp_path / "all", read_pools(pool_file, test=20, valid=10), 3, {"train": 1, "test": 2})
    assert contents(tmp_path / "one")["test_puzzles.npy"] == contents(tmp_path / "all")["test_puzzles.npy"]


def test_generated_sets_do_not_depend_on_the_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "PUZZLES_PER_JOB", 30)
    seen: list[tuple[str, int, int]] = []
    about = write_generated(tmp_path / "one", 70, 5, (0, 17), progress=lambda *report: seen.append(report))
    write_generated(tmp_path / "two", 70, 5, (0, 17), processes=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert [done for _, done, _ in seen] == [30, 60, 70]
    sets, sidecar = read_sets(tmp_path / "one")
    assert {key: sidecar[key] for key in about} == json.loads(json.dumps(about))
    made = sets["generated"]
    assert len(made.puzzles) == sidecar["counts"]["generated"] == 70
    assert solves(made.solutions, made.puzzles).all()
    assert (count_solutions(made.puzzles) == 1).all()
    assert len(np.unique(made.solutions, axis=0)) == 70


def test_generated_sets_refuse_odd_arguments(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one"):
        write_generated(tmp_path / "none", 0, 5)
    with pytest.raises(InputError, match="extra givens"):
        write_generated(tmp_path / "none", 1, 5, 99)
    assert not (tmp_path / "none").exists()


def test_a_folder_of_another_task_is_refused(tmp_path: Path) -> None:
    write_generated(tmp_path / "set", 2, 5)
    sidecar = tmp_path / "set" / "dataset.json"
    sidecar.write_text(sidecar.read_text().replace('"sudoku"', '"babi"'))
    with pytest.raises(InputError, match="of babi, not of sudoku"):
        read_sets(tmp_path / "set")


def test_a_file_of_hard_puzzles(some: Some, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "HARD_PER_JOB", 2)
    seen: list[tuple[str, int, int]] = []
    about = write_hard(tmp_path / "hard.csv.gz", 5, 3, 2, progress=lambda *report: seen.append(report))
    text = gzip.decompress((tmp_path / "hard.csv.gz").read_bytes()).decode()
    assert text.startswith("puzzle,solution,guesses\n")
    assert about["sha256_of_lines"] == hashlib.sha256(text.encode()).hexdigest()
    assert json.loads((tmp_path / "hard.json").read_text()) == about
    assert seen[:2] == [("compiling", 0, 1), ("compiling", 1, 1)]  # it takes long the first time, so it is shown
    assert seen[2:] == [("searching", 2, 5), ("searching", 4, 5), ("searching", 5, 5)]
    read = read_puzzles(tmp_path / "hard.csv.gz", prove="all")
    stated = [int(line.split(",")[2]) for line in text.split("\n")[1:6]]
    assert count_guesses(read.puzzles).tolist() == stated
    assert min(stated) >= 2
    assert (about["guesses"]["least"], about["guesses"]["most"]) == (min(stated), max(stated))

    write_hard(tmp_path / "plain.csv", 5, 3, 2)
    assert (tmp_path / "plain.csv").read_text() == text
    avoided = write_hard(tmp_path / "other.csv", 5, 3, 2, avoid=[tmp_path / "plain.csv"])
    assert avoided["avoided"] == {"plain.csv": hashlib.sha256(text.encode()).hexdigest()}
    others = fingerprints(read_puzzles(tmp_path / "other.csv").solutions)
    assert not np.isin(others, fingerprints(read.solutions)).any()


@pytest.mark.parametrize("name", ["hard", "hard.txt", ".csv.gz", "hard.csv.zip"])
def test_hard_puzzles_go_to_a_file_of_lines(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ends in \.csv or \.csv\.gz"):
        write_hard(tmp_path / name, 1, 0)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_refused_before_the_search(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "folder.csv", tmp_path / "file" / "hard.csv"):
        with pytest.raises(InputError, match="cannot be written; name a file"):
            write_hard(out, 10**9, 0)
