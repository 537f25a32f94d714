"""Data kept beside the vault: who wrote a memory and how often it was read, and the saved states of AIs.

If it is deleted, memories lose their author and their read counts, and saved states are gone; nothing else is lost.
"""

import json
import re
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from kite_memory.errors import KiteError, StateDamaged, StateNotWritten, UsageError
from kite_memory.model.event import Event
from kite_memory.model.note import Scope
from kite_memory.redaction.cutting import beginning
from kite_memory.system import sqlite, utc_now
from kite_memory.system.private_files import make_private_folder
from kite_memory.timeline.store import Timeline
from kite_memory.timeline.summaries import left
from kite_memory.tools import argument_parsing
from kite_memory.tools.arguments import (
    AI,
    CONTEXT_SUMMARY,
    FROM_SESSION,
    MOST_TODOS,
    PROJECT,
    SESSION,
    STATE_LIMIT,
    TO_SESSION,
    TODOS,
    WORKING_NOTES,
    Arguments,
    LocalContext,
    around,
    project_named,
    within,
)
from kite_memory.tools.declarations import Json, Tool
from kite_memory.tools.store import Asker, JsonValue, State, Store, Todo

_FIELDS = (TODOS, WORKING_NOTES, CONTEXT_SUMMARY)
_LONGEST_TODO = 500
_MOST_FIELDS = 12
_FIELD = re.compile(r"(?!(?:text|content|step)$)[A-Za-z_][\w-]{0,39}", re.ASCII)
_STATUSES = {
    "": "pending",
    "todo": "pending",
    "open": "pending",
    "not_started": "pending",
    "in-progress": "in_progress",
    "doing": "in_progress",
    "active": "in_progress",
    "done": "completed",
    "complete": "completed",
    "canceled": "cancelled",
    "deleted": "cancelled",
}
_CLIENTS = {
    "antigravity": "antigravity",
    "claude": "claude",
    "claude-ai": "claude",
    "claude-code": "claude",
    "claude-desktop": "claude",
    "cline": "cline",
    "codex": "codex",
    "codex-cli": "codex",
    "copilot": "copilot",
    "copilot-cli": "copilot",
    "cursor": "cursor",
    "cursor-agent": "cursor",
    "gemini": "gemini",
    "gemini-cli": "gemini",
    "github-copilot": "copilot",
    "roo": "roo",
    "roo-cline": "roo",
    "roo-code": "roo",
}
"""The names of one agent: in its transcripts, as an MCP client, and as it calls itself."""
_MODEL = re.compile(
    r"(claude|gemini)-(?:opus|sonnet|haiku|instant|\d)[\w.:@-]*|(?:gpt-[\d.]+-)?(codex)(?:-(?:mini|max|\d)[\w.:@-]*)?"
)
"""Model names, which an agent often gives when asked for its name."""
_APART = re.compile(r"[\s_]+")
_KNOWN = frozenset({"pending", "in_progress", "completed", "cancelled", "blocked"})


def tools(store: Store, local: LocalContext, *, clock: Callable[[], datetime] = utc_now) -> Mapping[str, Tool]:
    return {
        "ai_state_save": partial(_save, store, local, clock),
        "ai_state_get": partial(_get, store, local),
        "ai_state_transfer": partial(_transfer, store, local, clock),
        "ai_state_list": partial(_list, store, local),
    }


def _save(store: Store, local: LocalContext, clock: Callable[[], datetime], asker: Asker, arguments: Arguments) -> Json:
    """Save a state. Fields that are not given keep their saved values."""
    ai = _ai(asker, arguments)
    project, session = around(asker, local, arguments)
    state = State(
        ai=ai,
        session=session,
        project=project,
        todos=_todos(arguments[TODOS]),
        working_notes=argument_parsing.clean(arguments[WORKING_NOTES]),
        context_summary=argument_parsing.clean(arguments[CONTEXT_SUMMARY]),
        saved=clock(),
    )
    mentioned = {field.name for field in _FIELDS if field in arguments}
    if not mentioned:
        raise UsageError("there is nothing to save", hint="give todos, working_notes or context_summary")
    return {"saved": True, **state_json(store.save_state(asker.grant, state, only=mentioned))}


def _get(store: Store, local: LocalContext, asker: Asker, arguments: Arguments) -> Json:
    """Return the state of the named or current session; without a session, the AI's latest state in this project."""
    ai = _ai(asker, arguments)
    project, session = around(asker, local, arguments)
    found = of_project(_of(states(store, local, asker, session=session, project="" if session else project), ai), project)
    return {"found": True, **state_json(found[0])} if found else {"found": False, "ai_id": ai, "session_id": session}


