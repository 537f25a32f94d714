"""What was noted last."""

from collections.abc import Collection

import numpy as np

from kite_memory.model.note import Note, NoteKind
from kite_memory.recall import scoring
from kite_memory.recall.catalogue import Sight
from kite_memory.recall.index import Index
from kite_memory.recall.search import name


def recent(index: Index, *, project: str, kinds: Collection[NoteKind], limit: int, sight: Sight, now: float) -> list[Note]:
    columns = index.columns(sight)
    if not len(columns):
        return []
    mask = scoring.found(columns, now)
    if project:
        mask &= scoring.within(columns, index.project_number(project))
    if kinds:
        mask &= scoring.of_kinds(columns, kinds)
    rows = np.flatnonzero(mask)
    newest = rows[np.lexsort((-rows, -columns.notes["created"][rows]))]
    chosen: dict[str, Note] = {}
    for start in range(0, len(newest), 2 * limit):  # copies share a name
        numbers = columns.notes["number"][newest[start : start + 2 * limit]].tolist()
        found = index.notes(numbers)
        for number in numbers:
            if (note := found.get(number)) is not None:
                chosen.setdefault(name(note), note)
        if len(chosen) >= limit:
            break
    return list(chosen.values())[:limit]
