"""Parse messages of a Gemini CLI session into events, from either of the client's two formats."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from kite_memory.model.event import Event, EventType, Problem, Status
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.event_builder import (
    ANSWER_LIMIT,
    MESSAGE_LIMIT,
    SUMMARY_LIMIT,
    EventBuilder,
    OpenCall,
    OpenCalls,
    Toolbox,
    is_first,
    keep_latest,
    title_of,
)
from kite_memory.sources.common.tool_text import moment, named, safe, scalar, short, shortened, whole_path
from kite_memory.sources.common.words import OWN_EXTRACTOR_MARK, without_blocks
from kite_memory.text import lazy_regex

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
    """Result of a call. ``done`` is the file that it changed, and how, if the result names it."""

    text: str
    status: Status
    done: tuple[tuple[str, str], ...] = ()


_WAITING = frozenset({"validating", "scheduled", "awaiting_approval", "executing"})
_DRESS = ("Command: ", "Output: ", "Stdout: ")
_AFTER_OUTPUT = lazy_regex(
    r"\n(?:Error: \(none\)|Exit Code: (?P<code>\S{1,20})|Signal: \S+|Background PIDs: [^\n]*|Process Group PGID: [^\n]*)\s*\Z"
)
_LINES_AFTER = 8
_CHANGED = lazy_regex(r"Successfully (?:overwrote file|modified file|created and wrote to new file)|Created new file")
_CHANGED_PATH = lazy_regex(r"(?:file|File): (.{1,1024}?)(?:\.?\s*\Z|\. |\ \(\d| with provided content)")
_CANCELLED = ("Command was cancelled by user", "[Operation Cancelled] ")
_DENIED = lazy_regex(r"(?i)user (?:did not allow|denied|declined|rejected)|denied by policy|not allowed|\bblocked\b")


def gemini_arguments(tool: str, args: object, cwd: str) -> dict[str, Any]:
    """Return the arguments with full paths and a single question."""
    given: dict[str, Any] = dict(args) if isinstance(args, dict) else {}
    for key in TOOLS.paths:
        if isinstance(path := given.get(key), str) and path:
            given[key] = whole_path(path, cwd)
    if tool in TOOLS.asking and isinstance(questions := given.get("questions"), list):
        said = [each["question"] for each in questions[:10] if isinstance(each, dict) and isinstance(each.get("question"), str)]
        given = {"question": "\n".join(said)}
    return given


def came_of(tool: str, call: Mapping[str, Any], cwd: str) -> Came | None:
    """Parse the result inside a call; ``None`` while the call has no result yet."""
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
    """Return what `came_of` does, for a result outside a call."""
    text, code = _unwrapped(tool, text)
    if text.startswith(_CANCELLED):
        return Came(text=text, status="denied" if _DENIED.search(text.partition("\n")[0]) else "interrupted")
    bad = failed or (code or 0) != 0 or text.startswith("Command was automatically cancelled")
    done = () if bad else _changed(tool, text, shown, cwd)
    return Came(text=text, status="failed" if bad else "ok", done=done)


def response_text(result: object) -> tuple[str, bool]:
    """Return the text of a call's ``functionResponse`` parts without what hooks add, and whether it is an error."""
    texts: list[str] = []
    failed = False
    for part in result if isinstance(result, list) else [result]:
        match part:
            case {"functionResponse": {"response": dict(response)}}:
                error = response.get("error")
                failed = failed or bool(error)
                output = response.get("output", response.get("content")) or error
                if isinstance(output, str):
                    texts.append(output)
            case {"text": str(text)} | str(text):
                texts.append(text)
            case _:
                continue
    return without_blocks("\n".join(texts), "hook_context", unclosed_too=True), failed


def _unwrapped(tool: str, text: str) -> tuple[str, int | None]:
    """Return the output itself, and its exit code, which is missing if the command succeeded."""
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
    changed_path = _CHANGED_PATH.search(text, 0, 2000) if _CHANGED.match(text) else None
    path = facts.get("filePath") or (changed_path[1] if changed_path else "")
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


