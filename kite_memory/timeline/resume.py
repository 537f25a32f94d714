"""Resume brief: where a session stood when it was left, from its events alone, each line with the events it rests on."""

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from pathlib import PurePath

from kite_memory.model.event import PLANNING, Event, EventType, Session, opens_turn
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip, clip_line, end_of, gist, outline
from kite_memory.timeline.failures import failed_lines, kinds_in
from kite_memory.timeline.runs import Run, bare, commits, last_branch, runs
from kite_memory.timeline.standing import (
    ANSWERED,
    BriefLine,
    BriefPart,
    ChangedFile,
    Stable,
    all_changes,
    changed_lines,
    changes_files,
    cited,
    code_since,
    inside,
    last_changes,
    last_stable,
    planned_checks,
    stable_lines,
    typed,
    verify_lines,
)
from kite_memory.timeline.summaries import TOOLS, todos


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """What to know to resume a session. ``lines`` are in the order of their parts, the weightiest first within a part.

    ``files`` are newest first. ``branch`` is the one last worked on.
    """

    session: Session
    branch: str
    at: datetime
    lines: tuple[BriefLine, ...]
    files: tuple[ChangedFile, ...]
    stable: Stable | None


_PROMPTS = 2
_PLAN_WITHIN = 2
"""Number of prompts: an older plan is not what a prompt that answers the agent is about."""
_DECISIONS = 2
_LATELY = 25
_SAID, _ASKED, _LONGER, _COMMAND, _SUBJECT = 240, 220, (900, 640, 460, 390, 320), 100, 80
_ITEM, _ITEMS = 110, 3
_STEPS, _STEP, _CHECK = 3, 60, 80
_OFFER, _AGREED_OFFER, _LONG_OFFER, _AT = 320, 480, 800, 280
_ANSWER, _QUESTION = 160, 70
_RECAP_PROMPTS = 4
_DONE = 3
_INPUTS = (0, 100, 60)
_LONG_AGO = 10
_READ_FOR_IT = 5
"""Number of calls after which a message no longer says what is being done."""
_TO_REPORT = "; what was done is then to be reported"
_ARGUMENT = lazy_regex(r"\A\w{1,30}: ")
_SHOWN_OTHERWISE = frozenset({"Read", "Edit", "MultiEdit", "Write", "read_file", "write_to_file", "apply_diff", "apply_patch"})
_LOOKS = lazy_regex(r"(?:.{1,60}__)?(?:grep|glob|search|list|find|ls|web|read|get|fetch)", re.IGNORECASE)
_REPLACES = lazy_regex(r"^old_string: (.{0,2000}?)\nnew_string: (.{0,2000})", re.DOTALL | re.MULTILINE)
_STEP_LEFT = 90
_FILE_NAMED = lazy_regex(r"[\w./@-]{1,120}\.[A-Za-z]\w{0,5}\b")
_LONG_FOLDER = lazy_regex(r"(?<![\w.~])/(?:[\w.@~+-]{1,80}/){2,}")
_ENDED = {"ok": "went well", "failed": "failed"}
_MESSAGES_BACK = 3
_QUESTION_END = 400
_READ = 4_000
_ON_THE_WAY = frozenset({EventType.TOOL_RESULT, EventType.FILE_ACTION, EventType.TEST_RESULT, EventType.ERROR, EventType.COMMAND})
_UNANSWERED = 6
"""Number of events: a call without a result further from the end was lost, not left unfinished."""
_ASKS = lazy_regex(r"\?[\s\"')*`_]|\?\Z")
_HEADING_ASKS = lazy_regex(r"^(?:#{1,6} |\*\*)[^\n]{1,160}\?(?:\*\*)?$", re.MULTILINE)
_LONG_WORD = lazy_regex(r"[^\W_]{5,40}")
_WORDS_IN_COMMON = 2
_WORDS_OF_A_REQUEST = 4
_WORDS_OF_ITS_OWN = 20
"""A shorter prompt refers to what the agent said before it."""
_A_TASK = 1_200
"""A prompt of as many characters describes a task, which later prompts may be about."""
_PLAN = lazy_regex(r"(?i)(?<=^# )(?:implementation )?plan: *")
_AGREES = 6
"""A prompt with fewer words, and no question, may only agree with what the agent offered."""
_ASKS_THE_PERSON = frozenset({"AskUserQuestion", "request_user_input", "ask_followup_question", "ask_user"})
_SENTENCES = lazy_regex(r"(?<=[.!?…])[\"')\]*`_]{0,4}\s+")
_ANNOUNCES = lazy_regex(
    r"\A\W{0,4}(?:now|next|then|let me|let['’]s|i['’]ll|i['’]m \w+ing|i will|i need to|running|time to|je vais|ich werde)\b"
    r"|:\s*\Z",
    re.IGNORECASE,
)
_SAYS_IT_WILL = lazy_regex(
    r"\A(?:.{1,60} [–—-] )?\W{0,4}(?:(?:now|next|then|first),? )?(?:let me (?!know\b)|let['’]s |i['’]ll "
    r"|i['’]m (?:now |going to )?\w+ing |i will "
    r"|i need to |je vais |nous allons |ich werde )",
    re.IGNORECASE,
)
"""The beginning of a message's last sentence that announces a next step."""
_ONLY_A_HEADING = lazy_regex(r"#{1,4} [^\n]{1,120}|\*\*[^\n*]{1,120}\*\*")
_CODE = lazy_regex(r"^```.{0,4000}?^```", re.DOTALL | re.MULTILINE)
_TO_DO = lazy_regex(
    r"^[ \t]{0,4}[#*_ \d.]{0,8}(?:suggested |recommended |possible )?(?:next steps?|next up|remaining(?: work| tasks| items)?"
    r"|still (?:to do|open|missing)|to-?do|what(?:'s| is) (?:next|left|missing)|not (?:yet )?done(?: yet)?|follow-?ups?)\b"
    r"[^\n]{0,80}\n{1,3}((?:[ \t]{0,6}(?:[-*•]|\d{1,2}[.)])[ \t]{1,3}[^\n]{1,600}(?:\n|\Z)){1,20})",
    re.MULTILINE | re.IGNORECASE,
)
"""A heading for remaining work, and the list below it."""
_MARKUP = lazy_regex(r"^\s{0,12}(?:#{1,6}|[-*>]|\d{1,3}[.)])\s+|[*`]{2,3}", re.MULTILINE)


