"""What a source promises of transcripts that stand in a database which its owner goes on writing to."""

import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from kite_memory.extensions.contract.source_contract import BUDGET, FileSourceContract, together, wild_rows
from kite_memory.model.event import Event, ReadResult
from kite_memory.sources import CompositeSource, Source


class Store(Protocol):
    connection: sqlite3.Connection

    def close(self) -> None: ...


def looks(source: Source, path: Path, first: ReadResult | None = None, *, budget: int = BUDGET) -> list[ReadResult]:
    """Look after look, until there is no more."""
    found = [source.read(path, first.cursor if first else None, budget=budget)]
    while found[-1].more:
        found.append(source.read(path, found[-1].cursor, budget=budget))
    return found


class DatabaseSourceContract(FileSourceContract):
    @abstractmethod
    def fill(self, path: Path, *, wal: bool = True) -> Store:
        """What `transcript` is of: one session, several events, a problem."""

    @abstractmethod
    def go_on(self, store: Store) -> int:
        """Let something more be said in that session; how many events that is."""

    def open(self, folder: Path, *, wal: bool = True) -> Store:
        return self.fill(self.place(folder), wal=wal)

    def transcript(self) -> bytes:
        return _made(self.fill)

    def wildly(self, folder: Path) -> Iterator[Path]:
        with closing(self.open(folder, wal=False)) as store:
            for undo in wild_rows(store.connection):
                yield self.place(folder)
                undo()

    def test_reading_on_at_the_end_yields_nothing(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.written(tmp_path)
        first = source.read(path, None, budget=BUDGET)

        second = source.read(path, first.cursor, budget=BUDGET)

        assert (second.events, second.problems, second.cursor, second.more) == ((), (), first.cursor, False)

    def test_a_database_that_is_written_to_is_read_through_its_log(self, tmp_path: Path) -> None:
        source = self.make(tmp_path)
        with closing(self.open(tmp_path)) as store:
            first = looks(source, self.place(tmp_path))[-1]
            count = self.go_on(store)

            rest = looks(source, self.place(tmp_path), first)

        assert len(first.events) > 0
        assert len({event.id for look in rest for event in look.events} - {event.id for event in first.events}) == count

    @pytest.mark.parametrize("wal", [True, False])
    def test_nothing_is_made_beside_a_database_that_rests(self, tmp_path: Path, wal: bool) -> None:
        self.open(tmp_path, wal=wal).close()
        path = self.place(tmp_path)

        assert looks(self.make(tmp_path), path)[0].events

        assert [each.name for each in path.parent.iterdir() if each.name.startswith(path.name)] == [path.name]

    def test_the_owner_is_not_kept_from_writing(self, tmp_path: Path) -> None:
        with closing(self.open(tmp_path)) as store:
            store.connection.execute("PRAGMA busy_timeout = 0")
            cursor = self.make(tmp_path).read(self.place(tmp_path), None, budget=BUDGET).cursor
            self.go_on(store)

        assert cursor.position > 0

    def test_a_database_that_its_owner_has_locked_is_looked_at_later(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.place(tmp_path)
        with closing(self.open(tmp_path, wal=False)) as store:
            cursor = source.read(path, None, budget=BUDGET).cursor
            self.go_on(store)
            store.connection.execute("BEGIN EXCLUSIVE")

            busy = source.read(path, cursor, budget=BUDGET)

            store.connection.execute("COMMIT")
        assert ([problem.reason for problem in busy.problems], busy.cursor) == (["busy, later"], cursor)
        assert source.read(path, busy.cursor, budget=BUDGET).events

    def test_its_stamp_changes_with_its_log(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.place(tmp_path)
        assert isinstance(source, CompositeSource)
        with closing(self.open(tmp_path)) as store:
            before = source.stamp(path)
            cursor = looks(source, path)[-1].cursor
            self.go_on(store)

            assert source.stamp(path) != before == (cursor.size, cursor.mtime_ns)

    def test_the_log_is_owned_and_the_database_read_for_it(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.place(tmp_path)
        log = path.with_name(path.name + "-wal")

        assert source.owns(log)
        assert source.in_order([log, path]) == [path]

    def test_a_small_budget_only_takes_more_looks(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.written(tmp_path)
        whole = looks(source, path)

        slowly = looks(source, path, budget=1)

        assert len(slowly) > len(whole)
        assert [event.id for event in together(*slowly)[0]] == [event.id for event in together(*whole)[0]]

    def test_amid_a_database_its_cursor_is_of_no_moment(self, tmp_path: Path) -> None:
        first = self.make(tmp_path).read(self.written(tmp_path), None, budget=1)

        assert first.more
        assert (first.cursor.size, first.cursor.mtime_ns) == (0, 0)

    def test_a_cursor_is_small(self, tmp_path: Path) -> None:
        cursor = self.make(tmp_path).read(self.written(tmp_path), None, budget=BUDGET).cursor

        assert len(cursor.identity) + len(cursor.carry) < 8_000

    def test_an_invalid_cursor_starts_over(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.written(tmp_path)
        whole = source.read(path, None, budget=BUDGET)

        for strange in ("", "{}", "[]", "nonsense", '{"v":99}', '{"v":1}', "null"):
            look = source.read(path, replace(whole.cursor, carry=strange, size=0), budget=BUDGET)
            assert look.events == whole.events

    def test_another_database_under_the_name_is_read_from_its_beginning(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.place(tmp_path)
        with closing(self.open(tmp_path)) as store:
            for _ in range(3):
                self.go_on(store)
        cursor = looks(source, path)[-1].cursor
        path.unlink()
        self.open(tmp_path).close()

        whole = looks(source, path)

        assert [event.id for event in together(*looks(source, path, replace(whole[0], cursor=cursor)))[0]] == [
            event.id for event in together(*whole)[0]
        ]

    @pytest.mark.parametrize(
        ("content", "reason"),
        [(b"", "empty database"), (b"{}", "not a database"), (b"SQLite format 3\x00" + b"\x00" * 200, "not a database")],
    )
    def test_what_is_no_database_is_a_problem(self, tmp_path: Path, content: bytes, reason: str) -> None:
        look = self.make(tmp_path).read(self.written(tmp_path, content), None, budget=BUDGET)

        assert (look.events, [problem.reason for problem in look.problems]) == ((), [reason])

    def test_a_database_of_another_kind_is_a_problem(self, tmp_path: Path) -> None:
        path = self.place(tmp_path)
        path.parent.mkdir(parents=True)
        with closing(sqlite3.connect(path)) as other:
            other.executescript(
                "CREATE TABLE apples (id); CREATE VIEW session AS SELECT 1 AS id; CREATE VIEW ItemTable AS SELECT 1"
            )

        look = self.make(tmp_path).read(path, None, budget=BUDGET)

        assert (look.events, [problem.reason for problem in look.problems]) == ((), ["unknown schema"])

    def test_a_database_damaged_anywhere_is_never_fatal(self, tmp_path: Path) -> None:
        source, content = self.make(tmp_path), self.transcript()

        for place in range(0, len(content), 331):
            path = self.written(tmp_path, content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
            known: dict[str, Event] = {}
            for look in looks(source, path):
                known.update((event.id, event) for event in look.events)


def _made(fill: Callable[..., Store]) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "made.db")
        fill(path).close()
        return path.read_bytes()
