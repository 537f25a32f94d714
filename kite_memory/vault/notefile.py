"""Parse a note from the text of its file, and serialize it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TypeVar, cast

import frontmatter

from kite_memory.model.note import Note, NoteKind, NoteStatus, Scope
from kite_memory.model.record import Origin
from kite_memory.vault import links, properties
from kite_memory.vault.properties import Property, Raw
from kite_memory.vault.wording import one_line, text_block

FOLDERS: Mapping[NoteKind, str] = {
    NoteKind.DECISION: "decisions",
    NoteKind.INSIGHT: "topics",
    NoteKind.ENTITY: "topics",
    NoteKind.FACT: "projects",
    NoteKind.PREFERENCE: "people",
    NoteKind.QUESTION: "ideas",
    NoteKind.JOURNAL: "journals",
}

_KINDS = {
    "decisions": NoteKind.DECISION,
    "topics": NoteKind.INSIGHT,
    "people": NoteKind.PREFERENCE,
    "ideas": NoteKind.QUESTION,
    "journals": NoteKind.JOURNAL,
}
_HEADING = re.compile(r"^#{1,6}[ \t]+([^ \t\n][^\n]*)", re.MULTILINE)
_OPENING = 10_000
"""Number of characters at the beginning of a note in which its heading is searched."""
_SHORT = 8_000
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableNote:
    """A file that we leave exactly as it is. ``body`` is what could be separated from the frontmatter, for display."""

    path: str
    reason: str
    body: str = ""


def parse(text: str, path: str, *, created: datetime, updated: datetime) -> Note | UnreadableNote:
    """Parse a note; ``created`` and ``updated`` are used where it does not give them.

    A property with an unexpected value is ignored. Only frontmatter as a whole can be unreadable.
    """
    return (_parsed_lately if len(text) <= _SHORT else _parsed)(text, path, created, updated)


def _parsed(text: str, path: str, created: datetime, updated: datetime) -> Note | UnreadableNote:
    body = text_block(body_of(text))
    try:
        # Only what begins with a fence: python-frontmatter also accepts one after blank lines, where Obsidian does not.
        fenced = properties.HANDLER.detect(text)
        given = cast(dict[str, Property], frontmatter.parse(text, handler=properties.HANDLER)[0]) if fenced else {}
    except properties.InvalidFrontmatter as refused:
        return UnreadableNote(path=path, reason=str(refused), body=body)
    place = PurePosixPath(path)
    project = _text(given.get("project"))
    identity = _text(given.get("id"))
    heading = _HEADING.search(body, 0, _OPENING)
    return Note(
        id=identity,
        path=path,
        kind=_choice(NoteKind, given.get("kind"), _KINDS.get(place.parts[0], NoteKind.FACT)),
        title=_text(given.get("title")) or (one_line(heading[1].rstrip(" \t#")) if heading else "") or place.stem,
        body=body,
        created=_moment(given.get("created"), created),
        updated=_moment(given.get("updated"), updated),
        links=links.targets(body),
        aliases=_texts(given.get("aliases", given.get("alias"))),
        tags=_tags(given.get("tags", given.get("tag"))),
        triggers=_texts(given.get("triggers")),
        entities=_texts(given.get("entities")),
        scope=_choice(Scope, given.get("scope"), Scope.PROJECT if project else Scope.GLOBAL),
        project=project,
        session=_text(given.get("session")),
        key=_text(given.get("key")),
        valid_from=_moment_or_none(given.get("valid_from")),
        expires=_end(given.get("expires")),
        supersedes=tuple(filter(None, map(_link_target, _texts(given.get("supersedes"))))),
        superseded_by=next(iter(map(_link_target, _texts(given.get("superseded_by")))), ""),
        conflicts=tuple(filter(None, map(_link_target, _texts(given.get("conflicts"))))),
        valid_until=_moment_or_none(given.get("valid_until")),
        anchors=_texts(given.get("anchors")),
        drifted=_moment_or_none(given.get("drifted")),
        branch=_text(given.get("branch")),
        review=_text(given.get("review")),
        status=_choice(NoteStatus, given.get("status"), NoteStatus.ACCEPTED),
        evidence=_texts(given.get("evidence")),
        origin=_origin(given.get("origin"), "assistant" if identity else "user"),
        importance=_importance(given.get("importance")),
    )


_parsed_lately = lru_cache(maxsize=256)(_parsed)
"""A note is parsed before a write, after it, and for the index."""


def render(note: Note) -> str:
    """Return the file text of a new note.

    ``updated`` and ``links`` are not written: they follow from the file's time and its body.
    """
    post = frontmatter.Post(text_block(note.body), properties.HANDLER)
    post.metadata = written_properties(note)
    return frontmatter.dumps(post)


def written_properties(note: Note) -> dict[str, object]:
    """Return a note's frontmatter, in the order in which it is written. Empty properties are omitted."""
    everything: dict[str, object] = {
        "id": note.id,
        "kind": note.kind.value,
        "title": note.title,
        "project": note.project,
        "branch": note.branch,
        "session": note.session,
        "key": note.key,
        "scope": note.scope.value,
        "status": note.status.value,
        "review": note.review,
        "origin": note.origin,
        "tags": list(note.tags),
        "aliases": list(note.aliases),
        "entities": list(note.entities),
        "triggers": list(note.triggers),
        "created": properties.moment(note.created),
        "valid_from": properties.moment(note.valid_from) if note.valid_from else "",
        "valid_until": properties.moment(note.valid_until) if note.valid_until else "",
        "expires": properties.moment(note.expires) if note.expires else "",
        "drifted": f"{note.drifted:%Y-%m-%d}" if note.drifted else "",
        "importance": Raw(text=str(note.importance)),
        "evidence": list(note.evidence),
        "anchors": list(note.anchors),
        "supersedes": [f"[[{target}]]" for target in note.supersedes],
        "superseded_by": f"[[{note.superseded_by}]]" if note.superseded_by else "",
        "conflicts": [f"[[{target}]]" for target in note.conflicts],
    }
    return {key: value for key, value in everything.items() if value not in ("", [])}


