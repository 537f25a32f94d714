"""Folders opened one name at a time, so that a symbolic link never leads out of the vault, not even one made this instant."""

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from kite_memory.vault.renames import Place

_BY_DESCRIPTOR = sys.platform != "win32" and os.open in os.supports_dir_fd and os.scandir in os.supports_fd
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


_NOT_FOR_FOLDERS = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF})


class OutsideVault(ValueError):
    """A path that does not plainly name something inside the vault."""


def parts_of(path: str) -> tuple[str, ...]:
    """The names in a vault path. Raises `OutsideVault`."""
    parts = tuple(path.split("/"))
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise OutsideVault(path)
    if sys.platform == "win32" and any(char in path for char in '\\:*?"<>|'):
        raise OutsideVault(path)
    return parts


def give_mode(descriptor: int, mode: int) -> None:
    """Whatever the umask; a file system without modes keeps its own idea, and what we open is closed to others from the start."""
    if sys.platform != "win32":
        with contextlib.suppress(PermissionError, NotImplementedError):
            os.fchmod(descriptor, mode)


class Folder:
    """One open folder; methods take single names and never follow a link.

    Where the system cannot work relative to an open folder (Windows), whole paths are used and links looked for first,
    which leaves a moment in between.
    """

    def __init__(self, path: Path, descriptor: int | None, vault_mode: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.vault_mode = vault_mode

    @staticmethod
    def root(path: Path) -> "Folder":
        """The vault's own folder may be a link: where the vault lies is its owner's business."""
        descriptor = os.open(path, _FOLDER) if _BY_DESCRIPTOR else None
        found = path.stat() if descriptor is None else os.fstat(descriptor)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        return Folder(path, descriptor, stat.S_IMODE(found.st_mode))

    def child(self, name: str) -> "Folder":
        found = self.stat(name)
        if stat.S_ISLNK(found.st_mode):
            raise OSError(errno.ELOOP, f"{name} is a symbolic link", str(self.path / name))
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, f"{name} is not a folder", str(self.path / name))
        descriptor = None
        if self.descriptor is not None:
            descriptor = os.open(name, _FOLDER | getattr(os, "O_NOFOLLOW", 0), dir_fd=self.descriptor)
        return Folder(self.path / name, descriptor, self.vault_mode)

    def make(self, name: str) -> None:
        """A new folder with the vault's own mode, whatever the umask. `FileExistsError` where there is one."""
        place = self.at(name)
        os.mkdir(place.name, 0o700, dir_fd=place.folder)
        with contextlib.closing(self.child(name)) as made:
            if made.descriptor is not None:
                give_mode(made.descriptor, self.vault_mode)
        self.sync()

    def at(self, name: str) -> Place:
        return Place(folder=self.descriptor, name=name if self.descriptor is not None else str(self.path / name))

    def open(self, name: str, flags: int) -> int:
        place = self.at(name)
        if not getattr(os, "O_NOFOLLOW", 0) and Path(place.name).is_symlink():
            raise OSError(errno.ELOOP, f"{name} is a symbolic link", place.name)
        return os.open(place.name, flags | _FILE, 0o600, dir_fd=place.folder)

    def stat(self, name: str) -> os.stat_result:
        place = self.at(name)
        return os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)

    def unlink(self, name: str) -> None:
        place = self.at(name)
        os.unlink(place.name, dir_fd=place.folder)

    def rename(self, name: str, new: str) -> None:
        old, there = self.at(name), self.at(new)
        os.replace(old.name, there.name, src_dir_fd=old.folder, dst_dir_fd=there.folder)

    def sync(self) -> None:
        """What was created, renamed or removed here outlives a power cut, where the file system can promise that of a folder."""
        if self.descriptor is not None:
            try:
                os.fsync(self.descriptor)
            except OSError as error:
                if error.errno not in _NOT_FOR_FOLDERS:
                    raise

    @contextlib.contextmanager
    def scan(self) -> Iterator[Iterator["os.DirEntry[str]"]]:
        with os.scandir(str(self.path) if self.descriptor is None else self.descriptor) as entries:
            yield entries

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
