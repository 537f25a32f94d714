"""Rows of a segment, checked when they come from another machine, and the versions of a note on several machines.

Of any two contents every machine chooses the same one.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, Literal, cast, get_args

import orjson

from kite_memory.model.event import Event, EventType, Role, Session, Status, Where, line_of

Clock = Mapping[str, int]
Gone = Literal["", "removed", "forgotten"]
"""Why there is no file: it was removed, or its owner has deleted the note, which is then never written again."""

PATH_KEY = "path:"
"""Beginning of the key of a file without an id, or of a copy; the rest is its path."""
NO_PATH = "gone.md"
"""Path of a forgotten note: its name may reveal its subject."""

_TICK = 0.001
_LONGEST_STEM = 120
_LONGEST_NAME_BYTES = 255
"""What file systems allow."""
_FORGETTING = 1 << 20
"""What forgetting adds to a version's ``life``: more than removing and putting back elsewhere ever does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteVersion:
    """What one machine has of a note.

    ``key`` is its id, or `PATH_KEY` and its path. ``digest`` is of the file's content, empty if it is gone. ``at`` is when the
    content was changed (Unix time), ``by`` on which machine, ``path_at`` when it was named. ``life`` counts how often it came back
    after it was gone, and in steps of `_FORGETTING` how often its owner asked to forget it. ``ours`` is whether Kite Memory wrote
    the body. ``titles`` are the digests of the titles of a forgotten note, which are not to be made again in ``project``.
    """

    key: str
    path: str
    path_at: float
    digest: str
    clock: Clock
    at: float
    by: str
    life: int = 0
    ours: bool = False
    gone: Gone = ""
    project: str = ""
    titles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """Result of merging two versions. ``beside`` is the version whose content would be lost; it is kept in a file of its own."""

    version: NoteVersion
    beside: NoteVersion | None = None


def merge(here: NoteVersion, there: NoteVersion) -> Merged:
    """Merge the version of a note known here with another machine's.

    A forgotten note stays forgotten, whatever was written elsewhere without knowing of it.
    """
    chosen, other = (here, there) if _rank(here) >= _rank(there) else (there, here)
    beside: NoteVersion | None = None
    if (chosen.digest, chosen.gone) == (other.digest, other.gone):
        chosen = replace(chosen, clock=_joined(chosen.clock, other.clock))
    elif chosen.digest and other.digest and not _holds(chosen.clock, other.clock):
        beside = other
    named = max(here, there, key=lambda each: (each.path_at, each.path))
    if not chosen.gone:
        chosen = replace(chosen, path=named.path, path_at=named.path_at)
    return Merged(version=chosen, beside=beside)


def _rank(version: NoteVersion) -> tuple[int, bool, float, str, str, str]:
    return version.life, version.gone == "forgotten", version.at, version.digest, version.gone, version.by


def _joined(one: Clock, other: Clock) -> Clock:
    return {each: max(one.get(each, 0), other.get(each, 0)) for each in sorted({*one, *other})}


def _holds(clock: Clock, other: Clock) -> bool:
    return all(clock.get(machine, 0) >= count for machine, count in other.items())


def changed(
    before: NoteVersion, *, machine: str, count: int, at: float, digest: str, gone: Gone = "", asked: bool = False
) -> NoteVersion:
    """Return the version after a change of the content on ``machine``, its ``count``-th.

    ``asked``: its owner asked to forget it, which counts for more than a file that was moved out and in elsewhere.
    """
    life = before.life + (bool(before.gone) and not gone)
    if asked:
        life = (life // _FORGETTING + 1) * _FORGETTING
    return replace(
        before,
        digest=digest,
        clock={**before.clock, machine: count},
        at=max(at, before.at + _TICK),
        by=machine,
        life=life,
        gone=gone,
    )


def renamed(before: NoteVersion, path: str, at: float) -> NoteVersion:
    return replace(before, path=path, path_at=max(at, before.path_at + _TICK))


def copy_path(version: NoteVersion) -> str:
    """Return where a content that would be lost is kept: beside the note, under the same name on every machine."""
    path = PurePosixPath(version.path)
    at = datetime.fromtimestamp(version.at, UTC)
    ending = f" (conflicted copy {version.by} {at:%Y-%m-%d %H.%M.%S}){path.suffix}"
    stem = path.stem[:_LONGEST_STEM].encode()[: max(0, _LONGEST_NAME_BYTES - len(ending.encode()))].decode(errors="ignore")
    return str(path.with_name(f"{stem}{ending}"))


Json = dict[str, Any]

MOST_TITLES = 64
"""Of a forgotten note."""
_MOST_TEXT = 6 * 1024 * 1024
_MOST_NAME = 4_096
_MOST_MACHINES = 256
_MOST_EVENTS = 10_000
_MOST_NUMBER = 2**53
_LATEST = 253_402_300_799.0
"""The last second of the year 9999."""


class Malformed(Exception):
    """Raised for a row that this program would not have written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRow:
    """A version of a note with its content; ``text`` is empty if it is gone."""

    version: NoteVersion
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsRow:
    """Events of one session that were read from one file, in order."""

    session: Session
    file: str
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenRow:
    """A line of a transcript that is no longer offered; its words are erased if ``blank``."""

    event: str
    provider: str
    session: str
    blank: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UptakeRow:
    """How often a machine has shown a note until now, and what came of it."""

    note: str
    shown: int
    used: int
    ignored: int


Row = NoteRow | EventsRow | ForgottenRow | UptakeRow

_OF_EVENTS = ("id", "ordinal", "at", "role", "type", "text", "tool", "command", "path", "status", "parent", "call")


def written(row: Row) -> bytes:
    """Return a row as one line of JSON."""
    match row:
        case NoteRow(version=version, text=text):
            content: Json = {"note": {**asdict(version), "text": text}}
        case EventsRow(session=session, file=file, events=events):
            each = [[*(getattr(event, name) for name in _OF_EVENTS), event.where.start, event.where.end] for event in events]
            content = {"events": {"session": asdict(session), "file": file, "each": each}}
        case ForgottenRow():
            content = {"forgotten": asdict(row)}
        case UptakeRow():
            content = {"uptake": asdict(row)}
    return orjson.dumps(content) + b"\n"


def parsed(line: bytes) -> Row:
    """Return the row of a line. Raises `Malformed`."""
    try:
        content = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise Malformed("not JSON") from error
    match content:
        case {"note": dict(found)}:
            return _note(found)
        case {"events": {"session": dict(session), "file": file, "each": list(each)}} if len(each) <= _MOST_EVENTS:
            return _events(session, _text(file, _MOST_NAME), each)
        case {"forgotten": dict(found)}:
            event, provider, of = (_name(found.get(name)) for name in ("event", "provider", "session"))
            return ForgottenRow(event=event, provider=provider, session=of, blank=found.get("blank") is True)
        case {"uptake": dict(found)}:
            shown, used, ignored = (_number(found.get(name)) for name in ("shown", "used", "ignored"))
            return UptakeRow(note=_name(found.get("note")), shown=shown, used=used, ignored=ignored)
        case _:
            raise Malformed("unknown kind of row")


def without_forgotten(row: Row, *, lines: frozenset[str], notes: frozenset[str]) -> Row | None:
    """Return a row without erased lines and without the content of notes that are gone; ``None`` if nothing is left."""
    match row:
        case NoteRow(version=version) if version.key in notes and not version.gone:
            return None
        case EventsRow(events=events) if any(line_of(event.id) in lines for event in events):
            kept = tuple(event for event in events if line_of(event.id) not in lines)
            return replace(row, session=replace(row.session, title=""), events=kept) if kept else None
        case _:
            return row


def _note(found: Mapping[str, Any]) -> NoteRow:
    gone = found.get("gone")
    if gone not in get_args(Gone):
        raise Malformed("unknown state of a note")
    key, path = _name(found.get("key")), note_path(found.get("path"))
    digest, text = _text(found.get("digest"), 64), _text(found.get("text"), _MOST_TEXT)
    titles = found.get("titles")
    if bool(gone) == bool(digest) or (gone and text) or not isinstance(titles, list) or len(titles) > MOST_TITLES:
        raise Malformed("a note that is neither there nor gone")
    if not gone and hashlib.sha256(text.encode()).hexdigest() != digest:
        raise Malformed("a note that is not what it says")
    if key.startswith(PATH_KEY) and key != PATH_KEY + path:
        raise Malformed("a file that is not what it is called")
    version = NoteVersion(
        key=key,
        path=path,
        path_at=_moment(found.get("path_at")),
        digest=digest,
        clock=_clock(found.get("clock")),
        at=_moment(found.get("at")),
        by=_name(found.get("by")),
        life=_number(found.get("life")),
        ours=found.get("ours") is True,
        gone=cast(Gone, gone),
        project=_text(found.get("project"), _MOST_NAME),
        titles=tuple(_text(each, 64) for each in titles),
    )
    return NoteRow(version=version, text=text)


def note_path(value: object) -> str:
    """Return the path of a markdown file inside the vault. Raises `Malformed` for any other."""
    path = _name(value)
    parts = PurePosixPath(path).parts
    hidden = any(part.startswith(".") or part != part.strip() or "\\" in part or ":" in part for part in parts)
    if path != "/".join(parts) or len(parts) > 32 or hidden or not path.lower().endswith(".md"):
        raise Malformed("a path that is no note's")
    return path


def _events(session: Mapping[str, Any], file: str, each: Iterable[object]) -> EventsRow:
    of = Session(
        id=_name(session.get("id")),
        provider=_name(session.get("provider")),
        started=_datetime(session.get("started")),
        **{name: _text(session.get(name), _MOST_NAME) for name in ("project", "cwd", "branch", "parent", "title")},
    )
    return EventsRow(session=of, file=file, events=tuple(_event(found, of, file) for found in each))


def _event(found: object, session: Session, file: str) -> Event:
    if not isinstance(found, list) or len(found) != len(_OF_EVENTS) + 2:
        raise Malformed("not an event")
    id, ordinal, at, role, type, text, tool, command, path, status, parent, call, start, end = found
    if role not in get_args(Role) or status not in get_args(Status) or type not in list(EventType):
        raise Malformed("unknown kind of event")
    return Event(
        id=_name(id),
        session=session.id,
        provider=session.provider,
        ordinal=_number(ordinal),
        at=_datetime(at),
        role=cast(Role, role),
        type=EventType(type),
        text=_text(text, _MOST_TEXT),
        where=Where(file=file, start=_number(start), end=_number(end)),
        tool=_text(tool, _MOST_NAME),
        command=_text(command, _MOST_TEXT),
        path=_text(path, _MOST_NAME),
        status=cast(Status, status),
        parent=_text(parent, _MOST_NAME),
        call=_text(call, _MOST_NAME),
    )


def _text(value: object, most: int) -> str:
    if not isinstance(value, str) or len(value) > most:
        raise Malformed("not a text, or too long")
    return value


def _name(value: object) -> str:
    found = _text(value, _MOST_NAME)
    if not found or any(ord(each) < 32 or ord(each) == 127 for each in found):
        raise Malformed("not a name")
    return found


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_NUMBER:
        raise Malformed("not a count")
    return value


def _moment(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= _LATEST:
        raise Malformed("not a time")
    return float(value)


def _datetime(value: object) -> datetime:
    try:
        at = datetime.fromisoformat(_text(value, 64))
    except ValueError as error:
        raise Malformed("not a time") from error
    if at.tzinfo is None:
        raise Malformed("not a time")
    return at


def _clock(value: object) -> Clock:
    if not isinstance(value, dict) or not 0 < len(value) <= _MOST_MACHINES:
        raise Malformed("not a clock")
    return {_name(machine): _number(count) for machine, count in value.items()}
