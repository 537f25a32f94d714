"""Redaction of everything that is sent to external services, applied to every request just before it leaves.

Events were redacted before they were stored. Notes and questions were not, since users write them freely.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kite_memory.distill.backends.backend import (
    Ending,
    Failure,
    Inquiry,
    ListedBatch,
    RedactedInquiry,
    SendingBackend,
    SendingBatches,
)
from kite_memory.distill.extractor import Usage
from kite_memory.recall.embedders.embedder import Purpose, SendingEmbedder, Space, Vectors
from kite_memory.redaction import drop_private, redact


@dataclass(frozen=True, slots=True)
class RedactingBackend:
    """Language model backend that redacts secrets in what it sends."""

    inner: SendingBackend

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def model(self) -> str:
        return self.inner.model

    def estimate(self, inquiry: Inquiry) -> Usage:
        return self.inner.estimate(inquiry)

    def ask(self, inquiry: Inquiry) -> Ending:
        return self.inner.ask(_redacted(inquiry))


@dataclass(frozen=True, slots=True)
class RedactingBatches:
    """Batches of inquiries that are redacted before they are sent."""

    inner: SendingBatches

    def estimate(self, inquiry: Inquiry) -> Usage:
        return self.inner.estimate(inquiry)

    def submit(self, inquiries: Mapping[str, Inquiry]) -> str | Failure:
        return self.inner.submit({name: _redacted(inquiry) for name, inquiry in inquiries.items()})

    def is_over(self, batch: str) -> bool | Failure:
        return self.inner.is_over(batch)

    def endings(self, batch: str, estimates: Mapping[str, Usage]) -> Mapping[str, Ending] | Failure:
        return self.inner.endings(batch, estimates)

    def listed(self) -> Sequence[ListedBatch] | Failure:
        return self.inner.listed()


def _redacted(inquiry: Inquiry) -> RedactedInquiry:
    return RedactedInquiry(
        system=inquiry.system,
        user=redact(inquiry.user),
        schema=inquiry.schema,
        max_tokens=inquiry.max_tokens,
        seconds=inquiry.seconds,
    )


@dataclass(frozen=True, slots=True)
class RedactingEmbedder:
    """Embedder that redacts secrets and drops text marked as private before sending."""

    inner: SendingEmbedder

    @property
    def space(self) -> Space:
        return self.inner.space

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        return self.inner.embed([redact(drop_private(text)) for text in texts], purpose)
