"""JSON documents in which one value after another is replaced by an unexpected one."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

WILD: tuple[Any, ...] = (None, True, -1, 10**18, 1e300, "", "wild", [], {}, [{}], {"": {}}, "@deep@")
_DEEP = b"[" * 1000 + b"]" * 1000
"""Deeper than Python's recursion limit, but not too deep for a parser."""

Place = tuple[str | int, ...]


def places(value: Any, to: Place = ()) -> Iterator[Place]:
    """Yield the path of every value, outermost first."""
    if to:
        yield to
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*to, key))


def replaced(value: Any, to: Place, by: Any) -> Any:
    if not to:
        return by
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[to[0]] = replaced(value[to[0]], to[1:], by)
    return copy


def written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass").replace(b'"@deep@"', _DEEP)


def wild_lines(content: bytes) -> bytes:
    """Yield every line, and every line again with each of its values replaced by each of the wild ones."""
    rows = [_parsed(line) for line in content.split(b"\n")]
    wild = [written(replaced(row, place, by)) for row in rows if row for place in places(row) for by in WILD]
    return content.rstrip(b"\n") + b"\n" + b"\n".join(wild) + b"\n"


def wild_documents(content: bytes) -> Iterator[bytes]:
    whole = json.loads(content)
    for place in places(whole):
        for by in WILD:
            yield written(replaced(whole, place, by))


def _parsed(data: bytes | str) -> Any:
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def wild_rows(database: sqlite3.Connection) -> Iterator[Callable[[], None]]:
    """Yield changes of a database's values, each with its reversal: one for each kind of wild value, wherever there are objects."""
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        for column in columns:
            held = database.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
            change = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"
            objects = {row: found for row, value in held if isinstance(value, str | bytes) and (found := _parsed(value))}
            for place in dict.fromkeys(place for found in objects.values() for place in places(found)):
                for by in WILD:
                    for row, found in objects.items():
                        if place in set(places(found)):
                            database.execute(change, (written(replaced(found, place, by)).decode("utf-8", "replace"), row))

                    def back(change: str = change, held: list[tuple[int, Any]] = held) -> None:
                        for row, value in held:
                            database.execute(change, (value, row))

                    yield back
