"""Notes with a key: one for each key in each place.

The note holds the newest version, and the ledger the earlier ones.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from kite_memory.errors import KiteError
from kite_memory.model.note import Note, NoteKind, NoteStatus, Origin
from kite_memory.vault.drafting import applies_everywhere
from kite_memory.vault.files import Files
from kite_memory.vault.ledger import Keyed, KeyPlace, KnownFile, Ledger, Wording
from kite_memory.vault.notefile import FOLDERS, moment, with_body, with_properties
from kite_memory.vault.scanning import NoteReader, Scanner
from kite_memory.vault.wording import note_id, note_stem
from kite_memory.vault.writing import AlreadyWritten, Amended, LeftAlone, Skipped, Writer, Written

_NO_TIME = datetime.fromtimestamp(0, UTC)
_PAGE = 250
_ATTEMPTS = 10
_FIRST_PAGE = 60
"""Most callers need no more."""


class KeyConflict(KiteError):
    """Raised when the note of a key has changed since the writer read it. ``version`` is the present one; 0 for none."""

    def __init__(self, message: str, *, version: int, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.version = version


class _EditedMeanwhile(Exception):
    """Raised when the owner has saved a note between our reading it and our writing to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writing:
    """What to write under a key; ``body`` makes the text of the present one."""

    body: Callable[[str], str]
    kind: NoteKind
    tags: tuple[str, ...]
    origin: Origin
    by: str
    expires: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedNote:
    """A note with a key, as it is now.

    ``by`` wrote its present text; empty where that is not known, as for a person in an editor.

    ``is_new``: nothing had the key before.
    """

    note: Note
    version: int
    by: str
    is_new: bool = False


