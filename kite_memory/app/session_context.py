"""A hook's input, and the context of what recall is asked: where the call comes from, and what was before a prompt.

Input is parsed leniently: a new field or an odd value must not cost the user a prompt.
"""

import json
import re
import shlex
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import dropwhile, takewhile
from typing import Any

import orjson

from kite_memory.model.event import Event, EventType, EvidenceReference, Session, opens_turn
from kite_memory.projects import branch_of, project_of
from kite_memory.recall.pointing import work_asked
from kite_memory.recall.rendering import remarks
from kite_memory.recall.select import Situation, situation_of
from kite_memory.redaction import drop_private, redact_id
from kite_memory.redaction.cutting import beginning, ends
from kite_memory.sources.common.words import Approved, Said, Utterance, utterances
from kite_memory.text.display import clip_line, counted, gist
from kite_memory.text.quoting import mended, plain_line
from kite_memory.text.shell import invocations
from kite_memory.timeline.progress import ANSWERED, NOTHING_PASSED, BriefPart, changed_files
from kite_memory.timeline.resume import brief
from kite_memory.timeline.runs import open_failures, runs
from kite_memory.timeline.store import Timeline

_LONGEST_NAME = 4_096
_LONGEST_PART = 4_000
_LONGEST_STATUS = 1 << 16
_MOST_CALLS = 16
_MOST_WORDS = 200
_WHOLE = 1 << 19
"""Limit in bytes for parsing the whole input of a tool event. Of longer ones, with long outputs, only the head is read."""
_HEAD = 8_192
_OPENING_TOOLS = ("__show_notes", "__get_note", "__read_memory")

_SAME = {
    "BeforeAgent": "UserPromptSubmit",
    "AfterAgent": "Stop",
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
    "sessionStart": "SessionStart",
    "beforeSubmitPrompt": "UserPromptSubmit",
    "postToolUse": "PostToolUse",
}
"""Gemini CLI's and Cursor's names of events and their names in Claude Code, which the other agents use."""

_CURSOR_TAKES_CONTEXT = (3, 20)
"""Cursor's documents name no context in the answer to a prompt. Version 3.20 takes it; older ones may drop it."""
_CLINE_DROPS_CONTEXT = ((4, 0, 0), (4, 1, 17))
"""First and last version of Cline that drops the context of `UserPromptSubmit` (its issue 13554)."""

TOOL_EVENTS = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch"})

