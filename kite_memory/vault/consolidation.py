"""Plan how to tidy the vault: decided over all of its notes at once, printed, and done step by step.

Nothing here touches a disk. Every step lists which files it changes and their new text, so that it can be undone exactly.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import islice
from pathlib import PurePosixPath
from typing import assert_never

from kite_memory.model.note import REVIEW_SPLIT, SPOKEN_KINDS, Note, NoteKind, NoteStatus, Scope
from kite_memory.text.display import clip
from kite_memory.text.quoting import quoted
from kite_memory.vault import lifecycle, links
from kite_memory.vault.drafting import division
from kite_memory.vault.ledger import link_key
from kite_memory.vault.links import related, tame_line, titled
from kite_memory.vault.notefile import FOLDERS, REVIEW, Raw, body_of, moment, render, with_addition, with_body, with_properties
from kite_memory.vault.usefulness import NoteUse, has_faded
from kite_memory.vault.wording import entity_key, note_id, one_line, slug, text_block, words
from kite_memory.vault.writing import MOST_WAITING, first_to_lapse, lapsed

ARCHIVE_TAG, DAY_TAG = "archive", "day"

_MONTH = timedelta(days=30)
_LONG = 6_000
"""Characters beyond which a note is probably several."""
_SHORT_JOURNAL = 1_500
_SUMMARY = 600
_ARCHIVE = 400_000
_RARE_WORDS, _SHARED_RARE, _COMMON = 8, 3, 40
_SAID_ALREADY = 0.7
_WAITING = timedelta(days=30)
"""How long a person is asked about a note."""
_MOST_MENTIONS, _MOST_LINKS = 12, 40
_MOST_EVIDENCE = 50
_OPENING = 140
_NEVER_KEPT = frozenset({NoteStatus.PROPOSED, NoteStatus.REJECTED})
_KINDS = tuple(NoteKind)
_NO_TIME = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Two notes with the same content.

    What ``drop`` adds goes into ``keep``, and it is marked as replaced, so that every link still leads somewhere.

    ``whole``: a person merges them, perhaps two of different content: all is added that has a word of its own.
    """

    keep: Note
    drop: Note
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityLinks:
    """The page of an entity gets links to notes that name it, and that neither link to it nor are linked from it."""

    page: Note
    notes: tuple[Note, ...]
    ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A person is asked to make several notes of one: it waits in review."""

    note: Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """An old journal keeps its summary; its full text goes into its month's archive, which may have to be made."""

    note: Note
    archive: Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """Faded notes are no longer recalled or listed; the month's archive links to them."""

    notes: tuple[Note, ...]
    archive: Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Lapse:
    """A person was asked long enough: a proposed note is archived; two notes that may differ both stay.

    With ``crowded``, weightier notes wait as well, and more than a person goes through.
    """

    note: Note
    crowded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The journal's page of a day that is over is made, or brought up to date."""

    page: Note


Step = Merge | EntityLinks | Split | Fold | Archive | Lapse | Day


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """A session as the journal names it: when it began, in which project, and the beginning of its first prompt."""

    session: str
    at: datetime
    project: str
    opening: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRewrite:
    """A file's text now and after. A file to be made has no ``before``, and has a ``note``."""

    path: str
    before: str
    after: str
    note: Note | None = None


