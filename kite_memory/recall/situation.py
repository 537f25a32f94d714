"""What the events before a prompt say about it: the words of a prompt alone are often «yes»."""

from collections.abc import Sequence
from dataclasses import dataclass

from kite_memory.model.event import Event, EventType

_EXCHANGE = 1_500
_PROMPT = 400
_PROMPTS = 3
_NAMES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All texts are redacted, as the timeline has them.

    ``exchange`` is the end of what the agent said last; ``prompts`` are the person's last ones, newest first; ``files`` and
    ``commands`` are those in play, newest first. ``position`` counts the session's prompts so far.
    """

    exchange: str = ""
    prompts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    position: int = 0


def situation_of(events: Sequence[Event], prompt: str = "") -> Situation:
    """From a session's last events, oldest first. An event that is the ``prompt`` itself ends what came before it."""
    before = list(events)
    if before and prompt and (last := _last_prompt(before)) >= 0 and before[last].text.strip() == prompt.strip():
        del before[last:]
    prompts: dict[str, None] = {}
    files: dict[str, None] = {}
    commands: dict[str, None] = {}
    errors: dict[str, None] = {}
    exchange = ""
    position = 0
    for event in reversed(before):
        match event.type:
            case EventType.USER_MESSAGE if event.role == "user":
                prompts[event.text[:_PROMPT]] = None
                position += 1
            case EventType.ASSISTANT_MESSAGE if not exchange and not position:
                exchange = event.text[-_EXCHANGE:]
            case _:
                pass
        if event.path:
            files[event.path] = None
        if event.command:
            commands[event.command[:_PROMPT]] = None
        if event.status == "failed" or event.type is EventType.ERROR:
            errors[event.text[:_PROMPT]] = None
    return Situation(
        exchange=exchange,
        prompts=tuple(prompts)[:_PROMPTS],
        files=tuple(files)[:_NAMES],
        commands=tuple(commands)[:_NAMES],
        errors=tuple(errors)[:_PROMPTS],
        position=position,
    )


def _last_prompt(events: Sequence[Event]) -> int:
    return next((at for at in range(len(events) - 1, -1, -1) if events[at].type is EventType.USER_MESSAGE), -1)
