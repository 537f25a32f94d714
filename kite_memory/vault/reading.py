"""Read files of the vault as notes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from kite_memory.errors import NoteNotFound
from kite_memory.model.note import Note
from kite_memory.model.read_result import Problem
from kite_memory.vault.files import CannotRead, Content, Files, Stamp
from kite_memory.vault.folders import OutsideVault
from kite_memory.vault.ledger import KnownFile
from kite_memory.vault.ledger.notes import NoteRows
from kite_memory.vault.notefile import UnreadableNote, parse


class NoteReader:
    """Reads notes with the ids that the ledger has for them, and records which could not be read."""

    def __init__(self, files: Files, notes: NoteRows) -> None:
        self._files = files
        self._notes = notes
        self._unread: dict[str, str] = {}

    def why_unread(self, path: str) -> str:
        """Return why a file could not be read; empty where it could be read, or was not tried."""
        return self._unread.get(path, "")

    def forget(self, path: str) -> None:
        """Drop what is recorded of a file that is gone or no note: that it could not be read is no problem."""
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
        if known is not None and known.twin and note.id == known.id:
            note = replace(note, id="")
        elif not note.id and known is not None and not known.twin:
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
        """Read and parse a file; ``None`` where none exists.

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
        found = {(problem.file, problem.reason) for problem in self._notes.problems()} | set(self._unread.copy().items())
        return [Problem(file=path, position=0, reason=reason) for path, reason in sorted(found)]