_HEAD_FIELD = re.compile(rb'"(session_id|cwd|hook_event_name|tool_name|agent_id)"\s{0,4}:\s{0,4}("(?:[^"\\]|\\.){0,4096}")')
_FAILED_COMMAND = re.compile(r"\s{0,8}(?:Exit code:?|Exit Code:|Process exited with code) -?[1-9]")
_DRESS = ("Command: ", "Output: ", "Stdout: ", "<untrusted_context>")
_FAILED_IN_THE_END = re.compile(
    r"\nExit Code: -?[1-9]\d{0,9}\s{0,4}(?:\n(?:Error|Signal|Background PIDs|Process Group PGID): [^\n]{0,200}){0,4}"
    r"\s{0,8}(?:</untrusted_context>\s{0,8})?\Z"
)
"""End of a failed command's output in Gemini CLI, which reports no other error."""
_END = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call.

    ``command`` and ``error`` are bounded, and end with a whole word. ``error`` is empty if the call has not failed, or not yet.
    ``notes`` are the notes that the agent asked to be shown.
    """

    tool: str
    command: str = ""
    files: tuple[str, ...] = ()
    error: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HookInput:
    """Input of one hook call.

    ``event`` is Claude Code's name of the event, ``name`` the agent's own. ``source`` is why a session starts: startup, resume,
    clear, compact, fork. ``takes_context`` is false where the agent would not pass an answer to its model.
    """

    event: str
    name: str = ""
    session: str = ""
    cwd: str = ""
    prompt: str = ""
    source: str = ""
    calls: tuple[ToolCall, ...] = ()
    is_subagent: bool = False
    takes_context: bool = True
    from_cursor: bool = False


def read_hook_input(body: bytes) -> HookInput | None:
    """Parse a hook's input; ``None`` if it is invalid."""
    if len(body) > _WHOLE and (head := _head_of_tool_event(body)) is not None:
        return head
    match _parsed(body):
        case {"hookName": "UserPromptSubmit" as name, "userPromptSubmit": {"prompt": str(prompt)}, **rest}:  # Cline
            first, last = _CLINE_DROPS_CONTEXT
            return HookInput(
                event=name,
                name=name,
                session=redact_id(_text(rest.get("taskId"))),
                cwd=_first(rest.get("workspaceRoots")),
                prompt=_text(prompt, limit=len(body)),
                takes_context=not first <= _version(rest.get("clineVersion")) <= last,
            )
        case {"postToolUse": {"toolName": str(tool), **done}, **rest}:  # Cline
            context = rest.get("sessionContext")
            root = context.get("rootSessionId") if isinstance(context, dict) else None
            return HookInput(
                event="PostToolUse",
                name="PostToolUse",
                session=redact_id(_text(root or rest.get("taskId"))),
                cwd=_first(rest.get("workspaceRoots")),
                calls=(_cline_call(tool, done, rest.get("tool_result")),),
                is_subagent=bool(rest.get("parent_agent_id")),
            )
        case {"hook_event_name": str(name), **rest}:
            event = _SAME.get(name, name)
            cursor = rest.get("cursor_version")
            return HookInput(
                event=_text(event),
                name=_text(name),
                session=redact_id(_text(rest.get("session_id") or rest.get("conversation_id"))),
                cwd=_text(rest.get("cwd")) or _first(rest.get("workspace_roots")),
                takes_context=name != "beforeSubmitPrompt" or _version(cursor) >= _CURSOR_TAKES_CONTEXT,
                from_cursor=cursor is not None,
                prompt=_text(rest.get("prompt"), limit=len(body)),
                source=_text(rest.get("source")),
                calls=tuple(_calls(event, rest)) if event in TOOL_EVENTS else (),
                is_subagent=bool(rest.get("agent_id")),
            )
        case _:
            return None


def session_of(body: bytes) -> str:
    """Return the session in the JSON that Claude Code gives a status line; empty for anything else."""
    if len(body) > _LONGEST_STATUS:
        return ""
    match _parsed(body):
        case {"session_id": str(session)}:
            return redact_id(_text(session))
        case _:
            return ""


def _head_of_tool_event(body: bytes) -> HookInput | None:
    """Parse the head of a long tool event, which may have been cut and be no valid JSON.

    Agents write the session and the event before the tool's input, so the first value of each field is theirs.
    """
    fields: dict[str, str] = {}
    for field in _HEAD_FIELD.finditer(body, 0, _HEAD):
        value = _parsed(field[2])
        if isinstance(value, str):
            fields.setdefault(field[1].decode("ascii"), value)
    name = fields.get("hook_event_name", "")
    event = _SAME.get(name, name)
    if event not in TOOL_EVENTS:
        return None
    return HookInput(
        event=event,
        name=name,
        session=redact_id(_text(fields.get("session_id"))),
        cwd=_text(fields.get("cwd")),
        is_subagent=bool(fields.get("agent_id")),
    )


def _calls(event: str, event_input: Mapping[Any, Any]) -> Iterator[ToolCall]:
    calls = event_input.get("tool_calls") if event == "PostToolBatch" else [event_input]
    if not isinstance(calls, list):
        return
    for call in calls[:_MOST_CALLS]:
        match call:
            case {"tool_name": str(tool), **rest}:
                given = rest.get("tool_input")
                command, files = _given(given) if isinstance(given, dict) else ("", ())
                error = "" if rest.get("is_interrupt") is True or event == "PreToolUse" else _error(rest)
                opened = _opened(tool, command, given) if isinstance(given, dict) and not error else ()
                yield ToolCall(tool=_text(tool), command=command, files=files, error=error, notes=opened)
            case _:
                pass


