"""Detect whether two notes are about the same thing and differ in a value or a choice. Pure, and without a model.

The result only decides an order and a question: the newer one is shown first, and a person may decide which holds.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt

_TEXT, _CLAIMS, _SHORTEST = 800, 4, 15
"""Characters of a body, sentences of them (with the title), and shortest sentence, that are compared: what a note is about stands
there."""

_WORD = re.compile(r"[^\W_]+(?:[._/:-][^\W_]+)*|\d+(?:[.,:]\d+)*")
_CODE = re.compile(r"\b[\w-]+(?:_\w+|\.(?=[a-z])[a-z]\w{0,5}\b)+|\b[a-z]+[A-Z]\w+|(?<!\w)--?[a-z][\w-]+|(?:[\w.-]+/)+[\w.-]+")
_NAME = re.compile(r"(?<![.!?:;\n] )(?<!^)(?<!\n)\b[A-Z][\w+#]*|\b[A-Z]+[a-z]*[A-Z]\w*|\b[A-Z]{2,}\b")
_CHANGE = re.compile(
    r"\b(?:now|no longer|any ?more|since|instead|from now|as of|go(?:es|ing)? with|went with|switch\w*|mov(?:e|ed|es|ing)|migrat\w+"
    r"|replac\w+|rais\w+|lower\w+|cut|reduc\w+|increas\w+|bump\w+|chang\w+|drop\w*|remov\w+|revers\w+|revert\w*|back to|after all"
    r"|retir\w+|given up|gave up|ditch\w*|swap\w*|rather than|not renewed|allowed|may)\b",
    re.IGNORECASE,
)
_HAPPENED = re.compile(
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
for _names, _dimension, _factor in (
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
    _UNITS |= dict.fromkeys(_names.split(), (_dimension, _factor))
_OFTEN = {"hourly": 3.6e3, "daily": 8.64e4, "nightly": 8.64e4, "weekly": 6.048e5, "monthly": 2.592e6, "yearly": 3.1536e7}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FIGURE = re.compile(
    rf"(?<![\w.])(?P<figure>v?\d[\d,]*(?:\.\d+)*(?::\d\d)?|{'|'.join(_NUMBERS)})(?P<short>%|[a-z]{{1,3}}\b)?[ -]?(?P<next>[a-z]+)?",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.;!?])\s+|\n+")
_SOME = 0.2
_MARKS = re.compile(r"\*\*|`|['’]s\b")


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
    """Characters of a body, sentences of them (with the title), and shortest sentence, that are compared: a note's subject is
    near its beginning.
    """

    shared: float
    value: float
    choice: float
    retires: float
    another: float
    other_code: float
    happened: float


def claims(title: str, body: str) -> tuple[Assertion, ...]:
    found = dict.fromkeys([title] if title else [])
    for sentence in _SENTENCE.split(body[:_TEXT]):
        if len(found) == _CLAIMS:
            break
        if len(stripped := sentence.strip()) >= _SHORTEST:
            found.setdefault(stripped)
    return tuple(map(_claim, found))


def difference(newer: Sequence[Assertion], older: Sequence[Assertion]) -> Difference | None:
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
        values=frozenset(_values(text)),
        code=frozenset(found.casefold() for found in _CODE.findall(text)),
        names=frozenset(stem(found) for found in _NAME.findall(text) if found.casefold() not in _FILLER),
        changed=telling if _CHANGE.search(text) else frozenset(),
        happened=bool(_HAPPENED.search(text)),
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


def _values(text: str) -> Iterator[Value]:
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
    for found in _WORD.findall(text):
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
