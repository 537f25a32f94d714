"""The audit of a team's store: who called which tool, on what, when and how it ended; never what was said.

Rows are only added. The serving role cannot change them, and can delete only those older than a day, by a function of the schema.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Final

from kite_memory.errors import KiteError
from kite_memory.team.postgres.connections import Connections, Cursor, storable
from kite_memory.tools.store import EVERYBODY

SCHEMA: Final = """
CREATE TABLE kite.audit (
    tenant text NOT NULL CHECK (tenant <> ''),
    at timestamptz NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    person text NOT NULL,
    token text NOT NULL,
    ai text NOT NULL,
    project text NOT NULL,
    tool text NOT NULL,
    key text NOT NULL,
    outcome text NOT NULL,
    took_ms real NOT NULL,
    PRIMARY KEY (tenant, at, number)
);
CREATE INDEX audit_person ON kite.audit (tenant, person, at);
ALTER TABLE kite.audit ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON kite.audit FOR SELECT USING (tenant = (SELECT kite.tenant()) AND (SELECT kite.everybody()));
CREATE POLICY made ON kite.audit FOR INSERT WITH CHECK (tenant = (SELECT kite.tenant()));
GRANT SELECT, INSERT ON kite.audit TO kite_app;

CREATE FUNCTION kite.drop_audit(days integer) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS
    $$ DELETE FROM kite.audit WHERE tenant = kite.tenant() AND at < now() - make_interval(days => greatest(days, 1)) $$;
REVOKE ALL ON FUNCTION kite.drop_audit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION kite.drop_audit TO kite_app;
"""
"""Version 7 of the schema. Published, so it is never changed."""

WRITING: Final = frozenset(
    {"write_memory", "delete_memory", "remember", "forget", "save_conversation", "ai_state_save", "ai_state_transfer"}
)
_LONGEST: Final = 200
_MOST_WAITING: Final = 10_000
_PAUSE: Final = 1.0

log = logging.getLogger("kite_memory.team")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One call. ``key`` is the memory's key or the note's name, where the call has one."""

    at: datetime
    person: str
    token: str
    ai: str
    project: str
    tool: str
    key: str
    outcome: str
    took_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonUsage:
    """The calls of one person within a time."""

    person: str
    calls: int
    writes: int
    refused: int
    days: int
    last: datetime


def _add(cursor: Cursor, tenant: str, entries: Sequence[AuditEntry]) -> None:
    cursor.executemany(
        "INSERT INTO kite.audit (tenant, at, person, token, ai, project, tool, key, outcome, took_ms) VALUES (%(tenant)s, %(at)s,"
        " %(person)s, %(token)s, %(ai)s, %(project)s, %(tool)s, %(key)s, %(outcome)s, %(took_ms)s)",
        [
            {name: storable(value[:_LONGEST]) if isinstance(value, str) else value for name, value in asdict(entry).items()}
            | {"tenant": tenant}
            for entry in entries
        ],
    )


def _entries(
    cursor: Cursor, tenant: str, *, since: datetime, person: str = "", tool: str = "", key: str = "", limit: int = 100
) -> list[AuditEntry]:
    """Return the newest entries first."""
    asked = {"person": storable(person), "tool": storable(tool), "key": storable(key)}
    conditions = ["tenant = %(tenant)s", "at >= %(since)s", *(f"{name} = %({name})s" for name, value in asked.items() if value)]
    rows = cursor.execute(
        "SELECT at, person, token, ai, project, tool, key, outcome, took_ms FROM kite.audit"  # noqa: S608 - every part is ours
        f" WHERE {' AND '.join(conditions)} ORDER BY at DESC, number DESC LIMIT %(limit)s",
        {"tenant": tenant, "since": since, "limit": limit, **asked},
    ).fetchall()
    return [AuditEntry(**row) for row in rows]


def _usage(cursor: Cursor, tenant: str, *, since: datetime) -> list[PersonUsage]:
    """Return each person's usage, the busiest first."""
    rows = cursor.execute(
        "SELECT person, count(*) AS calls, count(*) FILTER (WHERE tool = ANY (%(writing)s) AND outcome = 'ok') AS writes,"
        " count(*) FILTER (WHERE outcome <> 'ok') AS refused, count(DISTINCT (at AT TIME ZONE 'UTC')::date) AS days,"
        " max(at) AS last FROM kite.audit WHERE tenant = %(tenant)s AND at >= %(since)s"
        " GROUP BY person ORDER BY calls DESC, person",
        {"tenant": tenant, "since": since, "writing": sorted(WRITING)},
    ).fetchall()
    return [PersonUsage(**row) for row in rows]


def drop_old(cursor: Cursor, days: int) -> None:
    cursor.execute("SELECT kite.drop_audit(%s)", (days,))


class TeamAudit:
    """The audit of one tenant, for those who run the server; no tool of agents reads it."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def record(self, entries: Sequence[AuditEntry]) -> None:
        self._connections.run(EVERYBODY, partial(_add, tenant=self._connections.tenant, entries=entries))

    def entries(self, *, since: datetime, person: str = "", tool: str = "", key: str = "", limit: int = 100) -> list[AuditEntry]:
        """Return the newest entries first."""
        asked = partial(_entries, tenant=self._connections.tenant, since=since, person=person, tool=tool, key=key, limit=limit)
        return self._connections.run(EVERYBODY, asked)

    def usage(self, *, since: datetime) -> list[PersonUsage]:
        return self._connections.run(EVERYBODY, partial(_usage, tenant=self._connections.tenant, since=since))


class AuditTrail:
    """Writes entries to the store from a thread of its own, so that no call waits for them. Thread-safe.

    They are written within a second. If the store does not answer they wait, 10,000 at most; how many more there were is recorded.
    """

    def __init__(self, write: Callable[[Sequence[AuditEntry]], None], *, pause: float = _PAUSE) -> None:
        self._write = write
        self._pause = pause
        self._lock = threading.Lock()
        self._waiting: list[AuditEntry] = []
        self._lost = 0
        self._some = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="team-audit", daemon=True)
        self._thread.start()

    def note(self, entry: AuditEntry) -> None:
        with self._lock:
            if len(self._waiting) < _MOST_WAITING:
                self._waiting.append(entry)
            else:
                self._lost += 1
        self._some.set()

    def close(self) -> None:
        self._stop.set()
        self._some.set()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._some.wait()
            self._stop.wait(self._pause)
            self._some.clear()
            self._flush()
        self._flush()

    def _flush(self) -> None:
        with self._lock:
            taken, lost = self._waiting, self._lost
            self._waiting, self._lost = [], 0
        if lost:
            taken = [*taken, _lost_entry(taken[-1], lost)]
        try:
            if taken:
                self._write(taken)
        except KiteError as error:
            log.warning("the audit could not be written yet: %s", error)
            with self._lock:
                kept = (taken[:-1] if lost else taken) + self._waiting
                self._waiting, self._lost = kept[:_MOST_WAITING], self._lost + lost + len(kept[_MOST_WAITING:])
            self._some.set()
        except Exception:  # last resort of a thread: later entries may succeed
            log.exception("internal error: the audit could not be written")


def _lost_entry(last: AuditEntry, count: int) -> AuditEntry:
    return AuditEntry(
        at=last.at, person="", token="", ai="", project="", tool="", key="", outcome=f"{count} calls not recorded", took_ms=0.0
    )
