"""Whatever stands in another program's records, reading them yields events and problems, and no error."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kite_memory.model.event import Event
from kite_memory.sources.antigravity import Antigravity
from kite_memory.sources.common.event_builder import EventBuilder, OpenCalls
from kite_memory.sources.common.line_source import Line, Progress
from kite_memory.sources.cursor import bubbles as cursor_bubbles
from kite_memory.sources.cursor.ide import legacy_conversations
from kite_memory.sources.cursor.source import add_message
from kite_memory.sources.opencode import parts as opencode_parts

WORDS = st.sampled_from(
    [
        "",
        "text",
        "tool",
        "user",
        "assistant",
        "bash",
        "question",
        "completed",
        "error",
        "running",
        "USER_INPUT",
        "MODEL",
        "RUN_COMMAND",
        "PLANNER_RESPONSE",
        "USER_EXPLICIT",
        "tool-call",
        "tool-result",
        "Shell",
        "run_terminal_cmd",
        '{"output":1}',
        "{",
        "<user_query>",
    ]
)
LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20) | WORDS


def records(*keys: str) -> st.SearchStrategy[dict[str, Any]]:
    """Objects that have some of these keys, at any depth, with anything under them."""
    named = st.sampled_from(keys) | st.text(max_size=4)
    values: st.SearchStrategy[Any] = st.recursive(
        LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(named, inner, max_size=6), max_leaves=12
    )
    return st.dictionaries(named, values, max_size=8)


PARTS = records(
    "type",
    "text",
    "state",
    "status",
    "input",
    "output",
    "tool",
    "callID",
    "time",
    "start",
    "end",
    "metadata",
    "exit",
    "files",
    "answers",
    "questions",
    "question",
    "options",
    "label",
    "filePath",
    "error",
    "synthetic",
)
INFOS = records(
    "id",
    "role",
    "time",
    "created",
    "completed",
    "error",
    "name",
    "path",
    "cwd",
    "summary",
    "mode",
    "directory",
    "title",
    "parent_id",
)
BUBBLES = records(
    "type",
    "text",
    "bubbleId",
    "createdAt",
    "timingInfo",
    "clientStartTime",
    "toolFormerData",
    "name",
    "rawArgs",
    "params",
    "result",
    "status",
    "error",
    "userDecision",
    "toolCallId",
    "words",
)
STEPS = records(
    "type", "source", "status", "content", "tool_calls", "name", "args", "step_index", "created_at", "CommandLine", "Cwd"
)
BLOCKS = records(
    "type", "text", "toolName", "name", "args", "input", "toolCallId", "id", "result", "output", "value", "content", "isError"
)


def in_order(events: list[Event]) -> bool:
    ordinals = [event.ordinal for event in events]
    return ordinals == sorted(set(ordinals))


@given(INFOS, st.lists(st.tuples(INFOS, st.lists(PARTS, max_size=4)), max_size=3))
def test_of_opencode(session: dict[str, Any], messages: list[tuple[dict[str, Any], list[dict[str, Any]]]]) -> None:
    about = opencode_parts.conversation({"id": "ses_1", **session}, [info for info, _ in messages])
    if about is None:
        return
    listed = [
        opencode_parts.Message(
            name=str(place),
            info=info,
            parts=[opencode_parts.MessagePart(row=row, content=part, changed=1.0) for row, part in enumerate(parts)],
            place=place * 4,
        )
        for place, (info, parts) in enumerate(messages)
    ]

    builder = opencode_parts.build_events(about, listed, file="f", last="1", now=2.0)

    assert in_order(builder.events)


@given(BUBBLES, st.lists(BUBBLES, max_size=5), st.booleans(), st.booleans())
def test_of_cursors_editor(about: dict[str, Any], bubbles: list[dict[str, Any]], helper: bool, by_words: bool) -> None:
    found = cursor_bubbles.conversation("c", about, folder="/f", parent="", helper=helper)
    listed = [cursor_bubbles.Bubble(row=place, place=place, content=bubble) for place, bubble in enumerate(bubbles)]

    builder = cursor_bubbles.build_events(found, listed, file="f", names_by_words=by_words)

    assert in_order(builder.events)
    assert not (helper and any(event.role == "user" for event in builder.events))


@given(
    records("allComposers", "conversation", "composerId", "createdAt", "type", "text"),
    records("tabs", "bubbles", "tabId", "type", "text"),
)
def test_of_cursors_old_values(composers: dict[str, Any], chats: dict[str, Any]) -> None:
    assert all(found.name and found.bubbles for found in legacy_conversations(composers, chats))


@given(WORDS | LEAVES, st.lists(BLOCKS, max_size=5) | LEAVES, st.booleans())
def test_of_cursors_command_line(role: Any, content: Any, helper: bool) -> None:
    builder = EventBuilder(provider="cursor", session="s", file="f", tools=cursor_bubbles.TOOLS, calls=OpenCalls())

    add_message(builder, role, content, 0, helper=helper)

    assert in_order(builder.events)
    assert not (helper and any(event.role == "user" for event in builder.events))


@given(st.lists(STEPS, max_size=6), st.booleans())
def test_of_antigravity(steps: list[dict[str, Any]], helper: bool) -> None:
    source, progress = Antigravity(Path("/gemini")), Progress(parent="p" if helper else "")
    line = Line(provider="antigravity", file="f", session="s", tools=source.tools, progress=progress)

    for place, step in enumerate(steps):
        line.begin(str(place), source.time_of(step), place * 10, place * 10 + 9)
        source.line(step, line)
        line.end()

    assert in_order(line.events)
    assert Progress.from_carry(progress.to_carry()) == progress
    assert not (helper and any(event.role == "user" for event in line.events))
