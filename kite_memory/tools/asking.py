"""Tools: search_notes, get_note, timeline, resume_brief, remember, forget; and recent_notes for listings."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from kite_memory.errors import KiteError, NoteNotFound, NotFound, UsageError
from kite_memory.model.event import EvidenceReference
from kite_memory.model.note import Note, NoteKind, Scope
from kite_memory.model.record import Fact
from kite_memory.recall.rendering import estimated_tokens, plain, plain_line, quoted, shortened
from kite_memory.recall.search import name
from kite_memory.tools import argument_parsing, local_context, note_view
from kite_memory.tools.access import Asker
from kite_memory.tools.bridge import Json, Tool
from kite_memory.tools.conversation_notes import uuid_of
from kite_memory.tools.conversations import Gate
from kite_memory.tools.local_context import Near, within
from kite_memory.tools.local_conversations import MOST_TRANSCRIPT
from kite_memory.tools.record_reading import conversation_uuid
from kite_memory.tools.store import Asked, Store

_LONGEST_QUERY = 4_000
_LONGEST_TEXT = 20_000
"""Most characters of a text to remember."""
_MOST_HITS = 50
_MOST_SHOWN = 20
_BODY = 16_000
_BODY_TOKENS = 6_000
_OPENED_TOKENS = 350
"""Tokens for one note among several; 400 with its frame."""
_PAGE = 200_000
"""Characters of a transcript in one answer, as JSON; together with the note it fits into a tool's answer."""
_EVENTS, _MOST_EVENTS = 50, 200
_EVENT_TEXT = 1_000
_SESSIONS = 10_000
"""Number of a project's last sessions among which a named one is searched for."""
_BRIEF = 500
_WRITABLE = frozenset({NoteKind.DECISION, NoteKind.INSIGHT, NoteKind.FACT, NoteKind.QUESTION})

Age = Callable[[str, datetime], datetime | None]
"""Converts ``30d`` or a date into a time. Raises `UsageError`."""


class EventsElsewhere(KiteError):
    """This bridge serves notes, but no events."""


class SessionUnknown(NotFound):
    """There is no such session, or none that the grant sees."""


def _now() -> datetime:
    return datetime.now(UTC)


def tools(store: Store, near: Near, *, gate: Gate, age: Age, clock: Callable[[], datetime] = _now) -> Mapping[str, Tool]:
    return {
        "search_notes": partial(_search, store, near, age, clock),
        "get_note": partial(_note, store),
        "show_notes": partial(_notes, store),
        "recent_notes": partial(_recent, store, near),
        "timeline": partial(_timeline, store, near),
        "resume_brief": partial(_resume, near),
        "remember": partial(_remember, store, near, gate),
        "forget": partial(_forget, store),
    }


def _search(store: Store, near: Near, age: Age, clock: Callable[[], datetime], asker: Asker, arguments: Json) -> Json:
    began = time.perf_counter()
    query = argument_parsing.clean(argument_parsing.text(arguments, "query", longest=_LONGEST_QUERY, needed=True)).strip()
    within = local_context.project_named(asker, near, argument_parsing.line(arguments, "project", longest=1_024))
    asked = Asked(
        text=query,
        project=within or asker.project,
        within=bool(within),
        kinds=_kinds(arguments),
        since=age(argument_parsing.line(arguments, "since", longest=40), clock()),
        limit=argument_parsing.whole(arguments, "limit", least=1, most=_MOST_HITS, otherwise=10),
    )
    hits, left_out = note_view.bounded([note_view.found(hit, asker.grant, query) for hit in store.search(asker.grant, asked)])
    return {"hits": hits, "left_out": left_out, "took_ms": round((time.perf_counter() - began) * 1000, 1)}


def _kinds(arguments: Json) -> frozenset[NoteKind]:
    value = arguments.get("kinds") or []
    try:
        return frozenset(map(NoteKind, [value] if isinstance(value, str) else value))
    except (TypeError, ValueError):
        raise UsageError("kinds are not a list of kinds", hint=f"choose among: {', '.join(NoteKind)}") from None


