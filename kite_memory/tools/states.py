"""Working state: what an AI has in hand in a session. ai_state_save, ai_state_get, ai_state_transfer, ai_state_list.

What an AI saved is joined with the todos that its transcript shows: the newer of the two holds, and words that it saved stay.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from kite_memory.errors import UsageError
from kite_memory.model.scope import Scope
from kite_memory.redaction.cutting import beginning
from kite_memory.tools import argument_parsing, key_scope
from kite_memory.tools.access import Asker
from kite_memory.tools.bridge import Json, Tool
from kite_memory.tools.local_context import Near, within
from kite_memory.tools.store import State, Store, Todo

_FIELDS = frozenset({"todos", "working_notes", "context_summary"})
_MOST_TODOS = 100
_LONGEST_TODO = 500
_MOST_FIELDS = 12
_FIELD = re.compile(r"(?!(?:text|content|step)$)[A-Za-z_][\w-]{0,39}", re.ASCII)
_LONGEST_NOTES = 8_000
_LONGEST_SUMMARY = 8_000
_STATUSES = {
    "": "pending",
    "todo": "pending",
    "open": "pending",
    "not_started": "pending",
    "in-progress": "in_progress",
    "doing": "in_progress",
    "active": "in_progress",
    "done": "completed",
    "complete": "completed",
    "canceled": "cancelled",
    "deleted": "cancelled",
}
_CLIENTS = {
    "antigravity": "antigravity",
    "claude": "claude",
    "claude-ai": "claude",
    "claude-code": "claude",
    "claude-desktop": "claude",
    "cline": "cline",
    "codex": "codex",
    "codex-cli": "codex",
    "copilot": "copilot",
    "copilot-cli": "copilot",
    "cursor": "cursor",
    "cursor-agent": "cursor",
    "gemini": "gemini",
    "gemini-cli": "gemini",
    "github-copilot": "copilot",
    "roo": "roo",
    "roo-cline": "roo",
    "roo-code": "roo",
}
"""What one agent is called by its transcripts, by its MCP client, and by itself where it is asked who it is."""
_MODEL = re.compile(
    r"(claude|gemini)-(?:opus|sonnet|haiku|instant|\d)[\w.:@-]*|(?:gpt-[\d.]+-)?(codex)(?:-(?:mini|max|\d)[\w.:@-]*)?"
)
"""An agent that was asked who it is often names its model instead."""
_APART = re.compile(r"[\s_]+")
_KNOWN = frozenset({"pending", "in_progress", "completed", "cancelled", "blocked"})


def _now() -> datetime:
    return datetime.now(UTC)


def tools(store: Store, near: Near, *, clock: Callable[[], datetime] = _now) -> Mapping[str, Tool]:
    return {
        "ai_state_save": partial(_save, store, near, clock),
        "ai_state_get": partial(_get, store, near),
        "ai_state_transfer": partial(_transfer, store, near, clock),
        "ai_state_list": partial(_list, store, near),
    }


def _save(store: Store, near: Near, clock: Callable[[], datetime], asker: Asker, arguments: Json) -> Json:
    """What is not mentioned stays as it was saved before."""
    ai = _ai(asker, arguments)
    project, session = key_scope.around(asker, near, arguments)
    state = State(
        ai=ai,
        session=session,
        project=project,
        todos=_todos(arguments.get("todos", [])),
        working_notes=argument_parsing.clean(argument_parsing.text(arguments, "working_notes", longest=_LONGEST_NOTES)),
        context_summary=argument_parsing.clean(argument_parsing.text(arguments, "context_summary", longest=_LONGEST_SUMMARY)),
        saved=clock(),
    )
    mentioned = _FIELDS & arguments.keys()
    if not mentioned:
        raise UsageError("there is nothing to save", hint="give todos, working_notes or context_summary")
    return {"saved": True, **told(store.save_state(asker.grant, state, only=mentioned))}


def _get(store: Store, near: Near, asker: Asker, arguments: Json) -> Json:
    """Of the session that is named or asks; without one, where this AI was last in this project."""
    ai = _ai(asker, arguments)
    project, session = key_scope.around(asker, near, arguments)
    found = _of(states(store, near, asker, session=session, project="" if session else project), ai)
    return {"found": True, **told(found[0])} if found else {"found": False, "ai_id": ai, "session_id": session}


def _transfer(store: Store, near: Near, clock: Callable[[], datetime], asker: Asker, arguments: Json) -> Json:
    ai = _ai(asker, arguments)
    source = argument_parsing.line(arguments, "from_session", needed=True)
    target = argument_parsing.line(arguments, "to_session", needed=True)
    if source == target:
        raise UsageError("from_session and to_session are the same", hint="name the session that goes on")
    now = clock()
    moved = store.transfer_state(asker.grant, ai, from_session=source, to_session=target, at=now)
    if moved is None:
        seen = next(iter(_of(states(store, near, asker, session=source, project=""), ai)), None)
        if seen is None:
            hint = "nothing was saved by this AI in that session; ai_state_list tells what there is"
            return {"transferred": False, "ai_id": ai, "from_session": source, "hint": hint}
        moved = replace(seen, ai=ai, session=target, saved=now, transferred_from=source, transferred_at=now)
        store.save_state(asker.grant, moved)
    return {"transferred": True, **told(moved)}


def _list(store: Store, near: Near, asker: Asker, arguments: Json) -> Json:
    limit = argument_parsing.whole(arguments, "limit", least=1, most=argument_parsing.MOST_RESULTS, otherwise=20)
    ai = argument_parsing.clean(argument_parsing.line(arguments, "ai_id"))
    project = key_scope.project_named(asker, near, argument_parsing.line(arguments, "project", longest=1_024))
    session = argument_parsing.line(arguments, "session_id")
    there = states(store, near, asker, session=session, project=project or ("" if session else asker.project))
    found = _of(there, ai) if ai else there
    return {"states": [brief(state) for state in found[:limit]], "count": len(found[:limit]), "more": len(found) > limit}


def states(store: Store, near: Near, asker: Asker, *, session: str, project: str) -> list[State]:
    """What was saved and what transcripts show, newest first."""
    saved = store.states(asker.grant, session=session, project=project, limit=argument_parsing.MOST_RESULTS)
    shown: Sequence[State] = ()
    if near.working is not None and (session or project):
        looked_at = near.working(project, session, **within(asker.grant, Scope.SESSION))
        shown = [state for state in looked_at if asker.grant.sees(Scope.SESSION, state.project)]
    return joined(saved, shown)


def joined(saved: Sequence[State], shown: Sequence[State]) -> list[State]:
    """Of one session, a transcript's todos hold where they are newer than all that its AI has saved.

    They are joined with what was saved under its own name; only where nothing was, under another name of the same AI.
    """
    left = {(state.session, state.project): state for state in shown}
    own = {(state.session, state.ai.casefold()) for state in saved}
    both: list[State] = []
    for state in saved:
        theirs = [seen for seen in left.values() if seen.session == state.session and same_ai(state.ai, seen.ai)]
        seen = next(iter(_of(theirs, state.ai)), None)
        if seen is not None and (_called(seen, state.ai) or (seen.session, seen.ai.casefold()) not in own):
            del left[seen.session, seen.project]
            if seen.saved > state.saved or not state.todos:
                todos = tuple(_as_given(todo, state.todos) for todo in seen.todos)
                state = replace(state, todos=todos, saved=max(seen.saved, state.saved))
        both.append(state)
    return sorted((*both, *left.values()), key=lambda state: state.saved, reverse=True)


def _as_given(todo: Todo, saved: Sequence[Todo]) -> Todo:
    """With what its AI said of it when it was saved."""
    same = next((each for each in saved if each.text == todo.text), todo)
    return replace(same, status=todo.status)


def same_ai(one: str, other: str) -> bool:
    """«claude» and «claude-code» are one, and a known client is one with its models; two models, or names of one's own, are two."""
    if one.casefold() == other.casefold():
        return True
    first, second = (_APART.sub("-", name.strip().casefold()) for name in (one, other))
    client = _CLIENTS.get(first) or _CLIENTS.get(second)
    return client is not None and client == _agent(first) == _agent(second)


