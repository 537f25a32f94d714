"""Where the bridge's memories live: the vault on this machine, or PostgreSQL for a team.

One contract suite (`tests/contract/bridge_store_contract.py`) holds for every store. Each method takes a `Grant` and
behaves as if nothing outside it existed; writing beyond it raises `NotAllowed` before anything is looked up.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from kite_memory.errors import KiteError
from kite_memory.model.note import Note, NoteKind, Scope
from kite_memory.model.record import Origin, Record
from kite_memory.tools.access import Grant

MOST_TITLED = 5

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


class Conflict(KiteError):
    """Somebody else has written since. ``version`` is what there is now; 0 for nothing."""

    def __init__(self, message: str, *, version: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.version = version


class StoreUnavailable(KiteError):
    """The store did not answer, or not in time; nothing was written by halves, and the same request may be sent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a key counts: the same key is another memory in another scope, project or session."""

    scope: Scope
    project: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """``version`` counts up from 1 with every change of the value, also one that a person made in an editor.

    ``context`` is what whoever wrote it last said beside the value.
    """

    id: str
    key: str
    value: JsonValue
    place: Place
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
class Version:
    version: int
    at: datetime
    by: str
    value: JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which memories: ``pattern`` is a key, or has ``*`` and ``?`` in it. Empty fields leave all that the grant sees.

    ``newest`` orders them by when they were last written, the newest first.
    """

    pattern: str = "*"
    scope: Scope | None = None
    project: str = ""
    session: str = ""
    tags: tuple[str, ...] = ()
    limit: int = 100
    newest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One saved conversation: what was distilled of it, and the whole of it where it was given.

    ``overall`` sums up all topics. ``transcript`` is empty where a store keeps it elsewhere: `Store.transcript` fetches it.
    ``person`` is whose its global notes are, where a store keeps those of several persons.
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
    """What became of a conversation: where it is kept, its journal note, the notes it yielded, and what was refused and why."""

    uuid: str
    journal: str
    notes: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    amended: bool
    scope: Scope
    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A search. ``project`` is where the question comes from; with ``within`` only that project's and what is everybody's."""

    text: str
    project: str = ""
    within: bool = False
    kinds: frozenset[NoteKind] = frozenset()
    since: datetime | None = None
    limit: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    note: Note
    score: float
    why: str
    snippet: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """``named`` is what its text was called by whoever saved it; ``more`` holds what else they said of it."""

    text: str
    status: str = "pending"
    named: str = "text"
    more: tuple[tuple[str, str | int | float | bool | None], ...] = ()

    def packed(self) -> list[JsonValue]:
        """As a store keeps it; `unpacked` reads it, and what earlier versions kept."""
        plain = self.named == "text" and not self.more
        return [self.text, self.status] if plain else [self.text, self.status, self.named, dict(self.more)]

    @staticmethod
    def unpacked(kept: Sequence[Any]) -> "Todo":
        text, status, named, more = (*kept, "text", {})[:4] if len(kept) < 4 else kept
        return Todo(text=text, status=status, named=named, more=tuple(more.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What an AI had in hand in a session when it was saved."""

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
        """With these fields as ``given`` has them, and as of then."""
        return replace(self, saved=given.saved, **{name: getattr(given, name) for name in only})


class Store(Protocol):
    """Thread-safe. Raises `StoreUnavailable`, `NotAllowed`, and other `KiteError` that an agent can act on."""

    @property
    def name(self) -> str:
        """For status and logs; no address, no secret."""
        ...

    def close(self) -> None: ...

    def write_memory(
        self,
        grant: Grant,
        key: str,
        value: JsonValue,
        place: Place,
        *,
        by: str = "",
        tags: Sequence[str] = (),
        expires: datetime | None = None,
        expected: int | None = None,
        context: Mapping[str, JsonValue] | None = None,
    ) -> Memory:
        """With ``expected`` only over that version (0: only where there is none), else raises `Conflict`.

        Without it, a write over another writer's value of the last moments is not lost silently: both are versions.
        """
        ...

    def memories(self, grant: Grant, wanted: Wanted, *, touch: bool = False) -> list[Memory]:
        """By key, nearest scope first (session, project, shared, global), and of one scope a project's own before nobody's; with
        ``newest`` the newest first.

        ``touch`` counts it as an access. No expired ones.
        """
        ...

    def delete_memory(self, grant: Grant, key: str, place: Place) -> bool:
        """Whether there was one. It goes where forgotten notes go."""
        ...

    def versions(self, grant: Grant, key: str, place: Place) -> list[Version]:
        """Newest first."""
        ...

    def save_conversation(self, grant: Grant, conversation: Conversation, *, named: Collection[str] = ()) -> Saved:
        """The same uuid again amends, where it is kept. All of it or, where it raises, nothing.

        ``named`` are those of ``scope`` and ``project`` that somebody has asked for: where it is kept elsewhere, as far as the
        grant sees, raises `UsageError`.
        """
        ...

    def conversation(self, grant: Grant, uuid: str) -> Conversation | None: ...

    def transcript(self, grant: Grant, uuid: str) -> str | None: ...

    def search(self, grant: Grant, asked: Asked) -> list[Found]: ...

    def note(self, grant: Grant, name: str) -> Note | None:
        """By id or path."""
        ...

    def titled(self, grant: Grant, title: str) -> list[Note]:
        """Some of the notes with this title as others tell it: enough of them to see whether it names one."""
        ...

    def recent(self, grant: Grant, project: str, kinds: frozenset[NoteKind], limit: int) -> list[Note]:
        """Newest first, of a project and what is everybody's."""
        ...

    def remember(
        self,
        grant: Grant,
        text: str,
        kind: NoteKind,
        place: Place,
        *,
        by: str = "",
        tags: Sequence[str] = (),
        title: str = "",
        origin: Origin = "assistant",
    ) -> Note:
        """Found by the next search, of this process or another. What is a tool's word waits for review."""
        ...

    def forget(self, grant: Grant, name: str) -> bool: ...

    def save_state(self, grant: Grant, state: State, *, only: Collection[str] | None = None) -> State:
        """In place of what this AI had in hand in this session and project, whoever else saves just now; what is there then.

        With ``only``, of a state that is there just these fields change.
        """
        ...

    def states(self, grant: Grant, *, ai: str = "", session: str = "", project: str = "", limit: int = 20) -> list[State]:
        """Newest first."""
        ...

    def transfer_state(self, grant: Grant, ai: str, *, from_session: str, to_session: str, at: datetime) -> State | None:
        """The state as it stands in the new session; the old one keeps its own. ``None`` where there was none."""
        ...
