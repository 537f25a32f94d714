"""A team's store, opened from the configuration."""

import importlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeGuard

from kite_memory.config import Config
from kite_memory.distill.saving import SaveChecker
from kite_memory.errors import KiteError, UsageError
from kite_memory.keys import keys_beside
from kite_memory.protected import protect_process
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.text.display import age
from kite_memory.tools.argument_parsing import clean
from kite_memory.tools.arguments import MOST_SHOWN, LocalContext
from kite_memory.tools.declarations import FinishedCall, ToolDispatcher, called, observed
from kite_memory.tools.note_tools import all_tools
from kite_memory.tools.store import Asker, StoreUnavailable
from kite_memory.wiring.models import OfflineRules

if TYPE_CHECKING:
    from types import ModuleType

    from kite_memory.team.postgres import AuditEntry, AuditTrail, PostgresStore
    from kite_memory.tools.declarations import Json, Perform


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamBridge:
    """Bridge over a team's store. ``health`` returns why the store does not answer at the moment, or an empty string."""

    perform: "Perform"
    health: Callable[[], str]
    close: Callable[[], None]


def team_bridge(config: Config, store_url: str) -> TeamBridge:
    """Open the bridge over a team's store in this process. Raises `KiteError` if it cannot be opened.

    A ``store_url`` of ``team`` is the store in the configuration.
    """
    postgres = _postgres()
    store = team_store(config, store_url)
    keeping = postgres.Housekeeping(store)
    trail: AuditTrail = postgres.AuditTrail(store.audit.record)
    bridge = ToolDispatcher(all_tools(store, LocalContext(), saving=SaveChecker(rules=OfflineRules()), age=age))

    def close() -> None:
        keeping.close()
        trail.close()
        store.close()

    def health() -> str:
        try:
            store.ping()
        except KiteError as error:
            return str(error)
        return ""

    return TeamBridge(perform=observed(bridge.perform, lambda call: trail.note(audit_entry(call))), health=health, close=close)


def team_store(config: Config, store_url: str) -> "PostgresStore":
    """Open a team's store. Raises `KiteError` if it cannot be opened."""
    postgres = _postgres()
    protect_process(config.file)
    team = config.team
    url = _store_url(config, store_url)
    with _naming(url):
        store: PostgresStore = postgres.open_postgres(
            url,
            embedder=LocalEmbedder(),
            objects=postgres.objects_of(bucket=team.bucket, endpoint=team.endpoint, prefix=team.prefix, region=team.region),
            tenant=team.tenant,
            password=_store_password(config),
            keep_days=team.keep_days,
        )
    return store


def audit_entry(call: FinishedCall) -> "AuditEntry":
    """Return what the audit keeps of a call: who and what, never what was said."""
    from kite_memory.team.postgres import AuditEntry

    tool = called(call.tool)
    given = tool.named(call.arguments) if tool is not None else {}
    taken = tool.takes if tool is not None else ()  # an argument of another name may hold what was said
    arguments = {argument.name: given.get(argument.name) for argument in taken}
    return AuditEntry(
        at=call.at,
        person=call.asker.grant.person or "",
        token=call.asker.grant.name,
        ai=call.asker.ai,
        project=_named(call.result.get("project"), arguments.get("project"), call.asker.project),
        tool=tool.name if tool is not None else _named(call.tool),
        key=_named(*(arguments.get(name) for name in _NAMING), call.result.get("id"), call.result.get("claude_conversation_uuid")),
        outcome=call.outcome,
        took_ms=call.seconds * 1000,
    )


_NAMING = ("key", "note", "notes", "from_session")
"""Arguments that name what a call is about."""


_LONGEST_NAME = 1_000


def _named(*names: object) -> str:
    """Return the first of these names that is one; several in a list together. Secrets are removed, as from what is stored."""
    lines = (", ".join(map(_start, filter(_is_name, each[:MOST_SHOWN]))) if isinstance(each, list) else each for each in names)
    return clean(_start(next(filter(_is_name, lines), "")))[:_LONGEST_NAME]


def _start(name: str) -> str:
    """Return as much as is kept, and what shows whether a secret goes on behind that."""
    return name[: 2 * _LONGEST_NAME]


def _is_name(given: object) -> TypeGuard[str]:
    return isinstance(given, str) and given != ""


