"""The arguments of the tools: each is declared once, with its schema and the function that checks and converts it.

Handlers read the parsed values by these same declarations, so the schema, the parser and the limits cannot differ. Which
project, session and place they name is found with the lookups of `LocalContext`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from kite_memory.errors import UsageError
from kite_memory.model.event import Event, Provenance, Trace
from kite_memory.model.note import NoteKind, Scope
from kite_memory.tools import argument_parsing as parsing
from kite_memory.tools.store import Asker, Grant, JsonValue, MemoryPlace, State

Json = dict[str, Any]
Schema = dict[str, Any]
Given = TypeVar("Given")
Given_co = TypeVar("Given_co", covariant=True)

_LONGEST_QUERY = 4_000
_LONGEST_NAMED = 1_024
_LONGEST_FOLDER = 4_096
_LONGEST_REMEMBERED = 20_000
_LONGEST_NOTES = 8_000
_LARGEST = 1 << 53
MOST_SHOWN = 20
MOST_TODOS = 100
MOST_TOPICS = 20
_WRITABLE = (NoteKind.FACT, NoteKind.DECISION, NoteKind.INSIGHT, NoteKind.QUESTION)
"""Kinds of notes that an agent may write. Preferences are a person's to state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument(Generic[Given_co]):
    """One argument of a tool.

    ``parse`` returns the value or raises `UsageError`; ``default`` is the value if the argument is omitted. Null means omitted,
    unless it is ``nullable``. ``aliases`` are other names under which it is accepted. A ``hidden`` argument is accepted, but not
    in the schema. ``hint`` is the next step if it is missing.
    """

    name: str
    schema: Schema
    parse: Callable[[object], Given_co]
    default: Given_co
    needed: bool = False
    nullable: bool = False
    hidden: bool = False
    aliases: tuple[str, ...] = ()
    hint: str = ""


class Arguments:
    """The arguments of one call, parsed. ``raw`` are those of a tool that takes any, unparsed."""

    def __init__(self, parsed: Mapping[str, Any], raw: Json) -> None:
        self._parsed = parsed
        self.raw = raw

    def __getitem__(self, argument: Argument[Given]) -> Given:
        value: Given = self._parsed[argument.name]
        return value

    def __contains__(self, argument: Argument[Any]) -> bool:
        """Return whether the caller gave this argument."""
        return argument.name in self.raw


def _text(name: str, description: str = "", *, longest: int = parsing.LONGEST_NAME, needed: bool = False) -> Argument[str]:
    """Return an argument of text on any number of lines, unredacted."""
    parse = partial(parsing.text, name, longest=longest, needed=needed)
    return Argument(name=name, schema=_string(description), parse=parse, default="", needed=needed)


def _line(
    name: str, description: str = "", *, longest: int = parsing.LONGEST_NAME, needed: bool = False, aliases: tuple[str, ...] = ()
) -> Argument[str]:
    """Return an argument of text on one line."""
    parse = partial(parsing.line, name, longest=longest, needed=needed)
    return Argument(name=name, schema=_string(description), parse=parse, default="", needed=needed, aliases=aliases)


def _whole(
    name: str, description: str, *, least: int, most: int, otherwise: Given, aliases: tuple[str, ...] = ()
) -> Argument[int | Given]:
    bounds = {"minimum": least} | ({"maximum": most} if most < _LARGEST else {})
    schema = {"type": "integer", "description": description, **bounds}
    parse = partial(parsing.whole, name, least=least, most=most)
    return Argument(name=name, schema=schema, parse=parse, default=otherwise, aliases=aliases)


def _flag(name: str, description: str) -> Argument[bool]:
    schema = {"type": "boolean", "description": description}
    return Argument(name=name, schema=schema, parse=partial(parsing.yes, name), default=False)


def _limit(most: int, otherwise: int) -> Argument[int]:
    return _whole("limit", f"{otherwise} by default", least=1, most=most, otherwise=otherwise)


def _tokens(least: int, most: int, otherwise: int) -> Argument[int]:
    about = f"About the most tokens of the answer, {otherwise} by default"
    return _whole("token_budget", about, least=least, most=most, otherwise=otherwise, aliases=("tokens",))


def _string(description: str, **more: Any) -> Schema:
    return {"type": "string", **({"description": description} if description else {}), **more}


def _array(items: Schema, description: str = "", **more: Any) -> Schema:
    return {"type": "array", "items": items, **({"description": description} if description else {}), **more}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def _as_it_is(value: object) -> object:
    return value


