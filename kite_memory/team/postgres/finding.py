"""Search by embedding and by words, scored together as local recall does it."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kite_memory.errors import EmbedderUnavailable
from kite_memory.model.hit import SMALL_COLLECTION
from kite_memory.model.note import Note, NoteStatus, Scope
from kite_memory.recall import lexical, search
from kite_memory.recall.embedder import Embedder, Space
from kite_memory.recall.prose import passages, searchable
from kite_memory.recall.search import snippet
from kite_memory.team.postgres.connections import Cursor, Row, storable
from kite_memory.team.postgres.rows import aware, note_of
from kite_memory.tools.store import FoundNote, Grant, NoteQuery

_WORD: Final = re.compile(r"[^\W_]+")
_SPACELESS: Final = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_LONGEST: Final = 64
_LAST_PLACE: Final = 16_383
_BYTES: Final = 600_000
"""Most bytes of a note's words; PostgreSQL's limit is a megabyte."""
_MOST_TERMS: Final = 24
_ENDINGS: Final = ("ing", "ies", "es", "ed", "s", "y")
_STEM: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteWords:
    """A note's words. ``vector`` is a ``tsvector`` in PostgreSQL's notation."""

    vector: str
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word of a query.

    ``query`` and ``titled`` (the same for titles and names only) are in PostgreSQL's notation; ``word`` is for display.
    """

    word: str
    query: str
    titled: str


def held(note: Note) -> NoteWords:
    """Return a note's words. Titles and names weigh more than the body."""
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
    return NoteWords(vector=" ".join(f"'{word}':{','.join(places)}" for word, places in found.items()), length=place)


def terms(text: str) -> list[Term]:
    """Return the meaningful words of a query in order, the first two dozen."""
    return [_term(word) for word in lexical.terms(text[:10_000])][:_MOST_TERMS]


def matched(found: Sequence[int], asked: Sequence[Term]) -> tuple[str, ...]:
    return tuple(asked[place - 1].word for place in found)


def _cut(text: str) -> list[str]:
    """Split a text into words as `lexical.terms` does for a query; letters of scripts without spaces count each as a word."""
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


_FEW: Final = 20_000
"""Up to this many notes are compared one by one; beyond that the vector index is used."""
_COUNTED: Final = 3_000
"""Up to this many notes are counted exactly; beyond that the database's statistics are used."""
_CANDIDATES: Final = 50
_POSTINGS: Final = 4_000
_TERMS_AT_LEAST: Final = 2
_PASSAGES: Final = 16
_FAINT: Final = 0.25
"""The same as for local search: a note that shares no word with the query and has a lower cosine is no answer."""
_FOREIGN: Final = 0.10
_REPLACED: Final = 0.10
"""Deduction for a replaced note, so that the note that replaces it ranks first."""
_K1: Final = 1.2
_B: Final = 0.75
_USUAL_LENGTH: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """The index entries of a note.

    ``vectors`` are in pgvector's notation, empty if the embedder did not answer; ``space`` is theirs.
    """

    words: NoteWords
    vectors: tuple[str, ...]
    space: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedQuery:
    """A prepared query. It is made outside of a transaction, since embedding takes time."""

    asked: NoteQuery
    terms: tuple[Term, ...]
    vector: str


def indexed(note: Note, embedder: Embedder) -> Indexed:
    try:
        rows = embedder.embed(passages(note)[:_PASSAGES], "document")
    except EmbedderUnavailable:
        return Indexed(words=held(note), vectors=(), space="")  # found by its words until `PostgresStore.catch_up` embeds it
    return Indexed(words=held(note), vectors=tuple(map(spelled, rows)), space=embedder.space.tag)


def spelled(vector: Iterable[float]) -> str:
    return "[" + ",".join(f"{each:.5g}" for each in vector) + "]"


def question(asked: NoteQuery, embedder: Embedder) -> PreparedQuery:
    text = storable(asked.text[:20_000])
    try:
        vector = embedder.embed([text], "query")[0]
        spelling = spelled(vector) if vector.any() else ""
    except EmbedderUnavailable:
        spelling = ""
    return PreparedQuery(asked=asked, terms=tuple(terms(text)), vector=spelling)


def put_index(cursor: Cursor, tenant: str, note: Row, index: Indexed) -> None:
    """Replace the index entries of a note. ``note`` is its row."""
    place = {name: note[name] for name in ("id", "scope", "project", "kind", "created", "expires", "person")} | {"tenant": tenant}
    drop_index(cursor, tenant, note["id"])  # "on conflict" would require the right to read
    cursor.execute(
        "INSERT INTO kite.words (tenant, id, scope, project, kind, created, expires, length, tsv, person) VALUES (%(tenant)s,"
        " %(id)s, %(scope)s, %(project)s, %(kind)s, %(created)s, %(expires)s, %(length)s, %(tsv)s::tsvector, %(person)s)",
        {**place, "length": index.words.length, "tsv": index.words.vector},
    )
    cursor.executemany(
        "INSERT INTO kite.passage (tenant, id, place, scope, project, kind, created, expires, space, embedding, person) VALUES"
        " (%(tenant)s, %(id)s, %(place)s, %(scope)s, %(project)s, %(kind)s, %(created)s, %(expires)s, %(space)s, %(vector)s,"
        " %(person)s)",
        [{**place, "place": number, "space": index.space, "vector": vector} for number, vector in enumerate(index.vectors)],
    )


