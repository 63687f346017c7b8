from pathlib import Path

import numpy as np
import pytest

from rrn.datasets import check_table, split_apart, write_table
from rrn.errors import InputError


def test_parts_are_the_first_rows_the_next_and_the_rest() -> None:
    rows, relatives = split_apart(np.arange(60), "60 things", test=10, valid=5)
    assert rows["test"].tolist() == list(range(10))
    assert rows["valid"].tolist() == list(range(10, 15))
    assert rows["train"].tolist() == list(range(15, 60))
    assert len(relatives) == 0


def test_a_seed_shuffles_before_the_split() -> None:
    rows, again, other = (split_apart(np.arange(60), "", test=10, valid=5, seed=seed)[0] for seed in (1, 1, 2))
    assert rows["test"].tolist() == again["test"].tolist() != other["test"].tolist()
    assert sorted(np.concatenate(list(rows.values()))) == list(range(60))


def test_too_few_are_refused() -> None:
    with pytest.raises(InputError, match="3 things, relatives left out, do not give 1 for testing, 1 for validation"):
        split_apart(np.zeros(3), "3 things", test=1, valid=1)


def test_a_table_and_what_made_it(tmp_path: Path) -> None:
    about = write_table(tmp_path / "some.csv", {"a": [1, 2], "b": "xy"}, {"seed": 3})
    assert (tmp_path / "some.csv").read_text() == "a,b\n1,x\n2,y\n"
    assert about["seed"] == 3
    assert (tmp_path / "some.json").exists()
    with pytest.raises(InputError, match="ends in"):
        check_table(tmp_path / "some.txt")
