"""Interface of the stores behind the tools, and the grants under which they are asked.

A store is the vault on this machine, or PostgreSQL for a team; one contract suite (`tests/contract/bridge_store_contract.py`)
holds both to it. What lies outside a grant does not exist for its holder.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from kite_memory.errors import KiteError
from kite_memory.model.note import Note, NoteKind, Origin, Record, Scope


class NotAllowed(KiteError):
    """The grant does not permit this. Does not reveal whether anything exists there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a caller may see and write.

    ``scopes`` and ``projects`` are those visible, ``None`` for all. ``name`` is recorded as ``created_by``. ``person`` is the one
    whose global memories are visible; those of others are not. It is empty for the owner of this machine's vault or of a team's
    server, and ``None`` for those of all persons, which only internal housekeeping uses.
    """

    name: str
    write: bool = True
    scopes: frozenset[Scope] | None = None
    projects: frozenset[str] | None = None
    person: str | None = ""

    def sees(self, scope: Scope, project: str) -> bool:
        """Return whether the grant covers this scope and project.

        Without a project, the scope alone decides, except for project and session scope, which need a visible project.
        """
        if self.scopes is not None and scope not in self.scopes:
            return False
        if self.projects is None or project in self.projects:
            return True
        return not project and scope in (Scope.GLOBAL, Scope.SHARED)

    @property
    def whole(self) -> bool:
        """Whether the grant sees everything."""
        return self.scopes is None and self.projects is None and not self.person

    @property
    def in_a_vault(self) -> "Grant":
        """The grant as it applies in a vault, where all global memories are the owner's: without them for any other person."""
        if not self.person:
            return self
        return replace(self, scopes=(self.scopes if self.scopes is not None else frozenset(Scope)) - {Scope.GLOBAL})

    def reads(self, note: Note) -> bool:
        """Return whether the grant may read the note.

        Entity notes need a whole grant, since they gather names and links from every project.
        """
        return self.sees(note.scope, note.project) and (self.whole or note.kind is not NoteKind.ENTITY)

    def demand(self, scope: Scope, project: str) -> None:
        """Raise `NotAllowed` if this grant may not write there."""
        if not self.write:
            raise NotAllowed("this token may only read", hint="ask for one that may write")
        if not self.sees(scope, project):
            if scope is Scope.GLOBAL and self.person:
                raise NotAllowed(
                    "this token does not reach global memories here",
                    hint='in a vault they are its owner\'s alone; use scope "shared" or "project"',
                )
            where = f"{scope.value} memories" + (f" of {project!r}" if project else "")
            raise NotAllowed(f"this token does not reach {where}", hint="`kmem token create` says what a token reaches")


OWNER = Grant(name="")
"""The vault's owner: sees everything, except other persons' global memories on a team's store."""
EVERYBODY = Grant(name="", person=None)
"""For housekeeping only; what it sees is returned to no caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Identity of one request: its grant, project, session and AI, as far as they are known."""

    grant: Grant
    project: str = ""
    session: str = ""
    ai: str = ""

    @property
    def name(self) -> str:
        return self.grant.name or self.ai


MOST_TITLED = 5

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


