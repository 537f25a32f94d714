"""The catalogue of notes and the vectors beside it, kept in step with the vault by comparing."""

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kite_memory.errors import KiteError
from kite_memory.model.look import Problem
from kite_memory.model.note import Entry, Note
from kite_memory.recall import lexical
from kite_memory.recall.catalogue import NOTE, PASSAGE, Catalogue, Columns, OtherVersion
from kite_memory.recall.embedder import Embedder, Space, Vectors
from kite_memory.recall.sidecar import Keys, Row, Rows, Sidecar

_NOTES_PER_COMMIT = 200
_TEXTS_PER_CALL = 128
_ROWS_PER_SEGMENT = 2048
_RACY_NS = 2_000_000_000
"""A file changed so shortly before it was read may change again without a new time: it is read once more, later."""
_MATCHES = 1000
_QUERY_LENGTH = 400
"""What is embedded of a prompt. Measured on real prompts: more of them finds nothing more, and costs by the token."""
_WORDS_LENGTH = 10_000
_UNKNOWN = -1
_PROBLEMS = 50

_Space = tuple[Embedder, Sidecar]


class Shelf(Protocol):
    """What recall needs of a vault."""

    def entries(self) -> Iterable[Entry]:
        """Every file that may be a note, unread. Raises `VaultMissing` rather than show an empty vault that is not one."""
        ...

    def read(self, path: str) -> Note | None:
        """``None`` for what is not there, or is not a note."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What a refresh found different, in notes, and how many texts it had to embed for all spaces together."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    embedded: int = 0
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """``stale`` counts passages without a vector in the first space."""

    notes: int
    rows: int
    stale: int
    embedder: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signals:
    """What speaks for each note of ``columns``, row by row. ``cosine`` is that of the note's best passage."""

    columns: Columns
    space: Space
    terms: tuple[str, ...]
    cosine: Vectors
    bm25: npt.NDArray[np.float64]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Located:
    """Where the passages of ``columns`` lie among ``rows``: behind the last row for those that have no vector yet."""

    columns: Columns
    rows: Rows
    places: npt.NDArray[np.intp]

    @property
    def missing(self) -> int:
        return int((self.places == len(self.rows)).sum())


def _never() -> bool:
    return False


def _unseen(done: int, total: int) -> None:
    pass


