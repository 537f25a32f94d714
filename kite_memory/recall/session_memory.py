"""What each session has been shown, what each prompt was given and why, and what came of it."""

import json
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from kite_memory.errors import StateDamaged, StateNotWritten
from kite_memory.model.hit import Judged, Question
from kite_memory.recall.session_memory_schema import SCHEMA_1, SCHEMA_2, SCHEMA_3
from kite_memory.recall.tallies import BY_TITLE, Count, Moment, Standing, Tally, Week, mondays, storable, tally_of, week_of
from kite_memory.recall.uptake import Uptake
from kite_memory.system import sqlite
from kite_memory.system.private_files import make_folder, make_private_file

TEAMS = "team:"
"""Before the id of a note of the team's: the names of one's own notes are apart from these."""

_VERSION = 3
_TEXTS_KEPT = timedelta(days=30)
_FIGURES_KEPT = timedelta(days=180)
_WEEK = 7 * 86_400
_HEAD_LENGTH = 200
_WHY_LENGTH = 300
_RESTS_AFTER = 5
"""Sessions whose start listed a note, none of which took it up."""
_TWICE = 2
_RESTS, _MOST_RECENT, _MOST_IGNORED = timedelta(days=7), 4, 3
_TELLING_HEAD = 24
"""Characters; what is shorter begins prompts about anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A note's id (or path, where it has none), the score it was shown with, and what came of it: ``why`` says how one knows.

    ``voice`` is how it was said, where that was not as its occasion's moment says: by its title alone, beside another in full.
    """

    note: str
    score: float
    standing: Standing = "open"
    why: str = ""
    voice: Moment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """One prompt (or another moment) and what it was given. ``head`` is the redacted beginning of the prompt."""

    at: datetime
    session: str
    project: str
    head: str
    reason: str
    given: tuple[Given, ...] = ()
    moment: Moment = "prompt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """A note that was shown, of which nobody has said yet whether it was used."""

    number: int
    at: datetime
    moment: Moment
    session: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruled:
    """One of a question's candidates: what it scored, and how probable a judge found it that it helps."""

    note: str
    score: float
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """``anything`` is how probable the judge found it that any of the notes helps."""

    at: datetime
    session: str
    project: str
    features: tuple[float, ...]
    anything: float
    notes: tuple[Ruled, ...]


class Delivery:
    """What is written down once a reply has arrived, and given up where it was lost. Of both the first one holds."""

    def __init__(self) -> None:
        self._arrived: list[Callable[[], object]] = []
        self._lost: list[Callable[[], object]] = []

    def __bool__(self) -> bool:
        """Whether anything depends on it."""
        return bool(self._arrived or self._lost)

    def when(self, *, arrived: Callable[[], object] = lambda: None, lost: Callable[[], object] = lambda: None) -> None:
        self._arrived.append(arrived)
        self._lost.append(lost)

    def arrived(self) -> None:
        self._end(self._arrived)

    def lost(self) -> None:
        self._end(self._lost)

    def _end(self, steps: Sequence[Callable[[], object]]) -> None:
        steps = tuple(steps)
        self._arrived.clear()
        self._lost.clear()
        with ExitStack() as each:  # of which one that fails keeps no other from being done
            for step in reversed(steps):
                each.callback(step)


