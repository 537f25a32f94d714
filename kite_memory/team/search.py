"""The team's server asked beside a person's own memory, for a search and for a prompt, each within its time limit.

A query runs in a thread of its own, for a prompt never two at a time.
"""

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from kite_memory.errors import UsageError
from kite_memory.model.event import RedactedText
from kite_memory.model.hit import Hit
from kite_memory.model.note import SPOKEN_KINDS, Note, NoteKind, NoteStatus, Scope
from kite_memory.recall.session_memory import TEAMS
from kite_memory.system import LOOPBACK
from kite_memory.text.quoting import plain_line
from kite_memory.tools.note_view import unframed

if TYPE_CHECKING:
    from ssl import SSLContext

_LONGEST: Final = 1 << 20
_MOST: Final = 50
_TEXTS: Final = {
    "id": 80,
    "path": 400,
    "kind": 40,
    "title": 200,
    "project": 200,
    "scope": 40,
    "created": 40,
    "status": 40,
    "why": 300,
    "snippet": 300,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """Access to a team's server: the ``address`` of a ``kmem serve`` with its path, and a ``token`` for it."""

    address: str
    token: str = field(repr=False)

    def __post_init__(self) -> None:
        """Raise `UsageError` for an invalid address or token, or one that would send the token unencrypted to another machine."""
        not_one = UsageError("invalid team address", hint="set `bridge` in [team], as https://memory.example.org/mcp")
        try:
            parts = urlsplit(self.address)
            host = parts.hostname or ""
            is_one = parts.scheme in ("http", "https") and host and host.isprintable() and " " not in host and parts.port != 0
        except ValueError:  # an unclosed bracket, or an invalid port
            raise not_one from None
        if not is_one:
            raise not_one
        if parts.scheme == "http" and host not in LOOPBACK:
            raise UsageError("the team's address does not begin with https", hint="a token would be sent in the open")
        if not self.token.isascii() or not self.token.isprintable():
            raise UsageError("invalid team token", hint="`kmem keys set team-token` replaces it")


class TeamConnection:
    """One connection to the team's server for the calls of one query. ``seconds`` limits each step.

    TLS is verified, by the system's certificate authorities unless ``trusted`` is given. Redirects are not followed.
    """

    def __init__(self, team: Team, *, seconds: float, trusted: "SSLContext | None" = None) -> None:
        import http.client  # imported late: needed only with a team

        parts = urlsplit(team.address)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)  # else http.client may take it from an IPv6 address
        self._failures = (OSError, http.client.HTTPException, ValueError)
        self._path = parts.path or "/mcp"
        self._token = team.token
        self._connection = (
            http.client.HTTPSConnection(host, port, timeout=seconds, context=trusted)
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=seconds)
        )

    def close(self) -> None:
        self._connection.close()

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Call a tool and return its result; ``None`` on any failure. Does not raise."""
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        try:
            self._connection.request(
                "POST",
                self._path,
                body=json.dumps(request).encode(),
                headers={
                    "Authorization": f"Bearer {self._token}",
                    "Content-Type": "application/json",
                    "Accept": "application/json, text/event-stream",
                },
            )
            answer = self._connection.getresponse()
            response = json.loads(answer.read(_LONGEST)) if answer.status == 200 else None
        except (*self._failures, RecursionError):
            return None  # counts as no answer
        match response:
            case {"result": {"structuredContent": dict(content)}}:
                return content
            case _:
                return None


class Asking:
    """A running query."""

    def __init__(
        self, team: Team, query: RedactedText, *, kinds: Sequence[str] = (), project: str = "", limit: int = 10, seconds: float
    ) -> None:
        self._until = time.monotonic() + seconds
        self._answer: dict[str, Any] | None = None
        arguments: dict[str, Any] = {"query": query[:4_000], "limit": max(1, min(limit, _MOST))}
        if kinds:
            arguments["kinds"] = list(kinds)
        if project:
            arguments["project"] = project
        thread = threading.Thread(target=self._ask, args=(team, arguments, seconds), name="ask-team", daemon=True)
        thread.start()
        self._thread = thread

    def hits(self) -> list[dict[str, Any]]:
        """Return hits as `kmem search --json` shows them, each with ``"team": true``; empty if no answer came in time."""
        self._thread.join(max(0.0, self._until - time.monotonic()))
        return [] if self._thread.is_alive() else hits_of(self._answer)

    def _ask(self, team: Team, arguments: dict[str, Any], seconds: float) -> None:
        line = TeamConnection(team, seconds=seconds)
        try:
            self._answer = line.call("search_notes", arguments)
        finally:
            line.close()


def together(ours: Sequence[dict[str, Any]], theirs: Sequence[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Return the best of both lists; a hit in both is returned as the local one."""
    known = {hit["id"] for hit in ours}
    both = [*ours, *(hit for hit in theirs if hit["id"] not in known)]
    return sorted(both, key=lambda hit: -hit["score"])[:limit]


