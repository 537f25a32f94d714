"""Resume brief: where a session stood when it was left, from its events alone, each line with the events it rests on."""

import heapq
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import PurePosixPath, PureWindowsPath

from kite_memory.model.event import Event, EventType, Session, evidence_reference, opens_turn
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip_line
from kite_memory.timeline.runs import Commit, Run, bare, commits, is_wider, last_branch, makes_up, open_failures, runs
from kite_memory.timeline.summaries import TOOLS, todos


class BriefPart(StrEnum):
    """Part of a brief, in the order of the brief."""

    DOING = "doing"
    NEXT = "next"
    CHANGED = "changed"
    FAILED = "failed"
    VERIFY = "verify"
    STABLE = "stable"
    OPEN = "open"


NOTHING_PASSED = "no test or build was seen to pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefLine:
    """A line of a brief. ``evidence`` are references as `model.event.evidence_reference` writes them, at least one.

    ``longer`` is what it says where there is room.
    """

    part: BriefPart
    text: str
    evidence: tuple[str, ...]
    longer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file with the last action on it. ``path`` is relative to the session's folder if the file is inside it."""

    path: str
    action: str
    at: datetime
    evidence: str
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stable:
    """The last moment at which tests passed, or a build if no test ever did.

    ``narrow`` means that only a part of the tests ran; ``whole`` then describes the last run of all, if there was one. ``files``
    are those changed by then, ``failing`` the checks known to fail then.
    """

    at: datetime
    command: str
    said: str
    evidence: str
    place: int
    files: tuple[ChangedFile, ...]
    commit: str = ""
    failing: tuple[str, ...] = ()
    tests: bool = True
    narrow: bool = False
    whole: str = ""
    whole_evidence: str = ""


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


_MATTERS = (
    BriefPart.DOING,
    BriefPart.NEXT,
    BriefPart.FAILED,
    BriefPart.STABLE,
    BriefPart.VERIFY,
    BriefPart.CHANGED,
    BriefPart.OPEN,
)
"""The order of parts where there is little room."""
_PROMPTS = 2
_DECISIONS = 2
_FAILURES = 4
_CHECKS = 3
_FILES_NAMED = 4
_FILES_CITED = 2
_LATELY = 25
"""Number of runs: another command that failed longer ago and was never tried again counts as given up."""
_NOT_LONG_AGO = 100
"""Number of runs: a check that was last made before them may belong to another task."""
_SAID, _ASKED, _ASKED_WHOLE, _COMMAND, _FAILURE, _SUBJECT = 240, 220, 480, 100, 160, 80
_ITEM, _ITEMS = 110, 3
_STEPS, _STEP, _PARTS = 3, 60, 6
_OFFER = 320
_RECAP_PROMPTS = 4
_ENDED = {"ok": "went well", "failed": "failed"}
_MESSAGES_BACK = 3
_SAID_OF_TESTS = 40
_QUESTION_END = 400
_READ = 4_000
_ON_THE_WAY = frozenset({EventType.TOOL_RESULT, EventType.FILE_ACTION, EventType.TEST_RESULT, EventType.ERROR, EventType.COMMAND})
_UNANSWERED = 6
"""Number of events: a call without a result further from the end was lost, not left unfinished."""
_WORDS_OF_A_REQUEST = 4
_WORDS_OF_ITS_OWN = 20
"""A shorter prompt refers to what the agent said before it."""
_HEADING = lazy_regex(r"^#{2,4} +(?!Context\b|Verification\b|Summary\b)([^\n]{3,200})$", re.MULTILINE)
_PROSE = frozenset({".md", ".mdx", ".txt", ".rst", ".adoc"})
_ASKS_THE_PERSON = frozenset({"AskUserQuestion", "request_user_input", "ask_followup_question", "ask_user"})
_SENTENCES = lazy_regex(r"(?<=[.!?…])[\"')\]*`_]{0,4}\s+")
_FILE_LINE = lazy_regex(r"^\s{0,8}(?:at |--> )?[\w./@-]{1,200}\.\w{1,6}[:(]\d{1,6}\b.{0,200}", re.MULTILINE)
_ANNOUNCES = lazy_regex(r"\A\W{0,4}(?:now|next|then|let me|let's|i'll|i will|i need to|running|time to)\b|:\s*\Z", re.IGNORECASE)
_SAYS_IT_WILL = lazy_regex(
    r"\A(?:.{1,60} [–—-] )?\W{0,4}(?:(?:now|next|then|first),? )?(?:let me (?!know\b)|let's |i'll |i will |i need to )",
    re.IGNORECASE,
)
"""The beginning of a message's last sentence that announces a next step."""
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
    failures = open_failures(done)
    files = changed_files(everything, session.cwd)
    made = commits(everything)
    stable = _stable(done, files_at=lambda place: changed_files(everything[: place + 1], session.cwd), made=made)
    lines = (
        *_doing(events),
        *_next(events),
        *_changed(files, made),
        *_failed(failures, done, files),
        *_verify(files, done, failures),
        *(_stable_lines(stable, files) if stable is not None else _never_stable(done)),
        *_open(events),
    )
    return Brief(
        session=session,
        branch=last_branch(events) or session.branch,
        at=max(event.at for event in everything),
        lines=lines,
        files=files,
        stable=stable,
    )