def steps(
    notes: Sequence[Note],
    *,
    now: datetime,
    months: int,
    is_ours: Callable[[Note], bool],
    settled: frozenset[tuple[str, str]],
    asked: Callable[[Note], bool],
    used: Callable[[Note], NoteUse] = lambda note: NoteUse(),
    waits_since: Callable[[Note], datetime | None] = lambda note: None,
    stays: Callable[[Note], bool] = lambda note: False,
    due: Sequence[Note] = (),
) -> Iterator[Step]:
    """Yield the steps in a fixed order.

    ``settled`` pairs were decided before, ``asked`` is true for notes whose split was proposed already. ``waits_since`` returns
    from when on a person was asked about a note, ``stays`` whether one that was archived was wanted back. ``due`` are the
    pages of the journal as they should be.
    """
    yield from days(due, {note.id: note for note in notes}, is_ours)
    notes = sorted((note for note in notes if note.id and not note.has_expired(now)), key=lambda note: (note.created, note.path))
    merged: set[str] = set()
    for merge in _merges(notes, is_ours, settled):
        merged |= {merge.keep.id, merge.drop.id}
        yield merge
    yield from _mentions([note for note in notes if note.id not in merged], is_ours)
    room = max(0, MOST_WAITING - sum(waits_since(note) is not None for note in notes))
    yield from islice((Split(note=note) for note in notes if note.id not in merged and _is_long(note) and not asked(note)), room)
    yield from _folds([note for note in notes if note.id not in merged], now - months * _MONTH, is_ours)
    yield from _archives(
        [note for note in notes if note.id not in merged and not stays(note) and has_faded(note, used(note), now)], notes, is_ours
    )
    yield from _lapses([note for note in notes if note.id not in merged], waits_since, now)


def changes(step: Step, texts: Mapping[str, str]) -> tuple[FileRewrite, ...]:
    """Return what a step does to the files whose ``texts`` are these; nothing where one cannot be changed safely."""
    match step:
        case Merge(keep=keep, drop=drop, whole=whole):
            return _both(
                FileRewrite(path=keep.path, before=texts[keep.path], after=_merged(texts[keep.path], keep, drop, whole=whole)),
                FileRewrite(path=drop.path, before=texts[drop.path], after=_replaced(texts[drop.path], keep)),
            )
        case EntityLinks(page=page, notes=notes, ours=ours):
            return _both(
                FileRewrite(path=page.path, before=texts[page.path], after=_mentioning(texts[page.path], notes, ours=ours))
            )
        case Split(note=note):
            marked = with_properties(texts[note.path], {REVIEW: REVIEW_SPLIT}) or ""
            return _both(FileRewrite(path=note.path, before=texts[note.path], after=marked))
        case Fold(note=note, archive=archive):
            said = f"## {titled(_stem(note), note.title)}\n\n{_body_of(note)}"
            short = FileRewrite(path=note.path, before=texts[note.path], after=_summarized(texts[note.path], archive))
            if before := texts.get(archive.path, ""):
                return _both(FileRewrite(path=archive.path, before=before, after=with_addition(before, said)), short)
            made = replace(archive, body=said, links=links.targets(said))
            return _both(FileRewrite(path=archive.path, before="", after=render(made), note=made), short)
        case Archive(notes=notes, archive=archive):
            said = related([titled(_stem(note), note.title) for note in notes])
            gone = [FileRewrite(path=note.path, before=texts[note.path], after=_archived(texts[note.path])) for note in notes]
            if before := texts.get(archive.path, ""):
                return _both(FileRewrite(path=archive.path, before=before, after=with_addition(before, said)), *gone)
            made = replace(archive, body=said, links=links.targets(said))
            return _both(FileRewrite(path=archive.path, before="", after=render(made), note=made), *gone)
        case Lapse(note=note):
            text = texts[note.path]
            return _both(FileRewrite(path=note.path, before=text, after=with_properties(text, lapsed(note)) or ""))
        case Day(page=page):
            if before := texts.get(page.path, ""):
                after = with_body(before, f"{page.body}\n")
                return _both(FileRewrite(path=page.path, before=before, after=after))
            return _both(FileRewrite(path=page.path, before="", after=render(page), note=page))
        case _:
            assert_never(step)


