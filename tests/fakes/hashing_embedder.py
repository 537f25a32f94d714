"""An embedder that counts hashed words: the same text has the same vector, and texts that share words are similar."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from kite_memory.recall.embedder import Purpose, Space, Vectors

_WORD = re.compile(r"\w+")


class HashingEmbedder:
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