def together(own: Sequence[Event], others: Sequence[Sequence[Event]]) -> list[Event]:
    """Merge a session's events with those of its sub-agents by time; the order within each is kept."""
    return [event for _, event in heapq.merge(*(_in_time(events) for events in (own, *others)), key=lambda pair: pair[0])]


def _in_time(events: Sequence[Event]) -> Iterator[tuple[datetime, Event]]:
    """Yield the events with times that never decrease, so that a clock that jumps back does not change the order."""
    latest: datetime | None = None
    for event in events:
        latest = event.at if latest is None else max(latest, event.at)
        yield latest, event


def brief(session: Session, events: Sequence[Event], sub_agents: Sequence[Sequence[Event]] = ()) -> Brief | None:
    """Return the brief, ``None`` without events.

    Messages are taken from the session itself, actions also from its sub-agents.
    """
    if not events:
        return None
    everything = together(events, sub_agents) if sub_agents else events
    done = runs(everything, session.cwd)
    made = commits(everything)
    changes = all_changes(everything, done, session.cwd)
    files = last_changes(changes)
    stable = last_stable(done, changes, made)
    failed = tuple(failed_lines(everything, done, made, changes))
    settled = stable is not None and not failed and not code_since(files, since=stable.place)
    lines = (
        *_doing(events),
        *_next(events, done, files, settled=settled),
        *changed_lines(files, made),
        *failed,
        *verify_lines(files, done, stable),
        *planned_checks(everything, done),
        *stable_lines(stable, files, done),
        *_open(events),
    )
    return Brief(
        session=session,
        branch=last_branch(events) or session.branch,
        at=max(event.at for event in everything),
        lines=lines,
        files=tuple(file for file in files if file.path),
        stable=stable,
    )


