"""Pi's sessions: ``<root>/sessions/--<folder>--/<time>_<session>.jsonl``.

``root`` is ``${PI_CODING_AGENT_DIR:-~/.pi/agent}``. The format is described in the public repository badlogic/pi-mono,
``packages/coding-agent/docs/session-format.md`` (before, that was ``docs/session.md``), and written by ``src/core/session-
manager.ts`` beside it. Checked against files that ``@mariozechner/pi-coding-agent`` 0.73.1 wrote.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kite_memory.model.event import Status
from kite_memory.sources.common.event_builder import Toolbox
from kite_memory.sources.common.line_source import Line, LineSource
from kite_memory.sources.common.tool_text import blocks_of, digest, short

PROVIDER = "pi"

_SKIPPED = frozenset({"model_change", "thinking_level_change", "custom", "custom_message", "label"})
"""Settings, bookmarks, and what extensions of the agent store or send to the model."""

_SKILL = re.compile(r'<skill name="[^"\n]*" location="[^"\n]*">\n.*\n</skill>', re.DOTALL)
_ATTACHED = re.compile(r'<file name="[^"\n]*">.*</file>\n?', re.DOTALL)
"""Each extends to the last closing tag, since a skill or a file may hold one itself. The user's words follow."""
_STOPPED = ("Command aborted", "Operation aborted")


class Pi(LineSource):
    """Source of Pi's sessions.

    A session is a tree: after a step back, the lines of the abandoned branch stay before those of the new one, and both are read.
    A fork repeats the lines of its origin, with their ids and times, in a file of its own.
    """

    provider = PROVIDER
    tools = Toolbox(
        shells=frozenset({"bash"}),
        readers=frozenset({"read"}),
        lookers=frozenset({"read", "grep", "find", "ls"}),
        writers={"write": "written", "edit": "edited"},
        paths=("path",),
    )
    depth = 1

    def __init__(self, root: Path, *, own_state: Path) -> None:
        super().__init__(root / "sessions", own_state=own_state)

    def session_of(self, path: Path) -> str:
        return path.name.removesuffix(self.suffix).rpartition("_")[2]

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        """Sort by the time in the name, since a fork may be in the folder of another project."""
        return sorted(paths, key=lambda path: (path.name, path))

    def id_of(self, row: Mapping[str, Any]) -> str:
        """Return an id made of the line's own, which has only eight digits, and its time."""
        match row:
            case {"id": str(name), "timestamp": str(at)}:
                return digest(f"{PROVIDER}\n{short(name)}\n{short(at)}".encode("utf-8", "replace"))
            case _:
                return ""

    def line(self, row: Mapping[str, Any], line: Line) -> None:
        match row:
            case {"type": "session"}:
                line.in_folder(row.get("cwd"))
                if isinstance(origin := row.get("parentSession"), str):
                    line.works_for(re.split(r"[/\\]", origin)[-1].removesuffix(self.suffix).rpartition("_")[2])
            case {"type": "message", "message": dict(message)}:
                self._message(message, line)
            case {"type": "compaction" | "branch_summary"}:
                line.summary(row.get("summary"))
            case {"type": "session_info"}:
                line.titled(row.get("name"))
            case {"type": str(kind)} if kind in _SKIPPED:
                pass
            case _:
                line.unknown(row.get("type"))

    def _message(self, message: Mapping[str, Any], line: Line) -> None:
        match message.get("role"):
            case "user":
                line.user(_typed(_text(message.get("content"))))
            case "assistant":
                self._answer(message, line)
            case "toolResult":
                text = _text(message.get("content"))
                line.returned(message.get("toolCallId"), text, _status(text, message.get("isError")))
            case "bashExecution":
                line.ran(message.get("command"))
            case "branchSummary" | "compactionSummary":
                line.summary(message.get("summary"))
            case "custom" | "hookMessage":
                pass
            case role:
                line.unknown(role)

    def _answer(self, message: Mapping[str, Any], line: Line) -> None:
        for block in blocks_of(message.get("content")):
            match block:
                case {"type": "text"}:
                    line.assistant(block.get("text"))
                case {"type": "toolCall"}:
                    line.called(block.get("id"), block.get("name"), block.get("arguments"))
                case _:
                    continue
        if message.get("stopReason") == "aborted":
            line.interrupted()


def _text(content: object) -> str:
    return "\n".join(block["text"] for block in blocks_of(content) if isinstance(block.get("text"), str))


def _typed(text: str) -> str:
    """Return a prompt without the body of a skill that it began with, and without files given on the command line."""
    return _ATTACHED.sub("", _SKILL.sub("", text, count=1) if text.startswith("<skill ") else text)


def _status(text: str, failed: object) -> Status:
    if failed is not True:
        return "ok"
    return "interrupted" if text.rstrip().endswith(_STOPPED) else "failed"
