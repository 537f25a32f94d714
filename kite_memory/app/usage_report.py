"""Is it helping? What came of the notes that were shown, as JSON values for whoever asks."""

import sqlite3
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from kite_memory.recall.rendering import plain_line
from kite_memory.recall.session_memory import TEAMS, Given, Occasion, SessionMemory
from kite_memory.recall.tallies import Count, Tally, Week
from kite_memory.vault.ledger import Known

Json = dict[str, Any]

WEEKS = 4

_MOST_IGNORED = 3
_ENOUGH_SHOWN = 10
_ENOUGH_TOLD = 5
_SELDOM = 0.2


def helping(memory: SessionMemory, notes: Iterable[Known], now: datetime) -> Json:
    """This week and the three before it, the latest first; their sum; and the notes that were ignored oftenest in them.

    ``problem`` says why there is nothing to tell, where the record of what was shown cannot be read.
    """
    problem = ""
    weeks: tuple[Week, ...] = ()
    ignored: tuple[tuple[str, Tally], ...] = ()
    try:
        weeks = memory.weekly(WEEKS, now)
        monday = weeks[-1].monday
        ignored = memory.most_ignored(datetime(monday.year, monday.month, monday.day, tzinfo=UTC), _MOST_IGNORED)
    except sqlite3.Error as error:
        problem = f"the memory of what was shown cannot be used: {error}"
    total = sum((week.count for week in weeks), start=Count())
    named = by_name(notes) if ignored else {}
    return {
        "verdict": _verdict(total),
        "shown": total.shown,
        **_counted(total),
        "weeks": [_week(week) for week in weeks],
        "most_ignored": [
            {**_named(note, named.get(note)), "shown": tally.shown, "used": tally.used, "ignored": tally.ignored}
            for note, tally in ignored
        ],
        "problem": problem,
    }


def occasion_told(occasion: Occasion, known: Mapping[str, Known]) -> Json:
    return {
        "at": occasion.at.isoformat(),
        "moment": occasion.moment,
        "session": occasion.session,
        "project": occasion.project,
        "prompt": occasion.head,
        "reason": occasion.reason,
        "notes": [_given(given, known.get(given.note)) for given in occasion.given],
    }


def by_name(notes: Iterable[Known]) -> dict[str, Known]:
    return {known.id or known.path: known for known in notes if not known.twin}


def _verdict(count: Count) -> str:
    if not count.shown:
        return "nothing shown"
    if count.shown < _ENOUGH_SHOWN or count.told < _ENOUGH_TOLD:
        return "too early to tell"
    return "seldom" if count.used < _SELDOM * count.told else "yes"


def _week(week: Week) -> Json:
    return {
        "week": week.name,
        "from": week.monday.isoformat(),
        "prompts": week.prompts,
        "silent": week.silent,
        "shown": week.count.shown,
        **_counted(week.count),
        "by_moment": {moment: {"shown": count.shown, **_counted(count)} for moment, count in sorted(week.moments.items())},
    }


def _counted(count: Count) -> Json:
    return {"used": count.used, "ignored": count.ignored, "unknown": count.unknown, "open": count.open}


def _given(given: Given, note: Known | None) -> Json:
    return {
        **_named(given.note, note),
        "score": given.score,
        "outcome": given.standing,
        "because": plain_line(given.why, 300),
    }


def _named(name: str, note: Known | None) -> Json:
    gone = "(the team's)" if name.startswith(TEAMS) else "(forgotten since)"
    title, path = (plain_line(note.title), note.path) if note else (gone, "")
    return {"id": name, "path": path, "title": title}
