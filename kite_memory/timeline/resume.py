"""Resume brief: where a session stood when it was left, from its events alone, each line with the events it rests on."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby, product

from kite_memory.model.event import PLANNING, Event, EventType, Session, merged_by_time, opens_turn
from kite_memory.text import lazy_regex
from kite_memory.text.display import (
    answered_part,
    clip,
    clip_line,
    clip_middle,
    ending,
    first_of,
    gist,
    is_mostly_output,
    items_named,
    last_question,
    last_sentence,
    long_words,
    numbers_answered,
    plain_lines,
    split_sentences,
    without_markup,
)
from kite_memory.timeline.failures import CHANGE_FILES, failed_lines
from kite_memory.timeline.progress import (
    A_TASK,
    ANSWERED,
    BriefLine,
    BriefPart,
    ChangedFile,
    Stable,
    all_changes,
    changed_lines,
    cited,
    cited_in_lengths,
    code_since,
    inside,
    last_changes,
    last_stable,
    planned_checks,
    stable_lines,
    steps_left,
    typed,
    verify_lines,
)
from kite_memory.timeline.runs import Commit, Run, bare, commits, kinds_in, last_branch, of_stashed_work, runs, started_by
from kite_memory.timeline.summaries import TOOLS, is_later, todo_lines


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
_ITEM = 110
_STEPS, _STEP, _CHECK = 3, 60, 80
_SHORT_OFFER, _OFFER, _FULL_OFFER, _ITEMS, _AGREED_OFFER, _LONG_OFFER, _AT = 160, 240, 320, 400, 480, 800, 280
_ANSWER, _QUESTION = 160, 70
_RECAP_PROMPTS = 4
_DONE = 3
_LOOKED = "looked with"
_FOUND = (160, 80)
"""Characters shown of what the last look found, and the one before it."""
_INPUTS = (0, 200, 100, 60)
_FINDINGS, _FINDING, _WORDS_OF_A_FINDING = 3, 180, 6
_KNOWS = lazy_regex(
    r"\b(?:found (?:it|the)|confirmed|root cause|the (?:real|actual) (?:cause|bug|problem|issue|reason))\b", re.IGNORECASE
)
_GUESSES = lazy_regex(r"\b(?:likely|probably|perhaps|maybe|might|may be|could be|suspect|seems? to|hypothesis)\b", re.IGNORECASE)
"""What an agent supposes, of no use once it knows."""
_LONG_AGO = 10
_READ_FOR_IT = 5
"""Number of calls after which a message no longer says what is being done."""
_TO_REPORT = "; what was done is then to be reported"
_ONLY_SAYS = lazy_regex(r"(?:&&|;) *echo +(?:\"[^\"]{0,80}\"|'[^']{0,80}'|[\w=-]{1,40}) *(?=&&|;)")
_ARGUMENT = lazy_regex(r"\A\w{1,30}: ")
_SHOWN_OTHERWISE = frozenset({"Read", "Edit", "MultiEdit", "Write", "read_file", "write_to_file", "apply_diff", "apply_patch"})
_GIVE_BACK = frozenset({"Task", "Agent"})
_HANDS_OVER = _GIVE_BACK | {"new_task", "spawn_agent"}
_LOOKS = lazy_regex(r"(?:.{1,60}__)?(?:grep|glob|search|list|find|ls|web|read|get|fetch)", re.IGNORECASE)
_REPLACES = lazy_regex(r"^old_string: (.{0,2000}?)\nnew_string: (.{0,2000})", re.DOTALL | re.MULTILINE)
_LONG_FOLDER = lazy_regex(r"(?<![\w.~])/(?:[\w.@~+-]{1,80}/){2,}")
_ENDED = {"ok": "went well", "failed": "failed", "unknown": "ended, how is not clear"}
_MESSAGES_BACK = 3
_READ = 4_000
_ON_THE_WAY = frozenset({EventType.TOOL_RESULT, EventType.FILE_ACTION, EventType.TEST_RESULT, EventType.ERROR, EventType.COMMAND})
_ACTS = frozenset({EventType.ASSISTANT_MESSAGE, EventType.TOOL_CALL, EventType.COMMAND, EventType.FILE_ACTION})
_UNANSWERED = 6
"""Number of events: a call without a result further from the end was lost, not left unfinished."""
_WORDS_IN_COMMON = 2
_WORDS_OF_A_REQUEST = 4
_WORDS_OF_ITS_OWN = 20
"""A shorter prompt refers to what the agent said before it."""
_WORDS_OF_A_REPLY = 80
_LAST_ASKED, _PLAN_IN_SHORT = "asked last", 460
_ONLY_PASTED = lazy_regex(r"pasted: ")
_REPLIES = lazy_regex(
    r"\W{0,3}(?:but|and|also|so|then|or|no|nope|not|what about|how about|hm+|ah|oh|i see|that|this|those|both|neither|all)\b",
    re.IGNORECASE,
)
"""The beginning of a prompt, however long, that goes on with what the agent said."""
_FEW_WORDS = 4
_PLAN = lazy_regex(r"(?i)(?<=^# )(?:implementation )?plan: *")
_SAYS_YES = lazy_regex(
    r"\W{0,3}(?:yes|yeah|yep|ok(?:ay)?|sure|right|go|let['’]?s|do (?:it|that)|sounds|oui|ja|sí|sim)\b", re.IGNORECASE
)
_AGREES = 6
"""A prompt with fewer words, and no question, may only agree with what the agent offered."""
_ASKS_THE_PERSON = frozenset({"AskUserQuestion", "request_user_input", "ask_followup_question", "ask_user"})
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
_HEADINGS = lazy_regex(r"^#{1,6} [^\n]*$", re.MULTILINE)
_ONLY_A_HEADING = lazy_regex(r"#{1,4} [^\n]{1,120}|\*\*[^\n*]{1,120}\*\*")
_TO_DO = lazy_regex(
    r"^[ \t]{0,4}[#*_ \d.]{0,8}(?:suggested |recommended |possible )?(?:next steps?|next up|remaining(?: work| tasks| items)?"
    r"|still (?:to do|open|missing)|to-?do|what(?:'s| is) (?:next|left|missing)|not (?:yet )?done(?: yet)?|follow-?ups?)\b"
    r"[^\n]{0,80}\n{1,3}((?:[ \t]{0,6}(?:[-*•]|\d{1,2}[.)])[ \t]{1,3}[^\n]{1,600}(?:\n|\Z)){1,20})",
    re.MULTILINE | re.IGNORECASE,
)
"""A heading for remaining work, and the list below it."""


def brief(session: Session, events: Sequence[Event], sub_agents: Sequence[Sequence[Event]] = ()) -> Brief | None:
    """Return the brief, ``None`` without events.

    Messages are taken from the session itself, actions also from its sub-agents.
    """
    if not events:
        return None
    everything = merged_by_time(events, *sub_agents) if sub_agents else events
    ran = runs(everything, session.cwd)
    made = commits(everything)
    changes = all_changes(everything, ran, session.cwd)
    done = [run for run in ran if not of_stashed_work(run)]
    files = last_changes(changes)
    stable = last_stable(done, changes, made)
    failed = tuple(failed_lines(everything, done, made, changes))
    settled = stable is not None and not failed and not code_since(files, since=stable.place)
    lines = (
        *_doing(events),
        *_next(events, done, files, made, settled=settled),
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
    said = _last_message(events)
    if said is not None and not _announces(events, said) and not (prompts and said.ordinal < prompts[-1].ordinal):
        texts = (clip_line(without_markup(said.text[:_READ]), length) for length in (_SAID, 2 * _SAID))
        yield cited_in_lengths(BriefPart.DOING, (f'the agent said last: "{text}"' for text in texts), said)
    own = [event for event in requests[1:] if event.text != prompts[-1].text and not _ONLY_PASTED.match(gist(event.text, _ASKED))]
    earlier = {clip_line(event.text, _ASKED): event for event in own}
    plan = next((event for event in reversed(requests) if event.tool == PLANNING or _is_task(event)), None)
    before = [event for event in list(earlier.values())[: -_PROMPTS - 1 : -1] if event is not plan]
    plans = [event for event in (plan,) if event is not None]
    is_recent = plan is not None and plan.tool == PLANNING and (offered is None or plan in requests[-_PLAN_WITHIN:])
    ordered = (*plans, *before) if is_recent else (*before[:1], *plans, *before[1:])
    recap = next(iter(_recaps(events, prompts)[-1:]), None)
    since_recap = [event for event in requests if recap is not None and event.ordinal > recap.ordinal]
    newer = int(recap is not None and not all(_is_about(event, [recap]) for event in since_recap))
    says_little = offered is not None or (bool(prompts) and len(prompts[-1].text.split(None, _FEW_WORDS)) < _FEW_WORDS)
    for at, event in enumerate((*ordered[:newer], *filter(None, (recap,)), *ordered[newer:])):
        if event is recap:
            line = cited(BriefPart.DOING, f'the agent\'s recap: "{clip_line(event.text, _SAID)}"', event)
        else:
            line = _asked("asked before", event)
        yield replace(line, explains=(at == 0 and says_little) or (event is plan and is_recent))
    now = [event for event in (*prompts[-1:], *requests[-1:], offered) if event is not None]
    for event in requests[:1]:
        if event is not plan and (len(requests) <= _RECAP_PROMPTS or _is_about(event, now)):
            yield replace(_asked("asked first", event), explains=says_little and not ordered and recap is None)
    for event in reversed((decisions if not prompts else [each for each in decisions if each not in since])[-_DECISIONS:]):
        yield cited(BriefPart.DOING, f"decided: {_answer(event)}", event)


def _is_task(prompt: Event) -> bool:
    return len(prompt.text) >= A_TASK and not is_mostly_output(prompt.text)


def _last_message(events: Sequence[Event]) -> Event | None:
    return next((event for event in reversed(events) if event.type is EventType.ASSISTANT_MESSAGE and event.text.strip()), None)


def _answered_by(events: Sequence[Event], prompt: Event) -> Event | None:
    """Return the agent's message that a short prompt answers."""
    words = len(prompt.text.split(None, _WORDS_OF_A_REPLY))
    replies = _REPLIES.match(prompt.text) or _SAYS_YES.match(prompt.text) or numbers_answered(prompt.text)
    refers = words < _WORDS_OF_ITS_OWN or (words < _WORDS_OF_A_REPLY and replies)
    return _offered_before(events, prompt) if refers else None


