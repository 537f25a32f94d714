"""Division of a session into finished chunks, and a chunk condensed for a model.

What a model gets is a twentieth of the transcript's bytes, with everything that was said in it.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from kite_memory.distill.asked_to_keep import asked_to_keep
from kite_memory.distill.prose import bounded, clean, key_lines, one_line, without_emphasis
from kite_memory.model.event import Event, EventType, opens_turn
from kite_memory.model.note import Chunk
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip

_WEIGHT_CAP = {
    EventType.USER_MESSAGE: 4000,
    EventType.ASSISTANT_MESSAGE: 1200,
    EventType.DECISION: 4000,
    EventType.RESUME_POINT: 1200,
    EventType.ERROR: 400,
    EventType.TEST_RESULT: 200,
    EventType.COMMAND: 160,
}
"""Approximate characters of an event once condensed. Results and plain calls are shortened or dropped there."""

_RESTING = (EventType.ASSISTANT_MESSAGE, EventType.RESUME_POINT)
_MESSAGES = (EventType.USER_MESSAGE, *_RESTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkPolicy:
    """When a chunk ends. ``target`` and ``most`` are approximate characters of condensed text.

    The end of a turn past ``target`` closes a chunk; past ``most`` the next boundary between two messages does, past twice that any
    event. ``idle`` seconds of silence close a chunk that ends with the agent's message, if it is ``urgent`` or weighs ``target``;
    any other is closed by ``stalled`` seconds. With a paid model each chunk costs the fixed part of the prompt again, so only what
    a person explicitly asked to keep should be urgent.

    With ``at_pauses`` a past silence counts too: a session read afterwards is divided where it would have been divided live. Where
    the agent went on by itself it does not, however long that took: mostly it was only writing a call.
    """

    target: int = 14_000
    most: int = 40_000
    idle: float = 120.0
    stalled: float = 900.0
    urgent: Callable[[Sequence[Event]], bool] = lambda events: True
    at_pauses: bool = False


PAID = ChunkPolicy(target=56_000, most=72_000)
"""Policy for paid models: each call costs the fixed part of the prompt, and fifteen thousand tokens are read as well as four."""

FREE = ChunkPolicy(target=100_000, most=200_000, idle=20.0, at_pauses=True)
"""Policy for calls that cost nothing: after each pause, and mostly with the same division for a session that is over.

Where Claude Code spoke before a call (2,563 times), it came within 3 seconds in 78 of 100 cases, within 20 seconds in 98.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Identity and bounds of a chunk, as the outbox stores them. Both ordinals are inclusive; the events' ids stay valid when
    ordinals change.
    """

    id: str
    provider: str
    session: str
    first: int
    last: int
    weight: int
    first_event: str = ""
    last_event: str = ""


def finished(events: Sequence[Event], policy: ChunkPolicy, *, quiet_for: float) -> Iterator[Span]:
    """Yield the finished chunks at the front of ``events``, in order; the rest is still in progress.

    ``events`` are one session's, in order, none of them in a chunk yet.
    """
    begin, weight = 0, 0
    for index, event in enumerate(events):
        if (event.type is EventType.USER_MESSAGE or opens_turn(event)) and weight >= policy.target:
            yield _span(events[begin:index], weight)
            begin, weight = index, 0
        weight += _weigh(event)
        following = events[index + 1].type if index + 1 < len(events) else None
        too_long = (weight >= policy.most and following in _MESSAGES) or weight >= 2 * policy.most
        if following is not None and (too_long or (policy.at_pauses and _paused(events, begin, index, policy))):
            yield _span(events[begin : index + 1], weight)
            begin, weight = index + 1, 0
    if begin < len(events) and quiet_for >= silence_needed(events[begin:], policy):
        yield _span(events[begin:], weight)


def _paused(events: Sequence[Event], begin: int, index: int, policy: ChunkPolicy) -> bool:
    """Return whether the silence after an event was long enough to close the events from ``begin`` to it."""
    if not (opens_turn(events[index + 1]) or events[index + 1].type is EventType.USER_MESSAGE):
        return False
    silence = (events[index + 1].at - events[index].at).total_seconds()
    return silence >= policy.idle and silence >= silence_needed(events[begin : index + 1], policy)


def silence_needed(left_over: Sequence[Event], policy: ChunkPolicy) -> float:
    """Return the seconds of silence after which the remaining events count as finished.

    A pause between a person's message and the agent's reply, or between a call and its result, does not count as an end.
    """
    at_rest = bool(left_over) and left_over[-1].type in _RESTING and worth_asking(left_over)
    if at_rest and (sum(map(_weigh, left_over)) >= policy.target or policy.urgent(left_over)):
        return policy.idle
    return max(policy.idle, policy.stalled)


def _weigh(event: Event) -> int:
    return min(len(event.text) or len(event.command), _WEIGHT_CAP.get(event.type, 40)) + 12


def _span(events: Sequence[Event], weight: int) -> Span:
    first, last = events[0], events[-1]
    name = "\0".join((first.provider, first.session, first.id, last.id))
    return Span(
        id=hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32],
        provider=first.provider,
        session=first.session,
        first=first.ordinal,
        last=last.ordinal,
        weight=weight,
        first_event=first.id,
        last_event=last.id,
    )


def middle(events: Sequence[Event]) -> int | None:
    """Return the ordinal at which to divide a chunk's ``events``: that of the message nearest to their middle; ``None`` for a
    single event.
    """
    if len(events) < 2:
        return None
    half = len(events) / 2
    places = [place for place in range(1, len(events)) if events[place].type in _MESSAGES] or list(range(1, len(events)))
    return events[min(places, key=lambda place: (abs(place - half), place))].ordinal


def worth_asking(events: Sequence[Event]) -> bool:
    """Return whether there is enough text to extract from; no call is made for "yes" and a file listing.

    A request to remember is enough, however short.
    """
    said = sum(
        len(event.text)
        for event in events
        if event.type in (EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE, EventType.DECISION, EventType.RESUME_POINT)
    )
    return said >= 80 or any(event.role == "user" and bool(asked_to_keep(event.text)) for event in events)


SMALLEST_LIMIT = 1_000

_READ = 24_000
"""Characters of one event that are read, however long it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condensed:
    """Condensed chunk. ``ids`` maps each short id in ``text`` to the full id of its event."""

    text: str
    ids: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """Most characters of each kind of line. ``prose`` is for an agent's last message of a turn, ``aside`` for its earlier ones;
    ``calls`` of 0 omits tool calls.
    """

    person: int
    decided: int
    prose: int
    aside: int
    report: int
    result: int
    calls: int