def _doing(events: Sequence[Event]) -> Iterator[BriefLine]:
    prompts = [event for event in events if (event.type is EventType.USER_MESSAGE or opens_turn(event)) and event.text.strip()]
    requests = [event for event in prompts[:-1] if len(event.text.split(None, _WORDS_OF_A_REQUEST)) >= _WORDS_OF_A_REQUEST]
    decisions = [event for event in events if event.type is EventType.DECISION and not opens_turn(event)]
    since = [event for event in decisions if not prompts or event.ordinal > prompts[-1].ordinal]
    offered = _answered_by(events, prompts[-1]) if prompts else None
    for event in prompts[-1:]:
        yield _asked_last(events, event, offered, since)
    if not prompts and (ran := [event for event in events if event.type is EventType.COMMAND][-_STEPS:]):
        commands = ", ".join(f"`{typed(event.command)}`" for event in ran)
        yield cited(BriefPart.DOING, f"no prompt is recorded; the last commands: {commands}", ran[-1])
    said = next((event for event in reversed(events) if event.type is EventType.ASSISTANT_MESSAGE and event.text.strip()), None)
    if said is not None and not _announces(events, said) and not (prompts and said.ordinal < prompts[-1].ordinal):
        texts = (clip_line(_MARKUP.sub("", said.text[:_READ]), length) for length in (_SAID, 2 * _SAID))
        short, longer = (f'the agent said last: "{text}"' for text in texts)
        yield replace(cited(BriefPart.DOING, short, said), longer=(longer,) if longer != short else ())
    for event in _recaps(events, prompts)[-1:]:
        yield cited(BriefPart.DOING, f'the agent\'s recap: "{clip_line(event.text, _SAID)}"', event)
    earlier = {clip_line(event.text, _ASKED): event for event in requests[1:] if event.text != prompts[-1].text}
    plan = next((event for event in reversed(requests) if event.tool == PLANNING or len(event.text) >= _A_TASK), None)
    before = [event for event in list(earlier.values())[: -_PROMPTS - 1 : -1] if event is not plan]
    plans = [event for event in (plan,) if event is not None]
    is_recent = plan is not None and plan.tool == PLANNING and (offered is None or plan in requests[-_PLAN_WITHIN:])
    for event in (*plans, *before) if is_recent else (*before, *plans):
        yield _asked("asked before", event)
    now = [event for event in (*prompts[-1:], *requests[-1:], offered) if event is not None]
    for event in requests[:1]:
        if event is not plan and (len(requests) <= _RECAP_PROMPTS or _is_about(event, now)):
            yield _asked("asked first", event)
    for event in reversed((decisions if not prompts else [each for each in decisions if each not in since])[-_DECISIONS:]):
        yield cited(BriefPart.DOING, f"decided: {_answer(event)}", event)


def _answered_by(events: Sequence[Event], prompt: Event) -> Event | None:
    """Return the agent's message that a short prompt answers."""
    refers = len(prompt.text.split(None, _WORDS_OF_ITS_OWN)) < _WORDS_OF_ITS_OWN
    return _offered_before(events, prompt) if refers else None


def _is_about(request: Event, now: Sequence[Event]) -> bool:
    """Return whether a request has words in common with what was said now."""
    said = {word for event in now for word in _words(event.text)}
    return len(said & _words(request.text)) >= _WORDS_IN_COMMON


def _words(text: str) -> set[str]:
    return set(_LONG_WORD.findall(text[:_READ].lower()))


