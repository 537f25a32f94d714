"""A file that is read often is read from the disk once, and again as soon as it may have changed."""

import os
from pathlib import Path

import pytest

from kite_memory.vault import Vault, files
from kite_memory.vault.files import Files
from tests.vault.building import TEMPLATE


def test_a_file_that_has_not_changed_is_not_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_SETTLED_NS", -(10**12))
    (tmp_path / "note.md").write_text("one")
    vault = Files(tmp_path)

    first = vault.read_again("note.md")

    assert first.data == b"one"
    assert vault.read_again("note.md") is first


@pytest.mark.parametrize("said", ["two", "longer than before"])
def test_a_change_is_seen_though_its_size_and_time_are_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr(files, "_SETTLED_NS", -(10**12))
    note = tmp_path / "note.md"
    note.write_text("one")
    vault = Files(tmp_path)
    vault.read_again("note.md")
    before = note.stat()

    other = tmp_path / "other.md"
    other.write_text(said)
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(note)  # as an editor saves

    assert vault.read_again("note.md").data == said.encode()
    note.unlink()
    with pytest.raises(FileNotFoundError):
        vault.read_again("note.md")


@pytest.mark.parametrize("seconds", [-5, 9_300_000_000, 15_000_000_000])
def test_a_file_of_an_odd_date_stops_no_comparison(tmp_path: Path, seconds: int) -> None:
    with Vault(tmp_path / "vault", tmp_path / "vault.sqlite") as vault:
        vault.ensure(TEMPLATE)
        (vault.root / "odd.md").write_text("# Pears\n\nThey keep.\n")
        os.utime(vault.root / "odd.md", (seconds, seconds))

        assert vault.scanner.compare().added == ("odd.md",)
        assert vault.scanner.compare().changed == ()
        found = vault.notes.read("odd.md")

    assert found is not None
    assert 1970 <= found.created.year <= 2262


def test_a_file_that_was_changed_a_moment_ago_is_read_anew_each_time(tmp_path: Path) -> None:
    """Two changes within one tick of the file system's clock have the same time."""
    (tmp_path / "note.md").write_text("one")
    vault = Files(tmp_path)

    assert vault.read_again("note.md") is not vault.read_again("note.md")
