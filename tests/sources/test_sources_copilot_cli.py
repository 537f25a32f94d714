"""What Copilot CLI's lines are taken for."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kite_memory.model.event import Event, EventType
from tests.sources.copilot_session import SESSION, Home, Session, a_day
from tests.sources.transcript import kinds, of, reasons, said


def events(folder: Path, session: Session) -> tuple[Event, ...]:
    return Home(folder).look(session).events


def test_a_day_is_reported_in_order(tmp_path: Path) -> None:
    look = Home(tmp_path).look(a_day())

    assert kinds(look.events) == [
        "user_message",
        "tool_call",
        "command",
        "tool_result",
        "test_result",
        "error",
        "tool_call",
        "tool_result",
        "file_action",
        "assistant_message",
        "resume_point",
    ]
    assert reasons(look) == ["unknown type session.surprise"]


def test_a_session_knows_its_folder_branch_and_title(tmp_path: Path) -> None:
    result = Session(branch="grafting")
    result.row("session.title_changed", title="  Pears on\nquinces ")

    session = Home(tmp_path).look(result).session

    assert session is not None
    assert (session.id, session.cwd, session.project) == (SESSION, "/home/ada/orchard", "orchard")
    assert (session.branch, session.title) == ("grafting", "Pears on quinces")


def test_before_1_0_a_session_was_a_file_by_itself(tmp_path: Path) -> None:
    home = Home(tmp_path)
    path = home.write(a_day(), f"{SESSION}.jsonl")

    look = home.source.read(path, None, budget=1 << 20)

    assert list(home.source.transcripts()) == [path]
    assert look.session is not None
    assert look.session.id == SESSION


def test_a_session_that_moved_into_a_folder_is_reported_with_the_same_ids(tmp_path: Path) -> None:
    home = Home(tmp_path)
    alone, within = home.write(a_day(), f"{SESSION}.jsonl"), home.write(a_day())

    first, second = (home.source.read(path, None, budget=1 << 20) for path in (alone, within))

    assert [event.id for event in first.events] == [event.id for event in second.events]


@pytest.mark.parametrize(
    "value",
    [
        {"source": "skill-pdf"},
        {"source": "agent-reviewer"},
        {"source": "autopilot"},
        {"isAutopilotContinuation": True},
        {"parentToolCallId": "call_9"},
    ],
)
def test_what_no_person_typed_is_not_a_persons(tmp_path: Path, value: dict[str, object]) -> None:
    session = Session()
    session.user("Carry on.", **value)

    assert said(events(tmp_path, session)) == []


def test_what_the_client_puts_around_a_prompt_is_not_the_persons(tmp_path: Path) -> None:
    session = Session()
    session.user("<system_reminder>\nbe brief\n</system_reminder>\n\nWater the pear", delivery="idle", source="user")

    assert said(events(tmp_path, session)) == ["Water the pear"]


def test_our_own_memory_does_not_come_back(tmp_path: Path) -> None:
    session = Session()
    session.user("<vault-context>\n[Relevant vault context: x]\nold\n</vault-context>\nWater the pear")
    session.row("hook.start", hookType="userPromptSubmitted", input={"prompt": "Water the pear"})

    assert said(events(tmp_path, session)) == ["Water the pear"]


def test_a_call_is_reported_once_whether_asked_for_or_begun_first(tmp_path: Path) -> None:
    session = Session()
    session.row("tool.execution_start", toolCallId="call_1", toolName="bash", arguments={"command": "ls"})
    session.assistant("", {"toolCallId": "call_1", "name": "bash", "arguments": {"command": "ls"}})
    session.result("call_1", "pear.py\n<shellId: 1 completed with exit code 0>")

    found = events(tmp_path, session)

    (call,), (result,) = of(EventType.TOOL_CALL, found), of(EventType.TOOL_RESULT, found)
    assert (result.parent, result.call, result.status, result.text) == (call.id, "call_1", "ok", "pear.py")
    assert [event.command for event in of(EventType.COMMAND, found)] == ["ls"]


def test_calls_hang_on_the_words_that_made_them(tmp_path: Path) -> None:
    session = Session()
    words = session.assistant("I'll look.", {"toolCallId": "call_1", "name": "view", "arguments": '{"path": "/home/ada/pear.py"}'})

    (call,) = of(EventType.TOOL_CALL, events(tmp_path, session))

    assert (call.parent, call.path) == (words, "/home/ada/pear.py")


@pytest.mark.parametrize(
    ("result", "status"),
    [
        ({"result": {"content": "fatal: no\n<shellId: 5 completed with exit code 128>"}}, "failed"),
        ({"shellExecution": {"exitCode": 2}}, "failed"),
        ({"toolTelemetry": {"metrics": {"exit_code": 1}}}, "failed"),
        ({"success": False, "result": None, "error": {"message": "Path does not exist", "code": "failure"}}, "failed"),
        ({"success": False, "result": None, "error": {"message": "no", "code": "rejected"}}, "denied"),
        ({"success": False, "result": None, "error": "The user rejected this tool call."}, "denied"),
        ({"toolTelemetry": {"metrics": {"exit_code": 0}}}, "ok"),
    ],
)
def test_how_a_call_ended(tmp_path: Path, result: dict[str, object], status: str) -> None:
    session = Session()
    session.call("bash", "call_1", command="git show")
    session.result("call_1", "shown", **result)

    (found,) = of(EventType.TOOL_RESULT, events(tmp_path, session))

    assert found.status == status


def test_tests_are_reported_for_a_command_and_of_its_output_read_later(tmp_path: Path) -> None:
    session = Session()
    session.call("bash", "call_1", command="pytest -q", mode="async")
    session.result("call_1", "<command started in background with shellId: 7>")
    session.call("read_bash", "call_2", shellId="7", delay=5)
    session.result("call_2", "====== 3 passed in 0.10s ======")

    (verdict,) = of(EventType.TEST_RESULT, events(tmp_path, session))

    assert (verdict.status, verdict.tool, verdict.text) == ("ok", "read_bash", "====== 3 passed in 0.10s ======")


@pytest.mark.parametrize("cut", [2, 3])
def test_the_output_of_a_command_that_ran_on_is_that_commands(tmp_path: Path, cut: int) -> None:
    session, home = Session(), Home(tmp_path)
    session.call("bash", "call_1", command="pytest -q", initial_wait=30)
    session.result("call_1", "...\n<command with shellId: 7 is still running after 30 seconds. Use read_bash to wait.>")
    session.call("read_bash", "call_2", shellId="7", delay=60)
    session.result("call_2", "3 passed in 60.10s\n<command with shellId: 7 completed with exit code 0>")
    lines = session.bytes.splitlines(keepends=True)
    first = home.source.read(home.write(b"".join(lines[:-cut])), None, budget=1 << 20)

    (verdict,) = of(EventType.TEST_RESULT, home.look(session, first.cursor).events)

    assert (verdict.status, verdict.command, verdict.text) == ("ok", "pytest -q", "3 passed in 60.10s")


def test_what_a_person_says_with_a_refusal_is_theirs(tmp_path: Path) -> None:
    session = Session()
    session.call("bash", "call_1", command="rm -r trees")
    refusal = {"kind": "denied-interactively-by-user", "feedback": "Only the dead ones."}
    session.row("permission.completed", requestId="r-1", toolCallId="call_1", result=refusal)
    session.failure("call_1", "The user rejected this tool call.", code="rejected")
    session.row("permission.completed", requestId="r-2", toolCallId="call_2", result={"kind": "approved"})
    by_rule = {"kind": "denied-by-rules", "feedback": "not a person's"}
    session.row("permission.completed", requestId="r-3", toolCallId="call_3", result=by_rule)

    result = events(tmp_path, session)

    assert said(result) == ["Only the dead ones."]
    assert [event.status for event in of(EventType.TOOL_RESULT, result)] == ["denied"]


def test_tests_that_still_run_have_not_passed(tmp_path: Path) -> None:
    session = Session()
    session.call("bash", "call_1", command="go test ./...")
    waiting = "<command with shellId: 7 is still running after 30 seconds. The command is still running. Use read_bash to wait.>"
    session.result("call_1", f"ok  \torchard/pear\t0.10s\n{waiting}")
    session.call("read_bash", "call_2", shellId="7", delay=5)
    session.result("call_2", "FAIL\torchard/plum\t9.10s\n<command with shellId: 7 exited with exit code 1>")

    result = events(tmp_path, session)

    assert [event.status for event in of(EventType.TOOL_RESULT, result)] == ["", "failed"]
    assert [event.status for event in of(EventType.TEST_RESULT, result)] == ["failed"]


def test_an_answer_to_a_question_is_a_decision(tmp_path: Path) -> None:
    session = Session()
    session.call("ask_user", "call_1", question="Quince or hawthorn?", choices=["quince", "hawthorn"])
    session.result("call_1", "User selected: quince")

    (decision,) = of(EventType.DECISION, events(tmp_path, session))

    assert (decision.role, decision.text) == ("user", "Quince or hawthorn?\nAnswer: quince")


def test_files_that_were_read_made_and_changed(tmp_path: Path) -> None:
    session = Session()
    session.call("view", "call_1", path="/home/ada/pear.py")
    session.result("call_1", "1. graft()")
    session.call("create", "call_2", path="/home/ada/quince.py", file_text="x")
    session.result("call_2", "Created file /home/ada/quince.py with 1 characters")
    patch = "*** Begin Patch\n*** Update File: /home/ada/pear.py\n@@\n-a\n+b\n*** End Patch"
    session.row("tool.execution_start", toolCallId="call_3", toolName="apply_patch", arguments=patch)
    session.result("call_3", "Done!")
    changed = {"filePaths": '["/home/ada/a.py", "/home/ada/b.py"]'}
    session.row("tool.execution_start", toolCallId="call_4", toolName="apply_patch", arguments=patch)
    session.result("call_4", "Done!", toolTelemetry={"restrictedProperties": changed, "metrics": {}})

    chosen = of(EventType.FILE_ACTION, events(tmp_path, session))

    assert [(event.path, event.text) for event in chosen] == [
        ("/home/ada/pear.py", "read"),
        ("/home/ada/quince.py", "created"),
        ("/home/ada/pear.py", "edited"),
        ("/home/ada/a.py", "edited"),
        ("/home/ada/b.py", "edited"),
    ]


def test_a_compaction_and_a_stop_are_points_to_resume_at(tmp_path: Path) -> None:
    session = Session()
    session.row("session.compaction_complete", success=True, summaryContent="Grafted; water next.")
    session.row("abort", reason="user_initiated")

    chosen = of(EventType.RESUME_POINT, events(tmp_path, session))

    assert [(event.text, event.status) for event in chosen] == [
        ("Grafted; water next.", ""),
        ("Interrupted: user initiated", "interrupted"),
    ]


def test_commands_that_a_person_ran_past_the_agent_are_theirs(tmp_path: Path) -> None:
    session = Session()
    session.row("tool.user_requested", toolCallId="call_1", toolName="bash", arguments={"command": "git pull"})
    session.result("call_1", "Already up to date.")

    (command,) = of(EventType.COMMAND, events(tmp_path, session))

    assert (command.role, command.command) == ("user", "git pull")


def test_sessions_of_our_own_extractor_are_not_read(tmp_path: Path) -> None:
    home = Home(tmp_path)
    ours, marked = Session(cwd=str(home.own_state / "extractor")), Session()
    ours.user("Extract")
    marked.user("<!-- kite-memory:extract --> Extract")

    assert [(look.session, look.events) for look in (home.look(ours), home.look(marked))] == [(None, ()), (None, ())]


def test_a_cursor_of_an_earlier_version_leads_to_the_same_events(tmp_path: Path) -> None:
    home, path = Home(tmp_path), Home(tmp_path).write(a_day())
    whole = home.source.read(path, None, budget=1 << 20)
    half = home.source.read(path, None, budget=900).cursor
    earlier = {
        "v": 1,
        "started": "2026-07-02T09:00:00+00:00",
        "at": "2026-07-02T09:00:02+00:00",
        "ordinal": 526,
        "cwd": "/home/ada/orchard",
        "branch": "main",
        "title": "",
        "flags": [False, False],
        "calls": [],
        "shells": {},
    }

    again = home.source.read(path, replace(half, carry=json.dumps(earlier)), budget=1 << 20)

    assert 0 < half.position < path.stat().st_size
    assert (again.events, again.session) == (whole.events, whole.session)
    assert reasons(again) == ["unknown cursor", *reasons(whole)]


def test_a_command_in_the_background_is_known_when_its_output_is_asked_for_later(tmp_path: Path) -> None:
    home, session = Home(tmp_path), Session()
    session.call("bash", "call_1", command="pytest -q", mode="async")
    session.result("call_1", "<command started in background with shellId: 7>")
    first = home.look(session)
    session.call("read_bash", "call_2", shellId="7")
    session.result("call_2", "1 failed in 0.1s\n<command with shellId: 7 exited with exit code 1>")

    second = home.look(session, first.cursor)

    assert [event.command for event in second.events if event.type is EventType.TEST_RESULT] == ["pytest -q"]


def test_lines_that_are_nothing_we_know_are_counted(tmp_path: Path) -> None:
    content = b'{"data":{}}\n{"type":"user.message","data":"x"}\n{"type":"user.message","data":{"content":7}}\n[]\n'
    content += b'{"type":"hook.new","data":{}}\n'

    assert reasons(Home(tmp_path).look(content)) == ["no type", "no data", "not an object"]


def test_a_provider_folder_that_is_a_file_is_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.root.mkdir()
    (home.root / "session-state").write_text("x", encoding="utf-8")

    assert list(home.source.transcripts()) == []
