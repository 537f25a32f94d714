"""What a person decides and prefers, as their words show: rulings in brief answers or by assent, refusals, wishes.

A thread is a series of brief answers: each follows an agent's message, none is a question.
"""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from kite_memory.distill.asked_to_keep import VERB, taken_back
from kite_memory.distill.offline.claims import assertion
from kite_memory.distill.offline.people import EVERYWHERE, FOR_NOW, MACHINE, asks, directs, is_firm, wishes, without_assent
from kite_memory.distill.offline.titles import asserting_title, title_of
from kite_memory.distill.offline.wording import (
    ASKING,
    BINDING,
    BOUNDING,
    CAUSE,
    CODE,
    GUESS,
    OFFER,
    ORDERING,
    PASSING,
    RECOMMENDS,
    SELF,
    TELLING,
    OfflineDraft,
    Sentence,
    Turn,
    in_own_words,
    joined,
    rejected_in,
    said_by_person,
    sentences_of,
    without_opening,
)
from kite_memory.distill.parse_answer import BODY_CHARS
from kite_memory.distill.prose import asks_something_else, one_line, options_in, picked, stems
from kite_memory.model.event import Event, EventType
from kite_memory.model.note import SAID_TO_A_REFUSAL
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip

_SETTLES = 4
"""Total weight from which a thread's answers count as a rule; see `_weight`."""
_UNASKED = 3
"""Answers that make a rule although the agent asked for none of them."""
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
        answered = [each for each in self.answers if each.text]
        asked = sum(each.asked_for for each in answered)
        if len(answered) < 2 and not (asked and BINDING.search(answered[0].text)):
            return False
        return (
            (asked > 0 or len(answered) >= _UNASKED)
            and sum(each.weight for each in answered) + (asked if len(answered) > 1 else 0) >= _SETTLES
            and len(stems(" ".join(each.text for each in answered))) >= _FEWEST_STEMS
        )

    def up_to_where_it_settles(self) -> "RulingThread | None":
        """Return the shortest beginning that decides something: a note's name depends on it, however long the thread continues."""
        for count in range(1, len(self.answers) + 1):
            if (begun := RulingThread(answers=self.answers[:count])).settles:
                return begun
        return None

    def parts(self) -> list["RulingThread"]:
        """Return the thread divided where an answer that the agent did not ask for begins another subject."""
        found: list[list[PersonAnswer]] = [[]]
        for answer in self.answers:
            if found[-1] and _begins_another(answer, found[-1]):
                found.append([])
            found[-1].append(answer)
        return [RulingThread(answers=tuple(each)) for each in found]

    def said(self) -> list[str]:
        """Return the answers in the person's words; a few words come after the question that they answer."""
        return [
            f"{question} “{answer.text.rstrip(' .')}.”" if (question := _question_of(answer)) else f"“{answer.text.rstrip(' .')}.”"
            for answer in self.answers
            if answer.text
        ]

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


def _begins_another(answer: PersonAnswer, before: Sequence[PersonAnswer]) -> bool:
    """Return whether an answer rules about something of its own, and is complete without those before it."""
    shared = stems(answer.text) & stems(" ".join(each.text for each in before))
    return not answer.asked_for and len(answer.text.split()) > _FEW_WORDS and answer.weight >= _BINDS and len(shared) <= 1


def _question_of(answer: PersonAnswer) -> str:
    """Return the agent's last question, if the answer says too little without it."""
    if answer.offer is None or len(answer.text.split()) > _FEW_WORDS:
        return ""
    asked = [each.text for each in sentences_of(answer.offer, answer.offer.text)][-1:]
    return asked[0] if asked and asked[0].endswith("?") and len(asked[0]) <= _SHORT_QUESTION else ""


_FEW_WORDS, _SHORT_QUESTION = 8, 90


