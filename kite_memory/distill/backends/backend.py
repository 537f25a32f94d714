"""The one door to a model: what is asked of it, and what comes back. Extraction and judging both go through it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kite_memory.distill.extractor import Busy, Misconfigured, Refused, Usage
from kite_memory.model.record import Chunk


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
    """Dollars for a million tokens; writing to the cache costs 1.25 times the first, reading from it a tenth."""

    dollars_in: float
    dollars_out: float

    def of(self, *, fresh: int, written: int, read: int, out: int) -> Usage:
        weighed = fresh + _CACHE_WRITE * written + _CACHE_READ * read
        dollars = (weighed * self.dollars_in + out * self.dollars_out) / 1_000_000
        return Usage(tokens_in=fresh + written + read, tokens_out=out, dollars=dollars)

    def of_reported(self, reported: object) -> Usage:
        """From the ``usage`` of an answer; what is missing in it or makes no sense counts as nothing."""
        counts = reported if isinstance(reported, dict) else {}
        return self.of(
            fresh=_count(counts.get("input_tokens")),
            written=_count(counts.get("cache_creation_input_tokens")),
            read=_count(counts.get("cache_read_input_tokens")),
            out=_count(counts.get("output_tokens")),
        )


def are_told(counts: Mapping[object, object], *names: str) -> bool:
    """Whether all of these counts are there and make sense; else nobody knows what a call cost."""
    return all(isinstance(count := counts.get(name), int) and not isinstance(count, bool) and count >= 0 for name in names)


def _count(value: object) -> int:
    return min(value, _MOST) if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def tokens_at_most(text: str) -> int:
    """Two characters a token, and three tokens for a character outside ASCII.

    English prose and code need about four characters a token, random digits about two: no transcript comes near this.
    """
    plain = sum(map(str.isascii, text))
    return plain // 2 + 3 * (len(text) - plain) + 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """``system`` and ``schema`` are the same for every inquiry of a task, so that they can be cached; ``user`` changes.

    ``seconds`` bounds the whole call, however slowly a server drips.
    """

    system: str
    user: str
    schema: Mapping[str, object] = field(hash=False)
    max_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model said, in whatever form: nothing of it has been checked. ``cut`` says that it had more to say."""

    text: str
    usage: Usage
    cut: bool = False


Ending = Reply | Busy | Refused | Misconfigured


class Backend(Protocol):
    """Safe to share between threads. Heavy packages are loaded by the first `ask`."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    def estimate(self, inquiry: Inquiry) -> Usage:
        """From above: what `ask` may cost at most."""
        ...

    def ask(self, inquiry: Inquiry) -> Ending:
        """One call, without retries of its own. Never raises for what a model or a server does."""
        ...
