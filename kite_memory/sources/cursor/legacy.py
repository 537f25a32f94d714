"""Conversations as Cursor kept them in 2024: all of a workspace in one value, and those of its chat panel in another.

Whatever a chat proposed was carried out by a conversation of its own, which begins with a copy of the exchange. A copy is known
by the agent's answer, word for word, and left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kite_memory.sources.common.fields import short
from kite_memory.sources.common.scalars import scalar

_CONVERSATIONS = 10_000
_BUBBLES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Legacy:
    name: str
    about: Mapping[str, Any]
    bubbles: Sequence[Mapping[str, Any]]


def legacy_conversations(composers: object, chats: object) -> Iterator[Legacy]:
    """Chats first, then the rest by age; those of which nothing is left are left out."""
    told: set[str] = set()
    for about in _objects(chats, "tabs"):
        yield from _legacy(short(about.get("tabId")), about, _objects(about, "bubbles"), told)
    for about in sorted(_objects(composers, "allComposers"), key=_age):
        yield from _legacy(short(about.get("composerId")), about, _objects(about, "conversation"), told)


def _legacy(name: str, about: Mapping[str, Any], bubbles: Iterable[Mapping[str, Any]], told: set[str]) -> Iterator[Legacy]:
    kept = [dict(bubble) for exchange in _exchanges(bubbles) for bubble in _new(exchange, told)]
    if name and kept:
        yield Legacy(name=name, about=about, bubbles=kept)


def _exchanges(bubbles: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """What the person said, with the answer to it."""
    exchange: list[Mapping[str, Any]] = []
    for bubble in bubbles:
        exchange.append(bubble)
        if bubble.get("type") in (2, "ai"):
            yield exchange
            exchange = []
    if exchange:
        yield exchange


def _new(exchange: list[Mapping[str, Any]], told: set[str]) -> Iterator[Mapping[str, Any]]:
    """Each with the words that name it: its own, and those of the answer."""
    answer = _text(exchange[-1]) if exchange[-1].get("type") in (2, "ai") else ""
    if answer and answer in told:
        return
    told.add(answer)
    for place, bubble in enumerate(exchange):
        own = scalar(bubble.get("bubbleId") or bubble.get("id"))
        words = f"{place}\n{_text(bubble)}\n{answer}" if answer else f"{own}\n{_text(bubble)}"
        yield {**bubble, "text": _text(bubble), "words": words}


def _text(bubble: Mapping[str, Any]) -> str:
    text = bubble.get("text") or bubble.get("rawText")
    return text.strip() if isinstance(text, str) else ""


def _age(about: Mapping[str, Any]) -> float:
    created = about.get("createdAt")
    return float(created) if isinstance(created, int | float) else 0.0


def _objects(value: object, key: str) -> list[Mapping[str, Any]]:
    found = value.get(key) if isinstance(value, dict) else None
    most = _CONVERSATIONS if key != "bubbles" else _BUBBLES
    return [each for each in found[:most] if isinstance(each, dict)] if isinstance(found, list) else []
