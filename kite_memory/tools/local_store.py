"""The vault on this machine as a store for the tools: memories are notes with a key, which a person may edit."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Protocol

from kite_memory.errors import KiteError, NoteNotFound
from kite_memory.model.event import Event, EvidenceReference
from kite_memory.model.note import Note, NoteKind, Origin, Scope
from kite_memory.recall.catalogue import VisibleNotes
from kite_memory.recall.recall import Recall
from kite_memory.recall.search import Query
from kite_memory.system import utc_now
from kite_memory.text.quoting import mended
from kite_memory.tools.argument_parsing import body_of, fits, is_pattern, literal_prefix, value_of
from kite_memory.tools.local_state import LocalState, Reads
from kite_memory.tools.store import (
    MOST_TITLED,
    OWNER,
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
from kite_memory.vault import Vault
from kite_memory.vault.drafting import Memo
from kite_memory.vault.keyed_notes import KeyConflict, KeyedNote
from kite_memory.vault.ledger import Keyed, KeyPlace

log = logging.getLogger("kite_memory.tools.local_store")

_NEAREST = (Scope.SESSION, Scope.PROJECT, Scope.SHARED, Scope.GLOBAL)


class Conversations(Protocol):
    """Interface of the store of conversations; see `tools.local_conversations`."""

    def save(self, grant: Grant, conversation: SavedConversation, *, named: Collection[str] = ()) -> Saved: ...

    def conversation(self, grant: Grant, uuid: str, *, near: MemoryPlace | None = None) -> SavedConversation | None: ...

    def transcript(self, grant: Grant, uuid: str, *, near: MemoryPlace | None = None) -> str | None: ...

    def evidence(self, reference: EvidenceReference) -> list[Event]: ...

    def erase_transcripts(self, notes: Collection[Note]) -> list[str]: ...

    def forgot(self, note: Note) -> None: ...

    def tidy(self) -> None: ...


class IndexNotes(Protocol):
    def __call__(self, paths: Collection[str], *, embed: bool) -> None:
        """Index the notes at these paths for the next search by words, and with ``embed`` by embedding too."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A memory to be written under a key, and who writes it."""

    key: str
    value: JsonValue
    place: MemoryPlace
    kind: NoteKind
    origin: Origin
    by: str
    tags: Sequence[str]
    expires: datetime | None


