"""What is known of the vault's notes without opening any: by a person's name for one, as of the last comparison, and for planning.

Planning needs a few look-ups for each draft, however large the vault.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Literal

from kite_memory.errors import NoteNotFound
from kite_memory.model.event import Problem
from kite_memory.model.note import Entry, Note, NoteKind, NoteStatus, SimilarNote, Surround, Surroundings
from kite_memory.system.private_files import names_in
from kite_memory.text.quoting import mended
from kite_memory.vault import links
from kite_memory.vault.drafting import Draft
from kite_memory.vault.files import OWN_PREFIX, TRASH, CannotRead, Files, stamp_of
from kite_memory.vault.ledger import KnownFile, Ledger, PageOfNotes, link_key
from kite_memory.vault.ledger.ledger import NoteRows
from kite_memory.vault.lifecycle import Rulings, sessions_of
from kite_memory.vault.listing import COPY_REASON, GENERATED, listing
from kite_memory.vault.notefile import FOLDERS, with_addition, with_body, with_properties
from kite_memory.vault.planning import EntityMention, PlanContext, plain_body
from kite_memory.vault.scanning import NoteReader, Scanner
from kite_memory.vault.wording import body_key, one_line, page_stem, slug, text_block, title_key, words
from kite_memory.vault.writing import Writer

_HANDLE = re.compile(r"[0-9A-HJKMNP-TV-Z]{6,25}")
"""The end of an id, as lines that point at notes give it."""
_FEWEST_WORDS = 2
_FEW_IN_TRASH = 3
_COMPARING = frozenset({"over", "instead", "of", "not", "vs", "versus", "rather", "than", "to"})
"""Words between the chosen option and the rejected one in a title. A search by title ignores them."""


def is_handle(name: str) -> bool:
    return _HANDLE.fullmatch(name.upper()) is not None


def find_note(notes: NoteRows, name: str) -> KnownFile:
    """Return the only note that a name fits.

    A name is an id, the end of an id, a path, file name, title or alias, the beginning of one of them, or words of a title in their
    order.

    Raises `NoteNotFound`; its hint names what it could have been.
    """
    name = one_line(name)
    path = name.removeprefix("./")
    stem = PurePosixPath(name).name.removesuffix(".md")
    by_path = notes.at(path) or notes.at(f"{path}.md")
    if found := notes.by_id(name.upper()) or notes.by_id(name) or by_path:
        return found
    if not name:
        raise NoteNotFound("empty note name", hint="give an id, a path or a title")
    for candidates in (
        notes.ending_with(name.upper()) if is_handle(name) else [],
        notes.all_by_stem(stem) if "/" not in name else [],
        notes.by_title(name),
        notes.named("alias", title_key(name)),
        notes.starting_with(name),
        _holding(notes, name),
    ):
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            raise NoteNotFound(f"{name!r} could be {len(candidates)} notes", hint=_listed(candidates))
    near = _near(notes, name)
    hint = f"did you mean {near}?" if near else "`kmem search` finds notes by their words"
    raise NoteNotFound(f"no note is called {name!r}", hint=hint)


_SHORTEST_ID = 4
_CLOSE = 0.7
"""Least likeness of a title that is offered although it has fewer than half of the words."""


def is_own_name(notes: NoteRows, known: KnownFile, name: str) -> bool:
    """Return whether a name by which a note was found is its own: its id or at least four characters of it, its path, file name,
    title or alias, or at least two words of one of these, and not just its beginning.
    """
    name = one_line(name)
    if len(title_key(name).split()) >= _FEWEST_WORDS:
        return True
    id, path, key = name.upper(), name.removeprefix("./"), title_key(name)
    if known.id and ((len(id) >= _SHORTEST_ID and known.id.startswith(id)) or (is_handle(name) and known.id.endswith(id))):
        return True
    if path in (known.path, known.path.removesuffix(".md")) or title_key(known.title) == key:
        return True
    stem = PurePosixPath(name).name.removesuffix(".md")
    return known in notes.named("alias", key) or ("/" not in name and known in notes.all_by_stem(stem))


def _holding(notes: NoteRows, name: str) -> list[KnownFile]:
    """Return the notes whose title holds all the words of a name of two words or more, in their order.

    Words that compare are left out, so that «a over b» is also found as «a instead of b».
    """
    asked = [word for word in title_key(name).split() if word not in _COMPARING]
    if len(asked) < _FEWEST_WORDS:
        return []
    holding = [title for title in notes.titles() if _in_order(asked, title_key(title).split())]
    return [known for title in dict.fromkeys(holding) for known in notes.by_title(title)]


def _in_order(asked: list[str], title: list[str]) -> bool:
    left = iter(title)
    return all(any(word.startswith(each) for word in left) for each in asked)


def _near(notes: NoteRows, name: str) -> str:
    titles = {title.casefold(): title for title in notes.titles()}
    close = difflib.get_close_matches(name.casefold(), titles, n=3, cutoff=_CLOSE)
    asked = words(name)
    shared = {title: len(asked & words(title)) for title in titles}
    sharing = sorted((title for title in titles if 0 < len(asked) <= 2 * shared[title]), key=lambda title: -shared[title])
    return " or ".join(f"“{titles[title]}”" for title in list(dict.fromkeys([*close, *sharing]))[:3])


def _listed(candidates: list[KnownFile]) -> str:
    return "say which: " + ", ".join(known.path for known in candidates[:5]) + (", …" if len(candidates) > 5 else "")


def inside(root: Path, name: str) -> str:
    """Return the vault path of a path as the shell gives it; empty for one outside the vault, or for no path."""
    try:
        return Path(name).expanduser().absolute().relative_to(root.absolute()).as_posix()
    except (ValueError, RuntimeError, OSError):
        return ""


def rewritten_text(text: str, old: Note, new: Note, *, ours: bool, addition: str, resolves: Callable[[str], bool]) -> str | None:
    """Return the file's text with the content of ``new``; ``None`` where its properties cannot be changed safely.

    Where the body is not ``ours``, only ``addition`` is added, unless the note has it already. Names and tags are only added: those
    that its owner has given stay.
    """
    changed: str | None = text
    names = tuple(dict.fromkeys((*old.aliases, *new.aliases)))
    tags = tuple(dict.fromkeys((*old.tags, *new.tags)))
    given: dict[str, object] = {}
    if names != old.aliases:
        given["aliases"] = names
    if tags != old.tags:
        given["tags"] = tags
    if ours:
        given |= {
            name: value
            for name, value, before in (
                ("title", new.title, old.title),
                ("entities", new.entities, old.entities),
                ("triggers", new.triggers, old.triggers),
            )
            if value != before
        }
    if given:
        changed = with_properties(text, given)
    if changed is None:
        return None
    if not ours:
        added = _leading_somewhere(addition, resolves)
        return changed if not added or added in old.body else with_addition(changed, added)
    body = _leading_somewhere(new.body, resolves)
    return changed if body == old.body else with_body(changed, f"{body}\n")


def _leading_somewhere(text: str, resolves: Callable[[str], bool]) -> str:
    return text_block(links.unlinked(text, lambda link: bool(link.target) and not resolves(link.target)))


_WORTH_A_LINK = (NoteStatus.ACCEPTED.value, NoteStatus.PROPOSED.value, NoteStatus.ARCHIVED.value)
_PREFIX = 40
"""Names that are cut to make room for a number still have this many characters at their beginning."""


def gather(
    drafts: Sequence[Draft],
    ledger: Ledger,
    read: Callable[[str], Note | None],
    around: Mapping[str, Surroundings] | None = None,
    rulings: Rulings | None = None,
    *,
    sees: Callable[[Note], bool] = lambda note: True,
) -> PlanContext:
    """Gather what the vault knows about the drafts.

    ``read`` returns a note as it is now, wherever it has been moved to; ``None`` where it cannot be read, or is gone.
    """
    written: dict[str, str] = {}
    absorbed: dict[str, str] = {}
    buried_ids: set[str] = set()
    buried_titles: set[tuple[str, str]] = set()
    alike: dict[str, Note] = {}
    pages: dict[str, str] = {}
    speaking: dict[str, list[str]] = {}
    elsewhere: set[str] = set()
    unreadable: dict[tuple[str, str], str] = {}
    changed: dict[str, Note] = {}
    taken = {name.removesuffix(".md") for name in GENERATED}
    for draft in drafts:
        note = draft.note
        if known := ledger.notes.by_id(note.id):
            written[note.id] = known.path
        if draft.change is not None and (before := ledger.notes.by_id(draft.change.note)):
            found = read(before.path)
            if found is not None and sees(found) and not found.key:
                changed[draft.change.note] = found
        if into := ledger.relations.absorbed_by(note.id):
            absorbed[note.id] = into
        buried_ids |= {id for id in (note.id, into) if id and ledger.tombstones.is_buried(id)}
        if ledger.tombstones.is_title_buried(note.title, note.project):
            buried_titles.add((title_key(note.title), note.project))
        titled = (*ledger.notes.by_title(note.title), *ledger.notes.named("alias", title_key(note.title)))
        for one in (*titled, *ledger.notes.by_body(body_key(plain_body(draft)))):
            if one.duplicate or (one.kind, one.project) != (note.kind.value, note.project) or one.path in alike:
                continue
            found = read(one.path)
            if found is None and ledger.notes.at(one.path) is not None:
                unreadable[title_key(note.title), note.project] = one.path
            elif found is not None and sees(found) and not found.key:  # other notes do not add to a keyed note
                alike[one.path] = found
        taken |= ledger.notes.stems_like(PurePosixPath(note.path).stem[:_PREFIX])
        own = {one.path for session in sessions_of(note.evidence) for one in ledger.notes.named("session", session)}
        for entity in draft.entities:
            if entity.key not in pages and entity.key not in speaking:
                if ledger.tombstones.is_title_buried(entity.name, ""):
                    buried_titles.add((title_key(entity.name), ""))
                if page := _page_of(entity.name, ledger):
                    pages[entity.key] = page
                else:
                    speaking[entity.key] = sorted(one.path for one in ledger.notes.named("entity", entity.key) if not one.duplicate)
                    taken |= ledger.notes.stems_like(page_stem(entity.name)[:_PREFIX])
            if not own.issuperset(speaking.get(entity.key, ())):
                elsewhere.add(entity.key)
    return PlanContext(
        written=written,
        absorbed=absorbed,
        buried_ids=frozenset(buried_ids),
        buried_titles=frozenset(buried_titles),
        alike=tuple(alike.values()),
        pages=pages,
        mentions={
            key: tuple(each for path in paths if (each := _mention(ledger.notes.at(path)))) for key, paths in speaking.items()
        },
        elsewhere=frozenset(elsewhere),
        unreadable=unreadable,
        taken=frozenset(taken),
        around=around or {},
        rulings=rulings or {},
        changed=changed,
        settled=ledger.relations.settled(draft.note.id for draft in drafts) if around else frozenset(),
    )


def around_each(
    drafts: Sequence[Draft], ledger: Ledger, read: Callable[[str], Note | None], surround: Surround
) -> dict[str, Surroundings]:
    """Return what is near to each draft that may become a note, by its id, as it reads now.

    Without keyed notes, which other notes must not add to or replace, and without copies.
    """
    found: dict[str, Surroundings] = {}
    for draft in drafts:
        if (
            ledger.notes.by_id(draft.note.id)
            or ledger.relations.absorbed_by(draft.note.id)
            or ledger.tombstones.is_buried(draft.note.id)
        ):
            continue
        around = surround(replace(draft.note, body=plain_body(draft)))
        found[draft.note.id] = replace(around, near=tuple(_as_they_are(around.near, ledger, read, draft.note.project)))
    return found


def around_written(note: Note, ledger: Ledger, read: Callable[[str], Note | None], surround: Surround) -> Surroundings:
    """Return what is near to an existing note, as it reads now."""
    around = surround(note)
    return replace(around, near=tuple(_as_they_are(around.near, ledger, read, note.project)))


def _as_they_are(
    near: Sequence[SimilarNote], ledger: Ledger, read: Callable[[str], Note | None], project: str
) -> Iterator[SimilarNote]:
    for each in near:
        known = ledger.notes.by_id(each.note.id)
        note = read(known.path) if known is not None and known.project == project else None
        if note is not None and not note.key:
            yield replace(each, note=note)


def _mention(known: KnownFile | None) -> EntityMention | None:
    """Return how to link to a note; ``None`` for rejected or replaced notes and entity pages."""
    if known is None or known.kind == NoteKind.ENTITY.value or known.status not in _WORTH_A_LINK:
        return None
    return EntityMention(stem=PurePosixPath(known.path).stem, title=known.title, kind=NoteKind(known.kind))


def _page_of(name: str, ledger: Ledger) -> str:
    """Return the file name of an entity's page: the one made for it, or any note with that name."""
    titled = (*ledger.notes.by_title(name), *ledger.notes.named("alias", title_key(name)))
    page = next((known for known in titled if known.kind == NoteKind.ENTITY.value), None) or ledger.notes.by_stem(name)
    return PurePosixPath(page.path).stem if page is not None and not page.problem else ""


