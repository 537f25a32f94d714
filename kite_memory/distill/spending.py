"""Tables of the outbox with what a day's calls may cost and have cost."""

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from kite_memory.distill.extractor import Usage

Purpose = Literal["judge", "answer", "polish", "save"]
"""Purpose of a call that is not about a chunk. ``save`` extracts from what an agent saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits for one UTC day."""

    dollars: float
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float = 0.0


def utc_day(now: float) -> str:
    """Return the UTC day of a budget; ``now`` is Unix time."""
    return datetime.fromtimestamp(now, UTC).date().isoformat()


def book_call(database: sqlite3.Connection, purpose: Purpose, estimate: Usage, budget: Budget, part: Budget, *, day: str) -> bool:
    """Do what `Outbox.book_call` does, inside the caller's transaction."""
    spent = spending_of(database.execute("SELECT * FROM spending WHERE day = ?", (day,)).fetchone())
    beside = spending_of(
        database.execute(
            "SELECT day, SUM(calls), SUM(tokens_in), SUM(tokens_out), SUM(dollars) FROM purpose_spending"
            " WHERE day = ? AND (purpose = 'save') = ? GROUP BY day",
            (day, purpose == "save"),
        ).fetchone()
    )
    for so_far, most in ((spent, budget), (beside, part)):
        if so_far.calls + 1 > most.calls or so_far.dollars + estimate.dollars > most.dollars:
            return False
    add_call(database, day, purpose, calls=1, usage=Usage(dollars=estimate.dollars))
    return True


def add(database: sqlite3.Connection, day: str, *, calls: int, usage: Usage) -> None:
    insert = f"INSERT INTO spending VALUES (?, ?, ?, ?, ?) {_ADDED}"  # noqa: S608 - ours
    database.execute(insert, (day, calls, usage.tokens_in, usage.tokens_out, usage.dollars))


def add_call(database: sqlite3.Connection, day: str, purpose: Purpose, *, calls: int, usage: Usage) -> None:
    """Add to both the day's total and the part of this purpose."""
    add(database, day, calls=calls, usage=usage)
    insert = f"INSERT INTO purpose_spending VALUES (?, ?, ?, ?, ?, ?) {_ADDED}"  # noqa: S608 - ours
    database.execute(insert, (day, purpose, calls, usage.tokens_in, usage.tokens_out, usage.dollars))


_ADDED = """
    ON CONFLICT DO UPDATE SET calls = MAX(0, calls + excluded.calls),
    tokens_in = tokens_in + excluded.tokens_in, tokens_out = tokens_out + excluded.tokens_out,
    dollars = MAX(0, dollars + excluded.dollars)
"""


def spending_of(row: Any) -> Spending:
    if row is None:
        return Spending()
    _, calls, tokens_in, tokens_out, dollars = row
    return Spending(calls=calls, tokens_in=tokens_in, tokens_out=tokens_out, dollars=dollars)