def fitted(brief: Brief, *, tokens: int, cost: Callable[[BriefLine], int]) -> tuple[BriefLine, ...]:
    """Return as many lines as fit in ``tokens``, in their order.

    The weightiest of every part goes first, then what failed and what is next, what has a longer text, and the others in turn.
    """
    by_part = {part: [line for line in brief.lines if line.part is part] for part in _MATTERS}
    turns = [[lines[turn] for lines in by_part.values() if turn < len(lines)] for turn in range(max(map(len, by_part.values())))]
    urgent = (*turns[0], *by_part[BriefPart.FAILED], *by_part[BriefPart.NEXT])
    longer = [(line, replace(line, text=line.longer)) for line in brief.lines if line.longer]
    kept: dict[BriefLine, BriefLine] = {}
    for line, shown in (*((line, line) for line in urgent), *longer, *((line, line) for turn in turns for line in turn)):
        needed = cost(shown) - (cost(line) if line in kept else 0)
        if (line not in kept or shown is not line) and needed <= tokens:
            tokens -= needed
            kept[line] = shown
    return tuple(kept[line] for line in brief.lines if line in kept)


def changed_files(events: Sequence[Event], cwd: str) -> tuple[ChangedFile, ...]:
    """Return the changed files, newest first, each once."""
    found: dict[str, ChangedFile] = {}
    for place in range(len(events) - 1, -1, -1):
        event = events[place]
        if event.type is EventType.FILE_ACTION and event.path and event.path not in found and is_change(event):
            action = event.text.partition(",")[0].strip()[:20] or "changed"
            found[event.path] = ChangedFile(
                path=inside(event.path, cwd), action=action, at=event.at, evidence=reference(event), place=place
            )
    return tuple(found.values())


def is_change(event: Event) -> bool:
    """Return whether the event changed a file."""
    done = event.type is EventType.FILE_ACTION and event.status != "failed"
    return done and bool(event.path) and not event.text.startswith("read")


def inside(path: str, folder: str) -> str:
    """Return the path relative to the session's folder if it is inside it, else only its name."""
    for separator in "/\\":
        root = folder.rstrip("/\\") + separator
        if folder and path.startswith(root):
            return path[len(root) :]
    return (PureWindowsPath(path) if "\\" in path else PurePosixPath(path)).name


def reference(event: Event) -> str:
    return evidence_reference(event.provider, event.session, event.id)


def _doing(events: Sequence[Event]) -> Iterator[BriefLine]:
    prompts = [event for event in events if (event.type is EventType.USER_MESSAGE or opens_turn(event)) and event.text.strip()]
    requests = [event for event in prompts[:-1] if len(event.text.split(None, _WORDS_OF_A_REQUEST)) >= _WORDS_OF_A_REQUEST]
    for event in prompts[-1:]:
        short = len(event.text.split(None, _WORDS_OF_ITS_OWN)) < _WORDS_OF_ITS_OWN
        before = _offered_before(events, event) if short else None
        after = f' in answer to: "{_ending(before.text, _OFFER)}"' if before is not None else ""
        yield _asked("asked last", event, after, *filter(None, (before,)))
    for event in _recaps(events, prompts)[-1:]:
        yield _line(BriefPart.DOING, f'the agent\'s recap: "{clip_line(event.text, _SAID)}"', event)
    said = next((event for event in reversed(events) if event.type is EventType.ASSISTANT_MESSAGE and event.text.strip()), None)
    if said is not None and not _announces(events, said):
        yield _line(BriefPart.DOING, f'the agent said last: "{clip_line(_MARKUP.sub("", said.text[:_READ]), _SAID)}"', said)
    earlier = {clip_line(event.text, _ASKED): event for event in requests[1:] if event.text != prompts[-1].text}
    for text, event in list(earlier.items())[: -_PROMPTS - 1 : -1]:
        yield _line(BriefPart.DOING, f'asked before: "{text}"', event)
    for event in requests[:1]:
        yield _asked("asked first", event)
    if events[-1].type is EventType.RESUME_POINT and events[-1].status == "interrupted":
        yield _line(BriefPart.DOING, "the person interrupted the agent there", events[-1])
    decisions = [event for event in events if event.type is EventType.DECISION and not opens_turn(event)]
    for event in reversed(decisions[-_DECISIONS:]):
        yield _line(BriefPart.DOING, f"decided: {clip_line(event.text, _ASKED)}", event)


