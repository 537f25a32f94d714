"""Preferences: what a person refuses, wishes, objects to, and how they ask for work to be handed over."""

import re
from collections.abc import Container, Iterator

from kite_memory.distill.asked_to_keep import VERB
from kite_memory.distill.offline.cues import ASKING, CODE, GUESS, STATUS
from kite_memory.distill.offline.draft import OfflineDraft, joined
from kite_memory.distill.offline.passages import Sentence, Turn, said_by_person, sentences_of
from kite_memory.distill.offline.people import EVERYWHERE, FOR_NOW, MACHINE, directs, is_firm, wishes
from kite_memory.distill.offline.wording import in_own_words, rejected_in, title_of, without_opening
from kite_memory.distill.prose import clip, one_line, stems
from kite_memory.model.event import Event, EventType
from kite_memory.model.record import SAID_TO_A_REFUSAL

_QUOTED = 260


def preferences_of(turn: Turn, before: Turn | None, fresh: Container[str]) -> Iterator[OfflineDraft]:
    if turn.asked is not None and turn.asked.id in fresh:
        yield from (*_refusals(turn, before), *_objections(turn, before), *_manners(turn))
    yield from _wishes(turn, fresh)


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
    if (not directs(words) or words.rstrip().endswith("?") or len(stems(words)) < 3) and not _is_done_over(
        turn, words, refused, reply
    ):
        return
    said_to = f"{SAID_TO_A_REFUSAL} {refused.tool or 'a tool'}{_object_of(before, refused)}."
    body = [f"“{clip(one_line(words), _QUOTED)}”, {said_to}"]
    evidence = [turn.asked.id, refused.id]
    if reply is not None:
        echo = [each for each in sentences_of(reply, reply.text)[:8] if each.words >= 6 and not each.text.endswith((":", "?"))]
        body.append(joined(each.text for each in echo[:2]))
        evidence.append(reply.id)
    yield OfflineDraft(
        rule="refusal",
        kind="preference",
        title=title_of(words)
        if len(stems(words)) >= 2 and not ASKING.match(words)
        else title_of(f"Refused a call of {refused.tool or 'a tool'}{_object_of(before, refused)}"),
        body=" ".join(body).rstrip(),
        evidence=tuple(evidence),
        importance=3 if is_firm(words) else 2,
        origin="user",
        rejected=tuple(rejected_in([words]))[:2],
        everywhere=bool(EVERYWHERE.search(words)),
    )


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
_SORRY = re.compile(r"\W*(?:sorry|apologies|my (?:mistake|bad)|i apologi[sz]e)\b", re.IGNORECASE)
_COMPLIES = re.compile(
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
                kind="preference",
                title=title_of(without_opening(wish.text)),
                body=in_own_words(wish.text, _QUOTED),
                evidence=(event.id,),
                importance=3 if is_firm(wish.text) else 2,
                origin="user",
                rejected=tuple(rejected_in([wish.text]))[:2],
                everywhere=bool(EVERYWHERE.search(wish.text)),
            )


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
    done = _response(turn, stems(said))
    words = in_own_words(said, _QUOTED)
    yield OfflineDraft(
        rule="manner",
        kind="preference",
        title=title_of(_COURTESY.sub("", sentence)),
        body=f"{words} The agent: {joined(each.text for each in done)}" if done else words,
        evidence=tuple(dict.fromkeys((turn.asked.id, *(each.event.id for each in done)))),
        importance=1,
        origin="user",
    )


_BRIEF = 320
_PATHS = re.compile(r"@?\b[\w-]+\.md\b|#\d+|\S*/$", re.IGNORECASE)
_COURTESY = re.compile(r"^(?:(?:can|could|would|will) you (?:please )?|please )?(?:give me |also )*|\s+please\b", re.IGNORECASE)
_THINGS = (
    r"(?:commit(?: message)?s?|pull requests?|[pm]rs?|branch(?:es)?|change ?log(?:\.md)?|release notes?|docs?|documentation|readme"
    r"|adrs?|comments?|threads?|tests?|issues?|tickets?|summar(?:y|ies)|descriptions?|messages?|reviews?|worktrees?|explanations?"
    r"|write-?ups?|tasks?|files?|sentences?|paragraphs?|line breaks?)\b"
)
_WORK = re.compile(rf"\b(?:{_THINGS}|commit\b|review\b|squash\b)", re.IGNORECASE)
_FORM = (
    r"(?:small\w*|short\w*|brief|concise|tiny|simple|mean\w{0,3}ful|separate|logical|atomic|draft|self[- ]contained"
    r"|readable|plain|temporary|artifi\w+)"
)
_MANNER = re.compile(
    rf"\b(?:one|single|two|three) (?:commit|pull request|pr|branch|sentence)s?\b(?! or)|\b{_FORM}\s+(?:[\w-]+\s+){{0,2}}?{_THINGS}"
    rf"|\b(?:without|w/o|no)\s+(?:[\w-]+\s+){{0,2}}?{_THINGS}|\b(?:don'?t|do not|never|needs no|no need to)\s+\w+"
    rf"|\b{_THINGS} (?:first|before|separately|on the go|manually|directly|as well|only)\b"
    rf"|\b(?:respond|reply|answer)\w*\s.{{0,20}}(?:comments?|threads?|reviews?)\b|\b(?:manually|myself|by hand|in separate)\b"
    rf"|\bcommit\b.{{0,15}}\b(?:and|,)\s.{{0,12}}(?:change ?log|docs?|readme|comments?|reply|tests)\b|\bcommit mean\w+",
    re.IGNORECASE,
)
_ASKS_FOR = re.compile(
    rf"(?:(?:can|could|would|will) (?:you|we)|please|let'?s|(?:i|we)(?:'d| would)? (?:like|want|prefer)|make sure|ensure|also"
    rf"|i'?ll|do|respond|{VERB})\b",
    re.IGNORECASE,
)


