"""Sentences of a session's messages that could be part of a note: no code, no tables, no markup."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kite_memory.distill.prose import bounded, clean, sentences, stems
from kite_memory.model.event import Event, EventType, opens_turn

_READ = 16_000
_MOST_SENTENCES = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence. ``place`` is 0 at the start of its message and close to 1 at its end. ``heading`` is the heading above it.

    ``block`` is the number of its paragraph or list item.
    """

    event: Event
    text: str
    stems: frozenset[str]
    words: int
    place: float
    heading: str
    block: int = 0


def said_by_person(event: Event) -> str:
    """Return a person's own words in an event: a message or an answer."""
    return bounded(event.text, _READ).replace("’", "'") if event.role == "user" else ""


def sentences_of(event: Event, text: str) -> tuple[Sentence, ...]:
    found: list[tuple[int, str, str]] = []
    for number, (heading, block) in enumerate(_blocks(_THOUGHT.sub("", clean(bounded(text, _READ).replace("’", "'"))))):
        found.extend((number, heading, sentence) for sentence in sentences(block))
        if len(found) >= _MOST_SENTENCES:
            break
    return tuple(
        Sentence(
            event=event,
            text=sentence,
            stems=stems(sentence),
            words=len(sentence.split()),
            place=at / len(found),
            heading=heading,
            block=number,
        )
        for at, (number, heading, sentence) in enumerate(found)
    )


_THOUGHT = re.compile(r"<(thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_FENCE = re.compile(r"(?:```|~~~)")
_RULE = re.compile(r"[-=_*|+: ─━═]+")
_HEADING = re.compile(r"#{1,6} +(?P<title>.*)")
_BOLD_HEADING = re.compile(r"\*\*(?P<title>[^*]{2,80})\*\*:?")
_ITEM = re.compile(r"(?:[-*•✓✔✅❌]|\d{1,2}[.)]|\([a-z0-9]\))\s+")
_TASK = re.compile(r"\[[ xX]\]\s+")
_MARKUP = re.compile(r"\*\*|__|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])|[✅❌✓✔☑🎉⚠️ℹ️]+\s*")
_LINK = re.compile(r"\[([^\]\n]{1,120})\]\([^)\s]{1,400}\)")


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield paragraphs and list items, each with the heading above it."""
    heading = ""
    rows: list[str] = []
    fenced = False
    for row in [*text.split("\n"), ""]:
        line = row.strip()
        if _FENCE.match(line):
            fenced = not fenced
            line = ""
        title = _HEADING.match(line) or _BOLD_HEADING.fullmatch(line)
        item = _ITEM.match(line)
        ends = fenced or not line or line.startswith(("|", ">")) or bool(_RULE.fullmatch(line))
        if (ends or title or item) and rows:
            yield heading, _plain(" ".join(rows))
            rows = []
        if title:
            heading = _plain(title["title"])
        elif not ends:
            rows.append(_TASK.sub("", line[item.end() :]) if item else line)


def _plain(text: str) -> str:
    """Remove emphasis and links; text in backticks is unchanged."""
    parts = _LINK.sub(r"\1", text).split("`")
    return "`".join(part if at % 2 else _MARKUP.sub("", part) for at, part in enumerate(parts)).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A person's request and everything that followed it.

    ``asked`` is ``None`` for a chunk that begins in the middle of a turn, and for a plan: the person approved it, but in an agent's
    words.
    """

    asked: Event | None
    events: tuple[Event, ...]


def turns(events: tuple[Event, ...]) -> list[Turn]:
    found: list[Turn] = []
    asked: Event | None = None
    current: list[Event] = []
    for event in events:
        if opens_turn(event):
            if current:
                found.append(Turn(asked=asked, events=tuple(current)))
            asked, current = event if event.type is EventType.USER_MESSAGE else None, [event]
        else:
            current.append(event)
    if current:
        found.append(Turn(asked=asked, events=tuple(current)))
    return found
