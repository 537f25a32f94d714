"""Forgetting of notes and of their evidence: its events are excluded from recall and, on request, their text is deleted."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kite_memory.app.note_indexer import NoteIndexer
from kite_memory.app.note_view import NoteView
from kite_memory.app.vault_pages import VaultPages
from kite_memory.distill.outbox import Outbox
from kite_memory.errors import KiteError, NoteNotFound, UsageError
from kite_memory.model.event import Event, EvidenceReference, evidence_reference
from kite_memory.model.note import Entry, Note
from kite_memory.recall.recall import Recall
from kite_memory.text.display import age
from kite_memory.text.quoting import plain_line
from kite_memory.timeline.store import Timeline
from kite_memory.timeline.writing import ForgottenLine
from kite_memory.vault import Vault
from kite_memory.vault.consolidation import is_day
from kite_memory.vault.vault import Forgotten

Json = dict[str, Any]

_HEAD_LENGTH = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The events of one transcript line, and the other notes that cite them besides those to be forgotten."""

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

    def forget_notes(self, notes: Sequence[Note]) -> list[Forgotten]:
        """Move the notes to the trash, and return one result for each. They are neither found nor shown afterwards."""
        self._recall.forget_notes([each.name for each in notes])
        forgotten: list[Forgotten] = []
        changed = {each.path for each in notes}
        try:
            copies: dict[str, str] = {}
            for each in notes:
                if each.path in copies:  # it went along with its original
                    forgotten.append(Forgotten(id=each.id, path=each.path, trashed=copies[each.path]))
                    continue
                forgotten.append(self._vault.edits.forget(each.name))
                copies.update(forgotten[-1].copies)
                changed.update((*forgotten[-1].relinked, *forgotten[-1].copies))
        finally:  # what is in the trash must not be found, even if the rest of the sweep failed
            self._indexer.refresh(changed)
        return forgotten

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
        self._recall.refresh(_NoNotes(), hint=paths)
        self._indexer.refresh(paths)


def _why_not(purge: Callable[[], bool]) -> str:
    try:
        return "" if purge() else "another process reads it; forget it again once that has ended"
    except KiteError as error:
        return str(error)


class _NoNotes:
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
        "reference": first.reference,
        "at": first.at.isoformat(),
        "type": first.type.value,
        "text": plain_line(first.text, _HEAD_LENGTH),
        "where": f"{first.where.file}:{first.where.start}-{first.where.end}",
        "others": list(ground.others),
        "lets_go": blank or not ground.others,
        "blank": blank,
    }


