"""Writes invented Copilot CLI sessions, line by line, in the shapes that its versions use."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kite_memory.model.event import Cursor, ReadResult
from kite_memory.sources.copilot_cli import CopilotCli

SESSION = "c0917070-0000-4000-8000-000000000001"
BEGIN = datetime(2026, 7, 2, 9, 0, tzinfo=UTC)


class Session:
    """Each line knows the one before it, and stands a second after it. Every method returns the line's id."""

    def __init__(self, **context: Any) -> None:
        self.rows: list[dict[str, Any]] = []
        given = {"cwd": "/home/ada/orchard", "gitRoot": "/home/ada/orchard", "branch": "main", **context}
        self.row("session.start", sessionId=SESSION, version=1, producer="copilot-agent", copilotVersion="1.0.71", context=given)

    def row(self, kind: str, /, **value: Any) -> str:
        name = f"{len(self.rows) + 1:08x}-0000-4000-8000-000000000000"
        at = (BEGIN + timedelta(seconds=len(self.rows))).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        before = self.rows[-1]["id"] if self.rows else None
        self.rows.append({"type": kind, "data": value, "id": name, "timestamp": at, "parentId": before})
        return name

    def user(self, content: str, **value: Any) -> str:
        wrapped = f"<current_datetime>2026-07-02T11:00:00+02:00</current_datetime>\n\n{content}"
        return self.row("user.message", content=content, transformedContent=wrapped, attachments=[], **value)

    def assistant(self, content: str, *requests: dict[str, Any], **value: Any) -> str:
        return self.row("assistant.message", content=content, toolRequests=list(requests), **value)

    def call(self, tool: str, name: str, /, **given: Any) -> str:
        """The answer that asks for a tool, and the client beginning to carry it out."""
        asked = self.assistant("", {"toolCallId": name, "name": tool, "arguments": given, "type": "function"})
        self.row("tool.execution_start", toolCallId=name, toolName=tool, arguments=given)
        return asked

    def result(self, name: str, content: str, **value: Any) -> str:
        return self.row(
            "tool.execution_complete",
            **{"toolCallId": name, "success": True, "result": {"content": content, "detailedContent": content}, **value},
        )

    def failure(self, name: str, message: str, code: str = "failure") -> str:
        return self.row("tool.execution_complete", toolCallId=name, success=False, error={"message": message, "code": code})

    @property
    def bytes(self) -> bytes:
        return b"".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for row in self.rows)


class Home:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "copilot"
        self.own_state = folder / "state"
        self.source = CopilotCli(self.root, own_state=self.own_state)

    def write(self, session: Session | bytes, name: str = f"{SESSION}/events.jsonl") -> Path:
        path = self.root / "session-state" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(session if isinstance(session, bytes) else session.bytes)
        return path

    def look(self, session: Session | bytes, cursor: Cursor | None = None) -> ReadResult:
        return self.source.read(self.write(session), cursor, budget=4 * 1024 * 1024)


def a_day() -> Session:
    """A short session that has something of everything."""
    day = Session()
    day.row("session.model_change", newModel="gpt-5")
    day.row("hook.start", hookType="userPromptSubmitted", input={"prompt": "Graft the pear"})
    day.user("Graft the pear onto the quince — schön langsam 🍐")
    day.row("assistant.turn_start", turnId="0")
    day.call("bash", "call_1", command="pytest -q", description="Run the tests")
    day.result("call_1", "E   AssertionError: dry\n1 failed, 2 passed in 0.10s\n<shellId: 1 completed with exit code 1>")
    day.call("edit", "call_2", path="/home/ada/orchard/pear.py", old_str="a", new_str="b")
    day.result("call_2", "File /home/ada/orchard/pear.py updated with changes.")
    day.assistant("Done: the pear is grafted.")
    day.row("session.surprise", colour="green")
    day.row("abort", reason="user_initiated")
    return day
