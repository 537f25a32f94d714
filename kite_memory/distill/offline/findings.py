"""What came of a turn: the few sentences of the agent's that say it, found by their words and by what the turn comes back to."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kite_memory.distill.offline.cues import (
    ANNOUNCING,
    CAUSE,
    CHOSE,
    GUESS,
    OFFER,
    POINTING,
    SLIP,
    STATUS,
    STEP,
    TRACED,
    salience,
)
from kite_memory.distill.offline.passages import Sentence, Turn, said_by_person, sentences_of
from kite_memory.distill.prose import stems
from kite_memory.distill.retractions import CLAIM, MENDED, RETRACTION
from kite_memory.model.event import EventType

MOST_SENTENCES = 4
MOST_WORDS = 85
_OFTEN = 5
_FEWEST_STEMS = 3
_FOLLOWING = 4
"""Sentences after a cause among which the one that proves it is looked for."""
_HEARD = 3_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``sentences`` as they were said, ``best`` the one that says most and can stand alone, ``score`` their mean salience.

    ``discarded`` named causes that did not hold.
    """

    sentences: tuple[Sentence, ...]
    best: Sentence
    score: float
    discarded: tuple[Sentence, ...] = ()


def sentences_of_turn(turn: Turn) -> list[Sentence]:
    return [
        sentence
        for event in turn.events
        if event.type is EventType.ASSISTANT_MESSAGE
        for sentence in sentences_of(event, event.text)
    ]


def finding_of(turn: Turn, said: Sequence[Sentence]) -> Finding | None:
    """At most four sentences, each saying something that the better ones do not."""
    withdrawn = _withdrawn(turn, said)
    often: Counter[str] = Counter()
    for sentence in said:
        often.update(sentence.stems)
    prompt = stems(said_by_person(turn.asked)[:_HEARD]) if turn.asked else frozenset()
    scored = sorted(
        (
            (salience(sentence, prompt, _centre(sentence, often)), at, sentence)
            for at, sentence in enumerate(said)
            if sentence.stems and not is_talk(sentence) and at not in withdrawn
        ),
        key=lambda each: (-each[0], each[1]),
    )
    chosen: list[tuple[float, int, Sentence]] = []
    words = 0
    known: set[str] = set()
    for score, at, sentence in scored:
        if len(chosen) == MOST_SENTENCES or words >= MOST_WORDS * 4 // 5 or (chosen and score < 0):
            break
        if chosen and words + sentence.words > MOST_WORDS:
            continue
        if len(sentence.stems & known) > 0.7 * len(sentence.stems):
            continue
        chosen.append((score, at, sentence))
        words += sentence.words
        known |= sentence.stems
    if not chosen:
        return None
    standing = [sentence for _, _, sentence in chosen if not POINTING.match(sentence.text)]
    return Finding(
        sentences=tuple(sentence for _, _, sentence in sorted(chosen, key=lambda each: each[1])),
        best=standing[0] if standing else chosen[0][2],
        score=sum(score for score, _, _ in chosen) / len(chosen),
        discarded=tuple(said[at] for at in sorted(withdrawn)),
    )


def _withdrawn(turn: Turn, said: Sequence[Sentence]) -> frozenset[int]:
    """Which sentences name a cause that did not hold: something failed, or was taken back, before another cause was named.

    Only the last of several causes stands; where nothing happened between two of them, they belong together.
    """
    told: dict[str, list[int]] = {}
    for at, sentence in enumerate(said):
        told.setdefault(sentence.event.id, []).append(at)
    standing: list[int] = []
    withdrawn: list[int] = []
    doubted = False
    for event in turn.events:
        doubted = doubted or event.type is EventType.ERROR or event.status == "failed"
        mine = told.get(event.id, [])
        doubted = doubted or any(RETRACTION.search(said[at].text) for at in mine)
        claims = [at for at in mine if CLAIM.search(said[at].text)]
        if claims and doubted:
            withdrawn.extend(standing)
            standing = []
        if claims:
            doubted = False
        standing.extend(claims)
    return frozenset(withdrawn)


def settled_cause(turn: Turn, said: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """The last cause that the agent names, with what mended or proved it: few words are enough where both are there.

    A check that failed before and passes after the cause was named proves it too.
    """
    withdrawn = _withdrawn(turn, said)
    named = [at for at, each in enumerate(said) if at not in withdrawn and _names_a_cause(each.text)]
    if not named or any(RETRACTION.search(each.text) for each in said[named[-1] + 1 :]):
        return ()
    at = named[-1]
    cause = said[at]
    if len(cause.stems) < _FEWEST_STEMS or OFFER.search(cause.text):
        return ()
    following = said[at + 1 : at + 1 + _FOLLOWING]
    after = [each for each in following if not ANNOUNCING.match(each.text) and not each.text.endswith(("?", ":"))]
    proof = next((each for each in after if MENDED.search(each.text) and not GUESS.search(each.text)), None)
    if proof is not None:
        between = after[: after.index(proof)]
        return (cause, *(each for each in between if not is_talk(each)), proof)
    return (cause,) if MENDED.search(cause.text) or _turned_green(turn, cause) else ()


def _names_a_cause(text: str) -> bool:
    return bool(TRACED.search(text)) and not (SLIP.search(text) or GUESS.search(text) or text.endswith("?"))


def settled_choice(said: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """A sentence in which the agent chose one thing over another and says why."""
    return tuple(each for each in said if CHOSE.search(each.text) and CAUSE.search(each.text) and not is_talk(each))[:1]


def _turned_green(turn: Turn, cause: Sentence) -> bool:
    place = turn.events.index(cause.event)
    checks = [(at, event) for at, event in enumerate(turn.events) if event.type is EventType.TEST_RESULT]
    return any(event.status == "failed" for at, event in checks if at < place) and bool(checks) and checks[-1][1].status == "ok"


def _centre(sentence: Sentence, often: Counter[str]) -> float:
    """How much of the sentence the turn comes back to, 0 to 1."""
    return sum(min(1.0, (often[stem] - 1) / (_OFTEN - 1)) for stem in sentence.stems) / max(1, len(sentence.stems))


def is_talk(sentence: Sentence) -> bool:
    """Questions, offers, announcements and reports of routine: none of it is a finding."""
    text = sentence.text
    if text.endswith(("?", ":")) or OFFER.search(text) or ANNOUNCING.match(text):
        return True
    return sentence.words < 12 and bool(STEP.match(text) or STATUS.search(text))
