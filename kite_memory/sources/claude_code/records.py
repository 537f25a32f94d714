"""Claude Code's record types that are skipped on purpose, and its tool results parsed.

Types neither parsed nor listed here are counted as problems. A result says a call's outcome, its effect on a file, and the
user's decisions in it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kite_memory.model.event import PLANNING, Status
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.tool_text import PATH_LIMIT, PLAN_LIMIT, READERS, WRITERS, answer_lines, scalar, shortened
from kite_memory.sources.common.words import without_blocks, without_echo
from kite_memory.text import lazy_regex

_ANSWER_LIMIT = 2_000
_ANSWERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Outcome of a tool call.

    ``said`` is the user's verbatim answer to a permission request. ``answered`` are the questions they answered before they asked
    to discuss the rest. ``running`` means that the command continues in the background; ``task`` is the name by which a later call
    gets its output.
    """

    text: str
    status: Status
    said: str = ""
    answered: tuple[str, ...] = ()
    running: bool = False
    task: str = ""


BACKGROUND_STATUS: Mapping[str, Status] = {"completed": "ok", "failed": "failed", "killed": "interrupted", "stopped": "interrupted"}
"""How a background task ended, by the client's word for it."""

_REFUSED = "The user doesn't want to "
_OTHERS_WORDS = lazy_regex(r"mcp|^web|^$", re.IGNORECASE)
"""Tools whose errors may be worded by a server. The errors of all others are the client's own, or begin with "Exit code"."""
_REPORTING = lazy_regex(r"2\.1\.(\d{1,3})$")
_REPORTED = range(12, 43)
"""Versions (2.1.x) that write a line when a server begins with a call."""
_THE_USER_SAID = "the user said:\n"
_AFTER_WHAT_WAS_SAID = "\n\nNote: The user's next message may contain a correction or preference."
_CLARIFYING = (
    "The user wants to clarify these questions.",
    "The user has indicated they have provided enough answers for the plan interview.",
)
_ANSWERED_QUESTION = lazy_regex(r'^- "(.{1,2000})"\n  Answer: (.{1,2000})(?:\n  User notes: (.{1,2000}))?', re.MULTILINE)
_DENIED = lazy_regex(r"Permission to use \S+ |Permission for this |Claude requested permissions? to |\w+ operation blocked by hook")
_INTERRUPTED = (
    "[Request interrupted by user",
    "Sibling tool call errored",
    "Cancelled: ",
    "The user interrupted",
    "Interrupted by user",
)
_EXIT_CODE = lazy_regex(r"\AExit code \d{1,10}\s+")
_PLAN_HEADING = lazy_regex(r"^#+ Approved Plan[^\n]*\n", re.MULTILINE)
_BACKGROUND = lazy_regex(r"Command (?:running in background|was manually backgrounded by user) with ID: (\w{1,64})")
_AGENT_LAUNCHED = "Async agent launched successfully."
_TASK_STATUS = lazy_regex(r"<status>(running|completed|failed|killed)</status>")
_TASK_EXIT = lazy_regex(r"<exit_code>(-?\d{1,10})</exit_code>")
_TASK_HEAD = 600
_PERSISTED = lazy_regex(r"Preview \(first [^)]{1,40}\):\n")


def may_be_refused(row: Mapping[str, Any], tool: str, *, begun: bool) -> bool:
    """Return whether a text about the user's refusal is the client's, and not an error that a server worded like it.

    Since 2.1.205 a line names its denial (``toolDenialKind``). Before, a refusal by the user looks like any error of a server,
    except in versions that report the calls with which a server has ``begun``.
    """
    if isinstance(kind := row.get("toolDenialKind"), str):
        return kind.startswith("user")
    if not _OTHERS_WORDS.search(tool):
        return True
    version = _REPORTING.match(scalar(row.get("version")))
    return bool(tool) and version is not None and int(version[1]) in _REPORTED and not begun


