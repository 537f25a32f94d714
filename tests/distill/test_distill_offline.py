"""Distillation by rules, over invented sessions."""

import dataclasses

import pytest

from kite_memory.distill.offline import OfflineExtractor
from kite_memory.distill.offline.claims import best_of
from kite_memory.distill.offline.people import leaves_undecided, people_in, stated_decisions, wishes
from kite_memory.distill.offline.titles import asserting_title, entities_of, is_whole, title_of
from kite_memory.distill.offline.wording import rejected_in, sentences_of, turns
from kite_memory.distill.prose import clean, established, options_in, picked, sentences, stems, without_emphasis
from kite_memory.extensions.contract.extractor_contract import DECIDED, chunk, event
from kite_memory.model.event import Event, EventType
from kite_memory.model.note import Create, Decision, Fact, Insight, OpenQuestion, Preference, RecordItem, Rejected
from kite_memory.vault.drafting import Draft, draft
from kite_memory.vault.planning import PlanContext, plan

TALK = EventType.ASSISTANT_MESSAGE


def agent(number: int, text: str) -> Event:
    return event(number, text, TALK)


def ran(number: int, command: str, output: str, *, failed: bool = False, kind: EventType = EventType.TOOL_RESULT) -> Event:
    return dataclasses.replace(event(number, output, kind, command=command, status="failed" if failed else "ok"), tool="Bash")


def distilled(*events: Event) -> tuple[RecordItem, ...]:
    return OfflineExtractor().extract(chunk(events)).record.items()


def only(*events: Event) -> RecordItem:
    (found,) = distilled(*events)
    return found


def test_a_stated_decision_keeps_its_reason_and_what_it_turned_down() -> None:
    found = only(event(1, DECIDED))

    assert isinstance(found, Decision)
    assert found.title == "PostgreSQL instead of SQLite for the job queue"
    assert found.body == DECIDED
    assert found.rejected == (Rejected(alternative="SQLite for the job queue", reason="concurrent writers need row-level locking"),)
    assert found.origin == "user"
    assert found.importance == 3
    assert found.evidence == (event(1).id,)


@pytest.mark.parametrize(
    "said",
    [
        "Should we go with PostgreSQL instead of SQLite, because of the locks?",
        "let's go",
        "Let's use the other branch",
        "PostgreSQL is what the others use because of its locks",
    ],
)
def test_a_question_a_bare_order_and_a_remark_are_no_decisions(said: str) -> None:
    assert list(stated_decisions(event(1, said))) == []


@pytest.mark.parametrize(
    "said",
    [
        "please always run the tests with `make check` before you commit",
        "Never push to main without asking me.",
        "From now on, write the changelog at release time.",
        "I'd prefer one small commit for each concern.",
        "please don't add comments that only repeat the code",
        "Fine so far. I prefer plain functions over classes.",
    ],
)
def test_a_standing_wish_is_a_preference_in_the_persons_words(said: str) -> None:
    found = only(event(1, said), agent(2, "Understood."))

    assert isinstance(found, Preference)
    assert said.split(". ")[-1].lower().rstrip(".") in found.body.lower()
    assert found.origin == "user"


def test_a_firm_wish_weighs_more() -> None:
    firm = only(event(1, "Never push to main without asking me."))
    mild = only(event(1, "I prefer plain functions over classes."))

    assert (firm.importance, mild.importance) == (3, 2)


@pytest.mark.parametrize(
    "said",
    [
        "please don't push that yet",
        "I'd prefer to leave it as it is for now",
        "the import never finishes on my laptop",
        "it always shows the same hash",
        "why does it never retry?",
        "error: this value is never used\n    at queue.py:12",
        "yes please",
        "word " * 300 + "always use tabs",
    ],
)
def test_what_merely_sounds_like_a_wish_is_none(said: str) -> None:
    assert list(wishes(event(1, said))) == []


def test_a_wish_for_every_project_says_so() -> None:
    found = only(event(1, "Please always use British spelling, in all my projects."))

    assert isinstance(found, Preference)
    assert found.everywhere


def test_a_refused_call_is_read_with_what_the_person_said_to_it() -> None:
    call = dataclasses.replace(event(2, "git push --force", EventType.COMMAND, command="git push --force"), tool="Bash", call="c1")
    refusal = dataclasses.replace(
        event(3, "The user doesn't want to proceed", EventType.TOOL_RESULT, status="denied"), tool="Bash", call="c1"
    )

    found = only(
        event(1, "tidy up the branch"),
        call,
        refusal,
        event(4, "don't rewrite history, just add a fix-up commit on top"),
        agent(5, "I'll leave the existing commits alone and add one on top of the branch."),
    )

    assert isinstance(found, Preference)
    assert "don't rewrite history" in found.body
    assert "`git push --force`" in found.body
    assert found.evidence == (event(4).id, event(3).id, event(5).id)


def test_a_question_to_a_refused_call_is_no_preference() -> None:
    refusal = dataclasses.replace(event(3, "The user doesn't want to proceed", EventType.TOOL_RESULT, status="denied"), tool="Bash")

    assert distilled(event(1, "tidy up"), refusal, event(4, "should we not use rebase for that?")) == ()


OFFER = """Two ways to lock the queue:

1. **Advisory locks in the database** - every worker asks the server for the job's number, nothing else changes.
2. **A lease column with a sweeper** - survives a crashed worker, because the lease runs out by itself.

Which do you prefer?"""


