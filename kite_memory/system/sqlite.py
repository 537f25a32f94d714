"""Databases of our own, opened alike."""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class _Connection(sqlite3.Connection):
    """What SQLite says of a damaged schema quotes the damage: where that is no UTF-8, it is an error like any other."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        try:
            return super().execute(sql, parameters)
        except UnicodeDecodeError as error:
            raise _damage() from error

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        try:
            return super().executemany(sql, parameters)
        except UnicodeDecodeError as error:
            raise _damage() from error


def connect(path: Path, *, timeout: float) -> sqlite3.Connection:
    """For any thread, and without transactions that nobody began. Waits ``timeout`` seconds for another who writes.

    What is deleted is overwritten: see `purge` for what the write-ahead log still holds of it.
    """
    connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False, factory=_Connection)
    try:
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def purge(database: sqlite3.Connection) -> bool:
    """Empty the write-ahead log, which holds pages as they were before a deletion. ``False`` while another process reads them."""
    busy, *_ = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def rewrite(database: sqlite3.Connection) -> bool:
    """`purge`, and write the whole file anew: it may be of a version that did not overwrite what it deleted."""
    database.execute("VACUUM")
    return purge(database)


def connect_to_look(path: Path, *, timeout: float) -> sqlite3.Connection:
    """Read only, whatever state the database is in."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=timeout, factory=_Connection)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether only a new file helps; a full disk, a lock or a mode is for a person, or for later."""
    name: str = getattr(error, "sqlite_errorname", "")
    no_text = not name and str(error).startswith("Could not decode to UTF-8")  # of a text in a row, which is Python's own finding
    return name in ("SQLITE_ERROR", "SQLITE_NOTADB") or name.startswith("SQLITE_CORRUPT") or no_text


def _damage() -> sqlite3.DatabaseError:
    damage = sqlite3.DatabaseError("malformed database schema")
    damage.sqlite_errorcode, damage.sqlite_errorname = sqlite3.SQLITE_CORRUPT, "SQLITE_CORRUPT"
    return damage