def _id(name: str, description: str, *, needed: bool = False, aliases: tuple[str, ...] = ()) -> Argument[str]:
    """Return an argument for a session's id, which is kept as given unless it holds a secret."""
    parse = partial(parsing.identifier, name, needed=needed)
    return Argument(name=name, schema=_string(description), parse=parse, default="", needed=needed, aliases=aliases)


PROJECT = _line("project", "Name or folder; yours by default", longest=_LONGEST_FOLDER, aliases=("project_path",))
SESSION = _id("session_id", "A session; yours by default", aliases=("session",))
ANOTHER_SESSION = _id("session_id", "A session's id or its beginning; the last one by default", aliases=("session",))
A_SESSION = _id("session_id", "A session's id, its beginning, or a citation", aliases=("session",))
SCOPE: Argument[Scope | None] = Argument(
    name="scope",
    schema=_string(
        "project by default; global: everywhere, for this person; shared: everywhere, for everybody who shares this memory",
        enum=list(Scope),
    ),
    parse=partial(parsing.choice, "scope", Scope),
    default=None,
)
TAGS: Argument[tuple[str, ...]] = Argument(
    name="tags", schema=_array(_string(""), maxItems=parsing.MOST_TAGS), parse=parsing.tags, default=()
)
AI = _id("ai_id", "Your own name, the same each time, as claude-code; your client's by default", aliases=("ai",))
QUERY = _text("query", "A question or a few words", longest=_LONGEST_QUERY, needed=True)
NOTE = _line("note", "Its id, path or title", longest=_LONGEST_NAMED, needed=True, aliases=("id", "path"))

KEY: Argument[str] = Argument(
    name="key",
    schema=_string("Dotted, as project.database.choice, current.task, shared.conventions", maxLength=parsing.LONGEST_KEY),
    parse=parsing.key_to_write,
    default="",
    needed=True,
)
KEY_TO_READ: Argument[str] = Argument(
    name="key",
    schema=_string("A key, or a pattern as project.*", maxLength=parsing.LONGEST_KEY),
    parse=parsing.key,
    default="",
)
PATTERN: Argument[str] = Argument(
    name="pattern",
    schema=_string("Keys with * and ?, as current.*", maxLength=parsing.LONGEST_KEY),
    parse=parsing.pattern,
    default="",
)
VALUE: Argument[JsonValue] = Argument(
    name="value",
    schema={"type": ["object", "array", "string", "number", "boolean", "null"], "description": "Any JSON, at most 256 kB"},
    parse=parsing.spelled,
    default=None,
    needed=True,
    nullable=True,
)
TTL: Argument[float | None] = Argument(
    name="ttl",
    schema={
        "type": "number",
        "description": "Seconds until it is gone; kept by default",
        "exclusiveMinimum": 0,
        "maximum": int(parsing.LONGEST_TTL.total_seconds()),
    },
    parse=parsing.seconds,
    default=None,
)
EXPECTED = _whole("expected_version", "The version you read; 0 if it must be new", least=0, most=_LARGEST, otherwise=None)
CONTEXT: Argument[dict[str, JsonValue]] = Argument(
    name="context",
    schema={"type": "object", "description": "Why it was written; given back when it is read"},
    parse=parsing.context,
    default={},
)
CONTEXT_HIDDEN: Argument[dict[str, JsonValue]] = Argument(
    name="context", schema={"type": "object"}, parse=parsing.context, default={}, hidden=True
)
IN_CONTEXT: tuple[Argument[Any], ...] = (SCOPE, PROJECT, SESSION, TAGS, TTL, EXPECTED)
"""Arguments that may stand in ``context`` instead."""
VALUES = _flag("values", "Whole values, not only their beginnings")

RECORD_LIMIT = _limit(20, 5)
HIT_LIMIT = _limit(50, 10)
STATE_LIMIT = _limit(parsing.MOST_RESULTS, 20)
LONG_LIMIT = _limit(parsing.MOST_RESULTS, 50)
CONTEXT_TOKENS = _tokens(100, 6_000, 2_000)
RESUME_TOKENS = _tokens(100, 500, 500)
BRIEF_TOKENS = _tokens(60, 4_000, 500)

_STATUSES = ("pending", "in_progress", "completed", "cancelled", "blocked")
TODOS: Argument[object] = Argument(
    name="todos",
    schema=_array(
        _object(text=_string(""), status=_string("pending by default", enum=list(_STATUSES))),
        "All there is to do, with what is done; a todo may have other fields",
        maxItems=MOST_TODOS,
    ),
    parse=_as_it_is,
    default=[],
)
WORKING_NOTES = _text("working_notes", "What you need to know to go on", longest=_LONGEST_NOTES)
CONTEXT_SUMMARY = _text("context_summary", "What the session is about so far", longest=_LONGEST_NOTES)
FROM_SESSION = _id("from_session", "The session it was saved in", needed=True)
TO_SESSION = _id("to_session", "Your session", needed=True)