class SessionMemory:
    """Survives restarts. Texts are forgotten after thirty days and what was found out after a hundred and eighty; what is counted
    stays. A damaged file is begun anew: at worst a note is shown a second time.

    Raises `StateNewer` for a newer version's, `StateDamaged` where not even a new one can be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._tallies: tuple[int, Mapping[str, Tally]] | None = None
        self._reserved: dict[str, set[str]] = {}
        try:
            make_folder(path.parent)
            make_private_file(path)
        except OSError as error:
            hint = f"see who owns it, and whether its disk is full: ls -la {path.parent}"
            raise StateNotWritten(f"the memory of what was shown, {path}, cannot be used: {error.strerror}", hint=hint) from error
        try:
            self._connection = _opened(path)
        except sqlite3.OperationalError as error:
            raise StateDamaged(f"the memory of what was shown cannot be used: {error}", hint=f"look at {path}") from error
        except sqlite3.DatabaseError:
            self._connection = _begun_anew(path)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def shown(self, session: str) -> frozenset[str]:
        """What is in the session's context by now, or on its way there."""
        with self._lock:
            return frozenset(self._in_context(session)).union(self._reserved.get(session, ()))

    def listed(self, session: str) -> Mapping[str, float]:
        """What the session was told of by title alone, each with the score it had then: the highest."""
        with self._lock:
            rows = self._connection.execute("SELECT note, score FROM listed WHERE session = ?", (storable(session),))
            return dict(rows.fetchall())

    def opened(self, session: str, notes: Sequence[str], at: datetime, *, project: str = "", agent: str = "") -> None:
        """The agent had these shown: they are in its context, and what pointed it there was of use."""
        notes = [note for note in notes if note not in self.shown(session)]
        if not session or not notes:
            return
        self.claim(session, notes, at)
        given = tuple(Given(note=note, score=1.0) for note in notes)
        self.record(
            Occasion(at=at, session=session, project=project, head="", reason="the agent opened it", given=given, moment="opened")
        )
        with self._changing() as connection:
            connection.executemany(
                "UPDATE showing SET standing = 'used', why = 'opened', settled = ?"
                " WHERE session = ? AND note = ? AND moment IN ('start', 'pointer')",
                [(at.timestamp(), storable(session), storable(note)) for note in notes],
            )

    def taken_up(self) -> frozenset[str]:
        """The notes that were opened, or used, in two sessions or more."""
        asked = (
            "SELECT note FROM showing WHERE standing = 'used' OR moment = 'opened'"
            " GROUP BY note HAVING COUNT(DISTINCT session) >= ?"
        )
        with self._lock:
            return frozenset(note for (note,) in self._connection.execute(asked, (_TWICE,)))

    def at_rest(self) -> frozenset[str]:
        """The notes that the starts of five sessions listed since anybody took them up."""
        asked = (
            "SELECT s.note FROM showing AS s WHERE s.moment = 'start' AND s.standing != 'used' AND s.number > COALESCE(("
            " SELECT MAX(u.number) FROM showing AS u WHERE u.note = s.note AND (u.standing = 'used' OR u.moment = 'opened')), 0)"
            " GROUP BY s.note HAVING COUNT(DISTINCT s.session) >= ?"
        )
        with self._lock:
            return frozenset(note for (note,) in self._connection.execute(asked, (_RESTS_AFTER,)))

    def give(self, session: str, notes: Sequence[str], occasion: Occasion, delivery: Delivery | None = None) -> bool:
        """Take the notes for this session and log the occasion: all, or none where another prompt was quicker with one of them.

        With a ``delivery`` that is done as it arrives, and until then they are this prompt's: no other gets them. What of the
        occasion is not among ``notes`` was named by its title, and silences nothing.
        """
        if delivery is None:
            if session and notes and not self.claim(session, notes, occasion.at):
                return False
            self._log(session, notes, occasion)
            return True
        if session and notes and not self._reserve(session, notes):
            return False
        delivery.when(
            arrived=lambda: self._confirm(session, notes, occasion),
            lost=lambda: self._release(session, notes),
        )
        return True

    def _reserve(self, session: str, notes: Sequence[str]) -> bool:
        with self._lock:
            reserved = self._reserved.get(session, set())
            if not self._in_context(session).union(reserved).isdisjoint(notes):
                return False
            self._reserved[session] = reserved.union(notes)
            return True

    def _in_context(self, session: str) -> set[str]:
        rows = self._connection.execute("SELECT note FROM shown WHERE session = ?", (storable(session),))
        return {note for (note,) in rows}

    def _confirm(self, session: str, notes: Sequence[str], occasion: Occasion) -> None:
        """Where that fails they still count as shown, as long as this process lives."""
        if session and notes:
            self.claim(session, notes, occasion.at)
        self._log(session, notes, occasion)
        self._release(session, notes)

    def _log(self, session: str, notes: Sequence[str], occasion: Occasion) -> None:
        self.record(occasion)
        named = [(given.note, given.score) for given in occasion.given if given.note not in notes]
        if session and named:
            with self._changing() as connection:
                connection.executemany(
                    "INSERT INTO listed VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (session, note) DO UPDATE SET score = MAX(score, excluded.score), at = excluded.at",
                    [(storable(session), storable(note), score, occasion.at.timestamp()) for note, score in named],
                )

    def _release(self, session: str, notes: Sequence[str]) -> None:
        with self._lock:
            left = self._reserved.pop(session, set()).difference(notes)
            if left:
                self._reserved[session] = left

    def claim(self, session: str, notes: Sequence[str], at: datetime) -> bool:
        """Take the notes for this session: all, or none where another prompt was quicker with one of them."""
        with self._changing() as connection:
            rows = [(storable(session), storable(note), at.timestamp()) for note in notes]
            taken = connection.executemany("INSERT OR IGNORE INTO shown VALUES (?, ?, ?)", rows).rowcount
            if taken < len(notes):
                connection.execute("ROLLBACK")
            return taken == len(notes)

    def record(self, occasion: Occasion) -> None:
        """What was given there is open from now on: `settle` says what came of it."""
        with self._changing() as connection:
            _write(connection, occasion)
            self._count_again([given.note for given in occasion.given])

    def last(self, count: int, *, silent: bool = True) -> tuple[Occasion, ...]:
        """The latest first; without ``silent`` only those that were given something."""
        asked = (
            "SELECT number, at, moment, session, project, head, reason FROM occasion"
            " WHERE ? OR number IN (SELECT occasion FROM showing) ORDER BY number DESC LIMIT ?"
        )
        with self._lock:
            rows = self._connection.execute(asked, (silent, count)).fetchall()
            shown = self._connection.execute(
                "SELECT occasion, note, score, standing, why, moment FROM showing WHERE occasion >= ? ORDER BY number",
                (rows[-1][0] if rows else 0,),
            ).fetchall()
        given: defaultdict[int, list[tuple[Given, Moment]]] = defaultdict(list)
        for number, note, score, standing, why, voice in shown:
            given[number].append((Given(note=note, score=score, standing=standing, why=why), voice))
        return tuple(
            Occasion(
                at=_moment(at),
                moment=moment,
                session=session,
                project=project,
                head=head,
                reason=reason,
                given=tuple(one if voice == moment else replace(one, voice=voice) for one, voice in given[number]),
            )
            for number, at, moment, session, project, head, reason in rows
        )

    def silent_since(self, start: datetime | None) -> int:
        """How many occasions gave nothing since then, or at all; of those that are not pruned yet."""
        with self._lock:
            asked = "SELECT count(*) FROM occasion WHERE at >= ? AND number NOT IN (SELECT occasion FROM showing)"
            return int(self._connection.execute(asked, (start.timestamp() if start else 0.0,)).fetchone()[0])

    def is_worn_out(self, note: str, now: datetime) -> bool:
        """Whether a note was told as agents worked so often that it is to rest: ignored more often than used, or in many sessions
        of the last days."""
        asked = (
            "SELECT COUNT(*) FILTER (WHERE at >= ?), COUNT(*) FILTER (WHERE standing = 'ignored'),"
            " COUNT(*) FILTER (WHERE standing = 'used') FROM showing WHERE note = ? AND moment = 'action'"
        )
        with self._lock:
            recent, ignored, used = self._connection.execute(asked, ((now - _RESTS).timestamp(), storable(note))).fetchone()
        return bool(recent >= _MOST_RECENT or ignored - used >= _MOST_IGNORED)

    def shown_open(self, before: datetime) -> tuple[Showing, ...]:
        """What was shown before then and is open still, the oldest first. Costs next to nothing where there is none."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT number, at, moment, session, note FROM showing WHERE standing = 'open' AND at < ? ORDER BY at, number",
                (before.timestamp(),),
            ).fetchall()
        return tuple(
            Showing(number=number, at=_moment(at), moment=moment, session=session, note=note)
            for number, at, moment, session, note in rows
        )

    def settle(self, showing: Showing, found: Uptake, at: datetime) -> None:
        """Said once: what is settled already stays as it is. What named a note by its title alone is not held against it."""
        with self._changing() as connection:
            settled = connection.execute(
                "UPDATE showing SET standing = ?, why = ?, settled = ? WHERE number = ? AND note = ? AND standing = 'open'",
                (found.outcome, storable(found.why[:_WHY_LENGTH]), at.timestamp(), showing.number, storable(showing.note)),
            ).rowcount
            if settled and showing.moment not in BY_TITLE:
                connection.execute(
                    "UPDATE tally SET used = used + ?, ignored = ignored + ? WHERE note = ?",
                    (found.outcome == "used", found.outcome == "ignored", storable(showing.note)),
                )
                self._count_again([showing.note])

    def times(self, session: str, moment: Moment) -> int:
        """How often the session was told something at such a moment."""
        with self._lock:
            asked = "SELECT count(*) FROM occasion WHERE session = ? AND moment = ?"
            return int(self._connection.execute(asked, (storable(session), moment)).fetchone()[0])

    def tallies(self) -> Mapping[str, Tally]:
        """Of every note that was ever shown; the same mapping until something changes."""
        with self._lock:
            (others_changes,) = self._connection.execute("PRAGMA data_version").fetchone()
            if self._tallies is None or self._tallies[0] != others_changes:
                rows = self._connection.execute("SELECT note, shown, used, ignored FROM tally")
                self._tallies = (others_changes, MappingProxyType(dict(map(tally_of, rows))))
            return self._tallies[1]

    def last_shown(self, *, used: bool = False) -> Mapping[str, datetime]:
        """When each note was shown last; with ``used``, only where it was of use."""
        query = "SELECT note, MAX(at) FROM showing WHERE ? OR standing = 'used' GROUP BY note"
        with self._lock:
            rows = self._connection.execute(query, (not used,)).fetchall()
        return {note: _moment(at) for note, at in rows}

    def _count_again(self, notes: Sequence[str]) -> None:
        """Of a change of our own, only what it touches is read again: there may be thousands of others."""
        if self._tallies is not None and notes:
            others_changes, known = self._tallies
            counted = "SELECT note, shown, used, ignored FROM tally WHERE note = ?"
            changed = dict(tally_of(row) for note in notes for row in self._connection.execute(counted, (storable(note),)))
            self._tallies = (others_changes, MappingProxyType({**known, **changed}))

    def weekly(self, weeks: int, now: datetime) -> tuple[Week, ...]:
        """This week and those before it, the latest first; also those in which nothing was."""
        days = mondays(now, weeks)
        first = datetime(days[-1].year, days[-1].month, days[-1].day, tzinfo=UTC).timestamp()
        with self._lock:
            counted = self._connection.execute(
                "SELECT CAST((at - ?) / ? AS INTEGER), moment, standing, COUNT(*) FROM showing WHERE at >= ? GROUP BY 1, 2, 3",
                (first, _WEEK, first),
            ).fetchall()
            prompts = {
                week: (asked, silent)
                for week, asked, silent in self._connection.execute(
                    "SELECT week, prompts, silent FROM week WHERE week >= ?", (week_of(days[-1]),)
                )
            }
        moments: defaultdict[int, dict[Moment, Count]] = defaultdict(dict)
        for number, moment, standing, count in counted:
            moments[number][moment] = moments[number].get(moment, Count()) + Count(**{standing: count})
        told: list[Week] = []
        for number, monday in enumerate(reversed(days)):
            asked, silent = prompts.get(week_of(monday), (0, 0))
            told.append(Week(monday=monday, prompts=asked, silent=silent, moments=moments[number]))
        return tuple(reversed(told))

    def most_ignored(self, since: datetime, count: int) -> tuple[tuple[str, Tally], ...]:
        """The notes that were ignored oftenest since then, more often than used, with how they fared since then."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT note, COUNT(*), SUM(standing = 'used') AS used, SUM(standing = 'ignored') AS ignored FROM showing"
                " WHERE at >= ? AND moment NOT IN ('start', 'pointer')"
                " GROUP BY note HAVING ignored > used ORDER BY ignored - used DESC, note LIMIT ?",
                (since.timestamp(), count),
            ).fetchall()
        return tuple((note, Tally(shown=shown, used=used, ignored=ignored)) for note, shown, used, ignored in rows)

    def log_verdicts(self, question: Question, judged: Judged, at: datetime) -> None:
        """For fitting the gate to this person; nothing of what was asked is kept."""
        found = {verdict.note: verdict.probability for verdict in judged.verdicts}
        names = [hit.note.id or hit.note.path for hit in question.candidates]
        notes = [[name, hit.score, found.get(name, 0.0)] for name, hit in zip(names, question.candidates, strict=True)]
        with self._changing() as connection:
            connection.execute(
                "INSERT INTO ruling(at, session, project, features, notes, anything, tokens_in, tokens_out, dollars)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    at.timestamp(),
                    storable(question.session),
                    storable(question.project),
                    json.dumps(question.features),
                    storable(json.dumps(notes)),
                    judged.anything,
                    judged.tokens_in,
                    judged.tokens_out,
                    judged.dollars,
                ),
            )

    def rulings(self, since: datetime) -> tuple[Ruling, ...]:
        """The oldest first."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT at, session, project, features, anything, notes FROM ruling WHERE at >= ? ORDER BY number",
                (since.timestamp(),),
            ).fetchall()
        return tuple(
            Ruling(
                at=_moment(at),
                session=session,
                project=project,
                features=tuple(json.loads(features)),
                anything=anything,
                notes=tuple(Ruled(note=note, score=score, probability=probable) for note, score, probable in json.loads(notes)),
            )
            for at, session, project, features, anything, notes in rows
        )

    def take_over(self, session: str, origin: str) -> None:
        """What one session was shown counts as shown to another that goes on from it."""
        with self._changing() as connection:
            both = (storable(session), storable(origin))
            connection.execute("INSERT OR IGNORE INTO shown SELECT ?, note, at FROM shown WHERE session = ?", both)
            connection.execute("INSERT OR IGNORE INTO listed SELECT ?, note, score, at FROM listed WHERE session = ?", both)

    def forget_session(self, session: str) -> None:
        """After a compaction nothing that was shown is in the agent's context any more."""
        with self._changing() as connection:
            self._reserved.pop(session, None)
            for table in ("shown", "listed"):
                connection.execute(f"DELETE FROM {table} WHERE session = ?", (storable(session),))  # noqa: S608  (ours)

    def forget_head(self, session: str, beginning: str) -> None:
        """Of a prompt of the session that began so, only that there was one is kept. Of a longer beginning, in every session:
        one that goes on from another repeats its prompts.
        """
        begun = storable(beginning.rstrip("…"))
        with self._changing() as connection:
            connection.execute(
                "UPDATE occasion SET head = '' WHERE (session = ? OR ?) AND head <> '' AND SUBSTR(head, 1, LENGTH(?)) = ?",
                (storable(session), len(begun) >= _TELLING_HEAD, begun, begun),
            )

    def forget_words_of(self, sessions: Collection[str]) -> None:
        """How one knows what came of a note is told in words of the session: none of them are kept."""
        with self._changing() as connection:
            connection.executemany(
                "UPDATE showing SET why = '' WHERE session = ? AND why <> ''", [(storable(session),) for session in sessions]
            )

    def purge(self) -> bool:
        """As `own_sqlite.purge`."""
        with self._lock:
            return sqlite.purge(self._connection)

    def forget_notes(self, notes: Collection[str]) -> None:
        """Nothing here names them from now on, nor tells in their words what came of them. What was counted stays."""
        names = {storable(note) for note in notes}
        with self._changing() as connection:
            for table in ("shown", "listed", "tally"):
                connection.executemany(f"DELETE FROM {table} WHERE note = ?", [(name,) for name in names])  # noqa: S608  (ours)
            connection.executemany("UPDATE showing SET note = '', why = '' WHERE note = ?", [(name,) for name in names])
            for number, written in connection.execute("SELECT number, notes FROM ruling").fetchall():
                ruled = json.loads(written)
                if any(name in names for name, *_ in ruled):
                    kept = json.dumps([["" if name in names else name, *rest] for name, *rest in ruled])
                    connection.execute("UPDATE ruling SET notes = ? WHERE number = ?", (kept, number))
            self._tallies = None

    def prune(self, now: datetime) -> None:
        texts, figures = ((now - kept).timestamp() for kept in (_TEXTS_KEPT, _FIGURES_KEPT))
        with self._changing() as connection:
            connection.execute("DELETE FROM shown WHERE at < ?", (texts,))
            connection.execute("DELETE FROM listed WHERE at < ?", (texts,))
            connection.execute("DELETE FROM occasion WHERE at < ?", (texts,))
            connection.execute("UPDATE showing SET why = '' WHERE at < ? AND why <> ''", (texts,))
            connection.execute("UPDATE showing SET standing = 'unknown' WHERE at < ? AND standing = 'open'", (texts,))
            connection.execute("DELETE FROM showing WHERE at < ?", (figures,))
            connection.execute("DELETE FROM ruling WHERE at < ?", (figures,))

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                if self._connection.in_transaction:
                    self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._tallies = None
                    self._connection.execute("ROLLBACK")