def _note(store: Store, asker: Asker, arguments: Json, *, tokens: int = _BODY_TOKENS) -> Json:
    named = argument_parsing.line(arguments, "note", longest=1_024, needed=True)
    wants_transcript = arguments.get("transcript", False)
    if not isinstance(wants_transcript, bool):
        raise UsageError("transcript is neither true nor false", hint="leave it out for the note alone")
    offset = argument_parsing.whole(arguments, "offset", least=0, most=4 * MOST_TRANSCRIPT, otherwise=0)
    if offset and not wants_transcript:
        raise UsageError("only a transcript has an offset", hint="give transcript=true as well")
    note = store.note(asker.grant, named) or _titled(store, asker, named)
    uuid = uuid_of(note) if note is not None else _uuid(named)
    transcript = store.transcript(asker.grant, uuid) if wants_transcript and uuid else None
    if note is None and transcript is None:
        raise _not_found()
    answer: Json = {} if note is None or offset else _whole(store, asker, note, tokens)
    if wants_transcript:
        answer |= _page(plain(transcript or ""), offset) | {"has_transcript": transcript is not None}
    return answer


def _notes(store: Store, asker: Asker, arguments: Json) -> Json:
    """Return several notes as `get_note` does, but shorter; names that were not found or not visible are listed as missing."""
    named = arguments.get("notes")
    if not isinstance(named, list) or not 0 < len(named) <= _MOST_SHOWN:
        raise UsageError("notes are not a list", hint=f"give the ids of at most {_MOST_SHOWN} notes, as search_notes tells them")
    found: list[Json] = []
    missing: list[str] = []
    for each in named:
        try:
            found.append(_note(store, asker, {"note": each}, tokens=_OPENED_TOKENS))
        except NoteNotFound:
            missing.append(plain_line(each))
    return {"notes": found, "missing": missing, "text": "\n".join(note["text"] for note in found)}


