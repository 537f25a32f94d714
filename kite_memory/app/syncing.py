"""Exchange of notes, events, deletions and counts with a person's other machines, through a folder or a git repository."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from kite_memory.app.forgetting import Forgetting
from kite_memory.app.synced_notes import AppliedVersions, HeldBack, SyncedNotes, is_made
from kite_memory.distill.condense import Span
from kite_memory.distill.outbox import Outbox
from kite_memory.errors import KiteError, UsageError
from kite_memory.model.event import Cursor, Event, ReadResult, in_time, line_of
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.recall.uptake import Tally
from kite_memory.redaction import redact_result
from kite_memory.sync.rows import EventsRow, ForgottenRow, NoteRow, Row, UptakeRow, without_forgotten
from kite_memory.sync.segments import (
    FOLDER,
    MOST_MACHINES,
    ROWS_BYTES,
    GitRemote,
    NotWhole,
    SharedFolder,
    SyncKey,
    batches,
    is_remote,
    new_machine,
    pack,
    refuse_nested,
)
from kite_memory.sync.state import NAME, SyncState
from kite_memory.system.private_files import WriterLock
from kite_memory.text.display import counted
from kite_memory.timeline.rows import ELSEWHERE, Since
from kite_memory.timeline.store import Timeline
from kite_memory.timeline.writing import ForgottenLine
from kite_memory.vault import Vault

Json = dict[str, Any]

_EVENTS_AT_ONCE = 5_000
_GAP = timedelta(days=1)
_STRANGE = "is not whole, or was not signed with this key: it is tried again, and nothing after it is read until then"


@dataclass(slots=True, kw_only=True)
class _Counts:
    """Counts for the answer."""

    notes: int = 0
    renamed: int = 0
    gone: int = 0
    events: int = 0
    forgotten: int = 0
    uptake: int = 0


@dataclass(slots=True, kw_only=True)
class _Round:
    """One exchange under way."""

    state: SyncState
    key: SyncKey
    folder: SharedFolder
    came: _Counts = field(default_factory=_Counts)
    went: _Counts = field(default_factory=_Counts)
    changes: AppliedVersions = field(default_factory=AppliedVersions)
    held_back: list[HeldBack] = field(default_factory=list)
    odd_names: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    erased: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """This machine among those that exchange: its ``name``, the folder of its state, and the environment that git runs in."""

    name: str
    state: Path
    environment: Mapping[str, str]


def shared_folder(target: str) -> tuple[Path, ...]:
    """Return the folder through which this machine exchanges notes; nothing for a repository elsewhere, or without sync."""
    return (Path(target),) if target and not is_remote(target) else ()


class Syncing:
    """Thread-safe; one exchange at a time, in any process."""

    def __init__(
        self,
        *,
        vault: Vault,
        timeline: Timeline,
        outbox: Outbox,
        memory: SessionMemory,
        index_notes: Callable[[Collection[str]], object],
        forgetting: Forgetting,
        erase: Callable[[], list[str]],
        machine: Machine,
        clock: Callable[[], datetime],
        step: Callable[[str], None] = lambda doing: None,
    ) -> None:
        self._vault = vault
        self._timeline = timeline
        self._outbox = outbox
        self._memory = memory
        self._index_notes = index_notes
        self._forgetting = forgetting
        self._erase = erase
        self._folder = machine.state
        self._name = machine.name
        self._environment = machine.environment
        self._clock = clock
        self._step = step
        self._lock = WriterLock(machine.state / f"{NAME}.lock", busy="another `kmem sync` has been running for too long")

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {"sync": self.sync, "sync_status": self.status}

    def sync(self, *, target: str, join: str = "", encrypt: bool = False, dry_run: bool = False) -> Json:
        """Read what the other machines have written to ``target``, and write what they do not know yet.

        ``join`` is the key of a machine that is in already. With ``encrypt``, a new folder's key encrypts.
        """
        with self._lock.held(), closing(SyncState(self._folder / NAME)) as state:
            remote = GitRemote(self._folder / "sync-git", target, self._environment) if is_remote(target) else None
            folder = SharedFolder(root=self._fetched(remote) if remote is not None else self._local(target))
            key, made = self._key(state, folder, target, join=join, encrypt=encrypt, dry_run=dry_run)
            under_way = _Round(state=state, key=key, folder=folder)
            if dry_run:
                return self._tried(under_way, target)
            if remote is None:
                self._exchange(under_way, target)
            else:
                remote.exchange(lambda: self._exchange(under_way, target))
            if under_way.erased:
                under_way.problems += self._erase()
            return self._answer(under_way, target, made=made)

    def status(self, *, target: str = "") -> Json:
        """Return who takes part, and how far each has been read, without reading anything new."""
        if not (self._folder / NAME).exists():
            return {"target": target, "machine": "", "key": "", "machines": [], "waiting": 0}
        with closing(SyncState(self._folder / NAME)) as state:
            key = state.key
            remote = GitRemote(self._folder / "sync-git", target, self._environment) if is_remote(target) else None
            root = remote.folder if remote is not None else Path(target).expanduser()
            folder = SharedFolder(root=root)
            return {
                "target": target,
                "machine": state.machine,
                "key": key.text() if key is not None else "",
                "machines": self._machines(folder, state) if target else [],
                "waiting": len(state.to_send()),
            }

    def _machines(self, folder: SharedFolder, state: SyncState) -> list[Json]:
        return [
            {
                "machine": each,
                "this": each == state.machine,
                "segments": len(numbers := folder.numbers(each)),
                "unread": 0 if each == state.machine else sum(number >= state.position(each) for number in numbers),
                "bytes": folder.size(each),
            }
            for each in folder.machines()
        ]

    def _local(self, target: str) -> Path:
        root = Path(target).expanduser().absolute()
        if not root.is_dir():
            raise UsageError(
                f"there is no folder {root}",
                hint="create it, or mount its disk; kmem does not create it, in case the disk is missing",
            )
        refuse_nested(root, self._folder)
        return root

    def _fetched(self, remote: GitRemote) -> Path:
        remote.fetch()
        return remote.folder

    def _key(
        self, state: SyncState, folder: SharedFolder, target: str, *, join: str, encrypt: bool, dry_run: bool
    ) -> tuple[SyncKey, bool]:
        """Return the key, and whether it was made now. Begins anew with another key or another folder."""
        known, mark = state.key, folder.key_mark()
        key = SyncKey.parse(join) if join else known
        made = False
        if mark and (key is None or key.mark() != mark):
            raise UsageError(
                f"{target} is in use by other machines, with another key"
                if key is not None
                else f"{target} is in use by other machines",
                hint="`kmem sync --key` on one of them shows the key; here: `kmem sync FOLDER --join KEY`",
            )
        if key is None:
            key, made = SyncKey.make(encrypted=encrypt), True
        elif encrypt and not key.identity:
            raise UsageError(
                "this key does not encrypt", hint="encryption begins with a new folder, on a machine that has no key yet"
            )
        if dry_run:
            return key, made
        own = folder.numbers(state.machine) if state.machine else []
        restored = (
            bool(own) and max(own) >= state.pending.next_number()
        )  # this state is a copy of an older one, or of another machine
        complete = bool(own) and own == list(range(1, state.pending.next_number()))
        moved = state.setting("target") != target and not (mark and complete)  # the same folder may be called otherwise
        if known is not None and not moved and not mark:
            raise KiteError(
                f"{target} no longer holds this memory's sync data", hint="mount its disk, or start over with another folder"
            )
        if known is None or known.text() != key.text() or moved or restored:
            if state.machine:
                state.keep_name()
            with state.changing():
                state.begin(key, new_machine(self._name))
        with state.changing():
            state.set("target", target)
        state.keep_name()
        if not mark:
            folder.claim(key)
        return key, made

    def _exchange(self, under_way: _Round, target: str) -> None:
        self._replace_lost(under_way)
        self._publish(under_way)
        with self._vault.lock, self._vault.undisturbed():
            self._vault.scanner.must_be_whole()
            notes = SyncedNotes(vault=self._vault, state=under_way.state, clock=self._clock)
            notes.notice()
            self._read_all(under_way, notes)
            changes = under_way.changes
            if changes.written or changes.renamed or changes.gone or changes.copies:
                self._vault.scanner.compare()
                notes.notice()
            self._take_back(under_way)
            self._write(under_way, notes)
        self._write_events(under_way)  # of a whole timeline this takes minutes, in which notes can be written
        touched = changes.written | changes.touched
        if touched:
            self._index_notes(touched)

    def _replace_lost(self, under_way: _Round) -> None:
        """Put empty segments in place of this machine's own that the folder has lost, and send again what may have been in them.

        The others read no segment behind one that is missing.
        """
        state, folder = under_way.state, under_way.folder
        there = {*folder.numbers(state.machine), *(number for number, _ in state.pending.all())}
        lost = [number for number in range(1, state.pending.next_number()) if number not in there]
        if not lost:
            return
        state.send_again()
        for number in lost:
            folder.put(state.machine, number, pack([], key=under_way.key, machine=state.machine, number=number))
        under_way.problems.append(f"the folder has lost {counted(len(lost), 'segment')} of this machine: all is sent again")

    def _publish(self, under_way: _Round) -> None:
        """Put segments into the folder that may not be there yet."""
        for number, content in under_way.state.pending.all():
            self._step("publish")
            under_way.folder.put(under_way.state.machine, number, content)
            with under_way.state.changing():
                under_way.state.pending.published(number)

    def _read_all(self, under_way: _Round, notes: SyncedNotes) -> None:
        state, folder = under_way.state, under_way.folder
        identity = self._timeline.identity()
        if state.setting("timeline") != identity:  # it was made anew
            with state.changing():
                state.reread()
                for name in ("events", "amended"):
                    state.set(name, "")
                state.set("timeline", identity)
        for machine in folder.machines():
            if machine != state.machine:
                self._read(machine, under_way, notes)
        if passed_over := folder.passed_over():
            under_way.problems.append(
                f"{counted(passed_over, 'machine')} left out: the folder has more than {MOST_MACHINES}; delete those in {FOLDER}/"
                " that are no longer in use"
            )

    def _read(self, machine: str, under_way: _Round, notes: SyncedNotes) -> None:
        state, due = under_way.state, under_way.state.position(machine)
        for number in under_way.folder.numbers(machine):
            if number < due:
                continue
            if number > due:
                under_way.problems.append(f"{machine}: segment {due} is not there yet")
                return
            try:
                rows, malformed = under_way.folder.rows(machine, number, under_way.key)
            except (NotWhole, OSError):
                under_way.problems.append(f"{machine}: segment {number} {_STRANGE}")
                return
            if malformed:
                under_way.problems.append(f"{machine}: {counted(malformed, 'row')} of segment {number} left out, malformed")
            left = len(under_way.changes.left)
            self._apply(rows, machine, under_way, notes)
            if len(under_way.changes.left) > left:
                under_way.problems += under_way.changes.left[left:]
                return
            due = number + 1
            with state.changing():
                state.advance(machine, due)
            self._step("advance")

    def _apply(self, rows: list[Row], machine: str, under_way: _Round, notes: SyncedNotes) -> None:
        tallies: dict[str, Tally] = {}
        forgotten: list[ForgottenRow] = []
        if found := [row for row in rows if isinstance(row, NoteRow)]:
            self._step("notes")
            notes.apply(found, under_way.changes)
        for row in rows:
            match row:
                case NoteRow():
                    pass
                case EventsRow():
                    self._step("events")
                    under_way.came.events += self._take_events(row, machine)
                case ForgottenRow():
                    forgotten.append(row)
                case UptakeRow():
                    tallies[row.note] = Tally(shown=row.shown, used=row.used, ignored=row.ignored)
        if forgotten:
            self._step("forget")
            self._forget(forgotten, under_way)
        if tallies:
            self._memory.hear_tallies(machine, tallies)
            under_way.came.uptake += len(tallies)

    def _take_events(self, row: EventsRow, machine: str) -> int:
        """Store events of another machine. No notes are made of them here: that machine does, and they arrive as notes."""
        if not row.events:
            return 0
        session = row.session
        cursor = Cursor(position=0, size=0, mtime_ns=0, identity=ELSEWHERE)
        read = ReadResult(path=f"{machine}:{row.file}", session=session, events=row.events, problems=(), cursor=cursor, amends=True)
        clean = redact_result(in_time(read, latest=self._clock() + _GAP, before=None))
        first, last = min(clean.events, key=_ordinal), max(clean.events, key=_ordinal)
        known = self._timeline.sessions.state(session.provider, session.id)
        ahead = known is None or last.ordinal > known.last_ordinal
        if ahead:  # before the events are there to be distilled
            self._pass_over(session.provider, session.id, first, last)
        added = self._timeline.commit([clean], session.provider)
        now = self._timeline.sessions.state(session.provider, session.id)
        if known is not None and now is not None and now.last_ordinal > max(known.last_ordinal, last.ordinal):
            ends = self._timeline.events.last(session.provider, session.id, 1)  # they were put after what was here
            self._pass_over(session.provider, session.id, *(ends * 2))
        return added

    def _pass_over(self, provider: str, session: str, first: Event, last: Event) -> None:
        span = Span(
            id=f"sync:{first.id}:{last.id}",
            provider=provider,
            session=session,
            first=first.ordinal,
            last=last.ordinal,
            weight=0,
            first_event=first.id,
            last_event=last.id,
        )
        self._outbox.formed.add([span], nothing=[span.id])

    def _forget(self, rows: list[ForgottenRow], under_way: _Round) -> None:
        state = under_way.state
        known = {line.id: blank for line, blank in self._timeline.forgotten.lines()}
        new = [row for row in rows if row.blank > known.get(row.event, -1)]
        for blank in (False, True):
            lines = [ForgottenLine(id=row.event, provider=row.provider, session=row.session) for row in new if row.blank is blank]
            if lines:
                self._forgetting.forget_lines(lines, blank=blank)
                under_way.erased |= blank
        with state.changing():
            for row in rows:
                state.exchanged.record_forgotten(row.event, blank=row.blank)
        under_way.came.forgotten += len(new)

    def _take_back(self, under_way: _Round) -> None:
        """Take what was forgotten out of this machine's own segments, also under its former names.

        A damaged one is tried again in the next round.
        """
        state, folder = under_way.state, under_way.folder
        lines = frozenset(line.id for line, blank in self._timeline.forgotten.lines() if blank)
        notes = state.gone()
        former = state.names()
        ours = [machine for machine in sorted(former) if folder.numbers(machine)]
        mark = hashlib.sha256("\n".join((*ours, "", *sorted(lines), "", *sorted(notes))).encode()).hexdigest()
        if state.setting("taken back") == mark:
            return
        whole = True
        for name, number in ((machine, number) for machine in ours for number in folder.numbers(machine)):
            try:
                rows, _ = folder.rows(name, number, under_way.key)
            except (NotWhole, OSError):
                whole = False
                under_way.problems.append(f"{name}: this machine's own segment {number} is damaged")
                continue
            kept = [row for each in rows if (row := without_forgotten(each, lines=lines, notes=notes)) is not None]
            if kept != rows:
                self._step("take back")
                folder.put(name, number, pack(kept, key=under_way.key, machine=name, number=number))
        if whole:
            with state.changing():
                state.set("taken back", mark)

    def _write(self, under_way: _Round, notes: SyncedNotes) -> None:
        """Write what the others do not know, in segments: each is recorded as sent with its content, then put into the folder."""
        encrypted = bool(under_way.key.identity)
        for batch in batches(notes.rows(encrypted=encrypted, held_back=under_way.held_back, odd_names=under_way.odd_names)):
            self._send(under_way, batch)
        self._write_forgotten(under_way)
        self._write_uptake(under_way)

    def _send(self, under_way: _Round, rows: list[Row], settings: Mapping[str, str] | None = None) -> None:
        state = under_way.state
        number = state.pending.next_number()
        content = pack(rows, key=under_way.key, machine=state.machine, number=number)
        self._step("send")
        with state.changing():
            state.mark_sent(row.version.key for row in rows if isinstance(row, NoteRow))
            for row in rows:
                match row:
                    case ForgottenRow():
                        state.exchanged.record_forgotten(row.event, blank=row.blank)
                    case UptakeRow():
                        state.exchanged.record_uptake(row.note, row.shown, row.used, row.ignored)
            for name, value in (settings or {}).items():
                state.set(name, value)
            state.pending.add(number, content)
        self._count(rows, under_way.went)
        self._publish(under_way)

    def _write_forgotten(self, under_way: _Round) -> None:
        rows: list[Row] = [
            ForgottenRow(event=line.id, provider=line.provider, session=line.session, blank=blank)
            for line, blank in self._timeline.forgotten.lines()
            if not under_way.state.exchanged.is_forgotten(line.id, blank=blank)
        ]
        for batch in batches(rows):
            self._send(under_way, batch)

    def _write_uptake(self, under_way: _Round) -> None:
        sent = under_way.state.exchanged.uptake()
        rows: list[Row] = [
            UptakeRow(note=note, shown=each.shown, used=each.used, ignored=each.ignored)
            for note, each in self._memory.own_tallies().items()
            if sent.get(note) != (each.shown, each.used, each.ignored) and not note.startswith("team:")
        ]
        for batch in batches(rows):
            self._send(under_way, batch)

    def _write_events(self, under_way: _Round) -> None:
        state = under_way.state
        while True:
            since = Since(row=int(state.setting("events") or 0), change=int(state.setting("amended") or 0))
            events, after = self._timeline.events.changed_since(since, _EVENTS_AT_ONCE)
            settings = {"events": str(after.row), "amended": str(after.change)}
            rows = list(self._rows_of(events))
            if rows:
                self._send(under_way, rows, settings)
            elif after != since:
                with state.changing():
                    for name, value in settings.items():
                        state.set(name, value)
            if len(events) < _EVENTS_AT_ONCE:
                return

    def _rows_of(self, events: list[Event]) -> Iterator[Row]:
        lines = frozenset(line.id for line, blank in self._timeline.forgotten.lines() if blank)
        kept = [event for event in events if line_of(event.id) not in lines]
        for (provider, of, file), group in groupby(kept, key=lambda event: (event.provider, event.session, event.where.file)):
            session = self._timeline.sessions.get(provider, of)
            if session is not None:
                yield from (EventsRow(session=session, file=file, events=some) for some in _divided(group))

    def _tried(self, under_way: _Round, target: str) -> Json:
        """Return what would be exchanged, and change nothing."""
        state, folder = under_way.state, under_way.folder
        for machine in folder.machines():
            for number in folder.numbers(machine) if machine != state.machine else ():
                if number < state.position(machine):
                    continue
                try:
                    self._count(folder.rows(machine, number, under_way.key)[0], under_way.came)
                except (NotWhole, OSError):
                    under_way.problems.append(f"{machine}: segment {number} {_STRANGE}")
                    break
        with self._vault.lock, self._vault.undisturbed():
            self._vault.scanner.must_be_whole()
            under_way.went.notes, under_way.went.gone = SyncedNotes(vault=self._vault, state=state, clock=self._clock).unsent(
                encrypted=bool(under_way.key.identity), held_back=under_way.held_back, odd_names=under_way.odd_names
            )
        return self._answer(under_way, target, made=False)

    def _count(self, rows: list[Row], counts: _Counts) -> None:
        for row in rows:
            match row:
                case NoteRow(version=version):
                    counts.notes += not version.gone
                    counts.gone += bool(version.gone)
                case EventsRow(events=events):
                    counts.events += len(events)
                case ForgottenRow():
                    counts.forgotten += 1
                case UptakeRow():
                    counts.uptake += 1

    def _answer(self, under_way: _Round, target: str, *, made: bool) -> Json:
        came, changes = under_way.came, under_way.changes
        if changes.written or changes.renamed or changes.gone:
            came.notes, came.renamed, came.gone = len(changes.written), changes.renamed, changes.gone
        names = ("notes", "renamed", "gone", "events", "forgotten", "uptake")
        return {
            "target": target,
            "machine": under_way.state.machine,
            "key": under_way.key.text() if made else "",
            "encrypted": bool(under_way.key.identity),
            "others": [each for each in under_way.folder.machines() if each != under_way.state.machine],
            "came": {name: getattr(came, name) for name in names},
            "went": {name: getattr(under_way.went, name) for name in names},
            "copies": changes.copies,
            "trashed": changes.trashed,
            "held_back": [each.path for each in under_way.held_back],
            "secrets": [asdict(each) for each in under_way.held_back],
            "odd_names": under_way.odd_names,
            "problems": under_way.problems,
        }


def purge(state: Path, timeline: Timeline, vault: Vault) -> bool:
    """Erase forgotten text from ``sync.sqlite`` in the folder ``state``. Return whether nothing of it is left there."""
    if not (state / NAME).exists():
        return True
    lines = frozenset(line.id for line, blank in timeline.forgotten.lines() if blank)
    with closing(SyncState(state / NAME)) as known:
        notes = {id for id in vault.shared.graves() if (held := known.note(id)) is None or not is_made(held.version)}
        return known.erase(lines=lines, notes=frozenset(notes))


def _ordinal(event: Event) -> int:
    return event.ordinal


def _divided(events: Iterable[Event]) -> Iterator[tuple[Event, ...]]:
    """Divide events into rows of about a segment's size at most: a segment has a limit, and a row stays whole."""
    row: list[Event] = []
    size = 0
    for event in events:
        row.append(event)
        size += len(event.text) + len(event.command)
        if size >= ROWS_BYTES:
            yield tuple(row)
            row, size = [], 0
    if row:
        yield tuple(row)
