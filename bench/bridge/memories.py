"""What keyed memories cost: read and written through the daemon, by one client and by many; and how short a resumption is.

    python -m bench.bridge.memories [--memories 10000] [--keep FOLDER] [--clients 32] [--seconds 60]
    python -m bench.bridge.memories --gold DIR --transcripts DIR

The first runs a daemon of its own over a vault of invented memories and asks it over its socket, as `kmem mcp` does; what MCP
itself adds is not in it. Every client adds one to counters that all share, with ``expected_version``, and tries again where
somebody was quicker: at the end the counters must say how often that went well. The second resumes each labelled session with
smart_resume and compares with what was said in it. Prints tables; asserts nothing.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import orjson

from bench.recall.recall_gold import commit, events_of, labelled
from bench.speed.hook_latency import percentile
from kite_memory.daemon import protocol
from kite_memory.errors import KiteError
from kite_memory.recall.rendering import estimated_tokens
from kite_memory.tools import declarations
from kite_memory.tools.store import OWNER, Asker, Conflict

_PROJECT = "orchard"
_ASKER = Asker(grant=OWNER, project=_PROJECT, session="bench", ai="bench")
_TREES = ("apple", "pear", "plum", "quince", "medlar", "cherry", "walnut", "hazel", "mulberry", "fig")
_ROUNDS = 400
_COUNTERS = 8


def key(number: int) -> str:
    return f"project.{_TREES[number % 10]}.row{number}"


def plant(home: Path, count: int) -> None:
    """Their notes, as they lie in a vault after we wrote them."""
    from kite_memory.paths import asset_folder
    from kite_memory.vault import Vault
    from kite_memory.vault.ledger import Ledger
    from kite_memory.vault.wording import digest

    with Vault(home / "memory", home / "state" / "vault.sqlite") as vault:
        vault.ensure(Path(asset_folder("vault_template")))
    ledger = Ledger(home / "state" / "vault.sqlite")
    with ledger.changing():
        for number in range(count):
            tree, fruit, cut = _TREES[number % 10], 20 + number % 20, number % 9
            id = f"01JDBENCH{number:017d}"
            body = f"The {tree} trees of row {number} bear fruit in week {fruit}, and are cut in week {cut}.\n"
            (home / "memory" / "projects" / f"row-{number}.md").write_text(
                f"---\nid: {id}\nkind: fact\ntitle: {key(number)}\nproject: {_PROJECT}\nkey: {key(number)}\n"
                f"scope: project\nstatus: accepted\norigin: assistant\ncreated: 2026-02-26T14:03:11Z\nimportance: 2\n---\n{body}",
                encoding="utf-8",
            )
            ledger.bodies.wrote(id, digest(body))
    ledger.close()


@contextmanager
def daemon(home: Path) -> Iterator[Path]:
    environment = {
        **os.environ,
        "KMEM_HOME": str(home),
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / "claude"),
        "KMEM_EXTRACTOR": "offline",
        "KMEM_EMBEDDER": "local",
    }
    process = subprocess.Popen([sys.executable, "-P", "-m", "kite_memory", "daemon"], env=environment, cwd=home)
    state = home / "state"
    try:
        waiting = threading.Event()
        while True:
            waiting.wait(1.0)
            try:
                content = orjson.loads(protocol.call(state, "status", b"{}", 60.0))
            except KiteError:
                continue
            if content["index"]["rows"] >= content["notes"]["keyed"] > 0 and not content["index"]["stale"]:
                break
        yield state
    finally:
        process.terminate()
        process.wait()


def ask(state: Path, tool: str, **arguments: object) -> declarations.Json:
    asked = declarations.request_body(tool, arguments, _ASKER)
    return declarations.result_of(orjson.loads(protocol.call(state, "bridge", asked, 60.0)))


def timed(name: str, rounds: int, run: object) -> None:
    assert callable(run)
    took = []
    for number in range(rounds):
        began = time.perf_counter()
        run(number)
        took.append(1000 * (time.perf_counter() - began))
    took.sort()
    row = "  ".join(f"{label} {percentile(took, share):7.2f}" for label, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)))
    print(f"  {name:44} {row} ms", flush=True)


def latencies(state: Path, count: int) -> None:
    chance = random.Random(0)
    run = time.time_ns()
    numbers = [chance.randrange(count) for _ in range(10 * _ROUNDS)]
    drawn = iter(numbers)
    timed("read_memory, a key", _ROUNDS, lambda _: ask(state, "read_memory", key=key(next(drawn))))
    timed("read_memory, a key that is not there", _ROUNDS, lambda n: ask(state, "read_memory", key=f"project.none{n}"))
    timed("read_memory, a pattern of ten keys", 100, lambda n: ask(state, "read_memory", key=f"project.fig.row{10 + n % 80}*"))
    timed("list_memories", 100, lambda n: ask(state, "list_memories", pattern=f"project.{_TREES[n % 10]}.*"))

    def over(number: int) -> None:
        ask(state, "write_memory", key=key(next(drawn)), value=f"Row {number} is new in run {run}.")

    def new(number: int) -> None:
        ask(state, "write_memory", key=f"current.task{run}.{number}", value={"row": number, "done": False})

    timed("write_memory, text over another", _ROUNDS, over)
    timed("write_memory, a new key", _ROUNDS, new)
    timed("read_memory, right after", _ROUNDS, lambda _: ask(state, "read_memory", key=key(next(drawn))))
    timed("smart_resume", 50, lambda _: ask(state, "smart_resume"))


def together(state: Path, clients: int, seconds: float) -> None:
    """Who is too late reads again; an error that is no conflict is reported."""
    won: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    conflicts = [0]
    took: list[float] = []
    until = time.monotonic() + seconds
    there = ask(state, "read_memory", key="shared.counter*", scope="shared")["memories"]
    started = {each["key"]: each["value"] for each in there}

    def work(number: int) -> None:
        chance = random.Random(number)
        while time.monotonic() < until:
            name = f"shared.counter{chance.randrange(_COUNTERS)}"
            try:
                there = ask(state, "read_memory", key=name, scope="shared")
                value, version = (there["value"], there["version"]) if there["found"] else (0, 0)
                began = time.perf_counter()
                ask(state, "write_memory", key=name, value=value + 1, scope="shared", expected_version=version)
                took.append(1000 * (time.perf_counter() - began))
                won[name] += 1
            except Conflict:
                conflicts[0] += 1
            except KiteError as error:
                errors[str(error)[:80]] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lost = sum(started.get(name, 0) + won[name] - ask(state, "read_memory", key=name, scope="shared")["value"] for name in won)
    took.sort()
    updates = sum(won.values())
    print(f"  {clients} clients, {seconds:g} s: {updates} updates, {conflicts[0]} asked to read again, {lost} lost")
    halfway, nearly_all = percentile(took, 0.5), percentile(took, 0.95)
    print(f"  p50 {halfway:.0f}, p95 {nearly_all:.0f} ms, other errors: {dict(errors) or 'none'}", flush=True)


def resumed(gold: Path, transcripts: Path) -> None:
    from kite_memory.config import Config, EmbedderConfig, ExtractorConfig
    from kite_memory.wiring.services import open_services

    shares, tokens = [], []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        config = Config(
            file=home / "config.toml",
            state=home / "state",
            vault=home / "memory",
            claude_root=home / "claude",
            extractor=ExtractorConfig(name="offline"),
            embedder=EmbedderConfig(name="local"),
        )
        with open_services(config) as services:
            services.init_vault()
            for project in labelled(gold):
                for _, file in project.sessions():
                    session, events = events_of(transcripts, file)
                    if not events:
                        continue
                    commit(services.timeline, session, events)
                    result = services.operations.perform(
                        "bridge",
                        {
                            "tool": "smart_resume",
                            "arguments": {"session_id": session.id},
                            "asker": {"project": session.project, "session": "", "ai": "bench"},
                        },
                    )
                    answer = declarations.result_of(result)
                    said = estimated_tokens("\n".join(" ".join((each.text, each.command, each.path)) for each in events))
                    raw = next(transcripts.rglob(file)).stat().st_size
                    shares.append((answer["token_count"] / said, answer["token_count"] / (raw / 4)))
                    tokens.append(answer["token_count"])
    of_reported, of_file = (sorted(each) for each in zip(*shares, strict=True))
    print(f"  sessions {len(tokens)}: smart_resume {min(tokens)} to {max(tokens)} tokens, half of them under {median(tokens):g}")
    for name, ratios in (("what the timeline keeps", of_reported), ("the transcript (4 characters a token)", of_file)):
        within = sum(each <= 0.01 for each in ratios)
        print(f"  ÷ tokens of {name}: median {median(ratios):.2%}, most {ratios[-1]:.2%}; at most 1 % in {within}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--keep", type=Path, help="a folder to plant the memories in, or where they are already")
    parser.add_argument("--gold", type=Path)
    parser.add_argument("--transcripts", type=Path)
    asked = parser.parse_args()
    if asked.gold:
        resumed(asked.gold, asked.transcripts)
        return
    with tempfile.TemporaryDirectory() as folder:
        home = (asked.keep or Path(folder)).absolute()
        if not (home / "memory" / "projects" / "row-0.md").exists():
            home.mkdir(parents=True, exist_ok=True)
            plant(home, asked.memories)
        with daemon(home) as state:
            print(f"{asked.memories} keyed memories, load {os.getloadavg()[0]:.1f}", flush=True)
            latencies(state, asked.memories)
            together(state, asked.clients, asked.seconds)


if __name__ == "__main__":
    main()
