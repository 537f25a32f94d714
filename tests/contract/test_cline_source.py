import json
from pathlib import Path

from kite_memory.extensions.contract.source_contract import DocumentSourceContract
from kite_memory.sources import Source
from kite_memory.sources.cline.source import Cline
from tests.contract.test_roo_code_source import TestRooCode as _TestRooCode

SESSION = "session_01orchard"
MESSAGES = [
    {"id": "m1", "role": "user", "content": [{"type": "text", "text": "Graft the pear 🍐"}], "ts": 1_772_442_000_000},
    {
        "id": "m2",
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "First the tests."},
            {"type": "tool_use", "id": "t1", "name": "run_commands", "input": {"commands": ["pytest -q"]}},
        ],
        "ts": 1_772_442_001_000,
    },
    {
        "id": "m3",
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "3 passed in 0.10s"}],
        "ts": 1_772_442_002_000,
    },
    {"id": "m4", "role": "gardener", "content": "hm", "ts": 1_772_442_003_000},
    {"id": "m5", "role": "assistant", "content": [{"type": "text", "text": "All is well."}], "ts": 1_772_442_004_000},
]


class TestCline(_TestRooCode):
    """Tasks in editors are the same documents as Roo Code's."""

    def make(self, folder: Path) -> Source:
        return Cline((folder,), own_state=folder / "state")


class TestClineInTheTerminal(DocumentSourceContract):
    def make(self, folder: Path) -> Source:
        return Cline((folder,), own_state=folder / "state")

    def place(self, folder: Path) -> Path:
        return folder / "sessions" / SESSION / f"{SESSION}.messages.json"

    def transcript(self) -> bytes:
        return self.versions()[-1]

    def versions(self) -> list[bytes]:
        rows = ({"version": 1, "sessionId": SESSION, "messages": MESSAGES[:count]} for count in range(1, len(MESSAGES) + 1))
        return [json.dumps(each).encode() for each in rows]

    def strangers(self, folder: Path) -> list[Path]:
        session = folder / "sessions" / SESSION
        return [
            session / f"{SESSION}.json",
            session / f"{SESSION}.messages.json.tmp",
            session / f"{SESSION}__teammate_a.messages.json",
            folder / "sessions" / f"{SESSION}.messages.json",
        ]
