"""Quality gate: which items of a record are refused, and which become proposed notes for a person's review.

Each verdict and each doubt has a reason from a small set, to be counted. All decisions depend only on an item, its evidence and the
events around it; what the vault already holds is the planner's concern.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from kite_memory.distill.parse_answer import is_the_persons
from kite_memory.distill.prose import (
    CLAIM,
    MENDED,
    Retraction,
    options_in,
    picked,
    proven,
    retractions,
    sentences,
    stems,
    stems_in_order,
    withdrawn,
)
from kite_memory.model.event import Event, EventType, Provenance
from kite_memory.model.note import Decision, Insight, Origin, Preference, Record, RecordItem, Topic
from kite_memory.text import lazy_regex


class GateVerdict(StrEnum):
    QUOTES_THE_PROMPT = "quotes the prompt"
    PLAY_BY_PLAY = "play-by-play"
    TRIVIAL = "trivial"
    ECHO = "echo of an injected memory"
    INSTRUCTION = "an instruction, not a fact"
    UNSUPPORTED = "not supported by its evidence"
    RESTATES = "says what the code or a commit says"
    WITHDRAWN = "withdrawn later in the session"


class Doubt(StrEnum):
    """Why an item becomes a proposed note."""

    HARDLY_SUPPORTED = "its evidence says little of it"
    NEVER_NAMED = "it names what was never mentioned"
    NOT_THE_PERSONS_WORD = "a tool said it, not the person"
    PERHAPS_WITHDRAWN = "perhaps withdrawn later in the session"
    UNPROVEN = "a cause that nothing has confirmed yet"


PROPOSED = "proposed: "
"""Prefix of a doubt among the verdicts."""

_READ = 20_000
_SHINGLE = 5
_WORD = lazy_regex(r"[^\W_]+")


def shingles(text: str) -> frozenset[str]:
    """Return every run of five words; texts that share some quote one another."""
    words = _WORD.findall(text.lower())
    return frozenset(" ".join(words[at : at + _SHINGLE]) for at in range(len(words) - _SHINGLE + 1))


def apply_quality_gate(
    record: Record, events: Mapping[str, Event], prompt: frozenset[str], provenance: Provenance | None = None
) -> tuple[Record, tuple[str, ...]]:
    """Return the record without refused items, and the verdicts on these; doubts are among the verdicts, with the prefix
    `PROPOSED`.

    ``events`` are the session's known events, in order; ``prompt`` holds the prompt's `shingles`; ``provenance`` knows everything
    that the session read, and what other sessions of the project did.
    """
    verdicts: list[str] = []
    borrowed_parts = _foreign_parts(record.items(), provenance)
    sources = _Sources(events=tuple(events.values()), foreign=_whole(borrowed_parts), foreign_symptoms=_symptoms(borrowed_parts))
    topics: list[Topic] = []
    for topic in record.topics:
        kept: list[RecordItem] = []
        for item in topic.items:
            evidence = [events[id] for id in item.evidence if id in events]
            honest = replace(item, origin="tool" if id(item) in sources.foreign else sources.origin(item, evidence))
            borrowed = honest.origin == "user" and not _a_person_says(item, evidence)
            if borrowed:
                honest = replace(honest, origin="assistant")
            verdict = rejection_reason(honest, evidence, prompt, before=sources.before(item)) or sources.against(honest)
            if verdict is not None:
                verdicts.append(verdict)
                continue
            if borrowed:
                doubt = None if _was_agreed_on(item, evidence) else Doubt.NOT_THE_PERSONS_WORD
            else:
                doubt = Doubt.NOT_THE_PERSONS_WORD if honest.origin != item.origin else None
            if sources.is_borrowed_symptom(item) or (honest.origin == "assistant" and sources.a_tool_ruled_it(item)):
                doubt = Doubt.NOT_THE_PERSONS_WORD
            doubt = doubt or sources.doubt(honest, evidence)
            kept.append(replace(honest, doubt=doubt) if doubt else honest)
            verdicts.extend([PROPOSED + doubt] if doubt else [])
        if kept:
            topics.append(replace(topic, items=tuple(kept), summary=topic.summary if _harmless(topic.summary, prompt) else ""))
    insights = tuple(text for text in record.cross_topic_insights if topics and _harmless(text, prompt))
    return replace(record, topics=tuple(topics), cross_topic_insights=insights), tuple(verdicts)


def origin_of(item: RecordItem, events: Sequence[Event], provenance: Provenance | None = None) -> Origin:
    """Return the origin of an item that an agent saves without evidence: "tool" if a tool said it first in these ``events``."""
    return "tool" if id(item) in foreign((item,), provenance) else _Sources(events=events).origin(item, ())


def foreign(items: Sequence[RecordItem], provenance: Provenance | None) -> frozenset[int]:
    """Return the items (by `id`) that mostly repeat what a tool or a file said before, and no person has said."""
    return _whole(_foreign_parts(items, provenance))


_SYMPTOM = -1


def _whole(parts: Iterable[tuple[int, int]]) -> frozenset[int]:
    return frozenset(item for item, thought in parts if thought != _SYMPTOM)


def _symptoms(parts: Iterable[tuple[int, int]]) -> frozenset[int]:
    return frozenset(item for item, thought in parts if thought == _SYMPTOM)


def _foreign_parts(items: Sequence[RecordItem], provenance: Provenance | None) -> frozenset[tuple[int, int]]:
    """Return which thoughts of which items (by `id`) are mostly foreign. A symptom quotes a tool that failed, and may."""
    if provenance is None or not items:
        return frozenset()
    parts = [(at, *part) for at, item in enumerate(items) for part in _parts(item)]
    traces = provenance.traces([text for _, _, text in parts])
    weights: dict[tuple[int, int], list[int]] = {}
    for (at, thought, _), trace in zip(parts, traces, strict=True):
        if trace.pairs >= _TELLING_PAIRS:
            weight = weights.setdefault((at, thought), [0, 0])
            weight[0] += trace.pairs
            said = trace.foreign if thought == _SYMPTOM else max(trace.foreign, trace.failure)
            if said >= _FOREIGN and trace.person < _FOREIGN:
                weight[1] += trace.pairs
    return frozenset((id(items[at]), thought) for (at, thought), (whole, taken) in weights.items() if taken >= _MOSTLY * whole > 0)


def _parts(item: RecordItem) -> Iterator[tuple[int, str]]:
    """Yield an item's sentences, each with the number of its thought, then its title and body together, and its symptom."""
    thoughts = [item.body]
    if isinstance(item, Decision):
        thoughts += [f"{each.alternative}: {each.reason}" for each in item.rejected]
    for number, thought in enumerate(thoughts):
        yield from ((number, sentence) for paragraph in thought.split("\n") for sentence in sentences(paragraph))
    yield len(thoughts), f"{item.title}. {item.body}"
    if isinstance(item, Insight) and item.symptom:
        yield _SYMPTOM, item.symptom


