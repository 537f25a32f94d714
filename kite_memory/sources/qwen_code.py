"""Qwen Code's sessions: ``<root>/projects/<folder>/chats/<session>.jsonl``.

``root`` is ``${QWEN_RUNTIME_DIR:-${QWEN_HOME:-~/.qwen}}``. The format is defined in the public repository QwenLM/qwen-code,
``packages/core/src/services/chatRecordingService.ts`` (``ChatRecord``). Checked against files that ``@qwen-code/qwen-code``
0.15.10 wrote, and against the bundle of 0.24.4. Qwen Code is a fork of Gemini CLI, but of its transcripts only a message's
parts are alike.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from kite_memory.model.event import Status
from kite_memory.sources.common.event_builder import Toolbox
from kite_memory.sources.common.line_source import Line, LineSource
from kite_memory.sources.common.tool_text import as_id, blocks_of, moment
from kite_memory.sources.common.words import without_blocks

PROVIDER = "qwen-code"

_PERSONS = (None, "mid_turn_user_message")
"""Subtypes of records in the user's role that a person wrote; all others are the client's, such as fired timers."""

_EXPANDED_WITHIN = timedelta(seconds=5)
_REFERENCED = "--- Content from referenced files ---"
_RAN = re.compile(r"Command: .*?\nDirectory: [^\n]*\nOutput: (?P<output>.*)\nError: (?P<error>.*?)\nExit Code: ", re.DOTALL)
_NOTHING = ("(none)", "(empty)")
_CODE = re.compile(r"^Exit Code: (-?\d{1,10})$", re.MULTILINE)
_REFUSED = ("[Operation Cancelled]", "Tool execution denied", "Qwen Code requires permission")


class QwenCode(LineSource):
    """Source of Qwen Code's sessions. Those of its sub-agents are in other folders and are not read."""

    provider = PROVIDER
    tools = Toolbox(
        shells=frozenset({"run_shell_command"}),
        readers=frozenset({"read_file"}),
        lookers=frozenset({"read_file", "read_many_files", "list_directory", "glob", "grep_search", "search_file_content"}),
        writers={"write_file": "written", "edit": "edited", "replace": "edited", "notebook_edit": "edited"},
        paths=("file_path", "absolute_path", "notebook_path", "path"),
    )
    depth = 2

    def __init__(self, root: Path, *, own_state: Path) -> None:
        super().__init__(root / "projects", own_state=own_state)

    def owns(self, path: Path) -> bool:
        return super().owns(path) and path.parent.name == "chats"

    def id_of(self, row: Mapping[str, Any]) -> str:
        """Return the record's id, which a copy of the session keeps."""
        return as_id(row.get("uuid"))

    def line(self, row: Mapping[str, Any], line: Line) -> None:
        line.in_folder(row.get("cwd"), row.get("gitBranch"))
        match row.get("type"):
            case "user":
                self._user(row, line)
            case "assistant":
                line.keep("")
                self._answer(row, line)
            case "tool_result":
                self._results(row, line)
            case "system":
                self._system(row, line)
            case kind:
                line.unknown(kind)

    def _user(self, row: Mapping[str, Any], line: Line) -> None:
        """Add what a person typed.

        ``displayText`` is that, if there is one. Otherwise it is the first part of the message: those after it are files that it
        refers to, and what hooks added. A message that follows a slash command at once is the template that the command stands for.
        """
        given = row.get("systemPayload")
        typed = given.get("displayText") if isinstance(given, dict) else None
        text = typed if isinstance(typed, str) else next(_texts(row), "")
        if row.get("isSidechain") is True or row.get("agentId"):
            line.assistant(text)
        elif (
            row.get("subtype") in _PERSONS
            and row.get("provenance") in (None, "real_user")
            and not row.get("externalInputKind")
            and not self._is_expanded(row, line)
        ):
            line.user(without_blocks(text.partition(_REFERENCED)[0], "hook_context", unclosed_too=True).strip())
        line.keep("")

    def _is_expanded(self, row: Mapping[str, Any], line: Line) -> bool:
        command, at = moment(line.note), self.time_of(row)
        return command is not None and at is not None and at - command < _EXPANDED_WITHIN

    def _answer(self, row: Mapping[str, Any], line: Line) -> None:
        for part in _parts(row):
            match part:
                case {"thought": True}:
                    continue
                case {"text": str(text)}:
                    line.assistant(text)
                case {"functionCall": dict(call)}:
                    line.called(call.get("id"), call.get("name"), call.get("args"))
                case _:
                    continue

    def _results(self, row: Mapping[str, Any], line: Line) -> None:
        result = row.get("toolCallResult")
        state = result.get("status") if isinstance(result, dict) else None
        for part in _parts(row):
            match part:
                case {"functionResponse": {"response": dict(response), **named}}:
                    error = response.get("error")
                    text = error if isinstance(error, str) else response.get("output")
                    status = _status(state, text, failed=error is not None)
                    line.returned(named.get("id"), _printed(text), status)
                case _:
                    continue

    def _system(self, row: Mapping[str, Any], line: Line) -> None:
        match row:
            case {"subtype": "custom_title", "systemPayload": {"customTitle": str(title)}}:
                line.titled(title)
            case {"subtype": "parent_session", "systemPayload": {"parentSessionId": str(parent)}}:
                line.works_for(parent)
            case {"subtype": "slash_command", "systemPayload": {"phase": "invocation", "rawCommand": str(command), **rest}}:
                line.keep(str(self.time_of(row) or ""))
                if rest.get("hiddenInvocation") is not True:
                    line.user(command)
            case {"subtype": "chat_compression", "systemPayload": {"compressedHistory": [{"parts": list(parts)}, *_]}}:
                line.summary("\n".join(part["text"] for part in blocks_of(parts) if isinstance(part.get("text"), str)))
            case {"subtype": str()}:
                pass
            case _:
                line.unknown(row.get("subtype"))


def _parts(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    message = row.get("message")
    return blocks_of(message.get("parts")) if isinstance(message, dict) else []


def _texts(row: Mapping[str, Any]) -> Iterator[str]:
    yield from (part["text"] for part in _parts(row) if isinstance(part.get("text"), str))


def _printed(text: object) -> str:
    """Return a result's text; of a command only what it printed."""
    output = text if isinstance(text, str) else ""
    ran = _RAN.match(output)
    if ran is None:
        return output
    return "\n".join(part for part in (ran["output"], ran["error"]) if part not in _NOTHING)


def _status(state: object, text: object, *, failed: bool) -> Status:
    """Return how a call ended; a command's own failure is only in its exit code."""
    output = text if isinstance(text, str) else ""
    if state == "cancelled" or output.startswith(_REFUSED):
        return "denied"
    if failed or state == "error":
        return "failed"
    code = _CODE.search(output, max(0, len(output) - 400))
    return "failed" if code and code[1] != "0" else "ok"
