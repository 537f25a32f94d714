"""Lookups by name of a command, a failure or a file in the timeline, each with what came of it."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kite_memory.model.event import Event, EventType, Session, opens_turn
from kite_memory.model.hit import Fix, Quote
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip_line
from kite_memory.text.error_signature import normal, signatures
from kite_memory.text.quoting import plain_line
from kite_memory.text.shell import invocations, writes
from kite_memory.timeline.progress import is_change
from kite_memory.timeline.runs import Commit, Outcome, bare, commits, only_looks, runs
from kite_memory.timeline.search import EventQuery
from kite_memory.timeline.store import Timeline

_LOOKED_AT = 200
_FOLLOWING = 60
"""Events after a command in which its outcome is searched for."""
_EVENTS_OF_CALL = 6
_BEFORE, _AFTER = 400, 400
"""Events around a change: before it the prompt that led to it, after it the commit that includes it."""
_SAID = 160
_ASKED, _QUOTED_AMONG, _LINES = 1_200, 12, 40
_QUOTED_WORDS, _FEWEST_QUOTED, _SHORTEST_QUOTED = 8, 3, 15
_SPEAKS_OF_FAILURE = lazy_regex(
    r"fail|error|exception|panic|crash|denied|refused|invalid|cannot|can['’]t|again|why|[A-Z][a-z]+[A-Z]"
)
_NAMED_BY_FAILURE = lazy_regex(r"(?<!\w)['\"‘“`]([^'\"’”`]{2,200})['\"’”`]")
"""What is in quotes, by which one failure differs from others of its kind."""
_OF_ANY_PROGRAM = lazy_regex(
    r"(?:\[errno \d+\] )?(?:no such file or directory|command not found|operation not permitted|address already in use"
    r"|connection reset by peer|is a directory|not a directory|no space left on device)"
)
_FAILS = lazy_regex(r"\b(?:fail\w*|errors?|panic\w*|crash\w*|again)\b", re.IGNORECASE)
_NAME_OF_A_FAILURE = lazy_regex(r"\b(?!\w*(?:Error|Exception|Warning)\b)(?:[A-Z][a-z]+){3,}\b")
_GIT, _COMMITS_ALIKE, _COMMITTED_WITHIN = "git", 20, timedelta(hours=2)
_COMMITS = lazy_regex(r"\bgit commit\b[^\n\"']{0,80}-\w{0,4}m\s{0,4}([\"'])([^\"'\n]{1,400})\1")
_READ = 20_000
_WORD = re.compile(r"\w+")
_COMMON_WORDS = "a an and are at be by for from has in is it no not of on or the this to was were with"
_COMMON = frozenset(_COMMON_WORDS.split())
_ALIKE = 0.6
"""Least share of the query's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A command as it was typed, or the input of a tool. ``outcome`` and ``failure`` are those of the last use, ``at`` its time."""

    what: str
    times: int
    at: datetime
    outcome: Outcome
    evidence: str
    failure: str = ""
    fix: Fix | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureMatch:
    """A failure in the words of its last occurrence; ``fix`` is how it last went away, as far as that was seen."""

    failure: str
    times: int
    at: datetime
    command: str
    evidence: str
    fix: Fix | None
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """What one prompt led to in a file, or a commit of which no session is known. ``commit`` is the first commit after the last of
    these changes; none if they were taken back before it.
    """

    session: Session
    path: str
    action: str
    times: int
    at: datetime
    prompt: str
    evidence: str
    commit: Commit | None


def search_uses(timeline: Timeline, tool: str, *, project: str = "", limit: int = 8) -> list[ToolUse]:
    """Return uses of a program, with its first words if given («git rebase»), or of an agent's tool; successful ones first."""
    words = tool.split()
    if not words:
        return []
    words[0] = posixpath.basename(words[0]) or words[0]
    hits = timeline.search.find(
        EventQuery(text=" ".join(words), types=frozenset({EventType.COMMAND}), project=project, limit=_LOOKED_AT, by_words=True)
    )
    by_command: dict[str, list[Event]] = {}
    for hit in hits:
        if any((each.program, *each.words)[: len(words)] == tuple(words) for each in invocations(hit.event.command)):
            by_command.setdefault(clip_line(bare(hit.event.command), _SAID), []).append(hit.event)
    if not by_command:
        called = EventQuery(tool=tool, types=frozenset({EventType.TOOL_CALL}), project=project, limit=_LOOKED_AT)
        for hit in timeline.search.find(called):
            by_command.setdefault(clip_line(hit.event.text or hit.event.path, _SAID), []).append(hit.event)
    found = [_use(timeline, what, events) for what, events in by_command.items()]
    found.sort(key=lambda use: (use.outcome == "failed", -use.times, -use.at.timestamp()))
    return found[:limit]


