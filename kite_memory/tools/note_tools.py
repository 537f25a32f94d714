"""Tools: search_notes, get_note, timeline, resume_brief, remember, forget, recent_notes for listings; and all tools together."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from kite_memory.errors import KiteError, NoteNotFound, NotFound, UsageError
from kite_memory.model.event import EvidenceReference
from kite_memory.model.hit import Hit
from kite_memory.model.note import Chunk, Fact, Note, NoteKind, Record, Scope
from kite_memory.recall.rendering import estimated_tokens, shortened
from kite_memory.system import utc_now
from kite_memory.text.quoting import plain, plain_line, quoted
from kite_memory.tools import argument_parsing, conversation_tools, local_state, memory_tools, note_view
from kite_memory.tools.arguments import (
    A_SESSION,
    AFTER,
    ANOTHER_SESSION,
    BRIEF_TOKENS,
    HIT_LIMIT,
    KIND,
    KINDS,
    LONG_LIMIT,
    NOTE,
    NOTES,
    OFFSET,
    PROJECT,
    QUERY,
    SCOPE,
    SINCE,
    TAGS,
    TEXT,
    TITLE,
    TRANSCRIPT,
    Arguments,
    LocalContext,
    around,
    place_of,
    project_named,
    within,
)
from kite_memory.tools.conversation_notes import journal_id, uuid_of
from kite_memory.tools.conversation_notes import place_of as place_of_note
from kite_memory.tools.conversation_tools import QualityGate
from kite_memory.tools.declarations import Json, Tool
from kite_memory.tools.record_reading import conversation_uuid
from kite_memory.tools.store import Asker, FoundNote, MemoryPlace, NoteQuery, Store

_BODY = 16_000
_BODY_TOKENS = 6_000
_OPENED_TOKENS = 350
"""Tokens for one note among several; 400 with its frame."""
_PAGE = 200_000
"""Characters of a transcript in one answer, as JSON; together with the note it fits into a tool's answer."""
_EVENTS = 50
"""Sessions among which the last one with prompts is searched for."""
_EVENT_TEXT = 1_000
_PASSAGES = 8_000
"""Characters of a search's answer for conversations and events."""
_SESSIONS = 10_000
"""Number of a project's last sessions among which a named one is searched for."""

Age = Callable[[str, datetime], datetime | None]
"""Converts ``30d`` or a date into a time. Raises `UsageError`."""


class EventsElsewhere(KiteError):
    """This bridge serves notes, but no events."""


class SessionUnknown(NotFound):
    """There is no such session, or none that the grant sees."""


def tools(
    store: Store, local: LocalContext, *, gate: QualityGate, age: Age, clock: Callable[[], datetime] = utc_now
) -> Mapping[str, Tool]:
    return {
        "search_notes": partial(_search, store, local, age, clock),
        "get_note": partial(_note, store),
        "show_notes": partial(_notes, store, local),
        "recent_notes": partial(_recent, store, local),
        "timeline": partial(_timeline, store, local),
        "resume_brief": partial(_resume, local),
        "remember": partial(_remember, store, local, gate),
        "forget": partial(_forget, store),
    }


def _search(store: Store, local: LocalContext, age: Age, clock: Callable[[], datetime], asker: Asker, arguments: Arguments) -> Json:
    began = time.perf_counter()
    query = argument_parsing.clean(arguments[QUERY]).strip()
    project = project_named(asker, local, arguments[PROJECT])
    asked = NoteQuery(
        text=query,
        project=project or asker.project,
        within=bool(project),
        kinds=arguments[KINDS],
        since=age(arguments[SINCE], clock()),
        limit=arguments[HIT_LIMIT],
    )
    found = store.search(asker.grant, asked)
    beside = _beside(local, asker, asked, found)
    hits, more_hits = note_view.bounded(
        [note_view.found(hit, asker.grant, query) | {"rank": rank} for hit, rank in zip(found, beside["notes"], strict=True)],
        note_view.LONGEST_TEXT - _PASSAGES,
    )
    events, more_events = note_view.bounded([_passage(each) for each in beside["events"]], _PASSAGES)
    took = round((time.perf_counter() - began) * 1000, 1)
    return {"hits": hits, "events": events, "left_out": more_hits + more_events, "took_ms": took}


