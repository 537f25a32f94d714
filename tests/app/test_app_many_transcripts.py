"""Very many transcripts: looked up in batches, and counted without reading each."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kite_memory.app import survey
from tests.fakes.extractors import ScriptedExtractor
from tests.fakes.house import FakeHouse, fake_house
from tests.sources.transcript import Transcript

MANY = 5


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for number in range(MANY):
        write(tmp_path, number)
    return tmp_path


@pytest.fixture
def house(home: Path) -> Iterator[FakeHouse]:
    with fake_house(home, ScriptedExtractor()) as opened:
        yield opened


def write(home: Path, number: int) -> Path:
    transcript = Transcript(f"5e551011-0000-4000-8000-{number:012d}", first=1 + 10 * number)
    transcript.user(f"Prune tree {number}, because its crown shades the young plums below it all summer long.")
    transcript.assistant("Pruned.")
    path = home / "claude" / "projects" / "-orchard" / f"5e551011-0000-4000-8000-{number:012d}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(transcript.bytes)
    return path


def survey_counts(house: FakeHouse) -> tuple[int, int, int]:
    survey, provider = house.pipeline.survey.now(), house.source.provider
    return survey.found[provider], survey.unread[provider], survey.behind[provider]


def test_files_and_sessions_are_looked_up_in_batches(house: FakeHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int | None] = []
    files, chunks = house.timeline.files.looked_at, house.outbox.formed.chunked_to

    def looked_at(paths: Sequence[str] | None = None) -> dict[str, tuple[int, int]]:
        sizes.append(None if paths is None else len(paths))
        return files(paths)

    def chunked_to(sessions: Sequence[tuple[str, str]] | None = None) -> dict[tuple[str, str], int]:
        sizes.append(None if sessions is None else len(sessions))
        return chunks(sessions)

    monkeypatch.setattr(survey, "_AT_ONCE", 2)
    monkeypatch.setattr(house.timeline.files, "looked_at", looked_at)
    monkeypatch.setattr(house.outbox.formed, "chunked_to", chunked_to)

    house.walk()

    assert sizes == [2, 2, 1, MANY, 2, 2, 1]
    assert house.pipeline.unread() == []


def test_sessions_come_a_page_at_a_time(house: FakeHouse) -> None:
    house.walk()

    pages = list(house.timeline.sessions.pages(2))

    assert [len(page) for page in pages] == [2, 2, 1]
    assert [state for page in pages for state in page] == house.timeline.sessions.states()


def test_without_a_daemon_only_so_many_files_are_compared(house: FakeHouse) -> None:
    provider = house.source.provider

    some, all = house.pipeline.survey.now(MANY - 1), house.pipeline.survey.now(MANY)

    assert (some.found[provider], some.more) == (MANY - 1, {provider})
    assert (all.found[provider], all.more) == (MANY, set())


def test_a_kept_survey_is_reported_without_looking_at_any_transcript(
    home: Path, house: FakeHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.pipeline.survey.keep()
    unread = house.pipeline.unread()
    before = survey_counts(house)
    monkeypatch.setattr(house.source, "transcripts", lambda: pytest.fail("looked at every transcript"))

    for source, path, behind in unread:
        house.pipeline.keep_up(source, path, behind, stop=lambda: False)
    after = survey_counts(house)
    house.pipeline.keep_up(house.source, write(home, MANY), None, stop=lambda: False)
    house.pipeline.keep_up(house.source, write(home, MANY), None, stop=lambda: False)

    size = sum(path.stat().st_size for _, path, _ in unread)
    assert (before, after, survey_counts(house)) == ((MANY, MANY, size), (MANY, 0, 0), (MANY + 1, 0, 0))


def test_without_a_kept_survey_everything_is_compared_each_time(home: Path, house: FakeHouse) -> None:
    first = survey_counts(house)
    house.walk()
    write(home, MANY)

    assert (first[:2], survey_counts(house)[:2]) == ((MANY, MANY), (MANY + 1, 1))


def test_open_sessions_are_counted_without_the_timeline(house: FakeHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    house.pipeline.ingest_many([(source, path) for source, path, _ in house.pipeline.unread()])
    counted = house.pipeline.open_count()
    house.pipeline.open_sessions()
    monkeypatch.setattr(house.timeline.sessions, "pages", lambda: pytest.fail("looked at every session"))

    assert counted == house.pipeline.open_count() == MANY
    house.pipeline.form_chunks()
    assert house.pipeline.open_count() == 0


def test_events_are_known_by_provider_without_counting_them(home: Path, house: FakeHouse) -> None:
    house.walk()
    asked: list[str] = []
    for connection in (house.timeline._database._reader, house.timeline._database.writer):
        connection.set_trace_callback(lambda query: asked.append(query) if "FROM events" in query and "COUNT" in query else None)

    counted = house.timeline.files.tallies()[0].events
    house.pipeline.ingest(house.source, write(home, MANY))
    grown = house.timeline.files.tallies()[0].events
    with fake_house(home, ScriptedExtractor()) as other:
        other.pipeline.ingest(other.source, write(home, MANY + 1))
    anew = house.timeline.files.tallies()[0].events

    assert (counted, grown, anew) == (2 * MANY, 2 * MANY + 2, 2 * MANY + 4)
    assert asked == []
