"""Vectors of one embedding space, in files that can be deleted and rebuilt.

A folder holds ``manifest.json`` and the segments that it names: a matrix of int8 rows, memory-mapped, and a file with the keys and
notes of these rows. Segments are immutable, so adding a note costs writing and reading one small segment. A row is found by the
hash of the text it was made from (its *key*), not by its note: a renamed note keeps its row, two rebuilds agree, and rows lost to a
crash or another process are embedded again. The note's id is stored for people and for ``kmem verify``.
"""

import contextlib
import hashlib
import io
import itertools
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import orjson

from kite_memory.model.event import Problem
from kite_memory.recall.embedder import Space, Vectors
from kite_memory.system.private_files import lock, make_folder, publish, write_aside

Keys = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]
"""Row numbers over all segments; the number of rows stands for a missing row."""
Matrix = npt.NDArray[np.void]
"""Rows as `_row_type` has them: a vector is its codes times its scale."""

_FORMAT = 2
_MANIFEST = "manifest.json"
_OURS = ("vectors-*.npy", "rows-*.json", ".kmem-*")
_NEVER_READ = (-1, -1, -1)
_SEGMENTS = 8
"""More segments than this are merged, small ones first, so that adding one note never rewrites all rows."""
_ROWS_PER_BLOCK = 512
"""Number of expanded rows that fit a processor's cache: comparing them is quicker than fetching float32 from memory."""


def key_of(text: str) -> int:
    """Return the 64-bit hash of a text. Of vaults with a million texts, one in forty million has two texts that share a row."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little", signed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    key: int
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Segment:
    """One segment. ``sorted`` are its keys in ascending order, and ``order`` the row of each of them."""

    vectors: _File
    rows: _File
    keys: Keys
    matrix: Matrix
    sorted: Keys
    order: Places

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Immutable state of a vector file."""

    folder: Path
    segments: tuple[_Segment, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.segments))

    @cached_property
    def keys(self) -> Keys:
        return np.concatenate([_no_keys(), *(segment.keys for segment in self.segments)])

    def places(self, keys: Keys) -> Places:
        """Return the row number of each key; ``len(self)`` for a key without a row."""
        return _found(self.segments, keys, otherwise=len(self))

    def places_after(self, before: "Rows", keys: Keys, places: Places) -> Places:
        """Return `places` of ``keys``, given their places in an earlier state, or -1: unchanged segments are not searched again."""
        pairs = zip(self.segments, before.segments, strict=False)
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] is pair[1], pairs))
        kept = sum(map(len, self.segments[:same]))
        new = np.flatnonzero(places < 0)
        moved = np.flatnonzero(places >= kept)
        places = places.copy()
        places[new] = self.places(keys[new])
        places[moved] = kept + _found(self.segments[same:], keys[moved], otherwise=len(self) - kept)
        return places

    def cosines(self, query: Vectors, places: Places | None = None) -> Vectors:
        """Return the cosine of each row, or of those at ``places`` (which must exist). ``query`` is one row of unit length."""
        if places is None:
            return np.concatenate([np.zeros(0, np.float32), *(_products(segment.matrix, query) for segment in self.segments)])
        found = np.empty(len(places), np.float32)
        start = 0
        for segment in self.segments:
            here = np.flatnonzero((places >= start) & (places < start + len(segment)))
            if len(here):
                found[here] = _products(segment.matrix, query, places[here] - start)
            start += len(segment)
        return found

    def intact(self) -> bool:
        """Return whether every matrix file has its expected size: reading a mapped file beyond its end kills the process."""
        try:
            return all((self.folder / each.vectors.name).stat().st_size == each.vectors.size for each in self.segments)
        except OSError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _FolderSnapshot:
    manifest: tuple[int, int, int] | None
    rows: Rows
    problems: tuple[Problem, ...]


class VectorFile:
    """Vector file of one space. One process and thread writes at a time; readers keep the `Rows` they have.

    Reading never raises for the contents of the folder: unusable files are reported as problems and treated as missing.
    """

    def __init__(self, folder: Path, space: Space) -> None:
        self.space = space
        self.folder = folder / re.sub(r"[^\w.-]", "_", space.tag)
        self._writing = threading.Lock()
        self._last = _FolderSnapshot(manifest=_NEVER_READ, rows=Rows(folder=self.folder), problems=())

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return the problems of the last reading of the folder."""
        return self._last.problems

    def rows(self) -> Rows:
        """Return the current rows; read again only if the manifest has changed, or the size of a matrix."""
        manifest = self._identity()
        last = self._last
        if manifest != last.manifest or not last.rows.intact():
            segments, problems = self._read()
            last = self._last = _FolderSnapshot(
                manifest=manifest, rows=Rows(folder=self.folder, segments=segments), problems=problems
            )
        return last.rows

    def reread(self) -> tuple[Problem, ...]:
        """Read the folder again and return its problems."""
        self._last = replace(self._last, manifest=_NEVER_READ)
        self.rows()
        return self.problems

    def append(self, rows: Sequence[Row], vectors: Vectors) -> None:
        """Add the rows whose keys are new. Raises `OSError` if they cannot be written; only work is lost then."""
        with self._exclusive():
            for _ in self.appending(rows, vectors):
                pass

    def appending(self, rows: Sequence[Row], vectors: Vectors) -> Iterator[str]:
        """Run `append` in steps, yielding the name of each once it is done. The folder is valid after every step."""
        segments, _ = self._read()
        keys, first = np.unique(np.array([row.key for row in rows], np.int64), return_index=True)
        held = sum(map(len, segments))
        numbers = np.sort(first[_found(segments, keys, otherwise=held) == held])
        if not len(numbers):
            return
        kept = len(segments) if len(segments) < _SEGMENTS else _first_small([len(segment) for segment in segments], len(numbers))
        merged = segments[kept:]
        yield from self._replacing(
            segments[:kept],
            np.concatenate([*(segment.keys for segment in merged), np.array([rows[number].key for number in numbers], np.int64)]),
            [*itertools.chain.from_iterable(map(self._notes, merged)), *(rows[number].note for number in numbers)],
            itertools.chain((segment.matrix for segment in merged), [_quantised(vectors[numbers])]),
        )

    def keep(self, wanted: Callable[[], Keys], *, dead: float = 0.25) -> None:
        """Rewrite without the rows of keys that are not ``wanted``, once these are more than ``dead``, a share of all rows.

        ``wanted`` is called while nothing can be appended, so rows added meanwhile are included.
        """
        with self._exclusive():
            segments, _ = self._read()
            held = np.concatenate([_no_keys(), *(segment.keys for segment in segments)])
            live = np.isin(held, wanted())
            if live.sum() >= (1 - dead) * len(live):
                return
            notes = list(itertools.compress(itertools.chain.from_iterable(map(self._notes, segments)), live))
            masks = np.split(live, np.cumsum([len(segment) for segment in segments])[:-1])
            parts = (segment.matrix[block] for segment, mask in zip(segments, masks, strict=True) for block in _blocks(mask))
            for _ in self._replacing((), held[live], notes, parts):
                pass

    def clear(self) -> None:
        with self._exclusive():
            self.folder.joinpath(_MANIFEST).unlink(missing_ok=True)
            for path in self._files():
                path.unlink(missing_ok=True)

    def verify(self) -> tuple[Problem, ...]:
        """Read everything and compare checksums."""
        segments, problems = self._read()
        files = [file for segment in segments for file in (segment.vectors, segment.rows)]
        wrong = [file.name for file in files if _sha256(self.folder / file.name) != file.sha256]
        return problems + tuple(self._problem("a file is not what was written", file) for file in wrong)

    def _replacing(self, kept: Sequence[_Segment], keys: Keys, notes: Sequence[str], parts: Iterable[Matrix]) -> Iterator[str]:
        """Write the new segment first, then the manifest that names it; last, delete files that no manifest names."""
        named = [(segment.vectors, segment.rows) for segment in kept]
        if len(keys):
            number = self._next_number()
            matrix = write_aside(self.folder, lambda file: _save(file, len(keys), self.space.dim, parts))
            yield "matrix written"
            vectors = self._published(matrix, f"vectors-{number}.npy")
            yield "matrix named"
            codes = [f"{key:016x}" for key in keys.view(np.uint64).tolist()]
            listed = orjson.dumps({"keys": codes, "notes": notes})
            rows = self._published(write_aside(self.folder, lambda file: file.write(listed)), f"rows-{number}.json")
            yield "rows named"
            named.append((vectors, rows))
        segments = [{"vectors": _described(vectors), "rows": _described(rows)} for vectors, rows in named]
        manifest = orjson.dumps({"format": _FORMAT, "space": self._expected(), "segments": segments})
        aside = write_aside(self.folder, lambda file: file.write(manifest))
        yield "manifest written"
        publish(aside, self.folder / _MANIFEST)
        yield "manifest named"
        names = {file.name for pair in named for file in pair}
        for path in self._files():
            if path.name not in names:
                with contextlib.suppress(OSError):  # Windows keeps a file that is still being read; the next writer removes it
                    path.unlink()
        yield "old ones removed"

    def _published(self, aside: Path, name: str) -> _File:
        with aside.open("rb") as written:  # an unreadable file must not be published with an empty hash
            file = _File(name=name, size=aside.stat().st_size, sha256=hashlib.file_digest(written, "sha256").hexdigest())
        publish(aside, self.folder / name)
        return file

    def _read(self) -> tuple[tuple[_Segment, ...], tuple[Problem, ...]]:
        try:
            manifest = orjson.loads((self.folder / _MANIFEST).read_bytes())
        except FileNotFoundError:
            return (), (self._problem("the manifest is missing"),) if any(self.folder.glob("vectors-*.npy")) else ()
        except (OSError, orjson.JSONDecodeError):
            return (), (self._problem("the manifest cannot be read"),)
        match manifest:
            case {"format": int(version)} if version > _FORMAT:
                return (), (self._problem("written by a newer version"),)
            case {"format": 1}:
                return (), (self._problem("written by an older version"),)
            case {"format": 2, "space": space} if space != self._expected():
                return (), (self._problem("of another space"),)
            case {"format": 2, "segments": list(described)}:
                known = {(each.vectors, each.rows): each for each in self._last.rows.segments}
                found = [self._segment(segment, known) for segment in described]
                return (
                    tuple(segment for segment in found if isinstance(segment, _Segment)),
                    tuple(segment for segment in found if isinstance(segment, Problem)),
                )
            case _:
                return (), (self._problem("the manifest cannot be read"),)

    def _segment(self, described: object, known: dict[tuple[_File, _File], _Segment]) -> _Segment | Problem:
        """Return a segment; one of the ``known``, if it is there and its files have their sizes."""
        match described:
            case {
                "vectors": {"file": str(file), "size": int(size), "sha256": str(sha256)},
                "rows": {"file": str(rows_file), "size": int(rows_size), "sha256": str(rows_sha256)},
            }:
                vectors = _File(name=Path(file).name, size=size, sha256=sha256)
                rows = _File(name=Path(rows_file).name, size=rows_size, sha256=rows_sha256)
            case _:
                return self._problem("the manifest cannot be read")
        for each in (vectors, rows):
            try:
                if (self.folder / each.name).stat().st_size != each.size:
                    return self._problem("a file is cut short", each.name)
            except OSError:
                return self._problem("a file is missing", each.name)
        if there := known.get((vectors, rows)):
            return there
        try:
            keys, notes = self._listed(rows)
            matrix = _mapped(self.folder / vectors.name, len(keys), self.space.dim)
        except (OSError, ValueError, TypeError, KeyError):
            return self._problem("a segment cannot be read", vectors.name)
        if matrix is None or len(notes) != len(keys):
            return self._problem("a matrix is of another shape", vectors.name)
        order = np.argsort(keys)
        return _Segment(vectors=vectors, rows=rows, keys=keys, matrix=matrix, sorted=keys[order], order=order)

    def _listed(self, rows: _File) -> tuple[Keys, list[str]]:
        listed = orjson.loads((self.folder / rows.name).read_bytes())
        codes = listed["keys"]
        if any(len(code) != 16 for code in codes):
            raise ValueError("a key is not one")
        return np.frombuffer(bytes.fromhex("".join(codes)), ">i8").astype(np.int64), list(listed["notes"])

    def _notes(self, segment: _Segment) -> list[str]:
        """Read the notes of a segment, which is rarely needed. Raises `OSError` if the file cannot be read or is not valid."""
        try:
            return self._listed(segment.rows)[1]
        except (ValueError, TypeError, KeyError) as error:
            raise OSError(0, "a list of rows is not what was written") from error

    def _expected(self) -> dict[str, object]:
        return {"name": self.space.name, "dim": self.space.dim, "version": self.space.version}

    def _problem(self, reason: str, file: str = _MANIFEST) -> Problem:
        return Problem(file=str(self.folder / file), position=0, reason=f"index: {reason}")

    def _identity(self) -> tuple[int, int, int] | None:
        try:
            status = (self.folder / _MANIFEST).stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _files(self) -> Iterator[Path]:
        return itertools.chain.from_iterable(map(self.folder.glob, _OURS))

    def _next_number(self) -> int:
        numbers = (re.fullmatch(r"(?:vectors|rows)-(\d{1,12})\.(?:npy|json)", path.name) for path in self._files())
        return max((int(found.group(1)) for found in numbers if found), default=0) + 1

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        make_folder(self.folder)
        handle = os.open(self.folder / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
        with self._writing, os.fdopen(handle, "rb"):
            lock(handle)
            yield


def _first_small(sizes: Sequence[int], added: int) -> int:
    """Return the position from which segments are merged into the new one: they end with one that outweighs all newer ones
    together.
    """
    first = len(sizes)
    total = added
    while first and sizes[first - 1] <= 2 * total:
        first -= 1
        total += sizes[first]
    return first


def _no_keys() -> Keys:
    return np.zeros(0, np.int64)


def _found(segments: Sequence[_Segment], keys: Keys, *, otherwise: int) -> Places:
    places = np.full(keys.shape, otherwise, np.intp)
    start = 0
    for segment in segments:
        if len(segment):
            at = np.minimum(np.searchsorted(segment.sorted, keys), len(segment) - 1)
            places = np.where(segment.sorted[at] == keys, start + segment.order[at], places)
        start += len(segment)
    return places


def _row_type(dim: int) -> np.dtype[np.void]:
    return np.dtype([("scale", "<f4"), ("codes", "i1", (dim,))])


def _quantised(vectors: Vectors) -> Matrix:
    """Quantize each number to one of 255 steps of its vector's largest; cosines change by a thousandth."""
    vectors = np.nan_to_num(np.asarray(vectors, np.float32), posinf=0.0, neginf=0.0)
    rows = np.empty(len(vectors), _row_type(vectors.shape[1]))
    rows["scale"] = np.abs(vectors).max(axis=1, initial=0.0) / 127
    rows["codes"] = np.rint(vectors / np.where(rows["scale"] > 0, rows["scale"], 1)[:, None])
    return rows


