from pathlib import Path

from kite_memory.extensions.contract.source_contract import AppendOnlySourceContract
from kite_memory.sources import Source
from kite_memory.sources.copilot_cli import CopilotCli
from tests.counts import one_in
from tests.sources.copilot_session import SESSION, a_day


class TestCopilotCli(AppendOnlySourceContract):
    cut_every = one_in()

    def make(self, folder: Path) -> Source:
        return CopilotCli(folder, own_state=folder / "state")

    def place(self, folder: Path) -> Path:
        return folder / "session-state" / SESSION / "events.jsonl"

    def transcript(self) -> bytes:
        return a_day().bytes

    def strangers(self, folder: Path) -> list[Path]:
        session = folder / "session-state" / SESSION
        return [
            folder / "history.jsonl",
            session / "workspace.yaml",
            session / "checkpoints" / "events.jsonl",
            session / "files" / "notes.jsonl",
            folder / "session-state" / f"{SESSION}.jsonl.tmp",
        ]
