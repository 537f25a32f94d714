"""Titles in place of notes: the list that a session is shown as it starts, and pointers beside a prompt's answer.

A note is represented by its title, if that is understandable alone, or else by its first sentence that is.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np
import numpy.typing as npt

from kite_memory.model.event import EvidenceReference
from kite_memory.model.hit import Hit, Pointer
from kite_memory.model.note import SPOKEN_KINDS, Note, NoteKind, SimilarNote, Surroundings
from kite_memory.recall import search
from kite_memory.recall.cautions import Caution, concerns, read
from kite_memory.recall.index import Index
from kite_memory.recall.lexical import terms
from kite_memory.recall.prose import prose
from kite_memory.recall.rendering import shortened
from kite_memory.recall.search import best
from kite_memory.text import lazy_regex
from kite_memory.text.quoting import plain_line, quoted
from kite_memory.text.shell import Invocation, invocations

_LONGEST = 90
_TITLE_LOOKED_AT = 2_000
_LEAST_WORDS = 4
_WORD = lazy_regex(r"[^\W\d_][\w'’-]*")
_CODE = lazy_regex(r"`[^`]*`|\S*[/\\(){}=<>]\S*|\b\w+(?:[._]\w+)+\b|\b[a-z]+[A-Z]\w*\b|\b[A-Z]\w*[a-z][A-Z]\w*\b")
_REFERS_BACK = lazy_regex(
    r"(?:this|that|these|those|it|its|it's|they|he|she|there|there's|here|here's|also|instead|same|and|but|so"
    r"|because|then|otherwise"
    r"|(?:the|a) (?:above|former|latter|same|remaining|other|following|last|next|second) \w+|as (?:above|before|discussed|said))\b"
    r"|\(?[A-Za-z0-9]\)|[-–—:,;.]",
    re.IGNORECASE,
)
_HANGS = lazy_regex(
    r"(?:\b(?:a|an|the|and|or|but|of|to|in|on|at|by|for|from|with|into|as|than|that|which|who|where|when|if|because"
    r"|is|are|was|be|not)"
    r"|[,:;(–—-])\s*$",
    re.IGNORECASE,
)
_SENTENCE = lazy_regex(r"[^\n]+?(?:[.!?。！？](?=\s|$)|$)", re.MULTILINE)
_STATE = lazy_regex(
    r"\b(?:(?:is|are|still|currently|now) (?:\w+ )?(?:failing|broken|red|down|blocked|pending|missing|unfinished|in progress|flaky"
    r"|wip|stuck|open|unmerged|disabled)|currently|right now|at the moment|so far|not yet|for now|in progress|wip|todo)\b",
    re.IGNORECASE,
)
_STATES_HOLD = timedelta(days=14)


def title_line(note: Note) -> str:
    """Return the line of a note. Empty if it has none; such a note gets no pointer."""
    title = " ".join(note.title.split())
    if not says_something(title):
        sentences = (" ".join(each.split()) for each in _SENTENCE.findall(prose(note.body[:_TITLE_LOOKED_AT])))
        title = next(filter(says_something, sentences), "")
    said = shortened(quoted(title), tokens=_LONGEST, characters=_LONGEST)
    return plain_line(said.rstrip("."), _LONGEST + 2)


def says_something(text: str) -> bool:
    """Return whether the text is a statement that is understandable alone: no mere name, no reference to earlier text, no
    unfinished sentence.
    """
    if _REFERS_BACK.match(text) or _HANGS.search(text):
        return False
    return len(_WORD.findall(text)) >= _LEAST_WORDS and len(_WORD.findall(_CODE.sub(" ", text))) >= _LEAST_WORDS - 2


def describes_a_state(note: Note) -> bool:
    """Return whether the note describes a temporary state, which may have changed since."""
    return note.kind in (NoteKind.FACT, NoteKind.INSIGHT, NoteKind.QUESTION) and _STATE.search(note.title) is not None


def is_past(note: Note, now: datetime) -> bool:
    """Return whether the note describes a state that is too old to be shown as current: more than fourteen days."""
    return describes_a_state(note) and now - note.created > _STATES_HOLD


MOST_POINTERS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerThresholds:
    """Conditions that a pointer must meet. `bench.recall.fit_gate --pointing` measures them on projects they were not chosen on."""

    opens: float = 0.05
    """Probability that the likeliest note needs before any pointer to a note is shown."""
    least: float = 0.03
    """Probability that each further note needs; lower, since the frame of the block costs as much as a line."""
    rise: float = 1.054
    """Factor by which the thresholds grow with each pointer that the session was given for a prompt.

    So a long session is not given many more than a short one, even in a project whose probabilities are all too high.
    """
    share: float = 0.25
    """Share of the likeliest note's probability that each further note needs."""
    listed: float = 0.04
    """Score recorded for a line of the list at a session's start. It was chosen for no prompt, so one may point to it again."""
    talk: float = 0.08
    """Probability that a conversation needs. One is shown only if no note is likely enough: its line costs twice as much and is
    right half as often.
    """


