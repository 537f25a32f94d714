"""Detect what people changed in the vault, and refuse to write to a vault that is missing or incomplete."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from kite_memory.errors import VaultMissing, VaultReadOnly
from kite_memory.model.note import Note
from kite_memory.system.locks import WriterLock
from kite_memory.vault.comparison import Comparison, judge, missing_some, to_read
from kite_memory.vault.files import Files, Stamp, no_vault
from kite_memory.vault.ledger import KnownFile, Ledger, link_key
from kite_memory.vault.listing import COPY_REASON, Listing, is_copy_of, listing, may_be_of, trashed_notes
from kite_memory.vault.notefile import UnreadableNote
from kite_memory.vault.reading import NoteReader
from kite_memory.vault.writing import Writer

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
        """Why nothing is written or concluded at the moment; empty when all is well."""
        return self._ledger.setting("frozen")

    @property
    def unmended(self) -> bool:
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
            return self._freeze(f"{self._root} holds nothing of the vault")
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
        judgement = judge(known, found, read, buried_ids=frozenset(self._ledger.tombstones.ids()), accept=accept)
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
            self._ledger.notes.set_problems(comparison.problems)
            self._ledger.set("frozen", "")
        return comparison

    def _moved_away(self, renamed: Sequence[tuple[str, str]]) -> bool:
        """Record where broken links to renamed notes should lead. Obsidian updates them itself where it did the renaming."""
        moved = self._moved()
        for old, new in renamed:
            moved = {key: new if path == old else path for key, path in moved.items()}
            if link_key(old) != link_key(new) and not self.leads(link_key(old)) and self._ledger.notes.named("link", link_key(old)):
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

    def follow(self, id: str) -> None:
        """Compare the vault where a note is no longer at its path."""
        if (known := self._ledger.notes.by_id(id)) is not None:
            self.follow_path(known.path)

    def follow_path(self, path: str) -> None:
        with self._lock.held():
            if not self._files.exists(path) and (frozen := self._compare(accept=False).frozen):
                raise self.missing(frozen)

    def leads(self, target: str) -> bool:
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
                {path for key in self._ledger.notes.broken_link_targets() for path in writer.relink(key, moved.get(key, ""))}
            )
            self._ledger.set("moved", "")
            self._ledger.set("unmended", "")
            return changed
