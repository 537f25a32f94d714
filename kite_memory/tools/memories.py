"""Tools for memories by key: write_memory, read_memory, list_memories, delete_memory."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from kite_memory.errors import UsageError
from kite_memory.model.note import Scope
from kite_memory.recall.rendering import plain_line, quoted
from kite_memory.text.unicode import written
from kite_memory.tools import argument_parsing, local_context
from kite_memory.tools.access import Asker
from kite_memory.tools.arguments import (
    CONTEXT,
    EXPECTED,
    KEY,
    KEY_TO_READ,
    LONG_LIMIT,
    PATTERN,
    PROJECT,
    SCOPE,
    TAGS,
    TTL,
    VALUE,
    VALUES,
    Arguments,
)
from kite_memory.tools.bridge import Json, Tool
from kite_memory.tools.local_context import LocalContext
from kite_memory.tools.store import JsonValue, Memory, MemoryQuery, Store
from kite_memory.tools.values import is_pattern

_PREVIEW = 200
_ROOM = 20_000
"""Characters of one answer; values beyond it are left out and named."""
_BESIDE = 500
"""Characters of these for what a list contains beside its memories."""


def _now() -> datetime:
    return datetime.now(UTC)


def tools(store: Store, near: LocalContext, *, clock: Callable[[], datetime] = _now) -> Mapping[str, Tool]:
    return {
        "write_memory": partial(_write, store, near, clock),
        "read_memory": partial(_read, store, near),
        "list_memories": partial(_list, store, near),
        "delete_memory": partial(_delete, store, near),
    }


def _write(store: Store, near: LocalContext, clock: Callable[[], datetime], asker: Asker, arguments: Arguments) -> Json:
    memory = store.write_memory(
        asker.grant,
        arguments[KEY],
        arguments[VALUE],
        local_context.place_of(asker, near, arguments, arguments[SCOPE] or Scope.PROJECT),
        by=argument_parsing.clean(asker.name),
        tags=arguments[TAGS],
        expires=argument_parsing.ends(arguments[TTL], clock()),
        expected=arguments[EXPECTED],
        context=arguments[CONTEXT],
    )
    return {"written": True, **_without_value(memory)}


def _read(store: Store, near: LocalContext, asker: Asker, arguments: Arguments) -> Json:
    """Return memories: for a key, the nearest one with that name; for a pattern, or only tags or a scope, all that match."""
    several = KEY_TO_READ not in arguments
    if several and not (arguments[PATTERN] or arguments[TAGS] or arguments[SCOPE]):
        raise UsageError("key is missing", hint="as in: project.database; or give pattern, tags or scope")
    pattern = arguments[PATTERN] or "*" if several else arguments[KEY_TO_READ]
    if several or is_pattern(pattern):
        wanted = _wanted(asker, near, arguments, pattern, limit=argument_parsing.MOST_RESULTS)
        return _results_json(store.memories(asker.grant, wanted, touch=True), argument_parsing.MOST_RESULTS)
    wanted = _wanted(asker, near, arguments, pattern, limit=1)
    looked_for = [wanted]
    if wanted.scope is Scope.SHARED and not arguments[PROJECT]:  # the default scope of write_memory comes first
        looked_for.insert(0, replace(wanted, project=local_context.NOWHERE))
    found = next(filter(None, (store.memories(asker.grant, each, touch=True) for each in looked_for)), None)
    return {"found": True, **_with_value(found[0])} if found else {"found": False, "key": pattern}


def _list(store: Store, near: LocalContext, asker: Asker, arguments: Arguments) -> Json:
    limit = arguments[LONG_LIMIT]
    found = store.memories(asker.grant, _wanted(asker, near, arguments, arguments[PATTERN] or "*", limit=limit + 1))
    entries: list[Json] = []
    room = _ROOM - _BESIDE
    for memory in found[:limit]:
        beginning = {**_without_value(memory), "preview": preview(memory.value)}
        if arguments[VALUES] and len(written(whole := _with_value(memory))) < room:
            beginning = whole
        room -= len(written(beginning)) + 1
        if room < 0:
            break
        entries.append(beginning)
    hint = {"hint": "there is no room for all of these; narrow it by pattern, scope or tags"} if room < 0 else {}
    return {"memories": entries, "count": len(entries), "more": len(found) > len(entries), **hint}


def _delete(store: Store, near: LocalContext, asker: Asker, arguments: Arguments) -> Json:
    key, scope = arguments[KEY], arguments[SCOPE] or Scope.PROJECT
    place = local_context.place_of(asker, near, arguments, scope)
    return {"deleted": store.delete_memory(asker.grant, key, place), "key": key, "scope": scope.value}


def _wanted(asker: Asker, near: LocalContext, arguments: Arguments, pattern: str, *, limit: int) -> MemoryQuery:
    """Return the query. Memories of a project or session are searched in the caller's own; if that is unknown, none is found."""
    scope = arguments[SCOPE]
    project, session = local_context.around(asker, near, arguments)
    if scope is not None:
        local_context.place_of(asker, near, arguments, scope)  # raises with the missing argument
    return MemoryQuery(
        pattern=pattern,
        scope=scope,
        project=project or local_context.NOWHERE,
        session=session or local_context.NOWHERE,
        tags=arguments[TAGS],
        limit=limit,
    )


def _results_json(found: list[Memory], most: int) -> Json:
    """Return as many values as fit; the others are named."""
    room = _ROOM
    memories: list[Json] = []
    left_out: list[str] = []
    for memory in found:
        entry = _with_value(memory)
        length = len(written(entry))
        if length > room:
            left_out.append(memory.key)
        else:
            memories.append(entry)
            room -= length
    return {
        "found": bool(found),
        "memories": memories,
        "count": len(found),
        "more": len(found) == most,
        **({"left_out": left_out, "hint": "read these one by one"} if left_out else {}),
    }


def _with_value(memory: Memory) -> Json:
    return {**_without_value(memory), "value": memory.value}


def _without_value(memory: Memory) -> Json:
    place = memory.place
    entry: Json = {
        "key": memory.key,
        "scope": place.scope.value,
        "project": place.project,
        "session_id": place.session,
        "version": memory.version,
        "tags": list(memory.tags),
        "id": memory.id,
        "created_by": memory.created_by,
        "created_at": memory.created.isoformat(),
        "updated_at": memory.updated.isoformat(),
        "accessed_at": memory.accessed.isoformat() if memory.accessed else "",
        "access_count": memory.access_count,
        "expires_at": memory.expires.isoformat() if memory.expires else "",
        "context": dict(memory.context),
    }
    return {name: value for name, value in entry.items() if value not in ("", [], {})}


def preview(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(text[: 8 * _PREVIEW].split())
    return plain_line(quoted(line), _PREVIEW)
