"""What does not become a note, however well-formed: each verdict has a reason from a small set, to be counted.

Everything here is decided from an item and the events it rests on alone; what the vault already holds is its planner's business.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum

from kite_memory.distill.prose import stems
from kite_memory.model.event import Event
from kite_memory.model.record import Decision, Insight, Preference, Record, RecordItem, Topic


class Verdict(StrEnum):
    QUOTES_THE_PROMPT = "quotes the prompt"
    PLAY_BY_PLAY = "play-by-play"
    TRIVIAL = "trivial"
    ECHO = "echo of an injected memory"
    INSTRUCTION = "an instruction, not a fact"
    UNSUPPORTED = "not supported by its evidence"


_READ = 20_000
_SHINGLE = 5
_WORD = re.compile(r"[^\W_]+")


def shingles(text: str) -> frozenset[str]:
    """Every run of five words, by which quotations are recognised."""
    words = _WORD.findall(text.lower())
    return frozenset(" ".join(words[at : at + _SHINGLE]) for at in range(len(words) - _SHINGLE + 1))


def passed(record: Record, events: Mapping[str, Event], prompt: frozenset[str]) -> tuple[Record, tuple[str, ...]]:
    """The record with what the gate let through, and the verdicts on the rest. ``prompt`` holds the prompt's `shingles`."""
    verdicts: list[str] = []
    topics: list[Topic] = []
    for topic in record.topics:
        kept: list[RecordItem] = []
        for item in topic.items:
            verdict = judged(item, [events[id] for id in item.evidence if id in events], prompt)
            if verdict is None:
                kept.append(item)
            else:
                verdicts.append(verdict)
        if kept:
            topics.append(replace(topic, items=tuple(kept), summary=topic.summary if _harmless(topic.summary, prompt) else ""))
    insights = tuple(text for text in record.cross_topic_insights if topics and _harmless(text, prompt))
    return Record(topics=tuple(topics), cross_topic_insights=insights), tuple(verdicts)


def _harmless(text: str, prompt: frozenset[str]) -> bool:
    return not (
        _ECHO.search(text) or _HIJACK.search(text) or _ADDRESSED_TO_AN_AI.search(text) or _quotes(text, frozenset(), prompt)
    )


def judged(item: RecordItem, evidence: Iterable[Event], prompt: frozenset[str]) -> Verdict | None:
    """``None`` for an item that may become a note."""
    said = "\n".join(_said(event) for event in evidence)
    told = "\n".join(_told(item))
    if _ECHO.search(told):
        return Verdict.ECHO
    if _quotes(told, shingles(said), prompt):
        return Verdict.QUOTES_THE_PROMPT
    if _HIJACK.search(told) or (item.origin != "user" and _ADDRESSED_TO_AN_AI.search(told)):
        return Verdict.INSTRUCTION
    if item.origin == "tool" and _orders(item):
        return Verdict.INSTRUCTION
    if _is_play_by_play(item.body):
        return Verdict.PLAY_BY_PLAY
    telling = stems(item.body) - (frozenset() if isinstance(item, Preference) else _ROUTINE)
    if len(telling) < (2 if item.origin == "user" else 3):
        return Verdict.TRIVIAL  # how a person wants commits made is no routine, and people are brief: "always answer in German"
    if not stems(f"{item.title} {item.body}") & stems(said):
        return Verdict.UNSUPPORTED
    return None


def _said(event: Event) -> str:
    ending = event.text[-_READ:] if len(event.text) > _READ else ""
    return f"{event.text[:_READ]}\n{ending}\n{event.command[:2_000]} {event.path} {event.tool}"


def _told(item: RecordItem) -> Iterator[str]:
    yield item.title
    yield item.body
    yield from item.triggers
    if isinstance(item, Insight):
        yield item.symptom
    if isinstance(item, Decision):
        for rejected in item.rejected:
            yield f"{rejected.alternative}: {rejected.reason}"


def _quotes(told: str, said: frozenset[str], prompt: frozenset[str]) -> bool:
    """Whether seven words in a row, or as much in pieces, are the prompt's and not the evidence's."""
    return len((shingles(told) & prompt) - said) >= 3


