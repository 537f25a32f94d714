"""OpenCode's sessions: its databases, and the JSON files of earlier versions."""

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from kite_memory.model.event import Cursor, Event, Problem, ReadResult
from kite_memory.sources.common import foreign_sqlite
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
from kite_memory.sources.common.jsonl import AppendOnlyFile, Unreadable
from kite_memory.sources.common.line_source import failed_read
from kite_memory.sources.opencode.parts import (
    PROVIDER,
    Message,
    MessagePart,
    OpenCodeConversation,
    build_events,
    conversation,
    of_version_2,
    said_at,
)
from kite_memory.system.private_files import names_in, stamp_of

_VERSION = 1
_RECENT = 2_000
_MARGIN = 60_000
"""Milliseconds between the time in a row and its commit, for rows that an earlier snapshot may have missed."""

_SESSIONS = 1_000_000
_AT_ONCE = 64
_PARTS = 500_000
_VERSION_1 = {
    "session": frozenset({"id"}),
    "message": frozenset({"id", "session_id", "data"}),
    "part": frozenset({"id", "message_id", "data"}),
}
_VERSION_2 = {"session_v2": frozenset({"id"}), "session_message": frozenset({"id", "session_id", "type", "seq", "data"})}
"""OpenCode 2 has tables of its own in the same database, and copies into them what those of version 1 hold."""

_SESSIONS_2 = 1 << 40
"""Added to the rows of version 2's sessions, which are numbered after those of version 1."""

_ITEMS = 1 << 10
"""Parts of a message of version 2 that are read, at most."""
_ABOUT_A_SESSION = ("id", "directory", "title", "parent_id", "time_created")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """Last rows that were read, and the time (ms) up to which rewritten rows were read too."""

    message: int = 0
    part: int = 0
    at: int = 0
    message_2: int = 0

    def numbers(self) -> list[int]:
        return [self.message, self.part, self.at, *([self.message_2] if self.message_2 else [])]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sweep:
    """State of a pass over the changed sessions.

    During a pass, ``goal`` is the mark at its end, ``after`` the row of the last session that was read completely, and ``said`` the
    last message that was read of the next one.
    """

    mark: _Mark
    goal: _Mark | None = None
    after: int = 0
    said: str = ""

    def to_carry(self) -> str:
        goal = self.goal.numbers() if self.goal else None
        return orjson.dumps(
            {"v": _VERSION, "mark": self.mark.numbers(), "goal": goal, "after": self.after, "said": self.said}
        ).decode()

    @staticmethod
    def from_carry(cursor: Cursor | None) -> "_Sweep":
        """Parse what `to_carry` returned; start from the beginning if another version wrote it."""
        try:
            known: dict[str, Any] = orjson.loads(cursor.carry) if cursor else {"v": 0}
            if known["v"] != _VERSION:
                return _Sweep(mark=_Mark())
            goal = known["goal"]
            return _Sweep(mark=_mark(known["mark"]), goal=_mark(goal) if goal else None, after=known["after"], said=known["said"])
        except (ValueError, KeyError, TypeError, IndexError):
            return _Sweep(mark=_Mark())


@dataclass(frozen=True, slots=True, kw_only=True)
class _MessagePlace:
    """Position of one message.

    ``before`` counts the earlier parts of its session; ``parts`` are the rows of its own, each with the time (ms) it was written.
    ``kind`` is the type of a message of version 2, which has its parts in its own row.
    """

    name: str
    row: int
    before: int
    parts: Sequence[tuple[int, int]]
    kind: str = ""


def _mark(known: Sequence[int]) -> _Mark:
    return _Mark(message=known[0], part=known[1], at=known[2], message_2=known[3] if len(known) > 3 else 0)


def read_database(
    path: Path, cursor: Cursor | None, *, root: Path, budget: int, now: float, provider: str = PROVIDER
) -> ReadResult:
    """Read the next changes in a database. Raises `Unreadable`."""
    with opened(path, within=root) as database:
        sweep = _Sweep.from_carry(cursor)
        if cursor and cursor.carry == sweep.to_carry() and (cursor.size, cursor.mtime_ns) == (database.size, database.mtime_ns):
            return ReadResult(path=str(path), session=None, events=(), problems=(), cursor=cursor, amends=True)
        return _Looking(path, database, sweep, cursor.position if cursor else 0, now, provider).read_next(budget)


