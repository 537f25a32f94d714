"""Short, plain exchanges, as a new user tries them: what no one would miss is reported, and the rest is not."""

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.distill.offline import OfflineExtractor, said_to_keep
from kite_memory.distill.offline.drafts import drafts_of
from kite_memory.distill.offline.people import states_requirement
from kite_memory.distill.offline.titles import title_of
from kite_memory.distill.offline.wording import turns, without_opening
from kite_memory.distill.prose import clean
from kite_memory.extensions.contract.extractor_contract import chunk, event
from kite_memory.model.event import Event, EventType, Status
from kite_memory.model.note import Decision, Fact, Insight, OpenQuestion, Preference, RecordItem

Said = tuple[str, str]
"""Who, and what: a person, their agent, or the outcome of one of its calls."""

_TYPES: dict[str, tuple[EventType, Status]] = {
    "person": (EventType.USER_MESSAGE, ""),
    "agent": (EventType.ASSISTANT_MESSAGE, ""),
    "runs": (EventType.COMMAND, ""),
    "edits": (EventType.FILE_ACTION, ""),
    "output": (EventType.TOOL_RESULT, "ok"),
    "error": (EventType.ERROR, "failed"),
    "red": (EventType.TEST_RESULT, "failed"),
    "green": (EventType.TEST_RESULT, "ok"),
}


def events_of(exchange: Sequence[Said]) -> tuple[Event, ...]:
    found = []
    for number, (who, text) in enumerate(exchange, 1):
        kind, status = _TYPES[who]
        result = event(number, text, kind, status=status, command="make check" if who in ("runs", "red", "green") else "")
        found.append(dataclasses.replace(result, tool="" if who in ("person", "agent") else "Bash"))
    return tuple(found)


def items_of(exchange: Sequence[Said]) -> tuple[RecordItem, ...]:
    return OfflineExtractor().extract(chunk(events_of(exchange))).record.items()


CAUSE = (
    "The root cause was the connection pool: its size was 1, so the second worker waited for ever in `acquire()`."
    " Raising `POOL_SIZE` to 8 fixed the hanging tests."
)

