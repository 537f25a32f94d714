"""From one step of an Antigravity transcript to the events it tells.

Steps carry no names: a tool's result is the step after its call, known by a type that goes with the tool.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from kite_memory.model.event import Event, EventType, Status
from kite_memory.model.look import Problem
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.event_builder import ANSWER_LIMIT, OpenCall, OpenCalls, Teller, Toolbox
from kite_memory.sources.common.fields import digest, moment, safe, short
from kite_memory.sources.common.scalars import scalar
from kite_memory.sources.common.tool_text import PATH_LIMIT, kept
from kite_memory.sources.common.words import without_blocks

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
"""Step types by the tools they answer; any other of the model's that is no message answers what is left."""

_SKIPPED = frozenset({"CONVERSATION_HISTORY", "SYSTEM_MESSAGE", "EPHEMERAL_MESSAGE", "KNOWLEDGE_ARTIFACTS"})
_ONLY_MESSAGES = {"USER_EXPLICIT": "USER_INPUT", "MODEL": "PLANNER_RESPONSE"}
"""What a step without a type is."""

_NOISE = ("toolAction", "toolSummary", "WaitMsBeforeAsync")
_VERSION = 1
_EPOCH = datetime.fromtimestamp(0, UTC)
_CALLS = 50

_STAMPS = re.compile(r"(?:(?:Created|Completed) At: \S{1,40}\s*\n)+\s*")
_RAN = re.compile(r"\s*The command (?:completed successfully|failed with exit code: (-?\d{1,10}))\.?\s*")
_OUTPUT = re.compile(r"^[\t ]*(?:Output|Stdout|Stderr):[\t ]*\n?", re.MULTILINE)
_INDENTED = re.compile(r"^\t{4}", re.MULTILINE)
_INTERNAL = ("ADDITIONAL_METADATA", "USER_SETTINGS_CHANGE", "USER_INFORMATION", "EPHEMERAL_MESSAGE")


@dataclass(slots=True, kw_only=True)
class Thread:
    """What a later line needs to know of earlier ones, small enough to travel in a cursor. ``parent`` has it work for another."""

    started: datetime | None = None
    last_at: datetime = _EPOCH
    ordinal: int = 0
    cwd: str = ""
    parent: str = ""
    calls: OpenCalls = field(default_factory=OpenCalls)

    def carried(self) -> str:
        return orjson.dumps(
            {
                "v": _VERSION,
                "started": self.started,
                "at": self.last_at,
                "ordinal": self.ordinal,
                "cwd": self.cwd,
                "parent": self.parent,
                "calls": self.calls.carried(),
            }
        ).decode()

    @staticmethod
    def resumed(carry: str) -> "Thread | None":
        """The inverse of `carried`, ``None`` for what another version wrote."""
        try:
            known: dict[str, Any] = orjson.loads(carry)
            if known["v"] != _VERSION:
                return None
            return Thread(
                started=datetime.fromisoformat(known["started"]) if known["started"] else None,
                last_at=datetime.fromisoformat(known["at"]),
                ordinal=known["ordinal"],
                cwd=known["cwd"],
                parent=known["parent"],
                calls=OpenCalls.resumed(known["calls"]),
            )
        except (ValueError, KeyError, TypeError, IndexError):
            return None


