"""Goal 11: whatever a title, a key, a link or a project is called, nothing outside the vault is written; nor while folders are
swapped for links under our hands.

`tests/vault/test_vault_files.py` holds each touch of the disk to it; here the whole vault is, with names by the thousand.
"""

import contextlib
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from kite_memory.errors import KiteError
from kite_memory.model.note import NoteKind, Scope
from kite_memory.paths import asset_folder
from kite_memory.vault import Vault
from kite_memory.vault.drafting import Memo
from kite_memory.vault.files import Files
from kite_memory.vault.folders import Folder
from kite_memory.vault.ledger import KeyPlace
from tests.counts import how_many
from tests.vault.building import drafts, fact

NAMES = how_many(10_000)
SECONDS = how_many(60)

_PARTS = (
    "..", ".", "...", "/", "//", "\\", "~", "~root", "etc", "passwd", "C:", "\\\\?\\", "CON", "nul.md", "aux", "\0", "\n", "\t",
    "%2e%2e", "%2f", "\u2215", "\u2044", "\uff0f", "\uff0e\uff0e", "\u202e", "\u200b", ".git", ".obsidian", ".trash", ".kmem-x",
    "[[", "]]", "|", "#", "^", ":", "*", "?", '"', "<", ">", "$(id)", "`id`", ";", "-rf", "a" * 300, "é", "e\u0301", "İ", "ß", "🍐",
    "日本", "\ud800", "\udcff", " ", "", "file://", "http://x", "hooks", "post-commit", "config", "MEMORY.md", "Home.md",
)  # fmt: skip


def hostile(chance: random.Random) -> str:
    return "".join(chance.choices(_PARTS, k=chance.randrange(1, 8)))


@dataclass(frozen=True, slots=True)
class Yard:
    """A vault with something of value on every side of it."""

    root: Path
    vault: Vault

    def outside(self) -> dict[str, bytes]:
        inside = self.root / "deep" / "vault"
        own = self.root / "state"
        return {
            str(path.relative_to(self.root)): path.read_bytes() if path.is_file() else b""
            for path in sorted(self.root.rglob("*"))
            if not path.is_relative_to(inside) and not path.is_relative_to(own)
        }


@contextmanager
def yard(root: Path) -> Iterator[Yard]:
    for place in (root, root / "deep"):
        place.mkdir(exist_ok=True)
        for name in ("x.md", "passwd", "decisions.md", ".git"):
            (place / name).write_text(f"not ours: {name}")
    vault = Vault(root / "deep" / "vault", root / "state" / "vault.sqlite")
    try:
        vault.ensure(Path(asset_folder("vault_template")))
        yield Yard(root, vault)
    finally:
        vault.close()


def written_under(vault: Vault, name: str, number: int) -> None:
    """As a title, a tag, a project, a session, a key, an entity, a link, a note's name to forget or to mark."""
    with contextlib.suppress(KiteError):
        match number % 5:
            case 0:
                kind = list(NoteKind)[number // 5 % len(NoteKind)]
                vault.edits.remember(
                    Memo(
                        text=f"{name} [[{name}]]",
                        kind=kind,
                        title=name,
                        project=name,
                        session=name,
                        tags=[name],
                        origin="assistant",
                    )
                )
            case 1:
                text = name.encode("utf-8", "replace").decode()  # as every caller makes sure of
                place = KeyPlace(key=text or "k", scope=Scope.PROJECT, project=text, session="")
                vault.keys.write(place, lambda before: f"{number}: {text}", kind=NoteKind.FACT, by=text)
            case 2:
                items = [fact(name, f"{name} {number}.", entities=(name, f"person:{name}")) for _ in range(2)]
                vault.planner.carry_out(vault.planner.plan(drafts(*items, name=f"chunk-{number}")))
            case 3:
                for doing in (vault.edits.forget, vault.edits.mute, vault.notes.find, vault.notes.called):
                    with contextlib.suppress(KiteError):
                        doing(name)
            case _:
                with contextlib.suppress(ValueError):  # only our own pages have names
                    vault.pages.put(name, "a page", before=vault.pages.read(name))


def escapes(root: Path, count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    with yard(root) as here:
        before = here.outside()
        for number in range(count):
            written_under(here.vault, hostile(chance), number)
        assert len(list(here.vault.notes.entries())) > count // 20
        after = here.outside()
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def test_no_name_leads_out_of_the_vault(tmp_path: Path) -> None:
    assert escapes(tmp_path / "yard", NAMES, 1) == []


def test_control_a_vault_that_takes_paths_as_they_come_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def as_they_come(path: str) -> list[str]:
        return [part for part in path.split("/") if part]

    monkeypatch.setattr("kite_memory.vault.files.parts_of", as_they_come)
    with yard(tmp_path / "yard") as here:
        before = here.outside()
        files = Files(here.vault.root)
        files.publish(files.fill("../x2.md", b"a note"))

        assert here.outside() != before


def raced(root: Path, seconds: float) -> tuple[dict[str, bytes], dict[str, bytes], int]:
    """Somebody else makes folders links that lead out, and folders again, as fast as they can, while notes are written."""
    stop = threading.Event()
    with yard(root) as here:
        target = root / "target"
        target.mkdir()
        vault = root / "deep" / "vault"

        def swap() -> None:
            chance = random.Random(3)
            while not stop.is_set():
                folder = vault / chance.choice(("decisions", "projects", "topics", ".trash"))
                aside = folder.with_name(f"{folder.name}.aside")
                with contextlib.suppress(OSError):
                    folder.rename(aside)
                with contextlib.suppress(OSError):
                    folder.symlink_to(target)
                with contextlib.suppress(OSError):
                    folder.unlink()
                with contextlib.suppress(OSError):
                    aside.rename(folder)

        swapping = threading.Thread(target=swap)
        before = here.outside()
        swapping.start()
        ends = threading.Timer(seconds, stop.set)
        ends.start()
        number = 0
        try:
            while not stop.is_set():
                number += 1
                with contextlib.suppress(KiteError, FileNotFoundError):  # the folder is not there at all for a moment
                    note = here.vault.edits.remember(
                        Memo(text=f"Pears {number}.", kind=NoteKind.DECISION if number % 2 else NoteKind.FACT)
                    )
                    if number % 3 == 0:
                        here.vault.edits.forget(note.id)
        finally:
            stop.set()
            ends.cancel()
            swapping.join()
        return before, here.outside(), number


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="this system has no way to open a folder without following links")
def test_folders_swapped_for_links_lead_nowhere_for_a_minute(tmp_path: Path) -> None:
    before, after, tries = raced(tmp_path / "yard", SECONDS)

    assert tries > 10 * SECONDS
    assert after == before


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="this system has no way to open a folder without following links")
def test_control_folders_that_are_opened_by_their_names_lead_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def followed(self: Folder, name: str) -> Folder:
        handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.descriptor)
        return Folder(self.path / name, handle, self.vault_mode)

    monkeypatch.setattr(Folder, "child", followed)

    with yard(tmp_path / "yard") as here:
        folder, target = here.root / "deep" / "vault" / "decisions", here.root / "target"
        target.mkdir()
        folder.rename(folder.with_name("aside"))
        folder.symlink_to(target)
        before = here.outside()
        files = Files(here.vault.root)

        files.publish(files.fill("decisions/x.md", b"a note"))

        assert here.outside() != before
