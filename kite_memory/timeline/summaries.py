"""Overviews of many sessions: the outcome of each, what it worked with, and its todo list, as a value and as a line of a brief."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from kite_memory.model.event import Event, EventType, Session
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip_line, first_of
from kite_memory.timeline.progress import BriefLine, BriefPart, changes_files, cited_in_lengths, typed
from kite_memory.timeline.rows import SELECT_LAST_ORDINALS, SELECT_STATE, SELECT_STATE_PAGE, SessionState, session_of, state_of
from kite_memory.timeline.runs import Commit, Run, kinds_in
from kite_memory.timeline.schema import TimelineDatabase

if TYPE_CHECKING:
    from kite_memory.timeline.store import Timeline

TodoStatus = Literal["pending", "in_progress", "completed", "cancelled"]

LISTS = frozenset(
    {"TodoWrite", "update_plan", "write_todos", "todowrite", "todo_write", "update_todo_list", "update_todo", "manage_todo_list"}
)
ITEMS = frozenset({"TaskCreate", "TaskUpdate", "TaskList"})
TOOLS = LISTS | ITEMS

_MARKS: dict[str, TodoStatus] = {
    " ": "pending",
    "x": "completed",
    "X": "completed",
    ">": "in_progress",
    "-": "in_progress",
    "~": "cancelled",
}
_LINE = lazy_regex(r"^[ \t]{0,12}(?:[-*][ \t]{1,4})?\[([ xX>~-])\][ \t]{1,4}(\S[^\n]{0,1000})", re.MULTILINE)
_NUMBERED = lazy_regex(r"^#(\d{1,6}) \[([a-z_]{1,20})\] (\S[^\n]{0,1000})", re.MULTILINE)
_MADE = lazy_regex(r"Task #(\d{1,6}) created")
_FIELD = lazy_regex(r"^(taskId|status|subject): ([^\n]{1,1000})", re.MULTILINE)
_WORDS: dict[str, TodoStatus] = {
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
    status: TodoStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A todo list. ``at`` is when it was last changed."""

    items: tuple[TodoItem, ...]
    at: datetime

    @property
    def open(self) -> tuple[TodoItem, ...]:
        """The items still open, those in progress first."""
        there = [item for item in self.items if item.status in ("pending", "in_progress")]
        return tuple(sorted(there, key=lambda item: item.status != "in_progress"))


def todos(events: Iterable[Event]) -> Listed | None:
    """Return the todo list after these events of one session, given in order; ``None`` if they hold none."""
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
                numbered[made[1]] = TodoItem(text=clip_line(subject, _LENGTH), status="pending")
                written, at = None, event.at
            elif event.tool == "TaskList" and (found := _numbered(event.text)):
                numbered, written = found, None
                at = at or event.at
    items = written if written is not None else tuple(numbered[name] for name in sorted(numbered, key=int))
    kept = tuple(item for item in items if item.status != "cancelled")[:_MOST]
    return Listed(items=kept, at=at) if kept and at is not None else None


def _items(text: str) -> tuple[TodoItem, ...] | None:
    found = tuple(TodoItem(text=clip_line(said, _LENGTH), status=_MARKS[mark]) for mark, said in _LINE.findall(text))
    return found or (() if re.search(r"^(?:todos|plan): *(?:\[\])?$", text, re.MULTILINE) else None)


def _numbered(text: str) -> dict[str, TodoItem]:
    return {
        number: TodoItem(
            text=clip_line(re.sub(r" \[blocked by [^\]]{1,200}\]$", "", said), _LENGTH), status=_WORDS.get(status, "pending")
        )
        for number, status, said in _NUMBERED.findall(text)
    }


def _updated(numbered: dict[str, TodoItem], text: str) -> bool:
    fields = dict(_FIELD.findall(text))
    item = numbered.get(fields.get("taskId", "").strip())
    if item is None:
        return False
    status = _WORDS.get(fields.get("status", "").strip(), item.status)
    numbered[fields["taskId"].strip()] = replace(item, status=status, text=clip_line(fields.get("subject", item.text), _LENGTH))
    return True


