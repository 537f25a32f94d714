"""The outbox: answers are on disk before anyone acts on them, and no call is made that was not booked."""

import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.distill.budget import Budget
from kite_memory.distill.condense import Span
from kite_memory.distill.extractor import Usage
from kite_memory.distill.outbox import Outbox, PutOff, WaitingChunk
from kite_memory.distill.parse_answer import from_json, to_json
from kite_memory.errors import StateDamaged, StateNewer, StateNotWritten
from kite_memory.model.note import Decision, Fact, Insight, OpenQuestion, Preference, Record, RecordItem, Rejected, Topic
from kite_memory.timeline.store import Timeline

DAY = "2026-03-01"
ROOMY = Budget(dollars=1.0, calls=100)
ESTIMATE = Usage(dollars=0.02)
RECORD = Record(
    topics=(Topic(name="grafting", summary="", items=(Fact(title="t", body="b", evidence=("e1",), importance=2, origin="user"),)),)
)


def span(number: int, session: str = "s1") -> Span:
    return Span(id=f"chunk-{number}", provider="claude-code", session=session, first=number * 10, last=number * 10 + 9, weight=1)


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    box = Outbox(tmp_path / "outbox.sqlite")
    yield box
    box.close()


def test_forming_moves_the_session_and_repeats_harmlessly(outbox: Outbox) -> None:
    outbox.formed.add([span(0), span(1)])
    outbox.formed.add([span(0), span(1)])

    assert outbox.formed.chunked_to() == {("claude-code", "s1"): 19}
    assert outbox.states() == {"waiting": 2}


@given(st.lists(st.tuples(st.sampled_from(["s1", "s2"]), st.integers(1, 3), st.booleans()), max_size=12))
def test_what_was_skipped_is_what_no_chunk_holds(steps: list[tuple[str, int, bool]]) -> None:
    by_name: dict[str, list[bool]] = {"s1": [], "s2": []}
    with tempfile.TemporaryDirectory() as folder:
        box = Outbox(Path(folder) / "outbox.sqlite")
        for session, length, skipped in steps:
            first = len(by_name[session])
            by_name[session] += [skipped] * length
            if skipped:
                box.formed.skip("claude-code", session, first + length - 1)
            else:
                name = f"{session}-{first}"
                box.formed.add(
                    [Span(id=name, provider="claude-code", session=session, first=first, last=first + length - 1, weight=1)]
                )
        gaps = box.formed.gaps()
        box.close()

    passed_over = {(session, at) for _, session, first, last in gaps for at in range(first, last + 1)}
    assert passed_over == {(session, at) for session, each in by_name.items() for at, skipped in enumerate(each) if skipped}


def test_a_chunk_that_is_formed_again_at_another_place_leaves_no_gap_behind_it(outbox: Outbox) -> None:
    outbox.formed.add([Span(id="a", provider="claude-code", session="s1", first=0, last=9, weight=1)])
    outbox.formed.skip("claude-code", "s1", 29)

    outbox.formed.add([Span(id="a", provider="claude-code", session="s1", first=0, last=29, weight=1)])

    assert outbox.formed.gaps() == []
    assert outbox.states() == {"waiting": 1}


def test_chunks_are_asked_in_the_order_they_were_formed(outbox: Outbox) -> None:
    outbox.formed.add([span(3), span(1)])

    first = outbox.next_waiting(0.0)

    assert isinstance(first, WaitingChunk)
    assert first.id == "chunk-3"


def test_a_chunk_put_off_lets_others_go_first_and_comes_back(outbox: Outbox) -> None:
    outbox.formed.add([span(0), span(1)])
    outbox.reserve("chunk-0", ESTIMATE, ROOMY, day=DAY)
    outbox.put_off("chunk-0", Usage(), not_before=50.0, reason="busy")

    now = outbox.next_waiting(10.0)
    assert isinstance(now, WaitingChunk)
    assert now.id == "chunk-1"
    outbox.refuse("chunk-1", Usage(), reason="no")
    assert outbox.next_waiting(10.0) == PutOff(until=50.0, reason="busy")
    later = outbox.next_waiting(50.0)
    assert isinstance(later, WaitingChunk)
    assert later.id == "chunk-0"


