"""How a session's work stands: which files it changed, what failed, what is to be verified, and the last stable point.

Also the lines of a resume brief that say so, each with the events that it rests on.
"""

import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import PurePosixPath, PureWindowsPath

from kite_memory.model.event import Event, EventType, evidence_reference
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip, clip_line, counted, end_of, outline
from kite_memory.text.error_signature import Report, is_content, reported
from kite_memory.text.shell import Write, writes
from kite_memory.timeline.runs import Commit, Run, bare, is_wider, makes_up, open_failures, passed_of, purposes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file with an action on it. ``path`` is relative to the session's folder if the file is inside it, ``whole`` is absolute.

    Both are empty where a command changed files that it does not name; ``action`` is then the command.
    """

    path: str
    action: str
    at: datetime
    evidence: str
    place: int
    whole: str = ""

    @property
    def name(self) -> str:
        return self.path or f"`{self.action}`"


_PROSE = frozenset({".md", ".mdx", ".txt", ".rst", ".adoc"})
_IT_CHANGED = lazy_regex(
    r"\b(?:fixed|(?:re)?formatted|changed|rewrote|updated) (?!0\b)\d{1,5} files?\b"
    r"|\b(?!0\b)\d{1,5} files? (?:were |was )?(?:fixed|(?:re)?formatted|changed|rewritten|updated)\b",
    re.IGNORECASE,
)
"""What a formatter prints if it changed something."""
_NOTHING_CHANGED = lazy_regex(r"^(?:Already up[ -]to[ -]date|Current branch \S{1,200} is up to date|Already on ')", re.MULTILINE)
_COULD_NOT = lazy_regex(r"^(?:sed|perl|mv|cp|rm|cat|tee|git|bash|zsh|sh|fatal|error|patch)\b.{0,80}: ", re.MULTILINE)
_GO_ON_IN_CONFLICT = lazy_regex(r"^(?:CONFLICT \(|Auto-merging )|Merge conflict in ", re.MULTILINE)


def changed_files(events: Sequence[Event], cwd: str) -> tuple[ChangedFile, ...]:
    """Return the files that the agent's tools changed, newest first, each once."""
    return last_changes(list(_by_tools(events, cwd)))


def all_changes(events: Sequence[Event], done: Sequence[Run], cwd: str) -> list[ChangedFile]:
    """Return every change in order, with those that the commands among ``done`` made."""
    known = {event.path for event in events if event.type is EventType.FILE_ACTION and event.path}
    return sorted((*_by_tools(events, cwd), *_by_commands(done, cwd, known)), key=lambda change: change.place)


def last_changes(found: Sequence[ChangedFile]) -> tuple[ChangedFile, ...]:
    """Return the last change of each file, newest first."""
    last: dict[tuple[str, str], ChangedFile] = {}
    for change in reversed(found):
        last.setdefault((change.whole, "" if change.path else change.action), change)
    return tuple(last.values())


def _by_tools(events: Sequence[Event], cwd: str) -> Iterator[ChangedFile]:
    for place, event in enumerate(events):
        if is_change(event):
            yield _change(event.path, event.text.partition(",")[0].strip()[:20] or "changed", event, place, cwd)


def _by_commands(done: Sequence[Run], cwd: str, known: Collection[str]) -> Iterator[ChangedFile]:
    for run in done:
        for write in writes(run.command):
            if _happened(write, run):
                yield _change(_meant(write.path, cwd, known), write.how, run.event, run.place, cwd)


def _meant(path: str, cwd: str, known: Collection[str]) -> str:
    """Return the known path that a relative one stands for: a shell stays in the folder that an earlier command went to."""
    if not path or path.startswith("/") or posixpath.join(cwd, path) in known:
        return path
    ending = [each for each in known if each.endswith(f"/{path}")]
    return ending[0] if len(ending) == 1 else path


