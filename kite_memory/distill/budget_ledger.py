"""Shares of the day's budget: a call is booked before it is made, and settled once its cost is known."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from kite_memory.distill.backends.backend import Ending, Reply
from kite_memory.distill.extractor import Busy, Misconfigured, Refused, Usage
from kite_memory.distill.outbox import Outbox
from kite_memory.distill.spending import Budget, Purpose, utc_day


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """A booked call. End it once, by `settle` or `refund`; without either, the estimate stays spent."""

    outbox: Outbox
    purpose: Purpose
    estimate: Usage
    day: str

    def settle(self, usage: Usage) -> None:
        """Replace the estimate by the call's actual cost, on the day it was booked."""
        self.outbox.settle_call(self.purpose, self.estimate, usage, day=self.day)

    def refund(self) -> None:
        """Cancel the booking. Only for a call that was certainly not made."""
        self.outbox.refund_call(self.purpose, self.estimate, day=self.day)


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
    """A share of the budget. ``share`` of the day's dollars and calls is the most that such calls may use (`Outbox.book_call`)."""

    outbox: Outbox
    budget: Budget
    share: float
    clock: Callable[[], float]
    purpose: Purpose = "judge"

    def book(self, estimate: Usage) -> Booking | None:
        """Book a call; ``None`` if this share or the whole day's budget is spent. Safe across threads and processes."""
        day = utc_day(self.clock())
        part = Budget(dollars=self.budget.dollars * self.share, calls=int(self.budget.calls * self.share))
        if not self.outbox.book_call(self.purpose, estimate, self.budget, part, day=day):
            return None
        return Booking(outbox=self.outbox, purpose=self.purpose, estimate=estimate, day=day)
