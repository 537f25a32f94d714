"""Events that a forgotten note rested on: nobody is offered them any more, and the words of some are gone for good.

An event let go keeps its place in its session, so that the order of what happened stays true. A row says that it was let go, by its
id: a transcript that is read again, or by a later version, brings nothing back.
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from kite_memory.model.event import Event, Session
from kite_memory.model.provenance import Passage
from kite_memory.system import sqlite
from kite_memory.timeline import cards
from kite_memory.timeline.schema import file_of, not_written

Rows = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""What reads: a query and its values to all of its rows."""

BLANK = "(forgotten)"
"""What is left of the words of an event."""

_LINE = "SELECT seq, id, session FROM events WHERE id = ? OR id >= ? || ':' AND id < ? || ';'"
_GONE = "INSERT INTO let_go VALUES (?, ?, ?, ?) ON CONFLICT (event) DO UPDATE SET blank = MAX(blank, excluded.blank)"


def line_of(event: str) -> str:
    """The id that events of one line of a transcript share: ``<line>``, ``<line>:1``, ``<line>:2``."""
    line, colon, number = event.rpartition(":")
    return line if colon and number.isdecimal() else event


def let_go(database: sqlite3.Connection, events: Iterable[Event], *, blank: bool) -> None:
    """With everything that was read from the same lines. With ``blank`` also what was made of their words goes."""
    for line, event in {line_of(event.id): event for event in events}.items():
        there = database.execute(_LINE, (line, line, line)).fetchall()
        database.executemany(
            _GONE, [(name, event.provider, event.session, blank) for name in {line, *(name for _, name, _ in there)}]
        )
        for seq, _, session in there if blank else ():
            _blank(database, seq, session)


def _blank(database: sqlite3.Connection, event: int, session: int) -> None:
    """Out of the word index by its triggers. What stands around it may have its words too: the session's vectors, and its title."""
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
def leaving_nothing(database: sqlite3.Connection) -> Iterator[None]:
    """At its end the word index and the log hold nothing of what was deleted meanwhile."""
    try:
        yield
        cards.sweep(database)
        database.execute("INSERT INTO told (told) VALUES ('optimize')")
        sqlite.purge(database)
    except sqlite3.OperationalError as error:
        raise not_written(error, file_of(database)) from error


def kept_back(database: sqlite3.Connection, session: Session, events: Sequence[Event]) -> tuple[Session, Sequence[Event]]:
    """At the door: what was made blank comes in blank, and its session without a title."""
    blank = {name for (name,) in database.execute("SELECT event FROM let_go WHERE blank")}
    if not blank:
        return session, events
    named = "SELECT 1 FROM let_go WHERE blank AND provider = ? AND session = ?"
    if database.execute(named, (session.provider, session.id)).fetchone():
        session = replace(session, title="")
    return session, [replace(event, text=BLANK, command="", path="") if line_of(event.id) in blank else event for event in events]


def still_heard(passages: Sequence[Passage], events: Sequence[Event]) -> Sequence[Passage]:
    """Without those of lines whose words are gone."""
    gone = {event.where.start for event in events if event.text == BLANK}
    return [passage for passage in passages if passage.start not in gone] if gone else passages


def offered(rows: Rows, events: Sequence[Event]) -> list[Event]:
    gone = {name for (name,) in rows("SELECT event FROM let_go", ())} if events else set()
    return [event for event in events if not gone or gone.isdisjoint((event.id, line_of(event.id)))]


def write_down(path: Path, events: Iterable[Event], *, blank: bool) -> None:
    """Beside the timeline, before it is changed: one that is made anew, for whatever reason, knows it from there."""
    lines = {line_of(event.id): (line_of(event.id), event.provider, event.session, int(blank)) for event in events}
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(handle, "ab") as file:
        file.write(b"\n" + b"".join(orjson.dumps(each) + b"\n" for each in lines.values()))  # a line cut short is left behind
        file.flush()
        os.fsync(file.fileno())


def let_go_again(database: sqlite3.Connection, path: Path) -> None:
    """Into a timeline that has let nothing go, what is written down."""
    if not database.execute("SELECT 1 FROM let_go LIMIT 1").fetchone():
        database.executemany(_GONE, written_down(path))


def written_down(path: Path) -> list[tuple[str, str, str, int]]:
    """Half a line, after a crash, is none."""
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
    """What timeline and file say differently: whichever of them were lost, something forgotten could come back."""
    lines = {line_of(event) for (event,) in rows("SELECT event FROM let_go", ())}
    written = {line_of(event) for event, *_ in written_down(path)}
    told = []
    if unwritten := len(lines - written):
        told.append(f"{unwritten} events that were let go are not in {path.name}")
    if ungone := len(written - lines):
        told.append(f"{ungone} events in {path.name} were not let go")
    return told