@pytest.mark.parametrize(
    "reply", ["2", "let's do 2", "option 2 please", "go with 2, but keep the column nullable", "the second one", "2."]
)
def test_an_option_that_is_picked_is_a_decision_against_the_others(reply: str) -> None:
    found = only(event(1, "how should workers claim a job?"), agent(2, OFFER), event(3, reply))

    assert isinstance(found, Decision)
    assert found.title == "A lease column with a sweeper"
    assert "survives a crashed worker" in found.body
    assert [each.alternative.split(" - ")[0] for each in found.rejected] == ["Advisory locks in the database"]
    assert found.evidence == (event(2).id, event(3).id)
    assert found.origin == "user"


@pytest.mark.parametrize(
    "reply",
    [
        "yes",
        "2 workers are too few",
        "If the load test is red, then the first",
        "what about 2% of the jobs?",
        "neither",
        "22",
        "let's see",
        "1, 2 and 3 all wait",
        "1 and 2",
        "2.5 seconds",
    ],
)
def test_a_reply_that_names_no_option_picks_none(reply: str) -> None:
    assert picked(reply, options_in(OFFER)) is None


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("I can't use the first option", ""),
        ("definitely not the second one", ""),
        ("the first approach would cost us the index", ""),
        ("2 seems a terrible fit for us", ""),
        ("I fear 1 is far too slow", ""),
        ("Could you expand on the second option?", ""),
        ("how about the first way", ""),
        ("the former is out", ""),
        ("2 - certainly not", ""),
        ("1: rejected", ""),
        ("none of them, the second one loses jobs", ""),
        ("anything but the latter", ""),
        ("why would I take the second option", ""),
        ("2, right?", ""),
        ("if the second option is cheap, tell me more", ""),
        ("the first or the second, as you like", ""),
        ("2 is nice but too slow", ""),
        ("1. look at the logs\n2. then write the report", ""),
        ("2, nein", ""),
        ("1 - jamais", ""),
        ("the second, since the server may be down", "2"),
        ("I want the second option", "2"),
        ("no, not the first one, the second one", "2"),
        ("The first option won't do. Take the second.", "2"),
        ("Thanks, that helps. I'd go with the second approach.", "2"),
        ("the latter makes more sense", "2"),
        ("2 looks much better", "2"),
        ("2, not 1", "2"),
        ("I don't want a lock, so the second one", "2"),
        ("Since we can't lock in prod, the second option", "2"),
        ("the latter without the sweeper", "2"),
        ("2 please, and can you add a test?", "2"),
        ("1, no wait, 2", "2"),
        ("1, doch lieber 2", "2"),
        ("1, non, 2", "2"),
        ("my choice is the former", "1"),
        ("1 it is", "1"),
        ("let's do the first one for now", "1"),
    ],
)
def test_an_option_is_chosen_only_by_a_reply_that_takes_it(reply: str, label: str) -> None:
    choice = picked(reply, options_in(OFFER))

    assert (choice.label if choice else "") == label


def test_a_list_that_no_one_asks_about_offers_nothing() -> None:
    assert options_in(OFFER.replace("Which do you prefer?", "Both are done.")) == []


def test_letters_are_options_too_and_an_article_is_none() -> None:
    options = options_in("Option A: keep the column\nOption B: drop the column\n\nWhich one?")

    assert [option.label for option in options] == ["A", "B"]
    assert picked("B", options) == options[1]
    assert picked("a lease would be better", options) is None


def test_an_answer_to_a_question_is_a_decision_with_what_was_not_chosen() -> None:
    asked = "Which lock should the queue use?\nAnswer: A lease column\nNot chosen: Advisory locks; A lock file"

    found = only(event(1, "go on"), event(2, asked, EventType.DECISION))

    assert isinstance(found, Decision)
    assert found.title == "A lease column: Which lock should the queue use"
    assert [each.alternative for each in found.rejected] == ["Advisory locks", "A lock file"]
    assert found.origin == "user"


def test_the_answers_to_one_call_are_one_decision() -> None:
    asked = "Which lock should the queue use?\nAnswer: A lease column (Recommended)\nNot chosen: A lock file"
    also = "Should a crashed worker be told of?\nAnswer: Only in the log\nNot chosen: By mail"
    events = [dataclasses.replace(event(at, text, EventType.DECISION), call="c1") for at, text in ((2, asked), (3, also))]

    found = only(event(1, "go on"), *events)

    assert isinstance(found, Decision)
    assert "A lease column. " in found.body
    assert "Only in the log" in found.body
    assert [each.alternative for each in found.rejected] == ["A lock file", "By mail"]


@pytest.mark.parametrize("answer", ["Wait for the lock", "Compare by id", "Dependencies of uv"])
def test_an_answer_that_only_begins_as_a_wish_to_know_or_wait_decides(answer: str) -> None:
    assert not leaves_undecided(answer, typed=True)


@pytest.mark.parametrize("answer", ["You decide", "Next area", "Your call", "I don't care", "Skip this one"])
def test_an_answer_that_chooses_nothing_is_no_decision(answer: str) -> None:
    asked = f"Which lock should the queue use?\nAnswer: {answer}\nNot chosen: Advisory locks; A lock file"

    assert distilled(event(1, "go on"), event(2, asked, EventType.DECISION)) == ()


