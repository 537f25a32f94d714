"""The tools by name: JSON arguments in, a JSON object out, over any store.

`kmem mcp` and `kmem serve` declare the tools; this module parses and performs the calls, in the daemon if one runs, so that a
single process writes.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kite_memory.errors import UsageError
from kite_memory.tools.access import Asker
from kite_memory.tools.arguments import Arguments
from kite_memory.tools.declarations import RECENT_NOTES, called

Json = dict[str, Any]
Tool = Callable[[Asker, Arguments], Json]
"""Raises `KiteError` for what the caller can correct."""


class Bridge:
    """Parses calls by the table of declarations and performs them. Thread-safe."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = dict(tools)

    def perform(self, tool: str, arguments: Json, asker: Asker) -> Json:
        declared = RECENT_NOTES if tool == RECENT_NOTES.name else called(tool)
        if declared is None or declared.name not in self._tools:
            raise UsageError(f"unknown tool {tool!r:.80}", hint="kmem and its daemon may be of different versions")
        return self._tools[declared.name](asker, declared.parsed(arguments))
