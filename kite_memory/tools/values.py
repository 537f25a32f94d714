"""Conversion between a memory's value and the body of a note that a person can read and edit.

Text is stored as it is, anything else as JSON in a code fence. What a person writes below the fence is not part of the value and
stays when the value changes.
"""

import json
import re

from kite_memory.tools.store import JsonValue
from kite_memory.vault.taming import tame
from kite_memory.vault.wording import text_block, without_hidden

WILD = frozenset("*?")


def is_pattern(text: str) -> bool:
    return not WILD.isdisjoint(text)


def beginning(pattern: str) -> str:
    """Return the prefix that every matching key begins with."""
    return pattern[: next((place for place, char in enumerate(pattern) if char in WILD), len(pattern))]


def fits(pattern: str, key: str) -> bool:
    if pattern.endswith("*") and pattern.find("*") == len(pattern) - 1 and "?" not in pattern:
        return key.startswith(pattern[:-1])
    at = place = 0
    star, resumed = -1, 0
    while place < len(key):
        if at < len(pattern) and pattern[at] == "*":
            star, resumed = at, place
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", key[place]):
            at += 1
            place += 1
        elif star >= 0:
            resumed += 1
            at, place = star + 1, resumed
        else:
            return False
    return not pattern[at:].strip("*")


_FENCED = re.compile(r"```json[ \t]*\n(.*?)\n```[ \t]*(?:\n|\Z)", re.DOTALL)
_COMPACT = 80
"""Most characters of JSON on one line."""


def value_of(body: str) -> JsonValue:
    """Return the value of a body. A fence without valid JSON is returned as text."""
    fence = _FENCED.match(body)
    if fence is None:
        return body
    try:
        value: JsonValue = json.loads(fence[1], parse_constant=_no_number)
    except (ValueError, RecursionError):
        return body
    return value


def body_of(value: JsonValue, before: str = "", *, tamed: bool = True) -> str:
    """Return the body for a value, such that `value_of` returns the value again.

    ``before`` is the body to replace. With ``tamed``, text that would act in a vault (links, embedded pages, code that a plugin
    runs) is put in a fence too.
    """
    below = _below(before)
    if isinstance(value, str) and not below:
        text = text_block(value)
        if value_of(text) == value and value == text and (not tamed or tame(value) == value) and value:
            return value
    return f"```json\n{_written(value)}\n```" + (f"\n\n{below}" if below else "")


def _no_number(name: str) -> JsonValue:
    raise ValueError(f"{name} is no JSON")


def _below(body: str) -> str:
    """Return the text below a fence that holds a value."""
    fence = _FENCED.match(body)
    return text_block(body[fence.end() :]) if fence is not None and value_of(body) is not body else ""


def _written(value: JsonValue) -> str:
    """Return the value as JSON. No line can end the fence, since each begins with a brace, a bracket, a quote or a blank."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > _COMPACT:
        text = json.dumps(value, ensure_ascii=False, indent=2)
    if text_block(text) != text or without_hidden(text) != text:
        text = "".join(char if _is_writable(char) else _escaped(char) for char in text)
    return text.replace("<%", "\\u003c%")


def _is_writable(char: str) -> bool:
    return char in " \n" or (text_block(char) == char == without_hidden(char))


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1]