@pytest.mark.parametrize(
    "answer",
    [
        "How do they differ under load?",
        "explain the lease first",
        "neither of them yet",
        "let's talk it over",
        "I'm not sure, what would you do",
        "ask Mira, she knows",
        "Was spricht gegen die Spalte?",
        "keine davon",
        "aucun des deux",
        "todavía no sé, ¿cuál es mejor?",
    ],
)
def test_a_counter_question_to_the_options_decides_nothing(answer: str) -> None:
    asked = f"Which lock should the queue use?\nAnswer: {answer}\nOffered: Advisory locks; A lock file"

    assert distilled(event(1, "go on"), event(2, asked, EventType.DECISION)) == ()


@pytest.mark.parametrize(
    "answer",
    [
        "a lease column in the jobs table",
        "not advisory locks, those die with the server",
        "Later versions only",
        "Dependencies in the lease",
        "I need more columns: name and lease",
        "Ninguna cola",
    ],
)
def test_an_answer_beside_the_options_turns_none_of_them_down(answer: str) -> None:
    asked = f"Which lock should the queue use?\nAnswer: {answer}\nOffered: Advisory locks; A lock file"

    found = only(event(1, "go on"), event(2, asked, EventType.DECISION))

    assert isinstance(found, Decision)
    assert answer in found.body
    assert found.rejected == ()


def test_an_option_may_begin_as_a_counter_question_does() -> None:
    asked = "Which step should follow a crash?\nAnswer: Ask the operator each time\nNot chosen: Retry at once"

    assert isinstance(only(event(1, "go on"), event(2, asked, EventType.DECISION)), Decision)


def test_an_answer_that_only_informs_is_no_decision() -> None:
    asked = "Where did the timeout first show?\nAnswer: On the staging server's nightly run"

    assert distilled(event(1, "go on"), event(2, asked, EventType.DECISION)) == ()


def test_an_approved_plan_is_a_decision() -> None:
    plan = """# Plan: leases

## Why

A crashed worker keeps its job for ever, because nothing takes an abandoned claim back. The lease column lets the sweeper
return such a job to the queue after two minutes.

## Files

- queue.py
- sweeper.py"""

    found = only(event(1, "make a plan"), event(2, plan, EventType.DECISION))

    assert isinstance(found, Decision)
    assert "The lease column lets the sweeper return such a job" in found.body


CAUSE = """Found it. The root cause is the lease check in `sweeper.py`: it compares naive local time with the UTC time of the
database, so every lease taken within two hours of midnight looks expired and the job runs twice.

The fix converts both sides to UTC before comparing them. A regression test now freezes the clock at half past midnight, where
the old code returned the job to the queue while its worker was still busy. The jobs table itself was never wrong, which is why
the dashboard showed nothing unusual.

Want me to commit this?"""


def test_the_cause_of_a_failure_is_an_insight_with_its_symptom() -> None:
    found = only(
        event(1, "why do some jobs run twice at night?"),
        ran(2, "make check", "AssertionError: job 7 ran twice", failed=True, kind=EventType.TEST_RESULT),
        agent(3, CAUSE),
        ran(4, "make check", "12 passed", kind=EventType.TEST_RESULT),
    )

    assert isinstance(found, Insight)
    assert "root cause is the lease check in `sweeper.py`" in found.body
    assert found.symptom == "AssertionError: job 7 ran twice"
    assert "`sweeper.py`".strip("`") in found.entities
    assert "Want me to commit" not in found.body


def test_a_theory_that_did_not_hold_is_not_reported() -> None:
    theory = """The problem is the connection pool of the sweeper: it hands one connection to two workers, so both see the same
job as free. The pool is shared between threads because the factory caches it, and each sweep borrows two connections at once."""

    found = distilled(
        event(1, "why do some jobs run twice at night?"),
        agent(2, theory),
        ran(3, "make check", "AssertionError: job 7 ran twice", failed=True),
        agent(4, CAUSE),
    )

    text = " ".join(item.body for item in found)
    assert "root cause is the lease check" in text
    assert "The problem is the connection pool" not in text


def test_two_causes_named_together_both_stand() -> None:
    both = CAUSE.replace(
        "Want me to commit this?", "A second bug was here as well: the sweeper never closes its cursor, so leases pile up at night."
    )

    text = " ".join(
        item.body for item in distilled(event(1, "why do some jobs run twice at night? do leases pile up?"), agent(2, both))
    )

    assert "root cause is the lease check" in text


@pytest.mark.parametrize(
    "said",
    [
        "Let me look at the queue.",
        "All tests pass. Committed and pushed.",
        "Now let me run the linter.\n\nHere are the results:\n\n- ok\n- ok",
        "Want me to do that?",
        "```python\nprint('because of the lease, the queue must never wait')\n```",
        "| file | lines |\n|---|---|\n| queue.py | 12 |",
    ],
)
def test_routine_leaves_nothing(said: str) -> None:
    assert distilled(event(1, "go on"), agent(2, said)) == ()


def test_a_correction_that_the_agent_concedes_leads_what_followed() -> None:
    conceded = "You're right, that belongs into the sweeper. " + CAUSE

    (found,) = distilled(event(1, "but the lease check has no business in the worker, has it?"), agent(2, conceded))

    assert found.body.startswith("The person: “but the lease check has no business in the worker, has it?”")
    assert event(1).id in found.evidence


def test_a_long_session_does_not_become_a_hundred_notes() -> None:
    events = []
    for n in range(0, 200, 2):
        events += [event(n, f"what about part {n}?"), agent(n + 1, CAUSE.replace("sweeper", f"sweeper{n}"))]

    found = distilled(*events)

    assert 1 <= len(found) <= 30


