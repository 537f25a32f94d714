"""Contracts of every source, for whole and for malformed input. Subclass one of these, and override the methods that make yours."""

import itertools
import json
import os
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from kite_memory.model.event import Cursor, Event, EventType, Problem, ReadResult, RedactedResult
from kite_memory.sources import CompositeSource, Source
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


__all__ = ["BUDGET", "AppendOnlySourceContract", "DocumentSourceContract", "FileSourceContract", "SourceContract", "together"]


class SourceContract(BadInputContract):
    @abstractmethod
    def strangers(self, folder: Path) -> list[Path]:
        """Return files in the agent's home that are not transcripts."""

    def test_it_says_whose_transcripts_it_reads(self, tmp_path: Path) -> None:
        source = self.make(tmp_path)

        assert source.provider
        assert source.provider == self.make(tmp_path).provider

    def test_an_agent_that_was_never_used_has_no_transcripts(self, tmp_path: Path) -> None:
        source = self.make(tmp_path)

        assert list(source.transcripts()) == []
        assert watched(source)

    def test_a_transcript_is_found_owned_and_watched(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.written(tmp_path)

        assert list(source.transcripts()) == [path]
        assert source.owns(path)
        assert any(path.is_relative_to(root) for root in watched(source))

    def test_other_files_are_neither_found_nor_owned(self, tmp_path: Path) -> None:
        source = self.make(tmp_path)
        for stranger in self.strangers(tmp_path):
            stranger.parent.mkdir(parents=True, exist_ok=True)
            stranger.write_bytes(self.transcript())

            assert not source.owns(stranger)
        assert list(source.transcripts()) == []

    def test_owning_is_decided_by_name_alone(self, tmp_path: Path) -> None:
        assert self.make(tmp_path).owns(self.place(tmp_path))

    def test_events_are_whole(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.written(tmp_path)

        read_result = source.read(path, None, budget=BUDGET)

        assert read_result.session is not None
        assert read_result.events
        assert len({event.id for event in read_result.events}) == len(read_result.events)
        assert {event.session for event in read_result.events} == {read_result.session.id}
        assert {event.provider for event in read_result.events} == {source.provider} == {read_result.session.provider}
        assert all(event.at.utcoffset() is not None for event in read_result.events)
        assert all(event.where.file == str(path) for event in read_result.events)

    def test_ordinals_rise(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.written(tmp_path)

        ordinals = [event.ordinal for event in source.read(path, None, budget=BUDGET).events]

        assert ordinals == sorted(set(ordinals))

    def test_a_problem_names_its_file_and_place_in_few_words(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.written(tmp_path)

        problems = source.read(path, None, budget=BUDGET).problems

        assert problems
        assert {problem.file for problem in problems} == {str(path)}
        assert all(0 < len(problem.reason) <= 80 for problem in problems)

    def test_reading_on_at_the_end_yields_nothing(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.written(tmp_path)
        first = source.read(path, None, budget=BUDGET)

        second = source.read(path, first.cursor, budget=BUDGET)

        assert second == replace(first, events=(), problems=())

    def test_reading_the_same_file_twice_yields_the_same(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.written(tmp_path)

        assert source.read(path, None, budget=BUDGET) == source.read(path, None, budget=BUDGET)

    def test_nothing_is_written(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.written(tmp_path)
        before = {each: each.stat().st_mtime_ns for each in tmp_path.rglob("*")}

        source.read(path, None, budget=BUDGET)
        list(source.transcripts())

        assert {each: each.stat().st_mtime_ns for each in tmp_path.rglob("*")} == before
        assert path.read_bytes() == self.transcript()

    def test_a_vanished_file_is_a_problem_and_the_cursor_stays(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.written(tmp_path)
        cursor = source.read(path, None, budget=BUDGET).cursor
        path.unlink()

        read_result = source.read(path, cursor, budget=BUDGET)

        assert (read_result.events, read_result.cursor, read_result.more) == ((), cursor, False)
        assert len(read_result.problems) == 1

    def test_a_file_that_never_was_is_a_problem_at_the_beginning(self, tmp_path: Path) -> None:
        read_result = self.make(tmp_path).read(self.place(tmp_path), None, budget=BUDGET)

        assert read_result.cursor == Cursor(position=0, size=0, mtime_ns=0)
        assert len(read_result.problems) == 1

    def test_a_folder_in_a_transcripts_place_is_a_problem(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.place(tmp_path)
        path.mkdir(parents=True)

        read_result = source.read(path, None, budget=BUDGET)

        assert (read_result.session, read_result.events) == (None, ())
        assert len(read_result.problems) == 1

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read everything")
    def test_a_file_that_may_not_be_read_is_a_problem(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.written(tmp_path)
        path.chmod(0)

        read_result = source.read(path, None, budget=BUDGET)

        assert (read_result.session, read_result.events) == (None, ())
        assert len(read_result.problems) == 1


class FileSourceContract(SourceContract):
    """For transcripts that are files of their own, and nothing but plain files."""

    def test_a_link_out_of_the_root_is_not_followed(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path / "home"), self.place(tmp_path / "home")
        elsewhere = tmp_path / "elsewhere.jsonl"
        elsewhere.write_bytes(self.transcript())
        path.parent.mkdir(parents=True)
        path.symlink_to(elsewhere)

        read_result = source.read(path, None, budget=BUDGET)

        assert (read_result.events, [problem.reason for problem in read_result.problems]) == ((), ["outside its root"])

    def test_a_link_that_leads_nowhere_or_to_itself_is_a_problem(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.place(tmp_path)
        path.parent.mkdir(parents=True)
        path.symlink_to(path.name)
        loop = source.read(path, None, budget=BUDGET)
        path.unlink()
        path.symlink_to(path.with_suffix(".gone"))
        dangling = source.read(path, None, budget=BUDGET)

        assert [problem.reason for problem in loop.problems] == ["file cannot be read"]
        assert [problem.reason for problem in dangling.problems] == ["file is gone"]

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
    def test_a_pipe_is_not_waited_on(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.place(tmp_path)
        path.parent.mkdir(parents=True)
        os.mkfifo(path)

        read_result = source.read(path, None, budget=BUDGET)

        assert [problem.reason for problem in read_result.problems] == ["not a regular file"]


def cuts(content: bytes, every: int) -> list[int]:
    """Return the ascending places to cut at: one in ``every``, and all next to the end of a line or within a character."""
    close = {near for at, byte in enumerate(content) if byte == ord("\n") or byte > 0x7F for near in (at, at + 1, at + 2)}
    return sorted({*range(0, len(content), every), *(at for at in close if at <= len(content)), len(content)})


class AppendOnlySourceContract(FileSourceContract):
    """For transcripts that only grow at their end.

    ``cut_every`` is the number of bytes between two tried cuts, except at ends of lines and within characters, where all are tried.
    """

    cut_every = 1

    def wildly(self, folder: Path) -> Iterator[Path]:
        yield self.written(folder, wild_lines(self.transcript()))

    def check_line(self, line: bytes) -> None:
        """Check that an event leads back to its line."""
        assert line.startswith(b"{")
        assert line.endswith(b"}")

    def whole(self, folder: Path) -> ReadResult:
        return self.make(folder).read(self.written(folder), None, budget=BUDGET)

    def test_a_file_cut_anywhere_reads_the_same_in_two_looks(self, tmp_path: Path) -> None:
        source, content = self.make(tmp_path), self.transcript()
        whole = self.whole(tmp_path)
        path = self.place(tmp_path)

        for cut in cuts(content, self.cut_every):
            path.write_bytes(content[:cut])
            first = source.read(path, None, budget=BUDGET)
            with path.open("ab") as file:
                file.write(content[cut:])
            rest = source.read(path, first.cursor, budget=BUDGET)

            assert together(first, rest) == (whole.events, whole.problems), cut
            assert rest.cursor.position == whole.cursor.position
            assert rest.session == whole.session

    @pytest.mark.parametrize("budget", [1, 2, 7, 100, 1000, 3333])
    def test_a_small_budget_only_takes_more_looks(self, tmp_path: Path, budget: int) -> None:
        source, whole = self.make(tmp_path), self.whole(tmp_path)
        path = self.place(tmp_path)

        read_results = [source.read(path, None, budget=budget)]
        while read_results[-1].more:
            read_results.append(source.read(path, read_results[-1].cursor, budget=budget))

        assert together(*read_results) == (whole.events, whole.problems)
        positions = [read_result.cursor.position for read_result in read_results]
        assert positions == sorted(set(positions))

    def test_lines_that_are_glued_are_read_to_the_end(self, tmp_path: Path) -> None:
        source, content = self.make(tmp_path), self.transcript()

        for newline in (at for at, byte in enumerate(content[:-1]) if byte == ord("\n")):
            path = self.written(tmp_path, content[:newline] + content[newline + 1 :])
            read_result = source.read(path, None, budget=BUDGET)
            while read_result.more:
                before, read_result = read_result, source.read(path, read_result.cursor, budget=BUDGET)
                assert read_result.cursor.position > before.cursor.position, newline

            assert read_result.cursor.position == len(content) - 1, newline

    def test_a_last_line_without_its_newline_waits(self, tmp_path: Path) -> None:
        source, content = self.make(tmp_path), self.transcript().rstrip(b"\n")
        path = self.written(tmp_path, content)
        first = source.read(path, None, budget=BUDGET)

        again = source.read(path, first.cursor, budget=BUDGET)

        assert first.cursor.position == content.rindex(b"\n") + 1
        assert not first.more
        assert (again.events, again.cursor) == ((), first.cursor)

    def test_a_cursor_is_small(self, tmp_path: Path) -> None:
        cursor = self.whole(tmp_path).cursor

        assert len(cursor.identity) + len(cursor.carry) < 8_000

    def test_where_leads_to_the_line(self, tmp_path: Path) -> None:
        content = self.transcript()

        for event in self.whole(tmp_path).events:
            self.check_line(content[event.where.start : event.where.end])

    def test_a_truncated_file_is_read_again_from_its_beginning(self, tmp_path: Path) -> None:
        source, whole = self.make(tmp_path), self.whole(tmp_path)
        path, content = self.place(tmp_path), self.transcript()
        path.write_bytes(content[: content.index(b"\n", len(content) // 2) + 1])

        read_result = source.read(path, whole.cursor, budget=BUDGET)

        assert read_result.events == whole.events[: len(read_result.events)] != ()
        assert read_result.problems[0].reason == "file truncated"

    def test_a_file_truncated_and_regrown_is_read_again_from_its_beginning(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.place(tmp_path)
        content = self.transcript()
        half = content.index(b"\n", len(content) // 2) + 1
        self.written(tmp_path, content[:half])
        cursor = source.read(path, None, budget=BUDGET).cursor
        path.write_bytes(content[half:] + content[half:] + content)

        read_results = [source.read(path, cursor, budget=BUDGET)]
        while read_results[-1].more:
            read_results.append(source.read(path, read_results[-1].cursor, budget=BUDGET))

        assert read_results[0].problems[0].reason == "file rewritten"
        assert read_results[-1].cursor.position == path.stat().st_size

    def test_another_file_under_the_name_is_read_from_its_beginning(self, tmp_path: Path) -> None:
        source, whole = self.make(tmp_path), self.whole(tmp_path)
        path, content = self.place(tmp_path), self.transcript()
        other = path.with_suffix(".new")
        other.write_bytes(b"\n" + content)
        other.replace(path)

        read_result = source.read(path, whole.cursor, budget=BUDGET)

        assert [event.id for event in read_result.events] == [event.id for event in whole.events]
        assert read_result.problems[0].reason == "file replaced"

    def test_a_copy_of_the_file_is_read_on(self, tmp_path: Path) -> None:
        source, whole = self.make(tmp_path), self.whole(tmp_path)
        path, content = self.place(tmp_path), self.transcript()
        copy = path.with_suffix(".new")
        copy.write_bytes(content)
        copy.replace(path)

        assert source.read(path, whole.cursor, budget=BUDGET).problems == ()

    def test_an_invalid_cursor_starts_over(self, tmp_path: Path) -> None:
        source, whole = self.make(tmp_path), self.whole(tmp_path)
        path = self.place(tmp_path)

        for strange in ("", "{}", "[]", "nonsense", '{"head":-1}', whole.cursor.carry):
            read_result = source.read(path, replace(whole.cursor, identity=strange), budget=BUDGET)
            assert read_result.events == whole.events
        for strange in ("", "{}", "[]", "nonsense", '{"v":99}'):
            read_result = source.read(path, replace(whole.cursor, carry=strange), budget=BUDGET)
            assert read_result.events == whole.events


class DocumentSourceContract(FileSourceContract):
    """For transcripts that are rewritten whenever something changes."""

    def wildly(self, folder: Path) -> Iterator[Path]:
        for document in wild_documents(self.transcript()):
            yield self.written(folder, document)

    @abstractmethod
    def versions(self) -> list[bytes]:
        """Return the states of one transcript, from its first words to `transcript`. Events returned before may grow, but not
        vanish.
        """

    def test_it_says_that_it_amends(self, tmp_path: Path) -> None:
        assert self.make(tmp_path).read(self.written(tmp_path), None, budget=BUDGET).amends

    def test_followed_from_version_to_version_it_reads_as_at_once(self, tmp_path: Path) -> None:
        source = self.make(tmp_path)
        known: dict[str, Event] = {}
        cursor: Cursor | None = None

        for version in self.versions():
            read_result = source.read(self.written(tmp_path, version), cursor, budget=BUDGET)
            cursor = read_result.cursor
            known.update((event.id, event) for event in read_result.events)

        whole = source.read(self.written(tmp_path), None, budget=BUDGET)
        assert sorted(known.values(), key=lambda event: event.ordinal) == list(whole.events)
        assert cursor is not None
        assert cursor.position == len(self.transcript())

    def test_only_new_or_changed_events_are_returned(self, tmp_path: Path) -> None:
        source, versions = self.make(tmp_path), self.versions()
        assert len(versions) > 2
        for before, after in itertools.pairwise(versions):
            first = source.read(self.written(tmp_path, before), None, budget=BUDGET)

            second = source.read(self.written(tmp_path, after), first.cursor, budget=BUDGET)

            whole = source.read(self.written(tmp_path, after), None, budget=BUDGET)
            assert {event.id for event in second.events} >= {event.id for event in set(whole.events) - set(first.events)}
            assert len(second.events) < len(whole.events) or len(first.events) <= 1

    def test_a_half_written_document_waits_for_its_other_half(self, tmp_path: Path) -> None:
        source, (before, *_, after) = self.make(tmp_path), self.versions()
        first = source.read(self.written(tmp_path, before), None, budget=BUDGET)
        whole = source.read(self.written(tmp_path, after), first.cursor, budget=BUDGET)

        for cut in range(1, len(after.rstrip()) - 1, 7):
            half = source.read(self.written(tmp_path, after[:cut]), first.cursor, budget=BUDGET)
            rest = source.read(self.written(tmp_path, after), half.cursor, budget=BUDGET)

            assert (half.events, len(half.problems), half.cursor.position) == ((), 1, first.cursor.position), cut
            assert rest.events == whole.events, cut

    def test_a_half_written_document_is_not_looked_at_again_until_it_changes(self, tmp_path: Path) -> None:
        path = self.written(tmp_path, self.transcript()[:-9])

        cursor = self.make(tmp_path).read(path, None, budget=BUDGET).cursor

        assert (cursor.size, cursor.mtime_ns) == (path.stat().st_size, path.stat().st_mtime_ns)

    def test_a_cursor_is_small(self, tmp_path: Path) -> None:
        cursor = self.make(tmp_path).read(self.written(tmp_path), None, budget=BUDGET).cursor

        assert len(cursor.identity) + len(cursor.carry) < 8_000

    def test_an_invalid_cursor_starts_over(self, tmp_path: Path) -> None:
        source = self.make(tmp_path)
        path = self.written(tmp_path)
        whole = source.read(path, None, budget=BUDGET)

        for strange in ("", "{}", "[]", "nonsense", '{"v":99}'):
            read_result = source.read(path, replace(whole.cursor, identity=strange, carry=strange), budget=BUDGET)
            assert read_result.events == whole.events


def together(*read_results: ReadResult) -> tuple[tuple[Event, ...], tuple[Problem, ...]]:
    return tuple(event for read_result in read_results for event in read_result.events), tuple(
        problem for read_result in read_results for problem in read_result.problems
    )
