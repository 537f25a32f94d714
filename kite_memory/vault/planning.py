"""Decide what to write, by comparing drafts with what the vault holds. Nothing here touches a disk.

Which names become links: a name is plain text until enough notes of several sessions name the same entity. Then the entity gets a
page, planned before the first new note that names it, and the new notes link to the page; the page itself links to the earlier
notes, so that their text need not be changed. Notes of one topic link to those before them. So every link leads somewhere at every
moment, also when the plan is interrupted.

`lifecycle` decides what a draft does to notes that are near to it; the caller provides those notes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from kite_memory.model.note import Action, Amend, Change, Create, Note, NoteKind, NoteStatus, Scope, Skip, Supersede, Surroundings
from kite_memory.vault import lifecycle, links
from kite_memory.vault.drafting import Draft, Entity
from kite_memory.vault.graph import deserves_a_page, is_place_in_code
from kite_memory.vault.lifecycle import Relation, Rulings, holds_wherever
from kite_memory.vault.links import related, titled
from kite_memory.vault.notefile import FOLDERS
from kite_memory.vault.wording import body_key, entity_key, note_id, page_stem, stem_key, text_block, title_key, unique, words

PEOPLE = "people"

_SAID_ALREADY = 0.7
"""Share of a text's words that an older note holds, above which it adds nothing. A starting point, not a measured one."""

_ADDED = re.compile(r"\d{4}-\d\d-\d\d: ")
_MAX_EVIDENCE = 50
_WORTH = ((4, 3), (2, 2))
"""Pairs of a number of sessions and the importance that a note has from that number on."""
_MAX_MENTIONS = 8
_MAX_TRIGGERS = 8
_LEAST_SPEAKING, _OF_A_PLACE = 3, 8
"""Number of notes that must name an entity before it gets a page; a file or function, which the code itself shows, needs more."""
_SAYS = frozenset({NoteKind.DECISION, NoteKind.PREFERENCE, NoteKind.FACT})


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMention:
    """A note that names an entity; ``stem`` is the target of a link to it."""

    stem: str
    title: str = ""
    kind: NoteKind = NoteKind.FACT


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanContext:
    """What the vault holds that concerns some drafts; `known.gather` makes it.

    ``written`` maps ids to paths, ``absorbed`` drafts to the notes they were merged into, ``pages`` entity keys to link targets,
    ``mentions`` entity keys to the notes that name them; ``elsewhere`` are the entity keys that a note of another session than a
    draft's own names. ``alike`` are notes with the title or the body of one of the drafts, ``unreadable`` the paths of those that
    cannot be read, by title and project, ``around`` those that are near to a draft by its id. ``rulings`` are the present decisions
    on such pairs, ``settled`` the pairs decided before, ``changed`` the notes that drafts are to change. ``taken`` are file names
    in use, as `wording.stem_key` writes them; ``buried`` titles are (`wording.title_key`, project).
    """

    written: Mapping[str, str] = field(default_factory=dict)
    absorbed: Mapping[str, str] = field(default_factory=dict)
    buried_ids: frozenset[str] = frozenset()
    buried_titles: frozenset[tuple[str, str]] = frozenset()
    alike: tuple[Note, ...] = ()
    pages: Mapping[str, str] = field(default_factory=dict)
    mentions: Mapping[str, tuple[EntityMention, ...]] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()
    unreadable: Mapping[tuple[str, str], str] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()
    around: Mapping[str, Surroundings] = field(default_factory=dict)
    rulings: Rulings = field(default_factory=dict)
    settled: frozenset[tuple[str, str]] = frozenset()
    changed: Mapping[str, Note] = field(default_factory=dict)


def plan(drafts: Sequence[Draft], known: PlanContext) -> list[Action]:
    """Return the actions in the order in which they can be carried out.

    Planning the same drafts again after that yields only `Skip`.
    """
    return list(_Plan(drafts, known).actions())


