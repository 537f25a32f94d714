"""Counts of what the timeline holds of each agent, and of records that could not be parsed."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

Rows = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs a query with its values and returns all rows."""

_COMES_LATER = ("busy, later", "file cannot be read", "file is gone", "half-written document", "left open by its owner")
"""Reasons that refer to an attempt to read a file, not to a record in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCount:
    """Counts for one provider.

    ``skipped`` are records that were skipped; ``problems`` also includes attempts to read a file that failed.
    """

    provider: str
    files: int
    sessions: int
    events: int
    problems: int
    skipped: int
    read_bytes: int
    known_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTally:
    """Like `SourceCount`, without the counts that require a look at every file."""

    provider: str
    sessions: int
    events: int
    problems: int
    skipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedProblem:
    file: str
    reason: str
    count: int
    first_position: int


def tallies(rows: Rows) -> list[EventTally]:
    """Return the counts by provider; no query reads events."""
    events: dict[str, int] = dict(rows("SELECT provider, events FROM totals", ()))
    tallies = {
        provider: EventTally(provider=provider, sessions=sessions, events=events.get(provider, 0), problems=0, skipped=0)
        for provider, sessions in rows("SELECT provider, COUNT(*) FROM sessions GROUP BY provider", ())
    }
    for provider, problems, skipped in rows(
        "SELECT f.provider, SUM(p.count), SUM(IIF(p.reason IN (SELECT value FROM json_each(?)), 0, p.count))"
        " FROM problems AS p JOIN files AS f ON f.key = p.file GROUP BY f.provider",
        (json.dumps(_COMES_LATER),),
    ):
        known = tallies.get(provider) or EventTally(provider=provider, sessions=0, events=0, problems=0, skipped=0)
        tallies[provider] = replace(known, problems=problems, skipped=skipped)
    return [tallies[provider] for provider in sorted(tallies)]


def counts(rows: Rows) -> list[SourceCount]:
    """Return the counts by provider, with files. Looks at every file."""
    return [
        SourceCount(
            provider=provider,
            files=files,
            sessions=sessions,
            events=events,
            problems=problems or 0,
            skipped=skipped or 0,
            read_bytes=read_bytes,
            known_bytes=known_bytes,
        )
        for provider, files, read_bytes, known_bytes, problems, skipped, sessions, events in rows(
            "SELECT provider, COUNT(*), SUM(position), SUM(size),"
            " (SELECT SUM(p.count) FROM problems AS p JOIN files AS g ON g.key = p.file WHERE g.provider = f.provider),"
            " (SELECT SUM(p.count) FROM problems AS p JOIN files AS g ON g.key = p.file WHERE g.provider = f.provider"
            "  AND p.reason NOT IN (SELECT value FROM json_each(?))),"
            " (SELECT COUNT(*) FROM sessions AS s WHERE s.provider = f.provider),"
            " COALESCE((SELECT t.events FROM totals AS t WHERE t.provider = f.provider), 0)"
            " FROM files AS f GROUP BY provider ORDER BY provider",
            (json.dumps(_COMES_LATER),),
        )
    ]


def problems(rows: Rows, limit: int, file: str) -> list[CountedProblem]:
    """Return the problems, most common first, of one file if ``file`` is given."""
    return [
        CountedProblem(file=file, reason=reason, count=count, first_position=position)
        for file, reason, count, position in rows(
            "SELECT f.path, p.reason, p.count, p.first_position FROM problems AS p JOIN files AS f ON f.key = p.file"
            " WHERE ? IN ('', f.path) ORDER BY p.count DESC, f.path LIMIT ?",
            (file, limit),
        )
    ]