TELLING: list[tuple[type[RecordItem], tuple[str, ...], list[Said]]] = [
    # standing wishes, whatever they open with
    (Preference, ("linter", "src", "never"), [("person", "And always run the linter from the src folder, never from the root.")]),
    (Preference, ("pnpm", "npm"), [("person", "Please always use pnpm instead of npm in this repo."), ("agent", "Ok.")]),
    (Preference, ("changelog",), [("person", "Oh, and never touch the changelog by hand."), ("agent", "Noted.")]),
    (Preference, ("British",), [("person", "btw, always use British spelling in the docs")]),
    (Preference, ("squash",), [("person", "ok so from now on squash the fix-up commits before a review")]),
    (Preference, ("fixtures",), [("person", "Also: never load fixtures from the network.")]),
    (Preference, ("migrations",), [("person", "But always review the migrations with me first.")]),
    (Preference, ("timestamps", "UTC"), [("person", "make sure you always store timestamps in UTC")]),
    (Preference, ("feature flags",), [("person", "Thanks! One more thing: always put new screens behind feature flags.")]),
    (Preference, ("imperative",), [("person", "From now on I want you to write commit messages in the imperative")]),
    (Preference, ("tabs", "makefiles"), [("person", "use tabs, never spaces, in the makefiles please"), ("agent", "ok")]),
    (Preference, ("main",), [("person", "Don't ever commit directly to main"), ("agent", "Understood.")]),
    (Preference, ("vitest", "jest"), [("person", "In this project we write tests with vitest, never with jest.")]),
    (Preference, ("lower case",), [("person", "When you write SQL, always use lower case keywords.")]),
    (Preference, ("endpoint", "integration test"), [("person", "Every new endpoint must have an integration test.")]),
    # causes that were found and mended
    (Insight, ("connection pool", "POOL_SIZE"), [("person", "The worker tests hang in CI. Find out why."), ("agent", CAUSE)]),
    (
        Insight,
        ("connection pool", "POOL_SIZE"),
        [("person", "The worker tests hang. Why?"), ("error", "TimeoutError: acquire() timed out after 30 s"), ("agent", CAUSE)],
    ),
    (
        Insight,
        ("local time", "midnight"),
        [
            ("person", "the report test is flaky, have a look"),
            ("runs", "make check"),
            ("red", "AssertionError: 23 != 24"),
            ("agent", "The bug is in the bucket function: it cuts days in local time, so midnight falls twice."),
            ("edits", "report.py"),
            ("green", "14 passed"),
            ("agent", "Done."),
        ],
    ),
    (
        Insight,
        ("nginx", "upload"),
        [
            ("person", "big uploads return 413, fix it please"),
            ("agent", "The 413 was caused by nginx: its body limit is 1 MB. Setting it to 20 MB solved the upload errors."),
        ],
    ),
    (
        Insight,
        ("tenant", "cache"),
        [
            ("person", "tenants see each other's invoices!"),
            ("agent", "Found the bug: the cache key lacks the tenant id, so the first tenant's invoices are served to all. Fixed."),
        ],
    ),
    (
        Insight,
        ("symlink",),
        [
            ("person", "why does the build ignore my change?"),
            ("agent", "It turned out that `dist` is a symlink, so the bundler wrote elsewhere. I confirmed it with ls."),
        ],
    ),
    (
        Insight,
        ("temp file", "directory"),
        [
            ("person", "debug the flaky test"),
            (
                "agent",
                "Root cause: both tests write to one temp file. Giving each its own directory made them pass, 50 runs in a row.",
            ),
        ],
    ),
    # what a person asks to be remembered
    (Fact, ("staging db", "monday"), [("person", "remember that the staging db is reset every monday"), ("agent", "Noted.")]),
    (Fact, ("sandbox", "emails"), [("person", "Note that the sandbox account sends no emails.")]),
    (Fact, ("invoices", "cents"), [("person", "Keep in mind that amounts in the invoices table are in cents.")]),
    (Fact, ("port 5433",), [("person", "FYI the test database listens on port 5433 on this machine")]),
    (Fact, ("Lisbon",), [("person", "Great, thanks. Just so you know, the billing team is in Lisbon and deploys at night.")]),
    (Fact, ("legacy", "read-only"), [("person", "Don't forget: the legacy schema is read-only since the merger.")]),
    (Fact, ("token", "15 minutes"), [("person", "heads up - the upload token expires after 15 minutes")]),
    (Fact, ("Kestrel",), [("person", "And please remember: the customer calls the importer Kestrel.")]),
    (Fact, ("keys", "rotated"), [("person", "Hey! Our API keys are rotated on the first of each month, please remember that.")]),
    (Fact, ("exports", "Latin-1"), [("person", "The bank's exports are encoded in Latin-1. Please keep that in mind.")]),
    (Fact, ("ULIDs",), [("person", "Remember this: user ids are ULIDs, not integers.")]),
    (Fact, ("tokens.json",), [("person", "Save to memory: the design tokens live in packages/theme/tokens.json")]),
    # corrections
    (
        Preference,
        ("mocks", "real database"),
        [
            ("person", "write a test for the importer"),
            ("edits", "test_importer.py"),
            ("agent", "I wrote a test with a mocked database."),
            ("person", "no, don't use mocks here, use the real database"),
            ("agent", "Sure."),
        ],
    ),
    (Preference, ("mocks", "real database"), [("person", "no, don't use mocks here, use the real database"), ("agent", "Sure.")]),
    (
        Preference,
        ("exceptions", "Result"),
        [
            ("person", "add error handling to the parser"),
            ("edits", "parser.py"),
            ("person", "Don't throw exceptions in the parser, use the Result type."),
        ],
    ),
    (
        Preference,
        ("inline styles", "stylesheet"),
        [("person", "style it"), ("agent", "Done."), ("person", "nope, not with inline styles. put it into the stylesheet")],
    ),
    (
        Preference,
        ("timestamp", "string"),
        [
            ("person", "add a date column"),
            ("edits", "schema.sql"),
            ("agent", "I added it as a string."),
            ("person", "No, that should be a timestamp with time zone, not a string."),
        ],
    ),
    (
        Preference,
        ("readme", "docs folder"),
        [
            ("person", "write the readme"),
            ("edits", "README.md"),
            ("person", "that's not what I wanted. Keep the readme short and put the details into the docs folder"),
        ],
    ),
    # choices, with and without a reason
    (Decision, ("PostgreSQL", "job queue"), [("person", "Let's use PostgreSQL for the job queue."), ("agent", "Ok.")]),
    (Decision, ("Redis", "cache"), [("person", "We'll go with Redis for the session cache."), ("agent", "Good.")]),
    (Decision, ("JWT", "24h"), [("person", "we decided to use JWT with 24h expiry for auth because sessions don't scale")]),
    (Decision, ("SQLite", "desktop"), [("person", "So, let's stick with SQLite in the desktop app.")]),
    (Decision, ("REST", "GraphQL"), [("person", "Ok, let's build a REST interface instead of GraphQL for the partners.")]),
    (Decision, ("monorepo",), [("person", "I've decided to move the three services into a monorepo")]),
    (
        Decision,
        ("Tailwind", "Bootstrap"),
        [("person", "make a page"), ("agent", "Which framework?"), ("person", "Use Tailwind instead of Bootstrap for the page.")],
    ),
    (
        Decision,
        ("SQLite", "PostgreSQL"),
        [
            ("person", "which database did you pick?"),
            ("agent", "I chose SQLite over PostgreSQL, because the tool must run without a server process."),
        ],
    ),
]