def _agent(name: str) -> str | None:
    model = _MODEL.fullmatch(name)
    return _CLIENTS.get(name) or (model and (model[1] or model[2])) or None


def _of(states: Iterable[State], ai: str) -> list[State]:
    """This AI's, in the order they come: those saved under exactly this name; only where none was, under another of its names."""
    states = list(states)
    return [state for state in states if _called(state, ai)] or [state for state in states if same_ai(state.ai, ai)]


def _called(state: State, ai: str) -> bool:
    return state.ai.casefold() == ai.casefold()


def _ai(asker: Asker, arguments: Json) -> str:
    ai = argument_parsing.clean(argument_parsing.line(arguments, "ai_id")) or asker.ai
    if not ai:
        raise UsageError("ai_id is missing", hint="say who you are, as in: claude-code, codex, gemini-cli")
    return ai


def _todos(value: object) -> tuple[Todo, ...]:
    if not isinstance(value, list):
        raise UsageError("todos are not a list", hint='as in: [{"text": "Write the test", "status": "in_progress"}]')
    if len(value) > _MOST_TODOS:
        raise UsageError("there are too many todos", hint=f"at most {_MOST_TODOS}")
    return tuple(todo for each in value if (todo := _todo(each)).text)


def _todo(value: object) -> Todo:
    status: object = ""
    named = "text"
    rest: Mapping[object, object] = {}
    match value:
        case str(text):
            pass
        case {"text": str(text), **rest}:
            status = rest.get("status", "")
        case {"content": str(text), **rest}:
            named, status = "content", rest.get("status", "")
        case {"step": str(text), **rest}:
            named, status = "step", rest.get("status", "")
        case _:
            raise UsageError("a todo is neither text nor an object with text", hint='as in: {"text": "Write the test"}')
    if len(text) > _LONGEST_TODO:
        raise UsageError("a todo is too long", hint=f"at most {_LONGEST_TODO} characters")
    if not isinstance(status, str):
        raise UsageError("a todo's status is not text", hint=f"one of: {', '.join(sorted(_KNOWN))}")
    plain = status.strip().casefold().replace(" ", "_")
    known = _STATUSES.get(plain, plain)
    if known not in _KNOWN:
        raise UsageError("a todo's status is none that is known", hint=f"one of: {', '.join(sorted(_KNOWN))}")
    return Todo(text=" ".join(argument_parsing.clean(text).split()), status=known, named=named, more=tuple(_more(rest)))