def _change(path: str, action: str, event: Event, place: int, cwd: str) -> ChangedFile:
    whole = path if not path or PureWindowsPath(path).is_absolute() else posixpath.normpath(posixpath.join(cwd, path))
    shown = inside(whole, cwd) if path else ""
    return ChangedFile(path=shown, action=action, at=event.at, evidence=reference(event), place=place, whole=whole)


def _happened(write: Write, run: Run) -> bool:
    """Return whether a line that was run did this: of one that failed, what precedes its checks, and a merge with conflicts."""
    said = f"{run.said}\n{run.event.text}"
    if run.event.status in ("denied", "interrupted") or (not write.path and _NOTHING_CHANGED.search(said)):
        return False
    if write.formats and not _IT_CHANGED.search(said):
        return False
    if run.outcome != "failed":
        return True
    if not write.path:
        return bool(_GO_ON_IN_CONFLICT.search(said))
    return run.is_check and not _COULD_NOT.search(said)


def is_change(event: Event) -> bool:
    """Return whether the event is the change of a file by a tool."""
    done = event.type is EventType.FILE_ACTION and event.status != "failed"
    return done and bool(event.path) and not event.text.startswith("read")


def is_code(file: ChangedFile) -> bool:
    return PurePosixPath(file.path).suffix.lower() not in _PROSE


def inside(path: str, folder: str) -> str:
    """Return the path relative to the session's folder if it is inside it, else only its name."""
    for separator in "/\\":
        root = folder.rstrip("/\\") + separator
        if folder and path.startswith(root):
            return path[len(root) :]
    return (PureWindowsPath(path) if "\\" in path else PurePosixPath(path)).name


def reference(event: Event) -> str:
    return evidence_reference(event.provider, event.session, event.id)


class BriefPart(StrEnum):
    """Part of a brief, in the order of the brief."""

    DOING = "doing"
    NEXT = "next"
    CHANGED = "changed"
    FAILED = "failed"
    VERIFY = "verify"
    STABLE = "stable"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefLine:
    """A line of a brief. ``evidence`` are references as `model.event.evidence_reference` writes them, at least one.

    ``longer`` is what it says where there is room, the longest first.
    """

    part: BriefPart
    text: str
    evidence: tuple[str, ...]
    longer: tuple[str, ...] = ()


FILES_NAMED = 4
FILES_CITED = 2
COMMAND = 100


def cited(part: BriefPart, text: str, *events: Event) -> BriefLine:
    return BriefLine(part=part, text=text, evidence=tuple(dict.fromkeys(map(reference, events))))


def cited_files(
    part: BriefPart, what: str, files: Sequence[ChangedFile], *besides: Event, most: int = FILES_NAMED, parts: int = 0
) -> BriefLine:
    evidence = (*map(reference, besides), *(file.evidence for file in files[:FILES_CITED]))
    return BriefLine(part=part, text=f"{what}: {names(files, most, parts=parts)}", evidence=tuple(dict.fromkeys(evidence)))


def names(files: Sequence[ChangedFile], most: int, *, parts: int = 0) -> str:
    """Return the first names, and how many more there are; a command that changed files stands for them.

    Of a path, only the last ``parts`` are shown, if given.
    """
    found = list(
        dict.fromkeys(clip_line("/".join(file.name.split("/")[-parts:]) if file.path else file.name, COMMAND) for file in files)
    )
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def typed(command: str) -> str:
    """Return a command as it is shown: on one line, without what only shapes its output."""
    return clip_line(_CUT_OUTPUT.sub("", bare(command)), COMMAND) or "tests"


_CUT_OUTPUT = lazy_regex(r"(?:\s+2>&1)?\s*\|\s*(?:head|tail)(?:\s+-(?:n\s?)?\d{1,6})?(?=\s*(?:&&|;|$))")
NOTHING_PASSED = "no test or build was seen to pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stable:
    """The last moment at which tests passed, or a build if no test ever did.

    ``narrow`` means that only a part of the tests ran; ``whole`` then describes the last run of all, if there was one. ``mixed``
    means that another check of the same line failed. ``committed`` is the commit made of this state. ``files`` are those changed by
    then, ``failing`` the checks that failed then.
    """

    at: datetime
    command: str
    said: str
    evidence: str
    place: int
    files: tuple[ChangedFile, ...]
    commit: str = ""
    committed: Commit | None = None
    failing: tuple[str, ...] = ()
    tests: bool = True
    narrow: bool = False
    mixed: bool = False
    whole: str = ""
    whole_evidence: str = ""


