"""smart_resume: what somebody who takes up the work must know, in at most five hundred tokens, all told."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from kite_memory.bridge import given, places, states
from kite_memory.bridge.access import OWNER, Asker
from kite_memory.bridge.bridge import Json, Tool
from kite_memory.bridge.memories import preview
from kite_memory.bridge.near import Near, within
from kite_memory.bridge.store import Memory, State, Store, Todo, Wanted
from kite_memory.errors import KiteError
from kite_memory.model.note import NoteKind, NoteStatus
from kite_memory.model.scope import Scope
from kite_memory.recall.rendering import estimated_tokens, plain_line, quoted

MOST_TOKENS = 500
_LEAST_TOKENS = 100
_NAMESPACES = ("current", "project", "shared")
_MEMORIES = 8
"""Of a namespace: the rest is for list_memories."""
_DECISIONS = 4
_TODOS = 4
_STATES = 2
_LINE = 200
_VALUE = 120
_FORGOTTEN = timedelta(days=14)
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
class Part:
    """Lines under a heading, the weightiest first."""

    heading: str
    lines: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """``kept`` are those of the memories that there was room for."""

    text: str
    kept: tuple[Memory, ...]


def _now() -> datetime:
    return datetime.now(UTC)


def tools(store: Store, near: Near, *, clock: Callable[[], datetime] = _now) -> Mapping[str, Tool]:
    return {"smart_resume": partial(_smart_resume, store, near, clock)}


def _smart_resume(store: Store, near: Near, clock: Callable[[], datetime], asker: Asker, arguments: Json) -> Json:
    arguments = given.renamed(arguments)
    project, _ = places.around(asker, near, arguments)
    session = given.line(arguments, "session_id")
    tokens = given.whole(arguments, "token_budget", least=_LEAST_TOKENS, most=MOST_TOKENS, otherwise=MOST_TOKENS)
    there = states.states(store, near, asker, session=session, project="" if session else project)
    memories = [memory for name in _NAMESPACES for memory in _memories(store, asker, name, project, session or asker.session)]
    last = _last_session(near, asker, project, session)
    parts = (
        Part(heading="To do", lines=tuple(state_lines(there, clock()))),
        last,
        Part(heading="Decided lately", lines=tuple(_decided(store, asker, project))),
    )
    head = f"Resuming {plain_line(quoted(project), 80)}." if project else "Resuming."
    if session and not (there or last.lines):
        head += " No session of that id is known; timeline lists those there are."
    elif not memories and not any(part.lines for part in parts):
        head += " Nothing is known of it yet."
    made = briefing(head, parts, memories, tokens=tokens)
    answer: Json = {"briefing": made.text, "context": context(made.kept)}
    return {**answer, "token_count": cost(answer), "project": project}


def cost(answer: Json) -> int:
    return estimated_tokens(json.dumps(answer, ensure_ascii=False))


def context(memories: Sequence[Memory]) -> Json:
    return {
        name: {plain_line(quoted(each.key)): _told(each) for each in memories if _namespace(each) == name}
        for name in sorted(_NAMESPACES)
    }


def briefing(head: str, parts: Sequence[Part], memories: Sequence[Memory], *, tokens: int) -> Briefing:
    """As much as there is room for: of every part and of the memories the weightiest first, then the next of each in turn.

    What it costs is asked of the whole answer, as it goes out.
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


def _text(head: str, parts: Sequence[Part], chosen: Sequence[Sequence[str]]) -> str:
    lines = [head]
    for part, some in zip(parts, chosen, strict=True):
        if some:
            lines += [f"{part.heading}:", *(f"- {line}" for line in some)]
    return "\n".join(lines)


def state_lines(there: Sequence[State], now: datetime, *, most: int = _STATES) -> Iterator[str]:
    """What is left to do, and what was noted about it; nothing of what is more than two weeks old, nor all done."""
    lately = [state for state in there if now - state.saved <= _FORGOTTEN]
    telling = [state for state in lately if _left(state) or state.context_summary or state.working_notes]
    for state in telling[:most]:
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


def left_to_do(store: Store, near: Near, project: str, session: str, *, clock: Callable[[], datetime] = _now) -> list[str]:
    """For the owner of this machine: what agents had in hand in a session, or in a project's last ones."""
    there = states.states(store, near, Asker(grant=OWNER), session=session, project="" if session else project)
    return list(state_lines(there, clock()))


def _left(state: State) -> list[Todo]:
    """What is in hand first."""
    left = [todo for todo in state.todos if todo.status in ("in_progress", "pending", "blocked")]
    return sorted(left, key=lambda todo: todo.status != "in_progress")


def _memories(store: Store, asker: Asker, name: str, project: str, session: str) -> list[Memory]:
    """Those under ``name.``, of this project and session and of none, the newest first."""
    return store.memories(
        asker.grant,
        Wanted(
            pattern=f"{name}.*",
            project=project or places.NOWHERE,
            session=session or places.NOWHERE,
            limit=_MEMORIES,
            newest=True,
        ),
    )


def _namespace(memory: Memory) -> str:
    return memory.key.partition(".")[0]


def _told(memory: Memory) -> str:
    return plain_line(quoted(preview(memory.value)), _VALUE)


def _last_session(near: Near, asker: Asker, project: str, session: str) -> Part:
    """As `kmem resume` tells it; of what the asker may see."""
    nothing = Part(heading="", lines=())
    if near.resume is None or not (project or session or asker.grant.whole):
        return nothing
    if not session and not asker.grant.sees(Scope.PROJECT, project):
        return nothing
    try:
        told = near.resume(cwd=project, session=session, **within(asker.grant, Scope.PROJECT))
    except KiteError:  # nothing was done there yet, or it is not known
        return nothing
    of = told["session"]
    if not asker.grant.sees(Scope.PROJECT, of["project"]):
        return nothing
    by_part = [[line for line in told["lines"] if line["part"] == part] for part in _MATTERS]
    in_turn = [lines[turn] for turn in range(max(map(len, by_part))) for lines in by_part if turn < len(lines)]
    return Part(
        heading=f"Last session ({of['provider']}:{of['id'][:8]}, {told['at'][:16].replace('T', ' ')} UTC)",
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
