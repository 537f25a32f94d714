"""Search: answer a question with notes, best first, with the reasons for each.

Scoring is pure functions over arrays, with all their constants. A fused score is absolute: it means the same whatever else the
vault holds, so it can be compared with a constant.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np
import numpy.typing as npt

from kite_memory.model.hit import FOREIGN_PROJECT, FULL_TERMS, MEANING_WEIGHT, SMALL_COLLECTION, WORDS_STEEPNESS, Hit
from kite_memory.model.note import SPOKEN_KINDS, Note, NoteKind, NoteStatus, Scope
from kite_memory.recall.catalogue import KINDS, SCOPES, STATUSES, Columns, Pairs, VisibleNotes
from kite_memory.recall.embedder import Space, Vectors
from kite_memory.recall.index import Index, Signals
from kite_memory.recall.prose import prose
from kite_memory.text.quoting import plain_line
from kite_memory.text.stems import language_of

Scores = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

_IMPORTANCE = 0.03
_STEEPNESS = 0.08
_STEEPEST = 0.24
_BEHIND = 0.01
_LONGEST_CHAIN = 8

_STANDING = frozenset({NoteStatus.ACCEPTED, NoteStatus.SUPERSEDED, NoteStatus.MUTED, NoteStatus.ARCHIVED})
"""Statuses in which a note can replace another."""


def words_score(bm25: Scores, *, notes: int, terms: int) -> Scores:
    """Return BM25 mapped to a bounded score that requires more in a larger vault, where words are rarer.

    A prompt of many terms matches some of them anywhere, so its score counts as if it had no more than eight.
    """
    fair = bm25 * min(1.0, FULL_TERMS / max(1, terms))
    return np.asarray(1 - np.exp(-fair / (WORDS_STEEPNESS * math.log(1 + max(notes, SMALL_COLLECTION)))))


def fused(cosine: Vectors, bm25: Scores, *, notes: int, terms: int, meaning: float = MEANING_WEIGHT) -> Scores:
    return np.asarray(meaning * np.maximum(cosine, 0) + (1 - meaning) * words_score(bm25, notes=notes, terms=terms))


def for_a_prompt(signals: Signals) -> Scores:
    """Return the scores for a prompt, which is less specific than a question: a note's importance counts too."""
    scores = fused(signals.cosine, signals.bm25, notes=len(signals.columns), terms=len(signals.terms))
    return np.asarray(scores + _IMPORTANCE * (signals.columns.notes["importance"] - 2.0))


def threshold(space: Space, notes: int) -> float:
    """Return the fused score from which a note is worth showing, in a space that no gate is fitted for."""
    return space.threshold + crowd(notes)


def crowd(notes: int) -> float:
    """Return about how much higher the best irrelevant note scores in a vault of this size."""
    return min(_STEEPEST, _STEEPNESS * math.log10(max(notes, SMALL_COLLECTION) / SMALL_COLLECTION))


def found(columns: Columns, now: float) -> Mask:
    """Return a mask of the notes that a search may return: all but rejected and expired ones."""
    notes = columns.notes
    return np.asarray((notes["status"] != STATUSES.index(NoteStatus.REJECTED)) & (notes["expires"] > now))


def spoken(columns: Columns, now: float, holding: Mask) -> Mask:
    """Return a mask of the notes that may be shown to an agent unasked: accepted, in force, and not replaced by a note of
    ``holding`` that is in force.
    """
    notes = columns.notes
    mask = (notes["status"] == STATUSES.index(NoteStatus.ACCEPTED)) & (notes["expires"] > now) & of_kinds(columns, SPOKEN_KINDS)
    mask[in_force(columns, succession(columns), now, holding)[:, 0]] = False
    return np.asarray(mask)


def of_kinds(columns: Columns, kinds: Collection[NoteKind]) -> Mask:
    wanted = np.array([kind in kinds for kind in KINDS])
    return np.asarray(wanted[columns.notes["kind"]])


def within(columns: Columns, project: int) -> Mask:
    """Return a mask of the notes of one project and of those that belong to none."""
    return columns.within(project)


