"""Scoring: pure functions over arrays, with all their constants.

A fused score is absolute: it means the same whatever else the vault holds, so it can be compared with a threshold and "nothing" can
be an answer. `bench/recall_quality.py` measures the effect of the numbers.
"""

import math
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from kite_memory.model.note import NoteKind, NoteStatus
from kite_memory.recall.catalogue import KINDS, STATUSES, Columns, Pairs
from kite_memory.recall.embedders.embedder import Space, Vectors
from kite_memory.recall.index import Signals
from kite_memory.recall.lexical import SMALL_VAULT

Scores = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

_MEANING = 0.65
_WORDS = 0.35
_IMPORTANCE = 0.03
_FULL_TERMS = 8
_STEEPNESS = 0.08
_STEEPEST = 0.24
_FOREIGN = 0.10
_BEHIND = 0.01
_LONGEST_CHAIN = 8

SPOKEN_KINDS = frozenset({NoteKind.DECISION, NoteKind.INSIGHT, NoteKind.FACT, NoteKind.PREFERENCE, NoteKind.QUESTION})
"""Kinds that may be shown unasked. Journals cover a whole day and entity pages only link notes: a search finds them."""
_STANDING = frozenset({NoteStatus.ACCEPTED, NoteStatus.SUPERSEDED, NoteStatus.MUTED, NoteStatus.ARCHIVED})
"""Statuses in which a note can replace another."""


def words_score(bm25: Scores, *, notes: int, terms: int) -> Scores:
    """Return BM25 mapped to a bounded score that requires more in a larger vault, where words are rarer.

    A prompt of many terms matches some of them anywhere, so its score counts as if it had no more than eight.
    """
    fair = bm25 * min(1.0, _FULL_TERMS / max(1, terms))
    return np.asarray(1 - np.exp(-fair / (2 * math.log(1 + max(notes, SMALL_VAULT)))))


def fused(cosine: Vectors, bm25: Scores, *, notes: int, terms: int) -> Scores:
    return np.asarray(_MEANING * np.maximum(cosine, 0) + _WORDS * words_score(bm25, notes=notes, terms=terms))


def for_a_prompt(signals: Signals) -> Scores:
    """Return the scores for a prompt, which is less specific than a question: a note's importance counts too."""
    scores = fused(signals.cosine, signals.bm25, notes=len(signals.columns), terms=len(signals.terms))
    return np.asarray(scores + _IMPORTANCE * (signals.columns.notes["importance"] - 2.0))


def threshold(space: Space, notes: int) -> float:
    """Return the fused score from which a note is worth showing, in a space that no gate is fitted for."""
    return space.threshold + crowd(notes)


def crowd(notes: int) -> float:
    """Return about how much higher the best irrelevant note scores in a vault of this size."""
    return min(_STEEPEST, _STEEPNESS * math.log10(max(notes, SMALL_VAULT) / SMALL_VAULT))


def found(columns: Columns, now: float) -> Mask:
    """Return a mask of the notes that a search may return: all but rejected and expired ones."""
    notes = columns.notes
    return np.asarray((notes["status"] != STATUSES.index(NoteStatus.REJECTED)) & (notes["expires"] > now))


def spoken(columns: Columns, now: float) -> Mask:
    """Return a mask of the notes that may be shown to an agent unasked: accepted, in force, and not replaced."""
    notes = columns.notes
    mask = (notes["status"] == STATUSES.index(NoteStatus.ACCEPTED)) & (notes["expires"] > now) & of_kinds(columns, SPOKEN_KINDS)
    mask[succession(columns)[:, 0]] = False
    return np.asarray(mask)


def of_kinds(columns: Columns, kinds: Collection[NoteKind]) -> Mask:
    wanted = np.array([kind in kinds for kind in KINDS])
    return np.asarray(wanted[columns.notes["kind"]])


def within(columns: Columns, project: int) -> Mask:
    """Return a mask of the notes of one project and of those that belong to none."""
    return columns.within(project)


def handicap(columns: Columns, project: int) -> Scores:
    """Return the penalty of each note: positive for another project's, else 0."""
    return np.where(within(columns, project), 0.0, _FOREIGN)


def succession(columns: Columns) -> Pairs:
    """Return pairs of rows, an old note and its replacement, if the new one is in force: a proposal replaces nothing yet."""
    theirs = columns.notes["status"][columns.replaced[:, 1]]
    return columns.replaced[np.isin(theirs, [STATUSES.index(status) for status in _STANDING])]


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
