"""Does the stated answer follow from the story? A little reasoner that knows English, not the generator.

It reads facts and question as text. `answer` returns the answer that follows, or None if nothing does. Exceptions of
the released data, and so of the generator: a question of task 5 may be ambiguous (the latest giving is then not always
the one meant), and in task 16 animals of one kind may differ in colour.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from rrn.tasks.babi.data import SHORTENED
from rrn.tasks.babi.generator import generate_stories
from rrn.tasks.babi.reader import read_babi
from rrn.tasks.babi.stories import TASKS, Question, Story, cut

OFFICIAL = Path(__file__).parents[4] / "shared/data/babi/en-valid-10k-train-valid.tar.gz"
GENERATED_QUESTIONS = 1500

MOVE = re.compile(
    r"(?:(?:Afterwards|After that|Following that|Then) )?(.+) (?:went|went back|journeyed|moved|travelled) to the (\w+)"
)
GET = re.compile(r"(\w+) (?:picked up|got|took|grabbed) the (\w+)(?: there)?")
DROP = re.compile(r"(\w+) (?:dropped|left|discarded|put down) the (\w+)(?: there)?")
GIVE = re.compile(r"(\w+) (?:gave|handed|passed) the (\w+) to (\w+)")
IS_IN = re.compile(r"(\w+) is in the (\w+)")
IS_NOT_IN = re.compile(r"(\w+) is (?:not|no longer) in the (\w+)")
EITHER = re.compile(r"(\w+) is either in the (\w+) or the (\w+)")
SLOTS = {"yesterday": 0, "this morning": 1, "this afternoon": 2, "this evening": 3}
TIMED = re.compile(
    rf"(?:({'|'.join(SLOTS)}) )?(\w+) \w+(?: back)? to the (\w+)(?: ({'|'.join(SLOTS)}))?", re.IGNORECASE
)
STEPS = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}
STEPS |= {"above": (0, 1), "below": (0, -1), "to the right of": (1, 0), "to the left of": (-1, 0)}
RELATED = re.compile(
    r"The ([a-z ]+?) is (north|south|east|west|above|below|to the right of|to the left of)(?: of)? the ([a-z ]+)"
)
SINGULAR = {"mice": "mouse", "sheep": "sheep", "wolves": "wolf", "cats": "cat"}
GOAL = {"hungry": "kitchen", "thirsty": "kitchen", "bored": "garden", "tired": "bedroom"}
NUMBER = {0: "none", 1: "one", 2: "two", 3: "three"}


class Diary:
    """What a reader of the facts knows of people and things."""

    def __init__(self, facts: Iterable[str]) -> None:
        self.where: dict[str, set[str]] = {}
        """Where each person may be; absent: anywhere."""
        self.not_where: dict[str, str] = {}
        self.trail: dict[str, list[str]] = defaultdict(list)
        """Known places of each thing, in order."""
        self.holder: dict[str, str] = {}
        self.ever_had: dict[str, list[str]] = defaultdict(list)
        self.gifts: list[tuple[str, str, str]] = []
        self.subjects: list[str] = []
        for fact in facts:
            self.read(fact.rstrip("."))

    def place_of(self, person: str) -> str | None:
        places = self.where.get(person, set())
        return next(iter(places)) if len(places) == 1 else None

    def seen(self, thing: str, place: str | None) -> None:
        if place is not None and self.trail[thing][-1:] != [place]:
            self.trail[thing].append(place)

    def arrive(self, person: str, places: set[str]) -> None:
        self.where[person] = places
        self.not_where.pop(person, None)
        for thing, holder in self.holder.items():
            if holder == person:
                self.seen(thing, self.place_of(person))

    def acquire(self, person: str, thing: str) -> None:
        self.holder[thing] = person
        if thing not in self.ever_had[person]:
            self.ever_had[person].append(thing)
        self.seen(thing, self.place_of(person))

    def read(self, fact: str) -> None:
        if match := EITHER.fullmatch(fact):
            self.arrive(match[1], {match[2], match[3]})
        elif match := IS_NOT_IN.fullmatch(fact):
            self.where.pop(match[1], None)
            self.not_where[match[1]] = match[2]
        elif match := IS_IN.fullmatch(fact):
            self.arrive(match[1], {match[2]})
        elif match := GIVE.fullmatch(fact):
            self.gifts.append((match[1], match[2], match[3]))
            self.acquire(match[3], match[2])
        elif match := GET.fullmatch(fact):
            self.acquire(match[1], match[2])
        elif match := DROP.fullmatch(fact):
            self.holder.pop(match[2], None)
            self.seen(match[2], self.place_of(match[1]))
        elif match := MOVE.fullmatch(fact):
            if match[1] not in ("he", "she", "they"):
                self.subjects = match[1].split(" and ")
            for person in self.subjects:
                self.arrive(person, {match[2]})
        else:
            raise AssertionError(f"not understood: {fact}")


def answer_from_diary(facts: Sequence[str], question: str) -> str | None:
    diary = Diary(facts)
    if match := re.fullmatch(r"Where is the (\w+)\?", question):
        return diary.trail[match[1]][-1] if diary.trail[match[1]] else None
    if match := re.fullmatch(r"Where was the (\w+) before the (\w+)\?", question):
        trail = diary.trail[match[1]]
        visits = [n for n, place in enumerate(trail) if place == match[2]]
        return trail[visits[-1] - 1] if visits and visits[-1] > 0 else None
    if match := re.fullmatch(r"Where is (\w+)\?", question):
        return diary.place_of(match[1])
    if match := re.fullmatch(r"Is (\w+) in the (\w+)\?", question):
        if diary.not_where.get(match[1]) == match[2]:
            return "no"
        places = diary.where.get(match[1])
        if places is None:
            return None
        if match[2] not in places:
            return "no"
        return "maybe" if "either" in latest_fact_on(match[1], facts) else "yes"
    if match := re.fullmatch(r"How many objects is (\w+) carrying\?", question):
        return NUMBER[list(diary.holder.values()).count(match[1])]
    if match := re.fullmatch(r"What is (\w+) carrying\?", question):
        return ",".join(thing for thing in diary.ever_had[match[1]] if diary.holder.get(thing) == match[1]) or "nothing"
    return answer_about_gift(diary.gifts, question)


def latest_fact_on(person: str, facts: Sequence[str]) -> str:
    return next(fact for fact in reversed(facts) if fact.startswith(person))


def answer_about_gift(gifts: list[tuple[str, str, str]], question: str) -> str | None:
    for giver, thing, recipient in reversed(gifts):
        answers = {
            f"What did {giver} give to {recipient}?": thing,
            f"Who gave the {thing}?": giver,
            f"Who gave the {thing} to {recipient}?": giver,
            f"Who received the {thing}?": recipient,
            f"Who did {giver} give the {thing} to?": recipient,
        }
        if question in answers:
            return answers[question]
    return None


def answer_from_times(facts: Sequence[str], question: str) -> str | None:
    day: dict[int, str] = {}
    asked = re.fullmatch(r"Where was (\w+) before the (\w+)\?", question)
    assert asked
    for fact in facts:
        match = TIMED.fullmatch(fact.rstrip("."))
        assert match, fact
        if match[2] == asked[1]:
            day[SLOTS[(match[1] or match[4]).lower()]] = match[3]
    visits = [slot for slot, place in day.items() if place == asked[2]]
    return day.get(max(visits) - 1) if visits else None


def neighbours(facts: Sequence[str]) -> dict[str, dict[str, tuple[int, int]]]:
    """Of each thing: its neighbours, and the step that leads to each."""
    steps: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    for fact in facts:
        match = RELATED.fullmatch(fact.rstrip("."))
        assert match, fact
        x, y = STEPS[match[2]]
        steps[match[3]][match[1]] = (x, y)
        steps[match[1]][match[3]] = (-x, -y)
    return steps


def path(steps: dict[str, dict[str, tuple[int, int]]], start: str, goal: str) -> list[tuple[int, int]] | None:
    frontier: list[tuple[str, list[tuple[int, int]]]] = [(start, [])]
    seen = {start}
    for thing, taken in frontier:
        if thing == goal:
            return taken
        for neighbour, step in steps[thing].items():
            if neighbour not in seen:
                seen.add(neighbour)
                frontier.append((neighbour, [*taken, step]))
    return None


def answer_on_map(facts: Sequence[str], question: str) -> str | None:
    steps = neighbours(facts)
    if match := re.fullmatch(r"What is (\w+) of the (\w+)\?", question):
        found = [thing for thing, step in steps[match[2]].items() if step == STEPS[match[1]]]
    elif match := re.fullmatch(r"What is the (\w+) (\w+) of\?", question):
        x, y = STEPS[match[2]]
        found = [thing for thing, step in steps[match[1]].items() if step == (-x, -y)]
    elif match := re.fullmatch(r"How do you go from the (\w+) to the (\w+)\?", question):
        way = path(steps, match[1], match[2])
        letters = {step: name[0] for name, step in STEPS.items() if name in ("north", "south", "east", "west")}
        found = [",".join(letters[step] for step in way)] if way else []
    else:
        match = re.fullmatch(r"Is the (.+) (above|below|to the left of|to the right of) the (.+)\?", question)
        assert match, question
        way = path(steps, match[3], match[1])
        if way is None:
            return None
        x, y = sum(step[0] for step in way), sum(step[1] for step in way)
        towards = STEPS[match[2]]
        found = ["yes" if x * towards[0] + y * towards[1] > 0 else "no"]
    return found[0] if len(found) == 1 else None


def answer_from_fears(facts: Sequence[str], question: str) -> str | None:
    fears: dict[str, str] = {}
    kind: dict[str, str] = {}
    for fact in facts:
        if match := re.fullmatch(r"(\w+) are afraid of (\w+)\.", fact):
            fears[SINGULAR[match[1].lower()]] = SINGULAR[match[2]]
        elif match := re.fullmatch(r"(\w+) is a (\w+)\.", fact):
            kind[match[1].lower()] = match[2]
    asked = re.fullmatch(r"What is (\w+) afraid of\?", question)
    assert asked
    return fears.get(kind.get(asked[1], ""))


def answer_from_likeness(facts: Sequence[str], question: str) -> str | None:
    """The colour of the last animal introduced of the same kind (all of one colour where the kind has one)."""
    kind: dict[str, str] = {}
    colour: dict[str, str] = {}
    for fact in facts:
        person, _, what = fact.rstrip(".").split(" ", 2)
        if what.startswith("a "):
            kind[person] = what
        else:
            colour[person] = what
    asked = question.removeprefix("What color is ").rstrip("?")
    alike = [person for person in kind if person != asked and kind[person] == kind[asked]]
    return colour.get(alike[-1]) if alike else None


def answer_from_sizes(facts: Sequence[str], question: str) -> str | None:
    bigger: dict[str, set[str]] = defaultdict(set)
    for fact in facts:
        if match := re.fullmatch(r"The (.+) fits inside the (.+)\.", fact):
            bigger[match[1]].add(match[2])
        elif match := re.fullmatch(r"The (.+) is bigger than the (.+)\.", fact):
            bigger[match[2]].add(match[1])

    def surpasses(small: str, big: str) -> bool:
        return big in bigger[small] or any(surpasses(middle, big) for middle in list(bigger[small]))

    if match := re.fullmatch(r"Does the (.+) fit in the (.+)\?", question):
        small, big = match[1], match[2]
    else:
        match = re.fullmatch(r"Is the (.+) bigger than the (.+)\?", question)
        assert match, question
        small, big = match[2], match[1]
    if surpasses(small, big):
        return "yes"
    return "no" if surpasses(big, small) else None


def answer_from_motives(facts: Sequence[str], question: str) -> str | None:
    motives = dict(match.groups() for fact in facts if (match := re.fullmatch(r"(\w+) is (\w+)\.", fact)))
    if match := re.fullmatch(r"Where will (\w+) go\?", question):
        return GOAL.get(motives.get(match[1].capitalize(), ""))
    match = re.fullmatch(r"Why did (\w+) (?:go to|get) the (\w+)\?", question)
    assert match, question
    return motives.get(match[1].capitalize())


REASONERS = {
    4: answer_on_map,
    14: answer_from_times,
    15: answer_from_fears,
    16: answer_from_likeness,
    17: answer_on_map,
    18: answer_from_sizes,
    19: answer_on_map,
    20: answer_from_motives,
}


def answer(task: int, facts: Sequence[str], question: str) -> str | None:
    return REASONERS.get(task, answer_from_diary)(facts, question)


def all_questions(stories: Iterable[Story]) -> Iterator[tuple[Story, Question]]:
    for story in stories:
        for question in story.questions:
            yield story, question


def is_ambiguous_gift(story: Story, question: Question) -> bool:
    """Task 5: has the giver given the recipient something else since?"""
    return question.text.startswith("What did") and any(
        match and question.text == f"What did {match[1]} give to {match[3]}?" and match[2] != question.answer
        for fact in story.facts[question.support[0] + 1 : question.facts]
        for match in [GIVE.fullmatch(fact.rstrip("."))]
    )


def check(task: int, stories: Iterable[Story]) -> None:
    exceptions = asked = 0
    for story, question in all_questions(stories):
        asked += 1
        given = story.facts[: question.facts]
        found = answer(task, given, question.text)
        if found != question.answer and task == 5 and is_ambiguous_gift(story, question):
            exceptions += 1
            continue
        assert found == question.answer, f"{given} {question} but {found} follows"
        if task != 3:  # what was dropped in task 3 was taken up in a fact that is not listed
            told = [story.facts[index] for index in sorted(question.support)]
            assert answer(task, told, question.text) == question.answer, f"{told} do not support {question}"
    assert asked > 0
    assert exceptions <= 5 + 0.01 * asked


@cache
def official(split: str) -> dict[int, list[Story]]:
    return read_babi(OFFICIAL, split)


@pytest.mark.parametrize("task", TASKS)
def test_generated_answers_follow_from_the_story(task: int) -> None:
    check(task, cut(generate_stories(task, seed=99), GENERATED_QUESTIONS))


@pytest.mark.skipif(
    not OFFICIAL.exists(), reason=f"THE REASONER IS NOT CHECKED ON OFFICIAL DATA: {OFFICIAL} is not there"
)
@pytest.mark.parametrize("task", TASKS)
def test_official_answers_follow_from_the_story(task: int) -> None:
    check(task, official("valid")[task])


@pytest.mark.parametrize("task", TASKS)
def test_the_reasoner_depends_on_the_story(task: int) -> None:
    """Read before another story of the task, a question's answer follows less often: the check can fail."""
    stories = list(cut(generate_stories(task, seed=4), 400))
    pairs = [
        (answer(task, other.facts[: q.facts], q.text) == q.answer)
        for story, other in itertools.pairwise(stories)
        for q in story.questions
        if task != 16 or set(re.findall(r"\w+", q.text)) & {fact.split()[0] for fact in other.facts}
    ]
    assert sum(pairs) < 0.85 * len(pairs)


@pytest.mark.parametrize("task", SHORTENED)
def test_the_answer_follows_without_facts_that_do_not_support_it(task: int) -> None:
    for story, question in all_questions(cut(generate_stories(task, seed=5), 500)):
        for keep in (0, 2, 3):  # none of the others, every second, every third
            kept = [
                fact
                for index, fact in enumerate(story.facts[: question.facts])
                if index in question.support or (keep and index % keep == 0)
            ]
            assert answer(task, kept, question.text) == question.answer, (kept, question)
