"""The team's store: PostgreSQL for what is queried, object storage for long transcripts."""

import hashlib
import json
import logging
import threading
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import psycopg

from kite_memory.errors import KiteError, UsageError
from kite_memory.model.note import Note, NoteKind, NoteStatus, Origin, Scope
from kite_memory.recall.embedder import Embedder
from kite_memory.system import utc_now
from kite_memory.team.postgres import backup, conversations, notes
from kite_memory.team.postgres.audit import TeamAudit, drop_old
from kite_memory.team.postgres.connections import Connection, Connections, Cursor, Patience, storable, unavailable
from kite_memory.team.postgres.conversations import ObjectMissing, Objects
from kite_memory.team.postgres.finding import find, indexed, question
from kite_memory.team.postgres.migrating import check
from kite_memory.team.postgres.rows import clean, encoded, memory_note, note_of, note_row, state_of, state_row
from kite_memory.tools.conversation_notes import journal_id, merged, place_of, refuse_elsewhere
from kite_memory.tools.store import (
    EVERYBODY,
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
    StoreUnavailable,
    Unsure,
)
from kite_memory.vault.drafting import Memo, remembered
from kite_memory.vault.wording import note_id

_PAUSE: Final = 600.0
_AT_ONCE: Final = 500
KEEP_DAYS: Final = 30
_END: Final = (datetime.min.replace(tzinfo=UTC), "")

log = logging.getLogger("kite_memory.team")


_HERE: Final = "tenant = %(tenant)s AND ai = %(ai)s AND session = %(session)s AND project = %(project)s"


def save(cursor: Cursor, tenant: str, state: State, only: Collection[str] | None = None) -> State:
    """Save a state and return the result. To amend one, its row is locked from reading to writing."""
    row = {"tenant": tenant, **state_row(state)}
    otherwise = "NOTHING" if only is not None else "UPDATE SET saved = excluded.saved, body = excluded.body"
    written = cursor.execute(
        "INSERT INTO kite.state (tenant, ai, session, project, saved, body) VALUES (%(tenant)s, %(ai)s, %(session)s, %(project)s,"  # noqa: S608
        f" %(saved)s, %(body)s::json) ON CONFLICT (tenant, ai, session, project) DO {otherwise} RETURNING *",
        row,
    ).fetchone()
    if written is not None:
        return state_of(written)
    there = cursor.execute(f"SELECT * FROM kite.state WHERE {_HERE} FOR UPDATE", row).fetchone()  # noqa: S608 - ours
    if there is None:
        raise AssertionError("an insert that does nothing has met a row, and states are not deleted")
    changed = {"tenant": tenant, **state_row(state_of(there).amended(state, only or ()))}
    cursor.execute(f"UPDATE kite.state SET saved = %(saved)s, body = %(body)s::json WHERE {_HERE}", changed)  # noqa: S608 - ours
    return state_of({**there, "saved": changed["saved"], "body": json.loads(changed["body"])})


def saved(cursor: Cursor, tenant: str, *, ai: str, session: str, project: str, limit: int) -> list[State]:
    asked = {"ai": storable(ai), "session": storable(session), "project": storable(project)}
    conditions = ["tenant = %(tenant)s", *(f"{name} = %({name})s" for name, value in asked.items() if value)]
    rows = cursor.execute(
        f"SELECT * FROM kite.state WHERE {' AND '.join(conditions)} ORDER BY saved DESC, ai, session LIMIT %(limit)s",  # noqa: S608 - ours
        {"tenant": tenant, "limit": limit, **asked},
    ).fetchall()
    return [state_of(row) for row in rows]


def transfer(cursor: Cursor, tenant: str, ai: str, *, from_session: str, to_session: str, at: datetime, near: str) -> State | None:
    of_session = partial(saved, cursor, tenant, ai=ai, session=from_session, limit=1)
    found = of_session(project=near) or of_session(project="")
    if not ai or not from_session or not found:
        return None
    moved = replace(found[0], session=to_session, saved=at, transferred_from=from_session, transferred_at=at)
    save(cursor, tenant, moved)
    return moved