class LocalStore:
    """Store over the vault. Thread-safe, and safe beside other processes: changes are made under the vault's lock."""

    def __init__(
        self,
        *,
        vault: Vault,
        recall: Recall,
        state: LocalState,
        conversations: Conversations,
        index_notes: IndexNotes,
        let_go: Callable[[Note], None] = lambda note: None,
        forgotten: Callable[[Note], None] = lambda note: None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        """Create the store.

        ``let_go`` is called with a note that is about to be forgotten, to withhold the events on which it rests. ``forgotten`` is
        called once the note is gone, to update what is built from all notes.
        """
        self._vault = vault
        self._recall = recall
        self._state = state
        self._conversations = conversations
        self._lock = vault.lock
        self._index_notes = index_notes
        self._let_go = let_go
        self._after_forgetting = forgotten
        self._clock = clock

    @property
    def name(self) -> str:
        return "vault"

    def close(self) -> None:
        self._state.close()

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
        entry = _Entry(key=key, value=value, place=place, kind=NoteKind.FACT, origin="assistant", by=by, tags=tags, expires=expires)
        return self._written(grant, entry, expected=expected, context=context)

    def keep(
        self,
        key: str,
        text: str,
        place: MemoryPlace,
        *,
        kind: NoteKind = NoteKind.FACT,
        tags: Sequence[str] = (),
        expires: datetime | None = None,
    ) -> Note:
        """Write a memory as the vault's owner in person, overriding an existing value, and return its note."""
        entry = _Entry(key=key, value=text, place=place, kind=kind, origin="user", by="you", tags=tags, expires=expires)
        memory = self._written(OWNER, entry, overrule=True)
        return self._vault.notes.find(memory.id)

    def _written(
        self,
        grant: Grant,
        entry: _Entry,
        *,
        expected: int | None = None,
        overrule: bool = False,
        context: Mapping[str, JsonValue] | None = None,
    ) -> Memory:
        grant = grant.in_a_vault
        grant.demand(entry.place.scope, entry.place.project)
        by = mended(entry.by or grant.name)
        with self._lock:
            try:
                kept = self._vault.keys.write(
                    _key_place(entry.key, entry.place),
                    lambda before: body_of(entry.value, before, tamed=entry.origin != "user"),
                    kind=entry.kind,
                    tags=mended(tuple(entry.tags)),
                    origin=entry.origin,
                    by=by,
                    expires=entry.expires,
                    expected=expected,
                    overrule=overrule,
                )
            except KeyConflict as changed:
                raise Conflict(str(changed), version=changed.version, hint=changed.hint) from changed
            with _beside():
                self._state.wrote(kept.note.name, context or {}, made_by=by if kept.is_new else None)
            self._index_notes({kept.note.path}, embed=False)
        return self._memories([kept])[0]

    def memories(self, grant: Grant, wanted: MemoryQuery, *, touch: bool = False) -> list[Memory]:
        grant = grant.in_a_vault
        found: list[KeyedNote] = []
        all_there = True
        wanted = mended(wanted)
        left = self._wanted(grant, wanted)
        while len(found) < wanted.limit and (some := list(islice(left, wanted.limit - len(found)))):
            for keyed, kept in zip(some, self._vault.keys.at(some), strict=True):
                all_there = all_there and (kept is not None or self._is_there(keyed))
                if kept is not None and set(wanted.tags) <= set(kept.note.tags):
                    found.append(kept)
        if not all_there:
            with self._lock:
                self._vault.scanner.must_be_whole()
        if touch and found:
            self._state.touch([kept.note.name for kept in found], self._clock())
        return self._memories(found)

    def _wanted(self, grant: Grant, wanted: MemoryQuery) -> Iterator[Keyed]:
        """Yield candidates by their index entries alone: by key, nearest scope first; with ``newest``, newest first."""
        if wanted.newest:
            keys = self._vault.keys.newest(literal_prefix(wanted.pattern), project=wanted.project, session=wanted.session)
            yield from (
                keyed for keyed in keys if fits(wanted.pattern, keyed.place.key) and self._may_be(keyed, grant, wanted) is not None
            )
            return
        if not is_pattern(wanted.pattern):
            yield from self._nearest(self._called(wanted.pattern, lambda keyed: self._may_be(keyed, grant, wanted)))
            return
        together: list[Keyed | None] = []
        key = ""
        for keyed in self._vault.keys.listed(literal_prefix(wanted.pattern)):
            if keyed.place.key != key:
                yield from self._nearest(together)
                together, key = [], keyed.place.key
            if fits(wanted.pattern, keyed.place.key):
                together.append(self._may_be(keyed, grant, wanted))
        yield from self._nearest(together)

    def _called(self, key: str, wanted: Callable[[Keyed], Keyed | None]) -> list[Keyed | None]:
        """Return the index entries of a key, looked up again if a file is gone, since its owner may just have moved it."""
        found = list(map(wanted, self._vault.keys.called(key)))
        if any(keyed is not None and not self._is_there(keyed) for keyed in found):
            with self._lock:
                self._vault.scanner.must_be_whole()
            found = list(map(wanted, self._vault.keys.called(key)))
        return found

    def _is_there(self, keyed: Keyed) -> bool:
        return (self._vault.root / keyed.known.path).exists()

    def _may_be(self, keyed: Keyed, grant: Grant, wanted: MemoryQuery) -> Keyed | None:
        place = keyed.place
        fitting = (
            grant.sees(place.scope, place.project)
            and wanted.scope in (None, place.scope)
            and (not wanted.project or place.project in ("", wanted.project))
            and (not wanted.session or place.session in ("", wanted.session))
            and set(wanted.tags) <= set(keyed.tags)
        )
        return keyed if fitting else None

    def _nearest(self, found: Sequence[Keyed | None]) -> Iterator[Keyed]:
        """Yield the entries of one key by place, nearest first; of two files in one place only one: see `KeyRows.keyed`."""
        places: dict[tuple[int, bool, str, bool, str], Keyed] = {}
        for keyed in found:
            if keyed is not None:
                at = keyed.place
                where = (_NEAREST.index(at.scope), not at.project, at.project, not at.session, at.session)
                if where not in places or keyed.known.id > places[where].known.id:
                    places[where] = keyed
        for place in sorted(places):
            yield places[place]

    def _memories(self, kept: Sequence[KeyedNote]) -> list[Memory]:
        reads = self._state.reads([each.note.name for each in kept])
        return [_memory(each, reads[each.note.name]) for each in kept]

    def delete_memory(self, grant: Grant, key: str, place: MemoryPlace) -> bool:
        grant = grant.in_a_vault
        grant.demand(place.scope, place.project)
        gone: list[Note] = []
        with self._lock:  # other notes of the place, as from another machine, must not show instead
            while (kept := self._vault.keys.find(_key_place(key, place))) is not None and self._forgotten(kept.note):
                gone.append(kept.note)
        for note in gone:
            self._after_forgetting(note)
        return bool(gone)

    def versions(self, grant: Grant, key: str, place: MemoryPlace) -> list[MemoryVersion]:
        if not grant.in_a_vault.sees(place.scope, place.project):
            return []
        kept = self._vault.keys.find(_key_place(key, place))
        if kept is None:
            return []
        return [
            MemoryVersion(version=each.version, at=each.at, by=each.by, value=value_of(each.body))
            for each in self._vault.keys.versions(kept.note)
        ]

    def save_conversation(self, grant: Grant, conversation: SavedConversation, *, named: Collection[str] = ()) -> Saved:
        return self._conversations.save(grant.in_a_vault, mended(conversation), named=named)

    def conversation(self, grant: Grant, uuid: str, *, near: MemoryPlace | None = None) -> SavedConversation | None:
        return self._conversations.conversation(grant.in_a_vault, uuid, near=near)

    def transcript(self, grant: Grant, uuid: str, *, near: MemoryPlace | None = None) -> str | None:
        return self._conversations.transcript(grant.in_a_vault, uuid, near=near)

    def evidence(self, reference: EvidenceReference) -> list[Event]:
        """Return the events on which a note of a saved conversation rests, for the vault's owner; empty for any other reference."""
        return self._conversations.evidence(reference)

    def search(self, grant: Grant, asked: NoteQuery) -> list[FoundNote]:
        hits = self._recall.search(
            Query(
                text=asked.text,
                project=asked.project,
                within=asked.project if asked.within else "",
                since=asked.since,
                kinds=asked.kinds,
                limit=asked.limit,
                visible=_sight(grant),
            )
        )
        return [FoundNote(note=hit.note, score=hit.score, why=hit.why, snippet=hit.snippet) for hit in hits]

    def note(self, grant: Grant, name: str) -> Note | None:
        grant = grant.in_a_vault
        found = self._vault.notes.called(mended(name)) or self._vault.notes.ending(mended(name))
        return found if found is not None and grant.reads(found) and not found.has_expired(self._clock()) else None

    def titled(self, grant: Grant, title: str) -> list[Note]:
        grant = grant.in_a_vault
        found = (
            note for note in self._vault.notes.titled(mended(title)) if grant.reads(note) and not note.has_expired(self._clock())
        )
        return list(islice(found, MOST_TITLED))

    def recent(self, grant: Grant, project: str, kinds: frozenset[NoteKind], limit: int) -> list[Note]:
        return self._recall.recent(project=project, kinds=kinds, limit=limit, visible=_sight(grant))

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
        place = mended(place)
        with self._lock:
            note = self._vault.edits.remember(
                Memo(
                    text=mended(text),
                    kind=kind,
                    title=mended(title),
                    project=place.project,
                    scope=place.scope,
                    session=place.session,
                    tags=mended(tuple(tags)),
                    origin=origin,
                ),
            )
            self._index_notes({note.path}, embed=True)
            if self._vault.relations.relate(note, self._recall.nearest):
                self._index_notes({note.path}, embed=True)
        return note

    def forget(self, grant: Grant, name: str) -> bool:
        if not grant.write:
            raise NotAllowed("this token may only read", hint="ask for one that may write")
        with self._lock:
            note = self.note(grant, name)
            if note is None or not self._forgotten(note):
                return False
        self._after_forgetting(note)
        return True

    def forgot(self, notes: Collection[Note]) -> None:
        """Remove what is kept beside a forgotten note. Code that forgets notes without this store must call it."""
        for note in notes:
            with _beside():
                self._state.forgot(note.name)
            self._conversations.forgot(note)

    def erase_transcripts(self, notes: Collection[Note]) -> list[str]:
        """Erase the transcripts of the saved conversations from which the notes came. Return a sentence for each."""
        return self._conversations.erase_transcripts(notes)

    def purge(self) -> bool:
        """Rewrite the database of what is kept beside notes, as `sqlite.rewrite` does."""
        return self._state.purge()

    def tidy(self) -> None:
        """Remove what is kept beside notes that people have deleted."""
        self._conversations.tidy()

    def _forgotten(self, note: Note) -> bool:
        with self._vault.undisturbed():  # the events are withheld only if the note itself can be forgotten
            self._let_go(note)
            self._recall.forget_notes([note.name])
            changed = {note.path}
            try:
                forgotten = self._vault.edits.forget(note.name)
                changed.update((*forgotten.relinked, *forgotten.copies))
            except NoteNotFound:  # its owner has already deleted it
                return False
            finally:
                self._index_notes(changed, embed=False)
        with _beside():
            self._state.forgot(note.name)
        self._conversations.forgot(note)
        return True

    def save_state(self, grant: Grant, state: State, *, only: Collection[str] | None = None) -> State:
        grant.demand(Scope.SESSION, state.project)
        return self._state.save(mended(state), only=only)

    def states(self, grant: Grant, *, ai: str = "", session: str = "", project: str = "", limit: int = 20) -> list[State]:
        found = (
            state
            for state in self._state.states(ai=mended(ai), session=mended(session), project=mended(project))
            if grant.sees(Scope.SESSION, state.project)
        )
        return [state for state, _ in zip(found, range(limit), strict=False)]

    def transfer_state(
        self, grant: Grant, ai: str, *, from_session: str, to_session: str, at: datetime, near: str = ""
    ) -> State | None:
        if not grant.write:
            raise NotAllowed("this token may only read", hint="ask for one that may write")
        with self._lock:
            named = {"ai": ai, "session": from_session}
            found = next(iter(self.states(grant, **named, project=near, limit=1) or self.states(grant, **named, limit=1)), None)
            if found is None or not ai or not from_session:
                return None
            moved = replace(found, session=to_session, saved=at, transferred_from=from_session, transferred_at=at)
            self.save_state(grant, moved)
            return moved


@contextmanager
def _beside() -> Iterator[None]:
    """Log errors in what is kept beside a note, since the change of the note itself is done."""
    try:
        yield
    except KiteError as error:
        log.warning("beside the vault: %s", error)


def _key_place(key: str, place: MemoryPlace) -> KeyPlace:
    return mended(KeyPlace(key=key, scope=place.scope, project=place.project, session=place.session))


def _sight(grant: Grant) -> VisibleNotes:
    grant = grant.in_a_vault
    return VisibleNotes(scopes=grant.scopes, projects=grant.projects)


def _memory(kept: KeyedNote, reads: Reads) -> Memory:
    note = kept.note
    return Memory(
        id=note.name,
        key=note.key,
        value=value_of(note.body),
        place=MemoryPlace(scope=note.scope, project=note.project, session=note.session),
        version=kept.version,
        created=note.created,
        updated=note.updated,
        tags=note.tags,
        created_by=reads.created_by,
        expires=note.expires,
        accessed=reads.accessed,
        access_count=reads.count,
        context=reads.context,
    )
