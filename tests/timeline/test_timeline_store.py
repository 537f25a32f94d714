"""The timeline: what is committed stays, once, with the position that covers it."""

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest

from kite_memory.errors import StateDamaged, StateNewer, StateNotWritten
from kite_memory.model.event import (
    Cursor,
    Edge,
    EdgeKind,
    Event,
    EventType,
    EvidenceReference,
    Problem,
    ReadResult,
    RedactedResult,
    Role,
    Session,
    Status,
    Where,
)
from kite_memory.sources.common.event_builder import OpenCall, OpenCalls
from kite_memory.sources.common.line_source import Progress
from kite_memory.system.sqlite import not_written
from kite_memory.timeline.schema import BUNDLED
from kite_memory.timeline.store import Timeline
from kite_memory.timeline.writing import BLANK

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
SESSION = Session(id="s1", provider="claude-code", started=START, project="orchard", cwd="/home/ada/orchard", branch="main")


def event(number: int, *, type: EventType = EventType.USER_MESSAGE, role: Role = "user", parent: str = "") -> Event:
    return Event(
        id=f"{number:08x}-0000-4000-8000-000000000000",
        session="s1",
        provider="claude-code",
        ordinal=number,
        at=START + timedelta(seconds=number),
        role=role,
        type=type,
        text=f"event {number}",
        where=Where(file="/t/s1.jsonl", start=number * 100, end=number * 100 + 99),
        parent=parent,
    )


def look(
    *events: Event, position: int = 100, session: Session | None = SESSION, problems: tuple[Problem, ...] = ()
) -> RedactedResult:
    cursor = Cursor(position=position, size=position, mtime_ns=1, identity="i", carry="c")
    return RedactedResult(ReadResult(path="/t/s1.jsonl", session=session, events=events, problems=problems, cursor=cursor))


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    store = Timeline(tmp_path / "timeline.sqlite")
    yield store
    store.close()


def test_an_event_comes_back_as_it_was(timeline: Timeline) -> None:
    whole = replace(event(1), tool="Bash", command="make test", path="/a/b", status="failed", parent="p", call="toolu_1")

    timeline.commit([look(whole)], "claude-code")

    assert timeline.events.of_session("claude-code", "s1") == [whole]


def test_a_file_read_in_part_still_differs_from_what_was_read_of_it(timeline: Timeline) -> None:
    partly = replace(look(event(0)), more=True)

    timeline.commit([partly], "claude-code")

    assert timeline.files.looked_at()[partly.path] != (partly.cursor.size, partly.cursor.mtime_ns)


@pytest.mark.parametrize("count", [1, 2, 3, 255, 256, 257, 700])
@pytest.mark.parametrize("amends", [False, True])
def test_however_many_come_at_once_each_is_stored_and_counted_once(timeline: Timeline, count: int, amends: bool) -> None:
    timeline.commit([look(event(0))], "claude-code")
    events = [event(number) for number in range(count)]

    added = timeline.commit([replace(look(*events, *events), amends=amends)], "claude-code")

    assert added == count - 1
    assert timeline.events.of_session("claude-code", "s1") == events


def test_every_event_worth_a_vector_waits_for_one_and_no_other(tmp_path: Path) -> None:
    kinds = [(type, status, path) for type in EventType for status in get_args(Status) for path in ("", "/a/b")]
    altered = [replace(event(at), type=kind[0], status=kind[1], path=kind[2]) for at, kind in enumerate(kinds)]
    with closing(Timeline(tmp_path / "timeline.sqlite")) as timeline:
        timeline.commit([look(*altered)], "claude-code")

    with closing(sqlite3.connect(tmp_path / "timeline.sqlite")) as database:
        waiting = database.execute("SELECT event FROM bundles ORDER BY event").fetchall()
        worth = database.execute(f"{BUNDLED} ORDER BY seq").fetchall()

    assert 0 < len(worth) < len(altered)
    assert waiting == worth


def test_an_event_known_already_is_taken_once_even_from_another_file(timeline: Timeline) -> None:
    timeline.commit([look(event(1), event(2))], "claude-code")
    fork = Session(id="s2", provider="claude-code", started=START)
    copied = [replace(event(number), session="s2", where=Where(file="/t/s2.jsonl", start=0, end=1)) for number in (1, 2, 3)]

    added = timeline.commit([replace(look(*copied, session=fork), path="/t/s2.jsonl")], "claude-code")

    assert added == 1
    assert [e.id for e in timeline.events.of_session("claude-code", "s2")] == [event(3).id]
    assert len(timeline.events.of_session("claude-code", "s1")) == 2