ROUTINE: list[list[Said]] = [
    # chit-chat
    [("person", "hi there, how are you today?"), ("agent", "Hello! I'm well. What shall we work on?")],
    [("person", "thanks, that looks great, you always find the bugs so quickly!"), ("agent", "Glad to help.")],
    [("person", "haha, no worries. never a dull day with this code base"), ("agent", "True.")],
    [("person", "FYI I'm off for lunch, I'll look at the review tomorrow"), ("agent", "Enjoy your lunch!")],
    # questions
    [("person", "should we always run the linter from the src folder?"), ("agent", "You can.")],
    [("person", "do you remember that bug in the importer from last week?"), ("agent", "I have no record of it.")],
    [("person", "why don't we use the real database instead of mocks?"), ("agent", "Because it is slow to start.")],
    [("person", "what was the root cause of the hanging worker tests?"), ("agent", "Let me look at the log.")],
    # orders for the moment
    [("person", "let's run the tests"), ("runs", "make check"), ("green", "14 passed"), ("agent", "All tests pass.")],
    [("person", "yes do it"), ("agent", "Done. I renamed the function and updated its callers in the two modules.")],
    [("person", "let's go with your second suggestion"), ("agent", "Ok.")],
    [("person", "Let's use git bisect to find the commit that broke the build"), ("agent", "Starting.")],
    [("person", "no, not that file, the other one"), ("agent", "Ok.")],
    [("person", "no need to use the real database for the smoke test"), ("agent", "Ok.")],
    [("person", "no, don't worry about the failing snapshot tests"), ("agent", "Ok.")],
    [("person", "remember that bug in the importer? it is back, have a look please"), ("agent", "Looking.")],
    # wishes that pass
    [("person", "for now skip it, we can always add the retry logic later"), ("agent", "Skipped.")],
    [("person", "let's use the in-memory store for the queue for now"), ("agent", "Ok.")],
    [("person", "no, don't push the release branch yet, use the draft"), ("agent", "Ok.")],
    [("person", "please never mind the linter warnings in this branch until the merge"), ("agent", "Ok.")],
    [("person", "let's switch to the importer module now"), ("agent", "Ok.")],
    [("person", "I want you to fix the bug in the importer module"), ("agent", "Fixed the bug in the importer module.")],
    [("person", "don't run the tests, just show me the diff of the parser"), ("agent", "Here it is.")],
    [("person", "no, don't set it, let's see whether the crash comes back"), ("agent", "Ok.")],
    [("person", "let's move to #91, the merge conflicts look easy"), ("agent", "Ok.")],
    [("person", "stop the development server please"), ("agent", "Stopped.")],
    [("person", "run the linter instead of the tests please"), ("agent", "Ok.")],
    # what might be
    [("person", "we could use Redis for the session cache, or Postgres"), ("agent", "Both would work.")],
    [("person", "maybe let's use Kafka for the audit events, not sure"), ("agent", "It may be more than you need.")],
    [("person", "if we go with Kafka for the audit events we need two more servers"), ("agent", "That is right.")],
    [
        ("person", "the import is slow, any idea?"),
        ("agent", "The root cause might be the missing index on `orders`, not verified yet. It could be the network too."),
    ],
    [("person", "what happened?"), ("agent", "The tests failed because I forgot an import. Fixed.")],
    # pasted
    [
        (
            "person",
            "[12:03:11] worker: WARNING always set POOL_SIZE, never use the default\n"
            "12:03:12 ERROR note that retries are disabled instead of enabled",
        ),
        ("agent", "Let me look."),
    ],
    [
        ("person", "what does this mean?\n```\nnote: always use https, never http, for the registry\n```"),
        ("agent", "It is a warning of the registry client."),
    ],
    # play-by-play and self-talk
    [("person", "go on"), ("agent", "Now I'll update the parser."), ("edits", "parser.py"), ("agent", "Next, I'll fix the tests.")],
    [("person", "go on"), ("agent", "Let me always check the lock file, and never skip the hooks. From now on I'll use pnpm.")],
    [("person", "fix the typo"), ("edits", "README.md"), ("agent", "Fixed the typo in the README and ran the linter. All green.")],
    # what tools say
    [
        ("person", "read the contributing guide"),
        ("output", "Always sign your commits. Remember that the trunk is protected. Let's use PostgreSQL for the job queue."),
        ("agent", "I read it."),
    ],
    [
        ("person", "fetch the page"),
        ("output", "The root cause was the cache. Clearing it fixed the build. No, don't use mocks here, use the real database."),
        ("agent", "Here it is."),
    ],
]


