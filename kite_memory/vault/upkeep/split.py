"""Split one note into several, at its own headings: nothing is reworded, and nothing is left out."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from kite_memory.model.note import Note, NoteStatus
from kite_memory.vault import links
from kite_memory.vault.notefile import FOLDERS, body_of
from kite_memory.vault.planning import related
from kite_memory.vault.properties import with_properties
from kite_memory.vault.taming import titled
from kite_memory.vault.wording import digest, entity_key, note_id, note_stem, one_line, shortened, text_block

PROPERTY, ASKED, LAPSED = "review", "split", "lapsed"
"""The property of a note that a person is asked to divide, and its values: asked, or no longer asked."""

_HEADING = re.compile(r"(#{1,5})[ \t]+(\S.*)")
_MOST = 40
_TITLE = 90
_CLEAR_WORDS = 3
"""Words of a heading that is clear by itself."""
_LEAST_OF_WHOLE = 12
"""Minimum characters of the whole's title that are shown; fewer are of no use."""


def asks(note: Note) -> bool:
    """Return whether a person must decide something about a note other than whether to keep it."""
    return (bool(note.conflicts) and note.review != LAPSED) or note.review == ASKED


def waits(note: Note) -> bool:
    """Return whether a note waits for a person's decision."""
    return note.status is NoteStatus.PROPOSED or (note.status is NoteStatus.ACCEPTED and asks(note))


@dataclass(frozen=True, slots=True, kw_only=True)
class NotePart:
    heading: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """A note taken apart.

    ``opening`` is all that stands above the parts, ``closing`` what stands below them and is about the whole.
    """

    opening: str
    parts: tuple[NotePart, ...]
    closing: str = ""


def division(body: str) -> Division | None:
    """Split a body at the highest level with several headings; ``None`` where none exists, or too many.

    A heading with nothing below it begins no note: it stays with what stands before it.
    """
    lines = body.split("\n")
    headings = [(at, found) for at in _outside_code(body) if (found := _HEADING.fullmatch(lines[at]))]
    levels = Counter(len(found[1]) for _, found in headings)
    level = next((each for each in sorted(levels) if levels[each] > 1), None)
    if level is None:
        return None
    starts = [(at, _unclosed(found[2])) for at, found in headings if len(found[1]) == level]
    ends = [*(at for at, _ in starts[1:]), len(lines)]
    said = [(at, title, end) for (at, title), end in zip(starts, ends, strict=True) if "".join(lines[at + 1 : end]).strip()]
    if not 1 < len(said) <= _MOST:
        return None
    last = said[-1][0] + 1 + _closing_at(lines[said[-1][0] + 1 :])
    ends = [*(at for at, _, _ in said[1:]), last]
    parts = tuple(
        NotePart(heading=one_line(title), text=text_block("\n".join(lines[at + 1 : end])))
        for (at, title, _), end in zip(said, ends, strict=True)
    )
    if not all(part.text for part in parts):
        return None
    opening = text_block("\n".join(lines[: said[0][0]]))
    return Division(opening=opening, parts=parts, closing=text_block("\n".join(lines[last:])))


def notes(note: Note, divided: Division) -> list[Note]:
    """Return one note for each part, with the properties of the whole and a link back to it.

    Its text stays to the letter; so does a heading that its title does not hold in full.
    """
    stem = PurePosixPath(note.path).stem
    back = related([links.write(stem)] if links.holds(stem) else [])
    made: list[Note] = []
    for number, part in enumerate(divided.parts):
        title = _title(note.title, one_line(links.unlinked(part.heading)))
        heading = "" if part.heading in title else f"# {part.heading}"
        body = links.ExistingText("\n\n".join(filter(None, (heading, part.text, back))))
        spoken = entity_key(f"{part.heading} {part.text}")
        made.append(
            replace(
                note,
                id=note_id(note.created, "part", note.id or note.path, str(number), part.heading, digest(part.text)),
                path=f"{FOLDERS[note.kind]}/{note_stem(title, note.created)}.md",
                title=title,
                body=body,
                links=links.targets(body),
                aliases=(),
                triggers=(),
                entities=tuple(each for each in note.entities if entity_key(each) in spoken),
                supersedes=(),
                review="",
                status=NoteStatus.ACCEPTED,
            )
        )
    return made


def _title(whole: str, heading: str) -> str:
    """Return a part's title: its heading, with the whole's title in front where the heading is too short."""
    room = _TITLE - len(heading) - len(": ")
    if len(heading.split()) >= _CLEAR_WORDS or room < min(len(whole), _LEAST_OF_WHOLE):
        return shortened(heading, _TITLE)
    return f"{shortened(whole, room)}: {heading}"


def remainder(text: str, divided: Division, made: Sequence[Note]) -> str:
    """Return the whole's new text, which links to its parts; empty where it cannot be changed safely."""
    changed = with_properties(text, {PROPERTY: ""})
    if changed is None:
        return ""
    listed = "\n".join(f"- {titled(PurePosixPath(each.path).stem, each.title)}" for each in made)
    body = "\n\n".join(filter(None, (divided.opening, listed, divided.closing)))
    return changed[: len(changed) - len(body_of(changed))] + body + "\n"


def _unclosed(heading: str) -> str:
    """Return a heading without closing marks, which stand apart from its words: those of C# do not."""
    words = heading.rstrip().rstrip("#")
    return words.rstrip() if words.endswith((" ", "\t")) else heading.rstrip()


def _closing_at(lines: Sequence[str]) -> int:
    """Return where the lines of links at the very end begin, which do not belong to the last part."""
    at = len(lines)
    while at and (not lines[at - 1].strip() or lines[at - 1].startswith("**Related:**")):
        at -= 1
    return at


def _outside_code(body: str) -> Iterator[int]:
    """Yield the numbers of the lines that begin outside of code."""
    stretches = list(links.note_prose(body))
    place = at = 0
    for number, line in enumerate(body.split("\n")):
        while place < len(stretches) and stretches[place][1] <= at:
            place += 1
        if place < len(stretches) and stretches[place][0] <= at:
            yield number
        at += len(line) + 1
