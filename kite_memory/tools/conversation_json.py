"""A conversation as a store keeps it: our own format, strict both ways. Its transcript is kept elsewhere."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import orjson

from kite_memory.errors import StateDamaged, StateNewer
from kite_memory.model.record import Decision, Fact, Insight, OpenQuestion, Preference, Record, RecordItem, Rejected, Topic
from kite_memory.model.scope import Scope
from kite_memory.tools.store import Conversation

_VERSION = 1
_KINDS: dict[str, Callable[..., RecordItem]] = {
    "decision": Decision,
    "insight": Insight,
    "fact": Fact,
    "preference": Preference,
    "question": OpenQuestion,
}
_NAMES: dict[object, str] = {kind: name for name, kind in _KINDS.items()}


def to_json(conversation: Conversation) -> bytes:
    record = conversation.record
    return orjson.dumps(
        {
            "version": _VERSION,
            "uuid": conversation.uuid,
            "source": conversation.source,
            "project": conversation.project,
            "scope": conversation.scope,
            "overall": conversation.overall,
            "created": conversation.created,
            "updated": conversation.updated,
            "created_by": conversation.created_by,
            "has_transcript": conversation.has_transcript,
            "topics": [
                {
                    "name": topic.name,
                    "summary": topic.summary,
                    "categories": topic.categories,
                    "entities": topic.entities,
                    "items": [{"kind": _NAMES[type(item)], "item": item} for item in topic.items],
                }
                for topic in record.topics
            ],
            "cross_topic_insights": record.cross_topic_insights,
        }
    )


def from_json(text: bytes) -> Conversation:
    """Raises `StateDamaged` for anything that `to_json` did not write, and `StateNewer` for what a later version did."""
    try:
        raw = orjson.loads(text)
        if raw["version"] > _VERSION:
            raise StateNewer("a conversation was saved by a newer Kite Memory", hint="update kite-memory")
        return Conversation(
            uuid=raw["uuid"],
            source=raw["source"],
            project=raw["project"],
            scope=Scope(raw["scope"]),
            overall=raw["overall"],
            created=datetime.fromisoformat(raw["created"]),
            updated=datetime.fromisoformat(raw["updated"]),
            created_by=raw["created_by"],
            has_transcript=raw["has_transcript"],
            record=Record(
                topics=tuple(
                    Topic(
                        name=topic["name"],
                        summary=topic["summary"],
                        categories=tuple(topic["categories"]),
                        entities=tuple(topic["entities"]),
                        items=tuple(_item(item["kind"], item["item"]) for item in topic["items"]),
                    )
                    for topic in raw["topics"]
                ),
                cross_topic_insights=tuple(raw["cross_topic_insights"]),
            ),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StateDamaged("a saved conversation cannot be read", hint="save it again under its id") from error


def _item(kind: str, raw: dict[str, Any]) -> RecordItem:
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in raw.items()}
    if "rejected" in values:
        values["rejected"] = tuple(Rejected(**rejected) for rejected in raw["rejected"])
    return _KINDS[kind](**values)