POINTER_THRESHOLDS = PointerThresholds()
_DOUBLE = 2.0
_CLEAR = 0.10
_AHEAD = 1.5
_FEW, MANY, _STANDS_OUT = 10, 25, 2.0
"""With fewer notes than ``MANY`` the thresholds are lower, in proportion, for a note twice as likely as the next: of few notes each
is likelier to be the right one, and the probability was fitted on vaults of about a hundred.
"""
_ASKS = 0.5
"""Factor of the thresholds for a plain question about the past."""
_SAID_TITLE, _SAID_BODY = 0.85, 0.6
_LOOKED_AT = 1_200
_ASKED = 700
_PAST = lazy_regex(
    r"\bwhy (?:did|do|does|are|is|was|were|have|had|don't|didn't|aren't|isn't|can't|won't) (?:we|i|it|the|our|this|that)\b"
    r"|\bwhy \S+(?: \S+){0,3} (?:rather than|instead of|over|and not)\b"
    r"|\bremind me\b|\blast time\b"
    r"|\b(?:what|which)(?: [\w-]+){0,4} (?:did|do|does|have|had|should) (?:we|i|the|our)\b|\bwhy not\b"
    r"|\b(?:did|have|had) (?:we|i) (?:\w+ )?(?:decid|agre|settl|tr(?:y|ied)|discuss|already|fix|talk|run into|hit|choos|pick)\w*"
    r"|\bwhere (?:is|are|does|do|did|was|were) (?:the|our|we|i)\b|\bhow did we\b"
    r"|\bwhat was (?:the|our) (?:reason|decision|plan|problem|fix|issue|conclusion)"
    r"|\b(?:as )?we (?:decided|agreed|settled on|chose|discussed)\b|\bdo you (?:remember|recall)\b",
    re.IGNORECASE,
)


def asks_of_the_past(text: str) -> bool:
    """Return whether the prompt plainly asks what was decided, found out or agreed before."""
    return _PAST.search(" ".join(text[:_ASKED].split())) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAsked:
    """What a question about the work itself asks for: what was done last, what is left, or a period's work.

    ``period`` is its beginning and its end, in the person's own time.
    """

    what: Literal["last", "left", "period"]
    period: tuple[datetime, datetime] | None = None


