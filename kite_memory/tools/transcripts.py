"""Parsing of a transcript sent by an agent, as text with speakers' names or as a list of messages, into turns."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from kite_memory.model.event import Event, EventType, Role, Session, Where
from kite_memory.model.record import Chunk
from kite_memory.tools.conversation_notes import TURN

_SPEAKERS: dict[str, Role] = {
    "user": "user", "human": "user", "me": "user", "you": "user", "person": "user",
    "assistant": "assistant", "ai": "assistant", "agent": "assistant", "model": "assistant", "claude": "assistant",
    "codex": "assistant", "gemini": "assistant", "chatgpt": "assistant", "gpt": "assistant", "cline": "assistant",
    "roo": "assistant", "copilot": "assistant", "cursor": "assistant", "antigravity": "assistant",
    "tool": "tool", "system": "system",
}  # fmt: skip
_SPEAKER = re.compile(
    rf"^[ \t]{{0,3}}(?:#{{1,4}} ?|[*_]{{2}}|\[|> ?)?({'|'.join(_SPEAKERS)})(?: code| cli)?(?:\]|[*_]{{2}})?[ \t]?:(?:[*_]{{2}})?"
    rf"|^[ \t]{{0,3}}#{{1,4}} ?({'|'.join(_SPEAKERS)})(?: code| cli)?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_TURNS = 9_000
_TURN = 60_000
_TYPES = {"user": EventType.USER_MESSAGE, "assistant": EventType.ASSISTANT_MESSAGE}


def turns(text: str) -> list[tuple[Role, str]]:
    """Return the turns. Text before the first name, or without any names, is attributed to an assistant."""
    found: list[tuple[Role, str]] = []
    role: Role = "assistant"
    start = 0
    for named in _SPEAKER.finditer(text):
        found.append((role, text[start : named.start()].strip()))
        role, start = _SPEAKERS[(named[1] or named[2]).lower()], named.end()
        if len(found) == _TURNS:
            break
    found.append((role, text[start:].strip()))
    return [(role, said) for role, said in found if said]


def as_text(messages: Sequence[object]) -> str | None:
    """Return a list of ``{role, content}`` as text that `turns` parses; ``None`` for anything else."""
    turns: list[str] = []
    for message in messages:
        match message:
            case {"role": str(role), "content": content} | {"role": str(role), "text": content}:
                speaker = role.capitalize() if role.lower() in _SPEAKERS else "Assistant"
                turns.append(f"{speaker}: " + "\n".join(_said(content)))
            case _:
                return None
    return "\n\n".join(turns)


def _said(content: object) -> Iterator[str]:
    match content:
        case str():
            yield content
        case {"text": str(text)}:
            yield text
        case list():
            for part in content:
                if not isinstance(part, list):
                    yield from _said(part)


def chunk_of(uuid: str, source: str, project: str, transcript: str, at: datetime) -> Chunk:
    """Return the chunk for an extractor. All turns get the same time, since their times are unknown."""
    session = Session(id=uuid, provider=source, started=at, project=project)
    events = tuple(
        Event(
            id=f"{TURN}{number:04d}",
            session=uuid,
            provider=source,
            ordinal=number,
            at=at,
            role=role,
            type=_TYPES.get(role, EventType.TOOL_RESULT),
            text=said[:_TURN],
            where=Where(file="", start=number, end=number),
        )
        for number, (role, said) in enumerate(turns(transcript))
    )
    return Chunk(id=uuid, session=session, events=events)
