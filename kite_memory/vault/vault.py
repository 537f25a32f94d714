"""The vault: a folder of markdown notes that its owner and this program both write to, and its owner wins."""

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, assert_never

from kite_memory.errors import KiteError, NoteNotFound, VaultFolderWrong, VaultMissing, VaultReadOnly
from kite_memory.model.look import Problem
from kite_memory.model.note import Entry, Note, NoteKind, NoteStatus, Scope
from kite_memory.model.plan import Action, Amend, Contest, Create, Ruling, Skip, Supersede, Surround, Surroundings
from kite_memory.model.record import Origin
from kite_memory.vault import finding, lifecycle, links, planning
from kite_memory.vault.comparison import Comparison, judge, missing_some, to_read
from kite_memory.vault.drafting import Draft, remembered
from kite_memory.vault.files import OWN_PREFIX, CannotRead, Content, Files, Stamp, no_vault
from kite_memory.vault.folders import OutsideVault
from kite_memory.vault.keyed_notes import KeyedNotes
from kite_memory.vault.ledger import Known, Ledger, link_key
from kite_memory.vault.lifecycle import Rulings
from kite_memory.vault.listing import (
    COPY_REASON,
    GENERATED,
    Listing,
    is_copy_of,
    leftovers,
    listing,
    may_be_of,
    trashed_notes,
)
from kite_memory.vault.lock import WriterLock
from kite_memory.vault.notefile import FOLDERS, Unreadable, parse
from kite_memory.vault.plan_context import around_each, gather, restated
from kite_memory.vault.wording import body_key, digest
from kite_memory.vault.writing import Amended, LeftAlone, Outcome, Skipped, Writer

_SAMPLE = 50