def _cline_call(tool: str, done: Mapping[Any, Any], detailed: object) -> ToolCall:
    """Parse Cline's report of a tool. Its command line tool has ``detailed`` too, where the parameters are no strings of JSON."""
    given, results = done.get("parameters"), [done]
    if isinstance(detailed, dict):
        given, output = detailed.get("input"), detailed.get("output")
        results += [each for each in output[:_MOST_CALLS] if isinstance(each, dict)] if isinstance(output, list) else []
    failed = next((each.get("result") for each in reversed(results) if each.get("success") is False), None)
    command, files = _given(given) if isinstance(given, dict) else ("", ())
    error = _ends(failed) if isinstance(failed, str) else ""
    return ToolCall(tool=_text(tool), command=command, files=files, error=error, notes=_opened(tool, command, {}))


def _opened(tool: str, command: str, given: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the notes opened by a command, or by a tool of the MCP server."""
    if tool.startswith("mcp__") and tool.endswith(_OPENING_TOOLS):
        named = given.get("notes", [given.get("note")])
        return tuple(_text(each) for each in named[:_MOST_CALLS] if isinstance(each, str)) if isinstance(named, list) else ()
    if "kmem show" not in command:
        return ()
    shown = (each.words[1:] for each in invocations(command) if each.program == "kmem" and each.words[:1] == ("show",))
    return tuple(_text(word) for words in shown for word in words[:_MOST_CALLS])


def _given(given: Mapping[Any, Any]) -> tuple[str, tuple[str, ...]]:
    match given.get("command"):
        case str(command):
            pass
        case [str(), "-c" | "-lc", str(command)]:
            pass
        case [*words] if words and all(isinstance(word, str) for word in words[:_MOST_WORDS]):
            command = shlex.join(beginning(word, _LONGEST_PART) for word in words[:_MOST_WORDS])
        case _:
            several = given.get("commands")
            words = several[:_MOST_CALLS] if isinstance(several, list) else []
            command = "\n".join(beginning(word, _LONGEST_PART) for word in words if isinstance(word, str))
    named = (given.get(name) for name in ("file_path", "notebook_path", "absolute_path", "path"))
    files = dict.fromkeys(_text(beginning(name, _LONGEST_NAME)) for name in named if isinstance(name, str) and name)
    return _text(beginning(command, _LONGEST_PART)), tuple(files)


def _error(event_input: Mapping[Any, Any]) -> str:
    """Return the output of a failed tool; agents put it in different fields."""
    match event_input:
        case {"error": str(error)} if error:
            return _ends(error)
        case {"tool_response": str(text)} if _FAILED_COMMAND.match(text):
            return _ends(text)
        case {"tool_response": {"error": str(error) | {"message": str(error)}}} if error:
            return _ends(error)
        case {"tool_response": {"llmContent": str(text)}} if text.startswith(_DRESS) and _FAILED_IN_THE_END.search(text[-_END:]):
            return _ends(text)
        case _:
            return ""


def _ends(text: str) -> str:
    """Return the beginning and the end, since the failure is in one of them."""
    if len(text) <= _LONGEST_PART:
        return _text(text)
    half = _LONGEST_PART // 2
    return _text("\n".join(ends(text, half, half)))


def _parsed(body: bytes) -> Any:
    """Parse JSON, also with half a surrogate pair, which agents write for a cut emoji and strict parsers refuse."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(body.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def _first(values: object) -> str:
    return _text(values[0]) if isinstance(values, list) and values else ""


def _version(value: object) -> tuple[int, ...]:
    """Return the numbers of a version; none for anything else."""
    found = _VERSION.match(value) if isinstance(value, str) else None
    return tuple(map(int, found.groups())) if found else ()


_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,9})")


