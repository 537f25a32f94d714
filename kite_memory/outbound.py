"""What leaves this machine for somebody else's: the last look at it, whoever asks and whatever it is made of.

Events have passed the door before they were stored. Notes have not: people write into their vault what they please, and ask what
they please.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kite_memory.distill.backends.backend import Backend, Ending, Inquiry
from kite_memory.distill.extractor import Usage
from kite_memory.recall.embedders.embedder import Embedder, Purpose, Space, Vectors
from kite_memory.redaction import drop_private, redact


@dataclass(frozen=True, slots=True)
class RedactingBackend:
    """A model that is told no secrets."""

    inner: Backend

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def model(self) -> str:
        return self.inner.model

    def estimate(self, inquiry: Inquiry) -> Usage:
        return self.inner.estimate(inquiry)

    def ask(self, inquiry: Inquiry) -> Ending:
        return self.inner.ask(replace(inquiry, user=redact(inquiry.user)))


@dataclass(frozen=True, slots=True)
class RedactingEmbedder:
    """An embedder that is told no secrets, and nothing that is marked as private."""

    inner: Embedder

    @property
    def space(self) -> Space:
        return self.inner.space

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        return self.inner.embed([redact(drop_private(text)) for text in texts], purpose)
