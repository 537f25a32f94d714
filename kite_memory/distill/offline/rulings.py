"""Decisions that a person makes in a series of brief answers, or by assent.

A thread is a series of answers: each follows an agent's message, none is a question or a momentary order. What they decide together
is one note, in the person's words, with the agent's restatement.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kite_memory.distill.offline.cues import ASKING, BINDING, BOUNDING, CODE, GUESS, OFFER, ORDERING, PASSING, RECOMMENDS, TELLING
from kite_memory.distill.offline.passages import Sentence, Turn, said_by_person, sentences_of
from kite_memory.distill.offline.people import MACHINE, without_assent
from kite_memory.distill.options import options_in, picked
from kite_memory.distill.prose import one_line, stems
from kite_memory.model.event import Event, EventType

_SETTLES = 4
"""Total weight from which a thread's answers count as a rule; see `_weight`."""
_BINDS = 2
_FEWEST_STEMS = 4
_RECAP = 600
_RECAP_WORDS = 5


@dataclass(frozen=True, kw_only=True)
class PersonAnswer:
    """A person's answer in a turn. ``text`` is theirs, or the option that they picked; empty for a bare assent."""

    turn: Turn
    text: str
    weight: int
    offer: Event | None = None
    asked_for: bool = False

    @cached_property
    def reply(self) -> Event | None:
        """Return the agent's last message in the turn."""
        return _last_word(self.turn)


@dataclass(frozen=True, slots=True, kw_only=True)
class RulingThread:
    answers: tuple[PersonAnswer, ...]

    @property
    def settles(self) -> bool:
        """Return whether the answers decide something. A single answer must be plainly binding, since much is said in passing."""
        worded = [each for each in self.answers if each.text]
        alone = len(worded) < 2 and not (worded and worded[0].asked_for and BINDING.search(worded[0].text))
        return (
            not alone
            and sum(each.weight for each in worded) >= _SETTLES
            and len(stems(" ".join(each.text for each in worded))) >= _FEWEST_STEMS
        )

    def up_to_where_it_settles(self) -> "RulingThread | None":
        """Return the shortest beginning that decides something: a note's name depends on it, however long the thread continues."""
        for count in range(1, len(self.answers) + 1):
            if (begun := RulingThread(answers=self.answers[:count])).settles:
                return begun
        return None

    def recap(self) -> tuple[Sentence, ...]:
        """Return the agent's final restatement, unless it is a question or too brief."""
        reply = self.answers[-1].reply
        if reply is None:
            return ()
        sentences: list[Sentence] = []
        size = 0
        for each in sentences_of(reply, reply.text):
            if each.text.endswith("?") or OFFER.search(each.text) or (each.words < _RECAP_WORDS and not CODE.search(each.text)):
                continue
            if sentences and size + len(each.text) > _RECAP:
                break
            sentences.append(each)
            size += len(each.text) + 1
        return tuple(sentences)


def threads(turns: Sequence[Turn]) -> list[RulingThread]:
    found: list[list[PersonAnswer]] = [[]]
    for at, turn in enumerate(turns):
        answer = _answer(turn, turns[at - 1], goes_on=bool(found[-1])) if at else None
        if answer is not None and (answer.asked_for or found[-1]):
            found[-1].append(answer)
        elif found[-1]:
            found.append([])
    return [RulingThread(answers=tuple(answers)) for answers in found if any(each.text for each in answers)]


def _answer(turn: Turn, before: Turn, *, goes_on: bool) -> PersonAnswer | None:
    """Return a turn's answer; ``None`` for a question, an order, pasted text or another subject."""
    if turn.asked is None or ((offer := _last_word(before)) is None and not goes_on):
        return None
    said = one_line(said_by_person(turn.asked))
    if not said or len(said) > _TYPED or turn.asked.text.count("\n") > _LINES or MACHINE.search(said) or _PASTED.search(said):
        return None
    if offer is not None and (choice := picked(said, options_in(offer.text))) is not None:
        more = _PICK_WORDS.sub("", said)
        binds = _weight(more)
        text = f"{choice.text.rstrip(' .;')}. {more}" if binds or len(stems(more)) >= _FEWEST_STEMS else choice.text
        return PersonAnswer(turn=turn, text=text.strip(), weight=max(_BINDS, binds), offer=offer, asked_for=True)
    rest = without_assent(said)
    if not stems(rest):
        return PersonAnswer(turn=turn, text=rest if BINDING.search(rest) else "", weight=0, offer=offer)
    if "?" in said or ASKING.match(rest) or TELLING.match(rest) or PASSING.search(said) or GUESS.search(rest):
        return None
    answers = offer is not None and _ASKS.search(offer.text[-500:]) is not None
    weight = _weight(rest) + (offer is not None and offer.text.rstrip().endswith("?"))
    if (ORDERING.match(rest) and not BINDING.search(rest)) or (not weight and not answers):
        return None
    return PersonAnswer(turn=turn, text=rest, weight=weight, offer=offer, asked_for=answers)


