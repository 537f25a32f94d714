"""Parse lines of a Codex rollout into events."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from kite_memory.model.event import Event, EventType, Problem
from kite_memory.projects import branch_in_output
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.codex import tools
from kite_memory.sources.codex.records import (
    SKIPPED_COMPLETED,
    SKIPPED_EVENTS,
    SKIPPED_ITEMS,
    SKIPPED_TYPES,
    Header,
    RolloutState,
    created_ms,
    person_said,
    shell_command,
    user_part,
)
from kite_memory.sources.common.event_builder import (
    ANSWER_LIMIT,
    DETAIL_LIMIT,
    MESSAGE_LIMIT,
    SUMMARY_LIMIT,
    EventBuilder,
    OpenCall,
    title_of,
)
from kite_memory.sources.common.tool_text import COMMAND_LIMIT, moment, named, safe, short, shortened
from kite_memory.sources.common.words import OWN_EXTRACTOR_MARK

PROVIDER = "codex"

_ITEM, _EVENT = 0, 1
"""Indices of the two renderings of a message."""

_OLD_ITEMS = frozenset({"message", "reasoning", "function_call", "function_call_output", "local_shell_call", "custom_tool_call"})


class CodexInterpreter:
    """Parses lines in file order and collects their events. Changes only the `RolloutState` it was given.

    ``file_id`` is the session's id if no header names one.
    """

    def __init__(self, *, file: str, file_id: str, state: RolloutState) -> None:
        self._file = file
        self._file_id = file_id
        self._state = state
        self._builder = self._new_builder()
        self._row: Mapping[str, Any] = {}
        self._start = self._end = 0
        self._at = state.last_at

    @property
    def events(self) -> list[Event]:
        return self._builder.events

    @property
    def problems(self) -> list[Problem]:
        return self._builder.problems

    def _new_builder(self) -> EventBuilder:
        state = self._state
        session = state.header.id if state.headers else self._file_id
        return EventBuilder(
            provider=PROVIDER, session=session, file=self._file, tools=tools.TOOLS, calls=state.calls, ordinal=state.ordinal
        )

    def problem(self, position: int, reason: str) -> None:
        self._builder.problem(position, reason)

    def ends_here(self, row: Mapping[str, Any]) -> bool:
        """Return whether another session's turn begins with this line, so that reading must stop before it."""
        turn = _turn_begun(row)
        return bool(turn and self.events and self._state.headers) and self._state.owner(turn) != self._state.speaking

    def line(self, row: Mapping[str, Any], start: int, end: int) -> None:
        """Parse one object at the bytes ``[start, end)`` of the file."""
        self._row, self._start, self._end = row, start, end
        self._state.ordinal = self._builder.ordinal = max(start, self._builder.ordinal)
        kind, payload = row.get("type"), row.get("payload")
        if not isinstance(payload, dict):
            kind, payload = _of_old(row, kind)
        self._at = self._moment(kind, payload)
        match kind:
            case "session_meta":
                self._header(payload)
            case "turn_context":
                self._turn(payload)
            case "response_item":
                self._item(payload)
            case "event_msg":
                self._event(payload)
            case "compacted":
                self._compacted(payload)
            case str() if kind in SKIPPED_TYPES:
                pass
            case str():
                self._unknown(f"unknown type {safe(kind)}")
            case _:
                self._unknown("no type")
        self._state.ordinal = self._builder.ordinal

    def _unknown(self, reason: str) -> None:
        if self._state.new_to_us(reason):
            self.problem(self._start, reason)

    # Session

    def _moment(self, kind: object, payload: Mapping[str, Any]) -> datetime:
        """Return the event's time: a line that a fork repeats has the time of the fork, so its turn's time is used instead."""
        state = self._state
        found = moment(self._row.get("timestamp")) or moment(payload.get("timestamp"))
        if found is not None:
            state.last_at = found
            if not state.headers and kind != "session_meta":
                state.add(Header(id=self._file_id, started=found))
                self._speak()
        if state.speaking and (began := created_ms(state.turn)) is not None:
            return datetime.fromtimestamp(began / 1000, UTC)
        return state.last_at

    def _speak(self) -> None:
        """Build events for the session of the current header; no event of another session has been added yet."""
        problems = self._builder.problems
        self._builder = self._new_builder()
        self._builder.problems = problems
        self._builder.ordinal = max(self._start, self._state.ordinal)

    def _header(self, payload: Mapping[str, Any]) -> None:
        id = payload.get("id") or payload.get("session_id")
        git = payload.get("git")
        branch = git.get("branch") if isinstance(git, dict) else None
        url = git.get("repository_url") if isinstance(git, dict) else None
        cwd, source = payload.get("cwd"), payload.get("source")
        parents = (payload.get("parent_thread_id"), payload.get("forked_from_id"), _spawned_by(source))
        header = Header(
            id=short(id) or self._file_id,
            started=moment(payload.get("timestamp")) or self._at,
            cwd=beginning(cwd, 4096) if isinstance(cwd, str) else "",
            branch=beginning(branch, DETAIL_LIMIT) if isinstance(branch, str) else "",
            parent=next((short(parent) for parent in parents if parent), ""),
            sub_agent=_is_sub_agent(payload),
            repository_url=beginning(url, DETAIL_LIMIT) if isinstance(url, str) else "",
        )
        if header.parent == header.id:
            header.parent = ""
        self._state.add(header)
        if not self.events:
            self._speak()

    def _turn(self, payload: Mapping[str, Any]) -> None:
        state = self._state
        turn = short(payload.get("turn_id"))
        if turn and turn != state.turn:
            owner = state.owner(turn) if state.headers else 0
            state.turn = turn
            if owner != state.speaking:
                state.speaking = owner
                state.message = ""
                self._speak()
        if state.headers and not state.header.cwd and isinstance(cwd := payload.get("cwd"), str):
            state.header.cwd = beginning(cwd, 4096)

    def _compacted(self, payload: Mapping[str, Any]) -> None:
        message = payload.get("message")
        if isinstance(message, str) and (summary := shortened(message, SUMMARY_LIMIT).strip()):
            self._record(named(self._turn_key(), "compacted", message))
            self._builder.add(EventType.RESUME_POINT, "system", summary, parent=self._state.message)

    # Messages

    def _turn_key(self) -> str:
        state = self._state
        if state.turn and created_ms(state.turn) is not None:
            return state.turn
        return f"{state.header.id if state.headers else self._file_id}#{state.turn or state.turns}"

    def _record(self, name: str) -> None:
        self._builder.record(name, self._at, self._start, self._end)

    def _said(self, role: str, text: str, rendering: int) -> str:
        """Return the id of a message; empty if its other rendering was read already."""
        state = self._state
        if role == "user" and state.agent_spoke and not state.turn:
            state.turns += 1
        state.agent_spoke = role != "user"
        turn = self._turn_key()
        count = state.counted(named(turn, role, text)[:16], rendering)
        return "" if count is None else named(turn, role, text, str(count))

    def _person(self, text: str, rendering: int) -> None:
        state = self._state
        if not text:
            return
        if not state.message and OWN_EXTRACTOR_MARK in text:
            state.own_session = True
        name = self._said("user", text, rendering)
        if not name:
            return
        before = len(self.events)
        self._record(name)
        ran = shell_command(text)
        if ran is not None:
            self._ran(*ran)
        elif state.headers and state.header.sub_agent:
            if answer := shortened(text, MESSAGE_LIMIT).strip():
                self._builder.add(EventType.ASSISTANT_MESSAGE, "assistant", answer)
        else:
            self._builder.said(text)
        if len(self.events) > before:
            state.message = name

    def _ran(self, command: str, output: str) -> None:
        """Add a command that the user ran directly, and its result."""
        if not command:
            return
        command = shortened(command, COMMAND_LIMIT)
        event = self._builder.add(EventType.COMMAND, "user", command, command=command)
        result = tools.output_of(output)
        call = OpenCall(event=event, tool="shell", detail=command)
        self._builder.returned("", call, result.text, result.status)

    def _agent(self, text: str, rendering: int) -> None:
        if not text.strip() or not (name := self._said("assistant", text, rendering)):
            return
        self._record(name)
        self._state.message = self._builder.answered(text, parent=self._state.message)

    # Tool calls and results

    def _item(self, item: Mapping[str, Any]) -> None:
        kind = item.get("type")
        if kind is None and "role" in item:
            kind = "message"
        match kind:
            case "message":
                match item.get("role"):
                    case "assistant":
                        self._agent(tools.text_of(item.get("content")), _ITEM)
                    case "user":
                        self._person(user_part(item), _ITEM)
                    case _:
                        pass
            case str() if kind.endswith("_call"):
                self._call(item)
            case str() if kind.endswith("_output"):
                self._output(item)
            case str() if kind in SKIPPED_ITEMS:
                pass
            case _:
                self._unknown(f"unknown item {safe(kind)}")

    def _call(self, item: Mapping[str, Any]) -> None:
        state = self._state
        call = short(item.get("call_id"))
        name = self._call_name(call) if call else self._unnamed(item)
        if not name:
            return
        asked = tools.codex_call(item, state.header.cwd if state.headers else "")
        self._record(name)
        self._builder.called(call, asked.tool, asked.given, parent=state.message)
        if call and asked.elsewhere:
            state.run_elsewhere(call)
        if call and asked.process in state.processes:
            state.calls.open(call, OpenCall(event=name, tool=asked.tool, detail=state.processes[asked.process]))
        if call and asked.files:
            state.keep_patch(call, asked.files)
        state.agent_spoke = True

    def _call_name(self, call: str) -> str:
        return named(self._state.header.id if self._state.headers else self._file_id, "call", call)

    def _unnamed(self, item: Mapping[str, Any]) -> str:
        """Return an id for a call that has none, derived from its content."""
        said = {key: item.get(key) for key in ("type", "name", "action", "arguments", "status", "id")}
        text = orjson.dumps(said, option=orjson.OPT_SORT_KEYS, default=str).decode()
        return self._said("call", text, _ITEM)

    def _output(self, item: Mapping[str, Any]) -> None:
        state = self._state
        call = short(item.get("call_id"))
        opened = state.calls.by_name.pop(call, None)
        if opened is None:
            opened = OpenCall(event=self._call_name(call) if call else "", tool="", detail="")
        output = item.get("output") if "output" in item and item["output"] is not None else item.get("tools", item.get("result"))
        result = tools.output_of(output)
        if result.process and opened.detail:
            state.keep_process(result.process, opened.detail)
        files = state.patches.pop(call, [])
        if result.status == "ok" and opened.tool in tools.COMMANDS and call not in state.elsewhere and state.headers:
            state.header.branch = beginning(branch_in_output(opened.detail, result.text), DETAIL_LIMIT) or state.header.branch
        self._record(named(opened.event or self._turn_key(), "result"))
        running = bool(result.process)
        event = self._builder.returned(call, opened, result.text, result.status, done=files, running=running)
        state.close(call[-12:])
        if opened.tool in tools.ASKERS and result.status == "ok" and result.text and not state.header.sub_agent:
            decided = shortened(f"{opened.detail}\nAnswer: {result.text}".strip(), ANSWER_LIMIT)
            self._builder.add(EventType.DECISION, "user", decided, tool=opened.tool, parent=event, call=call)

    # Events of the client

    def _event(self, payload: Mapping[str, Any]) -> None:
        kind = payload.get("type")
        match payload:
            case {"type": "user_message", "message": str(text)}:
                self._person(person_said(text), _EVENT)
            case {"type": "agent_message", "message": str(text)}:
                self._agent(text, _EVENT)
            case {"type": "item_completed", "item": dict(item)}:
                self._completed(item)
            case {"type": "task_started" | "turn_started"}:
                self._turn(payload)
            case {"type": "turn_aborted"}:
                self._aborted(payload)
            case {"type": "thread_name_updated", "thread_name": str(title)}:
                if not self._state.speaking:
                    self._state.title = title_of(title) or self._state.title
            case {"type": "exec_command_end"}:
                self._executed(payload, short(payload.get("call_id")))
            case {"type": "patch_apply_end"}:
                self._applied(payload, short(payload.get("call_id")))
            case {"type": str()} if kind in SKIPPED_EVENTS or kind in ("user_message", "agent_message", "thread_name_updated"):
                pass
            case _:
                self._unknown(f"unknown event {safe(kind)}")

    def _completed(self, item: Mapping[str, Any]) -> None:
        kind = item.get("type")
        match kind:
            case "UserMessage":
                self._person(person_said(_joined(item.get("content"))), _EVENT)
            case "AgentMessage":
                self._agent(_joined(item.get("content")), _EVENT)
            case "CommandExecution":
                self._executed(item, short(item.get("id")))
            case "FileChange":
                self._applied(item, short(item.get("id")))
            case str() if kind in SKIPPED_COMPLETED:
                pass
            case _:
                self._unknown(f"unknown completed item {safe(kind)}")

    def _aborted(self, payload: Mapping[str, Any]) -> None:
        reason = payload.get("reason")
        if reason in ("replaced", "review_ended"):
            return
        self._record(named(self._turn_key(), "aborted"))
        said = "The person interrupted the agent." if reason == "interrupted" else f"The turn was aborted: {safe(reason)}."
        self._builder.add(EventType.RESUME_POINT, "system", said, status="interrupted", parent=self._state.message)

    def _is_an_item(self, call: str) -> bool:
        """Return whether an executed call is also an item of the rollout. Calls made by scripts are not.

        A command that the user ran directly is in a message.
        """
        return not call or call in self._state.calls.by_name or call[-12:] in self._state.answered

    def _executed(self, payload: Mapping[str, Any], call: str) -> None:
        if self._is_an_item(call) or payload.get("source") in ("user_shell", "userShell"):
            return
        name = self._call_name(call)
        self._record(name)
        given = {"command": tools.command_line(payload.get("command"))}
        opened = self._builder.called(call, "exec_command", given, parent=self._state.message)
        self._state.calls.by_name.pop(call, None)
        code = payload.get("exit_code")
        output = payload.get("aggregated_output", payload.get("formatted_output"))
        text = output if isinstance(output, str) else ""
        self._record(named(name, "result"))
        self._builder.returned(call, opened, text.strip(), "failed" if isinstance(code, int) and code else "ok")
        self._state.close(call[-12:])

    def _applied(self, payload: Mapping[str, Any], call: str) -> None:
        if self._is_an_item(call):
            return
        files = tools.changed(payload.get("changes"), self._state.header.cwd if self._state.headers else "")
        name = self._call_name(call)
        self._record(name)
        opened = self._builder.called(call, "apply_patch", {"path": files[0][0] if files else ""}, parent=self._state.message)
        self._state.calls.by_name.pop(call, None)
        said = [text for key in ("stdout", "stderr") if isinstance(text := payload.get(key), str) and text.strip()]
        well = payload.get("success") is True or payload.get("status") == "completed"
        self._record(named(name, "result"))
        self._builder.returned(call, opened, "\n".join(said).strip(), "ok" if well else "failed", done=files)
        self._state.close(call[-12:])


