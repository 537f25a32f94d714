"""All tools over one store."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from kite_memory.model.record import Chunk, Record
from kite_memory.tools import asking, conversations, local_state, memories, resuming
from kite_memory.tools.bridge import Tool
from kite_memory.tools.local_context import LocalContext
from kite_memory.tools.store import Store


class SavingChecks(conversations.QualityGate, Protocol):
    """Interface for checking what agents save and for distilling a transcript; see `distill.saving`."""

    def decompose(self, chunk: Chunk) -> tuple[Record, str]: ...


def _now() -> datetime:
    return datetime.now(UTC)


def tools_of(
    store: Store, near: LocalContext, *, saving: SavingChecks, age: asking.Age, clock: Callable[[], datetime] = _now
) -> dict[str, Tool]:
    """Return all tools. ``age`` parses an age or a date as people write it."""
    return {
        **conversations.tools(store, near, gate=saving, decompose=saving.decompose, clock=clock),
        **memories.tools(store, near, clock=clock),
        **local_state.tools(store, near, clock=clock),
        **resuming.tools(store, near, clock=clock),
        **asking.tools(store, near, gate=saving, age=age, clock=clock),
    }