_CHANGE_FILES = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch", "apply_diff", "replace", "write_file"})
_LATELY_EVENTS = 60
_FAILURES = 4
_CHECKS = 3
_LATELY = 25
"""Number of runs: another command that failed longer ago and was never tried again counts as given up."""
_NOT_LONG_AGO = 100
"""Number of runs: a check that was last made before them may belong to another task."""
_FAILURE, _SUBJECT, _REPORT, _VERDICT = 160, 80, 200, 120
_A_REPORT = 300
"""Longer prompts with headings or lists are tasks."""
_SAID_OF_TESTS = 40
_PATH_PARTS = 2
"""Parts of a path shown where it was named in full before."""
_REPORTS_BACK = 3
"""Number of prompts."""
_EXPLAINED_WITHIN = 40
"""Number of events."""
_WORDS_OF_A_REQUEST = 4
_FILE_LINE = lazy_regex(r"^\s{0,8}(?:at |--> )?[\w./@-]{1,200}\.\w{1,6}[:(]\d{1,6}\b.{0,200}", re.MULTILINE)
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
_KINDS_IN_WORDS = {
    "lint": lazy_regex(r"\blint", re.IGNORECASE),
    "tests": lazy_regex(r"\btests?\b|\bCI\b", re.IGNORECASE),
    "build": lazy_regex(r"\bbuild|\bcompil", re.IGNORECASE),
    "types": lazy_regex(r"\btype-?(?:check| error)", re.IGNORECASE),
}
_CONFLICT = lazy_regex(r"\bconflict", re.IGNORECASE)
_ENDS_A_CONFLICT = frozenset({"git merge", "git rebase", "git pull", "git cherry-pick", "git commit", "git revert"})


def failed_lines(
    events: Sequence[Event], done: Sequence[Run], made: Sequence[Commit], changes: Sequence[ChangedFile]
) -> Iterator[BriefLine]:
    """Yield open failures: of checks, as the person reported them, and recent ones of other commands.

    Each with what was changed since without a new try.
    """
    failures = open_failures(done)
    lately = done[-_LATELY].place if len(done) >= _LATELY else 0
    checks = sorted((run for run in failures if run.is_check), key=lambda run: "tests" not in run.kinds)
    others = [run for run in failures if not run.is_check and run.place >= lately and run.failure]
    files = last_changes(changes)
    for run in checks[:_FAILURES]:
        yield _failed_line(run, done, events, _code(files, since=run.place))
    yield from _reported(events, done, made, changes, checks)
    for run in others[: _FAILURES - len(checks)]:
        yield _failed_line(run, done, events, [])
    yield from _not_applied(events, done, made, changes)


def _not_applied(
    events: Sequence[Event], done: Sequence[Run], made: Sequence[Commit], changes: Sequence[ChangedFile]
) -> Iterator[BriefLine]:
    """Yield the last changes that a tool could not make, or the person did not let it make, and that were not made since.

    One is no longer missed after a commit, a check that went well, or a command that may have changed any file.
    """
    checked = (run.place for run in done if run.is_check and run.outcome == "ok")
    went_on = max(
        (*checked, *(commit.place for commit in made), *(change.place for change in changes if not change.path)), default=-1
    )
    since = max(went_on + 1, len(events) - _LATELY_EVENTS)
    known = {change.whole: change.place for change in changes if change.place >= since}
    for place in range(len(events) - 1, since - 1, -1):
        event = events[place]
        if event.type is EventType.USER_MESSAGE and event.text.strip():
            return
        if event.type is EventType.TOOL_RESULT and event.tool in _CHANGE_FILES:
            if event.status in ("failed", "denied") and event.path and place > known.get(event.path, -1):
                how = "was denied" if event.status == "denied" else "failed, and is not applied"
                said = f": {clip_line(event.text.partition(chr(10))[0], _SUBJECT)}" if event.status == "failed" else ""
                yield cited(
                    BriefPart.FAILED,
                    f"the last {event.tool} of {'/'.join(PurePosixPath(event.path).parts[-_PATH_PARTS:])} {how}{said}",
                    event,
                )
            known[event.path] = len(events)