def _turn_begun(row: Mapping[str, Any]) -> str:
    match row:
        case {"type": "turn_context", "payload": {"turn_id": str(turn)}}:
            return turn
        case {"type": "event_msg", "payload": {"type": "task_started" | "turn_started", "turn_id": str(turn)}}:
            return turn
        case _:
            return ""


def _of_old(row: Mapping[str, Any], kind: object) -> tuple[object, Mapping[str, Any]]:
    """Return type and content of a line from before 0.4, which was an item itself, and the first line the header."""
    if isinstance(kind, str) and kind in _OLD_ITEMS:
        return "response_item", row
    if kind is None and "id" in row and "timestamp" in row:
        return "session_meta", row
    if kind is None and row.get("record_type") == "state":
        return "world_state", {}
    return kind, {}


def _spawned_by(source: object) -> object:
    match source:
        case {"subagent": {"thread_spawn": {"parent_thread_id": str(parent)}}}:
            return parent
        case _:
            return None


def _is_sub_agent(payload: Mapping[str, Any]) -> bool:
    source = payload.get("source")
    return (isinstance(source, dict) and "subagent" in source) or payload.get("thread_source") == "subagent"


def _joined(content: object) -> str:
    """Return the text of an item's content, whatever case its part types are written in."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "\n".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
