"""Searching events: by words, by where they belong, and in step with what is stored."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kite_memory.model.event import Cursor, Event, EventType, ReadResult, RedactedResult, Session, Status, Where
from kite_memory.timeline import schema
from kite_memory.timeline.search import EventQuery, share_adjacent
from kite_memory.timeline.store import Timeline
from tests.counts import examples

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
SESSION = Session(id="5e550001-orchard", provider="claude-code", started=START, project="orchard", cwd="/home/ada/orchard")
NOW = datetime(2026, 6, 1, tzinfo=UTC)


GOLDEN: tuple[tuple[int, Status], ...] = ((1, "ok"), (2, "failed"))


def event_of(
    number: int,
    text: str,
    type: EventType = EventType.ASSISTANT_MESSAGE,
    *,
    session: Session = SESSION,
    tool: str = "",
    command: str = "",
    path: str = "",
    status: Status = "",
    call: str = "",
    at: datetime | None = None,
) -> Event:
    return Event(
        id=f"{number:08x}-{session.id}",
        session=session.id,
        provider=session.provider,
        ordinal=number,
        at=at or START + timedelta(minutes=number),
        role="assistant",
        type=type,
        text=text,
        where=Where(file=f"/t/{session.id}.jsonl", start=number * 100, end=number * 100 + 99),
        tool=tool,
        command=command,
        path=path,
        status=status,
        call=call,
    )


def keep(timeline: Timeline, *events: Event, session: Session = SESSION, amends: bool = False) -> int:
    cursor = Cursor(position=len(events), size=1, mtime_ns=1)
    path = f"/t/{session.id}.jsonl"
    look = ReadResult(path=path, session=session, events=events, problems=(), cursor=cursor, amends=amends)
    return timeline.commit([RedactedResult(look)], session.provider)


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    with closing(Timeline(tmp_path / "timeline.sqlite", clock=NOW.timestamp)) as store:
        yield store


def found(timeline: Timeline, text: str = "", **wanted: Any) -> list[str]:
    """What is an answer; what is merely near, `near` shows."""
    return [hit.event.text for hit in timeline.search.find(EventQuery(text=text, **wanted)) if not hit.near]


def near(timeline: Timeline, text: str) -> list[str]:
    return [hit.event.text for hit in timeline.search.find(EventQuery(text=text)) if hit.near]


def checked(path: Path) -> None:
    """FTS5 itself compares what it has with what the events say now; it raises where they differ."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("INSERT INTO told (told, rank) VALUES ('integrity-check', 1)")


class TestWords:
    def test_an_event_is_found_with_its_session_and_its_evidence(self, timeline: Timeline) -> None:
        event = event_of(1, "first line\nThe sluice gate leaks at night.\nlast line")
        keep(timeline, event, event_of(2, "Nothing of the kind."))

        (hit,) = timeline.search.find(EventQuery(text="leaking gates"))

        assert hit.event == event
        assert hit.session == SESSION
        assert hit.snippet == "The sluice gate leaks at night."
        assert 0 < hit.score <= 1

    def test_words_beside_each_other_come_before_words_apart(self, timeline: Timeline) -> None:
        keep(
            timeline,
            event_of(1, "The sluice gate leaks."),
            event_of(2, "Open the gate before you look at the sluice: neither leaks."),
            event_of(3, "The gate is painted."),
        )

        assert found(timeline, "sluice gate leaks") == [
            "The sluice gate leaks.",
            "Open the gate before you look at the sluice: neither leaks.",
        ]

    def test_of_equals_the_newest_comes_first(self, timeline: Timeline) -> None:
        keep(timeline, event_of(3, "the pump, again"), event_of(1, "the pump, first"), event_of(2, "the pump, then"))

        assert found(timeline, "pump") == ["the pump, again", "the pump, then", "the pump, first"]

    def test_without_words_an_old_session_that_was_read_last_comes_last(self, timeline: Timeline) -> None:
        keep(timeline, event_of(1, "new pruning", path="/home/ada/orchard/pear.py"))
        older = replace(SESSION, id="5e550002-orchard", started=START - timedelta(days=9))
        pruned = event_of(1, "old pruning", path="/home/ada/orchard/pear.py", session=older, at=START - timedelta(days=9))
        keep(timeline, pruned, session=older)

        hits = timeline.search.find(EventQuery(text="", file="pear.py"))

        assert [hit.event.text for hit in hits] == ["new pruning", "old pruning"]

    def test_what_a_person_said_comes_before_what_a_tool_printed(self, timeline: Timeline) -> None:
        keep(timeline, event_of(1, "mind the pump", EventType.USER_MESSAGE), event_of(2, "pump: ok", EventType.TOOL_RESULT))

        assert found(timeline, "pump") == ["mind the pump", "pump: ok"]

    def test_the_parts_of_one_call_are_one_answer(self, timeline: Timeline) -> None:
        keep(
            timeline,
            event_of(1, "", EventType.TOOL_CALL, tool="Bash", call="c1"),
            event_of(2, "pump --prime", EventType.COMMAND, tool="Bash", command="pump --prime", call="c1"),
            event_of(3, "pump: no water", EventType.TOOL_RESULT, tool="Bash", status="failed", call="c1"),
            event_of(4, "pump: no water", EventType.ERROR, tool="Bash", command="pump --prime", status="failed", call="c1"),
        )

        (hit,) = timeline.search.find(EventQuery(text="pump"))

        assert hit.event.type is EventType.ERROR

    def test_the_same_failure_is_found_first_whatever_differs(self, timeline: Timeline) -> None:
        keep(
            timeline,
            event_of(1, "error: unable to open the gate: the depot at 10.0.0.7:9000 is closed", EventType.ERROR, status="failed"),
            event_of(2, "The depot is closed and I was unable to open the gate: an error of the new key.", EventType.USER_MESSAGE),
        )

        best, _ = found(timeline, "error: unable to open the gate: the depot at 192.168.9.9:77 is closed")

        assert best.startswith("error: unable")

    def test_the_rare_word_decides_where_the_others_are_everywhere(self, timeline: Timeline) -> None:
        keep(
            timeline,
            event_of(0, "the pump and the zeppelin"),
            *(event_of(number, f"the pump, {number}") for number in range(1, 2_600)),
        )

        assert found(timeline, "pump zeppelin")[0] == "the pump and the zeppelin"
        assert len(found(timeline, "pump", limit=5)) == 5

    def test_common_words_find_the_newest_that_hold_them_all(self, timeline: Timeline) -> None:
        keep(
            timeline,
            event_of(0, "valve and pump, both"),
            *(event_of(number, f"the {'pump' if number % 2 else 'valve'}, {number}") for number in range(1, 5_000)),
        )

        assert found(timeline, "pump valve", limit=1) == ["valve and pump, both"]

    def test_half_of_what_was_asked_is_no_answer(self, timeline: Timeline) -> None:
        keep(timeline, event_of(1, "The pump hums."), *(event_of(number, "other things") for number in range(2, 9)))

        assert found(timeline, "pump zeppelin orchestra") == []
        assert near(timeline, "pump zeppelin orchestra") == ["The pump hums."]

    def test_a_slip_of_the_finger_is_forgiven_where_no_event_has_the_word(self, timeline: Timeline) -> None:
        keep(timeline, event_of(1, "Migrate the sluices to PostgreSQL."), event_of(2, "The pump hums."))

        assert found(timeline, "postgrseql slucies") == ["Migrate the sluices to PostgreSQL."]
        assert found(timeline, "zeppelins") == near(timeline, "zeppelins") == []

    def test_events_that_went_otherwise_are_left_out(self, timeline: Timeline) -> None:
        keep(timeline, *(event_of(n, f"golden test {n}", EventType.TEST_RESULT, status=s) for n, s in GOLDEN))

        assert found(timeline, "golden", status="failed") == ["golden test 2"]

    def test_a_script_without_blanks_is_found_by_how_it_begins(self, timeline: Timeline) -> None:
        keep(timeline, event_of(1, "水門が漏れている"))

        assert found(timeline, "水門") == ["水門が漏れている"]

    @given(st.text(st.sampled_from("abB _-.é\n"), max_size=40), st.lists(st.sampled_from(["a", "b", "ab", "ba", "é"]), min_size=2))
    def test_adjacent_words_are_those_that_follow_each_other_when_the_text_is_taken_apart(
        self, text: str, words: list[str]
    ) -> None:
        pairs = list(pairwise(words))
        apart = list(pairwise(re.findall(r"[^\W_]+", text.lower())))

        assert share_adjacent(pairs, text) == sum(
            any(first == one and then.startswith(other) for first, then in apart) for one, other in pairs
        ) / len(pairs)

    @settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(text=st.text(max_size=60), name=st.text(max_size=20))
    def test_nothing_asked_is_an_error(self, timeline: Timeline, text: str, name: str) -> None:
        keep(timeline, event_of(1, "the pump"))

        for query in (EventQuery(text=text), EventQuery(text="pump", tool=name, file=name, session=name, project=name)):
            assert all(hit.event.text == "the pump" for hit in timeline.search.find(query))