def holding(index: Index, columns: Columns, *, project: int | None, branch: str, session: str) -> Mask:
    """Return a mask of the notes that apply there, as `Columns.holding` does."""
    return columns.holding(project=project, none=index.project_number(""), branch=branch, session=session)


def unbound(columns: Columns) -> Mask:
    """Return a mask of the notes that hold on every branch and in every session."""
    notes = columns.notes
    return np.asarray((notes["branch"] == 0) & (notes["scope"] != SCOPES.index(Scope.SESSION)))


def handicap(columns: Columns, project: int) -> Scores:
    """Return the penalty of each note: positive for another project's, else 0."""
    return np.where(within(columns, project), 0.0, FOREIGN_PROJECT)


def succession(columns: Columns) -> Pairs:
    """Return pairs of rows, an old note and its replacement, if the new one is in force: a proposal replaces nothing yet."""
    theirs = columns.notes["status"][columns.replaced[:, 1]]
    return columns.replaced[np.isin(theirs, [STATUSES.index(status) for status in _STANDING])]


def in_force(columns: Columns, pairs: Pairs, now: float, holding: Mask) -> Pairs:
    """Return the pairs whose replacement has not expired and is of ``holding``. A muted one hides what it replaces for good."""
    notes = columns.notes
    counts = (notes["status"] == STATUSES.index(NoteStatus.MUTED)) | ((notes["expires"] > now) & holding)
    return np.asarray(pairs[counts[pairs[:, 1]]])


def settled(scores: Scores, pairs: Pairs) -> Scores:
    """Give each replacement at least the score of the note it replaces, and rank it before that note."""
    settled = scores.copy()
    old, new = pairs[:, 0], pairs[:, 1]
    # Repeated, since a chain may be in any order; bounded, since references may form a circle by mistake.
    for _ in range(_LONGEST_CHAIN):
        np.maximum.at(settled, new, settled[old])
    for _ in range(_LONGEST_CHAIN):
        np.minimum.at(settled, old, settled[new] - _BEHIND)
    return settled


Mode = Literal["hybrid", "keyword", "semantic"]

_PAGE = 0.25
"""Penalty for an entity's page: it only lists what mentions the entity, and its only word is the entity's name."""

_OTHER_LANGUAGE = 0.1
"""Penalty for a note in another language than the question's: similarity of meaning is partly that of the language."""
_BEST, _READ = 20, 500

