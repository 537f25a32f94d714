"""What came of the notes that were shown, counted: note by note for the gate, week by week for the person."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from kite_memory.recall.uptake import Outcome

Moment = Literal["prompt", "start", "pointer", "quote", "opened", "action", "late", "team"]
"""In full with a prompt; by title at a session's start, or with a prompt; a conversation, quoted; when the agent opened it; with a
tool call; later in the turn, when a judge had looked; with a prompt, from a team."""

BY_TITLE = frozenset[Moment]({"start", "pointer"})
"""The agent was told that there is such a note, and not what it says: it counts as used where the agent opened it."""

Standing = Outcome | Literal["open"]

_PRIOR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Of what was shown and neither used nor ignored, nothing is known, or not yet."""

    shown: int = 0
    used: int = 0
    ignored: int = 0


def habit(tally: Tally) -> float:
    """From -1, always ignored, to 1, always used; 0 where nothing is known. A few showings do not move it far."""
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
    def told(self) -> int:
        """Those of which is known whether they were used."""
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
    """An ISO week by UTC. ``silent`` of the ``prompts`` were given nothing at once; a judge may have found something later."""

    monday: date
    prompts: int = 0
    silent: int = 0
    moments: Mapping[Moment, Count] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return week_of(self.monday)

    @property
    def count(self) -> Count:
        """Of what was said, whatever the voice, without what was only named."""
        return sum((count for moment, count in self.moments.items() if moment not in BY_TITLE), start=Count())


def week_of(day: date) -> str:
    """As ``2026-W09``."""
    year, week, _ = day.isocalendar()
    return f"{year}-W{week:02}"


def mondays(now: datetime, weeks: int) -> tuple[date, ...]:
    """Of this week and those before it, the latest first."""
    today = now.astimezone(UTC).date()
    monday = today - timedelta(days=today.weekday())
    return tuple(monday - timedelta(weeks=number) for number in range(weeks))


def tally_of(row: tuple[str, int, int, int]) -> tuple[str, Tally]:
    note, shown, used, ignored = row
    return note, Tally(shown=shown, used=used, ignored=ignored)


def storable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
