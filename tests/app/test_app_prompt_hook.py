import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.app.session_context import TOOL_EVENTS, HookInput, ToolCall, read_hook_input

PROMPT = {
    "hook_event_name": "UserPromptSubmit",
    "session_id": "5e551011-0000-4000-8000-000000000001",
    "transcript_path": "/home/ada/.claude/projects/-orchard/5e551011.jsonl",
    "cwd": "/home/ada/orchard",
    "permission_mode": "default",
    "prompt": "which port does the api use?",
}

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ("hook_event_name", "session_id", "cwd", "prompt", "source", "agent_id")
TOOL = {"hook_event_name": "PostToolUse", "session_id": "s", "cwd": "/home/ada/orchard", "tool_name": "Bash"}


def read(value: object) -> HookInput | None:
    return read_hook_input(json.dumps(value).encode())


def test_a_prompt_is_read_and_what_we_do_not_know_is_passed_over() -> None:
    assert read(PROMPT) == HookInput(
        event="UserPromptSubmit",
        name="UserPromptSubmit",
        session="5e551011-0000-4000-8000-000000000001",
        cwd="/home/ada/orchard",
        prompt="which port does the api use?",
    )


def test_a_session_says_why_it_starts() -> None:
    started = read({"hook_event_name": "SessionStart", "session_id": "s", "source": "compact"})

    assert started == HookInput(event="SessionStart", name="SessionStart", session="s", source="compact")


def test_a_sub_agent_is_distinguished_from_a_person() -> None:
    asked = read({**PROMPT, "agent_id": "a1", "agent_type": "Explore"})

    assert asked is not None
    assert asked.is_subagent


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\x00",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"7",
        b'"UserPromptSubmit"',
        b"{}",
        b'{"hook_event_name": 7}',
        b'{"hook_event_name": null}',
        b"[" * 100_000,
        b'{"hook_event_name": "x", "n": ' + b"9" * 10_000 + b"}",
    ],
    ids=lambda body: repr(body[:20]),
)
def test_what_is_no_hooks_input_is_nothing(body: bytes) -> None:
    assert read_hook_input(body) is None or body.startswith(b'{"hook_event_name": "x"')


@pytest.mark.parametrize("field", [field for field in FIELDS if field != "hook_event_name"])
@given(value=ANYTHING)
def test_an_odd_value_costs_its_field_and_no_more(field: str, value: Any) -> None:
    asked = read({**PROMPT, field: value})

    assert asked is not None
    assert asked.event == "UserPromptSubmit"
    if field != "prompt":
        assert asked.prompt == PROMPT["prompt"]
    for text in (asked.session, asked.cwd, asked.prompt, asked.source):
        assert isinstance(text, str)
    assert isinstance(asked.is_subagent, bool)


@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(), ANYTHING))
def test_any_json_is_read_without_a_word(content: dict[str, Any]) -> None:
    asked = read(content)

    assert (asked is not None) == isinstance(content.get("hook_event_name"), str)


@given(st.binary())
def test_any_bytes_are_read_without_a_word(body: bytes) -> None:
    assert read_hook_input(body) is None or body.lstrip().startswith(b"{")


def test_a_megabyte_of_prompt_is_kept_and_of_a_name_only_its_beginning() -> None:
    asked = read({**PROMPT, "prompt": "port " * 200_000, "session_id": "s" * 100_000, "cwd": "/" + "d" * 100_000})

    assert asked is not None
    assert len(asked.prompt) == 1_000_000
    assert (len(asked.session), len(asked.cwd)) == (4_096, 4_096)


@pytest.mark.parametrize("half", ["\\ud83d", "\\udf31", "before \\ud83d after"])
def test_half_an_emoji_costs_a_letter_and_not_the_prompt(half: str) -> None:
    body = f'{{"hook_event_name": "UserPromptSubmit", "prompt": "which port? {half}", "session_id": "{half}"}}'

    asked = read_hook_input(body.encode())

    assert asked is not None
    assert asked.prompt.startswith("which port? ")
    asked.prompt.encode("utf-8")
    asked.session.encode("utf-8")


def test_a_mark_that_a_shell_has_put_before_it_costs_nothing() -> None:
    asked = read_hook_input(b"\xef\xbb\xbf" + json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": "why pears?"}).encode())

    assert asked is not None
    assert asked.prompt == "why pears?"


def test_bytes_that_are_no_text_cost_a_letter_and_not_the_prompt() -> None:
    asked = read_hook_input(b'{"hook_event_name": "UserPromptSubmit", "prompt": "caf\xe9 on which port?"}')

    assert asked is not None
    assert "on which port?" in asked.prompt


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("BeforeAgent", "UserPromptSubmit"),
        ("AfterAgent", "Stop"),
        ("BeforeTool", "PreToolUse"),
        ("AfterTool", "PostToolUse"),
        ("sessionStart", "SessionStart"),
    ],
)
def test_an_agents_own_name_of_an_event_is_known_and_kept(name: str, event: str) -> None:
    asked = read({"hook_event_name": name})

    assert asked == HookInput(event=event, name=name)


