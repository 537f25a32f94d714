"""Extractor by rules: no network, no key, no model, and the same answer every time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from kite_memory.distill.asked_to_keep import asked_to_keep
from kite_memory.distill.extractor import Answer, Usage
from kite_memory.distill.gate import passed
from kite_memory.distill.offline.commands import established
from kite_memory.distill.offline.draft import OfflineDraft, Rule
from kite_memory.distill.offline.drafts import drafts_of, of_command
from kite_memory.distill.offline.languages import foreign_drafts
from kite_memory.distill.offline.passages import turns
from kite_memory.distill.offline.wording import TITLE_WORDS, entities_of
from kite_memory.distill.parse_answer import BODY_CHARS, bounded_title, checked_origin
from kite_memory.distill.prompts import REVISION
from kite_memory.distill.prose import clip, stems
from kite_memory.model.event import Event, Session
from kite_memory.model.provenance import Provenance
from kite_memory.model.record import Chunk, Decision, Fact, Insight, Preference, Record, RecordItem, Topic

_REVISION = 3
_ENOUGH = 3.6
"""Least worth of a claim that is kept, and the increase of it for each note that the session has yielded already."""
_DEARER = 0.05
_SAME = 0.6
"""Share of a draft's words in another from which both count as the same."""
_MOST = 30
"""Most notes of one chunk."""

Gate = Callable[[Record, Mapping[str, Event], frozenset[str], Provenance | None], tuple[Record, tuple[str, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineExtractor:
    """Extractor by rules. Yields fewer and plainer notes than a model, every sentence of them quoted."""

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
        record = _with_lent_origin(record, frozenset(draft.title for draft in drafts if draft.rule == "agreed"))
        return Answer(record=record, usage=Usage(), refused_items=verdicts)


def _with_lent_origin(record: Record, agreed: frozenset[str]) -> Record:
    """Give items that the person explicitly agreed to the origin "user", although the words are the agent's."""
    topics = (
        replace(topic, items=tuple(_lent(item) if item.title in agreed else item for item in topic.items))
        for topic in record.topics
    )
    return replace(record, topics=tuple(topics))


def _lent(item: RecordItem) -> RecordItem:
    return replace(item, origin="user") if item.origin == "assistant" and not item.doubt else item


def said_to_keep(events: Sequence[Event]) -> bool:
    """Return whether a person plainly decided, requested or stated something here, so that a model should be called soon."""
    if any(event.role == "user" and asked_to_keep(event.text) for event in events):
        return True
    first = events[0]
    session = Session(id=first.session, provider=first.provider, started=first.at)
    record = OfflineExtractor().extract(Chunk(id="", session=session, events=tuple(events))).record
    return any(item.origin == "user" for item in record.items())


def _selected(chunk: Chunk) -> Sequence[OfflineDraft]:
    """Return the drafts worth a note; of two that say the same, the more certain one."""
    whole = turns((*chunk.before, *chunk.events))
    fresh = frozenset(event.id for event in chunk.events)
    drafts = [
        *drafts_of(whole, fresh),
        *foreign_drafts(whole, fresh),
        *(of_command(each) for each in established(chunk.events)),
    ]
    kept: list[tuple[OfflineDraft, frozenset[str]]] = []
    for draft in sorted(drafts, key=lambda draft: (_ORDER.index(draft.rule), -draft.worth)):
        if draft.worth < _ENOUGH + _DEARER * (chunk.noted + len(kept)) or len(kept) == _MOST:
            continue
        own = stems(draft.body)
        if own and all(
            draft.title != other.title and len(own & others) < _SAME * min(len(own), len(others)) for other, others in kept
        ):
            kept.append((draft, own))
    chosen = {id(draft) for draft, _ in kept}
    return [draft for draft in drafts if id(draft) in chosen]


_ORDER: tuple[Rule, ...] = (
    "thread", "wish", "stated", "reminder", "correction", "choice", "refusal", "objection", "plan", "answer", "pick", "agreed",
    "conceded", "claim", "cause", "manner", "command",
)  # fmt: skip
"""Order of preference between two drafts that say the same."""


def _item(draft: OfflineDraft, events: Mapping[str, Event]) -> RecordItem | None:
    title = bounded_title(draft.title, TITLE_WORDS)
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
