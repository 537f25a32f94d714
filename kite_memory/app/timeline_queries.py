"""Queries of the timeline that need no embeddings: sessions event by event, the state of one, and connected ones.

It is fast to import, for commands without a daemon. The work is done by pure functions of `timeline`; here the data is fetched, and
returned in the shapes of the contract.
"""

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Protocol

from kite_memory.errors import KiteError, NotFound, UsageError
from kite_memory.model.event import Event, EvidenceReference, Session, evidence_reference
from kite_memory.model.hit import Fix
from kite_memory.model.note import Note
from kite_memory.projects import project_of
from kite_memory.recall.rendering import likely_tokens
from kite_memory.text.quoting import plain, plain_line
from kite_memory.timeline.history_queries import FailureMatch, FileChange, ToolUse, became, changes, search_failures, search_uses
from kite_memory.timeline.progress import BriefLine, BriefPart, ChangedFile, fitted
from kite_memory.timeline.resume import Brief, brief
from kite_memory.timeline.store import Timeline
from kite_memory.timeline.summaries import Overview, Work

if TYPE_CHECKING:
    from kite_memory.distill.answering import Polisher
    from kite_memory.timeline.threads import Joint, WorkThread

Json = dict[str, Any]

_MOST_SESSIONS = 10_000
_MOST_NAMED = 1_000
_PAGE_EVENTS = 10_000
_PAGE_CHARACTERS = 2_000_000
"""Characters of one answer, which goes over the socket."""
_EVENT_TEXT = 2_000
_NOTES = 500
_AROUND = 12
_RESUMED = 2_000
"""Events of a session that are read: some three hundred turns."""
_SUB_AGENTS = 12
_OF_A_SUB_AGENT = 300
_LEAST_TOKENS, _MOST_TOKENS = 60, 4_000
_THREADED = 500
_MOST_FILES = 100

_HEADINGS = {
    BriefPart.DOING: "What was being done",
    BriefPart.NEXT: "What is next",
    BriefPart.CHANGED: "What changed",
    BriefPart.FAILED: "Still failing, as far as is known",
    BriefPart.VERIFY: "What to verify next",
    BriefPart.STABLE: "Last stable point",
    BriefPart.OPEN: "Open questions",
}


class SessionNotFound(NotFound):
    """No session has that id, or the project has none."""


class NoteLookup(Protocol):
    """The part of `StoredNotes` that is used here."""

    def of_session(self, provider: str, session: str) -> Iterator[Note]: ...


class EmptyVault:
    """Empty vault, for callers that need no notes."""

    def of_session(self, provider: str, session: str) -> Iterator[Note]:
        return iter(())


def no_polisher() -> None:
    return None


