"""Search: answer a question with notes, best first, with the reasons for each."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np
import numpy.typing as npt

from kite_memory.model.hit import Hit
from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.recall import scoring
from kite_memory.recall.catalogue import Sight
from kite_memory.recall.index import Index, Signals
from kite_memory.recall.prose import prose
from kite_memory.recall.rendering import plain_line

Mode = Literal["hybrid", "keyword", "semantic"]

_PAGE = 0.25
"""Penalty for an entity's page: it only lists what mentions the entity, and its only word is the entity's name."""

_FAINT = 0.25
"""A note that shares no word with the question and is less similar than this in meaning is not returned."""
_WORDS_NAMED = 5
_SNIPPET = 240
_LINE = re.compile(r"[^\n]+")
_EVERYTHING = Sight()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search. ``project`` is where the question comes from: other projects' notes score lower. ``within`` leaves them out.

    ``sight`` bounds the notes: the answer is the same, to the last figure, as if there were no others.
    """

    text: str
    mode: Mode = "hybrid"
    project: str = ""
    within: str = ""
    since: datetime | None = None
    kinds: frozenset[NoteKind] = frozenset()
    limit: int = 10
    sight: Sight = _EVERYTHING


def search(index: Index, query: Query, now: datetime) -> tuple[Hit, ...]:
    """Return the best hits. Rejected and expired notes are omitted; a replaced note comes after its successor."""
    signals = index.signals(
        query.text,
        project=query.within,
        beside=True,
        forgiving=True,
        meaning=query.mode != "keyword",
        words=query.mode != "semantic",
        sight=query.sight,
    )
    columns = signals.columns
    mask = scoring.found(columns, now.timestamp())
    if query.kinds:
        mask &= scoring.of_kinds(columns, query.kinds)
    if query.since:
        mask &= columns.notes["created"] >= query.since.timestamp()
    if query.within:
        mask &= scoring.within(columns, index.project_number(query.within))
    match query.mode:
        case "hybrid":
            scores = scoring.fused(signals.cosine, signals.bm25, notes=len(columns), terms=len(signals.terms))
        case "keyword":
            scores = scoring.words_score(signals.bm25, notes=len(columns), terms=len(signals.terms))
        case "semantic":
            scores = np.maximum(signals.cosine.astype(np.float64), 0)
    if query.project:
        scores = scores - scoring.handicap(columns, index.project_number(query.project))
    scores = scores - _PAGE * scoring.of_kinds(columns, {NoteKind.ENTITY})
    related = (signals.bm25 > 0) | (signals.cosine >= _FAINT)
    own = np.where(mask & related, scores, -np.inf)
    pairs = scoring.succession(columns)
    scores = scoring.settled(own, pairs[mask[pairs].all(axis=1)])
    return hits(index, signals, scores, inherited=scores > own, limit=query.limit, project=query.project)


def hits(
    index: Index, signals: Signals, scores: scoring.Scores, *, inherited: scoring.Mask, limit: int, project: str
) -> tuple[Hit, ...]:
    """Return the hits of the best rows; of notes that share an id, the best one. ``inherited`` marks rows whose score comes from a
    note they replace.
    """
    rows = best(scores, signals.columns.notes["created"], limit * 2)
    numbers = [int(number) for number in signals.columns.notes["number"][rows]]
    notes = index.notes(numbers)
    words = index.matched_words(signals.terms, numbers)
    chosen: dict[str, Hit] = {}
    for row, number in zip(rows.tolist(), numbers, strict=True):
        note = notes.get(number)
        if note is None or name(note) in chosen or len(chosen) == limit:
            continue
        matched = words.get(number, ())
        chosen[name(note)] = Hit(
            note=note,
            score=round(min(1.0, max(0.0, float(scores[row]))), 4),
            why=", ".join(_reasons(note, float(signals.cosine[row]), matched, bool(inherited[row]), project)),
            snippet=snippet(note, matched),
        )
    return tuple(chosen.values())


def name(note: Note) -> str:
    """Return what identifies a note permanently: its id, or its path if it has none."""
    return note.id or note.path


def best(scores: scoring.Scores, created: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.intp]:
    """Return the best rows, best first; of equals, the newer first."""
    rows = np.flatnonzero(scores > -np.inf)
    if len(rows) > count:
        rows = rows[np.argpartition(-scores[rows], count)[:count]]
    return rows[np.lexsort((-created[rows], -scores[rows]))]


def _reasons(note: Note, cosine: float, matched: Sequence[str], inherited: bool, project: str) -> Iterator[str]:
    if cosine > 0:
        yield f"meaning {cosine:.2f}"
    if matched:
        yield "words: " + " ".join(plain_line(word, 40) for word in matched[:_WORDS_NAMED])
    if inherited:
        yield "replaces a note that fits better"
    if project and note.project:
        yield "this project" if note.project == project else "another project"
    if note.status is not NoteStatus.ACCEPTED:
        yield str(note.status)


def snippet(note: Note, matched: Sequence[str]) -> str:
    """Return the line of the note with most of the words, or its first line."""
    lines = _LINE.findall(prose(note.body[:20_000]))
    words = [word.replace(" ", "") for word in matched]
    best = max(lines, key=lambda line: sum(word in line.lower() for word in words), default="")
    found = [place for word in words if (place := best.lower().find(word)) >= 0]
    start = max(0, min(found, default=0) - _SNIPPET // 3) if len(best) > _SNIPPET else 0
    return ("…" if start else "") + plain_line(best[start:], _SNIPPET)
