"""Record of what each session was shown, what each prompt was given and why, and what came of it."""

import json
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from kite_memory.errors import StateDamaged, StateNotWritten
from kite_memory.recall.uptake import BY_TITLE, Count, Moment, Standing, Tally, Uptake, Week, mondays, tally_of, week_of
from kite_memory.system import sqlite
from kite_memory.system.private_files import make_folder, make_private_file
from kite_memory.text.quoting import mended

if TYPE_CHECKING:
    from kite_memory.recall.gate import VerdictLog


_SCHEMA_1 = """
CREATE TABLE shown (session TEXT NOT NULL, note TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (session, note)) WITHOUT ROWID;
CREATE INDEX shown_by_time ON shown(at)
"""
_SCHEMA_2 = """
CREATE TABLE occasion (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, moment TEXT NOT NULL, session TEXT NOT NULL, project TEXT NOT NULL,
    head TEXT NOT NULL, reason TEXT NOT NULL
);
CREATE INDEX occasion_by_time ON occasion(at);
CREATE TABLE showing (
    number INTEGER PRIMARY KEY, occasion INTEGER NOT NULL, at REAL NOT NULL, moment TEXT NOT NULL, session TEXT NOT NULL,
    note TEXT NOT NULL, score REAL NOT NULL, standing TEXT NOT NULL DEFAULT 'open', why TEXT NOT NULL DEFAULT '', settled REAL
);
CREATE INDEX showing_by_time ON showing(at);
CREATE INDEX showing_by_occasion ON showing(occasion);
CREATE INDEX showing_open ON showing(at) WHERE standing = 'open';
CREATE TABLE tally (
    note TEXT PRIMARY KEY, shown INTEGER NOT NULL, used INTEGER NOT NULL DEFAULT 0, ignored INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE week (week TEXT PRIMARY KEY, prompts INTEGER NOT NULL, silent INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE ruling (
    number INTEGER PRIMARY KEY, at REAL NOT NULL, session TEXT NOT NULL, project TEXT NOT NULL, features TEXT NOT NULL,
    notes TEXT NOT NULL, anything REAL NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, dollars REAL NOT NULL
);
CREATE INDEX ruling_by_time ON ruling(at)
"""
_SCHEMA_3 = """
CREATE TABLE listed (
    session TEXT NOT NULL, note TEXT NOT NULL, score REAL NOT NULL, at REAL NOT NULL, PRIMARY KEY (session, note)
) WITHOUT ROWID;
CREATE INDEX listed_by_time ON listed(at);
CREATE INDEX showing_by_note ON showing(note)
"""
_SCHEMA_4 = """
CREATE TABLE tally_elsewhere (
    machine TEXT NOT NULL, note TEXT NOT NULL, shown INTEGER NOT NULL, used INTEGER NOT NULL, ignored INTEGER NOT NULL,
    PRIMARY KEY (note, machine)
) WITHOUT ROWID;
CREATE VIEW counted AS SELECT note, SUM(shown) AS shown, SUM(used) AS used, SUM(ignored) AS ignored FROM (
    SELECT note, shown, used, ignored FROM tally UNION ALL SELECT note, shown, used, ignored FROM tally_elsewhere
) GROUP BY note
"""


TEAMS = "team:"
"""Prefix of the ids of team notes, which keeps them apart from the user's own."""

