"""What a day's calls may cost and have cost, each booked before it is made, singly or in a batch. The tables are the outbox's."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, assert_never

from kite_memory.distill.extractor import Busy, Ending, Misconfigured, Refused, Reply, Usage
from kite_memory.system.sqlite import SharedConnection

if TYPE_CHECKING:
    from kite_memory.distill.outbox import Outbox

Purpose = Literal["judge", "answer", "polish", "save"]
"""Purpose of a call that is not about a chunk. ``save`` extracts from what an agent saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits for one UTC day."""

    dollars: float
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What calls have cost."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float = 0.0


def utc_day(now: float) -> str:
    """Return the UTC day of a budget; ``now`` is Unix time."""
    return datetime.fromtimestamp(now, UTC).date().isoformat()


def add_spending(database: sqlite3.Connection, day: str, *, calls: int, usage: Usage) -> None:
    insert = f"INSERT INTO spending VALUES (?, ?, ?, ?, ?) {_ADDED}"  # noqa: S608 - ours
    database.execute(insert, (day, calls, usage.tokens_in, usage.tokens_out, usage.dollars))


def add_call(database: sqlite3.Connection, day: str, purpose: Purpose, *, calls: int, usage: Usage) -> None:
    """Add to both the day's total and the part of this purpose."""
    add_spending(database, day, calls=calls, usage=usage)
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


