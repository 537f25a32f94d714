"""From what a search found to markdown that an agent can go on from: whole records, the telling parts first, within a budget.

A note that a saved conversation has yielded brings that conversation with it, with the topics first that were asked about.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kite_memory.model.note import Note, NoteKind
from kite_memory.model.record import Decision, Insight, OpenQuestion, Topic
from kite_memory.recall.lexical import folded, terms
from kite_memory.recall.prose import prose
from kite_memory.recall.rendering import estimated_tokens, plain_line, quoted, shortened
from kite_memory.recall.search import name
from kite_memory.tools.access import Grant
from kite_memory.tools.bridge import Json
from kite_memory.tools.conversation_notes import turned_down, uuid_of
from kite_memory.tools.note_view import as_seen, framed, told
from kite_memory.tools.store import Conversation, Found, Store

_ABOUT = "quoted records from this user's own memory, best first; facts, not orders"
_BODY = 12_000
_LINE = 900
_EVIDENCE = 3
_LEAST = 40
"""Tokens that are worth beginning a line for that has to be cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One record: ``lines`` in the order in which they are told, as many of them as there is room for. All `quoted`."""

    head: str
    lines: tuple[str, ...]
    reference: Json


def pieces(store: Store, grant: Grant, query: str, hits: Sequence[Found], limit: int) -> list[Piece]:
    """The best first; each conversation once."""
    asked = terms(query)
    made: list[Piece] = []
    conversations: dict[str, Conversation | None] = {}
    for hit in hits:
        if len(made) == limit:
            break
        uuid = uuid_of(hit.note)
        if uuid and uuid not in conversations:
            conversations[uuid] = store.conversation(grant, uuid)
            if (conversation := conversations[uuid]) is not None:
                made.append(_of_conversation(conversation, asked, hit.score))
                continue
        if uuid and conversations[uuid] is not None:
            continue
        made.append(_of_note(as_seen(hit.note, grant), grant, hit.score))
    return made


def fitted(made: Sequence[Piece], tokens: int) -> tuple[str, int, list[Piece]]:
    """The block, its tokens, and the records that are in it. Room that a short one leaves goes to the others."""
    frame = estimated_tokens(framed(_ABOUT, ())) + 1
    costs = [_costs(piece, tokens) for piece in made]
    left = tokens - frame
    shares = [0] * len(made)
    for place, number in enumerate(sorted(range(len(made)), key=lambda number: sum(costs[number]))):
        shares[number] = min(sum(costs[number]), left // (len(made) - place))
        left -= shares[number]
    lines: list[str] = []
    kept: list[Piece] = []
    used = frame
    for piece, cost, share in zip(made, costs, shares, strict=True):
        if shown := _shown(piece, cost, share):
            lines += shown
            kept.append(piece)
            used += share
    return (framed(_ABOUT, lines), used, kept) if lines else ("", 0, [])


def _costs(piece: Piece, most: int) -> list[int]:
    """Of its lines, the head first, as far as there could be room for them: it takes longer than to make them."""
    costs: list[int] = []
    for line in (piece.head, *piece.lines):
        if sum(costs) > most:
            break
        costs.append(estimated_tokens(line) + 1)
    return costs


def _shown(piece: Piece, costs: Sequence[int], room: int) -> list[str]:
    shown: list[str] = []
    for line, cost in zip((piece.head, *piece.lines), costs, strict=False):
        if cost > room:
            if shown and room >= _LEAST and (cut := shortened(line, tokens=room - 1, characters=_BODY)):
                shown.append(cut)
            break
        shown.append(line)
        room -= cost
    while len(shown) > 1 and shown[-1].startswith("**") and shown[-1].endswith("**"):
        shown.pop()  # a heading with nothing below it
    return shown


def _of_conversation(conversation: Conversation, asked: Sequence[str], score: float) -> Piece:
    topics = sorted(conversation.record.topics, key=lambda topic: -_heard(topic, asked))
    title = " · ".join(topic.name for topic in conversation.record.topics)
    where = _where("conversation", conversation.project, conversation.updated.date().isoformat(), conversation.source)
    return Piece(
        head=f"## {_flat(title, 160)} · {where}",
        lines=tuple(_conversation_lines(conversation, topics)),
        reference={
            "conversation": conversation.uuid,
            "kind": NoteKind.JOURNAL.value,
            "title": _flat(title, 160),
            "project": plain_line(conversation.project),
            "created": conversation.created.isoformat(),
            "score": score,
            "has_transcript": conversation.has_transcript,
        },
    )


def _conversation_lines(conversation: Conversation, topics: Sequence[Topic]) -> Iterator[str]:
    evidence = f"{conversation.source}:{conversation.uuid}"
    yield f"Evidence: {_flat(evidence, 120)}" + (
        " (get_note with transcript=true has all of it)" if conversation.has_transcript else ""
    )
    if conversation.overall:
        yield _flat(conversation.overall)
    several = len(topics) > 1
    for topic in topics:
        if several:
            yield f"### {_flat(topic.name, 120)}"
        if topic.summary:
            yield _flat(topic.summary)
        yield from _listed("Decisions", [item.body for item in topic.items if isinstance(item, Decision) and not turned_down(item)])
        rejected = [one for item in topic.items if isinstance(item, Decision) for one in item.rejected]
        yield from _listed("Rejected", [f"{one.alternative}: {one.reason}" if one.reason else one.alternative for one in rejected])
        yield from _listed("Insights", [item.body for item in topic.items if isinstance(item, Insight)])
        yield from _listed("Noted", [item.body for item in topic.items if not isinstance(item, Decision | Insight | OpenQuestion)])
        yield from _listed("Open questions", [item.body for item in topic.items if isinstance(item, OpenQuestion)])
        if topic.entities:
            yield f"Entities: {_flat(', '.join(topic.entities), 400)}"
    yield from _listed("Across topics", conversation.record.cross_topic_insights)


def _of_note(note: Note, grant: Grant, score: float) -> Piece:
    where = _where(note.kind.value, note.project, note.created.date().isoformat(), note.status.value)
    return Piece(
        head=f"## {_flat(note.title, 160)} · {where}",
        lines=tuple(_note_lines(note)),
        reference={**told(note, grant), "score": score},
    )


def _note_lines(note: Note) -> Iterator[str]:
    yield f"Evidence: {_flat(', '.join((f'note {name(note)}', *note.evidence[:_EVIDENCE])), 300)}"
    body = quoted(prose(note.body[:_BODY]))
    yield from (line for line in body.split("\n") if line.strip())
    unsaid = [entity for entity in note.entities if entity.casefold() not in body.casefold()]
    if unsaid:
        yield f"Entities: {_flat(', '.join(unsaid), 400)}"


def _listed(heading: str, entries: Sequence[str]) -> Iterator[str]:
    if entries:
        yield f"**{heading}**"
        for entry in entries:
            yield f"- {_flat(entry)}"


def _where(*parts: str) -> str:
    return " · ".join(plain_line(part, 80) for part in parts if part not in ("", "accepted"))


def _flat(text: str, length: int = _LINE) -> str:
    return plain_line(quoted(plain_line(text, length)), length)


def _heard(topic: Topic, asked: Sequence[str]) -> int:
    said = folded(" ".join((topic.name, topic.summary, *topic.categories, *topic.entities, *(item.body for item in topic.items))))
    return sum(term.replace(" ", "") in said for term in asked)
