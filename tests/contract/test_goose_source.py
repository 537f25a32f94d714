from pathlib import Path

from kite_memory.sources import Source
from kite_memory.sources.goose import Goose
from tests.contract.database_contract import DatabaseSourceContract, Store
from tests.fakes.goose_store import GooseStore, a_morning, text


class TestGoose(DatabaseSourceContract):
    def make(self, folder: Path) -> Source:
        return Goose((folder / "sessions",), own_state=folder / "state")

    def place(self, folder: Path) -> Path:
        return folder / "sessions" / "sessions.db"

    def fill(self, path: Path, *, wal: bool = True) -> Store:
        return a_morning(path, wal=wal)

    def go_on(self, store: Store) -> int:
        assert isinstance(store, GooseStore)
        store.message("user", text(f"And at {store.now}?"))
        store.message("assistant", text(f"At {store.now} too."))
        return 2

    def strangers(self, folder: Path) -> list[Path]:
        sessions = folder / "sessions"
        return [sessions / "sessions.db-shm", sessions / "sessions.db.bak", folder / "sessions.db", sessions / "20250301_1.jsonl"]
