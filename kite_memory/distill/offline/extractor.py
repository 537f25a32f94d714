"""The extractor that is always there: no network, no key, no model, and the same answer every time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from kite_memory.distill.asked_to_keep import asked_to_keep
from kite_memory.distill.extractor import Answer, Usage
from kite_memory.distill.gate import passed
from kite_memory.distill.offline.commands import established
from kite_memory.distill.offline.drafts import Draft, drafts_of, of_command
from kite_memory.distill.offline.passages import turns
from kite_memory.distill.offline.wording import entities_of
from kite_memory.distill.parse_answer import BODY_CHARS, bounded_title, checked_origin
from kite_memory.distill.prompts import REVISION
from kite_memory.distill.prose import clip, stems
from kite_memory.model.event import Event, Session
from kite_memory.model.provenance import Provenance
from kite_memory.model.record import Chunk, Decision, Fact, Insight, Preference, Record, RecordItem, Topic

_REVISION = 2
_FOR_A_SESSION = 14
"""Notes of what an agent says: as many as a person would keep of a session, however long. What a person says outright comes on
top."""
_WORDS_FOR_ONE = 200
"""Of what an agent says: how much of it makes one note."""
_STORY = 1500
"""Words of an agent's from which on a chunk tells a story long enough for its drafts to be held against one another."""
_LEAST_ALONE = 1.3
"""The score of a finding that is worth a note where there is not much to hold it against."""
_SHORT = 3
"""How many causes found and mended, and choices made with a reason, a chunk may tell however few its words."""
_MOST = 30
"""Notes of one chunk, whoever said them."""


Gate = Callable[[Record, Mapping[str, Event], frozenset[str], Provenance | None], tuple[Record, tuple[str, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineExtractor:
    """Rules over what was said and done. Fewer and plainer notes than a model's, every sentence of them quoted."""

    gate: Gate = passed

    @property
    def name(self) -> str:
        return "offline"

    @property
    def version(self) -> str:
        return f"offline:{_REVISION}.{REVISION}"

    def estimate(self, chunk: Chunk) -> Usage:
        return Usage()

    def extract(self, chunk: Chunk) -> Answer:
        drafts = _selected(chunk)
        events = {event.id: event for event in (*chunk.before, *chunk.events)}
        items = tuple(item for draft in drafts if (item := _item(draft, events)) is not None)
        if not items:
            return Answer(record=Record(topics=()), usage=Usage())
        record, verdicts = self.gate(Record(topics=(_topic(items),)), events, frozenset(), chunk.provenance)
        return Answer(record=record, usage=Usage(), refused_items=verdicts)


def said_to_keep(events: Sequence[Event]) -> bool:
    """Whether a person plainly decided, wished or told something here: reason enough to ask a model soon."""
    if any(event.role == "user" and asked_to_keep(event.text) for event in events):
        return True
    first = events[0]
    session = Session(id=first.session, provider=first.provider, started=first.at)
    record = OfflineExtractor().extract(Chunk(id="", session=session, events=tuple(events))).record
    return any(item.origin == "user" for item in record.items())


def _selected(chunk: Chunk) -> Sequence[Draft]:
    """The best drafts of a chunk, in the order of its turns; of two that say the same, the better one."""
    told = turns((*chunk.before, *chunk.events))
    fresh = frozenset(event.id for event in chunk.events)
    drafts, words = [], 0
    for at, turn in enumerate(told):
        if turn.events[-1].id in fresh:
            found, spoken = drafts_of(turn, told[at - 1] if at else None, fresh)
            drafts.extend(found)
            words += spoken
    drafts.extend(of_command(each) for each in established(chunk.events))
    room = max(1, -(-words // _WORDS_FOR_ONE), min(_SHORT, sum(draft.rule == "settled" for draft in drafts)))
    room = min(room, max(0, _FOR_A_SESSION - chunk.noted))
    kept: list[tuple[Draft, frozenset[str]]] = []
    for draft in sorted(drafts, key=lambda draft: -draft.score):
        said_outright = draft.rule in ("stated", "wish", "told", "correction", "choice")
        if (room == 0 and not said_outright) or len(kept) == _MOST:
            continue
        if words < _STORY and draft.rule == "finding" and not draft.claims and draft.score < _LEAST_ALONE:
            continue
        own = stems(draft.body)
        if own and all(len(own & others) < 0.6 * len(own) for _, others in kept):
            kept.append((draft, own))
            room -= not said_outright
    chosen = {id(draft) for draft, _ in kept}
    return [draft for draft in drafts if id(draft) in chosen]


def _item(draft: Draft, events: Mapping[str, Event]) -> RecordItem | None:
    title = bounded_title(draft.title)
    evidence = tuple(dict.fromkeys(id for id in draft.evidence if id in events))
    if not title or not evidence:
        return None
    body = clip(draft.body, BODY_CHARS)
    origin = checked_origin(draft.origin, [events[id] for id in evidence])
    entities = entities_of((draft.title, draft.body))
    match draft.kind:
        case "decision":
            return Decision(
                title=title, body=body, evidence=evidence, importance=draft.importance, origin=origin, entities=entities,
                rejected=draft.rejected,
            )  # fmt: skip
        case "insight":
            return Insight(
                title=title, body=body, evidence=evidence, importance=draft.importance, origin=origin, entities=entities,
                symptom=draft.symptom,
            )  # fmt: skip
        case "preference":
            return Preference(
                title=title, body=body, evidence=evidence, importance=draft.importance, origin=origin, entities=entities,
                everywhere=draft.everywhere,
            )  # fmt: skip
        case "fact":
            return Fact(title=title, body=body, evidence=evidence, importance=draft.importance, origin=origin, entities=entities)
        case _:
            assert_never(draft.kind)


def _topic(items: tuple[RecordItem, ...]) -> Topic:
    first = max(items, key=lambda item: item.importance)
    return Topic(name=clip(first.title, 60), summary="", items=items, entities=tuple(dict.fromkeys(_names(items)))[:12])


def _names(items: Sequence[RecordItem]) -> Iterator[str]:
    for item in items:
        yield from item.entities