def body_of(text: str) -> str:
    """Return what follows the frontmatter, exactly as it is in the file."""
    return text[properties.sheet_of(text).body :]


def with_addition(text: str, addition: str) -> str:
    """Return the file's text with a paragraph added at its end; every character before it stays."""
    newline = "\r\n" if "\r\n" in text else "\n"
    addition = text_block(addition).replace("\n", newline)
    if not addition:
        return text
    if not body_of(text).strip():
        return text + ("" if text.endswith("\n") or not text else newline) + addition + newline
    kept = text if text.endswith("\n") else text + newline
    return kept + ("" if kept.endswith(newline * 2) else newline) + addition + newline


def _text(value: Property) -> str:
    return one_line(value) if isinstance(value, str) else ""


def _texts(value: Property) -> tuple[str, ...]:
    """Return a list of texts; a single text is a list of one, and ``[[a link]]`` that lacks its quotes is still a link."""
    match value:
        case str():
            return (one_line(value),) if value.strip() else ()
        case list():
            return tuple(text for one in value for text in _texts(one))
        case _:
            return ()


def _tags(value: Property) -> tuple[str, ...]:
    parts: Iterable[str] = re.split(r"[,\s]+", value) if isinstance(value, str) else _texts(value)
    return tuple(tag for part in parts if (tag := part.strip().removeprefix("#")))


_Choice = TypeVar("_Choice", bound=StrEnum)


def _choice(kinds: type[_Choice], value: Property, default: _Choice) -> _Choice:
    try:
        return kinds(_text(value).casefold())
    except ValueError:
        return default


def _origin(value: Property, default: Origin) -> Origin:
    match _text(value).casefold():
        case "user" | "assistant" | "tool" as origin:
            return origin
        case _:
            return default


def _importance(value: Property) -> int:
    text = _text(value)
    return min(max(int(text), 1), 3) if re.fullmatch(r"-?[0-9]{1,4}", text) else 2


def _link_target(text: str) -> str:
    inner = text.removeprefix("[[").removesuffix("]]")
    return links.target_of(inner)


def _moment(value: Property, default: datetime) -> datetime:
    return _moment_or_none(value) or default


def _end(value: Property) -> datetime | None:
    """Return when a note expires. A date alone means the end of that day, in local time."""
    at, text = _moment_or_none(value), _text(value)
    if at is None or not _DATE.fullmatch(text):
        return at
    try:
        return (datetime.combine(at.date(), time()) + timedelta(days=1)).astimezone(UTC)
    except (OverflowError, OSError, ValueError):
        return at


def _moment_or_none(value: Property) -> datetime | None:
    """Return a point in time from any of the usual notations; without a zone it is UTC."""
    text = _text(value)
    if not text or len(text) > 40:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        found = _DATE.match(text)
        if found is None:
            return None
        try:
            at = datetime.combine(date(int(found[1]), int(found[2]), int(found[3])), time())
        except ValueError:
            return None
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError:
        return None
