"""Open, migrate and maintain this project's SQLite databases, and detect files changed on disk without a write.

SQLite detects damage to its structure, not to stored text, so checksums are recorded.
"""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from kite_memory.errors import StateDamaged, StateNewer, StateNotWritten
from kite_memory.system.private_files import make_folder, make_private_file, replace_file, stamp_of

_NAME = "seals.json"
_VERSION = 1
_PASSED_OVER = frozenset({"logs", "backups", "extractor", "answers"})
_COMES_AND_GOES = ("-wal", "-shm", "-journal", ".lock", ".sock", ".log", ".port", ".patience", _NAME)
_A_TICK_NS = 50_000_000
"""Resolution of file systems' clocks: a write within one tick after the seal would leave the time unchanged."""


def seal(folder: Path) -> None:
    """Record the checksum of every file below ``folder`` that has changed since the last call. Errors of the disk are ignored."""
    known = _known(folder) or {}
    try:
        now = {name: _sealed(path, known.get(name)) for name, path in _files(folder)}
        found = {name: each for name, each in now.items() if each is not None}
        if found != known:
            listed = json.dumps(found, sort_keys=True, separators=(",", ":"))
            whole = {"v": _VERSION, "of": hashlib.sha256(listed.encode()).hexdigest(), "files": found}
            replace_file(folder / _NAME, json.dumps(whole, sort_keys=True, separators=(",", ":")).encode())
    except OSError:
        return


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the size and time of every file below ``folder`` that is sealed, and of what was written to a database since."""
    logs = ((f"{name}-wal", path.with_name(f"{path.name}-wal")) for name, path in _files(folder))
    return {name: stamp_of(path) for name, path in (*_files(folder), *logs) if path.exists()}


def broken(folder: Path) -> list[str]:
    """Return the files, relative to ``folder``, whose content differs from their seal although size and time do not.

    Includes files that cannot be read. If the seals themselves are damaged, only their own file is returned.
    """
    known = _known(folder)
    if known is None:
        return [_NAME]
    found: list[str] = []
    for name, (size, mtime_ns, digest) in sorted(known.items()):
        path = folder / name
        try:
            if stamp_of(path) == (size, mtime_ns) and _hash(path) != digest and stamp_of(path) == (size, mtime_ns):
                found.append(name)
        except FileNotFoundError:
            continue
        except OSError:  # the disk cannot read it
            found.append(name)
    return found


def _known(folder: Path) -> dict[str, list[Any]] | None:
    """Return the recorded seals: ``None`` if they are damaged, empty before the first."""
    try:
        whole = json.loads((folder / _NAME).read_bytes())
        files: dict[str, list[Any]] = whole["files"]
        listed = json.dumps(files, sort_keys=True, separators=(",", ":"))
        good = whole["v"] == _VERSION and whole["of"] == hashlib.sha256(listed.encode()).hexdigest()
        return files if good else None
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _PASSED_OVER)
        for name in sorted(names):
            path = Path(here, name)
            if not name.endswith(_COMES_AND_GOES) and not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path.relative_to(folder).as_posix(), path


def _sealed(path: Path, known: list[Any] | None) -> list[Any] | None:
    """Return the seal of a file; ``None`` if it is being written to."""
    before = stamp_of(path)
    if known is not None and before == (known[0], known[1]):
        return known
    young = before[1] + _A_TICK_NS - time.time_ns()
    if young > 0:
        Event().wait(min(young, _A_TICK_NS) / 1e9)
    digest = _hash(path)
    return [*before, digest] if stamp_of(path) == before else None


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


Step = str | Callable[[sqlite3.Connection], object]
Migrations = Mapping[int, Sequence[Step]]
"""Steps from each version to the next; those of the first start from an empty file."""


class _Connection(sqlite3.Connection):
    """Connection that reports a damaged schema as a database error.

    SQLite's message quotes the damaged schema, and Python fails to decode it if it is not UTF-8.
    """

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
    """Open a database for use from any thread, without implicit transactions. Waits ``timeout`` seconds for another writer.

    Deleted content is overwritten; see `purge` for copies in the write-ahead log.
    """
    connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False, factory=_Connection)
    try:
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def open_store(
    path: Path, migrations: Migrations, *, named: str, timeout: float = 30.0, journal: str = "WAL", synchronous: str = "NORMAL"
) -> sqlite3.Connection:
    """Open a database with `connect` and migrate it to the latest version. Raises `StateNewer`; SQLite's errors are passed on."""
    connection = connect(path, timeout=timeout)
    try:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("PRAGMA fullfsync = ON")  # as `sync_file`, on macOS
        connection.execute("PRAGMA foreign_keys = ON")
        migrate(connection, migrations, named=named)
    except BaseException:
        connection.close()
        raise
    return connection