def drop_index(cursor: Cursor, tenant: str, id: str) -> None:
    cursor.execute("DELETE FROM kite.words WHERE tenant = %s AND id = %s", (tenant, id))
    cursor.execute("DELETE FROM kite.passage WHERE tenant = %s AND id = %s", (tenant, id))


def find(cursor: Cursor, grant: Grant, tenant: str, question: PreparedQuery, space: Space) -> list[FoundNote]:
    asked = question.asked
    around = {
        "project": storable(asked.project) if asked.within else "",
        "kinds": sorted(asked.kinds),
        "since": aware(asked.since) if asked.since else None,
    }
    about = cursor.execute(
        "SELECT notes, holding, reading FROM kite.about(%(terms)s::text[], %(project)s, %(kinds)s::text[],"
        " %(since)s::timestamptz, %(few)s)",
        {**around, "terms": [term.query for term in question.terms], "few": _COUNTED},
    ).fetchone()
    if about is None:
        return []
    chosen = _rarest(question.terms, about["holding"], about["reading"])
    rarities = [rarity(holding, about["notes"]) for _, holding in chosen]
    related = cursor.execute(
        "SELECT * FROM kite.find(%(vector)s, %(space)s, %(dim)s, %(terms)s::text[], %(titled)s::text[],"
        " %(weights)s::real[], %(project)s, %(kinds)s::text[], %(since)s::timestamptz, %(few)s, %(exact)s, %(most)s)",
        {
            **around,
            "vector": question.vector,
            "space": space.tag,
            "dim": space.dim,
            "terms": [term.query for term, _ in chosen],
            "titled": [term.titled for term, _ in chosen],
            "weights": rarities,
            "few": about["notes"] <= _COUNTED,
            "exact": about["notes"] <= _FEW,
            "most": max(_CANDIDATES, 2 * asked.limit),
        },
    ).fetchall()
    related = [row for row in related if row["matched"] or row["cosine"] >= _FAINT]
    if not related:
        return []
    bm25 = np.array([_bm25(row, rarities) for row in related])
    cosine = np.array([row["cosine"] for row in related], np.float32)
    scores = search.fused(cosine, bm25, notes=int(about["notes"]), terms=max(1, len(question.terms)))
    notes = _notes(cursor, tenant, [row["id"] for row in related])
    found = [
        _found(note, float(score), row, matched(row["matched"], [term for term, _ in chosen]), asked)
        for row, score in zip(related, scores, strict=True)
        if (note := notes.get(row["id"])) and grant.reads(note) and note.status is not NoteStatus.REJECTED
    ]
    found.sort(key=lambda one: (-one.score, -one.note.created.timestamp(), one.note.id))
    return found[: asked.limit]


def rarity(holding: int, notes: int) -> float:
    """Return the BM25 rarity with a minimum number of notes, since among few notes a word's rarity is unreliable."""
    size = max(notes, SMALL_COLLECTION)
    expected = min(size, holding) * math.sqrt(size / max(1, notes))
    return max(math.log((size + 0.5) / (min(size, expected) + 0.5)), 1e-6)


def _rarest(asked: Sequence[Term], holding: Sequence[int], reading: Sequence[int]) -> list[tuple[Term, int]]:
    """Return the rarest terms with the number of notes that hold each, in query order, as many as can be looked up in time."""
    chosen: set[int] = set()
    postings = 0
    for place in sorted(range(len(asked)), key=reading.__getitem__):
        postings += reading[place]
        if chosen and postings > (_POSTINGS if len(chosen) >= _TERMS_AT_LEAST else 2 * _POSTINGS):
            break
        chosen.add(place)
    return [(asked[place], holding[place]) for place in sorted(chosen)]


def _bm25(row: Row, rarities: Sequence[float]) -> float:
    """Return the BM25 score, with a frequency of 2 for each word, or 4 if the title or a name has it."""
    long = 1 - _B + _B * row["length"] / _USUAL_LENGTH
    in_title = set(row["in_title"])
    return math.fsum(
        rarities[place - 1] * frequency * (_K1 + 1) / (frequency + _K1 * long)
        for place in row["matched"]
        for frequency in (4 if place in in_title else 2,)
    )


def _notes(cursor: Cursor, tenant: str, ids: Sequence[str]) -> dict[str, Note]:
    """Read the notes through the policies, so that an id alone gives no access."""
    rows = cursor.execute(
        "SELECT * FROM kite.note WHERE tenant = %s AND id = ANY (%s) AND (expires IS NULL OR expires > now())", (tenant, list(ids))
    ).fetchall()
    return {row["id"]: note_of(row) for row in rows}


def _found(note: Note, score: float, row: Row, words: tuple[str, ...], asked: NoteQuery) -> FoundNote:
    reasons = [f"meaning {row['cosine']:.2f}"] if row["cosine"] > 0 else []
    if words:
        reasons.append("words: " + " ".join(words[:5]))
    if asked.project and note.project:
        reasons.append("this project" if note.project == asked.project else "another project")
        if note.project != asked.project and note.scope is not Scope.SHARED:
            score -= _FOREIGN
    if note.status is not NoteStatus.ACCEPTED:
        reasons.append(str(note.status))
    if note.status is NoteStatus.SUPERSEDED:
        score -= _REPLACED
    return FoundNote(note=note, score=round(min(1.0, max(0.0, score)), 4), why=", ".join(reasons), snippet=snippet(note, words))
