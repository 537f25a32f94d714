"""A person's own literals to redact, stored only as keyed hashes."""

import hashlib
import hmac
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # whose expressions take longer to compile than most commands to run
    from kite_memory.redaction.chance import Span

KIND = "protected"
SHORTEST = 6
LONGEST = 4096
_PROBE_BITS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedLiteral:
    """A protected literal. ``probe`` is a short keyed sum to skip most of a text quickly; ``digest`` decides."""

    length: int
    probe: int
    digest: str


def literal(key: bytes, text: str) -> ProtectedLiteral:
    return ProtectedLiteral(length=len(text), probe=_probe(key, text), digest=_digest(key, text))


@dataclass(frozen=True, kw_only=True)
class Literals:
    key: bytes
    known: tuple[ProtectedLiteral, ...]

    def find(self, text: str) -> "list[Span]":
        """Return where a literal occurs, also within a word. Takes time linear in ``text`` for each length of a literal."""
        import numpy as np  # imported late: most people protect nothing

        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
        base = _base(self.key)
        length = len(codes)
        powers = np.cumprod(np.full(length, base, np.uint64), dtype=np.uint64)
        inverse = np.cumprod(np.full(length, pow(base, -1, 1 << 64), np.uint64), dtype=np.uint64)
        sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(codes * powers, dtype=np.uint64)))
        found: list[Span] = []
        for size, wanted in self._by_length.items():
            if size > length:
                continue
            probes = ((sums[size:] - sums[:-size]) * inverse[: length - size + 1]) >> np.uint64(64 - _PROBE_BITS)
            candidates = np.flatnonzero(np.isin(probes, np.array(list(wanted), np.uint64)))
            found += (
                (start, start + size, KIND)
                for start in map(int, candidates)
                if _digest(self.key, text[start : start + size]) in wanted[int(probes[start])]
            )
        return found

    @cached_property
    def _by_length(self) -> dict[int, dict[int, set[str]]]:
        table: dict[int, dict[int, set[str]]] = {}
        for each in self.known:
            table.setdefault(each.length, {}).setdefault(each.probe, set()).add(each.digest)
        return table


def _base(key: bytes) -> int:
    return int.from_bytes(hashlib.sha256(b"probe" + key).digest()[:8], "big") | 1


def _probe(key: bytes, text: str) -> int:
    """Return the upper bits of the polynomial of the code points modulo 2**64, as `Literals.find` computes it."""
    base, total, power = _base(key), 0, 1
    for character in text:
        total += ord(character) * power
        power = power * base % (1 << 64)
    return (total % (1 << 64)) >> (64 - _PROBE_BITS)


def _digest(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


_protected: Literals | None = None


def protect(literals: Literals | None) -> None:
    """Set the literals that are redacted everywhere in this process from now on."""
    global _protected
    _protected = literals if literals is not None and literals.known else None


def find_protected(text: str) -> "list[Span]":
    return _protected.find(text) if _protected is not None and len(text) >= SHORTEST else []