def test_what_is_said_twice_is_reported_once() -> None:
    asked = "why do some jobs run twice at night?"

    twice = distilled(event(1, asked), agent(2, CAUSE), event(3, asked), agent(4, CAUSE))

    assert len(twice) == 1


def test_nothing_of_an_empty_or_silent_chunk() -> None:
    assert distilled() == ()
    assert distilled(event(1, "yes"), agent(2, "Done.")) == ()


def test_words_that_no_person_wrote_are_no_ones_wish() -> None:
    by_an_agent = dataclasses.replace(event(1, "Always run the tests with `make check` first."), role="assistant")

    assert distilled(by_an_agent) == ()


@pytest.mark.parametrize(
    ("wrong", "complaint", "right"),
    [
        ("pytest tests", "bash: pytest: command not found", ".venv/bin/python -m pytest tests"),
        ("python tool.py", "zsh: command not found: python", "python3 tool.py"),
        ("lint run --fast ./...", "Error: unknown flag: --fast", "cd api && lint run ./..."),
        ("npm run chek", 'npm error Missing script: "chek"', "npm run check"),
        ("deploy apply", "Error: environment variable STAGE is not set", "STAGE=test deploy apply"),
        ("python -m pytest tests", "No module named pytest", ".venv/bin/python -m pytest tests"),
        ("pytest tests", "ModuleNotFoundError: No module named 'orchard'", "uv run pytest tests"),
        ("pnpm test unit", "ERR no such file or directory, open package.json", "cd web && pnpm test unit"),
    ],
)
def test_a_command_that_failed_on_its_form_and_then_worked_in_another(wrong: str, complaint: str, right: str) -> None:
    found = list(established([ran(1, wrong, complaint, failed=True), ran(2, right, "fine")]))

    assert [(each.wrong, each.right) for each in found] == [(wrong, right)]


@pytest.mark.parametrize(
    ("wrong", "complaint", "right"),
    [
        ("make check", "AssertionError: 1 != 2", "make check"),
        ("make check", "2 tests failed", "make lint"),
        ("git gc --auto --dry", "error: unknown option `dry'", "git count-objects -v"),
        ("ls /nope", "No such file or directory", "ls /tmp"),
        ("cd api && make check", "cd: no such file or directory: api", "make check"),
    ],
)
def test_a_mended_test_and_another_command_establish_nothing(wrong: str, complaint: str, right: str) -> None:
    assert list(established([ran(1, wrong, complaint, failed=True), ran(2, right, "fine")])) == []


@pytest.mark.parametrize("read", ["cat build/out.txt", "grep -rn start src", "git fetch origin", "echo giving up"])
def test_what_is_only_read_between_helped_nothing(read: str) -> None:
    events = [
        ran(1, "tsc -p .", "tsc: command not found", failed=True), ran(2, read, "fine"), ran(3, "npx tsc -p .", "fine"),
    ]  # fmt: skip

    assert [each.right for each in established(events)] == ["npx tsc -p ."]


@pytest.mark.parametrize(
    "runs",
    [
        [("yarn build", "Cannot find module 'left'", False), ("yarn add left", "ok", True), ("yarn build --quiet", "ok", True)],
        [("tsc", "tsc: command not found", False), ("cd web; npm install typescript", "", True), ("npx tsc", "", True)],
        [("yarn biuld x", "unknown command biuld", False), ("npm install yarn", "ok", True), ("yarn biuld x --y", "ok", True)],
        [("pull origin main", "Permission denied (publickey)", False), ("pull origin main --tags", "ok", True)],
        [("mysql -h here pears -e 'select 1'", "connection refused", False), ("mysql -h here plums -e 'drop table x'", "ok", True)],
        [("make tset", "No rule to make target, usage: make", False), ("make -n tset || true", "", True)],
        [("kube apply -f a.yml", "unknown flag: -f", False), ("kube apply a.yml --dry-run=client", "ok", True)],
        [("deploy apply", "environment variable STAGE is not set", False), ("deploy apply:status", "ok", True)],
    ],
)
def test_a_success_that_has_another_reason_establishes_nothing(runs: list[tuple[str, str, bool]]) -> None:
    events = [ran(at, command, output, failed=not works) for at, (command, output, works) in enumerate(runs, 1)]

    assert list(established(events)) == []


@pytest.mark.parametrize("between", ["cat build/out.txt", "grep -rn start src", "git fetch origin", "echo giving up"])
def test_a_look_around_between_a_failure_and_a_success_does_not_explain_it(between: str) -> None:
    wrong, right = "tsc -p .", "npx tsc -p ."
    events = [ran(1, wrong, "tsc: command not found", failed=True), ran(2, between, "ok"), ran(3, right, "ok")]

    assert [(each.wrong, each.right) for each in established(events)] == [(wrong, right)]


def test_an_established_command_is_a_fact_of_the_tools() -> None:
    found = only(
        event(1, "run the tests"),
        ran(2, "pytest tests", "bash: pytest: command not found", failed=True),
        ran(3, ".venv/bin/python -m pytest tests", "12 passed"),
    )

    assert isinstance(found, Fact)
    assert found.origin == "tool"
    assert (
        found.body == "`.venv/bin/python -m pytest tests` works here; `pytest tests` fails with “bash: pytest: command not found”."
    )