_LOOK_UP: Final = 0.5
_RECONNECT: Final = 2.0


class ChangeListener:
    """Listener for changes, with a thread and a connection of its own.

    Changes that arrive together are reported once; after a reconnection a change is reported in case one was missed.
    """

    def __init__(self, connections: Connections, on_change: Callable[[], None]) -> None:
        self._connections = connections
        self._on_change = on_change
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="team-listener", daemon=True)
        self._thread.start()

    @staticmethod
    def channel(tenant: str) -> str:
        return "kite_" + hashlib.sha256(tenant.encode()).hexdigest()[:32]

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        again = False
        while not self._stop.is_set():
            with suppress(psycopg.Error), self._connections.connect() as connection:
                self._receive(connection, again)
            again = True
            self._stop.wait(_RECONNECT)

    def _receive(self, connection: Connection, again: bool) -> None:
        connection.execute(f'LISTEN "{self.channel(self._connections.tenant)}"'.encode())
        if again:
            self._on_change()
        while not self._stop.is_set():
            if list(connection.notifies(timeout=_LOOK_UP, stop_after=1)):
                self._on_change()


_T = TypeVar("_T")

_AMENDED_MEANWHILE: Final = 5
_ORPHANED_AFTER: Final = timedelta(hours=1)
"""A younger object without a row may belong to a row that is still being written."""


def open_postgres(
    url: str,
    *,
    embedder: Embedder,
    objects: Objects | None = None,
    tenant: str = "team",
    password: str = "",
    connections: int = 16,
    patience: Patience | None = None,
    keep_days: int = KEEP_DAYS,
) -> "PostgresStore":
    """Open the store. Raises `StoreUnavailable`, `SchemaMissing`, `StateNewer` or `NotPermitted`.

    ``password`` is for a URL that holds none.
    """
    if not tenant or storable(tenant) != tenant or len(tenant) > 100:
        raise UsageError("a tenant is a name of at most 100 characters", hint="see `tenant` in `[team]`")
    pool = Connections(url, tenant=tenant, password=password, most=connections, patience=patience)
    try:
        with pool.connect() as connection:
            check(connection)
    except psycopg.OperationalError as error:
        raise unavailable(error) from error
    return PostgresStore(pool, embedder=embedder, objects=objects, keep_days=keep_days)


