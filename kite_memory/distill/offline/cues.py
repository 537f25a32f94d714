"""Expressions of people and agents that mark what matters, as listed in `cues.toml`. English only."""

import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files

_DATA = tomllib.loads(files(__package__).joinpath("cues.toml").read_text(encoding="utf-8"))


def _says(cue: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(_DATA['says'][cue])})\b", re.IGNORECASE)


def _opens(fragments: Sequence[str]) -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(fragments)})(?!\w)", re.IGNORECASE | re.DOTALL)


CAUSE, TRACED, SLIP, CHOICE, LIMIT = map(_says, ("cause", "traced", "slip", "choice", "limit"))
VERB, GUESS, STATUS, OFFER, SELF = map(_says, ("verb", "guess", "status", "offer", "myself"))
PROPOSAL, RECOMMENDS, DEICTIC = map(_says, ("proposal", "recommends", "deictic"))
STEP, ANNOUNCING, CHECKS, LEANING = (_opens(_DATA["opens"][cue]) for cue in ("step", "announcing", "checks", "leaning"))
CHANGE, SUBORDINATE, HEADLESS, TURNED_OUT = (
    _opens(_DATA["opens"][cue]) for cue in ("change", "subordinate", "headless", "turned_out")
)
BINDING, BOUNDING = (
    re.compile(rf"(?<![\w-])(?:{'|'.join(_DATA['person'][cue])})(?![\w-])", re.IGNORECASE) for cue in ("binding", "bounding")
)
PASSING = re.compile(rf"\b(?:{'|'.join(_DATA['person']['passing'])})\b", re.IGNORECASE)
ASKING, ORDERING, TELLING = (_opens(_DATA["person"][cue]) for cue in ("asking", "ordering", "telling"))
ASSENT = re.compile(rf"\W*(?:(?:{'|'.join(_DATA['person']['assent'])})(?:\W+|$))+", re.IGNORECASE)
CHOSE = re.compile(
    r"\b(?:i|we)(?:'ve| have)? (?:chosen?|picked|went with|opted for|decided (?:on|for|to use)|used)\b.{2,120}\b(?:over|instead of"
    r"|rather than|not)\b",
    re.IGNORECASE,
)
CODE = re.compile(
    r"`[^`\n]{1,120}`|\b\w+(?:\.\w+)+\b|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|\b\w+_\w+|--?[a-z][\w-]{2,}|\b[\w.-]{1,80}/[\w/.-]+"
)
