"""The same failure earlier, and what it took until the same command succeeded."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kite_memory.extensions.contract.extractor_contract import SESSION, START
from kite_memory.model.event import Cursor, Event, EventType, ReadResult, RedactedResult, Session, Status, Where
from kite_memory.model.hit import Fix
from kite_memory.timeline import schema
from kite_memory.timeline.store import Timeline

LOCKED = "error: unable to open the gate: the depot at 10.0.0.7:9000 is closed"
SIGNATURE = "error: unable to open the gate: the depot at <addr> is closed"


class History:
    """A session reported call by call."""

    def __init__(self, session: Session = SESSION) -> None:
        self.session = session
        self.events: list[Event] = []

    def _add(
        self, type: EventType, text: str = "", *, command: str = "", path: str = "", status: Status = "", call: str = ""
    ) -> None:
        number = len(self.events) + 1
        self.events.append(
            Event(
                id=f"{number:08x}-{self.session.id}",
                session=self.session.id,
                provider=self.session.provider,
                ordinal=number * 100,
                at=START + timedelta(seconds=number),
                role="tool",
                type=type,
                text=text,
                where=Where(file="/t/a.jsonl", start=number, end=number),
                command=command,
                path=path,
                status=status,
                call=call,
            )
        )

    def ran(self, command: str, output: str = "done", status: Status = "ok", *, error_too: bool = True) -> "History":
        call = f"call-{len(self.events)}"
        self._add(EventType.TOOL_CALL, call=call)
        self._add(EventType.COMMAND, command, command=command, call=call)
        self._add(EventType.TOOL_RESULT, output, status=status, call=call)
        if status == "failed" and error_too:
            self._add(EventType.ERROR, output, command=command, status=status, call=call)
        return self

    def tested(self, command: str, output: str, summary: str) -> "History":
        self.ran(command, output)
        self._add(EventType.TEST_RESULT, summary, command=command, status="failed", call=self.events[-1].call)
        self.events[-1] = replace(self.events[-1], parent=self.events[-2].id)
        return self

    def edited(self, path: str) -> "History":
        self._add(EventType.FILE_ACTION, "edited", path=path, status="ok", call=f"call-{len(self.events)}")
        return self

    def told(self, text: str) -> "History":
        self._add(EventType.USER_MESSAGE, text)
        return self

    def later(self, time: timedelta) -> "History":
        self.events.append(replace(self.events[-1], id=f"later-{len(self.events)}", type=EventType.USER_MESSAGE, ordinal=99_000))
        return self

    def look(self, *, amends: bool = False) -> RedactedResult:
        cursor = Cursor(position=len(self.events), size=1, mtime_ns=1)
        path = f"/t/{self.session.id}.jsonl"
        return RedactedResult(
            ReadResult(path=path, session=self.session, events=tuple(self.events), problems=(), cursor=cursor, amends=amends)
        )


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    store = Timeline(tmp_path / "timeline.sqlite")
    yield store
    store.close()


def asked(timeline: Timeline, command: str = "make deploy", *, project: str = "orchard", session: str = "now") -> Fix | None:
    return timeline.fixes.fix(
        project=project, session=session, signatures=("error: nothing of the kind", SIGNATURE), command=command
    )


def test_what_the_user_wrote_last_before_the_success_is_part_of_a_fix(timeline: Timeline) -> None:
    result = History().ran("make deploy", LOCKED, "failed").ran("depot login ada").told("the porter has the key now, once more")
    timeline.commit([result.ran("make deploy").look()], SESSION.provider)

    assert getattr(asked(timeline), "said", "") == "the porter has the key now, once more"


def test_what_the_agent_did_after_the_users_words_is_the_fix(timeline: Timeline) -> None:
    result = History().ran("make deploy", LOCKED, "failed").told("the port is in gate.txt").ran("echo 9001 > gate.txt")
    timeline.commit([result.ran("make deploy").look()], SESSION.provider)

    fix = asked(timeline)

    assert fix is not None
    assert (fix.steps, fix.said) == (("echo 9001 > gate.txt",), "")


def test_a_fix_shows_what_was_run_and_changed_until_the_command_succeeded(timeline: Timeline) -> None:
    result = (
        History().ran("make deploy", LOCKED, "failed").ran("ls -la").ran("depot login ada").edited("/home/ada/orchard/gate.toml")
    )
    result.ran("cd /home/ada/orchard && make deploy --quick")
    timeline.commit([result.look()], SESSION.provider)

    fix = asked(timeline)

    success = result.events[-1]
    assert fix == Fix(
        signature=SIGNATURE,
        failed="make deploy",
        worked="cd /home/ada/orchard && make deploy --quick",
        at=success.at,
        evidence=f"claude-code:{SESSION.id}#{success.id[:8]}",
        steps=("depot login ada",),
        files=("/home/ada/orchard/gate.toml",),
    )


def test_the_same_failure_has_its_fix_wherever_the_depot_is(timeline: Timeline) -> None:
    timeline.commit(
        [History().ran("make deploy", LOCKED.replace("10.0.0.7", "10.9.9.9"), "failed").ran("make deploy").look()], "claude-code"
    )

    assert asked(timeline) is not None


@pytest.mark.parametrize(
    "value",
    [
        History().ran("make deploy", LOCKED, "failed").ran("make lint"),
        History().ran("make deploy", LOCKED, "failed").ran("make deploy", LOCKED, "failed"),
        History().ran("make ship", LOCKED, "failed").ran("make ship"),
        History().ran("make deploy", "error: something else", "failed").ran("make deploy"),
        History().ran("make deploy", LOCKED, "failed").tested("make deploy", "x", "--- FAIL: TestGate"),
        History(replace(SESSION, project="elsewhere")).ran("make deploy", LOCKED, "failed").ran("make deploy"),
    ],
    ids=[
        "nothing like it succeeded",
        "it failed again",
        "another command",
        "another failure",
        "its tests failed",
        "another project",
    ],
)
def test_there_is_no_fix(timeline: Timeline, value: History) -> None:
    timeline.commit([value.look()], "claude-code")

    assert asked(timeline) is None


@pytest.mark.parametrize(
    ("failed", "later", "said"),
    [
        ("make check", "make check 2>&1 | grep -E 'error' | wc -l", "1"),
        ("make check", "make check 2>&1 | head -20", f"{LOCKED}\n"),
        ("make deploy", "make deploy 2>&1 | tail -5", LOCKED),
        ("make check && make deploy", "make deploy", "done"),
        ("git commit -am pear && git push", "git commit -am plum", "done"),
        ("python deploy.py", "python prune.py", "done"),
        ("make check", "make check --version", "1.2"),
    ],
)
def test_what_may_have_failed_again_or_is_only_a_part_is_no_fix(timeline: Timeline, failed: str, later: str, said: str) -> None:
    timeline.commit([History().ran(failed, LOCKED, "failed").ran(later, said).look()], "claude-code")

    assert asked(timeline, failed) is None


def test_tests_that_failed_do_not_go_away_with_the_linter(timeline: Timeline) -> None:
    result = History().tested("make test && make lint", LOCKED, "--- FAIL: TestGate").ran("make fmt && make lint").ran("make test")
    timeline.commit([result.look()], "claude-code")

    fix = asked(timeline, "make test && make lint")

    assert fix is not None
    assert fix.worked == "make test"


def test_tests_that_passed_are_a_fix_whatever_their_output_was_made_into(timeline: Timeline) -> None:
    result = History().ran("make test", LOCKED, "failed").ran("make test | grep ok", "ok 4 tests")
    result._add(EventType.TEST_RESULT, "ok 4 tests", command="make test | grep ok", status="ok", call=result.events[-1].call)
    timeline.commit([result.look()], "claude-code")

    assert asked(timeline, "make test") is not None


def test_a_session_is_not_reported_for_itself(timeline: Timeline) -> None:
    timeline.commit([History().ran("make deploy", LOCKED, "failed").ran("make deploy").look()], "claude-code")

    assert asked(timeline, session=SESSION.id) is None


def test_the_latest_fix_is_reported(timeline: Timeline) -> None:
    for number, step in ((1, "depot login ada"), (2, "depot start")):
        session = replace(SESSION, id=f"session-{number}")
        timeline.commit([History(session).ran("make deploy", LOCKED, "failed").ran(step).ran("make deploy").look()], "claude-code")

    fix = asked(timeline)

    assert fix is not None
    assert fix.steps == ("depot start",)


def test_what_was_let_go_is_no_part_of_a_fix(timeline: Timeline) -> None:
    result = History().ran("make deploy", LOCKED, "failed").ran("depot login ada --key pear").ran("depot start").ran("make deploy")
    timeline.commit([result.look()], "claude-code")

    timeline.forgotten.add([event for event in result.events if "login" in event.command])

    fix = asked(timeline)
    assert fix is not None
    assert fix.steps == ("depot start",)


def test_a_success_much_later_is_no_fix(timeline: Timeline) -> None:
    result = History().ran("make deploy", LOCKED, "failed").ran("make deploy")
    result.events[-3:] = [replace(event, at=event.at + timedelta(days=1)) for event in result.events[-3:]]
    timeline.commit([result.look()], "claude-code")

    assert asked(timeline) is None


def test_a_result_without_a_command_of_its_own_finds_it_by_its_call(timeline: Timeline) -> None:
    timeline.commit([History().ran("make deploy", LOCKED, "failed", error_too=False).ran("make deploy").look()], "claude-code")

    assert asked(timeline) is not None


def test_a_failed_test_is_known_by_what_its_output_says(timeline: Timeline) -> None:
    timeline.commit([History().tested("make deploy", LOCKED, "--- FAIL: TestGate").ran("make deploy").look()], "claude-code")

    assert asked(timeline) is not None


def test_an_event_that_is_amended_loses_its_old_failure(timeline: Timeline) -> None:
    result = History().ran("make deploy", LOCKED, "failed", error_too=False).ran("make deploy")
    timeline.commit([result.look(amends=True)], "claude-code")
    result.events[2] = replace(result.events[2], text="done", status="ok")

    timeline.commit([result.look(amends=True)], "claude-code")

    assert asked(timeline) is None


def test_a_timeline_of_the_first_schema_learns_its_failures_little_by_little(tmp_path: Path) -> None:
    path = tmp_path / "timeline.sqlite"
    _as_first_written(path, History().ran("make deploy", LOCKED, "failed").ran("make deploy"))
    timeline = Timeline(path)
    before = asked(timeline)

    timeline.commit([History(replace(SESSION, id="another")).ran("make lint").look()], "claude-code")

    assert before is None
    assert asked(timeline) is not None
    assert timeline.damage() == []
    timeline.close()


def test_every_earlier_schema_becomes_this_one(tmp_path: Path) -> None:
    shapes = []
    for version in range(schema.VERSION + 1):
        path = tmp_path / f"{version}.sqlite"
        with sqlite3.connect(path) as database:
            for number in range(1, version + 1):
                for statement in schema.MIGRATIONS[number]:
                    database.execute(statement)
            database.execute(f"PRAGMA user_version = {version}")
        database.close()
        opened = schema.connect(path)
        shapes.append(
            (
                opened.execute("PRAGMA user_version").fetchone(),
                opened.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall(),
            )
        )
        opened.close()

    assert shapes[0][0] == (schema.VERSION,)
    assert all(shape == shapes[0] for shape in shapes)


def _as_first_written(path: Path, planted: History) -> None:
    """What version 1 of the schema left behind: the same rows, without anything that came later."""
    current = path.with_name("current.sqlite")
    timeline = Timeline(current)
    timeline.commit([planted.look()], "claude-code")
    timeline.close()
    with sqlite3.connect(path) as database:
        for statement in schema.MIGRATIONS[1]:
            database.execute(statement)
        database.execute("ATTACH ? AS current", (str(current),))
        for table in ("sessions", "files", "events"):
            database.execute(f"INSERT INTO main.{table} SELECT * FROM current.{table}")
        database.execute("PRAGMA user_version = 1")
    database.close()


def test_a_failure_on_the_last_day_of_all_has_its_fix_too(timeline: Timeline) -> None:
    result = History().ran("make deploy", LOCKED, "failed").ran("make deploy")
    result.events = [replace(event, at=datetime.max.replace(tzinfo=UTC)) for event in result.events]
    timeline.commit([result.look()], SESSION.provider)

    assert asked(timeline) is not None


def test_a_checker_that_failed_beside_tests_that_passed_does_not_go_away_with_the_tests(timeline: Timeline) -> None:
    result = History().tested("make test && make lint", LOCKED, "gate.go:3:2: unused (errcheck)\n1 issues:\nok  \torchard\t0.1s")
    timeline.commit([result.ran("make test").ran("make test && make lint").look()], "claude-code")

    fix = asked(timeline, "make test && make lint")

    assert fix is not None
    assert fix.worked == "make test && make lint"
