"""The team's store over a real PostgreSQL."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from kite_memory.bridge.access import OWNER
from kite_memory.bridge.postgres import Objects, migrate, notes, open_postgres
from kite_memory.bridge.postgres.connections import Connections
from kite_memory.bridge.postgres.finding import indexed
from kite_memory.bridge.postgres.rows import note_row
from kite_memory.bridge.store import Store
from kite_memory.model.note import Note
from kite_memory.recall.hashing import HashingEmbedder
from tests.contract.bridge_store_contract import BridgeStoreContract
from tests.fakes.object_shelf import ObjectShelf
from tests.fakes.postgres_server import postgres_server

EMBEDDER = HashingEmbedder()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgres_server() as server:
        url = server.database()
        migrate(url, spaces=[EMBEDDER.space])
        yield url


class TestPostgresStore(BridgeStoreContract):
    not_put = frozenset({"key"})

    @pytest.fixture
    def tenant(self) -> str:
        """Each test is a tenant of its own among the others in one database, which is a test in itself."""
        return uuid.uuid4().hex

    @pytest.fixture
    def store(self, url: str, tenant: str) -> Iterator[Store]:
        objects: Objects = ObjectShelf()
        store = open_postgres(url, embedder=EMBEDDER, objects=objects, tenant=tenant)
        yield store
        store.close()

    @pytest.fixture
    def put(self, url: str, tenant: str) -> Iterator[Callable[[Note], Note]]:
        connections = Connections(url, tenant=tenant)

        def put(note: Note) -> Note:
            index = indexed(note, EMBEDDER)
            return connections.run(OWNER, lambda cursor: notes.put(cursor, tenant, note_row(note), index))

        yield put
        connections.close()

    @pytest.fixture
    def beside(self, url: str, tenant: str) -> Iterator[Store]:
        store = open_postgres(url, embedder=EMBEDDER, tenant=tenant)
        yield store
        store.close()
