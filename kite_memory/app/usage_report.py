"""Reports as JSON values: whether recall helps, by how the notes that were shown were used, and the operation `status`."""

import logging
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from kite_memory.app.note_view import NoteView, became_of, note_json
from kite_memory.app.survey import TranscriptSurvey, sources_json
from kite_memory.distill.extractor import Misconfigured
from kite_memory.errors import VaultMissing
from kite_memory.model.event import Event, EventType, EvidenceReference, opens_turn
from kite_memory.model.note import NoteKind, NoteStatus
from kite_memory.recall.session_memory import TEAMS, Occasion, SessionMemory, Showing, ShownNote
from kite_memory.recall.uptake import BY_TITLE, Count, Tally, Uptake, Week, uptake
from kite_memory.text.quoting import plain, plain_line
from kite_memory.timeline.history_queries import became
from kite_memory.timeline.rows import ReadFiles, SessionState
from kite_memory.timeline.store import Timeline
from kite_memory.vault import Vault
from kite_memory.vault.known import KnownNotes
from kite_memory.vault.ledger import KnownFile

if TYPE_CHECKING:
    from kite_memory.distill.outbox import Outbox
    from kite_memory.distill.scheduler import Idle
    from kite_memory.recall.index import Index
    from kite_memory.recall.recall import Recall

log = logging.getLogger("kite_memory.app.usage_report")

QUIET = 600.0
"""Seconds without a new event after which an open turn counts as ended."""

_TURNS = 2
_EVENTS = 4_000
_UNSEEN = 86_400.0
"""Seconds after which a session without any event is no longer waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Events before and after a showing. ``ends`` are the places in ``after`` of prompts that ended a turn with actions."""

    before: Sequence[Event]
    after: Sequence[Event]
    ends: tuple[int, ...]


def turns(events: Sequence[Event], shown: datetime) -> Turns:
    """Split events at the time of a showing.

    Prompts before the agent's first action end no turn: one of them may be the prompt that the note was shown with.
    """
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


class OutcomeTracker:
    """For one thread at a time. Costs one index lookup while no showing is open."""

    def __init__(
        self, *, timeline: Timeline, recall: "Recall", providers: Callable[[], Sequence[str]], clock: Callable[[], float]
    ) -> None:
        self._timeline = timeline
        self._recall = recall
        self._memory = recall.memory
        self._providers = providers
        self._clock = clock
        self._seen: dict[str, int] = {}
        self._provider_of: dict[str, str] = {}

    def settle(self) -> None:
        """Settle what can be settled. Call it when events were committed, and periodically for turns without an end."""
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
        events = self._timeline.events.last(state.session.provider, session, _EVENTS)
        cut = len(events) == _EVENTS
        for showing in showings:
            found = self._found(showing, events, quiet=showing in quiet, cut=cut)
            if found is not None:
                self._memory.settle(showing, found, now)

    def _states(self, sessions: Collection[str]) -> dict[str, SessionState]:
        """Return the state of each known session, from the first provider that has one of this id."""
        providers = self._providers()
        self._provider_of = {session: self._provider_of[session] for session in sessions if session in self._provider_of}
        asked = [
            (provider, session)
            for session in sessions
            for provider in ((self._provider_of[session],) if session in self._provider_of else providers)
        ]
        found: dict[str, SessionState] = {}
        for state in self._timeline.sessions.states_of(asked) if asked else ():
            found.setdefault(state.session.id, state)
        self._provider_of |= {session: state.session.provider for session, state in found.items()}
        return found

    def _goes_on(self, state: SessionState, after: int) -> bool:
        """Return whether the user has sent a prompt since."""
        new = self._timeline.events.of_session(state.session.provider, state.session.id, after=after)
        return any(event.type is EventType.USER_MESSAGE for event in new)

    def _found(self, showing: Showing, events: Sequence[Event], *, quiet: bool, cut: bool) -> Uptake | None:
        """Return how a note was used, or ``None`` while that is still open."""
        turn_counts = turns(events, showing.at)
        over = quiet or len(turn_counts.ends) >= _TURNS
        if not over and not turn_counts.ends:
            return None
        if cut and not turn_counts.before:
            return Uptake(outcome="unknown", why="too much has happened since")
        if showing.moment in BY_TITLE:
            return Uptake(outcome="ignored", why="it was not opened") if over else None
        note = self._recall.index.called(showing.note)
        if note is None:
            why = "the note is the team's" if showing.moment == "team" else "the note is gone"
            return Uptake(outcome="unknown", why=why)
        last = turn_counts.ends[_TURNS - 1] if len(turn_counts.ends) >= _TURNS else len(turn_counts.after)
        found = uptake(note, before=turn_counts.before, after=turn_counts.after[:last])
        return found if over or found.outcome == "used" else None