def test_a_transcript_that_rewrites_itself_brings_its_events_up_to_date_in_their_places(timeline: Timeline) -> None:
    timeline.commit([look(event(1), event(2), event(3))], "claude-code")
    grown = replace(event(2), text="all of it", status="ok", ordinal=7)

    added = timeline.commit([replace(look(event(1), grown, event(4)), amends=True)], "claude-code")

    assert added == 1
    assert timeline.events.of_session("claude-code", "s1") == [event(1), replace(grown, ordinal=2), event(3), event(4)]


def test_rewriting_changes_nothing_of_another_session(timeline: Timeline) -> None:
    timeline.commit([look(event(1))], "claude-code")
    fork = Session(id="s2", provider="claude-code", started=START)
    copied = replace(event(1), session="s2", text="something else")

    added = timeline.commit([replace(look(copied, session=fork), path="/t/s2.jsonl", amends=True)], "claude-code")

    assert added == 0
    assert timeline.events.of_session("claude-code", "s1") == [event(1)]
    assert timeline.events.of_session("claude-code", "s2") == []


def test_what_only_says_the_same_again_does_not_count_as_a_change(tmp_path: Path) -> None:
    now = START.timestamp()
    with closing(Timeline(tmp_path / "timeline.sqlite", clock=lambda: now)) as timeline:
        timeline.commit([look(event(1))], "claude-code")
        (before,) = timeline.sessions.states()
        now += 60

        timeline.commit([replace(look(event(1)), amends=True)], "claude-code")

        assert timeline.sessions.states() == [before]


def test_a_session_reported_anew_goes_on_where_it_was(timeline: Timeline) -> None:
    timeline.commit([look(event(5), event(6))], "claude-code")
    rewritten = [replace(event(number), ordinal=number - 100) for number in (101, 102)]

    timeline.commit([look(*rewritten)], "claude-code")

    events = timeline.events.of_session("claude-code", "s1")
    assert [e.id for e in events] == [event(number).id for number in (5, 6, 101, 102)]
    assert [e.ordinal for e in events] == [5, 6, 7, 8]
    (state,) = timeline.sessions.states()
    assert state.last_ordinal == 8


def test_position_and_events_are_committed_together_or_not_at_all(timeline: Timeline) -> None:
    timeline.commit([look(event(1), position=100)], "claude-code")
    impossible = replace(event(2), text=object())  # type: ignore[arg-type]  # what SQLite refuses to store

    with pytest.raises(sqlite3.Error):
        timeline.commit([look(event(3), impossible, position=200)], "claude-code")

    cursor = timeline.files.cursor("/t/s1.jsonl")
    assert cursor is not None
    assert cursor.position == 100
    assert [e.ordinal for e in timeline.events.of_session("claude-code", "s1")] == [1]


def test_edges_follow_from_order_and_parents(timeline: Timeline) -> None:
    said = event(1, type=EventType.ASSISTANT_MESSAGE, role="assistant")
    call = event(2, type=EventType.TOOL_CALL, role="assistant", parent=said.id)
    result = event(3, type=EventType.TOOL_RESULT, role="tool", parent=call.id)

    timeline.commit([look(said, call, result)], "claude-code")

    assert set(timeline.events.edges("claude-code", "s1")) == {
        Edge(kind=EdgeKind.NEXT, source=said.id, target=call.id),
        Edge(kind=EdgeKind.NEXT, source=call.id, target=result.id),
        Edge(kind=EdgeKind.CALLS, source=said.id, target=call.id),
        Edge(kind=EdgeKind.RETURNS, source=call.id, target=result.id),
    }


