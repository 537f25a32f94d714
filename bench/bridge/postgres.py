"""What the team's store costs with a million notes, and whether many who write at once lose anything.

    python -m bench.bridge.postgres [--rows 1000000] [--queries 300] [--clients 32] [--seconds 60] [--keep FOLDER]

A real PostgreSQL with pgvector (the package that the tests use) on a socket, with its log on disk as a server would have it.
Notes, their words and their vectors are invented and copied in: some 40 words each, as frequent as words are, on one of 2,000
subjects that have words of their own, in 200 projects of unequal size, one in ten a journal of a saved conversation. Vectors lie
around their subject as sentences do: in 48 directions of 384, two of one subject at a cosine of about 0.6, two of different
subjects at about 0.1.
Then the index of vectors is built, and questions are asked through the store as an agent's are, as an owner and under narrow
tokens; `get-context` goes on to conversations and prose. What the index finds is compared with what looking at every row finds.
Where other work shares the processors, the time on the clock says little: what each call takes of a processor stands beside it.
At last, clients count up shared counters for a minute, on PostgreSQL and on this machine's vault. Prints tables; asserts nothing.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import random
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import psycopg
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from kite_memory.errors import KiteError
from kite_memory.model.event import Event
from kite_memory.model.note import Chunk, Decision, NoteKind, Origin, Record, RecordItem, Scope, Topic
from kite_memory.paths import asset_folder
from kite_memory.recall.embedder import Embedder as AnyEmbedder
from kite_memory.recall.embedder import Purpose, Space, Vectors
from kite_memory.recall.index import Index
from kite_memory.recall.recall import Recall
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.team.postgres import migrate, open_postgres
from kite_memory.team.postgres.rows import encoded, record_json
from kite_memory.tools import conversation_tools
from kite_memory.tools.conversation_notes import journal_id
from kite_memory.tools.declarations import ToolDispatcher
from kite_memory.tools.local_context import LocalContext
from kite_memory.tools.local_conversations import LocalConversations
from kite_memory.tools.local_state import LocalState
from kite_memory.tools.local_store import LocalStore
from kite_memory.tools.store import OWNER, Asker, Conflict, Grant, MemoryPlace, MemoryQuery, NoteQuery, SavedConversation, Store
from kite_memory.vault import Vault
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.fakes.postgres_server import PostgresServer

DIM, LATENT, SUBJECTS, PROJECTS, VOCABULARY = 384, 48, 2_000, 200, 60_000
BATCH = 10_000
SPACE = Space(name="invented", dim=DIM, version="1", threshold=0.42)
START = datetime(2024, 1, 1, tzinfo=UTC)
TENANT = "team"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Where subjects lie, and which words are theirs."""

    centres: Vectors
    spread: Vectors
    words: Sequence[str]
    frequent: Vectors

    @staticmethod
    def invented() -> "World":
        draw = np.random.default_rng(7)
        directions = np.linalg.qr(draw.standard_normal((DIM, LATENT)))[0].T.astype(np.float32)
        common = draw.standard_normal(LATENT).astype(np.float32) * 0.35
        centres = (draw.standard_normal((SUBJECTS, LATENT)).astype(np.float32) + common) @ directions
        letters = random.Random(7)
        words = ["".join(letters.choices("abcdefghijklmnoprstuvw", k=letters.randint(4, 10))) for _ in range(VOCABULARY)]
        ranks = np.arange(1, VOCABULARY + 1)
        frequent = (1 / (ranks + 20.0)) / (1 / (ranks + 20.0)).sum()
        return World(centres=centres, spread=directions, words=words, frequent=frequent.astype(np.float64))

    def vectors(self, subjects: Sequence[int], draw: np.random.Generator) -> Vectors:
        noise = draw.standard_normal((len(subjects), LATENT)).astype(np.float32) @ self.spread
        rest = draw.standard_normal((len(subjects), DIM)).astype(np.float32) * 0.06
        found = self.centres[list(subjects)] + 0.8 * noise + rest
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)

    def own(self, subject: int) -> list[str]:
        """Words that only one note in some thousands has, most of them on this subject."""
        return [self.words[2_000 + (subject * 29 + step * 997) % (VOCABULARY - 2_000)] for step in range(6)]


