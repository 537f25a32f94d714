"""What every embedder promises; `tests/contract` holds each one to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Purpose = Literal["document", "query"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Vectors may be compared only within one space. ``threshold`` is where a fused score becomes worth showing in it."""

    name: str
    dim: int
    version: str
    threshold: float

    @property
    def tag(self) -> str:
        """A file name's worth of identity."""
        return f"{self.name}-{self.dim}-{self.version}"


class Embedder(Protocol):
    @property
    def space(self) -> Space: ...

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """``(len(texts), dim) float32``, rows of unit length, the same row for the same text whatever else is in the batch.

        An empty or unreadable text yields a row of zeros. Raises `EmbedderUnavailable` where a network is needed and fails.
        """
        ...
