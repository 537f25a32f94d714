"""How well a sentence of an agent's message serves a note, as its title and as a part of its text; and a note its reader.

Three logistic regressions over the cues of the words. `bench.extraction.fit_scores` fits them to the verdicts of readers, who
judged titles alone, sentences beside the request they answer, and notes; `scores.json` holds the weights by the features' names.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

from kite_memory.distill.offline import wording
from kite_memory.distill.offline.people import MACHINE
from kite_memory.distill.offline.wording import CODE, VERB_OF_ORDER, Sentence, is_whole

Model = Literal["title", "text", "note"]
Features = Mapping[str, float]

_ANYWHERE = {
    name: getattr(wording, name.upper())
    for name in (
        "cause", "traced", "slip", "choice", "limit", "verb", "guess", "status", "offer", "self", "proposal", "recommends",
        "deictic",
    )
}  # fmt: skip
_AT_START = {
    name: getattr(wording, name.upper())
    for name in ("step", "announcing", "checks", "leaning", "change", "subordinate", "headless", "turned_out")
}
_PATTERNS = {
    "commit or ticket": re.compile(
        r"(?<!\w)(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}(?!\w)|(?<!\w)#\d{2,}|https?://(?!localhost|127\.)", re.IGNORECASE
    ),
    "label first": re.compile(r"(?:`[^`]{1,60}`|[\w./ '()-]{2,40}?)\s*(?:\s[—–-]{1,2}\s|:\s|→)"),
    "moment": re.compile(
        r"\b(?:yet|still|currently|remain(?:s|ing)?|pending|unresolved|blockers?|now|so far|at this point)\b|#\d", re.IGNORECASE
    ),
    "article first": re.compile(r"(?:the|their|his|her|both|each|two|three|a|an|new|every)\s", re.IGNORECASE),
    "article and code first": re.compile(r"(?:the|a|an|every|all|any|no|each)\s+\S*(?:`|\w[._]\w)", re.IGNORECASE),
    "verb first": re.compile(
        r"(?:\w+ly )?[A-Za-z][a-z]{2,}s (?:(?:the|an?|any|all|both|every|its|their|only|no)\b|[`“])|[A-Z][a-z]+(?:izes|ifies) "
    ),
    "past form first": re.compile(r"[A-Za-z]+ed\b"),
    "pronoun first": re.compile(
        r"(?:it|this|that|these|those|they|he|she|both|each|either|neither|none|such|same|there)\b", re.IGNORECASE
    ),
    "pronoun": re.compile(r"\b(?:it|its|this|that|these|those|they|them|their)\b", re.IGNORECASE),
    "future": re.compile(r"\b(?:will|would|could|should)\b|\b\w+'(?:ll|d)\b", re.IGNORECASE),
    "you": re.compile(r"\byou(?:r|'\w+)?\b", re.IGNORECASE),
    "name": re.compile(r"(?<=[a-z,] )[A-Z][a-zA-Z]{2,}"),
    "condition": re.compile(r"\b(?:when|if|unless|until|while|after|before)\b", re.IGNORECASE),
    "digit": re.compile(r"\d"),
    "arrow": re.compile("→|=>|->"),
    "dash": re.compile(r"\s[—–-]{1,2}\s"),
    "bracket": re.compile(r"\("),
    "small letter first": re.compile(r"[a-z]+ "),
    "ends open": re.compile(
        r".*(?:\b(?:and|or|that|which|to|the|a|an|of|for|with|by|is|are|it \w+|they \w+|\w+ each)|,)$", re.IGNORECASE
    ),
    "reports": re.compile(
        r"(?:confirmed|verified|failed|works|build|before|after|cost|new|caveat|summary|done|fixed|tests?)\b", re.IGNORECASE
    ),
}


def _of_words(text: str) -> dict[str, float]:
    """Return what both models look at."""
    found = {name: float(cue.search(text) is not None) for name, cue in _ANYWHERE.items()}
    found |= {f"{name} first": float(cue.match(text) is not None) for name, cue in _AT_START.items()}
    at_start = ("first", "open", "reports")
    for name, cue in _PATTERNS.items():
        found[name] = float((cue.match if name.endswith(at_start) else cue.search)(text) is not None)
    words = len(text.split())
    codes = [match.span() for match in CODE.finditer(text[:600])]
    found["words"] = math.log(1 + words)
    found["few words"] = float(words < 6)
    found["many words"] = float(words > 18)
    found["codes"] = min(4, len(codes)) / 4
    found["early code"] = float(any(start < 40 for start, _ in codes))
    found["code first"] = float(any(start == 0 for start, _ in codes))
    found["share of code"] = min(1.0, sum(end - start for start, end in codes) / max(1, len(text)))
    found["order"] = float(VERB_OF_ORDER.match(text) is not None)
    found["whole"] = float(is_whole(text))
    return found


def title_features(title: str, sentence: str) -> dict[str, float]:
    """Return the features of a title that was made of this sentence."""
    at = sentence.lower().find(title[1:].lower())
    rest = sentence[at + len(title) - 1 :].strip() if at >= 0 else ""
    return _of_words(title) | {"goes on": float(rest[:1].isalnum() or rest[:1] in '`([“"'), "has more": float(len(rest) > 2)}


def text_features(said: Sequence[Sentence], at: int, about: frozenset[str]) -> dict[str, float]:
    """Return the features of a message's sentence at this place, answering a request with the stems ``about``."""
    sentence = said[at]
    text = sentence.text
    return _of_words(text) | {
        "question": float(text.endswith("?")),
        "leads on": float(text.endswith(":")),
        "closed": float(text.endswith((".", "!", ")"))),
        "place": at / len(said),
        "is first": float(at == 0),
        "is second": float(at == 1),
        "is last": float(at == len(said) - 1),
        "answers": min(5, len(sentence.stems & about)) / 5,
        "length of message": math.log(1 + len(said)),
        "in a list": float(at > 0 and said[at - 1].text.endswith(":")),
    }


