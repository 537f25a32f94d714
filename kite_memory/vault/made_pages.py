"""Files at the vault's top and beside its notes: a new vault's layout, generated pages, and files exchanged with other machines."""

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

from kite_memory.errors import KiteError, VaultFolderWrong
from kite_memory.system.private_files import WriterLock
from kite_memory.vault.files import CannotRead, Files, Filled, stamp_of
from kite_memory.vault.folders import OutsideVault
from kite_memory.vault.ledger import FORGOTTEN, Ledger
from kite_memory.vault.listing import COPY_REASON, GENERATED, Listing, leftovers, listing
from kite_memory.vault.notefile import body_of
from kite_memory.vault.scanning import Scanner
from kite_memory.vault.wording import digest, stem_key, unique
from kite_memory.vault.writing import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFile:
    """A markdown file of the vault. ``id`` is empty for a file without one, or for a copy of a note."""

    path: str
    id: str
    project: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file to be written. ``ours``: the body of the note with this ``id`` counts as written by us."""

    path: str
    text: str
    id: str
    ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Grave:
    """A note that its owner has deleted: ``titles`` are the digests of titles that are not to be made again.

    ``asked`` is whether its owner asked to forget it; else its file is gone, or in the trash.
    """

    project: str
    titles: tuple[str, ...]
    asked: bool = False


class SharedFiles:
    """For callers that hold the vault's locks: see `Vault.undisturbed`."""

    def __init__(self, files: Files, ledger: Ledger, scanner: Scanner, clock: Callable[[], datetime]) -> None:
        self._files = files
        self._ledger = ledger
        self._scanner = scanner
        self._clock = clock

    def listed(self) -> tuple[list[SharedFile], Listing]:
        """Return every markdown file, conflict copies included, as of the last comparison; and the listing, for `Listing.hides`."""
        found = listing(self._files)
        known = {one.path: one for one in self._ledger.notes.everything()}
        shared: list[SharedFile] = []
        for entry in found.entries:
            one = known.get(entry.path)
            named = one is not None and not one.duplicate
            shared.append(
                SharedFile(
                    path=entry.path,
                    id=one.id if one is not None and named else "",
                    project=one.project if one is not None else "",
                    size=entry.size,
                    mtime_ns=entry.mtime_ns,
                )
            )
        for path in dict.fromkeys(problem.file for problem in found.problems if problem.reason == COPY_REASON):
            with contextlib.suppress(OSError, CannotRead, OutsideVault):
                stamp = self._files.read(path).stamp
                shared.append(SharedFile(path=path, id="", project="", size=stamp.size, mtime_ns=stamp.mtime_ns))
        return shared, found

    def text(self, path: str) -> str | None:
        """Return a file's text; ``None`` where it is gone, cannot be read, or is not text."""
        try:
            return self._files.read(path).data.decode()
        except (OSError, CannotRead, OutsideVault, UnicodeDecodeError):
            return None

    def stamp(self, path: str) -> tuple[int, int]:
        """Return size and modification time of a file; -1 for a missing one."""
        try:
            found = stamp_of(self._files.root.joinpath(path).lstat())
        except OSError:
            return -1, -1
        return found.size, found.mtime_ns

    def is_ours(self, id: str, text: str) -> bool:
        return self._ledger.bodies.is_ours(id, digest(body_of(text)))

    def graves(self) -> list[str]:
        """Return the ids of all deleted notes."""
        return self._ledger.tombstones.ids()

    def grave(self, id: str) -> Grave | None:
        """Return what is recorded of a deleted note; ``None`` for any other."""
        if not self._ledger.tombstones.is_buried(id):
            return None
        titles = self._ledger.tombstones.titles(id)
        asked = self._ledger.tombstones.because(id) == FORGOTTEN
        return Grave(project=titles[0][1] if titles else "", titles=tuple(title for title, _ in titles), asked=asked)

    def bury(self, id: str, grave: Grave) -> None:
        """Record that a note was deleted on another machine."""
        self._ledger.tombstones.bury_hidden(id, grave.titles, grave.project, at=self._clock(), because="forgotten elsewhere")

    def put(self, path: str, text: str, *, id: str, ours: bool) -> str:
        """Write a new file, under another name if this one is taken; return its path."""
        if ours:
            self._ledger.bodies.wrote(id, digest(body_of(text)))
        filled = self._files.fill(path, text.encode())
        try:
            return self._free(path, lambda free: self._files.publish(filled.renamed(free)))
        except BaseException:
            self._files.discard(filled.temporary)
            raise

    def put_all(self, files: Sequence[NewFile]) -> list[str]:
        """Write new files as `put` does, with one wait for the disk; return their paths, empty for what could not be written."""
        with self._ledger.changing():
            for each in files:
                if each.ours:
                    self._ledger.bodies.wrote(each.id, digest(body_of(each.text)))
        filled = self._files.fill_all([(each.path, each.text.encode()) for each in files])
        placed = [self._published(each, one) if one is not None else "" for each, one in zip(files, filled, strict=True)]
        self._files.sync_folders({path.rpartition("/")[0] for path in placed if path})
        return placed

    def _published(self, file: NewFile, filled: Filled) -> str:
        try:
            return self._free(file.path, lambda free: self._files.publish(filled.renamed(free), sync=False))
        except (KiteError, OSError):
            with contextlib.suppress(KiteError, OSError):  # what stays, the next comparison removes
                self._files.discard(filled.temporary)
            return ""

    def replace(self, path: str, text: str, *, expected: str, id: str, ours: bool) -> bool:
        """Replace a file whose digest is ``expected``. Returns ``False`` where it is another, or is write-protected."""
        if self._files.is_protected(path):
            return False
        if ours:
            self._ledger.bodies.wrote(id, digest(body_of(text)))
        return self._files.replace(path, text.encode(), expected=expected) is not None

    def move(self, path: str, new: str) -> str:
        """Rename a file, to another name if this one is taken; return its path. Raises `FileNotFoundError`."""
        return self._free(new, lambda free: self._files.rename(path, free))

    def forget(self, path: str, *, bury: bool) -> list[str]:
        """Move a file into the trash; with ``bury`` its note is never written again. Returns the notes that lost links to it."""
        known = self._ledger.notes.at(path)
        with contextlib.suppress(FileNotFoundError):
            if bury and known is not None:
                with self._scanner.writing() as writer:
                    return writer.forget(known)[1]
            self._files.to_trash(path)
        self._ledger.notes.drop(path)
        return []

    def _free(self, path: str, take: Callable[[str], None]) -> str:
        place, taken = PurePosixPath(path), set[str]()
        while True:
            stem = unique(place.stem, lambda key: key in taken)
            free = str(place.with_name(stem + place.suffix))
            if free.lower() not in GENERATED:
                with contextlib.suppress(FileExistsError):
                    take(free)
                    return free
            taken.add(stem_key(stem))


