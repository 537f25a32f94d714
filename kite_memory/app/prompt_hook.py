"""Parsing of an agent's hook input. Lenient: a new field or an odd value must not cost the user a prompt."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from kite_memory.redaction import redact_id
from kite_memory.redaction.cutting import beginning, ends
from kite_memory.text.shell import invocations

_LONGEST_NAME = 4_096
_LONGEST_PART = 4_000
_LONGEST_STATUS = 1 << 16
_MOST_CALLS = 16
_MOST_WORDS = 200
_WHOLE = 1 << 19
"""Limit in bytes for parsing the whole input of a tool event. Of longer ones, with long outputs, only the head is read."""
_HEAD = 8_192
_OPENING_TOOLS = ("__show_notes", "__get_note", "__read_memory")

_SAME = {"BeforeAgent": "UserPromptSubmit", "AfterAgent": "Stop", "BeforeTool": "PreToolUse", "AfterTool": "PostToolUse"}
"""Gemini CLI's names of events and their names in Claude Code, which the other agents use."""

TOOL_EVENTS = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch"})

_HEAD_FIELD = re.compile(rb'"(session_id|cwd|hook_event_name|tool_name|agent_id)"\s{0,4}:\s{0,4}("(?:[^"\\]|\\.){0,4096}")')
_FAILED_COMMAND = re.compile(r"\s{0,8}(?:Exit code:?|Exit Code:|Process exited with code) -?[1-9]")
_DRESS = ("Command: ", "Output: ", "Stdout: ", "<untrusted_context>")
_FAILED_IN_THE_END = re.compile(
    r"\nExit Code: -?[1-9]\d{0,9}\s{0,4}(?:\n(?:Error|Signal|Background PIDs|Process Group PGID): [^\n]{0,200}){0,4}"
    r"\s{0,8}(?:</untrusted_context>\s{0,8})?\Z"
)
"""End of a failed command's output in Gemini CLI, which reports no other error."""
_END = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call.

    ``command`` and ``error`` are bounded, and end with a whole word. ``error`` is empty if the call has not failed, or not yet.
    ``notes`` are the notes that the agent asked to be shown.
    """

    tool: str
    command: str = ""
    files: tuple[str, ...] = ()
    error: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HookInput:
    """Input of one hook call.

    ``event`` is Claude Code's name of the event, ``name`` the agent's own. ``source`` is why a session starts: startup, resume,
    clear, compact, fork.
    """

    event: str
    name: str = ""
    session: str = ""
    cwd: str = ""
    prompt: str = ""
    source: str = ""
    calls: tuple[ToolCall, ...] = ()
    is_subagent: bool = False


def read_hook_input(body: bytes) -> HookInput | None:
    """Parse a hook's input; ``None`` if it is invalid."""
    if len(body) > _WHOLE and (head := _head_of_tool_event(body)) is not None:
        return head
    match _parsed(body):
        case {"hook_event_name": str(name), **rest}:
            event = _SAME.get(name, name)
            return HookInput(
                event=_text(event),
                name=_text(name),
                session=redact_id(_text(rest.get("session_id"))),
                cwd=_text(rest.get("cwd")),
                prompt=_text(rest.get("prompt"), limit=len(body)),
                source=_text(rest.get("source")),
                calls=tuple(_calls(event, rest)) if event in TOOL_EVENTS else (),
                is_subagent=bool(rest.get("agent_id")),
            )
        case _:
            return None


def session_of(body: bytes) -> str:
    """Return the session in the JSON that Claude Code gives a status line; empty for anything else."""
    if len(body) > _LONGEST_STATUS:
        return ""
    match _parsed(body):
        case {"session_id": str(session)}:
            return redact_id(_text(session))
        case _:
            return ""


