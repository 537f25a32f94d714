"""Detection of whether a named cause was proven or retracted later. English only."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kite_memory.distill.prose import clean, sentences, stems
from kite_memory.model.event import Event, EventType

_READ = 16_000
_NAMES_IT = 2
"""Fewest words that a retraction must share with a theory to refer to it."""


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


CLAIM = _words(
    r"root cause|(?:real |actual |underlying )?(?:problem|issue|bug|culprit|cause) (?:is|was|here)|found (?:it|the (?:bug"
    r"|problem|issue|cause|culprit))|(?:this|that) is (?:why|the (?:bug|problem|issue|cause))|turns out"
)
MENDED = _words(
    r"fix(?:ed|es)|solve[ds]|resolve[ds]|cure[ds]|mend(?:ed|s)|confirmed|verified|reproduced|to (?:confirm|verify)"
    r"|(?:pass(?:es|ed)?|works?|succeeds?|runs?|green) (?:now|again)|now (?:pass(?:es)?|works?|succeeds?|runs?)"
    r"|no longer (?:fail\w*|hang\w*|crash\w*|happen\w*|leak\w*|time\w*)"
    r"|ma(?:kes?|de) (?:it|them|the \w+(?: \w+)?) (?:pass|work|go away)|(?:is|are|went) gone|goes away|went away|the fix (?:is|was)"
)
RETRACTION = _words(
    r"(?:i was|that was|my \w+ was) wrong|wasn'?t (?:it|the (?:cause|issue|problem|reason))|is(?:n'?t| not) the (?:cause|issue"
    r"|problem|reason|culprit)|still (?:fails?|failing|broken|happens|the same)|didn'?t (?:help|fix|work)|scratch that"
    r"|ruled? (?:that |it )?out|my (?:earlier|first|previous|initial) (?:diagnosis|theory|guess|assumption|conclusion)"
    r"|not the (?:actual|real) (?:cause|issue|problem)"
)
_TAKEN_BACK = _words(
    r"(?:i was|that was|my \w+ was) wrong|was(?:n'?t| not) (?:it|the (?:cause|issue|problem|reason|culprit))"
    r"|is(?:n'?t| not) (?:actually )?the (?:real |actual )?(?:cause|issue|problem|reason|culprit)|scratch that"
    r"|(?:is|was) (?:now )?ruled out|rul(?:es|ed|ing) (?:that |it |this )?out"
    r"|my (?:earlier|first|previous|initial) (?:diagnosis|theory|guess|assumption|conclusion|claim) (?:was|is|does|did)"
    r"|(?:red herring|false lead|not the culprit)|turned out (?:not to be|to be wrong|wrong|false)"
)
"""Stricter than `RETRACTION`, which only makes an earlier statement doubtful: this means that a theory is false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retraction:
    """A retraction. ``at`` is the position of its event; ``about`` the words of the retracting sentence and of the next one."""

    at: int
    about: frozenset[str]


def retractions(events: Sequence[Event]) -> Iterator[Retraction]:
    """Yield the places where a message says that an earlier statement is wrong."""
    for at, event in enumerate(events):
        if event.type is not EventType.ASSISTANT_MESSAGE and event.role != "user":
            continue
        text = event.text[:_READ]
        if not _TAKEN_BACK.search(text):
            continue
        for block in clean(text).split("\n"):
            said = sentences(block) if _TAKEN_BACK.search(block) else []
            for place, sentence in enumerate(said):
                if _TAKEN_BACK.search(sentence) and not sentence.endswith("?"):
                    before = said[place - 1] if place else ""
                    yield Retraction(at=at, about=_subject(before) | _subject(sentence))


def withdrawn(statement: str, after: int, taken_back: Sequence[Retraction], *, surely: bool = False) -> bool:
    """Return whether a theory last mentioned at position ``after`` was retracted later, in its own words.

    ``surely``: the retraction must be about hardly anything else.
    """
    subject = _subject(statement)
    share = 0.6 if surely else 0.34
    return any(each.at > after and len(each.about & subject) >= max(_NAMES_IT, share * len(each.about)) for each in taken_back)


def _subject(text: str) -> frozenset[str]:
    return stems(text) - _OF_ANY_THEORY


_OF_ANY_THEORY = stems(
    "root cause real actual underlying problem issue bug culprit reason theory guess diagnosis assumption conclusion claim wrong"
    " earlier first previous initial turned turns ruled scratch herring false lead fix fixed code test tests error fails failing"
)


def proven(events: Sequence[Event], after: int) -> bool:
    """Return whether anything from position ``after`` on proves a cause: a passing check, or a message that says it is fixed."""
    for event in events[after:]:
        if event.type is EventType.TEST_RESULT and event.status == "ok":
            return True
        if (event.type is EventType.ASSISTANT_MESSAGE or event.role == "user") and MENDED.search(event.text[:_READ]):
            return True
    return False
