"""bAbI as integer arrays: distinct sentences once, questions as indices of sentences; and data sets on disk.

All of bAbI has a few thousand distinct sentences. `SentenceTable` numbers them, and keeps its numbers as it grows, so
that endless generated data can be encoded chunk by chunk against one table::

    questions = EndlessQuestions(seed=0)          or  encode(read_babi(folder, "train"), SentenceTable())
    chunk = questions.take(1000)                  1000 questions of each task
    batch = chunk.batch(rows, max_facts=20)       arrays, ready for a network
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from rrn.errors import InputError
from rrn.io.datasets import SIDECAR
from rrn.io.files import write_atomically, write_json
from rrn.tasks.babi.generator import GENERATOR_VERSION, generate_stories
from rrn.tasks.babi.limits import widened
from rrn.tasks.babi.reader import SPLITS
from rrn.tasks.babi.stories import TASKS, Story, cut, story_text
from rrn.tasks.babi.vocabulary import answer_id, word_ids

MAX_FACTS = 20
"""The paper keeps this many facts before the question."""
MIN_WIDTH = 12
"""Words a sentence of the table has room for; more only if a longer sentence comes along. bAbI's longest has 11."""
NO_SENTENCE = 0

OFFICIAL_COUNTS = {"train": 9000, "valid": 1000, "test": 1000}


class SentenceTable:
    """Distinct sentences, numbered from 1 as they come; number 0 is the empty sentence, which stands for padding.

    Sentences count as the same if their words are: case and punctuation do not matter.
    """

    def __init__(self) -> None:
        self._number_of_text: dict[str, int] = _Numbering(self)
        self._number_of_words: dict[tuple[int, ...], int] = {(): NO_SENTENCE}
        self._words: np.ndarray | None = None

    def __len__(self) -> int:
        """How many sentences, the empty one included."""
        return len(self._number_of_words)

    def number(self, sentence: str) -> int:
        """The sentence's number, new if the sentence is."""
        return self._number_of_text[sentence]

    def numbers(self, sentences: Iterable[str]) -> list[int]:
        return list(map(self._number_of_text.__getitem__, sentences))

    def add(self, sentence: str) -> int:
        words = tuple(word_ids(sentence))
        return self._number_of_words.setdefault(words, len(self._number_of_words))

    @property
    def words(self) -> np.ndarray:
        """(sentences, width) int16: word numbers, 0 after the sentence's end (see `lengths`)."""
        if self._words is None or len(self._words) != len(self):
            width = max(MIN_WIDTH, *map(len, self._number_of_words))
            self._words = np.zeros((len(self), width), dtype=np.int16)
            for number, words in enumerate(self._number_of_words):
                self._words[number, : len(words)] = words
        return self._words

    @property
    def lengths(self) -> np.ndarray:
        """(sentences,) int16: words in each sentence."""
        return np.fromiter(map(len, self._number_of_words), dtype=np.int16, count=len(self))


class _Numbering(dict[str, int]):
    """Text to number; a text not met before goes through its words."""

    def __init__(self, table: SentenceTable) -> None:
        super().__init__()
        self.table = table

    def __missing__(self, sentence: str) -> int:
        self[sentence] = number = self.table.add(sentence)
        return number


@dataclass(frozen=True)
class Batch:
    """Questions side by side, b of them, each with its last F facts.

    ``facts`` (b, F): sentence numbers, oldest first, then `NO_SENTENCE`; ``fact_counts`` (b,): how many are facts;
    ``facts_before`` (b,): how many facts the story had, those left out included; ``questions`` (b,): sentence
    numbers; ``answers`` (b,): word numbers; ``tasks`` (b,): 1 to 20; ``support`` (b, F): k where a fact is the k-th
    supporting fact of its question in the file's order, else 0. All int64.
    """

    facts: np.ndarray
    fact_counts: np.ndarray
    facts_before: np.ndarray
    questions: np.ndarray
    answers: np.ndarray
    tasks: np.ndarray
    support: np.ndarray

    @cached_property
    def is_fact(self) -> np.ndarray:
        """(b, F) bool: false on padding."""
        return np.arange(self.facts.shape[1]) < self.fact_counts[:, None]

    @cached_property
    def positions(self) -> np.ndarray:
        """(b, F): 1 for the oldest fact kept, 2 for the next ...; 0 on padding."""
        return np.where(self.is_fact, np.arange(1, self.facts.shape[1] + 1), 0)


