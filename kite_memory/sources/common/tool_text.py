"""Fields and tools of records in Claude Code's form: extracted whatever is missing, and rendered as bounded text."""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import orjson

from kite_memory.model.event import PLANNING, Status
from kite_memory.redaction import drop_private, redact
from kite_memory.redaction.cutting import beginning, ends
from kite_memory.sources.common.words import without_echo


def scalar(value: object) -> str:
    """Return ``str(value)``; "…" for a list or dict, which may be nested too deeply for Python."""
    return "…" if isinstance(value, dict | list) else str(value)


_BLOCKS = 2_000
_NAME_LIMIT = 128
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ODD = re.compile(r"[^A-Za-z0-9_./-]+")


def moment(value: object) -> datetime | None:
    """Parse a line's time as UTC; return ``None`` if it cannot be parsed."""
    try:
        match value:
            case str():
                at = datetime.fromisoformat(value)
            case bool():
                return None
            case int() | float():
                at = datetime.fromtimestamp(value / 1000, UTC)
            case _:
                return None
        if at.tzinfo is None:
            return at.replace(tzinfo=UTC)
        return at if at.tzinfo is UTC else at.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


_BARE = frozenset({"data", "signature", "encrypted_content", "encrypted_index", "id", "tool_use_id", "uuid"})
_DEEPEST = 12


def texts_in(value: object, deepest: int = _DEEPEST) -> Iterator[str]:
    """Yield every text in a JSON value, in order, without member names and binary data."""
    match value:
        case str():
            yield value
        case list() if deepest:
            for each in value:
                yield from texts_in(each, deepest - 1)
        case dict() if deepest:
            for name, each in value.items():
                if name not in _BARE:
                    yield from texts_in(each, deepest - 1)
        case _:
            return


def content_of(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    message = row.get("message")
    return blocks_of(message.get("content")) if isinstance(message, dict) else []


def blocks_of(content: object) -> list[Mapping[str, Any]]:
    """Return a message's blocks; a plain text is one block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    blocks = ({"type": "text", "text": block} if isinstance(block, str) else block for block in content[:_BLOCKS])
    return [block for block in blocks if isinstance(block, dict)]


def calls_answered(row: Mapping[str, Any]) -> list[str]:
    """Return the names of the calls whose results are on a line."""
    return [short(block.get("tool_use_id")) for block in content_of(row) if block.get("type") == "tool_result"]


def may_be_a_person(row: Mapping[str, Any]) -> bool:
    """Return whether the client names no other origin than the user. Versions before 2.1.168 name none.

    ``isMeta`` marks text the client adds itself, such as a skill's body; ``turnCompanion`` an expanded command (2.1.258).
    """
    if row.get("isMeta") is True or row.get("turnCompanion") is True:
        return False
    match row.get("origin"):
        case {"kind": str(kind)} | str(kind):
            if kind != "human":
                return False
        case _:
            pass
    return row.get("promptSource") != "system"


def as_id(value: object) -> str:
    return value if isinstance(value, str) and _ID.fullmatch(value) else ""


def short(value: object) -> str:
    return value[:_NAME_LIMIT] if isinstance(value, str) else ""


def safe(value: object) -> str:
    """Return a name from a transcript in a form that is safe to count and print."""
    return (_ODD.sub("?", beginning(value, 40)) if isinstance(value, str) else "") or "without a name"


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def named(*parts: str) -> str:
    """Return an id derived from what stays the same in a copy of a line, such as a fork's."""
    return digest("\x1f".join(parts).encode("utf-8", "replace"))


_MARKS = {
    "completed": "x",
    "done": "x",
    "in_progress": ">",
    "in-progress": ">",
    "cancelled": "~",
    "deleted": "~",
}
_TEXTS = ("content", "step", "description", "title", "text")
_MOST = 100
_LENGTH = 200


def todo_lines(value: object) -> str:
    """Return a to-do list as lines; empty for anything else."""
    if not isinstance(value, list) or not value:
        return ""
    lines = [line for each in value[:_MOST] if (line := _line(each))]
    return "\n".join(lines) if len(lines) == min(len(value), _MOST) else ""


def _line(item: object) -> str:
    if not isinstance(item, Mapping) or not isinstance(status := item.get("status"), str):
        return ""
    said = next((text for key in _TEXTS if isinstance(text := item.get(key), str) and text.strip()), "")
    line = " ".join(redact(drop_private(beginning(said, 4 * _LENGTH))).split())[:_LENGTH]
    return f"[{_MARKS.get(status.casefold(), ' ')}] {line}" if line else ""


def whole_path(path: str, cwd: str) -> str:
    path = path.strip().removeprefix("file://")
    if path.startswith(("/", "~")) or PureWindowsPath(path).is_absolute():
        return beginning(path, PATH_LIMIT)
    if PureWindowsPath(cwd).is_absolute():
        return beginning(str(PureWindowsPath(cwd, path)), PATH_LIMIT)
    if not cwd.startswith("/"):
        return beginning(path, PATH_LIMIT)
    parts: list[str] = []
    for part in PurePosixPath(cwd, path).parts:
        if part == ".." and len(parts) > 1:
            parts.pop()
        elif part != "..":
            parts.append(part)
    return beginning(str(PurePosixPath(*parts)), PATH_LIMIT)


SHELLS = frozenset({"Bash", "PowerShell", "Monitor"})
SHELL_OUTPUTS = {"BashOutput": "bash_id", "TaskOutput": "task_id"}
"""Tools that return a background command's output, with the argument that names the command."""
AGENT = "Agent"
"""The tool that starts a sub-agent. Before 2.1.91 it was called Task."""
READERS = frozenset({"Read", "NotebookRead"})
LOOKERS = READERS | {"Glob", "LS"}
WRITERS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})