def _is_manner(text: str) -> bool:
    if not 4 <= len(text.split()) <= 40 or GUESS.search(text) or not _ASKS_FOR.match(text) or _TO_SEE.search(text):
        return False
    return _MANNER.search(text) is not None


_TO_SEE = re.compile(
    r"^(?:(?:can|could) (?:you|we)|please|let'?s)?\s*(?:also\s+)?(?:look|check|see|review|show|find|tell|explain)\b"
    r"|\b(?:again|these|those|you (?:\w+ed|said))\b|^(?:let'?s )?(?!give)\w+ (?:it|them)\b",
    re.IGNORECASE,
)
"""Requests to look at something, and what points at something that a later reader cannot see."""


def _response(turn: Turn, about: frozenset[str]) -> list[Sentence]:
    """Return the sentence of the agent's messages that shares most words with the request, and the next one."""
    best: list[Sentence] = []
    for event in turn.events:
        if event.type is not EventType.ASSISTANT_MESSAGE:
            continue
        said = [each for each in sentences_of(event, event.text)[:6] if not _REPORT.search(each.text)]
        for at, each in enumerate(said):
            if len(each.stems & about) > (len(best[0].stems & about) if best else 0):
                best = said[at : at + 2]
    return best


_REPORT = re.compile(rf"[?:]$|\b[0-9a-f]{{7,40}}\b|{STATUS.pattern}", re.IGNORECASE)


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
    conceded = _concession(reply)
    yield OfflineDraft(
        rule="objection",
        kind="preference",
        title=title_of(without_opening(words)),
        body=f"The person: “{clip(words, _QUOTED)}” The agent: {joined(each.text.rstrip(' :') for each in conceded)}",
        evidence=(turn.asked.id, reply.id),
        importance=2,
        origin="user",
    )


_ASKS_ABOUT = re.compile(
    r"\W*(?:hm+\W+)?(?:how|what|where|which|who|when|is|does|can|could|do (?:we|you) (?:have|know))\b", re.IGNORECASE
)


def _concession(reply: Event) -> list[Sentence]:
    """Return how the agent concedes, and how it says that the thing should be done."""
    said = [each for each in sentences_of(reply, reply.text)[:12] if not each.text.endswith("?")]
    said = [each for each in said if each.heading == said[0].heading]
    better = [at for at, each in enumerate(said[1:], 1) if _SHOULD.search(each.text)][:1]
    at = better[0] if better else 1
    return [*said[:1], *said[at : at + (3 if said[at : at + 1] and said[at].text.endswith(":") else 2)]]


_SHOULD = re.compile(
    r"\b(?:should|must|instead|rather|need(?:s|ed)? to|you want|true \w+|proper(?:ly)?|never|always|verify|what we)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"^Q:\s+|\s+[\U0001F300-\U0001FAFF]+")
_GIVES_WAY = re.compile(
    r"\W*(?:(?:yes|no|agreed|right|ha|ok(?:ay)?)\W+(?:and )?)*(?:you(?:'re| are) (?:\w+ )?right|(?:good|fair|great)"
    r" (?:point|catch|call|challenge)|i'?m not sure|sorry|my mistake|i was (?:wrong|sloppy|inconsistent|guessing|speculating))",
    re.IGNORECASE,
)
_METHOD = re.compile(
    r"\b(?:guess(?:ing|work)|are you sure|assum(?:e|es|ed|ing)|verif\w+|evidence|proof|prove[ns]?|(?:just|only) test\w*|duplicat\w*"
    r"|(?:tests?|testing) (?:first|that|are|is)|re-?us(?:e|ing)|over-?\w*complicat\w*|over-?engineer\w*|agreeable|doesn'?t mean"
    r"|(?:whole|entire) (?:idea|point)|jump\w* to|in the plan|the plan (?:is|was|says)|read(?:able|s)|unnecessary|conventions?"
    r"|inconsisten\w*)\b",
    re.IGNORECASE,
)
"""Words about how the work is done, rather than about its subject."""