class KnownNotes:
    """Queries answered from the ledger alone."""

    def __init__(self, root: Path, ledger: Ledger, scanner: Scanner) -> None:
        self._root = root
        self._ledger = ledger
        self._scanner = scanner

    def all(self) -> list[KnownFile]:
        """Return every note as of the last comparison, unread."""
        return self._ledger.notes.everything()

    def page(self, asked: PageOfNotes, start: int, limit: int) -> tuple[list[KnownFile], int]:
        """Return a page of notes as of the last comparison, unread, and how many there are on all pages; see `NotePages.page`."""
        return self._ledger.pages.page(asked, start, limit)

    def counts(self, column: Literal["kind", "project", "status"]) -> list[tuple[str, int]]:
        """Return how many readable notes have each value, as of the last comparison."""
        return self._ledger.pages.counts(column)

    def called(self, names: Iterable[str]) -> dict[str, KnownFile]:
        """Return the notes with these ids, or with these paths where they have no id, as of the last comparison, unread."""
        return {known.id or known.path: known for known in self._ledger.notes.called(names)}

    def waiting(self) -> list[KnownFile]:
        """Return the notes that may await their owner's decision, as of the last comparison, unread.

        Raises `VaultMissing` if all are gone.
        """
        if not self._ledger.is_empty():
            self._scanner.must_be_there()
        return self._ledger.notes.waiting()

    def on_branches(self) -> list[str]:
        """Return the paths of the notes that hold only on a branch, as of the last comparison."""
        return [known.path for known in self._ledger.notes.on_branches() if known.id]

    def to_review(self) -> list[KnownFile]:
        """Return the notes that a person is asked about, one by one; see `NoteRows.to_review`.

        Raises `VaultMissing` as `waiting` does.
        """
        if not self._ledger.is_empty():
            self._scanner.must_be_there()
        return self._ledger.notes.to_review()

    def review_count(self) -> int:
        """Return how many a person is asked about, as of the last comparison; also of a vault that is not mounted."""
        return len(self._ledger.notes.to_review())

    def at(self, paths: Iterable[str]) -> list[KnownFile]:
        """Return what is known of these files, where anything is."""
        return [known for path in paths if (known := self._ledger.notes.at(path)) is not None]

    def is_unchanged(self, path: Path) -> bool:
        """Return whether a file of the vault is as it was last seen, or is one that we are just writing."""
        if path.name.startswith(OWN_PREFIX):
            return True
        try:
            status = path.lstat()
        except OSError:
            status = None
        place = inside(self._root, str(path))
        known = self._ledger.notes.at(place) if place else None
        if known is None or status is None:
            return False
        stamp = stamp_of(status)
        return (known.size, known.mtime_ns) == (stamp.size, stamp.mtime_ns)

    def has_project(self, project: str) -> bool:
        """Return whether a note belongs to it, as of the last comparison."""
        return self._ledger.notes.has_project(project)

    def of_session(self, provider: str, session: str) -> list[str]:
        """Return the paths of the notes whose evidence is in a session."""
        return sorted(known.path for known in self._ledger.notes.named("session", f"{provider}:{session}"))

    def by_id(self, id: str) -> KnownFile | None:
        """Return the note with this id, or the note it was merged into, as of the last comparison; the file is not read."""
        return self._ledger.notes.by_id(id) or self._ledger.notes.by_id(self._ledger.relations.absorbed_by(id))

    def saying(self, text: str) -> KnownFile | None:
        """Return an accepted or proposed note with exactly this text; the file is not read."""
        in_force = (NoteStatus.ACCEPTED.value, NoteStatus.PROPOSED.value)
        return next((one for one in self._ledger.notes.by_body(body_key(text)) if one.id and one.status in in_force), None)

    def holds_words(self, key: str) -> bool:
        """Return whether any note, a person's own as well, has this `wording.body_key`."""
        return bool(self._ledger.notes.by_body(key))

    def led_to(self, target: str) -> KnownFile | None:
        """Return the note that a link to ``target`` leads to, unread."""
        return self._ledger.notes.by_stem(link_key(target))

    def linking_to(self, path: str) -> list[KnownFile]:
        """Return the notes that link to this one, unread."""
        return [known for known in self._ledger.notes.named("link", link_key(path)) if known.path != path]

    def linked_by(self, path: str) -> list[KnownFile]:
        """Return the notes that this one links to, unread."""
        return [known for known in self._ledger.links.linked_by(path) if known.path != path]

    def most_linked(self, limit: int) -> list[tuple[KnownFile, int]]:
        """Return the notes that most others link to, unread, and how many do."""
        found = [(self._ledger.notes.by_stem(name), links) for name, links in self._ledger.links.most_linked(limit)]
        return [(known, links) for known, links in found if known is not None]

    def is_buried(self, id: str, title: str = "", project: str = "") -> bool:
        """Return whether its owner has deleted the note of this id, the one that it was merged into, or one of this title."""
        gone = self._ledger.tombstones.is_buried(id) or self._ledger.tombstones.is_buried(self._ledger.relations.absorbed_by(id))
        return gone or (bool(title) and self._ledger.tombstones.is_title_buried(title, project))

    def settled(self) -> frozenset[tuple[str, str]]:
        """Return all pairs of note ids for which it was decided before what the newer does to the older."""
        return self._ledger.relations.all_settled()

    def ruled(self, newer: str, older: str, ruling: Literal["replaces", "neither"]) -> None:
        """Record a ruling on a pair. The notes themselves are not changed: they already agree with it."""
        self._ledger.relations.rule(newer, older, ruling)