def _use(timeline: Timeline, what: str, events: Sequence[Event]) -> ToolUse:
    last = max(events, key=lambda event: event.at)
    after = timeline.events.of_session(last.provider, last.session, after=last.ordinal - 1, limit=_FOLLOWING)
    ended = next((run for run in runs([event for event in after if event.call == last.call])), None) if last.call else None
    failed = ended is not None and ended.outcome == "failed"
    return ToolUse(
        what=what,
        times=len(events),
        at=last.at,
        outcome=ended.outcome if ended is not None else "unknown",
        evidence=last.reference,
        failure=clip_line(ended.failure, _SAID) if ended is not None and failed else "",
        fix=timeline.fixes.fix_of(ended.event) if ended is not None and failed else None,
    )


def search_failures(timeline: Timeline, error: str, *, project: str = "", limit: int = 5) -> list[FailureMatch]:
    """Return failures like this one: those with the same signature or wording first, then those that went away."""
    asked = frozenset(signatures(error) or (normal(error),))
    types = frozenset({EventType.ERROR, EventType.TEST_RESULT, EventType.TOOL_RESULT})
    words = frozenset(_WORD.findall(error.casefold()))
    words = words - _COMMON or words
    wording = " ".join(error.casefold().split())
    alike: dict[str, list[tuple[str, Event]]] = {}
    for hit in timeline.search.find(EventQuery(text=error, types=types, project=project, limit=_LOOKED_AT)):
        line, share = _best_line(hit.event.text, words)
        if share >= _ALIKE and _failed(timeline, hit.event):
            alike.setdefault(next(iter(signatures(line)), "") or normal(line), []).append((line, hit.event))
    found = [
        (name in asked or any(wording in " ".join(line.casefold().split()) for line, _ in its), _met(timeline, its))
        for name, its in alike.items()
    ]
    found.sort(key=lambda pair: (not pair[0], pair[1].fix is None, -pair[1].at.timestamp()))
    return [each for _, each in found[:limit]]


def fix_of_quoted_failure(timeline: Timeline, text: str, *, project: str, besides: str) -> Quote | None:
    """Return how a failure of the project that a text quotes word for word went away, if that is known.

    ``besides`` is the id of a session to leave out.
    """
    if not project or not _SPEAKS_OF_FAILURE.search(text[:_ASKED]):
        return None
    asked = " ".join(text[:_ASKED].split())
    types = frozenset({EventType.ERROR, EventType.TEST_RESULT})
    for hit in timeline.search.find(EventQuery(text=asked, types=types, project=project, limit=_QUOTED_AMONG)):
        lines = [line for line in hit.event.text[:_READ].splitlines()[:_LINES] if signatures(line)] or hit.event.text.splitlines()[
            :1
        ]
        line = next((each for each in lines if _quotes(asked, each)), "")
        if line and hit.event.session != besides and (fix := timeline.fixes.fix_of(hit.event)) is not None:
            return _quote_of(_met(timeline, [(line.strip(), hit.event)]), fix)
    return None


def _quote_of(met: FailureMatch, fix: Fix) -> Quote:
    files = f" after changes to {', '.join(file.rpartition('/')[2] for file in fix.files[:3])}" if fix.files else ""
    said = f" after the user wrote “{clip_line(fix.said, _SAID)}”" if fix.said else ""
    done = [f"`{clip_line(step, _SAID // 2)}`" for step in fix.steps if writes(step) or not only_looks(step)][-2:]
    steps = f"; before it: {', '.join(done)}" if done else ""
    worked = f"`{clip_line(fix.worked, _SAID)}` succeeded"
    text = f"This failure was met before: “{clip_line(met.failure, _SAID)}”. Then {worked}{files}{said}{steps}."
    return Quote(
        id=met.evidence,
        text=plain_line(text, 800),
        date=fix.at,
        score=1.0,
        session=met.session,
        evidence=(met.evidence, fix.evidence),
    )


