"""The vault as one file that other programs can read: a zip of its files as they are, or a JSON object a line."""

import io
import json
import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

from kite_memory.model.note import Note, NoteKind
from kite_memory.vault import properties
from kite_memory.vault.notefile import FOLDERS, Unreadable, parse
from kite_memory.vault.slugs import note_stem, page_stem

_EARLIEST = 1980
"""A zip knows no earlier year."""
ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_IN_BODY = frozenset(("path", "body", "links", "updated"))


def as_json(note: Note) -> dict[str, Any]:
    """Everything that is known of it."""
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
    """The note that `as_json` told, believed no more than its file would be; ``None`` for what is none."""
    if not isinstance(row.get("id"), str) or not ULID.fullmatch(row["id"]) or not isinstance(row.get("body"), str):
        return None
    told: dict[str, object] = {}
    for name in {each.name for each in fields(Note)} - _IN_BODY:
        match row.get(name):
            case str(text) if text:
                told[name] = text
            case list(texts):
                told[name] = [each for each in texts if isinstance(each, str)]
            case int(number) if name == "importance":
                told[name] = properties.Raw(text=str(number))
            case _:
                pass
    front = "\n".join(properties.entry(name, value) for name, value in sorted(told.items()))
    at = datetime.fromtimestamp(0, UTC)
    note = parse(f"---\n{front}\n---\n{row['body']}", "projects/x.md", created=at, updated=at)
    return None if isinstance(note, Unreadable) else placed(note)


def placed(note: Note) -> Note:
    """Where it would lie if we had made it: what its file is called elsewhere is not believed."""
    stem = page_stem(note.title) if note.kind is NoteKind.ENTITY else note_stem(note.title, note.created)
    return replace(note, path=f"{FOLDERS[note.kind]}/{stem}.md")


def jsonl(notes: Iterable[Note]) -> bytes:
    return b"".join(json.dumps(as_json(note), ensure_ascii=False).encode("utf-8", "replace") + b"\n" for note in notes)


def zipped(files: Iterable[tuple[str, datetime, bytes]]) -> bytes:
    """The same files give the same bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, at, data in files:
            year = max(_EARLIEST, at.year)
            info = zipfile.ZipInfo(path, (year, at.month, at.day, at.hour, at.minute, at.second))
            info.external_attr = 0o600 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return made.getvalue()
