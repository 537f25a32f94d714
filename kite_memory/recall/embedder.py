"""Interface of embedders; `tests/contract` tests each one."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from kite_memory.model.event import RedactedText

Vectors = npt.NDArray[np.float32]
Purpose = Literal["document", "query"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Embedding space: only vectors of the same space may be compared. ``threshold`` is the fused score from which a note is worth
    showing.
    """

    name: str
    dim: int
    version: str
    threshold: float

    @property
    def tag(self) -> str:
        """Identifier that is usable in a file name."""
        return f"{self.name}-{self.dim}-{self.version}"


class Embedder(Protocol):
    @property
    def space(self) -> Space: ...

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Return ``(len(texts), dim) float32``, rows of unit length, the same row for the same text whatever else is in the batch.

        An empty or unreadable text yields a row of zeros. Raises `EmbedderUnavailable` if a network is needed and fails.
        """
        ...


class SendingEmbedder(Protocol):
    """Embedder that sends the texts to a service, so it takes redacted ones only. Otherwise the same as `Embedder`."""

    @property
    def space(self) -> Space: ...

    def embed(self, texts: Sequence[RedactedText], purpose: Purpose) -> Vectors: ...


_WORD = re.compile(r"\w+")


class HashingEmbedder:
    """Embedder for tests, and for measuring everything around an embedder."""

    def __init__(self, dim: int = 64, *, version: str = "1") -> None:
        self._dim = dim
        self._version = version

    @property
    def space(self) -> Space:
        return Space(name="hashing", dim=self._dim, version=self._version, threshold=0.42)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        vectors = np.zeros((len(texts), self._dim), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in _WORD.findall(text.lower()):
                code = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "little")
                row[code % self._dim] += 1 if code >> 63 else -1
            if length := float(np.linalg.norm(row)):
                row /= length
        return vectors
