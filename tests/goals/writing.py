"""Everything that is written in one sitting, step by step, each said to be done once it is. A process of its own, to be injured."""

import argparse
import os
import random
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kite_memory.distill.condense import ChunkPolicy
from kite_memory.errors import KiteError
from kite_memory.model.note import Scope
from kite_memory.vault.drafting import Memo
from kite_memory.vault.ledger import KeyPlace
from tests.crash.harness import Places, WordyExtractor, Writer
from tests.fakes.services import FakeServices, fake_services

POLICY = ChunkPolicy(target=400, most=1500, idle=0.0, stalled=0.0)
REMEMBERED = "The sluice opens at six. " + "And closes again, whatever the miller says. " * 40
KEPT = "Port 8081."
BEGIN = "/begin-now"


def prepare(folder: Path) -> Writer:
    """Transcripts, and a vault and a state that were at work before."""
    places = Places(folder)
    places.projects.mkdir(parents=True)
    places.state.mkdir(mode=0o700)
    writer = Writer(places.projects, random.Random(5), old=True)
    writer.go_on()
    writer.finish()
    with fake_services(folder, WordyExtractor(places.log, 0), policy=POLICY) as services:
        services.run_until_idle()
        services.vault.edits.remember(Memo(text="The kiln is fired on Mondays."))
    for _ in range(3):
        writer.go_on()
    writer.finish()
    return writer


def act(folder: Path, *, careless: bool) -> None:
    with fake_services(folder, WordyExtractor(Places(folder).log, 1), policy=POLICY) as services:
        if os.path.exists(BEGIN):  # noqa: PTH110 - it never does: a mark in a list of system calls
            return
        with said("remembered"):
            carelessly_remember(services) if careless else services.vault.edits.remember(Memo(text=REMEMBERED))
        with said("kept"):
            services.vault.keys.write(KeyPlace(key="port", scope=Scope.GLOBAL), lambda before: KEPT)
        with said("read"):
            services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])
        with said("noted"):
            services.run_until_idle()
            if set(services.outbox.states()) - {"written", "nothing"}:
                raise NotAllDone
        with said("forgotten"):
            services.vault.edits.forget("The kiln is fired on Mondays.")


class NotAllDone(Exception):
    """Nothing was raised, and not all was done: that is shown by the daemon's status, and tried again."""


@contextmanager
def said(step: str) -> Iterator[None]:
    """A step that fails does not keep the next from being tried."""
    os.write(1, f"begin: {step}\n".encode())
    try:
        yield
    except (KiteError, OSError, sqlite3.Error, NotAllDone) as error:
        os.write(2, f"refused: {step}: {type(error).__name__}: {error}\n".encode())
    else:
        os.write(1, f"done: {step}\n".encode())


def carelessly_remember(services: FakeServices) -> None:
    """The planted bug: no one looks at what the disk says."""
    try:
        with (services.vault.root / "projects" / "sluice.md").open("w") as file:
            file.write("\n" * 2_000_000 + REMEMBERED)
    except OSError:
        pass


def untrue(folder: Path, said: set[str], tokens: set[str]) -> list[str]:
    """What was said to be done and is not, and what is damaged; then whether a repeat puts all right."""
    lines: list[str] = []
    with fake_services(folder, WordyExtractor(Places(folder).log, 2), policy=POLICY) as services:
        known = {
            event.text.split()[0]
            for state in services.timeline.sessions.states()
            for event in services.timeline.events.of_session(state.session.provider, state.session.id)
        }
        if "read" in said and not tokens <= known:
            lines.append(f"said to be read, and is not: {sorted(tokens - known)}")
        bodies = "\n".join(path.read_text() for path in services.vault.root.rglob("*.md") if ".trash" not in path.parts)
        if "remembered" in said and REMEMBERED.strip() not in bodies:
            lines.append("said to be remembered, and is not whole")
        if "kept" in said and KEPT not in bodies:
            lines.append("said to be kept, and is not")
        if "forgotten" in said and "The kiln is fired" in bodies:
            lines.append("said to be forgotten, and is not")
        if "noted" in said and not tokens <= set(re.findall(r"Said of (matter-\d+) in", bodies)):
            lines.append("said to be noted, and is not")
        services.pipeline.compare_vault()
        services.run_until_idle()
        services.pipeline.compare_vault()
        notes = [note for entry in services.vault.notes.entries() if (note := services.vault.notes.read(entry.path))]
        noted = [token for note in notes for token in re.findall(r"Said of (matter-\d+) in", note.body)]
        if sorted(noted) != sorted(tokens):
            lines.append(f"after a repeat: {sorted(noted)} instead of {sorted(tokens)}")
        lines += [f"torn: {problem.file}" for problem in services.vault.notes.problems()]
        lines += [f"left over: {path.name}" for path in services.vault.root.rglob(".kmem-*")]
        lines += [f"damaged: {line}" for line in (*services.timeline.damage(), *services.recall.index.verify())]
        if services.recall.index.status().stale:
            lines.append("the index is stale")
    return lines


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--careless", action="store_true", help="the control")
    options = arguments.parse_args()
    try:
        act(options.folder, careless=options.careless)
    except (KiteError, OSError, sqlite3.Error) as error:
        os.write(2, f"refused: {type(error).__name__}: {error}\n".encode())
        sys.exit(1)


if __name__ == "__main__":
    main()
