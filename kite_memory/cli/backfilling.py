"""Reading what is there already: what `kmem up` and `kmem backfill` share."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kite_memory.cli.console import talk, tell
from kite_memory.daemon.ages import age
from kite_memory.distill.scheduler import Asked, Idle
from kite_memory.sources.source import Source

if TYPE_CHECKING:
    from kite_memory.wiring import House

_CHUNK_BYTES = 400_000
"""Bytes of transcript to a chunk, about: measured over long sessions."""

_CHUNK_TOKENS = 6_500


def backfill(
    house: "House", *, source: str = "", since: str = "", distill: bool = True, dry_run: bool = False, spend: bool = False
) -> bool:
    """Whether there are any transcripts at all.

    Events are always read, they cost nothing. Notes are made now where that is free, or where ``spend`` says so; else the
    daemon makes them within its daily budget.
    """
    start = age(since, datetime.now(UTC))
    unread = [each for each in house.pipeline.unread() if source in ("", each[0].provider)]
    size = sum(length for _, _, length in unread)
    if unread:
        tell(f"{len(unread)} transcripts, {size / 1e6:.1f} MB to read")
    if house.costs and distill and unread:
        calls = max(1, round(size / _CHUNK_BYTES))
        dollars = calls * _CHUNK_TOKENS * house.config.extractor.dollars_per_million_in / 1e6 * 1.5
        limit = house.config.extractor.dollars_per_day
        tell(f"notes from them: about {calls} calls, ${dollars:.2f}, at most ${limit:.2f} a day")
    if dry_run:
        return bool(unread)
    read_events(house, unread)
    house.pipeline.open_sessions(skip_before=start, skip_all=not distill)
    house.pipeline.form_chunks()
    with working("indexing") as progress:
        house.pipeline.compare_vault(progress=progress)
    if distill and (spend or not house.costs):
        _distil(house)
    elif distill and house.costs and house.outbox.states().get("waiting"):
        tell("the daemon will make notes from them, within its daily budget")
    return any(count.sessions for count in house.timeline.counts())


def read_events(house: "House", unread: Sequence[tuple[Source, Path, int]] | None = None) -> None:
    """Everything that is unread, or just ``unread``, into the timeline."""
    chosen = house.pipeline.unread() if unread is None else unread
    with _bar("reading", sum(size for _, _, size in chosen)) as advance:
        house.pipeline.ingest_many([(source, path) for source, path, _ in chosen], progress=advance)


def _distil(house: "House") -> None:
    with _bar("making notes", house.outbox.states().get("waiting", 0)) as advance:
        while True:
            match house.pipeline.distil():
                case Asked():
                    advance(1)
                case Idle(until=until, reason=reason) as idle:
                    if until is not None:
                        tell(f"stopped for now: {reason}")
                        if idle.hint:
                            tell(f"hint: {idle.hint}")
                    return


@contextmanager
def _bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    with working(title) as told:
        done = 0

        def advance(amount: int) -> None:
            nonlocal done
            done += amount
            told(done, total)

        yield advance


@contextmanager
def working(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with an estimate of the time left, where a person watches; nothing elsewhere."""
    console = talk()
    if not console.is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn(title), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
