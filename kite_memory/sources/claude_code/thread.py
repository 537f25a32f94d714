"""What a later line of a Claude Code transcript needs to know of earlier ones, small enough to travel in a cursor."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal

import orjson

from kite_memory.sources.common.event_builder import shorten_older
from kite_memory.sources.common.fields import calls_answered, moment
from kite_memory.sources.common.words import Said, utterances

_LONGEST_QUEUE = 16
_BARE_COMMAND = re.compile(r"/[\w:.-]{1,100}")


class Stage(StrEnum):
    WAITING = "w"
    STARTING = "s"
    HANDED_OVER = "h"
    TOLD = "t"


@dataclass(slots=True, kw_only=True)
class Queued:
    """``start`` and ``end`` are where its queue line stands; ``text`` is empty for what no person typed.

    ``passed_by`` counts a person's messages that came meanwhile and were others. ``handed_over`` is when the agent got it.
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
    """An ``enqueue`` line as an entry."""
    content, session = row.get("content"), row.get("sessionId")
    return Queued(
        start=start,
        end=end,
        at=moment(row.get("timestamp")) or datetime.fromtimestamp(0, UTC),
        session=session if isinstance(session, str) else "",
        text=typed(content) if isinstance(content, str) else "",
    )


def typed(text: str) -> str:
    """What of a queued text a person typed. A command without words of theirs is none, nor is what the client queues."""
    if _BARE_COMMAND.fullmatch(text.strip()) or _is_task(text):
        return ""
    return "\n".join(utterance.text for utterance in utterances(text) if isinstance(utterance, Said))


def _is_task(text: str) -> bool:
    """Whether it is a task in the background, as clients before 2.1.4x queue it: ``{"task_id": …, "task_type": …}``."""
    if not text.lstrip().startswith('{"task_id"'):
        return False
    try:
        task = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return isinstance(task, dict) and "task_type" in task


