"""Counts of how shown notes were used: by note for the gate, by week for the user."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from kite_memory.recall.uptake import Outcome

Moment = Literal["prompt", "start", "pointer", "quote", "opened", "action", "late", "team"]
"""How something was shown. "prompt": in full, with a prompt; "start", "pointer": by title, at a session's start or with a prompt;
"quote": a quoted conversation; "opened": opened by the agent; "action": with a tool call; "late": later in the turn, after a
judge's verdict; "team": with a prompt, from a team.
"""

BY_TITLE = frozenset[Moment]({"start", "pointer"})
"""Moments at which the agent was shown the title only. The note counts as used if the agent opened it."""

Standing = Outcome | Literal["open"]

_PRIOR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How often a note was shown, used and ignored. The remaining showings are unknown or not settled yet."""

    shown: int = 0
    used: int = 0
    ignored: int = 0


def habit(tally: Tally) -> float:
    """Return the habit of a note, from -1 (always ignored) to 1 (always used); 0 if nothing is known. A few showings do not move it
    far.
    """
    return (tally.used - tally.ignored) / (tally.used + tally.ignored + 2 * _PRIOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    used: int = 0
    ignored: int = 0
    unknown: int = 0
    open: int = 0

    @property
    def shown(self) -> int:
        return self.used + self.ignored + self.unknown + self.open

    @property
    def known(self) -> int:
        """Return how many are known to be used or ignored."""
        return self.used + self.ignored

    def __add__(self, other: "Count") -> "Count":
        return Count(
            used=self.used + other.used,
            ignored=self.ignored + other.ignored,
            unknown=self.unknown + other.unknown,
            open=self.open + other.open,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """Figures of one ISO week in UTC. ``silent`` of the ``prompts`` were given nothing at once; a judge may have added something
    later.
    """

    monday: date
    prompts: int = 0
    silent: int = 0
    moments: Mapping[Moment, Count] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return week_of(self.monday)

    @property
    def count(self) -> Count:
        """Return the sum over all moments except those by title only."""
        return sum((count for moment, count in self.moments.items() if moment not in BY_TITLE), start=Count())


def week_of(day: date) -> str:
    """Return the ISO week of a day, such as ``2026-W09``."""
    year, week, _ = day.isocalendar()
    return f"{year}-W{week:02}"


def mondays(now: datetime, weeks: int) -> tuple[date, ...]:
    """Return the Mondays of this week and the weeks before it, latest first."""
    today = now.astimezone(UTC).date()
    monday = today - timedelta(days=today.weekday())
    return tuple(monday - timedelta(weeks=number) for number in range(weeks))


def tally_of(row: tuple[str, int, int, int]) -> tuple[str, Tally]:
    note, shown, used, ignored = row
    return note, Tally(shown=shown, used=used, ignored=ignored)


def storable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
