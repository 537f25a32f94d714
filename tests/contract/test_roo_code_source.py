from pathlib import Path

from kite_memory.extensions.contract.source_contract import DocumentSourceContract
from kite_memory.sources import Source
from kite_memory.sources.cline.source import HISTORY, RooCode
from tests.sources.task_folder import TASK, Task, a_day


class TestRooCode(DocumentSourceContract):
    def make(self, folder: Path) -> Source:
        return RooCode((folder,), own_state=folder / "state")

    def place(self, folder: Path) -> Path:
        return folder / "tasks" / TASK / HISTORY

    def transcript(self) -> bytes:
        return a_day().document

    def versions(self) -> list[bytes]:
        return versions_of(a_day())

    def strangers(self, folder: Path) -> list[Path]:
        return [
            folder / "tasks" / TASK / "task_metadata.json",
            folder / "tasks" / TASK / "history_item.json",
            folder / "tasks" / TASK / f"{HISTORY}.tmp",
            folder / "tasks" / TASK / "checkpoints" / HISTORY,
            folder / "state" / "taskHistory.json",
            folder / "settings" / "mcp_settings.json",
        ]


def versions_of(day: Task) -> list[bytes]:
    messages, found = day.messages, []
    for count in range(1, len(messages) + 1):
        day.messages = messages[:count]
        found.append(day.document)
    return found
