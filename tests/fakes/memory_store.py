"""A store that forgets all when its process ends: what `Store` means, written down without a disk or a database."""

import json
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath

from kite_memory.model.note import Note, NoteKind, NoteStatus, Origin, Record, RecordItem, Scope
from kite_memory.recall.lexical import terms
from kite_memory.tools.argument_parsing import fits
from kite_memory.tools.conversation_notes import (
    drafts_of,
    item_id,
    journal_id,
    journal_of,
    merged,
    opposite,
    place_of,
    refuse_elsewhere,
    without,
)
from kite_memory.tools.store import (
    Conflict,
    FoundNote,
    Grant,
    JsonValue,
    Memory,
    MemoryPlace,
    MemoryQuery,
    MemoryVersion,
    NotAllowed,
    NoteQuery,
    Saved,
    SavedConversation,
    State,
)
from kite_memory.vault.drafting import Memo, remembered
from kite_memory.vault.planning import plain_body
from kite_memory.vault.wording import note_id, text_block

NEAREST = (Scope.SESSION, Scope.PROJECT, Scope.SHARED, Scope.GLOBAL)


@dataclass
class _Kept:
    memory: Memory
    versions: list[MemoryVersion]


@dataclass
class _Shelf:
    memories: dict[tuple[MemoryPlace, str], _Kept] = field(default_factory=dict)
    last_versions: dict[tuple[MemoryPlace, str], int] = field(default_factory=dict)
    notes: dict[str, Note] = field(default_factory=dict)
    conversations: dict[tuple[str, Scope, str], SavedConversation] = field(default_factory=dict)
    states: dict[tuple[str, str, str], State] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)


