"""Parse a note from the text of its file, and serialize it, frontmatter and body.

Frontmatter is parsed without trust, and one property is changed without touching the rest.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, TypeVar, cast

import frontmatter
import yaml
from frontmatter import Post
from frontmatter.default_handlers import YAMLHandler

from kite_memory.model.note import KINDS, Note, NoteKind, NoteStatus, Origin, Scope
from kite_memory.text import lazy_regex
from kite_memory.vault import links
from kite_memory.vault.wording import one_line, text_block

REVIEW = "review"
"""The property that holds `Note.review`."""
MAX_BYTES = 64 * 1024
MAX_KEYS = 200
MAX_DEPTH = 8
MAX_NODES = 2_000

Property = str | list["Property"] | dict[str, "Property"] | None
"""An unconverted value: ``007``, ``yes`` and ``2026-01-01`` are the texts a person typed."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml where PyYAML has it: thirty times as fast

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_RESERVED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_NUMBERISH = lazy_regex(r"[0-9][0-9_.]*(?:[eE][0-9_.+-]*)?|0[xXoObB][0-9a-fA-F_]*|[0-9]{4}-[0-9].*")
_FIRST_LINE = lazy_regex(r"---[ \t]*\r?\n")
_LAST_LINE = lazy_regex(r"^---[ \t]*\r?$", re.MULTILINE)


class InvalidFrontmatter(ValueError):
    """Raised for frontmatter that is not parsed; its text is the reason, one of a small set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A value that YAML should read as a number or a point in time, not as text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Position of the frontmatter in a text.

    ``text[front]`` is the YAML between the fences, ``text[body:]`` what follows; ``front`` is empty without them.
    """

    text: str
    front: slice
    body: int

    @property
    def yaml(self) -> str:
        return self.text[self.front]


class PropertiesHandler(YAMLHandler):
    """A handler for python-frontmatter that is safe for untrusted files.

    Refuses anchors, aliases, tags, deep nesting and excessive size while the parser is still running, so a YAML bomb costs only
    what was read of it. Values stay texts; nothing is ever constructed from YAML's own types.
    """

    def detect(self, text: str) -> bool:
        return bool(sheet_of(text).body)

    def split(self, text: str) -> tuple[str, str]:
        sheet = sheet_of(text)
        if not sheet.body:
            raise ValueError("no frontmatter")
        return sheet.yaml, text[sheet.body :]

    def load(self, fm: str, **kwargs: object) -> dict[str, Property]:
        return load(fm)

    def export(self, metadata: Mapping[str, object], **kwargs: object) -> str:
        return "\n".join(entry(key, value) for key, value in metadata.items())

    def format(self, post: Post, **kwargs: object) -> str:
        """Serialize without the blank line of python-frontmatter's template, and with a line break at the end."""
        return f"---\n{self.export(post.metadata)}\n---\n" + (f"{post.content}\n" if post.content else "")


HANDLER = PropertiesHandler()


def sheet_of(text: str) -> Sheet:
    """Find the fences, as Obsidian does: ``---`` alone on the first line and on a later one. Never fails."""
    start = 1 if text.startswith("\ufeff") else 0
    first = _FIRST_LINE.match(text, start)
    last = _LAST_LINE.search(text, first.end()) if first else None
    if first is None or last is None:
        return Sheet(text=text, front=slice(0, 0), body=0)
    return Sheet(text=text, front=slice(first.end(), last.start()), body=min(last.end() + 1, len(text)))


def load(front: str, *, loader: Any = _Loader) -> dict[str, Property]:
    """Parse frontmatter. A property given twice has its last value. Raises `InvalidFrontmatter`."""
    return _walk(front, loader).values


def entry(key: str, value: object) -> str:
    """Return one property as a line, without its line break."""
    match value:
        case Raw(text=text):
            return f"{key}: {text}"
        case str():
            return f"{key}: {scalar(value)}"
        case list() | tuple():
            return f"{key}: [{', '.join(scalar(str(one), in_list=True) for one in value)}]"
        case _:
            raise TypeError(f"no way to write {type(value).__name__} as a property")