def result_of(block: Mapping[str, Any], structured: object, *, denied: bool, refusable: bool) -> Result:
    """Parse one ``tool_result`` block; ``structured`` is the line's ``toolUseResult``, a fallback for its text.

    ``denied`` means that the line itself names a denial, by whomever, and ``refusable`` what `may_be_refused` returned.
    """
    text = _content(block.get("content"))
    if not text:
        text = _structured_text(structured)
    failed = block.get("is_error") is True
    if failed and refusable and text.startswith(_REFUSED):
        said = text.partition(_THE_USER_SAID)[2].partition(_AFTER_WHAT_WAS_SAID)[0].strip()
        if said.startswith(_CLARIFYING):
            return Result(text=text.partition(". ")[0], status="denied", answered=_answered_before(said))
        return Result(text=text.partition(". ")[0], status="denied", said=said)
    text = _unwrapped(text)
    if failed:
        if _EXIT_CODE.sub("", text, count=1).startswith(_INTERRUPTED):
            return Result(text=text, status="interrupted")
        return Result(text=text, status="denied" if denied or _DENIED.match(text) else "failed")
    match structured:
        case {"status": "async_launched"} if text.startswith(_AGENT_LAUNCHED):
            return Result(text=_AGENT_LAUNCHED, status="", running=True)  # the rest is instructions to the agent
        case _:
            pass
    if task := _task_begun(structured, text):
        return Result(text=text, status="", running=True, task=task)
    interrupted = isinstance(structured, dict) and structured.get("interrupted") is True
    return Result(text=text, status="interrupted" if interrupted or text.startswith(_INTERRUPTED[0]) else "ok")


def _answered_before(said: str) -> tuple[str, ...]:
    """Return the answers in the client's text for a user who wants to discuss its questions; the rest of it is the client's."""
    found = _ANSWERED_QUESTION.findall(said)[:_ANSWERS]
    return tuple(
        shortened(f"{question}\nAnswer: {answer.strip()}" + (f"\nIn their words: {notes.strip()}" if notes else ""), _ANSWER_LIMIT)
        for question, answer, notes in found
    )


def _task_begun(structured: object, text: str) -> str:
    match structured:
        case {"backgroundTaskId": str(task)} if task:
            return task[:64]
        case _:
            started = _BACKGROUND.match(text)
            return started[1] if started else ""


def of_a_task(result: Result) -> Result:
    """Return the task's own status from the result of a call for its output: the call succeeds even if the task failed."""
    head = result.text[:_TASK_HEAD]
    state, code = _TASK_STATUS.search(head), _TASK_EXIT.search(head)
    if result.status != "ok" or state is None:
        return result
    if state[1] == "running":
        return replace(result, status="", running=True)
    if state[1] == "killed":
        return replace(result, status="interrupted")
    return replace(result, status="failed") if state[1] == "failed" or (code and int(code[1])) else result