def _text(value: object, *, limit: int = _LONGEST_NAME) -> str:
    return mended(value[:limit]) if isinstance(value, str) else ""


ABOUT = "what was being done here last, from the transcript"

_FORGOTTEN = timedelta(days=14)
_FILES = 4
_PROMPT = 200
_COMMAND = 120
_ALSO = (BriefPart.STABLE, BriefPart.OPEN)
_OF_DAYS = "what was asked of agents in that time, from the transcripts"
_SAID_LAST = "the agent said last"
_NOTHING_OPEN = frozenset({ANSWERED})
_WORK_LINE, _WORK_TOKENS = 320, 420
_LEFT, _OF_A_PERIOD = 4, 8


def last_work(session: Session, events: Sequence[Event], prompt: Event | None, now: datetime) -> tuple[str, ...]:
    """Return at most five lines about a session's last ``events``, given oldest first; the most important line first.

    ``prompt`` is the session's last one. Empty if the last of them is more than two weeks old.
    """
    ends = max((event.at for event in (*events, *filter(None, (prompt,)))), default=None)
    if ends is None or now - ends > _FORGOTTEN:
        return ()
    return tuple(_lines(session, events, prompt, ends))


def _lines(session: Session, events: Sequence[Event], prompt: Event | None, ends: datetime) -> Iterator[str]:
    if prompt is not None and prompt.text.strip():
        yield _with_prompt(session, prompt, ends)
    if files := tuple(dict.fromkeys(file.path for file in changed_files(events, session.cwd))):
        yield f"Files changed last: {', '.join(files[:_FILES])}"
    if failed := _open_failure(session, events):
        yield f"A command that failed and was not seen to succeed since: {clip_line(failed, _COMMAND)}"
    if (found_brief := brief(session, events)) is not None:
        for part in _ALSO:
            line = next((line for line in found_brief.lines if line.part is part and "no answer" not in line.text), None)
            if line is not None and not line.text.startswith(NOTHING_PASSED):
                yield f"{'Last stable' if part is BriefPart.STABLE else 'Open'}: {line.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLine:
    """A line about earlier work, with citations of the events it rests on."""

    text: str
    at: datetime
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFound:
    """Lines that answer a question about the work, as a block for an agent, and in the shape of the operation `ask`."""

    about: str
    lines: tuple[WorkLine, ...] = ()

    def block(self) -> str:
        return remarks([line.text for line in self.lines], about=self.about, tokens=_WORK_TOKENS)

    def answer(self, question: str) -> dict[str, Any]:
        texts = [plain_line(line.text, 1_000) for line in self.lines]
        cited = [
            {"number": at, "kind": "event", "reference": line.evidence[0], "title": "earlier work", "at": line.at.isoformat()}
            for at, line in enumerate(self.lines, 1)
        ]
        return {
            "question": question,
            "answer": "\n".join(f"{text} [{at}]" for at, text in enumerate(texts, 1)),
            "sentences": [{"text": text, "citations": [each]} for text, each in zip(texts, cited, strict=True)],
            "citations": cited,
            "by": "offline",
            "considered": len(self.lines),
            "dropped": 0,
            "problems": [],
            "nothing_read": False,
        }