def ranked(hits: Sequence[dict[str, Any]], events: Sequence[dict[str, Any]]) -> None:
    """Number hits and events anew. Those of this machine keep their order; a hit of the team, which has no rank yet, comes before
    the next hit that has one.
    """
    places: list[tuple[float, int, dict[str, Any]]] = [(each["rank"], 1, each) for each in events]
    ahead = math.inf
    for hit in reversed(hits):
        ahead = hit.get("rank", ahead)
        places.append((ahead, int("rank" in hit), hit))
    places.sort(key=lambda place: (*place[:2], -place[2].get("score", 0.0)))
    for rank, (_, _, each) in enumerate(places, 1):
        each["rank"] = rank


def is_since(hit: Mapping[str, Any], since: str) -> bool:
    """Return whether a hit is not older than ``since``. One without a date never matches."""
    from kite_memory.text.display import age

    try:
        start, created = age(since, datetime.now(UTC)), datetime.fromisoformat(hit["created"])
    except (KeyError, TypeError, ValueError):
        return False
    return start is None or (created if created.tzinfo else created.replace(tzinfo=UTC)) >= start


def note_at(team: Team, id: str, *, seconds: float) -> str:
    """Return the text of a team's note; empty if it has none of this id, or does not answer."""
    line = TeamConnection(team, seconds=seconds)
    try:
        whole = line.call("get_note", {"note": id})
    finally:
        line.close()
    text = whole.get("text") if whole is not None and whole.get("id") == id else None
    return unframed(text).strip() if isinstance(text, str) else ""


def hits_of(answer: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the hits of a `search_notes` answer that can be parsed, each text limited in length."""
    listed = answer.get("hits") if answer is not None else None
    return list(_hits(listed)) if isinstance(listed, list) else []


def _hits(listed: list[Any]) -> Iterator[dict[str, Any]]:
    for hit in listed[:_MOST]:
        if isinstance(hit, dict) and isinstance(score := hit.get("score"), int | float) and 0 <= score <= 1:
            yield {"score": float(score), "team": True, "tier": "note", "became": []} | {
                name: plain_line(value, longest) if isinstance(value := hit.get(name), str) else ""
                for name, longest in _TEXTS.items()
            }


SCORE: Final = 0.60
MARGIN: Final = 0.22
"""Least score of a note to show, and its least distance from the eighth best.

Measured by `bench/bridge/team_recall.py` on labelled prompts. Both kinds of store score alike, as `recall.search.fused`. The margin
stays valid as the team's notes grow, while the score of the best irrelevant note rises with their number.
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
        try:
            threading.Thread(target=self._ask, args=(running, query, project), name="ask-team", daemon=True).start()
        except RuntimeError:  # the system allows no more threads
            with self._lock:
                self._asking = False
            return None
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
    """Return whether a hit may be shown, by the rule of `recall.search.spoken` for local notes."""
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