_TELLING_PAIRS = 3
_FOREIGN = 0.6
"""Share of a sentence's pairs of words that are together in one place of a tool's output."""
_MOSTLY = 0.5
"""Share of a thought, by its pairs, that such sentences make up."""


def _harmless(text: str, prompt: frozenset[str]) -> bool:
    return not (
        _ECHO.search(text) or _HIJACK.search(text) or _ADDRESSED_TO_AN_AI.search(text) or _quotes(text, frozenset(), prompt)
    )


def rejection_reason(
    item: RecordItem, evidence: Iterable[Event], prompt: frozenset[str], *, before: Iterable[Event] = (), terse: bool = False
) -> GateVerdict | None:
    """Return why an item is refused, or ``None``. What it says may also be in the events ``before`` its evidence.

    ``terse``: it was saved explicitly, so few words are enough if they are specific.
    """
    evidence = tuple(evidence)
    said = "\n".join(_said(event) for event in evidence)
    content = "\n".join(_texts_of(item))
    if _ECHO.search(content):
        return GateVerdict.ECHO
    if _quotes(content, shingles(said), prompt):
        return GateVerdict.QUOTES_THE_PROMPT
    if _HIJACK.search(content) or (item.origin != "user" and _ADDRESSED_TO_AN_AI.search(content)):
        return GateVerdict.INSTRUCTION
    if item.origin == "tool" and _orders(item):
        return GateVerdict.INSTRUCTION
    if _is_play_by_play(item.body) and not (isinstance(item, Preference) and item.origin == "user"):
        return GateVerdict.PLAY_BY_PLAY  # a person's preference is stated with what was done against it
    said_of = f"{item.title} {item.body}" if item.origin == "user" and not terse else item.body  # its body may be the reason alone
    telling = stems(said_of) - (frozenset() if isinstance(item, Preference) else _ROUTINE)
    if len(telling - _VAGUE if terse else telling) < (2 if terse or item.origin == "user" else 3):
        return GateVerdict.TRIVIAL  # how a person wants commits made is no routine, and people are brief: "always answer in German"
    if _support(item, "\n".join((said, *map(_said, before)))) < _NOT_SUPPORTED:
        return GateVerdict.UNSUPPORTED
    if item.origin != "user" and (_HEADLINE.match(item.title) or not stems(_CODE.sub(" ", item.body))):
        return GateVerdict.RESTATES
    if item.origin == "assistant" and _orders(item) and _only_a_tool_says(item, evidence):
        return GateVerdict.INSTRUCTION
    return None


