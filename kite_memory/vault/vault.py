"""The vault: a folder of markdown notes that its owner and this program both write to. On a conflict the owner's text wins."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import assert_never

from kite_memory.errors import KiteError
from kite_memory.model.note import (
    Action,
    Amend,
    Contest,
    Create,
    Note,
    NoteStatus,
    Ruling,
    Skip,
    Supersede,
    Surround,
    Surroundings,
)
from kite_memory.system import utc_now
from kite_memory.system.private_files import WriterLock
from kite_memory.vault import lifecycle, links, planning
from kite_memory.vault.drafting import Draft, Memo, remembered
from kite_memory.vault.files import CannotRead, Files
from kite_memory.vault.folders import OutsideVault
from kite_memory.vault.keyed_notes import KeyedNotes
from kite_memory.vault.known import KnownNotes, StoredNotes, around_each, around_written, gather, rewritten_text
from kite_memory.vault.ledger import KnownFile, Ledger, link_key
from kite_memory.vault.lifecycle import Rulings
from kite_memory.vault.made_pages import MadePages, SharedFiles, init_vault
from kite_memory.vault.notefile import REVIEW
from kite_memory.vault.scanning import NoteReader, Scanner
from kite_memory.vault.wording import body_key
from kite_memory.vault.writing import Amended, LeftAlone, Outcome, Skipped, Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Result of `NoteEdits.forget`.

    ``trashed`` is where the note is now; empty if it was gone already. ``relinked`` are notes that no longer link to it,
    ``linked_from`` those that still do, since a person has edited them. ``copies`` of it are in the trash, too: where each is now.
    """

    id: str
    path: str
    trashed: str
    relinked: tuple[str, ...] = ()
    copies: Mapping[str, str] = field(default_factory=dict)
    linked_from: tuple[str, ...] = ()


class Planner:
    """Decides what drafts become among the notes there are, and carries it out."""

    def __init__(self, ledger: Ledger, notes: StoredNotes, scanner: Scanner) -> None:
        self._ledger = ledger
        self._notes = notes
        self._scanner = scanner

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
        return planning.plan(drafts, gather(drafts, self._ledger, self._notes.read_where_it_is, around, rulings, sees=sees))

    def around(self, drafts: Sequence[Draft], surround: Surround) -> dict[str, Surroundings]:
        """Return the notes near each of the drafts that may become notes."""
        return around_each(drafts, self._ledger, self._notes.read_where_it_is, surround)

    def contests(self, drafts: Sequence[Draft], around: Mapping[str, Surroundings]) -> list[Contest]:
        """Return the pairs of draft and note for which a reader should decide what the newer does to the older."""
        settled = self._ledger.relations.settled(around)
        return [
            contest
            for draft in drafts
            if (near := around.get(draft.note.id)) is not None
            for contest in lifecycle.contests(draft.note, near, settled)
        ]

    def carry_out(self, actions: Iterable[Action]) -> list[Outcome]:
        """Carry out each action on its own, in order. Idempotent."""
        outcomes: list[Outcome] = []
        for action in actions:
            with self._scanner.writing() as writer:
                match action:
                    case Create(note=note):
                        outcomes.append(writer.create(note))
                    case Amend(id=id):
                        self._scanner.refresh_path(id)
                        outcomes.append(writer.amend(action))
                    case Supersede(old_id=id):
                        self._scanner.refresh_path(id)
                        outcomes.append(writer.supersede(action))
                    case Skip(title=title, because=because):
                        outcomes.append(Skipped(title=title, because=because))
                    case _:
                        assert_never(action)
        return outcomes


