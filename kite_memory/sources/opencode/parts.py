"""Parse OpenCode's messages and their parts into events. Its database and its older files hold the same objects."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kite_memory.model.event import EventType, Session, Status
from kite_memory.projects import project_of
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.event_builder import (
    ANSWER_LIMIT,
    SUMMARY_LIMIT,
    EventBuilder,
    OpenCall,
    OpenCalls,
    Toolbox,
    title_of,
)
from kite_memory.sources.common.tool_text import PATH_LIMIT, answer_lines, compact, digest, moment, safe, scalar, short, shortened
from kite_memory.sources.common.words import without_echo

PROVIDER = "opencode"

TOOLS = Toolbox(
    shells=frozenset({"bash", "shell"}),
    readers=frozenset({"read"}),
    lookers=frozenset({"read", "glob", "grep", "list", "codesearch", "lsp"}),
    writers={"write": "written", "edit": "edited", "multiedit": "edited", "patch": "edited", "apply_patch": "edited"},
    paths=("filePath", "path"),
)
_ASKING = "question"
_PLANNING = "plan_exit"
_INVALID = "invalid"

_SKIPPED = frozenset(
    {"reasoning", "step-start", "step-finish", "snapshot", "patch", "file", "agent", "retry", "compaction", "subtask"}
)
"""The agent's thoughts, counters, copies of tool results, attachments, and tasks written by a command's template."""

_ABANDONED = 600.0
"""Seconds after which an unfinished text counts as abandoned."""

_OWN_TEMPLATES = (
    "Please analyze this codebase and create an AGENTS.md file containing",
    "Create or update `AGENTS.md` for this repository",
)
"""Prompts that a command of the client inserts in the user's role, verbatim."""

_UNTITLED = ("New session - ", "Child session - ")
_REFUSED = ("The user rejected permission", "The user dismissed", "The user has specified a rule which prevents")
_WITH_A_REFUSAL = " with the following feedback: "
_WITHOUT_WORDS = re.compile(r"The user (?:rejected permission to use this specific tool call|dismissed [a-z ]{1,40})\.?")
_OWN_ERRORS = frozenset(
    {
        *("bash", "shell", "read", "glob", "grep", "list", "lsp", "write", "edit", "multiedit", "patch", "apply_patch", "batch"),
        *("task", "todowrite", "todoread", "skill", _ASKING, _PLANNING, "plan_enter"),
    }
)
"""Tools whose errors the client words itself. A server's tool or a web tool could word an error like a refusal by the user."""
_STOPPED = ("Tool execution aborted", "User aborted the command")
_PATCHED = {"add": "created", "delete": "deleted", "move": "moved", "update": "edited"}
_CHANGED_FILES = 50
_LATEST = 4e9
_EVENTS_OF_A_PART = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePart:
    """A part of a message. ``row`` is its row; ``changed`` is the Unix time of its last write."""

    row: int
    content: Mapping[str, Any]
    changed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message with all of its parts. ``place`` counts the parts of the session before it."""

    name: str
    info: Mapping[str, Any]
    parts: Sequence[MessagePart]
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCodeConversation:
    """A conversation's session. ``helper`` means that another session's agent writes in the user's role."""

    session: Session
    helper: bool


def conversation(
    info: Mapping[str, Any], messages: Iterable[Mapping[str, Any]], *, provider: str = PROVIDER
) -> OpenCodeConversation | None:
    """Build the conversation from a session's record; ``None`` without a name.

    The folder is ``/`` if the client did not know it.
    """
    name = short(info.get("id"))
    if not name:
        return None
    folder = _text(info.get("directory"))
    if folder in ("", "/"):
        folder = next((cwd for message in messages if (cwd := _cwd(message))), folder)
    title = title_of(info.get("title"))
    parent = short(info.get("parent_id") or info.get("parentID"))
    return OpenCodeConversation(
        session=Session(
            id=name,
            provider=provider,
            started=_started(info),
            project=project_of(folder),
            cwd=folder,
            parent="" if parent == name else parent,
            title="" if title.startswith(_UNTITLED) else title,
        ),
        helper=bool(parent),
    )


