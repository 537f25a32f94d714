"""The notes that a new note is to be held against, by what they mean and by their words."""

import numpy as np
import numpy.typing as npt

from kite_memory.model.likeness import Near, Surroundings
from kite_memory.model.note import Note, NoteKind
from kite_memory.recall import scoring
from kite_memory.recall.index import Index
from kite_memory.recall.lexical import terms
from kite_memory.recall.prose import prose

_KINDS = frozenset({NoteKind.DECISION, NoteKind.INSIGHT, NoteKind.FACT, NoteKind.PREFERENCE, NoteKind.QUESTION})
_TEXT = 4_000
"""Characters of a note whose words count."""


def nearest(index: Index, note: Note, now: float, *, limit: int = 8) -> Surroundings:
    """Of the note's own project alone, and not the note itself.

    Those come first that stand high in both orders, by meaning and by words: of labelled pairs of which one makes the other
    untrue, all 14 have the older one among the newer one's first eight, and 12 among its first three.
    """
    signals = index.signals(_said(note), project=note.project)
    columns = signals.columns
    mask = scoring.found(columns, now) & scoring.of_kinds(columns, _KINDS)
    mask &= columns.notes["project"] == index.project_number(note.project)
    rows = np.flatnonzero(mask)
    if not len(rows):
        return Surroundings()
    by_meaning = _places(signals.cosine[rows])
    by_words = _places(signals.bm25[rows])
    first = rows[np.lexsort((by_meaning, by_meaning + by_words))][: limit + 2]
    numbers = [int(number) for number in columns.notes["number"][first]]
    notes = index.notes(numbers)
    near = [
        Near(note=found, cosine=float(signals.cosine[row]))
        for row, number in zip(first.tolist(), numbers, strict=True)
        if (found := notes.get(number)) is not None and found.id not in ("", note.id)
    ][:limit]
    words = {word for each in (note, *(one.note for one in near)) for word in terms(_said(each))}
    return Surroundings(near=tuple(near), rarity=index.rarities(words))


def _said(note: Note) -> str:
    return f"{note.title}\n{prose(note.body)}"[:_TEXT]


def _places(figures: npt.NDArray[np.float64] | npt.NDArray[np.float32]) -> npt.NDArray[np.intp]:
    """0 for the greatest."""
    return np.argsort(np.argsort(-figures, kind="stable"), kind="stable")