_LONGEST_QUESTION = 160
_WE = r"(?:we|i|you|wir|ich|du|on|nous)"
_HERE = (
    r"(?: (?:here|together|with (?:you|claude|codex)|(?:on|in|with|for) (?:this|the)(?: project| repo(?:sitory)?| branch| code)?"
    r"|hier|(?:in|an) (?:diesem|dem) (?:projekt|repo|branch)|ici|(?:dans|sur) ce (?:projet|dépôt)|aquí|en este (?:proyecto|repo)))?"
)
_POLITE = (
    r"(?:(?:hi|hey|hello|ok(?:ay)?|so|and|good morning|morning|please|claude|codex|hallo|guten morgen|bitte|also|na"
    r"|bonjour|salut|alors"
    r"|hola|buenos días|bueno)[,!.]? )*"
    r"(?:(?:(?:can|could|would) you |please )*(?:tell me|remind me|do you (?:know|remember)|show me)(?: again)? "
    r"|(?:kannst du mir sagen|sag mir|erinnere mich|weißt du(?: noch)?),? |(?:rappelle-moi|dis-moi) |recuérdame )?"
)
_PLEASE = r"(?:,? (?:again|please|actually|bitte|nochmal|eigentlich|denn|s['’]il te plaît|por favor))*"
_LAST_WORK = (
    rf"what(?:['’]?s| is| was| were) the (?:very )?last (?:things?|tasks?|work|topic)(?: that)?(?: {_WE} (?:did|have done|had done"
    rf"|worked on|were (?:doing|working on)))?|what (?:did|have|had) {_WE} (?:do|done|work(?:ed)? on)(?: last(?: time)?| before|"
    rf" previously| (?:in )?(?:the )?last session)|what (?:was|were) {_WE} (?:doing|working on|up to)(?: last(?: time)?| before)?"
    rf"|where (?:did|do|had|have) {_WE} (?:stop(?:ped)?|leave off|left off|leave (?:it|things)|get to)(?: last time)?"
    rf"|where (?:was|were|are|am) {_WE}(?: at| now| up to| again)?|what happened (?:here )?last (?:time|session)"
    rf"|(?:where|what) {_WE} (?:left off|stopped|were (?:doing|working on)|did last)(?: last time)?"
    rf"|(?:let['’]?s )?(?:continue|pick up|resume|carry on|go on) (?:from )?where {_WE} (?:left off|stopped)"
    rf"|was (?:war|ist) das letzte,?(?: (?:was|das) {_WE}.{{0,40}})?|was (?:haben wir|habe ich"
    rf"|hast du) (?:hier )?(?:zuletzt|als letztes"
    r"|(?:das |beim )?letztes? mal) (?:hier )?(?:gemacht|getan|bearbeitet)|wo (?:waren|sind|standen"
    r"|stehen) wir(?: gerade| zuletzt)?"
    r"(?: stehen ?geblieben)?|wo (?:haben|hatten) wir (?:zuletzt )?aufgehört|woran (?:haben|hatten) wir (?:zuletzt "
    r"|gerade )?gearbeitet"
    r"|qu['’](?:est-ce qu['’]on a|avons-nous) fait (?:en dernier|la dernière fois)|quelle (?:est|était) la dernière chose"
    r"(?: (?:que|qu['’]).{0,40})?|où (?:en )?(?:étions|sommes)-nous(?: arrêtés| restés)?"
    r"|où (?:est-ce qu['’])?on (?:en )?(?:était|est"
    r"|s['’]est arrêtés?)|on en (?:était|est) où"
    r"|(?:qué|cuál) (?:fue|es) lo último que .{2,40}|qué (?:hicimos|estábamos haciendo)(?: la última vez| por último)?"
    r"|(?:d|a d)ónde (?:lo )?(?:dejamos|nos quedamos|quedamos|paramos|estábamos|íbamos)|en qué (?:estábamos|quedamos|íbamos)"
)
_LEFT_TO_DO = (
    rf"what(?:['’]?s| is| was)(?: still)? (?:left|remaining|open|missing|unfinished|pending|to do|next)(?: to (?:do|be done))?"
    rf"|what (?:still )?(?:remains|needs)(?: to be)?(?: done)?|what (?:do|did) {_WE} still (?:have|need) to do"
    r"|was (?:ist|war|bleibt|steht)(?: denn)?(?: jetzt)?(?: noch)? (?:offen|zu tun|übrig|zu erledigen|an)"
    r"|was (?:fehlt|bleibt)(?: noch)?"
    r"|was (?:müssen|sollen) wir noch (?:machen|tun|erledigen)|wie geht(?:['’]s| es)? weiter"
    r"|qu['’]est-ce qu['’]il (?:nous )?reste(?: à faire)?|que reste-t-il(?: à faire)?|il reste quoi(?: à faire)?"
    r"|qué (?:nos )?(?:queda|falta|sigue)(?: por hacer| pendiente)?|qué (?:hay|está) pendiente"
)
_DONE_IN = (
    rf"what (?:did|have) {_WE} (?:do|done|work(?:ed)? on|get done|finish(?:ed)?|change[d]?|accomplish(?:ed)?)"
    rf"|what (?:happened|was done|was changed)|(?:a )?(?:summary|recap|overview) of"
    r"|was (?:haben wir|habe ich|hast du)|was (?:ist|war|wurde)|qu['’]est-ce qu['’]on a fait|qu['’]avons-nous fait|on a fait quoi"
    r"|qué (?:hicimos|hice|hiciste|se hizo)"
)
_DAYS = "monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonntag"
_WEEKDAYS = {name: at % 7 for at, name in enumerate(_DAYS.split(" "))}
_PERIODS = {
    "today": r"today|this morning|heute|aujourd['’]hui|hoy",
    "yesterday": r"yesterday|last night|gestern|(?<=fait )hier|(?<=quoi )hier|ayer",
    "before": r"the day before yesterday|vorgestern|avant-hier|anteayer",
    "week": r"this week|diese woche|cette semaine|esta semana",
    "last week": r"last week|letzte woche|la semaine dernière|la semana pasada",
}
_DAYS_AGO = {"today": 0, "yesterday": 1, "before": 2}
_WHEN = "|".join(
    (
        *(f"(?P<{name.replace(' ', '_')}>{said})" for name, said in _PERIODS.items()),
        rf"(?:(?:on |last |am |letzten ))?(?P<day>{_DAYS.replace(' ', '|')})",
        r"(?:(?:in|over|during) )?the (?:last|past) (?P<days>\d{1,2}|two|three|few) days",
    )
)
_OF_WORK: tuple[tuple[Literal["last", "left"], re.Pattern[str]], ...] = (
    ("last", lazy_regex(rf"{_POLITE}(?:{_LAST_WORK}){_HERE}{_PLEASE}", re.IGNORECASE)),
    ("left", lazy_regex(rf"{_POLITE}(?:{_LEFT_TO_DO}){_HERE}{_PLEASE}", re.IGNORECASE)),
)
_OF_A_PERIOD = lazy_regex(
    rf"{_POLITE}(?:{_DONE_IN}){_HERE} (?:{_WHEN}){_HERE}(?: (?:gemacht|getan|geschafft|erledigt|gearbeitet|passiert|los))?"
    rf"{_PLEASE}",
    re.IGNORECASE,
)
_FEW_DAYS = {"two": 2, "three": 3, "few": 3}


