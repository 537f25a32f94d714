"""BERT's uncased WordPiece, as the weights beside it were trained with."""

import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

UNKNOWN = 100
START = 101
END = 102

_LONGEST_WORD = 100
_TEXT_LIMIT = 20_000
"""Characters looked at. 256 tokens are used; this leaves room for text that is mostly blanks."""


def read_vocabulary(path: Path) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(path.read_text(encoding="utf-8").split("\n")) if piece}


def tokens(text: str, vocabulary: Mapping[str, int], limit: int) -> list[int]:
    """Token ids between ``[CLS]`` and ``[SEP]``, ``limit`` of them at most with those two; only those two for a blank text.

    ``[SEP]`` and its kin standing in the text are text: nobody can end a passage by writing it.
    """
    found = [START]
    for word in _words(text[:_TEXT_LIMIT]):
        found += _pieces(word, vocabulary)
        if len(found) >= limit:
            break
    return [*found[: limit - 1], END]


def _pieces(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    """The longest piece that fits, again and again; a word that cannot be spelt so is one unknown."""
    if whole := vocabulary.get(word):
        return [whole]
    if len(word) > _LONGEST_WORD:
        return [UNKNOWN]
    found = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            piece = vocabulary.get(prefix + word[start:end])
            if piece is not None:
                break
        else:
            return [UNKNOWN]
        found.append(piece)
        start = end
    return found


def _words(text: str) -> Iterator[str]:
    if text.isascii():
        return iter(text.lower().translate(_ASCII).split())
    text = "".join(map(_cleaned, text))
    text = "".join(char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn")
    text = "".join(map(str.lower, text))  # one by one: a Greek sigma at a word's end stays an ordinary one
    return iter("".join(map(_parted, text)).split())


@lru_cache(maxsize=4096)
def _cleaned(char: str) -> str:
    if char in "\t\n\r":
        return " "
    if char == "\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    return f" {char} " if _is_ideograph(ord(char)) else char


@lru_cache(maxsize=4096)
def _parted(char: str) -> str:
    """Punctuation stands alone, blanks are blanks, and control characters are not there."""
    if "!" <= char <= "/" or ":" <= char <= "@" or "[" <= char <= "`" or "{" <= char <= "~":
        return f" {char} "
    category = unicodedata.category(char)
    if category[0] == "P":
        return f" {char} "
    if category[0] == "Z" or char in "\t\n\r":
        return " "
    return "" if category == "Cc" else char


def _is_ideograph(code: int) -> bool:
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2A6DF
        or 0x2A700 <= code <= 0x2B73F
        or 0x2B740 <= code <= 0x2B81F
        or 0x2B920 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
        or 0x2F800 <= code <= 0x2FA1F
    )


_ASCII = {code: _parted(chr(code)) for code in range(128)}
