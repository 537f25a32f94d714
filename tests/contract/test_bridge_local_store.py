"""The vault as the bridge's store, over the real vault, index and ledger."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kite_memory.model.note import Create, Note
from kite_memory.tools.store import Store
from kite_memory.vault import Vault
from tests.contract.bridge_store_contract import BridgeStoreContract
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.tools.local_stores import local_store


class TestLocalStore(BridgeStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        with local_store(tmp_path, embedder=HashingEmbedder()) as store:
            yield store

    @pytest.fixture
    def put(self, store: Store, tmp_path: Path) -> Callable[[Note], Note]:
        def put(note: Note) -> Note:
            with Vault(tmp_path / "vault", tmp_path / "state" / "vault.sqlite") as vault:
                vault.planner.carry_out([Create(note=note, because="")])
            return note

        return put

    @pytest.fixture
    def beside(self, store: Store, tmp_path: Path) -> Iterator[Store]:
        with local_store(tmp_path, embedder=HashingEmbedder()) as beside:
            yield beside