def _content(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts: list[str] = []
    for part in content:
        match part:
            case {"type": "text", "text": str(text)}:
                parts.append(text)
            case {"type": "image" | "document" as kind}:
                parts.append(f"[{kind}]")
            case str():
                parts.append(part)
            case _:
                continue
    return "\n".join(parts)


def _structured_text(structured: object) -> str:
    match structured:
        case str():
            return structured
        case {"stdout": str(stdout), "stderr": str(stderr)} if stderr:
            return f"{stdout}\n{stderr}"
        case {"stdout": str(stdout)}:
            return stdout
        case _:
            return ""


def _unwrapped(text: str) -> str:
    """Return the output without the client's reminders; of a large output only the preview."""
    if "<system-reminder>" in text:
        text = without_blocks(text, "system-reminder", unclosed_too=True)
    if text.startswith("<tool_use_error>"):
        text = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
    if text.startswith("<persisted-output>"):
        preview = _PERSISTED.search(text, 0, 2_000)
        text = text[preview.end() if preview else len("<persisted-output>") :].removesuffix("</persisted-output>")
    return without_echo(text).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAction:
    """Effect of a call on a file."""

    path: str
    text: str


def file_action(tool: str, path: str, structured: object) -> FileAction | None:
    """Return the effect of a successful call on a file; ``None`` for other tools."""
    if tool not in READERS and tool not in WRITERS:
        return None
    facts: Mapping[str, Any] = structured if isinstance(structured, dict) else {}
    file = facts.get("file")
    named = facts.get("filePath") or (file.get("filePath") if isinstance(file, dict) else None)
    path = without_echo(beginning(named, PATH_LIMIT)) if isinstance(named, str) else path
    if not path:
        return None
    if tool in READERS:
        return FileAction(path=path, text="read")
    if tool == "Write":
        text = "created" if facts.get("type") == "create" else "written"
    else:
        added, removed = _patched(facts.get("structuredPatch"))
        text = f"edited, {added} lines added, {removed} removed" if added or removed else "edited"
    if facts.get("userModified") is True:
        text = f"{text}; the user changed it before accepting"
    return FileAction(path=path, text=text)


def _patched(patch: object) -> tuple[int, int]:
    lines = [
        line
        for hunk in (patch if isinstance(patch, list) else [])
        if isinstance(hunk, dict) and isinstance(hunk.get("lines"), list)
        for line in hunk["lines"]
        if isinstance(line, str)
    ]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def decisions(tool: str, structured: object, text: str) -> list[str]:
    """Return the user's answers to a question, or the plan they approved, for a successful call."""
    facts: Mapping[str, Any] = structured if isinstance(structured, dict) else {}
    if tool == PLANNING:
        return [shortened(_plan(facts.get("plan"), text), PLAN_LIMIT)]
    if tool != "AskUserQuestion":
        return []
    answers = facts.get("answers")
    if not isinstance(answers, dict) or not answers:
        return [shortened(text, _ANSWER_LIMIT)] if text else []
    questions = {question["question"]: question for question in _named(facts.get("questions"), "question")}
    annotations = facts.get("annotations")
    notes: Mapping[str, Any] = annotations if isinstance(annotations, dict) else {}
    return [
        shortened(_answered(question, answer, questions.get(question, {}), notes.get(question)), _ANSWER_LIMIT)
        for question, answer in list(answers.items())[:_ANSWERS]
    ]


def _plan(plan: object, text: str) -> str:
    if isinstance(plan, str) and plan.strip():
        return plan.strip()
    heading = _PLAN_HEADING.search(text)
    return text[heading.end() :].strip() if heading else "The plan was approved."


def _answered(question: str, answer: object, asked: Mapping[str, Any], note: object) -> str:
    chosen = ", ".join(str(part) for part in answer) if isinstance(answer, list) else str(answer)
    said, *others = answer_lines(chosen, [option["label"] for option in _named(asked.get("options"), "label")])
    lines = [question, said]
    if isinstance(note, dict) and isinstance(words := note.get("notes"), str) and words.strip():
        lines.append(f"In their words: {words.strip()}")
    return "\n".join([*lines, *others])


def _named(entries: object, key: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list that have a text under ``key``."""
    if not isinstance(entries, list):
        return []
    return [entry for entry in entries[:_ANSWERS] if isinstance(entry, dict) and isinstance(entry.get(key), str)]


SKIPPED_TYPES = frozenset(
    {
        # Progress of a running tool, and copies of a sub-agent's messages (2.1.12 to 2.1.62).
        "progress",
        # State of the client: backups of files, settings, verbatim requests, costs.
        "file-history-snapshot",
        "file-history-delta",
        "last-prompt",
        "permission-mode",
        "mode",
        "pr-link",
        "bridge-session",
        "frame-link",
        "agent-name",
        "agent-color",
        "agent-setting",
        "tag",
        "atis-latch",
        "cost-state",
        "tools-used",
        "api-request",
        "api-request-shape",
        "api-request-blob",
        "worktree-state",
        "relocated",
        "continued-in",
        "content-replacement",
        "fork-context-ref",
        "ended-by-model",
        "attribution-snapshot",
        "artifact-comment-monitor",
        "artifact-autoreact-ledger",
        "history-suppression",
        "isolation-latch",
        "dev-mods",
        "memory-mode",
        "observer-ref",
        "speculation-accept",
        "marble-origami-commit",
        "marble-origami-snapshot",
    }
)

SKIPPED_SYSTEM = frozenset(
    {
        # A compaction's text is in the summary that follows its boundary.
        "compact_boundary",
        "microcompact_boundary",
        "stop_hook_summary",
        "turn_duration",
        "bridge_status",
        "bridge_state",
        # Errors between the client and its server, not in the work.
        "api_error",
        "api_retry",
        "model_fallback",
        "model_consent_fallback",
        "model_refusal_fallback",
        "model_refusal_no_fallback",
        "mirror_error",
        "agents_killed",
        "background_tasks_changed",
        "cloud_session_delta",
        "cloud_session_status",
        "code_change_published",
        "commands_changed",
        "control_request_progress",
        "dev_intent",
        "elicitation_complete",
        "feedback_draft_queued",
        "file_attachments_missing",
        "file_snapshot",
        "hook_progress",
        "hook_response",
        "hook_started",
        "informational",
        "init",
        "instruction_size_warning",
        "memory_recall",
        "memory_saved",
        "notification",
        "peer_message_hold",
        "per_turn_effort_changed",
        "permission_check_status",
        "permission_denied",
        "permission_retry",
        "plugin_install",
        "post_turn_summary",
        "scheduled_task_fire",
        "session_metadata",
        "session_state_changed",
        "session_title_changed",
        "status",
        "task_notification",
        "task_progress",
        "task_started",
        "task_summary",
        "task_updated",
        "thinking_tokens",
        "tool_host_result",
        "turn_handoff_available",
        "turn_preempted",
        "turn_starting",
        "ui_focus",
        "ui_invalidate",
        "ui_log",
        "ui_panes",
        "ui_scroll",
        "ui_status",
        "ui_toast",
        "vcs_state_changed",
        "worker_shutting_down",
    }
)

SKIPPED_ATTACHMENTS = frozenset(
    {
        # Input from hooks to the agent; may contain our own memory.
        "hook_success",
        "hook_additional_context",
        "hook_system_message",
        "hook_non_blocking_error",
        "hook_blocking_error",
        "hook_cancelled",
        "hook_deferred_tool",
        "hook_error_during_execution",
        "hook_permission_decision",
        "hook_plugin_listing",
        "hook_stopped_continuation",
        "async_hook_response",
        "async_hook_response_batch",
        # The agent's environment, instructions and memories.
        "environment",
        "model",
        "date",
        "date_change",
        "instructions",
        "language",
        "nested_memory",
        "relevant_memories",
        "account_memory_recall",
        "cowork_memory_context",
        "memory_update",
        "withheld_memory",
        "prompt_snapshot",
        "prompt_render_point",
        "session_context",
        "session_settings",
        "session_cron_carry",
        "team_context",
        "coordinator_context",
        "context_sections",
        "sandbox_instructions",
        "output_style",
        "output_style_instructions",
        "remote_session_change",
        "credential_org",
        "companion_intro",
        "context_tip",
        # Lists of the agent's capabilities.
        "agent_listing_delta",
        "deferred_tools_delta",
        "deferred_tools_record",
        "mcp_instructions_delta",
        "mcp_dropped_tools_delta",
        "skill_listing",
        "invoked_skills",
        "dynamic_skill",
        "command_permissions",
        "repl_mcp_needs_auth",
        "advisor_tool",
        "advisor_stripped",
        "tool_hosts_notice",
        "tool_hosts_correction",
        "tool_host_result_lines",
        # Files and selections attached to a prompt; their text is on the disk.
        "file",
        "directory",
        "edited_text_file",
        "edited_image_file",
        "already_read_file",
        "compact_file_reference",
        "plan_file_reference",
        "pdf_reference",
        "mcp_resource",
        "at_mention_reference",
        "agent_mention",
        "skill_mention",
        "peer_mention",
        "inlined_image_paths",
        "opened_file_in_ide",
        "selected_lines_in_ide",
        "selected_lines_in_diff",
        "diagnostics",
        "artifact_opening_prefetch",
        "audio_transcript",
        "dir_sync_notice",
        "read_truncation_notice",
        # Reminders, modes and counters.
        "todo_reminder",
        "task_reminder",
        "task_status",
        "critical_system_reminder",
        "secondary_reminder",
        "secondary_reminder_sent",
        "batching_reminder",
        "batching_reminder_sent",
        "elapsed_time_reminder",
        "silent_turn_reminder",
        "tool_search_usage_reminder",
        "total_tokens_reminder",
        "verify_plan_reminder",
        "compaction_reminder",
        "bash_output_audience_note",
        "token_usage",
        "output_token_usage",
        "budget_usd",
        "attention_budget",
        "context_efficiency",
        "max_turns_reached",
        "auto_mode",
        "auto_mode_exit",
        "plan_mode",
        "plan_mode_exit",
        "plan_mode_reentry",
        "goal_status",
        "ultra_effort_enter",
        "ultra_effort_exit",
        "ultrathink_effort",
        "proactivity",
        "poll_events",
        "prefix_delta",
        "structured_output",
        "teammate_mailbox",
        "teammate_shutdown_batch",
        "fork_briefing",
        "thinking_drop",
        "thinking_stripped",
        "thread_state",
        "unknown_command_fallback",
        "workflow_keyword_request",
        "workflow_size_guideline_change",
    }
)

SKIPPED_BLOCKS = frozenset(
    {
        "thinking",
        "redacted_thinking",
        "fallback",
        "image",
        "document",
        "tool_reference",
        "container_upload",
        "search_result",
        "compaction",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "mcp_tool_result",
        "advisor_tool_result",
    }
)
"""Blocks of a message: the agent's thoughts, data that is not text, and results of its own server's tools."""
