"""Tools for an AI's own memory: write_memory, read_memory, list_memories, delete_memory by key, and smart_resume.

smart_resume says what to know to continue the work, in at most five hundred tokens.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from kite_memory.errors import KiteError, UsageError
from kite_memory.model.note import NoteKind, NoteStatus, Scope
from kite_memory.recall.rendering import estimated_tokens
from kite_memory.system import utc_now
from kite_memory.text.quoting import plain_line, quoted, safe_json
from kite_memory.tools import argument_parsing, local_state
from kite_memory.tools.argument_parsing import is_pattern
from kite_memory.tools.arguments import (
    ANOTHER_SESSION,
    CONTEXT,
    EXPECTED,
    KEY,
    KEY_TO_READ,
    LONG_LIMIT,
    NOWHERE,
    PATTERN,
    PROJECT,
    RESUME_TOKENS,
    SCOPE,
    TAGS,
    TTL,
    VALUE,
    VALUES,
    Arguments,
    LocalContext,
    around,
    place_of,
    within,
)
from kite_memory.tools.declarations import Json, Tool
from kite_memory.tools.store import OWNER, Asker, JsonValue, Memory, MemoryQuery, State, Store, Todo

_PREVIEW = 200
_ROOM = 20_000
"""Characters of one answer; values beyond it are left out and named."""
_BESIDE = 500
"""Characters of these for what a list contains beside its memories."""


def memory_tools(store: Store, local: LocalContext, *, clock: Callable[[], datetime] = utc_now) -> Mapping[str, Tool]:
    return {
        "write_memory": partial(_write, store, local, clock),
        "read_memory": partial(_read, store, local),
        "list_memories": partial(_list, store, local),
        "delete_memory": partial(_delete, store, local),
    }


def _write(store: Store, local: LocalContext, clock: Callable[[], datetime], asker: Asker, arguments: Arguments) -> Json:
    memory = store.write_memory(
        asker.grant,
        arguments[KEY],
        arguments[VALUE],
        place_of(asker, local, arguments, arguments[SCOPE] or Scope.PROJECT),
        by=argument_parsing.clean(asker.name),
        tags=arguments[TAGS],
        expires=argument_parsing.ends(arguments[TTL], clock()),
        expected=arguments[EXPECTED],
        context=arguments[CONTEXT],
    )
    return {"written": True, **_without_value(memory)}


def _read(store: Store, local: LocalContext, asker: Asker, arguments: Arguments) -> Json:
    """Return memories: for a key, the nearest one with that name; for a pattern, or only tags or a scope, all that match."""
    several = KEY_TO_READ not in arguments
    if several and not (arguments[PATTERN] or arguments[TAGS] or arguments[SCOPE]):
        raise UsageError("key is missing", hint="as in: project.database; or give pattern, tags or scope")
    pattern = arguments[PATTERN] or "*" if several else arguments[KEY_TO_READ]
    if several or is_pattern(pattern):
        wanted = _wanted(asker, local, arguments, pattern, limit=argument_parsing.MOST_RESULTS + 1)
        return _results_json(store.memories(asker.grant, wanted, touch=True), argument_parsing.MOST_RESULTS)
    wanted = _wanted(asker, local, arguments, pattern, limit=1)
    looked_for = [wanted]
    if wanted.scope is Scope.SHARED and not arguments[PROJECT]:  # the default scope of write_memory comes first
        looked_for.insert(0, replace(wanted, project=NOWHERE))
    found = next(filter(None, (store.memories(asker.grant, each, touch=True) for each in looked_for)), None)
    return {"found": True, **_with_value(found[0])} if found else {"found": False, "key": pattern}


def _list(store: Store, local: LocalContext, asker: Asker, arguments: Arguments) -> Json:
    limit = arguments[LONG_LIMIT]
    found = store.memories(asker.grant, _wanted(asker, local, arguments, arguments[PATTERN] or "*", limit=limit + 1))
    entries: list[Json] = []
    room = _ROOM - _BESIDE
    for memory in found[:limit]:
        beginning = {**_without_value(memory), "preview": preview(memory.value)}
        if arguments[VALUES] and len(safe_json(whole := _with_value(memory))) < room:
            beginning = whole
        room -= len(safe_json(beginning)) + 1
        if room < 0:
            break
        entries.append(beginning)
    hint = {"hint": "there is no room for all of these; narrow it by pattern, scope or tags"} if room < 0 else {}
    return {"memories": entries, "count": len(entries), "more": len(found) > len(entries), **hint}


def _delete(store: Store, local: LocalContext, asker: Asker, arguments: Arguments) -> Json:
    key, scope = arguments[KEY], arguments[SCOPE] or Scope.PROJECT
    place = place_of(asker, local, arguments, scope)
    return {"deleted": store.delete_memory(asker.grant, key, place), "key": key, "scope": scope.value}


def _wanted(asker: Asker, local: LocalContext, arguments: Arguments, pattern: str, *, limit: int) -> MemoryQuery:
    """Return the query. Memories of a project or session are searched in the caller's own; if that is unknown, none is found."""
    scope = arguments[SCOPE]
    project, session = around(asker, local, arguments)
    if scope is not None:
        place_of(asker, local, arguments, scope)  # raises with the missing argument
    return MemoryQuery(
        pattern=pattern,
        scope=scope,
        project=project or NOWHERE,
        session=session or NOWHERE,
        tags=arguments[TAGS],
        limit=limit,
    )