class Index:
    """``embedder`` answers prompts and must need no network; ``beside`` is a second space for searches.

    Threads may call anything at any time. A search never raises for the state of the folder and never waits for a
    refresh; what could not be done is a problem, returned and shown by `status` until the next full refresh.
    """

    def __init__(
        self, folder: Path, *, embedder: Embedder, beside: Embedder | None = None, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._catalogue = Catalogue(folder / "catalogue.db")
        self._spaces = tuple((each, Sidecar(folder, each.space)) for each in (embedder, beside) if each is not None)
        self._refreshing = threading.Lock()
        self._looking = threading.Lock()
        self._columns: Columns | None = None
        self._located: dict[str, _Located] = {}
        self._problems: tuple[Problem, ...] = ()

    def close(self) -> None:
        self._catalogue.close()

    def clear(self) -> None:
        """Forget everything; the next refresh makes it anew from the vault."""
        with self._refreshing:
            self._catalogue.destroy()
            for _, sidecar in self._spaces:
                sidecar.clear()

    def refresh(
        self,
        shelf: Shelf,
        *,
        hint: Collection[str] | None = None,
        stop: Callable[[], bool] = _never,
        progress: Callable[[int, int], None] = _unseen,
    ) -> Refreshed:
        """Bring the index in step with the vault, reading only files that differ and embedding only texts that are new.

        With ``hint`` only those paths are looked at, and are found by their words and their meaning when this returns;
        the second space takes them up with the next full refresh. An end at any point, by ``stop`` or otherwise, costs
        only what the next refresh does again. ``progress`` is told how many texts of how many are embedded.
        """
        try:
            return self._refreshed(shelf, hint, stop, progress)
        except sqlite3.Error as error:
            problem = self._problem(f"the catalogue cannot be used: {error}")
            if not _is_damage(error):
                return Refreshed(problems=self._noted([problem]))
        self._catalogue.destroy()
        try:
            anew = self._refreshed(shelf, None, stop, progress)
        except sqlite3.Error as error:
            return Refreshed(problems=self._noted([problem, self._problem(f"the catalogue cannot be used: {error}")]))
        return replace(anew, problems=self._noted([problem, *anew.problems]))

    def signals(
        self, text: str, *, beside: bool = False, forgiving: bool = False, meaning: bool = True, words: bool = True
    ) -> Signals:
        """What speaks for each note as an answer to ``text``.

        ``beside`` prefers the second space, if it is there and complete; ``forgiving`` takes terms that no note holds for
        typing errors. Where something fails, what is left speaks alone, and says so.
        """
        problems: list[Problem] = []
        terms: tuple[str, ...] = ()
        try:
            columns = self._current()
            bm25 = np.zeros(len(columns))
            if words:
                terms, bm25 = self._bm25(columns, text, forgiving)
        except sqlite3.Error as error:
            problems.append(self._problem(f"the catalogue cannot be used: {error}"))
            columns, bm25 = _no_columns(), np.zeros(0)
        space, cosine = self._spaces[0][1].space, np.zeros(len(columns), np.float32)
        for embedder, sidecar in self._order(beside, columns) if meaning and len(columns) else ():
            try:
                space, cosine = sidecar.space, self._cosines(columns, embedder, sidecar, text)
                break
            except KiteError as error:
                problems.append(self._problem(str(error)))
        self._noted(problems)
        return Signals(columns=columns, space=space, terms=terms, cosine=cosine, bm25=bm25, problems=tuple(problems))

    def notes(self, numbers: Collection[int]) -> dict[int, Note]:
        """As the catalogue has them, by its numbers; without those that went meanwhile."""
        try:
            return self._catalogue.notes(numbers)
        except sqlite3.Error as error:
            self._noted([self._problem(f"the catalogue cannot be used: {error}")])
            return {}

    def matched_words(self, terms: Sequence[str], numbers: Collection[int]) -> dict[int, tuple[str, ...]]:
        """Which words of each note the terms were found in."""
        try:
            with self._catalogue.reading() as connection:
                return lexical.matched_words(connection, terms, numbers)
        except sqlite3.Error as error:
            self._noted([self._problem(f"the catalogue cannot be used: {error}")])
            return {}

    def project_number(self, project: str) -> int:
        """How `Columns` calls a project; -1 for one that no note is of."""
        try:
            return self._catalogue.project_number(project)
        except sqlite3.Error as error:
            self._noted([self._problem(f"the catalogue cannot be used: {error}")])
            return -1

    def status(self) -> IndexStatus:
        try:
            columns = self._current()
        except sqlite3.Error as error:
            self._noted([self._problem(f"the catalogue cannot be used: {error}")])
            columns = _no_columns()
        located = self._locate(self._spaces[0][1], columns)
        return IndexStatus(
            notes=len(columns),
            rows=len(located.rows),
            stale=located.missing,
            embedder=", ".join(sidecar.space.name for _, sidecar in self._spaces),
            problems=tuple(dict.fromkeys(chain(self._problems, *(sidecar.problems for _, sidecar in self._spaces)))),
        )

    def verify(self) -> tuple[Problem, ...]:
        """Read every file whole. Slow, and harmless at any time."""
        problems = [problem for _, sidecar in self._spaces for problem in sidecar.verify()]
        try:
            with self._catalogue.reading() as connection:
                answers = [answer for (answer,) in connection.execute("PRAGMA quick_check")]
                connection.execute("SELECT count(*) FROM words WHERE words MATCH 'a'")
        except sqlite3.Error as error:
            answers = [str(error)]
        return tuple(problems + [self._problem(f"the catalogue is damaged: {answer}") for answer in answers if answer != "ok"])

    def _refreshed(
        self, shelf: Shelf, hint: Collection[str] | None, stop: Callable[[], bool], progress: Callable[[int, int], None]
    ) -> Refreshed:
        if hint is not None:
            entries = [_unlisted(path) for path in sorted(hint) if _is_text(path)]
            written = self._catalogued(shelf, entries, stop, forget=True)
            paths = [entry.path for entry in entries]
            count, problems = self._embedded(self._spaces[0], lambda: self._catalogue.keys_of(paths), stop, progress)
            self._warm_up()
            return replace(written, embedded=count, problems=self._noted(problems))
        with self._refreshing:
            unusable: list[Entry] = []
            problems = [problem for _, sidecar in self._spaces for problem in sidecar.reread()]
            differences = self._catalogue.compare(_listed(shelf, unusable))
            written = self._catalogued(shelf, differences.to_read, stop, forget=False)
            # Looked at once more: a note may have been written, and taken up by a hint, since the vault was listed.
            gone = self._catalogued(shelf, [_unlisted(path) for path in differences.gone], stop, forget=True)
            problems += [self._problem("a file's name is not text") for _ in unusable]
            embedded = 0
            for space in self._spaces:
                count, hindrances = self._embedded(space, self._keys, stop, progress)
                embedded += count
                problems += hindrances
                if not stop():  # else notes may be missing from the catalogue whose vectors are still good
                    problems += self._swept(space[1])
            self._problems = ()
            self._warm_up()
            return replace(written, removed=written.removed + gone.removed, embedded=embedded, problems=self._noted(problems))

    def _warm_up(self) -> None:
        """What the next prompt would wait for otherwise."""
        self._locate(self._spaces[0][1], self._current())

    def _keys(self) -> Keys:
        keys: Keys = self._current().passages["key"]
        return keys

    def _catalogued(self, shelf: Shelf, entries: Sequence[Entry], stop: Callable[[], bool], *, forget: bool) -> Refreshed:
        """Lexically found from here on. ``forget`` tells a path that yields no note from a file to pass over until it changes."""
        count = {"added": 0, "changed": 0, "the same": 0, "removed": 0}
        for start in range(0, len(entries), _NOTES_PER_COMMIT):
            if stop():
                break
            read = [(self._dated(entry), shelf.read(entry.path)) for entry in entries[start : start + _NOTES_PER_COMMIT]]
            with self._catalogue.writing() as writer:
                for entry, note in read:
                    if note is not None:
                        count[Catalogue.put(writer, note, entry)] += 1
                    else:
                        count["removed"] += Catalogue.remove(writer, entry.path) if forget else Catalogue.pass_over(writer, entry)
        return Refreshed(added=count["added"], changed=count["changed"], removed=count["removed"])

    def _dated(self, entry: Entry) -> Entry:
        racy = entry.mtime_ns > self._clock() - _RACY_NS
        return replace(entry, mtime_ns=_UNKNOWN) if racy else entry

    def _embedded(
        self, space: _Space, wanted: Callable[[], Keys], stop: Callable[[], bool], progress: Callable[[int, int], None]
    ) -> tuple[int, list[Problem]]:
        """How many texts were embedded, and what stood in the way. Written down every few thousand rows, and at the end."""
        embedder, sidecar = space
        missing = np.setdiff1d(wanted(), sidecar.rows().keys).tolist()
        count = 0
        problems: list[Problem] = []
        rows: list[Row] = []
        vectors: list[Vectors] = []
        for start in range(0, len(missing), _TEXTS_PER_CALL):
            if stop() or problems:
                break
            passages = self._catalogue.passages(missing[start : start + _TEXTS_PER_CALL])
            try:
                vectors.append(embedder.embed([passage.text for passage in passages], "document"))
            except KiteError as error:
                problems.append(self._problem(str(error)))
                break
            rows += [Row(key=passage.key, note=passage.note) for passage in passages]
            count += len(passages)
            progress(count, len(missing))
            if len(rows) >= _ROWS_PER_SEGMENT:
                problems += self._appended(sidecar, rows, vectors)
                rows, vectors = [], []
        if rows:
            problems += self._appended(sidecar, rows, vectors)
        return count, problems

    def _appended(self, sidecar: Sidecar, rows: Sequence[Row], vectors: Sequence[Vectors]) -> list[Problem]:
        try:
            sidecar.append(rows, np.concatenate(vectors))
        except OSError as error:
            return [self._problem(f"vectors cannot be written: {error.strerror}")]
        return []

    def _swept(self, sidecar: Sidecar) -> list[Problem]:
        try:
            sidecar.keep(self._keys)
        except OSError as error:
            return [self._problem(f"vectors cannot be written: {error.strerror}")]
        return []

    def _current(self) -> Columns:
        with self._looking:
            if self._columns is None or self._columns.generation != self._catalogue.generation():
                self._columns = self._catalogue.columns(self._columns)
            return self._columns

    def _bm25(self, columns: Columns, text: str, forgiving: bool) -> tuple[tuple[str, ...], npt.NDArray[np.float64]]:
        wanted = lexical.terms(text[:_WORDS_LENGTH])
        bm25 = np.zeros(len(columns))
        with self._catalogue.reading() as connection:
            wanted = lexical.telling(connection, wanted, len(columns))
            if forgiving:
                for near in lexical.corrected(connection, wanted).values():
                    wanted += near
            numbers, scores = lexical.matches(connection, wanted, len(columns), _MATCHES)
        rows = columns.rows_of(numbers)
        bm25[rows[rows >= 0]] = scores[rows >= 0]
        return tuple(wanted), bm25

    def _order(self, beside: bool, columns: Columns) -> Sequence[_Space]:
        if beside and len(self._spaces) > 1 and not self._locate(self._spaces[1][1], columns).missing:
            return self._spaces[::-1]
        return self._spaces[:1]

    def _cosines(self, columns: Columns, embedder: Embedder, sidecar: Sidecar, text: str) -> Vectors:
        vector = embedder.embed([_essence(text)], "query")[0]
        located = self._locate(sidecar, columns)
        passages = np.append(located.rows.cosines(vector), np.float32(0))[located.places]
        return np.maximum.reduceat(passages, columns.first_passage)

    def _locate(self, sidecar: Sidecar, columns: Columns) -> _Located:
        rows = sidecar.rows()
        located = self._located.get(sidecar.space.tag)
        if located is None or located.rows is not rows or located.columns is not columns:
            order = np.argsort(rows.keys)
            keys = columns.passages["key"]
            places = np.searchsorted(rows.keys, keys, sorter=order)
            there = places < len(rows)
            places[there] = order[places[there]]
            there[there] = rows.keys[places[there]] == keys[there]
            located = _Located(columns=columns, rows=rows, places=np.where(there, places, len(rows)))
            self._located[sidecar.space.tag] = located
        return located

    def _problem(self, reason: str) -> Problem:
        return Problem(file=str(self._folder), position=0, reason=reason)

    def _noted(self, problems: Sequence[Problem]) -> tuple[Problem, ...]:
        self._problems = tuple(dict.fromkeys((*self._problems, *problems)))[:_PROBLEMS]
        return tuple(problems)


def _listed(shelf: Shelf, unusable: list[Entry]) -> Iterator[Entry]:
    """Files whose names are text; the others are set aside."""
    for entry in shelf.entries():
        if _is_text(entry.path):
            yield entry
        else:
            unusable.append(entry)


def _unlisted(path: str) -> Entry:
    """An entry that the next comparison takes for another one."""
    return Entry(path=path, size=_UNKNOWN, mtime_ns=_UNKNOWN)


def _is_text(path: str) -> bool:
    """File systems give names that are none, and Python hands them on as halves of surrogate pairs."""
    return path.isascii() or not any("\ud800" <= char <= "\udfff" for char in path)


def _essence(text: str) -> str:
    """The beginning and the end of a long prompt: what lies between is mostly a paste."""
    return text if len(text) <= _QUERY_LENGTH else f"{text[: _QUERY_LENGTH * 2 // 3]}\n{text[-_QUERY_LENGTH // 3 :]}"


def _is_damage(error: sqlite3.Error) -> bool:
    """Whether only a new file helps; a full disk, a lock or a mode is for a person, or for later."""
    name: str = getattr(error, "sqlite_errorname", "")
    return name in ("SQLITE_ERROR", "SQLITE_NOTADB") or name.startswith("SQLITE_CORRUPT") or isinstance(error, OtherVersion)


def _no_columns() -> Columns:
    return Columns(
        generation=("", 0),
        notes=np.zeros(0, NOTE),
        passages=np.zeros(0, PASSAGE),
        first_passage=np.zeros(0, np.int64),
        replaced=np.zeros((0, 2), np.int64),
    )
