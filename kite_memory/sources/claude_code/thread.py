"""State carried from earlier lines of a Claude Code transcript to later ones, small enough for a cursor."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal

import orjson

from kite_memory.sources.common.event_builder import keep_latest, shorten_older
from kite_memory.sources.common.tool_text import calls_answered, moment
from kite_memory.sources.common.words import Said, utterances

_LONGEST_QUEUE = 16
_BARE_COMMAND = re.compile(r"/[\w:.-]{1,100}")


class Stage(StrEnum):
    """Stage of a queued prompt."""

    WAITING = "w"
    STARTING = "s"
    HANDED_OVER = "h"
    REPORTED = "t"


@dataclass(slots=True, kw_only=True)
class Queued:
    """A queued prompt.

    ``start`` and ``end`` are the position of its queue line; ``text`` is empty if no user typed it. ``passed_by`` counts other
    messages of the user in the meantime. ``handed_over`` is when the agent received it.
    """

    start: int
    end: int
    at: datetime
    session: str
    text: str
    stage: Stage = Stage.WAITING
    passed_by: int = 0
    handed_over: datetime | None = None


def queued(row: Mapping[str, Any], start: int, end: int) -> Queued:
    """Parse an ``enqueue`` line."""
    content, session = row.get("content"), row.get("sessionId")
    return Queued(
        start=start,
        end=end,
        at=moment(row.get("timestamp")) or datetime.fromtimestamp(0, UTC),
        session=session if isinstance(session, str) else "",
        text=typed(content) if isinstance(content, str) else "",
    )


def typed(text: str) -> str:
    """Return the part of a queued text that a user typed.

    Empty for a command without words of theirs, and for text queued by the client.
    """
    if _BARE_COMMAND.fullmatch(text.strip()) or _is_task(text):
        return ""
    return "\n".join(utterance.text for utterance in utterances(text) if isinstance(utterance, Said))


def _is_task(text: str) -> bool:
    """Return whether it is a background task as queued by clients before 2.1.4x: ``{"task_id": …, "task_type": …}``."""
    if not text.lstrip().startswith('{"task_id"'):
        return False
    try:
        task = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return isinstance(task, dict) and "task_type" in task


class PromptQueue:
    """The client's queue of prompts that the agent has not received yet."""

    def __init__(self, entries: list[Queued] | None = None, ahead: int = 0) -> None:
        self._entries = entries or []
        self._ahead = ahead

    @property
    def entries(self) -> tuple[Queued, ...]:
        return tuple(self._entries)

    @property
    def ahead(self) -> int:
        """Number of prompts found in the transcript before the queue reported that they left it."""
        return self._ahead

    def enqueue(self, entry: Queued) -> list[Queued]:
        """Add an entry and return those that no longer fit, whose events are due now."""
        self._entries.append(entry)
        forgotten = self._entries[:-_LONGEST_QUEUE]
        del self._entries[:-_LONGEST_QUEUE]
        return [entry for entry in forgotten if entry.text and entry.stage is not Stage.REPORTED]

    def dequeue(self, text: str) -> None:
        if entry := self._leaving(text):
            entry.stage = Stage.STARTING

    def remove(self, text: str, at: datetime) -> None:
        if entry := self._leaving(text):
            entry.stage, entry.handed_over = Stage.HANDED_OVER, at

    def _leaving(self, text: str) -> Queued | None:
        """Return the waiting prompt with that text, or the longest waiting one.

        Return ``None`` if it was found in the transcript already, or if no user typed it.
        """
        waiting = [entry for entry in self._entries if entry.stage is Stage.WAITING]
        entry = next((entry for entry in waiting if _same(entry.text, text)), None) if text else None
        if entry is None and self._ahead:
            self._ahead -= 1
            return None
        if entry is None:
            entry = next((entry for entry in waiting if not (text and entry.text)), None)
        if entry is not None and not entry.text:
            self._entries.remove(entry)
            return None
        return entry

    def pop_all(self, text: str) -> None:
        """Remove prompts that the user took back into the editor; what they finally send is another message."""
        back = _plain(text)
        self._entries = [
            entry
            for entry in self._entries
            if entry.stage is not Stage.WAITING or not entry.text or (back and _plain(entry.text) not in back)
        ]

    def met(self, text: str, *, attached: bool) -> Literal["new", "queued", "reported"]:
        """Match a user's message in the transcript with the queue: ``reported`` if its event was created from the queue already.

        Only an attachment can repeat a message; a user may well type the same words again.
        """
        for entry in self._entries:
            reported = entry.stage is Stage.REPORTED
            if entry.text and (attached or not reported) and _same(entry.text, text):
                self._entries.remove(entry)
                if entry.stage is Stage.WAITING:
                    self._ahead = min(self._ahead + 1, _LONGEST_QUEUE)
                return "reported" if reported else "queued"
        return "new"

    def passed(self) -> list[Queued]:
        """Start a turn with another message of the user: return queued prompts whose events are due.

        A prompt that was starting is this message in other words. A prompt passed by two such messages never started a turn,
        because the client ended before, so its event is due.
        """
        starting = next((entry for entry in self._entries if entry.stage is Stage.STARTING), None)
        if starting:
            self._entries.remove(starting)
            return []
        left: list[Queued] = []
        staying: list[Queued] = []
        for entry in self._entries:
            entry.passed_by += entry.stage is Stage.WAITING
            if entry.passed_by >= 2:
                left.append(entry)
            elif entry.stage is not Stage.REPORTED:
                staying.append(entry)
        self._entries = staying
        return [entry for entry in left if entry.text]

    def answered(self, at: datetime) -> list[Queued]:
        """Return the prompts that the agent received before it answered at ``at``, and that have no event yet.

        Compared by time, since lines are written out of order: an answer can follow a prompt that it did not know of.
        """
        waiting = [
            entry for entry in self._entries if entry.stage is Stage.HANDED_OVER and entry.handed_over and entry.handed_over < at
        ]
        for entry in waiting:
            entry.stage = Stage.REPORTED
        return waiting