_FAINT = 0.25
"""A note that shares no word with the question and is less similar than this in meaning is not returned."""
_WORDS_NAMED = 5
_SNIPPET = 240
_LINE = re.compile(r"[^\n]+")
_EVERYTHING = VisibleNotes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search. ``project`` is where the question comes from: other projects' notes score lower. ``within`` leaves them out.

    ``visible`` bounds the notes: the answer is the same, to the last figure, as if there were no others.
    """

    text: str
    mode: Mode = "hybrid"
    project: str = ""
    within: str = ""
    since: datetime | None = None
    kinds: frozenset[NoteKind] = frozenset()
    limit: int = 10
    visible: VisibleNotes = _EVERYTHING


def search(index: Index, query: Query, now: datetime) -> tuple[Hit, ...]:
    """Return the best hits. Rejected and expired notes are omitted; a replaced note comes after its successor."""
    signals = index.signals(
        query.text,
        project=query.within,
        beside=True,
        forgiving=True,
        meaning=query.mode != "keyword",
        words=query.mode != "semantic",
        visible=query.visible,
    )
    columns = signals.columns
    mask = found(columns, now.timestamp())
    if query.kinds:
        mask &= of_kinds(columns, query.kinds)
    if query.since:
        mask &= columns.notes["created"] >= query.since.timestamp()
    if query.within:
        mask &= within(columns, index.project_number(query.within))
    match query.mode:
        case "hybrid":
            terms = len(signals.terms)
            scores = fused(signals.cosine, signals.bm25, notes=len(columns), terms=terms, meaning=signals.space.meaning)
        case "keyword":
            scores = words_score(signals.bm25, notes=len(columns), terms=len(signals.terms))
        case "semantic":
            scores = np.maximum(signals.cosine.astype(np.float64), 0)
    if query.project:
        scores = scores - handicap(columns, index.project_number(query.project))
    scores = scores - _PAGE * of_kinds(columns, {NoteKind.ENTITY})
    related = (signals.bm25 > 0) | (signals.cosine >= _FAINT)
    own = np.where(mask & related, scores, -np.inf)
    if (language := language_of(query.text)) not in ("", "en"):
        own[_in_another_language(index, columns, own, language, query.limit)] -= _OTHER_LANGUAGE
    pairs = succession(columns)
    scores = settled(own, pairs[mask[pairs].all(axis=1)])
    return hits(index, signals, scores, inherited=scores > own, limit=query.limit, project=query.project)


def _in_another_language(index: Index, columns: Columns, scores: Scores, language: str, limit: int) -> list[int]:
    """Return the rows, of the best, whose notes are in a language that neither the question is in nor the code: English, in which
    agents also write, is never another one.
    """
    rows = best(scores, columns.notes["created"], 2 * limit + _BEST)
    numbers = columns.notes["number"][rows].tolist()
    notes = index.notes(numbers)
    texts = {number: f"{note.title}\n{note.body[:_READ]}" for number, note in notes.items()}
    return [
        row
        for row, number in zip(rows.tolist(), numbers, strict=True)
        if language_of(texts.get(number, "")) not in (language, "", "en")
    ]


def hits(index: Index, signals: Signals, scores: Scores, *, inherited: Mask, limit: int, project: str) -> tuple[Hit, ...]:
    """Return the hits of the best rows; of notes that share an id, the best one. ``inherited`` marks rows whose score comes from a
    note they replace.
    """
    rows = best(scores, signals.columns.notes["created"], limit * 2)
    chosen: dict[str, Hit] = {}
    for some in (rows[:limit], rows[limit:]):  # the rest is read only where notes share an id
        if len(chosen) == limit:
            break
        numbers = [int(number) for number in signals.columns.notes["number"][some]]
        notes = index.notes(numbers)
        words = index.matched_words(signals.terms, numbers)
        for row, number in zip(some.tolist(), numbers, strict=True):
            note = notes.get(number)
            if note is None or note.name in chosen or len(chosen) == limit:
                continue
            matched = words.get(number, ())
            chosen[note.name] = Hit(
                note=note,
                score=round(min(1.0, max(0.0, float(scores[row]))), 4),
                why=", ".join(_reasons(note, float(signals.cosine[row]), matched, bool(inherited[row]), project)),
                snippet=snippet(note, matched),
            )
    return tuple(chosen.values())


def best(scores: Scores, created: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.intp]:
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


def recent(index: Index, *, project: str, kinds: Collection[NoteKind], limit: int, visible: VisibleNotes, now: float) -> list[Note]:
    columns = index.columns(visible)
    if not len(columns):
        return []
    mask = found(columns, now)
    if project:
        mask &= within(columns, index.project_number(project))
    if kinds:
        mask &= of_kinds(columns, kinds)
    rows = np.flatnonzero(mask)
    newest = rows[np.lexsort((-rows, -columns.notes["created"][rows]))]
    chosen: dict[str, Note] = {}
    for start in range(0, len(newest), 2 * limit):  # copies share a name
        numbers = columns.notes["number"][newest[start : start + 2 * limit]].tolist()
        notes = index.notes(numbers)
        for number in numbers:
            if (note := notes.get(number)) is not None:
                chosen.setdefault(note.name, note)
        if len(chosen) >= limit:
            break
    return list(chosen.values())[:limit]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedNotes:
    """What a search needs of recall: the index alone."""

    index: Index
    clock: Callable[[], datetime]

    def search(self, query: Query) -> tuple[Hit, ...]:
        return search(self.index, query, self.clock())

    def recent(self, *, project: str, kinds: Collection[NoteKind], limit: int, visible: VisibleNotes) -> list[Note]:
        return recent(self.index, project=project, kinds=kinds, limit=limit, visible=visible, now=self.clock().timestamp())
