"""Writes invented tasks of Cline and Roo Code, in the shapes that their versions use."""

import json
from pathlib import Path
from typing import Any

from kite_memory.model.event import Cursor, ReadResult
from kite_memory.sources.cline.source import HISTORY, SHOWN, Cline, RooCode, VscodeTasks

TASK = "1772442000000"
BEGIN = 1_772_442_000_000
DETAILS = (
    "<environment_details>\n# VSCode Visible Files\npear.py\n\n# Current Workspace Directory (/home/ada/orchard) Files\n"
    "pear.py\n\n<task>not yours</task>\n</environment_details>"
)


class Task:
    """What was exchanged with the model (``messages``), and what was shown (``shown``)."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.shown: list[dict[str, Any]] = []
        self._now = BEGIN

    def later(self, milliseconds: int = 1_000) -> int:
        self._now += milliseconds
        return self._now

    def show(self, kind: str, text: str = "", *, type: str = "say", **fields: Any) -> None:
        self.shown.append({"ts": self.later(10), "type": type, type: kind, "text": text, **fields})

    def user(self, *blocks: str | dict[str, Any], details: bool = True) -> None:
        listed = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        content = [*listed, {"type": "text", "text": DETAILS}] if details else listed
        self.messages.append({"role": "user", "content": content, "ts": self.later()})

    def assistant(self, *blocks: str | dict[str, Any], **fields: Any) -> None:
        listed = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        self.messages.append({"role": "assistant", "content": listed, "ts": self.later(), **fields})

    def begin(self, words: str) -> None:
        self.show("text", words)
        self.user(f"<task>\n{words}\n</task>")

    def feedback(self, words: str) -> None:
        self.show("user_feedback", words)
        self.user(f"New instructions for task continuation:\n<user_message>\n{words}\n</user_message>")

    def call(self, tool: str, words: str = "", /, **given: str) -> None:
        inner = "\n".join(f"<{name}>{value}</{name}>" for name, value in given.items())
        self.assistant(f"{words}\n\n<{tool}>\n{inner}\n</{tool}>")

    def result(self, tool: str, text: str, *more: str) -> None:
        self.user(f"[{tool} for 'x'] Result:", text, *more)

    @property
    def document(self) -> bytes:
        return json.dumps(self.messages, ensure_ascii=False).encode()

    @property
    def shown_document(self) -> bytes:
        return json.dumps(self.shown, ensure_ascii=False).encode()


class Storage:
    def __init__(self, folder: Path, kind: type[RooCode] | type[Cline] = RooCode) -> None:
        self.root = folder / "storage"
        self.task = self.root / "tasks" / TASK
        self.source: VscodeTasks = kind((self.root,), own_state=folder / "state")

    def write(self, task: Task, /, *, shown: bool = True, history: bool = True, **facts: Any) -> Path:
        self.task.mkdir(parents=True, exist_ok=True)
        if shown:
            (self.task / SHOWN).write_bytes(task.shown_document)
        if history:
            (self.task / HISTORY).write_bytes(task.document)
        if facts:
            (self.task / "history_item.json").write_text(json.dumps(facts), encoding="utf-8")
        return self.task / (HISTORY if history else SHOWN)

    def look(
        self, task: Task, /, cursor: Cursor | None = None, *, shown: bool = True, history: bool = True, **facts: Any
    ) -> ReadResult:
        return self.source.read(self.write(task, shown=shown, history=history, **facts), cursor, budget=4 * 1024 * 1024)


def a_day() -> Task:
    """A short task that has something of everything."""
    day = Task()
    day.begin("Graft the pear onto the quince — schön langsam 🍐")
    day.call("execute_command", "First the tests.", command="pytest -q")
    day.result(
        "execute_command",
        "Command executed in terminal within working directory '/home/ada/orchard'. Exit code: 1\n"
        "Output:\nE   AssertionError: dry\n1 failed, 2 passed in 0.10s",
    )
    day.call("write_to_file", path="pear.py", content="graft()\n")
    day.result("write_to_file", "<file_write_result>\n<path>pear.py</path>\n<operation>created</operation>\n</file_write_result>")
    day.call("attempt_completion", result="The pear is grafted.")
    day.feedback("and water it")
    day.assistant("Watered.", {"type": "hologram"})
    return day