class TestWhereTheyBelong:
    @pytest.fixture
    def filled(self, timeline: Timeline) -> Timeline:
        elsewhere = Session(id="c0de0002-mycelia", provider="codex", started=START, project="my celia", cwd="/home/ada/my celia")
        keep(
            timeline,
            event_of(1, "the pump runs", EventType.USER_MESSAGE),
            event_of(2, "edited", EventType.FILE_ACTION, tool="Edit", path="/home/ada/orchard/pumps/Pump_main.py"),
            event_of(3, "pump: no water", EventType.ERROR, tool="Bash", status="failed"),
            event_of(4, "1 failed: test_pump (tests/pump_main.py:7)", EventType.TEST_RESULT, tool="Bash", status="failed"),
            event_of(5, "interrupted at the pump", EventType.RESUME_POINT),
        )
        keep(
            timeline,
            event_of(1, "the pump of another project", session=elsewhere, at=NOW - timedelta(days=3)),
            event_of(
                2,
                "edited the pump",
                EventType.FILE_ACTION,
                session=elsewhere,
                tool="mcp__shed__apply-patch",
                path="C:\\shed\\pump.go",
            ),
            session=elsewhere,
        )
        return timeline

    @pytest.mark.parametrize(
        ("wanted", "texts"),
        [
            ({"types": frozenset({EventType.ERROR})}, ["pump: no water"]),
            (
                {"types": frozenset({EventType.ERROR, EventType.RESUME_POINT})},
                ["pump: no water", "interrupted at the pump"],
            ),
            ({"tool": "edit"}, ["edited"]),
            ({"tool": "mcp__shed__apply-patch"}, ["edited the pump"]),
            ({"tool": "shed"}, ["edited the pump"]),
            ({"tool": "applypatch"}, ["edited the pump"]),
            ({"file": "pump_main.py"}, ["edited", "1 failed: test_pump (tests/pump_main.py:7)"]),
            ({"file": "pumps/pump_main.py"}, ["edited"]),
            ({"file": "other/pump_main.py"}, []),
            ({"file": "pump_main"}, ["edited", "1 failed: test_pump (tests/pump_main.py:7)"]),
            ({"file": "c:\\shed\\PUMP.go"}, ["edited the pump"]),
            ({"session": "c0de"}, ["the pump of another project", "edited the pump"]),
            ({"session": "beef"}, []),
            ({"project": "my celia"}, ["the pump of another project", "edited the pump"]),
            ({"project": "my"}, []),
            ({"provider": "codex"}, ["the pump of another project", "edited the pump"]),
            ({"since": NOW - timedelta(days=7)}, ["the pump of another project"]),
            ({"since": datetime(1, 1, 1, tzinfo=UTC), "provider": "codex", "tool": "shed"}, ["edited the pump"]),
        ],
    )
    def test_it_is_kept_to_with_words_and_without(self, filled: Timeline, wanted: dict[str, Any], texts: Sequence[str]) -> None:
        alone = found(filled, **wanted)
        with_word = found(filled, "pump", **wanted)

        assert sorted(alone) == sorted(texts)
        assert sorted(with_word) == sorted(texts)

    def test_without_words_the_latest_comes_first(self, filled: Timeline) -> None:
        latest = found(filled, tool="Bash")

        assert latest == ["1 failed: test_pump (tests/pump_main.py:7)", "pump: no water"]

    def test_nothing_asked_for_finds_nothing(self, filled: Timeline) -> None:
        assert found(filled) == []
        assert found(filled, "  ,;  ") == []

    def test_a_failure_that_is_known_is_not_found_where_it_does_not_belong(self, filled: Timeline) -> None:
        assert found(filled, "error: pump: no water", project="my celia") == []