_TIGHTER = (
    _Bounds(person=3_000, decided=2_600, prose=1_100, aside=260, report=3_000, result=240, calls=60),
    _Bounds(person=2_600, decided=2_000, prose=800, aside=240, report=3_000, result=200, calls=60),
    _Bounds(person=1_500, decided=1_000, prose=600, aside=250, report=1_400, result=200, calls=60),
    _Bounds(person=700, decided=500, prose=320, aside=200, report=600, result=140, calls=0),
    _Bounds(person=300, decided=240, prose=160, aside=100, report=240, result=90, calls=0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    id: str
    text: str


def condense(chunk: Chunk, *, limit_chars: int, label: str = "A") -> Condensed:
    """Condense the chunk, named ``label``, to at most ``limit_chars`` characters (or `SMALLEST_LIMIT`, if that is more).

    Each event with content is one block that starts with its short id; following lines are indented, so that no text can pose as an
    event. Every ``<`` of the transcript is replaced, so that none can close the enclosing element. If the chunk is too long, every
    text is shortened; if that is not enough, the middle is left out.
    """
    limit = max(limit_chars, SMALLEST_LIMIT)
    short = short_ids([event.id for event in chunk.events])
    head, foot = _opening(chunk, label), "</transcript>"
    room = limit - len(head) - len(foot) - 2
    lines: list[_Line] = []
    for bounds in _TIGHTER:
        lines = list(_lines(chunk, short, bounds))
        if sum(len(line.text) + 1 for line in lines) <= room:
            break
    else:
        lines = _without_middle(lines, room)
    text = "\n".join([head, *(line.text for line in lines), foot])
    return Condensed(text=text, ids={short[line.id]: line.id for line in lines if line.id})


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Map each full id to a number of four digits, or more where two would share it.

    A model pays for all that it reads or quotes. The number depends on the id alone: if an event is erased while an answer is on
    its way, no other event takes its number.
    """
    short: dict[str, str] = {}
    waiting = list(dict.fromkeys(ids))
    for digits in (4, 6, 9, 18):
        claims: defaultdict[str, list[str]] = defaultdict(list)
        for id in waiting:
            claims[_number(id, digits)].append(id)
        short.update((claimants[0], number) for number, claimants in claims.items() if len(claimants) == 1)
        waiting = [id for claimants in claims.values() if len(claimants) > 1 for id in claimants]
    return short


def _number(id: str, digits: int) -> str:
    least = 10 ** (digits - 1)
    hashed = int.from_bytes(hashlib.sha256(id.encode("utf-8", "surrogatepass")).digest()[:16])
    return str(least + hashed % (9 * least))


def _opening(chunk: Chunk, label: str) -> str:
    session = chunk.session
    facts = {
        "stretch": label,
        "agent": session.provider,
        "project": session.project,
        "branch": session.branch,
        "date": chunk.events[0].at.date().isoformat() if chunk.events else "",
    }
    attributes = "".join(f' {name}="{_quotable(value)}"' for name, value in facts.items() if value)
    return f"<transcript{attributes}>"


def _quotable(text: str) -> str:
    return clip(one_line(text[:200]), 60).translate({ord('"'): "'", ord("<"): "‹", ord(">"): "›", ord("&"): "+"})


def _without_middle(lines: Sequence[_Line], room: int) -> list[_Line]:
    room -= 60
    first: list[_Line] = []
    last: list[_Line] = []
    front, back = 0, len(lines) - 1
    spent = 0
    while front <= back:
        take_front = front <= len(lines) - 1 - back
        line = lines[front] if take_front else lines[back]
        if spent + len(line.text) + 1 > room:
            break
        spent += len(line.text) + 1
        if take_front:
            first.append(line)
            front += 1
        else:
            last.append(line)
            back -= 1
    missing = len(lines) - len(first) - len(last)
    return [*first, _Line(id="", text=f"(… {missing} events left out …)"), *reversed(last)]


def _lines(chunk: Chunk, short: Mapping[str, str], bounds: _Bounds) -> Iterator[_Line]:
    """Yield lines. Edits are collected into one line until a message or a failure. Left out are calls that only look, commands
    and long texts that stand above already, recaps of what does, and interruptions that the line before names.
    """
    run: list[Event] = []
    closing = _closing(chunk.events)
    said: set[str] = set()
    begun = stopped = False
    for event in _without_repeats(chunk.events):
        if event.type is EventType.RESUME_POINT and (stopped if event.status == "interrupted" else begun):
            continue
        begun = begun or event.type is EventType.ASSISTANT_MESSAGE
        stopped = event.status in ("denied", "interrupted")
        if _is_call(event):
            if not bounds.calls or event.tool.lower() in _SILENT_TOOLS or _manner(event) == "looked at":
                continue
            if run and (not _manner(event) or _manner(run[0]) != _manner(event)):
                yield from _run_lines(run, chunk, short, bounds, said)
                run = []
            run.append(event)
        elif line := _event_line(event, bounds, closes=event.id in closing):
            if line in said and len(line) > _REPEATED:
                continue
            said.add(line)
            yield from _run_lines(run, chunk, short, bounds, said)
            run = []
            yield _line(event, short, line)
    yield from _run_lines(run, chunk, short, bounds, said)


def _without_repeats(events: Sequence[Event]) -> Iterator[Event]:
    """Yield the events; of several that a source made of one call, or of its one result, only the one with the most content."""
    kinds: defaultdict[str, set[EventType]] = defaultdict(set)
    for event in events:
        if event.call:
            kinds[event.call].add(event.type)
    for event in events:
        others = kinds.get(event.call, set())
        match event.type:
            case EventType.TOOL_CALL:
                repeated = EventType.COMMAND in others
            case EventType.FILE_ACTION:
                repeated = EventType.TOOL_CALL in others
            case EventType.TOOL_RESULT:
                repeated = bool(others & {EventType.TEST_RESULT, EventType.ERROR, EventType.DECISION}) and event.status != "denied"
            case EventType.ERROR:
                repeated = EventType.TEST_RESULT in others
            case _:
                repeated = False
        if not repeated:
            yield event


def _line(event: Event, short: Mapping[str, str], shown: str) -> _Line:
    return _Line(id=event.id, text=f"[{short[event.id]}] " + shown.replace("<", "‹").replace("\n", "\n  "))


def _is_call(event: Event) -> bool:
    return event.role != "user" and event.type in (EventType.TOOL_CALL, EventType.COMMAND, EventType.FILE_ACTION)


def _closing(events: Sequence[Event]) -> frozenset[str]:
    """Return the ids of the agent's last messages before each message or decision of a person, and at the end."""
    found: set[str] = set()
    last = ""
    for event in events:
        if event.type is EventType.ASSISTANT_MESSAGE:
            last = event.id
        elif event.role == "user" and event.type in (EventType.USER_MESSAGE, EventType.DECISION):
            found.add(last)
    return frozenset((*found, last))


def _event_line(event: Event, bounds: _Bounds, *, closes: bool) -> str:
    """Return the line of an event that is not a call; empty for one without content."""
    text = bounded(event.text, _READ)
    match event.type:
        case EventType.USER_MESSAGE:
            speaker = "PERSON" if event.role == "user" else "PROMPT OF ANOTHER AGENT"
            return f"{speaker}: {_shortened_prose(text, bounds.person)}"
        case EventType.DECISION:
            return f"DECIDED BY THE PERSON: {_shortened_prose(text, bounds.decided)}"
        case EventType.ASSISTANT_MESSAGE:
            if not closes and len(text) < _IN_PASSING and not _INFORMATIVE.search(text):
                return ""
            room = bounds.prose if closes else bounds.aside
            return f"AGENT: {prose}" if (prose := _shortened_prose(_without_code(text), room)) else ""
        case EventType.RESUME_POINT:
            recap = clip(one_line(text), bounds.result)
            return f"(interrupted: {recap})" if event.status == "interrupted" else f"(recap: {recap})"
        case EventType.COMMAND if event.role == "user":
            return f"PERSON RAN: {clip(one_line(event.command or text), bounds.person)}"
        case EventType.TEST_RESULT:
            if event.status == "failed":
                return f"TESTS FAILED: {key_lines(text, bounds.result)}"
            return f"tests: {key_lines(text, 100, lines=1)}"
        case EventType.ERROR | EventType.TOOL_RESULT | EventType.COMMAND | EventType.FILE_ACTION | EventType.TOOL_CALL:
            return _result_line(event, text, bounds)


def _result_line(event: Event, text: str, bounds: _Bounds) -> str:
    match event.status:
        case "denied":
            return f"REFUSED {event.tool}: {clip(one_line(text), bounds.result)}"
        case "interrupted":
            return f"INTERRUPTED {event.tool}"
        case "failed":
            return f"FAILED {event.tool}: {key_lines(text, bounds.result)}"
        case _ if event.type is EventType.ERROR:
            return f"FAILED {event.tool}: {key_lines(text, bounds.result)}"
        case _ if event.tool.lower() in _ASKING_TOOLS and not text.startswith(_LAUNCHED):
            return f"REPORT OF A SUB-AGENT: {_shortened_prose(_without_code(text), bounds.report)}"
        case _:
            return ""


def _shortened_prose(text: str, limit: int) -> str:
    """Shorten a long message to its beginning and end: it opens with its topic and ends with the result."""
    text = _plain(_BLANK_LINES.sub("\n", clean(text))).strip()
    if len(text) <= limit:
        return text
    head = clip(text[: limit * 3 // 5], limit * 3 // 5 - 3)
    tail = text[-(limit * 2 // 5) + 3 :]
    starts = (tail.find("\n"), tail.find(". ") + 1, tail.find(" "))
    start = next((at for at in starts if 0 < at < len(tail) // 2), 0)
    return f"{head}\n{'' if head.endswith('…') else '…'}{tail[start:].lstrip()}"


_REPEATED = 60
"""Characters from which a text that is repeated word for word is left out: a short one may answer another question each time."""

_IN_PASSING = 140
_INFORMATIVE = lazy_regex(
    r"because|cause|found|turns? out|issue|problem|bug|wrong|actually|instead|wait\b|fail|error|fix|not\b|n't\b|decid|should"
    r"|must|never|only|confirm|right\b|agree|weil|grund|fehler|nicht",
    re.IGNORECASE,
)
"""Words that make a short line worth keeping, unlike those of "Let me look at the tests" alone."""

_BLANK_LINES = lazy_regex(r"\n[ \t]*(?:\n[ \t]*)+")
_HEADING = lazy_regex(r"^[ \t]{0,8}#{1,6} ", re.MULTILINE)
"""Marks of headings: like those of bold text, a model pays for them, and they say nothing."""

_ALIKE = 4
_WITH_DIGIT = lazy_regex(r"(?<![\w./:@~^-])[\w./:@~^-]*\d[\w./:@~^-]*")
"""Begins only where a word begins: from every character of a long one it would take quadratic time."""


def _plain(text: str) -> str:
    """Remove markup. Of more than four rows in a run that differ only in words with digits, as pasted output has them, two stay."""
    kept: list[str] = []
    said = [row for row in _HEADING.sub("", without_emphasis(text)).split("\n") if "--" not in row or row.strip(" \t|:-")]
    for shape, rows in groupby(said, key=lambda row: _WITH_DIGIT.sub("#", row)):
        run = list(rows)
        folds = "#" in shape and len(run) > _ALIKE
        kept += [*run[:2], f"… ({len(run) - 2} lines like these)"] if folds else run
    return "\n".join(kept)


_FENCE = lazy_regex(r"^[ \t]{0,8}(?:```|~~~)", re.MULTILINE)


def _without_code(text: str) -> str:
    """Shorten fenced blocks of more than six lines to their first three."""
    if "```" not in text and "~~~" not in text:
        return text
    kept: list[str] = []
    block: list[str] = []
    inside = False
    for row in text.split("\n"):
        if _FENCE.match(row):
            if inside:
                kept.extend(_folded(block))
                block = []
            inside = not inside
        elif inside:
            block.append(row)
        else:
            kept.append(row)
    return "\n".join([*kept, *_folded(block)])


def _folded(block: Sequence[str]) -> Sequence[str]:
    return block if len(block) <= 6 else [*block[:3], f"… ({len(block) - 3} lines)"]


_LOOKING_TOOLS = frozenset(
    (
        "read",
        "grep",
        "glob",
        "ls",
        "notebookread",
        "toolsearch",
        "websearch",
        "webfetch",
        "view",
        "view_file",
        "read_file",
        "read_many_files",
        "list_dir",
        "list_directory",
        "search_files",
        "grep_search",
        "file_search",
        "codebase_search",
        "search_file_content",
        "find_by_name",
    )
)
_SILENT_TOOLS = frozenset(
    (
        "todowrite",
        "todoread",
        "taskcreate",
        "taskupdate",
        "tasklist",
        "taskget",
        "taskoutput",
        "bashoutput",
        "killshell",
        "update_plan",
        "enterplanmode",
    )
)
_EDITING_TOOLS = frozenset(
    (
        "edit",
        "write",
        "multiedit",
        "notebookedit",
        "apply_patch",
        "write_file",
        "replace",
        "create_file",
        "str_replace_editor",
        "edit_file",
    )
)
_ASKING_TOOLS = frozenset(("task", "agent"))
_LAUNCHED = "Async agent launched"
"""The client's fixed message when an agent goes to the background; its findings come later."""
_STEP_INTO = lazy_regex(r"^\s{0,8}cd [^\s;&|]{1,200} ?&& ?")
_OUTPUT = lazy_regex(
    r"\s{0,8}(?:2>&1|2?>\s?/dev/null|\|\s{0,8}(?:tail|head)(?:\s{1,8}-\w{1,12})*(?:\s{1,8}\d{1,8})?(?=\s{0,8}(?:$|[;&|])))"
)
"""Parts of a command that only say how much of its output the agent read."""
_CHANGES = lazy_regex(r"\bsed (?:-\w+ )?-i|\bxargs\b|[^2&]>\s?[^&/\s]|\btee\b|-delete\b|-exec\b")
_LOOKING_COMMAND = lazy_regex(
    r"(?:cat|ls|head|tail|grep|egrep|rg|find|wc|pwd|tree|stat|file|which|sed -n|jq|diff"
    r"|git (?:-C \S{1,200} )?(?:--no-pager )?(?:status|log|diff|show|branch|blame|rev-parse|remote))\b"
)


def _manner(event: Event) -> str:
    """Return the kind of a call. Calls of the same kind share a line; an empty kind gets its own line."""
    tool = event.tool.lower()
    if event.command:
        command = _STEP_INTO.sub("", event.command[:400])
        return "looked at" if _LOOKING_COMMAND.match(command) and not _CHANGES.search(command) else ""
    if tool in _LOOKING_TOOLS:
        return "looked at"
    return "edited" if event.type is EventType.FILE_ACTION or tool in _EDITING_TOOLS else ""


def _run_lines(run: Sequence[Event], chunk: Chunk, short: Mapping[str, str], bounds: _Bounds, said: set[str]) -> Iterator[_Line]:
    """Yield the line of a run of calls of one kind, unless it is a command that was run before."""
    if not run:
        return
    manner = _manner(run[0])
    objects = list(dict.fromkeys(_object(event, chunk) for event in run))
    if manner:
        summary = f"{manner} {len(objects)}: {', '.join(objects)}" if len(objects) > 1 else f"{manner} {objects[0]}"
    else:
        summary = f"ran {objects[0]}" if run[0].command else f"called {objects[0]}"
    if not run[0].command or summary not in said:
        said.add(summary)
        yield _line(run[0], short, clip(summary, bounds.calls))


def _object(event: Event, chunk: Chunk) -> str:
    if event.command:
        return clip(one_line(_OUTPUT.sub("", _STEP_INTO.sub("", event.command[:400]))), 150)
    if event.path:
        return clip(one_line(event.path[:400]).removeprefix(chunk.session.cwd.rstrip("/") + "/"), 80)
    return clip(f"{one_line(event.tool[:60])} {one_line(event.text[:200])}".strip(), 90)