@dataclass(frozen=True)
class EncodedQuestions:
    """n questions; those of a story share its facts, so any number of last facts can be had at batch time.

    ``story_facts`` (all facts of all stories,) int32: sentence numbers in ``table``; the facts before question i are
    ``story_facts[starts[i]:ends[i]]``. ``questions``, ``answers``, ``tasks`` (n,) as in `Batch`. The places in
    ``story_facts`` of its supporting facts are ``support_facts[support_starts[i]:support_ends[i]]``.
    """

    table: SentenceTable = field(repr=False)
    story_facts: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    questions: np.ndarray
    answers: np.ndarray
    tasks: np.ndarray
    support_facts: np.ndarray
    support_starts: np.ndarray
    support_ends: np.ndarray

    def __len__(self) -> int:
        return len(self.questions)

    def batch(self, rows: np.ndarray | slice, max_facts: int = MAX_FACTS) -> Batch:
        """The questions of these rows. F is the largest number of facts among them, at most ``max_facts``."""
        starts, ends = self.starts[rows], self.ends[rows]
        facts_before = ends - starts
        counts = np.minimum(facts_before, max_facts)
        columns = np.arange(counts.max(initial=1))
        places = (ends - counts)[:, None] + columns
        facts = self.story_facts[np.minimum(places, len(self.story_facts) - 1)].astype(np.int64)
        facts[columns >= counts[:, None]] = NO_SENTENCE
        return Batch(
            facts=facts,
            fact_counts=counts,
            facts_before=facts_before,
            questions=self.questions[rows].astype(np.int64),
            answers=self.answers[rows].astype(np.int64),
            tasks=self.tasks[rows].astype(np.int64),
            support=self._support(rows, ends - counts, facts.shape),
        )

    def _support(self, rows: np.ndarray | slice, first_facts: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """`Batch.support`; ``first_facts`` are the places of the first facts kept."""
        starts = self.support_starts[rows]
        counts = self.support_ends[rows] - starts
        row = np.repeat(np.arange(len(counts)), counts)
        rank = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        column = self.support_facts[np.repeat(starts, counts) + rank] - first_facts[row]
        kept = column >= 0
        support = np.zeros(shape, dtype=np.int64)
        support[row[kept], column[kept]] = rank[kept] + 1
        return support

    def batches(self, size: int, max_facts: int = MAX_FACTS) -> Iterator[Batch]:
        """All questions in order, for evaluation."""
        for start in range(0, len(self), size):
            yield self.batch(slice(start, start + size), max_facts)

    def first(self, count: int) -> "EncodedQuestions":
        """The first questions of each task, ``count`` or all there are in all, as evenly as they come."""
        turn = np.concatenate([np.arange(len(rows)) for rows in self.rows_by_task.values()])
        return self.only(np.sort(self._rows_in_task_order[np.argsort(turn, kind="stable")[:count]]))

    def window(self, questions_per_task: Mapping[int, int], turn: int) -> "EncodedQuestions":
        """So many questions of each task, or all there are: others at every turn, until all have had theirs."""
        rows = []
        for task, count in questions_per_task.items():
            mine = self.rows_by_task[task]
            rows.append(np.take(mine, turn * count + np.arange(min(count, len(mine))), mode="wrap"))
        return self.only(np.concatenate(rows))

    def only(self, rows: np.ndarray) -> "EncodedQuestions":
        """The questions of these rows."""
        arrays = ("starts", "ends", "questions", "answers", "tasks", "support_starts", "support_ends")
        return replace(self, **{name: getattr(self, name)[rows] for name in arrays})

    @cached_property
    def rows_by_task(self) -> dict[int, np.ndarray]:
        return {int(task): np.flatnonzero(self.tasks == task) for task in np.unique(self.tasks)}

    def sample(
        self,
        rng: np.random.Generator,
        size: int,
        max_facts: int = MAX_FACTS,
        task_weights: Mapping[int, float] | None = None,
        shortest: Mapping[int, float] | None = None,
    ) -> Batch:
        """A random batch with replacement: for each question a task drawn by weight (all alike if none are given),
        then a question of that task: of those with the fewest facts, if their share of the task's is given."""
        tasks = list(self.rows_by_task)
        weights = np.array([1.0 if task_weights is None else task_weights.get(task, 0.0) for task in tasks])
        if weights.sum() <= 0:
            raise InputError("no task has a weight above zero, so there is nothing to sample")
        sizes = np.array([len(self.rows_by_task[task]) for task in tasks])
        first = np.cumsum(sizes) - sizes
        drawn = rng.choice(len(tasks), size=size, p=weights / weights.sum())
        if shortest is None:
            within = (rng.random(size) * sizes[drawn]).astype(np.int64)
            return self.batch(self._rows_in_task_order[first[drawn] + within], max_facts)
        among = np.ceil(sizes * [shortest[task] for task in tasks])
        within = (rng.random(size) * among[drawn]).astype(np.int64)
        return self.batch(self._rows_by_length[first[drawn] + within], max_facts)

    @cached_property
    def _rows_in_task_order(self) -> np.ndarray:
        return np.concatenate(list(self.rows_by_task.values()))

    @cached_property
    def _rows_by_length(self) -> np.ndarray:
        """In the order of the tasks, within each those with the fewest facts first."""
        facts = self.ends - self.starts
        return np.concatenate([rows[np.argsort(facts[rows], kind="stable")] for rows in self.rows_by_task.values()])


def encode(stories: Iterable[Story] | Mapping[int, Iterable[Story]], table: SentenceTable) -> EncodedQuestions:
    """Every question of the stories, in order. New sentences are added to the table."""
    if isinstance(stories, Mapping):
        stories = chain.from_iterable(stories.values())
    story_facts: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    questions: list[int] = []
    answers: list[int] = []
    tasks: list[int] = []
    support_facts: list[int] = []
    support_starts: list[int] = []
    support_ends: list[int] = []
    answer_ids: dict[str, int] = {}
    for story in stories:
        start = len(story_facts)
        story_facts += table.numbers(story.facts)
        for text, answer, support, facts in story.questions:
            support_starts.append(len(support_facts))
            support_facts += [start + fact for fact in support]
            support_ends.append(len(support_facts))
            starts.append(start)
            ends.append(start + facts)
            questions.append(table.number(text))
            if answer not in answer_ids:
                answer_ids[answer] = answer_id(answer)
            answers.append(answer_ids[answer])
            tasks.append(story.task)
    return EncodedQuestions(
        table=table,
        story_facts=np.array(story_facts or [NO_SENTENCE], dtype=np.int32),
        starts=np.array(starts, dtype=np.int64),
        ends=np.array(ends, dtype=np.int64),
        questions=np.array(questions, dtype=np.int32),
        answers=np.array(answers, dtype=np.int16),
        tasks=np.array(tasks, dtype=np.int8),
        support_facts=np.array(support_facts, dtype=np.int64),
        support_starts=np.array(support_starts, dtype=np.int64),
        support_ends=np.array(support_ends, dtype=np.int64),
    )


class EndlessQuestions:
    """Generated questions, ever new, encoded against one growing table. The same seed and calls give the same."""

    def __init__(
        self,
        seed: int,
        tasks: Iterable[int] = TASKS,
        table: SentenceTable | None = None,
        stream: int = 0,
        unanswerable: float = 0.0,
        everyday: float = 0.0,
    ) -> None:
        """``unanswerable`` and ``everyday`` are shares of the questions, see `rrn.tasks.babi.limits.widened`."""
        self.table = SentenceTable() if table is None else table
        self._stories = {
            task: widened(task, seed, stream, unanswerable, everyday)
            if unanswerable or everyday
            else generate_stories(task, seed, stream)
            for task in tasks
        }

    def take(self, questions_per_task: int | Mapping[int, int]) -> EncodedQuestions:
        """The next questions: as many of each task, or as many as each is mapped to. Ordered by task: sample them."""
        if isinstance(questions_per_task, int):
            counts: Mapping[int, int] = dict.fromkeys(self._stories, questions_per_task)
        else:
            counts = questions_per_task
        parts = (cut(self._stories[task], count) for task, count in counts.items() if count > 0)
        return encode(chain.from_iterable(parts), self.table)


def write_babi(
    folder: str | Path,
    questions_per_task: Mapping[str, int] | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Write generated ``qaN_<split>.txt`` files of all 20 tasks in the official format, and a JSON sidecar.

    ``questions_per_task`` says how many questions of each task go into each split (as many as the official files if
    not given). ``progress`` is called with the number of files written and to be written. The sidecar is written
    last, holds the seed, the counts and each file's SHA-256, and is returned.
    """
    counts = dict(OFFICIAL_COUNTS if questions_per_task is None else questions_per_task)
    for split, count in counts.items():
        if split not in SPLITS:
            raise InputError(f"{split!r} is no part of bAbI; there are {', '.join(SPLITS)}")
        if count < 0:
            raise InputError(f"{split}: a number of questions is 0 or more, not {count}")
    counts = {split: counts[split] for split in SPLITS if counts.get(split)}
    if not counts:
        raise InputError("no questions to write: give one split at least a number above 0")
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder to write the data set to")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SIDECAR).unlink(missing_ok=True)
    files: dict[str, dict[str, Any]] = {}
    for split, count in counts.items():
        for task in TASKS:
            stories = list(cut(generate_stories(task, seed, stream=SPLITS.index(split)), count))
            text = "".join(map(story_text, stories))
            name = f"qa{task}_{split}.txt"
            write_atomically(folder / name, text)
            files[name] = {
                "questions": count,
                "stories": len(stories),
                "sha256": hashlib.sha256(text.encode()).hexdigest(),
            }
            if progress is not None:
                progress(len(files), len(counts) * len(TASKS))
    about = {
        "task": "babi",
        "generator_version": GENERATOR_VERSION,
        "seed": seed,
        "questions_per_task": counts,
        "files": files,
    }
    write_json(folder / SIDECAR, about)
    return about
