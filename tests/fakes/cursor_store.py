"""Cursor's databases as the editor and the command line make them, filled with invented conversations."""

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

START = 1_772_355_600_000
"""Milliseconds: 1 March 2026, 9:00 UTC."""


class EditorState:
    """A ``state.vscdb``, open until it is closed."""

    def __init__(self, path: Path, *, wal: bool = True) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.connection = sqlite3.connect(path, isolation_level=None)
        if wal:
            self.connection.execute("PRAGMA journal_mode = WAL")
        for table in ("ItemTable", "cursorDiskKV"):
            self.connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        self.order: dict[str, list[dict[str, Any]]] = {}
        self._count = 0

    def close(self) -> None:
        self.connection.close()

    def put(self, key: str, value: object, *, table: str = "cursorDiskKV") -> None:
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        query = "INSERT INTO ItemTable VALUES (?, ?)" if table == "ItemTable" else "INSERT INTO cursorDiskKV VALUES (?, ?)"
        self.connection.execute(query, (key, text))

    def conversation(self, name: str, **fields: Any) -> str:
        about = {
            "_v": 3,
            "composerId": name,
            "name": "A pump",
            "createdAt": START,
            "status": "completed",
            "workspaceIdentifier": {"id": "w1", "uri": {"fsPath": "/home/ada/orchard"}},
            "fullConversationHeadersOnly": self.order.setdefault(name, []),
            **fields,
        }
        self.put(f"composerData:{name}", about)
        return name

    def bubble(
        self, conversation: str, kind: int, text: str = "", *, name: str = "", header: dict[str, Any] | None = None, **fields: Any
    ) -> str:
        self._count += 1
        if not name:
            name = f"{self._count:08x}-0000-4000-8000-{conversation[:8]:0>12}"
            self.order.setdefault(conversation, []).append({"bubbleId": name, "type": kind, **(header or {})})
        second = f"{self._count % 60:02}"
        content = {"bubbleId": name, "type": kind, "text": text, "createdAt": f"2026-03-01T09:00:{second}.000Z", **fields}
        self.put(f"bubbleId:{conversation}:{name}", content)
        return name


def tool(name: str, given: dict[str, Any], result: object = None, *, status: str = "completed", **fields: Any) -> dict[str, Any]:
    encoded = result if isinstance(result, str) else json.dumps(result)
    return {
        "toolFormerData": {"tool": 15, "name": name, "rawArgs": json.dumps(given), "result": encoded, "status": status, **fields}
    }


def a_morning(path: Path, *, wal: bool = True) -> EditorState:
    """One conversation: a prompt, an answer with a test run and an edit, a bubble of a kind that no one knows."""
    state = EditorState(path, wal=wal)
    name = "c0ffee00-0000-4000-8000-000000000001"
    state.bubble(name, 1, "Why does the pump test fail?")
    state.bubble(name, 2, "Let me look.")
    state.bubble(name, 2, **tool("run_terminal_cmd", {"command": "pytest -q"}, {"output": "1 failed in 0.1s", "exitCodeV2": 1}))
    state.bubble(name, 2, **tool("edit_file", {"target_file": "/home/ada/orchard/pump.py"}, {"diff": {}}))
    state.bubble(name, 9, "?")
    state.conversation(name)
    return state


class CommandLineStore:
    """A ``store.db`` of one conversation, open until it is closed."""

    def __init__(self, path: Path, *, workspace: str = "/home/ada/orchard", wal: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.connection = sqlite3.connect(path, isolation_level=None)
        if wal:
            self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.executescript(
            "CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB); CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)"
        )
        self._workspace = workspace
        self._messages: list[bytes] = []

    def close(self) -> None:
        self.connection.close()

    def say(self, *messages: dict[str, Any]) -> None:
        """Add messages, and a new list of them all."""
        for message in messages:
            self._messages.append(self._blob(json.dumps(message).encode()))
        self._list(self._messages)

    def forget(self, kept: int) -> None:
        """Begin the list anew with a summary in the place of all but the last ``kept``."""
        summary = {"role": "user", "content": "[Previous conversation summary]: The pump was mended."}
        self._messages = [self._blob(json.dumps(summary).encode()), *self._messages[-kept:]]
        self._list(self._messages)

    def _list(self, messages: list[bytes]) -> None:
        data = b"".join(b"\x0a\x20" + name for name in messages) + b"\x10\x07"
        root = self._blob(data + b"\x4a" + bytes([len(self._workspace)]) + self._workspace.encode()).hex()
        about = {"agentId": "a", "latestRootBlobId": root, "name": "Pump talk", "createdAt": START}
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES ('0', ?)", (json.dumps(about).encode().hex(),))

    def _blob(self, data: bytes) -> bytes:
        name = hashlib.sha256(data).digest()
        self.connection.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (name.hex(), data))
        return name