def threads(session_turns: Sequence[Turn]) -> list[RulingThread]:
    found: list[list[PersonAnswer]] = [[]]
    for at, turn in enumerate(session_turns):
        answer = _answer(turn, session_turns[at - 1], goes_on=bool(found[-1])) if at else None
        if answer is not None:
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
        says = BINDING.search(rest) is not None or (goes_on and any(map(str.isdigit, rest)))
        return PersonAnswer(turn=turn, text=rest if says else "", weight=0, offer=offer)
    if asks(rest) or "?" in said or TELLING.match(rest) or PASSING.search(said) or GUESS.search(rest):
        return None
    answers = offer is not None and _ASKS.search(offer.text[-500:]) is not None
    weight = _weight(rest) + (offer is not None and offer.text.rstrip().endswith("?"))
    goes_on = goes_on and len(rest.split()) <= _BRIEF_ANSWER
    if (ORDERING.match(rest) and not BINDING.search(rest)) or not (weight or answers or goes_on):
        return None
    return PersonAnswer(turn=turn, text=rest, weight=weight, offer=offer, asked_for=answers)


_TYPED, _LINES = 400, 6
_BRIEF_ANSWER = 10
"""Most words of a further answer that has no word of a rule."""
_PASTED = lazy_regex(r"^/|[❯✓✗→↑↓│]|\w\.\w{1,5}:\d+|\b[0-9a-f]{12,}\b|https?://|\S{60}")
_ASKS = lazy_regex(
    r"\?|\b(?:propos\w*|recommend\w*|suggest\w*|alternativ\w*|options?|ideas?|either|i'd|would|could)\b", re.IGNORECASE
)
"""Words in an agent's message that leave something to decide."""
_PICK_WORDS = lazy_regex(
    r"^\W*(?:(?:ok(?:ay)?|yes|ye[ap]h?|yep|sure|let'?s|go|do|just|i'd|i would|with|for|option|approach|pick|take|choose|like|to"
    r"|say|the)[\s,:]+){0,6}(?:[a-d]|[1-9]|first|second|third|former|latter)\b(?: one| option)?[\s.,;:!)—–-]*(?:please"
    r"|then)?[\s.,;:]*",
    re.IGNORECASE,
)


def _weight(text: str) -> int:
    """Return how binding an answer is: an expression that leaves no doubt counts twice."""
    return _BINDS * min(3, len(BINDING.findall(text))) + min(4, len(BOUNDING.findall(text)))


def _last_word(turn: Turn) -> Event | None:
    return next((each for each in reversed(turn.events) if each.type is EventType.ASSISTANT_MESSAGE), None)


def recommended(turn: Turn) -> tuple[Sentence, ...]:
    """Return what the agent's last message of a turn recommends, and the sentences that explain it.

    Nothing if it advises against something, takes its advice back, or closes with a question about something else.
    """
    offer = _last_word(turn)
    if offer is None:
        return ()
    said = sentences_of(offer, offer.text)
    if said and asks_something_else(said[-1].text):
        return ()
    for at, each in enumerate(said):
        if RECOMMENDS.search(each.text) and not each.text.endswith(("?", ":")) and not OFFER.search(each.text):
            advice = [part for part in _REASON.split(each.text) if RECOMMENDS.search(part)] or [each.text]
            if any(map(_UNADVISED.search, advice)) or any(_REGRETS.search(after.text) for after in said[at:]):
                return ()
            sentences = [each, *(after for after in said[at + 1 : at + 4] if not after.text.endswith(("?", ":")))]
            return tuple(sentences) if sum(sentence.words for sentence in sentences) >= 8 else ()
    return ()


_REASON = lazy_regex(r"(?<=\w),?\s(?:because|since|as|so)\s", re.IGNORECASE)
_UNADVISED = lazy_regex(
    r"\b(?:not|never|wouldn't|don't|didn't|won't|can't|cannot|no longer|hardly|hesitate to) (?:\w+ ){0,2}?"
    r"(?:suggest|propose|recommend\w*|lean|go (?:with|for)|use|keep|set|pick|prefer)\b"
    r"|\b(?:i|we|was|were|had|have|previously|earlier|originally|initially|first) (?:\w+ )?(?:recommended|suggested|proposed)\b"
    r"|\b(?:recommendation|suggestion|proposal|decision) was\b|\bnot (?:the )?recommended\b",
    re.IGNORECASE,
)
_REGRETS = lazy_regex(
    r"\b(?:(?:that|this|it|which|my [\w ]{2,30}) (?:was|is|were) (?:a mistake|wrong|mistaken|a bad (?:idea|call))"
    r"|no longer (?:recommend|think|believe)|scratch that|take (?:it|that) back|(?:i was|i'm) (?:wrong|mistaken))\b",
    re.IGNORECASE,
)