def _is_about(request: Event, now: Sequence[Event]) -> bool:
    """Return whether a request has words in common with what was said now."""
    said = {word for event in now for word in long_words(event.text)}
    return len(said & long_words(request.text)) >= _WORDS_IN_COMMON


def _asked_last(events: Sequence[Event], prompt: Event, before: Event | None, decisions: Sequence[Event]) -> BriefLine:
    """Return the last prompt with what it answers, the person's answers since, and whether they interrupted the agent."""
    after = "".join(f"; then answered {_answer(event)}" for event in decisions[-_DECISIONS:])
    if events[-1].type is EventType.RESUME_POINT and events[-1].status == "interrupted":
        after += "; then interrupted the agent"
    is_short = len(prompt.text.split(None, _AGREES)) < _AGREES
    items = len(items_named(before.text, prompt.text)) if before is not None else 0
    agrees = "?" not in prompt.text and (is_short or _SAYS_YES.match(prompt.text) is not None)
    if items > 1:
        lengths: tuple[int, ...] = (_ITEMS, _LONG_OFFER, _AGREED_OFFER)
    elif agrees:
        lengths = (_OFFER if items else _FULL_OFFER, _LONG_OFFER, _AGREED_OFFER)
    else:
        says_more = len(prompt.text.split(None, _WORDS_OF_ITS_OWN)) >= _WORDS_OF_ITS_OWN
        lengths = (_SHORT_OFFER if says_more else _OFFER, _AGREED_OFFER, _FULL_OFFER)
    offers = [_in_answer_to(before, prompt, length) for length in lengths]
    asked = _asked(_LAST_ASKED, prompt, offers[0] + after)
    longer = (*asked.longer, *dict.fromkeys(asked.text.replace(offers[0], each) for each in offers[1:] if each != offers[0]))
    evidence = cited(BriefPart.DOING, "", *filter(None, (prompt, before)), *decisions[-_DECISIONS:]).evidence
    return replace(asked, longer=longer, evidence=evidence)


