"""Answers to an agent's hooks: at a session's start, at a prompt, and beside a tool's result. Most answers are empty.

All answers within one prompt's turn share one budget of tokens. The judge is asked while the agent continues, and its finding is
returned with the next tool's result of the same turn, or not at all.
"""

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from hashlib import blake2b
from time import monotonic
from typing import Literal, Protocol, TypeVar

import orjson

from kite_memory.app.session_context import (
    ABOUT,
    TOOL_EVENTS,
    EarlierWork,
    HookContext,
    HookInput,
    ToolCall,
    last_work,
    read_hook_input,
)
from kite_memory.distill.judge import JudgeQueue, RedactingJudge, Report, bounded_question, fit_to_leave
from kite_memory.errors import KiteError
from kite_memory.model.event import EventType
from kite_memory.model.hit import Injection, Judge
from kite_memory.recall.lexical import essence
from kite_memory.recall.recall import Recall
from kite_memory.recall.rendering import estimated_tokens, likely_tokens, remarks
from kite_memory.recall.select import Delivery, Prompt, bounded, why_needless
from kite_memory.redaction import drop_private, redact
from kite_memory.redaction.cutting import beginning
from kite_memory.system import utc_now
from kite_memory.team.search import TeamQuery, TeamRecall
from kite_memory.text.quoting import plain_line
from kite_memory.text.shell import Action
from kite_memory.timeline.store import Timeline

Mode = Literal["late", "wait", "off"]

PATIENCE = 1.2
"""Seconds that a prompt waits for the judge if the user chose to wait."""

TEAM_SECONDS = 0.15
"""Time limit for the team's answer, from a prompt's arrival; the hook has 0.3 seconds for everything."""

_TWICE_SECONDS = 2.0
"""Time within which the same input counts as the same event."""

_CLAUDE_CODE = "claude-code"
_CLINE = "cline"
_TURN_TOKENS = 1600
_START_TOKENS = 360
_LAST_WORK_LINES = 2
_LEAST_TOKENS = 120
"""Least number of tokens left for a note in a block of its own."""
_EVENTS = 200
"""Events read of the last session: about sixty tool calls, in less than two milliseconds."""
_FIRST_EVENTS = 20
_MOST_TURNS = 256

_HEAD = 200
_LOOKED_AT = 8 * _HEAD

_PLAIN_TEXT = frozenset({"SessionStart", "UserPromptSubmit"})
"""Events at which Claude Code takes the printed text as it is."""
_REACHES_THE_MODEL = {_CLAUDE_CODE: TOOL_EVENTS}
_REACHES_ANY_MODEL = frozenset({"PostToolUse"})
"""Events whose answer every agent passes to its model.

Codex took no text before a tool until its version 0.129, Gemini CLI takes none.
"""

_TO_LOOK = 0.1
"""Time limit in seconds for all tool calls of a reply together; the hook has 0.3 for everything."""

_STARTS_WITH_A_PROMPT = frozenset({"gemini-cli", "opencode", "cline"})
"""Agents that get the session's opening block with the first prompt, behind it.

Gemini CLI (0.61) puts the answer at a session's start in front of the first prompt, and no longer takes that prompt for the user's
when the session is resumed. OpenCode has no hook at a session's start whose answer reaches the model. In Cline, the hook of a new
task and that of its first prompt would both answer.
"""

_ACTS = frozenset(
    {
        *("Bash", "PowerShell", "Shell", "shell", "local_shell", "exec_command", "unified_exec", "run_shell_command"),
        *("Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch", "replace", "write_file"),
        *("execute_command", "run_commands", "write_to_file", "replace_in_file", "editor"),
    }
)
"""Tools that change something. Tools that only read get no notes."""


LeftToDo = Callable[[str, str], Sequence[str]]
"""Function from a project, or a session of it, to its unfinished work, one line for each item."""


def _nothing_left(project: str, session: str) -> Sequence[str]:
    return ()


class Capture(Protocol):
    def __call__(self, text: str, *, agent: str, session: str, project: str) -> None:
        """Same as `prompt_capture.PromptCapture.capture`."""
        ...


