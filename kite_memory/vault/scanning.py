"""Read the vault's notes, detect what people changed in them, and refuse to write to a vault that is missing or incomplete.

What has changed is decided from what is known, what is listed and what was read.
"""

import contextlib
import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from kite_memory.errors import NoteNotFound, VaultMissing, VaultReadOnly
from kite_memory.model.event import Problem
from kite_memory.model.note import Entry, Note
from kite_memory.system.private_files import WriterLock
from kite_memory.vault.files import CannotRead, Content, Files, Stamp, no_vault
from kite_memory.vault.folders import OutsideVault
from kite_memory.vault.ledger import KnownFile, Ledger, OpenedFile, link_key
from kite_memory.vault.ledger.ledger import NoteRows, ProblemRows
from kite_memory.vault.listing import COPY_REASON, Listing, is_copy_of, listing, may_be_of, trashed_notes
from kite_memory.vault.notefile import UnreadableNote, parse
from kite_memory.vault.writing import Writer

_FEW = 10
_SHARE = 0.3
_A_HANDFUL = 3
_ENOUGH_TO_LOOK = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Changes in the vault. Paths are present ones; ``renamed`` holds old and new.

    ``returned`` are notes that their owner had deleted and put back. ``frozen`` is why so much is missing that nothing was
    concluded from it; the rest is then empty. ``rescued`` is text not written by us that an interrupted write had left, now in the
    trash.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    deleted: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    rescued: tuple[str, ...] = ()
    frozen: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultDiff:
    """A comparison, and what the ledger should record of it."""

    comparison: Comparison
    forgotten: tuple[str, ...]
    seen: tuple[OpenedFile, ...]
    originals: tuple[str, ...]
    buried: tuple[KnownFile, ...]
    lifted: tuple[str, ...]


def to_read(known: Sequence[KnownFile], found: Listing) -> list[Entry]:
    """Return the files that differ from what is known of them."""
    stamps = {one.path: (one.size, one.mtime_ns) for one in known}
    return [entry for entry in found.entries if stamps.get(entry.path) != (entry.size, entry.mtime_ns)]


def missing_too_many(known: Sequence[KnownFile], gone: int, found: Listing) -> str:
    """Return why this looks like an unmounted disk rather than like deleted notes; empty if it does not."""
    total = sum(not one.duplicate for one in known)
    if gone and gone == total and (found.bare or not found.marked or total > _A_HANDFUL):
        return f"none of the {total} known notes is there" if total > 1 else "the only known note is not there, nor anything else"
    if gone > max(_FEW, _SHARE * total):
        return f"{gone} of the {total} known notes are gone at once"
    return ""


def missing_some(sample: int, gone: int) -> bool:
    """Return whether `missing_too_many` may hold, judged by a sample of the known notes."""
    return gone > max(_A_HANDFUL, _ENOUGH_TO_LOOK * sample) or (gone == sample and sample > 0)


