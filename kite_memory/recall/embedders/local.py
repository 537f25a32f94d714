"""all-MiniLM-L6-v2: semantic vectors of English text. The weights stay in a memory-mapped file."""

import json
import mmap
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np

from kite_memory.errors import StateDamaged
from kite_memory.recall.embedders.embedder import Purpose, Space, Vectors
from kite_memory.recall.embedders.encoder import WIDTH, Codes, Encoder, EncoderEmbedder, Ids, mapped

UNKNOWN = 100
START = 101
END = 102

_LONGEST_WORD = 100
_TEXT_LIMIT = 20_000
"""Characters that are read. 256 tokens are used; this leaves room for text that is mostly blanks."""


def read_vocabulary(path: Path) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(path.read_text(encoding="utf-8").split("\n")) if piece}


def tokens(text: str, vocabulary: Mapping[str, int], limit: int) -> list[int]:
    """Return token ids between ``[CLS]`` and ``[SEP]``, at most ``limit`` including those two; only those two for a blank text.

    ``[SEP]`` and other special tokens in the text are treated as text, so a text cannot end its passage.
    """
    found = [START]
    for word in _words(text[:_TEXT_LIMIT]):
        found += _pieces(word, vocabulary)
        if len(found) >= limit:
            break
    return [*found[: limit - 1], END]


def _pieces(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    """Split a word into pieces, always the longest that fits; a word that cannot be split so is one unknown token."""
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
    """Put blanks around punctuation, normalize blanks, and remove control characters."""
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


WEIGHTS = Path(__file__).resolve().parent.parent / "weights"

_LAYERS = 6


class LocalEmbedder(EncoderEmbedder):
    """Built-in embedder."""

    def __init__(self, folder: Path = WEIGHTS) -> None:
        super().__init__(lambda: _Model.read(folder))

    @property
    def space(self) -> Space:
        return Space(name="local", dim=WIDTH, version="minilm-l6-int8-1", threshold=0.42)


class _Model(Encoder):
    vocabulary: Mapping[str, int]

    @classmethod
    def read(cls, folder: Path) -> Self:
        try:
            vocabulary = read_vocabulary(folder / "vocab.txt")
            file = mapped(folder / "all-MiniLM-L6-v2-int8.safetensors")
            model = cls(file, *_read_safetensors(file), _LAYERS)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StateDamaged(f"the local embedder's weights cannot be read: {error}", hint="install kite-memory again") from error
        model.vocabulary = vocabulary
        return model

    def tokens(self, text: str, purpose: Purpose, limit: int) -> list[int]:
        ids = tokens(text, self.vocabulary, limit)
        return ids if any(token != UNKNOWN for token in ids[1:-1]) else []

    def words(self, ids: Ids) -> Vectors:
        rows = self._codes["words.weight"][ids].astype(np.float32)
        rows *= self._floats["words.scale"][ids][:, None]
        return rows


def _read_safetensors(mapped: mmap.mmap) -> tuple[dict[str, Vectors], dict[str, Codes]]:
    """Return views into the mapped file: clean pages that the system may reclaim."""
    length = int.from_bytes(mapped[:8], "little")
    if length > 1 << 20:
        raise ValueError("the header is not one")
    header = json.loads(mapped[8 : 8 + length])
    raw = np.frombuffer(mapped, np.uint8, offset=8 + length)
    floats: dict[str, Vectors] = {}
    codes: dict[str, Codes] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        start, end = entry["data_offsets"]
        if end > raw.size:
            raise ValueError("the file is cut short")
        part = raw[start:end]
        if entry["dtype"] == "F32":
            floats[name] = part.view("<f4").reshape(entry["shape"])
        else:
            codes[name] = part.view(np.int8).reshape(entry["shape"])
    return floats, codes
