"""What a prompt is told of the team's notes: within its moment or not at all, and only what stands out.

The question goes out on a thread of its own, never two at a time, and is given up with the moment that its prompt has. A team
that has not answered several times in a row is left in peace for a while. What comes is taken for somebody else's text.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from kite_memory.model.hit import Hit
from kite_memory.model.note import Note, NoteKind, NoteStatus, Scope
from kite_memory.recall.scoring import SPOKEN_KINDS
from kite_memory.recall.session_memory import TEAMS
from kite_memory.team.search import Line, Team, hits_of
from kite_memory.tools.note_view import unframed

if TYPE_CHECKING:
    from ssl import SSLContext

SCORE: Final = 0.60
MARGIN: Final = 0.22
"""From which score on a note is worth saying, and by how much it must stand out from the eighth best.

Measured by `bench/team_recall.py` on labelled prompts. Both kinds of store score alike, as `scoring.fused`; the margin is what
does not grow with the team's notes, among which the best of the useless ones scores higher the more there are.
"""
COMPARED: Final = 8
BYSTANDER: Final = 0.26
"""What stands in for the eighth best where fewer were found, as in the gate."""
MOST: Final = 2

_IN_A_ROW: Final = 3
_AWAY: Final = 300.0
_LONGEST_BODY: Final = 10_000
_SCOPES: Final = frozenset({Scope.GLOBAL, Scope.SHARED, Scope.PROJECT})


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitBreaker:
    """Whether the team is worth asking, by how it went lately."""

    failures: int = 0
    away_until: float = 0.0

    def may_ask(self, now: float) -> bool:
        return now >= self.away_until

    def after(self, *, answered: bool, now: float) -> "CircuitBreaker":
        if answered:
            return CircuitBreaker()
        failures = self.failures + 1
        return CircuitBreaker(failures=failures, away_until=now + _AWAY if failures >= _IN_A_ROW else 0.0)


def standing_out(hits: Sequence[Mapping[str, Any]], *, score: float = SCORE, margin: float = MARGIN) -> list[Mapping[str, Any]]:
    """Of a search's hits those to be said, best first; mostly none."""
    ranked = sorted(hits, key=lambda hit: -hit["score"])
    least = ranked[COMPARED - 1]["score"] if len(ranked) >= COMPARED else BYSTANDER
    return [hit for hit in ranked[:MOST] if hit["score"] >= score and hit["score"] - least >= margin and _may_be_said(hit)]


class Telling:
    """A question on its way, and what has come of it so far."""

    def __init__(self, *, until: float, clock: Callable[[], float]) -> None:
        self.until = until
        self._clock = clock
        self._over = threading.Event()
        self._hits: tuple[Hit, ...] = ()

    def hits(self) -> tuple[Hit, ...]:
        """What has come in time; waits no longer than that."""
        self._over.wait(max(0.0, self.until - self._clock()))
        return self._hits

    def add(self, hit: Hit) -> None:
        self._hits = (*self._hits, hit)

    def end(self) -> None:
        self._over.set()


class TeamRecall:
    """Thread-safe. Nothing is raised, whatever the team's server does."""

    def __init__(self, team: Team, *, clock: Callable[[], float] = monotonic) -> None:
        self._team = team
        self._clock = clock
        self._lock = threading.Lock()
        self._asking = False
        self._reliance = CircuitBreaker()
        self._trusted: SSLContext | None = None

    def ask(self, query: str, project: str, *, until: float) -> Telling | None:
        """``None`` where nobody is asked now: another question is still on its way, or the team is left in peace."""
        with self._lock:
            if self._asking or not self._reliance.may_ask(self._clock()):
                return None
            self._asking = True
        telling = Telling(until=until, clock=self._clock)
        threading.Thread(target=self._ask, args=(telling, query, project), name="ask-team", daemon=True).start()
        return telling

    def _ask(self, telling: Telling, query: str, project: str) -> None:
        answered = False
        try:
            answered = self._told(telling, query, project)
        finally:
            with self._lock:
                now = self._clock()
                self._asking = False
                self._reliance = self._reliance.after(answered=answered and now <= telling.until, now=now)
            telling.end()

    def _told(self, telling: Telling, query: str, project: str) -> bool:
        line = Line(self._team, seconds=max(0.001, telling.until - self._clock()), trusted=self._authorities())
        try:
            found = line.call("search_notes", {"query": query, "project": project, "limit": COMPARED})
            if found is None or not isinstance(found.get("hits"), list):
                return False
            for hit in standing_out(hits_of(found)):
                whole = line.call("get_note", {"note": hit["id"]}) if self._clock() < telling.until else None
                if whole is None:
                    return False
                if (note := note_of(hit, whole)) is not None:
                    telling.add(Hit(note=note, score=hit["score"], why="the team's"))
            return True
        finally:
            line.close()

    def _authorities(self) -> "SSLContext | None":
        """Read once: reading them takes a good part of the time that there is."""
        if self._trusted is None and self._team.address.startswith("https:"):
            import ssl  # only who belongs to a team pays for it

            self._trusted = ssl.create_default_context()
        return self._trusted


def _may_be_said(hit: Mapping[str, Any]) -> bool:
    """As `scoring.spoken` has it for one's own."""
    said = hit["kind"] in SPOKEN_KINDS and hit["scope"] in _SCOPES and hit["status"] == NoteStatus.ACCEPTED
    return said and bool(hit["id"])


def note_of(hit: Mapping[str, Any], whole: Mapping[str, Any]) -> Note | None:
    """Under a name that none of one's own notes has. ``None`` for what does not read as `get_note` tells it."""
    text = whole.get("text")
    if whole.get("id") != hit["id"] or not isinstance(text, str) or not (body := unframed(text)[:_LONGEST_BODY].strip()):
        return None
    try:
        created = datetime.fromisoformat(hit["created"]).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return Note(
        id=f"{TEAMS}{hit['id']}",
        path=f"{TEAMS}{hit['path'] or hit['id']}",
        kind=NoteKind(hit["kind"]),
        title=hit["title"],
        body=body,
        created=created,
        updated=created,
        scope=Scope(hit["scope"]),
        project=hit["project"],
    )
