"""What a call costs: before it, from above; after it, as reported."""

from collections.abc import Mapping
from dataclasses import dataclass

from kite_memory.distill.extractor import Usage

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
