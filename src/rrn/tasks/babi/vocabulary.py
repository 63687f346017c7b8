"""The 177 words of bAbI in a fixed order, on which trained weights depend.

They are the unknown word (index 0), the lower-case words of all facts and questions, and the answers. An answer of
several words (``milk,football``, ``n,s``) is one word.
"""

import difflib
import re

UNKNOWN_WORD = "<unknown>"
UNKNOWN_ID = 0
NO_ANSWER = "not in the story"
"""The answer if none follows from the facts. Its index is that of the unknown word."""

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
"""Answers of several words, joined by commas; each is one word of the vocabulary."""

_GROUPS = {
    "people": "Mary John Sandra Daniel Bill Fred Jeff Julie Antoine Jason Sumit Yann he she they",
    "places": "bathroom bedroom kitchen hallway garden office cinema park school",
    "things": "apple football milk pajamas box chest chocolate chocolates container suitcase objects",
    "animals": "Bernhard Brian Emily Gertrude Greg Jessica Julius Lily Winona "
    "cat cats frog lion mice mouse rhino sheep swan wolf wolves",
    "going": "went moved journeyed travelled go back",
    "taking and putting down": "took got get grabbed picked up carrying dropped discarded left put down",
    "giving": "gave give handed passed received",
    "time": "yesterday morning afternoon evening this then afterwards after following before",
    "where from where": "above below north south east west right from in inside there",
    "shapes, colours and sizes": "rectangle sphere square triangle blue gray green pink red white yellow color bigger "
    "fit fits",
    "feelings": "afraid bored hungry thirsty tired",
    "numbers": "none one two three many",
    "small words": "a and are did do does either how is longer maybe no not nothing of or than that the to was what "
    "where who why will yes you",
}
GROUPS = {title: words.split() for title, words in _GROUPS.items()}
"""The words by topic, for display."""

_MEANS = {
    "went": "walked walks ran runs rushed rushes hurried hurries strolled wandered headed heads drove drives came "
    "comes goes returns moves travels journeys jogged raced marched",
    "took": "takes grabs gets collected collects fetched fetches lifted",
    "bathroom": "toilet restroom washroom lavatory",
    "hallway": "hall corridor",
    "garden": "yard backyard",
    "cinema": "movies movie_theater movie_theatre",
    "football": "ball soccer_ball",
    "put down": "set_down laid_down lays_down puts_down puts placed",
    "dropped": "drops released let_go_of threw_away",
    "went to": "entered enters",
    "afraid": "scared frightened",
}
READ_AS = {word.replace("_", " "): meant for meant, words in _MEANS.items() for word in words.split()} | {
    "returned": "went back", "traveled": "travelled", "into": "to", "picks": "picked", "obtained": "got",
    "leaves": "left", "gives": "gave", "hands": "handed", "passes": "passed", "receives": "received",
    "holding": "carrying", "pyjamas": "pajamas", "grey": "gray", "colour": "color", "larger": "bigger",
    "where's": "where is", "what's": "what is", "who's": "who is", "isn't": "is not", "sleepy": "tired",
}  # fmt: skip
"""Common words and their replacements in bAbI's vocabulary."""

TOPIC_EXAMPLES = {
    "places": "room house home lounge attic basement cellar garage street shop store library restaurant station "
    "beach forest city town car",
    "things": "book pen cup glass bottle key keys bag phone hat coat shoe shoes plate bread cake water juice toy",
    "animals": "dog horse cow pig bird duck bear tiger elephant rabbit",
    "shapes, colours and sizes": "circle cube black brown orange purple small smaller big large",
    "going": "flew swam crawled climbed",
}
"""Words outside the vocabulary by topic (`GROUPS`), for hints."""

WORDS: tuple[str, ...] = (UNKNOWN_WORD, *PLAIN_WORDS.split(), *ANSWER_LISTS.split())
WORD_IDS = {word: number for number, word in enumerate(WORDS)}
ANSWERS = (NO_ANSWER, *WORDS[1:])
"""Answers of a network by index."""


def tokens(sentence: str) -> list[str]:
    """The words of a sentence in lower case, without punctuation."""
    return re.findall(r"\w+", sentence.lower())


def word_ids(sentence: str) -> list[int]:
    return [WORD_IDS.get(word, UNKNOWN_ID) for word in tokens(sentence)]


def answer_id(answer: str) -> int:
    """The index of an answer. Commas join its words into one; spaces are ignored."""
    return WORD_IDS.get(re.sub(r"\s+", "", answer.lower()), UNKNOWN_ID)


def unknown_words(sentence: str) -> list[str]:
    """The distinct words of a sentence that are not in the vocabulary, in order."""
    return [word for word in dict.fromkeys(tokens(sentence)) if word not in WORD_IDS]


def read_as(sentence: str) -> tuple[str, list[tuple[str, str]]]:
    """The sentence with words replaced by `READ_AS`, and the replacements: ``("walked", "went")``, …"""
    replaced: dict[str, str] = {}

    def turn(match: re.Match[str]) -> str:
        replaced[match[0].lower()] = turned = f"{match[1]} {match[3]} {match[2]}"
        return turned

    def put(match: re.Match[str]) -> str:
        meant = READ_AS.get(match[0].lower())
        if meant is None:  # the pattern also matches letters such as "ſ", which fold to ASCII
            return match[0]
        replaced[match[0].lower()] = meant
        return meant.capitalize() if match[0][0].isupper() else meant

    sentence = _APART.sub(turn, sentence.replace("’", "'"))
    return _READ_AS.sub(put, sentence), list(replaced.items())


_APART = re.compile(r"\b(puts?|set|laid|lays|picks|picked) (the \w+) (down|up)\b", re.IGNORECASE)
"""Verbs with a separate particle; bAbI writes "put down the milk", not "put the milk down"."""
_READ_AS = re.compile(rf"\b({'|'.join(sorted(map(re.escape, READ_AS), key=len, reverse=True))})\b", re.IGNORECASE)


def nearest_known_words(word: str, count: int = 3, cutoff: float = 0.75) -> list[str]:
    """Words of the vocabulary with similar spelling, most similar first."""
    return difflib.get_close_matches(word.lower(), PLAIN_WORDS.split(), n=count, cutoff=cutoff)


def hint_for(word: str, sentence: str) -> str:
    """A suggestion for an unknown word: words with similar spelling or of the same topic; or an empty string."""
    group = next((title for title, words in TOPIC_EXAMPLES.items() if word.lower() in words.split()), None)
    if group is None and re.search(rf"\b{re.escape(word.capitalize())}\b", sentence):
        group = "people"
    near = nearest_known_words(word, cutoff=0.75 if group is None else 0.8)
    if near:
        return f"did you mean {' or '.join(repr(known) for known in near)}?"
    if group is None:
        return ""
    known = GROUPS[group]
    return f"it knows {', '.join(known[:9])}{' …' * (len(known) > 9)}"


def split_sentences(text: str) -> list[str]:
    """Split text at sentence marks and line ends; each sentence includes its mark."""
    parts = re.findall(r"[^.!?…\n]+[.!?…]?", text)
    return [part.strip() for part in parts if re.search(r"\w", part)]