_NOT_SUPPORTED = 0.08
"""Share of an item's words in its evidence below which the evidence does not support it.

Of 299 notes that people wrote, 1 has less; with random events of the same session as evidence, 93.
"""
_HARDLY_SUPPORTED = 0.25
"""The same share, below which the support is in doubt. Of those notes 12 have less; with random events, 223."""


def _support(item: RecordItem, said: str) -> float:
    own = stems(f"{item.title} {item.body}")
    return len(own & stems(said)) / len(own) if own else 0.0


def _only_a_tool_says(item: RecordItem, evidence: Iterable[Event]) -> bool:
    """Return whether an item's words are in a tool's output and hardly in anybody's own words."""
    own = stems(f"{item.title} {item.body}")
    people, tools = set[str](), set[str]()
    for event in evidence:
        (tools if event.role == "tool" and event.status != "denied" else people).update(stems(_said(event)))
    return bool(own) and len(own & people) < 0.3 * len(own) <= len(own & tools) - len(own & people)


def _a_person_says(item: RecordItem, evidence: Sequence[Event]) -> bool:
    """Return whether the person's own words in the evidence are about the item; having written in the same event is not enough."""
    own = stems(f"{item.title} {item.body}")
    theirs = [event for event in evidence if is_the_persons(event)]
    if _picks(own, theirs, evidence):
        return True
    if not _say(stems(item.title), theirs, _OF_THE_TITLE):  # they wrote about another part of it
        return False
    return _say(own, theirs, _IN_THEIR_WORDS) or any(
        _rules(sentence, said, own) for event in theirs for sentence in sentences(event.text[:_READ]) if (said := stems(sentence))
    )


def _rules(sentence: str, said: frozenset[str], own: frozenset[str]) -> bool:
    """Return whether the person's sentence is what the item is about: it sets a rule, is covered entirely, or shares many words."""
    shared = len(said & own)
    if shared < _FEW or shared < _OF_THEIR_WORDS * len(said):
        return False
    return shared >= _MANY or (shared >= _OF_THE_ITEM * len(own) and (shared == len(said) or _RULES.search(sentence) is not None))


def _picks(own: frozenset[str], theirs: Sequence[Event], evidence: Sequence[Event]) -> bool:
    """Return whether the person picks one of the options that an agent offered, and the item is that option."""
    offers = [options for event in evidence if event.role == "assistant" and (options := options_in(event.text))]
    choices = (picked(event.text, options) for event in theirs for options in offers)
    return any(
        choice is not None and len(stems(choice.text) & own) >= _OF_THE_OPTION * len(stems(choice.text)) for choice in choices
    )


