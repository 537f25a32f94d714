"""The timeline's tables, and how earlier ones become these."""

import sqlite3
from pathlib import Path

from kite_memory.errors import StateDamaged, StateNewer

VERSION = 1

_VERSION_1 = (
    """
    CREATE TABLE sessions (
        key INTEGER PRIMARY KEY,
        provider TEXT NOT NULL,
        id TEXT NOT NULL,
        project TEXT NOT NULL,
        cwd TEXT NOT NULL,
        branch TEXT NOT NULL,
        started TEXT NOT NULL,
        parent TEXT NOT NULL,
        title TEXT NOT NULL,
        last_ordinal INTEGER NOT NULL DEFAULT -1,
        last_at TEXT NOT NULL,
        committed_at REAL NOT NULL,
        UNIQUE (provider, id)
    )
    """,
    """
    CREATE TABLE files (
        key INTEGER PRIMARY KEY,
        path TEXT NOT NULL UNIQUE,
        provider TEXT NOT NULL,
        position INTEGER NOT NULL,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        identity TEXT NOT NULL,
        carry TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        session INTEGER NOT NULL REFERENCES sessions (key),
        ordinal INTEGER NOT NULL,
        at TEXT NOT NULL,
        role TEXT NOT NULL,
        type TEXT NOT NULL,
        text TEXT NOT NULL,
        tool TEXT NOT NULL,
        command TEXT NOT NULL,
        path TEXT NOT NULL,
        status TEXT NOT NULL,
        parent TEXT NOT NULL,
        call TEXT NOT NULL,
        file INTEGER NOT NULL REFERENCES files (key),
        start INTEGER NOT NULL,
        end INTEGER NOT NULL
    )
    """,
    "CREATE INDEX events_in_session ON events (session, ordinal)",
    """
    CREATE TABLE problems (
        file INTEGER NOT NULL REFERENCES files (key),
        reason TEXT NOT NULL,
        count INTEGER NOT NULL,
        first_position INTEGER NOT NULL,
        PRIMARY KEY (file, reason)
    ) WITHOUT ROWID
    """,
    """
    CREATE VIEW edges (kind, session, source, target) AS
        SELECT 'next', session, id, following FROM (
            SELECT session, id, LEAD(id) OVER (PARTITION BY session ORDER BY ordinal, seq) AS following FROM events
        ) WHERE following IS NOT NULL
        UNION ALL
        SELECT 'calls', call.session, message.id, call.id
            FROM events AS call JOIN events AS message ON message.id = call.parent
            WHERE call.type = 'tool_call' AND message.type = 'assistant_message'
        UNION ALL
        SELECT 'returns', result.session, call.id, result.id
            FROM events AS result JOIN events AS call ON call.id = result.parent
            WHERE result.type = 'tool_result' AND call.type = 'tool_call'
    """,
)
"""Edges are a view: they follow from order and parents alone, so there is no second copy of the truth to keep in step."""

_MIGRATIONS = {1: _VERSION_1}


def connect(path: Path) -> sqlite3.Connection:
    """Open the store, made or brought up to `VERSION` first. Raises `StateNewer` and `StateDamaged`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        path.touch(mode=0o600)
    connection = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA mmap_size = 0")
        _migrate(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise StateDamaged(
            f"the timeline at {path} cannot be read: {error}",
            hint="run `kmem rebuild --timeline`: it is made anew from the transcripts",
        ) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found == VERSION:
        return
    if found > VERSION:
        raise StateNewer(
            f"the timeline at {path} was written by a newer kite-memory (schema {found}, this one knows {VERSION})",
            hint="upgrade kite-memory",
        )
    connection.execute("BEGIN IMMEDIATE")
    try:
        (found,) = connection.execute("PRAGMA user_version").fetchone()  # another process may have been faster
        for version in range(found + 1, VERSION + 1):
            for statement in _MIGRATIONS[version]:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
