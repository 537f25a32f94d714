"""Search index of the vault: the catalogue of notes and their vectors, kept up to date by comparing with the vault."""

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kite_memory.errors import KiteError
from kite_memory.model.event import Problem
from kite_memory.model.note import Entry, Note
from kite_memory.recall import lexical
from kite_memory.recall.catalogue import Catalogue, Columns, Mask, OtherVersion, VisibleNotes, no_columns
from kite_memory.recall.embedder import Embedder, Space, Vectors
from kite_memory.recall.lexical import essence
from kite_memory.recall.prose import UNKNOWN, NoteFiles, listed, unlisted
from kite_memory.recall.vector_file import Keys, Places, Row, Rows, VectorFile
from kite_memory.system import sqlite
from kite_memory.system.private_files import is_text

_NOTES_PER_COMMIT = 200
_TEXTS_PER_CALL = 128
_ROWS_PER_SEGMENT = 2048
_RACY_NS = 2_000_000_000
"""Nanoseconds. A file changed this shortly before it was read may change again without a new time, so it is read again later."""
_MATCHES = 1000
_WORDS_LENGTH = 10_000
_NAMES_LENGTH = 400
_COMPARED = 20_000
"""In a vault with more notes than this, a prompt's meaning is compared only with notes of its project, of no project, or that share
a word with it.
"""
_PROBLEMS = 50

Evidence = Callable[[Note], str]
"""Returns the text of a note's evidence: the conversation it came from. Empty if unknown."""