def _asked(when: str, prompt: Event, after: str = "", *besides: Event) -> BriefLine:
    short, whole = (f'{when}: "{clip_line(prompt.text, length)}"{after}' for length in (_ASKED, _ASKED_WHOLE))
    return replace(_line(BriefPart.DOING, short, prompt, *besides), longer=f"{whole}{_outline(prompt.text)}")


def _outline(prompt: str) -> str:
    """Return the headings of a prompt that is too long to be quoted, such as a plan."""
    headings = [clip_line(found, _STEP) for found in _HEADING.findall(prompt[: 2 * _READ])] if len(prompt) > _ASKED_WHOLE else []
    return f"; its parts: {'; '.join(headings[:_PARTS])}" if len(headings) > 1 else ""


def _recaps(events: Sequence[Event], prompts: Sequence[Event]) -> list[Event]:
    """Return the agent's own recaps of the session; none that many prompts came after, since the task may have changed."""
    since = prompts[-_RECAP_PROMPTS].ordinal if len(prompts) >= _RECAP_PROMPTS else -1
    return [
        event for event in events if event.type is EventType.RESUME_POINT and event.role == "assistant" and event.ordinal > since
    ]


def _offered_before(events: Sequence[Event], prompt: Event) -> Event | None:
    """Return the agent's message before the prompt, ``None`` if it only announced its next step."""
    before = events[: events.index(prompt)]
    said = next((event for event in reversed(before) if event.type is EventType.ASSISTANT_MESSAGE and event.text.strip()), None)
    return said if said is not None and not _announces(before, said) else None


def _ending(text: str, length: int) -> str:
    """Return the last lines of a message, as far as there is room."""
    lines = [line for line in _MARKUP.sub("", _CODE.sub("", text[-_READ:])).splitlines() if line.strip()]
    shown = ""
    for line in reversed(lines):
        if shown and len(line) + len(shown) > length:
            break
        shown = f"{line} {shown}"
    return clip_line(shown, length)


def _announces(events: Sequence[Event], said: Event) -> bool:
    """Return whether a message announces a next step and no prompt came after it."""
    later = any(event.type is EventType.USER_MESSAGE and event.ordinal > said.ordinal for event in events[-_LATELY:])
    if later or not said.text.strip():
        return False
    return bool(_ANNOUNCES.search(said.text[:_READ].strip()) or _SAYS_IT_WILL.match(_last_sentence(said.text)))


def _next(events: Sequence[Event]) -> Iterator[BriefLine]:
    """Yield the agent's own list, what was in progress at the end, and the remaining work named in its last messages.

    A list that is older than the last prompt may be about something else, so what was in progress goes before it.
    """
    listed = list(_listed(events))
    at_hand = list(_in_hand(events)) if listed else [*_in_hand(events), *_done_last(events)]
    asked = next((event for event in reversed(events) if event.type is EventType.USER_MESSAGE), None)
    changed = max((event.at for event in events if event.tool in TOOLS), default=None)
    stale = asked is not None and changed is not None and asked.at > changed
    yield from (*at_hand, *listed) if stale else (*listed, *at_hand)
    messages = [event for event in events if event.type is EventType.ASSISTANT_MESSAGE and event.text.strip()]
    for event in reversed(messages[-_MESSAGES_BACK:]):
        if found := _TO_DO.search(event.text[:_READ]):
            items = [clip_line(_MARKUP.sub("", line), _ITEM) for line in found[1].splitlines() if line.strip()]
            more = f" and {len(items) - _STEPS} more" if len(items) > _STEPS else ""
            yield _line(BriefPart.NEXT, f"left to do, as the agent said: {'; '.join(items[:_STEPS])}{more}", event)
            return