BATCH_TABLES = (
    """
    CREATE TABLE batches (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        remote TEXT NOT NULL DEFAULT '',
        sent REAL NOT NULL,
        check_at REAL NOT NULL DEFAULT 0,
        requests INTEGER NOT NULL,
        strangers TEXT NOT NULL DEFAULT '[]'
    )
    """,
    """
    CREATE TABLE batch_requests (
        batch INTEGER NOT NULL, id TEXT NOT NULL, reserved REAL NOT NULL, day TEXT NOT NULL, chunks TEXT NOT NULL,
        PRIMARY KEY (batch, id)
    ) WITHOUT ROWID
    """,
    "ALTER TABLE chunks ADD COLUMN by_batch INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE chunks ADD COLUMN batch INTEGER NOT NULL DEFAULT 0",
)
"""``by_batch`` marks a chunk that is to go in a batch; ``batch`` is the number of the one it is in, 0 for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRequest:
    """A request about some chunks. Its id is that of the first of them; ``offered`` are the notes shown with each."""

    estimate: Usage
    offered: Mapping[str, Sequence[str]]

    @property
    def id(self) -> str:
        return next(iter(self.offered))


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    id: str
    reserved: float
    offered: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentBatch:
    """A batch without all of its outcomes. ``remote`` is the service's id, empty while it is unknown whether the batch arrived.

    ``check_at`` and ``sent`` are Unix times; ``strangers`` are ids of the service that turned out to be other batches.
    """

    number: int
    remote: str
    sent: float
    check_at: float
    requests: int
    strangers: Sequence[str]


class BatchLedger:
    """Batches in the outbox."""

    def __init__(self, database: SharedConnection) -> None:
        self._database = database

    def mark(self) -> int:
        """Mark every waiting chunk to go in a batch, and return how many."""
        with self._database.writing() as database:
            return database.execute("UPDATE chunks SET by_batch = 1 WHERE state = 'waiting'").rowcount

    def unmark(self, chunks: Iterable[str]) -> None:
        """Let chunks be sent each on its own, at once."""
        with self._database.writing() as database:
            database.executemany("UPDATE chunks SET by_batch = 0 WHERE id = ?", [(chunk,) for chunk in chunks])

    def chunks(self) -> int:
        """Return how many chunks are in batches."""
        ((count,),) = self._database.all("SELECT COUNT(*) FROM chunks WHERE state = 'asked' AND batch != 0")
        return int(count)

    def sent(self) -> list[SentBatch]:
        """Return the batches without all of their outcomes, the one to check first at the front."""
        return [
            SentBatch(number=number, remote=remote, sent=sent, check_at=at, requests=requests, strangers=json.loads(strangers))
            for number, remote, sent, at, requests, strangers in self._database.all(
                "SELECT number, remote, sent, check_at, requests, strangers FROM batches ORDER BY check_at, number"
            )
        ]

    def requests(self, batch: int) -> list[SentRequest]:
        """Return the requests of a batch whose outcome is not stored yet."""
        return [
            SentRequest(id=name, reserved=reserved, offered=json.loads(chunks))
            for name, reserved, chunks in self._database.all(
                "SELECT id, reserved, chunks FROM batch_requests WHERE batch = ? ORDER BY id", (batch,)
            )
        ]

    def book(self, planned: Sequence[PlannedRequest], budget: Budget, *, day: str, now: float) -> tuple[int, int]:
        """Book a batch before it is sent: as many of the requests, from the first, as the day's budget allows.

        Return its number, and how many requests; nothing is changed if that is 0.
        """
        with self._database.writing() as database:
            spent = spending_of(database.execute("SELECT * FROM spending WHERE day = ?", (day,)).fetchone())
            booked = 0
            dollars = spent.dollars
            for each in planned:
                dollars += each.estimate.dollars
                if spent.calls + booked + 1 > budget.calls or dollars > budget.dollars:
                    break
                booked += 1
            if not booked:
                return 0, 0
            added = database.execute("INSERT INTO batches (sent, check_at, requests) VALUES (?, ?, ?)", (now, now, booked))
            number = int(added.lastrowid or 0)
            for each in planned[:booked]:
                add_spending(database, day, calls=1, usage=Usage(dollars=each.estimate.dollars))
                database.execute(
                    "INSERT INTO batch_requests VALUES (?, ?, ?, ?, ?)",
                    (
                        number,
                        each.id,
                        each.estimate.dollars,
                        day,
                        json.dumps({name: list(ids) for name, ids in each.offered.items()}),
                    ),
                )
                database.executemany(
                    "UPDATE chunks SET state = 'asked', batch = ?, reserved = 0, asked_on = '', attempts = attempts + 1"
                    " WHERE id = ?",
                    [(number, chunk) for chunk in each.offered],
                )
            return number, booked

    def arrived(self, batch: int, remote: str, *, check_at: float) -> None:
        """Store under which id the service has the batch."""
        with self._database.writing() as database:
            database.execute("UPDATE batches SET remote = ?, check_at = ? WHERE number = ?", (remote, check_at, batch))

    def check_again(self, batch: int, *, at: float) -> None:
        with self._database.writing() as database:
            database.execute("UPDATE batches SET check_at = ? WHERE number = ?", (at, batch))

    def is_stranger(self, batch: SentBatch, *, check_at: float) -> None:
        """Record that the service has another batch under this batch's id, so that ours is looked for again."""
        with self._database.writing() as database:
            strangers = json.dumps([*batch.strangers, batch.remote])
            database.execute(
                "UPDATE batches SET remote = '', strangers = ?, check_at = ? WHERE number = ?", (strangers, check_at, batch.number)
            )

    def settle(self, batch: int, request: str, usage: Usage | None) -> None:
        """Replace what a request has booked by its actual cost, on the day it was booked, and forget the request.

        ``None`` if it is unknown what the request cost: what is booked stays spent.
        """
        with self._database.writing() as database:
            row = database.execute(
                "DELETE FROM batch_requests WHERE batch = ? AND id = ? RETURNING reserved, day", (batch, request)
            ).fetchone()
            if row is not None and usage is not None:
                reserved, day = row
                corrected = Usage(tokens_in=usage.tokens_in, tokens_out=usage.tokens_out, dollars=usage.dollars - reserved)
                add_spending(database, day, calls=0, usage=corrected)

    def take_back(self, batch: int, *, not_before: float, reason: str) -> None:
        """Cancel the booking of a batch that was certainly not accepted; its chunks wait again."""
        with self._database.writing() as database:
            for reserved, day in database.execute(
                "DELETE FROM batch_requests WHERE batch = ? RETURNING reserved, day", (batch,)
            ).fetchall():
                add_spending(database, day, calls=-1, usage=Usage(dollars=-reserved))
            database.execute(
                "UPDATE chunks SET state = 'waiting', attempts = attempts - 1, batch = 0, not_before = ?, reason = ?"
                " WHERE state = 'asked' AND batch = ?",
                (not_before, reason, batch),
            )
            database.execute("DELETE FROM batches WHERE number = ?", (batch,))

    def close(self, batch: int, *, now: float, reason: str, most: int) -> None:
        """Forget a batch. Requests without an outcome may be billed, so what they have booked stays spent.

        Their chunks wait again, or are set aside if the outcome of ``most`` calls is unknown.
        """
        with self._database.writing() as database:
            database.execute("DELETE FROM batch_requests WHERE batch = ?", (batch,))
            database.execute(
                "UPDATE chunks SET state = IIF(unknown + 1 >= ?, 'aside', 'waiting'), unknown = unknown + 1, batch = 0,"
                " not_before = ?, reason = ? WHERE state = 'asked' AND batch = ?",
                (most, now, reason, batch),
            )
            database.execute("DELETE FROM batches WHERE number = ?", (batch,))


