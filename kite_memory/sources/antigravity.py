"""Conversations of Google Antigravity's command line and editor: their location, and reading them from a cursor."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from kite_memory.model.event import Cursor, EventType, Problem, ReadResult, Status
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.event_builder import ANSWER_LIMIT, OpenCall, OpenCalls, Toolbox
from kite_memory.sources.common.jsonl import AppendOnlyFile, FoundObject, Unreadable, objects
from kite_memory.sources.common.line_source import Line, LineSource, Progress, starting_point
from kite_memory.sources.common.tool_text import PATH_LIMIT, digest, moment, safe, scalar, short, shortened
from kite_memory.sources.common.words import without_enclosed
from kite_memory.system.private_files import is_file, names_in, stamp_of
from kite_memory.text import lazy_regex

PROVIDER = "antigravity"

TOOLS = Toolbox(
    shells=frozenset({"run_command"}),
    readers=frozenset({"view_file"}),
    lookers=frozenset({"view_file", "list_dir", "grep_search", "find_by_name"}),
    writers={
        "write_to_file": "written",
        "write_file": "written",
        "replace_file_content": "edited",
        "multi_replace_file_content": "edited",
    },
    paths=("AbsolutePath", "TargetFile", "DirectoryPath", "SearchPath"),
)
_RESULTS = {
    "RUN_COMMAND": ("run_command",),
    "COMMAND_STATUS": ("command_status", "manage_task"),
    "VIEW_FILE": ("view_file",),
    "CODE_ACTION": ("write_to_file", "write_file", "replace_file_content", "multi_replace_file_content"),
    "GREP_SEARCH": ("grep_search",),
    "LIST_DIRECTORY": ("list_dir",),
    "FIND": ("find_by_name",),
    "SEARCH_WEB": ("search_web",),
    "READ_URL_CONTENT": ("read_url_content",),
    "GENERATE_IMAGE": ("generate_image",),
    "INVOKE_SUBAGENT": ("invoke_subagent",),
    "ASK_QUESTION": ("ask_question",),
}
"""Step types and the tools whose results they are. Any other step of the model belongs to one of the remaining calls."""

_SKIPPED = frozenset({"CONVERSATION_HISTORY", "SYSTEM_MESSAGE", "EPHEMERAL_MESSAGE", "KNOWLEDGE_ARTIFACTS"})
_ONLY_MESSAGES = {"USER_EXPLICIT": "USER_INPUT", "MODEL": "PLANNER_RESPONSE"}
"""Types of steps without a type, by source."""

_NOISE = ("toolAction", "toolSummary", "WaitMsBeforeAsync")
_CALLS = 50

_STAMPS = lazy_regex(r"(?:(?:Created|Completed) At: \S{1,40}\s*\n)+\s*")
_RAN = lazy_regex(r"\s*The command (?:completed successfully|failed with exit code: (-?\d{1,10}))\.?\s*")
_OUTPUT = lazy_regex(r"^[\t ]*(?:Output|Stdout|Stderr):[\t ]*\n?", re.MULTILINE)
_INDENTED = lazy_regex(r"^\t{4}", re.MULTILINE)
_INTERNAL = ("ADDITIONAL_METADATA", "USER_SETTINGS_CHANGE", "USER_INFORMATION", "EPHEMERAL_MESSAGE")
_REQUEST = "<USER_REQUEST>"
_END = lazy_regex(rf"</USER_REQUEST>\s*(?:<(?:{'|'.join(_INTERNAL)})>|\Z)")
"""The metadata after a request names documents and pages, which may hold the closing tag, too."""


def _kind_of(row: Mapping[str, Any]) -> str:
    """Return a step's type; empty if it has none."""
    source = row.get("source")
    kind = row.get("type", _ONLY_MESSAGES.get(source) if isinstance(source, str) else None)
    return kind if isinstance(kind, str) else ""


def _user(text: str, line: Line) -> None:
    if not text.lstrip().startswith(_REQUEST):
        text = without_enclosed(text, _INTERNAL, unclosed_too=True)
    _, opening, rest = text.partition(_REQUEST)
    if opening:
        end = _END.search(rest)
        text = rest[: end.start()] if end else rest.rpartition("</USER_REQUEST>")[0] or rest
        text = without_enclosed(text, _INTERNAL, unclosed_too=True)
    if line.progress.parent:
        line.assistant(text)
    else:
        line.user(text.strip())