class TimelineQueries:
    """Operations that read the timeline alone. Thread-safe. ``polisher`` returns the model that rewords briefs, or ``None``."""

    def __init__(self, *, timeline: Timeline, notes: NoteLookup, polisher: "Callable[[], Polisher | None]" = no_polisher) -> None:
        self._timeline = timeline
        self._notes = notes
        self._polisher = polisher

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {
            "timeline": self.timeline,
            "resume": self.resume,
            "threads": self.threads,
            "how": self.how,
            "fix": self.fix,
            "blame": self.blame,
            "became": self.became,
        }

    def timeline(
        self,
        *,
        session: str = "",
        project: str = "",
        limit: int = 50,
        after: int = -1,
        most: int = _PAGE_EVENTS,
        edges: bool = True,
    ) -> Json:
        """Return all sessions or, with ``session``, its events past ordinal ``after``.

        ``next`` of the result is where to continue. If ``session`` is a citation, the events around the cited one are returned.
        """
        if not session:
            found = self._timeline.sessions.overviews(project=named(project), limit=max(1, min(limit, _MOST_SESSIONS)))
            return {"sessions": [_overview(each) for each in found]}
        if (cited := EvidenceReference.parse(session)) is not None:
            return self._around(cited)
        chosen = self.find(session)
        events = self._timeline.events.of_session(
            chosen.provider, chosen.id, after=after, limit=max(1, min(most, _PAGE_EVENTS)) + 1
        )
        page = _page(events, most)
        return {
            **self._session_json(chosen, page, edges=edges),
            "next": page[-1].ordinal if len(page) < len(events) else None,
        }

    def _around(self, cited: EvidenceReference) -> Json:
        named = self._timeline.events.evidence(cited)
        session = self._timeline.sessions.get(named[0].provider, named[0].session) if named else None
        if session is None:
            raise SessionNotFound("the timeline does not hold that event", hint="its transcript may be gone, or not read yet")
        events = self._timeline.events.of_session(session.provider, session.id)
        place = next(place for place, event in enumerate(events) if event.id == named[0].id)
        return {**self._session_json(session, events[max(0, place - _AROUND) : place + len(named) + _AROUND]), "next": None}

    def _session_json(self, session: Session, events: Sequence[Event], *, edges: bool = True) -> Json:
        shown = {event.id for event in events}
        return {
            "session": _session(session),
            "events": [_event(event) for event in events],
            "edges": [
                {"kind": edge.kind.value, "from": edge.source, "to": edge.target}
                for edge in (self._timeline.events.edges(session.provider, session.id) if edges else ())
                if edge.source in shown or edge.target in shown
            ],
            "notes": self._notes_of(session),
        }

    def _notes_of(self, session: Session) -> list[Json]:
        """Return the notes made from the session's events."""
        found: list[Json] = []
        with contextlib.suppress(KiteError):  # a session can be shown without its notes
            for note in islice(self._notes.of_session(session.provider, session.id), _NOTES):
                if not note.has_expired(datetime.now(UTC)):
                    entry = {"id": note.id, "path": note.path, "kind": note.kind.value, "title": plain_line(note.title)}
                    found.append({**entry, "evidence": list(note.evidence)})
        return found

    def find(self, named: str, projects: Collection[str] | None = None) -> Session:
        """Return a session by its id, or a beginning of it that is unique; with its agent (``codex:019d…``) or without."""
        provider, colon, rest = named.partition(":")
        found = [
            session
            for session in self._timeline.sessions.named(rest if colon else named, limit=_MOST_NAMED)
            if (not colon or session.provider == provider) and _is_among(session, projects)
        ]
        exact = [session for session in found if session.id == (rest if colon else named)]
        match exact or found:
            case [only]:
                return only
            case []:
                last = self._timeline.sessions.last(named, among=None) if projects is None or named in projects else None
                hint = f"{named} is a project, whose last session is {last.provider}:{last.id[:13]}" if last is not None else ""
                raise SessionNotFound(f"no session is called {named!r:.80}", hint=hint or "`kmem timeline` lists them")
            case several:
                ids = {each.id for each in several}
                length = next(length for length in count(13) if len({id[:length] for id in ids}) == len(ids))
                names = ", ".join(f"{each.provider}:{each.id[:length]}" for each in several[:5])
                raise UsageError(f"several sessions begin with {named!r:.80}", hint=f"give more of the id: {names}")

    def resume(
        self,
        *,
        cwd: str = "",
        session: str = "",
        tokens: int = 500,
        polish: bool = False,
        projects: Collection[str] | None = None,
    ) -> Json:
        """Return the state of a session: of the one given, or of the user's last one in the project around ``cwd``.

        It is derived from events alone. With ``polish`` a model may reword its lines; a line that it may not reword stays as it
        was. With ``projects``, sessions of all other projects are ignored.
        """
        began = time.perf_counter()
        chosen = self.find(session, projects) if session else self._last(project_of(cwd), projects)
        events = self._timeline.events.offered(self._timeline.events.last(chosen.provider, chosen.id, _RESUMED))
        found = brief(chosen, events, self._sub_agents(chosen, projects))
        if found is None:
            raise SessionNotFound(f"session {chosen.id} has no events", hint="`kmem timeline` lists the known sessions")
        head = _head(found)
        room = max(_LEAST_TOKENS, min(tokens, _MOST_TOKENS)) - likely_tokens(head)
        room -= sum(likely_tokens(_HEADINGS[part]) + 1 for part in {line.part for line in found.lines})
        cost = partial(_tokens, of=chosen)
        kept = fitted(found.lines, tokens=room, cost=cost)
        better = self._polished(kept, room, cost) if polish else _Polish()
        text = "\n".join((head, *_lines([better.lines.get(line, line) for line in kept], chosen)))
        return {
            "session": _session(chosen),
            "at": found.at.isoformat(),
            "text": text,
            "tokens": likely_tokens(text),
            "lines": [_line_json(line, better.lines.get(line)) for line in found.lines],
            "left_out": len(found.lines) - len(kept),
            "files": [_changed(file) for file in found.files[:_MOST_FILES]],
            "stable": None
            if found.stable is None
            else {
                "at": found.stable.at.isoformat(),
                "command": found.stable.command,
                "said": found.stable.said,
                "commit": found.stable.commit,
                "failing": list(found.stable.failing),
                "narrow": found.stable.narrow,
                "tests": found.stable.tests,
                "evidence": found.stable.evidence,
                "files": [_changed(file) for file in found.stable.files[:_MOST_FILES]],
            },
            "events": len(events),
            "by": better.by,
            "polished": len(better.lines),
            "refused": better.refused,
            "problems": [better.remark] if better.remark else [],
            "took_ms": since(began),
        }

    def _polished(self, lines: Sequence[BriefLine], room: int, cost: Callable[[BriefLine], int]) -> "_Polish":
        """Reword lines by a model. Those that become too long stay as they were."""
        from kite_memory.distill.answering import (
            Polished,
            Unsaid,  # imported here: only needed for rewording
        )

        polisher = self._polisher()
        if polisher is None:
            return _Polish(
                remark="no model is set up that could polish it: `kmem keys set anthropic`, or see [extractor] in the settings"
            )
        match polisher.polish([plain_line(line.text, 1_000) for line in lines]):
            case Unsaid(reason=reason):
                return _Polish(remark=f"the model was of no help, so this is the plain brief: {plain_line(reason)}")
            case Polished() as polished:
                pass
        room -= sum(map(cost, lines))
        found: dict[BriefLine, BriefLine] = {}
        for place, text in polished.lines.items():
            longer = replace(lines[place], text=text)
            if (needed := cost(longer) - cost(lines[place])) <= room:
                found[lines[place]] = longer
                room -= needed
        return _Polish(lines=found, by=polisher.name, refused=polished.refused + len(polished.lines) - len(found))

    def _last(self, project: str, projects: Collection[str] | None) -> Session:
        if project:
            session = self._timeline.sessions.last(project) if projects is None or project in projects else None
            if session is not None:
                return session
            raise SessionNotFound(f"no session of {project!r} is known", hint="`kmem timeline` lists the known sessions")
        if (session := self._timeline.sessions.last(None, among=projects)) is not None:
            return session
        raise SessionNotFound("no session is known yet", hint="`kmem up` reads what your agents have left, and watches for more")

    def _sub_agents(self, session: Session, projects: Collection[str] | None) -> list[list[Event]]:
        """Return the events of sub-sessions without a user's message: those of this session's agent."""
        return [
            self._timeline.events.offered(self._timeline.events.last(each.provider, each.id, _OF_A_SUB_AGENT))
            for each in self._timeline.sessions.sub_sessions(session.provider, session.id, _SUB_AGENTS)
            if _is_among(each, projects) and not self._timeline.events.spoken(each.provider, each.id, 1)
        ]

    def threads(self, *, project: str = "", limit: int = _THREADED) -> Json:
        """Return threads of sessions, from the ``limit`` sessions active last.

        ``considered`` is how many of all ``sessions`` these are. ``unsure`` are links too weak to make a thread.
        """
        from kite_memory.timeline.threads import joined

        began = time.perf_counter()
        works = self._timeline.sessions.works(project=named(project), limit=max(2, min(limit, _MOST_SESSIONS)))
        found = joined(works)
        return {
            "threads": [_thread(each) for each in found.threads],
            "unsure": [_joint(each) for each in found.unsure],
            "considered": len(works),
            "sessions": self._timeline.sessions.count(project=named(project)),
            "took_ms": since(began),
        }

    def how(self, *, tool: str, project: str = "", limit: int = 8) -> Json:
        """Return how a program or an agent's tool was used, and how that ended the last time."""
        began = time.perf_counter()
        found = search_uses(self._timeline, tool, project=named(project), limit=limit)
        return {"uses": [_use(each) for each in found], "took_ms": since(began)}

    def fix(self, *, error: str, project: str = "", limit: int = 5) -> Json:
        """Return where a failure occurred, and how it was fixed."""
        began = time.perf_counter()
        found = search_failures(self._timeline, error, project=named(project), limit=limit)
        return {"failures": [_met(each) for each in found], "took_ms": since(began)}

    def blame(self, *, path: str, project: str = "", limit: int = 12) -> Json:
        """Return the prompts that led to changes of a file, and the commits with these changes."""
        began = time.perf_counter()
        found = changes(self._timeline, path, project=named(project), limit=limit)
        return {"changes": [_file_change(each) for each in found], "took_ms": since(began)}

    def became(self, *, citation: str) -> Json:
        """Return what followed an event."""
        cited = EvidenceReference.parse(citation)
        events = self._timeline.events.evidence(cited) if cited is not None else []
        return {
            "became": list(dict.fromkeys(plain_line(line, 1_000) for event in events for line in became(self._timeline, event)))
        }


