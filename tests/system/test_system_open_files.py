"""Open files where the systems differ: Windows refuses to replace them and locks them its own way, macOS syncs them its own way.

Simulated: the platform's name, and the calls.
"""

import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kite_memory.errors import KiteError
from kite_memory.system import private_files
from kite_memory.system.private_files import lock, replace_file, sync_file


class Refusal:
    """A rename that is refused ``times`` times, then done."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.asked = 0
        self.rename = Path.replace

    def __call__(self, path: Path, target: Path) -> Path:
        self.asked += 1
        if self.left > 0:
            self.left -= 1
            raise PermissionError(errno.EACCES, "it is being used by another process", str(target))
        return self.rename(path, target)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    listed: list[float] = []
    monkeypatch.setattr(time, "sleep", listed.append)
    return listed


def refusing(monkeypatch: pytest.MonkeyPatch, platform: str, times: int) -> Refusal:
    refusal = Refusal(times)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "replace", lambda path, target: refusal(path, target))
    return refusal


def test_on_windows_a_file_that_a_reader_has_open_is_replaced_when_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    (tmp_path / "note.md").write_bytes(b"old")
    refusing(monkeypatch, "win32", times=3)

    replace_file(tmp_path / "note.md", b"new")

    assert (tmp_path / "note.md").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["note.md"]
    assert len(pauses) == 3


def test_on_windows_a_file_that_stays_open_keeps_its_content_and_nothing_lies_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    (tmp_path / "note.md").write_bytes(b"old")
    refusing(monkeypatch, "win32", times=10**6)

    with pytest.raises(PermissionError):
        replace_file(tmp_path / "note.md", b"new")

    assert (tmp_path / "note.md").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["note.md"]
    assert 0.9 < sum(pauses) < 1.1


def test_elsewhere_a_refusal_is_final(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float]) -> None:
    refusal = refusing(monkeypatch, "linux", times=1)

    with pytest.raises(PermissionError):
        replace_file(tmp_path / "note.md", b"new")

    assert (refusal.asked, pauses) == (1, [])


fcntl = pytest.importorskip("fcntl")


class Msvcrt:
    """Windows' locks of a range of bytes, kept by the kernel here; ``at`` lists where they were asked for."""

    LK_NBLCK = 2

    def __init__(self) -> None:
        self.at: list[int] = []
        self.refused_with = 0

    def locking(self, handle: int, mode: int, count: int) -> None:
        assert (mode, count) == (self.LK_NBLCK, 1)
        self.at.append(os.lseek(handle, 0, os.SEEK_CUR))
        if self.refused_with:
            raise OSError(self.refused_with, "refused")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None


@pytest.fixture
def msvcrt(monkeypatch: pytest.MonkeyPatch) -> Msvcrt:
    locks = Msvcrt()
    monkeypatch.setattr(private_files, "msvcrt", locks, raising=False)
    monkeypatch.setattr(sys, "platform", "win32")
    return locks


@pytest.fixture
def handles(tmp_path: Path) -> Iterator[tuple[int, int]]:
    first, second = (os.open(tmp_path / ".lock", os.O_CREAT | os.O_RDWR) for _ in range(2))
    yield first, second
    os.close(second)


def test_on_windows_a_second_writer_waits_until_the_first_has_closed_the_file(
    handles: tuple[int, int], msvcrt: Msvcrt, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = handles
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            os.close(first)

    monkeypatch.setattr(time, "sleep", wait)
    lock(first)

    lock(second)

    assert len(waits) == 3
    assert len(set(msvcrt.at)) == 1
    assert msvcrt.at[0] > 2**16, "Windows forbids reading what is locked"


def test_on_windows_a_file_that_cannot_be_locked_is_not_waited_for(handles: tuple[int, int], msvcrt: Msvcrt) -> None:
    first, _ = handles
    msvcrt.refused_with = errno.EINVAL

    with pytest.raises(KiteError, match="cannot be locked"):
        lock(first)
    os.close(first)


class Syncs:
    """macOS's two syncs; ``asked`` lists those that were called, by name."""

    FULL = 51

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.refused_with = 0
        monkeypatch.setattr(fcntl, "F_FULLFSYNC", self.FULL, raising=False)
        monkeypatch.setattr(fcntl, "fcntl", self._full)
        monkeypatch.setattr(os, "fsync", lambda handle: self.asked.append("fsync"))

    def _full(self, handle: int, command: int) -> int:
        assert command == self.FULL
        self.asked.append("full")
        if self.refused_with:
            raise OSError(self.refused_with, "refused")
        return 0


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Syncs:
    return Syncs(monkeypatch)


def test_on_macos_a_file_and_its_folder_reach_the_disk_itself(tmp_path: Path, syncs: Syncs) -> None:
    replace_file(tmp_path / "note.md", b"new")

    assert syncs.asked == ["full", "full"]


@pytest.mark.parametrize("error", [errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_on_macos_a_file_system_without_it_gets_an_ordinary_sync(tmp_path: Path, syncs: Syncs, error: int) -> None:
    syncs.refused_with = error

    replace_file(tmp_path / "note.md", b"new")

    assert syncs.asked == ["full", "fsync", "full", "fsync"]


def test_on_macos_an_error_of_the_disk_is_not_taken_for_a_file_system_without_it(tmp_path: Path, syncs: Syncs) -> None:
    syncs.refused_with = errno.EIO

    with pytest.raises(OSError, match="refused"):
        replace_file(tmp_path / "note.md", b"new")

    assert syncs.asked == ["full"]
    assert [*tmp_path.iterdir()] == []


def test_where_there_is_no_such_sync_the_ordinary_one_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.delattr(fcntl, "F_FULLFSYNC", raising=False)
    monkeypatch.setattr(os, "fsync", asked.append)

    sync_file(7)

    assert asked == [7]
