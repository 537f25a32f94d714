"""What failed in a session and is not mended: checks, other commands, changes not made, and what the person reports."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from kite_memory.model.event import Event, EventType
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip_line, clip_middle, outline
from kite_memory.text.error_signature import Report, first_failure, is_content, reported, signatures
from kite_memory.timeline.progress import (
    FILES_CITED,
    PATH_PARTS,
    SUBJECT,
    BriefLine,
    BriefPart,
    ChangedFile,
    cited,
    code_since,
    is_change,
    is_code,
    last_changes,
    names,
    typed,
)
from kite_memory.timeline.runs import Commit, Run, bare, failing_part, kinds_in, makes_up, only_looks, open_failures, purposes_of
from kite_memory.timeline.summaries import TOOLS

_HOOK_FAILED = lazy_regex(
    r"^husky - .{1,80}(?:failed|exited with code [1-9])|^- hook id: \S"
    r"|\b(?:pre-commit|commit-msg|pre-push) hook (?:failed|declined|exited)",
    re.MULTILINE,
)
_COMMITS = lazy_regex(r"\bgit\s+(?:-\S{1,40}\s+){0,3}commit\b")
"""Also behind a program that runs git, whose exit status may be its own."""
_ONLY_LOOKS = lazy_regex(
    r"(?:.{1,60}__)?(?:read|list|search|grep|glob|view|find|ls|get|fetch|open|web|write_stdin|stop|wait|kill|close)", re.IGNORECASE
)
"""The beginning of the name of a tool whose failure leaves nothing undone."""
_CALLED = 60
_FOUND = lazy_regex(
    r"\b(?:found (?:it|(?:the|a) (?:real |actual |root )?(?:bug|issue|problem|cause|culprit|reason))"
    r"|(?:the |this )?(?:failing|failed|broken) (?:test|check|lint|build|job|step|case)s? (?:is|are)\b"
    r"|the (?:\w{1,20} )?(?:cause|bug|problem|issue|culprit|error|failure|reason)(?: here)? (?:is|was|lies|comes|seems)\b"
    r"|(?:is|are|was|were) failing (?:for|because|due|since|with|on|at|in)\b"
    r"|(?:fails?|failed|failing) (?:because|due to|since|with)\b"
    r"|there['’]?(?:s| is) (?:one|a|an|still an?|another) (?:\w{1,20} )?(?:bug|problem|error) "
    r"|(?:is|was) caused by|\w{1,40} found an? (?:actual |real |new )?(?:bug|issue|problem|error)"
    r"|le (?:problème|bug) (?:est|vient)|das problem (?:ist|liegt))"
    r"(?! (?:now |already )?(?:fixed|resolved|gone|solved|that (?:you|we) asked))",
    re.IGNORECASE,
)
"""What an agent says when it has found what fails, or why."""
_BUG_FOUND = lazy_regex(
    r"\bfound (?:it|(?:the|a) (?:real |actual |root )?(?:bug|issue|problem|cause|culprit))\b"
    r"|\b(?:failing|broken) tests? (?:is|are)\b"
    r"|\b(?:test|check|build)s? (?:is|are|was|were) failing\b",
    re.IGNORECASE,
)
_QUOTES_THE_AGENT = '; the agent: "'
_TO_FORMAT = lazy_regex(
    r"^.{0,80}\b(?:needs? (?:to be )?(?:re)?format(?:ted|ting)|(?:is|are) not (?:properly )?formatted)\b.{0,80}"
    r"(?:\n+[ \t]{0,4}[\w./-]{1,120}\.\w{1,6}$){0,2}",
    re.MULTILINE,
)
"""What a script that checks the format prints, with the first files below it."""
_NAMED_BELOW = "(fail) "
_ABOVE = 1_500
_FRAME_LINE = lazy_regex(r"(?: FIXABLE)?\s{0,4}[━═─]{3,}.{0,200}")
_EXIT_CODE = lazy_regex(r"\A(?:Exit code|exit status) \d{1,3}(?:\s{1,3}|\Z)")
_NOT_THERE = lazy_regex(
    r"(?:no such file or directory|command not found): (\S{1,200})"
    r"|(\S{1,200}): (?:no such file or directory|(?:command )?not found)$",
    re.IGNORECASE,
)
_THROWN_AWAY = lazy_regex(r"\bmktemp -d")
"""What ran in such a folder left nothing behind that could be mended."""
_AT_THE_END = 6
"""Number of events."""
_GOES_ON = lazy_regex(r" (?:Let me|Let['’]s|I['’]ll|Now I|I will|I need to)\b.*")
"""What an agent says that it will do about it."""
CHANGE_FILES = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch", "apply_diff", "replace", "write_file"})
_LATELY_EVENTS = 60
_FAILURES = 4
_LATELY = 25
"""Number of runs: another command that failed longer ago and was never tried again counts as given up."""
_FAILURE, _REPORT, _VERDICT = 160, 200, 120
_TRY_AGAIN = lazy_regex(
    r"\b(?:re-?try|re-?run|try (?:it|that|this|again|your|the)|run (?:it|that|your|the (?:same )?\w{1,20}) again)\b", re.IGNORECASE
)
_A_REPORT = 300
"""Longer prompts with headings or lists are tasks."""
_REPORTS_BACK = 6
"""Number of prompts."""
_EVENTS_OF_CALL = 6
_READ = 4_000
_CAUSE = 200
_FURTHER = ((2, 80), (4, 120))
"""How many failures of a check are quoted, and in how many characters each."""
_EXPLAINED_WITHIN = 40
"""Number of events."""
_WORDS_OF_A_REQUEST = 4
_FILE_LINE = lazy_regex(
    r"^\s{0,8}(?:at )?[\w./@-]{1,200}\.\w{1,6}(?::\d+:\d+)? (?:format|parse|lint/\S{1,80}|assist/\S{1,80})(?=\s|$)"
    r"|^\s{0,8}(?:at |--> )?[\w./@-]{1,200}\.\w{1,6}[:(]\d{1,6}\b.{0,200}",
    re.MULTILINE,
)
_OF_OTHERS = lazy_regex(
    r"/(?:node_modules|site-packages|lib/python[\d.]{1,6}|src/runtime|src/testing|\.cargo|rustc|dist-packages)/"
)
"""Places outside the project, which a trace begins or ends with."""
_SAYS_WHY = lazy_regex(
    r"\b(?:should|expect\w*|got|want(?:ed)?|fail\w*|errors?|cannot|can't|not|mismatch|unexpected|invalid|missing|timed? ?out"
    r"|panic)\b|!=",
    re.IGNORECASE,
)
_SUMS_UP = lazy_regex(
    r"^(?:FAIL(?:\s.{0,200})?|\d{1,6} (?:skip|expect\(\) calls).{0,40})$\n?|(?: ?\(\d[\d.]{0,8} ?m?s\))", re.MULTILINE
)
"""What a summary says besides the names of the tests that failed."""
_TEST = lazy_regex(
    r"--- FAIL: (\S{1,200})|(?:FAILED|ERROR) (\S{1,300}::\S{1,300})|(?:FAIL|ERROR): (test\w{1,200})|[✗✘×] (\S.{3,120})$",
    re.MULTILINE,
)
_SAID_TO_BE_OLD = lazy_regex(
    r"\b(?:un-?related|pre-?existing|not (?:caused|related|due)|already (?:fail|broken|present)|also fails? (?:on|without)"
    r"|flak[ye]|known (?:issue|failure)|reproduces? on|environment(?:al)? (?:issue|problem))",
    re.IGNORECASE,
)
_SENTENCES = lazy_regex(r"(?<=[.!?…])[\"')\]*`_]{0,4}\s+|\n")
_CONFLICT = lazy_regex(r"\bconflict", re.IGNORECASE)
_ENDS_A_CONFLICT = frozenset({"git merge", "git rebase", "git pull", "git cherry-pick", "git commit", "git revert"})


def failed_lines(
    events: Sequence[Event], done: Sequence[Run], made: Sequence[Commit], changes: Sequence[ChangedFile]
) -> Iterator[BriefLine]:
    """Yield open failures: of checks, as the person reported them, and recent ones of other commands.

    Each with what was changed since without a new try, and with the cause as far as the agent found it.
    """
    refused = _refused_commit(events, done, made)
    found = _finding(events, done)
    failures = [run for run in open_failures(done) if run is not refused]
    lately = done[-_LATELY].place if len(done) >= _LATELY else 0
    checks = sorted(
        (run for run in failures if run.is_check and (run.failure or not run.failed_elsewhere)),
        key=lambda run: (run.was_called_wrongly, "tests" not in run.kinds),
    )
    last = next((run for run in reversed(done) if run.outcome != "unknown" and run.place >= len(events) - _AT_THE_END), None)
    others = [run for run in failures if not run.is_check and run.place >= lately and not _is_answered(run, events)]
    others = [run for run in others if run.failure or "git commit" in run.purposes]
    others = [run for run in others if not _found_elsewhere(run, done) and not _THROWN_AWAY.search(run.command)]
    files = last_changes(changes)
    lines = [_failed_line(run, done, events, code_since(files, since=run.place)) for run in checks[:_FAILURES]]
    if refused is not None:
        lines.insert(0, _refused_line(refused, events))
    seen_at = max((run.place for run in (refused, *checks[:1]) if run is not None), default=-1)
    lines += _reported(events, done, made, changes, checks)
    if found is not None and lines and events.index(found[0]) > seen_at:
        lines[0] = _with_cause(lines[0], *found)
    elif found is not None and not lines and _BUG_FOUND.search(found[0].text) and not _changed_since(found[0], events):
        lines = [cited(BriefPart.FAILED, f'the agent found, and has not changed anything since: "{found[1]}"', found[0])]
    yield from lines
    if last is not None and last.outcome == "failed" and not last.purposes and last is not refused:
        yield from _last_line(last, events)
    for run in others[: _FAILURES - len(checks)]:
        yield _failed_line(run, done, events, [])
    yield from _not_applied(events, done, made, changes)


def _with_cause(line: BriefLine, message: Event, cause: str) -> BriefLine:
    """Return the line with what the agent found, unless it quotes the agent already."""
    if _QUOTES_THE_AGENT in line.text:
        return line
    text, *longer = (f'{each}{_QUOTES_THE_AGENT}{cause}"' for each in (line.text, *line.longer))
    evidence = tuple(dict.fromkeys((*line.evidence, message.reference)))
    return replace(line, text=text, evidence=evidence, longer=tuple(longer))


def _last_line(run: Run, events: Sequence[Event]) -> Iterator[BriefLine]:
    """Yield that the last command failed, a preparation or a look. Exit code 1 of a look alone means «no»."""
    said = _EXIT_CODE.sub("", _output(run, events)).strip()
    why = run.failure or first_failure(said)
    if why or (said and not only_looks(run.command)):
        yield cited(
            BriefPart.FAILED, f"the last command, `{typed(run.command)}`, failed: {clip_line(why or said, _FAILURE)}", run.event
        )


def _found_elsewhere(run: Run, done: Sequence[Run]) -> bool:
    """Return whether a program that was not found was called at another place since, or behind another program."""
    absent = _NOT_THERE.search(run.failure)
    path = (absent[1] or absent[2]) if absent is not None else ""
    name = PurePosixPath(path).name
    later = (each.command[:_READ].split() for each in done if each.place > run.place and each.outcome != "failed")
    return bool(name) and any(
        (words[0].endswith(f"/{name}") and words[0] != path) or (name == path and name in words[1:]) for words in later if words
    )


def _is_answered(run: Run, events: Sequence[Event]) -> bool:
    """Return whether the agent ended the turn of a failed command with an answer, and the person went on."""
    said = False
    for event in events[run.place :]:
        if event.type is EventType.USER_MESSAGE and event.text.strip():
            return said
        said = event.type is EventType.ASSISTANT_MESSAGE
    return False


def _refused_commit(events: Sequence[Event], done: Sequence[Run], made: Sequence[Commit]) -> Run | None:
    """Return the last attempt to commit if a hook refused it and none has succeeded since, whatever its exit status was."""
    tried = next((run for run in reversed(done) if _COMMITS.search(run.command)), None)
    if tried is None or not _HOOK_FAILED.search(_output(tried, events)) or any(commit.place >= tried.place for commit in made):
        return None
    return tried


def _output(run: Run, events: Sequence[Event]) -> str:
    """Return the whole output of a run, of which the event that shows how it ended may hold a part."""
    around = events[max(0, run.place - _EVENTS_OF_CALL) : run.place + 1]
    results = (each.text for each in around if each.call == run.event.call and each.type is EventType.TOOL_RESULT)
    return max(results, key=len, default=run.event.text)


def _refused_line(run: Run, events: Sequence[Event]) -> BriefLine:
    said = _output(run, events)
    why = first_failure(failing_part(said)) or first_failure(said)
    because = f": {clip_line(why, _FAILURE)}" if why else ""
    return cited(BriefPart.FAILED, f"the commit was refused by its hook, and is to be tried again{because}", run.event)


def _finding(events: Sequence[Event], done: Sequence[Run]) -> tuple[Event, str] | None:
    """Return the agent's last message since the last prompt that says what fails or why, with no check that went well since."""
    checked = max((run.place for run in done if run.is_check and run.outcome == "ok"), default=-1)
    for place in range(len(events) - 1, max(checked, len(events) - _LATELY_EVENTS - 1), -1):
        event = events[place]
        if event.type is EventType.USER_MESSAGE and event.text.strip():
            return None
        if event.type is EventType.ASSISTANT_MESSAGE and (found := _FOUND.search(event.text[:_READ])) is not None:
            start = max((each.end() for each in _SENTENCES.finditer(event.text, 0, found.start())), default=0)
            said = _GOES_ON.sub("", " ".join(event.text[start : start + 4 * _VERDICT].replace("```", "").split()))
            return event, clip_line(said, _CAUSE)
    return None