def note_features(text: str, request: str, scores: Sequence[float], title: float, source: str) -> dict[str, float]:
    """Return the features of a note with this text.

    ``scores`` are those of the sentences of the message it was made of, ``title`` is the one of its title, ``source`` the rule.
    """
    odds = sorted((1 / (1 + math.exp(-each)) for each in scores), reverse=True)
    words = len(request.split())
    return {
        f"from {source}": 1.0,
        "best sentence": odds[0],
        "best three": sum(odds[:3]) / min(3, len(odds)),
        "all sentences": min(4.0, sum(odds)) / 4,
        "average": sum(odds) / len(odds),
        "sentences": math.log(1 + len(odds)),
        "title": title,
        "no request": float(not request),
        "words of request": math.log(1 + words),
        "short request": float(0 < words < 5),
        "question": float("?" in request),
        "pasted request": float(MACHINE.search(request) is not None),
        "causes": _share(wording.CAUSE, text),
        "choices": _share(wording.CHOICE, text),
        "limits": _share(wording.LIMIT, text),
        "statuses": _share(wording.STATUS, text),
        "guesses": _share(wording.GUESS, text),
        "first person": _share(wording.SELF, text),
        "changes": _share(_CHANGED, text),
    }


_CHANGED = re.compile(
    r"\b(?:added|updated|removed|renamed|moved|replaced|changed|created|fixed|refactored|extracted|deleted)\b", re.IGNORECASE
)


def _share(cue: re.Pattern[str], text: str) -> float:
    return min(3, sum(1 for _ in zip(cue.finditer(text), range(3), strict=False))) / 3


@cache
def _weights() -> dict[Model, dict[str, float]]:
    data: dict[Model, dict[str, float]] = json.loads(files(__package__).joinpath("scores.json").read_text(encoding="utf-8"))
    return data


def score(model: Model, features: Features) -> float:
    """Return the logarithm of the odds that a reader would take the sentence."""
    weights = _weights()[model]
    return weights[""] + sum(weights.get(name, 0.0) * value for name, value in features.items())
