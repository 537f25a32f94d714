"""The timeline's tables and their migrations."""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kite_memory.system import sqlite

VERSION = 10

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
"""Edges are a view: they follow from order and parents alone, so there is no second copy to keep in step."""

_VERSION_2 = (
    "CREATE TABLE signatures (key INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
    """
    CREATE TABLE raised (
        signature INTEGER NOT NULL REFERENCES signatures (key),
        session INTEGER NOT NULL REFERENCES sessions (key),
        event INTEGER NOT NULL REFERENCES events (seq),
        PRIMARY KEY (signature, session, event)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX raised_by_event ON raised (event)",
    "CREATE INDEX sessions_of_project ON sessions (project, last_at)",
    "CREATE TABLE unsigned (below INTEGER NOT NULL)",
    "INSERT INTO unsigned SELECT seq + 1 FROM events ORDER BY seq DESC LIMIT 1",
)
"""Failures by their signature. Signatures of existing events are added in steps: ``unsigned.below`` is the row below which they are
still missing.
"""

_INDEXED = "seq >= COALESCE((SELECT below FROM unsearched), 0)"
_ENTER = "INSERT INTO told (rowid, words, marks) SELECT seq, words, marks FROM searchable"
_LEAVE = "INSERT INTO told (told, rowid, words, marks) SELECT 'delete', seq, words, marks FROM searchable"
_MOVED = "UPDATE OF project ON sessions WHEN old.project IS NOT new.project"
_ITS_EVENTS = "seq IN (SELECT seq FROM events WHERE session = old.key)"
_SHOWN = "session, at, type, text, tool, command, path"

_VERSION_3 = (
    """
    CREATE VIEW searchable (seq, words, marks) AS
        SELECT seq,
            text || IIF(command IN ('', text), '', ' ' || command) || IIF(path = '', '', ' ' || path),
            'xt' || REPLACE(type, '_', '') || 'x xs' || session || 'x xp' || HEX(project) || 'x xa' || HEX(provider)
            || 'x xm' || SUBSTR(at, 1, 4) || SUBSTR(at, 6, 2)
            || IIF(tool = '', 'x', 'x xc' || REPLACE(REPLACE(REPLACE(LOWER(tool), '__', 'x xc'), '_', ''), '-', '') || 'x')
            || IIF(path = '', '', ' xf' || HEX(LOWER(SUBSTR(slashed, 1 + LENGTH(RTRIM(slashed, named))))) || 'x')
        FROM (
            SELECT *, REPLACE(slashed, '/', '') AS named FROM (
                SELECT e.*, s.project, s.provider, REPLACE(SUBSTR(e.path, -500), '\\', '/') AS slashed
                FROM events AS e JOIN sessions AS s ON s.key = e.session
            )
        )
    """,
    """
    CREATE VIRTUAL TABLE told USING fts5 (
        words, marks, content = 'searchable', content_rowid = 'seq', tokenize = 'porter unicode61', detail = 'none', columnsize = 0
    )
    """,
    "CREATE TABLE unsearched (below INTEGER NOT NULL)",
    "INSERT INTO unsearched SELECT seq + 1 FROM events ORDER BY seq DESC LIMIT 1",
    f"CREATE TRIGGER event_told AFTER INSERT ON events BEGIN {_ENTER} WHERE seq = new.seq; END",
    f"CREATE TRIGGER event_amending BEFORE UPDATE OF {_SHOWN} ON events BEGIN {_LEAVE} WHERE seq = old.seq AND {_INDEXED}; END",
    f"CREATE TRIGGER event_amended AFTER UPDATE OF {_SHOWN} ON events BEGIN {_ENTER} WHERE seq = new.seq AND {_INDEXED}; END",
    f"CREATE TRIGGER event_leaving BEFORE DELETE ON events BEGIN {_LEAVE} WHERE seq = old.seq AND {_INDEXED}; END",
    f"CREATE TRIGGER session_moving BEFORE {_MOVED} BEGIN {_LEAVE} WHERE {_ITS_EVENTS} AND {_INDEXED}; END",
    f"CREATE TRIGGER session_moved AFTER {_MOVED} BEGIN {_ENTER} WHERE {_ITS_EVENTS} AND {_INDEXED}; END",
    "DROP VIEW edges",
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
        UNION ALL
        SELECT 'touches_file', done.session, COALESCE(call.id, result.id, done.id), done.path
            FROM events AS done
            LEFT JOIN events AS result ON result.id = done.parent AND result.type IN ('tool_result', 'tool_call')
            LEFT JOIN events AS call ON call.id = result.parent AND call.type = 'tool_call' AND result.type = 'tool_result'
            WHERE done.type = 'file_action' AND done.path <> ''
        UNION ALL
        SELECT 'runs_command', run.session, COALESCE(call.id, run.id), run.command
            FROM events AS run LEFT JOIN events AS call ON call.id = run.parent AND call.type = 'tool_call'
            WHERE run.type = 'command' AND run.command <> ''
        UNION ALL
        SELECT DISTINCT 'raises_error_signature', failure.session, COALESCE(result.id, failure.id), named.text
            FROM events AS failure JOIN raised ON raised.event = failure.seq
            JOIN signatures AS named ON named.key = raised.signature
            LEFT JOIN events AS result ON result.id = failure.parent AND result.type = 'tool_result'
        UNION ALL
        SELECT 'decides', e.session, s.id, e.id
            FROM events AS e JOIN sessions AS s ON s.key = e.session WHERE e.type = 'decision'
        UNION ALL
        SELECT 'resumes_at', e.session, s.id, e.id
            FROM events AS e JOIN sessions AS s ON s.key = e.session WHERE e.type = 'resume_point'
    """,
)
"""Full-text index ``told`` of the events' words, and of marks of where an event belongs.

Marks are made-up words by which the index alone can select events of a type, session, project, agent, month, tool or file. Neither
words nor marks are stored beside the index; the view `searchable` computes them. Existing events are indexed in steps:
``unsearched.below`` is the row below which they are still missing.

An edge's target is a file, command or signature by its own name; its source may be a session by its id.
"""