def test_edges_end_at_files_commands_and_failures_by_their_names(timeline: Timeline) -> None:
    call = event(1, type=EventType.TOOL_CALL, role="assistant")
    command = replace(event(2, type=EventType.COMMAND, parent=call.id), command="make test")
    result = replace(event(3, type=EventType.TOOL_RESULT, parent=call.id), text="error: no such gate: north", status="failed")
    error = replace(event(4, type=EventType.ERROR, parent=result.id), text="error: no such gate: north", status="failed")
    change = replace(event(5, type=EventType.FILE_ACTION, parent=result.id), path="/home/ada/orchard/gate.py", status="ok")
    by_hand = replace(event(6, type=EventType.COMMAND), command="git status")
    decision = event(7, type=EventType.DECISION)
    stop = event(8, type=EventType.RESUME_POINT)

    timeline.commit([look(call, command, result, error, change, by_hand, decision, stop)], "claude-code")

    edges = [edge for edge in timeline.events.edges("claude-code", "s1") if edge.kind not in (EdgeKind.NEXT, EdgeKind.RETURNS)]
    assert sorted(edges, key=lambda edge: (edge.kind, edge.target)) == [
        Edge(kind=EdgeKind.DECIDES, source="s1", target=decision.id),
        Edge(kind=EdgeKind.RAISES_ERROR_SIGNATURE, source=result.id, target="error: no such gate: north"),
        Edge(kind=EdgeKind.RESUMES_AT, source="s1", target=stop.id),
        Edge(kind=EdgeKind.RUNS_COMMAND, source=by_hand.id, target="git status"),
        Edge(kind=EdgeKind.RUNS_COMMAND, source=call.id, target="make test"),
        Edge(kind=EdgeKind.TOUCHES_FILE, source=call.id, target="/home/ada/orchard/gate.py"),
    ]


def test_evidence_leads_to_every_event_of_its_line(timeline: Timeline) -> None:
    line, derived = event(7), replace(event(7), id=event(7).id + ":1", type=EventType.ERROR)
    timeline.commit([look(line, derived, event(8))], "claude-code")

    found = timeline.events.evidence(EvidenceReference(provider="claude-code", session="s1", event="00000007"))

    assert [e.id for e in found] == [line.id, derived.id]


def test_evidence_that_begins_like_another_s_is_its_session_s(timeline: Timeline) -> None:
    other = replace(event(7), id="00000007-later", session="2222-two", ordinal=90)
    timeline.commit(
        [look(event(7)), replace(look(other), session=replace(SESSION, id="2222-two"), path="/t/b.jsonl")], "claude-code"
    )

    found = timeline.events.evidence(EvidenceReference(provider="claude-code", session="2222", event="00000007"))

    assert found[0].id == other.id


def test_a_session_learns_its_title_later_and_keeps_its_project(timeline: Timeline) -> None:
    timeline.commit([look(event(1))], "claude-code")

    timeline.commit([look(event(2), session=replace(SESSION, title="Pruning", project="elsewhere"))], "claude-code")

    session = timeline.sessions.get("claude-code", "s1")
    assert session == replace(SESSION, title="Pruning")


def test_a_look_that_failed_is_a_problem_and_no_record_that_was_passed_over(timeline: Timeline) -> None:
    problems = tuple(Problem(file="/t/s1.jsonl", position=0, reason=reason) for reason in ("busy, later", "not JSON"))

    timeline.commit([look(problems=problems)], "claude-code")

    assert (timeline.files.counts()[0].problems, timeline.files.counts()[0].skipped) == (2, 1)


def test_problems_are_counted_by_reason(timeline: Timeline) -> None:
    torn = Problem(file="/t/s1.jsonl", position=5, reason="not JSON")

    timeline.commit([look(problems=(torn, replace(torn, position=9)))], "claude-code")

    (counted,) = timeline.files.problems()
    assert (counted.reason, counted.count, counted.first_position) == ("not JSON", 2, 5)
    assert timeline.files.counts()[0].problems == 2


def test_quiet_since_is_the_earlier_of_event_and_commit(tmp_path: Path) -> None:
    wrong_clock = Timeline(tmp_path / "t.sqlite", clock=lambda: START.timestamp() - 3600)

    wrong_clock.commit([look(event(1))], "claude-code")

    (state,) = wrong_clock.sessions.states()
    assert state.quiet_since == START.timestamp() - 3600
    wrong_clock.close()


def test_a_newer_file_is_refused_and_a_damaged_one_named(tmp_path: Path) -> None:
    newer = tmp_path / "newer.sqlite"
    with sqlite3.connect(newer) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"not a database, but long enough to have a header " * 10)

    with pytest.raises(StateNewer, match="newer"):
        Timeline(newer)
    with pytest.raises(StateDamaged, match="cannot be read"):
        Timeline(damaged)