def _transfer(store: Store, local: LocalContext, clock: Callable[[], datetime], asker: Asker, arguments: Arguments) -> Json:
    ai = _ai(asker, arguments)
    source = arguments[FROM_SESSION]
    target = arguments[TO_SESSION]
    if source == target:
        raise UsageError("from_session and to_session are the same", hint="name the session that goes on")
    now = clock()
    moved = store.transfer_state(asker.grant, ai, from_session=source, to_session=target, at=now, near=asker.project)
    if moved is None:
        seen = next(iter(of_project(_of(states(store, local, asker, session=source, project=""), ai), asker.project)), None)
        if seen is None:
            hint = "nothing was saved by this AI in that session; ai_state_list lists the saved states"
            return {"transferred": False, "ai_id": ai, "from_session": source, "hint": hint}
        moved = replace(seen, ai=ai, session=target, saved=now, transferred_from=source, transferred_at=now)
        store.save_state(asker.grant, moved)
    return {"transferred": True, **state_json(moved)}


def _list(store: Store, local: LocalContext, asker: Asker, arguments: Arguments) -> Json:
    limit = arguments[STATE_LIMIT]
    ai = argument_parsing.clean(arguments[AI])
    project = project_named(asker, local, arguments[PROJECT])
    session = arguments[SESSION]
    there = states(store, local, asker, session=session, project=project or ("" if session else asker.project))
    found = _of(there, ai) if ai else there
    return {"states": [state_brief(state) for state in found[:limit]], "count": len(found[:limit]), "more": len(found) > limit}


def of_project(found: Sequence[State], project: str) -> Sequence[State]:
    """Return the states of this project, or else all: a session may have one in each of several projects."""
    return [state for state in found if state.project == project] or found


def states(store: Store, local: LocalContext, asker: Asker, *, session: str, project: str) -> list[State]:
    """Return saved states and those seen in transcripts, newest first."""
    saved = store.states(asker.grant, session=session, project=project, limit=argument_parsing.MOST_RESULTS)
    shown: Sequence[State] = ()
    if local.working is not None and (session or project):
        looked_at = local.working(project, session, **within(asker.grant, Scope.SESSION))
        shown = [state for state in looked_at if asker.grant.sees(Scope.SESSION, state.project)]
    return joined(saved, shown)


def joined(saved: Sequence[State], shown: Sequence[State]) -> list[State]:
    """Combine saved states with those seen in transcripts.

    Within a session, a transcript's todos replace the saved ones if they are newer. They are matched with the state saved under the
    same name, or else under another name of the same AI.
    """
    left = {(state.session, state.project): state for state in shown}
    own = {(state.session, state.ai.casefold()) for state in saved}
    both: list[State] = []
    for state in saved:
        theirs = [seen for seen in left.values() if seen.session == state.session and same_ai(state.ai, seen.ai)]
        seen = next(iter(_of(theirs, state.ai)), None)
        if seen is not None and (_called(seen, state.ai) or (seen.session, seen.ai.casefold()) not in own):
            del left[seen.session, seen.project]
            if seen.saved > state.saved or not state.todos:
                todos = tuple(_as_given(todo, state.todos) for todo in seen.todos)
                state = replace(state, todos=todos, saved=max(seen.saved, state.saved))
        both.append(state)
    return sorted((*both, *left.values()), key=lambda state: state.saved, reverse=True)


def _as_given(todo: Todo, saved: Sequence[Todo]) -> Todo:
    """Return the saved todo of the same text with the status of ``todo``."""
    same = next((each for each in saved if each.text == todo.text), todo)
    return replace(same, status=todo.status)


def same_ai(one: str, other: str) -> bool:
    """Return whether two names mean the same AI.

    «claude» and «claude-code» are one, and a known client and its models are one; two models, or two self-chosen names, are two.
    """
    if one.casefold() == other.casefold():
        return True
    first, second = (_APART.sub("-", name.strip().casefold()) for name in (one, other))
    client = _CLIENTS.get(first) or _CLIENTS.get(second)
    return client is not None and client == _agent(first) == _agent(second)


def _agent(name: str) -> str | None:
    model = _MODEL.fullmatch(name)
    return _CLIENTS.get(name) or (model and (model[1] or model[2])) or None


def _of(states: Iterable[State], ai: str) -> list[State]:
    """Return this AI's states in order: those saved under this name, or else under its other names."""
    states = list(states)
    return [state for state in states if _called(state, ai)] or [state for state in states if same_ai(state.ai, ai)]