class EarlierWork:
    """Answers questions about the work itself: what was done last, what is left, what was done on a day. Thread-safe."""

    def __init__(self, timeline: Timeline, clock: Callable[[], datetime]) -> None:
        self._timeline = timeline
        self._clock = clock

    def asked(self, text: str, project: str, *, besides: str = "", begins: bool = True) -> WorkFound:
        """Return what a prompt that asks nothing but this asks for, in a project, or anywhere without one.

        ``besides`` is the id of the session it was asked in. Unless that ``begins``, its own context holds what was done last.
        """
        now = self._clock().astimezone()
        asked = work_asked(text, now)
        if asked is None or not (begins or asked.period is not None):
            return WorkFound(about="")
        try:
            lines = tuple(self._of_period(asked.period, project, besides)) if asked.period is not None else ()
            if lines:
                return WorkFound(about=f"{_OF_DAYS}{f' in {project}' if project else ''}", lines=lines)
            about = f"nothing was asked then; {ABOUT}" if asked.period is not None else ABOUT
            return WorkFound(about=about, lines=tuple(self._last(project, besides, everything=asked.what == "left")))
        except _UNREADABLE:
            return WorkFound(about="")

    def _last(self, project: str, besides: str, *, everything: bool) -> Iterator[WorkLine]:
        session = self._timeline.sessions.last(project or None, besides=besides)
        if session is None:
            return
        events = self._timeline.events.offered(self._timeline.events.last(session.provider, session.id, _EVENTS))
        prompt = self._timeline.events.last_prompt(session.provider, session.id)
        if prompt is not None and prompt.text.strip() and self._timeline.events.offered([prompt]):
            at = max(event.at for event in (*events, prompt))
            yield WorkLine(text=_with_prompt(session, prompt, at), at=prompt.at, evidence=(prompt.reference,))
        found = brief(session, events)
        if found is None:
            return
        open_parts = (BriefPart.NEXT, BriefPart.FAILED, BriefPart.OPEN) if everything else (BriefPart.NEXT,)
        left = [line for part in open_parts for line in found.lines if line.part is part and line.text not in _NOTHING_OPEN]
        said = [line for line in found.lines if line.text.startswith(_SAID_LAST)]
        lines = left[: _LEFT if everything else 1] or said[:1]
        if everything and not left:
            lines = [*said[:1], *(line for line in found.lines if line.part is BriefPart.STABLE)]
        for line in lines:
            text = clip_line(f"{line.text[:1].upper()}{line.text[1:]}", _WORK_LINE)
            yield WorkLine(text=text, at=found.at, evidence=line.evidence)

    def _of_period(self, period: tuple[datetime, datetime], project: str, besides: str) -> Iterator[WorkLine]:
        since, until = (each.replace(tzinfo=None).astimezone(UTC) for each in period)  # each by the clock of its own day
        for session in self._timeline.sessions.during(project, since, until, _OF_A_PERIOD, besides=besides):
            prompts = self._timeline.events.prompts_between(session.provider, session.id, since, until)
            if not prompts:
                continue
            first, last = prompts[0], prompts[-1]
            where = "" if project or not session.project else f", {session.project}"
            branch = f" on {session.branch}" if session.branch not in ("", "HEAD") else ""
            text = f"{first.at.astimezone():%a %Y-%m-%d %H:%M}, {session.provider}{where}{branch}: {gist(first.text, _PROMPT // 2)}"
            if len(prompts) > 1:
                text += f"; {counted(len(prompts), 'prompt')}, the last: {gist(last.text, _PROMPT // 2)}"
            yield WorkLine(text=text, at=last.at, evidence=tuple(dict.fromkeys((first.reference, last.reference))))


def _with_prompt(session: Session, prompt: Event, at: datetime) -> str:
    branch = f" on {session.branch}" if session.branch not in ("", "HEAD") else ""
    return f"{at.astimezone():%Y-%m-%d}{branch}, the last prompt: {gist(prompt.text, _PROMPT)}"


def _open_failure(session: Session, events: Sequence[Event]) -> str:
    """Return the last command that failed in a meaningful way and has not succeeded since."""
    done = runs(events, session.cwd)
    last = next((run for run in reversed(done) if run.outcome == "failed" and run.purposes), None)
    return last.command if last is not None and last in open_failures(done) else ""


_SESSIONS = 12
_LENGTH, _FOLLOWED = 1_500, 240
_UNREADABLE = (sqlite3.Error, UnicodeError)
"""Errors of names that are no valid text, as YAML or a shell can produce. They are treated as unknown."""
_EVENTS = 200
"""Events of the session read before a prompt: about sixty tool calls, in less than two milliseconds."""