def _products(matrix: Matrix, query: Vectors, rows: Places | None = None) -> Vectors:
    """Return the cosines of all rows, or of ``rows``, expanding a few hundred at a time."""
    count = len(matrix) if rows is None else len(rows)
    products = np.empty(count, np.float32)
    expanded = np.empty((min(count, _ROWS_PER_BLOCK), len(query)), np.float32)
    for start in range(0, count, _ROWS_PER_BLOCK):
        end = min(start + _ROWS_PER_BLOCK, count)
        block = matrix[start:end] if rows is None else matrix[rows[start:end]]
        np.copyto(expanded[: end - start], block["codes"])
        np.multiply(expanded[: end - start] @ query, block["scale"], out=products[start:end])
    return products


def _described(file: _File) -> dict[str, object]:
    return {"file": file.name, "size": file.size, "sha256": file.sha256}


def _blocks(mask: npt.NDArray[np.bool_]) -> Iterator[npt.NDArray[np.intp]]:
    """Yield the numbers of the rows to keep, a few thousand at a time, so that a large matrix is copied without being held."""
    numbers = np.flatnonzero(mask)
    for start in range(0, len(numbers), 4096):
        yield numbers[start : start + 4096]


def _header(count: int, dim: int) -> bytes:
    """Return the header of a ``.npy`` file that any numpy can read."""
    written = io.BytesIO()
    described = np.lib.format.dtype_to_descr(_row_type(dim))
    np.lib.format.write_array_header_1_0(written, {"descr": described, "fortran_order": False, "shape": (count,)})
    return written.getvalue()


def _mapped(path: Path, count: int, dim: int) -> Matrix | None:
    """Map a matrix file; ``None`` unless it begins with exactly our header, since numpy would parse other headers as Python.

    Raises `OSError`, `ValueError`.
    """
    header = _header(count, dim)
    with path.open("rb") as file:
        if file.read(len(header)) != header:
            return None
    return np.asarray(np.memmap(path, _row_type(dim), "r", len(header), (count,)))


def _save(file: IO[bytes], count: int, dim: int, parts: Iterable[Matrix]) -> None:
    file.write(_header(count, dim))
    for part in parts:
        file.write(np.ascontiguousarray(part).data)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
