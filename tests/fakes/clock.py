"""Clocks that stand still until a test moves them."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(slots=True)
class Clock:
    now: datetime

    def __call__(self) -> datetime:
        return self.now


@dataclass(slots=True)
class UnixClock:
    now: datetime

    def __call__(self) -> float:
        return self.now.timestamp()


@dataclass(slots=True)
class TickClock:
    now: float

    def __call__(self) -> float:
        return self.now
