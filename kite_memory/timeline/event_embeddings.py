"""Bundles: events worth finding by their embedding, each with the text around it.

A bundle is named by its event and read from the events on demand; only its vector is stored. Bundles are decisions with the
messages before them, failures with their fixes, resume points, and prompts with what came of them, at least an answer.
"""

import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import neg
from typing import TYPE_CHECKING, Any

from kite_memory.timeline.fixes import fix_of
from kite_memory.timeline.prompt_outcomes import prompt_outcome
from kite_memory.timeline.schema import BUNDLED

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

Rows = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]

_BACKLOG = 5_000
"""Events of an earlier schema handled in one commit, which takes some milliseconds."""
PER_DAY = 2_000
"""Bundles of the backlog embedded in a day: some eighty seconds of processor time."""
_TEXT, _SAID, _SUMMARY = 700, 350, 1_200
_TELLING = 40
"""A shorter text («3 failed», «interrupted») is too much like many others."""
_QUIET = timedelta(minutes=10)
_OVER = timedelta(hours=3)
"""After this long without a line in the session, or in any case, a failure's fix has been recorded if it ever is."""
_FRESH = timedelta(days=2)
_RIPE = (
    "(e.at < ? OR s.committed_at < ? AND (e.type <> 'user_message' OR EXISTS ("
    " SELECT 1 FROM events AS n WHERE n.session = e.session AND n.ordinal > e.ordinal AND n.type = 'user_message')))"
)
_COMPARED = 60_000
"""A query is compared with this many of the newest vectors."""
_BLOCK = 4_096
NEAREST, NEAREST_OF_SOME = 20, 80
"""More are looked at where a filter rules out some of them."""
_FAINT = 0.4
"""A lower cosine is no match."""
_SCALE = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """An embedder: its functions return rows of unit length or zeros. Vectors of one ``space`` can be compared with each other."""

    space: str
    of_texts: "Callable[[Sequence[str]], Vectors]"
    of_question: "Callable[[str], Vectors]"


def find_backlog(database: sqlite3.Connection) -> None:
    """Add rows for some of the bundles of an earlier schema, newest first."""
    row = database.execute("SELECT below FROM unbundled").fetchone()
    if row is None:
        return
    down_to = max(0, row[0] - _BACKLOG)
    database.execute(f"INSERT OR IGNORE INTO bundles (event) {BUNDLED} AND seq >= ? AND seq < ?", (down_to, row[0]))
    if down_to:
        database.execute("UPDATE unbundled SET below = ?", (down_to,))
    else:
        database.execute("DELETE FROM unbundled")


def enter(database: sqlite3.Connection, space: str) -> None:
    """Set the current space. Vectors of another space are dropped, to be computed again."""
    found = database.execute("SELECT tag, version FROM space").fetchall()
    if [tag for tag, _ in found] != [space]:
        database.execute("UPDATE bundles SET vector = NULL, embedded = ''")
        database.execute("DELETE FROM space")
        database.execute("INSERT INTO space (tag, version) VALUES (?, ?)", (space, 1 + sum(version for _, version in found)))


def ripe(rows: Rows, now: datetime, limit: int, per_day: int) -> list[int]:
    """Return the newest events that wait for a vector and whose surroundings are complete.

    Recent prompts come before the backlog, of which at most ``per_day`` are returned in a day. The result of a session's last
    prompt may take long: a command may run for an hour without output.
    """
    long_ago, quiet = (now - _OVER).isoformat(timespec="milliseconds"), (now - _QUIET).timestamp()
    fresh = rows(
        "SELECT b.event FROM sessions AS s"  # noqa: S608 - ours
        " CROSS JOIN events AS e ON e.session = s.key AND e.ordinal >= 0 AND e.type = 'user_message'"
        " CROSS JOIN bundles AS b ON b.event = e.seq WHERE s.last_at > ? AND b.vector IS NULL"
        f" AND {_RIPE} ORDER BY e.at DESC LIMIT ?",
        ((now - _FRESH).isoformat(timespec="milliseconds"), long_ago, quiet, limit),
    )
    if fresh:
        return [event for (event,) in fresh]
    ((today,),) = rows("SELECT COUNT(*) FROM bundles WHERE embedded = ?", (_day(now),))
    found = rows(
        "SELECT b.event FROM bundles AS b JOIN events AS e ON e.seq = b.event JOIN sessions AS s ON s.key = e.session"  # noqa: S608
        f" WHERE b.vector IS NULL AND {_RIPE} ORDER BY b.event DESC LIMIT ?",
        (long_ago, quiet, max(0, min(limit, per_day - today))),
    )
    return [event for (event,) in found]


