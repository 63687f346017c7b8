"""A timetable, declared as constraints: lessons get slots and rooms, and no teacher or class has two at once.

Every lesson has a class, a teacher and rooms that suit it, and its teacher is not there all week. In every slot each
class has a lesson, so all rooms are always in use. Some lessons are fixed: as few as leave one solution. Trained on
4 classes and 5 slots, tested on these and on 5 classes and 6 slots; every problem is a school of its own.

    python examples/timetable.py
"""

import numpy as np
import torch

from rrn.constraints import Constraints, Problem, Solver

SUITS, THERE = 0.6, 0.6
"""The chance that a room suits a lesson, and that a teacher is there in a slot, beside those of the answer."""


def school(classes: int, slots: int, rng: np.random.Generator) -> Problem:
    """A random school that has a timetable: there are as many rooms and teachers as classes."""
    hidden = {}  # (class, number of its lesson) → slot, room, teacher
    for slot in range(slots):
        rooms, teachers = rng.permutation(classes).tolist(), rng.permutation(classes).tolist()
        hidden |= {(c, slot): (slot, rooms[c], teachers[c]) for c in range(classes)}
    teacher_of = {lesson: teacher for lesson, (_, _, teacher) in hidden.items()}
    suits = {lesson: rng.random(classes) < SUITS for lesson in hidden}
    there = {lesson: rng.random(slots) < THERE for lesson in hidden}
    for lesson, (slot, room, _) in hidden.items():
        suits[lesson][room] = there[lesson][slot] = True
    constraints = Constraints(
        [
            (lesson, slot, room)
            for lesson in hidden
            for slot in range(slots)
            for room in range(classes)
            if suits[lesson][room] and there[lesson][slot]
        ],
        exactly={
            "lesson": lambda c: c[0],
            "room": lambda c: (c[1], c[2]),
            "class": lambda c: (c[1], c[0][0]),
        },
        at_most={"teacher": lambda c: (c[1], teacher_of[c[0]])},
    )
    return constraints.dig(rng, answer=[(lesson, slot, room) for lesson, (slot, room, _) in hidden.items()])


def train(updates: int, classes: int = 4, slots: int = 5, seed: int = 0) -> Solver:
    def report(update: int, extra: float, solved: float) -> None:
        if update % 100 == 0:
            print(f"update {update:5}  extra givens up to {extra:.0%}  solved {solved:.0%}", flush=True)

    example = school(classes, slots, np.random.default_rng(seed)).constraints
    return example.fit(lambda rng: school(classes, slots, rng), updates=updates, seed=seed, callback=report)


def main(updates: int = 800, count: int = 200) -> dict[str, dict[str, object]]:
    solver = train(updates)
    results: dict[str, dict[str, object]] = {}
    for classes, slots in ((4, 5), (5, 6)):
        rng = np.random.default_rng(1_000_000)
        problems = [school(classes, slots, rng) for _ in range(count)]
        found = solver.solve(problems)
        results[f"{classes} classes, {slots} slots"] = {
            "n": count,
            "lessons": classes * slots,
            "fixed": float(np.mean([len(problem.given) for problem in problems])),
            "solved_by_attempts": found.solved_by_attempts(),
        }
    return results


if __name__ == "__main__":
    torch.set_num_threads(1)  # the problems are small, and other programs may use the cores
    print(main())
