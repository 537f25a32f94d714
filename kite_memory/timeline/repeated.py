"""Lines with an id that another line of the same file already has."""

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from kite_memory.model.event import Event
from kite_memory.timeline import tombstones


def distinct(database: sqlite3.Connection, file: int, events: Sequence[Event]) -> Sequence[Event]:
    """Return the events, with new ids for those of a line whose id an earlier line of the file uses for a different content.

    Some clients write an id twice, mostly for the same line again, which changes nothing. If a file was rewritten and is read from
    its beginning, its former lines do not count as earlier lines.
    """
    begins = min((event.where.start for event in events), default=0)
    rows = database.execute(
        "SELECT e.id, e.start, e.type, e.role, e.text, e.command FROM json_each(?) AS told"
        " JOIN events AS e ON e.id = told.value WHERE e.file = ? AND e.start < ?",
        (json.dumps([event.id for event in events]), file, begins),
    )
    known = {id: (start, said) for id, start, *said in rows}
    others: dict[tuple[str, int], list[str]] = {}
    for event in events:
        start, said = event.where.start, [event.type.value, event.role, event.text, event.command]
        first, first_said = known.setdefault(event.id, (start, said))
        line = tombstones.line_of(event.id)
        # A line's first event distinguishes lines; its further events may depend on a call that only one read knew.
        if (line, start) in others or (event.id == line and first != start and first_said != said):
            others.setdefault((line, start), []).extend(said)
    if not others:
        return events
    names = {
        line: hashlib.blake2b("\0".join((line[0], *said)).encode(), digest_size=16).hexdigest() for line, said in others.items()
    }

    def renamed(event: Event) -> Event:
        line = tombstones.line_of(event.id)
        name = names.get((line, event.where.start))
        return event if name is None else replace(event, id=name + event.id.removeprefix(line))

    return [renamed(event) for event in events]