def content_digest(text: str) -> str:
    """Return the digest of a file's content, by which `SharedFiles.replace` compares it."""
    return digest(text)


def init_vault(template: Path, *, files: Files, ledger: Ledger, lock: WriterLock, scanner: Scanner) -> None:
    """Lay out the vault: folders, Home note, Obsidian's settings.

    Nothing is overwritten, nothing that was removed is restored, and existing Obsidian settings are left entirely alone.
    """
    with lock.held():
        if not files.is_there() and ledger.is_empty():
            files.make_root()
        scanner.must_be_there()
        if not ledger.setting("laid out"):
            ledger.set("laid out", "not .obsidian" if files.exists(".obsidian") else "all")
        theirs = ledger.setting("laid out") == "not .obsidian"
        for folder in (".obsidian", "templates"):
            files.sweep(leftovers(files, folder))
        wrong: VaultFolderWrong | None = None
        for source in sorted(path for path in template.rglob("*") if path.is_file()):
            path = source.relative_to(template).as_posix()
            if ledger.gave(path) or (theirs and path.startswith(".obsidian/")):
                continue
            try:
                _put(files, source, path)
            except VaultFolderWrong as error:
                wrong = error
                continue
            ledger.give(path)
        if wrong:
            raise wrong


def _put(files: Files, source: Path, path: str) -> None:
    if source.name == ".gitkeep":
        files.make_folder(path.rpartition("/")[0])
        return
    if files.exists(path):
        return
    filled = files.fill(path, source.read_bytes())
    try:
        files.publish(filled)
    except FileExistsError:
        files.discard(filled.temporary)


class MadePages:
    """The generated pages of one vault. ``writing`` holds the vault's lock."""

    def __init__(self, root: Path, files: Files, ledger: Ledger, writing: Callable[[], AbstractContextManager[Writer]]) -> None:
        self._root = root
        self._files = files
        self._ledger = ledger
        self._writing = writing

    def read(self, name: str) -> str:
        """Return the text of a generated page; empty for a missing one. Raises `KiteError` if it is not text."""
        try:
            return self._files.read(name).data.decode()
        except FileNotFoundError:
            return ""
        except (CannotRead, UnicodeDecodeError) as error:
            raise KiteError(
                f"{self._root / name} cannot be read: {error}", hint="repair it in an editor, or move it away"
            ) from error

    def put(self, name: str, text: str, *, before: str) -> bool:
        """Write a page, and return whether it was written: not where the page is no longer what it was ``before``."""
        if name.casefold() not in GENERATED:
            raise ValueError(name)
        with self._writing():
            if self._files.is_protected(name):
                raise KiteError(f"{self._root / name} is write-protected", hint="allow writing to it, or move it away")
            if before:
                return self._files.replace(name, text.encode(), expected=digest(before)) is not None
            filled = self._files.fill(name, text.encode())
            try:
                self._files.publish(filled)
            except FileExistsError:  # also an empty page
                self._files.discard(filled.temporary)
                return self._files.replace(name, text.encode(), expected=digest("")) is not None
            return True

    def drop(self, name: str, text: str) -> bool:
        """Move a page to the trash if its text is exactly ``text``; return whether it was moved."""
        if name.casefold() not in GENERATED:
            raise ValueError(name)
        with self._writing():
            if self.read(name) != text:
                return False
            self._files.to_trash(name)
            return True

    def noted(self, name: str) -> str:
        """Return what was kept under this name with `note_down`; empty where nothing was."""
        return self._ledger.setting(f"noted: {name}")

    def note_down(self, name: str, text: str) -> None:
        self._ledger.set(f"noted: {name}", text)
