"""What sync tools leave where two devices have changed one note: left alone, reported, and neither a second note nor a deletion."""

from pathlib import Path

import pytest

from kite_memory.app.vault_pages import VaultPages
from kite_memory.model.note import NoteStatus
from kite_memory.vault.listing import COPY_REASON as REASON
from kite_memory.vault.vault import Vault
from tests.vault.building import decision, later, write

TOOLS = {
    "Syncthing": "{}.sync-conflict-20260301-101112-ABCDEFG.md",
    "Dropbox": "{} (Ada's conflicted copy 2026-03-01).md",
    "Dropbox, selective": "{} (Selective Sync Conflict).md",
    "Dropbox, case": "{} (Case Conflict 1).md",
    "Dropbox, German": "{} (In Konflikt stehende Kopie von Ada 2026-03-01).md",
    "Dropbox, French": "{} (Copie en conflit de Ada 2026-03-01).md",
    "Dropbox, Spanish": "{} (Copia en conflicto de Ada 2026-03-01).md",
    "Dropbox, Italian": "{} (Copia in conflitto di Ada 2026-03-01).md",
    "Nextcloud": "{} (conflicted copy 2026-03-01 101112).md",
    "ownCloud": "{}_conflict-20260301-101112.md",
    "Obsidian Sync": "{} (Conflicted copy laptop 202603011011).md",
    "Seafile": "{} (SFConflict ada@example.com 2026-03-01-10-11-12).md",
    "pCloud": "{} [conflicted].md",
    "Synology Drive": "{}_DISKSTATION_Mar-01-101112-2026_Conflict.md",
    "Resilio Sync": "{}.Conflict.md",
    "iCloud": "{} 2.md",
    "iCloud, a third": "{} 3.md",
    "Google Drive": "{} (1).md",
    "MEGA": "{}(2).md",
    "OneDrive": "{}-LAPTOP.md",
    "OneDrive, Windows": "{}-DESKTOP-4F7K2QM.md",
    "OneDrive, Mac": "{}-Ada's MacBook Pro.md",
    "OneDrive, twice": "{}-LAPTOP-2.md",
}
MINE = "# Pears\n\nThey stand behind the barn, in rows of seven, and bear late in the year.\n"
SINCE = "Said on the other machine.\n"

tools = pytest.mark.parametrize("name", TOOLS.values(), ids=TOOLS)
whose = pytest.mark.parametrize("whose", ["ours", "theirs"])


def noted(vault: Vault, whose: str) -> Path:
    """A note that is ours has an id, one that its owner wrote in an editor has none."""
    write(vault, decision("Prune in March", "Pruning is done in March."))
    if whose == "ours":
        (path,) = write(
            vault,
            decision("Pears must always stand on quince stock", "Pears stand on quince stock since floods drown roots."),
            name="chunk-2",
        )
        return vault.root / path
    file = vault.root / "projects" / "Pears.md"
    file.write_text(MINE)
    vault.scanner.compare()
    return file


def copied(file: Path, name: str) -> Path:
    copy = file.with_name(name.format(file.stem))
    copy.write_text(file.read_text() + SINCE)
    return copy


def paths(vault: Vault) -> list[str]:
    return [entry.path for entry in vault.notes.entries()]


@whose
@tools
def test_a_copy_of_a_sync_tool_is_reported_and_is_no_second_note(vault: Vault, name: str, whose: str) -> None:
    file = noted(vault, whose)
    before = paths(vault)
    copy = copied(file, name)
    theirs = copy.read_bytes()
    inside = copy.relative_to(vault.root).as_posix()

    compared = vault.scanner.compare()
    VaultPages(vault=vault, clock=later).synthesize()

    assert (compared.added, compared.renamed, compared.deleted) == ((), (), ())
    assert {problem.file: problem.reason for problem in compared.problems} == {inside: REASON}
    assert paths(vault) == before
    assert copy.read_bytes() == theirs
    assert (vault.root / "MEMORY.md").read_text().count("Pears must always stand on quince stock") == (1 if whose == "ours" else 0)


@tools
def test_a_copy_that_comes_or_goes_is_no_deletion_and_the_note_stays_the_note(vault: Vault, name: str) -> None:
    file = noted(vault, "ours")
    id = vault.notes.find(file.relative_to(vault.root).as_posix()).id
    copy = copied(file, name)
    file.unlink()  # as some tools do: the local file gets the copy's name, then the other device's takes its place
    first = vault.scanner.compare()
    file.write_text(copy.read_text().replace(SINCE, ""))
    second = vault.scanner.compare()
    copy.unlink()

    third = vault.scanner.compare()

    assert (first.deleted, second.deleted, third.deleted) == ((), (), ())
    assert not vault.known.is_buried(id)
    known = vault.known.by_id(id)
    assert known is not None and vault.root / known.path == file
    assert len(paths(vault)) == 2


