import json
from pathlib import Path

from kite_memory.extensions.contract.source_contract import AppendOnlySourceContract, DocumentSourceContract, SourceContract
from kite_memory.sources import Source
from kite_memory.sources.gemini_cli.source import Gemini
from tests.counts import one_in
from tests.sources.gemini_session import a_day


class _Gemini(SourceContract):
    def make(self, folder: Path) -> Source:
        return Gemini(folder, own_state=folder / "state")

    def strangers(self, folder: Path) -> list[Path]:
        project = folder / "tmp" / "orchard"
        return [
            folder / "projects.json",
            folder / "settings.json",
            project / "logs.json",
            project / "checkpoint-pears.json",
            project / "chats" / "session-2026-03-02T09-00-5e551011.jsonl.tmp-4711",
            project / "chats" / "session-2026-03-02T09-00-5e551011.jsonl.unreadable-1",
            project / "tool-outputs" / "session-1" / "run.json",
        ]


class TestGeminiLines(_Gemini, AppendOnlySourceContract):
    cut_every = one_in()

    def place(self, folder: Path) -> Path:
        return folder / "tmp" / "orchard" / "chats" / "session-2026-03-02T09-00-5e551011.jsonl"

    def transcript(self) -> bytes:
        return a_day().lines


class TestGeminiDocument(_Gemini, DocumentSourceContract):
    def place(self, folder: Path) -> Path:
        return folder / "tmp" / "orchard" / "chats" / "session-2026-03-02T09-00-5e551011.json"

    def transcript(self) -> bytes:
        return a_day().document

    def versions(self) -> list[bytes]:
        """A message at a time, each first without its calls."""
        whole = json.loads(self.transcript())
        bodies: list[bytes] = []
        for count in range(1, len(whole["messages"]) + 1):
            messages = whole["messages"][:count]
            bare = {key: value for key, value in messages[-1].items() if key != "toolCalls"}
            bodies.append(json.dumps({**whole, "messages": [*messages[:-1], bare]}).encode())
            bodies.append(json.dumps({**whole, "messages": messages}).encode())
        return [*bodies, self.transcript()]
