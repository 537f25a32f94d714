"""Decide what a new note does to an older one: repeats it, replaces it, may contradict it, or nothing. Pure, and without a model.

Two notes contradict each other if they are about the same thing and differ in a value or a choice; that only decides an order
and a question. `bench/vault/lifecycle.py` measures this.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt
from typing import Literal

from kite_memory.model.note import (
    REPLACEABLE_KINDS,
    SAID_TO_A_REFUSAL,
    Contest,
    Note,
    NoteKind,
    NoteStatus,
    Ruling,
    Scope,
    Surroundings,
)
from kite_memory.text import lazy_regex
from kite_memory.vault.wording import arranges_otherwise, body_key, signs, title_key

_CLAIM_TEXT, _CLAIMS, _SHORTEST = 800, 4, 15
"""Characters of a body, sentences of them (with the title), and shortest sentence, that are compared: what a note is about stands
there."""

_CLAIM_WORD = lazy_regex(r"[^\W_]+(?:[._/:-][^\W_]+)*|\d+(?:[.,:]\d+)*")
_CODE = lazy_regex(r"\b[\w-]+(?:_\w+|\.(?=[a-z])[a-z]\w{0,5}\b)+|\b[a-z]+[A-Z]\w+|(?<!\w)--?[a-z][\w-]+|(?:[\w.-]+/)+[\w.-]+")
_CLAIM_NAME = lazy_regex(r"(?<![.!?:;\n] )(?<!^)(?<!\n)\b[A-Z][\w+#]*|\b[A-Z]+[a-z]*[A-Z]\w*|\b[A-Z]{2,}\b")
_CHANGE = lazy_regex(
    r"\b(?:now|no longer|any ?more|since|instead|from now|as of|go(?:es|ing)? with|went with|switch\w*|mov(?:e|ed|es|ing)|migrat\w+"
    r"|replac\w+|rais\w+|lower\w+|cut|reduc\w+|increas\w+|bump\w+|chang\w+|drop\w*|remov\w+|revers\w+|revert\w*|back to|after all"
    r"|retir\w+|given up|gave up|ditch\w*|swap\w*|rather than|not renewed|allowed|may)\b",
    re.IGNORECASE,
)
_EVENT_WORDS = lazy_regex(
    r"\b(?:fix(?:ed|es)?|fail(?:ed|s|ure)|crash\w*|broke|breaks|caus(?:ed|es|e)|bug|errors? (?:came|arose|occurred)"
    r"|dropped \w+ (?:with|after|when)|lost|miss(?:ed|ing)|renamed|remov(?:ed|es)|added|deleted|hung|hangs|leak\w*|flaky|turned out"
    r"|was wrong|wrongly|race|stale)\b",
    re.IGNORECASE,
)

_FILLER_WORDS = """
a about after again against all also always an and any are as at back be because been before being both but by came can come comes
could did do does doing done down during each every few for from get gets give go goes going got had has have having he her here
him his how i if in into is it its itself just keep keeps kept let like made make makes many may me might more most much must my
need needs never new no nor not now of off on once one only onto or other our out over own per put run runs said same see set
sets she should since so some still such take takes than that the their them then there these they this those through to too two
under until up upon us use used uses using very via want was way we well went were what when where which while who whole why will
with within without would yet you your decided decision person says say agreed wants
der die das und oder ist sind ein eine nicht mit für auf von zu im in den dem des
"""
_FILLER = frozenset(_FILLER_WORDS.split())

_NUMBER_WORDS = re.findall(
    r"\w+",
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen
    """,
)
_NUMBERS = {
    **{word: float(place) for place, word in enumerate(_NUMBER_WORDS)},
    **{"twenty": 20.0, "thirty": 30.0, "forty": 40.0, "fifty": 50.0, "sixty": 60.0, "ninety": 90.0, "hundred": 100.0, "half": 0.5},
}
_UNITS: dict[str, tuple[str, float]] = {}
for _claim_names, _dimension, _factor in (
    ("ms millisecond milliseconds", "time", 0.001),
    ("s sec secs second seconds", "time", 1.0),
    ("min mins minute minutes", "time", 60.0),
    ("h hr hrs hour hours", "time", 3_600.0),
    ("d day days", "time", 86_400.0),
    ("week weeks", "time", 604_800.0),
    ("month months", "time", 2_592_000.0),
    ("year years", "time", 31_536_000.0),
    ("kb kib kilobytes", "size", 1e3),
    ("mb mib megabytes", "size", 1e6),
    ("gb gib gigabytes", "size", 1e9),
    ("percent %", "share", 1.0),
):
    _UNITS |= dict.fromkeys(_claim_names.split(), (_dimension, _factor))