@pytest.mark.parametrize(("kind", "words", "exchange"), TELLING, ids=[each[1][0] + str(at) for at, each in enumerate(TELLING)])
def test_what_no_one_would_miss_becomes_one_note_of_its_kind(
    kind: type[RecordItem], words: tuple[str, ...], exchange: list[Said]
) -> None:
    (found,) = items_of(exchange)

    assert type(found) is kind
    assert [word for word in words if word.lower() not in f"{found.title} {found.body}".lower()] == []


def test_a_person_is_quoted_in_their_own_words_without_what_they_open_with() -> None:
    (plain,) = items_of([("person", "And always run the linter from the src folder, never from the root")])
    (about_themselves,) = items_of([("person", "Also, never push to main without asking me.")])

    assert plain.body == "Always run the linter from the src folder, never from the root."
    assert about_themselves.body == "“Never push to main without asking me.”"
    assert (plain.origin, about_themselves.origin) == ("user", "user")


def test_a_cause_without_proof_is_none() -> None:
    assert items_of([("person", "why is the import slow?"), ("agent", "The cause is the missing index on the orders table.")]) == ()


def test_a_cause_that_was_taken_back_is_none() -> None:
    said = "The bug was the stale cache in the loader. I fixed the cache key. That wasn't it, the import still fails."

    assert items_of([("person", "why does the import fail?"), ("agent", said)]) == ()


def test_the_symptom_of_a_cause_is_the_error_that_was_seen() -> None:
    seen = "TimeoutError: acquire() timed out after 30 s"

    (found,) = items_of([("person", "why do the worker tests hang?"), ("error", seen), ("agent", CAUSE)])

    assert isinstance(found, Insight)
    assert found.symptom == seen


def test_each_turn_of_a_short_session_may_tell_its_cause() -> None:
    other = "The 413 was caused by nginx: its body limit is 1 MB. Setting it to 20 MB solved the upload errors."

    found = items_of([("person", "why do the tests hang?"), ("agent", CAUSE), ("person", "why 413?"), ("agent", other)])

    assert [type(each) for each in found] == [Insight, Insight]


@pytest.mark.parametrize(
    ("sentence", "title"),
    [
        (
            "Always run the linter from the src folder, never from the repository root: the config is only found there.",
            "Always run the linter from the src folder",
        ),
        ("no, don't use mocks here, use the real database", "Don't use mocks here, use the real database"),
        ("From now on I want you to write commit messages in the imperative", "Write commit messages in the imperative"),
        ("we decided to use JWT with 24h expiry for auth because sessions don't scale", "JWT with 24h expiry for auth"),
        ("The billing team is in Lisbon and deploys at night.", "The billing team is in Lisbon and deploys at night"),
        ("The bug is in the bucket function: it cuts days in local time.", "The bug is in the bucket function"),
        (
            "In the cider shed, never use the old scale for weighing crates because its spring is worn.",
            "In the cider shed, never use the old scale for weighing crates",
        ),
    ],
)
def test_a_title_ends_where_a_phrase_does(sentence: str, title: str) -> None:
    assert title_of(without_opening(sentence)) == title


