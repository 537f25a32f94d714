import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kite_memory.extensions.contract.source_contract import FileSourceContract, wild_lines
from kite_memory.sources import Source
from kite_memory.sources.cursor.source import CursorApp
from tests.contract.database_contract import DatabaseSourceContract, Store
from tests.fakes.cursor_store import CommandLineStore, EditorState, a_morning


class TestCursor(DatabaseSourceContract):
    def make(self, folder: Path) -> Source:
        return CursorApp(folder / "User", folder / "cli")

    def place(self, folder: Path) -> Path:
        return folder / "User" / "globalStorage" / "state.vscdb"

    def fill(self, path: Path, *, wal: bool = True) -> Store:
        return a_morning(path, wal=wal)

    def go_on(self, store: Store) -> int:
        assert isinstance(store, EditorState)
        name = "c0ffee00-0000-4000-8000-000000000001"
        store.bubble(name, 1, "And in the afternoon?")
        store.bubble(name, 2, "Then too.")
        store.conversation(name)
        return 2

    def strangers(self, folder: Path) -> list[Path]:
        user = folder / "User"
        return [
            user / "globalStorage" / "state.vscdb.backup",
            user / "globalStorage" / "state.vscdb-shm",
            user / "globalStorage" / "other.extension" / "state.vscdb",
            user / "workspaceStorage" / "w1" / "workspace.json",
            folder / "cli" / "chats" / "store.db",
            folder / "cli" / "projects" / "p" / "terminals" / "1.jsonl",
            folder / "cli" / "projects" / "p" / "agent-transcripts" / "1.txt",
        ]


class TestCursorCommandLine(DatabaseSourceContract):
    def make(self, folder: Path) -> Source:
        return CursorApp(folder / "User", folder / "cli")

    def place(self, folder: Path) -> Path:
        return folder / "cli" / "chats" / "h1" / "talk" / "store.db"

    def fill(self, path: Path, *, wal: bool = True) -> Store:
        store = CommandLineStore(path, wal=wal)
        store.say(
            {"role": "user", "content": [{"type": "text", "text": "<user_query>Why does the pump test fail?</user_query>"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "Let me look."}]},
            {"role": "gardener", "content": "?"},
        )
        return store

    def go_on(self, store: Store) -> int:
        assert isinstance(store, CommandLineStore)
        store.say({"role": "user", "content": "And in the afternoon?"}, {"role": "assistant", "content": "Then too."})
        return 2

    def strangers(self, folder: Path) -> list[Path]:
        chat = folder / "cli" / "chats" / "h1"
        return [
            chat / "store.db",
            chat / "talk" / "store.db-shm",
            chat / "talk" / "deeper" / "store.db",
            chat / "talk" / "meta.json",
        ]


class TestCursorExport(FileSourceContract):
    """Lines have no time, so what is read later gets a later time: it only grows, but it is not held to that."""

    def make(self, folder: Path) -> Source:
        return CursorApp(folder / "User", folder / "cli", clock=lambda: 4e9)

    def place(self, folder: Path) -> Path:
        return folder / "cli" / "projects" / "home-ada-orchard" / "agent-transcripts" / "talk" / "talk.jsonl"

    def transcript(self) -> bytes:
        rows: list[dict[str, Any]] = [
            {
                "role": "user",
                "message": {"content": [{"type": "text", "text": "<user_query>Why does the pump fail? 🍐</user_query>"}]},
            },
            {"role": "assistant", "message": {"content": [{"type": "text", "text": "Let me look."}]}},
            {
                "role": "assistant",
                "message": {"content": [{"type": "tool_use", "name": "Shell", "input": {"command": "pytest -q"}}]},
            },
            {"weather": "fair"},
            {"type": "turn_ended", "status": "success"},
        ]
        return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)

    def wildly(self, folder: Path) -> Iterator[Path]:
        yield self.written(folder, wild_lines(self.transcript()))

    def strangers(self, folder: Path) -> list[Path]:
        project = folder / "cli" / "projects" / "home-ada-orchard"
        return [project / "talk.jsonl", project / "agent-transcripts" / "talk" / "talk.jsonl.tmp", project / "terminals" / "1.txt"]
