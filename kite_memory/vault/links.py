"""Wikilinks: find them in markdown, write them, and resolve them to notes; and foreign markdown made inert.

Neither Obsidian nor a plugin loads or runs any of what is foreign. Code stays as it is, so what counts as code must be code to
every reader.
"""

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

from kite_memory.model.note import Note
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip
from kite_memory.vault.wording import entity_key, one_line, stem_key, text_block, title_key, without_hidden

_WIKILINK = lazy_regex(r"(!?)\[\[([^\[\]\n]+)\]\]")
_TICKS = lazy_regex(r"`+")
_FENCE = lazy_regex(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_UNLINKABLE = lazy_regex(
    r"!?\[\[[^\[\]\n]+\]\]"  # a link already
    r"|!?\[[^\[\]\n]*\]\([^()\n]*\)"  # a markdown link or image
    r"|<[^<>\n]*>"  # a tag or an address
    r"|\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s<>]*"
)

_UNNAMEABLE = lazy_regex(r"[#^|\[\]]")
"""Characters that mean something else to Obsidian in a link's file name."""

RELATED = "**Related:**"
"""How a line begins that lists links to related notes."""
_LISTED = lazy_regex(rf"^{re.escape(RELATED)}[ \t]*([^\n]*)(\n*)", re.MULTILINE)

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


_MAX_LINE = 400

_LANGUAGES = frozenset(
    re.findall(
        r"\S+",
        """
        ada apache applescript arduino asm assembly awk bash bat batch bibtex c c# c++ cfg clj clojure cmake cmd cobol
        coffee coffeescript conf console cpp crystal cs csharp css csv d dart diff dockerfile dos dotenv ebnf elisp
        elixir elm env erb erl erlang ex fish fortran fs fsharp gherkin git glsl go golang graphql groovy haskell hcl hs
        htm html http ini java jinja jinja2 js json json5 jsonc jsonl jsonnet jsx julia kotlin kql kt latex less lisp
        log logs lua make makefile markdown matlab md mdx nginx nim nix nushell objc objective-c ocaml odin pascal patch
        perl php pl plain plaintext powershell prisma proto protobuf ps1 puppet py pycon python python3 r rb regex rs
        rst ruby rust sass scala scheme scss sh shell shellsession solidity sql starlark svelte swift tcl terminal
        terraform tex text tf toml ts tsv tsx txt typescript vb verilog vhdl vim viml vue wasm wat xhtml xml yaml yml
        zig zsh
        """,
    )
)
"""Languages that a fence may name. Any other name may be one that a plugin, or Obsidian itself, draws or runs."""

_CONTAINER = r"(?:[ \t]|>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))*"
_ANY_FENCE = lazy_regex(rf"({_CONTAINER})(`{{3,}}|~{{3,}})([ \t]*)([^\n]*)")
_INLINE_QUERY = lazy_regex(r"(`+)(\s*)(?=\$?=|(?:INPUT|VIEW|BUTTON)\[)")
"""Code that Dataview or Meta Bind would evaluate."""
_IMAGE = lazy_regex(r"(?<!!)!+(?=\[)")
_LOADED_IMAGE = lazy_regex(r"(?<!!)!+(?=\[(?!\[))")
_DOUBLE_BRACKET = lazy_regex(r"\[(?=\[)")
_TAG = lazy_regex(r"(?<!\\)((?:\\\\)*)<(?=[a-zA-Z/!?])(?!https?://[^\s<>\"'`]{0,2000}>)")
_TEX = lazy_regex(r"\\(?=(?:href|style|class|cssId|data|require|includegraphics|url)\s{0,40}[\[{])")
_PAIRED = lazy_regex(r"([$%])(?=\1)")
"""What begins a block of math, or hides what follows."""
_LINKED = lazy_regex(r"\](?=(?:\(|:)\s{0,200}<?([^)\n>]{0,500}))")
_SCHEME = lazy_regex(r"([^/?#:]*):")
_NO_SCHEME = lazy_regex(r"[\x00-\x20\x7f-\xa0\u2000-\u200f\u2028-\u202f\ufeff]")
_UNESCAPED = lazy_regex(r"\\(?=[!-/:-@\[-`{-~])")
_SAFE_SCHEMES = frozenset({"http", "https", "mailto"})
_OWN_SCHEME = lazy_regex(r"obsidian:(?=//)", re.IGNORECASE)


def tame(text: str, limit: int = 0, *, linked: bool = False) -> str:
    """Return markdown made inert. Idempotent. With a ``limit`` it is cut before: cutting inert markdown may make it active again.

    No links of its own, nothing that loads from elsewhere when shown, nothing that Obsidian or a common plugin would run, no
    characters that only a model sees. Code stays as it is otherwise. ``linked``: links and embeds of notes stay.
    """
    text = text_block(without_hidden(text))
    text = text if linked else unlinked(text)
    text = text_block("\n".join(_blocks(clip(text, limit) if limit else text, linked)))
    return text.replace("<%", "< %")


def tame_line(text: str, limit: int = _MAX_LINE) -> str:
    """Do as `tame` for one line within our own markdown."""
    line = _paragraph(_line(text, limit)).replace("<%", "< %")
    found = _ANY_FENCE.match(line)
    if found is not None and not (found[2][0] == "`" and "`" in found[4]):
        line = _without_fence(found)
    return one_line(line)


def tame_name(text: str, limit: int = _MAX_LINE) -> str:
    """Do as `tame` for titles and other properties, where only links and templates would be active."""
    return one_line(_line(_IMAGE.sub("", text), limit).replace("<%", "< %"))


def _line(text: str, limit: int) -> str:
    return clip(one_line(unlinked(one_line(without_hidden(text)))), limit)


def related(written: Sequence[str]) -> str:
    """Return a line of links."""
    return f"{RELATED} {', '.join(written)}" if written else ""


def titled(stem: str, title: str) -> str:
    """Return a link labelled with the note's title, or the title alone if no link can lead to a file of this name. Backticks are
    replaced, since they could pair with others.
    """
    label = tame_line(title.replace("`", "'"))
    return write(stem, label) if holds(stem) else label


def tame_code(text: str) -> str:
    """Do as `tame` for text that is put between backticks."""
    return _INLINE_QUERY.sub(r"\1\2\\", f"`{text}").removeprefix("`").replace("<%", "< %")


@dataclass(slots=True)
class _Fence:
    run: str

    def is_closed_by(self, found: re.Match[str] | None) -> bool:
        return found is not None and not found[1].strip() and found[2].startswith(self.run) and not found[4].strip(" \t")


def _blocks(text: str, linked: bool) -> Iterator[str]:
    """Yield the text made inert, line by line in code and paragraph by paragraph outside."""
    fence: _Fence | None = None
    paragraph: list[str] = []

    def flushed() -> Iterator[str]:
        if paragraph:
            yield _paragraph("\n".join(paragraph), linked=linked)
            paragraph.clear()

    for line in text.split("\n"):
        found = _ANY_FENCE.match(line)
        if fence is not None:
            closes = fence.is_closed_by(found)
            yield found[2] if closes and found is not None else line
            fence = None if closes else fence
        elif found is None or (found[2][0] == "`" and "`" in found[4]):
            if not line.strip():
                yield from flushed()
                yield line
            else:
                paragraph.append(line)
        elif ">" in found[1]:  # a fence in a quotation ends with the quotation: its lines are shown as text
            paragraph.append(_without_fence(found))
        else:
            if found[1].strip():  # an item that begins with code: the code goes below it
                paragraph.append(found[1].rstrip())
            yield from flushed()
            yield found[2] + found[3] + _language(found[4])
            fence = _Fence(found[2])
    yield from flushed()
    if fence is not None:
        yield fence.run


def _without_fence(found: re.Match[str]) -> str:
    return found[1] + "".join(f"\\{mark}" for mark in found[2]) + found[3] + found[4]


def _language(info: str) -> str:
    name = info.split()[0] if info.strip() else ""
    return name if name.casefold() in _LANGUAGES else "text" if name else ""


def _paragraph(text: str, *, linked: bool = False) -> str:
    """Make inert a text without a blank line or a fence. To a reader it may be several blocks, but none that goes beyond it."""
    lines = [_spans(line) for line in text.split("\n")]
    spans = [span for line in lines for span in line or ()]
    outside = "".join(piece for line in lines for piece, is_code in line or () if not is_code)
    if any(line is None for line in lines) or ("$" in outside and any(is_code for _, is_code in spans)):
        return _prose(text, linked)
    shown = ["".join(f"\0{piece}\0" if is_code else piece for piece, is_code in line or ()) for line in lines]
    pieces = "\n".join(shown).split("\0")
    tamed = (_INLINE_QUERY.sub(r"\1\2\\", piece) if place % 2 else _prose(piece, linked) for place, piece in enumerate(pieces))
    return "".join(tamed)


def _spans(line: str) -> list[tuple[str, bool]] | None:
    """Return the line in pieces, each with whether it is code; ``None`` where another reader may split it differently."""
    pieces: list[tuple[str, bool]] = []
    runs = list(_TICKS.finditer(line))
    done = at = 0
    while at < len(runs):
        start = runs[at]
        end = next((place for place in range(at + 1, len(runs)) if len(runs[place][0]) == len(start[0])), None)
        if end is None or line[: start.start()].endswith("\\") or "|" in line[start.end() : runs[end].start()]:
            return None
        pieces += [(line[done : start.start()], False), (line[start.start() : runs[end].end()], True)]
        done, at = runs[end].end(), end + 1
    return [*pieces, (line[done:], False)]


def _prose(text: str, linked: bool) -> str:
    text = _LOADED_IMAGE.sub("", text) if linked else _DOUBLE_BRACKET.sub("[ ", _IMAGE.sub("", text))
    text = _LINKED.sub(lambda found: "]" if _is_harmless(found[1]) else "] ", text)
    text = _TAG.sub(r"\1\\<", text)
    text = _INLINE_QUERY.sub(r"\1\2\\", text)
    text = _TEX.sub(r"\\ ", text)
    return _PAIRED.sub(r"\1 ", _OWN_SCHEME.sub(lambda found: f"{found[0]} ", text))


def _is_harmless(destination: str) -> bool:
    """Return whether a link leads to the web, or to a file beside the note; as a browser reads it."""
    plain = _NO_SCHEME.sub("", html.unescape(_UNESCAPED.sub("", html.unescape(destination))))
    scheme = _SCHEME.match(plain)
    return scheme is None or scheme[1].lower() in _SAFE_SCHEMES