class _Plan:
    def __init__(self, drafts: Sequence[Draft], known: PlanContext) -> None:
        self._drafts = drafts
        self._known = known
        self._alike = [(one, body_key(one.body)) for one in known.alike]
        self._pages = dict(known.pages)
        self._titles = {draft.note.id: draft.note.title for draft in drafts}
        self._stems = {id: PurePosixPath(path).stem for id, path in known.written.items()}
        self._taken = set(known.taken)
        self._made_now: list[tuple[Note, str]] = []
        """The notes of this plan, each without its links, with the stem of its file."""

    def actions(self) -> Iterator[Action]:
        verdicts = [(draft, self._verdict(draft)) for draft in self._drafts]
        new = [draft for draft, verdict in verdicts if verdict is None]
        for draft, verdict in verdicts:
            if verdict is not None:
                yield verdict
                continue
            yield from self._pages_for(draft, new)
            yield from self._made(draft)

    def _verdict(self, draft: Draft) -> Amend | Skip | None:
        """Return what to do with a draft that becomes no note of its own; ``None`` for one that does."""
        note, known = draft.note, self._known
        if note.id in known.buried_ids or known.absorbed.get(note.id) in known.buried_ids:
            return Skip(title=note.title, because="you deleted it")
        if note.id in known.written:
            return Skip(title=note.title, because="already written")
        if note.id in known.absorbed:
            return Skip(title=note.title, because="already part of another note")
        if (title_key(note.title), note.project) in known.buried_titles:
            return Skip(title=note.title, because="you deleted a note of this title")
        if path := known.unreadable.get((title_key(note.title), note.project)):
            return Skip(title=note.title, because=f"{path} has this title, and cannot be read")
        if self._changes(draft) is not None:
            return None
        older = self._same_thought(draft)
        if older is None:
            return None
        if not older.id:
            return Skip(title=note.title, because=f"your own {older.path} says it")
        if older.status is NoteStatus.REJECTED:
            return Skip(title=note.title, because="you rejected it")
        if note.status is NoteStatus.PROPOSED is not older.status:
            return Skip(title=note.title, because=f"{older.path} says it already")
        self._stems[note.id] = self._stems.get(older.id, PurePosixPath(older.path).stem)
        more = "" if older.status is NoteStatus.SUPERSEDED else addition(draft, older)
        room = max(0, _MAX_EVIDENCE - len(older.evidence))
        evidence = tuple(one for one in note.evidence if one not in older.evidence)[:room]
        return Amend(
            id=older.id,
            path=older.path,
            evidence=evidence,
            addition=more,
            because=f"says the same as {older.path}",
            absorbs=note.id,
            importance=0 if more else _corroborated(older, evidence),
        )

    def _same_thought(self, draft: Draft) -> Note | None:
        """Return the note of the same kind and project that has the draft's title or content; otherwise register the draft.

        A note that is entirely a person's must have the very same words: only then is nothing to be added. A note that waits for
        review, since only a tool wrote it, is never merged with one that does not.
        """
        note = draft.note
        body = plain_body(draft)
        title, said = title_key(note.title), body_key(body)
        for older, key in self._alike:
            titled = older.id and title in map(title_key, (older.title, *older.aliases))
            worded = key == said != "" and not lifecycle.at_odds(note.title, older.title)
            if (older.kind, older.project) != (note.kind, note.project) or not (titled or worded):
                continue
            if _may_grow(draft, older):
                return older
        plain = replace(note, body=body)
        near = [each.note for each in self._around(draft).near]
        for older in (*near, *(older for older, _ in self._alike if older.id)):
            if lifecycle.repeats(plain, older) and _may_grow(draft, older):
                return older
        self._alike.append((replace(note, body=body), said))
        return None

    def _pages_for(self, draft: Draft, new: Sequence[Draft]) -> Iterator[Create]:
        """Yield a page for each of its entities that has none yet, where three notes of several sessions name it.

        No page is made for a rejected alternative, nor where the page would be empty.
        """
        for entity in draft.entities:
            if (
                self._pages.keys() & {entity.key, f"{entity.key}s", entity.key.removesuffix("s")}
                or (title_key(entity.name), "") in self._known.buried_titles
            ):
                continue
            if not (entity.person or deserves_a_page(entity.name)) or entity.key == entity_key(draft.note.branch):
                continue
            sharing = [one for one in new if any(other.key == entity.key for other in one.entities)]
            mentions = self._known.mentions.get(entity.key, ())
            if entity.key not in self._known.elsewhere and not _in_several_sessions(sharing):
                continue
            refused = {entity_key(one.alternative) for other in sharing for one in other.rejected}
            least = _OF_A_PLACE if is_place_in_code(entity.name) else _LEAST_SPEAKING
            if not entity.person and (len(sharing) + len(mentions) < least or entity.key in refused):
                continue
            body = _about(entity, mentions)
            if not body and not entity.person:
                continue
            page = self._page(entity, sharing, body)
            self._pages[entity.key] = PurePosixPath(page.path).stem
            yield Create(note=page, because=f"{len(sharing) + len(mentions)} notes speak of it")

    def _page(self, entity: Entity, sharing: Sequence[Draft], body: str) -> Note:
        same = [other for draft in sharing for other in draft.entities if other.key == entity.key]
        folder = PEOPLE if any(other.person for other in same) else FOLDERS[NoteKind.ENTITY]
        first = sharing[0].note
        trusted = any(draft.note.status is not NoteStatus.PROPOSED for draft in sharing)
        return Note(
            id=note_id(first.created, "entity", entity.key),
            path=f"{folder}/{self._take(page_stem(entity.name))}.md",
            kind=NoteKind.ENTITY,
            title=entity.name,
            body=body,
            links=links.targets(body),
            created=first.created,
            updated=first.created,
            aliases=tuple(dict.fromkeys(other.name for other in same if other.name != entity.name)),
            scope=Scope.GLOBAL,
            status=NoteStatus.ACCEPTED if trusted else NoteStatus.PROPOSED,
            evidence=first.evidence,
            origin=first.origin,
            importance=1,
        )

    def _around(self, draft: Draft) -> Surroundings:
        return self._known.around.get(draft.note.id, Surroundings())

    def _made(self, draft: Draft) -> Iterator[Create | Supersede]:
        """Yield the draft's own note, and what it does to those near to it."""
        if (old := self._changes(draft)) is not None and draft.change is not None:
            yield self._changing(draft, old, draft.change)
            return
        known, plain = self._known, replace(draft.note, body=plain_body(draft))
        relations = lifecycle.relations(plain, self._around(draft), known.rulings, known.settled)
        replaces = [each for each in relations if each.does == "replaces"]
        late = next((each for each in replaces if each.reversed), None)
        doubts = [PurePosixPath(each.old.path).stem for each in relations if each.does == "conflicts"]
        doubts += [stem for earlier, stem in self._made_now if not doubts and lifecycle.takes_back(plain, earlier)][-1:]
        create = self._create(draft, () if late else tuple(doubts))
        self._made_now.append((plain, PurePosixPath(create.note.path).stem))
        if late is not None:
            yield _superseding(create.note, late)
        elif replaces:
            for each in replaces:
                yield _superseding(create.note, each)
        else:
            yield create

    def _changes(self, draft: Draft) -> Note | None:
        """Return the note that a draft is to change, if that is still accepted or proposed."""
        old = self._known.changed.get(draft.change.note) if draft.change is not None else None
        return old if old is not None and old.status in (NoteStatus.ACCEPTED, NoteStatus.PROPOSED) else None

    def _changing(self, draft: Draft, old: Note, change: Change) -> Create | Supersede:
        """Replace the note where the draft may do so; otherwise mark a conflict for review.

        A draft that amends a note also holds what is still true of it.
        """
        if not may_change(draft.note, old):
            return self._create(draft, (PurePosixPath(old.path).stem,))
        if change.does == "amends":
            draft = amended(draft, old, change.because)
        note = self._create(draft, ()).note
        return Supersede(note=note, old_id=old.id, old_path=old.path, because=change.because or "a model read both")

    def _create(self, draft: Draft, conflicts: tuple[str, ...]) -> Create:
        stem = self._take(PurePosixPath(draft.note.path).stem)
        self._stems[draft.note.id] = stem
        pages = {entity.key: self._pages[entity.key] for entity in draft.entities if entity.key in self._pages}
        siblings = tuple(titled(self._stems[id], self._titles.get(id, "")) for id in draft.siblings if id in self._stems)
        body = compose(draft, pages, siblings)
        path = PurePosixPath(draft.note.path).with_name(f"{stem}.md")
        note = replace(draft.note, path=str(path), body=body, links=links.targets(body), conflicts=conflicts)
        return Create(note=note, because=", ".join(draft.note.evidence))

    def _take(self, stem: str) -> str:
        stem = unique(stem, self._taken.__contains__)
        self._taken.add(stem_key(stem))
        return stem


