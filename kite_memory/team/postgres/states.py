"""What an AI had in hand."""

import json
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Final

from kite_memory.team.postgres.connections import Cursor, storable
from kite_memory.team.postgres.rows import state_of, state_row
from kite_memory.tools.store import State

_HERE: Final = "tenant = %(tenant)s AND ai = %(ai)s AND session = %(session)s AND project = %(project)s"


def save(cursor: Cursor, tenant: str, state: State, only: Collection[str] | None = None) -> State:
    """What is there then. Who amends a state holds its row from reading to writing."""
    row = {"tenant": tenant, **state_row(state)}
    otherwise = "NOTHING" if only is not None else "UPDATE SET saved = excluded.saved, body = excluded.body"
    written = cursor.execute(
        "INSERT INTO kite.state (tenant, ai, session, project, saved, body) VALUES (%(tenant)s, %(ai)s, %(session)s, %(project)s,"  # noqa: S608
        f" %(saved)s, %(body)s::json) ON CONFLICT (tenant, ai, session, project) DO {otherwise} RETURNING *",
        row,
    ).fetchone()
    if written is not None:
        return state_of(written)
    there = cursor.execute(f"SELECT * FROM kite.state WHERE {_HERE} FOR UPDATE", row).fetchone()  # noqa: S608 - ours
    if there is None:
        raise AssertionError("an insert that does nothing has met a row, and states are not deleted")
    changed = {"tenant": tenant, **state_row(state_of(there).amended(state, only or ()))}
    cursor.execute(f"UPDATE kite.state SET saved = %(saved)s, body = %(body)s::json WHERE {_HERE}", changed)  # noqa: S608 - ours
    return state_of({**there, "saved": changed["saved"], "body": json.loads(changed["body"])})


def saved(cursor: Cursor, tenant: str, *, ai: str, session: str, project: str, limit: int) -> list[State]:
    asked = {"ai": storable(ai), "session": storable(session), "project": storable(project)}
    conditions = ["tenant = %(tenant)s", *(f"{name} = %({name})s" for name, value in asked.items() if value)]
    rows = cursor.execute(
        f"SELECT * FROM kite.state WHERE {' AND '.join(conditions)} ORDER BY saved DESC, ai, session LIMIT %(limit)s",  # noqa: S608 - ours
        {"tenant": tenant, "limit": limit, **asked},
    ).fetchall()
    return [state_of(row) for row in rows]


def transfer(cursor: Cursor, tenant: str, ai: str, *, from_session: str, to_session: str, at: datetime) -> State | None:
    found = saved(cursor, tenant, ai=ai, session=from_session, project="", limit=1)
    if not ai or not from_session or not found:
        return None
    moved = replace(found[0], session=to_session, saved=at, transferred_from=from_session, transferred_at=at)
    save(cursor, tenant, moved)
    return moved
