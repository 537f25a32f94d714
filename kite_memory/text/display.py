"""Text as people read and write it: cut to a length, long prompts in few words, counts in words, ages such as ``12h``."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise

from kite_memory.errors import UsageError
from kite_memory.text import lazy_regex

_NAMES_AN_OPTION = lazy_regex(
    r"(?<![\w'’.-])(?:([B-HJ-Z]|A(?= *(?:$|[.,;!)&+]|and\b|please\b)))"
    r"|(?:#|(?i:option|number|point|item|step|variant) )([1-9])|(?i:do|option|take|pick|choose|with) ([a-h])|(?<=\A)([1-9]))"
    r"(?![\w'’+#-]|\.\w)"
)
_OPTION = lazy_regex(
    r"^[ \t>*_#-]{0,8}\(?((?:option|variant|tier|approach|phase|plan|idea|alternative|solution|choice) )?"
    r"([A-Za-h]|[1-9])(?:\*{0,2}[.):]| ?[–—-] )[^\n]{3,600}",
    re.MULTILINE | re.IGNORECASE,
)
_SHORT_PROMPT, _OPTIONS_READ = 220, 12_000
_ANSWERS_ONE_BY_ONE = lazy_regex(r"(?:\A|[\s;,])([1-9])(?:[.):]| ?[=–—-])\s*(?=[^\d\s.])")
_MEANS_TWO = lazy_regex(r"\b(?:both|neither|either)\b", re.IGNORECASE)
_MEANS_ALL = lazy_regex(r"\ball(?: of (?:them|these|those)| (?:three|four|five|six|[3-9])\b|\W*\Z)", re.IGNORECASE)
_GREETING = r"(?:hi|hello|hey|good morning|hallo|guten morgen|bonjour|hola)(?: there| all| claude| codex)?"
_GREETS = lazy_regex(rf"\A\W{{0,3}}{_GREETING}\b[,!. ]{{1,3}}", re.IGNORECASE)
_CHATTER = lazy_regex(
    rf"\W{{0,3}}(?:(?:{_GREETING}|you['’]re (?:absolutely )?right)\b[^.!?:]{{0,20}}"
    r"|(?:good (?:question|catch|point|idea)|great|thanks|thank you|sure|ok(?:ay)?|perfect|excellent|absolutely|got it|alright"
    r"|of course|danke|merci|gracias)\b(?:[ ,]{1,2}(?:thanks|thank you|so much|very much|a lot|again|then|now|thing|work|job"
    r"|question|claude|codex|for (?:the|your|that|this|all)(?: \w{1,12})?|that (?:works|helps)|makes sense|sounds good"
    r")\b){0,4})[.!…,:]{0,3}",
    re.IGNORECASE,
)


def clip(text: str, limit: int) -> str:
    """Return at most ``limit`` characters, cut between words if possible, with an ellipsis."""
    if len(text) <= limit:
        return text
    if limit < 1:
        return ""
    cut = text[: limit - 1]
    space = max(cut.rfind(" "), cut.rfind("\n"))
    return (cut[:space] if space > limit // 2 else cut).rstrip(" \n,;:-–—") + "…"


def clip_end(text: str, limit: int) -> str:
    """Return at most ``limit`` characters, wherever that cuts the text, with an ellipsis."""
    return text if len(text) <= limit else text[: max(0, limit - 1)].rstrip() + "…"


def clip_line(text: str, limit: int) -> str:
    """Return the text on one line of at most ``limit`` characters, with an ellipsis."""
    return clip_end(" ".join(text[: 8 * limit].split()), limit)


def clip_middle(text: str, limit: int) -> str:
    """Return the text on one line of at most ``limit`` characters, with an ellipsis instead of its middle."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{clip(flat, limit - limit // 2)} {end_of(flat, limit // 2 - 1)}"


