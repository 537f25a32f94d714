"""OpenCode's storage as the client makes it, filled with invented sessions."""

import json
import sqlite3
from pathlib import Path
from typing import Any

_TABLES = """
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL, directory text NOT NULL,
    title text NOT NULL, version text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,
    data text NOT NULL);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
"""

_TABLES_2 = """
CREATE TABLE session_v2 (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, fork_session_id text, slug text NOT NULL,
    directory text NOT NULL, title text, version text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, seq integer NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE UNIQUE INDEX session_message_session_seq_idx ON session_message (session_id, seq);
"""

START = 1_772_355_600_000
"""Milliseconds: 1 March 2026, 9:00 UTC."""


class OpenCodeStore:
    """One database, open until it is closed. Each thing said is a second later."""

    def __init__(self, path: Path, *, wal: bool = True) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.connection = sqlite3.connect(path, isolation_level=None)
        if wal:
            self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.executescript(_TABLES)
        self.now = START
        self._count = 0

    def close(self) -> None:
        self.connection.close()

    def session(self, name: str, *, directory: str = "/home/ada/orchard", parent: str | None = None, title: str = "A pump") -> str:
        self._tick()
        self.connection.execute(
            "INSERT INTO session VALUES (?, 'p', ?, 's', ?, ?, '1.4.2', ?, ?)", (name, parent, directory, title, self.now, self.now)
        )
        return name

    def message(self, session: str, role: str, *, created: int | None = None, **fields: Any) -> str:
        now = self._tick()
        name = f"msg_{self._count:06}"
        data = {"role": role, "time": {"created": created or now, **({"completed": now} if role == "assistant" else {})}, **fields}
        self.connection.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?)", (name, session, created or now, now, json.dumps(data))
        )
        return name

    def part(self, session: str, message: str, **data: Any) -> str:
        now = self._tick()
        name = f"prt_{self._count:06}"
        self.connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", (name, message, session, now, now, json.dumps(data)))
        return name

    def rewrite(self, part: str, **data: Any) -> None:
        self.connection.execute("UPDATE part SET data = ?, time_updated = ? WHERE id = ?", (json.dumps(data), self._tick(), part))

    def finish(self, message: str) -> None:
        (data,) = self.connection.execute("SELECT data FROM message WHERE id = ?", (message,)).fetchone()
        info = json.loads(data)
        info["time"]["completed"] = self._tick()
        self.connection.execute("UPDATE message SET data = ?, time_updated = ? WHERE id = ?", (json.dumps(info), self.now, message))

    def prompt(self, session: str, text: str, **fields: Any) -> str:
        message = self.message(session, "user")
        return self.part(session, message, type="text", text=text, **fields)

    def answer(self, session: str, *parts: dict[str, Any], **fields: Any) -> str:
        message = self.message(session, "assistant", **fields)
        for part in parts:
            self.part(session, message, **part)
        return message

    def _tick(self) -> int:
        self._count += 1
        self.now += 1_000
        return self.now


class OpenCodeStore2:
    """What OpenCode 2 keeps, in a database of its own or beside version 1's tables."""

    def __init__(self, path: Path, *, after: int = START) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.executescript(_TABLES_2)
        self.now = after
        self._count = 0

    def close(self) -> None:
        self.connection.close()

    def session(self, name: str, *, directory: str = "/home/ada/orchard", parent: str | None = None, title: str = "A pump") -> str:
        self.now += 1_000
        self.connection.execute(
            "INSERT INTO session_v2 VALUES (?, 'p', ?, NULL, 's', ?, ?, '2.0.24', ?, ?)",
            (name, parent, directory, title, self.now, self.now),
        )
        return name

    def message(self, session: str, kind: str, *, created: int | None = None, done: bool = True, **fields: Any) -> str:
        self._count += 1
        self.now += 1_000
        name, made = f"msg_2_{self._count:06}", created or self.now
        data = {"time": {"created": made, **({"completed": self.now} if done else {})}, **fields}
        self.connection.execute(
            "INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?, ?)",
            (name, session, kind, self._count, made, self.now, json.dumps(data)),
        )
        return name

    def rewrite(self, message: str, **fields: Any) -> None:
        self.now += 1_000
        row = self.connection.execute("SELECT data FROM session_message WHERE id = ?", (message,)).fetchone()
        data = {**json.loads(row[0]), **fields}
        self.connection.execute(
            "UPDATE session_message SET data = ?, time_updated = ? WHERE id = ?", (json.dumps(data), self.now, message)
        )


def call_2(tool: str, name: str, given: dict[str, Any], said: str = "", **state: Any) -> dict[str, Any]:
    outcome = {"status": "completed", "content": [{"type": "text", "text": said}], **state}
    times = {"created": START, "ran": START + 1, "completed": START + 2}
    return {"type": "tool", "id": name, "name": tool, "state": {"input": given, **outcome}, "time": times}


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, "time": {"start": START, "end": START + 1}, **fields}


def call(tool: str, name: str, given: dict[str, Any], **state: Any) -> dict[str, Any]:
    fields = {"status": "completed", "output": "", "metadata": {}, "time": {"start": START + 1, "end": START + 2}, **state}
    return {"type": "tool", "tool": tool, "callID": name, "state": {"input": given, **fields}}


def a_morning(path: Path, *, wal: bool = True) -> OpenCodeStore:
    """One session: a prompt, an answer with a test run and an edit, a part of a kind that no one knows."""
    store = OpenCodeStore(path, wal=wal)
    session = store.session("ses_orchard")
    store.prompt(session, "Why does the pump test fail?")
    store.answer(
        session,
        {"type": "step-start"},
        text("Let me look."),
        call("bash", "call_1", {"command": "pytest -q"}, output="1 failed in 0.1s\n", metadata={"exit": 1}),
        call("edit", "call_2", {"filePath": "/home/ada/orchard/pump.py", "oldString": "a", "newString": "b"}, output="Edited."),
        {"type": "hologram"},
    )
    return store
