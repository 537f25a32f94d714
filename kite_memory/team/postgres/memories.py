"""Memories by key: one statement compares, writes and stores the version.

If another transaction takes the same version at the same time, the statement fails and is repeated on the new state.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from kite_memory.team.postgres.connections import Cursor, Row, storable
from kite_memory.team.postgres.finding import Indexed, drop_index, put_index
from kite_memory.team.postgres.rows import aware, encoded, memory_of, version_of
from kite_memory.tools.store import Conflict, JsonValue, Memory, MemoryPlace, MemoryQuery, MemoryVersion
from kite_memory.tools.values import beginning, is_pattern

_HERE: Final = "tenant = %(tenant)s AND key = %(key)s AND scope = %(scope)s AND project = %(project)s AND session = %(session)s"
_STANDING: Final = "(expires IS NULL OR expires > now())"
_NEAREST: Final = (
    "array_position(ARRAY['session', 'project', 'shared', 'global'], note.scope),"
    " note.project = '', note.project COLLATE \"C\", note.session = '', note.session COLLATE \"C\""
)

_WRITE: Final = f"""
WITH last AS (
    SELECT coalesce(max(version), 0) AS version FROM kite.memory_version WHERE {_HERE}
), written AS (
    INSERT INTO kite.note AS note (tenant, id, path, kind, title, body, scope, project, session, tags, status, more, created,
                                   updated, expires, created_by, conversation, key, value, version, first_version, context, person)
    SELECT %(tenant)s, %(id)s, %(path)s, %(kind)s, %(title)s, %(body)s, %(scope)s, %(project)s, %(session)s, %(tags)s::text[],
           %(status)s, %(more)s::json, now(), now(), %(expires)s::timestamptz, %(created_by)s, '', %(key)s, %(value)s::json,
           last.version + 1, last.version + 1, %(context)s::json, kite.whose(%(scope)s)
    FROM last WHERE coalesce(%(expected)s::bigint, 0) = 0
        OR EXISTS (SELECT FROM kite.note WHERE {_HERE} AND {_STANDING} AND version = %(expected)s)
    ON CONFLICT (tenant, key, scope, project, session, person) WHERE key <> ''
    DO UPDATE SET value = excluded.value, body = excluded.body, tags = excluded.tags, expires = excluded.expires, updated = now(),
                  context = excluded.context,
                  found_over = NULL, version = note.version + (note.value::text <> excluded.value::text)::int
    WHERE (note.expires IS NULL OR note.expires > now()) AND note.version = coalesce(%(expected)s, note.version)
    RETURNING note.*
), kept AS (
    INSERT INTO kite.memory_version (tenant, key, scope, project, session, version, at, author, value, person)
    SELECT tenant, key, scope, project, session, version, now(), %(author)s, value, person FROM written
    WHERE NOT EXISTS (SELECT FROM kite.memory_version WHERE {_HERE} AND version = written.version)
    RETURNING version
)
SELECT written.*, access.accessed, access.count
FROM written LEFT JOIN kite.access ON access.tenant = written.tenant AND access.id = written.id
"""  # noqa: S608 - every part is ours


def write(
    cursor: Cursor,
    tenant: str,
    note: Row,
    index: Indexed,
    *,
    value: JsonValue,
    by: str,
    expires: datetime | None,
    expected: int | None,
) -> Memory:
    """Write a memory. ``note`` is the row of the note that shows it."""
    asked = {
        **note,
        "tenant": tenant,
        "value": encoded(value),
        "author": storable(by),
        "created_by": storable(by),
        "expires": aware(expires) if expires else None,
        "expected": expected,
    }
    _clear_expired(cursor, asked)
    row = cursor.execute(_WRITE, asked).fetchone()
    if row is None:
        there = cursor.execute(f"SELECT version FROM kite.note WHERE {_HERE} AND {_STANDING}", asked).fetchone()  # noqa: S608 - ours
        version = int(there["version"]) if there else 0
        state = f"is at version {version}" if version else "is no longer there"
        raise Conflict(f"{note['key']!r} {state}", version=version, hint="read it again, and write over what it says now")
    put_index(cursor, tenant, row, index)
    return memory_of(row)


def wanted(cursor: Cursor, tenant: str, wanted: MemoryQuery, *, touch: bool) -> list[Memory]:
    pattern = storable(wanted.pattern)
    start = beginning(pattern)
    conditions = ["note.tenant = %(tenant)s", "note.key <> ''", _STANDING]
    if not is_pattern(pattern):
        conditions.append("note.key = %(pattern)s")
    elif pattern.strip("*"):
        conditions.append("note.key LIKE %(like)s")
        if start:  # below a policy, the index of keys is used only for comparisons
            conditions.append("note.key >= %(start)s AND note.key < %(end)s")
    if wanted.scope is not None:
        conditions.append("note.scope = %(scope)s")
    if wanted.project:
        conditions.append("note.project IN ('', %(project)s)")
    if wanted.session:
        conditions.append("note.session IN ('', %(session)s)")
    if wanted.tags:
        conditions.append("note.tags @> %(tags)s::text[]")
    rows = cursor.execute(
        "SELECT note.*, access.accessed, access.count FROM kite.note LEFT JOIN kite.access ON access.tenant = note.tenant"  # noqa: S608
        f" AND access.id = note.id WHERE {' AND '.join(conditions)}"
        f" ORDER BY {'note.updated DESC, note.id DESC' if wanted.newest else f'note.key, {_NEAREST}'} LIMIT %(limit)s",
        {
            "tenant": tenant,
            "pattern": pattern,
            "start": start,
            "end": start + "\U0010ffff",
            "like": _like(pattern),
            "scope": wanted.scope,
            "project": storable(wanted.project),
            "session": storable(wanted.session),
            "tags": list(map(storable, wanted.tags)),
            "limit": wanted.limit,
        },
    ).fetchall()
    if touch and rows:
        _touch(cursor, rows)
    return [memory_of(row) for row in rows]


def delete(cursor: Cursor, tenant: str, key: str, place: MemoryPlace) -> bool:
    row = cursor.execute(
        f"SELECT id FROM kite.note WHERE {_HERE} AND {_STANDING} FOR UPDATE",  # noqa: S608 - ours
        _here(tenant, key, place),
    ).fetchone()
    return row is not None and throw_away(cursor, tenant, row["id"])


def throw_away(cursor: Cursor, tenant: str, id: str) -> bool:
    """Move the note to the trash, where a forgotten note is known by its id."""
    row = cursor.execute(
        "WITH gone AS (DELETE FROM kite.note WHERE tenant = %(tenant)s AND id = %(id)s RETURNING *) INSERT INTO kite.trash"
        " (tenant, id, scope, project, at, note, person)"
        " SELECT tenant, id, scope, project, now(), row_to_json(gone), person FROM gone"
        " RETURNING id",
        {"tenant": tenant, "id": id},
    ).fetchone()
    cursor.execute("DELETE FROM kite.access WHERE tenant = %s AND id = %s", (tenant, id))
    drop_index(cursor, tenant, id)
    return row is not None


def versions(cursor: Cursor, tenant: str, key: str, place: MemoryPlace) -> list[MemoryVersion]:
    rows = cursor.execute(
        "SELECT kept.* FROM kite.memory_version AS kept JOIN kite.note USING (tenant, key, scope, project, session)"  # noqa: S608 - ours
        f" WHERE {_HERE} AND {_STANDING} AND kept.version >= note.first_version ORDER BY kept.version DESC",
        _here(tenant, key, place),
    ).fetchall()
    return [version_of(row) for row in rows]


def _here(tenant: str, key: str, place: MemoryPlace) -> Row:
    return {
        "tenant": tenant,
        "key": storable(key),
        "scope": place.scope.value,
        "project": storable(place.project),
        "session": storable(place.session),
    }


def _clear_expired(cursor: Cursor, asked: Row) -> None:
    """Remove an expired memory. The next one under its key is another memory, whose version numbers continue."""
    expired = cursor.execute(
        f"SELECT id FROM kite.note WHERE {_HERE} AND expires <= now() FOR UPDATE",  # noqa: S608 - ours
        asked,
    ).fetchone()
    if expired is not None:
        throw_away(cursor, asked["tenant"], expired["id"])


def _touch(cursor: Cursor, rows: Sequence[Row]) -> None:
    """Count a read. Rows are updated in the order of ids, so that concurrent readers cannot deadlock."""
    cursor.execute(
        "INSERT INTO kite.access AS known (tenant, id, scope, project, accessed, count, person)"
        " SELECT tenant, id, scope, project, now(), 1, person FROM kite.note WHERE tenant = %s AND id = ANY (%s) ORDER BY id"
        " ON CONFLICT (tenant, id) DO UPDATE SET accessed = now(), count = known.count + 1"
        " RETURNING id, accessed, count",
        (rows[0]["tenant"], [row["id"] for row in rows]),
    )
    seen = {each["id"]: each for each in cursor.fetchall()}
    for row in rows:
        row.update(seen.get(row["id"], {}))


def _like(pattern: str) -> str:
    for special in "\\%_":
        pattern = pattern.replace(special, "\\" + special)
    while "**" in pattern:
        pattern = pattern.replace("**", "*")
    return pattern.replace("*", "%").replace("?", "_")
