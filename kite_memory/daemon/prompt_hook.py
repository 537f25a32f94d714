"""What an agent's hook tells us, read kindly: an agent's new field or odd value must not cost a person a prompt."""

from dataclasses import dataclass

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
    try:
        raw = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    match raw:
        case {"hook_event_name": str(event)}:
            return HookInput(
                event=event,
                session=_text(raw.get("session_id")),
                cwd=_text(raw.get("cwd")),
                prompt=_text(raw.get("prompt"), limit=len(body)),
                source=_text(raw.get("source")),
                is_subagent=bool(raw.get("agent_id")),
            )
        case _:
            return None


def _text(value: object, *, limit: int = _LONGEST_NAME) -> str:
    return value[:limit] if isinstance(value, str) else ""