def _changed_since(message: Event, events: Sequence[Event]) -> bool:
    return any(is_change(event) for event in events[events.index(message) :])


def _not_applied(
    events: Sequence[Event], done: Sequence[Run], made: Sequence[Commit], changes: Sequence[ChangedFile]
) -> Iterator[BriefLine]:
    """Yield the last calls of a tool that failed or were denied, and were not made since.

    One is no longer missed after a commit, a check that went well, or a command that may have changed any file.
    """
    checked = (run.place for run in done if run.is_check and run.outcome == "ok")
    went_on = max(
        (*checked, *(commit.place for commit in made), *(change.place for change in changes if not change.path)), default=-1
    )
    since = max(went_on + 1, len(events) - _LATELY_EVENTS)
    known = {change.whole: change.place for change in changes if change.place >= since}
    shells = {event.call for event in events[since:] if event.type is EventType.COMMAND}
    well: set[str] = set()
    for place in range(len(events) - 1, since - 1, -1):
        event = events[place]
        if event.type is EventType.USER_MESSAGE and event.text.strip():
            return
        if event.type is EventType.TOOL_RESULT and event.call not in shells and event.tool not in CHANGE_FILES | TOOLS:
            if event.status in ("failed", "denied") and event.tool not in well and not _ONLY_LOOKS.match(event.tool):
                asked = next((each.text for each in reversed(events[:place]) if each.call == event.call and each.text), "")
                what = f" ({clip_line(asked, _CALLED)})" if asked else ""
                said = f"failed: {clip_line(event.text, SUBJECT)}" if event.status == "failed" else "was denied"
                yield cited(BriefPart.FAILED, f"the last call of {event.tool or 'a tool'}{what} {said}", event)
            well.add(event.tool)
        if event.type is EventType.TOOL_RESULT and event.tool in CHANGE_FILES:
            if event.status in ("failed", "denied") and event.path and place > known.get(event.path, -1):
                how = "was denied" if event.status == "denied" else "failed, and is not applied"
                said = f": {clip_line(event.text.partition(chr(10))[0], SUBJECT)}" if event.status == "failed" else ""
                yield cited(
                    BriefPart.FAILED,
                    f"the last {event.tool} of {'/'.join(PurePosixPath(event.path).parts[-PATH_PARTS:])} {how}{said}",
                    event,
                )
            known[event.path] = len(events)


