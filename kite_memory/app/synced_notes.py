"""The vault's notes, exchanged with a person's other machines: local changes are noticed, those of others are carried out."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kite_memory.errors import KiteError
from kite_memory.redaction import redact
from kite_memory.sync.rows import (
    MOST_TITLES,
    NO_PATH,
    PATH_KEY,
    Gone,
    Malformed,
    NoteRow,
    NoteVersion,
    changed,
    copy_path,
    merge,
    note_path,
    renamed,
)
from kite_memory.sync.state import HeldNote, SyncState
from kite_memory.text import lazy_regex
from kite_memory.vault import Vault
from kite_memory.vault.consolidation import is_day
from kite_memory.vault.made_pages import Grave, NewFile, SharedFile, content_digest


@dataclass(slots=True, kw_only=True)
class AppliedVersions:
    """Result of applying the other machines' notes: paths and counts. What is ``left`` could not be written and is tried again."""

    written: set[str] = field(default_factory=set)
    renamed: int = 0
    gone: int = 0
    copies: list[str] = field(default_factory=list)
    trashed: list[str] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    left: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """A note that stays here: in which line a secret seems to be, and of which kind; empty for invisible characters."""

    path: str
    line: int
    kind: str


class SyncedNotes:
    """For callers that hold the vault's locks: see `Vault.undisturbed`."""

    def __init__(self, *, vault: Vault, state: SyncState, clock: Callable[[], datetime]) -> None:
        self._vault = vault
        self._files = vault.shared
        self._state = state
        self._clock = clock

    def notice(self) -> None:
        """Record what has changed in the vault since the last time, as changes made on this machine."""
        files, listing = self._files.listed()
        held = self._state.notes()
        seen: set[str] = set()
        with self._state.changing():
            for file in files:
                key = file.id or PATH_KEY + _composed(file.path)
                seen.add(key)
                before = held.get(key)
                if before is None or before.version.gone or _mark(before) != (file.path, file.size, file.mtime_ns):
                    self._notice_file(file, key, before)
            for key, before in held.items():
                if key in seen or before.version.gone:
                    continue
                if self._files.grave(key) is not None or not listing.hides(before.here):
                    self._notice_absence(before.version)
            for id in self._files.graves():
                if id not in held and id not in seen and not id.startswith(PATH_KEY):
                    self._notice_absence(_unknown(id, NO_PATH, 0.0))

    def _notice_file(self, file: SharedFile, key: str, before: HeldNote | None) -> None:
        if (text := self._files.text(file.path)) is None:
            return
        digest, at, path = content_digest(text), max(file.mtime_ns / 1e9, 0.0), _composed(file.path)
        ours = bool(file.id) and self._files.is_ours(file.id, text)
        if before is None:
            version = self._changed(_unknown(key, path, at), at, digest)
        else:
            version = before.version
            if version.gone:
                version = renamed(version, path, self._clock().timestamp())
            if version.digest != digest:
                version = self._changed(version, at, digest)
            if _composed(before.here) != path and not before.version.gone:
                version = renamed(version, path, self._clock().timestamp())
        version = replace(version, ours=ours, titles=(), project=file.project)
        same = before is not None and before.sent and replace(version, ours=before.version.ours) == before.version
        sent = same or is_made(version)
        self._state.keep(HeldNote(version=version, here=file.path, size=file.size, mtime_ns=file.mtime_ns, sent=sent))

    def _notice_absence(self, before: NoteVersion) -> None:
        grave = self._files.grave(before.key)
        gone: Gone = "removed" if grave is None else "forgotten"
        asked = grave is not None and grave.asked
        version = self._changed(before, self._clock().timestamp(), "", gone=gone, asked=asked)
        if is_made(version):
            self._state.keep(HeldNote(version=version, here="", sent=True))
            return
        by_path = version.key.startswith(PATH_KEY)  # the key has the path anyway
        if grave is not None:
            version = replace(version, project=grave.project, titles=grave.titles[:MOST_TITLES], ours=False)
        if not by_path and (grave is not None or not _may_travel(version.path)):
            version = replace(version, path=NO_PATH, path_at=0.0)  # never chosen over a name
        unknown = by_path and not _may_travel(version.path)  # to the others
        self._state.keep(HeldNote(version=version, here="", sent=unknown))

    def _changed(self, version: NoteVersion, at: float, digest: str, *, gone: Gone = "", asked: bool = False) -> NoteVersion:
        count = int(self._state.setting("count") or 0) + 1
        self._state.set("count", str(count))
        return changed(version, machine=self._state.machine, count=count, at=at, digest=digest, gone=gone, asked=asked)

    def apply(self, rows: Sequence[NoteRow], changes: AppliedVersions) -> None:
        """Carry out what another machine says of these notes, in order. Doing so twice has the effect of once.

        New notes that follow each other are written together: waiting for the disk would take most of the time.
        """
        new: dict[str, NoteRow] = {}
        for row in rows:
            fresh = row.version.key not in new and self._is_new(row)
            if not fresh or len(new) == _PUT_AT_ONCE:
                self._put(list(new.values()), changes)
                new.clear()
            if fresh:
                new[row.version.key] = row
            else:
                self._apply(row, changes)
        self._put(list(new.values()), changes)

    def _is_new(self, row: NoteRow) -> bool:
        version = row.version
        if version.gone or self._state.note(version.key) is not None:
            return False
        return not version.key.startswith(PATH_KEY) or self._files.text(version.path) is None

    def _put(self, rows: Sequence[NoteRow], changes: AppliedVersions) -> None:
        files = [
            NewFile(path=version.path, text=row.text, id=_id(version), ours=version.ours)
            for row in rows
            for version in [row.version]
        ]
        placed = self._files.put_all(files) if files else []
        with self._state.changing():
            for row, here in zip(rows, placed, strict=True):
                if here:
                    size, mtime_ns = self._files.stamp(here)
                    self._state.keep(HeldNote(version=row.version, here=here, size=size, mtime_ns=mtime_ns, sent=True))
                    changes.written.add(here)
        for row, here in zip(rows, placed, strict=True):
            if not here:
                self._apply(row, changes)

    def _apply(self, row: NoteRow, changes: AppliedVersions) -> None:
        for _ in range(_ATTEMPTS):
            if self._try(row, changes):
                return
        changes.left.append(f"{row.version.path}: it is being changed, or may not be written")

    def _try(self, row: NoteRow, changes: AppliedVersions) -> bool:
        """Return whether the version, or that it cannot be had, is settled; if not, the file has just been changed here."""
        there = row.version
        before = self._state.note(there.key)
        if there.gone and before is not None and is_made(before.version):
            return True
        merged = merge(before.version, there) if before is not None else None
        if merged is not None and merged.beside is not None and is_made(merged.beside):
            merged = replace(merged, beside=None)
        version = there if merged is None else merged.version
        try:
            if before is not None and version == before.version:
                if merged is not None and merged.beside is not None:
                    self._keep_beside(merged.beside, row.text, changes)
                return True
            if merged is not None and merged.beside is not None:
                lost = self._files.text(before.here) if before is not None and merged.beside is before.version else row.text
                self._keep_beside(merged.beside, lost or "", changes)
            here = self._carry_out(version, row.text, before, changes)
        except (KiteError, OSError) as error:
            changes.left.append(f"{there.path}: {error}")
            return True
        if here is None:
            self._notice_again(before)
            return False
        size, mtime_ns = self._files.stamp(here) if here else (-1, -1)
        with self._state.changing():
            self._state.keep(HeldNote(version=version, here=here, size=size, mtime_ns=mtime_ns, sent=version == there))
        return True

    def _notice_again(self, before: HeldNote | None) -> None:
        """Record what a file holds that was changed since `notice`."""
        if before is not None:
            id = _id(before.version)
            size, mtime_ns = self._files.stamp(before.here)
            file = SharedFile(path=before.here, id=id, project=before.version.project, size=size, mtime_ns=mtime_ns)
            with self._state.changing():
                self._notice_file(file, before.version.key, before)

    def _carry_out(self, version: NoteVersion, text: str, before: HeldNote | None, changes: AppliedVersions) -> str | None:
        """Make the vault hold the version; return its file's path, empty if it is gone, ``None`` if that cannot be done now."""
        here = before.here if before is not None else ""
        if version.gone:
            self._remove(version, before, changes)
            return ""
        id = _id(version)
        if before is None or before.version.gone:
            if not id and self._files.text(version.path) == text:  # written before a crash
                return version.path
            here = self._files.put(version.path, text, id=id, ours=version.ours)
            changes.written.add(here)
            return here
        if version.digest != before.version.digest:
            if not self._files.replace(here, text, expected=before.version.digest, id=id, ours=version.ours):
                return None
            changes.written.add(here)
        if version.path != before.version.path and _composed(here) != version.path:
            moved = self._files.move(here, version.path)
            changes.renamed += 1
            changes.touched |= {here, moved}
            changes.written -= {here}
            here = moved
        return here

    def _remove(self, version: NoteVersion, before: HeldNote | None, changes: AppliedVersions) -> None:
        there = before is not None and not before.version.gone
        if there and before is not None:
            if not before.sent:
                changes.trashed.append(before.here)
            changes.touched |= {before.here, *self._files.forget(before.here, bury=version.gone == "forgotten")}
            changes.gone += 1
        if version.gone == "forgotten" and not version.key.startswith(PATH_KEY):
            self._files.bury(version.key, Grave(project=version.project, titles=version.titles))

    def _keep_beside(self, lost: NoteVersion, text: str, changes: AppliedVersions) -> None:
        """Write the content that was not chosen to a file of its own, unless that was done before."""
        path = copy_path(lost)
        if self._state.note(PATH_KEY + path) is not None or self._files.text(path) is not None:
            return
        kept = self._files.put(path, text, id="", ours=False)
        changes.copies.append(kept)
        size, mtime_ns = self._files.stamp(kept)
        file = SharedFile(path=kept, id="", project="", size=size, mtime_ns=mtime_ns)
        with self._state.changing():
            self._notice_file(file, PATH_KEY + _composed(kept), None)

    def unsent(self, *, encrypted: bool, held_back: list[HeldBack], odd_names: list[str]) -> tuple[int, int]:
        """Return how many notes, and how many that are gone, `rows` would yield. Records nothing."""
        with self._state.trying():
            self.notice()
            counts = Counter(
                bool(row.version.gone) for row in self.rows(encrypted=encrypted, held_back=held_back, odd_names=odd_names)
            )
        return counts[False], counts[True]

    def rows(self, *, encrypted: bool, held_back: list[HeldBack], odd_names: list[str]) -> Iterator[NoteRow]:
        """Yield what the others do not know yet, what is gone first.

        A note in which there seems to be a secret stays here, unless everything is encrypted; so does one whose name not every
        system allows.
        """
        waiting = self._state.to_send()
        for held in sorted(waiting, key=lambda each: (not each.version.gone, each.version.key)):
            if is_made(held.version):
                self._state.mark_sent([held.version.key])
                continue
            if held.version.gone:
                yield NoteRow(version=held.version, text="")
                continue
            if not _may_travel(held.version.path):
                odd_names.append(held.here)
                continue
            text = self._files.text(held.here)
            if text is None or content_digest(text) != held.version.digest:
                continue  # changed meanwhile: the next time
            if not encrypted and (redacted := redact(text)) != text:
                held_back.append(_held_back(held.here, text, redacted))
                continue
            yield NoteRow(version=held.version, text=text)


