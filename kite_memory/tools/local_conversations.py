"""Saved conversations on this machine: their notes are in the vault, records and transcripts beside it.

Each uuid has a folder with a record and a compressed transcript for each conversation (`conversation_notes.identity`: conversations
with the same uuid in another project or scope are different ones). The journal note is written last, and without it none of the
rest is visible; so saving again repairs whatever a crash has left.
"""

import contextlib
import gzip
import logging
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import assert_never

import orjson

from kite_memory.errors import KiteError, StateDamaged, StateNewer, StateNotWritten
from kite_memory.model.event import Event, EventType, EvidenceReference, Where
from kite_memory.model.note import (
    Action,
    Amend,
    Create,
    Decision,
    Note,
    NoteStatus,
    Record,
    Scope,
    Supersede,
    record_from_json,
    record_to_json,
)
from kite_memory.system.private_files import make_private_folder, replace_file
from kite_memory.tools.conversation_notes import (
    RECORD,
    chunk_of,
    drafts_of,
    item_id,
    journal_body,
    journal_id,
    journal_of,
    merged,
    opposite,
    place_of,
    refuse_elsewhere,
    related,
    uuid_of,
    uuids_of,
    without,
)
from kite_memory.tools.store import OWNER, Grant, MemoryPlace, Saved, SavedConversation
from kite_memory.vault import Vault
from kite_memory.vault.drafting import Draft, applies_everywhere
from kite_memory.vault.planning import addition
from kite_memory.vault.writing import AlreadyWritten, Amended, LeftAlone, Outcome, Skipped, Superseded, Written

_VERSION = 1


def to_json(conversation: SavedConversation) -> bytes:
    return orjson.dumps(
        {
            "version": _VERSION,
            "uuid": conversation.uuid,
            "source": conversation.source,
            "project": conversation.project,
            "scope": conversation.scope,
            "overall": conversation.overall,
            "created": conversation.created,
            "updated": conversation.updated,
            "created_by": conversation.created_by,
            "has_transcript": conversation.has_transcript,
            **record_to_json(conversation.record),
        }
    )


