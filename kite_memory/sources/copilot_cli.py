"""GitHub Copilot CLI's sessions: their location, and reading them from a cursor."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from kite_memory.model.event import Cursor, Event, EventType, Problem, ReadResult, Session, Status
from kite_memory.projects import project_of
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.event_builder import ANSWER_LIMIT, TITLE_LIMIT, EventBuilder, OpenCalls, Toolbox, title_of
from kite_memory.sources.common.growing import looked, read_growing, read_on, resumed
from kite_memory.sources.common.jsonl import LINE_LIMIT, AppendOnlyFile, FoundObject
from kite_memory.sources.common.tool_text import PATH_LIMIT, as_id, digest, kept, moment, safe, scalar, short
from kite_memory.sources.common.words import OWN_EXTRACTOR_MARK, made_by_our_extractor, summary, without_blocks
from kite_memory.system.private_files import is_file, is_text, names_in
from kite_memory.text import lazy_regex

SKIPPED_FAMILIES = (
    # Input and output of hooks: repeats prompts and commands, and may contain our own memory.
    "hook.",
    # Permissions; a denial is in the result of the call. The user's words with it are parsed.
    "permission.",
    "sandbox.",
    "mcp.",
    "model.",
    "workflow.",
    "session.canvas.",
    "session.schedule_",
    "session.fusion_",
    "session.mcp_",
    "session.managed_",
    "session.auto_",
    "assistant.fusion_",
    "elicitation.",
    "sampling.",
    "auto_mode_switch.",
    "session_limits_exhausted.",
    "tool_search.",
)

SKIPPED_TYPES = frozenset(
    {
        # The agent's context and descriptions of its environment.
        "system.message",
        "system.notification",
        "skill.invoked",
        "skill.invoked_ref",
        "skill.context_delivered",
        "skill.context_delivered_ref",
        "session.mode_notice_delivered",
        "session.custom_notification",
        # Turns, fragments of messages that follow as a whole, thoughts.
        "assistant.turn_start",
        "assistant.turn_end",
        "assistant.turn_retry",
        "assistant.intent",
        "assistant.reasoning",
        "assistant.thinking",
        "assistant.reasoning_delta",
        "assistant.tool_call_delta",
        "assistant.streaming_delta",
        "assistant.message_start",
        "assistant.message_delta",
        "assistant.server_tool_progress",
        "assistant.idle",
        "assistant.usage",
        "tool.execution_partial_result",
        "tool.execution_progress",
        "tool.shell_output",
        "prompt_cache_break",
        # Sub-agents begin and end with tool calls, which are parsed; so do questions, plans and completed tasks.
        "subagent.started",
        "subagent.configured",
        "subagent.completed",
        "subagent.failed",
        "subagent.selected",
        "subagent.deselected",
        "user_input.requested",
        "user_input.completed",
        "exit_plan_mode.requested",
        "exit_plan_mode.completed",
        "human_response.recorded",
        "external_tool.requested",
        "external_tool.completed",
        "mcp_app.tool_call_complete",
        "session.task_complete",
        # The client's own state.
        "session.remote_steerable_changed",
        "session.idle",
        "session.info",
        "session.warning",
        "session.error",
        "session.indexed_search",
        "session.model_change",
        "session.model_deselected",
        "session.mode_changed",
        "session.session_limits_changed",
        "session.permissions_changed",
        "session.permission_recovery",
        "session.plan_changed",
        "session.todos_changed",
        "session.workspace_file_changed",
        "session.truncation",
        "session.snapshot_rewind",
        "session.shutdown",
        "session.usage_checkpoint",
        "session.usage_info",
        "session.quota_observation",
        "session.context_changed",
        "session.context_cleared",
        "session.compaction_start",
        "session.completion_receipt",
        "session.binary_asset",
        "session.tools_updated",
        "session.background_tasks_changed",
        "session.skills_loaded",
        "session.custom_agents_updated",
        "session.extensions_loaded",
        "session.extensions.attachments_pushed",
        "session.import_legacy",
        "pending_messages.modified",
        "command.queued",
        "command.execute",
        "command.completed",
        "commands.changed",
        "capabilities.changed",
        "ui.ephemeral_query",
        "agent.interrupted",
    }
)


PROVIDER = "copilot-cli"

_VERSION = 1
_EPOCH = datetime.fromtimestamp(0, UTC)
_CALLS_AT_ONCE = 200
_PATCHED_FILES = 50
_PATCH_HEAD = 100_000

TOOLS = Toolbox(
    shells=frozenset({"bash", "powershell", "shell", "local_shell"}),
    outputs=frozenset({"read_bash", "write_bash", "read_powershell", "write_powershell"}),
    readers=frozenset({"view"}),
    lookers=frozenset({"view", "grep", "glob", "rg"}),
    writers={"create": "created", "edit": "edited", "str_replace_editor": "edited", "apply_patch": "edited"},
    paths=("path", "file_path"),
    asking={"ask_user": "question", "exit_plan_mode": "summary"},
)

_ENDED = lazy_regex(
    r"\n?<(?:shellId: \S{1,20}|command with (?:id|shellId): \S{1,20}) (?:completed|exited) with exit code (-?\d{1,10})>\s*\Z"
)
_RUNNING = lazy_regex(
    r"<command (?:with (?:shellId|id): (?P<waited>\S{1,20}) is still running\b[^<>]{0,500}"
    r"|started in (?:the )?background with (?:shellId|id): (?P<begun>[^\s<>]{1,20})[^<>]{0,500})>\s*\Z"
)
_SHELLS = 8
_PATCHED = lazy_regex(r"^\*\*\* (?:Add|Update|Delete) File: (.{1,1024})$", re.MULTILINE)
_ANSWERED = lazy_regex(r"User (?:responded|selected|answered)[^:\n]{0,20}: ?")
_REFUSED = ("The user rejected", "Permission denied", "The user denied", "Permission to run this tool was denied")


@dataclass(slots=True, kw_only=True)
class CopilotState:
    """State carried from earlier lines to later ones, small enough for a cursor.

    ``shells`` are commands that still run, by the name under which a later call requests their output.
    """

    started: datetime | None = None
    last_at: datetime = _EPOCH
    ordinal: int = 0
    cwd: str = ""
    branch: str = ""
    title: str = ""
    ours: bool = False
    answered: bool = False
    calls: OpenCalls = field(default_factory=OpenCalls)
    shells: dict[str, str] = field(default_factory=dict)

    def keep_shell(self, name: str, command: str) -> None:
        self.shells.pop(name, None)
        self.shells[name] = command
        while len(self.shells) > _SHELLS:
            del self.shells[next(iter(self.shells))]

    def carried(self) -> str:
        return orjson.dumps(
            {
                "v": _VERSION,
                "started": self.started,
                "at": self.last_at,
                "ordinal": self.ordinal,
                "cwd": self.cwd,
                "branch": self.branch,
                "title": self.title,
                "flags": [self.ours, self.answered],
                "calls": self.calls.carried(),
                "shells": self.shells,
            }
        ).decode()

    @staticmethod
    def resumed(carry: str) -> "CopilotState | None":
        """Parse what `carried` returned; return ``None`` if another version wrote it."""
        try:
            known: dict[str, Any] = orjson.loads(carry)
            if known["v"] != _VERSION:
                return None
            return CopilotState(
                started=datetime.fromisoformat(known["started"]) if known["started"] else None,
                last_at=datetime.fromisoformat(known["at"]),
                ordinal=known["ordinal"],
                cwd=known["cwd"],
                branch=known["branch"],
                title=known["title"],
                ours=known["flags"][0],
                answered=known["flags"][1],
                calls=OpenCalls.resumed(known["calls"]),
                shells=dict(known.get("shells", {})),
            )
        except (ValueError, KeyError, TypeError, IndexError):
            return None


class CopilotInterpreter:
    """Parses lines in file order and collects their events. Changes only the `CopilotState` it was given."""

    def __init__(self, *, file: str, session: str, thread: CopilotState, own_folders: Iterable[Path] = ()) -> None:
        self._thread = thread
        self._own_folders = tuple(own_folders)
        self._builder = EventBuilder(
            provider=PROVIDER, session=session, file=file, tools=TOOLS, calls=thread.calls, ordinal=thread.ordinal
        )

    @property
    def events(self) -> list[Event]:
        return self._builder.events

    @property
    def problems(self) -> list[Problem]:
        return self._builder.problems

    def problem(self, position: int, reason: str) -> None:
        self._builder.problem(position, reason)

    def line(self, row: Mapping[str, Any], start: int, end: int, line: bytes) -> None:
        """Parse one object at the bytes ``[start, end)`` of the file, on ``line``."""
        thread, builder = self._thread, self._builder
        kind, data = row.get("type"), row.get("data")
        if not isinstance(kind, str) or not isinstance(data, dict):
            self.problem(start, "no type" if not isinstance(kind, str) else "no data")
            return
        at = moment(row.get("timestamp"))
        if at is not None:
            thread.last_at = at
            thread.started = thread.started or at
        if kind in ("session.start", "session.resume"):
            self._place(data.get("context"))
        if not thread.answered and not thread.ours:
            thread.ours = self._made_by_us(row, data, line)
        if thread.ours:
            return
        builder.record(as_id(row.get("id")) or digest(line), thread.last_at, start, end)
        self._add_events(kind, row, data, start)
        thread.ordinal = builder.ordinal

    def _made_by_us(self, row: Mapping[str, Any], data: Mapping[str, Any], line: bytes) -> bool:
        if made_by_our_extractor(row, line, first_cwd=self._thread.cwd, own_folders=self._own_folders):
            return True
        content = data.get("content") if row.get("type") == "user.message" else None
        return isinstance(content, str) and OWN_EXTRACTOR_MARK in content

    def _place(self, context: object) -> None:
        thread = self._thread
        if not isinstance(context, dict):
            return
        if not thread.cwd and isinstance(cwd := context.get("cwd"), str):
            thread.cwd = beginning(cwd, 4096)
        if not thread.branch and isinstance(branch := context.get("branch"), str):
            thread.branch = beginning(branch, TITLE_LIMIT)

    def _add_events(self, kind: str, row: Mapping[str, Any], data: Mapping[str, Any], start: int) -> None:
        before = as_id(row.get("parentId"))
        match kind:
            case "user.message":
                self._user(row, data, before)
            case "assistant.message":
                self._assistant(data, before)
            case "tool.execution_start" | "tool.user_requested":
                name, tool = short(data.get("toolCallId")), short(data.get("toolName"))
                if tool and name not in self._thread.calls.by_name:
                    self._call(name, tool, data, before, by_a_person=kind == "tool.user_requested")
            case "tool.execution_complete":
                self._result(data)
            case "permission.completed":
                match data.get("result"):
                    case {"kind": "denied-interactively-by-user" | "reject", "feedback": str(words)}:
                        self._builder.said(words, parent=before)
                    case _:
                        pass
            case "abort":
                reason = safe(data.get("reason")).replace("_", " ")
                self._builder.resume_point(f"Interrupted: {reason}", status="interrupted", parent=before)
            case "session.compaction_complete" | "session.handoff":
                content = data.get("summaryContent") if kind == "session.compaction_complete" else data.get("summary")
                if isinstance(content, str):
                    self._builder.resume_point(summary(content), parent=before)
            case "session.title_changed":
                self._thread.title = title_of(data.get("title")) or self._thread.title
            case "session.start" | "session.resume":
                pass
            case _ if kind not in SKIPPED_TYPES and not kind.startswith(SKIPPED_FAMILIES):
                self.problem(start, f"unknown type {safe(kind)}")
            case _:
                pass

    def _user(self, row: Mapping[str, Any], data: Mapping[str, Any], before: str) -> None:
        """Add a user message. ``content`` is what was typed; ``transformedContent``, what the agent was given, is skipped."""
        content, source = data.get("content"), data.get("source")
        if not isinstance(content, str):
            return
        if isinstance(row.get("agentId"), str) or data.get("parentToolCallId"):
            self._builder.answered(content, parent=before)  # an agent's message to its sub-agent
        elif data.get("isAutopilotContinuation") is not True and source in (None, "", "user"):
            for tag in ("current_datetime", "system_reminder"):
                content = without_blocks(content, tag)
            self._builder.said(content, parent=before)

    def _assistant(self, data: Mapping[str, Any], before: str) -> None:
        builder, calls = self._builder, self._thread.calls
        self._thread.answered = True
        content = data.get("content")
        parent = builder.answered(content, parent=before) if isinstance(content, str) else before
        requests = data.get("toolRequests")
        for request in requests[:_CALLS_AT_ONCE] if isinstance(requests, list) else []:
            match request:
                case {"toolCallId": str(name), "name": str(tool)} if tool and short(name) not in calls.by_name:
                    self._call(short(name), short(tool), request, parent)
                case _:
                    continue

    def _call(self, name: str, tool: str, data: Mapping[str, Any], parent: str, *, by_a_person: bool = False) -> None:
        given = _arguments(data.get("arguments"), tool)
        opened = self._builder.called(name, tool, given, parent=parent, by_a_person=by_a_person)
        command = self._thread.shells.get(scalar(given.get("shellId"))) if tool in TOOLS.outputs else None
        if name and command:
            self._thread.calls.open(name, replace(opened, detail=command))

    def _result(self, data: Mapping[str, Any]) -> None:
        builder = self._builder
        name = short(data.get("toolCallId"))
        text, status = _outcome(data)
        call = self._thread.calls.close(name)
        running = _RUNNING.search(text, max(0, len(text) - 600)) if status == "ok" else None
        if running and call.detail:
            self._thread.keep_shell(running["waited"] or running["begun"], call.detail)
        done = _changed(data, TOOLS.writers.get(call.tool, ""))
        event = builder.returned(name, call, text, "" if running else status, done=done, running=running is not None)
        if status == "ok" and call.tool in TOOLS.asking and not data.get("parentToolCallId"):
            decided = kept(f"{call.detail}\nAnswer: {_ANSWERED.sub('', text, count=1).strip()}", ANSWER_LIMIT)
            builder.add(EventType.DECISION, "user", decided, tool=call.tool, parent=event, call=name)


def _arguments(given: object, tool: str) -> Mapping[str, Any]:
    """Return a call's arguments from an object, the same as JSON text, or a patch as plain text."""
    if isinstance(given, str):
        if tool == "apply_patch":
            path = _PATCHED.search(given[:_PATCH_HEAD])
            return {"patch": given, **({"path": path[1].strip()} if path else {})}
        try:
            given = orjson.loads(given)
        except orjson.JSONDecodeError:
            return {"input": given}
    return given if isinstance(given, dict) else {}


