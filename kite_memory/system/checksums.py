"""Detect files changed on disk without a write, such as flipped bits, by recorded checksums.

SQLite detects damage to its structure, not to stored text. A seal is a file's size, time and hash. It is valid while size and time
are unchanged, since any write to the file changes its time.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

from kite_memory.system.private_files import replace_file

_NAME = "seals.json"
_VERSION = 1
_PASSED_OVER = frozenset({"logs", "backups", "extractor"})
_COMES_AND_GOES = ("-wal", "-shm", "-journal", ".lock", ".sock", ".log", ".port", ".patience", _NAME)
_A_TICK_NS = 50_000_000
"""Resolution of file systems' clocks: a write within one tick after the seal would leave the time unchanged."""


def seal(folder: Path) -> None:
    """Record the checksum of every file below ``folder`` that has changed since the last call. Errors of the disk are ignored."""
    known = _known(folder) or {}
    try:
        now = {name: _sealed(path, known.get(name)) for name, path in _files(folder)}
        found = {name: each for name, each in now.items() if each is not None}
        if found != known:
            listed = json.dumps(found, sort_keys=True, separators=(",", ":"))
            whole = {"v": _VERSION, "of": hashlib.sha256(listed.encode()).hexdigest(), "files": found}
            replace_file(folder / _NAME, json.dumps(whole, sort_keys=True, separators=(",", ":")).encode())
    except OSError:
        return


def broken(folder: Path) -> list[str]:
    """Return the files, relative to ``folder``, whose content differs from their seal although size and time do not.

    Includes files that cannot be read. If the seals themselves are damaged, only their own file is returned.
    """
    known = _known(folder)
    if known is None:
        return [_NAME]
    found: list[str] = []
    for name, (size, mtime_ns, digest) in sorted(known.items()):
        path = folder / name
        try:
            if _stamp(path) == (size, mtime_ns) and _hash(path) != digest and _stamp(path) == (size, mtime_ns):
                found.append(name)
        except FileNotFoundError:
            continue
        except OSError:  # the disk cannot read it
            found.append(name)
    return found


def _known(folder: Path) -> dict[str, list[Any]] | None:
    """Return the recorded seals: ``None`` if they are damaged, empty if none exist yet."""
    try:
        whole = json.loads((folder / _NAME).read_bytes())
        files: dict[str, list[Any]] = whole["files"]
        listed = json.dumps(files, sort_keys=True, separators=(",", ":"))
        good = whole["v"] == _VERSION and whole["of"] == hashlib.sha256(listed.encode()).hexdigest()
        return files if good else None
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _PASSED_OVER)
        for name in sorted(names):
            path = Path(here, name)
            if not name.endswith(_COMES_AND_GOES) and not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path.relative_to(folder).as_posix(), path


def _sealed(path: Path, known: list[Any] | None) -> list[Any] | None:
    """Return the seal of a file; ``None`` if it is being written to."""
    before = _stamp(path)
    if known is not None and before == (known[0], known[1]):
        return known
    young = before[1] + _A_TICK_NS - time.time_ns()
    if young > 0:
        Event().wait(min(young, _A_TICK_NS) / 1e9)
    digest = _hash(path)
    return [*before, digest] if _stamp(path) == before else None


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