def _failed_line(run: Run, done: Sequence[Run], events: Sequence[Event], since: Sequence[ChangedFile]) -> BriefLine:
    why = _why(run, done)
    short, *longer = dict.fromkeys(f": {why}{_further(run, *each)}" if why else "" for each in _FURTHER)
    parts = (each for each in reversed(done) if each.place > run.place and each.outcome == "ok" and _part_of(each, run))
    later = next(parts, None)
    partly = f" (only `{typed(later.command)}` has gone well since)" if later else ""
    happened = "changed" if any(file.path for file in since) else "ran"
    unverified = f"; unverified: {names(since, FILES_CITED, parts=PATH_PARTS)} {happened} since, run it again" if since else ""
    explained = _explained(run, events) if run.is_check else None
    verdict = f'{_QUOTES_THE_AGENT}{clip_line(explained[1], _VERDICT)}"' if explained else ""
    events_cited = (run.event, *((later.event,) if later else ()), *((explained[0],) if explained else ()))
    evidence = (*(event.reference for event in events_cited), *(file.evidence for file in since[:1]))
    text, *more = (f"`{typed(run.command)}` failed{each}{partly}{unverified}{verdict}" for each in (short, *longer))
    return BriefLine(part=BriefPart.FAILED, text=text, evidence=tuple(dict.fromkeys(evidence)), longer=tuple(more))


