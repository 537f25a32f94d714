"""Promises of every source about malformed input: it costs no more than its size, is counted, and ends no reading."""

import json
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from kite_memory.model.event import EventType, ReadResult, RedactedResult
from kite_memory.sources.common.source import CompositeSource, Source
from kite_memory.timeline.resume import brief
from kite_memory.timeline.store import Timeline

WILD: tuple[Any, ...] = (None, True, -1, 10**18, 1e300, "", "wild", [], {}, [{}], {"": {}}, "@deep@")
_DEEP = b"[" * 1000 + b"]" * 1000
"""Deeper than Python's recursion limit, but not too deep for a parser."""

Place = tuple[str | int, ...]


def places(value: Any, to: Place = ()) -> Iterator[Place]:
    """Yield the path of every value, outermost first."""
    if to:
        yield to
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*to, key))


def replaced(value: Any, to: Place, by: Any) -> Any:
    if not to:
        return by
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[to[0]] = replaced(value[to[0]], to[1:], by)
    return copy


def written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass").replace(b'"@deep@"', _DEEP)


def wild_lines(content: bytes) -> bytes:
    """Yield every line, and every line again with each of its values replaced by each of the wild ones."""
    rows = [_parsed(line) for line in content.split(b"\n")]
    wild = [written(replaced(row, place, by)) for row in rows if row for place in places(row) for by in WILD]
    return content.rstrip(b"\n") + b"\n" + b"\n".join(wild) + b"\n"


def wild_documents(content: bytes) -> Iterator[bytes]:
    whole = json.loads(content)
    for place in places(whole):
        for by in WILD:
            yield written(replaced(whole, place, by))


def _parsed(data: bytes | str) -> Any:
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def wild_rows(database: sqlite3.Connection) -> Iterator[Callable[[], None]]:
    """Yield changes of a database's values, each with its reversal: one for each kind of wild value, wherever there are objects."""
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        for column in columns:
            held = database.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
            change = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"
            objects = {row: found for row, value in held if isinstance(value, str | bytes) and (found := _parsed(value))}
            for place in dict.fromkeys(place for found in objects.values() for place in places(found)):
                for by in WILD:
                    for row, found in objects.items():
                        if place in set(places(found)):
                            database.execute(change, (written(replaced(found, place, by)).decode("utf-8", "replace"), row))

                    def back(change: str = change, held: list[tuple[int, Any]] = held) -> None:
                        for row, value in held:
                            database.execute(change, (value, row))

                    yield back


BUDGET = 4 * 1024 * 1024

_DAY = re.compile(rb"(?<!\d)20\d\d-\d\d-\d\d(?=[T ]\d\d:)")
_MILLISECOND = re.compile(rb"(?<!\d)1[67]\d{11}(?!\d)")
_DAYS = (b"2026-03-02", b"9999-12-31", b"1970-01-01", b"0001-01-01", b"2100-01-01")
_MILLISECONDS = (b"1772442000000", b"9999999999999", b"1000000000000", b"4102444800000")


class BadInputContract(ABC):
    @abstractmethod
    def make(self, folder: Path) -> Source:
        """Return a source over an agent's home at ``folder``, which is still empty."""

    @abstractmethod
    def place(self, folder: Path) -> Path:
        """Return where a transcript of that agent is stored. Writes nothing."""

    @abstractmethod
    def transcript(self) -> bytes:
        """Return a small transcript that yields several events and at least one problem."""

    @abstractmethod
    def wildly(self, folder: Path) -> Iterator[Path]:
        """Yield the transcript once for each of its places, with an unexpected value in that place."""

    def written(self, folder: Path, content: bytes | None = None) -> Path:
        path = self.place(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.transcript() if content is None else content)
        return path

    def with_clocks_that_jump(self, folder: Path) -> Path:
        """Return the transcript with the clock set to another century and back again between its lines."""
        days, milliseconds = cycle(_DAYS), cycle(_MILLISECONDS)
        content = _DAY.sub(lambda _: next(days), self.transcript())
        return self.written(folder, _MILLISECOND.sub(lambda _: next(milliseconds), content))

    def of_another_version(self, folder: Path) -> Path:
        """Return the transcript as a later version of the agent might write it, with other names for its fields."""
        content = self.transcript()
        for name, other in ((b'"type"', b'"sort"'), (b'"role"', b'"part"'), (b'"source"', b'"spring"')):
            content = content.replace(name, other)
        return self.written(folder, content)

    def read_results(self, source: Source, path: Path) -> list[ReadResult]:
        found = [source.read(path, None, budget=BUDGET)]
        while found[-1].more:
            found.append(source.read(path, found[-1].cursor, budget=BUDGET))
        return found

    def test_any_value_in_any_place_is_survived(self, tmp_path: Path) -> None:
        with closing(Timeline(tmp_path / "timeline.sqlite")) as timeline:
            for path in self.wildly(tmp_path / "home"):
                source = self.make(tmp_path / "home")
                read_results = self.read_results(source, path)

                assert all(0 < len(problem.reason) <= 80 for read_result in read_results for problem in read_result.problems)
                timeline.commit(map(RedactedResult, read_results), source.provider)

    def test_another_version_is_counted_and_not_guessed_at(self, tmp_path: Path) -> None:
        read_results = self.read_results(self.make(tmp_path), self.of_another_version(tmp_path))

        assert [event for read_result in read_results for event in read_result.events if event.type is EventType.USER_MESSAGE] == []
        assert [problem for read_result in read_results for problem in read_result.problems]

    def test_a_clock_that_jumps_costs_nothing(self, tmp_path: Path) -> None:
        steady = self.read_results(self.make(tmp_path / "steady"), self.written(tmp_path / "steady"))
        source = self.make(tmp_path / "jumping")

        read_results = self.read_results(source, self.with_clocks_that_jump(tmp_path / "jumping"))

        assert sorted(event_texts(read_results)) == sorted(event_texts(steady))
        with closing(Timeline(tmp_path / "timeline.sqlite")) as timeline:
            assert timeline.commit(map(RedactedResult, read_results), source.provider) == len(event_texts(steady))
            for overview in timeline.sessions.overviews():
                assert (
                    brief(overview.session, timeline.events.of_session(overview.session.provider, overview.session.id)) is not None
                )

    @pytest.mark.parametrize("up", range(8))
    def test_a_file_where_a_folder_should_be_holds_no_transcripts(self, tmp_path: Path, up: int) -> None:
        home = tmp_path / "home"
        source, path = self.make(home), self.place(home)
        above = [folder for folder in path.parents if folder.is_relative_to(home)]
        folder = above[min(up, len(above) - 1)]
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.write_bytes(self.transcript())

        read_result = source.read(path, None, budget=BUDGET)

        assert list(source.transcripts()) == []
        assert source.owns(path)
        assert (read_result.session, read_result.events, len(read_result.problems)) == (None, (), 1)

    def test_an_entry_that_leads_to_itself_hides_no_transcript(self, tmp_path: Path) -> None:
        home = tmp_path / "home"
        source, path = self.make(home), self.written(home)
        for folder in [folder for folder in path.parents if folder.is_relative_to(home)]:
            for name in ("-a", "z"):
                (folder / name).symlink_to(name)

        assert list(source.transcripts()) == [path]


def event_texts(read_results: list[ReadResult]) -> list[tuple[str, str]]:
    return [(event.type.value, event.text) for read_result in read_results for event in read_result.events]


def watched(source: Source) -> tuple[Path, ...]:
    return (*source.roots(), *(source.flat_roots() if isinstance(source, CompositeSource) else ()))
