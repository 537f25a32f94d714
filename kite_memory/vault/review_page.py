"""`Review.md`: the notes that wait for a person, with boxes to tick. What the person writes between them stays.

Each box names in a comment its note and the version of it. So it means the same wherever it is moved to, and nothing once the
note has changed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, get_args
from urllib.parse import quote, unquote

from kite_memory.errors import KiteError
from kite_memory.model.note import REVIEW_SPLIT, Note, NoteStatus
from kite_memory.text import lazy_regex
from kite_memory.text.quoting import quoted
from kite_memory.vault import links
from kite_memory.vault.drafting import applies_everywhere
from kite_memory.vault.links import tame, tame_line, titled
from kite_memory.vault.wording import digest, one_line

PAGE = "Review.md"
BEGIN = "<!-- kmem: tick one box under a note and it is done; what you write here stays -->"
END = "<!-- kmem: end -->"

ReviewVerdict = Literal["accept", "merge", "replace", "both", "divide", "whole", "reject"]
VERDICTS: tuple[ReviewVerdict, ...] = get_args(ReviewVerdict)

MOST_SHOWN = 50
_HEADING = "# Review\n\n"
_SAID_LINES, _SAID = 4, 240
_QUOTED = 160
_TITLE = 90
_SHOWN_EVIDENCE = 3
_SHOWN_PARTS = 8
_VERSION = 16
_LONGEST = 20_000
"""Lines of the page."""
_BOX = lazy_regex(
    r"(?P<open>[ \t]{0,12}[-*+] \[)(?P<mark>.)(?P<close>\] (?:(?!<!-- kmem:).){0,600}<!-- kmem:(?P<verdict>[a-z]{1,12})"
    r" (?P<name>\S{1,400}) (?P<version>[0-9a-f]{1,64})(?: (?P<into>\S{1,400}))? -->)"
    r"(?P<done>[ \t]+(?:✅\ufe0f?[ \t]*|[\[(]completion::[ \t]*)\d{4}-\d\d-\d\d[\])]?)?"
    r"(?P<rest>(?:[ \t](?!.*<!-- kmem:).*)?\r?)"
)
"""``done`` is what Obsidian's Tasks plugin adds to a box that it ticks, in either of its formats.

