"""Turn extracted records into drafts of notes, without regard to what the vault already holds, and divide a note at its headings.

A division rewords nothing and leaves nothing out.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import assert_never

from kite_memory.errors import UsageError
from kite_memory.model.event import evidence_reference
from kite_memory.model.note import (
    PERSON,
    Change,
    Chunk,
    Decision,
    Fact,
    Insight,
    Note,
    NoteKind,
    NoteStatus,
    OpenQuestion,
    Origin,
    Preference,
    Record,
    RecordItem,
    Rejected,
    Scope,
)
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip
from kite_memory.vault import links
from kite_memory.vault.links import RELATED, related, tame, tame_code, tame_line, tame_name, titled
from kite_memory.vault.notefile import FOLDERS, REVIEW, with_body, with_properties
from kite_memory.vault.wording import digest, entity_key, note_id, note_stem, one_line, text_block, without_hidden

_MAX_TITLE = 160
_MAX_BODY = 12_000
_MAX_LINE = 400
_MAX_ENTITIES = 12
_MAX_TRIGGERS = 8
_MAX_TAGS = 6
_MAX_SIBLINGS = 4
_MAX_EVIDENCE = 12
_MAX_REMEMBERED = 200_000

_DESCRIBES = lazy_regex(r"(?:(?:the|an?|its|their|our|my|your)|[a-z]+(?:ing|ly))\s")
"""How a rejected alternative begins that is a description and no name."""
_CODE_LIKE = lazy_regex(r"[<>*_\[\]{}|\\$#~]")


_TAGGED_LENGTH, _MAX_AREAS = 600, 2
_AREAS = {
    area: lazy_regex(rf"\b(?:{words})\b", re.IGNORECASE)
    for area, words in {
        "api": r"api|endpoints?|rest|graphql|grpc|http|requests?|routes?|webhooks?",
        "auth": r"auth\w*|log ?in|oauth|jwt|tokens?|sessions? cookies?|passwords?|permissions?|credentials?",
        "build": r"build|builds|bundl\w+|compil\w+|packag\w+|dependenc\w+|lockfile|npm|pnpm|cargo|webpack|vite",
        "ci": r"ci|pipelines?|github actions|workflows?|runners?",
        "data": r"database|postgres\w*|sqlite|mysql|redis|sql|migrations?|schema|quer(?:y|ies)|tables?|index(?:es)?",
        "deploy": r"deploy\w*|releas\w+|docker|kubernetes|k8s|helm|terraform|rollback|staging|production",
        "docs": r"docs?|documentation|readme|changelog|comments?",
        "git": r"git|branch(?:es)?|commits?|merge[sd]?|rebase|pull requests?",
        "performance": r"performance|slow|fast|latency|memory|cache[sd]?|caching|timeouts?",
        "security": r"secur\w+|secrets?|encrypt\w+|vulnerab\w+|xss|csrf",
        "style": r"style|naming|lint\w*|format\w*|types?|typing|indent\w*",
        "testing": r"tests?|testing|pytest|jest|vitest|fixtures?|mocks?|e2e",
        "ui": r"ui|ux|components?|buttons?|pages?|css|layout|modal|frontend|react|vue|svelte",
    }.items()
}
"""Patterns for tags of a note that no model has tagged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    name: str
    person: bool = False

    @property
    def key(self) -> str:
        return entity_key(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A note that does not know of others yet: ``note.body`` is its text without links, ``note.path`` where it would be written.

    ``siblings`` are the ids of the earlier notes of its topic that are nearest to it. ``change`` is what it does to another.
    """

    note: Note
    rejected: tuple[Rejected, ...] = ()
    entities: tuple[Entity, ...] = ()
    siblings: tuple[str, ...] = ()
    change: Change | None = None


def draft(record: Record, chunk: Chunk) -> list[Draft]:
    """Return one draft for each item, in the record's order.

    Ids depend only on the chunk and the item's place, so that drafting again, or from an answer worded differently, names the same
    notes. `Record.cross_topic_insights` rest on no evidence and are not made into notes.
    """
    ended = chunk.events[-1].at if chunk.events else chunk.session.started
    times = {event.id: event.at for event in chunk.events}
    drafts: list[Draft] = []
    index = 0
    for topic in record.topics:
        siblings: list[Draft] = []
        tags = tags_of(topic.categories)
        for item in topic.items:
            made = _draft(item, chunk, index, tags, times, ended)
            made = replace(made, siblings=tuple(near.note.id for near in _nearest(made, siblings)))
            drafts.append(made)
            siblings.append(made)
            index += 1
    return drafts


def draft_id(chunk: Chunk, index: int) -> str:
    """Return the id of the note that is made of a record's item, by the item's place in the record."""
    ended = chunk.events[-1].at if chunk.events else chunk.session.started
    return note_id(ended, chunk.id, str(index))


def _nearest(draft: Draft, siblings: Sequence[Draft]) -> list[Draft]:
    """Return the earlier drafts of a topic that share most entities, the latest first among equals; in their original order.

    Otherwise a session of a single topic would link each of its notes to all of the others.
    """
    of = {entity.key for entity in draft.entities}
    shared = [sum(entity.key in of for entity in one.entities) for one in siblings]
    nearest = sorted(range(len(siblings)), key=lambda at: (-shared[at], -at))[:_MAX_SIBLINGS]
    return [siblings[at] for at in sorted(nearest)]


def _draft(
    item: RecordItem,
    chunk: Chunk,
    index: int,
    tags: tuple[str, ...],
    times: dict[str, datetime],
    ended: datetime,
) -> Draft:
    everywhere = isinstance(item, Preference) and item.everywhere
    rejected = tuple(item.rejected if isinstance(item, Decision) else ())
    turned_down = (one.alternative for one in rejected if _is_name(one.alternative) and not _DESCRIBES.match(one.alternative))
    entities = entities_of((*item.entities, *turned_down))
    body = tame(item.body, _MAX_BODY)
    if isinstance(item, Insight) and item.symptom.strip():
        body = text_block(f"{body}\n\n**Symptom:** {_verbatim(item.symptom)}")
    title = title_of(item.title, body)
    at = max((times[event] for event in item.evidence if event in times), default=ended)
    kind = kind_of(item)
    return Draft(
        note=Note(
            id=draft_id(chunk, index),
            path=f"{FOLDERS[kind]}/{note_stem(title, at)}.md",
            kind=kind,
            title=title,
            body=body,
            created=at,
            updated=at,
            aliases=(title,),
            tags=tags or areas_of(f"{title}\n{body[:_TAGGED_LENGTH]}"),
            triggers=tuple(dict.fromkeys(line for one in item.triggers if (line := tame_name(one))))[:_MAX_TRIGGERS],
            entities=tuple(entity.name for entity in entities),
            scope=Scope.GLOBAL if everywhere else Scope.PROJECT,
            project="" if everywhere else one_line(chunk.session.project),
            status=NoteStatus.PROPOSED if _waits(item.origin, everywhere=everywhere) or item.doubt else NoteStatus.ACCEPTED,
            evidence=tuple(
                dict.fromkeys(evidence_reference(chunk.session.provider, chunk.session.id, event) for event in item.evidence)
            )[:_MAX_EVIDENCE],
            origin=item.origin,
            importance=min(max(item.importance, 1), 3),
        ),
        rejected=tuple(Rejected(alternative=tame_line(one.alternative), reason=tame_line(one.reason)) for one in rejected),
        entities=entities,
        change=item.change,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Memo:
    """A request to keep something as a note.

    Without ``scope`` the note gets the project's scope if a project is given, else the global one.
    """

    text: str
    kind: NoteKind = NoteKind.FACT
    title: str = ""
    project: str = ""
    scope: Scope | None = None
    session: str = ""
    tags: Sequence[str] = ()
    origin: Origin = "user"
    evidence: Sequence[str] = ()
    importance: int = 2
    expires: datetime | None = None


def remembered(memo: Memo, at: datetime) -> Note:
    """Return a note that was asked for explicitly.

    A person's own words stay as they are; all others are made harmless as markdown. Raises `UsageError` for an empty or too long
    text.
    """
    body = text_block(memo.text) if memo.origin == "user" else tame(memo.text)
    if not body:
        raise UsageError("there is nothing to remember", hint="give the text of the note")
    if len(body) > _MAX_REMEMBERED:
        raise UsageError("this is too long for a note", hint="put it into a file, and remember where it is")
    title = title_of(memo.title, body)
    scope = memo.scope or (Scope.PROJECT if memo.project else Scope.GLOBAL)
    waits = _waits(memo.origin, everywhere=applies_everywhere(scope, memo.project))
    return Note(
        id=note_id(at, "remembered", scope.value, memo.project, memo.kind.value, "", body),
        path=f"{FOLDERS[memo.kind]}/{note_stem(title, at)}.md",
        kind=memo.kind,
        title=title,
        body=body,
        created=at,
        updated=at,
        aliases=(title,),
        tags=tags_of(memo.tags),
        scope=scope,
        project="" if scope is Scope.GLOBAL else one_line(memo.project),
        session=one_line(memo.session),
        expires=memo.expires,
        status=NoteStatus.PROPOSED if waits else NoteStatus.ACCEPTED,
        evidence=tuple(map(one_line, memo.evidence))[:_MAX_EVIDENCE],
        origin=memo.origin,
        importance=min(max(memo.importance, 1), 3),
    )


def applies_everywhere(scope: Scope, project: str) -> bool:
    """Return whether a note in this place would be shown in every project."""
    return scope is Scope.GLOBAL or (scope is Scope.SHARED and not project)


def _waits(origin: Origin, *, everywhere: bool) -> bool:
    """Return whether a person must review it: what a tool wrote, and what would hold in every project and is not the person's."""
    return origin == "tool" or (everywhere and origin != "user")


def kind_of(item: RecordItem) -> NoteKind:
    match item:
        case Decision():
            return NoteKind.DECISION
        case Insight():
            return NoteKind.INSIGHT
        case Fact():
            return NoteKind.FACT
        case Preference():
            return NoteKind.PREFERENCE
        case OpenQuestion():
            return NoteKind.QUESTION
        case _:
            assert_never(item)


_LINE_MARK = re.compile(r"\A\s*(?:(?:[#*-]{1,6}|>+)\s+|>+)*")
"""Mark of a heading, an item or a quotation; what begins with such a sign otherwise is a name."""


def title_of(title: str, body: str) -> str:
    """Return the title in one line, or the first line of the text if the title is empty."""
    first = next((line for line in body.splitlines() if line.strip()), "")
    return tame_name(title, _MAX_TITLE) or tame_name(_LINE_MARK.sub("", first), _MAX_TITLE) or "Untitled"


def tags_of(categories: Iterable[str]) -> tuple[str, ...]:
    """Return categories as Obsidian tags: one word, not only digits, nested by ``/``."""
    tags = ("/".join(filter(None, (part.strip("-_") for part in _words(category).split("/"))))[:40] for category in categories)
    kept = (tag.rstrip("-/_") for tag in tags)
    return tuple(dict.fromkeys(tag for tag in kept if tag and not tag.replace("/", "").isdigit()))[:_MAX_TAGS]


def areas_of(text: str) -> tuple[str, ...]:
    """Return tags for an untagged text: the areas of work that it mentions most."""
    found = {area: len(pattern.findall(text)) for area, pattern in _AREAS.items()}
    areas = sorted((area for area, count in found.items() if count), key=lambda area: (-found[area], area))
    return tuple(areas[:_MAX_AREAS])


def _words(category: str) -> str:
    return re.sub(r"[^\w/]+", "-", tame_name(category).casefold())


def entities_of(names: Iterable[str]) -> tuple[Entity, ...]:
    """Return each entity once, in order; what is too long or has no letter is no name."""
    found: dict[str, Entity] = {}
    for name in names:
        person = name.strip().casefold().startswith(PERSON)
        clean = tame_name(name.strip()[len(PERSON) :] if person else name).strip(" `'\"")
        entity = Entity(name=clean, person=person)
        if _is_name(clean) and len(entity.key) > 1:
            found.setdefault(entity.key, entity)
    return tuple(found.values())[:_MAX_ENTITIES]


def _verbatim(symptom: str) -> str:
    """Return an error message as it is; as code where it would be read as markdown otherwise."""
    line = tame_code(clip(one_line(without_hidden(symptom)), 2 * _MAX_LINE))
    if not _CODE_LIKE.search(line):
        return tame_line(line)
    ticks = "`" * (max((len(run) for run in re.findall(r"`+", line)), default=0) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def _is_name(text: str) -> bool:
    text = one_line(text)
    return 0 < len(text) <= 60 and len(text.split()) <= 4 and any(char.isalpha() for char in text)


_HEADING = lazy_regex(r"(#{1,5})[ \t]+(\S.*)")
_MOST_PARTS = 40
_PART_TITLE = 90
_CLEAR_WORDS = 3
"""Words of a heading that is clear by itself."""
_LEAST_OF_WHOLE = 12
"""Minimum characters of the whole's title that are shown; fewer are of no use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotePart:
    heading: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """A note taken apart.

    ``opening`` is all that stands above the parts, ``closing`` what stands below them and is about the whole.
    """

    opening: str
    parts: tuple[NotePart, ...]
    closing: str = ""


def division(body: str) -> Division | None:
    """Split a body at the highest level with several headings; ``None`` without such a level, or with too many headings.

    A heading with nothing below it begins no note: it stays with what stands before it.
    """
    lines = body.split("\n")
    headings = [(at, found) for at in _outside_code(body) if (found := _HEADING.fullmatch(lines[at]))]
    levels = Counter(len(found[1]) for _, found in headings)
    level = next((each for each in sorted(levels) if levels[each] > 1), None)
    if level is None:
        return None
    starts = [(at, _unclosed(found[2])) for at, found in headings if len(found[1]) == level]
    ends = [*(at for at, _ in starts[1:]), len(lines)]
    said = [(at, title, end) for (at, title), end in zip(starts, ends, strict=True) if "".join(lines[at + 1 : end]).strip()]
    if not 1 < len(said) <= _MOST_PARTS:
        return None
    last = said[-1][0] + 1 + _closing_at(lines[said[-1][0] + 1 :])
    ends = [*(at for at, _, _ in said[1:]), last]
    parts = tuple(
        NotePart(heading=one_line(title), text=text_block("\n".join(lines[at + 1 : end])))
        for (at, title, _), end in zip(said, ends, strict=True)
    )
    if not all(part.text for part in parts):
        return None
    opening = text_block("\n".join(lines[: said[0][0]]))
    return Division(opening=opening, parts=parts, closing=text_block("\n".join(lines[last:])))


def part_notes(whole: Note, divided: Division) -> list[Note]:
    """Return one note for each part, with the properties of the whole and a link back to it.

    Its text stays to the letter; so does a heading that its title does not hold in full.
    """
    stem = PurePosixPath(whole.path).stem
    back = related([links.write(stem)] if links.holds(stem) else [])
    made: list[Note] = []
    for number, part in enumerate(divided.parts):
        title = _part_title(whole.title, one_line(links.unlinked(part.heading)))
        heading = "" if part.heading in title else f"# {part.heading}"
        body = links.ExistingText("\n\n".join(filter(None, (heading, part.text, back))))
        spoken = entity_key(f"{part.heading} {part.text}")
        made.append(
            replace(
                whole,
                id=note_id(whole.created, "part", whole.id or whole.path, str(number), part.heading, digest(part.text)),
                path=f"{FOLDERS[whole.kind]}/{note_stem(title, whole.created)}.md",
                title=title,
                body=body,
                links=links.targets(body),
                aliases=(),
                triggers=(),
                entities=tuple(each for each in whole.entities if entity_key(each) in spoken),
                supersedes=(),
                review="",
                status=NoteStatus.ACCEPTED,
            )
        )
    return made


def _part_title(whole: str, heading: str) -> str:
    """Return a part's title: its heading, with the whole's title in front where the heading is too short."""
    room = _PART_TITLE - len(heading) - len(": ")
    if len(heading.split()) >= _CLEAR_WORDS or room < min(len(whole), _LEAST_OF_WHOLE):
        return clip(heading, _PART_TITLE)
    return f"{clip(whole, room)}: {heading}"


def remainder(text: str, divided: Division, made: Sequence[Note]) -> str:
    """Return the whole's new text, which links to its parts; empty where it cannot be changed safely."""
    changed = with_properties(text, {REVIEW: ""})
    if changed is None:
        return ""
    listed = "\n".join(f"- {titled(PurePosixPath(each.path).stem, each.title)}" for each in made)
    body = "\n\n".join(filter(None, (divided.opening, listed, divided.closing)))
    return with_body(changed, f"{body}\n")


def _unclosed(heading: str) -> str:
    """Return a heading without closing marks, which stand apart from its words: those of C# do not."""
    words = heading.rstrip().rstrip("#")
    return words.rstrip() if words.endswith((" ", "\t")) else heading.rstrip()


def _closing_at(lines: Sequence[str]) -> int:
    """Return where the lines of links at the very end begin, which do not belong to the last part."""
    at = len(lines)
    while at and (not lines[at - 1].strip() or lines[at - 1].startswith(RELATED)):
        at -= 1
    return at


def _outside_code(body: str) -> Iterator[int]:
    """Yield the numbers of the lines that begin outside of code."""
    stretches = list(links.note_prose(body))
    place = at = 0
    for number, line in enumerate(body.split("\n")):
        while place < len(stretches) and stretches[place][1] <= at:
            place += 1
        if place < len(stretches) and stretches[place][0] <= at:
            yield number
        at += len(line) + 1
