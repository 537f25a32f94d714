"""What an agent claims in its messages, and what readers would make of it."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kite_memory.distill.offline.titles import (
    asserting_title,
    gives_a_reason,
    names_something,
    preceded_by_subject,
    says_its_subject,
    stands_alone,
    thrown_away,
)
from kite_memory.distill.offline.wording import (
    ANNOUNCING,
    CAUSE,
    CHANGE,
    CHECKS,
    CHOICE,
    CHOSE,
    CODE,
    GUESS,
    HEADLESS,
    LEANING,
    LIMIT,
    OFFER,
    PROPOSAL,
    SELF,
    SLIP,
    STATUS,
    STEP,
    SUBORDINATE,
    TRACED,
    TURNED_OUT,
    VERB,
    VERB_OF_ORDER,
    Sentence,
    Turn,
    occurrences,
    said_by_person,
    sentences_of,
    without_opening,
)
from kite_memory.distill.prose import CLAIM, MENDED, RETRACTION, TAKEN_BACK, stems
from kite_memory.model.event import EventType
from kite_memory.text import lazy_regex

_HEART = 800
"""Characters kept from a message's beginning: agents state the result first."""
_ASSERTS = 1.0
"""Assertion score from which a sentence can be a title."""
_TITLE_WORDS = (6, 24)
_FEWEST_WORDS = 20
_HEARD = 400
_FEWEST_STEMS = 3
_FOUND = 4.3
"""Worth of a cause that is named while the work goes on."""
_SETTLED = 3.75
"""Worth of a cause that was found and fixed, however brief."""
_FOLLOWING = 4
"""Sentences after a cause that are searched for its proof."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim. ``best`` is the sentence that asserts most; ``worth`` is comparable between the claims of any session."""

    sentences: tuple[Sentence, ...]
    best: Sentence
    worth: float
    discarded: tuple[Sentence, ...] = ()


def sentences_of_turn(turn: Turn) -> list[Sentence]:
    return [
        sentence
        for event in turn.events
        if event.type is EventType.ASSISTANT_MESSAGE
        for sentence in sentences_of(event, event.text)
    ]