class Conflict(KiteError):
    """Another writer has changed the memory since. ``version`` is the current version, 0 if it does not exist."""

    def __init__(self, message: str, *, version: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.version = version


class StoreUnavailable(KiteError):
    """The store did not answer in time. Nothing was written in part, and the request may be sent again."""


class Unsure(StoreUnavailable):
    """The connection was lost during a commit: either everything was written or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlace:
    """Where a key is valid: the same key in another scope, project or session is another memory."""

    scope: Scope
    project: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A value stored under a key.

    ``version`` starts at 1 and increases with every change of the value, including one made in an editor. ``context`` is what its
    last writer stated beside the value.
    """

    id: str
    key: str
    value: JsonValue
    place: MemoryPlace
    version: int
    created: datetime
    updated: datetime
    tags: tuple[str, ...] = ()
    created_by: str = ""
    expires: datetime | None = None
    accessed: datetime | None = None
    access_count: int = 0
    context: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryVersion:
    version: int
    at: datetime
    by: str
    value: JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuery:
    """A query for memories. ``pattern`` is a key, or contains ``*`` or ``?``. Empty fields do not filter.

    ``newest`` sorts by the time of the last write, newest first.
    """

    pattern: str = "*"
    scope: Scope | None = None
    project: str = ""
    session: str = ""
    tags: tuple[str, ...] = ()
    limit: int = 100
    newest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedConversation:
    """A saved conversation: its record, and its transcript if one was given.

    ``overall`` summarizes all topics. ``transcript`` is empty if the store keeps it elsewhere; use `Store.transcript`. ``person``
    is the owner of its global notes, in a store with several persons.
    """

    uuid: str
    source: str
    project: str
    record: Record
    overall: str
    created: datetime
    updated: datetime
    scope: Scope = Scope.PROJECT
    transcript: str = ""
    has_transcript: bool = False
    created_by: str = ""
    person: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Result of saving a conversation: its place, its journal note, the notes made from it, and the refused items with reasons."""

    uuid: str
    journal: str
    notes: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    amended: bool
    scope: Scope
    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteQuery:
    """A search query.

    ``project`` is where the query comes from; with ``within``, only notes of that project or of no project are found.
    """

    text: str
    project: str = ""
    within: bool = False
    kinds: frozenset[NoteKind] = frozenset()
    since: datetime | None = None
    limit: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNote:
    note: Note
    score: float
    why: str
    snippet: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """A todo item. ``named`` is the field name that its author used for the text; ``more`` holds the author's other fields."""

    text: str
    status: str = "pending"
    named: str = "text"
    more: tuple[tuple[str, str | int | float | bool | None], ...] = ()

    def packed(self) -> list[JsonValue]:
        """Return the stored form, which `unpacked` reads along with the forms of earlier versions."""
        plain = self.named == "text" and not self.more
        return [self.text, self.status] if plain else [self.text, self.status, self.named, dict(self.more)]

    @staticmethod
    def unpacked(kept: Sequence[Any]) -> "Todo":
        text, status, named, more = (*kept, "text", {})[:4] if len(kept) < 4 else kept
        return Todo(text=text, status=status, named=named, more=tuple(more.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What an AI was working on in a session when it was saved."""

    ai: str
    session: str
    project: str
    todos: tuple[Todo, ...]
    working_notes: str
    context_summary: str
    saved: datetime
    transferred_from: str = ""
    transferred_at: datetime | None = None

    def amended(self, given: "State", only: Collection[str]) -> "State":
        """Return the state with the fields ``only`` and the time taken from ``given``."""
        return replace(self, saved=given.saved, **{name: getattr(given, name) for name in only})


class Store(Protocol):
    """Interface of a store.

    Thread-safe. Methods raise `StoreUnavailable`, `NotAllowed`, and other `KiteError` that an agent can act on.
    """

    @property
    def name(self) -> str:
        """Name for status and logs, without address or secret."""
        ...

    def close(self) -> None: ...

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
        """Write a memory. Raises `Conflict` if ``expected`` is given and is not the current version (0: no memory).

        Without ``expected``, a concurrent writer's value is kept as a version of its own.
        """
        ...

    def memories(self, grant: Grant, wanted: MemoryQuery, *, touch: bool = False) -> list[Memory]:
        """Return memories without expired ones, by key.

        Of one key, the nearest scope comes first (session, project, shared, global), and within a scope those of a project before
        those of none. With ``newest``, they are sorted by the last write, newest first. ``touch`` counts this as an access.
        """
        ...

    def delete_memory(self, grant: Grant, key: str, place: MemoryPlace) -> bool:
        """Move the memory to where forgotten notes go. Return whether there was one."""
        ...

    def versions(self, grant: Grant, key: str, place: MemoryPlace) -> list[MemoryVersion]:
        """Return the versions, newest first."""
        ...

    def save_conversation(self, grant: Grant, conversation: SavedConversation, *, named: Collection[str] = ()) -> Saved:
        """Save a conversation, completely or, if it raises, not at all; one with the same uuid is amended where it is kept.

        ``named`` lists which of ``scope`` and ``project`` the caller has set explicitly. Raises `UsageError` if the conversation is
        kept in another place that the grant sees.
        """
        ...

    def conversation(self, grant: Grant, uuid: str, *, near: MemoryPlace | None = None) -> SavedConversation | None:
        """Return the conversation with this uuid in the place ``near``, else the one that was saved last in any that is seen."""
        ...

    def transcript(self, grant: Grant, uuid: str, *, near: MemoryPlace | None = None) -> str | None:
        """Return the transcript of the conversation that `conversation` returns."""
        ...

    def search(self, grant: Grant, asked: NoteQuery) -> list[FoundNote]: ...

    def note(self, grant: Grant, name: str) -> Note | None:
        """Return a note by id or path."""
        ...

    def titled(self, grant: Grant, title: str) -> list[Note]:
        """Return some of the notes that others refer to by this title, enough to see whether the title is unambiguous."""
        ...

    def recent(self, grant: Grant, project: str, kinds: frozenset[NoteKind], limit: int) -> list[Note]:
        """Return notes of the project and of no project, newest first."""
        ...

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
        """Write a note that the next search finds, in this process or another.

        A note that originates from a tool waits for review.
        """
        ...

    def forget(self, grant: Grant, name: str) -> bool: ...

    def save_state(self, grant: Grant, state: State, *, only: Collection[str] | None = None) -> State:
        """Replace this AI's state in the session and project, safely against concurrent writers, and return the result.

        With ``only``, just these fields of an existing state change.
        """
        ...

    def states(self, grant: Grant, *, ai: str = "", session: str = "", project: str = "", limit: int = 20) -> list[State]:
        """Return states, newest first."""
        ...

    def transfer_state(
        self, grant: Grant, ai: str, *, from_session: str, to_session: str, at: datetime, near: str = ""
    ) -> State | None:
        """Copy the state to the new session and return it; the old session keeps its own. ``None`` if there was none.

        Of states in several projects, that of the project ``near``, else the newest.
        """
        ...
