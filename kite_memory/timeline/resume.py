"""Where a session stood when it was left: told from its events alone, each line with those it rests on."""

import heapq
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import PurePosixPath, PureWindowsPath

from kite_memory.model.event import Event, EventType, Session, evidence_reference, opens_turn
from kite_memory.timeline.runs import Commit, Run, bare, commits, makes_up, open_failures, runs


class Part(StrEnum):
    """Of a brief, in its order."""

    DOING = "doing"
    CHANGED = "changed"
    FAILED = "failed"
    VERIFY = "verify"
    STABLE = "stable"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """``evidence`` are references as `model.event.evidence_reference` writes them, at least one."""

    part: Part
    text: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A file by the last thing that was done to it. ``path`` is told from where the session ran, where it lies there."""

    path: str
    action: str
    at: datetime
    evidence: str
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stable:
    """The last moment at which tests passed. ``files`` are those changed by then, ``failing`` what was known to fail then."""

    at: datetime
    command: str
    said: str
    evidence: str
    place: int
    files: tuple[Changed, ...]
    commit: str = ""
    failing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """``lines`` are in the order of their parts, within a part the weightiest first. ``files`` are the newest first."""

    session: Session
    at: datetime
    lines: tuple[Line, ...]
    files: tuple[Changed, ...]
    stable: Stable | None


_MATTERS = (Part.DOING, Part.FAILED, Part.VERIFY, Part.OPEN, Part.CHANGED, Part.STABLE)
"""Which goes first where there is little room."""
_PROMPTS = 2
_DECISIONS = 2
_FAILURES = 4
_CHECKS = 3
_FILES_NAMED = 4
_FILES_CITED = 2
_LATELY = 25
"""Runs: an odd command that failed longer ago than that and was never tried again has been given up."""
_NOT_LONG_AGO = 100
"""Runs: a check that was last made before may be another task's."""
_SAID, _ASKED, _COMMAND, _FAILURE, _SUBJECT = 160, 140, 80, 110, 80
_SAID_OF_TESTS = 40
_QUESTION_END = 400
_READ = 4_000
_WORDS_OF_A_REQUEST = 4
_PROSE = frozenset({".md", ".mdx", ".txt", ".rst", ".adoc"})
_ASKS_THE_PERSON = frozenset({"AskUserQuestion", "request_user_input", "ask_followup_question", "ask_user"})
_SENTENCES = re.compile(r"(?<=[.!?…])[\"')\]*`_]{0,4}\s+")
_MARKUP = re.compile(r"^\s{0,12}(?:#{1,6}|[-*>]|\d{1,3}[.)])\s+|[*`]{2,3}", re.MULTILINE)


def together(own: Sequence[Event], others: Sequence[Sequence[Event]]) -> list[Event]:
    """A session's events with those of its sub-agents where they belong in time; each one's own order stays."""
    return [event for _, event in heapq.merge(*(_in_time(events) for events in (own, *others)), key=lambda pair: pair[0])]


def _in_time(events: Sequence[Event]) -> Iterator[tuple[datetime, Event]]:
    """A clock that jumps back does not turn the order around."""
    latest: datetime | None = None
    for event in events:
        latest = event.at if latest is None else max(latest, event.at)
        yield latest, event


def brief(session: Session, events: Sequence[Event], sub_agents: Sequence[Sequence[Event]] = ()) -> Brief | None:
    """``None`` of nothing. What people and the agent said is taken from the session itself, what was done from all of it."""
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
        *_changed(files, made),
        *_failed(failures, done),
        *_verify(files, done),
        *_stable_told(stable, files),
        *_open(events),
    )
    return Brief(session=session, at=max(event.at for event in everything), lines=lines, files=files, stable=stable)


def fitted(told: Brief, *, tokens: int, cost: Callable[[Line], int]) -> tuple[Line, ...]:
    """As many lines as there is room for, in their order: of every part the weightiest first, then the others in turn."""
    by_part = {part: [line for line in told.lines if line.part is part] for part in _MATTERS}
    turns = [[lines[turn] for lines in by_part.values() if turn < len(lines)] for turn in range(max(map(len, by_part.values())))]
    kept: list[Line] = []
    for line in (line for turn in turns for line in turn):
        needed = cost(line)
        if needed <= tokens:
            tokens -= needed
            kept.append(line)
    return tuple(line for line in told.lines if line in kept)


def changed_files(events: Sequence[Event], cwd: str) -> tuple[Changed, ...]:
    """The newest first, each once."""
    found: dict[str, Changed] = {}
    for place in range(len(events) - 1, -1, -1):
        event = events[place]
        if event.type is EventType.FILE_ACTION and event.path and event.path not in found and is_change(event):
            action = event.text.partition(",")[0].strip()[:20] or "changed"
            found[event.path] = Changed(
                path=inside(event.path, cwd), action=action, at=event.at, evidence=reference(event), place=place
            )
    return tuple(found.values())


