"""GitHub Copilot CLI's sessions: their location, and reading them from a cursor."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from kite_memory.model.event import EventType, Status
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.event_builder import ANSWER_LIMIT, Toolbox
from kite_memory.sources.common.line_source import Line, LineSource
from kite_memory.sources.common.tool_text import PATH_LIMIT, as_id, safe, scalar, short, shortened
from kite_memory.sources.common.words import summary, without_enclosed
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
_PATCHED = lazy_regex(r"^\*\*\* (?:Add|Update|Delete) File: (.{1,1024})$", re.MULTILINE)
_ANSWERED = lazy_regex(r"User (?:responded|selected|answered)[^:\n]{0,20}: ?")
_REFUSED = ("The user rejected", "Permission denied", "The user denied", "Permission to run this tool was denied")


_EVENTS_FILE = "events.jsonl"


class CopilotCli(LineSource):
    """Source that reads ``<root>/session-state``, where ``root`` is ``${COPILOT_HOME:-~/.copilot}``.

    A session is a folder with an ``events.jsonl`` beside its checkpoints and files; before 1.0 it was a single file. Either is
    named after the session.
    """

    provider = PROVIDER
    tools = TOOLS

    def __init__(self, root: Path, *, own_state: Path) -> None:
        super().__init__(root / "session-state", own_state=own_state)

    def transcripts(self) -> Iterator[Path]:
        for name in names_in(self._folder):
            places = (name, f"{name}/{_EVENTS_FILE}") if name.endswith(self.suffix) else (f"{name}/{_EVENTS_FILE}",)
            for place in places:
                path = self._folder / place
                if is_text(path) and is_file(path):
                    yield path

    def owns(self, path: Path) -> bool:
        if not path.is_relative_to(self._folder) or not is_text(path):
            return False
        parts = path.relative_to(self._folder).parts
        if ".." in parts:
            return False
        return (len(parts) == 1 and path.suffix == self.suffix) or (len(parts) == 2 and path.name == _EVENTS_FILE)

    def session_of(self, path: Path) -> str:
        return path.parent.name if path.name == _EVENTS_FILE else path.stem

    def time_of(self, row: Mapping[str, Any]) -> datetime | None:
        match row:
            case {"type": str(), "data": dict()}:
                return super().time_of(row)
            case _:
                return None

    def line(self, row: Mapping[str, Any], line: Line) -> None:
        match row:
            case {"type": str(kind), "data": dict(data)}:
                self._add_events(kind, row, data, line)
            case {"type": str()}:
                line.problem(line.start, "no data")
            case _:
                line.problem(line.start, "no type")

    def _add_events(self, kind: str, row: Mapping[str, Any], data: Mapping[str, Any], line: Line) -> None:
        before = as_id(row.get("parentId"))
        match kind:
            case "user.message":
                self._user(row, data, before, line)
            case "assistant.message":
                self._assistant(data, before, line)
            case "tool.execution_start" | "tool.user_requested":
                name, tool = short(data.get("toolCallId")), short(data.get("toolName"))
                if tool and name not in line.progress.calls.by_name:
                    _call(name, tool, data, before, line, by_a_person=kind == "tool.user_requested")
            case "tool.execution_complete":
                _result(data, line)
            case "permission.completed":
                match data.get("result"):
                    case {"kind": "denied-interactively-by-user" | "reject", "feedback": str(words)}:
                        line.user(words, parent=before)
                    case _:
                        pass
            case "abort":
                reason = safe(data.get("reason")).replace("_", " ")
                line.builder.resume_point(f"Interrupted: {reason}", status="interrupted", parent=before)
            case "session.compaction_complete" | "session.handoff":
                content = data.get("summaryContent") if kind == "session.compaction_complete" else data.get("summary")
                if isinstance(content, str):
                    line.builder.resume_point(summary(content), parent=before)
            case "session.title_changed":
                line.titled(data.get("title"))
            case "session.start" | "session.resume":
                match data.get("context"):
                    case dict(context):
                        line.in_folder(context.get("cwd"), context.get("branch"))
                    case _:
                        pass
            case _ if kind not in SKIPPED_TYPES and not kind.startswith(SKIPPED_FAMILIES):
                line.unknown(kind)
            case _:
                pass

    def _user(self, row: Mapping[str, Any], data: Mapping[str, Any], before: str, line: Line) -> None:
        """Add a user message. ``content`` is what was typed; ``transformedContent``, what the agent was given, is skipped."""
        content, source = data.get("content"), data.get("source")
        if not isinstance(content, str):
            return
        if isinstance(row.get("agentId"), str) or data.get("parentToolCallId"):
            line.builder.answered(content, parent=before)  # an agent's message to its sub-agent
        elif data.get("isAutopilotContinuation") is not True and source in (None, "", "user"):
            line.user(without_enclosed(content, ("current_datetime", "system_reminder")), parent=before)

    def _assistant(self, data: Mapping[str, Any], before: str, line: Line) -> None:
        parent = line.assistant(data.get("content"), parent=before)
        requests = data.get("toolRequests")
        for request in requests[:_CALLS_AT_ONCE] if isinstance(requests, list) else []:
            match request:
                case {"toolCallId": str(name), "name": str(tool)} if tool and short(name) not in line.progress.calls.by_name:
                    _call(short(name), short(tool), request, parent, line)
                case _:
                    continue


def _call(name: str, tool: str, data: Mapping[str, Any], parent: str, line: Line, *, by_a_person: bool = False) -> None:
    given = _arguments(data.get("arguments"), tool)
    opened = line.builder.called(name, tool, given, parent=parent, by_a_person=by_a_person)
    command = line.progress.running.get(scalar(given.get("shellId"))) if tool in TOOLS.outputs else None
    if name and command:
        line.progress.calls.open(name, replace(opened, detail=command))


def _result(data: Mapping[str, Any], line: Line) -> None:
    builder = line.builder
    name = short(data.get("toolCallId"))
    text, status = _outcome(data)
    call = line.progress.calls.close(name)
    running = _RUNNING.search(text, max(0, len(text) - 600)) if status == "ok" else None
    if running and call.detail:
        line.progress.keep_running(running["waited"] or running["begun"], call.detail)
    done = _changed(data, TOOLS.writers.get(call.tool, ""))
    event = builder.returned(name, call, text, "" if running else status, done=done, running=running is not None)
    if status == "ok" and call.tool in TOOLS.asking and not data.get("parentToolCallId"):
        decided = shortened(f"{call.detail}\nAnswer: {_ANSWERED.sub('', text, count=1).strip()}", ANSWER_LIMIT)
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