def _listed(events: Sequence[Event]) -> Iterator[BriefLine]:
    listed = todos(events)
    last = next((event for event in reversed(events) if event.tool in TOOLS and event.type is EventType.TOOL_CALL), None)
    if listed is not None and last is not None and listed.open:
        asked = next((event for event in reversed(events) if event.type is EventType.USER_MESSAGE), None)
        stale = f" (last changed {listed.at:%m-%d %H:%M})" if asked is not None and asked.at > listed.at else ""
        names = "; ".join(
            f"{'in hand: ' if item.standing == 'in_progress' else ''}{clip_line(item.text, _ITEM)}" for item in listed.open[:_ITEMS]
        )
        more = f" and {len(listed.open) - _ITEMS} more" if len(listed.open) > _ITEMS else ""
        done = len(listed.items) - len(listed.open)
        yield _line(BriefPart.NEXT, f"open on the agent's list, {done} of {len(listed.items)} done{stale}: {names}{more}", last)


def _in_hand(events: Sequence[Event]) -> Iterator[BriefLine]:
    """Yield what the agent had announced and what it had begun."""
    answered = {event.call for event in events if event.call and event.type not in (EventType.TOOL_CALL, EventType.COMMAND)}
    begun = next((event for event in reversed(events[-_UNANSWERED:]) if event.call and event.call not in answered), None)
    said = next((event for event in reversed(events) if event.type is EventType.ASSISTANT_MESSAGE and event.text.strip()), None)
    if said is not None and _announces(events, said):
        since = [run for run in runs(events[events.index(said) :]) if run.purposes and run.outcome != "unknown"]
        if not any("git commit" in run.purposes for run in since):
            then = ", ".join(f"`{clip_line(bare(run.command), _STEP)}` {_ENDED[run.outcome]}" for run in since[-_STEPS:])
            yield _line(
                BriefPart.NEXT, f'the agent was at: "{_ending(said.text, _ASKED)}"{f"; since then {then}" if then else ""}', said
            )
    if begun is not None and begun.tool not in _ASKS_THE_PERSON | TOOLS:
        what = clip_line(bare(begun.command) or begun.path or begun.text, _COMMAND)
        yield _line(BriefPart.NEXT, f"begun, and no result was seen: {begun.tool}{f' `{what}`' if what else ''}", begun)


def _done_last(events: Sequence[Event]) -> Iterator[BriefLine]:
    """Yield the last action of a session that was left midway."""
    said = next((event for event in reversed(events) if event.type is EventType.ASSISTANT_MESSAGE and event.text.strip()), None)
    if events[-1].type in _ON_THE_WAY and not (said is not None and _announces(events, said)):
        done = next((event for event in reversed(events) if event.command or is_change(event)), events[-1])
        what = (
            f"`{clip_line(bare(done.command), _COMMAND)}`"
            if done.command
            else f"{clip_line(done.text, _STEP)}: {clip_line(inside(done.path, ''), _STEP)}"
        )
        yield _line(BriefPart.NEXT, f"left before an answer to what was asked last; done last: {what}", done)


def _changed(files: Sequence[ChangedFile], made: Sequence[Commit]) -> Iterator[BriefLine]:
    committed = made[-1].place if made else -1
    since = [file for file in files if file.place > committed]
    for action, some in _by_action(since):
        when = " since the last commit" if made else ""
        yield _files_line(BriefPart.CHANGED, f"{action}{when}", some)
    if made:
        yield _line(
            BriefPart.CHANGED, f"committed last: {clip_line(made[-1].subject, _SUBJECT)} ({made[-1].hash[:12]})", made[-1].event
        )
        if before := [file for file in files if file.place <= committed]:
            yield _files_line(BriefPart.CHANGED, "changed up to that commit", before)


def _by_action(files: Sequence[ChangedFile]) -> list[tuple[str, list[ChangedFile]]]:
    grouped: dict[str, list[ChangedFile]] = {}
    for file in files:
        grouped.setdefault(file.action, []).append(file)
    return list(grouped.items())