_TEXTS_KEPT = timedelta(days=30)
_FIGURES_KEPT = timedelta(days=180)
_WEEK = 7 * 86_400
_HEAD_LENGTH = 200
_WHY_LENGTH = 300
_RESTS_AFTER = 5
"""Number of sessions whose start listed a note without its being used, after which the note ranks lower."""
_TWICE = 2
_RESTS, _MOST_RECENT, _MOST_IGNORED = timedelta(days=7), 4, 3
_TELLING_HEAD = 24
"""Characters. A shorter beginning could match unrelated prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNote:
    """One note that was shown: its id (or its path, if it has none), the score it had, and whether it was used. ``why`` is the
    reason for ``standing``.

    ``voice`` is how it was shown, where that differs from its occasion's moment: for example by title beside another shown in full.
    """

    note: str
    score: float
    standing: Standing = "open"
    why: str = ""
    voice: Moment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """One prompt (or another moment) and what was shown at it. ``head`` is the redacted beginning of the prompt."""

    at: datetime
    session: str
    project: str
    head: str
    reason: str
    given: tuple[ShownNote, ...] = ()
    moment: Moment = "prompt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """A note that was shown, for which it is not known yet whether it was used."""

    number: int
    at: datetime
    moment: Moment
    session: str
    note: str


class ShownReport:
    """What was shown in the past, and how often."""

    def __init__(self, connection: sqlite3.Connection, lock: threading.Lock) -> None:
        self._connection = connection
        self._lock = lock

    def occasions(self, count: int, *, silent: bool = True) -> tuple[Occasion, ...]:
        """Return the last occasions, latest first; without ``silent``, only those at which something was given."""
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
        given: defaultdict[int, list[tuple[ShownNote, Moment]]] = defaultdict(list)
        for number, note, score, standing, why, voice in shown:
            given[number].append((ShownNote(note=note, score=score, standing=standing, why=why), voice))
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
        """Return how many occasions gave nothing since ``start`` (or ever), of those not pruned yet."""
        with self._lock:
            asked = "SELECT count(*) FROM occasion WHERE at >= ? AND number NOT IN (SELECT occasion FROM showing)"
            return int(self._connection.execute(asked, (start.timestamp() if start else 0.0,)).fetchone()[0])

    def last_shown(self, *, used: bool = False) -> Mapping[str, datetime]:
        """Return when each note was shown last; with ``used``, counting only showings after which it was used."""
        query = "SELECT note, MAX(at) FROM showing WHERE ? OR standing = 'used' GROUP BY note"
        with self._lock:
            rows = self._connection.execute(query, (not used,)).fetchall()
        return {note: _moment(at) for note, at in rows}

    def weekly(self, weeks: int, now: datetime) -> tuple[Week, ...]:
        """Return figures for this week and the weeks before it, latest first, including weeks without any."""
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
        newest_last: list[Week] = []
        for number, monday in enumerate(reversed(days)):
            asked, silent = prompts.get(week_of(monday), (0, 0))
            newest_last.append(Week(monday=monday, prompts=asked, silent=silent, moments=moments[number]))
        return tuple(reversed(newest_last))

    def most_ignored(self, since: datetime, count: int) -> tuple[tuple[str, Tally], ...]:
        """Return the notes ignored more often than used since then, the most ignored first, with their tallies since then."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT note, COUNT(*), SUM(standing = 'used') AS used, SUM(standing = 'ignored') AS ignored FROM showing"
                " WHERE at >= ? AND moment NOT IN ('start', 'pointer')"
                " GROUP BY note HAVING ignored > used ORDER BY ignored - used DESC, note LIMIT ?",
                (since.timestamp(), count),
            ).fetchall()
        return tuple((note, Tally(shown=shown, used=used, ignored=ignored)) for note, shown, used, ignored in rows)

    def times(self, session: str, moment: Moment) -> int:
        """Return how many occasions of this moment the session had."""
        with self._lock:
            asked = "SELECT count(*) FROM occasion WHERE session = ? AND moment = ?"
            return int(self._connection.execute(asked, (mended(session), moment)).fetchone()[0])