def _capture_nothing(text: str, *, agent: str, session: str, project: str) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """The judge that is asked about doubtful notes. ``patience`` is how many seconds longer a prompt may take in mode "wait"."""

    judge: Judge
    mode: Mode
    patience: float = PATIENCE


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class _Latest(OrderedDict[_Key, _Value]):
    """What was noted last, of as many sessions as may be at work: noting more drops what was noted longest ago."""

    def __setitem__(self, key: _Key, value: _Value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > _MOST_TURNS:
            self.popitem(last=False)


class HookHandler:
    """Answers the hooks of all agents. Thread-safe.

    `close` ends it without waiting for a judge that is still reading.
    """

    def __init__(
        self,
        *,
        recall: Recall,
        timeline: Timeline,
        judging: Judging | None,
        report: Report,
        left_to_do: LeftToDo = _nothing_left,
        capture: Capture = _capture_nothing,
        team: TeamRecall | None = None,
        clock: Callable[[], datetime] = utc_now,
        monotonic_clock: Callable[[], float] = monotonic,
    ) -> None:
        self._recall = recall
        self._team = team
        self._monotonic = monotonic_clock
        self._left_to_do = left_to_do
        self._work = EarlierWork(timeline, clock)
        self._capture = capture
        self._timeline = timeline
        self._judges = None
        self.patience = 0.0
        if judging is not None and judging.mode != "off":
            asked = RedactingJudge(inner=judging.judge)
            self._judges = JudgeQueue(asked, report=report, log=recall.log_verdicts, fallback=recall.likely)
            self.patience = judging.patience if judging.mode == "wait" else 0.0
        self._clock = clock
        self._lock = threading.Lock()
        self._left = _Latest[str, int]()
        self._forks = _Latest[str, None]()
        self._unopened = _Latest[str, None]()
        self._answered = _Latest[bytes, float]()
        self._took = _Latest[str, float]()
        self._heard = _Latest[str, str]()
        self._waiting = _Latest[str, HookContext | None]()

    def close(self) -> None:
        if self._judges is not None:
            self._judges.close()

    def answer(self, body: bytes, agent: str = "") -> str:
        """Answer as `prepare` does, and record the answer as delivered at once."""
        text, delivery = self.prepare(body, agent)
        delivery.arrived()
        return text

    def prepare(self, body: bytes, agent: str = "", *, silent: bool = False) -> tuple[str, Delivery]:
        """Return the exact text for the agent's hook to print, and its delivery.

        The text is empty for unknown input and for sub-agents. It counts as shown, is logged, and costs its tokens once the
        delivery has arrived. If ``silent``, no text is returned, and what the user asks to keep is kept all the same.
        """
        delivery = Delivery()
        agent = agent or _CLAUDE_CODE
        key = blake2b(body, digest_size=16, person=agent.encode()[:16]).digest()
        if self._is_repeated(key):
            return "", delivery
        call = read_hook_input(body)
        try:
            text = self._reply(call, agent, delivery, silent=silent)
        except BaseException:
            self._forget_answer(key)
            delivery.lost()
            raise
        if text:
            delivery.add_callbacks(lost=partial(self._forget_answer, key))
        elif silent or call is None or call.event != "UserPromptSubmit" or b'"prompt_id"' not in body:
            self._forget_answer(key)  # without the prompt's id, the same input may be the prompt asked again
        return text, delivery

    def took_ms(self, session: str) -> float | None:
        """Return how long the answer to the session's last prompt took; without a session, to the last prompt of any."""
        with self._lock:
            took = self._took.get(session) if session else next(reversed(self._took.values()), None)
        return None if took is None else took * 1000

    def _log_time(self, session: str, took: float) -> None:
        with self._lock:
            self._took[session] = took

    def _is_repeated(self, key: bytes) -> bool:
        """Return whether this very input was answered just now: the agent runs the hook twice, from its settings and a plugin."""
        now = self._monotonic()
        with self._lock:
            before = self._answered.get(key)
            if before is not None and now - before < _TWICE_SECONDS:
                return True
            self._answered[key] = now
        return False

    def _forget_answer(self, key: bytes) -> None:
        with self._lock:
            self._answered.pop(key, None)

    def _reply(self, call: HookInput | None, agent: str, delivery: Delivery, *, silent: bool) -> str:
        if call is None or call.is_subagent or (call.from_cursor and agent == _CLAUDE_CODE):
            return ""  # Cursor can run Claude Code's hooks beside its own, which answer
        context = HookContext(call, agent, self._timeline)
        match call.event:
            case "SessionStart":
                text = self._started(context, delivery, silent=silent) if agent not in _STARTS_WITH_A_PROMPT else ""
            case "UserPromptSubmit":
                began = self._monotonic()
                self._hold(context, held=not call.takes_context)
                text = self._prompted(context, delivery) if call.takes_context and not silent else ""
                self._log_time(context.session, self._monotonic() - began)
                if context.typed:  # last: the agent waits
                    self._capture(context.typed, agent=agent, session=context.session, project=context.project)
            case "Stop" | "SessionEnd":
                self._end_turn(context.session)
                return ""
            case event if event in _REACHES_THE_MODEL.get(agent, _REACHES_ANY_MODEL) and not silent:
                waiting = self._waiting_prompt(context)
                said = self._prompted(waiting, delivery) if waiting is not None else ""
                text = "\n".join(filter(None, (said, self._acted(context, delivery))))
            case _:
                return ""
        return _printed(text, context) if text else ""

    def _started(self, context: HookContext, delivery: Delivery, *, silent: bool) -> str:
        session, source = context.session, context.call.source
        self._take_unopened(session)  # the opening block is given again
        if source != "compact":  # a compaction often comes in the middle of a turn
            self._end_turn(session)
        if source in ("compact", "clear"):
            self._recall.forget_session(session)
        if source == "fork":  # the context of a fork already holds all this
            return ""
        if silent:
            self._open_later(session)
            return ""
        return self._opening(context, delivery)

    def _opening(self, context: HookContext, delivery: Delivery) -> str:
        session = context.session
        brief = self._recall.brief(session=session, project=context.project, branch=context.branch, delivery=delivery)
        room = _START_TOKENS - (brief.tokens or likely_tokens(brief.block))
        lines = () if room <= 0 else self._last_work(context)
        text = "\n".join(filter(None, (brief.block, remarks(lines, about=ABOUT, tokens=room))))
        if text and session:
            delivery.add_callbacks(lost=partial(self._open_later, session))
        return text

    def _open_later(self, session: str) -> None:
        """Give the session's opening block with its next prompt, since its delivery at the start failed."""
        with self._lock:
            self._unopened[session] = None

    def _take_unopened(self, session: str) -> bool:
        """Return whether the session's opening block is still to be given, and clear the mark."""
        with self._lock:
            found = session in self._unopened
            self._unopened.pop(session, None)
            return found

    def _last_work(self, context: HookContext) -> tuple[str, ...]:
        """Return lines about the last work in the project.

        After a compaction they are about this very session, whose work has left the context. A resumed or forked session gets none,
        since its context still holds it.
        """
        source = context.call.source
        if not context.project or source in ("resume", "fork"):
            return ()
        try:
            left = tuple(self._left_to_do(context.project, context.session if source == "compact" else ""))
        except (KiteError, sqlite3.Error):
            left = ()
        last = self._last_session(context)
        lines = (*last[:1], *left, *last[1:])
        return lines if source == "compact" else lines[:_LAST_WORK_LINES]

    def _last_session(self, context: HookContext) -> tuple[str, ...]:
        try:
            if context.call.source == "compact":
                session = self._timeline.sessions.get(context.agent, context.session)
            else:
                session = self._timeline.sessions.last(context.project, besides=context.session)
            if session is None:
                return ()
            events = self._timeline.events.offered(self._timeline.events.last(session.provider, session.id, _EVENTS))
            last = self._timeline.events.last_prompt(session.provider, session.id)
            prompt = last if last is not None and self._timeline.events.offered([last]) else None
        except sqlite3.Error:
            return ()  # `kmem status` and the daemon's other threads report it
        return last_work(session, events, prompt, self._clock())

    def _prompted(self, context: HookContext, delivery: Delivery) -> str:
        began = self._monotonic()
        if context.is_automatic:
            return ""  # a message in the user's place continues the turn
        session, agent = context.session, context.agent
        self._end_turn(session)
        self._take_over(session, agent)
        query = self._ask_the_team(context, until=began + TEAM_SECONDS)
        has_a_hook = context.call.event == "UserPromptSubmit"
        begins = self._take_unopened(session) or (has_a_hook and agent in _STARTS_WITH_A_PROMPT and self._begins(session, agent))
        opening = self._opening(context, delivery) if begins else ""
        left = self._spend(session, estimated_tokens(opening), delivery)
        work = self._work.asked(context.text, context.project, besides=session, begins=not context.situation.position)
        earlier = work.block() if context.project else ""
        left = self._spend(session, estimated_tokens(earlier), delivery)
        prompt = _prompt(context, left)
        injection = self._recall.answer(prompt, delivery=delivery)
        left = self._spend(session, _cost(injection), delivery)
        text = "\n".join(filter(None, (opening, earlier, injection.block)))
        if query is not None and left >= _LEAST_TOKENS and len(injection.hits) < self._recall.notes_per_prompt:
            of_team = self._recall.from_the_team(prompt, query.hits(), beside=injection, tokens=left, delivery=delivery)
            left = self._spend(session, _cost(of_team), delivery)
            text = "\n".join(filter(None, (text, of_team.block)))
        if self._judges is None or injection.question is None or not session or left < _LEAST_TOKENS:
            return text
        self._judges.ask(bounded_question(injection.question))
        if not self.patience:
            return text
        more = self._ruling(session, delivery, within=max(0.001, began + self.patience - self._monotonic()))
        return "\n".join(filter(None, (text, more)))

    def _ask_the_team(self, context: HookContext, *, until: float) -> TeamQuery | None:
        """Start a query to the team's server; its answer is read last.

        The query holds only what the index would search for, redacted as in the timeline.
        """
        if self._team is None or why_needless(bounded(context.text)) or not context.project:
            return None
        return self._team.ask(redact(essence(fit_to_leave(context.text))), context.project, until=until)

    def _begins(self, session: str, agent: str) -> bool:
        """Return whether this is the first prompt of a session without any known reply."""
        if not session:
            return False
        try:
            if self._recall.memory.report.times(session, "prompt"):
                return False
            return all(event.type is EventType.USER_MESSAGE for event in self._timeline.events.last(agent, session, _FIRST_EVENTS))
        except sqlite3.Error:
            return False

    def _take_over(self, session: str, agent: str) -> None:
        """Count the notes shown in a fork's parent session as shown in the fork, once the timeline knows the parent."""
        with self._lock:
            if not session or session in self._forks:
                return
        try:
            known = self._timeline.sessions.get(agent, session)
        except sqlite3.Error:
            return
        if known is None or not known.parent:
            return
        self._recall.take_over(session, known.parent)
        with self._lock:
            self._forks[session] = None

    def _acted(self, context: HookContext, delivery: Delivery) -> str:
        session = context.session
        for call in context.call.calls:
            if call.notes:
                delivery.add_callbacks(arrived=partial(self._recall.opened, session, call.notes, project=context.project))
        opening = self._opening(context, delivery) if self._take_unopened(session) else ""
        return "\n".join(filter(None, (opening, self._ruling(session, delivery), self._advice(context, delivery))))

    def _hold(self, context: HookContext, *, held: bool) -> None:
        """Note that the session's prompts reach us, and keep one whose answer the agent would drop until a tool has ended."""
        with self._lock:
            self._waiting[context.session] = context if held else None

    def _waiting_prompt(self, context: HookContext) -> HookContext | None:
        """Return the prompt that the agent is working on, once, if it could not be answered when it was sent."""
        session = context.session
        with self._lock:
            if session in self._waiting:
                waiting, self._waiting[session] = self._waiting[session], None
                return waiting
        return self._unheard_prompt(context) if context.agent == _CLINE and session else None

    def _unheard_prompt(self, context: HookContext) -> HookContext | None:
        """Return the prompt that Cline's command line tool is working on, once; it runs no hook for a prompt.

        It writes the first one to its transcript only when the first tool has ended. So what opens a session is given with the
        first tool's result, and what answers the prompt with the second.
        """
        session = context.session
        with self._lock:
            heard = self._heard.get(session)
        try:
            events = self._timeline.events.last(context.agent, session, _FIRST_EVENTS)
            is_new = heard is None and not self._recall.memory.report.times(session, "prompt")
        except sqlite3.Error:
            return None
        asked = [event for event in events if event.type is EventType.USER_MESSAGE]
        if is_new and len(asked) <= 1:
            self._open_later(session)
        last = asked[-1].id if asked else ""
        with self._lock:
            self._heard[session] = last
        return (
            None
            if last in ("", heard)
            else HookContext(replace(context.call, prompt=asked[-1].text), context.agent, self._timeline)
        )

    def _ruling(self, session: str, delivery: Delivery, *, within: float = 0.0) -> str:
        """Return the block of notes that the judge found. If its delivery is lost, it is given with the next tool's result."""
        ruling = self._judges.collect(session, within=within) if self._judges is not None else None
        if self._judges is None or ruling is None or (left := self._tokens_left(session)) < _LEAST_TOKENS:
            return ""
        injection = self._recall.judged(ruling.question, ruling.judged, tokens=left, delivery=delivery)
        if not injection.silent:
            delivery.add_callbacks(lost=partial(self._judges.put_back, ruling))
        self._spend(session, _cost(injection), delivery)
        return injection.block

    def _advice(self, context: HookContext, delivery: Delivery) -> str:
        until = self._monotonic() + _TO_LOOK
        for call in context.call.calls:
            if call.tool not in _ACTS or self._tokens_left(context.session) < _LEAST_TOKENS:
                continue
            if self._monotonic() > until:
                break
            injection = self._recall.act(_action(call, context), branch=context.branch, delivery=delivery)
            if not injection.silent:
                self._spend(context.session, _cost(injection), delivery)
                return injection.block
        return ""

    def _end_turn(self, session: str) -> None:
        if self._judges is not None:
            self._judges.withdraw(session)
        with self._lock:
            self._left.pop(session, None)

    def _tokens_left(self, session: str) -> int:
        with self._lock:
            return self._left.get(session, _TURN_TOKENS)

    def _spend(self, session: str, tokens: int, delivery: Delivery) -> int:
        """Take tokens from the turn's budget and return the rest. They are given back if the delivery is lost."""
        if tokens:
            delivery.add_callbacks(lost=lambda: self._add(session, tokens))
        return self._add(session, -tokens)

    def _add(self, session: str, tokens: int) -> int:
        with self._lock:
            left = self._left[session] = min(_TURN_TOKENS, self._left.get(session, _TURN_TOKENS) + tokens)
        return left


def _cost(injection: Injection) -> int:
    return injection.tokens or estimated_tokens(injection.block)


def _prompt(context: HookContext, left: int) -> Prompt:
    return Prompt(
        text=context.text,
        session=context.session,
        project=context.project,
        head=kept_head(context.text),
        situation=context.situation,
        tokens=left,
        branch=context.branch,
        project_only=True,
    )


def _action(call: ToolCall, context: HookContext) -> Action:
    return Action(
        session=context.session,
        project=context.project,
        cwd=context.call.cwd,
        tool=call.tool,
        command=redact(drop_private(call.command)),
        error=redact(drop_private(call.error)),
        files=tuple(map(redact, call.files)),
    )


def _printed(text: str, context: HookContext) -> str:
    if context.agent == _CLAUDE_CODE and context.call.event in _PLAIN_TEXT:
        return text
    if context.agent == "copilot-cli":
        return orjson.dumps({"additionalContext": text}).decode()
    if context.agent == "cursor":
        may_go_on = {"continue": True} if context.call.event == "UserPromptSubmit" else {}
        return orjson.dumps({**may_go_on, "additional_context": text}).decode()
    if context.agent == _CLINE:
        return orjson.dumps({"cancel": False, "contextModification": text}).decode()
    return orjson.dumps({"hookSpecificOutput": {"hookEventName": context.call.name, "additionalContext": text}}).decode()


def kept_head(prompt: str) -> str:
    """Return the beginning of a prompt, redacted: all of it that the log stores."""
    looked_at = redact(beginning(prompt, _LOOKED_AT))
    return plain_line(looked_at if len(prompt) <= _LOOKED_AT else f"{looked_at} …", _HEAD)