def test_what_cannot_be_opened_at_all_is_not_called_damaged(tmp_path: Path) -> None:
    (tmp_path / "timeline.sqlite").mkdir()

    with pytest.raises(StateNotWritten, match="may not be opened or written") as raised:
        Timeline(tmp_path / "timeline.sqlite")

    assert raised.value.hint == f"see who owns it: ls -la {tmp_path}"


@pytest.mark.parametrize(
    ("code", "next_step"),
    [
        (sqlite3.SQLITE_READONLY_DBMOVED, "see who owns it"),
        (sqlite3.SQLITE_CANTOPEN, "see who owns it"),
        (sqlite3.SQLITE_PERM, "see who owns it"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "another process"),
        (sqlite3.SQLITE_FULL, "make room"),
    ],
)
def test_the_hint_depends_on_who_said_no(code: int, next_step: str) -> None:
    error = sqlite3.OperationalError("no")
    error.sqlite_errorcode = code

    assert next_step in not_written(error, Path("/state/timeline.sqlite"), named="the timeline").hint


def test_a_timeline_that_may_only_be_read_names_its_owner_and_not_the_disk(timeline: Timeline) -> None:
    timeline._database.writer.execute("PRAGMA query_only = ON")

    with pytest.raises(StateNotWritten, match=r"timeline\.sqlite may not be opened or written") as committed:
        timeline.commit([look(event(1))], "claude-code")
    with pytest.raises(StateNotWritten) as erased:
        timeline.forgotten.add([event(1)], blank=True)

    assert [each.value.hint.split(":")[0] for each in (committed, erased)] == ["see who owns it"] * 2


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    Timeline(tmp_path / "state" / "t.sqlite").close()

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}

    assert set(modes.values()) == {0o600}


def spoken_in(
    timeline: Timeline,
    id: str,
    minute: int,
    *,
    project: str = "orchard",
    type: EventType = EventType.USER_MESSAGE,
    parent: str = "",
    provider: str = "claude-code",
) -> None:
    session = replace(SESSION, id=id, project=project, parent=parent, provider=provider)
    said = replace(event(minute, type=type), id=f"{id}-{minute}", session=id, at=START + timedelta(minutes=minute))
    timeline.commit([replace(look(said, session=session), path=f"/t/{id}.jsonl")], provider)


def test_the_last_session_is_the_one_in_which_a_person_spoke_last(timeline: Timeline) -> None:
    spoken_in(timeline, "older", 1)
    spoken_in(timeline, "last", 5)
    spoken_in(timeline, "own", 7)
    spoken_in(timeline, "elsewhere", 8, project="mycelia")
    spoken_in(timeline, "agent-1", 9, type=EventType.ASSISTANT_MESSAGE)

    last = timeline.sessions.last("orchard", besides="own")

    assert last is not None
    assert (last.id, last.project) == ("last", "orchard")
    assert timeline.sessions.last("fence") is None


def test_a_session_in_a_wrong_window_does_not_hide_the_last_work(timeline: Timeline) -> None:
    for number, (id, text) in enumerate(
        (("work", "Plan the new orchard, with pears on the north side of it"), ("wrong", "oh, sorry"))
    ):
        session = replace(SESSION, id=id)
        said = replace(event(number), text=text, id=f"{id}-1", session=id, at=START + timedelta(hours=number))
        timeline.commit([replace(look(said, session=session), path=f"/t/{id}.jsonl")], "claude-code")

    found, other = timeline.sessions.last("orchard"), timeline.sessions.last("orchard", besides="work")

    assert found is not None
    assert other is not None
    assert (found.id, other.id) == ("work", "wrong")


def test_sub_agents_do_not_push_out_the_session_in_which_a_person_spoke(timeline: Timeline) -> None:
    spoken_in(timeline, "meant", 1)
    for number in range(60):
        spoken_in(timeline, f"agent-{number}", 2 + number, type=EventType.ASSISTANT_MESSAGE, parent="meant")

    found = (timeline.sessions.last("orchard"), timeline.sessions.last(None), timeline.sessions.last(None, among=["orchard"]))

    assert [session.id if session else "" for session in found] == ["meant"] * 3
    assert timeline.sessions.last(None, among=["mycelia"]) is None
    assert [session.id for session in timeline.sessions.latest("orchard", 8)] == ["meant"]


