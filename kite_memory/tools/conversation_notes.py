"""A saved conversation: its transcript parsed into turns, a journal note with all of it, and a note for each finding.

The functions are pure and serve every store.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from kite_memory.errors import UsageError
from kite_memory.model.event import Event, EventType, EvidenceReference, Role, Session, Where, evidence_reference
from kite_memory.model.note import (
    TURNED_DOWN,
    Chunk,
    Decision,
    Insight,
    Note,
    NoteKind,
    NoteStatus,
    OpenQuestion,
    Preference,
    Record,
    RecordItem,
    Scope,
    Topic,
)
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip
from kite_memory.tools.store import MemoryPlace, SavedConversation
from kite_memory.vault import links
from kite_memory.vault.drafting import Draft, draft, entities_of, kind_of, tags_of, title_of
from kite_memory.vault.links import tame, tame_line, tame_name
from kite_memory.vault.notefile import FOLDERS
from kite_memory.vault.wording import note_id, note_stem, text_block, title_key

RECORD = "record"
"""Event id of an agent's own report of a conversation, on which its notes rest."""
TURN = "turn"
"""Prefix of the event ids of a submitted transcript. Agents' own ids are hexadecimal, so they never begin with it."""

_UUID = lazy_regex(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_NO_TIME = datetime.fromtimestamp(0, UTC)
_BODY = 36_000
"""About what recall embeds of a note; the last topics of a longer one would not be found."""
_LENGTHS = ((4_000, 8_000), (600, 2_000), (200, 500), (90, 200))
"""Lengths of an item and of a summary, tried in order until all topics fit."""
_SEPARATOR = " · "


def identity(conversation: SavedConversation, *place: str) -> str:
    """Return the id of one of the conversation's notes."""
    whose = (conversation.scope.value, conversation.project, conversation.uuid)
    person = (conversation.person,) if conversation.person and conversation.scope is Scope.GLOBAL else ()
    return note_id(_NO_TIME, "conversation", *whose, *person, *place)


def place_of(kept: SavedConversation | Note) -> MemoryPlace:
    """Return the place of a conversation, in which the notes that came from it are, too."""
    return MemoryPlace(scope=kept.scope, project=kept.project)


def journal_id(conversation: SavedConversation) -> str:
    return identity(conversation, "journal")


def item_id(conversation: SavedConversation, item: RecordItem) -> str:
    return identity(conversation, *name_of(item))


def uuid_of(note: Note) -> str:
    """Return the uuid of the saved conversation of which this is the journal or from which it came; empty for any other note."""
    if note.kind is NoteKind.JOURNAL:
        return note.session if _UUID.fullmatch(note.session) else ""
    for reference in map(EvidenceReference.parse, note.evidence):
        if reference is not None and _UUID.fullmatch(reference.session) and reference.event.startswith((RECORD, TURN)):
            return reference.session
    return ""


def uuids_of(note: Note) -> frozenset[str]:
    """Return the uuids of all saved conversations that a note may belong to; some of them may not exist."""
    references = filter(None, map(EvidenceReference.parse, note.evidence))
    return frozenset(uuid for uuid in (note.session, *(each.session for each in references)) if _UUID.fullmatch(uuid))


def without(conversation: SavedConversation, gone: Collection[str]) -> Record:
    """Return the record without items whose notes have these ids."""
    record = conversation.record
    topics = (
        replace(topic, items=tuple(item for item in topic.items if item_id(conversation, item) not in gone))
        for topic in record.topics
    )
    return replace(record, topics=tuple(topics))


def drafts_of(conversation: SavedConversation, *, everywhere: bool) -> list[Draft]:
    """Return a draft for each item. ``everywhere`` allows preferences to apply beyond their project."""
    session = Session(
        id=conversation.uuid, provider=conversation.source, started=conversation.created, project=conversation.project
    )
    record = conversation.record if everywhere else _kept_in(conversation.record)
    made = draft(record, Chunk(id=conversation.uuid, session=session, events=()))
    ids = {each.note.id: item_id(conversation, item) for each, item in zip(made, record.items(), strict=True)}

    def in_conversation(note: Note) -> Note:
        scope = Scope.GLOBAL if note.scope is Scope.GLOBAL else conversation.scope
        waits = scope is Scope.GLOBAL and note.status is NoteStatus.ACCEPTED  # not global without review
        return replace(note, id=ids[note.id], scope=scope, status=NoteStatus.PROPOSED if waits else note.status)

    return [replace(each, note=in_conversation(each.note), siblings=tuple(ids[one] for one in each.siblings)) for each in made]


def _kept_in(record: Record) -> Record:
    def kept(item: RecordItem) -> RecordItem:
        return replace(item, everywhere=False) if isinstance(item, Preference) else item

    return replace(record, topics=tuple(replace(topic, items=tuple(map(kept, topic.items))) for topic in record.topics))


def journal_of(conversation: SavedConversation, stems: Sequence[str] = ()) -> Note:
    """Return the journal note. ``stems`` are the file names of the notes made from the conversation."""
    topics = conversation.record.topics
    title = title_of(_SEPARATOR.join(topic.name for topic in topics), conversation.overall or "A conversation")
    body = text_block(f"{journal_body(conversation)}\n\n{related(stems)}")
    return Note(
        id=journal_id(conversation),
        path=f"{FOLDERS[NoteKind.JOURNAL]}/{note_stem(title, conversation.created)}.md",
        kind=NoteKind.JOURNAL,
        title=title,
        body=body,
        created=conversation.created,
        updated=conversation.updated,
        links=links.targets(body),
        aliases=(title,),
        tags=tags_of(("conversation", *(category for topic in topics for category in topic.categories))),
        triggers=tuple(dict.fromkeys(tame_name(topic.name) for topic in topics if topic.name))[:8],
        entities=tuple(entity.name for entity in entities_of(_entities(conversation.record))),
        scope=conversation.scope,
        project=conversation.project,
        session=conversation.uuid,
        evidence=(evidence_reference(conversation.source, conversation.uuid, RECORD),),
    )


def related(stems: Sequence[str]) -> str:
    return f"{links.RELATED} {', '.join(map(links.write, stems))}" if stems else ""


def journal_body(conversation: SavedConversation) -> str:
    """Return all topics with their items. A long record is shortened item by item, so that no topic is left out."""
    body = ""
    for item, summary in _LENGTHS:
        body = text_block("\n\n".join(filter(None, _paragraphs(conversation, item, summary))))
        if len(body) <= _BODY:
            break
    return tame(body, 2 * _BODY)  # each piece is tame, but its new context may turn it into code


def _paragraphs(conversation: SavedConversation, item: int, summary: int) -> Iterator[str]:
    record = conversation.record
    yield clip(tame(conversation.overall), summary)
    for topic in record.topics:
        yield f"## {tame_line(topic.name) or 'Topic'}"
        yield clip(tame(topic.summary), summary)
        yield _line("Categories", topic.categories)
        yield _list(
            "Decisions", [_item_line(each, item) for each in topic.items if isinstance(each, Decision) and not turned_down(each)]
        )
        yield _list("Rejected", list(_rejected(topic, item)))
        yield _list("Insights", [_item_line(each, item) for each in topic.items if isinstance(each, Insight)])
        others = (each for each in topic.items if not isinstance(each, Decision | Insight | OpenQuestion))
        yield _list("Noted", [_item_line(each, item) for each in others])
        yield _list("Open questions", [_item_line(each, item) for each in topic.items if isinstance(each, OpenQuestion)])
        yield _line("Entities", topic.entities)
    if record.cross_topic_insights:
        yield "## Across topics"
        yield "\n".join(f"- {_in_list(clip(tame(each), item))}" for each in record.cross_topic_insights)


def turned_down(decision: Decision) -> bool:
    """Return whether the decision only names what was not chosen."""
    return decision.title.startswith(TURNED_DOWN)


def _rejected(topic: Topic, length: int) -> Iterator[str]:
    for item in topic.items:
        if isinstance(item, Decision):
            for one in item.rejected:
                alternative, reason = tame_line(one.alternative), tame_line(one.reason)
                yield clip(f"{alternative}: {reason}" if reason else alternative, length)


def _item_line(item: RecordItem, length: int) -> str:
    """Return the item's text, with its title in front unless the body begins with it."""
    title, body = tame_line(item.title), tame(item.body)
    if isinstance(item, Insight) and item.symptom:
        body = f"{body}\nSymptom: {tame_line(item.symptom)}"
    words = body if title_key(body).startswith(title_key(title).rstrip("…")) else f"**{title}**: {body}"
    return _in_list(clip(words, length))


def _in_list(text: str) -> str:
    return text.replace("\n", "\n  ")


def _list(heading: str, entries: Sequence[str]) -> str:
    return "\n".join([f"**{heading}**", "", *(f"- {entry}" for entry in entries)]) if entries else ""


def _line(heading: str, names: Sequence[str]) -> str:
    return f"**{heading}:** {', '.join(filter(None, map(tame_line, names)))}" if names else ""


def _entities(record: Record) -> tuple[str, ...]:
    named = (
        *(name for topic in record.topics for name in topic.entities),
        *(name for item in record.items() for name in item.entities),
    )
    return tuple(dict.fromkeys(named))


def name_of(item: RecordItem) -> tuple[str, str]:
    """Return kind and title, which identify an item within its conversation."""
    return kind_of(item).value, title_key(title_of(item.title, item.body))


def opposite(conversation: SavedConversation, item: RecordItem) -> str:
    """Return the id of the note with the contrary decision (chosen or rejected); empty for other items."""
    return identity(conversation, *_contrary(item)) if isinstance(item, Decision) else ""


def _contrary(item: RecordItem) -> tuple[str, str]:
    chosen = item.title.removeprefix(TURNED_DOWN)
    title = chosen if chosen != item.title else f"{TURNED_DOWN}{chosen}"
    return name_of(replace(item, title=title))


def refuse_elsewhere(old: SavedConversation, new: SavedConversation, named: Collection[str]) -> None:
    """Raise `UsageError` if a field in ``named`` differs from the place where the conversation is kept."""
    if any(getattr(old, name) != getattr(new, name) for name in named):
        where = f"project {old.project!r}" if old.project else "no project"
        raise UsageError(
            f"this conversation is kept in {where}, with scope {old.scope.value!r}",
            hint="leave project and scope out to add to it there, or save what belongs elsewhere under a new id",
        )


def merged(old: SavedConversation, new: SavedConversation) -> SavedConversation:
    """Return the conversation after a second save: new words where both have an item, and old items that the new record omits.

    Its place, source and creation time stay. An old topic is dropped if all its items have moved to other topics, or if each of the
    two conversations has only one topic.
    """
    replaced = {name for item in new.record.items() for name in (name_of(item), _contrary(item))}
    old_topics = {title_key(topic.name): topic for topic in old.record.topics}
    topics = [_joined(old_topics.pop(title_key(topic.name), None), topic, replaced) for topic in new.record.topics]
    for topic in old_topics.values():
        left = tuple(item for item in topic.items if name_of(item) not in replaced)
        if left or not (topic.items or len(old.record.topics) == len(new.record.topics) == 1):
            topics.append(replace(topic, items=left))
    insights = (*new.record.cross_topic_insights, *old.record.cross_topic_insights)
    return replace(
        new,
        source=old.source,
        project=old.project,
        scope=old.scope,
        record=Record(topics=tuple(topics), cross_topic_insights=tuple(dict.fromkeys(insights))),
        overall=new.overall or old.overall,
        created=old.created,
        created_by=old.created_by,
        transcript=new.transcript,
        has_transcript=new.has_transcript or old.has_transcript,
    )


def _joined(old: Topic | None, new: Topic, replaced: set[tuple[str, str]]) -> Topic:
    if old is None:
        return new
    return replace(
        new,
        summary=new.summary or old.summary,
        items=(*new.items, *(item for item in old.items if name_of(item) not in replaced)),
        categories=new.categories or old.categories,
        entities=tuple(dict.fromkeys((*new.entities, *old.entities))),
    )


_SPEAKERS: dict[str, Role] = {
    "user": "user", "human": "user", "me": "user", "you": "user", "person": "user",
    "assistant": "assistant", "ai": "assistant", "agent": "assistant", "model": "assistant", "claude": "assistant",
    "codex": "assistant", "gemini": "assistant", "chatgpt": "assistant", "gpt": "assistant", "cline": "assistant",
    "roo": "assistant", "copilot": "assistant", "cursor": "assistant", "antigravity": "assistant",
    "tool": "tool", "system": "system",
}  # fmt: skip
_SPEAKER = lazy_regex(
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
