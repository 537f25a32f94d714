"""What a reader makes of a prompt that the gate is not sure about."""

from dataclasses import dataclass
from typing import Protocol

from kite_memory.model.hit import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``note`` is one of the question's candidates, by id (or path, where it has none); ``probability`` 0 to 1."""

    note: str
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Notes that are not among the verdicts would not help. ``anything``: how likely it is that any of them does, 0 to 1.

    ``by_gate`` says that no judge could be had, and that the probabilities are the gate's own.
    """

    verdicts: tuple[Verdict, ...]
    anything: float = 1.0
    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float = 0.0
    by_gate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unjudged:
    """No verdict, and why: over budget, too slow, refused, not understood."""

    reason: str


class Judge(Protocol):
    @property
    def name(self) -> str: ...

    def judge(self, question: Question, *, seconds: float) -> Judged | Unjudged:
        """Takes no longer than about ``seconds``, books what it costs against the day's budget, and never raises for what a
        model or a network does."""
        ...
