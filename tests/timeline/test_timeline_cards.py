"""Cards: one for each turn that came to something, in step with what is stored, the newer of two of one matter first."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.extensions.contract.extractor_contract import event
from kite_memory.model.event import Cursor, Event, EventType, ReadResult, RedactedResult, Session
from kite_memory.timeline.cards import find, highest
from kite_memory.timeline.conversations import CardQuery, ConversationEmbedder
from kite_memory.timeline.store import CardHit, Timeline
from tests.fakes.clock import UnixClock

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
NOW = MONDAY + timedelta(days=90)
MEANING = ConversationEmbedder(
    space="test",
    of_texts=lambda texts: np.full((len(texts), 4), 0.5, np.float32),
    of_question=lambda text: np.full(4, 0.5, np.float32),
)


@pytest.fixture
def clock() -> UnixClock:
    return UnixClock(NOW)


@pytest.fixture
def timeline(tmp_path: Path, clock: UnixClock) -> Iterator[Timeline]:
    store = Timeline(tmp_path / "timeline.sqlite", clock=clock)
    yield store
    store.close()


def chat(name: str, *said: str, days: int = 0, project: str = "orchard") -> list[Event]:
    """What a person and an agent said by turns."""
    session = Session(id=name, provider="claude-code", started=MONDAY + timedelta(days=days), project=project, cwd="/home/ada")
    kinds = (EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE)
    return [event(number, text, kinds[number % 2], session=session) for number, text in enumerate(said)]


def keep(timeline: Timeline, result: Sequence[Event], *, days: int = 0, project: str = "orchard", amends: bool = False) -> None:
    began = MONDAY + timedelta(days=days)
    session = Session(id=result[0].session, provider="claude-code", started=began, project=project, cwd="/home/ada")
    events = tuple(replace(each, at=began + timedelta(minutes=each.ordinal)) for each in result)
    cursor = Cursor(position=1, size=1, mtime_ns=1)
    look = ReadResult(path=f"/t/{session.id}", session=session, events=events, problems=(), cursor=cursor, amends=amends)
    timeline.commit([RedactedResult(look)], "claude-code")


def talked(timeline: Timeline, name: str, *said: str, days: int = 0, project: str = "orchard") -> list[Event]:
    result = chat(name, *said, days=days, project=project)
    keep(timeline, result, days=days, project=project)
    while timeline.cards.rebuild():
        pass
    return result


def found(timeline: Timeline, text: str, **wanted: Any) -> list[str]:
    return [hit.prompt.text for hit in _hits(timeline, text, **wanted)]


def _hits(timeline: Timeline, text: str, **wanted: Any) -> tuple[CardHit, ...]:
    return timeline.cards.find(CardQuery(text=text, **wanted))


SLUICE = ("Why does the sluice jam in spring?", "The gate swells with meltwater, so it is planed in March.")
PUMP = ("Which pump do we run at night?", "The small one: the large one wakes the neighbours.")


def test_a_turn_is_found_by_its_prompt_and_by_the_answer_that_closes_it(timeline: Timeline) -> None:
    talked(timeline, "a", *SLUICE, *PUMP)

    assert found(timeline, "sluice") == found(timeline, "meltwater swelling") == [SLUICE[0]]
    assert found(timeline, "neighbour") == [PUMP[0]]
    assert found(timeline, "zeppelin") == []


def test_an_agent_is_asked_for_by_its_whole_name(timeline: Timeline) -> None:
    talked(timeline, "a", *SLUICE)

    assert found(timeline, "sluice", provider="claude-code") == [SLUICE[0]]
    assert found(timeline, "sluice", provider="claude") == []


def test_what_no_one_answered_is_a_card_only_as_a_sessions_last_word(timeline: Timeline) -> None:
    talked(timeline, "a", *SLUICE, "Plane it in autumn from now on.")
    talked(timeline, "b", *PUMP, "Thanks!")

    assert found(timeline, "autumn") == ["Plane it in autumn from now on."]
    assert found(timeline, "thanks") == []


def test_an_answer_that_goes_on_takes_the_place_of_what_stood_there(timeline: Timeline) -> None:
    first = chat("a", *SLUICE)
    keep(timeline, first)
    timeline.cards.rebuild()
    more = [*first, replace(first[1], id="00000009-a", ordinal=2, text="In short: the hinge was rusty, and has been oiled.")]
    keep(timeline, more)
    timeline.cards.rebuild()

    assert [hit.answer.text for hit in _hits(timeline, "rusty hinges")] == [more[-1].text]
    assert timeline._database.one("SELECT COUNT(*) FROM cards") == (1,)


def test_a_turn_is_found_by_what_was_said_on_the_way_to_its_answer(timeline: Timeline) -> None:
    way = chat("a", SLUICE[0], "I look at the hinge first.", "It was oiled.")
    keep(timeline, [way[0], replace(way[1], ordinal=1), replace(way[1], id="00000009-a", ordinal=2, text="The gate swells.")])
    timeline.cards.rebuild()

    (hit,) = _hits(timeline, "hinges")

    assert (hit.prompt.text, hit.answer.text) == (SLUICE[0], "The gate swells.")


def test_what_was_said_on_the_way_is_found_no_more_once_it_was_let_go(timeline: Timeline) -> None:
    first, second = chat("a", *SLUICE)
    keep(timeline, [first, second, replace(second, id="00000009-a", ordinal=2, text="In short: the hinge was rusty.")])
    timeline.cards.rebuild()

    timeline.forgotten.add([second])
    timeline.cards.rebuild()

    assert found(timeline, "meltwater") == []
    assert found(timeline, "rusty hinges") == [SLUICE[0]]


def test_a_turn_is_closed_when_its_session_has_been_quiet_for_a_while(timeline: Timeline, clock: UnixClock) -> None:
    clock.now = MONDAY + timedelta(minutes=2)
    keep(timeline, chat("a", *SLUICE))

    soon = timeline.cards.rebuild()
    clock.now += timedelta(minutes=2)

    assert soon == 0
    assert timeline.cards.rebuild() == 1


def test_the_newest_sessions_of_a_backlog_come_first(timeline: Timeline) -> None:
    for days in (3, 9, 6):
        keep(timeline, chat(f"s{days}", f"What of day {days}?", "It rained for hours on end."), days=days)

    timeline.cards.rebuild(limit=1)

    assert found(timeline, "rained") == ["What of day 9?"]


def test_a_backlog_keeps_no_new_turn_waiting_for_its_vector(timeline: Timeline, clock: UnixClock) -> None:
    talked(timeline, "new", *SLUICE, "Thanks for telling me.", days=89)
    for number in range(3):
        talked(timeline, f"old{number}", *PUMP, days=number)

    assert timeline.vectors.embed(MEANING, per_day=0) == 2
    assert timeline.vectors.embed(MEANING, per_day=0) == 0


def test_rarity_is_the_projects_own_and_others_may_be_left_out(timeline: Timeline) -> None:
    talked(timeline, "a", "Does the valve leak?", "The valve is tight, I have looked at it.")
    for number in range(5):
        question = f"Is valve {number} open?"
        talked(timeline, f"m{number}", question, "The valve is open, as it should be.", project="mill")

    assert found(timeline, "valve", within="orchard") == ["Does the valve leak?"]
    assert len(found(timeline, "valve")) == 6
    ours, theirs = (_hits(timeline, "valve", within=project)[0] for project in ("orchard", "mill"))
    assert ours.bm25 > theirs.bm25


def test_what_was_let_go_is_found_no_more(timeline: Timeline) -> None:
    cards = talked(timeline, "a", *SLUICE, *PUMP)

    timeline.forgotten.add(cards[1:2])

    assert found(timeline, "sluice") == []
    assert found(timeline, "pump") == [PUMP[0]]


def test_of_forgotten_words_no_posting_is_left(timeline: Timeline) -> None:
    cards = talked(timeline, "a", *SLUICE)

    timeline.forgotten.add(cards, blank=True)
    timeline.cards.rebuild()

    assert timeline._database.all("SELECT * FROM card_words") == []
    assert timeline._database.all("SELECT cards, words FROM card_projects") == [(0, 0)]


def test_of_two_of_one_matter_the_newer_comes_first_and_the_older_is_marked(timeline: Timeline) -> None:
    talked(timeline, "old", "How long may the sluice jam before we page someone?", "Ten minutes of a sluice jam page the miller.")
    talked(timeline, "between", *PUMP, days=1)
    newer = "The sluice jam woke everyone: no longer page the miller, page the smith after an hour."
    talked(timeline, "new", newer, "Changed: a sluice jam of an hour pages the smith.", days=2)

    hits = _hits(timeline, "how long until a sluice jam is paged")

    assert [hit.session.id for hit in hits] == ["new", "old"]
    assert [hit.later and hit.later.session for hit in hits] == [None, "new"]


def test_without_a_word_of_change_what_is_alike_stays_in_its_order(timeline: Timeline) -> None:
    talked(timeline, "old", *SLUICE)
    talked(timeline, "new", "Does the mill wheel turn in spring?", "It turns, slowly.", days=2)

    hits = _hits(timeline, "why does the sluice jam in spring")

    assert [hit.session.id for hit in hits] == ["old", "new"]
    assert all(hit.later is None for hit in hits)


def by_topic(text: str) -> list[float]:
    """A vector toward the pump, the boat, or both, which tells texts in other words of one topic from others."""
    pump, boat = "pump" in text.lower(), "boat" in text.lower()
    return [pump / (pump + boat or 1) ** 0.5, boat / (pump + boat or 1) ** 0.5]


BY_TOPIC = ConversationEmbedder(
    space="topics",
    of_texts=lambda texts: np.array([by_topic(text) for text in texts], np.float32),
    of_question=lambda text: np.array(by_topic(text), np.float32),
)


def by_meaning(timeline: Timeline, text: str) -> tuple[CardHit, ...]:
    while timeline.vectors.embed(BY_TOPIC, 200, per_day=10**9):
        pass
    return timeline.cards.find(CardQuery(text=text), BY_TOPIC)


def test_a_later_conversation_in_other_words_that_is_as_near_comes_first(timeline: Timeline) -> None:
    old = "Which pump shall we run at night?", "The small pump runs from ten until six, as the large one is loud."
    new = "Neighbours hear it. Leave every pump off from ten until seven.", "Each pump stays off in the plan until seven."
    talked(timeline, "old", *old)
    talked(timeline, "new", *new, days=2)

    by_words = _hits(timeline, "which small pump at night")
    hits = by_meaning(timeline, "which small pump at night")

    assert [(hit.session.id, hit.later) for hit in by_words] == [("old", None), ("new", None)]
    assert [hit.session.id for hit in hits] == ["new", "old"]
    assert [hit.later and hit.later.session for hit in hits] == [None, "new"]


def test_a_turn_of_a_long_session_is_marked_and_keeps_its_place(timeline: Timeline) -> None:
    beams = [said for number in range(7) for said in (f"Is beam {number} sound?", f"Beam {number} is sound.")]
    talked(
        timeline,
        "old",
        "Which pump shall we run at night?",
        "The small pump runs at night from ten until six, as the large one is loud.",
        *beams,
    )
    talked(
        timeline,
        "new",
        "Leave every pump off at night from now on.",
        "Each pump stays off in the plan, from ten until seven.",
        *beams,
        days=2,
    )

    hits = by_meaning(timeline, "which pump at night")

    assert [hit.session.id for hit in hits[:2]] == ["old", "new"]
    assert [hit.later and hit.later.session for hit in hits[:2]] == ["new", None]


def test_a_later_conversation_about_something_else_stays_behind(timeline: Timeline) -> None:
    talked(timeline, "old", "Which pump shall we run at night?", "The small pump runs from ten until six.")
    talked(timeline, "new", "Which colour shall the boat have?", "The boat is painted green, as the small one was.", days=2)

    hits = by_meaning(timeline, "which pump at night")

    assert hits[0].session.id == "old" and hits[0].later is None


def test_a_conversation_is_told_by_what_it_began_with_and_how_it_ended(timeline: Timeline) -> None:
    settled = "no, an hour and not a minute less; the smith sleeps badly"
    cards = talked(timeline, "a", "How long until we page?", "I could make it ten minutes.", settled, "Set to an hour.", "ship it")

    talk = timeline.cards.talk(cards[0].id)

    assert talk is not None
    assert talk.opening == "How long until we page?"
    assert settled in talk.ended and "Set to an hour." in talk.ended


def test_what_was_settled_is_about_the_cards_turn_and_no_good_night(timeline: Timeline) -> None:
    deploy = (
        "Set up the ferry on the Amstel, with oars or a cable?",
        "A cable needs no oarsman.",
        "a cable then, of hemp not of steel",
    )
    rule = "perfect. and never run the ferry in fog again, today is the exception"
    cards = talked(timeline, "a", *deploy, "The cable is up.", rule, "Noted, no ferry in fog.", "lol ok, good night")

    first, second = timeline.cards.talk(cards[0].id), timeline.cards.talk(cards[2].id)

    assert first is not None
    assert second is not None
    assert first.settled == ("never run the ferry in fog again, today is the exception", "a cable then, of hemp not of steel")
    assert second.settled == ()


def test_a_bar_is_what_nearly_all_earlier_openings_of_the_project_stay_below(timeline: Timeline) -> None:
    few = timeline.cards.opening_threshold("orchard")
    for number, question in enumerate(("Is the sluice open?", "Is the pump on?", "Who oils the hinge?", "Where is the key?")):
        talked(timeline, f"s{number}", question, "I have looked, and it is as you say.", days=number)
    talked(timeline, "again", "Is the sluice open again, and who opened the sluice?", "It was the smith, he said.", days=9)

    assert few is None
    bar = timeline.cards.opening_threshold("orchard")
    best = max(hit.bm25 for hit in _hits(timeline, "Is the sluice open again, and who opened the sluice?", besides="again"))
    assert bar is not None and 0 < bar < best


def test_with_a_share_those_cards_are_found_that_reach_it(timeline: Timeline) -> None:
    words = ["pears", "quinces", "medlars", "apples", "plums", "cherries"]
    for number in range(24):
        some = " ".join(words[number % 6 :][: 1 + number % 4])
        talked(timeline, f"c{number}", f"please prune the {some} again", "It is done, and all of it holds.", days=number)
    rows, query = timeline._database.all, " ".join(words)
    every = find(rows, query, project="orchard", limit=80)

    reached = find(rows, query, project="orchard", limit=80, share=0.6, of=every[3].card)

    assert reached == [each for each in every if each.bm25 >= 0.6 * every[3].bm25]
    assert 3 < len(reached) < len(every)


def test_a_card_that_scores_below_the_least_is_left_out(timeline: Timeline) -> None:
    talked(timeline, "a", *SLUICE, *PUMP)
    (hit,) = _hits(timeline, "sluice in spring")

    assert found(timeline, "sluice in spring", least=hit.score) == [SLUICE[0]]
    assert found(timeline, "sluice in spring", least=hit.score + 0.01) == []


@given(st.lists(st.integers(-5, 5), max_size=60), st.integers(1, 20), st.integers(-5, 5))
def test_the_highest_figures_are_those_that_sorting_all_finds(figures: list[int], most: int, least: int) -> None:
    found = highest(np.array(figures, np.float64), most, least)

    assert [figures[place] for place in found] == sorted((each for each in figures if each >= least), reverse=True)[:most]
    assert len(set(found.tolist())) == len(found)


def asked_for(timeline: Timeline, query: CardQuery) -> list[str]:
    """Return the texts whose vectors the query is compared by, once there is a vector to compare with."""
    asked: list[str] = []

    def of_question(text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        asked.append(text)
        return np.array(by_topic(text), np.float32)

    while timeline.vectors.embed(BY_TOPIC, 200, per_day=10**9):
        pass
    timeline.cards.find(query, replace(BY_TOPIC, of_question=of_question))
    return asked


def test_a_misspelled_question_is_compared_as_corrected_and_a_prompt_by_the_vector_it_has(timeline: Timeline) -> None:
    talked(timeline, "old", "When does the sluice pump run?", "The sluice pump runs from ten until six, as it is loud.")

    assert asked_for(timeline, CardQuery(text="a louder sluise pump")) == ["a louder sluic pump"]
    assert asked_for(timeline, CardQuery(text="a louder sluise pump", meant="a louder sluise pump")) == ["a louder sluise pump"]
    assert timeline.cards.find(CardQuery(text="sluise", meant="sluise"))  # its words are corrected all the same


def test_a_word_is_corrected_to_what_the_index_holds_now(timeline: Timeline) -> None:
    query = CardQuery(text="the sluise pump")
    talked(timeline, "first", "When does the pump run?", "The pump runs from ten until six, as it is loud.")
    before = asked_for(timeline, query)
    talked(timeline, "second", "Is the sluice open?", "The sluice has been open since ten, and stays so.", days=1)
    meanwhile = asked_for(timeline, query)
    timeline.forgotten.add(timeline.events.of_session("claude-code", "second"), blank=True)

    assert (before, meanwhile) == (["the sluise pump"], ["the sluic pump"])
    assert asked_for(timeline, query) == ["the sluise pump"]
