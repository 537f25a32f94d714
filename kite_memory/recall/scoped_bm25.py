"""Word search among the notes that a reader may see, with no figure depending on other notes."""

import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing

import numpy as np
import numpy.typing as npt

from kite_memory.recall.lexical import SMALL_VAULT

_TERMS = 24
_WEIGHTS = (2.0, 2.0, 2.0, 1.0)
"""Column weights, as `lexical.SCHEMA` gives them to FTS5."""
_USUAL = 120.0
"""Usual number of words in a note."""
_PLACE = np.dtype([("place", "<i8")])
_WITHIN_NOTE, _WITHIN_COLUMN, _COLUMNS = 26, 24, 3
"""Bit positions in a word's place, packed into one number: the note's number, two bits for the column, and the position in it."""


def foremost(wanted: Sequence[str]) -> list[str]:
    """Return the first terms, for use where term rarity must not be revealed."""
    return list(wanted[:_TERMS])


def matches(
    connection: sqlite3.Connection, wanted: Sequence[str], among: npt.NDArray[np.int64], limit: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Do what `lexical.matches` does, as if the only notes were those with the ascending numbers ``among``.

    FTS5's own figures depend on every note, so this is its formula with the visible notes' counts, and with a usual length instead
    of the average one. Call it within one transaction.
    """
    scores = np.zeros(len(among))
    weights = np.array(_WEIGHTS)
    lengths: dict[int, int] = {}
    connection.execute("CREATE VIRTUAL TABLE temp.instances USING fts5vocab(main, words, instance)")
    try:
        for tokens in _tokens(wanted):
            places = _places(connection, tokens)
            numbers = places >> _WITHIN_NOTE
            rows = np.minimum(np.searchsorted(among, numbers), max(0, len(among) - 1))
            visible = among[rows] == numbers if len(among) else np.zeros(len(numbers), np.bool_)
            if not visible.any():
                continue
            found, place = np.unique(rows[visible], return_inverse=True)
            frequency = np.bincount(place, weights[(places[visible] >> _WITHIN_COLUMN) & _COLUMNS])
            length = np.array([_length(connection, int(number), lengths) for number in among[found]])
            saturation = frequency + 1.2 * (0.25 + 0.75 * length / _USUAL)
            scores[found] += _rarity(len(found), len(among)) * frequency * 2.2 / saturation
    finally:
        connection.execute("DROP TABLE temp.instances")
    best = np.argsort(-scores, kind="stable")[:limit]
    best = best[scores[best] > 0]
    return among[best], scores[best]


def _rarity(found: int, total: int) -> float:
    """Return FTS5's rarity, adjusted for small vaults; see `lexical.matches`."""
    size = max(total, SMALL_VAULT)
    expected = found * math.sqrt(size / total)
    return max(math.log((size - expected + 0.5) / (expected + 0.5)) if expected < size else 0.0, 1e-6)


def _places(connection: sqlite3.Connection, tokens: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the places where the tokens follow one another: the places of the last one."""
    query = (
        f"SELECT (doc << {_WITHIN_NOTE}) | (instr('tnbs', substr(col, 1, 1)) - 1 << {_WITHIN_COLUMN}) | offset"  # noqa: S608
        " FROM temp.instances WHERE term = ?"
    )
    places: npt.NDArray[np.int64] | None = None
    for token in tokens:
        those: npt.NDArray[np.int64] = np.fromiter(connection.execute(query, (token,)), _PLACE)["place"]
        places = those if places is None else np.intersect1d(places + 1, those)
    return places if places is not None else np.zeros(0, np.int64)


def _length(connection: sqlite3.Connection, number: int, known: dict[int, int]) -> int:
    """Return the number of a note's words as FTS5 stores it: one variable-length number for each column."""
    if number not in known:
        row = connection.execute("SELECT sz FROM words_docsize WHERE id = ?", (number,)).fetchone()
        total = column = 0
        for byte in row[0] if row else b"":
            column = column << 7 | byte & 0x7F
            if byte < 0x80:
                total, column = total + column, 0
        known[number] = total
    return known[number]


def _tokens(wanted: Sequence[str]) -> list[list[str]]:
    """Return each term as FTS5 indexes it: stemmed, and split into several tokens where FTS5 does so."""
    found: list[list[str]] = [[] for _ in wanted]
    with closing(sqlite3.connect(":memory:")) as scratch:
        scratch.execute("CREATE VIRTUAL TABLE said USING fts5(text, tokenize = 'porter unicode61')")
        scratch.execute("CREATE VIRTUAL TABLE heard USING fts5vocab(said, instance)")
        scratch.executemany("INSERT INTO said(rowid, text) VALUES (?, ?)", list(enumerate(wanted)))
        for place, token in scratch.execute("SELECT doc, term FROM heard ORDER BY doc, offset"):
            found[place].append(token)
    return [tokens for tokens in found if tokens]
