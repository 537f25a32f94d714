"""Writing read results into the timeline's tables, and forgetting of events on which a forgotten note rested.

A forgotten event keeps its place in its session and is no longer offered; the words of some are erased.
"""

import hashlib
import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Protocol

import orjson

from kite_memory.model.event import Event, Passage, ReadResult, Session, line_of
from kite_memory.system import sqlite
from kite_memory.system.private_files import sync_file
from kite_memory.text import lazy_regex
from kite_memory.timeline import cards, passages
from kite_memory.timeline.fixes import sign
from kite_memory.timeline.rows import LATEST_MTIME
from kite_memory.timeline.schema import TimelineDatabase


class LineRef(Protocol):
    """Names a transcript line by any of its events."""

    @property
    def id(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def session(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenLine:
    """A line of a transcript, which may not have been read on this machine."""

    id: str
    provider: str
    session: str


BLANK = "(forgotten)"
"""Replaces the text of an erased event."""

_LINE = "SELECT seq, id, session FROM events WHERE id = ? OR id >= ? || ':' AND id < ? || ';'"
_GONE = "INSERT INTO let_go VALUES (?, ?, ?, ?) ON CONFLICT (event) DO UPDATE SET blank = MAX(blank, excluded.blank)"


def forget_events(database: sqlite3.Connection, events: Iterable[LineRef], *, blank: bool) -> None:
    """Mark events as forgotten, with all others read from the same lines.

    With ``blank``, also erase their words and what derives from them.
    """
    for line, event in {line_of(event.id): event for event in events}.items():
        there = database.execute(_LINE, (line, line, line)).fetchall()
        database.executemany(
            _GONE, [(name, event.provider, event.session, blank) for name in {line, *(name for _, name, _ in there)}]
        )
        for seq, _, session in there:
            cards.queue_card_rebuild(database, session)
            if blank:
                _blank(database, seq, session)


def _blank(database: sqlite3.Connection, event: int, session: int) -> None:
    """Erase the words of an event and everything that may hold them.

    Triggers update the word index. The vectors and the title of its session may hold its words too, so they are dropped.
    """
    signatures = database.execute("SELECT signature FROM raised WHERE event = ?", (event,)).fetchall()
    database.execute("DELETE FROM raised WHERE event = ?", (event,))
    for (signature,) in signatures:
        database.execute("DELETE FROM signatures WHERE key = ? AND key NOT IN (SELECT signature FROM raised)", (signature,))
    database.execute("DELETE FROM passages WHERE (session, start) IN (SELECT session, start FROM events WHERE seq = ?)", (event,))
    database.execute("DELETE FROM cards WHERE session = ?", (session,))  # any of them may be found by its words
    _blank_carries(database, event, session)
    database.execute("UPDATE events SET text = ?, command = '', path = '' WHERE seq = ?", (BLANK, event))
    database.execute("UPDATE sessions SET title = '' WHERE key = ?", (session,))
    database.execute(
        "UPDATE bundles SET vector = NULL, embedded = '' WHERE event IN (SELECT seq FROM events WHERE session = ?)", (session,)
    )
    database.execute("UPDATE space SET version = version + 1")


def _blank_carries(database: sqlite3.Connection, event: int, session: int) -> None:
    """Erase the words of an event from what the readers of its session's files carry on: title, open calls, running commands."""
    (id, *words) = database.execute("SELECT id, text, command, path FROM events WHERE seq = ?", (event,)).fetchone()
    (title, *kept) = database.execute("SELECT title, id, cwd, branch, parent FROM sessions WHERE key = ?", (session,)).fetchone()
    files = "SELECT key, carry FROM files WHERE carry <> '' AND key IN (SELECT file FROM events WHERE session = ?)"
    for file, carry in database.execute(files, (session,)).fetchall():
        left = carry_without(carry, lines={line_of(id)}, words=words, title=title, kept=kept)
        if left != carry:
            database.execute("UPDATE files SET carry = ? WHERE key = ?", (left, file))


def carry_without(carry: str, *, lines: Collection[str], words: Iterable[str], title: str, kept: Iterable[str]) -> str:
    """Return a cursor's ``carry`` without a session's title and the erased words.

    Its form is its source's own, so each string in it is compared with the words: one that is ``kept`` beside them stays. An open
    call, ``[name, event, tool, detail, …]``, loses its detail if its event is of one of the erased ``lines``.
    """
    said = [each for each in words if len(each) >= _LEAST and each != BLANK]
    safe = frozenset(kept)

    def erased(text: str) -> bool:
        if len(text) < _LEAST or text in safe:
            return False
        whole = text.removesuffix("…")
        return (
            text == title
            or any(whole in each if _PLAIN.search(whole) else whole == each for each in said)
            or any(each in whole for each in said)
        )

    def cleaned(value: object, name: str = "") -> object:
        match value:
            case str():
                return "" if (name == "title" or erased(value)) and not _TIME.match(value) else value
            case [str(call), str(event), str(tool), str(), *more] if line_of(event) in lines:
                return [call, event, tool, "", *more]
            case list():
                return [cleaned(each, name) for each in value]
            case dict():
                return {key: cleaned(each, key) for key, each in value.items()}
            case _:
                return value

    try:
        known = orjson.loads(carry)
    except orjson.JSONDecodeError:
        return "" if erased(carry) else carry
    left = cleaned(known)
    return carry if left == known else orjson.dumps(left).decode()


_LEAST = 4
"""Shorter strings are names and flags."""
_PLAIN = lazy_regex(r"[^\w-]")
_TIME = lazy_regex(r"\d{4}-\d\d-\d\dT")


def without_forgotten(database: sqlite3.Connection, session: Session, events: Sequence[Event]) -> tuple[Session, Sequence[Event]]:
    """Return newly read events with erased ones blanked again, and their session without a title if any was erased."""
    blank = {name for (name,) in database.execute("SELECT event FROM let_go WHERE blank")}
    if not blank:
        return session, events
    if _erased_lines(database, session):
        session = replace(session, title="")
    return session, [replace(event, text=BLANK, command="", path="") if line_of(event.id) in blank else event for event in events]


def _erased_lines(database: sqlite3.Connection, session: Session) -> set[str]:
    named = "SELECT event FROM let_go WHERE blank AND provider = ? AND session = ?"
    return {line_of(name) for (name,) in database.execute(named, (session.provider, session.id))}


def without_forgotten_passages(passages: Sequence[Passage], events: Sequence[Event]) -> Sequence[Passage]:
    """Return the passages without those of erased lines."""
    gone = {event.where.start for event in events if event.text == BLANK}
    return [passage for passage in passages if passage.start not in gone] if gone else passages


def append_forgotten(path: Path, events: Iterable[LineRef], *, blank: bool) -> None:
    """Append the forgotten lines to a file beside the timeline before it changes, so that a rebuilt timeline knows them."""
    lines = {line_of(event.id): (line_of(event.id), event.provider, event.session, int(blank)) for event in events}
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(handle, "ab") as file:
        file.write(
            b"\n" + b"".join(orjson.dumps(each) + b"\n" for each in lines.values())
        )  # the leading newline ends a line that was cut short
        file.flush()
        sync_file(file.fileno())


def reload_forgotten(database: sqlite3.Connection, path: Path) -> None:
    """Load the forgotten events from the file, if the timeline has none."""
    if not database.execute("SELECT 1 FROM let_go LIMIT 1").fetchone():
        database.executemany(_GONE, written_down(path))


def written_down(path: Path) -> list[tuple[str, str, str, int]]:
    """Return the rows of the file. Incomplete lines, left by a crash, are skipped."""
    found: list[tuple[str, str, str, int]] = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            match orjson.loads(line):
                case [str(event), str(provider), str(session), 0 | 1 as blank]:
                    found.append((event, provider, session, int(blank)))
                case _:
                    pass
        except orjson.JSONDecodeError:
            continue
    return found


_EVENT = (
    *("id", "session", "ordinal", "at", "role", "type", "text", "tool", "command"),
    *("path", "status", "parent", "call", "file", "start", "end"),
)
_AMENDABLE = ("at", "role", "type", "text", "tool", "command", "path", "status", "parent", "call", "file", "start", "end")
_AMENDS = (
    f" ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _AMENDABLE)}"
    f" WHERE session = excluded.session AND ({', '.join(_AMENDABLE)})"
    f" IS NOT ({', '.join(f'excluded.{name}' for name in _AMENDABLE)})"
)
"""An amended event keeps its place in the order and the session in which it was first seen."""
_AT_ONCE = 256


def save_read_result(database: sqlite3.Connection, read_result: ReadResult, provider: str, now: float) -> int:
    """Write one read result inside the caller's transaction, and return the number of new events."""
    cursor = read_result.cursor
    # If the read stopped at its budget, the file has more: after a crash it must not count as read to its end.
    mtime = 0 if read_result.more else min(cursor.mtime_ns, LATEST_MTIME)
    (file,) = database.execute(
        "INSERT INTO files (path, provider, position, size, mtime_ns, identity, carry) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (path) DO UPDATE SET position = excluded.position, size = excluded.size,"
        " mtime_ns = excluded.mtime_ns, identity = excluded.identity, carry = excluded.carry RETURNING key",
        (read_result.path, provider, cursor.position, cursor.size, mtime, cursor.identity, cursor.carry),
    ).fetchone()
    for problem in read_result.problems:
        database.execute(
            "INSERT INTO problems VALUES (?, ?, 1, ?) ON CONFLICT (file, reason) DO UPDATE SET count = count + 1",
            (file, problem.reason, problem.position),
        )
    if read_result.session is None:
        return 0
    read = read_result.events if read_result.amends else _distinct(database, file, read_result.events)
    session, events_kept = without_forgotten(database, read_result.session, read)
    if session is not read_result.session:
        erased = [was for was, event in zip(read, events_kept, strict=True) if event is not was]
        carry = carry_without(
            cursor.carry,
            lines=_erased_lines(database, session),
            words=chain.from_iterable((event.text, event.command, event.path) for event in erased),
            title=read_result.session.title,
            kept=(session.id, session.cwd, session.branch, session.parent),
        )
        database.execute("UPDATE files SET carry = ? WHERE key = ?", (carry, file))
    key = _session_key(database, session, now)
    passages.save(database, key, without_forgotten_passages(read_result.passages, events_kept), now=now)
    events = _in_line(database, key, events_kept)
    (newest,) = database.execute("SELECT MAX(seq) FROM events").fetchone()
    changed = _write(database, [_row(event, key, file) for event in events], amends=read_result.amends)
    if not changed:
        return 0
    sign(database, events, amended=read_result.amends)
    cards.queue_card_rebuild(database, key)
    added = changed
    if read_result.amends:
        (added,) = database.execute("SELECT COUNT(*) FROM events WHERE seq > ?", (newest or 0,)).fetchone()
    database.execute(
        "UPDATE sessions SET last_ordinal = MAX(last_ordinal, ?), last_at = MAX(last_at, ?), committed_at = ?,"
        " branch = IIF(? = '', branch, ?) WHERE key = ?",
        (
            max(event.ordinal for event in events),
            _text_of(max(event.at for event in events)),
            now,
            session.branch,
            session.branch,
            key,
        ),
    )
    database.execute(
        "INSERT INTO totals VALUES (?, ?) ON CONFLICT (provider) DO UPDATE SET events = events + excluded.events",
        (session.provider, added),
    )
    return int(added)


def _session_key(database: sqlite3.Connection, session: Session, now: float) -> int:
    """Insert or update the session and return its key.

    Project and start stay as first known; title, a missing cwd and a missing parent are filled in by later reads. The branch is
    updated only with new events, so a copy of the session's beginning that is read later does not set it back.
    """
    started = _text_of(session.started)
    (key,) = database.execute(
        "INSERT INTO sessions (provider, id, project, cwd, branch, started, parent, title, last_at, committed_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (provider, id) DO UPDATE SET"
        " project = IIF(project = '', excluded.project, project), cwd = IIF(cwd = '', excluded.cwd, cwd),"
        " parent = IIF(parent = '', excluded.parent, parent),"
        " title = IIF(excluded.title = '', title, excluded.title) RETURNING key",
        (
            session.provider,
            session.id,
            session.project,
            session.cwd,
            session.branch,
            started,
            session.parent,
            session.title,
            started,
            now,
        ),
    ).fetchone()
    return int(key)


def _in_line(database: sqlite3.Connection, session: int, events: Sequence[Event]) -> Sequence[Event]:
    """Return the events with ordinals that continue from those the session already has.

    A rewritten transcript, or a second file of the same session, counts from the beginning again; but a reader that follows a
    session by ordinals must find new events after old ones.
    """
    (last,) = database.execute("SELECT last_ordinal FROM sessions WHERE key = ?", (session,)).fetchone()
    behind = [event for event in events if event.ordinal <= last]
    if not behind:
        return events
    new = [event for event in behind if not database.execute("SELECT 1 FROM events WHERE id = ?", (event.id,)).fetchone()]
    if not new:
        return events
    shift = last + 1 - min(event.ordinal for event in new)
    return [replace(event, ordinal=event.ordinal + shift) for event in events]


def _write(database: sqlite3.Connection, rows: Sequence[tuple[object, ...]], *, amends: bool) -> int:
    """Write the rows and return how many are new or changed, not counting rows written by triggers.

    Many rows to a statement cost two thirds of what they cost one by one. Statements come in few sizes, since SQLite keeps each of
    them prepared.
    """
    changed = at = 0
    while left := len(rows) - at:
        count = min(_AT_ONCE, 1 << (left.bit_length() - 1))
        changed += database.execute(_statement(count, amends), list(chain.from_iterable(rows[at : at + count]))).rowcount
        at += count
    return changed


@cache
def _statement(rows: int, amends: bool) -> str:
    row = f"({', '.join('?' * len(_EVENT))})"
    return (
        f"INSERT{'' if amends else ' OR IGNORE'} INTO events ({', '.join(_EVENT)}) VALUES {', '.join([row] * rows)}"
        f"{_AMENDS if amends else ''}"
    )


def _text_of(at: datetime) -> str:
    """Return the time in a fixed width and in UTC, so that text order is time order."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds")


def _row(event: Event, session: int, file: int) -> tuple[object, ...]:
    return (
        event.id,
        session,
        event.ordinal,
        _text_of(event.at),
        event.role,
        event.type.value,
        event.text,
        event.tool,
        event.command,
        event.path,
        event.status,
        event.parent,
        event.call,
        file,
        event.where.start,
        event.where.end,
    )


def _distinct(database: sqlite3.Connection, file: int, events: Sequence[Event]) -> Sequence[Event]:
    """Return the events, with new ids for those of a line whose id an earlier line of the file uses for a different content.

    Some clients write an id twice, mostly for the same line again, which changes nothing. If a file was rewritten and is read from
    its beginning, its former lines do not count as earlier lines.
    """
    begins = min((event.where.start for event in events), default=0)
    rows = database.execute(
        "SELECT e.id, e.start, e.type, e.role, e.text, e.command FROM json_each(?) AS wanted"
        " JOIN events AS e ON e.id = wanted.value WHERE e.file = ? AND e.start < ?",
        (json.dumps([event.id for event in events]), file, begins),
    )
    known = {id: (start, said) for id, start, *said in rows}
    others: dict[tuple[str, int], list[str]] = {}
    for event in events:
        start, said = event.where.start, [event.type.value, event.role, event.text, event.command]
        first, first_said = known.setdefault(event.id, (start, said))
        line = line_of(event.id)
        # A line's first event distinguishes lines; its further events may depend on a call that only one read knew. An erased line
        # may have been this one.
        distinct = event.id == line and first != start and first_said != said and first_said[2] != BLANK
        if (line, start) in others or distinct:
            others.setdefault((line, start), []).extend(said)
    if not others:
        return events
    names = {
        line: hashlib.blake2b("\0".join((line[0], *said)).encode(), digest_size=16).hexdigest() for line, said in others.items()
    }

    def renamed(event: Event) -> Event:
        line = line_of(event.id)
        name = names.get((line, event.where.start))
        return event if name is None else replace(event, id=name + event.id.removeprefix(line))

    return [renamed(event) for event in events]


class ForgottenEvents:
    """The events that are no longer offered. They are recorded in a file beside the timeline, too."""

    def __init__(self, database: TimelineDatabase, path: Path) -> None:
        self._database = database
        self._gone = path.with_suffix(".let-go")
        reload_forgotten(database.writer, self._gone)

    def add(self, events: Sequence[LineRef], *, blank: bool = False) -> None:
        """Mark events as forgotten, as `forget_events` does.

        With ``blank``, their words are also erased from the file, which takes seconds for a large one.
        """
        append_forgotten(self._gone, events, blank=blank)
        if not blank:
            with self._database.writing() as database:
                forget_events(database, events, blank=False)
            return
        with self._database.locked() as connection:
            with self._database.writing() as database:
                forget_events(database, events, blank=True)
            cards.sweep(connection)
            connection.execute("INSERT INTO told (told) VALUES ('optimize')")
            sqlite.purge(connection)

    def lines(self) -> list[tuple[ForgottenLine, bool]]:
        """Return the forgotten lines, each with whether its words are erased."""
        found: dict[str, tuple[ForgottenLine, bool]] = {}
        for id, provider, session, blank in written_down(self._gone):
            erased = bool(blank) or (id in found and found[id][1])
            found[id] = (ForgottenLine(id=id, provider=provider, session=session), erased)
        return list(found.values())

    def purge(self) -> bool:
        """Do what `sqlite.purge` does on the write connection. Raises `StateNotWritten`."""
        with self._database.locked() as connection:
            return sqlite.purge(connection)

    def mismatches(self) -> list[str]:
        """Return how timeline and file disagree. If either were lost, a forgotten event could come back."""
        lines = {line_of(event) for (event,) in self._database.all("SELECT event FROM let_go")}
        written = {line_of(event) for event, *_ in written_down(self._gone)}
        differences = []
        if unwritten := len(lines - written):
            differences.append(f"{unwritten} events that were let go are not in {self._gone.name}")
        if ungone := len(written - lines):
            differences.append(f"{ungone} events in {self._gone.name} were not let go")
        return differences
