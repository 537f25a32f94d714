"""Options that an agent offers in a message, and the one that a person picks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kite_memory.distill.prose import clean, clip, one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    label: str
    name: str
    text: str


_LABEL = re.compile(
    r"^[ \t]{0,6}(?:[-*] )?(?:#{1,4} )?(?:\*\*)?(?:option |approach |path )?(?P<label>[A-Da-d]"
    r"|[1-9])(?:\*\*)?[.):](?:\*\*)?\s+(?P<rest>\S.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_NAMED_OPTION = re.compile(
    r"^[ \t]{0,6}(?:[-*] )?(?:#{1,4} )?\*{0,2}(?:option|approach|path) (?P<label>[A-D]"
    r"|[1-9])\b\*{0,2}\s*[:.(—–-]*\s*(?P<rest>\S.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_PICK = re.compile(
    r"^\W{0,3}(?:(?:ok(?:ay)?|yes|yeah|ye[ap]|sure|hmm|i think|i guess|let'?s|lets|go|do|just|i'd|i would|with|for|go for|go with"
    r"|option|approach|pick|take|choose|like|to|say|the)[\s,:]+){0,6}(?P<label>[A-Da-d]|[1-9])(?=\s*$|[.!)](?:\s|$)|\s*[,;:—–]"
    r"|\s(?:please|but|and|then|is|sounds|looks|seems|for|first|with|as|since|because|it|now|-)\b)",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"(?:\b[A-D]|[1-9])\s*(?:,|and|&|\+|or)\s*(?:[A-D]\b|[1-9])(?!\w)")
_NTH = {"first": "1", "second": "2", "third": "3", "former": "1", "latter": "2"}
_PICK_NTH = re.compile(
    r"\bthe (?P<nth>(?:first|second|third)(?= (?:one|option|approach|way)\b|[\s.!]*$)|former\b|latter\b)", re.IGNORECASE
)
_INLINE = re.compile(
    r"\((?P<label>[1-9a-d])\)\s+(?P<rest>[^()]{3,200}?(?:\([^()]{2,80}\)[^()]{0,80}?)?)"
    r"(?=[,;]?\s*(?:and |or )?\([1-9a-d]\)|[.?!;](?:\s|$))"
)
_OFFERS = re.compile(r"\b(?:options?|alternatives?|recommend\w*|designs?|choices?|lean(?:ing)? to|approaches)\b", re.IGNORECASE)


def options_in(text: str) -> list[Option]:
    """Return the lettered or numbered choices at the end of an agent's message; none unless it asks for a choice or calls them
    options.
    """
    text = clean(text[-6_000:])
    if "?" not in text[-700:] and not _OFFERS.search(text):
        return []
    found: dict[str, Option] = {}
    for pattern in (_NAMED_OPTION, _LABEL, _INLINE):
        for match in pattern.finditer(text):
            label = match["label"].upper()
            rest = one_line(match["rest"]).replace("**", "").replace("__", "")
            if label == "1" or label == "A":
                found = {}  # the last list is the one that is asked about
            name = re.split(r"\s[—–-]\s|: |\. ", rest, maxsplit=1)[0]
            found[label] = Option(label=label, name=clip(name.strip(" :.-"), 90), text=clip(rest, 260))
        if len(found) >= 2:
            return list(found.values())
    return []


def picked(said: str, options: Sequence[Option]) -> Option | None:
    """Return the option that a short reply names; ``None`` if it names none or several."""
    opening = one_line(said[:160])
    if _SEVERAL.search(opening):
        return None
    nth = _PICK_NTH.search(opening)
    match = _PICK.match(opening)
    label = _NTH[nth["nth"].lower()] if nth else match["label"].upper() if match else ""
    if label == "A" and match and re.match(r"\W*a\s+\w", opening, re.IGNORECASE):
        return None  # the article
    return next((option for option in options if option.label == label), None)
