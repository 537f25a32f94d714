"""Word search: SQLite's FTS5 with stemming, and optional correction of typing errors.

Among the notes that a bounded reader may see, no figure depends on other notes.
"""

import math
import sqlite3
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from kite_memory.model.hit import SMALL_COLLECTION
from kite_memory.redaction.cutting import ends
from kite_memory.text import lazy_regex, stems
from kite_memory.text.quoting import mended
from kite_memory.text.stems import FREQUENT, STOP_WORDS, edits, language_of

SCHEMA = """
CREATE VIRTUAL TABLE words USING fts5(title, named, body, said, tokenize = 'porter unicode61');
INSERT INTO words(words, rank) VALUES ('rank', 'bm25(2.0, 2.0, 2.0, 1.0)');
CREATE TABLE term (word TEXT PRIMARY KEY, notes INTEGER NOT NULL) WITHOUT ROWID;
"""

_OWN_COLUMNS = 3

_TERMS = 24
_TERMS_COUNTED = 400
_TERMS_AT_LEAST = 3
_POSTINGS = 3_500
"""Number of occurrences that are ranked in some three milliseconds; words that more notes contain hardly distinguish them."""
_POSTINGS_AT_MOST = 8_000
"""Limit for the rarest few terms. If one word has more occurrences, only the newest notes with it are ranked."""
_PASSING = "+rowid"
"""Prevents FTS5 from looking up each selected note, which takes ten times as long as filtering all matches."""
_LAST = "\U0010ffff"
_TERM_LENGTH = 64
_SHORT_TEXT = 400
_NAME_BEGINS, _NAME_GOES_ON = 5, 4
_KEYWORDS = 3
"""With more terms a text is taken for a sentence."""
_SUFFIXES = """
s es ed d ing er ers r rs ment ly al able ion ions or ors y e en n ness ity ful ive ize ized ise
"""
_ENDINGS = frozenset(_SUFFIXES.split())
"""Suffixes that the stemmer removes: a word that differs only in one is already found."""
_WORD = lazy_regex(r"[^\W_]+")
_SPACELESS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Scripts written without blanks between words: indexed letter by letter, and searched for in pairs of neighbours."""
_HIRAGANA = lazy_regex("[\u3040-\u309f ]+")
_ELIDED = frozenset(("c", "d", "j", "l", "m", "n", "qu", "s", "t"))
_SPACELESS_LETTER = lazy_regex(f"[{_SPACELESS}]")
_SPACELESS_RUN = lazy_regex(f"[{_SPACELESS}]+|[^{_SPACELESS}]+")
_MATCH = np.dtype([("note", "<i8"), ("score", "<f8")])
_MARK, _END_MARK = "\x02", "\x03"
_MARKED = lazy_regex(f"{_MARK}([^{_MARK}{_END_MARK}]*){_END_MARK}")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedWords:
    """Searchable words of a note: its own, and what was ``said`` when it came up, which is how people will ask for it.

    The latter counts half: measured on labelled paraphrases, it lifts the right note into the first two in eight of a hundred.
    """

    title: str
    named: str = ""
    body: str = ""
    said: str = ""

    def __iter__(self) -> Iterator[str]:
        yield from (self.title, self.named, self.body, self.said)


def terms(text: str) -> list[str]:
    """Return the terms of a text to search for, each once, in the order of the text."""
    return list(_short_terms(text)) if len(text) <= _SHORT_TEXT else _terms(text)


@lru_cache(maxsize=512)
def _short_terms(text: str) -> tuple[str, ...]:
    """Return the terms of a prompt's essence or a title, which a prompt asks for again and again."""
    return tuple(_terms(text))


def _terms(text: str) -> list[str]:
    found: dict[str, None] = {}
    language = language_of(text)
    stop_words = _stop_words(language)
    for word in _WORD.findall(folded(text)):
        if word in stop_words or len(word) > _TERM_LENGTH:
            continue
        for run in (word,) if word.isascii() else _SPACELESS_RUN.findall(word):
            if not run.isascii() and _SPACELESS_LETTER.match(run):
                found.update(dict.fromkeys(map(" ".join, pairwise(run)) if len(run) > 1 else [run]))
            else:
                found[run] = None
    return [term for term in found if not _only_grammar(term, language)] or list(found)


