"""Databases of our own that are damaged, even where SQLite mentions it in bytes that are no text, or may not be opened."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kite_memory.distill.outbox import Outbox
from kite_memory.errors import KiteError, StateDamaged
from kite_memory.mcp_server.tokens import Tokens
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.system import sqlite
from kite_memory.timeline.store import Timeline
from kite_memory.tools.local_state import LocalState
from kite_memory.vault.ledger import Ledger


def damage(path: Path) -> None:
    """In the words of the schema, as a bit that has turned over does it."""
    data = path.read_bytes()
    assert data.count(b"CREATE TABLE") > 0
    path.write_bytes(data.replace(b"CREATE TABLE", b"CREATE TAB\xeeE"))


def test_what_cannot_be_quoted_is_damage_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "own.sqlite"
    with closing(sqlite.connect(path, timeout=1.0)) as database:
        database.execute("CREATE TABLE trees (name TEXT)")
    damage(path)

    for connect in (sqlite.connect, sqlite.connect_to_look):
        with closing(connect(path, timeout=1.0)) as database:
            with pytest.raises(sqlite3.DatabaseError) as one:
                database.execute("SELECT * FROM trees")
            with pytest.raises(sqlite3.DatabaseError) as many:
                database.executemany("INSERT INTO trees VALUES (?)", [("plum",)])
        assert one.value.sqlite_errorcode == many.value.sqlite_errorcode == sqlite3.SQLITE_CORRUPT


@pytest.mark.parametrize("opened", [Timeline, Ledger, Outbox], ids=lambda opened: str(opened.__name__))
def test_a_store_says_that_it_is_damaged(tmp_path: Path, opened: Callable[[Path], Timeline | Ledger | Outbox]) -> None:
    opened(tmp_path / "own.sqlite").close()
    damage(tmp_path / "own.sqlite")

    with pytest.raises(StateDamaged) as damaged:
        opened(tmp_path / "own.sqlite")
    assert damaged.value.hint


def test_so_do_tokens(tmp_path: Path) -> None:
    Tokens(tmp_path).close()
    damage(tmp_path / "tokens.sqlite")

    with pytest.raises(StateDamaged):
        Tokens(tmp_path)


@pytest.mark.parametrize("opened", [LocalState, SessionMemory], ids=lambda opened: str(opened.__name__))
def test_what_can_be_done_without_is_begun_anew(tmp_path: Path, opened: Callable[[Path], LocalState | SessionMemory]) -> None:
    opened(tmp_path / "own.sqlite").close()
    damage(tmp_path / "own.sqlite")

    opened(tmp_path / "own.sqlite").close()

    with closing(sqlite.connect(tmp_path / "own.sqlite", timeout=1.0)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


STORES: tuple[Callable[[Path], object], ...] = (Timeline, Outbox, SessionMemory, Ledger, LocalState)


@pytest.mark.parametrize("opened", STORES, ids=lambda opened: str(opened.__name__))
@pytest.mark.parametrize("call", ["exists", "mkdir", "touch", "stat"])
def test_a_store_that_is_refused_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Callable[[Path], object], call: str
) -> None:
    """Refused by the calls that ask the system, so that it is tried as root, too."""
    file = tmp_path / "closed" / "own.sqlite"

    def refused(path: Path, *arguments: object, **more: object) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(f"pathlib.Path.{call}", refused)
    monkeypatch.setattr("os.open", refused)
    monkeypatch.setattr("sqlite3.connect", _unable)

    with pytest.raises(KiteError) as result:
        opened(file)

    assert result.value.hint


def _unable(*arguments: object, **more: object) -> object:
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    raise error