def _field(text: str, name: str) -> str:
    return next((str(said) for field, said in _FIELD.findall(text) if field == name), "")


_LAST, _HARDLY_ASKED, _HARDLY_ANSWERED = 12, 32, 120
"""Last sessions among which the last one with any work is looked for; characters of each prompt and each answer in one without."""
_ITEM, _ITEMS, _ALL_ITEMS, _STEP = 110, 3, 8, 60


def todo_lines(events: Sequence[Event], done: Sequence[Run], made: Sequence[Commit]) -> Iterator[BriefLine]:
    """Yield what is open on the agent's own list."""
    listed = todos(events)
    last = next((event for event in reversed(events) if event.tool in TOOLS and event.type is EventType.TOOL_CALL), None)
    if listed is not None and last is not None and listed.open:
        asked = next((event for event in reversed(events) if event.type is EventType.USER_MESSAGE), None)
        later = [clip_line(commit.subject, _STEP) for commit in reversed(made) if is_later(commit.event, last)]
        since = f", committed since: {first_of(later, 2)}" if later else ""
        is_old = later or (asked is not None and is_later(asked, last))
        stale = f" (last changed {listed.at:%m-%d %H:%M}{since})" if is_old else ""
        tried = [run for run in done if run.event.at >= listed.at and run.is_check and run.outcome != "unknown"]
        names = [
            f"{'in hand: ' if item.status == 'in_progress' else ''}{clip_line(item.text, _ITEM)}{_gone_well(item.text, tried)}"
            for item in listed.open[:_ALL_ITEMS]
        ]
        completed = len(listed.items) - len(listed.open)
        begins = f"open on the agent's list, {completed} of {len(listed.items)} done{stale}: "
        texts = (f"{begins}{first_of(names, most, of=len(listed.open))}" for most in (_ITEMS, _ALL_ITEMS))
        yield cited_in_lengths(BriefPart.NEXT, texts, last)


def is_later(event: Event, other: Event) -> bool:
    """Return whether an event is later; an agent may write one time for a whole turn."""
    return (event.at, event.ordinal) > (other.at, other.ordinal)


def _gone_well(item: str, tried: Sequence[Run]) -> str:
    """Return that the last run of the kind of check that an item of a list names went well."""
    checks = [run for run in tried if not changes_files(run)]
    last = {kind: next((run for run in reversed(checks) if kind in run.kinds), None) for kind in sorted(kinds_in(item))}
    well = [run for run in last.values() if run is not None and run.outcome == "ok"]
    if not well or len(well) < len(last):
        return ""
    return f" ({' and '.join(dict.fromkeys(f'`{clip_line(typed(run.command), _STEP)}`' for run in well))} went well since)"