def _was_agreed_on(item: RecordItem, evidence: Sequence[Event]) -> bool:
    """Return whether the person agreed to what the agent proposed. A preference must be partly in the person's own words."""
    own = stems(f"{item.title} {item.body}")
    theirs = [event for event in evidence if is_the_persons(event)]
    if isinstance(item, Preference):
        return _say(own, theirs, _PARTLY)
    return _say(own, [*theirs, *(event for event in evidence if event.role == "assistant")], _IN_THEIR_WORDS)


def _say(own: frozenset[str], events: Iterable[Event], share: float) -> bool:
    said = frozenset[str]().union(*(stems(_said(event)) for event in events))
    return len(own & said) >= share * len(own)


_OF_THE_TITLE = 0.15
"""Least share of a title's words that the person's events contain together."""
_IN_THEIR_WORDS = 0.33
"""Least share of an item's words that the person's events contain together."""
_PARTLY = 0.2
_OF_THE_OPTION = 0.6
"""Share of the words of a picked option that the item has."""
_OF_THEIR_WORDS = 0.5
"""Share of the words of a person's sentence that the item has: people are brief."""
_FEW = 2
"""Least number of words that a person's sentence shares with the item."""
_MANY = 5
"""Number of shared words that suffices without any other sign."""
_OF_THE_ITEM = 0.15
"""Share of the item's words that suffices if the sentence has no other words or is a rule."""
_RULES = lazy_regex(
    r"\b(?:always|never|must|should|shall|only|instead|rather|prefer\w*|want\w*|need\w*|from now on|no|not|don'?t|won'?t|stop"
    r"|keep|leave|let'?s|go with|use|make sure|immer|nie|nur|kein\w*|nicht|bitte)\b",
    re.IGNORECASE,
)


def _origin(item: RecordItem, evidence: Sequence[Event]) -> Origin:
    """Return the origin that the evidence allows: a person's "go on" next to a tool's output is not the person's statement."""
    return "tool" if item.origin == "user" and _only_a_tool_says(item, evidence) else item.origin