class _Looking:
    def __init__(self, path: Path, database: ForeignDatabase, sweep: _Sweep, position: int, now: float, provider: str) -> None:
        self._now = now
        self._provider = provider
        self._file = str(path)
        self._database = database
        self._columns = {table: database.columns(table) for table in (*_VERSION_1, *_VERSION_2)}
        self._first, self._second = (
            all(needed <= self._columns[table] for table, needed in version.items()) for version in (_VERSION_1, _VERSION_2)
        )
        if not self._first and not self._second:
            raise Unreadable(UNKNOWN_SCHEMA)
        self._position = position
        self._problems: list[Problem] = []
        self._read = 0
        goal = sweep.goal or self._goal(sweep.mark)
        mark = sweep.mark
        if goal.message < mark.message or goal.part < mark.part or goal.message_2 < mark.message_2:
            sweep = replace(sweep, mark=_Mark())  # rows were deleted, so new ones may reuse their numbers
        self._sweep, self._goal_now = replace(sweep, goal=goal), goal

    def read_next(self, budget: int) -> ReadResult:
        """Return the next changed session, or as much of it as the budget allows."""
        sessions = self._touched()
        for row in sessions:
            try:
                part = self._session(row, budget)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self._problem(row, reason_of(error))
                part = None
            if part is None:
                continue
            conversation, events, said = part
            more = bool(said) or next(sessions, 0) > 0
            sweep = replace(self._sweep, after=self._sweep.after if said else row, said=said)
            return ReadResult(
                path=self._file,
                session=conversation.session,
                events=tuple(events),
                problems=tuple(self._problems),
                cursor=self._cursor(sweep, more=more),
                more=more,
                amends=True,
            )
        cursor = self._cursor(self._sweep, more=False)
        return ReadResult(path=self._file, session=None, events=(), problems=tuple(self._problems), cursor=cursor, amends=True)

    def _cursor(self, sweep: _Sweep, *, more: bool) -> Cursor:
        database = self._database
        if more:
            position = min(self._position + self._read, database.size)
            return Cursor(position=position, size=0, mtime_ns=0, carry=sweep.to_carry())
        ended = _Sweep(mark=self._goal_now)
        return Cursor(position=database.size, size=database.size, mtime_ns=database.mtime_ns, carry=ended.to_carry())

    def _goal(self, mark: _Mark) -> _Mark:
        """Return the mark at the end of this pass.

        Never later than now: a row with a time in the future would hide everything written until then.
        """
        written = [*(("message", "part") if self._first else ()), *(("session_message",) if self._second else ())]
        rows = {table: whole(self._database.value(select("MAX(rowid)", table))) for table in written}
        latest = [mark.at + _MARGIN if mark.at else 0]
        for table, row in rows.items():
            query = select(f"MAX({self._known(table, 'time_updated')})", table, "WHERE rowid > ?")
            latest.append(whole(self._database.value(query, (row - _RECENT,))))
        at = min(max(latest), int(self._now * 1000))
        return _Mark(
            message=rows.get("message", 0),
            part=rows.get("part", 0),
            at=max(1, at - _MARGIN) if max(latest) > 0 else 0,
            message_2=rows.get("session_message", 0),
        )

    def _known(self, table: str, column: str) -> str:
        """Return the column's name, or ``NULL`` if this version does not have it."""
        return column if column in self._columns[table] else "NULL"

    def _touched(self) -> Iterator[int]:
        """Yield the rows of sessions that may have changes left in this pass, oldest first."""
        if self._sweep.mark != _Mark():
            yield from self._changed_sessions()
            return
        for table, base in self._session_tables():
            after = max(0, self._sweep.after - base)
            alone = " AND id NOT IN (SELECT id FROM session)" if base and self._first else ""
            query = select("rowid", table, f"WHERE rowid > ?{alone} ORDER BY rowid")
            while rows := self._database.rows(query, (after,), limit=_AT_ONCE):
                yield from (base + row for (row,) in rows)
                ((after,),) = rows[-1:]

    def _session_tables(self) -> list[tuple[str, int]]:
        """Return the tables of sessions, each with what is added to its rows."""
        return [*([("session", 0)] if self._first else []), *([("session_v2", _SESSIONS_2)] if self._second else [])]

    def _changed_sessions(self) -> list[int]:
        database, mark = self._database, self._sweep.mark
        names: set[str] = set()
        for table, _ in self._session_tables():
            query = select("id", table, f"WHERE {self._known(table, 'time_updated')} > ?")
            names.update(name for (name,) in database.rows(query, (mark.at,), limit=_SESSIONS))
        seen_rows = {"message": mark.message, "part": mark.part} if self._first else {}
        seen_rows |= {"session_message": mark.message_2} if self._second else {}
        for table, seen in seen_rows.items():
            by_message = "(SELECT session_id FROM message WHERE message.id = message_id)"
            session = "session_id" if "session_id" in self._columns[table] else by_message
            anew = f"(rowid > :seen OR {self._known(table, 'time_updated')} > :at)"
            query = select(f"DISTINCT {session}", table, f"WHERE rowid > :low AND {anew}")
            values = {"low": seen - _RECENT, "seen": seen, "at": mark.at}
            names.update(name for (name,) in database.rows(query, values, limit=_SESSIONS))
        return sorted(row for row in map(self._row, names) if row > self._sweep.after)

    def _row(self, name: str) -> int:
        for table, base in self._session_tables():
            if row := whole(self._database.value(select("rowid", table, "WHERE id = ?"), (name,))):
                return base + row
        return 0

    def _about(self, row: int) -> dict[str, Any]:
        """Return what is known of a session. Version 2 changes its own copy of an earlier one."""
        info: dict[str, Any] = {}
        for table, base in self._session_tables():
            by, value = ("id", info.get("id")) if info else ("rowid", row - base)
            known = [name for name in _ABOUT_A_SESSION if name in self._columns[table]]
            found = self._database.rows(select(known, table, f"WHERE {by} = ?"), (value,), limit=1)
            info |= dict(zip(known, found[0], strict=True)) if found else {}
        return info

    def _session(self, row: int, budget: int) -> tuple[OpenCodeConversation, list[Any], str] | None:
        """Return the changes of one session, and the last message read if not all were; ``None`` without changes."""
        info = self._about(row)
        changed, last = self._changed(str(info.get("id", "")))
        names = [place.name for place in changed]
        if self._sweep.said in names:
            changed = changed[names.index(self._sweep.said) + 1 :]
        messages: list[Message] = []
        said, size = "", 0
        for place in changed:
            if message := self._message(place):
                messages.append(message)
            size, self._read = size + self._read, 0
            if size >= budget and place is not changed[-1]:
                said = place.name
                break
        self._read = size
        if not messages:
            return None
        built = conversation(info, [message.info for message in messages], provider=self._provider)
        if built is None:
            self._problem(row, "session without a name")
            return None
        builder = build_events(built, messages, file=self._file, last=last, now=self._now)
        self._problems.extend(builder.problems)
        return (built, builder.events, said) if builder.events or said else None

    def _changed(self, session: str) -> tuple[list[_MessagePlace], str]:
        """Return the changed messages in order, and the name of the session's last message."""
        changed, last, before = self._changed_first(session) if self._first else ([], "", 0)
        if not self._second:
            return changed, last
        database, mark = self._database, self._sweep.mark
        made, written = (self._known("session_message", column) for column in ("time_created", "time_updated"))
        rest = "WHERE session_id = :session ORDER BY seq"
        if self._first:  # what was copied from version 1 is read there
            newest = select(f"COALESCE(MAX({self._known('message', 'time_created')}), 0)", "message", "WHERE session_id = :session")
            rest = f"WHERE session_id = :session AND {made} > ({newest}) ORDER BY seq"
        query = select(("id", "rowid", "type", "seq", written), "session_message", rest)
        for name, row, kind, seq, at in database.rows(query, {"session": session}, limit=_PARTS):
            last = str(name)
            if row > mark.message_2 or whole(at) > mark.at > 0:
                place = before + whole(seq) * _ITEMS
                changed.append(_MessagePlace(name=last, row=row, before=place, parts=((row, whole(at)),), kind=str(kind)))
        return changed, last

    def _changed_first(self, session: str) -> tuple[list[_MessagePlace], str, int]:
        """Return the changed messages of version 1, the name of the last one, and how many parts the session has."""
        database, mark = self._database, self._sweep.mark
        created, written = (self._known("message", column) for column in ("time_created", "time_updated"))
        query = select(("id", "rowid", written), "message", f"WHERE session_id = ? ORDER BY {created}, id")
        listed = database.rows(query, (session,), limit=_PARTS)
        anew = {name for name, row, at in listed if row > mark.message or whole(at) > mark.at > 0}
        parts: dict[str, list[tuple[int, int]]] = {name: [] for name, _, _ in listed}
        about = ("message_id", "rowid", self._known("part", "time_updated"))
        if "session_id" in self._columns["part"]:
            found = database.rows(select(about, "part", "WHERE session_id = ? ORDER BY message_id, id"), (session,), limit=_PARTS)
        else:
            query = select(about, "part", "WHERE message_id = ? ORDER BY id")
            found = [row for name in parts for row in database.rows(query, (name,), limit=_PARTS)]
        for name, row, at in found:
            if name in parts:
                parts[name].append((row, whole(at)))
                if row > mark.part or whole(at) > mark.at > 0:
                    anew.add(name)
        changed: list[_MessagePlace] = []
        before = 0
        for name, row, _ in listed:
            if name in anew and parts[name]:
                changed.append(_MessagePlace(name=str(name), row=row, before=before, parts=parts[name]))
            before += len(parts[name])
        return changed, str(listed[-1][0]) if listed else "", before

    def _message(self, place: _MessagePlace) -> Message | None:
        row = place.row
        if place.kind:
            return self._message_2(place)
        info = self._object("message", row)
        if info is None:
            return None
        if not said_at(info):
            query = select(self._known("message", "time_created"), "message", "WHERE rowid = ?")
            info["time"] = {"created": self._database.value(query, (row,))}
        parts: list[MessagePart] = []
        for part, at in place.parts:
            content = self._object("part", part)
            if content is not None:
                parts.append(MessagePart(row=part, content=content, changed=at / 1000))
        return Message(name=place.name, info=info, parts=parts, place=place.before)

    def _message_2(self, place: _MessagePlace) -> Message | None:
        data = self._object("session_message", place.row)
        if data is None:
            return None
        info, contents = of_version_2(place.kind, data)
        ((_, at),) = place.parts
        parts = [MessagePart(row=place.row, content=content, changed=at / 1000) for content in contents[:_ITEMS]]
        return Message(name=place.name, info=info, parts=parts, place=place.before) if parts else None

    def _object(self, table: str, row: int) -> dict[str, Any] | None:
        try:
            data = self._database.value(select("data", table, "WHERE rowid = ?"), (row,))
        except TooLong:
            self._problem(row, "value too long")
            return None
        self._read += len(data) if isinstance(data, str | bytes) else 0
        found = object_in(data)
        if isinstance(found, str):
            self._problem(row, found)
            return None
        return found

    def _problem(self, row: int, reason: str) -> None:
        self._problems.append(Problem(file=self._file, position=row, reason=reason))


