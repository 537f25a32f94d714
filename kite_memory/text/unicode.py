"""Replace lone surrogates, which no file and no database accepts, and serialize text safely."""

import json
import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

_TAG = re.compile(r"<(?=[/!?|\s]{0,8}[^\W\d]|!-)")


def written(value: object) -> str:
    """Serialize as JSON with escapes for what reads as a tag and for invisible characters; the value is unchanged."""
    text = _TAG.sub(r"\\u003c", json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))
    return text if text.isprintable() else "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


_T = TypeVar("_T")


def mended(value: _T) -> _T:
    """Return the value with U+FFFD for every lone surrogate in texts, tuples and dataclasses; joined pairs become one character."""
    whole: Any = value
    match value:
        case Enum():
            pass
        case str():
            whole = _text(value)
        case tuple():
            whole = tuple(map(mended, value))
        case _ if is_dataclass(value) and not isinstance(value, type):
            now = {each.name: getattr(value, each.name) for each in fields(value)}
            changed = {name: new for name, old in now.items() if (new := mended(old)) != old}
            whole = replace(value, **changed) if changed else value
        case _:
            pass
    result: _T = whole
    return result


def _text(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