_BUNDLED_4 = (
    "SELECT seq FROM events WHERE (type IN ('decision', 'resume_point')"
    " OR status = 'failed' AND (type = 'test_result' OR type = 'error' AND path = ''))"
)
_WAIT_4 = f"INSERT INTO bundles (event) {_BUNDLED_4} AND seq = new.seq;"
_UNBUNDLED = "DELETE FROM bundles WHERE event = old.seq;"

_VERSION_4 = (
    """
    CREATE TABLE IF NOT EXISTS bundles (
        event INTEGER PRIMARY KEY REFERENCES events (seq),
        vector BLOB,
        embedded TEXT NOT NULL DEFAULT ''
    )
    """,
    "CREATE INDEX IF NOT EXISTS bundles_waiting ON bundles (event) WHERE vector IS NULL",
    "CREATE INDEX IF NOT EXISTS bundles_by_day ON bundles (embedded)",
    "DROP TABLE IF EXISTS space",
    "CREATE TABLE space (tag TEXT NOT NULL, version INTEGER NOT NULL)",
    f"CREATE TRIGGER IF NOT EXISTS bundle_waiting AFTER INSERT ON events BEGIN {_WAIT_4} END",
    f"CREATE TRIGGER IF NOT EXISTS bundle_changed AFTER UPDATE OF {_SHOWN}, status ON events BEGIN {_UNBUNDLED} {_WAIT_4} END",
    f"CREATE TRIGGER IF NOT EXISTS bundle_leaving BEFORE DELETE ON events BEGIN {_UNBUNDLED} END",
    "CREATE TABLE unbundled (below INTEGER NOT NULL)",
    "INSERT INTO unbundled SELECT seq + 1 FROM events ORDER BY seq DESC LIMIT 1",
)
"""Bundles by their events, each with a vector of one ``space`` or waiting for it.

Bundles of existing events are found in steps: ``unbundled.below`` is the row below which they are still missing. Early builds of
version 3 had these tables already, hence ``IF NOT EXISTS``.
"""

