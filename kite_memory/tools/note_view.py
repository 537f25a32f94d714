"""How a note looks to an agent: quoted, and without a word of any note that it may not see.

A link tells the title of what it leads to. Under a bounded grant only links whose target the grant sees are kept; of the others
stays what the note itself says: the words that the link shows, or the name of something that the note speaks of.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from kite_memory.model.note import Note
from kite_memory.recall.lexical import terms
from kite_memory.recall.rendering import plain_line, quoted
from kite_memory.recall.search import name, snippet
from kite_memory.tools.access import Grant
from kite_memory.tools.bridge import Json
from kite_memory.tools.store import Found, Store
from kite_memory.vault import links
from kite_memory.vault.notefile import FOLDERS
from kite_memory.vault.wording import entity_key

LONGEST_TEXT = 20_000
"""Characters of one answer."""

Leads = Callable[[str], bool]
"""Whether a link's target is a note that may be seen."""

_RELATED = re.compile(r"^\*\*Related:\*\*.*$", re.MULTILINE)
_HIDDEN = "..."
_LOOKED_UP = 40
_PLACES = tuple(dict.fromkeys(FOLDERS.values()))


def seen_by(store: Store, grant: Grant) -> Leads:
    """Looks up some of the links of one note; those behind them lead nowhere."""
    known: dict[str, bool] = {}

    def leads(target: str) -> bool:
        if grant.whole:
            return True
        if target not in known and len(known) < _LOOKED_UP:
            file = target if target.endswith(".md") else f"{target}.md"
            paths = [file] if "/" in target else [f"{folder}/{file}" for folder in _PLACES]
            known[target] = any(store.note(grant, path) is not None for path in paths)
        return known.get(target, False)

    return leads


def nowhere(target: str) -> bool:
    """For where many notes are shown at once: no link is looked up, and none is kept."""
    return False


def as_seen(note: Note, grant: Grant, leads: Leads = nowhere) -> Note:
    """The note itself for who sees everything; else with no link out of the grant in its body or its properties."""
    if grant.whole:
        return note
    spoken_of = {entity_key(entity) for entity in note.entities}

    def shown(link: links.Link) -> str | None:
        if not link.target or leads(link.target):
            return None
        named = PurePosixPath(link.target).name
        return link.label or (named if entity_key(named) in spoken_of else _HIDDEN)

    def line(related: re.Match[str]) -> str:
        kept = [link for link in links.find(related[0]) if link.target and leads(link.target)]
        return f"**Related:** {', '.join(links.write(link.target, link.label) for link in kept)}" if kept else ""

    body = links.replace(_RELATED.sub(line, note.body), shown)
    return replace(
        note,
        body=body,
        links=links.targets(body),
        supersedes=tuple(target for target in note.supersedes if leads(target)),
        superseded_by=note.superseded_by if note.superseded_by and leads(note.superseded_by) else "",
    )


def told(note: Note, grant: Grant) -> Json:
    """What a list says of a note. A file's name may have a number because another note has the name: only who sees all gets it."""
    return {
        "id": name(note),
        "path": plain_line(note.path) if grant.whole else "",
        "kind": note.kind.value,
        "title": plain_line(quoted(plain_line(note.title))),
        "project": plain_line(note.project),
        "scope": note.scope.value,
        "status": note.status.value,
        "created": note.created.isoformat(),
    }


def found(hit: Found, grant: Grant, query: str) -> Json:
    note = as_seen(hit.note, grant)
    line, why = hit.snippet, hit.why
    if not grant.whole:  # what was found may be the name of a link
        line = snippet(note, terms(query))
        why = ", ".join(part for part in why.split(", ") if not part.startswith("words:"))
    return {**told(note, grant), "score": hit.score, "why": plain_line(why), "snippet": plain_line(quoted(line), 240)}


def framed(about: str, lines: Sequence[str]) -> str:
    """A block of lines that are `quoted` already."""
    return "\n".join((f"<vault-context>\n[Relevant vault context: {about}]", *lines, "</vault-context>"))


def bounded(entries: Sequence[Json], room: int = LONGEST_TEXT) -> tuple[list[Json], int]:
    """As many as one answer holds, and how many were left out."""
    kept: list[Json] = []
    for entry in entries:
        room -= sum(len(str(value)) + len(key) + 8 for key, value in entry.items())
        if room < 0:
            break
        kept.append(entry)
    return kept, len(entries) - len(kept)


def unframed(text: str) -> str:
    """What stands below the line that names a note, in the frame that an answer puts around it; empty where there is none."""
    frame, _, rest = text.partition("\n--- ")
    _, _, body = rest.partition(" ---\n")
    whole = frame.startswith("<vault-context>") and body.endswith("</vault-context>")
    return body.removesuffix("</vault-context>") if whole else ""
