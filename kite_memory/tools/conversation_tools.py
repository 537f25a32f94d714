"""Tools for saved conversations: generate_conversation_id, get_context, save_conversation."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Protocol
from uuid import UUID, uuid4

from kite_memory.errors import UsageError
from kite_memory.model.event import Event, EventType, Provenance, Where
from kite_memory.model.note import Chunk, Fact, Origin, Record, RecordItem, Scope, Topic
from kite_memory.recall.lexical import folded, terms
from kite_memory.system import utc_now
from kite_memory.text.display import clip
from kite_memory.text.quoting import plain_line, quoted
from kite_memory.tools import argument_parsing
from kite_memory.tools.arguments import (
    CONTEXT_TOKENS,
    PROJECT,
    QUERY,
    RECORD_LIMIT,
    Arguments,
    LocalContext,
    place_in,
    project_named,
)
from kite_memory.tools.conversation_notes import RECORD, chunk_of, name_of
from kite_memory.tools.declarations import Json, Tool
from kite_memory.tools.note_view import fitted, pieces
from kite_memory.tools.record_reading import ParsedRecord, read_record, source_named
from kite_memory.tools.store import Asker, FoundNote, MemoryPlace, NoteQuery, SavedConversation, Store

_OPENING = 600
_GREETINGS = 20
"""Number of turns in which the first meaningful one is searched for."""
_LEAST_SCORE = 0.3
"""A record below this score shares at most a word with the query. Of 40 queries about other things 34 get no record at this
threshold (18 without it); of 20 about the notes 16 get theirs (17 without it).
"""
_OF_ANOTHER_PROJECT = 0.1
"""Deduction from the score of another project's notes."""
_FROM_A_CONVERSATION = 3
"""Hits requested per record to return, since several may be notes of one conversation."""


class QualityGate(Protocol):
    """Quality gate: its methods return why something may not be kept, or an empty string.

    ``text`` only checks whether a text is dangerous, not whether it is meaningful.
    """

    def item(self, item: RecordItem, evidence: Sequence[Event], /) -> str: ...

    def text(self, text: str, /) -> str: ...

    def says_nothing(self, text: str, /) -> str:
        """Return why a text is too empty to keep; an empty string if it is meaningful."""
        ...

    def origin_of(self, item: RecordItem, heard: Sequence[Event], provenance: Provenance | None, /) -> Origin:
        """Return the origin of an item: a tool, if a tool said it first in ``heard`` or in what is known, and no person did."""
        ...


Decompose = Callable[[Chunk], tuple[Record, str]]
"""Returns the record of a transcript's turns, and a remark about how it was made."""


def tools(
    store: Store,
    local: LocalContext,
    *,
    gate: QualityGate,
    decompose: Decompose,
    clock: Callable[[], datetime] = utc_now,
    new_uuid: Callable[[], UUID] = uuid4,
) -> Mapping[str, Tool]:
    return {
        "generate_conversation_id": partial(_generate, new_uuid),
        "get_context": partial(_context, store, local),
        "save_conversation": partial(_save, store, local, gate, decompose, clock),
    }


def _generate(new_uuid: Callable[[], UUID], asker: Asker, arguments: Arguments) -> Json:
    """Return a new uuid. Nothing is stored; the first save under it creates the conversation."""
    return {"claude_conversation_uuid": str(new_uuid())}


def _context(store: Store, local: LocalContext, asker: Asker, arguments: Arguments) -> Json:
    began = time.perf_counter()
    query = argument_parsing.clean(arguments[QUERY]).strip()
    within = project_named(asker, local, arguments[PROJECT])
    limit = arguments[RECORD_LIMIT]
    asked = NoteQuery(text=query, project=within or asker.project, within=bool(within), limit=limit * _FROM_A_CONVERSATION)
    asked_about = terms(query)
    found = [hit for hit in store.search(asker.grant, asked) if _answers(hit, asked.project, asked_about)]
    made = pieces(store, asker.grant, query, found, limit)
    text, tokens, kept = fitted(made, arguments[CONTEXT_TOKENS])
    return {
        "text": text or "Nothing in memory speaks of this.",
        "records": [piece.reference for piece in kept],
        "tokens": tokens,
        "left_out": len(made) - len(kept),
        "took_ms": round((time.perf_counter() - began) * 1000, 1),
    }


