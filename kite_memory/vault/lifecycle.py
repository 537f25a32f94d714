"""Decide what a new note does to an older one: repeats it, replaces it, may contradict it, or nothing. Pure, and without a model.

`bench/lifecycle.py` measures the effect of the numbers.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Literal

from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.model.plan import Contest, Ruling, Surroundings
from kite_memory.model.record import SAID_TO_A_REFUSAL
from kite_memory.vault import differing
from kite_memory.vault.differing import Difference
from kite_memory.vault.wording import body_key, title_key

Rulings = Mapping[tuple[str, str], Ruling]
"""By the ids of the newer and the older note."""

_FEW_WORDS = 6
"""Texts with fewer words share almost all of them by chance."""
_MANY_WORDS, _OTHER_WORDS = 20, 2
"""For each ``_MANY_WORDS`` words of a note, ``_OTHER_WORDS`` may differ in a repetition."""

_RELATED = ("**Related:**", "**Rejected:**", "> [!failure] Rejected:")
_REFUSAL = re.compile(rf"“([^\n]{{1,2000}}?)”, {SAID_TO_A_REFUSAL}\b")
_TEXT = 4_000
_WORD = re.compile(r"[^\W_]+")
_GIVEN_UP = re.compile(
    r"\b(?:no longer|not\b[^.;\n]{0,40}\bany ?more|any ?more|formerly|previously|earlier|until now|used to|given up|g[ai]ve up"
    r"|remov(?:e|es|ed|ing)|dropp(?:ed|ing)|drops?|renam(?:e|es|ed|ing)|replac(?:e|es|ed|ing)|instead of|rather than|stop(?:s|ped)?"
    r"|was wrong|turned out|obsolete|deprecated|leftovers?|superseded?|moved? (?:from|away)|switch(?:ed|es)? (?:from|away|to)"
    r"|abandon(?:ed|s)?|problematic|only (?:after|once)|nicht mehr|statt|früher)\b",
    re.IGNORECASE,
)
"""In a sentence that matches, words may describe what held before."""
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

_NEARER, _VALUE, _RETIRES, _ANOTHER, _OTHER_CODE, _HAPPENED, _LEVEL = 13.0, 0.5, 0.8, -4.3, -3.6, -1.8, -4.4
"""Coefficients of a logistic regression over invented and labelled pairs, rounded; `bench/lifecycle.py` fits them again."""
_REVIEWED, _ASKED = -0.5, -3.0
_SHARED_AT_LEAST = 0.35
_USUAL, _OTHERS = 0.22, 4
"""Cosine assumed for an unrelated note, and the number of other notes up to which it fills in for missing ones."""
_ASKED_PER_NOTE, _REVIEWED_PER_NOTE = 4, 1

_COMPARABLE = frozenset({NoteKind.DECISION, NoteKind.INSIGHT, NoteKind.FACT, NoteKind.PREFERENCE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How alike two notes are.

    ``nearer`` is how much nearer in meaning the two are than the newer is to the other notes near it.
    """

    nearer: float
    difference: Difference

    @property
    def likely(self) -> float:
        """Logit of the probability that both are about one thing and the newer contradicts the older."""
        difference = self.difference
        return (
            _NEARER * self.nearer
            + _VALUE * difference.value
            + _RETIRES * difference.retires
            + _ANOTHER * difference.another
            + _OTHER_CODE * difference.other_code
            + _HAPPENED * difference.happened
            + _LEVEL
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """What a new note does to an older one.

    ``reversed``: the existing note is the newer of the two, and the draft comes late.
    """

    old: Note
    does: Literal["replaces", "conflicts"]
    because: str
    reversed: bool = False


def repeats(one: Note, other: Note) -> bool:
    """Return whether two notes of one kind and project have the same content.

    They have if their title and words are the same, or if one has hardly a word that the other has not. One different word makes a
    different note of a short one (the north field is not the south field), and so does another name or figure anywhere, a negation,
    or a word about what held before. Likeness in meaning detects none of that: alone it is no repetition.
    """
    if (one.kind, one.project) != (other.kind, other.project):
        return False
    if body_key(one.body) == body_key(other.body) != "" and title_key(one.title) == title_key(other.title):
        return True
    said, held = text_of(one), text_of(other)
    mine, theirs = stems(said), stems(held)
    less, more = (mine, theirs) if len(mine) <= len(theirs) else (theirs, mine)
    unmatched = len(less - more)
    if len(less) < _FEW_WORDS or unmatched > (len(less) // _MANY_WORDS) * _OTHER_WORDS:
        return False
    return not at_odds(said, held)


def at_odds(said: str, held: str) -> bool:
    """Return whether two texts differ however many words they share.

    They do where figures, names, a negation, a word about what held before, or the words on both sides of an «over» or a «to»
    differ.
    """
    if _differ(_values(said), _values(held)) or _differ(_names(said), _names(held)):
        return True
    if any(bool(pattern.search(said)) != bool(pattern.search(held)) for pattern in (_NOT, _GIVEN_UP)):
        return True
    return any((after, before) in _sides(held) for before, after in _sides(said))


def relations(draft: Note, around: Surroundings, rulings: Rulings, settled: frozenset[tuple[str, str]]) -> list[Relation]:
    """Return what a new note does to those around it. Only a ruling by a reader of both replaces anything.

    ``settled`` pairs, newer first, were decided before, perhaps by a person: they are skipped.
    """
    found: list[Relation] = []
    reviewed = 0
    for contest in _contests(draft, around):
        pair = (contest.newer.id, contest.older.id)
        if pair in settled:
            continue
        late = contest.newer is not draft
        old = contest.newer if late else contest.older
        ruling = rulings.get(pair)
        if ruling == "replaces" and _may_replace(contest):
            found.append(Relation(old=old, does="replaces", because="a model read both", reversed=late))
        elif ruling is not None and ruling != "neither":
            found.append(Relation(old=old, does="conflicts", because="a model read both", reversed=late))
        elif ruling is None and contest.likely >= _REVIEWED and reviewed < _REVIEWED_PER_NOTE:
            reviewed += 1
            found.append(Relation(old=old, does="conflicts", because="they differ on the same thing", reversed=late))
    return found


def takes_back(newer: Note, older: Note) -> bool:
    """Return whether a note contradicts an older one extracted with it.

    Their nearness is not known here, so the wording must be explicit.
    """
    if (
        (newer.kind, newer.project) != (older.kind, older.project)
        or newer.kind not in _COMPARABLE
        or newer.created <= older.created
    ):
        return False
    difference = differing.difference(_claims(newer), _claims(older))
    if (
        difference is None
        or difference.another
        or difference.other_code
        or difference.happened
        or newer.kind not in _COMPARABLE - {NoteKind.INSIGHT}
    ):
        return False
    return difference.shared >= _SHARED_AT_LEAST and difference.retires + difference.value >= 1.0


def contests(draft: Note, around: Surroundings, settled: frozenset[tuple[str, str]]) -> list[Contest]:
    """Return the pairs that are worth a question to a reader of both."""
    doubtful = [
        contest
        for contest in _contests(draft, around)
        if contest.likely >= _ASKED and (contest.newer.id, contest.older.id) not in settled
    ]
    return doubtful[:_ASKED_PER_NOTE]


def likeness(newer: Note, older: Note, nearer: float) -> Likeness | None:
    """Return how alike two notes are; ``None`` where they have no word in common."""
    difference = differing.difference(_claims(newer), _claims(older))
    return Likeness(nearer=nearer, difference=difference) if difference is not None else None


@lru_cache(maxsize=256)
def _claims(note: Note) -> tuple[differing.Assertion, ...]:
    return differing.claims(note.title, text_of(replace(note, title="")))


def nearer(around: Surroundings) -> tuple[float, ...]:
    """Return, for each note that is near, by how much its cosine exceeds the median of the others."""
    found: list[float] = []
    for place, near in enumerate(around.near):
        others = [other.cosine for at, other in enumerate(around.near) if at != place]
        usual = sorted([*others, *[_USUAL] * (_OTHERS - len(others))])
        found.append(near.cosine - (usual[(len(usual) - 1) // 2] + usual[len(usual) // 2]) / 2)
    return tuple(found)


def text_of(note: Note) -> str:
    """Return a note's own text, without its line of links and its rejected alternatives. Of a refusal, only the person's words."""
    refusal = _REFUSAL.match(note.body)
    if refusal is not None:
        return f"{note.title}\n{refusal[1]}"
    lines = (line for line in note.body[:_TEXT].split("\n") if not line.startswith(_RELATED))
    return "\n".join((note.title, *lines))


def _contests(draft: Note, around: Surroundings) -> list[Contest]:
    """Return pairs, likeliest first; those of one session as well, where a choice may be taken back an hour later."""
    if draft.kind not in _COMPARABLE:
        return []
    found: list[Contest] = []
    for near, by in zip(around.near, nearer(around), strict=True):
        note = near.note
        if note.kind not in _COMPARABLE or note.status is not NoteStatus.ACCEPTED or note.id == draft.id:
            continue
        if note.kind is draft.kind is NoteKind.INSIGHT:  # a finding does not replace a finding
            continue
        if repeats(draft, note):  # a repetition does not contradict it
            continue
        newer, older = (draft, note) if _is_later(draft, note) else (note, draft)
        if (alike := likeness(newer, older, by)) is not None:
            found.append(Contest(newer=newer, older=older, likely=alike.likely))
    return sorted(found, key=lambda each: -each.likely)


def _sides(text: str) -> frozenset[tuple[str, str]]:
    """Return the words on both sides of each word that has a direction: tabs over spaces are not spaces over tabs."""
    found: set[tuple[str, str]] = set()
    said = _WORD.findall(text.casefold())
    for place, word in enumerate(said):
        if word in _DIRECTED:
            before = next((each for each in reversed(said[max(0, place - 4) : place]) if _is_distinctive(each)), "")
            after = next((each for each in said[place + 1 : place + 5] if _is_distinctive(each)), "")
            if before and after and before != after:
                found.add((before, after))
    return frozenset(found)


def _is_distinctive(word: str) -> bool:
    return (len(word) > 2 or _HAS_DIGIT.search(word) is not None) and not (word in _GRAMMAR or word in _DIRECTED)


def _differ(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Return whether each has what the other has not."""
    return not (mine <= theirs or theirs <= mine)


def _values(text: str) -> frozenset[str]:
    return frozenset(token.strip(".:/-+") for token in _TOKEN.findall(text.casefold()) if _HAS_DIGIT.search(token))


def _names(text: str) -> frozenset[str]:
    """Return what is written like a name or like code, except the first words of sentences."""
    return frozenset(found.casefold() for found in _NAME.findall(text))


def stems(text: str) -> frozenset[str]:
    """Return the meaningful words, without most of their endings."""
    return frozenset(
        word.removesuffix("s") if len(word) < 6 else word[: max(5, len(word) - 3)] for word in _distinctive_words(text) - _GRAMMAR
    )


def _may_replace(contest: Contest) -> bool:
    """Return whether the newer note of a pair may replace the older.

    Only a person's note replaces a person's, and a note that waits for review replaces none. Nor does a refusal: it was given for
    one call, and a person decides what else it is about.
    """
    if contest.newer.status is not NoteStatus.ACCEPTED or _REFUSAL.match(contest.newer.body):
        return False
    return contest.older.origin != "user" or contest.newer.origin == "user"


def holds_wherever(newer: Note, older: Note) -> bool:
    """Return whether the newer note holds wherever the older does: a note of a branch holds only there, until it is merged."""
    return newer.branch in ("", older.branch)


def _is_later(one: Note, other: Note) -> bool:
    return one.created >= other.created


def sessions_of(evidence: Sequence[str]) -> int:
    """Return how many sessions these references come from."""
    return len({reference.partition("#")[0] for reference in evidence})


def _distinctive_words(text: str) -> frozenset[str]:
    """Return the words without short ones, which are mostly grammatical."""
    return frozenset(word for word in _words(text) if len(word) > 3 or _HAS_DIGIT.search(word) or not word.isascii())


def _words(text: str) -> frozenset[str]:
    text = text.lower()
    if not text.isascii():
        bare = "".join(char for char in unicodedata.normalize("NFKD", text) if unicodedata.category(char) != "Mn")
        text = unicodedata.normalize("NFC", bare)
    return frozenset(_WORD.findall(text))


def standing_until(newer: Note) -> datetime:
    """Return the time from which what a note replaces no longer holds."""
    return newer.valid_from or newer.created
