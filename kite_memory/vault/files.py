"""All access to the vault's files: never outside the vault, never half-written, never over another program's changes.

Other programs write to a vault as well: its owner's editor, a sync tool, another kmem process. So a new file appears under its
name complete, and a file is replaced by exchange: what was there is checked afterwards, and put back if it is not what we meant to
replace.
"""

import contextlib
import errno
import os
import re
import secrets
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from kite_memory.errors import KiteError, VaultFolderWrong, VaultMissing, VaultReadOnly
from kite_memory.system.private_files import sync_file, when_not_in_use
from kite_memory.vault.folders import Folder, KernelRenames, NotSupported, OutsideVault, Renames, give_mode, parts_of
from kite_memory.vault.wording import digest

MAX_NOTE_BYTES = 5 * 1024 * 1024
TRASH = ".trash"
OWN_PREFIX = ".kmem-"

_FILLING = f"{OWN_PREFIX}fill-"
_SWAPPING = re.compile(re.escape(OWN_PREFIX) + r"swap-([0-9a-f]{32})-([0-9a-f]{32})-[0-9a-f]+")
_MAX_RETURNS = 8
_SYNCS_AT_ONCE = 8
_MOST_HELD = 2_000
_LONGEST_HELD = 4_096
_SETTLED_NS = 2_000_000_000
"""A file that was changed less than this (in ns) before it was read may change again without its times changing."""


class CannotRead(Exception):
    """Raised for a file that exists but is not read; its text is the reason, one of a small set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Size and modification time of a file as listed: while they are unchanged, so is the file."""

    size: int
    mtime_ns: int


def stamp_of(found: os.stat_result) -> Stamp:
    """Return a file's stamp. A time before 1970 or after April 2262, becomes the nearest of these."""
    return Stamp(size=found.st_size, mtime_ns=min(max(found.st_mtime_ns, 0), _LATEST_NS))


_LATEST_NS = 2**63 - 1
"""SQLite's largest integer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    data: bytes
    stamp: Stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A file complete on disk, under a temporary name in its folder, waiting to be published as ``path``."""

    path: str
    temporary: str
    stamp: Stamp

    def renamed(self, path: str) -> "Filled":
        """Return the same file, to be published under another name of its folder."""
        return replace(self, path=path)


