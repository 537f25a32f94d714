"""Chunks: every event in exactly one, cut where a story ends."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.distill.condense import ChunkPolicy, finished, worth_asking
from kite_memory.distill.offline.wording import turns
from kite_memory.extensions.contract.extractor_contract import event
from kite_memory.model.event import PLANNING, Event, EventType

SMALL = ChunkPolicy(target=300, most=900, idle=60.0, stalled=120.0)


MESSAGES = (EventType.ASSISTANT_MESSAGE, EventType.RESUME_POINT)


def turn(start: int, size: int) -> list[Event]:
    return [
        event(start, "please prune the tree " + "x" * (size // 2)),
        event(start + 1, "", EventType.TOOL_CALL),
        event(start + 2, "ok", EventType.TOOL_RESULT),
        event(start + 3, "done " + "y" * (size // 2), EventType.ASSISTANT_MESSAGE),
    ]


def test_a_story_still_being_reported_waits() -> None:
    assert list(finished(turn(0, 100), SMALL, quiet_for=59.9)) == []


def test_silence_ends_a_story() -> None:
    (span,) = finished(turn(0, 100), SMALL, quiet_for=60.0)

    assert (span.first, span.last) == (0, 3)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_pause_before_the_agents_word_ends_nothing(length: int) -> None:
    assert list(finished(turn(0, 200)[:length], SMALL, quiet_for=119.0)) == []


def test_what_was_left_hanging_is_finished_in_the_end() -> None:
    (span,) = finished(turn(0, 200)[:1], SMALL, quiet_for=120.0)

    assert (span.first, span.last) == (0, 0)


def test_too_little_to_ask_about_waits_for_what_comes_after_it() -> None:
    brief = [event(0, "yes"), event(1, "Done.", EventType.ASSISTANT_MESSAGE)]

    assert list(finished(brief, SMALL, quiet_for=119.0)) == []
    (span,) = finished([*brief, *turn(10, 200)], SMALL, quiet_for=60.0)
    assert (span.first, span.last) == (0, 13)


def test_with_a_model_to_pay_only_what_is_urgent_or_long_is_closed_by_a_pause() -> None:
    patient = ChunkPolicy(target=300, most=900, idle=60.0, stalled=120.0, urgent=lambda events: "keep" in events[0].text)
    calm, pressing = turn(0, 100), [event(0, "keep the pear tree where it is, " + "x" * 80), *turn(0, 100)[1:]]

    assert list(finished(calm, patient, quiet_for=119.0)) == []
    assert len(list(finished(pressing, patient, quiet_for=60.0))) == 1
    assert len(list(finished(turn(0, 400), patient, quiet_for=60.0))) == 1
    assert len(list(finished(calm, patient, quiet_for=120.0))) == 1


def test_a_turn_end_past_the_target_closes_a_chunk() -> None:
    events = turn(0, 400) + turn(10, 400) + turn(20, 10)

    spans = list(finished(events, SMALL, quiet_for=0.0))

    assert [(span.first, span.last) for span in spans] == [(0, 3), (10, 13)]


def test_small_turns_share_a_chunk() -> None:
    events = [each for start in range(0, 100, 10) for each in turn(start, 40)]

    spans = list(finished(events, SMALL, quiet_for=1e9))

    assert len(spans) < 5


def test_the_name_of_a_chunk_depends_on_its_ends_alone() -> None:
    events = turn(0, 100)
    (now,) = finished(events, SMALL, quiet_for=1e9)
    (later,) = finished(events, ChunkPolicy(target=5, most=9000, idle=0), quiet_for=1e9)

    assert now.id == later.id


event_types = st.sampled_from(list(EventType))


@given(st.lists(st.tuples(event_types, st.integers(0, 600)), max_size=60), st.floats(0, 240))
def test_chunks_are_consecutive_and_cover_a_prefix(shapes: list[tuple[EventType, int]], quiet_for: float) -> None:
    events = [event(number, "z" * size, type) for number, (type, size) in enumerate(shapes)]

    spans = list(finished(events, SMALL, quiet_for=quiet_for))

    covered = [ordinal for span in spans for ordinal in range(span.first, span.last + 1)]
    assert covered == list(range(len(covered)))
    if quiet_for >= SMALL.stalled:
        assert len(covered) == len(events)
    for span in spans[:-1]:
        following = events[span.last + 1]
        assert following.type in (*MESSAGES, EventType.USER_MESSAGE) or span.weight >= 2 * SMALL.most


def test_a_model_is_not_asked_about_a_yes() -> None:
    assert not worth_asking([event(0, "yes"), event(1, "ls", EventType.TOOL_CALL), event(2, "x" * 500, EventType.TOOL_RESULT)])
    assert worth_asking([event(0, "We keep the graft records in SQLite, because the greenhouse has no network at all, ever.")])


def test_a_silence_amid_a_session_cuts_where_it_would_have_cut_at_the_time() -> None:
    policy = ChunkPolicy(target=300, most=900, idle=60.0, stalled=120.0, at_pauses=True)
    first, second = turn(0, 200), turn(4, 200)
    pause = timedelta(seconds=90)
    events = [*first, *(replace(each, at=each.at + pause) for each in second)]

    assert [(span.first, span.last) for span in finished(events, policy, quiet_for=0)] == [(0, 3)]
    assert list(finished(events, replace(policy, at_pauses=False), quiet_for=0)) == []
    assert list(finished([*first[:2], *(replace(each, at=each.at + pause) for each in first[2:])], policy, quiet_for=0)) == []


def test_the_time_that_an_agent_takes_to_write_its_next_call_cuts_nothing() -> None:
    policy = ChunkPolicy(target=300, most=900, idle=60.0, stalled=120.0, at_pauses=True)
    said, late = turn(0, 200), timedelta(seconds=90)
    rest = [
        event(4, "", EventType.TOOL_CALL),
        event(5, "ok", EventType.TOOL_RESULT),
        event(6, "mended", EventType.ASSISTANT_MESSAGE),
    ]
    following = [replace(each, at=each.at + late) for each in rest]

    assert list(finished([*said, *following], policy, quiet_for=0)) == []
    assert [(span.first, span.last) for span in finished([*said, *following], policy, quiet_for=60.0)] == [(0, 6)]


@pytest.mark.parametrize(
    "said", ["remember that the staging port is 5433", "From now on, never push to main", "Merk dir: Port 5433"]
)
def test_a_brief_request_to_remember_is_worth_asking_about(said: str) -> None:
    assert worth_asking([event(0, said), event(1, "Noted.", EventType.ASSISTANT_MESSAGE)])
    assert not worth_asking([event(0, "Noted."), event(1, said, EventType.ASSISTANT_MESSAGE)])


def test_an_approved_plan_begins_a_turn_as_a_prompt_does() -> None:
    plan = replace(event(8, "Prune the plum.", EventType.DECISION), tool=PLANNING)
    events = [*turn(0, 300), *turn(4, 300), plan, event(9, "Pruning.", EventType.ASSISTANT_MESSAGE)]

    *_, span = finished(events, SMALL, quiet_for=0)
    *_, last = turns(tuple(events))

    assert span.last == 7
    assert (last.asked, last.events[0]) == (None, plan)