def commands_run(timeline: Timeline, project: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands of a project's last sessions, a list for each; empty if they cannot be read."""
    try:
        sessions = timeline.sessions.latest(project, _SESSIONS)
        of_each = (timeline.events.last(session.provider, session.id, _EVENTS) for session in sessions)
        return tuple(tuple(event.command for event in events if event.command) for events in of_each)
    except _UNREADABLE:
        return ()


def conversation(timeline: Timeline, called: str) -> str:
    """Return a turn of a conversation, named by a citation of its prompt or its `recall.rendering.handle`, and what followed.

    Empty if the timeline does not hold it, if its events were forgotten, or if the name is that of several or of something else.
    """
    reference = EvidenceReference.parse(called)
    try:
        found = timeline.events.evidence(reference)[:1] if reference is not None else timeline.cards.prompts_called(called)
        line = timeline.events.offered(found) if len(found) == 1 else []
        if not line:
            return ""
        asked = line[0]
        later = timeline.events.offered(
            timeline.events.of_session(asked.provider, asked.session, after=asked.ordinal, limit=_EVENTS)
        )
        talk = [event for event in timeline.events.offered(timeline.cards.conversation(asked.id)) if event.ordinal > asked.ordinal]
    except _UNREADABLE:
        return ""
    turn = list(takewhile(lambda event: not opens_turn(event), later))
    said = [event.text for event in turn if event.type is EventType.ASSISTANT_MESSAGE and event.text]
    followed = list(dropwhile(lambda event: event.role != "user", talk))
    lines = [f"{asked.at.astimezone():%Y-%m-%d}, {asked.role}: {asked.text[:_LENGTH]}"]
    lines += [f"{'agent' if followed else 'It ended'}: {said[-1][: _LENGTH // 2 if followed else _LENGTH]}"] if said else []
    for event in followed:
        who = "user" if event.role == "user" else "It ended" if event is followed[-1] else "agent"
        lines.append(f"{who}: {clip_line(event.text, _FOLLOWED)}")
    return "\n".join(lines)


def before(timeline: Timeline, provider: str, session: str, prompt: str) -> Situation:
    """Return the session's context of a prompt; empty for an unknown session, or one that cannot be read."""
    try:
        events = timeline.events.last(provider, session, _EVENTS) if session else []
        return situation_of(events, prompt, spoken=timeline.events.spoken(provider, session))
    except _UNREADABLE:
        return Situation()


@dataclass(frozen=True)
class HookContext:
    """One hook call with its project, branch, the user's words and the session's context. Each is looked up on first use."""

    call: HookInput
    agent: str
    timeline: Timeline

    @property
    def session(self) -> str:
        return self.call.session

    @cached_property
    def project(self) -> str:
        return project_of(self.call.cwd)

    @cached_property
    def branch(self) -> str:
        return branch_of(self.call.cwd)

    @cached_property
    def utterances(self) -> tuple[Utterance, ...]:
        return utterances(self.call.prompt)

    @cached_property
    def typed(self) -> str:
        """The user's own words, without approved plans."""
        return "\n".join(piece.text for piece in self.utterances if isinstance(piece, Said))

    @cached_property
    def _spoken(self) -> str:
        pieces = (piece for piece in self.utterances if isinstance(piece, Said | Approved))
        return "\n".join(piece.text if isinstance(piece, Said) else piece.plan for piece in pieces)

    @property
    def is_automatic(self) -> bool:
        """Whether no person wrote the prompt: it is, for example, the news that a task has ended."""
        return bool(self.call.prompt) and not self._spoken

    @cached_property
    def text(self) -> str:
        """The user's words and approved plans, without what the agent puts around them and without private text."""
        return drop_private(self._spoken)

    @cached_property
    def situation(self) -> Situation:
        return before(self.timeline, self.agent, self.session, self.text)