def _more(given_with: Mapping[object, object]) -> Iterator[tuple[str, str | int | float | bool | None]]:
    """What else is said of a todo, as ``activeForm`` or ``updated_at``: plain values, a few, and none of them long."""
    for name, value in list(given_with.items())[:_MOST_FIELDS]:
        if (
            isinstance(name, str)
            and name != "status"
            and _FIELD.fullmatch(name)
            and (value is None or isinstance(value, str | int | float | bool))
        ):
            yield (
                name,
                argument_parsing.clean(beginning(value, 2 * _LONGEST_TODO))[:_LONGEST_TODO] if isinstance(value, str) else value,
            )


def told(state: State) -> Json:
    moved = {"transferred_from": state.transferred_from, "transferred_at": _moment(state.transferred_at)}
    return {
        **brief(state),
        "todos": [{todo.named: todo.text, "status": todo.status, **dict(todo.more)} for todo in state.todos],
        "working_notes": state.working_notes,
        "context_summary": state.context_summary,
        **(moved if state.transferred_from else {}),
    }


def brief(state: State) -> Json:
    return {
        "ai_id": state.ai,
        "session_id": state.session,
        "project": state.project,
        "saved_at": state.saved.isoformat(),
        "open_todos": sum(todo.status in ("pending", "in_progress", "blocked") for todo in state.todos),
        "todo_count": len(state.todos),
    }


def _moment(at: datetime | None) -> str:
    return at.isoformat() if at else ""