class TestInStep:
    def test_an_amended_event_is_found_by_what_it_says_now(self, timeline: Timeline, tmp_path: Path) -> None:
        keep(timeline, event_of(1, "the pump"), event_of(2, "the valve"))

        added = keep(timeline, event_of(1, "the sieve", EventType.ERROR), event_of(3, "the hose"), amends=True)

        assert added == 1
        assert found(timeline, "pump") == []
        assert found(timeline, "sieve", types=frozenset({EventType.ERROR})) == ["the sieve"]
        checked(tmp_path / "timeline.sqlite")

    def test_what_is_reported_again_counts_once(self, timeline: Timeline, tmp_path: Path) -> None:
        first = keep(timeline, event_of(1, "the pump"), event_of(2, "the valve"))

        again = keep(timeline, event_of(1, "the pump"), event_of(2, "the valve"))

        assert (first, again) == (2, 0)
        assert found(timeline, "pump") == ["the pump"]
        checked(tmp_path / "timeline.sqlite")

    def test_a_session_reported_anew_stays_in_step(self, timeline: Timeline, tmp_path: Path) -> None:
        keep(timeline, event_of(5, "the pump"), event_of(6, "the valve"))

        keep(timeline, replace(event_of(101, "the sieve"), ordinal=1), replace(event_of(5, "the pump"), ordinal=0))

        assert found(timeline, "sieve") == ["the sieve"]
        checked(tmp_path / "timeline.sqlite")

    def test_a_session_that_learns_its_project_later_takes_its_events_along(self, timeline: Timeline, tmp_path: Path) -> None:
        keep(timeline, event_of(1, "the pump"), session=replace(SESSION, project=""))
        before = found(timeline, "pump", project="orchard")

        keep(timeline, event_of(2, "the valve"))

        assert before == []
        assert found(timeline, "pump", project="orchard") == ["the pump"]
        checked(tmp_path / "timeline.sqlite")

    def test_what_is_not_committed_is_not_found(self, timeline: Timeline) -> None:
        impossible = replace(event_of(2, ""), text=object())  # type: ignore[arg-type]  # what SQLite refuses to store

        with pytest.raises(sqlite3.Error):
            keep(timeline, event_of(1, "the pump"), impossible)

        assert found(timeline, "pump") == []

    @settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        looks=st.lists(
            st.tuples(
                st.booleans(),
                st.sampled_from(["", "orchard", "mycelia"]),
                st.lists(
                    st.tuples(
                        st.integers(0, 6),
                        st.text(max_size=12),
                        st.sampled_from(EventType),
                        st.text(max_size=6),
                        st.text(max_size=6),
                    ),
                    max_size=5,
                ),
            ),
            max_size=6,
        )
    )
    def test_whatever_is_reported_the_index_says_the_same(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        looks: list[tuple[bool, str, list[tuple[int, str, EventType, str, str]]]],
    ) -> None:
        path = tmp_path_factory.mktemp("any") / "timeline.sqlite"
        with closing(Timeline(path)) as timeline:
            for amends, project, events in looks:
                session = replace(SESSION, project=project)
                keep(
                    timeline,
                    *(event_of(number, text, type, tool=tool, path=file) for number, text, type, tool, file in events),
                    session=session,
                    amends=amends,
                )

        checked(path)


class TestEarlierSchemas:
    @pytest.mark.parametrize("version", [1, 2])
    def test_events_of_an_earlier_schema_are_found_little_by_little(self, tmp_path: Path, version: int) -> None:
        path = tmp_path / "timeline.sqlite"
        count = 2_500
        _as_written_by(version, path, [event_of(number, f"pump {number} hums") for number in range(count)])
        timeline = Timeline(path)
        behind = [timeline.search.unsearched()]
        at_first = found(timeline, "pump 7")

        keep(timeline, event_of(count, "the valve"))
        behind.append(timeline.search.unsearched())
        keep(timeline, event_of(1, "the sieve"), event_of(count, "the hose"), amends=True)
        behind.append(timeline.search.unsearched())

        assert at_first == []
        assert behind == [2_500, 500, 0]
        assert found(timeline, "pump 7", limit=1) == ["pump 7 hums"]
        assert found(timeline, "sieve hose") == []
        assert found(timeline, "sieve") == ["the sieve"]
        assert found(timeline, "valve") == []
        timeline.close()
        checked(path)

    def test_an_event_that_waits_for_its_index_may_be_amended_before(self, tmp_path: Path) -> None:
        path = tmp_path / "timeline.sqlite"
        _as_written_by(2, path, [event_of(number, f"pump {number} hums") for number in range(4_500)])
        with closing(Timeline(path)) as timeline:
            keep(timeline, event_of(3, "the sieve"), session=replace(SESSION, title="Pumps"), amends=True)
            waiting = timeline.search.unsearched()
            for number in (5_001, 5_002):
                keep(timeline, event_of(number, "the valve"))

            assert waiting == 2_500
            assert found(timeline, "sieve") == ["the sieve"]
            assert found(timeline, "pump 3") == []
        checked(path)


def _as_written_by(version: int, path: Path, events: Sequence[Event]) -> None:
    """The same rows, without anything that came later."""
    current = path.with_name("current.sqlite")
    with closing(Timeline(current)) as timeline:
        keep(timeline, *events)
    with closing(sqlite3.connect(path)) as database, database:
        for number in range(1, version + 1):
            for statement in schema.MIGRATIONS[number]:
                database.execute(statement)
        database.execute("ATTACH ? AS current", (str(current),))
        for table in ("sessions", "files", "events"):
            database.execute(f"INSERT INTO main.{table} SELECT * FROM current.{table}")
        database.execute(f"PRAGMA user_version = {version}")