def test_neither_commits_nor_sub_agents_are_among_the_last_sessions_but_forks_are(timeline: Timeline) -> None:
    spoken_in(timeline, "commits", 5, type=EventType.ASSISTANT_MESSAGE, provider="git")
    spoken_in(timeline, "agent", 4, type=EventType.ASSISTANT_MESSAGE, parent="first")
    spoken_in(timeline, "fork", 3, parent="first")
    spoken_in(timeline, "first", 1)

    assert [session.id for session in timeline.sessions.latest("orchard", 8)] == ["fork", "first"]


def test_events_are_counted_as_they_come_by_provider(timeline: Timeline) -> None:
    timeline.commit([look(event(0), event(1))], "claude-code")
    timeline.commit([look(event(1), event(2))], "claude-code")
    timeline.commit([replace(look(replace(event(2), text="said better"), event(3)), amends=True)], "claude-code")
    spoken_in(timeline, "other", 1, provider="codex")

    assert {each.provider: each.events for each in timeline.files.counts()} == {"claude-code": 4, "codex": 1}


def test_events_of_an_earlier_schema_are_counted_by_provider(tmp_path: Path) -> None:
    path = tmp_path / "timeline.sqlite"
    with closing(Timeline(path)) as store:
        store.commit([look(event(0), event(1))], "claude-code")
    with closing(sqlite3.connect(path)) as database, database:
        for kind, name in (
            ("TABLE", "totals"), ("TABLE", "passages"), ("TABLE", "passage_key"),
            ("TABLE", "cards"), ("TABLE", "card_projects"), ("TABLE", "card_words"), ("TABLE", "card_waiting"),
            ("TABLE", "told_words"), ("TRIGGER", "event_changed"), ("TABLE", "amended"),
            ("INDEX", "user_messages"), ("INDEX", "sessions_by_time"),
        ):  # fmt: skip
            database.execute(f"DROP {kind} {name}")
        database.execute("PRAGMA user_version = 5")

    with closing(Timeline(path)) as store:
        assert [each.events for each in store.files.counts()] == [2]


def test_a_session_of_which_nothing_is_offered_any_more_is_not_the_last(timeline: Timeline) -> None:
    spoken_in(timeline, "older", 1)
    spoken_in(timeline, "last", 5)

    timeline.forgotten.add(timeline.events.of_session("claude-code", "last"))

    last = timeline.sessions.last("orchard")
    assert last is not None and last.id == "older"


def test_the_last_prompt_is_found_behind_whatever_the_agent_did_since(timeline: Timeline) -> None:
    deeds = [event(number, type=EventType.TOOL_CALL, role="assistant") for number in range(3, 500)]
    timeline.commit([look(event(1), event(2), *deeds)], "claude-code")

    assert timeline.events.last_prompt("claude-code", "s1") == event(2)
    assert timeline.events.last_prompt("claude-code", "never seen") is None


def test_it_knows_every_folder_that_a_session_ran_in_once(timeline: Timeline) -> None:
    elsewhere = [
        replace(SESSION, id=f"s{number}", cwd=cwd) for number, cwd in enumerate(["/home/ada/b", "/home/ada/a", "/home/ada/b", ""])
    ]
    for session in elsewhere:
        timeline.commit([replace(look(session=session), path=f"/t/{session.id}.jsonl")], "claude-code")

    assert timeline.sessions.folders() == ["/home/ada/a", "/home/ada/b"]


@pytest.mark.parametrize("at_once", [True, False])
def test_another_record_under_a_repeated_id_is_kept(timeline: Timeline, at_once: bool) -> None:
    first = event(1)
    other = replace(event(2), id=first.id, text="something else")
    more = replace(other, id=f"{first.id}:1", ordinal=3, type=EventType.COMMAND)
    same = replace(event(4), id=first.id, text=first.text)

    for result in [[first, other, more, same]] if at_once else [[first], [other, more], [same], [other, more]]:
        timeline.commit([look(*result)], "claude-code")

    assert [each.text for each in timeline.events.of_session("claude-code", "s1")] == [
        first.text,
        "something else",
        "something else",
    ]
    assert len({each.id for each in timeline.events.of_session("claude-code", "s1")}) == 3
    assert timeline.sessions.state("claude-code", "s1") is not None


