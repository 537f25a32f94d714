"""OpenCode before it had a database (up to early 2026): a JSON file for a session, for each message, for each part."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kite_memory.model.event import Event
from kite_memory.model.look import Cursor, Look, Problem
from kite_memory.sources.common.foreign_sqlite import object_in
from kite_memory.sources.common.jsonl import AppendOnlyFile, Unreadable
from kite_memory.sources.opencode.parts import Message, Part, conversation, said_at, tell

_FILE_LIMIT = 16 * 1024 * 1024
_FILES = 20_000


def stamp_of_files(session: Path) -> tuple[int, int]:
    """How many messages there are and how long the last is, and when it, or the session, was written. May raise `OSError`.

    Its length is counted since a clock may have been ahead: what is written later then is not the latest.
    """
    storage = session.parent.parent.parent
    status = session.stat()
    folder = _messages_of(session)
    messages = _json_files(folder)
    places = [folder, folder / messages[-1]] if messages else []
    if messages:
        parts = storage / "part" / messages[-1].removesuffix(".json")
        places += [parts, *[parts / name for name in _json_files(parts)[-3:]]]
    sizes, times = zip((status.st_size, status.st_mtime_ns), *map(_stamp, places), strict=True)
    return sum(sizes) + len(messages), max(times)


def look_at_files(session: Path, cursor: Cursor | None, *, root: Path, now: float) -> Look:
    """The whole session again, when anything of it changed. Raises `Unreadable`, and `OSError` for a session that is gone."""
    info = _read(session, root)
    size, mtime_ns = stamp_of_files(session)
    if cursor and (cursor.size, cursor.mtime_ns) == (size, mtime_ns):
        return Look(path=str(session), session=None, events=(), problems=(), cursor=cursor, amends=True)
    problems: list[Problem] = []
    found: list[tuple[float, str, dict[str, Any], list[Part]]] = []
    storage = root / "storage"
    for path, content in _objects(_messages_of(session), root, problems):
        name = content.get("id")
        name = name if isinstance(name, str) and os.sep not in name and name not in (".", "..") else path.stem
        parts = [
            Part(row=row, content=part, changed=_stamp(where)[1] / 1e9)
            for row, (where, part) in enumerate(_objects(storage / "part" / name, root, problems))
        ]
        found.append((said_at(content), name, content, parts))
    if isinstance(info, str):
        problems.append(Problem(file=str(session), position=0, reason=info))
        info = {}
    messages: list[Message] = []
    before = 0
    for _, name, content, parts in sorted(found, key=lambda each: each[:2]):
        messages.append(Message(name=name, info=content, parts=parts, place=before))
        before += len(parts)
    told = conversation(info, [message.info for message in messages])
    events: list[Event] = []
    if told is not None:
        teller = tell(told, messages, file=str(session), last=messages[-1].name if messages else "", now=now)
        events, problems = teller.events, [*problems, *teller.problems]
    return Look(
        path=str(session),
        session=told.session if told else None,
        events=tuple(events),
        problems=tuple(problems),
        cursor=Cursor(position=size, size=size, mtime_ns=mtime_ns),
        amends=True,
    )


def _messages_of(session: Path) -> Path:
    """The folder of its messages, named after the session; and so is its file, but for some that say ``ses_`` once more."""
    messages = session.parent.parent.parent / "message"
    folder = messages / session.stem
    return folder if folder.is_dir() else messages / session.stem.removeprefix("ses_")


def _objects(folder: Path, root: Path, problems: list[Problem]) -> Iterable[tuple[Path, dict[str, Any]]]:
    for name in _json_files(folder)[:_FILES]:
        path = folder / name
        try:
            content = _read(path, root)
        except (Unreadable, OSError):
            content = "file cannot be read"
        if isinstance(content, str):
            problems.append(Problem(file=str(folder), position=0, reason=content))
        else:
            yield path, content


def _read(path: Path, root: Path) -> dict[str, Any] | str:
    with AppendOnlyFile(path, within=root) as file:
        return object_in(file.between(0, file.size)) if file.size <= _FILE_LIMIT else "file too long"


def _json_files(folder: Path) -> list[str]:
    """Sorted, which is the order they were made in."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.name.endswith(".json") and entry.name.isascii())
    except OSError:
        return []


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns
