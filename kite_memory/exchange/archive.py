"""A zip of notes, as `kmem export` or anybody made it: read in memory, and never unpacked anywhere."""

import stat
import zipfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath, PureWindowsPath

from kite_memory.errors import KiteError
from kite_memory.exchange.exporting import ULID, placed
from kite_memory.exchange.foreign import Kept, PassedOver
from kite_memory.exchange.text_files import MOST_BYTES, Page, page_of
from kite_memory.vault.notefile import Unreadable, parse

_MOST_ARCHIVE = 256 * 1024 * 1024
_MOST_UNPACKED = 512 * 1024 * 1024
_MOST_MEMBERS = 100_000
_NOT_TAKEN = frozenset({".obsidian", ".trash", ".git", "__MACOSX", "templates"})


def members(path: Path) -> Iterator[Kept | Page | PassedOver]:
    """Each markdown file in it, by name: a note of ours with its id, or somebody's page. Raises `KiteError` for what is no zip,
    or unpacks to more than anybody's notes."""
    try:
        if path.stat().st_size > _MOST_ARCHIVE:
            raise KiteError(f"{path} is too large", hint="export it in parts")
        with zipfile.ZipFile(path) as archive:
            found = sorted(archive.infolist(), key=lambda info: info.filename)
            if len(found) > _MOST_MEMBERS or sum(info.file_size for info in found) > _MOST_UNPACKED:
                raise KiteError(f"{path} unpacks to more than notes would", hint="see what is in it")
            for info in found:
                if info.filename.lower().endswith((".md", ".markdown")):
                    yield _member(archive, info)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise KiteError(f"{path} cannot be read as a zip: {error}", hint="see what wrote it") from error


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Kept | Page | PassedOver:
    name = info.filename
    if reason := _refused(info):
        return PassedOver(name=name, reason=reason)
    try:
        with archive.open(info) as file:
            data = file.read(MOST_BYTES + 1)  # whatever it says of its size
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError):
        return PassedOver(name=name, reason="damaged")
    if len(data) > MOST_BYTES:
        return PassedOver(name=name, reason="too large")
    modified = _modified(info)
    page = page_of(Path(name), data, modified=modified)
    if isinstance(page, str):
        return PassedOver(name=name, reason=page)
    note = parse(data.decode(), name, created=modified, updated=modified)
    return (
        Kept(note=placed(note), stem=PurePosixPath(name).stem)
        if not isinstance(note, Unreadable) and ULID.fullmatch(note.id)
        else page
    )


def _refused(info: zipfile.ZipInfo) -> str:
    posix, windows = PurePosixPath(info.filename), PureWindowsPath(info.filename)
    if posix.is_absolute() or windows.drive or windows.root or ".." in (*posix.parts, *windows.parts) or "\0" in info.filename:
        return "leads out of the archive"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "symbolic link"
    if info.flag_bits & 1:
        return "encrypted"
    if info.file_size > MOST_BYTES:
        return "too large"
    if any(part in _NOT_TAKEN or part.startswith(".") for part in posix.parts):
        return "not a note"
    return ""


def _modified(info: zipfile.ZipInfo) -> datetime:
    try:
        return datetime(*info.date_time, tzinfo=UTC)
    except ValueError:
        return datetime(1980, 1, 1, tzinfo=UTC)
