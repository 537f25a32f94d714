"""Writes invented Goose sessions into a database with the tables that Goose makes (version 9 of its schema).

Their defaults are one moment rather than the current one, so that a database made twice is the same.
"""

import json
import sqlite3
from pathlib import Path
from typing import Any

_TABLES = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '',
    session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL, created_at TIMESTAMP DEFAULT '2026-03-02 09:00:00',
    updated_at TIMESTAMP DEFAULT '2026-03-02 09:00:00');
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL, role TEXT NOT NULL,
    content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP DEFAULT '2026-03-02 09:00:00',
    metadata_json TEXT);
"""
SESSION = "20260302_1"
CWD = "/home/ada/orchard"


class GooseStore:
    def __init__(self, path: Path, *, wal: bool = True) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.connection = sqlite3.connect(path, isolation_level=None)
        if wal:
            self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.executescript(_TABLES)
        self.now = 1_772_442_000

    def session(self, name: str = SESSION, *, cwd: str = CWD, kind: str = "user", title: str = "Pears") -> str:
        self.connection.execute(
            "INSERT INTO sessions (id, name, session_type, working_dir) VALUES (?, ?, ?, ?)",
            (name, title, kind, cwd),
        )
        return name

    def message(self, role: str, *parts: dict[str, Any], session: str = SESSION, shown: bool = True, name: str = "") -> None:
        self.now += 1
        encoded = json.dumps({"userVisible": shown, "agentVisible": True})
        self.connection.execute(
            "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (name or f"msg_{self.now}", session, role, json.dumps(list(parts)), self.now, encoded),
        )

    def written_anew(self, session: str = SESSION) -> None:
        """What Goose does when it compacts a conversation: the same messages under new numbers."""
        columns = "message_id, session_id, role, content_json, created_timestamp, metadata_json"
        kept = self.connection.execute(f"SELECT {columns} FROM messages WHERE session_id = ? ORDER BY id", (session,)).fetchall()
        self.connection.execute("DELETE FROM messages WHERE session_id = ?", (session,))
        self.connection.executemany(f"INSERT INTO messages ({columns}) VALUES (?, ?, ?, ?, ?, ?)", kept)

    def close(self) -> None:
        self.connection.close()


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def request(call: str, tool: str, **given: Any) -> dict[str, Any]:
    return {"type": "toolRequest", "id": call, "toolCall": {"status": "success", "value": {"name": tool, "arguments": given}}}


def response(call: str, words: str, *, failed: bool = False) -> dict[str, Any]:
    value = {"content": [{"type": "text", "text": words}], "isError": failed}
    return {"type": "toolResponse", "id": call, "toolResult": {"status": "success", "value": value}}


def a_morning(path: Path, *, wal: bool = True) -> GooseStore:
    """One session: a prompt, a test run that fails, an edit, an answer, and a part of a kind that no one knows."""
    store = GooseStore(path, wal=wal)
    store.session()
    store.message("user", text("Why do the pears drop early?"))
    store.message("assistant", text("I run the tests."), request("c1", "developer__shell", command="pytest -q"))
    store.message("user", response("c1", "FAILED tests/test_pears.py::test_ripe\n1 failed in 0.1s", failed=True))
    store.message("assistant", request("c2", "developer__text_editor", command="str_replace", path=f"{CWD}/pears.py", new_str="x"))
    store.message("user", response("c2", "Edited."))
    store.message("assistant", text("They were watered too late."), {"type": "hologram"})
    return store