def _head_of_tool_event(body: bytes) -> HookInput | None:
    """Parse the head of a long tool event, which may have been cut and be no valid JSON.

    Agents write the session and the event before the tool's input, so the first value of each field is theirs.
    """
    fields: dict[str, str] = {}
    for field in _HEAD_FIELD.finditer(body, 0, _HEAD):
        value = _parsed(field[2])
        if isinstance(value, str):
            fields.setdefault(field[1].decode("ascii"), value)
    name = fields.get("hook_event_name", "")
    event = _SAME.get(name, name)
    if event not in TOOL_EVENTS:
        return None
    return HookInput(
        event=event,
        name=name,
        session=redact_id(_text(fields.get("session_id"))),
        cwd=_text(fields.get("cwd")),
        is_subagent=bool(fields.get("agent_id")),
    )


def _calls(event: str, event_input: Mapping[Any, Any]) -> Iterator[ToolCall]:
    calls = event_input.get("tool_calls") if event == "PostToolBatch" else [event_input]
    if not isinstance(calls, list):
        return
    for call in calls[:_MOST_CALLS]:
        match call:
            case {"tool_name": str(tool), **rest}:
                given = rest.get("tool_input")
                command, files = _given(given) if isinstance(given, dict) else ("", ())
                error = "" if rest.get("is_interrupt") is True or event == "PreToolUse" else _error(rest)
                opened = _opened(tool, command, given) if isinstance(given, dict) and not error else ()
                yield ToolCall(tool=_text(tool), command=command, files=files, error=error, notes=opened)
            case _:
                pass


def _opened(tool: str, command: str, given: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the notes opened by a command, or by a tool of the MCP server."""
    if tool.startswith("mcp__") and tool.endswith(_OPENING_TOOLS):
        named = given.get("notes", [given.get("note")])
        return tuple(_text(each) for each in named[:_MOST_CALLS] if isinstance(each, str)) if isinstance(named, list) else ()
    if "kmem show" not in command:
        return ()
    shown = (each.words[1:] for each in invocations(command) if each.program == "kmem" and each.words[:1] == ("show",))
    return tuple(_text(word) for words in shown for word in words[:_MOST_CALLS])


def _given(given: Mapping[Any, Any]) -> tuple[str, tuple[str, ...]]:
    match given.get("command"):
        case str(command):
            pass
        case [str(), "-c" | "-lc", str(command)]:
            pass
        case [*words] if words and all(isinstance(word, str) for word in words[:_MOST_WORDS]):
            command = shlex.join(beginning(word, _LONGEST_PART) for word in words[:_MOST_WORDS])
        case _:
            command = ""
    named = (given.get(name) for name in ("file_path", "notebook_path", "absolute_path", "path"))
    files = dict.fromkeys(_text(beginning(name, _LONGEST_NAME)) for name in named if isinstance(name, str) and name)
    return _text(beginning(command, _LONGEST_PART)), tuple(files)


def _error(event_input: Mapping[Any, Any]) -> str:
    """Return the output of a failed tool; agents put it in different fields."""
    match event_input:
        case {"error": str(error)} if error:
            return _ends(error)
        case {"tool_response": str(text)} if _FAILED_COMMAND.match(text):
            return _ends(text)
        case {"tool_response": {"error": str(error) | {"message": str(error)}}} if error:
            return _ends(error)
        case {"tool_response": {"llmContent": str(text)}} if text.startswith(_DRESS) and _FAILED_IN_THE_END.search(text[-_END:]):
            return _ends(text)
        case _:
            return ""


def _ends(text: str) -> str:
    """Return the beginning and the end, since the failure is in one of them."""
    if len(text) <= _LONGEST_PART:
        return _text(text)
    half = _LONGEST_PART // 2
    return _text("\n".join(ends(text, half, half)))


def _parsed(body: bytes) -> Any:
    """Parse JSON, also with half a surrogate pair, which agents write for a cut emoji and strict parsers refuse."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(body.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def _text(value: object, *, limit: int = _LONGEST_NAME) -> str:
    return value[:limit].encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else ""
