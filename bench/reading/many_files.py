"""Very many small transcripts of one agent, each of its own kind of place."""

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from bench.reading.farm import ROO

_AT = "2026-03-01T09:00:00.000Z"
_LONG_AGO = 1_772_355_600


def _write(path: Path, *rows: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (_LONG_AGO, _LONG_AGO))  # what was only just written may be waited for


def _name(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


def _claude_code(home: Path, number: int) -> None:
    row = {
        "type": "user",
        "uuid": _name(number),
        "sessionId": _name(number),
        "cwd": "/home/ada/orchard",
        "timestamp": _AT,
        "message": {"role": "user", "content": f"Prune tree number {number}."},
    }
    _write(home / ".claude" / "projects" / f"-orchard-{number % 50}" / f"{_name(number)}.jsonl", row)


def _codex(home: Path, number: int) -> None:
    meta = {"id": _name(number), "cwd": "/home/ada/orchard", "timestamp": _AT}
    said = {"type": "user_message", "message": f"Prune tree number {number}."}
    day = home / ".codex" / "sessions" / "2026" / f"{1 + number % 12:02d}" / "01"
    _write(
        day / f"rollout-2026-03-01T09-00-00-{_name(number)}.jsonl",
        {"timestamp": _AT, "type": "session_meta", "payload": meta},
        {"timestamp": _AT, "type": "event_msg", "payload": said},
    )


def _gemini(home: Path, number: int) -> None:
    said = {"id": _name(number), "timestamp": _AT, "type": "user", "content": f"Prune tree number {number}."}
    document = {"sessionId": _name(number), "startTime": _AT, "lastUpdated": _AT, "messages": [said]}
    _write(home / ".gemini" / "tmp" / f"orchard-{number % 50}" / "chats" / f"session-2026-03-01T09-00-{number:08x}.json", document)


def _copilot(home: Path, number: int) -> None:
    start = {"type": "session.start", "id": f"s{number}", "timestamp": _AT, "data": {"sessionId": _name(number)}}
    said = {"type": "user.message", "id": f"u{number}", "timestamp": _AT, "data": {"content": f"Prune tree number {number}."}}
    _write(home / ".copilot" / "session-state" / _name(number) / "events.jsonl", start, said)


def _roo(home: Path, number: int) -> None:
    words = {"type": "text", "text": f"<task>Prune tree number {number}.</task>"}
    said = {"role": "user", "content": [words], "ts": _LONG_AGO * 1000}
    task = home / ".config" / "Code" / "User" / "globalStorage" / ROO / "tasks" / _name(number)
    _write(task / "api_conversation_history.json", [said])
    _write(task / "ui_messages.json", [])


def _cursor(home: Path, number: int) -> None:
    said = {"role": "user", "message": {"content": [{"type": "text", "text": f"<user_query>Prune tree {number}.</user_query>"}]}}
    place = home / ".cursor" / "projects" / f"orchard-{number % 50}" / "agent-transcripts" / _name(number)
    _write(place / f"{_name(number)}.jsonl", said)


def _aider(home: Path, number: int) -> None:
    path = home / "projects" / f"p{number}" / ".aider.chat.history.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"\n# aider chat started at 2026-03-01 09:00:00\n\n#### Prune tree number {number}.\n\nDone.\n")


def _opencode(home: Path, number: int) -> None:
    storage, name = home / ".local" / "share" / "opencode" / "storage", f"ses_{number:08x}"
    _write(storage / "session" / "global" / f"{name}.json", {"id": name, "directory": "/home/ada/orchard"})
    message = {"id": f"msg_{number:08x}", "sessionID": name, "role": "user", "time": {"created": _LONG_AGO * 1000}}
    _write(storage / "message" / name / f"msg_{number:08x}.json", message)
    part = {"id": f"prt_{number:08x}", "type": "text", "text": f"Prune tree number {number}."}
    _write(storage / "part" / f"msg_{number:08x}" / f"prt_{number:08x}.json", part)


def _cursor_store(home: Path, number: int) -> None:
    path = home / ".cursor" / "chats" / f"{number % 50:032x}" / _name(number) / "store.db"
    path.parent.mkdir(parents=True)
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB)")
    database.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
    database.close()


def _antigravity(home: Path, number: int) -> None:
    brain = home / ".gemini" / "antigravity-cli" / "brain" / _name(number) / ".system_generated" / "logs"
    step = {"step_index": 0, "source": "USER_EXPLICIT", "type": "USER_INPUT", "status": "DONE", "created_at": _AT}
    _write(brain / "transcript_full.jsonl", step | {"content": f"Prune tree number {number}."})


KINDS: dict[str, Callable[[Path, int], None]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini-cli": _gemini,
    "copilot-cli": _copilot,
    "roo-code": _roo,
    "cursor, exports": _cursor,
    "cursor, databases": _cursor_store,
    "aider": _aider,
    "opencode, files": _opencode,
    "antigravity": _antigravity,
}


def lay_many(kind: str, home: Path, count: int) -> None:
    for number in range(count):
        KINDS[kind](home, number)
