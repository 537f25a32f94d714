"""A disk whose power may go at any moment, rebuilt from the system calls of one run.

What was not synced may be there, or not, or in part: of a file's writes since its last sync any beginning of them, or all but
some, the last of them torn at a sector; of what happened to names, in order, any beginning of it that reaches as far as the last
sync of a folder concerned. So do file systems that keep a journal of their names and no more.
"""

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

CALLS = (
    "openat,write,pwrite64,writev,pwritev,fsync,fdatasync,ftruncate,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,"
    "mkdirat,rmdir,lseek,sendfile,copy_file_range,dup,dup2,fcntl"
)
UNREAD = ("writev", "pwritev", "sendfile", "copy_file_range")
SECTOR = 512

Loss = Literal["all", "none", "some", "torn"]

_LINE = re.compile(r"^(?:\d+\s+)?(\w+)\((.*)\)\s+= (-?\d+)(?:<(.*?)>)?")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_FD = re.compile(r"^(\d+)<(.*?)>")


class NotUnderstood(Exception):
    """A call that changes files and that this does not know."""


@dataclass(frozen=True, slots=True)
class Write:
    at: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Cut:
    size: int


@dataclass(slots=True)
class Inode:
    """``kept`` is on the disk for certain."""

    kept: bytes = b""
    pending: list[Write | Cut] = field(default_factory=list)

    def whole(self) -> bytes:
        return done(self.kept, self.pending)


@dataclass(frozen=True, slots=True)
class Rename:
    old: str
    new: str
    exchange: bool = False


@dataclass(frozen=True, slots=True)
class Name:
    path: str
    inode: int


@dataclass(frozen=True, slots=True)
class Unname:
    path: str


@dataclass(frozen=True, slots=True)
class Folder:
    path: str


Naming = Rename | Name | Unname | Folder


def done(kept: bytes, operations: list[Write | Cut]) -> bytes:
    data = bytearray(kept)
    for operation in operations:
        match operation:
            case Write(at=at, data=piece):
                data.extend(bytes(max(0, at - len(data))))
                data[at : at + len(piece)] = piece
            case Cut(size=size):
                del data[size:]
                data.extend(bytes(size - len(data)))
    return bytes(data)


def named(names: Mapping[str, int | None], operations: list[Naming]) -> dict[str, int | None]:
    """``None`` stands for a folder."""
    there = dict(names)
    for operation in operations:
        match operation:
            case Name(path=path, inode=inode):
                there[path] = inode
            case Unname(path=path):
                there.pop(path, None)
            case Folder(path=path):
                there[path] = None
            case Rename(old=old, new=new, exchange=exchange):
                moved = {path: inode for path, inode in there.items() if path == old or path.startswith(old + "/")}
                other = {path: inode for path, inode in there.items() if path == new or path.startswith(new + "/")}
                for path in (*moved, *other):
                    there.pop(path, None)
                there |= {new + path[len(old) :]: inode for path, inode in moved.items()}
                if exchange:
                    there |= {old + path[len(new) :]: inode for path, inode in other.items()}
    return there