@dataclass(frozen=True, kw_only=True)
class _Sources:
    """Context of the session around its items, computed once for all of them and only if needed."""

    events: Sequence[Event]
    foreign: frozenset[int] = frozenset()
    foreign_symptoms: frozenset[int] = frozenset()

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {event.id: at for at, event in enumerate(self.events)}

    @cached_property
    def _places_of_words(self) -> Sequence[tuple[Event, Mapping[str, Sequence[int]]]]:
        """The words' places, by stem, for each event with text or a command."""
        return tuple((event, stems_in_order(_said(event))) for event in self.events if event.text or event.command)

    def origin(self, item: RecordItem, evidence: Sequence[Event]) -> Origin:
        """Return the true origin of an item, whatever it claims: "tool" if a tool's output said it first and the person did not.

        An agent that repeats a web page, a README or a package has not concluded it itself.
        """
        claimed = _origin(item, evidence)
        if claimed == "tool" or self._a_tool_said_first(f"{item.title} {item.body}"):
            return "tool"
        rejected = item.rejected if isinstance(item, Decision) else ()
        if any(self._a_tool_said_first(f"{each.alternative} {each.reason}") for each in rejected if len(stems(each.reason)) >= 3):
            return "tool"
        symptom = item.symptom if isinstance(item, Insight) else ""  # text quoted from a tool is the tool's, requests in it too
        asks = any(_ORDER.match(symptom, start.end()) for start in _SENTENCE_START.finditer(symptom))
        return "tool" if asks and self.is_borrowed_symptom(item) else claimed

    def is_borrowed_symptom(self, item: RecordItem) -> bool:
        """Return whether the symptom was in the output of a tool that did not fail: then it is a claim, and no sign of failure."""
        if not isinstance(item, Insight) or len(stems(item.symptom)) < 3:
            return False
        return id(item) in self.foreign_symptoms or self._a_tool_said_first(item.symptom, not_failing=True)

    def a_tool_ruled_it(self, item: RecordItem) -> bool:
        """Return whether a decision or preference was in a tool's output first, whatever reason is given for it."""
        rules = isinstance(item, Decision | Preference) and len(stems(item.title)) >= 3
        return rules and self._a_tool_said_first(item.title)

    def _a_tool_said_first(self, text: str, *, not_failing: bool = False) -> bool:
        own = stems(text)
        within = _ROOM_TO_SAY_IT * len(_WORD.findall(text))
        before = 0.0
        first = False
        looked_at = False
        for event, places in self._places_of_words:
            share = _share_in_one_place(own, places, within) if len(own & places.keys()) >= _SAYS_SOME_OF_IT * len(own) else 0.0
            if event.role == "user" and share >= _SAYS_IT:
                return False
            if event.type is EventType.TOOL_RESULT:
                looked_at = _IMAGE.search(event.text) is not None
            elif event.role == "user":
                looked_at = False
            if event.role != "tool" or (not_failing and _reports_failure(event)):
                if looked_at and share >= _SAYS_IT and before < _NEARLY_SAYS_IT * share:
                    first = True  # text in an image cannot be compared
                before = max(before, share)
            elif share >= _SAYS_IT and before < _NEARLY_SAYS_IT * share:
                first = True
        return first

    @cached_property
    def _taken_back(self) -> Sequence[Retraction]:
        return tuple(retractions(self.events))

    @cached_property
    def _commits(self) -> Sequence[frozenset[str]]:
        return tuple(stems(event.command[:4_000]) for event in self.events if _COMMITS.search(event.command[:400]))

    @cached_property
    def _text(self) -> str:
        return "\n".join(_said(event) for event in self.events).lower()

    def _last(self, item: RecordItem) -> int:
        return max((self._places[id] for id in item.evidence if id in self._places), default=0)

    def before(self, item: RecordItem) -> Iterator[Event]:
        """Yield what was said and done just before each event of a preference's evidence: a correction names what it corrects."""
        if not isinstance(item, Preference):
            return
        for place in (self._places[id] for id in item.evidence if id in self._places):
            yield from [event for event in self.events[max(0, place - _JUST_BEFORE) : place] if event.role != "tool"]

    def against(self, item: RecordItem) -> GateVerdict | None:
        own = stems(item.body)
        if item.origin != "user" and own and any(len(own & commit) >= _SAME_AS_A_COMMIT * len(own) for commit in self._commits):
            return GateVerdict.RESTATES
        if _is_a_theory(item) and withdrawn(f"{item.title} {item.body}", self._last(item), self._taken_back, surely=True):
            return GateVerdict.WITHDRAWN
        return None

    def doubt(self, item: RecordItem, evidence: Iterable[Event]) -> Doubt | None:
        said = [*evidence, *self.before(item)]
        if _support(item, "\n".join(_said(event) for event in said)) < _HARDLY_SUPPORTED:
            return Doubt.HARDLY_SUPPORTED
        names = list(dict.fromkeys(match.group().strip("`").lower() for match in _NAME.finditer(item.body)))[:40]
        strange = sum(not self._mentions(name) for name in names)
        if strange >= 2 and strange * 3 > len(names):
            return Doubt.NEVER_NAMED
        if not _is_a_theory(item):
            return None
        last = self._last(item)
        if withdrawn(f"{item.title} {item.body}", last, self._taken_back):
            return Doubt.PERHAPS_WITHDRAWN
        if isinstance(item, Insight) and CLAIM.search(item.body) and not (MENDED.search(item.body) or proven(self.events, last)):
            return Doubt.UNPROVEN
        return None

    def _mentions(self, name: str) -> bool:
        return name in self._text or all(part in self._text for part in _WORD.findall(name))


