"""The words by which people and agents give away what matters in what they say. English only."""

import re
from dataclasses import dataclass

from kite_memory.distill.offline.passages import Sentence


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


CAUSE = _words(
    r"root cause|(?:real|actual|underlying) (?:problem|issue|cause|reason|bug)|(?:problem|issue|bug|culprit|reason|cause) (?:is"
    r"|was|here)|turns? out|because|caused by|due to|that'?s why|this is why|which is why|happens? (?:when|because|if)"
    r"|comes? from|stems? from|leads? to|results? in|since|so that|which means|meaning|in order to|otherwise"
)
VERIFIED = _words(
    r"confirmed|verified|reproduced|proved|proven|measured|found (?:it|the)|the fix (?:is|was)|fixed by|root cause|turns? out"
)
TRACED = _words(
    r"(?:root|real|actual|underlying|true) (?:cause|problem|issue|bug|reason|culprit)|(?:problem|issue|bug|culprit|cause|reason"
    r"|fault|failure|error|crash|hang|leak|regression) (?:is|was|came|comes|lies|lay|sat|sits)|(?:is|was|are|were) (?:caused by"
    r"|due to|because)|caused by|turn(?:s|ed) out(?! to be \w+\b(?:[.,;]|$))|(?:is|was|are|were) \w+ because"
    r"|found (?:it|the (?:\w+ )?(?:bug|problem|issue|cause|culprit|leak))"
    r"|traced (?:it |this |that )?(?:back )?to|(?:fail(?:s|ed)?|hangs?|hung|broke|breaks|crash(?:es|ed)|happen(?:s|ed)) because"
)
"""A cause that is named, in more ways than `theories.CLAIM` knows: it is only believed together with `theories.MENDED`."""
SLIP = _words(
    r"i (?:forgot|missed|broke|mistyped|overlooked|introduced|had (?:forgotten|left|missed))|my (?:own )?(?:mistake|typo|slip|edit)"
    r"|a typo"
)
"""What an agent did wrong a moment ago and put right: nobody meets it again."""
CHOSE = re.compile(
    r"\b(?:i|we)(?:'ve| have)? (?:chosen?|picked|went with|opted for|decided (?:on|for|to use)|used)\b.{2,120}\b(?:over|instead of"
    r"|rather than|not)\b",
    re.IGNORECASE,
)
DECIDING = _words(
    r"instead of|rather than|decided|decision|agreed|chose|chosen|prefer(?:red)?|opted|go(?:ing)? with|went with"
    r"|stick(?:ing)? with|settled on|trade-?offs?|not worth|overkill|simpler|deferred?|postponed?|dropp?(?:ed|ing)?"
    r"|keep(?:ing)?|kept|in favou?r of|over-?engineer\w*"
)
LIMIT = _words(
    r"only|never|always|must|cannot|can'?t|doesn'?t|don'?t|won'?t|isn'?t|aren'?t|no longer|without|unless|even (?:if|when"
    r"|though)|silently|requires?|needs?|not|neither|except|by design|on purpose|guaranteed?"
)
CONTRAST = _words(r"but|however|instead|whereas|although|though|rather|while|yet")
GUESS = _words(
    r"might|maybe|perhaps|could be|probably|likely|i think|i suspect|i guess|seems?|possibly|presumably|let me|not sure|unclear"
    r"|my guess"
)
STATUS = _words(
    r"tests? pass(?:es|ed)?|all (?:tests?|green|clean|passing|done)|lint(?:er)? (?:is )?(?:clean|passes)|committed|pushed"
    r"|build succeeds|compiles|ready to (?:merge|commit|push)|0 issues|up to date|no changes|successfully"
)
OFFER = _words(
    r"want me to|should i|shall i|would you like|do you want|which (?:do|would|one)|let me know|i can also|happy to"
    r"|if you(?:'d)? (?:like|want|prefer)|your call|say the word|next steps?|ready for"
)
STEP = re.compile(
    r"(?:let me|now,? (?:i|let|the|we|add|fix|run|update|check)|next,?|i'll|i will|i'm going|good|great|perfect|ok(?:ay)?|done"
    r"|excellent|right|sure|sorry|looking at|checking|running|let's (?:look|check|see|run)|here(?:'s| is| are)|the (?:tests"
    r"|build) |all |both |pushed|committed|updated|added|fixed|created|removed|renamed|you'?re right|good (?:point|catch"
    r"|question|idea)|yes|no|ah|hm+|interesting|wait|actually, let)\b",
    re.IGNORECASE,
)
ANNOUNCING = re.compile(
    r"(?:let me|now,? (?:let|i|we|the|add|fix|run|update|check|extract|confirm|verify|write|move|remove|implement)|i'll"
    r"|i'm going to|next,? i)\b",
    re.IGNORECASE,
)
CHECKS = re.compile(
    r"(?:(?:new|existing|both|all|the) )?(?:(?:unit|integration|regression) )?tests?\b|.{0,400}?\bTest(?-i:[A-Z_])\w",
    re.IGNORECASE | re.DOTALL,
)
"""Which tests there are and what each asserts is for the code to say."""
SELF = _words(r"i|i'll|i've|i'm|i'd|me|my")
YOU = _words(r"you|your|you're|you'll")
POINTING = re.compile(
    r"(?:this|that|these|those|it|its|they|he|she|so|and|also|then|which|the (?:former|latter|above|same)|same|plus|or)\b",
    re.IGNORECASE,
)
CODE = re.compile(
    r"`[^`\n]{1,120}`|\b\w+(?:\.\w+)+\b|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|\b\w+_\w+|--?[a-z][\w-]{2,}|\b[\w.-]{1,80}/[\w/.-]+"
)
TELLING_HEADING = _words(
    r"causes?|why|wrong|problems?|findings?|insights?|decisions?|design|trade-?offs?|recommend\w*|explanation|how it works|key"
    r"|important|notes?|caveats?|gotchas?|answer|diagnosis|bottom line|results?|conclusion|takeaways?|constraints?|limitations?"
    r"|root cause"
)
LISTING_HEADING = _words(
    r"files?|commits?|changes|tests?|next steps?|test plan|status|usage|todo|checklist|example|before|after|verification"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    prompt: float = 2.0
    centre: float = 2.0
    cause: float = 0.5
    verified: float = 0.3
    deciding: float = 0.3
    limit: float = 0.25
    contrast: float = 0.15
    code: float = 0.3
    guess: float = -0.8
    status: float = -0.8
    offer: float = -1.5
    step: float = -0.5
    checks: float = -0.6
    myself: float = -0.5
    you: float = -0.2
    question: float = -1.2
    colon: float = -0.8
    pointing: float = -0.3
    late: float = -0.6
    telling: float = 0.6
    listing: float = -0.3


WEIGHTS = Weights()


def salience(sentence: Sentence, prompt: frozenset[str], centre: float, weights: Weights = WEIGHTS) -> float:
    """How much a sentence looks like a line of a notebook.

    ``prompt`` holds the stems of what the person asked; ``centre`` is 0 to 1, the share of its words that the turn comes back to.
    """
    text = sentence.text
    size = max(1, len(sentence.stems))
    score = weights.prompt * len(sentence.stems & prompt) / size
    score += weights.centre * centre
    score += weights.cause * min(2, _count(CAUSE, text))
    score += weights.verified * bool(VERIFIED.search(text))
    score += weights.deciding * min(2, _count(DECIDING, text))
    score += weights.limit * min(3, _count(LIMIT, text))
    score += weights.contrast * bool(CONTRAST.search(text))
    score += weights.code * min(3, _count(CODE, text))
    score += weights.guess * bool(GUESS.search(text))
    score += weights.status * bool(STATUS.search(text))
    score += weights.offer * bool(OFFER.search(text))
    score += weights.step * bool(STEP.match(text))
    score += weights.checks * bool(CHECKS.match(text))
    score += weights.myself * bool(SELF.search(text))
    score += weights.you * bool(YOU.search(text))
    score += weights.question * text.endswith("?")
    score += weights.colon * text.endswith(":")
    score += weights.pointing * bool(POINTING.match(text))
    score += weights.late * sentence.place
    if sentence.heading:
        score += weights.telling * bool(TELLING_HEADING.search(sentence.heading))
        score += weights.listing * bool(LISTING_HEADING.search(sentence.heading))
    if sentence.words < 8:
        score -= 0.25 * (8 - sentence.words)
    elif sentence.words > 45:
        score -= 0.04 * (sentence.words - 45)
    return score


def _count(cue: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in zip(cue.finditer(text), range(4), strict=False))