def _outcome(data: Mapping[str, Any]) -> tuple[str, Status]:
    """Return the text of a result without the client's closing line, and its status.

    ``success`` states only that the tool ran: a command's own failure is in its exit code.
    """
    text, code = "", 0
    match data:
        case {"result": {"content": str(content)}} | {"result": str(content)}:
            text = content
        case {"error": {"message": str(content)}} | {"error": str(content)}:
            text = content
        case _:
            pass
    if ended := _ENDED.search(text, max(0, len(text) - 200)):
        text, code = text[: ended.start()], int(ended[1])
    match data:
        case {"shellExecution": {"exitCode": int(exit_code)}} | {"toolTelemetry": {"metrics": {"exit_code": int(exit_code)}}}:
            code = code or exit_code
        case _:
            pass
    if data.get("success") is False:
        error = data.get("error")
        named = error.get("code") if isinstance(error, dict) else ""
        if named in ("rejected", "denied") or text.startswith(_REFUSED):
            return text, "denied"
        return text, "failed"
    return text, "failed" if code else "ok"


def _changed(data: Mapping[str, Any], how: str) -> list[tuple[str, str]]:
    """Return the files that a call changed, if its result lists them: a patch may change several."""
    match data:
        case {"toolTelemetry": {"restrictedProperties": {"filePaths": str(listed)}, "metrics": dict(metrics)}} if how:
            pass
        case _:
            return []
    try:
        paths = orjson.loads(listed)
    except orjson.JSONDecodeError:
        return []
    listed_paths = paths[:_PATCHED_FILES] if isinstance(paths, list) else []
    found = [beginning(path, PATH_LIMIT) for path in listed_paths if isinstance(path, str)]
    match metrics:
        case {"linesAdded": int(added), "linesRemoved": int(removed)} if len(found) == 1 and how == "edited":
            how = f"edited, {added} lines added, {removed} removed"
        case _:
            pass
    return [(path, how) for path in found]