COMMAND_LIMIT = 4_000
RESULT_LIMIT = 4_000
READING_LIMIT = 1_200
"""A file's content is on the disk, so only enough of it is kept to recognize it."""

_CALL_LIMIT = 2_000
PLAN_LIMIT = 12_000
TODOS_LIMIT = 6_000
"""Enough for a whole list, since the open tasks are derived from it."""
_VALUE_LIMIT = 400
PATH_LIMIT = 1_024
_VALUES = 20
_PATH_KEYS = ("file_path", "notebook_path")


def shortened(text: str, limit: int) -> str:
    """Return ``text`` without our own injected blocks, and without its middle if it is longer than ``limit``."""
    text = without_echo(text)
    if len(text) <= limit:
        return text
    head = limit * 3 // 5
    first, last = ends(text, head, limit - head)
    return f"{first}\n[… {len(text) - len(first) - len(last):,} characters left out …]\n{last}"


def answer_lines(chosen: str, offered: Sequence[str]) -> list[str]:
    """Return an answer to a question, and the options that were not chosen; all that were offered, if the person typed another."""
    rest = chosen
    for label in sorted(offered, key=len, reverse=True):
        rest = rest.replace(label, "")
    typed = any(map(str.isalnum, rest))
    others = list(offered) if typed else [label for label in offered if label not in chosen]
    return [f"Answer: {chosen}", *([f"{'Offered' if typed else 'Not chosen'}: {'; '.join(others)}"] if others else [])]


def path_of(tool_input: Mapping[str, Any]) -> str:
    for key in _PATH_KEYS:
        if isinstance(value := tool_input.get(key), str):
            return without_echo(beginning(value, PATH_LIMIT))
    return ""


def command_of(tool: str, tool_input: Mapping[str, Any]) -> str:
    command = tool_input.get("command") if tool in SHELLS else None
    return shortened(command.strip(), COMMAND_LIMIT) if isinstance(command, str) else ""


def rendered_call(tool: str, tool_input: Mapping[str, Any]) -> str:
    """Return the arguments of a call as text, without its path and a shell's command, which have their own fields."""
    if tool in SHELLS:
        description = tool_input.get("description")
        return shortened(description, _VALUE_LIMIT) if isinstance(description, str) else ""
    if tool == PLANNING and isinstance(plan := tool_input.get("plan"), str):
        return shortened(plan, PLAN_LIMIT)
    return rendered_arguments(tool_input, without=_PATH_KEYS)


def rendered_arguments(given: Mapping[str, Any], *, without: Collection[str], todos: Collection[str] = ()) -> str:
    """Return the arguments of a call as text. ``todos`` are arguments that hold a to-do list as Markdown."""
    lines: list[str] = []
    limit = _CALL_LIMIT
    for key in list(given)[:_VALUES]:
        value = given[key]
        if value is None or value is False or value == "" or key in without:
            continue
        if listed := value if key in todos and isinstance(value, str) else todo_lines(value):
            lines.append(f"{beginning(key, 60)}:\n{shortened(listed, TODOS_LIMIT)}")
            limit = _CALL_LIMIT + TODOS_LIMIT
            continue
        lines.append(f"{beginning(key, 60)}: {shortened(value if isinstance(value, str) else compact(value), _VALUE_LIMIT)}")
    return shortened("\n".join(lines), limit)


def compact(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # nested too deeply, or a number too large, for orjson
        return "[…]"


def result_limit(tool: str, status: Status) -> int:
    return READING_LIMIT if tool in LOOKERS and status == "ok" else RESULT_LIMIT
