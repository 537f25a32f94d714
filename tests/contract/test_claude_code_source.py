from pathlib import Path

from kite_memory.extensions.contract.source_contract import AppendOnlySourceContract
from kite_memory.sources import Source
from kite_memory.sources.claude_code.source import ClaudeCode
from tests.counts import one_in
from tests.sources.transcript import SESSION, a_day


class TestClaudeCode(AppendOnlySourceContract):
    cut_every = one_in()

    def make(self, folder: Path) -> Source:
        return ClaudeCode(folder, own_state=folder / "state")

    def place(self, folder: Path) -> Path:
        return folder / "projects" / "-home-ada-orchard" / f"{SESSION}.jsonl"

    def transcript(self) -> bytes:
        return a_day().bytes

    def strangers(self, folder: Path) -> list[Path]:
        project = folder / "projects" / "-home-ada-orchard"
        return [
            folder / "history.jsonl",
            project / "sessions-index.json",
            project / "memory" / "notes.jsonl",
            project / SESSION / "tool-results" / "toolu_1.jsonl",
            project / SESSION / "subagents" / "workflows" / "wf-1" / "journal.jsonl",
            project / SESSION / "subagents" / "agent-a1.meta.json",
            project / f"{SESSION}.jsonl.lock",
        ]
