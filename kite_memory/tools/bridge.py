"""The tools by name: JSON arguments in, a JSON object out, over any store.

`kmem mcp` and `kmem serve` declare the tools; this module performs them, in the daemon if one runs, so that a single process
writes.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kite_memory.errors import UsageError
from kite_memory.tools import argument_parsing
from kite_memory.tools.access import Asker

_OPEN = frozenset({"save-conversation"})
"""Tools that accept arguments by any name."""

Json = dict[str, Any]
Tool = Callable[[Asker, Json], Json]
"""Takes unchecked arguments. Raises `KiteError` for what the caller can correct."""


class Bridge:
    """Performs tools by name. Thread-safe."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = dict(tools)

    def perform(self, tool: str, arguments: Json, asker: Asker) -> Json:
        known = self._tools.get(tool)
        if known is None:
            raise UsageError(f"unknown tool {tool!r}", hint="kmem and its daemon may be of different versions")
        return known(asker, arguments if tool in _OPEN else argument_parsing.renamed(arguments))
