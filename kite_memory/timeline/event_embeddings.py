"""What is worth finding by its meaning: events that tell something, each with what stands around it.

A bundle is named by its event and read from the events whenever it is needed; only its vector is kept. Bundles are decisions with
what was said before them, failures with what made them go away, summaries to go on from, and prompts with what came of them: an
answer at least.
"""

import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import neg
from typing import TYPE_CHECKING, Any

from kite_memory.timeline.fixes import fix_of
from kite_memory.timeline.prompt_outcomes import errand
from kite_memory.timeline.schema import BUNDLED

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

Rows = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]

_BACKLOG = 5_000
"""Events of an earlier schema looked at in one commit: some milliseconds."""
PER_DAY = 2_000
"""Some eighty seconds of a processor's time."""
_TEXT, _SAID, _SUMMARY = 700, 350, 1_200
_TELLING = 40
"""A shorter text («3 failed», «interrupted») means what many others do."""
_QUIET = timedelta(minutes=10)
_OVER = timedelta(hours=3)
"""After so long without a line of its session, or in any case, what made a failure go away has been told, if it ever is."""
_FRESH = timedelta(days=2)
_RIPE = (
    "(e.at < ? OR s.committed_at < ? AND (e.type <> 'user_message' OR EXISTS ("
    " SELECT 1 FROM events AS n WHERE n.session = e.session AND n.ordinal > e.ordinal AND n.type = 'user_message')))"
)
_COMPARED = 60_000
"""The newest so many are compared with a question."""
_BLOCK = 4_096
NEAREST, NEAREST_OF_SOME = 20, 80
"""Where only some of them can be an answer, more are looked at."""
_FAINT = 0.4
"""What means less of the same is no answer."""
_SCALE = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What makes vectors of texts: rows of unit length, or of zeros. Those of one ``space`` can be compared with each other."""

    space: str
    of_texts: "Callable[[Sequence[str]], Vectors]"
    of_question: "Callable[[str], Vectors]"


def find_backlog(database: sqlite3.Connection) -> None:
    """A few of the bundles that an earlier schema left without a row, the newest first."""
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
    """Vectors of another space say nothing beside these: they are made anew."""
    found = database.execute("SELECT tag, version FROM space").fetchall()
    if [tag for tag, _ in found] != [space]:
        database.execute("UPDATE bundles SET vector = NULL, embedded = ''")
        database.execute("DELETE FROM space")
        database.execute("INSERT INTO space (tag, version) VALUES (?, ?)", (space, 1 + sum(version for _, version in found)))


def ripe(rows: Rows, now: datetime, limit: int, per_day: int) -> list[int]:
    """The newest events that wait for a vector and around which nothing more will happen.

    What is new is never kept waiting by what is old: of a backlog there are no more than ``per_day``. What comes of a session's
    last prompt may take long: a command may run for an hour without a word.
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
    """The event and what stands around it, in the order of what tells most. Empty where it tells nothing."""
    for session, ordinal, type, text, command in rows(
        "SELECT session, ordinal, type, SUBSTR(text, 1, ?), SUBSTR(command, 1, ?) FROM events WHERE seq = ?",
        (_SUMMARY, _SAID, event),
    ):
        if type == "user_message":
            told = errand(rows, event, talk=_TELLING)
            return told.text if told is not None else ""
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
    """Write down the vectors of bundles that still read as they did; those that tell nothing are none. Returns how many do."""
    import numpy as np  # the daemon has it anyway; a reader of events need not wait for it

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
class Read:
    """The newest vectors as they lay there at one ``state``: reading them takes longer than comparing them."""

    state: tuple[str, int, int]
    events: tuple[int, ...]
    codes: "npt.NDArray[np.int8]"


def read(rows: Rows, before: Read | None) -> Read | None:
    """``before`` itself where nothing has changed since. ``None`` where there is nothing to compare with."""
    found = rows("SELECT tag, version, (SELECT COUNT(*) FROM bundles WHERE embedded <> '') FROM space", ())
    if not found or not found[0][2]:
        return None
    if before is not None and before.state == found[0]:
        return before
    import numpy as np

    kept = rows("SELECT event, vector FROM bundles WHERE vector IS NOT NULL ORDER BY event DESC LIMIT ?", (_COMPARED,))
    codes = np.frombuffer(b"".join(vector for _, vector in kept), np.int8)
    return Read(state=found[0], events=tuple(event for event, _ in kept), codes=codes.reshape(len(kept), -1)) if kept else None


@dataclass(frozen=True, slots=True)
class Nearness:
    """How nearly bundles, by the rows of their events, mean the same as one text: cosines, in an order of falling rows."""

    events: tuple[int, ...]
    cosines: "Vectors"

    def best(self, most: int, least: float = _FAINT) -> dict[int, float]:
        import numpy as np

        places = np.argsort(-self.cosines, kind="stable")[:most]
        return {self.events[place]: float(self.cosines[place]) for place in places.tolist() if self.cosines[place] >= least}

    def of(self, events: Iterable[int]) -> dict[int, float]:
        """Of those that have a vector."""
        found: dict[int, float] = {}
        for event in events:
            place = bisect_left(self.events, -event, key=neg)
            if place < len(self.events) and self.events[place] == event:
                found[event] = float(self.cosines[place])
        return found


def near(vectors: Read, meaning: Meaning, text: str) -> Nearness | None:
    """``None`` where there is nothing to compare, or vectors of another space only."""
    if not text.strip() or vectors.state[0] != meaning.space:
        return None
    import numpy as np

    question, codes = meaning.of_question(text), vectors.codes
    blocks = [codes[at : at + _BLOCK].astype(np.float32) @ question for at in range(0, len(codes), _BLOCK)]
    return Nearness(events=vectors.events, cosines=np.asarray(np.concatenate(blocks) / _SCALE, np.float32))


def _day(now: datetime) -> str:
    return now.date().isoformat()
