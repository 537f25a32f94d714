"""The vault: a folder of markdown notes that its owner and this program both write to, and its owner wins."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import assert_never

from kite_memory.errors import KiteError, NoteNotFound, VaultMissing, VaultReadOnly
from kite_memory.model.look import Problem
from kite_memory.model.note import Entry, Note, NoteKind, NoteStatus
from kite_memory.model.plan import Action, Amend, Create, Skip, Supersede
from kite_memory.model.record import Origin
from kite_memory.model.scope import Scope
from kite_memory.vault import finding, links, planning
from kite_memory.vault.comparison import Comparison, judge, to_read
from kite_memory.vault.drafting import Draft, remembered
from kite_memory.vault.files import CannotRead, Files, Stamp, no_vault
from kite_memory.vault.folders import OutsideVault
from kite_memory.vault.gathering import gather
from kite_memory.vault.ledger import Known, Ledger, keyed
from kite_memory.vault.listing import Listing, leftovers, listing, trashed_notes
from kite_memory.vault.lock import WriterLock
from kite_memory.vault.notefile import Unreadable, parse
from kite_memory.vault.wording import body_key
from kite_memory.vault.writing import LeftAlone, Outcome, Skipped, Writer

ACCEPT_COMMAND = "kmem verify --accept-missing"
"""Named in hints: what a person runs to say that the notes are gone on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """``trashed`` is where the note lies now; empty if it was gone already."""

    id: str
    path: str
    trashed: str


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
        self._lock = WriterLock(ledger_path.with_name(ledger_path.name + ".lock"))
        self._writer = Writer(self._files, self._ledger, clock)
        self._unread: dict[str, str] = {}

    def close(self) -> None:
        self._ledger.close()

    def __enter__(self) -> "Vault":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def ensure(self, template: Path) -> None:
        """Lay out the vault: folders, Home note, Obsidian's settings.

        Nothing is overwritten, nothing that was removed comes back, and somebody's own Obsidian settings are left entirely alone.
        """
        with self._lock.held():
            if not self._files.is_there() and self._ledger.is_empty():
                self._files.make_root()
            self._must_be_there()
            if not self._ledger.setting("laid out"):
                self._ledger.set("laid out", "not .obsidian" if self._files.exists(".obsidian") else "all")
            theirs = self._ledger.setting("laid out") == "not .obsidian"
            self._files.sweep(leftovers(self._files, ".obsidian"))
            for source in sorted(path for path in template.rglob("*") if path.is_file()):
                path = source.relative_to(template).as_posix()
                if self._ledger.gave(path) or (theirs and path.startswith(".obsidian/")):
                    continue
                self._lay_out(source, path)
                self._ledger.give(path)

    def _lay_out(self, source: Path, path: str) -> None:
        if source.name == ".gitkeep":
            self._files.make_folder(path.rpartition("/")[0])
            return
        if self._files.exists(path):
            return
        filled = self._files.fill(path, source.read_bytes())
        try:
            self._files.publish(filled)
        except FileExistsError:
            self._files.discard(filled.temporary)

    def entries(self) -> Iterator[Entry]:
        """Every note there is now, in the order of their paths. Raises `VaultMissing` rather than say that all are gone."""
        if frozen := self.frozen:
            raise self._missing(frozen)
        self._must_be_there()
        yield from listing(self._files).entries

    def known(self) -> list[Known]:
        """Every note as of the last comparison, unread."""
        return self._ledger.everything()

    def others(self) -> Iterator[str]:
        """Files that are not notes, which notes may link to."""
        yield from listing(self._files).others

    def read(self, path: str) -> Note | None:
        """``None`` for what is no note, or none that can be read: then `problems` says why."""
        read = self._read(path)
        if read is None:
            return None
        note, _ = read
        if isinstance(note, Unreadable):
            return None
        known = self._ledger.at(path)
        if known is not None and known.twin and note.id == known.id:
            return replace(note, id="")
        return note if note.id or known is None or known.twin else replace(note, id=known.id)

    def _read(self, path: str) -> tuple[Note | Unreadable, Stamp] | None:
        """``None`` where there is no file. One that cannot even be opened has a stamp that will not match the next time."""
        try:
            content = self._files.read(path)
        except (FileNotFoundError, NotADirectoryError, OutsideVault):
            self._unread.pop(path, None)
            return None
        except CannotRead as error:
            self._unread[path] = str(error)
            return Unreadable(path=path, reason=str(error)), Stamp(size=-1, mtime_ns=-1)
        at = datetime.fromtimestamp(content.stamp.mtime_ns / 1e9, UTC)
        try:
            note = parse(content.data.decode(), path, created=at, updated=at)
        except UnicodeDecodeError:
            note = Unreadable(path=path, reason="not UTF-8")
        if isinstance(note, Unreadable):
            self._unread[path] = note.reason
        else:
            self._unread.pop(path, None)
        return note, content.stamp

    def problems(self) -> list[Problem]:
        """What could not be read or was left alone, as of the last comparison and the reads since."""
        found = {(problem.file, problem.reason) for problem in self._ledger.problems()} | set(self._unread.copy().items())
        return [Problem(file=path, position=0, reason=reason) for path, reason in sorted(found)]

    @property
    def frozen(self) -> str:
        """Why nothing is written or concluded at the moment; empty when all is well."""
        return self._ledger.setting("frozen")

    def compare(self) -> Comparison:
        """Take in what has become of the vault: new and changed files, renames, deletions, copies. Also clears up after crashes.

        Opens only files whose size or time has changed. A deletion is final; but when too much is missing at once, the
        result says ``frozen`` and nothing is concluded, until the notes are back or `accept_disappearance` is called.
        """
        with self._lock.held():
            return self._compare(accept=False)

    def accept_disappearance(self) -> Comparison:
        """A person says that the notes which are missing were deleted on purpose."""
        with self._lock.held():
            return self._compare(accept=True)

    def _compare(self, *, accept: bool) -> Comparison:
        try:
            found = listing(self._files)
        except VaultMissing as error:
            if not accept:
                return self._freeze(str(error))
            found = Listing()
        if not accept and not self._looks_there(found):
            return self._freeze(f"{self.root} holds nothing of the vault")
        if not accept:
            with contextlib.suppress(VaultReadOnly):  # looking is possible all the same
                if self._writer.recover():
                    found = listing(self._files)
        known = self._ledger.everything()
        first = not self._ledger.setting("compared")
        read = {entry.path: read for entry in to_read(known, found) if (read := self._read(entry.path))}
        judgement = judge(known, found, read, is_buried=self._ledger.is_buried, accept=accept)
        if judgement.comparison.frozen:
            return self._freeze(judgement.comparison.frozen)
        rescued: tuple[str, ...] = ()
        with contextlib.suppress(VaultReadOnly):
            rescued = self._files.sweep(tuple(found.leftovers))
        comparison = replace(judgement.comparison, rescued=rescued)
        with self._ledger.changing():
            for gone in judgement.buried:
                self._ledger.bury(gone.id, self._ledger.titles_of(gone), gone.project, at=self._clock(), because="deleted")
            self._ledger.rewrite(judgement.forgotten, judgement.seen, judgement.originals)
            if first:
                self._learn_from_the_trash()
                self._ledger.set("compared", "yes")
            for id in judgement.lifted:
                self._ledger.lift(id)
            if accept and found.bare:
                self._ledger.forget_layout()
            self._ledger.set_problems(comparison.problems)
            self._ledger.set("frozen", "")
        return comparison

    def _learn_from_the_trash(self) -> None:
        """With a new ledger, the vault's trash still tells what was thrown away."""
        for path in trashed_notes(self._files):
            read = self._read(path)
            self._unread.pop(path, None)
            if read is not None and isinstance(note := read[0], Note) and note.id and self._ledger.by_id(note.id) is None:
                titles = (note.title, *note.aliases)
                self._ledger.bury(note.id, titles, note.project, at=self._clock(), because="in the trash")

    def _freeze(self, reason: str) -> Comparison:
        if self.frozen != reason:
            self._ledger.set("frozen", reason)
        return Comparison(frozen=reason)

    def _missing(self, reason: str) -> VaultMissing:
        return VaultMissing(
            f"the vault at {self.root} is not complete: {reason}",
            hint=f"mount its disk or bring the notes back; if you deleted them, run `{ACCEPT_COMMAND}`",
        )

    def _must_be_there(self) -> None:
        if not self._files.is_there():
            raise no_vault(self.root) if self._ledger.is_empty() else self._missing("the folder is not there")
        if not self._looks_there(None):
            raise self._missing(f"{self.root} holds nothing of it")

    def _looks_there(self, found: Listing | None) -> bool:
        """A folder without a trace of what we know is a mount point without its disk."""
        if found is not None and found.marked:
            return True
        if self._files.exists(".obsidian"):
            return True
        landmarks = self._ledger.landmarks()
        return not landmarks or any(map(self._files.exists, landmarks))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Writer]:
        with self._lock.held() as outermost:
            if outermost:
                if self.frozen and (still := self._compare(accept=False).frozen):
                    raise self._missing(still)
                self._must_be_there()
                self._writer.recover()
            yield self._writer

    def find(self, name: str) -> Note:
        """By id, path, file name, title, alias, or a beginning that only one note has. Raises `NoteNotFound`."""
        known = self._find(name)
        note = self.read(known.path)
        if note is None:
            reason = self._unread.get(known.path, "it is gone")
            raise NoteNotFound(f"{known.path} cannot be read: {reason}", hint="mend it in an editor; we leave it as it is")
        return note

    def _find(self, name: str) -> Known:
        try:
            known = self._ledger.at(self._inside(name)) or finding.find(self._ledger, name)
        except NoteNotFound:
            known = None
        if known is None or not self._files.exists(known.path):  # what we know is old
            self.compare()
            known = self._ledger.at(self._inside(name)) or finding.find(self._ledger, name)
        return known

    def _inside(self, name: str) -> str:
        """The vault path of a path as the shell gives it; empty for one that leads elsewhere, or is none."""
        try:
            return Path(name).expanduser().absolute().relative_to(self.root.absolute()).as_posix()
        except (ValueError, RuntimeError, OSError):
            return ""

    def notes_of(self, provider: str, session: str) -> list[str]:
        """The paths of the notes that rest on a session."""
        return sorted(known.path for known in self._ledger.named("session", f"{provider}:{session}"))

    def plan(self, drafts: Sequence[Draft]) -> list[Action]:
        """What `carry_out` would do with them; see `planning`."""
        return planning.plan(drafts, gather(drafts, self._ledger, self.read))

    def carry_out(self, actions: Iterable[Action]) -> list[Outcome]:
        """Each action on its own, in order; doing one twice is doing it once."""
        outcomes: list[Outcome] = []
        for action in actions:
            with self._writing() as writer:
                match action:
                    case Create(note=note):
                        outcomes.append(writer.create(note))
                    case Amend(id=id):
                        self._follow(id)
                        outcomes.append(writer.amend(action))
                    case Supersede(old_id=id):
                        self._follow(id)
                        outcomes.append(writer.supersede(action))
                    case Skip(title=title, because=because):
                        outcomes.append(Skipped(title=title, because=because))
                    case _:
                        assert_never(action)
        return outcomes

    def _follow(self, id: str) -> None:
        """Where a note is not where it was, look where it is now."""
        known = self._ledger.by_id(id)
        if known is not None and not self._files.exists(known.path) and (frozen := self._compare(accept=False).frozen):
            raise self._missing(frozen)

    def remember(
        self,
        text: str,
        *,
        kind: NoteKind = NoteKind.FACT,
        title: str = "",
        project: str = "",
        scope: Scope | None = None,
        session: str = "",
        key: str = "",
        tags: Sequence[str] = (),
        origin: Origin = "user",
        evidence: Sequence[str] = (),
        importance: int = 2,
        expires: datetime | None = None,
    ) -> Note:
        """Write a note now; it is on disk when this returns. Without ``scope``: the project's if one is given, else everybody's.

        The same words again are the same note. With a ``key``, the note of that key (in its scope and project) says this from
        now on; if its owner has edited it, the new words are added instead. Asking for what was once deleted brings it back.
        """
        asked = remembered(
            text,
            at=self._clock(),
            kind=kind,
            title=title,
            project=project,
            scope=scope,
            session=session,
            key=key,
            tags=tags,
            origin=origin,
            evidence=evidence,
            importance=importance,
            expires=expires,
        )
        with self._writing() as writer:
            known = self._remembered_before(asked)
            if known is not None and asked.status is NoteStatus.PROPOSED and known.status == NoteStatus.ACCEPTED.value:
                known, asked = None, replace(asked, key="")  # what a tool says does not change what a person stands by
            if known is not None:
                outcome = writer.restate(known, asked)
                if isinstance(outcome, LeftAlone):
                    raise KiteError(
                        f"{known.path} cannot be changed: {outcome.because}", hint="mend it in an editor, and try again"
                    )
                path = known.path
            else:
                self._ledger.lift(asked.id)
                self._ledger.lift_title(asked.title, asked.project)
                created = writer.create(asked)
                if isinstance(created, Skipped):
                    raise AssertionError(f"a new note was refused: {created.because}")
                path = created.path
        return self._note_at(path)

    def _remembered_before(self, asked: Note) -> Known | None:
        if asked.key:
            return next(iter(self._ledger.named("key", keyed(asked.scope, asked.project, asked.key))), None)
        alike = self._ledger.by_body(body_key(asked.body))
        same = (asked.kind.value, asked.project)
        standing = (NoteStatus.ACCEPTED.value, NoteStatus.PROPOSED.value)
        return next((one for one in alike if one.id and (one.kind, one.project) == same and one.status in standing), None)

    def forget(self, name: str) -> Forgotten:
        """Move a note (named as for `find`) into the vault's trash; it is never written again, under this id or another."""
        known = self._find(name)
        with self._writing() as writer:
            trashed = writer.forget(known)
        self._unread.pop(known.path, None)
        return Forgotten(id=known.id, path=known.path, trashed=trashed)

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
        known = self._find(name)
        with self._writing() as writer:
            outcome = writer.set_properties(known, {"status": status.value})
        if isinstance(outcome, LeftAlone):
            raise KiteError(f"{known.path} cannot be changed: {outcome.because}", hint="mend it in an editor, and try again")
        return self._note_at(known.path)

    def mend_links(self) -> list[str]:
        """Where a note that ours link to was deleted, turn those links into plain words; bodies that people edited stay.

        Says which notes were changed.
        """
        with self._writing() as writer:
            return sorted({path for key in self._ledger.dead_ends() for path in writer.unlink(key)})

    def is_ours(self, note: Note) -> bool:
        """Whether its body is as we wrote it."""
        try:
            text = self._files.read(note.path).data.decode()
        except (OSError, CannotRead, UnicodeDecodeError):
            return False
        return self._writer.is_ours(note.id, text)

    def unresolved_links(self) -> list[links.Unresolved]:
        """For ``kmem verify``. Reads every note."""
        return links.unresolved(self)

    def _note_at(self, path: str) -> Note:
        note = self.read(path)
        if note is None:
            raise NoteNotFound(f"{path} is gone", hint="somebody has just moved or deleted it")
        return note
