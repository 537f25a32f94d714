"""The shared folder: numbered files of rows, each written once by one machine, signed, and read by the others.

``kite-sync/<machine>/<number>.segment`` is a line (format, machine, number, signature) and a body: rows of JSON, compressed, and
encrypted if the key encrypts. A machine writes in its own folder alone, so no two ever write one file. A segment is rewritten only
to take out what was forgotten.
"""

import re
import secrets
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kite_memory.errors import KiteError
from kite_memory.sync.keys import NotDecrypted, SyncKey
from kite_memory.sync.rows import Malformed, Row, parsed, written
from kite_memory.system.private_files import folders_in, make_folder, names_in, replace_file

FOLDER = "kite-sync"
_FORMAT = "kite-sync-1"
_KEY_MARK = "key"
_SUFFIX = ".segment"
_NAME = re.compile(r"(\d{8})\.segment")
_MACHINE = re.compile(r"[a-z0-9-]{1,24}-[0-9a-f]{8}")
_MOST_BYTES = 64 * 1024 * 1024
_MOST_UNPACKED = 256 * 1024 * 1024
_MOST_MACHINES = 64

ROWS_BYTES = 4 * 1024 * 1024
"""About how much one segment holds, before compression."""


class NotWhole(Exception):
    """Raised for a segment that is not as one of this person's machines wrote it: damaged, incomplete, or a stranger's."""


def new_machine(name: str) -> str:
    """Return an id for this machine that begins like its name."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.partition(".")[0].lower()).strip("-")[:24].strip("-")
    return f"{plain or 'machine'}-{secrets.token_hex(4)}"


def pack(rows: Iterable[Row], *, key: SyncKey, machine: str, number: int) -> bytes:
    """Return the content of a segment."""
    body = key.sealed(_zstd().compress(b"".join(map(written, rows))))
    head = f"{_FORMAT} {machine} {number}".encode()
    return head + b" " + key.signature(head, body).encode() + b"\n" + body


def unpack(content: bytes, *, key: SyncKey, machine: str, number: int) -> list[Row]:
    """Return the rows of a segment. Raises `NotWhole`."""
    import hmac

    first, newline, body = content.partition(b"\n")
    head = f"{_FORMAT} {machine} {number}".encode()
    named, _, signature = first.rpartition(b" ")
    if not newline or named != head or not hmac.compare_digest(signature, key.signature(head, body).encode()):
        raise NotWhole
    try:
        return [parsed(line) for line in _unpacked(key.opened(body)).splitlines()]
    except (NotDecrypted, Malformed) as error:
        raise NotWhole from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFolder:
    """The segments of all machines below ``root``, a folder that a sync tool or git keeps alike on each."""

    root: Path

    @property
    def _home(self) -> Path:
        return self.root / FOLDER

    def key_mark(self) -> str:
        """Return the mark of the key that is used here; empty in a new folder."""
        try:
            return (self._home / _KEY_MARK).read_bytes()[:64].decode("ascii", "replace").strip()
        except FileNotFoundError:
            return ""

    def claim(self, key: SyncKey) -> None:
        make_folder(self._home)
        replace_file(self._home / _KEY_MARK, key.mark().encode() + b"\n")

    def in_use(self) -> bool:
        return bool(self.key_mark()) or bool(folders_in(self._home))

    def machines(self) -> list[str]:
        found = [folder.name for folder in folders_in(self._home) if _MACHINE.fullmatch(folder.name)]
        return found[:_MOST_MACHINES]

    def numbers(self, machine: str) -> list[int]:
        """Return the numbers of a machine's segments, in order."""
        return sorted(int(found[1]) for name in names_in(self._home / machine) if (found := _NAME.fullmatch(name)))

    def content(self, machine: str, number: int) -> bytes:
        """Return a segment's content, still signed and encrypted. Raises `NotWhole` if it is too large or not a file."""
        path = self._path(machine, number)
        if path.is_symlink() or not path.is_file():
            raise NotWhole
        with path.open("rb") as file:
            found = file.read(_MOST_BYTES + 1)
        if len(found) > _MOST_BYTES:
            raise NotWhole
        return found

    def rows(self, machine: str, number: int, key: SyncKey) -> list[Row]:
        """Return the rows of a segment. Raises `NotWhole`."""
        return unpack(self.content(machine, number), key=key, machine=machine, number=number)

    def put(self, machine: str, number: int, content: bytes) -> None:
        """Write a segment; a repeat changes nothing."""
        path = self._path(machine, number)
        make_folder(path.parent)
        replace_file(path, content)

    def size(self, machine: str) -> int:
        return sum(self._path(machine, number).stat().st_size for number in self.numbers(machine))

    def _path(self, machine: str, number: int) -> Path:
        return self._home / machine / f"{number:08}{_SUFFIX}"


def batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Divide rows into segments."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(written(row))
        if size >= ROWS_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _unpacked(data: bytes) -> bytes:
    zstd = _zstd()
    try:
        unpacker = zstd.ZstdDecompressor()
        found: bytes = unpacker.decompress(data, max_length=_MOST_UNPACKED)
    except zstd.ZstdError as error:
        raise NotWhole from error
    if not unpacker.eof or unpacker.unused_data:
        raise NotWhole
    return found


@cache
def _zstd() -> Any:
    """Import zstd on first use."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def refuse_nested(root: Path, state: Path) -> None:
    """Raise `KiteError` if the folder to be shared is inside the state folder, or holds it: databases must not be synchronized."""
    target, home = root.resolve(), state.resolve()
    if target == home or target in home.parents or home in target.parents:
        raise KiteError(f"{root} and the state folder {state} lie in each other", hint="name another folder to share")
