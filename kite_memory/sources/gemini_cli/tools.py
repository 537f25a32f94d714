"""Gemini CLI's tools: what a call asks for, what came of it, which file it changed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kite_memory.model.event import Status
from kite_memory.sources.common.event_builder import Toolbox
from kite_memory.sources.common.whole_path import whole_path
from kite_memory.sources.common.words import without_blocks

SHELLS = frozenset({"run_shell_command", "run_command", "shell"})
_EDITORS = {"write_file": "written", "replace": "edited", "edit": "edited"}

TOOLS = Toolbox(
    shells=SHELLS,
    readers=frozenset({"read_file"}),
    lookers=frozenset({"read_file", "read_many_files", "list_directory", "glob", "grep_search", "search_file_content"}),
    writers=_EDITORS,
    paths=("file_path", "absolute_path", "path", "dir_path"),
    asking={"ask_user": "question"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What a call came to. ``done`` is the file that it changed, and how, where its result says so."""

    text: str
    status: Status
    done: tuple[tuple[str, str], ...] = ()


_WAITING = frozenset({"validating", "scheduled", "awaiting_approval", "executing"})
_DRESS = ("Command: ", "Output: ", "Stdout: ")
_AFTER_OUTPUT = re.compile(
    r"\n(?:Error: \(none\)|Exit Code: (?P<code>\S{1,20})|Signal: \S+|Background PIDs: [^\n]*|Process Group PGID: [^\n]*)\s*\Z"
)
_LINES_AFTER = 8
_CHANGED = re.compile(r"Successfully (?:overwrote file|modified file|created and wrote to new file)|Created new file")
_CHANGED_PATH = re.compile(r"(?:file|File): (.{1,1024}?)(?:\.?\s*\Z|\. |\ \(\d| with provided content)")
_CANCELLED = ("Command was cancelled by user", "[Operation Cancelled] ")
_DENIED = re.compile(r"(?i)user (?:did not allow|denied|declined|rejected)|denied by policy|not allowed|\bblocked\b")


def asked(tool: str, args: object, cwd: str) -> dict[str, Any]:
    """The arguments, with a whole path and one question."""
    given: dict[str, Any] = dict(args) if isinstance(args, dict) else {}
    for key in TOOLS.paths:
        if isinstance(path := given.get(key), str) and path:
            given[key] = whole_path(path, cwd)
    if tool in TOOLS.asking and isinstance(questions := given.get("questions"), list):
        said = [each["question"] for each in questions[:10] if isinstance(each, dict) and isinstance(each.get("question"), str)]
        given = {"question": "\n".join(said)}
    return given


def came_of(tool: str, call: Mapping[str, Any], cwd: str) -> Came | None:
    """Read the result that stands in a call; ``None`` while there is none."""
    status, result = call.get("status"), call.get("result")
    if (isinstance(status, str) and status in _WAITING) or (status is None and not result):
        return None
    text, failed = response_text(result)
    shown = call.get("resultDisplay")
    if not text and isinstance(shown, str):
        text = shown
    match status:
        case "cancelled":
            return Came(text=text, status="denied" if _DENIED.search(text[:2000]) else "interrupted")
        case "error":
            return Came(text=_unwrapped(tool, text)[0], status="failed")
        case _:
            return came(tool, text, failed=failed, shown=shown, cwd=cwd)


def came(tool: str, text: str, *, failed: bool, shown: object = None, cwd: str = "") -> Came:
    """The same, where the result stands alone."""
    text, code = _unwrapped(tool, text)
    if text.startswith(_CANCELLED):
        return Came(text=text, status="denied" if _DENIED.search(text.partition("\n")[0]) else "interrupted")
    bad = failed or (code or 0) != 0 or text.startswith("Command was automatically cancelled")
    done = () if bad else _changed(tool, text, shown, cwd)
    return Came(text=text, status="failed" if bad else "ok", done=done)


def response_text(result: object) -> tuple[str, bool]:
    """The text of a call's ``functionResponse`` parts, and whether it is that of an error. What hooks add to it is left out."""
    texts: list[str] = []
    failed = False
    for part in result if isinstance(result, list) else [result]:
        match part:
            case {"functionResponse": {"response": dict(response)}}:
                error = response.get("error")
                failed = failed or bool(error)
                told = response.get("output", response.get("content")) or error
                if isinstance(told, str):
                    texts.append(told)
            case {"text": str(text)} | str(text):
                texts.append(text)
            case _:
                continue
    return without_blocks("\n".join(texts), "hook_context", unclosed_too=True), failed


def _unwrapped(tool: str, text: str) -> tuple[str, int | None]:
    """The output itself, and the exit code that is told around it: none is told of a command that went well."""
    text = text.strip()
    if text.startswith("<untrusted_context>"):
        text = text.removeprefix("<untrusted_context>").removesuffix("</untrusted_context>").strip()
    if tool not in SHELLS or not text.startswith(_DRESS):
        return text, None
    code = ""
    for _ in range(_LINES_AFTER):
        trimmed = _AFTER_OUTPUT.search(text, max(0, len(text) - 2000))
        if trimmed is None:
            break
        code = trimmed["code"] or code
        text = text[: trimmed.start()]
    text = text.partition("Output: ")[2].strip() if "Output: " in text else text
    ended = int(code) if code.lstrip("-").isdecimal() else None
    return "" if text == "(empty)" else text, ended


def _changed(tool: str, text: str, shown: object, cwd: str) -> tuple[tuple[str, str], ...]:
    if tool not in _EDITORS:
        return ()
    facts: Mapping[str, Any] = shown if isinstance(shown, dict) else {}
    told = _CHANGED_PATH.search(text, 0, 2000) if _CHANGED.match(text) else None
    path = facts.get("filePath") or (told[1] if told else "")
    if not isinstance(path, str) or not path:
        return ()
    if facts.get("isNewFile") is True or text.startswith(("Successfully created", "Created new file")):
        return ((whole_path(path, cwd), "created"),)
    counts = facts.get("diffStat")
    added, removed = _count(counts, "model_added_lines"), _count(counts, "model_removed_lines")
    how = f"edited, {added} lines added, {removed} removed" if added or removed else _EDITORS[tool]
    if _count(counts, "user_added_lines") or _count(counts, "user_removed_lines"):
        how = f"{how}; the user changed it before accepting"
    return ((whole_path(path, cwd), how),)


def _count(counts: object, key: str) -> int:
    value = counts.get(key) if isinstance(counts, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
