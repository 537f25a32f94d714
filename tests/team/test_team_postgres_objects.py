"""Long transcripts in object storage (a real HTTP server that speaks S3), and vectors of more than one embedder."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
import psycopg
import pytest
from moto.server import ThreadedMotoServer

from kite_memory.errors import EmbedderUnavailable
from kite_memory.model.note import NoteKind
from kite_memory.recall.embedder import Embedder, Purpose, Space, Vectors
from kite_memory.team.postgres import PostgresStore, S3Objects, migrate, objects_of, open_postgres
from kite_memory.team.postgres.conversations import take_away
from kite_memory.tools.store import OWNER, MemoryQuery, NoteQuery, StoreUnavailable
from tests.contract.bridge_store_contract import CHAT, NOW, ORCHARD, conversation
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.fakes.object_shelf import ObjectShelf
from tests.fakes.postgres_server import PostgresServer

EMBEDDER = HashingEmbedder()
LONG = "tell me about the deer. " * 5_000
LATER = NOW + timedelta(hours=1)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def objects(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> S3Objects:
    """A bucket of the test's own."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    bucket = f"bucket-{uuid.uuid4().hex}"
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket=bucket)
    return S3Objects(bucket=bucket, endpoint=endpoint, region="us-east-1")


@pytest.fixture
def tenant() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def store(url: str, objects: S3Objects, tenant: str) -> Iterator[PostgresStore]:
    store = open_postgres(url, embedder=EMBEDDER, objects=objects, tenant=tenant)
    yield store
    store.close()


def names(objects: S3Objects, tenant: str) -> list[str]:
    return list(objects.names(tenant, before=datetime.now(UTC) + timedelta(days=1)))


def in_the_row(url: str, tenant: str) -> tuple[bytes | None, str]:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT transcript, object FROM kite.conversation WHERE tenant = %s", (tenant,)).fetchone()
    assert row is not None
    return row[0], row[1]


def test_a_long_transcript_is_in_object_storage_with_a_reference_in_the_row(
    store: PostgresStore, objects: S3Objects, url: str, tenant: str
) -> None:
    store.save_conversation(OWNER, conversation(transcript=LONG))

    assert store.transcript(OWNER, CHAT) == LONG
    transcript, reference = in_the_row(url, tenant)
    assert transcript is None
    assert names(objects, tenant) == [reference]
    assert objects.get(reference) == LONG.encode()


def test_a_short_one_is_in_its_row(store: PostgresStore, objects: S3Objects, url: str, tenant: str) -> None:
    store.save_conversation(OWNER, conversation(transcript="all of it"))

    assert in_the_row(url, tenant) == (b"all of it", "")
    assert names(objects, tenant) == []


def test_it_is_fetched_only_when_it_is_asked_for(store: PostgresStore, objects: S3Objects, tenant: str) -> None:
    store.save_conversation(OWNER, conversation(transcript=LONG))
    for name in names(objects, tenant):
        objects.remove(name)

    found = store.conversation(OWNER, CHAT)

    assert found is not None
    assert (found.transcript, found.has_transcript) == ("", True)
    with pytest.raises(StoreUnavailable, match="no longer"):
        store.transcript(OWNER, CHAT)


def test_a_new_transcript_takes_the_old_one_s_place(store: PostgresStore, objects: S3Objects, tenant: str) -> None:
    store.save_conversation(OWNER, conversation(transcript=LONG))
    store.save_conversation(OWNER, conversation(transcript=LONG + "more", updated=LATER))

    assert store.transcript(OWNER, CHAT) == LONG + "more"
    assert len(names(objects, tenant)) == 1


def test_an_amendment_without_one_keeps_it(store: PostgresStore, objects: S3Objects, tenant: str) -> None:
    store.save_conversation(OWNER, conversation(transcript=LONG))
    store.save_conversation(OWNER, conversation(updated=LATER))

    assert store.transcript(OWNER, CHAT) == LONG
    assert len(names(objects, tenant)) == 1


def test_a_shorter_one_moves_into_the_row(store: PostgresStore, objects: S3Objects, tenant: str) -> None:
    store.save_conversation(OWNER, conversation(transcript=LONG))
    store.save_conversation(OWNER, conversation(transcript="short", updated=LATER))

    assert store.transcript(OWNER, CHAT) == "short"
    assert names(objects, tenant) == []


def test_forgetting_the_journal_takes_the_object_away(store: PostgresStore, objects: S3Objects, tenant: str) -> None:
    saved = store.save_conversation(OWNER, conversation(transcript=LONG))

    store.forget(OWNER, saved.journal)

    assert names(objects, tenant) == []


