"""Factory Droid's sessions: ``~/.factory/sessions/<folder>/<session>.jsonl``.

Droid's own source is not public. The format is read off public readers of it, above all jazzyalex/agent-sessions,
``AgentSessions/Services/DroidSessionParser.swift``; fields of sub-agents, summaries and refusals are less sure than the rest.
Not checked against a file that Droid wrote.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kite_memory.model.event import Status
from kite_memory.sources.common.event_builder import Toolbox
from kite_memory.sources.common.line_source import Line, LineSource
from kite_memory.sources.common.tool_text import blocks_of, digest, short

PROVIDER = "droid"

_SKIPPED = frozenset({"todo_state", "session_settings", "agent_turn_outcome"})
_DELEGATED = "# Task Tool Invocation"
"""How the prompt begins that an agent writes for its sub-agent."""

_REFUSED = ("The user rejected", "User rejected", "Tool execution cancelled", "The user cancelled")


class Droid(LineSource):
    """Source of Factory Droid's sessions. A sub-agent's session names the one that called it, and no person writes in it."""

    provider = PROVIDER
    tools = Toolbox(
        shells=frozenset({"Execute"}),
        readers=frozenset({"Read"}),
        lookers=frozenset({"Read", "LS", "Grep", "Glob"}),
        writers={"Create": "created", "Write": "written", "Edit": "edited", "MultiEdit": "edited", "ApplyPatch": "edited"},
        paths=("file_path", "path", "directory_path"),
    )
    depth = 1

    def __init__(self, root: Path, *, own_state: Path) -> None:
        super().__init__(root / "sessions", own_state=own_state)

    def id_of(self, row: Mapping[str, Any]) -> str:
        match row:
            case {"id": str(name), "type": "message"}:
                return digest(f"{PROVIDER}\n{short(name)}".encode("utf-8", "replace"))
            case _:
                return ""

    def line(self, row: Mapping[str, Any], line: Line) -> None:
        match row:
            case {"type": "session_start"}:
                line.in_folder(row.get("cwd"))
                line.titled(row.get("sessionTitle") or row.get("title"))
                if isinstance(caller := row.get("callingSessionId") or row.get("parent"), str):
                    line.works_for(caller)
                    line.keep("sub-agent")
            case {"type": "message", "message": {"role": "user", "content": content}}:
                self._user(blocks_of(content), line)
            case {"type": "message", "message": {"role": "assistant", "content": content}}:
                self._answer(blocks_of(content), line)
            case {"type": "compaction_state"}:
                line.summary(row.get("summaryText"))
            case {"type": str(kind)} if kind in _SKIPPED:
                pass
            case _:
                line.unknown(row.get("type"))

    def _user(self, blocks: list[Mapping[str, Any]], line: Line) -> None:
        for block in blocks:
            match block:
                case {"type": "text", "text": str(text)}:
                    if text.lstrip().startswith(_DELEGATED):
                        line.keep("sub-agent")
                    if line.note:
                        line.assistant(text)
                    else:
                        line.user(text)
                case {"type": "tool_result"}:
                    text = "\n".join(each["text"] for each in blocks_of(block.get("content")) if isinstance(each.get("text"), str))
                    line.returned(block.get("tool_use_id"), text, _status(text, block.get("is_error")))
                case _:
                    continue

    def _answer(self, blocks: list[Mapping[str, Any]], line: Line) -> None:
        for block in blocks:
            match block:
                case {"type": "text"}:
                    line.assistant(block.get("text"))
                case {"type": "tool_use"}:
                    line.called(block.get("id"), block.get("name"), block.get("input"))
                case _:
                    continue


def _status(text: str, failed: object) -> Status:
    if text.startswith(_REFUSED):
        return "denied"
    return "failed" if failed is True else "ok"