def test_an_answer_survives_reopening_until_it_is_written(tmp_path: Path) -> None:
    first = Outbox(tmp_path / "o.sqlite")
    first.formed.add([span(0)])
    first.reserve("chunk-0", ESTIMATE, ROOMY, day=DAY)
    first.answer("chunk-0", RECORD, Usage(dollars=0.01), extractor="x")
    first.close()

    second = Outbox(tmp_path / "o.sqlite")
    second.recover()

    assert [chunk.record for chunk in second.answered()] == [RECORD]
    second.written("chunk-0")
    assert second.answered() == []
    assert second.states() == {"written": 1}
    second.close()


def test_a_call_that_a_crash_interrupted_is_asked_again_and_its_money_counts_as_spent(tmp_path: Path) -> None:
    first = Outbox(tmp_path / "o.sqlite")
    first.formed.add([span(0)])
    first.reserve("chunk-0", ESTIMATE, ROOMY, day=DAY)
    first.close()

    second = Outbox(tmp_path / "o.sqlite")
    second.recover()

    assert isinstance(second.next_waiting(0.0), WaitingChunk)
    assert second.calls.spending(DAY).dollars == pytest.approx(0.02)
    second.close()


@pytest.mark.parametrize("ended", ["by a crash", "nobody knows how"])
def test_what_a_call_may_have_cost_stays_spent_when_its_chunk_is_given_up(outbox: Outbox, ended: str) -> None:
    outbox.formed.add([span(0)])
    outbox.reserve("chunk-0", ESTIMATE, ROOMY, day=DAY)
    if ended == "by a crash":
        outbox.recover()
    else:
        outbox.put_off("chunk-0", None, not_before=0.0, reason="no answer")

    outbox.refuse("chunk-0", Usage(), reason="its events are gone from the timeline")

    assert outbox.calls.spending(DAY).dollars == pytest.approx(0.02)


def test_a_reader_beside_the_daemon_leaves_the_call_in_flight_alone(tmp_path: Path) -> None:
    daemon = Outbox(tmp_path / "o.sqlite")
    daemon.formed.add([span(0)])
    daemon.reserve("chunk-0", ESTIMATE, ROOMY, day=DAY)

    reader = Outbox(tmp_path / "o.sqlite")

    assert reader.states() == {"asked": 1}
    reader.close()
    daemon.close()


@given(st.lists(st.tuples(st.floats(0.001, 0.2), st.floats(0, 1)), max_size=40))
def test_the_budget_is_never_overdrawn(calls: list[tuple[float, float]]) -> None:
    outbox = Outbox(Path(tempfile.mkdtemp()) / "outbox.sqlite")
    budget = Budget(dollars=0.5, calls=10)
    made = 0
    outbox.formed.add([span(number) for number in range(len(calls))])

    for number, (estimate, share) in enumerate(calls):
        if outbox.reserve(f"chunk-{number}", Usage(dollars=estimate), budget, day=DAY):
            made += 1
            outbox.refuse(f"chunk-{number}", Usage(dollars=estimate * share), reason="")

    spent = outbox.calls.spending(DAY)
    assert spent.calls == made <= 10
    assert spent.dollars <= 0.5 + 1e-9
    outbox.close()


def test_what_costs_nothing_is_never_refused(outbox: Outbox) -> None:
    outbox.formed.add([span(0)])

    assert outbox.reserve("chunk-0", Usage(), Budget(dollars=0.0, calls=0), day=DAY)
    assert outbox.calls.spending(DAY).calls == 0


def test_an_empty_record_is_a_complete_answer(outbox: Outbox) -> None:
    outbox.formed.add([span(0)])
    outbox.reserve("chunk-0", ESTIMATE, ROOMY, day=DAY)

    outbox.answer("chunk-0", Record(topics=()), Usage(), extractor="x", refused_items=["unsupported", "unsupported"])

    assert outbox.states() == {"nothing": 1}
    assert outbox.refusals() == {"unsupported": 2}


