"""Codex's record types that are skipped on purpose. Types neither parsed nor listed here are counted as problems.

Covers versions 0.2 to 0.169. A name removed from these sets is no longer skipped; nothing else needs to change.
"""

import re
from collections.abc import Mapping
from typing import Any

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
        text = text.partition(_REQUEST)[2] or text
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
