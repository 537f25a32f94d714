"""Codex's tools: their arguments, results, and the files that a patch changes."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from kite_memory.model.event import Status
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.event_builder import Toolbox
from kite_memory.sources.common.tool_text import COMMAND_LIMIT, scalar, whole_path
from kite_memory.text import lazy_regex

COMMANDS = frozenset({"exec_command", "shell", "shell_command", "local_shell", "container.exec", "unified_exec"})
PATCHERS = frozenset({"apply_patch"})
ASKERS = frozenset({"request_user_input", "ask_question", "ask_user_question"})

TOOLS = Toolbox(
    shells=COMMANDS | {"write_stdin"},
    readers=frozenset({"view_image"}),
    lookers=frozenset({"view_image", "read_file", "list_dir", "grep_files"}),
    writers={},
    paths=("path", "file_path"),
    asking=dict.fromkeys(ASKERS, "question"),
)

_FILES = 50
_PATCH_SEEN = 400_000
_HEADER_SEEN = 20_000
_NOISE = frozenset(
    {"yield_time_ms", "max_output_tokens", "timeout_ms", "login", "tty", "shell", "workdir", "with_escalated_permissions"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodexCall:
    """A call in the form shared by all sources: a command under ``command``, a path under ``path``.

    ``files`` are those that a patch would change, and how; ``process`` is the running process that a call writes to; ``elsewhere``
    means that a command runs in another folder than the session's.
    """

    tool: str
    given: Mapping[str, Any]
    files: tuple[tuple[str, str], ...] = ()
    process: str = ""
    elsewhere: bool = False


def codex_call(item: Mapping[str, Any], cwd: str) -> CodexCall:
    """Parse one ``…_call`` item."""
    match item:
        case {"type": "local_shell_call", "action": dict(action)}:
            return _command("local_shell", action, cwd)
        case {"type": "web_search_call"}:
            return CodexCall(tool="web_search", given=arguments(item.get("action")))
        case {"type": "custom_tool_call", "name": str(name), "input": str(text)} if name not in COMMANDS:
            if name in PATCHERS:
                return _patch(name, text, cwd)
            return CodexCall(tool=name[:128], given={"input": text}, files=patched(text, cwd))
        case _:
            given_name = item.get("name")
            tool = (
                given_name[:128]
                if isinstance(given_name, str) and given_name
                else scalar(item.get("type")).removesuffix("_call")[:128]
            )
            given = arguments(item.get("arguments", item.get("input")))
            if tool in COMMANDS:
                return _command(tool, given, cwd)
            if tool in PATCHERS:
                patch = given.get("input", given.get("patch"))
                return _patch(tool, patch if isinstance(patch, str) else "", cwd)
            if tool in ASKERS:
                return CodexCall(tool=tool, given={"question": _questions(given)})
            process = scalar(given.get("session_id", ""))[:64] if tool == "write_stdin" else ""
            return CodexCall(tool=tool, given={key: value for key, value in given.items() if key not in _NOISE}, process=process)


def arguments(value: object) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return {"input": value} if value else {}
    return value if isinstance(value, dict) else {}


def command_line(command: object) -> str:
    """Return the command without the shell that runs it."""
    if isinstance(command, str):
        return command.strip()
    if not isinstance(command, list):
        return ""
    words = [word for word in command[:200] if isinstance(word, str)]
    if len(words) == 3 and words[1] in ("-lc", "-c", "-Command", "/c"):
        return words[2].strip()
    return " ".join(words).strip()


def _command(tool: str, given: Mapping[str, Any], cwd: str) -> CodexCall:
    command = command_line(given.get("cmd", given.get("command")))
    where = given.get("workdir", given.get("working_directory"))
    others = {key: value for key, value in given.items() if key not in _NOISE and key not in ("cmd", "command", "type")}
    there = where if isinstance(where, str) and where else cwd
    given = {**others, "command": beginning(command, 4 * COMMAND_LIMIT)}
    return CodexCall(tool=tool, given=given, files=patched(command, there), elsewhere=there.rstrip("/\\") != cwd.rstrip("/\\"))


def _patch(tool: str, text: str, cwd: str) -> CodexCall:
    files = patched(text, cwd)
    return CodexCall(tool=tool, given={"path": files[0][0] if files else "", "patch": text}, files=files)


def _questions(given: Mapping[str, Any]) -> str:
    match given:
        case {"question": str(question)}:
            return question
        case {"questions": list(questions)}:
            return "\n".join(
                each["question"] for each in questions[:10] if isinstance(each, dict) and isinstance(each.get("question"), str)
            )
        case _:
            return ""


_PATCH_LINE = lazy_regex(r"\*\*\* (Add|Update|Delete) File: (.{1,1024})|\*\*\* Move to: (.{1,1024})|\*\*\* End Patch")


def patched(text: str, cwd: str) -> tuple[tuple[str, str], ...]:
    """Return the files that an ``apply_patch`` text changes, and how: full paths if it is known what they are relative to."""
    begin = text.find("*** Begin Patch", 0, _PATCH_SEEN)
    if begin < 0:
        return ()
    done: list[list[Any]] = []
    for line in text[begin : begin + _PATCH_SEEN].splitlines():
        if line.startswith("***"):
            match = _PATCH_LINE.fullmatch(line.rstrip())
            if match is None:
                continue
            if match[1]:
                if len(done) == _FILES:
                    break
                done.append([whole_path(match[2], cwd), match[1], 0, 0])
            elif match[3] and done:
                done[-1][0] = whole_path(match[3], cwd)
            elif match[0].startswith("*** End"):
                break
        elif done:
            done[-1][2] += line.startswith("+")
            done[-1][3] += line.startswith("-")
    return tuple((path, how(kind, added, removed)) for path, kind, added, removed in done)


def changed(changes: object, cwd: str) -> tuple[tuple[str, str], ...]:
    """Return what `patched` does, from the client's later report: ``{path: {type, …}}``."""
    if not isinstance(changes, dict):
        return ()
    done: list[tuple[str, str]] = []
    for path, change in list(changes.items())[:_FILES]:
        if isinstance(path, str) and isinstance(change, dict):
            diff = change.get("unified_diff")
            lines = diff[:_PATCH_SEEN].splitlines() if isinstance(diff, str) else []
            moved = change.get("move_path")
            kind = {"add": "Add", "delete": "Delete"}.get(scalar(change.get("type")), "Update")
            counted = (sum(line.startswith(sign) and not line.startswith(sign * 3) for line in lines) for sign in "+-")
            done.append((whole_path(moved if isinstance(moved, str) and moved else path, cwd), how(kind, *counted)))
    return tuple(done)