def _about(entity: Entity, mentions: Sequence[EntityMention]) -> str:
    """Return the body of an entity's page: links to the notes that define it, decide about it, or mention it.

    Empty where no note defines it or decides about it, unless it is a person. No text of a note is copied, so that what is
    forgotten is gone from here, too.
    """
    verbs = r"(?:is|are|holds|keeps|runs|serves|stores|reads|writes|means)\b"
    is_it = re.compile(rf"(?:the )?{re.escape(entity.name)} {verbs}", re.IGNORECASE)
    first = [each for each in mentions if is_it.match(each.title)]
    decided = [each for each in mentions if each not in first and each.kind in _SAYS and entity.key in entity_key(each.title)]
    if not entity.person and not first and not decided:
        return ""
    rest = [each for each in mentions if each not in first and each not in decided]
    return related([titled(each.stem, each.title) for each in (*first, *decided, *rest)][:_MAX_MENTIONS])


def _superseding(note: Note, relation: Relation) -> Supersede:
    old = relation.old
    return Supersede(note=note, old_id=old.id, old_path=old.path, because=relation.because, late=relation.reversed)


def may_change(note: Note, old: Note) -> bool:
    """Return whether a note may replace an older one that it is meant to change.

    Only a person's note replaces a person's, a note that waits for review replaces none, and a note of one project replaces none
    that holds in every project.
    """
    if note.status is not NoteStatus.ACCEPTED or note.created < old.created:
        return False
    return (old.origin != "user" or note.origin == "user") and note.project == old.project and holds_wherever(note, old)