def _quotes(asked: str, line: str) -> bool:
    """Return whether a text holds what a line of a failure says after its name, or a name that only this failure has."""
    parts = " ".join(line.split()).split(": ")
    for rest in (": ".join(parts[at:]) for at in range(len(parts))):
        tail = " ".join(rest.split()[:_QUOTED_WORDS]).casefold().rstrip(".,;:")
        named = _NAMED_BY_FAILURE.findall(rest)
        if (
            len(tail.split()) >= _FEWEST_QUOTED
            and len(tail) >= _SHORTEST_QUOTED
            and tail in asked.casefold()
            and not _OF_ANY_PROGRAM.fullmatch(tail)
            and (not named or any(name in asked for name in named))
        ):
            return True
    return _FAILS.search(asked) is not None and any(name in asked for name in _NAME_OF_A_FAILURE.findall(line))


def _failed(timeline: Timeline, event: Event) -> bool:
    """Return whether the event is a failure, including a success reported by a pipe whose call has a failed event."""
    if event.type is EventType.ERROR or event.status == "failed":
        return True
    following = (
        timeline.events.of_session(event.provider, event.session, after=event.ordinal - 1, limit=_EVENTS_OF_CALL)
        if event.call
        else ()
    )
    return any(each.call == event.call and each.status == "failed" for each in following)


def _best_line(text: str, words: frozenset[str]) -> tuple[str, float]:
    """Return the line that holds most of the words, and the share of them in the whole text."""
    lines = text[:_READ].splitlines() or [""]
    best = max(lines, key=lambda line: len(words & frozenset(_WORD.findall(line.casefold()))))
    return best.strip(), len(words & frozenset(_WORD.findall(text[:_READ].casefold()))) / max(1, len(words))


def _met(timeline: Timeline, its: Sequence[tuple[str, Event]]) -> FailureMatch:
    newest = sorted(its, key=lambda pair: pair[1].at, reverse=True)
    fix = next((fix for _, event in newest if (fix := timeline.fixes.fix_of(event)) is not None), None)
    line, last = newest[0]
    command = next((event.command for _, event in newest if event.command), fix.failed if fix is not None else "")
    return FailureMatch(
        failure=clip_line(line, _SAID),
        times=len({(event.session, event.call or event.id) for _, event in its}),
        at=last.at,
        command=clip_line(bare(command), _SAID),
        evidence=last.reference,
        fix=fix,
        session=last.session,
    )


def changes(timeline: Timeline, path: str, *, project: str = "", limit: int = 12) -> list[FileChange]:
    """Return changes of a file, newest first. ``path`` is its name with any number of its parent folders."""
    query = EventQuery(file=path, types=frozenset({EventType.FILE_ACTION}), project=project, limit=_LOOKED_AT)
    by_change: dict[tuple[str, str, str], list[Event]] = {}
    sessions: dict[str, Session] = {}
    prompts: dict[tuple[str, str, str], Event | None] = {}
    for hit in timeline.search.find(query):
        event = hit.event
        if not is_change(event):
            continue
        prompt = _prompt_before(timeline, event)
        cause = prompt.id if prompt is not None else event.parent if event.provider == _GIT else ""
        key = (event.session, event.path, cause)
        by_change.setdefault(key, []).append(event)
        sessions[event.session], prompts[key] = hit.session, prompt
    newest = sorted(by_change.items(), key=lambda pair: max(event.at for event in pair[1]), reverse=True)
    newest = newest[: 2 * limit]  # a commit read from Git may be one that a session made
    by_git = {key: _commit_of(timeline, events[0]) for key, events in newest if events[0].provider == _GIT}
    found = {key: _change(timeline, sessions[key[0]], prompts[key], events) for key, events in newest if key not in by_git}
    joined = tuple({each.commit.hash for each in found.values() if each.commit is not None})
    for key, events in newest:
        made = by_git.get(key)
        if key in by_git and (made is None or not made.hash.startswith(joined)):
            found[key] = replace(_change(timeline, sessions[key[0]], None, events), commit=made)
    return [found[key] for key, _ in newest if key in found][:limit]