def make_store_file(path: Path, *, named: str) -> None:
    """Create an empty file for a database, for its owner alone, if it is missing. Raises `StateNotWritten`."""
    try:
        make_folder(path.parent)
        if not path.exists():
            make_private_file(path)
    except FileNotFoundError:
        raise  # no owner could make a folder there; the command line prints what to check
    except OSError as error:
        hint = f"see who owns it, and whether its disk is full: ls -la {path.parent}"
        raise StateNotWritten(f"{named} may not be opened or written: {error.strerror}", hint=hint) from error


def open_private(path: Path, migrations: Migrations, *, named: str, repair: str, synchronous: str = "NORMAL") -> sqlite3.Connection:
    """Open a private file with `open_store`, creating it if it is missing.

    Raises `StateNewer`, `StateDamaged` with the hint ``repair``, and `StateNotWritten` if the file seems intact but cannot be
    opened or written.
    """
    make_store_file(path, named=named)
    try:
        return open_store(path, migrations, named=named, synchronous=synchronous)
    except sqlite3.DatabaseError as error:
        if is_whole(error):
            raise not_written(error, path, named=named) from error
        raise StateDamaged(f"{named} cannot be read: {error}", hint=repair) from error


@contextmanager
def raising_not_written(path: Path, *, named: str) -> Iterator[None]:
    """Raise `StateNotWritten` for an operational error of SQLite."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise not_written(error, path, named=named) from error


def migrate(connection: sqlite3.Connection, migrations: Migrations, *, named: str) -> None:
    """Apply the migrations that the database lacks, in one transaction. Raises `StateNewer` for a newer version."""
    known = max(migrations)
    if version_of(connection) == known:
        return
    with transaction(connection):
        found = version_of(connection)  # another process may have migrated it meanwhile
        if found > known:
            raise StateNewer(
                f"{named} was written by a newer kite-memory (schema {found}, this one knows {known})", hint="upgrade kite-memory"
            )
        for version in range(found + 1, known + 1):
            for step in migrations[version]:
                if isinstance(step, str):
                    connection.execute(step)
                else:
                    step(connection)
        connection.execute(f"PRAGMA user_version = {known}")


def version_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Run the block as one transaction: all or nothing. Waits for another writer before the first statement, not later."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:  # if the disk is full, SQLite has rolled back already
            connection.execute("ROLLBACK")


_CLOSED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def not_written(error: sqlite3.DatabaseError, path: Path, *, named: str) -> StateNotWritten:
    """Return an error whose hint depends on the cause: its owner, another process, or the disk."""
    code = _code(error)
    if code in _CLOSED:
        return StateNotWritten(f"{named} may not be opened or written: {error}", hint=f"see who owns it: ls -la {path.parent}")
    hint = (
        "another process keeps it busy: try again; see `kmem status`" if code in _BUSY else "make room on its disk, then try again"
    )
    return StateNotWritten(f"{named} cannot be written: {error}", hint=hint)


def is_whole(error: sqlite3.DatabaseError) -> bool:
    """Return whether the file is probably undamaged: it is not accessible, busy, or its disk is full."""
    return _code(error) in (*_CLOSED, *_BUSY, sqlite3.SQLITE_FULL)


def _code(error: sqlite3.DatabaseError) -> int:
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF  # errors raised by Python itself have none


def purge(database: sqlite3.Connection) -> bool:
    """Empty the write-ahead log, which holds pages from before a deletion. Return ``False`` while another process reads them."""
    busy, *_ = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def rewrite(database: sqlite3.Connection) -> bool:
    """Rewrite the whole file, then `purge`. A row that SQLite moved to another page may leave a piece of itself in its old one,
    even with ``secure_delete``.
    """
    database.execute("VACUUM")
    return purge(database)


def connect_to_look(path: Path, *, timeout: float) -> sqlite3.Connection:
    """Open a database read-only, whatever its version or state."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=timeout, factory=_Connection)


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether only a new file helps; a full disk, a lock or a mode can be fixed by a person, or later."""
    name: str = getattr(error, "sqlite_errorname", "")
    no_text = not name and str(error).startswith("Could not decode to UTF-8")  # raised by Python for a text in a row
    return name in ("SQLITE_ERROR", "SQLITE_NOTADB") or name.startswith("SQLITE_CORRUPT") or no_text


def _damage() -> sqlite3.DatabaseError:
    damage = sqlite3.DatabaseError("malformed database schema")
    damage.sqlite_errorcode, damage.sqlite_errorname = sqlite3.SQLITE_CORRUPT, "SQLITE_CORRUPT"
    return damage
