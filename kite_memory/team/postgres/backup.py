"""Backup of one tenant to a file, and its restore into an empty one, with the rights of serving alone.

`pg_dump` needs a role above the policies, which not every provider gives, and takes all tenants. The file is gzip with a line of
JSON for each row. What finds notes (words and vectors) is not in it: it is made of the notes again.
"""

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from kite_memory.errors import KiteError, UsageError
from kite_memory.system.private_files import sync_file
from kite_memory.team.postgres.connections import ROLE, Connections, Cursor, Row, settings_of, unavailable
from kite_memory.team.postgres.migrating import GUARDED, VERSION
from kite_memory.team.postgres.rows import encoded
from kite_memory.tools.store import EVERYBODY

_TABLES: Final = (*GUARDED, "audit")
_AT_ONCE: Final = 500
_LONGEST_LINE: Final = 64 << 20
_FORMAT: Final = 1


class BackupDamaged(KiteError):
    """The file is no backup, or not a whole one."""


def back_up(connections: Connections, file: Path) -> dict[str, int]:
    """Write the tenant to a new file, as it is at one moment, and return the number of rows of each table.

    Raises `UsageError` if the file exists. A file that is not finished is removed.
    """
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UsageError(f"{file} exists already", hint="name a new file") from None
    try:
        with os.fdopen(handle, "wb") as raw:
            with (
                gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as archive,
                _transaction(connections, "REPEATABLE READ READ ONLY") as cursor,
            ):
                counts = _write(cursor, connections.tenant, archive)
            raw.flush()
            sync_file(raw.fileno())
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    return counts


def _write(cursor: Cursor, tenant: str, archive: "gzip.GzipFile") -> dict[str, int]:
    counts = dict.fromkeys(_TABLES, 0)
    archive.write(_line({"kite_backup": _FORMAT, "schema": VERSION}))
    for table in _TABLES:
        name = sql.Identifier(table)
        cursor.execute(
            sql.SQL("DECLARE {0} CURSOR FOR SELECT row_to_json({0})::text AS row FROM kite.{0} WHERE tenant = {1}").format(
                name, sql.Literal(tenant)
            )
        )
        while rows := cursor.execute(sql.SQL("FETCH {} FROM {}").format(sql.Literal(_AT_ONCE), name)).fetchall():
            for row in rows:
                # a row keeps the database's own JSON, which may hold escapes that Python would change
                archive.write(f'{{"table":"{table}","row":{row["row"]}}}'.replace("\n", " ").encode() + b"\n")
            counts[table] += len(rows)
        cursor.execute(sql.SQL("CLOSE {}").format(name))
    archive.write(_line({"end": counts}))
    return counts


def restore(connections: Connections, file: Path, own_copy: Callable[[str], str]) -> dict[str, int]:
    """Read a backup into the tenant, all of it or nothing, and return the number of rows of each table.

    ``own_copy`` returns the name by which the tenant refers to an object.

    Raises `UsageError` if the tenant holds anything, and `BackupDamaged`.
    """
    try:
        with _transaction(connections, "READ COMMITTED") as cursor:
            for table in GUARDED:
                found = cursor.execute(
                    sql.SQL("SELECT 1 FROM kite.{} WHERE tenant = %s LIMIT 1").format(sql.Identifier(table)), (connections.tenant,)
                ).fetchone()
                if found is not None:
                    raise UsageError(f"the tenant {connections.tenant!r} holds something already", hint="restore into an empty one")
            return _read(cursor, connections.tenant, file, own_copy)
    except psycopg.Error as error:
        raise BackupDamaged(
            f"the backup does not fit the tables, or what they hold by now: {error.diag.message_primary}",
            hint="nothing was restored; stop the servers of this tenant, and restore into an empty one",
        ) from error