def diff_vault(
    known: Sequence[KnownFile],
    found: Listing,
    read: Mapping[str, tuple[Note | UnreadableNote, Stamp]],
    *,
    buried_ids: Container[str],
    accept: bool = False,
) -> VaultDiff:
    """Compare by ids: a known id in a new place is a renamed note, one in two places a copy, one in none a deleted note.

    A file that lost its id, or cannot be read any more, keeps the id it had. With ``accept``, any number of notes may be missing.
    """
    before = {one.path: one for one in known}
    listed = {entry.path: entry for entry in found.entries if entry.path in before or entry.path in read}
    ids, twins = _identities(before, listed, read, found)
    holders = {id: path for path, id in ids.items() if id and path not in twins}

    absent = [one for one in known if one.path not in listed and not found.hides(one.path)]
    renamed: list[tuple[str, str]] = []
    gone: list[KnownFile] = []
    nameless = {  # files without an id are followed by size and time, which a rename keeps
        (entry.size, entry.mtime_ns): path
        for path, entry in listed.items()
        if path not in before and (not ids[path] or path in twins)
    }
    for one in absent:
        new = holders.get(one.id) if one.id and not one.duplicate else nameless.pop((one.size, one.mtime_ns), None)
        if new is not None:
            renamed.append((one.path, new))
        else:
            gone.append(one)

    frozen = "" if accept else missing_too_many(known, sum(not one.duplicate for one in gone), found)
    if frozen:
        return VaultDiff(comparison=Comparison(frozen=frozen), forgotten=(), seen=(), originals=(), buried=(), lifted=())

    moved_to = {new for _, new in renamed}
    seen = tuple(
        OpenedFile(path=path, stamp=stamp, note=note, id=ids[path], duplicate=path in twins, known=before.get(path))
        for path, (note, stamp) in read.items()
        if path in listed
    )
    originals = tuple(path for path in listed if path not in read and before[path].duplicate and path not in twins)
    buried = tuple(one for one in gone if one.id and not one.duplicate)
    changed_ids = tuple(one for one in known if one.id and not one.duplicate and one.path in listed and one.id not in holders)
    lifted = tuple(id for id in holders if id in buried_ids)
    comparison = Comparison(
        added=tuple(path for path in read if path in listed and path not in before and path not in moved_to),
        changed=tuple(path for path in read if path in listed and path in before),
        renamed=tuple(renamed),
        deleted=tuple(one.path for one in gone),
        returned=tuple(holders[id] for id in lifted),
        problems=(
            *found.problems,
            *(Problem(file=path, position=0, reason="same id as another note") for path in sorted(twins)),
            *(Problem(file=one.path, position=0, reason=one.note.reason) for one in seen if isinstance(one.note, UnreadableNote)),
            *(
                Problem(file=path, position=0, reason=before[path].problem)
                for path in listed
                if path not in read and before[path].problem
            ),
        ),
    )
    return VaultDiff(
        comparison=comparison,
        forgotten=(*(one.path for one in absent), *(one.path for one in seen)),
        seen=seen,
        originals=originals,
        buried=(*buried, *changed_ids),
        lifted=lifted,
    )


def _identities(
    before: Mapping[str, KnownFile],
    listed: Mapping[str, Entry],
    read: Mapping[str, tuple[Note | UnreadableNote, Stamp]],
    found: Listing,
) -> tuple[dict[str, str], set[str]]:
    """Return the id of each listed file, and which of them are copies of another."""
    ids: dict[str, str] = {}
    firm: dict[str, list[str]] = {}
    kept: dict[str, str] = {}
    for path in listed:
        known = before.get(path)
        note = read[path][0] if path in read else None
        ids[path] = note.id if isinstance(note, Note) else known.id if known and note is None else ""
        if ids[path]:
            firm.setdefault(ids[path], []).append(path)
        elif known and known.id and not known.duplicate:
            kept[path] = known.id
    for path, id in kept.items():
        if id not in firm:
            ids[path] = id
            firm[id] = [path]
    home = {one.id: one.path for one in before.values() if one.id and not one.duplicate}
    twins: set[str] = set()
    for id, paths in firm.items():
        if len(paths) == 1 and home.get(id) in (None, paths[0]):
            continue
        old = home.get(id, "")
        if old in paths:
            original = old
        elif old and found.hides(old):
            original = ""
        else:
            original = min(paths, key=lambda path: (listed[path].mtime_ns, len(path), path))
        twins.update(path for path in paths if path != original)
    return ids, twins


