"""What recall found, and what it says."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from kite_memory.model.note import Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """``score`` is absolute, 0 to 1, comparable between queries of one embedding space. ``why`` names what spoke for it."""

    note: Note
    score: float
    why: str
    snippet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Would one of these notes help with this prompt? ``candidates`` are at most twenty, best first.

    ``exchange`` is the end of what the agent said last, redacted; ``prompt`` is redacted and bounded. ``head`` is what the
    log may keep of it. ``features`` are the gate's own figures, to be logged with the verdict.
    """

    session: str
    project: str
    prompt: str
    exchange: str
    candidates: tuple[Hit, ...]
    head: str = ""
    features: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """What an agent is pointed at by one line: a note, or a conversation.

    ``id`` is what `kmem show` takes: a note's id (path where it has none), or a conversation's citation. ``title`` is one line.
    ``score`` is the probability that it bears on the prompt, 0 to 1. ``evidence`` are citations of events.
    """

    id: str
    title: str
    date: datetime
    score: float
    is_note: bool = True
    session: str = ""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A conversation's opening line and how it ended. ``text`` is plain and within 200 tokens; ``id`` is its citation."""

    id: str
    text: str
    date: datetime
    score: float
    session: str = ""
    evidence: tuple[str, ...] = ()


class Cards(Protocol):
    """What the timeline adds to the voices. Never raises; bounded in time; nothing forgotten, nothing of ``session`` itself."""

    def near(self, text: str, *, project: str, session: str, limit: int) -> Sequence[Pointer]:
        """Conversations nearest to a prompt, best first, the newer of two before the older."""
        ...

    def opening(self, text: str, *, project: str, session: str) -> tuple[Sequence[Quote], Sequence[Pointer]]:
        """With a session's first prompt: at most two conversations above the project's own bar, and those to be pointed at."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """What a prompt is given: ``block`` is empty when there is nothing to say. ``tokens`` is an estimate from above.

    ``question`` is there where the gate is not sure: a judge may find more.
    """

    block: str
    hits: tuple[Hit, ...]
    reason: str
    tokens: int = 0
    question: Question | None = None
    pointers: tuple[Pointer, ...] = ()
    quotes: tuple[Quote, ...] = ()

    @property
    def silent(self) -> bool:
        return not self.block


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