def counted(number: float, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    if number == 1:
        return f"1 {noun}"
    ending = noun[:-1] + "ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"
    return f"{number:,} {ending}"


def first_of(items: Sequence[str], most: int, *, of: int | None = None) -> str:
    """Return the first items, and how many more there are ``of`` them."""
    more = (len(items) if of is None else of) - most
    return "; ".join(items[:most]) + (f" and {more} more" if more > 0 else "")


_AGE = re.compile(r"(\d{1,5})([smhdw])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def duration(text: str) -> timedelta:
    """Parse an age. Raises `UsageError` for anything else."""
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not an age", hint="write 12h, 30d or 8w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def age(text: str, now: datetime) -> datetime | None:
    """Return the moment that long before ``now``, or at which the given date begins here; ``None`` for an empty text.

    Raises `UsageError`.
    """
    if not text.strip():
        return None
    if _AGE.fullmatch(text.strip()):
        return now - duration(text)
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError, OSError):  # the latter if the conversion to UTC leaves the range of dates
        raise UsageError(f"{text!r} is neither an age nor a date", hint="write 12h, 30d, 8w or 2026-03-01") from None


def local_time(moment: str) -> str:
    """Return a moment, given in ISO format, as date and time of day where this machine is."""
    try:
        return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return moment[:16].replace("T", " ")


def local_day(moment: str) -> str:
    return local_time(moment)[:10]


_READ = 12_000
_MARKUP = lazy_regex(r"^\s{0,12}(?:#{1,6}|[-*>]|\d{1,3}[.)])\s+|`{2,3}|(?<=\s)`|`(?=[\s.,;:)]|$)|^`", re.MULTILINE)
_FENCE = lazy_regex(r"^[ \t]{0,8}(```|~~~).*?(?:^[ \t]{0,8}\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = lazy_regex(r"^(#{1,6})[ \t]+([^\n]{1,400})$", re.MULTILINE)
_HEADING_SIGN = lazy_regex(r"^#{1,6}[ \t]+", re.MULTILINE)
_BOLD_HEADING = lazy_regex(r"^()\*\*([^*\n]{2,160})\*\*:?[ \t]*$", re.MULTILINE)
_NUMBERED = lazy_regex(r"^[ \t]{0,3}\d{1,2}[.)][ \t]+(\S[^\n]{2,2000})$", re.MULTILINE)
_BULLET = lazy_regex(r"^[ \t]{0,3}[-*•][ \t]+(\S[^\n]{2,2000})$", re.MULTILINE)
_BOLD_ITEM = lazy_regex(r"^\*\*([^*\n]{3,200})\*\*", re.MULTILINE)
_ABOUT = lazy_regex(
    r"\W{0,6}(?:context|contexte|kontext|goals?|objectives?|objectifs?|ziele?|problem|problème|overview|summary|background|why"
    r"|motivation|purpose|mission|root cause|(?:key )?insights?|analysis|feature|what|current (?:state|situation)|contexto"
    r"|objetivo)\b",
    re.IGNORECASE,
)
"""Heading of a section that says what a plan is for."""
_APART = lazy_regex(
    r"\W{0,6}(?:verif|vérif|testing|test plan|how to test|validation|out of scope|not in scope|risks?|notes?\b|constraints?"
    r"|conventions?|references?|assumptions?|rules?"
    r"|important|guidelines?|non-goals|open questions|success|acceptance|deliverables?|summary of|existing|reuse|no changes"
    r"|(?:key )?(?:design )?(?:decisions|references|details))",
    re.IGNORECASE,
)
"""Heading of a section that is neither what a plan is for nor what is to be done."""
_CHECKS = lazy_regex(r"\W{0,6}(?:verif|vérif|test plan|testing|how to (?:test|verify)|validation)", re.IGNORECASE)
_FILES = lazy_regex(r"\W{0,6}(?:critical |key |affected |modified |changed )?files?\b(?! ?\d{0,2} ?:)", re.IGNORECASE)
_WANTED = lazy_regex(
    r"\b(?:the (?:goal|idea|aim) is|goals?:|we(?:'ll| will| need| want| should)|(?:the )?users? (?:wants?|needs?)|i want|should"
    r"|this (?:plan|change|feature)|il faut|soll)\b",
    re.IGNORECASE,
)
_GOAL = lazy_regex(
    r"^(?:[^\w\n#]{0,6}(?:the )?(?:goal|objective|objectif|outcome|intended outcome|ziel|fix|solution)\W{0,4}:\W{0,4}"
    r"|[^\n]{0,300}?\b(?:your|the) deliverables? (?:is|are)\W{1,3})(\S[^\n]{8,600})",
    re.IGNORECASE | re.MULTILINE,
)
_SAYS_NOTHING = lazy_regex(
    r"(?:(?:the|proposed|required|code|detailed) )?(?:changes?|implementation|steps?|plan|approach|tasks?|solution|fix|work)",
    re.IGNORECASE,
)
"""Heading of work that only the text below it names."""
_IN_NUMBERS = lazy_regex(
    r"\W{0,4}(?:(?:step|phase|part|task|étape|schritt)\s*)?\d{1,2}(?:[.)]\d{0,2}|:| [–—-])?\W{0,3}", re.IGNORECASE
)
_ONLY_A_FILE = lazy_regex(
    r"(?:(?:new |modify |edit |update |create )?(?:files?|in)(?: \d{1,2})?\W{1,4})?`?[\w@./-]{1,160}\.\w{1,6}`?"
    r"(?:\s?\(.{0,80}\))?:?",
    re.IGNORECASE,
)
_SENTENCE = lazy_regex(r"(?<=[.!?…])[\"')\]*`_]{0,4}\s+|\n\s*\n|\n(?=\s{0,8}[-*•#|]|\s{0,8}\d{1,2}[.)])")
_OUTPUT_LINE = lazy_regex(
    r"\s|\[|\d{1,4}[-:/]\d|.{0,30}\blevel=|time=|[a-z-]{1,20}: |===|---|\W{3}|.{0,400}(?:https?://\S+\?|\S{90})"
    r"|(?i:feb|jan|mar|apr|may|jun|jul|aug|sep|oct|nov|dec) +\d|ok {2,}|FAIL\b|PASS\b|at \S+ \(|exit status"
    r"|Username for|Password for"
)
"""The beginning of a line that a program printed."""
_ASKS_FOR = lazy_regex(
    r"\?[\"')\]*`_]{0,3}\Z"
    r"|\b(?:please|should|must|needs? to|have to|want|let['’]?s|(?:can|could) (?:you|we)|do(?:n['’]?t| not)"
    r"|never|always|only|instead|make sure|ensure|i think|worth|fix(?:es)?:?|il faut|peux-tu|bitte|soll(?:te)?|muss)\b"
    r"|\A\W{0,6}(?:\d{1,2}[.)] ?)?(?:(?:and|also|then|now|so|but|ok|next)\W{1,2})?"
    r"(?:add|fix|remove|use|make|update|create|write|copy"
    r"|move|run|check|look|change|keep|leave|put|delete|rename|implement|replace|show|test|verify|merge|rebase|commit|push|find"
    r"|explain|investigate|review|consider|start|stop|build|document|read|list|try|do|go|set|drop|revert)\b",
    re.IGNORECASE,
)
"""A sentence that asks for something, or says how it is to be done."""
_SAYS_WHY = lazy_regex(
    r"\b(?:because|so that|due to|otherwise|in order to|the reason|that['’]?s why|since (?:the|we|it|this|that|they|there|i|you)\b"
    r"|parce que|damit|weil)\b|(?<![\w.])\d[\d.,]{0,12} ?(?:k|ms|s|[kmg]i?b|%|x|seconds|minutes|hours|refs|files|rows|times)(?!\w)",
    re.IGNORECASE,
)
"""A sentence with a reason, or with an amount that may be one."""
_OWN_WORDS = 6_000
_FEW_SENTENCES = 3
_LEAST_SENTENCE, _GAP = 80, 3
_FOLDERS = lazy_regex(r"(?<![\w./:])(?:[\w@.-]{1,60}/){1,12}(?=[\w@.-]{1,80}\.\w{1,6}\b)")
_LINES = lazy_regex(r"\s?\((?:lines?|around|~)\b[^()\n]{0,40}\)", re.IGNORECASE)
_OF_A_FILE = lazy_regex(r"\W{0,4}files?\W{1,8}([\w@./-]{1,160}\.\w{1,6})\b", re.IGNORECASE)
NO_CHANGE = lazy_regex(r"\bno\b.{0,40}\b(?:changes?|needed|required|necessary)\b", re.IGNORECASE)
"""A step of a plan in which nothing is to be done."""
_STEPS = 8
_LEAST_STEP = 36
_FEW_WORDS = 20
_GOAL_LENGTH = 240
_TITLE = 160
_AT_THE_TOP = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Parts of a long prompt that has parts: a plan, a task, or a list of findings."""

    title: str
    goal: str
    steps: tuple[str, ...]
    checks: tuple[str, ...] = ()
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    level: int
    heading: str
    body: str


def gist(prompt: str, length: int) -> str:
    """Return a prompt in about ``length`` characters: whole if it is short enough, else its subject and what is to be done."""
    flat = " ".join(_HEADING_SIGN.sub("", prompt[: 4 * length + 4_000]).split())
    if len(flat) <= length:
        return f'"{flat}"'
    if (found := outline(prompt)) is not None:
        return _outlined(found, length)
    if pasted := _pasted(prompt, length):
        return pasted
    if chosen := _sentences_that_ask(prompt, length):
        return f'"{chosen}"'
    end = end_of(flat if len(prompt) <= 4 * length + 4_000 else " ".join(prompt[-2 * length :].split()), length // 3)
    return f'"{clip(flat, length - len(end))} {end}"'


def _sentences_that_ask(prompt: str, length: int) -> str:
    """Return sentences of a text that fit, in their order: the first, those that ask for something, the last, then the others.

    Empty for a text with too few sentences to choose from, or too long a one, which is mostly pasted.
    """
    if len(prompt) > _OWN_WORDS:
        return ""
    said = [flat for each in _SENTENCE.split(prompt) if (flat := " ".join(_HEADING_SIGN.sub("", each).split()))]
    sentences = list(dict.fromkeys(each for each in said if not _OUTPUT_LINE.match(each)))
    if len(sentences) < _FEW_SENTENCES and not (sentences and is_mostly_output(prompt)):
        return ""
    last = len(sentences) - 1
    asks = [at for at in range(last, 0, -1) if _ASKS_FOR.search(sentences[at])]
    why = (at for at in range(1, last + 1) if _SAYS_WHY.search(sentences[at]))
    kept: dict[int, str] = {}
    room = length
    for at in dict.fromkeys((0, *asks[:1], *why, *asks, last, *range(1, last))):
        said_here = clip(sentences[at], room if at else length // 3)
        if said_here == sentences[at] or (len(said_here) > _LEAST_STEP and room > _LEAST_SENTENCE):
            kept[at] = said_here
            room -= len(said_here) + _GAP
    before = [-1, *sorted(kept)]
    gaps = ("" if at - earlier == 1 or kept.get(earlier, "").endswith("…") else "… " for earlier, at in pairwise(before))
    return " ".join(f"{gap}{kept[at]}" for gap, at in zip(gaps, before[1:], strict=True))


def is_mostly_output(prompt: str) -> bool:
    """Return whether most of a prompt was printed by a program."""
    lines = [line for line in prompt[:_READ].splitlines() if line.strip()]
    return 2 * sum(len(line) for line in lines if _OUTPUT_LINE.match(line)) > sum(map(len, lines))


def end_of(text: str, length: int) -> str:
    """Return the end of a text, from the beginning of a word."""
    cut = text[-length:]
    return cut[cut.find(" ") + 1 :]


def _outlined(found: Outline, length: int) -> str:
    title = clip_line(found.title, min(_TITLE, max(60, length // 2)))
    most = max(60, (length - len(title)) * 2 // 5)
    goal = found.about if found.about and len(found.about) <= most else clip(found.goal, min(_GOAL_LENGTH, most))
    head = (f'"{title}"' if title else "") + (f": {goal}" if goal else "")
    room = length - len(head)
    steps = [(at, step) for at, step in enumerate(found.steps, 1) if not NO_CHANGE.match(step)]
    if not steps or room < _LEAST_STEP:
        return head
    most = max(1, min(_STEPS, len(steps), room // _LEAST_STEP))
    shown: list[str] = []
    name_lengths = [len(_name_of(step)) for _, step in steps[:most]]
    for at, (number, step) in enumerate(steps[:most]):
        left = room - sum(len(each) + 6 for each in shown) - 6 * (most - at)
        share = name_lengths[at] + (left - sum(name_lengths[at:])) // (most - at)
        shown.append(
            f"({number}) {_clipped_step(step, share if left > sum(name_lengths[at:]) else max(_LEAST_STEP, left // (most - at)))}"
        )
    more = f" and {len(steps) - most} more" if len(steps) > most else ""
    return f"{head} {'; '.join(shown)}{more}".strip()


def _name_of(step: str) -> str:
    """Return what a step is called, before a colon; all of it if that is no name."""
    name, _, details = step.partition(": ")
    return name if details and len(name.split()) > 2 else step


def _clipped_step(step: str, length: int) -> str:
    """Return the step, without what follows its name if only a few words of that would be shown."""
    name = _name_of(step)
    return name if len(name) <= length < min(len(step), len(name) + _FEW_WORDS) else clip_line(step, length)


@lru_cache(maxsize=8)
def outline(prompt: str) -> Outline | None:
    """Return the outline of a prompt; ``None`` if it has no headings and no list."""
    text = _FENCE.sub("", prompt[:_READ])
    sections = _sections(text)
    titled = next((each for each in sections if each.heading), None)
    if titled is None:
        lead, items = _listed(text)
        return Outline(title=lead, goal=_closing_question(text), steps=items) if len(items) > 1 else None
    lead = sections[0].body if not sections[0].heading else ""
    announced = lead.endswith(":") and len(lead) < _TITLE
    rest = [each for each in sections if each.heading and (each is not titled or (lead and not announced))]
    if lead and not announced:
        title, goal, about = _sentences(lead, _TITLE), "", ""
    else:
        title, (goal, about) = f"{_without_markup(lead)} {titled.heading}".strip(), _goal(text, titled, rest)
    steps = tuple(_steps(titled, rest))
    checks = next((_listed(each.body)[1] for each in rest if _CHECKS.match(each.heading)), ())
    return Outline(title=title, goal=goal, steps=steps, checks=checks, about=about) if goal or steps else None


def _sections(text: str) -> list[_Section]:
    found = list(_HEADING.finditer(text)) or list(_BOLD_HEADING.finditer(text))
    if found and found[0].start() > _AT_THE_TOP:  # comments in pasted code look like headings
        found = []
    ends = [each.start() for each in found[1:]] + [len(text)]
    first = text[: found[0].start()] if found else text
    sections = [_Section(level=0, heading="", body=first.strip())] if first.strip() else []
    for each, end in zip(found, ends, strict=False):
        heading = _without_markup(each[2]).rstrip(":# ")
        sections.append(_Section(level=len(each[1]) or 1, heading=heading, body=text[each.end() : end].strip()))
    return sections


def _goal(text: str, titled: _Section, rest: Sequence[_Section]) -> tuple[str, str]:
    """Return what a plan is for, in short, and its whole section on that unless the plan names its goal elsewhere."""
    if found := _GOAL.search(text):
        return _without_markup(_SENTENCE.split(found[1])[0]), ""
    about = next((each for each in rest if _ABOUT.match(each.heading) and each.body), titled)
    sentences = [said for sentence in _SENTENCE.split(about.body.strip())[:12] if " " in (said := _without_markup(sentence))]
    why, at = " ".join(sentences[:1]), next((at for at, each in enumerate(sentences) if _WANTED.search(each)), len(sentences))
    wanted = " ".join(sentences[at : at + (4 if sentences[at : at + 1] and sentences[at].endswith(":") else 1)])
    is_long = len(why) + len(wanted) > _GOAL_LENGTH and wanted
    return (wanted if is_long else " ".join(dict.fromkeys(filter(None, (why, wanted))))), " ".join(sentences)


def _closing_question(text: str) -> str:
    """Return the last paragraph if it ends with a question and is no item of a list."""
    last = text.rstrip()[-_GOAL_LENGTH * 4 :].rpartition("\n")[2]
    is_item = any(pattern.match(last) for pattern in (_NUMBERED, _BULLET, _BOLD_ITEM))
    if is_item or not last.endswith("?"):
        return ""
    said = ""
    for sentence in reversed(_SENTENCE.split(last)):
        if said and len(sentence) + len(said) > _GOAL_LENGTH:
            break
        said = f"{_without_markup(sentence)} {said}".rstrip()
    return said


def _sentences(text: str, length: int) -> str:
    """Return the first sentences that fit, at least one."""
    shown = ""
    for sentence in _SENTENCE.split(text.strip())[:6]:
        if " " not in (said := _without_markup(sentence)):
            continue
        if shown and len(shown) + len(said) > length:
            break
        shown = f"{shown} {said}".strip()
    return shown


def _steps(titled: _Section, rest: Sequence[_Section]) -> Iterator[str]:
    """Yield what is to be done: the numbered headings, else other headings below work sections, else items of lists."""
    work = list(_work(rest))
    numbered = [each for each in work if _IN_NUMBERS.match(each.heading)]
    numbered = [each for each in numbered if each.level == min(same.level for same in numbered)]
    deepest = [each for at, each in enumerate(work) if at + 1 == len(work) or work[at + 1].level <= each.level]
    chosen = numbered if len(numbered) > 1 else deepest
    if len(chosen) > 1:
        for each in chosen:
            items = _listed(each.body)[1] if _SAYS_NOTHING.fullmatch(each.heading) else ()
            yield from items or (_step(each),)
        return
    for each in (*chosen, titled):
        _, items = _listed(each.body)
        if len(items) > 1:
            yield from items
            return
    yield from map(_step, chosen)


def _work(rest: Sequence[_Section]) -> Iterator[_Section]:
    """Yield the sections that say what is to be done, with those below them."""
    apart: int | None = None
    for at, each in enumerate(rest):
        if apart is not None and each.level > apart:
            continue
        lists_files = _FILES.match(each.heading) and not (at + 1 < len(rest) and rest[at + 1].level > each.level)
        apart = each.level if _ABOUT.match(each.heading) or _APART.match(each.heading) or lists_files else None
        if apart is None:
            yield each


def _step(section: _Section) -> str:
    heading = _IN_NUMBERS.sub("", section.heading, count=1) if _IN_NUMBERS.match(section.heading) else section.heading
    _, items = _listed(section.body)
    if items and not _ONLY_A_FILE.fullmatch(heading) and len(heading.split()) > 2:
        file = _OF_A_FILE.match(section.body)
        where = f" ({file[1]})" if file is not None and file[1].rpartition("/")[2] not in heading else ""
        return _without_folders(f"{heading.rstrip(':')}{where}: {'; '.join(items)}")
    said = (_without_markup(sentence) for sentence in _SENTENCE.split(section.body.strip())[:4])
    parts = [_without_markup(each[1]) for each in _BOLD_ITEM.finditer(section.body) if len(each[1].split()) > 3]
    if len(parts) > 1 and _ONLY_A_FILE.fullmatch(heading):
        items = ("; ".join(parts),)
    does = items[0] if items else next((each for each in said if each and not _ONLY_A_FILE.fullmatch(each)), "")
    return _without_folders(f"{heading.rstrip(':')}: {does}" if does else heading)


def _without_folders(step: str) -> str:
    return _LINES.sub("", _FOLDERS.sub("", step))


def _listed(text: str) -> tuple[str, tuple[str, ...]]:
    """Return what comes before the first list, and the first sentences of its outermost items, or its lines in bold."""
    for pattern in (_NUMBERED, _BULLET, _BOLD_ITEM):
        found = list(pattern.finditer(text))
        if len(found) > 1:
            items = (_without_markup(_SENTENCE.split(each[1])[0]).rstrip(":") for each in found)
            return _sentences(text[: found[0].start()], 200), tuple(item for item in items if item)
    return "", ()


def _pasted(prompt: str, length: int) -> str:
    """Return the person's own words in a prompt with output of a program, the command, and the failure; empty without output."""
    from kite_memory.text.error_signature import TYPED, first_failure  # imported here: many commands need only `clip`

    failure, command = first_failure(prompt[:_READ]), TYPED.search(prompt[:_READ])
    if not failure and command is None:
        return ""
    lines = [line.strip() for line in TYPED.sub("", prompt[:_READ]).splitlines()]
    own = [line for line in lines if len(line.split()) > 2 and not _OUTPUT_LINE.match(line) and line != failure]
    said = " … ".join(dict.fromkeys((*own[:1], *own[-1:])))
    parts = (
        f'"{clip_line(said, length // 2)}"' if said else "",
        f"ran `{clip_line(command[1].replace(chr(92), ' '), length // 4)}`" if command is not None else "",
        f"output: {clip_line(failure, length // 2)}" if failure else "",
    )
    return "; ".join(filter(None, (parts[0], f"pasted: {', '.join(filter(None, parts[1:]))}")))


def _without_markup(text: str) -> str:
    """Return text on one line, without Markdown and without signs at its beginning."""
    return re.sub(r"\A[^\w`\"'(\[/@#$.<+-]+", "", " ".join(without_cut_emphasis(_MARKUP.sub("", text)).split()))


_LINE_MARKUP = lazy_regex(r"^\s{0,12}(?:#{1,6}|[-*>]|\d{1,3}[.)])\s+|`{2,3}", re.MULTILINE)
_STRONG = lazy_regex(r"(?<![\w*_`/])(\*{2,3})(?=[^\s*/])((?:(?!\1)[^\n]){1,400}?)(?<=[^\s*])\1(?![\w*`/])")
_STRONG_BY_LINES = lazy_regex(r"(?<![\w*_`/])__(?=[^\s_])([^_\n]{1,400}\s[^_\n]{0,400})(?<=\S)__(?![\w`])")
_CUT_EMPHASIS = lazy_regex(r"^\*\*(?=\w)|(?<=\w[.:!?])\*\*$|(?<=\w)\*\*$", re.MULTILINE)
_CODE_BLOCK = lazy_regex(r"^```.{0,4000}?^```", re.DOTALL | re.MULTILINE)
_SENTENCE_END = lazy_regex(r"(?<=[.!?…])[\"')\]*`_]{0,4}\s+")
_LAST_LINES = 4_000


def without_markup(text: str) -> str:
    """Return a text without what marks its headings, lists and emphasis."""
    return without_cut_emphasis(_LINE_MARKUP.sub("", text))


def without_cut_emphasis(text: str) -> str:
    """Return a text without the signs around emphasized words, also where a cut left one of the two.

    Signs of code remain, as in ``2**20``, ``f(**named)``, ``src/**/*.ts`` and ``__init__``.
    """
    return _CUT_EMPHASIS.sub("", _STRONG_BY_LINES.sub(r"\1", _STRONG.sub(r"\2", text)))


def plain_lines(text: str) -> list[str]:
    """Return the lines of a text without code blocks and markup."""
    return [" ".join(line.split()) for line in without_markup(_CODE_BLOCK.sub("", text)).splitlines() if line.strip()]


def numbers_answered(prompt: str) -> list[str]:
    """Return the numbers of the items that a prompt answers one by one."""
    numbers = _ANSWERS_ONE_BY_ONE.findall(prompt)
    return numbers if len(numbers) > 1 and numbers == sorted(set(numbers)) else []


def items_named(text: str, prompt: str) -> list[str]:
    """Return the items of a message that a prompt answers one by one, means by "both" or "all", or names by letter or number."""
    groups: list[tuple[str, dict[str, str]]] = []
    last = ""
    for found in _OPTION.finditer(text[-_OPTIONS_READ:]):
        label, key = (found[1] or "").lower(), found[2].upper()
        if not groups or label != groups[-1][0] or ord(key) != ord(last) + 1:
            groups.append((label, {}))
        groups[-1][1][key] = " ".join(plain_lines(found.group()))
        last = key
    if numbers := numbers_answered(prompt):
        asked = next((items for _, items in reversed(groups) if items.keys() >= set(numbers)), None)
        return [f"({each}) {asked[each]}" for each in numbers] if asked else []
    short = prompt[:_SHORT_PROMPT]
    two = _MEANS_TWO.search(short)
    if two or _MEANS_ALL.search(short):
        meant = [
            items for _, items in sorted(groups, key=lambda each: bool(each[0])) if len(items) == 2 or (len(items) > 2 and not two)
        ]
        return list(meant[-1].values()) if meant else []
    named = ["".join(found).upper() for found in _NAMES_AN_OPTION.findall(short)]
    options = {key: item for _, items in groups for key, item in items.items()}
    chosen = [options[each] for each in dict.fromkeys(named) if each in options]
    return chosen if len(options) > 1 else []


_ASKS = lazy_regex(r"\?[\s\"')*`_]|\?\Z")
_HEADING_ASKS = lazy_regex(r"^(?:#{1,6} |\*\*)[^\n]{1,160}\?(?:\*\*)?$", re.MULTILINE)
_LONG_WORD = lazy_regex(r"[^\W_]{5,40}")
_QUESTION_END, _WORDS_OF_A_SENTENCE = 400, 4


def long_words(text: str) -> set[str]:
    return set(_LONG_WORD.findall(text[:_LAST_LINES].lower()))


def ending(text: str, length: int) -> str:
    """Return the last lines of a message, as far as there is room."""
    shown = ""
    for line in reversed([each for each in plain_lines(text[-_LAST_LINES:]) if each.strip("-*_ ")]):
        if shown and len(line) + len(shown) > length:
            break
        shown = f"{line} {shown}"
    asks = len(shown) > length and _ASKS.search(shown[-_QUESTION_END:])
    return f"…{end_of(shown.strip(), length - 1)}" if asks else clip_line(shown, length)


def answered_part(text: str, prompt: str, length: int) -> str:
    """Return what a prompt answers in a message: all, the items it names, the closing question, or what shares its words."""
    lines = [line for line in plain_lines(text[-_LAST_LINES:]) if line.strip("-*_ ")]
    if len(text) <= _LAST_LINES and len(" ".join(lines)) <= length:
        return " ".join(lines)
    chosen = items_named(text, prompt)
    if len(chosen) == 1:
        ends = ending(text, length - min(len(chosen[0]), length // 2)).removeprefix("…")
        return f"{clip(chosen[0], length // 2)} … {ends}"
    if chosen:
        return "; ".join(clip(each.rstrip("."), length // len(chosen)) for each in chosen)
    wanted = long_words(prompt)
    if _ASKS.search(text[-_QUESTION_END:]) or not wanted:
        headings = list(_HEADING_ASKS.finditer(text[-_LAST_LINES:]))
        if headings and (offered := plain_lines(text[-_LAST_LINES:][headings[-1].start() :])):
            return clip(" ".join(offered), length)
        if not wanted and (found := outline(text)) is not None and len(found.steps) > 1:
            return gist(text, length).replace('"', "")
    elif lines:
        length = length * 3 // 4  # a remark needs less than an approval
        nearest = max(range(len(lines)), key=lambda at: (len(wanted & long_words(lines[at])), at))
        if len(wanted & long_words(lines[nearest])) >= min(2, len(wanted)):
            about, last = " ".join(lines[nearest:]), clip(split_sentences(lines[-1])[-1], length // 2)
            return about if len(about) <= length else f"{clip(about, length - len(last)).removesuffix('…')} … {last}"
    first = split_sentences(" ".join(plain_lines(text[:_LAST_LINES])[:3]))
    begins = clip(next((said for said in first if len(said.split()) >= _WORDS_OF_A_SENTENCE), ""), length // 3)
    return f"{begins.removesuffix('…')} … {ending(text, length - len(begins)).removeprefix('…')}"


def ungreeted(text: str) -> str:
    """Return the text on one line, without a greeting at its beginning."""
    return _GREETS.sub("", " ".join(text.split()), count=1)


def is_chatter(sentence: str) -> bool:
    """Return whether a whole sentence only greets, thanks or praises."""
    return _CHATTER.fullmatch(sentence) is not None


def split_sentences(text: str) -> list[str]:
    return _SENTENCE_END.split(text)


def last_sentence(text: str) -> str:
    lines = [line for line in text[-_LAST_LINES:].splitlines() if line.strip()]
    return split_sentences(without_markup(lines[-1]).strip())[-1] if lines else ""


def last_question(text: str) -> str:
    """Return the last sentence if it is a question."""
    last = last_sentence(text)
    return last if last.rstrip("\"')]*`_ ").endswith(("?", "？")) else ""