def from_json(text: bytes) -> SavedConversation:
    """Parse a record. Raises `StateDamaged` for anything that `to_json` did not write, and `StateNewer` for a later version."""
    try:
        raw = orjson.loads(text)
        if raw["version"] > _VERSION:
            raise StateNewer("a conversation was saved by a newer Kite Memory", hint="update kite-memory")
        return SavedConversation(
            uuid=raw["uuid"],
            source=raw["source"],
            project=raw["project"],
            scope=Scope(raw["scope"]),
            overall=raw["overall"],
            created=datetime.fromisoformat(raw["created"]),
            updated=datetime.fromisoformat(raw["updated"]),
            created_by=raw["created_by"],
            has_transcript=raw["has_transcript"],
            record=record_from_json(raw),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StateDamaged("a saved conversation cannot be read", hint="save it again under its id") from error


log = logging.getLogger("kite_memory.tools.local_conversations")

MOST_TRANSCRIPT = 8_000_000
"""Most characters of a transcript."""
_RECORD, _TRANSCRIPT = ".json", ".txt.gz"
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_STANDING = (NoteStatus.ACCEPTED.value, NoteStatus.PROPOSED.value, NoteStatus.MUTED.value)


class LocalConversations:
    """Store of saved conversations. Thread-safe. ``index_notes`` indexes the notes at the given paths."""

    def __init__(self, *, vault: Vault, folder: Path, index_notes: Callable[[Collection[str]], object]) -> None:
        self._vault = vault
        self._folder = folder
        self._lock = vault.lock
        self._index_notes = index_notes

    def save(self, grant: Grant, conversation: SavedConversation, *, named: Collection[str] = ()) -> Saved:
        """Save a conversation, or amend the one with this uuid that the grant sees, if there is one in its place that one."""
        grant.demand(conversation.scope, conversation.project)
        with self._lock:
            with self._vault.undisturbed():  # another process's concurrent change would be lost
                saved, paths = self._saved(grant, conversation, named)
            if paths:
                self._index_notes(paths)
            return saved

    def _saved(self, grant: Grant, conversation: SavedConversation, named: Collection[str]) -> tuple[Saved, set[str]]:
        old = next(self._kept(grant, conversation.uuid, place_of(conversation)), None)
        if old is not None:
            grant.demand(old.scope, old.project)
            refuse_elsewhere(old, conversation, named)
        merged_conversation = merged(old, conversation) if old is not None else conversation
        merged_conversation = replace(
            merged_conversation, transcript="", has_transcript=merged_conversation.has_transcript or bool(conversation.transcript)
        )
        if self._vault.known.is_buried(journal_id(merged_conversation)):
            because = "its owner has deleted this conversation; save what is new under a new id"
            nothing = Saved(
                uuid=merged_conversation.uuid,
                journal="",
                notes=(),
                refused=((merged_conversation.uuid, because),),
                amended=False,
                scope=merged_conversation.scope,
                project=merged_conversation.project,
            )
            return nothing, set()
        try:
            is_erased = bool(conversation.transcript) and self._transcript(merged_conversation) == ""
            if not is_erased:
                self._keep(merged_conversation, _TRANSCRIPT, conversation.transcript.encode("utf-8", "replace"))
            notes, refused, paths = self._write_notes(grant, merged_conversation)
            refused += [("the transcript", "its owner has erased it")] if is_erased else []
            merged_conversation = self._unforgotten(merged_conversation, grant)
            self._keep(merged_conversation, _RECORD, to_json(merged_conversation))
        except OSError as error:
            raise StateNotWritten(
                f"the conversation cannot be kept: {error.strerror}", hint="nothing is lost; free some space, and save it again"
            ) from error
        paths.add(self._write_journal(merged_conversation, notes))
        saved = Saved(
            uuid=merged_conversation.uuid,
            journal=journal_id(merged_conversation),
            notes=tuple(notes),
            refused=tuple(refused),
            amended=old is not None,
            scope=merged_conversation.scope,
            project=merged_conversation.project,
        )
        return saved, paths

    def _write_notes(self, grant: Grant, conversation: SavedConversation) -> tuple[list[str], list[tuple[str, str]], set[str]]:
        """Write the notes of all items. Return their ids, the refused items with reasons, and the paths of all changed files."""
        drafts = _drafts(conversation, grant)
        planned = self._vault.planner.plan(drafts, sees=grant.reads)
        actions: list[Action] = [*self._changes_of_mind(conversation, planned), *self._said_anew(drafts)]
        outcomes = self._vault.planner.carry_out(actions)
        skipped = {outcome.title: outcome.because for outcome in outcomes if isinstance(outcome, Skipped)}
        notes: list[str] = []
        refused: list[tuple[str, str]] = []
        for draft in drafts:
            known = self._vault.known.by_id(draft.note.id)
            if known is not None:
                notes.append(known.id)
            else:
                refused.append((draft.note.title, skipped.get(draft.note.title, "it could not be written")))
        return list(dict.fromkeys(notes)), refused, _paths(outcomes)

    def _changes_of_mind(self, conversation: SavedConversation, planned: Sequence[Action]) -> Iterator[Action]:
        """Yield the actions, with decisions that reverse an earlier one replacing its note."""
        contraries = {
            item_id(conversation, item): opposite(conversation, item)
            for item in conversation.record.items()
            if isinstance(item, Decision)
        }
        for action in planned:
            contrary = contraries.get(action.note.id, "") if isinstance(action, Create) else ""
            old = self._vault.known.by_id(contrary) if contrary else None
            stands = old is not None and old.id == contrary and old.status in _STANDING
            if isinstance(action, Create) and old is not None and stands and action.note.status is not NoteStatus.PROPOSED:
                yield Supersede(note=action.note, old_id=old.id, old_path=old.path, because="decided otherwise since")
            else:
                yield action

    def _said_anew(self, drafts: list[Draft]) -> Iterator[Amend]:
        """Yield additions to notes that already exist."""
        for draft in drafts:
            known = self._vault.known.by_id(draft.note.id)
            if known is None or known.id != draft.note.id or known.status not in _STANDING:
                continue
            if draft.note.status is NoteStatus.PROPOSED and known.status != NoteStatus.PROPOSED.value:
                continue  # an unreviewed item adds nothing to an accepted note
            note = self._vault.notes.read(known.path)
            if note is not None and (text := addition(draft, note)):
                yield Amend(id=known.id, path=known.path, evidence=(), addition=text, because="said anew")

    def _write_journal(self, conversation: SavedConversation, notes: list[str]) -> str:
        stems = [PurePosixPath(known.path).stem for id in notes if (known := self._vault.known.by_id(id)) is not None]
        journal = journal_of(conversation, stems)
        if self._vault.known.by_id(journal.id) is None:
            if self._vault.known.is_buried("", journal.title, journal.project):  # the title of another, deleted conversation
                journal = replace(journal, title=f"{journal.title} ({conversation.uuid[:8]})")
            (outcome,) = self._vault.planner.carry_out([Create(note=journal, because="saved by an agent")])
            if not isinstance(outcome, AlreadyWritten):  # otherwise another process wrote it first
                return _path_of(outcome)
        known = self._vault.known.by_id(journal.id)
        linked = self._linked_from(known.path) if known is not None else ()
        return _path_of(self._vault.edits.rewrite_note(journal, addition=related([stem for stem in stems if stem not in linked])))

    def _linked_from(self, path: str) -> tuple[str, ...]:
        note = self._vault.notes.read(path)
        return note.links if note is not None else ()

    def conversation(self, grant: Grant, uuid: str, *, near: MemoryPlace | None = None) -> SavedConversation | None:
        """Return the conversation without items that no longer hold.

        ``None`` if it is not visible, or if a person has rewritten its journal note, which then replaces it.
        """
        for kept in self._kept(grant, uuid, near):
            if (known := self._vault.known.by_id(journal_id(kept))) is None:
                continue
            note = self._vault.notes.called(known.id)
            if note is not None and note.status.value in _STANDING and self._vault.notes.is_ours(note):
                return replace(kept, record=self._standing(kept))
        return None

    def transcript(self, grant: Grant, uuid: str, *, near: MemoryPlace | None = None) -> str | None:
        for kept in self._kept(grant, uuid, near):
            text = self._transcript(kept)
            if text is not None or place_of(kept) == near:
                return text or None
        return None

    def _transcript(self, kept: SavedConversation) -> str | None:
        """Return the transcript, empty if it was erased, or ``None``."""
        with contextlib.suppress(OSError, EOFError, zlib.error), gzip.open(self._file(kept, _TRANSCRIPT)) as text:
            return text.read(4 * MOST_TRANSCRIPT).decode("utf-8", "replace")
        return None

    def erase_transcripts(self, notes: Collection[Note]) -> list[str]:
        """Erase our copy of the transcripts of the conversations from which these notes came, for good.

        Of a conversation that is kept in several places, only the note's own is erased, or all if the note has been moved. Return a
        sentence for each. An empty file remains, so that it is not kept again when the conversation is saved again.
        """
        erased: list[str] = []
        with self._lock:
            for uuid, place in dict.fromkeys((uuid_of(note), place_of(note)) for note in notes):
                everywhere = list(self._read(self._folder / uuid)) if uuid else []
                for kept in [each for each in everywhere if place_of(each) == place] or everywhere:
                    if self._transcript(kept):
                        replace_file(self._file(kept, _TRANSCRIPT), gzip.compress(b"", 6, mtime=0))
                        erased.append(f"the transcript of the saved conversation {uuid} is erased, too")
        return erased

    def evidence(self, reference: EvidenceReference) -> list[Event]:
        """Return the events on which a note rests, for the vault's owner: an agent's report, or a turn of the transcript."""
        kept = next(self._kept(OWNER, reference.session), None)
        if kept is None:
            return []
        if reference.event == RECORD:
            quoted_event = Event(
                id=RECORD,
                session=kept.uuid,
                provider=kept.source,
                ordinal=0,
                at=kept.created,
                role="assistant",
                type=EventType.ASSISTANT_MESSAGE,
                text=journal_body(kept),
                where=Where(file=str(self._file(kept, _RECORD)), start=0, end=len(to_json(kept))),
            )
            return [quoted_event]
        chunk = chunk_of(kept.uuid, kept.source, kept.project, self.transcript(OWNER, kept.uuid) or "", kept.created)
        file = str(self._file(kept, _TRANSCRIPT))
        return [replace(event, where=replace(event.where, file=file)) for event in chunk.events if event.id == reference.event]

    def forgot(self, note: Note) -> None:
        """Remove what was kept of the conversation of a deleted note, or the note's item from the conversations it came from."""
        for uuid in uuids_of(note):
            self._sweep(self._folder / uuid)
            self._tell_less(self._folder / uuid)

    def tidy(self) -> None:
        """Do what `forgot` does for every deleted note of a conversation, however it was deleted."""
        for folder in self._folders():
            self._sweep(folder)
            self._tell_less(folder)

    def _tell_less(self, folder: Path) -> None:
        """Remove the words of deleted notes from record and journal.

        The record is written last, so an interrupted run is repeated.
        """
        with self._lock:
            for kept in list(self._read(folder)):
                lessened = self._unforgotten(kept, OWNER)
                if lessened.record == kept.record:
                    continue
                known = [self._vault.known.by_id(item_id(lessened, item)) for item in lessened.record.items()]
                stems = dict.fromkeys(PurePosixPath(each.path).stem for each in known if each is not None)
                outcome = self._vault.edits.rewrite_note(journal_of(lessened, list(stems)), addition="")
                try:
                    self._keep(lessened, _RECORD, to_json(lessened))
                except OSError as error:
                    raise StateNotWritten(
                        f"a conversation still holds what was forgotten: {error.strerror}",
                        hint="free some space; it is tried again",
                    ) from error
                if isinstance(outcome, Amended):
                    self._index_notes({outcome.path})

    def _unforgotten(self, conversation: SavedConversation, grant: Grant) -> SavedConversation:
        """Return the conversation without items whose notes were deleted, or whose title is that of a deleted note."""
        drafts = _drafts(conversation, grant)
        gone = {
            draft.note.id
            for draft in drafts
            if self._vault.known.by_id(draft.note.id) is None
            and self._vault.known.is_buried(draft.note.id, draft.note.title, draft.note.project)
        }
        return replace(conversation, record=without(conversation, gone)) if gone else conversation

    def _sweep(self, folder: Path) -> None:
        with self._lock, contextlib.suppress(FileNotFoundError):
            for file in list(folder.iterdir()):
                if self._vault.known.is_buried(file.name.partition(".")[0]):
                    file.unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()

    def _standing(self, kept: SavedConversation) -> Record:
        """Return the record without items whose notes were deleted, rejected or replaced since."""

        def stands(id: str) -> bool:
            known = self._vault.known.by_id(id)
            return known.status in _STANDING if known is not None else not self._vault.known.is_buried(id)

        return without(kept, {id for item in kept.record.items() if not stands(id := item_id(kept, item))})

    def _kept(self, grant: Grant, uuid: str, near: MemoryPlace | None = None) -> Iterator[SavedConversation]:
        """Yield the complete conversations of this uuid that the grant sees: first the one in ``near``, then by when saved."""
        if not _UUID.fullmatch(uuid):
            return
        seen = [kept for kept in self._read(self._folder / uuid) if kept.uuid == uuid and grant.sees(kept.scope, kept.project)]
        for kept in sorted(seen, key=lambda kept: (place_of(kept) == near, kept.updated), reverse=True):
            if self._vault.known.by_id(journal_id(kept)) is not None:
                yield kept

    def _read(self, folder: Path) -> Iterator[SavedConversation]:
        for file in sorted(folder.glob(f"*{_RECORD}")):
            try:
                yield from_json(file.read_bytes())
            except (OSError, KiteError) as error:
                log.warning("a saved conversation cannot be read: %s", error)

    def _folders(self) -> list[Path]:
        try:
            return sorted(folder for folder in self._folder.iterdir() if _UUID.fullmatch(folder.name))
        except OSError:
            return []

    def _file(self, conversation: SavedConversation, ending: str) -> Path:
        return self._folder / conversation.uuid / f"{journal_id(conversation)}{ending}"

    def _keep(self, conversation: SavedConversation, ending: str, content: bytes) -> None:
        if not content:
            return
        file = self._file(conversation, ending)
        make_private_folder(self._folder)
        make_private_folder(file.parent)
        replace_file(file, gzip.compress(content, 6, mtime=0) if ending == _TRANSCRIPT else content)


def _drafts(conversation: SavedConversation, grant: Grant) -> list[Draft]:
    """Return the drafts; in a vault all that would apply in every project wait for review."""
    drafts = drafts_of(conversation, everywhere=grant.sees(Scope.GLOBAL, ""))
    return [
        replace(draft, note=replace(draft.note, status=NoteStatus.PROPOSED))
        if applies_everywhere(draft.note.scope, draft.note.project) and draft.note.status is NoteStatus.ACCEPTED
        else draft
        for draft in drafts
    ]


def _path_of(journal: Outcome) -> str:
    match journal:
        case Written() | AlreadyWritten() | Amended() | Superseded():
            return journal.path
        case Skipped() | LeftAlone():
            raise KiteError(f"the conversation's note could not be written: {journal.because}", hint="save it again")
        case _:
            assert_never(journal)


def _paths(outcomes: list[Outcome]) -> set[str]:
    paths = {outcome.path for outcome in outcomes if isinstance(outcome, Written | Amended | AlreadyWritten | Superseded)}
    return paths | {outcome.old_path for outcome in outcomes if isinstance(outcome, Superseded)}