class NoteEdits:
    """Changes to single notes, each in one go. On a conflict the owner's text wins."""

    def __init__(
        self,
        *,
        files: Files,
        ledger: Ledger,
        reader: NoteReader,
        scanner: Scanner,
        notes: StoredNotes,
        known: KnownNotes,
        clock: Callable[[], datetime],
    ) -> None:
        self._files = files
        self._ledger = ledger
        self._reader = reader
        self._scanner = scanner
        self._notes = notes
        self._known = known
        self._clock = clock

    def remember(self, memo: Memo, *, also_known_as: str = "") -> Note:
        """Write a note now; it is on disk when this returns.

        The same words again are the same note. Remembering what was once deleted brings it back. Notes with a key are written by
        `keys`. `KnownNotes.by_id` finds the note by ``also_known_as``, too.
        """
        asked = remembered(memo, self._clock())
        with self._scanner.writing() as writer:
            known = self._remembered_before(asked)
            if known is not None and asked.status is NoteStatus.PROPOSED and known.status == NoteStatus.ACCEPTED.value:
                known = None  # a tool's text does not change an accepted note
            if known is not None:
                outcome = writer.remember_again(known, asked)
                if isinstance(outcome, LeftAlone):
                    raise KiteError(
                        f"{known.path} cannot be changed: {outcome.because}", hint="repair it in an editor, and try again"
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
        return self._notes.get(path)

    def _remembered_before(self, asked: Note) -> KnownFile | None:
        alike = self._ledger.notes.by_body(body_key(asked.body))
        same = (asked.kind.value, asked.project)
        in_force = (NoteStatus.ACCEPTED.value, NoteStatus.PROPOSED.value)
        for one in alike:
            if one.id and (one.kind, one.project) == same and one.status in in_force:
                note = self._notes.read_where_it_is(one.path)
                if note is not None and not note.key and (note.scope, note.session) == (asked.scope, asked.session):
                    return self._ledger.notes.at(note.path)
        return None

    def rewrite_note(self, note: Note, *, addition: str) -> Outcome:
        """Rewrite the note with the id of ``note`` to hold its text. Where its owner has edited it, only ``addition`` is added."""

        with self._scanner.writing() as writer:
            self._scanner.refresh_path(note.id)
            known = self._ledger.notes.by_id(note.id)

            def again(text: str, old: Note) -> str | None:
                return rewritten_text(
                    text, old, note, ours=writer.is_ours(note.id, text), addition=addition, resolves=self._scanner.link_resolves
                )

            if known is None:
                return Skipped(title=note.title, because="you deleted it" if self._known.is_buried(note.id) else "it is not there")
            return writer.edit(known, again)

    def forget(self, name: str) -> Forgotten:
        """Move a note, named as for `StoredNotes.find`, into the vault's trash. It is never written again, under this id or
        another. Copies of it with the same text go along.
        """
        # Taken first: it may compare the vault, and find that the note is another file by now.
        with self._scanner.writing() as writer:
            known = self._notes.known_as(name)
            copies = {copy.path: writer.forget(copy)[0] for copy in self._copies(known)}
            trashed, relinked = writer.forget(known)
        for path in (known.path, *copies):
            self._reader.forget(path)
        linked_from = (
            () if self._ledger.notes.by_stem(link_key(known.path)) else self._ledger.notes.named("link", link_key(known.path))
        )
        return Forgotten(
            id=known.id,
            path=known.path,
            trashed=trashed,
            relinked=tuple(relinked),
            copies=copies,
            linked_from=tuple(sorted(each.path for each in linked_from)),
        )

    def mute(self, name: str, *, undo: bool = False) -> Note:
        """Set a note and its copies to muted, so that they are not shown unasked. ``undo`` restores the status of each."""
        known = self._notes.known_as(name)
        for copy in self.copies(known.path):
            self._mute(self._notes.known_as(copy), undo=undo)
        return self._mute(known, undo=undo)

    def copies(self, path: str) -> list[str]:
        """Return the paths of the copies of a note: files with its id and its text."""
        known = self._ledger.notes.at(path)
        return [copy.path for copy in self._copies(known)] if known is not None else []

    def _copies(self, known: KnownFile) -> list[KnownFile]:
        note = self._reader.read(known.path) if known.id and not known.duplicate else None
        alike = self._ledger.notes.by_body(body_key(note.body)) if note is not None else []
        return [each for each in alike if each.duplicate and each.id == known.id]

    def _mute(self, known: KnownFile, *, undo: bool) -> Note:
        called = known.path if known.duplicate else known.id or known.path
        if not undo:
            if known.status != NoteStatus.MUTED.value:
                self._ledger.mute(called, known.status)
            return self.mark(known.path, NoteStatus.MUTED)
        if known.status != NoteStatus.MUTED.value:
            return self._notes.get(known.path)
        before = self._ledger.status_before_mute(called)
        unsure = self._notes.get(known.path).origin == "tool"
        return self.mark(known.path, NoteStatus(before) if before else NoteStatus.PROPOSED if unsure else NoteStatus.ACCEPTED)

    def mark(self, name: str, status: NoteStatus) -> Note:
        """Set a note's status and nothing else of it."""
        with self._scanner.writing() as writer:
            known = self._notes.known_as(name)
            outcome = writer.set_properties(known, {"status": status.value})
        if isinstance(outcome, LeftAlone):
            raise KiteError(f"{known.path} cannot be changed: {outcome.because}", hint="repair it in an editor, and try again")
        return self._notes.get(known.path)

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
            self._scanner.refresh_path(id)
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

    def disown(self, id: str) -> None:
        """Record that the body of this note is a person's from now on, although we have written it: it is in their words."""
        self._ledger.bodies.disown(id)


class NoteRelations:
    """What newer notes do to older ones: replace them, or say something else about the same thing."""

    def __init__(self, ledger: Ledger, notes: StoredNotes, scanner: Scanner, edits: NoteEdits) -> None:
        self._ledger = ledger
        self._notes = notes
        self._scanner = scanner
        self._edits = edits

    def relate(self, note: Note, surround: Surround) -> bool:
        """Add to a note that was just written the older ones it differs from, as a planned one has them.

        Returns whether it was changed.
        """
        if not note.id or note.key or note.status is not NoteStatus.ACCEPTED:
            return False
        around = around_written(note, self._ledger, self._notes.read_where_it_is, surround)
        found = lifecycle.relations(note, around, {}, self._ledger.relations.settled([note.id]))
        doubts = tuple(stem for each in found if links.holds(stem := PurePosixPath(each.old.path).stem))
        named = tuple(dict.fromkeys((*note.conflicts, *doubts)))
        if named == note.conflicts:
            return False
        with self._scanner.writing() as writer:
            review = writer.with_room(replace(note, conflicts=named)).review
            changes: dict[str, object] = {"conflicts": [f"[[{each}]]" for each in named]}
            return self._edits.annotate(note.id, changes if review == note.review else {**changes, REVIEW: review})

    def settle(self, newer: str, older: str, ruling: Ruling) -> list[str]:
        """Apply a person's ruling on what the newer of two notes, given by id, does to the older. Returns the notes changed."""
        with self._scanner.writing() as writer:
            self._scanner.refresh_path(newer)
            self._scanner.refresh_path(older)
            if ruling == "conflicts":
                return []
            if ruling == "neither":
                return writer.take_back(newer, older)
            changed = writer.take_back(newer, older)
            self._ledger.relations.rule(newer, older, "replacing")
            narrower = writer.holds_less(newer, older)
            outcome = writer.replace_where_it_holds(newer, older) if narrower else writer.replace_by(newer, older)
            if isinstance(outcome, LeftAlone):
                raise KiteError(f"{outcome.path or older} cannot be changed: {outcome.because}", hint="repair it, and try again")
            there = (self._ledger.notes.by_id(newer), self._ledger.notes.by_id(older))
            return sorted({*changed, *(known.path for known in there if known is not None)})

    def bring_in_line(self) -> list[str]:
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
                elif not writer.holds_less(newer, older) and isinstance(marked := writer.replace_by(newer, older), Amended):
                    changed.append(marked.path)
        return changed


class Vault:
    """Reader and writer of one vault. Each subject has a part of its own.

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
        clock: Callable[[], datetime] = utc_now,
        step: Callable[[str], None] = lambda doing: None,
    ) -> None:
        self.root = root
        self._files = files = files or Files(root, step=step)
        self._ledger = ledger = Ledger(ledger_path, step=step)
        self.lock = threading.RLock()
        """Held by callers that read, decide, write and index in one go. One thread at a time; other processes are excluded only
        during a write."""
        self._writer_lock = WriterLock(ledger_path.with_name(ledger_path.name + ".lock"))
        writer = Writer(files, ledger, clock)
        reader = NoteReader(files, ledger.notes, ledger.problems)
        self.scanner = scanner = Scanner(
            root, files=files, ledger=ledger, lock=self._writer_lock, reader=reader, writer=writer, clock=clock
        )
        self.known = KnownNotes(root, ledger, scanner)
        self.notes = StoredNotes(root, files=files, ledger=ledger, reader=reader, scanner=scanner, writer=writer)
        self.planner = Planner(ledger, self.notes, scanner)
        self.edits = NoteEdits(
            files=files, ledger=ledger, reader=reader, scanner=scanner, notes=self.notes, known=self.known, clock=clock
        )
        self.relations = NoteRelations(ledger, self.notes, scanner, self.edits)
        self.pages = MadePages(root, files, ledger, scanner.writing)
        self.shared = SharedFiles(files, ledger, scanner, clock)
        self.keys = KeyedNotes(files, ledger, reader, scanner, clock)

    def close(self) -> None:
        self._ledger.close()

    def __enter__(self) -> "Vault":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def ensure(self, template: Path) -> None:
        """See `made_pages.init_vault`."""
        init_vault(template, files=self._files, ledger=self._ledger, lock=self._writer_lock, scanner=self.scanner)

    @contextlib.contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Hold the vault's writer lock, so that what is planned still applies when it is carried out.

        No other write of this program, in any process, happens meanwhile. Raises `VaultMissing` where the vault has vanished, whole
        or in large part.
        """
        with self.scanner.writing():
            yield

    def purge(self) -> bool:
        """Remove forgotten text from the ledger's files; only digests of the titles not to be made again remain.

        Returns ``False`` while another process reads them.
        """
        return self._ledger.purge()
