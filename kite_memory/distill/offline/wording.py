"""Sentences that could be part of a note, and the expressions that mark what matters.

The expressions are listed in `cues.toml`. English only.
"""

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from kite_memory.distill.asked_to_keep import VERB as VERB_OF_REQUEST
from kite_memory.distill.asked_to_keep import with_exceptions
from kite_memory.distill.prose import bounded, clean, one_line, retractions, sentences, stems, without_emphasis
from kite_memory.model.event import Event, EventType, opens_turn
from kite_memory.model.note import Origin, Rejected
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip

_DATA = tomllib.loads(files(__package__).joinpath("cues.toml").read_text(encoding="utf-8"))


def _says(cue: str) -> re.Pattern[str]:
    return lazy_regex(rf"\b(?:{'|'.join(_DATA['says'][cue])})\b", re.IGNORECASE)


def _opens(fragments: Sequence[str]) -> re.Pattern[str]:
    return lazy_regex(rf"(?:{'|'.join(fragments)})(?!\w)", re.IGNORECASE | re.DOTALL)


CAUSE, TRACED, SLIP, CHOICE, LIMIT = map(_says, ("cause", "traced", "slip", "choice", "limit"))
VERB, GUESS, STATUS, OFFER, SELF = map(_says, ("verb", "guess", "status", "offer", "myself"))
PROPOSAL, RECOMMENDS = map(_says, ("proposal", "recommends"))
STEP, ANNOUNCING, CHECKS, LEANING = (_opens(_DATA["opens"][cue]) for cue in ("step", "announcing", "checks", "leaning"))
CHANGE, SUBORDINATE, HEADLESS, TURNED_OUT = (
    _opens(_DATA["opens"][cue]) for cue in ("change", "subordinate", "headless", "turned_out")
)
BINDING, BOUNDING = (
    lazy_regex(rf"(?<![\w-])(?:{'|'.join(_DATA['person'][cue])})(?![\w-])", re.IGNORECASE) for cue in ("binding", "bounding")
)
PASSING = lazy_regex(rf"\b(?:{'|'.join(_DATA['person']['passing'])})\b", re.IGNORECASE)
ASKING, ORDERING, TELLING = (_opens(_DATA["person"][cue]) for cue in ("asking", "ordering", "telling"))
ASSENT = lazy_regex(rf"\W*(?:(?:{'|'.join(_DATA['person']['assent'])})(?!-\w)(?:\W+|$))+", re.IGNORECASE)
CHOSE = lazy_regex(
    r"\b(?:i|we)(?:'ve| have)? (?:chosen?|picked|went with|opted for|decided (?:on|for|to use)|used)\b.{2,120}\b(?:over"
    r"|instead of|rather than|not)\b",
    re.IGNORECASE,
)
CODE = lazy_regex(
    r"`[^`\n]{1,120}`|\b\w+(?:\.\w+)+\b|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|\b\w+_\w+|--?[a-z][\w-]{2,}"
    r"|\b[\w.-]{1,80}/[\w/.-]+"
)


def occurrences(cue: re.Pattern[str], text: str) -> int:
    """Return how often a cue is in a text, up to four times."""
    return sum(1 for _ in zip(cue.finditer(text), range(4), strict=False))


