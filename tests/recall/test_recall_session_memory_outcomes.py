"""What came of the notes that were shown: kept, counted, and brought over from the first version."""

import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.model.hit import Hit, Judged, Question, Verdict
from kite_memory.recall.gate import JudgedCandidate, LoggedVerdict
from kite_memory.recall.session_memory import Occasion, SessionMemory, ShownNote
from kite_memory.recall.uptake import Count, Moment, Outcome, Tally, Uptake, Week, habit, mondays
from tests.recall.notes import note

NOW = datetime(2026, 2, 26, 14, 3, 11, tzinfo=UTC)
MONDAY = date(2026, 2, 23)
USED = Uptake(outcome="used", why="“queue.py” in a command")
IGNORED = Uptake(outcome="ignored", why="nothing of it appears")
UNKNOWN = Uptake(outcome="unknown", why="nothing in it is distinctive")

VERSION_1 = """
CREATE TABLE shown (session TEXT NOT NULL, note TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (session, note)) WITHOUT ROWID;
CREATE INDEX shown_by_time ON shown(at);
CREATE TABLE prompt (
    number INTEGER PRIMARY KEY, at REAL NOT NULL, session TEXT NOT NULL, project TEXT NOT NULL, head TEXT NOT NULL,
    reason TEXT NOT NULL, given TEXT NOT NULL
);
CREATE INDEX prompt_by_time ON prompt(at);
PRAGMA user_version = 1;
"""


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SessionMemory]:
    memory = SessionMemory(tmp_path / "memory.db")
    yield memory
    memory.close()


def show(memory: SessionMemory, *notes: str, session: str = "one", at: datetime = NOW, moment: Moment = "prompt") -> None:
    given = tuple(ShownNote(note=name, score=0.5) for name in notes)
    memory.record(Occasion(at=at, session=session, project="mycelia", head="ask", reason="why", given=given, moment=moment))


def settle(memory: SessionMemory, found: Uptake, *, at: datetime = NOW) -> None:
    """Everything that is open."""
    for showing in memory.shown_open(at + timedelta(days=1)):
        memory.settle(showing, found, at)


def test_what_was_shown_is_open_until_it_is_settled(memory: SessionMemory) -> None:
    show(memory, "queue", "auth", at=NOW - timedelta(minutes=5))
    show(memory, "queue", session="two", moment="late")

    (first, *_) = memory.shown_open(NOW)
    memory.settle(first, USED, NOW)

    assert [(each.session, each.note, each.moment) for each in memory.shown_open(NOW + timedelta(seconds=1))] == [
        ("one", "auth", "prompt"),
        ("two", "queue", "late"),
    ]
    assert [each.given for each in memory.report.occasions(2)] == [
        (ShownNote(note="queue", score=0.5),),
        (ShownNote(note="queue", score=0.5, standing="used", why=USED.why), ShownNote(note="auth", score=0.5)),
    ]


def test_what_is_settled_stays_as_it_is(memory: SessionMemory) -> None:
    show(memory, "queue")
    (showing,) = memory.shown_open(NOW + timedelta(seconds=1))

    memory.settle(showing, USED, NOW)
    memory.settle(showing, IGNORED, NOW)

    assert memory.tallies() == {"queue": Tally(shown=1, used=1)}


def test_a_compaction_leaves_what_is_open_open(memory: SessionMemory) -> None:
    memory.claim("one", ["queue"], NOW)
    show(memory, "queue")

    memory.forget_session("one")

    assert [each.note for each in memory.shown_open(NOW + timedelta(seconds=1))] == ["queue"]


def test_tallies_are_of_the_notes_ever_shown_and_of_all_sessions(memory: SessionMemory) -> None:
    show(memory, "queue", "auth")
    settle(memory, USED)
    show(memory, "queue", session="two")
    settle(memory, IGNORED)
    show(memory, "queue", session="three")
    settle(memory, UNKNOWN)
    show(memory)

    assert memory.tallies() == {"queue": Tally(shown=3, used=1, ignored=1), "auth": Tally(shown=1, used=1)}


def test_tallies_are_read_again_only_after_a_change(memory: SessionMemory) -> None:
    show(memory, "queue")
    before = memory.tallies()

    show(memory)
    memory.claim("one", ["auth"], NOW)
    assert memory.tallies() is before
    show(memory, "auth")

    assert set(memory.tallies()) == {"queue", "auth"}