def _why(run: Run, done: Sequence[Run]) -> str:
    """Return the reason as printed: the tests that failed, and the first line that says what is wrong.

    If it did not print one, another run in which the same test failed may have.
    """
    said = clip_middle(_FRAME_LINE.sub("", _SUMS_UP.sub("", _nearest_failure(run))), _FAILURE)
    by_summary = run.event.type is not EventType.TOOL_RESULT and (run.tested == "failed" or not said)
    summary = clip_line(_SUMS_UP.sub("", run.event.text) or run.event.text, _FAILURE) if by_summary else ""
    if (not said or said in summary) and (placed := _placed(run.said) or _placed_elsewhere(run, done)):
        said = "" if "panic: " in summary and not _SAYS_WHY.search(placed) else clip_line(placed, _FAILURE)
    return "; ".join(part for part in (summary, "" if said in summary else said) if part)


def _further(run: Run, most: int, length: int) -> str:
    """Return the second of several failures that a checker or compiler printed, up to ``most``, and how many more there are."""
    if run.tested == "failed" or not run.is_check:
        return ""
    by_signature = {signatures(line)[:1]: said for line in run.said.split("\n") if (said := first_failure(line))}
    by_beginning = {said[:length]: said for said in by_signature.values()}  # a line may be there in full, and cut
    found = [said for said in by_beginning.values() if not _EXIT_CODE.match(said)]
    shown = "; ".join(clip_line(said, length) for said in found[1:most])
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return f"; {shown}{more}" if shown else ""


