"""Very many transcripts: looked up in batches, and counted without reading each."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kite_memory.app import survey
from tests.fakes.extractors import ScriptedExtractor
from tests.fakes.services import FakeServices, fake_services
from tests.sources.transcript import Transcript

MANY = 5


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for number in range(MANY):
        write(tmp_path, number)
    return tmp_path


@pytest.fixture
def services(home: Path) -> Iterator[FakeServices]:
    with fake_services(home, ScriptedExtractor()) as opened:
        yield opened


def write(home: Path, number: int) -> Path:
    transcript = Transcript(f"5e551011-0000-4000-8000-{number:012d}", first=1 + 10 * number)
    transcript.user(f"Prune tree {number}, because its crown shades the young plums below it all summer long.")
    transcript.assistant("Pruned.")
    path = home / "claude" / "projects" / "-orchard" / f"5e551011-0000-4000-8000-{number:012d}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(transcript.bytes)
    return path


def survey_counts(services: FakeServices) -> tuple[int, int, int]:
    survey, provider = services.pipeline.survey.now(), services.source.provider
    return survey.found[provider], survey.unread[provider], survey.behind[provider]


def test_files_and_sessions_are_looked_up_in_batches(services: FakeServices, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int | None] = []
    files, chunks = services.timeline.files.looked_at, services.outbox.formed.chunked_to

    def looked_at(paths: Sequence[str] | None = None) -> dict[str, tuple[int, int]]:
        sizes.append(None if paths is None else len(paths))
        return files(paths)

    def chunked_to(sessions: Sequence[tuple[str, str]] | None = None) -> dict[tuple[str, str], int]:
        sizes.append(None if sessions is None else len(sessions))
        return chunks(sessions)

    monkeypatch.setattr(survey, "_AT_ONCE", 2)
    monkeypatch.setattr(services.timeline.files, "looked_at", looked_at)
    monkeypatch.setattr(services.outbox.formed, "chunked_to", chunked_to)

    services.run_until_idle()

    assert sizes == [2, 2, 1, MANY, 2, 2, 1]
    assert services.pipeline.unread() == []


def test_sessions_come_a_page_at_a_time(services: FakeServices) -> None:
    services.run_until_idle()

    pages = list(services.timeline.sessions.pages(2))

    assert [len(page) for page in pages] == [2, 2, 1]
    assert [state for page in pages for state in page] == services.timeline.sessions.states()


def test_without_a_daemon_only_so_many_files_are_compared(services: FakeServices) -> None:
    provider = services.source.provider

    some, all = services.pipeline.survey.now(MANY - 1), services.pipeline.survey.now(MANY)

    assert (some.found[provider], some.more) == (MANY - 1, {provider})
    assert (all.found[provider], all.more) == (MANY, set())


def test_a_kept_survey_is_reported_without_looking_at_any_transcript(
    home: Path, services: FakeServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.pipeline.survey.keep()
    unread = services.pipeline.unread()
    before = survey_counts(services)
    monkeypatch.setattr(services.source, "transcripts", lambda: pytest.fail("looked at every transcript"))

    for source, path, behind in unread:
        services.pipeline.ingest_changed(source, path, behind, stop=lambda: False)
    after = survey_counts(services)
    services.pipeline.ingest_changed(services.source, write(home, MANY), None, stop=lambda: False)
    services.pipeline.ingest_changed(services.source, write(home, MANY), None, stop=lambda: False)

    size = sum(path.stat().st_size for _, path, _ in unread)
    assert (before, after, survey_counts(services)) == ((MANY, MANY, size), (MANY, 0, 0), (MANY + 1, 0, 0))


def test_without_a_kept_survey_everything_is_compared_each_time(home: Path, services: FakeServices) -> None:
    first = survey_counts(services)
    services.run_until_idle()
    write(home, MANY)

    assert (first[:2], survey_counts(services)[:2]) == ((MANY, MANY), (MANY + 1, 1))


def test_open_sessions_are_counted_without_the_timeline(services: FakeServices, monkeypatch: pytest.MonkeyPatch) -> None:
    services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])
    counted = services.pipeline.open_count()
    services.pipeline.open_sessions()
    monkeypatch.setattr(services.timeline.sessions, "pages", lambda: pytest.fail("looked at every session"))

    assert counted == services.pipeline.open_count() == MANY
    services.pipeline.form_chunks()
    assert services.pipeline.open_count() == 0


def test_events_are_known_by_provider_without_counting_them(home: Path, services: FakeServices) -> None:
    services.run_until_idle()
    asked: list[str] = []
    for connection in (services.timeline._database._reader, services.timeline._database.writer):
        connection.set_trace_callback(lambda query: asked.append(query) if "FROM events" in query and "COUNT" in query else None)

    counted = services.timeline.files.tallies()[0].events
    services.pipeline.ingest(services.source, write(home, MANY))
    grown = services.timeline.files.tallies()[0].events
    with fake_services(home, ScriptedExtractor()) as other:
        other.pipeline.ingest(other.source, write(home, MANY + 1))
    anew = services.timeline.files.tallies()[0].events

    assert (counted, grown, anew) == (2 * MANY, 2 * MANY + 2, 2 * MANY + 4)
    assert asked == []
