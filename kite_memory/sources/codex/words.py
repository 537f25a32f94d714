"""Telling a person's words in a Codex rollout from all that its client puts in their place."""

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


def persons_part(item: Mapping[str, Any]) -> str:
    """What of a ``user`` message a person wrote. Since 0.16x each part says whether the client's harness did."""
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
    """A prompt without what an editor wraps around it; empty when the client wrote it."""
    if _injected(text):
        return ""
    if text.startswith("# "):
        text = text.partition(_REQUEST)[2] or text
    return text.strip()


def shell_command(text: str) -> tuple[str, str] | None:
    """The command that the person ran past the agent, and what it printed."""
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