def _nearest_failure(run: Run) -> str:
    """Return the first failure in the output; where failed tests are named below what they print, the last one before that."""
    named = run.said.find(_NAMED_BELOW) if run.tested == "failed" else -1
    if named >= 0:
        above = run.said[max(0, named - _ABOVE) : named].split("\n")
        return next((found for line in reversed(above) if (found := first_failure(line))), "")
    if run.tested == "failed" and _NAMED_BELOW in run.event.text:
        return ""
    if not run.failure or run.failure.endswith("task failed"):
        listed = [" ".join(each.group().split()) for each in _TO_FORMAT.finditer(run.said)]
        if listed:
            return max(listed, key=len)
    if not run.failure.endswith("task failed"):
        return run.failure
    messages = (first_failure(line) for line in run.said.split("\n"))
    return next((said for said in messages if said and not said.endswith("task failed")), run.failure)


def _placed(said: str) -> str:
    """Return the line that names a place in a file, if several do, one that says what is wrong."""
    found = [each.group() for each in _FILE_LINE.finditer(said) if not _OF_OTHERS.search(each.group())]
    return next((each for each in found if _SAYS_WHY.search(each)), found[0] if found else "")


def _placed_elsewhere(run: Run, done: Sequence[Run]) -> str:
    failed = _tests_named(run)
    others = (each for each in reversed(done) if each is not run and each.outcome == "failed" and failed & _tests_named(each))
    return next((placed for each in others if (placed := _placed(each.said))), "") if failed else ""


def _tests_named(run: Run) -> frozenset[str]:
    return frozenset("".join(found) for found in _TEST.findall(run.said)) if run.tested == "failed" else frozenset()


def _explained(run: Run, events: Sequence[Event]) -> tuple[Event, str] | None:
    """Return the agent's message that calls a failure older than its work, with that sentence."""
    for event in events[run.place + 1 : run.place + _EXPLAINED_WITHIN]:
        if event.type is EventType.ASSISTANT_MESSAGE and _SAID_TO_BE_OLD.search(event.text):
            sentence = next((each for each in _SENTENCES.split(event.text) if _SAID_TO_BE_OLD.search(each)), "")
            return event, sentence.strip()
        if event.type is EventType.USER_MESSAGE:
            return None
    return None


