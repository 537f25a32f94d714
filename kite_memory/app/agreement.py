"""Keep recall's index in step with the vault, and check whether timeline, index, vault and databases agree."""

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kite_memory.model.event import Event, EvidenceReference
from kite_memory.model.note import Note
from kite_memory.recall.index import Refreshed
from kite_memory.recall.recall import Recall
from kite_memory.system import sqlite
from kite_memory.timeline.rows import StoredEvents
from kite_memory.timeline.store import Timeline
from kite_memory.vault import Vault
from kite_memory.vault.known import StoredNotes

BRING_BACK = "mount its disk or bring the notes back; if you deleted them, run `kmem verify --accept-missing`"
"""What to do about a vault from which many notes have disappeared."""

_TIMELINE = "timeline"
_NOT_THERE = "is not in the timeline"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """``saved`` returns the events that a note of a saved conversation cites."""

    timeline: Timeline
    recall: Recall
    vault: Vault
    saved: Callable[[EvidenceReference], Sequence[Event]]

    def findings(self) -> tuple[list[dict[str, str]], str]:
        """Return what is wrong, and what to do about it."""
        root = self.vault.root
        if frozen := self.vault.scanner.frozen:
            return [{"where": str(root), "what": frozen}], BRING_BACK
        if not root.is_dir():
            return [{"where": str(root), "what": "there is no vault"}], "`kmem up` makes one"
        found = list(self.damage())
        if any(each["where"] == _TIMELINE or each["what"].endswith(_NOT_THERE) for each in found):
            return (
                found,
                "`kmem rebuild --timeline` rebuilds it from the transcripts that still exist; repair damaged notes in an editor",
            )
        return found, "`kmem rebuild` rebuilds the index; repair damaged notes in an editor"

    def damage(self) -> Iterator[dict[str, str]]:
        """Yield damaged files, dead links, and evidence that does not exist."""
        for line in self.timeline.damage():
            yield {"where": _TIMELINE, "what": line}
        for problem in (*self.recall.index.verify(), *self.vault.notes.problems()):
            yield {"where": problem.file, "what": problem.reason}
        for link in self.vault.notes.unresolved_links():
            yield {"where": link.path, "what": f"[[{link.target}]] leads nowhere"}
        for entry in self.vault.notes.entries():
            note = self.vault.notes.read(entry.path)
            for text in note.evidence if note is not None else ():
                reference = EvidenceReference.parse(text)
                if reference is None or not (self.timeline.events.evidence(reference) or self.saved(reference)):
                    yield {"where": entry.path, "what": f"evidence {text} {_NOT_THERE}"}


def unlike_their_seals(state: Path) -> list[dict[str, str]]:
    """Return the files that were not written to since they were closed, and yet differ from their checksums."""
    return [{"where": name, "what": _unlike_its_seal(state / name)} for name in sqlite.broken(state)]


def _unlike_its_seal(path: Path) -> str:
    if os.access(path, os.F_OK) and not os.access(path, os.R_OK):
        return "it cannot be read, so it cannot be compared with its checksum"
    return "it has changed since it was closed, although nothing was written to it"


def damaged_databases(state: Path) -> Iterator[dict[str, str]]:
    """Yield what SQLite finds wrong with the databases that have no check of their own."""
    elsewhere = {state / "timeline.sqlite", *state.glob("timeline.*.sqlite")}
    for path in sorted({*state.glob("*.sqlite"), *state.glob("index/*.sqlite")} - elsewhere):
        try:
            with closing(sqlite.connect_to_look(path, timeout=5.0)) as database:
                for (line,) in database.execute("PRAGMA integrity_check(20)"):
                    if line != "ok":
                        yield {"where": path.name, "what": line}
        except sqlite3.Error as error:
            yield {"where": path.name, "what": str(error)}