def test_a_restored_tenant_has_objects_of_its_own(
    store: PostgresStore, objects: S3Objects, url: str, tenant: str, tmp_path: Path
) -> None:
    saved = store.save_conversation(OWNER, conversation(transcript=LONG))
    store.back_up(tmp_path / "team.kite.gz")
    trial = open_postgres(url, embedder=EMBEDDER, objects=objects, tenant=uuid.uuid4().hex)

    with closing(trial):
        trial.restore(tmp_path / "team.kite.gz")
        assert trial.transcript(OWNER, CHAT) == LONG
        trial.forget(OWNER, saved.journal)
    with closing(open_postgres(url, embedder=EMBEDDER, objects=objects, tenant=uuid.uuid4().hex)) as other:
        other.restore(tmp_path / "team.kite.gz")
        assert store.transcript(OWNER, CHAT) == LONG
        store.forget(OWNER, saved.journal)
        assert other.transcript(OWNER, CHAT) == LONG


def test_another_tenant_s_object_is_not_taken_away(url: str) -> None:
    """Of a backup that was restored before each tenant had its own."""
    objects = ObjectShelf()
    theirs = objects.put("theirs", b"all of it")

    take_away(objects, "ours", theirs)

    assert objects.get(theirs) == b"all of it"


def test_an_object_whose_row_was_not_written_is_taken_away(
    store: PostgresStore, objects: S3Objects, server: PostgresServer, tenant: str
) -> None:
    store.save_conversation(OWNER, conversation(transcript=LONG))
    server.stop()
    try:
        with pytest.raises(StoreUnavailable):
            store.save_conversation(OWNER, conversation(transcript=LONG + "more", updated=LATER))
    finally:
        server.start()

    assert store.transcript(OWNER, CHAT) == LONG
    assert len(names(objects, tenant)) == 1


def test_a_sweep_takes_orphans_and_nothing_else(store: PostgresStore, objects: S3Objects, tenant: str) -> None:
    store.save_conversation(OWNER, conversation(transcript=LONG))
    used = names(objects, tenant)
    orphan = objects.put(tenant, b"nobody's")
    neighbours = objects.put(tenant + "x", b"another tenant's")

    young = store.sweep()
    old = store.sweep(orphaned_after=timedelta(days=-1))

    assert (young, old) == (0, 1)
    assert names(objects, tenant) == used
    assert orphan not in used
    assert objects.get(neighbours) == b"another tenant's"


