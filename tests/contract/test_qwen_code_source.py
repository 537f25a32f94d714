from pathlib import Path

from kite_memory.extensions.contract.source_contract import AppendOnlySourceContract
from kite_memory.sources import Source
from kite_memory.sources.qwen_code import QwenCode
from tests.counts import one_in
from tests.sources.further_lines import NAME, a_qwen_day, lines


class TestQwenCode(AppendOnlySourceContract):
    cut_every = one_in()

    def make(self, folder: Path) -> Source:
        return QwenCode(folder, own_state=folder / "state")

    def place(self, folder: Path) -> Path:
        return folder / "projects" / "-home-ada-orchard" / "chats" / f"{NAME}.jsonl"

    def transcript(self) -> bytes:
        return lines(a_qwen_day().rows)

    def strangers(self, folder: Path) -> list[Path]:
        project = folder / "projects" / "-home-ada-orchard"
        return [
            folder / "settings.json",
            project / "notes" / f"{NAME}.jsonl",
            project / "chats" / f"{NAME}.json",
            project / "chats" / "archive" / f"{NAME}.jsonl",
            project / "subagents" / NAME / "agent-1.jsonl",
        ]
