"""Gather what planning needs to know, with a few look-ups for each draft, however large the vault."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.model.plan import SimilarNote, Surround, Surroundings
from kite_memory.vault import links
from kite_memory.vault.drafting import Draft
from kite_memory.vault.ledger import KnownFile, Ledger
from kite_memory.vault.lifecycle import Rulings
from kite_memory.vault.listing import GENERATED
from kite_memory.vault.notefile import body_of, with_addition
from kite_memory.vault.planning import EntityMention, PlanContext, plain_body, sessions_of
from kite_memory.vault.properties import with_properties
from kite_memory.vault.wording import body_key, page_stem, text_block, title_key


def restated(text: str, old: Note, new: Note, *, ours: bool, addition: str, leads: Callable[[str], bool]) -> str | None:
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
        added = _leading_somewhere(addition, leads)
        return changed if not added or added in old.body else with_addition(changed, added)
    body = _leading_somewhere(new.body, leads)
    return changed if body == old.body else changed[: len(changed) - len(body_of(changed))] + body + "\n"


def _leading_somewhere(text: str, leads: Callable[[str], bool]) -> str:
    return text_block(links.unlinked(text, lambda link: bool(link.target) and not leads(link.target)))


_STANDING = (NoteStatus.ACCEPTED.value, NoteStatus.PROPOSED.value, NoteStatus.ARCHIVED.value)
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
            if one.twin or (one.kind, one.project) != (note.kind.value, note.project) or one.path in alike:
                continue
            found = read(one.path)
            if found is None and ledger.notes.at(one.path) is not None:
                unreadable[title_key(note.title), note.project] = one.path
            elif found is not None and sees(found) and not found.key:  # other notes do not add to a keyed note
                alike[one.path] = found
        taken |= ledger.notes.stems_like(PurePosixPath(note.path).stem[:_PREFIX])
        own = {one.path for session in sessions_of(note) for one in ledger.notes.named("session", session)}
        for entity in draft.entities:
            if entity.key not in pages and entity.key not in speaking:
                if ledger.tombstones.is_title_buried(entity.name, ""):
                    buried_titles.add((title_key(entity.name), ""))
                if page := _page_of(entity.name, ledger):
                    pages[entity.key] = page
                else:
                    speaking[entity.key] = sorted(one.path for one in ledger.notes.named("entity", entity.key) if not one.twin)
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
    if known is None or known.kind == NoteKind.ENTITY.value or known.status not in _STANDING:
        return None
    return EntityMention(stem=PurePosixPath(known.path).stem, title=known.title, kind=NoteKind(known.kind))


def _page_of(name: str, ledger: Ledger) -> str:
    """Return the file name of an entity's page: the one made for it, or any note with that name."""
    titled = (*ledger.notes.by_title(name), *ledger.notes.named("alias", title_key(name)))
    page = next((known for known in titled if known.kind == NoteKind.ENTITY.value), None) or ledger.notes.by_stem(name)
    return PurePosixPath(page.path).stem if page is not None and not page.problem else ""