@pytest.mark.parametrize(
    "rule",
    [
        "On market days, never restart the till server before noon",
        "For the old kiosks, use TLS 1.1 instead of TLS 1.3",
        "If the smoke run fails, never tag a release",
        "When the harvest job runs, don't touch the crate tables",
        "After a schema change, always rebuild the crate views",
        "Never delete a grower's account without asking, unless the grower asked for it in writing",
        "Store weights in grams, not in kilos, except for the yearly report",
        "Keep the labels in Dutch (except on export crates)",
        "Use the shared crate pool, only the press has a pool of its own",
        "When the press jams, always keep its meter reading in the log of that week",
        "In the cider shed, never use the old scale",
    ],
)
def test_a_title_keeps_where_a_rule_holds_and_where_it_does_not(rule: str) -> None:
    assert title_of(without_opening(rule)) == rule


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Since the press leaks, crates are stacked in the upper yard.", "Crates are stacked in the upper yard"),
        ("According to the manual, the press needs a new belt each year.", "The press needs a new belt each year"),
        (
            "When the old press in the upper shed stops at night since its belt has slipped off again, always ring the owner.",
            "Always ring the owner",
        ),
    ],
)
def test_a_title_drops_the_reason_or_a_long_condition_before_a_statement(said: str, title: str) -> None:
    assert title_of(said) == title


@pytest.mark.parametrize(
    "rule",
    [
        "No-refund tickets must always be marked in the till",
        "no-go zones must never be shown on the picker's map",
        "Fine-mesh nets must be used in every cherry row",
        "Well-water pumps must be stopped before each frost",
        "Good-fruit crates should go through the scanner, not the loading scale",
        "Right-hand rows must always be picked in the morning",
    ],
)
def test_the_first_half_of_a_hyphenated_word_is_no_opening(rule: str) -> None:
    (found,) = items_of(
        [("person", "sort the picker's map"), ("agent", "The map is sorted now."), ("person", rule), ("agent", "Ok.")]
    )

    assert found.title.casefold() == rule.casefold()
    assert found.body.casefold().startswith(rule.casefold())


def test_a_no_before_a_blank_or_a_comma_is_an_opening_still() -> None:
    assert without_opening("No - keep the crates in rows") == "keep the crates in rows"
    assert without_opening("fine, keep the crates in rows") == "keep the crates in rows"


@pytest.mark.parametrize(
    ("said", "exception"),
    [
        ("Always weigh the crates in the yard. Except for export crates, which the harbour weighs.", "export crates"),
        ("Never water the young trees at noon. Unless the leaves hang down.", "leaves hang"),
        ("Always ask Ida about new suppliers. But not for packaging, Ben orders that.", "packaging"),
        ("Please never print labels by hand. Only if the printer in the yard is broken.", "printer"),
    ],
)
def test_an_exception_in_a_sentence_of_its_own_stays_with_its_rule(said: str, exception: str) -> None:
    (found,) = items_of([("person", said), ("agent", "Ok.")])

    assert isinstance(found, Preference)
    assert exception in found.body and exception in found.title


def test_what_follows_a_rule_and_is_no_exception_is_not_joined_to_it() -> None:
    (found,) = items_of([("person", "Always weigh the crates in the yard. But I like the new scale."), ("agent", "Ok.")])

    assert "new scale" not in found.body


ASKED_WHERE = [
    ("person", "set up the harvest board, where should it keep its rows?"),
    ("agent", "A file of rows is simple; a server needs care. I could do either. Which one do you want?"),
    ("person", "no server, a plain file is enough, never a daemon on that box"),
    ("agent", "A plain file then. The harvest board is there, with one page and one test."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        ("good. one rule for us: always weigh each lorry twice before it leaves, even on busy evenings", "lorry"),
        ("and only send letters to growers in Dutch, never in English, they throw those away", "Dutch"),
    ],
)
def test_two_rulings_about_different_things_are_two_notes(rule: str, word: str) -> None:
    found = items_of([*ASKED_WHERE, ("person", rule), ("agent", "Understood, I'll do so from here.")])

    assert [("daemon" in each.body, word in each.body) for each in found] == [(True, False), (False, True)]
    assert [len(each.evidence) for each in found] == [2, 2]


def test_answers_about_one_thing_stay_one_note() -> None:
    found = items_of(
        [
            *ASKED_WHERE,
            ("person", "and always keep that plain file below /srv, never on the daemon's disk"),
            ("agent", "It lies below /srv now."),
        ]
    )

    assert any("never a daemon" in each.body and "/srv" in each.body for each in found)