def amended(draft: Draft, old: Note, because: str) -> Draft:
    """Return the draft with everything of an older note that it neither repeats nor takes back.

    ``because`` names what it takes back.
    """
    left = still_holding(old.body, draft.note.body, because)
    body = f"{draft.note.body}\n\n{old.created:%Y-%m-%d}, and still so: {left}" if left else draft.note.body
    note = replace(
        draft.note,
        body=text_block(body),
        evidence=tuple(dict.fromkeys((*draft.note.evidence, *old.evidence)))[:_MAX_EVIDENCE],
        importance=max(draft.note.importance, old.importance),
        tags=tuple(dict.fromkeys((*draft.note.tags, *old.tags))),
        triggers=tuple(dict.fromkeys((*draft.note.triggers, *old.triggers)))[:_MAX_TRIGGERS],
    )
    return replace(draft, note=note)


def still_holding(before: str, now: str, because: str) -> str:
    """Return the clauses of an older body that are not in the newer one and are not what it changes."""
    text = "\n".join(row for row in before.split("\n") if not row.startswith(links.RELATED))
    said, reason = lifecycle.shortened_words(now), lifecycle.shortened_words(because)
    clauses = [clause for each in _CLAUSE.split(text) if lifecycle.shortened_words(clause := each.strip(" ;,"))]

    def changed(among: Sequence[str]) -> str:
        measured = [each for each in among if _is_measured_otherwise(each, now)]
        return max(measured, key=lambda each: len(lifecycle.shortened_words(each) & said), default="")

    def holds(clause: str, among: Sequence[str]) -> bool:
        own = lifecycle.shortened_words(clause)
        withdrawn = (_figures(clause) - _figures(now)) & _figures(because)
        return clause != changed(among) and not withdrawn and len(own & (said | reason)) < _SAID_AGAIN * len(own)

    left: list[str] = []
    for clause in clauses:
        parts = _PART.split(clause)
        if holds(clause, clauses):
            left.append(clause)
        elif len(parts) > 1:
            left += [part for part in parts if holds(part, parts)]
    return "; ".join(each.rstrip(".") for each in left) + "." if left else ""


_CLAUSE = re.compile(r"(?<=[.;!?])\s+|;\s*|\n+|,\s+(?=(?:and|but|except|unless|only|never|always|not|no|also)\b)")
_PART = re.compile(r",\s+|\s+(?:and|und)\s+")
_SAID_AGAIN = 0.5
_FIGURE = re.compile(r"\d[\d.,:]*")
_MEASURE = re.compile(r"(\d[\d.,:]*)\s*([^\W\d_]+|%)")


def _figures(text: str) -> frozenset[str]:
    return frozenset(found.strip(".,:") for found in _FIGURE.findall(text))


def _is_measured_otherwise(clause: str, now: str) -> bool:
    """Return whether each figure with a unit in the clause has another value in ``now``, which may take its place."""
    measured = {unit.casefold(): figure.strip(".,:") for figure, unit in _MEASURE.findall(now)}
    ours = [(figure.strip(".,:"), unit.casefold()) for figure, unit in _MEASURE.findall(clause)]
    return bool(ours) and all(measured.get(unit, figure) != figure for figure, unit in ours)


