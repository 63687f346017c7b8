"""Generator of the 20 bAbI tasks, with the same distribution as the released data (version 1.2)."""

from collections.abc import Callable, Iterator
from random import Random

import numpy as np

from rrn.errors import InputError
from rrn.tasks.babi import carrying, moving, puzzles
from rrn.tasks.babi.stories import Story

GENERATOR_VERSION = 1
"""Increases whenever the same seed gives other stories."""

STORY_MAKERS: dict[int, Callable[[Random], Story]] = {
    1: moving.single_supporting_fact,
    2: carrying.two_supporting_facts,
    3: carrying.three_supporting_facts,
    4: puzzles.two_arg_relations,
    5: carrying.three_arg_relations,
    6: carrying.yes_no_questions,
    7: carrying.counting,
    8: carrying.lists_sets,
    9: moving.simple_negation,
    10: moving.indefinite_knowledge,
    11: moving.basic_coreference,
    12: moving.conjunction,
    13: moving.compound_coreference,
    14: moving.time_reasoning,
    15: puzzles.basic_deduction,
    16: puzzles.basic_induction,
    17: puzzles.positional_reasoning,
    18: puzzles.size_reasoning,
    19: puzzles.path_finding,
    20: puzzles.agents_motivations,
}


def generate_stories(task: int, seed: int, stream: int = 0) -> Iterator[Story]:
    """An endless stream of stories of a task. Streams of a seed (e.g. train, valid, test) are independent."""
    if task not in STORY_MAKERS:
        raise InputError(f"task: expected 1 to 20, got {task}")
    if seed < 0:
        raise InputError(f"seed: expected 0 or more, got {seed}")
    make_story = STORY_MAKERS[task]
    state = np.random.SeedSequence(seed, spawn_key=(stream, task)).generate_state(8)
    random = Random(int.from_bytes(state.astype("<u4").tobytes(), "little"))
    while True:
        yield make_story(random)