def _in_answer_to(before: Event | None, prompt: Event, length: int) -> str:
    said = answered_part(before.text, prompt.text, length) if before is not None else ""
    return f' in answer to: "{said}"' if said else ""


def _asked(when: str, prompt: Event, after: str = "") -> BriefLine:
    what, text = (f"{when}, a plan", _PLAN.sub("", prompt.text, count=1)) if prompt.tool == PLANNING else (when, prompt.text)
    shortest = _PLAN_IN_SHORT if prompt.tool == PLANNING and when == _LAST_ASKED else _ASKED
    lengths = (shortest, *(length for length in _LONGER if length > shortest))
    texts = (f"{what}: {gist(text, length)}{after}" for length in lengths)
    return cited_in_lengths(BriefPart.DOING, texts, prompt)


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
                goes_on = event.text.rstrip().endswith(":") or _SAYS_IT_WILL.match(last_sentence(event.text))
                return None if goes_on else event
    return None


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
    return is_heading or bool(_ANNOUNCES.search(text[:_READ].strip()) or _SAYS_IT_WILL.match(last_sentence(text)))


def _next(
    events: Sequence[Event], done: Sequence[Run], files: Sequence[ChangedFile], made: Sequence[Commit], *, settled: bool
) -> Iterator[BriefLine]:
    """Yield the agent's own list or the steps of the plan, what was in progress, and the work named in the agent's last messages.

    A list that is older than the last prompt or commit may be outdated, so what was in progress goes before it.
    """
    listed = list(todo_lines(events, done, made))
    at_hand = list(_in_hand(events, settled=settled))
    at_hand += () if listed or at_hand else _done_last(events, settled=settled)
    asked = next((event for event in reversed(events) if event.type is EventType.USER_MESSAGE), None)
    kept = next((event for event in reversed(events) if event.tool in TOOLS), None)
    stale = kept is not None and any(is_later(each, kept) for each in (asked, *(commit.event for commit in made[-1:])) if each)
    if at_hand:
        so_far = _so_far(events, files, at_hand[0].text)
        longer = tuple(f"{each}{so_far}" for each in at_hand[0].longer)
        at_hand[0] = replace(at_hand[0], text=f"{at_hand[0].text}{so_far}", longer=longer)
    if not at_hand and (waiting := _not_begun(events)) is not None:
        yield cited(BriefPart.NEXT, "nothing was done yet for what was asked last", waiting)
    yield from (*at_hand, *listed) if stale else (*listed, *at_hand)
    yield from _said_before(events)
    if not listed:
        yield from steps_left(events, files)
    messages = [event for event in events if event.type is EventType.ASSISTANT_MESSAGE and event.text.strip()]
    for event in reversed(messages[-_MESSAGES_BACK:]):
        if found := _TO_DO.search(event.text[:_READ]):
            items = [clip_line(without_markup(line), _ITEM) for line in found[1].splitlines() if line.strip()]
            yield cited(BriefPart.NEXT, f"left to do, as the agent said: {first_of(items, _STEPS)}", event)
            return
    if not (listed or at_hand) and messages and events[-1] is messages[-1] and not last_question(messages[-1].text):
        yield cited(BriefPart.NEXT, ANSWERED, messages[-1])


