"""Write changes to the vault, one note at a time, so that after a crash at any point a repeat is safe.

A new note is complete on disk under a temporary name, then its intent is committed, then it gets its name, then the ledger records
it. The temporary name vanishes in the step in which the real one appears. So an intent found later can be resolved: with the
temporary file there, the note was never published; without it, it was, and if it is not where it was put, its owner has moved or
deleted it since.
"""

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath

from kite_memory.errors import KiteError
from kite_memory.model.note import REVIEW_LAPSED, Amend, Note, NoteStatus, Supersede
from kite_memory.vault import links
from kite_memory.vault.files import MAX_NOTE_BYTES, CannotRead, Content, Files
from kite_memory.vault.folders import OutsideVault
from kite_memory.vault.ledger import FORGOTTEN, Intent, KnownFile, Ledger, link_key
from kite_memory.vault.lifecycle import holds_wherever
from kite_memory.vault.listing import GENERATED, listing
from kite_memory.vault.notefile import (
    REVIEW,
    Raw,
    UnreadableNote,
    body_of,
    moment,
    parse,
    render,
    with_addition,
    with_body,
    with_properties,
)
from kite_memory.vault.wording import digest, stem_key, title_key, unique

MOST_WAITING = 30
"""Notes that a person goes through in one review: never do more wait."""
_ATTEMPTS = 3
_SUFFIX = re.compile(r"\.\w{1,12}$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A new note, as it is on disk."""

    id: str
    path: str
    note: Note


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyWritten:
    """Nothing had to be changed; also the result of a repeat after a crash."""

    id: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Amended:
    """A changed note, as it is on disk."""

    id: str
    path: str
    note: Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseded:
    """Result of replacing a note.

    ``path`` is the new note's, ``old_path`` the one that is marked as replaced by it.
    """

    id: str
    path: str
    old_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    title: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftAlone:
    """A note that cannot be changed without risk to what its owner wrote."""

    id: str
    path: str
    because: str


Outcome = Written | AlreadyWritten | Amended | Superseded | Skipped | LeftAlone

Edit = Callable[[str, Note], str | None]
"""Maps a file's text (and the note in it) to the new text; ``None`` where that cannot be done safely."""


class Writer:
    """Writes notes. Every method needs the writer lock to be held, and the vault to be where it should be."""

    def __init__(self, files: Files, ledger: Ledger, clock: Callable[[], datetime]) -> None:
        self._files = files
        self._ledger = ledger
        self._clock = clock
        self._others: links.Resolver | None = None
        self._lapsed: set[str] = set()

    def recover(self) -> bool:
        """Finish or undo what an interrupted writer had begun. Returns whether there was anything."""
        self._others = None  # its owner may have added files since the lock was released
        intents = self._ledger.intents()
        for intent in intents:
            if intent.doing == "create":
                self._settle(intent)
            else:
                self._finish_forgetting(intent)
        return bool(intents)

    def _settle(self, intent: Intent) -> None:
        left = self._files.exists(intent.temporary)
        note = self._note_at(intent.path)
        with self._ledger.changing():
            if note is not None and note[0].id == intent.id:
                self._ledger.notes.see(note[0], note[1].stamp, id=intent.id)
            elif not left:  # the next comparison finds it, or that it was deleted
                self._ledger.notes.put(_absent(intent))
            self._ledger.done(intent.id)
        if left:
            self._files.remove_if_empty(intent.path)
            self._files.discard(intent.temporary)

    def create(self, note: Note, *, by: str = "") -> Written | AlreadyWritten | Skipped:
        ledger = self._ledger
        if ledger.tombstones.is_buried(note.id) or ledger.tombstones.is_title_buried(note.title, note.project):
            return Skipped(title=note.title, because="you deleted it")
        if known := ledger.notes.by_id(note.id) or ledger.notes.by_id(ledger.relations.absorbed_by(note.id)):
            return AlreadyWritten(id=note.id, path=known.path)
        note = self.with_room(self._with_links_that_lead_somewhere(note))
        folder, _, name = note.path.rpartition("/")
        taken: set[str] = set()
        while True:
            stem = unique(name.removesuffix(".md"), lambda key: key in taken or self._is_taken(key))
            placed = replace(note, path=f"{folder}/{stem}.md" if folder else f"{stem}.md")
            if (written := self._publish(placed, by)) is not None:
                return Written(id=note.id, path=placed.path, note=written)
            if (there := self._note_at(placed.path)) and there[0].id == note.id:
                ledger.notes.see(there[0], there[1].stamp, id=note.id)
                return AlreadyWritten(id=note.id, path=placed.path)
            taken.add(stem_key(stem))

    def with_room(self, note: Note) -> Note:
        """Return a note that is about to wait for review as it may.

        Where as many wait as a person goes through, the least important lapses first: another, or this one.
        """
        if not note.awaits_review:
            return note
        while len(queue := self._ledger.notes.to_review()) >= MOST_WAITING:
            there = [found[0] for each in queue if (found := self._note_at(each.path)) is not None]
            least = min((note, *there), key=first_to_lapse)
            if least is note:
                proposed = note.status is NoteStatus.PROPOSED
                return replace(note, status=NoteStatus.ARCHIVED) if proposed else replace(note, review=REVIEW_LAPSED)
            known = self._ledger.notes.at(least.path)
            if known is None or not isinstance(self.set_properties(known, lapsed(least)), Amended):
                break  # a file that cannot be changed keeps its place
            self._lapsed.add(least.path)
        return note

    def take_lapsed(self) -> set[str]:
        """Return the paths of notes that have left the review since the last call, to make room for others."""
        taken, self._lapsed = self._lapsed, set()
        return taken

    def _publish(self, note: Note, by: str) -> Note | None:
        """Write a new note and return it as it is on disk; ``None`` if its name is taken."""
        text = render(note)
        if len(text) > MAX_NOTE_BYTES // 4:
            raise _not_a_note(note, "too large")
        filled = self._files.fill(note.path, text.encode())
        written = _parsed_or_not(text, note.path, filled.stamp.mtime_ns)
        if isinstance(written, UnreadableNote):
            self._files.discard(filled.temporary)
            raise _not_a_note(note, written.reason)
        intent = Intent(
            id=note.id, doing="create", path=note.path, temporary=filled.temporary, title=note.title, project=note.project
        )
        try:
            with self._ledger.changing():
                self._ledger.bodies.wrote(note.id, digest(body_of(text)))
                self._ledger.intend(intent)
            self._files.publish(filled)
            with self._ledger.changing(lasting=False):  # if it is lost, the next writer finds the intent
                self._ledger.notes.see(written, filled.stamp, id=note.id, by=by)
                self._ledger.done(note.id)
        except FileExistsError:
            self._ledger.done(note.id)
            self._files.discard(filled.temporary)
            return None
        except KiteError:
            with contextlib.suppress(KiteError, OSError):  # else the next writer does it
                self._settle(intent)
            raise
        return written

    def amend(self, action: Amend) -> Amended | AlreadyWritten | Skipped | LeftAlone:
        known = self._ledger.notes.by_id(action.id)
        if known is None:
            return Skipped(
                title=action.path, because="you deleted it" if self._ledger.tombstones.is_buried(action.id) else "it is not there"
            )
        addition = self.leading_somewhere(action.addition)

        def amended(text: str, note: Note) -> str | None:
            evidence = (*note.evidence, *(one for one in action.evidence if one not in note.evidence))
            changes: dict[str, object] = {"evidence": evidence} if evidence != note.evidence else {}
            if changes and note.status is NoteStatus.ARCHIVED:
                changes["status"] = NoteStatus.ACCEPTED.value  # it was repeated in a session
            if changes and note.importance < action.importance:
                changes["importance"] = Raw(text=str(action.importance))
            changed = with_properties(text, changes) if changes else text
            if changed is None or not addition or addition in note.body:
                return changed
            return with_addition(changed, addition)

        outcome = self.edit(known, amended)
        if action.absorbs and not isinstance(outcome, LeftAlone):
            self._ledger.relations.absorb(action.absorbs, action.id)
        return outcome

    def supersede(self, action: Supersede) -> Superseded | Written | AlreadyWritten | Skipped | LeftAlone:
        """Create a note and link it with the one it replaces. The old note keeps its text. Without an old one, the new is just
        created.

        A note of one branch does not replace one that holds on others: both stay until it is merged, which
        `NoteRelations.bring_in_line` detects.
        """
        old = self._ledger.notes.by_id(action.old_id)
        there = self._note_at(old.path) if old else None
        if old is None or there is None:
            return self.create(action.note)
        note, stem = action.note, PurePosixPath(old.path).stem
        newer, older = (old.id, note.id) if action.late else (note.id, old.id)
        self._ledger.relations.rule(newer, older, "replacing")
        at_once = holds_wherever(*((there[0], note) if action.late else (note, there[0])))
        if at_once and action.late:
            until = there[0].holds_from
            note = replace(note, status=NoteStatus.SUPERSEDED, superseded_by=stem, valid_until=until)
        elif at_once:
            note = replace(note, supersedes=(stem,), valid_from=note.holds_from)
        created = self.create(note)
        if isinstance(created, Skipped):
            self._ledger.relations.rule(newer, older, "neither")
            return created
        if not at_once:
            return created
        outcome = self.replace_by(newer, older)
        if isinstance(outcome, LeftAlone):
            return outcome
        return Superseded(id=created.id, path=created.path, old_path=old.path)

    def replace_by(self, newer: str, older: str) -> Amended | AlreadyWritten | LeftAlone:
        """Mark one note as replacing another, unless it is marked already, and record the change so that it can be undone.

        A note whose file name no link can hold is not linked.
        """
        one, other = self._ledger.notes.by_id(newer), self._ledger.notes.by_id(older)
        new, old = (self._note_at(known.path) if known else None for known in (one, other))
        if one is None or other is None or new is None or old is None:
            return LeftAlone(id=older, path=other.path if other else "", because="it is not there")
        if isinstance(said := self._name_replaced(one, new[0], other), LeftAlone):
            return said
        by = PurePosixPath(one.path).stem
        changes: dict[str, object] = {
            "status": NoteStatus.SUPERSEDED.value,
            "superseded_by": f"[[{by}]]" if links.holds(by) else "",
            "valid_until": moment(new[0].holds_from),
        }
        marked = self.set_properties(other, changes)
        if not isinstance(marked, LeftAlone):
            self._ledger.relations.rule(newer, older, "replaces")
        return marked

    def replace_where_it_holds(self, newer: str, older: str) -> Amended | AlreadyWritten | LeftAlone:
        """Mark a note as replacing another only where it holds: on its branch, in its session, until it expires. The older stays
        as it is.
        """
        one, other = self._ledger.notes.by_id(newer), self._ledger.notes.by_id(older)
        new = self._note_at(one.path) if one else None
        if one is None or other is None or new is None:
            return LeftAlone(id=newer, path=one.path if one else "", because="it is not there")
        return self._name_replaced(one, new[0], other) or AlreadyWritten(id=newer, path=one.path)

    def _name_replaced(self, one: KnownFile, new: Note, other: KnownFile) -> Amended | AlreadyWritten | LeftAlone | None:
        """Name the older note in the newer one, unless it is named already or no link can hold its name: then return ``None``."""
        stem = PurePosixPath(other.path).stem
        if not links.holds(stem) or link_key(stem) in map(link_key, new.supersedes):
            return None
        named = dict.fromkeys((*new.supersedes, stem))
        return self.set_properties(one, {"supersedes": [f"[[{each}]]" for each in named]})

    def holds_less(self, newer: str, older: str) -> bool:
        """Return whether the older holds on branches, in sessions or at times where the newer does not."""
        known = (self._ledger.notes.by_id(newer), self._ledger.notes.by_id(older))
        new, old = (self._note_at(each.path) if each else None for each in known)
        return new is not None and old is not None and not holds_wherever(new[0], old[0])

    def take_back(self, newer: str, older: str) -> list[str]:
        """Remove from both notes that one replaces or conflicts with the other. Returns the notes changed."""
        self._ledger.relations.rule(newer, older, "neither")
        one, other = self._ledger.notes.by_id(newer), self._ledger.notes.by_id(older)
        if one is None or other is None:
            return []
        new, old = link_key(one.path), link_key(other.path)
        newest = self._note_at(one.path)

        def says_so(note: Note) -> bool:
            if links.holds(PurePosixPath(one.path).stem) or newest is None or note.valid_until is None:
                return link_key(note.superseded_by) == new
            return not note.superseded_by and moment(note.valid_until) == moment(newest[0].holds_from)

        def not_replacing(text: str, note: Note) -> str | None:
            changes: dict[str, object] = {}
            for name, held in (("supersedes", note.supersedes), ("conflicts", note.conflicts)):
                if kept := tuple(each for each in held if link_key(each) != old):
                    changes |= {name: [f"[[{each}]]" for each in kept]} if kept != held else {}
                elif held:
                    changes[name] = []
            return with_properties(text, changes) if changes else text

        def not_replaced(text: str, note: Note) -> str | None:
            changes: dict[str, object] = {"superseded_by": "", "valid_until": ""} if says_so(note) else {}
            if any(link_key(each) == new for each in note.conflicts):
                changes["conflicts"] = [f"[[{each}]]" for each in note.conflicts if link_key(each) != new]
            return with_properties(text, changes) if changes else text

        edited = [self.edit(one, not_replacing), self.edit(other, not_replaced)]
        return [outcome.path for outcome in edited if isinstance(outcome, Amended)]

    def remember_again(self, known: KnownFile, note: Note) -> Amended | AlreadyWritten | LeftAlone:
        """Update the tags and expiry of a note whose words are remembered again.

        An expired note stands again; a note that has not expired keeps its expiry unless another is given.
        """

        def again(text: str, old: Note) -> str | None:
            changes: dict[str, object] = {"tags": list(note.tags)} if set(note.tags) - set(old.tags) else {}
            if old.status is NoteStatus.PROPOSED and note.status is NoteStatus.ACCEPTED:
                changes["status"] = note.status.value  # a person's note needs no review
            if note.expires or old.has_expired(self._clock()):
                changes["expires"] = moment(note.expires) if note.expires else ""
            return with_properties(text, changes) if changes else text

        return self.edit(known, again)

    def set_properties(self, known: KnownFile, changes: Mapping[str, object]) -> Amended | AlreadyWritten | LeftAlone:
        return self.edit(known, lambda text, note: with_properties(text, changes))

    def edit(self, known: KnownFile, edit: Edit, *, by: str = "", ours: bool = False) -> Amended | AlreadyWritten | LeftAlone:
        """Change an existing note, unless another program is changing it. A body that counted as ours still does.

        With ``ours``, any body counts as ours afterwards, since all of it is written anew. ``by`` is the author of the change.
        """
        for _ in range(_ATTEMPTS):
            try:
                content = self._files.read(known.path)
                text = content.data.decode()
            except (FileNotFoundError, CannotRead, UnicodeDecodeError):
                return LeftAlone(id=known.id, path=known.path, because="it cannot be read")
            note = _parsed_or_not(text, known.path, content.stamp.mtime_ns)
            if isinstance(note, UnreadableNote):
                return LeftAlone(id=known.id, path=known.path, because=note.reason)
            if note.id not in ("", known.id) or not text.strip():  # another note by now, or caught while being saved
                return LeftAlone(id=known.id, path=known.path, because="it has just been changed")
            new = edit(text, note)
            if new is None:
                return LeftAlone(id=known.id, path=known.path, because="its properties cannot be changed safely")
            if len(new) > MAX_NOTE_BYTES // 4:
                return LeftAlone(id=known.id, path=known.path, because="it would become too large")
            if new == text:
                return AlreadyWritten(id=known.id, path=known.path)
            if self._files.is_protected(known.path):
                return LeftAlone(id=known.id, path=known.path, because="it is write-protected")
            if (body := body_of(new)) != body_of(text) and (ours or self.is_ours(known.id, text)):
                self._ledger.bodies.wrote(known.id, digest(body))
            stamp = self._files.replace(known.path, new.encode(), expected=digest(content.data))
            if stamp is not None:
                written = _parsed(new, known.path, stamp.mtime_ns)
                with self._ledger.changing(lasting=False):  # if it is lost, a comparison reads the file again
                    self._ledger.notes.see(written, stamp, id=known.id, duplicate=known.duplicate, by=by)
                return Amended(id=known.id, path=known.path, note=written)
        return LeftAlone(id=known.id, path=known.path, because="it is being changed")

    def is_ours(self, id: str, text: str) -> bool:
        """Return whether the body in this text is one that we wrote."""
        return self._ledger.bodies.is_ours(id, digest(body_of(text)))

    def forget(self, known: KnownFile) -> tuple[str, list[str]]:
        """Move a note to the trash, never to be written again; return its path there, and the notes that lost their links to it.

        Links are removed from our own notes only. A copy of a note is moved alone: the note stays, and may be written to.
        """
        intent = Intent(
            id=known.id if known.id and not known.duplicate else f"path:{known.path}",
            doing="forget",
            path=known.path,
            temporary="",
            title="" if known.duplicate else known.title,
            project=known.project,
        )
        unmended = self._ledger.setting("unmended")
        self._ledger.intend(intent)
        try:
            trashed = self._finish_forgetting(intent)
        except KiteError:
            if self._files.exists(intent.path):  # an operation reported as failed must not be done later
                self._ledger.done(intent.id)
            raise
        relinked = self.relink(link_key(known.path))
        self._ledger.set("unmended", unmended)
        return trashed, relinked

    def _finish_forgetting(self, intent: Intent) -> str:
        trashed = ""
        with contextlib.suppress(FileNotFoundError):
            trashed = self._files.to_trash(intent.path)
        known = self._ledger.notes.at(intent.path)
        with self._ledger.changing():
            if intent.title:
                titles = (intent.title, *(self._ledger.notes.titles_of(known) if known else ()))
                self._ledger.tombstones.bury(intent.id, titles, intent.project, at=self._clock(), because=FORGOTTEN)
            self._ledger.notes.drop(intent.path)
            self._ledger.set("unmended", "yes")  # after a crash before the links are mended, the next comparison mends them
            self._ledger.done(intent.id)
        return trashed

    def relink(self, key: str, moved: str = "") -> list[str]:
        """Point links to a note that is gone to where it was ``moved``; otherwise turn them into plain text.

        A link in the line of related notes is removed. Changes properties, and bodies that are still ours. Returns the notes
        changed.
        """
        if self._ledger.notes.by_stem(key) is not None:
            return []
        stem = PurePosixPath(moved).stem if moved and self._ledger.notes.at(moved) is not None else ""
        new = stem if links.holds(stem) else ""

        def led(named: tuple[str, ...]) -> list[str]:
            kept = (new if link_key(one) == key else one for one in named)
            return [f"[[{one}]]" for one in dict.fromkeys(kept) if one]

        def instead(link: links.Link) -> str | None:
            if not new or link_key(link.target) != key or self._leads(link.target):
                return None
            return "!" * link.embed + links.write(f"{new}#{link.heading}" if link.heading else new, link.label)

        def mended(text: str, note: Note) -> str | None:
            changes: dict[str, object] = {
                name: led(named)
                for name, named in (("supersedes", note.supersedes), ("conflicts", note.conflicts))
                if key in map(link_key, named)
            }
            if note.superseded_by and link_key(note.superseded_by) == key:
                changes["superseded_by"] = f"[[{new}]]" if new else ""
            changed = with_properties(text, changes) if changes else text
            if changed is None or not self.is_ours(note.id, text):
                return changed
            body = links.replace(body_of(changed), instead)
            gone = links.unlisted(body, lambda link: link_key(link.target) == key and not self._leads(link.target))
            return with_body(changed, gone)

        return [known.path for known in self._ledger.notes.named("link", key) if isinstance(self.edit(known, mended), Amended)]

    def _with_links_that_lead_somewhere(self, note: Note) -> Note:
        return replace(
            note,
            body=self.leading_somewhere(note.body),
            supersedes=tuple(filter(self._may_name, note.supersedes)),
            superseded_by=note.superseded_by if self._may_name(note.superseded_by) else "",
            conflicts=tuple(filter(self._may_name, note.conflicts)),
        )

    def _may_name(self, stem: str) -> bool:
        """Return whether a property that names this note leads to it."""
        return links.holds(stem) and self._leads(stem)

    def leading_somewhere(self, text: str) -> str:
        """Return the text without broken links; a link by a note's title leads to its file instead."""
        if isinstance(text, links.ExistingText):
            return text

        def by_title(link: links.Link) -> str | None:
            if not link.target or link.embed or self._leads(link.target):
                return None
            same = self._ledger.notes.by_title(link.target) or self._ledger.notes.named("alias", title_key(link.target))
            stem = next((name for each in same if links.holds(name := PurePosixPath(each.path).stem)), "")
            return links.write(stem, link.shown) if stem else None

        return links.unlisted(links.replace(text, by_title), lambda link: bool(link.target) and not self._leads(link.target))

    def _leads(self, target: str) -> bool:
        """Return whether a link leads to a note, or to another file in the vault, such as a picture."""
        if not target:
            return False
        if "/" in target:
            note = self._ledger.notes.at(target if target.endswith(".md") else f"{target}.md")
        else:
            note = self._ledger.notes.by_stem(link_key(target))
        return note is not None or self._leads_to_another_file(target)

    def _leads_to_another_file(self, target: str) -> bool:
        """Return whether a link leads to a file that is no note. Lists the vault once per lock, for names with a suffix."""
        if not _SUFFIX.search(target):
            return False
        if self._others is None:
            self._others = links.Resolver((), listing(self._files).others)
        return self._others.follow(target, by_file_only=True) is not None

    def _is_taken(self, key: str) -> bool:
        return f"{key}.md" in GENERATED or self._ledger.notes.by_stem(key) is not None

    def _note_at(self, path: str) -> tuple[Note, Content] | None:
        try:
            content = self._files.read(path)
            note = _parsed_or_not(content.data.decode(), path, content.stamp.mtime_ns)
        except (FileNotFoundError, CannotRead, OutsideVault, UnicodeDecodeError):
            return None
        return None if isinstance(note, UnreadableNote) else (note, content)


def _not_a_note(note: Note, reason: str) -> KiteError:
    return KiteError(f"{note.title!r} cannot be a note: {reason}", hint="say it in fewer words")


def _absent(intent: Intent) -> KnownFile:
    return KnownFile(
        path=intent.path,
        id=intent.id,
        duplicate=False,
        kind="",
        title=intent.title,
        project=intent.project,
        status="",
        size=-1,
        mtime_ns=-1,
    )


def _parsed_or_not(text: str, path: str, mtime_ns: int) -> Note | UnreadableNote:
    at = datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    return parse(text, path, created=at, updated=at)


def _parsed(text: str, path: str, mtime_ns: int) -> Note:
    note = _parsed_or_not(text, path, mtime_ns)
    if isinstance(note, UnreadableNote):
        raise AssertionError(f"we wrote what we cannot read: {note.reason}")
    return note


def lapsed(note: Note) -> dict[str, object]:
    """Return the properties of a waiting note that a person is asked about no more: a proposed one is archived, others stay."""
    return {"status": NoteStatus.ARCHIVED.value} if note.status is NoteStatus.PROPOSED else {REVIEW: REVIEW_LAPSED}


def first_to_lapse(note: Note) -> tuple[int, datetime]:
    """Return the order in which waiting notes lapse where too many wait: the least important first, of these the oldest."""
    return note.importance, note.created
