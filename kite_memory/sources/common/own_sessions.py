"""Knowing the sessions that our own extractor made, so that a memory is never made of the making of memories."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

OWN_EXTRACTOR_MARK = "kite-memory:extract"
"""Stands in every prompt with which the extractor starts an agent."""

_MARK_BYTES = OWN_EXTRACTOR_MARK.encode()


def made_by_our_extractor(row: Mapping[str, Any], line: bytes, *, first_cwd: str, own_folders: Iterable[Path]) -> bool:
    """Whether a line that stands before the first answer of its session gives our extractor away.

    Any one is enough: it runs in a folder of ours; what it is told, or its system prompt, carries our mark; it is a
    scripted run and the mark stands anywhere in the line.
    """
    if first_cwd and any(_inside(first_cwd, folder) for folder in own_folders):
        return True
    if _MARK_BYTES not in line:
        return False
    return row.get("entrypoint") == "sdk-cli" or _is_instruction(row) or OWN_EXTRACTOR_MARK in _first_words(row)


def _inside(cwd: str, folder: Path) -> bool:
    try:
        return Path(cwd).is_relative_to(folder)
    except ValueError:
        return False


def _is_instruction(row: Mapping[str, Any]) -> bool:
    """Whether a line holds the system prompt, which people do not write."""
    match row:
        case {"type": "api-request-shape"} | {"type": "attachment", "attachment": {"type": "prompt_snapshot"}}:
            return True
        case _:
            return False


def _first_words(row: Mapping[str, Any]) -> str:
    """What a line tells an agent on behalf of whoever started it: a prompt, a queued prompt, a text of the client's."""
    match row:
        case {"isSidechain": True}:
            return ""
        case {"type": "user", "message": {"content": str(text)}}:
            return text
        case {"type": "user", "message": {"content": list(blocks)}}:
            return "\n".join(block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str))
        case {"type": "queue-operation" | "system", "content": str(text)}:
            return text
        case _:
            return ""
