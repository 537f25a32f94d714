"""Parse the documents of one task of Cline or Roo Code into events."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from kite_memory.model.event import Event, EventType, Problem
from kite_memory.sources.cline.words import (
    SPEAKING,
    TOOLS,
    Accompanied,
    accompanied,
    feedback_of,
    heading,
    outcome,
    persons_words,
    reported,
    returned_text,
    spoken,
    starts_with_persons_words,
    without_mentions,
    without_surroundings,
)
from kite_memory.sources.common.event_builder import ANSWER_LIMIT, EventBuilder, OpenCall, OpenCalls
from kite_memory.sources.common.tool_text import blocks_of, digest, moment, safe, scalar, short, shortened

_SAME_WORDS = 1_000
"""Limit of shown messages with the same words that are distinguished."""

SKIPPED_SAYS = frozenset(
    {
        "api_req_started",
        "api_req_finished",
        "api_req_retried",
        "api_req_retry_delayed",
        "api_req_rate_limit_wait",
        "api_req_deleted",
        "reasoning",
        "checkpoint_created",
        "checkpoint_saved",
        "mcp_server_request_started",
        "mcp_server_response",
        "mcp_notification",
        "subtask_result",
        "codebase_search_result",
        "shell_integration_warning",
        "deleted_api_reqs",
        "task_progress",
        "hook_status",
        "hook_output_stream",
        "load_mcp_documentation",
        "info",
    }
)
"""Kinds of shown messages that may be between a question and its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A message as shown to the user."""

    at: int
    kind: str
    message: Mapping[str, Any]


def shown_of(document: object) -> list[Shown]:
    """Return the finished messages of ``ui_messages.json``. The first text is the task itself."""
    found: list[Shown] = []
    for message in document if isinstance(document, list) else []:
        match message:
            case {"ts": int(at), "type": "say" | "ask" as type} if message.get("partial") is not True:
                kind = message.get(type)
                if isinstance(kind, str):
                    kind = "task" if not found and type == "say" and kind in ("text", "task") else kind
                    found.append(Shown(at=at, kind=kind, message=message))
            case _:
                continue
    return found


class Person:
    """Times at which the user's words were first shown, which identify them in each document."""

    def __init__(self, shown: Sequence[Shown]) -> None:
        self._feedback = {_unmarked(scalar(each.message.get("text"))) for each in shown if each.kind == "user_feedback"}
        self._moments: dict[str, list[int]] = {}
        for each in shown:
            if each.kind in ("task", "user_feedback"):
                moments = self._moments.setdefault(_plain(scalar(each.message.get("text"))), [])
                if len(moments) < _SAME_WORDS:
                    moments.append(each.at)

    def gave(self, feedback: Iterable[str]) -> bool:
        """Return whether the client showed all of these as the user's feedback. A tool cannot make it show anything so."""
        return all(_unmarked(words) in self._feedback for words in feedback)

    def moment_of(self, words: str, at: int) -> int | None:
        """Return the time of the nearest unused showing and mark it as used; ``None`` if the words were not shown."""
        moments = self._moments.get(_plain(words))
        if not moments:
            return None
        found = min(moments, key=lambda moment: abs(moment - at))
        moments.remove(found)
        return found


def question_in(text: str) -> str:
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text.strip()
    question = content.get("question") if isinstance(content, dict) else ""
    return question.strip() if isinstance(question, str) else ""


def _plain(text: str) -> str:
    return " ".join(text.split())


_MENTION = re.compile(r"'([^'\n]{1,1000})' \(see below for [^)\n]{1,80}\)|@/?(?=\S)")


def _unmarked(text: str) -> str:
    """Return words alike whether ``@file`` in them is as typed or as the model reads it."""
    return _plain(_MENTION.sub(r"\1", text))


