"""Rules over one session in several chunks: what was before explains, and how much was noted already counts."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from kite_memory.distill.offline import OfflineExtractor
from kite_memory.distill.offline.wording import joined
from kite_memory.extensions.contract.extractor_contract import DECIDED, EXPLAINED, chunk, event
from kite_memory.model.event import Event, EventType
from kite_memory.model.note import Decision, Insight, Preference, RecordItem

TALK = EventType.ASSISTANT_MESSAGE
OFFER = event(
    2,
    """There are two ways to keep the queue's leases honest:

1. Renew the lease from the worker every minute, so that a crashed worker loses it soon
2. Store the worker's heartbeat in its own table, so that the jobs table is never touched by a renewal

Which one do you want?""",
    TALK,
)
PICK = event(3, "2 please")


def distilled(*events: Event, before: tuple[Event, ...] = (), noted: int = 0) -> tuple[RecordItem, ...]:
    changed = dataclasses.replace(chunk(events), before=before, noted=noted)
    return OfflineExtractor().extract(changed).record.items()


def findings(first: int, turns: int) -> list[Event]:
    """Turns that each find something else, in words of their own."""
    said: list[Event] = []
    for turn in range(turns):
        own = [f"{chr(97 + turn // 26)}{chr(97 + turn % 26)}{letter}ola" for letter in "abcdefghijklmnopqrstuvwxyz"]
        one, two, three, *rest = (" ".join(own[at : at + 4]) for at in range(0, 24, 4))
        said.append(event(first + 2 * turn, f"why does the {own[0]} {own[5]} stop?"))
        said.append(
            event(
                first + 2 * turn + 1,
                f"The root cause is the {one}: it must never open {two}, because otherwise {three} stays empty. Instead of"
                f" {own[0]} the {own[4]} now waits, and without {rest[0]} it cannot start again. Only {rest[1]} is checked by"
                f" {own[1]} and by {own[5]}, so {rest[2]} comes late, even if {own[2]} and {own[8]} are full. Since {own[9]} and"
                f" {own[3]} are on the same {own[10]}, one of them is always {own[11]}, and nobody sees that {own[12]} has to be"
                f" {own[13]}.",
                TALK,
            )
        )
    return said


def test_an_option_that_was_offered_in_an_earlier_chunk_can_be_picked_in_this_one() -> None:
    (found,) = distilled(PICK, before=(event(1, "what about the leases?"), OFFER))

    assert isinstance(found, Decision)
    assert "heartbeat" in found.body
    assert found.evidence == (OFFER.id, PICK.id)


def test_what_was_reported_before_is_not_reported_again() -> None:
    stated, explained = event(1, DECIDED), event(2, EXPLAINED, TALK)

    assert distilled(stated, explained)
    assert distilled(event(3, "thanks"), event(4, "You're welcome.", TALK), before=(stated, explained)) == ()


def test_a_turn_that_goes_on_is_read_with_the_question_it_began_with() -> None:
    asked, result = findings(1, 1)

    (found,) = distilled(result, before=(asked,))

    assert isinstance(found, Insight)
    assert found.evidence == (asked.id, result.id)


def test_the_more_a_session_gave_the_more_it_takes_for_another_note_of_what_an_agent_says() -> None:
    assert len(distilled(*findings(1, 4))) == 4
    assert distilled(*findings(1, 4), noted=50) == ()


def test_what_a_person_says_outright_is_kept_however_much_was_noted() -> None:
    (found,) = distilled(event(1, "Never push to main without asking me."), noted=500)

    assert isinstance(found, Preference)


def test_a_cause_shows_what_it_ruled_out() -> None:
    found = distilled(
        event(1, "why do some jobs run twice at night?"),
        event(
            2,
            "The problem is the connection pool of the sweeper: it hands one connection to two workers, so both see the same job"
            " as free. The pool is shared between threads because the factory caches it.",
            TALK,
        ),
        dataclasses.replace(
            event(3, "AssertionError: job 7 ran twice", EventType.TOOL_RESULT, command="make check", status="failed")
        ),
        event(
            4,
            "Found it. The root cause is the lease check in `sweeper.py`: it compares naive local time with the UTC time of the"
            " database, so every lease taken within two hours of midnight looks expired and the job runs twice. The fix converts"
            " both sides to UTC before comparing them. A regression test now freezes the clock at half past midnight.",
            TALK,
        ),
    )

    assert any("Ruled out: The connection pool of the sweeper." in item.body for item in found)


@given(st.lists(st.text("ab .;,!?:…”", max_size=12), max_size=6))
def test_a_paragraph_ends_and_each_of_its_parts_is_divided_from_the_next(texts: list[str]) -> None:
    result = joined(texts)

    assert result == "" or result.endswith(tuple(".!?…”"))


def test_items_of_a_list_are_divided_by_semicolons() -> None:
    assert joined(["Renew the lease", "It is short.", "Store the heartbeat", "Both work"]) == (
        "Renew the lease; It is short. Store the heartbeat; Both work."
    )