def _called(state: State, ai: str) -> bool:
    return state.ai.casefold() == ai.casefold()


def _ai(asker: Asker, arguments: Arguments) -> str:
    ai = argument_parsing.clean(arguments[AI]) or asker.ai
    if not ai:
        raise UsageError("ai_id is missing", hint="say who you are, as in: claude-code, codex, gemini-cli")
    return ai


def _todos(value: object) -> tuple[Todo, ...]:
    if not isinstance(value, list):
        raise UsageError("todos are not a list", hint='as in: [{"text": "Write the test", "status": "in_progress"}]')
    if len(value) > MOST_TODOS:
        raise UsageError("there are too many todos", hint=f"at most {MOST_TODOS}")
    return tuple(todo for each in value if (todo := _todo(each)).text)


def _todo(value: object) -> Todo:
    status: object = ""
    named = "text"
    rest: Mapping[object, object] = {}
    match value:
        case str(text):
            pass
        case {"text": str(text), **rest}:
            status = rest.get("status", "")
        case {"content": str(text), **rest}:
            named, status = "content", rest.get("status", "")
        case {"step": str(text), **rest}:
            named, status = "step", rest.get("status", "")
        case _:
            raise UsageError("a todo is neither text nor an object with text", hint='as in: {"text": "Write the test"}')
    if len(text) > _LONGEST_TODO:
        raise UsageError("a todo is too long", hint=f"at most {_LONGEST_TODO} characters")
    if not isinstance(status, str):
        raise UsageError("a todo's status is not text", hint=f"one of: {', '.join(sorted(_KNOWN))}")
    plain = status.strip().casefold().replace(" ", "_")
    known = _STATUSES.get(plain, plain)
    if known not in _KNOWN:
        raise UsageError("a todo's status is unknown", hint=f"one of: {', '.join(sorted(_KNOWN))}")
    return Todo(text=" ".join(argument_parsing.clean(text).split()), status=known, named=named, more=tuple(_more(rest)))


def _more(given_with: Mapping[object, object]) -> Iterator[tuple[str, str | int | float | bool | None]]:
    """Yield further fields of a todo, such as ``activeForm`` or ``updated_at``: a limited number of short, plain values."""
    for name, value in list(given_with.items())[:_MOST_FIELDS]:
        if (
            isinstance(name, str)
            and name != "status"
            and _FIELD.fullmatch(name)
            and (value is None or isinstance(value, str | int | float | bool))
        ):
            yield (
                name,
                argument_parsing.clean(beginning(value, 2 * _LONGEST_TODO))[:_LONGEST_TODO] if isinstance(value, str) else value,
            )


def state_json(state: State) -> Json:
    moved = {"transferred_from": state.transferred_from, "transferred_at": _state_moment(state.transferred_at)}
    return {
        **state_brief(state),
        "todos": [{todo.named: todo.text, "status": todo.status, **dict(todo.more)} for todo in state.todos],
        "working_notes": state.working_notes,
        "context_summary": state.context_summary,
        **(moved if state.transferred_from else {}),
    }


def state_brief(state: State) -> Json:
    return {
        "ai_id": state.ai,
        "session_id": state.session,
        "project": state.project,
        "saved_at": state.saved.isoformat(),
        "open_todos": sum(todo.status in ("pending", "in_progress", "blocked") for todo in state.todos),
        "todo_count": len(state.todos),
    }


def _state_moment(at: datetime | None) -> str:
    return at.isoformat() if at else ""


_HEARD_SESSIONS, _HEARD_EVENTS = 3, 300


def working(timeline: Timeline, project: str, session: str, *, projects: Collection[str] | None = None) -> list[State]:
    """Return states seen in transcripts of one session, or of a project's last sessions, latest first.

    With ``projects``, no event of a session of another project is read.
    """
    return [
        State(
            ai=each.session.provider,
            session=each.session.id,
            project=each.session.project,
            todos=tuple(Todo(text=item.text, status=item.status) for item in each.listed.items),
            working_notes="",
            context_summary="",
            saved=each.listed.at,
        )
        for each in left(timeline, project=project, session=session, projects=projects)
    ]


def latest_projects(timeline: Timeline) -> Sequence[str]:
    """Return the projects of the last sessions, as far as transcripts have been read."""
    try:
        return timeline.sessions.latest_projects(_HEARD_SESSIONS)
    except sqlite3.Error:
        return ()


