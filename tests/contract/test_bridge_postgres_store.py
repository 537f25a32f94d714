"""The team's store over a real PostgreSQL."""

import uuid
from collections.abc import Callable, Iterator, Sequence

import pytest

from kite_memory.errors import EmbedderUnavailable
from kite_memory.model.note import Note, NoteKind, Scope
from kite_memory.recall.embedder import Purpose, Vectors
from kite_memory.team.postgres import Objects, migrate, notes, open_postgres
from kite_memory.team.postgres.connections import Connections
from kite_memory.team.postgres.finding import indexed
from kite_memory.team.postgres.rows import note_row
from kite_memory.tools.store import OWNER, Grant, MemoryQuery, NoteQuery, Store
from tests.contract.bridge_store_contract import CHAT, GLOBAL, SHARED, BridgeStoreContract, conversation
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.fakes.object_shelf import ObjectShelf
from tests.fakes.postgres_server import postgres_server

EMBEDDER = HashingEmbedder()


class Speechless(HashingEmbedder):
    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        raise EmbedderUnavailable("not now")


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

    def test_each_person_has_global_memories_of_their_own(self, store: Store) -> None:
        """Of one name, in one tenant; every token of a person reaches the same, and what is shared everybody reaches."""
        ada, laptop, ben = (Grant(name=name, person=person) for name, person in (("ada", "ada"), ("laptop", "ada"), ("ben", "ben")))
        for grant, editor in ((ada, "helix"), (ben, "ed")):
            assert store.write_memory(grant, "preference.editor", editor, GLOBAL, expected=0).version == 1
            store.remember(grant, f"The editor is {editor}", NoteKind.FACT, GLOBAL)
            saved = store.save_conversation(grant, conversation(CHAT, scope=Scope.GLOBAL, project="", overall=f"Of {editor}."))
            assert not saved.amended
        store.write_memory(laptop, "preference.editor", "helix 2", GLOBAL, expected=1)
        store.write_memory(ben, "team.rule", "squash", SHARED)

        for grant, said, editor in ((ada, "helix 2", "helix"), (laptop, "helix 2", "helix"), (ben, "ed", "ed")):
            assert [memory.value for memory in store.memories(grant, MemoryQuery())] == [said, "squash"]
            found = store.search(grant, NoteQuery(text="the editor", limit=50))
            assert [each.note.body for each in found if each.note.body.startswith("The editor")] == [f"The editor is {editor}"]
            kept = store.conversation(grant, CHAT)
            assert kept is not None
            assert kept.overall == f"Of {editor}."
        assert [each.value for each in store.versions(ada, "preference.editor", GLOBAL)] == ["helix 2", "helix"]
        assert store.delete_memory(ben, "preference.editor", GLOBAL)
        assert store.memories(ada, MemoryQuery(pattern="preference.editor"))[0].value == "helix 2"

    def test_housekeeping_keeps_notes_of_every_person_findable(self, url: str, tenant: str) -> None:
        ada = Grant(name="ada", person="ada")
        silent = open_postgres(url, embedder=Speechless(), tenant=tenant)
        silent.write_memory(ada, "preference.tree", "larches", GLOBAL)
        silent.close()
        store = open_postgres(url, embedder=EMBEDDER, tenant=tenant)

        assert store.catch_up() == 1

        assert [found.note.key for found in store.search(ada, NoteQuery(text="larches"))] == ["preference.tree"]
        assert store.search(Grant(name="ben", person="ben"), NoteQuery(text="larches")) == []
        store.close()

    @pytest.fixture
    def beside(self, url: str, tenant: str) -> Iterator[Store]:
        store = open_postgres(url, embedder=EMBEDDER, tenant=tenant)
        yield store
        store.close()