def _results_json(found: list[Memory], most: int) -> Json:
    """Return as many values as fit; the others are named."""
    room = _ROOM
    memories: list[Json] = []
    left_out: list[str] = []
    for memory in found[:most]:
        entry = _with_value(memory)
        length = len(safe_json(entry))
        if length > room:
            left_out.append(memory.key)
        else:
            memories.append(entry)
            room -= length
    return {
        "found": bool(found),
        "memories": memories,
        "count": min(len(found), most),
        "more": len(found) > most,
        **({"left_out": left_out, "hint": "read these one by one"} if left_out else {}),
    }


def _with_value(memory: Memory) -> Json:
    return {**_without_value(memory), "value": memory.value}


def _without_value(memory: Memory) -> Json:
    place = memory.place
    entry: Json = {
        "key": memory.key,
        "scope": place.scope.value,
        "project": place.project,
        "session_id": place.session,
        "version": memory.version,
        "tags": list(memory.tags),
        "id": memory.id,
        "created_by": memory.created_by,
        "created_at": memory.created.isoformat(),
        "updated_at": memory.updated.isoformat(),
        "accessed_at": memory.accessed.isoformat() if memory.accessed else "",
        "access_count": memory.access_count,
        "expires_at": memory.expires.isoformat() if memory.expires else "",
        "context": dict(memory.context),
    }
    return {name: value for name, value in entry.items() if value not in ("", [], {})}