def named(project: str) -> str:
    """Return the project as sessions name it, from its name or its folder."""
    return project_of(project) if project else ""


def _page(events: Sequence[Event], most: int = _PAGE_EVENTS) -> Sequence[Event]:
    """Return as many events as one answer holds, at least one. Events that share an ordinal are kept together."""
    characters = 0
    end = len(events)
    for place, event in enumerate(events):
        characters += min(len(event.text), _EVENT_TEXT) + len(event.command) + len(event.path)
        if place == max(1, min(most, _PAGE_EVENTS)) or characters > _PAGE_CHARACTERS:
            end = max(1, place)
            break
    while 0 < end < len(events) and end > 1 and events[end - 1].ordinal == events[end].ordinal:
        end -= 1
    return events[:end]


def _head(found: Brief) -> str:
    session = found.session
    parts = [session.project, f"{session.provider}:{session.id[:8]}", f"{found.at:%Y-%m-%d %H:%M} UTC"]
    if found.branch not in ("", "HEAD"):
        parts.append(f"on {found.branch}")
    return plain_line(" · ".join(filter(None, parts)))


def _lines(lines: Sequence[BriefLine], of: Session) -> list[str]:
    output: list[str] = []
    part: BriefPart | None = None
    for line in lines:
        if line.part is not part:
            part = line.part
            output.append(_HEADINGS[part])
        output.append(_cited(line, of))
    return output