def _commit_of(timeline: Timeline, change: Event) -> Commit | None:
    """Return the commit of which a change read from Git is a part."""
    before = timeline.events.last(change.provider, change.session, _BEFORE, before=change.ordinal)
    return next((_recorded(event) for event in reversed(before) if event.id == change.parent), None)


def _recorded(event: Event) -> Commit:
    return Commit(event=event, place=0, hash=event.id, subject=event.text.partition("\n")[0].strip())


def _change(timeline: Timeline, session: Session, prompt: Event | None, events: Sequence[Event]) -> FileChange:
    last = max(events, key=lambda event: event.ordinal)
    after = timeline.events.of_session(last.provider, last.session, after=last.ordinal, limit=_AFTER)
    taken_back = next((event for event in after if _takes_back(timeline, session, event, last.path)), None)
    until = after[: after.index(taken_back)] if taken_back is not None else after
    commit = next(iter(commits(until)), None) or _found_commit(timeline, session, until)
    action = last.text.partition(",")[0].strip()[:20] or "changed"
    return FileChange(
        session=session,
        path=last.path,
        action=f"{action} and taken back" if taken_back is not None and commit is None else action,
        times=len(events),
        at=last.at,
        prompt=clip_line(prompt.text, _SAID) if prompt is not None else "",
        evidence=(prompt or last).reference,
        commit=commit,
    )


def _found_commit(timeline: Timeline, session: Session, events: Sequence[Event]) -> Commit | None:
    """Return the first commit that a quiet `git commit` of these events made, as Git recorded it."""
    commands = (event for event in events if event.type is EventType.COMMAND)
    command, subject = next(((each, found[2].strip()) for each in commands if (found := _COMMITS.search(each.command))), (None, ""))
    if command is None or not subject:
        return None
    query = EventQuery(
        text=subject,
        types=frozenset({EventType.FILE_ACTION}),
        project=session.project,
        provider=_GIT,
        since=command.at - _COMMITTED_WITHIN,
        limit=_COMMITS_ALIKE,
    )
    made = [hit.event for hit in timeline.search.find(query) if not hit.event.path]
    made = [event for event in made if event.text.partition("\n")[0].strip() == subject]
    nearest = min(made, key=lambda event: abs(event.at - command.at), default=None)
    return _recorded(nearest) if nearest is not None and abs(nearest.at - command.at) <= _COMMITTED_WITHIN else None


def _takes_back(timeline: Timeline, session: Session, event: Event, path: str) -> bool:
    """Return whether a command restored the file as Git has it."""
    if event.type is not EventType.COMMAND or "git" not in event.command:
        return False
    there = posixpath.normpath(posixpath.join(session.cwd, path).replace("\\", "/"))
    restored = (
        posixpath.join(session.cwd, each.path).replace("\\", "/") for each in writes(event.command) if each.how == "restored"
    )
    return there in map(posixpath.normpath, restored) and not _failed(timeline, event)


def _prompt_before(timeline: Timeline, event: Event) -> Event | None:
    before = timeline.events.last(event.provider, event.session, _BEFORE, before=event.ordinal)
    return next((each for each in reversed(before) if each.type is EventType.USER_MESSAGE or opens_turn(each)), None)


def became(timeline: Timeline, event: Event) -> Iterator[str]:
    """Yield a line for each thing that followed an event: how a failure went away, and that a file was changed again."""
    if event.type is EventType.ERROR or event.status == "failed":
        if (fix := timeline.fixes.fix_of(event)) is not None:
            files = f", after changes to {', '.join(file.rpartition('/')[2] for file in fix.files[:3])}" if fix.files else ""
            yield f"fixed {fix.at:%Y-%m-%d %H:%M} by `{clip_line(bare(fix.worked), _SAID)}`{files} [{fix.evidence}]"
        else:
            yield "no fix is known in its session"
    elif is_change(event):
        query = EventQuery(file=event.path, types=frozenset({EventType.FILE_ACTION}), since=event.at, limit=_LOOKED_AT)
        later = [hit.event for hit in timeline.search.find(query) if is_change(hit.event) and hit.event.at > event.at]
        if later:
            last = max(later, key=lambda each: each.at)
            times = "once" if len(later) == 1 else f"{len(later)} times"
            yield f"changed {times} since, last {last.at:%Y-%m-%d %H:%M} [{last.reference}]"
