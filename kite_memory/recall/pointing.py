"""Pointers: which titles a prompt is given, and when its question about the past is so plain that the best note is shown in
full.
"""

import re
from collections.abc import Collection, Mapping, Sequence

from kite_memory.model.hit import Hit, Pointer
from kite_memory.model.note import Note
from kite_memory.recall import titles
from kite_memory.recall.lexical import terms
from kite_memory.recall.prose import prose
from kite_memory.recall.search import name

MOST = 5
LEAST = 0.04
"""Least probability that a note bears on a prompt. Measured on six projects: three titles instead of five lose three of 63 needs,
.12 instead of .05 loses six; eight titles add none.
"""
_RISE = 0.02
"""Increase of that probability, as a share of it, for each title the session was pointed to before. Long sessions are given many.
Measured on three projects, against .05 throughout: four of 228 needs more have a title in context, for the same tokens.
"""
LISTED = 0.03
"""Score of a line in the list at a session's start: it was chosen for no prompt, so a relevant prompt may point to it once more."""
_DOUBLE = 2.0
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
    most: int = MOST,
) -> tuple[Pointer, ...]:
    """Return pointers to the likeliest notes and conversations, each at most once; one already ``listed`` only if it is twice as
    likely now. ``listed`` also raises the least probability: the more pointers a session has had, the likelier the next must be.

    Omits a note that has no line, a note whose words are in the prompt, and a conversation that is evidence of a chosen note.
    """
    said = frozenset(terms(text))
    found: list[Pointer] = []
    for hit in near:
        title = titles.line(hit.note)
        if title and not repeats(hit.note, said):
            found.append(
                Pointer(id=name(hit.note), title=title, date=hit.note.created, score=hit.score, evidence=hit.note.evidence[:4])
            )
    cited_by_notes = {reference for pointer in found for reference in pointer.evidence}
    found += [other for other in others if cited_by_notes.isdisjoint(other.evidence)]
    bears = LEAST * (1 + _RISE * sum(score != LISTED for score in listed.values()))
    stands_out = near[0] if near and len(near) < _FEW and near[0].score >= _OUTSTANDING else None
    if stands_out is not None and (len(near) < 2 or near[1].score * _FAR_AHEAD <= stands_out.score):
        bears = min(bears, stands_out.score)
    found = [each for each in found if each.score >= max(bears, _DOUBLE * listed.get(each.id, 0.0))]
    once: dict[str, Pointer] = {}
    for each in sorted(found, key=lambda each: -each.score):
        once.setdefault(each.id, each)
    return tuple(once.values())[:most]


def repeats(note: Note, said: Collection[str]) -> bool:
    """Return whether these words already contain what the note says."""
    title, body = terms(note.title), terms(prose(note.body[:_LOOKED_AT]))
    return _share(title, said) >= _SAID_TITLE and _share(body, said) >= _SAID_BODY


def _share(words: Sequence[str], said: Collection[str]) -> float:
    return sum(word in said for word in words) / len(words) if words else 1.0