``rest`` is the person's: the comment is hidden where the page is shown, so they write behind it.
"""
_COMMENT = lazy_regex(r"%{2,}|-+->")
_WORDS: Mapping[ReviewVerdict, str] = {
    "accept": "accept",
    "merge": "merge into",
    "replace": "it replaces",
    "both": "both hold: it and",
    "divide": "make a note of each",
    "whole": "leave it whole",
    "reject": "reject",
}
_REPLACED = "it is replaced by"
_WHOSE = {"user": "your own word", "assistant": "an agent's word", "tool": "only a tool's word"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingNote:
    """A note that waits for a verdict.

    ``nearest`` is the note it could be merged into, ``contested`` the one it may contradict. ``quotes`` are its evidence, a line
    for each of the first citations. ``parts`` are the headings at which it could be divided, where a person is asked about that;
    empty where it has none, or is not asked about.
    """

    note: Note
    nearest: Note | None = None
    contested: Note | None = None
    quotes: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()

    @property
    def is_long(self) -> bool:
        """Whether a person is asked to make several notes of it."""
        return self.note.status is NoteStatus.ACCEPTED and self.note.review == REVIEW_SPLIT

    @property
    def because(self) -> str:
        """Why it waits; empty if the question about it says so: a contradiction, or its length."""
        if self.note.status is not NoteStatus.PROPOSED or self.note.conflicts:
            return ""
        if self.note.origin == "tool":
            return "only a tool said it"
        if applies_everywhere(self.note.scope, self.note.project) and self.note.origin != "user":
            return "an agent said it, and it would hold in every project"
        return "the extractor was not sure of it" if self.note.evidence else "it was taken in from elsewhere, not from a transcript"

    @property
    def name(self) -> str:
        return self.note.name

    @property
    def is_late(self) -> bool:
        """Whether the note it may contradict is the newer of the two: then that replaces it, and not the other way round."""
        return self.contested is not None and self.contested.created > self.note.created

    def choices(self) -> tuple[tuple[ReviewVerdict, Note | None], ...]:
        proposed = self.note.status is NoteStatus.PROPOSED
        found: list[tuple[ReviewVerdict, Note | None]] = [("accept", None)] if proposed else []
        if self.contested is not None and not proposed:
            found += [("replace", self.contested), ("both", self.contested)]
        if self.nearest is not None and proposed:
            found.append(("merge", self.nearest))
        if self.is_long:
            found += [("divide", None)] if self.parts else []
            found.append(("whole", None))
        return (*found, ("reject", None)) if proposed or self.note.conflicts else tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    """A decision on the page.

    ``version`` is of the note as it was when the box was drawn; ``into`` names another note where the verdict needs one.
    """

    name: str
    version: str
    verdict: ReviewVerdict
    into: str = ""


def version(note: Note) -> str:
    """Return a hash that changes with anything of a note that a person judges it by."""
    said = (note.kind, note.title, note.project, note.scope, note.status, note.origin, note.body, str(note.importance))
    more = (*note.tags, "", *note.evidence, "", *note.conflicts, str(note.expires), *filter(None, (note.review,)))
    return digest("\0".join((*said, *more)))[:_VERSION]


def page(waiting: Sequence[WaitingNote], *, more: int = 0) -> str:
    """Return what belongs between the marks, in the order given; ``more`` notes wait that are not shown."""
    said = [] if waiting else ["Nothing waits.", ""]
    if more:
        said = [f"{len(waiting) + more:,} wait. The first {len(waiting)} are here; `kmem review` shows all of them.", ""]
    blocks = [[BEGIN, "", *said], *(_block(each) for each in waiting)]
    return "\n".join([line for block in blocks for line in block] + [END])


def ticked(text: str) -> list[Ticked]:
    """Return one decision for each note of which exactly one box is ticked; two ticked boxes are no decision."""
    found: dict[str, set[Ticked]] = {}
    for line in text.split("\n"):
        box = _BOX.fullmatch(line)
        verdict = next((each for each in VERDICTS if box is not None and each == box["verdict"]), None)
        if box is None or verdict is None or box["mark"] not in "xX":
            continue
        one = Ticked(name=unquote(box["name"]), version=box["version"], verdict=verdict, into=unquote(box["into"] or ""))
        found.setdefault(one.name, set()).add(one)
    return [only for ticks in found.values() if len(ticks) == 1 for only in ticks]


def renewed(before: str, made: str, ours: str) -> str:
    """Return the page with ``made`` on it, every box unticked, and every line that is the person's.

    ``ours`` is what we wrote there last. Their lines stay in their place; those about a note that is gone from the page go below
    it. Where nothing has changed the page stays as it is, to the byte.
    """
    if not before.strip():
        return f"{_HEADING}{made}\n"
    ending = "\r" if "\r\n" in before else ""
    rows = before.split("\n")
    if not any(row.strip() == BEGIN or _BOX.fullmatch(row) for row in rows):
        lines = [*before.rstrip().split("\n"), *(f"{line}{ending}" for line in ("", *made.split("\n"))), ""]
        return "\n".join(lines)
    if len(rows) > _LONGEST:
        raise KiteError(f"{PAGE} has become too long to be kept", hint="move some of it away")
    known = _blocks((ours or made).split("\n"))
    new = _blocks(made.split("\n"))  # may be there already, if the last writer ended before it recorded them
    segments, above = _segments([_unticked(row) for row in rows], known, new)
    written: list[str] = list(above)
    homeless: list[str] = []
    for key, lines in new.items():
        segment = segments.pop(key, None)
        if segment is not None and known.get(key) == lines and segment.is_whole(lines):
            written += segment.rows
        else:
            written += [*(f"{line}{ending}" for line in lines), *([] if segment is None else _about(segment.theirs))]
    for segment in segments.values():
        homeless += _about(segment.theirs)
    return "\n".join([*written, *(["", *homeless] if homeless else [])])


@dataclass(slots=True, kw_only=True)
class _Segment:
    """The part of the page where one of our blocks was, with the lines in it that the person wrote."""

    rows: list[str]
    ours: list[str]
    theirs: list[str]

    def is_whole(self, lines: Sequence[str]) -> bool:
        """Return whether the boxes are still there."""
        return all(line in self.ours for line in lines if _BOX.fullmatch(line) or line in (BEGIN, END))


def _segments(
    rows: Sequence[str], known: Mapping[str, Sequence[str]], new: Mapping[str, Sequence[str]]
) -> tuple[dict[str, _Segment], list[str]]:
    """Split the page at our blocks; return them and what stands above all of them.

    Headings, boxes and marks each belong to one block, and identify it; our other lines are recognised by their order.
    """
    segments = {key: _Segment(rows=[], ours=[], theirs=[]) for key in (*known, *new)}
    both = (*new.items(), *known.items())
    anchors = {line: key for key, lines in both for line in lines if line == key or _BOX.fullmatch(line)}
    reached = dict.fromkeys(segments, 0)
    first = next((at for at, row in enumerate(rows) if row.strip() == BEGIN), 0)
    current = BEGIN
    for row in rows[first:]:
        line, words = _without_words(row)
        current = anchors.get(line, current)
        lines, at = known.get(current, ()), reached[current]
        found = next((place for place in range(at, len(lines)) if lines[place] == line), -1) if line else at
        in_order = 0 <= found < len(lines) and lines[found] == line
        is_ours = in_order or line in anchors or bool(_BOX.fullmatch(line)) or bool(line and line in new.get(current, ()))
        if in_order:
            reached[current] = found + 1
        segments[current].rows.append(row)
        (segments[current].ours if is_ours else segments[current].theirs).append(line if is_ours else row)
        segments[current].theirs += [words] if words else []
    return segments, list(rows[:first])


def _without_words(row: str) -> tuple[str, str]:
    """Return a line as we wrote it, and what its owner wrote behind its box."""
    box = _BOX.fullmatch(row)
    words = box["rest"].strip() if box is not None else ""
    return (row.rstrip().removesuffix(words).rstrip() if words else row.rstrip()), words


def _blocks(lines: Iterable[str]) -> dict[str, list[str]]:
    """Return our lines by block: the beginning, each note, the end."""
    found: dict[str, list[str]] = {BEGIN: []}
    current = BEGIN
    for line in lines:
        if line.startswith("## ") or line == END:
            current = line
        found.setdefault(current, []).append(line)
    return found


def _about(theirs: Sequence[str]) -> list[str]:
    """Return the lines without blank lines around them, which separate nothing any more."""
    lines = list(theirs)
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return [*lines, ""] if lines else []


def _unticked(row: str) -> str:
    box = _BOX.fullmatch(row)
    return f"{box['open']} {box['close']}{box['rest']}" if box is not None and (box["mark"] != " " or box["done"]) else row


def _block(waiting: WaitingNote) -> list[str]:
    note = waiting.note
    facts = [note.kind.value, _plain(note.project, _TITLE) or "everywhere", _WHOSE[note.origin], f"{note.created:%Y-%m-%d}"]
    lines = [f"## {_linked(note)}", "", " · ".join(facts), "", *_first_lines(note.body), ""]
    lines += [f"- rests on {line}" for line in _evidence(note, waiting.quotes)]
    if waiting.is_long:
        lines.append(_length(waiting))
    if waiting.contested is not None:
        lines.append(f"- may contradict {_linked(waiting.contested)}" + (", which is newer" if waiting.is_late else ""))
    if waiting.nearest is not None and waiting.nearest is not waiting.contested:
        lines.append(f"- nearest is {_linked(waiting.nearest)}")
    return [*lines, "", *(_drawn(waiting, verdict, into) for verdict, into in waiting.choices()), ""]


def _length(waiting: WaitingNote) -> str:
    sentence = f"- is long, {len(waiting.note.body):,} characters"
    if not waiting.parts:
        return f"{sentence}, and without headings: put one above each matter (`## …`), and it can be divided here"
    more = len(waiting.parts) - _SHOWN_PARTS
    named = [_plain(each, _TITLE) for each in waiting.parts[:_SHOWN_PARTS]]
    return f"{sentence}, and could be {len(waiting.parts)} notes: {' · '.join(named)}" + (f" · {more} more" if more > 0 else "")


def _drawn(waiting: WaitingNote, verdict: ReviewVerdict, into: Note | None) -> str:
    words = _REPLACED if verdict == "replace" and waiting.is_late else _WORDS[verdict]
    shown = f"{words} {_linked(into)}" if into is not None else words
    names = [_quoted(waiting.name), version(waiting.note), *([_quoted(into.name)] if into is not None else [])]
    return f"- [ ] {shown} <!-- kmem:{verdict} {' '.join(names)} -->"


def _quoted(name: str) -> str:
    """Return a name without blanks, and without what would end the comment."""
    return quote(name, safe="/").replace("--", "-%2D")


def _evidence(note: Note, quotes: Sequence[str]) -> Iterator[str]:
    for at, reference in enumerate(note.evidence[:_SHOWN_EVIDENCE]):
        said = _plain(quotes[at], _QUOTED) if at < len(quotes) else ""
        yield f"`{_plain(reference, _QUOTED).replace('`', '')}`" + (f": “{said}”" if said else "")
    if (rest := len(note.evidence) - _SHOWN_EVIDENCE) > 0:
        yield f"{rest} more"
    if not note.evidence:
        yield "no line of a transcript"


def _first_lines(body: str) -> Iterator[str]:
    lines = [line for line in body.splitlines() if line.strip() and not line.startswith(links.RELATED)]
    said = tame("\n".join(_plain(line, _SAID) for line in lines[:_SAID_LINES]))  # inert line by line, they may form a link together
    yield from (f"> {line}" for line in said.split("\n"))
    if len(lines) > _SAID_LINES:
        yield "> …"
    if not lines:
        yield "> (it says nothing)"


def _linked(note: Note) -> str:
    stem, title = PurePosixPath(note.path).stem, _plain(note.title, _TITLE)
    return titled(stem, title) if links.holds(stem) else f"{title} ({_plain(note.path, _SAID)})"


def _plain(text: str, limit: int) -> str:
    """Return a text without links, tags and markup of its own, so that it cannot change or hide a part of the page."""
    line = _COMMENT.sub("", one_line(quoted(links.unlinked(one_line(text)))))
    return tame_line(line, limit)