def work_asked(text: str, now: datetime) -> WorkAsked | None:
    """Return what a prompt asks of the work itself if that is all it asks. ``now`` is in the person's own time."""
    asked = " ".join(text[: _LONGEST_QUESTION + 1].split()).strip("¿¡?!. …")
    if not asked or len(asked) > _LONGEST_QUESTION:
        return None
    if found := _OF_A_PERIOD.fullmatch(asked):
        return WorkAsked(what="period", period=_period(found.groupdict(), now))
    return next((WorkAsked(what=what) for what, pattern in _OF_WORK if pattern.fullmatch(asked)), None)


def _period(named: Mapping[str, str | None], now: datetime) -> tuple[datetime, datetime]:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    day = timedelta(days=1)
    if weekday := named["day"]:
        back = (today.weekday() - _WEEKDAYS[weekday.lower()]) % 7 or 7
        return today - back * day, today - (back - 1) * day
    if days := named["days"]:
        return today - (_FEW_DAYS.get(days.lower()) or int(days)) * day, now + day
    monday = today - today.weekday() * day
    if named["week"]:
        return monday, now + day
    if named["last_week"]:
        return monday - 7 * day, monday
    back = next(ago for name, ago in _DAYS_AGO.items() if named[name])
    return today - back * day, today - (back - 1) * day


