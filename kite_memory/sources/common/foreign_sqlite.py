"""Read a database that belongs to another program: never write to it, never hold it for long, never trust it.

`mode=ro` is not enough for that. For a database with a write-ahead log, SQLite would create the log's files again after their owner
has removed them. So a database that is not open is read with ``immutable``, and the result is discarded if it was changed
meanwhile. A database that is open is read through its log as by any reader, which neither waits nor blocks others.
"""

import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from kite_memory.sources.common.jsonl import Damage, FoundObject, Unreadable, objects
from kite_memory.system.private_files import stamp_of

BUSY = "busy, later"
UNKNOWN_SCHEMA = "unknown schema"
TOO_LONG = "value too long"
VALUE_LIMIT = 16 * 1024 * 1024
"""Longer values are skipped: a conversation's longest message is far shorter."""

_SECONDS = 20.0
_WAIT = 0.25
_STEPS = 20_000
_COPIED = 256 * 1024 * 1024
_MAGIC = b"SQLite format 3\x00"
_LOGGED = 2

_REASONS = {
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_READONLY: BUSY,  # its owner died during a write, which only a writer can roll back
    sqlite3.SQLITE_CANTOPEN: BUSY,
    sqlite3.SQLITE_PROTOCOL: BUSY,
    sqlite3.SQLITE_INTERRUPT: "took too long",
    sqlite3.SQLITE_NOTADB: "not a database",
    sqlite3.SQLITE_CORRUPT: "damaged database",
    sqlite3.SQLITE_IOERR: "file cannot be read",
    sqlite3.SQLITE_ERROR: UNKNOWN_SCHEMA,  # no such table, no such column
    sqlite3.SQLITE_TOOBIG: TOO_LONG,
}


class TooLong(Exception):
    """A value over the limit."""


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether only this place of the database is unreadable, so that others may still be read."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_TOOBIG)


def reason_of(error: sqlite3.Error) -> str:
    return _REASONS.get(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF, "damaged database")


def stamp(path: Path) -> tuple[int, int]:
    """Return size and time of a database including its log, which holds the last writes. May raise `OSError`."""
    return stamp_of(path, _beside(path, "-wal"))


def database_of(path: Path) -> Path:
    """Return the database that a changed file belongs to: itself, or the one whose log it is."""
    for ending in ("-wal", "-shm", "-journal"):
        if path.name.endswith(ending):
            return path.with_name(path.name.removesuffix(ending))
    return path


class ForeignDatabase:
    """One snapshot of a database. Queries may raise `sqlite3.Error`; `opened` turns that and `TooLong` into `Unreadable`."""

    def __init__(self, connection: sqlite3.Connection, found: tuple[int, int]) -> None:
        self._connection = connection
        self.size, self.mtime_ns = found

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of a table; none if it is missing or not a real table."""
        (known,) = self._connection.execute(
            "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
        ).fetchone()
        if not known:
            return frozenset()
        return frozenset(str(row[0]) for row in self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))

    def rows(self, query: str, values: Sequence[object] | Mapping[str, object] = (), *, limit: int) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, values).fetchmany(limit)

    def each(self, query: str, values: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield row by row, for queries that may return millions of rows."""
        return iter(self._connection.execute(query, values))

    def value(self, query: str, values: Sequence[object] = ()) -> Any:
        """Return the first column of the first row, ``None`` without a row. Raises `TooLong`."""
        try:
            row = self._connection.execute(query, values).fetchone()
        except sqlite3.DataError as error:
            raise TooLong from error
        return None if row is None else row[0]


def select(columns: str | Iterable[str], table: str, rest: str = "") -> str:
    """Build a query from this project's own names; foreign values are always bound as parameters."""
    return " ".join(("SELECT", columns if isinstance(columns, str) else ", ".join(columns), "FROM", table, rest))


@contextmanager
def opened(path: Path, *, within: Path, seconds: float = _SECONDS, value_limit: int = VALUE_LIMIT) -> Iterator[ForeignDatabase]:
    """Open a snapshot of the database at ``path``, below ``within``, for at most ``seconds``. Raises `Unreadable`.

    May also raise on exit: then the database was changed during reading, and what was read is invalid.
    """
    real = _regular(path, within)
    with ExitStack() as closing:
        try:
            found = stamp(real)
            target, rests = _read_only_uri(real, closing)
            connection = sqlite3.connect(target, uri=True, timeout=_WAIT, isolation_level=None)
            closing.callback(connection.close)
            connection.text_factory = _text
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, value_limit)
            deadline = time.monotonic() + seconds
            connection.set_progress_handler(lambda: int(time.monotonic() > deadline), _STEPS)
            for pragma in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("BEGIN")
            yield ForeignDatabase(connection, found)
            if rests and (_beside(real, "-wal").exists() or stamp(real) != found):
                raise Unreadable(BUSY)
        except sqlite3.Error as error:
            raise Unreadable(reason_of(error)) from error
        except TooLong as error:
            raise Unreadable(TOO_LONG) from error
        except UnicodeDecodeError as error:  # from an error message of SQLite that quotes the damage
            raise Unreadable("damaged database") from error
        except FileNotFoundError as error:
            raise Unreadable("file is gone") from error
        except OSError as error:
            raise Unreadable("file cannot be read") from error


def _read_only_uri(real: Path, closing: ExitStack) -> tuple[str, bool]:
    """Return a URI that creates no files beside the database, and whether the result is valid only if the database stays closed."""
    with real.open("rb") as file:
        header = file.read(20)
    if not header.startswith(_MAGIC) or len(header) < 20:
        raise Unreadable("not a database" if header else "empty database")
    if _LOGGED not in header[18:20]:
        return f"{real.as_uri()}?mode=ro", False
    log, index = _beside(real, "-wal"), _beside(real, "-shm")
    logged = log.stat().st_size if log.exists() else 0
    if logged and not index.exists():
        return _copy(real, log, closing), False
    if log.exists() and index.exists():
        return f"{real.as_uri()}?mode=ro", False
    return f"{real.as_uri()}?mode=ro&immutable=1", True


def _copy(real: Path, log: Path, closing: ExitStack) -> str:
    """Copy a database with a leftover log but no index, since reading it would create the index."""
    if real.stat().st_size + log.stat().st_size > _COPIED:
        raise Unreadable("left open by its owner")
    folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="kmem-", ignore_cleanup_errors=True)))
    for each, name in ((real, "copy"), (log, "copy-wal")):
        (folder / name).touch(mode=0o600)
        shutil.copyfile(each, folder / name)
    return f"{(folder / 'copy').as_uri()}?mode=ro"


def _regular(path: Path, within: Path) -> Path:
    try:
        real = path.resolve()
        if not real.is_relative_to(within.resolve()):
            raise Unreadable("outside its root")
        if not stat.S_ISREG(real.stat().st_mode):
            raise Unreadable("not a regular file")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Unreadable("file is gone") from error
    except (OSError, ValueError, RuntimeError) as error:
        raise Unreadable("file cannot be read") from error
    return real


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def object_in(value: object) -> dict[str, Any] | str:
    """Parse the JSON object in a value, or return why it has none."""
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    if not isinstance(data, bytes) or not data:
        return "no text"
    damage = "no text"
    for found in objects(data):
        match found:
            case FoundObject(row=row):
                return row
            case Damage(reason=reason):
                damage = reason
    return damage


def whole(value: object) -> int:
    """Return a foreign number as an integer usable as row number or time; 0 for anything else."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**62 else 0
