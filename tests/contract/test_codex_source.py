from pathlib import Path

from kite_memory.extensions.contract.source_contract import AppendOnlySourceContract
from kite_memory.sources import Source
from kite_memory.sources.codex.source import Codex
from tests.counts import one_in
from tests.sources.rollout import THREAD, a_day


class TestCodex(AppendOnlySourceContract):
    cut_every = one_in()

    def make(self, folder: Path) -> Source:
        return Codex(folder, own_state=folder / "state")

    def place(self, folder: Path) -> Path:
        return folder / "sessions" / "2026" / "03" / "02" / f"rollout-2026-03-02T09-00-00-{THREAD}.jsonl"

    def transcript(self) -> bytes:
        return a_day().bytes

    def strangers(self, folder: Path) -> list[Path]:
        return [
            folder / "history.jsonl",
            folder / "session_index.jsonl",
            folder / "config.toml",
            folder / "sessions" / "2026" / "03" / "02" / f"rollout-2026-03-02T09-00-00-{THREAD}.jsonl.tmp",
            folder / "thread_history_1.sqlite",
            folder / "memories" / "raw.jsonl",
        ]
