"""The one door to a model: what is asked of it, and what comes back. Extraction and judging both go through it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kite_memory.distill.extractor import Busy, Misconfigured, Refused, Usage


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