KINDS: Argument[frozenset[NoteKind]] = Argument(
    name="kinds",
    schema=_array(_string("", enum=list(NoteKind)), "Only notes of these kinds, and no passages"),
    parse=partial(parsing.choices, "kinds", NoteKind),
    default=frozenset(),
)
SINCE = _line("since", "Only newer: a date as 2026-03-01, or an age as 30d", longest=40)
TRANSCRIPT = _flag("transcript", "With the saved conversation's transcript")
OFFSET = _whole("offset", "Only the transcript, from `next` of the answer before", least=0, most=_LARGEST, otherwise=0)
NOTES: Argument[tuple[str, ...]] = Argument(
    name="notes",
    schema=_array(_string(""), "Ids, paths, titles or citations", maxItems=MOST_SHOWN),
    parse=partial(parsing.lines, "notes", longest=_LONGEST_NAMED, most=MOST_SHOWN),
    default=(),
    needed=True,
    aliases=("note", "ids", "id"),
)
AFTER = _whole("after", "Only events after this one: `next` of the answer before", least=-1, most=_LARGEST, otherwise=-1)
TEXT = _text("text", "A sentence or two that stand on their own", longest=_LONGEST_REMEMBERED, needed=True)
KIND: Argument[NoteKind | None] = Argument(
    name="kind",
    schema=_string("fact by default", enum=list(_WRITABLE)),
    parse=partial(parsing.choice, "kind", NoteKind, among=_WRITABLE),
    default=None,
)
TITLE = _line("title", "A few words; made from the text by default")


def _recorded(name: str, schema: Schema, *, hidden: bool = False) -> Argument[object]:
    """Return an argument of a record, which `record_reading` reads as leniently as its meaning is clear."""
    return Argument(name=name, schema=schema, parse=_as_it_is, default=None, hidden=hidden)


_TEXTS = _array(_string(""))
_REJECTED = _array(_object(alternative=_string(""), reason=_string("")), "What was considered and turned down")
_DECIDED = _object(decision=_string("What was chosen, with its subject"), reasoning=_string(""), rejected=_REJECTED)
OF_A_TOPIC: tuple[Argument[object], ...] = (
    _recorded("topic", _string("Two to five words")),
    _recorded("summary", _string("A few sentences that stand on their own")),
    _recorded("decisions", _array(_DECIDED)),
    _recorded("rejected", _array(_string(""), "What was turned down without another being chosen")),
    _recorded("insights", _array(_string(""), "Causes that were found and verified")),
    _recorded("facts", _TEXTS),
    _recorded("open_questions", _TEXTS),
    _recorded("categories", _TEXTS),
    _recorded("related_entities", _array(_string(""), "Files, libraries, people, services")),
)
"""A record's fields about one topic."""
OF_A_RECORD: tuple[Argument[object], ...] = (
    Argument(
        name="claude_conversation_uuid",
        schema=_string("From generate_conversation_id; the same for the whole conversation"),
        parse=_as_it_is,
        default=None,
        needed=True,
        aliases=("conversation_id", "uuid"),
        hint="call generate_conversation_id once, and keep it",
    ),
    _recorded("source", _string("Your name, as claude_code or gemini_cli")),
    _recorded("project", PROJECT.schema),
    _recorded("scope", _string("project by default", enum=[scope for scope in Scope if scope is not Scope.SESSION])),
    *OF_A_TOPIC,
    _recorded(
        "topics",
        _array(
            {"type": "object"}, "Several topics: for each one topic, summary, decisions and so on, as above", maxItems=MOST_TOPICS
        ),
    ),
    _recorded("overall_summary", _string("Of all topics together")),
    _recorded("cross_topic_insights", _TEXTS),
    _recorded("conversation_type", _string(""), hidden=True),
    _recorded("full_transcript", _string("Word for word; kept with the record, and fetched only when asked for")),
)

TOOL = _line("tool", "One of these; without it, they are described")
ARGUMENTS: Argument[Json] = Argument(
    name="arguments", schema={"type": "object", "description": "Its arguments"}, parse=parsing.members, default={}
)


def _same_name(name: str) -> str:
    return name


def _unknown(project: str) -> Provenance | None:
    return None


def _nothing(project: str) -> Sequence[Event]:
    return ()


