"""A transcript gives the same notes whether it is read while it grows or at once."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kite_memory.distill.condense import FREE
from kite_memory.distill.offline import OfflineExtractor
from kite_memory.distill.scheduler import Idle
from tests.fakes.services import FakeServices, fake_services
from tests.sources.transcript import SESSION, Transcript

BEGIN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
TREES = ("pear", "plum", "apple", "quince", "medlar", "cherry", "damson", "walnut")
LONG_AFTER = 10_000.0


def session() -> Transcript:
    """Eight turns; in each the agent says what it found, is silent for longer than a rest, goes on, and sums up."""
    transcript = Transcript()
    at = BEGIN

    def said(row: str, *words: str, after: float) -> None:
        nonlocal at
        at += timedelta(seconds=after)
        (transcript.user if row == "user" else transcript.assistant)(*words, timestamp=at.isoformat())

    for number, tree in enumerate(TREES):
        said("user", f"Why does the {tree} wilt? From now on always water the {tree} before noon.", after=40)
        said(
            "assistant",
            f"The {tree} wilts because frost{number} cracks its graft, so `graft_{tree}.py` must wrap it first.",
            after=2,
        )
        at += timedelta(seconds=6)
        transcript.call("Bash", f"toolu_{number}", command=f"prune --tree {tree}")
        transcript.rows[-1]["timestamp"] = at.isoformat()
        transcript.result(f"toolu_{number}", "pruned", timestamp=(at + timedelta(seconds=1)).isoformat())
        said("assistant", f"Decision: we wrap the {tree} in jute instead of plastic, since plastic rots bark{number}.", after=2)
    return transcript


class Clock:
    now = BEGIN.timestamp()

    def __call__(self) -> float:
        return self.now


def distil(services: FakeServices) -> None:
    services.pipeline.form_chunks()
    while not isinstance(services.pipeline.distil(), Idle):
        pass


def notes(services: FakeServices) -> dict[str, str]:
    return {
        entry.path: note.body
        for entry in services.vault.notes.entries()
        if (note := services.vault.notes.read(entry.path)) is not None
    }


def file_of(home: Path) -> Path:
    folder = home / "claude" / "projects" / "-orchard"
    folder.mkdir(parents=True)
    return folder / f"{SESSION}.jsonl"


def at_once(home: Path, transcript: Transcript) -> dict[str, str]:
    clock = Clock()
    with fake_services(home, OfflineExtractor(), policy=FREE, clock=clock) as services:
        path = file_of(home)
        path.write_bytes(transcript.bytes)
        clock.now += LONG_AFTER
        services.pipeline.ingest(services.source, path)
        clock.now += LONG_AFTER
        distil(services)
        return notes(services)


def line_by_line(home: Path, transcript: Transcript, looks_at: tuple[float, ...]) -> dict[str, str]:
    clock = Clock()
    times = [datetime.fromisoformat(row["timestamp"]).timestamp() for row in transcript.rows]
    with fake_services(home, OfflineExtractor(), policy=FREE, clock=clock) as services:
        path = file_of(home)
        for row, at, following in zip(transcript.rows, times, [*times[1:], times[-1] + LONG_AFTER], strict=True):
            clock.now = at
            with path.open("ab") as file:
                file.write(json.dumps(row).encode() + b"\n")
            services.pipeline.ingest(services.source, path)
            for pause in looks_at:
                if at + pause < following:
                    clock.now = at + pause
                    distil(services)
        return notes(services)


@pytest.fixture(scope="module")
def read_at_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    yield at_once(tmp_path_factory.mktemp("once"), session())


@pytest.mark.parametrize("looks_at", [(1.1, 3.2, 2_000.0), (4.9, 2_000.0), (2_000.0,)])
def test_a_session_replayed_line_by_line_gives_the_notes_of_one_read_at_once(
    tmp_path: Path, read_at_once: dict[str, str], looks_at: tuple[float, ...]
) -> None:
    replayed = line_by_line(tmp_path, session(), looks_at)

    assert len(read_at_once) >= len(TREES)
    assert replayed == read_at_once