Json = dict[str, Any]

WEEKS = 4

_MOST_IGNORED = 3
_ENOUGH_SHOWN = 10
_ENOUGH_KNOWN = 5
_FLOOR = 0.10
"""Share of notes found "used" although no agent saw them: `bench.recall.uptake` measures it."""
_SELDOM = 2 * _FLOOR


CalledNotes = Callable[[Iterable[str]], Mapping[str, KnownFile]]
"""Returns what is known of the notes with these ids or paths."""


def helping(memory: SessionMemory, called: CalledNotes, now: datetime, weeks: int = WEEKS) -> Json:
    """Return the last ``weeks``, latest first, their sum, and the notes ignored most often in them.

    ``problem`` is the reason if the record of shown notes cannot be read.
    """
    problem = ""
    found: tuple[Week, ...] = ()
    ignored: tuple[tuple[str, Tally], ...] = ()
    try:
        found = memory.report.weekly(weeks, now)
        monday = found[-1].monday
        ignored = memory.report.most_ignored(datetime(monday.year, monday.month, monday.day, tzinfo=UTC), _MOST_IGNORED)
    except sqlite3.Error as error:
        problem = f"the memory of what was shown cannot be used: {error}"
    total = sum((week.count for week in found), start=Count())
    named = called(note for note, _ in ignored) if ignored else {}
    return {
        "verdict": _verdict(total),
        "floor": _FLOOR,
        "shown": total.shown,
        **_counted(total),
        "weeks": [_week(week) for week in found],
        "most_ignored": [
            {**_named(note, named.get(note)), "shown": tally.shown, "used": tally.used, "ignored": tally.ignored}
            for note, tally in ignored
        ],
        "problem": problem,
    }


def occasion_json(occasion: Occasion, known: Mapping[str, KnownFile]) -> Json:
    return {
        "at": occasion.at.isoformat(),
        "moment": occasion.moment,
        "session": occasion.session,
        "project": occasion.project,
        "prompt": occasion.head,
        "reason": occasion.reason,
        "notes": [_given(given, occasion, known.get(given.note)) for given in occasion.given],
    }


_EVENT_TEXT = 2_000
_MOST_PROMPTS = 1_000
_MOST_WEEKS = 53


class ShownNotes:
    """What prompts were shown, and why. ``saved`` returns the events that notes of saved conversations cite."""

    def __init__(
        self,
        *,
        timeline: Timeline,
        known: KnownNotes,
        memory: SessionMemory,
        note_view: NoteView,
        saved: Callable[[EvidenceReference], Sequence[Event]] = lambda reference: (),
        clock: Callable[[], datetime],
    ) -> None:
        self._timeline = timeline
        self._known = known
        self._memory = memory
        self._note_view = note_view
        self._saved = saved
        self._clock = clock

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {"helped": self.helped, "why": self.why}

    def helped(self, *, weeks: int = 12) -> Json:
        """Return how the notes that were shown were used, week by week; see `helping`."""
        return helping(self._memory, self._known.called, self._clock(), weeks=max(1, min(weeks, _MOST_WEEKS)))

    def why(self, *, note: str = "", last: int = 10, silent: bool = False) -> Json:
        """Return the evidence of a note, or without one the ``last`` prompts that were shown notes, latest first.

        With ``silent``, all prompts are listed.
        """
        if not note:
            occasions = self._memory.report.occasions(max(1, min(last, _MOST_PROMPTS)), silent=silent)
            known = self._known.called({given.note for occasion in occasions for given in occasion.given}) if occasions else {}
            passed = 0 if silent else self._memory.report.silent_since(occasions[-1].at if occasions else None)
            return {"prompts": [occasion_json(occasion, known) for occasion in occasions], "silent": passed}
        if self._timeline.events.evidence(reference) if (reference := EvidenceReference.parse(note)) is not None else ():
            return {"title": "", "path": "", "became": [], "evidence": self._turn(note)}
        found = self._note_view.in_force(note)
        evidence = [self._evidence(reference) for reference in found.evidence]
        return {**note_json(found), "became": became_of(found), "evidence": evidence}

    def _turn(self, citation: str) -> list[Json]:
        """Return the events that a citation names, as far as they may be offered: of a turn, its prompt and its last answer."""
        prompt = self._timeline.cards.prompt_of(citation)
        said = self._timeline.events.offered(self._timeline.cards.turn(prompt.id)) if prompt is not None else []
        cited = [event.reference for event in said]
        return [self._evidence(each) for each in dict.fromkeys(cited or [citation])]

    def _evidence(self, text: str) -> Json:
        reference = EvidenceReference.parse(text)
        events = [] if reference is None else self._timeline.events.evidence(reference) or self._saved(reference)
        return {
            "reference": plain_line(text),
            "became": list(dict.fromkeys(plain_line(line, 1_000) for event in events for line in became(self._timeline, event))),
            "events": [
                {
                    "id": event.id,
                    "session": event.session,
                    "at": event.at.isoformat(),
                    "role": event.role,
                    "type": event.type.value,
                    "text": plain(event.text[:_EVENT_TEXT]),
                    "where": f"{event.where.file}:{event.where.start}-{event.where.end}",
                }
                for event in events
            ],
        }