@pytest.mark.parametrize(
    ("sentence", "title"),
    [
        (
            "The root cause is that the sweeper compares local time with UTC, so leases expire early.",
            "Sweeper compares local time with UTC, so leases expire early",
        ),
        ("Let's go with leases instead of advisory locks.", "Leases instead of advisory locks"),
        ("`make check` needs a running database.", "`make check` needs a running database"),
        ("It turns out that the cache never expires: nobody sets a time.", "Cache never expires"),
        (
            "Looking at queue.py, the lease column is read before the lock is taken.",
            "The lease column is read before the lock is taken",
        ),
        ("2. nodo's third point is the redirect", "Nodo's third point is the redirect"),
        (
            "One leftover: the README's `git clone` block now has `git clone https://example.org/git-sync.git` and a wrong folder.",
            "The README's `git clone` block now has `git clone https://example.org/git-sync.git` and a wrong folder",
        ),
        (
            "The overriding directive is to not get in the way of the person",
            "The overriding directive is to not get in the way of the person",
        ),
        (
            "This branch also brings in the full parent stack (phase-aware state machine)",
            "This branch also brings in the full parent stack",
        ),
    ],
)
def test_titles_say_the_point(sentence: str, title: str) -> None:
    assert title_of(sentence).removeprefix("The ").lower() == title.removeprefix("The ").lower()


@pytest.mark.parametrize("sentence", ["", "`", "So, and but", "x" * 5_000, "a " * 5_000, "(((", "— — —", "the"])
def test_titles_of_odd_sentences_are_short(sentence: str) -> None:
    assert len(title_of(sentence)) <= 120


@pytest.mark.parametrize(
    ("sentence", "rejected"),
    [
        ("Use leases rather than advisory locks.", Rejected(alternative="advisory locks", reason="")),
        ("We keep the sweeper, not cron because cron has no log.", Rejected(alternative="cron", reason="cron has no log")),
        ("A lock file was too fragile.", Rejected(alternative="A lock file", reason="")),
        (
            "Leases instead of locks, since locks die with the session.",
            Rejected(alternative="locks", reason="locks die with the session"),
        ),
    ],
)
def test_what_lost_is_found_with_its_reason(sentence: str, rejected: Rejected) -> None:
    assert list(rejected_in([sentence])) == [rejected]


@pytest.mark.parametrize(
    "sentence",
    [
        "`StepCount` is 1 instead of 0 after the condensation.",
        "The lookup resolved to another session instead of its own session.",
        "The call does not fully represent the boundary because it only abstracts the relay.",
        "Chunked request bodies are rejected by the backend.",
        "It writes `a.log` instead of `go run` under the shell and `stops.",
        "The worker waits rather than swallowing.",
        "It reads the cache instead of the actual file.",
    ],
)
def test_what_is_or_should_have_been_was_not_turned_down(sentence: str) -> None:
    assert list(rejected_in([sentence])) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "It fails fast instead of silently corrupting the feed.",
        "Feeds are numbered from zero instead of keeping the latest at the root.",
        "The tracker is a real status document instead of a raw backlog.",
    ],
)
def test_what_an_agent_says_by_way_of_contrast_was_not_rejected(sentence: str) -> None:
    assert list(rejected_in([sentence], of_agent=True)) == []


def test_what_an_agent_chose_against_was_rejected() -> None:
    said = "We use one advisory lock instead of a lock file."

    assert list(rejected_in([said], of_agent=True)) == [Rejected(alternative="a lock file", reason="")]


POSSIBLE = """`ParseFeed` loses rows. There are three possible causes:

- `FeedReader` never flushes its buffer because the writer is closed first.
- `FeedIndex` drops rows because its key is cut after 64 bytes.

`FeedWriter` was ruled out because its output has 412 rows, as many as `feeds.csv` has in the test."""


@pytest.mark.parametrize(
    "introduced", ["There are three possible causes:", "It is probably one of two readers:", "There are two likely root causes:"]
)
def test_what_is_only_possible_is_no_fact(introduced: str) -> None:
    said = POSSIBLE.replace("There are three possible causes:", introduced)
    (found,) = distilled(event(1, "why do feeds lose rows?"), agent(2, said))

    assert "FeedWriter" in found.body and "FeedReader" not in found.body and "FeedIndex" not in found.body


@pytest.mark.parametrize(
    "introduced", ["There are two reasons for it:", "I found three causes:", "I traced it to one of the readers:"]
)
def test_the_causes_that_were_found_are_facts(introduced: str) -> None:
    said = POSSIBLE.replace("There are three possible causes:", introduced)
    (found,) = distilled(event(1, "why do feeds lose rows?"), agent(2, said))

    assert "FeedReader" in found.body and "FeedIndex" in found.body


@pytest.mark.parametrize(
    ("said", "title"),
    [
        (
            "## Feed cleanup\n\nEach run keeps all rows of the first one because nothing closes them before that, and they are only"
            " dropped at the very end.",
            "Feed cleanup: ",
        ),
        (
            "`FeedIndex` holds them. Each run writes the rows whose names begin alike to one place because nothing compares all the"
            " rest of them.",
            "`FeedIndex`: ",
        ),
    ],
)
def test_a_title_that_names_nothing_is_preceded_by_its_subject(said: str, title: str) -> None:
    (found,) = distilled(event(1, "The second run must never be slower than the first run."), agent(2, said))

    assert found.title.startswith(title)