def _answers(hit: FoundNote, project: str, asked_about: Sequence[str]) -> bool:
    """Return whether the hit scores high enough, or holds every word of the query."""
    note = hit.note
    elsewhere = bool(project and note.project and note.project != project)
    if hit.score >= _LEAST_SCORE - _OF_ANOTHER_PROJECT * elsewhere:
        return True
    said = folded(" ".join((note.title, note.body, *note.entities, *note.aliases, *note.triggers)))
    return bool(asked_about) and all(term.replace(" ", "") in said for term in asked_about)


def _save(
    store: Store,
    local: LocalContext,
    gate: QualityGate,
    decompose: Decompose,
    clock: Callable[[], datetime],
    asker: Asker,
    arguments: Arguments,
) -> Json:
    given = read_record(arguments.raw)
    place = _place(asker, local, given)
    asker.grant.demand(place.scope, place.project)
    now = clock()
    source = given.source or source_named(argument_parsing.clean(asker.ai)) or "mcp"
    chunk = chunk_of(given.uuid, source, place.project, given.transcript, now)
    record, remarks = given.record, list(given.remarks)
    if not record.topics:
        record, remark = decompose(chunk)
        record = _from_agent(record) if record.topics else _opening(chunk, gate)
        remarks += [remark] if remark else []
    conversation = SavedConversation(
        uuid=given.uuid,
        source=source,
        project=place.project,
        record=record,
        overall=given.overall,
        created=now,
        updated=now,
        scope=place.scope,
        transcript=given.transcript,
        has_transcript=bool(given.transcript),
        created_by=argument_parsing.clean(asker.name),
    )
    heard, known = local.said_before(asker, place)
    passed, refused = _gated(conversation, gate, chunk, heard, known)
    if not (passed.record.topics or passed.overall) and given.record.topics and given.transcript:
        own = _from_agent(decompose(chunk)[0])
        passed, more = _gated(replace(conversation, record=own, overall=""), gate, chunk, heard, known)
        refused += more
    if not (passed.record.topics or passed.overall) and _is_worth_keeping(given.transcript):
        count = len(chunk.events)
        passed = replace(passed, overall=f"A conversation of {count} turn{'s' if count > 1 else ''}; its transcript is kept.")
    if not (passed.record.topics or passed.overall):
        return _nothing_saved(given, refused, remarks)
    named = [name for name, asked in (("scope", given.scope), ("project", given.project)) if asked]
    saved = store.save_conversation(asker.grant, passed, named=named)
    refused += [_Refused(what=what, why=why) for what, why in saved.refused]
    return {
        "saved": bool(saved.journal),
        "amended": saved.amended,
        "claude_conversation_uuid": saved.uuid,
        "project": saved.project,
        "scope": saved.scope.value,
        "journal": saved.journal,
        "notes": list(saved.notes),
        "refused": [each.as_json() for each in refused],
        "remarks": [plain_line(remark, 400) for remark in remarks],
    }


def _is_worth_keeping(transcript: str) -> bool:
    """Return whether the transcript has more words than a greeting or a routine report."""
    return len(set(_WORD.findall(transcript.lower()))) >= _WORDS_OF_A_CONVERSATION


_WORD = re.compile(r"\w{4,}|[^\W\d_a-zA-Z]{2}")
_WORDS_OF_A_CONVERSATION = 12


def _place(asker: Asker, local: LocalContext, given: ParsedRecord) -> MemoryPlace:
    """Return the project's place if a project is known, else the global one."""
    try:
        scope = Scope(given.scope) if given.scope else None
    except ValueError:
        raise UsageError("unknown scope", hint="choose one of: global, project, shared") from None
    if scope is Scope.SESSION:
        raise UsageError("a conversation is not kept for one session", hint='use scope "project", or leave it out')
    project = argument_parsing.line("project", given.project, longest=4_096)
    here = project_named(asker, local, project) or asker.project
    return place_in(asker, local, scope or (Scope.PROJECT if here else Scope.GLOBAL), project=project)


def _from_agent(record: Record) -> Record:
    """Return the record without duplicates, and with the origin ``assistant`` for ``user``, since an agent sent it."""
    seen: set[tuple[str, str]] = set()

    def kept(items: Sequence[RecordItem]) -> Iterator[RecordItem]:
        for item in items:
            if name_of(item) not in seen:
                seen.add(name_of(item))
                yield replace(item, origin="assistant") if item.origin == "user" else item

    return replace(record, topics=tuple(replace(topic, items=tuple(kept(topic.items))) for topic in record.topics))


