"""The table of the tools, and their performing by name: JSON arguments in, a JSON object out, over any store.

`kmem mcp` and `kmem serve` declare the tools by it. A call goes as JSON between the process that serves MCP and the one that
holds the store; an error is raised again there as its own class.
"""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kite_memory.errors import KiteError, NoteNotFound, NotFound, UsageError
from kite_memory.model.note import Scope
from kite_memory.redaction import redact_id
from kite_memory.tools.arguments import (
    A_SESSION,
    AFTER,
    AI,
    ANOTHER_SESSION,
    ARGUMENTS,
    BRIEF_TOKENS,
    CONTEXT,
    CONTEXT_HIDDEN,
    CONTEXT_SUMMARY,
    CONTEXT_TOKENS,
    EXPECTED,
    FROM_SESSION,
    HIT_LIMIT,
    IN_CONTEXT,
    KEY,
    KEY_TO_READ,
    KIND,
    KINDS,
    LONG_LIMIT,
    NOTE,
    NOTES,
    OF_A_RECORD,
    OFFSET,
    PATTERN,
    PROJECT,
    QUERY,
    RECORD_LIMIT,
    RESUME_TOKENS,
    SCOPE,
    SESSION,
    SINCE,
    STATE_LIMIT,
    TAGS,
    TEXT,
    TITLE,
    TO_SESSION,
    TODOS,
    TOOL,
    TRANSCRIPT,
    TTL,
    VALUE,
    VALUES,
    WORKING_NOTES,
    Argument,
    Arguments,
    Schema,
)
from kite_memory.tools.store import OWNER, Asker, Conflict, Grant, NotAllowed, StoreUnavailable, Unsure

Json = dict[str, Any]
Perform = Callable[[str, Json, Asker], Json]
"""`ToolDispatcher.perform`, in this process or another. Raises `KiteError`."""

_KINDS: dict[str, type[KiteError]] = {
    "not_allowed": NotAllowed,
    "not_found": NoteNotFound,
    "unsure": Unsure,
    "unavailable": StoreUnavailable,
    "usage": UsageError,
}
_LONG_NUMBER = re.compile(r"\d{19}")
OTHER_VERSION = "kmem and its daemon may be of different versions: `kmem down`, then `kmem up`, restarts it"
"""Hint for a request that one version sends and another does not understand."""


def request_body(tool: str, arguments: Json, asker: Asker) -> bytes:
    """Return the body of a request. Raises `UsageError` for what JSON cannot express."""
    grant = asker.grant
    identity: Json = {"project": asker.project, "session": asker.session, "ai": asker.ai}
    if grant != OWNER:
        identity["grant"] = {
            "name": grant.name,
            "write": grant.write,
            "scopes": None if grant.scopes is None else sorted(grant.scopes),
            "projects": None if grant.projects is None else sorted(grant.projects),
            "person": grant.person or "",
        }
    try:
        body = json.dumps({"tool": tool, "arguments": arguments, "asker": identity}, ensure_ascii=False, allow_nan=False)
        if _LONG_NUMBER.search(body):
            json.loads(body, parse_int=_fitting)
        return body.encode("utf-8", "replace")  # an unpaired surrogate becomes a question mark
    except (ValueError, RecursionError) as error:  # faster JSON writers would silently write null
        raise UsageError("NaN, Infinity and very deep nesting are not JSON", hint="write null, or the number as text") from error


def _fitting(digits: str) -> int:
    """Parse an integer, or raise `UsageError` beyond 64 bits: faster JSON parsers would turn it into a fraction."""
    number = int(digits)
    if not -(1 << 63) <= number < 1 << 64:
        raise UsageError("a number is too large", hint="give it as text")
    return number