class SessionMemory:
    """Persistent record of what sessions were shown. Thread-safe.

    Texts are kept for thirty days and figures for a hundred and eighty; totals are kept. A damaged file is replaced by an empty
    one: at worst a note is shown a second time.

    Raises `StateNewer` for a newer version's file, `StateDamaged` if no new file can be made either.
    """

    verdicts: "VerdictLog"

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
        self.report = ShownReport(self._connection, self._lock)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Make the log of verdicts when it is first asked for: it imports numpy, which a report does not need."""
            if name != "verdicts":
                raise AttributeError(name)
            from kite_memory.recall.gate import VerdictLog

            self.verdicts = VerdictLog(self._connection, self._lock, self._changing)
            return self.verdicts

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def shown(self, session: str) -> frozenset[str]:
        """Return the notes that are in the session's context, or reserved for it."""
        with self._lock:
            return frozenset(self._in_context(session)).union(self._reserved.get(session, ()))

    def listed(self, session: str) -> Mapping[str, float]:
        """Return the notes that the session was shown by title alone, with the highest score each had."""
        with self._lock:
            rows = self._connection.execute("SELECT note, score FROM listed WHERE session = ?", (mended(session),))
            return dict(rows.fetchall())

    def opened(self, session: str, notes: Sequence[str], at: datetime, *, project: str = "", agent: str = "") -> None:
        """Record that the agent opened these notes: they count as shown, and the pointers to them as used."""
        notes = [note for note in notes if note not in self.shown(session)]
        if not session or not notes:
            return
        self.claim(session, notes, at)
        given = tuple(ShownNote(note=note, score=1.0) for note in notes)
        self.record(
            Occasion(at=at, session=session, project=project, head="", reason="the agent opened it", given=given, moment="opened")
        )
        with self._changing() as connection:
            connection.executemany(
                "UPDATE showing SET standing = 'used', why = 'opened', settled = ?"
                " WHERE session = ? AND note = ? AND moment IN ('start', 'pointer')",
                [(at.timestamp(), mended(session), mended(note)) for note in notes],
            )

    def taken_up(self) -> frozenset[str]:
        """Return the notes that were opened or used in two sessions or more."""
        asked = (
            "SELECT note FROM showing WHERE standing = 'used' OR moment = 'opened'"
            " GROUP BY note HAVING COUNT(DISTINCT session) >= ?"
        )
        with self._lock:
            return frozenset(note for (note,) in self._connection.execute(asked, (_TWICE,)))

    def at_rest(self) -> frozenset[str]:
        """Return the notes that the starts of five sessions have listed since they were last used or opened."""
        asked = (
            "SELECT s.note FROM showing AS s WHERE s.moment = 'start' AND s.standing != 'used' AND s.number > COALESCE(("
            " SELECT MAX(u.number) FROM showing AS u WHERE u.note = s.note AND (u.standing = 'used' OR u.moment = 'opened')), 0)"
            " GROUP BY s.note HAVING COUNT(DISTINCT s.session) >= ?"
        )
        with self._lock:
            return frozenset(note for (note,) in self._connection.execute(asked, (_RESTS_AFTER,)))

    def reserve(self, session: str, notes: Sequence[str]) -> bool:
        """Reserve the notes for this session: all of them, or none if one is shown or reserved already."""
        if not session or not notes:
            return True
        with self._lock:
            reserved = self._reserved.get(session, set())
            if not self._in_context(session).union(reserved).isdisjoint(notes):
                return False
            self._reserved[session] = reserved.union(notes)
            return True

    def _in_context(self, session: str) -> set[str]:
        rows = self._connection.execute("SELECT note FROM shown WHERE session = ?", (mended(session),))
        return {note for (note,) in rows}

    def confirm(self, notes: Sequence[str], occasion: Occasion) -> None:
        """Claim reserved notes and log the occasion.

        If this fails the notes stay reserved, so they count as shown for as long as this process runs.
        """
        if occasion.session and notes:
            self.claim(occasion.session, notes, occasion.at)
        self.log(notes, occasion)
        self.release(occasion.session, notes)

    def log(self, notes: Sequence[str], occasion: Occasion) -> None:
        """Log an occasion at which these notes were shown in full; its other notes were shown by title."""
        self.record(occasion)
        session = occasion.session
        named = [(given.note, given.score) for given in occasion.given if given.note not in notes]
        if session and named:
            with self._changing() as connection:
                connection.executemany(
                    "INSERT INTO listed VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (session, note) DO UPDATE SET score = MAX(score, excluded.score), at = excluded.at",
                    [(mended(session), mended(note), score, occasion.at.timestamp()) for note, score in named],
                )

    def release(self, session: str, notes: Sequence[str]) -> None:
        """Give up reserved notes."""
        with self._lock:
            left = self._reserved.pop(session, set()).difference(notes)
            if left:
                self._reserved[session] = left

    def claim(self, session: str, notes: Sequence[str], at: datetime) -> bool:
        """Claim the notes for this session: all of them, or none if another prompt has claimed one first. Return whether they were
        claimed.
        """
        with self._changing() as connection:
            rows = [(mended(session), mended(note), at.timestamp()) for note in notes]
            taken = connection.executemany("INSERT OR IGNORE INTO shown VALUES (?, ?, ?)", rows).rowcount
            if taken < len(notes):
                connection.execute("ROLLBACK")
            return taken == len(notes)

    def record(self, occasion: Occasion) -> None:
        """Log an occasion. What it gave is open until `settle`."""
        with self._changing() as connection:
            _write(connection, occasion)
            self._count_again([given.note for given in occasion.given])

    def is_worn_out(self, note: str, now: datetime) -> bool:
        """Return whether a note was shown too often as agents worked: ignored more often than used, or shown often in the last
        seven days.
        """
        asked = (
            "SELECT COUNT(*) FILTER (WHERE at >= ?), COUNT(*) FILTER (WHERE standing = 'ignored'),"
            " COUNT(*) FILTER (WHERE standing = 'used') FROM showing WHERE note = ? AND moment = 'action'"
        )
        with self._lock:
            recent, ignored, used = self._connection.execute(asked, ((now - _RESTS).timestamp(), mended(note))).fetchone()
        return bool(recent >= _MOST_RECENT or ignored - used >= _MOST_IGNORED)

    def shown_open(self, before: datetime) -> tuple[Showing, ...]:
        """Return what was shown before then and is not settled yet, oldest first. Cheap if everything is settled."""
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
        """Record whether a shown note was used. A showing that is settled already stays as it is. Showings by title alone do not
        change a note's tally.
        """
        with self._changing() as connection:
            settled = connection.execute(
                "UPDATE showing SET standing = ?, why = ?, settled = ? WHERE number = ? AND note = ? AND standing = 'open'",
                (found.outcome, mended(found.why[:_WHY_LENGTH]), at.timestamp(), showing.number, mended(showing.note)),
            ).rowcount
            if settled and showing.moment not in BY_TITLE:
                connection.execute(
                    "UPDATE tally SET used = used + ?, ignored = ignored + ? WHERE note = ?",
                    (found.outcome == "used", found.outcome == "ignored", mended(showing.note)),
                )
                self._count_again([showing.note])

    def tallies(self) -> Mapping[str, Tally]:
        """Return the tally of every note that was ever shown. The mapping is the same object until something changes."""
        with self._lock:
            (others_changes,) = self._connection.execute("PRAGMA data_version").fetchone()
            if self._tallies is None or self._tallies[0] != others_changes:
                rows = self._connection.execute("SELECT note, shown, used, ignored FROM counted")
                self._tallies = (others_changes, MappingProxyType(dict(map(tally_of, rows))))
            return self._tallies[1]

    def own_tallies(self) -> dict[str, Tally]:
        """Return the tallies of what was shown on this machine."""
        with self._lock:
            return dict(map(tally_of, self._connection.execute("SELECT note, shown, used, ignored FROM tally").fetchall()))

    def hear_tallies(self, machine: str, tallies: Mapping[str, Tally]) -> None:
        """Record what another machine of this person has counted, instead of what it had counted before."""
        rows = [(machine, mended(note), each.shown, each.used, each.ignored) for note, each in tallies.items()]
        with self._changing() as connection:
            connection.executemany("INSERT OR REPLACE INTO tally_elsewhere VALUES (?, ?, ?, ?, ?)", rows)
            self._tallies = None

    def _count_again(self, notes: Sequence[str]) -> None:
        """Reread the tallies of these notes only: there may be thousands of others."""
        if self._tallies is not None and notes:
            others_changes, known = self._tallies
            counted = "SELECT note, shown, used, ignored FROM counted WHERE note = ?"
            changed = dict(tally_of(row) for note in notes for row in self._connection.execute(counted, (mended(note),)))
            self._tallies = (others_changes, MappingProxyType({**known, **changed}))

    def take_over(self, session: str, origin: str) -> None:
        """Count what ``origin`` was shown as shown to ``session``, which continues it."""
        with self._changing() as connection:
            both = (mended(session), mended(origin))
            connection.execute("INSERT OR IGNORE INTO shown SELECT ?, note, at FROM shown WHERE session = ?", both)
            connection.execute("INSERT OR IGNORE INTO listed SELECT ?, note, score, at FROM listed WHERE session = ?", both)

    def forget_session(self, session: str) -> None:
        """Forget what the session was shown, since a compaction removed it from the agent's context."""
        with self._changing() as connection:
            self._reserved.pop(session, None)
            for table in ("shown", "listed"):
                connection.execute(f"DELETE FROM {table} WHERE session = ?", (mended(session),))  # noqa: S608  (ours)

    def forget_head(self, session: str, beginning: str) -> None:
        """Erase the heads of the session's prompts that begin like this; the occasions stay.

        If the beginning has 24 characters or more this applies to every session, since a session that continues another repeats its
        prompts.
        """
        begun = mended(beginning.rstrip("…"))
        with self._changing() as connection:
            connection.execute(
                "UPDATE occasion SET head = '' WHERE (session = ? OR ?) AND head <> '' AND SUBSTR(head, 1, LENGTH(?)) = ?",
                (mended(session), len(begun) >= _TELLING_HEAD, begun, begun),
            )

    def forget_words_of(self, sessions: Collection[str]) -> None:
        """Erase the reasons recorded for these sessions' showings, which quote words of the session."""
        with self._changing() as connection:
            connection.executemany(
                "UPDATE showing SET why = '' WHERE session = ? AND why <> ''", [(mended(session),) for session in sessions]
            )

    def purge(self) -> bool:
        """Erase deleted rows from the file, as `sqlite.rewrite` does."""
        with self._lock:
            return sqlite.rewrite(self._connection)

    def forget_notes(self, notes: Collection[str]) -> None:
        """Erase every mention of these notes, and the reasons recorded for their showings. Figures by week stay."""
        names = {mended(note) for note in notes}
        with self._changing() as connection:
            for table in ("shown", "listed", "tally", "tally_elsewhere"):
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
            mended(occasion.session),
            mended(occasion.project),
            mended(occasion.head[:_HEAD_LENGTH]),
            mended(occasion.reason),
        ),
    ).lastrowid
    for given in occasion.given:
        note = mended(given.note)
        connection.execute(
            "INSERT INTO showing(occasion, at, moment, session, note, score, standing, why) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                at,
                given.voice or occasion.moment,
                mended(occasion.session),
                note,
                given.score,
                given.standing,
                mended(given.why),
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
    """Migrate the prompts of the first version's table, and what they were given, as open showings."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'prompt'").fetchone():
        return
    rows = connection.execute("SELECT at, session, project, head, reason, given FROM prompt ORDER BY number").fetchall()
    for at, session, project, head, reason, given in rows:
        try:
            notes = tuple(ShownNote(note=str(note), score=float(score)) for note, score in json.loads(given))
        except (ValueError, TypeError, RecursionError):
            notes = ()
        _write(connection, Occasion(at=_moment(at), session=session, project=project, head=head, reason=reason, given=notes))
    connection.execute("DROP TABLE prompt")


_MIGRATIONS: sqlite.Migrations = {
    1: _SCHEMA_1.split(";"),
    2: (*_SCHEMA_2.split(";"), _bring_over),
    3: _SCHEMA_3.split(";"),
    4: _SCHEMA_4.split(";"),
}


def _opened(path: Path) -> sqlite3.Connection:
    # A prompt waits for this: if another process holds the file longer, give up the injection instead of waiting.
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