def _read(cursor: Cursor, tenant: str, file: Path, own_copy: Callable[[str], str]) -> dict[str, int]:
    counts = dict.fromkeys(_TABLES, 0)
    ended: Any = None
    waiting: list[Row] = []
    table = ""
    for parsed in _lines(file):
        match parsed:
            case {"table": str(of), "row": dict(row)} if of in counts and ended is None:
                if of != table or len(waiting) >= _AT_ONCE:
                    _insert(cursor, tenant, table, waiting)
                    waiting, table = [], of
                waiting.append(row | {"object": own_copy(row["object"])} if isinstance(row.get("object"), str) else row)
                counts[of] += 1
            case {"end": dict(ended)}:
                pass
            case _:
                raise BackupDamaged(f"{file} holds a line that no backup has")
    _insert(cursor, tenant, table, waiting)
    if ended != counts:
        raise BackupDamaged(f"{file} is not a whole backup", hint="its end is missing; nothing was restored")
    return counts


def _insert(cursor: Cursor, tenant: str, table: str, rows: Sequence[Row]) -> None:
    """Insert rows with the columns that they have; a column that was added since gets its default.

    The values of JSON columns are encoded here: PostgreSQL would not unpack a row whose JSON holds an escaped NUL.
    """
    if not rows:
        return
    known = {
        row["name"]: row["type"]
        for row in cursor.execute(
            "SELECT attname AS name, atttypid::regtype::text AS type FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
            (f"kite.{table}",),
        )
    }
    columns = [name for name in rows[0] if name != "number"]
    if any(set(row) != set(rows[0]) for row in rows) or not set(columns) <= set(known):
        raise BackupDamaged(f"the backup's {table} has columns that this version does not know")
    cursor.executemany(
        sql.SQL("INSERT INTO kite.{} ({}) VALUES ({})").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.SQL(", ").join(sql.Placeholder() for _ in columns),
        ),
        [
            [tenant if name == "tenant" else encoded(row[name]) if _holds_json(row, name, known) else row[name] for name in columns]
            for row in rows
        ],
    )


def _holds_json(row: Row, name: str, known: Mapping[str, str]) -> bool:
    """Return whether the column holds JSON. A note has no value without a key; a memory's may be JSON's own null."""
    return known[name] == "json" and (row[name] is not None or name != "value" or row["key"] != "")


def _lines(file: Path) -> Iterator[Any]:
    try:
        with gzip.open(file, "rb") as lines:
            head = json.loads(_bounded(lines, file) or b"null")
            if not isinstance(head, dict) or head.get("kite_backup") != _FORMAT:
                raise BackupDamaged(f"{file} is no backup of a team's store")
            if head.get("schema", 0) > VERSION:
                raise BackupDamaged(f"{file} was made by a newer kmem", hint="update kmem")
            while line := _bounded(lines, file):
                yield json.loads(line)
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError, RecursionError) as error:
        raise BackupDamaged(f"{file} cannot be read: {error}", hint="nothing was restored") from error


def _bounded(lines: gzip.GzipFile, file: Path) -> bytes:
    line = lines.readline(_LONGEST_LINE + 1)
    if len(line) > _LONGEST_LINE:
        raise BackupDamaged(f"{file} holds a line that is too long")
    return line


def _line(row: object) -> bytes:
    return json.dumps(row).encode() + b"\n"


@contextmanager
def _transaction(connections: Connections, level: str) -> Iterator[Cursor]:
    """Open a transaction without a time limit that sees all persons of the tenant. Raises `StoreUnavailable`."""
    try:
        with connections.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"BEGIN ISOLATION LEVEL {level}".encode())
            cursor.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(ROLE)))
            for name, value in settings_of(EVERYBODY, connections.tenant, 0).items():
                cursor.execute("SELECT set_config(%s, %s, true)", (name, value))
            yield cursor
            cursor.execute("COMMIT")
    except psycopg.DataError as error:
        raise BackupDamaged(f"the backup does not fit the tables: {error.diag.message_primary}") from error
    except psycopg.OperationalError as error:
        raise unavailable(error) from error
