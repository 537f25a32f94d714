"""What a later line of a Claude Code transcript needs to know of earlier ones, small enough to travel in a cursor."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from kite_memory.sources.claude_code.queue import PromptQueue, Queued, Stage, queued
from kite_memory.sources.common.event_builder import shorten_older
from kite_memory.sources.common.fields import calls_answered

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