class NoteForgetting:
    """The operation that forgets notes, with their evidence.

    ``erase`` deletes all other copies of forgotten text. ``erase_transcripts`` deletes the transcripts of the saved conversations
    from which the notes came, and returns a sentence for each.
    """

    def __init__(
        self,
        *,
        forgetting: Forgetting,
        timeline: Timeline,
        vault: Vault,
        note_view: NoteView,
        pages: VaultPages,
        after_forgetting: Callable[[Sequence[Note]], None],
        erase: Callable[[Forgetting], list[str]] = lambda erasing: erasing.purge_files({}),
        erase_transcripts: Callable[[Sequence[Note]], list[str]] = lambda notes: [],
        write_days_again: Callable[[], None] = lambda: None,
        clock: Callable[[], datetime],
    ) -> None:
        self._forgetting = forgetting
        self._timeline = timeline
        self._vault = vault
        self._note_view = note_view
        self._pages = pages
        self._forgot = after_forgetting
        self._erase = erase
        self._erase_transcripts = erase_transcripts
        self._write_days_again = write_days_again
        self._clock = clock

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {"forget": self.forget}

    def forget(
        self,
        *,
        note: str = "",
        session: str = "",
        since: str = "",
        matching: str = "",
        ids: list[str] | None = None,
        with_evidence: bool = False,
        dry_run: bool = False,
    ) -> Json:
        """Move notes to the trash and exclude their evidence from recall.

        With ``ids`` exactly those; otherwise the one that ``note`` names, or all that match the other arguments together.
        ``with_evidence`` also deletes the events' text for good. ``note`` may be a citation or an event's id, which forgets the
        cited events and no note, or a session's id, which acts as ``session``. The answer's ``guessed`` says that ``note`` is only
        a part of a name.
        """
        remarks: list[str] = []
        with self._vault.lock:
            cited = self._forgetting.ground(note) if ids is None else []
            if note and not cited and ids is None and not self._is_note(note):
                cited = self._forgetting.ground(self._timeline.events.citation(note))
                if not cited and any(known.id == note for known in self._timeline.sessions.named(note, limit=1)):
                    note, session = "", note
            named = [] if cited or ids is not None else self._chosen(note, session, since, matching)
            guessed = bool(note) and not cited and ids is None and not self._vault.notes.is_own_name(note)
            chosen = named if ids is None else [self._note_view.found(each) for each in ids]
            grounds = cited or self._forgetting.grounds(chosen)
            listed = [{"id": each.id, "path": each.path, "title": plain_line(each.title)} for each in chosen]
            if not dry_run:
                self._forgetting.forget_events(grounds, blank=with_evidence)  # first: without the notes, their evidence is lost
                remarks += self._erase_transcripts(chosen) if with_evidence else []
                named_too = {every["path"] for every in listed}
                for each, gone in zip(listed, self._forgetting.forget_notes(chosen), strict=True):
                    each["trash"] = str(self._vault.root / gone.trashed)
                    copies, still_linked = (
                        [path for path in some if path not in named_too] for some in (gone.copies, gone.linked_from)
                    )
                    remarks += [f"its copy {path} is in the trash, too" for path in copies]
                    remarks += [f"{path}, which you have edited, still links to it" for path in still_linked]
                self._forgot(chosen)
                if with_evidence:
                    self._forgetting.forget_words(grounds)
        if not dry_run:  # of a large vault the page takes seconds: outside the lock
            remarks += filter(None, [self._pages.remove_notes(chosen, wording=with_evidence)])
            if with_evidence:
                remarks += self._erase(self._forgetting)
            elif chosen or cited:
                self._write_days_again()
        evidence = [ground_json(ground, blank=with_evidence) for ground in grounds]
        return {"notes": listed, "evidence": evidence, "session": session, "guessed": guessed, "problems": remarks}

    def _found(self, called: str) -> Note:
        try:
            return self._note_view.found(called)
        except NoteNotFound as error:
            if gone := self._vault.notes.in_trash(called):
                hint = "a file that is moved back to its folder is a note again"
                raise NoteNotFound(f"forgotten already, in .trash: {', '.join(gone)}", hint=hint) from error
            raise

    def _is_note(self, called: str) -> bool:
        try:
            self._note_view.found(called)
        except NoteNotFound:
            return False
        return True

    def _chosen(self, note: str, session: str, since: str, matching: str) -> list[Note]:
        if note:
            return [self._found(note)]
        if not (session or since or matching):
            raise UsageError("nothing named to forget", hint="name a note, a session, an age or a text")
        start = age(since, self._clock())
        of_session = None
        if session:
            of_session = {
                path
                for known in self._timeline.sessions.named(session, limit=1_000)
                for path in self._vault.known.of_session(known.provider, known.id)
            }
        chosen: list[Note] = []
        for entry in self._vault.notes.entries():
            if of_session is not None and entry.path not in of_session:
                continue
            found = self._vault.notes.read(entry.path)
            if found is not None and is_day(found.id, found.path):
                continue  # it only repeats others, and is written again without those that are forgotten
            if found is None or (start is not None and found.created < start):
                continue
            if matching and matching.casefold() not in f"{found.title}\n{found.body}".casefold():
                continue
            chosen.append(found)
        return chosen
