"""What an agent established: the claims in its messages, and what came of a request."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kite_memory.distill.offline.scores import note_features, score, text_features, title_features
from kite_memory.distill.offline.wording import (
    ANNOUNCING,
    CAUSE,
    CHANGE,
    CHECKS,
    CHOSE,
    CODE,
    DEICTIC,
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
    asserting_title,
    is_whole,
    said_by_person,
    sentences_of,
)
from kite_memory.distill.parse_answer import TITLE_CHARS
from kite_memory.distill.prose import CLAIM, MENDED, RETRACTION, stems
from kite_memory.model.event import EventType

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
    """A claim. ``best`` is the sentence that its title is made of; ``worth`` is comparable between the claims of any session."""

    sentences: tuple[Sentence, ...]
    best: Sentence
    worth: float
    title: str
    discarded: tuple[Sentence, ...] = ()


def sentences_of_turn(turn: Turn) -> list[Sentence]:
    return [
        sentence
        for event in turn.events
        if event.type is EventType.ASSISTANT_MESSAGE
        for sentence in sentences_of(event, event.text)
    ]


def assertion(text: str, words: int) -> float:
    """Return how much a sentence asserts on its own."""
    if is_talk(text, words):
        return -9.0
    score = float(min(2, _count(CAUSE, text)))
    score += 0.7 * bool(TRACED.search(text)) + 0.7 * bool(LIMIT.search(text)) + 0.5 * bool(VERB.search(text))
    score += 0.4 * min(2, _count(CODE, text)) + 0.3 * bool(_NUMBER.search(text))
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
    return max(able, key=lambda each: assertion(each.text, each.words) - _out_of_place(each.text), default=None)


def _out_of_place(text: str) -> float:
    """Return how unsuitable a sentence is as a title, by its wording, its reference and its length."""
    named = CODE.search(text) is not None or names_something(text)
    title = asserting_title(text)
    score = (
        0.6 * bool(DEICTIC.search(title))
        + 0.6 * bool(_OF_A_LIST.search(title))
        + 0.4 * (len(text) > TITLE_CHARS)
        + 0.6 * bool(SUBORDINATE.match(text))
    )
    score += 0.9 * (len(title.split()) < _TITLE_WORDS[0]) + 1.5 * (not is_whole(title)) + 0.6 * bool(_MOMENT.search(title))
    score += (
        0.6 * bool(_LABEL.match(title))
        + 0.9 * bool(_STATE.search(title))
        + 0.5 * bool(_ORDER.match(title) or VERB_OF_ORDER.match(title))
    )
    score += (
        0.4 * bool(_WILL.search(title))
        + 0.7 * bool(SELF.search(title))
        + 0.5 * (not named)
        + 0.6 * bool(_THE_ONE.match(text) and not CODE.search(text[:60]))
    )
    return (
        score
        + 0.4 * bool(_QUOTED_FIRST.match(text))
        + 1.5 * bool(HEADLESS.match(text) or _NO_SUBJECT.match(text) or _REPORTS.match(text))
    )


_ORDER = re.compile(r"(?:please|then|also|do not|don'?t|avoid)\s", re.IGNORECASE)
_NO_OPENING = re.compile(r"[(*→]|#\d|\d+\s*[(:.)]|only\s[~\d]", re.IGNORECASE)
_OF_A_LIST = re.compile(r"(?<![\w&/])#\d(?!\d)")
"""The number of an item of a list above."""


_WAS_CHANGED = re.compile(
    r"\b(?:was|were|been) (?:updated|changed|added|removed|created|renamed|moved|replaced|touched)\b(?! (?:by|in|since)\b)",
    re.IGNORECASE,
)
_WHAT_IS_LEFT = re.compile(r"(?:remaining|current|pending)\b", re.IGNORECASE)
_DID = re.compile(
    r"\b(?:i|we)(?:'ve| have)? (?:also |just |now |then )?(?:\w+ed|made|ran|wrote|sent|kept|left|put|set)\b", re.IGNORECASE
)
"""A report of what the agent did."""


def names_something(text: str) -> bool:
    """Return whether a sentence has a proper name after its first word."""
    return _PROPER.search(text) is not None


_PROPER = re.compile(r"(?<=[a-z,] )[A-Z][a-zA-Z]{2,}")
_THE_ONE = re.compile(r"(?:the|their|his|her|both|each|two|three|a|an|new|every)\s", re.IGNORECASE)
_NO_SUBJECT = re.compile(
    r"[A-Z][a-z]+(?:izes|ifies) |(?i:question is )"
    r"|(?:\w+ly )?[A-Za-z][a-z]{2,}s (?:(?:the|an?|any|all|both|every|its|their|only|no)\b|[`“])"
)
_REPORTS = re.compile(r"(?:confirmed|verified|failed|works|build|before|after|cost|new|caveat)\b(?=[ ,:])", re.IGNORECASE)
_MOMENT = re.compile(
    r"\b(?:yet|still|currently|remain(?:s|ing)?|pending|unresolved|blockers?|now|at t=|so far|at this point|your|you'd)\b|#\d"
    r"|^(?:current )?status\b",
    re.IGNORECASE,
)
_LABEL = re.compile(r"(?!`)[^`:(]{2,30}(?::| —| –)\s")
_QUOTED_FIRST = re.compile(r"[\"“]")


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
    return Claim(sentences=tuple(heart), best=best, worth=worth, title=asserting_title(best.text))


def outcome_of(said: Sequence[Sentence], asked: str, failures: int, requirement: Sentence | None) -> Claim | None:
    """Return what a closing message ``said`` of the request ``asked``, after this many ``failures``.

    It need not claim anything: what a person required and an agent took up is known from then on. A message that ends by announcing
    something closes nothing.
    """
    if not said or _instructs(said) or _goes_on(said[-1].text):
        return None
    if not asked and (VERB_OF_ORDER.match(said[0].text) or _TASKS.match(said[0].text)):
        return None
    claim = claim_of(said, asked, failures)
    return as_note(said, asked, "outcome", _worth_of_outcome(said, claim, asked, failures, requirement), requirement)


Source = Literal["outcome", "claim", "cause"]

_LEAST_SCORE = -3.0
"""Score below which a sentence is left out of a note's text: thanks, announcements, what was done a moment ago."""
TEXT_IN_TITLE = 0.5
"""Weight of how much a sentence says beside how well it stands alone, in the choice of a title."""
_READ_IN_WORTH = 0.5
"""Weight of the odds that a reader would keep a note, in its worth."""