def _only_grammar(term: str, language: str) -> bool:
    """Return whether a pair of letters is a part of endings and particles, as hardly any text of the language lacks."""
    if language == "ja":
        return _HIRAGANA.fullmatch(term) is not None
    return language == "zh" and all(sign in FREQUENT["zh"] for sign in term.split(" "))


@cache
def _stop_words(language: str) -> frozenset[str]:
    """Return words that are not searched for in a text of this language, as `folded` writes them."""
    if language in ("", "en"):
        return STOP_WORDS
    return STOP_WORDS | {*map(folded, FREQUENT.get(language, ()))} | (_ELIDED if language == "fr" else frozenset())


def folded(text: str) -> str:
    """Return the text in lower case without accents, as FTS5 compares it."""
    text = text.lower()
    if text.isascii():
        return text
    bare = "".join(char for char in unicodedata.normalize("NFKD", text) if unicodedata.category(char) != "Mn")
    return unicodedata.normalize("NFC", bare)


def purge(connection: sqlite3.Connection) -> None:
    """Merge the index, which removes the words of removed notes from it."""
    connection.execute("INSERT INTO words (words) VALUES ('optimize')")


def add(connection: sqlite3.Connection, note: int, words: IndexedWords) -> None:
    stored = [_storable(text) for text in words]
    connection.execute("INSERT INTO words(rowid, title, named, body, said) VALUES (?, ?, ?, ?, ?)", (note, *stored))
    connection.executemany(
        "INSERT INTO term VALUES (?, 1) ON CONFLICT (word) DO UPDATE SET notes = notes + 1",
        ((word,) for word in _vocabulary("\n".join(stored))),
    )


def remove(connection: sqlite3.Connection, note: int) -> None:
    row = connection.execute("SELECT title, named, body, said FROM words WHERE rowid = ?", (note,)).fetchone()
    if row is None:
        return
    vocabulary = [(word,) for word in _vocabulary("\n".join(row))]
    connection.execute("DELETE FROM words WHERE rowid = ?", (note,))
    connection.executemany("UPDATE term SET notes = notes - 1 WHERE word = ?", vocabulary)
    connection.executemany("DELETE FROM term WHERE word = ? AND notes <= 0", vocabulary)


def rarest_terms(connection: sqlite3.Connection, wanted: Sequence[str], total: int) -> list[str]:
    """Return the rarest terms, in their order: only as many as distinguish notes and can be looked up quickly."""
    if len(wanted) <= _TERMS and len(wanted) * total <= _POSTINGS:
        return list(wanted)
    notes = {term: _holding(connection, term) for term in wanted[:_TERMS_COUNTED]}
    chosen: set[str] = set()
    postings = 0
    for term in sorted(notes, key=notes.__getitem__):
        postings += notes[term]
        most = _POSTINGS if len(chosen) >= _TERMS_AT_LEAST else _POSTINGS_AT_MOST
        if len(chosen) == _TERMS or (chosen and postings > most):
            break
        if notes[term] or len(wanted) <= _TERMS:
            chosen.add(term)
    return [term for term in wanted if term in chosen]


def called_otherwise(connection: sqlite3.Connection | None, wanted: Sequence[str]) -> list[str]:
    """Return other names of the terms: short forms, and, for a word that no note contains, names that begin with it."""
    found = dict.fromkeys(form for term in wanted[:_TERMS] for form in stems.others(term))
    for term in wanted[:_TERMS]:
        if (
            connection is None
            or len(term) < _NAME_BEGINS
            or connection.execute("SELECT 1 FROM term WHERE word = ?", (term,)).fetchone()
        ):
            continue
        rows = connection.execute("SELECT word FROM term WHERE word > ? AND word < ? LIMIT 20", (term, term + _LAST)).fetchall()
        found |= dict.fromkeys(
            word for (word,) in rows if len(word) - len(term) <= _NAME_GOES_ON and word[len(term) :] not in _ENDINGS
        )
    return [form for form in found if form not in wanted]


