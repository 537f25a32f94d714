"""The vault's files where Windows refuses to rename or remove a file that another program has open: the refusals are simulated."""

import errno
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kite_memory.errors import VaultReadOnly
from kite_memory.vault.files import Files
from kite_memory.vault.folders import KernelRenames
from kite_memory.vault.wording import digest
from tests.vault.building import contents

TRIES = 50
NEVER_CLOSED = 10**6


class OpenElsewhere:
    """Refuses to rename or remove files as long as another program has them open. ``busy`` says how many more times, by name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.busy: dict[str, int] = {}
        self.waited = 0
        self.on_wait: Callable[[], object] = lambda: None
        for name in ("replace", "rename", "unlink"):
            monkeypatch.setattr(os, name, self._refusing(name, getattr(os, name)))
        monkeypatch.setattr(time, "sleep", self._wait)

    def _wait(self, seconds: float) -> None:
        self.waited += 1
        self.on_wait()

    def _refusing(self, call: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def change(*paths: Any, **folders: Any) -> Any:
            for path in paths:
                for name, left in self.busy.items():
                    if left and Path(path).name.startswith(name):
                        self.busy[name] -= 1
                        raise PermissionError(errno.EACCES, "it is being used by another process", str(path))
            if call == "rename" and Path(paths[1]).exists():
                raise FileExistsError(errno.EEXIST, "it exists", str(paths[1]))  # as on Windows
            return real(*paths, **folders)

        return change


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> OpenElsewhere:
    monkeypatch.setattr("kite_memory.vault.folders._BY_DESCRIPTOR", False)
    opened = OpenElsewhere(monkeypatch)
    monkeypatch.setattr(sys, "platform", "win32")
    return opened


def with_a_note(root: Path) -> Files:
    root.mkdir()
    files = Files(root, renames=KernelRenames())
    files.publish(files.fill("x.md", b"old"))
    return files


def test_a_new_note_waits_for_the_scanner_that_reads_it(tmp_path: Path, windows: OpenElsewhere) -> None:
    windows.busy[".kmem-fill-"] = 3

    with_a_note(tmp_path / "v")

    assert contents(tmp_path / "v") == {"x.md": b"old"}
    assert windows.waited == 3


def test_a_taken_name_is_not_waited_for(tmp_path: Path, windows: OpenElsewhere) -> None:
    files = with_a_note(tmp_path / "v")
    filled = files.fill("x.md", b"another")

    with pytest.raises(FileExistsError):
        files.publish(filled)

    files.discard(filled.temporary)
    assert contents(tmp_path / "v") == {"x.md": b"old"}
    assert windows.waited == 0


def test_a_note_is_replaced_when_its_reader_has_closed_it(tmp_path: Path, windows: OpenElsewhere) -> None:
    files = with_a_note(tmp_path / "v")
    windows.busy["x.md"] = 4

    assert files.replace("x.md", b"new", expected=digest(b"old"))
    assert contents(tmp_path / "v") == {"x.md": b"new"}
    assert windows.waited == 4


def test_what_is_saved_while_we_wait_is_kept(tmp_path: Path, windows: OpenElsewhere) -> None:
    files = with_a_note(tmp_path / "v")
    windows.busy["x.md"] = 4
    windows.on_wait = lambda: (tmp_path / "v" / "x.md").write_bytes(b"saved by its owner")

    assert files.replace("x.md", b"new", expected=digest(b"old")) is None
    assert contents(tmp_path / "v") == {"x.md": b"saved by its owner"}


@pytest.mark.parametrize("change", ["replace", "to_trash", "rename"])
def test_a_note_that_stays_open_is_left_and_said(tmp_path: Path, windows: OpenElsewhere, change: str) -> None:
    files = with_a_note(tmp_path / "v")
    windows.busy["x.md"] = NEVER_CLOSED

    with pytest.raises(VaultReadOnly):
        match change:
            case "replace":
                files.replace("x.md", b"new", expected=digest(b"old"))
            case "to_trash":
                files.to_trash("x.md")
            case _:
                files.rename("x.md", "y.md")

    assert contents(tmp_path / "v") == {"x.md": b"old"}
    assert windows.waited == TRIES


def test_a_note_goes_to_the_trash_when_it_is_closed(tmp_path: Path, windows: OpenElsewhere) -> None:
    files = with_a_note(tmp_path / "v")
    windows.busy["x.md"] = 2

    kept = files.to_trash("x.md")

    assert contents(tmp_path / "v") == {kept: b"old"}
    assert windows.waited == 2


def test_longest_name_below_the_vault_leaves_room_in_260_characters(tmp_path: Path, windows: OpenElsewhere) -> None:
    """A note's name has at most 60 characters, and what lies beside it for a moment has fewer than 100."""
    files = with_a_note(tmp_path / "v")
    longest = 0

    def measure() -> None:
        nonlocal longest
        longest = max(longest, *(len(path.name) for path in (tmp_path / "v").iterdir()))

    windows.busy["x.md"] = 1
    windows.on_wait = measure
    files.replace("x.md", b"new", expected=digest(b"old"))

    assert 60 < longest < 100
