"""all-MiniLM-L6-v2: semantic vectors of English text; and the sentence encoder that it shares with other models of its family.

The encoder is numpy alone, 384 numbers wide. Weights are int8 rows in a memory-mapped file; each matrix is expanded into one
buffer.
"""

import json
import mmap
import threading
import time
import unicodedata
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from kite_memory.errors import StateDamaged
from kite_memory.recall.embedder import Purpose, Space, Vectors

WIDTH = 384
_HEADS = 12
_TOKENS: dict[Purpose, int] = {"document": 256, "query": 64}
"""Most tokens by purpose. The built-in model was trained on at most 256; a query must be fast, and far fewer tokens distinguish
it.
"""
_TOKENS_PER_BATCH = 512
"""Limits a call's memory; larger batches are no faster."""
_QUESTIONS_KEPT = 64
_MANY = 64
"""Texts at once; only indexing, never a query, needs more."""
_ROWS_PER_BLOCK = 64
"""Rows of a wide layer that fit a processor's own cache."""
_COLUMNS_PER_TILE = 32
_ROWS_IN_TILES = 1_000_000 // (WIDTH * _COLUMNS_PER_TILE)
"""OpenBLAS repacks its operands, unless the product takes at most a million steps and the processor has a kernel for such."""

_MEAN = np.full(WIDTH, 1 / WIDTH, np.float32)

Ids = npt.NDArray[np.intp]
Codes = npt.NDArray[np.int8]
_Run = tuple[int, int, int]
"""``count`` texts of ``length`` tokens each, consecutive from row ``start``."""