_OFTEN = {"hourly": 3.6e3, "daily": 8.64e4, "nightly": 8.64e4, "weekly": 6.048e5, "monthly": 2.592e6, "yearly": 3.1536e7}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FIGURE = lazy_regex(
    rf"(?<![\w.])(?P<figure>v?\d[\d,]*(?:\.\d+)*(?::\d\d)?|{'|'.join(_NUMBERS)})(?P<short>%|[a-z]{{1,3}}\b)?[ -]?(?P<next>[a-z]+)?",
    re.IGNORECASE,
)
_SENTENCE = lazy_regex(r"(?<=[.;!?])\s+|\n+")
_SOME = 0.2
_MARKS = lazy_regex(r"\*\*|`|['’]s\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A figure in a sentence.

    ``dimension`` is what it measures: time, size, a day of the week, or a count.
    """

    dimension: str
    figure: float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """A sentence taken apart. ``words`` has no figure in it; ``pairs`` are words with the one right in front of each.

    ``changed`` are the words of a sentence about a change; ``happened`` is whether it is about a past event.
    """

    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    values: frozenset[Value]
    code: frozenset[str]
    names: frozenset[str]
    changed: frozenset[str]
    happened: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How strongly two assertions differ, each figure from 0 to 1."""

    shared: float
    value: float
    choice: float
    retires: float
    another: float
    other_code: float
    happened: float


def claims(title: str, body: str) -> tuple[Assertion, ...]:
    found = dict.fromkeys([title] if title else [])
    for sentence in _SENTENCE.split(body[:_CLAIM_TEXT]):
        if len(found) == _CLAIMS:
            break
        if len(stripped := sentence.strip()) >= _SHORTEST:
            found.setdefault(stripped)
    return tuple(map(_claim, found))


def compare_claims(newer: Sequence[Assertion], older: Sequence[Assertion]) -> Difference | None:
    """Return how two notes differ; ``None`` where they share no word.

    Their first claims, the titles, decide which thing each is about.
    """
    both = [compared for one in newer for other in older if (compared := _compared(one, other)).shared]
    if not both:
        return None
    first = _compared(newer[0], older[0])
    return replace(max(both, key=_comparable), another=first.another, other_code=first.other_code, happened=first.happened)


def _comparable(difference: Difference) -> float:
    return (
        3 * difference.shared
        + (0.5 * (difference.value + difference.choice) if difference.shared > _SOME else 0.0)
        + difference.retires
    )


def _claim(sentence: str) -> Assertion:
    text = unicodedata.normalize("NFKC", _MARKS.sub("", sentence))
    telling = frozenset(_significant_words(text))
    return Assertion(
        words=telling,
        pairs=frozenset(_pairs(text)),
        values=frozenset(_claimed_values(text)),
        code=frozenset([found.casefold() for found in _CODE.findall(text)]),
        names=frozenset([stem(found) for found in _CLAIM_NAME.findall(text) if found.casefold() not in _FILLER]),
        changed=telling if _CHANGE.search(text) else frozenset(),
        happened=bool(_EVENT_WORDS.search(text)),
    )


def _compared(newer: Assertion, older: Assertion) -> Difference:
    return Difference(
        shared=len(newer.words & older.words) / max(1.0, sqrt(len(newer.words) * len(older.words))),
        value=float(_value_differs(newer, older)),
        choice=float(bool(newer.names - older.words) and bool(older.names - newer.words)),
        retires=min(1.0, len(newer.changed & older.words) / 2),
        another=float(_another(newer, older)),
        other_code=float(bool(newer.code - older.code) and bool(older.code - newer.code)),
        happened=float(older.happened),
    )


def _another(newer: Assertion, older: Assertion) -> bool:
    """Return whether a word that both have follows a different word in each: refresh tokens are not access tokens."""
    mine, theirs = newer.words - older.words, older.words - newer.words
    heads = {head for first, head in newer.pairs if first in mine}
    return any(head in heads and first in theirs for first, head in older.pairs)


def _value_differs(newer: Assertion, older: Assertion) -> bool:
    """Return whether both have figures of one dimension, and the newer one that the older has not."""
    sorts = {each.dimension for each in older.values}
    return any(each.dimension in sorts for each in newer.values - older.values)


def _claimed_values(text: str) -> Iterator[Value]:
    for found in _FIGURE.finditer(text):
        figure, unit, following = found["figure"].casefold(), (found["short"] or "").casefold(), (found["next"] or "").casefold()
        if ":" in figure:
            yield Value(dimension="clock", figure=figure)
            continue
        if figure.startswith("v") or figure.count(".") > 1:
            yield Value(dimension="version", figure=figure.lstrip("v"))
            continue
        number = _NUMBERS.get(figure)
        if number is None:
            number = float(figure.replace(",", ""))
        dimension, factor = _UNITS.get(unit) or _UNITS.get(following) or ("", 1.0)
        if not dimension and unit == "k":
            factor = 1_000.0
        if not dimension and figure in _NUMBERS and following in _FILLER | {""}:
            continue
        yield Value(dimension=dimension or "count", figure=number * factor)
    for word in re.findall(r"[a-z]+", text.casefold()):
        if word in _OFTEN:
            yield Value(dimension="time", figure=_OFTEN[word])
        elif word.removesuffix("s") in _DAYS:
            yield Value(dimension="day", figure=word.removesuffix("s"))


def _significant_words(text: str) -> Iterator[str]:
    for found in _CLAIM_WORD.findall(text):
        word = found.casefold()
        if word in _FILLER or word in _NUMBERS or word in _UNITS or word in _OFTEN or word.removesuffix("s") in _DAYS:
            continue
        if len(word) < 2 or word[0].isdigit():
            continue
        yield stem(word)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield each word with the one right in front of it, where neither is a filler word."""
    before = ""
    for found in re.finditer(r"[^\W_]+|[^\s]", text):
        word = found[0].casefold()
        telling = len(word) > 1 and word not in _FILLER and not word[0].isdigit()
        if telling and before:
            yield before, stem(word)
        before = stem(word) if telling else ""


def stem(word: str) -> str:
    """Return a word without most of its endings: «expires» and «expiry» are one, and so are «validate» and «validation»."""
    word = word.casefold()
    for ending in ("ations", "ation", "ings", "ing", "ies", "ers", "er", "ed", "es", "e", "s", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 4 and word[-1] == word[-2] else word[:8]


Rulings = Mapping[tuple[str, str], Ruling]
"""By the ids of the newer and the older note."""

_FEW_WORDS = 6
"""Texts with fewer words share almost all of them by chance."""
_MANY_WORDS, _OTHER_WORDS = 20, 2
"""For each ``_MANY_WORDS`` words of a note, ``_OTHER_WORDS`` may differ in a repetition."""

_EXCHANGED = 3
"""With more words of its own on each side, a text is another wording."""

_RELATED = ("**Related:**", "**Rejected:**", "> [!failure] Rejected:")
_REFUSAL = lazy_regex(rf"“([^\n]{{1,2000}}?)”, {SAID_TO_A_REFUSAL}\b")
_TEXT = 4_000
_WORD = lazy_regex(r"[^\W_]+")
_GIVEN_UP = lazy_regex(
    r"\b(?:no longer|not\b[^.;\n]{0,40}\bany ?more|any ?more|formerly|previously|earlier|until now|used to|given up|g[ai]ve up"
    r"|remov(?:e|es|ed|ing)|dropp(?:ed|ing)|drops?|renam(?:e|es|ed|ing)|replac(?:e|es|ed|ing)|instead of|rather than|stop(?:s|ped)?"
    r"|was wrong|turned out|obsolete|deprecated|leftovers?|superseded?|moved? (?:from|away)|switch(?:ed|es)? (?:from|away|to)"
    r"|abandon(?:ed|s)?|problematic|only (?:after|once)|nicht mehr|statt|früher)\b",
    re.IGNORECASE,
)
"""In a sentence that matches, words may describe what held before."""
_NOT = lazy_regex(r"\b(?:no|not|never|cannot|without|nicht|kein\w*|nie)\b|n't\b", re.IGNORECASE)
_NAME = lazy_regex(r"(?<=[a-z0-9,;] )[A-Z]\w*|\b[a-z]\w*(?:[A-Z_]\w*|[./#-]\w+)")
_GRAMMAR_WORDS = """
about also and because been does each every for from gets have here into just made make more most much only over same since some
such than that the their them then there these they this those thus upon very what when where which while will with would
"""
_GRAMMAR = frozenset(_GRAMMAR_WORDS.split())
_HAS_DIGIT = lazy_regex(r"\d")
_TOKEN = lazy_regex(r"[\w.:/%+-]+")

_NEARER, _VALUE, _RETIRES, _ANOTHER, _OTHER_CODE, _HAPPENED, _LEVEL = 13.0, 0.5, 0.8, -4.3, -3.6, -1.8, -4.4
"""Coefficients of a logistic regression over invented and labelled pairs, rounded; `bench/vault/lifecycle.py` fits them again."""
_REVIEWED, _ASKED = -0.5, -3.0
_SHARED_AT_LEAST, _ALMOST_ALL_SHARED = 0.35, 0.75
_USUAL, _OTHERS = 0.22, 4
"""Cosine assumed for an unrelated note, and the number of other notes up to which it fills in for missing ones."""
_ASKED_PER_NOTE, _REVIEWED_PER_NOTE = 4, 1
_ASIDE = 1
"""Importance of what was said in passing."""


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
    return _has_hardly_another_word(said, held) and not at_odds(said, held)


def _has_hardly_another_word(said: str, held: str) -> bool:
    """Return whether the shorter text has hardly a word that the longer one has not."""
    less, more = sorted((shortened_words(said), shortened_words(held)), key=len)
    return len(less) >= _FEW_WORDS and len(less - more) <= (len(less) // _MANY_WORDS) * _OTHER_WORDS


def at_odds(said: str, held: str) -> bool:
    """Return whether two texts differ however many words they share.

    They do where figures, signs, names, a negation, a word about what held before, or the places of words differ.
    """
    if any(_differ(of(said), of(held)) for of in (_values, signs, _names)):
        return True
    if any(bool(pattern.search(said)) != bool(pattern.search(held)) for pattern in (_NOT, _GIVEN_UP)):
        return True
    return arranges_otherwise(said, held)


def exchanges_words(said: str, held: str) -> bool:
    """Return whether two texts are the same but for a few words that each has in place of the other's: black, ruff."""
    mine, theirs = frozenset(_significant_words(said)), frozenset(_significant_words(held))
    return 0 < len(mine - theirs) <= _EXCHANGED and 0 < len(theirs - mine) <= _EXCHANGED


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
        elif ruling is None and contest.likely >= _REVIEWED and reviewed < _REVIEWED_PER_NOTE and _for_a_person(contest):
            reviewed += 1
            found.append(Relation(old=old, does="conflicts", because="they differ on the same thing", reversed=late))
    return found


def _for_a_person(contest: Contest) -> bool:
    """Return whether a person is asked about a pair: not about an aside, and within a session only where one takes the other back.

    What a session says later is mostly another side of the same work.
    """
    newer, older = contest.newer, contest.older
    if _ASIDE in (newer.importance, older.importance) or not _differ_on_one_thing(newer, older):
        return False
    return not sessions_of(newer.evidence) & sessions_of(older.evidence) or takes_back(newer, older)


def _differ_on_one_thing(newer: Note, older: Note) -> bool:
    """Return whether the words of two notes show that they differ; one of them a fact, that two are near says little.

    Much is said of one person or one machine, and nearly all of it is true at once.
    """
    difference = compare_claims(_claims(newer), _claims(older)) if NoteKind.FACT in (newer.kind, older.kind) else None
    if difference is None or _rearranges(newer, older):
        return True
    if difference.shared >= _ALMOST_ALL_SHARED:
        return True
    return difference.shared >= _SHARED_AT_LEAST and max(difference.value, difference.choice, difference.retires) == 1.0


def takes_back(newer: Note, older: Note) -> bool:
    """Return whether a note contradicts an older one extracted with it.

    Their nearness is not known here, so the wording must be explicit.
    """
    if (
        (newer.kind, newer.project) != (older.kind, older.project)
        or newer.kind not in REPLACEABLE_KINDS
        or newer.created <= older.created
    ):
        return False
    difference = compare_claims(_claims(newer), _claims(older))
    if (
        difference is None
        or difference.another
        or difference.other_code
        or difference.happened
        or newer.kind not in REPLACEABLE_KINDS - {NoteKind.INSIGHT}
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
    difference = compare_claims(_claims(newer), _claims(older))
    return Likeness(nearer=nearer, difference=difference) if difference is not None else None


@lru_cache(maxsize=256)
def _claims(note: Note) -> tuple[Assertion, ...]:
    return claims(note.title, text_of(replace(note, title="")))


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
    if draft.kind not in REPLACEABLE_KINDS:
        return []
    found: list[Contest] = []
    for near, by in zip(around.near, nearer(around), strict=True):
        note = near.note
        if note.kind not in REPLACEABLE_KINDS or note.status is not NoteStatus.ACCEPTED or note.id == draft.id:
            continue
        if note.kind is draft.kind is NoteKind.INSIGHT:  # a finding does not replace a finding
            continue
        if repeats(draft, note):  # a repetition does not contradict it
            continue
        newer, older = (draft, note) if _is_later(draft, note) else (note, draft)
        if (alike := likeness(newer, older, by)) is not None:
            likely = max(alike.likely, _REVIEWED) if _rearranges(newer, older) else alike.likely
            found.append(Contest(newer=newer, older=older, likely=likely))
    return sorted(found, key=lambda each: -each.likely)


def _rearranges(newer: Note, older: Note) -> bool:
    """Return whether two notes say different things with the same words."""
    said, held = text_of(newer), text_of(older)
    return newer.kind is older.kind and _has_hardly_another_word(said, held) and arranges_otherwise(said, held)


def _differ(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Return whether each has what the other has not."""
    return not (mine <= theirs or theirs <= mine)


def _values(text: str) -> frozenset[str]:
    text = text.casefold().replace("\N{MINUS SIGN}", "-")
    return frozenset([_unpointed(token) for token in _TOKEN.findall(text) if _HAS_DIGIT.search(token)])


def _unpointed(token: str) -> str:
    value = token.strip(".:/-+")
    return f"-{value}" if value[0].isdigit() and token.startswith("-") and not token.startswith("--") else value


def _names(text: str) -> frozenset[str]:
    """Return what is written like a name or like code, except the first words of sentences."""
    return frozenset([found.casefold() for found in _NAME.findall(text)])


def shortened_words(text: str) -> frozenset[str]:
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
    """Return whether there is no branch, no session and no time where the older note holds, and the newer does not."""
    if newer.branch not in ("", older.branch):
        return False
    if newer.scope is Scope.SESSION and (newer.scope, newer.session) != (older.scope, older.session):
        return False
    return newer.expires is None or (older.expires is not None and newer.expires >= older.expires)


def _is_later(one: Note, other: Note) -> bool:
    return one.created >= other.created


def sessions_of(evidence: Sequence[str]) -> frozenset[str]:
    """Return the sessions that these citations name, as ``provider:session``."""
    return frozenset(reference.partition("#")[0] for reference in evidence)


def _distinctive_words(text: str) -> frozenset[str]:
    """Return the words without short ones, which are mostly grammatical."""
    return frozenset([word for word in _words(text) if len(word) > 3 or _HAS_DIGIT.search(word) or not word.isascii()])


def _words(text: str) -> frozenset[str]:
    text = text.lower()
    if not text.isascii():
        bare = "".join(char for char in unicodedata.normalize("NFKD", text) if unicodedata.category(char) != "Mn")
        text = unicodedata.normalize("NFC", bare)
    return frozenset(_WORD.findall(text))
