"""A disk that does not distinguish case or the encoding of accents, and stores names decomposed, as macOS' HFS+ does.

    python -m tests.fakes.folding_disk BACKING MOUNT

Through FUSE: every name is looked for in the folder of the disk behind it. Runs until MOUNT is unmounted.
"""

import ctypes
import errno
import os
import sys
import unicodedata
from typing import Any

import mfusepy

_HERE = -100
_libc = ctypes.CDLL(None, use_errno=True)


def key(name: str) -> str:
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


class FoldingDisk(mfusepy.Operations):  # type: ignore[misc]
    use_ns = True

    def __init__(self, backing: str) -> None:
        self._backing = backing

    def _at(self, path: str) -> str:
        """Return the place behind ``path``: of each part the name that is there, else the decomposed one."""
        place = self._backing
        for part in path.strip("/").split("/"):
            if part:
                place = os.path.join(place, self._there(place, part) or unicodedata.normalize("NFD", part))
        return place

    @staticmethod
    def _there(folder: str, name: str) -> str | None:
        if os.path.lexists(os.path.join(folder, name)):
            return name
        wanted = key(name)
        try:
            return next((each for each in os.listdir(folder) if key(each) == wanted), None)
        except OSError:
            return None

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        found = os.fstat(fh) if fh else os.lstat(self._at(path))
        named = ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_ino")
        times = {name: getattr(found, f"{name}_ns") for name in ("st_atime", "st_mtime", "st_ctime")}
        return {name: getattr(found, name) for name in named} | times

    def readdir(self, path: str, fh: int) -> list[tuple[str, dict[str, int], int]]:
        place = self._at(path)
        found = {name: os.lstat(os.path.join(place, name)) for name in (".", "..", *os.listdir(place))}
        return [(name, {"st_ino": each.st_ino, "st_mode": each.st_mode}, 0) for name, each in found.items()]

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        return os.open(self._at(path), os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)

    def open(self, path: str, flags: int) -> int:
        return os.open(self._at(path), flags)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return os.pread(fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        return os.pwrite(fh, data, offset)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        os.truncate(fh if fh else self._at(path), length)
        return 0

    def flush(self, path: str, fh: int) -> int:
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        return 0

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        return 0

    def release(self, path: str, fh: int) -> int:
        os.close(fh)
        return 0

    def mknod(self, path: str, mode: int, dev: int) -> int:
        os.mknod(self._at(path), mode, dev)
        return 0

    def mkdir(self, path: str, mode: int) -> int:
        os.mkdir(self._at(path), mode)
        return 0

    def rmdir(self, path: str) -> int:
        os.rmdir(self._at(path))
        return 0

    def unlink(self, path: str) -> int:
        os.unlink(self._at(path))
        return 0

    def link(self, target: str, source: str) -> int:
        os.link(self._at(source), self._at(target), follow_symlinks=False)
        return 0

    def symlink(self, target: str, source: str) -> int:
        os.symlink(source, self._at(target))
        return 0

    def readlink(self, path: str) -> str:
        return os.readlink(self._at(path))

    def chmod(self, path: str, mode: int) -> int:
        os.chmod(self._at(path), mode)
        return 0

    def chown(self, path: str, uid: int, gid: int) -> int:
        os.chown(self._at(path), uid, gid, follow_symlinks=False)
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        if times:
            os.utime(self._at(path), ns=times, follow_symlinks=False)
        else:
            os.utime(self._at(path), follow_symlinks=False)
        return 0

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self._backing)
        return {name: getattr(found, name) for name in ("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_namemax")}

    def rename(self, old: str, new: str, flags: int = 0) -> int:
        """Rename; another case of the same name changes the name, as it does on such a disk."""
        source, target = self._at(old), self._at(new)
        if source == target:
            target = os.path.join(os.path.dirname(target), unicodedata.normalize("NFD", os.path.basename(new)))
        if _libc.renameat2(_HERE, os.fsencode(source), _HERE, os.fsencode(target), flags):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return 0


class Mounted(mfusepy.FUSE):  # type: ignore[misc]
    """mfusepy with the flags of a rename, which it leaves out."""

    def rename_fuse_3(self, old: bytes, new: bytes, flags: int) -> int:
        if flags & ~3:
            return -errno.EINVAL
        result: int = self.operations.rename(os.fsdecode(old), os.fsdecode(new), flags)
        return result


if __name__ == "__main__":
    backing, mount = sys.argv[1:]
    nothing_kept = {"entry_timeout": 0, "attr_timeout": 0, "negative_timeout": 0}
    Mounted(
        FoldingDisk(backing),
        mount,
        foreground=True,
        nothreads=True,
        use_ino=True,
        hard_remove=True,
        default_permissions=True,
        **nothing_kept,
    )
