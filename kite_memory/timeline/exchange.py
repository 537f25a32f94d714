"""Events for a person's other machines: those that were read here, in the order in which they were added or changed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kite_memory.model.event import Event
from kite_memory.timeline.rows import SELECT_EVENT_FIRST, event_of

Rows = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs a query with its values and returns all rows."""

ELSEWHERE = "another machine"
"""Identity of the file of events that were not read on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """Up to where the events are known: the last row, and the last change to a row."""

    row: int = 0
    change: int = 0


_NEW = SELECT_EVENT_FIRST.replace("SELECT ", "SELECT e.seq, ", 1) + " WHERE e.seq > ? AND f.identity <> ? ORDER BY e.seq LIMIT ?"
_AMENDED = (
    SELECT_EVENT_FIRST.replace("SELECT ", "SELECT a.number, ", 1).replace(
        "FROM events AS e", "FROM amended AS a CROSS JOIN events AS e ON e.seq = a.event"
    )
    + " WHERE a.number > ? AND e.seq <= ? AND f.identity <> ? ORDER BY a.number LIMIT ?"
)


def changes(rows: Rows, since: Since, limit: int) -> tuple[list[Event], Since]:
    """Return at most ``limit`` events that were added or amended after ``since``, and up to where that is.

    Fewer than ``limit`` are the last.
    """
    newest, last_change = rows("SELECT (SELECT MAX(seq) FROM events), (SELECT MAX(number) FROM amended)", ())[0]
    amended = rows(_AMENDED, (since.change, since.row, ELSEWHERE, limit))
    new = rows(_NEW, (since.row, ELSEWHERE, limit - len(amended))) if len(amended) < limit else []
    change = amended[-1][0] if len(amended) == limit else max(since.change, last_change or 0)
    row = since.row if len(amended) == limit else new[-1][0] if len(amended) + len(new) == limit else max(since.row, newest or 0)
    return [event_of(found[1:]) for found in (*amended, *new)], Since(row=row, change=change)
