"""Folders opened one name at a time, so that a symbolic link never leads out of the vault, not even one made this instant."""

import contextlib
import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kite_memory.system.private_files import sync_file, when_not_in_use

_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY})
_NO_LINKS = _UNSUPPORTED | {errno.EPERM, errno.EMLINK}


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderPlace:
    """A name in a folder: below an open folder's descriptor, or (without one) a whole path."""

    folder: int | None
    name: str


class NotSupported(Exception):
    """Raised where this system or file system cannot do that; the caller has another way."""


class Renames(Protocol):
    def no_clobber(self, source: FolderPlace, target: FolderPlace) -> None:
        """Rename, unless ``target`` exists (`FileExistsError`)."""
        ...

    def exchange(self, one: FolderPlace, other: FolderPlace) -> None:
        """Swap two files so that neither name is ever missing. Raises `NotSupported`."""
        ...


class PlainRenames:
    """Renames that every file system can do.

    To rename without overwriting, a hard link is made to the new name, then the old name is removed. Where there are no hard links
    (exFAT, many network and cloud folders), an empty file claims the name first and is then replaced: half a note is never visible,
    at worst an empty one for a moment, which `Vault` removes after a crash.
    """

    def no_clobber(self, source: FolderPlace, target: FolderPlace) -> None:
        try:
            self.link(source, target)
        except NotSupported:
            self.claim(target)
            try:
                os.replace(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(target.name, dir_fd=target.folder)
                raise
        else:
            os.unlink(source.name, dir_fd=source.folder)

    def link(self, source: FolderPlace, target: FolderPlace) -> None:
        """Make a second name for a file, unless it is taken. Raises `NotSupported`."""
        try:
            os.link(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder, follow_symlinks=False)
        except NotImplementedError as error:
            raise NotSupported from error
        except OSError as error:
            if error.errno in _NO_LINKS:
                raise NotSupported from error
            raise

    def claim(self, target: FolderPlace) -> None:
        """Make an empty file of that name, unless it is taken."""
        os.close(os.open(target.name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=target.folder))

    def exchange(self, one: FolderPlace, other: FolderPlace) -> None:
        raise NotSupported


class KernelRenames(PlainRenames):
    """Atomic renames: ``renameat2`` (Linux), ``renameatx_np`` (macOS) and Windows' own rename; else `PlainRenames`."""

    _NO_CLOBBER, _EXCHANGE = (4, 2) if sys.platform == "darwin" else (1, 2)

    def __init__(self) -> None:
        self._call = _kernel_call()

    def no_clobber(self, source: FolderPlace, target: FolderPlace) -> None:
        if sys.platform == "win32":
            when_not_in_use(lambda: Path(source.name).rename(target.name))
            return
        try:
            self._rename(source, target, self._NO_CLOBBER)
        except NotSupported:
            super().no_clobber(source, target)

    def exchange(self, one: FolderPlace, other: FolderPlace) -> None:
        self._rename(one, other, self._EXCHANGE)

    def _rename(self, source: FolderPlace, target: FolderPlace, flags: int) -> None:
        if self._call is None:
            raise NotSupported
        here = -2 if sys.platform == "darwin" else -100  # AT_FDCWD
        failed = self._call(
            here if source.folder is None else source.folder,
            os.fsencode(source.name),
            here if target.folder is None else target.folder,
            os.fsencode(target.name),
            flags,
        )
        if not failed:
            return
        number = ctypes.get_errno()
        if number in _UNSUPPORTED:
            raise NotSupported
        raise OSError(number, os.strerror(number), target.name)


def _kernel_call() -> "Callable[[int, bytes, int, bytes, int], int] | None":
    name = {"linux": "renameat2", "darwin": "renameatx_np"}.get(sys.platform)
    if name is None:
        return None
    try:
        call = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (OSError, AttributeError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    call.restype = ctypes.c_int
    return lambda *arguments: int(call(*arguments))


_BY_DESCRIPTOR = sys.platform != "win32" and os.open in os.supports_dir_fd and os.scandir in os.supports_fd
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


_NOT_FOR_FOLDERS = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF})


class OutsideVault(ValueError):
    """Raised for a path that does not plainly name something inside the vault."""


def parts_of(path: str) -> tuple[str, ...]:
    """Return the names in a vault path. Raises `OutsideVault`."""
    parts = tuple(path.split("/"))
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise OutsideVault(path)
    if sys.platform == "win32" and any(char in path for char in '\\:*?"<>|'):
        raise OutsideVault(path)
    return parts


def give_mode(descriptor: int, mode: int) -> None:
    """Set a file's mode whatever the umask; a file system without modes ignores it.

    What we open is closed to other users from the start.
    """
    if sys.platform != "win32":
        with contextlib.suppress(PermissionError, NotImplementedError):
            if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:  # a change of mode is an event for watchers
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
        """Open the vault's own folder, which may be a link: its place is its owner's choice."""
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
        """Make a folder with the vault's own mode, whatever the umask. Raises `FileExistsError` where there is one."""
        place = self.at(name)
        os.mkdir(place.name, 0o700, dir_fd=place.folder)
        with contextlib.closing(self.child(name)) as made:
            if made.descriptor is not None:
                give_mode(made.descriptor, self.vault_mode)
        self.sync()

    def at(self, name: str) -> FolderPlace:
        return FolderPlace(folder=self.descriptor, name=name if self.descriptor is not None else str(self.path / name))

    def open(self, name: str, flags: int) -> int:
        place = self.at(name)
        if not getattr(os, "O_NOFOLLOW", 0) and Path(place.name).is_symlink():
            raise OSError(errno.ELOOP, f"{name} is a symbolic link", place.name)
        return os.open(place.name, flags | _FILE, 0o600, dir_fd=place.folder)

    def stat(self, name: str) -> os.stat_result:
        place = self.at(name)
        return os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)

    def count_missing(self, names: Sequence[str]) -> int:
        """Return how many of the names `stat` does not find; done before each write, for some notes."""
        missing, inside = 0, "" if self.descriptor is not None else f"{self.path}/"
        for name in names:
            try:
                os.stat(inside + name, dir_fd=self.descriptor, follow_symlinks=False)
            except (FileNotFoundError, NotADirectoryError):
                missing += 1
            except OSError:
                pass  # it is there, and cannot be looked at
        return missing

    def unlink(self, name: str) -> None:
        place = self.at(name)
        when_not_in_use(lambda: os.unlink(place.name, dir_fd=place.folder))

    def rename(self, name: str, new: str) -> None:
        old, there = self.at(name), self.at(new)
        os.replace(old.name, there.name, src_dir_fd=old.folder, dst_dir_fd=there.folder)

    def sync(self) -> None:
        """Sync what was created, renamed or removed here to disk, where the file system can do that for a folder."""
        if self.descriptor is not None:
            try:
                sync_file(self.descriptor)
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