def _beside(local: LocalContext, asker: Asker, asked: NoteQuery, found: Sequence[FoundNote]) -> Json:
    """Return conversations and events on the same subject, if they were requested and are available here, and all ranks."""
    if local.passages is None or asked.kinds:
        return {"notes": range(1, len(found) + 1), "events": []}
    return local.passages(
        [Hit(note=hit.note, score=hit.score, why=hit.why) for hit in found],
        query=asked.text,
        here=asked.project,
        within=asked.project if asked.within else "",
        since=asked.since,
        most=asked.limit,
        **within(asker.grant, Scope.PROJECT),
    )


def _passage(passage: Json) -> Json:
    """Return an entry of a conversation or an event, without the place of its file."""
    shown = {name: passage[name] for name in _OF_A_PASSAGE if passage.get(name) not in ("", None)}
    return {
        "citation": passage["reference"],
        **{name: plain_line(quoted(value)) if isinstance(value, str) else value for name, value in shown.items()},
    }


_OF_A_PASSAGE = ("at", "type", "tier", "project", "asked", "snippet", "later", "later_at", "status", "rank")


def _note(store: Store, asker: Asker, arguments: Arguments) -> Json:
    named, wants_transcript, offset = arguments[NOTE], arguments[TRANSCRIPT], arguments[OFFSET]
    if offset and not wants_transcript:
        raise UsageError("only a transcript has an offset", hint="give transcript=true as well")
    note = _called(store, asker, named)
    uuid = uuid_of(note) if note is not None else _uuid(named)
    near = _here(asker) if note is None else place_of_note(note)
    transcript = store.transcript(asker.grant, uuid, near=near) if wants_transcript and uuid else None
    if note is None and transcript is None:
        raise _not_found()
    answer: Json = {} if note is None or offset else _whole(store, asker, note, _BODY_TOKENS)
    if wants_transcript:
        answer |= _page(plain(transcript or ""), offset) | {"has_transcript": transcript is not None}
    return answer


def _notes(store: Store, local: LocalContext, asker: Asker, arguments: Arguments) -> Json:
    """Return several notes as `get_note` does, but shorter, and cited conversations in brief.

    Names that were not found or not visible are listed as missing.
    """
    found: list[Json] = []
    missing: list[str] = []
    for named in arguments[NOTES]:
        if said := _conversation(local, asker, named):
            found.append(said)
            continue
        note = _called(store, asker, named)
        if note is None:
            missing.append(plain_line(named))
        else:
            found.append(_whole(store, asker, note, _OPENED_TOKENS))
    return {"notes": found, "missing": missing, "text": "\n".join(note["text"] for note in found)}


def _conversation(local: LocalContext, asker: Asker, named: str) -> Json | None:
    """Return a conversation by its citation or handle: what was asked and how it ended; ``None`` for any other name, or if it is
    not visible. A grant of a part needs the citation, which names the session.
    """
    cited = EvidenceReference.parse(named)
    if local.conversation is None or local.timeline is None:
        return None
    if not asker.grant.whole:
        if cited is None:
            return None
        try:
            _chosen(local.timeline, asker, "", f"{cited.provider}:{cited.session}")
        except KiteError:
            return None
    said = shortened(quoted(local.conversation(named)), tokens=_OPENED_TOKENS, characters=_BODY)
    if not said:
        return None
    frame = note_view.framed("quoted from a conversation", [f"--- {plain_line(quoted(named))} ---", said])
    return {"id": plain_line(quoted(named)), "kind": "conversation", "text": frame}


