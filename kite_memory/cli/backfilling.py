"""Reading of existing transcripts, shared by `kmem up` and `kmem backfill`: what there is, what notes of it cost, and the work."""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kite_memory.cli.console import print_message, print_warning, short_path, working
from kite_memory.distill.extractor import NoKeyExtractor
from kite_memory.distill.scheduler import ChunkHandled, Idle
from kite_memory.errors import KiteError, VaultMissing
from kite_memory.keys import keys_beside
from kite_memory.sources import Source
from kite_memory.text.display import counted

if TYPE_CHECKING:
    from kite_memory.app.survey import PassedOver
    from kite_memory.distill.model_extractor import Bill
    from kite_memory.wiring.services import Services

Unread = Sequence[tuple[Source, Path, int]]

_WORTH_WAITING = 30.0
"""Seconds that a user at the terminal may be kept waiting for a busy model."""


def unread(services: "Services", *, source: str = "") -> Unread:
    return [each for each in services.pipeline.unread() if source in ("", each[0].provider)]


def has_batches(services: "Services") -> bool:
    from kite_memory.wiring.models import batches_of

    return batches_of(services.config, keys_beside(services.config.file)) is not None


def announce(services: "Services", found: Unread, *, distill: bool, batch: bool = False) -> None:
    """Print how much there is to read, and what notes of it would cost."""
    if not found:
        return
    size = sum(length for _, _, length in found)
    print_message(
        f"{counted(len(found), 'transcript')}, {f'{size / 1e6:.1f} MB' if size >= 1e5 else f'{size / 1e3:.1f} kB'} to read"
    )
    if distill:
        _print_cost(services, found, (), batch=batch)


def announce_passed_over(services: "Services", found: "Sequence[PassedOver]", *, batch: bool = False) -> None:
    """Print what an earlier ``--since`` left without notes, and what they would cost."""
    if found:
        print_message(f"{_sessions(found)} passed over before, now to make notes of")
        _print_cost(services, (), found, batch=batch)


def announce_the_rest(services: "Services", found: Unread, *, source: str, since: datetime | None) -> None:
    """Print what is read already but has no notes yet, and what a backfill would leave so."""
    if waiting := services.pipeline.open_count():
        print_message(f"{counted(waiting, 'session')} without notes yet")
    if waiting := services.outbox.states().get("waiting", 0):
        print_message(f"{counted(waiting, 'chunk')} waiting to become notes")
    if since is None:
        return
    if older := [path for _, path, _ in found if path.exists() and path.stat().st_mtime < since.timestamp()]:
        print_message(
            f"{counted(len(older), 'transcript')} of them would be read but passed over: nothing was added since {since:%Y-%m-%d}"
        )
    left = services.pipeline.passed_over(provider=source)
    taken_up = services.pipeline.passed_over(since=since, provider=source)
    if left := [each for each in left if each not in taken_up]:
        print_message(f"{_sessions(left)} would stay passed over")


def _sessions(found: "Iterable[PassedOver]") -> str:
    return counted(len({(each.provider, each.session) for each in found}), "session")


def _print_cost(services: "Services", found: Unread, passed_over: "Sequence[PassedOver]", *, batch: bool) -> None:
    if not services.costs:
        return
    bill = bill_of(services, found, passed_over)
    if bill.calls:
        from kite_memory.wiring.models import prices_of

        prices, limit = prices_of(services.config), services.config.extractor.dollars_per_day
        dollars = bill.dollars(prices.halved() if batch else prices)
        print_message(f"notes from them: about {counted(bill.calls, 'call')}, ${dollars:.2f}, at most ${limit:.2f} a day")


def bill_of(services: "Services", found: Unread, passed_over: "Sequence[PassedOver]" = ()) -> "Bill":
    """Return the cost of notes for everything without any, for the model that would be asked."""
    from kite_memory.app.survey import backlog
    from kite_memory.wiring.models import chunk_policy, tariff_of

    policy = chunk_policy(services.config, costs=True)
    ahead = backlog(
        found, passed_over, pipeline=services.pipeline, timeline=services.timeline, outbox=services.outbox, policy=policy
    )
    return ahead.bill(tariff_of(services.config))