_SKIPPED_BLOCKS = frozenset({"thinking", "redacted_thinking", "reasoning", "thoughtSignature", "image", "image_url", "document"})
_CHANGES = {
    "editedExistingFile": "edited",
    "appliedDiff": "edited",
    "insertContent": "edited",
    "searchAndReplace": "edited",
    "newFileCreated": "created",
}
_WORKSPACE = re.compile(r"# Current (?:Workspace|Working) Directory \((?P<path>[^)\n]{1,1024})\) Files")
_WORKSPACES = re.compile(
    r'# Workspace Configuration\s{1,8}\{\s{0,20}"workspaces"\s{0,4}:\s{0,4}\{\s{0,20}"(?P<path>[^"\n]{1,1024})"'
)
"""If several folders are open, tasks work in the first one."""
_READ_AT_ONCE = 20
_EPOCH = datetime.fromtimestamp(0, UTC)
_APART = 1_000
"""Ordinals between two messages; no real message has more events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Facts about a task that its own documents lack.

    ``by_an_agent`` means that its first message was written by its parent task. ``bare`` means that the user's words have no
    wrapper.
    """

    provider: str
    session: str
    file: str
    cwd: str = ""
    started: datetime | None = None
    by_an_agent: bool = False
    bare: bool = False


class ClineInterpreter:
    """Parses the messages that a task exchanged with its model, in order, and the shown messages dropped from that since.

    The agent's events up to ``reported_to`` (Unix ms) were returned while its messages still existed.
    """

    def __init__(self, origin: Origin, shown: Sequence[Shown], *, reported_to: int = 0) -> None:
        self.cwd = origin.cwd
        self.started: datetime | None = None
        self._origin = origin
        self._shown = shown
        self._person = Person(shown)
        self._builder = EventBuilder(
            provider=origin.provider, session=origin.session, file=origin.file, tools=TOOLS, calls=OpenCalls()
        )
        self._at = origin.started or _EPOCH
        self._reported_to = reported_to
        self._index = 0
        self._name = ""
        self._names: dict[str, int] = {}
        self._heard = False
        self._alone = 0
        self._open = ""
        self._asked = ""
        self._read: list[str] = []
        self._read_together: dict[str, list[str]] = {}
        self._answered: dict[str, tuple[str, OpenCall]] = {}

    @property
    def events(self) -> list[Event]:
        """Events without duplicates: a message just before a summary can be repeated after it."""
        last = {event.id: event.ordinal for event in self._builder.events}
        return [event for event in self._builder.events if last[event.id] == event.ordinal]

    @property
    def problems(self) -> list[Problem]:
        return self._builder.problems

    def history(self, messages: Sequence[object]) -> None:
        """Parse ``api_conversation_history.json``."""
        dropped = self._dropped(messages)
        for index, message in enumerate(messages):
            self._index = index
            if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
                self._builder.problem(index, "unknown message")
                continue
            if dropped and message.get("isSummary") is True:
                self.show(dropped)
                dropped = []
            self._message(message)

    def _dropped(self, messages: Sequence[object]) -> list[Shown]:
        """Return the messages shown between the first message and the first one that remains after a summary."""
        rows = [message for message in messages if isinstance(message, dict)]
        if any("condenseParent" in row for row in rows):
            return []  # these versions mark dropped messages and keep them
        begin = 0 if rows and rows[0].get("isSummary") is True else next((row["ts"] for row in rows if _has_time(row)), 0)
        end = next((row["ts"] for row in rows if row.get("isSummary") is True and _has_time(row)), 0)
        dropped = [each for each in self._shown if begin < each.at < end and each.kind != "task"]
        return [each for each in dropped if each.at > self._reported_to or each.kind in ("user_feedback", "followup")]

    # Messages exchanged with the model

    @property
    def last(self) -> int:
        """Time of the last message that was read, in Unix ms."""
        return round(self._at.timestamp() * 1000)

    def _record(self, name: str, at: int | None) -> None:
        if at is not None and (found := moment(at)) is not None:
            self._at = found
        self.started = self.started or (self._at if self._at != _EPOCH else None)
        self._name = name
        name = digest(f"{self._origin.provider}\n{self._origin.session}\n{name}".encode())
        self._builder.record(name, self._at, self._index, self._index, ordinal=self._index * _APART)

    def _message(self, message: Mapping[str, Any]) -> None:
        at = message["ts"] if _has_time(message) else None
        role = message["role"]
        name = self._unique(short(message.get("id")) or (role if at is None else f"{role} {at}"))
        blocks = blocks_of(message.get("content"))
        if message.get("isSummary") is True:
            self._record(name, at)
            self._builder.resume_point("\n\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str)))
        elif role == "assistant":
            self._record(name, at)
            self._assistant(blocks)
        else:
            self._user(blocks, name, at)

    def _assistant(self, blocks: Sequence[Mapping[str, Any]]) -> None:
        parent = ""
        self._open = ""
        native = any(block.get("type") == "tool_use" for block in blocks)
        for block in blocks:
            match block:
                case {"type": "text", "text": str(text)}:
                    reply = spoken(text, calls=not native)
                    parent = self._builder.answered(reply.text, parent=parent)
                    if reply.tool:
                        self._call(f"{self._index}", reply.tool, reply.given or {}, parent)
                    if reply.interrupted:
                        self._builder.resume_point("Interrupted", status="interrupted", parent=parent)
                case {"type": "tool_use", "name": str(tool)}:
                    given = block.get("input")
                    self._call(short(block.get("id")), short(tool), given if isinstance(given, dict) else {}, parent)
                case _:
                    self._passed_over(block)

    def _call(self, name: str, tool: str, given: Mapping[str, Any], parent: str) -> None:
        if tool in SPEAKING:
            words = given.get(SPEAKING[tool])
            self._builder.answered(words if isinstance(words, str) else "", parent=parent)
            self._asked = tool
            return
        self._open = name
        self._read = []
        self._builder.called(name, tool, self._placed(tool, given), parent=parent)
        if len(self._read) > 1:
            self._read_together[name] = self._read

    def _placed(self, tool: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments with full paths, and several commands joined into one."""
        placed = dict(given)
        paths = _paths(given)
        if paths and not TOOLS.path_of(given):
            placed["path"] = paths[0]
            self._read = [self._whole(path) for path in paths] if tool in TOOLS.readers else []
        match given:
            case {"commands": [*commands]} if tool in TOOLS.shells:
                placed["command"] = " && ".join(command for command in commands if isinstance(command, str))
            case _:
                pass
        if tool in TOOLS.writers or tool in TOOLS.lookers:
            for key in TOOLS.paths:
                if isinstance(placed.get(key), str):
                    placed[key] = self._whole(placed[key])
        return placed

    def _whole(self, path: str) -> str:
        path = path.strip()
        if not path or not self.cwd or path.startswith(("/", "\\", "~")) or path[1:2] == ":":
            return path
        return f"{self.cwd.rstrip('/')}/{path.removeprefix('./')}"

    def _user(self, blocks: Sequence[Mapping[str, Any]], name: str, at: int | None) -> None:
        self._record(name, at)
        texts: list[str] = []
        tool, result, resumed = "", False, False
        for block in blocks:
            match block:
                case {"type": "tool_result"}:
                    self._native_result(block)
                case {"type": "text", "text": str(text)}:
                    self._look_around(text)
                    details = text.lstrip().startswith("<environment_details>")
                    text = without_surroundings(text)
                    resumed |= details and not text.strip()  # what follows belongs to no result
                    head = heading(text)
                    if head is not None and (not result or texts):  # a heading right after one is what the tool returned
                        if result:
                            self._result(tool, texts)
                        tool, texts, result = head.tool, [head.rest] if head.rest.strip() else [], True
                    elif result and not resumed and (not texts or not self._is_beside_a_result(text)):
                        texts += [text] if text.strip() else []
                    else:
                        self._words(text, at)
                case _:
                    self._passed_over(block)
        if result:
            self._result(tool, texts)

    def _is_beside_a_result(self, text: str) -> bool:
        """Return whether a text after a result has the user's words. A tool may return several texts."""
        text = text.strip()
        feedback = [feedback_of(text)] if feedback_of(text) else [words.text for words in persons_words(text)]
        return starts_with_persons_words(text) and self._person.gave(feedback)

    def _look_around(self, text: str) -> None:
        if self.cwd or "<environment_details>" not in text:
            return
        if found := _WORKSPACE.search(text) or _WORKSPACES.search(text):
            path = found["path"].replace("\\\\", "\\")
            self.cwd = path.replace("\\", "/") if path[1:2] == ":" else path

    def _result(self, tool: str, texts: Sequence[str]) -> None:
        text = "\n".join(texts).strip()
        calls, name = self._builder.calls, self._open
        self._open = ""
        if name in calls.by_name:
            self._answered[tool] = (name, calls.by_name[name])
        name, call = self._answered.get(tool, ("", OpenCall(event="", tool=short(tool), detail="")))
        calls.close(name)
        if tool in SPEAKING:
            self._words_in(text, call, "")
        else:
            self._came(name, call, text, failed=False)

    def _native_result(self, block: Mapping[str, Any]) -> None:
        name = short(block.get("tool_use_id"))
        text, refused = returned_text(block.get("content"))
        text = without_surroundings(text)
        head = heading(text)
        text = head.rest if head else text
        call = self._builder.calls.close(name)
        if not call.event and self._asked:
            call, self._asked = OpenCall(event="", tool=self._asked, detail=""), ""
            self._words_in(text, call, "")
            return
        self._look_around(text)
        self._came(name, call, text, failed=refused or block.get("is_error") is True)

    def _came(self, name: str, call: OpenCall, text: str, *, failed: bool) -> None:
        builder, of_command = self._builder, call.tool in TOOLS.shells
        result = accompanied(text, of_command=of_command)
        said = [result.words] if result.words else reported(result.text)
        heard = bool(said) and self._person.gave(said)
        if said and not heard:
            result = Accompanied(text=text, running=result.running)
        output, status = outcome(result.text, failed=failed, of_command=of_command, refused=heard)
        done = [(path, "read") for path in self._read_together.pop(name, [])] if call.tool in TOOLS.readers else []
        if call.tool == "write_to_file" and "<operation>created</operation>" in text:
            done = [(call.detail, "created")]
        status = "" if result.running else status
        event = builder.returned(name, call, output, status, done=done if call.detail else [], running=result.running)
        if call.tool in TOOLS.asking:
            self._words_in(text, call, event)
        elif heard:
            for words in said:
                self._say(words, parent=event)

    def _words_in(self, text: str, call: OpenCall, event: str) -> None:
        """Add the user's words in the result of a tool by which the agent asks or writes to them; no one else writes there."""
        if feedback := feedback_of(text):
            self._say(feedback, parent=event)
        for words in persons_words(text):
            self._say(words.text, parent=event, answered=call if call.tool in TOOLS.asking or words.answer else None)

    def _words(self, text: str, at: int | None) -> None:
        if self._origin.bare:
            text = next((words.text for words in persons_words(text)), text)
            self._say(without_mentions(text), at=at)
        elif starts_with_persons_words(text):
            if feedback := feedback_of(text.strip()):
                self._say(feedback, at=at)
            for words in persons_words(text):
                self._say(words.text, at=at)

    def _say(self, text: str, *, at: int | None = None, parent: str = "", answered: OpenCall | None = None) -> None:
        """Add the user's words. An answer to a question becomes a decision."""
        heard, self._heard = self._heard, True
        if self._origin.by_an_agent and not heard:
            self._builder.answered(text, parent=parent)  # written by the parent task
            return
        name, back = self._name, self._at
        near = round(back.timestamp() * 1000) if at is None else at
        shown = self._person.moment_of(text, near)
        self._record(self._unique(f"said {near if shown is None else shown}"), shown)
        if answered is None:
            self._builder.said(text, parent=parent)
        else:
            decided = f"{answered.detail}\nAnswer: {text}" if answered.detail else text
            self._builder.add(EventType.DECISION, "user", shortened(decided, ANSWER_LIMIT), tool=answered.tool, parent=parent)
        if at is not None or parent:
            self._at = back
        self._record(f"{name}, then", None)

    def _unique(self, name: str) -> str:
        """Number repeated names, so that two messages of one moment stay distinct."""
        count = self._names[name] = self._names.get(name, 0) + 1
        return name if count == 1 else f"{name} #{count}"

    # Messages shown to the user

    def shown_only(self) -> None:
        """Parse ``ui_messages.json`` of a task that has nothing else."""
        self._alone = 1
        self._index = -1
        self.show(self._shown)

    def show(self, shown: Iterable[Shown]) -> None:
        """Add the events of messages that remain only as shown to the user."""
        asked, command, output = "", "", list[str]()
        for each in shown:
            self._index += self._alone
            text = each.message.get("text")
            text = text if isinstance(text, str) else ""
            if command and each.kind != "command_output":
                self._record(f"output of {command}", each.at)
                printed, status = outcome("\n".join(output), failed=False, of_command=True)
                self._builder.returned(command, self._builder.calls.close(command), printed, status)
                command, output = "", []
            match each.kind:
                case "task" | "user_feedback":
                    self._record(f"said {each.at}", each.at)
                    if asked and each.kind == "user_feedback":
                        decided = shortened(f"{asked}\nAnswer: {text}", ANSWER_LIMIT)
                        self._builder.add(EventType.DECISION, "user", decided)
                    elif each.kind == "task" and self._origin.by_an_agent:
                        self._builder.answered(text)
                    else:
                        self._builder.said(text)
                case "text" | "completion_result" | "plan_mode_respond":
                    self._record(self._unique(f"shown {each.at}"), each.at)
                    self._builder.answered(text)
                case "command":
                    command = self._unique(f"shown {each.at}")
                    self._record(command, each.at)
                    self._builder.called(command, "execute_command", {"command": text})
                case "command_output":
                    output.append(text)
                case "tool":
                    self._shown_tool(each.at, text)
                case "condense_context":
                    match each.message:
                        case {"contextCondense": {"summary": str(summary)}}:
                            self._record(self._unique(f"shown {each.at}"), each.at)
                            self._builder.resume_point(summary)
                        case _:
                            pass
                case "error" | "diff_error":
                    self._record(self._unique(f"shown {each.at}"), each.at)
                    self._builder.add(EventType.ERROR, "tool", shortened(text, ANSWER_LIMIT), status="failed")
                case _:
                    pass
            asked = question_in(text) if each.kind == "followup" else asked if each.kind in SKIPPED_SAYS else ""
        if command:
            self._record(f"output of {command}", None)
            printed, status = outcome("\n".join(output), failed=False, of_command=True)
            self._builder.returned(command, self._builder.calls.close(command), printed, status)

    def _shown_tool(self, at: int, text: str) -> None:
        try:
            content = orjson.loads(text)
        except orjson.JSONDecodeError:
            return
        match content:
            case {"tool": str(tool), "path": str(path)} if tool in _CHANGES:
                self._record(self._unique(f"shown {at}"), at)
                how = _CHANGES[tool]
                self._builder.add(EventType.FILE_ACTION, "tool", how, tool=tool, path=self._whole(path), status="ok")
            case _:
                pass

    def _passed_over(self, block: Mapping[str, Any]) -> None:
        kind = block.get("type")
        if not isinstance(kind, str) or kind not in _SKIPPED_BLOCKS:
            self._builder.problem(self._index, f"unknown block {safe(kind)}")


def _has_time(message: Mapping[str, Any]) -> bool:
    return isinstance(message.get("ts"), int)


def _paths(given: Mapping[str, Any]) -> list[str]:
    """Return the files that a call lists, in any form that versions have used."""
    listed: list[object] = next((given[key] for key in ("files", "paths", "file_paths") if isinstance(given.get(key), list)), [])
    named = (each.get("path") if isinstance(each, dict) else each for each in listed[:_READ_AT_ONCE])
    return [path for path in named if isinstance(path, str) and path]