class PostgresStore:
    """`Store` for one tenant. Each call is one transaction under the caller's grant, which the database's policies enforce."""

    def __init__(
        self,
        connections: Connections,
        *,
        embedder: Embedder,
        objects: Objects | None = None,
        keep_days: int = KEEP_DAYS,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        """Use the connections. ``keep_days`` is how long deleted notes and the audit are kept."""
        self.audit = TeamAudit(connections)
        self._connections = connections
        self._embedder = embedder
        self._objects = objects
        self._keep_days = keep_days
        self._clock = clock
        self._caught_up_to: tuple[datetime, str] | None = None

    @property
    def name(self) -> str:
        return "postgres"

    @property
    def _tenant(self) -> str:
        return self._connections.tenant

    def close(self) -> None:
        self._connections.close()

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
        grant.demand(place.scope, place.project)
        note = memory_note(key, value, place, datetime.now(UTC), uuid.uuid4().hex)
        index = indexed(note, self._embedder)
        row = {**note_row(note), "key": storable(key), "tags": list(map(storable, tags)), "context": encoded(dict(context or {}))}
        by = by or grant.name

        def work(cursor: Cursor) -> Memory:
            written = notes.write(
                cursor, self._tenant, row, index, value=value, by=by, expires=expires, sent=self._clock(), expected=expected
            )
            self._tell(cursor)
            return written

        return self._connections.run(grant, work)

    def memories(self, grant: Grant, wanted: MemoryQuery, *, touch: bool = False) -> list[Memory]:
        return self._connections.run(grant, lambda cursor: notes.wanted(cursor, self._tenant, wanted, touch=touch))

    def delete_memory(self, grant: Grant, key: str, place: MemoryPlace) -> bool:
        grant.demand(place.scope, place.project)
        return self._changing(grant, lambda cursor: notes.delete(cursor, self._tenant, key, place))

    def versions(self, grant: Grant, key: str, place: MemoryPlace) -> list[MemoryVersion]:
        return self._connections.run(grant, lambda cursor: notes.versions(cursor, self._tenant, key, place))

    def save_conversation(self, grant: Grant, conversation: SavedConversation, *, named: Collection[str] = ()) -> Saved:
        """Save a conversation. A long transcript is uploaded first, and deleted again if writing the row fails."""
        grant.demand(conversation.scope, conversation.project)
        kept = conversations.ready(conversation, self._objects, self._tenant)
        try:
            conversation = replace(conversation, created_by=conversation.created_by or grant.name, person=grant.person or "")
            saved, replaced = self._saved(grant, conversation, kept, named)
        except Unsure:
            raise  # its row may exist; if not, `sweep` deletes the object
        except BaseException:
            conversations.take_away(self._objects, self._tenant, kept.object)
            raise
        conversations.take_away(self._objects, self._tenant, replaced)
        return saved

    def _saved(
        self, grant: Grant, conversation: SavedConversation, kept: conversations.StoredTranscript, named: Collection[str]
    ) -> tuple[Saved, str]:
        for _ in range(_AMENDED_MEANWHILE):
            old = self.conversation(grant, conversation.uuid, near=place_of(conversation))
            if old is not None:
                refuse_elsewhere(old, conversation, named)
            whole = merged(old, conversation) if old else conversation
            ids = [*conversations.note_ids(whole), journal_id(whole)]
            gone = self._connections.run(grant, partial(conversations.forgotten, tenant=self._tenant, ids=ids))
            if journal_id(whole) in gone:
                conversations.take_away(self._objects, self._tenant, kept.object)
                return conversations.refused(whole), ""
            prepared = conversations.prepared(conversation, old, gone, grant, self._embedder)
            work = partial(conversations.save, tenant=self._tenant, prepared=prepared, kept=kept)
            if (found := self._changing(grant, work)) is not None:
                return found
        raise StoreUnavailable("others kept amending the same conversation", hint="try again in a moment")

    def conversation(self, grant: Grant, uuid: str, *, near: MemoryPlace | None = None) -> SavedConversation | None:
        return self._connections.run(grant, lambda cursor: conversations.saved(cursor, self._tenant, uuid, near))

    def transcript(self, grant: Grant, uuid: str, *, near: MemoryPlace | None = None) -> str | None:
        kept = self._kept(grant, uuid, near)
        try:
            return None if kept is None else kept.fetched(self._objects)
        except ObjectMissing:
            now = self._kept(grant, uuid, near)
            if now == kept:
                raise
            return None if now is None else now.fetched(self._objects)  # a concurrent save has replaced it

    def _kept(self, grant: Grant, uuid: str, near: MemoryPlace | None) -> conversations.StoredTranscript | None:
        return self._connections.run(grant, lambda cursor: conversations.transcript(cursor, self._tenant, uuid, near))

    def search(self, grant: Grant, asked: NoteQuery) -> list[FoundNote]:
        if asked.limit < 1:
            return []
        ready = question(asked, self._embedder)
        return self._connections.run(grant, lambda cursor: find(cursor, grant, self._tenant, ready, self._embedder.space))

    def note(self, grant: Grant, name: str) -> Note | None:
        return self._connections.run(grant, lambda cursor: notes.called(cursor, grant, self._tenant, name))

    def titled(self, grant: Grant, title: str) -> list[Note]:
        return self._connections.run(grant, lambda cursor: notes.titled(cursor, grant, self._tenant, title))

    def recent(self, grant: Grant, project: str, kinds: frozenset[NoteKind], limit: int) -> list[Note]:
        return self._connections.run(grant, lambda cursor: notes.recent(cursor, grant, self._tenant, project, kinds, limit))

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
        """Write a note. The same words of the same kind and in the same place are the same note."""
        grant.demand(place.scope, place.project)
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
        id = note_id(note.created, "remembered", uuid.uuid4().hex)  # two notes in one millisecond need different ids
        if place.scope is Scope.SHARED and origin != "tool":  # a team has no one who reviews what its members share
            note = replace(note, status=NoteStatus.ACCEPTED)
        note = clean(replace(note, id=id, scope=place.scope, project=place.project, session=place.session))
        row, index = note_row(note, by=by or grant.name), indexed(note, self._embedder)
        return self._changing(grant, lambda cursor: notes.remember(cursor, self._tenant, row, index))

    def forget(self, grant: Grant, name: str) -> bool:
        if not grant.write:
            raise NotAllowed("this token may only read", hint="ask for one that may write")
        for _ in range(_AMENDED_MEANWHILE):
            source = self._connections.run(grant, partial(conversations.source_of, grant=grant, tenant=self._tenant, name=name))
            less = conversations.prepare_removal(*source, embedder=self._embedder) if source else None
            work = partial(conversations.forget, grant=grant, tenant=self._tenant, name=name, less=less)
            if (found := self._changing(grant, work)) is not None:
                gone, object = found
                conversations.take_away(self._objects, self._tenant, object)
                return gone
        raise StoreUnavailable("others kept amending the conversation that it comes from", hint="try again in a moment")

    def save_state(self, grant: Grant, state: State, *, only: Collection[str] | None = None) -> State:
        grant.demand(Scope.SESSION, state.project)
        return self._connections.run(grant, lambda cursor: save(cursor, self._tenant, state, only))

    def states(self, grant: Grant, *, ai: str = "", session: str = "", project: str = "", limit: int = 20) -> list[State]:
        return self._connections.run(
            grant, lambda cursor: saved(cursor, self._tenant, ai=ai, session=session, project=project, limit=limit)
        )

    def transfer_state(
        self, grant: Grant, ai: str, *, from_session: str, to_session: str, at: datetime, near: str = ""
    ) -> State | None:
        if not grant.write:
            raise NotAllowed("this token may only read", hint="ask for one that may write")
        return self._connections.run(
            grant,
            lambda cursor: transfer(cursor, self._tenant, ai, from_session=from_session, to_session=to_session, at=at, near=near),
        )

    def ping(self) -> None:
        """Raise what a call would raise now."""
        self._connections.run(EVERYBODY, lambda cursor: cursor.execute("SELECT 1"))

    def listen(self, on_change: Callable[[], None]) -> ChangeListener:
        """Call ``on_change`` soon after a write for this tenant and after every reconnection, for readers that cache."""
        return ChangeListener(self._connections, on_change)

    def catch_up(self, most: int = 100) -> int:
        """Embed notes without vectors in the embedder's space, written while it did not answer or by another one.

        Return how many. Calls that follow each other pass each note of another space once, until one of them returns 0: a server
        with the other embedder may take it back meanwhile.
        """
        asked = partial(notes.without_vectors, tenant=self._tenant, space=self._embedder.space, most=most, below=self._caught_up_to)
        missing = self._connections.run(EVERYBODY, asked)
        last = missing[-1] if len(missing) == most else None
        self._caught_up_to = (last["updated"], last["id"]) if last else _END if missing else None
        for row in missing:
            index = indexed(note_of(row), self._embedder)
            if not index.vectors:
                self._caught_up_to = None
                return 0  # the embedder does not answer; tried again later, with those that were passed
            self._connections.run(EVERYBODY, partial(notes.index_again, tenant=self._tenant, row=row, index=index))
        return len(missing)

    def sweep(self, *, orphaned_after: timedelta = _ORPHANED_AFTER) -> int:
        """Delete objects without a row, expired notes, and what is kept no longer: the words of forgotten notes and the audit.

        Return the number of objects and expired notes.
        """
        count = self._connections.run(EVERYBODY, partial(notes.drop_expired, tenant=self._tenant))
        self._connections.run(EVERYBODY, partial(notes.drop_forgotten, tenant=self._tenant, days=self._keep_days))
        self._connections.run(EVERYBODY, partial(drop_old, days=self._keep_days))
        if self._objects is None:
            return count
        for name in list(self._objects.names(self._tenant, before=datetime.now(UTC) - orphaned_after)):
            if not self._connections.run(EVERYBODY, partial(conversations.refers, tenant=self._tenant, name=name)):
                self._objects.remove(name)
                count += 1
        return count

    def undelete(self, name: str, *, by: str, person: str = "", project: str = "") -> notes.Deleted:
        """Bring back a deleted memory or note by its key, id, path or title, no matter who deleted it.

        For administrators of the server.

        Raises `UsageError` if nothing deleted has this name, or several have, or if another memory has its key by now.
        """
        asked = partial(notes.deleted, tenant=self._tenant, name=name, person=person, project=project)
        found = self._connections.run(EVERYBODY, asked)
        if not found:
            raise UsageError(
                f"nothing that was deleted is called {name!r:.80}", hint=f"what is deleted is kept for {self._keep_days} days"
            )
        if len(found) > 1:
            places = ", ".join(sorted({each.place for each in found}))
            raise UsageError(f"several are called {name!r:.80}: {places}", hint="say --person or --project, or give the id")
        index = indexed(note_of(found[0].row), self._embedder)

        def work(cursor: Cursor) -> bool:
            if notes.is_taken(cursor, self._tenant, found[0]):
                raise UsageError(f"another memory is called {name!r:.80} by now", hint="delete that one first, or keep it")
            return notes.bring_back(cursor, self._tenant, found[0], index, by=by)

        if not self._changing(EVERYBODY, work):
            raise UsageError(f"{name!r:.80} was brought back by somebody else just now")
        return found[0]

    def back_up(self, file: Path) -> dict[str, int]:
        """Write the tenant to a new file and return the number of rows of each table. Objects are not in it."""
        return backup.back_up(self._connections, file)

    def restore(self, file: Path) -> dict[str, int]:
        """Read a backup into this empty tenant. Its notes are found once `catch_up` has been through them.

        Objects of another tenant are copied, so that neither can delete the other's.
        """
        return backup.restore(self._connections, file, partial(conversations.own_copy, self._objects, self._tenant))

    def _changing(self, grant: Grant, work: Callable[[Cursor], _T]) -> _T:
        def changed(cursor: Cursor) -> _T:
            result = work(cursor)
            self._tell(cursor)
            return result

        return self._connections.run(grant, changed)

    def _tell(self, cursor: Cursor) -> None:
        """Notify that something changed, but not what: any client of the database can listen to every channel."""
        cursor.execute("SELECT pg_notify(%s, '')", (ChangeListener.channel(self._tenant),))


class Housekeeping:
    """A thread that embeds notes without vectors and deletes what is no longer referred to. Several servers may run one."""

    def __init__(self, store: PostgresStore, *, pause: float = _PAUSE) -> None:
        self._store = store
        self._pause = pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="team-housekeeping", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                while not self._stop.is_set() and self._store.catch_up(_AT_ONCE):
                    pass
                self._store.sweep()
            except KiteError as error:
                log.warning("the team's store could not be tidied: %s", error)
            except Exception:  # last resort of a thread: the next run may succeed
                log.exception("internal error: the team's store could not be tidied")
            self._stop.wait(self._pause)