def settled_sentences(said: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences without the items of lists of what could be, or could be chosen: none of it is said to be so."""
    kept: list[Sentence] = []
    possible = False
    for each in said:
        possible = _POSSIBLE.search(each.text) is not None or (possible and each.listed)
        if not (possible and each.listed) and not _OPTION.match(each.heading):
            kept.append(each)
    return kept


_POSSIBLE = re.compile(
    r"\b(?:options|alternatives|possibilities|possible \w+|(?:could|might|may) be|could (?:either|do)|which of"
    r"|(?:could|might|may|must|probably|likely|either)\b[^.!?]{0,60}\bone of|one of (?:these|those|the following)"
    r"|(?:potential|likely|plausible|alternative)(?: \w+)? (?:explanations|causes|reasons)"
    r"|(?:two|three|four|five|several|some|possible|potential|alternative|a few|a couple of|\d)(?: \w+)? (?:outcomes?|options?"
    r"|approaches|possibilities|ways|choices|scenarios|alternatives|paths|directions|strategies))\b"
    r"[^.!?]*[:?]$",
    re.IGNORECASE,
)
_OPTION = re.compile(r"(?:option|alternative|approach|variant) (?:[a-d]|\d)\b", re.IGNORECASE)


def assertion(text: str, words: int) -> float:
    """Return how much a sentence asserts on its own."""
    if is_talk(text, words):
        return -9.0
    score = float(min(2, occurrences(CAUSE, text)))
    score += 0.7 * bool(TRACED.search(text)) + 0.7 * bool(LIMIT.search(text)) + 0.5 * bool(VERB.search(text))
    score += 0.4 * min(2, occurrences(CODE, text)) + 0.3 * bool(_NUMBER.search(text))
    score -= 1.2 * bool(LEANING.match(text)) + bool(STATUS.search(text)) + 0.8 * bool(GUESS.search(text))
    score -= (
        bool(SLIP.search(text))
        + 0.5 * bool(CHECKS.match(text))
        + 0.4 * bool(SELF.search(text))
        + 0.4 * (not text.endswith((".", "!", ")", "”")))
    )
    score -= 0.6 * bool(_LABELLED.match(text)) + 0.3 * bool(SUBORDINATE.match(text)) + CHANGE_COSTS * bool(CHANGE.match(text))
    fewest, most = _TITLE_WORDS
    return score - 0.5 * max(0, fewest - words) - 0.05 * max(0, words - most)


_NUMBER = re.compile(r"\d")
_LABELLED = re.compile(r"(?:`[^`]{1,60}`|[\w./ '()-]{2,40}?)\s*(?:\s[—–-]{1,2}\s|:\s|→)")
"""A list item that describes its label."""
CHANGE_COSTS = 1.5


def best_of(sentences: Iterable[Sentence]) -> Sentence | None:
    """Return the sentence best suited as a title, if there is one."""
    able = [each for each in sentences if _may_lead(each)]
    return max(able, key=lambda each: assertion(each.text, each.words), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Title:
    """A title, and the logarithm of the odds that it is understood in a list."""

    text: str
    alone: float


def title_among(sentences: Sequence[Sentence], otherwise: Sentence, said: Sequence[Sentence], request: str) -> Title:
    """Return the title that is understood best, made of one of the sentences.

    One that does not name its subject is preceded by it, as the message ``said`` or the ``request`` names it. One that takes
    something back is chosen only for want of another.
    """
    standing = [each for each in sentences if not TAKEN_BACK.search(each.text)]
    able = dict.fromkeys(each for each in standing if _may_name(each))
    if not TAKEN_BACK.search(otherwise.text):
        able = {otherwise: None, **able}
    able = able or dict.fromkeys(standing or [otherwise])
    titles = [(each, _titled(each)) for each in able]
    best = max(titles, key=_rank)
    if best[1].alone >= _UNDERSTOOD:
        return best[1]
    others = [
        (each, Title(text=preceded, alone=title.alone + _NAMED))
        for each, title in titles
        if (title.alone < _LEANING or not says_its_subject(title.text)) and not GUESS.search(title.text)
        if (preceded := preceded_by_subject(title.text, each, said, request))
    ]
    others += [(each, _titled(each, _A_CHANGE)) for each in standing if _may_name_a_change(each)]
    found = max((best, *others), key=_rank)[1]
    reasons = [each for each in (*titles, *others) if gives_a_reason(each[1].text)]
    return found if found.alone >= _FLOOR or not reasons else max(reasons, key=_rank)[1]


def _titled(sentence: Sentence, cost: float = 0.0) -> Title:
    text = asserting_title(without_opening(sentence.text))
    return Title(text=text, alone=stands_alone(text) - cost)


def _may_name_a_change(sentence: Sentence) -> bool:
    text = sentence.text
    changed = CHANGE.match(text) is not None and not CHECKS.match(text) and not _NEW.match(text)
    return changed and CODE.search(text) is not None and not (_DID.search(text) or is_status(text))


_NEW = re.compile(r"new\b", re.IGNORECASE)


def _rank(able: tuple[Sentence, Title]) -> float:
    sentence, title = able
    return title.alone + _LEADS * _may_lead(sentence) + _ASSERTING * assertion(sentence.text, sentence.words)


_UNDERSTOOD, _LEANING, _NAMED, _A_CHANGE = 0.5, 0.0, 0.7, 0.5
_ASSERTING = 0.25
_LEADS = 0.4
"""What a sentence that claims something has before others, in logarithms of odds."""


def _may_name(sentence: Sentence) -> bool:
    text = sentence.text
    if sentence.words < _FEWEST_OF_A_NAME or is_talk(text, sentence.words) or is_status(text) or SLIP.search(text):
        return False
    openings = (PROPOSAL, _NO_OPENING, _POINTS, _WHAT_IS_LEFT, CHANGE, VERB_OF_ORDER)
    return not (any(cue.match(text) for cue in openings) or _DID.search(text) or _WAS_CHANGED.search(text))


_FEWEST_OF_A_NAME = 5
_POINTS = re.compile(r"(?:look|see|check|try|note|what happens|why|how|where|who|whether)\b", re.IGNORECASE)


def worth_to_readers(claim: Claim, title: Title, request: str, *, required: bool = False) -> float:
    """Return the worth of a claim's note with this title, answering ``request``, less what readers would miss in it.

    A title that leans on the session costs by its odds. What is not understood by its title, and what they would probably throw
    away, is worth nothing, unless it names a cause or a person ``required`` it.
    """
    alone = title.alone
    said = [each.text for each in claim.sentences]
    spared = required or any(names_a_cause(each) for each in said)
    dark = alone < _FLOOR and not gives_a_reason(title.text)
    if not spared and (dark or thrown_away(alone, said, request) > _PROBABLY):
        return -math.inf
    cost = _LEANS * max(0.0, _CLEAR - alone)
    return claim.worth - (min(_MOST_OF_A_CAUSE, cost) if spared else cost)


_LEANS, _CLEAR = 0.5, 0.5
_FLOOR = 0.4
_MOST_OF_A_CAUSE = 0.35
_PROBABLY = -1.6
"""Logarithms of odds. Few notes are thrown away, so that of those above even one in six two fifths were."""


_YOU = re.compile(r"\byou(?:r|'\w+)?\b", re.IGNORECASE)
_WILL = re.compile(r"\b(?:will|would|could|should)\b|\b\w+'(?:ll|d)\b", re.IGNORECASE)


_ORDER = re.compile(r"(?:please|then|also|do not|don'?t|avoid)\s", re.IGNORECASE)
_NO_OPENING = re.compile(r"[(*→]|#\d|\d+\s*[(:.)]|only\s[~\d]|(?:pros?|cons?|before|after|e\.g)\W", re.IGNORECASE)


_WAS_CHANGED = re.compile(
    r"\b(?:was|were|been) (?:updated|changed|added|removed|created|renamed|moved|replaced|touched)\b(?! (?:by|in|since)\b)",
    re.IGNORECASE,
)
_WHAT_IS_LEFT = re.compile(r"(?:remaining|current|pending)\b", re.IGNORECASE)
_DID = re.compile(
    r"\b(?:i|we)(?:'ve| have)? (?:also |just |now |then )?(?:\w+ed|made|ran|wrote|sent|kept|left|put|set)\b", re.IGNORECASE
)
"""A report of what the agent did."""


def _may_lead(sentence: Sentence) -> bool:
    text = sentence.text
    if (
        sentence.words < _TITLE_WORDS[0]
        or _NO_OPENING.match(text)
        or LEANING.match(text)
        or CHANGE.match(text)
        or _WAS_CHANGED.search(text)
        or (_STATE.search(text) and not CAUSE.search(text))
        or _DID.search(text)
        or _WHAT_IS_LEFT.match(text)
        or not VERB.search(text)
    ):
        return False
    return assertion(text, sentence.words) >= _ASSERTS


def only_lists_changes(heart: Sequence[Sentence], best: Sentence, asked: str) -> bool:
    """Return whether a message says no more than a commit does: what was changed, and neither why nor what holds from now on."""
    if any(cue.search(each.text) for cue in (CAUSE, TRACED, CHOICE, LIMIT) for each in heart):
        return False
    changes = sum(bool(_CHANGED.search(each.text) or _FILE_FIRST.match(each.text)) for each in heart)
    return (
        (len(heart) >= _FEWEST_CHANGES and changes >= _MOSTLY * len(heart))
        or _TITLE_OF_CHANGE.match(title := asserting_title(best.text)) is not None
        or _FILE_FIRST.match(title) is not None
        or _ASKED_TO_COMMIT.match(asked) is not None
        or any(_UNTRIED.search(each.text) for each in heart)
    )


_FEWEST_CHANGES, _MOSTLY = 3, 0.6
_CHANGED = lazy_regex(
    r"\b(?:added|adds|updated|removed|renamed|moved|replaced|changed|created|extracted|deleted|switched|imported|rewrote|extended"
    r"|wrapped|new|now|fixed)\b",
    re.IGNORECASE,
)
_FILE_FIRST = lazy_regex(r"`?[\w./-]{1,120}\.[a-z]{1,5}`?(?::[\d-]+)?`?\s*[—:-]")
_TITLE_OF_CHANGE = lazy_regex(
    r"(?:Added|Updated|Removed|Renamed|Moved|Replaced|Changed|Created|Fixed|Switched|Wrapped|Now|New|Dropped"
    r"|[A-Z][a-z]+s (?:the|an?|all|any|each|if|on|it))\b"
)
_ASKED_TO_COMMIT = lazy_regex(
    r"\W*(?:(?:ok(?:ay)?|yes|great|good|please|can you|now|and|then|let'?s)\W+){0,4}"
    r"(?:commit|push|merge|(?:open|create) a pr|rebase)\b",
    re.IGNORECASE,
)
_UNTRIED = lazy_regex(r"\b(?:should now|these changes (?:will|should))\b", re.IGNORECASE)


def instructs_the_person(said: Sequence[Sentence]) -> bool:
    """Return whether a message instructs the person what to change: nothing shows that it was done, or that it works."""
    return any(_BY_HAND.search(each.text) for each in said)


_BY_HAND = lazy_regex(
    r"\blet's (?:fix|update|create|add|modify)\b|\bthis (?:will|change will|should) (?:resolve|fix)\b|\bthese changes\b"
    r"|\byou(?:'ll| will)? need to\b|\bmake sure (?:to|you|all)\b|\bhere'?s how\b",
    re.IGNORECASE,
)


def claim_of(said: Sequence[Sentence], asked: str, failures: int) -> Claim | None:
    """Return the claim of the message with the sentences ``said``, answering ``asked`` after this many ``failures``."""
    if _instructs(said):
        return None
    heart: list[Sentence] = []
    size = 0
    for each in said:
        if _leads_on(each):
            heart.append(each)
        if is_talk(each.text, each.words) or PROPOSAL.match(each.text) or is_status(each.text):
            continue
        if size and size + len(each.text) > _HEART:
            break
        heart.append(each)
        size += len(each.text) + 1
    heart = [each for at, each in enumerate(heart) if not _leads_on(each) or (at + 1 < len(heart) and not _leads_on(heart[at + 1]))]
    best = best_of(heart)
    if best is None or sum(each.words for each in heart) < _FEWEST_WORDS:
        return None
    at_work = any(_AT_WORK.search(each.text) for each in said) and not any(CAUSE.search(each.text) for each in heart)
    worth = _worth(heart, best, asked[:_HEARD], failures) - _AT_WORK_COSTS * at_work
    return Claim(sentences=tuple(heart), best=best, worth=worth)


def outcome_of(said: Sequence[Sentence], asked: str, failures: int, requirement: Sentence | None) -> Claim | None:
    """Return what a closing message ``said`` of the request ``asked``, after this many ``failures``.

    It need not claim anything: what a person required and an agent took up is known from then on. A message that ends by announcing
    something closes nothing.
    """
    if not said or _instructs(said) or _goes_on(said[-1].text):
        return None
    claim = claim_of(said, asked, failures)
    begins = next((at for at, each in enumerate(said) if not is_status(each.text)), 0) if claim is not None else 0
    while begins + 1 < len(said) and _is_filler(said[begins]):
        begins += 1
    kept = [each for each in said[begins:] if not (each.text.endswith("?") or OFFER.search(each.text))]
    heart = _within([each for at, each in enumerate(kept) if not each.text.endswith(":") or _introduces(kept, at)], _HEART)
    if not heart or _BEGINS_WORK.match(heart[0].text):
        return None
    if sum(each.words for each in heart) + (requirement.words if requirement else 0) < _FEWEST_WORDS:
        return None
    about = stems(asked)
    best = best_of(heart) or (claim.best if claim else None) or _answering(heart, about) or requirement
    if best is None or any(RETRACTION.search(each.text) for each in said if each.place > best.place):
        return None
    if not asked and (VERB_OF_ORDER.match(best.text) or _TASKS.match(said[0].text)):
        return None
    shared = max(len(each.stems & about) for each in heart)
    return Claim(sentences=tuple(heart), best=best, worth=_worth_of_outcome(said, claim, shared, failures, requirement))


def _is_filler(sentence: Sentence) -> bool:
    """Return whether an opening sentence like "Done." or "Good catch, you're right." says nothing of the matter."""
    return sentence.words <= _WORDS_OF_FILLER and not (CODE.search(sentence.text) or CAUSE.search(sentence.text))


_WORDS_OF_FILLER = 5


_TASKS = re.compile(r"(?:please )?(?:review|focus|investigate|inspect|examine|audit|analy[sz]e|verify|check)\b", re.IGNORECASE)
"""Beginning of a message with which one agent gives another its task, where no person spoke."""


def _introduces(said: Sequence[Sentence], at: int) -> bool:
    """Return whether the sentence at this place leads on to the next one, rather than to code that was left out."""
    return _leads_on(said[at]) and at + 1 < len(said) and not said[at + 1].text.endswith(":")


def _goes_on(text: str) -> bool:
    announces = ANNOUNCING.match(text) or _BEGINS_WORK.match(text) or _AT_WORK.search(text)
    return text.endswith(":") or announces is not None


def _within(said: Sequence[Sentence], limit: int) -> list[Sentence]:
    kept: list[Sentence] = []
    size = 0
    for each in said:
        if size and size + len(each.text) > limit:
            break
        kept.append(each)
        size += len(each.text) + 1
    return kept


def _answering(heart: Sequence[Sentence], about: frozenset[str]) -> Sentence | None:
    """Return the sentence that takes up most of the request, among those that can be read alone."""
    able = [each for each in heart if each.words >= _TITLE_WORDS[0] and _stands_alone(each.text)]
    return max(able, key=lambda each: (len(each.stems & about), assertion(each.text, each.words)), default=None)


def _stands_alone(text: str) -> bool:
    if is_status(text) or SELF.search(text) or SLIP.search(text) or _NO_OPENING.match(text) or text.endswith(("?", ":")):
        return False
    if CHANGE.match(text):
        return CODE.search(text) is not None or names_something(text)
    return VERB.search(text) is not None and not (LEANING.match(text) or HEADLESS.match(text) or STEP.match(text))


def _worth_of_outcome(
    said: Sequence[Sentence], claim: Claim | None, shared: int, failures: int, requirement: Sentence | None
) -> float:
    """Return the worth of an outcome, fitted to labelled sessions of several agents and projects.

    It counts most that the person said how a thing should be, then that the reply takes up their words and says what changed.
    """

    def share(cue: re.Pattern[str]) -> float:
        return sum(bool(cue.search(each.text)) for each in said) / len(said)

    worth = 3.2 + 0.22 * min(1.0, sum(len(each.text) for each in said) / _FULL) + 0.065 * min(5, shared)
    worth += 0.15 * max(0.0, claim.worth - _MODEST) if claim is not None else 0.0
    worth += 0.03 * min(8, sum(occurrences(CODE, each.text) for each in said)) + 0.09 * math.log(1 + failures)
    worth += 0.5 * (requirement is not None) + 0.65 * sum(bool(CHANGE.match(each.text)) for each in said) / len(said)
    return worth - 0.8 * share(GUESS) - 1.6 * share(OFFER)


_FULL = 250
"""Characters of a reply that is not merely a confirmation."""
_MODEST = 2.5
"""Worth of a claim that adds nothing to an outcome."""


def _instructs(said: Sequence[Sentence]) -> bool:
    """Return whether a message tasks another agent: it begins with an order, and goes on with more."""
    orders = [_ORDER.match(each.text) is not None or VERB_OF_ORDER.match(each.text) is not None for each in said]
    return orders[:1] == [True] and sum(orders) * 2 > len(orders) > 1


def is_status(text: str) -> bool:
    """Return whether a sentence says where the work, the repository or another agent stands, and gives no reason."""
    if CAUSE.search(text):
        return False
    return bool(STATUS.search(text) or _STATE.search(text)) or (_FIELD.match(text) is not None and not VERB.search(text))


_STATE = re.compile(
    r"(?<!\w)(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}(?!\w)|(?<!\w)#\d{2,}|https?://(?!localhost|127\.)"
    r"|\b(?:commits?|branch|main|master|pr|worktree)\b`? (?:is|are|was)\b.{0,50}"
    r"\b(?:ahead|behind|open|draft|merged|clean|mergeable)\b|\b(?:behind|ahead of) `?(?:origin|main|master|upstream)\b",
    re.IGNORECASE,
)
"""Commits, tickets and addresses: the repository's own log of what happened when."""
_FIELD = re.compile(r"[\w`][\w `/.-]{1,40}:\s\S.{0,100}$")
"""A label with its value."""


def _leads_on(sentence: Sentence) -> bool:
    """Return whether the sentence introduces the items after it."""
    return sentence.text.endswith(":") and sentence.words >= 3 and not STEP.match(sentence.text) and not OFFER.search(sentence.text)


def _worth(heart: Sequence[Sentence], best: Sentence, asked: str, failures: int) -> float:
    words = sum(each.words for each in heart)
    about, own = stems(asked), frozenset[str]().union(*(each.stems for each in heart))

    def share(cue: re.Pattern[str]) -> float:
        return sum(bool(cue.search(each.text)) for each in heart) / len(heart)

    worth = 0.7 * math.log(1 + words) + 0.25 * assertion(best.text, best.words)
    worth += 0.15 * min(4, sum(occurrences(CAUSE, each.text) for each in heart)) + 0.25 * math.log(1 + failures)
    worth += 0.6 * len(about & own) / max(1, len(about)) + 0.15 * math.log(1 + len(asked.split()))
    changes = sum(bool(CHANGE.match(each.text)) for each in heart) / len(heart)
    worth -= 0.8 * share(SELF) + 0.6 * share(STATUS) + _GUESSED * share(GUESS) + 0.5 * changes
    worth -= (
        _ADDRESSED * share(_YOU)
        + _PLANNED * bool(_WILL.search(best.text))
        + _NEWS_COSTS * bool(_NEWS.search(asserting_title(best.text)))
    )
    return worth - bool(_BEGINS_WORK.match(heart[0].text))


_GUESSED, _ADDRESSED = 2.5, 0.4
"""Costs of sentences that guess, and of those that speak to the person."""
_PLANNED = 0.8
"""Cost of a claim about what will or should be."""
_NEWS_COSTS, _NEWS = 1.0, re.compile(r"\bnow\b", re.IGNORECASE)
"""Cost of a claim about what was different until then: it is what a commit says."""
_AT_WORK_COSTS = 0.9
_AT_WORK = re.compile(
    r"\bI'?(?:m| am) (?:\w+ly |now |also )?(?!assum|think|see|us|miss|read|suggest|propos|recommend)\w+ing\b", re.IGNORECASE
)
"""In a message that goes on with the work: what it claims without a cause is where that stands."""
_BEGINS_WORK = re.compile(r"(?:next,? |now,? |first,? )?(?:i'm (?:going to|\w+ing)|i'll|i will|let me)\b", re.IGNORECASE)


def names_a_cause(text: str) -> bool:
    return bool(TRACED.search(text)) and not (SLIP.search(text) or GUESS.search(text) or text.endswith("?"))


def named_cause(said: Sequence[Sentence]) -> Claim | None:
    """Return the cause that a message within a turn names, with what else it states: what a turn finds is not always said again."""
    heart = [each for each in said if not (each.text.endswith(("?", ":")) or OFFER.search(each.text) or _goes_on(each.text))]
    cause = next((each for each in heart if names_a_cause(each.text) and len(each.stems) >= _FEWEST_STEMS), None)
    if cause is None or sum(each.words for each in heart) < _FEWEST_WORDS or any(RETRACTION.search(each.text) for each in said):
        return None
    return Claim(sentences=tuple(_within(heart, _HEART)), best=best_of(heart) or cause, worth=_FOUND)


def settled_cause(turn: Turn, said: Sequence[Sentence]) -> Claim | None:
    """Return the last cause that the agent names, with its fix or proof: few words suffice if both are there.

    A check that failed before and passes after the cause was named proves it too.
    """
    gone = withdrawn(turn, said)
    named = [at for at, each in enumerate(said) if at not in gone and names_a_cause(each.text)]
    if not named or any(RETRACTION.search(each.text) for each in said[named[-1] + 1 :]):
        return None
    at = named[-1]
    cause = said[at]
    if (
        len(cause.stems) < _FEWEST_STEMS
        or OFFER.search(cause.text)
        or (LEANING.match(cause.text) and not TURNED_OUT.match(cause.text))
    ):
        return None
    following = said[at + 1 : at + 1 + _FOLLOWING]
    after = [each for each in following if not ANNOUNCING.match(each.text) and not each.text.endswith(("?", ":"))]
    proof = next((each for each in after if MENDED.search(each.text) and not GUESS.search(each.text)), None)
    if proof is not None:
        between = after[: after.index(proof)]
        sentences = (cause, *(each for each in between if not is_talk(each.text, each.words)), proof)
    elif MENDED.search(cause.text) or _turned_green(turn, cause):
        sentences = (cause,)
    else:
        return None
    return Claim(sentences=sentences, best=cause, worth=_SETTLED, discarded=tuple(said[place] for place in sorted(gone)))


def settled_choice(said: Sequence[Sentence]) -> Claim | None:
    """Return a sentence in which the agent chose one thing over another and gives the reason."""
    for each in said:
        if CHOSE.search(each.text) and CAUSE.search(each.text) and not is_talk(each.text, each.words):
            return Claim(sentences=(each,), best=each, worth=_SETTLED)
    return None


def withdrawn(turn: Turn, said: Sequence[Sentence]) -> frozenset[int]:
    """Return the sentences with a cause that did not hold: something failed, or was retracted, before another cause was named.

    Only the last of several causes stands; if nothing happened between two of them, they belong together.
    """
    by_event: dict[str, list[int]] = {}
    for at, sentence in enumerate(said):
        by_event.setdefault(sentence.event.id, []).append(at)
    standing: list[int] = []
    gone: list[int] = []
    doubted = False
    for event in turn.events:
        doubted = doubted or event.type is EventType.ERROR or event.status == "failed"
        mine = by_event.get(event.id, [])
        doubted = doubted or any(RETRACTION.search(said[at].text) for at in mine)
        claims = [at for at in mine if CLAIM.search(said[at].text)]
        if claims and doubted:
            gone.extend(standing)
            standing = []
        if claims:
            doubted = False
        standing.extend(claims)
    return frozenset(gone)


def _turned_green(turn: Turn, cause: Sentence) -> bool:
    place = turn.events.index(cause.event)
    checks = [(at, event) for at, event in enumerate(turn.events) if event.type is EventType.TEST_RESULT]
    return any(event.status == "failed" for at, event in checks if at < place) and bool(checks) and checks[-1][1].status == "ok"


def asked_in(turn: Turn) -> str:
    """Return the beginning of what the turn answers, for comparison."""
    return said_by_person(turn.asked)[:_HEARD] if turn.asked else ""


def request_in(turn: Turn) -> str:
    """Return the beginning of a person's request, or of the plan that they approved."""
    if turn.asked is not None:
        return asked_in(turn)
    return turn.events[0].text[:_HEARD] if turn.events[0].type is EventType.DECISION else ""


def is_talk(text: str, words: int) -> bool:
    """Return whether a sentence is a question, offer, announcement or routine report, which claims nothing."""
    if text.endswith(("?", ":")) or OFFER.search(text) or ANNOUNCING.match(text):
        return True
    return words < 12 and bool(STEP.match(text) or STATUS.search(text))