def _opening(chunk: Chunk, gate: QualityGate) -> Record:
    """Return a record of how a transcript without any notes began, past the greetings, so that it can be found."""
    spoken = sorted((event for event in chunk.events if event.text), key=lambda event: (event.role != "user", event.ordinal))
    said = [(clip(" ".join(event.text.split()), _OPENING), event) for event in spoken[:_GREETINGS]]
    telling = (text for text, event in said if not gate.item(_summing_up(text), [event]))
    summary = next(telling, said[0][0] if said else "")
    name = clip(" ".join(summary.split()[:5]).rstrip(".,:;?!"), 80)
    return Record(topics=(Topic(name=name, summary=summary, items=()),) if summary else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused:
    what: str
    why: str

    def as_json(self) -> Json:
        return {"what": plain_line(quoted(plain_line(self.what, 160)), 160), "why": self.why}


def _gated(
    conversation: SavedConversation, gate: QualityGate, chunk: Chunk, heard: Sequence[Event], provenance: Provenance | None
) -> tuple[SavedConversation, list[_Refused]]:
    """Return what the gate passes and what it refuses; an item that only repeats a tool gets the tool as its origin."""
    refused: list[_Refused] = []
    events = {event.id: event for event in chunk.events}

    def text(value: str, what: str) -> str:
        if value and (why := gate.text(value)):
            refused.append(_Refused(what=what, why=why))
            return ""
        return value

    def summing_up(value: str, what: str, *, alone: bool) -> str:
        """Check a summary; ``alone``, for one that stands for a whole record, applies the rules for notes."""
        item = _summing_up(value)
        if value and (why := gate.item(item, [_report_event(item, conversation)]) if alone else gate.says_nothing(value)):
            refused.append(_Refused(what=what, why=why))
            return ""
        return text(value, what)

    def passes(item: RecordItem) -> bool:
        evidence = [events[id] for id in item.evidence if id in events] or [_report_event(item, conversation)]
        if why := gate.item(item, evidence) or gate.text("\n".join(item.entities)):
            refused.append(_Refused(what=item.title, why=why))
            return False
        return True

    def topics() -> Iterator[Topic]:
        for topic in conversation.record.topics:
            items = tuple(replace(item, origin=gate.origin_of(item, heard, provenance)) for item in topic.items if passes(item))
            name = text(topic.name, "a topic's name")
            summary = summing_up(topic.summary, f"summary of {topic.name}", alone=not items)
            names = text("\n".join((*topic.categories, *topic.entities)), f"categories and entities of {topic.name}")
            if items or summary:
                yield replace(
                    topic,
                    name=name or "A topic",
                    summary=summary,
                    items=items,
                    categories=topic.categories if names else (),
                    entities=topic.entities if names else (),
                )

    kept = tuple(topics())
    insights = tuple(each for each in conversation.record.cross_topic_insights if summing_up(each, each, alone=False))
    overall = summing_up(conversation.overall, "overall summary", alone=not kept)
    record = Record(topics=kept, cross_topic_insights=insights if kept else ())
    return replace(conversation, record=record, overall=overall), refused


def _summing_up(text: str) -> Fact:
    return Fact(title="", body=text, evidence=(), importance=2, origin="assistant")


def _report_event(item: RecordItem, conversation: SavedConversation) -> Event:
    """Return the event on which an agent's item rests: the agent's own report of it."""
    return Event(
        id=RECORD,
        session=conversation.uuid,
        provider=conversation.source,
        ordinal=0,
        at=conversation.created,
        role="assistant",
        type=EventType.ASSISTANT_MESSAGE,
        text=f"{item.title}\n{item.body}",
        where=Where(file="", start=0, end=0),
    )


def _nothing_saved(given: ParsedRecord, refused: Sequence[_Refused], remarks: Sequence[str]) -> Json:
    why = "nothing of it passed the quality gate" if refused else "nothing worth a note was found in it"
    return {
        "saved": False,
        "amended": False,
        "claude_conversation_uuid": given.uuid,
        "journal": "",
        "notes": [],
        "refused": [each.as_json() for each in refused],
        "remarks": [why, "give topic, summary and decisions to have it saved as you tell it", *remarks],
    }
