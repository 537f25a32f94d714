"""Writes invented Claude Code transcripts, line by line, in the shapes that its versions use."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kite_memory.model.event import Cursor, Event, EventType, ReadResult
from kite_memory.sources.claude_code.source import ClaudeCode

SESSION = "5e551011-0000-4000-8000-000000000001"
BEGIN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def uuid(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


class Transcript:
    """Each line knows the one before it, and stands a second after it. Every method returns the line's uuid."""

    def __init__(self, session: str = SESSION, *, first: int = 1, **fields: Any) -> None:
        self.rows: list[dict[str, Any]] = []
        self._number = first
        self._fields = {"cwd": "/home/ada/orchard", "sessionId": session, "version": "2.1.200", "gitBranch": "main", **fields}
        self._session = session

    def row(self, kind: str, **fields: Any) -> str:
        """A line of the conversation."""
        name = uuid(self._number)
        before = next((row["uuid"] for row in reversed(self.rows) if "uuid" in row), None)
        line = {"parentUuid": before, "isSidechain": False, "userType": "external", **self._fields}
        self.rows.append({**line, "type": kind, "uuid": name, "timestamp": self._now(), **fields})
        self._number += 1
        return name

    def user(self, content: str | list[Any], **fields: Any) -> str:
        return self.row("user", message={"role": "user", "content": content}, **fields)

    def assistant(self, *blocks: dict[str, Any] | str, **fields: Any) -> str:
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        message = {"id": f"msg_{self._number}", "model": "claude-opus-5", "role": "assistant", "content": content}
        return self.row("assistant", message=message, **fields)

    def call(self, tool: str, name: str, /, **given: Any) -> str:
        return self.assistant({"type": "tool_use", "id": name, "name": tool, "input": given})

    def result(self, name: str, content: Any, *, failed: bool = False, beside: Iterable[dict[str, Any]] = (), **fields: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": name, "content": content, **({"is_error": True} if failed else {})}
        return self.user([block, *beside], **fields)

    def system(self, subtype: str, **fields: Any) -> str:
        return self.row("system", subtype=subtype, **fields)

    def attachment(self, kind: str, **inner: Any) -> str:
        return self.row("attachment", attachment={"type": kind, **inner})

    def queue(self, operation: str, content: str | None = None, **fields: Any) -> None:
        self.rows.append(
            {
                "type": "queue-operation",
                "operation": operation,
                "timestamp": self._now(),
                "sessionId": self._session,
                **({} if content is None else {"content": content}),
                **fields,
            }
        )

    def note(self, kind: str, **fields: Any) -> None:
        """A line beside the conversation: no uuid, no time."""
        self.rows.append({"type": kind, **fields, "sessionId": self._session})

    def _now(self) -> str:
        at = BEGIN + timedelta(seconds=len(self.rows))
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    @property
    def bytes(self) -> bytes:
        return b"".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for row in self.rows)


class Home:
    """An agent's folder with one project in it, and a source that reads it."""

    def __init__(self, folder: Path, *, line_limit: int = 32 * 1024 * 1024) -> None:
        self.root = folder / "claude"
        self.project = self.root / "projects" / "-home-ada-orchard"
        self.project.mkdir(parents=True)
        self.own_state = folder / "state"
        self.source = ClaudeCode(self.root, own_state=self.own_state, line_limit=line_limit)

    def write(self, transcript: Transcript | bytes, name: str = f"{SESSION}.jsonl") -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(transcript if isinstance(transcript, bytes) else transcript.bytes)
        return path

    def read(self, path: Path, cursor: Cursor | None = None, *, budget: int = 4 * 1024 * 1024) -> ReadResult:
        return self.source.read(path, cursor, budget=budget)

    def look(self, transcript: Transcript | bytes, name: str = f"{SESSION}.jsonl") -> ReadResult:
        return self.read(self.write(transcript, name))

    def events(self, transcript: Transcript | bytes, name: str = f"{SESSION}.jsonl") -> tuple[Event, ...]:
        return self.look(transcript, name).events

    def read_on(self, path: Path, cursor: Cursor | None = None, *, budget: int) -> list[ReadResult]:
        """Looks until one reaches the end."""
        looks = [self.read(path, cursor, budget=budget)]
        while looks[-1].more:
            looks.append(self.read(path, looks[-1].cursor, budget=budget))
        return looks


def reasons(look: ReadResult) -> list[str]:
    return [problem.reason for problem in look.problems]


def kinds(events: Iterable[Event]) -> list[str]:
    return [event.type.value for event in events]


def texts_of(events: Iterable[Event], *types: str) -> list[str]:
    return [event.text for event in events if event.type in types]


def of(type: EventType, events: Iterable[Event]) -> list[Event]:
    return [event for event in events if event.type is type]


def only(events: Iterable[Event], type: str) -> Event:
    (event,) = [event for event in events if event.type == type]
    return event


def said(look: ReadResult | Iterable[Event]) -> list[str]:
    """What is taken for a person's words."""
    events = look.events if isinstance(look, ReadResult) else look
    return [event.text for event in events if event.type == "user_message"]


def a_day() -> Transcript:
    """A short session that has something of everything."""
    day = Transcript()
    day.note("permission-mode", permissionMode="default")
    day.queue("enqueue", "Graft the pear onto the quince — schön langsam 🍐")
    day.queue("dequeue")
    day.user("Graft the pear onto the quince — schön langsam 🍐", promptSource="typed", origin={"kind": "human"})
    day.assistant({"type": "thinking", "thinking": "hm", "signature": "x"})
    day.call("Bash", "toolu_1", command="pytest -q", description="Run the tests")
    day.queue("enqueue", "and water it")
    day.result("toolu_1", "Exit code 1\nE   AssertionError: dry\n1 failed, 2 passed in 0.10s", failed=True)
    day.queue("remove")
    late = day.call("Edit", "toolu_2", file_path="/home/ada/orchard/pear.py", old_string="a", new_string="b")
    day.rows[-1], early = {}, day.rows[-1]
    day.result("toolu_2", "The file has been updated.", toolUseResult={"filePath": "/home/ada/orchard/pear.py"})
    day.rows[-1]["sourceToolAssistantUUID"] = late
    day.rows[-2:] = [day.rows[-1], early]
    day.assistant("Done: the pear is grafted.")
    day.system("away_summary", content="Grafting pears; next: water them. (disable recaps in /config)")
    day.note("ai-title", aiTitle="Pears on quinces")
    day.note("surprise")
    return day
