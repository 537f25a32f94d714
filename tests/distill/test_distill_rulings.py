"""What a person settles in terse answers is kept in their words; what merely surrounds it is not."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kite_memory.distill.offline import OfflineExtractor
from kite_memory.extensions.contract.extractor_contract import chunk, event
from kite_memory.model.event import Event, EventType
from kite_memory.model.note import Decision, Preference, RecordItem

CHATS: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("rulings.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Invented, half of them without a rule, by somebody who had not seen how rules are reported."""
RULED = [chat for chat in CHATS if chat["rule"]]
OTHERS = [chat for chat in CHATS if not chat["rule"]]


def chat(*said: str) -> tuple[Event, ...]:
    """A person and their agent in turns, the person first."""
    kinds = (EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE)
    return tuple(event(number, text, kinds[(number - 1) % 2]) for number, text in enumerate(said, 1))


def items_of(*events: Event) -> tuple[RecordItem, ...]:
    return OfflineExtractor().extract(chunk(events)).record.items()


def events_of(messages: Sequence[dict[str, str]]) -> tuple[Event, ...]:
    return tuple(
        event(number, each["text"], EventType.USER_MESSAGE if each["role"] == "user" else EventType.ASSISTANT_MESSAGE)
        for number, each in enumerate(messages, 1)
    )


def as_it_went(events: Sequence[Event]) -> dict[str, str]:
    """What the chat leaves where each exchange is reported on its own: notes of one title grow together."""
    grown: dict[str, str] = {}
    begun = 0
    for at, each in enumerate(events):
        if each.type is EventType.ASSISTANT_MESSAGE or at + 1 == len(events):
            reported_now = replace(chunk(tuple(events[begun : at + 1])), before=tuple(events[:begun]), noted=len(grown))
            for item in OfflineExtractor().extract(reported_now).record.items():
                grown[item.title] = f"{grown.get(item.title, '')} {item.body}"
            begun = at + 1
    return grown


def share(rule: str, note: str) -> float:
    wanted = set(re.findall(r"[a-z0-9]+", rule.lower()))
    return len(wanted & set(re.findall(r"[a-z0-9]+", note.lower()))) / len(wanted)


def test_a_rule_of_several_clauses_is_kept_in_one_note() -> None:
    best = [max((share(each["rule"], item.body) for item in items_of(*events_of(each["messages"]))), default=0.0) for each in RULED]

    assert len(RULED) == 20
    assert sum(each >= 0.6 for each in best) >= 18


def test_a_rule_is_kept_in_one_note_where_it_is_reported_piece_by_piece() -> None:
    best = [
        max((share(each["rule"], body) for body in as_it_went(events_of(each["messages"])).values()), default=0.0) for each in RULED
    ]

    assert sum(each >= 0.6 for each in best) >= 18


def test_a_chat_that_settles_nothing_leaves_no_word_of_the_persons() -> None:
    fired = [each["id"] for each in OTHERS if any(item.origin == "user" for item in items_of(*events_of(each["messages"])))]

    assert len(OTHERS) == 20
    assert len(fired) <= 2


RECOMMENDED = (
    "RabbitMQ keeps a message until a worker confirms it, Redis does not. I recommend RabbitMQ for the mail queue, because a lost"
    " mail is worse than a slow one."
)


@pytest.mark.parametrize("assent", ["Agreed.", "go ahead", "yes, do that", "sounds good", "Perfect, thanks!"])
def test_a_bare_assent_lends_the_persons_word_to_what_was_recommended(assent: str) -> None:
    (found,) = [
        item
        for item in items_of(*chat("redis or rabbitmq for the mail queue?", RECOMMENDED, assent, "Done."))
        if item.origin == "user"
    ]

    assert isinstance(found, Decision)
    assert "I recommend RabbitMQ for the mail queue" in found.body
    assert assent not in found.body


def test_a_choice_in_so_many_words_is_kept_with_what_it_chose() -> None:
    found = items_of(*chat("redis or rabbitmq for the mail queue?", RECOMMENDED, "we go with RabbitMQ", "Good, I'll set it up."))

    assert any(item.origin == "user" and "RabbitMQ" in item.title for item in found)


def test_an_assent_with_the_decision_behind_it_keeps_the_decision() -> None:
    said = "Agreed. Decision: mails are retried 5 times within an hour, then they go to the dead letter queue."

    found = items_of(*chat("what about mails that fail?", "They could be retried, or dropped at once.", said, "Noted."))

    assert any("5 times within an hour" in item.body and item.origin == "user" for item in found)


@pytest.mark.parametrize("assent", ["yes", "That's the rule going forward, yes.", "exactly", "ok continue", "👍", "right, thanks"])
def test_a_bare_assent_is_never_a_note(assent: str) -> None:
    assert items_of(*chat("is the log rotated?", "It is, every night.", assent, "Good.")) == ()


def test_a_correction_in_passing_is_a_preference() -> None:
    (found,) = items_of(
        *chat("add left-pad", "I ran `npm install left-pad`.", "no, don't use npm here, we always use pnpm", "Sorry.")
    )

    assert isinstance(found, Preference)
    assert found.origin == "user"
    assert "pnpm" in found.body


def test_an_offer_that_no_one_took_is_no_decision() -> None:
    offer = "Should failed mails be retried? I would retry them 5 times within an hour and then drop them into a dead letter queue."

    assert items_of(*chat("what about mails that fail?", offer)) == ()
    assert [
        item
        for item in items_of(*chat("what about mails that fail?", offer, "how big is that queue now?"))
        if item.origin == "user"
    ] == []


def test_a_plan_that_the_person_changed_is_not_kept() -> None:
    plan = (
        "The mails must go through Redis, because it is installed already and a list is all that a queue needs. Each worker pops"
        " from the list `mails` and writes to `sent`, so that nothing has to be locked, and failed mails are pushed back."
    )

    found = items_of(
        *chat("how would you build the mail queue?", plan, "no, use RabbitMQ, never Redis: mails must survive a restart", "Ok.")
    )

    assert [item for item in found if "a list is all that a queue needs" in item.body] == []
    assert any("RabbitMQ" in item.body and item.origin == "user" for item in found)


@pytest.mark.parametrize(
    "status",
    [
        "The agent is still active. It is now 12 minutes into its run and has edited 4 files, so let me wait for it.",
        "Batch 4 (zig, dart) is committed and pushed. All 212 tests pass, the linter is clean and the working tree is empty.",
        "Done. I've made the commit and pushed the branch, and the pull request is ready for review now.",
    ],
)
def test_a_status_is_never_a_note(status: str) -> None:
    assert items_of(*chat("how far are you with the batches?", status)) == ()


def test_a_symptom_is_attached_only_to_a_note_that_speaks_of_it() -> None:
    cause = (
        "The importer drops rows because the reader skips the first line of each file, even where there is no header. The header is"
        " only detected by its name, which must be `id`, so a file without one loses its first row silently."
    )
    strange = replace(event(2, "fatal: unable to access remote: timed out", EventType.ERROR, status="failed"), command="git fetch")
    alike = replace(event(2, "AssertionError: importer kept 11 of 12 rows", EventType.ERROR, status="failed"), command="make check")

    def symptom(error: Event) -> str:
        (found,) = items_of(event(1, "why does the importer lose rows?"), error, event(3, cause, EventType.ASSISTANT_MESSAGE))
        return getattr(found, "symptom", "")

    assert symptom(strange) == ""
    assert symptom(alike) == "AssertionError: importer kept 11 of 12 rows"