class Files:
    """The files of one vault.

    Paths are relative to it, with ``/`` between the parts; others raise `OutsideVault`.

    ``step`` is called before every change to the disk with a description of it: a test may end the process there. Failures are
    raised as `VaultReadOnly` or `VaultMissing`; what they leave behind, `sweep` removes.
    """

    def __init__(self, root: Path, *, renames: Renames | None = None, step: Callable[[str], None] = lambda doing: None) -> None:
        self.root = root
        self._renames = renames or KernelRenames()
        self._step = step
        self._held: OrderedDict[str, tuple[tuple[int, ...], Content]] = OrderedDict()
        self._holding = threading.Lock()

    def is_there(self) -> bool:
        """Return whether the vault's folder exists.

        Raises `VaultMissing` where that cannot be determined: a stale mount, no permission, a broken disk.
        """
        try:
            return stat.S_ISDIR(self.root.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            reason = error.strerror or "it does not answer"
            raise VaultMissing(f"cannot look into the vault at {self.root}: {reason}", hint="check its disk") from error

    def make_root(self) -> None:
        """Make the vault's folder and its missing parents, accessible to its owner alone."""
        with self._failing_as_ours():
            for folder in reversed([folder for folder in (self.root, *self.root.parents) if not folder.exists()]):
                self._step(f"make {folder.name}")
                folder.mkdir(mode=0o700)
                folder.chmod(0o700)

    def make_folder(self, path: str) -> None:
        with self._failing_as_ours(), self.folder(path, make=True):
            pass

    @contextlib.contextmanager
    def folder(self, path: str = "", *, make: bool = False) -> Iterator[Folder]:
        """Open a folder of the vault. With ``make``, its missing parts are made with the vault's own mode."""
        with contextlib.ExitStack() as opened:
            here = opened.enter_context(contextlib.closing(self._root()))
            for name in parts_of(path) if path else ():
                try:
                    below = here.child(name)
                except FileNotFoundError:
                    if not make:
                        raise
                    self._step(f"make {name}")
                    with contextlib.suppress(FileExistsError):
                        here.make(name)
                    below = here.child(name)
                here = opened.enter_context(contextlib.closing(below))
            yield here

    def _root(self) -> Folder:
        try:
            return Folder.root(self.root)
        except (FileNotFoundError, NotADirectoryError) as error:
            # The caller knows a file of the vault: then `kmem up` makes no new vault.
            hint = "mount its disk or bring the notes back; if you deleted them, run `kmem verify --accept-missing`"
            raise VaultMissing(f"no vault at {self.root}", hint=hint) from error

    def read(self, path: str) -> Content:
        """Read a file.

        Raises `FileNotFoundError`, or `CannotRead` for what is not a regular file of at most 5 MB.
        """
        parent, name = _split(path)
        try:
            with self.folder(parent) as folder:
                return _read(folder, name)
        except (FileNotFoundError, CannotRead):
            raise
        except OSError as error:
            raise CannotRead("symbolic link" if error.errno == errno.ELOOP else "cannot be opened") from error

    def read_again(self, path: str) -> Content:
        """Return what `read` does, from memory where the file is unchanged since the last read. For small files that are read
        often."""
        found = self.root.joinpath(*parts_of(path)).lstat()
        mark = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        with self._holding:
            held = self._held.get(path)
            if held is not None and held[0] == mark:
                self._held.move_to_end(path)
                return held[1]
            self._held.pop(path, None)
        now = time.time_ns()
        content = self.read(path)
        same = content.stamp == stamp_of(found)
        if same and len(content.data) <= _LONGEST_HELD and now - max(found.st_mtime_ns, found.st_ctime_ns) > _SETTLED_NS:
            with self._holding:
                self._held[path] = (mark, content)
                if len(self._held) > _MOST_HELD:
                    self._held.popitem(last=False)
        return content

    def exists(self, path: str) -> bool:
        """Return whether anything has that name, a broken symbolic link included."""
        parent, name = _split(path)
        try:
            with self.folder(parent) as folder:
                folder.stat(name)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return True

    def count_missing(self, paths: Sequence[str]) -> int:
        """Return how many of the paths `exists` denies. Each folder is opened once."""
        by_folder: dict[str, list[str]] = {}
        for path in paths:
            parent, _, name = path.rpartition("/")
            by_folder.setdefault(parent, []).append(name)
        return sum(self._missing_in(parent, names) for parent, names in by_folder.items())

    def _missing_in(self, parent: str, names: Sequence[str]) -> int:
        try:
            with self.folder(parent) as folder:
                return folder.count_missing(names)
        except (FileNotFoundError, NotADirectoryError):
            return len(names)
        except OSError:
            return 0

    def is_protected(self, path: str) -> bool:
        """Return whether the owner has no write permission on the file."""
        parent, name = _split(path)
        try:
            with self.folder(parent) as folder:
                return not folder.stat(name).st_mode & stat.S_IWUSR
        except OSError:
            return False

    def fill(self, path: str, data: bytes) -> Filled:
        """Write the content of ``path`` to a temporary file beside it and sync it to disk."""
        parent, _ = _split(path)
        with self._failing_as_ours(), self.folder(parent, make=True) as folder:
            temporary, stamp = self._fill(folder, data, folder.vault_mode & 0o666)
            self._step("sync the folder")
            folder.sync()
        return Filled(path=path, temporary=f"{parent}/{temporary}" if parent else temporary, stamp=stamp)

    def fill_all(self, contents: Sequence[tuple[str, bytes]]) -> list[Filled | None]:
        """Write the content of each path to a temporary file beside it; ``None`` for one that cannot be written.

        All are synced to disk together: many waits at once take little longer than one. Their names are not: after a power cut
        the temporary files may be gone, but none that was renamed since is incomplete.
        """
        filled: list[Filled | None] = [None] * len(contents)
        by_folder: dict[str, list[int]] = {}
        for number, (path, _) in enumerate(contents):
            by_folder.setdefault(_split(path)[0], []).append(number)
        for parent, numbers in by_folder.items():
            with contextlib.suppress(OSError), self.folder(parent, make=True) as folder:
                written: dict[int, tuple[str, Stamp]] = {}
                for number in numbers:
                    with contextlib.suppress(OSError):
                        written[number] = self._fill(folder, contents[number][1], folder.vault_mode & 0o666, sync=False)
                self._step("sync the files")
                whole = _synced(folder, [temporary for temporary, _ in written.values()])
                for (number, (temporary, stamp)), is_whole in zip(written.items(), whole, strict=True):
                    if is_whole:
                        there = f"{parent}/{temporary}" if parent else temporary
                        filled[number] = Filled(path=contents[number][0], temporary=there, stamp=stamp)
        return filled

    def sync_folders(self, folders: Collection[str]) -> None:
        """Sync what was published with ``sync=False`` in these folders to disk."""
        for path in folders:
            with self._failing_as_ours(), self.folder(path) as folder:
                self._step("sync the folder")
                folder.sync()

    def publish(self, filled: Filled, *, sync: bool = True) -> None:
        """Rename the temporary file to its name, in one step.

        Raises `FileExistsError` where the name is taken: then nothing has changed.
        """
        parent, name = _split(filled.path)
        with self._failing_as_ours(), self.folder(parent) as folder:
            self._step("publish")
            try:
                self._renames.no_clobber(folder.at(_split(filled.temporary)[1]), folder.at(name))
            except FileNotFoundError as error:
                raise VaultReadOnly(f"{filled.path} was cleared away while it was written", hint="try again") from error
            if sync:
                self._step("sync the folder")
                folder.sync()

    def rename(self, path: str, new: str) -> None:
        """Rename a file in one step. Raises `FileExistsError` for a taken name, `FileNotFoundError` for a file that is gone."""
        (parent, name), (folder, called) = _split(path), _split(new)
        with self._failing_as_ours(), self.folder(folder, make=True) as target, self.folder(parent) as source:
            self._step("rename")
            self._renames.no_clobber(source.at(name), target.at(called))
            target.sync()
            source.sync()

    def discard(self, path: str) -> None:
        """Remove one of our temporary files, if it exists."""
        parent, name = _split(path)
        if not name.startswith(OWN_PREFIX):
            raise OutsideVault(path)
        with contextlib.suppress(FileNotFoundError), self._failing_as_ours(), self.folder(parent) as folder:
            self._step("discard")
            folder.unlink(name)

    def remove_if_empty(self, path: str) -> None:
        """Remove an empty file: a name that was claimed and never filled."""
        parent, name = _split(path)
        with contextlib.suppress(FileNotFoundError), self._failing_as_ours(), self.folder(parent) as folder:
            found = folder.stat(name)
            if stat.S_ISREG(found.st_mode) and not found.st_size:
                folder.unlink(name)

    def replace(self, path: str, data: bytes, *, expected: str) -> Stamp | None:
        """Replace the file whose digest is ``expected`` by ``data``. Returns ``None`` where it is another by now, and leaves it.

        The new file is exchanged with the old one. If what comes back is not what was expected, somebody saved in between: they are
        exchanged again, until the name holds the newest that somebody else wrote. Where the file system cannot exchange files, the
        old file is compared just before it is replaced; what is saved in that instant is lost.
        """
        parent, name = _split(path)
        with self._failing_as_ours(), self.folder(parent) as folder:
            try:
                mode = stat.S_IMODE(folder.stat(name).st_mode) & 0o777
            except FileNotFoundError:
                return None
            temporary, stamp = self._fill(folder, data, mode)
            new = digest(data)
            swap = f"{OWN_PREFIX}swap-{new[:32]}-{expected[:32]}-{secrets.token_hex(6)}"
            try:
                self._step("name the swap")
                try:
                    when_not_in_use(lambda: folder.rename(temporary, swap))
                except FileNotFoundError:  # removed by a cleaning program
                    return None
                replaced = self._swap(folder, swap, name, expected=expected, new=new)
            finally:
                for leftover in (temporary, swap):
                    self._clear(folder, leftover, known=(new, expected))
            self._step("sync the folder")
            folder.sync()
            return stamp if replaced else None

    def _swap(self, folder: Folder, swap: str, name: str, *, expected: str, new: str) -> bool:
        try:
            self._step("swap")
            self._renames.exchange(folder.at(swap), folder.at(name))
        except FileNotFoundError:  # deleted by its owner meanwhile
            return False
        except NotSupported:
            # Compared anew each time: who has the file open may save it meanwhile.
            return when_not_in_use(lambda: self._renamed_over(folder, swap, name, expected))
        placed, held = new, _digest_of(folder, swap)
        if held == expected:
            return True
        for _ in range(_MAX_RETURNS):  # each further turn needs another save within microseconds
            self._step("give back")
            try:
                self._renames.exchange(folder.at(swap), folder.at(name))
            except FileNotFoundError:
                break
            came_back = _digest_of(folder, swap)
            if came_back == placed:
                break
            placed, held = held, came_back
        return False

    def _renamed_over(self, folder: Folder, swap: str, name: str, expected: str) -> bool:
        if not self._still(folder, name, expected):
            return False
        folder.rename(swap, name)
        return True

    def _still(self, folder: Folder, name: str, expected: str) -> bool:
        try:
            return _digest_of(folder, name) == expected
        except FileNotFoundError:
            return False

    def _clear(self, folder: Folder, name: str, *, known: tuple[str, ...]) -> None:
        """Remove a temporary file, unless it holds what somebody else wrote: `sweep` moves that to the trash."""
        with contextlib.suppress(OSError):
            if name.startswith(_FILLING) or _digest_of(folder, name) in known:
                self._step("clear")
                folder.unlink(name)

    def to_trash(self, path: str, *, name: str = "") -> str:
        """Move a file into the vault's trash, as it is at that instant; return its new path.

        Raises `FileNotFoundError` if it is gone.
        """
        parent, old = _split(path)
        stem, dot, suffix = (name or old).rpartition(".")
        with self._failing_as_ours(), self.folder(TRASH, make=True) as trash, self.folder(parent) as folder:
            for count in range(1, 10_000):
                new = (name or old) if count == 1 else f"{stem}-{count}{dot}{suffix}"
                try:
                    self._step("move to the trash")
                    self._move(folder, old, trash, new)
                except FileExistsError:
                    continue
                trash.sync()
                folder.sync()
                return f"{TRASH}/{new}"
        raise KiteError(f"{self.root / TRASH} is full of files called {old}", hint="empty it")

    def _move(self, folder: Folder, old: str, trash: Folder, new: str) -> None:
        """Move a file to the trash, also one that a process which ended had moved halfway.

        Then the file has both names, or the new name is an empty file.
        """
        try:
            there = trash.stat(new)
        except FileNotFoundError:
            pass
        else:
            if os.path.samestat(there, folder.stat(old)):
                folder.unlink(old)
                return
            if stat.S_ISREG(there.st_mode) and not there.st_size:
                trash.unlink(new)
        self._renames.no_clobber(folder.at(old), trash.at(new))

    def sweep(self, leftovers: tuple[str, ...]) -> tuple[str, ...]:
        """Remove our temporary files that a crash left.

        Those that hold text we did not write are moved to the trash; returns their paths there.
        """
        rescued = []
        for path in leftovers:
            name = _split(path)[1]
            swapping = _SWAPPING.fullmatch(name)
            if name.startswith(_FILLING):
                self.discard(path)
            elif swapping is not None:
                with contextlib.suppress(FileNotFoundError):
                    if self._is_one_of(path, swapping.groups()):
                        self.discard(path)
                    else:
                        rescued.append(self.to_trash(path, name=f"rescued-{name.removeprefix(OWN_PREFIX)[-12:]}.md"))
        return tuple(rescued)

    def _is_one_of(self, path: str, digests: tuple[str, ...]) -> bool:
        try:
            return digest(self.read(path).data)[:32] in digests
        except CannotRead:
            return False

    def _fill(self, folder: Folder, data: bytes, mode: int, *, sync: bool = True) -> tuple[str, Stamp]:
        name = _FILLING + secrets.token_hex(6)
        self._step("open a temporary file")
        descriptor = folder.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        try:
            try:
                give_mode(descriptor, mode)
                self._step("write")
                left = memoryview(data)
                while left:
                    left = left[os.write(descriptor, left) :]
                if sync:
                    self._step("sync the file")
                    sync_file(descriptor)
                found = os.fstat(descriptor)
            finally:
                os.close(descriptor)
        except OSError:
            with contextlib.suppress(OSError):  # `sweep` removes what stays; the first error is the one to raise
                folder.unlink(name)
            raise
        return name, stamp_of(found)

    @contextlib.contextmanager
    def _failing_as_ours(self) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, FileExistsError):
            raise
        except OSError as error:
            raise _as_state_error(error, self.root) from error


