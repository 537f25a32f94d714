"""What a vault may hold beside good notes: reported, untouched, never fatal."""

import shutil
import unicodedata

import pytest

from kite_memory.errors import KiteError
from kite_memory.vault.files import MAX_NOTE_BYTES
from kite_memory.vault.vault import Vault
from tests.vault.building import contents, fact, write


def problems_of(vault: Vault) -> dict[str, str]:
    return {problem.file: problem.reason for problem in vault.scanner.compare().problems}


def paths(vault: Vault) -> list[str]:
    return [entry.path for entry in vault.notes.entries()]


MADE = ["pear-feb26 - Copy.md", "pear-feb26 copy.md", "pear-feb26 1.md"]
"""How Windows, the Mac's Finder and Obsidian call a copy that somebody asked for."""


@pytest.mark.parametrize("name", MADE)
def test_a_copy_that_a_person_made_is_reported_and_what_comes_later_goes_to_the_original(vault: Vault, name: str) -> None:
    (original,) = write(vault, fact("Pear"))
    copy = vault.root / "projects" / name
    shutil.copyfile(vault.root / original, copy)
    copy.write_text(copy.read_text() + "\nSaid on the other machine.\n")
    before = copy.read_bytes()

    problems = problems_of(vault)
    write(vault, fact("Pear", "It bears late, and wholly otherwise than said.", evidence=3), name="chunk-2", first=5)

    assert problems == {f"projects/{name}": "same id as another note"}
    assert copy.read_bytes() == before
    assert "bears late" in (vault.root / original).read_text()


def test_a_note_that_icloud_keeps_elsewhere_is_not_taken_for_deleted(vault: Vault) -> None:
    kept, evicted = write(vault, fact("Pear"), fact("Plum"))
    text = (vault.root / evicted).read_bytes()
    placeholder = vault.root / "projects" / f".{evicted.rpartition('/')[2]}.icloud"
    (vault.root / evicted).unlink()
    placeholder.write_bytes(b"bplist00")

    problems = problems_of(vault)
    written = write(vault, fact("Plum"))
    placeholder.unlink()
    (vault.root / evicted).write_bytes(text)
    later = vault.scanner.compare()

    assert problems == {evicted: "not downloaded from iCloud"}
    assert written == []
    assert (later.deleted, later.returned) == ((), ())
    assert paths(vault) == sorted([kept, evicted])
    assert not vault.known.is_buried(vault.notes.find(evicted).id)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Café.md", unicodedata.normalize("NFD", "Café.md")), ("Pear.md", "pear.md"), ("STRASSE.md", "straße.md")],
)
def test_names_that_another_disk_takes_for_one_are_reported_and_both_stay(vault: Vault, one: str, other: str) -> None:
    (vault.root / one).write_text("# One\n")
    if (vault.root / other).exists():
        pytest.skip("this disk takes them for one itself")
    (vault.root / other).write_text("# Other\n")
    before = contents(vault.root)
    first, second = sorted([one, other])

    problems = problems_of(vault)

    assert problems == {second: f"name differs from {first} in case or composition alone"}
    assert [vault.notes.find(path).title for path in (one, other)] == ["One", "Other"]
    assert contents(vault.root) == before


def test_a_note_of_five_megabytes_is_read_and_nothing_is_added_to_it(vault: Vault) -> None:
    (path,) = write(vault, fact("Pear"))
    file = vault.root / path
    text = file.read_text()
    file.write_text(text + "x" * (MAX_NOTE_BYTES - len(text)))
    before = file.read_bytes()

    problems = problems_of(vault)
    write(vault, fact("Pear", "Wholly otherwise than was said before.", evidence=3), name="chunk-2", first=5)

    assert problems == {}
    assert vault.notes.find("Pear").path == path
    assert file.read_bytes() == before


def test_a_note_that_grows_too_large_to_be_read_is_neither_deleted_nor_made_again(vault: Vault) -> None:
    (path,) = write(vault, fact("Pear"))
    file = vault.root / path
    file.write_text(file.read_text() + "x" * MAX_NOTE_BYTES)

    problems = problems_of(vault)

    assert problems == {path: "larger than 5 MB"}
    assert write(vault, fact("Pear")) == []
    assert vault.scanner.compare().deleted == ()


BROKEN = {
    "a list that is not closed": "tags: [a, b",
    "a tab": "\ttitle: x",
    "a colon": "title: a: b",
    "an anchor": "a: &x 1",
    "a merge of two machines": "<<<<<<< HEAD\ntitle: a\n=======\ntitle: b\n>>>>>>> theirs",
    "binary": "title: \x00\x01",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_note_whose_properties_somebody_broke_is_left_to_the_letter_and_stays_itself(vault: Vault, name: str) -> None:
    (path,) = write(vault, fact("Pear"))
    file = vault.root / path
    whole = file.read_text()
    file.write_text(whole.replace("---\n", f"---\n{BROKEN[name]}\n", 1))
    before = file.read_bytes()

    problems = problems_of(vault)
    again = write(vault, fact("Pear", "Wholly otherwise than was said before.", evidence=3), name="chunk-2", first=5)
    vault.scanner.mend_links()

    assert set(problems) == {path}
    assert (again, file.read_bytes()) == ([], before)
    file.write_text(whole)
    assert vault.scanner.compare().deleted == ()
    assert vault.notes.find("Pear").path == path


def test_properties_without_an_end_are_text_like_any_other_and_the_note_stays_itself(vault: Vault) -> None:
    (path,) = write(vault, fact("Pear"))
    id = vault.notes.find(path).id
    (vault.root / path).write_text("---\ntitle: x\n\nbody\n")

    assert problems_of(vault) == {}
    assert (vault.notes.find(path).id, vault.notes.find(path).body) == (id, "---\ntitle: x\n\nbody")


def test_a_write_protected_note_is_left_alone(vault: Vault) -> None:
    (path,) = write(vault, fact("Pear"))
    file = vault.root / path
    file.chmod(0o444)
    before = file.read_bytes()

    write(vault, fact("Pear", "It bears late, and wholly otherwise than said.", evidence=3), name="chunk-2", first=5)
    with pytest.raises(KiteError, match="write-protected"):
        vault.edits.mute(path)

    assert file.read_bytes() == before
