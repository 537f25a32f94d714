"""What lines of a Codex rollout carry: record types that are skipped on purpose, and the state kept for later lines.

Types neither parsed nor listed here are counted as problems. The state is small enough for a cursor.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from kite_memory.sources.common.event_builder import OpenCalls, is_first, keep_latest

_VERSION = 1
_HEADERS = 8
_MESSAGES = 48
_ANSWERED = 64
_PROCESSES = 8
_PATCHES = 6
_PATCHED_FILES = 16
EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(slots=True, kw_only=True)
class Header:
    """Session that lines belong to, from a ``session_meta``. ``sub_agent`` means that an agent writes the prompts.

    ``branch`` is the last known branch of the repository.
    """

    id: str
    started: datetime
    cwd: str = ""
    branch: str = ""
    parent: str = ""
    sub_agent: bool = False
    repository_url: str = ""


def created_ms(id: str) -> int | None:
    """Return the creation time in milliseconds in a UUIDv7; ``None`` for any other id."""
    if len(id) != 36 or id[14] != "7":
        return None
    try:
        return int(id[:8] + id[9:13], 16)
    except ValueError:
        return None


@dataclass(slots=True, kw_only=True)
class RolloutState:
    """State of a rollout at a line.

    A fork's rollout starts with its own header, then its parent's header and messages, then its own turns. ``headers`` has the
    file's own first; ``speaking`` is the index of the header whose turn is being read. ``messages`` counts recent messages in both
    of their renderings, as an item and as an event; ``answered`` names calls whose results have arrived. ``elsewhere`` are open
    calls that run in another folder than the session's. ``processes`` are commands that still run, by the name under which a later
    call requests their output.
    """

    headers: list[Header] = field(default_factory=list)
    speaking: int = 0
    turn: str = ""
    turns: int = 0
    agent_spoke: bool = False
    last_at: datetime = EPOCH
    ordinal: int = 0
    title: str = ""
    own_session: bool = False
    message: str = ""
    calls: OpenCalls = field(default_factory=OpenCalls)
    patches: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    processes: dict[str, str] = field(default_factory=dict)
    messages: dict[str, list[int]] = field(default_factory=dict)
    answered: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def header(self) -> Header:
        return self.headers[self.speaking]

    def add(self, header: Header) -> None:
        """Add a header; ignore one that repeats another or cannot be an ancestor's.

        The first header is the file's own; those of the threads it was forked from follow before any turn.
        """
        own = self.headers[0] if self.headers else None
        known = next((each for each in self.headers if each.id == header.id), None)
        if own is None:
            self.headers.append(header)
        elif known is not None:
            known.cwd, known.branch = known.cwd or header.cwd, header.branch or known.branch
            known.repository_url = known.repository_url or header.repository_url
        elif not self._begun and len(self.headers) < _HEADERS:
            earlier, later = created_ms(header.id), created_ms(own.id)
            if earlier is not None and later is not None and earlier <= later:
                self.headers.append(header)
                self.speaking = len(self.headers) - 1

    @property
    def _begun(self) -> bool:
        """Whether any turn, message or call was read."""
        return bool(self.turn or self.messages or self.answered or self.calls.by_name)

    def owner(self, turn: str) -> int:
        """Return the index of the header that a turn belongs to: of the threads that existed when it began, the youngest."""
        at = created_ms(turn)
        if len(self.headers) < 2 or at is None:
            return self.speaking
        born_before = [(when, n) for n, each in enumerate(self.headers) if (when := created_ms(each.id)) is not None and when <= at]
        return max(born_before, default=(0, self.speaking))[1]

    def counted(self, key: str, rendering: int) -> int | None:
        """Return the message's number, counted from 0; ``None`` if its other rendering was read already."""
        counts = self.messages.get(key, [0, 0])
        keep_latest(self.messages, key, counts, _MESSAGES)
        counts[rendering] += 1
        return counts[rendering] - 1 if counts[rendering] > counts[1 - rendering] else None

    def close(self, call: str) -> None:
        self.answered.append(call)
        del self.answered[:-_ANSWERED]

    def run_elsewhere(self, call: str) -> None:
        self.elsewhere.append(call)
        del self.elsewhere[:-_PROCESSES]

    def keep_process(self, name: str, command: str) -> None:
        keep_latest(self.processes, name, command, _PROCESSES)

    def keep_patch(self, call: str, files: tuple[tuple[str, str], ...]) -> None:
        keep_latest(self.patches, call, list(files[:_PATCHED_FILES]), _PATCHES)

    def new_to_us(self, what: str) -> bool:
        """Return whether this unknown name occurs for the first time."""
        return is_first(self.unknown, what)

    def to_carry(self) -> str:
        return orjson.dumps(
            {
                "v": _VERSION,
                "headers": [
                    [each.id, each.started, each.cwd, each.branch, each.parent, each.sub_agent, each.repository_url]
                    for each in self.headers
                ],
                "speaking": self.speaking,
                "turn": [self.turn, self.turns, self.agent_spoke],
                "at": self.last_at,
                "ordinal": self.ordinal,
                "title": self.title,
                "ours": self.own_session,
                "message": self.message,
                "calls": self.calls.to_carry(),
                "patches": self.patches,
                "processes": self.processes,
                "messages": [[key, *counts] for key, counts in self.messages.items()],
                "answered": self.answered,
                "elsewhere": self.elsewhere,
                "unknown": self.unknown,
            }
        ).decode()

    @staticmethod
    def from_carry(carry: str) -> "RolloutState | None":
        """Parse what `to_carry` returned; return ``None`` if another version wrote it."""
        try:
            known: dict[str, Any] = orjson.loads(carry)
            if known["v"] != _VERSION:
                return None
            if not 0 <= known["speaking"] <= max(0, len(known["headers"]) - 1):
                return None
            return RolloutState(
                headers=[
                    Header(
                        id=id,
                        started=datetime.fromisoformat(started),
                        cwd=cwd,
                        branch=branch,
                        parent=parent,
                        sub_agent=sub,
                        repository_url=url[0] if url else "",
                    )
                    for id, started, cwd, branch, parent, sub, *url in known["headers"]
                ],
                speaking=known["speaking"],
                turn=known["turn"][0],
                turns=known["turn"][1],
                agent_spoke=known["turn"][2],
                last_at=datetime.fromisoformat(known["at"]),
                ordinal=known["ordinal"],
                title=known["title"],
                own_session=known["ours"],
                message=known["message"],
                calls=OpenCalls.from_carry(known["calls"]),
                patches={call: [(path, how) for path, how in files] for call, files in known["patches"].items()},
                processes=dict(known["processes"]),
                messages={key: [item, event] for key, item, event in known["messages"]},
                answered=list(known["answered"]),
                elsewhere=list(known.get("elsewhere", [])),
                unknown=list(known["unknown"]),
            )
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return None


