"""Pointers: which titles a prompt is given, and when its question about the past is so plain that the best note is shown in
full.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

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
    rise: float = 1.05
    share: float = 0.25
    listed: float = 0.04
    talk: float = 0.08


BARS = Bars()
_DOUBLE = 2.0
_TALKS = 1
"""Most conversations that a prompt is pointed at; at a session's opening, see `app.conversation_voices`."""
_CLEAR = 0.10
_AHEAD = 1.5
_FEW, _OUTSTANDING, _FAR_AHEAD = 12, 0.02, 5.0
"""Where there are few notes, one far ahead of the others gets a pointer although it is unlikely by itself."""
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


def pointers(
    text: str,
    near: Sequence[Hit],
    others: Sequence[Pointer],
    *,
    listed: Mapping[str, float],
    bars: Bars = BARS,
) -> tuple[Pointer, ...]:
    """Return pointers to at most five notes, or else to a conversation; to what is ``listed`` only if it is twice as likely now.

    Omits a note that has no line, a note whose words are in the prompt, and a conversation that is evidence of a note near it.
    """
    return chosen(candidates(text, near, others), [hit.score for hit in near], listed=listed, bars=bars)


def candidates(text: str, near: Sequence[Hit], others: Sequence[Pointer]) -> list[Pointer]:
    """Return every pointer that could be given with this prompt, likeliest first."""
    said = frozenset(terms(text))
    found: list[Pointer] = []
    for hit in near:
        title = titles.line(hit.note)
        if title and not repeats(hit.note, said):
            found.append(
                Pointer(id=name(hit.note), title=title, date=hit.note.created, score=hit.score, evidence=hit.note.evidence[:4])
            )
    of_notes = {reference for pointer in found for reference in pointer.evidence}
    found += [other for other in others if of_notes.isdisjoint(other.evidence)]
    once: dict[str, Pointer] = {}
    for each in sorted(found, key=lambda each: -each.score):
        once.setdefault(each.id, each)
    return list(once.values())


def chosen(
    found: Sequence[Pointer], scores: Sequence[float], *, listed: Mapping[str, float], bars: Bars = BARS
) -> tuple[Pointer, ...]:
    """Return the pointers to give of those ``found``. ``scores`` are those of all notes near the prompt, highest first."""
    given = sum(score != bars.listed for score in listed.values())
    best = scores[0] if scores else 0.0
    opens, least = (bar * bars.rise**given for bar in (bars.opens, bars.least))
    if best >= _OUTSTANDING and len(scores) < _FEW and (len(scores) < 2 or scores[1] * _FAR_AHEAD <= best):
        opens, least = min(opens, best), min(least, best)
    least = max(least, bars.share * best)
    fresh = [each for each in found if each.score >= _DOUBLE * listed.get(each.id, 0.0)]
    likely = [each for each in fresh if each.is_note and each.score >= least][:MOST]
    if not likely or likely[0].score < opens:
        likely = [each for each in fresh if not each.is_note and each.score >= bars.talk * bars.rise**given][:_TALKS]
    return tuple(replace(each, again=each.id in listed) for each in likely)


def repeats(note: Note, said: Collection[str]) -> bool:
    """Return whether these words already contain what the note says."""
    title, body = terms(note.title), terms(prose(note.body[:_LOOKED_AT]))
    return _share(title, said) >= _SAID_TITLE and _share(body, said) >= _SAID_BODY


def _share(words: Sequence[str], said: Collection[str]) -> float:
    return sum(word in said for word in words) / len(words) if words else 1.0
