"""Selection of what a prompt is given, two notes, one, or usually none, and its delivery.

Notes are claimed for their session, and the occasion is logged, once the reply has arrived.
"""

import math
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import islice
from types import MappingProxyType

import numpy as np

from kite_memory.model.event import Event, EventType, Problem
from kite_memory.model.hit import Hit, Injection, Question
from kite_memory.model.note import Note
from kite_memory.recall import gate, lexical, search
from kite_memory.recall.gate import Dial, Gate
from kite_memory.recall.index import Index, Signals
from kite_memory.recall.lexical import essence
from kite_memory.recall.search import best, hits
from kite_memory.recall.session_memory import Occasion, SessionMemory
from kite_memory.recall.uptake import Tally, habit
from kite_memory.text import lazy_regex


class Delivery:
    """Actions to run once a reply has arrived, or once it is lost. Whichever of the two comes first takes effect; the other does
    nothing.
    """

    def __init__(self) -> None:
        self._arrived: list[Callable[[], object]] = []
        self._lost: list[Callable[[], object]] = []

    def __bool__(self) -> bool:
        """Return whether any action is registered."""
        return bool(self._arrived or self._lost)

    def add_callbacks(self, *, arrived: Callable[[], object] = lambda: None, lost: Callable[[], object] = lambda: None) -> None:
        self._arrived.append(arrived)
        self._lost.append(lost)

    def arrived(self) -> None:
        self._end(self._arrived)

    def lost(self) -> None:
        self._end(self._lost)

    def _end(self, steps: Sequence[Callable[[], object]]) -> None:
        steps = tuple(steps)
        self._arrived.clear()
        self._lost.clear()
        with ExitStack() as each:  # a failing step does not prevent the others
            for step in reversed(steps):
                each.callback(step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a reply is to show. ``claimed`` are the notes that count as shown with it. Without an ``occasion`` nothing is logged."""

    injection: Injection
    occasion: Occasion | None = None
    claimed: tuple[str, ...] = ()


def silence(reason: str) -> Injection:
    return Injection(block="", hits=(), reason=reason)


def deliver(select: Callable[[], Selection], memory: SessionMemory, delivery: Delivery | None = None) -> Injection:
    """Select what to show, claim it for the session and log the occasion, as `give` does. Raises nothing.

    If another reply of the session has claimed one of the notes first, nothing is shown. A prompt is logged nevertheless, since
    silent prompts are counted.
    """
    try:
        selection = select()
        occasion = selection.occasion
        if occasion is None or give(memory, selection.claimed, occasion, delivery):
            return selection.injection
        silent = silence("already shown in this session")
        if occasion.moment == "prompt":
            give(memory, (), replace(occasion, given=(), reason=silent.reason), delivery)
    except sqlite3.Error as error:
        return silence(f"the memory of what was shown cannot be used: {error}")
    return silent


def give(memory: SessionMemory, notes: Sequence[str], occasion: Occasion, delivery: Delivery | None = None) -> bool:
    """Claim the notes for the occasion's session and log it: all of them, or none if another reply has claimed one first.

    With a ``delivery`` this happens once it arrives; until then the notes are reserved. Whatever the occasion gives beyond
    ``notes`` counts as shown by title only and may be shown again.
    """
    session = occasion.session
    if delivery is None:
        if session and notes and not memory.claim(session, notes, occasion.at):
            return False
        memory.log(notes, occasion)
        return True
    if not memory.reserve(session, notes):
        return False
    delivery.add_callbacks(arrived=partial(memory.confirm, notes, occasion), lost=partial(memory.release, session, notes))
    return True


_EXCHANGE = 1_500
_PROMPT = 400
_LINE = 200
_PROMPTS = 3
_NAMES = 12
_AROUND = 2_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """State of a session around a prompt. All texts are redacted, as in the timeline.

    ``exchange`` is the end of the agent's text since the person's last message; ``prompts`` are the person's last ones, newest
    first; ``files`` and ``commands`` are those in use, newest first, and ``errors`` what failed. ``position`` counts the session's
    prompts before this one, and need not be exact beyond the first few.
    """

    exchange: str = ""
    prompts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    position: int = 0

    @property
    def around(self) -> str:
        """Return what surrounds the prompt as one text to search for."""
        names = (path.replace("\\", "/").rpartition("/")[2] for path in self.files)
        parts = (self.exchange, *self.prompts[:1], " ".join(names), *self.commands[:3], *self.errors[:1])
        return "\n".join(filter(None, parts))[:_AROUND]


def situation_of(events: Sequence[Event], prompt: str = "", *, spoken: int = 0) -> Situation:
    """Build a `Situation` from a session's last events, oldest first. If an event is the ``prompt`` itself, it and later events are
    omitted.

    ``spoken`` is the number of the person's messages in the whole session, if known.
    """
    before = list(events)
    if prompt and (last := _last_prompt(before)) >= 0 and before[last].text.strip() == prompt.strip():
        del before[last:]
        spoken -= 1
    prompts: dict[str, None] = {}
    files: dict[str, None] = {}
    commands: dict[str, None] = {}
    errors: dict[str, None] = {}
    said: list[str] = []
    position = length = 0
    for event in reversed(before):
        if event.type is EventType.USER_MESSAGE and event.role == "user":
            prompts[event.text[:_PROMPT]] = None
            position += 1
        elif event.type is EventType.ASSISTANT_MESSAGE and not position and length < _EXCHANGE:
            said.append(event.text[-_EXCHANGE:])
            length += len(said[-1])
        if event.path:
            files[event.path] = None
        if event.command:
            commands[event.command[:_LINE]] = None
        if event.status == "failed" or event.type is EventType.ERROR:
            errors[event.text[:_LINE]] = None
    return Situation(
        exchange="\n".join(reversed(said))[-_EXCHANGE:],
        prompts=tuple(islice(prompts, _PROMPTS)),
        files=tuple(islice(files, _NAMES)),
        commands=tuple(islice(commands, _NAMES)),
        errors=tuple(islice(errors, _PROMPTS)),
        position=max(position, spoken),
    )


def _last_prompt(events: Sequence[Event]) -> int:
    return next((at for at in range(len(events) - 1, -1, -1) if events[at].type is EventType.USER_MESSAGE), -1)


CANDIDATES = 20
POINTED = 12
_FAINT = 0.25
"""A note that shares no word with a prompt and is less similar than this in meaning is unrelated to it."""
_NEAR, _STEEP = 0.10, 2.9
"""Without a gate, the distance below the threshold at which a note is still offered as a pointer, and the steepness that makes a
probability of its score.
"""
_HEAD_LENGTH = 8_000
_TAIL_LENGTH = 2_000
_TELLING_WORDS = 2
_SPARE = 8
"""Extra candidates, since some belong to other sessions and are dropped."""
_SEEN = 200
"""The most shown notes for which extra candidates are fetched. In a session that was shown more, some may be missed."""
_COMMAND = lazy_regex(r"/[A-Za-z][\w:.-]*(?:\s|$)")
_FILLER_WORDS = """
yes yeah yep yup nope ok okay sure right correct exactly agreed great good nice perfect cool fine awesome thanks thank thx please
pls continue go going goes ahead proceed looks look lgtm done next try retry keep let lets sounds sound like want well hmm ah oh hey
hi hello stop wait one two first second third both option get make
"""
_FILLERS = frozenset(lexical.terms(_FILLER_WORDS))
"""Words that agree, urge or greet. A prompt of only these needs no recall."""
_DRIFTED = -2.0
"""Penalty for a note whose files have changed since: twice that of a note that is never used, since it is mostly outdated."""
_NO_TALLIES: Mapping[str, Tally] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt to find notes for. ``head`` is the part of the text that may be logged: its beginning, redacted by the caller.

    ``situation`` comes from the session's events and is empty for an unknown session. ``tokens`` is what is left of the turn's
    budget, if something was shown already. ``branch`` is the branch the session works on: notes of other branches, not merged yet,
    are left out. Where the project is unknown, notes of all are considered, or with ``project_only`` those of no project.
    """

    text: str
    session: str = ""
    project: str = ""
    head: str = ""
    situation: Situation = field(default_factory=Situation)
    tokens: int | None = None
    branch: str = ""
    project_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Conditions that a note must meet to be shown.

    A ``threshold`` is set by the user and compared with the plain score. Otherwise the ``gate`` decides, at its ``dial``, if it was
    fitted for the embedder's space. ``judged`` leaves notes that are merely likely to a judge.
    """

    gate: Gate = field(default_factory=gate.shipped)
    dial: Dial = "normal"
    threshold: float | None = None
    judged: bool = False

    @property
    def likely(self) -> float:
        """Probability from which a note is worth showing if no judge decides."""
        return self.gate.thresholds[self.dial]

    @property
    def readiness(self) -> float:
        """By how much the dial divides the odds of a note that is worth showing; 1 where it is normal."""
        normal = self.gate.thresholds["normal"]
        return normal / (1 - normal) * (1 - self.likely) / self.likely

    @property
    def probability(self) -> float:
        """Probability from which a note is shown at once."""
        return max(self.gate.thresholds["quiet"], self.likely) if self.judged else self.likely


class Needless(StrEnum):
    """Why a prompt needs no recall. A ``TERSE`` one, such as «commit», may get a pointer but no whole note."""

    EMPTY = "an empty prompt"
    COMMAND = "a slash command"
    CONFIRMATION = "a confirmation"
    TERSE = "too few telling words"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """Candidates for a prompt, best first; the first ``chosen`` are to be shown. ``silence`` says why nothing is shown, with
    ``needless`` if the prompt itself is why.

    Scores and ``threshold`` are probabilities if the gate was used; ``figures`` are then its inputs for each candidate, and
    ``parts`` what each input added, as in `Gate.parts`. ``question`` is for a judge, if the gate is in doubt. ``near`` are the
    likeliest notes with their probabilities, whether or not the session was shown their titles: a prompt may get pointers to them.
    ``notes`` is the number of notes of the project, or of all if it is unknown.
    """

    candidates: tuple[Hit, ...]
    threshold: float
    chosen: int = 0
    silence: str = ""
    needless: Needless | None = None
    question: Question | None = None
    figures: tuple[tuple[float, ...], ...] = ()
    parts: tuple[Mapping[str, float], ...] = ()
    near: tuple[Hit, ...] = ()
    notes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """A prompt, how near the notes are to it, and what is wanted of them.

    ``inherited`` marks notes with the score of one they replace, ``project`` is the number of the prompt's project. Notes in
    ``shown`` are left out; ``explain_all`` also returns candidates that will not be shown.
    """

    index: Index
    prompt: Prompt
    signals: Signals
    scores: search.Scores
    inherited: search.Mask
    project: int | None
    shown: Collection[str]
    limit: int
    explain_all: bool

    def hits(self, scores: search.Scores, limit: int) -> tuple[Hit, ...]:
        return hits(self.index, self.signals, scores, inherited=self.inherited, limit=limit, project=self.prompt.project)


def weigh(
    index: Index,
    prompt: Prompt,
    requirement: Requirement,
    *,
    shown: Collection[str],
    now: float,
    limit: int,
    tallies: Mapping[str, Tally] = _NO_TALLIES,
    explain_all: bool = False,
) -> Weighed:
    """Weigh the notes in force that this session has not been shown. Uses no network.

    Candidates that will not be shown are returned only with ``explain_all``: finding the words that match in them is half the work.
    """
    text = bounded(prompt.text)
    needless = why_needless(text)
    if needless not in (None, Needless.TERSE):
        return Weighed(candidates=(), threshold=0.0, silence=needless.value, needless=needless)
    # The fitted gate gives surroundings no weight: they are searched only if every figure is returned or logged.
    around = prompt.situation.around if explain_all or requirement.judged or requirement.gate.weights.get("around") else ""
    signals = index.signals(essence(text), around=around, project=prompt.project)
    if not len(signals.columns):
        return Weighed(candidates=(), threshold=0.0, silence=_empty(signals.problems))
    number = index.project_number(prompt.project) if prompt.project or prompt.project_only else None
    holding = search.holding(index, signals.columns, project=number, branch=prompt.branch, session=prompt.session)
    scores, inherited = _scored(signals, number, holding, now)
    if not (scores > -np.inf).any():
        return Weighed(candidates=(), threshold=0.0, silence="nothing in the vault that may be said")
    searched = _Search(
        index=index,
        prompt=prompt,
        signals=signals,
        scores=scores,
        inherited=inherited,
        project=number,
        shown=shown,
        limit=limit,
        explain_all=explain_all,
    )
    if requirement.threshold is None and requirement.gate.fits(signals.space):
        weighed = _by_gate(searched, requirement, tallies)
    else:
        weighed = _by_score(
            searched,
            search.threshold(signals.space, len(signals.columns)) if requirement.threshold is None else requirement.threshold,
        )
    return replace(weighed, chosen=0, silence=needless.value, needless=needless, question=None) if needless else weighed


def _scored(signals: Signals, project: int | None, holding: search.Mask, now: float) -> tuple[search.Scores, search.Mask]:
    """Return each eligible note's score, and a mask of notes that inherited their score from a note they replace.

    Notes outside ``holding`` are not eligible: they would take the places of those that may be shown.
    """
    columns = signals.columns
    scores = search.for_a_prompt(signals)
    if project is not None:
        scores = scores - search.handicap(columns, project)
    mask = search.found(columns, now)
    pairs = search.in_force(columns, search.succession(columns), now, holding)
    own = np.where(mask, scores, -np.inf)
    scores = search.settled(own, pairs[mask[pairs].all(axis=1)])
    return np.where(search.spoken(columns, now, holding) & holding, scores, -np.inf), scores > own


def _by_score(searched: _Search, threshold: float) -> Weighed:
    scores, explain_all, limit = searched.scores, searched.explain_all, searched.limit
    highest = float(scores.max())
    if not explain_all:
        scores = np.where(scores >= threshold - _NEAR, scores, -np.inf)
    enough = (CANDIDATES if explain_all else limit) + min(len(searched.shown), _SEEN) + _SPARE
    candidates = searched.hits(scores, enough)
    fresh = tuple(hit for hit in candidates if hit.note.name not in searched.shown)[: CANDIDATES if explain_all else limit]
    chosen = sum(hit.score >= threshold for hit in fresh[:limit])
    silence = ""
    if not chosen and candidates and candidates[0].score >= threshold:
        silence = "already shown in this session"
    elif not chosen:
        silence = f"below threshold: best {max(highest, 0.0):.2f} < {threshold:.2f}"
    near = tuple(
        replace(hit, score=1 / (1 + math.exp((threshold - hit.score) / _NEAR * _STEEP)))
        for hit in fresh[:POINTED]
        if hit.score >= threshold - _NEAR
    )
    notes = len(searched.signals.columns)
    return Weighed(candidates=fresh, threshold=threshold, chosen=chosen, silence=silence, near=near, notes=notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Estimates:
    """The gate's candidates in the order of their rows, with its inputs and its probability for each.

    ``order`` are the places of those that the session has not been shown, likeliest first. ``terms`` is the number of the prompt's
    terms, ``notes`` that of the notes of the project, or of all if it is unknown.
    """

    candidates: Sequence[gate.Candidate]
    rows: search.Rows
    figures: gate.Figures
    habits: Sequence[float]
    probabilities: gate.Figures
    order: Sequence[int]
    terms: int
    notes: int


def _by_gate(searched: _Search, requirement: Requirement, tallies: Mapping[str, Tally]) -> Weighed:
    estimates = _estimates(searched, requirement.gate, tallies)
    candidates, figures, probabilities, order = estimates.candidates, estimates.figures, estimates.probabilities, estimates.order
    sure = [place for place in order[: searched.limit] if probabilities[place] >= requirement.probability]
    if len(sure) > 1 and probabilities[sure[1]] < min(1.0, requirement.probability * requirement.gate.second):
        sure = sure[:1]
    wanted = order[:CANDIDATES] if searched.explain_all else sure
    by_row = np.full(len(searched.signals.columns), -np.inf)
    by_row[estimates.rows[wanted]] = probabilities[wanted]
    found = searched.hits(by_row, len(wanted)) if wanted else ()
    placed = {candidates[place].note.name: place for place in wanted}
    places = [placed[hit.note.name] for hit in found]
    silence = ""
    if not sure and (np.delete(probabilities, order) >= requirement.probability).any():
        silence = "already shown in this session"
    elif not sure:
        silence = f"below threshold: best {probabilities.max(initial=0.0):.2f} < {requirement.probability:.2f}"
    highest = float(probabilities[order[0]]) if order else 0.0
    asks = requirement.judged and not sure and highest >= requirement.gate.doubt
    return Weighed(
        candidates=found,
        threshold=requirement.probability,
        chosen=len(sure),
        silence=silence,
        question=_question(searched.prompt, estimates) if asks else None,
        figures=tuple(tuple(figures[place].tolist()) for place in places),
        parts=tuple(requirement.gate.parts(figures[place].tolist(), estimates.habits[place]) for place in places),
        near=tuple(
            Hit(note=candidates[place].note, score=float(probabilities[place]), why="")
            for place in order[:POINTED]
            if candidates[place].words > 0 or (estimates.terms >= _TELLING_WORDS and candidates[place].meaning >= _FAINT)
        ),
        notes=estimates.notes,
    )


def _estimates(searched: _Search, fitted: Gate, tallies: Mapping[str, Tally]) -> _Estimates:
    columns, project, prompt = searched.signals.columns, searched.project, searched.prompt
    near = len(columns) if project is None else int(search.within(columns, project).sum())
    seen = min(len(searched.shown), _SEEN)
    rows = best(searched.scores, columns.notes["created"], CANDIDATES + _SPARE + seen)
    notes = searched.index.notes(columns.notes["number"][rows].tolist())
    names: dict[str, int] = {}
    for row in rows.tolist():
        note = notes.get(int(columns.notes["number"][row]))
        if note is not None:
            names.setdefault(note.name, row)
    rows = np.array(list(names.values())[: CANDIDATES + seen], np.intp)
    candidates = _candidates(searched, rows, notes, near)
    terms = len(lexical.terms(essence(prompt.text)))
    figures = gate.figures(prompt.text, terms, prompt.situation.position, candidates)
    habits = [habit(tally) if (tally := tallies.get(each.note.name)) else 0.0 for each in candidates]
    habits = [one + _DRIFTED * (each.note.drifted is not None) for one, each in zip(habits, candidates, strict=True)]
    probabilities = fitted.probabilities(figures, habits)
    fresh = [place for place, each in enumerate(candidates) if each.note.name not in searched.shown]
    return _Estimates(
        candidates=candidates,
        rows=rows,
        figures=figures,
        habits=habits,
        probabilities=probabilities,
        order=sorted(fresh, key=lambda place: (-probabilities[place], -columns.notes["created"][rows[place]])),
        terms=terms,
        notes=near,
    )


def _question(prompt: Prompt, estimates: _Estimates) -> Question:
    return Question(
        session=prompt.session,
        project=prompt.project,
        prompt=prompt.text,
        exchange=prompt.situation.exchange,
        candidates=tuple(
            Hit(note=estimates.candidates[place].note, score=round(float(estimates.probabilities[place]), 4), why="")
            for place in estimates.order[:CANDIDATES]
        ),
        head=prompt.head,
        features=tuple(estimates.figures[estimates.order[0]].tolist()),
    )


def _candidates(searched: _Search, rows: search.Rows, notes: Mapping[int, Note], near: int) -> list[gate.Candidate]:
    """Build the gate's candidates. Scores are adjusted for vault size, since a score means less in a larger vault."""
    index, signals = searched.index, searched.signals
    columns = signals.columns
    numbers = columns.notes["number"][rows].tolist()
    fits = index.in_names(signals.terms, numbers)
    covered = index.covered(signals.terms, [notes[number] for number in numbers])
    parts = np.array([fits.get(number, (0.0, 0.0)) for number in numbers]).reshape(-1, 2)
    parts = search.words_score(parts, notes=len(columns), terms=len(signals.terms))
    words = search.words_score(signals.bm25[rows], notes=len(columns), terms=len(signals.terms))
    around = search.words_score(signals.around[rows], notes=len(columns), terms=signals.around_terms)
    crowd = search.crowd(near)
    return [
        gate.Candidate(
            note=notes[number],
            score=float(searched.scores[row]) - crowd,
            meaning=max(0.0, float(signals.cosine[row])),
            words=float(words[place]),
            around=float(around[place]),
            title=float(parts[place, 0]),
            named=float(parts[place, 1]),
            covered=covered[place],
        )
        for place, (row, number) in enumerate(zip(rows.tolist(), numbers, strict=True))
    ]


def bounded(text: str) -> str:
    """Return the beginning and the end of a long text: a person writes above a paste, or below it."""
    return text if len(text) <= _HEAD_LENGTH + _TAIL_LENGTH else f"{text[:_HEAD_LENGTH]}\n{text[-_TAIL_LENGTH:]}"


def why_needless(text: str) -> Needless | None:
    """Return why this prompt, `bounded`, needs no recall; ``None`` if it does."""
    bare = text.strip()
    if not bare:
        return Needless.EMPTY
    if _COMMAND.match(bare):
        return Needless.COMMAND
    telling = [term for term in lexical.terms(bare) if term not in _FILLERS]
    if not telling:
        return Needless.CONFIRMATION
    return Needless.TERSE if len(telling) < _TELLING_WORDS else None


def _empty(problems: tuple[Problem, ...]) -> str:
    return problems[0].reason if problems else "nothing in the vault"
