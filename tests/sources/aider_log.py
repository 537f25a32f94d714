"""Writes invented Aider histories, as Aider writes them: two blanks at the end of what is said and printed."""

import time
from collections.abc import Callable
from pathlib import Path

from kite_memory.model.event import Cursor, ReadResult
from kite_memory.sources.aider import HISTORY, Aider


class Log:
    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def run(self, began: str = "2026-03-02 09:00:00") -> "Log":
        self.raw(f"\n# aider chat started at {began}\n\n")
        return self.printed("/usr/bin/aider --model gpt-5", "Aider v0.86.2")

    def said(self, text: str) -> "Log":
        return self.raw("\n#### " + "  \n#### ".join(text.splitlines() or ["<blank>"]) + "  \n")

    def printed(self, *lines: str) -> "Log":
        return self.raw("".join(f"> {line}  \n" for line in lines))

    def answered(self, text: str) -> "Log":
        return self.raw(f"\n{text}\n\n").printed("Tokens: 2.1k sent, 80 received.")

    def raw(self, text: str | bytes) -> "Log":
        self._parts.append(text if isinstance(text, bytes) else text.encode())
        return self

    @property
    def bytes(self) -> bytes:
        return b"".join(self._parts)


class Project:
    """``own``: what stands in the history is the person's, whenever it came."""

    def __init__(self, folder: Path, *, own: bool = True, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder / "orchard"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / HISTORY
        self.source = Aider(lambda: [str(self.folder)], own=[self.folder] if own else (), own_state=folder / "state", clock=clock)

    def looks(self, log: Log | bytes, cursor: Cursor | None = None) -> list[ReadResult]:
        """Until the end of the file: a look ends with each run."""
        self.path.write_bytes(log if isinstance(log, bytes) else log.bytes)
        looks = [self.source.read(self.path, cursor, budget=4 * 1024 * 1024)]
        while looks[-1].more:
            looks.append(self.source.read(self.path, looks[-1].cursor, budget=4 * 1024 * 1024))
        return looks

    def look(self, log: Log | bytes) -> ReadResult:
        (look,) = self.looks(log)
        return look


def a_day() -> Log:
    """One run that has something of everything."""
    day = Log().run()
    day.said("Graft the pear onto the quince — schön langsam 🍐\nand water it")
    day.answered("I'll graft it:\n\n#### Step 1\n\n> measure twice\n\npear.py\n```python\n#### not a heading  \n> nor this  \n```")
    day.printed("Applied edit to pear.py", "Commit 0a1b2c3 feat: graft the pear")
    day.said("/run pytest -q")
    day.printed("Add 0.1k tokens of command output to the chat? (Y)es/(N)o [Yes]: y", "1 failed, 2 passed in 0.10s", "exit code: 1")
    day.raw(b"\nwatered, but\xff dry\n\n").printed("Tokens: 1k sent, 20 received.")
    day.printed("Creating empty file quince.py").printed("Applied edit to quince.py")
    return day
