"""Writes invented Gemini CLI sessions, in both shapes that its versions use."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kite_memory.model.event import Cursor, Event, ReadResult
from kite_memory.sources.gemini_cli.source import Gemini

SESSION = "5e551011-0000-4000-8000-000000000002"
BEGIN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
CWD = "/home/ada/orchard"
HASH = hashlib.sha256(CWD.encode()).hexdigest()


def uuid(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


def context() -> str:
    folders = f"- **Workspace Directories:**\n  - {CWD}\n- **Directory Structure:**\n"
    return f"<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\n{folders}</session_context>"


class GeminiSession:
    """Each message stands a second after the one before it. Every method that adds one returns it."""

    def __init__(self, session: str = SESSION, *, first: int = 1, **facts: Any) -> None:
        self.messages: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []
        self._number = first
        start = self._now()
        self.facts = {"sessionId": session, "projectHash": HASH, "startTime": start, "lastUpdated": start, **facts}
        self.rows.append({**self.facts, "kind": facts.get("kind", "main")})

    def _now(self) -> str:
        at = BEGIN + timedelta(seconds=self._number)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def message(self, kind: str, content: Any, **fields: Any) -> dict[str, Any]:
        result = {"id": uuid(self._number), "timestamp": self._now(), "type": kind, "content": content, **fields}
        self._number += 1
        self.messages.append(result)
        self.write(result)
        return result

    def write(self, message: dict[str, Any]) -> None:
        """As a line, once more if it stands there already."""
        self.rows.append(json.loads(json.dumps(message)))
        self.set(lastUpdated=self._now())

    def set(self, **changes: Any) -> None:
        self.rows.append({"$set": json.loads(json.dumps(changes))})

    def user(self, text: str, **fields: Any) -> dict[str, Any]:
        return self.message("user", [{"text": text}], **fields)

    def gemini(self, text: str = "", *calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
        thoughts = [{"subject": "Hm", "description": "A thought.", "timestamp": self._now()}]
        result = {"thoughts": thoughts, "model": "gemini-3-pro", **fields}
        return self.message("gemini", text, **result, **({"toolCalls": list(calls)} if calls else {}))

    def call(
        self, call: str, tool: str, output: Any = None, *, status: str = "success", display: Any = "", error: str = "", **args: Any
    ) -> dict[str, Any]:
        response = {"error": error} if error else {"output": output}
        answered = [{"functionResponse": {"id": call, "name": tool, "response": response}}]
        fields = {"id": call, "name": tool, "args": args, "status": status, "timestamp": self._now(), "resultDisplay": display}
        return fields if output is None and not error else {**fields, "result": answered}

    def checkpoint(self) -> None:
        """All messages at once, as a resumed client writes them: later, and with their calls among their parts."""
        self._number += 600
        rows: list[dict[str, Any]] = []
        for message in self.messages:
            parts = message["content"] if isinstance(message["content"], list) else [{"text": message["content"]}]
            calls = message.get("toolCalls", ())
            parts = [*parts, *({"functionCall": {key: call[key] for key in ("id", "name", "args")}} for call in calls)]
            rows.append({"id": message["id"], "timestamp": self._now(), "type": message["type"], "content": parts})
            results = [part for call in calls for part in call.get("result", ())]
            if results:
                rows.append({"id": f"{message['id']}_response", "timestamp": self._now(), "type": "user", "content": results})
        self.set(messages=rows, lastUpdated=self._now())

    @property
    def lines(self) -> bytes:
        return b"".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for row in self.rows)

    @property
    def document(self) -> bytes:
        return json.dumps({**self.facts, "messages": self.messages}, ensure_ascii=False, indent=2).encode()


class Home:
    """An agent's folder with one project in it, and a source that reads it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / ".gemini"
        self.project = self.root / "tmp" / "orchard"
        self.own_state = folder / "state"
        self.source = Gemini(self.root, own_state=self.own_state)

    def write(self, content: bytes, name: str) -> Path:
        path = self.project / "chats" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def write_lines(self, session: GeminiSession) -> Path:
        return self.write(session.lines, "session-2026-03-02T09-00-5e551011.jsonl")

    def write_document(self, session: GeminiSession) -> Path:
        return self.write(session.document, "session-2026-03-02T09-00-5e551011.json")

    def read(self, path: Path, cursor: Cursor | None = None, *, budget: int = 4 * 1024 * 1024) -> ReadResult:
        return self.source.read(path, cursor, budget=budget)

    def read_on(self, path: Path, cursor: Cursor | None = None, *, budget: int = 4 * 1024 * 1024) -> list[ReadResult]:
        """Looks until one reaches the end."""
        looks = [self.read(path, cursor, budget=budget)]
        while looks[-1].more:
            looks.append(self.read(path, looks[-1].cursor, budget=budget))
        return looks

    def both(self, session: GeminiSession) -> tuple[list[Event], list[Event]]:
        """The events of the same session as lines and as a document."""
        lines, document = self.read_on(self.write_lines(session)), self.read(self.write_document(session))
        return [event for look in lines for event in look.events], list(document.events)


def a_day() -> GeminiSession:
    """A short session that has something of everything."""
    day = GeminiSession()
    day.messages = [{"id": "d0", "timestamp": day.facts["startTime"], "type": "user", "content": [{"text": context()}]}]
    day.set(messages=day.messages)
    day.user("Graft the pear onto the quince — schön langsam 🍐")
    settings = day.gemini("I run the tests first.")
    output = "<untrusted_context>\nOutput: E   AssertionError: dry\n1 failed, 2 passed in 0.10s\nExit Code: 1\n</untrusted_context>"
    settings["toolCalls"] = [day.call("call_1", "run_shell_command", output, command="pytest -q", description="Run the tests")]
    day.write(settings)
    day.message("user", settings["toolCalls"][0]["result"])
    edited = {"filePath": f"{CWD}/pear.py", "diffStat": {"model_added_lines": 2, "model_removed_lines": 1}}
    changed = f"Successfully modified file: {CWD}/pear.py (1 replacements)."
    day.gemini("", day.call("call_2", "replace", changed, file_path="pear.py", display=edited))
    day.message("info", "An update is available.")
    day.message("surprise", "?")
    day.set(summary="Pears on quinces")
    day.facts["summary"] = "Pears on quinces"
    day.gemini("Done: the pear is grafted.")
    return day