def _planned(text: str, row: Mapping[str, Any], line: Line) -> None:
    said = line.assistant(text)
    calls = row.get("tool_calls")
    for number, call in enumerate(calls[:_CALLS] if isinstance(calls, list) else []):
        match call:
            case {"name": str(tool)} if tool:
                given = _arguments(call.get("args"))
                if tool == "run_command":
                    line.in_folder(given.get("Cwd"))
                if isinstance(command := given.pop("CommandLine", None), str):
                    given["command"] = command
                for noise in _NOISE:
                    given.pop(noise, None)
                line.builder.called(f"{short(scalar(row.get('step_index')))}.{number}", short(tool), given, parent=said)
            case _:
                continue


def _result(kind: str, text: str, status: object, line: Line) -> None:
    name, call = _answered(kind, line.progress.calls)
    text, failed = _without_frame(text)
    outcome: Status = "ok"
    match status:
        case "ERROR":
            outcome = "failed"
        case "CANCELED" | "CANCELLED":
            outcome = "interrupted"
        case "RUNNING":
            outcome = ""
        case _ if failed:
            outcome = "failed"
        case _:
            pass
    event = line.builder.returned(name, call, text, outcome, running=status == "RUNNING")
    if kind == "ASK_QUESTION" and outcome == "ok" and text and not line.progress.parent:
        answer = f"{call.detail}\n{text}" if call.detail else text
        line.builder.add(EventType.DECISION, "user", shortened(answer, ANSWER_LIMIT), tool=call.tool, parent=event, call=name)


def _answered(kind: str, calls: OpenCalls) -> tuple[str, OpenCall]:
    """Return the call that a result of this type belongs to: the oldest open one of its tools."""
    open_calls = calls.by_name
    tools = _RESULTS.get(kind)
    for name, call in open_calls.items():
        if call.tool in tools if tools else all(call.tool not in known for known in _RESULTS.values()):
            return name, open_calls.pop(name)
    return "", OpenCall(event="", tool=tools[0] if tools else kind.lower()[:64], detail="")


def _arguments(given: object) -> dict[str, Any]:
    """Return a call's arguments; in ``transcript.jsonl`` each value is encoded as JSON a second time."""
    if not isinstance(given, dict):
        return {}
    return {key: _unwrapped(value) for key, value in given.items() if isinstance(key, str)}


def _unwrapped(value: object) -> object:
    if isinstance(value, str) and value[:1] == '"' and value[-1:] == '"':
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def _without_frame(text: str) -> tuple[str, bool]:
    """Return a result's own text, and whether a command failed: its step is ``DONE`` either way."""
    if stamps := _STAMPS.match(text):
        text = text[stamps.end() :]
    ran = _RAN.match(text)
    if ran is None:
        return text.strip(), False
    output = _INDENTED.sub("", _OUTPUT.sub("", text[ran.end() :], count=2))
    return output.strip() or ran[0].strip(), ran[1] not in (None, "0")


_HISTORY = 8 * 1024 * 1024
_TRANSCRIPT = 64 * 1024 * 1024
_AGAIN = 0.2
"""Minimum seconds between two searches for parents, since many new conversations are read one after another."""
_IDLE = 4
"""Minimum pause between searches as a multiple of a search's duration, which is a second if there are many conversations."""

_BEGINS, _BEGAN = b'"invoke_subagent"', b'"INVOKE_SUBAGENT"'
"""The call of a sub-agent, and the step that names its conversation. The sub-agent may be prompted before that is written."""

_NAMED = re.compile(rb'conversationId[\\": ]{1,16}([\w-]{8,128})')


