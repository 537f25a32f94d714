"""What was left to do, from an agent's own tool calls."""

from dataclasses import replace
from pathlib import Path

import pytest

from kite_memory.extensions.contract.extractor_contract import SESSION, event
from kite_memory.model.event import Cursor, Event, EventType, ReadResult, RedactedResult
from kite_memory.timeline.store import Timeline
from kite_memory.timeline.summaries import LISTS, left, todos


def call(number: int, tool: str, text: str, *, name: str = "") -> Event:
    return replace(event(number, text, EventType.TOOL_CALL), tool=tool, call=name or f"call-{number}")


def result(number: int, tool: str, text: str, *, name: str) -> Event:
    return replace(event(number, text, EventType.TOOL_RESULT), tool=tool, call=name, status="ok")


def listed(*events: Event) -> list[tuple[str, str]]:
    found = todos(events)
    return [(item.text, item.status) for item in found.items] if found else []


def created(number: int, task: int, subject: str) -> tuple[Event, Event]:
    name = f"made-{task}"
    return (
        call(number, "TaskCreate", f"subject: {subject}\ndescription: In full", name=name),
        result(number + 1, "TaskCreate", f"Task #{task} created successfully: {subject}", name=name),
    )


@pytest.mark.parametrize("tool", sorted(LISTS))
def test_the_last_list_holds(tool: str) -> None:
    first = call(1, tool, "todos:\n[>] Prune\n[ ] Graft")
    second = call(2, tool, "explanation: Spring\nplan:\n[x] Prune\n[>] Graft\n[ ] Water")

    assert listed(first, second) == [("Prune", "completed"), ("Graft", "in_progress"), ("Water", "pending")]


def test_a_list_as_markdown_has_it_is_one() -> None:
    assert listed(call(1, "update_todo_list", "todos:\n- [x] Prune\n- [-] Graft\n[ ] Water")) == [
        ("Prune", "completed"),
        ("Graft", "in_progress"),
        ("Water", "pending"),
    ]


def test_a_list_that_was_emptied_is_none() -> None:
    assert listed(call(1, "TodoWrite", "todos:\n[ ] Prune"), call(2, "TodoWrite", "todos: []")) == []


def test_tasks_are_created_changed_and_deleted_one_by_one() -> None:
    events = (
        *created(1, 1, "Prune"),
        *created(3, 2, "Graft"),
        *created(5, 3, "Water"),
        call(7, "TaskUpdate", "taskId: 1\nstatus: completed"),
        call(8, "TaskUpdate", "taskId: 2\nstatus: in_progress\nsubject: Graft the plums"),
        call(9, "TaskUpdate", "taskId: 3\nstatus: deleted"),
        call(10, "TaskUpdate", 'taskId: 2\naddBlockedBy: ["1"]'),
        call(11, "TaskUpdate", "taskId: 77\nstatus: completed"),
    )

    assert listed(*events) == [("Prune", "completed"), ("Graft the plums", "in_progress")]


def test_a_listing_of_tasks_says_what_there_is() -> None:
    text = "#2 [pending] Graft [blocked by #1]\n#1 [completed] Prune"

    assert listed(call(1, "TaskList", ""), result(2, "TaskList", text, name="call-1")) == [
        ("Prune", "completed"),
        ("Graft", "pending"),
    ]


def test_a_task_that_could_not_be_created_is_none() -> None:
    made, came = created(1, 1, "Prune")

    assert listed(made, replace(came, status="failed")) == []


def test_what_is_in_hand_is_reported_first() -> None:
    found = todos([call(1, "TodoWrite", "todos:\n[x] Prune\n[ ] Water\n[>] Graft")])

    assert found is not None
    assert [item.text for item in found.open] == ["Graft", "Water"]


def test_other_tools_and_other_words_are_no_list() -> None:
    assert listed(call(1, "Bash", "[ ] Prune"), replace(event(2, "[ ] Prune"), tool="")) == []


@pytest.mark.parametrize("text", ["[ ] " * 50_000, "[ ]" + " " * 100_000, "#1 [" * 50_000, "taskId: " * 50_000, "[x] a\n" * 50_000])
def test_a_hostile_list_is_bounded(text: str) -> None:
    for tool in ("TodoWrite", "TaskUpdate"):
        assert len(listed(call(1, tool, text))) <= 100
    assert len(listed(call(1, "TaskList", ""), result(2, "TaskList", text, name="call-1"))) <= 100


def test_of_a_project_the_last_sessions_lists_are_reported(tmp_path: Path) -> None:
    timeline = Timeline(tmp_path / "timeline.sqlite")
    other = replace(SESSION, id="0ther000-0000-4000-8000-000000000002")
    elsewhere = replace(SESSION, id="e15e0000-0000-4000-8000-000000000003", project="meadow")
    for number, session in enumerate((SESSION, other, elsewhere)):
        events = tuple(
            replace(
                call(10 * number + 1, "TodoWrite", f"todos:\n[ ] Of {session.id[:4]}"), session=session.id, id=f"{number}-{place}"
            )
            for place in range(1)
        )
        cursor = Cursor(position=1, size=1, mtime_ns=1)
        timeline.commit(
            [RedactedResult(ReadResult(path=f"/{number}", session=session, events=events, problems=(), cursor=cursor))],
            "claude-code",
        )

    assert [each.session.id for each in left(timeline, project="orchard")] == [other.id, SESSION.id]
    (only,) = left(timeline, session=SESSION.id)
    assert only.listed.items[0].text == "Of 5e55"
    timeline.close()