def _failed(failures: Sequence[Run], done: Sequence[Run], files: Sequence[ChangedFile]) -> Iterator[BriefLine]:
    """Yield open failures, checks first, then recent ones of other commands, and what was changed since without a new try."""
    lately = done[-_LATELY].place if len(done) >= _LATELY else 0
    others = (run for run in failures if not run.is_check and run.place >= lately and run.failure)
    checks = sorted((run for run in failures if run.is_check), key=lambda run: "tests" not in run.kinds)
    for run in (*checks, *others)[:_FAILURES]:
        because = f": {why}" if (why := _why(run)) else ""
        parts = (each for each in reversed(done) if each.place > run.place and each.outcome == "ok" and _part_of(each, run))
        later = next(parts, None)
        partly = f" (only `{_command(later.command)}` has gone well since)" if later else ""
        since = _code(files, since=run.place) if run.is_check else []
        unverified = f"; unverified: {_named(since, _FILES_CITED)} changed since, run it again" if since else ""
        cited = (run.event, later.event) if later else (run.event,)
        evidence = (*map(reference, cited), *(file.evidence for file in since[:1]))
        text = f"`{_command(run.command)}` failed{because}{partly}{unverified}"
        yield BriefLine(part=BriefPart.FAILED, text=text, evidence=tuple(dict.fromkeys(evidence)))


def _why(run: Run) -> str:
    """Return the reason as printed: the tests that failed, and the first line that says what is wrong."""
    line = clip_line(run.failure, _FAILURE)
    by_summary = run.event.type is not EventType.TOOL_RESULT and (run.tested == "failed" or not line)
    summary = clip_line(run.event.text, _FAILURE) if by_summary else ""
    if (not line or line in summary) and (placed := _FILE_LINE.search(run.said)):
        line = clip_line(placed.group(), _FAILURE)
    return "; ".join(part for part in (summary, "" if line in summary else line) if part)


def _part_of(later: Run, failed: Run) -> bool:
    return bool(later.purposes & failed.purposes) and failed.is_check and makes_up(failed, later)


def _verify(files: Sequence[ChangedFile], done: Sequence[Run], failures: Sequence[Run]) -> Iterator[BriefLine]:
    """Yield checks that went well before something was changed, each with the command to run."""
    code = [file for file in files if PurePosixPath(file.path).suffix.lower() not in _PROSE]
    if not code:
        return
    checks = [run for run in done[-_NOT_LONG_AGO:] if run.is_check and run.outcome != "unknown"]
    tested = max((run.place for run in checks if run.tested == "ok" and run.outcome == "ok" and not run.is_narrow), default=-1)
    shown: set[str] = set()
    for run in reversed(checks):
        if run.purposes <= shown or any(later.place > run.place and _says_it_too(later, run) for later in checks):
            continue
        shown |= run.purposes
        if not _can_be_typed_again(run.command):
            continue
        known = max(run.place, tested) if run.only_builds else run.place
        since = [file for file in code if file.place > known]
        if run.outcome == "ok" and since:
            what = f"run `{_command(run.command)}`: it went well at {run.event.at:%m-%d %H:%M}, but not seen since these changed"
            yield _files_line(BriefPart.VERIFY, what, since, run.event, most=_FILES_CITED)
        if len(shown) >= _CHECKS:
            return
    if not any(run.is_check for run in done):
        yield _files_line(BriefPart.VERIFY, "nothing has been run that tests", code, most=_FILES_CITED)


def _says_it_too(later: Run, run: Run) -> bool:
    return makes_up(later, run) or (later.outcome == "ok" and is_wider(later, run))


def _can_be_typed_again(command: str) -> bool:
    return len(bare(command)) <= _COMMAND and not any(sign in bare(command) for sign in (";", "\n", "<<"))