def _part_of(later: Run, failed: Run) -> bool:
    return bool(later.purposes & failed.purposes) and failed.is_check and makes_up(failed, later)


def _reported(
    events: Sequence[Event], done: Sequence[Run], made: Sequence[Commit], changes: Sequence[ChangedFile], failures: Sequence[Run]
) -> Iterator[BriefLine]:
    """Yield the last failure that a prompt reports, unless something shows that it is mended."""
    prompts = [(place, event) for place, event in enumerate(events) if event.type is EventType.USER_MESSAGE and event.text.strip()]
    until = len(events)
    for place, prompt in prompts[: -_REPORTS_BACK - 1 : -1]:
        is_a_task = len(prompt.text) > _A_REPORT and outline(prompt.text) is not None
        if not is_a_task and (report := reported(prompt.text)) is not None:
            changed_before_going_on = any(place < change.place < until and is_code(change) for change in changes)
            went_on = until < len(events) and changed_before_going_on
            since = [change for change in last_changes(changes) if change.place > place]
            tried = _tried(report, place, done)
            mended = any(any(place < change.place <= run.place and is_code(change) for change in changes) for run in tried)
            committed = any(commit.place > place for commit in made) or _merged(report, place, done)
            left_to_try = (went_on or committed) and not mended and _left_to_try(events, made, changes, place)
            if left_to_try or not (went_on or mended or committed or _is_seen(report, place, failures)):
                is_shown = prompt is prompts[-1][1] and len(prompt.text) <= 2 * _A_REPORT
                yield _reported_line(report, prompt, since, tried, _REPORT // 3 if is_shown else _REPORT, is_shown=is_shown)
            return
        if is_content(prompt.text):
            return
        if len(prompt.text.split(None, _WORDS_OF_A_REQUEST)) >= _WORDS_OF_A_REQUEST:
            until = place


def _left_to_try(events: Sequence[Event], made: Sequence[Commit], changes: Sequence[ChangedFile], place: int) -> bool:
    """Return whether the agent asked the person to try again after its last change, and has not changed anything since."""
    done = max((*(each.place for each in made), *(each.place for each in changes)), default=-1)
    return done > place and any(
        event.type is EventType.ASSISTANT_MESSAGE and _TRY_AGAIN.search(event.text[:_READ]) for event in events[done + 1 :]
    )


def _reported_line(
    report: Report, prompt: Event, since: Sequence[ChangedFile], tried: Sequence[Run], length: int, *, is_shown: bool
) -> BriefLine:
    by = "reported by the person" + (" in what was asked last" if is_shown and report.command else "")
    if report.command and not is_shown:
        by = f"in the person's output of `{clip_line(bare(report.command), SUBJECT)}`"
    changed = f"; changed since, and not seen to be tried: {names(since, FILES_CITED, parts=PATH_PARTS)}" if since else ""
    here = f"; `{typed(tried[-1].command)}` went well here, with nothing changed" if tried else ""
    failure = clip_middle(report.text, length)
    return cited(BriefPart.FAILED, f"{by}: {failure}{here or changed}", prompt, *(run.event for run in tried[-1:]))


def _tried(report: Report, place: int, done: Sequence[Run]) -> list[Run]:
    """Return the runs after a report that went well and try what it says fails."""
    purposes = purposes_of(report.command) if report.command else frozenset()
    kinds = _kinds(report)
    return [
        run
        for run in done
        if run.place > place
        and run.outcome == "ok"
        and (
            (purposes & run.purposes and (run.is_check or bare(run.command) == bare(report.command)))
            or (kinds and kinds <= run.kinds and not run.is_narrow)
        )
    ]


def _merged(report: Report, place: int, done: Sequence[Run]) -> bool:
    conflict = _CONFLICT.search(report.text) is not None
    return conflict and any(run.place > place and run.outcome == "ok" and run.purposes & _ENDS_A_CONFLICT for run in done)


def _is_seen(report: Report, place: int, failures: Sequence[Run]) -> bool:
    """Return whether the agent has seen the same fail since, which is reported already."""
    return any(run.place > place and (run.kinds & _kinds(report) or run.failure == report.text) for run in failures)


def _kinds(report: Report) -> frozenset[str]:
    return kinds_in(f"{report.command} {report.text}")
