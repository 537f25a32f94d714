"""Memories by key, notes by name or age, and bringing back of what was deleted, as long as the trash holds its words.

Of a memory one statement compares, writes and stores the version.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kite_memory.model.note import Note, NoteKind
from kite_memory.recall.embedder import Space
from kite_memory.team.postgres.connections import Cursor, Row, storable
from kite_memory.team.postgres.finding import Indexed, drop_index, put_index
from kite_memory.team.postgres.rows import aware, encoded, memory_of, more_of, note_of, version_of
from kite_memory.tools.argument_parsing import is_pattern, literal_prefix
from kite_memory.tools.store import MOST_TITLED, Conflict, Grant, JsonValue, Memory, MemoryPlace, MemoryQuery, MemoryVersion

_HERE: Final = "tenant = %(tenant)s AND key = %(key)s AND scope = %(scope)s AND project = %(project)s AND session = %(session)s"
_STANDING: Final = "(expires IS NULL OR expires > now())"
_NEAREST: Final = (
    "array_position(ARRAY['session', 'project', 'shared', 'global'], note.scope),"
    " note.project = '', note.project COLLATE \"C\", note.session = '', note.session COLLATE \"C\""
)

_APART: Final = "(now() - %(sent)s::timestamptz)"
_EXPIRES: Final = f"%(expires)s::timestamptz + CASE WHEN abs(extract(epoch FROM {_APART})) > 5 THEN {_APART} ELSE interval '0' END"
"""The end as the database's clock will see it, if the server's clock is wrong."""

_WRITE: Final = f"""
WITH last AS (
    SELECT coalesce(max(version), 0) AS version FROM kite.memory_version WHERE {_HERE}
), written AS (
    INSERT INTO kite.note AS note (tenant, id, path, kind, title, body, scope, project, session, tags, status, more, created,
                                   updated, expires, created_by, conversation, key, value, version, first_version, context, person)
    SELECT %(tenant)s, %(id)s, %(path)s, %(kind)s, %(title)s, %(body)s, %(scope)s, %(project)s, %(session)s, %(tags)s::text[],
           %(status)s, %(more)s::json, now(), now(), {_EXPIRES}, %(created_by)s, '', %(key)s, %(value)s::json,
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
    sent: datetime,
    expected: int | None,
) -> Memory:
    """Write a memory. ``note`` is the row of the note that shows it, ``sent`` is now by the clock that ``expires`` goes by."""
    asked = {
        **note,
        "tenant": tenant,
        "value": encoded(value),
        "author": storable(by),
        "created_by": storable(by),
        "expires": aware(expires) if expires else None,
        "sent": aware(sent),
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
    start = literal_prefix(pattern)
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


_COLUMNS: Final = (
    "id", "path", "kind", "title", "body", "scope", "project", "session", "tags", "status", "more", "created", "updated", "expires",
    "created_by", "conversation", "key", "value", "version", "first_version", "context", "person",
)  # fmt: skip
_JSON: Final = frozenset({"more", "value", "context"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """Something in the trash. ``row`` is the note as it was."""

    id: str
    at: datetime
    person: str
    row: Row

    @property
    def name(self) -> str:
        return str(self.row["key"] or self.row["title"])

    @property
    def place(self) -> str:
        """Where it was, in words that distinguish it from another of its name."""
        of = self.person if self.row["scope"] == "global" else self.row["project"]
        return f"{self.row['scope']}{f' of {of}' if of else ''}"


def deleted(cursor: Cursor, tenant: str, name: str, *, person: str = "", project: str = "") -> list[Deleted]:
    """Return what was deleted under this key, id, path or title and has not expired, the newest of each place."""
    rows = cursor.execute(
        # as text, since PostgreSQL would not take apart JSON that holds an escaped NUL
        "SELECT id, at, person, note FROM kite.trash WHERE tenant = %(tenant)s AND note::text <> 'null'"
        " AND (id = %(name)s OR EXISTS (SELECT FROM unnest(ARRAY['key', 'path', 'title']) AS named"
        " CROSS JOIN unnest(ARRAY[to_json(%(name)s::text)::text, %(restored)s]) AS written"
        " WHERE position('\"' || named || '\":' || written IN note::text) > 0))"
        " AND (%(person)s = '' OR person = %(person)s) AND (%(project)s = '' OR project = %(project)s)"
        " ORDER BY at DESC, id LIMIT 1000",
        {
            "tenant": tenant,
            "name": storable(name),
            "restored": encoded(storable(name)),
            "person": storable(person),
            "project": storable(project),
        },
    ).fetchall()
    newest: dict[tuple[Any, ...], Deleted] = {}
    for row in rows:
        note = {"context": {}, "value": None, **row["note"], "person": row["person"]}
        note |= {when: datetime.fromisoformat(note[when]) if note[when] else None for when in ("created", "updated", "expires")}
        is_over = note["expires"] is not None and note["expires"] <= datetime.now(UTC)
        if is_over or storable(name) not in (row["id"], note["key"], note["path"], note["title"]):
            continue
        place = (note["key"] or note["id"], note["scope"], note["project"], note["session"], row["person"])
        newest.setdefault(place, Deleted(id=row["id"], at=row["at"], person=row["person"], row=note))
    return list(newest.values())


def is_taken(cursor: Cursor, tenant: str, deleted: Deleted) -> bool:
    """Return whether another memory has been written under the key since."""
    return (
        cursor.execute(
            "SELECT 1 FROM kite.note WHERE tenant = %(tenant)s AND (id = %(id)s OR (key <> '' AND key = %(key)s"
            " AND scope = %(scope)s AND project = %(project)s AND session = %(session)s AND person = %(person)s))",
            {**deleted.row, "tenant": tenant},
        ).fetchone()
        is not None
    )


def bring_back(cursor: Cursor, tenant: str, deleted: Deleted, index: Indexed, *, by: str) -> bool:
    """Restore a deleted note or memory, a memory as a new version of itself. Return whether it was still in the trash."""
    gone = cursor.execute("DELETE FROM kite.trash WHERE tenant = %s AND id = %s RETURNING id", (tenant, deleted.id)).fetchone()
    if gone is None:
        return False
    is_memory = deleted.row["key"] != ""  # whose value may be JSON's own null
    row = {
        name: encoded(value) if name in _JSON and (value is not None or is_memory) else value for name, value in deleted.row.items()
    }
    row |= {"tenant": tenant, "updated": datetime.now(UTC)}
    if row["key"]:
        row |= _next_version(cursor, row)
        cursor.execute(
            "INSERT INTO kite.memory_version (tenant, key, scope, project, session, version, at, author, value, person) VALUES"
            " (%(tenant)s, %(key)s, %(scope)s, %(project)s, %(session)s, %(version)s, now(), %(by)s, %(value)s::json, %(person)s)",
            {**row, "by": by},
        )
    columns = ("tenant", *_COLUMNS)
    written = cursor.execute(
        f"INSERT INTO kite.note ({', '.join(columns)}) VALUES ({', '.join(f'%({name})s' for name in columns)}) RETURNING *",  # noqa: S608
        row,
    ).fetchone()
    if written is None:
        raise AssertionError("an insert without a condition returns its row")
    put_index(cursor, tenant, written, index)
    return True


def _next_version(cursor: Cursor, row: Row) -> Row:
    """Number it after all versions of its key. If another memory had the key meanwhile, the history begins anew."""
    found = cursor.execute(
        "SELECT coalesce(max(version), 0) AS last FROM kite.memory_version WHERE tenant = %(tenant)s AND key = %(key)s"
        " AND scope = %(scope)s AND project = %(project)s AND session = %(session)s AND person = %(person)s",
        row,
    ).fetchone()
    last = int(found["last"]) if found else 0
    same = last <= row["version"]
    return {"version": last + 1, "first_version": row["first_version"] if same else last + 1}


_KEPT_AFTER_EXPIRY: Final = "30 days"


def called(cursor: Cursor, grant: Grant, tenant: str, name: str) -> Note | None:
    row = _row(cursor, tenant, name)
    note = note_of(row) if row else None
    return note if note is not None and grant.reads(note) else None


def titled(cursor: Cursor, grant: Grant, tenant: str, title: str) -> list[Note]:
    """Return notes with exactly this title: below a policy PostgreSQL uses no index for comparisons that fold case."""
    rows = cursor.execute(
        f"SELECT * FROM kite.note WHERE tenant = %s AND title = %s AND {_STANDING} ORDER BY id LIMIT %s",  # noqa: S608 - ours
        (tenant, storable(title), 4 * MOST_TITLED),
    ).fetchall()
    return [note for row in rows if grant.reads(note := note_of(row))][:MOST_TITLED]


def recent(cursor: Cursor, grant: Grant, tenant: str, project: str, kinds: frozenset[NoteKind], limit: int) -> list[Note]:
    """Return the newest notes. Each place is queried by itself, so that its index gives the newest without reading the others."""
    standing = (
        f"tenant = %(tenant)s AND (cardinality(%(kinds)s::text[]) = 0 OR kind = ANY (%(kinds)s::text[])) AND {_STANDING}"
        " AND status <> 'rejected' AND (%(whole)s OR kind <> 'entity')"
    )
    places = (
        "project = %(project)s",
        "project = '' AND %(project)s <> ''",
        "scope = 'shared' AND project NOT IN ('', %(project)s)",
    )
    newest = "ORDER BY updated DESC, id DESC LIMIT %(limit)s"
    rows = cursor.execute(
        " UNION ALL ".join(f"(SELECT * FROM kite.note WHERE {place} AND {standing} {newest})" for place in places) + f" {newest}",  # noqa: S608
        {"tenant": tenant, "project": storable(project), "kinds": sorted(kinds), "whole": grant.whole, "limit": limit},
    ).fetchall()
    return [note_of(row) for row in rows]


def remember(cursor: Cursor, tenant: str, row: Row, index: Indexed) -> Note:
    """Write a note. A concurrent writer of the same words waits until the first has finished."""
    said = {"words": f"{tenant}\n{row['project']}\n{row['body']}"}
    cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%(words)s, 1))", said)
    same = cursor.execute(
        "SELECT * FROM kite.note WHERE tenant = %(tenant)s AND project = %(project)s AND md5(body) = md5(%(body)s) AND key = ''"  # noqa: S608
        " AND body = %(body)s AND scope = %(scope)s AND session = %(session)s AND kind = %(kind)s AND conversation = ''"
        f" AND status IN ('accepted', 'proposed') AND {_STANDING} LIMIT 1",
        {"tenant": tenant, **row},
    ).fetchone()
    if same is not None:
        return note_of(same)
    return put(cursor, tenant, row, index)


def put(cursor: Cursor, tenant: str, row: Row, index: Indexed) -> Note:
    """Write a note, replacing one with the same id that the caller may change."""
    written = cursor.execute(
        "INSERT INTO kite.note AS note (tenant, id, path, kind, title, body, scope, project, session, tags, status, more, created,"
        " updated, expires, created_by, conversation, person) VALUES (%(tenant)s, %(id)s, %(path)s, %(kind)s, %(title)s, %(body)s,"
        " %(scope)s, %(project)s, %(session)s, %(tags)s::text[], %(status)s, %(more)s::json, %(created)s, %(updated)s, %(expires)s,"
        " %(created_by)s, %(conversation)s, kite.whose(%(scope)s))"
        " ON CONFLICT (tenant, id) DO UPDATE SET title = excluded.title, body = excluded.body,"
        " tags = excluded.tags, status = excluded.status, more = excluded.more, updated = excluded.updated RETURNING *",
        {"tenant": tenant, **row},
    ).fetchone()
    if written is None:
        raise AssertionError("an insert without a condition returns its row")
    put_index(cursor, tenant, written, index)
    return note_of(written)


def replace_by(cursor: Cursor, tenant: str, id: str, note: Note) -> str:
    """Mark the note that the new one contradicts as replaced, and return its name; empty if there was none."""
    until = note.holds_from
    row = cursor.execute(
        "UPDATE kite.note SET status = 'superseded', updated = %(updated)s,"
        " more = (more::jsonb || %(more)s::jsonb)::json"
        " WHERE tenant = %(tenant)s AND id = %(id)s AND status IN ('accepted', 'proposed', 'muted') RETURNING path",
        {"tenant": tenant, "id": id, "more": more_of(superseded_by=_stem(note.path), valid_until=until), "updated": note.updated},
    ).fetchone()
    return _stem(row["path"]) if row else ""


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def forget(cursor: Cursor, grant: Grant, tenant: str, name: str) -> tuple[bool, str]:
    """Forget a note and return whether there was one.

    For a journal, also return the name of its conversation's object, which is no longer needed.
    """
    row = _row(cursor, tenant, name)
    if row is None or not grant.reads(note_of(row)):
        return False, ""
    object = ""
    if row["conversation"] and row["kind"] == NoteKind.JOURNAL:
        gone = cursor.execute(
            "DELETE FROM kite.conversation WHERE tenant = %s AND uuid = %s AND scope = %s AND project = %s RETURNING object",
            (tenant, row["conversation"], row["scope"], row["project"]),
        ).fetchone()
        object = gone["object"] if gone else ""
    return throw_away(cursor, tenant, row["id"]), object


def without_vectors(cursor: Cursor, tenant: str, space: Space, most: int, below: tuple[datetime, str] | None) -> list[Row]:
    """Return notes without vectors in this space, newest first. Those with vectors in another one only ``below`` this place."""
    passages = "SELECT FROM kite.passage WHERE passage.tenant = note.tenant AND passage.id = note.id"
    at, id = below or (None, "")
    return cursor.execute(
        f"SELECT * FROM kite.note WHERE tenant = %(tenant)s AND {_STANDING} AND NOT EXISTS ({passages} AND space = %(space)s)"  # noqa: S608
        f" AND (%(at)s::timestamptz IS NULL OR (updated, id) < (%(at)s, %(id)s) OR NOT EXISTS ({passages}))"
        " ORDER BY updated DESC, id DESC LIMIT %(most)s",
        {"tenant": tenant, "space": space.tag, "most": most, "at": at, "id": id},
    ).fetchall()


def index_again(cursor: Cursor, tenant: str, row: Row, index: Indexed) -> None:
    """Replace the index entries, unless the note has changed meanwhile, in which case they are already updated."""
    found = cursor.execute("SELECT updated FROM kite.note WHERE tenant = %s AND id = %s FOR UPDATE", (tenant, row["id"])).fetchone()
    if found is not None and found["updated"] == row["updated"]:
        put_index(cursor, tenant, row, index)


def drop_expired(cursor: Cursor, tenant: str) -> int:
    """Delete notes that were found expired long ago and still are, a thousand at a time. Return how many.

    Both times come from one clock, so a clock that is wrong for a moment only hides notes.
    """
    asked = {"tenant": tenant, "kept": _KEPT_AFTER_EXPIRY}
    cursor.execute(
        "UPDATE kite.note SET found_over = NULL WHERE tenant = %(tenant)s AND expires > now() AND found_over IS NOT NULL", asked
    )
    rows = cursor.execute(
        "DELETE FROM kite.note WHERE tenant = %(tenant)s AND id IN (SELECT id FROM kite.note WHERE tenant = %(tenant)s"
        " AND expires <= now() AND found_over < now() - %(kept)s::interval LIMIT 1000) RETURNING id",
        asked,
    ).fetchall()
    for row in rows:
        drop_index(cursor, tenant, row["id"])
        cursor.execute("DELETE FROM kite.access WHERE tenant = %s AND id = %s", (tenant, row["id"]))
    cursor.execute(
        "UPDATE kite.note SET found_over = now() WHERE tenant = %(tenant)s AND expires <= now() AND found_over IS NULL", asked
    )
    return len(rows)


_KEY_IN_JSON: Final = r'"key": ?("(?:[^"\\]|\\.)*")'


def drop_forgotten(cursor: Cursor, tenant: str, days: int) -> None:
    """Erase the words of notes forgotten more than ``days`` ago, with all versions of a memory, whenever they were written.

    That they were forgotten, and their version numbers, are kept.
    """
    cursor.execute(
        "UPDATE kite.trash SET note = 'null' WHERE tenant = %(tenant)s AND at < now() - %(kept)s::interval"
        " AND note::text <> 'null'",
        {"tenant": tenant, "kept": f"{days} days"},
    )
    cursor.execute(
        "UPDATE kite.memory_version AS kept SET value = 'null' WHERE tenant = %(tenant)s AND at < now() - %(kept)s::interval"
        " AND value::text <> 'null' AND NOT EXISTS (SELECT FROM kite.note WHERE note.tenant = kept.tenant AND note.key = kept.key"
        " AND note.scope = kept.scope AND note.project = kept.project AND note.session = kept.session"
        " AND note.person = kept.person"
        " AND (note.first_version <= kept.version OR note.created > now() - %(kept)s::interval))"
        # the key, and the rest without escapes: PostgreSQL would not take apart JSON that holds an escaped NUL
        " AND NOT EXISTS (SELECT FROM (SELECT scope, project, person, substring(note::text FROM %(key)s)::json #>> '{}' AS key,"
        " (replace(note::text, '\\u', '/u')::json ->> 'first_version')::bigint AS first FROM kite.trash WHERE tenant = %(tenant)s"
        " AND at >= now() - %(kept)s::interval AND note::text <> 'null') AS gone WHERE gone.scope = kept.scope"
        " AND gone.project = kept.project AND gone.person = kept.person AND gone.key = kept.key"
        " AND gone.first <= kept.version)",
        {"tenant": tenant, "kept": f"{days} days", "key": _KEY_IN_JSON},
    )


def _row(cursor: Cursor, tenant: str, name: str) -> Row | None:
    name = storable(name)
    return cursor.execute(
        f"SELECT * FROM kite.note WHERE tenant = %s AND (id = %s OR path = %s) AND {_STANDING}"  # noqa: S608 - ours
        " ORDER BY id LIMIT 1",
        (tenant, name, name),
    ).fetchone()