@contextmanager
def _naming(url: str) -> Iterator[None]:
    """Add the store's address and the cause to its errors: hidden from agents, but needed by the user who starts a server."""
    try:
        yield
    except StoreUnavailable as error:
        words = str(error.__cause__ or "").strip().splitlines()
        reason = f": {words[0].rpartition('failed: ')[2]}" if words else ""
        host = url.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2] or "its socket"
        raise StoreUnavailable(f"{error}, at {host}{reason}", hint=error.hint) from error


def migrate_store(config: Config, store_url: str, tell: Callable[[str], None] = lambda line: None) -> None:
    """Update a team's store to this version. Raises `KiteError` if that fails."""
    url = _store_url(config, store_url)
    with _naming(url):
        _postgres().migrate(url, spaces=[LocalEmbedder().space], password=_store_password(config), tell=tell)


def _postgres() -> "ModuleType":
    try:
        return importlib.import_module("kite_memory.team.postgres")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("kite_memory"):
            raise
        raise UsageError("a team's store needs more packages", hint="install `kite-memory[team]`") from error


def _store_url(config: Config, named: str) -> str:
    url = config.team.store if named == "team" else named
    scheme, is_url, _ = url.partition("://")
    if not is_url:
        raise UsageError("a team's store is named by a URL", hint="as postgresql://user@host/database, or `team` as [team] says")
    if scheme not in ("postgresql", "postgres"):
        raise UsageError(f"a team's store is PostgreSQL, and {scheme!r:.40} is not", hint="as postgresql://user@host/database")
    return url


def _store_password(config: Config) -> str:
    """Return the stored password, or an empty string: PostgreSQL's library reads the environment's itself."""
    found = keys_beside(config.file).find("team")
    return found.value if found and found.place != "environment" else ""


_HEALTH_SECONDS = 1.0
_LONGEST_PAUSE = 10.0


class Served(Protocol):
    """What is served. ``starting`` returns why nothing can be answered yet, ``health`` why nothing can be answered now."""

    def perform(self, tool: str, arguments: "Json", asker: Asker) -> "Json": ...

    def starting(self) -> str: ...

    def health(self) -> str: ...

    def close(self) -> None: ...


class RetryingTeamStore:
    """A team's store that may start later: opened again until it answers, at most ten seconds apart.

    Raises what ``open`` raises at first, unless the store merely does not answer: waiting does not correct a wrong URL.
    """

    def __init__(self, open: Callable[[], "TeamBridge"], *, tell: Callable[[str], None], first: float = 0.5) -> None:
        self._open = open
        self._tell = tell
        self._stop = threading.Event()
        self._reason = ""
        self._checking = threading.Lock()
        self._checked = float("-inf")
        self._failure = ""
        self._bridge: TeamBridge | None = None
        self._trying: threading.Thread | None = None
        try:
            self._bridge = open()
        except StoreUnavailable as error:
            self._not_yet(error)
            self._trying = threading.Thread(target=self._try_again, args=(first,), name="open-store", daemon=True)
            self._trying.start()

    def perform(self, tool: str, arguments: "Json", asker: Asker) -> "Json":
        if self._bridge is None:
            raise StoreUnavailable(self._reason, hint="try again in a moment")
        return self._bridge.perform(tool, arguments, asker)

    def starting(self) -> str:
        return "" if self._bridge is not None else self._reason

    def health(self) -> str:
        """Return why the store does not answer, or an empty string.

        It is checked once a second at most and by one thread at a time; other callers get the last result.
        """
        if self._bridge is None:
            return self._reason
        if self._checking.acquire(blocking=False):
            try:
                if time.monotonic() - self._checked > _HEALTH_SECONDS:
                    self._failure = self._bridge.health()
                    self._checked = time.monotonic()
            finally:
                self._checking.release()
        return self._failure

    def close(self) -> None:
        self._stop.set()
        if self._trying is not None:
            self._trying.join(timeout=30)
        if self._bridge is not None:
            self._bridge.close()

    def _try_again(self, pause: float) -> None:
        while not self._stop.wait(pause):
            pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                self._bridge = self._open()
            except KiteError as error:
                self._not_yet(error)
            except Exception as error:  # noqa: BLE001 - the edge of a thread
                self._not_yet(KiteError(f"internal error: {type(error).__name__}: {error}"))
            else:
                self._tell("the team's store answers; calls are answered from now on")
                return

    def _not_yet(self, error: KiteError) -> None:
        """Print which server does not answer and why; clients get only the store's public message."""
        public = error.__cause__ if isinstance(error.__cause__, KiteError) else error
        reason = f"{public}; trying again until it does"
        if reason != self._reason:
            self._tell(f"{error}; trying again until it does. Until then calls are answered with 503, as is /healthz")
        self._reason = reason
