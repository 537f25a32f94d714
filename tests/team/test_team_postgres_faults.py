"""The database goes away, comes back, stalls, or is full of people: a clear error, nothing half-written, nothing lost."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from kite_memory.errors import UsageError
from kite_memory.model.note import NoteKind
from kite_memory.team.postgres import Housekeeping, Patience, PostgresStore, SchemaMissing, migrate, open_postgres
from kite_memory.team.postgres.connections import Connections
from kite_memory.tools.store import OWNER, MemoryQuery, NoteQuery, StoreUnavailable
from tests.contract.bridge_store_contract import CHAT, ORCHARD, conversation, only, state
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.fakes.object_shelf import ObjectShelf
from tests.fakes.postgres_server import PostgresServer, eventually, postgres_server

EMBEDDER = HashingEmbedder()
WRITERS = 6


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """What is committed is on disk, so that nothing but ourselves could lose it."""
    with postgres_server(fsync="on", synchronous_commit="on", full_page_writes="on") as server:
        yield server


@pytest.fixture
def url(server: PostgresServer) -> str:
    url = server.database()
    migrate(url, spaces=[EMBEDDER.space])
    return url


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    store = open_postgres(url, embedder=EMBEDDER)
    yield store
    store.close()


@contextmanager
def held(url: str, table: str) -> Iterator[psycopg.Connection[Any]]:
    """A table is locked, and others wait for it."""
    with psycopg.connect(url) as connection:
        connection.execute(f"LOCK TABLE kite.{table} IN ACCESS EXCLUSIVE MODE".encode())
        yield connection
        connection.rollback()


def waiting(url: str) -> list[int]:
    """The servers of those who wait for a lock."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        ).fetchall()
    return [pid for (pid,) in found]


