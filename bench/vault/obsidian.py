"""The vault as Obsidian sees it, and how long one takes that is large or holds much that is not ours.

    python -m bench.vault.obsidian [--transcripts DIR] [--notes 10000] [--foreign 50000]

DIR is a folder as Claude Code keeps it (``projects/`` below it). Its sessions go through the real distillation with the offline
rules into a vault in a temporary folder, which `obsidiantools` then opens. Prints tables; asserts nothing.
"""

import argparse
import importlib
import random
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from kite_memory.app.vault_pages import VaultPages
from kite_memory.distill.offline import OfflineExtractor
from kite_memory.model.note import NoteKind
from kite_memory.vault import links
from kite_memory.vault.drafting import Memo
from kite_memory.vault.graph import FORMATS, centrality, graph
from kite_memory.vault.memory_page import page
from kite_memory.vault.vault import Vault
from tests.fakes.services import fake_services
from tests.vault.building import START, TEMPLATE, later, note

_NOT_NOTES = frozenset({"Home", "README", "MEMORY", "Review", "Daily", "Decision", "Note"})


def distilled(transcripts: Path, home: Path) -> Path:
    (home / "claude").symlink_to(transcripts.absolute())
    with fake_services(home, OfflineExtractor()) as services:
        services.run_until_idle()
        pages = VaultPages(vault=services.vault, clock=later)
        pages.synthesize()
        before = (services.vault.root / "MEMORY.md").read_bytes()
        pages.synthesize()
        if (services.vault.root / "MEMORY.md").read_bytes() != before:
            raise SystemExit("MEMORY.md of an unchanged vault has changed")
        return services.vault.root


def seen(root: Path) -> Table:
    obsidian: Any = importlib.import_module("obsidiantools.api")
    vault = obsidian.Vault(root).connect(show_nested_tags=True).gather()
    fronts: dict[str, dict[str, Any]] = vault.front_matter_index
    notes = {name: front for name, front in fronts.items() if name not in _NOT_NOTES}
    pages = {name for name, front in notes.items() if front.get("kind") == NoteKind.ENTITY.value}
    alone = set(vault.isolated_notes) & set(notes)
    titles = {notes[page]["title"].casefold() for page in pages}
    unmeant = [name for name in alone if titles & {one.casefold() for one in notes[name].get("entities", [])}]
    table = Table("what", "figure", title="As Obsidian sees it")
    table.add_row("notes, of which pages of names", f"{len(notes)}, {len(pages)}")
    table.add_row("links", str(sum(map(len, vault.wikilinks_index.values()))))
    table.add_row("unresolved links", str(len(vault.nonexistent_notes)))
    table.add_row("notes without properties that can be read", str(sum(not front for front in notes.values())))
    table.add_row(
        "notes alone; pages alone; alone though a page has their name", f"{len(alone)}; {len(alone & pages)}; {len(unmeant)}"
    )
    inbound = Counter({page: len(set(vault.get_backlinks(page))) for page in pages})
    table.add_row("most linked pages", ", ".join(f"{name} {count}" for name, count in inbound.most_common(8)))
    return table


def large(count: int) -> Table:
    dice = random.Random(1)
    kinds = list(NoteKind)
    notes = []
    for number in range(count):
        body = "Said. " + " ".join(f"[[row-{int(dice.paretovariate(0.7)) % count}-feb26]]" for _ in range(4))
        notes.append(replace(note(f"Row {number}", body), kind=kinds[number % len(kinds)], links=links.targets(body)))
    table = Table("of the whole vault", "seconds", title=f"{count:,} notes")
    began = time.perf_counter()
    whole = graph(notes)
    table.add_row(f"graph ({len(whole.arrows):,} links)", f"{time.perf_counter() - began:.2f}")
    for name, work in (("centrality", centrality), ("MEMORY.md", lambda drawn: page(drawn, START)), *FORMATS.items()):
        began = time.perf_counter()
        work(whole)
        table.add_row(name, f"{time.perf_counter() - began:.2f}")
    return table


def foreign(count: int, home: Path) -> Table:
    table = Table("a comparison", "seconds", title=f"A vault with {count:,} files that are not ours")
    with Vault(home / "vault", home / "state" / "vault.sqlite", clock=later) as vault:
        vault.ensure(TEMPLATE)
        for number in range(200):
            vault.edits.remember(Memo(text=f"Row {number} bears late."))
        for when in ("without them", "with them", "with them again"):
            if when == "with them":
                for number in range(count):
                    folder = home / "vault" / "code" / str(number % 500)
                    folder.mkdir(parents=True, exist_ok=True)
                    (folder / f"file{number}.py").write_bytes(b"")
            began = time.perf_counter()
            compared = vault.scanner.compare()
            table.add_row(f"{when} ({len(compared.problems)} problems)", f"{time.perf_counter() - began:.2f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transcripts", type=Path)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--foreign", type=int, default=50_000)
    asked = parser.parse_args()
    console = Console(width=120)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        if asked.transcripts:
            (home / "distilled").mkdir()
            console.print(seen(distilled(asked.transcripts, home / "distilled")))
        console.print(large(asked.notes))
        console.print(foreign(asked.foreign, home / "foreign"))


if __name__ == "__main__":
    main()