_INJECTED = (
    "<session_context>",
    "<loaded_context>",
    "This is the Gemini CLI. We are setting up the context for our chat.",
    "Background execution update:",
    "<background_output>",
)
_WORDLESS = lazy_regex(r"[/?][\w:.-]{0,100}")
NOT_THE_AGENTS = frozenset(
    {
        "Got it. Thanks for the context!",
        "Got it. Thanks for the additional context!",
        "[The previous response was interrupted before it completed.]",
    }
)
"""Texts that the client writes in the agent's role, so that turns alternate."""

_NUDGES = frozenset({"Please continue.", "System: Please continue."})
_REFERENCED = "\n--- Content from referenced files ---"
_STEERING = ("User steering update:", "User hint:", "User hints:")
_SNAPSHOT = lazy_regex(r"\s*<state_snapshot>")


def text_of(content: object) -> str:
    """Return the text of a message's content, without thoughts, calls and data."""
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
    """Return the client's summary of what it dropped from the conversation; empty for any other message."""
    return text.strip() if _SNAPSHOT.match(text) else ""


def is_injected(text: str) -> bool:
    """Return whether the client wrote the text on its own, not in response to the user."""
    return text.lstrip().startswith(_INJECTED)


def persons_words(message: Mapping[str, Any]) -> str:
    """Return the part of a ``user`` message that the user typed.

    Hooks add blocks with escaped brackets before and after it; the content of mentioned files follows.
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


PROVIDER = "gemini-cli"

_VERSION = 1
_EPOCH = datetime.fromtimestamp(0, UTC)
_UUID = lazy_regex(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SILENT = frozenset({"info", "warning", "error", "about", "help", "stats", "model_stats", "tool_stats", "quit", "compression"})
"""Messages that the client only shows on the screen."""

_MOST_REMEMBERED = 128
_CALLS = 200
_WORKSPACE = lazy_regex(
    r"(?:Workspace Directories:\*\*\n\s*- |working in the directory: |Current Working Directory: )([^\n]{1,4096})"
)
_ABSOLUTE = lazy_regex(r"/[^\s\"'`,;:*?<>|()\[\]{}\\]{1,1024}")
_CANDIDATES = 16
_DEEPEST = 32


@dataclass(slots=True, kw_only=True)
class GeminiState:
    """State carried from earlier messages to later ones, small enough for a cursor.

    ``said`` holds a digest of what was last returned under an id, as long as the message may be written again.
    """

    id: str = ""
    started: datetime | None = None
    last_at: datetime = _EPOCH
    ordinal: int = 0
    hash: str = ""
    cwd: str = ""
    title: str = ""
    sub_agent: bool = False
    own_session: bool = False
    answered: bool = False
    message: str = ""
    said: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)

    def new_to_us(self, what: str) -> bool:
        return is_first(self.unknown, what)

    def was_returned(self, id: str) -> bool:
        """Return whether an event with this id was returned recently; older ones are forgotten."""
        return named(id)[:12] in self.said

    def news(self, event: Event) -> bool:
        """Return whether an event differs from the one recently returned under its id."""
        name = named(event.id)[:12]
        said = named(event.type, event.text, event.status, event.path, event.command)[:8]
        known = self.said.get(name, "")
        keep_latest(self.said, name, said, _MOST_REMEMBERED)
        return known != said

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Apply a document's metadata, or a line of changes to it."""
        self.id = self.id or short(facts.get("sessionId"))
        self.hash = self.hash or short(facts.get("projectHash"))
        self.sub_agent = self.sub_agent or facts.get("kind") == "subagent"
        self.title = title_of(facts.get("summary")) or self.title
        if self.started is None:
            self.started = moment(facts.get("startTime"))
        match facts.get("directories"):
            case [str(first), *_] if not self.cwd:
                self.cwd = beginning(first, 4096)
            case _:
                pass

    def to_carry(self) -> str:
        return orjson.dumps(
            {
                "v": _VERSION,
                "id": self.id,
                "started": self.started,
                "at": self.last_at,
                "ordinal": self.ordinal,
                "hash": self.hash,
                "cwd": self.cwd,
                "title": self.title,
                "flags": [self.sub_agent, self.own_session, self.answered],
                "message": self.message,
                "told": self.said,
                "unknown": self.unknown,
            }
        ).decode()

    @staticmethod
    def from_carry(carry: str) -> "GeminiState | None":
        """Parse what `to_carry` returned; return ``None`` if another version wrote it."""
        try:
            known: dict[str, Any] = orjson.loads(carry)
            if known["v"] != _VERSION:
                return None
            return GeminiState(
                id=known["id"],
                started=datetime.fromisoformat(known["started"]) if known["started"] else None,
                last_at=datetime.fromisoformat(known["at"]),
                ordinal=known["ordinal"],
                hash=known["hash"],
                cwd=known["cwd"],
                title=known["title"],
                sub_agent=known["flags"][0],
                own_session=known["flags"][1],
                answered=known["flags"][2],
                message=known["message"],
                said=dict(known["told"]),
                unknown=list(known["unknown"]),
            )
        except (ValueError, KeyError, TypeError, IndexError):
            return None