def taken(said: str, before: Turn) -> tuple[Sentence, ...]:
    """Return what the agent's last message says of the one thing that a person's few words choose."""
    offer = _last_word(before)
    chosen = _GOES_WITH.match(said)
    if offer is None or chosen is None or "?" in said or PASSING.search(said) or taken_back([said]):
        return ()
    what = stems(chosen["what"])
    fits = [each for each in sentences_of(offer, offer.text) if what and what <= each.stems and not each.text.endswith(("?", ":"))]
    return tuple(fits[:3])


_GOES_WITH = lazy_regex(
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


_LEADS_IN = lazy_regex(
    r"^(?:(?:and|but|also|so|then|ok(?:ay)?|yes|ye[ap]h?|yep|no(?=\s*[,.:;-])|nope|good|exactly|right|fine|same"
    r"|well)\b(?!-\w)[\s,.:;-]*)+",
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


_QUOTED = 260


def preferences_of(turn: Turn, before: Turn | None, fresh: Container[str]) -> Iterator[OfflineDraft]:
    if turn.asked is not None and turn.asked.id in fresh:
        yield from (*_chosen(turn, before), *_refusals(turn, before), *_objections(turn, before), *_manners(turn))
    yield from _wishes(turn, fresh)


def _chosen(turn: Turn, before: Turn | None) -> Iterator[OfflineDraft]:
    """Yield a decision from an answer that begins with what the agent offered, and goes on with its reason or terms."""
    offer = _last_word(before) if before is not None else None
    last = [each.text for each in sentences_of(offer, offer.text)][-2:] if offer is not None else []
    if turn.asked is None or offer is None or not any(_OFFERS.search(each) for each in last):
        return
    if any(_ERRAND.search(each) for each in last):
        return
    said = one_line(said_by_person(turn.asked))
    answer = _TAKES.sub("", without_opening(without_assent(said)))
    name, _, reason = _FIRST_CLAUSE.sub("\0", answer, count=1).partition("\0")
    if len(said) > _TYPED or "?" in said or MACHINE.search(said) or PASSING.search(said) or GUESS.search(said):
        return
    name = name.removesuffix(" please")
    words = _WORD.findall(_POLITE.sub("", name).lower())
    if picked(said, options_in(offer.text)) is not None or not any(each.isalpha() for each in words):
        return
    if len(words) > _SHORT_NAME or not set(words) <= {*_WORD.findall(offer.text.lower())} or len(stems(reason)) < _BINDS:
        return
    yield OfflineDraft(
        rule="choice",
        kind="decision",
        title=asserting_title(f"{name[:1].upper()}{name[1:]}{', ' if CAUSE.match(reason) else ': '}{reason.strip()}"),
        body=f"Offered “{clip(joined(last), _QUOTED)}”, the person chose: {joined([clip(answer, _QUOTED)])}",
        evidence=(offer.id, turn.asked.id),
        importance=2,
        origin="user",
    )


_OFFERS = lazy_regex(
    r"^(?!(?:did|was|were|has|have|had|do you (?:see|get))\b).*\bor\b.*\?$"
    r"|^(?=.*\b(?:should|shall|would|could|can|want|prefer|like|better|rather|need|use|go|pick|choose|take)\b)"
    r".*\b(?:which|what|how)\b.*\?$|\b(?:options?|alternatives?|either|suggest|recommend|propose|lean)\b|\bi'd\b",
    re.IGNORECASE,
)
_ERRAND = lazy_regex(
    r"\b(?:commit|push|proceed|start|begin|continue|merge|deploy now|open a|next|want me to|issue|branch|pr|keep)\b", re.IGNORECASE
)
_TAKES = lazy_regex(
    r"^\W*(?:no,? )?(?:(?:let'?s|we|i)(?:'ll| will|'d)? )?(?:(?:go|stick|stay) (?:with|for)|use|take|pick|choose|prefer|keep)\s+",
    re.IGNORECASE,
)
_FIRST_CLAUSE = lazy_regex(r"\s*(?:[.,;:!]\s+|\s[—–-]+\s|\s(?=(?:because|since|as|so)\b))\s*", re.IGNORECASE)
_WORD, _POLITE = (
    lazy_regex(r"[\w'’-]+"),
    lazy_regex(r"\b(?:a|an|the|please|then|is|enough|for (?:this|that|now)|it)\b", re.IGNORECASE),
)
_SHORT_NAME = 4


def _refusals(turn: Turn, before: Turn | None) -> Iterator[OfflineDraft]:
    """Yield a preference from words with which the person stopped a call, together with that call."""
    if turn.asked is None or before is None:
        return
    last = [event for event in before.events[-4:] if event.type is not EventType.RESUME_POINT]
    words = said_by_person(turn.asked)
    if not last or last[-1].status != "denied":
        return
    refused = last[-1]
    reply = next((event for event in turn.events if event.type is EventType.ASSISTANT_MESSAGE), None)
    echo = _echo(reply)
    if directs(words) and not words.rstrip().endswith("?") and len(stems(words)) >= 3:
        title = title_of(words)
    elif _is_done_over(turn, words, refused, reply) and echo and not SELF.search(what := _WILL_DO.sub("", echo[0].text)):
        title = title_of(what)
    else:
        return
    said_to = f"{SAID_TO_A_REFUSAL} {refused.tool or 'a tool'}{_object_of(before, refused)}."
    body = [f"“{clip(one_line(words), _QUOTED)}”, {said_to}"]
    evidence = [turn.asked.id, refused.id]
    if reply is not None:
        body.append(joined(each.text for each in echo[:2]))
        evidence.append(reply.id)
    yield OfflineDraft(
        rule="refusal",
        kind="preference",
        title=title,
        body=" ".join(body).rstrip(),
        evidence=tuple(evidence),
        importance=3 if is_firm(words) else 2,
        origin="user",
        rejected=tuple(rejected_in([words]))[:2],
        everywhere=bool(EVERYWHERE.search(words)),
    )


def _echo(reply: Event | None) -> list[Sentence]:
    """Return the whole sentences with which the agent takes up the person's words."""
    said = sentences_of(reply, reply.text)[:8] if reply is not None else ()
    return [each for each in said if each.words >= 6 and not each.text.endswith((":", "?"))]


def _is_done_over(turn: Turn, words: str, refused: Event, reply: Event | None) -> bool:
    """Return whether a few words, be they a question, made the agent give way and make the refused call in another way."""
    if reply is None or len(words) > _FEW:
        return False
    if _SORRY.match(reply.text):
        return True
    return (
        not ASKING.match(words)
        and _COMPLIES.match(reply.text) is not None
        and any(event.tool == refused.tool and event.call for event in turn.events)
    )


_FEW = 120
_WILL_DO = lazy_regex(
    r"^(?:(?:yes|ok(?:ay)?|sure|right|got it|good (?:point|call|catch)|you'?re right)\W+)*(?:let me|i(?:'ll| will))\s+",
    re.IGNORECASE,
)
_SORRY = lazy_regex(r"\W*(?:sorry|apologies|my (?:mistake|bad)|i apologi[sz]e)\b", re.IGNORECASE)
_COMPLIES = lazy_regex(
    r"\W*(?:yes|yep|sure|right|got it|good (?:point|call|catch)|you'?re right|sorry|of course|understood)\b", re.IGNORECASE
)


def _object_of(turn: Turn, event: Event) -> str:
    calls = [call for call in turn.events if call.call and call.call == event.call]
    called = next((call.command or call.path for call in calls if call.command or call.path), "")
    return f" (`{clip(one_line(called[:300]), 80)}`)" if called else ""


def _wishes(turn: Turn, fresh: Container[str]) -> Iterator[OfflineDraft]:
    for event in turn.events:
        for wish in wishes(event) if event.id in fresh else ():
            yield OfflineDraft(
                rule="wish",
                kind="decision" if _OF_ONE_PLACE.search(wish.text) and not is_firm(wish.text) else "preference",
                title=title_of(without_opening(wish.text)),
                body=in_own_words(wish.text, BODY_CHARS),
                evidence=(event.id,),
                importance=3 if is_firm(wish.text) else 2,
                origin="user",
                rejected=tuple(rejected_in([wish.text]))[:2],
                everywhere=bool(EVERYWHERE.search(wish.text)),
            )


_OF_ONE_PLACE = lazy_regex(
    r"\b(?:[\w.-]+/){2,}|\b[\w.-]+/[\w-]+\.\w{1,5}\b|(?<![\w.])@?[\w.-]+/(?=\s|$)|\b(?:in|from|under|inside|into|of|to"
    r"|for) [\w.-]+/[\w.-]+|\b(?!(?:node|next|nuxt|vue|react|three)\.js\b)[\w-]{2,}\.[a-z]{1,4}\b|\bthis (?:file|function|method"
    r"|test|class|page|one|branch|pr)\b",
    re.IGNORECASE,
)
"""A file, a package, or what is before the person: a wish that names it is about that alone."""


def _manners(turn: Turn) -> Iterator[OfflineDraft]:
    """Yield what a person asks of the form in which work is handed over: commits, branches, reviews, tests, texts."""
    if turn.asked is None:
        return
    said = one_line(said_by_person(turn.asked))
    if (
        len(said) > _BRIEF
        or not _WORK.search(said)
        or MACHINE.search(said)
        or FOR_NOW.search(said)
        or CODE.search(_PATHS.sub("", said))
    ):
        return
    sentence = next((text for each in sentences_of(turn.asked, said) if _is_manner(text := without_opening(each.text))), None)
    if sentence is None:
        return
    yield OfflineDraft(
        rule="manner",
        kind="preference",
        title=title_of(_COURTESY.sub("", sentence).rstrip("?")),
        body=in_own_words(said, _QUOTED),
        evidence=(turn.asked.id,),
        importance=1,
        origin="user",
    )


_BRIEF = 320
_PATHS = lazy_regex(r"@?\b[\w-]+\.md\b|#\d+|\S*/$", re.IGNORECASE)
_COURTESY = lazy_regex(
    r"^(?:(?:can|could|would|will) you (?:please )?|please )?(?:also )*|(?<=give) me\b|\s+please\b", re.IGNORECASE
)
_THINGS = (
    r"(?:commit(?: message)?s?|pull requests?|[pm]rs?|branch(?:es)?|change ?log(?:\.md)?|release notes?|docs?|documentation"
    r"|readme|adrs?|comments?|threads?|tests?|issues?|tickets?|summar(?:y|ies)|descriptions?|messages?|reviews?|worktrees?"
    r"|explanations?|write-?ups?|tasks?|files?|sentences?|paragraphs?|line breaks?)\b"
)
_WORK = lazy_regex(rf"\b(?:{_THINGS}|commit\b|review\b|squash\b)", re.IGNORECASE)
_FORM = (
    r"(?:small\w*|short\w*|brief|concise|tiny|simple|mean\w{0,3}ful|separate|logical|atomic|self[- ]contained"
    r"|readable|plain|temporary|artifi\w+)"
)
_MANNER = lazy_regex(
    rf"\b(?:one|single|two|three) (?:commit|pull request|pr|branch|sentence)s?\b(?! or)"
    rf"|\b{_FORM}\s+(?:[\w-]+\s+){{0,2}}?{_THINGS}|\b(?:without|w/o|no)\s+(?:[\w-]+\s+){{0,2}}?{_THINGS}|\b(?:don'?t|do not"
    rf"|never|needs no|no need to)\s+\w+|\b{_THINGS} (?:first|separately|on the go)\b|\b(?:manually|myself|by hand"
    rf"|in separate)\b|\bcommit mean\w+",
    re.IGNORECASE,
)
_ASKS_FOR = lazy_regex(
    rf"(?:(?:can|could|would|will) (?:you|we)|please|let'?s|(?:i|we)(?:'d| would)? (?:like|want|prefer)|make sure|ensure|also"
    rf"|i'?ll|do|respond|{VERB})\b",
    re.IGNORECASE,
)


def _is_manner(text: str) -> bool:
    if not 4 <= len(text.split()) <= 24 or GUESS.search(text) or not _ASKS_FOR.match(text) or _TO_SEE.search(text):
        return False
    return _MANNER.search(text) is not None


_TO_SEE = lazy_regex(
    r"^(?:(?:can|could) (?:you|we)|please|let'?s)?\s*(?:also\s+)?(?:look|check|see|review|show|find|tell|explain)\b"
    r"|\b(?:again|these|those|you (?:\w+ed|said))\b|^(?:let'?s )?(?!give)\w+ (?:it|them|this|that|\d)\b"
    r"|^(?:(?:can|could|would|will) (?:you|we)|please|let'?s)?\s*(?:also\s+)?(?:add|write)\b"
    r"(?!.{0,40}\b(?:commit|message|description)s?\b)",
    re.IGNORECASE,
)
"""Requests to look at something, and what points at something that a later reader cannot see."""


def _objections(turn: Turn, before: Turn | None) -> Iterator[OfflineDraft]:
    """Yield what a person objects to in how the agent works, if the agent concedes it."""
    if turn.asked is None or before is None:
        return
    words = _ASIDE.sub("", one_line(said_by_person(turn.asked)))
    reply = next((event for event in turn.events if event.type is EventType.ASSISTANT_MESSAGE), None)
    if reply is None or len(words) > _BRIEF or MACHINE.search(words) or len(words.split()) < 4 or _ASKS_ABOUT.match(words):
        return
    if not _GIVES_WAY.match(reply.text[:200]) or not _METHOD.search(words):
        return
    title = _title_of_objection(turn.asked, words, reply)
    if not title:
        return
    conceded = _concession(reply)
    yield OfflineDraft(
        rule="objection",
        kind="preference",
        title=title,
        body=f"The person: “{clip(words, _QUOTED)}” The agent: {joined(each.text.rstrip(' :') for each in conceded)}",
        evidence=(turn.asked.id, reply.id),
        importance=2,
        origin="user",
    )


_ASKS_ABOUT = lazy_regex(
    r"\W*(?:hm+\W+)?(?:how|what|where|which|who|when|is|does|can|could|do (?:we|you) (?:have|know))\b", re.IGNORECASE
)


def _title_of_objection(asked: Event, words: str, reply: Event) -> str:
    """Return how the agent says that it should be, or what it admits at once, else what the person states; empty for neither."""
    said = sentences_of(reply, reply.text)[:12]
    for at, each in enumerate(said[1:-1], 1):
        if each.text.endswith(":") and _SHOULD.search(each.text):
            lead = each.text.rstrip(": ")
            return title_of(lead if each.words >= _WHOLE else f"{lead} {said[at + 1].text[:1].lower()}{said[at + 1].text[1:]}")
    if len(said) > 1 and assertion(said[1].text, said[1].words) >= _ADMITS:
        return asserting_title(said[1].text)
    if "?" in words or GUESS.search(words):
        return ""
    own = [without_opening(each.text) for each in sentences_of(asked, words)]
    return title_of(next((text for text in own if _METHOD.search(text)), own[0] if own else words))


_ADMITS, _WHOLE = 0.4, 6


def _concession(reply: Event) -> list[Sentence]:
    """Return how the agent concedes, and how it says that the thing should be done."""
    said = [each for each in sentences_of(reply, reply.text)[:12] if not each.text.endswith("?")]
    said = [each for each in said if each.heading == said[0].heading]
    better = [at for at, each in enumerate(said[1:], 1) if _SHOULD.search(each.text)][:1]
    at = better[0] if better else 1
    return [*said[:1], *said[at : at + (3 if said[at : at + 1] and said[at].text.endswith(":") else 2)]]


_SHOULD = lazy_regex(
    r"\b(?:should|must|instead|rather|need(?:s|ed)? to|you want|true \w+|proper(?:ly)?|never|always|verify|what we)\b",
    re.IGNORECASE,
)
_ASIDE = lazy_regex(r"^Q:\s+|\s+[\U0001F300-\U0001FAFF]+")
_GIVES_WAY = lazy_regex(
    r"\W*(?:(?:yes|no|agreed|right|ha|ok(?:ay)?)\W+(?:and )?)*(?:you(?:'re| are) (?:\w+ )?right|(?:good|fair|great)"
    r" (?:point|catch|call|challenge)|i'?m not sure|sorry|my mistake|i was (?:wrong|sloppy|inconsistent|guessing|speculating))",
    re.IGNORECASE,
)
_METHOD = lazy_regex(
    r"\b(?:guess(?:ing|work)|are you sure|assum(?:e|es|ed|ing)|verif\w+|evidence|proof|prove[ns]?|(?:just|only) test\w*"
    r"|duplicat\w*|(?:tests?|testing) (?:first|that|are|is)|re-?us(?:e|ing)|over-?\w*complicat\w*|over-?engineer\w*|agreeable"
    r"|doesn'?t mean|(?:whole|entire) (?:idea|point)|jump\w* to|in the plan|the plan (?:is|was|says)|read(?:able|s)|unnecessary"
    r"|conventions?|inconsisten\w*)\b",
    re.IGNORECASE,
)
"""Words about how the work is done, rather than about its subject."""