def test_a_long_rule_keeps_its_last_clause() -> None:
    rule = (
        "Always weigh every crate on the large scale in the upper yard before the lorries leave for the"
        " harbour, the market or the juice factory in the valley, and write the weight and the number of the row into the"
        " harvest board, but never weigh the crates of the school garden, even if somebody asks for it"
    )

    (found,) = items_of([("person", rule), ("agent", "Ok.")])

    assert found.body == f"{rule}."


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\f", "\v", "\r"])
def test_whatever_ends_a_line_keeps_two_rules_apart(end: str) -> None:
    found = items_of([("person", f"Always weigh crates on the large scale.{end}Never stack crates in the yard"), ("agent", "Ok.")])

    assert [each.title for each in found] == ["Always weigh crates on the large scale", "Never stack crates in the yard"]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("👩\u200d🌾 picks", "👩\u200d🌾 picks"),
        ("⚠\ufe0f wet", "⚠\ufe0f wet"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("pass\u200dword", "password"),
        ("pass\u200bword", "password"),
        ("\u200cpress\ufe0f", "press"),
        ("a\u202eb", "ab"),
    ],
)
def test_joiners_stay_where_they_change_what_is_seen(said: str, kept: str) -> None:
    assert clean(said) == kept


@pytest.mark.parametrize(
    ("said", "title"),
    [
        (
            "open question, no need to solve it today: should the board keep the weights of sold crates for ever or for two years?",
            "Should the board keep the weights of sold crates for ever or for two years",
        ),
        (
            "good. one open point (for Ida): which scale do we buy for the lower yard, the Meyer or the Hansen one?",
            "Which scale do we buy for the lower yard, the Meyer or the Hansen one",
        ),
        (
            "undecided, ask me in spring: whether the export crates of Meyer get printed labels in Dutch",
            "Whether the export crates of Meyer get printed labels in Dutch",
        ),
    ],
)
def test_what_a_person_leaves_open_is_a_question_and_no_fact(said: str, title: str) -> None:
    (found,) = items_of(
        [
            ("person", "add the weights to the harvest board"),
            ("agent", "The board shows the weights of the crates now."),
            ("person", said),
            ("agent", "I leave the weights of the crates and the scale of the yard as they are until you have decided it."),
        ]
    )

    assert isinstance(found, OpenQuestion)
    assert (found.origin, found.title.rstrip("?")) == ("user", title)


LEADING_ON = ["never", "the", "to", "and", "with", "always", "from", "not", "is"]


@given(st.lists(st.sampled_from([*LEADING_ON, "use", "queue", "worker,", "`lock`", "writes;", "folder", "(src)"]), min_size=6))
def test_no_title_ends_on_a_word_that_leads_on(words: list[str]) -> None:
    title = title_of(" ".join(words)).lower().split()

    assert len(title) <= 20 and len(" ".join(title)) <= 120
    assert len(title) <= 1 or title[-1] not in LEADING_ON


@pytest.mark.parametrize("exchange", ROUTINE, ids=[each[0][1][:40] for each in ROUTINE])
def test_what_is_said_in_passing_becomes_nothing(exchange: list[Said]) -> None:
    assert items_of(exchange) == ()


@pytest.mark.parametrize(
    ("said", "urgent"),
    [("Always use pnpm instead of npm in this repo.", True), ("Run the tests again and show me what fails, please.", False)],
)
def test_what_a_person_said_to_keep_is_distinguished_from_the_rest(said: str, urgent: bool) -> None:
    answered = event(2, "I ran them: all twelve pass now, and nothing else changed.", EventType.ASSISTANT_MESSAGE)

    assert said_to_keep([event(1, said), answered]) is urgent


REQUIRED: list[tuple[str, list[Said]]] = [
    (
        "every sample needs",
        [
            ("agent", "The samples are listed in `samples/index.yaml`."),
            ("person", "the samples should carry a recorded answer of their own, then we could check them all without a paid call"),
            (
                "agent",
                "Agreed. I opened a task for it.\n\n- Each file under `samples/` gets a `recorded.json`."
                "\n- The runner takes the recording when `--recorded` is given.",
            ),
        ],
    ),
    (
        "no compatibility",
        [
            ("agent", "Both layouts could be read for a while."),
            ("person", "and we don't need to read the old layout, it makes everything more complicated"),
            (
                "agent",
                "Agreed. Only the new layout is read from here on: `load_run` looks for `manifest.json` and reports anything else"
                " as damaged.",
            ),
        ],
    ),
    (
        "short confirmation",
        [
            ("agent", "The export is ready."),
            ("person", "exported dates should never depend on the machine's own time zone, only on the account"),
            ("agent", "Done, `format_date` takes the account's zone now."),
        ],
    ),
    (
        "instead",
        [
            ("agent", "The counters are kept in a file."),
            ("person", "put the counters in the request's context instead of a module variable, two requests share it otherwise"),
            (
                "agent",
                "Good point. The counters are part of `RequestContext` now, and the module variable is gone. Two tests that relied"
                " on it create a context of their own.",
            ),
        ],
    ),
]