def _started(info: Mapping[str, Any]) -> datetime:
    times = info.get("time")
    created = times.get("created") if isinstance(times, dict) else info.get("time_created")
    return moment(created) or datetime.fromtimestamp(0, UTC)


def _cwd(message: Mapping[str, Any]) -> str:
    match message.get("path"):
        case {"cwd": str(cwd)} if cwd != "/":
            return beginning(cwd, PATH_LIMIT)
        case _:
            return ""


def _text(value: object) -> str:
    return beginning(value, PATH_LIMIT) if isinstance(value, str) else ""


def build_events(
    conversation: OpenCodeConversation, messages: Iterable[Message], *, file: str, last: str, now: float
) -> EventBuilder:
    """Build the events of ``messages``, in order.

    ``last`` names the session's last message: text that is unfinished there is still being written, and is returned once complete.
    """
    session = conversation.session
    builder = EventBuilder(provider=session.provider, session=session.id, file=file, tools=TOOLS, calls=OpenCalls())
    for message in messages:
        _MessageReader(builder, conversation, message, may_go_on=message.name == last, now=now).add_events()
    return builder


class _MessageReader:
    """Builds the events of one message."""

    def __init__(
        self, builder: EventBuilder, conversation: OpenCodeConversation, message: Message, *, may_go_on: bool, now: float
    ) -> None:
        self._builder = builder
        self._helper = conversation.helper
        self._provider = conversation.session.provider
        self._session = conversation.session.id
        self._message = message
        self._info = message.info
        times = message.info.get("time")
        self._times: Mapping[str, Any] = times if isinstance(times, dict) else {}
        self._may_go_on = may_go_on and not self._times.get("completed") and message.info.get("error") is None
        self._now = now
        self._answer = ""

    def add_events(self) -> None:
        role = self._info.get("role")
        for index, part in enumerate(self._message.parts):
            content, kind = part.content, part.content.get("type")
            ordinal = (self._message.place + index) * _EVENTS_OF_A_PART
            match kind, role:
                case "text", "user":
                    self._begin(part, self._name(index, content), content, ordinal)
                    self._user(content)
                case "text", "assistant":
                    self._begin(part, self._name(index, content), content, ordinal)
                    self._assistant(part, content)
                case "tool", _:
                    self._tool(part, self._name(index, content), content, ordinal)
                case str(), _ if kind in _SKIPPED:
                    pass
                case str(), _:
                    self._builder.problem(part.row, f"unknown part {safe(kind)}")
                case _:
                    self._builder.problem(part.row, "no type")
        match self._info.get("error"):
            case {"name": "MessageAbortedError"} if self._message.parts:
                self._begin(self._message.parts[-1], self._name(-1, {}), {}, 0)
                self._builder.add(EventType.RESUME_POINT, "system", "Interrupted by the user", status="interrupted")
            case _:
                pass

    def _begin(self, part: MessagePart, name: str, timed: Mapping[str, Any], ordinal: int, key: str = "start") -> None:
        own = timed.get("time")
        at = (moment(own.get(key)) if isinstance(own, dict) else None) or moment(self._times.get("created"))
        written = datetime.fromtimestamp(min(max(0.0, part.changed), _LATEST), UTC)
        self._builder.record(name, at or written, part.row, part.row, ordinal=ordinal)

    def _name(self, index: int, content: Mapping[str, Any]) -> str:
        """Return an id derived from what a fork copies, since a fork gives new names to messages and parts.

        Of a text only the beginning is used, which stays the same when the text grows. A helper's prompt, which no fork copies,
        has its session's id besides: an agent prompts several helpers at once, in words that begin alike.
        """
        created = self._times.get("created")
        if not isinstance(created, int | float | str):
            return digest(f"{self._provider}\n{self._message.name}\n{index}".encode("utf-8", "replace"))
        identity = content.get("callID") if content.get("type") == "tool" else content.get("text")
        words = identity.strip()[:80] if isinstance(identity, str) else ""
        role, kind = scalar(self._info.get("role")), scalar(content.get("type"))
        name = f"{self._provider}\n{created}\n{role}\n{index}\n{kind}\n{words}"
        name = f"{name}\n{self._session}" if self._helper and role == "user" else name
        return digest(name.encode("utf-8", "replace"))

    def _user(self, content: Mapping[str, Any]) -> None:
        text = content.get("text")
        if not isinstance(text, str) or _injected(content):
            return
        if self._helper:
            self._builder.answered(text)
        elif not text.startswith(_OWN_TEMPLATES):
            self._builder.said(text)

    def _assistant(self, part: MessagePart, content: Mapping[str, Any]) -> None:
        text = content.get("text")
        if not isinstance(text, str) or _injected(content):
            return
        times = content.get("time")
        ended = isinstance(times, dict) and times.get("end") is not None
        if self._may_go_on and not ended and self._now - part.changed < _ABANDONED:
            return
        if self._info.get("summary") is True or self._info.get("mode") == "compaction":
            if summary := shortened(text, SUMMARY_LIMIT).strip():
                self._builder.add(EventType.RESUME_POINT, "system", summary)
        else:
            self._answer = self._builder.answered(text)

    def _tool(self, part: MessagePart, name: str, content: Mapping[str, Any], ordinal: int) -> None:
        builder, state = self._builder, content.get("state")
        tool, called = short(content.get("tool")), short(content.get("callID"))
        if not isinstance(state, dict) or not tool:
            builder.problem(part.row, "tool without a state")
            return
        status = state.get("status")
        if status == "pending":  # its arguments are still being written
            return
        given = state.get("input")
        self._begin(part, name, state, ordinal)
        call = builder.called(called, tool, given if isinstance(given, dict) else {}, parent=self._answer)
        builder.calls.by_name.pop(called, None)
        match status:
            case "completed" | "success" | "error":
                self._begin(part, f"{name}:r", state, ordinal, key="end")
                self._returned(state, call, called)
            case "running":
                pass
            case _:
                builder.problem(part.row, f"unknown state {safe(status)}")

    def _returned(self, state: Mapping[str, Any], call: OpenCall, name: str) -> None:
        text, status = _outcome(state, call.tool)
        text, _, words = text.partition(_WITH_A_REFUSAL) if status == "denied" else (text, "", "")
        event = self._builder.returned(name, call, text, status, done=_changed(state))
        if words.strip() and not self._helper:
            self._builder.said(words.strip(), parent=event)
        if status != "ok" or self._helper:
            return
        decided = _answers(state) if call.tool == _ASKING else ["The plan was approved."] if call.tool == _PLANNING else []
        for answer in decided:
            self._builder.add(EventType.DECISION, "user", shortened(answer, ANSWER_LIMIT), tool=call.tool, parent=event, call=name)


