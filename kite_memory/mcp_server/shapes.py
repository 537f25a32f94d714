"""The pieces that the tools' JSON schemas are made of, each with the words an agent reads when it fills it in."""

from collections.abc import Mapping
from typing import Any

from kite_memory.model.note import NoteKind
from kite_memory.model.scope import Scope

Schema = dict[str, Any]

_LONGEST_KEY = 200
_MOST = 200
_LONGEST_TTL = 3_650 * 86_400
_STATUSES = ("pending", "in_progress", "completed", "cancelled", "blocked")


def shape(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None, *, others: bool = False) -> Schema:
    """An object of these members. With ``others`` there may be more, which the tool reads as well as it can."""
    told: Schema = {"type": "object", "properties": {**required, **(optional or {})}, "additionalProperties": others}
    return {**told, "required": list(required)} if required else told


def told(required: Mapping[str, Schema]) -> Schema:
    """What a tool answers: at least these members."""
    return {"type": "object", "properties": dict(required), "required": list(required)}


def text(description: str = "", **more: Any) -> Schema:
    return {"type": "string", **({"description": description} if description else {}), **more}


def number(description: str = "", **more: Any) -> Schema:
    return {"type": "integer", **({"description": description} if description else {}), **more}


def some(items: Schema, description: str = "", **more: Any) -> Schema:
    return {"type": "array", "items": items, **({"description": description} if description else {}), **more}


def one_of(values: tuple[str, ...], description: str) -> Schema:
    return text(description, enum=list(values))


VALUE: Schema = {
    "type": ["object", "array", "string", "number", "boolean", "null"],
    "description": "Any JSON value, at most 256 kB",
}
CONTEXT: Schema = {
    "type": "object",
    "description": "Why it was written; given back when it is read",
}
ANYTHING: Schema = {"description": "any JSON value"}

KEY = text(
    "Dotted name, by convention project.*, current.*, discovered.*, shared.* or ai.<name>.preferences, as project.database.choice",
    minLength=1,
    maxLength=_LONGEST_KEY,
)
PATTERN = text("A key, or a pattern with * and ?, as project.*", minLength=1, maxLength=_LONGEST_KEY)
SCOPE = one_of(
    tuple(Scope),
    "project: this project (the default). session: this session alone. global: everywhere, for this person. "
    "shared: everywhere, for everybody who shares this memory",
)
PROJECT = text("Name or folder of a project (yours where left out)")
SESSION = text("Id of a session; yours may be left out where your client tells it")
TAGS = some(text(), "Words to find it by", maxItems=20)
SINCE = text("Only what is newer: a date as 2026-03-01, or an age as 30d")
NOTE = text("A note's id, path or title, as other tools tell it")
KINDS = some(text(enum=list(NoteKind)), "Only notes of these kinds")
TTL = {
    "type": "number",
    "description": "Seconds after which it is gone; leave it out to keep it",
    "exclusiveMinimum": 0,
    "maximum": _LONGEST_TTL,
}
AI = text("Your own name, the same each time, as claude-code; your client's where left out", minLength=1, maxLength=_LONGEST_KEY)


def limit(most: int = _MOST, default: int = 10) -> Schema:
    return number(f"At most so many ({default} where left out)", minimum=1, maximum=most)


TODO: Schema = {
    "anyOf": [
        text(),
        shape({"text": text()}, {"status": text("pending where left out", enum=list(_STATUSES))}, others=True),
        shape({"content": text()}, {"status": text(enum=list(_STATUSES)), "activeForm": text()}, others=True),
    ]
}

_REJECTED = {"anyOf": [text(), shape({"alternative": text()}, {"reason": text()}, others=True)]}
_DECISION = {
    "anyOf": [
        text(),
        shape(
            {"decision": text("What was chosen, with its subject")},
            {
                "reasoning": text("Why"),
                "rejected": some(_REJECTED, "What was considered and turned down, each with the reason"),
            },
            others=True,
        ),
    ]
}
TOPIC_MEMBERS: dict[str, Schema] = {
    "topic": text("Two to five words"),
    "categories": some(text()),
    "summary": text("A few sentences that stand on their own"),
    "decisions": some(_DECISION),
    "rejected": some(_REJECTED, "Approaches that were turned down without another being chosen"),
    "insights": some(text(), "Causes that were found and verified"),
    "facts": some(text()),
    "open_questions": some(text()),
    "related_entities": some(text(), "Files, libraries, people, services it is about"),
}