class MemoryStore:
    """Words are compared as they are: no stems, no meaning."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._shelf = _Shelf()

    @property
    def name(self) -> str:
        return "memory"

    def close(self) -> None:
        pass

    def put(self, note: Note) -> Note:
        with self._lock:
            self._shelf.notes[note.id] = note
            return note

    def write_memory(
        self,
        grant: Grant,
        key: str,
        value: JsonValue,
        place: MemoryPlace,
        *,
        by: str = "",
        tags: Sequence[str] = (),
        expires: datetime | None = None,
        expected: int | None = None,
        context: Mapping[str, JsonValue] | None = None,
    ) -> Memory:
        grant.in_a_vault.demand(place.scope, place.project)
        value = _copied(value)
        with self._lock:
            now = datetime.now(UTC)
            there = self._current(key, place, now)
            version = there.memory.version if there else 0
            if expected is not None and expected != version:
                raise Conflict(f"{key!r} is at version {version}", version=version, hint="read it again, and write over that")
            if there is not None and json.dumps(there.memory.value) == json.dumps(value):
                there.memory = replace(there.memory, updated=now, tags=tuple(tags), expires=expires, context=context or {})
                return there.memory
            next_version = self._shelf.last_versions.get((place, key), 0) + 1
            self._shelf.last_versions[place, key] = next_version
            if there is None:
                memory = Memory(
                    id=note_id(now, key, repr(place), str(next_version)),
                    key=key,
                    value=value,
                    place=place,
                    version=next_version,
                    created=now,
                    updated=now,
                    tags=tuple(tags),
                    created_by=by or grant.name,
                    expires=expires,
                    context=context or {},
                )
                there = _Kept(memory, [])
                self._shelf.memories[place, key] = there
            else:
                there.memory = replace(
                    there.memory,
                    value=value,
                    version=next_version,
                    updated=now,
                    tags=tuple(tags),
                    expires=expires,
                    context=context or {},
                )
            there.versions.insert(0, MemoryVersion(version=next_version, at=now, by=by or grant.name, value=value))
            return there.memory

    def memories(self, grant: Grant, wanted: MemoryQuery, *, touch: bool = False) -> list[Memory]:
        with self._lock:
            now = datetime.now(UTC)
            found = sorted(
                (kept for kept in self._kept(grant, now) if _is_wanted(kept.memory, wanted)), key=lambda kept: _order(kept.memory)
            )
            if wanted.newest:
                found.sort(key=lambda kept: kept.memory.updated, reverse=True)
            found = found[: wanted.limit]
            if touch:
                for kept in found:
                    kept.memory = replace(kept.memory, accessed=now, access_count=kept.memory.access_count + 1)
            return [replace(kept.memory, value=_copied(kept.memory.value)) for kept in found]

    def delete_memory(self, grant: Grant, key: str, place: MemoryPlace) -> bool:
        grant.in_a_vault.demand(place.scope, place.project)
        with self._lock:
            there = self._current(key, place, datetime.now(UTC))
            self._shelf.memories.pop((place, key), None)
            return there is not None

    def versions(self, grant: Grant, key: str, place: MemoryPlace) -> list[MemoryVersion]:
        if not grant.in_a_vault.sees(place.scope, place.project):
            return []
        with self._lock:
            there = self._current(key, place, datetime.now(UTC))
            return list(there.versions) if there else []

    def save_conversation(self, grant: Grant, conversation: SavedConversation, *, named: Collection[str] = ()) -> Saved:
        grant.in_a_vault.demand(conversation.scope, conversation.project)
        with self._lock:
            old = self._conversation(grant, conversation.uuid, place_of(conversation))
            if old is not None:
                refuse_elsewhere(old, conversation, named)
                conversation = merged(old, conversation)
                conversation = replace(conversation, transcript=conversation.transcript or old.transcript)
            elif not conversation.created_by:
                conversation = replace(conversation, created_by=grant.name)
            if journal_id(conversation) in self._shelf.forgotten:
                return _refused(conversation)
            conversation = replace(conversation, has_transcript=bool(conversation.transcript))
            everywhere = grant.in_a_vault.sees(Scope.GLOBAL, "")
            refused = [note for note in _notes_of(conversation, everywhere=everywhere) if note.id in self._shelf.forgotten]
            conversation = replace(conversation, record=without(conversation, self._shelf.forgotten))
            self._shelf.conversations[conversation.uuid, conversation.scope, conversation.project] = conversation
            journal, *others = _notes_of(conversation, everywhere=everywhere)
            refused = [note for note in refused if note.id != journal.id]
            self._shelf.notes.update({note.id: note for note in (journal, *others)})
            for item in conversation.record.items():
                if (contrary := self._shelf.notes.get(opposite(conversation, item))) is not None:
                    self._replaced(contrary, self._shelf.notes[item_id(conversation, item)])
            return Saved(
                uuid=conversation.uuid,
                journal=journal.id,
                notes=tuple(note.id for note in others),
                refused=tuple((note.title, "it was forgotten") for note in refused),
                amended=old is not None,
                scope=conversation.scope,
                project=conversation.project,
            )

    def conversation(self, grant: Grant, uuid: str, *, near: MemoryPlace | None = None) -> SavedConversation | None:
        with self._lock:
            found = self._conversation(grant, uuid, near)
            return replace(found, transcript="") if found else None

    def transcript(self, grant: Grant, uuid: str, *, near: MemoryPlace | None = None) -> str | None:
        with self._lock:
            found = self._conversation(grant, uuid, near)
            return found.transcript or None if found else None

    def search(self, grant: Grant, asked: NoteQuery) -> list[FoundNote]:
        words = _words(asked.text)
        with self._lock:
            notes = self._notes(grant, datetime.now(UTC))
        found = [
            FoundNote(note=note, score=len(shared) / len(words), why="words: " + " ".join(sorted(shared)), snippet=note.body[:200])
            for note in notes
            if (not asked.kinds or note.kind in asked.kinds)
            and (asked.since is None or note.created >= asked.since)
            and (not asked.within or _is_near(note, asked.project))
            and (shared := words & _words(f"{note.title} {note.body} {' '.join(note.entities)} {note.key}"))
        ]
        found.sort(key=lambda one: (-one.score, asked.project != one.note.project, -one.note.created.timestamp()))
        return found[: asked.limit]

    def note(self, grant: Grant, name: str) -> Note | None:
        with self._lock:
            return next((note for note in self._notes(grant, datetime.now(UTC)) if name in (note.id, note.path)), None)

    def titled(self, grant: Grant, title: str) -> list[Note]:
        with self._lock:
            return [note for note in self._notes(grant, datetime.now(UTC)) if note.title == title]

    def recent(self, grant: Grant, project: str, kinds: frozenset[NoteKind], limit: int) -> list[Note]:
        with self._lock:
            notes = [
                note
                for note in self._notes(grant, datetime.now(UTC))
                if _is_near(note, project) and (not kinds or note.kind in kinds)
            ]
        return sorted(notes, key=lambda note: (note.updated, note.id), reverse=True)[:limit]

    def remember(
        self,
        grant: Grant,
        text: str,
        kind: NoteKind,
        place: MemoryPlace,
        *,
        by: str = "",
        tags: Sequence[str] = (),
        title: str = "",
        origin: Origin = "assistant",
    ) -> Note:
        grant.in_a_vault.demand(place.scope, place.project)
        note = remembered(
            Memo(
                text=text,
                kind=kind,
                title=title,
                project=place.project,
                scope=place.scope,
                session=place.session,
                tags=tags,
                origin=origin,
            ),
            datetime.now(UTC),
        )
        with self._lock:
            same = (note.body, note.kind, note.scope, note.project, note.session)
            for known in self._shelf.notes.values():
                if (known.body, known.kind, known.scope, known.project, known.session) == same:
                    return known
            number = len(self._shelf.notes)
            id = note_id(note.created, "remembered", str(number))
            note = replace(note, id=id, path=f"{note.path.removesuffix('.md')}-{number}.md")
            self._shelf.notes[note.id] = note
            return note

    def forget(self, grant: Grant, name: str) -> bool:
        if not grant.write:
            raise NotAllowed("this token may only read", hint="ask for one that may write")
        with self._lock:
            found = self.note(grant, name)
            if found is None:
                return False
            for where, kept in list(self._shelf.memories.items()):
                if kept.memory.id == found.id:
                    del self._shelf.memories[where]
            if self._shelf.notes.pop(found.id, None) is not None:
                self._shelf.forgotten.add(found.id)
            for place, conversation in list(self._shelf.conversations.items()):
                if journal_id(conversation) == found.id:
                    del self._shelf.conversations[place]
                elif (record := without(conversation, self._shelf.forgotten)) != conversation.record:
                    self._shelf.conversations[place] = changed = replace(conversation, record=record)
                    self._shelf.notes[journal_id(changed)] = next(_notes_of(changed, everywhere=True))
            return True

    def save_state(self, grant: Grant, state: State, *, only: Collection[str] | None = None) -> State:
        grant.in_a_vault.demand(Scope.SESSION, state.project)
        place = (state.ai, state.session, state.project)
        with self._lock:
            before = self._shelf.states.get(place)
            self._shelf.states[place] = state if only is None or before is None else before.amended(state, only)
            return self._shelf.states[place]

    def states(self, grant: Grant, *, ai: str = "", session: str = "", project: str = "", limit: int = 20) -> list[State]:
        with self._lock:
            found = [
                state
                for state in self._shelf.states.values()
                if grant.in_a_vault.sees(Scope.SESSION, state.project)
                and (not ai or state.ai == ai)
                and (not session or state.session == session)
                and (not project or state.project == project)
            ]
        return sorted(found, key=lambda state: state.saved, reverse=True)[:limit]

    def transfer_state(
        self, grant: Grant, ai: str, *, from_session: str, to_session: str, at: datetime, near: str = ""
    ) -> State | None:
        if not grant.write:
            raise NotAllowed("this token may only read", hint="ask for one that may write")
        with self._lock:
            of_project = self.states(grant, ai=ai, session=from_session, project=near)
            found = next(iter(of_project or self.states(grant, ai=ai, session=from_session)), None)
            if found is None or not ai or not from_session:
                return None
            moved = replace(found, session=to_session, saved=at, transferred_from=from_session, transferred_at=at)
            self.save_state(grant, moved)
            return moved

    def _current(self, key: str, place: MemoryPlace, now: datetime) -> _Kept | None:
        kept = self._shelf.memories.get((place, key))
        return kept if kept is not None and not _is_over(kept.memory.expires, now) else None

    def _kept(self, grant: Grant, now: datetime) -> Iterator[_Kept]:
        for kept in self._shelf.memories.values():
            place = kept.memory.place
            if grant.in_a_vault.sees(place.scope, place.project) and not _is_over(kept.memory.expires, now):
                yield kept

    def _conversation(self, grant: Grant, uuid: str, near: MemoryPlace | None) -> SavedConversation | None:
        kept = self._shelf.conversations.values()
        seen = [one for one in kept if one.uuid == uuid and grant.in_a_vault.sees(one.scope, one.project)]
        found = max(seen, key=lambda one: (place_of(one) == near, one.updated), default=None)
        return replace(found, record=self._standing(found)) if found is not None else None

    def _replaced(self, old: Note, new: Note) -> None:
        stems = [PurePosixPath(note.path).stem for note in (old, new)]
        old = replace(old, status=NoteStatus.SUPERSEDED, superseded_by=stems[1], valid_until=new.created)
        self._shelf.notes |= {old.id: old, new.id: replace(new, supersedes=(stems[0],), valid_from=new.created)}

    def _standing(self, conversation: SavedConversation) -> Record:
        def stands(item: RecordItem) -> bool:
            id = item_id(conversation, item)
            note = self._shelf.notes.get(id)
            return id not in self._shelf.forgotten and (note is None or note.status is not NoteStatus.SUPERSEDED)

        topics = (replace(topic, items=tuple(filter(stands, topic.items))) for topic in conversation.record.topics)
        return replace(conversation.record, topics=tuple(topics))

    def _notes(self, grant: Grant, now: datetime) -> list[Note]:
        notes: Iterable[Note] = (*self._shelf.notes.values(), *(_memory_note(kept.memory) for kept in self._kept(grant, now)))
        return [note for note in notes if grant.in_a_vault.reads(note) and not _is_over(note.expires, now)]


def _is_over(expires: datetime | None, now: datetime) -> bool:
    return expires is not None and expires <= now


def _is_near(note: Note, project: str) -> bool:
    """A project's own, and what is everybody's."""
    return note.project in ("", project) or note.scope is Scope.SHARED


def _is_wanted(memory: Memory, wanted: MemoryQuery) -> bool:
    """A project's or a session's own, and what lies around it."""
    return (
        (wanted.scope is None or memory.place.scope is wanted.scope)
        and (not wanted.project or memory.place.project in ("", wanted.project))
        and (not wanted.session or memory.place.session in ("", wanted.session))
        and set(wanted.tags) <= set(memory.tags)
        and fits(wanted.pattern, memory.key)
    )


def _order(memory: Memory) -> tuple[str, int, bool, str, bool, str]:
    place = memory.place
    return memory.key, NEAREST.index(place.scope), not place.project, place.project, not place.session, place.session


def _copied(value: JsonValue) -> JsonValue:
    """What a caller does to a value afterwards is no business of the store's."""
    copy: JsonValue = json.loads(json.dumps(value))
    return copy


def _words(text: str) -> set[str]:
    return set(terms(text))


def _memory_note(memory: Memory) -> Note:
    return Note(
        id=memory.id,
        path=f"projects/{memory.id.lower()}.md",
        kind=NoteKind.FACT,
        title=memory.key,
        body=text_block(json.dumps(memory.value, ensure_ascii=False, indent=2)),
        created=memory.created,
        updated=memory.updated,
        tags=memory.tags,
        scope=memory.place.scope,
        project=memory.place.project,
        session=memory.place.session,
        key=memory.key,
        expires=memory.expires,
    )


def _refused(conversation: SavedConversation) -> Saved:
    return Saved(
        uuid=conversation.uuid,
        journal="",
        notes=(),
        refused=((conversation.uuid, "it was forgotten"),),
        amended=False,
        scope=conversation.scope,
        project=conversation.project,
    )


def _notes_of(conversation: SavedConversation, *, everywhere: bool) -> Iterator[Note]:
    """The journal first, then what it yields."""
    yield journal_of(conversation)
    for made in drafts_of(conversation, everywhere=everywhere):
        yield replace(made.note, body=plain_body(made), updated=conversation.updated)