def count(url: str, table: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(f"SELECT count(*) FROM kite.{table}".encode()).fetchone()
    return int(row[0]) if row else 0


def test_a_server_that_is_away_is_reported_and_the_next_call_after_its_return_works(
    server: PostgresServer, store: PostgresStore
) -> None:
    store.write_memory(OWNER, "k", 1, ORCHARD)
    calls: tuple[Callable[[], object], ...] = (
        lambda: store.write_memory(OWNER, "k", 2, ORCHARD),
        lambda: store.memories(OWNER, MemoryQuery()),
        lambda: store.search(OWNER, NoteQuery(text="k")),
        lambda: store.save_conversation(OWNER, conversation()),
        lambda: store.save_state(OWNER, state()),
    )
    server.stop()
    try:
        for call in calls:
            with pytest.raises(StoreUnavailable) as result:
                call()
            assert result.value.hint
    finally:
        server.start()

    assert store.write_memory(OWNER, "k", 2, ORCHARD, expected=1).version == 2


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_between_two_calls_is_not_noticed(server: PostgresServer, store: PostgresStore, mode: str) -> None:
    threads = [threading.Thread(target=store.write_memory, args=(OWNER, f"k{number}", number, ORCHARD)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.stop(mode)
    server.start()

    assert len(store.memories(OWNER, MemoryQuery())) == 4


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_writers_over_a_restart_lose_nothing_and_leave_nothing_half_written(
    server: PostgresServer, url: str, store: PostgresStore, mode: str
) -> None:
    stop = threading.Event()
    written: Counter[int] = Counter()
    unsure: Counter[int] = Counter()
    raised: list[BaseException] = []

    def count_up(number: int) -> None:
        key = f"counter{number}"
        try:
            while not stop.is_set():
                seen = store.memories(OWNER, MemoryQuery(pattern=key))
                value, version = (seen[0].value, seen[0].version) if seen else (0, 0)
                assert isinstance(value, int)
                try:
                    store.write_memory(OWNER, key, value + 1, ORCHARD, expected=version)
                    written[number] += 1
                except StoreUnavailable:
                    unsure[number] += 1
        except StoreUnavailable:
            pass
        except BaseException as error:  # noqa: BLE001 - the edge of a thread: the test looks at it
            raised.append(error)

    def forever(number: int) -> None:
        while not stop.is_set() and not raised:
            count_up(number)

    def enough(before: int) -> bool:
        return written.total() > before + 4 * WRITERS or bool(raised)

    threads = [threading.Thread(target=forever, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(2):
            before = written.total()
            assert eventually(partial(enough, before))
            server.stop(mode)
            server.start()
        before = written.total()
        assert eventually(partial(enough, before))
    finally:
        stop.set()
        for thread in threads:
            thread.join()

    assert raised == []
    for number in range(WRITERS):
        memory = only(store, f"counter{number}")
        assert memory.value == memory.version
        assert written[number] <= memory.version <= written[number] + unsure[number]
        kept = store.versions(OWNER, memory.key, ORCHARD)
        assert [each.version for each in kept] == list(range(memory.version, 0, -1))
        assert [each.value for each in kept] == list(range(memory.version, 0, -1))
        assert store.search(OWNER, NoteQuery(text=memory.key))[0].note.id == memory.id
    assert count(url, "words") == count(url, "note") == WRITERS


def test_a_connection_that_dies_in_the_middle_is_another_attempt(url: str, store: PostgresStore) -> None:
    saved: list[object] = []
    with held(url, "passage"):
        saving = threading.Thread(target=lambda: saved.append(store.save_conversation(OWNER, conversation(transcript="all of it"))))
        saving.start()
        assert eventually(lambda: bool(waiting(url)))
        with psycopg.connect(url) as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", (waiting(url)[0],))
    saving.join()

    assert len(saved) == 1
    assert count(url, "conversation") == 1
    assert count(url, "note") == count(url, "words") == 2
    assert store.transcript(OWNER, CHAT) == "all of it"


def test_what_takes_too_long_is_given_up_whole(url: str) -> None:
    store = open_postgres(url, embedder=EMBEDDER, patience=Patience(statement=0.3))
    with held(url, "passage"):
        for call in (
            lambda: store.save_conversation(OWNER, conversation(transcript="all of it")),
            lambda: store.write_memory(OWNER, "k", 1, ORCHARD),
            lambda: store.remember(OWNER, "Geese guard the gate", NoteKind.FACT, ORCHARD),
        ):
            with pytest.raises(StoreUnavailable, match="took longer than"):
                call()

    assert [count(url, table) for table in ("conversation", "note", "words", "memory_version")] == [0, 0, 0, 0]
    assert store.write_memory(OWNER, "k", 1, ORCHARD, expected=0).version == 1
    store.close()


def test_who_finds_every_connection_taken_is_reported(url: str) -> None:
    store = open_postgres(url, embedder=EMBEDDER, connections=1, patience=Patience(connection=0.1))
    with held(url, "note"):
        first = threading.Thread(target=lambda: store.memories(OWNER, MemoryQuery()))
        first.start()
        assert eventually(lambda: bool(waiting(url)))

        with pytest.raises(StoreUnavailable, match="busy"):
            store.memories(OWNER, MemoryQuery())
    first.join()

    assert store.memories(OWNER, MemoryQuery()) == []
    store.close()


def test_a_database_that_only_reads_is_reported(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
    store = open_postgres(url, embedder=EMBEDDER)

    assert store.memories(OWNER, MemoryQuery()) == []
    with pytest.raises(StoreUnavailable, match="only reads"):
        store.write_memory(OWNER, "k", 1, ORCHARD)
    store.close()


def test_a_schema_that_was_dropped_is_reported(url: str, store: PostgresStore) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("DROP SCHEMA kite CASCADE")

    with pytest.raises(SchemaMissing) as result:
        store.memories(OWNER, MemoryQuery())

    assert "--migrate" in result.value.hint


def test_a_closed_store_says_so(url: str) -> None:
    store = open_postgres(url, embedder=EMBEDDER)
    store.memories(OWNER, MemoryQuery())
    store.close()

    with pytest.raises(StoreUnavailable, match="closed"):
        store.memories(OWNER, MemoryQuery())


def test_who_dies_while_writing_leaves_no_lock(url: str, store: PostgresStore) -> None:
    store.write_memory(OWNER, "k", 1, ORCHARD)
    with held(url, "passage"):
        writing = threading.Thread(target=_write_if_possible, args=(store,))
        writing.start()
        assert eventually(lambda: bool(waiting(url)))
        with psycopg.connect(url) as connection:
            for pid in waiting(url):
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
    writing.join()

    assert store.write_memory(OWNER, "k", 3, ORCHARD).value == 3


def _write_if_possible(store: PostgresStore) -> None:
    with suppress(StoreUnavailable):
        store.write_memory(OWNER, "k", 2, ORCHARD)


def listening(url: str) -> int:
    """Return how many connections to the database receive notifications."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE starts_with(query, 'LISTEN ') AND state = 'idle' AND datname = current_database()"
        ).fetchone()
    return found[0] if found else 0


def test_others_changes_are_heard(url: str, store: PostgresStore) -> None:
    heard = Counter[str]()
    other = open_postgres(url, embedder=EMBEDDER)
    elsewhere = open_postgres(url, embedder=EMBEDDER, tenant="elsewhere")
    ours = store.listen(lambda: heard.update(["ours"]))
    theirs = elsewhere.listen(lambda: heard.update(["theirs"]))

    def heard_more_than(before: int) -> bool:
        return heard["ours"] > before

    assert eventually(lambda: listening(url) == 2)

    for change in (
        lambda: other.write_memory(OWNER, "k", 1, ORCHARD),
        lambda: other.delete_memory(OWNER, "k", ORCHARD),
        lambda: other.save_conversation(OWNER, conversation()),
        lambda: other.remember(OWNER, "Geese guard the gate", NoteKind.FACT, ORCHARD),
    ):
        before = heard["ours"]
        change()
        assert eventually(partial(heard_more_than, before))
    ours.close()
    theirs.close()
    other.close()
    elsewhere.close()

    assert heard["theirs"] == 0


def test_a_listener_hears_again_after_a_restart_and_shows_in_case(server: PostgresServer, url: str, store: PostgresStore) -> None:
    heard = Counter[str]()
    listener = store.listen(lambda: heard.update(["told"]))
    assert eventually(lambda: listening(url) == 1)
    server.stop()
    server.start()

    reported_in_case = eventually(lambda: heard["told"] > 0)
    before = heard["told"]
    store.write_memory(OWNER, "k", 1, ORCHARD)
    reported_again = eventually(lambda: heard["told"] > before)
    listener.close()

    assert reported_in_case
    assert reported_again


def test_what_no_one_knows_to_be_written_keeps_its_transcript(url: str) -> None:
    """A trigger breaks the connection as the row is committed: the object must not go, for the row might have stayed."""
    shelf = ObjectShelf()
    store = open_postgres(url, embedder=EMBEDDER, objects=shelf)
    with psycopg.connect(url) as connection:
        connection.execute(
            "CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
            " 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';"
            " CREATE CONSTRAINT TRIGGER gone AFTER INSERT ON kite.conversation DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION gone()"
        )

    with pytest.raises(StoreUnavailable, match="written whole, or not at all"):
        store.save_conversation(OWNER, conversation(transcript="tell me about the deer. " * 5_000))
    kept = len(shelf.kept)
    swept = store.sweep(orphaned_after=timedelta(days=-1))
    store.close()

    assert (kept, swept) == (1, 1)
    assert count(url, "conversation") == count(url, "note") == 0


def test_the_same_words_by_many_at_once_are_one_note(store: PostgresStore, url: str) -> None:
    """Also when a client, not knowing whether it was heard, asks again while it still is."""
    with ThreadPoolExecutor(6) as pool, held(url, "words"):  # a writer that looked for the same words, and found none, waits there
        listed = [pool.submit(store.remember, OWNER, "Geese guard the gate", NoteKind.FACT, ORCHARD) for _ in range(6)]
        assert eventually(lambda: len(waiting(url)) == 6)

    assert len({each.result().id for each in listed}) == 1
    assert count(url, "note") == 1


def test_a_name_that_is_too_long_for_the_database_is_reported_as_that(store: PostgresStore) -> None:
    name = "".join(random.Random(1).choices([chr(code) for code in range(0x4E00, 0x9FA5)], k=1_000))

    with pytest.raises(UsageError, match="long"):
        store.write_memory(OWNER, "k", 1, replace(ORCHARD, project=name))

    assert store.memories(OWNER, MemoryQuery()) == []


def test_one_mishap_is_not_the_end_of_housekeeping() -> None:
    class Failing(PostgresStore):
        calls = 0

        def catch_up(self, most: int = 100) -> int:
            self.calls += 1
            raise psycopg.DataError("a vector of the wrong length")

        def sweep(self, *, orphaned_after: timedelta = timedelta()) -> int:
            return 0

    store = Failing(Connections("postgresql://nobody@127.0.0.1:1/none", tenant="team"), embedder=EMBEDDER)
    housekeeping = Housekeeping(store, pause=0.01)
    try:
        assert eventually(lambda: store.calls > 2)
    finally:
        housekeeping.close()
