"""Goose's sessions: the database ``sessions/sessions.db`` in its data folder.

That is ``$GOOSE_PATH_ROOT/data``, or ``goose`` in the system's folder for programs' data. The tables are created in the public
repository block/goose, ``crates/goose/src/session/session_manager.rs``, and the content of a message is defined in
``crates/goose/src/conversation/message.rs``. Read there up to version 9 of the schema; not checked against a running Goose.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from kite_memory.model.event import Cursor, ReadResult, Session, Status
from kite_memory.projects import project_of
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common import foreign_sqlite
from kite_memory.sources.common.event_builder import EventBuilder, OpenCalls, Toolbox, title_of
from kite_memory.sources.common.foreign_sqlite import (
    UNKNOWN_SCHEMA,
    ForeignDatabase,
    TooLong,
    is_damage,
    object_in,
    opened,
    reason_of,
    select,
    whole,
)
from kite_memory.sources.common.jsonl import Unreadable
from kite_memory.sources.common.line_source import failed_read
from kite_memory.sources.common.tool_text import PATH_LIMIT, as_id, blocks_of, digest, moment, safe, short
from kite_memory.sources.common.words import OWN_EXTRACTOR_MARK, is_inside
from kite_memory.system.private_files import is_file

PROVIDER = "goose"

_EDITOR = "developer__text_editor"
"""One tool that reads and writes, by its argument ``command``. Newer versions have one tool for each."""

TOOLS = Toolbox(
    shells=frozenset({"developer__shell", "shell"}),
    readers=frozenset({f"{_EDITOR}.view", "developer__read", "read"}),
    lookers=frozenset({f"{_EDITOR}.view", "developer__read", "read", "developer__tree", "tree"}),
    writers={
        f"{_EDITOR}.write": "written",
        f"{_EDITOR}.str_replace": "edited",
        f"{_EDITOR}.insert": "edited",
        "developer__write": "written",
        "write": "written",
        "developer__edit": "edited",
        "edit": "edited",
    },
    paths=("path", "file_path"),
)

_VERSION = 1
_NEEDED = {
    "sessions": frozenset({"id", "working_dir"}),
    "messages": frozenset({"id", "session_id", "role", "content_json", "created_timestamp"}),
}
_ABOUT_A_SESSION = ("id", "working_dir", "name", "description", "session_type", "created_at", "parent_session_id")
_PERSONS = ("", "user", "terminal", "acp", "gateway")
"""Types of sessions in which a person writes. Others are of sub-agents, of timers, and of Goose itself."""

_SKIPPED = frozenset(
    {
        "thinking",
        "redactedThinking",
        "image",
        "document",
        "systemNotification",
        "toolConfirmationRequest",
        "actionRequired",
        "frontendToolRequest",
        "conversationCompacted",
        "summarizationRequested",
        "contextLengthExceeded",
        "error",
    }
)
_REFUSED = ("The user has declined", "User declined", "The user denied")
_STOPPED = ("Interrupted by the user", "Tool call was cancelled")
_CALLS = 16
_DETAIL = 300
_AT_ONCE = 500
_MILLISECONDS = 100_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """The last row that was read, and the calls that had no result by then."""

    row: int = 0
    calls: OpenCalls = field(default_factory=OpenCalls)

    def to_carry(self) -> str:
        calls = [[name, event, tool, beginning(detail, _DETAIL)] for name, event, tool, detail in self.calls.to_carry()[-_CALLS:]]
        return orjson.dumps({"v": _VERSION, "row": self.row, "calls": calls}).decode()

    @staticmethod
    def from_carry(cursor: Cursor | None) -> "_Mark":
        """Parse what `to_carry` returned; start from the beginning if another version wrote it."""
        try:
            known: dict[str, Any] = orjson.loads(cursor.carry) if cursor else {"v": 0}
            if known["v"] != _VERSION:
                return _Mark()
            return _Mark(row=known["row"], calls=OpenCalls.from_carry(known["calls"]))
        except (ValueError, KeyError, TypeError):
            return _Mark()


class Goose:
    """Source that reads ``sessions.db`` in each of ``folders``.

    Rows of messages are never changed, and their numbers are never used again. When a conversation is compacted or edited, all of
    its messages are written anew under new numbers: the id of an event is made of what stays the same.
    """

    provider = PROVIDER

    def __init__(self, folders: Iterable[Path], *, own_state: Path) -> None:
        self._folders = tuple(folders)
        self._own_folders = (own_state, own_state.resolve())

    def roots(self) -> tuple[Path, ...]:
        return ()

    def flat_roots(self) -> tuple[Path, ...]:
        return self._folders

    def transcripts(self) -> Iterator[Path]:
        yield from (path for folder in self._folders if is_file(path := folder / "sessions.db"))

    def owns(self, path: Path) -> bool:
        return path.parent in self._folders and path.name in ("sessions.db", "sessions.db-wal")

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        return sorted({foreign_sqlite.database_of(path) for path in paths})

    def stamp(self, path: Path) -> tuple[int, int]:
        return foreign_sqlite.stamp(path)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        try:
            with opened(path, within=path.parent) as database:
                return _MessageReader(path, database, cursor, self._own_folders).next_run(budget)
        except Unreadable as error:
            return failed_read(path, cursor, str(error))


class _MessageReader:
    """Reads the next messages, as far as they are of one session."""

    def __init__(self, path: Path, database: ForeignDatabase, cursor: Cursor | None, own_folders: Iterable[Path]) -> None:
        self._file = str(path)
        self._database = database
        self._columns = {table: database.columns(table) for table in _NEEDED}
        if any(not needed <= self._columns[table] for table, needed in _NEEDED.items()):
            raise Unreadable(UNKNOWN_SCHEMA)
        self._own_folders = own_folders
        self._about: dict[str, Any] = {}
        self._position = cursor.position if cursor else 0
        self._mark = _Mark.from_carry(cursor)
        self._last = whole(database.value(select("MAX(id)", "messages")))
        if self._last < self._mark.row:
            self._mark = _Mark()  # another database

    def next_run(self, budget: int) -> ReadResult:
        rows = self._database.rows(
            select(("id", "session_id"), "messages", "WHERE id > ? ORDER BY id"), (self._mark.row,), limit=_AT_ONCE
        )
        name = rows[0][1] if rows else ""
        session = self._session(name) if rows else None
        kind = self._about.get("session_type") if rows else ""
        calls = self._mark.calls
        builder = EventBuilder(provider=PROVIDER, session=session.id if session else "", file=self._file, tools=TOOLS, calls=calls)
        wanted = session is not None and not is_inside(session.cwd, self._own_folders) and not self._is_our_extractors(name)
        size, last = 0, self._mark.row
        for row, owner in rows:
            if owner != name or (size >= budget and last > self._mark.row):
                break
            last = whole(row)
            if wanted:
                size += self._message(builder, last, helper=kind not in (None, *_PERSONS))
            elif session is None:
                builder.problem(last, "message without a session")
        more = last < self._last and bool(rows)
        return ReadResult(
            path=self._file,
            session=session if wanted else None,
            events=tuple(builder.events),
            problems=tuple(builder.problems),
            cursor=self._cursor(_Mark(row=last, calls=calls), size, more=more),
            more=more,
        )

    def _cursor(self, mark: _Mark, read: int, *, more: bool) -> Cursor:
        database = self._database
        if more:
            return Cursor(position=min(self._position + read, database.size), size=0, mtime_ns=0, carry=mark.to_carry())
        return Cursor(position=database.size, size=database.size, mtime_ns=database.mtime_ns, carry=mark.to_carry())

    def _session(self, name: object) -> Session | None:
        known = [column for column in _ABOUT_A_SESSION if column in self._columns["sessions"]]
        found = self._database.rows(select(known, "sessions", "WHERE id = ?"), (name,), limit=1)
        self._about = dict(zip(known, found[0], strict=True)) if found else {}
        named = short(self._about.get("id"))
        if not named:
            return None
        cwd = self._about["working_dir"]
        cwd = beginning(cwd, PATH_LIMIT) if isinstance(cwd, str) else ""
        parent = as_id(self._about.get("parent_session_id"))
        return Session(
            id=named,
            provider=PROVIDER,
            started=moment(self._about.get("created_at")) or datetime.fromtimestamp(0, UTC),
            project=project_of(cwd),
            cwd=cwd,
            title=title_of(self._about.get("name")) or title_of(self._about.get("description")),
            parent="" if parent == named else parent,
        )

    def _is_our_extractors(self, name: object) -> bool:
        query = select("content_json", "messages", "WHERE session_id = ? AND role = 'user' ORDER BY id LIMIT 1")
        try:
            first = self._database.value(query, (name,))
        except TooLong:
            return False
        return isinstance(first, str) and OWN_EXTRACTOR_MARK in first

    def _message(self, builder: EventBuilder, row: int, *, helper: bool) -> int:
        """Add the events of a message; return the size of its content."""
        optional = [column if column in self._columns["messages"] else "NULL" for column in ("message_id", "metadata_json")]
        columns = ("role", "created_timestamp", *optional)
        try:
            content = self._database.value(select("content_json", "messages", "WHERE id = ?"), (row,))
            ((role, created, name, metadata),) = self._database.rows(select(columns, "messages", "WHERE id = ?"), (row,), limit=1)
        except TooLong:
            builder.problem(row, foreign_sqlite.TOO_LONG)
            return 0
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            builder.problem(row, reason_of(error))
            return 0
        found = object_in(f'{{"content":{content}}}') if isinstance(content, str) else "no text"
        if isinstance(found, str) or not isinstance(found["content"], list):
            builder.problem(row, found if isinstance(found, str) else "not a list of parts")
            return 0
        seconds = whole(created)
        at = moment(seconds if seconds > _MILLISECONDS else seconds * 1000) or datetime.fromtimestamp(0, UTC)
        unique = f"{PROVIDER}\n{name}\n{seconds}\n{role}\n{content}"
        builder.record(digest(unique.encode("utf-8", "replace")), at, row, row)
        by_person = role == "user" and not helper and not _hidden(metadata)
        for part in blocks_of(found["content"]):
            _MessagePart(builder, row, part).add_events(by_person=by_person, hidden=_hidden(metadata))
        return len(content) if isinstance(content, str) else 0


def _hidden(metadata: object) -> bool:
    """Return whether a message is not shown to the person: Goose wrote it to the model, or dropped it."""
    if not isinstance(metadata, str) or not metadata:
        return False
    content = object_in(metadata)
    return isinstance(content, dict) and content.get("userVisible") is False


@dataclass(frozen=True, slots=True)
class _MessagePart:
    """One part of a message."""

    builder: EventBuilder
    row: int
    part: Mapping[str, Any]

    def add_events(self, *, by_person: bool, hidden: bool) -> None:
        builder = self.builder
        match self.part:
            case {"type": "text", "text": str(text)}:
                if by_person:
                    builder.said(text)
                elif hidden:
                    builder.resume_point(text)
                else:
                    builder.answered(text)
            case {"type": "toolRequest", "id": str(call), "toolCall": {"value": {"name": str(tool), **rest}}}:
                given = rest.get("arguments")
                self._call(call, tool, given if isinstance(given, dict) else {})
            case {"type": "toolResponse", "id": str(call), "toolResult": dict(result)}:
                text, status = _outcome(result)
                builder.returned(short(call), builder.calls.close(short(call)), text, status)
            case {"type": "toolRequest" | "toolResponse" | "text"}:
                pass
            case {"type": str(kind)} if kind in _SKIPPED:
                pass
            case _:
                builder.problem(self.row, f"unknown part {safe(self.part.get('type'))}")

    def _call(self, call: str, tool: str, given: Mapping[str, Any]) -> None:
        how = given.get("command")
        if tool == _EDITOR and isinstance(how, str):
            tool = f"{tool}.{safe(how)}"
        opened_call = self.builder.called(short(call), short(tool), given)
        if call:
            self.builder.calls.open(short(call), replace(opened_call, detail=beginning(opened_call.detail, PATH_LIMIT)))


def _outcome(result: Mapping[str, Any]) -> tuple[str, Status]:
    match result:
        case {"status": "error", **rest}:
            error = rest.get("error")
            text, failed = (error if isinstance(error, str) else ""), True
        case {"value": {"content": content, **rest}}:
            text, failed = _text(content), rest.get("isError") is True
        case {"value": content}:
            text, failed = _text(content), False
        case _:
            text, failed = "", False
    if text.startswith(_REFUSED):
        return text, "denied"
    if text.startswith(_STOPPED):
        return text, "interrupted"
    return text, "failed" if failed else "ok"


def _text(content: object) -> str:
    """Return the text of a result, without the copies that are meant for the person alone."""
    return "\n".join(block["text"] for block in blocks_of(content) if isinstance(block.get("text"), str) and not _for_person(block))


def _for_person(block: Mapping[str, Any]) -> bool:
    match block.get("annotations"):
        case {"audience": ["user"]}:
            return True
        case _:
            return False
