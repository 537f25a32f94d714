"""What the timeline shows recall."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from kite_memory.app.note_indexer import said_about
from kite_memory.app.session_context import before
from kite_memory.extensions.contract.extractor_contract import SESSION, event
from kite_memory.model.event import Cursor, Event, EventType, ReadResult, RedactedResult
from kite_memory.model.note import Note, NoteKind
from kite_memory.recall.index import Index
from kite_memory.recall.rendering import block
from kite_memory.recall.search import Query, search
from kite_memory.recall.select import Situation
from kite_memory.timeline.store import Timeline
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.recall.notes import Pile

SAID = "the blossom froze overnight, so the fleece goes over the espaliers now"


def note(*evidence: Event, title: str = "Frost cover") -> Note:
    at = datetime(2026, 3, 2, tzinfo=UTC)
    references = tuple(each.reference for each in evidence)
    return Note(
        id="frost",
        path="facts/frost.md",
        kind=NoteKind.FACT,
        title=title,
        body="Cover tender trees in spring.",
        created=at,
        updated=at,
        evidence=references,
    )


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    timeline = Timeline(tmp_path / "timeline.sqlite")
    yield timeline
    timeline.close()


def happened(timeline: Timeline, *events: Event) -> None:
    end = events[-1].where.end
    cursor = Cursor(position=end, size=end, mtime_ns=1)
    timeline.commit(
        [RedactedResult(ReadResult(path=events[-1].where.file, session=SESSION, events=events, problems=(), cursor=cursor))],
        SESSION.provider,
    )


class TestWhatWasSaid:
    def test_it_is_the_text_of_the_evidence(self, timeline: Timeline) -> None:
        first, second = event(1, SAID), event(2, "fleece it is", EventType.ASSISTANT_MESSAGE)
        happened(timeline, first, second)

        assert said_about(timeline.events, note(first, second)) == f"{SAID}\nfleece it is"

    def test_it_is_bounded(self, timeline: Timeline) -> None:
        events = [event(number, f"{number} " + "word " * 5_000) for number in range(1, 20)]
        happened(timeline, *events)

        assert len(said_about(timeline.events, note(*events))) <= 4 * 1_500 + 3

    def test_the_same_words_count_once(self, timeline: Timeline) -> None:
        first, second = event(1, SAID), event(2, SAID)
        happened(timeline, first, second)

        assert said_about(timeline.events, note(first, second)) == SAID

    def test_evidence_that_is_not_there_is_no_loss(self, timeline: Timeline) -> None:
        there, gone = event(1, SAID), event(7, "never read")
        happened(timeline, there)

        assert said_about(timeline.events, note(gone)) == ""
        assert said_about(timeline.events, note(gone, there)) == SAID
        assert said_about(timeline.events, note()) == ""

    @pytest.mark.parametrize("mangled", ["", "nonsense", "claude-code:#", ":a#b", "a:b#\x00", "a:b#%", "a:b#\ud800"])
    def test_evidence_that_a_person_has_mangled_is_no_loss(self, timeline: Timeline, mangled: str) -> None:
        happened(timeline, event(1, SAID))

        assert said_about(timeline.events, replace(note(), evidence=(mangled,))) == ""

    def test_a_damaged_timeline_is_no_loss(self, tmp_path: Path) -> None:
        timeline = Timeline(tmp_path / "timeline.sqlite")
        there = event(1, SAID)
        happened(timeline, there)
        other = sqlite3.connect(tmp_path / "timeline.sqlite", isolation_level=None)
        other.execute("DROP TABLE events")
        other.close()

        assert said_about(timeline.events, note(there)) == ""
        assert before(timeline, SESSION.provider, SESSION.id, "why?") == Situation()
        timeline.close()


class TestInTheIndex:
    @pytest.fixture
    def index(self, tmp_path: Path, timeline: Timeline) -> Iterator[Index]:
        index = Index(tmp_path / "index", embedder=HashingEmbedder(dim=32))
        yield index
        index.close()

    def test_it_leads_to_the_note(self, timeline: Timeline, index: Index) -> None:
        there = event(1, SAID)
        happened(timeline, there)
        index.refresh(Pile(note(there)), evidence=partial(said_about, timeline.events))

        assert (index.signals("espaliers fleece", meaning=False).bm25 > 0).tolist() == [True]

    def test_it_is_not_named_as_what_the_note_says(self, timeline: Timeline, index: Index) -> None:
        there = event(1, SAID)
        happened(timeline, there)
        index.refresh(Pile(note(there)), evidence=partial(said_about, timeline.events))
        signals = index.signals("espaliers in spring")
        (number,) = signals.columns.notes["number"].tolist()

        assert index.matched_words(signals.terms, [number]) == {number: ("spring",)}
        assert index.notes([number])[number] == note(there)

    def test_none_of_it_is_shown(self, timeline: Timeline, index: Index) -> None:
        there = event(1, SAID)
        happened(timeline, there)
        index.refresh(Pile(note(there)), evidence=partial(said_about, timeline.events))

        (hit,) = search(index, Query(text="espaliers fleece"), datetime(2026, 3, 3, tzinfo=UTC))

        assert hit.note.id == "frost"
        assert hit.snippet == "Cover tender trees in spring."
        assert not any(word in f"{hit.why} {block([hit]).text}" for word in ("espalier", "fleece", "blossom"))

    def test_who_forgets_the_note_forgets_it(self, tmp_path: Path, timeline: Timeline, index: Index) -> None:
        there = event(1, SAID)
        happened(timeline, there)
        pile = Pile(note(there))
        index.refresh(pile, evidence=partial(said_about, timeline.events))

        pile.remove("facts/frost.md")
        index.refresh(pile, hint={"facts/frost.md"}, evidence=partial(said_about, timeline.events))

        assert index.signals("espaliers fleece", meaning=False).bm25.tolist() == []
        with sqlite3.connect(tmp_path / "index" / "catalogue.db") as catalogue:
            left = [catalogue.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("words", "term")]
        catalogue.close()
        assert left == [0, 0]


class TestBeforeAPrompt:
    def test_it_is_what_the_session_says(self, timeline: Timeline) -> None:
        happened(timeline, event(1, "cover the trees"), event(2, "With fleece?", EventType.ASSISTANT_MESSAGE), event(3, "yes"))

        situation = before(timeline, SESSION.provider, SESSION.id, "yes")

        assert situation == Situation(exchange="With fleece?", prompts=("cover the trees",), position=1)

    @pytest.mark.parametrize(
        ("provider", "session"),
        [("claude-code", ""), ("claude-code", "never-seen"), ("claude-code", "\ud800"), ("codex", SESSION.id)],
    )
    def test_a_session_never_seen_says_nothing(self, timeline: Timeline, provider: str, session: str) -> None:
        happened(timeline, event(1, "cover the trees"))

        assert before(timeline, provider, session, "why?") == Situation()

    def test_a_long_session_is_counted_from_its_beginning(self, timeline: Timeline) -> None:
        happened(
            timeline,
            *(event(number, f"prompt {number}") for number in range(1, 9)),
            *(event(number, "work", EventType.TOOL_RESULT) for number in range(9, 400)),
        )

        assert before(timeline, SESSION.provider, SESSION.id, "why?").position == 8
