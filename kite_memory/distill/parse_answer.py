"""Parse a model's answer into a record: lenient in form, strict in content; and the outbox's form, strict both ways."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict

import orjson

from kite_memory.distill.prose import clean, one_line, without_emphasis
from kite_memory.errors import StateDamaged
from kite_memory.model.event import Event
from kite_memory.model.note import (
    ITEM_KINDS,
    Change,
    Chunk,
    Decision,
    Fact,
    Insight,
    OpenQuestion,
    Origin,
    Preference,
    Record,
    RecordItem,
    Rejected,
    Topic,
    record_from_json,
    record_to_json,
)
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip


def to_json(record: Record) -> bytes:
    return orjson.dumps({**record_to_json(record), "weighed": record.weighed})


def from_json(text: bytes) -> Record:
    """Parse a record. Raises `StateDamaged` for anything that `to_json` did not write."""
    try:
        return record_from_json(orjson.loads(text))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StateDamaged("an answer in the outbox cannot be read", hint="run `kmem verify`") from error


TITLE_CHARS = 160
TITLE_WORDS = 12
BODY_CHARS = 1_200
_SYMPTOM_CHARS = 300
_REJECTED_CHARS = 200
_NAME_CHARS = 60
_PHRASE_CHARS = 120
_MOST_EVIDENCE = 8
_MOST_REJECTED = 6
_MOST_ENTITIES = 12
_MOST_TRIGGERS = 4
_MOST_TOPICS = 8
_MOST_STRETCHES = 40
_MOST_ITEMS = 30
_LONGEST_ANSWER = 400_000
_DEEPEST = 24


class Flaw(StrEnum):
    """Reason for rejecting an item of an answer."""

    NOT_AN_ITEM = "not an item"
    UNKNOWN_KIND = "of an unknown kind"
    NO_TITLE = "without a title"
    NO_BODY = "without a body"
    NO_EVIDENCE = "without evidence in the chunk"
    NOT_THE_PERSONS = "a preference that the person did not state"
    TOO_MANY = "more items than a chunk can hold"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedAnswer:
    """Parsed answer: a record, and one reason for each rejected item."""

    record: Record
    refused: tuple[str, ...]


def read_answer(
    sent: object, chunk: Chunk, ids: Mapping[str, str], *, label: str = "", offered: Mapping[str, str] | None = None
) -> ParsedAnswer | None:
    """Parse an answer; ``None`` if nothing in ``sent`` (text, or JSON already parsed) has the form of one.

    ``ids`` maps the short ids shown to the model to full ones; only those count as evidence. With a ``label``, other stretches were
    in the same call, and ``None`` means that the answer has nothing under this label. ``offered`` maps names of notes to ids: a
    change to any other note is ignored.
    """
    value = parse(sent) if isinstance(sent, str) else sent
    shape = _shape(value, label)
    if shape is None:
        return None
    raw_topics, raw_insights = shape
    events = {event.id: event for event in chunk.events}
    known = {short: full for short, full in ids.items() if full in events}
    topics: list[Topic] = []
    refused: list[str] = []
    room = _MOST_ITEMS
    for raw in raw_topics[:_MOST_TOPICS]:
        items: list[RecordItem] = []
        raw_items = raw.get("items")
        for raw_item in raw_items if isinstance(raw_items, list) else []:
            if room == 0:
                refused.append(Flaw.TOO_MANY)
                continue
            match _item(raw_item, events, known, offered or {}):
                case Flaw() as flaw:
                    refused.append(flaw)
                case item:
                    items.append(item)
                    room -= 1
        if items:
            topics.append(_topic(raw, tuple(items)))
    insights = tuple(_texts(raw_insights, limit=_SYMPTOM_CHARS, most=4)) if topics else ()
    return ParsedAnswer(record=Record(topics=tuple(topics), cross_topic_insights=insights), refused=tuple(refused))


def parse(text: str) -> object | None:
    """Return the JSON in a model's text: alone, fenced, surrounded by prose, with extra commas, or cut off.

    A cut-off value ends after its last complete part. ``None`` if there is no JSON object or list.
    """
    text = text[:_LONGEST_ANSWER]
    for start in _starts(text):
        whole, repaired = _repaired(text, start)
        for candidate in (text[start:whole] if whole else "", repaired):
            if not candidate:
                continue
            try:
                value: object = json.loads(candidate)
            except (ValueError, RecursionError):
                continue
            if _shape(value) is not None:
                return value
    return None


def _starts(text: str) -> Iterator[int]:
    """Yield where an answer could begin; only a few places are tried, so that the time stays proportional to the length."""
    for tries, match in enumerate(re.finditer(r"[{\[](?=\s{0,40}[\"{\]}])", text)):
        if tries == 8:
            return
        yield match.start()


def _repaired(text: str, start: int) -> tuple[int, str]:
    """Return the end of the value that begins at ``start`` (0 if it never ends), and the repaired value.

    Repairing drops commas before a closing bracket; an unfinished value is cut after its last complete item (an object with
    evidence), and its open brackets are closed.
    """
    pieces: list[str] = []
    closers: list[str] = []
    is_item: list[bool] = []
    safe_pieces, safe_closers = 0, ""
    for match in _LEXEME.finditer(text, start):
        lexeme = match.group()
        ends_item = False
        if lexeme in "{[":
            if len(closers) == _DEEPEST:
                return 0, ""
            closers.append("}" if lexeme == "{" else "]")
            is_item.append(False)
        elif lexeme in "}]":
            if not closers or closers.pop() != lexeme:
                break
            ends_item = is_item.pop()
            while pieces and (pieces[-1] == "," or pieces[-1].isspace()):
                pieces.pop()
        elif lexeme == '"evidence"' and closers and closers[-1] == "}":
            is_item[-1] = True
        pieces.append(lexeme)
        if ends_item:
            safe_pieces, safe_closers = len(pieces), "".join(reversed(closers))
        if lexeme in "}]" and not closers:
            return match.end(), "".join(pieces)
    return 0, "".join(pieces[:safe_pieces]) + safe_closers if safe_pieces else ""


_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\],:]|\s+|[^"{}\[\],:\s]+', re.DOTALL)
"""A string that is never closed extends to the end: searching for its closing quote repeatedly would take quadratic time."""


def _shape(value: object, label: str = "") -> tuple[list[Mapping[object, object]], object] | None:
    """Return the topics of an answer, or of one stretch in it, and its cross-topic insights.

    An answer of bare items is one topic without a name. Parts without a label are ignored if there were several stretches.
    """
    if isinstance(value, dict) and isinstance(stretches := value.get("stretches"), list):
        listed = [each for each in stretches[:_MOST_STRETCHES] if isinstance(each, dict) and isinstance(each.get("items"), list)]
        ours = [each for each in listed if not label or _text(each.get("stretch"), 20).strip("\"' .").upper() == label]
        if stretches and not ours:
            return None
        return list(_by_topic([item for each in ours for item in each["items"]])), None
    if label:
        return None
    if isinstance(value, list) and value and isinstance(value[0], dict):
        if "items" in value[0]:
            return [topic for topic in value if isinstance(topic, dict)], None
        return ([{"items": value}], None) if "evidence" in value[0] else None
    if not isinstance(value, dict):
        return None
    if isinstance(topics := value.get("topics"), list):
        return [topic for topic in topics if isinstance(topic, dict)], value.get("cross_topic_insights")
    if isinstance(value.get("items"), list):
        return [value], None
    for wrapper in ("record", "answer", "structured_output"):
        if isinstance(inner := value.get(wrapper), dict) and isinstance(inner.get("topics"), list):
            return _shape(inner)
    return None


def _by_topic(items: Sequence[object]) -> Iterator[Mapping[object, object]]:
    """Group items by the topic they name, in the order of first appearance, in the form of earlier answers."""
    found: dict[str, list[object]] = {}
    for item in items:
        named = _text(item.get("topic"), _NAME_CHARS) if isinstance(item, dict) else ""
        found.setdefault(named, []).append(item)
    for name, ours in found.items():
        tags = [tag for item in ours if isinstance(item, dict) for tag in _texts(item.get("tags"), limit=40, most=4)]
        yield {"name": name, "items": ours, "categories": tags}


def _topic(raw: Mapping[object, object], items: tuple[RecordItem, ...]) -> Topic:
    return Topic(
        name=_text(raw.get("name"), _NAME_CHARS) or items[0].title,
        summary=_text(raw.get("summary"), 400),
        items=items,
        categories=tuple(_texts(raw.get("categories"), limit=40, most=4)),
        entities=tuple(_texts(raw.get("entities"), limit=_NAME_CHARS, most=_MOST_ENTITIES)),
    )


def _item(raw: object, events: Mapping[str, Event], known: Mapping[str, str], offered: Mapping[str, str]) -> RecordItem | Flaw:
    if not isinstance(raw, dict):
        return Flaw.NOT_AN_ITEM
    kind = _text(raw.get("kind"), 40).lower().replace("_", " ")
    if kind not in _KINDS:
        return Flaw.UNKNOWN_KIND
    title = bounded_title(_text(raw.get("title"), 400))
    if not title:
        return Flaw.NO_TITLE
    body = _body(raw.get("body"))
    if not body:
        return Flaw.NO_BODY
    evidence = _evidence(raw.get("evidence"), known)
    if not evidence:
        return Flaw.NO_EVIDENCE
    sources = [events[id] for id in evidence]
    origin = checked_origin(raw.get("origin"), sources)
    if kind == "preference" and not any(is_the_persons(event) for event in sources):
        return Flaw.NOT_THE_PERSONS
    importance = _importance(raw.get("importance"))
    entities = tuple(_texts(raw.get("entities"), limit=_NAME_CHARS, most=_MOST_ENTITIES))
    triggers = tuple(_texts(raw.get("triggers"), limit=_PHRASE_CHARS, most=_MOST_TRIGGERS))
    rejected = tuple(_rejected(raw.get("rejected")))
    if kind != "decision":
        body = _with_rejected(body, rejected)
    common = _Common(
        title=title,
        body=body,
        evidence=evidence,
        importance=importance,
        origin=origin,
        entities=entities,
        triggers=triggers,
        change=_change(raw, offered),
    )
    match kind:
        case "decision":
            return Decision(**common, rejected=rejected)
        case "insight":
            return Insight(**common, symptom=_text(raw.get("symptom"), _SYMPTOM_CHARS))
        case "preference":
            return Preference(**common, everywhere=raw.get("everywhere") is True)
        case "fact":
            return Fact(**common)
        case _:
            return OpenQuestion(**common)


class _Common(TypedDict):
    title: str
    body: str
    evidence: tuple[str, ...]
    importance: int
    origin: Origin
    entities: tuple[str, ...]
    triggers: tuple[str, ...]
    change: Change | None


def _change(raw: Mapping[object, object], offered: Mapping[str, str]) -> Change | None:
    """Return the change an item makes to one of the offered notes; any other name is ignored."""
    because = _text(raw.get("because"), _REJECTED_CHARS)
    for does in ("amends", "replaces"):  # if an item has both, the one that loses less
        named = _text(raw.get(does), 40).strip(" []()#`\"'").upper()
        if named in offered:
            return Change(note=offered[named], does="amends" if does == "amends" else "replaces", because=because)
    return None


_KINDS = frozenset((*ITEM_KINDS, "open question"))


def is_the_persons(event: Event) -> bool:
    """Return whether the event is the person's own action: their words, their answer, or their refusal of a call.

    Some refusals are a policy's; those do not mention a user.
    """
    return event.role == "user" or (event.status == "denied" and "user" in event.text[:120].lower())


def checked_origin(claimed: object, sources: Sequence[Event]) -> Origin:
    """Return the origin an item claims, or less; if it claims none, the most that its events allow.

    Only events of the person allow the origin "user"; whether they contain the statement is checked by the gate.
    """
    if claimed in (None, "user") and any(is_the_persons(event) for event in sources):
        return "user"
    if claimed == "tool" or not any(event.role in ("assistant", "user") for event in sources):
        return "tool"
    return "assistant"


def bounded_title(text: str, words: int = TITLE_WORDS) -> str:
    """Return one line without markup or surrounding quotes, at most ``words`` words and `TITLE_CHARS` characters."""
    line = without_emphasis(_HEADING.sub("", one_line(text))).strip().rstrip(".:;,")
    if len(line) > 1 and line[0] == line[-1] and line[0] in _MARKS and line.count(line[0]) == 2:
        line = line[1:-1]
    title = line.rstrip(".:;,").split(" ")
    return clip(" ".join(title[:words]), TITLE_CHARS).strip()


_MARKS = "\"'"
_HEADING = lazy_regex(r"^(?:[#*_>-]+\s+)+")


def _text(value: object, limit: int) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    text = f"{value:.12g}" if isinstance(value, float) else str(value)
    return clip(_brackets_restored(one_line(text[: limit * 8])), limit)


def _body(value: object) -> str:
    if not isinstance(value, str):
        return ""
    rows = [" ".join(row.split()) for row in clean(value[: BODY_CHARS * 4]).split("\n")]
    return clip(_brackets_restored("\n".join(row for row in rows if row)), BODY_CHARS)


def _brackets_restored(text: str) -> str:
    """Restore ``<`` and ``>``, which the transcript shows as ``‹`` and ``›``."""
    return text.replace("‹", "<").replace("›", ">")


def _texts(value: object, *, limit: int, most: int) -> Iterator[str]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list):
        return
    seen: set[str] = set()
    for each in values[: most * 4]:
        text = _text(each, limit)
        if text and text.lower() not in seen:
            seen.add(text.lower())
            yield text
        if len(seen) == most:
            return


def _evidence(value: object, known: Mapping[str, str]) -> tuple[str, ...]:
    """Return full ids from short or full ones, with or without the brackets and the ``#`` of a reference."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list):
        return ()
    full_ids = frozenset(known.values())
    found: dict[str, None] = {}
    for each in values[: _MOST_EVIDENCE * 4]:
        name = each[:300].strip(" []()#`\"'").rpartition("#")[2] if isinstance(each, str) else _written(each)
        if name in known:
            found[known[name]] = None
        elif name in full_ids:
            found[name] = None
    return tuple(found)[:_MOST_EVIDENCE]


