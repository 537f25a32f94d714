"""`kmem trace`: each part of a session, what came of it, and why nothing did."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kite_memory.app.timeline_queries import SessionNotFound
from kite_memory.app.trace import Tracer
from kite_memory.distill.condense import ChunkPolicy
from kite_memory.distill.extractor import Answer, Busy, Refused, Usage
from kite_memory.model.note import Record
from tests.fakes.extractors import ScriptedExtractor
from tests.fakes.services import FakeServices, fake_services
from tests.sources.transcript import SESSION, Transcript

NOW = datetime(2026, 3, 3, tzinfo=UTC)
SAID = "We graft the old pear on quince stock, because the orchard floods every spring and pear roots drown there."


class Traced:
    """Services over one transcript that a scripted extractor has read."""

    def __init__(self, home: Path, services: FakeServices) -> None:
        self.services = services
        self.file = home / "claude" / "projects" / "-orchard" / f"{SESSION}.jsonl"

    def trace(self) -> dict[str, Any]:
        services = self.services
        return Tracer(
            timeline=services.timeline,
            outbox=services.outbox,
            vault=services.vault,
            recall=services.recall,
            pipeline=services.pipeline,
            clock=lambda: NOW,
        ).trace(SESSION[:8])


@pytest.fixture
def extractor() -> ScriptedExtractor:
    return ScriptedExtractor()


@pytest.fixture
def traced(tmp_path: Path, extractor: ScriptedExtractor) -> Iterator[Traced]:
    (tmp_path / "claude" / "projects" / "-orchard").mkdir(parents=True)
    with fake_services(tmp_path, extractor, clock=lambda: NOW.timestamp()) as services:
        yield Traced(tmp_path, services)


def transcript(*said: str) -> bytes:
    written = Transcript(SESSION)
    for text in said:
        written.user(text)
        written.assistant(f"Understood: {text}")
    return written.bytes


def test_a_note_is_traced_back_to_its_line(traced: Traced) -> None:
    traced.file.write_bytes(transcript(SAID))
    traced.services.run_until_idle()

    (part,) = traced.trace()["parts"]

    (note,) = part["notes"]
    assert (part["state"], part["extractor"], part["events"]) == ("written", "scripted", 2)
    assert (note["fate"], note["index"], note["status"]) == ("in the vault", "indexed", "accepted")
    assert [each["where"] for each in note["evidence"]] == [f"{SESSION}.jsonl:1"]


def test_lines_without_events_are_counted_by_their_type(traced: Traced) -> None:
    traced.file.write_bytes(transcript(SAID) + b'{"type":"file-history-snapshot"}\nhalf a li\n')
    traced.services.run_until_idle()

    (file,) = traced.trace()["files"]

    assert file["lines"] == {"with_events": 2, "without_events": {"file-history-snapshot": 1, "not JSON": 1}}
    assert [each["reason"] for each in file["problems"]] == ["damaged line"]


@pytest.mark.parametrize(
    ("outcome", "state", "why"),
    [
        (Refused(reason="the model declined to answer"), "refused", "the model declined to answer"),
        (Answer(record=Record(topics=()), usage=Usage()), "nothing", "scripted found nothing to keep"),
        (
            Answer(record=Record(topics=()), usage=Usage(), refused_items=("trivial", "trivial", "play-by-play")),
            "nothing",
            "the quality gate did not let through: 2 trivial, 1 play-by-play",
        ),
        (Busy(reason="the service is overloaded", retry_after=600), "waiting", "the service is overloaded"),
    ],
)
def test_it_says_why_nothing_came_of_a_chunk(tmp_path: Path, outcome: Any, state: str, why: str) -> None:
    (tmp_path / "claude" / "projects" / "-orchard").mkdir(parents=True)
    with fake_services(tmp_path, ScriptedExtractor([outcome]), clock=lambda: NOW.timestamp()) as services:
        traced = Traced(tmp_path, services)
        traced.file.write_bytes(transcript(SAID))
        services.run_until_idle()

        (part,) = traced.trace()["parts"]

    assert part["state"] == state
    assert part["why"].endswith(why)
    assert part["notes"] == []


def test_a_chunk_in_which_little_was_said_is_not_asked_about(traced: Traced, extractor: ScriptedExtractor) -> None:
    traced.file.write_bytes(transcript("ok"))
    traced.services.run_until_idle()

    (part,) = traced.trace()["parts"]

    assert extractor.asked == []
    assert (part["state"], part["why"]) == ("nothing", "too little was said for anybody to be asked")


def test_events_in_no_chunk_are_a_part_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "claude" / "projects" / "-orchard").mkdir(parents=True)
    patient = ChunkPolicy(target=10**6, most=10**7, idle=10**9, stalled=10**9)
    with fake_services(tmp_path, ScriptedExtractor(), policy=patient, clock=lambda: NOW.timestamp()) as services:
        traced = Traced(tmp_path, services)
        traced.file.write_bytes(transcript(SAID))
        services.run_until_idle()

        (still_open,) = traced.trace()["parts"]
        services.pipeline.open_sessions(skip_before=NOW)
        (passed_over,) = traced.trace()["parts"]

    assert (still_open["state"], still_open["events"]) == ("open", 2)
    assert passed_over["state"] == "passed over"
    assert "kmem backfill" in passed_over["why"]


def test_a_forgotten_note_is_reported_as_deleted(traced: Traced) -> None:
    traced.file.write_bytes(transcript(SAID))
    traced.services.run_until_idle()
    (path,) = (entry.path for entry in traced.services.vault.notes.entries())
    traced.services.vault.edits.forget(path)

    (part,) = traced.trace()["parts"]

    assert [note["fate"] for note in part["notes"]] == ["deleted or forgotten; it is not written again"]


def test_every_event_is_in_one_part(traced: Traced) -> None:
    traced.file.write_bytes(transcript(SAID, *(f"{number} {SAID}" for number in range(400))))
    traced.services.run_until_idle()

    report = traced.trace()

    assert len(report["parts"]) > 1
    assert sum(part["events"] for part in report["parts"]) == report["events"]["total"] == 802


def test_tracing_changes_nothing_that_is_kept(traced: Traced, tmp_path: Path) -> None:
    traced.file.write_bytes(transcript(SAID))
    traced.services.run_until_idle()
    before = {path: path.read_bytes() for path in (tmp_path / "vault").rglob("*") if path.is_file()}
    chunks = traced.services.outbox.formed.of_session("claude-code", SESSION)

    traced.trace()

    assert {path: path.read_bytes() for path in (tmp_path / "vault").rglob("*") if path.is_file()} == before
    assert traced.services.outbox.formed.of_session("claude-code", SESSION) == chunks


def test_a_session_that_is_unknown_is_an_error(traced: Traced) -> None:
    with pytest.raises(SessionNotFound):
        traced.trace()
