"""Generator of the 20 bAbI tasks, with the same distribution as the released data (version 1.2)."""

from collections.abc import Callable, Iterator
from functools import partial
from random import Random

import numpy as np

from rrn.errors import InputError
from rrn.tasks.babi import carrying, moving, puzzles
from rrn.tasks.babi.carrying import Setting
from rrn.tasks.babi.stories import Story
from rrn.tasks.babi.worlds import ACTORS, GIVERS

GENERATOR_VERSION = 1
"""Increases whenever the same seed gives other stories."""

CARRYING = Setting(ACTORS)

STORY_MAKERS: dict[int, Callable[[Random], Story]] = {
    1: partial(moving.make_story, 1, moving.act_plainly, moving.ask_where),
    2: partial(carrying.make_story, 2, CARRYING, carrying.ask_where_thing_is),
    3: partial(carrying.make_story, 3, Setting(ACTORS, there_after_get=0.2), carrying.ask_where_thing_was),
    4: puzzles.two_arg_relations,
    5: partial(carrying.make_story, 5, Setting(GIVERS, kinds=4), carrying.ask_about_give),
    6: partial(carrying.make_story, 6, CARRYING, carrying.ask_whether_in_place),
    7: partial(carrying.make_story, 7, Setting(ACTORS, kinds=4), carrying.ask_how_many),
    8: partial(carrying.make_story, 8, CARRYING, carrying.ask_what_carried),
    9: partial(moving.make_story, 9, moving.act_with_negation, moving.ask_after_negation),
    10: partial(moving.make_story, 10, moving.act_with_alternative, moving.ask_after_alternative),
    11: partial(moving.make_story, 11, moving.act_with_pronoun, moving.ask_where),
    12: partial(moving.make_story, 12, moving.act_in_pairs, moving.ask_where),
    13: partial(moving.make_story, 13, moving.act_in_pairs_with_pronoun, moving.ask_where),
    14: moving.time_reasoning,
    15: puzzles.basic_deduction,
    16: puzzles.basic_induction,
    17: puzzles.positional_reasoning,
    18: puzzles.size_reasoning,
    19: puzzles.path_finding,
    20: puzzles.agents_motivations,
}
"""What makes a story of each task; their names are `rrn.tasks.babi.stories.TASK_NAMES`."""


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
