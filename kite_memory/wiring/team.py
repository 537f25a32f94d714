"""A team's store, opened from the configuration."""

import importlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kite_memory.config import Config
from kite_memory.distill.saving import SaveChecker
from kite_memory.errors import KiteError, UsageError
from kite_memory.keys import keys_beside
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.text.ages import age
from kite_memory.tools import declarations
from kite_memory.tools.declarations import ToolDispatcher
from kite_memory.tools.local_context import LocalContext
from kite_memory.tools.note_tools import all_tools
from kite_memory.tools.store import Asker, StoreUnavailable
from kite_memory.wiring.models import OfflineRules

if TYPE_CHECKING:
    from types import ModuleType

    from kite_memory.team.postgres import AuditTrail, PostgresStore
    from kite_memory.tools.declarations import Json, Perform


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamBridge:
    """Bridge over a team's store. ``health`` returns why the store does not answer at the moment, or an empty string."""

    perform: "Perform"
    health: Callable[[], str]
    close: Callable[[], None]


def bridge_of(config: Config, store_url: str) -> "tuple[Perform, Callable[[], None]]":
    """Return `team_bridge`'s operation and the function that closes it."""
    bridge = team_bridge(config, store_url)
    return bridge.perform, bridge.close


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

    return TeamBridge(perform=recorded(bridge.perform, trail), health=health, close=close)


def team_store(config: Config, store_url: str) -> "PostgresStore":
    """Open a team's store. Raises `KiteError` if it cannot be opened."""
    postgres = _postgres()
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


def recorded(perform: "Perform", trail: "AuditTrail") -> "Perform":
    """Return the operation with each call noted in the audit: who and what, never what was said."""
    from kite_memory.team.postgres import AuditEntry

    def performed(tool: str, arguments: "Json", asker: Asker) -> "Json":
        at, began, outcome, result = datetime.now(UTC), time.perf_counter(), "failed: a bug", {}
        try:
            result = perform(tool, arguments, asker)
            outcome = "ok"
            return result
        except KiteError as error:
            outcome = str(declarations.error_json(error)["kind"])
            raise
        finally:
            trail.note(
                AuditEntry(
                    at=at,
                    person=asker.grant.person or "",
                    token=asker.grant.name,
                    ai=asker.ai,
                    project=asker.project,
                    tool=tool.replace("-", "_"),
                    key=_key_of(arguments, result),
                    outcome=outcome,
                    took_ms=(time.perf_counter() - began) * 1000,
                )
            )

    return performed


def _key_of(arguments: "Json", result: "Json") -> str:
    """Return what a call was about, by its name alone: a memory's key, a note's name, or the id of what it made."""
    names = (arguments.get("key"), arguments.get("note"), result.get("id"), result.get("claude_conversation_uuid"))
    return next((each for each in names if isinstance(each, str)), "")


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
