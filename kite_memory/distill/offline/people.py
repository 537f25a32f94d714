"""What a person decides and wants: options they pick, plans they approve, corrections, standing wishes."""

import re
from collections.abc import Iterator

from kite_memory.distill.offline.passages import Sentence, said_by_person, sentences_of
from kite_memory.distill.offline.wording import without_opening
from kite_memory.model.event import Event, EventType

STANDING = re.compile(
    r"(?:^|[.;!]\s*|\b(?:please|you (?:should|must)|we (?:should|must)|let'?s|want you to|(?:make|be) sure(?: that)?(?: you| we)?"
    r"(?: to)?|^(?:when(?:ever)?|if|before|after|for|in|on)\s[^,;?]{2,80},)\s+)"
    r"(?:always|never|don'?t ever|stop(?=\s+\w+ing\b))\s+(?!(?:mind|an?|been|had|seen|heard|knew|thought|again|it)\b)[a-z]"
    r"|\b(?:from now on|going forward|as a rule|in (?:the )?future,? (?:please|let'?s|we|you|always|never|use|do|don'?t|make"
    r"|add|run))\b|\b(?:i|we) (?:really |personally |usually |generally |normally |always |never )?(?:prefer|hate|dislike"
    r"|don'?t (?:like|want you to))\b|\bi(?:'d| would) (?:much |really |personally |always )?(?:prefer|rather)\b"
    r"|\bplease (?:don'?t|do not|avoid)\b|\bremember to\b|\bdon'?t (?:guess|assume)\b|\b(?:overriding|general|our"
    r"|my) (?:directive|rule|policy|convention|preference) (?:is|here)\b|\bavoid\s+\w+ing\b",
    re.IGNORECASE,
)
_CONVENTION = re.compile(
    r"(?:please )?use\s[^.;?]{2,60}, never\s|(?:every|each|any|all|no)\s[^,;?]{2,60}\s(?:must|shall|should (?:be|have|use|go|live"
    r"|start|end|return))\b|(?:(?:here|in (?:this|our) [\w-]{1,30}),? )?we (?:only )?(?:use|write|name|put|keep|run|call|store"
    r"|format|deploy|commit|test|document)\s[^.;?]{2,80}(?:, (?:never|not)|,? instead of|,? rather than)\s",
    re.IGNORECASE,
)
"""How things are done here: one way, and not another."""
EVERYWHERE = re.compile(
    r"\b(?:everywhere|in (?:all|every|any) (?:project|repo\w*)s?|all (?:my|our) (?:projects|repos\w*)|in general|generally)\b",
    re.IGNORECASE,
)
MACHINE = re.compile(
    r"[{}<>|\\]|^\W*\$ |^\W*(?:error|warning|at |file |line \d)|https?://\S+\s*$|\b\d{2}:\d{2}:\d{2}\b", re.IGNORECASE
)
_CONCEDES = re.compile(
    r"\W*(?:you(?:'re| are) (?:absolutely |totally |completely )?right|good (?:point|catch|call|question to raise|idea"
    r"|instinct)|fair (?:point|enough|challenge|call)|great (?:point|catch|idea)|(?:yes|right|agreed)[,.!—–-]{1,2}\s|sorry"
    r"|my mistake|i was wrong|makes sense|understood|got it)",
    re.IGNORECASE,
)


_FIRM = re.compile(r"\b(?:always|never|ever|from now on|going forward|future|rule|directive|policy|convention)\b", re.IGNORECASE)
FOR_NOW = re.compile(
    r"\b(?:yet|for now|right now|(?:for|at) the moment|for the time being|temporarily|in the meantime|this time|(?:this|just) once"
    r"|today|tonight|tomorrow|until|in this (?:case|pr|branch|file|commit)|(?:that|this) one)\b",
    re.IGNORECASE,
)
TYPED = 700
"""Characters of a message that somebody typed; what is longer was pasted."""


def wishes(event: Event) -> Iterator[Sentence]:
    """Sentences in which a person says how things are to be done beyond the task at hand."""
    said = said_by_person(event)
    if not said or event.type is EventType.DECISION or len(said) > TYPED:
        return
    for sentence in sentences_of(event, said):
        text = sentence.text
        if text.endswith("?") or not 4 <= sentence.words <= 60 or MACHINE.search(text):
            continue
        plain = without_opening(text)
        if (STANDING.search(plain) or _CONVENTION.match(plain)) and not FOR_NOW.search(text):
            yield sentence


def is_firm(said: str) -> bool:
    return bool(_FIRM.search(said))


_DECIDES = re.compile(
    r"\b(?:let'?s (?:go|use|stick|keep|do|drop|switch|move|put|make|not|leave|take|store|have|build|write|name|call"
    r"|adopt|pick|choose|split|replace|deploy)|(?:i|we)(?:'ve"
    r"| have)? (?:decided|agreed|chose|settled)|(?:i|we)(?:'ll|'d| will| would| should)? (?:go(?:ing)? (?:with|for)"
    r"|stick (?:with|to)|rather (?:use|have|keep|go))|go with|stick with|(?:i|we) don'?t want|(?:i|we) want|the decision is)\b",
    re.IGNORECASE,
)
_GROUNDED = re.compile(
    r"\b(?:instead of|rather than|because|since|so that|otherwise|over(?= \w+ because)|as opposed to|, not|not \S+,? because"
    r"|due to)\b",
    re.IGNORECASE,
)


_WONDERS = re.compile(r"(?:maybe|perhaps|probably|possibly|not sure|i guess|i wonder)\b", re.IGNORECASE)


def stated_decisions(event: Event) -> Iterator[Sentence]:
    """Sentences in which a person decides something and gives the reason, or names what it is instead of."""
    said = said_by_person(event)
    if not said or event.type is EventType.DECISION or len(said) > 4 * TYPED:
        return
    for sentence in sentences_of(event, said):
        text = sentence.text
        if text.endswith("?") or not 6 <= sentence.words <= 80 or MACHINE.search(text):
            continue
        if _DECIDES.search(text) and _GROUNDED.search(text) and not _WONDERS.match(without_opening(text)):
            yield sentence


def directs(said: str) -> bool:
    """Whether a few words of a person ask for something, rather than asking something."""
    return len(said) <= TYPED and bool(_DIRECTING.search(said)) and not MACHINE.search(said)


_DIRECTING = re.compile(
    r"(?:^|[.,;!\n–—-]\s*|\b(?:but|and|so|no|just|actually|please|rather)\s+)(?:let'?s|don'?t|do not|use|keep|drop|avoid|put"
    r"|leave|stop|never|always|only|not)\s|\b(?:instead|prefer|should(?:n'?t)? (?:be|not|have|use|go|live)|i would have"
    r"|rather than)\b",
    re.IGNORECASE,
)


def concedes(text: str) -> bool:
    """Whether an agent's message opens by giving way to the person."""
    return bool(_CONCEDES.match(text[:200]))
