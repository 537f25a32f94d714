"""The line that represents a note: its title, if that is understandable alone, or else its first sentence that is."""

import re
from datetime import datetime, timedelta

from kite_memory.model.note import Note, NoteKind
from kite_memory.recall.prose import prose
from kite_memory.recall.rendering import shortened
from kite_memory.text.quoting import plain_line, quoted

_LONGEST = 90
_LOOKED_AT = 2_000
_LEAST_WORDS = 4
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_CODE = re.compile(r"`[^`]*`|\S*[/\\(){}=<>]\S*|\b\w+(?:[._]\w+)+\b|\b[a-z]+[A-Z]\w*\b|\b[A-Z]\w*[a-z][A-Z]\w*\b")
_REFERS_BACK = re.compile(
    r"(?:this|that|these|those|it|its|it's|they|he|she|there|there's|here|here's|also|instead|same|and|but|so|because|then|otherwise"
    r"|(?:the|a) (?:above|former|latter|same|remaining|other|following|last|next|second) \w+|as (?:above|before|discussed|said))\b"
    r"|\(?[A-Za-z0-9]\)|[-–—:,;.]",
    re.IGNORECASE,
)
_HANGS = re.compile(
    r"(?:\b(?:a|an|the|and|or|but|of|to|in|on|at|by|for|from|with|into|as|than|that|which|who|where|when|if|because|is|are|was|be|not)"
    r"|[,:;(–—-])\s*$",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^\n]+?(?:[.!?。！？](?=\s|$)|$)", re.MULTILINE)
_STATE = re.compile(
    r"\b(?:(?:is|are|still|currently|now) (?:\w+ )?(?:failing|broken|red|down|blocked|pending|missing|unfinished|in progress|flaky"
    r"|wip|stuck|open|unmerged|disabled)|currently|right now|at the moment|so far|not yet|for now|in progress|wip|todo)\b",
    re.IGNORECASE,
)
_STATES_HOLD = timedelta(days=14)


def line(note: Note) -> str:
    """Return the line of a note. Empty if it has none; such a note gets no pointer."""
    title = " ".join(note.title.split())
    if not says_something(title):
        sentences = (" ".join(each.split()) for each in _SENTENCE.findall(prose(note.body[:_LOOKED_AT])))
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