def _plain(text: str) -> str:
    return " ".join(text.split())


def _same(queued: str, met: str) -> bool:
    """Compare texts, ignoring blanks and what the client inserts for ``[Pasted text #1]`` and ``[Image #1]``."""
    queued, met = _plain(queued), _plain(met)
    if queued == met:
        return True
    literal = queued.partition("[Pasted text #")[0].partition("[Image #")[0].strip()
    return len(literal) < len(queued) and len(literal) >= 8 and met.startswith(literal)


_VERSION = 1
_OPEN_CALLS = 64
_EARLY_RESULTS = 4
_PATIENCE = 12
_TASKS = 8
_DETAIL_LIMIT = 300
_NOTIFICATIONS = 16
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClaudeCall:
    """A tool call without a result yet.

    ``detail`` is the command of a shell (or whose output is requested), or a path. ``begun`` means that a server works on it.
    """

    event: str
    tool: str
    detail: str
    begun: bool = False


@dataclass(slots=True, kw_only=True)
class EarlyResult:
    """A line with a result that precedes its call, since lines are written out of order.

    ``line`` is its id. ``age`` counts the lines since.
    """

    row: Mapping[str, Any]
    line: str
    start: int
    end: int
    age: int = 0


@dataclass(slots=True, kw_only=True)
class TranscriptState:
    """State of a transcript at a line.

    ``title_rank`` is the rank of the title's source: the user's outranks the client's, which outranks an old summary's. ``ordinal``
    is the next event's: its line's position, or higher if earlier lines yielded many events. ``tasks`` are background commands by
    their names. ``notifications`` are the ids of background results, which the client writes more than once. ``own_session`` is set
    if the session is our own extractor's; ``answered`` once the agent has written something.
    """

    started: datetime | None = None
    last_at: datetime = _EPOCH
    ordinal: int = 0
    cwd: str = ""
    branch: str = ""
    parent: str = ""
    title: str = ""
    title_rank: int = 0
    own_session: bool = False
    answered: bool = False
    calls: dict[str, OpenClaudeCall] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    notifications: list[str] = field(default_factory=list)
    early: list[EarlyResult] = field(default_factory=list)
    queue: PromptQueue = field(default_factory=PromptQueue)

    def open_call(self, name: str, call: OpenClaudeCall) -> None:
        self.calls[name] = call
        shorten_older(self.calls, _DETAIL_LIMIT)
        while len(self.calls) > _OPEN_CALLS:
            del self.calls[next(iter(self.calls))]

    def keep_task(self, name: str, command: str) -> None:
        keep_latest(self.tasks, name, command, _TASKS)

    def new_notification(self, name: str) -> bool:
        if name in self.notifications:
            return False
        self.notifications.append(name)
        del self.notifications[:-_NOTIFICATIONS]
        return True

    def due(self) -> list[EarlyResult]:
        """Remove and return the early results whose calls have arrived, and those that have waited long enough.

        Called once per line.
        """
        due: list[EarlyResult] = []
        staying: list[EarlyResult] = []
        for early in self.early:
            early.age += 1
            waits = early.age < _PATIENCE and any(name not in self.calls for name in calls_answered(early.row))
            (staying if waits else due).append(early)
        while len(staying) > _EARLY_RESULTS:
            due.append(staying.pop(0))
        self.early = staying
        return due

    def to_carry(self) -> str:
        queue = self.queue
        return orjson.dumps(
            {
                "v": _VERSION,
                "started": self.started,
                "at": self.last_at,
                "ordinal": self.ordinal,
                "cwd": self.cwd,
                "branch": self.branch,
                "parent": self.parent,
                "title": [self.title_rank, self.title],
                "flags": [self.own_session, self.answered],
                "calls": [[name, call.event, call.tool, call.detail, call.begun] for name, call in self.calls.items()],
                "tasks": self.tasks,
                "notifications": self.notifications,
                "early": [[early.line, early.start, early.end, early.age] for early in self.early],
                "queue": [
                    [entry.start, entry.end, entry.stage, entry.passed_by, entry.handed_over, bool(entry.text)]
                    for entry in queue.entries
                ],
                "ahead": queue.ahead,
            }
        ).decode()

    @staticmethod
    def from_carry(carry: str, read_again: Callable[[int, int], Mapping[str, Any]]) -> "TranscriptState | None":
        """Parse what `to_carry` returned; return ``None`` if another version wrote it.

        Queued prompts and early results are read again from the file, since they may be too long for a cursor.
        """
        try:
            known: dict[str, Any] = orjson.loads(carry)
            if known["v"] != _VERSION:
                return None
            entries: list[Queued] = []
            for start, end, stage, passed_by, handed_over, is_prompt in known["queue"]:
                entry = queued(read_again(start, end), start, end)
                entry.stage, entry.passed_by = Stage(stage), passed_by
                entry.handed_over = datetime.fromisoformat(handed_over) if handed_over else None
                entry.text = entry.text if is_prompt else ""
                entries.append(entry)
            return TranscriptState(
                started=datetime.fromisoformat(known["started"]) if known["started"] else None,
                last_at=datetime.fromisoformat(known["at"]),
                ordinal=known["ordinal"],
                cwd=known["cwd"],
                branch=known["branch"],
                parent=known["parent"],
                title_rank=known["title"][0],
                title=known["title"][1],
                own_session=known["flags"][0],
                answered=known["flags"][1],
                calls={
                    name: OpenClaudeCall(event=event, tool=tool, detail=detail, begun=begun == [True])
                    for name, event, tool, detail, *begun in known["calls"]
                },
                tasks=dict(known.get("tasks", {})),
                notifications=list(known.get("notifications", [])),
                early=[
                    EarlyResult(row=read_again(start, end), line=line, start=start, end=end, age=age)
                    for line, start, end, age in known["early"]
                ],
                queue=PromptQueue(entries, known["ahead"]),
            )
        except (ValueError, KeyError, TypeError, IndexError):
            return None
