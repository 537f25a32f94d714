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


@pytest.mark.parametrize(
    ("advice", "reply"),
    [
        ("I'd not use the beta driver in production, because it drops connections. Install it anyway?", "yes"),
        ("I don't recommend the beta driver, because it drops connections under load. Shall I add it?", "yes"),
        ("I recommended the beta driver at first, and it drops connections under load. Shall I go on?", "ok"),
        ("I suggest the beta driver. Hm, that was wrong: it drops connections under load. Shall I go on?", "go ahead"),
        ("I recommend the ring buffer, which needs no lock at all as one thread writes. Which size should it have?", "yes"),
        ("I recommend the ring buffer, which needs no lock at all as one thread writes. Or do you see an alternative?", "yes"),
        ("I recommend the ring buffer, which needs no lock at all as one thread writes. Shall I build it?", "yes?"),
        ("I recommend the ring buffer, which needs no lock at all as one thread writes. Shall I build it?", "right?"),
        ("Ich würde den Treiber nicht nehmen, weil er Verbindungen verliert. Soll ich ihn trotzdem einbauen?", "ja"),
        ("Ich empfehle den Ringpuffer, weil er ohne Sperre auskommt. Soll ich ihn einbauen?", "ja?"),
        ("Je recommande le tampon circulaire, car il se passe de verrou. Est-ce que je l'ajoute ?", "oui ?"),
        ("Recomiendo el búfer circular, porque no necesita bloqueo. ¿Lo añado?", "¿sí?"),
    ],
)
def test_a_yes_to_something_else_or_with_a_question_mark_agrees_to_no_advice(advice: str, reply: str) -> None:
    asked = "Wie soll der Puffer gebaut werden?" if "Soll ich" in advice else "how should the buffer be built?"

    assert [item for item in items_of(*chat(asked, advice, reply, "Ok.")) if item.origin == "user"] == []


@pytest.mark.parametrize(
    ("advice", "title"),
    [
        (
            "I recommend keeping the index in memory for ten minutes. A restart alone would lose it. Shall I do that?",
            "Keeping the index in memory for ten minutes",
        ),
        (
            "My recommendation is to pin the compiler to 1.79 in CI. Newer ones break the bindings. How does that sound?",
            "Pin the compiler to 1.79 in CI",
        ),
        (
            "I'd use one advisory lock per tenant, since the sweeper holds one already. Does that work?",
            "Use one advisory lock per tenant, since the sweeper holds one already",
        ),
        (
            "I recommend one queue per tenant, as the API would keep its order. When you're ready, shall I build it?",
            "One queue per tenant, as the API would keep its order",
        ),
        (
            "I recommend WAL for the ledger because we can't use two writers. The old timeout was wrong anyway. Do you agree?",
            "WAL for the ledger because we can't use two writers",
        ),
        (
            "I recommend against sharding the ledger because its rows are joined everywhere. Do you agree?",
            "I recommend against sharding the ledger because its rows are joined everywhere",
        ),
        (
            "Die Sperre fehlt. Ich empfehle, den Ringpuffer zu nehmen, weil er ohne Sperre auskommt. Soll ich das machen?",
            "Ich empfehle, den Ringpuffer zu nehmen, weil er ohne Sperre auskommt",
        ),
    ],
)
def test_what_was_agreed_on_is_named_after_the_advice(advice: str, title: str) -> None:
    (found,) = [
        item
        for item in items_of(
            *(
                chat("Wie soll der Puffer gebaut werden?", advice, "ja, mach das", "Ok.")
                if "Ich" in advice
                else chat("how should it be built?", advice, "yes", "Ok.")
            )
        )
        if item.origin == "user"
    ]

    assert isinstance(found, Decision)
    assert found.title == title


CAUSE_OF_IT = "The root cause is the stale cache key in `rates.py`: it lacks the currency. Fixed by adding the currency to the key."


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("no, that's wrong, it still shows yesterday's rates", "Let me look again."),
        ("that didn't help", "Let me look again."),
        ("still failing here", "Let me look again."),
        ("undo that please", "I put the old key back."),
        ("hm, can you check that on staging?", "You're right, the key was not the cause. The proxy caches the page for a day."),
    ],
)
def test_a_cause_that_the_next_turn_refutes_is_none(said: str, reply: str) -> None:
    found = items_of(*chat("why are the rates old?", CAUSE_OF_IT, said, reply))

    assert [item.title for item in found if "cache key" in item.body] == []


@pytest.mark.parametrize(
    "said",
    [
        "thanks, now add a test",
        "no problem, and the README?",
        "don't forget the changelog",
        "do the same for the taxes",
        "revert the debug logging and commit",
        "it is not urgent, make a ticket",
        "this is not the only key, check the others too",
        "still no time for the other ticket",
        "no need to deploy it now, thanks",
    ],
)
def test_a_cause_that_the_person_goes_on_from_is_kept(said: str) -> None:
    found = items_of(*chat("why are the rates old?", CAUSE_OF_IT, said, "Done."))

    assert any("stale cache key" in item.title for item in found)


@pytest.mark.parametrize(
    "said", ["undo that, I never asked for LMDB", "revert this", "please roll it back", "no, not LMDB", "undo your change"]
)
def test_a_choice_that_the_person_undoes_is_none(said: str) -> None:
    chosen = "I used LMDB instead of SQLite because LMDB reads without locks."

    assert items_of(*chat("build the cache", chosen, said, "Reverted.")) == ()
    assert len(items_of(*chat("build the cache", chosen, "nice, thanks", "Anytime."))) == 1


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
