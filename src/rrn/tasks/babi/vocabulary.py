"""The 177 words of bAbI, fixed here, so that neither training nor asking needs a file.

They are the lower-cased words of all facts and questions, the answers, of which a comma-joined one (``milk,football``,
``n,s``) is one word, and the unknown word, which is number 0. Trained weights depend on the order.
"""

import difflib
import re

UNKNOWN_WORD = "<unknown>"
UNKNOWN_ID = 0

PLAIN_WORDS = (
    "a above afraid after afternoon afterwards and antoine apple are back bathroom bedroom before below "
    "bernhard bigger bill blue bored box brian carrying cat cats chest chocolate chocolates cinema color "
    "container daniel did discarded do does down dropped east either emily evening fit fits following "
    "football fred frog from garden gave gertrude get give go got grabbed gray green greg hallway handed "
    "he how hungry in inside is jason jeff jessica john journeyed julie julius kitchen left lily lion "
    "longer many mary maybe mice milk morning mouse moved no none north not nothing objects of office one "
    "or pajamas park passed picked pink put received rectangle red rhino right sandra school she sheep "
    "south sphere square suitcase sumit swan than that the then there they thirsty this three tired to "
    "took travelled triangle two up was went west what where white who why will winona wolf wolves yann "
    "yellow yes yesterday you"
)
ANSWER_LISTS = (
    "apple,football apple,football,milk apple,milk apple,milk,football e,e e,n e,s football,apple "
    "football,apple,milk football,milk football,milk,apple milk,apple milk,apple,football milk,football "
    "milk,football,apple n,e n,n n,w s,e s,s s,w w,n w,s w,w"
)
"""Answers of several words, joined by commas, each of which counts as one word."""

WORDS: tuple[str, ...] = (UNKNOWN_WORD, *PLAIN_WORDS.split(), *ANSWER_LISTS.split())
WORD_IDS = {word: number for number, word in enumerate(WORDS)}


def tokens(sentence: str) -> list[str]:
    """The words of a fact or question: lower case, without punctuation."""
    return re.findall(r"\w+", sentence.lower())


def word_ids(sentence: str) -> list[int]:
    return [WORD_IDS.get(word, UNKNOWN_ID) for word in tokens(sentence)]


def answer_id(answer: str) -> int:
    """The number of an answer, which is one word whatever commas are in it; spaces after commas do not matter."""
    return WORD_IDS.get(re.sub(r"\s+", "", answer.lower()), UNKNOWN_ID)


def unknown_words(sentence: str) -> list[str]:
    """The words of a sentence that are not in the vocabulary, each once, in order."""
    return [word for word in dict.fromkeys(tokens(sentence)) if word not in WORD_IDS]


def nearest_known_words(word: str, count: int = 3) -> list[str]:
    """Words of the vocabulary spelt most like this one, nearest first; none if none is near."""
    return difflib.get_close_matches(word.lower(), PLAIN_WORDS.split(), n=count, cutoff=0.5)


def split_sentences(text: str) -> list[str]:
    """Sentences as typed, one after the other, divided at full stops, marks and line ends; each ends with its mark."""
    return [sentence.strip() for sentence in re.findall(r"[^.!?…\n]*\w[^.!?…\n]*[.!?…]?", text)]
