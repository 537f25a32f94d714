"""Titles, entities and rejected alternatives, cut from sentences that were said."""

import re
from collections.abc import Iterable, Iterator

from kite_memory.distill.offline.cues import CODE
from kite_memory.distill.prose import clip, one_line
from kite_memory.model.record import Rejected

_TITLE_WORDS = 9
_OPENING = re.compile(
    r"(?:(?:so|and|but|also|now|yes|no|ok|okay|right|well|actually|basically|essentially|importantly|crucially|however"
    r"|therefore|thus|hence|note(?: that)?|worth noting(?: that)?|in short|in other words|bottom line|net effect|net result"
    r"|key insight|the (?:key|important) (?:thing|point)(?: here)?(?: is)?(?: that)?|(?:the )?(?:root cause|real (?:problem"
    r"|issue|cause)|problem|issue|bug|reason|cause|culprit|fix|answer|catch|upshot)(?: here)? (?:is|was)(?: that)?"
    r"|it turns out(?: that)?|turns out(?: that)?|this means(?: that)?|which means(?: that)?|i think|i'd say|my take|we should"
    r"|let'?s(?: go with| use)?|go with|i found(?: that)?|found (?:it|the (?:bug|issue|problem|cause))|confirmed|please"
    r"|can (?:you|we)|could (?:you|we))\b[\s,:;.!—–-]*)+",
    re.IGNORECASE,
)
_MANNER = re.compile(
    r"^(?:(?:since|because|when|if|although|given|looking at|based on|according to|as|after|before|for|with|in|on|at"
    r"|from)\s[^,;]{3,90},\s+)(?=\S+\s+\S+\s+\S+\s+\S)",
    re.IGNORECASE,
)
"""What a sentence opens with before it comes to its point."""
_CLAUSE_END = re.compile(
    r"\s[—–-]{1,2}\s|[;:]\s|,\s(?=(?:so|which|because|since|but|and|or|then|while|though|although|not|rather|instead|even|if"
    r"|when|as)\b)|\s\(|\s(?=(?:because|since|so that|which means|meaning|in order to|even though|although|whereas)\b)"
    r"|[.!?](?:\s|$)",
    re.IGNORECASE,
)
_DANGLING = re.compile(
    r"(?:\s+(?:a|an|the|of|to|in|on|for|and|or|but|with|by|at|as|is|are|was|were|be|that|which|when|if|so|not|from|into|than|it"
    r"|its|their|this|only|will|would|can|has|have|do|does|same|each|any|all|no|also|still|just|your|our|my|because|while|where"
    r"|via|per|e\.g\.?|i\.e\.?))+[\s,;:]*$",
    re.IGNORECASE,
)


def title_of(sentence: str) -> str:
    """The first clause that says enough, without its run-up, at most nine words."""
    text = _MANNER.sub("", one_line(sentence[:600]).strip(" .:;,-—–\"'"))
    if opening := _OPENING.match(text):
        text = text[opening.end() :]
    head = text
    for end in _CLAUSE_END.finditer(text):
        if len(text[: end.start()].split()) >= 4:
            head = text[: end.start()]
            break
    words = head.split()
    if len(words) > _TITLE_WORDS:
        cut = words[:_TITLE_WORDS]
        halved = next((at for at in range(len(cut) - 1, max(3, len(cut) - 4), -1) if _BINDING.match(cut[at])), len(cut))
        head = " ".join(cut[:halved])
    head = _balanced(_DANGLING.sub("", head)).strip(" .:;,-—–\"'")
    return clip(head[:1].upper() + head[1:] if not CODE.match(head) else head, 80)


_BINDING = re.compile(r"(?:for|to|in|on|with|of|before|after|at|from|by|into|as|that|which|and|or|where|when)$", re.IGNORECASE)
"""A phrase that begins with one of these is dropped whole where it does not fit into a title."""


def _balanced(text: str) -> str:
    """Without a backtick or bracket whose partner was cut away."""
    if text.count("`") % 2:
        text = text.replace("`", "")
    if text.count("(") > text.count(")"):
        text = text[: text.rfind("(")] if text.rfind("(") > len(text) // 2 else text.replace("(", "")
    return text


_NAMED = re.compile(
    r"(?P<path>(?<![\w/])(?:[\w.@-]+/)+[\w.@-]+\.\w{1,6}\b)|(?P<file>\b[\w-]+\.(?:py|go|ts|tsx|js|rs|md|toml|ya?ml|json|sql|sh"
    r"|rb|java|kt|c|h|cpp|cs|css|html|lock)\b)|(?P<camel>\b(?:[A-Z][a-z0-9]+){2,}\b|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b)"
    r"|(?P<snake>\b[a-z0-9]+(?:_[a-z0-9]+)+\b)|(?P<ticket>\b[A-Z]{2,6}-\d{1,6}\b|\b(?:PR|issue) #\d+\b)"
    r"|(?P<name>(?<=[a-z,] )[A-Z][a-z]{2,}[A-Z]?\w*(?: [A-Z][a-z]{2,}\w*)?)"
)
_NO_NAMES = frozenset(
    ("Let", "Now", "The", "This", "That", "When", "Yes", "Not", "Option", "Only", "And", "But", "Because", "Instead", "Note")
)


def entities_of(texts: Iterable[str], most: int = 10) -> tuple[str, ...]:
    """What is named in code quotes, paths, identifiers, tickets and proper names, in order of appearance."""
    found: dict[str, str] = {}
    for text in texts:
        for at, part in enumerate(text.split("`")):
            names = [part] if at % 2 else [match.group() for match in _NAMED.finditer(part)]
            for name in (_balanced(one_line(name).strip(".,:;'\"")) for name in names):
                if 2 <= len(name) <= 60 and len(name.split()) <= 4 and any(map(str.isalpha, name)) and name not in _NO_NAMES:
                    found.setdefault(name.lower(), name)
    return tuple(found.values())[:most]


_LOST = r"(?P<this>[^\s,.;:()—]+(?:\s[^\s,.;:()—]+){0,7})"
_RULED_OUT = (
    re.compile(
        rf"\b(?:instead of|rather than|as opposed to)\s+{_LOST}(?:[,;:—(]|\.(?:\s|$)|$|\s(?=(?:because|since|so|as|which|for"
        rf"|to)\b))",
        re.IGNORECASE,
    ),
    re.compile(rf"\bnot\s+{_LOST}[,:—]?\s+(?=because\b|since\b)", re.IGNORECASE),
    re.compile(
        r"(?P<this>[^.;:()]{3,80}?)\s+(?:was|is|are|were|got|has been)\s+(?:rejected|ruled out|dropped|discarded|overkill"
        r"|not worth(?: it| the \w+)?|too \w+)\b",
        re.IGNORECASE,
    ),
)
_BECAUSE = re.compile(r"\b(?:because|since|as|so that|which would|due to)\s+(?P<why>[^.;]{4,160})", re.IGNORECASE)


def rejected_in(sentences: Iterable[str]) -> Iterator[Rejected]:
    """``X instead of Y because Z``, ``not Y, because Z``, ``Y was overkill``: what lost, and why where the sentence says it."""
    for sentence in sentences:
        match = next((match for pattern in _RULED_OUT if (match := pattern.search(sentence[:600]))), None)
        if match is None:
            continue
        lost = one_line(match["this"]).strip(" `*\"'")
        because = _BECAUSE.search(sentence[:600])
        if len(lost) >= 3:
            yield Rejected(alternative=clip(lost, 120), reason=clip(one_line(because["why"]), 160) if because else "")