def _no_projects() -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalContext:
    """Lookups that only this machine can answer.

    ``known_project`` returns the project of a given name or folder. ``timeline`` and ``resume`` answer like the commands of these
    names and take the same arguments. ``passages`` returns what was said and done on a search's
    subject, with the ranks of these and of the notes that it found; ``conversation`` returns a cited one in brief.
    ``working`` returns what agents had in progress in a project's last sessions, or in one session, according to transcripts.
    ``heard`` returns the events of a project's last sessions, ``known_of`` who said something first in all of its sessions;
    ``latest_projects`` the projects of the last sessions of all.
    ``resume``, ``passages`` and ``working`` take ``projects`` if the caller does not see all; events of other projects are then not
    read.
    """

    known_project: Callable[[str], str] = _same_name
    timeline: Callable[..., Json] | None = None
    resume: Callable[..., Json] | None = None
    passages: Callable[..., Json] | None = None
    conversation: Callable[[str], str] | None = None
    working: Callable[..., Sequence[State]] | None = None
    heard: Callable[[str], Sequence[Event]] = _nothing
    known_of: Callable[[str], Provenance | None] = _unknown
    latest_projects: Callable[[], Sequence[str]] = _no_projects

    def said_before(self, asker: Asker, place: MemoryPlace) -> tuple[Sequence[Event], Provenance | None]:
        """Return what was heard where the caller works and where its note will be kept, and who said what first there.

        For a note that is kept elsewhere than in the caller's project, also in the projects that were worked in last: an
        agent that names another place has not read there what it saves.
        """
        near = (asker.project, place.project)
        projects = dict.fromkeys(near if asker.project == place.project != "" else (*near, *self.latest_projects()))
        seen = [project for project in projects if asker.grant.sees(Scope.PROJECT, project)]
        known = [each for each in map(self.known_of, seen) if each is not None]
        return [event for project in seen for event in self.heard(project)], _Together(known=known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Together:
    """Provenance in several projects: the highest share of each."""

    known: Sequence[Provenance]

    def traces(self, texts: Sequence[str]) -> Sequence[Trace]:
        return [
            Trace(
                pairs=each[0].pairs,
                foreign=max(trace.foreign for trace in each),
                failure=max(trace.failure for trace in each),
                person=max(trace.person for trace in each),
            )
            for each in zip(*(known.traces(texts) for known in self.known), strict=True)
        ]


def within(grant: Grant, scope: Scope) -> dict[str, list[str]]:
    """Return the argument ``projects`` for `LocalContext.resume`, `LocalContext.passages` and
    `LocalContext.working`; empty if the grant sees all."""
    if grant.scopes is not None and scope not in grant.scopes:
        return {"projects": []}
    return {} if grant.projects is None else {"projects": sorted(grant.projects)}


NOWHERE = "\x7f"
"""A value that is neither a project nor a session: `argument_parsing.line` refuses it as input."""


def project_named(asker: Asker, local: LocalContext, name: str) -> str:
    """Return a project by name or folder. Only the owner of this machine may name a folder."""
    name = parsing.clean(name)
    if not name:
        return ""
    return local.known_project(name) if asker.grant.whole and not asker.grant.name else name


def around(asker: Asker, local: LocalContext, arguments: Arguments) -> tuple[str, str]:
    """Return the project and session that are named, or else the caller's own."""
    return project_named(asker, local, arguments[PROJECT]) or asker.project, arguments[SESSION] or asker.session


def place_of(asker: Asker, local: LocalContext, arguments: Arguments, scope: Scope) -> MemoryPlace:
    """Return the place that the arguments name, as `place_in` does."""
    return place_in(asker, local, scope, project=arguments[PROJECT], session=arguments[SESSION])


def place_in(asker: Asker, local: LocalContext, scope: Scope, *, project: str, session: str = "") -> MemoryPlace:
    """Return the place of a memory; project and session are the caller's own if they are empty.

    A global one has neither project nor session; a shared one has a project only if it is named.
    """
    named = project_named(asker, local, project)
    project, session = named or asker.project, session or asker.session
    match scope:
        case Scope.GLOBAL:
            return MemoryPlace(scope=scope)
        case Scope.SHARED:
            return MemoryPlace(scope=scope, project=named)
        case Scope.PROJECT:
            if not project:
                raise UsageError(
                    "it is not known which project this is", hint='give `project`, or use scope "global", "shared" or "session"'
                )
            return MemoryPlace(scope=scope, project=project)
        case Scope.SESSION:
            if not session:
                raise UsageError("it is not known which session this is", hint='give `session_id`, or use scope "project"')
            return MemoryPlace(scope=scope, project=project, session=session)
