"""How a person wants work done is kept as a preference; a task, a question and what an agent makes of it are not."""

import pytest

from kite_memory.distill.offline import OfflineExtractor
from kite_memory.extensions.contract.extractor_contract import chunk, event
from kite_memory.model.event import Event, EventType
from kite_memory.model.note import Decision, Preference, RecordItem


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
        "write me a short pr description",
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
        "commit and update the changelog",
        "create a draft PR please",
        "reply to each of the review comments",
        "add a comment to #41 so that it isn't forgotten",
        "let's do this as a separate PR",
        "do 1, do the push, don't reply yet",
        "can you add a task for the security review as well?",
        "can we add a simple test, assuming we have tests for the parser?",
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


@pytest.mark.parametrize(
    ("said", "reply", "title"),
    [
        (
            "but we only see it in the worker, doesn't mean the worker does it",
            "You're right. The cache is already broken when the worker reads it, the importer never closes it.",
            "The cache is already broken when the worker reads it, the importer never closes it",
        ),
        (
            "why do we only sometimes write the tests first in the plan?",
            "You're right, I was inconsistent.\n\nEach step should be:\n- Write a failing test\n- Make it pass",
            "Each step should be write a failing test",
        ),
    ],
)
def test_an_objection_is_named_after_what_the_agent_admits(said: str, reply: str, title: str) -> None:
    (kept,) = preferences("The import is slow.", "It is the index.", said, reply)
    assert kept.title == title


def test_a_doubt_of_which_the_agent_admits_nothing_definite_is_not_kept() -> None:
    assert not preferences(
        "The import is slow.",
        "It is the index.",
        "but are you not just guessing that this is the issue?",
        "You're right to push back. Let me look at what we know.",
    )


def test_how_the_work_is_handed_over_is_told_in_the_words_of_the_person_alone() -> None:
    (kept,) = preferences(
        "can you split it into meaningful commits?", "I'll make meaningful commits: first the parser, then its tests."
    )
    assert "parser" not in kept.body


@pytest.mark.parametrize(
    ("asked", "answer", "title"),
    [
        (
            "I could use RabbitMQ or a table in SQLite. Which do you prefer?",
            "a table. rabbitmq is one more thing that dies at night",
            "A table: rabbitmq is one more thing that dies at night",
        ),
        (
            "To the old NAS or to S3: which would you like?",
            "the NAS, since S3 costs us 40 euros a month",
            "The NAS, since S3 costs us 40 euros a month",
        ),
        ("Should I use poetry or uv here?", "uv please, poetry takes ages on the CI", "Uv: poetry takes ages on the CI"),
    ],
)
def test_an_answer_that_names_what_the_question_offered_is_a_decision(asked: str, answer: str, title: str) -> None:
    (decided,) = items_of("we need it for the label printer", asked, answer)

    assert (type(decided), decided.title, decided.origin) == (Decision, title, "user")
    assert answer.rstrip(".")[-20:] in decided.body


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("Shall I commit this or go on with the tests?", "commit, then the tests please"),
        ("Should I look at the server log or the client log first?", "the server log for now, it has more lines in it"),
        ("Should it be red or green?", "neither, both of them look like a warning"),
        ("What did the build print?", "the build: it printed error 1205 in the parser module"),
        ("Which tests fail for you?", "tests, all of them fail with a timeout on the runner"),
        ("Did the deploy work or should I roll back?", "the deploy, it failed because the token expired last night"),
    ],
)
def test_an_errand_or_an_answer_for_the_moment_is_none(asked: str, answer: str) -> None:
    assert not items_of("look at the label printer", asked, answer)


def test_a_rule_of_its_own_is_no_part_of_the_answers_before_it() -> None:
    (decided, wished) = items_of(
        "where do we keep the labels?",
        "In SQLite or in PostgreSQL. Which one do you want?",
        "sqlite, there is only one box and never more than two writers",
        "OK.",
        "one rule for this repo: always run the linter before a commit",
        "Noted.",
    )

    assert "linter" not in decided.body and "sqlite" not in wished.body
    assert wished.title == "Always run the linter before a commit"


def test_a_rule_is_not_named_after_its_reason() -> None:
    (wished,) = preferences("from now on each label needs a file that undoes it, we had no way back last time", "OK.")

    assert wished.title.startswith("Each label needs a file that undoes it")


