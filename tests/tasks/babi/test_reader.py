"""The official format: read, written, and refused where it is broken."""

import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrn.errors import InputError
from rrn.tasks.babi.generator import generate_stories
from rrn.tasks.babi.reader import parse_stories, read_babi
from rrn.tasks.babi.stories import TASKS, cut, story_text

STORY = (
    "1 Mary moved to the bathroom.\n"
    "2 John went to the hallway.\n"
    "3 Where is Mary? \tbathroom\t1\n"
    "4 Daniel went back to the hallway.\n"
    "5 Where is Daniel? \thallway\t4\n"
)


def test_a_story_is_read() -> None:
    (story,) = parse_stories(STORY, 1, "qa1")
    assert story.facts == [
        "Mary moved to the bathroom.",
        "John went to the hallway.",
        "Daniel went back to the hallway.",
    ]
    first, second = story.questions
    assert (first.text, first.answer, first.support, first.facts) == ("Where is Mary?", "bathroom", (0,), 2)
    assert (second.text, second.answer, second.support, second.facts) == ("Where is Daniel?", "hallway", (2,), 3)
    assert story_text(story) == STORY
    assert parse_stories(STORY + STORY, 1, "qa1") == [story, story]
    assert parse_stories(STORY.replace("\n", "\r\n"), 1, "qa1") == [story]


@pytest.mark.parametrize(
    ("broken", "line", "complaint"),
    [
        (STORY.replace("Mary? \tbathroom", "Mary? bathroom"), 3, "fields"),
        (STORY.replace("Mary? \tbathroom\t1", "Mary?"), 3, "without tabs"),
        (STORY.replace("\tbathroom\t", "\t\t"), 3, "empty"),
        (STORY.replace("hallway\t4", "hallway\t3"), 5, "supporting line '3' is not an earlier fact"),
        (STORY.replace("bathroom\t1", "bathroom\t4"), 3, "supporting line '4' is not an earlier fact"),
        (STORY.replace("bathroom\t1", "bathroom\tone"), 3, "supporting line 'one'"),
        (STORY.replace("4 Daniel", "6 Daniel"), 4, "numbered 6 where 1 or 4"),
        (STORY.removeprefix("1 Mary moved to the bathroom.\n"), 1, "numbered 2 where 1"),
        (STORY.replace("2 John", "John"), 2, "is not '<number> <sentence>'"),
        (STORY.replace("2 John went to the hallway.", "2"), 2, "is not '<number> <sentence>'"),
        (STORY.replace("4 Daniel", "\n4 Daniel"), 4, "empty"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, broken: str, line: int, complaint: str) -> None:
    file = tmp_path / "qa1_train.txt"
    file.write_text(broken)
    with pytest.raises(InputError) as caught:
        read_babi(tmp_path, "train")
    assert str(caught.value).startswith(f"{file}, line {line}: ")
    assert complaint in str(caught.value)


def test_a_file_without_questions_or_not_of_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "qa1_train.txt").write_text("1 Mary moved to the bathroom.\n")
    with pytest.raises(InputError, match="no question"):
        read_babi(tmp_path, "train")
    (tmp_path / "qa1_train.txt").write_bytes(b"1 \xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        read_babi(tmp_path, "train")


def test_files_are_found_by_their_usual_names(tmp_path: Path) -> None:
    for variant, name in (("en", "qa1_single-supporting-fact_train.txt"), ("en-valid-10k", "qa1_train.txt")):
        folder = tmp_path / "tasks_1-20_v1-2" / variant
        folder.mkdir(parents=True)
        (folder / name).write_text(STORY if variant == "en" else STORY + STORY)
    assert len(read_babi(tmp_path, "train")[1]) == 2
    assert len(read_babi(tmp_path / "tasks_1-20_v1-2/en", "train")[1]) == 1
    archive = tmp_path / "babi.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(tmp_path / "tasks_1-20_v1-2", "tasks_1-20_v1-2")
    assert read_babi(archive, "train") == read_babi(tmp_path, "train")
    with pytest.raises(InputError, match="no bAbI valid files"):
        read_babi(archive, "valid")
    with pytest.raises(InputError, match="no train file of task 2"):
        read_babi(archive, "train", tasks=[1, 2])
    with pytest.raises(InputError, match="unknown split 'dev'"):
        read_babi(archive, "dev")
    with pytest.raises(InputError, match="no such folder"):
        read_babi(tmp_path / "nowhere", "train")
    (tmp_path / "broken.tar.gz").write_bytes(archive.read_bytes()[:100])
    with pytest.raises(InputError, match="not a readable tar archive"):
        read_babi(tmp_path / "broken.tar.gz", "train")


@settings(max_examples=60, deadline=None)
@given(task=st.sampled_from(TASKS), seed=st.integers(0, 10**9), questions=st.integers(1, 30))
def test_what_is_written_is_read(task: int, seed: int, questions: int) -> None:
    stories = list(cut(generate_stories(task, seed), questions))
    assert sum(len(story.questions) for story in stories) == questions
    assert parse_stories("".join(map(story_text, stories)), task, "text") == stories


@pytest.mark.parametrize("task", TASKS)
def test_the_space_before_the_tab_is_as_released(task: int) -> None:
    text = story_text(next(generate_stories(task, seed=0)))
    assert ("? \t" in text) == (task in {1, 2, 3, *range(5, 15)})
    assert ("?\t" in text) == (task in {4, *range(15, 21)})