def _asked_last(events: Sequence[Event], prompt: Event, before: Event | None, decisions: Sequence[Event]) -> BriefLine:
    """Return the last prompt with what it answers, the person's answers since, and whether they interrupted the agent."""
    after = "".join(f"; then answered {_answer(event)}" for event in decisions[-_DECISIONS:])
    if events[-1].type is EventType.RESUME_POINT and events[-1].status == "interrupted":
        after += "; then interrupted the agent"
    agrees = len(prompt.text.split(None, _AGREES)) < _AGREES and "?" not in prompt.text
    lengths = (_OFFER, _LONG_OFFER, _AGREED_OFFER) if agrees else (_OFFER,)
    offers = [_in_answer_to(before, prompt, length) for length in lengths]
    asked = _asked("asked last", prompt, offers[0] + after)
    longer = (*asked.longer, *dict.fromkeys(asked.text.replace(offers[0], each) for each in offers[1:] if each != offers[0]))
    evidence = cited(BriefPart.DOING, "", *filter(None, (prompt, before)), *decisions[-_DECISIONS:]).evidence
    return replace(asked, longer=longer, evidence=evidence)


def _in_answer_to(before: Event | None, prompt: Event, length: int) -> str:
    said = _offer(before.text, prompt.text, length) if before is not None else ""
    return f' in answer to: "{said}"' if said else ""


