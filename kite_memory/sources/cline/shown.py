"""What an editor showed of a task of Cline or Roo Code: every word, also what the model was later spared."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from kite_memory.sources.common.scalars import scalar

_SAME_WORDS = 1_000
"""Showings of the same words that are told apart."""

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
"""Says and asks that do not come between a question and its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A message as it was shown."""

    at: int
    kind: str
    message: Mapping[str, Any]


def shown_of(document: object) -> list[Shown]:
    """The finished messages of ``ui_messages.json``. The first text is the task itself."""
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
    """When a person's words were first shown: that moment names them, whichever document is read."""

    def __init__(self, shown: Iterable[Shown]) -> None:
        self._moments: dict[str, list[int]] = {}
        for each in shown:
            if each.kind in ("task", "user_feedback"):
                moments = self._moments.setdefault(_plain(scalar(each.message.get("text"))), [])
                if len(moments) < _SAME_WORDS:
                    moments.append(each.at)

    def moment_of(self, words: str, at: int) -> int | None:
        """The time of the nearest showing that is not taken yet, and takes it; ``None`` where the words were not shown."""
        moments = self._moments.get(_plain(words))
        if not moments:
            return None
        found = min(moments, key=lambda moment: abs(moment - at))
        moments.remove(found)
        return found


def question_in(text: str) -> str:
    try:
        told = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text.strip()
    question = told.get("question") if isinstance(told, dict) else ""
    return question.strip() if isinstance(question, str) else ""


def _plain(text: str) -> str:
    return " ".join(text.split())
