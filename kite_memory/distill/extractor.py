"""What every extractor promises, and the ways in which a call can end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from kite_memory.model.record import Chunk, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """``tokens_in`` includes cached ones; ``dollars`` already counts them at their lower price."""

    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``refused_items`` says, one short reason each, what the quality gate did not let through."""

    record: Record
    usage: Usage
    refused_items: tuple[str, ...] = ()


Made = Literal["yes", "no", "perhaps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """Try again, not before ``retry_after`` seconds from now (already capped at an hour; 0 where nothing was said).

    ``made`` says whether the service took the call on. ``perhaps``: it was sent, nobody knows what came of it, and it may be
    on the bill.
    """

    reason: str
    retry_after: float = 0.0
    usage: Usage = Usage()
    made: Made = "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """This chunk will not be answered, however often it is asked."""

    reason: str
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Misconfigured:
    """No chunk will be answered until a person changes something (a key, a spending limit, a model's name).

    ``perhaps_this``: for all that was said, it may be this chunk alone that is not accepted.
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
        """Changes when the same chunk could get another answer: prompt, schema, model, rules."""
        ...

    def estimate(self, chunk: Chunk) -> Usage:
        """From above: what `extract` may cost at most. All zero for an extractor that costs nothing."""
        ...

    def extract(self, chunk: Chunk) -> Outcome:
        """Never raises for what a model, a server or a transcript does."""
        ...


@runtime_checkable
class Sharing(Extractor, Protocol):
    """One whose calls have a part that is the same for all, so that short chunks go together."""

    def share(self, chunks: Sequence[Chunk]) -> bool:
        """Whether these may be asked about in one call."""
        ...

    def estimate_together(self, chunks: Sequence[Chunk]) -> Usage: ...

    def extract_together(self, chunks: Sequence[Chunk]) -> list[Outcome]:
        """One for each, in order. What the call cost is the first one's."""
        ...