def how(kind: str, added: int, removed: int) -> str:
    match kind:
        case "Add":
            return "created"
        case "Delete":
            return "deleted"
        case _:
            return f"edited, {added} lines added, {removed} removed" if added or removed else "edited"


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Result of a call. ``process`` is the name of a process that still runs when its first output is recorded."""

    text: str
    status: Status
    process: str = ""


_DRESS = ("Chunk ID: ", "Exit code: ", "Wall time: ", "Command: ", "Process exited ", "Process running ", "Script ")
_EXIT = lazy_regex(r"^(?:Process exited with code|Exit code:) (-?\d{1,10})\s*$", re.MULTILINE)
_RUNNING = lazy_regex(r"^Process running with session ID (\S{1,64})\s*$", re.MULTILINE)
_SCRIPT = lazy_regex(r"Script (completed|failed|running|terminated|aborted)\b")
_FAILED = lazy_regex(
    r"(?:[\w/.-]{1,60} )?(?:verification |call )?failed\b|failed to |unsupported call|error:|err:|tool call error"
    r"|patch rejected|command timed out|agent with id \S{1,64} not found",
    re.IGNORECASE,
)
_DENIED = lazy_regex(
    r"(?:[\w ]{0,40} )?(?:rejected by (?:the )?user|denied by (?:the )?user)|user rejected|User denied|rejected\("
    r"|exec_command failed for .{0,200}?Rejected\(|approval (?:was )?denied"
)
_INTERRUPTED = lazy_regex(r"aborted(?: by user)?\b|interrupted\b|Script (?:terminated|aborted)", re.IGNORECASE)


def output_of(value: object) -> Output:
    """Parse the ``output`` of a result in all formats used so far."""
    said_so: bool | None = None
    match value:
        case {"content": content, "success": bool(success)}:
            value, said_so = content, success
        case {"content": content} | {"output": content}:
            value = content
        case _:
            pass
    text, code = _of_json(text_of(value))
    if not text.startswith(_DRESS):
        return Output(text=text.strip(), status=_status(code, said_so, text))
    header, _, body = text.partition("Output:\n")
    header = header[:_HEADER_SEEN]
    if ended := _EXIT.search(header):
        code = int(ended[1])
    elif running := _RUNNING.search(header):
        return Output(text=body.strip(), status="", process=running[1])
    return Output(text=body.strip(), status=_status(code, said_so, header))


def _status(code: int | None, said_so: bool | None, text: str) -> Status:
    if code is not None:
        return "ok" if code == 0 else "failed"
    first = text[:400].lstrip()
    if _DENIED.match(first):
        return "denied"
    if _INTERRUPTED.match(first):
        return "interrupted"
    if said_so is not None:
        return "ok" if said_so else "failed"
    script = _SCRIPT.match(first)
    if script is not None:
        return "failed" if script[1] == "failed" else "ok"
    return "failed" if _FAILED.match(first) else "ok"


def _of_json(text: str) -> tuple[str, int | None]:
    """Parse ``{"output": …, "metadata": {"exit_code": …}}``, written before 0.14x; other JSON is the output itself."""
    if not text.startswith("{"):
        return text, None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text, None
    match value:
        case {"output": str(output), "metadata": {"exit_code": int(code)}}:
            return output, code
        case {"output": str(output), "metadata": dict()}:
            return output, None
        case _:
            return text, None


def text_of(content: object) -> str:
    """Return the text of a message's or a result's content; images are named, not kept."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    return "\n".join(_texts(content))


def _texts(content: Iterable[object]) -> Iterable[str]:
    for part in content:
        match part:
            case {"text": str(text)}:
                yield text
            case {"type": "input_image" | "image" | "output_image"}:
                yield "[image]"
            case str():
                yield part
            case _:
                continue