def _written(number: object) -> str:
    return str(number) if isinstance(number, int) and abs(number) < 10**18 else ""


def _importance(value: object) -> int:
    if isinstance(value, str) and value.strip()[:1] in ("1", "2", "3"):
        value = int(value.strip()[:1])
    if isinstance(value, bool) or not isinstance(value, int | float) or (isinstance(value, float) and not math.isfinite(value)):
        return 2
    return int(max(1, min(3, value)))  # limit first: an int may be too large for any float


def _rejected(value: object) -> Iterator[Rejected]:
    for each in value[:_MOST_REJECTED] if isinstance(value, list) else []:
        match each:
            case {"alternative": str(alternative), **rest}:
                reason = rest.get("reason")
            case str(whole):
                alternative, _, reason = whole.partition(": ")
            case _:
                continue
        if name := _text(alternative, _REJECTED_CHARS):
            yield Rejected(alternative=name, reason=_text(reason, _REJECTED_CHARS))


def _with_rejected(body: str, rejected: Sequence[Rejected]) -> str:
    """Add rejected alternatives to an insight's body, since an insight has no field for them."""
    if not rejected:
        return body
    ruled_out = "; ".join(f"{each.alternative} ({each.reason})" if each.reason else each.alternative for each in rejected)
    return clip(f"{body}\nRuled out: {ruled_out}.", BODY_CHARS)