_Space = tuple[Embedder, VectorFile]
_EVERYTHING = VisibleNotes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """Result of a refresh: notes added, changed and removed, and texts embedded in all spaces together."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    embedded: int = 0
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """Size and state of the index. ``stale`` counts passages without a vector in the first space."""

    notes: int
    rows: int
    stale: int
    embedder: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signals:
    """Scores of each note for a text, one row for each row of ``columns``. ``cosine`` is that of the note's best passage.

    ``around`` is the BM25 score for the surrounding text, of which ``around_terms`` counts the terms.
    """

    columns: Columns
    space: Space
    terms: tuple[str, ...]
    cosine: Vectors
    bm25: npt.NDArray[np.float64]
    around: npt.NDArray[np.float64]
    around_terms: int = 0
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Located:
    """Positions of the passages of ``columns`` in ``rows``; ``len(rows)`` for a passage without a vector."""

    columns: Columns
    rows: Rows
    places: Places

    @property
    def missing(self) -> int:
        return int((self.places == len(self.rows)).sum())


def _carried(before: _Located, columns: Columns) -> Places | None:
    """Return the known positions of passages that were there before, and -1 for those after them; ``None`` if the order has
    changed.
    """
    kept = np.isin(before.columns.passages["note"], columns.notes["number"])
    keys = columns.passages["key"]
    places = before.places[kept]
    if not np.array_equal(before.columns.passages["key"][kept], keys[: len(places)]):
        return None
    return np.append(places, np.full(len(keys) - len(places), -1))


def _never() -> bool:
    return False


def no_evidence(note: Note) -> str:
    return ""


def _unseen(done: int, total: int) -> None:
    pass


class Index:
    """Search index in a folder. ``embedder`` embeds prompts and must need no network; ``beside`` is a second space for searches.

    ``former`` made the vectors before ``embedder`` was chosen. It answers as long as more passages have a vector of its space; then
    that space is deleted.

    Thread-safe. A search never raises for the state of the folder and never waits for a refresh; whatever failed is returned as a
    problem, and reported by `status` until the next full refresh.
    """

    def __init__(
        self,
        folder: Path,
        *,
        embedder: Embedder,
        beside: Embedder | None = None,
        former: Embedder | None = None,
        compared: int = _COMPARED,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._folder = folder
        self._compared = compared
        self._clock = clock
        self._catalogue = Catalogue(folder / "catalogue.db")
        self._spaces = tuple((each, VectorFile(folder, each.space)) for each in (embedder, beside) if each is not None)
        self._former = tuple((each, VectorFile(folder, each.space)) for each in (former,) if each is not None)
        self._refreshing = threading.Lock()
        self._looking = threading.Lock()
        self._columns: Columns | None = None
        self._located: dict[str, _Located] = {}
        self._problems: tuple[Problem, ...] = ()

    def close(self) -> None:
        self._catalogue.close()

    def purge(self) -> bool:
        """Erase removed notes from the files and return whether that is complete. Raises nothing: what cannot be erased goes with
        the next rebuild.
        """
        try:
            purged = self._catalogue.purge()
        except sqlite3.Error as error:
            purged = False
            self._noted([self._problem(f"the catalogue cannot be used: {error}")])
        for _, vector_file in (*self._spaces, *self._former):
            self._noted(self._swept(vector_file, dead=0.0))
        return purged

    def clear(self) -> None:
        """Delete the index. The next refresh rebuilds it from the vault."""
        with self._refreshing:
            self._catalogue.destroy()
            for _, vector_file in (*self._spaces, *self._former):
                vector_file.clear()

    def refresh(
        self,
        files: NoteFiles,
        *,
        evidence: Evidence = no_evidence,
        hint: Collection[str] | None = None,
        embed: bool = True,
        stop: Callable[[], bool] = _never,
        progress: Callable[[int, int], None] = _unseen,
    ) -> Refreshed:
        """Bring the index up to date with the vault, reading only files that differ and embedding only texts that are new.

        The words of a note's ``evidence`` lead to it too. With ``hint`` only those paths are checked, and on return they are found
        by words and by meaning; the second space gets them with the next full refresh. Without ``embed`` they are found by words
        only, until a later refresh embeds them. Stopping at any point, by ``stop`` or otherwise, costs only work that the next
        refresh repeats. ``progress`` is called with the number of texts embedded so far and in total.
        """
        try:
            return self._refreshed(files, evidence, hint, embed, stop, progress)
        except sqlite3.Error as error:
            problem = self._problem(f"the catalogue cannot be used: {error}")
            if not (sqlite.is_damage(error) or isinstance(error, OtherVersion)):
                return Refreshed(problems=self._noted([problem]))
        self._catalogue.destroy()
        try:
            anew = self._refreshed(files, evidence, None, True, stop, progress)
        except sqlite3.Error as error:
            return Refreshed(problems=self._noted([problem, self._problem(f"the catalogue cannot be used: {error}")]))
        return replace(anew, problems=self._noted([problem, *anew.problems]))

    def is_in_step(self, files: NoteFiles) -> bool:
        """Return whether `refresh` would find nothing to do."""
        try:
            differences = self._catalogue.compare(listed(files, []))
            located = [self._locate(vector_file, self._current()) for _, vector_file in self._spaces]
        except sqlite3.Error:
            return False
        return not (differences.to_read or differences.gone or any(each.missing for each in located))

    def embed(self, *, stop: Callable[[], bool] = _never) -> int:
        """Embed every text that has no vector yet, in every space. Return how many texts that were."""
        try:
            with self._refreshing:
                outcomes = [self._embedded(space, self._keys, stop, _unseen) for space in self._spaces]
                self._warm_up()
                self._leave_former()
        except sqlite3.Error as error:
            self._noted([self._problem(f"the catalogue cannot be used: {error}")])
            return 0
        self._noted([problem for _, problems in outcomes for problem in problems])
        return sum(count for count, _ in outcomes)

    def signals(
        self,
        text: str,
        *,
        around: str = "",
        project: str = "",
        beside: bool = False,
        forgiving: bool = False,
        meaning: bool = True,
        words: bool = True,
        whole: bool = False,
        visible: VisibleNotes = _EVERYTHING,
    ) -> Signals:
        """Return the scores of each note for ``text``.

        ``around`` is the text that surrounds it. In a very large vault, notes outside ``project`` are compared by meaning only if
        they share a word with the text or belong to no project; without ``project`` all are compared. ``beside`` prefers the second
        space, if it exists and is complete; ``forgiving`` corrects typing errors in terms that no note contains. If one signal
        fails, the others are used and the problem is reported. ``whole``: the text is itself a note's, and all of it is compared.

        With a bounded ``visible`` the columns are those of the notes in it, and no figure depends on any other note: word rarity
        and note length are computed over the visible notes alone, and typing errors are not corrected.
        """
        problems: list[Problem] = []
        terms: tuple[str, ...] = ()
        nearby: tuple[str, ...] = ()
        try:
            columns = self._current()
            seen = None if visible.whole else self._seen(columns, visible)
            bm25 = context = np.zeros(len(columns))
            if words:
                terms, bm25 = self._bm25(columns, text, forgiving, seen)
            if around:
                nearby, context = self._bm25(columns, around, False, seen)
            near = self._near(columns, project, (bm25 > 0) | (context > 0)) if seen is None else seen
        except sqlite3.Error as error:
            problems.append(self._problem(f"the catalogue cannot be used: {error}"))
            columns, bm25, context, near, seen = no_columns(), np.zeros(0), np.zeros(0), None, None
        space, cosine = self._spaces[0][1].space, np.zeros(len(columns), np.float32)
        for embedder, vector_file in self._order(beside and seen is None, columns) if meaning and len(columns) else ():
            try:
                vector = embedder.embed([text if whole else essence(text)], "document" if whole else "query")[0]
                space, cosine = vector_file.space, self._cosines(columns, vector_file, vector, near)
                break
            except KiteError as error:
                problems.append(self._problem(str(error)))
        self._noted(problems)
        if seen is not None:
            columns, cosine, bm25, context = columns.narrowed(seen), cosine[seen], bm25[seen], context[seen]
        return Signals(
            columns=columns,
            space=space,
            terms=terms,
            cosine=cosine,
            bm25=bm25,
            around=context,
            around_terms=len(nearby),
            problems=tuple(problems),
        )

    def columns(self, visible: VisibleNotes = _EVERYTHING) -> Columns:
        """Return the columns of the notes in ``visible`` without reading any note; empty if the catalogue cannot be used."""
        try:
            columns = self._current()
            return columns if visible.whole else columns.narrowed(self._seen(columns, visible))
        except sqlite3.Error as error:
            self._noted([self._problem(f"the catalogue cannot be used: {error}")])
            return no_columns()

    def notes(self, numbers: Collection[int]) -> dict[int, Note]:
        """Return notes by their catalogue numbers, omitting notes that are gone."""
        try:
            return self._catalogue.notes(numbers)
        except sqlite3.Error as error:
            self._noted([self._problem(f"the catalogue cannot be used: {error}")])
            return {}

    def called(self, name: str) -> Note | None:
        """Return the note with this id, or with this path if it has no id."""
        return next(iter(self.notes(self.numbers(name)[:1]).values()), None)

    def numbers(self, name: str) -> list[int]:
        """Return the numbers of the notes with this name: more than one if a file has been copied."""
        try:
            with self._catalogue.reading() as connection:
                rows = connection.execute("SELECT number FROM note WHERE name = ? ORDER BY number", (name,)).fetchall()
        except sqlite3.Error as error:
            self._noted([self._problem(f"the catalogue cannot be used: {error}")])
            return []
        return [number for (number,) in rows]

    def matched_words(self, terms: Sequence[str], numbers: Collection[int]) -> dict[int, tuple[str, ...]]:
        """Return the words of each note that the terms matched."""
        try:
            with self._catalogue.reading() as connection:
                return lexical.matched_words(connection, terms, numbers)
        except sqlite3.Error as error:
            self._noted([self._problem(f"the catalogue cannot be used: {error}")])
            return {}

    def in_names(self, terms: Sequence[str], numbers: Collection[int]) -> dict[int, tuple[float, float]]:
        """Return two BM25 scores for each note: of its title, and of the names in it."""
        try:
            total = len(self._current())
            with self._catalogue.reading() as connection:
                return lexical.in_names(connection, terms, numbers, total)
        except sqlite3.Error as error:
            self._noted([self._problem(f"the catalogue cannot be used: {error}")])
            return {}

    def covered(self, terms: Sequence[str], notes: Sequence[Note]) -> list[float]:
        """Return the share of each note's title and entities that the terms cover, 0 to 1, weighted by the rarity of the words."""
        names = [set(lexical.terms(" ".join((note.title, *note.entities))[:_NAMES_LENGTH])) for note in notes]
        try:
            columns = self._current()
            with self._catalogue.reading() as connection:
                worth = lexical.rarities(connection, set().union(*names), len(columns))
        except sqlite3.Error as error:
            self._noted([self._problem(f"the catalogue cannot be used: {error}")])
            return [0.0] * len(notes)
        said = set(terms)
        return [sum(worth[word] for word in each & said) / (sum(worth[word] for word in each) or 1.0) for each in names]

    def project_number(self, project: str) -> int:
        """Return the project's number in `Columns`; -1 for a project without notes."""
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
            columns = no_columns()
        located = self._locate(self._spaces[0][1], columns)
        return IndexStatus(
            notes=len(columns),
            rows=len(located.rows),
            stale=located.missing,
            embedder=", ".join(vector_file.space.name for _, vector_file in self._spaces),
            problems=tuple(dict.fromkeys(chain(self._problems, *(vector_file.problems for _, vector_file in self._spaces)))),
        )

    def verify(self) -> tuple[Problem, ...]:
        """Check every file completely and return the problems. Slow, and harmless at any time."""
        problems = [problem for _, vector_file in self._spaces for problem in vector_file.verify()]
        try:
            with self._catalogue.reading() as connection:
                answers = [answer for (answer,) in connection.execute("PRAGMA quick_check")]
                connection.execute("SELECT count(*) FROM words WHERE words MATCH 'a'")
        except sqlite3.Error as error:
            answers = [str(error)]
        return tuple(problems + [self._problem(f"the catalogue is damaged: {answer}") for answer in answers if answer != "ok"])

    def _refreshed(
        self,
        files: NoteFiles,
        evidence: Evidence,
        hint: Collection[str] | None,
        embed: bool,
        stop: Callable[[], bool],
        progress: Callable[[int, int], None],
    ) -> Refreshed:
        if hint is not None:
            entries = [unlisted(path) for path in sorted(hint) if is_text(path)]
            written = self._catalogued(files, evidence, entries, stop, forget=True)
            paths = [entry.path for entry in entries]
            count, problems = 0, list[Problem]()
            if embed:
                count, problems = self._embedded(self._spaces[0], lambda: self._catalogue.keys_of(paths), stop, progress)
                self._warm_up()
            return replace(written, embedded=count, problems=self._noted(problems))
        with self._refreshing:
            unusable: list[Entry] = []
            problems = [problem for _, vector_file in self._spaces for problem in vector_file.reread()]
            differences = self._catalogue.compare(listed(files, unusable))
            written = self._catalogued(files, evidence, differences.to_read, stop, forget=False)
            # Read again: a note may have been written, and indexed by a hint, since the vault was listed.
            gone = self._catalogued(files, evidence, [unlisted(path) for path in differences.gone], stop, forget=True)
            problems += [self._problem("a file's name is not text") for _ in unusable]
            embedded = 0
            for space in self._spaces if embed else ():
                count, index_problems = self._embedded(space, self._keys, stop, progress)
                embedded += count
                problems += index_problems
                if not stop():  # else notes may be missing from the catalogue whose vectors are still good
                    problems += self._swept(space[1])
            self._problems = ()
            self._warm_up()
            self._leave_former()
            return replace(written, removed=written.removed + gone.removed, embedded=embedded, problems=self._noted(problems))

    def _warm_up(self) -> None:
        """Do now what the next prompt would wait for otherwise."""
        self._locate(self._spaces[0][1], self._current())

    def _leave_former(self) -> None:
        """Delete the previous embedding spaces once the present one is complete."""
        if not self._locate(self._spaces[0][1], self._current()).missing:
            for _, vector_file in self._former:
                if len(vector_file.rows()):
                    vector_file.clear()

    def _keys(self) -> Keys:
        keys: Keys = self._current().passages["key"]
        return keys

    def _catalogued(
        self, files: NoteFiles, evidence: Evidence, entries: Sequence[Entry], stop: Callable[[], bool], *, forget: bool
    ) -> Refreshed:
        """Write these entries into the catalogue, where they are found by words. A path that yields no note is removed with
        ``forget``; otherwise the file is not read again until it changes.
        """
        count = {"added": 0, "changed": 0, "the same": 0, "removed": 0}
        for start in range(0, len(entries), _NOTES_PER_COMMIT):
            if stop():
                break
            read = [(self._dated(entry), files.read(entry.path)) for entry in entries[start : start + _NOTES_PER_COMMIT]]
            said = [evidence(note) if note is not None else "" for _, note in read]
            with self._catalogue.writing() as writer:
                for (entry, note), heard in zip(read, said, strict=True):
                    if note is not None:
                        count[Catalogue.put(writer, note, entry, heard)] += 1
                    else:
                        count["removed"] += Catalogue.remove(writer, entry.path) if forget else Catalogue.pass_over(writer, entry)
        return Refreshed(added=count["added"], changed=count["changed"], removed=count["removed"])

    def _dated(self, entry: Entry) -> Entry:
        racy = entry.mtime_ns > self._clock() - _RACY_NS
        return entry._replace(mtime_ns=UNKNOWN) if racy else entry

    def _embedded(
        self, space: _Space, wanted: Callable[[], Keys], stop: Callable[[], bool], progress: Callable[[int, int], None]
    ) -> tuple[int, list[Problem]]:
        """Embed missing texts and return how many, with the problems met. Vectors are written every few thousand rows, and at the
        end.
        """
        embedder, vector_file = space
        asked, held = np.unique(wanted()), vector_file.rows()
        missing = asked[held.places(asked) == len(held)].tolist()
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
                problems += self._appended(vector_file, rows, vectors)
                rows, vectors = [], []
        if rows:
            problems += self._appended(vector_file, rows, vectors)
        return count, problems

    def _appended(self, vector_file: VectorFile, rows: Sequence[Row], vectors: Sequence[Vectors]) -> list[Problem]:
        try:
            vector_file.append(rows, np.concatenate(vectors))
        except OSError as error:
            return [self._problem(f"vectors cannot be written: {error.strerror}")]
        return []

    def _swept(self, vector_file: VectorFile, **share: float) -> list[Problem]:
        try:
            vector_file.keep(self._keys, **share)
        except OSError as error:
            return [self._problem(f"vectors cannot be written: {error.strerror}")]
        return []

    def _current(self) -> Columns:
        with self._looking:
            if self._columns is None or self._columns.generation != self._catalogue.generation():
                self._columns = self._catalogue.columns(self._columns)
            return self._columns

    def _seen(self, columns: Columns, visible: VisibleNotes) -> Mask:
        projects = [self._catalogue.project_number(each) for each in visible.projects or ()]
        return columns.seen(visible, [each for each in projects if each >= 0], self._catalogue.project_number(""))

    def _bm25(
        self, columns: Columns, text: str, forgiving: bool, seen: Mask | None
    ) -> tuple[tuple[str, ...], npt.NDArray[np.float64]]:
        wanted = lexical.terms(text[:_WORDS_LENGTH])
        bm25 = np.zeros(len(columns))
        with self._catalogue.reading() as connection:
            if seen is not None:
                wanted = lexical.foremost([*wanted, *lexical.called_otherwise(None, wanted)])
                numbers, scores = lexical.matches_among(connection, wanted, columns.notes["number"][seen], _MATCHES)
            else:
                wanted = lexical.rarest_terms(connection, wanted, len(columns))
                wanted += lexical.called_otherwise(connection, wanted)
                if forgiving:
                    for near in lexical.corrected(connection, wanted, text).values():
                        wanted += near
                numbers, scores = lexical.matches(connection, wanted, len(columns), _MATCHES)
        rows = columns.rows_of(numbers)
        bm25[rows[rows >= 0]] = scores[rows >= 0]
        return tuple(wanted), bm25

    def _order(self, beside: bool, columns: Columns) -> Sequence[_Space]:
        if beside and len(self._spaces) > 1 and not self._locate(self._spaces[1][1], columns).missing:
            return self._spaces[::-1]
        first = self._spaces[:1]
        if self._former and self._locate(first[0][1], columns).missing:
            return sorted((*first, *self._former), key=lambda space: self._locate(space[1], columns).missing)
        return first

    def _cosines(self, columns: Columns, vector_file: VectorFile, vector: Vectors, near: npt.NDArray[np.bool_] | None) -> Vectors:
        """Return the cosines of all notes, or of those that are ``near`` with 0 for the others."""
        located = self._locate(vector_file, columns)
        if near is None:
            passages = np.append(located.rows.cosines(vector), np.float32(0))[located.places]
        else:
            passages = np.zeros(len(columns.passages), np.float32)
            compared = np.flatnonzero(columns.passages_of(near) & (located.places < len(located.rows)))
            passages[compared] = located.rows.cosines(vector, located.places[compared])
        return np.maximum.reduceat(passages, columns.first_passage)

    def _near(self, columns: Columns, project: str, heard: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_] | None:
        """Return a mask of the notes to compare by meaning; ``None`` for all of them, as in any vault that is not very large."""
        if not project or len(columns) <= self._compared:
            return None
        return columns.within(self._catalogue.project_number(project)) | heard

    def _locate(self, vector_file: VectorFile, columns: Columns) -> _Located:
        rows = vector_file.rows()
        located = self._located.get(vector_file.space.tag)
        if located is None or located.rows is not rows or located.columns is not columns:
            keys = columns.passages["key"]
            if located is not None and (carried := _carried(located, columns)) is not None:
                places = rows.places_after(located.rows, keys, carried)
            else:
                places = rows.places(keys)
            located = self._located[vector_file.space.tag] = _Located(columns=columns, rows=rows, places=places)
        return located

    def _problem(self, reason: str) -> Problem:
        return Problem(file=str(self._folder), position=0, reason=reason)

    def _noted(self, problems: Sequence[Problem]) -> tuple[Problem, ...]:
        self._problems = tuple(dict.fromkeys((*self._problems, *problems)))[:_PROBLEMS]
        return tuple(problems)