def changed(url: str, change: str, tenant: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(f"UPDATE kite.note SET {change} WHERE tenant = %s".encode(), (tenant,))


def keys_left(url: str, tenant: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [key for (key,) in connection.execute("SELECT key FROM kite.note WHERE tenant = %s ORDER BY key", (tenant,))]


def test_a_sweep_takes_what_was_found_to_have_run_out_long_ago(store: PostgresStore, url: str, tenant: str) -> None:
    now = datetime.now(UTC)
    store.write_memory(OWNER, "old", 1, ORCHARD, expires=now - timedelta(days=200))
    store.write_memory(OWNER, "standing", 1, ORCHARD)
    first = store.sweep()
    changed(url, "found_over = found_over - interval '40 days'", tenant)
    store.write_memory(OWNER, "fresh", 1, ORCHARD, expires=now - timedelta(minutes=2))

    second = store.sweep()

    assert (first, second) == (0, 1)
    assert keys_left(url, tenant) == ["fresh", "standing"]


def test_a_clock_that_was_far_ahead_costs_no_memory(store: PostgresStore, url: str, tenant: str) -> None:
    store.write_memory(OWNER, "k", "kept", ORCHARD, expires=datetime.now(UTC) + timedelta(days=1))
    changed(url, "expires = expires - interval '50 years'", tenant)  # to the database, it is now so much later
    hidden = store.memories(OWNER, MemoryQuery())
    store.sweep()
    changed(url, "expires = expires + interval '50 years', found_over = found_over + interval '50 years'", tenant)
    store.sweep()
    changed(url, "expires = expires - interval '2 days'", tenant)  # and now it has run out indeed

    count = store.sweep()

    assert (hidden, count) == ([], 0)
    assert keys_left(url, tenant) == ["k"]


def test_what_was_forgotten_a_month_ago_is_kept_nowhere(store: PostgresStore, url: str, tenant: str) -> None:
    store.write_memory(OWNER, "k", "a secret of old", ORCHARD)
    store.delete_memory(OWNER, "k", ORCHARD)
    note = store.remember(OWNER, "another secret of old", NoteKind.FACT, ORCHARD)
    store.forget(OWNER, note.id)
    with psycopg.connect(url) as connection:
        for table in ("trash", "memory_version"):
            connection.execute(f"UPDATE kite.{table} SET at = at - interval '40 days' WHERE tenant = %s".encode(), (tenant,))
    store.write_memory(OWNER, "k", "a secret of today", ORCHARD)
    store.delete_memory(OWNER, "k", ORCHARD)

    store.sweep()

    with psycopg.connect(url) as connection:
        kept = str([
            connection.execute(f"SELECT * FROM kite.{table} WHERE tenant = %s".encode(), (tenant,)).fetchall()
            for table in ("trash", "memory_version")
        ])  # fmt: skip
    assert "of old" not in kept
    assert "a secret of today" in kept
    assert store.write_memory(OWNER, "k", "new", ORCHARD, expected=0).version == 3


def test_words_of_a_forgotten_decision_are_in_the_trash_alone(store: PostgresStore, url: str, tenant: str) -> None:
    result = conversation()
    saved = store.save_conversation(OWNER, result)

    store.forget(OWNER, saved.notes[0])

    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'kite' AND tablename <> 'migration'")
        search = "SELECT count(*) FROM kite.{} AS row WHERE tenant = %s AND row::text ILIKE '%%hedges%%'"
        found = {table: connection.execute(search.format(table).encode(), (tenant,)).fetchone() for (table,) in tables.fetchall()}
        holding = {table for table, count in found.items() if count != (0,)}
    assert holding == {"trash"}


def test_an_object_that_was_changed_is_not_passed_off_as_the_transcript(
    store: PostgresStore, objects: S3Objects, endpoint: str, tenant: str
) -> None:
    store.save_conversation(OWNER, conversation(transcript=LONG))
    (name,) = names(objects, tenant)
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    bucket = next(
        each["Name"] for each in client.list_buckets()["Buckets"]
        if any(found["Key"] == name for found in client.list_objects_v2(Bucket=each["Name"]).get("Contents", ()))
    )  # fmt: skip
    client.put_object(Bucket=bucket, Key=name, Body=b"something else")

    with pytest.raises(StoreUnavailable, match="not what was put there"):
        store.transcript(OWNER, CHAT)


def test_storage_that_does_not_answer_is_reported_and_nothing_is_saved(url: str, tenant: str) -> None:
    no_one = S3Objects(bucket="b", endpoint="http://127.0.0.1:9", region="us-east-1")
    store = open_postgres(url, embedder=EMBEDDER, objects=no_one, tenant=tenant)

    with pytest.raises(StoreUnavailable, match="object storage") as result:
        store.save_conversation(OWNER, conversation(transcript=LONG))

    assert result.value.hint
    assert "127.0.0.1" not in str(result.value)
    assert store.conversation(OWNER, CHAT) is None
    assert store.recent(OWNER, "orchard", frozenset(), 10) == []
    assert not store.save_conversation(OWNER, conversation(transcript="short")).amended
    store.close()


def test_a_bucket_that_is_not_there_is_reported(url: str, objects: S3Objects, endpoint: str, tenant: str) -> None:
    store = open_postgres(
        url, embedder=EMBEDDER, objects=S3Objects(bucket="no-such", endpoint=endpoint, region="us-east-1"), tenant=tenant
    )

    with pytest.raises(StoreUnavailable, match="NoSuchBucket"):
        store.save_conversation(OWNER, conversation(transcript=LONG))

    store.close()


def test_without_storage_a_long_transcript_is_refused_with_a_hint(url: str, tenant: str) -> None:
    store = open_postgres(url, embedder=EMBEDDER, objects=objects_of(bucket=""), tenant=tenant)

    with pytest.raises(StoreUnavailable) as result:
        store.save_conversation(OWNER, conversation(transcript=LONG))

    assert "bucket" in result.value.hint
    assert store.conversation(OWNER, CHAT) is None
    store.close()


class Silent:
    """An embedder whose service does not answer."""

    def __init__(self, space: Space) -> None:
        self.space = space

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        raise EmbedderUnavailable("nobody answers")


class Waking:
    """Does not answer at first."""

    def __init__(self, embedder: Embedder) -> None:
        self.space = embedder.space
        self._embedders: list[Embedder] = [embedder, Silent(embedder.space)]

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        return (self._embedders.pop() if len(self._embedders) > 1 else self._embedders[0]).embed(texts, purpose)


def spaces(url: str, tenant: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {space for (space,) in connection.execute("SELECT DISTINCT space FROM kite.passage WHERE tenant = %s", (tenant,))}


def opened(url: str, embedder: Embedder, tenant: str) -> PostgresStore:
    return open_postgres(url, embedder=embedder, tenant=tenant)


def test_without_its_embedder_a_note_is_found_by_its_words_and_given_vectors_later(url: str, tenant: str) -> None:
    silent = opened(url, Silent(EMBEDDER.space), tenant)
    note = silent.remember(OWNER, "Geese guard the gate", NoteKind.FACT, ORCHARD)
    by_words = silent.search(OWNER, NoteQuery(text="geese"))
    still_silent = silent.catch_up()
    store = opened(url, EMBEDDER, tenant)

    caught_up = store.catch_up()

    assert [found.note.id for found in by_words] == [note.id]
    assert "meaning" not in by_words[0].why
    assert (still_silent, caught_up, store.catch_up()) == (0, 1, 0)
    assert "meaning" in store.search(OWNER, NoteQuery(text="geese guard gate"))[0].why
    silent.close()
    store.close()


def test_notes_of_another_space_are_not_passed_while_the_embedder_does_not_answer(url: str, tenant: str) -> None:
    other = HashingEmbedder(version="2")
    migrate(url, spaces=[other.space])
    store = opened(url, EMBEDDER, tenant)
    store.remember(OWNER, "Geese guard the gate", NoteKind.FACT, ORCHARD)
    store.close()
    store = opened(url, Waking(other), tenant)

    counts = [store.catch_up() for _ in range(3)]

    assert counts == [0, 1, 0]
    store.close()


@pytest.mark.parametrize("other", [HashingEmbedder(version="2"), HashingEmbedder(dim=128)], ids=["version", "dimension"])
def test_vectors_of_two_spaces_are_never_compared(url: str, tenant: str, other: HashingEmbedder) -> None:
    migrate(url, spaces=[other.space])
    first = opened(url, EMBEDDER, tenant)
    first.remember(OWNER, "Geese guard the gate", NoteKind.FACT, ORCHARD)
    second = opened(url, other, tenant)
    second.remember(OWNER, "Geese swim in the pond", NoteKind.FACT, ORCHARD)

    mixed = {found.note.title: found.why for found in second.search(OWNER, NoteQuery(text="geese guard gate pond"))}
    before = spaces(url, tenant)
    caught_up = second.catch_up()
    after = {found.note.title: found.why for found in second.search(OWNER, NoteQuery(text="geese guard gate pond"))}

    assert "meaning" not in mixed["Geese guard the gate"]
    assert "meaning" in mixed["Geese swim in the pond"]
    assert before == {EMBEDDER.space.tag, other.space.tag}
    assert caught_up == 1
    assert spaces(url, tenant) == {other.space.tag}
    assert "meaning" in after["Geese guard the gate"]
    first.close()
    second.close()


def test_a_long_note_is_found_by_its_end(url: str, tenant: str) -> None:
    store = opened(url, EMBEDDER, tenant)
    filling = "\n\n".join(f"Paragraph {number} speaks of weather and roads." for number in range(120))
    note = store.remember(OWNER, f"{filling}\n\nAt the very end a walrus appears.", NoteKind.FACT, ORCHARD)

    found = store.search(OWNER, NoteQuery(text="walrus appears"))

    assert [each.note.id for each in found] == [note.id]
    assert "walrus" in found[0].snippet
    store.close()


def test_a_transcript_that_is_replaced_while_it_is_fetched_is_fetched_again(url: str, tenant: str) -> None:
    class Amended(ObjectShelf):
        """Somebody saves the conversation anew between a reader's look at its row and at the object."""

        amended = False

        def get(self, name: str) -> bytes:
            if not self.amended:
                self.amended = True
                reading.save_conversation(OWNER, conversation(transcript="newer " * 20_000))
            return super().get(name)

    reading = open_postgres(url, embedder=EMBEDDER, objects=Amended(), tenant=tenant)
    try:
        reading.save_conversation(OWNER, conversation(transcript="older " * 20_000))

        assert reading.transcript(OWNER, CHAT) == "newer " * 20_000
    finally:
        reading.close()


def test_two_servers_with_two_embedders_come_to_an_end(url: str, tenant: str) -> None:
    """As during an update, or while a backup is restored beside a server."""
    other = HashingEmbedder(version="2")
    migrate(url, spaces=[other.space])
    first, second = opened(url, EMBEDDER, tenant), opened(url, other, tenant)
    for number in range(5):
        first.remember(OWNER, f"{number} geese guard the gate", NoteKind.FACT, ORCHARD)

    counts = [(second.catch_up(2), first.catch_up(2)) for _ in range(4)]
    first.close()
    while second.catch_up(2):
        pass

    assert [sum(each) for each in counts][-1] == 0
    assert spaces(url, tenant) == {other.space.tag}
    second.close()
