"""Notes by name or by age, and their changes."""

from typing import Final

from kite_memory.model.note import Note, NoteKind
from kite_memory.recall.embedders.embedder import Space
from kite_memory.team.postgres.connections import Cursor, Row, storable
from kite_memory.team.postgres.finding import Indexed, drop_index, put_index
from kite_memory.team.postgres.memories import throw_away
from kite_memory.team.postgres.rows import more_of, note_of
from kite_memory.tools.access import Grant
from kite_memory.tools.store import MOST_TITLED
from kite_memory.vault.lifecycle import standing_until

_STANDING: Final = "(expires IS NULL OR expires > now())"
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
    until = standing_until(note)
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


def without_vectors(cursor: Cursor, tenant: str, space: Space, most: int) -> list[Row]:
    return cursor.execute(
        f"SELECT * FROM kite.note WHERE tenant = %(tenant)s AND {_STANDING} AND NOT EXISTS (SELECT FROM kite.passage"  # noqa: S608 - ours
        " WHERE passage.tenant = note.tenant AND passage.id = note.id AND space = %(space)s) ORDER BY updated DESC LIMIT %(most)s",
        {"tenant": tenant, "space": space.tag, "most": most},
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


def drop_forgotten(cursor: Cursor, tenant: str, days: int) -> None:
    """Erase the words of notes and versions forgotten more than ``days`` ago.

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
        " AND (note.first_version <= kept.version OR note.created > now() - %(kept)s::interval))",
        {"tenant": tenant, "kept": f"{days} days"},
    )


def _row(cursor: Cursor, tenant: str, name: str) -> Row | None:
    name = storable(name)
    return cursor.execute(
        f"SELECT * FROM kite.note WHERE tenant = %s AND (id = %s OR path = %s) AND {_STANDING}"  # noqa: S608 - ours
        " ORDER BY id LIMIT 1",
        (tenant, name, name),
    ).fetchone()
