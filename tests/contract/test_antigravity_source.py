from pathlib import Path

from kite_memory.extensions.contract.source_contract import AppendOnlySourceContract
from kite_memory.sources import Source
from kite_memory.sources.antigravity import Antigravity
from tests.counts import one_in
from tests.fakes.steps import a_morning


class TestAntigravity(AppendOnlySourceContract):
    cut_every = one_in()

    def make(self, folder: Path) -> Source:
        return Antigravity(folder)

    def place(self, folder: Path) -> Path:
        return folder / "antigravity-cli" / "brain" / "c-1" / ".system_generated" / "logs" / "transcript_full.jsonl"

    def transcript(self) -> bytes:
        return a_morning().bytes

    def strangers(self, folder: Path) -> list[Path]:
        program = folder / "antigravity-cli"
        return [
            program / "history.jsonl",
            program / "brain" / "c-1" / "plan.md",
            program / "brain" / "c-1" / ".system_generated" / "logs" / "other.jsonl",
            program / "brain" / "c-1" / ".system_generated" / "transcript_full.jsonl",
            program / "conversations" / "c-1.db-wal",
            folder / "tmp" / "chats" / "transcript_full.jsonl",
        ]
