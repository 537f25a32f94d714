"""The ledger's tables, and their migrations."""

import sqlite3

from kite_memory.system.sqlite import Migrations
from kite_memory.vault.wording import digest

VERSION = 7

_VERSION_1 = (
    """
    CREATE TABLE files (
        key INTEGER PRIMARY KEY,
        path TEXT NOT NULL UNIQUE,
        id TEXT NOT NULL,
        twin INTEGER NOT NULL,
        kind TEXT NOT NULL,
        title TEXT NOT NULL,
        title_key TEXT NOT NULL,
        stem_key TEXT NOT NULL,
        body_key TEXT NOT NULL,
        project TEXT NOT NULL,
        status TEXT NOT NULL,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        problem TEXT NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX files_by_id ON files (id) WHERE id <> '' AND twin = 0",
    "CREATE INDEX files_by_title ON files (title_key)",
    "CREATE INDEX files_by_stem ON files (stem_key)",
    "CREATE INDEX files_by_body ON files (body_key)",
    # what a file is called, speaks of, links to and rests on
    """
    CREATE TABLE names (
        file INTEGER NOT NULL REFERENCES files (key) ON DELETE CASCADE,
        role TEXT NOT NULL CHECK (role IN ('alias', 'entity', 'key', 'link', 'session')),
        name TEXT NOT NULL,
        PRIMARY KEY (role, name, file)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX names_by_file ON names (file)",
    "CREATE TABLE bodies (id TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (id, digest)) WITHOUT ROWID",
    "CREATE TABLE absorbed (draft TEXT PRIMARY KEY, note TEXT NOT NULL) WITHOUT ROWID",
    "CREATE INDEX absorbed_by_note ON absorbed (note)",
    "CREATE TABLE tombstones (id TEXT PRIMARY KEY, at TEXT NOT NULL, because TEXT NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE buried_titles (
        title_key TEXT NOT NULL,
        project TEXT NOT NULL,
        id TEXT NOT NULL REFERENCES tombstones (id) ON DELETE CASCADE,
        PRIMARY KEY (title_key, project, id)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX buried_titles_by_id ON buried_titles (id)",
    """
    CREATE TABLE intents (
        id TEXT PRIMARY KEY,
        doing TEXT NOT NULL CHECK (doing IN ('create', 'forget')),
        path TEXT NOT NULL,
        temporary TEXT NOT NULL,
        title TEXT NOT NULL,
        project TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE TABLE unmuted (id TEXT PRIMARY KEY, status TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE template (path TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE problems (path TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (path, reason)) WITHOUT ROWID",
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)

_VERSION_2 = (
    """
    CREATE TABLE keys (
        file INTEGER PRIMARY KEY REFERENCES files (key) ON DELETE CASCADE,
        key TEXT NOT NULL,
        scope TEXT NOT NULL,
        project TEXT NOT NULL,
        session TEXT NOT NULL,
        tags TEXT NOT NULL,
        expires TEXT NOT NULL
    )
    """,
    "CREATE INDEX keys_by_key ON keys (key)",
    """
    CREATE TABLE versions (
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        at TEXT NOT NULL,
        by TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (id, version)
    ) WITHOUT ROWID
    """,
    "CREATE TABLE last_versions (place TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID",
)
"""Keys with all that distinguishes two of them, and the versions of their notes; see `_move_keys`."""

_VERSION_3 = (
    """
    CREATE TABLE rulings (
        newer TEXT NOT NULL,
        older TEXT NOT NULL,
        ruling TEXT NOT NULL CHECK (ruling IN ('replacing', 'replaces', 'neither')),
        PRIMARY KEY (newer, older)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX rulings_by_older ON rulings (older)",
)
"""Which note replaces which, or is ruled not to; ``replacing`` until the older one is marked."""

_VERSION_4 = (
    "ALTER TABLE files ADD COLUMN asks INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX files_that_wait ON files (path) WHERE status = 'proposed' OR asks",
    "UPDATE files SET size = -1, mtime_ns = -1 WHERE status = 'accepted' AND id <> ''",
)
"""Whether a note has an open question for its owner. The next comparison reads known notes again to find out."""

_VERSION_5 = (
    "ALTER TABLE files ADD COLUMN branch TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX files_of_branches ON files (path) WHERE branch <> ''",
    "UPDATE files SET size = -1, mtime_ns = -1 WHERE kind IN ('decision', 'fact') AND id <> ''",
)
"""Which notes hold only on a branch. The next comparison reads known notes again to find out."""
_VERSION_6 = ("CREATE TABLE drift (file INTEGER PRIMARY KEY REFERENCES files (key) ON DELETE CASCADE, since TEXT NOT NULL)",)
"""Since when code that a note rests on has changed; kept here, so that a checkout does not rewrite notes."""


def _move_keys(connection: sqlite3.Connection) -> None:
    """Move keys out of the names, where version 1 had them without session, tags and expiry.

    The next comparison reads these files again.
    """
    for file, name in connection.execute("SELECT file, name FROM names WHERE role = 'key'").fetchall():
        scope, project, key = name.split("\0", 2)
        connection.execute("INSERT OR IGNORE INTO keys VALUES (?, ?, ?, ?, '', '[]', '')", (file, key, scope, project))
        connection.execute("UPDATE files SET size = -1, mtime_ns = -1 WHERE key = ?", (file,))
    connection.execute("DELETE FROM names WHERE role = 'key'")


def _hide_buried_titles(connection: sqlite3.Connection) -> None:
    """Replace titles, which version 4 stored as plain text, by their digests."""
    for (title,) in connection.execute("SELECT DISTINCT title_key FROM buried_titles").fetchall():
        connection.execute("UPDATE buried_titles SET title_key = ? WHERE title_key = ?", (digest(title), title))


MIGRATIONS: Migrations = {
    1: _VERSION_1,
    2: (*_VERSION_2, _move_keys),
    3: _VERSION_3,
    4: _VERSION_4,
    5: _VERSION_5,
    6: _VERSION_6,
    7: ("CREATE INDEX files_by_time ON files (mtime_ns, path)", _hide_buried_titles),
}