_EVENTS_FILE = "events.jsonl"


class CopilotCli:
    """Source that reads ``<root>/session-state``, where ``root`` is ``${COPILOT_HOME:-~/.copilot}``.

    A session is a folder with an ``events.jsonl`` beside its checkpoints and files; before 1.0 it was a single file. Either is
    named after the session.
    """

    def __init__(self, root: Path, *, own_state: Path, line_limit: int = LINE_LIMIT) -> None:
        self._sessions = root / "session-state"
        self._own_folders = (own_state, own_state.resolve())
        self._line_limit = line_limit

    @property
    def provider(self) -> str:
        return PROVIDER

    def roots(self) -> tuple[Path, ...]:
        return (self._sessions,)

    def transcripts(self) -> Iterator[Path]:
        for name in names_in(self._sessions):
            places = (name, f"{name}/{_EVENTS_FILE}") if name.endswith(".jsonl") else (f"{name}/{_EVENTS_FILE}",)
            for place in places:
                path = self._sessions / place
                if is_text(path) and is_file(path):
                    yield path

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        return sorted(paths)

    def owns(self, path: Path) -> bool:
        if not path.is_relative_to(self._sessions) or not is_text(path):
            return False
        parts = path.relative_to(self._sessions).parts
        if ".." in parts:
            return False
        return (len(parts) == 1 and path.suffix == ".jsonl") or (len(parts) == 2 and path.name == _EVENTS_FILE)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        return read_growing(
            path,
            cursor,
            within=self._sessions,
            line_limit=self._line_limit,
            read=lambda file: self._read_next(path, file, cursor, budget),
        )

    def _read_next(self, path: Path, file: AppendOnlyFile, cursor: Cursor | None, budget: int) -> ReadResult:
        position, thread, changed = resumed(file, cursor, CopilotState, CopilotState.resumed)
        name = path.parent.name if path.name == _EVENTS_FILE else path.stem
        interpreter = CopilotInterpreter(file=str(path), session=name, thread=thread, own_folders=self._own_folders)
        if changed:
            interpreter.problem(0, changed)

        def read_line(found: FoundObject, at: int, line: bytes) -> None:
            interpreter.line(found.row, at + found.start, at + found.end, line[found.start : found.end])

        position, more = read_on(file, position, interpreter, read_line, budget=budget, wanted=not thread.ours)
        return looked(
            path,
            file,
            interpreter,
            session=_session(name, thread),
            position=position,
            carry=thread.carried(),
            more=more,
            wanted=not thread.ours,
        )


def _session(name: str, thread: CopilotState) -> Session | None:
    if thread.started is None:
        return None
    return Session(
        id=name,
        provider=PROVIDER,
        started=thread.started,
        project=project_of(thread.cwd),
        cwd=thread.cwd,
        branch=thread.branch,
        title=thread.title,
    )