_TYPED, _LINES = 400, 6
_PASTED = re.compile(r"^/|[❯✓✗→↑↓│]|\w\.\w{1,5}:\d+|\b[0-9a-f]{12,}\b|https?://|\S{60}")
_ASKS = re.compile(
    r"\?|\b(?:propos\w*|recommend\w*|suggest\w*|alternativ\w*|options?|ideas?|either|i'd|would|could)\b", re.IGNORECASE
)
"""Words in an agent's message that leave something to decide."""
_PICK_WORDS = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|yes|ye[ap]h?|yep|sure|let'?s|go|do|just|i'd|i would|with|for|option|approach|pick|take|choose|like|to|say"
    r"|the)[\s,:]+){0,6}(?:[a-d]|[1-9]|first|second|third|former|latter)\b(?: one| option)?[\s.,;:!)—–-]*(?:please|then)?[\s.,;:]*",
    re.IGNORECASE,
)


def _weight(text: str) -> int:
    """Return how binding an answer is: an expression that leaves no doubt counts twice."""
    return _BINDS * min(3, len(BINDING.findall(text))) + min(4, len(BOUNDING.findall(text)))


def _last_word(turn: Turn) -> Event | None:
    return next((each for each in reversed(turn.events) if each.type is EventType.ASSISTANT_MESSAGE), None)


def recommended(turn: Turn) -> tuple[Sentence, ...]:
    """Return what the agent's last message of a turn recommends, and the sentence that explains it."""
    offer = _last_word(turn)
    if offer is None:
        return ()
    said = sentences_of(offer, offer.text)
    for at, each in enumerate(said):
        if RECOMMENDS.search(each.text) and not each.text.endswith(("?", ":")) and not OFFER.search(each.text):
            sentences = [each, *(after for after in said[at + 1 : at + 4] if not after.text.endswith(("?", ":")))]
            return tuple(sentences) if sum(sentence.words for sentence in sentences) >= 8 else ()
    return ()


def taken(said: str, before: Turn) -> tuple[Sentence, ...]:
    """Return what the agent's last message says of the one thing that a person's few words choose."""
    offer = _last_word(before)
    chosen = _GOES_WITH.match(said)
    if offer is None or chosen is None or "?" in said or PASSING.search(said):
        return ()
    what = stems(chosen["what"])
    fits = [each for each in sentences_of(offer, offer.text) if what and what <= each.stems and not each.text.endswith(("?", ":"))]
    return tuple(fits[:3])


_GOES_WITH = re.compile(
    r"\W*(?:(?:ok(?:ay)?|yes|ye[ap]h?|yep|no|so|then|right|good|agreed)[\s,.;:—–-]+)*(?:(?:we|i|let'?s)(?:'ll| will)? )?"
    r"(?:go (?:with|for)|stick (?:with|to)|use|take|pick|choose)\s+(?P<what>\S+(?: \S+){0,4}?)(?: then| please| instead)?[.!]*$",
    re.IGNORECASE,
)


def subject_of(thread: RulingThread) -> str:
    """Return what a thread's answers are about: the first code name in them, or in what they answer."""
    for answer in thread.answers:
        for text in (answer.text, answer.offer.text if answer.offer else ""):
            if code := re.search(r"`([\w./:-]{3,40})`", text):
                return code[1]
    return ""


def clauses(text: str) -> list[str]:
    """Return the clauses of a hastily typed text."""
    parts = (part.strip(" ,;:-") for part in re.split(r"(?<=[\w)`'\"])[.;!](?:\s+|$)|\n|,\s+(?=and\b)", text))
    return [_LEADS_IN.sub("", part) for part in parts if part]


_LEADS_IN = re.compile(
    r"^(?:(?:and|but|also|so|then|ok(?:ay)?|yes|ye[ap]h?|yep|no|nope|good|exactly|right|fine|same|well)\b[\s,.:;-]*)+",
    re.IGNORECASE,
)


def named_after(thread: RulingThread) -> str:
    """Return the most binding clause, with its subject if it is too brief to stand alone."""
    able = [clause for answer in thread.answers for clause in clauses(answer.text) if stems(clause) and not clause[0].isdigit()]
    best = max(able, key=lambda clause: (min(6, _weight(clause)) + min(8, len(clause.split())) / 2, -len(clause)), default="")
    subject = subject_of(thread)
    if len(best.split()) < 7 and subject and subject.lower() not in best.lower():
        best = f"{best} (`{subject}`)"
    return best