def heard(timeline: Timeline, project: str) -> Sequence[Event]:
    """Return the events of a project's last sessions, each in order, as far as transcripts have been read."""
    try:
        sessions = timeline.sessions.latest(project, _HEARD_SESSIONS)
        return [event for each in sessions for event in timeline.events.last(each.provider, each.id, _HEARD_EVENTS)]
    except sqlite3.Error:
        return ()


VERSION = 2

_VERSION_1 = (
    """
    CREATE TABLE memories (
        id TEXT PRIMARY KEY,
        created_by TEXT NOT NULL DEFAULT '',
        accessed TEXT NOT NULL DEFAULT '',
        reads INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE states (
        ai TEXT NOT NULL,
        session TEXT NOT NULL,
        project TEXT NOT NULL,
        todos TEXT NOT NULL,
        working_notes TEXT NOT NULL,
        context_summary TEXT NOT NULL,
        saved TEXT NOT NULL,
        transferred_from TEXT NOT NULL,
        transferred_at TEXT NOT NULL,
        PRIMARY KEY (ai, session, project)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX states_by_time ON states (saved)",
)
_VERSION_2 = ("ALTER TABLE memories ADD COLUMN context TEXT NOT NULL DEFAULT ''",)
MIGRATIONS = {1: _VERSION_1, 2: _VERSION_2}

_AT_ONCE = 500
_TOGETHER = 64
"""Reads counted in one transaction, or those of a few seconds; a crash loses at most this many counts."""
_SECONDS = 5.0
_STATES_KEPT = 5_000
"""States kept per project, so that a writer to one project displaces nothing of another. The newest are kept, whatever their age,
so that a clock that was far ahead for a while costs nothing.
"""
_COLUMNS = "ai, session, project, todos, working_notes, context_summary, saved, transferred_from, transferred_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    created_by: str = ""
    accessed: datetime | None = None
    count: int = 0
    context: Mapping[str, JsonValue] = field(default_factory=dict)


class LocalState:
    """Store of read counts and states. Thread-safe; other processes may have it open too.

    A damaged file is renamed and a new one is created. Opening raises `StateNewer`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._read: dict[str, tuple[int, datetime]] = {}
        self._flushed = monotonic()
        try:
            self._database = self._opened()
        except StateDamaged:  # not a reason to refuse the vault: the file is kept under another name, so that it can be repaired
            for suffix in ("", "-wal", "-shm"):
                damaged = path.with_name(path.name + suffix)
                if damaged.exists():
                    damaged.replace(path.with_name(f"{path.name}.damaged{suffix}"))
            self._database = self._opened()

    def _opened(self) -> sqlite3.Connection:
        try:
            make_private_folder(self._path.parent)
            self._path.touch(mode=0o600)
        except OSError as error:
            hint = f"see who owns it, and whether its disk is full: ls -la {self._path.parent}"
            raise StateNotWritten(f"{self._path} may not be opened or written: {error}", hint=hint) from error
        with self._failing_as_ours():
            return sqlite.open_store(self._path, MIGRATIONS, named=str(self._path))

    def close(self) -> None:
        with self._lock:
            try:
                self._flush()
            except KiteError:
                pass  # only some read counts are lost; a full or missing disk is reported elsewhere
            self._database.close()

    def purge(self) -> bool:
        """Rewrite the database file as `sqlite.rewrite` does."""
        with self._lock, self._failing_as_ours():
            return sqlite.rewrite(self._database)

    def wrote(self, id: str, context: Mapping[str, JsonValue], *, made_by: str | None = None) -> None:
        """Store what was given beside the memory's value when it was written. ``made_by`` has created it, possibly again."""
        encoded = json.dumps(context) if context else ""
        with self._lock, self._failing_as_ours():
            if made_by is not None:
                self._read.pop(id, None)
                with self._changing() as database:
                    database.execute(
                        "INSERT OR REPLACE INTO memories (id, created_by, context) VALUES (?, ?, ?)", (id, made_by, encoded)
                    )
                return
            row = self._database.execute("SELECT context FROM memories WHERE id = ?", (id,)).fetchone()
            if (row[0] if row else "") == encoded:
                return
            with self._changing() as database:
                database.execute(
                    "INSERT INTO memories (id, context) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET context = excluded.context",
                    (id, encoded),
                )

    def forgot(self, id: str) -> None:
        with self._lock:
            self._read.pop(id, None)
            with self._changing() as database:
                database.execute("DELETE FROM memories WHERE id = ?", (id,))

    def touch(self, ids: Collection[str], at: datetime) -> None:
        """Count a read of each memory. Counts are written to disk in batches."""
        with self._lock:
            for id in ids:
                self._read[id] = (self._read.get(id, (0, at))[0] + 1, at)
            if len(self._read) >= _TOGETHER or monotonic() - self._flushed >= _SECONDS:
                try:
                    self._flush()
                except KiteError:
                    self._read.clear()  # reading works without writing, and counts must not pile up

    def reads(self, ids: Sequence[str]) -> dict[str, Reads]:
        """Return the read counts, including those not yet written to disk."""
        found: dict[str, Reads] = {}
        with self._lock, self._failing_as_ours():
            rows: dict[str, tuple[str, str, int, str]] = {}
            for start in range(0, len(ids), _AT_ONCE):
                some = ids[start : start + _AT_ONCE]
                marks = ", ".join("?" * len(some))
                query = f"SELECT id, created_by, accessed, reads, context FROM memories WHERE id IN ({marks})"  # noqa: S608 - marks alone
                part = self._database.execute(query, some)
                rows |= {id: tuple(rest) for id, *rest in part}
            for id in ids:
                by, accessed, count, context = rows.get(id, ("", "", 0, ""))
                more, at = self._read.get(id, (0, None))
                found[id] = Reads(
                    created_by=by,
                    accessed=at or _moment(accessed),
                    count=count + more,
                    context=json.loads(context) if context else {},
                )
        return found

    def _flush(self) -> None:
        with self._lock:
            rows = [(id, at.isoformat(), count) for id, (count, at) in self._read.items()]
            if rows:
                with self._changing() as database:
                    database.executemany(
                        "INSERT INTO memories (id, accessed, reads) VALUES (?, ?, ?)"
                        " ON CONFLICT (id) DO UPDATE SET accessed = excluded.accessed, reads = reads + excluded.reads",
                        rows,
                    )
            self._read.clear()
            self._flushed = monotonic()

    def save(self, state: State, *, only: Collection[str] | None = None) -> State:
        """Replace the state of the same AI, session and project, or only the fields ``only``, and return the result."""
        with self._changing() as database:
            if only is not None:
                before = database.execute(
                    f"SELECT {_COLUMNS} FROM states WHERE ai = ? AND session = ? AND project = ?",  # noqa: S608 - ours
                    (state.ai, state.session, state.project),
                ).fetchone()
                state = _state(before).amended(state, only) if before else state
            database.execute(
                f"INSERT OR REPLACE INTO states ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - ours
                (
                    state.ai,
                    state.session,
                    state.project,
                    json.dumps([todo.packed() for todo in state.todos]),
                    state.working_notes,
                    state.context_summary,
                    state.saved.astimezone(UTC).isoformat(),
                    state.transferred_from,
                    state.transferred_at.astimezone(UTC).isoformat() if state.transferred_at else "",
                ),
            )
            database.execute(
                "DELETE FROM states WHERE project = ?"
                " AND saved < (SELECT saved FROM states WHERE project = ? ORDER BY saved DESC LIMIT 1 OFFSET ?)",
                (state.project, state.project, _STATES_KEPT - 1),
            )
            return state

    def states(self, *, ai: str, session: str, project: str) -> Iterator[State]:
        """Yield matching states, newest first. Empty arguments do not filter."""
        with self._lock, self._failing_as_ours():
            rows = self._database.execute(
                f"SELECT {_COLUMNS} FROM states WHERE (? IN ('', ai)) AND (? IN ('', session)) AND (? IN ('', project))"  # noqa: S608 - ours
                " ORDER BY saved DESC, ai, session, project",
                (ai, session, project),
            ).fetchall()
        return map(_state, rows)

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._failing_as_ours(), sqlite.transaction(self._database) as database:
            yield database

    @contextmanager
    def _failing_as_ours(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StateNotWritten(
                f"{self._path} cannot be used: {error}", hint="nothing was changed; try again in a moment"
            ) from error
        except sqlite3.DatabaseError as error:
            raise StateDamaged(
                f"{self._path} is damaged: {error}", hint="`kmem down`, then `kmem up`: it is set aside, and created again"
            ) from error


def _state(row: Sequence[Any]) -> State:
    ai, session, project, todos, notes, summary, saved, transferred_from, transferred_at = row
    return State(
        ai=ai,
        session=session,
        project=project,
        todos=tuple(map(Todo.unpacked, json.loads(todos))),
        working_notes=notes,
        context_summary=summary,
        saved=datetime.fromisoformat(saved),
        transferred_from=transferred_from,
        transferred_at=_moment(transferred_at),
    )


def _moment(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