def asked_for(text: str, near: Sequence[Hit], *, readiness: float = 1.0) -> int:
    """Return how many of the ``near`` notes, likeliest first, a question about the past asks for: 1 if the first is clearly ahead,
    else 0. ``readiness`` divides the odds that it needs, as the dial says.
    """
    least = _CLEAR / (_CLEAR + (1 - _CLEAR) * readiness)
    if not near or near[0].score < least or not asks_of_the_past(text):
        return 0
    return int(len(near) < 2 or near[0].score >= _AHEAD * near[1].score)


def candidates(text: str, near: Sequence[Hit]) -> list[Pointer]:
    """Return every pointer to a note that could be given with this prompt, in the order of ``near``.

    Omits a note that has no line, and a note whose words are in the prompt.
    """
    said = frozenset(terms(text))
    found: dict[str, Pointer] = {}
    for hit in near:
        title = title_line(hit.note)
        if title and not repeats(hit.note, said):
            pointer = Pointer(id=hit.note.name, title=title, date=hit.note.created, score=hit.score, evidence=hit.note.evidence[:4])
            found.setdefault(pointer.id, pointer)
    return list(found.values())


def pointers(
    found: Sequence[Pointer],
    scores: Sequence[float],
    *,
    notes: int,
    listed: Mapping[str, float],
    asks: bool = False,
    thresholds: PointerThresholds = POINTER_THRESHOLDS,
) -> tuple[Pointer, ...]:
    """Return at most five of the pointers ``found``, likeliest first; what is ``listed`` only if it is twice as likely now.

    Earlier pointers to conversations do not raise the thresholds, since a note that is likely enough is worth more than these.

    ``scores`` are the probabilities of the notes near the prompt, whether they can be pointed at or not; ``notes`` is the number of
    notes in the project; ``asks`` means that the prompt `asks_of_the_past`.
    """
    best, following = (*sorted(scores, reverse=True), 0.0, 0.0)[:2]
    share = _risen({called: score for called, score in listed.items() if EvidenceReference.parse(called) is None}, thresholds)
    if best >= _STANDS_OUT * following:
        share *= min(MANY, max(_FEW, notes)) / MANY
    if asks:
        share *= _ASKS
    least = max(thresholds.least * share, thresholds.share * best)
    likely = sorted(_fresh(found, least, listed), key=lambda each: -each.score)[:MOST_POINTERS]
    if not likely or likely[0].score < thresholds.opens * share:
        return ()
    return tuple(replace(each, again=each.id in listed) for each in likely)


def least_of_conversations(listed: Mapping[str, float]) -> float:
    """Return the least probability of a conversation that this session is pointed at."""
    return POINTER_THRESHOLDS.talk * _risen(listed, POINTER_THRESHOLDS)


def conversations(
    found: Sequence[Pointer],
    of_notes: Sequence[Pointer],
    *,
    given: Collection[str],
    listed: Mapping[str, float],
    least: float,
) -> tuple[Pointer, ...]:
    """Return the pointer to the likeliest conversation, if any is likely enough; if it is evidence of notes, to the first of these,
    which says the same in a shorter line. ``of_notes`` are all pointers that could be given, ``given`` those that
    are: a conversation that one of them rests on is left out.
    """
    for each in _fresh(found, least, listed):
        noted = [note for note in of_notes if not set(note.evidence).isdisjoint(each.evidence)]
        if any(note.id in given for note in noted):
            continue
        for pointer in _fresh([replace(note, score=each.score) for note in noted], least, listed) if noted else [each]:
            return (replace(pointer, again=pointer.id in listed),)
    return ()