def text_of(rows: Rows, event: int) -> str:
    """Return the text of the event and its surroundings, most important first; empty if it is not worth embedding."""
    for session, ordinal, type, text, command in rows(
        "SELECT session, ordinal, type, SUBSTR(text, 1, ?), SUBSTR(command, 1, ?) FROM events WHERE seq = ?",
        (_SUMMARY, _SAID, event),
    ):
        if type == "user_message":
            asked = prompt_outcome(rows, event, talk=_TELLING)
            return asked.text if asked is not None else ""
        if len(text) < _TELLING:
            return ""
        match type:
            case "decision":
                before = rows(
                    "SELECT SUBSTR(text, 1, ?) FROM events WHERE session = ? AND ordinal < ?"
                    " AND type IN ('user_message', 'assistant_message') ORDER BY ordinal DESC, seq DESC LIMIT 2",
                    (_SAID, session, ordinal),
                )
                parts = [text[:_TEXT], *(said for (said,) in before)]
            case "error" | "test_result":
                parts = [text[:_TEXT], command]
                if fix := fix_of(rows, event):
                    parts += [
                        f"It went away with: {fix.worked[:_SAID]}",
                        *(step[:_SAID] for step in fix.steps),
                        " ".join(fix.files),
                    ]
            case _:
                parts = [text]
        return "\n".join(part for part in parts if part)
    return ""


def keep(database: sqlite3.Connection, texts: dict[int, str], vectors: "Vectors", now: datetime) -> int:
    """Store the vectors of bundles whose text is unchanged, drop bundles with an empty text, and return how many were handled."""
    import numpy as np  # imported late: the daemon has loaded it anyway, and readers of events need not wait for it

    def rows(query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return database.execute(query, values).fetchall()

    packed = np.rint(vectors * _SCALE).astype(np.int8)
    same = [(place, event) for place, (event, text) in enumerate(texts.items()) if text_of(rows, event) == text]
    kept = [(packed[place].tobytes(), _day(now), event) for place, event in same if texts[event]]
    database.executemany("UPDATE bundles SET vector = ?, embedded = ? WHERE event = ?", kept)
    database.executemany("DELETE FROM bundles WHERE event = ?", [(event,) for _, event in same if not texts[event]])
    database.execute("UPDATE space SET version = version + 1")
    return len(same)


@dataclass(frozen=True, slots=True)
class VectorSnapshot:
    """The newest vectors as read at one ``state``. Cached, since reading them takes longer than comparing them."""

    state: tuple[str, int, int]
    events: tuple[int, ...]
    codes: "npt.NDArray[np.int8]"


def read(rows: Rows, before: VectorSnapshot | None) -> VectorSnapshot | None:
    """Return the newest vectors, or ``before`` itself if nothing has changed; ``None`` if there are no vectors."""
    found = rows("SELECT tag, version, (SELECT COUNT(*) FROM bundles WHERE embedded <> '') FROM space", ())
    if not found or not found[0][2]:
        return None
    if before is not None and before.state == found[0]:
        return before
    import numpy as np

    kept = rows("SELECT event, vector FROM bundles WHERE vector IS NOT NULL ORDER BY event DESC LIMIT ?", (_COMPARED,))
    codes = np.frombuffer(b"".join(vector for _, vector in kept), np.int8)
    return (
        VectorSnapshot(state=found[0], events=tuple(event for event, _ in kept), codes=codes.reshape(len(kept), -1))
        if kept
        else None
    )


@dataclass(frozen=True, slots=True)
class Nearness:
    """Cosines between one text and bundles. ``events`` are row numbers, in descending order."""

    events: tuple[int, ...]
    cosines: "Vectors"

    def best(self, most: int, least: float = _FAINT) -> dict[int, float]:
        import numpy as np

        places = np.argsort(-self.cosines, kind="stable")[:most]
        return {self.events[place]: float(self.cosines[place]) for place in places.tolist() if self.cosines[place] >= least}

    def of(self, events: Iterable[int]) -> dict[int, float]:
        """Return the cosines of those of ``events`` that have a vector."""
        found: dict[int, float] = {}
        for event in events:
            place = bisect_left(self.events, -event, key=neg)
            if place < len(self.events) and self.events[place] == event:
                found[event] = float(self.cosines[place])
        return found


def near(vectors: VectorSnapshot, meaning: Meaning, text: str) -> Nearness | None:
    """Return the cosines between ``text`` and all vectors; ``None`` if the text is blank or the vectors belong to another space."""
    if not text.strip() or vectors.state[0] != meaning.space:
        return None
    import numpy as np

    question, codes = meaning.of_question(text), vectors.codes
    blocks = [codes[at : at + _BLOCK].astype(np.float32) @ question for at in range(0, len(codes), _BLOCK)]
    return Nearness(events=vectors.events, cosines=np.asarray(np.concatenate(blocks) / _SCALE, np.float32))


def _day(now: datetime) -> str:
    return now.date().isoformat()