CURSORS = {
    "hook_event_name": "beforeSubmitPrompt",
    "conversation_id": "c1",
    "generation_id": "g1",
    "cursor_version": "3.20.17",
    "workspace_roots": ["/home/ada/orchard", "/home/ada/pump"],
    "prompt": "which port does the api use?",
    "attachments": [],
}


def test_cursor_names_the_conversation_and_its_folders() -> None:
    assert read(CURSORS) == HookInput(
        event="UserPromptSubmit",
        name="beforeSubmitPrompt",
        session="c1",
        cwd="/home/ada/orchard",
        prompt="which port does the api use?",
        from_cursor=True,
    )


@pytest.mark.parametrize(("version", "takes"), [("3.20.0", True), ("4.0.1", True), ("3.19.9", False), ("2.0.77", False)])
def test_an_older_cursor_passes_on_nothing_with_a_prompt(version: object, takes: bool) -> None:
    asked = read(CURSORS | {"cursor_version": version})
    started = read(CURSORS | {"cursor_version": version, "hook_event_name": "sessionStart"})

    assert asked is not None and asked.takes_context is takes
    assert started is not None and started.takes_context


CLINES = {
    "clineVersion": "4.1.20",
    "hookName": "UserPromptSubmit",
    "timestamp": "1774000000000",
    "taskId": "1774000000000",
    "workspaceRoots": ["/home/ada/orchard"],
    "userId": "u1",
    "userPromptSubmit": {"prompt": "which port does the api use?", "attachments": []},
}


def test_clines_prompt_stands_in_the_field_of_its_event() -> None:
    assert read(CLINES) == HookInput(
        event="UserPromptSubmit",
        name="UserPromptSubmit",
        session="1774000000000",
        cwd="/home/ada/orchard",
        prompt="which port does the api use?",
    )


@pytest.mark.parametrize(
    ("version", "takes"), [("3.36.0", True), ("4.0.0", False), ("4.1.17", False), ("4.1.18", True), ("", True), (None, True)]
)
def test_some_versions_of_cline_drop_the_answer(version: object, takes: bool) -> None:
    asked = read(CLINES | {"clineVersion": version})

    assert asked is not None and asked.takes_context is takes


CLINES_TOOL = {
    "clineVersion": "",
    "hookName": "tool_result",
    "taskId": "conv_1774000000000_abc",
    "sessionContext": {"rootSessionId": "1774000000000_xyz"},
    "workspaceRoots": ["/home/ada/orchard"],
    "parent_agent_id": None,
    "tool_result": {
        "name": "run_commands",
        "input": {"commands": ["make lint", "make test"]},
        "output": [
            {"query": "make lint", "result": "fine", "success": True},
            {"query": "make test", "result": "[Command exited with code 2]\n2 failed", "success": False},
        ],
    },
    "postToolUse": {"toolName": "run_commands", "parameters": {"commands": '["make lint","make test"]'}, "success": True},
}
"""As the command line tool 3.0.65 reports a tool."""


def test_clines_tool_is_read_with_its_commands_and_its_failure() -> None:
    failed = ToolCall(tool="run_commands", command="make lint\nmake test", error="[Command exited with code 2]\n2 failed")

    assert read(CLINES_TOOL) == HookInput(
        event="PostToolUse", name="PostToolUse", session="1774000000000_xyz", cwd="/home/ada/orchard", calls=(failed,)
    )


def test_the_extension_of_cline_reports_a_tool_by_its_task() -> None:
    done = {"toolName": "execute_command", "parameters": {"command": "make"}, "result": "no rule", "success": False}

    asked = read({"hookName": "PostToolUse", "taskId": "1774", "workspaceRoots": ["/home/ada"], "postToolUse": done})

    assert asked is not None
    assert asked.session == "1774"
    assert asked.calls == (ToolCall(tool="execute_command", command="make", error="no rule"),)


@pytest.mark.parametrize("field", [*CLINES_TOOL, "commands", "output"])
@given(value=ANYTHING)
def test_an_odd_value_about_clines_tool_costs_no_more_than_its_call(field: str, value: Any) -> None:
    detailed = {"tool_result": {"input": {"commands": value}, "output": value}} if field not in CLINES_TOOL else {field: value}

    read(CLINES_TOOL | detailed)


@pytest.mark.parametrize("field", list(CLINES))
@pytest.mark.parametrize("value", [None, 7, [], [7], {}, {"prompt": 7}, ""])
def test_an_odd_value_from_cline_costs_its_field_and_no_more(field: str, value: Any) -> None:
    read(CLINES | {field: value})


@pytest.mark.parametrize("field", ["tool_name", "tool_input", "tool_response", "error", "tool_calls", "is_interrupt"])
@given(value=ANYTHING, event=st.sampled_from(sorted(TOOL_EVENTS)))
def test_odd_values_about_a_tool_cost_no_more_than_its_call(field: str, value: Any, event: str) -> None:
    asked = read({**TOOL, "hook_event_name": event, "tool_input": {"command": "make"}, field: value})

    assert asked is not None
    assert asked.session == "s"
    for call in asked.calls:
        assert all(isinstance(text, str) for text in (call.tool, call.command, call.error, *call.files))