BUNDLED = _BUNDLED_4.replace("'decision', 'resume_point'", "'decision', 'resume_point', 'user_message'")
"""Events that get a vector of their own, see `timeline.conversations`. A tool that found no file to edit is not one."""
_WAIT = f"INSERT INTO bundles (event) {BUNDLED} AND seq = new.seq;"
_MAY_WAIT = "new.status = 'failed' OR new.type IN ('decision', 'resume_point', 'user_message')"
"""True for every `BUNDLED` event and false for most others; it keeps the trigger from running for each of them."""

_VERSION_5 = (
    "DROP TRIGGER bundle_waiting",
    "DROP TRIGGER bundle_changed",
    f"CREATE TRIGGER bundle_waiting AFTER INSERT ON events WHEN {_MAY_WAIT} BEGIN {_WAIT} END",
    f"CREATE TRIGGER bundle_changed AFTER UPDATE OF {_SHOWN}, status ON events BEGIN {_UNBUNDLED} {_WAIT} END",
    "DELETE FROM unbundled",
    "INSERT INTO unbundled SELECT seq + 1 FROM events ORDER BY seq DESC LIMIT 1",
    """
    CREATE TABLE let_go (
        event TEXT PRIMARY KEY,
        provider TEXT NOT NULL,
        session TEXT NOT NULL,
        blank INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX let_go_of_session ON let_go (provider, session)",
)
"""Prompts with what they led to become bundles. ``let_go`` lists forgotten events by id.

Forgotten events are no longer offered. The text of those that are ``blank`` is gone and is not restored when a transcript is read
again.
"""

_VERSION_6 = (
    "CREATE INDEX user_messages ON events (session, ordinal) WHERE type = 'user_message'",
    "CREATE INDEX sessions_by_time ON sessions (last_at)",
    "CREATE TABLE totals (provider TEXT PRIMARY KEY, events INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO totals SELECT provider, COUNT(*) FROM events AS e JOIN sessions AS s ON s.key = e.session GROUP BY provider",
)
"""An index to find user messages without reading the session, and event totals to avoid counting."""

_VERSION_7 = (
    """
    CREATE TABLE passages (
        key INTEGER PRIMARY KEY,
        digest INTEGER NOT NULL UNIQUE,
        session INTEGER NOT NULL REFERENCES sessions (key),
        start INTEGER NOT NULL,
        at REAL NOT NULL,
        said_by TEXT NOT NULL,
        read_at REAL NOT NULL,
        pairs BLOB NOT NULL
    )
    """,
    "CREATE INDEX passages_of_session ON passages (session, start)",
    "CREATE INDEX passages_by_age ON passages (read_at)",
    "CREATE TABLE passage_key (key BLOB NOT NULL)",
    "INSERT INTO passage_key VALUES (randomblob(16))",
)
"""Who said what first, as hashes of pairs of words under a key of this machine, see `timeline.passages`.

Text read before this version is not included.
"""

_TALLY = "UPDATE card_projects SET cards = cards {0} 1, words = words {0} {1}.length WHERE key = {1}.project;"

_VERSION_8 = (
    """
    CREATE TABLE cards (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        prompt INTEGER NOT NULL UNIQUE,
        answer INTEGER NOT NULL,
        session INTEGER NOT NULL,
        project INTEGER NOT NULL,
        length INTEGER NOT NULL,
        sum INTEGER NOT NULL
    )
    """,
    "CREATE INDEX cards_of_session ON cards (session)",
    """
    CREATE TABLE card_projects (
        key INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        cards INTEGER NOT NULL DEFAULT 0,
        words INTEGER NOT NULL DEFAULT 0,
        bar REAL,
        bar_of INTEGER NOT NULL DEFAULT 0
    )
    """,
    "CREATE TABLE card_words (key INTEGER PRIMARY KEY, postings BLOB NOT NULL)",
    f"CREATE TRIGGER card_made AFTER INSERT ON cards BEGIN {_TALLY.format('+', 'new')} END",
    f"CREATE TRIGGER card_leaving AFTER DELETE ON cards BEGIN {_TALLY.format('-', 'old')} END",
    "CREATE VIRTUAL TABLE told_words USING fts5vocab (told, row)",
    "CREATE TABLE card_waiting (session INTEGER PRIMARY KEY)",
    "INSERT INTO card_waiting SELECT key FROM sessions WHERE provider <> 'git'",
    "DELETE FROM unbundled",
    "INSERT INTO unbundled SELECT seq + 1 FROM events ORDER BY seq DESC LIMIT 1",
)
"""Cards, each by the rows of its prompt and answer, and their words as postings, see `timeline.cards`.

Cards of waiting sessions are made in steps. A card's number is never reused. ``told_words`` gives the words in the events' index,
to correct misspelled queries.
"""

_VERSION_9 = (
    "CREATE TABLE amended (number INTEGER PRIMARY KEY AUTOINCREMENT, event INTEGER NOT NULL UNIQUE REFERENCES events (seq))",
    f"""
    CREATE TRIGGER event_changed AFTER UPDATE OF {_SHOWN}, status ON events BEGIN
        DELETE FROM amended WHERE event = new.seq;
        INSERT INTO amended (event) VALUES (new.seq);
    END
    """,  # noqa: S608 - ours
)
"""Events that were changed after they were stored, in the order of their last change, for a person's other machines."""

_VERSION_10 = (
    "INSERT OR IGNORE INTO card_waiting SELECT DISTINCT session FROM cards",
    "DELETE FROM cards",
    "DELETE FROM card_words",
)
"""Cards are found by what the agent said on the way to its answer, too: they are made again."""

MIGRATIONS = {
    1: _VERSION_1,
    2: _VERSION_2,
    3: _VERSION_3,
    4: _VERSION_4,
    5: _VERSION_5,
    6: _VERSION_6,
    7: _VERSION_7,
    8: _VERSION_8,
    9: _VERSION_9,
    10: _VERSION_10,
}


def connect(path: Path) -> sqlite3.Connection:
    """Open the timeline's file with `sqlite.open_private`."""
    repair = "run `kmem rebuild --timeline`: it is rebuilt from the transcripts"
    connection = sqlite.open_private(path, MIGRATIONS, named=_named(path), repair=repair)
    connection.execute("PRAGMA mmap_size = 0")
    return connection


def _named(path: Path) -> str:
    return f"the timeline at {path}"


Rows = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs a query with its values and returns all rows."""


def rows_of(connection: sqlite3.Connection) -> Rows:
    """Return what reads inside a transaction of the write connection; readers have `TimelineDatabase.all`."""
    return lambda query, values: connection.execute(query, values).fetchall()


def next_of_backlog(connection: sqlite3.Connection, table: str, most: int) -> tuple[int, int] | None:
    """Return rows ``[first, end)`` of events of an earlier schema, newest first, and take them off; ``None`` after the last.

    ``table`` holds the row below which events are not handled yet.
    """
    row = connection.execute(f"SELECT below FROM {table}").fetchone()  # noqa: S608 - ours
    if row is None:
        return None
    first = max(0, row[0] - most)
    connection.execute(f"UPDATE {table} SET below = ?" if first else f"DELETE FROM {table} WHERE ? = 0", (first,))  # noqa: S608
    return first, row[0]


class TimelineDatabase(sqlite.SharedConnection):
    """The connections to the timeline's file: one that writes, under a lock, and one that all readers share.

    Readers never wait for the writer. Opening raises `StateDamaged` or `StateNewer`.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(connect(path), path, named=_named(path))
        self._reader = connect(path)
        self._reader.execute("PRAGMA query_only = ON")
        self._read_lock = threading.Lock()

    def close(self) -> None:
        with self._read_lock:
            self._reader.close()
        super().close()

    def all(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._read_lock:
            return self._reader.execute(query, values).fetchall()

    def one(self, query: str, values: Sequence[object] = ()) -> tuple[Any, ...] | None:
        with self._read_lock:
            row = self._reader.execute(query, values).fetchone()
        return None if row is None else tuple(row)