def _may_grow(draft: Draft, older: Note) -> bool:
    """Return whether a draft may be added to an older note.

    A proposed draft adds nothing to a note that is not proposed, and only a proposed one adds to a proposed note. What a person has
    rejected stays rejected in any wording. A replaced note that a person states again later becomes a new note. A note that
    expires, or that holds only on one branch or in one session, is not merged with one that does not. What a person's own note
    holds already, or what a tool only repeats, is not written again.
    """
    if not holds_wherever(older, draft.note):
        return False
    if older.status is NoteStatus.REJECTED or not older.id:
        return True
    waits = draft.note.status is NoteStatus.PROPOSED
    if waits and older.status is not NoteStatus.PROPOSED and not addition(draft, older):
        return True
    if not holds_wherever(draft.note, older):
        return False
    if older.status is NoteStatus.SUPERSEDED and draft.note.origin == "user":
        return older.valid_until is None or draft.note.created <= older.valid_until
    return NoteStatus.PROPOSED not in (draft.note.status, older.status) or draft.note.status is older.status


def _corroborated(older: Note, evidence: Sequence[str]) -> int:
    """Return the importance that a note rises to as further sessions repeat it; 0 where it does not rise."""
    before, now = (len(lifecycle.sessions_of(each)) for each in (older.evidence, (*older.evidence, *evidence)))
    return next((weight for sessions, weight in _WORTH if before < sessions <= now and older.importance < weight), 0)


def compose(draft: Draft, pages: Mapping[str, str], siblings: Sequence[str]) -> str:
    """Return the body of a note.

    ``pages`` maps the keys of those of its entities that have a page to link targets. ``siblings`` are links.
    """
    text, named = links.name_entities(draft.note.body, pages)
    paragraphs = [text]
    for rejected in draft.rejected:
        target = pages.get(entity_key(rejected.alternative))
        alternative = titled(target, rejected.alternative) if target else rejected.alternative
        named |= {entity_key(rejected.alternative)}
        paragraphs.append(_rejection(alternative, rejected.reason))
    unnamed = [titled(target, entity.name) for entity in draft.entities if (target := _unnamed(entity, pages, named))]
    paragraphs.append(related([*siblings, *unnamed]))
    return text_block("\n\n".join(filter(None, paragraphs)))


def plain_body(draft: Draft) -> str:
    """Return the body without links, by which two wordings of one note are compared."""
    return compose(draft, {}, ())


def addition(draft: Draft, older: Note) -> str:
    """Return the content of a draft that an older note on the same subject lacks; often nothing.

    Another figure, a negation or a word in another's place counts as a difference, however alike the sentences are.
    """
    held = words(older.body)
    said = words(draft.note.body)
    paragraphs: list[str] = []
    last = _said_last(older.body)
    differs = lifecycle.at_odds(draft.note.body, last) or lifecycle.exchanges_words(draft.note.body, last)
    if said and (len(said & held) < _SAID_ALREADY * len(said) or differs):
        apart = "\n\n" if draft.note.body.startswith(("```", "~~~")) else " "  # a fence must begin at the margin
        paragraphs.append(f"{draft.note.created:%Y-%m-%d}:{apart}{draft.note.body}")
    paragraphs += [_rejection(one.alternative, one.reason) for one in draft.rejected if not words(one.alternative) <= held]
    return text_block("\n\n".join(paragraphs))


def _said_last(body: str) -> str:
    """Return what was added to a note last; all of it where nothing was."""
    lines = [line for line in body.split("\n") if line and not line.startswith(("**", "> "))]
    last = max((place for place, line in enumerate(lines) if _ADDED.match(line)), default=None)
    return "\n".join(lines) if last is None else _ADDED.sub("", "\n".join(lines[last:]), count=1)


def _unnamed(entity: Entity, pages: Mapping[str, str], named: frozenset[str]) -> str:
    return "" if entity.key in named else pages.get(entity.key, "")


def _in_several_sessions(drafts: Sequence[Draft]) -> bool:
    """Return whether drafts come from several sessions. A draft without a session counts as one of its own."""
    return len({source for draft in drafts for source in lifecycle.sessions_of(draft.note.evidence) or {draft.note.id}}) > 1


def _rejection(alternative: str, reason: str) -> str:
    """Return a callout of one line, which Obsidian draws as a box: a rejected alternative must not look like the decision."""
    return f"> [!failure] Rejected: {alternative}: {reason}" if reason else f"> [!failure] Rejected: {alternative}"
