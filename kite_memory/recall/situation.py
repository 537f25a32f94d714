"""What the events before a prompt say about it: the words of a prompt alone are often «yes»."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from kite_memory.model.event import Event, EventType

_EXCHANGE = 1_500
_PROMPT = 400
_LINE = 200
_PROMPTS = 3
_NAMES = 12
_AROUND = 2_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All texts are redacted, as the timeline has them.

    ``exchange`` is the end of what the agent said since the person spoke last; ``prompts`` are the person's last ones, newest
    first; ``files`` and ``commands`` are those in play, newest first, and ``errors`` what failed. ``position`` counts the
    session's prompts before this one; a few are as good as many.
    """

    exchange: str = ""
    prompts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    position: int = 0

    @property
    def around(self) -> str:
        """What surrounds the prompt, as one text to look for."""
        names = (path.replace("\\", "/").rpartition("/")[2] for path in self.files)
        parts = (self.exchange, *self.prompts[:1], " ".join(names), *self.commands[:3], *self.errors[:1])
        return "\n".join(filter(None, parts))[:_AROUND]


def situation_of(events: Sequence[Event], prompt: str = "", *, spoken: int = 0) -> Situation:
    """From a session's last events, oldest first. An event that is the ``prompt`` itself ends what came before it.

    ``spoken`` is how often the person spoke in the whole session, if that is known.
    """
    before = list(events)
    if prompt and (last := _last_prompt(before)) >= 0 and before[last].text.strip() == prompt.strip():
        del before[last:]
        spoken -= 1
    prompts: dict[str, None] = {}
    files: dict[str, None] = {}
    commands: dict[str, None] = {}
    errors: dict[str, None] = {}
    said: list[str] = []
    position = length = 0
    for event in reversed(before):
        if event.type is EventType.USER_MESSAGE and event.role == "user":
            prompts[event.text[:_PROMPT]] = None
            position += 1
        elif event.type is EventType.ASSISTANT_MESSAGE and not position and length < _EXCHANGE:
            said.append(event.text[-_EXCHANGE:])
            length += len(said[-1])
        if event.path:
            files[event.path] = None
        if event.command:
            commands[event.command[:_LINE]] = None
        if event.status == "failed" or event.type is EventType.ERROR:
            errors[event.text[:_LINE]] = None
    return Situation(
        exchange="\n".join(reversed(said))[-_EXCHANGE:],
        prompts=tuple(islice(prompts, _PROMPTS)),
        files=tuple(islice(files, _NAMES)),
        commands=tuple(islice(commands, _NAMES)),
        errors=tuple(islice(errors, _PROMPTS)),
        position=max(position, spoken),
    )


def _last_prompt(events: Sequence[Event]) -> int:
    return next((at for at in range(len(events) - 1, -1, -1) if events[at].type is EventType.USER_MESSAGE), -1)
