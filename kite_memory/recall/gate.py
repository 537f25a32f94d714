"""Gate: the probability that showing a note helps with this prompt, computed from a few readable figures.

The weights are fitted by `bench/recall/fit_gate.py` on labelled prompts and stored next to this file as data, with their date. They
are valid for one embedding space. The thresholds are chosen on prompts that need no note, since showing one is the exception.
"""

import json
import math
import re
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from kite_memory.errors import StateDamaged
from kite_memory.model.hit import Judged, Question
from kite_memory.model.note import Note, NoteKind
from kite_memory.recall.embedder import Space
from kite_memory.text import lazy_regex
from kite_memory.text.quoting import mended

Dial = Literal["quiet", "normal", "eager"]
Figures = npt.NDArray[np.float64]

FEATURES = (
    "score",
    "margin",
    "rank",
    "meaning",
    "words",
    "around",
    "title",
    "named",
    "covered",
    "importance",
    "decision asked about",
    "preference",
    "preference and instruction",
    "rite",
    "rite preferred",
    "failure explained",
    "confirmation",
    "question",
    "short",
    "paste",
    "first",
)
"""Names of the columns of the figures, also used in the fitted weights."""

_FILE = Path(__file__).resolve().parent / "weights" / "gate.json"
_CONSIDERED = 8
"""Number of candidates compared with one another; the margin is measured from the last of them."""
_BYSTANDER = 0.26
"""Average score of the eighth candidate in the labelled sessions."""
_ENOUGH = 20
"""Number of candidates in any vault that is not small. With fewer, every note is a candidate however unrelated, so the eighth is no
reference (a vault's only note would have no margin), and the average is used instead.
"""
_HABIT = 0.5
"""Weight in the logit of a note's habit of being used, -1 to 1. It is low because few showings prove little."""
_FIRST = 2
_SHORT = 5
_OPENING = 300
_PASTED_LINES = 7