def step_key(step: Step) -> tuple[str, str, str]:
    """Return what is done, to which file, and why or with what."""
    match step:
        case Merge(keep=keep, drop=drop):
            return "merge", drop.path, f"into {keep.path}"
        case EntityLinks(page=page, notes=notes):
            return "mention", page.path, ", ".join(_stem(note) for note in notes)
        case Split(note=note):
            divided = division(note.body)
            several = f" under {len(divided.parts)} headings" if divided is not None else ""
            return "split", note.path, f"{len(note.body):,} characters{several}: asks you in review"
        case Fold(note=note, archive=archive):
            return "fold", note.path, f"into {archive.path}"
        case Archive(notes=notes, archive=archive):
            return "archive", archive.path, f"{len(notes)} no longer shown or used: {', '.join(_stem(note) for note in notes)}"
        case Lapse(note=note, crowded=crowded):
            what = "archived" if note.status is NoteStatus.PROPOSED else "stays beside the other"
            waited = f"more than {MOST_WAITING} wait in review" if crowded else f"waited {_WAITING.days} days in review"
            return "lapse", note.path, f"{waited}: {what}"
        case Day(page=page):
            return "journal", page.path, f"{len(page.links)} notes of that day"
        case _:
            assert_never(step)


def needed(step: Step) -> tuple[str, ...]:
    """Return the files that a step changes."""
    match step:
        case Merge(keep=keep, drop=drop):
            return keep.path, drop.path
        case EntityLinks(page=note) | Split(note=note) | Lapse(note=note):
            return (note.path,)
        case Archive(notes=notes, archive=archive):
            return archive.path, *(note.path for note in notes)
        case Fold(note=note, archive=archive):
            return archive.path, note.path
        case Day(page=page):
            return (page.path,)
        case _:
            assert_never(step)


def made_by(step: Step) -> Note | None:
    """Return the note that a step makes unless it is there already."""
    match step:
        case Fold(archive=page) | Archive(archive=page) | Day(page=page):
            return page
        case _:
            return None


def moved(step: Step, path: str) -> Step:
    """Return the step with the present ``path`` of the note that it makes or extends."""
    match step:
        case Fold(archive=page) | Archive(archive=page):
            return replace(step, archive=replace(page, path=path))
        case Day(page=page):
            return replace(step, page=replace(page, path=path))
        case _:
            return step


def day_pages(notes: Sequence[Note], worked: Sequence[Worked], *, today: date, zone: tzinfo | None = None) -> list[Note]:
    """Return a page for each day before ``today`` on which a note was kept: what was worked on, and links to the notes.

    A page that is there stays when its notes are gone. Notes are only linked, in a line of related notes, so that one that is
    forgotten is gone from here, too.
    """
    kept: dict[date, list[Note]] = defaultdict(list)
    for note in notes:
        day = note.created.astimezone(zone).date()
        if note.id == _day_id(day):
            kept.setdefault(day, [])
        elif note.id and day < today and note.kind in SPOKEN_KINDS and note.status not in _NEVER_KEPT and not note.key:
            kept[day].append(note)
    begun: dict[date, list[Worked]] = defaultdict(list)
    for session in worked:
        begun[session.at.astimezone(zone).date()].append(session)
    named = {session.session: session for session in worked}
    return [_day_page(day, those, begun[day], named, zone) for day, those in sorted(kept.items())]


def _day_page(day: date, notes: Sequence[Note], begun: Sequence[Worked], named: Mapping[str, Worked], zone: tzinfo | None) -> Note:
    cited = lifecycle.sessions_of([reference for note in notes for reference in note.evidence])
    sessions = {each.session: each for each in (*begun, *(named[one] for one in cited if one in named))}
    projects: dict[str, list[str]] = defaultdict(list)
    for each in sorted(sessions.values(), key=lambda each: (each.project, each.at, each.session)):
        projects[_inert(each.project) or "elsewhere"].append(f"- {_inert(each.opening)}")
    paragraphs = ["\n".join((f"**{project}**", "", *dict.fromkeys(lines))) for project, lines in projects.items()]
    made = sorted(notes, key=lambda note: (_KINDS.index(note.kind), note.created, note.path))
    body = "\n\n".join((*paragraphs, related([titled(_stem(note), note.title) for note in made if links.holds(_stem(note))])))
    at = datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
    return Note(
        id=_day_id(day),
        path=f"{FOLDERS[NoteKind.JOURNAL]}/{day.isoformat()}.md",
        kind=NoteKind.JOURNAL,
        title=f"Journal of {day.isoformat()}",
        body=text_block(body),
        links=links.targets(body),
        created=at,
        updated=at,
        tags=(DAY_TAG,),
        scope=Scope.GLOBAL,
        origin="assistant",
        importance=1,
    )