def test_what_another_process_settles_is_counted(memory: SessionMemory, tmp_path: Path) -> None:
    show(memory, "queue")
    assert memory.tallies()["queue"].used == 0

    other = SessionMemory(tmp_path / "memory.db")
    settle(other, USED)
    other.close()

    assert memory.tallies()["queue"].used == 1


def test_weeks_are_reported_the_latest_first_by_moment_and_with_the_silent_prompts(memory: SessionMemory) -> None:
    show(memory, "queue", "auth", at=NOW - timedelta(weeks=1))
    settle(memory, IGNORED)
    show(memory, "queue")
    show(memory, "lint", moment="late")
    settle(memory, USED)
    show(memory, "css")
    show(memory)

    weeks = memory.report.weekly(3, NOW)

    assert weeks == (
        Week(monday=MONDAY, prompts=3, silent=1, moments={"prompt": Count(used=1, open=1), "late": Count(used=1)}),
        Week(monday=MONDAY - timedelta(weeks=1), prompts=1, silent=0, moments={"prompt": Count(ignored=2)}),
        Week(monday=MONDAY - timedelta(weeks=2)),
    )
    assert [week.name for week in weeks] == ["2026-W09", "2026-W08", "2026-W07"]
    assert (weeks[0].count.shown, weeks[0].count.known) == (3, 2)


@given(st.integers(0, 20 * 366 * 24), st.integers(1, 60))
def test_weeks_begin_on_mondays_one_after_the_other(hours: int, weeks: int) -> None:
    now = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=hours)

    days = mondays(now, weeks)

    assert len(days) == weeks
    assert all(day.weekday() == 0 for day in days)
    assert days[0] <= now.date() < days[0] + timedelta(weeks=1)
    assert len({Week(monday=day).name for day in days}) == weeks


def test_the_most_ignored_are_those_more_often_ignored_than_used(memory: SessionMemory) -> None:
    for name, found in (("a", IGNORED), ("a", IGNORED), ("b", IGNORED), ("c", IGNORED), ("c", USED), ("d", USED), ("e", UNKNOWN)):
        show(memory, name)
        settle(memory, found)
    show(memory, "old", at=NOW - timedelta(days=20))
    settle(memory, IGNORED)

    assert memory.report.most_ignored(NOW - timedelta(days=10), 3) == (
        ("a", Tally(shown=2, ignored=2)),
        ("b", Tally(shown=1, ignored=1)),
    )


def test_texts_go_after_thirty_days_figures_after_a_hundred_and_eighty_and_tallies_stay(memory: SessionMemory) -> None:
    show(memory, "queue", at=NOW - timedelta(days=31))
    show(memory, "queue", at=NOW - timedelta(days=29))
    settle(memory, USED)
    show(memory, "auth", at=NOW - timedelta(days=181))

    memory.prune(NOW)
    show(memory, "lint")

    assert [(each.at, [given.why for given in each.given]) for each in memory.report.occasions(9)] == [
        (NOW, [""]),
        (NOW - timedelta(days=29), [USED.why]),
    ]
    assert sum(week.count.used for week in memory.report.weekly(6, NOW)) == 2
    assert sum(week.count.shown for week in memory.report.weekly(30, NOW)) == 3
    assert memory.tallies() == {"queue": Tally(shown=2, used=2), "auth": Tally(shown=1), "lint": Tally(shown=1)}


def test_what_no_one_settled_in_thirty_days_is_not_waited_for_any_longer(memory: SessionMemory) -> None:
    show(memory, "queue", at=NOW - timedelta(days=31))

    memory.prune(NOW)

    assert memory.shown_open(NOW) == ()


def test_a_prompt_gets_no_number_that_another_had(memory: SessionMemory) -> None:
    show(memory, "queue", at=NOW - timedelta(days=31))
    memory.prune(NOW)

    show(memory, "auth")

    assert [[given.note for given in each.given] for each in memory.report.occasions(9)] == [["auth"]]


def test_verdicts_are_logged_with_the_features_and_without_a_word_of_the_prompt(memory: SessionMemory, tmp_path: Path) -> None:
    candidates = (Hit(note=note("queue", "Queue"), score=0.6, why=""), Hit(note=note("auth", "Auth"), score=0.4, why=""))
    question = Question(
        session="one",
        project="mycelia",
        prompt="my unmistakable prompt",
        exchange="an unmistakable exchange",
        candidates=candidates,
        head="my unmistakable",
        features=(0.25, -1.0),
    )

    memory.verdicts.log(question, Judged(verdicts=(Verdict(note="auth", probability=0.7),), anything=0.8), NOW)

    assert memory.verdicts.since(NOW) == (
        LoggedVerdict(
            at=NOW,
            session="one",
            project="mycelia",
            features=(0.25, -1.0),
            anything=0.8,
            notes=(
                JudgedCandidate(note="queue", score=0.6, probability=0.0),
                JudgedCandidate(note="auth", score=0.4, probability=0.7),
            ),
        ),
    )
    assert not any(b"unmistakable" in path.read_bytes() for path in tmp_path.iterdir())
    memory.prune(NOW + timedelta(days=181))
    assert memory.verdicts.since(NOW) == ()