def perform(performs: Perform, tool: str, arguments: Json, asker: Json) -> Json:
    """Perform the call and return ``{"result": …}`` or ``{"error": …}``. Raises `UsageError` for an invalid asker."""
    speaks = _asker(asker)
    try:
        return {"result": performs(tool, arguments, speaks)}
    except KiteError as error:
        return {"error": error_json(error)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCall:
    """A call that has ended. ``outcome`` is "ok" or the kind of its error, after which ``result`` is empty."""

    tool: str
    arguments: Json
    asker: Asker
    result: Json
    outcome: str
    at: datetime
    seconds: float


def observed(perform: Perform, note: Callable[[FinishedCall], None]) -> Perform:
    """Return the operation with each call passed to ``note`` as soon as it has ended."""

    def performed(tool: str, arguments: Json, asker: Asker) -> Json:
        at, began, outcome, result = datetime.now(UTC), time.perf_counter(), "failed: a bug", {}
        try:
            result = perform(tool, arguments, asker)
            outcome = "ok"
            return result
        except KiteError as error:
            outcome = _kind(error)
            raise
        finally:
            took = time.perf_counter() - began
            note(FinishedCall(tool=tool, arguments=arguments, asker=asker, result=result, outcome=outcome, at=at, seconds=took))

    return performed


def result_of(answer: Json) -> Json:
    """Return the result, or raise the error that `perform` caught."""
    match answer:
        case {"result": dict(result)}:
            return result
        case {"error": {"kind": str(kind), "message": str(message), "hint": str(hint), **rest}}:
            if kind == "conflict" and isinstance(version := rest.get("version"), int):
                raise Conflict(message, version=version, hint=hint)
            raise _KINDS.get(kind, KiteError)(message, hint=hint)
        case _:
            raise KiteError("the daemon gave no proper answer", hint=OTHER_VERSION)


def error_json(error: KiteError) -> Json:
    details: Json = {"kind": _kind(error), "message": str(error), "hint": error.hint}
    if isinstance(error, Conflict):
        details["version"] = error.version
    return details


def _kind(error: KiteError) -> str:
    if isinstance(error, Conflict):
        return "conflict"
    if isinstance(error, NotFound):
        return "not_found"
    return next((kind for kind, each in _KINDS.items() if isinstance(error, each)), "failed")


def _asker(sent: Json) -> Asker:
    match sent:
        case {"project": str(project), "session": str(session), "ai": str(ai)}:
            return Asker(grant=_grant(sent.get("grant")), project=project, session=redact_id(session), ai=ai)
        case _:
            raise UsageError("the request does not say who asks", hint=OTHER_VERSION)


def _grant(sent: object) -> Grant:
    """Parse a grant. Raises `UsageError` for what cannot be read, so a grant is never widened."""
    match sent:
        case None:
            return OWNER
        case {
            "name": str(name),
            "write": bool(write),
            "scopes": None | list() as scopes,
            "projects": None | list() as projects,
            "person": str(person),
        }:
            try:
                return Grant(
                    name=name,
                    write=write,
                    scopes=None if scopes is None else frozenset(map(Scope, scopes)),
                    projects=None if projects is None else frozenset(map(str, projects)),
                    person=person,
                )
            except ValueError as error:
                raise UsageError(f"a grant of this kind is not known: {error}", hint=OTHER_VERSION) from error
        case _:
            raise UsageError("a grant of this kind is not known", hint=OTHER_VERSION)


_TEXT_LIMIT = 20_000
_WHOLE = 300_000
"""Limit for results that were requested by name and are needed whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A declared tool.

    ``daily`` tools are listed by default, the others on demand. ``loaded`` asks agents that load tools on demand to keep this one
    loaded. A tool that is ``open`` accepts arguments of other names too. ``longest`` is the limit of its result, in characters.
    """

    name: str
    title: str
    description: str
    takes: tuple[Argument[Any], ...] = ()
    aliases: tuple[str, ...] = ()
    reads: bool = False
    destroys: bool = False
    repeatable: bool = False
    daily: bool = False
    loaded: bool = False
    open: bool = False
    longest: int = _TEXT_LIMIT

    @property
    def known(self) -> tuple[str, ...]:
        return tuple(argument.name for argument in self.takes if not argument.hidden)

    @property
    def schema(self) -> Schema:
        """The JSON schema of the arguments."""
        schema = {"type": "object", "properties": {each.name: each.schema for each in self.takes if not each.hidden}}
        required = [argument.name for argument in self.takes if argument.needed]
        return {**schema, "required": required} if required else schema

    def parsed(self, given: Mapping[str, Any]) -> Arguments:
        """Check and convert what was given. Raises `UsageError` with what is valid."""
        completed = self.named(given)
        by_name = {argument.name: argument for argument in self.takes}
        if not self.open and (unknown := [name for name in completed if name not in by_name]):
            raise UsageError(f"{self.name} takes no {unknown[0]!r:.80}", hint=f"it takes: {', '.join(self.known) or 'nothing'}")
        if missing := [argument for argument in self.takes if argument.needed and argument.name not in completed]:
            raise UsageError(f"{self.name} needs {missing[0].name!r}", hint=missing[0].hint or f"it takes: {', '.join(self.known)}")
        parsed = {
            name: argument.parse(completed[name]) if name in completed else argument.default for name, argument in by_name.items()
        }
        return Arguments(parsed, completed)

    def named(self, given: Mapping[str, Any]) -> Json:
        """Return what was given under the arguments' own names, unchecked."""
        return self._completed(self._renamed(given))

    def _renamed(self, given: Mapping[str, Any]) -> Json:
        """Return what was given under the arguments' own names, without nulls. If two names are given, the argument's own wins."""
        own = {alias: argument.name for argument in self.takes for alias in argument.aliases}
        nullable = {argument.name for argument in self.takes if argument.nullable}
        present = {name: value for name, value in given.items() if value is not None or name in nullable}
        older = {own[name]: value for name, value in present.items() if name in own}
        return {**older, **{name: value for name, value in present.items() if name not in own}}

    def _completed(self, given: Json) -> Json:
        """Return the arguments with those that are given in ``context``; what remains there is kept beside the value."""
        context = given.get(CONTEXT.name)
        if not isinstance(context, dict):
            return given
        meant = {name: argument.name for argument in IN_CONTEXT for name in (argument.name, *argument.aliases)}
        taken = {argument.name for argument in self.takes}
        named = {name: value for name, value in context.items() if value is not None and meant.get(name) in taken}
        rest = {name: value for name, value in context.items() if name not in meant}
        return {**{meant[name]: value for name, value in named.items()}, **given, CONTEXT.name: rest}


_CONVERSATIONS = (
    ToolSpec(
        name="generate_conversation_id",
        aliases=("generate-conversation-id",),
        title="Make a conversation id",
        description="Make the id for save_conversation, once for each conversation. Saves nothing itself.",
        reads=True,
        daily=True,
    ),
    ToolSpec(
        name="get_context",
        aliases=("get-context",),
        title="Get context from earlier work",
        description=(
            "What is already known about a subject from earlier sessions, of any agent: decisions with their reasons, rejected "
            "approaches, open questions. Call it at the start of a task and whenever the person refers to earlier work. For single "
            "notes and passages use search_notes; for where the last session stopped, smart_resume."
        ),
        takes=(QUERY, PROJECT, RECORD_LIMIT, CONTEXT_TOKENS),
        reads=True,
        daily=True,
        loaded=True,
        longest=80_000,
    ),
    ToolSpec(
        name="save_conversation",
        aliases=("save-conversation",),
        title="Save what came of a conversation",
        description=(
            "Save what this conversation decided and found out, for later sessions and other agents. Call it when a piece of work "
            "is done and before you end. Saving again under the same id updates it. With full_transcript alone, the record is made "
            "from it. What is too vague to keep comes back under refused with the reason."
        ),
        takes=OF_A_RECORD,
        open=True,
        repeatable=True,
        daily=True,
        loaded=True,
    ),
)

_MEMORIES = (
    ToolSpec(
        name="write_memory",
        title="Write a memory by key",
        description=(
            "Keep a value under a key, to be read by that key by any agent: settings, states, facts that change. For free text use "
            "remember. Writing again replaces it and keeps old versions. With expected_version nothing is written if somebody else "
            "has written since."
        ),
        takes=(KEY, VALUE, SCOPE, PROJECT, SESSION, TTL, TAGS, EXPECTED, CONTEXT),
        repeatable=True,
        daily=True,
    ),
    ToolSpec(
        name="read_memory",
        title="Read memories by key",
        description=(
            "Read the value under a key, or all that match a pattern or tags. Without a scope the nearest is read: session, "
            "project, shared, global."
        ),
        takes=(KEY_TO_READ, PATTERN, SCOPE, TAGS, PROJECT, SESSION, CONTEXT_HIDDEN),
        reads=True,
        daily=True,
        longest=_WHOLE,
    ),
    ToolSpec(
        name="list_memories",
        title="List memories",
        description="Which keys there are, newest version and times, and how their values begin; narrowed by pattern or tags.",
        takes=(PATTERN, TAGS, SCOPE, PROJECT, SESSION, VALUES, LONG_LIMIT, CONTEXT_HIDDEN),
        reads=True,
    ),
    ToolSpec(
        name="delete_memory",
        title="Delete a memory by key",
        description="Move the memory under exactly this key to the trash of the person's vault.",
        takes=(KEY, SCOPE, PROJECT, SESSION, CONTEXT_HIDDEN),
        destroys=True,
        repeatable=True,
    ),
    ToolSpec(
        name="smart_resume",
        title="Resume where work stopped",
        description=(
            "A briefing of at most 500 tokens: what was being done last in this project, by any agent, what failed, what is open. "
            "Call it first when a session begins or the person says to go on."
        ),
        takes=(PROJECT, ANOTHER_SESSION, RESUME_TOKENS),
        reads=True,
        daily=True,
        loaded=True,
    ),
)

_STATES = (
    ToolSpec(
        name="ai_state_save",
        title="Save what you have in hand",
        description=(
            "Save your todos, notes to yourself and a summary, so that you or another agent can take over after a break or a "
            "compaction. What you leave out stays as you saved it before in this session."
        ),
        takes=(AI, TODOS, WORKING_NOTES, CONTEXT_SUMMARY, SESSION, PROJECT),
        repeatable=True,
        daily=True,
    ),
    ToolSpec(
        name="ai_state_get",
        title="Get a saved working state",
        description="Get the state saved last: your own, or another's by ai_id; of this session, or of another by session_id.",
        takes=(AI, PROJECT, SESSION),
        reads=True,
        daily=True,
    ),
    ToolSpec(
        name="ai_state_transfer",
        title="Hand a working state to another session",
        description=(
            "Copy a saved state into another session, as when you go on in a new one. The old session keeps its own; what the new "
            "one had is replaced."
        ),
        takes=(AI, FROM_SESSION, TO_SESSION),
        repeatable=True,
    ),
    ToolSpec(
        name="ai_state_list",
        title="List saved working states",
        description="Which working states there are, newest first: whose, of which session, when, with how many todos.",
        takes=(AI, SESSION, PROJECT, STATE_LIMIT),
        reads=True,
    ),
)

_NOTES = (
    ToolSpec(
        name="search_notes",
        title="Search notes and conversations",
        description=(
            "Search notes, and passages of earlier conversations, by meaning and by words. Answers with titles, snippets and "
            "citations, best first by rank; show_notes opens them. For a subject as a whole use get_context."
        ),
        takes=(QUERY, PROJECT, KINDS, SINCE, HIT_LIMIT),
        reads=True,
        daily=True,
    ),
    ToolSpec(
        name="get_note",
        title="Get a note",
        description=(
            "One note whole, with date, status and evidence; of a saved conversation also its transcript, in parts if it is long."
        ),
        takes=(NOTE, TRANSCRIPT, OFFSET),
        reads=True,
        longest=_WHOLE,
    ),
    ToolSpec(
        name="show_notes",
        title="Open notes",
        description=(
            "Open notes that a search or a vault-context block names, or conversations by citation: several at once, each in "
            "brief. Costs nothing; do it when a title may bear on the work."
        ),
        takes=(NOTES,),
        reads=True,
        daily=True,
        longest=_WHOLE,
    ),
    ToolSpec(
        name="timeline",
        title="What happened when",
        description=(
            "What happened in a session, in order: prompts, commands, file changes, errors, test results. Without session_id, the "
            "latest sessions of the project."
        ),
        takes=(A_SESSION, PROJECT, LONG_LIMIT, AFTER),
        reads=True,
    ),
    ToolSpec(
        name="resume_brief",
        title="Brief of a session, with citations",
        description=(
            "What changed, what failed, what to verify next and the last stable point of one session, each line with a citation. "
            "Longer and more exact than smart_resume, which also covers other agents."
        ),
        takes=(ANOTHER_SESSION, PROJECT, BRIEF_TOKENS),
        reads=True,
    ),
    ToolSpec(
        name="remember",
        title="Remember a fact",
        description=(
            "Keep one plain statement as a note that the next search finds: a fact, decision or insight worth knowing in another "
            "session. One statement a call. Never secrets."
        ),
        takes=(TEXT, KIND, TITLE, SCOPE, PROJECT, SESSION, TAGS),
        daily=True,
    ),
    ToolSpec(
        name="forget",
        title="Forget a note",
        description=(
            "Move a note to the trash of the person's vault; it is never written again. Only when the person asks for it."
        ),
        takes=(NOTE,),
        destroys=True,
        repeatable=True,
        daily=True,
    ),
)

RECENT_NOTES = ToolSpec(
    name="recent_notes",
    title="Recent notes",
    description="The latest notes, for a client's list of resources; not listed for agents.",
    takes=(PROJECT, SESSION, LONG_LIMIT),
    reads=True,
)

TOOLS: Mapping[str, ToolSpec] = {tool.name: tool for tool in (*_CONVERSATIONS, *_MEMORIES, *_STATES, *_NOTES)}
_CALLED = {name: tool for tool in TOOLS.values() for name in (tool.name, *tool.aliases)}

MORE_TOOLS = ToolSpec(
    name="more_tools",
    title="Use rarer tools",
    description=f"Describes and calls the rarer tools: {', '.join(tool.name for tool in TOOLS.values() if not tool.daily)}.",
    takes=(TOOL, ARGUMENTS),
    destroys=True,
)
"""Calls any tool by name, for clients that can only call what is listed."""


def called(name: str) -> ToolSpec | None:
    """Return the tool of that name, or of that older name."""
    return _CALLED.get(name)


def listed(*, everything: bool) -> tuple[ToolSpec, ...]:
    """Return the tools to list: those of every day and the one that calls the others, or all."""
    return tuple(TOOLS.values()) if everything else (*(tool for tool in TOOLS.values() if tool.daily), MORE_TOOLS)


Tool = Callable[[Asker, Arguments], Json]
"""Raises `KiteError` for what the caller can correct."""


class ToolDispatcher:
    """Parses calls by the table of declarations and performs them. Thread-safe."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = dict(tools)

    def perform(self, tool: str, arguments: Json, asker: Asker) -> Json:
        declared = RECENT_NOTES if tool == RECENT_NOTES.name else called(tool)
        if declared is None or declared.name not in self._tools:
            raise UsageError(f"unknown tool {tool!r:.80}", hint="kmem and its daemon may be of different versions")
        return self._tools[declared.name](asker, declared.parsed(arguments))