@pytest.mark.parametrize("exchange", [each for _, each in REQUIRED], ids=[name for name, _ in REQUIRED])
def test_what_a_person_requires_and_the_agent_takes_up_is_one_note_with_both(exchange: list[Said]) -> None:
    found = items_of(exchange)

    required = exchange[1][1]
    assert len([each for each in found if required[:40] in each.body or required[5:40] in each.body]) == 1
    assert any("`" in each.body for each in found)


def test_a_note_does_not_begin_with_filler() -> None:
    reply = "`BatchReader` decides it: the importer reads as many rows as fit into `max_bytes`, never a fixed count, so rows vary."

    (found,) = items_of(
        [("person", "which part decides how many rows are read at once?"), ("agent", f"Good question. Here's a summary. {reply}")]
    )

    assert found.body.endswith(f"” {reply}")


def test_the_english_cues_do_not_read_other_languages() -> None:
    said = "`FeedWriter` never writes a row because the batch is empty, and needs 2 MB of buffer."
    around = "Les deux dossiers sont dans la même branche, avec le rapport du client et la liste des tests que vous avez demandée. "
    asked = event(1, "where does the row get lost?")

    def drafted(text: str) -> int:
        reply = event(2, text, EventType.ASSISTANT_MESSAGE)
        return len(list(drafts_of(turns((asked, reply)), frozenset((asked.id, reply.id)))))

    assert drafted(f"{said} Its `flush` is skipped since the header was sent before.") == 1
    assert drafted(3 * around + said) == 0


def test_a_request_stands_before_what_came_of_it() -> None:
    asked = "which part of the importer decides how many rows are read at once?"
    reply = (
        "`BatchReader` decides it: the importer reads as many rows as fit into `max_bytes`, never a fixed count."
        " A row that is larger than the limit is read alone, so one huge row cannot block the importer."
    )

    (found,) = items_of([("person", asked), ("agent", reply)])

    assert found.body == f"The person: “{asked}” {reply}"
    assert found.origin == "assistant"


def test_a_note_of_an_outcome_does_not_lead_on_to_code_that_is_left_out() -> None:
    reply = (
        "The importer reads as many rows as fit into `max_bytes`, never a fixed count. Run it like this:\n\n```\nimport\n```\n\n"
        "Then check:\n\n```\nverify\n```\n\nA row that is larger than `max_bytes` is read alone, so it cannot block others."
    )

    (found,) = items_of([("person", "how many rows does the importer read at once?"), ("agent", reply)])

    assert "Then check" not in found.body


NOTHING_CAME_OF_IT: list[tuple[str, str, str]] = [
    (
        "announces",
        "exports should never depend on the zone of the machine",
        "I see where it happens. `format_date` uses the local zone for every export. Let me look at the callers first.",
    ),
    (
        "begins work",
        "exports should never depend on the zone of the machine",
        "I'm going to change `format_date` and its callers. The script will convert the stored dates, then export again.",
    ),
    (
        "asks back",
        "exports should never depend on the zone of the machine",
        "Which zone do you mean? Should I take the account's zone or that of the server?",
    ),
    (
        "taken back",
        "why does the export fail on Mondays?",
        "The reason was the stale token in `Session`, only renewed on Sundays. That wasn't it, the export still fails.",
    ),
    ("no request", "yes please", "Committed on the branch and pushed."),
    (
        "lists changes",
        "the export page needs a date filter and a button that clears it",
        "`DateFilter` is new on the export page and takes two dates. The old select in `ExportForm` is replaced by it."
        " The query of the export page is moved to `export_query`.",
    ),
    (
        "names the change first",
        "the export should say which rows it left out of the file",
        "Wrapped the table of `ExportPage` in a box that has a header with the rows left out of the file.",
    ),
    (
        "a commit was asked for",
        "commit the export page and its date filter",
        "The export page and its `DateFilter` are in two commits. The filter takes the dates of the export from the address.",
    ),
    (
        "untried",
        "the export page shows an error when I open it",
        "The route of the export page is registered before the guard in `routes.ts`. The page should now load from the menu.",
    ),
    (
        "instructs the person",
        "the export page shows an error: unknown element date-filter",
        "The error occurs because `DateFilter` is not declared in the module. Let's fix the module by adding it to `declarations`.",
    ),
]


