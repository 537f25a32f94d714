from pathlib import Path

from kite_memory.sources import Source
from kite_memory.sources.opencode.source import Kilo
from tests.contract.database_contract import Store
from tests.contract.test_opencode_source import TestOpenCode as OpenCodeContract
from tests.fakes.opencode_store import a_morning


class TestKilo(OpenCodeContract):
    def make(self, folder: Path) -> Source:
        return Kilo(folder / "kilo")

    def place(self, folder: Path) -> Path:
        return folder / "kilo" / "kilo.db"

    def fill(self, path: Path, *, wal: bool = True) -> Store:
        return a_morning(path, wal=wal)

    def strangers(self, folder: Path) -> list[Path]:
        folder = folder / "kilo"
        return [folder / "kilo.db-shm", folder / "opencode.db", folder / "auth.json", folder / "log" / "kilo.db"]


del OpenCodeContract
