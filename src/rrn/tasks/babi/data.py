"""bAbI as integer arrays: each distinct sentence is stored once, questions are indices of sentences.

All of bAbI has a few thousand distinct sentences. `SentenceTable` assigns indices, which stay fixed while it grows.
Generated data is encoded chunk by chunk with one table::

    questions = EndlessQuestions(seed=0)          or  encode(read_babi(folder, "train"), SentenceTable())
    chunk = questions.take(1000)                  1000 questions of each task
    batch = chunk.batch(rows, max_facts=20)       tensors, the input of a network
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rrn.errors import InputError
from rrn.io.datasets import SIDECAR
from rrn.io.files import write_atomically, write_json
from rrn.tasks.babi.fewer_hops import FEWER_HOPS_TASKS, with_fewer_hops
from rrn.tasks.babi.generator import GENERATOR_VERSION, generate_stories
from rrn.tasks.babi.reader import SPLITS
from rrn.tasks.babi.stories import TASKS, Story, cut, story_text
from rrn.tasks.babi.unanswerable import extended_stories
from rrn.tasks.babi.vocabulary import answer_id, word_ids
from rrn.training.experiment import Batch

MAX_FACTS = 20
"""Facts before the question that the paper's network reads."""
MIN_WIDTH = 12
"""Least number of words per sentence of the table; bAbI's longest sentence has 11."""
NO_SENTENCE = 0
SHORTENED = (2, 16, 18, 19)
"""Tasks whose supporting facts alone imply the answer, among other facts, so that `shorten` may drop these."""


class _Indices(dict[str, int]):
    """The index of each sentence. A new sentence gets the index of its words, which is new if they are."""

    def __init__(self, of_words: dict[tuple[int, ...], int]) -> None:
        self._of_words = of_words

    def __missing__(self, sentence: str) -> int:
        self[sentence] = index = self._of_words.setdefault(tuple(word_ids(sentence)), len(self._of_words))
        return index


class SentenceTable:
    """Distinct sentences with indices from 1 in order of insertion. Index 0 is the empty sentence, used as padding.

    Sentences with the same words are equal; case and punctuation are ignored.
    """

    def __init__(self) -> None:
        self._index_of_words: dict[tuple[int, ...], int] = {(): NO_SENTENCE}
        self.index: Callable[[str], int] = _Indices(self._index_of_words).__getitem__
        """The index of a sentence. New sentences are added."""
        self._words = torch.empty(0, MIN_WIDTH, dtype=torch.int64)

    def __len__(self) -> int:
        """The number of sentences, including the empty one."""
        return len(self._index_of_words)

    @property
    def words(self) -> Tensor:
        """(sentences, width): word index + 1 of each word, padded with 0. Computed again only after the table grew."""
        if len(self._words) != len(self):
            width = max(MIN_WIDTH, *map(len, self._index_of_words))
            words = np.zeros((len(self), width), dtype=np.int64)
            for index, sentence in enumerate(self._index_of_words):
                words[index, : len(sentence)] = sentence
                words[index, : len(sentence)] += 1
            self._words = torch.from_numpy(words)
        return self._words