class ConversationPlaces:
    """Workspaces and parents of one program's conversations.

    The program is a folder such as ``~/.gemini/antigravity-cli``. Files are read again only after a change.
    """

    def __init__(self, program: Path, *, clock: Callable[[], float]) -> None:
        self._program = program
        self._clock = clock
        self._history: tuple[tuple[int, int], dict[str, str]] = ((-1, 0), {})
        self._searched: dict[Path, int] = {}
        self._search_after = float("-inf")
        self._parents: dict[str, str] = {}
        self._beginning: set[Path] = set()

    def workspace_of(self, conversation: str) -> str:
        """Return the workspace in the history of typed prompts; empty for a conversation started by a script."""
        path = self._program / "history.jsonl"
        try:
            if self._history[0] != (stamp := stamp_of(path)):
                self._history = stamp, dict(self._workspaces(path))
        except (OSError, Unreadable):
            return ""
        return self._history[1].get(conversation, "")

    def _workspaces(self, path: Path) -> Iterator[tuple[str, str]]:
        with AppendOnlyFile(path, within=self._program) as file:
            data = file.between(max(0, file.size - _HISTORY), file.size)
        for line in data.split(b"\n"):
            match objects(line) if line else []:
                case [FoundObject(row={"conversationId": str(name), "workspace": str(workspace)})]:
                    yield name, beginning(workspace, PATH_LIMIT)
                case _:
                    continue

    @property
    def one_is_begun(self) -> bool:
        """Whether, at the last search, an agent had called a sub-agent whose conversation was not named yet."""
        return bool(self._beginning)

    def parent_of(self, conversation: str, *, anew: bool) -> str:
        """Return the conversation that started this one. A sub-agent is prompted by its agent in the format of a user's prompt.

        ``anew`` searches even right after a search, which could not find what began a moment ago.
        """
        began = self._clock()
        if conversation in self._parents or (began < self._search_after and not anew):
            return self._parents.get(conversation, "")
        for path in sorted(self._program.glob("brain/*/.system_generated/logs/transcript*.jsonl")):
            try:
                if self._searched.get(path, -1) != path.stat().st_size:
                    self._searched[path] = self._search(path, self._searched.get(path, 0))
            except (OSError, Unreadable):
                continue
        ended = self._clock()
        self._search_after = ended + max(_AGAIN, _IDLE * (ended - began))
        return self._parents.get(conversation, "")

    def _search(self, path: Path, begin: int) -> int:
        """Search a transcript and return where to continue: after the last complete line."""
        parent = path.parent.parent.parent.name
        with AppendOnlyFile(path, within=self._program) as file:
            begin = begin if begin <= file.size else 0
            data = file.between(begin, min(begin + _TRANSCRIPT, file.size))
        whole = data.rfind(b"\n") + 1
        begins, found = data.rfind(_BEGINS, 0, whole), data.find(_BEGAN, 0, whole)
        if begins >= 0 or found >= 0:
            (self._beginning.add if begins > data.rfind(_BEGAN, 0, whole) else self._beginning.discard)(path)
        while found >= 0:
            start, end = data.rfind(b"\n", 0, found) + 1, data.find(b"\n", found)
            for name in _NAMED.findall(data[start:end]):
                if (child := name.decode("ascii", "replace")) != parent:
                    self._parents.setdefault(child, parent)
            found = data.find(_BEGAN, end, whole)
        return begin + (whole or (len(data) if len(data) == _TRANSCRIPT else 0))  # a line of that length is skipped


_FULL, _PLAIN = "transcript_full.jsonl", "transcript.jsonl"
_LOGS = (".system_generated", "logs")
_CONVERSATION = lazy_regex(r"[\w-]{1,128}")
_ANSWER = b'"PLANNER_RESPONSE"'
_BEGINNING = 1 << 20
_FRESH = 60.0
"""Seconds in which a prompt without an answer may be a sub-agent's that its agent's transcript does not name yet."""


