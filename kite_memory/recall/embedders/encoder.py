"""Sentence encoders of the BERT family in numpy, 384 numbers wide, without key, network or other package.

Weights are int8 rows; each matrix is expanded into one small scratch buffer when it is needed. That costs a millisecond a call and
saves the daemon tens of megabytes.
"""

import mmap
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kite_memory.recall.embedders.embedder import Purpose, Space, Vectors

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
