"""A note's words for PostgreSQL's word index, and a question's as what that index is asked.

Words are cut and folded as local recall does it (`recall.lexical`), so PostgreSQL only has to compare them: as its configuration
``simple`` would, and by their beginnings where SQLite compares stems.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kite_memory.model.note import Note
from kite_memory.recall import lexical
from kite_memory.recall.prose import searchable

_WORD: Final = re.compile(r"[^\W_]+")
_SPACELESS: Final = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_LONGEST: Final = 64
_LAST_PLACE: Final = 16_383
_BYTES: Final = 600_000
"""PostgreSQL takes a megabyte for one note's words."""
_MOST_TERMS: Final = 24
_ENDINGS: Final = ("ing", "ies", "es", "ed", "s", "y")
_STEM: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """``vector`` is a ``tsvector`` in PostgreSQL's spelling."""

    vector: str
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """``query`` and ``titled`` (the same in titles and names alone) are in PostgreSQL's spelling; ``word`` is for people."""

    word: str
    query: str
    titled: str


def held(note: Note) -> Held:
    """Titles and names weigh more than what a note says."""
    words = searchable(note)
    found: dict[str, list[str]] = {}
    place = spent = 0
    for text, weight in ((f"{words.title}\n{words.named}", "A"), (words.body, "")):
        for word in _cut(text):
            place += 1
            places = found.setdefault(word, [])
            if not places:
                spent += len(word.encode()) + 8
            if len(places) < 32:
                places.append(f"{min(place, _LAST_PLACE)}{weight}")
                spent += 2
            if spent > _BYTES:
                break
    return Held(vector=" ".join(f"'{word}':{','.join(places)}" for word, places in found.items()), length=place)


def terms(text: str) -> list[Term]:
    """Those of a question that tell anything, in its order; the first two dozen."""
    return [_term(word) for word in lexical.terms(text[:10_000])][:_MOST_TERMS]


def matched(found: Sequence[int], asked: Sequence[Term]) -> tuple[str, ...]:
    return tuple(asked[place - 1].word for place in found)


def _cut(text: str) -> list[str]:
    """Words as `lexical.terms` cuts a question's; letters of scripts without blanks each for itself."""
    spaced = _SPACELESS.sub(r" \g<0> ", lexical.folded(text))
    return [word for word in _WORD.findall(spaced) if len(word) <= _LONGEST]


def _term(word: str) -> Term:
    if _SPACELESS.search(word):
        letters = word.split()
        return Term(
            word=word,
            query=" <-> ".join(f"'{letter}'" for letter in letters),
            titled=" <-> ".join(f"'{letter}':A" for letter in letters),
        )
    stem = _stem(word)
    mark = "*" if len(word) >= _STEM else ""
    return Term(word=word, query=f"'{stem}':{mark}" if mark else f"'{stem}'", titled=f"'{stem}':{mark}A")


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _STEM:
            return word.removesuffix(ending)
    return word