class NoteReader:
    """Reads notes with the ids that the ledger has for them, and records which could not be read."""

    def __init__(self, files: Files, notes: NoteRows, problems: ProblemRows) -> None:
        self._files = files
        self._notes = notes
        self._problems = problems
        self._unread: dict[str, str] = {}

    def why_unread(self, path: str) -> str:
        """Return why a file could not be read; empty where it could be read, or was not tried."""
        return self._unread.get(path, "")

    def forget(self, path: str) -> None:
        """Drop the read error of a file that is gone or is no note."""
        self._unread.pop(path, None)

    def raw(self, path: str) -> bytes | None:
        """Return a file of the vault as it is; ``None`` where it is gone or is not read."""
        try:
            return self._files.read(path).data
        except (OSError, CannotRead, OutsideVault):
            return None

    def read(self, path: str) -> Note | None:
        """Return a note; ``None`` for what is no note, or cannot be read: then `problems` has the reason."""
        read = self.read_as_known(path)
        return read[0] if read is not None else None

    def read_as_known(self, path: str) -> tuple[Note, Stamp] | None:
        """Read a note with the id that the ledger has for it."""
        read = self.open(path)
        if read is None:
            return None
        note, stamp = read
        if isinstance(note, UnreadableNote):
            return None
        known = self._notes.at(path)
        if known is not None and known.duplicate and note.id == known.id:
            note = replace(note, id="")
        elif not note.id and known is not None and not known.duplicate:
            note = replace(note, id=known.id)
        if note.anchors and (since := self._notes.drift(path)) is not None:
            note = replace(note, drifted=since)
        return note, stamp

    def read_again(self, known: KnownFile) -> Note | None:
        """Read a note just returned by the ledger, which is no copy. From memory where its file has not changed."""
        read = self.open(known.path, self._files.read_again)
        if read is None or isinstance(read[0], UnreadableNote):
            return None
        return read[0] if read[0].id else replace(read[0], id=known.id)

    def text(self, path: str) -> str:
        try:
            return self._files.read(path).data.decode()
        except (OSError, CannotRead, UnicodeDecodeError) as error:
            raise NoteNotFound(f"{path} cannot be read", hint="it has just been moved or changed") from error

    def open(self, path: str, reading: Callable[[str], Content] | None = None) -> tuple[Note | UnreadableNote, Stamp] | None:
        """Read and parse a file; ``None`` for a missing one.

        A file that cannot be opened gets a stamp that will not match the next time.
        """
        try:
            content = (reading or self._files.read)(path)
        except (FileNotFoundError, NotADirectoryError, OutsideVault):
            self._unread.pop(path, None)
            return None
        except CannotRead as error:
            self._unread[path] = str(error)
            return UnreadableNote(path=path, reason=str(error)), Stamp(size=-1, mtime_ns=-1)
        at = datetime.fromtimestamp(content.stamp.mtime_ns / 1e9, UTC)
        try:
            note = parse(content.data.decode(), path, created=at, updated=at)
        except UnicodeDecodeError:
            note = UnreadableNote(path=path, reason="not UTF-8")
        if isinstance(note, UnreadableNote):
            self._unread[path] = note.reason
        else:
            self._unread.pop(path, None)
        return note, content.stamp

    def problems(self) -> list[Problem]:
        """Return what could not be read or was left alone, as of the last comparison and the reads since."""
        found = {(problem.file, problem.reason) for problem in self._problems.all()} | set(self._unread.copy().items())
        return [Problem(file=path, position=0, reason=reason) for path, reason in sorted(found)]


_SAMPLE = 50

ACCEPT_COMMAND = "kmem verify --accept-missing"
"""The command, named in hints, by which a person confirms that the notes are gone on purpose."""