def _offer(text: str, prompt: str, length: int) -> str:
    """Return what a prompt answers: a message's beginning and closing question, else the lines that share words with the prompt."""
    lines = _lines(text[:_READ])
    if len(text) <= _READ and len(" ".join(lines)) <= length:
        return " ".join(lines)
    if _ASKS.search(text[-_QUESTION_END:]) or not _words(prompt):
        if (headings := list(_HEADING_ASKS.finditer(text[-_READ:]))) and (offered := _lines(text[-_READ:][headings[-1].start() :])):
            return clip(" ".join(offered), length)
        if not _words(prompt) and (found := outline(text)) is not None and len(found.steps) > 1:
            return gist(text, length).replace('"', "")
        begins = clip(_SENTENCES.split(lines[0])[0], length // 3) if lines else ""
        return f"{begins.removesuffix('…')} … {_ending(text, length - len(begins)).removeprefix('…')}"
    wanted = _words(prompt)
    nearest = max(range(len(lines)), key=lambda at: len(wanted & _words(lines[at])), default=0)
    return clip(" ".join(lines[nearest:]), length * 3 // 4)  # a remark needs less than an approval


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in _MARKUP.sub("", _CODE.sub("", text)).splitlines() if line.strip()]


def _asked(when: str, prompt: Event, after: str = "") -> BriefLine:
    what, text = (f"{when}, a plan", _PLAN.sub("", prompt.text, count=1)) if prompt.tool == PLANNING else (when, prompt.text)
    short, *longer = dict.fromkeys(f"{what}: {gist(text, length)}{after}" for length in (_ASKED, *_LONGER))
    return replace(cited(BriefPart.DOING, short, prompt), longer=tuple(longer))


def _answer(decision: Event) -> str:
    """Return an answer before its question, which may be long."""
    question, answered, answer = decision.text.partition("\nAnswer: ")
    if not answered:
        return clip_line(decision.text, _ASKED)
    return f'"{clip_line(answer, _ANSWER)}" to "{clip_line(question, _QUESTION)}"'


def _recaps(events: Sequence[Event], prompts: Sequence[Event]) -> list[Event]:
    """Return the agent's own recaps of the session; none that many prompts came after, since the task may have changed."""
    since = prompts[-_RECAP_PROMPTS].ordinal if len(prompts) >= _RECAP_PROMPTS else -1
    return [
        event for event in events if event.type is EventType.RESUME_POINT and event.role == "assistant" and event.ordinal > since
    ]


def _offered_before(events: Sequence[Event], prompt: Event) -> Event | None:
    """Return the agent's message before the prompt that ended a turn; ``None`` if it only announced its next step.

    A prompt that interrupts a turn refers to the message before that turn.
    """
    acted = False
    for event in reversed(events[: events.index(prompt)]):
        match event.type:
            case EventType.TOOL_CALL:
                acted = True
            case EventType.USER_MESSAGE:
                acted = False
            case EventType.ASSISTANT_MESSAGE if event.text.strip() and not acted:
                return None if _says_what_is_next(event.text) else event
    return None


def _ending(text: str, length: int) -> str:
    """Return the last lines of a message, as far as there is room."""
    shown = ""
    for line in reversed(_lines(text[-_READ:])):
        if shown and len(line) + len(shown) > length:
            break
        shown = f"{line} {shown}"
    asks = len(shown) > length and _ASKS.search(shown[-_QUESTION_END:])
    return f"…{end_of(shown.strip(), length - 1)}" if asks else clip_line(shown, length)


def _announces(events: Sequence[Event], said: Event) -> bool:
    """Return whether a message announces a next step, or was followed by one, and no prompt came after it."""
    later = any(event.type is EventType.USER_MESSAGE and event.ordinal > said.ordinal for event in events[-_LATELY:])
    if later or not said.text.strip():
        return False
    if any(event.type is EventType.TOOL_CALL and event.ordinal > said.ordinal for event in events[-_LATELY:]):
        return True  # a message in the middle of a turn says what the agent is doing
    return _says_what_is_next(said.text)


def _says_what_is_next(text: str) -> bool:
    is_heading = _ONLY_A_HEADING.fullmatch(text.strip()) is not None
    return is_heading or bool(_ANNOUNCES.search(text[:_READ].strip()) or _SAYS_IT_WILL.match(_last_sentence(text)))


def _next(events: Sequence[Event], done: Sequence[Run], files: Sequence[ChangedFile], *, settled: bool) -> Iterator[BriefLine]:
    """Yield the agent's own list or the steps of the plan, what was in progress, and the work named in the agent's last messages.

    A list that is older than the last prompt may be about something else, so what was in progress goes before it.
    """
    listed = list(_listed(events, done))
    at_hand = list(_in_hand(events, settled=settled))
    at_hand += () if listed or at_hand else _done_last(events, settled=settled)
    asked = next((event for event in reversed(events) if event.type is EventType.USER_MESSAGE), None)
    changed = max((event.at for event in events if event.tool in TOOLS), default=None)
    stale = asked is not None and changed is not None and asked.at > changed
    if at_hand:
        said = f"{at_hand[0].text}{_so_far(events, files, at_hand[0].text)}"
        at_hand[0] = replace(at_hand[0], text=said, longer=tuple(each for each in at_hand[0].longer if len(each) > len(said)))
    yield from (*at_hand, *listed) if stale else (*listed, *at_hand)
    if not listed:
        yield from _steps_left(events, files)
    messages = [event for event in events if event.type is EventType.ASSISTANT_MESSAGE and event.text.strip()]
    for event in reversed(messages[-_MESSAGES_BACK:]):
        if found := _TO_DO.search(event.text[:_READ]):
            items = [clip_line(_MARKUP.sub("", line), _ITEM) for line in found[1].splitlines() if line.strip()]
            more = f" and {len(items) - _STEPS} more" if len(items) > _STEPS else ""
            yield cited(BriefPart.NEXT, f"left to do, as the agent said: {'; '.join(items[:_STEPS])}{more}", event)
            return
    if not (listed or at_hand) and messages and events[-1] is messages[-1] and not _closing_question(messages[-1].text):
        yield cited(BriefPart.NEXT, ANSWERED, messages[-1])


def _so_far(events: Sequence[Event], files: Sequence[ChangedFile], said: str) -> str:
    """Return that nothing was changed yet for the last prompt, with the files read for it that are not in what is ``said``."""
    asked = max((at for at, event in enumerate(events) if opens_turn(event)), default=None)
    if asked is None or any(file.at >= events[asked].at for file in files):
        return ""
    read = dict.fromkeys(
        inside(event.path, "")
        for event in events[asked:]
        if event.type is EventType.FILE_ACTION and event.path and event.status != "failed"
    )
    named = [name for name in read if name not in said][-_READ_FOR_IT:]
    before = f", read before: {', '.join(named)}" if named else ""
    return f"; nothing is changed yet for this request{before}" if read else ""


def _steps_left(events: Sequence[Event], files: Sequence[ChangedFile]) -> Iterator[BriefLine]:
    """Yield the steps of the plan in hand that name a file not changed since, and those after the last that does not."""
    asked = next((event for event in reversed(events) if opens_turn(event)), None)
    found = outline(asked.text) if asked is not None and len(asked.text) >= _A_TASK else None
    if asked is None or found is None:
        return
    changed = {PurePath(file.path).name.lower() for file in files if file.path and file.at >= asked.at}
    named = [{PurePath(name).name.lower() for name in _FILE_NAMED.findall(step)} for step in found.steps]
    begun = max((at for at, names in enumerate(named) if names & changed), default=None)
    if begun is None:
        return
    left = [
        f"({at + 1}) {clip_line(step, _STEP_LEFT)}"
        for at, (step, names) in enumerate(zip(found.steps, named, strict=True))
        if (names and not names & changed) or at > begun
    ]
    if left:
        more = f" and {len(left) - _STEPS} more" if len(left) > _STEPS else ""
        yield cited(BriefPart.NEXT, f"left of the plan, by the files changed so far: {'; '.join(left[:_STEPS])}{more}", asked)


def _listed(events: Sequence[Event], runs_done: Sequence[Run]) -> Iterator[BriefLine]:
    listed = todos(events)
    last = next((event for event in reversed(events) if event.tool in TOOLS and event.type is EventType.TOOL_CALL), None)
    if listed is not None and last is not None and listed.open:
        asked = next((event for event in reversed(events) if event.type is EventType.USER_MESSAGE), None)
        stale = f" (last changed {listed.at:%m-%d %H:%M})" if asked is not None and asked.at > listed.at else ""
        tried = [run for run in runs_done if run.event.at >= listed.at and run.is_check and run.outcome != "unknown"]
        names = "; ".join(
            f"{'in hand: ' if item.standing == 'in_progress' else ''}{clip_line(item.text, _ITEM)}{_gone_well(item.text, tried)}"
            for item in listed.open[:_ITEMS]
        )
        more = f" and {len(listed.open) - _ITEMS} more" if len(listed.open) > _ITEMS else ""
        done = len(listed.items) - len(listed.open)
        yield cited(BriefPart.NEXT, f"open on the agent's list, {done} of {len(listed.items)} done{stale}: {names}{more}", last)


def _gone_well(item: str, tried: Sequence[Run]) -> str:
    """Return that the last run of the kind of check that an item of a list names went well."""
    checks = [run for run in tried if not changes_files(run)]
    last = {kind: next((run for run in reversed(checks) if kind in run.kinds), None) for kind in sorted(kinds_in(item))}
    well = [run for run in last.values() if run is not None and run.outcome == "ok"]
    if not well or len(well) < len(last):
        return ""
    return f" ({' and '.join(dict.fromkeys(f'`{clip_line(typed(run.command), _STEP)}`' for run in well))} went well since)"


def _in_hand(events: Sequence[Event], *, settled: bool) -> Iterator[BriefLine]:
    """Yield what the agent had announced and what it had begun. ``settled`` means that all was tested, and nothing fails."""
    answered = {event.call for event in events if event.call and event.type not in (EventType.TOOL_CALL, EventType.COMMAND)}
    begun = next((event for event in reversed(events[-_UNANSWERED:]) if event.call and event.call not in answered), None)
    said = next((event for event in reversed(events) if event.type is EventType.ASSISTANT_MESSAGE and event.text.strip()), None)
    if said is not None and _announces(events, said):
        after = events[events.index(said) :]
        if not any("git commit" in run.purposes for run in runs(after) if run.outcome != "unknown"):
            then = ", ".join(_done_since([event for event in after if begun is None or event.call != begun.call]))
            well = {kind for run in runs(after) if run.outcome == "ok" for kind in run.kinds}
            then += _TO_REPORT if settled and well and kinds_in(said.text) <= well else ""
            calls = len({event.call for event in after if event.call})
            when = f"the agent had said, {calls} calls before the end" if calls >= _LONG_AGO else "the agent was at"
            yield cited(BriefPart.NEXT, f'{when}: "{_ending(said.text, _AT)}"{f"; since then {then}" if then else ""}', said)
    if begun is not None and begun.tool not in _ASKS_THE_PERSON | TOOLS:
        asked = max((at for at, event in enumerate(events) if opens_turn(event)), default=-1)
        announced = said is not None and _announces(events, said)
        report = _TO_REPORT if settled and not announced and any(run.is_check for run in runs(events[asked + 1 :])) else ""
        texts = (f"begun, and no result was seen: {begun.tool} {_input(begun, most)}".rstrip() + report for most in _INPUTS)
        short, *longer = dict.fromkeys(texts)
        yield replace(cited(BriefPart.NEXT, short, begun), longer=tuple(longer))


def _input(call: Event, most: int) -> str:
    """Return what a call is to do: its command, its file with what is replaced by what, or its arguments.

    Replaced text is shown if ``most`` characters of it are wanted.
    """
    if call.command:
        return f"`{clip_line(bare(call.command), _COMMAND)}`"
    name = inside(call.path, "") if call.path else ""
    text = "" if call.text == call.path else call.text
    if replaced := _REPLACES.search(text[:_READ]):
        before, after = (clip_line(each, most) for each in _difference(replaced[1], replaced[2]))
        everywhere = "all " if "replace_all: true" in text[:_READ] else ""
        return f"{name}, {everywhere}`{before}` to `{after}`".removeprefix(", ") if most else name
    shown = _argument(text) if _LOOKS.match(call.tool) else text
    return ": ".join(filter(None, (name, clip_line(shown, _COMMAND))))


def _difference(before: str, after: str) -> tuple[str, str]:
    """Return the lines from the first that differs."""
    ours, theirs = before.strip().splitlines(), after.strip().splitlines()
    same = next((at for at, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), min(len(ours), len(theirs)))
    return " ".join(ours[same:]), " ".join(theirs[same:])


def _done_since(events: Sequence[Event]) -> Iterator[str]:
    """Yield what was done, in order: the files read and changed, and the commands with how they ended."""
    ended = {run.event.call: run for run in runs(events) if run.event.call}
    for action, group in groupby(list(_steps_of(events, ended))[-_DONE:], key=lambda step: step[0]):
        yield f"{action} {', '.join(dict.fromkeys(name for _, name in group))}".lstrip()


def _short(command: str) -> str:
    """Return a command without the folders of its files."""
    return clip_line(_LONG_FOLDER.sub("…/", bare(command)), _STEP)


def _argument(text: str) -> str:
    """Return the first argument of a call, without its name."""
    first = text.partition("\n")[0]
    return _ARGUMENT.sub("", first, count=1)


def _steps_of(events: Sequence[Event], ended: Mapping[str, Run]) -> Iterator[tuple[str, str]]:
    shown: set[str] = set()
    for event in events:
        if event.type is EventType.FILE_ACTION and event.path and event.status != "failed":
            yield event.text.partition(",")[0].strip()[:20] or "changed", inside(event.path, "")
        elif (run := ended.get(event.call)) is not None and event.call not in shown:
            shown.add(event.call)
            if run.outcome != "unknown" and run.purposes:
                yield "", f"`{_short(run.command)}` {_ENDED[run.outcome]}"
            elif run.command:
                yield "looked with", f"`{_short(run.command)}`{' (failed)' if run.outcome == 'failed' else ''}"
        elif event.type is EventType.TOOL_CALL and event.tool not in _SHOWN_OTHERWISE and _LOOKS.match(event.tool):
            yield "looked with", f"{event.tool} {clip_line(_argument(event.text), _STEP)}"


def _done_last(events: Sequence[Event], *, settled: bool) -> Iterator[BriefLine]:
    """Yield the last action of a session that was left midway."""
    asked = max((at for at, event in enumerate(events) if opens_turn(event)), default=-1)
    since = events[asked + 1 :]
    if events[-1].type in _ON_THE_WAY and since:
        seen = (event for event in reversed(since) if event.command or event.type in (EventType.FILE_ACTION, EventType.TOOL_CALL))
        done = next(seen, since[-1])
        what = (
            f"`{clip_line(bare(done.command), _COMMAND)}`"
            if done.command
            else clip_line(f"{done.tool} {done.text}", 2 * _STEP)
            if not done.path
            else clip_line(f"{done.text.partition(',')[0]} {inside(done.path, '')}", 2 * _STEP)
        )
        report = _TO_REPORT if settled and any(run.is_check for run in runs(since)) else ""
        yield cited(BriefPart.NEXT, f"left before an answer to what was asked last; done last: {what}{report}", done)


def _open(events: Sequence[Event]) -> Iterator[BriefLine]:
    """Yield the agent's closing question, then prompts without an answer, the last first.

    A prompt that was repeated, or taken back by interrupting the agent, is left out.
    """
    results = {event.call for event in events if event.call and event.type in (EventType.TOOL_RESULT, EventType.DECISION)}
    closing: Event | None = None
    choice: Event | None = None
    waiting: dict[str, Event] = {}
    latest = ""
    answered = True
    taken_back = False
    for event in events:
        match event.type:
            case EventType.USER_MESSAGE:
                if not answered and (taken_back or "?" not in latest[-_QUESTION_END:]):
                    waiting.popitem()
                latest = event.text
                words = " ".join(latest.split())
                waiting.pop(words, None)
                waiting[words] = event
                closing, choice, answered, taken_back = None, None, False, False
            case EventType.RESUME_POINT if event.status == "interrupted":
                taken_back = not answered
            case EventType.ASSISTANT_MESSAGE if event.text.strip():
                closing = event
                if not answered:
                    waiting.popitem()
                    answered = True
            case EventType.TOOL_CALL:
                if not answered and "?" not in latest[-_QUESTION_END:]:
                    waiting.popitem()  # the agent began to act on it, which is what a request asks for
                    answered = True
                if event.tool in _ASKS_THE_PERSON and event.call and event.call not in results:
                    choice = event
            case _:
                continue
    if choice is not None:
        yield cited(BriefPart.OPEN, f"the agent asked, and had no answer: {clip_line(choice.text, _ASKED)}", choice)
    if closing is not None and (question := _closing_question(closing.text)):
        yield cited(BriefPart.OPEN, f'the agent asks: "{clip_line(question, _ASKED)}"', closing)
    for event in list(reversed(waiting.values()))[:2]:
        if event.text.strip():
            length = _QUESTION if event.text == latest else _ASKED  # the last prompt stands in the brief already
            yield cited(BriefPart.OPEN, f'the person had no answer to: "{clip_line(event.text, length)}"', event)


def _closing_question(text: str) -> str:
    """Return the last sentence if it is a question."""
    last = _last_sentence(text)
    return last if last.rstrip("\"')]*`_ ").endswith(("?", "？")) else ""


def _last_sentence(text: str) -> str:
    lines = [line for line in text[-_READ:].splitlines() if line.strip()]
    return _SENTENCES.split(_MARKUP.sub("", lines[-1]).strip())[-1] if lines else ""