_INJECTED = (
    "<environment_context>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "<permissions instructions>",
    "<skills_instructions>",
    "<apps_instructions>",
    "<plugins_instructions>",
    "<recommended_plugins>",
    "<collaboration_mode>",
    "<multi_agent_mode>",
    "<personality_spec>",
    "<model_switch>",
    "<app-context>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<skill>",
    "<user_action>",
    "<hook_prompt",
    "<goal_context>",
    "<realtime_conversation>",
    "<token_budget>",
    "<image_resize_notice>",
    "# AGENTS.md instructions",
    "Another language model started to solve this problem",
    "Warning: The maximum number of unified exec processes",
    "Warning: apply_patch was requested via ",
)
_IMAGE_TAG = re.compile(r"\s*</?image\b[^>]{0,1000}>\s*")
_REQUEST = "\n## My request for Codex:"
_EDITORS = ("# Context from my IDE setup:", "# Files mentioned by the user:")


def user_part(item: Mapping[str, Any]) -> str:
    """Return the part of a ``user`` message that the user wrote.

    Since 0.16x each part is marked if the client's harness wrote it.
    """
    content = item.get("content")
    if isinstance(content, str):
        return person_said(content)
    if not isinstance(content, list):
        return ""
    origins = _origins(item)
    parts: list[str] = []
    for n, part in enumerate(content):
        text = part.get("text") if isinstance(part, dict) else None
        if not isinstance(text, str) or (n < len(origins) and origins[n] == "harness"):
            continue
        if not _injected(text) and not _IMAGE_TAG.fullmatch(text):
            parts.append(text)
    return person_said("\n".join(parts))


def person_said(text: str) -> str:
    """Return a prompt without an editor's wrapper; empty if the client wrote it."""
    if _injected(text):
        return ""
    if text.startswith("# "):
        before, _, text = text.rpartition(_REQUEST)
        if not before and text.startswith(_EDITORS):
            return ""
    return text.strip()