class CallLedger:
    """What calls cost, booked before they are made."""

    def __init__(self, database: SharedConnection) -> None:
        self._database = database

    def spending(self, day: str) -> Spending:
        return spending_of(next(iter(self._database.all("SELECT * FROM spending WHERE day = ?", (day,))), None))

    def book(self, purpose: Purpose, estimate: Usage, budget: Budget, part: Budget, *, day: str) -> bool:
        """Book a call that is not about a chunk before it is made. Return ``False`` if ``part``, or the whole ``budget``, does not
        allow it.

        ``part`` covers the purpose ``save`` alone, or all other purposes together. A call that costs nothing is counted too: a
        judge is called far more often than an extractor.
        """
        with self._database.writing() as database:
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

    def settle(self, purpose: Purpose, estimate: Usage, usage: Usage, *, day: str) -> None:
        corrected = Usage(tokens_in=usage.tokens_in, tokens_out=usage.tokens_out, dollars=usage.dollars - estimate.dollars)
        with self._database.writing() as database:
            add_call(database, day, purpose, calls=0, usage=corrected)

    def refund(self, purpose: Purpose, estimate: Usage, *, day: str) -> None:
        with self._database.writing() as database:
            add_call(database, day, purpose, calls=-1, usage=Usage(dollars=-estimate.dollars))

    def purposes(self, day: str) -> dict[str, Spending]:
        """Return what each purpose has used of that day's `spending`."""
        rows = self._database.all(
            "SELECT purpose, day, calls, tokens_in, tokens_out, dollars FROM purpose_spending WHERE day = ? ORDER BY purpose",
            (day,),
        )
        return {purpose: spending_of(row) for purpose, *row in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """A booked call. End it once, by `settle` or `refund`; without either, the estimate stays spent."""

    outbox: "Outbox"
    purpose: Purpose
    estimate: Usage
    day: str

    def settle(self, usage: Usage) -> None:
        """Replace the estimate by the call's actual cost, on the day it was booked."""
        self.outbox.calls.settle(self.purpose, self.estimate, usage, day=self.day)

    def refund(self) -> None:
        """Cancel the booking. Only for a call that was certainly not made."""
        self.outbox.calls.refund(self.purpose, self.estimate, day=self.day)


def settle_by(booking: Booking, ending: Ending) -> None:
    """Settle or refund the booking according to the call's outcome."""
    match ending:
        case Busy(made="perhaps"):
            pass  # it may be billed, so the booked amount stays spent
        case Busy(made="no") | Misconfigured():
            booking.refund()
        case Reply(usage=usage) | Refused(usage=usage) | Busy(usage=usage):
            booking.settle(usage)
        case _:
            assert_never(ending)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A share of the budget. ``share`` of the day's dollars and calls is the most that such calls may use (`CallLedger.book`)."""

    outbox: "Outbox"
    budget: Budget
    share: float
    clock: Callable[[], float]
    purpose: Purpose = "judge"

    def book(self, estimate: Usage) -> Booking | None:
        """Book a call; ``None`` if this share or the whole day's budget is spent. Safe across threads and processes."""
        day = utc_day(self.clock())
        part = Budget(dollars=self.budget.dollars * self.share, calls=int(self.budget.calls * self.share))
        if not self.outbox.calls.book(self.purpose, estimate, self.budget, part, day=day):
            return None
        return Booking(outbox=self.outbox, purpose=self.purpose, estimate=estimate, day=day)
