"""What a session is told of the vault as it starts, before anybody has said what it is about."""

from collections.abc import Collection, Mapping

import numpy as np

from kite_memory.model.hit import Hit
from kite_memory.model.note import NoteKind
from kite_memory.model.scope import Scope
from kite_memory.recall import scoring
from kite_memory.recall.index import Index
from kite_memory.recall.search import best, name
from kite_memory.recall.tallies import Tally, habit

MOST = 8
_LASTING = 0.5
"""A choice, a wish or a fact holds on; an insight has mostly done its work. Measured: half as many insights are wanted again."""
_TAKEN_UP = 1.0
_AGE = 0.01
"""A week. What was noted first is what the rest stands on: among equals it is wanted more often."""
_WEEK = 7 * 86_400
_TRIED = 200


def brief(
    index: Index,
    *,
    project: str,
    shown: Collection[str],
    now: float,
    tallies: Mapping[str, Tally],
    session: str = "",
    branch: str = "",
) -> tuple[Hit, ...]:
    """The notes of this project, and of none, that most likely matter whatever comes.

    None of another project's, or of another branch that is not merged; none whose files have changed since.
    """
    columns = index.columns()
    if not len(columns) or not project:
        return ()
    mask = scoring.spoken(columns, now) & scoring.within(columns, index.project_number(project))
    notes = columns.notes
    scores = notes["importance"].astype(np.float64)
    scores += _LASTING * ~scoring.of_kinds(columns, {NoteKind.INSIGHT})
    scores += _AGE * np.clip((now - notes["created"]) / _WEEK, 0, 50)
    rows = best(np.where(mask, scores, -np.inf), -notes["created"], _TRIED)
    ranked: dict[str, tuple[float, Hit]] = {}
    found = index.notes(notes["number"][rows].tolist())
    for row in rows.tolist():
        note = found.get(int(notes["number"][row]))
        if note is None or name(note) in shown or name(note) in ranked or (note.scope is Scope.SESSION and note.session != session):
            continue
        if note.drifted or (note.branch and branch and note.branch != branch):
            continue
        tally = tallies.get(name(note))
        score = float(scores[row]) + (_TAKEN_UP * habit(tally) if tally else 0.0)
        ranked[name(note)] = score, Hit(note=note, score=round(min(1.0, score / 5), 4), why="matters in this project")
    best_first = sorted(ranked.values(), key=lambda pair: -pair[0])
    return tuple(hit for _, hit in best_first[:MOST])
