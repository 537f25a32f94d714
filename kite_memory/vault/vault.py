"""The vault: a folder of markdown notes that its owner and this program both write to, and its owner wins."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import assert_never

from kite_memory.errors import KiteError, NoteNotFound
from kite_memory.model.look import Problem
from kite_memory.model.note import Entry, Note, NoteKind, NoteStatus, Scope
from kite_memory.model.plan import Action, Amend, Contest, Create, Ruling, Skip, Supersede, Surround, Surroundings
from kite_memory.model.record import Origin
from kite_memory.system.locks import WriterLock
from kite_memory.vault import finding, lifecycle, links, planning
from kite_memory.vault.comparison import Comparison
from kite_memory.vault.drafting import Draft, remembered
from kite_memory.vault.files import CannotRead, Files
from kite_memory.vault.folders import OutsideVault
from kite_memory.vault.keyed_notes import KeyedNotes
from kite_memory.vault.known import KnownNotes
from kite_memory.vault.layout import init_vault
from kite_memory.vault.ledger import Known, Ledger, link_key
from kite_memory.vault.lifecycle import Rulings
from kite_memory.vault.listing import (
    COPY_REASON,
    listing,
)
from kite_memory.vault.made_pages import MadePages
from kite_memory.vault.notefile import FOLDERS
from kite_memory.vault.plan_context import around_each, around_written, gather, restated
from kite_memory.vault.reading import NoteReader
from kite_memory.vault.scanning import Scanner
from kite_memory.vault.wording import body_key
from kite_memory.vault.writing import Amended, LeftAlone, Outcome, Skipped, Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """``trashed`` is where the note lies now; empty if it was gone already. ``relinked`` are notes that no longer link to it,
    ``linked_from`` those that still do, since a person has edited them."""

    id: str
    path: str
    trashed: str
    relinked: tuple[str, ...] = ()
    linked_from: tuple[str, ...] = ()


def _now() -> datetime:
    return datetime.now(UTC)


class Vault:
    """Reading never changes a file. Writers raise `VaultMissing` while the vault is not where it should be, or has lost so much
    that nothing may be concluded from it; `VaultReadOnly` where the disk says no. What they have done until then stays done.

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
        """Held by whoever reads, decides, writes and has it indexed in one go: one thread at a time, and those of other processes
        only while something is written."""
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
        self.keys = KeyedNotes(self._files, self._ledger, self._reader, self._scanner, clock)

    def close(self) -> None:
        self._ledger.close()

    def __enter__(self) -> "Vault":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def ensure(self, template: Path) -> None:
        """As `layout.init_vault`."""
        init_vault(template, files=self._files, ledger=self._ledger, lock=self._writer_lock, scanner=self._scanner)

    @property
    def frozen(self) -> str:
        """Why nothing is written or concluded at the moment; empty when all is well."""
        return self._scanner.frozen

    def compare(self) -> Comparison:
        """As `Scanner.compare`."""
        return self._scanner.compare()

    def accept_disappearance(self) -> Comparison:
        """As `Scanner.accept_disappearance`."""
        return self._scanner.accept_disappearance()

    def must_be_whole(self) -> None:
        """As `Scanner.must_be_whole`."""
        self._scanner.must_be_whole()

    def mend_links(self) -> list[str]:
        """As `Scanner.mend_links`."""
        return self._scanner.mend_links()

    @property
    def unmended(self) -> bool:
        """As `Scanner.unmended`."""
        return self._scanner.unmended

    def problems(self) -> list[Problem]:
        """As `NoteReader.problems`."""
        return self._reader.problems()

    def entries(self) -> Iterator[Entry]:
        """Every note there is now, in the order of their paths. Raises `VaultMissing` rather than say that all are gone."""
        if frozen := self.frozen:
            raise self._scanner.missing(frozen)
        self._scanner.must_be_there()
        apart = {problem.file for problem in self._ledger.notes.problems() if problem.reason == COPY_REASON}
        yield from (entry for entry in listing(self._files).entries if entry.path not in apart)

    def wrong_folders(self) -> list[str]:
        """Folders that notes are written to by their kind and that are files or links: such notes wait."""
        places = (self.root / folder for folder in dict.fromkeys(FOLDERS.values()))
        return [place.name for place in places if place.is_symlink() or (place.exists() and not place.is_dir())]

    def others(self) -> Iterator[str]:
        """Files that are not notes, which notes may link to."""
        yield from listing(self._files).others

    def raw(self, path: str) -> bytes | None:
        """As `NoteReader.raw`."""
        return self._reader.raw(path)

    def read(self, path: str) -> Note | None:
        """As `NoteReader.read`."""
        return self._reader.read(path)

    def notes_of(self, provider: str, session: str) -> Iterator[Note]:
        """Read those that rest on a session."""
        paths = self.known.of_session(provider, session)
        return (note for note in map(self.read, paths) if note is not None)

    def called(self, name: str) -> Note | None:
        """By its id or its path alone, where the ledger knows it. Raises `VaultMissing` rather than say that it is gone."""
        name = finding.as_text(name)
        known = self._ledger.notes.by_id(name) or self._ledger.notes.at(name)
        return self._read_where_it_is(known.path) if known is not None else None

    def ending(self, ends: str) -> Note | None:
        """The one note whose id ends so, as a line that points at it names it."""
        known = self._ledger.notes.ending_with(finding.as_text(ends).upper()) if finding.is_handle(ends) else []
        return self._read_where_it_is(known[0].path) if len(known) == 1 else None

    def titled(self, title: str) -> Iterator[Note]:
        """Those of this title, or of one that differs in case and punctuation alone."""
        for known in self._ledger.notes.by_title(finding.as_text(title)):
            if (note := self._read_where_it_is(known.path)) is not None:
                yield note

    def find(self, name: str) -> Note:
        """By id, path, file name, title, alias, or a beginning that only one note has. Raises `NoteNotFound`."""
        known = self._find(name)
        note = self.read(known.path)
        if note is None:
            reason = self._reader.why_unread(known.path) or "it is gone"
            raise NoteNotFound(f"{known.path} cannot be read: {reason}", hint="mend it in an editor; we leave it as it is")
        return note

    def _find(self, name: str) -> Known:
        name = finding.as_text(name)
        try:
            known = self._ledger.notes.at(finding.inside(self.root, name)) or finding.find(self._ledger.notes, name)
        except NoteNotFound:
            known = None
        if known is None or not self._files.exists(known.path):  # what we know is old
            self.compare()
            known = self._ledger.notes.at(finding.inside(self.root, name)) or finding.find(self._ledger.notes, name)
        return known

    def plan(
        self,
        drafts: Sequence[Draft],
        *,
        sees: Callable[[Note], bool] = lambda note: True,
        around: Mapping[str, Surroundings] | None = None,
        rulings: Rulings | None = None,
    ) -> list[Action]:
        """What `carry_out` would do with them; see `planning`. Nothing is added to a note that whoever asks does not see.

        ``around`` is what `around` found: without it, no draft replaces anything, nor repeats it in other words. ``rulings`` is
        what somebody who read the `contests` said.
        """
        return planning.plan(drafts, gather(drafts, self._ledger, self._read_where_it_is, around, rulings, sees=sees))

    def around(self, drafts: Sequence[Draft], surround: Surround) -> dict[str, Surroundings]:
        """What is near to each of the drafts that may become notes."""
        return around_each(drafts, self._ledger, self._read_where_it_is, surround)

    def _read_where_it_is(self, path: str) -> Note | None:
        """Also where its owner has moved it since the last look: else they would be told the same thing twice."""
        known = self._ledger.notes.at(path)
        if known is not None and not self._files.exists(path):
            self._scanner.follow_path(path)
            known = self._ledger.notes.by_id(known.id) if known.id else None
            return self.read(known.path) if known is not None else None
        return self.read(path)

    def contests(self, drafts: Sequence[Draft], around: Mapping[str, Surroundings]) -> list[Contest]:
        """The pairs of draft and note of which somebody who can read should say what the newer does to the older."""
        settled = self._ledger.relations.settled(around)
        return [
            contest
            for draft in drafts
            if (near := around.get(draft.note.id)) is not None
            for contest in lifecycle.contests(draft.note, near, settled)
        ]

    def relate(self, note: Note, surround: Surround) -> bool:
        """Let a note that was just written say which older one it differs from, as a planned one does. Whether it does now."""
        if not note.id or note.key or note.status is not NoteStatus.ACCEPTED:
            return False
        around = around_written(note, self._ledger, self._read_where_it_is, surround)
        found = lifecycle.relations(note, around, {}, self._ledger.relations.settled([note.id]))
        doubts = tuple(stem for each in found if links.holds(stem := PurePosixPath(each.old.path).stem))
        named = tuple(dict.fromkeys((*note.conflicts, *doubts)))
        return named != note.conflicts and self.annotate(note.id, {"conflicts": [f"[[{each}]]" for each in named]})

    def settle(self, newer: str, older: str, ruling: Ruling) -> list[str]:
        """A person says, of two notes by their ids, what the newer does to the older. Says which notes were changed."""
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
        """Where a person has let a replaced note stand again, it stands; where we did not come to say so, it is said now.

        Says which notes were changed.
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
        """Let the note of this id say what ``note`` does; where its owner has edited it, only ``addition`` is added."""

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
        """Nothing else of ours writes in here, in whatever process: what is planned is carried out on what it was planned for.

        Raises `VaultMissing` where the vault has vanished, whole or in large part.
        """
        with self._scanner.writing():
            yield

    def carry_out(self, actions: Iterable[Action]) -> list[Outcome]:
        """Each action on its own, in order; doing one twice is doing it once."""
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
        """Write a note now; it is on disk when this returns. Without ``scope``: the project's if one is given, else everybody's.

        The same words again are the same note. Asking for what was once deleted brings it back. What has a key, `keys` keeps.
        `known_as` finds it by ``also_known_as``, too.
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
                known = None  # what a tool says does not change what a person stands by
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

    def _remembered_before(self, asked: Note) -> Known | None:
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
        # First: it may look for what is missing, and learn that the note is another file by now.
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
        """Keep a note from being shown unasked. ``undo`` gives it the status that it had before."""
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
        """The whole file as it is. Raises `NoteNotFound` where it cannot be read."""
        return self._reader.text(path)

    def rewrite(self, path: str, before: str, after: str) -> bool:
        """Let a note say ``after``; not where it no longer says ``before``, to the letter. What was ours stays ours."""
        with self._scanner.writing() as writer:
            known = self._ledger.notes.at(path)
            if known is None:
                return False
            outcome = writer.edit(known, lambda text, note: after if text == before else None)
            return isinstance(outcome, Amended)

    def annotate(self, id: str, changes: Mapping[str, object]) -> bool:
        """Set properties of a note, and nothing else of it; an empty text takes one away. Whether anything has changed."""
        with self._scanner.writing() as writer:
            self._scanner.follow(id)
            known = self._ledger.notes.by_id(id)
            return known is not None and isinstance(writer.set_properties(known, changes), Amended)

    def mark_drift(self, id: str, since: datetime | None) -> None:
        """Remember since when code that a note rests on is another, or that it is as it was. Its file is left alone."""
        with self._scanner.writing():
            if (known := self._ledger.notes.by_id(id)) is not None:
                self._ledger.notes.mark_drift(known.path, since)

    def unmake(self, path: str, text: str) -> bool:
        """Into the trash with a note that we have made and that nobody has touched since. Unlike `forget`, it may be made again."""
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
        """Whether its body is as we wrote it."""
        try:
            text = self._files.read(note.path).data.decode()
        except (OSError, CannotRead, UnicodeDecodeError):
            return False
        return self._writer.is_ours(note.id, text)

    def disown(self, id: str) -> None:
        """The body of this note is a person's from here on, although we have written it: it is in their words."""
        self._ledger.bodies.disown(id)

    def purge(self) -> bool:
        """Of what was forgotten, the ledger's files hold only by which title it is not to be made again. ``False`` while another
        process reads them."""
        return self._ledger.purge()

    def unresolved_links(self) -> list[links.Unresolved]:
        """For ``kmem verify``. Reads every note."""
        return links.unresolved(self)

    def _note_at(self, path: str) -> Note:
        note = self.read(path)
        if note is None:
            raise NoteNotFound(f"{path} is gone", hint="somebody has just moved or deleted it")
        return note
