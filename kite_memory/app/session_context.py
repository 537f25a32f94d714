"""What the timeline tells recall: what was said when a note came up, and what came before a prompt."""

import sqlite3

from kite_memory.model.event import EvidenceReference
from kite_memory.model.note import Note
from kite_memory.recall.situation import Situation, situation_of
from kite_memory.timeline.store import Timeline

_REFERENCES = 4
_LENGTH = 1_500
_UNREADABLE = (sqlite3.Error, UnicodeError)
"""A name that is no text, as a person's YAML or shell can spell one, is as good as unknown."""
_EVENTS = 200
"""Of the session, before a prompt: about sixty tool calls, in less than two milliseconds."""


def said_about(timeline: Timeline, note: Note) -> str:
    """The text of the note's evidence, for the index to find it by: people ask again in the words of that time.

    As far as the timeline has it, redacted as it was kept; empty is no loss.
    """
    parts: dict[str, None] = {}
    for text in note.evidence[:_REFERENCES]:
        reference = EvidenceReference.parse(text)
        try:
            events = [] if reference is None else timeline.evidence(reference)
        except _UNREADABLE:
            return ""
        parts.update((event.text[:_LENGTH], None) for event in events[:1])
    return "\n".join(parts)


def before(timeline: Timeline, provider: str, session: str, prompt: str) -> Situation:
    """What the session's events say about a prompt in it; nothing for a session never seen, or one that cannot be read."""
    try:
        events = timeline.last_events(provider, session, _EVENTS) if session else []
        return situation_of(events, prompt, spoken=timeline.spoken(provider, session))
    except _UNREADABLE:
        return Situation()