_JUST_BEFORE = 6
"""Number of events before the evidence that are read with it."""
_ROOM_TO_SAY_IT = 3
"""Words count as said together within this many times the item's length."""
_SAYS_IT = 0.7
"""Share of an item's words, said together, from which a text says it.

Of 299 notes that people wrote, 3 have this share in a tool's output before anybody said it; 12 have six tenths.
"""
_SAYS_SOME_OF_IT = 0.5
"""Least share of an item's words in a text whose words are compared by place."""
_NEARLY_SAYS_IT = 0.8
"""Part of a text's share from which an earlier text said it already."""


def _reports_failure(event: Event) -> bool:
    return event.status == "failed" or event.type in (EventType.ERROR, EventType.TEST_RESULT)


def _share_in_one_place(own: frozenset[str], places: Mapping[str, Sequence[int]], within: int) -> float:
    """Return the largest share of ``own`` found within this many words of one another."""
    standing = sorted((place, stem) for stem in own for place in places.get(stem, ()))
    counted: Counter[str] = Counter()
    most = left = 0
    for place, stem in standing:
        counted[stem] += 1
        while standing[left][0] < place - within:
            counted[standing[left][1]] -= 1
            if not counted[standing[left][1]]:
                del counted[standing[left][1]]
            left += 1
        most = max(most, len(counted))
    return most / len(own) if own else 0.0


_SAME_AS_A_COMMIT = 0.9
"""Share of a note's words that one commit has. None of 299 notes that people wrote reaches it."""


def _is_a_theory(item: RecordItem) -> bool:
    return item.origin != "user" and (isinstance(item, Insight) or bool(CLAIM.search(item.body)))


_HEADLINE = lazy_regex(r"(?:feat|fix|chore|docs|refactor|test|perf|style|build|ci|revert)(?:\([^)]{1,40}\))?!?: ")
_IMAGE = lazy_regex(r"^\[(?:image|document)\]", re.MULTILINE)
_COMMITS = lazy_regex(r"\bgit\b[^|;&\n]{0,80}\bcommit\b")
_CODE = lazy_regex(r"```.*?(?:```|\Z)|`[^`\n]{1,400}`", re.DOTALL)
_NAME = lazy_regex(
    r"`[^`\n]{2,80}`|\b\w+[_./:-]\w[\w./:-]*|\b[a-z]+[A-Z]\w+|\b[A-Z][a-z]+[A-Z]\w*|(?<!\w)--[a-z][\w-]+|\b\d[\d.,]*\w*"
)


def _said(event: Event) -> str:
    ending = event.text[-_READ:] if len(event.text) > _READ else ""
    return f"{event.text[:_READ]}\n{ending}\n{event.command[:2_000]} {event.path} {event.tool}"


def _texts_of(item: RecordItem) -> Iterator[str]:
    yield item.title
    yield item.body
    yield from item.triggers
    if isinstance(item, Insight):
        yield item.symptom
    if isinstance(item, Decision):
        for rejected in item.rejected:
            yield f"{rejected.alternative}: {rejected.reason}"


def _quotes(content: str, said: frozenset[str], prompt: frozenset[str]) -> bool:
    """Return whether at least three shingles (seven words in a row, or as much in pieces) are the prompt's and not the
    evidence's.
    """
    return len((shingles(content) & prompt) - said) >= 3


_ECHO = lazy_regex(
    r"</?vault-context|\[Relevant vault context|^--- \[[^\]\n]{1,200}\.md\]|<system-reminder|\bkite-memory:extract\b",
    re.IGNORECASE | re.MULTILINE,
)

_HIJACK = lazy_regex(
    r"\b(?:ignore|disregard|forget|override|bypass)\s+(?:(?:all|any|the|your|my|of)\s+){0,3}"
    r"(?:previous|prior|earlier|above|preceding|system|safety|other)\s+(?:\w+\s+)?(?:instructions?|prompts?|guidelines?|directives?)\b"
    r"|\byou are (?:now|no longer) (?:a|an|the|in|bound|required)\b"
    r"|\b(?:new|updated|hidden) system prompt\b|\bsystem prompt:"
    r"|\b(?:do not|don't|never) (?:tell|inform|alert|mention (?:this|it) to|reveal (?:this|it) to) the (?:user|person|human)\b"
    r"|<\|?(?:im_start|im_end|system|endoftext)\|?>|\[/?INST\]",
    re.IGNORECASE,
)
"""Text meant to hijack a model, refused from any origin."""

