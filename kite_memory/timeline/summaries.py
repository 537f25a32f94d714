"""Overviews of many sessions: the outcome of each, and what it worked with."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kite_memory.model.event import Session

Rows = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs a query with its values and returns all rows."""

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


def overviews(rows: Rows, *, project: str = "", limit: int = 50) -> list[Overview]:
    """Return overviews of the latest sessions, newest first."""
    found = rows(_OVERVIEWS, (project, "", limit))
    return [
        Overview(
            session=_session(row[1:9]),
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


def works(rows: Rows, *, project: str = "", limit: int = 500) -> list[Work]:
    """Return the works of the latest sessions, newest first, without commits, which are no agent's sessions."""
    recent = rows(_SESSIONS, (project, "git", limit))
    touched: dict[tuple[int, str], dict[str, None]] = defaultdict(dict)
    prompts: dict[int, int] = defaultdict(int)
    for key, type, said, count in rows(_TOUCHED, (project, "git", limit, _TEXT, _TEXT)):
        if type == "user_message":
            prompts[key] += count
        if len(touched[key, type]) < _FEATURES:
            touched[key, type][said] = None
    for key, said in rows(_RAISED, (project, "git", limit)):
        if len(touched[key, "error"]) < _FEATURES:
            touched[key, "error"][said] = None
    return [
        Work(
            session=_session(row[1:9]),
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


def sub_sessions(rows: Rows, provider: str, session: str, limit: int) -> list[Session]:
    """Return the sub-agents and forks of this session, newest first."""
    return [
        _session(row)
        for row in rows(
            "SELECT provider, id, project, cwd, branch, started, parent, title FROM sessions"
            " WHERE provider = ? AND parent = ? ORDER BY last_at DESC LIMIT ?",
            (provider, session, limit),
        )
    ]


def _session(row: Sequence[Any]) -> Session:
    provider, session, project, cwd, branch, started, parent, title = row
    return Session(
        provider=provider,
        id=session,
        project=project,
        cwd=cwd,
        branch=branch,
        started=datetime.fromisoformat(started),
        parent=parent,
        title=title,
    )
