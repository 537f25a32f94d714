"""The local store over a real vault, ledger and index, with a small embedder; opened as often as a test likes."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from kite_memory.model.note import Note
from kite_memory.paths import asset_folder
from kite_memory.recall.embedder import Embedder
from kite_memory.recall.index import Index
from kite_memory.recall.recall import Recall
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.tools.local_conversations import LocalConversations
from kite_memory.tools.local_state import LocalState
from kite_memory.tools.local_store import LocalStore
from kite_memory.vault import Vault
from tests.fakes.hashing_embedder import HashingEmbedder

START = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def _now() -> datetime:
    return datetime.now(UTC)


@contextmanager
def local_store(
    home: Path,
    *,
    clock: Callable[[], datetime] = _now,
    let_go: Callable[[Note], None] = lambda note: None,
    embedder: Embedder | None = None,
) -> Iterator[LocalStore]:
    state = home / "state"
    vault = Vault(home / "vault", state / "vault.sqlite", clock=clock)
    vault.ensure(Path(asset_folder("vault_template")))
    recall = Recall(
        index=Index(state / "index", embedder=embedder or HashingEmbedder(dim=32)),
        memory=SessionMemory(state / "index" / "shown.sqlite"),
        clock=clock,
    )

    def take_up(paths: Collection[str], *, embed: bool = True) -> None:
        recall.refresh(vault.notes, hint=paths, embed=embed)

    store = LocalStore(
        vault=vault,
        recall=recall,
        state=LocalState(state / "bridge.sqlite"),
        conversations=LocalConversations(vault=vault, folder=state / "conversations", index_notes=take_up),
        index_notes=take_up,
        let_go=let_go,
        clock=clock,
    )
    try:
        yield store
    finally:
        store.close()
        recall.close()
        vault.close()
