"""What was being done last: from events alone, and nothing where there is nothing to go on with."""

from dataclasses import replace
from datetime import timedelta

import pytest

from kite_memory.app.session_context import last_work
from kite_memory.extensions.contract.extractor_contract import SESSION, START, event
from kite_memory.model.event import Event, EventType, Status

NOW = START + timedelta(days=1)
PROMPT = event(1, "Move the job queue to PostgreSQL")


def ran(number: int, command: str, status: Status) -> list[Event]:
    call = f"call-{number}"
    asked = replace(event(number, command, EventType.COMMAND, command=command), call=call)
    changed = replace(event(number + 1, "what it printed", EventType.TOOL_RESULT, status=status), call=call)
    return [asked, changed]


def changed(number: int, path: str) -> Event:
    return replace(event(number, "changed", EventType.FILE_ACTION, status="ok"), path=path)


def lines(events: list[Event], prompt: Event | None = PROMPT) -> tuple[str, ...]:
    return last_work(SESSION, events, prompt, NOW)


def failed(events: list[Event]) -> list[str]:
    return [line for line in lines(events) if "failed" in line]


def test_the_last_prompt_the_files_and_the_open_failure_are_reported() -> None:
    events = [PROMPT, changed(2, "/home/ada/orchard/orchard/queue.py"), *ran(3, "make check", "failed")]

    assert lines(events) == (
        '2026-03-01 on main, the last prompt: "Move the job queue to PostgreSQL"',
        "Files changed last: orchard/queue.py",
        "A command that failed and was not seen to succeed since: make check",
    )


def test_of_nothing_nothing_is_reported() -> None:
    assert lines([], None) == ()


def test_of_a_long_plan_the_title_and_what_it_is_for_are_named() -> None:
    plan = replace(
        PROMPT, text=f"# Move the queue\n\n## Context\n\nThe job queue loses claims.\n\n## 1. Copy it\n\n{'Slowly. ' * 60}"
    )

    (line, *_) = last_work(SESSION, [plan], plan, NOW)

    assert line.startswith('2026-03-01 on main, the last prompt: "Move the queue": The job queue loses claims. (1) Copy it')


@pytest.mark.parametrize(("age", "expected"), [(timedelta(days=13), True), (timedelta(days=15), False)])
def test_what_is_two_weeks_old_is_not_reported(age: timedelta, expected: bool) -> None:
    assert bool(last_work(SESSION, [PROMPT], PROMPT, START + age)) is expected


def test_files_are_reported_once_the_newest_first_and_only_a_few() -> None:
    events = [changed(number, f"/home/ada/orchard/f{number % 6}.py") for number in range(12)]

    assert lines(events, None) == ("Files changed last: f5.py, f4.py, f3.py, f2.py",)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/ada/orchard/a/b.py", "a/b.py"),
        ("/home/ada/orchard-2/b.py", "b.py"),
        ("/etc/hosts", "hosts"),
        (r"C:\work\b.py", "b.py"),
    ],
)
def test_a_file_is_named_from_where_the_session_ran(path: str, expected: str) -> None:
    assert lines([changed(1, path)], None) == (f"Files changed last: {expected}",)


@pytest.mark.parametrize("later", ["make check", "cd src && make check -k", "make check | tail -3"])
def test_a_failure_that_was_mended_since_is_not_reported(later: str) -> None:
    assert failed([*ran(1, "make check", "failed"), *ran(3, later, "ok")]) == []


@pytest.mark.parametrize("later", ["make lint", "git status", "cat Makefile"])
def test_another_commands_success_mends_nothing(later: str) -> None:
    assert len(failed([*ran(1, "make check", "failed"), *ran(3, later, "ok")])) == 1


@pytest.mark.parametrize("command", ["grep -rn todo src", "cd src && ls nowhere", "test -f x", "which node", "", "  "])
def test_a_command_that_only_looks_has_not_failed(command: str) -> None:
    assert failed(ran(1, command, "failed")) == []


@pytest.mark.parametrize("status", ["denied", "interrupted", "", "ok"])
def test_what_was_not_let_run_has_not_failed(status: Status) -> None:
    assert failed(ran(1, "make check", status)) == []


def test_only_the_last_failure_counts() -> None:
    events = [*ran(1, "make check", "failed"), *ran(3, "npm test", "failed"), *ran(5, "npm test", "ok")]

    assert failed(events) == []


def test_every_line_is_short_whatever_was_typed() -> None:
    prompt = event(1, "port " * 10_000)
    events = [changed(2, "/home/ada/orchard/" + "d" * 3_000), *ran(3, "make " + "x" * 4_000, "failed")]

    assert all(len(line) < 400 or line.startswith("Files") for line in lines(events, prompt))


def test_the_last_passing_tests_and_the_agents_question_are_reported_too() -> None:
    passed = replace(event(5, "4 passed", EventType.TEST_RESULT, command="pytest", status="ok"), call="call-3")
    asks = event(7, "All green. Shall I push it?", EventType.ASSISTANT_MESSAGE)

    result = lines([PROMPT, *ran(3, "pytest", "ok"), passed, changed(6, "/home/ada/orchard/a.py"), asks])

    assert result[2:] == (
        "Last stable: 2026-03-01 09:00: `pytest` passed (4 passed), since then a.py",
        'Open: the agent asks: "Shall I push it?"',
    )


def test_a_prompt_that_waits_is_reported_once() -> None:
    assert len([line for line in lines([PROMPT]) if "job queue" in line]) == 1
