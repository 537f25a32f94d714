from pathlib import Path

from kite_memory.extensions.contract.source_contract import AppendOnlySourceContract
from kite_memory.sources import Source
from kite_memory.sources.droid import Droid
from tests.counts import one_in
from tests.sources.further_lines import NAME, a_droid_day, lines


class TestDroid(AppendOnlySourceContract):
    cut_every = one_in()

    def make(self, folder: Path) -> Source:
        return Droid(folder, own_state=folder / "state")

    def place(self, folder: Path) -> Path:
        return folder / "sessions" / "-home-ada-orchard" / f"{NAME}.jsonl"

    def transcript(self) -> bytes:
        return lines(a_droid_day().rows)

    def strangers(self, folder: Path) -> list[Path]:
        return [
            folder / "history.json",
            folder / "sessions" / "stray.jsonl",
            folder / "sessions" / "-home-ada-orchard" / f"{NAME}.settings.json",
        ]