class Antigravity(LineSource):
    """Source that reads ``<root>/<program>/brain/<conversation>/.system_generated/logs``.

    ``root`` is the folder ``~/.gemini``. The programs' own store, ``conversations/<id>.db`` or ``.pb``, is protobuf without a
    published schema, or encrypted: one without a transcript beside it is counted as a problem and not parsed.
    """

    provider = PROVIDER
    tools = TOOLS

    def __init__(
        self,
        root: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(root)
        self._programs = tuple(root / name for name in ("antigravity-cli", "antigravity", "antigravity-ide"))
        self._places = {program: ConversationPlaces(program, clock=clock) for program in self._programs}
        self._now = now

    def roots(self) -> tuple[Path, ...]:
        return tuple(program / "brain" for program in self._programs)

    def transcripts(self) -> Iterator[Path]:
        for program in self._programs:
            names: set[str] = set()
            for name in names_in(program / "brain"):
                logs = (program / "brain" / name).joinpath(*_LOGS)
                found = next((path for path in (logs / _FULL, logs / _PLAIN) if self.owns(path) and is_file(path)), None)
                if found is not None:
                    names.add(name)
                    yield found
            for name in names_in(program / "conversations"):
                path = program / "conversations" / name
                if path.stem not in names and self.owns(path):
                    yield path

    def owns(self, path: Path) -> bool:
        for program in self._programs:
            try:
                parts = path.relative_to(program).parts
            except ValueError:
                continue
            match parts:
                case ("brain", name, *folders, file) if tuple(folders) == _LOGS and file in (_FULL, _PLAIN):
                    return bool(_CONVERSATION.fullmatch(name))
                case ("conversations", file) if path.suffix in (".db", ".pb"):
                    return bool(_CONVERSATION.fullmatch(path.stem))
                case _:
                    return False
        return False

    def session_of(self, path: Path) -> str:
        return path.parent.parent.parent.name

    def time_of(self, row: Mapping[str, Any]) -> datetime | None:
        return moment(row.get("created_at")) if _kind_of(row) else None

    def _event_id(self, row: Mapping[str, Any], session: str, data: bytes) -> str:
        """Return an id that both renderings of a step share."""
        name = f"{session}\n{scalar(row.get('step_index'))}\n{_kind_of(row)}\n{scalar(row.get('created_at'))}"
        return digest(name.encode("utf-8", "replace"))

    def _within(self, path: Path) -> Path:
        return next((program for program in self._programs if path.is_relative_to(program)), path.parent)

    def _read(self, path: Path, file: AppendOnlyFile, cursor: Cursor | None, budget: int) -> ReadResult:
        if path.parent.name == "conversations":
            return _left(path, file, "conversation without a transcript")
        if path.name == _PLAIN and is_file(path.with_name(_FULL)):
            return _left(path, file, "")
        name, places = self.session_of(path), self._places[self._within(path)]
        position, progress, changed = starting_point(file, cursor, Progress, Progress.from_carry)
        if not position:
            waited = cursor is not None
            progress.parent = places.parent_of(name, anew=waited)
            if not progress.parent and places.one_is_begun and self._may_be_a_helpers(file):
                waiting = cursor or Cursor(position=0, size=0, mtime_ns=0)
                return ReadResult(path=str(path), session=None, events=(), problems=(), cursor=waiting)
        progress.cwd = progress.cwd or places.workspace_of(name)
        return self._read_from(path, file, position, progress, changed, budget)

    def line(self, row: Mapping[str, Any], line: Line) -> None:
        kind, source = _kind_of(row), row.get("source")
        if not kind:
            line.problem(line.start, "no type")
            return
        content = row.get("content")
        text = content if isinstance(content, str) else ""
        match kind, source:
            case "USER_INPUT", "USER_EXPLICIT":
                _user(text, line)
            case "PLANNER_RESPONSE", "MODEL":
                _planned(text, row, line)
            case "CHECKPOINT", _:
                pass  # the dropped messages precede it in the transcript
            case str(), "SYSTEM" if kind in _SKIPPED:
                pass
            case "USER_INPUT", _:
                pass  # not marked as written by the user
            case str(), "MODEL":
                _result(kind, text, row.get("status"), line)
            case str(), _ if kind in _RESULTS:
                _result(kind, text, row.get("status"), line)
            case _:
                line.problem(line.start, f"unknown step {safe(kind)}")

    def _may_be_a_helpers(self, file: AppendOnlyFile) -> bool:
        fresh = 0 <= self._now() - file.mtime_ns / 1e9 < _FRESH
        return fresh and _ANSWER not in file.between(0, min(file.size, _BEGINNING))


def _left(path: Path, file: AppendOnlyFile, reason: str) -> ReadResult:
    """Return a result without events, so that the file is read again only after a change."""
    cursor = Cursor(position=file.size, size=file.size, mtime_ns=file.mtime_ns)
    problems = (Problem(file=str(path), position=0, reason=reason),) if reason else ()
    return ReadResult(path=str(path), session=None, events=(), problems=problems, cursor=cursor)
