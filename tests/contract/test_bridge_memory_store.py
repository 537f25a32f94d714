"""The store that tests of the bridge run over is held to what it stands for."""

from collections.abc import Callable

import pytest

from kite_memory.model.note import Note
from tests.contract.bridge_store_contract import BridgeStoreContract
from tests.fakes.memory_store import MemoryStore


class TestMemoryStore(BridgeStoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()

    @pytest.fixture
    def put(self, store: MemoryStore) -> Callable[[Note], Note]:
        return store.put
