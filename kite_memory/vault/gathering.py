"""What planning has to know, fetched with a few look-ups for each draft, however large the vault."""

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from kite_memory.model.note import Note, NoteKind
from kite_memory.vault.drafting import Draft
from kite_memory.vault.ledger import Ledger
from kite_memory.vault.listing import GENERATED
from kite_memory.vault.planning import Known, plain_body
from kite_memory.vault.slugs import page_stem
from kite_memory.vault.wording import body_key, title_key

_PREFIX = 40
"""Names that are cut to make room for a number still begin so."""


def gather(drafts: Sequence[Draft], ledger: Ledger, read: Callable[[str], Note | None]) -> Known:
    written: dict[str, str] = {}
    absorbed: dict[str, str] = {}
    buried_ids: set[str] = set()
    buried_titles: set[tuple[str, str]] = set()
    alike: dict[str, Note] = {}
    pages: dict[str, str] = {}
    mentions: dict[str, tuple[str, ...]] = {}
    taken = {name.removesuffix(".md") for name in GENERATED}
    for draft in drafts:
        note = draft.note
        if known := ledger.by_id(note.id):
            written[note.id] = known.path
        if into := ledger.absorbed_by(note.id):
            absorbed[note.id] = into
        buried_ids |= {id for id in (note.id, into) if id and ledger.is_buried(id)}
        if ledger.is_title_buried(note.title, note.project):
            buried_titles.add((title_key(note.title), note.project))
        titled = (*ledger.by_title(note.title), *ledger.named("alias", title_key(note.title)))
        for one in (*titled, *ledger.by_body(body_key(plain_body(draft)))):
            if not one.twin and (one.kind, one.project) == (note.kind.value, note.project) and one.path not in alike:
                found = read(one.path)
                if found is not None:
                    alike[one.path] = found
        taken |= ledger.stems_like(PurePosixPath(note.path).stem[:_PREFIX])
        for entity in draft.entities:
            if entity.key in pages or entity.key in mentions:
                continue
            if ledger.is_title_buried(entity.name, ""):
                buried_titles.add((title_key(entity.name), ""))
            if page := _page_of(entity.name, ledger):
                pages[entity.key] = page
            else:
                mentions[entity.key] = _mentions_of(entity.key, ledger)
                taken |= ledger.stems_like(page_stem(entity.name)[:_PREFIX])
    return Known(
        written=written,
        absorbed=absorbed,
        buried_ids=frozenset(buried_ids),
        buried_titles=frozenset(buried_titles),
        alike=tuple(alike.values()),
        pages=pages,
        mentions=mentions,
        taken=frozenset(taken),
    )


def _page_of(name: str, ledger: Ledger) -> str:
    """The file name of an entity's page: the one made for it, or any note that its owner has called so."""
    titled = (*ledger.by_title(name), *ledger.named("alias", title_key(name)))
    page = next((known for known in titled if known.kind == NoteKind.ENTITY.value), None) or ledger.by_stem(name)
    return PurePosixPath(page.path).stem if page is not None and not page.problem else ""


def _mentions_of(key: str, ledger: Ledger) -> tuple[str, ...]:
    speaking = sorted(known.path for known in ledger.named("entity", key) if not known.twin)
    return tuple(PurePosixPath(path).stem for path in speaking)