_ROUTINE_STEPS = {
    form: step
    for step, forms in {
        "commit": "commit commits committed committing",
        "push": "push pushing pushed force-push",
        "pull request": "pr prs pull-request pull-requests",
        "merge": "merge merged merging",
        "rebase": "rebase rebased rebasing squash",
        "review": "review reviews reviewer reviewing",
        "test": "test tests testing tested",
        "lint": "lint linter linting fmt format formatting",
        "branch": "branch branches worktree worktrees",
        "document": "docs doc readme documentation",
        "plan": "plan design spec brainstorm",
        "release": "release tag version publish deploy",
        "issue": "issue issues ticket tickets",
    }.items()
    for form in forms.split()
}
"""Steps of work that people have habits about in any project."""
_WORD = lazy_regex(r"[a-z][a-z-]*")
_CONFIRMS = lazy_regex(
    r"\s*(yes|yeah|yep|ok|okay|sure|do it|go|let'?s|commit|push|please|continue|perfect|great|nice|sounds good)\b", re.IGNORECASE
)
_INSTRUCTS = lazy_regex(
    r"\s*(?:(?:ok|okay|yes|yeah|great|now|then|and|so|let'?s|can you|could you|please|also)\b[\s,!.:-]*)*"
    r"(commit|push|create|open|make|add|write|review|run|fix|merge|rebase|reply|respond|log|draft|test|update|rename|implement"
    r"|start|check|give|deploy|release)\b",
    re.IGNORECASE,
)
_FAILS = lazy_regex(
    r"\b(error|failed|failing|fails|panic|fatal|denied|timeout|timed out|exception|traceback)\b|✗|\b[45]\d\d\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One of the best notes for a prompt, with its scores.

    ``title`` and ``named`` are word scores of those parts alone; ``covered`` is the share of both that the prompt contains, 0 to 1.
    """

    note: Note
    score: float
    meaning: float = 0.0
    words: float = 0.0
    around: float = 0.0
    title: float = 0.0
    named: float = 0.0
    covered: float = 0.0


def figures(text: str, terms: int, position: int, candidates: Sequence[Candidate]) -> Figures:
    """Return one row for each candidate, best first, in the columns of `FEATURES`.

    ``terms`` counts the significant words of the prompt ``text``, ``position`` the session's prompts before it.
    """
    opening = text[:_OPENING]
    rites = _routine_words(opening)
    instructs = bool(_INSTRUCTS.match(opening))
    fails = bool(_FAILS.search(text[:4_000]))
    question = "?" in text[:400]
    prompt = (
        bool(_CONFIRMS.match(opening)),
        question,
        terms < _SHORT,
        text.count("\n") >= _PASTED_LINES,
        position < _FIRST,
    )
    least = candidates[_CONSIDERED - 1].score if len(candidates) >= _ENOUGH else _BYSTANDER
    rows = []
    for rank, each in enumerate(candidates):
        kind = each.note.kind
        preferred = kind is NoteKind.PREFERENCE
        theirs = _routine_words(each.note.title)
        step = len(theirs & rites) / len(theirs) if theirs else 0.0
        rows.append(
            (
                each.score,
                each.score - least,
                min(rank, _CONSIDERED),
                each.meaning,
                each.words,
                each.around,
                each.title,
                each.named,
                each.covered,
                each.note.importance,
                question and kind is NoteKind.DECISION,
                preferred,
                preferred and instructs,
                step,
                step * preferred,
                fails and kind in (NoteKind.INSIGHT, NoteKind.FACT),
                *prompt,
            )
        )
    return np.array(rows, np.float64).reshape(-1, len(FEATURES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Fitted gate. ``thresholds`` are probabilities by dial; a second note's must be ``second`` times the threshold. Below
    ``doubt`` no judge is asked.

    ``space`` is the name of the embedding space it was fitted for.
    """

    fitted: str
    space: str
    weights: Mapping[str, float]
    bias: float
    thresholds: Mapping[Dial, float]
    second: float
    doubt: float

    def probabilities(self, rows: Figures, habits: Sequence[float] = ()) -> Figures:
        """Return the probability that each candidate helps. ``habits`` are -1 to 1, as `uptake.habit` returns."""
        logits = rows @ np.array([self.weights.get(name, 0.0) for name in FEATURES]) + self.bias
        if len(habits):
            logits = logits + _HABIT * np.asarray(habits)
        return np.asarray(1 / (1 + np.exp(-logits)))

    def parts(self, row: Sequence[float], habit: float = 0.0) -> dict[str, float]:
        """Return what each figure of a row adds to the logit, with the bias: their sum is the logit of the probability."""
        weighted = {name: value * self.weights[name] for name, value in zip(FEATURES, row, strict=True) if name in self.weights}
        return {**weighted, "habit": _HABIT * habit, "bias": self.bias}

    def fits(self, space: Space) -> bool:
        return self.space == space.name


def logit(probability: float) -> float:
    return math.log(probability / (1 - probability))


@cache
def shipped() -> Gate:
    return read(_FILE)


def read(file: Path) -> Gate:
    """Read a fitted gate. Raises `StateDamaged` if the file cannot be read or is not valid."""
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
        weights = {str(name): float(weight) for name, weight in dict(held["weights"]).items()}
        if unknown := set(weights) - set(FEATURES):
            raise ValueError(f"unknown figures: {', '.join(sorted(unknown))}")
        return Gate(
            fitted=str(held["fitted"]),
            space=str(held["space"]),
            weights=weights,
            bias=float(held["bias"]),
            thresholds={dial: float(held["thresholds"][dial]) for dial in get_args(Dial)},
            second=float(held["second"]),
            doubt=float(held["doubt"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateDamaged(f"the gate's weights cannot be read: {error}", hint="install kite-memory again") from error


def _routine_words(text: str) -> set[str]:
    return {_ROUTINE_STEPS[word] for word in _WORD.findall(text.lower()) if word in _ROUTINE_STEPS}


LEAST = 50
"""With fewer verdicts than this the shipped gate is used unchanged."""
_PRIOR = 25.0
"""Weight of the shipped bias, in verdicts, measured by the curvature of their loss."""
_FURTHEST = 1.5
_STEPS = 20


def personal(gate: Gate, rulings: "Sequence[LoggedVerdict]") -> Gate:
    """Return the gate with its bias moved, by at most 1.5 in the logit, to fit the verdicts on its first candidates.

    The weights stay: a person's verdicts are too few, and all of them from the gate's own doubtful cases, to fit more than one
    number.
    """
    seen = [each for each in rulings if len(each.features) == len(FEATURES) and each.notes]
    if len(seen) < LEAST:
        return gate
    rows = np.array([each.features for each in seen])
    logits = np.array([logit(float(likely)) for likely in gate.probabilities(rows)])
    first = [max(each.notes, key=lambda ruled: ruled.score) for each in seen]
    helped = np.array([min(each.anything, best.probability) for each, best in zip(seen, first, strict=True)])
    shift = 0.0
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(-(logits + shift)))
        slope = float((likely - helped).sum()) + _PRIOR * shift
        step = slope / (float((likely * (1 - likely)).sum()) + _PRIOR)
        shift -= math.copysign(min(abs(step), 1.0), step)  # a full step from far away would overshoot
        if abs(step) < 1e-6:
            break
    return replace(gate, bias=gate.bias + math.copysign(min(abs(shift), _FURTHEST), shift))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCandidate:
    """One candidate of a question: its score, and the judge's probability that it helps."""

    note: str
    score: float
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedVerdict:
    """A judge's logged verdict. ``anything`` is its probability that any of the notes helps."""

    at: datetime
    session: str
    project: str
    features: tuple[float, ...]
    anything: float
    notes: tuple[JudgedCandidate, ...]


class VerdictLog:
    """The verdicts of judges, for fitting the gate to this person. ``changing`` begins a transaction."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        lock: threading.Lock,
        changing: Callable[[], AbstractContextManager[sqlite3.Connection]],
    ) -> None:
        self._connection = connection
        self._lock = lock
        self._changing = changing

    def log(self, question: Question, judged: Judged, at: datetime) -> None:
        """Log a judge's verdicts. The question's text is not kept."""
        found = {verdict.note: verdict.probability for verdict in judged.verdicts}
        names = [hit.note.name for hit in question.candidates]
        notes = [[name, hit.score, found.get(name, 0.0)] for name, hit in zip(names, question.candidates, strict=True)]
        with self._changing() as connection:
            connection.execute(
                "INSERT INTO ruling(at, session, project, features, notes, anything, tokens_in, tokens_out, dollars)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    at.timestamp(),
                    mended(question.session),
                    mended(question.project),
                    json.dumps(question.features),
                    mended(json.dumps(notes)),
                    judged.anything,
                    judged.tokens_in,
                    judged.tokens_out,
                    judged.dollars,
                ),
            )

    def since(self, start: datetime) -> tuple[LoggedVerdict, ...]:
        """Return the verdicts logged since then, oldest first."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT at, session, project, features, anything, notes FROM ruling WHERE at >= ? ORDER BY number",
                (start.timestamp(),),
            ).fetchall()
        return tuple(
            LoggedVerdict(
                at=datetime.fromtimestamp(at, UTC),
                session=session,
                project=project,
                features=tuple(json.loads(features)),
                anything=anything,
                notes=tuple(
                    JudgedCandidate(note=note, score=score, probability=probable) for note, score, probable in json.loads(notes)
                ),
            )
            for at, session, project, features, anything, notes in rows
        )