class PromptQueue:
    def __init__(self, entries: list[Queued] | None = None, ahead: int = 0) -> None:
        self._entries = entries or []
        self._ahead = ahead

    @property
    def entries(self) -> tuple[Queued, ...]:
        return tuple(self._entries)

    @property
    def ahead(self) -> int:
        """How many prompts were met again before the queue said that they left it."""
        return self._ahead

    def enqueue(self, entry: Queued) -> list[Queued]:
        """What must be told now, since no more can be remembered, comes back."""
        self._entries.append(entry)
        forgotten = self._entries[:-_LONGEST_QUEUE]
        del self._entries[:-_LONGEST_QUEUE]
        return [entry for entry in forgotten if entry.text and entry.stage is not Stage.TOLD]

    def dequeue(self, text: str) -> None:
        if entry := self._leaving(text):
            entry.stage = Stage.STARTING

    def remove(self, text: str, at: datetime) -> None:
        if entry := self._leaving(text):
            entry.stage, entry.handed_over = Stage.HANDED_OVER, at

    def _leaving(self, text: str) -> Queued | None:
        """The prompt of that text, or the longest waiting one; not one that was met, nor what no person typed."""
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
        """The person took them back into the editor; what they send in the end is another message."""
        back = _plain(text)
        self._entries = [
            entry
            for entry in self._entries
            if entry.stage is not Stage.WAITING or not entry.text or (back and _plain(entry.text) not in back)
        ]

    def met(self, text: str, *, attached: bool) -> Literal["new", "queued", "told"]:
        """A person's message stands in the transcript itself: ``told`` when it had been told from the queue already.

        Only an attachment can be a second telling; a person may well type the same words again.
        """
        for entry in self._entries:
            told = entry.stage is Stage.TOLD
            if entry.text and (attached or not told) and _same(entry.text, text):
                self._entries.remove(entry)
                if entry.stage is Stage.WAITING:
                    self._ahead = min(self._ahead + 1, _LONGEST_QUEUE)
                return "told" if told else "queued"
        return "new"

    def passed(self) -> list[Queued]:
        """A turn began with another message of the person's. What was starting was that one, in other words.

        What two such messages left behind never started a turn: the client ended before. It is told now.
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
            elif entry.stage is not Stage.TOLD:
                staying.append(entry)
        self._entries = staying
        return [entry for entry in left if entry.text]

    def answered(self, at: datetime) -> list[Queued]:
        """The agent answers. What it had been handed before, and nothing else tells, is told now.

        By the clock, since lines are written out of order: an answer can stand after a prompt that it did not know of.
        """
        told = [
            entry for entry in self._entries if entry.stage is Stage.HANDED_OVER and entry.handed_over and entry.handed_over < at
        ]
        for entry in told:
            entry.stage = Stage.TOLD
        return told


def _plain(text: str) -> str:
    return " ".join(text.split())


def _same(queued: str, met: str) -> bool:
    """Equal but for blanks, and for what the client puts in the place of ``[Pasted text #1]`` and ``[Image #1]``."""
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
class OpenCall:
    """A tool call whose result has not come. ``detail`` is the command of a shell, of a call for its output too, or a path."""

    event: str
    tool: str
    detail: str


@dataclass(slots=True, kw_only=True)
class EarlyResult:
    """A line with the result of a call that stands behind it: lines are written out of order.

    ``line`` is its id. ``age`` counts the lines since.
    """

    row: Mapping[str, Any]
    line: str
    start: int
    end: int
    age: int = 0


@dataclass(slots=True, kw_only=True)
class Thread:
    """``title_rank`` says who gave the title: a person's outranks the client's, which outranks an old summary's.

    ``ordinal`` is the next event's: its line's position, or more where much was told of little.
    ``tasks`` are the commands that went to the background, by their names there. ``notifications`` are the ids of results that
    came from there: the client writes each down more than once.
    ``ours`` is set when the session turned out to be our own extractor's; ``answered`` when the agent first spoke.
    """

    started: datetime | None = None
    last_at: datetime = _EPOCH
    ordinal: int = 0
    cwd: str = ""
    branch: str = ""
    parent: str = ""
    title: str = ""
    title_rank: int = 0
    ours: bool = False
    answered: bool = False
    calls: dict[str, OpenCall] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    notifications: list[str] = field(default_factory=list)
    early: list[EarlyResult] = field(default_factory=list)
    queue: PromptQueue = field(default_factory=PromptQueue)

    def open_call(self, name: str, call: OpenCall) -> None:
        self.calls[name] = call
        shorten_older(self.calls, _DETAIL_LIMIT)
        while len(self.calls) > _OPEN_CALLS:
            del self.calls[next(iter(self.calls))]

    def keep_task(self, name: str, command: str) -> None:
        self.tasks[name] = command
        while len(self.tasks) > _TASKS:
            del self.tasks[next(iter(self.tasks))]

    def new_notification(self, name: str) -> bool:
        if name in self.notifications:
            return False
        self.notifications.append(name)
        del self.notifications[:-_NOTIFICATIONS]
        return True

    def due(self) -> list[EarlyResult]:
        """Early results whose calls have come by now, and those that waited long enough; they are no longer kept.

        Asked once a line.
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

    def carried(self) -> str:
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
                "flags": [self.ours, self.answered],
                "calls": [[name, call.event, call.tool, call.detail] for name, call in self.calls.items()],
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
    def resumed(carry: str, read_again: Callable[[int, int], Mapping[str, Any]]) -> "Thread | None":
        """The inverse of `carried`, ``None`` for what another version wrote.

        Queued prompts and early results are fetched from where they stand in the file: they may be long, a cursor not.
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
            return Thread(
                started=datetime.fromisoformat(known["started"]) if known["started"] else None,
                last_at=datetime.fromisoformat(known["at"]),
                ordinal=known["ordinal"],
                cwd=known["cwd"],
                branch=known["branch"],
                parent=known["parent"],
                title_rank=known["title"][0],
                title=known["title"][1],
                ours=known["flags"][0],
                answered=known["flags"][1],
                calls={name: OpenCall(event=event, tool=tool, detail=detail) for name, event, tool, detail in known["calls"]},
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
