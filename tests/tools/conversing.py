"""The tools of conversations and notes over a real vault, index and gate, as wiring joins them."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from kite_memory.distill.offline import OfflineExtractor
from kite_memory.distill.saving import SaveChecker
from kite_memory.paths import asset_folder
from kite_memory.recall.embedder import Embedder
from kite_memory.recall.index import Index
from kite_memory.recall.recall import Recall
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.text.display import age
from kite_memory.tools import conversation_tools, note_tools
from kite_memory.tools.declarations import ToolDispatcher
from kite_memory.tools.local_context import LocalContext
from kite_memory.tools.local_conversations import LocalConversations
from kite_memory.tools.local_state import LocalState
from kite_memory.tools.local_store import LocalStore
from kite_memory.tools.store import OWNER, Asker, Grant, Store
from kite_memory.vault import Vault
from tests.fakes.hashing_embedder import HashingEmbedder

Json = dict[str, Any]
START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
UUID = "0b9a9c1e-2f3d-4c55-9a6b-7d8e9f001122"
ELSE = "5e0f3b52-9f7c-4d0e-8a3a-112233445566"

QUEUE: Json = {
    "claude_conversation_uuid": UUID,
    "source": "claude_code",
    "project": "mycelia",
    "conversation_type": "single_topic",
    "topic": "Job queue storage",
    "categories": ["database", "queue"],
    "decisions": [
        {"decision": "PostgreSQL for the job queue", "reasoning": "concurrent workers need row-level locking"},
        {"decision": "SQLite for the job queue", "reasoning": "its single writer stalled the workers", "status": "rejected"},
    ],
    "open_questions": ["How long are finished jobs kept before they are deleted?"],
    "related_entities": ["PostgreSQL", "SQLite"],
    "summary": "The workers of the job queue stalled on SQLite's lock, so the queue moves to PostgreSQL.",
    "full_transcript": "User: why do the workers stall?\n\nAssistant: SQLite has a single writer; PostgreSQL locks rows.",
}
SEVERAL: Json = {
    "claude_conversation_uuid": ELSE,
    "source": "gemini_cli",
    "project": "orchard",
    "conversation_type": "multi_topic",
    "overall_summary": "A week of work on the orchard's irrigation and its harvest calendar.",
    "cross_topic_insights": ["Both the valves and the calendar wait for the same weather forecast."],
    "topics": [
        {
            "topic": "Irrigation valves",
            "summary": "The valves of the north field open twice a day.",
            "decisions": [{"decision": "Solenoid valves in the north field", "reasoning": "they close without power"}],
            "related_entities": ["Rainbird"],
        },
        {
            "topic": "Harvest calendar",
            "categories": ["planning"],
            "summary": "The calendar is drawn from blossom dates.",
            "decisions": [{"decision": "Blossom dates drive the harvest calendar", "reasoning": "ripeness follows them by weeks"}],
            "open_questions": ["Who enters the blossom dates of the quince trees?"],
        },
    ],
}


class Clock:
    """A second later each time it is asked."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@dataclass
class Conversing:
    """``asker`` is who calls, if no one else is named."""

    store: Store
    vault: Vault
    recall: Recall
    kept: LocalConversations
    folder: Path
    bridge: ToolDispatcher
    asker: Asker = field(default_factory=lambda: Asker(grant=OWNER, ai="claude"))

    def call(self, tool: str, *, by: Grant | None = None, project: str = "", **arguments: Any) -> Json:
        asker = Asker(grant=by, ai="claude") if by is not None else self.asker
        named = {"project": project} if project else {}
        return self.bridge.perform(tool, named | arguments, asker)

    def save(self, record: Json, *, by: Grant | None = None, **changes: Any) -> Json:
        arguments = {name: value for name, value in (record | changes).items() if value is not None}
        return self.call("save-conversation", by=by, **arguments)

    def context(self, query: str, *, by: Grant | None = None, **arguments: Any) -> str:
        return str(self.call("get-context", by=by, query=query, **arguments)["text"])

    def files(self) -> dict[str, str]:
        """Every note that is not of the template, by its path."""
        return {known.path: (self.vault.root / known.path).read_text() for known in self.vault.known.all() if known.id}


def tools_over(store: Store, near: LocalContext = LocalContext(), clock: Callable[[], datetime] | None = None) -> ToolDispatcher:  # noqa: B008 - frozen
    saving = SaveChecker(rules=OfflineExtractor())
    clock = clock or Clock()
    return ToolDispatcher(
        {
            **conversation_tools.tools(store, near, gate=saving, decompose=saving.decompose, clock=clock),
            **note_tools.tools(store, near, gate=saving, age=age, clock=clock),
        }
    )


@contextmanager
def conversing(
    home: Path,
    *,
    near: LocalContext = LocalContext(),  # noqa: B008 - frozen
    embedder: Embedder | None = None,
    step: Callable[[str], None] = lambda doing: None,
) -> Iterator[Conversing]:
    """Lives in ``home``; opening it again goes on where it was."""
    state = home / "state"
    clock = Clock()
    vault = Vault(home / "vault", state / "vault.sqlite", step=step, clock=clock)
    vault.ensure(Path(asset_folder("vault_template")))
    recall = Recall(
        index=Index(state / "index", embedder=embedder or HashingEmbedder(dim=64)),
        memory=SessionMemory(state / "index" / "shown.sqlite"),
    )
    recall.refresh(vault.notes)

    def take_up(paths: Collection[str], *, embed: bool) -> None:
        recall.refresh(vault.notes, hint=paths)

    kept = LocalConversations(vault=vault, folder=state / "conversations", index_notes=partial(take_up, embed=True))
    own = LocalState(state / "bridge.sqlite")
    store = LocalStore(vault=vault, recall=recall, state=own, conversations=kept, index_notes=take_up, clock=clock)
    try:
        yield Conversing(
            store=store,
            vault=vault,
            recall=recall,
            kept=kept,
            folder=state / "conversations",
            bridge=tools_over(store, near, clock),
        )
    finally:
        store.close()
        recall.close()
        vault.close()