_TODO_SESSIONS = 8
_TODO_EVENTS = 2_000
"""Number of a session's last events that are read: older todo items are done, or the agent has dropped them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    session: Session
    listed: Listed


def left(timeline: "Timeline", *, project: str = "", session: str = "", projects: Collection[str] | None = None) -> Iterator[Left]:
    """Return open todos of one session, or of a project's last sessions, latest first.

    With ``projects``, no event of a session of another project is read.
    """
    chosen = timeline.sessions.named(session) if session else timeline.sessions.latest(project, _TODO_SESSIONS)
    for each in chosen:
        if session and each.id != session:  # only a prefix match
            continue
        if projects is not None and each.project not in projects:
            continue
        listed = todos(timeline.events.offered(timeline.events.of_tools(each.provider, each.id, TOOLS, among=_TODO_EVENTS)))
        if listed is not None:
            yield Left(session=each, listed=listed)


_TEXT = 400
_FEATURES = 400
"""Most items of a kind per session: beyond that they are no longer characteristic of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Counts of a session's events. ``opening`` is the beginning of its first prompt."""

    session: Session
    last: datetime
    events: int
    prompts: int
    errors: int
    tests: int
    failed_tests: int
    opening: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a session worked with: paths it changed, commands it ran, failures it met, decisions made in it.

    ``asked`` are the beginnings of its prompts, ``committed`` git's output for its commits, ``read`` the documents it read.
    ``opening`` is the beginning of its first prompt, ``closing`` of the agent's last message.
    """

    session: Session
    last: datetime
    prompts: int = 0
    files: frozenset[str] = frozenset()
    commands: frozenset[str] = frozenset()
    signatures: frozenset[str] = frozenset()
    decisions: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    committed: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    opening: str = ""
    closing: str = ""


_RECENT = (
    "WITH r AS MATERIALIZED (SELECT key, provider, id, project, cwd, branch, started, parent, title, last_at FROM sessions"
    " WHERE ? IN ('', project) AND provider != ? ORDER BY last_at DESC, key DESC LIMIT ?)"
)


def _of_recent(select: str) -> str:
    return f"{_RECENT} {select}"


_FIRST_PROMPT = (
    "(SELECT substr(e.text, 1, 600) FROM events AS e WHERE e.session = r.key AND e.type = 'user_message'"
    " AND e.id NOT IN (SELECT event FROM let_go) ORDER BY e.ordinal LIMIT 1)"
)
_LAST_ANSWER = (
    "(SELECT substr(e.text, 1, 1500) FROM events AS e WHERE e.session = r.key AND e.type = 'assistant_message'"
    " AND e.id NOT IN (SELECT event FROM let_go) ORDER BY e.ordinal DESC LIMIT 1)"
)
_SESSIONS = _of_recent(f"SELECT r.*, {_FIRST_PROMPT}, {_LAST_ANSWER} FROM r ORDER BY last_at DESC, key DESC")  # noqa: S608 - ours
_OVERVIEWS = _of_recent(
    "SELECT r.*, COUNT(e.seq), TOTAL(e.type = 'user_message'), TOTAL(e.type = 'error'), TOTAL(e.type = 'test_result'),"  # noqa: S608 - ours
    f" TOTAL(e.type = 'test_result' AND e.status = 'failed'), {_FIRST_PROMPT}"
    " FROM r LEFT JOIN events AS e ON e.session = r.key GROUP BY r.key ORDER BY r.last_at DESC, r.key DESC"
)
_TOUCHED = _of_recent(
    "SELECT e.session, IIF(e.type = 'file_action' AND e.text LIKE 'read%', 'read', e.type) AS what, CASE e.type"
    " WHEN 'file_action' THEN e.path WHEN 'command' THEN substr(e.command, 1, ?) ELSE substr(e.text, 1, ?) END AS said, COUNT(*)"
    " FROM r CROSS JOIN events AS e ON e.session = r.key"
    " WHERE (e.type IN ('command', 'decision', 'user_message') OR e.type = 'tool_result' AND e.text GLOB '[[]*'"
    " OR e.type = 'file_action' AND (e.text NOT LIKE 'read%' OR e.path LIKE '%.md'))"
    " AND e.id NOT IN (SELECT event FROM let_go)"
    " GROUP BY e.session, what, said"
)
_RAISED = _of_recent(
    "SELECT DISTINCT raised.session, signatures.text FROM r CROSS JOIN raised ON raised.session = r.key"
    " CROSS JOIN signatures ON signatures.key = raised.signature"
    " WHERE raised.event NOT IN (SELECT e.seq FROM let_go CROSS JOIN events AS e ON e.id = let_go.event)"
)


class Sessions:
    """The sessions that the timeline holds, how far each was read, and overviews of many."""

    def __init__(self, database: TimelineDatabase) -> None:
        self._database = database

    def folders(self, project: str | None = None) -> list[str]:
        """Return every folder that a session ran in, of one project if ``project`` is given."""
        wanted, values = ("", ()) if project is None else (" AND project = ?", (project,))
        query = f"SELECT DISTINCT cwd FROM sessions WHERE cwd != ''{wanted} ORDER BY cwd"  # noqa: S608 - ours
        return [cwd for (cwd,) in self._database.all(query, values)]

    def states(self) -> list[SessionState]:
        return [state for page in self.pages() for state in page]

    def pages(self, size: int = 1_000) -> Iterator[list[SessionState]]:
        """Yield all session states in pages of at most ``size``, in the order in which the sessions were first seen."""
        last = 0
        while rows := self._database.all(SELECT_STATE_PAGE, (last, size)):
            last = rows[-1][-1]
            yield [state_of(row) for row in rows]

    def state(self, provider: str, session: str) -> SessionState | None:
        row = self._database.one(SELECT_STATE + " WHERE provider = ? AND id = ?", (provider, session))
        return None if row is None else state_of(row)

    def states_of(self, sessions: Sequence[tuple[str, str]]) -> list[SessionState]:
        """Return the states of the sessions that exist, with one query. ``sessions`` are pairs of provider and session id."""
        return [
            state_of(row)
            for row in self._database.all(
                "SELECT s.provider, s.id, project, cwd, branch, started, s.parent, title, last_ordinal, last_at, committed_at"
                " FROM json_each(?) AS wanted CROSS JOIN sessions AS s"
                " WHERE s.provider = wanted.value ->> 0 AND s.id = wanted.value ->> 1 ORDER BY wanted.key",
                (json.dumps(sessions),),
            )
        ]

    def last_ordinals(self) -> dict[tuple[str, str], int]:
        """Return ``{(provider, session): ordinal}``: the last event of each session, -1 for one without events."""
        return {(provider, id): last for provider, id, last in self._database.all(SELECT_LAST_ORDINALS)}

    def get(self, provider: str, session: str) -> Session | None:
        row = self._database.one(
            "SELECT provider, id, project, cwd, branch, started, parent, title FROM sessions WHERE provider = ? AND id = ?",
            (provider, session),
        )
        return None if row is None else session_of(row)

    def last(self, project: str | None, *, besides: str = "", among: Collection[str] | None = None) -> Session | None:
        """Return the most recently active session with a user message that was not forgotten, or ``None``.

        One in which nothing was done and hardly a word was said, as in a wrong window, is only returned if there is no other.

        Without ``project``, sessions of any project count, or of those in ``among``. ``besides`` is the id of a session to leave
        out.
        """
        of_one = "project = ?" if project is not None else "? IS NULL"
        allowed = None if among is None else json.dumps(sorted(among))
        row = self._database.one(
            "SELECT provider, id, project, cwd, branch, started, parent, title FROM ("  # noqa: S608 - ours
            f" SELECT * FROM sessions AS s WHERE {of_one} AND id != ?"
            " AND (? IS NULL OR project IN (SELECT value FROM json_each(?)))"
            " AND EXISTS (SELECT 1 FROM events AS e WHERE e.session = s.key AND e.type = 'user_message'"
            " AND e.id NOT IN (SELECT event FROM let_go)) ORDER BY last_at DESC LIMIT ?) AS s"
            " ORDER BY EXISTS (SELECT 1 FROM events AS e WHERE e.session = s.key AND"
            " (e.type IN ('command', 'file_action', 'tool_call') OR e.type = 'assistant_message' AND length(e.text) > ?"
            " OR e.type = 'user_message' AND length(e.text) > ?)) DESC, last_at DESC LIMIT 1",
            (project, besides, allowed, allowed, _LAST, _HARDLY_ANSWERED, _HARDLY_ASKED),
        )
        return None if row is None else session_of(row)

    def during(self, project: str, since: datetime, until: datetime, limit: int, *, besides: str = "") -> list[Session]:
        """Return the sessions of a project, or of all without one, with events in a period, earliest first; without commits."""
        rows = self._database.all(
            "SELECT provider, id, project, cwd, branch, started, parent, title FROM (SELECT * FROM sessions AS s"
            " WHERE ? IN ('', project) AND provider != 'git' AND id != ? AND last_at >= ? AND started < ? AND EXISTS ("
            " SELECT 1 FROM events AS e WHERE e.session = s.key AND e.type = 'user_message' AND e.at >= ? AND e.at < ?"
            " AND e.id NOT IN (SELECT event FROM let_go)) ORDER BY last_at DESC LIMIT ?) ORDER BY started",
            (project, besides, *2 * (since.isoformat(), until.isoformat()), limit),
        )
        return [session_of(row) for row in rows]

    def latest(self, project: str, limit: int) -> list[Session]:
        """Return the project's latest sessions, newest first.

        Commits are left out, and so are sub-agents: child sessions without a user message.
        """
        rows = self._database.all(
            f"{SELECT_STATE} AS s WHERE project = ? AND provider != 'git' AND (parent = '' OR EXISTS ("  # noqa: S608 - ours
            " SELECT 1 FROM events AS e WHERE e.session = s.key AND e.type = 'user_message')) ORDER BY last_at DESC LIMIT ?",
            (project, limit),
        )
        return [state_of(row).session for row in rows]

    def latest_projects(self, limit: int) -> list[str]:
        """Return the projects of the latest sessions of agents, newest first."""
        query = "SELECT project FROM sessions WHERE provider != 'git' ORDER BY last_at DESC LIMIT ?"
        return list(dict.fromkeys(project for (project,) in self._database.all(query, (limit,))))

    def named(self, prefix: str, limit: int = 10) -> list[Session]:
        """Return sessions whose id begins with ``prefix``: an exact match first, then the newest."""
        return [
            session_of(row)
            for row in self._database.all(
                "SELECT provider, id, project, cwd, branch, started, parent, title FROM sessions"
                " WHERE substr(id, 1, ?) = ? ORDER BY id = ? DESC, last_at DESC LIMIT ?",
                (len(prefix), prefix, prefix, limit),
            )
        ]

    def count(self, *, project: str = "") -> int:
        """Return the number of sessions without commits, of one project if ``project`` is given."""
        ((count,),) = self._database.all("SELECT COUNT(*) FROM sessions WHERE ? IN ('', project) AND provider != 'git'", (project,))
        return int(count)

    def overviews(self, *, project: str = "", limit: int = 50) -> list[Overview]:
        """Return overviews of the latest sessions, newest first."""
        found = self._database.all(_OVERVIEWS, (project, "", limit))
        return [
            Overview(
                session=session_of(row[1:9]),
                last=datetime.fromisoformat(row[9]),
                events=row[10],
                prompts=int(row[11]),
                errors=int(row[12]),
                tests=int(row[13]),
                failed_tests=int(row[14]),
                opening=row[15] or "",
            )
            for row in found
        ]

    def works(self, *, project: str = "", limit: int = 500) -> list[Work]:
        """Return the works of the latest sessions, newest first, without commits, which are no agent's sessions."""
        recent = self._database.all(_SESSIONS, (project, "git", limit))
        touched: dict[tuple[int, str], dict[str, None]] = defaultdict(dict)
        prompts: dict[int, int] = defaultdict(int)
        for key, type, said, count in self._database.all(_TOUCHED, (project, "git", limit, _TEXT, _TEXT)):
            if type == "user_message":
                prompts[key] += count
            if len(touched[key, type]) < _FEATURES:
                touched[key, type][said] = None
        for key, said in self._database.all(_RAISED, (project, "git", limit)):
            if len(touched[key, "error"]) < _FEATURES:
                touched[key, "error"][said] = None
        return [
            Work(
                session=session_of(row[1:9]),
                last=datetime.fromisoformat(row[9]),
                prompts=prompts[row[0]],
                files=frozenset(touched[row[0], "file_action"]),
                commands=frozenset(touched[row[0], "command"]),
                signatures=frozenset(touched[row[0], "error"]),
                decisions=frozenset(touched[row[0], "decision"]),
                asked=frozenset(touched[row[0], "user_message"]),
                committed=frozenset(touched[row[0], "tool_result"]),
                read=frozenset(touched[row[0], "read"]),
                opening=row[10] or "",
                closing=row[11] or "",
            )
            for row in recent
        ]

    def sub_sessions(self, provider: str, session: str, limit: int = 100) -> list[Session]:
        """Return the sub-agents and forks of this session, newest first."""
        return [
            session_of(row)
            for row in self._database.all(
                "SELECT provider, id, project, cwd, branch, started, parent, title FROM sessions"
                " WHERE provider = ? AND parent = ? ORDER BY last_at DESC LIMIT ?",
                (provider, session, limit),
            )
        ]
