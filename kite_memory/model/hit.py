"""Results of a recall, what is injected into a prompt, and how a failure was fixed before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from kite_memory.model.note import Note

MEANING_WEIGHT = 0.65
"""Weight of the cosine in a score; words have the rest. Notes and conversations are scored alike, so that they can be compared."""
WORDS_STEEPNESS = 2.0
"""How slowly the score of the words approaches 1."""
FULL_TERMS = 8
"""A query of more terms matches some of them anywhere, so its score counts as if it had no more than these."""
SMALL_COLLECTION = 100
"""With fewer notes or cards, a word's rarity is unreliable; it is estimated between that among them and among this many."""
FOREIGN_PROJECT = 0.10
"""Taken off the score of what belongs to another project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """An earlier occurrence of a failure, and a later success of the same command.

    ``failed`` and ``worked`` are the two command lines. ``steps`` are the commands run between them and ``files`` the files changed
    between them, both in order. ``said`` is what the user wrote after the last of these. ``evidence`` refers to the success, which
    happened at ``at``.
    """

    signature: str
    failed: str
    worked: str
    at: datetime
    evidence: str
    steps: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    said: str = ""


class Fixes(Protocol):
    """Lookup of earlier fixes."""

    def fix(self, *, project: str, session: str, signatures: Sequence[str], command: str) -> Fix | None:
        """Return the latest fix in ``project`` of one of these failures, from a session other than ``session``.

        The failed command must share a purpose with ``command`` (`text.shell.purposes`). Answers in milliseconds, from stored data;
        returns ``None`` if no fix is known.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A note found by recall.

    ``score`` is absolute, 0 to 1, and comparable between queries of one embedding space. ``why`` names the reasons for the match.
    """

    note: Note
    score: float
    why: str
    snippet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Question to a judge: would one of these notes help with this prompt?

    ``candidates`` are at most twenty, best first. ``exchange`` is the end of the agent's last message, redacted; ``prompt`` is
    redacted and bounded. ``head`` is the part of the prompt that may be logged. ``features`` are the gate's figures, logged with
    the verdict.
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
    """One-line pointer to a note or a conversation.

    ``id`` is what `kmem show` takes: a note's id (its path if it has none), or a conversation's citation. ``title`` is one line.
    ``handle`` is a shorter name that `kmem show` takes too, if there is one other than the end of an id. ``score`` is the
    probability that it is relevant to the prompt, 0 to 1. ``evidence`` are citations of events. ``again`` means
    that the session was shown the whole title before.
    """

    id: str
    title: str
    date: datetime
    score: float
    is_note: bool = True
    session: str = ""
    evidence: tuple[str, ...] = ()
    again: bool = False
    handle: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A conversation's first line and how it ended, or a failure and how it went away.

    ``text`` is plain text of at most 200 tokens; ``id`` is the conversation's citation.
    """

    id: str
    text: str
    date: datetime
    score: float
    session: str = ""
    evidence: tuple[str, ...] = ()


class ConversationLookup(Protocol):
    """Search in conversation cards for the prompt hooks.

    Never raises and is bounded in time. Results contain nothing forgotten and nothing of ``session`` itself.
    """

    def near(self, text: str, *, project: str, session: str, least: float) -> Sequence[Pointer]:
        """Return the few conversations that bear on a prompt with a probability of at least ``least``, best first; of two about one
        matter the newer comes first.
        """
        ...

    def answer(self, text: str, *, project: str, session: str, of_the_past: bool) -> Sequence[Quote]:
        """Return how a failure that the prompt quotes went away before, and what was said where it plainly asks ``of_the_past``."""
        ...

    def opening(self, text: str, *, project: str, session: str) -> tuple[Sequence[Quote], Sequence[Pointer]]:
        """Return, for a session's first prompt, at most two quotes above the project's own threshold, and a pointer to the
        nearest other conversation.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """What is injected into a prompt.

    ``block`` is empty if nothing is injected. ``tokens`` is an upper estimate. ``question`` is set if the gate is not sure and a
    judge may find more.
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
    """A judge's verdict on one note.

    ``note`` is the id of one of the question's candidates (its path if it has none); ``probability`` is 0 to 1.
    """

    note: str
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A judge's answer. Candidates without a verdict would not help.

    ``anything`` is the probability that any candidate helps, 0 to 1. ``by_gate`` means that no judge was available and the
    probabilities are the gate's own.
    """

    verdicts: tuple[Verdict, ...]
    anything: float = 1.0
    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float = 0.0
    by_gate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unjudged:
    """No verdict, and the reason: over budget, too slow, refused, or an unreadable answer."""

    reason: str


class Judge(Protocol):
    """A model that judges a `Question`."""

    @property
    def name(self) -> str: ...

    def judge(self, question: Question, *, seconds: float) -> Judged | Unjudged:
        """Answer within about ``seconds`` and count the cost against the day's budget.

        Never raises for errors of a model or a network.
        """
        ...