def _write(connection: sqlite3.Connection, occasion: Occasion) -> None:
    at = occasion.at.timestamp()
    number = connection.execute(
        "INSERT INTO occasion(at, moment, session, project, head, reason) VALUES (?, ?, ?, ?, ?, ?)",
        (
            at,
            occasion.moment,
            storable(occasion.session),
            storable(occasion.project),
            storable(occasion.head[:_HEAD_LENGTH]),
            storable(occasion.reason),
        ),
    ).lastrowid
    for given in occasion.given:
        note = storable(given.note)
        connection.execute(
            "INSERT INTO showing(occasion, at, moment, session, note, score, standing, why) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                at,
                given.voice or occasion.moment,
                storable(occasion.session),
                note,
                given.score,
                given.standing,
                storable(given.why),
            ),
        )
        if (given.voice or occasion.moment) not in BY_TITLE:
            connection.execute(
                "INSERT INTO tally(note, shown) VALUES (?, 1) ON CONFLICT (note) DO UPDATE SET shown = shown + 1", (note,)
            )
    if occasion.moment == "prompt":
        connection.execute(
            "INSERT INTO week VALUES (?, 1, ?)"
            " ON CONFLICT (week) DO UPDATE SET prompts = prompts + 1, silent = silent + excluded.silent",
            (week_of(occasion.at.astimezone(UTC).date()), not occasion.given),
        )