_FILE_LIMIT = 16 * 1024 * 1024
_FILES = 20_000


def stamp_of_files(session: Path) -> tuple[int, int]:
    """Return a size and the latest time of a session's files. May raise `OSError`.

    The size includes the number of messages and the length of the last one, since times alone may be wrong after a change of the
    clock.
    """
    storage = session.parent.parent.parent
    folder = _messages_of(session)
    messages = _json_files(folder)
    places = [folder, folder / messages[-1]] if messages else []
    if messages:
        parts = storage / "part" / messages[-1].removesuffix(".json")
        places += [parts, *[parts / name for name in _json_files(parts)[-3:]]]
    size, mtime_ns = stamp_of(session, *places)
    return size + len(messages), mtime_ns


def read_files(session: Path, cursor: Cursor | None, *, root: Path, now: float, provider: str = PROVIDER) -> ReadResult:
    """Read a whole session again if anything of it changed. Raises `Unreadable`, and `OSError` if it is gone."""
    info = _read(session, root)
    size, mtime_ns = stamp_of_files(session)
    if cursor and (cursor.size, cursor.mtime_ns) == (size, mtime_ns):
        return ReadResult(path=str(session), session=None, events=(), problems=(), cursor=cursor, amends=True)
    problems: list[Problem] = []
    found: list[tuple[float, str, dict[str, Any], list[MessagePart]]] = []
    storage = root / "storage"
    for path, content in _objects(_messages_of(session), root, problems):
        name = content.get("id")
        name = name if isinstance(name, str) and os.sep not in name and name not in (".", "..") else path.stem
        parts = [
            MessagePart(row=row, content=part, changed=_stamp(where)[1] / 1e9)
            for row, (where, part) in enumerate(_objects(storage / "part" / name, root, problems))
        ]
        found.append((said_at(content), name, content, parts))
    if isinstance(info, str):
        problems.append(Problem(file=str(session), position=0, reason=info))
        info = {}
    messages: list[Message] = []
    before = 0
    for _, name, content, parts in sorted(found, key=lambda each: each[:2]):
        messages.append(Message(name=name, info=content, parts=parts, place=before))
        before += len(parts)
    built = conversation(info, [message.info for message in messages], provider=provider)
    events: list[Event] = []
    if built is not None:
        builder = build_events(built, messages, file=str(session), last=messages[-1].name if messages else "", now=now)
        events, problems = builder.events, [*problems, *builder.problems]
    return ReadResult(
        path=str(session),
        session=built.session if built else None,
        events=tuple(events),
        problems=tuple(problems),
        cursor=Cursor(position=size, size=size, mtime_ns=mtime_ns),
        amends=True,
    )


