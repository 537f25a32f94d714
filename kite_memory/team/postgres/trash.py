"""Bringing back of deleted memories and forgotten notes, as long as the trash holds their words."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kite_memory.team.postgres.connections import Cursor, Row, storable
from kite_memory.team.postgres.finding import Indexed, put_index
from kite_memory.team.postgres.rows import encoded

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
        " AND (id = %(name)s OR position(to_json(%(name)s::text)::text IN note::text) > 0)"
        " AND (%(person)s = '' OR person = %(person)s) AND (%(project)s = '' OR project = %(project)s)"
        " ORDER BY at DESC, id LIMIT 1000",
        {"tenant": tenant, "name": storable(name), "person": storable(person), "project": storable(project)},
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
    """Put it back, a memory as a new version of itself. Return whether it was still in the trash."""
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