def _day_id(day: date) -> str:
    return note_id(_NO_TIME, "day", day.isoformat())


def is_day(id: str, path: str) -> bool:
    """Return whether a note with this id and path is the journal's page of a day."""
    try:
        return id == _day_id(date.fromisoformat(PurePosixPath(path).stem))
    except ValueError:
        return False


def _inert(text: str) -> str:
    """Return the beginning of a text as one line without links and markup that would act."""
    return clip(tame_line(one_line(quoted(links.unlinked(one_line(text)))), 2 * _OPENING), _OPENING)


def days(pages: Sequence[Note], there: Mapping[str, Note], is_ours: Callable[[Note], bool]) -> Iterator[Day]:
    """Yield a step for each page that is not there or out of date; ``there`` are the notes by id. A person's edits stay."""
    for page in pages:
        found = there.get(page.id)
        if found is None:
            yield Day(page=page)
        elif is_ours(found) and found.body != page.body:
            yield Day(page=replace(page, path=found.path))


def _both(*made: FileRewrite) -> tuple[FileRewrite, ...]:
    return made if all(change.after and change.after != change.before for change in made) else ()


def _merges(notes: Sequence[Note], is_ours: Callable[[Note], bool], settled: frozenset[tuple[str, str]]) -> Iterator[Merge]:
    """Yield merges of notes that repeat each other. The one that its owner has edited stays, else the older.

    No note is in two merges at once.
    """
    taken: set[str] = set()
    for one, other in _alike([note for note in notes if _may_merge(note)]):
        if {one.id, other.id} & taken or settled & {(one.id, other.id), (other.id, one.id)}:
            continue
        if not lifecycle.repeats(one, other):
            continue
        keep, drop = (one, other) if is_ours(other) else (other, one)
        if not is_ours(drop) or _ends_sooner(keep, drop):
            continue
        taken |= {one.id, other.id}
        yield Merge(keep=keep, drop=drop)


def _ends_sooner(keep: Note, drop: Note) -> bool:
    return keep.expires is not None and (drop.expires is None or drop.expires > keep.expires)


def _may_merge(note: Note) -> bool:
    return note.status is NoteStatus.ACCEPTED and not note.key and not note.conflicts and note.kind in SPOKEN_KINDS


def _alike(notes: Sequence[Note]) -> Iterator[tuple[Note, Note]]:
    """Yield pairs, the older first, that share some of their rarest words: those that repeat each other are among them."""
    said = {note.path: words(lifecycle.text_of(note)) for note in notes}
    held = Counter(word for each in said.values() for word in each)
    holders: dict[tuple[str, ...], list[Note]] = defaultdict(list)
    for note in notes:
        rare = sorted(said[note.path], key=lambda word: (held[word], word))[:_RARE_WORDS]
        place = (note.kind.value, note.project, note.scope.value, note.session, note.branch)
        earlier = Counter(other.path for word in rare if held[word] <= _COMMON for other in holders[(*place, word)])
        known = {other.path: other for word in rare if held[word] <= _COMMON for other in holders[(*place, word)]}
        least = min(_SHARED_RARE, len(rare))
        yield from ((known[path], note) for path, count in sorted(earlier.items()) if count >= least)
        for word in said[note.path]:
            if held[word] <= _COMMON:
                holders[(*place, word)].append(note)


