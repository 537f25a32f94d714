"""What a prompt led to: reported in a line, found by its meaning, and silent where it was only talk."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.extensions.contract.extractor_contract import SESSION, START
from kite_memory.model.event import PLANNING, EventType
from kite_memory.timeline import schema
from kite_memory.timeline.cards import PromptOutcome, prompt_outcome
from kite_memory.timeline.conversations import ConversationEmbedder
from kite_memory.timeline.search import EventQuery
from kite_memory.timeline.store import Timeline
from tests.counts import examples
from tests.fakes.clock import UnixClock
from tests.fakes.work import Work

HOME = SESSION.cwd
ASKED = "Let the sweeper take back stale claims"


@pytest.fixture
def clock() -> UnixClock:
    return UnixClock(START + timedelta(hours=1))


@pytest.fixture
def timeline(tmp_path: Path, clock: UnixClock) -> Iterator[Timeline]:
    with closing(Timeline(tmp_path / "timeline.sqlite", clock=clock)) as store:
        yield store


def hears(word: str) -> ConversationEmbedder:
    """Knows a single subject: whether the sweeper, or what the question asks for it with, is spoken of."""

    def vector(text: str) -> list[float]:
        return [1.0, 0.0] if "sweeper" in text or word in text else [0.0, 1.0]

    return ConversationEmbedder(
        space="one-subject",
        of_texts=lambda texts: np.array([vector(text) for text in texts], np.float32).reshape(len(texts), 2),
        of_question=lambda text: np.array(vector(text), np.float32),
    )


def keep(timeline: Timeline, work: Work) -> None:
    timeline.commit([work.look()], SESSION.provider)


def outcome_of(timeline: Timeline, prompt: str = ASKED) -> PromptOutcome | None:
    (found,) = timeline._database.all("SELECT seq FROM events WHERE text = ? AND type = 'user_message'", (prompt,))
    return prompt_outcome(timeline._database.all, found[0])


def swept() -> Work:
    work = Work().asked(ASKED).edited(f"{HOME}/sweeper.py").ran("pytest tests", "E   AssertionError: the lease is 0", "failed")
    work.edited(f"{HOME}/settings.py", "created").ran("pytest tests", "4 passed", tests="ok")
    return work.committed("4fe3ad3", "Take back stale claims").said("The sweeper takes them back now.")


def test_files_commands_and_how_they_ended_are_reported_in_a_line(timeline: Timeline) -> None:
    keep(timeline, swept().asked("Thanks").said("You are welcome."))

    assert outcome_of(timeline) == PromptOutcome(
        prompt=ASKED,
        came="created settings.py; edited sweeper.py;"
        " ran pytest tests: went well, having failed before (AssertionError: the lease is <n>);"
        ' ran git commit -am "Take back stale claims": went well; committed Take back stale claims',
        answer="The sweeper takes them back now.",
    )


def test_what_was_let_go_is_not_reported(timeline: Timeline) -> None:
    work = swept()
    keep(timeline, work)

    timeline.forgotten.add([event for event in work.events if "settings.py" in event.path or "AssertionError" in event.text])

    said = outcome_of(timeline)
    assert said is not None
    assert "settings.py" not in said.came and "AssertionError" not in said.came
    assert "sweeper.py" in said.came


@pytest.mark.parametrize(
    "work",
    [
        Work().asked(ASKED).said("Shall I?"),
        Work().asked(ASKED).ran("cat sweeper.py", "LEASE = 0").said("It is 0."),
        Work().asked(ASKED).ran("git push", "done").said("Pushed."),
        Work().asked(ASKED).edited(f"{HOME}/sweeper.py", "read"),
        Work().asked(ASKED),
        Work().asked(ASKED).asked("Or rather not").edited(f"{HOME}/sweeper.py"),
    ],
    ids=["talk", "a look", "a push", "a file read", "nothing", "another prompt's work"],
)
def test_what_shows_nothing_is_no_errand(timeline: Timeline, work: Work) -> None:
    keep(timeline, work)

    assert outcome_of(timeline) is None


def test_a_long_errand_is_reported_as_shortly(timeline: Timeline) -> None:
    work = Work().asked(ASKED * 100)
    for number in range(300):
        work.edited(f"{HOME}/{'deep/' * 20}tree{number}.py").ran(
            f"pytest tests/test_{number}.py -k {'x' * 300}", "1 passed", tests="ok"
        )
    keep(timeline, work.said("Done. " * 1_000))

    (found,) = timeline._database.all("SELECT seq FROM events WHERE type = 'user_message'")
    said = prompt_outcome(timeline._database.all, found[0])

    assert said is not None
    assert len(said.text) < 2_500
    assert "test_299" in said.came and "test_0.py" not in said.came


def test_it_is_found_by_what_it_means_with_what_came_of_it(timeline: Timeline, clock: UnixClock) -> None:
    keep(timeline, swept().asked("Thanks").said("You are welcome."))
    clock.now += timedelta(hours=4)
    while timeline.vectors.embed(hears("broom")):
        pass

    hits = timeline.search.find(EventQuery(text="broom"), hears("broom"))

    assert hits[0].event.text == ASKED
    assert hits[0].snippet.startswith(f"{ASKED} → created settings.py; edited sweeper.py; ran pytest tests")
    assert [hit for hit in hits if hit.event.text == "Thanks"] == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (EventQuery(text="broom", file="sweeper.py"), True),
        (EventQuery(text="broom", tool="Edit"), True),
        (EventQuery(text="broom", tool="Edit", file="settings.py", project="orchard"), True),
        (EventQuery(text="broom", file="other.py"), False),
        (EventQuery(text="broom", tool="WebFetch"), False),
        (EventQuery(text="broom", file="sweeper.py", project="mycelia"), False),
        (EventQuery(text="broom", file="sweeper.py", types=frozenset({EventType.ERROR})), False),
    ],
)
def test_it_is_found_with_the_files_and_tools_that_it_took(
    timeline: Timeline, clock: UnixClock, query: EventQuery, found: bool
) -> None:
    keep(timeline, swept().asked("Thanks"))
    clock.now += timedelta(hours=4)
    while timeline.vectors.embed(hears("broom")):
        pass

    hits = timeline.search.find(query, hears("broom"))

    assert (ASKED in [hit.event.text for hit in hits]) is found


def test_only_prompts_that_came_to_something_keep_a_vector(timeline: Timeline, clock: UnixClock) -> None:
    why = "Because a claim that nobody renews would block its row for ever."
    keep(timeline, swept().asked("Why at all?").said(why).asked("Thanks").said("You are welcome.").asked("Good night"))
    clock.now += timedelta(hours=4)

    while timeline.vectors.embed(hears("broom")):
        pass

    kept = timeline._database.all(
        "SELECT e.text FROM bundles AS b JOIN events AS e ON e.seq = b.event WHERE e.type = 'user_message'"
    )
    assert kept == [(ASKED,), ("Why at all?",)]


def test_the_last_prompt_waits_until_nothing_more_can_come_of_it(timeline: Timeline, clock: UnixClock) -> None:
    keep(timeline, Work().asked(ASKED).edited(f"{HOME}/sweeper.py"))

    soon = timeline.vectors.embed(hears("broom"))
    clock.now += timedelta(hours=3)

    assert soon == 0
    assert timeline.vectors.embed(hears("broom")) == 1


def test_prompts_of_an_earlier_schema_are_found_with_the_next_commit(tmp_path: Path, clock: UnixClock) -> None:
    path, earlier = tmp_path / "now.sqlite", tmp_path / "earlier.sqlite"
    with closing(Timeline(path, clock=clock)) as timeline:
        keep(timeline, swept().asked("Thanks"))
    with closing(sqlite3.connect(earlier)) as database, database:
        for number in range(1, 5):
            for statement in schema.MIGRATIONS[number]:
                database.execute(statement)
        database.execute("ATTACH ? AS now", (str(path),))
        for table in ("sessions", "files", "events"):
            database.execute(f"INSERT INTO main.{table} SELECT * FROM now.{table}")
        database.execute("DELETE FROM unbundled")
        database.execute("PRAGMA user_version = 4")
        before = database.execute("SELECT COUNT(*) FROM bundles").fetchone()
    with closing(Timeline(earlier, clock=clock)) as timeline:
        timeline.commit([], SESSION.provider)

        waiting = timeline._database.all(
            "SELECT e.type, e.text FROM bundles AS b JOIN events AS e ON e.seq = b.event ORDER BY e.seq"
        )

    assert before == (1,)
    assert ("user_message", ASKED) in waiting and len(waiting) == 3


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
STEPS = ("asked", "said", "edited", "ran", "failed")


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.sampled_from(STEPS), TEXT), max_size=20))
def test_whatever_happened_is_reported_within_bounds(steps: list[tuple[str, str]]) -> None:
    work = Work().asked(ASKED)
    for step, text in steps:
        match step:
            case "asked":
                work.asked(text)
            case "said":
                work.said(text)
            case "edited":
                work.edited(f"{HOME}/{text}")
            case "ran":
                work.ran(text, text)
            case _:
                work.ran(text, text, "failed")
    with TemporaryDirectory() as folder, closing(Timeline(Path(folder) / "timeline.sqlite")) as timeline:
        keep(timeline, work)
        for (number,) in timeline._database.all("SELECT seq FROM events"):
            found = prompt_outcome(timeline._database.all, number)
            assert found is None or (found.came and len(found.text) < 2_500 and "\n" not in found.came)


def test_an_approved_plan_leads_to_what_was_done_after_it_and_ends_the_errand_before(timeline: Timeline) -> None:
    work = swept()
    work.asked("Implement the plan for the ladder").edited(f"{HOME}/ladder.py").ran("pytest tests", "5 passed", tests="ok")
    plan = work.events[next(at for at, each in enumerate(work.events) if each.text.startswith("Implement"))]
    work.events[work.events.index(plan)] = replace(plan, type=EventType.DECISION, tool=PLANNING)
    keep(timeline, work)

    (row,) = timeline._database.all("SELECT seq FROM events WHERE tool = ?", (PLANNING,))
    after, before = prompt_outcome(timeline._database.all, row[0]), outcome_of(timeline)

    assert after is not None
    assert before is not None
    assert "ladder.py" in after.came
    assert "ladder.py" not in before.came
