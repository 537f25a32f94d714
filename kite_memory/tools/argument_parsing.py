"""Validation of tool arguments, and a memory's value as the body of a note that a person can read and edit.

Arguments have the right type, are within bounds, and hold no secrets. Error messages say what is valid and never repeat a
value.
"""

import json
import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeGuard, TypeVar

from kite_memory.errors import UsageError
from kite_memory.redaction import drop_private, redact, redact_id
from kite_memory.redaction.cutting import beginning
from kite_memory.text.quoting import mended, safe_json
from kite_memory.tools.store import JsonValue
from kite_memory.vault.links import tame
from kite_memory.vault.wording import one_line, text_block, without_hidden

WILD = frozenset("*?")


def is_pattern(text: str) -> bool:
    return not WILD.isdisjoint(text)


def literal_prefix(pattern: str) -> str:
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
        value: JsonValue = json.loads(fence[1], parse_constant=_not_json)
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


def _not_json(name: str) -> JsonValue:
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


def context(given: object) -> dict[str, JsonValue]:
    """Return what to store beside a memory's value, redacted."""
    if not isinstance(given, dict):
        raise UsageError("context is not an object", hint='as in: {"reason": "asked for in review", "tags": ["deploy"]}')
    kept = value("context", given)
    if len(safe_json(kept)) > LONGEST_CONTEXT:
        raise UsageError(
            "context is too large", hint=f"at most {LONGEST_CONTEXT:,} characters of JSON; the rest belongs into the value"
        )
    return kept if isinstance(kept, dict) else {}


def members(given: object) -> dict[str, Any]:
    """Return an object that is parsed later. Text that is a JSON object is read, since some clients can only send text."""
    if isinstance(given, str):
        try:
            given = json.loads(given, parse_constant=_no_number)
        except (ValueError, RecursionError):
            given = None
    if not isinstance(given, dict):
        raise UsageError("arguments are not an object", hint='as in: {"note": "01JD…"}')
    return given


def spelled(given: object) -> JsonValue:
    """Return the value, redacted. Text that is a JSON object or list is parsed, since some clients can only send text."""
    kept = value("value", given)
    if isinstance(kept, str) and kept.lstrip()[:1] in ("{", "["):
        try:
            parsed = json.loads(kept, parse_constant=_no_number)
        except (ValueError, RecursionError):
            return kept
        return value("value", parsed)
    return kept


def _no_number(name: str) -> JsonValue:
    raise ValueError(name)


def text(name: str, given: object, *, longest: int = LONGEST_NAME, needed: bool = False) -> str:
    """Return the text unredacted, for `clean` or for a lookup."""
    if not isinstance(given, str):
        raise UsageError(f"{name} is not text", hint=f"give {name} as a string")
    if len(given) > longest:
        raise UsageError(f"{name} is too long", hint=f"at most {longest:,} characters")
    if needed and not given.strip():
        raise UsageError(f"{name} is missing", hint=f"give {name} as a string that is not empty")
    return mended(given)


def line(name: str, given: object, *, longest: int = LONGEST_NAME, needed: bool = False) -> str:
    """Return a name that must be on one line."""
    stripped = text(name, given, longest=longest, needed=needed).strip()
    if _CONTROL.search(stripped):
        raise UsageError(f"{name} holds control characters", hint=f"give {name} on one line")
    return one_line(stripped)


def identifier(name: str, given: object, *, needed: bool = False) -> str:
    """Return an id that an agent chose, on one line, or one made from its hash if it holds a secret."""
    return redact_id(line(name, given, needed=needed))


