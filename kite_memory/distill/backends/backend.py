"""Interface of model back ends: inquiry and outcome. Extraction and judging both use it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kite_memory.distill.extractor import Busy, Misconfigured, Refused, Usage
from kite_memory.model.record import Chunk
from kite_memory.model.redacted import RedactedText


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyless:
    name: str
    hint: str
    version: str = ""

    @property
    def lack(self) -> Misconfigured:
        return Misconfigured(reason=f"the extractor `{self.name}` has no key", hint=self.hint)

    def estimate(self, chunk: Chunk) -> Usage:
        return Usage()

    def extract(self, chunk: Chunk) -> Misconfigured:
        return self.lack


_CACHE_WRITE = 1.25
_CACHE_READ = 0.1
_MOST = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices in dollars per million tokens; writing to the cache costs 1.25 times the first, reading from it a tenth."""

    dollars_in: float
    dollars_out: float

    def halved(self) -> "Prices":
        return Prices(dollars_in=self.dollars_in / 2, dollars_out=self.dollars_out / 2)

    def of(self, *, fresh: int, written: int, read: int, out: int) -> Usage:
        weighed = fresh + _CACHE_WRITE * written + _CACHE_READ * read
        dollars = (weighed * self.dollars_in + out * self.dollars_out) / 1_000_000
        return Usage(tokens_in=fresh + written + read, tokens_out=out, dollars=dollars)

    def of_reported(self, reported: object) -> Usage:
        """Return the cost from an answer's ``usage``; missing or invalid counts are 0."""
        counts = reported if isinstance(reported, dict) else {}
        return self.of(
            fresh=_count(counts.get("input_tokens")),
            written=_count(counts.get("cache_creation_input_tokens")),
            read=_count(counts.get("cache_read_input_tokens")),
            out=_count(counts.get("output_tokens")),
        )


def are_counts(counts: Mapping[object, object], *names: str) -> bool:
    """Return whether all of these counts are present and valid; otherwise a call's cost is unknown."""
    return all(isinstance(count := counts.get(name), int) and not isinstance(count, bool) and count >= 0 for name in names)


def _count(value: object) -> int:
    return min(value, _MOST) if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def tokens_at_most(text: str) -> int:
    """Estimate two characters a token, and three tokens for a character outside ASCII.

    English prose and code need about four characters a token, random digits about two: no transcript exceeds this.
    """
    plain = sum(map(str.isascii, text))
    return plain // 2 + 3 * (len(text) - plain) + 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """One call to a model. ``system`` and ``schema`` are the same for every inquiry of a task, so that they can be cached; ``user``
    changes.

    ``seconds`` bounds the whole call, however slowly a server sends.
    """

    system: str
    user: str
    schema: Mapping[str, object] = field(hash=False)
    max_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactedInquiry(Inquiry):
    """An inquiry that may leave this machine."""

    user: RedactedText


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The model's unchecked text. ``cut`` means that it was cut off at the limit."""

    text: str
    usage: Usage
    cut: bool = False


Failure = Busy | Refused | Misconfigured
Ending = Reply | Failure


class SendingBackend(Protocol):
    """Back end that sends what it is asked, so it takes redacted inquiries only. Otherwise the same as `Backend`."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    def estimate(self, inquiry: Inquiry) -> Usage: ...

    def ask(self, inquiry: RedactedInquiry) -> Ending: ...


class Backend(Protocol):
    """Back end to a model. Thread-safe. Heavy packages are loaded by the first `ask`."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    def estimate(self, inquiry: Inquiry) -> Usage:
        """Return the most that `ask` may cost."""
        ...

    def ask(self, inquiry: Inquiry) -> Ending:
        """Make one call, without retries. Never raises for what a model or a server does."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBatch:
    """A batch as the service lists it. ``created`` is Unix time; ``requests`` counts them."""

    id: str
    created: float
    requests: int


class SendingBatches(Protocol):
    """Service that answers many inquiries within a day, at half the price. Each inquiry has an id, unique in its batch."""

    def estimate(self, inquiry: Inquiry) -> Usage:
        """Return the most that this inquiry may cost in a batch."""
        ...

    def submit(self, inquiries: Mapping[str, RedactedInquiry]) -> str | Failure:
        """Send a batch and return its id."""
        ...

    def is_over(self, batch: str) -> bool | Failure:
        """Return whether every inquiry of the batch has an outcome."""
        ...

    def endings(self, batch: str, estimates: Mapping[str, Usage]) -> Mapping[str, Ending] | Failure:
        """Return the outcomes of a batch that is over. ``estimates`` are the costs of answers that report none."""
        ...

    def listed(self) -> Sequence[ListedBatch] | Failure:
        """Return the account's latest batches."""
        ...


class Batches(SendingBatches, Protocol):
    """Batches that redact what they send."""

    def submit(self, inquiries: Mapping[str, Inquiry]) -> str | Failure: ...