def _merged(text: str, keep: Note, drop: Note, *, whole: bool) -> str:
    evidence = tuple(dict.fromkeys((*keep.evidence, *drop.evidence)))[:_MOST_EVIDENCE]
    names = tuple(dict.fromkeys((*keep.aliases, drop.title, *drop.aliases)))
    replaced = [stem for stem in dict.fromkeys((*keep.supersedes, _stem(drop))) if links.holds(stem)]
    given: dict[str, object] = {"aliases": list(names), "supersedes": [f"[[{stem}]]" for stem in replaced]}
    if evidence != keep.evidence:
        given["evidence"] = list(evidence)
    if drop.importance > keep.importance:
        given["importance"] = Raw(text=str(drop.importance))
    changed = with_properties(text, given)
    if changed is None:
        return ""
    held, said = words(keep.body), words(lifecycle.text_of(replace(drop, title="")))
    new = not said <= held if whole else said and len(said & held) < _SAID_ALREADY * len(said)
    return with_addition(changed, f"{drop.created:%Y-%m-%d}: {_without_related(drop.body)}") if new else changed


def _replaced(text: str, keep: Note) -> str:
    marks: dict[str, object] = {
        "status": NoteStatus.SUPERSEDED.value,
        "superseded_by": f"[[{_stem(keep)}]]" if links.holds(_stem(keep)) else "",
        "valid_until": moment(keep.holds_from),
    }
    return with_properties(text, marks) or ""


def _mentions(notes: Sequence[Note], is_ours: Callable[[Note], bool]) -> Iterator[EntityLinks]:
    speaking: dict[str, list[Note]] = defaultdict(list)
    for note in notes:
        if note.kind is not NoteKind.ENTITY and note.status is NoteStatus.ACCEPTED:
            for entity in dict.fromkeys(map(entity_key, note.entities)):
                speaking[entity].append(note)
    for page in notes:
        if page.kind is not NoteKind.ENTITY or page.status not in (NoteStatus.ACCEPTED, NoteStatus.PROPOSED):
            continue
        linked = set(map(link_key, page.links))
        of_it = {note.path: note for name in (page.title, *page.aliases) for note in speaking[entity_key(name)]}
        unlinked = [
            note
            for note in of_it.values()
            if link_key(note.path) not in linked and link_key(page.path) not in map(link_key, note.links)
        ]
        room = min(_MOST_MENTIONS, _MOST_LINKS - len(linked))
        if unlinked and room > 0:
            first = tuple(sorted(unlinked, key=lambda note: (note.created, note.path))[:room])
            yield EntityLinks(page=page, notes=first, ours=is_ours(page))


def _mentioning(text: str, notes: Sequence[Note], *, ours: bool) -> str:
    """Extend a last line of links that is ours; otherwise add one at the end, so that nothing a person wrote changes."""
    more = ", ".join(titled(_stem(note), note.title) for note in notes)
    kept = text.rstrip("\r\n")
    last = kept.rpartition("\n")[2]
    if ours and last.startswith(links.RELATED) and last.endswith("]]"):
        return f"{kept}, {more}{text[len(kept) :]}"
    return with_addition(text, related([titled(_stem(note), note.title) for note in notes]))


def _is_long(note: Note) -> bool:
    may_be_split = note.status is NoteStatus.ACCEPTED and not note.key
    return may_be_split and len(note.body) > _LONG and note.kind in SPOKEN_KINDS


def _folds(notes: Sequence[Note], before: datetime, is_ours: Callable[[Note], bool]) -> Iterator[Fold]:
    sizes: dict[str, int] = {}
    there = {note.id: note for note in notes}
    for note in notes:
        if note.kind is not NoteKind.JOURNAL or note.created >= before or {ARCHIVE_TAG, DAY_TAG} & {*note.tags} or note.key:
            continue
        if len(note.body) < _SHORT_JOURNAL or "**Archived:**" in note.body or not is_ours(note):
            continue
        archive = _archive(note, there, sizes)
        sizes[archive.id] = sizes.get(archive.id, len(archive.body)) + len(note.body)
        yield Fold(note=note, archive=archive)