def _messages_of(session: Path) -> Path:
    """Return the folder of a session's messages, named like its file, except for some files that repeat ``ses_``."""
    messages = session.parent.parent.parent / "message"
    folder = messages / session.stem
    return folder if folder.is_dir() else messages / session.stem.removeprefix("ses_")


def _objects(folder: Path, root: Path, problems: list[Problem]) -> Iterable[tuple[Path, dict[str, Any]]]:
    for name in _json_files(folder)[:_FILES]:
        path = folder / name
        try:
            content = _read(path, root)
        except (Unreadable, OSError):
            content = "file cannot be read"
        if isinstance(content, str):
            problems.append(Problem(file=str(folder), position=0, reason=content))
        else:
            yield path, content


def _read(path: Path, root: Path) -> dict[str, Any] | str:
    with AppendOnlyFile(path, within=root) as file:
        return object_in(file.between(0, file.size)) if file.size <= _FILE_LIMIT else "file too long"


def _json_files(folder: Path) -> list[str]:
    """Return the JSON files in a folder, sorted by name and so by time of creation."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.name.endswith(".json") and entry.name.isascii())
    except OSError:
        return []


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


_SESSION_FILE = re.compile(r"ses_[\w-]{1,128}\.json")
_PROJECT_FOLDER = re.compile(r"[\w.-]{1,128}")


class OpenCode:
    """Source that reads ``root``, which is ``${XDG_DATA_HOME:-~/.local/share}/opencode`` on every system.

    ``opencode.db``, and one database per other channel, hold many sessions each. The files below ``storage`` are read only if there
    is no database: a database is created from them, and they stay.
    """

    provider = PROVIDER
    _databases = re.compile(r"opencode(?:-[\w.-]{1,64})?\.db(?:-wal)?")

    def __init__(self, root: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._root = root
        self._sessions = root / "storage" / "session"
        self._clock = clock

    def roots(self) -> tuple[Path, ...]:
        return ()

    def flat_roots(self) -> tuple[Path, ...]:
        """Return the root without subfolders, which hold snapshots of repositories and a folder for every message."""
        return (self._root,)

    def transcripts(self) -> Iterator[Path]:
        databases = [path for path in _listed(self._root) if self.owns(path) and not path.name.endswith("-wal")]
        yield from databases
        if not databases:
            for project in _listed(self._sessions):
                yield from filter(self.owns, _listed(project))

    def owns(self, path: Path) -> bool:
        if path.parent == self._root:
            return bool(self._databases.fullmatch(path.name))
        folder = path.parent
        return bool(
            folder.parent == self._sessions and _PROJECT_FOLDER.fullmatch(folder.name) and _SESSION_FILE.fullmatch(path.name)
        )

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        return sorted({foreign_sqlite.database_of(path) for path in paths})

    def stamp(self, path: Path) -> tuple[int, int]:
        return stamp_of_files(path) if path.suffix == ".json" else foreign_sqlite.stamp(path)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        try:
            if path.suffix == ".json":
                return read_files(path, cursor, root=self._root, now=self._clock(), provider=self.provider)
            return read_database(path, cursor, root=self._root, budget=budget, now=self._clock(), provider=self.provider)
        except Unreadable as error:
            return failed_read(path, cursor, str(error))
        except OSError:
            return failed_read(path, cursor, "file cannot be read")


class Kilo(OpenCode):
    """Source that reads Kilo Code's command line, version 1 on, and its extension, version 7 on: a fork of OpenCode.

    Its database is ``kilo.db`` in ``${XDG_DATA_HOME:-~/.local/share}/kilo``, with the tables of OpenCode, as the public repository
    Kilo-Org/kilocode has it in ``packages/opencode/src/storage/db.ts``. Earlier versions of the extension forked Roo Code.
    """

    provider = "kilo-code"
    _databases = re.compile(r"kilo(?:-[\w.-]{1,64})?\.db(?:-wal)?")


def _listed(folder: Path) -> Iterator[Path]:
    return (folder / name for name in names_in(folder))
