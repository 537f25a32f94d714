"""Reading what is there already: what `kmem up` and `kmem backfill` share."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kite_memory.cli.console import remark, talk, tell
from kite_memory.daemon.ages import age
from kite_memory.distill.scheduler import Asked, Idle
from kite_memory.errors import KiteError
from kite_memory.sources.source import Source

if TYPE_CHECKING:
    from kite_memory.wiring import House

Unread = Sequence[tuple[Source, Path, int]]

_CHUNK_BYTES = 400_000
"""Bytes of transcript to a chunk, about: measured over long sessions."""

_CHUNK_TOKENS = 6_500


def unread(house: "House", *, source: str = "") -> Unread:
    return [each for each in house.pipeline.unread() if source in ("", each[0].provider)]


def announce(house: "House", found: Unread, *, distill: bool) -> None:
    """What there is to read, and what notes of it would cost."""
    if not found:
        return
    size = sum(length for _, _, length in found)
    tell(f"{len(found)} transcripts, {size / 1e6:.1f} MB to read")
    if house.costs and distill:
        calls = max(1, round(size / _CHUNK_BYTES))
        dollars = calls * _CHUNK_TOKENS * house.config.extractor.dollars_per_million_in / 1e6 * 1.5
        limit = house.config.extractor.dollars_per_day
        tell(f"notes from them: about {calls} calls, ${dollars:.2f}, at most ${limit:.2f} a day")


def backfill(house: "House", *, source: str = "", since: str = "", distill: bool = True, spend: bool = False) -> None:
    """Events are always read, they cost nothing. Notes are made now where that is free, or where ``spend`` says so; else the
    daemon makes them within its daily budget.
    """
    start = age(since, datetime.now(UTC))
    house.outbox.recover()
    found = unread(house, source=source)
    announce(house, found, distill=distill)
    read_events(house, found)
    if distill:
        house.pipeline.open_sessions(skip_before=start)
        house.pipeline.form_chunks()
    with working("indexing") as progress:
        house.pipeline.compare_vault(progress=progress)
    waiting = house.outbox.states().get("waiting", 0)
    if distill and (spend or not house.costs):
        _distil(house)
    elif distill and waiting:
        tell("the daemon will make notes from them, within its daily budget")
    elif not distill:
        tell("no notes were made: `kmem backfill` makes them, and so does the daemon")


def sum_up(house: "House") -> bool:
    """Say what there is now. Whether that is anything."""
    counts = [count for count in house.timeline.counts() if count.sessions]
    for count in counts:
        problems = f", {count.problems:,} problems" if count.problems else ""
        tell(f"{count.provider}: {count.sessions:,} sessions, {count.events:,} events{problems}")
    if counts:
        tell(f"{len(house.vault.known())} notes in {house.config.vault}")
    return bool(counts)


def read_events(house: "House", found: Unread) -> None:
    with working("reading") as told:
        total, done = sum(size for _, _, size in found), 0

        def advance(size: int) -> None:
            nonlocal done
            done += size
            told(done, total)

        house.pipeline.ingest_many([(source, path) for source, path, _ in found], progress=advance)


def _distil(house: "House") -> None:
    with working("making notes") as told:
        total, done = house.outbox.states().get("waiting", 0), 0
        while True:
            match house.pipeline.distil():
                case Asked():
                    done += 1
                    told(done, total)
                case Idle(until=until, reason=reason, hint=hint):
                    if until is not None:
                        remark(KiteError(f"stopped for now: {reason}", hint=hint))
                    return


@contextmanager
def working(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with an estimate of the time left, where a person watches and there is something to do; nothing elsewhere."""
    with ExitStack() as shown:
        shows: list[Callable[[int, int], None]] = []

        def told(done: int, total: int) -> None:
            if not shows:
                shows.append(_bar(title, shown))
            shows[0](done, total)

        yield told


def _bar(title: str, shown: ExitStack) -> Callable[[int, int], None]:
    console = talk()
    if not console.is_terminal:
        return lambda done, total: None
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn(title), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    progress = shown.enter_context(Progress(*columns, console=console))
    task = progress.add_task(title, total=None)
    return lambda done, total: progress.update(task, completed=done, total=total)
