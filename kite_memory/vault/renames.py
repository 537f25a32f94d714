"""The two renames that a notebook shared with its owner needs, and what to do where the system has neither."""

import contextlib
import ctypes
import errno
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY})
_NO_LINKS = _UNSUPPORTED | {errno.EPERM, errno.EMLINK}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A name in a folder: below an open folder's descriptor, or (without one) a whole path."""

    folder: int | None
    name: str


class NotSupported(Exception):
    """This system or file system cannot do that; the caller has another way."""


class Renames(Protocol):
    def no_clobber(self, source: Place, target: Place) -> None:
        """Rename, unless ``target`` exists (`FileExistsError`)."""
        ...

    def exchange(self, one: Place, other: Place) -> None:
        """Swap two files so that neither name is ever missing. Raises `NotSupported`."""
        ...


class PlainRenames:
    """What every file system can do.

    Without clobbering: a hard link to the new name, then the old name goes. Where there are no hard links (exFAT, many
    network and cloud folders) an empty file claims the name first and is then replaced: nobody sees half a note, at the
    worst an empty one for a moment, which `Vault` clears away after a crash.
    """

    def no_clobber(self, source: Place, target: Place) -> None:
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

    def link(self, source: Place, target: Place) -> None:
        """A second name for a file, unless it is taken. Raises `NotSupported`."""
        try:
            os.link(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder, follow_symlinks=False)
        except NotImplementedError as error:
            raise NotSupported from error
        except OSError as error:
            if error.errno in _NO_LINKS:
                raise NotSupported from error
            raise

    def claim(self, target: Place) -> None:
        """An empty file of that name, unless it is taken."""
        os.close(os.open(target.name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=target.folder))

    def exchange(self, one: Place, other: Place) -> None:
        raise NotSupported


class KernelRenames(PlainRenames):
    """``renameat2`` (Linux), ``renameatx_np`` (macOS) and Windows' own rename, each atomic; else the plain way."""

    _NO_CLOBBER, _EXCHANGE = (4, 2) if sys.platform == "darwin" else (1, 2)

    def __init__(self) -> None:
        self._call = _kernel_call()

    def no_clobber(self, source: Place, target: Place) -> None:
        if sys.platform == "win32":
            Path(source.name).rename(target.name)
            return
        try:
            self._rename(source, target, self._NO_CLOBBER)
        except NotSupported:
            super().no_clobber(source, target)

    def exchange(self, one: Place, other: Place) -> None:
        self._rename(one, other, self._EXCHANGE)

    def _rename(self, source: Place, target: Place, flags: int) -> None:
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