def _bring_over(connection: sqlite3.Connection) -> None:
    """The first version's prompts, and what they were given; what came of that is found out as for any other showing."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'prompt'").fetchone():
        return
    rows = connection.execute("SELECT at, session, project, head, reason, given FROM prompt ORDER BY number").fetchall()
    for at, session, project, head, reason, given in rows:
        try:
            notes = tuple(Given(note=str(note), score=float(score)) for note, score in json.loads(given))
        except (ValueError, TypeError, RecursionError):
            notes = ()
        _write(connection, Occasion(at=_moment(at), session=session, project=project, head=head, reason=reason, given=notes))
    connection.execute("DROP TABLE prompt")


_MIGRATIONS: sqlite.Migrations = {1: SCHEMA_1.split(";"), 2: (*SCHEMA_2.split(";"), _bring_over), 3: SCHEMA_3.split(";")}


def _opened(path: Path) -> sqlite3.Connection:
    # A prompt waits for this: another process that holds the file longer than that costs the injection, not the wait.
    return sqlite.open_store(path, _MIGRATIONS, named=str(path), timeout=0.25)


def _begun_anew(path: Path) -> sqlite3.Connection:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    make_private_file(path)
    try:
        return _opened(path)
    except sqlite3.Error as error:
        raise StateDamaged(f"the memory of what was shown cannot be begun anew: {error}", hint=f"look at {path}") from error


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