def scalar(text: str, *, in_list: bool = False) -> str:
    """Return a text as YAML: plain where every YAML version reads the same string; else in double quotes."""
    text = one_line(text)
    return text if _is_plain(text, in_list=in_list) else _quoted(text)


def moment(at: datetime) -> Raw:
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return Raw(text=at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0"))


def with_properties(text: str, changes: Mapping[str, object]) -> str | None:
    """Return the file's text with these properties set; every other character stays.

    Returns ``None`` where that cannot be done safely: the result is read back, and refused if anything but the named properties has
    changed.
    """
    sheet = sheet_of(text)
    if not sheet.body:
        if text.startswith("---"):  # unclosed frontmatter: text put before it would become part of it
            return None
        return "---\n" + "".join(entry(key, value) + "\n" for key, value in changes.items()) + "---\n" + text
    front = sheet.yaml
    try:
        walked = _walk(front)
    except InvalidFrontmatter:
        return None
    if not walked.block:
        return None
    newline = "\r\n" if "\r\n" in text[: sheet.body] else "\n"
    pieces: list[str] = []
    done = 0
    for key, (start, end) in sorted(walked.spans.items(), key=lambda item: item[1]):
        if key in changes:
            pieces += [front[done:start], entry(key, changes[key]), newline]
            done = end
    pieces.append(front[done:])
    pieces += [entry(key, value) + newline for key, value in changes.items() if key not in walked.spans]
    changed = "".join(pieces)
    expected = walked.values | {key: _as_read(value) for key, value in changes.items()}
    try:
        if _walk(changed).values != expected:
            return None
    except InvalidFrontmatter:
        return None
    return text[: sheet.front.start] + changed + text[sheet.front.stop :]


def _as_read(value: object) -> Property:
    match value:
        case Raw(text=text):
            return text
        case list() | tuple():
            return [one_line(str(one)) for one in value]
        case _:
            return one_line(str(value))


_PLAIN_IN_LIST = dict.fromkeys(map(ord, " _./+-()'"))
_PLAIN = _PLAIN_IN_LIST | {ord(","): None}


def _is_plain(text: str, *, in_list: bool) -> bool:
    if not text or text.casefold() in _RESERVED:
        return False
    if not (text[0].isalpha() or (text[0].isascii() and text[0].isdigit())) or _NUMBERISH.fullmatch(text):
        return False
    others = text.translate(_PLAIN_IN_LIST if in_list else _PLAIN)
    return not others or others.isalnum()


def _quoted(text: str) -> str:
    """Return the text in double quotes, with template commands escaped so that no template plugin runs them."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("<%", "\\x3C%") + '"'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walked:
    """Result of parsing frontmatter.

    ``spans`` are the positions of the top-level properties, whole lines; only a ``block`` mapping can be changed.
    """

    values: dict[str, Property]
    spans: dict[str, tuple[int, int]]
    block: bool


class _Open:
    """A mapping or a list whose end has not been reached yet."""

    __slots__ = ("_key", "holds", "key_start")

    def __init__(self, holds: dict[str, Property] | list[Property]) -> None:
        self.holds = holds
        self.key_start = 0
        self._key: str | None = None

    @property
    def awaits_name(self) -> bool:
        return isinstance(self.holds, dict) and self._key is None

    def take(self, value: Property, start: int) -> str | None:
        """Add the next value; return the key of the entry that it completes in a mapping."""
        if isinstance(self.holds, list):
            self.holds.append(value)
            return None
        if self._key is None:
            if isinstance(value, list | dict):
                raise InvalidFrontmatter("frontmatter with a name that is not text")
            self._key, self.key_start = value or "", start
            return None
        key, self._key = self._key, None
        self.holds[key] = value
        return key


def _walk(front: str, loader: Any = _Loader) -> _Walked:
    if len(front) > MAX_BYTES or len(front.encode("utf-8", "replace")) > MAX_BYTES:
        raise InvalidFrontmatter("frontmatter larger than 64 kB")
    try:
        return _walk_events(front, yaml.parse(front, Loader=loader))
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise InvalidFrontmatter("frontmatter is not YAML") from error


def _walk_events(front: str, events: Iterable[yaml.Event]) -> _Walked:
    top: dict[str, Property] = {}
    spans: dict[str, tuple[int, int]] = {}
    stack: list[_Open] = []
    block = True
    roots = nodes = end = 0
    for event in events:
        nodes += 1
        if nodes > MAX_NODES:
            raise InvalidFrontmatter("frontmatter with too many values")
        value: Property
        marked: Any = event  # each event of a parsed text has both marks
        match event:
            case yaml.AliasEvent():
                raise InvalidFrontmatter("frontmatter with an alias")
            case yaml.ScalarEvent(anchor=str()) | yaml.CollectionStartEvent(anchor=str()):
                raise InvalidFrontmatter("frontmatter with an anchor")
            case yaml.ScalarEvent(tag=str()) | yaml.CollectionStartEvent(tag=str()):
                raise InvalidFrontmatter("frontmatter with a tag")
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                if len(stack) >= MAX_DEPTH:
                    raise InvalidFrontmatter("frontmatter nested too deeply")
                mapping = isinstance(event, yaml.MappingStartEvent)
                if not stack:
                    roots += 1
                    if not mapping or roots > 1:
                        raise InvalidFrontmatter("frontmatter is not a list of properties")
                    block = not event.flow_style
                stack.append(_Open((top if not stack else {}) if mapping else []))
                continue
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                value = stack.pop().holds
                if marked.end_mark.index > marked.start_mark.index:  # a bracket; blocks end where the next thing begins
                    end = marked.end_mark.index
            case yaml.ScalarEvent():
                named = bool(stack) and stack[-1].awaits_name
                value = None if event.style in (None, "") and event.value in _NULL and not named else str(event.value)
                end = marked.end_mark.index
                if not stack and value is not None:
                    raise InvalidFrontmatter("frontmatter is not a list of properties")
            case _:
                continue
        if not stack:
            continue
        key = stack[-1].take(value, marked.start_mark.index)
        if len(stack) == 1 and key is not None:
            spans[key] = (stack[0].key_start, _end_of_line(front, end))
            if len(top) > MAX_KEYS:
                raise InvalidFrontmatter("frontmatter with more than 200 properties")
    return _Walked(values=top, spans=spans, block=block)


def _end_of_line(front: str, end: int) -> int:
    if end and front[end - 1] == "\n":  # a text block has already taken its last line break
        return end
    newline = front.find("\n", end)
    return len(front) if newline < 0 else newline + 1


FOLDERS: Mapping[NoteKind, str] = {kind: each.folder for kind, each in KINDS.items()}

_KINDS = {
    "decisions": NoteKind.DECISION,
    "topics": NoteKind.INSIGHT,
    "people": NoteKind.PREFERENCE,
    "ideas": NoteKind.QUESTION,
    "journals": NoteKind.JOURNAL,
}
_HEADING = lazy_regex(r"^#{1,6}[ \t]+([^ \t\n][^\n]*)", re.MULTILINE)
_OPENING = 10_000
"""Number of characters at the beginning of a note in which its heading is searched."""
_SHORT = 8_000
_DATE = lazy_regex(r"(\d{4})-(\d{1,2})-(\d{1,2})")


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
        fenced = HANDLER.detect(text)
        given = cast(dict[str, Property], frontmatter.parse(text, handler=HANDLER)[0]) if fenced else {}
    except InvalidFrontmatter as refused:
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
        review=_text(given.get(REVIEW)),
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
    post = frontmatter.Post(text_block(note.body), HANDLER)
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
        REVIEW: note.review,
        "origin": note.origin,
        "tags": list(note.tags),
        "aliases": list(note.aliases),
        "entities": list(note.entities),
        "triggers": list(note.triggers),
        "created": moment(note.created),
        "valid_from": moment(note.valid_from) if note.valid_from else "",
        "valid_until": moment(note.valid_until) if note.valid_until else "",
        "expires": moment(note.expires) if note.expires else "",
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
    return text[sheet_of(text).body :]


def with_body(text: str, body: str) -> str:
    """Return the file's text with ``body`` in place of what follows the frontmatter, which stays as it is."""
    return text[: sheet_of(text).body] + body


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
