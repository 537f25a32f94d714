from pathlib import Path

from kite_memory.sources import Source
from kite_memory.sources.opencode.source import OpenCode
from tests.contract.database_contract import DatabaseSourceContract, Store
from tests.fakes.opencode_store import OpenCodeStore, a_morning, text


class TestOpenCode(DatabaseSourceContract):
    def make(self, folder: Path) -> Source:
        return OpenCode(folder / "opencode")

    def place(self, folder: Path) -> Path:
        return folder / "opencode" / "opencode.db"

    def fill(self, path: Path, *, wal: bool = True) -> Store:
        return a_morning(path, wal=wal)

    def go_on(self, store: Store) -> int:
        assert isinstance(store, OpenCodeStore)
        store.prompt("ses_orchard", f"And at {store.now}?")
        store.answer("ses_orchard", text(f"At {store.now} too."))
        return 2

    def strangers(self, folder: Path) -> list[Path]:
        folder = folder / "opencode"
        return [
            folder / "opencode.db-shm",
            folder / "opencode.db.bak",
            folder / "auth.json",
            folder / "log" / "opencode.db",
            folder / "storage" / "session" / "info.json",
            folder / "storage" / "message" / "ses_1" / "msg_1.json",
        ]
