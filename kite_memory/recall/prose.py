"""The files of a vault that recall reads, and their plain text: without the markdown of links, divided into passages."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from kite_memory.model.note import Entry, Note
from kite_memory.system.private_files import is_text
from kite_memory.text import lazy_regex

if TYPE_CHECKING:
    from kite_memory.recall.lexical import IndexedWords

UNKNOWN = -1
"""Time or size of a file that the next comparison treats as changed."""


class NoteFiles(Protocol):
    """The part of a vault that recall uses."""

    def entries(self) -> Iterable[Entry]:
        """Return every file that may be a note, unread. Raises `VaultMissing` instead of listing a missing vault as empty."""
        ...

    def read(self, path: str) -> Note | None:
        """Return the note at this path, or ``None`` if the file is missing or not a note."""
        ...


def listed(files: NoteFiles, unusable: list[Entry]) -> Iterator[Entry]:
    """Yield the files whose names are text, and append the others to ``unusable``."""
    for entry in files.entries():
        if is_text(entry.path):
            yield entry
        else:
            unusable.append(entry)


def unlisted(path: str) -> Entry:
    """Return an entry that the next comparison treats as changed."""
    return Entry(path=path, size=UNKNOWN, mtime_ns=UNKNOWN)


_LINK = lazy_regex(r"!?\[\[([^\[\]|#\n]{0,300})(?:#[^\[\]|\n]{0,300})?(?:\|([^\[\]\n]{0,300}))?\]\]")
_RELATED = lazy_regex(r"^\*\*Related:\*\*.*$", re.MULTILINE)
_TURNED_DOWN = lazy_regex(r"^> \[!failure\] Rejected:", re.MULTILINE)
"""The markup of a callout box for rejected options, which is replaced by plain text."""
_SENTENCE_END = lazy_regex(r"(?<=[.!?。！？])\s+|\n+")

_WORDS_PER_PASSAGE = 180
_CHARACTERS_PER_PASSAGE = 1_200
_PASSAGES_PER_NOTE = 32
CHARACTERS_PER_NOTE = 200_000
"""Text beyond this is neither indexed nor shown."""


def unlinked(markdown: str) -> str:
    """Replace wikilinks by their visible text: the alias, or the target's last part."""

    def shown(link: re.Match[str]) -> str:
        target, alias = link.group(1), link.group(2)
        return (alias or target.rpartition("/")[2]).strip()

    return _LINK.sub(shown, markdown)


def prose(body: str) -> str:
    """Return the body without its lines of mere links."""
    text = _TURNED_DOWN.sub("**Rejected:**", _RELATED.sub("", body[:CHARACTERS_PER_NOTE]))
    return unlinked(text).strip()


def searchable(note: Note, said: str = "") -> "IndexedWords":
    """Return the words of a note for the lexical index."""
    from kite_memory.recall.lexical import IndexedWords  # imports numpy, which rendering alone does not need

    named = (*note.aliases, *note.triggers, " ".join(note.tags), ", ".join(note.entities))
    return IndexedWords(title=note.title, named="\n".join(filter(None, named)), body=prose(note.body), said=said)


def passages(note: Note) -> tuple[str, ...]:
    """Return the texts of a note to embed: one for a short note, several for a long one, each beginning with the title.

    Never empty: a note without words still has its title, or its path. The whole note is redacted before it is divided: the
    embedder may be an external service, and half of a key in a passage of its own would match no pattern.
    """
    title = _redacted(note.title).strip() or note.path
    head = "\n".join((title, *map(_redacted, note.triggers)))[:_CHARACTERS_PER_PASSAGE]
    parts = list(_parts(prose(_redacted(note.body))))[:_PASSAGES_PER_NOTE]
    unsaid = [_redacted(entity) for entity in note.entities if entity not in note.body]
    first = "\n".join(filter(None, (head, *parts[:1], ", ".join(unsaid)[:_CHARACTERS_PER_PASSAGE])))
    return (first, *(f"{title[:200]}\n{part}" for part in parts[1:]))


def _redacted(text: str) -> str:
    from kite_memory.redaction import drop_private, redact  # rendering alone does not need it

    return redact(drop_private(text))


def _parts(text: str) -> Iterator[str]:
    """Divide at the ends of sentences or lines, or anywhere in a text without them."""
    held: list[str] = []
    words = characters = 0
    for sentence in _SENTENCE_END.split(text):
        for piece in _pieces(sentence):
            count = max(len(piece.split()), 0 if piece.isascii() else sum(char > "\u2e7f" for char in piece))
            if held and (words + count > _WORDS_PER_PASSAGE or characters + len(piece) > _CHARACTERS_PER_PASSAGE):
                yield "\n".join(held)
                held, words, characters = [], 0, 0
            if piece:
                held.append(piece)
                words += count
                characters += len(piece)
    if held:
        yield "\n".join(held)


def _pieces(sentence: str) -> Iterator[str]:
    for start in range(0, len(sentence), _CHARACTERS_PER_PASSAGE):
        yield sentence[start : start + _CHARACTERS_PER_PASSAGE].strip()
