"""The ledger's database file: open it, migrate it, and translate its failures."""

import contextlib
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kite_memory.errors import KiteError, StateDamaged, VaultReadOnly
from kite_memory.system import sqlite
from kite_memory.vault.ledger.schema import MIGRATIONS


class LedgerDatabase:
    """Connection to the ledger's database.

    Thread-safe; many processes may have it open. Changes are made inside `changing`.
    """

    def __init__(self, path: Path, *, step: Callable[[str], None] = lambda doing: None) -> None:
        self._path = path
        self._step = step
        self._lock = threading.RLock()
        self._depth = 0
        _make_private(path)
        with self._failing_as_ours():  # an intent must outlive a power cut
            self._connection = sqlite.open_store(path, MIGRATIONS, named=str(path), synchronous="FULL")

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def purge(self) -> bool:
        """See `sqlite.rewrite`."""
        with self._lock, self._failing_as_ours():
            return sqlite.rewrite(self._connection)

    @contextlib.contextmanager
    def changing(self, *, lasting: bool = True) -> Iterator[None]:
        """Open a transaction; nested ones are part of the outermost.

        One that need not be ``lasting`` may be undone by a power cut, until the next one that is: for what a comparison of the
        vault would find again. It saves a wait for the disk.
        """
        with self._lock, self._failing_as_ours():
            outermost = not self._depth
            if outermost:
                self._connection.execute(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
                self._connection.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield
                if outermost:
                    self._step("commit")
                    self._connection.execute("COMMIT")
            except BaseException:
                if outermost and self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self._depth -= 1

    def run(self, statement: str, *values: object) -> list[Any]:
        with self._lock, self._failing_as_ours():
            return self._connection.execute(statement, values).fetchall()

    def run_each(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        with self._lock, self._failing_as_ours():
            self._connection.executemany(statement, rows)

    @contextlib.contextmanager
    def _failing_as_ours(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise _as_state_error(error, self._path) from error
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
                raise
            raise StateDamaged(
                f"the vault's ledger at {self._path} cannot be read: {error}",
                hint="move it away: notes are then taken for yours, and what is in the vault's .trash stays deleted",
            ) from error


def _as_state_error(error: sqlite3.OperationalError, path: Path) -> KiteError:
    # Python itself raises for text that is not UTF-8, without an error code.
    match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return KiteError(f"another process keeps {path} busy", hint="try again; see `kmem status`")
        case sqlite3.SQLITE_FULL:
            return VaultReadOnly(f"no space left on the disk of {path}", hint="free some space; nothing is lost meanwhile")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR | sqlite3.SQLITE_PERM:
            return VaultReadOnly(f"cannot write to {path}: {error}", hint=f"see who owns it: ls -l {path.parent}")
        case _:
            return StateDamaged(f"the vault's ledger at {path} is not as it should be: {error}", hint="run `kmem doctor`")


def _make_private(path: Path) -> None:
    try:
        for folder in reversed([folder for folder in path.parents if not folder.exists()]):
            folder.mkdir(mode=0o700)
            folder.chmod(0o700)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if sys.platform != "win32":
            os.fchmod(handle, 0o600)
        os.close(handle)
    except OSError as error:
        raise VaultReadOnly(f"cannot write to {path}: {error.strerror}", hint=f"see who owns it: ls -ld {path.parent}") from error
