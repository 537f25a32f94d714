"""Make foreign markdown inert, so that neither Obsidian nor a plugin loads or runs any of it.

Code stays as it is, so what counts as code must be code to every reader. Two kinds do: a fence that begins at the left margin, and
a span between backticks in a paragraph whose every line has its backticks in pairs. Fences elsewhere are moved to the margin, or
taken apart; other backticks protect nothing. Text outside of code loses tags, embeds, images, and links to anything but the web and
the vault itself.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kite_memory.vault import links
from kite_memory.vault.wording import one_line, shortened, text_block, without_hidden

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
_ANY_FENCE = re.compile(rf"({_CONTAINER})(`{{3,}}|~{{3,}})([ \t]*)([^\n]*)")
_TICKS = re.compile(r"`+")
_INLINE_QUERY = re.compile(r"(`+)(\s*)(?=\$?=|(?:INPUT|VIEW|BUTTON)\[)")
"""Code that Dataview or Meta Bind would evaluate."""
_IMAGE = re.compile(r"(?<!!)!+(?=\[)")
_LOADED_IMAGE = re.compile(r"(?<!!)!+(?=\[(?!\[))")
_DOUBLE_BRACKET = re.compile(r"\[(?=\[)")
_TAG = re.compile(r"(?<!\\)((?:\\\\)*)<(?=[a-zA-Z/!?])(?!https?://[^\s<>\"'`]{0,2000}>)")
_TEX = re.compile(r"\\(?=(?:href|style|class|cssId|data|require|includegraphics|url)\s{0,40}[\[{])")
_PAIRED = re.compile(r"([$%])(?=\1)")
"""What begins a block of math, or hides what follows."""
_LINKED = re.compile(r"\](?=(?:\(|:)\s{0,200}<?([^)\n>]{0,500}))")
_SCHEME = re.compile(r"([^/?#:]*):")
_NO_SCHEME = re.compile(r"[\x00-\x20\x7f-\xa0\u2000-\u200f\u2028-\u202f\ufeff]")
_UNESCAPED = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_SAFE_SCHEMES = frozenset({"http", "https", "mailto"})
_OWN_SCHEME = re.compile(r"obsidian:(?=//)", re.IGNORECASE)


def tame(text: str, limit: int = 0, *, linked: bool = False) -> str:
    """Return markdown made inert. Idempotent. With a ``limit`` it is cut before: cutting inert markdown may make it active again.

    No links of its own, nothing that loads from elsewhere when shown, nothing that Obsidian or a common plugin would run, no
    characters that only a model sees. Code stays as it is otherwise. ``linked``: links and embeds of notes stay.
    """
    text = text_block(without_hidden(text))
    text = text if linked else links.unlinked(text)
    text = text_block("\n".join(_blocks(shortened(text, limit) if limit else text, linked)))
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
    return shortened(one_line(links.unlinked(one_line(without_hidden(text)))), limit)


def titled(stem: str, title: str) -> str:
    """A link that shows a note's title. Without backticks, which would pair with those in the text around it."""
    return links.write(stem, tame_line(title.replace("`", "'")))


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