_ADDRESSED_TO_AN_AI = lazy_regex(
    r"(?:^|[.!?:;\n]\s*)(?:dear|attention,?|note to|hey|important for)\s+(?:all\s+)?"
    r"(?:ai|assistant|agent|llm|model|claude|copilot|gpt)s?\b"
    r"|\b(?:ai|llm) (?:assistants?|agents?|models?|readers?) (?:must|should|shall|are (?:instructed|required|asked))\b"
    r"|\b(?:the assistant|the agent|claude) (?:must|shall|should|is (?:instructed|required))\b",
    re.IGNORECASE,
)
"""Text that addresses an AI: allowed from a person, refused from a file or a web page."""

_ORDER = lazy_regex(
    r"(?:(?:please|now|first,?|always|never|immediately|do not|don't|make sure|be sure|remember)\s"
    r"|you (?:must|should|need to|have to)\b"
    r"|(?:run|execute|delete|remove|send|post|upload|download|install|open|visit|fetch|curl|export|print|reveal|write|append|commit"
    r"|push|approve|grant|disable|enable|set|add|change|update|replace|reply|respond|answer|call|use|follow|act|pretend|read|copy"
    r"|email|forward)\s)",
    re.IGNORECASE,
)
_SENTENCE_START = lazy_regex(r"(?:^|[.!?:;]\s+|\n)")


def _orders(item: RecordItem) -> bool:
    """Return whether a sentence opens with an imperative: a request found only in a tool's output is not the person's."""
    return any(_ORDER.match(text, start.end()) for text in (item.title, item.body) for start in _SENTENCE_START.finditer(text))


_STEP = lazy_regex(
    r"\s*(?:(?:the\s+)?(?:agent|assistant|claude|model|ai|user|person)\s+(?:(?:then|next|also|first|subsequently|finally)\s+)*"
    r"(?:ran|runs|reads?|opened|edited|edits|looked|checked|searched|grepped|listed|created|committed|pushed|asked|started|began"
    r"|proceeded|continued|called|invoked|executed|viewed|printed|responded|replied|explained|reported|said|thanked)\b"
    r"|(?:i|we)(?:'ll| will| am going to|'m going to| then| next| just)\b"
    r"|let me\b|let's (?:look|check|see|start|run)\b|now (?:i|we|let)\b"
    r"|(?:next|then|first|afterwards|after that),? (?:i|we|it|the agent|the assistant)\b)",
    re.IGNORECASE,
)


def _is_play_by_play(body: str) -> bool:
    """Return whether most sentences, or the first of at most two, report what somebody did next."""
    starts = [start.end() for start in _SENTENCE_START.finditer(body) if body[start.end() : start.end() + 8].strip()]
    steps = [bool(_STEP.match(body, start)) for start in starts]
    return bool(steps) and (sum(steps) * 2 > len(steps) or (steps[0] and len(steps) <= 2))


_ROUTINE = stems(
    "all tests pass passed passing green clean suite unit integration lint linter build builds succeeded succeeds successfully"
    " committed commit pushed push merged merge branch main pull request formatted fixed fix done complete completed updated update"
    " works working fine code change changes changed file files agent assistant ran run"
)
"""Words that do not suffice for a note: the repository's log contains the same information."""

_VAGUE = stems(
    "various several stuff misc miscellaneous general generally etc discussed discussion discuss talked talk chatted"
    " chat conversation session topic topics item items point points note notes summary overview work worked working"
    " progress continued looked into helped help question questions answered answer issue issues problem problems"
    " related useful information important interesting project task tasks thanks thank looks good great nice fine"
    " okay user today further next step steps different other"
)
"""Words that only say that something was discussed, and not what."""