def _page(transcript: str, offset: int) -> Json:
    """Return the part of the transcript from ``offset`` that fits in one answer, and in ``next`` where to continue."""
    part = transcript[offset : offset + _PAGE]
    while (sent := len(json.dumps(part)) + 5 * part.count("<")) > _PAGE:  # an upper bound: `mcp_server.server` escapes less
        part = part[: len(part) * _PAGE // sent]
    end = offset + len(part)
    return {"transcript": part, "next": end if end < len(transcript) else None, "transcript_length": len(transcript)}


def _called(store: Store, asker: Asker, named: str) -> Note | None:
    """Return a note by its id, path or title, or the journal of a saved conversation by its uuid or citation."""
    if (note := store.note(asker.grant, named)) is not None:
        return note
    if (uuid := _uuid(named)) and (conversation := store.conversation(asker.grant, uuid, near=_here(asker))) is not None:
        return store.note(asker.grant, journal_id(conversation))
    return _titled(store, asker, named)


def _here(asker: Asker) -> MemoryPlace:
    return MemoryPlace(scope=Scope.PROJECT, project=asker.project)


def _uuid(named: str) -> str:
    """Return the uuid of a saved conversation from itself or from ``<agent>:<uuid>``, as answers cite it; else empty."""
    try:
        return conversation_uuid(named.rpartition(":")[2])
    except UsageError:
        return ""


def _titled(store: Store, asker: Asker, title: str) -> Note | None:
    match store.titled(asker.grant, title):
        case []:
            return None
        case [note]:
            return note
        case several:
            listed = "; ".join(f"{note.name} ({note.kind}, {note.project or note.scope}, {note.status})" for note in several)
            raise UsageError("several notes have this title", hint=plain_line(quoted(f"name one by its id: {listed}"), 600))


def _not_found() -> NoteNotFound:
    return NoteNotFound("there is no such note", hint="search_notes finds notes by their words; name one by the id it gives")


def _whole(store: Store, asker: Asker, note: Note, tokens: int) -> Json:
    seen = note_view.as_seen(note, asker.grant, note_view.seen_by(store, asker.grant))
    body = shortened(quoted(seen.body[: 4 * _BODY]), tokens=tokens, characters=_BODY)
    view = note_view.note_json(seen, asker.grant)
    head = " · ".join(filter(None, (view["title"], view["kind"], view["project"], f"{seen.created:%Y-%m-%d}", view["status"])))
    evidence = [plain_line(quoted(each)) for each in seen.evidence[:50]]
    return {
        **view,
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


def _recent(store: Store, local: LocalContext, asker: Asker, arguments: Arguments) -> Json:
    """List recent notes for a client, not for agents."""
    project, _ = around(asker, local, arguments)
    limit = arguments[LONG_LIMIT]
    notes, _ = note_view.bounded(
        [note_view.note_json(note, asker.grant) for note in store.recent(asker.grant, project, frozenset(), limit)],
        4 * note_view.LONGEST_TEXT,
    )
    return {"notes": notes}


def _remember(store: Store, local: LocalContext, gate: QualityGate, asker: Asker, arguments: Arguments) -> Json:
    """Write a note that can be found as soon as this returns. Kinds that only a person may write are refused."""
    text = argument_parsing.clean(arguments[TEXT]).strip()
    title = argument_parsing.clean(arguments[TITLE]).strip()
    if not text:
        raise UsageError("there is nothing to remember", hint="what is secret or marked as private is never kept")
    if why := gate.text(f"{title}\n{text}"):
        raise UsageError(f"this was not remembered: {why}", hint="say what is so, as a fact; people give instructions themselves")
    scope = arguments[SCOPE]
    project, _ = around(asker, local, arguments)
    place = place_of(asker, local, arguments, scope or (Scope.PROJECT if project else Scope.GLOBAL))
    said = Fact(title=title, body=text, evidence=(), importance=2, origin="assistant")
    heard, known = local.said_before(asker, place)
    note = store.remember(
        asker.grant,
        text,
        arguments[KIND] or NoteKind.FACT,
        place,
        by=argument_parsing.clean(asker.name),
        tags=arguments[TAGS],
        title=title,
        origin=gate.origin_of(said, heard, known),
    )
    return {"remembered": True, **note_view.note_json(note, asker.grant)}


def _forget(store: Store, asker: Asker, arguments: Arguments) -> Json:
    """Move a note to the vault's trash; it is never written again."""
    named = arguments[NOTE]
    note = _called(store, asker, named)
    if not store.forget(asker.grant, note.name if note is not None else named):
        raise _not_found()
    return {"forgotten": True, "note": plain_line(named), "project": plain_line(note.project) if note is not None else ""}


def _timeline(store: Store, local: LocalContext, asker: Asker, arguments: Arguments) -> Json:
    if local.timeline is None:
        raise _elsewhere()
    limit = arguments[LONG_LIMIT]
    named = arguments[A_SESSION]
    project = project_named(asker, local, arguments[PROJECT])
    if not named:
        sessions, left_out = note_view.bounded([_session(each) for each in _sessions(local.timeline, asker, project, limit)])
        return {"sessions": sessions, "left_out": left_out}
    cited = EvidenceReference.parse(named)
    chosen = _chosen(local.timeline, asker, project, f"{cited.provider}:{cited.session}" if cited else named)
    meant, after = f"{chosen}#{cited.event}" if cited else chosen, arguments[AFTER]
    with _errors_for_agents():
        answer = local.timeline(session=meant, most=limit, after=after, edges=False)
    if not asker.grant.sees(Scope.PROJECT, answer["session"]["project"]):
        raise _unknown()
    events, left_out = note_view.bounded([_event(each) for each in answer["events"]], note_view.LONGEST_TEXT - 4_000)
    notes = [note for each in answer["notes"][:20] if each["id"] and (note := store.note(asker.grant, each["id"])) is not None]
    return {
        "session": _session(answer["session"]),
        "events": events,
        "notes": [{"id": note.id, "title": plain_line(quoted(note.title))} for note in notes],
        "next": events[-1]["ordinal"] if left_out and events else answer["next"],
    }


def _resume(local: LocalContext, asker: Asker, arguments: Arguments) -> Json:
    if local.resume is None or local.timeline is None:
        raise _elsewhere()
    named = arguments[ANOTHER_SESSION]
    project = project_named(asker, local, arguments[PROJECT]) or asker.project
    if named:
        chosen = _chosen(local.timeline, asker, "", named)
    else:
        spoken = (each for each in _sessions(local.timeline, asker, project, _EVENTS) if each["prompts"])
        if (last := next(spoken, None)) is None:
            raise SessionUnknown("no session is known here", hint="timeline lists those there are")
        chosen = f"{last['provider']}:{last['id']}"
    with _errors_for_agents():
        brief = local.resume(session=chosen, tokens=arguments[BRIEF_TOKENS], **within(asker.grant, Scope.PROJECT))
    text = quoted(brief["text"])
    return {
        "session": _session(brief["session"]),
        "at": brief["at"],
        "text": note_view.framed("where a session stood, quoted from what happened in it", [text]),
        "tokens": estimated_tokens(text),
        "left_out": brief["left_out"],
    }


def _elsewhere() -> EventsElsewhere:
    return EventsElsewhere(
        "events stay on the machine where they happened; this bridge has the team's notes alone",
        hint="ask `kmem mcp` on that machine; here, get_context and smart_resume say what was decided and left open",
    )


@contextmanager
def _errors_for_agents() -> Iterator[None]:
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
            raise UsageError("several sessions begin so", hint="give more of the id")


def _session(session: Json) -> Json:
    """Return a session's entry in a list, without its folder."""
    shown = {name: session[name] for name in _OF_A_SESSION if name in session}
    return {name: plain_line(quoted(value)) if isinstance(value, str) else value for name, value in shown.items()}


_OF_A_SESSION = ("id", "provider", "project", "branch", "started", "title", "last", "prompts")
_EVENT_FIELDS = ("id", "ordinal", "at", "role", "type", "tool", "status", "reference")


def _event(event: Mapping[str, Any]) -> Json:
    long = {name: quoted(str(event[name])[:_EVENT_TEXT]) for name in ("text", "command", "path") if event.get(name)}
    fields = {name: event[name] for name in _EVENT_FIELDS if event.get(name) not in ("", None)}
    return {name: plain_line(quoted(value)) if isinstance(value, str) else value for name, value in fields.items()} | long


class SavingChecks(conversation_tools.QualityGate, Protocol):
    """Interface for checking what agents save and for distilling a transcript; see `distill.saving`."""

    def decompose(self, chunk: Chunk) -> tuple[Record, str]: ...


def all_tools(store: Store, local: LocalContext, *, saving: SavingChecks, age: Age) -> dict[str, Tool]:
    """Return all tools. ``age`` parses an age or a date as people write it."""
    return {
        **conversation_tools.tools(store, local, gate=saving, decompose=saving.decompose),
        **memory_tools.memory_tools(store, local),
        **local_state.tools(store, local),
        **memory_tools.resume_tools(store, local),
        **tools(store, local, gate=saving, age=age),
    }
