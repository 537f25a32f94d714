"""One look at a file of JSON lines that only ever grows: what is alike whichever agent writes it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from kite_memory.model.event import Event, Session
from kite_memory.model.look import Cursor, Look, Problem
from kite_memory.model.provenance import Passage
from kite_memory.sources.common.jsonl import AppendOnlyFile, Damage, Found, Unreadable, objects

PROBLEMS_AT_ONCE = 1_000
EVENTS_AT_ONCE = 20_000
"""A look ends with so many, for a hostile line may hold a thousand of them."""

Carried = TypeVar("Carried")


class Telling(Protocol):
    """Collects what the lines of a look tell."""

    @property
    def events(self) -> Sequence[Event]: ...

    @property
    def problems(self) -> Sequence[Problem]: ...

    def problem(self, position: int, reason: str) -> None: ...


def look_at(
    path: Path,
    cursor: Cursor | None,
    *,
    within: Path,
    line_limit: int,
    look: Callable[[AppendOnlyFile], Look],
    amends: bool = False,
) -> Look:
    """``look`` at the file while it is open. Where it cannot be read that is a problem, and the cursor stays."""
    try:
        with AppendOnlyFile(path, within=within, line_limit=line_limit) as file:
            return look(file)
    except Unreadable as error:
        reason = str(error)
    except OSError:
        reason = "file cannot be read"
    return unread(path, cursor, reason, amends=amends)


def unread(path: Path, cursor: Cursor | None, reason: str, *, amends: bool = False) -> Look:
    """Where nothing could be read."""
    unmoved = cursor or Cursor(position=0, size=0, mtime_ns=0)
    problem = Problem(file=str(path), position=unmoved.position, reason=reason)
    return Look(path=str(path), session=None, events=(), problems=(problem,), cursor=unmoved, amends=amends)


def resumed(
    file: AppendOnlyFile, cursor: Cursor | None, begin: Callable[[], Carried], resume: Callable[[str], Carried | None]
) -> tuple[int, Carried, str]:
    """Where to go on and with what; from the beginning, and why, when the file is not the one that was read."""
    if cursor is None or not cursor.position:
        return 0, begin(), ""
    if changed := file.changed(cursor.identity, cursor.position):
        return 0, begin(), changed
    carried = resume(cursor.carry)
    return (0, begin(), "unknown cursor") if carried is None else (cursor.position, carried, "")


def read_on(
    file: AppendOnlyFile,
    position: int,
    telling: Telling,
    tell: Callable[[Found, int, bytes], bool | None],
    *,
    budget: int,
    wanted: bool = True,
) -> tuple[int, bool]:
    """Tell the objects of the next lines, each with where its line begins and the line itself; true ends the look before it.

    Returns the position after the last object that was read, and whether there is more. What is not ``wanted`` is passed over.
    """
    stretch = file.lines(position, budget, to_the_end=True)
    if stretch.torn and wanted:
        telling.problem(stretch.end, "unfinished line")
    if stretch.too_long and wanted:
        telling.problem(position, "line too long")
    reached = stretch.end
    if stretch.data and wanted:
        reached = min(_read_lines(stretch.data, position, telling, tell), stretch.end)
    return reached, stretch.more or reached < stretch.end


def _read_lines(data: bytes, position: int, telling: Telling, tell: Callable[[Found, int, bytes], bool | None]) -> int:
    for line in data.split(b"\n"):
        if len(telling.problems) >= PROBLEMS_AT_ONCE or len(telling.events) >= EVENTS_AT_ONCE:
            return position
        for found in objects(line) if line else ():
            match found:
                case Damage(start=start, reason=reason):
                    telling.problem(position + start, reason)
                case Found():
                    if tell(found, position, line):
                        return position + found.start
        position += len(line) + 1
    return position


def looked(
    path: Path,
    file: AppendOnlyFile,
    telling: Telling,
    *,
    session: Session | None,
    position: int,
    carry: str,
    more: bool,
    wanted: bool = True,
    amends: bool = False,
    passages: Sequence[Passage] = (),
) -> Look:
    """What a look comes to that went as far as ``position``; nothing but its cursor where it was not ``wanted``.

    While the file ends amid a line, the cursor keeps no time, so that it is looked at again once it is at rest.
    """
    mtime_ns = 0 if file.unfinished else file.mtime_ns
    return Look(
        path=str(path),
        session=session if wanted else None,
        events=tuple(telling.events) if wanted else (),
        problems=tuple(telling.problems) if wanted else (),
        cursor=Cursor(position=position, size=file.size, mtime_ns=mtime_ns, identity=file.identity(position), carry=carry),
        more=more,
        amends=amends,
        passages=tuple(passages) if wanted else (),
    )
