"""Recall from the team's notes for a prompt: within the prompt's time limit, and only notes that stand out.

The query runs in a thread of its own, never two at a time, and is given up at the prompt's time limit. After several failures in a
row the team is not queried for a while. Results are treated as foreign text.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from kite_memory.model.hit import Hit
from kite_memory.model.note import Note, NoteKind, NoteStatus, Scope
from kite_memory.model.redacted import RedactedText
from kite_memory.recall.scoring import SPOKEN_KINDS
from kite_memory.recall.session_memory import TEAMS
from kite_memory.team.search import Team, TeamConnection, hits_of
from kite_memory.tools.note_view import unframed

if TYPE_CHECKING:
    from ssl import SSLContext

SCORE: Final = 0.60
MARGIN: Final = 0.22
"""Least score of a note to show, and its least distance from the eighth best.

Measured by `bench/team_recall.py` on labelled prompts. Both kinds of store score alike, as `scoring.fused`. The margin stays valid
as the team's notes grow, while the score of the best irrelevant note rises with their number.
"""
COMPARED: Final = 8
BYSTANDER: Final = 0.26
"""Used instead of the eighth best score if fewer notes were found, as in the gate."""
MOST: Final = 2

_IN_A_ROW: Final = 3
_AWAY: Final = 300.0
_LONGEST_BODY: Final = 10_000
_SCOPES: Final = frozenset({Scope.GLOBAL, Scope.SHARED, Scope.PROJECT})


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitBreaker:
    """Whether to query the team, given recent failures."""

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
    """Return the hits to show, best first; mostly none."""
    ranked = sorted(hits, key=lambda hit: -hit["score"])
    least = ranked[COMPARED - 1]["score"] if len(ranked) >= COMPARED else BYSTANDER
    return [hit for hit in ranked[:MOST] if hit["score"] >= score and hit["score"] - least >= margin and _may_be_said(hit)]


class TeamQuery:
    """A running query and its results so far."""

    def __init__(self, *, until: float, clock: Callable[[], float]) -> None:
        self.until = until
        self._clock = clock
        self._over = threading.Event()
        self._hits: tuple[Hit, ...] = ()

    def hits(self) -> tuple[Hit, ...]:
        """Return the results that arrived in time; waits no longer than the time limit."""
        self._over.wait(max(0.0, self.until - self._clock()))
        return self._hits

    def add(self, hit: Hit) -> None:
        self._hits = (*self._hits, hit)

    def end(self) -> None:
        self._over.set()


class TeamRecall:
    """Queries to the team's server. Thread-safe. Never raises, whatever the server does."""

    def __init__(self, team: Team, *, clock: Callable[[], float] = monotonic) -> None:
        self._team = team
        self._clock = clock
        self._lock = threading.Lock()
        self._asking = False
        self._breaker = CircuitBreaker()
        self._trusted: SSLContext | None = None

    def ask(self, query: RedactedText, project: str, *, until: float) -> TeamQuery | None:
        """Start a query. Return ``None`` if another one is running or the team is not queried at present."""
        with self._lock:
            if self._asking or not self._breaker.may_ask(self._clock()):
                return None
            self._asking = True
        running = TeamQuery(until=until, clock=self._clock)
        threading.Thread(target=self._ask, args=(running, query, project), name="ask-team", daemon=True).start()
        return running

    def _ask(self, running: TeamQuery, query: str, project: str) -> None:
        answered = False
        try:
            answered = self._query(running, query, project)
        finally:
            with self._lock:
                now = self._clock()
                self._asking = False
                self._breaker = self._breaker.after(answered=answered and now <= running.until, now=now)
            running.end()

    def _query(self, running: TeamQuery, query: str, project: str) -> bool:
        line = TeamConnection(self._team, seconds=max(0.001, running.until - self._clock()), trusted=self._authorities())
        try:
            found = line.call("search_notes", {"query": query, "project": project, "limit": COMPARED})
            if found is None or not isinstance(found.get("hits"), list):
                return False
            for hit in standing_out(hits_of(found)):
                whole = line.call("get_note", {"note": hit["id"]}) if self._clock() < running.until else None
                if whole is None:
                    return False
                if (note := note_of(hit, whole)) is not None:
                    running.add(Hit(note=note, score=hit["score"], why="the team's"))
            return True
        finally:
            line.close()

    def _authorities(self) -> "SSLContext | None":
        """Return the trusted certificates, loaded once, since loading takes a large part of the available time."""
        if self._trusted is None and self._team.address.startswith("https:"):
            import ssl  # imported late: needed only with a team

            self._trusted = ssl.create_default_context()
        return self._trusted


def _may_be_said(hit: Mapping[str, Any]) -> bool:
    """Return whether a hit may be shown, by the rule of `scoring.spoken` for local notes."""
    said = hit["kind"] in SPOKEN_KINDS and hit["scope"] in _SCOPES and hit["status"] == NoteStatus.ACCEPTED
    return said and bool(hit["id"])


def note_of(hit: Mapping[str, Any], whole: Mapping[str, Any]) -> Note | None:
    """Return the note with an id and path that no local note has; ``None`` if `get_note`'s answer cannot be parsed."""
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