def preview(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(text[: 8 * _PREVIEW].split())
    return plain_line(quoted(line), _PREVIEW)


_LEAST_TOKENS = 100
_NAMESPACES = ("current", "project", "shared")
_MEMORIES = 8
"""Memories of a namespace; list_memories returns the rest."""
_DECISIONS = 4
_TODOS = 4
_STATES = 2
_LINE = 200
_VALUE = 120
_WHOLE_VALUE = 400
"""Most characters of a value that is returned whole."""
_NAME = 60
_CURRENT = 2
_FORGOTTEN = timedelta(days=14)
_NEVER = datetime.min.replace(tzinfo=UTC)
_MATTERS = ("doing", "failed", "verify", "open", "changed", "stable")
_SAID = {
    "doing": "",
    "failed": "failed and not seen to go well since: ",
    "verify": "to verify: ",
    "open": "open: ",
    "changed": "",
    "stable": "last stable: ",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefingPart:
    """Lines under a heading, the weightiest first."""

    heading: str
    lines: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """The text of a briefing. ``kept`` are the memories that fit."""

    text: str
    kept: tuple[Memory, ...]


def resume_tools(store: Store, local: LocalContext, *, clock: Callable[[], datetime] = utc_now) -> Mapping[str, Tool]:
    return {"smart_resume": partial(_smart_resume, store, local, clock)}


def _smart_resume(store: Store, local: LocalContext, clock: Callable[[], datetime], asker: Asker, arguments: Arguments) -> Json:
    project, _ = around(asker, local, arguments)
    session = arguments[ANOTHER_SESSION]
    found = local_state.states(store, local, asker, session=session, project="" if session else project)
    there = local_state.of_project(found, project)
    memories = [memory for name in _NAMESPACES for memory in _memories(store, asker, name, project, session or asker.session)]
    last = _last_session(local, asker, project, session)
    parts = (
        BriefingPart(heading="Where it stands", lines=tuple(_newest(memories))),
        BriefingPart(heading="To do", lines=tuple(state_lines(there, clock()))),
        last,
        BriefingPart(heading="Decided lately", lines=tuple(_decided(store, asker, project))),
    )
    head = f"Resuming {plain_line(quoted(project), 80)}." if project else "Resuming."
    if session and not (there or last.lines):
        head += " No session of that id is known; timeline lists those there are."
    elif not memories and not any(part.lines for part in parts):
        head += " Nothing is known of it yet."
    made = briefing(head, parts, memories, tokens=arguments[RESUME_TOKENS])
    answer: Json = {"briefing": made.text, "context": context(made.kept)}
    return {**answer, "token_count": cost(answer), "project": project}


def cost(answer: Json) -> int:
    return estimated_tokens(json.dumps(answer, ensure_ascii=False))


def context(memories: Sequence[Memory]) -> Json:
    return {
        name: {plain_line(quoted(each.key)): _safe_value(each.value) for each in memories if _namespace(each) == name}
        for name in sorted(_NAMESPACES)
    }


def briefing(head: str, parts: Sequence[BriefingPart], memories: Sequence[Memory], *, tokens: int) -> Briefing:
    """Return as much as fits: the weightiest of every part and of the memories first, then the next of each in turn.

    The cost is measured on the whole answer as it is sent.
    """
    chosen: list[list[str]] = [[] for _ in parts]
    kept: list[Memory] = []

    def answer() -> Json:
        return {"briefing": _text(head, parts, chosen), "context": context(kept)}

    turns = max([len(memories), *(len(part.lines) for part in parts)], default=0)
    for turn in range(turns):
        for place, part in enumerate(parts):
            if turn < len(part.lines):
                chosen[place].append(part.lines[turn])
                if cost(answer()) > tokens:
                    chosen[place].pop()
        if turn < len(memories):
            kept.append(memories[turn])
            if cost(answer()) > tokens:
                kept.pop()
    return Briefing(text=_text(head, parts, chosen), kept=tuple(kept))


def _text(head: str, parts: Sequence[BriefingPart], chosen: Sequence[Sequence[str]]) -> str:
    lines = [head]
    for part, some in zip(parts, chosen, strict=True):
        if some:
            lines += [f"{part.heading}:", *(f"- {line}" for line in some)]
    return "\n".join(lines)


def state_lines(there: Sequence[State], now: datetime) -> Iterator[str]:
    """Yield open todos and notes of saved states; those older than two weeks, handed over to another session, or without anything
    left, are omitted.
    """
    handed_over = {(state.ai, state.transferred_from): state.saved for state in there if state.transferred_from}
    standing = (state for state in there if state.saved > handed_over.get((state.ai, state.session), _NEVER))
    lately = [state for state in standing if now - state.saved <= _FORGOTTEN]
    telling = [state for state in lately if _left(state) or state.context_summary or state.working_notes]
    for state in telling[:_STATES]:
        done = sum(todo.status == "completed" for todo in state.todos)
        left = _left(state)
        who = f"{plain_line(quoted(state.ai), 40)}, {state.saved:%Y-%m-%d %H:%M}"
        if left:
            first = "in progress" if left[0].status == "in_progress" else "next"
            yield f"{who}: {done} of {len(state.todos)} done; {first}: {_cut(left[0].text)}"
            for todo in left[1:_TODOS]:
                yield f"{todo.status.replace('_', ' ')}: {_cut(todo.text)}"
        if state.context_summary:
            yield f"{who}, in short: {_cut(state.context_summary)}"
        if state.working_notes:
            yield f"{who}, noted: {_cut(state.working_notes)}"


def left_to_do(
    store: Store, local: LocalContext, project: str, session: str, *, clock: Callable[[], datetime] = utc_now
) -> list[str]:
    """Return what agents had in progress in a session or in a project's last sessions, for the owner of this machine."""
    there = local_state.states(store, local, Asker(grant=OWNER), session=session, project="" if session else project)
    return list(state_lines(there, clock()))


def _left(state: State) -> list[Todo]:
    """Return open todos, those in progress first."""
    left = [todo for todo in state.todos if todo.status in ("in_progress", "pending", "blocked")]
    return sorted(left, key=lambda todo: todo.status != "in_progress")


def _memories(store: Store, asker: Asker, name: str, project: str, session: str) -> list[Memory]:
    """Return the memories under ``name.`` of this project and session and of none, newest first."""
    return store.memories(
        asker.grant,
        MemoryQuery(
            pattern=f"{name}.*",
            project=project or NOWHERE,
            session=session or NOWHERE,
            limit=_MEMORIES,
            newest=True,
        ),
    )


def _namespace(memory: Memory) -> str:
    return memory.key.partition(".")[0]


def _safe_value(value: JsonValue) -> JsonValue:
    """Return the value with its texts quoted, or the beginning of a long one."""
    if not isinstance(value, str) and len(json.dumps(value, ensure_ascii=False)) <= _WHOLE_VALUE:
        return _quoted(value)
    return plain_line(quoted(preview(value)), _VALUE)


def _quoted(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return plain_line(quoted(value), _WHOLE_VALUE)
        case list():
            return [_quoted(each) for each in value]
        case dict():
            return {plain_line(quoted(name), _NAME): _quoted(each) for name, each in value.items()}
        case _:
            return value


def in_words(value: JsonValue) -> str:
    """Describe a saved state in words: "70 % through auth refactoring; next: add tests"."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    left = {_SPACED.sub("_", name).strip("_").lower(): each for name, each in value.items()}
    said: list[str] = []

    def take(names: Sequence[str]) -> JsonValue:
        return next((left.pop(name) for name in names if left.get(name) not in (None, "", [], {})), None)

    task, progress = _flat(take(_TASK)), _percent(take(_PROGRESS))
    if task or progress:
        said.append(f"{progress} through {task}" if task and progress else task or f"{progress} done")
    for words, names in (("status", _STATUS), ("next", _NEXT), ("blocked by", _BLOCKED)):
        if (taken := take(names)) is not None:
            said.append(f"{words}: {_flat(taken)}")
    said += [f"{name.replace('_', ' ')}: {_flat(each)}" for name, each in left.items() if each not in (None, "", [], {})]
    return "; ".join(said)


_SPACED = re.compile(r"[\s-]+|(?<=[a-z])(?=[A-Z])")
_TASK = ("task", "current_task", "doing", "working_on", "feature", "goal", "what", "title", "name", "focus")
_PROGRESS = ("progress", "percent", "percentage", "completion", "complete", "done")
_STATUS = ("status", "state", "phase", "stage")
_NEXT = ("next", "next_step", "next_steps", "todo", "todos", "remaining", "then")
_BLOCKED = ("blocked", "blocked_by", "blocker", "blockers", "waiting_for")


def _percent(value: JsonValue) -> str:
    match value:
        case bool() | None:
            return ""
        case int() | float() if 0 < value < 1 or (value == 1.0 and isinstance(value, float)):
            return f"{value * 100:.0f} %"
        case int() | float():
            return f"{value:.0f} %"
        case str() if re.fullmatch(r"\d{1,3}(?:\.\d+)?\s*%?", value.strip()):
            return f"{value.strip().rstrip('% ')} %"
        case _:
            return _flat(value)


def _flat(value: JsonValue) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case list():
            return ", ".join(map(_flat, value))
        case dict():
            return in_words(value)
        case _:
            return json.dumps(value)


def _newest(memories: Sequence[Memory]) -> Iterator[str]:
    """Yield the memories under ``current.``, newest first and in words."""
    current = sorted((each for each in memories if _namespace(each) == _NAMESPACES[0]), key=lambda each: each.updated, reverse=True)
    for each in current[:_CURRENT]:
        if said := in_words(each.value):
            yield f"{plain_line(quoted(each.key), 60)}, {each.updated:%Y-%m-%d %H:%M}: {_cut(said)}"


def _last_session(local: LocalContext, asker: Asker, project: str, session: str) -> BriefingPart:
    """Return the last session as `kmem resume` does, limited to what the caller may see."""
    nothing = BriefingPart(heading="", lines=())
    if local.resume is None or not (project or session or asker.grant.whole):
        return nothing
    if not session and not asker.grant.sees(Scope.PROJECT, project):
        return nothing
    try:
        brief = local.resume(cwd=project, session=session, **within(asker.grant, Scope.PROJECT))
    except KiteError:  # no session there, or an unknown project
        return nothing
    of = brief["session"]
    if not asker.grant.sees(Scope.PROJECT, of["project"]):
        return nothing
    by_part = [[line for line in brief["lines"] if line["part"] == part] for part in _MATTERS]
    in_turn = [lines[turn] for turn in range(max(map(len, by_part))) for lines in by_part if turn < len(lines)]
    return BriefingPart(
        heading=f"Last session ({of['provider']}:{of['id'][:8]}, {brief['at'][:16].replace('T', ' ')} UTC)",
        lines=tuple(f"{_SAID[line['part']]}{_cut(line['text'])}" for line in in_turn),
    )


def _decided(store: Store, asker: Asker, project: str) -> Iterator[str]:
    if not project:
        return
    for note in store.recent(asker.grant, project, frozenset({NoteKind.DECISION}), 3 * _DECISIONS):
        if note.status is NoteStatus.ACCEPTED and not note.superseded_by:
            yield f"{note.created:%Y-%m-%d}: {_cut(note.title)}"


def _cut(text: str) -> str:
    return plain_line(quoted(plain_line(text, _LINE)), _LINE)
