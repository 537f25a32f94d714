"""Rendering of notes and remarks as blocks for agents: everything between the two tags is `quoted`, and within bounds."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kite_memory.model.hit import Hit, Pointer, Quote
from kite_memory.model.note import Note, NoteStatus
from kite_memory.recall.prose import prose
from kite_memory.text import lazy_regex
from kite_memory.text.quoting import plain_line, quoted

_OPENING = "<vault-context>\n[Relevant vault context: quoted notes from {whose}, newest evidence first]"
_CLOSING = "</vault-context>"

CHARACTERS = 9_500
"""Most characters shown to one prompt."""

_PATH_LENGTH = 200
_REMARK_LENGTH = 240
_BODY_LENGTH = 20_000
"""More than any block holds; text beyond it is not processed."""
_POINTED_LENGTH = 120
_TITLE_TOKENS, _TALK_TOKENS, _KNOWN_TITLE_TOKENS = 16, 24, 5
"""Most tokens of a note's title in a line, of a conversation's, and of one that the session was shown before."""
_QUOTES = 2
_QUOTE_TOKENS = 200
_HANDLE = 6
"""Length of a short id, of which there are a billion; if two notes share one, `kmem show` reports it."""
_ULID = lazy_regex(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_SAFE = lazy_regex(r"\w[\w./:#@+-]*")
_CONTENTS = "[Relevant vault context: titles of this user's own notes; `kmem show ID ID` opens them]"
_POINTERS = "[May bear on this; `kmem show ID` opens one]"
_FRAGMENT = 40
"""A body shorter than this is shown with its title."""

_SENTENCE_END = lazy_regex(r"[.!?](?=\s)|[。！？]|\n")
_LIKELY_PIECES = lazy_regex(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\S\n]+|\n+|.", re.DOTALL)
_TOKEN_PIECES = lazy_regex(r"[A-Z]?[a-z]+|[A-Z]+|[^\S\n]+|\n+|.", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedBlock:
    """Rendered block. ``hits`` are those in it, in order; ``tokens`` is an upper estimate."""

    text: str
    hits: tuple[Hit, ...]
    tokens: int


def block(
    hits: Sequence[Hit], *, tokens: int = 1600, characters: int = CHARACTERS, whose: str = "this user's own memory"
) -> RenderedBlock:
    """Render the notes for an agent, newest first, within both bounds; a long one is cut at the end of a sentence.

    Room that a short note leaves goes to the others. Empty if no note has text, or there is room for none.
    """
    newest_first = sorted(hits, key=lambda hit: hit.note.created, reverse=True)
    notes = [(hit, _head(hit.note), body) for hit in newest_first if (body := _said(hit.note))]
    opening = _OPENING.format(whose=whose)
    frame = "\n".join([opening, *(head for _, head, _ in notes), _CLOSING])
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
        return RenderedBlock(text="", hits=(), tokens=0)
    text = "\n".join([opening, *(line for _, head, body in shown for line in (head, body)), _CLOSING])
    return RenderedBlock(text=text, hits=tuple(hit for hit, _, _ in shown), tokens=estimated_tokens(text))


def contents(lines: Sequence[tuple[Hit, str]], *, tokens: int) -> RenderedBlock:
    """Render the notes by title, one line each, as many as fit. Tokens are counted by `likely_tokens`."""
    opening = f"<vault-context>\n{_CONTENTS}"
    left = tokens - likely_tokens(f"{opening}\n{_CLOSING}")
    listed: list[tuple[Hit, str]] = []
    for hit, title in lines:
        called = handle(hit.note.name)
        said = first_words(quoted(plain_line(title, _POINTED_LENGTH)), _TITLE_TOKENS)
        line = f"- {called} {said}"
        needed = likely_tokens(line) + 1
        if called and said and needed <= left:
            left -= needed
            listed.append((hit, line))
    text = "\n".join([opening, *(line for _, line in listed), _CLOSING]) if listed else ""
    return RenderedBlock(text=text, hits=tuple(hit for hit, _ in listed), tokens=likely_tokens(text) if text else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBlock:
    """What a prompt is given: notes in full, quoted conversations, and pointers by title. Each may be empty."""

    text: str
    hits: tuple[Hit, ...]
    quotes: tuple[Quote, ...]
    pointers: tuple[Pointer, ...]
    tokens: int


def render_prompt_block(
    hits: Sequence[Hit], quotes: Sequence[Quote], pointers: Sequence[Pointer], *, tokens: int = 1600, pointer_tokens: int = 130
) -> PromptBlock:
    """Render notes, quotes and pointers in one block. Notes come first; quotes and pointers take the remaining room, pointers at
    most ``pointer_tokens``.
    """
    notes = block(hits, tokens=tokens)
    opening = notes.text.removesuffix(_CLOSING) or "<vault-context>\n"
    tokens_left = tokens - notes.tokens
    characters_left = CHARACTERS - len(opening) - len(_CLOSING)
    parts: list[str] = []
    quoted_too: list[Quote] = []
    for quote in quotes[:_QUOTES]:
        citation = plain_line(quoted(plain_line(quote.id, _PATH_LENGTH)), _PATH_LENGTH).replace("[", "(").replace("]", ")")
        said = shortened(quoted(quote.text), tokens=_QUOTE_TOKENS, characters=4 * _QUOTE_TOKENS)
        part = f"--- [{citation}] · conversation · {quote.date:%Y-%m-%d} ---\n{said}"
        if said and estimated_tokens(part) <= tokens_left and len(part) < characters_left:
            tokens_left -= estimated_tokens(part) + 1
            characters_left -= len(part) + 1
            parts.append(part)
            quoted_too.append(quote)
    left = min(pointer_tokens, tokens_left) - likely_tokens(_POINTERS) - 1
    lines: list[str] = []
    pointed: list[Pointer] = []
    for pointer in pointers:
        room = _KNOWN_TITLE_TOKENS if pointer.again else _TITLE_TOKENS if pointer.is_note else _TALK_TOKENS
        title = first_words(quoted(plain_line(pointer.title, _POINTED_LENGTH)), room)
        called = pointer.handle or handle(pointer.id)
        line = f"- {called} {title}" if pointer.again else f"- {called} {title} ({pointer.date:%Y-%m-%d})"
        needed = likely_tokens(line) + 1
        if called and title and needed <= left and len(line) + len(_POINTERS) < characters_left:
            left -= needed
            characters_left -= len(line) + 1
            lines.append(line)
            pointed.append(pointer)
    if lines:
        parts += [_POINTERS, *lines]
    if not parts:
        return PromptBlock(text=notes.text, hits=notes.hits, quotes=(), pointers=(), tokens=notes.tokens)
    added = "\n".join(parts)
    text = f"{opening}{added}\n{_CLOSING}"
    spent = notes.tokens + likely_tokens(added) + (0 if notes.text else likely_tokens(f"{opening}{_CLOSING}"))
    return PromptBlock(text=text, hits=notes.hits, quotes=tuple(quoted_too), pointers=tuple(pointed), tokens=spent)


def first_words(text: str, tokens: int) -> str:
    """Return a text for a line, cut at the end of a word, with an ellipsis, if it is long."""
    said = plain_line(text, _POINTED_LENGTH)
    kept: list[str] = []
    for word in said.split():
        tokens -= likely_tokens(word)
        if tokens < 0:
            return " ".join([*kept, "…"]) if kept else word
        kept.append(word)
    return said


def handle(called: str) -> str:
    """Return the short name of a note for a line: the end of its id, which `kmem show` accepts. Any other name is returned whole.

    Empty for a name that a shell would not read as one plain word, so that no agent runs it.
    """
    if _ULID.fullmatch(called):
        return called[-_HANDLE:]
    return called if len(called) <= _PATH_LENGTH and _SAFE.fullmatch(called) else ""


def in_brief(note: Note, tokens: int) -> str:
    """Render an opened note: its kind and date, its title, as much of its text as fits, and its first evidence."""
    title = plain_line(quoted(plain_line(note.title, 300)), 300)
    body = _body(note)
    rests = ", ".join(plain_line(quoted(plain_line(each, _PATH_LENGTH)), _PATH_LENGTH) for each in note.evidence[:1])
    evidence = f"Evidence of {note.created:%Y-%m-%d}: {rests}" if rests else f"Noted on {note.created:%Y-%m-%d}"
    status = "" if note.status is NoteStatus.ACCEPTED else f" · {note.status}"
    head = f"{_head(note).removesuffix(' ---')}{status} ---"
    left = tokens - likely_tokens(f"{head}\n{title}\n{evidence}") - 3
    said = "" if _letters(body).startswith(_letters(title)) and title else title
    return "\n".join(filter(None, (head, said, shortened(body, tokens=left, characters=CHARACTERS), evidence)))


def remarks(lines: Sequence[str], *, about: str, tokens: int) -> str:
    """Render a block of plain lines that are not notes: as many as fit, each quoted. Empty without lines, or if not one fits."""
    opening = f"<vault-context>\n[Relevant vault context: {about}]"
    left = tokens - likely_tokens(f"{opening}\n{_CLOSING}")
    kept: list[str] = []
    for line in lines:
        said = f"- {plain_line(quoted(plain_line(line, _REMARK_LENGTH)), _REMARK_LENGTH)}"
        left -= likely_tokens(said) + 1
        if left < 0:
            break
        kept.append(said)
    return "\n".join([opening, *kept, _CLOSING]) if kept else ""


def shortened(text: str, *, tokens: int, characters: int) -> str:
    """Return as much of the text as fits, ending with a sentence or a line if possible, and with an ellipsis if it was cut."""
    if len(text) <= characters and estimated_tokens(text) <= tokens:
        return text
    room = 0
    left = tokens - 4
    pieces = _TOKEN_PIECES.findall(text, 0, max(0, characters - 2))
    for piece, cost in zip(pieces, _costs(pieces), strict=True):
        left -= cost
        if left < 0:
            break
        room += len(piece)
    head = text[:room]
    ends = [found.end() for found in _SENTENCE_END.finditer(head)]
    if ends and ends[-1] > room // 2:
        head = head[: ends[-1]]
    elif " " in head:
        head = head[: head.rindex(" ")]
    head = head.rstrip()
    return f"{head} …" if head else ""


def estimated_tokens(text: str) -> int:
    """Return an upper estimate of the tokens, without a tokenizer: one for every three letters of a word, for every digit, sign and
    line, and for every byte that is not ASCII. Tokenizers of today's models need about half as many for prose.
    """
    return sum(_costs(_TOKEN_PIECES.findall(text)))


def _costs(pieces: list[str]) -> list[int]:
    return [
        0 if piece == " " else -(-len(piece) // 3) if piece.isascii() else len(piece.encode("utf-8", "replace")) for piece in pieces
    ]


def likely_tokens(text: str) -> int:
    """Return a close estimate of the tokens, rather too high: one for six letters of a word, two digits, or a sign. In briefs, with
    their paths and citations, a token is 2.8 characters.
    """
    return sum(map(_likely_cost, _LIKELY_PIECES.findall(text)))


def _likely_cost(piece: str) -> int:
    if piece == " ":
        return 0
    if piece.isascii():
        return -(-len(piece) // 6) if piece.isalpha() else -(-len(piece) // 2) if piece.isdigit() else 1
    return max(1, len(piece.encode("utf-8", "replace")) - 1)


def _head(note: Note) -> str:
    path = plain_line(quoted(plain_line(note.path, _PATH_LENGTH)), _PATH_LENGTH).replace("[", "(").replace("]", ")")
    since = " · the code has changed since" if note.drifted else ""
    return f"--- [{path}] · {note.kind} · {note.created:%Y-%m-%d}{since} ---"


def _said(note: Note) -> str:
    """Return the note's text, already `quoted`; empty if the note has no visible text."""
    body = _body(note)
    if len(body) >= _FRAGMENT:
        return body
    return quoted(_after(quoted(note.title[:_BODY_LENGTH]), ": ", body))


def _body(note: Note) -> str:
    return quoted(prose(note.body[:_BODY_LENGTH]))


def _after(title: str, between: str, text: str) -> str:
    """Return the title, then the text, or only one of them if it repeats the other."""
    if not title or _letters(text).startswith(_letters(title)):
        return text
    if not text or _letters(title).startswith(_letters(text)):
        return title
    return f"{title.rstrip(' .:')}{between}{text}"


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()