class StoredNotes:
    """The notes on disk, read as they are now."""

    def __init__(self, root: Path, *, files: Files, ledger: Ledger, reader: NoteReader, scanner: Scanner, writer: Writer) -> None:
        self._root = root
        self._files = files
        self._ledger = ledger
        self._reader = reader
        self._scanner = scanner
        self._writer = writer

    def take_lapsed(self) -> set[str]:
        """See `Writer.take_lapsed`."""
        return self._writer.take_lapsed()

    def problems(self) -> list[Problem]:
        """See `NoteReader.problems`."""
        return self._reader.problems()

    def entries(self) -> Iterator[Entry]:
        """Yield every note there is now, in the order of their paths.

        Raises `VaultMissing` rather than report that all are gone.
        """
        if frozen := self._scanner.frozen:
            raise self._scanner.missing(frozen)
        self._scanner.must_be_there()
        apart = {problem.file for problem in self._ledger.problems.all() if problem.reason == COPY_REASON}
        yield from (entry for entry in listing(self._files).entries if entry.path not in apart)

    def others(self) -> Iterator[str]:
        """Yield the files that are not notes but that notes may link to."""
        yield from listing(self._files).others

    def wrong_folders(self) -> list[str]:
        """Return the folders for notes of one kind that are files or links. Notes of such a kind wait."""
        places = (self._root / folder for folder in dict.fromkeys(FOLDERS.values()))
        return [place.name for place in places if place.is_symlink() or (place.exists() and not place.is_dir())]

    def raw(self, path: str) -> bytes | None:
        """See `NoteReader.raw`."""
        return self._reader.raw(path)

    def read(self, path: str) -> Note | None:
        """See `NoteReader.read`."""
        return self._reader.read(path)

    def text(self, path: str) -> str:
        """Return the whole file as it is. Raises `NoteNotFound` where it cannot be read."""
        return self._reader.text(path)

    def of_session(self, provider: str, session: str) -> Iterator[Note]:
        """Read the notes whose evidence is in a session."""
        paths = sorted(known.path for known in self._ledger.notes.named("session", f"{provider}:{session}"))
        return (note for note in map(self.read, paths) if note is not None)

    def called(self, name: str) -> Note | None:
        """Return the note of this id or path, where the ledger knows it.

        Raises `VaultMissing` rather than report that it is gone.
        """
        name = mended(name)
        known = self._ledger.notes.by_id(name) or self._ledger.notes.at(name)
        return self.read_where_it_is(known.path) if known is not None else None

    def ending(self, ends: str) -> Note | None:
        """Return the only note whose id ends with ``ends``, as lines that point at notes name it."""
        known = self._ledger.notes.ending_with(mended(ends).upper()) if is_handle(ends) else []
        return self.read_where_it_is(known[0].path) if len(known) == 1 else None

    def titled(self, title: str) -> Iterator[Note]:
        """Yield the notes of this title, or of one that differs only in case and punctuation."""
        for known in self._ledger.notes.by_title(mended(title)):
            if (note := self.read_where_it_is(known.path)) is not None:
                yield note

    def find(self, name: str) -> Note:
        """Return a note by id, path, file name, title, alias, or a prefix that only one note has; see `known.find_note`.

        Raises `NoteNotFound`.
        """
        known = self.known_as(name)
        note = self.read(known.path)
        if note is None:
            reason = self._reader.why_unread(known.path) or "it is gone"
            raise NoteNotFound(f"{known.path} cannot be read: {reason}", hint="repair it in an editor; we leave it as it is")
        return note

    def in_trash(self, name: str) -> list[str]:
        """Return the files in the vault's trash that a file name or the words of a title fit, a few at most."""
        asked = slug(PurePosixPath(name).name.removesuffix(".md")).split("-")
        names = (each for each in names_in(self._root / TRASH) if each.endswith(".md"))
        return sorted(each for each in names if _in_order(asked, slug(each.removesuffix(".md")).split("-")))[:_FEW_IN_TRASH]

    def known_as(self, name: str) -> KnownFile:
        name = mended(name)
        try:
            known = self._ledger.notes.at(inside(self._root, name)) or find_note(self._ledger.notes, name)
        except NoteNotFound:
            known = None
        if known is None or not self._files.exists(known.path):  # the ledger is out of date
            self._scanner.compare()
            known = self._ledger.notes.at(inside(self._root, name)) or find_note(self._ledger.notes, name)
        return known

    def is_own_name(self, name: str) -> bool:
        """Return whether a name by which a note is found is its own, and not a part of it; see `known.is_own_name`."""
        known, name = self.known_as(name), mended(name)
        return known.path == inside(self._root, name) or is_own_name(self._ledger.notes, known, name)

    def read_where_it_is(self, path: str) -> Note | None:
        """Read a note, also where its owner has moved it since the last comparison. Otherwise it would be written twice."""
        known = self._ledger.notes.at(path)
        if known is not None and not self._files.exists(path):
            self._scanner.follow_path(path)
            known = self._ledger.notes.by_id(known.id) if known.id else None
            return self.read(known.path) if known is not None else None
        return self.read(path)

    def get(self, path: str) -> Note:
        note = self.read(path)
        if note is None:
            raise NoteNotFound(f"{path} is gone", hint="it has just been moved or deleted")
        return note

    def is_ours(self, note: Note) -> bool:
        """Return whether its body is as we wrote it."""
        try:
            text = self._files.read(note.path).data.decode()
        except (OSError, CannotRead, UnicodeDecodeError):
            return False
        return self._writer.is_ours(note.id, text)

    def unresolved_links(self) -> list[links.Unresolved]:
        """Return every link, in bodies and properties, that leads to no file; for ``kmem verify``. Reads every note."""
        read = {entry.path: self.read(entry.path) for entry in self.entries()}
        notes = [note for note in read.values() if note is not None]
        resolver = links.Resolver(
            notes, (*(path.removesuffix(".md") for path, note in read.items() if note is None), *self.others())
        )
        return [
            links.Unresolved(path=note.path, target=target, ours=self.is_ours(note))
            for note in notes
            for target in dict.fromkeys((*note.links, *note.supersedes, note.superseded_by))
            if target and resolver.follow(target, by_file_only=True) is None
        ]
