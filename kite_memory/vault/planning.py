"""What the vault should become: drafts held against what it holds already. Nothing here touches a disk.

Which names become links: an entity that one note speaks of is plain text there. With the second note that speaks of it
the entity gets a page, planned before that note, which then links to the page; the page itself links to the earlier
notes, so that their text need not be changed. Notes of one topic link to those before them. So every link leads
somewhere at every moment, also when the plan is interrupted.

Whether a new decision contradicts an old one is not judged here: `Supersede` is carried out, but planned elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.model.plan import Action, Amend, Create, Skip
from kite_memory.model.scope import Scope
from kite_memory.vault import links
from kite_memory.vault.drafting import Draft, Entity
from kite_memory.vault.identity import note_id
from kite_memory.vault.notefile import FOLDERS
from kite_memory.vault.slugs import page_stem, unique
from kite_memory.vault.wording import body_key, entity_key, stem_key, text_block, title_key, words

PEOPLE = "people"

_SAID_ALREADY = 0.7
"""Share of a text's words that an older note holds, above which it says nothing new. A starting point, not a measured one."""

_MAX_EVIDENCE = 50
_MAX_MENTIONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the vault holds that has to do with some drafts. `Vault.known` gathers it.

    ``written`` maps ids to paths, ``absorbed`` drafts to the notes they went into, ``pages`` entity keys to link targets,
    ``mentions`` entity keys to the link targets of notes that speak of them. ``alike`` are notes with the title or the
    body of one of the drafts. ``taken`` are file names in use, as `wording.stem_key` writes them; ``buried`` titles are
    (`wording.title_key`, project).
    """

    written: Mapping[str, str] = field(default_factory=dict)
    absorbed: Mapping[str, str] = field(default_factory=dict)
    buried_ids: frozenset[str] = frozenset()
    buried_titles: frozenset[tuple[str, str]] = frozenset()
    alike: tuple[Note, ...] = ()
    pages: Mapping[str, str] = field(default_factory=dict)
    mentions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()


def plan(drafts: Sequence[Draft], known: Known) -> list[Action]:
    """In the order in which they can be carried out. Planning the same drafts again after that yields only `Skip`."""
    return list(_Plan(drafts, known).actions())


class _Plan:
    def __init__(self, drafts: Sequence[Draft], known: Known) -> None:
        self._drafts = drafts
        self._known = known
        self._alike = [(one, body_key(one.body)) for one in known.alike]
        self._pages = dict(known.pages)
        self._stems = {id: PurePosixPath(path).stem for id, path in known.written.items()}
        self._taken = set(known.taken)

    def actions(self) -> Iterator[Action]:
        verdicts = [(draft, self._verdict(draft)) for draft in self._drafts]
        new = [draft for draft, verdict in verdicts if verdict is None]
        for draft, verdict in verdicts:
            if verdict is not None:
                yield verdict
                continue
            yield from self._pages_for(draft, new)
            yield self._create(draft)

    def _verdict(self, draft: Draft) -> Amend | Skip | None:
        """``None``: this becomes a note of its own."""
        note, known = draft.note, self._known
        if note.id in known.buried_ids or known.absorbed.get(note.id) in known.buried_ids:
            return Skip(title=note.title, because="you deleted it")
        if note.id in known.written:
            return Skip(title=note.title, because="already written")
        if note.id in known.absorbed:
            return Skip(title=note.title, because="already part of another note")
        if (title_key(note.title), note.project) in known.buried_titles:
            return Skip(title=note.title, because="you deleted a note of this title")
        older = self._same_thought(draft)
        if older is None:
            return None
        if not older.id:
            return Skip(title=note.title, because=f"your own {older.path} says it")
        if note.status is NoteStatus.PROPOSED is not older.status:
            return Skip(title=note.title, because=f"{older.path} says it already")
        if older.status is NoteStatus.REJECTED:
            return Skip(title=note.title, because="you rejected it")
        self._stems[note.id] = self._stems.get(older.id, PurePosixPath(older.path).stem)
        room = max(0, _MAX_EVIDENCE - len(older.evidence))
        return Amend(
            id=older.id,
            path=older.path,
            evidence=tuple(one for one in note.evidence if one not in older.evidence)[:room],
            addition="" if older.status is NoteStatus.SUPERSEDED else addition(draft, older),
            because=f"says the same as {older.path}",
            absorbs=note.id,
        )

    def _same_thought(self, draft: Draft) -> Note | None:
        """A note of the same kind and project that has its title or says its words; without one, it is the first itself.

        A note that is entirely a person's has to say the very words: only then is nothing to be added. What waits for
        review, since only a tool said it, and what does not, never grow into each other.
        """
        note = draft.note
        body = plain_body(draft)
        title, said = title_key(note.title), body_key(body)
        for older, key in self._alike:
            titled = older.id and title in map(title_key, (older.title, *older.aliases))
            if (older.kind, older.project) != (note.kind, note.project) or not (titled or key == said != ""):
                continue
            proposed = NoteStatus.PROPOSED in (note.status, older.status) and note.status is not older.status
            if not proposed or (note.status is NoteStatus.PROPOSED and not addition(draft, older)):
                return older
        self._alike.append((replace(note, body=body), said))
        return None

    def _pages_for(self, draft: Draft, new: Sequence[Draft]) -> Iterator[Create]:
        """A page for each of its entities that another note speaks of, too, and that has none yet."""
        for entity in draft.entities:
            if entity.key in self._pages or (title_key(entity.name), "") in self._known.buried_titles:
                continue
            sharing = [one for one in new if any(other.key == entity.key for other in one.entities)]
            mentions = self._known.mentions.get(entity.key, ())
            if len(sharing) + len(mentions) < 2:
                continue
            page = self._page(entity, sharing, mentions)
            self._pages[entity.key] = PurePosixPath(page.path).stem
            yield Create(note=page, because=f"{len(sharing) + len(mentions)} notes speak of it")

    def _page(self, entity: Entity, sharing: Sequence[Draft], mentions: Sequence[str]) -> Note:
        same = [other for draft in sharing for other in draft.entities if other.key == entity.key]
        folder = PEOPLE if any(other.person for other in same) else FOLDERS[NoteKind.ENTITY]
        first = sharing[0].note
        trusted = any(draft.note.status is not NoteStatus.PROPOSED for draft in sharing)
        return Note(
            id=note_id(first.created, "entity", entity.key),
            path=f"{folder}/{self._take(page_stem(entity.name))}.md",
            kind=NoteKind.ENTITY,
            title=entity.name,
            body=_related(tuple(mentions)[:_MAX_MENTIONS]),
            created=first.created,
            updated=first.created,
            aliases=tuple(dict.fromkeys(other.name for other in same if other.name != entity.name)),
            scope=Scope.GLOBAL,
            status=NoteStatus.ACCEPTED if trusted else NoteStatus.PROPOSED,
            evidence=first.evidence,
            origin=first.origin,
            importance=1,
        )

    def _create(self, draft: Draft) -> Create:
        stem = self._take(PurePosixPath(draft.note.path).stem)
        self._stems[draft.note.id] = stem
        pages = {entity.key: self._pages[entity.key] for entity in draft.entities if entity.key in self._pages}
        siblings = tuple(self._stems[id] for id in draft.siblings if id in self._stems)
        body = compose(draft, pages, siblings)
        path = PurePosixPath(draft.note.path).with_name(f"{stem}.md")
        note = replace(draft.note, path=str(path), body=body, links=links.targets(body))
        return Create(note=note, because=", ".join(draft.note.evidence))

    def _take(self, stem: str) -> str:
        stem = unique(stem, self._taken.__contains__)
        self._taken.add(stem_key(stem))
        return stem


def compose(draft: Draft, pages: Mapping[str, str], siblings: Sequence[str]) -> str:
    """The body of a note. ``pages`` maps the keys of those of its entities that have a page to link targets."""
    text, named = links.name_entities(draft.note.body, pages)
    paragraphs = [text]
    for rejected in draft.rejected:
        target = pages.get(entity_key(rejected.alternative))
        alternative = links.write(target, rejected.alternative) if target else rejected.alternative
        named |= {entity_key(rejected.alternative)}
        paragraphs.append(_rejection(alternative, rejected.reason))
    unnamed = [links.write(target, entity.name) for entity in draft.entities if (target := _unnamed(entity, pages, named))]
    paragraphs.append(_related(siblings, unnamed))
    return text_block("\n\n".join(filter(None, paragraphs)))


def plain_body(draft: Draft) -> str:
    """The body as it would be without a single link: what two wordings of one thought are compared by."""
    return compose(draft, {}, ())


def addition(draft: Draft, older: Note) -> str:
    """What a draft says that an older note of the same thought does not; often nothing."""
    held = words(older.body)
    said = words(draft.note.body)
    paragraphs: list[str] = []
    if said and len(said & held) < _SAID_ALREADY * len(said):
        paragraphs.append(f"{draft.note.created:%Y-%m-%d}: {draft.note.body}")
    paragraphs += [_rejection(one.alternative, one.reason) for one in draft.rejected if not words(one.alternative) <= held]
    return text_block("\n\n".join(paragraphs))


def _unnamed(entity: Entity, pages: Mapping[str, str], named: frozenset[str]) -> str:
    return "" if entity.key in named else pages.get(entity.key, "")


def _rejection(alternative: str, reason: str) -> str:
    return f"**Rejected:** {alternative}: {reason}" if reason else f"**Rejected:** {alternative}"


def _related(stems: Sequence[str], more: Sequence[str] = ()) -> str:
    written = [*map(links.write, stems), *more]
    return f"**Related:** {', '.join(written)}" if written else ""
