"""Pointers: which titles a prompt is given, and when its question about the past is so plain that the best note is shown in
full.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from kite_memory.model.event import EvidenceReference
from kite_memory.model.hit import Hit, Pointer
from kite_memory.model.note import Note
from kite_memory.recall import titles
from kite_memory.recall.lexical import terms
from kite_memory.recall.prose import prose
from kite_memory.recall.search import name

MOST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Conditions that a pointer must meet. `bench.fit_gate --pointing` measures them on projects they were not chosen on.

    ``opens`` is the least probability of the likeliest note: where it is lower, the prompt is pointed at no note. ``least`` is that
    of the others. It is lower, since the frame of the block costs as much as a line. ``rise`` is the factor by which both grow with
    each pointer that the session was given before: so a long session is not given many more than a short one, even in a project
    whose probabilities are all too high. A note less likely than ``share`` of the likeliest is left out. ``listed`` is the score of
    a line in the list at a session's start: it was chosen for no prompt, so a relevant prompt may point to it once more.

    ``talk`` is the least probability of a conversation. One is pointed at only where no note is likely enough, since its line costs
    twice as much and is right half as often.
    """

    opens: float = 0.05
    least: float = 0.03
    rise: float = 1.054
    share: float = 0.25
    listed: float = 0.04
    talk: float = 0.08


BARS = Bars()
_DOUBLE = 2.0
_CLEAR = 0.10
_AHEAD = 1.5
_FEW, MANY, _STANDS_OUT = 10, 25, 2.0
"""With fewer notes than ``MANY`` the bars are lower, in proportion, for one that is twice as likely as the next: of few notes each
is likelier to be the one, and the probability was fitted on vaults of about a hundred.
"""
_ASKS = 0.5
"""Factor of the bars for a plain question about the past."""
_SAID_TITLE, _SAID_BODY = 0.85, 0.6
_LOOKED_AT = 1_200
_ASKED = 700
_PAST = re.compile(
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


def asked_for(text: str, near: Sequence[Hit]) -> int:
    """Return how many of the ``near`` notes, likeliest first, a question about the past asks for: 1 if the first is clearly ahead,
    else 0.
    """
    if not near or near[0].score < _CLEAR or not asks_of_the_past(text):
        return 0
    return int(len(near) < 2 or near[0].score >= _AHEAD * near[1].score)


def candidates(text: str, near: Sequence[Hit]) -> list[Pointer]:
    """Return every pointer to a note that could be given with this prompt, in the order of ``near``.

    Omits a note that has no line, and a note whose words are in the prompt.
    """
    said = frozenset(terms(text))
    found: dict[str, Pointer] = {}
    for hit in near:
        title = titles.line(hit.note)
        if title and not repeats(hit.note, said):
            pointer = Pointer(
                id=name(hit.note), title=title, date=hit.note.created, score=hit.score, evidence=hit.note.evidence[:4]
            )
            found.setdefault(pointer.id, pointer)
    return list(found.values())


def pointers(
    found: Sequence[Pointer],
    scores: Sequence[float],
    *,
    notes: int,
    listed: Mapping[str, float],
    asks: bool = False,
    bars: Bars = BARS,
) -> tuple[Pointer, ...]:
    """Return at most five of the pointers ``found``, likeliest first; what is ``listed`` only if it is twice as likely now.

    Earlier pointers to conversations do not raise the bars, since a note that is likely enough is worth more than these.

    ``scores`` are the probabilities of the notes near the prompt, whether they can be pointed at or not; ``notes`` is the number of
    notes in the project; ``asks`` means that the prompt `asks_of_the_past`.
    """
    best, following = (*sorted(scores, reverse=True), 0.0, 0.0)[:2]
    share = _risen({called: score for called, score in listed.items() if EvidenceReference.parse(called) is None}, bars)
    if best >= _STANDS_OUT * following:
        share *= min(MANY, max(_FEW, notes)) / MANY
    if asks:
        share *= _ASKS
    least = max(bars.least * share, bars.share * best)
    likely = sorted(_fresh(found, least, listed), key=lambda each: -each.score)[:MOST]
    if not likely or likely[0].score < bars.opens * share:
        return ()
    return tuple(replace(each, again=each.id in listed) for each in likely)


def least_of_conversations(listed: Mapping[str, float], bars: Bars = BARS) -> float:
    """Return the least probability of a conversation that this session is pointed at."""
    return bars.talk * _risen(listed, bars)


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


def _risen(listed: Mapping[str, float], bars: Bars) -> float:
    """Return the factor by which the bars grew with the pointers that a session was given."""
    return float(bars.rise ** sum(score != bars.listed for score in listed.values()))


def _fresh(found: Sequence[Pointer], least: float, listed: Mapping[str, float]) -> list[Pointer]:
    return [each for each in found if each.score >= max(least, _DOUBLE * listed.get(each.id, 0.0))]


def repeats(note: Note, said: Collection[str]) -> bool:
    """Return whether these words already contain what the note says."""
    title, body = terms(note.title), terms(prose(note.body[:_LOOKED_AT]))
    return _share(title, said) >= _SAID_TITLE and _share(body, said) >= _SAID_BODY


def _share(words: Sequence[str], said: Collection[str]) -> float:
    return sum(word in said for word in words) / len(words) if words else 1.0