def test_an_answer_about_an_erased_line_is_asked_for_again(outbox: Outbox) -> None:
    for number in (1, 2):
        outbox.formed.add([span(number)])
        outbox.reserve(f"chunk-{number}", Usage(), ROOMY, day=DAY)
        outbox.answer(f"chunk-{number}", RECORD, Usage(), extractor="fake")
    erased = outbox.formed.of_session("claude-code", "s1")[0]

    outbox.drop_answers([("claude-code", "s1", erased.first)])

    waiting = outbox.next_waiting(now=0.0)
    assert isinstance(waiting, WaitingChunk)
    assert (waiting.id, [each.id for each in outbox.answered()]) == ("chunk-1", ["chunk-2"])


def test_a_newer_or_damaged_file_is_refused(tmp_path: Path) -> None:
    newer, damaged = tmp_path / "newer.sqlite", tmp_path / "damaged.sqlite"
    with sqlite3.connect(newer) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    damaged.write_bytes(b"no database " * 100)

    with pytest.raises(StateNewer):
        Outbox(newer)
    with pytest.raises(StateDamaged):
        Outbox(damaged)


def test_what_cannot_be_opened_at_all_is_not_called_damaged(tmp_path: Path) -> None:
    (tmp_path / "outbox.sqlite").mkdir()

    with pytest.raises(StateNotWritten, match="may not be opened or written") as raised:
        Outbox(tmp_path / "outbox.sqlite")

    assert raised.value.hint == f"see who owns it: ls -la {tmp_path}"


def test_what_cannot_be_read_any_more_is_reported_as_ours(outbox: Outbox) -> None:
    outbox._database.execute("DROP TABLE chunks")  # as where its disk is gone

    with pytest.raises(StateNotWritten):
        outbox.states()


def test_the_folders_above_it_are_private(tmp_path: Path) -> None:
    for path in (tmp_path / "a" / "b" / "outbox.sqlite", tmp_path / "c" / "d" / "timeline.sqlite"):
        store = Outbox(path) if path.stem == "outbox" else Timeline(path)
        store.close()

        assert [stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)] == [0o700, 0o700]


def test_an_outbox_that_may_only_be_read_names_its_owner_and_not_the_disk(outbox: Outbox) -> None:
    outbox._database.execute("PRAGMA query_only = ON")

    with pytest.raises(StateNotWritten, match="may not be opened or written") as raised:
        outbox.formed.add([span(0)])

    assert raised.value.hint.startswith("see who owns it: ")


texts = st.text(max_size=40)
tuples = st.lists(texts, max_size=3).map(tuple)
common = {
    "title": texts,
    "body": texts,
    "evidence": tuples,
    "importance": st.integers(1, 3),
    "origin": st.sampled_from(["user", "assistant", "tool"]),
    "entities": tuples,
    "triggers": tuples,
}
rejected = st.lists(st.builds(Rejected, alternative=texts, reason=texts), max_size=2).map(tuple)
items: st.SearchStrategy[RecordItem] = st.one_of(
    st.builds(Decision, **common, rejected=rejected),
    st.builds(Insight, **common, symptom=texts),
    st.builds(Fact, **common),
    st.builds(Preference, **common, everywhere=st.booleans()),
    st.builds(OpenQuestion, **common),
)
topics = st.builds(
    Topic, name=texts, summary=texts, items=st.lists(items, max_size=4).map(tuple), categories=tuples, entities=tuples
)


@given(st.builds(Record, topics=st.lists(topics, max_size=3).map(tuple), cross_topic_insights=tuples))
def test_a_record_comes_back_from_json_as_it_was(record: Record) -> None:
    assert from_json(to_json(record)) == record


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"topics": 3}', b'{"topics":[{"name":"x"}],"cross_topic_insights":[]}'])
def test_a_strange_record_is_named_as_damage(text: bytes) -> None:
    with pytest.raises(StateDamaged):
        from_json(text)
