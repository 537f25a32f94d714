"""Whatever stands in a rollout or a session, reading goes on, and in whatever steps it shows the same."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.counts import examples
from tests.sources import gemini_session, rollout

WORDS = st.sampled_from(
    [
        *("type", "payload", "message", "content", "text", "id", "call_id", "turn_id", "role", "user", "assistant", "timestamp"),
        *("session_meta", "turn_context", "response_item", "event_msg", "compacted", "item", "item_completed", "source"),
        *("function_call", "function_call_output", "custom_tool_call", "arguments", "output", "name", "exec_command", "action"),
        *("gemini", "toolCalls", "result", "functionResponse", "functionCall", "response", "$set", "messages", "$rewindTo"),
        *("args", "status", "success", "sessionId", "projectHash", "directories", "displayContent", "2026-03-02T09:00:00Z"),
    ]
)
LEAVES = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | WORDS | st.text(max_size=8)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5), max_leaves=12)
ROWS = st.lists(st.dictionaries(WORDS, VALUES, max_size=6), max_size=8)
ANYTHING = settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def shaped(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same within what the client writes around its lines, so that more than the first look is reached."""
    kinds = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
    return [{"timestamp": "2026-03-02T09:00:00Z", "type": kinds[n % 5], "payload": row} for n, row in enumerate(rows)]


@ANYTHING
@given(rows=ROWS, within=st.booleans())
def test_a_rollout_of_anything_is_read_to_its_end(tmp_path: Path, rows: list[dict[str, Any]], within: bool) -> None:
    home = rollout.Home(tmp_path)
    content = rollout.a_day().bytes + lines(shaped(rows) if within else rows)
    path = home.write(content)

    whole, steps = home.read_on(path), home.read_on(path, budget=1)

    assert whole[-1].cursor.position == steps[-1].cursor.position == len(content)
    assert [event for look in whole for event in look.events] == [event for look in steps for event in look.events]


@ANYTHING
@given(rows=ROWS, within=st.booleans())
def test_a_session_of_anything_is_read_to_its_end(tmp_path: Path, rows: list[dict[str, Any]], within: bool) -> None:
    home = gemini_session.Home(tmp_path)
    result = [{"timestamp": "2026-03-02T09:00:00Z", "type": "gemini", **row} for row in rows] if within else rows
    content = gemini_session.a_day().lines + lines(result)
    path = home.write(content, "session-1.jsonl")

    whole, steps = home.read_on(path), home.read_on(path, budget=1)

    assert whole[-1].cursor.position == steps[-1].cursor.position == len(content)
    assert [event for look in whole for event in look.events] == [event for look in steps for event in look.events]


@ANYTHING
@given(messages=st.lists(VALUES, max_size=6))
def test_a_document_of_anything_is_read(tmp_path: Path, messages: list[Any]) -> None:
    home = gemini_session.Home(tmp_path)
    day = gemini_session.a_day()
    day.messages += messages
    path = home.write_document(day)

    look = home.read(path)

    assert look.cursor.position == path.stat().st_size
    assert home.read(path, look.cursor).events == ()


@pytest.mark.parametrize("size", [1 << 20])
def test_hostile_outputs_take_linear_time(tmp_path: Path, size: int) -> None:
    """Each of these takes minutes where a pattern or a loop looks at all that is left of them again and again."""
    codex, gemini = rollout.Home(tmp_path / "c"), gemini_session.Home(tmp_path / "g")
    hostile = [
        "\nSignal: 1",
        "Output: ",
        "Output:\n",
        "*** Begin Patch\n",
        "<hook_context>",
        "## My request for Codex:\n",
        "[image]",
    ]
    for piece in hostile:
        text = f"Command: {piece * (size // len(piece))}"
        result = rollout.Rollout()
        result.begin_turn()
        result.prompt(f"# {text}")
        result.run("call_1", text, text)
        session = gemini_session.GeminiSession()
        session.user(text)
        session.gemini(text, session.call("call_1", "run_shell_command", text, command=text))

        assert codex.events(result)
        assert all(gemini.both(session))
