"""Operations that need only the timeline or the vault, for a command without a daemon.

Opening all `Services` takes longer than such a query, so modules are imported only when needed.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import Any

from kite_memory.config import Config

_OF_THE_TIMELINE = frozenset({"timeline", "resume", "threads", "how", "fix", "blame", "became"})
_OF_THE_VAULT = frozenset({"show", "open", "notes", "around", "graph"})


def is_light(op: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether `perform_light` can perform the operation: not one that a model is asked to reword."""
    return op in _OF_THE_TIMELINE | _OF_THE_VAULT and not arguments.get("polish")


def perform_light(config: Config, op: str, arguments: Mapping[str, Any]) -> Any:
    """Perform the operation and return its JSON value."""
    with ExitStack() as opened:
        operations = _timeline_queries if op in _OF_THE_TIMELINE else _vault_queries
        return operations(config, op, arguments, opened)[op](**arguments)


def _timeline_queries(config: Config, op: str, arguments: Mapping[str, Any], opened: ExitStack) -> Mapping[str, Callable[..., Any]]:
    from kite_memory.app.timeline_queries import NoShelf, TimelineQueries
    from kite_memory.timeline.store import Timeline

    timeline = opened.enter_context(closing(Timeline(config.state / "timeline.sqlite")))
    if op != "timeline" or not arguments.get("session"):
        return TimelineQueries(timeline=timeline, vault=NoShelf()).operations()
    from kite_memory.vault import Vault  # imports YAML

    vault = opened.enter_context(Vault(config.vault, config.state / "vault.sqlite"))
    return TimelineQueries(timeline=timeline, vault=vault).operations()


def _vault_queries(config: Config, op: str, arguments: Mapping[str, Any], opened: ExitStack) -> Mapping[str, Callable[..., Any]]:
    from datetime import UTC, datetime
    from functools import partial

    from kite_memory.vault import Vault

    clock = partial(datetime.now, UTC)
    vault = opened.enter_context(Vault(config.vault, config.state / "vault.sqlite"))
    if op in ("show", "open", "notes", "around"):
        from kite_memory.app.note_view import NoteView

        return NoteView(vault=vault, clock=clock).operations()
    from kite_memory.app.vault_pages import VaultPages

    return VaultPages(vault=vault, clock=clock).operations()
