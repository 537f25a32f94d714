from pathlib import Path

from kite_memory.extensions.contract.source_contract import AppendOnlySourceContract
from kite_memory.sources import Source
from kite_memory.sources.pi import Pi
from tests.counts import one_in
from tests.sources.further_lines import NAME, a_pi_day, lines


class TestPi(AppendOnlySourceContract):
    cut_every = one_in()

    def make(self, folder: Path) -> Source:
        return Pi(folder, own_state=folder / "state")

    def place(self, folder: Path) -> Path:
        return folder / "sessions" / "--home-ada-orchard--" / f"2026-03-02T09-00-00-000Z_{NAME}.jsonl"

    def transcript(self) -> bytes:
        return lines(a_pi_day().rows)

    def strangers(self, folder: Path) -> list[Path]:
        return [
            folder / "auth.json",
            folder / "sessions" / "stray.jsonl",
            folder / "sessions" / "--home-ada-orchard--" / "notes.json",
            folder / "sessions" / "--home-ada-orchard--" / "deeper" / "x.jsonl",
        ]
