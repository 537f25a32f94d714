"""What an agent's hook tells us, read kindly: an agent's new field or odd value must not cost a person a prompt."""

import json
from dataclasses import dataclass
from typing import Any

import orjson

_LONGEST_NAME = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class HookInput:
    """``source`` says why a session starts: startup, resume, clear, compact."""

    event: str
    session: str = ""
    cwd: str = ""
    prompt: str = ""
    source: str = ""
    is_subagent: bool = False


def read_hook_input(body: bytes) -> HookInput | None:
    """``None`` for what is not a hook's input."""
    match _parsed(body):
        case {"hook_event_name": str(event), **rest}:
            return HookInput(
                event=_text(event),
                session=_text(rest.get("session_id")),
                cwd=_text(rest.get("cwd")),
                prompt=_text(rest.get("prompt"), limit=len(body)),
                source=_text(rest.get("source")),
                is_subagent=bool(rest.get("agent_id")),
            )
        case _:
            return None


def _parsed(body: bytes) -> Any:
    """An emoji cut in half is half a surrogate pair, which agents write and strict parsers refuse."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _text(value: object, *, limit: int = _LONGEST_NAME) -> str:
    return value[:limit].encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else ""