@given(value=ANYTHING, field=st.sampled_from(["command", "file_path", "notebook_path", "absolute_path", "path"]))
def test_odd_values_given_to_a_tool_are_passed_over(field: str, value: Any) -> None:
    asked = read({**TOOL, "tool_input": {field: value}})

    assert asked is not None
    assert len(asked.calls) == 1


def test_a_tools_texts_are_bounded_and_end_with_a_whole_word() -> None:
    command, error = "make " + "target " * 10_000, "begin " + "so on " * 10_000 + " end"
    asked = read({**TOOL, "hook_event_name": "PostToolUseFailure", "tool_input": {"command": command}, "error": error})

    assert asked is not None
    (call,) = asked.calls
    assert len(call.command) <= 4_000 and call.command.endswith(" target")
    assert len(call.error) <= 4_001 and call.error.startswith("begin so on") and call.error.endswith(" end")


def test_one_endless_word_is_dropped_rather_than_cut() -> None:
    asked = read({**TOOL, "hook_event_name": "PostToolUseFailure", "tool_input": {"command": "x" * 9_000}, "error": "y" * 9_000})

    assert asked is not None
    assert asked.calls == (ToolCall(tool="Bash", command="", error="\n"),)


def test_of_many_calls_some_are_read() -> None:
    asked = read({**TOOL, "hook_event_name": "PostToolBatch", "tool_calls": [{"tool_name": f"t{n}"} for n in range(1_000)]})

    assert asked is not None
    assert [call.tool for call in asked.calls] == [f"t{n}" for n in range(16)]


@pytest.mark.parametrize("event", sorted(TOOL_EVENTS))
@pytest.mark.parametrize("cut", [600_000, 1_000_000, None])
def test_of_a_long_input_the_head_is_enough(event: str, cut: int | None) -> None:
    fields = {
        "session_id": "s",
        "cwd": "/home/ada",
        "hook_event_name": event,
        "tool_name": "Read",
        "tool_response": "x" * 1_000_000,
    }

    asked = read_hook_input(json.dumps(fields).encode()[:cut])

    assert asked == HookInput(event=event, name=event, session="s", cwd="/home/ada")


def test_a_long_inputs_content_cannot_speak_for_the_agent() -> None:
    planted = {"session_id": "another", "hook_event_name": "UserPromptSubmit", "content": "x" * 1_000_000}
    fields = {"session_id": "s", "agent_id": "a1", "hook_event_name": "PreToolUse", "tool_input": planted}

    asked = read_hook_input(json.dumps(fields).encode())

    assert asked == HookInput(event="PreToolUse", name="PreToolUse", session="s", is_subagent=True)


@given(st.binary(max_size=200))
def test_any_long_bytes_are_read_without_a_word(beginning: bytes) -> None:
    asked = read_hook_input(beginning + b'"hook_event_name": "' * 30_000)

    assert asked is None or asked.event == ""


GEMINI = "Output: make: no rule\nError: (none)\nExit Code: {}\nProcess Group PGID: 77"


@pytest.mark.parametrize(
    ("response", "failed"),
    [
        ("Exit code 2\nno rule", True),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\nno rule", True),
        ("Process exited with code 127\nOutput:\nno rule", True),
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nExit code: 1", False),
        ({"llmContent": GEMINI.format(2), "returnDisplay": "no rule"}, True),
        ({"llmContent": f"<untrusted_context>\n{GEMINI.format(1)}\n</untrusted_context>", "returnDisplay": ""}, True),
        ({"llmContent": GEMINI.format(0), "returnDisplay": "no rule"}, False),
        ({"llmContent": f"{GEMINI.format(1)}\nand so it was printed", "returnDisplay": ""}, False),
        ({"llmContent": "a file that says\nExit Code: 1", "returnDisplay": ""}, False),
        ({"llmContent": [{"text": "x"}], "returnDisplay": ""}, False),
    ],
)
def test_a_failed_command_is_known_by_what_its_agent_says_of_it(response: Any, failed: bool) -> None:
    fields = {"hook_event_name": "AfterTool", "tool_name": "run_shell_command", "tool_input": {"command": "make"}}

    asked = read_hook_input(json.dumps({**fields, "tool_response": response}).encode())

    assert asked is not None
    assert [bool(call.error) for call in asked.calls] == [failed]


def test_of_calls_that_ran_together_one_that_was_stopped_has_not_failed() -> None:
    calls = [
        {"tool_name": "Bash", "tool_input": {"command": "make"}, "error": "stopped", "is_interrupt": stopped}
        for stopped in (True, False)
    ]

    asked = read_hook_input(json.dumps({"hook_event_name": "PostToolBatch", "tool_calls": calls}).encode())

    assert asked is not None
    assert [call.error for call in asked.calls] == ["", "stopped"]