def _verdict(count: Count) -> str:
    if not count.shown:
        return "nothing shown"
    if count.shown < _ENOUGH_SHOWN or count.known < _ENOUGH_KNOWN:
        return "too early to tell"
    return "seldom" if count.used < _SELDOM * count.known else "yes"


def _week(week: Week) -> Json:
    return {
        "week": week.name,
        "from": week.monday.isoformat(),
        "prompts": week.prompts,
        "silent": week.silent,
        "shown": week.count.shown,
        **_counted(week.count),
        "by_moment": {moment: {"shown": count.shown, **_counted(count)} for moment, count in sorted(week.moments.items())},
    }


def _counted(count: Count) -> Json:
    return {"used": count.used, "ignored": count.ignored, "unknown": count.unknown, "open": count.open}


def _given(given: ShownNote, occasion: Occasion, note: KnownFile | None) -> Json:
    return {
        **_named(given.note, note),
        "score": given.score,
        "voice": given.voice or occasion.moment,
        "outcome": given.standing,
        "because": plain_line(given.why, 300),
    }


def _named(name: str, note: KnownFile | None) -> Json:
    if note is not None:
        return {"id": name, "path": note.path, "title": plain_line(note.title)}
    if EvidenceReference.parse(name) is not None:
        return {"id": name, "path": "", "title": "an earlier conversation"}
    return {"id": name, "path": "", "title": "(the team's)" if name.startswith(TEAMS) else "(forgotten since)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the segment shows. ``took_ms`` is ``None`` until the session had an answer; ``paused``: no notes are being written."""

    notes: int
    took_ms: float | None = None
    dollars: float = 0.0
    paused: bool = False


def segment(figures: Figures) -> str:
    """Return one short segment for a status line. Before a session was given a note, it says no number: the vault may be full."""
    given = f"{figures.notes} note{'' if figures.notes == 1 else 's'}" if figures.notes else "ready"
    parts = [f"kite: {given}"]
    if figures.took_ms is not None:
        parts.append(f"{figures.took_ms:.0f} ms")
    if figures.dollars >= 0.005:
        parts.append(f"${figures.dollars:.2f}")
    if figures.paused:
        parts.append("paused")
    return " · ".join(parts)


_LAST_NOTES, _LOOKED_AT = 5, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractorState:
    """The extractor in use, its ``missing_key``, its daily budget, and what it waits for."""

    name: str
    missing_key: Misconfigured | None = None
    budget_dollars: float = 0.0
    idle: "Callable[[], Idle]"

    def waiting(self) -> "Idle":
        if self.missing_key is None:
            return self.idle()
        from kite_memory.distill.scheduler import Idle  # most reports are made without

        return Idle(until=0.0, reason=self.missing_key.reason, hint=self.missing_key.hint)


class StatusReport:
    """The operation `status`: what was read, kept and spent, and what is wrong."""

    def __init__(
        self,
        *,
        survey: TranscriptSurvey,
        open_count: Callable[[], int],
        files: ReadFiles,
        outbox: "Outbox",
        vault: Vault,
        index: "Index",
        memory: SessionMemory,
        extractor: ExtractorState,
        daemon: Callable[[], Json],
        clock: Callable[[], datetime],
    ) -> None:
        self._survey = survey
        self._open_count = open_count
        self._files = files
        self._outbox = outbox
        self._vault = vault
        self._index = index
        self._memory = memory
        self._extractor = extractor
        self._daemon = daemon
        self._clock = clock
        self._note_view = NoteView(vault=vault, clock=clock)

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {"status": self.status}

    def figures(self, session: str) -> Figures:
        """Return what a status line shows of a session; without one, of the last that was given anything."""
        if not session:
            session = next((each.session for each in self._memory.report.occasions(1, silent=False)), "")
        waits = self._extractor.waiting().until is not None
        return Figures(
            notes=len(self._memory.shown(session)),
            dollars=self._outbox.calls.spending(self._clock().date().isoformat()).dollars,
            paused=waits,
        )

    def status(self) -> Json:
        from kite_memory.distill.budget import Spending  # the other reports need nothing of it

        now = self._clock()
        daemon = self._daemon()
        if self._vault.root.is_dir() or self._vault.known.all():
            self._look_at_the_vault(watched=daemon["running"])
        notes = self._vault.known.all()
        index = self._index.status()
        survey = self._survey.now()
        states = self._outbox.states()
        spending = self._outbox.calls.spending(now.date().isoformat())
        purposes = self._outbox.calls.purposes(now.date().isoformat())
        judged = purposes.get("judge", Spending())
        idle = self._extractor.waiting()
        problems = [
            {"reason": each.reason, "count": each.count, "where": f"{each.file}:{each.first_position}"}
            for each in self._files.problems(limit=20)
        ]
        problems += [
            {"reason": each.reason, "count": 1, "where": each.file} for each in (*self._vault.notes.problems(), *index.problems)
        ]
        helped = helping(self._memory, self._vault.known.called, now)
        if helped["problem"]:
            problems.append({"reason": helped["problem"], "count": 1, "where": str(self._memory.path)})
        if notes:  # without notes, a missing vault is no problem
            problems = [
                {"reason": each, "count": 1, "where": str(self._vault.root)} for each in self._note_view.index_problems()
            ] + problems
        problems += [
            {
                "reason": "no folder but a file or a link: notes that belong there wait",
                "count": 1,
                "where": str(self._vault.root / each),
            }
            for each in self._vault.notes.wrong_folders()
        ]
        kept = [note for note in notes if note.kind and not note.problem]
        return {
            "daemon": daemon,
            "sources": sources_json(survey, self._survey.places(), self._files.tallies()),
            "notes": {
                "total": len(kept),
                "by_kind": dict(sorted(Counter(note.kind for note in kept).items())),
                "proposed": sum(note.status == NoteStatus.PROPOSED.value for note in kept),
                "to_review": self._vault.known.review_count(),
                "keyed": self._vault.keys.count(),
            },
            "last_notes": self._last_notes(notes),
            "helping": helped,
            "index": {"rows": index.rows, "stale": index.stale, "embedder": index.embedder},
            "extractor": {
                "name": self._extractor.name,
                "calls_today": spending.calls,
                "tokens_in": spending.tokens_in,
                "tokens_out": spending.tokens_out,
                "cost_usd": round(spending.dollars, 6),
                "budget_usd": self._extractor.budget_dollars,
                "backlog_chunks": sum(states.get(state, 0) for state in ("waiting", "asked", "answered")),
                "chunks_in_batches": self._outbox.batches.chunks(),
                "open_sessions": self._open_count(),
                "passed_over_sessions": survey.passed_over,
                "refused_chunks": states.get("refused", 0),
                "refused_items": self._outbox.refusals(),
                "set_aside": self._outbox.aside(),
                "waiting_for": idle.reason if idle.until is not None else "",
                "waiting_until": idle.until,
                "hint": idle.hint,
            },
            "judge": {  # included in the extractor's figures
                "calls_today": judged.calls,
                "tokens_in": judged.tokens_in,
                "tokens_out": judged.tokens_out,
                "cost_usd": round(judged.dollars, 6),
            },
            "calls_beside": {  # included in the extractor's figures, too
                purpose: {"calls_today": spent.calls, "cost_usd": round(spent.dollars, 6)} for purpose, spent in purposes.items()
            },
            "problems": problems,
        }

    def _look_at_the_vault(self, *, watched: bool) -> None:
        """Bring the vault's state up to date. If it is ``watched``, compare it only when it is or was missing."""
        if not watched or self._vault.scanner.frozen or not self._vault.root.is_dir():
            with self._vault.lock:
                self._vault.scanner.compare()

    def _last_notes(self, notes: Sequence[KnownFile]) -> list[Json]:
        """Return the newest of the notes written last, the latest first: an edit makes no note new."""
        written = [known for known in notes if known.kind != NoteKind.ENTITY.value]
        paths = sorted(written, key=lambda known: known.mtime_ns, reverse=True)[: _LOOKED_AT * _LAST_NOTES]
        try:
            read = filter(None, (self._vault.notes.read(known.path) for known in paths))
            kept = [note for note in read if not note.has_expired(self._clock())]
            return [note_json(note) for note in sorted(kept, key=lambda note: note.created, reverse=True)[:_LAST_NOTES]]
        except VaultMissing:  # reported among the problems
            return []