class Interpreter:
    """Reads steps in file order and collects what they tell. It changes the `Thread` it was given, and nothing else."""

    def __init__(self, *, file: str, session: str, thread: Thread) -> None:
        self._thread = thread
        self._session = session
        self._teller = Teller(
            provider=PROVIDER, session=session, file=file, tools=TOOLS, calls=thread.calls, ordinal=thread.ordinal
        )

    @property
    def events(self) -> list[Event]:
        return self._teller.events

    @property
    def problems(self) -> list[Problem]:
        return self._teller.problems

    def problem(self, position: int, reason: str) -> None:
        self._teller.problem(position, reason)

    def step(self, row: Mapping[str, Any], start: int, end: int) -> None:
        """One step, standing at the bytes ``[start, end)`` of the file. Its two renderings have one name."""
        thread, teller = self._thread, self._teller
        source = row.get("source")
        kind = row.get("type", _ONLY_MESSAGES.get(source) if isinstance(source, str) else None)
        if not isinstance(kind, str):
            self.problem(start, "no type")
            return
        at = moment(row.get("created_at"))
        if at is not None:
            thread.last_at = at
            thread.started = thread.started or at
        name = f"{self._session}\n{scalar(row.get('step_index'))}\n{kind}\n{scalar(row.get('created_at'))}"
        teller.record(digest(name.encode("utf-8", "replace")), thread.last_at, start, end)
        content = row.get("content")
        text = content if isinstance(content, str) else ""
        match kind, source:
            case "USER_INPUT", "USER_EXPLICIT":
                self._user(text)
            case "PLANNER_RESPONSE", "MODEL":
                self._planned(text, row)
            case "CHECKPOINT", _:
                pass  # what was dropped of the conversation stands above; who goes on is told it anew
            case str(), "SYSTEM" if kind in _SKIPPED:
                pass
            case "USER_INPUT", _:
                pass  # nobody says that a person wrote it
            case str(), "MODEL":
                self._result(kind, text, row.get("status"))
            case str(), _ if kind in _RESULTS:
                self._result(kind, text, row.get("status"))
            case _:
                self.problem(start, f"unknown step {safe(kind)}")
        thread.ordinal = teller.ordinal

    def _user(self, text: str) -> None:
        _, opening, rest = text.partition("<USER_REQUEST>")
        if opening:
            text = rest.rpartition("</USER_REQUEST>")[0] or rest
        for tag in _INTERNAL:
            text = without_blocks(text, tag, unclosed_too=not opening)
        if self._thread.parent:
            self._teller.answered(text)
        else:
            self._teller.said(text.strip())

    def _planned(self, text: str, row: Mapping[str, Any]) -> None:
        thread, teller = self._thread, self._teller
        said = teller.answered(text)
        calls = row.get("tool_calls")
        for number, call in enumerate(calls[:_CALLS] if isinstance(calls, list) else []):
            match call:
                case {"name": str(tool)} if tool:
                    given = _arguments(call.get("args"))
                    if not thread.cwd and tool == "run_command" and isinstance(cwd := given.get("Cwd"), str):
                        thread.cwd = beginning(cwd, PATH_LIMIT)
                    if isinstance(command := given.pop("CommandLine", None), str):
                        given["command"] = command
                    for noise in _NOISE:
                        given.pop(noise, None)
                    teller.called(f"{short(scalar(row.get('step_index')))}.{number}", short(tool), given, parent=said)
                case _:
                    continue

    def _result(self, kind: str, text: str, status: object) -> None:
        name, call = self._answered(kind)
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
        event = self._teller.returned(name, call, text, outcome, running=status == "RUNNING")
        if kind == "ASK_QUESTION" and outcome == "ok" and text and not self._thread.parent:
            answer = f"{call.detail}\n{text}" if call.detail else text
            self._teller.tell(EventType.DECISION, "user", kept(answer, ANSWER_LIMIT), tool=call.tool, parent=event, call=name)

    def _answered(self, kind: str) -> tuple[str, OpenCall]:
        """The call that a result of this type is of: the oldest open one of the tools it goes with."""
        open_calls = self._thread.calls.by_name
        tools = _RESULTS.get(kind)
        for name, call in open_calls.items():
            if call.tool in tools if tools else all(call.tool not in known for known in _RESULTS.values()):
                return name, open_calls.pop(name)
        return "", OpenCall(event="", tool=tools[0] if tools else kind.lower()[:64], detail="")


def _arguments(given: object) -> dict[str, Any]:
    """In ``transcript.jsonl`` each value is JSON text once more."""
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
    """A result as the tool gave it, and whether a command failed: its step is ``DONE`` either way."""
    if stamps := _STAMPS.match(text):
        text = text[stamps.end() :]
    ran = _RAN.match(text)
    if ran is None:
        return text.strip(), False
    output = _INDENTED.sub("", _OUTPUT.sub("", text[ran.end() :], count=2))
    return output.strip() or ran[0].strip(), ran[1] not in (None, "0")