class Disk:
    """Follows the calls one by one; `after_the_cut` says what could be found on it now."""

    def __init__(self, root: Path, *, deaf: bool = False) -> None:
        """As it lies there now, all of it on the disk. A ``deaf`` one takes no sync for one."""
        self.root = str(root)
        self._deaf = deaf
        self._inodes: list[Inode] = []
        self._kept: dict[str, int | None] = {}
        self._pending: list[Naming] = []
        self._open: dict[int, tuple[int, int, bool]] = {}
        self.said: list[str] = []
        for path in sorted(root.rglob("*")):
            if path.is_dir():
                self._kept[str(path)] = None
            elif path.is_file():
                self._kept[str(path)] = self._new(path.read_bytes())
        self._names = dict(self._kept)

    def _new(self, data: bytes = b"") -> int:
        self._inodes.append(Inode(kept=data))
        return len(self._inodes) - 1

    def follow(self, line: str) -> bool:
        """Whether the call changed what a power cut would leave."""
        found = _LINE.match(line)
        if found is None or found[3].startswith("-"):
            return False
        call, arguments, result = found[1], found[2], int(found[3])
        strings = [bytes.fromhex(text.replace("\\x", "")) for text in _STRING.findall(arguments)]
        if call in ("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "lseek") or call in UNREAD:
            return self._on_descriptor(call, arguments, strings, result)
        if call in ("dup", "dup2", "fcntl"):
            return False
        paths = self._paths(arguments, strings)
        if not any(path.startswith(self.root + "/") for path in paths):
            if call == "openat":
                self._open.pop(result, None)
            return False
        return self._on_names(call, arguments, paths, result)

    def _paths(self, arguments: str, strings: list[bytes]) -> list[str]:
        """Absolute: those relative to an open folder are recorded with the folder."""
        bases = [_plain(base) for base in re.findall(r"(?:^|, )\d+<(.*?)>", arguments)]
        listed = []
        for text in strings:
            path = text.decode("utf-8", "surrogateescape")
            base = bases.pop(0) if bases and not path.startswith("/") else ""
            listed.append(path if path.startswith("/") else f"{base}/{path}")
        return listed

    def _on_descriptor(self, call: str, arguments: str, strings: list[bytes], result: int) -> bool:
        found = _FD.match(arguments)
        if found is None:
            return False
        descriptor, path = int(found[1]), _plain(found[2])
        if call == "write" and strings and strings[0].startswith((b"done: ", b"begin: ")):
            self.said.append(strings[0].decode().strip())
            return False
        if call in ("fsync", "fdatasync") and path in self._names and self._names[path] is None:
            return self._sync_folder(path)
        if descriptor not in self._open or not path.startswith(self.root + "/"):
            return False
        if call in UNREAD:
            raise NotUnderstood(call)
        number, position, appends = self._open[descriptor]
        inode = self._inodes[number]
        match call:
            case "write":
                at = len(inode.whole()) if appends else position
                inode.pending.append(Write(at, strings[0][:result]))
                self._open[descriptor] = (number, at + result, appends)
            case "pwrite64":
                inode.pending.append(Write(int(arguments.rpartition(", ")[2]), strings[0][:result]))
            case "ftruncate":
                inode.pending.append(Cut(int(arguments.rpartition(", ")[2])))
            case "lseek":
                self._open[descriptor] = (number, result, appends)
                return False
            case _:
                if self._deaf:
                    return False
                inode.kept, inode.pending = inode.whole(), []
        return True

    def _sync_folder(self, folder: str) -> bool:
        last = max((number for number, each in enumerate(self._pending) if folder in _folders(each)), default=-1)
        if self._deaf or last < 0:
            return False
        self._kept = named(self._kept, self._pending[: last + 1])
        del self._pending[: last + 1]
        return True

    def _on_names(self, call: str, arguments: str, paths: list[str], result: int) -> bool:
        match call:
            case "openat":
                return self._opened(paths[0], arguments, result)
            case "rename" | "renameat" | "renameat2":
                return self._name(Rename(paths[0], paths[1], "RENAME_EXCHANGE" in arguments))
            case "link" | "linkat":
                inode = self._names.get(paths[0])
                return inode is not None and self._name(Name(paths[1], inode))
            case "unlink" | "unlinkat" | "rmdir":
                return self._name(Unname(paths[0]))
            case "mkdir" | "mkdirat":
                return self._name(Folder(paths[0]))
            case _:
                raise NotUnderstood(call)

    def _opened(self, path: str, arguments: str, descriptor: int) -> bool:
        number, new = self._names.get(path), path not in self._names
        if new:
            if "O_CREAT" not in arguments and "O_TMPFILE" not in arguments:
                return False
            number = self._new()
            self._name(Name(path, number))
        if number is None:
            self._open.pop(descriptor, None)
            return False
        self._open[descriptor] = (number, 0, "O_APPEND" in arguments)
        if "O_TRUNC" in arguments and not new:
            self._inodes[number].pending.append(Cut(0))
            return True
        return new

    def _name(self, operation: Naming) -> bool:
        self._pending.append(operation)
        self._names = named(self._names, [operation])
        return True

    def after_the_cut(self, loss: Loss, chance: random.Random) -> dict[str, bytes | None]:
        """Every path with what it holds, ``None`` for a folder."""
        reached = {"all": 0, "none": len(self._pending)}.get(loss, chance.randint(0, len(self._pending)))
        found: dict[str, bytes | None] = {}
        survived: dict[int, bytes] = {}
        for path, number in named(self._kept, self._pending[:reached]).items():
            if number is None:
                found[path] = None
            else:
                if number not in survived:
                    survived[number] = self._survives(self._inodes[number], loss, chance)
                found[path] = survived[number]
        return found

    def _survives(self, inode: Inode, loss: Loss, chance: random.Random) -> bytes:
        pending = inode.pending
        match loss:
            case "all":
                return inode.kept
            case "none":
                return inode.whole()
            case "some":
                return done(inode.kept, pending[: chance.randint(0, len(pending))])
            case _:
                return done(inode.kept, list(_torn(pending, chance)))


def _torn(pending: list[Write | Cut], chance: random.Random) -> Iterator[Write | Cut]:
    """Some are missing, in no order, and some are there in part."""
    for operation in pending:
        if isinstance(operation, Write) and chance.random() < 0.3:
            sectors = -(-len(operation.data) // SECTOR)
            yield Write(operation.at, operation.data[: SECTOR * chance.randrange(sectors)] if sectors else b"")
        elif chance.random() < 0.7:
            yield operation


def _folders(operation: Naming) -> set[str]:
    match operation:
        case Rename(old=old, new=new):
            return {old.rpartition("/")[0], new.rpartition("/")[0]}
        case Name(path=path) | Unname(path=path) | Folder(path=path):
            return {path.rpartition("/")[0]}


def _plain(text: str) -> str:
    return re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), text)
