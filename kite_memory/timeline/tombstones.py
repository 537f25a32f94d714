"""Events on which a forgotten note rested: they are no longer offered, and the words of some are erased.

A forgotten event keeps its place in its session, so that the order of events stays true. A row in ``let_go`` marks it by its id, so
reading the transcript again, or with a later version, does not restore it.
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import orjson

from kite_memory.model.event import Event, Session
from kite_memory.model.provenance import Passage
from kite_memory.system import sqlite
from kite_memory.timeline import cards
from kite_memory.timeline.schema import file_of, not_written

Rows = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs a query with its values and returns all rows."""


class LineRef(Protocol):
    """What names a line of a transcript: any of its events does."""

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


def line_of(event: str) -> str:
    """Return the id that all events of one transcript line share: ``<line>``, ``<line>:1``, ``<line>:2``."""
    line, colon, number = event.rpartition(":")
    return line if colon and number.isdecimal() else event


def forget_events(database: sqlite3.Connection, events: Iterable[LineRef], *, blank: bool) -> None:
    """Mark events as forgotten, with all others read from the same lines.

    With ``blank``, also erase their words and what derives from them.
    """
    for line, event in {line_of(event.id): event for event in events}.items():
        there = database.execute(_LINE, (line, line, line)).fetchall()
        database.executemany(
            _GONE, [(name, event.provider, event.session, blank) for name in {line, *(name for _, name, _ in there)}]
        )
        for seq, _, session in there if blank else ():
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
    database.execute("DELETE FROM cards WHERE session = ? AND ? IN (prompt, answer)", (session, event))
    cards.wait(database, session)
    database.execute("UPDATE events SET text = ?, command = '', path = '' WHERE seq = ?", (BLANK, event))
    database.execute("UPDATE sessions SET title = '' WHERE key = ?", (session,))
    database.execute(
        "UPDATE bundles SET vector = NULL, embedded = '' WHERE event IN (SELECT seq FROM events WHERE session = ?)", (session,)
    )
    database.execute("UPDATE space SET version = version + 1")


@contextmanager
def purging(database: sqlite3.Connection) -> Iterator[None]:
    """On exit, remove deleted words from the card postings, the word index and the write-ahead log."""
    try:
        yield
        cards.sweep(database)
        database.execute("INSERT INTO told (told) VALUES ('optimize')")
        sqlite.purge(database)
    except sqlite3.OperationalError as error:
        raise not_written(error, file_of(database)) from error


def without_forgotten(database: sqlite3.Connection, session: Session, events: Sequence[Event]) -> tuple[Session, Sequence[Event]]:
    """Return newly read events with erased ones blanked again, and their session without a title if any was erased."""
    blank = {name for (name,) in database.execute("SELECT event FROM let_go WHERE blank")}
    if not blank:
        return session, events
    named = "SELECT 1 FROM let_go WHERE blank AND provider = ? AND session = ?"
    if database.execute(named, (session.provider, session.id)).fetchone():
        session = replace(session, title="")
    return session, [replace(event, text=BLANK, command="", path="") if line_of(event.id) in blank else event for event in events]


def without_forgotten_passages(passages: Sequence[Passage], events: Sequence[Event]) -> Sequence[Passage]:
    """Return the passages without those of erased lines."""
    gone = {event.where.start for event in events if event.text == BLANK}
    return [passage for passage in passages if passage.start not in gone] if gone else passages


def offered(rows: Rows, events: Sequence[Event]) -> list[Event]:
    gone = {name for (name,) in rows("SELECT event FROM let_go", ())} if events else set()
    return [event for event in events if not gone or gone.isdisjoint((event.id, line_of(event.id)))]


def write_down(path: Path, events: Iterable[LineRef], *, blank: bool) -> None:
    """Append the forgotten lines to a file beside the timeline before it changes, so that a rebuilt timeline knows them."""
    lines = {line_of(event.id): (line_of(event.id), event.provider, event.session, int(blank)) for event in events}
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(handle, "ab") as file:
        file.write(
            b"\n" + b"".join(orjson.dumps(each) + b"\n" for each in lines.values())
        )  # the leading newline ends a line that was cut short
        file.flush()
        os.fsync(file.fileno())


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


def out_of_step(rows: Rows, path: Path) -> list[str]:
    """Return how timeline and file disagree. If either were lost, a forgotten event could come back."""
    lines = {line_of(event) for (event,) in rows("SELECT event FROM let_go", ())}
    written = {line_of(event) for event, *_ in written_down(path)}
    differences = []
    if unwritten := len(lines - written):
        differences.append(f"{unwritten} events that were let go are not in {path.name}")
    if ungone := len(written - lines):
        differences.append(f"{ungone} events in {path.name} were not let go")
    return differences
