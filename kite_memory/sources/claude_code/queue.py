"""Prompts typed while Claude Code works: told once each, whichever way the transcript comes to hold them.

A prompt is queued (``enqueue``) and then either starts a turn (``dequeue``, and a user line of the same words follows), is
handed to the agent amid a turn (``remove``, and since 2.1.91 an attachment of the same words follows or went before), or
goes back into the editor (``popAll``). Before 2.1.91 a prompt handed over amid a turn stands nowhere but in its queue line.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal

import orjson

from kite_memory.sources.common.fields import moment
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