class GeminiInterpreter:
    """Parses messages in order and collects their events. Changes only the `GeminiState` it was given."""

    def __init__(self, *, file: str, state: GeminiState) -> None:
        self.events: list[Event] = []
        self.problems: list[Problem] = []
        self._file = file
        self._state = state
        self._calls = OpenCalls()
        self._at = state.last_at
        self._place = (0, 0, 0)
        self._builder = self._new_builder()

    def _new_builder(self) -> EventBuilder:
        state = self._state
        return EventBuilder(
            provider=PROVIDER,
            session=state.id,
            file=self._file,
            tools=TOOLS,
            calls=self._calls,
            ordinal=state.ordinal,
        )

    def problem(self, position: int, reason: str) -> None:
        self.problems.append(Problem(file=self._file, position=position, reason=reason))

    def unknown(self, position: int, reason: str) -> None:
        if self._state.new_to_us(reason):
            self.problem(position, reason)

    def message(self, message: Mapping[str, Any], start: int, end: int, *, ordinal: int) -> None:
        """Parse one message at ``[start, end)``, omitting events that repeat recent ones."""
        state = self._state
        self._builder = self._new_builder()
        self._place = (start, end, ordinal)
        at = moment(message.get("timestamp"))
        if at is not None:
            state.last_at = at
            state.started = state.started or at
        self._at = state.last_at
        name = self._name(message)
        match message.get("type"):
            case "user":
                self._user(message, name)
            case "gemini" | "model":
                self._agent(message, name)
            case str() as kind if kind in _SILENT:
                pass
            case kind:
                self.unknown(start, f"unknown message {safe(kind)}")
        self.events += [event for event in self._builder.events if state.news(event)]
        state.ordinal = self._builder.ordinal

    def _name(self, message: Mapping[str, Any]) -> str:
        """Return the client's id, unless another session may use it too."""
        identifier = message.get("id")
        if isinstance(identifier, str) and _UUID.fullmatch(identifier):
            return identifier
        text = (
            identifier
            if isinstance(identifier, str) and identifier
            else f"{scalar(message.get('timestamp'))}\n{text_of(message.get('content'))}"
        )
        return named(self._state.id, text)

    def _record(self, name: str) -> None:
        start, end, ordinal = self._place
        self._builder.record(name, self._at, start, end, ordinal=ordinal)

    def _user(self, message: Mapping[str, Any], name: str) -> None:
        state = self._state
        content = message.get("content")
        for part in content[:_CALLS] if isinstance(content, list) else ():
            match part:
                case {"functionResponse": {"id": str(call), "name": str(tool)}}:
                    self._returned(short(call), short(tool), part)
                case _:
                    continue
        text = text_of(content)
        if not state.cwd and (state.sub_agent or is_injected(text)) and (found := _WORKSPACE.search(text, 0, 20_000)):
            state.cwd = found[1].strip()
        if snapshot := snapshot_of(text):
            self._record(name)
            self._builder.add(EventType.RESUME_POINT, "system", shortened(snapshot, SUMMARY_LIMIT), parent=state.message)
            return
        words = persons_words(message)
        if not words:
            return
        if not state.answered and OWN_EXTRACTOR_MARK in words:
            state.own_session = True
        before = len(self._builder.events)
        self._record(name)
        if not state.sub_agent:
            self._builder.said(words)
        elif answer := shortened(words, MESSAGE_LIMIT).strip():
            self._builder.add(EventType.ASSISTANT_MESSAGE, "assistant", answer)
        if len(self._builder.events) > before:
            state.message = name

    def _returned(self, call: str, tool: str, part: Mapping[str, Any]) -> None:
        """Add a result from a separate message, unless it was in its call before, as usual."""
        name = self._call_name(call)
        if not self._state.was_returned(named(name, "result")):
            text, failed = response_text([part])
            opened = self._calls.by_name.get(call) or OpenCall(event=name, tool=tool, detail="")
            self._came(call, came(tool, text, failed=failed), opened)

    def _agent(self, message: Mapping[str, Any], name: str) -> None:
        state = self._state
        state.answered = True
        content = message.get("content")
        text = text_of(content).strip()
        if text and text not in NOT_THE_AGENTS:
            self._record(name)
            state.message = self._builder.answered(text, parent=state.message)
        listed = message.get("toolCalls")
        calls = [call for call in listed[:_CALLS] if isinstance(call, dict)] if isinstance(listed, list) else []
        for n, call in enumerate(calls):
            self._call(short(call.get("id")) or f"{name}:{n}", call)
        known = {short(call.get("id")) for call in calls}
        for part in content[:_CALLS] if isinstance(content, list) else ():
            match part:
                case {"functionCall": {"id": str(id)} as called} if short(id) not in known:
                    self._call(short(id), called)
                case _:
                    continue

    def _call_name(self, call: str) -> str:
        return named(self._state.id, "call", call)

    def _call(self, call: str, request: Mapping[str, Any]) -> None:
        state = self._state
        tool = short(request.get("name")) or "unknown"
        given = gemini_arguments(tool, request.get("args"), state.cwd)
        self._find_folder(request.get("args"))
        name = self._call_name(call)
        at, self._at = self._at, moment(request.get("timestamp")) or self._at
        self._record(name)
        opened = self._builder.called(call, tool, given, parent=state.message)
        if (result := came_of(tool, request, state.cwd)) is not None:
            self._came(call, result, opened)
        self._at = at

    def _came(self, call: str, result: Came, opened: OpenCall) -> None:
        """Add a result under an id derived from its call, so that it is the same in either place."""
        self._record(named(opened.event, "result"))
        event = self._builder.returned(call, opened, result.text, result.status, done=result.done)
        asks = opened.tool in TOOLS.asking and result.status == "ok" and result.text
        if asks and not self._state.sub_agent:
            decided = shortened(f"{opened.detail}\nAnswer: {result.text}".strip(), ANSWER_LIMIT)
            self._builder.add(EventType.DECISION, "user", decided, tool=opened.tool, parent=event, call=call)

    def _find_folder(self, args: object) -> None:
        """Find the session's folder, known by its hash, in or above a path in a call's arguments."""
        state = self._state
        if state.cwd or len(state.hash) != 64 or not isinstance(args, dict):
            return
        text = " ".join(value[:2000] for value in args.values() if isinstance(value, str))
        state.cwd = folder_of(state.hash, _ABSOLUTE.findall(text)[:_CANDIDATES])


def folder_of(hash: str, paths: list[str]) -> str:
    """Return the path in ``paths``, or the parent of one, that has this SHA-256; empty if no path has it."""
    for path in paths:
        folder = Path(path)
        for candidate in (folder, *list(folder.parents)[:_DEEPEST]):
            if hashlib.sha256(str(candidate).encode("utf-8", "surrogatepass")).hexdigest() == hash:
                return str(candidate)
    return ""
