"""Interface of extractors, and the possible outcomes of a call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from kite_memory.model.record import Chunk, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Cost of a call. ``tokens_in`` includes cached ones; ``dollars`` already counts them at their lower price."""

    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The call succeeded. ``refused_items`` holds one short reason for each item that the quality gate refused."""

    record: Record
    usage: Usage
    refused_items: tuple[str, ...] = ()


Made = Literal["yes", "no", "perhaps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """The call failed for now: try again, not before ``retry_after`` seconds from now (at most an hour; 0 if the server gave none).

    ``made`` says whether the service accepted the call. ``perhaps``: it was sent, its outcome is unknown, and it may be billed.
    """

    reason: str
    retry_after: float = 0.0
    usage: Usage = Usage()
    made: Made = "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The chunk was refused: sending it again gives the same outcome."""

    reason: str
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Misconfigured:
    """No chunk will be answered until a person changes something (a key, a spending limit, a model's name).

    ``perhaps_this``: as far as the reply shows, only this chunk may be the problem.
    """

    reason: str
    hint: str
    perhaps_this: bool = False


Outcome = Answer | Busy | Refused | Misconfigured


class Extractor(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Identifier that changes when the same chunk could get another answer: prompt, schema, model, rules."""
        ...

    def estimate(self, chunk: Chunk) -> Usage:
        """Return the most that `extract` may cost. All zero for an extractor that costs nothing."""
        ...

    def extract(self, chunk: Chunk) -> Outcome:
        """Extract a record. Never raises for what a model, a server or a transcript does."""
        ...


@runtime_checkable
class Sharing(Protocol):
    """What an extractor has besides that can send several short chunks in one call, which share the call's fixed part.

    Methods only: before Python 3.12 `isinstance` evaluates the properties of a protocol, and ``version`` may load all rules.
    """

    def share(self, chunks: Sequence[Chunk]) -> bool:
        """Return whether these may be sent in one call."""
        ...

    def estimate_together(self, chunks: Sequence[Chunk]) -> Usage: ...

    def extract_together(self, chunks: Sequence[Chunk]) -> list[Outcome]:
        """Return one outcome for each chunk, in order. The first one carries the cost of the call."""
        ...


class SharingExtractor(Extractor, Sharing, Protocol):
    """Extractor that can do both."""