@pytest.mark.parametrize(
    "cleared",
    [
        "`FeedIndex` is not involved.",
        "`FeedIndex` works there.",
        "`FeedIndex` was ruled out first.",
        "`FeedIndex` was the first idea. But it has nothing to do with them.",
    ],
)
def test_what_a_message_clears_is_no_subject_of_a_title(cleared: str) -> None:
    said = f"{cleared} Each run writes the rows whose names begin alike to one place because nothing compares all the rest of them."
    found = distilled(event(1, "The second run must never be slower than the first run."), agent(2, said))

    assert not [each.title for each in found if each.title.startswith("`Feed")]


def test_code_that_lost_keeps_its_marks_and_is_no_reason_for_itself() -> None:
    said = "Serve it as a plain binary rather than a bare `go run`."

    assert list(rejected_in([said])) == [Rejected(alternative="a bare `go run`", reason="")]


@pytest.mark.parametrize(
    ("sentence", "lost"),
    [
        ("Use a heap instead of a sorted list because inserts dominate.", "a sorted list"),
        ("We went with Caddy rather than nginx since it renews certificates.", "nginx"),
        ("Let's use a queue as opposed to a cron job so that nothing is lost.", "a cron job"),
        ("Use tmpfs instead of a disk for the cache.", "a disk for the cache"),
    ],
)
def test_what_lost_does_not_swallow_its_reason(sentence: str, lost: str) -> None:
    assert [each.alternative for each in rejected_in([sentence])] == [lost]


def test_entities_are_named_as_they_are_spelled() -> None:
    text = "The `lease_column` in orchard/queue.py is read by JobSweeper, see BEE-12 and the worker_pool of PostgreSQL."

    assert entities_of([text]) == ("lease_column", "orchard/queue.py", "JobSweeper", "BEE-12", "worker_pool", "PostgreSQL")


@pytest.mark.parametrize(
    "code", ["hookErrors: []", "name\\n", "10:52:21.099Z", "28c304f6", "echo $?", "<<'JSON'", "{a: b}", "2026-02-01"]
)
def test_what_is_code_and_no_name_is_no_entity(code: str) -> None:
    assert entities_of([f"It says `{code}` in `queue.py`."]) == ("queue.py",)


def test_sentences_end_where_people_end_them() -> None:
    text = "See v1.2 of queue.py, e.g. the lease. It ends here! Does it? Yes, cf. `a. B` there. Dr. Bee knows."

    assert sentences(text) == [
        "See v1.2 of queue.py, e.g. the lease.",
        "It ends here!",
        "Does it?",
        "Yes, cf. `a. B` there.",
        "Dr. Bee knows.",
    ]


def test_messages_lose_their_markup_but_not_their_code() -> None:
    text = "## Why\n\n**The lease** of `a*b*c` is [short](http://x).\n\n- one\n- [x] two\n\n```\ncode\n```\n> quoted\n| a | b |"

    found = sentences_of(agent(1, text), text)

    assert [(each.heading, each.text) for each in found] == [
        ("Why", "The lease of `a*b*c` is short."),
        ("Why", "one"),
        ("Why", "two"),
    ]


@pytest.mark.parametrize(
    "said",
    [
        "a page holds 2**12 bytes, a frame 2**14",
        "copy assets/**/*.svg and icons/**/*.png",
        "**/*.lock and **/dist/** are skipped",
        "hand **options and *parts on",
        "keep __main__.py and its __version__ in step",
        "match *_old* and *.bak* names",
        "3 * 4 * 5 is 4*15",
        "SELECT count(*) FROM pears, count(*) FROM plums",
        "`**bold**` and `__dunder__` are code",
        "an `unfinished **piece** of code",
    ],
)
def test_stars_and_bars_that_are_no_emphasis_stay(said: str) -> None:
    assert without_emphasis(said) == said


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("**The lease** is short.", "The lease is short."),
        ("**Why:** it `works`", "Why: it `works`"),
        ("***both*** and __two words__", "both and two words"),
        ("*in italics*, (**bold**)", "in italics, (bold)"),
        ("根本原因：**连接池**太小", "根本原因：连接池太小"),
        ("**原因**：キャッシュの**競合**でした", "原因：キャッシュの競合でした"),
        ("**bold with `a*b` inside**.", "bold with `a*b` inside."),
        ("it includes *only these words* here", "it includes only these words here"),
    ],
)
def test_emphasis_is_removed(said: str, plain: str) -> None:
    assert without_emphasis(said) == plain


@pytest.mark.parametrize("value", ["2**24 bytes", "lib/**/*.rs", "**kwargs", "__init__.py", "*_STAGE_* variables"])
def test_a_note_keeps_the_value_that_the_person_wrote(value: str) -> None:
    found = only(event(1, "add a limit"), agent(2, "Done."), event(3, f"Always write {value} in new modules, please."))

    assert value in found.title
    assert value in found.body


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\r"])
def test_every_end_of_a_line_divides_words(end: str) -> None:
    assert clean(f"sort the pears{end}prune the plums") == "sort the pears\nprune the plums"


@pytest.mark.parametrize("said", ["\U0001f469\u200d\U0001f33e prunes", "می\u200cروم", "क्\u200dष", "I \u2764\ufe0f pears"])
def test_what_is_joined_in_its_script_stays_joined(said: str) -> None:
    assert clean(said) == said


@pytest.mark.parametrize("hidden", ["\u200c", "\u200d", "\ufe0f", "\u200b", "\u2060", "\U000e0041"])
def test_nothing_is_hidden_in_latin_words(hidden: str) -> None:
    assert clean(f"pr{hidden}une") == "prune"