def no_vault(root: Path) -> VaultMissing:
    return VaultMissing(f"no vault at {root}", hint="mount its disk, or run `kmem up` to make one")


def _split(path: str) -> tuple[str, str]:
    *parents, name = parts_of(path)
    return "/".join(parents), name


def _synced(folder: Folder, names: Sequence[str]) -> list[bool]:
    """Sync files to disk, several at once; return for each whether that succeeded."""

    def sync(name: str) -> bool:
        try:
            descriptor = folder.open(name, os.O_WRONLY)
        except OSError:
            return False
        try:
            sync_file(descriptor)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return True

    with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:
        return list(pool.map(sync, names))


def _read(folder: Folder, name: str) -> Content:
    """Read the file as it was at one moment: it is read again where it changed meanwhile."""
    for _ in range(3):
        descriptor = folder.open(name, os.O_RDONLY)
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            os.close(descriptor)
            raise CannotRead("not a file")
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(MAX_NOTE_BYTES + 1)
            after = os.fstat(descriptor)
        if len(data) > MAX_NOTE_BYTES:
            raise CannotRead("larger than 5 MB")
        stamp = stamp_of(after)
        if len(data) == after.st_size and (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
            break
    return Content(data=data, stamp=stamp)


def _digest_of(folder: Folder, name: str) -> str:
    """Return the digest of a file; empty for what cannot be read, which is nothing that we wrote."""
    try:
        return digest(_read(folder, name).data)
    except FileNotFoundError:
        raise
    except (OSError, CannotRead):
        return ""


def _as_state_error(error: OSError, root: Path) -> KiteError:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            reason, hint = "no space left on its disk", "free some space; what could not be written is kept and tried again"
        case errno.EROFS:
            reason, hint = "its disk is mounted read-only", "mount it for writing, or set `vault` to another folder"
        case errno.EACCES | errno.EPERM:
            reason, hint = "no permission", f"see who owns it: ls -ld {root}"
        case errno.ELOOP | errno.ENOTDIR:
            named = error.filename if isinstance(error.filename, str) else str(root)
            hint = "put a folder in its place: links below the vault are not followed"
            return VaultFolderWrong(f"cannot write to the vault: {named} is a link or no folder", hint=hint)
        case _:
            reason, hint = error.strerror or str(error), "run `kmem doctor`"
    return VaultReadOnly(f"cannot write to the vault at {root}: {reason}", hint=hint)
