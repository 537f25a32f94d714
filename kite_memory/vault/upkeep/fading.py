"""Decide which notes have faded: a finding about a bug or a branch expires within weeks, a decision or a preference stays.

A faded note stays in its folder and is found by a search; it is only not recalled, listed or counted any more.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from kite_memory.model.note import Note, NoteKind, NoteStatus

PASSING, UNSHOWN, WAITING = timedelta(weeks=6), timedelta(days=90), timedelta(days=30)
"""How long a passing finding is recalled, any other without being shown, and how long a person is asked about one."""

_PASSING = re.compile(
    r"\b(?:bugs?|errors?|fail(?:s|ed|ing|ures?)?|crash\w*|fix(?:ed|es|ing)?|broke|broken|flaky|regress\w*|lint\w*|warnings?|panic\w*"
    r"|exceptions?|stack ?trace|race|stale|leftovers?|unused|missing|typo|cherry-?pick\w*|rebas\w*|conflict(?:s|ed)?|pull requests?"
    r"|PR|MR|branch(?:es)?|commits?|lines? \d+|currently|right now|at the moment|so far|today|yesterday|still|this session)\b"
    r"|(?<!\w)#\d+\b|\w\.\w{1,5}:\d+\b",
    re.IGNORECASE,
)
_HEX = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
_LASTING = frozenset({NoteKind.DECISION, NoteKind.PREFERENCE, NoteKind.ENTITY, NoteKind.JOURNAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteUse:
    """When a note was last shown to an agent, last used by one, and last repeated in a session."""

    shown: datetime | None = None
    used: datetime | None = None
    said: datetime | None = None


def is_passing(note: Note) -> bool:
    """Return whether a note is about a state that soon changes: a failure, a line, a branch, a pull request."""
    return note.kind in (NoteKind.INSIGHT, NoteKind.FACT) and bool(_PASSING.search(note.title) or _HEX.search(note.title))


def has_faded(note: Note, use: NoteUse, now: datetime) -> bool:
    """Return whether a note has faded.

    A person's note stays, unless it is passing or a question; so does a note with a key, and one that a person is asked about.
    """
    if note.status is not NoteStatus.ACCEPTED or note.kind in _LASTING or note.key or not note.id or note.conflicts or note.review:
        return False
    if is_passing(note):
        return now - _latest(note, use.used, use.said) >= PASSING
    if note.origin == "user" and note.kind is not NoteKind.QUESTION:
        return False
    return now - _latest(note, use.shown, use.used, use.said) >= UNSHOWN


def _latest(note: Note, *times: datetime | None) -> datetime:
    return max((note.created, *(at for at in times if at is not None)))