def test_a_wish_about_one_file_is_a_decision_about_it() -> None:
    (kept,) = items_of("I'd prefer to export `selector` from labels/printer.go", "Done.")

    assert isinstance(kept, Decision)


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("I prefer async/await over callbacks in handlers.", "I prefer async/await over callbacks in handlers"),
        ("I prefer short commit messages, e.g. one line without a body.", "I prefer short commit messages"),
        (
            "When a test fails, always keep its log in the artifacts folder of the run.",
            "When a test fails, always keep its log in the artifacts folder of the run",
        ),
    ],
)
def test_a_slash_or_a_dot_makes_no_file_and_a_condition_alone_no_title(said: str, title: str) -> None:
    (kept,) = preferences(said, "Done.")

    assert kept.title == title


AGREED = ("add a limit to the importer", "I added the limit to the importer, and the tests pass.")

NOT_THEIR_WORD = [
    "Should we pick Valkey instead of Redis because it is free",
    "Would you go with gRPC rather than REST for the ledger since it is typed",
    "If we decided to use Vite instead of webpack, what breaks",
    "suppose we went with Terraform instead of Pulumi, what changes",
    "Do you know why we chose Elm instead of React",
    "I doubt we should go with Rust instead of Go because of the compile times",
    "I don't believe we decided to use LMDB instead of SQLite",
    "She said let's use Bazel instead of make because of the cache.",
    "Carla wrote that we decided to use Mongo instead of MySQL because of the schema",
    "the ticket says we should always validate the IBAN on the client",
    "the linter says we should never use eval",
    "Do I prefer short names here, what do you recall",
    "Check whether we should never squash on main",
    "ask the team if we should always sign our commits",
    "Remember when we said that the buffer must be small",
    "nobody said we should never use recursion",
    "the customer wants that passwords must be at least 12 characters",
    "we decided on Helm instead of Kustomize because of the charts, right",
    "We want Rust rather than Go because it's safe, or not, what do you think",
    "I want to understand why we use NATS instead of Kafka for events",
    "I want to see the numbers first instead of guessing because the last guess was off",
    "Carla wrote and said that we decided to use Mongo instead of MySQL because of the schema",
    "Rename the label to 'Please never close this window'",
    'Correct the typo in "Please always lock the door"',
    'add a comment that says "we decided to use NATS instead of Kafka because of replay"',
    "Translate to Spanish: please always lock the door",
    "Here is what the vendor wrote:\n\nDear client,\n\nPlease always disable the checks.\n\nKind regards,\nLena",
    "Summarize this log:\nWe decided to use node 18 instead of node 20 because of OpenSSL\nPlease always run the fixer",
    "Always indent with tabs. No wait, with spaces.",
    "Please never cache the rates, sorry, the quotes",
]
THEIR_WORD = [
    "Let's pick Valkey instead of Redis because it is free.",
    "That's why we decided to use Postgres rather than SQLite for the queue.",
    "Since we need no transactions, let's use Dynamo instead of Postgres.",
    "I asked the ops team, and we decided to use Caddy instead of nginx because of the certificates.",
    "I know Rust is harder, but I want the exporter in Rust rather than Go because the parser is written in it.",
    "When you write SQL, always use lower case keywords.",
    "When possible, never mock the database.",
    "If a migration fails, never retry it by hand.",
    "Could you please always answer in German",
    "Any new endpoint must have a contract test.",
    "Legal said we must never log email addresses.",
    'Please always write "it is" in the docs',
    "Summarize this log:\nnode 18 was used\n\nAnd from now on, always build on the Debian image.",
    "Some rules for this repo:\n- always sign commits\n- never push to main",
    "From now on, never push to main. No exceptions.",
    "I prefer small commits over one large commit.",
    'Labels are 4" wide and 2 high. From now on, always print them in black.',
    "We want to ask for consent instead of assuming it, because the law requires it.",
    "I want to see errors in the log instead of a popup because popups stop the printer.",
    "The customer asked for speed and we decided to use Postgres instead of SQLite because of the locks.",
]


@pytest.mark.parametrize("said", NOT_THEIR_WORD)
def test_what_a_person_asks_supposes_denies_reports_or_hands_on_is_not_their_word(said: str) -> None:
    assert [item for item in items_of(*AGREED, said, "I'll look at it.") if item.origin == "user"] == []


@pytest.mark.parametrize("said", THEIR_WORD)
def test_what_a_person_decides_or_wishes_is_kept(said: str) -> None:
    assert any(item.origin == "user" for item in items_of(*AGREED, said, "I'll look at it."))
