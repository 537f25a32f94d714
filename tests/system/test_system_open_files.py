"""Windows refuses to replace a file that another process has open. Its refusal is simulated: the platform's name and the rename."""

import errno
import sys
import time
from pathlib import Path

import pytest

from kite_memory.system.private_files import replace_file


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