class KeyedNotes:
    """The notes of a vault that have keys. Thread-safe, as `Vault` is."""

    def __init__(self, files: Files, ledger: Ledger, reader: NoteReader, scanner: Scanner, clock: Callable[[], datetime]) -> None:
        self._files = files
        self._ledger = ledger
        self._reader = reader
        self._scanner = scanner
        self._clock = clock

    def find(self, place: KeyPlace) -> KeyedNote | None:
        """Return the note of a key as it is now; ``None`` once it has expired."""
        known = self._known(place)
        kept = self._read(known) if known is not None else None
        return kept if kept is not None and KeyPlace.of(kept.note) == place and not kept.note.has_expired(self._clock()) else None

    def at(self, wanted: Sequence[Keyed]) -> list[KeyedNote | None]:
        """Return the notes of these ledger rows; ``None`` for each whose file holds something else by now."""
        last = self._ledger.keys.last_wordings([keyed.known.id or keyed.known.path for keyed in wanted])
        return [self._still(keyed, last.get(keyed.known.id or keyed.known.path)) for keyed in wanted]

    def _still(self, keyed: Keyed, last: Wording | None) -> KeyedNote | None:
        note = self._reader.read_again(keyed.known)
        if note is not None and last is not None and last.body == note.body and note.id == keyed.known.id:
            kept: KeyedNote | None = KeyedNote(note=note, version=last.version, by=last.by)
        else:
            kept = self._read(keyed.known)
        if kept is None or kept.note.has_expired(self._clock()):
            return None
        return kept if KeyPlace.of(kept.note) == keyed.place else None

    def called(self, key: str) -> list[Keyed]:
        """Return all that have this key, in any place, as of the last comparison."""
        return self._ledger.keys.called(key)

    def listed(self, prefix: str = "") -> Iterator[Keyed]:
        """Yield all whose keys begin with ``prefix``, in the order of keys, as of the last comparison."""
        after = ("", "")
        many = _FIRST_PAGE
        while page := self._ledger.keys.page(prefix, after=after, limit=many):
            yield from page
            after = (page[-1].place.key, page[-1].known.path)
            if len(page) < many:
                return
            many = _PAGE

    def newest(self, prefix: str, *, project: str, session: str) -> Iterator[Keyed]:
        """Yield those whose keys begin with ``prefix``, newest file first.

        Of this project or none, and of this session or none.
        """
        before = None
        while page := self._ledger.keys.newest(prefix, project=project, session=session, before=before, limit=_FIRST_PAGE):
            yield from page
            before = (page[-1].known.mtime_ns, page[-1].known.path)
            if len(page) < _FIRST_PAGE:
                return

    def count(self) -> int:
        return self._ledger.keys.count(self._clock())

    def versions(self, note: Note) -> list[Wording]:
        """Return the versions of a keyed note, newest first. Old ones may have been removed, and none that has expired is given."""
        if note.has_expired(self._clock()):
            return []
        over = self._ledger.keys.over(KeyPlace.of(note))
        return [each for each in self.history(note) if each.version > over]

    def history(self, note: Note) -> list[Wording]:
        """Return all versions for its owner, also those from before it expired and was written anew."""
        return self._ledger.keys.wordings(note.id or note.path)

    def write(
        self,
        place: KeyPlace,
        body: Callable[[str], str],
        *,
        kind: NoteKind = NoteKind.FACT,
        tags: Sequence[str] = (),
        origin: Origin = "assistant",
        by: str = "",
        expires: datetime | None = None,
        expected: int | None = None,
        overrule: bool = False,
    ) -> KeyedNote:
        """Write ``body`` (made of the present text) as the text of a key; it is on disk when this returns.

        With ``expected`` only over that version, 0 being none. Without, it replaces any text but one that the owner has typed,
        unless ``overrule`` is set: replaced texts are kept as versions, but an owner would not look for theirs there. Raises
        `KeyConflict`.
        """
        writing = _Writing(body=body, kind=kind, tags=tuple(tags), origin=origin, by=by, expires=expires)
        with self._scanner.writing() as writer:
            for _ in range(_ATTEMPTS):
                with contextlib.suppress(_EditedMeanwhile):
                    return self._write(writer, place, writing, expected=expected, overrule=overrule)
        raise KiteError(f"the note of {place.key!r} is being changed", hint="try again in a moment")

    def _write(self, writer: Writer, place: KeyPlace, writing: _Writing, *, expected: int | None, overrule: bool) -> KeyedNote:
        known = self._known(place)
        before = self._read(known) if known is not None else None
        if before is not None and KeyPlace.of(before.note) != place:  # its owner has just given it another key
            known = before = None
        present = before if before is not None and not before.note.has_expired(self._clock()) else None
        version = present.version if present else 0
        if expected is not None and expected != version:
            there = f"is at version {version}" if version else "is not there"
            raise KeyConflict(f"{place.key!r} {there}", version=version, hint="read it again, and write over what it says now")
        if present and expected is None and not overrule and not self._is_ours(writer, present.note):
            raise KeyConflict(
                f"{place.key!r} was edited by its owner",
                version=version,
                hint=f"read it, and write with expected_version {version} if it shall be replaced",
            )
        if known is None or before is None:
            if known is not None:
                raise KiteError(f"{known.path} cannot be read", hint="repair it in an editor, and try again")
            return replace(self._created(writer, place, writing), is_new=True)
        if present is None:
            self._ledger.keys.begin_anew(before.note.id or before.note.path, place)
        return replace(self._changed(writer, known, writing, anew=present is None, seen=before.note), is_new=present is None)

    def _known(self, place: KeyPlace) -> KnownFile | None:
        found = self._ledger.keys.keyed(place)
        if not found:
            return None
        if not self._files.exists(found[0].path):  # moved, or deleted
            self._scanner.follow_path(found[0].path)
            found = self._ledger.keys.keyed(place)
        return found[0] if found else None

    def _read(self, known: KnownFile) -> KeyedNote | None:
        """Read a note with its version. A body that was not recorded yet is recorded as a new version."""
        read = self._reader.read_as_known(known.path)
        if read is None or not read[0].key:
            return None
        note = read[0]
        last = self._ledger.keys.wording(note.id or note.path)
        if last is None or last.body != note.body:
            with (
                contextlib.suppress(KiteError),
                self._scanner.writing(),
            ):  # if it cannot be recorded now, it is the next time
                again = self._reader.read_as_known(known.path)
                if again is not None:
                    note, stamp = again
                    self._ledger.notes.see(note, stamp, id=note.id)
            now = self._ledger.keys.wording(note.id or note.path)
            if now is None or now.body != note.body:
                return KeyedNote(note=note, version=(last.version if last else 0) + 1, by="")
            last = now
        return KeyedNote(note=note, version=last.version, by=last.by)

    def _is_ours(self, writer: Writer, note: Note) -> bool:
        try:
            return writer.is_ours(note.id, self._reader.text(note.path))
        except KiteError:
            return False

    def _created(self, writer: Writer, place: KeyPlace, writing: _Writing) -> KeyedNote:
        at = self._clock()
        seed = "kept", place.digest, str(self._ledger.keys.last_version(place))
        id = note_id(_NO_TIME, *seed)  # the same on every machine, so that sync merges them
        if self._ledger.notes.by_id(id) is not None:  # its owner has given that note another key
            id = note_id(at, *seed)
        note = Note(
            id=id,
            path=f"{FOLDERS[writing.kind]}/{note_stem(place.key, at)}.md",
            kind=writing.kind,
            title=place.key,
            body=writing.body(""),
            created=at,
            updated=at,
            tags=writing.tags,
            scope=place.scope,
            project=place.project,
            session=place.session,
            key=place.key,
            expires=writing.expires,
            status=_status(place, writing.origin),
            origin=writing.origin,
        )
        self._ledger.tombstones.lift(note.id)
        if self._ledger.tombstones.is_title_buried(note.title, note.project):
            self._ledger.tombstones.lift_title(note.title, note.project)
        created = writer.create(note, by=writing.by)
        if isinstance(created, Skipped):
            raise AssertionError(f"a new note was refused: {created.because}")
        return self._written(created)

    def _changed(self, writer: Writer, known: KnownFile, writing: _Writing, *, anew: bool, seen: Note) -> KeyedNote:
        origin, expires = writing.origin, writing.expires

        def rewritten(text: str, old: Note) -> str | None:
            if (old.key, old.body) != (seen.key, seen.body):
                raise _EditedMeanwhile
            changes: dict[str, object] = {}
            if writing.tags != old.tags:
                changes["tags"] = list(writing.tags)
            if expires != old.expires:
                changes["expires"] = moment(expires) if expires else ""
            new = writer.leading_somewhere(writing.body(old.body))
            if anew:
                changes |= {"created": moment(self._clock()), "status": _status(KeyPlace.of(old), origin).value}
            elif new != old.body and (old.status, origin == "user") in _CHANGED:
                changes["status"] = _status(KeyPlace.of(old), origin).value
            if (anew or new != old.body) and origin != old.origin:
                changes["origin"] = origin
            changed = with_properties(text, changes) if changes else text
            if changed is None or new == old.body:
                return changed
            return with_body(changed, f"{new}\n")

        outcome = writer.edit(known, rewritten, by=writing.by, ours=True)
        if isinstance(outcome, LeftAlone):
            raise KiteError(f"{known.path} cannot be changed: {outcome.because}", hint="repair it in an editor, and try again")
        return self._written(outcome)

    def _written(self, outcome: Written | Amended | AlreadyWritten) -> KeyedNote:
        """Return what was just written; for what was there already, what is there now."""
        if not isinstance(outcome, AlreadyWritten):
            note = outcome.note if outcome.note.id else replace(outcome.note, id=outcome.id)
            last = self._ledger.keys.wording(note.id or note.path)
            if last is not None and last.body == note.body:
                return KeyedNote(note=note, version=last.version, by=last.by)
        known = self._ledger.notes.at(outcome.path)
        kept = self._read(known) if known is not None else None
        if kept is None:
            raise KiteError(f"{outcome.path} is gone", hint="it has just been moved or deleted")
        return kept


_CHANGED = ((NoteStatus.ACCEPTED, False), (NoteStatus.PROPOSED, True))
"""Notes judged anew when changed: accepted ones written by an agent, and proposed ones written by the person."""


def _status(place: KeyPlace, origin: Origin) -> NoteStatus:
    """Return the status of a keyed note: one that applies everywhere is proposed, unless the person wrote it.

    Reading it by its key returns it in any case.
    """
    waits = applies_everywhere(place.scope, place.project) and origin != "user"
    return NoteStatus.PROPOSED if waits else NoteStatus.ACCEPTED