def _said_before(events: Sequence[Event]) -> Iterator[BriefLine]:
    """Yield what the agent found since the last prompt, before its last message: what it and the agents it asked said.

    What was said after the last check that went well is preferred, and what it said that it would do is left out.
    """
    asked = _last_turn(events)
    passed = max(
        (at for at, event in enumerate(events) if event.type is EventType.TEST_RESULT and event.status == "ok"), default=-1
    )
    last = max(
        (at for at, event in enumerate(events) if event.type is EventType.ASSISTANT_MESSAGE and event.text.strip()), default=-1
    )
    spoken = [
        (at, event) for at, event in enumerate(events[asked + 1 :], asked + 1) if at == last or (at < last and _gives_words(event))
    ]
    said = [event for at, event in spoken if at > passed] if passed < last else []
    said = said if len(said) > 1 else [event for _, event in spoken]
    is_known = bool(said) and _KNOWS.search(said[-1].text[:_READ]) is not None
    found: list[tuple[Event, list[str]]] = []
    for event in reversed(said[:-1]):
        sentences = split_sentences(" ".join(plain_lines(_HEADINGS.sub("", event.text[:_READ]))))
        finding = [each for each in sentences if not (_SAYS_IT_WILL.match(each) or _ANNOUNCES.search(each))]
        is_guess = is_known and any(_GUESSES.search(each) for each in finding)
        if not is_guess and len(" ".join(finding).split(None, _WORDS_OF_A_FINDING)) > _WORDS_OF_A_FINDING:
            found.append((event, finding))
            is_known = is_known or _KNOWS.search(event.text[:_READ]) is not None
        if len(found) == _FINDINGS:
            break
    if found:
        sizes = ((1, _FINDING), *((most, length) for length in (2 * _FINDING, _FINDING) for most in range(len(found), 0, -1)))
        shown = ("; ".join(f'"{_outset_and_end(each, length)}"' for _, each in reversed(found[:most])) for most, length in sizes)
        yield cited_in_lengths(
            BriefPart.NEXT, (f"the agent had said before that: {each}" for each in shown), *(event for event, _ in found)
        )