@tools
def test_what_is_said_later_goes_to_the_note_and_not_to_its_copy(vault: Vault, name: str) -> None:
    file = noted(vault, "ours")
    copy = copied(file, name)
    theirs = copy.read_bytes()
    vault.scanner.compare()

    write(
        vault,
        decision("Pears must always stand on quince stock", "Wholly otherwise than said.", evidence=3),
        name="chunk-3",
        first=5,
    )

    assert copy.read_bytes() == theirs
    assert "otherwise than said" in file.read_text()


@pytest.mark.parametrize("name", [TOOLS[tool] for tool in ("iCloud", "Google Drive", "OneDrive")])
def test_a_note_of_a_persons_own_may_have_such_a_name(vault: Vault, name: str) -> None:
    file = noted(vault, "theirs")
    other = file.with_name(name.format(file.stem))
    other.write_text("Of apples there is much to tell that was never said of any other tree in this place.\n")

    compared = vault.scanner.compare()

    assert compared.problems == ()
    assert other.relative_to(vault.root).as_posix() in paths(vault)


def test_a_copy_that_a_person_makes_their_own_is_a_note_again(vault: Vault) -> None:
    file = noted(vault, "ours")
    copy = copied(file, TOOLS["iCloud"])
    vault.scanner.compare()
    copy.write_text("Of apples there is much to tell that was never said of any other tree in this place.\n")

    compared = vault.scanner.compare()

    assert compared.added == (copy.relative_to(vault.root).as_posix(),)
    assert compared.problems == ()


def test_of_a_note_that_is_gone_its_copy_is_the_note(vault: Vault) -> None:
    file = noted(vault, "ours")
    copy = copied(file, TOOLS["OneDrive"])
    vault.scanner.compare()
    file.unlink()

    compared = vault.scanner.compare()

    assert compared.deleted == ()
    assert copy.relative_to(vault.root).as_posix() in paths(vault)


def copied_beside(vault: Vault, file: Path, text: str = "") -> Path:
    """A copy with the same id, under a name that no sync tool gives."""
    copy = file.with_name("another name.md")
    copy.write_text(file.read_text() + text)
    vault.scanner.compare()
    return copy


def test_a_note_is_muted_with_its_copies_and_back(vault: Vault) -> None:
    file = noted(vault, "ours")
    copy = copied_beside(vault, file)
    path, beside = (each.relative_to(vault.root).as_posix() for each in (file, copy))

    vault.edits.mute(path)
    muted = [vault.notes.get(each).status for each in (path, beside)]
    vault.edits.mute(path, undo=True)

    assert muted == [NoteStatus.MUTED, NoteStatus.MUTED]
    assert [vault.notes.get(each).status for each in (path, beside)] == [NoteStatus.ACCEPTED, NoteStatus.ACCEPTED]


def test_a_note_is_forgotten_with_its_copies_but_not_with_what_says_something_else(vault: Vault) -> None:
    file = noted(vault, "ours")
    copy = copied_beside(vault, file)
    other = file.with_name("other.md")
    other.write_text(file.read_text() + "\nPlums do not.\n")
    vault.scanner.compare()

    gone = vault.edits.forget(file.relative_to(vault.root).as_posix())

    assert set(gone.copies) == {copy.relative_to(vault.root).as_posix()}
    assert [each.exists() for each in (file, copy, other)] == [False, False, True]


@pytest.mark.parametrize(
    ("called", "own"),
    [
        ("{path}", True),
        ("./{path}", True),
        ("{stem}", True),
        ("{id}", True),
        ("{id:.12}", True),
        ("{id[19]}{id[20]}{id[21]}{id[22]}{id[23]}{id[24]}{id[25]}", True),
        ("pears must always stand on QUINCE stock", True),
        ("Pears", False),
        ("P", False),
        ("pears on quince", True),
        ("{id:.3}", False),
    ],
)
def test_a_name_is_a_note_s_own_or_only_a_part_of_it(vault: Vault, called: str, own: bool) -> None:
    file = noted(vault, "ours")
    path = file.relative_to(vault.root).as_posix()
    known = vault.known.at([path])[0]
    vault.notes.find(path)
    for each in list(vault.notes.entries()):  # so that every beginning of the id is of this note alone
        if each.path != path:
            vault.edits.forget(each.path)

    assert vault.notes.is_own_name(called.format(path=path, stem=file.stem, id=known.id)) is own