def _risen(listed: Mapping[str, float], thresholds: PointerThresholds) -> float:
    """Return the factor by which the thresholds grew with the pointers that a session was given."""
    return float(thresholds.rise ** sum(score != thresholds.listed for score in listed.values()))


def _fresh(found: Sequence[Pointer], least: float, listed: Mapping[str, float]) -> list[Pointer]:
    return [each for each in found if each.score >= max(least, _DOUBLE * listed.get(each.id, 0.0))]


def repeats(note: Note, said: Collection[str]) -> bool:
    """Return whether these words already contain what the note says."""
    return _share(terms(note.title), said) >= _SAID_TITLE and _share(terms(prose(note.body[:_LOOKED_AT])), said) >= _SAID_BODY


def _share(words: Sequence[str], said: Collection[str]) -> float:
    return sum(word in said for word in words) / len(words) if words else 1.0


_TEXT = 4_000
"""Characters of a note whose words are used."""


def nearest(index: Index, note: Note, now: float, *, limit: int = 8) -> Surroundings:
    """Return the notes nearest to ``note`` within its own project, without the note itself.

    Notes that rank high both by meaning and by words come first: of labelled pairs in which one note contradicts the other, all 14
    have the older one among the newer one's first eight, and 12 among its first three.
    """
    signals = index.signals(_said(note), project=note.project)
    columns = signals.columns
    mask = search.found(columns, now) & search.of_kinds(columns, SPOKEN_KINDS)
    mask &= columns.notes["project"] == index.project_number(note.project)
    rows = np.flatnonzero(mask)
    if not len(rows):
        return Surroundings()
    by_meaning = _places(signals.cosine[rows])
    by_words = _places(signals.bm25[rows])
    first = rows[np.lexsort((by_meaning, by_meaning + by_words))][: limit + 2]
    numbers = [int(number) for number in columns.notes["number"][first]]
    notes = index.notes(numbers)
    near = [
        SimilarNote(note=found, cosine=float(signals.cosine[row]))
        for row, number in zip(first.tolist(), numbers, strict=True)
        if (found := notes.get(number)) is not None and found.id not in ("", note.id)
    ][:limit]
    return Surroundings(near=tuple(near))


def _said(note: Note) -> str:
    return f"{note.title}\n{prose(note.body)}"[:_TEXT]


def _places(figures: npt.NDArray[np.float64] | npt.NDArray[np.float32]) -> npt.NDArray[np.intp]:
    """Return the rank of each figure; 0 for the greatest."""
    return np.argsort(np.argsort(-figures, kind="stable"), kind="stable")


MOST = 15
_LASTING = 0.5
"""Bonus for a kind other than insight: decisions, preferences and facts stay useful, insights less so. Measured: half as many
insights are needed again.
"""
_ROUTINE = 1.0
"""Bonus for a note that warns of a command that this project's sessions run repeatedly."""
_TAKEN_UP = 10.0
"""Bonus for a note opened or used in two sessions or more: it ranks before all others."""
_RESTED = -0.25
"""Penalty for a note listed at five session starts without being opened; it only decides between equals.

With an agent that opens nothing, every note gets it in turn, so a greater penalty would replace the best notes by the next best.
Measured: -5 loses 14 of 228 needs, -0.5 loses 4.
"""
_MAKING_ROOM = 5
"""The most lines of a list that notes at rest leave to others. With 5,000 notes beside them, needs that the list meets rise from
.16 to .25 and from .09 to .23 on two labelled projects, and stay the same with few notes.
"""
_NEWER = 0.001
"""Penalty per week of age, so that of equal notes the newer one comes first."""
_WEEK = 7 * 86_400
_TRIED = 200
_AGAIN = 3
_COMMANDS_READ = 4_000

_Listed = tuple[float, Hit, str]
"""A note's score, the note, and its line."""

Commands = Callable[[str], Sequence[Sequence[str]]]
"""Returns the commands that a project's last sessions ran, one list for each session."""


def nothing_run(project: str) -> Sequence[Sequence[str]]:
    return ()


def contents(
    index: Index,
    *,
    project: str,
    shown: Collection[str],
    now: float,
    taken_up: Collection[str] = (),
    at_rest: Collection[str] = (),
    commands: Commands = nothing_run,
    session: str = "",
    branch: str = "",
) -> tuple[tuple[Hit, str], ...]:
    """Return the notes of this project, and of none, that most likely matter for any topic, each with its line; preferences first.

    Notes of another project, of another unmerged branch, with changed files, or that describe an outdated state are omitted.
    """
    columns = index.columns()
    if not len(columns) or not project:
        return ()
    number = index.project_number(project)
    holding = search.holding(index, columns, project=number, branch=branch, session=session)
    mask = search.spoken(columns, now, holding) & holding & search.within(columns, number)
    notes = columns.notes
    scores = notes["importance"].astype(np.float64)
    scores += _LASTING * ~search.of_kinds(columns, {NoteKind.INSIGHT})
    scores -= _NEWER * np.clip((now - notes["created"]) / _WEEK, 0, 500)
    for called in taken_up:
        there = columns.rows_of(np.array(index.numbers(called), np.int64))
        scores[there[there >= 0]] += _TAKEN_UP  # a note indexed again meanwhile has no row here
    rows = best(np.where(mask, scores, -np.inf), notes["created"], _TRIED)
    today = datetime.fromtimestamp(now, UTC)
    routine = _again_and_again(commands(project))
    ranked: dict[str, _Listed] = {}
    found = index.notes(notes["number"][rows].tolist())
    for row in rows.tolist():
        note = found.get(int(notes["number"][row]))
        if note is None or note.name in shown or note.name in ranked:
            continue
        line = title_line(note)
        if note.drifted or not line or is_past(note, today):
            continue
        score = float(scores[row])
        if routine and _warns_of(note, routine):
            score += _ROUTINE
        ranked[note.name] = (
            score,
            Hit(note=note, score=round(max(0.0, min(1.0, score / 5)), 4), why="matters in this project"),
            line,
        )
    best_first = _in_turn(sorted(ranked.values(), key=lambda each: -each[0]), at_rest)[:MOST]
    best_first.sort(key=lambda each: each[1].note.kind is not NoteKind.PREFERENCE)
    return tuple((hit, line) for _, hit, line in best_first)


def _in_turn(best_first: Sequence[_Listed], at_rest: Collection[str]) -> list[_Listed]:
    """Return the lines in the order of their scores, notes ``at_rest`` behind their equals. Of the first lines only some make room:
    a large vault has equals without end, and the best notes would not be listed again.
    """
    resting = [called for _, hit, _ in best_first[:MOST] if (called := hit.note.name) in at_rest]
    staying = resting[: max(0, len(resting) - _MAKING_ROOM)]

    def score(each: _Listed) -> float:
        called = each[1].note.name
        return each[0] + (_RESTED if called in at_rest and called not in staying else 0.0)

    return sorted(best_first, key=lambda each: -score(each))


def _again_and_again(sessions: Sequence[Sequence[str]]) -> tuple[Invocation, ...]:
    """Return one example of each command that was run in at least three of the sessions."""
    seen: Counter[str] = Counter()
    example: dict[str, Invocation] = {}
    for commands in sessions:
        run = {each.purpose: each for line in commands for each in invocations(line[:_COMMANDS_READ])}
        seen.update(run.keys())
        example |= run
    return tuple(example[purpose] for purpose, count in seen.items() if count >= _AGAIN)


def _warns_of(note: Note, routine: Sequence[Invocation]) -> bool:
    return any(_of(caution, command) for caution in read(note).cautions for command in routine)


def _of(caution: Caution, command: Invocation) -> bool:
    warned = caution.command
    if warned.program == command.program:
        return warned.words[: warned.depth] == command.words[: warned.depth]
    return concerns(caution, command, folder="")
