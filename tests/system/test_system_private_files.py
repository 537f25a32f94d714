import os
import stat
import sys
from pathlib import Path

import pytest

from kite_memory.system.private_files import NotPrivate, make_folder, make_private_folder, replace_file

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes mean little there")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o777])
def umask(request: pytest.FixtureRequest) -> object:
    old = os.umask(request.param)
    yield
    os.umask(old)


@pytest.mark.usefixtures("umask")
def test_a_folder_on_a_drive_that_is_not_there_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "is_dir", lambda path: False)

    with pytest.raises(FileNotFoundError):
        make_folder(tmp_path / "state")


def test_folders_are_made_closed_whatever_the_umask(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    make_private_folder(tmp_path / "a" / "b")

    assert [mode(tmp_path / "a" / "b"), mode(tmp_path / "a"), mode(tmp_path)] == [0o700, 0o700, 0o755]


def test_a_folder_of_ours_that_stood_open_is_closed_and_one_of_the_persons_is_not(tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o755)

    make_private_folder(tmp_path / "ours")
    make_folder(tmp_path / "theirs")

    assert (mode(tmp_path / "ours"), mode(tmp_path / "theirs")) == (0o700, 0o755)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can make a folder of another user's")
def test_a_folder_of_another_users_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)

    with pytest.raises(NotPrivate, match="belongs to another user"):
        make_private_folder(tmp_path / "theirs")


@pytest.mark.usefixtures("umask")
def test_a_file_is_private_whatever_the_umask_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    replace_file(tmp_path / "file", b"one")
    replace_file(tmp_path / "file", b"two")

    assert (tmp_path / "file").read_bytes() == b"two"
    assert mode(tmp_path / "file") == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_cannot_be_replaced_stays_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(OSError, match="folder"):
        replace_file(tmp_path / "folder", b"content")

    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_mode_that_is_asked_for_is_kept(tmp_path: Path) -> None:
    replace_file(tmp_path / "file", b"", mode=0o644)

    assert mode(tmp_path / "file") == 0o644