def _archives(faded: Sequence[Note], notes: Sequence[Note], is_ours: Callable[[Note], bool]) -> Iterator[Archive]:
    """Yield archives of faded notes, by project and the month in which they were made; without those that a person has edited."""
    there = {note.id: note for note in notes}
    sizes: dict[str, int] = {}
    groups: dict[str, tuple[Note, list[Note]]] = {}
    for note in faded:
        if is_ours(note):
            archive = _archive(note, there, sizes)
            sizes[archive.id] = sizes.get(archive.id, len(archive.body)) + len(note.title) + len(note.path)
            groups.setdefault(archive.id, (archive, []))[1].append(note)
    for archive, group in groups.values():
        yield Archive(notes=tuple(group), archive=archive)


def _lapses(notes: Sequence[Note], waits_since: Callable[[Note], datetime | None], now: datetime) -> Iterator[Lapse]:
    """Yield what has waited long, and what waits behind as many weightier or newer notes as a person goes through."""
    waiting = [(since, note) for note in notes if (since := waits_since(note)) is not None]
    long = [note for since, note in waiting if now - since >= _WAITING]
    rest = sorted((note for since, note in waiting if now - since < _WAITING), key=first_to_lapse)
    yield from (Lapse(note=note) for note in long)
    yield from (Lapse(note=note, crowded=True) for note in rest[: max(0, len(rest) - MOST_WAITING)])


def _archived(text: str) -> str:
    return with_properties(text, {"status": NoteStatus.ARCHIVED.value}) or ""


def _archive(note: Note, there: Mapping[str, Note], sizes: Mapping[str, int]) -> Note:
    """Return the archive of the month, of the note's project and scope; the next one where it is full."""
    month = f"{note.created:%Y-%m}"
    for number in range(1, 1_000):
        suffix = f"-{number}" if number > 1 else ""
        identity = note_id(_NO_TIME, "archive", note.scope.value, note.project, month, str(number))
        found = there.get(identity)
        if sizes.get(identity, len(found.body) if found else 0) + len(note.body) <= _ARCHIVE:
            break
    if found is not None:
        return found
    name = slug(f"archive {note.project} {month}") + suffix
    title = f"Archive of {note.project or 'everything'}, {month}{suffix}"
    return Note(
        id=identity,
        path=f"{FOLDERS[NoteKind.JOURNAL]}/{name}.md",
        kind=NoteKind.JOURNAL,
        title=title,
        body="",
        created=note.created,
        updated=note.created,
        tags=(ARCHIVE_TAG,),
        scope=note.scope,
        project=note.project,
        origin=note.origin,
        importance=1,
    )


def _summarized(text: str, archive: Note) -> str:
    body = text_block(body_of(text))
    opening = body.partition("\n## ")[0].strip()
    summary = clip(opening, _SUMMARY) if opening else ""
    listed = [line for line in body.splitlines() if line.startswith(links.RELATED)]
    parts = (summary, f"**Archived:** {links.write(_stem(archive))}", *(line for line in listed if line not in summary))
    return with_body(text, "\n\n".join(filter(None, parts)) + "\n")


def _body_of(note: Note) -> str:
    """Return a body for use within another: its headings go one level down."""
    lines = (f"#{line}" if line.startswith("#") and not line.startswith("######") else line for line in note.body.split("\n"))
    return "\n".join(lines)


def _without_related(body: str) -> str:
    return "\n".join(line for line in body.split("\n") if not line.startswith(links.RELATED)).strip()


def _stem(note: Note) -> str:
    return PurePosixPath(note.path).stem