_ATTEMPTS = 3
_PUT_AT_ONCE = 500


def _unknown(key: str, path: str, at: float) -> NoteVersion:
    """Return what there was before the first version."""
    return NoteVersion(key=key, path=path, path_at=at, digest="", clock={}, at=0.0, by="")


def _held_back(path: str, text: str, redacted: str) -> HeldBack:
    pairs = enumerate(zip(text.split("\n"), redacted.split("\n"), strict=False), 1)
    line, changed = next(((number, now) for number, (was, now) in pairs if was != now), (1, ""))
    mark = _MARK.search(changed)
    return HeldBack(path=path, line=line, kind=mark[1] if mark else "")


_MARK = lazy_regex(r"\[redacted:([^\]\n]{1,60})\]")


def _id(version: NoteVersion) -> str:
    """Return the note's id; empty for a file without one."""
    return "" if version.key.startswith(PATH_KEY) else version.key


def is_made(version: NoteVersion) -> bool:
    """Return whether this is, or was, the journal's page of a day as we wrote it: each machine makes its own, in its time zone."""
    return version.ours and is_day(version.key, version.path)


def _may_travel(path: str) -> bool:
    """Return whether the other machines accept a note of this name."""
    try:
        note_path(path)
    except Malformed:
        return False
    return True


def _mark(held: HeldNote) -> tuple[str, int, int]:
    return held.here, held.size, held.mtime_ns


def _composed(path: str) -> str:
    """Return a path with its characters composed in one way: some file systems decompose them."""
    return unicodedata.normalize("NFC", path)
