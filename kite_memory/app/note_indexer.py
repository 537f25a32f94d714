"""Keep recall's index in step with the vault, each note indexed with the text of its evidence."""

import sqlite3
from collections.abc import Callable, Collection
from functools import partial

from kite_memory.model.event import EvidenceReference
from kite_memory.model.note import Note
from kite_memory.recall.index import Refreshed
from kite_memory.recall.recall import Recall
from kite_memory.timeline.rows import StoredEvents
from kite_memory.vault.known import StoredNotes

_REFERENCES = 4
_LENGTH = 1_500


def said_about(stored: StoredEvents, note: Note) -> str:
    """Return the text of the note's evidence for the index, since users ask again in the words of that time.

    It is redacted as stored; missing evidence is skipped.
    """
    parts: dict[str, None] = {}
    for text in note.evidence[:_REFERENCES]:
        reference = EvidenceReference.parse(text)
        try:
            events = [] if reference is None else stored.evidence(reference)
        except (sqlite3.Error, UnicodeError):  # a name that is no valid text, as YAML can produce, is unknown
            return ""
        parts.update((event.text[:_LENGTH], None) for event in events[:1])
    return "\n".join(parts)


class NoteIndexer:
    """Keeps the index in step with the vault, each note with the text of its evidence."""

    def __init__(self, *, notes: StoredNotes, events: StoredEvents, recall: Recall) -> None:
        self._notes = notes
        self._recall = recall
        self._evidence = partial(said_about, events)

    def refresh(
        self,
        paths: Collection[str] | None = None,
        *,
        embed: bool = True,
        stop: Callable[[], bool] = lambda: False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Refreshed:
        """Same as `Recall.refresh`, for these ``paths``, and those of notes that lapsed for them, or for all."""
        paths = None if paths is None else {*paths, *self._notes.take_lapsed()}
        return self._recall.refresh(self._notes, evidence=self._evidence, hint=paths, embed=embed, stop=stop, progress=progress)

    def rebuild(self, *, progress: Callable[[int, int], None]) -> Refreshed:
        """Same as `Recall.rebuild`."""
        return self._recall.rebuild(self._notes, evidence=self._evidence, progress=progress)
