"""Interface of embedders; `tests/contract` tests each one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from kite_memory.model.event import RedactedText
from kite_memory.model.hit import MEANING_WEIGHT

Vectors = npt.NDArray[np.float32]
Purpose = Literal["document", "query"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Embedding space: only vectors of the same space may be compared. ``threshold`` is the fused score from which a note is worth
    showing. ``meaning`` is the share of the meaning in the score of a search; the rest is that of the words.
    """

    name: str
    dim: int
    version: str
    threshold: float
    meaning: float = MEANING_WEIGHT

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
