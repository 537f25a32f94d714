"""How a person wants work done is kept as a preference; a task, a question and what an agent makes of it are not."""

import pytest

from kite_memory.distill.offline import OfflineExtractor
from kite_memory.extensions.contract.extractor_contract import chunk, event
from kite_memory.model.event import Event, EventType
from kite_memory.model.note import Preference, RecordItem


def items_of(*said: str) -> tuple[RecordItem, ...]:
    """Return what is kept of a chat, the person first."""
    kinds = (EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE)
    events: tuple[Event, ...] = tuple(event(number, text, kinds[(number - 1) % 2]) for number, text in enumerate(said, 1))
    return OfflineExtractor().extract(chunk(events)).record.items()


def preferences(*said: str) -> list[Preference]:
    return [item for item in items_of(*said) if isinstance(item, Preference)]


@pytest.mark.parametrize(
    "said",
    [
        "can you split it into meaningful commits?",
        "commit and update the changelog",
        "write me a short pr description",
        "create a draft PR please",
        "reply to each of the review comments",
        "give me the summary without line breaks",
        "generate a commit message but don't commit it",
    ],
)
def test_the_form_in_which_work_is_handed_over_is_a_preference(said: str) -> None:
    (kept,) = preferences(said, "Sure.")
    assert kept.origin == "user"


@pytest.mark.parametrize(
    "said",
    [
        "commit this",
        "push it",
        "add a test for the empty basket",
        "can you look at the comments on the PR?",
        "what do the tests say now?",
        "don't touch `src/basket.py` in this commit",
        "let's do those two tests first for now",
    ],
)
def test_a_task_of_the_moment_is_none(said: str) -> None:
    assert not preferences(said, "Sure.")


def test_an_objection_is_kept_when_the_agent_concedes_it() -> None:
    (kept,) = preferences(
        "The import is slow.",
        "It is the index on the orders table.",
        "but we are still only guessing that this is the cause",
        "You're right to push back. I should measure the import before I change anything.",
    )
    assert kept.body.startswith("The person: “but we are still only guessing")
    assert "The agent: You're right to push back. I should measure" in kept.body


def test_an_objection_that_the_agent_does_not_concede_is_not_kept() -> None:
    assert not preferences(
        "The import is slow.",
        "It is the index on the orders table.",
        "but we are still only guessing that this is the cause",
        "The profile shows 9 of 10 seconds in that query.",
    )