def _stable(done: Sequence[Run], *, files_at: Callable[[int], tuple[ChangedFile, ...]], made: Sequence[Commit]) -> Stable | None:
    """Return the last stable moment.

    A run of all tests is preferred to a later one of some of them, if no code was changed in between.
    """
    well = [at for at, run in enumerate(done) if run.outcome == "ok" and not run.measures]
    tested = [at for at in well if done[at].tested == "ok"]
    built = [at for at in well if {"build"} <= done[at].kinds <= {"build", "types"}]
    if not (tested or built):
        return None
    at = (tested or built)[-1]
    whole = next((each for each in reversed(tested) if not done[each].is_narrow), None)
    if done[at].is_narrow and whole is not None and not _code(files_at(done[at].place), since=done[whole].place):
        at = whole
    run = done[at]
    narrow = run.is_narrow
    of_all = done[whole] if narrow and whole is not None else None
    return Stable(
        at=run.event.at,
        command=run.command,
        said=clip_line(run.said, _SUBJECT),
        evidence=reference(run.event),
        place=run.place,
        files=files_at(run.place),
        commit=next((commit.hash for commit in reversed(made) if commit.place < run.place), ""),
        failing=tuple(_command(failed.command) for failed in open_failures(done[: at + 1]) if failed.is_check),
        tests=bool(tested),
        narrow=narrow,
        whole=f"`{_command(of_all.command)}` at {of_all.event.at:%m-%d %H:%M}" if of_all is not None else "",
        whole_evidence=reference(of_all.event) if of_all is not None else "",
    )


def _code(files: Sequence[ChangedFile], *, since: int) -> list[ChangedFile]:
    return [file for file in files if file.place > since and PurePosixPath(file.path).suffix.lower() not in _PROSE]


def _never_stable(done: Sequence[Run]) -> Iterator[BriefLine]:
    if checks := [run for run in done if run.is_check]:
        yield _line(BriefPart.STABLE, NOTHING_PASSED, checks[-1].event)


def _stable_lines(stable: Stable, files: Sequence[ChangedFile]) -> Iterator[BriefLine]:
    changed = [file for file in files if file.place > stable.place]
    commit = f", after commit {stable.commit[:12]}" if stable.commit else ""
    with_files = f"; {len(stable.files)} {'file' if len(stable.files) == 1 else 'files'} changed by then" if stable.files else ""
    since = f", since then {_named(changed, _FILES_CITED)}" if changed else ", nothing since"
    failing = f"; `{stable.failing[0]}` still failed" if stable.failing else ""
    command, said = _command(stable.command), f" ({stable.said})" if 0 < len(stable.said) <= _SAID_OF_TESTS else ""
    passed = f"`{command}` passed{said}" if stable.tests else f"`{command}` built; no test was seen to pass"
    if stable.narrow:
        passed += f", a part of the tests; all of them last: {stable.whole}" if stable.whole else ", a part of the tests"
    text = f"{stable.at:%Y-%m-%d %H:%M}{commit}: {passed}{with_files}{since}{failing}"
    cited = (stable.evidence, stable.whole_evidence, *(file.evidence for file in (changed or stable.files)[:1]))
    yield BriefLine(part=BriefPart.STABLE, text=text, evidence=tuple(dict.fromkeys(filter(None, cited))))


def _command(command: str) -> str:
    return clip_line(bare(command), _COMMAND) or "tests"


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
        yield _line(BriefPart.OPEN, f"the agent asked, and had no answer: {clip_line(choice.text, _ASKED)}", choice)
    if closing is not None and (question := _closing_question(closing.text)):
        yield _line(BriefPart.OPEN, f'the agent asks: "{clip_line(question, _ASKED)}"', closing)
    for event in list(reversed(waiting.values()))[:2]:
        if event.text.strip():
            yield _line(BriefPart.OPEN, f'the person had no answer to: "{clip_line(event.text, _ASKED)}"', event)


def _closing_question(text: str) -> str:
    """Return the last sentence if it is a question."""
    last = _last_sentence(text)
    return last if last.rstrip("\"')]*`_ ").endswith(("?", "？")) else ""


def _last_sentence(text: str) -> str:
    lines = [line for line in text[-_READ:].splitlines() if line.strip()]
    return _SENTENCES.split(_MARKUP.sub("", lines[-1]).strip())[-1] if lines else ""


def _files_line(part: BriefPart, what: str, files: Sequence[ChangedFile], *besides: Event, most: int = _FILES_NAMED) -> BriefLine:
    cited = (*map(reference, besides), *(file.evidence for file in files[:_FILES_CITED]))
    return BriefLine(part=part, text=f"{what}: {_named(files, most)}", evidence=tuple(dict.fromkeys(cited)))


def _named(files: Sequence[ChangedFile], most: int) -> str:
    names = list(dict.fromkeys(clip_line(file.path, _COMMAND) for file in files))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _line(part: BriefPart, text: str, *events: Event) -> BriefLine:
    return BriefLine(part=part, text=text, evidence=tuple(dict.fromkeys(map(reference, events))))