def _page(transcript: str, offset: int) -> Json:
    """Return the part of the transcript from ``offset`` that fits in one answer, and in ``next`` where to continue."""
    part = transcript[offset : offset + _PAGE]
    while (sent := len(json.dumps(part)) + 5 * part.count("<")) > _PAGE:  # an upper bound: `mcp_server.rendering` escapes less
        part = part[: len(part) * _PAGE // sent]
    end = offset + len(part)
    return {"transcript": part, "next": end if end < len(transcript) else None, "transcript_length": len(transcript)}


def _uuid(named: str) -> str:
    try:
        return conversation_uuid(named)
    except UsageError:
        return ""


def _titled(store: Store, asker: Asker, title: str) -> Note | None:
    match store.titled(asker.grant, title):
        case []:
            return None
        case [note]:
            return note
        case several:
            listed = "; ".join(f"{name(note)} ({note.kind}, {note.project or note.scope}, {note.status})" for note in several)
            raise UsageError("several notes have this title", hint=plain_line(quoted(f"name one by its id: {listed}"), 600))


def _not_found() -> NoteNotFound:
    return NoteNotFound("there is no such note", hint="search_notes finds notes by their words; name one by the id it gives")


def _whole(store: Store, asker: Asker, note: Note, tokens: int) -> Json:
    seen = note_view.as_seen(note, asker.grant, note_view.seen_by(store, asker.grant))
    body = shortened(quoted(seen.body[: 4 * _BODY]), tokens=tokens, characters=_BODY)
    told = note_view.told(seen, asker.grant)
    head = " · ".join(filter(None, (told["title"], told["kind"], told["project"], f"{seen.created:%Y-%m-%d}", told["status"])))
    evidence = [plain_line(quoted(each)) for each in seen.evidence[:50]]
    return {
        **told,
        "origin": seen.origin,
        "updated": seen.updated.isoformat(),
        "tags": list(seen.tags[:50]),
        "entities": [plain_line(quoted(entity)) for entity in seen.entities[:50]],
        "evidence": evidence,
        "supersedes": [plain_line(quoted(each)) for each in seen.supersedes[:20]],
        "superseded_by": plain_line(quoted(seen.superseded_by)),
        "conversation": uuid_of(seen),
        "cut": len(body) < len(quoted(seen.body)) if len(seen.body) < 4 * _BODY else True,
        "text": note_view.framed("a quoted note from this user's own memory", [f"--- {head} ---", body]),
    }


def _recent(store: Store, near: Near, asker: Asker, arguments: Json) -> Json:
    """List recent notes for a client, not for agents."""
    project, _ = local_context.around(asker, near, arguments)
    limit = argument_parsing.whole(arguments, "limit", least=1, most=argument_parsing.MOST_RESULTS, otherwise=50)
    notes, _ = note_view.bounded(
        [note_view.told(note, asker.grant) for note in store.recent(asker.grant, project, frozenset(), limit)],
        4 * note_view.LONGEST_TEXT,
    )
    return {"notes": notes}


def _remember(store: Store, near: Near, gate: Gate, asker: Asker, arguments: Json) -> Json:
    """Write a note that can be found as soon as this returns. Kinds that only a person may write are refused."""
    text = argument_parsing.clean(argument_parsing.text(arguments, "text", longest=_LONGEST_TEXT, needed=True)).strip()
    title = argument_parsing.clean(argument_parsing.line(arguments, "title")).strip()
    if not text:
        raise UsageError("there is nothing to remember", hint="what is secret or marked as private is never kept")
    kind = argument_parsing.choice(arguments, "kind", NoteKind) or NoteKind.FACT
    if kind not in _WRITABLE:
        raise UsageError(f"a note of kind {kind.value!r} is not made so", hint=f"choose one of: {', '.join(sorted(_WRITABLE))}")
    if why := gate.text(f"{title}\n{text}"):
        raise UsageError(f"this was not remembered: {why}", hint="say what is so, as a fact; people give instructions themselves")
    scope = argument_parsing.choice(arguments, "scope", Scope)
    project, _ = local_context.around(asker, near, arguments)
    place = local_context.place_of(asker, near, arguments, scope or (Scope.PROJECT if project else Scope.GLOBAL))
    said = Fact(title=title, body=text, evidence=(), importance=2, origin="assistant")
    note = store.remember(
        asker.grant,
        text,
        kind,
        place,
        by=argument_parsing.clean(asker.name),
        tags=argument_parsing.tags(arguments),
        title=title,
        origin=gate.whose(said, near.heard_by(asker.grant, place.project), near.provenance(asker.grant, place.project)),
    )
    return {"remembered": True, **note_view.told(note, asker.grant)}


def _forget(store: Store, asker: Asker, arguments: Json) -> Json:
    """Move a note to the vault's trash; it is never written again."""
    named = argument_parsing.line(arguments, "note", longest=1_024, needed=True)
    if not store.forget(asker.grant, named):
        note = _titled(store, asker, named)
        if note is None or not store.forget(asker.grant, name(note)):
            raise _not_found()
    return {"forgotten": True, "note": plain_line(named)}


def _timeline(store: Store, near: Near, asker: Asker, arguments: Json) -> Json:
    if near.timeline is None:
        raise _elsewhere()
    limit = argument_parsing.whole(arguments, "limit", least=1, most=_MOST_EVENTS, otherwise=_EVENTS)
    named = argument_parsing.line(arguments, "session_id")
    project = local_context.project_named(asker, near, argument_parsing.line(arguments, "project", longest=1_024))
    if not named:
        sessions, left_out = note_view.bounded([_session(each) for each in _sessions(near.timeline, asker, project, limit)])
        return {"sessions": sessions, "left_out": left_out}
    cited = EvidenceReference.parse(named)
    chosen = _chosen(near.timeline, asker, project, f"{cited.provider}:{cited.session}" if cited else named)
    meant, after = f"{chosen}#{cited.event}" if cited else chosen, _after(arguments)
    with _told_to_agents():
        told = near.timeline(session=meant, most=limit, after=after, edges=False)
    if not asker.grant.sees(Scope.PROJECT, told["session"]["project"]):
        raise _unknown()
    events, left_out = note_view.bounded([_event(each) for each in told["events"]], note_view.LONGEST_TEXT - 4_000)
    notes = [note for each in told["notes"][:20] if each["id"] and (note := store.note(asker.grant, each["id"])) is not None]
    return {
        "session": _session(told["session"]),
        "events": events,
        "notes": [{"id": note.id, "title": plain_line(quoted(note.title))} for note in notes],
        "next": events[-1]["ordinal"] if left_out and events else told["next"],
    }


def _after(arguments: Json) -> int:
    return argument_parsing.whole(arguments, "after", least=-1, most=1 << 53, otherwise=-1)


def _resume(near: Near, asker: Asker, arguments: Json) -> Json:
    if near.resume is None or near.timeline is None:
        raise _elsewhere()
    named = argument_parsing.line(arguments, "session_id")
    project = local_context.project_named(asker, near, argument_parsing.line(arguments, "project", longest=1_024)) or asker.project
    tokens = argument_parsing.whole(arguments, "token_budget", least=60, most=4_000, otherwise=_BRIEF)
    if named:
        chosen = _chosen(near.timeline, asker, "", named)
    else:
        spoken = (each for each in _sessions(near.timeline, asker, project, _EVENTS) if each["prompts"])
        if (last := next(spoken, None)) is None:
            raise SessionUnknown("no session is known here", hint="timeline lists those there are")
        chosen = f"{last['provider']}:{last['id']}"
    with _told_to_agents():
        told = near.resume(session=chosen, tokens=tokens, **within(asker.grant, Scope.PROJECT))
    text = quoted(told["text"])
    return {
        "session": _session(told["session"]),
        "at": told["at"],
        "text": note_view.framed("where a session stood, quoted from what happened in it", [text]),
        "tokens": estimated_tokens(text),
        "left_out": told["left_out"],
    }


def _elsewhere() -> EventsElsewhere:
    return EventsElsewhere(
        "events stay on the machine where they happened; this bridge has the team's notes alone",
        hint="ask `kmem mcp` on that machine; here, get-context and smart_resume say what was decided and left open",
    )


@contextmanager
def _told_to_agents() -> Iterator[None]:
    """Raise errors with hints that name tools instead of commands."""
    try:
        yield
    except NotFound as error:
        raise _unknown() from error


def _unknown() -> SessionUnknown:
    return SessionUnknown("there is no such session", hint="timeline lists those there are")


def _sessions(timeline: Callable[..., Json], asker: Asker, project: str, limit: int) -> list[Json]:
    """Return the sessions that the grant sees, latest first."""
    grant = asker.grant
    if project:
        projects: Sequence[str] = (project,) if grant.sees(Scope.PROJECT, project) else ()
    else:
        projects = ("",) if grant.projects is None else sorted(grant.projects)
    found = [
        session
        for each in projects
        for session in timeline(project=each, limit=limit)["sessions"]
        if grant.sees(Scope.PROJECT, session["project"])
    ]
    return sorted(found, key=lambda session: str(session["last"]), reverse=True)[:limit]


def _chosen(timeline: Callable[..., Json], asker: Asker, project: str, named: str) -> str:
    """Return the named session as ``<agent>:<id>``; only sessions that the grant sees are considered."""
    if asker.grant.whole and not project:
        return named
    provider, colon, rest = named.partition(":")
    wanted = rest if colon else named
    known = [
        (session["provider"], session["id"])
        for session in _sessions(timeline, asker, project, _SESSIONS)
        if session["id"].startswith(wanted) and (not colon or session["provider"] == provider)
    ]
    match [each for each in known if each[1] == wanted] or known:
        case [(agent, id)]:
            return f"{agent}:{id}"
        case []:
            raise _unknown()
        case _:
            raise UsageError("several sessions begin so", hint="say more of the id")


def _session(session: Json) -> Json:
    """Return a session's entry in a list, without its folder."""
    shown = {name: session[name] for name in _OF_A_SESSION if name in session}
    return {name: plain_line(quoted(value)) if isinstance(value, str) else value for name, value in shown.items()}


_OF_A_SESSION = ("id", "provider", "project", "branch", "started", "title", "last", "prompts")
_TOLD = ("id", "ordinal", "at", "role", "type", "tool", "status", "reference")


def _event(event: Mapping[str, Any]) -> Json:
    long = {name: quoted(str(event[name])[:_EVENT_TEXT]) for name in ("text", "command", "path") if event.get(name)}
    told = {name: event[name] for name in _TOLD if event.get(name) not in ("", None)}
    return {name: plain_line(quoted(value)) if isinstance(value, str) else value for name, value in told.items()} | long
