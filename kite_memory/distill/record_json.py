"""Serialize and parse records for the outbox, strictly both ways."""

from collections.abc import Callable
from typing import Any

import orjson

from kite_memory.errors import StateDamaged
from kite_memory.model.record import Change, Decision, Fact, Insight, OpenQuestion, Preference, Record, RecordItem, Rejected, Topic

_KINDS: dict[str, Callable[..., RecordItem]] = {
    "decision": Decision,
    "insight": Insight,
    "fact": Fact,
    "preference": Preference,
    "question": OpenQuestion,
}
_NAMES: dict[object, str] = {kind: name for name, kind in _KINDS.items()}


def to_json(record: Record) -> bytes:
    return orjson.dumps(
        {
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
            "weighed": record.weighed,
        }
    )


def from_json(text: bytes) -> Record:
    """Parse a record. Raises `StateDamaged` for anything that `to_json` did not write."""
    try:
        raw = orjson.loads(text)
        return Record(
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
            weighed=tuple(raw.get("weighed", ())),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StateDamaged("an answer in the outbox cannot be read", hint="run `kmem verify`") from error


def _item(kind: str, raw: dict[str, Any]) -> RecordItem:
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in raw.items()}
    if "rejected" in values:
        values["rejected"] = tuple(Rejected(**rejected) for rejected in raw["rejected"])
    if values.get("change") is not None:
        values["change"] = Change(**raw["change"])
    return _KINDS[kind](**values)