def _failed_line(run: Run, done: Sequence[Run], events: Sequence[Event], since: Sequence[ChangedFile]) -> BriefLine:
    because = f": {why}" if (why := _why(run, done)) else ""
    parts = (each for each in reversed(done) if each.place > run.place and each.outcome == "ok" and _part_of(each, run))
    later = next(parts, None)
    partly = f" (only `{typed(later.command)}` has gone well since)" if later else ""
    unverified = f"; unverified: {names(since, FILES_CITED, parts=_PATH_PARTS)} changed since, run it again" if since else ""
    explained = _explained(run, events) if run.is_check else None
    verdict = f'; the agent: "{clip_line(explained[1], _VERDICT)}"' if explained else ""
    events_cited = (run.event, *((later.event,) if later else ()), *((explained[0],) if explained else ()))
    evidence = (*map(reference, events_cited), *(file.evidence for file in since[:1]))
    text = f"`{typed(run.command)}` failed{because}{partly}{unverified}{verdict}"
    return BriefLine(part=BriefPart.FAILED, text=text, evidence=tuple(dict.fromkeys(evidence)))


def _why(run: Run, done: Sequence[Run]) -> str:
    """Return the reason as printed: the tests that failed, and the first line that says what is wrong.

    If it did not print one, another run in which the same test failed may have.
    """
    said = clip_line(_SUMS_UP.sub("", run.failure), _FAILURE)
    by_summary = run.event.type is not EventType.TOOL_RESULT and (run.tested == "failed" or not said)
    summary = clip_line(_SUMS_UP.sub("", run.event.text) or run.event.text, _FAILURE) if by_summary else ""
    if (not said or said in summary) and (placed := _placed(run.said) or _placed_elsewhere(run, done)):
        said = "" if "panic: " in summary and not _SAYS_WHY.search(placed) else clip_line(placed, _FAILURE)
    return "; ".join(part for part in (summary, "" if said in summary else said) if part)


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
            if not (went_on or mended or committed or _is_seen(report, place, failures)):
                is_shown = prompt is prompts[-1][1] and len(prompt.text) <= _A_REPORT and not report.command
                yield _reported_line(report, prompt, since, tried, _REPORT // 2 if is_shown else _REPORT)
            return
        if is_content(prompt.text):
            return
        if len(prompt.text.split(None, _WORDS_OF_A_REQUEST)) >= _WORDS_OF_A_REQUEST:
            until = place


def _reported_line(report: Report, prompt: Event, since: Sequence[ChangedFile], tried: Sequence[Run], length: int) -> BriefLine:
    by = f"in the person's output of `{clip_line(bare(report.command), _SUBJECT)}`" if report.command else "reported by the person"
    changed = f"; changed since, and not seen to be tried: {names(since, FILES_CITED, parts=_PATH_PARTS)}" if since else ""
    here = f"; `{typed(tried[-1].command)}` went well here, with nothing changed" if tried else ""
    said = " ".join(report.text.split())
    failure = said if len(said) <= length else f"{clip(said, length // 2)} {end_of(said, length // 2)}"
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
    words = f"{report.command} {report.text}"
    return frozenset(kind for kind, pattern in _KINDS_IN_WORDS.items() if pattern.search(words))


def verify_lines(files: Sequence[ChangedFile], done: Sequence[Run], stable: Stable | None) -> Iterator[BriefLine]:
    """Yield checks that went well before something was changed, each with the command to run."""
    code = [file for file in files if is_code(file)]
    if not code:
        return
    checks = [run for run in done[-_NOT_LONG_AGO:] if run.is_check and run.outcome != "unknown"]
    tested = max((run.place for run in checks if run.tested == "ok" and run.outcome == "ok" and not run.is_narrow), default=-1)
    shown: set[str] = set()
    again: list[Run] = []
    changed = _code(files, since=stable.place) if stable is not None else []
    for run in reversed(checks):
        if run.purposes <= shown or any(later.place > run.place and _says_it_too(later, run) for later in checks):
            continue
        shown |= run.purposes
        if not _can_be_typed_again(run.command):
            continue
        known = max(run.place, tested) if run.only_builds else run.place
        since = _code(files, since=known)
        if run.outcome == "ok" and since and since == changed:
            again.append(run)
        elif run.outcome == "ok" and since:
            what = f"run `{typed(run.command)}`: it went well at {run.event.at:%m-%d %H:%M}, but not seen since these changed"
            yield cited_files(BriefPart.VERIFY, what, since, run.event, most=FILES_CITED, parts=_PATH_PARTS)
        if len(shown) >= _CHECKS:
            break
    if again:
        commands = " and ".join(f"`{typed(run.command)}`" for run in again)
        yield cited(
            BriefPart.VERIFY, f"run {commands} again: files changed since the last stable point", *(run.event for run in again)
        )
    if not any(run.is_check for run in done) and (named := [file for file in code if file.path]):
        yield cited_files(BriefPart.VERIFY, "nothing has been run that tests", named, most=FILES_CITED, parts=_PATH_PARTS)


def _says_it_too(later: Run, run: Run) -> bool:
    return makes_up(later, run) or (later.outcome == "ok" and is_wider(later, run))


def _can_be_typed_again(command: str) -> bool:
    return len(bare(command)) <= COMMAND and not any(sign in bare(command) for sign in (";", "\n", "<<"))


def last_stable(done: Sequence[Run], changes: Sequence[ChangedFile], made: Sequence[Commit]) -> Stable | None:
    """Return the last stable moment.

    A run of all tests is preferred to a later one of some of them, if no code was changed in between. Tests that passed count
    also where another check of the same line failed.
    """
    tested = [at for at, run in enumerate(done) if run.tested == "ok" and not run.measures and _its_tests_passed(run)]
    well = [at for at, run in enumerate(done) if run.outcome == "ok" and not run.measures]
    built = [at for at in well if {"build"} <= done[at].kinds <= {"build", "types"}]
    if not (tested or built):
        return None
    at = (tested or built)[-1]
    whole = next((each for each in reversed(tested) if not done[each].is_narrow), None)
    if done[at].is_narrow and whole is not None and not _code(_until(changes, done[at].place), since=done[whole].place):
        at = whole
    run = done[at]
    narrow = run.is_narrow
    of_all = done[whole] if narrow and whole is not None else None
    return Stable(
        at=run.event.at,
        command=run.command,
        said=clip_line(run.said if run.outcome == "ok" else passed_of(run.said), _SUBJECT),
        evidence=reference(run.event),
        place=run.place,
        files=_until(changes, run.place),
        commit=next((commit.hash for commit in reversed(made) if commit.place < run.place), ""),
        committed=_commit_of(run.place, changes, made),
        failing=tuple(typed(failed.command) for failed in open_failures(done[: at + 1]) if failed.is_check and failed is not run),
        tests=bool(tested),
        narrow=narrow,
        mixed=run.outcome != "ok",
        whole=f"`{typed(of_all.command)}` at {of_all.event.at:%m-%d %H:%M}" if of_all is not None else "",
        whole_evidence=reference(of_all.event) if of_all is not None else "",
    )


def _commit_of(place: int, changes: Sequence[ChangedFile], made: Sequence[Commit]) -> Commit | None:
    """Return the last commit of the state at a place, with no code changed in between: one after it, else one before it."""
    code = [change.place for change in changes if is_code(change)]
    earlier, later = max((at for at in code if at <= place), default=-1), min((at for at in code if at > place), default=None)
    after = [each for each in made if each.place > place and (later is None or each.place < later)]
    before = [each for each in made if earlier <= each.place < place]
    return next(reversed(after or before), None)


def _its_tests_passed(run: Run) -> bool:
    return run.outcome == "ok" or (run.outcome == "failed" and bool(passed_of(run.said)) and run.kinds > {"tests"})


def _until(changes: Sequence[ChangedFile], place: int) -> tuple[ChangedFile, ...]:
    return last_changes([change for change in changes if change.place <= place])


def _code(files: Sequence[ChangedFile], *, since: int) -> list[ChangedFile]:
    return [file for file in files if file.place > since and is_code(file)]


def stable_lines(stable: Stable | None, files: Sequence[ChangedFile], done: Sequence[Run]) -> Iterator[BriefLine]:
    if stable is None:
        if checks := [run for run in done if run.is_check]:
            yield cited(BriefPart.STABLE, NOTHING_PASSED, checks[-1].event)
        return
    of_state = stable.committed
    changed = [file for file in files if file.place > max(stable.place, of_state.place if of_state is not None else -1)]
    commit = f", after commit {stable.commit[:12]}" if stable.commit else ""
    if of_state is not None:
        commit = f", {'committed as' if of_state.place > stable.place else 'at commit'} {of_state.hash[:12]}"
    named = [file for file in stable.files if file.path]
    commands = names([file for file in stable.files if not file.path], 1)
    by_then = " and ".join(filter(None, (counted(len(named), "file") if named else "", commands)))
    with_files = f"; {by_then} changed by then" if by_then and of_state is None else ""
    fail_now = {typed(run.command) for run in open_failures(done)}
    failing = next((f"; `{clip_line(each, _SAID_OF_TESTS)}` still failed" for each in stable.failing if each in fail_now), "")
    command, said = typed(stable.command), f" ({stable.said})" if 0 < len(stable.said) <= _SAID_OF_TESTS else ""
    passed = (
        f"{'the tests of ' if stable.mixed else ''}`{command}` passed{said}"
        if stable.tests
        else f"`{command}` built; no test was seen to pass"
    )
    if stable.narrow and stable.tests:
        passed += f", a part of the tests; all of them last: {stable.whole}" if stable.whole else ", a part of the tests"
    clean = _clean_since(stable, files, done)
    checked = f"; {' and '.join(f'`{typed(run.command)}`' for run in clean)} went well after that" if clean else ""
    text, *longer = dict.fromkeys(
        f"{stable.at:%Y-%m-%d %H:%M}{commit}: {passed}{with_files}"
        f"{f', since then {names(changed, most, parts=_PATH_PARTS)}' if changed else ', nothing since'}{checked}{failing}"
        for most in (FILES_CITED, 3 * FILES_CITED)
    )
    seen = (reference(run.event) for run in clean)
    evidence = (stable.evidence, stable.whole_evidence, *(file.evidence for file in (changed or stable.files)[:1]), *seen)
    known = tuple(dict.fromkeys(filter(None, evidence)))
    yield BriefLine(part=BriefPart.STABLE, text=text, evidence=known, longer=tuple(longer))


def _clean_since(stable: Stable, files: Sequence[ChangedFile], done: Sequence[Run]) -> list[Run]:
    """Return the last lint and type check that went well after the tests, with no code changed since."""
    changed = max((file.place for file in files if is_code(file)), default=-1)
    last: dict[frozenset[str], Run] = {}
    for run in done:
        if (
            run.place > stable.place
            and run.place >= changed
            and run.outcome == "ok"
            and run.kinds
            and run.kinds <= {"lint", "types"}
        ):
            last[run.kinds] = run
    return list(last.values())[-2:]
