"""A file that is read often is read from the disk once, and again as soon as it may have changed."""

import os
from pathlib import Path

import pytest

from kite_memory.vault import files
from kite_memory.vault.files import Files


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


def test_a_file_that_was_changed_a_moment_ago_is_read_anew_each_time(tmp_path: Path) -> None:
    """Two changes within one tick of the file system's clock have the same time."""
    (tmp_path / "note.md").write_text("one")
    vault = Files(tmp_path)

    assert vault.read_again("note.md") is not vault.read_again("note.md")