def backfill(
    services: "Services",
    *,
    source: str = "",
    since: datetime | None = None,
    distill: bool = True,
    spend: bool = False,
    queue_skipped: bool = True,
    batch: bool = False,
) -> bool:
    """Read events, which costs nothing, and make notes where that is free or ``spend`` is set.

    Otherwise the daemon makes the notes within its daily budget. With ``queue_skipped``, sessions passed over before get notes too,
    as far back as ``since``. With ``batch``, everything that waits goes in batches. Return whether the vault's pages could be
    written.
    """
    services.outbox.recover()
    found = unread(services, source=source)
    announce(services, found, distill=distill, batch=batch)
    read_events(services, found)
    read_events(services, unread(services, source=source))  # also in the folders of the sessions just read
    if distill:
        services.pipeline.open_sessions(skip_before=since, provider=source)
        if queue_skipped:
            passed_over = services.pipeline.passed_over(since=since, provider=source)
            announce_passed_over(services, passed_over, batch=batch)
            services.pipeline.queue_skipped(passed_over)
        services.pipeline.form_chunks()
        if left := services.pipeline.passed_over(provider=source):
            print_message(f"{_sessions(left)} passed over as too old; `kmem backfill` without --since makes notes of them too")
    with working("indexing") as progress:
        services.pipeline.compare_vault(progress=progress)
    if distill and batch:
        services.outbox.batches.mark()
    waiting = services.outbox.states().get("waiting", 0)
    if distill and (spend or not services.costs):
        _distil(services)
        if batched := services.outbox.batches.chunks():
            print_message(f"{counted(batched, 'chunk')} in a batch; the daemon takes the answers, and so does `kmem backfill`")
        return _bring_pages_up_to_date(services)
    if distill and isinstance(services.extractor, NoKeyExtractor):
        print_warning(KiteError(services.extractor.missing_key.reason, hint=services.extractor.missing_key.hint))
    elif distill and waiting:
        print_message("the daemon will make notes from them, within its daily budget")
    elif not distill:
        print_message(_WITHOUT_NOTES)
    return True


def sum_up(services: "Services") -> bool:
    """Print what is stored now, and return whether there is anything."""
    lines = list(_stored(services))
    for line in lines:
        print_message(line)
    return bool(lines)


def _stored(services: "Services") -> Iterator[str]:
    counts = [count for count in services.timeline.files.counts() if count.sessions]
    for count in counts:
        problems = f", {counted(count.problems, 'problem')}" if count.problems else ""
        files = f" in {count.files:,} files" if count.files != count.sessions else ""
        yield f"{count.provider}: {counted(count.sessions, 'session')}{files}, {counted(count.events, 'event')}{problems}"
    if counts:
        notes = sum(bool(note.kind) and not note.problem for note in services.vault.known.all())
        yield f"{counted(notes, 'note')} in {short_path(services.config.vault)}"


def answer_to_keep(services: "Services", *, distilled: bool) -> tuple[list[str], float] | None:
    """Return what the backfill that has just ended printed last, and until when that holds.

    ``None`` if another one would have something to do, or to report.
    """
    from kite_memory.vault.scanning import Comparison  # imports YAML

    with services.vault.lock:
        comparison = services.vault.scanner.compare()
    lines = list(_stored(services))
    if comparison != Comparison(problems=comparison.problems) or not lines:
        return None
    if not distilled:
        return [_WITHOUT_NOTES, *lines], math.inf
    outbox, pipeline = services.outbox, services.pipeline
    unwritten = any(outbox.states().get(state) for state in ("waiting", "asked", "answered")) or outbox.batches.chunks()
    if unwritten or pipeline.open_count() or pipeline.passed_over() or isinstance(services.extractor, NoKeyExtractor):
        return None
    if services.recall.memory.shown_open(datetime.now(UTC)):
        return None
    return lines, services.recall.index.columns().next_expiry(time.time())


_WITHOUT_NOTES = "no notes were made: `kmem backfill` makes them, and so does the daemon"


def read_events(services: "Services", found: Unread) -> None:
    with working("reading") as show_progress:
        total, done = sum(size for _, _, size in found), 0

        def advance(size: int) -> None:
            nonlocal done
            done += size
            show_progress(done, total)

        services.pipeline.ingest_many([(source, path) for source, path, _ in found], progress=advance)


def _distil(services: "Services") -> None:
    with working("making notes") as show_progress:
        total, done = services.outbox.states().get("waiting", 0), 0
        while True:
            match services.pipeline.distil():
                case ChunkHandled():
                    done += 1
                    show_progress(done, total)
                case Idle(until=None):
                    return
                case Idle(until=float(until), reason=reason, hint=hint):
                    if (pause := until - time.time()) > _WORTH_WAITING:
                        print_warning(KiteError(f"stopped for now: {reason}", hint=hint))
                        return
                    time.sleep(max(0.0, pause))


def _bring_pages_up_to_date(services: "Services") -> bool:
    """Update the vault's review page and page of contents, which otherwise the daemon does. Return whether both could be."""
    well = True
    for page in ("review_page", "synthesize"):
        try:
            services.operations.perform(page, {})
        except VaultMissing:
            return False  # reported when the vault was opened
        except KiteError as error:
            print_warning(error)
            well = False
    return well
