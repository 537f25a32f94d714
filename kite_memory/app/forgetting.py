"""Forgetting of a note's evidence: its events are excluded from recall and, on request, their text is deleted."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kite_memory.app.session_context import NoteIndexer
from kite_memory.distill.outbox import Outbox
from kite_memory.errors import KiteError
from kite_memory.model.event import Event, EvidenceReference, evidence_reference
from kite_memory.model.note import Entry, Note
from kite_memory.recall.recall import Recall
from kite_memory.recall.rendering import plain_line
from kite_memory.timeline.store import Timeline
from kite_memory.timeline.writing import ForgottenLine
from kite_memory.vault import Vault

Json = dict[str, Any]

_HEAD_LENGTH = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The events of one line of a transcript, and the notes that also cite them besides those to be forgotten."""

    events: tuple[Event, ...]
    others: tuple[str, ...]


class Forgetting:
    """For one thread at a time: the caller holds the vault's lock."""

    def __init__(self, *, timeline: Timeline, outbox: Outbox, vault: Vault, recall: Recall, indexer: NoteIndexer) -> None:
        self._timeline = timeline
        self._outbox = outbox
        self._vault = vault
        self._recall = recall
        self._indexer = indexer

    def grounds(self, notes: Sequence[Note]) -> list[Ground]:
        """Return the evidence of all notes together, each line once. Lines missing from the timeline are omitted."""
        return self._grounds((reference for note in notes for reference in note.evidence), {note.path for note in notes})

    def ground(self, citation: str) -> list[Ground]:
        """Return the cited line itself."""
        return self._grounds([citation], frozenset())

    def _grounds(self, references: Iterable[str], forgotten: Collection[str]) -> list[Ground]:
        found: dict[str, Ground] = {}
        for text in dict.fromkeys(references):
            reference = EvidenceReference.parse(text)
            events = self._timeline.events.line(reference) if reference is not None else []
            if reference is not None and events and events[0].id not in found:
                others = tuple(path for path in self._resting_on(reference) if path not in forgotten)
                found[events[0].id] = Ground(events=tuple(events), others=others)
        return list(found.values())

    def _resting_on(self, reference: EvidenceReference) -> Iterator[str]:
        text = evidence_reference(reference.provider, reference.session, reference.event)
        return (note.path for note in self._vault.notes.of_session(reference.provider, reference.session) if text in note.evidence)

    def forget_events(self, grounds: Iterable[Ground], *, blank: bool) -> None:
        """Exclude the events from recall, and delete their text with ``blank``. Can be repeated.

        Events that another note cites too are excluded only with ``blank``.
        """
        of_them = [ground for ground in grounds if blank or not ground.others]
        events = [event for ground in of_them for event in ground.events]
        if not events:
            return
        keys = {(event.provider, event.session, event.ordinal) for event in events}
        if blank:
            self._outbox.drop_answers(keys)
        self._timeline.forgotten.add(events, blank=blank)
        if blank:
            self._outbox.drop_answers(keys)  # a call may have begun while they were still to be read
        if blank and (others := {path for ground in of_them for path in ground.others}):
            self._hear_again(others)

    def forget_lines(self, lines: Sequence[ForgottenLine], *, blank: bool) -> None:
        """Do the same with lines that were forgotten on another machine, and may not have been read here."""
        grounds = []
        for line in lines:
            reference = EvidenceReference(provider=line.provider, session=line.session, event=line.id)
            if events := self._timeline.events.line(reference):
                others = tuple(self._resting_on(reference)) if blank else ()
                grounds.append(Ground(events=tuple(events), others=others))
        self._timeline.forgotten.add(lines, blank=blank)
        self.forget_events(grounds, blank=blank)
        if blank:
            self.forget_words(grounds)

    def forget_words(self, grounds: Iterable[Ground]) -> None:
        """Delete the stored beginnings of the prompts, and the records of notes used in their sessions."""
        events = [event for ground in grounds for event in ground.events]
        heads = [(event.session, plain_line(event.text[:_HEAD_LENGTH])) for event in events if event.role == "user"]
        self._recall.forget_words(heads, {event.session for event in events})

    def purge_files(self, more: Mapping[str, Callable[[], bool]]) -> list[str]:
        """Purge deleted text from every database, including those that ``more`` purges.

        Return one sentence for each that cannot be purged now.
        """
        purges = {
            "timeline.sqlite": self._timeline.forgotten.purge,
            "outbox.sqlite": self._outbox.purge,
            "vault.sqlite": self._vault.purge,
            "index": self._recall.purge,
            **more,
        }
        return [f"{file} may still hold it: {why}" for file, purge in purges.items() if (why := _why_not(purge))]

    def _hear_again(self, paths: Collection[str]) -> None:
        """Index the notes that lost their evidence again, without its text."""
        self._recall.refresh(_Nothing(), hint=paths)
        self._indexer.refresh(paths)


def _why_not(purge: Callable[[], bool]) -> str:
    try:
        return "" if purge() else "another process reads it; forget it again once that has ended"
    except KiteError as error:
        return str(error)


class _Nothing:
    """A vault without notes."""

    def entries(self) -> Iterable[Entry]:
        return ()

    def read(self, path: str) -> None:
        return None


def ground_json(ground: Ground, *, blank: bool) -> Json:
    """Return the JSON form of a ground.

    ``lets_go`` is whether it will be excluded from recall, ``blank`` whether its text will be deleted.
    """
    first = ground.events[0]
    return {
        "reference": evidence_reference(first.provider, first.session, first.id),
        "at": first.at.isoformat(),
        "type": first.type.value,
        "text": plain_line(first.text, _HEAD_LENGTH),
        "where": f"{first.where.file}:{first.where.start}-{first.where.end}",
        "others": list(ground.others),
        "lets_go": blank or not ground.others,
        "blank": blank,
    }
