"""The one place where a note's text, which anybody may have written, becomes part of what an agent or a person reads.

Everything between the block's two tags is quoted data: nothing in it can end the block, open another, look like one of
the block's own lines or steer a terminal. The hundred ways to spell a tag come down to two questions, asked once
invisible characters are gone: does this read as ``<``, and does something follow that reads as a name? Then it becomes
``‹``, which no reader takes for markup. A lone ``<`` between numbers or operators stays.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from kite_memory.model.hit import Hit
from kite_memory.model.note import Note
from kite_memory.recall.prose import prose

_OPENING = "<vault-context>\n[Relevant vault context: quoted notes from this user's own memory, newest evidence first]"
_CLOSING = "</vault-context>"

_PATH_LENGTH = 200
_REMARK_LENGTH = 240
_BODY_LENGTH = 20_000
"""More than any block holds; what lies behind is not even looked at."""
_TITLE_LENGTH = 80
_DIGEST_LENGTH = 100
_DIGEST_TOKENS = 25
_FRAGMENT = 40
"""A body shorter than this is shown with its title."""

_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]"  # colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]{0,2000}(?:\x07|\x1b\\|\x9c)"  # titles, links, device strings
    r"|\x1b[ -/]{0,16}[0-~]"
)
_LINE_ENDS = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]")
"""Of categories that are seen elsewhere: fillers, blanks that are none, variation selectors, tag characters."""

_LESS = (
    "(?:[<\u2039\u00ab\u226a\u226e\u227a\u2329\u276c\u276e\u2770\u27e8\u27ea\u29fc\u3008\u300a\u1438\u02c2]"
    r"|&(?:amp;|\#0*38;|\#x0*26;)*(?:lt|\#0*60|\#x0*3c);?"
    r"|%(?:25)*3c|\\{1,8}[ux]\{?0*3c\}?)"
)
_GREATER = (
    "(?:[>\u203a\u00bb\u226b\u226f\u227b\u232a\u276d\u276f\u2771\u27e9\u27eb\u29fd\u3009\u300b\u1433\u02c3]"
    r"|&(?:amp;|\#0*38;|\#x0*26;)*(?:gt|\#0*62|\#x0*3e);?"
    r"|%(?:25)*3e|\\{1,8}[ux]\{?0*3e\}?)"
)
_BLANKS = r"\s{0,40}"
_TAG_START = re.compile(f"{_LESS}(?={_BLANKS}[/!?|%\\\\\u2044\u2215\u29f8]{{0,8}}{_BLANKS}[^\\W\\d])", re.IGNORECASE)
_TAG_END = re.compile(f"(‹[^‹›<>\n]{{1,200}}?){_GREATER}", re.IGNORECASE)
_OWN_NAME = re.compile(r"vault[\W_]{1,3}context", re.IGNORECASE)
_OWN_LINE = re.compile("^[ \t]*[-\u2010-\u2015\u2212\u2500\u2501\u2e3a\u2e3b\ufe58]{2,}[ \t]*(?=\\[)", re.MULTILINE)
_OTHER_MARKS = re.compile(r"\[(/?INST|Relevant\W{1,3}vault)\b", re.IGNORECASE)
_TURN = re.compile(r"^[ \t]*(?=(?:human|assistant|system)[ \t]*:)", re.IGNORECASE | re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]|\n")
_TOKEN_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[^\S\n]+|\n+|.", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """``hits`` are those that are in it, in its order; ``tokens`` is an estimate from above."""

    text: str
    hits: tuple[Hit, ...]
    tokens: int


def block(hits: Sequence[Hit], *, tokens: int = 1600, characters: int = 9500) -> Block:
    """The notes as an agent is shown them, newest first, within both bounds; a long one is cut at the end of a sentence.

    Room that a short note leaves goes to the others. Empty where there are no notes with words, or no room for any.
    """
    newest_first = sorted(hits, key=lambda hit: hit.note.created, reverse=True)
    notes = [(hit, _head(hit.note), body) for hit in newest_first if (body := _said(hit.note))]
    frame = "\n".join([_OPENING, *(head for _, head, _ in notes), _CLOSING])
    tokens_left = tokens - estimated_tokens(frame) - 2 * len(notes)
    characters_left = characters - len(frame) - 2 * len(notes)
    bodies = [""] * len(notes)
    for place, number in enumerate(sorted(range(len(notes)), key=lambda number: len(notes[number][2]))):
        share = len(notes) - place
        body = shortened(notes[number][2], tokens=tokens_left // share, characters=characters_left // share)
        bodies[number] = body
        tokens_left -= estimated_tokens(body)
        characters_left -= len(body)
    shown = [(hit, head, body) for (hit, head, _), body in zip(notes, bodies, strict=True) if body]
    if not shown:
        return Block(text="", hits=(), tokens=0)
    text = "\n".join([_OPENING, *(line for _, head, body in shown for line in (head, body)), _CLOSING])
    return Block(text=text, hits=tuple(hit for hit, _, _ in shown), tokens=estimated_tokens(text))


def digest(hits: Sequence[Hit], *, tokens: int) -> Block:
    """The notes in a line each: title and first sentence, as many of them as there is room for."""
    opening = "<vault-context>\n[Relevant vault context: quoted notes from this user's own memory, in brief]"
    left = tokens - estimated_tokens(f"{opening}\n{_CLOSING}")
    lines: list[str] = []
    told: list[Hit] = []
    for hit in hits:
        title = plain_line(hit.note.title, _TITLE_LENGTH)
        first = plain_line(shortened(_said(hit.note), tokens=_DIGEST_TOKENS, characters=_DIGEST_LENGTH), _DIGEST_LENGTH)
        path = plain_line(hit.note.path, _PATH_LENGTH)
        line = f"- [{quoted(path)}] {hit.note.kind.value}, {hit.note.created:%Y-%m-%d}: {quoted(title)}. {first}"
        needed = estimated_tokens(line) + 1
        if needed <= left:
            left -= needed
            lines.append(line)
            told.append(hit)
    text = "\n".join([opening, *lines, _CLOSING]) if lines else ""
    return Block(text=text, hits=tuple(told), tokens=estimated_tokens(text) if text else 0)


def remarks(lines: Sequence[str], *, about: str, tokens: int) -> str:
    """A block of plain lines that are no notes: as many of them as there is room for, each quoted. Empty without any."""
    opening = f"<vault-context>\n[Relevant vault context: {about}]"
    left = tokens - estimated_tokens(f"{opening}\n{_CLOSING}")
    kept: list[str] = []
    for line in lines:
        said = f"- {plain_line(quoted(plain_line(line, _REMARK_LENGTH)), _REMARK_LENGTH)}"
        left -= estimated_tokens(said) + 1
        if left < 0:
            break
        kept.append(said)
    return "\n".join([opening, *kept, _CLOSING]) if kept else ""


def plain(text: str) -> str:
    """Fit for a terminal: no control, escape, bidirectional or invisible characters; lines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    text = _LINE_ENDS.sub("\n", _ANSI.sub("", text))
    return "".join(map(_visible, text))