def first_version(path: Path, *prompts: tuple[float, str, str]) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_1)
    connection.execute("INSERT INTO shown VALUES ('one', 'queue', ?)", (NOW.timestamp(),))
    for at, head, notes in prompts:
        connection.execute(
            "INSERT INTO prompt(at, session, project, head, reason, given) VALUES (?, 'one', 'mycelia', ?, 'why', ?)",
            (at, head, notes),
        )
    connection.commit()
    connection.close()


def test_a_file_of_the_first_version_is_brought_over_whole(tmp_path: Path) -> None:
    given = json.dumps([["queue", 0.5], ["auth", 0.25]])
    first_version(tmp_path / "memory.db", (NOW.timestamp(), "first", given), (NOW.timestamp() + 1, "second", "[]"))

    memory = SessionMemory(tmp_path / "memory.db")
    memory.close()
    memory = SessionMemory(tmp_path / "memory.db")

    assert memory.shown("one") == {"queue"}
    assert [(each.head, each.at) for each in memory.report.occasions(9)] == [("second", NOW + timedelta(seconds=1)), ("first", NOW)]
    assert memory.report.occasions(9)[1].given == (ShownNote(note="queue", score=0.5), ShownNote(note="auth", score=0.25))
    assert [each.note for each in memory.shown_open(NOW + timedelta(days=1))] == ["queue", "auth"]
    assert memory.tallies() == {"queue": Tally(shown=1), "auth": Tally(shown=1)}
    assert [(week.prompts, week.silent) for week in memory.report.weekly(1, NOW)] == [(2, 1)]
    memory.close()


@pytest.mark.parametrize("given", ["", "{}", "[[]]", "[[1]]", '[["queue", "much"]]', "[null]", "7", "[" * 20])
def test_what_cannot_be_read_of_the_first_version_costs_itself_only(tmp_path: Path, given: str) -> None:
    whole = (NOW.timestamp(), "whole", '[["queue", 0.5]]')
    first_version(tmp_path / "memory.db", (NOW.timestamp(), "odd", given), whole)

    memory = SessionMemory(tmp_path / "memory.db")

    assert [(each.head, len(each.given)) for each in memory.report.occasions(9)] == [("whole", 1), ("odd", 0)]
    memory.close()


def test_a_first_version_that_is_cut_short_in_bringing_over_is_brought_over_the_next_time(tmp_path: Path) -> None:
    first_version(tmp_path / "memory.db", (NOW.timestamp(), "first", '[["queue", 0.5]]'))
    connection = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DROP TABLE prompt")
    connection.close()

    memory = SessionMemory(tmp_path / "memory.db")

    assert [each.head for each in memory.report.occasions(9)] == ["first"]
    memory.close()


def test_nothing_known_is_no_habit() -> None:
    assert habit(Tally()) == habit(Tally(shown=9)) == habit(Tally(shown=6, used=3, ignored=3)) == 0


@given(st.integers(0, 1_000), st.integers(0, 1_000))
def test_a_habit_leans_to_what_was_oftener_and_never_quite_gets_there(used: int, ignored: int) -> None:
    leaning = habit(Tally(shown=used + ignored, used=used, ignored=ignored))

    assert -1 < leaning < 1
    assert (leaning > 0) == (used > ignored)
    assert habit(Tally(used=used + 1, ignored=ignored)) > leaning > habit(Tally(used=used, ignored=ignored + 1))


@pytest.mark.parametrize("outcome", ["used", "ignored", "unknown"])
def test_every_outcome_comes_back_as_it_was_reported(memory: SessionMemory, outcome: Outcome) -> None:
    show(memory, "queue")

    settle(memory, Uptake(outcome=outcome, why="x" * 1_000 + "\ud800"))

    ((given,),) = (each.given for each in memory.report.occasions(1))
    assert (given.standing, given.why) == (outcome, "x" * 300)
