"""Wikilinks: find them in markdown, write them, and resolve them to notes."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Protocol

from kite_memory.model.note import Entry, Note
from kite_memory.vault.wording import entity_key, one_line, stem_key, title_key

_WIKILINK = re.compile(r"(!?)\[\[([^\[\]\n]+)\]\]")
_TICKS = re.compile(r"`+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_UNLINKABLE = re.compile(
    r"!?\[\[[^\[\]\n]+\]\]"  # a link already
    r"|!?\[[^\[\]\n]*\]\([^()\n]*\)"  # a markdown link or image
    r"|<[^<>\n]*>"  # a tag or an address
    r"|\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s<>]*"
)

_UNNAMEABLE = re.compile(r"[#^|\[\]]")
"""Characters that mean something else to Obsidian in a link's file name."""

RELATED = "**Related:**"
"""How a line begins that lists links to related notes."""
_LISTED = re.compile(rf"^{re.escape(RELATED)}[ \t]*([^\n]*)(\n*)", re.MULTILINE)

_MAX_NESTING = 8
_MAX_SCANNED = 300_000


class ExistingText(str):
    """Text that is in the vault already: its links are left as they are where it is moved, broken ones as well."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """``[[target#heading|label]]`` at ``text[start:end]``; ``target`` is empty for a link to a heading of its own note."""

    target: str
    heading: str
    label: str
    embed: bool
    start: int
    end: int

    @property
    def shown(self) -> str:
        """The words that a reader sees in place of the link."""
        return self.label or " > ".join(filter(None, (PurePosixPath(self.target).name, self.heading)))


def find(text: str) -> Iterator[Link]:
    """Yield every wikilink and embed outside of code, in order. Linear in the length of the text."""
    for start, end in note_prose(text):
        for match in _WIKILINK.finditer(text, start, end):
            if match.start() and text[match.start() - 1] == "\\":
                continue
            place, _, label = match[2].replace("\\|", "|").partition("|")
            target, _, heading = place.partition("#")
            yield Link(
                target=target.strip(),
                heading=heading.strip(),
                label=one_line(label),
                embed=bool(match[1]),
                start=match.start(),
                end=match.end(),
            )


def targets(text: str) -> tuple[str, ...]:
    """Return what a note links to, each once, as written. Of a very long text, only the beginning is searched."""
    return tuple(dict.fromkeys(link.target for link in find(text[:_MAX_SCANNED]) if link.target))


def target_of(inner: str) -> str:
    """Return the target from the text between the brackets."""
    return one_line(inner.partition("|")[0].partition("#")[0])


def holds(name: str) -> bool:
    """Return whether a link, in a body or in a property, can lead to a file of this name."""
    return bool(name) and not _UNNAMEABLE.search(name) and target_of(name) == name


def write(target: str, label: str = "") -> str:
    """Return a link that shows ``label``; characters that would end the link or have a meaning in it are replaced."""
    label = one_line(label.translate(str.maketrans("[]|", "()/")))
    return f"[[{target}]]" if not label or label == target else f"[[{target}|{label}]]"


def replace(text: str, new: Callable[[Link], str | None]) -> str:
    """Replace links by what ``new`` returns for each; ``None`` leaves one as it is."""
    pieces: list[str] = []
    done = 0
    for link in find(text):
        instead = new(link)
        if instead is not None:
            pieces += [text[done : link.start], instead]
            done = link.end
    return "".join(pieces) + text[done:]


def unlinked(text: str, goes: Callable[[Link], bool] = lambda link: True) -> str:
    """Replace the links for which ``goes`` is true by their words; what remains of them is no link either."""
    for _ in range(_MAX_NESTING):
        before, text = text, replace(text, lambda link: link.shown if goes(link) else None)
        if text == before:
            return text
    return text.replace("[[", "[ [")


def unlisted(text: str, goes: Callable[[Link], bool]) -> str:
    """Do as `unlinked`, but in a line of related notes remove a link with its words, and the line once it lists nothing."""

    def line(related: re.Match[str]) -> str:
        found = list(find(related[1]))
        kept = [link for link in found if not goes(link)]
        if len(kept) == len(found):
            return related[0]
        pieces = [related[1][: found[0].start], *(related[1][one.end : other.start] for one, other in pairwise(found))]
        kept_links = "".join(
            piece + related[1][link.start : link.end] for piece, link in zip(pieces, found, strict=True) if link in kept
        )
        kept_links = f"{kept_links}{related[1][found[-1].end :]}".strip(" ,")
        return f"{RELATED} {kept_links}{related[2]}" if kept_links else ""

    rewritten = _LISTED.sub(line, text)
    if rewritten != text:
        rewritten = rewritten.rstrip("\n") + text[len(text.rstrip("\n")) :]
    return unlinked(rewritten, goes)


def name_entities(text: str, pages: Mapping[str, str]) -> tuple[str, frozenset[str]]:
    """Turn the first mention of each entity into a link; ``pages`` maps entity keys to link targets.

    Whole words only, longest names first, never inside code, links or addresses. Returns the text and the entities it found.
    """
    if not pages:
        return text, frozenset()
    names = sorted(pages, key=len, reverse=True)
    pattern = re.compile(
        rf"(?<![\w/.@#+-])(?:{'|'.join(map(re.escape, names))})(?![\w/+#-]|\.\w)",
        re.IGNORECASE,
    )
    pieces: list[str] = []
    named: set[str] = set()
    done = 0
    for start, end in _linkable(text):
        for match in pattern.finditer(text, start, end):
            key = entity_key(match[0])
            if key in named or key not in pages or text.startswith("|", text.rfind("\n", 0, match.start()) + 1):
                continue
            named.add(key)
            pieces += [text[done : match.start()], write(pages[key], match[0])]
            done = match.end()
    return "".join(pieces) + text[done:], frozenset(named)


def _linkable(text: str) -> Iterator[tuple[int, int]]:
    for start, end in note_prose(text):
        at = start
        for taken in _UNLINKABLE.finditer(text, start, end):
            yield at, taken.start()
            at = taken.end()
        yield at, end


def note_prose(text: str) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a markdown text that are not code: outside of fences and of spans between backticks."""
    fence = ""
    start = at = 0
    while at <= len(text):
        newline = text.find("\n", at)
        end = len(text) if newline < 0 else newline
        mark = _FENCE.match(text, at, end)
        opens = mark is not None and not fence and not (mark[1][0] == "`" and "`" in mark[2])
        closes = mark is not None and fence and mark[1].startswith(fence) and not mark[2].strip(" \t")
        if opens and mark is not None:
            yield from _outside_ticks(text, start, at)
            fence = mark[1]
        elif closes:
            fence, start = "", end + 1
        elif not fence and not text[at:end].strip():  # a blank line ends a paragraph, and with it an unclosed span
            yield from _outside_ticks(text, start, at)
            start = at
        at = end + 1
    if not fence and start < len(text):
        yield from _outside_ticks(text, start, len(text))


def _outside_ticks(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    runs = [(match.start(), match.end()) for match in _TICKS.finditer(text, start, end)]
    by_length: dict[int, list[int]] = {}
    for run_start, run_end in runs:
        by_length.setdefault(run_end - run_start, []).append(run_start)
    at = start
    for run_start, run_end in runs:
        if run_start < at:
            continue
        same = by_length[run_end - run_start]
        after = bisect_right(same, run_start)
        if after < len(same):
            yield at, run_start
            at = same[after] + (run_end - run_start)
    if at < end:
        yield at, end


class Resolver:
    """Resolves links as Obsidian does (path, then file name), and by title and alias where that finds nothing."""

    def __init__(self, notes: Iterable[Note], others: Iterable[str] = ()) -> None:
        self._paths: dict[str, str] = {}
        self._titles: dict[str, str] = {}
        for note in sorted(notes, key=lambda note: (note.path.count("/"), note.path)):
            self._add(note.path.removesuffix(PurePosixPath(note.path).suffix), note.path)
            for name in (note.title, *note.aliases):
                self._titles.setdefault(title_key(name), note.path)
        for other in others:
            self._add(other, other)

    def _add(self, name: str, path: str) -> None:
        parts = stem_key(name).split("/")
        for start in range(len(parts)):
            self._paths.setdefault("/".join(parts[start:]), path)

    def follow(self, target: str, *, by_file_only: bool = False) -> str | None:
        """Return the path of the file that ``target`` means."""
        name = stem_key(target.strip().lstrip("./"))
        for candidate in (name, name.removesuffix(".md")):
            if found := self._paths.get(candidate):
                return found
        return None if by_file_only else self._titles.get(title_key(target))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """A link without an existing target; ``ours`` if the text around it is as we wrote it."""

    path: str
    target: str
    ours: bool


class Linked(Protocol):
    """What `unresolved` needs of a vault."""

    def entries(self) -> Iterator[Entry]: ...
    def read(self, path: str) -> Note | None: ...
    def others(self) -> Iterator[str]: ...
    def is_ours(self, note: Note) -> bool: ...


def unresolved(vault: Linked) -> list[Unresolved]:
    """Return every link in the vault, in bodies and properties, that leads to no file; for ``kmem verify``. Reads every note."""
    read = {entry.path: vault.read(entry.path) for entry in vault.entries()}
    notes = [note for note in read.values() if note is not None]
    resolver = Resolver(notes, (*(path.removesuffix(".md") for path, note in read.items() if note is None), *vault.others()))
    return [
        Unresolved(path=note.path, target=target, ours=vault.is_ours(note))
        for note in notes
        for target in dict.fromkeys((*note.links, *note.supersedes, note.superseded_by))
        if target and resolver.follow(target, by_file_only=True) is None
    ]
