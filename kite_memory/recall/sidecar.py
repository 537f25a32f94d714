"""The vectors of one embedding space, in files that can be thrown away.

A folder holds ``manifest.json`` and the matrices that it names. A row is found by the hash of the text it was made from
(its *key*), not by its note: a renamed note keeps its row, two rebuilds agree, and whatever a crash or another process
leaves out is simply asked for again. The note's id stands beside it for people and for ``kmem verify``.
"""

import contextlib
import hashlib
import itertools
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import orjson

from kite_memory.model.look import Problem
from kite_memory.recall.embedder import Space, Vectors
from kite_memory.recall.files import alone, private_folder, publish, write_aside

Keys = npt.NDArray[np.int64]

_FORMAT = 1
_MANIFEST = "manifest.json"
_NEVER_READ = (-1, -1, -1)
_SEGMENTS = 8
"""More than these are merged, the small ones first, so that adding one note to many never rewrites them all."""


def key_of(text: str) -> int:
    """64 bits: of vaults with a million texts, one in forty million has two texts that share a row."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little", signed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    key: int
    note: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """A state of the sidecar that does not change: one memory-mapped matrix for each segment."""

    keys: Keys
    matrices: tuple[Vectors, ...]
    files: tuple[tuple[Path, int], ...]

    def __len__(self) -> int:
        return len(self.keys)

    def cosines(self, query: Vectors) -> Vectors:
        """For each row; ``query`` is one row of unit length."""
        if not self.matrices:
            return np.zeros(0, np.float32)
        return np.concatenate([matrix @ query for matrix in self.matrices])

    def intact(self) -> bool:
        """Whether every file is as long as it was: reading a mapped file behind its end kills the process."""
        try:
            return all(path.stat().st_size == size for path, size in self.files)
        except OSError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Segment:
    file: str
    size: int
    sha256: str
    keys: Keys
    notes: tuple[str, ...]
    matrix: Vectors


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Reading:
    manifest: tuple[int, int, int] | None
    rows: Rows
    problems: tuple[Problem, ...]


class Sidecar:
    """One writer at a time, in this process and among others; readers keep the `Rows` they have.

    Nothing here raises on what lies in the folder: what cannot be used is a problem, and missing.
    """

    def __init__(self, folder: Path, space: Space) -> None:
        self.space = space
        self.folder = folder / re.sub(r"[^\w.-]", "_", space.tag)
        self._writing = threading.Lock()
        self._last = _Reading(manifest=_NEVER_READ, rows=Rows(keys=_no_keys(), matrices=(), files=()), problems=())

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What the last reading of the folder could not use."""
        return self._last.problems

    def rows(self) -> Rows:
        """What is there now; read again only when the manifest is another one, or a matrix has changed its length."""
        manifest = self._identity()
        last = self._last
        if manifest != last.manifest or not last.rows.intact():
            segments, problems = self._read()
            rows = Rows(
                keys=np.concatenate([_no_keys(), *(segment.keys for segment in segments)]),
                matrices=tuple(segment.matrix for segment in segments),
                files=tuple((self.folder / segment.file, segment.size) for segment in segments),
            )
            last = self._last = _Reading(manifest=manifest, rows=rows, problems=problems)
        return last.rows

    def reread(self) -> tuple[Problem, ...]:
        """Look at the folder again, and say what in it cannot be used."""
        self._last = replace(self._last, manifest=_NEVER_READ)
        self.rows()
        return self.problems

    def append(self, rows: Sequence[Row], vectors: Vectors) -> None:
        """Add the rows whose keys are new. Raises `OSError` when the disk does not take them; only work is lost then."""
        with self._exclusive():
            for _ in self.appending(rows, vectors):
                pass

    def appending(self, rows: Sequence[Row], vectors: Vectors) -> Iterator[str]:
        """`append` in steps, each named once it is done: whatever comes to an end between two of them, the folder is whole."""
        segments, _ = self._read()
        taken = {int(key) for segment in segments for key in segment.keys}
        fresh: dict[int, int] = {}
        for number, row in enumerate(rows):
            if row.key not in taken:
                fresh.setdefault(row.key, number)
        if not fresh:
            return
        numbers = list(fresh.values())
        kept = len(segments) if len(segments) < _SEGMENTS else _first_small([len(segment.keys) for segment in segments], len(fresh))
        merged = segments[kept:]
        yield from self._replacing(
            segments[:kept],
            np.concatenate([*(segment.keys for segment in merged), np.array(list(fresh), np.int64)]),
            (*(note for segment in merged for note in segment.notes), *(rows[number].note for number in numbers)),
            itertools.chain((segment.matrix for segment in merged), [vectors[numbers]]),
        )

    def keep(self, wanted: Callable[[], Keys]) -> None:
        """Rewrite without the rows of all other keys, once these are more than a quarter.

        What is wanted is asked when nobody can append: a row that came meanwhile is asked for by then.
        """
        with self._exclusive():
            segments, _ = self._read()
            held = np.concatenate([_no_keys(), *(segment.keys for segment in segments)])
            live = np.isin(held, wanted())
            if live.sum() >= 0.75 * len(live):
                return
            notes = itertools.compress(itertools.chain.from_iterable(segment.notes for segment in segments), live)
            masks = np.split(live, np.cumsum([len(segment.keys) for segment in segments])[:-1])
            parts = (segment.matrix[block] for segment, mask in zip(segments, masks, strict=True) for block in _blocks(mask))
            for _ in self._replacing([], held[live], tuple(notes), parts):
                pass

    def clear(self) -> None:
        with self._exclusive():
            for path in (self.folder / _MANIFEST, *self.folder.glob("vectors-*.npy"), *self.folder.glob(".kmem-*")):
                path.unlink(missing_ok=True)

    def verify(self) -> tuple[Problem, ...]:
        """Read everything and compare checksums."""
        segments, problems = self._read()
        wrong = [segment.file for segment in segments if _sha256(self.folder / segment.file) != segment.sha256]
        return problems + tuple(self._problem("a matrix is not what was written", file) for file in wrong)

    def _replacing(self, kept: Sequence[_Segment], keys: Keys, notes: tuple[str, ...], parts: Iterable[Vectors]) -> Iterator[str]:
        """The matrix first, the manifest that names it after, and last what no manifest names any more."""
        described = [_described(segment.file, segment.size, segment.sha256, segment.keys, segment.notes) for segment in kept]
        if len(keys):
            aside = write_aside(self.folder, lambda file: _save(file, (len(keys), self.space.dim), parts))
            yield "matrix written"
            path = self.folder / f"vectors-{self._next_number()}.npy"
            publish(aside, path)
            yield "matrix named"
            described.append(_described(path.name, path.stat().st_size, _sha256(path), keys, notes))
        space = {"name": self.space.name, "dim": self.space.dim, "version": self.space.version}
        manifest = orjson.dumps({"format": _FORMAT, "space": space, "segments": described})
        aside = write_aside(self.folder, lambda file: file.write(manifest))
        yield "manifest written"
        publish(aside, self.folder / _MANIFEST)
        yield "manifest named"
        named = {str(segment["file"]) for segment in described}
        for path in (*self.folder.glob("vectors-*.npy"), *self.folder.glob(".kmem-*")):
            if path.name not in named:
                with contextlib.suppress(OSError):  # Windows keeps a file that somebody still reads; the next writer removes it
                    path.unlink()
        yield "old ones removed"

    def _read(self) -> tuple[list[_Segment], tuple[Problem, ...]]:
        try:
            manifest = orjson.loads((self.folder / _MANIFEST).read_bytes())
        except FileNotFoundError:
            return [], (self._problem("the manifest is missing"),) if any(self.folder.glob("vectors-*.npy")) else ()
        except (OSError, orjson.JSONDecodeError):
            return [], (self._problem("the manifest cannot be read"),)
        expected = {"name": self.space.name, "dim": self.space.dim, "version": self.space.version}
        match manifest:
            case {"format": int(version)} if version > _FORMAT:
                return [], (self._problem("written by a newer version"),)
            case {"format": 1, "space": space} if space != expected:
                return [], (self._problem("of another space"),)
            case {"format": 1, "segments": list(described)}:
                found = [self._segment(segment) for segment in described]
                return (
                    [segment for segment in found if isinstance(segment, _Segment)],
                    tuple(segment for segment in found if isinstance(segment, Problem)),
                )
            case _:
                return [], (self._problem("the manifest cannot be read"),)

    def _segment(self, described: object) -> _Segment | Problem:
        match described:
            case {"file": str(file), "size": int(size), "sha256": str(sha256), "keys": list(keys), "notes": list(notes)}:
                pass
            case _:
                return self._problem("the manifest cannot be read")
        path = self.folder / Path(file).name
        try:
            if path.stat().st_size != size:
                return self._problem("a matrix is cut short", file)
            matrix = np.load(path, mmap_mode="r", allow_pickle=False)
            codes = np.array([int(key, 16) for key in keys], np.uint64).view(np.int64)
        except FileNotFoundError:
            return self._problem("a matrix is missing", file)
        except (OSError, ValueError, TypeError, EOFError, OverflowError):
            return self._problem("a matrix cannot be read", file)
        if matrix.dtype != np.float32 or matrix.shape != (len(codes), self.space.dim) or len(notes) != len(codes):
            return self._problem("a matrix is of another shape", file)
        return _Segment(file=path.name, size=size, sha256=sha256, keys=codes, notes=tuple(notes), matrix=np.asarray(matrix))

    def _problem(self, reason: str, file: str = _MANIFEST) -> Problem:
        return Problem(file=str(self.folder / Path(file).name), position=0, reason=f"index: {reason}")

    def _identity(self) -> tuple[int, int, int] | None:
        try:
            status = (self.folder / _MANIFEST).stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _next_number(self) -> int:
        numbers = (re.fullmatch(r"vectors-(\d{1,12})\.npy", path.name) for path in self.folder.glob("vectors-*.npy"))
        return max((int(found.group(1)) for found in numbers if found), default=0) + 1

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        private_folder(self.folder)
        with self._writing, alone(self.folder / ".lock"):
            yield


def _first_small(sizes: Sequence[int], added: int) -> int:
    """From where on segments are merged into the new one: up to one that outweighs all newer ones together."""
    first = len(sizes)
    total = added
    while first and sizes[first - 1] <= 2 * total:
        first -= 1
        total += sizes[first]
    return first


def _no_keys() -> Keys:
    return np.zeros(0, np.int64)


def _described(file: str, size: int, sha256: str, keys: Keys, notes: Sequence[str]) -> dict[str, object]:
    codes = [f"{key:016x}" for key in keys.view(np.uint64).tolist()]
    return {"file": file, "size": size, "sha256": sha256, "keys": codes, "notes": notes}


def _blocks(mask: npt.NDArray[np.bool_]) -> Iterator[npt.NDArray[np.intp]]:
    """Numbers of the rows to keep, a few thousand at a time: a large matrix is copied without being held."""
    numbers = np.flatnonzero(mask)
    for start in range(0, len(numbers), 4096):
        yield numbers[start : start + 4096]


def _save(file: IO[bytes], shape: tuple[int, int], parts: Iterable[Vectors]) -> None:
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    for part in parts:
        file.write(np.ascontiguousarray(part, "<f4").data)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