def is_change(event: Event) -> bool:
    """Whether a file is another afterwards."""
    done = event.type is EventType.FILE_ACTION and event.status != "failed"
    return done and bool(event.path) and not event.text.startswith("read")


def inside(path: str, folder: str) -> str:
    """Relative to where the session ran, if it lies there; else its name alone."""
    for separator in "/\\":
        root = folder.rstrip("/\\") + separator
        if folder and path.startswith(root):
            return path[len(root) :]
    return (PureWindowsPath(path) if "\\" in path else PurePosixPath(path)).name


def reference(event: Event) -> str:
    return evidence_reference(event.provider, event.session, event.id)


def cut(text: str, length: int) -> str:
    """On one line."""
    line = " ".join(text[: 8 * length].split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def _doing(events: Sequence[Event]) -> Iterator[Line]:
    prompts = [event for event in events if (event.type is EventType.USER_MESSAGE or opens_turn(event)) and event.text.strip()]
    requests = [event for event in prompts[:-1] if len(event.text.split(None, _WORDS_OF_A_REQUEST)) >= _WORDS_OF_A_REQUEST]
    for event in prompts[-1:]:
        yield _line(Part.DOING, f'asked last: "{cut(event.text, _ASKED)}"', event)
    said = next((event for event in reversed(events) if event.type is EventType.ASSISTANT_MESSAGE and event.text.strip()), None)
    if said is not None:
        yield _line(Part.DOING, f'the agent said last: "{cut(_MARKUP.sub("", said.text[:_READ]), _SAID)}"', said)
    for event in requests[:1]:
        yield _line(Part.DOING, f'asked first: "{cut(event.text, _ASKED)}"', event)
    earlier = {cut(event.text, _ASKED): event for event in requests[1:] if event.text != prompts[-1].text}
    for text, event in list(earlier.items())[: -_PROMPTS - 1 : -1]:
        yield _line(Part.DOING, f'asked before: "{text}"', event)
    if events[-1].type is EventType.RESUME_POINT and events[-1].status == "interrupted":
        yield _line(Part.DOING, "the person interrupted the agent there", events[-1])
    decisions = [event for event in events if event.type is EventType.DECISION]
    for event in reversed(decisions[-_DECISIONS:]):
        yield _line(Part.DOING, f"decided: {cut(event.text, _ASKED)}", event)


def _changed(files: Sequence[Changed], made: Sequence[Commit]) -> Iterator[Line]:
    committed = made[-1].place if made else -1
    since = [file for file in files if file.place > committed]
    for action, some in _by_action(since):
        when = " since the last commit" if made else ""
        yield _files_line(Part.CHANGED, f"{action}{when}", some)
    if made:
        yield _line(Part.CHANGED, f"committed last: {cut(made[-1].subject, _SUBJECT)} ({made[-1].hash[:12]})", made[-1].event)
        if before := [file for file in files if file.place <= committed]:
            yield _files_line(Part.CHANGED, "changed up to that commit", before)


def _by_action(files: Sequence[Changed]) -> list[tuple[str, list[Changed]]]:
    grouped: dict[str, list[Changed]] = {}
    for file in files:
        grouped.setdefault(file.action, []).append(file)
    return list(grouped.items())


def _failed(failures: Sequence[Run], done: Sequence[Run]) -> Iterator[Line]:
    """Checks first: of the others only those that are not long ago."""
    lately = done[-_LATELY].place if len(done) >= _LATELY else 0
    told = [run for run in failures if run.is_check] + [run for run in failures if not run.is_check and run.place >= lately]
    for run in told[:_FAILURES]:
        signature = run.signature
        why = signature or (run.event.text if run.event.type is not EventType.TOOL_RESULT else "")
        because = f": {cut(why, _FAILURE)}" if why.strip() else ""
        parts = (each for each in reversed(done) if each.place > run.place and each.outcome == "ok" and _part_of(each, run))
        later = next(parts, None)
        partly = f" (only `{_command(later.command)}` has gone well since)" if later else ""
        events = (run.event, later.event) if later else (run.event,)
        yield _line(Part.FAILED, f"`{_command(run.command)}` failed{because}{partly}", *events)


def _part_of(later: Run, failed: Run) -> bool:
    return bool(later.purposes & failed.purposes) and failed.is_check and makes_up(failed, later)


def _verify(files: Sequence[Changed], done: Sequence[Run]) -> Iterator[Line]:
    """Checks whose last success is older than what was changed since; those that fail are told already."""
    code = [file for file in files if PurePosixPath(file.path).suffix.lower() not in _PROSE]
    if not code:
        return
    checks = [run for run in done[-_NOT_LONG_AGO:] if run.is_check and run.outcome != "unknown"]
    tested = max((run.place for run in checks if run.tested == "ok" and run.outcome == "ok" and not run.where), default=-1)
    told: set[str] = set()
    for run in reversed(checks):
        if run.purposes <= told or any(later.place > run.place and makes_up(later, run) for later in checks):
            continue
        told |= run.purposes
        if not _can_be_typed_again(run.command):
            continue
        known = max(run.place, tested) if run.only_builds else run.place
        since = [file for file in code if file.place > known]
        if run.outcome == "ok" and since:
            what = f"`{_command(run.command)}` went well at {run.event.at:%m-%d %H:%M}, but not seen since these changed"
            yield _files_line(Part.VERIFY, what, since, run.event)
        if len(told) >= _CHECKS:
            return
    if not any(run.is_check for run in done):
        yield _files_line(Part.VERIFY, "nothing has been run that tests", code)


def _can_be_typed_again(command: str) -> bool:
    return len(bare(command)) <= _COMMAND and not any(sign in bare(command) for sign in (";", "\n", "<<"))


def _stable(done: Sequence[Run], *, files_at: Callable[[int], tuple[Changed, ...]], made: Sequence[Commit]) -> Stable | None:
    at = next((at for at in range(len(done) - 1, -1, -1) if done[at].tested == "ok" and done[at].outcome == "ok"), None)
    if at is None:
        return None
    run = done[at]
    return Stable(
        at=run.event.at,
        command=run.command,
        said=cut(run.said, _SUBJECT),
        evidence=reference(run.event),
        place=run.place,
        files=files_at(run.place),
        commit=next((commit.hash for commit in reversed(made) if commit.place < run.place), ""),
        failing=tuple(_command(failed.command) for failed in open_failures(done[: at + 1]) if failed.is_check),
    )


def _stable_told(stable: Stable | None, files: Sequence[Changed]) -> Iterator[Line]:
    if stable is None:
        return
    changed = [file for file in files if file.place > stable.place]
    commit = f", after commit {stable.commit[:12]}" if stable.commit else ""
    with_files = f"; {len(stable.files)} {'file' if len(stable.files) == 1 else 'files'} changed by then" if stable.files else ""
    since = f", since then {_named(changed)}" if changed else ", nothing since"
    failing = f"; `{stable.failing[0]}` still failed" if stable.failing else ""
    command, said = _command(stable.command), f" ({stable.said})" if 0 < len(stable.said) <= _SAID_OF_TESTS else ""
    text = f"{stable.at:%Y-%m-%d %H:%M}{commit}: `{command}` passed{said}{with_files}{since}{failing}"
    cited = (stable.evidence, *(file.evidence for file in (changed or stable.files)[:1]))
    yield Line(part=Part.STABLE, text=text, evidence=tuple(dict.fromkeys(cited)))


def _command(command: str) -> str:
    return cut(bare(command), _COMMAND) or "tests"


def _open(events: Sequence[Event]) -> Iterator[Line]:
    """What the agent asked at the end; then what the person asked and nobody answered, the last first.

    What a person said again, or took back by interrupting the agent to say something else, is not asked any more.
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
                    waiting.popitem()  # it was taken up, which is what a request asks for
                    answered = True
                if event.tool in _ASKS_THE_PERSON and event.call and event.call not in results:
                    choice = event
            case _:
                continue
    if choice is not None:
        yield _line(Part.OPEN, f"the agent asked, and had no answer: {cut(choice.text, _ASKED)}", choice)
    if closing is not None and (question := _closing_question(closing.text)):
        yield _line(Part.OPEN, f'the agent asks: "{cut(question, _ASKED)}"', closing)
    for event in list(reversed(waiting.values()))[:2]:
        if event.text.strip():
            yield _line(Part.OPEN, f'the person had no answer to: "{cut(event.text, _ASKED)}"', event)


def _closing_question(text: str) -> str:
    """The last sentence, where it is one."""
    lines = [line for line in text[-_READ:].splitlines() if line.strip()]
    last = _SENTENCES.split(_MARKUP.sub("", lines[-1]).strip())[-1] if lines else ""
    return last if last.rstrip("\"')]*`_ ").endswith(("?", "？")) else ""


def _files_line(part: Part, what: str, files: Sequence[Changed], *besides: Event) -> Line:
    cited = (*map(reference, besides), *(file.evidence for file in files[:_FILES_CITED]))
    return Line(part=part, text=f"{what}: {_named(files)}", evidence=tuple(dict.fromkeys(cited)))


def _named(files: Sequence[Changed]) -> str:
    names = list(dict.fromkeys(cut(file.path, _COMMAND) for file in files))
    more = f" and {len(names) - _FILES_NAMED} more" if len(names) > _FILES_NAMED else ""
    return ", ".join(names[:_FILES_NAMED]) + more


def _line(part: Part, text: str, *events: Event) -> Line:
    return Line(part=part, text=text, evidence=tuple(dict.fromkeys(map(reference, events))))