def shell_command(text: str) -> tuple[str, str] | None:
    """Return the command that the user ran directly, and its output."""
    if not text.startswith("<user_shell_command>"):
        return None
    command = text.partition("<command>")[2].partition("</command>")[0]
    return command.strip(), text.partition("<result>")[2].rpartition("</result>")[0].strip()


def _injected(text: str) -> bool:
    return text.lstrip().startswith(_INJECTED)


def _origins(item: Mapping[str, Any]) -> list[str]:
    match item.get("internal_chat_message_metadata_passthrough"):
        case {"content_item_metadata": list(parts)}:
            return [_origin(part) for part in parts]
        case _:
            return []


def _origin(part: object) -> str:
    match part:
        case {"provenance": {"type": str(kind)}}:
            return kind
        case _:
            return ""


SKIPPED_TYPES = frozenset(
    {
        "world_state",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "token_usage_record",
        "message_attribution",
        "security_risk_acknowledged",
        "history_mode_changed",
        "rollback",
        "turn_metadata",
    }
)

SKIPPED_ITEMS = frozenset(
    {
        # The agent's thoughts, and its context on the server.
        "reasoning",
        "compaction",
        "compaction_summary",
        "compaction_trigger",
        "context_compaction",
        "ghost_snapshot",
        "additional_tools",
        # Messages between agents; each has its own rollout.
        "agent_message",
        "other",
    }
)
"""Skipped kinds of ``response_item``."""

SKIPPED_EVENTS = frozenset(
    {
        # Costs, limits, and trouble between the client and its server.
        "token_count",
        "turn.completed",
        "account/rateLimits/updated",
        "error",
        "stream_error",
        "warning",
        "guardian_warning",
        "guardian_assessment",
        "deprecation_notice",
        "model_reroute",
        "model_verification",
        "turn_moderation_metadata",
        # Starts and ends of turns; their content is in separate lines.
        "task_complete",
        "turn_complete",
        "context_compacted",
        "thread_rolled_back",
        "thread_settings_applied",
        "thread_goal_updated",
        "thread_goal_cleared",
        "session_configured",
        "shutdown_complete",
        "turn_diff",
        "undo_started",
        "undo_completed",
        "plan_update",
        "plan_delta",
        # The agent's thoughts.
        "agent_reasoning",
        "agent_reasoning_delta",
        "agent_reasoning_raw_content",
        "agent_reasoning_section_break",
        "agent_message_delta",
        # Starts and progress of calls; the calls themselves and their outputs are parsed.
        "codex/event/raw_item",
        "raw_response_item",
        "item_started",
        "item_updated",
        "exec_command_begin",
        "exec_command_output_delta",
        "terminal_interaction",
        "patch_apply_begin",
        "patch_apply_updated",
        "mcp_tool_call_begin",
        "mcp_tool_call_end",
        "mcp_startup_update",
        "mcp_startup_complete",
        "web_search_begin",
        "web_search_end",
        "image_generation_begin",
        "image_generation_end",
        "view_image_tool_call",
        "dynamic_tool_call_request",
        "dynamic_tool_call_response",
        "exec_approval_request",
        "apply_patch_approval_request",
        "request_permissions",
        "request_user_input",
        "elicitation_request",
        "background_event",
        "hook_started",
        "hook_completed",
        "skills_update_available",
        "entered_review_mode",
        "exited_review_mode",
        # Sub-agents.
        "sub_agent_activity",
        "collab_agent_spawn_begin",
        "collab_agent_spawn_end",
        "collab_agent_interaction_begin",
        "collab_agent_interaction_end",
        "collab_waiting_begin",
        "collab_waiting_end",
        "collab_close_begin",
        "collab_close_end",
        "collab_resume_begin",
        "collab_resume_end",
    }
)
"""Skipped kinds of ``event_msg``."""

SKIPPED_COMPLETED = frozenset(
    {
        "Reasoning",
        "Plan",
        "HookPrompt",
        "McpToolCall",
        "DynamicToolCall",
        "WebSearch",
        "ImageView",
        "ImageGeneration",
        "ContextCompaction",
        "EnteredReviewMode",
        "ExitedReviewMode",
        "CollabAgentToolCall",
        "SubAgentActivity",
        "Extension",
        "Sleep",
        "TodoList",
        "Error",
    }
)
"""Skipped kinds of items in ``item_completed`` (since 0.147)."""