def test_turns_begin_where_a_person_speaks() -> None:
    by_an_agent = dataclasses.replace(event(4, "explore"), role="assistant")
    events = (agent(1, "before"), event(2, "one"), agent(3, "a"), by_an_agent, event(5, "two"))

    found = turns(events)

    assert [each.asked.text if each.asked else None for each in found] == [None, "one", "two"]
    assert tuple(each for turn in found for each in turn.events) == events


def test_words_meet_in_their_inflections_and_identifiers_in_their_parts() -> None:
    assert stems("locking the retryAfter header") >= stems("retry_after") - {"after"}
    assert stems("locks") & stems("locks!")
    assert stems("the and of") == frozenset()


REASON = (
    "`ParseFeed` drops the last row because the reader expects a newline at the end of the file. `FeedWriter` never writes one when"
    " the batch is empty, so every feed without rows loses its header as well."
)


def test_where_the_work_stands_is_left_out_of_a_note() -> None:
    status = "Branch: feed-fix\n\nPR #118 is open.\n\nThe worker is polling the build.\n\nSee 4b63c50a for the first part.\n\n"

    found = only(event(1, "why do feeds lose a row?"), agent(2, f"{status}{REASON}"))

    assert found.body == f"The person: “why do feeds lose a row?” {REASON}"
    assert (
        found.title == "`FeedWriter` never writes one when the batch is empty, so every feed without rows loses its header as well"
    )


def test_a_report_of_where_workers_stand_is_no_note() -> None:
    assert not distilled(
        event(1, "what is the status?"),
        agent(
            2,
            "Spawned.\n\n- Handle: feed-rewrite\n- Branch: feed-rewrite\n- Base: origin/main\n\nThe worker is still running the"
            " build of the feed reader and will report when it is done. PR #118 is open and mergeable, the other branch is two"
            " commits behind main.",
        ),
    )


def test_what_an_agent_tasks_another_with_is_no_claim() -> None:
    assert not distilled(
        agent(
            1,
            "Review commit 76823bf in the feed reader. Focus on whether the search can skip rows because of the bounded window."
            " Report only concrete findings with file and line, otherwise say that there are no findings. Do not edit any files.",
        )
    )


def test_a_guess_is_worth_less_than_the_same_words_without_it() -> None:
    (sure,) = distilled(event(1, "why do feeds lose a row?"), agent(2, REASON))
    guessed = "I think it might be the reader. " + REASON.replace("drops", "probably drops").replace(
        "never writes", "perhaps never writes"
    )

    assert isinstance(sure, Insight)
    assert not distilled(event(1, "why do feeds lose a row?"), agent(2, guessed))


def answers(said: str) -> list[str]:
    return [item.title for item in distilled(event(1, "why do feeds lose a row?"), agent(2, said))]


def test_a_claim_about_what_has_just_changed_is_no_title_beside_another() -> None:
    (title,) = answers(REASON.replace("drops", "now drops"))

    assert " now " not in title


@pytest.mark.parametrize("going_on", ["I'm adding a second index for the archive.", "I am also renaming the writers of the index."])
def test_a_message_that_goes_on_with_the_work_is_no_claim_without_a_cause(going_on: str) -> None:
    facts = (
        "`FeedReader` reads each feed in blocks of 64 kB because of its cache, and `FeedIndex` keeps the offsets of the rows,"
        " without a copy of the text. Its writers share one buffer of at most 2 MB, and close it with the last of the feeds."
    )
    without = facts.replace(" because of its cache", "")

    assert answers(facts) and answers(f"{facts} {going_on}")
    assert not answers(f"{without} {going_on}")


@pytest.mark.parametrize(
    "report",
    [
        "`feeds.toml` and two of the three writers in `FeedWriter` were updated without a new index.",
        "The worktree of `FeedWriter` must wait, still two commits behind `origin/main` and never rebased.",
        "The only difference between both writers in `FeedWriter` is that one never ran at 4b7a223.",
    ],
)
def test_a_report_of_a_change_is_no_title(report: str) -> None:
    other = "`FeedWriter` never writes a row because the batch is empty, and needs 2 MB of buffer."

    assert best_of(sentences_of(agent(1, other), other)) is not None
    assert best_of(sentences_of(agent(1, report), report)) is None


def test_the_title_of_a_plan_gives_its_reason() -> None:
    decided = event(
        1,
        "# Read feeds in batches\n\n## Context\n\nThe feed reader loads a whole feed before it writes the first row, so the"
        " importer runs out of memory on the largest ones.\n\n## Approach\n\n- `FeedReader.rows` yields 1,000 rows at a time.\n"
        "- `FeedWriter` commits each batch, and the last one is flushed when the reader ends.\n",
        EventType.DECISION,
    )

    (plan,) = (item for item in distilled(decided) if item.body.startswith("From an approved plan"))

    assert plan.title == (
        "Read feeds in batches: The feed reader loads a whole feed before it writes the first row, so the importer runs out of"
        " memory on the largest ones"
    )


def test_a_long_answer_to_a_question_is_no_plan() -> None:
    asked = "Should the index be restored from a backup? " + "The report says that the index lists the tasks. " * 14
    decided = event(
        1, f"{asked}\nAnswer: I have no backup of the index, so it must be changed by a program instead.", EventType.DECISION
    )

    assert not any("approved plan" in item.body for item in distilled(decided))


