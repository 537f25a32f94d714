"""Score how useful a note is on its own, from its wording: which notes a summary page shows, and which are removed first.

It does not judge truth. A self-contained title, a reason, a choice and several sessions raise the score; an instruction for one
moment, a fragment of a plan, a line number and a sentence that refers elsewhere lower it.
"""

import re

from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.vault.lifecycle import sessions_of
from kite_memory.vault.upkeep.fading import is_passing

WORTH_A_LINE, JUNK = 1.2, -1.2

_CLAIMS = re.compile(
    r"\b(?:because|since|instead of|rather than|never|always|must|only|not|no longer|until|unless|whenever|except"
    r"|so that|without|over|cannot|should|has to|have to|needs? to|requires?|prefers?|avoid|every|each|all|at least"
    r"|at most|default)\b|n't\b",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|has|have|had|does|do|goes|runs?|uses?|takes?|keeps?|lives?|holds?|stays?|comes?|needs?|means?|makes?"
    r"|returns?|reads?|writes?|sends?|shows?|allows?|expects?|supports?|belongs?|depends?|applies|relies|starts?|ends?|stops?|gets?"
    r"|gives?|sets?|can|cannot|may|must|should|will|wants?|prefers?|chose|chosen|use|keep|avoid|run|write|put|ask|call|test|commit"
    r"|[a-z]{3,}(?:ed|es|ies))\b",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"(?:i|i'(?:d|m|ll|ve)|you|we are|we'?re|it|its|it's|this|that|these|those|they|he|she|there(?:'s| is| are)?"
    r"|here(?:'s| is)?|let(?:'s| me| us)?|because|when|if|while|without|instead|from|technically|today|compare|once|whichever"
    r"|where|whether|since|after|before|ok(?:ay)?|yes|yeah|no,|sure|thanks|good|great|perfect|so|also|then|both|now"
    r"|currently|only|first|next|finally|even if|either|to make|as (?:you|i)|lines?|key finding|problem|step|phase"
    r"|scenario|option|part|status|update|note|see"
    r"|the (?:fix|error|issue|problem|signature|changes?|tests?|other|following|above|effect|new|unused|result|same"
    r"|overriding|rest|only|old|remaining|simpler|real))\b",
    re.IGNORECASE,
)
_STEP = re.compile(
    r"(?:add|adds|remove|removes|move|moves|pass|passes|update|updates|change|changes|replace|replaces|fix|fixes|create|creates|rename"
    r"|renames|show|shows|enable|enables|extract|implement|refactor|introduce|extend|wire|convert|delete|drop|insert|append|adjust|bump"
    r"|modify|verify|check|investigate|review|clean|make|just|reset|proceed|continue|go|do|please|push|merge|commit|retry|try)\b",
    re.IGNORECASE,
)
_FOR_NOW = re.compile(
    r"\b(?:never ?mind|later|for now|go ahead|we are back|as discussed|do it|anything else|right now|this time|once more"
    r"|again|the plan|next step|continue|proceed|looks? good|sounds good|i would have|i'd personally|please)\b|\?$",
    re.IGNORECASE,
)
_UNFINISHED = re.compile(
    r"(?:…|\.\.\.|[,:;(\[“‘\"-]|\b(?:a|an|the|to|of|in|on|at|for|with|by|and|or|that|which|than|from|as|is|are|need|needs|called"
    r"|calls|its|their|our|only|about|almost|optional|inside|make))$",
    re.IGNORECASE,
)
_CODE = re.compile(r"`[^`]*`|\b\w+(?:[._/()-]\w+)*[A-Z_(/.]\w*\)?|‹[^›]*›|\S*[=→{}<>|]\S*")
_FRAGMENT = re.compile(r"→|\blines? \d|[‹›{}|=]|^\d|\(line|^[#`*\"“'/.-]|\b[0-9a-f]{8}\b|\bv?\d+(?:\.\d+)* \(|^[^\w`]")
_PLANNED = "From an approved plan:"
_SHORT, _LONG = 4, 26
_JUDGED_KINDS = frozenset({NoteKind.DECISION, NoteKind.INSIGHT, NoteKind.FACT, NoteKind.PREFERENCE})


def strength(note: Note) -> float:
    """Return the score: about 1 for a note that is worth a line, below 0 for a useless one."""
    title = note.title.strip()
    words = title.split()
    found = 0.0
    found += 0.8 if _SHORT <= len(words) <= _LONG else -1.0
    found += 0.6 if _VERB.search(title) or _CLAIMS.match(title) else -0.2
    found += 0.5 if _CLAIMS.search(title) else 0.0
    found -= 1.0 if _POINTS.match(title) else 0.0
    found -= 0.3 if title.startswith("The ") else 0.0
    found -= 1.2 if _FOR_NOW.search(title) else 0.0
    found -= 0.8 if _UNFINISHED.search(title) or _is_open(title) else 0.0
    found -= 0.8 if _FRAGMENT.search(title) else 0.0
    found -= 0.8 if _code_share(title) > 0.4 else 0.0
    if note.kind is not NoteKind.PREFERENCE and _STEP.match(title):
        found -= 0.8
    if note.kind is NoteKind.PREFERENCE and note.origin == "user" and not _STEP.match(title):
        found += 0.4
    found -= 0.7 if note.body.startswith(_PLANNED) and not _CLAIMS.search(title) else 0.0
    found -= 0.6 if is_passing(note) else 0.0
    found += 0.3 * (note.importance - 2)
    found += 0.5 if sessions_of(note.evidence) > 1 else 0.0
    return found


def is_worth_a_line(note: Note) -> bool:
    """Return whether a note belongs on a summary page.

    The threshold is lower for a person's own note.
    """
    if note.kind is NoteKind.QUESTION:
        return len(note.title.split()) >= _SHORT and not _POINTS.match(note.title)
    if _POINTS.match(note.title) or _FRAGMENT.search(note.title):
        return False
    return strength(note) >= WORTH_A_LINE - (0.4 if note.origin == "user" and not note.body.startswith(_PLANNED) else 0.0)


def is_junk(note: Note) -> bool:
    """Return whether an accepted note has so little content that its owner may want it removed."""
    standing = note.status is NoteStatus.ACCEPTED and note.id and not note.key
    return bool(standing) and note.kind in _JUDGED_KINDS and strength(note) <= JUNK


def _is_open(title: str) -> bool:
    """Return whether a backtick, bracket or quote in it is not closed."""
    return title.count("`") % 2 == 1 or title.count("(") != title.count(")") or title.count("“") != title.count("”")


def _code_share(title: str) -> float:
    return sum(len(found[0]) for found in _CODE.finditer(title)) / max(1, len(title))
