"""What a prompt is given: two notes, one, or nothing. Nothing is the usual answer."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from kite_memory.model.hit import Hit
from kite_memory.model.look import Problem
from kite_memory.model.scope import Scope
from kite_memory.recall import lexical, scoring
from kite_memory.recall.index import Index
from kite_memory.recall.search import hits, name
from kite_memory.recall.situation import Situation

_HEAD_LENGTH = 8_000
_TAIL_LENGTH = 2_000
_TELLING_WORDS = 3
_SPARE = 8
"""Candidates more than needed, since some are other sessions' own."""
_COMMAND = re.compile(r"/[A-Za-z][\w:.-]*(?:\s|$)")
_FILLER_WORDS = """
yes yeah yep yup nope ok okay sure right correct exactly agreed great good nice perfect cool fine awesome thanks thank thx please
pls continue go going goes ahead proceed looks look lgtm done next try retry keep let lets sounds sound like want well hmm ah oh hey
hi hello stop wait commit push merge ship one two first second third both option get make
"""
_FILLERS = frozenset(lexical.terms(_FILLER_WORDS))
"""Words that agree, urge or greet. A prompt of nothing else needs no memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """``head`` is what may be kept of the text in the log: its beginning, redacted by the caller.

    ``situation`` is what the session's events say; a session never seen has an empty one.
    """

    text: str
    session: str = ""
    project: str = ""
    head: str = ""
    situation: Situation = field(default_factory=Situation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """What might be said, best first, and from which score on it is. ``silence`` says why there is nothing, if so."""

    candidates: tuple[Hit, ...]
    threshold: float
    silence: str = ""


def weigh(
    index: Index,
    prompt: Prompt,
    *,
    shown: Collection[str],
    now: float,
    limit: int,
    threshold: float | None = None,
    below_too: bool = False,
) -> Weighed:
    """Candidates are notes in force that this session has not been shown; no network is asked for them.

    Those below the threshold are only told of ``below_too``: fetching notes that will not be said is half the work.
    """
    text = bounded(prompt.text)
    if silence := _needless(text):
        return Weighed(candidates=(), threshold=threshold or 0.0, silence=silence)
    signals = index.signals(text)
    columns = signals.columns
    if not len(columns):
        return Weighed(candidates=(), threshold=threshold or 0.0, silence=_empty(signals.problems))
    if threshold is None:
        threshold = scoring.threshold(signals.space, len(columns))
    scores = scoring.fused(signals.cosine, signals.bm25, notes=len(columns), terms=len(signals.terms))
    if prompt.project:
        scores = scores - scoring.handicap(columns, index.project_number(prompt.project))
    mask = scoring.found(columns, now)
    pairs = scoring.succession(columns)
    own = np.where(mask, scores, -np.inf)
    scores = scoring.settled(own, pairs[mask[pairs].all(axis=1)])
    inherited = scores > own
    scores = np.where(scoring.spoken(columns, now), scores, -np.inf)
    best = float(scores.max(initial=-np.inf))
    if not below_too:
        scores = np.where(scores >= threshold, scores, -np.inf)
    enough = limit + len(shown) + _SPARE
    candidates = tuple(
        hit
        for hit in hits(index, signals, scores, inherited=inherited, limit=enough, project=prompt.project)
        if hit.note.scope is not Scope.SESSION or hit.note.session == prompt.session
    )
    fresh = tuple(hit for hit in candidates if name(hit.note) not in shown)[:limit]
    return Weighed(candidates=fresh, threshold=threshold, silence=_silence(candidates, fresh, threshold, best))


def bounded(text: str) -> str:
    """The beginning and the end of what may be a megabyte: a person writes above a paste, or below it."""
    return text if len(text) <= _HEAD_LENGTH + _TAIL_LENGTH else f"{text[:_HEAD_LENGTH]}\n{text[-_TAIL_LENGTH:]}"


def _needless(text: str) -> str:
    """Why this prompt is not worth a look at the vault; empty if it is."""
    bare = text.strip()
    if not bare:
        return "an empty prompt"
    if _COMMAND.match(bare):
        return "a slash command"
    terms = lexical.terms(bare)
    telling = [term for term in terms if term not in _FILLERS]
    if not telling:
        return "a confirmation"
    if len(telling) < _TELLING_WORDS:
        return "too few telling words"
    return ""


def _empty(problems: tuple[Problem, ...]) -> str:
    return problems[0].reason if problems else "nothing in the vault"


def _silence(candidates: tuple[Hit, ...], fresh: tuple[Hit, ...], threshold: float, best: float) -> str:
    """``best`` is the score of the best note that could be said, if any could."""
    if fresh and fresh[0].score >= threshold:
        return ""
    if candidates and candidates[0].score >= threshold:
        return "already shown in this session"
    if best == -np.inf:
        return "nothing in the vault that may be said"
    return f"below threshold: best {max(best, 0.0):.2f} < {threshold:.2f}"
