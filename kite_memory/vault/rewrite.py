"""What becomes of a note that is to say something else: a body of ours is replaced, one that its owner has edited only added to."""

from collections.abc import Callable

from kite_memory.model.note import Note
from kite_memory.vault import links
from kite_memory.vault.notefile import body_of, with_addition
from kite_memory.vault.properties import with_properties
from kite_memory.vault.wording import text_block


def restated(text: str, old: Note, new: Note, *, ours: bool, addition: str, leads: Callable[[str], bool]) -> str | None:
    """The file's text afterwards; ``None`` where its properties cannot be changed safely.

    ``addition`` is left out where the note has it already. Names and tags are only added: what its owner has given stays.
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
