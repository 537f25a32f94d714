"""The vault: a folder of markdown notes that its owner and this program both write to. On a conflict the owner's text wins."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import assert_never

from kite_memory.errors import KiteError, NoteNotFound
from kite_memory.model.event import Problem
from kite_memory.model.note import (
    Action,
    Amend,
    Contest,
    Create,
    Entry,
    Note,
    NoteKind,
    NoteStatus,
    Origin,
    Ruling,
    Scope,
    Skip,
    Supersede,
    Surround,
    Surroundings,
)
from kite_memory.system.private_files import WriterLock
from kite_memory.vault import lifecycle, links, planning, upkeep
from kite_memory.vault.drafting import Draft, remembered
from kite_memory.vault.files import CannotRead, Files
from kite_memory.vault.folders import OutsideVault
from kite_memory.vault.keyed_notes import KeyedNotes
from kite_memory.vault.known import KnownNotes, around_each, around_written, as_text, find_note, gather, inside, is_handle, restated
from kite_memory.vault.ledger import KnownFile, Ledger, link_key
from kite_memory.vault.lifecycle import Rulings
from kite_memory.vault.listing import (
    COPY_REASON,
    listing,
)
from kite_memory.vault.made_pages import MadePages, SharedFiles, init_vault
from kite_memory.vault.notefile import FOLDERS
from kite_memory.vault.scanning import Comparison, NoteReader, Scanner
from kite_memory.vault.wording import body_key
from kite_memory.vault.writing import Amended, LeftAlone, Outcome, Skipped, Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Result of `Vault.forget`.

    ``trashed`` is where the note is now; empty if it was gone already. ``relinked`` are notes that no longer link to it,
    ``linked_from`` those that still do, since a person has edited them.
    """

    id: str
    path: str
    trashed: str
    relinked: tuple[str, ...] = ()
    linked_from: tuple[str, ...] = ()


def _now() -> datetime:
    return datetime.now(UTC)


