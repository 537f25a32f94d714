"""The vault's markdown files as they are exchanged with a person's other machines: listed, and written as they came."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

from kite_memory.vault.files import CannotRead, Files
from kite_memory.vault.folders import OutsideVault
from kite_memory.vault.ledger import Ledger
from kite_memory.vault.listing import COPY_REASON, GENERATED, Listing, listing
from kite_memory.vault.notefile import body_of
from kite_memory.vault.scanning import Scanner
from kite_memory.vault.wording import digest, stem_key, unique


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFile:
    """A markdown file of the vault. ``id`` is empty for a file without one, or for a copy of a note."""

    path: str
    id: str
    project: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grave:
    """A note that its owner has deleted: ``titles`` are the digests of titles that are not to be made again."""

    project: str
    titles: tuple[str, ...]


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
            named = one is not None and not one.twin
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
        """Return size and modification time of a file; -1 where none exists."""
        try:
            found = self._files.root.joinpath(path).lstat()
        except OSError:
            return -1, -1
        return found.st_size, found.st_mtime_ns

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
        return Grave(project=titles[0][1] if titles else "", titles=tuple(title for title, _ in titles))

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
