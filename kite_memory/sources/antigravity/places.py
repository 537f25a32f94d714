"""What Antigravity's transcripts do not say themselves: the folder a conversation works in, and whom a helper works for."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.jsonl import AppendOnlyFile, Found, Unreadable, objects
from kite_memory.sources.common.tool_text import PATH_LIMIT

_HISTORY = 8 * 1024 * 1024
_TRANSCRIPT = 64 * 1024 * 1024
_AGAIN = 0.2
"""Seconds between two searches for whom helpers work for: many new conversations are first looked at one after another."""
_IDLE = 4
"""So many times as long as a search took there is none: where conversations are many it takes a second."""

_BEGINS, _BEGAN = b'"invoke_subagent"', b'"INVOKE_SUBAGENT"'
"""The call for a helper, and the step that says under which name one began. The helper may be prompted before that is written."""

_NAMED = re.compile(rb'conversationId[\\": ]{1,16}([\w-]{8,128})')


class Places:
    """Of one program (``~/.gemini/antigravity-cli``). What it looked up it looks up again only where files have changed."""

    def __init__(self, program: Path, *, clock: Callable[[], float]) -> None:
        self._program = program
        self._clock = clock
        self._history: tuple[tuple[int, int], dict[str, str]] = ((-1, 0), {})
        self._searched: dict[Path, int] = {}
        self._search_after = float("-inf")
        self._parents: dict[str, str] = {}
        self._beginning: set[Path] = set()

    def workspace_of(self, conversation: str) -> str:
        """As the history of typed prompts has it; empty for one that was started by a script."""
        path = self._program / "history.jsonl"
        try:
            status = path.stat()
            if self._history[0] != (status.st_size, status.st_mtime_ns):
                self._history = ((status.st_size, status.st_mtime_ns), dict(self._workspaces(path)))
        except (OSError, Unreadable):
            return ""
        return self._history[1].get(conversation, "")

    def _workspaces(self, path: Path) -> Iterator[tuple[str, str]]:
        with AppendOnlyFile(path, within=self._program) as file:
            data = file.between(max(0, file.size - _HISTORY), file.size)
        for line in data.split(b"\n"):
            match objects(line) if line else []:
                case [Found(row={"conversationId": str(name), "workspace": str(workspace)})]:
                    yield name, beginning(workspace, PATH_LIMIT)
                case _:
                    continue

    @property
    def one_is_begun(self) -> bool:
        """Whether, when last searched, an agent had called for a helper and was not told yet which one it is."""
        return bool(self._beginning)

    def parent_of(self, conversation: str, *, anew: bool) -> str:
        """The conversation that began this one. A helper is prompted by its agent, in the words and the form of a person.

        ``anew`` searches even just after a search: what began a moment ago was not to be found then.
        """
        began = self._clock()
        if conversation in self._parents or (began < self._search_after and not anew):
            return self._parents.get(conversation, "")
        for path in sorted(self._program.glob("brain/*/.system_generated/logs/transcript*.jsonl")):
            try:
                if self._searched.get(path, -1) != path.stat().st_size:
                    self._searched[path] = self._search(path, self._searched.get(path, 0))
            except (OSError, Unreadable):
                continue
        ended = self._clock()
        self._search_after = ended + max(_AGAIN, _IDLE * (ended - began))
        return self._parents.get(conversation, "")

    def _search(self, path: Path, begin: int) -> int:
        """Returns where to go on: behind the last line that was whole."""
        parent = path.parent.parent.parent.name
        with AppendOnlyFile(path, within=self._program) as file:
            begin = begin if begin <= file.size else 0
            data = file.between(begin, min(begin + _TRANSCRIPT, file.size))
        whole = data.rfind(b"\n") + 1
        begins, found = data.rfind(_BEGINS, 0, whole), data.find(_BEGAN, 0, whole)
        if begins >= 0 or found >= 0:
            (self._beginning.add if begins > data.rfind(_BEGAN, 0, whole) else self._beginning.discard)(path)
        while found >= 0:
            start, end = data.rfind(b"\n", 0, found) + 1, data.find(b"\n", found)
            for name in _NAMED.findall(data[start:end]):
                if (child := name.decode("ascii", "replace")) != parent:
                    self._parents.setdefault(child, parent)
            found = data.find(_BEGAN, end, whole)
        return begin + (whole or (len(data) if len(data) == _TRANSCRIPT else 0))  # a line as long as that is not read at all
