"""Making the team's database, and bringing one of an earlier version forward. Needs the right to create, as serving does not."""

import time
from collections.abc import Callable, Sequence
from typing import Final

import psycopg
from psycopg import errors, sql

from kite_memory.errors import KiteError, StateNewer
from kite_memory.recall.embedders.embedder import Space
from kite_memory.team.postgres.connections import ROLE, Connection, SchemaMissing, connect, unavailable
from kite_memory.team.postgres.schema import MIGRATIONS, PERSONS_SINCE, VERSION

_SET_UP: Final = "`kmem serve --store URL --migrate` does it, as the database's owner"
_TURN_SECONDS: Final = 0.1
_ONE_AT_A_TIME: Final = 0x6B_69_74_65
"""The advisory lock's number: «kite»."""


class NotPermitted(KiteError):
    """The user of the database may not do what setting it up takes."""


def migrate(
    url: str,
    *,
    spaces: Sequence[Space] = (),
    password: str = "",
    to: int = VERSION,
    tell: Callable[[str], None] = lambda line: None,
) -> int:
    """The version found before. Several may be at it at once: one does it, the others find it done.

    ``tell`` is given a line for each person whose what was global for all has become.

    For each of ``spaces`` there is an index afterwards; building one over many rows takes its time, and hinders nobody.
    """
    try:
        with connect(url, password) as connection:
            _take_turn(connection)
            try:
                before = _forward(connection, to, tell)
                if to >= 2:
                    for space in spaces:
                        _index(connection, space)
            finally:
                connection.execute("SELECT pg_advisory_unlock(%s)", (_ONE_AT_A_TIME,))
    except errors.InsufficientPrivilege as error:
        raise NotPermitted(
            f"this user of the database may not set it up: {error.diag.message_primary}",
            hint="migrate as the database's owner, one that may create roles; serving needs neither",
        ) from error
    except psycopg.OperationalError as error:
        raise unavailable(error) from error
    return before


def check(connection: Connection) -> None:
    """Raises `SchemaMissing`, `StateNewer` or `NotPermitted` where this version cannot work with what is there."""
    row = connection.execute(
        "SELECT rolsuper OR rolbypassrls AS unbound, pg_has_role(rolname, 'MEMBER') AS ours FROM pg_roles WHERE rolname = %s",
        (ROLE,),
    ).fetchone()
    if row is None:
        raise SchemaMissing("the team's database is not set up", hint=_SET_UP)
    if not row["ours"]:
        raise NotPermitted(f"this user of the database may not act as {ROLE}", hint=f"as its owner: GRANT {ROLE} TO <user>")
    if row["unbound"]:
        raise NotPermitted(f"the role {ROLE} is above the database's policies", hint=f"ALTER ROLE {ROLE} NOSUPERUSER NOBYPASSRLS")
    with connection.transaction():
        connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(ROLE)))
        found = _version(connection)
    if found > VERSION:
        raise StateNewer(f"the team's database is of version {found}, newer than this kmem", hint="update kmem")
    if found < VERSION:
        is_old = f"the team's database is of version {found}, this kmem needs {VERSION}"
        raise SchemaMissing(is_old if found else "the team's database is not set up", hint=_SET_UP)


def _take_turn(connection: Connection) -> None:
    """Asked for again and again: who waits within a statement is waited for by an index that is built beside the writers."""
    while True:
        row = connection.execute("SELECT pg_try_advisory_lock(%s) AS ours", (_ONE_AT_A_TIME,)).fetchone()
        if row is not None and row["ours"]:
            return
        time.sleep(_TURN_SECONDS)


def _version(connection: Connection) -> int:
    row = connection.execute("SELECT to_regclass('kite.migration') AS there").fetchone()
    if row is None or row["there"] is None:
        return 0
    found = connection.execute("SELECT coalesce(max(version), 0) AS version FROM kite.migration").fetchone()
    return int(found["version"]) if found else 0


def _forward(connection: Connection, to: int, tell: Callable[[str], None]) -> int:
    before = _version(connection)
    if before > VERSION:
        raise StateNewer(f"the team's database is of version {before}, newer than this kmem", hint="update kmem")
    for number in range(before + 1, to + 1):
        with connection.transaction():
            if number == 1:
                _prepare(connection)
            connection.execute(MIGRATIONS[number - 1].format(vectors=_vectors(connection)).encode())
            if number == PERSONS_SINCE:
                _tell_whose(connection, tell)
            connection.execute("INSERT INTO kite.migration (version, at) VALUES (%s, now())", (number,))
    return before


def _tell_whose(connection: Connection, tell: Callable[[str], None]) -> None:
    """Within the migration, while its owner still sees all rows."""
    connection.execute("ALTER TABLE kite.note NO FORCE ROW LEVEL SECURITY")
    rows = connection.execute(
        "SELECT tenant, person, count(*) AS count FROM kite.note WHERE scope = 'global'"
        " GROUP BY tenant, person ORDER BY tenant, person"
    ).fetchall()
    connection.execute("ALTER TABLE kite.note FORCE ROW LEVEL SECURITY")
    for row in rows:
        whose = f"{row['person']!r}, who wrote them" if row["person"] else "the server's owner"
        tell(f"{row['count']} global notes and memories of {row['tenant']!r} now belong to {whose}")


def _prepare(connection: Connection) -> None:
    if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone() is None:
        try:
            with connection.transaction():
                connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN NOSUPERUSER NOBYPASSRLS").format(sql.Identifier(ROLE)))
        except (errors.DuplicateObject, errors.UniqueViolation):
            pass  # roles are the whole server's: another database's migration was first
    member = connection.execute("SELECT pg_has_role(%s, 'MEMBER') AS ours", (ROLE,)).fetchone()
    if member is None or not member["ours"]:
        connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(ROLE)))
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    connection.execute("CREATE SCHEMA IF NOT EXISTS kite")
    connection.execute("CREATE TABLE kite.migration (version integer PRIMARY KEY, at timestamptz NOT NULL)")
    connection.execute(sql.SQL("GRANT SELECT ON kite.migration TO {}").format(sql.Identifier(ROLE)))


def _vectors(connection: Connection) -> str:
    row = connection.execute(
        "SELECT quote_ident(nspname) AS name FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace"
        " WHERE extname = 'vector'"
    ).fetchone()
    if row is None:
        raise NotPermitted("the team's database has no pgvector", hint="CREATE EXTENSION vector, 0.8 or later")
    return str(row["name"])


def _index(connection: Connection, space: Space) -> None:
    """Beside the writers. A build that was broken off leaves an index that is never used: away with it first."""
    name = index_name(space)
    state = connection.execute(
        "SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass(%s)", (f'kite."{name}"',)
    ).fetchone()
    if state is not None and state["valid"]:
        return
    if state is not None:
        connection.execute(sql.SQL("DROP INDEX kite.{}").format(sql.Identifier(name)))
    vectors = sql.SQL(_vectors(connection))
    connection.execute(
        sql.SQL(
            "CREATE INDEX CONCURRENTLY {} ON kite.passage USING hnsw"
            " ((embedding::{}.halfvec({})) {}.halfvec_cosine_ops) WITH (m = 16, ef_construction = 64) WHERE space = {}"
        ).format(sql.Identifier(name), vectors, sql.Literal(space.dim), vectors, sql.Literal(space.tag))
    )


def index_name(space: Space) -> str:
    return f"near_{space.tag}"[:63]