@dataclass(frozen=True)
class EncodedQuestions:
    """n questions. Questions of one story share its facts.

    ``story_facts`` (all facts of all stories,) int32: sentence indices in ``table``; the facts before question i are
    ``story_facts[starts[i]:ends[i]]``. ``questions`` (n,): sentence indices; ``answers`` (n,): word indices; ``tasks``
    (n,): 1 to 20. The supporting facts of question i are ``support_facts[support_starts[i]:support_ends[i]]``, as
    positions in ``story_facts``.
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
        """The questions of these rows as tensors, each with its last facts, F or fewer, oldest first.

        F is the largest number of facts among the questions, at most ``max_facts``. The question is the last sentence.

        ``sentences`` (n, F + 1): indices in ``table``; ``words`` (n, F + 1, words): word index + 1, padded with 0;
        ``fact_counts`` (n,): facts of each question; ``support`` (n, F): k for the k-th supporting fact, else 0;
        ``answers`` (n,): word indices; ``tasks`` (n,): 1 to 20.
        """
        starts, ends = self.starts[rows], self.ends[rows]
        counts = np.minimum(ends - starts, max_facts)
        columns = np.arange(counts.max(initial=1))
        positions = (ends - counts)[:, None] + columns
        facts = self.story_facts[np.minimum(positions, len(self.story_facts) - 1)].astype(np.int64)
        facts[columns >= counts[:, None]] = NO_SENTENCE
        sentences = torch.from_numpy(np.concatenate([facts, self.questions[rows, None]], axis=1))
        return {
            "sentences": sentences,
            "words": self.table.words[sentences],
            "fact_counts": torch.from_numpy(counts),
            "support": torch.from_numpy(self._support(rows, ends - counts, facts.shape)),
            "answers": torch.from_numpy(self.answers[rows].astype(np.int64)),
            "tasks": torch.from_numpy(self.tasks[rows].astype(np.int64)),
        }

    def _support(self, rows: np.ndarray | slice, first_facts: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """``support`` of `batch`; ``first_facts`` are the positions of the first facts in the batch."""
        starts = self.support_starts[rows]
        counts = self.support_ends[rows] - starts
        row = np.repeat(np.arange(len(counts)), counts)
        rank = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        column = self.support_facts[np.repeat(starts, counts) + rank] - first_facts[row]
        present = column >= 0
        support = np.zeros(shape, dtype=np.int64)
        support[row[present], column[present]] = rank[present] + 1
        return support

    def batches(self, size: int, max_facts: int = MAX_FACTS) -> Iterator[Batch]:
        """All questions in order, for evaluation."""
        for start in range(0, len(self), size):
            yield self.batch(slice(start, start + size), max_facts)

    def first(self, count: int) -> "EncodedQuestions":
        """The first ``count`` questions, distributed evenly over the tasks."""
        turn = np.concatenate([np.arange(len(rows)) for rows in self.rows_by_task.values()])
        return self.only(np.sort(self._rows_in_task_order[np.argsort(turn, kind="stable")[:count]]))

    def window(self, questions_per_task: Mapping[int, int], turn: int) -> "EncodedQuestions":
        """The ``turn``-th window of questions: so many of each task, or all of them, cyclically."""
        rows = []
        for task, count in questions_per_task.items():
            of_task = self.rows_by_task[task]
            rows.append(np.take(of_task, turn * count + np.arange(min(count, len(of_task))), mode="wrap"))
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
        """A random batch with replacement: draw a task by weight (default: uniform), then a question of the task.

        ``shortest`` restricts each task to this share of its questions, those with the fewest facts.
        """
        tasks = list(self.rows_by_task)
        weights = np.array([1.0 if task_weights is None else task_weights.get(task, 0.0) for task in tasks])
        if weights.sum() <= 0:
            raise InputError("task_weights: expected a weight above 0 for at least one task, got none")
        sizes = np.array([len(self.rows_by_task[task]) for task in tasks])
        first = np.cumsum(sizes) - sizes
        drawn = rng.choice(len(tasks), size=size, p=weights / weights.sum())
        rows, among = self._rows_in_task_order, sizes
        if shortest is not None:
            rows, among = self._rows_by_length, np.ceil(sizes * [shortest[task] for task in tasks])
        within = (rng.random(size) * among[drawn]).astype(np.int64)
        return self.batch(rows[first[drawn] + within], max_facts)

    @cached_property
    def _rows_in_task_order(self) -> np.ndarray:
        return np.concatenate(list(self.rows_by_task.values()))

    @cached_property
    def _rows_by_length(self) -> np.ndarray:
        """Sorted by task, then by number of facts."""
        facts = self.ends - self.starts
        return np.concatenate([rows[np.argsort(facts[rows], kind="stable")] for rows in self.rows_by_task.values()])


def shorten(batch: Batch, table: SentenceTable, share: float, rng: np.random.Generator) -> Batch:
    """Drop facts that do not support the answer, in a ``share`` of the questions of `SHORTENED` tasks.

    Each of these facts is kept with a probability that is drawn for its question, from 0 to 1.
    """
    support, counts = batch["support"].numpy(), batch["fact_counts"].numpy()
    exists = np.arange(support.shape[1]) < counts[:, None]
    chosen = (rng.random(len(counts)) < share) & np.isin(batch["tasks"].numpy(), SHORTENED) & support.any(1)
    kept = exists & ((support > 0) | ~chosen[:, None] | (rng.random(support.shape) < rng.random((len(counts), 1))))
    counts = kept.sum(1)
    order = torch.from_numpy(np.argsort(~kept, axis=1, kind="stable")[:, : counts.max(initial=1)])
    absent = torch.arange(order.shape[1]) >= torch.from_numpy(counts)[:, None]
    facts = batch["sentences"][:, :-1].gather(1, order).masked_fill(absent, NO_SENTENCE)
    sentences = torch.cat([facts, batch["sentences"][:, -1:]], dim=1)
    return batch | {
        "sentences": sentences,
        "words": table.words[sentences],
        "fact_counts": torch.from_numpy(counts),
        "support": batch["support"].gather(1, order).masked_fill(absent, 0),
    }


def encode(stories: Iterable[Story] | Mapping[int, Iterable[Story]], table: SentenceTable) -> EncodedQuestions:
    """Every question of the stories, in order. New sentences are added to the table."""
    if isinstance(stories, Mapping):
        stories = chain.from_iterable(stories.values())
    story_facts: list[int] = []
    support_facts: list[int] = []
    rows: list[int] = []
    """Seven numbers for each question."""
    answer_ids: dict[str, int] = {}
    for story in stories:
        start = len(story_facts)
        story_facts += map(table.index, story.facts)
        for text, answer, support, facts in story.questions:
            if answer not in answer_ids:
                answer_ids[answer] = answer_id(answer)
            first = len(support_facts)
            support_facts += [start + fact for fact in support]
            rows += (start, start + facts, table.index(text), answer_ids[answer], story.task, first, len(support_facts))
    columns = np.array(rows, dtype=np.int64).reshape(-1, 7).T
    starts, ends, questions, answers, tasks, support_starts, support_ends = map(np.ascontiguousarray, columns)
    return EncodedQuestions(
        table=table,
        story_facts=np.array(story_facts or [NO_SENTENCE], dtype=np.int32),
        starts=starts,
        ends=ends,
        questions=questions.astype(np.int32),
        answers=answers.astype(np.int16),
        tasks=tasks.astype(np.int8),
        support_facts=np.array(support_facts, dtype=np.int64),
        support_starts=support_starts,
        support_ends=support_ends,
    )


class EndlessQuestions:
    """An endless stream of generated questions, encoded with one growing table; deterministic for a seed."""

    def __init__(
        self,
        seed: int,
        tasks: Iterable[int] = TASKS,
        table: SentenceTable | None = None,
        stream: int = 0,
        unanswerable_share: float = 0.0,
        varied_share: float = 0.0,
        composed_share: float = 0.0,
        fewer_hops_share: float = 0.0,
    ) -> None:
        """The shares are those of `rrn.tasks.babi.unanswerable.extended_stories` and `with_fewer_hops`."""
        self.table = SentenceTable() if table is None else table
        self._stories = {
            task: extended_stories(task, seed, stream, unanswerable_share, varied_share, composed_share)
            if unanswerable_share or varied_share or composed_share
            else generate_stories(task, seed, stream)
            for task in tasks
        }
        if fewer_hops_share:
            for task in self._stories.keys() & FEWER_HOPS_TASKS:
                self._stories[task] = with_fewer_hops(self._stories[task], seed, stream, fewer_hops_share)

    def take(self, questions_per_task: int | Mapping[int, int]) -> EncodedQuestions:
        """The next questions, sorted by task; a number for all tasks or one for each."""
        if isinstance(questions_per_task, int):
            counts: Mapping[int, int] = dict.fromkeys(self._stories, questions_per_task)
        else:
            counts = questions_per_task
        parts = (cut(self._stories[task], count) for task, count in counts.items() if count > 0)
        return encode(chain.from_iterable(parts), self.table)


def write_babi(
    folder: str | Path,
    questions_per_task: Mapping[str, int],
    seed: int = 0,
    progress: Callable[[int, int], Any] = lambda done, total: None,
) -> dict[str, Any]:
    """Write generated ``qaN_<split>.txt`` files of all 20 tasks in the official format, and a JSON sidecar.

    ``questions_per_task`` maps each split to its number of questions per task. ``progress`` is called with the number
    of files written and the total. The sidecar is written last and returned: the seed, the counts and each file's
    SHA-256.
    """
    counts = {split: questions_per_task[split] for split in SPLITS if questions_per_task.get(split)}
    if not counts:
        raise InputError("no questions to write; give at least one split a number above 0")
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: expected a folder, got a file")
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