def as_note(
    said: Sequence[Sentence], asked: str, source: Source, worth: float, requirement: Sentence | None = None
) -> Claim | None:
    """Return what a message says, without the sentences that say nothing, under the title that stands alone best.

    Its worth is raised or lowered by the odds that a reader would keep the note.
    """
    about = stems(asked)
    scores = {each: score("text", text_features(said, at, about)) for at, each in enumerate(said)}
    kept = worth_keeping(said, scores) or (list(said[:1]) if requirement else [])
    if not kept or sum(each.words for each in kept) + (requirement.words if requirement else 0) < _FEWEST_WORDS:
        return None
    titles = [
        (score("title", features), title, each, _UNFIT_COSTS * any(features[name] for name in _UNFIT))
        for each in (*kept, *([requirement] if requirement else []))
        for title in titles_of(each.text)
        if len(title.split()) >= _FEWEST_IN_TITLE and (features := title_features(title, each.text))
    ]
    if not titles:
        return None
    alone, title, best, _ = max(
        titles, key=lambda found: found[0] + TEXT_IN_TITLE * scores.get(found[2], _OF_REQUIREMENT) - found[3]
    )
    if any(RETRACTION.search(each.text) for each in said if each.place > best.place):
        return None
    text = " ".join(each.text for each in kept)
    read = score("note", note_features(text, asked, tuple(scores.values()), alone, source))
    if GUESS.search(title) or (requirement is None and source != "cause" and (alone < _LEAST_TITLE or read < _LEAST_NOTE)):
        return None
    worth += _READ_IN_WORTH * (max(read, _READ_OF_REQUIREMENT) if requirement else read)
    return Claim(sentences=tuple(kept), title=title, best=best, worth=worth)


_LEAST_TITLE, _LEAST_NOTE = -1.2, -0.9
"""Log-odds below which no note is made, of a title that stands alone and of a note that is worth its place.

What a person requires and a cause that is named are kept nevertheless.
"""
_READ_OF_REQUIREMENT = -1.0
"""Least odds of a note with a person's requirement, which is worth something however little the agent says of it."""
_UNFIT_COSTS = 3.0
_UNFIT = (
    "goes on", "headless first", "verb first", "change first", "past form first", "reports", "self", "you", "pronoun first",
    "leaning first", "order", "moment", "guess",
)  # fmt: skip
"""Features of a title that is taken only where there is no other."""
_FEWEST_IN_TITLE = 4
_OF_REQUIREMENT = -1.0
"""Score of a person's requirement as a part of a note's text."""