@pytest.mark.parametrize(
    ("sentence", "title"),
    [
        ("Medium: `FeedWriter` never flushes the last batch.", "`FeedWriter` never flushes the last batch"),
        ("P1 — `FeedWriter` never flushes the last batch.", "`FeedWriter` never flushes the last batch"),
        (
            "`docs/feeds.md` now names the three formats that the reader accepts against the schema of the published feeds and"
            " their three older forms instead of treating every one of them as a plain table.",
            "`docs/feeds.md` now names the three formats that the reader accepts against the schema of the published feeds and"
            " their three older forms",
        ),
    ],
)
def test_a_title_has_no_rank_and_is_cut_at_a_phrase(sentence: str, title: str) -> None:
    assert asserting_title(sentence) == title


def test_a_title_keeps_the_verb_of_a_choice() -> None:
    assert title_of("Let's use true/false and not on/off for the switch.") == "Use true/false and not on/off for the switch"
    assert title_of("I'd prefer a map over two loops.") == "Prefer a map over two loops"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("If the token has expired", False),
        ("If the token has expired, the proxy answers 401", True),
        ("Binary result for one attempt when the checker gives up", False),
        ("CLI coverage only tests the plan mode", True),
        ("In a newly published public package", False),
        ("In the reader, the last row is dropped", True),
    ],
)
def test_a_title_is_whole_if_its_main_clause_has_a_verb(text: str, *, whole: bool) -> None:
    assert is_whole(text) is whole


def test_a_title_that_names_nothing_gets_the_name_that_its_note_repeats() -> None:
    (found,) = distilled(
        event(1, "The second run must never be slower than the first run."),
        agent(
            2,
            "Each run writes its own copy because the key comes from the path before that is resolved. Look at how `FeedCache` is"
            " built, and at the loop around `FeedCache`, once for every single path in the whole list of feeds.",
        ),
    )

    assert found.title.startswith("`FeedCache`: each run writes its own copy because")


def test_tags_are_no_part_of_a_sentence() -> None:
    (found,) = sentences_of(agent(1, ""), "<summary>The cache in `Feed` is read twice, once for each import.</summary>")

    assert found.text == "The cache in `Feed` is read twice, once for each import."


def test_a_bracket_without_its_partner_is_no_part_of_a_title() -> None:
    assert asserting_title("the header `Feed-Id` is the key by which they find the failure (on their side)").count(")") == 1
    assert ")" not in asserting_title("the header `Feed-Id` is the key by which they find the failure on their side)")


@pytest.mark.parametrize(
    ("said", "people"),
    [
        ("Marta owns the billing service, ask her before you change invoices.", {"Marta"}),
        ("ask Jonas Weber about the schema first", {"Jonas Weber"}),
        ("this was decided by Ines last week", {"Ines"}),
        ("please address Tomek's review", {"Tomek"}),
        ("GitHub's PR page shows it", set()),
        ("Claude suggested a map, ask Codex", set()),
        ("check with `Lookup` whether the key exists", set()),
        ("the Parser decided to stop, at src/Parser.Reader reviewed", set()),
    ],
)
def test_people_are_named_by_what_they_do(said: str, people: set[str]) -> None:
    assert people_in([event(1, said)]) == people
    assert people_in([agent(1, said)]) == frozenset()


def test_who_owns_what_is_a_fact_about_a_person() -> None:
    found = only(
        event(1, "the invoices are wrong"), agent(2, "I will look."), event(3, "Marta owns the billing service and its invoices.")
    )

    assert isinstance(found, Fact)
    assert "person:Marta" in found.entities


def test_half_a_name_is_no_name_of_its_own() -> None:
    found = only(event(1, "remember that Oriana Fenwick owns the grafting service in the north"), agent(2, "Noted."))

    assert "person:Oriana Fenwick" in found.entities
    assert not {"Oriana", "Fenwick"} & set(found.entities)


def test_what_is_left_open_is_a_question() -> None:
    found = only(
        event(1, "which retention do we use?"),
        agent(2, "Thirty days is in the config."),
        event(3, "Open question: whether the audit log has to be kept for ten years in both regions."),
    )

    assert isinstance(found, OpenQuestion)
    assert found.origin == "user"
    assert "audit log" in found.title


@pytest.mark.parametrize(
    "said", ["+what's the purpose of two runs", "also does the index confuse people", "should the file be named manifest"]
)
def test_a_question_without_its_mark_settles_nothing(said: str) -> None:
    assert not distilled(
        event(1, "look at the layout of the results"),
        agent(2, "I'd keep `index.jsonl` beside `summary.json`. Shall I?"),
        event(3, f"{said}, both must never be stale and only one per run"),
        agent(4, "Let me look."),
    )


def test_a_person_whom_two_sessions_name_has_a_page() -> None:
    made: list[Draft] = []
    for number, said in enumerate(
        ("Marta owns the billing service and its invoices.", "Marta runs the import of the bank statements.")
    ):
        events = (event(1, "the invoices are wrong"), agent(2, "I will look."), event(3, said))
        told = chunk(events)
        told = dataclasses.replace(told, id=f"chunk-{number}", session=dataclasses.replace(told.session, id=f"5e55-{number:04}"))
        made += draft(OfflineExtractor().extract(told).record, told)

    pages = [action.note.path for action in plan(made, PlanContext()) if isinstance(action, Create)]

    assert "people/Marta.md" in pages