def plain_line(text: str, length: int = 200) -> str:
    """`plain`, on one line and no longer than asked for."""
    line = " ".join(plain(text[: length * 8]).split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def quoted(text: str) -> str:
    """Fit to stand inside the block."""
    text = plain(text)
    if not text.isascii():
        text = _without_stray_marks("".join(map(_ordinary, text)))
    text = _TAG_START.sub("‹", text)
    text = _TAG_END.sub(r"\1›", text)
    text = _OWN_NAME.sub("vault context", text)
    text = _OTHER_MARKS.sub(r"(\1", text)
    text = _OWN_LINE.sub("- ", text)
    text = _TURN.sub("› ", text)
    return re.sub(r"\n\s*\n\s*", "\n\n", text).strip()


def shortened(text: str, *, tokens: int, characters: int) -> str:
    """As much of the text as fits, ending with a sentence or a line if it can, and with an ellipsis if it was cut."""
    if len(text) <= characters and estimated_tokens(text) <= tokens:
        return text
    room = 0
    left = tokens - 4
    for piece in _TOKEN_PIECES.finditer(text, 0, max(0, characters - 2)):
        left -= _cost(piece.group())
        if left < 0:
            break
        room = piece.end()
    head = text[:room]
    ends = [found.end() for found in _SENTENCE_END.finditer(head)]
    if ends and ends[-1] > room // 2:
        head = head[: ends[-1]]
    elif " " in head:
        head = head[: head.rindex(" ")]
    head = head.rstrip()
    return f"{head} …" if head else ""


def estimated_tokens(text: str) -> int:
    """From above, without a tokenizer: a token for every three letters of a word, for every digit, sign and line, and for
    every byte of what is not ASCII. Tokenizers of today's models need about half as many for prose.
    """
    return sum(_cost(piece.group()) for piece in _TOKEN_PIECES.finditer(text))


def _cost(piece: str) -> int:
    if piece == " ":
        return 0
    return -(-len(piece) // 3) if piece.isascii() else len(piece.encode("utf-8", "replace"))


def _head(note: Note) -> str:
    path = plain_line(quoted(plain_line(note.path, _PATH_LENGTH)), _PATH_LENGTH).replace("[", "(").replace("]", ")")
    return f"--- [{path}] · {note.kind} · {note.created:%Y-%m-%d} ---"


def _said(note: Note) -> str:
    """Already `quoted`; empty for a note that says nothing that can be seen."""
    body = quoted(prose(note.body[:_BODY_LENGTH]))
    if len(body) >= _FRAGMENT:
        return body
    return quoted(": ".join(filter(None, (quoted(note.title[:_BODY_LENGTH]), body))))


def _without_stray_marks(text: str) -> str:
    """Accents belong on letters, and those that ASCII letters bear have letters of their own; on a ``<`` they only hide it."""
    kept = []
    bearing = False
    for char in unicodedata.normalize("NFC", text):
        if char.isascii():
            bearing = False
        elif unicodedata.category(char)[0] != "M":
            bearing = char.isalnum()
        elif not bearing:
            continue
        kept.append(char)
    return "".join(kept)


@lru_cache(maxsize=4096)
def _visible(char: str) -> str:
    category = unicodedata.category(char)
    if char in "\n\t":
        return char
    if category in ("Cc", "Cf", "Cs", "Co") or _UNSEEN.match(char) or ord(char) & 0xFFFE == 0xFFFE:
        return ""
    return " " if category == "Zs" else char


@lru_cache(maxsize=4096)
def _ordinary(char: str) -> str:
    """Full-width, mathematical and other dressed-up letters and signs undressed; raised and lowered digits keep their meaning."""
    if char.isascii() or unicodedata.category(char)[0] not in "LPS":
        return char
    bare = unicodedata.normalize("NFKC", char)
    return bare if bare.isascii() else char
