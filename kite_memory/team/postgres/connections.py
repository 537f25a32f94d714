"""Transactions on PostgreSQL, each under one grant's settings and the application's role, limited in time, and repeated where safe.

There is a pool of its own instead of `psycopg_pool`, which connects in the background with growing pauses, so that calls go on
failing for seconds after a server is back. Here the caller that needs a connection opens it.
"""

import json
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.rows import dict_row

from kite_memory.errors import KiteError, UsageError
from kite_memory.model.note import Scope
from kite_memory.text.quoting import mended
from kite_memory.tools.store import Grant, NotAllowed, StoreUnavailable, Unsure

ROLE: Final = "kite_app"
"""The role of every transaction, whatever the login. It owns nothing, and every policy applies to it."""

Row = dict[str, Any]
Connection = psycopg.Connection[Row]
Cursor = psycopg.Cursor[Row]
_T = TypeVar("_T")

_ATTEMPTS = 3
_PAUSE = 0.1
_CONNECT_SECONDS = 4
_TURNED_AWAY = re.compile(r"authentication failed|no password supplied|pg_hba\.conf|role \S+ does not exist")
_MOVED_UNDER_US = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation)
"""Conflicts with a concurrent transaction; repeating the work sees its result."""


class SchemaMissing(KiteError):
    """The database answers, but has no tables of this application, or not those of this version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Time limits in seconds: for a free connection, and for one statement."""

    connection: float = 5.0
    statement: float = 10.0


