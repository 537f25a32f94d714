"""Validation of tool arguments: right type, within bounds, and without secrets.

Error messages say what is valid and never repeat a value.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeGuard, TypeVar

from kite_memory.errors import UsageError
from kite_memory.redaction import drop_private, redact
from kite_memory.redaction.cutting import beginning
from kite_memory.text.unicode import written
from kite_memory.tools.store import JsonValue
from kite_memory.tools.values import WILD
from kite_memory.vault.wording import one_line

Json = Mapping[str, Any]

NAMED_BEFORE: Mapping[str, str] = {
    "session": "session_id",
    "project_path": "project",
    "tokens": "token_budget",
    "id": "note",
    "path": "note",
    "ai": "ai_id",
}
"""Former or common names of arguments, and the one name used by all tools."""

_MEANT = frozenset({"scope", "project", "session_id", "tags", "ttl", "expected_version"})

LONGEST_KEY = 200
_LONGEST_GIVEN = 10 * LONGEST_KEY
_KEY_TOO_LONG = f"at most {LONGEST_KEY} characters; put the rest into the value"
LONGEST_CONTEXT = 4_000
LONGEST_VALUE = 256_000
LONGEST_SPELLED = 290_000
"""Most characters of a value as it is spelled in an answer; `read_memory` has room for this many and for the fields beside the
value.
"""
DEEPEST_VALUE = 32
MOST_TAGS = 20
LONGEST_TAG = 60
MOST_RESULTS = 200
LONGEST_NAME = 200
LONGEST_TTL = timedelta(days=3650)

_WHOLE = 1 << 63
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NO_TAG = re.compile(r"[^\w/-]+")
_Choice = TypeVar("_Choice", bound=StrEnum)


def renamed(arguments: Json) -> dict[str, Any]:
    """Return the arguments under their current names. If both names are given, the current one wins."""
    older = {NAMED_BEFORE[name]: value for name, value in arguments.items() if name in NAMED_BEFORE}
    return {**older, **{name: value for name, value in arguments.items() if name not in NAMED_BEFORE}}


def context(arguments: Json) -> tuple[dict[str, Any], dict[str, JsonValue]]:
    """Return the arguments, completed from ``context``, and the rest of ``context`` to store beside the value."""
    told = arguments.get("context", {})
    if not isinstance(told, dict):
        raise UsageError("context is not an object", hint='as in: {"reason": "asked for in review", "tags": ["deploy"]}')
    meant = {name: NAMED_BEFORE.get(name, name) for name in told if NAMED_BEFORE.get(name, name) in _MEANT}
    kept = value({"context": {name: each for name, each in told.items() if name not in meant}}, "context")
    if len(written(kept)) > LONGEST_CONTEXT:
        raise UsageError(
            "context is too large", hint=f"at most {LONGEST_CONTEXT:,} characters of JSON; the rest belongs into the value"
        )
    return {**{meant[name]: told[name] for name in meant}, **arguments}, kept if isinstance(kept, dict) else {}


def spelled(arguments: Json) -> JsonValue:
    """Return the value, redacted. Text that is a JSON object or list is parsed, since some clients can only send text."""
    kept = value(arguments)
    if isinstance(kept, str) and kept.lstrip()[:1] in ("{", "["):
        try:
            told = json.loads(kept, parse_constant=_no_number)
        except (ValueError, RecursionError):
            return kept
        return value({"value": told})
    return kept


def _no_number(name: str) -> JsonValue:
    raise ValueError(name)


def key(arguments: Json, name: str = "key") -> str:
    """Return the key unredacted, for `writable_key` or `readable_key`, which redact before they check the length."""
    if isinstance(told := arguments.get(name, ""), str) and len(told) > _LONGEST_GIVEN:
        raise UsageError(f"{name} is too long", hint=_KEY_TOO_LONG)
    return text(arguments, name, longest=_LONGEST_GIVEN, needed=name == "key")


def text(arguments: Json, name: str, *, longest: int = LONGEST_NAME, needed: bool = False) -> str:
    """Return the text unredacted, for `clean` or for a lookup."""
    value = arguments.get(name, "")
    if not isinstance(value, str):
        raise UsageError(f"{name} is not text", hint=f"give {name} as a string")
    if len(value) > longest:
        raise UsageError(f"{name} is too long", hint=f"at most {longest:,} characters")
    if needed and not value.strip():
        raise UsageError(f"{name} is missing", hint=f"give {name} as a string that is not empty")
    return value.encode("utf-8", "replace").decode()


def line(arguments: Json, name: str, *, longest: int = LONGEST_NAME, needed: bool = False) -> str:
    """Return a name that must be on one line."""
    value = text(arguments, name, longest=longest, needed=needed).strip()
    if _CONTROL.search(value):
        raise UsageError(f"{name} holds control characters", hint=f"give {name} on one line")
    return one_line(value)


def whole(arguments: Json, name: str, *, least: int, most: int, otherwise: int) -> int:
    """Return a whole number, or raise `UsageError` if it is not between ``least`` and ``most``."""
    value = arguments.get(name, otherwise)
    if not _is_number(value) or value != int(value):
        raise UsageError(f"{name} is not a whole number", hint=f"give {name} as a number from {least} to {most:,}")
    if value < least:
        raise UsageError(f"{name} is too small", hint=f"give {name} as a number from {least} to {most:,}")
    if value > most:
        raise UsageError(f"{name} is too large", hint=f"give {name} as a number from {least} to {most:,}")
    return int(value)


def yes(arguments: Json, name: str) -> bool:
    value = arguments.get(name, False)
    if not isinstance(value, bool):
        raise UsageError(f"{name} is neither true nor false", hint=f"give {name} as true, or leave it out")
    return value


def choice(arguments: Json, name: str, kinds: type[_Choice]) -> _Choice | None:
    """Return the chosen member, or ``None`` if the argument is missing or empty."""
    value = arguments.get(name, "")
    if value == "":
        return None
    try:
        return kinds(value)
    except ValueError:
        raise UsageError(f"{name} is none that is known", hint=f"choose one of: {', '.join(kinds)}") from None


def tags(arguments: Json) -> tuple[str, ...]:
    value = arguments.get("tags", [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise UsageError("tags are not a list of text", hint='as in: ["database", "deploy"]')
    if len(value) > MOST_TAGS:
        raise UsageError("there are too many tags", hint=f"at most {MOST_TAGS}")
    return written_tags([clean(beginning(each, 4 * LONGEST_TAG)) for each in value])


def written_tags(given: Sequence[str]) -> tuple[str, ...]:
    """Return tags as notes store them: one lower-case word each, without those of digits only."""
    words = (_NO_TAG.sub("-", each.removeprefix("#").casefold()).strip("-/_")[:LONGEST_TAG] for each in given)
    return tuple(dict.fromkeys(word for word in words if word and not word.isdigit()))[:MOST_TAGS]


def writable_key(given: str) -> str:
    """Return a valid key to write to, redacted. Raises `UsageError` for a pattern."""
    key = readable_key(given)
    if not WILD.isdisjoint(key):
        raise UsageError("a key to write to has no * or ? in it", hint="wildcards are for read_memory and list_memories")
    return key


def readable_key(given: str) -> str:
    """Return a valid key or a pattern of keys, redacted."""
    if _CONTROL.search(given):
        raise UsageError("key holds control characters", hint="letters, digits, dots, dashes and blanks make good keys")
    key = clean(given).strip()
    if not key:
        raise UsageError("key is missing", hint="as in: project.database, current.task, shared.conventions")
    if len(key) > LONGEST_KEY:
        raise UsageError("key is too long", hint=_KEY_TOO_LONG)
    if key.startswith("/") or ".." in key.replace("\\", "/").split("/"):
        raise UsageError("a key is no path", hint="separate its parts by dots, as in: project.database.port")
    if one_line(key) != key:
        raise UsageError("key has blanks or characters that nobody sees", hint="one plain blank between two words is fine")
    return key


def ends(arguments: Json, now: datetime) -> datetime | None:
    """Return the expiry from ``ttl`` in seconds, ``None`` for never. Rounded up to a whole second, the precision of notes."""
    value = arguments.get("ttl")
    if value is None:
        return None
    if not _is_number(value) or value <= 0:
        raise UsageError("ttl is not a number of seconds above 0", hint="leave it out for what shall stay")
    if value > LONGEST_TTL.total_seconds():
        raise UsageError("ttl is more than ten years", hint="leave it out for what shall stay")
    end = now + timedelta(seconds=value)
    return end.replace(microsecond=0) + timedelta(seconds=1) if end.microsecond else end


def _is_number(value: object) -> TypeGuard[int | float]:
    """Return whether the value is a finite number. An integer may have any size; callers check its bounds."""
    match value:
        case bool():
            return False
        case int():
            return True
        case float():
            return math.isfinite(value)
        case _:
            return False


def value(arguments: Json, name: str = "value") -> JsonValue:
    """Return any JSON value, redacted. Raises `UsageError` if it is too large or too deep to be returned whole."""
    if name not in arguments:
        raise UsageError(f"{name} is missing", hint="give any JSON: text, a number, a list, an object")
    looked = _Looked()
    given = looked.at(arguments[name], DEEPEST_VALUE)
    together = "\n".join(looked.lines)
    kept = given if clean(together) == together else _cleaned(given)
    if len(written(kept)) > LONGEST_SPELLED:
        raise UsageError(
            f"{name} is too large to be answered whole: tags, line breaks and invisible characters are spelled out in an answer",
            hint=f"at most {LONGEST_SPELLED:,} characters of JSON so spelled; put it into a file, and remember where it is",
        )
    return kept


class _Looked:
    """State of the check of one value: the size that is left for it as JSON, and all its text, a line each.

    A secret is often recognized by its field name, so a named text is also listed with its name.
    """

    def __init__(self) -> None:
        self._left = LONGEST_VALUE
        self.lines: list[str] = []

    def _take(self, length: int) -> None:
        self._left -= length
        if self._left < 0:
            raise UsageError(
                "value is too large",
                hint=f"at most {LONGEST_VALUE // 1000} kB of JSON; put it into a file, and remember where it is",
            )

    def _text(self, given: str) -> str:
        text = given.encode("utf-8", "replace").decode()
        self._take(len(text.encode()) + 2)
        self.lines.append(text)
        return text

    def at(self, given: object, deeper: int) -> JsonValue:
        if deeper < 0:
            raise UsageError("value is nested too deeply", hint=f"at most {DEEPEST_VALUE} levels")
        match given:
            case None | bool():
                self._take(5)
                return given
            case int():
                self._take(20)
                if not -_WHOLE <= given < _WHOLE:
                    raise UsageError("value holds a number that is too large", hint="give it as text")
                return given
            case float():
                self._take(20)
                if not math.isfinite(given):
                    raise UsageError("value holds a number that is none", hint="NaN and Infinity are no JSON; give null or text")
                return given
            case str():
                return self._text(given)
            case list():
                self._take(2 + len(given))
                return [self.at(each, deeper - 1) for each in given]
            case dict():
                self._take(2 + 2 * len(given))
                return {self._named(name, each): self.at(each, deeper - 1) for name, each in given.items()}
            case _:
                raise UsageError("value is no JSON", hint="give text, a number, true, false, null, a list or an object")

    def _named(self, name: object, value: object) -> str:
        if not isinstance(name, str):
            raise UsageError("value has a key that is no text", hint="the keys of a JSON object are strings")
        if isinstance(value, str):
            self.lines.append(f"{name}={value}".encode("utf-8", "replace").decode())
        return self._text(name)


def _cleaned(given: JsonValue) -> JsonValue:
    match given:
        case str():
            return clean(given)
        case list():
            return [_cleaned(each) for each in given]
        case dict():
            return {clean(name): _field(name, _cleaned(each)) for name, each in given.items()}
        case _:
            return given


def _field(name: str, value: JsonValue) -> JsonValue:
    if not isinstance(value, str) or not value:
        return value
    line = f"{name}={value}"
    told = clean(line)
    if told == line or clean(name) != name:
        return value
    return told.removeprefix(f"{name}=") if told.startswith(f"{name}=") else "[redacted]"


def clean(given: str) -> str:
    """Return the text without secrets and without parts marked as private; invalid characters are replaced."""
    if not given:
        return given
    return redact(drop_private(given.encode("utf-8", "replace").decode()))