ACCEPT_COMMAND = "kmem verify --accept-missing"
"""Named in hints: what a person runs to say that the notes are gone on purpose."""


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
        self._lock = WriterLock(ledger_path.with_name(ledger_path.name + ".lock"))
        self._writer = Writer(self._files, self._ledger, clock)
        self._unread: dict[str, str] = {}
        self.keys = KeyedNotes(
            self._ledger,
            writing=self._writing,
            read=self._read_as_known,
            read_again=self._read_again,
            text=self._text,
            exists=self._files.exists,
            follow=self._follow_path,
            clock=clock,
        )

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
            for folder in (".obsidian", "templates"):
                self._files.sweep(leftovers(self._files, folder))
            wrong: VaultFolderWrong | None = None
            for source in sorted(path for path in template.rglob("*") if path.is_file()):
                path = source.relative_to(template).as_posix()
                if self._ledger.gave(path) or (theirs and path.startswith(".obsidian/")):
                    continue
                try:
                    self._lay_out(source, path)
                except VaultFolderWrong as error:
                    wrong = error
                    continue
                self._ledger.give(path)
            if wrong:
                raise wrong

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
        apart = {problem.file for problem in self._ledger.notes.problems() if problem.reason == COPY_REASON}
        yield from (entry for entry in listing(self._files).entries if entry.path not in apart)

    def wrong_folders(self) -> list[str]:
        """Folders that notes are written to by their kind and that are files or links: such notes wait."""
        places = (self.root / folder for folder in dict.fromkeys(FOLDERS.values()))
        return [place.name for place in places if place.is_symlink() or (place.exists() and not place.is_dir())]

    def known(self) -> list[Known]:
        """Every note as of the last comparison, unread."""
        return self._ledger.notes.everything()

    def waiting(self) -> list[Known]:
        """Those that may wait for their owner's word, as of the last comparison, unread. Raises `VaultMissing` if all are gone."""
        if not self._ledger.is_empty():
            self._must_be_there()
        return self._ledger.notes.waiting()

    def on_branches(self) -> list[str]:
        """The paths of the notes that hold on a branch alone, as of the last comparison."""
        return [known.path for known in self._ledger.notes.on_branches() if known.id]

    def to_review(self) -> list[Known]:
        """Those that a person is asked about, each by itself; see `Ledger.to_review`. Raises `VaultMissing` as `waiting` does."""
        if not self._ledger.is_empty():
            self._must_be_there()
        return self._ledger.notes.to_review()

    def review_count(self) -> int:
        """How many a person is asked about, as of the last comparison; also of a vault that is away."""
        return len(self._ledger.notes.to_review())

    def known_at(self, paths: Iterable[str]) -> list[Known]:
        """What is known of these files, where anything is."""
        return [known for path in paths if (known := self._ledger.notes.at(path)) is not None]

    def is_as_known(self, path: Path) -> bool:
        """Whether a file of the vault is as it was last seen, or is one that we are just writing."""
        if path.name.startswith(OWN_PREFIX):
            return True
        try:
            status = path.lstat()
        except OSError:
            status = None
        inside = self._inside(str(path))
        known = self._ledger.notes.at(inside) if inside else None
        if known is None or status is None:
            return False
        return (known.size, known.mtime_ns) == (status.st_size, status.st_mtime_ns)

    def has_project(self, project: str) -> bool:
        """Whether a note belongs to it, as of the last comparison."""
        return self._ledger.notes.has_project(project)

    def others(self) -> Iterator[str]:
        """Files that are not notes, which notes may link to."""
        yield from listing(self._files).others

    def raw(self, path: str) -> bytes | None:
        """A file of the vault as it is; ``None`` where it is gone, or nothing that we read."""
        try:
            return self._files.read(path).data
        except (OSError, CannotRead, OutsideVault):
            return None

    def read(self, path: str) -> Note | None:
        """``None`` for what is no note, or none that can be read: then `problems` says why."""
        read = self._read_as_known(path)
        return read[0] if read is not None else None

    def _read_as_known(self, path: str) -> tuple[Note, Stamp] | None:
        """With the id that the ledger knows it by."""
        read = self._read(path)
        if read is None:
            return None
        note, stamp = read
        if isinstance(note, Unreadable):
            return None
        known = self._ledger.notes.at(path)
        if known is not None and known.twin and note.id == known.id:
            note = replace(note, id="")
        elif not note.id and known is not None and not known.twin:
            note = replace(note, id=known.id)
        if note.anchors and (since := self._ledger.notes.drift(path)) is not None:
            note = replace(note, drifted=since)
        return note, stamp

    def _read_again(self, known: Known) -> Note | None:
        """A note that the ledger has just told of, and that is no copy. From memory where its file has not changed."""
        read = self._read(known.path, self._files.read_again)
        if read is None or isinstance(read[0], Unreadable):
            return None
        return read[0] if read[0].id else replace(read[0], id=known.id)

    def _text(self, path: str) -> str:
        try:
            return self._files.read(path).data.decode()
        except (OSError, CannotRead, UnicodeDecodeError) as error:
            raise NoteNotFound(f"{path} cannot be read", hint="somebody has just moved or changed it") from error

    def _read(self, path: str, reading: Callable[[str], Content] | None = None) -> tuple[Note | Unreadable, Stamp] | None:
        """``None`` where there is no file. One that cannot even be opened has a stamp that will not match the next time."""
        try:
            content = (reading or self._files.read)(path)
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
        found = {(problem.file, problem.reason) for problem in self._ledger.notes.problems()} | set(self._unread.copy().items())
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
        known = self._ledger.notes.everything()
        first = not self._ledger.setting("compared")
        read = {entry.path: read for entry in to_read(known, found) if (read := self._read(entry.path))}
        if copied := self._copies(known, found, read):
            found.sets_apart(copied, COPY_REASON)
            known = [one for one in known if one.path not in copied]
            read = {entry.path: read[entry.path] for entry in to_read(known, found) if entry.path in read}
        judgement = judge(known, found, read, is_buried=self._ledger.tombstones.is_buried, accept=accept)
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
        """Keep in mind what links to them now lead nowhere should say. Obsidian says it itself where it did the renaming."""
        moved = self._moved()
        for old, new in renamed:
            moved = {key: new if path == old else path for key, path in moved.items()}
            if (
                link_key(old) != link_key(new)
                and not self._leads(link_key(old))
                and self._ledger.notes.named("link", link_key(old))
            ):
                moved[link_key(old)] = new
        if moved != self._moved():
            self._ledger.set("moved", json.dumps(moved))
        return bool(moved)

    def _moved(self) -> dict[str, str]:
        """Where a note lies now to which links led under another name."""
        return dict(json.loads(self._ledger.setting("moved") or "{}"))

    def _copies(
        self, known: Sequence[Known], found: Listing, read: Mapping[str, tuple[Note | Unreadable, Stamp]]
    ) -> frozenset[str]:
        """Files beside a note that are versions of it which a sync tool has put there, under a name that may be a person's, too."""
        there = {entry.path for entry in found.entries}
        ids = {one.path: one.id for one in known if one.path in there}
        homes = {id: path for path, id in ids.items() if id}
        ids |= {path: note.id for path, (note, _) in read.items() if isinstance(note, Note)}

        def text_of(path: str) -> str:
            note = read[path][0] if path in read else self.read(path)
            return note.body if isinstance(note, Note) else ""

        def is_copy(path: str, original: str) -> bool:
            both = path in ids and original in ids
            return both and is_copy_of(ids[path], ids[original], lambda: (text_of(path), text_of(original)))

        suspects = {*read, *(homes[ids[path]] for path in read if ids.get(path, "") in homes)}
        return frozenset(path for path in suspects if any(is_copy(path, each) for each in may_be_of(path, there)))

    def _learn_from_the_trash(self) -> None:
        """With a new ledger, the vault's trash still tells what was thrown away."""
        for path in trashed_notes(self._files):
            read = self._read(path)
            self._unread.pop(path, None)
            if read is not None and isinstance(note := read[0], Note) and note.id and self._ledger.notes.by_id(note.id) is None:
                titles = (note.title, *note.aliases)
                self._ledger.tombstones.bury(note.id, titles, note.project, at=self._clock(), because="in the trash")

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

    def _misses_many(self) -> bool:
        """Whether so many of a few notes from all over the vault are missing that all should be looked for before it is written to.

        Else a sync that has only begun, or a disk that went since the last look, would be written into as if nothing were missing.
        """
        sample = self._ledger.notes.sample(_SAMPLE)
        return missing_some(len(sample), sum(not self._files.exists(path) for path in sample))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Writer]:
        with self._lock.held() as outermost:
            if outermost:
                if (self.frozen or self._misses_many()) and (frozen := self._compare(accept=False).frozen):
                    raise self._missing(frozen)
                self._must_be_there()
                self._writer.recover()
            yield self._writer

    def called(self, name: str) -> Note | None:
        """By its id or its path alone, where the ledger knows it. Raises `VaultMissing` rather than say that it is gone."""
        name = _as_text(name)
        known = self._ledger.notes.by_id(name) or self._ledger.notes.at(name)
        return self._read_where_it_is(known.path) if known is not None else None

    def titled(self, title: str) -> Iterator[Note]:
        """Those of this title, or of one that differs in case and punctuation alone."""
        for known in self._ledger.notes.by_title(_as_text(title)):
            if (note := self._read_where_it_is(known.path)) is not None:
                yield note

    def must_be_whole(self) -> None:
        """Raises `VaultMissing` where so much is missing that nobody may say of a note that it is gone."""
        if frozen := self.compare().frozen:
            raise self._missing(frozen)

    def find(self, name: str) -> Note:
        """By id, path, file name, title, alias, or a beginning that only one note has. Raises `NoteNotFound`."""
        known = self._find(name)
        note = self.read(known.path)
        if note is None:
            reason = self._unread.get(known.path, "it is gone")
            raise NoteNotFound(f"{known.path} cannot be read: {reason}", hint="mend it in an editor; we leave it as it is")
        return note

    def _find(self, name: str) -> Known:
        name = _as_text(name)
        try:
            known = self._ledger.notes.at(self._inside(name)) or finding.find(self._ledger.notes, name)
        except NoteNotFound:
            known = None
        if known is None or not self._files.exists(known.path):  # what we know is old
            self.compare()
            known = self._ledger.notes.at(self._inside(name)) or finding.find(self._ledger.notes, name)
        return known

    def _inside(self, name: str) -> str:
        """The vault path of a path as the shell gives it; empty for one that leads elsewhere, or is none."""
        try:
            return Path(name).expanduser().absolute().relative_to(self.root.absolute()).as_posix()
        except (ValueError, RuntimeError, OSError):
            return ""

    def notes_of(self, provider: str, session: str) -> list[str]:
        """The paths of the notes that rest on a session."""
        return sorted(known.path for known in self._ledger.notes.named("session", f"{provider}:{session}"))

    def known_as(self, id: str) -> Known | None:
        """The note of this id as of the last look at it, or the one that it went into; unread."""
        return self._ledger.notes.by_id(id) or self._ledger.notes.by_id(self._ledger.relations.absorbed_by(id))

    def saying(self, text: str) -> Known | None:
        """A note that stands and says these very words, unread."""
        standing = (NoteStatus.ACCEPTED.value, NoteStatus.PROPOSED.value)
        return next((one for one in self._ledger.notes.by_body(body_key(text)) if one.id and one.status in standing), None)

    def holds_words(self, key: str) -> bool:
        """Whether any note, a person's own as well, says what has this `wording.body_key`."""
        return bool(self._ledger.notes.by_body(key))

    def led_to(self, target: str) -> Known | None:
        """Where a link to ``target`` leads, unread."""
        return self._ledger.notes.by_stem(link_key(target))

    def is_buried(self, id: str, title: str = "", project: str = "") -> bool:
        """Whether its owner has deleted the note of this id, the one that it went into, or one of this title."""
        gone = self._ledger.tombstones.is_buried(id) or self._ledger.tombstones.is_buried(self._ledger.relations.absorbed_by(id))
        return gone or (bool(title) and self._ledger.tombstones.is_title_buried(title, project))

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
            self._follow_path(path)
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
            for contest in lifecycle.contests(draft.note, draft.rejected, near, settled)
        ]

    def settle(self, newer: str, older: str, ruling: Ruling) -> list[str]:
        """A person says, of two notes by their ids, what the newer does to the older. Says which notes were changed."""
        with self._writing() as writer:
            self._follow(newer)
            self._follow(older)
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
        with self._writing() as writer:
            for newer, older, said in waiting:
                if said:
                    changed += writer.take_back(newer, older)
                elif not writer.awaits_a_merge(newer, older) and isinstance(marked := writer.replace_by(newer, older), Amended):
                    changed.append(marked.path)
        return changed

    def restate(self, note: Note, *, addition: str) -> Outcome:
        """Let the note of this id say what ``note`` does; where its owner has edited it, only ``addition`` is added."""

        def again(text: str, old: Note) -> str | None:
            return restated(text, old, note, ours=self._writer.is_ours(note.id, text), addition=addition, leads=self._leads)

        with self._writing() as writer:
            self._follow(note.id)
            known = self._ledger.notes.by_id(note.id)
            if known is None:
                return Skipped(title=note.title, because="you deleted it" if self.is_buried(note.id) else "it is not there")
            return writer.edit(known, again)

    def _leads(self, target: str) -> bool:
        """Whether a link finds a note."""
        if "/" in target:
            return self._ledger.notes.at(target if target.endswith(".md") else f"{target}.md") is not None
        return self._ledger.notes.by_stem(link_key(target)) is not None

    @contextlib.contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Nothing else of ours writes in here, in whatever process: what is planned is carried out on what it was planned for.

        Raises `VaultMissing` where the vault has vanished, whole or in large part.
        """
        with self._writing():
            yield

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
        if (known := self._ledger.notes.by_id(id)) is not None:
            self._follow_path(known.path)

    def _follow_path(self, path: str) -> None:
        with self._lock.held():
            if not self._files.exists(path) and (frozen := self._compare(accept=False).frozen):
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
        with self._writing() as writer:
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
        with self._writing() as writer:  # first: it may look for what is missing, and learn that the note is another file by now
            known = self._find(name)
            trashed, relinked = writer.forget(known)
        self._unread.pop(known.path, None)
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
        with self._writing() as writer:
            known = self._find(name)
            outcome = writer.set_properties(known, {"status": status.value})
        if isinstance(outcome, LeftAlone):
            raise KiteError(f"{known.path} cannot be changed: {outcome.because}", hint="mend it in an editor, and try again")
        return self._note_at(known.path)

    def settled(self) -> frozenset[tuple[str, str]]:
        """All pairs of notes, by their ids, of which it was said before what the newer does to the older."""
        return self._ledger.relations.all_settled()

    def ruled(self, newer: str, older: str, ruling: Literal["replaces", "neither"]) -> None:
        """What is said of a pair holds from now on; the notes themselves say it already, or no longer."""
        self._ledger.relations.rule(newer, older, ruling)

    def text(self, path: str) -> str:
        """The whole file as it is. Raises `NoteNotFound` where it cannot be read."""
        return self._text(path)

    def rewrite(self, path: str, before: str, after: str) -> bool:
        """Let a note say ``after``; not where it no longer says ``before``, to the letter. What was ours stays ours."""
        with self._writing() as writer:
            known = self._ledger.notes.at(path)
            if known is None:
                return False
            outcome = writer.edit(known, lambda text, note: after if text == before else None)
            return isinstance(outcome, Amended)

    def annotate(self, id: str, changes: Mapping[str, object]) -> bool:
        """Set properties of a note, and nothing else of it; an empty text takes one away. Whether anything has changed."""
        with self._writing() as writer:
            self._follow(id)
            known = self._ledger.notes.by_id(id)
            return known is not None and isinstance(writer.set_properties(known, changes), Amended)

    def mark_drift(self, id: str, since: datetime | None) -> None:
        """Remember since when code that a note rests on is another, or that it is as it was. Its file is left alone."""
        with self._writing():
            if (known := self._ledger.notes.by_id(id)) is not None:
                self._ledger.notes.mark_drift(known.path, since)

    def unmake(self, path: str, text: str) -> bool:
        """Into the trash with a note that we have made and that nobody has touched since. Unlike `forget`, it may be made again."""
        with self._writing():
            try:
                if self._files.read(path).data != text.encode():
                    return False
            except (OSError, CannotRead, OutsideVault):
                return False
            self._files.to_trash(path)
            self._ledger.notes.drop(path)
            return True

    def mend_links(self) -> list[str]:
        """Let links to a note that was renamed lead to it again, and turn those to one that was deleted into plain words; bodies
        that people edited stay.

        Says which notes were changed.
        """
        with self._writing() as writer:
            moved = self._moved()
            changed = sorted({path for key in self._ledger.notes.dead_ends() for path in writer.relink(key, moved.get(key, ""))})
            self._ledger.set("moved", "")
            self._ledger.set("unmended", "")
            return changed

    @property
    def unmended(self) -> bool:
        """Whether notes were deleted, put back or renamed since `mend_links`, whoever it was that noticed."""
        return bool(self._ledger.setting("unmended"))

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

    def page(self, name: str) -> str:
        """A page at the top of the vault that is made from notes; empty where there is none. Raises `KiteError` for no text."""
        try:
            return self._files.read(name).data.decode()
        except FileNotFoundError:
            return ""
        except (CannotRead, UnicodeDecodeError) as error:
            raise KiteError(f"{self.root / name} cannot be read: {error}", hint="mend it in an editor, or move it away") from error

    def put_page(self, name: str, text: str, *, before: str) -> bool:
        """Whether it stands there now; not where the page is no longer what it was ``before``."""
        if name.casefold() not in GENERATED:
            raise ValueError(name)
        with self._writing():
            if self._files.is_protected(name):
                raise KiteError(f"{self.root / name} is write-protected", hint="allow writing to it, or move it away")
            if before:
                return self._files.replace(name, text.encode(), expected=digest(before)) is not None
            filled = self._files.fill(name, text.encode())
            try:
                self._files.publish(filled)
            except FileExistsError:  # also where it is there and empty
                self._files.discard(filled.temporary)
                return self._files.replace(name, text.encode(), expected=digest("")) is not None
            return True

    def drop_page(self, name: str, text: str) -> bool:
        """Whether a page that says just this is in the trash now."""
        if name.casefold() not in GENERATED:
            raise ValueError(name)
        with self._writing():
            if self.page(name) != text:
                return False
            self._files.to_trash(name)
            return True

    def noted(self, name: str) -> str:
        """What was kept under this name with `note_down`; empty where nothing was."""
        return self._ledger.setting(f"noted: {name}")

    def note_down(self, name: str, text: str) -> None:
        self._ledger.set(f"noted: {name}", text)

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


def _as_text(name: str) -> str:
    """What a shell gives may be no text; no note is called so."""
    return name.encode("utf-8", "replace").decode()
