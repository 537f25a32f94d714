"""Export the vault as one file that other programs can read: a zip of its files as they are, or JSON lines."""

import io
import json
import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from kite_memory.errors import KiteError
from kite_memory.exchange.foreign import MOST_BYTES, NotImported, Page, ReimportedNote, page_of
from kite_memory.model.note import Note, NoteKind
from kite_memory.vault import properties
from kite_memory.vault.notefile import FOLDERS, UnreadableNote, parse
from kite_memory.vault.wording import note_stem, page_stem

_MOST_ARCHIVE = 256 * 1024 * 1024
_MOST_UNPACKED = 512 * 1024 * 1024
_MOST_MEMBERS = 100_000
_NOT_TAKEN = frozenset({".obsidian", ".trash", ".git", "__MACOSX", "templates"})


def members(path: Path) -> Iterator[ReimportedNote | Page | NotImported]:
    """Yield each markdown file in a zip, by name: a note of ours with its id, or a foreign page.

    Raises `KiteError` for what is no zip, or unpacks to more than notes would.
    """
    try:
        if path.stat().st_size > _MOST_ARCHIVE:
            raise KiteError(f"{path} is too large", hint="export it in parts")
        with zipfile.ZipFile(path) as archive:
            found = sorted(archive.infolist(), key=lambda info: info.filename)
            if len(found) > _MOST_MEMBERS or sum(info.file_size for info in found) > _MOST_UNPACKED:
                raise KiteError(f"{path} unpacks to more than notes would", hint="see what is in it")
            for info in found:
                if info.filename.lower().endswith((".md", ".markdown")):
                    yield _member(archive, info)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise KiteError(f"{path} cannot be read as a zip: {error}", hint="see what wrote it") from error


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> ReimportedNote | Page | NotImported:
    name = info.filename
    if reason := _refused(info):
        return NotImported(name=name, reason=reason)
    try:
        with archive.open(info) as file:
            data = file.read(MOST_BYTES + 1)  # its declared size is not trusted
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError):
        return NotImported(name=name, reason="damaged")
    if len(data) > MOST_BYTES:
        return NotImported(name=name, reason="too large")
    modified = _modified(info)
    page = page_of(Path(name), data, modified=modified)
    if isinstance(page, str):
        return NotImported(name=name, reason=page)
    note = parse(data.decode(), name, created=modified, updated=modified)
    return (
        ReimportedNote(note=placed(note), stem=PurePosixPath(name).stem)
        if not isinstance(note, UnreadableNote) and ULID.fullmatch(note.id)
        else page
    )


def _refused(info: zipfile.ZipInfo) -> str:
    posix, windows = PurePosixPath(info.filename), PureWindowsPath(info.filename)
    if posix.is_absolute() or windows.drive or windows.root or ".." in (*posix.parts, *windows.parts) or "\0" in info.filename:
        return "leads out of the archive"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "symbolic link"
    if info.flag_bits & 1:
        return "encrypted"
    if info.file_size > MOST_BYTES:
        return "too large"
    if any(part in _NOT_TAKEN or part.startswith(".") for part in posix.parts):
        return "not a note"
    return ""


def _modified(info: zipfile.ZipInfo) -> datetime:
    try:
        return datetime(*info.date_time, tzinfo=UTC)
    except ValueError:
        return datetime(1980, 1, 1, tzinfo=UTC)


_EARLIEST = 1980
"""A zip cannot hold an earlier year."""
ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_IN_BODY = frozenset(("path", "body", "links", "updated"))


def as_json(note: Note) -> dict[str, Any]:
    """Return all fields of a note as JSON values."""
    return {each.name: _plain(getattr(note, each.name)) for each in fields(note)}


def _plain(value: object) -> object:
    match value:
        case datetime():
            return value.isoformat()
        case tuple():
            return list(value)
        case str():
            return str(value)
        case _:
            return value


def note_of(row: Mapping[str, Any]) -> Note | None:
    """Parse a row written by `as_json`, validated like a note's file; ``None`` for what is no note."""
    if not isinstance(row.get("id"), str) or not ULID.fullmatch(row["id"]) or not isinstance(row.get("body"), str):
        return None
    kept: dict[str, object] = {}
    for name in {each.name for each in fields(Note)} - _IN_BODY:
        match row.get(name):
            case str(text) if text:
                kept[name] = text
            case list(texts):
                kept[name] = [each for each in texts if isinstance(each, str)]
            case int(number) if name == "importance":
                kept[name] = properties.Raw(text=str(number))
            case _:
                pass
    front = "\n".join(properties.entry(name, value) for name, value in sorted(kept.items()))
    at = datetime.fromtimestamp(0, UTC)
    note = parse(f"---\n{front}\n---\n{row['body']}", "projects/x.md", created=at, updated=at)
    return None if isinstance(note, UnreadableNote) else placed(note)


def placed(note: Note) -> Note:
    """Return the note with the path that we would give it: its path elsewhere is not trusted."""
    stem = page_stem(note.title) if note.kind is NoteKind.ENTITY else note_stem(note.title, note.created)
    return replace(note, path=f"{FOLDERS[note.kind]}/{stem}.md")


def jsonl(notes: Iterable[Note]) -> bytes:
    return b"".join(json.dumps(as_json(note), ensure_ascii=False).encode("utf-8", "replace") + b"\n" for note in notes)


def zipped(files: Iterable[tuple[str, datetime, bytes]]) -> bytes:
    """Return a zip of the files. The same files give the same bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, at, data in files:
            year = max(_EARLIEST, at.year)
            info = zipfile.ZipInfo(path, (year, at.month, at.day, at.hour, at.minute, at.second))
            info.external_attr = 0o600 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return made.getvalue()
