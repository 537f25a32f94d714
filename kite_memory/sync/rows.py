"""Rows of a segment: their JSON form, and the check of what comes from another machine."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, cast, get_args

import orjson

from kite_memory.model.event import Event, EventType, Role, Session, Status, Where
from kite_memory.sync.versions import PATH_KEY, Clock, Gone, NoteVersion

Json = dict[str, Any]

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


def line_of(event: str) -> str:
    """Return the id that all events of one transcript line share."""
    line, colon, number = event.rpartition(":")
    return line if colon and number.isdecimal() else event


def _note(found: Mapping[str, Any]) -> NoteRow:
    gone = found.get("gone")
    if gone not in get_args(Gone):
        raise Malformed("unknown state of a note")
    key, path = _name(found.get("key")), note_path(found.get("path"))
    digest, text = _text(found.get("digest"), 64), _text(found.get("text"), _MOST_TEXT)
    titles = found.get("titles")
    if bool(gone) == bool(digest) or (gone and text) or not isinstance(titles, list) or len(titles) > 64:
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