class Scanner:
    """Compares the vault with what the ledger knows of it. Thread-safe, and safe beside other processes by ``lock``."""

    def __init__(
        self,
        root: Path,
        *,
        files: Files,
        ledger: Ledger,
        lock: WriterLock,
        reader: NoteReader,
        writer: Writer,
        clock: Callable[[], datetime],
    ) -> None:
        self._root = root
        self._files = files
        self._ledger = ledger
        self._lock = lock
        self._reader = reader
        self._writer = writer
        self._clock = clock

    @property
    def frozen(self) -> str:
        """Why writing is suspended and missing notes do not count as deleted; empty in normal operation."""
        return self._ledger.setting("frozen")

    @property
    def links_outdated(self) -> bool:
        """Whether notes were deleted, put back or renamed since `mend_links`, as noticed by any process."""
        return bool(self._ledger.setting("unmended"))

    def compare(self) -> Comparison:
        """Record what has changed in the vault: new and changed files, renames, deletions, copies. Also cleans up after crashes.

        Opens only files whose size or time has changed. A deletion is final; but when too much is missing at once, the result is
        ``frozen`` and nothing is concluded, until the notes are back or `accept_disappearance` is called.
        """
        with self._lock.held():
            return self._compare(accept=False)

    def accept_disappearance(self) -> Comparison:
        """Compare, taking the missing notes as deleted on purpose: a person has confirmed it."""
        with self._lock.held():
            return self._compare(accept=True)

    def must_be_whole(self) -> None:
        """Raise `VaultMissing` where so much is missing that no note can be reported as gone."""
        if frozen := self.compare().frozen:
            raise self.missing(frozen)

    def _compare(self, *, accept: bool) -> Comparison:
        try:
            found = listing(self._files)
        except VaultMissing as error:
            if not accept:
                return self._freeze(str(error))
            found = Listing()
        if not accept and not self._looks_there(found):
            return self._freeze(f"{self._root} holds none of the files of the vault")
        if not accept:
            with contextlib.suppress(VaultReadOnly):  # comparing does not need to write
                if self._writer.recover():
                    found = listing(self._files)
        known = self._ledger.notes.everything()
        first = not self._ledger.setting("compared")
        read = {entry.path: read for entry in to_read(known, found) if (read := self._reader.open(entry.path))}
        if copied := self._copies(known, found, read):
            found.sets_apart(copied, COPY_REASON)
            known = [one for one in known if one.path not in copied]
            read = {entry.path: read[entry.path] for entry in to_read(known, found) if entry.path in read}
        judgement = diff_vault(known, found, read, buried_ids=frozenset(self._ledger.tombstones.ids()), accept=accept)
        if judgement.comparison.frozen:
            return self._freeze(judgement.comparison.frozen)
        rescued: tuple[str, ...] = ()
        with contextlib.suppress(VaultReadOnly):
            rescued = self._files.sweep(tuple(found.leftovers))
        comparison = replace(judgement.comparison, rescued=rescued)
        with self._ledger.changing():
            for gone in judgement.buried:
                self._ledger.tombstones.bury(
                    gone.id, self._ledger.notes.titles_of(gone), gone.project, at=self._clock(), because="deleted"
                )
            self._ledger.notes.rewrite((*judgement.forgotten, *copied), judgement.seen, judgement.originals)
            if first:
                self._learn_from_the_trash()
                self._ledger.set("compared", "yes")
            for id in judgement.lifted:
                self._ledger.tombstones.lift(id)
            if accept and found.bare:
                self._ledger.forget_layout()
            if self._moved_away(comparison.renamed) or comparison.deleted or comparison.returned:
                self._ledger.set("unmended", "yes")
            self._ledger.problems.replace(comparison.problems)
            self._ledger.set("frozen", "")
        return comparison

    def _moved_away(self, renamed: Sequence[tuple[str, str]]) -> bool:
        """Record where broken links to renamed notes should lead. Obsidian updates them itself where it did the renaming."""
        moved = self._moved()
        for old, new in renamed:
            moved = {key: new if path == old else path for key, path in moved.items()}
            if (
                link_key(old) != link_key(new)
                and not self.link_resolves(link_key(old))
                and self._ledger.notes.named("link", link_key(old))
            ):
                moved[link_key(old)] = new
        if moved != self._moved():
            self._ledger.set("moved", json.dumps(moved))
        return bool(moved)

    def _moved(self) -> dict[str, str]:
        """Return the present paths of renamed notes, by the names that links still use."""
        return dict(json.loads(self._ledger.setting("moved") or "{}"))

    def _copies(
        self, known: Sequence[KnownFile], found: Listing, read: Mapping[str, tuple[Note | UnreadableNote, Stamp]]
    ) -> frozenset[str]:
        """Return files beside a note that are conflict copies by a sync tool, under a name that a person may give as well."""
        there = {entry.path for entry in found.entries}
        ids = {one.path: one.id for one in known if one.path in there}
        homes = {id: path for path, id in ids.items() if id}
        ids |= {path: note.id for path, (note, _) in read.items() if isinstance(note, Note)}

        def text_of(path: str) -> str:
            note = read[path][0] if path in read else self._reader.read(path)
            return note.body if isinstance(note, Note) else ""

        def is_copy(path: str, original: str) -> bool:
            both = path in ids and original in ids
            return both and is_copy_of(ids[path], ids[original], lambda: (text_of(path), text_of(original)))

        suspects = {*read, *(homes[ids[path]] for path in read if ids.get(path, "") in homes)}
        return frozenset(path for path in suspects if any(is_copy(path, each) for each in may_be_of(path, there)))

    def _learn_from_the_trash(self) -> None:
        """With a new ledger, record the notes in the vault's trash as deleted."""
        for path in trashed_notes(self._files):
            read = self._reader.open(path)
            self._reader.forget(path)
            if read is not None and isinstance(note := read[0], Note) and note.id and self._ledger.notes.by_id(note.id) is None:
                titles = (note.title, *note.aliases)
                self._ledger.tombstones.bury(note.id, titles, note.project, at=self._clock(), because="in the trash")

    def _freeze(self, reason: str) -> Comparison:
        if self.frozen != reason:
            self._ledger.set("frozen", reason)
        return Comparison(frozen=reason)

    def missing(self, reason: str) -> VaultMissing:
        return VaultMissing(
            f"the vault at {self._root} is not complete: {reason}",
            hint=f"mount its disk or bring the notes back; if you deleted them, run `{ACCEPT_COMMAND}`",
        )

    def must_be_there(self) -> None:
        if not self._files.is_there():
            raise no_vault(self._root) if self._ledger.is_empty() else self.missing("the folder is not there")
        if not self._looks_there(None):
            raise self.missing(f"{self._root} holds nothing of it")

    def _looks_there(self, found: Listing | None) -> bool:
        """Return whether the vault holds any trace of what we know; without one it is a mount point without its disk."""
        if found is not None and found.marked:
            return True
        if self._files.exists(".obsidian"):
            return True
        landmarks = self._ledger.landmarks()
        return not landmarks or any(map(self._files.exists, landmarks))

    def _misses_many(self) -> bool:
        """Return whether a sample of notes lacks so many that all should be looked for before the next write.

        Otherwise an unfinished sync, or a disk unmounted since the last comparison, would be written into as if nothing were
        missing.
        """
        sample = self._ledger.notes.sample(_SAMPLE)
        return missing_some(len(sample), self._files.count_missing(sample))

    @contextlib.contextmanager
    def writing(self) -> Iterator[Writer]:
        with self._lock.held() as outermost:
            if outermost:
                if (self.frozen or self._misses_many()) and (frozen := self._compare(accept=False).frozen):
                    raise self.missing(frozen)
                self.must_be_there()
                self._writer.recover()
            yield self._writer

    def refresh_path(self, id: str) -> None:
        """Compare the vault where a note is no longer at its path."""
        if (known := self._ledger.notes.by_id(id)) is not None:
            self.follow_path(known.path)

    def follow_path(self, path: str) -> None:
        with self._lock.held():
            if not self._files.exists(path) and (frozen := self._compare(accept=False).frozen):
                raise self.missing(frozen)

    def link_resolves(self, target: str) -> bool:
        """Return whether a link leads to a note."""
        if "/" in target:
            return self._ledger.notes.at(target if target.endswith(".md") else f"{target}.md") is not None
        return self._ledger.notes.by_stem(link_key(target)) is not None

    def mend_links(self) -> list[str]:
        """Point links to a renamed note to its new name, and turn those to a deleted one into plain text.

        Bodies that people edited stay. Returns the notes changed.
        """
        with self.writing() as writer:
            moved = self._moved()
            changed = sorted(
                {path for key in self._ledger.links.broken_targets() for path in writer.relink(key, moved.get(key, ""))}
            )
            self._ledger.set("moved", "")
            self._ledger.set("unmended", "")
            return changed