def _injected(content: Mapping[str, Any]) -> bool:
    return content.get("synthetic") is True or content.get("ignored") is True


def _outcome(state: Mapping[str, Any], tool: str) -> tuple[str, Status]:
    """Return the text and status of a result.

    A failed command is known only by its exit code; a call of a tool that does not exist has completed, by its state.
    """
    if state.get("status") == "error":
        text = state.get("error")
        text = text if isinstance(text, str) else ""
        if text.startswith(_REFUSED) and (tool in _OWN_ERRORS or _WITHOUT_WORDS.fullmatch(text)):
            return text, "denied"
        match state.get("metadata"):
            case {"interrupted": True}:
                return text, "interrupted"
            case _:
                return text, "interrupted" if text.startswith(_STOPPED) or text == "Cancelled" else "failed"
    output = state.get("output")
    text = without_echo(output) if isinstance(output, str) else ""
    match state.get("metadata"):
        case {"exit": int(code)} if code:
            return text, "failed"
        case {"interrupted": True}:
            return text, "interrupted"
        case _:
            return text, "failed" if tool == _INVALID else "ok"


def _changed(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the files that a patch changed; other tools name theirs in the call."""
    match state.get("metadata"):
        case {"files": list(files)}:
            pass
        case _:
            return []
    found: list[tuple[str, str]] = []
    for file in files[:_CHANGED_FILES]:
        match file:
            case {"filePath": str(path), "type": str(how)} if path:
                found.append((beginning(path, PATH_LIMIT), _PATCHED.get(how, "edited")))
            case _:
                continue
    return found


def _answers(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield each question with the user's answer."""
    given, metadata = state.get("input"), state.get("metadata")
    questions = given.get("questions") if isinstance(given, dict) else None
    answers = metadata.get("answers") if isinstance(metadata, dict) else None
    if not isinstance(questions, list) or not isinstance(answers, list):
        if isinstance(output := state.get("output"), str) and output.strip():
            yield output.strip()
        return
    for question, answer in zip(questions[:20], answers[:20], strict=False):
        asked = question.get("question") if isinstance(question, dict) else None
        chosen = ", ".join(map(_chosen, answer[:20])) if isinstance(answer, list) else _chosen(answer)
        if not chosen:
            continue
        options = question.get("options") if isinstance(question, dict) else None
        labels = [
            option["label"]
            for option in (options[:20] if isinstance(options, list) else [])
            if isinstance(option, dict) and isinstance(option.get("label"), str)
        ]
        yield "\n".join([*([asked] if isinstance(asked, str) else []), *answer_lines(chosen, labels)])


def _chosen(answer: object) -> str:
    return answer if isinstance(answer, str) else compact(answer)


def said_at(info: Mapping[str, Any]) -> float:
    """Return the time a message was started, to sort messages by."""
    times = info.get("time")
    created = moment(times.get("created") if isinstance(times, dict) else info.get("time_created"))
    return created.timestamp() if created else 0.0


_COMMAND_2 = "shell"
_STATES_2 = {"streaming": "pending"}


def of_version_2(kind: str, data: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a message of OpenCode 2, whose type is ``kind``, as the message and parts that version 1 would have written.

    What neither the person nor the model said has no parts: the client's own text, chosen models and agents, skills.
    """
    info: dict[str, Any] = {"role": "user" if kind == "user" else "assistant", "time": data.get("time")}
    match kind, data:
        case "user", {"text": str(text)}:
            return info, [{"type": "text", "text": text}]
        case "assistant", {"content": list(items)}:
            return info, [_item(item) if isinstance(item, dict) else {} for item in items]
        case "shell", {"command": str(command)}:
            return info, [_own_command(data, command)]
        case "compaction", {"summary": str(summary)} if data.get("status", "completed") == "completed":
            return {**info, "summary": True}, [{"type": "text", "text": summary, "time": {"end": 0}}]
        case "idle", {"outcome": "interrupted"}:
            return {**info, "error": {"name": "MessageAbortedError"}}, [{"type": "step-finish"}]
        case _:
            return info, []


def _item(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return one item of an answer. Only tools differ."""
    state = item.get("state")
    if item.get("type") != "tool" or not isinstance(state, dict):
        return dict(item)
    metadata = state.get("metadata", state.get("structured"))
    error = state.get("error")
    return {
        "type": "tool",
        "tool": item.get("name"),
        "callID": item.get("callID", item.get("id")),
        "state": {
            "status": _STATES_2.get(scalar(state.get("status")), state.get("status")),
            "input": state.get("input"),
            "output": _joined(state.get("content")),
            "error": error.get("message") if isinstance(error, dict) else error,
            "metadata": metadata,
            "time": _ran(item.get("time")),
        },
    }


def _own_command(data: Mapping[str, Any], command: str) -> dict[str, Any]:
    """Return a command that the person ran, as the tool call that version 1 made of it."""
    output = data.get("output")
    times = data.get("time")
    ended = isinstance(times, dict) and times.get("completed") is not None
    return {
        "type": "tool",
        "tool": _COMMAND_2,
        "callID": data.get("shellID", data.get("callID")),
        "state": {
            "status": "completed" if ended else "running",
            "input": {"command": command},
            "output": output.get("output") if isinstance(output, dict) else output,
            "metadata": {"exit": data.get("exit")},
            "time": _ran(times),
        },
    }


def _ran(times: object) -> dict[str, Any]:
    if not isinstance(times, dict):
        return {}
    return {"start": times.get("ran", times.get("created")), "end": times.get("completed")}


def _joined(content: object) -> str:
    items = content if isinstance(content, list) else []
    return "\n".join(item["text"] for item in items if isinstance(item, dict) and isinstance(item.get("text"), str))