def lines(name: str, given: object, *, longest: int, most: int) -> tuple[str, ...]:
    """Return one name or a list of them."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not 0 < len(listed) <= most:
        raise UsageError(f"{name} are not a list", hint=f"give from 1 to {most} of them")
    return tuple(line(name, each, longest=longest, needed=True) for each in listed)


def whole(name: str, given: object, *, least: int, most: int) -> int:
    """Return a whole number, or raise `UsageError` if it is not between ``least`` and ``most``."""
    if not _is_number(given) or given != int(given):
        raise UsageError(f"{name} is not a whole number", hint=f"give {name} as a number from {least} to {most:,}")
    if given < least:
        raise UsageError(f"{name} is too small", hint=f"give {name} as a number from {least} to {most:,}")
    if given > most:
        raise UsageError(f"{name} is too large", hint=f"give {name} as a number from {least} to {most:,}")
    return int(given)


def yes(name: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise UsageError(f"{name} is neither true nor false", hint=f"give {name} as true, or leave it out")
    return given


def choice(name: str, kinds: type[_Choice], given: object, *, among: Sequence[_Choice] = ()) -> _Choice | None:
    """Return the chosen member, or ``None`` if the argument is empty."""
    if given == "":
        return None
    for kind in among or kinds:
        if given == kind.value:
            return kind
    raise UsageError(f"{name} is unknown", hint=f"choose one of: {', '.join(among or kinds)}")


def choices(name: str, kinds: type[_Choice], given: object) -> frozenset[_Choice]:
    """Return the chosen members of a list, or of a single one; none if it is empty."""
    try:
        return frozenset(map(kinds, [given] if isinstance(given, str) and given else given or []))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise UsageError(f"{name} are not a list of {name}", hint=f"choose among: {', '.join(kinds)}") from None


def tags(given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise UsageError("tags are not a list of text", hint='as in: ["database", "deploy"]')
    if len(given) > MOST_TAGS:
        raise UsageError("there are too many tags", hint=f"at most {MOST_TAGS}")
    return written_tags([clean(beginning(each, 4 * LONGEST_TAG)) for each in given])


def written_tags(given: Sequence[str]) -> tuple[str, ...]:
    """Return tags as notes store them: one lower-case word each, without those of digits only."""
    words = (_NO_TAG.sub("-", each.removeprefix("#").casefold()).strip("-/_")[:LONGEST_TAG] for each in given)
    return tuple(dict.fromkeys(word for word in words if word and not word.isdigit()))[:MOST_TAGS]


def key(given: object) -> str:
    """Return a key or a pattern as an agent sends it; see `readable_key`."""
    if isinstance(given, str) and len(given) > _LONGEST_GIVEN:
        raise UsageError("key is too long", hint=_KEY_TOO_LONG)
    return readable_key(text("key", given, longest=_LONGEST_GIVEN, needed=True))


def key_to_write(given: object) -> str:
    return writable_key(key(given))


def pattern(given: object) -> str:
    return key(given) if given != "" else ""


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
        raise UsageError("key has invisible characters or repeated blanks", hint="one plain blank between two words is fine")
    return key


def seconds(given: object) -> float:
    """Return a span of time."""
    if not _is_number(given) or given <= 0:
        raise UsageError("ttl is not a number of seconds above 0", hint="leave it out for what shall stay")
    if given > LONGEST_TTL.total_seconds():
        raise UsageError("ttl is more than ten years", hint="leave it out for what shall stay")
    return given


def ends(ttl: float | None, now: datetime) -> datetime | None:
    """Return when that many seconds are over, ``None`` for never. Rounded up to a whole second, the precision of notes."""
    if ttl is None:
        return None
    end = now + timedelta(seconds=ttl)
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


def value(name: str, given: object) -> JsonValue:
    """Return any JSON value, redacted. Raises `UsageError` if it is too large or too deep to be returned whole."""
    looked = _Looked()
    checked = looked.at(given, DEEPEST_VALUE)
    together = "\n".join(looked.lines)
    kept = checked if clean(together) == together else _cleaned(checked)
    if len(safe_json(kept)) > LONGEST_SPELLED:
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
        text = mended(given)
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
                    raise UsageError("value holds an invalid number", hint="NaN and Infinity are not JSON; give null or text")
                return given
            case str():
                return self._text(given)
            case list():
                self._take(2 + len(given))
                self.lines += [line for _, line in _pair(given)]
                return [self.at(each, deeper - 1) for each in given]
            case dict():
                self._take(2 + 2 * len(given))
                self.lines += [line for _, line in _pair(given)]
                return {self._named(name, each): self.at(each, deeper - 1) for name, each in given.items()}
            case _:
                raise UsageError("value is no JSON", hint="give text, a number, true, false, null, a list or an object")

    def _named(self, name: object, value: object) -> str:
        if not isinstance(name, str):
            raise UsageError("value has a key that is no text", hint="the keys of a JSON object are strings")
        if isinstance(value, str):
            self.lines.append(mended(f"{name}={value}"))
        return self._text(name)


_NAMES = ("name", "key", "field", "label", "type", "title")
_VALUES = ("value", "val", "default", "content", "data", "text")


def _pair(given: object) -> list[tuple[str | int, str]]:
    """Return where a text is that another names, and both as one line: ``["password", "…"]``, ``{"name": …, "value": …}``."""
    match given:
        case [str(name), str(value)]:
            return [(1, mended(f"{name}={value}"))]
        case dict():
            names = [given[key] for key in _NAMES if isinstance(given.get(key), str)]
            held = [(key, given[key]) for key in _VALUES if isinstance(given.get(key), str)]
            return [(key, mended(f"{named}={text}")) for named in names for key, text in held]
        case _:
            return []


def _cleaned(given: JsonValue) -> JsonValue:
    secret = {place for place, line in _pair(given) if clean(line) != line}
    match given:
        case str():
            return clean(given)
        case list():
            return ["[redacted]" if place in secret else _cleaned(each) for place, each in enumerate(given)]
        case dict():
            return {clean(name): "[redacted]" if name in secret else _field(name, _cleaned(each)) for name, each in given.items()}
        case _:
            return given


def _field(name: str, value: JsonValue) -> JsonValue:
    if not isinstance(value, str) or not value:
        return value
    line = f"{name}={value}"
    cleaned = clean(line)
    if cleaned == line or clean(name) != name:
        return value
    return cleaned.removeprefix(f"{name}=") if cleaned.startswith(f"{name}=") else "[redacted]"


def clean(given: str) -> str:
    """Return the text without secrets and without parts marked as private; invalid characters are replaced."""
    if not given:
        return given
    return redact(drop_private(mended(given)))