Rule = Literal[
    "plan", "answer", "thread", "agreed", "pick", "refusal", "objection", "wish", "stated", "reminder", "correction", "choice",
    "manner", "conceded", "outcome", "cause", "claim", "command", "open",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineDraft:
    """A possible note. ``rule`` is its source; ``worth`` is comparable between agents' claims, see `claims.Claim`."""

    rule: Rule
    kind: Literal["decision", "insight", "fact", "preference", "question"]
    title: str
    body: str
    evidence: tuple[str, ...]
    importance: int
    origin: Origin
    worth: float = math.inf
    rejected: tuple[Rejected, ...] = ()
    symptom: str = ""
    everywhere: bool = False


def joined(texts: Iterable[str]) -> str:
    """Join texts into one paragraph; list items without an ending are separated by semicolons."""
    said = [text.rstrip(" ;,") for text in texts]
    closed = [text if text.endswith((*".!?…”:", '."', ".)")) else f"{text};" for text in said[:-1]]
    return " ".join([*closed, *(text if text.endswith(tuple(".!?…”")) else f"{text}." for text in said[-1:])])


_READ = 16_000
_MOST_SENTENCES = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence. ``place`` is 0 at the start of its message and close to 1 at its end. ``heading`` is the heading above it.

    ``block`` is the number of its paragraph or list item; ``listed`` says that it is an item.
    """

    event: Event
    text: str
    stems: frozenset[str]
    words: int
    place: float
    heading: str
    block: int = 0
    listed: bool = False


def said_by_person(event: Event) -> str:
    """Return a person's own words in an event: a message or an answer."""
    return bounded(event.text, _READ).replace("’", "'") if event.role == "user" else ""


def sentences_of(event: Event, text: str) -> tuple[Sentence, ...]:
    found: list[tuple[int, _Block, str]] = []
    for number, block in enumerate(_blocks(_THOUGHT.sub("", clean(bounded(text, _READ).replace("’", "'"))))):
        said = sentences(block.text)
        found.extend((number, block, sentence) for sentence in (with_exceptions(said) if event.role == "user" else said))
        if len(found) >= _MOST_SENTENCES:
            break
    return tuple(
        Sentence(
            event=event,
            text=sentence,
            stems=stems(sentence),
            words=len(sentence.split()),
            place=at / len(found),
            heading=block.heading,
            block=number,
            listed=block.listed,
        )
        for at, (number, block, sentence) in enumerate(found)
    )


_THOUGHT = lazy_regex(r"<(thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_FENCE = lazy_regex(r"(?:```|~~~)")
_RULE = lazy_regex(r"[-=_*|+: ─━═]+")
_HEADING = lazy_regex(r"#{1,6} +(?P<title>.*)")
_BOLD_HEADING = lazy_regex(r"\*\*(?P<title>[^*]{2,80})\*\*:?")
_ITEM = lazy_regex(r"(?:[-*•✓✔✅❌]|\d{1,2}[.)]|\([a-z0-9]\))\s+")
_TASK = lazy_regex(r"\[[ xX]\]\s+")
_EMOJI = lazy_regex(r"(?:[✅❌✓✔☑🎉⚠ℹ]\ufe0f?)+\s*")
_TAG = lazy_regex(r"</?[a-z][a-z_-]{1,30}>")
_LINK = lazy_regex(r"\[([^\]\n]{1,120})\]\([^)\s]{1,400}\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    heading: str
    text: str
    listed: bool


def _blocks(text: str) -> Iterator[_Block]:
    """Yield paragraphs and list items, each with the heading above it."""
    heading = ""
    rows: list[str] = []
    fenced = listed = False
    for row in [*text.split("\n"), ""]:
        line = row.strip()
        if _FENCE.match(line):
            fenced = not fenced
            line = ""
        title = _HEADING.match(line) or _BOLD_HEADING.fullmatch(line)
        item = _ITEM.match(line)
        ends = fenced or not line or line.startswith(("|", ">")) or bool(_RULE.fullmatch(line))
        if (ends or title or item) and rows:
            yield _Block(heading=heading, text=_plain(" ".join(rows)), listed=listed)
            rows = []
        if title:
            heading = _plain(title["title"])
        elif not ends:
            listed = listed if rows else item is not None
            rows.append(_TASK.sub("", line[item.end() :]) if item else line)


def _plain(text: str) -> str:
    """Remove emphasis, links and tags; text in backticks is unchanged."""
    parts = without_emphasis(_LINK.sub(r"\1", text)).split("`")
    return "`".join(part if at % 2 else _EMOJI.sub("", _TAG.sub("", part)) for at, part in enumerate(parts)).strip()


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


_RUN_UP = lazy_regex(
    r"(?:(?:(?:and|also|but|so(?! (?:that|you|far)\b)|ok(?:ay)?|oh|ah|hey|btw|by the way|yes|yeah|yep|thanks|thank you|thx"
    r"|plus)\b(?!-\w)[\s,:;.!—–-]*|(?:no|nope|nah|hm+|well|right|fine|great|good|nice|cool|perfect|awesome|sure|then|again|wait"
    r"|actually|sorry|hi|hello|noted|(?:just )?to be clear|(?:new|house|general) rule|(?:and )?(?:one (?:more|other|last)"
    r"|another) (?:thing|point|rule))\b(?!-\w)\s*[,:;.!—–-]+\s*)){1,6}(?=\S)",
    re.IGNORECASE,
)


def without_opening(said: str) -> str:
    """Return a person's words without those that only connect them to earlier ones."""
    text = said.strip()
    return text[opening.end() :] if (opening := _RUN_UP.match(text)) else text


_FIRST_PERSON = lazy_regex(r"\b(?:i|me|my|mine)\b|\bwe(?:'ll|'re| will| are)\b", re.IGNORECASE)


def in_own_words(said: str, limit: int) -> str:
    """Return a person's sentence as a sentence of its own; in quotation marks if it is in the first person, since a note has no
    ``I``.
    """
    text = without_opening(clip(one_line(said), limit)).rstrip(" ,;:—–-")
    if not CODE.match(text):
        text = text[:1].upper() + text[1:]
    text = text if text.endswith((".", "!", "?", "…")) else f"{text}."
    return f"“{text}”" if _FIRST_PERSON.search(text) else text


VERB_OF_ORDER = lazy_regex(VERB_OF_REQUEST, re.IGNORECASE)
"""A sentence that begins with a verb: it asks for something."""


_LOST = (
    r"(?P<this>[^\s,.;:()—]+(?:\s(?!(?:because|since|due to|which|in order to|so(?= \S)|as(?= (?:it|they|we|that)\b))\b)"
    r"[^\s,.;:()—]+){0,7})"
)
_RULED_OUT = (
    lazy_regex(
        rf"\b(?:instead of|rather than|as opposed to)\s+{_LOST}(?:[,;:—(]|\.(?:\s|$)|$|\s(?=(?:because|since|so|as|which|for"
        rf"|to)\b))",
        re.IGNORECASE,
    ),
    lazy_regex(rf"(?:[,;:(—–]\s*|\b(?:and|but)\s+|^)not\s+{_LOST}[,:—]?\s+(?=because\b|since\b)", re.IGNORECASE),
    lazy_regex(
        r"(?P<this>[^.;:()]{3,80}?)\s+(?:was|is|are|were|got|has been)\s+(?:(?:rejected|ruled out|dropped|discarded)(?! by\b)"
        r"|overkill"
        r"|not worth(?: it| the \w+)?|too \w+)\b",
        re.IGNORECASE,
    ),
)
_BECAUSE = lazy_regex(r"\b(?:because|since|as|so that|which would|due to)\s+(?P<why>[^.;]{4,160})", re.IGNORECASE)


_NO_ALTERNATIVE = lazy_regex(
    r"\d+[km]?\b(?!\.\d)|(?:its|their|his|her|in|on|at|with|from|to)\s|[a-z]+ing(?:\s+too)?$"
    r"|the (?:actual|original|right|correct|proper|expected|intended|real|untouched)\b",
    re.IGNORECASE,
)
"""Words for an actual or expected state, which is not a rejected alternative."""
_STATE = lazy_regex(
    r"\b(?:(?:is|are|was|were)(?! (?:to|now)\b)|got|gets|shows?|showed|returns?|returned|resolved|reports?|reported|sees?|saw)\b"
    r"[^.;,]{0,80}$",
    re.IGNORECASE,
)
_DIRECTED = lazy_regex(r"\b(?:should|must|let'?s|let us|we(?:'ll)?|will|decided|chose|chosen|prefer\w*|better)\b", re.IGNORECASE)


def rejected_in(sentences: Iterable[str], *, of_agent: bool = False) -> Iterator[Rejected]:
    """Yield rejected alternatives, with the reason if the sentence gives it: ``X instead of Y because Z``, ``not Y, because Z``,
    ``Y was overkill``.

    When a person says ``X instead of Y``, they choose. An agent mostly describes by it what something does.
    """
    for sentence in sentences:
        match = next((match for pattern in _RULED_OUT if (match := pattern.search(sentence[:600]))), None)
        if match is None:
            continue
        lost, before = _alternative(match["this"]), sentence[: match.start()]
        if len(lost) < 3 or (_STATE.search(before) and not _DIRECTED.search(before)):
            continue
        because = _BECAUSE.search(sentence[:600])
        within_match = because is not None and because.start("why") <= match.start("this") < because.end("why")
        why = one_line(because["why"]) if because is not None and not within_match else ""
        if of_agent and (_ACTING.match(lost) or not (why or match.re is not _RULED_OUT[0] or _CHOOSES.search(before))):
            continue
        yield Rejected(alternative=clip(lost, 120), reason=clip(why, 160))


_ACTING = lazy_regex(r"(?:\w+ly )?(?-i:[a-z]+)ing\b", re.IGNORECASE)
_CHOOSES = lazy_regex(
    r"\b(?:should|let'?s|recommend\w*|decided|decision|cho(?:se|sen|ice|osing)|picked|opted|settled|agreed|prefer\w*|deliberately"
    r"|on purpose|(?:went|go|going|stick|sticking) with|(?:we|i)(?:'ll| will)? (?:use|used|keep|kept))\b",
    re.IGNORECASE,
)


def _alternative(text: str) -> str:
    """Return the alternative; empty if it is not a name, or was cut within code."""
    lost = re.sub(r"^(?:just|simply|merely)\s+", "", one_line(text).strip(" *\"'"))
    if lost.count("`") == 2 and lost.startswith("`") and lost.endswith("`"):
        lost = lost[1:-1]
    return "" if lost.count("`") % 2 or lost.endswith(("'s", "’s")) or _NO_ALTERNATIVE.match(lost) else lost


def advised(sentence: str) -> str:
    """Return what a recommendation says is to be done; empty if that cannot be understood without what stands around it."""
    opening = _ADVISES.match(sentence)
    what = sentence[opening.end() :] if opening else sentence
    return what if len(what.split()) >= _WORDS_OF_ADVICE and len(stems(what)) >= 2 and not LEANING.match(what) else ""


_WORDS_OF_ADVICE = 5
_ADVISES = lazy_regex(
    r"\W*(?:(?:so|then|and|but|in short|to recap|overall)\W+)?(?:for [^,]{2,60},\s+)?(?:i(?:'d| would)? (?:\w+ly )?(?:suggest"
    r"|propose"
    r"|recommend)(?! against)(?: (?:that )?(?:we|you)(?= \w)(?: should)?| to(?= \w))?\s+|(?:my|the) (?:recommendation|suggestion"
    r"|proposal)(?: here)?(?: is(?: to)?|:)\s+|recommendation:\s+|i(?:'d| would) (?:\w+ly )?(?=(?:use|keep|set|pick|go|start|make"
    r"|add"
    r"|put|do)\b))",
    re.IGNORECASE,
)


def turns_down(after: Turn | None) -> bool:
    """Return whether a person turns down or undoes what the agent has just said or made."""
    return after is not None and after.asked is not None and _NO.match(said_by_person(after.asked)[:200]) is not None


def refutes(after: Turn | None, said: Sequence[Sentence]) -> bool:
    """Return whether a theory is refuted in the next turn: by the person, or by the agent, who takes it back in its words."""
    if after is None:
        return False
    if after.asked is not None and _WRONG.match(said_by_person(after.asked)[:200]):
        return True
    about = stems(" ".join(each.text for each in said))
    return any(each.about and 3 * len(each.about & about) >= len(each.about) for each in retractions(after.events))


_NOT_SO = (
    r"(?:wrong|nonsense|incorrect|not (?:it|true|right|correct|so|why|how|what|quite"
    r"|(?:really |actually )?the (?:\w+ )?(?:cause|reason|problem|issue|bug|culprit|case)))\b"
)
_UNDOES = (
    r"(?:undo|revert|roll back)(?:\W*$|[,.!]|\s(?:it|that|this|them|all|everything|please|(?:your|the|these|those) (?:last )?"
    r"(?:change|fix|edit|patch)(?:es|s)?)\b)|roll (?:it|that|this|them|everything) back\b"
)
_NO = lazy_regex(
    rf"\W*(?:(?:please|ok(?:ay)?|hm+|sorry|wait|actually|well)\W+)*(?:(?:no(?!,? (?:problem|worries|doubt|need|rush|hurry"
    rf"|that's (?:all|it|fine|ok))\b)|nope|nah|wrong|(?:don'?t|do not)(?![^.,;]{{0,60}}\byet\b)|instead(?! of)"
    rf"|rather(?! \w+[.!,])|that'?s {_NOT_SO}|take (?:it|that|this) (?:back|out)|back (?:it|that|this) out)\b(?!-\w)|{_UNDOES})",
    re.IGNORECASE,
)
_STILL = (
    r"still (?!no time)(?:\w+ )?(?:slow|fail\w*|broken|break\w*|happen\w*|the same|not|no|hang\w*|crash\w*|wrong|get\w*|see\w*"
    r"|doesn'?t|don'?t|can'?t|occur\w*|there|red|leak\w*|time\w*|time out|return\w*|show\w*)\b"
)
_WRONG = lazy_regex(
    rf"\W*(?:(?:no|nope|nah|hm+|sorry|well|but)\W+)*(?:wrong\b|that'?s {_NOT_SO}|(?:that|this|it) (?:is|was) {_NOT_SO}"
    rf"|that (?:was|is)n'?t(?! (?:the only|urgent|all)\b)|(?:it|that|this|they|the \w+)(?:'s| is| are)? {_STILL}|{_STILL}"
    rf"|(?:that|it|this) (?:didn'?t|did not|doesn'?t|does not) (?:help|fix|work|change|solve|cut)|not (?:fixed|it\b|true"
    rf"|the (?:cause|reason|problem|issue))|{_UNDOES})",
    re.IGNORECASE,
)