def worth_keeping(said: Sequence[Sentence], scores: Mapping[Sentence, float]) -> list[Sentence]:
    """Return the first sentences worth keeping, as far as there is room, each with the line that leads on to it."""
    kept: set[int] = set()
    room = _HEART
    for at, each in enumerate(said):
        if scores[each] < _LEAST_SCORE or is_status(each.text) or each.text.endswith(("?", ":")) or OFFER.search(each.text):
            continue
        if kept and len(each.text) > room:
            break
        kept.add(at)
        room -= len(each.text) + 1
    leading = {at - 1 for at in kept if at and at - 1 not in kept and _leads_on(said[at - 1])}
    return [said[at] for at in sorted(kept | leading)]


def titles_of(text: str) -> Iterator[str]:
    """Yield a sentence as a title, and its parts that could be one."""
    yield asserting_title(text)
    for joint in _JOINTS.finditer(text[:_JOINTS_WITHIN]):
        for part in (text[joint.end() :], text[: joint.start()]):
            if len(part.split()) >= _TITLE_WORDS[0]:
                yield asserting_title(part)


_JOINTS = re.compile(r":\s|\s[—–-]{1,2}\s|;\s")
_JOINTS_WITHIN = 300


_TASKS = re.compile(r"(?:please )?(?:review|focus|investigate|inspect|examine|audit|analy[sz]e|verify|check)\b", re.IGNORECASE)
"""Beginning of a message with which one agent gives another its task, where no person spoke."""


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


def _worth_of_outcome(
    said: Sequence[Sentence], claim: Claim | None, asked: str, failures: int, requirement: Sentence | None
) -> float:
    """Return the worth of an outcome, fitted to labelled sessions of several agents and projects.

    It counts most that the person said how a thing should be, then that the reply takes up their words and says what changed.
    """

    def share(cue: re.Pattern[str]) -> float:
        return sum(bool(cue.search(each.text)) for each in said) / len(said)

    about = stems(asked)
    shared = max(len(each.stems & about) for each in said)
    worth = 3.2 + 0.22 * min(1.0, sum(len(each.text) for each in said) / _FULL) + 0.065 * min(5, shared)
    worth += 0.15 * max(0.0, claim.worth - _MODEST) if claim is not None else 0.0
    worth += 0.03 * min(8, sum(_count(CODE, each.text) for each in said)) + 0.09 * math.log(1 + failures)
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
    worth += 0.15 * min(4, sum(_count(CAUSE, each.text) for each in heart)) + 0.25 * math.log(1 + failures)
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
_AT_WORK_COSTS = 0.5
_AT_WORK = re.compile(
    r"\bI'?(?:m| am) (?:\w+ly |now |also )?(?!assum|think|see|us|miss|read|suggest|propos|recommend)\w+ing\b", re.IGNORECASE
)
"""In a message that goes on with the work: what it claims without a cause is where that stands."""
_WILL = re.compile(r"\b(?:will|would|could|should)\b|\b\w+'(?:ll|d)\b", re.IGNORECASE)
_BEGINS_WORK = re.compile(r"(?:next,? |now,? |first,? )?(?:i'm (?:going to|\w+ing)|i'll|i will|let me)\b", re.IGNORECASE)
_YOU = re.compile(r"\byou(?:r|'\w+)?\b", re.IGNORECASE)


def names_a_cause(text: str) -> bool:
    return bool(TRACED.search(text)) and not (SLIP.search(text) or GUESS.search(text) or text.endswith("?"))


def named_cause(said: Sequence[Sentence]) -> Claim | None:
    """Return the cause that a message within a turn names, with what else it states: what a turn finds is not always said again."""
    heart = [each for each in said if not (each.text.endswith(("?", ":")) or OFFER.search(each.text) or _goes_on(each.text))]
    cause = next((each for each in heart if names_a_cause(each.text) and len(each.stems) >= _FEWEST_STEMS), None)
    if cause is None or sum(each.words for each in heart) < _FEWEST_WORDS or any(RETRACTION.search(each.text) for each in said):
        return None
    best = best_of(heart) or cause
    return Claim(sentences=tuple(_within(heart, _HEART)), best=best, worth=_FOUND, title=asserting_title(best.text))


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
    return Claim(
        sentences=sentences,
        best=cause,
        worth=_SETTLED,
        title=asserting_title(cause.text),
        discarded=tuple(said[place] for place in sorted(gone)),
    )


def settled_choice(said: Sequence[Sentence]) -> Claim | None:
    """Return a sentence in which the agent chose one thing over another and gives the reason."""
    for each in said:
        if CHOSE.search(each.text) and CAUSE.search(each.text) and not is_talk(each.text, each.words):
            return Claim(sentences=(each,), best=each, worth=_SETTLED, title=asserting_title(each.text))
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


def _count(cue: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in zip(cue.finditer(text), range(4), strict=False))