@pytest.mark.parametrize(
    ("asked", "reply"), [each[1:] for each in NOTHING_CAME_OF_IT], ids=[each[0] for each in NOTHING_CAME_OF_IT]
)
def test_a_message_that_settles_nothing_is_no_outcome(asked: str, reply: str) -> None:
    found = items_of([("agent", "The export is ready."), ("person", asked), ("agent", reply)])

    assert not [each for each in found if "The person:" in each.body]


def test_a_list_of_changes_that_gives_a_reason_is_an_outcome() -> None:
    asked = "the export page needs a date filter and a button that clears it"
    reply = (
        "Added `DateFilter` to the export page. Replaced the old select in `ExportForm`. Extracted the query into `export_query`,"
        " because the report must never read more than a month at once."
    )

    (found,) = items_of([("person", asked), ("agent", reply)])

    assert "must never read more than a month" in found.body


def test_the_task_that_one_agent_gives_another_is_no_outcome() -> None:
    task = (
        "Review the last commit of the importer. Focus on whether `BatchReader` is now a coherent boundary, and whether any"
        " behaviour that only tests need was changed by accident. Concrete findings only."
    )

    assert not items_of([("agent", task)])


REQUIREMENTS = (
    "the report should not name the host it ran on",
    "we no longer need the old folder for finished jobs",
    "avoid inventing field names of our own where a standard has one",
    "ensure each worker has a ticket before it starts",
    "release notes without the list of internal changes",
    "every picture has to be a screenshot of the real program",
    "don't touch the settings in the home folder from a test",
)
NO_REQUIREMENTS = (
    "I don't know where the report comes from",
    "should we name the host in the report",
    "the report names the host it ran on twice",
    "don't worry about the old folder for now",
    "maybe the report should name the host it ran on",
    "this works without any problem on my machine",
    "use it instead",
    "feel like the report should name the old host or the new host",
    "wait why are report and log in one folder shouldn't we have a folder for each of them",
)


@pytest.mark.parametrize("said", REQUIREMENTS)
def test_a_sentence_that_says_how_a_thing_should_be_is_a_requirement(said: str) -> None:
    assert states_requirement(said, len(said.split()))


@pytest.mark.parametrize("said", NO_REQUIREMENTS)
def test_reports_questions_and_asides_are_no_requirements(said: str) -> None:
    assert not states_requirement(said, len(said.split()))


FOUND_ON_THE_WAY = (
    "The failure comes from `Lease.renew`: it compares the local clock with the server's, so every lease looks expired as soon as"
    " the clocks are a second apart. I'm patching the comparison now.",
    "Found the problem: the runner sets `TMPDIR` to a folder that the container does not share, so each mounted file is empty."
    " Copying the files into the image avoids that.",
)
NOT_FOUND = (
    "The failure might come from `Lease.renew`, since it compares the local clock with the server's clock. Let me check that now.",
    "The problem was my own typo in `Lease.renew`, which I introduced a moment ago when I moved the comparison into it.",
    "I'm reading `Lease.renew` and its callers to see which clock each one of them uses, then I'll run the tests once more.",
)


@pytest.mark.parametrize("message", FOUND_ON_THE_WAY)
def test_a_cause_named_in_the_middle_of_a_turn_is_kept(message: str) -> None:
    found = items_of(
        [
            ("person", "fix it"),
            ("red", "lease expired"),
            ("agent", message),
            ("edits", "lease.py"),
            ("agent", "I'm running the checks."),
        ]
    )

    assert [type(each) for each in found] == [Insight]
    assert "patching the comparison" not in found[0].body


@pytest.mark.parametrize("message", NOT_FOUND)
def test_a_guess_a_slip_or_a_plan_in_the_middle_of_a_turn_is_not(message: str) -> None:
    assert not items_of(
        [
            ("person", "fix it"),
            ("red", "lease expired"),
            ("agent", message),
            ("edits", "lease.py"),
            ("agent", "I'm running the checks."),
        ]
    )