@dataclass(frozen=True, slots=True, kw_only=True)
class _Polish:
    """Result of rewording: ``lines`` maps each line to its rewording."""

    lines: Mapping[BriefLine, BriefLine] = field(default_factory=dict)
    by: str = "events"
    refused: int = 0
    remark: str = ""


def _tokens(line: BriefLine, *, of: Session) -> int:
    return likely_tokens(_cited(line, of)) + 1


def _line_json(line: BriefLine, better: BriefLine | None) -> Json:
    entry = {"part": line.part.value, "text": plain_line((better or line).text, 1_000), "evidence": list(line.evidence)}
    return entry if better is None else {**entry, "plain": plain_line(line.text, 1_000)}


def _cited(line: BriefLine, of: Session) -> str:
    """Return the line with its first citation, ``#…`` for an event of the session, which the brief's first line names.

    The id of another session is shortened; `kmem timeline` accepts it as it is.
    """
    said = f"- {plain_line(line.text, 1_200)}"
    reference = EvidenceReference.parse(line.evidence[0])
    if reference is None:
        return said
    whole = evidence_reference(reference.provider, reference.session[:8], reference.event)
    is_own = (reference.provider, reference.session) == (of.provider, of.id)
    return f"{said} [{f'#{reference.event}' if is_own else whole}]"


