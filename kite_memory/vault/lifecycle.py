"""What a new note does to an older one: repeats it, replaces it, may contradict it, or nothing. Pure, and without a model.

`bench/lifecycle.py` measures what the numbers do.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.model.plan import Contest, Near, Ruling, Surroundings
from kite_memory.model.record import SAID_TO_A_REFUSAL, Rejected
from kite_memory.vault.wording import body_key, title_key

Rulings = Mapping[tuple[str, str], Ruling]
"""By the ids of the newer and the older note."""

_FEW_WORDS = 6
"""Of fewer words, almost all are shared soon."""
_MANY_WORDS, _OTHER_WORDS = 20, 2
"""In so many words of a note, so many may be others."""

_RELATED = ("**Related:**", "**Rejected:**", "> [!failure] Rejected:")
_REFUSAL = re.compile(rf"“([^\n]{{1,2000}}?)”, {SAID_TO_A_REFUSAL}\b")
_TEXT = 4_000
_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"(?<=[.;!?])\s+|\n")
_GIVEN_UP = re.compile(
    r"\b(?:no longer|not\b[^.;\n]{0,40}\bany ?more|any ?more|formerly|previously|earlier|until now|used to|given up|g[ai]ve up"
    r"|remov(?:e|es|ed|ing)|dropp(?:ed|ing)|drops?|renam(?:e|es|ed|ing)|replac(?:e|es|ed|ing)|instead of|rather than|stop(?:s|ped)?"
    r"|was wrong|turned out|obsolete|deprecated|leftovers?|superseded?|moved? (?:from|away)|switch(?:ed|es)? (?:from|away|to)"
    r"|abandon(?:ed|s)?|problematic|only (?:after|once)|nicht mehr|statt|früher)\b",
    re.IGNORECASE,
)
"""In a sentence that says so, words tell what held before."""
_TURNED_DOWN = re.compile(r"\b(?:over|instead of|rather than|not|statt|nicht)\b.*", re.IGNORECASE | re.DOTALL)
_SIDE = re.compile(
    r"\b(?:over|instead of|rather than|not|statt|nicht)\b"
    r".*?(?=[,;:.()]|\b(?:for|in|on|as|at|by|to|with|when|while|because|since|until|für|im|bei|als|auf|zum|zur|weil)\b|$)",
    re.IGNORECASE | re.DOTALL,
)
"""What was turned down, without the matter that is named after it."""
_SEVERAL = re.compile(r"\b(?:and|und)\b|&", re.IGNORECASE)
_NOT = re.compile(r"\b(?:no|not|never|cannot|without|nicht|kein\w*|nie)\b|n't\b", re.IGNORECASE)
_NAME = re.compile(r"(?<=[a-z0-9,;] )[A-Z]\w*|\b[a-z]\w*(?:[A-Z_]\w*|[./#-]\w+)")
_GRAMMAR_WORDS = """
about also because been does each every from gets have here into just made make more most much only over same since some such than
that their them then there these they this those thus upon very what when where which while will with would
"""
_GRAMMAR = frozenset(_GRAMMAR_WORDS.split())
_DIRECTED = frozenset(("after", "before", "into", "instead", "over", "than", "to", "über", "nach", "vor", "statt"))
_HAS_DIGIT = re.compile(r"\d")
_TOKEN = re.compile(r"[\w.:/%+-]+")

_COSINE, _SHARED, _RETIRED, _BEHIND, _LEVEL = 3.2, 12.0, 3.1, -0.3, -8.3
"""Of a logistic regression over labelled pairs, rounded."""
_MOST_RETIRED = 20.0
_SURE_SHARED, _SURE_RETIRED = 0.4, 8.0
_REVIEWED, _ASKED = -3.6, -6.0
"""`bench/lifecycle.py` says what of the labelled pairs is put to review, beside how many others; all of them are asked about."""
_ASKED_PER_NOTE, _REVIEWED_PER_NOTE = 4, 2
_A_CHOICE = 0.5

_COMPARABLE = frozenset({NoteKind.DECISION, NoteKind.INSIGHT, NoteKind.FACT, NoteKind.PREFERENCE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """``shared`` is how much of both is said by both, 0 to 1; ``retired`` how much of the older the newer says to be over.

    Rare words count more in both. ``place`` is the older one's among all that are near.
    """

    cosine: float
    shared: float
    retired: float
    place: int

    @property
    def likely(self) -> float:
        """That the newer makes the older untrue, in units of the logit."""
        retired = min(self.retired, _MOST_RETIRED) / _MOST_RETIRED
        return _COSINE * self.cosine + _SHARED * self.shared + _RETIRED * retired + _BEHIND * self.place / 5 + _LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """``reversed``: the note that is there is the newer of the two, and the draft comes late."""

    old: Note
    does: Literal["replaces", "conflicts"]
    because: str
    reversed: bool = False


def repeats(one: Note, other: Note) -> bool:
    """Whether two notes of one kind say the same: the very words, title and all, or one has next to nothing that the other has not.

    One other word makes another note of a short one (the north field is not the south field), and so does another name or figure
    wherever it stands, a denial, or a word on what held before. Likeness in meaning tells none of that: alone it is no repetition.
    """
    if (one.kind, one.project) != (other.kind, other.project):
        return False
    if body_key(one.body) == body_key(other.body) != "" and title_key(one.title) == title_key(other.title):
        return True
    said, held = text_of(one), text_of(other)
    mine, theirs = _stems(said), _stems(held)
    less, more = (mine, theirs) if len(mine) <= len(theirs) else (theirs, mine)
    unmatched = len(less - more)
    if len(less) < _FEW_WORDS or unmatched > (len(less) // _MANY_WORDS) * _OTHER_WORDS:
        return False
    return not at_odds(said, held)


def at_odds(said: str, held: str) -> bool:
    """Whether figures, names, a denial, a word on what held before, or what stands on which side of an «over» or a «to» tell two
    texts apart, however many words they share."""
    if _differ(_values(said), _values(held)) or _differ(_names(said), _names(held)):
        return True
    if any(bool(pattern.search(said)) != bool(pattern.search(held)) for pattern in (_NOT, _GIVEN_UP)):
        return True
    return any((after, before) in _sides(held) for before, after in _sides(said))


def relations(
    draft: Note, rejected: Sequence[Rejected], around: Surroundings, rulings: Rulings, settled: frozenset[tuple[str, str]]
) -> list[Relation]:
    """What comes of a new note and those around it, as far as it can be said without asking, or with what was answered.

    ``settled`` pairs, newer first, were decided before, perhaps by a person: nothing is said of them again.
    """
    found: list[Relation] = []
    reviewed = 0
    for contest, likeness in _contests(draft, around):
        pair = (contest.newer.id, contest.older.id)
        if pair in settled:
            continue
        late = contest.newer is not draft
        old = contest.newer if late else contest.older
        because = _surely(contest, rejected if not late else (), likeness)
        ruling = rulings.get(pair)
        if not because and ruling == "replaces":
            because = "a model read both"
        if because and _may_replace(contest):
            found.append(Relation(old=old, does="replaces", because=because, reversed=late))
        elif because or ruling == "conflicts" or (ruling is None and contest.likely >= _REVIEWED and reviewed < _REVIEWED_PER_NOTE):
            reviewed += 1
            found.append(Relation(old=old, does="conflicts", because=because or "they may contradict each other", reversed=late))
    return found


def contests(draft: Note, rejected: Sequence[Rejected], around: Surroundings, settled: frozenset[tuple[str, str]]) -> list[Contest]:
    """The pairs that are worth a question to whoever can read them: neither sure nor surely nothing."""
    doubtful = [
        contest
        for contest, likeness in _contests(draft, around)
        if contest.likely >= _ASKED
        and (contest.newer.id, contest.older.id) not in settled
        and not _surely(contest, rejected if contest.newer is draft else (), likeness)
    ]
    return doubtful[:_ASKED_PER_NOTE]


def likeness(newer: Note, older: Note, near: Near, place: int, rarity: Mapping[str, float]) -> Likeness:
    mine, theirs = _words(text_of(newer)), _words(text_of(older))
    shared = _weight(mine & theirs, rarity)
    both = _weight(mine, rarity) * _weight(theirs, rarity)
    return Likeness(
        cosine=near.cosine,
        shared=shared / both**0.5 if both > 0 else 0.0,
        retired=_weight(_said_to_be_over(text_of(newer)) & theirs, rarity),
        place=place,
    )


def text_of(note: Note) -> str:
    """What a note says itself: without the line of its links, and what it turned down. Of a refusal, the person's words alone."""
    refusal = _REFUSAL.match(note.body)
    if refusal is not None:
        return f"{note.title}\n{refusal[1]}"
    lines = (line for line in note.body[:_TEXT].split("\n") if not line.startswith(_RELATED))
    return "\n".join((note.title, *lines))