class Embedder:
    """Knows a text's subject by its first word, and lays it near that."""

    space = SPACE

    def __init__(self, world: World) -> None:
        self._world = world

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        rows = [self._world.vectors([_subject(text)], np.random.default_rng(zlib.crc32(text.encode())))[0] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, DIM), np.float32)


def _subject(text: str) -> int:
    found = next((word for word in text.split() if word.startswith("subject")), "subject0")
    return int("".join(filter(str.isdigit, found)) or 0) % SUBJECTS


def project_of(number: int) -> str:
    """A few have many notes, and many have few."""
    return f"project{int(PROJECTS * (number * 2_654_435_761 % 2**32 / 2**32) ** 2.2):03}"


def fill(url: str, world: World, rows: int, *, first: int = 0, tenant: str = TENANT) -> None:
    """Copy in the notes from ``first`` to ``rows``."""
    draw = np.random.default_rng(11 + first)
    with psycopg.connect(url) as connection:
        register_vector(connection)
        connection.execute("SET synchronous_commit = off")
        for start in range(first, rows, BATCH):
            batch = range(start, min(rows, start + BATCH))
            subjects = draw.integers(0, SUBJECTS, len(batch)).tolist()
            usual = draw.choice(VOCABULARY, (len(batch), 34), p=world.frequent)
            vectors = world.vectors(subjects, draw)
            notes = [
                _Row.made(world, number, subject, common) for number, subject, common in zip(batch, subjects, usual, strict=True)
            ]
            _copy_notes(connection, notes, tenant)
            with connection.cursor().copy(
                "COPY kite.passage (tenant, id, place, scope, project, kind, created, space, embedding) FROM STDIN (FORMAT binary)"
            ) as copy:
                copy.set_types(["text", "text", "int2", "text", "text", "text", "timestamptz", "text", "halfvec"])
                for note, vector in zip(notes, vectors, strict=True):
                    copy.write_row((tenant, note.id, 0, "project", note.project, note.kind, note.at, SPACE.tag, HalfVector(vector)))
            connection.commit()
            if start % (20 * BATCH) == 0:
                print(f"  {start + len(batch):,} rows", flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    id: str
    at: datetime
    kind: str
    project: str
    title: str
    body: str
    tsv: str
    conversation: SavedConversation | None

    @staticmethod
    def made(world: World, number: int, subject: int, common: Vectors) -> "_Row":
        own = world.own(subject)
        title = f"subject{subject} {own[number % 6]} {own[(number + 1) % 6]}"
        words = [world.words[place] for place in common.tolist()]
        body = " ".join([*words[:20], own[(number + 2) % 6], *words[20:], own[(number + 3) % 6]])
        at = START + timedelta(seconds=number * 60)
        project = project_of(number)
        conversation = _conversation(number, project, at, title, body) if number % 10 == 0 else None
        return _Row(
            id=journal_id(conversation) if conversation else f"NOTE{number:022}",
            at=at,
            kind="journal" if conversation else ("decision", "insight", "fact")[number % 3],
            project=project,
            title=title,
            body=body,
            tsv=_tsvector(title, body),
            conversation=conversation,
        )


def _tsvector(title: str, body: str) -> str:
    places: dict[str, list[str]] = {}
    for place, word in enumerate(title.split(), 1):
        places.setdefault(word, []).append(f"{place}A")
    for place, word in enumerate(body.split(), 4):
        places.setdefault(word, []).append(str(place))
    return " ".join(f"'{word}':{','.join(found)}" for word, found in places.items())


def _conversation(number: int, project: str, at: datetime, title: str, body: str) -> SavedConversation:
    item = Decision(title=title, body=body[:200], evidence=("told",), importance=2, origin="user")
    return SavedConversation(
        uuid=f"{number:08x}-0000-4000-8000-000000000000",
        source="claude_code",
        project=project,
        record=Record(topics=(Topic(name=title, summary=body, items=(item,)),)),
        overall=title,
        created=at,
        updated=at,
    )


def _copy_notes(connection: psycopg.Connection, notes: Sequence[_Row], tenant: str) -> None:
    more = encoded(
        {
            **{name: [] for name in ("links", "aliases", "triggers", "entities", "supersedes")},
            "evidence": ["claude-code:s#12345678"],
            "valid_from": None, "superseded_by": "", "origin": "assistant", "importance": 2,
        }
    )  # fmt: skip
    with connection.cursor().copy(
        "COPY kite.note (tenant, id, path, kind, title, body, scope, project, session, tags, status, more, created, updated,"
        " created_by, conversation) FROM STDIN"
    ) as copy:
        for note in notes:
            uuid = note.conversation.uuid if note.conversation else ""
            place = (tenant, note.id, f"{note.kind}s/{note.id}.md", note.kind, note.title, note.body, "project", note.project, uuid)
            copy.write_row((*place, "{}", "accepted", more, note.at, note.at, "bench", uuid))
    with connection.cursor().copy("COPY kite.words (tenant, id, scope, project, kind, created, length, tsv) FROM STDIN") as copy:
        for note in notes:
            copy.write_row((tenant, note.id, "project", note.project, note.kind, note.at, 41, note.tsv))
    with connection.cursor().copy(
        "COPY kite.conversation (tenant, uuid, scope, project, source, record, overall, created, updated, created_by) FROM STDIN"
    ) as copy:
        for result in (note.conversation for note in notes if note.conversation):
            said = (encoded(record_json(result.record)), encoded(result.overall))
            copy.write_row(
                (tenant, result.uuid, "project", result.project, result.source, *said, result.created, result.updated, "bench")
            )


def sizes(url: str) -> Iterator[tuple[str, str]]:
    with psycopg.connect(url) as connection:
        for name, size in connection.execute(
            "SELECT relname, pg_size_pretty(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = 'kite'::regnamespace"
            " AND relkind = 'r' AND pg_total_relation_size(oid) > 1000000 ORDER BY pg_total_relation_size(oid) DESC"
        ):
            yield f"table {name} with its indexes", size
        for name, size in connection.execute(
            "SELECT relname, pg_size_pretty(pg_relation_size(oid)) FROM pg_class WHERE relnamespace = 'kite'::regnamespace"
            " AND relkind = 'i' AND pg_relation_size(oid) > 50000000 ORDER BY pg_relation_size(oid) DESC"
        ):
            yield f"index {name}", size
        for (size,) in connection.execute("SELECT pg_size_pretty(pg_database_size(current_database()))"):
            yield "database", size


def questions(world: World, count: int) -> list[tuple[str, str]]:
    """A text, and the project it comes from: a subject's own words among two that are everywhere."""
    draw = random.Random(3)
    asked = []
    for _ in range(count):
        subject = draw.randrange(SUBJECTS)
        words = [*draw.sample(world.own(subject), 2), *(world.words[draw.randrange(300)] for _ in range(2))]
        draw.shuffle(words)
        asked.append((f"subject{subject} {' '.join(words)}", project_of(draw.randrange(10**6))))
    return asked


def timed(name: str, calls: Sequence[Callable[[], object]], backends: Sequence[psutil.Process]) -> None:
    took = []
    busy = [_busy([psutil.Process()]), _busy(backends)]
    for call in calls:
        began = time.perf_counter()
        call()
        took.append((time.perf_counter() - began) * 1000)
    took.sort()
    p50, p95, p99 = (took[min(len(took) - 1, int(len(took) * share))] for share in (0.5, 0.95, 0.99))
    ours, theirs = (
        (after - before) * 1000 / len(calls)
        for before, after in zip(busy, (_busy([psutil.Process()]), _busy(backends)), strict=True)
    )
    print(f"| {name} | {p50:.1f} | {p95:.1f} | {p99:.1f} | {took[-1]:.1f} | {ours:.1f} | {theirs:.1f} |", flush=True)


def _busy(processes: Sequence[psutil.Process]) -> float:
    return sum(times.user + times.system for times in (process.cpu_times() for process in processes))


def recall_at_10(url: str, world: World, asked: Sequence[tuple[str, str]], *, tenant: str = TENANT) -> float:
    """Of the ten nearest by looking at every row, how many the index finds among its first ten, as the store asks it."""
    embedder, found, wanted = Embedder(world), 0, 0
    with psycopg.connect(url) as connection:
        register_vector(connection)
        nearest = (
            f"SELECT id FROM kite.passage WHERE space = '{SPACE.tag}' AND tenant = '{tenant}'"
            f" ORDER BY embedding::halfvec({DIM}) <=> %s LIMIT 10"
        )
        for text, _ in asked:
            vector = HalfVector(embedder.embed([text], "query")[0])
            connection.execute("SET LOCAL enable_indexscan = off; SET LOCAL enable_seqscan = on")
            exact = {row[0] for row in connection.execute(nearest, (vector,))}
            connection.execute("SET LOCAL enable_indexscan = on; SET LOCAL hnsw.ef_search = 100; SET LOCAL enable_seqscan = off")
            connection.execute("SET LOCAL hnsw.iterative_scan = relaxed_order")
            found += len(exact & {row[0] for row in connection.execute(nearest, (vector,))})
            wanted += len(exact)
            connection.rollback()
    return found / wanted


def ask(url: str, world: World, count: int) -> None:
    store = open_postgres(url, embedder=Embedder(world), tenant=TENANT)
    asked = questions(world, count)
    narrow = Grant(name="narrow", write=False, projects=frozenset({"project150"}))
    some = Grant(name="some", write=False, projects=frozenset(f"project{number:03}" for number in range(0, 60, 3)))
    with psycopg.connect(url) as connection:
        for name, grant in (("narrow", narrow), ("some", some)):
            row = connection.execute(
                "SELECT count(*) FROM kite.words WHERE project = ANY (%s)", (sorted(grant.projects or ()),)
            ).fetchone()
            print(f"{name}: sees {row[0] if row else 0:,} notes")
    print("\n| asked | p50 ms | p95 ms | p99 ms | most | of a processor: client | server |\n|---|---|---|---|---|---|---|")
    for text, project in asked[:30]:  # until what is asked for often is in memory
        store.search(OWNER, NoteQuery(text=text, project=project))
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'kite-memory'").fetchall()
    backends = [psutil.Process(pid) for (pid,) in found]

    def searching(
        name: str, grant: Grant, kinds: frozenset[NoteKind] = frozenset(), *, come: bool = False, within: bool = False
    ) -> None:
        asks = (NoteQuery(text=text, project=project if come else "", within=within, kinds=kinds) for text, project in asked)
        timed(name, [partial(store.search, grant, each) for each in asks], backends)

    searching("search, everything", OWNER)
    searching("search, from a project", OWNER, come=True)
    searching("search, within a project", OWNER, come=True, within=True)
    searching("search, journals", OWNER, frozenset({NoteKind.JOURNAL}))
    searching("search, a token for one project", narrow)
    searching("search, a token for twenty projects", some)
    tools = conversation_tools.tools(store, LocalContext(), gate=Anything(), decompose=Anything().decompose, clock=lambda: START)
    context = partial(ToolDispatcher(tools).perform, "get_context", asker=Asker(grant=OWNER))
    timed("get_context, everything", [partial(context, {"query": text}) for text, _ in asked], backends)
    within = [partial(context, {"query": text, "project": project}) for text, project in asked]
    timed("get_context, within a project", within, backends)
    place = MemoryPlace(scope=Scope.PROJECT, project="project007")
    keys = [f"bench.k{number}" for number in range(count)]
    timed("write_memory, new", [partial(store.write_memory, OWNER, key, {"n": 1}, place) for key in keys], backends)
    timed("write_memory, again", [partial(store.write_memory, OWNER, key, {"n": 2}, place) for key in keys], backends)
    timed("read_memory", [partial(store.memories, OWNER, MemoryQuery(pattern=key), touch=True) for key in keys], backends)
    print()
    store.close()


class Anything:
    """Lets everything pass: here nothing is saved through it."""

    def item(self, item: RecordItem, evidence: Sequence[Event], /) -> str:
        return ""

    def text(self, text: str, /) -> str:
        return ""

    def says_nothing(self, text: str, /) -> str:
        return ""

    def origin_of(self, item: RecordItem, heard: Sequence[Event], provenance: object, /) -> Origin:
        return item.origin

    def decompose(self, chunk: Chunk) -> tuple[Record, str]:
        return Record(topics=()), ""


def count_up(store: Store, clients: int, seconds: float) -> None:
    """Each client counts up one of four shared counters again and again, over the version it has read."""
    place = MemoryPlace(scope=Scope.PROJECT, project="bench")
    keys = [f"counter{number}" for number in range(4)]
    for key in keys:
        store.write_memory(OWNER, key, 0, place)
    done: Counter[str] = Counter()
    listed: Counter[str] = Counter()
    lock = threading.Lock()
    until = time.monotonic() + seconds

    def client(number: int) -> None:
        key = keys[number % len(keys)]
        mine: Counter[str] = Counter()
        while time.monotonic() < until:
            try:
                (seen,) = store.memories(OWNER, MemoryQuery(pattern=key))
                assert isinstance(seen.value, int)
                store.write_memory(OWNER, key, seen.value + 1, place, expected=seen.version)
                mine["written"] += 1
                mine[key] += 1
            except Conflict:
                mine["conflict reported, and tried again"] += 1
            except KiteError as error:
                with lock:
                    listed[f"{type(error).__name__}: {error}"] += 1
        with lock:
            done.update(mine)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lost = sum(done[key] - int(str(store.memories(OWNER, MemoryQuery(pattern=key))[0].value)) for key in keys)
    print(
        f"{store.name}: {clients} clients, {seconds:g} s: {done['written']:,} writes,"
        f" {done['conflict reported, and tried again']:,} conflicts reported, {lost} lost, errors: {dict(listed) or 'none'}",
        flush=True,
    )


def local_store(folder: Path, embedder: AnyEmbedder | None = None) -> LocalStore:
    state = folder / "state"
    vault = Vault(folder / "vault", state / "vault.sqlite")
    vault.ensure(Path(asset_folder("vault_template")))
    recall = Recall(
        index=Index(state / "index", embedder=embedder or HashingEmbedder()), memory=SessionMemory(state / "index" / "shown.sqlite")
    )
    recall.refresh(vault.notes)

    def take_up(paths: Collection[str], *, embed: bool = True) -> None:
        recall.refresh(vault.notes, hint=paths, embed=embed)

    conversations = LocalConversations(vault=vault, folder=state / "conversations", index_notes=take_up)
    return LocalStore(
        vault=vault,
        recall=recall,
        state=LocalState(state / "bridge.sqlite"),
        conversations=conversations,
        index_notes=take_up,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    world = World.invented()
    server = PostgresServer(
        fsync="on",
        full_page_writes="on",
        synchronous_commit="on",
        shared_buffers="2GB",
        maintenance_work_mem="3GB",
        max_wal_size="8GB",
        effective_cache_size="6GB",
        wal_compression="on",
    )
    try:
        url = server.database()
        migrate(url)
        began = time.perf_counter()
        fill(url, world, arguments.rows)
        print(f"copied {arguments.rows:,} rows in {time.perf_counter() - began:.0f} s")
        began = time.perf_counter()
        migrate(url, spaces=[SPACE])
        print(f"built the index of vectors in {time.perf_counter() - began:.0f} s")
        began = time.perf_counter()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
        print(f"vacuumed and analysed in {time.perf_counter() - began:.0f} s\n")
        for name, size in sizes(url):
            print(f"{name}: {size}")
        ask(url, world, arguments.queries)
        print(f"\nrecall@10 of the index against every row: {recall_at_10(url, world, questions(world, 60)):.3f}\n")
        store = open_postgres(url, embedder=Embedder(world), tenant="writers", connections=arguments.clients)
        count_up(store, arguments.clients, arguments.seconds)
        store.close()
    finally:
        server.close()
    with tempfile.TemporaryDirectory() as folder:
        local = local_store(Path(folder))
        count_up(local, arguments.clients, arguments.seconds)
        local.close()


if __name__ == "__main__":
    main()
