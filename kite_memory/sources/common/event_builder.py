"""Build events from an agent's records: the part shared by all agents."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Protocol, TypeVar, assert_never

from kite_memory.model.event import PLANNING, Event, EventType, Problem, Role, Status, Where
from kite_memory.redaction import drop_private, redact
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.outcomes import error_lines, verdict_of_tests
from kite_memory.sources.common.tool_text import (
    COMMAND_LIMIT,
    PATH_LIMIT,
    READING_LIMIT,
    RESULT_LIMIT,
    rendered_arguments,
    shortened,
    texts_in,
)
from kite_memory.sources.common.words import (
    Approved,
    Continued,
    Interrupted,
    Notified,
    Printed,
    Ran,
    Said,
    Utterance,
    utterances,
    without_echo,
)

MESSAGE_LIMIT = 64_000
SUMMARY_LIMIT = 16_000
ANSWER_LIMIT = 2_000
TITLE_LIMIT = 200
DETAIL_LIMIT = 200
_QUESTION_LIMIT = 600
_TODOS = frozenset({"todos", "task_progress"})
"""Names of arguments that hold a to-do list as Markdown."""
_OPEN_CALLS = 200
_WHOLE_CALLS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """An agent's tools by name: those that run commands, read, or change files, and how each change is worded.

    ``outputs`` are tools that return the output of an earlier command. ``paths`` are arguments that hold a path, likeliest first; a
    reader's path is a file that it read. ``asking`` maps tools that ask the user to the argument that holds the question.
    """

    shells: frozenset[str] = frozenset()
    readers: frozenset[str] = frozenset()
    lookers: frozenset[str] = frozenset()
    writers: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    asking: Mapping[str, str] = field(default_factory=dict)
    outputs: frozenset[str] = frozenset()

    def path_of(self, given: Mapping[str, Any]) -> str:
        for key in self.paths:
            if isinstance(value := given.get(key), str):
                return without_echo(beginning(value, PATH_LIMIT)).strip()
        return ""

    def command_of(self, tool: str, given: Mapping[str, Any]) -> str:
        command = given.get("command") if tool in self.shells else None
        return shortened(command.strip(), COMMAND_LIMIT) if isinstance(command, str) else ""

    def rendered(self, tool: str, given: Mapping[str, Any]) -> str:
        """Return the arguments of a call as text, without its path and a shell's command, which have their own fields."""
        shown_apart = (*self.paths, "command") if tool in self.shells else self.paths
        return rendered_arguments(given, without=shown_apart, todos=_TODOS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A tool call without a result yet. ``detail`` is a shell's command, a file tool's path, or the question asked."""

    event: str
    tool: str
    detail: str


class _Detailed(Protocol):
    @property
    def detail(self) -> str: ...


_Call = TypeVar("_Call", bound=_Detailed)


_Kept = TypeVar("_Kept")


def keep_latest(found: dict[str, _Kept], name: str, value: _Kept, most: int) -> None:
    """Set a value as the latest, and drop the earliest ones over ``most``."""
    found.pop(name, None)
    found[name] = value
    while len(found) > most:
        del found[next(iter(found))]


_MOST_NAMES = 32


def is_first(found: list[str], name: str) -> bool:
    """Return whether a name occurs for the first time, and add it; after 32 names, no other is new."""
    if name in found or len(found) >= _MOST_NAMES:
        return False
    found.append(name)
    return True


def shorten_older(calls: dict[str, _Call], limit: int) -> None:
    """Shorten the details of all but the last few calls to ``limit``.

    Runs whenever a call is opened, since calls that never get a result accumulate.
    """
    if len(calls) > _WHOLE_CALLS:
        name = next(islice(reversed(calls), _WHOLE_CALLS, None))
        if len(calls[name].detail) > limit:
            calls[name] = replace(calls[name], detail=beginning(calls[name].detail, limit))  # type: ignore[type-var]


@dataclass(slots=True, kw_only=True)
class OpenCalls:
    """Open calls by the agent's own names; if too many stay open, the oldest are shortened, then dropped."""

    by_name: dict[str, OpenCall] = field(default_factory=dict)

    def open(self, name: str, call: OpenCall) -> None:
        self.by_name[name] = call
        shorten_older(self.by_name, DETAIL_LIMIT)
        while len(self.by_name) > _OPEN_CALLS:
            del self.by_name[next(iter(self.by_name))]

    def close(self, name: str) -> OpenCall:
        """Remove and return the call of that name; an empty call if it is unknown."""
        return self.by_name.pop(name, None) or OpenCall(event="", tool="", detail="")

    def to_carry(self) -> list[list[str]]:
        return [[name, call.event, call.tool, call.detail] for name, call in self.by_name.items()]

    @staticmethod
    def from_carry(carried: Iterable[Iterable[str]]) -> "OpenCalls":
        return OpenCalls(by_name={name: OpenCall(event=event, tool=tool, detail=detail) for name, event, tool, detail in carried})


class EventRecorder:
    """Collects the events of one session. Call `record` for each record of the file, then `add` for each of its events."""

    def __init__(self, *, provider: str, session: str, file: str, ordinal: int = 0) -> None:
        self.events: list[Event] = []
        self.problems: list[Problem] = []
        self.ordinal = ordinal
        self._provider = provider
        self._session = session
        self._file = file
        self._id = ""
        self._at = datetime.fromtimestamp(0, UTC)
        self._start = self._end = 0
        self._added = 0

    def record(self, name: str, at: datetime, start: int, end: int, *, ordinal: int | None = None) -> None:
        """Start a record that spans ``[start, end)``: its events get its name, time and position.

        Their ordinals continue from ``ordinal``, or from ``start``, unless earlier ones are already higher.
        """
        self._id, self._at, self._start, self._end = name, at, start, end
        self._added = 0
        self.ordinal = max(self.ordinal, start if ordinal is None else ordinal)

    def problem(self, position: int, reason: str) -> None:
        self.problems.append(Problem(file=self._file, position=position, reason=reason))

    def add(
        self,
        type: EventType,
        role: Role,
        text: str,
        *,
        tool: str = "",
        command: str = "",
        path: str = "",
        status: Status = "",
        parent: str = "",
        call: str = "",
        whole: str = "",
    ) -> str:
        """Add an event of this record and return its id.

        The first event has the record's own id; a counter is appended to the others.
        """
        name = f"{self._id}:{self._added}" if self._added else self._id
        self._added += 1
        self.events.append(
            Event(
                id=name,
                session=self._session,
                provider=self._provider,
                ordinal=self.ordinal,
                at=self._at,
                role=role,
                type=type,
                text=text,
                where=Where(file=self._file, start=self._start, end=self._end),
                tool=tool,
                command=command,
                path=path,
                status=status,
                parent=parent,
                call=call,
                whole=without_echo(whole) if len(whole) > len(text) else "",
            )
        )
        self.ordinal += 1
        return name


class EventBuilder(EventRecorder):
    """Collects events by what they are: something said, a tool's call, its result. Tools are those of an agent's `Toolbox`."""

    def __init__(self, *, provider: str, session: str, file: str, tools: Toolbox, calls: OpenCalls, ordinal: int = 0) -> None:
        super().__init__(provider=provider, session=session, file=file, ordinal=ordinal)
        self.calls = calls
        self._tools = tools

    def said(self, text: str, *, parent: str = "") -> None:
        """Add the events of a user message: the user's words, or text inserted in their place by programs."""
        for utterance in utterances(text):
            self._utterance(utterance, parent)

    def _utterance(self, utterance: Utterance, parent: str) -> None:
        match utterance:
            case Said(text=text):
                self.add(EventType.USER_MESSAGE, "user", shortened(text, MESSAGE_LIMIT), parent=parent)
            case Ran(command=command):
                command = shortened(command, COMMAND_LIMIT)
                self.add(EventType.COMMAND, "user", command, command=command, parent=parent)
            case Approved(plan=plan):
                self.add(EventType.DECISION, "user", shortened(plan, SUMMARY_LIMIT), tool=PLANNING, parent=parent)
            case Continued(summary=summary):
                self.resume_point(summary, parent=parent)
            case Interrupted(text=text):
                self.resume_point(text, status="interrupted", parent=parent)
            case Printed() | Notified():
                pass
            case _:
                assert_never(utterance)

    def resume_point(self, text: str, *, status: Status = "", parent: str = "") -> None:
        if summary := shortened(text, SUMMARY_LIMIT).strip():
            self.add(EventType.RESUME_POINT, "system", summary, status=status, parent=parent)

    def answered(self, text: str, *, parent: str = "") -> str:
        """Add the agent's message; return the id of its event, or ``parent`` if it is empty."""
        answer = shortened(text, MESSAGE_LIMIT).strip()
        return self.add(EventType.ASSISTANT_MESSAGE, "assistant", answer, parent=parent) if answer else parent

    def called(self, name: str, tool: str, given: Mapping[str, Any], *, parent: str = "", by_a_person: bool = False) -> OpenCall:
        """Add a call of ``tool`` and keep it open under ``name``."""
        command, path = self._tools.command_of(tool, given), self._tools.path_of(given)
        role: Role = "user" if by_a_person else "assistant"
        event = self.add(
            EventType.TOOL_CALL,
            role,
            self._tools.rendered(tool, given),
            tool=tool,
            path=path,
            call=name,
            parent=parent,
            whole="\n".join(texts_in(given)),
        )
        asked = given.get(self._tools.asking.get(tool, ""))
        detail = shortened(asked.strip(), _QUESTION_LIMIT) if isinstance(asked, str) else command or path
        call = OpenCall(event=event, tool=tool, detail=detail)
        if name:
            self.calls.open(name, call)
        if command:
            self.add(EventType.COMMAND, role, command, tool=tool, command=command, call=name, parent=event)
        return call

    def returned(
        self,
        name: str,
        call: OpenCall,
        text: str,
        status: Status,
        *,
        done: Iterable[tuple[str, str]] = (),
        running: bool = False,
    ) -> str:
        """Add the result of ``call``. ``done`` are the files it changed and how, if the record has more detail than the call.

        While the call is still ``running``, its output gives no test result.
        """
        tools, tool = self._tools, call.tool
        of_command = tool in tools.shells or tool in tools.outputs
        command, path = (call.detail, "") if of_command else ("", "" if tool in tools.asking else call.detail)
        limit = READING_LIMIT if tool in tools.lookers and status == "ok" else RESULT_LIMIT
        event = self.add(
            EventType.TOOL_RESULT,
            "tool",
            shortened(text, limit),
            tool=tool,
            path=path,
            status=status,
            parent=call.event,
            call=name,
            whole=text,
        )
        verdict = verdict_of_tests(command, text) if of_command and not running else None
        if verdict is not None:
            self.add(
                EventType.TEST_RESULT,
                "tool",
                verdict.summary,
                tool=tool,
                command=command,
                status=verdict.status,
                parent=event,
                call=name,
            )
        if status == "failed" and (lines := error_lines(text)):
            self.add(
                EventType.ERROR, "tool", lines, tool=tool, command=command, path=path, status="failed", parent=event, call=name
            )
        if status == "ok":
            for changed, how in done or self._done(tool, path):
                self.add(EventType.FILE_ACTION, "tool", how, tool=tool, path=changed, status="ok", parent=event, call=name)
        return event

    def _done(self, tool: str, path: str) -> list[tuple[str, str]]:
        if not path:
            return []
        if tool in self._tools.readers:
            return [(path, "read")]
        return [(path, self._tools.writers[tool])] if tool in self._tools.writers else []


def title_of(text: object) -> str:
    """Return a title on one line, redacted.

    Redacted before its lines are joined, since a secret wrapped over two lines would not be recognized later.
    """
    if not isinstance(text, str):
        return ""
    return " ".join(redact(drop_private(shortened(beginning(text, 8 * TITLE_LIMIT), 4 * TITLE_LIMIT))).split())[:TITLE_LIMIT]