def _holding(connection: sqlite3.Connection, term: str) -> int:
    """Return about how many notes contain a term."""
    if " " in term:
        return 1
    if len(term) < 4:
        row = connection.execute("SELECT notes FROM term WHERE word = ?", (term,)).fetchone()
    else:
        stem = term[: max(4, len(term) - 3)]  # roughly what the stemmer leaves, so that a plural finds its singular
        row = connection.execute("SELECT sum(notes) FROM term WHERE word >= ? AND word < ?", (stem, stem + _LAST)).fetchone()
    return int(row[0] or 0) if row else 0


def matches(
    connection: sqlite3.Connection, wanted: Sequence[str], total: int, limit: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the numbers of the best ``limit`` notes that contain any of the terms, and their BM25, larger being better."""
    if not wanted:
        rows: Iterable[tuple[int, float]] = ()
    elif total >= SMALL_COLLECTION:
        rows = connection.execute(
            "SELECT rowid, -rank FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?", (_any_of(wanted), _POSTINGS_AT_MOST)
        )
    else:
        rows = _small_matches(connection, wanted)
    found = np.fromiter(rows, _MATCH)
    found = found[np.argsort(-found["score"], kind="stable")[:limit]]  # here in half the time that SQLite takes
    return found["note"], found["score"]


def _small_matches(connection: sqlite3.Connection, wanted: Sequence[str]) -> list[tuple[int, float]]:
    scores: dict[int, float] = {}
    for number, (score,) in _one_by_one(connection, wanted, "-rank"):
        scores[number] = scores.get(number, 0.0) + score
    return list(scores.items())


def _one_by_one(connection: sqlite3.Connection, wanted: Sequence[str], measures: str) -> Iterator[tuple[int, list[float]]]:
    """Score each term alone, with FTS5's formula but a rarity suited to small vaults: FTS5 gives a word in half of the notes no
    weight.

    Call it within one transaction: the count must be the one that FTS5 uses.
    """
    total = connection.execute("SELECT count(*) FROM words").fetchone()[0]
    size = max(total, SMALL_COLLECTION)
    for term in wanted:
        query = f"SELECT rowid, {measures} FROM words WHERE words MATCH ?"  # noqa: S608  (measures are ours)
        found = connection.execute(query, (_any_of([term]),)).fetchall()
        if not found:
            continue
        theirs = math.log((total - len(found) + 0.5) / (len(found) + 0.5))
        expected = len(found) * math.sqrt(size / total)
        ours = math.log((size - expected + 0.5) / (expected + 0.5))
        fairer = max(ours, 1e-6) / (theirs if theirs > 0 else 1e-6)
        for number, *scores in found:
            yield number, [score * fairer for score in scores]


def in_names(
    connection: sqlite3.Connection, wanted: Sequence[str], notes: Collection[int], total: int
) -> dict[int, tuple[float, float]]:
    """Return two BM25 scores for each note, larger being better: of its title, and of its names."""
    if not wanted or not notes:
        return {}
    measures = "-bm25(words, 1, 0, 0, 0), -bm25(words, 0, 1, 0, 0)"
    if total >= SMALL_COLLECTION:
        marks = ",".join("?" * len(notes))
        query = f"SELECT rowid, {measures} FROM words WHERE words MATCH ? AND {_PASSING} IN ({marks})"  # noqa: S608  (marks are ours)
        return {number: (title, named) for number, title, named in connection.execute(query, (_any_of(wanted), *notes))}
    fits = dict.fromkeys(notes, (0.0, 0.0))
    for number, (title, named) in _one_by_one(connection, wanted, measures):
        if number in fits:
            fits[number] = fits[number][0] + title, fits[number][1] + named
    return fits


def rarities(connection: sqlite3.Connection, words: Collection[str], total: int) -> dict[str, float]:
    """Return the rarity of each word: the logarithm of the inverse share of notes that contain it."""
    marks = ",".join("?" * len(words))
    held = dict(connection.execute(f"SELECT word, notes FROM term WHERE word IN ({marks})", tuple(words)).fetchall())  # noqa: S608
    return {word: math.log((total + 1) / (held.get(word, 0) + 0.5)) for word in words}


def matched_words(connection: sqlite3.Connection, wanted: Sequence[str], notes: Collection[int]) -> dict[int, tuple[str, ...]]:
    """Return the words of each note that the terms matched; none from the text that was said about it."""
    if not wanted or not notes:
        return {}
    marks = ",".join("?" * len(notes))
    marked = " || ' ' || ".join(f"highlight(words, {column}, '{_MARK}', '{_END_MARK}')" for column in range(_OWN_COLUMNS))
    rows = connection.execute(
        f"SELECT rowid, {marked} FROM words WHERE words MATCH ? AND {_PASSING} IN ({marks})",  # noqa: S608  (marks are ours)
        (_any_of(wanted), *notes),
    )
    return {number: tuple(dict.fromkeys(found.group(1).lower() for found in _MARKED.finditer(text))) for number, text in rows}


def corrected(connection: sqlite3.Connection, wanted: Sequence[str], text: str = "") -> dict[str, tuple[str, ...]]:
    """Return, for each term that no note contains, up to three indexed words that a typing error may have turned into it.

    Not in a sentence of a language with many endings: most words that no note has are similar to some word there, of another
    meaning or another language. ``text`` is what the terms are from.
    """
    if len(wanted) > _KEYWORDS and language_of(text) not in ("", "en"):
        return {}
    lost = [
        term
        for term in wanted
        if len(term) > 3
        and term.isalpha()
        and not connection.execute("SELECT 1 FROM words WHERE words MATCH ? LIMIT 1", (_any_of([term]),)).fetchone()
    ]
    return {term: near for term in lost[:8] if (near := _near(connection, term))}


def _near(connection: sqlite3.Connection, term: str) -> tuple[str, ...]:
    """Return words similar to a term, or that begin similarly: «postgers» may mean «postgresql»."""
    most = 1 if len(term) < 8 else 2
    alike = connection.execute(
        "SELECT word, notes FROM term WHERE length(word) BETWEEN ?1 AND ?2"
        " AND (substr(word, 1, 1) IN (?3, ?4) OR substr(word, 2, 1) IN (?3, ?4))",
        (len(term) - most, len(term) + most, term[0], term[1]),
    )
    longer = connection.execute(
        "SELECT substr(word, 1, ?3), notes, word FROM term WHERE word >= ?1 AND word < ?2 AND length(word) > ?3",
        (term[:2], term[:2] + _LAST, len(term)),
    )
    letters = set(term)
    found = [
        (edits(term, part, most) + (0 if part == word else 0.5), -notes, word)
        for part, notes, word in (*((word, notes, word) for word, notes in alike), *longer)
        if len(letters.symmetric_difference(part)) <= 2 * most  # far cheaper to see than the edits themselves
    ]
    return tuple(dict.fromkeys(word for distance, _, word in sorted(found) if distance < most + 1))[:3]


def _any_of(wanted: Iterable[str]) -> str:
    """Return an FTS5 query for any of the terms, quoted so that nothing in a prompt is read as query syntax."""
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in wanted)


def _vocabulary(text: str) -> set[str]:
    return {word for word in _WORD.findall(folded(text)) if len(word) <= _TERM_LENGTH and not _SPACELESS_LETTER.search(word)}


def _storable(text: str) -> str:
    text = text.replace(_MARK, " ").replace(_END_MARK, " ").replace("\0", " ")
    text = text if text.isascii() else unicodedata.normalize("NFKC", mended(text))
    return _SPACELESS_LETTER.sub(r" \g<0> ", text)


_QUERY_LENGTH = 400


def essence(text: str) -> str:
    """Return the beginning and the end of a long prompt: the middle is mostly pasted text."""
    return text if len(text) <= _QUERY_LENGTH else "\n".join(ends(text, _QUERY_LENGTH * 2 // 3, _QUERY_LENGTH // 3))


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


def matches_among(
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
    size = max(total, SMALL_COLLECTION)
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