class Vault:
    """Reader and writer of one vault.

    Reading never changes a file. Writers raise `VaultMissing` while the vault is not where it should be, or while so much of it is
    missing that nothing may be concluded; `VaultReadOnly` where the disk refuses. What was done before the error stays done.

    Thread-safe, and safe beside other processes with the same ledger.
    """

    def __init__(
        self,
        root: Path,
        ledger_path: Path,
        *,
        files: Files | None = None,
        clock: Callable[[], datetime] = _now,
        step: Callable[[str], None] = lambda doing: None,
    ) -> None:
        self.root = root
        self._clock = clock
        self._files = files or Files(root, step=step)
        self._ledger = Ledger(ledger_path, step=step)
        self.lock = threading.RLock()
        """Held by callers that read, decide, write and index in one go. One thread at a time; other processes are excluded only
        during a write."""
        self._writer_lock = WriterLock(ledger_path.with_name(ledger_path.name + ".lock"))
        self._writer = Writer(self._files, self._ledger, clock)
        self._reader = NoteReader(self._files, self._ledger.notes)
        self._scanner = Scanner(
            root,
            files=self._files,
            ledger=self._ledger,
            lock=self._writer_lock,
            reader=self._reader,
            writer=self._writer,
            clock=clock,
        )
        self.known = KnownNotes(root, self._ledger, self._scanner)
        self.pages = MadePages(root, self._files, self._ledger, self._scanner.writing)
        self.shared = SharedFiles(self._files, self._ledger, self._scanner, clock)
        self.keys = KeyedNotes(self._files, self._ledger, self._reader, self._scanner, clock)

    def close(self) -> None:
        self._ledger.close()

    def __enter__(self) -> "Vault":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def ensure(self, template: Path) -> None:
        """See `layout.init_vault`."""
        init_vault(template, files=self._files, ledger=self._ledger, lock=self._writer_lock, scanner=self._scanner)

    @property
    def frozen(self) -> str:
        """Why nothing is written or concluded at the moment; empty when all is well."""
        return self._scanner.frozen

    def compare(self) -> Comparison:
        """See `Scanner.compare`."""
        return self._scanner.compare()

    def accept_disappearance(self) -> Comparison:
        """See `Scanner.accept_disappearance`."""
        return self._scanner.accept_disappearance()

    def must_be_whole(self) -> None:
        """See `Scanner.must_be_whole`."""
        self._scanner.must_be_whole()

    def mend_links(self) -> list[str]:
        """See `Scanner.mend_links`."""
        return self._scanner.mend_links()

    @property
    def unmended(self) -> bool:
        """See `Scanner.unmended`."""
        return self._scanner.unmended

    def problems(self) -> list[Problem]:
        """See `NoteReader.problems`."""
        return self._reader.problems()

    def entries(self) -> Iterator[Entry]:
        """Yield every note there is now, in the order of their paths.

        Raises `VaultMissing` rather than report that all are gone.
        """
        if frozen := self.frozen:
            raise self._scanner.missing(frozen)
        self._scanner.must_be_there()
        apart = {problem.file for problem in self._ledger.notes.problems() if problem.reason == COPY_REASON}
        yield from (entry for entry in listing(self._files).entries if entry.path not in apart)

    def wrong_folders(self) -> list[str]:
        """Return the folders for notes of one kind that are files or links. Notes of such a kind wait."""
        places = (self.root / folder for folder in dict.fromkeys(FOLDERS.values()))
        return [place.name for place in places if place.is_symlink() or (place.exists() and not place.is_dir())]

    def others(self) -> Iterator[str]:
        """Yield the files that are not notes but that notes may link to."""
        yield from listing(self._files).others

    def raw(self, path: str) -> bytes | None:
        """See `NoteReader.raw`."""
        return self._reader.raw(path)

    def read(self, path: str) -> Note | None:
        """See `NoteReader.read`."""
        return self._reader.read(path)

    def notes_of(self, provider: str, session: str) -> Iterator[Note]:
        """Read the notes whose evidence is in a session."""
        paths = self.known.of_session(provider, session)
        return (note for note in map(self.read, paths) if note is not None)

    def called(self, name: str) -> Note | None:
        """Return the note of this id or path, where the ledger knows it.

        Raises `VaultMissing` rather than report that it is gone.
        """
        name = as_text(name)
        known = self._ledger.notes.by_id(name) or self._ledger.notes.at(name)
        return self._read_where_it_is(known.path) if known is not None else None

    def ending(self, ends: str) -> Note | None:
        """Return the only note whose id ends with ``ends``, as lines that point at notes name it."""
        known = self._ledger.notes.ending_with(as_text(ends).upper()) if is_handle(ends) else []
        return self._read_where_it_is(known[0].path) if len(known) == 1 else None

    def titled(self, title: str) -> Iterator[Note]:
        """Yield the notes of this title, or of one that differs only in case and punctuation."""
        for known in self._ledger.notes.by_title(as_text(title)):
            if (note := self._read_where_it_is(known.path)) is not None:
                yield note

    def find(self, name: str) -> Note:
        """Return a note by id, path, file name, title, alias, or a prefix that only one note has; see `finding.find`.

        Raises `NoteNotFound`.
        """
        known = self._find(name)
        note = self.read(known.path)
        if note is None:
            reason = self._reader.why_unread(known.path) or "it is gone"
            raise NoteNotFound(f"{known.path} cannot be read: {reason}", hint="mend it in an editor; we leave it as it is")
        return note

    def _find(self, name: str) -> KnownFile:
        name = as_text(name)
        try:
            known = self._ledger.notes.at(inside(self.root, name)) or find_note(self._ledger.notes, name)
        except NoteNotFound:
            known = None
        if known is None or not self._files.exists(known.path):  # the ledger is out of date
            self.compare()
            known = self._ledger.notes.at(inside(self.root, name)) or find_note(self._ledger.notes, name)
        return known

    def plan(
        self,
        drafts: Sequence[Draft],
        *,
        sees: Callable[[Note], bool] = lambda note: True,
        around: Mapping[str, Surroundings] | None = None,
        rulings: Rulings | None = None,
    ) -> list[Action]:
        """Return what `carry_out` would do with the drafts; see `planning`.

        Nothing is added to a note for which ``sees`` is false.

        ``around`` is what `around` found: without it, no draft replaces a note or is found to repeat one in other words.
        ``rulings`` are decisions on the `contests`.
        """
        return planning.plan(drafts, gather(drafts, self._ledger, self._read_where_it_is, around, rulings, sees=sees))

    def around(self, drafts: Sequence[Draft], surround: Surround) -> dict[str, Surroundings]:
        """Return the notes near each of the drafts that may become notes."""
        return around_each(drafts, self._ledger, self._read_where_it_is, surround)

    def _read_where_it_is(self, path: str) -> Note | None:
        """Read a note, also where its owner has moved it since the last comparison. Otherwise it would be written twice."""
        known = self._ledger.notes.at(path)
        if known is not None and not self._files.exists(path):
            self._scanner.follow_path(path)
            known = self._ledger.notes.by_id(known.id) if known.id else None
            return self.read(known.path) if known is not None else None
        return self.read(path)

    def contests(self, drafts: Sequence[Draft], around: Mapping[str, Surroundings]) -> list[Contest]:
        """Return the pairs of draft and note for which a reader should decide what the newer does to the older."""
        settled = self._ledger.relations.settled(around)
        return [
            contest
            for draft in drafts
            if (near := around.get(draft.note.id)) is not None
            for contest in lifecycle.contests(draft.note, near, settled)
        ]

    def relate(self, note: Note, surround: Surround) -> bool:
        """Add to a note that was just written the older ones it differs from, as a planned one has them.

        Returns whether it was changed.
        """
        if not note.id or note.key or note.status is not NoteStatus.ACCEPTED:
            return False
        around = around_written(note, self._ledger, self._read_where_it_is, surround)
        found = lifecycle.relations(note, around, {}, self._ledger.relations.settled([note.id]))
        doubts = tuple(stem for each in found if links.holds(stem := PurePosixPath(each.old.path).stem))
        named = tuple(dict.fromkeys((*note.conflicts, *doubts)))
        if named == note.conflicts:
            return False
        with self._scanner.writing() as writer:
            review = writer.with_room(replace(note, conflicts=named)).review
            changes: dict[str, object] = {"conflicts": [f"[[{each}]]" for each in named]}
            return self.annotate(note.id, changes if review == note.review else {**changes, upkeep.PROPERTY: review})

    def take_lapsed(self) -> set[str]:
        """Return the paths of notes that have left the review since the last call, to make room for others."""
        with self.lock:
            taken, self._writer.lapsed = self._writer.lapsed, set()
        return taken

    def settle(self, newer: str, older: str, ruling: Ruling) -> list[str]:
        """Apply a person's ruling on what the newer of two notes, given by id, does to the older. Returns the notes changed."""
        with self._scanner.writing() as writer:
            self._scanner.follow(newer)
            self._scanner.follow(older)
            if ruling == "conflicts":
                return []
            if ruling == "neither":
                return writer.take_back(newer, older)
            changed = writer.take_back(newer, older)
            self._ledger.relations.rule(newer, older, "replacing")
            outcome = writer.replace_by(newer, older)
            if isinstance(outcome, LeftAlone):
                raise KiteError(f"{outcome.path or older} cannot be changed: {outcome.because}", hint="mend it, and try again")
            there = (self._ledger.notes.by_id(newer), self._ledger.notes.by_id(older))
            return sorted({*changed, *(known.path for known in there if known is not None)})

    def heed(self) -> list[str]:
        """Bring notes in line with the recorded replacements.

        Where a person has reinstated a replaced note, the replacement is taken back; where a replacement was not written yet, it is
        written now. Returns the notes changed.
        """
        waiting = self._ledger.relations.replacements()
        if not waiting:
            return []
        changed: list[str] = []
        with self._scanner.writing() as writer:
            for newer, older, said in waiting:
                if said:
                    changed += writer.take_back(newer, older)
                elif not writer.awaits_a_merge(newer, older) and isinstance(marked := writer.replace_by(newer, older), Amended):
                    changed.append(marked.path)
        return changed

    def restate(self, note: Note, *, addition: str) -> Outcome:
        """Rewrite the note with the id of ``note`` to hold its text. Where its owner has edited it, only ``addition`` is added."""

        def again(text: str, old: Note) -> str | None:
            return restated(text, old, note, ours=self._writer.is_ours(note.id, text), addition=addition, leads=self._scanner.leads)

        with self._scanner.writing() as writer:
            self._scanner.follow(note.id)
            known = self._ledger.notes.by_id(note.id)
            if known is None:
                return Skipped(title=note.title, because="you deleted it" if self.known.is_buried(note.id) else "it is not there")
            return writer.edit(known, again)

    @contextlib.contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Hold the vault's writer lock, so that what is planned still applies when it is carried out.

        No other write of this program, in any process, happens meanwhile. Raises `VaultMissing` where the vault has vanished, whole
        or in large part.
        """
        with self._scanner.writing():
            yield

    def carry_out(self, actions: Iterable[Action]) -> list[Outcome]:
        """Carry out each action on its own, in order. Idempotent."""
        outcomes: list[Outcome] = []
        for action in actions:
            with self._scanner.writing() as writer:
                match action:
                    case Create(note=note):
                        outcomes.append(writer.create(note))
                    case Amend(id=id):
                        self._scanner.follow(id)
                        outcomes.append(writer.amend(action))
                    case Supersede(old_id=id):
                        self._scanner.follow(id)
                        outcomes.append(writer.supersede(action))
                    case Skip(title=title, because=because):
                        outcomes.append(Skipped(title=title, because=because))
                    case _:
                        assert_never(action)
        return outcomes

    def remember(
        self,
        text: str,
        *,
        kind: NoteKind = NoteKind.FACT,
        title: str = "",
        project: str = "",
        scope: Scope | None = None,
        session: str = "",
        tags: Sequence[str] = (),
        origin: Origin = "user",
        evidence: Sequence[str] = (),
        importance: int = 2,
        expires: datetime | None = None,
        also_known_as: str = "",
    ) -> Note:
        """Write a note now; it is on disk when this returns.

        Without ``scope`` it gets the project's scope if a project is given, else the global one. The same words again are the same
        note. Remembering what was once deleted brings it back. Notes with a key are written by `keys`. `known_as` finds the note by
        ``also_known_as``, too.
        """
        asked = remembered(
            text,
            at=self._clock(),
            kind=kind,
            title=title,
            project=project,
            scope=scope,
            session=session,
            tags=tags,
            origin=origin,
            evidence=evidence,
            importance=importance,
            expires=expires,
        )
        with self._scanner.writing() as writer:
            known = self._remembered_before(asked)
            if known is not None and asked.status is NoteStatus.PROPOSED and known.status == NoteStatus.ACCEPTED.value:
                known = None  # a tool's text does not change an accepted note
            if known is not None:
                outcome = writer.remember_again(known, asked)
                if isinstance(outcome, LeftAlone):
                    raise KiteError(
                        f"{known.path} cannot be changed: {outcome.because}", hint="mend it in an editor, and try again"
                    )
                path = known.path
            else:
                self._ledger.tombstones.lift(asked.id)
                self._ledger.tombstones.lift_title(asked.title, asked.project)
                created = writer.create(asked)
                if isinstance(created, Skipped):
                    raise AssertionError(f"a new note was refused: {created.because}")
                path = created.path
            if also_known_as and (written := self._ledger.notes.at(path)) is not None:
                self._ledger.relations.absorb(also_known_as, written.id)
        return self._note_at(path)

    def _remembered_before(self, asked: Note) -> KnownFile | None:
        alike = self._ledger.notes.by_body(body_key(asked.body))
        same = (asked.kind.value, asked.project)
        standing = (NoteStatus.ACCEPTED.value, NoteStatus.PROPOSED.value)
        for one in alike:
            if one.id and (one.kind, one.project) == same and one.status in standing:
                note = self._read_where_it_is(one.path)
                if note is not None and not note.key and (note.scope, note.session) == (asked.scope, asked.session):
                    return self._ledger.notes.at(note.path)
        return None

    def forget(self, name: str) -> Forgotten:
        """Move a note (named as for `find`) into the vault's trash; it is never written again, under this id or another."""
        # Taken first: it may compare the vault, and find that the note is another file by now.
        with self._scanner.writing() as writer:
            known = self._find(name)
            trashed, relinked = writer.forget(known)
        self._reader.forget(known.path)
        linked_from = (
            () if self._ledger.notes.by_stem(link_key(known.path)) else self._ledger.notes.named("link", link_key(known.path))
        )
        return Forgotten(
            id=known.id,
            path=known.path,
            trashed=trashed,
            relinked=tuple(relinked),
            linked_from=tuple(sorted(each.path for each in linked_from)),
        )

    def mute(self, name: str, *, undo: bool = False) -> Note:
        """Set a note to muted, so that it is not shown unasked. ``undo`` restores the status that it had before."""
        known = self._find(name)
        if not undo:
            if known.status != NoteStatus.MUTED.value:
                self._ledger.mute(known.id or known.path, known.status)
            return self.mark(name, NoteStatus.MUTED)
        if known.status != NoteStatus.MUTED.value:
            return self._note_at(known.path)
        before = self._ledger.status_before_mute(known.id or known.path)
        unsure = self._note_at(known.path).origin == "tool"
        return self.mark(name, NoteStatus(before) if before else NoteStatus.PROPOSED if unsure else NoteStatus.ACCEPTED)

    def mark(self, name: str, status: NoteStatus) -> Note:
        """Set a note's status and nothing else of it."""
        with self._scanner.writing() as writer:
            known = self._find(name)
            outcome = writer.set_properties(known, {"status": status.value})
        if isinstance(outcome, LeftAlone):
            raise KiteError(f"{known.path} cannot be changed: {outcome.because}", hint="mend it in an editor, and try again")
        return self._note_at(known.path)

    def text(self, path: str) -> str:
        """Return the whole file as it is. Raises `NoteNotFound` where it cannot be read."""
        return self._reader.text(path)

    def rewrite(self, path: str, before: str, after: str) -> bool:
        """Replace a note's whole text by ``after``, only where it is exactly ``before``.

        A body that counted as written by us still does.
        """
        with self._scanner.writing() as writer:
            known = self._ledger.notes.at(path)
            if known is None:
                return False
            outcome = writer.edit(known, lambda text, note: after if text == before else None)
            return isinstance(outcome, Amended)

    def annotate(self, id: str, changes: Mapping[str, object]) -> bool:
        """Set properties of a note, and nothing else of it; an empty text removes one. Returns whether anything has changed."""
        with self._scanner.writing() as writer:
            self._scanner.follow(id)
            known = self._ledger.notes.by_id(id)
            return known is not None and isinstance(writer.set_properties(known, changes), Amended)

    def mark_drift(self, id: str, since: datetime | None) -> None:
        """Record since when code that a note rests on has changed; ``None`` if it is as it was. Its file is not written."""
        with self._scanner.writing():
            if (known := self._ledger.notes.by_id(id)) is not None:
                self._ledger.notes.mark_drift(known.path, since)

    def unmake(self, path: str, text: str) -> bool:
        """Move a note that we have made into the trash, if its text is still exactly ``text``.

        Unlike with `forget`, it may be made again.
        """
        with self._scanner.writing():
            try:
                if self._files.read(path).data != text.encode():
                    return False
            except (OSError, CannotRead, OutsideVault):
                return False
            self._files.to_trash(path)
            self._ledger.notes.drop(path)
            return True

    def is_ours(self, note: Note) -> bool:
        """Return whether its body is as we wrote it."""
        try:
            text = self._files.read(note.path).data.decode()
        except (OSError, CannotRead, UnicodeDecodeError):
            return False
        return self._writer.is_ours(note.id, text)

    def disown(self, id: str) -> None:
        """Record that the body of this note is a person's from now on, although we have written it: it is in their words."""
        self._ledger.bodies.disown(id)

    def purge(self) -> bool:
        """Remove forgotten text from the ledger's files; only digests of the titles not to be made again remain.

        Returns ``False`` while another process reads them.
        """
        return self._ledger.purge()

    def unresolved_links(self) -> list[links.Unresolved]:
        """Return every link that leads to no file, for ``kmem verify``. Reads every note."""
        return links.unresolved(self)

    def _note_at(self, path: str) -> Note:
        note = self.read(path)
        if note is None:
            raise NoteNotFound(f"{path} is gone", hint="it has just been moved or deleted")
        return note
