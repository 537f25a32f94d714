"""Telling a person's words in a Gemini CLI session from all that its client, hooks and tools put in their place."""

import re
from collections.abc import Mapping
from typing import Any

from kite_memory.sources.common.words import without_blocks

_INJECTED = (
    "<session_context>",
    "<loaded_context>",
    "This is the Gemini CLI. We are setting up the context for our chat.",
    "Background execution update:",
    "<background_output>",
)
_WORDLESS = re.compile(r"[/?][\w:.-]{0,100}")
NOT_THE_AGENTS = frozenset(
    {
        "Got it. Thanks for the context!",
        "Got it. Thanks for the additional context!",
        "[The previous response was interrupted before it completed.]",
    }
)
"""What the client writes in the agent's place, so that turns alternate."""

_NUDGES = frozenset({"Please continue.", "System: Please continue."})
_REFERENCED = "\n--- Content from referenced files ---"
_STEERING = ("User steering update:", "User hint:", "User hints:")
_SNAPSHOT = re.compile(r"\s*<state_snapshot>")


def text_of(content: object) -> str:
    """The text of a message's content; thoughts, calls and data are not its text."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    texts: list[str] = []
    for part in content:
        match part:
            case str():
                texts.append(part)
            case {"thought": True}:
                continue
            case {"text": str(text)}:
                texts.append(text)
            case _:
                continue
    return "\n".join(texts)


def snapshot_of(text: str) -> str:
    """The client's summary of what it dropped from the conversation; empty where this is none."""
    return text.strip() if _SNAPSHOT.match(text) else ""


def is_injected(text: str) -> bool:
    """Whether the client says it of its own, and not in answer to anything that a person typed."""
    return text.lstrip().startswith(_INJECTED)


def persons_words(message: Mapping[str, Any]) -> str:
    """What of a ``user`` message a person typed.

    What hooks add stands in blocks of its own, their brackets escaped, before and after it; files that were mentioned follow.
    """
    shown = message.get("displayContent")
    text = text_of(shown) if shown else text_of(message.get("content"))
    text = without_blocks(text, "hook_context", unclosed_too=True).strip()
    if text.startswith(_STEERING):
        text = text.partition("<user_input>")[2].partition("</user_input>")[0].strip()
        text = text.removeprefix("- ") if "\n- " not in text else text
    if is_injected(text) or text in _NUDGES or _WORDLESS.fullmatch(text):
        return ""
    return text.partition(_REFERENCED)[0].strip()