def _contests(draft: Note, around: Surroundings) -> list[tuple[Contest, Likeness]]:
    """Likeliest first."""
    if draft.kind not in _COMPARABLE:
        return []
    found: list[tuple[Contest, Likeness]] = []
    for place, near in enumerate(around.near):
        note = near.note
        if note.kind not in _COMPARABLE or note.status is not NoteStatus.ACCEPTED or _sessions(note) & _sessions(draft):
            continue
        if repeats(draft, note):  # what could not go into it says nothing against it either
            continue
        newer, older = (draft, note) if _is_later(draft, note) else (note, draft)
        likely = likeness(newer, older, near, place, around.rarity or {})
        found.append((Contest(newer=newer, older=older, likely=likely.likely), likely))
    return sorted(found, key=lambda each: -each[0].likely)


def _surely(contest: Contest, rejected: Sequence[Rejected], likeness: Likeness) -> str:
    """Why the newer replaces the older without anybody's being asked; empty where that is not sure.

    The same sentence with another figure is not: it may be the same limit today, or the next ticket.
    """
    newer, older = contest.newer, contest.older
    if newer.kind is older.kind is NoteKind.DECISION and likeness.cosine >= _A_CHOICE:
        for turned_down in rejected:
            if _chose(older, turned_down.alternative, newer):
                return f"it turns down {turned_down.alternative}"
    if likeness.shared >= _SURE_SHARED and likeness.retired >= _SURE_RETIRED:
        return "it says that this holds no longer"
    return ""


