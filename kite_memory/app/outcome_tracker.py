"""What came of the notes that were shown: found out once the turn is over, from the events that the timeline has by then."""

import logging
import sqlite3
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from kite_memory.model.event import Event, EventType, opens_turn
from kite_memory.recall.recall import Recall
from kite_memory.recall.session_memory import Showing
from kite_memory.recall.uptake import Uptake, uptake
from kite_memory.timeline.store import SessionState, Timeline

log = logging.getLogger("kite_memory.settling")

QUIET = 600.0
"""Seconds without a new event that end a turn nobody ended."""

_TURNS = 2
_EVENTS = 4_000
_UNSEEN = 86_400.0
"""Seconds after which nobody waits for a session's first event any longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """``ends`` are the places in ``after`` of the prompts that ended a turn in which the agent had done something."""

    before: Sequence[Event]
    after: Sequence[Event]
    ends: tuple[int, ...]


def turns(events: Sequence[Event], shown: datetime) -> Turns:
    """Prompts before the agent's first act end nothing: one of them may be the very prompt that the note was shown with."""
    split = next((place + 1 for place in range(len(events) - 1, -1, -1) if events[place].at <= shown), 0)
    after = events[split:]
    ends: list[int] = []
    acted = False
    for place, event in enumerate(after):
        if opens_turn(event):
            if acted:
                ends.append(place)
            acted = False
        elif event.role == "assistant":
            acted = True
    return Turns(before=events[:split], after=after, ends=tuple(ends))


class Settling:
    """For one thread at a time. Costs one look at an index while nothing is open."""

    def __init__(
        self, *, timeline: Timeline, recall: Recall, providers: Callable[[], Sequence[str]], clock: Callable[[], float]
    ) -> None:
        self._timeline = timeline
        self._recall = recall
        self._memory = recall.memory
        self._providers = providers
        self._clock = clock
        self._seen: dict[str, int] = {}
        self._provider_of: dict[str, str] = {}

    def settle(self) -> None:
        """To be called when new events have been committed, and now and then besides, for turns that nobody ends."""
        try:
            now = datetime.fromtimestamp(self._clock(), UTC)
            of_sessions = sorted(self._memory.shown_open(now), key=lambda showing: showing.session)
            seen = self._seen
            self._seen = {}
            states = self._states({showing.session for showing in of_sessions if showing.session})
            for session, showings in groupby(of_sessions, key=lambda showing: showing.session):
                self._settle_session(session, list(showings), now, seen.get(session), states.get(session))
        except sqlite3.Error as error:
            self._seen = {}
            log.warning("what came of the notes shown cannot be found out: %s", error)

    def _settle_session(
        self, session: str, showings: Sequence[Showing], now: datetime, seen: int | None, state: SessionState | None
    ) -> None:
        if state is None:
            for showing in showings:
                if not session or (now - showing.at).total_seconds() >= _UNSEEN:
                    self._memory.settle(showing, Uptake(outcome="unknown", why="nothing of its session could be read"), now)
            return
        self._seen[session] = state.last_ordinal
        quiet = {showing for showing in showings if now.timestamp() - max(state.quiet_since, showing.at.timestamp()) >= QUIET}
        if not (seen is None or quiet or self._goes_on(state, seen)):
            return
        events = self._timeline.last_events(state.session.provider, session, _EVENTS)
        cut = len(events) == _EVENTS
        for showing in showings:
            found = self._found(showing, events, quiet=showing in quiet, cut=cut)
            if found is not None:
                self._memory.settle(showing, found, now)

    def _states(self, sessions: Collection[str]) -> dict[str, SessionState]:
        """Of each session that is known, from the first provider that has one of this id."""
        providers = self._providers()
        self._provider_of = {session: self._provider_of[session] for session in sessions if session in self._provider_of}
        asked = [
            (provider, session)
            for session in sessions
            for provider in ((self._provider_of[session],) if session in self._provider_of else providers)
        ]
        found: dict[str, SessionState] = {}
        for state in self._timeline.states_of(asked) if asked else ():
            found.setdefault(state.session.id, state)
        self._provider_of |= {session: state.session.provider for session, state in found.items()}
        return found

    def _goes_on(self, state: SessionState, after: int) -> bool:
        """Whether somebody has prompted since."""
        new = self._timeline.events(state.session.provider, state.session.id, after=after)
        return any(event.type is EventType.USER_MESSAGE for event in new)

    def _found(self, showing: Showing, events: Sequence[Event], *, quiet: bool, cut: bool) -> Uptake | None:
        """``None`` while it cannot be said yet."""
        told = turns(events, showing.at)
        over = quiet or len(told.ends) >= _TURNS
        if not over and not told.ends:
            return None
        if cut and not told.before:
            return Uptake(outcome="unknown", why="too much has happened since")
        note = self._recall.note(showing.note)
        if note is None:
            why = "the note is the team's" if showing.moment == "team" else "the note is gone"
            return Uptake(outcome="unknown", why=why)
        last = told.ends[_TURNS - 1] if len(told.ends) >= _TURNS else len(told.after)
        found = uptake(note, before=told.before, after=told.after[:last])
        return found if over or found.outcome == "used" else None