_ECHO = re.compile(
    r"</?vault-context|\[Relevant vault context|^--- \[[^\]\n]{1,200}\.md\]|<system-reminder|\bkite-memory:extract\b",
    re.IGNORECASE | re.MULTILINE,
)

_HIJACK = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\s+(?:(?:all|any|the|your|my|of)\s+){0,3}"
    r"(?:previous|prior|earlier|above|preceding|system|safety|other)\s+(?:\w+\s+)?(?:instructions?|prompts?|guidelines?|directives?)\b"
    r"|\byou are (?:now|no longer) (?:a|an|the|in|bound|required)\b"
    r"|\b(?:new|updated|hidden) system prompt\b|\bsystem prompt:"
    r"|\b(?:do not|don't|never) (?:tell|inform|alert|mention (?:this|it) to|reveal (?:this|it) to) the (?:user|person|human)\b"
    r"|<\|?(?:im_start|im_end|system|endoftext)\|?>|\[/?INST\]",
    re.IGNORECASE,
)
"""Written to take a model over, whoever is said to have said it."""

_ADDRESSED_TO_AN_AI = re.compile(
    r"(?:^|[.!?:;\n]\s*)(?:dear|attention,?|note to|hey|important for)\s+(?:all\s+)?"
    r"(?:ai|assistant|agent|llm|model|claude|copilot|gpt)s?\b"
    r"|\b(?:ai|llm) (?:assistants?|agents?|models?|readers?) (?:must|should|shall|are (?:instructed|required|asked))\b"
    r"|\b(?:the assistant|the agent|claude) (?:must|shall|should|is (?:instructed|required))\b",
    re.IGNORECASE,
)
"""A person may say what their agent must do; a file or a web page may not."""

_ORDER = re.compile(
    r"(?:(?:please|now|first,?|always|never|immediately|do not|don't|make sure|be sure|remember)\s"
    r"|you (?:must|should|need to|have to)\b"
    r"|(?:run|execute|delete|remove|send|post|upload|download|install|open|visit|fetch|curl|export|print|reveal|write|append|commit"
    r"|push|approve|grant|disable|enable|set|add|change|update|replace|reply|respond|answer|call|use|follow|act|pretend|read|copy"
    r"|email|forward)\s)",
    re.IGNORECASE,
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:;]\s+|\n)")


def _orders(item: RecordItem) -> bool:
    """Whether a sentence opens with an imperative: what only a tool's output asks for is nobody's wish."""
    return any(_ORDER.match(text, start.end()) for text in (item.title, item.body) for start in _SENTENCE_START.finditer(text))


_STEP = re.compile(
    r"\s*(?:(?:the\s+)?(?:agent|assistant|claude|model|ai|user|person)\s+(?:(?:then|next|also|first|subsequently|finally)\s+)*"
    r"(?:ran|runs|reads?|opened|edited|edits|looked|checked|searched|grepped|listed|created|committed|pushed|asked|started|began"
    r"|proceeded|continued|called|invoked|executed|viewed|printed|responded|replied|explained|reported|said|thanked)\b"
    r"|(?:i|we)(?:'ll| will| am going to|'m going to| then| next| just)\b"
    r"|let me\b|let's (?:look|check|see|start|run)\b|now (?:i|we|let)\b"
    r"|(?:next|then|first|afterwards|after that),? (?:i|we|it|the agent|the assistant)\b)",
    re.IGNORECASE,
)


def _is_play_by_play(body: str) -> bool:
    """Whether most sentences, or the first of at most two, tell what somebody did next."""
    starts = [start.end() for start in _SENTENCE_START.finditer(body) if body[start.end() : start.end() + 8].strip()]
    steps = [bool(_STEP.match(body, start)) for start in starts]
    return bool(steps) and (sum(steps) * 2 > len(steps) or (steps[0] and len(steps) <= 2))


_ROUTINE = stems(
    "all tests pass passed passing green clean suite unit integration lint linter build builds succeeded succeeds successfully"
    " committed commit pushed push merged merge branch main pull request formatted fixed fix done complete completed updated update"
    " works working fine code change changes changed file files agent assistant ran run"
)
"""Words that alone do not make a note: what they say, the repository's log says as well."""