def _outset_and_end(sentences: Sequence[str], length: int) -> str:
    """Return what was found in about ``length`` characters: its beginning and its last sentence, which concludes."""
    whole = " ".join(sentences)
    if len(whole) <= length or len(sentences) < 2:
        return clip(whole, length)
    last = clip(sentences[-1], length // 2)
    return f"{clip(' '.join(sentences[:-1]), length - len(last)).removesuffix('…').rstrip()} … {last}"


def _gives_words(event: Event) -> bool:
    """Return whether the agent says something, or another agent answers it."""
    answers = event.type is EventType.TOOL_RESULT and event.tool in _GIVE_BACK and event.status == "ok"
    return bool(event.text.strip()) and (answers or event.type is EventType.ASSISTANT_MESSAGE)


def _last_turn(events: Sequence[Event]) -> int:
    """Return the place of the event that began the last turn, -1 if none did."""
    return max((at for at, event in enumerate(events) if opens_turn(event)), default=-1)


def _not_begun(events: Sequence[Event]) -> Event | None:
    """Return the last prompt if the agent neither said nor did anything after it."""
    for event in reversed(events):
        if opens_turn(event):
            return event
        if event.type in _ACTS and event.status != "interrupted":
            return None
    return None


def _so_far(events: Sequence[Event], files: Sequence[ChangedFile], said: str) -> str:
    """Return that nothing was changed yet for the last prompt, with the files read for it that are not in what is ``said``."""
    asked = _last_turn(events)
    if asked < 0 or any(file.at >= events[asked].at for file in files):
        return ""
    results = [event for event in events[asked:] if event.type is EventType.TOOL_RESULT and event.status == "ok"]
    if any(event.tool in CHANGE_FILES | _HANDS_OVER for event in results):
        return ""
    read = dict.fromkeys(
        inside(event.path, "")
        for event in events[asked:]
        if event.type is EventType.FILE_ACTION and event.path and event.status != "failed"
    )
    named = [name for name in read if name not in said][-_READ_FOR_IT:]
    before = f", read before: {', '.join(named)}" if named else ""
    return f"; nothing is changed yet for this request{before}" if read else ""


def _in_hand(events: Sequence[Event], *, settled: bool) -> Iterator[BriefLine]:
    """Yield what the agent had announced and what it had begun. ``settled`` means that all was tested, and nothing fails."""
    answered = {event.call for event in events if event.call and event.type not in (EventType.TOOL_CALL, EventType.COMMAND)}
    asked = _last_turn(events)
    lately = events[max(asked + 1, len(events) - _UNANSWERED) :]
    waiting = {event.call: event for event in lately if event.call and event.call not in answered}
    begun = next(reversed(waiting.values()), None)
    said = _last_message(events)
    if said is not None and _announces(events, said):
        after = events[events.index(said) :]
        since = runs(after)
        if not any("git commit" in run.purposes for run in since if run.outcome != "unknown"):
            ended = [event for event in after if begun is None or event.call != begun.call]
            well = {kind for run in since if run.outcome == "ok" for kind in run.kinds}
            report = _TO_REPORT if settled and well and kinds_in(said.text) <= well else ""
            calls = len({event.call for event in after if event.call})
            when = f"the agent had said, {calls} calls before the end" if calls >= _LONG_AGO else "the agent was at"
            quoted = ending(said.text, _AT // 2 if calls >= _LONG_AGO else _AT)
            then = [
                f"; since then {each}{report}" if (each := _done_since(ended, since, found=found)) else ""
                for found in (False, True)
            ]
            fuller = ending(said.text, _AT + _AT // 2)
            texts = (f'{when}: "{text}"{each}' for text, each in ((quoted, then[0]), *product((fuller, quoted), reversed(then))))
            yield cited_in_lengths(BriefPart.NEXT, texts, said)
    if begun is not None and begun.tool not in _ASKS_THE_PERSON | TOOLS:
        announced = said is not None and _announces(events, said)
        report = _TO_REPORT if settled and not announced and any(run.is_check for run in runs(events[asked + 1 :])) else ""
        rest = (f" and {len(waiting) - 1} more" if len(waiting) > 1 else "") + report
        started = started_by(begun, events)
        of = f" of `{typed(started.command)}`" if started is not None else ""
        texts = (f"begun, and no result was seen: {begun.tool} {_input(begun, most)}".rstrip() + of + rest for most in _INPUTS)
        yield replace(cited_in_lengths(BriefPart.NEXT, texts, begun), explains=True)


def _input(call: Event, most: int) -> str:
    """Return what a call is to do: its command, its file with what is replaced by what, or its arguments.

    Replaced text is shown if ``most`` characters of it are wanted.
    """
    if call.command:
        return f"`{clip_line(_ONLY_SAYS.sub('', typed(call.command, max(most, 2 * _COMMAND))), max(most, _COMMAND))}`"
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


def _done_since(events: Sequence[Event], done: Sequence[Run], *, found: bool = False) -> str:
    """Return what was done last, in order: files, commands and calls with how they ended, and with ``found`` what looks found."""
    ended = {run.event.call: run for run in done if run.event.call}
    results = {event.call: event for event in events if event.type is EventType.TOOL_RESULT and event.call}
    steps = list(_steps_of(events, ended, results))[-_DONE:]
    for at, length in zip(range(len(steps) - 1, -1, -1), _FOUND if found else (), strict=False):
        action, name, call = steps[at]
        steps[at] = action, f"{name}{_found(results.get(call), length) if action == _LOOKED else ''}", call
    groups = groupby(steps, key=lambda step: step[0])
    return ", ".join(f"{action} {', '.join(dict.fromkeys(name for _, name, _ in group))}".lstrip() for action, group in groups)


def _found(result: Event | None, length: int) -> str:
    """Return what a look found, its beginning and end."""
    shown = clip_middle(result.text[:_READ], length) if result is not None else ""
    return f' → "{shown}"' if shown else ""


def _short(command: str) -> str:
    """Return a command without the folders of its files."""
    return clip_line(_LONG_FOLDER.sub("…/", bare(command)), _STEP)


def _argument(text: str) -> str:
    """Return the first argument of a call, without its name."""
    first = text.partition("\n")[0]
    return _ARGUMENT.sub("", first, count=1)


def _steps_of(events: Sequence[Event], ended: Mapping[str, Run], results: Mapping[str, Event]) -> Iterator[tuple[str, str, str]]:
    """Yield each action with what it was done to and its call; a command that acts has no action but its own."""
    shown: set[str] = set()
    for event in events:
        if event.type is EventType.FILE_ACTION and event.path and event.status != "failed":
            yield event.text.partition(",")[0].strip()[:20] or "changed", inside(event.path, ""), event.call
        elif (run := ended.get(event.call)) is not None and event.call not in shown:
            shown.add(event.call)
            if run.purposes:
                yield "", f"`{_short(run.command)}` {_ENDED[run.outcome]}", event.call
            elif run.command:
                yield _LOOKED, f"`{_short(run.command)}`{' (failed)' if run.outcome == 'failed' else ''}", event.call
        elif event.type is EventType.TOOL_CALL and event.tool not in TOOLS and event.call not in ended and not event.command:
            result = results.get(event.call)
            why_not = _why_not(result) if result is not None and result.status in ("failed", "denied") else ""
            if event.tool in _SHOWN_OTHERWISE:
                if why_not and event.path:
                    yield "", f"{event.tool} of {inside(event.path, '')} {why_not}", event.call
            elif _LOOKS.match(event.tool) and not why_not:
                yield _LOOKED, f"{event.tool} {clip_line(_argument(event.text), _STEP)}".rstrip(), event.call
            elif result is not None:
                how = why_not or f'came back: "{clip_line(without_markup(result.text[:_READ]), _AT // 2)}"'
                yield "", f"{event.tool.rpartition('__')[2]} {clip_line(_argument(event.text), _STEP)} {how}", event.call


def _why_not(result: Event) -> str:
    return "was denied" if result.status == "denied" else f"failed: {clip_line(result.text.partition(chr(10))[0], _STEP)}"


def _done_last(events: Sequence[Event], *, settled: bool) -> Iterator[BriefLine]:
    """Yield the last actions of a session that was left midway."""
    asked = _last_turn(events)
    since = events[asked + 1 :]
    done = runs(since)
    if events[-1].type in _ON_THE_WAY and since:
        report = _TO_REPORT if settled and any(run.is_check for run in done) else ""
        left = "left before an answer to what was asked last; " if asked >= 0 else ""
        last = clip_line(f"{since[-1].tool} {since[-1].text}", 2 * _STEP)
        texts = (f"{left}done last: {_done_since(since, done, found=found) or last}{report}" for found in (False, True))
        yield cited_in_lengths(BriefPart.NEXT, texts, since[-1])


def _open(events: Sequence[Event]) -> Iterator[BriefLine]:
    """Yield what the agent asked the person, by a tool or at the end of its last message, and had no answer to."""
    results = {event.call for event in events if event.call and event.type in (EventType.TOOL_RESULT, EventType.DECISION)}
    since = events[max((at for at, event in enumerate(events) if event.type is EventType.USER_MESSAGE), default=-1) + 1 :]
    asked = (event for event in reversed(since) if event.type is EventType.TOOL_CALL and event.tool in _ASKS_THE_PERSON)
    choice = next((event for event in asked if event.call and event.call not in results), None)
    closing = _last_message(since)
    if choice is not None:
        yield cited(BriefPart.OPEN, f"the agent asked, and had no answer: {clip_line(choice.text, _ASKED)}", choice)
    if closing is not None and (question := last_question(closing.text)):
        yield cited(BriefPart.OPEN, f'the agent asks: "{clip_line(question, _ASKED)}"', closing)
