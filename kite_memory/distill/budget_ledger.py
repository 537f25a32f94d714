"""Parts of the day's budget: a call is booked before it is made, and settled when it is known what it cost."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from kite_memory.distill.backends.backend import Ending, Reply
from kite_memory.distill.extractor import Busy, Misconfigured, Refused, Usage
from kite_memory.distill.outbox import Outbox
from kite_memory.distill.spending import Budget, Purpose, utc_day


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """A call that may be made now. End it once, by `settle` or `refund`; one that is never ended stays spent as estimated."""

    outbox: Outbox
    purpose: Purpose
    estimate: Usage
    day: str

    def settle(self, usage: Usage) -> None:
        """Put what the call really cost in the place of the estimate, on the day it was booked."""
        self.outbox.settle_call(self.purpose, self.estimate, usage, day=self.day)

    def refund(self) -> None:
        """Only for a call that was surely not made."""
        self.outbox.refund_call(self.purpose, self.estimate, day=self.day)


def settle_by(booking: Booking, ending: Ending) -> None:
    """End the booking as the call ended."""
    match ending:
        case Busy(made="perhaps"):
            pass  # it may be on the bill: what was booked stays spent
        case Busy(made="no") | Misconfigured():
            booking.refund()
        case Reply(usage=usage) | Refused(usage=usage) | Busy(usage=usage):
            booking.settle(usage)
        case _:
            assert_never(ending)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """``share`` of the day's dollars and calls is the most that such calls take (`Outbox.book_call`)."""

    outbox: Outbox
    budget: Budget
    share: float
    clock: Callable[[], float]
    purpose: Purpose = "judge"

    def book(self, estimate: Usage) -> Booking | None:
        """``None``: this part is spent, or the whole day's budget. Safe between threads and processes."""
        day = utc_day(self.clock())
        part = Budget(dollars=self.budget.dollars * self.share, calls=int(self.budget.calls * self.share))
        if not self.outbox.book_call(self.purpose, estimate, self.budget, part, day=day):
            return None
        return Booking(outbox=self.outbox, purpose=self.purpose, estimate=estimate, day=day)