def test_a_copy_in_another_file_is_not_another_record(timeline: Timeline) -> None:
    timeline.commit([look(event(1))], "claude-code")
    copy = replace(event(7), id=event(1).id, text="told otherwise")

    timeline.commit([replace(look(copy), path="/t/s2.jsonl")], "claude-code")

    assert [each.text for each in timeline.events.of_session("claude-code", "s1")] == ["event 1"]


def test_the_branch_is_that_of_the_last_look_that_brought_something_new(timeline: Timeline) -> None:
    timeline.commit([look(event(1)), look(event(2), session=replace(SESSION, branch="pears"))], "claude-code")

    timeline.commit([look(event(1), session=replace(SESSION, branch="main"))], "claude-code")

    known = timeline.sessions.get("claude-code", "s1")
    assert known is not None
    assert known.branch == "pears"


def test_a_file_that_was_written_anew_repeats_no_event_in_other_words(timeline: Timeline) -> None:
    timeline.commit([look(*map(event, range(4)))], "claude-code")
    anew = [
        replace(event(number), text="in other words", where=replace(event(number).where, start=number * 70)) for number in range(4)
    ]

    added = timeline.commit([look(*anew)], "claude-code")

    assert added == 0
    assert [each.text for each in timeline.events.of_session("claude-code", "s1")] == [f"event {number}" for number in range(4)]


def test_an_erased_line_that_shared_its_id_stays_erased_when_the_timeline_is_read_again(tmp_path: Path) -> None:
    pump, key = replace(event(0), text="The pump stands behind the gate."), replace(event(0), text="The key is called zanderfisch.")
    key = replace(key, where=replace(key.where, start=100, end=199), ordinal=100)
    with closing(Timeline(tmp_path / "timeline.sqlite")) as timeline:
        timeline.commit([look(pump, key)], "claude-code")
        timeline.forgotten.add(timeline.events.of_session("claude-code", "s1")[1:], blank=True)
        timeline.commit([look(key)], "claude-code")
        assert [each.text for each in timeline.events.of_session("claude-code", "s1")] == [pump.text, BLANK]
    for file in tmp_path.glob("timeline.sqlite*"):
        file.unlink()

    with closing(Timeline(tmp_path / "timeline.sqlite")) as timeline:
        timeline.commit([look(pump, key)], "claude-code")

        assert [each.text for each in timeline.events.of_session("claude-code", "s1")] == [pump.text, BLANK]


def test_an_erased_line_that_is_written_twice_does_not_come_back_under_another_id(timeline: Timeline) -> None:
    again = replace(event(1), where=replace(event(1).where, start=300, end=399))
    timeline.commit([look(event(1))], "claude-code")
    timeline.forgotten.add([event(1)], blank=True)

    timeline.commit([look(again)], "claude-code")

    assert [each.text for each in timeline.events.of_session("claude-code", "s1")] == [BLANK]


def test_what_a_cursor_carries_loses_erased_words_and_keeps_the_rest(timeline: Timeline) -> None:
    carry = Progress(
        started=START,
        cwd="/orchard/pump",
        branch="pump",
        title="The zanderfisch",
        running={"1": "make pump", "2": "make zanderfisch"},
    )
    carry.calls.open("a", OpenCall(event=event(1).id, tool="Bash", detail="make zanderf…"))
    carry.calls.open("b", OpenCall(event=event(2).id, tool="Bash", detail="make gate"))
    session = replace(SESSION, title="The zanderfisch", cwd="/orchard/pump", branch="pump")
    said = replace(event(1), text="Ask it on pump in /orchard/pump", command="make zanderfisch")
    read = look(said, event(2), session=session)

    def held() -> Progress | None:
        cursor = timeline.files.cursor("/t/s1.jsonl")
        return Progress.from_carry(cursor.carry) if cursor else None

    wanted = replace(carry, title="", running={"1": "make pump", "2": ""}, calls=OpenCalls.from_carry(carry.calls.to_carry()))
    wanted.calls.open("a", OpenCall(event=event(1).id, tool="Bash", detail=""))
    timeline.commit([replace(read, cursor=replace(read.cursor, carry=carry.to_carry()))], "claude-code")
    assert held() == carry
    timeline.forgotten.add([said], blank=True)
    assert held() == wanted

    timeline.commit([replace(read, cursor=replace(read.cursor, carry=carry.to_carry()))], "claude-code")
    assert held() == wanted