def _chose(older: Note, alternative: str, newer: Note) -> bool:
    """Whether an old decision was for what is turned down now, in the same matter.

    The same two in another matter are another decision; one that was about several matters is not over with one of them.
    """
    turned_down = _telling(alternative)
    chosen = _telling(_TURNED_DOWN.sub("", older.title))
    if not turned_down or not turned_down <= chosen:
        return False
    said = _telling(newer.title)
    matter = _telling(_SIDE.sub("", older.title)) - turned_down
    if not matter:  # its title names nothing but the two
        return said <= _telling(older.title)
    return len(matter & said) >= (len(matter) if _SEVERAL.search(_SIDE.sub("", older.title)) else len(matter) / 2)


def _sides(text: str) -> frozenset[tuple[str, str]]:
    """The words next to each that has a direction: tabs over spaces are not spaces over tabs."""
    found: set[tuple[str, str]] = set()
    said = _WORD.findall(text.casefold())
    for place, word in enumerate(said):
        if word in _DIRECTED:
            before = next((each for each in reversed(said[max(0, place - 4) : place]) if _tells_much(each)), "")
            after = next((each for each in said[place + 1 : place + 5] if _tells_much(each)), "")
            if before and after and before != after:
                found.add((before, after))
    return frozenset(found)


def _tells_much(word: str) -> bool:
    return (len(word) > 2 or _HAS_DIGIT.search(word) is not None) and not (word in _GRAMMAR or word in _DIRECTED)


def _differ(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether each has what the other has not."""
    return not (mine <= theirs or theirs <= mine)


def _values(text: str) -> frozenset[str]:
    return frozenset(token.strip(".:/-+") for token in _TOKEN.findall(text.casefold()) if _HAS_DIGIT.search(token))


def _names(text: str) -> frozenset[str]:
    """What is written like a name or like code, but for the first words of sentences."""
    return frozenset(found.casefold() for found in _NAME.findall(text))


def _stems(text: str) -> frozenset[str]:
    """The words that say something, without most of their endings."""
    return frozenset(
        word.removesuffix("s") if len(word) < 6 else word[: max(5, len(word) - 3)] for word in _telling(text) - _GRAMMAR
    )


def _may_replace(contest: Contest) -> bool:
    """A person's word gives way to a person's alone, and nothing gives way to what still waits for review, nor to a refusal: it
    was said of one call, and a person says what else it is about."""
    if contest.newer.status is not NoteStatus.ACCEPTED or _REFUSAL.match(contest.newer.body):
        return False
    return contest.older.origin != "user" or contest.newer.origin == "user"


def holds_wherever(newer: Note, older: Note) -> bool:
    """Whether what the newer says is so wherever the older is: what is of a branch holds there alone, until it is merged."""
    return newer.branch in ("", older.branch)


def _is_later(one: Note, other: Note) -> bool:
    return one.created >= other.created


def _sessions(note: Note) -> frozenset[str]:
    return frozenset(reference.partition("#")[0] for reference in note.evidence)


def sessions_of(evidence: Sequence[str]) -> int:
    """How many sessions these references come from."""
    return len({reference.partition("#")[0] for reference in evidence})


def _said_to_be_over(text: str) -> frozenset[str]:
    return frozenset(word for sentence in _SENTENCE.split(text) if _GIVEN_UP.search(sentence) for word in _words(sentence))


def _telling(text: str) -> frozenset[str]:
    """The words that are not merely of the grammar."""
    return frozenset(word for word in _words(text) if len(word) > 3 or _HAS_DIGIT.search(word) or not word.isascii())


def _words(text: str) -> frozenset[str]:
    text = text.lower()
    if not text.isascii():
        bare = "".join(char for char in unicodedata.normalize("NFKD", text) if unicodedata.category(char) != "Mn")
        text = unicodedata.normalize("NFC", bare)
    return frozenset(_WORD.findall(text))


def _weight(words: frozenset[str], rarity: Mapping[str, float]) -> float:
    return sum(max(0.0, rarity.get(word, 0.0)) for word in words)


def standing_until(newer: Note) -> datetime:
    """From when on what a note replaces is no longer so."""
    return newer.valid_from or newer.created
