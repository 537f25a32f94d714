from pathlib import Path

from kite_memory.sources.cursor import CursorApp
from kite_memory.sources.source import Source
from tests.contract.database_contract import DatabaseSourceContract, Store
from tests.fakes.cursor_store import EditorState, a_morning


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
