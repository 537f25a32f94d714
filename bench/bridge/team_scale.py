"""How a team's store grows: one database filled to several sizes, asked the same at each, and the slopes between them.

    python -m bench.bridge.team_scale [--sizes 60000,120000,240000,480000] [--middle 25000] [--queries 60] [--minutes 40]

The notes are those of `bench.bridge.postgres`. Beside the large tenant that grows there is a middle one, always of one size: its
share of the common vector index shrinks, as that of each of many tenants does. At the end the middle tenant gets a vector index of
its own, as it would have as a partition, and is asked again. No size is begun that the minutes will hardly suffice for.
Prints tables; asserts nothing.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import psutil
import psycopg

from bench.bridge.postgres import DIM, SPACE, TENANT, Embedder, World, fill, questions, recall_at_10
from kite_memory.model.note import Scope
from kite_memory.team.postgres import migrate, open_postgres
from kite_memory.team.postgres.migrating import index_name
from kite_memory.tools.store import OWNER, Grant, MemoryPlace, NoteQuery
from tests.fakes.postgres_server import PostgresServer

MIDDLE = "middle"
NARROW = Grant(name="narrow", write=False, projects=frozenset({"project150"}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one call: milliseconds on the clock, and of the database's processor."""

    p50: float
    p95: float
    processor: float

    def __str__(self) -> str:
        return f"{self.p50:.1f} / {self.p95:.1f} / {self.processor:.1f}"


def costs(calls: Sequence[Callable[[], object]], pids: Sequence[int]) -> Cost:
    backends = [psutil.Process(pid) for pid in pids]
    before = _busy(backends)
    took = []
    for call in calls:
        began = time.perf_counter()
        call()
        took.append((time.perf_counter() - began) * 1000)
    took.sort()
    spent = (_busy(backends) - before) * 1000 / len(calls)
    return Cost(p50=took[len(took) // 2], p95=took[int(len(took) * 0.95)], processor=spent)


def _busy(processes: Sequence[psutil.Process]) -> float:
    return sum(times.user + times.system for times in (process.cpu_times() for process in processes))


def asked_of(url: str, world: World, tenant: str, count: int) -> dict[str, Cost]:
    """Ask a tenant's store, each kind of question once before it is timed."""
    store = open_postgres(url, embedder=Embedder(world), tenant=tenant)
    try:
        store.search(OWNER, NoteQuery(text="subject1"))
        with psycopg.connect(url) as connection:
            found = connection.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'kite-memory'").fetchall()
        pids = [pid for (pid,) in found]
        place = MemoryPlace(scope=Scope.PROJECT, project="project007")
        asked = [NoteQuery(text=text) for text, _ in questions(world, count)]
        keys = [f"scale.{time.time_ns()}.{number}" for number in range(count)]
        wanted: dict[str, list[Callable[[], object]]] = {
            "search, everything": [partial(store.search, OWNER, each) for each in asked],
            "search, one project's token": [partial(store.search, NARROW, each) for each in asked],
            "write_memory": [partial(store.write_memory, OWNER, key, 1, place) for key in keys],
        }
        for calls in (wanted["search, everything"], wanted["search, one project's token"]):
            for call in calls:  # until what is asked for is in memory: the first to ask waits for the disk
                call()
        return {name: costs(calls, pids) for name, calls in wanted.items()}
    finally:
        store.close()


def sizes(url: str) -> dict[str, int]:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT pg_database_size(current_database()), pg_relation_size(to_regclass(%s)), pg_total_relation_size('kite.words')",
            (f'kite."{index_name(SPACE)}"',),
        ).fetchone()
    assert row is not None
    return dict(zip(("database", "vector index", "words"), row, strict=True))


def settle(url: str) -> float:
    """Build the vector index and gather the planner's figures. Return the seconds that the index took."""
    began = time.perf_counter()
    migrate(url, spaces=[SPACE])
    took = time.perf_counter() - began
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="60000,120000,240000,480000")
    parser.add_argument("--middle", type=int, default=25_000)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=40)
    arguments = parser.parse_args()
    world = World.invented()
    steps = [int(size) for size in arguments.sizes.split(",")]
    until = time.monotonic() + arguments.minutes * 60
    server = PostgresServer(
        fsync="on", synchronous_commit="on", shared_buffers="2GB", maintenance_work_mem="3GB", max_wal_size="8GB",
        effective_cache_size="6GB", wal_compression="on",
    )  # fmt: skip
    seen: list[tuple[int, dict[str, float]]] = []
    try:
        url = server.database()
        migrate(url)
        fill(url, world, arguments.middle, tenant=MIDDLE)
        before = 0
        for size in steps:
            began = time.monotonic()
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f'DROP INDEX IF EXISTS kite."{index_name(SPACE)}"'.encode())
            fill(url, world, size, first=before)
            copied = time.monotonic() - began
            built = settle(url)
            print(f"\n{size:,} notes beside {arguments.middle:,}: copied in {copied:.0f} s, index built in {built:.0f} s")
            held = sizes(url)
            print(", ".join(f"{name} {count / 2**20:,.0f} MB" for name, count in held.items()))
            row: dict[str, float] = {"index, s": built, **{name: count / 2**20 for name, count in held.items()}}
            for tenant in (TENANT, MIDDLE):
                for name, cost in asked_of(url, world, tenant, arguments.queries).items():
                    print(f"{tenant}: {name}: {cost} (p50 / p95 / processor, ms)", flush=True)
                    row[f"{tenant}: {name}, p50"] = cost.p50
                    row[f"{tenant}: {name}, processor"] = cost.processor
                row[f"{tenant}: recall@10"] = recall_at_10(url, world, questions(world, 30), tenant=tenant)
                print(f"{tenant}: recall@10 {row[f'{tenant}: recall@10']:.3f}", flush=True)
            seen.append((size + arguments.middle, row))
            before = size
            if time.monotonic() + 2.2 * (time.monotonic() - began) > until:
                break
        report(seen)
        with psycopg.connect(url, autocommit=True) as connection:
            began = time.monotonic()
            connection.execute(
                f"CREATE INDEX own ON kite.passage USING hnsw ((embedding::halfvec({DIM})) halfvec_cosine_ops)"
                f" WHERE space = '{SPACE.tag}' AND tenant = '{MIDDLE}'".encode()
            )
            connection.execute("ANALYZE kite.passage")
        print(f"\nwith an index of its own, built in {time.monotonic() - began:.0f} s:")
        for name, cost in asked_of(url, world, MIDDLE, arguments.queries).items():
            print(f"{MIDDLE}: {name}: {cost} (p50 / p95 / processor, ms)")
        print(f"{MIDDLE}: recall@10 {recall_at_10(url, world, questions(world, 30), tenant=MIDDLE):.3f}", flush=True)
    finally:
        server.close()


def report(seen: Sequence[tuple[int, dict[str, float]]]) -> None:
    """Print what was measured by size, and the slope: the exponent with which it grows from the first size to the last."""
    print(f"\n| | {' | '.join(f'{size:,}' for size, _ in seen)} | grows as n^ |\n|---|{'---|' * (len(seen) + 1)}")
    for name in seen[0][1]:
        values = [row[name] for _, row in seen]
        slope = math.log(max(values[-1], 1e-9) / max(values[0], 1e-9)) / math.log(seen[-1][0] / seen[0][0]) if len(seen) > 1 else 0
        print(f"| {name} | {' | '.join(f'{value:,.2f}' for value in values)} | {slope:.2f} |")
    print(flush=True)


if __name__ == "__main__":
    main()
