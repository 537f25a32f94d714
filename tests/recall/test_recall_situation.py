"""What a prompt's session says about it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.extensions.contract.extractor_contract import event
from kite_memory.model.event import Event, EventType
from kite_memory.recall.select import Situation, situation_of


def person(number: int, text: str) -> Event:
    return event(number, text)


def agent(number: int, text: str) -> Event:
    return event(number, text, EventType.ASSISTANT_MESSAGE)


def ran(number: int, command: str, path: str = "") -> Event:
    return replace(event(number, "output", EventType.COMMAND, command=command), path=path)


def test_a_session_never_seen_says_nothing() -> None:
    assert situation_of([]) == Situation()
    assert situation_of([], "prune the hedge") == Situation()
    assert Situation().around == ""


def test_the_exchange_is_what_the_agent_said_since_the_person_spoke_last() -> None:
    events = [agent(1, "Long ago."), person(2, "prune it"), agent(3, "I looked."), agent(4, "Shall I prune?")]

    assert situation_of(events).exchange == "I looked.\nShall I prune?"


def test_the_newest_comes_first() -> None:
    events = [
        person(1, "first"),
        ran(2, "make", "src/a.py"),
        person(3, "second"),
        ran(4, "make test", "src/b.py"),
        ran(5, "make lint", "src/a.py"),
        person(6, "third"),
    ]

    situation = situation_of(events)

    assert situation.prompts == ("third", "second", "first")
    assert situation.files == ("src/a.py", "src/b.py")
    assert situation.commands == ("make lint", "make test", "make")


def test_what_failed_is_reported() -> None:
    events = [
        event(1, "ladder not found", EventType.TOOL_RESULT, status="failed"),
        event(2, "all well", EventType.TOOL_RESULT, status="ok"),
        event(3, "out of apples", EventType.ERROR),
    ]

    assert situation_of(events).errors == ("out of apples", "ladder not found")


def test_the_prompt_itself_and_what_came_of_it_is_no_part_of_what_came_before() -> None:
    events = [person(1, "prune it"), agent(2, "Shall I?"), person(3, " yes\n"), agent(4, "Done.")]

    assert situation_of(events, "yes") == situation_of(events[:2])
    assert situation_of(events, "yes").position == 1
    assert situation_of(events, "something else").prompts == (" yes\n", "prune it")


def test_another_prompt_of_the_same_words_earlier_stays() -> None:
    events = [person(1, "yes"), agent(2, "Pruned."), person(3, "now water it"), agent(4, "Shall I?")]

    assert situation_of(events, "yes").prompts == ("now water it", "yes")


@pytest.mark.parametrize(("spoken", "position"), [(0, 2), (2, 2), (9, 9)])
def test_who_knows_how_often_the_person_spoke_is_believed(spoken: int, position: int) -> None:
    assert situation_of([person(1, "one"), person(2, "two")], spoken=spoken).position == position


def test_the_prompt_itself_is_not_counted() -> None:
    assert situation_of([person(1, "one"), person(2, "two")], "two", spoken=2).position == 1


@given(
    st.lists(
        st.builds(
            lambda number, text, type, command, path, status: replace(
                event(number, text, type, command=command, status=status), path=path
            ),
            st.integers(0, 99),
            st.text() | st.just("word " * 2_000),
            st.sampled_from(EventType),
            st.text() | st.just("make " * 500),
            st.text() | st.just("deep/" * 3_000 + "leaf"),
            st.sampled_from(["", "ok", "failed"]),
        ),
        max_size=30,
    ),
    st.text(),
    st.integers(0, 10),
)
def test_it_is_bounded_whatever_the_session(events: list[Event], prompt: str, spoken: int) -> None:
    situation = situation_of(events, prompt, spoken=spoken)

    assert len(situation.exchange) <= 1_500
    assert len(situation.prompts) <= 3 and all(len(each) <= 400 for each in situation.prompts)
    assert len(situation.files) <= 12
    assert len(situation.commands) <= 12 and all(len(each) <= 200 for each in situation.commands)
    assert len(situation.errors) <= 3 and all(len(each) <= 200 for each in situation.errors)
    assert len(situation.around) <= 2_500
    assert 0 <= situation.position <= 30


def test_around_a_prompt_are_the_exchange_and_the_names_in_play() -> None:
    situation = Situation(
        exchange="Shall I prune?",
        prompts=("prune the hedge", "hello"),
        files=("/home/ada/orchard/src/hedge.py", "C:\\orchard\\ladder.py"),
        commands=("make prune", "make", "ls", "pwd"),
        errors=("out of ladders", "older"),
    )

    assert situation.around == "Shall I prune?\nprune the hedge\nhedge.py ladder.py\nmake prune\nmake\nls\nout of ladders"