def _is_among(session: Session, projects: Collection[str] | None) -> bool:
    return projects is None or session.project in projects


def _session(session: Session) -> Json:
    return {
        "id": session.id,
        "provider": session.provider,
        "project": session.project,
        "cwd": session.cwd,
        "branch": session.branch,
        "started": session.started.isoformat(),
        "parent": session.parent,
        "title": plain_line(session.title),
    }


def _overview(each: Overview) -> Json:
    return {
        **_session(each.session),
        "last": each.last.isoformat(),
        "events": each.events,
        "prompts": each.prompts,
        "errors": each.errors,
        "tests": each.tests,
        "failed_tests": each.failed_tests,
        "opening": plain_line(each.opening, 200),
    }


def _event(event: Event) -> Json:
    return {
        "id": event.id,
        "session": event.session,
        "ordinal": event.ordinal,
        "at": event.at.isoformat(),
        "role": event.role,
        "type": event.type.value,
        "text": plain(event.text[:_EVENT_TEXT]),
        "tool": event.tool,
        "command": event.command,
        "path": event.path,
        "status": event.status,
        "parent": event.parent,
        "call": event.call,
        "reference": event.reference,
        "where": f"{event.where.file}:{event.where.start}-{event.where.end}",
    }


def _changed(file: ChangedFile) -> Json:
    return {"path": file.path, "action": file.action, "at": file.at.isoformat(), "evidence": file.evidence}


def _use(each: ToolUse) -> Json:
    return {
        "what": plain_line(each.what, 1_000),
        "times": each.times,
        "last": each.at.isoformat(),
        "outcome": each.outcome,
        "failure": plain_line(each.failure, 1_000),
        "evidence": each.evidence,
        "fix": _fix(each.fix),
    }


def _met(each: FailureMatch) -> Json:
    return {
        "failure": plain_line(each.failure, 1_000),
        "times": each.times,
        "last": each.at.isoformat(),
        "command": plain_line(each.command, 1_000),
        "evidence": each.evidence,
        "fix": _fix(each.fix),
    }


def _fix(fix: Fix | None) -> Json | None:
    if fix is None:
        return None
    return {
        "at": fix.at.isoformat(),
        "command": plain_line(fix.worked, 1_000),
        "steps": [plain_line(step, 1_000) for step in fix.steps],
        "files": [plain_line(file, 1_000) for file in fix.files],
        "said": plain_line(fix.said, 300),
        "evidence": fix.evidence,
    }


def _file_change(each: FileChange) -> Json:
    return {
        "session": _session(each.session),
        "path": plain_line(each.path, 1_000),
        "action": each.action,
        "times": each.times,
        "last": each.at.isoformat(),
        "prompt": plain_line(each.prompt, 1_000),
        "evidence": each.evidence,
        "commit": None if each.commit is None else {"hash": each.commit.hash, "subject": plain_line(each.commit.subject, 300)},
    }


def _thread(each: "WorkThread") -> Json:
    return {
        "project": each.project,
        "from": each.works[0].session.started.isoformat(),
        "last": each.last.isoformat(),
        "sessions": [_work(work) for work in each.works],
        "joints": [_joint(joint) for joint in each.joints],
    }


def _work(work: Work) -> Json:
    opening = plain_line(work.opening, 200)
    return {**_session(work.session), "last": work.last.isoformat(), "prompts": work.prompts, "opening": opening}


def _joint(joint: "Joint") -> Json:
    return {
        "from": f"{joint.earlier.provider}:{joint.earlier.id}",
        "to": f"{joint.later.provider}:{joint.later.id}",
        "strength": joint.strength,
        "sure": joint.sure,
        "reasons": [
            {"tie": each.tie, "what": plain_line(each.what), "weight": each.weight, "sessions": each.sessions}
            for each in joint.reasons
        ],
    }


def since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)