class Encoder(ABC):
    """A model's layers. ``floats`` and ``codes`` hold its arrays under the names that `forward` reads."""

    def __init__(self, mapped: mmap.mmap, floats: Mapping[str, Vectors], codes: Mapping[str, Codes], layers: int) -> None:
        self._mapped = mapped
        self._floats = floats
        self._codes = codes
        self._layers = layers
        self._in_tiles = _ROWS_IN_TILES if _tiles_are_faster() else 0

    @abstractmethod
    def tokens(self, text: str, purpose: Purpose, limit: int) -> list[int]:
        """Return token ids; empty for a text without any known token, so that two such texts do not look alike."""

    @abstractmethod
    def words(self, ids: Ids) -> Vectors:
        """Return the rows of these tokens, before their positions are added."""

    def release_pages(self) -> None:
        """Release the file's pages: the vocabulary is large, and a prompt needs little of it."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._mapped.madvise(mmap.MADV_DONTNEED)

    def forward(self, sequences: Sequence[Sequence[int]]) -> Vectors:
        lengths = [len(ids) for ids in sequences]
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        runs = list(_runs(lengths))
        scratch = np.empty(4 * WIDTH * WIDTH, np.float32)
        ids = np.concatenate([np.asarray(ids, np.intp) for ids in sequences])
        hidden = self.words(ids)
        hidden += self._floats["positions"][np.concatenate([np.arange(length) for length in lengths])]
        hidden = self._norm("embedding_norm", hidden)
        for layer in range(self._layers):
            mixed = _attention(self._dense(f"{layer}.attention", hidden, scratch), runs)
            hidden = self._norm(f"{layer}.attention_norm", hidden + self._dense(f"{layer}.attention_out", mixed, scratch))
            wide = _gelu(self._dense(f"{layer}.widen", hidden, scratch))
            hidden = self._norm(f"{layer}.norm", hidden + self._dense(f"{layer}.narrow", wide, scratch))
        pooled = np.add.reduceat(hidden, starts, axis=0)
        pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
        return pooled

    def _dense(self, name: str, rows: Vectors, scratch: Vectors) -> Vectors:
        codes = self._codes[f"{name}.weight"]
        weight = scratch[: codes.size].reshape(codes.shape)
        np.copyto(weight, codes)
        product: Vectors = tiled(rows, weight) if len(rows) <= self._in_tiles else rows @ weight
        product *= self._floats[f"{name}.scale"]
        product += self._floats[f"{name}.bias"]
        return product

    def _norm(self, name: str, rows: Vectors) -> Vectors:
        rows -= np.vecdot(rows, _MEAN)[:, None]
        rows /= np.sqrt(np.vecdot(rows, rows)[:, None] / np.float32(WIDTH) + np.float32(1e-12))
        rows *= self._floats[f"{name}.weight"]
        rows += self._floats[f"{name}.bias"]
        return rows


class EncoderEmbedder(ABC):
    """Embedder that runs an encoder. Thread-safe: a call changes only its own buffers and the small cache of queries.

    Tokens of several texts are packed without padding, so other texts affect a row only through the rounding of a matrix product:
    equal to 1e-5.
    """

    def __init__(self, load: Callable[[], Encoder]) -> None:
        self._load = load
        self._loading = threading.Lock()
        self._model: Encoder | None = None
        self._asking = threading.Lock()
        self._questions: OrderedDict[str, Vectors] = OrderedDict()

    @property
    @abstractmethod
    def space(self) -> Space: ...

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        if purpose == "query" and len(texts) == 1:
            return self._asked(texts[0])
        return self._embedded(texts, purpose)

    def _asked(self, text: str) -> Vectors:
        """Return a query's vector, cached for the last queries: agents search, and ask for context, in the same words."""
        with self._asking:
            known = self._questions.get(text)
            if known is not None:
                self._questions.move_to_end(text)
                return known.copy()
        vectors = self._embedded([text], "query")
        with self._asking:
            self._questions[text] = vectors.copy()
            if len(self._questions) > _QUESTIONS_KEPT:
                self._questions.popitem(last=False)
        return vectors

    def _embedded(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        model = self._loaded()
        vectors = np.zeros((len(texts), WIDTH), np.float32)
        limit = _TOKENS[purpose]
        sequences = {number: ids for number, text in enumerate(texts) if (ids := model.tokens(text, purpose, limit))}
        for numbers in _batches({number: len(ids) for number, ids in sequences.items()}):
            vectors[numbers] = model.forward([sequences[number] for number in numbers])
        if len(texts) >= _MANY:
            model.release_pages()
        return vectors

    def _loaded(self) -> Encoder:
        with self._loading:
            if self._model is None:
                self._model = self._load()
            return self._model


def _batches(lengths: Mapping[int, int]) -> Iterator[list[int]]:
    """Yield batches of texts of similar length, so that many share one attention product."""
    batch: list[int] = []
    held = 0
    for number in sorted(lengths, key=lengths.__getitem__):
        if batch and held + lengths[number] > _TOKENS_PER_BATCH:
            yield batch
            batch, held = [], 0
        batch.append(number)
        held += lengths[number]
    if batch:
        yield batch


def tiled(rows: Vectors, weight: Vectors) -> Vectors:
    """Return ``rows @ weight`` computed in small products: up to a half faster for few rows, if the processor has a kernel for
    them.
    """
    depth, width = weight.shape
    tiles = weight.reshape(depth // WIDTH, WIDTH, width // _COLUMNS_PER_TILE, _COLUMNS_PER_TILE).transpose(0, 2, 1, 3)
    product = np.empty((len(rows), width), np.float32)
    parts = product.reshape(len(rows), -1, _COLUMNS_PER_TILE).transpose(1, 0, 2)
    if depth == WIDTH:
        np.matmul(rows, tiles[0], out=parts)
    else:
        np.add.reduce(rows.reshape(len(rows), -1, 1, WIDTH).transpose(1, 2, 0, 3) @ tiles, axis=0, out=parts)
    return product


def _tiles_are_faster() -> bool:
    """Measure whether tiles are faster, since OpenBLAS does not report its kernels; takes a few milliseconds."""
    rows, weight = np.ones((24, WIDTH), np.float32), np.ones((WIDTH, WIDTH), np.float32)
    whole = tiles = float("inf")
    for _ in range(8):
        start = time.perf_counter()
        rows @ weight
        between = time.perf_counter()
        tiled(rows, weight)
        whole, tiles = min(whole, between - start), min(tiles, time.perf_counter() - between)
    return tiles < whole


def _runs(lengths: Sequence[int]) -> Iterator[_Run]:
    start = first = 0
    for number in range(1, len(lengths) + 1):
        if number == len(lengths) or lengths[number] != lengths[first]:
            count = number - first
            yield start, count, lengths[first]
            start += count * lengths[first]
            first = number


def _attention(stacked: Vectors, runs: Sequence[_Run]) -> Vectors:
    """Apply attention: every token attends to the tokens of its own text."""
    mixed = np.empty((len(stacked), WIDTH), np.float32)
    for start, count, length in runs:
        rows = slice(start, start + count * length)
        parts = stacked[rows].reshape(count, length, 3, _HEADS, -1).transpose(2, 0, 3, 1, 4)
        query, key, value = parts
        weights = query @ key.swapaxes(-1, -2)
        weights *= np.float32((WIDTH // _HEADS) ** -0.5)
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed[rows] = (weights @ value).transpose(0, 2, 1, 3).reshape(count * length, WIDTH)
    return mixed


def _gelu(rows: Vectors) -> Vectors:
    """Apply GELU in place. The tanh form, whose error is far below that of the weights."""
    for start in range(0, len(rows), _ROWS_PER_BLOCK):
        block = rows[start : start + _ROWS_PER_BLOCK]
        inner = np.square(block)
        inner *= np.float32(0.044715 * 0.7978845608)
        inner += np.float32(0.7978845608)
        inner *= block
        np.tanh(inner, out=inner)
        inner += 1
        inner *= 0.5
        block *= inner
    return rows


def mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


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


WEIGHTS = Path(__file__).resolve().parent / "weights"

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