class Connections:
    """Pool of connections. Thread-safe. A connection serves one transaction at a time; at most ``most`` are in use."""

    def __init__(self, url: str, *, tenant: str, password: str = "", most: int = 16, patience: Patience | None = None) -> None:
        self._url = url
        self._tenant = tenant
        self._password = password
        self._patience = patience or Patience()
        self._room = threading.BoundedSemaphore(most)
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._closed = False

    @property
    def tenant(self) -> str:
        return self._tenant

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def connect(self) -> Connection:
        """Open a connection outside the pool. Raises `psycopg.Error`."""
        return connect(self._url, self._password, tcp_user_timeout=int(self._patience.statement * 1000) + 5000)

    def run(self, grant: Grant, work: Callable[[Cursor], _T]) -> _T:
        """Run ``work`` in a transaction, commit it and return its result; on an error nothing is written.

        ``work`` may be called again in a new transaction.
        """
        if not self._room.acquire(timeout=self._patience.connection):
            raise StoreUnavailable("the team's store is busy: no connection became free", hint="try again in a moment")
        try:
            for attempt in range(1, _ATTEMPTS + 1):
                if attempt > 1:
                    time.sleep(_PAUSE * 2 ** (attempt - 2) * random.uniform(0.5, 1.5))  # noqa: S311 - spreads, hides nothing
                last = attempt == _ATTEMPTS
                try:
                    return self._once(grant, work)
                except _MOVED_UNDER_US as error:
                    if last:
                        raise StoreUnavailable("others kept writing the same thing", hint="try again in a moment") from error
                except errors.QueryCanceled as error:
                    raise StoreUnavailable(
                        f"the team's store took longer than {self._patience.statement:g} seconds", hint="try again, or ask for less"
                    ) from error
                except errors.ProgramLimitExceeded as error:
                    raise UsageError("a name in it is too long for the team's database", hint="use a shorter name") from error
                except psycopg.OperationalError as error:
                    if last:
                        raise unavailable(error) from error
                except psycopg.Error as error:
                    raise _ours(error) from error
            raise AssertionError("the last attempt returns or raises")
        finally:
            self._room.release()

    def _once(self, grant: Grant, work: Callable[[Cursor], _T]) -> _T:
        connection = self._taken()
        try:
            with connection.cursor() as cursor:
                cursor.execute(self._opening(grant))
                while cursor.nextset():
                    pass
                result = work(cursor)
                try:
                    cursor.execute("COMMIT")
                except psycopg.OperationalError as error:
                    raise Unsure(
                        "the team's store went away while this was being committed: it was written whole, or not at all",
                        hint="read before you write it again",
                    ) from error
        except BaseException:
            self._ended(connection)
            raise
        self._put_back(connection)
        return result

    def _taken(self) -> Connection:
        with self._lock:
            if self._closed:
                raise StoreUnavailable("the team's store is closed")
            if self._idle:
                return self._idle.pop()
        return self.connect()

    def _put_back(self, connection: Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _ended(self, connection: Connection) -> None:
        """Roll back and keep the connection; if the server is gone, close it and all idle ones, which are lost as well."""
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            with self._lock:
                idle, self._idle = self._idle, []
            for each in (connection, *idle):
                each.close()
        else:
            self._put_back(connection)

    def _opening(self, grant: Grant) -> sql.Composed:
        """Return the statements that open a transaction, in one message.

        All settings end with the transaction, since a pooler may give the session to another client next.
        """
        return sql.SQL("BEGIN; SET LOCAL ROLE {}; SELECT {}").format(
            sql.Identifier(ROLE),
            sql.SQL(", ").join(
                sql.SQL("set_config({}, {}, true)").format(sql.Literal(name), sql.Literal(value))
                for name, value in settings_of(grant, self._tenant, self._patience.statement).items()
            ),
        )


def connect(url: str, password: str, **parameters: int) -> Connection:
    """Open a connection. Raises `UsageError` for an invalid URL, and `psycopg.Error` otherwise."""
    given: dict[str, Any] = {**parameters, **({"password": password} if password else {})}
    try:
        return psycopg.connect(
            url,
            autocommit=True,
            row_factory=dict_row,
            prepare_threshold=None,  # plans depend on the grant, and poolers share sessions
            connect_timeout=_CONNECT_SECONDS,
            application_name="kite-memory",
            **given,
        )
    except psycopg.ProgrammingError:  # its message may quote the URL with the password
        raise UsageError("invalid store URL", hint="write it as postgresql://user@host/database") from None


def settings_of(grant: Grant, tenant: str, statement_seconds: float) -> dict[str, str]:
    """Return a grant as the settings that the database's policies read."""
    scopes: Sequence[Scope] = sorted(grant.scopes) if grant.scopes is not None else list(Scope)
    return {
        "kite.tenant": tenant,
        "kite.scopes": ",".join(scopes),
        "kite.all_projects": "on" if grant.projects is None else "off",
        "kite.projects": json.dumps(sorted(map(storable, grant.projects or ())), ensure_ascii=False),
        "kite.writes": "on" if grant.write else "off",
        "kite.person": storable(grant.person or ""),
        "kite.everybody": "on" if grant.person is None else "off",
        "statement_timeout": str(int(statement_seconds * 1000)),
        "timezone": "UTC",
        "jit": "off",  # compiling these queries takes longer than running them
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.ef_search": "100",
    }


def storable(text: str) -> str:
    """Replace what PostgreSQL cannot store (NUL, unpaired surrogates); dropping it could make two names equal."""
    return mended(text).replace("\0", "\ufffd")


def unavailable(error: psycopg.Error) -> StoreUnavailable:
    """Return the error without the server's message, which may hold an address."""
    match error:
        case errors.DiskFull():
            return StoreUnavailable("the team's database has no space left", hint="tell the server's administrator")
        case errors.TooManyConnections():
            return StoreUnavailable("the team's database takes no more connections", hint="try again in a moment")
        case _ if _TURNED_AWAY.search(str(error)):  # errors while connecting have no code, only a message
            return StoreUnavailable(
                "the team's store does not know this user or password", hint="`kmem keys set team` keeps the password"
            )
        case _:
            return StoreUnavailable("the team's store does not answer", hint="nothing was written; try again")


def _ours(error: psycopg.Error) -> Exception:
    match error:
        case errors.InsufficientPrivilege():
            return NotAllowed("this token does not reach that far", hint="`kmem token create` says what a token reaches")
        case errors.ReadOnlySqlTransaction():
            return StoreUnavailable("the team's database only reads just now", hint="name the primary in the store's URL")
        case errors.UndefinedTable() | errors.UndefinedFunction() | errors.InvalidSchemaName() | errors.UndefinedObject():
            return SchemaMissing("the team's database is not set up", hint="`kmem serve --store URL --migrate` does it")
        case _:
            return error
