"""Open todo items of sessions, read from their events."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from kite_memory.model.event import Event, EventType, Session

if TYPE_CHECKING:
    from kite_memory.timeline.store import Timeline  # which reads todos itself, by way of `resume`

Standing = Literal["pending", "in_progress", "completed", "cancelled"]

LISTS = frozenset(
    {"TodoWrite", "update_plan", "write_todos", "todowrite", "todo_write", "update_todo_list", "update_todo", "manage_todo_list"}
)
ITEMS = frozenset({"TaskCreate", "TaskUpdate", "TaskList"})
TOOLS = LISTS | ITEMS

_MARKS: dict[str, Standing] = {
    " ": "pending",
    "x": "completed",
    "X": "completed",
    ">": "in_progress",
    "-": "in_progress",
    "~": "cancelled",
}
_LINE = re.compile(r"^[ \t]{0,12}(?:[-*][ \t]{1,4})?\[([ xX>~-])\][ \t]{1,4}(\S[^\n]{0,1000})", re.MULTILINE)
_NUMBERED = re.compile(r"^#(\d{1,6}) \[([a-z_]{1,20})\] (\S[^\n]{0,1000})", re.MULTILINE)
_MADE = re.compile(r"Task #(\d{1,6}) created")
_FIELD = re.compile(r"^(taskId|status|subject): ([^\n]{1,1000})", re.MULTILINE)
_WORDS: dict[str, Standing] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "completed": "completed",
    "deleted": "cancelled",
    "cancelled": "cancelled",
}
_MOST = 100
_LENGTH = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoItem:
    text: str
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A todo list. ``at`` is when it was last changed."""

    items: tuple[TodoItem, ...]
    at: datetime

    @property
    def open(self) -> tuple[TodoItem, ...]:
        """The items still open, those in progress first."""
        there = [item for item in self.items if item.standing in ("pending", "in_progress")]
        return tuple(sorted(there, key=lambda item: item.standing != "in_progress"))


def todos(events: Iterable[Event]) -> Listed | None:
    """Return the todo list as it stands after these events of one session, given in order; ``None`` if none exists."""
    numbered: dict[str, TodoItem] = {}
    written: tuple[TodoItem, ...] | None = None
    created: dict[str, str] = {}
    at: datetime | None = None
    for event in events:
        if event.tool not in TOOLS:
            continue
        if event.type is EventType.TOOL_CALL:
            match event.tool:
                case "TaskCreate":
                    created[event.call] = _field(event.text, "subject")
                case "TaskUpdate":
                    if _updated(numbered, event.text):
                        at = event.at
                case "TaskList":
                    pass
                case _ if (items := _items(event.text)) is not None:
                    written, numbered, at = items, {}, event.at
        elif event.type is EventType.TOOL_RESULT and event.status != "failed":
            if event.tool == "TaskCreate" and (made := _MADE.search(event.text)) and (subject := created.pop(event.call, "")):
                numbered[made[1]] = TodoItem(text=_cut(subject), standing="pending")
                written, at = None, event.at
            elif event.tool == "TaskList" and (found := _numbered(event.text)):
                numbered, written = found, None
                at = at or event.at
    items = written if written is not None else tuple(numbered[name] for name in sorted(numbered, key=int))
    kept = tuple(item for item in items if item.standing != "cancelled")[:_MOST]
    return Listed(items=kept, at=at) if kept and at is not None else None


def _items(text: str) -> tuple[TodoItem, ...] | None:
    found = tuple(TodoItem(text=_cut(said), standing=_MARKS[mark]) for mark, said in _LINE.findall(text))
    return found or (() if re.search(r"^(?:todos|plan): *(?:\[\])?$", text, re.MULTILINE) else None)


def _numbered(text: str) -> dict[str, TodoItem]:
    return {
        number: TodoItem(text=_cut(re.sub(r" \[blocked by [^\]]{1,200}\]$", "", said)), standing=_WORDS.get(standing, "pending"))
        for number, standing, said in _NUMBERED.findall(text)
    }


def _updated(numbered: dict[str, TodoItem], text: str) -> bool:
    fields = dict(_FIELD.findall(text))
    item = numbered.get(fields.get("taskId", "").strip())
    if item is None:
        return False
    standing = _WORDS.get(fields.get("status", "").strip(), item.standing)
    numbered[fields["taskId"].strip()] = replace(item, standing=standing, text=_cut(fields.get("subject", item.text)))
    return True


def _field(text: str, name: str) -> str:
    return next((str(said) for field, said in _FIELD.findall(text) if field == name), "")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LENGTH else line[: _LENGTH - 1].rstrip() + "…"


_SESSIONS = 8
_EVENTS = 2_000
"""Number of a session's last events that are read: older todo items are done, or the agent has dropped them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    session: Session
    listed: Listed


def left(timeline: "Timeline", *, project: str = "", session: str = "", projects: Collection[str] | None = None) -> Iterator[Left]:
    """Return open todos of one session, or of a project's last sessions, latest first.

    With ``projects``, no event of a session of another project is read.
    """
    chosen = timeline.sessions_named(session) if session else timeline.last_sessions(project, _SESSIONS)
    for each in chosen:
        if session and each.id != session:  # only a prefix match
            continue
        if projects is not None and each.project not in projects:
            continue
        listed = todos(timeline.offered(timeline.of_tools(each.provider, each.id, TOOLS, among=_EVENTS)))
        if listed is not None:
            yield Left(session=each, listed=listed)
