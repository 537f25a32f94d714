"""Stem words, so that a query matches other forms of a word, and measure the distance of two spellings."""

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST = 64
_ACCENTS = re.compile("[\u0300-\u036f]+")
_SPACELESS = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_VOWEL = re.compile("[aeiouy]")
_DOUBLED = re.compile(r"([bdfgmnprt])\1$")
_EMPTY_WORDS = """
a about above after again all also am an and any are as at be because been before being below between both but by can could did do
does doing don down during each few for from further get got had has have having he her here him his how i if in into is isn it its
itself just let ll me more most must my no nor not now of off on once only or other our out over own re s same she should so some
such t than that the their them then there these they this those through to too under until up us ve very was wasn we were what when
where which while who why will with won would yes you your
"""
EMPTY_WORDS = frozenset(_EMPTY_WORDS.split())


def stems(text: str) -> list[str]:
    """Return the stems of a text in order, with repetitions, without stop words.

    A compound name (``retryAfter``) yields its parts and the whole as one word; scripts without blanks between words yield pairs of
    letters.
    """
    found: list[str] = []
    for word in _WORD.findall(folded(text)):
        if len(word) > _LONGEST:
            continue
        if not word.isascii() and _SPACELESS.search(word):
            for run in _SPACELESS.findall(word):
                found += map("".join, pairwise(run)) if len(run) > 1 else [run]
            word = _SPACELESS.sub("", word)
            if not word:
                continue
        parts = _HUMP.split(word) if not (word.islower() or word.isupper()) else [word]
        for each in (*parts, word) if len(parts) > 1 else parts:
            low = each.lower()
            if low not in EMPTY_WORDS:
                found.append(stem(low))
    return found


def folded(text: str) -> str:
    """Return the text without accents."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


@lru_cache(maxsize=1 << 15)
def stem(word: str) -> str:
    """Return the stem of a word by the first and last step of Porter's algorithm: plurals, tenses, a final «y» or «e»."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("sses") or word.endswith("ies"):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        bare = word.removesuffix(ending)
        if bare != word and len(bare) > 2 and _VOWEL.search(bare):
            word = bare[:-1] if _DOUBLED.search(bare) else bare
            break
    if len(word) > 3 and word.endswith("ly"):
        word = word[:-2]
    if len(word) > 3 and word[-1] == "e":
        word = word[:-1]
    if len(word) > 2 and word[-1] == "y":
        word = word[:-1] + "i"
    return word


def edits(one: str, other: str, most: int) -> int:
    """Return the edit distance of two words, or ``most + 1`` if it is more than ``most``.

    Counts letters added, dropped, replaced, or swapped with their neighbour.
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    previous = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, theirs in enumerate(other, 1):
            cost = min(previous[column] + 1, current[column - 1] + 1, previous[column - 1] + (letter != theirs))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == theirs:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        if min(current) > most:
            return most + 1
        before, previous = previous, current
    return min(previous[-1], most + 1)
