"""Conversion of values to rows and back."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from kite_memory.model.note import (
    ITEM_KINDS,
    Decision,
    Fact,
    Insight,
    Note,
    NoteKind,
    NoteStatus,
    OpenQuestion,
    Preference,
    Record,
    RecordItem,
    Rejected,
    Scope,
    item_kind,
    record_from_json,
    record_to_json,
)
from kite_memory.team.postgres.connections import Row, storable
from kite_memory.tools.store import JsonValue, Memory, MemoryPlace, MemoryVersion, State, Todo
from kite_memory.vault.notefile import FOLDERS
from kite_memory.vault.wording import note_id, one_line, slug, text_block

_AS_THEY_ARE: Final = ("id", "path", "title", "body", "project", "session", "key", "created", "updated", "expires")
_MORE: Final = tuple(
    each.name for each in dataclasses.fields(Note) if each.name not in (*_AS_THEY_ARE, "kind", "scope", "status", "tags")
)
"""Note fields that no query filters by: texts, lists of texts, times and numbers, stored in one column."""


def encoded(value: object) -> str:
    """Return JSON in ASCII, so that characters that PostgreSQL cannot store as text are kept as escapes."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def aware(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def note_row(note: Note, *, by: str = "", conversation: str = "") -> Row:
    note = clean(note)
    return {
        "id": note.id,
        "path": note.path,
        "kind": note.kind.value,
        "title": note.title,
        "body": note.body,
        "scope": note.scope.value,
        "project": storable(note.project),
        "session": storable(note.session),
        "tags": list(note.tags),
        "status": note.status.value,
        "more": more_of(**{name: getattr(note, name) for name in _MORE}),
        "created": aware(note.created),
        "updated": aware(note.updated),
        "expires": aware(note.expires) if note.expires else None,
        "created_by": storable(by),
        "conversation": storable(conversation),
    }


def more_of(**fields: object) -> str:
    """Return some of a note's fields as stored in the column for fields that no query filters by."""
    return encoded({name: _as_json(value) for name, value in fields.items()})


def clean(note: Note) -> Note:
    """Return the note as it would be in a vault, without control characters and unpaired surrogates.

    Its path ends in its own id: a number for a name that is taken would reveal notes that the caller does not see.
    """
    title = one_line(note.title) or "Untitled"
    return replace(
        note,
        title=title,
        body=text_block(note.body),
        tags=tuple(map(one_line, note.tags)),
        path=f"{FOLDERS[note.kind]}/{slug(title)}-{note.id[-8:].lower()}.md",
    )


def note_of(row: Row) -> Note:
    """Return the note of a row. Fields unknown to earlier versions get their defaults."""
    values = {name: _meant(value) for name, value in row["more"].items() if name in _MORE}
    return Note(
        **{name: row[name] for name in _AS_THEY_ARE},
        kind=NoteKind(row["kind"]),
        scope=Scope(row["scope"]),
        status=NoteStatus(row["status"]),
        tags=tuple(row["tags"]),
        **values,
    )


def _as_json(value: Any) -> JsonValue:
    match value:
        case datetime():
            return {"at": aware(value).isoformat()}
        case tuple():
            return [one_line(each) for each in value]
        case str():
            return one_line(value)
        case _:
            encoded: JsonValue = value
            return encoded


def _meant(value: Any) -> Any:
    match value:
        case {"at": str(at)}:
            return datetime.fromisoformat(at)
        case list():
            return tuple(value)
        case _:
            return value


def memory_note(key: str, value: JsonValue, place: MemoryPlace, at: datetime, seed: str) -> Note:
    """Return the note that search finds for a memory and that people read: the key and the value."""
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return Note(
        id=note_id(at, "memory", place.scope.value, place.project, place.session, key, seed),
        path="",
        kind=NoteKind.FACT,
        title=key,
        body=shown,
        created=at,
        updated=at,
        scope=place.scope,
        project=place.project,
        session=place.session,
        key=key,
    )


def memory_of(row: Row) -> Memory:
    return Memory(
        id=row["id"],
        key=row["key"],
        value=row["value"],
        place=MemoryPlace(scope=Scope(row["scope"]), project=row["project"], session=row["session"]),
        version=row["version"],
        created=row["created"],
        updated=row["updated"],
        tags=tuple(row["tags"]),
        created_by=row["created_by"],
        expires=row["expires"],
        accessed=row.get("accessed"),
        access_count=row.get("count") or 0,
        context=row["context"],
    )


def version_of(row: Row) -> MemoryVersion:
    return MemoryVersion(version=row["version"], at=row["at"], by=row["author"], value=row["value"])


def state_row(state: State) -> Row:
    body: JsonValue = {
        "todos": [todo.packed() for todo in state.todos],
        "working_notes": state.working_notes,
        "context_summary": state.context_summary,
        "transferred_from": state.transferred_from,
        "transferred_at": state.transferred_at.isoformat() if state.transferred_at else None,
    }
    return {
        "ai": storable(state.ai),
        "session": storable(state.session),
        "project": storable(state.project),
        "saved": aware(state.saved),
        "body": encoded(body),
    }


def state_of(row: Row) -> State:
    body: dict[str, Any] = row["body"]
    at = body["transferred_at"]
    return State(
        ai=row["ai"],
        session=row["session"],
        project=row["project"],
        todos=tuple(map(Todo.unpacked, body["todos"])),
        working_notes=body["working_notes"],
        context_summary=body["context_summary"],
        saved=row["saved"],
        transferred_from=body["transferred_from"],
        transferred_at=datetime.fromisoformat(at) if at else None,
    )


def record_json(record: Record) -> dict[str, object]:
    return record_to_json(record, _item_json)


def record_of(held: dict[str, Any]) -> Record:
    """Return the record. The inverse of `record_json`."""
    return record_from_json(held, _item_of)


def _item_json(item: RecordItem) -> JsonValue:
    encoded: dict[str, JsonValue] = {
        "kind": item_kind(item),
        "title": item.title,
        "body": item.body,
        "evidence": list(item.evidence),
        "importance": item.importance,
        "origin": item.origin,
        "entities": list(item.entities),
        "triggers": list(item.triggers),
    }
    match item:
        case Decision():
            encoded["rejected"] = [[each.alternative, each.reason] for each in item.rejected]
        case Insight():
            encoded["symptom"] = item.symptom
        case Preference():
            encoded["everywhere"] = item.everywhere
        case Fact() | OpenQuestion():
            pass
    return encoded


def _item_of(held: Mapping[str, Any]) -> RecordItem:
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in held.items()}
    kind: Callable[..., RecordItem] = ITEM_KINDS[values.pop("kind")]
    if "rejected" in values:
        values["rejected"] = tuple(Rejected(alternative=one, reason=reason) for one, reason in held["rejected"])
    return kind(**values)
