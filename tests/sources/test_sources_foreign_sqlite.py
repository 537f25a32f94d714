import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kite_memory.sources.common import foreign_sqlite
from kite_memory.sources.common.foreign_sqlite import TooLong, database_of, object_in, opened, whole
from kite_memory.sources.common.jsonl import Unreadable


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as owner:
        owner.execute("PRAGMA journal_mode = WAL")
        owner.execute("CREATE TABLE apples (name TEXT)")
        owner.execute("INSERT INTO apples VALUES ('Cox')")
        yield owner


def names(path: Path) -> list[str]:
    with opened(path, within=path.parent) as database:
        return [name for (name,) in database.rows("SELECT name FROM apples ORDER BY rowid", limit=100)]


def beside(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir())


def test_what_stands_in_the_log_is_read(tmp_path: Path, owner: sqlite3.Connection) -> None:
    assert names(tmp_path / "a.db") == ["Cox"]


def test_another_process_may_go_on_writing_while_it_is_read(tmp_path: Path, owner: sqlite3.Connection) -> None:
    write = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=0);"
        " c.execute(\"INSERT INTO apples VALUES ('Gala')\"); c.commit()"
    )
    with opened(tmp_path / "a.db", within=tmp_path) as database:
        before = database.rows("SELECT name FROM apples", limit=9)
        subprocess.run([sys.executable, "-c", write, str(tmp_path / "a.db")], check=True)
        after = database.rows("SELECT name FROM apples", limit=9)

    assert before == after == [("Cox",)]
    assert names(tmp_path / "a.db") == ["Cox", "Gala"]


def test_a_log_that_was_left_behind_is_read_on_a_copy(tmp_path: Path, owner: sqlite3.Connection) -> None:
    """As after a crash, on a disk that was moved to another machine."""
    left = tmp_path / "left"
    left.mkdir()
    for name in ("a.db", "a.db-wal"):
        shutil.copy(tmp_path / name, left / name)

    assert names(left / "a.db") == ["Cox"]
    assert beside(left / "a.db") == ["a.db", "a.db-wal"]


def test_what_is_read_of_one_that_wakes_up_meanwhile_is_void(tmp_path: Path, owner: sqlite3.Connection) -> None:
    owner.close()
    with pytest.raises(Unreadable, match="busy, later"), opened(tmp_path / "a.db", within=tmp_path) as database:
        database.rows("SELECT name FROM apples", limit=9)
        woken = sqlite3.connect(tmp_path / "a.db")
        woken.execute("INSERT INTO apples VALUES ('Gala')")
    woken.close()


def test_a_query_without_end_is_ended(tmp_path: Path, owner: sqlite3.Connection) -> None:
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) FROM n"

    with pytest.raises(Unreadable, match="took too long"), opened(tmp_path / "a.db", within=tmp_path, seconds=0.1) as database:
        database.value(endless)


def test_nothing_can_be_written_by_mistake(tmp_path: Path, owner: sqlite3.Connection) -> None:
    with pytest.raises(Unreadable), opened(tmp_path / "a.db", within=tmp_path) as database:
        database.value("DELETE FROM apples RETURNING name")

    assert names(tmp_path / "a.db") == ["Cox"]


def test_a_value_that_is_too_long_is_not_loaded(tmp_path: Path, owner: sqlite3.Connection) -> None:
    owner.execute("INSERT INTO apples VALUES (?)", ("x" * 5_000,))

    with opened(tmp_path / "a.db", within=tmp_path, value_limit=1_000) as database:
        with pytest.raises(TooLong):
            database.value("SELECT name FROM apples WHERE rowid = 2")
        assert database.value("SELECT name FROM apples WHERE rowid = 1") == "Cox"


def test_a_view_is_no_table(tmp_path: Path, owner: sqlite3.Connection) -> None:
    owner.execute("CREATE VIEW pears AS SELECT 1 AS name")

    with opened(tmp_path / "a.db", within=tmp_path) as database:
        assert (database.columns("apples"), database.columns("pears"), database.columns("'")) == (
            frozenset({"name"}),
            frozenset(),
            frozenset(),
        )


def test_a_name_with_every_odd_character_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "a?b#c%20 d&e.db"
    with closing(sqlite3.connect(path)) as owner:
        owner.executescript("CREATE TABLE apples (name TEXT); INSERT INTO apples VALUES ('Cox')")

    assert names(path) == ["Cox"]


def test_bytes_that_are_no_text_are_mended(tmp_path: Path, owner: sqlite3.Connection) -> None:
    owner.execute("UPDATE apples SET name = CAST(x'436fff' AS TEXT)")

    assert names(tmp_path / "a.db") == ["Co\ufffd"]


def test_the_stamp_is_of_both_files(tmp_path: Path, owner: sqlite3.Connection) -> None:
    size, _ = foreign_sqlite.stamp(tmp_path / "a.db")

    assert size == (tmp_path / "a.db").stat().st_size + (tmp_path / "a.db-wal").stat().st_size


@pytest.mark.parametrize("name", ["a.db", "a.db-wal", "a.db-shm", "a.db-journal"])
def test_the_files_beside_a_database_lead_to_it(name: str) -> None:
    assert database_of(Path("/x", name)) == Path("/x/a.db")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ('{"a":1}', {"a": 1}),
        (b'{"a":1}', {"a": 1}),
        ("[1]", "not an object"),
        ('{"a":', "damaged line"),
        ("", "no text"),
        (" ", "no text"),
        (None, "no text"),
        (7, "no text"),
        ('{"a":"\\ud800"}', {"a": "\ufffd"}),
    ],
)
def test_an_object_in_a_value(value: object, found: object) -> None:
    assert object_in(value) == found


@pytest.mark.parametrize(("value", "number"), [(3, 3), (3.7, 3), (None, 0), ("3", 0), (True, 0), (float("nan"), 0), (1e300, 0)])
def test_a_number_of_anothers(value: object, number: int) -> None:
    assert whole(value) == number
