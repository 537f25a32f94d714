"""How a session's work stands: which files it changed, what is to be verified, and the last stable point.

Also the lines of a resume brief that say so, each with the events that it rests on.
"""

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import PurePath, PurePosixPath, PureWindowsPath

from kite_memory.model.event import Event, EventType, opens_turn
from kite_memory.text import lazy_regex
from kite_memory.text.display import NO_CHANGE, clip_line, counted, first_of, outline
from kite_memory.text.shell import Write, writes
from kite_memory.timeline.runs import Commit, Run, bare, is_wider, kinds_in, makes_up, open_failures, passed_of


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
    r"|\b(?!0\b)\d{1,5} files? (?:were |was )?(?:fixed|(?:re)?formatted|changed|rewritten|updated)\b|^\S{1,200} \d{1,6}ms$",
    re.IGNORECASE | re.MULTILINE,
)
"""What a formatter prints if it changed something."""
_LEFT_ALONE = lazy_regex(
    r"\bNo (?:fixes applied|changes|files? (?:changed|formatted))|\bAll (?:checks passed|matched files)"
    r"|\bnothing to (?:fix|format)|\b(?:left unchanged|already formatted)\b|\b0 files? (?:changed|(?:re)?formatted|fixed)"
    r"|\(unchanged\)$",
    re.IGNORECASE | re.MULTILINE,
)
"""What one prints that changed nothing; others print nothing in either case."""
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
    return ChangedFile(path=shown, action=action, at=event.at, evidence=event.reference, place=place, whole=whole)


def _happened(write: Write, run: Run) -> bool:
    """Return whether a line that was run did this: of one that failed, what precedes its checks, and a merge with conflicts."""
    said = f"{run.said}\n{run.event.text}"
    if run.event.status in ("denied", "interrupted") or (not write.path and _NOTHING_CHANGED.search(said)):
        return False
    if write.formats and not _IT_CHANGED.search(said) and _LEFT_ALONE.search(said):
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

    ``longer`` is what it says where there is room, the longest first. ``explains`` means that the lines before it in its part say
    too little without it.
    """

    part: BriefPart
    text: str
    evidence: tuple[str, ...]
    longer: tuple[str, ...] = ()
    explains: bool = False


FILES_NAMED = 4
FILES_CITED = 2
COMMAND, SUBJECT = 100, 80
PATH_PARTS = 2
"""Parts of a path shown where it was named in full before."""


ANSWERED = "the agent answered; it is your turn"
"""Goes after all that is urgent."""
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
_ROOM_FOR_OTHERS, _LITTLE_ROOM, _ROOM_FOR_A_PROMPT, _ROOM_FOR_THE_TASK = 220, 100, 150, 620
_LEAST = frozenset({BriefPart.DOING, BriefPart.NEXT, BriefPart.FAILED})
"""What a brief is of no use without."""


def fitted(lines: Sequence[BriefLine], *, tokens: int, cost: Callable[[BriefLine], int]) -> tuple[BriefLine, ...]:
    """Return as many lines as fit in ``tokens``, in their order.

    The weightiest of every part goes first, then more of the first, what failed and what is next, the longer texts, and the others
    in turn.
    """
    by_part = {part: [line for line in lines if line.part is part] for part in _MATTERS}
    turns = [
        [of_part[turn] for of_part in by_part.values() if turn < len(of_part)] for turn in range(max(map(len, by_part.values())))
    ]
    failed = by_part[BriefPart.FAILED]
    first = [of_part[0] for of_part in by_part.values() if of_part and of_part[0].text != ANSWERED]
    then = by_part[BriefPart.NEXT]
    urgent = (*failed[:1], *then[1:2], *failed[1:2], *by_part[BriefPart.DOING][1:2], *failed[2:], *then)
    longer = [(line, replace(line, text=text)) for line in lines for text in line.longer]
    fuller = [
        (line, replace(line, text=text))
        for line in first[:1]
        for at, text in enumerate(reversed(line.longer))
        if at == 0 or len(text) <= _ROOM_FOR_THE_TASK
    ]
    whole_or_shorter = [(line, shown) for line in first for shown in (line, *_without_clauses(line))]
    least = [each for each in whole_or_shorter if each[0].part in _LEAST]
    stable = [each for each in whole_or_shorter if each[0].part is BriefPart.STABLE]
    longest = [[(line, replace(line, text=text)) for text in line.longer] for line in then[:2]]
    in_full, more = (longest[at] if at < len(longest) else [] for at in (0, 1))
    rest = [each for each in whole_or_shorter if each[0].part not in _LEAST]
    before = [(line, shown) for line in by_part[BriefPart.DOING] if line.explains for shown in (_cut(line), line)]
    begun = [(line, shown) for line in then[1:] for shown in (*_not_too_long(line), line)]
    soon = [(line, line) for line in (*then[1:2], *failed[1:2])]
    waiting = [(line, line) for line in then if line.explains]
    changed = [(line, line) for line in by_part[BriefPart.CHANGED][:1] if len(line.text) <= _LITTLE_ROOM]
    so_far = (*least, *stable[-1:], *before, *waiting, *begun, *soon, *changed)
    shown_first = (*so_far, *fuller, *in_full, *rest, *more, *((line, line) for line in urgent))
    kept: dict[BriefLine, BriefLine] = {}
    others = [(line, line) for turn in turns for line in turn]
    for only_kept, shown_now in ((False, shown_first), (True, longer), (False, others), (True, longer)):
        for line, shown in shown_now:
            if len(shown.text) <= len(kept[line].text) if line in kept else only_kept:
                continue
            needed = cost(shown) - (cost(kept[line]) if line in kept else 0)
            if needed <= tokens:
                tokens -= needed
                kept[line] = shown
    return tuple(kept[line] for line in lines if line in kept)


def _not_too_long(line: BriefLine) -> Iterator[BriefLine]:
    """Yield the line with the longest text that leaves room for others."""
    fitting = [text for text in line.longer if len(text) <= _ROOM_FOR_OTHERS]
    yield from (replace(line, text=text) for text in fitting[:1])


def _cut(line: BriefLine) -> BriefLine:
    """Return the line with the end of its quotation left out if it is long."""
    is_long = len(line.text) > _ROOM_FOR_A_PROMPT and line.text.endswith('"')
    return replace(line, text=clip_line(line.text, _ROOM_FOR_A_PROMPT - 1) + '"') if is_long else line


def _without_clauses(line: BriefLine) -> Iterator[BriefLine]:
    """Yield the line of the last stable point without its last clause, without its last two, and so on."""
    text = line.text if line.part is BriefPart.STABLE else ""
    while "; " in text:
        text = text.rpartition("; ")[0]
        if text.count("`") % 2 == 0:
            yield replace(line, text=text, longer=())


def cited(part: BriefPart, text: str, *events: Event) -> BriefLine:
    return BriefLine(part=part, text=text, evidence=tuple(dict.fromkeys(event.reference for event in events)))


def cited_in_lengths(part: BriefPart, texts: Iterable[str], *events: Event) -> BriefLine:
    """Return a line that says the first of the texts, and the others where there is room."""
    short, *longer = dict.fromkeys(texts)
    return replace(cited(part, short, *events), longer=tuple(longer))


def cited_files(
    part: BriefPart, what: str, files: Sequence[ChangedFile], *besides: Event, most: int = FILES_NAMED, parts: int = 0
) -> BriefLine:
    evidence = (*(event.reference for event in besides), *(file.evidence for file in files[:FILES_CITED]))
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


def typed(command: str, length: int = COMMAND) -> str:
    """Return a command as it is shown: on one line, without what only shapes its output."""
    return clip_line(_CUT_OUTPUT.sub("", bare(command)), length) or "tests"


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


_CHECKS = 3
_NOT_LONG_AGO = 100
"""Number of runs: a check that was last made before them may belong to another task."""
_SAID_OF_TESTS = 40
_INLINE = lazy_regex(r"\b(?:python[\d.]*|node|perl|ruby|deno|php)\s+(?:-\w{0,4}[cer]\b|--eval\b|-\s)|<<|\s-i\b")
"""A program that is given in the line, not in a file."""
_LONG_PLAN = 220
_BY_HAND = lazy_regex(r"\b(?:manual\w*|visual\w*|by hand|open|navigate|click|load|browser)\b", re.IGNORECASE)
A_TASK = 1_200
"""A prompt of as many characters describes a task, which later prompts may be about."""
_STEP_LEFT = (140, 280, 200)
_FILE_NAMED = lazy_regex(r"[\w./@-]{1,120}\.[A-Za-z]\w{0,5}\b")
_EXECUTES = lazy_regex(
    r"\b(?:python[\d.]*|py|node|deno|bun|tsx|ts-node|ruby|perl|php|bash|zsh|sh|pwsh|powershell|go run|java|Rscript)\b|\./"
)


def verify_lines(files: Sequence[ChangedFile], done: Sequence[Run], stable: Stable | None) -> Iterator[BriefLine]:
    """Yield checks that went well before something was changed, each with the command to run."""
    code = [file for file in files if is_code(file)]
    if not code:
        return
    checks = [run for run in done[-_NOT_LONG_AGO:] if run.is_check and run.outcome != "unknown"]
    tested = max((run.place for run in checks if run.tested == "ok" and run.outcome == "ok" and not run.is_narrow), default=-1)
    shown: set[str] = set()
    again: list[Run] = []
    changed = code_since(files, since=stable.place) if stable is not None else []
    for run in reversed(checks):
        if run.purposes <= shown or any(later.place > run.place and _says_it_too(later, run) for later in checks):
            continue
        shown |= run.purposes
        if not _can_be_typed_again(run.command):
            continue
        known = max(run.place, tested) if run.only_builds else run.place
        since = code_since(files, since=known)
        if run.outcome == "ok" and since and since == changed:
            again.append(run)
        elif run.outcome == "ok" and since:
            what = f"run `{typed(run.command)}`: it went well at {run.event.at:%m-%d %H:%M}, but not seen since these changed"
            yield cited_files(BriefPart.VERIFY, what, since, run.event, most=FILES_CITED, parts=PATH_PARTS)
        if len(shown) >= _CHECKS:
            break
    if again:
        commands = " and ".join(f"`{typed(run.command)}`" for run in again)
        yield cited(
            BriefPart.VERIFY, f"run {commands} again: files changed since the last stable point", *(run.event for run in again)
        )
    by_hand = [file for file in code if file.path and not file.action.startswith("changed by ")]
    untried = [file for file in by_hand if _ran_itself(file, done) is None]
    lately = done[-_NOT_LONG_AGO].place if len(done) >= _NOT_LONG_AGO else -1
    if not any(run.is_check for run in done) and (named := [file for file in untried if file.place > lately]):
        yield cited_files(BriefPart.VERIFY, "nothing has been run that tests", named, most=FILES_CITED, parts=PATH_PARTS)


def _ran_itself(file: ChangedFile, done: Sequence[Run]) -> Run | None:
    """Return the last run of the file itself since it was changed, such as of a script, if it went well."""
    name = re.compile(rf"(?<![\w.-]){re.escape(PurePosixPath(file.path).name)}(?![\w.-])")
    since = (run for run in reversed(done) if run.place > file.place and run.outcome == "ok")
    executes = (run for run in since if run.purposes and _EXECUTES.search(run.command) and not _INLINE.search(run.command))
    return next((run for run in executes if name.search(run.command)), None)


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
    if done[at].is_narrow and whole is not None and not code_since(_until(changes, done[at].place), since=done[whole].place):
        at = whole
    run = done[at]
    narrow = run.is_narrow
    of_all = done[whole] if narrow and whole is not None else None
    return Stable(
        at=run.event.at,
        command=run.command,
        said=clip_line(run.said if run.outcome == "ok" else passed_of(run.said), SUBJECT),
        evidence=run.event.reference,
        place=run.place,
        files=_until(changes, run.place),
        commit=next((commit.hash for commit in reversed(made) if commit.place < run.place), ""),
        committed=_commit_of(run.place, changes, made),
        failing=tuple(typed(failed.command) for failed in open_failures(done[: at + 1]) if failed.is_check and failed is not run),
        tests=bool(tested),
        narrow=narrow,
        mixed=run.outcome != "ok",
        whole=f"`{typed(of_all.command)}` at {of_all.event.at:%m-%d %H:%M}" if of_all is not None else "",
        whole_evidence=of_all.event.reference if of_all is not None else "",
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


def code_since(files: Sequence[ChangedFile], *, since: int) -> list[ChangedFile]:
    return [file for file in files if file.place > since and is_code(file)]


def stable_lines(stable: Stable | None, files: Sequence[ChangedFile], done: Sequence[Run]) -> Iterator[BriefLine]:
    if stable is None:
        ran = max(
            (run for file in files if file.path and (run := _ran_itself(file, done))), key=lambda run: run.place, default=None
        )
        checks = [run for run in done if run.is_check]
        if ran is not None:
            yield cited(
                BriefPart.STABLE,
                f"{NOTHING_PASSED}; `{typed(ran.command)}` ran without an error {ran.event.at:%m-%d %H:%M}",
                ran.event,
            )
        elif clean := _clean_since(-1, files, done):
            well = " and ".join(f"`{typed(run.command)}`" for run in clean)
            yield cited(BriefPart.STABLE, f"{NOTHING_PASSED}; {well} went well", *(run.event for run in clean))
        elif checks:
            yield cited(BriefPart.STABLE, NOTHING_PASSED, checks[-1].event)
        return
    of_state = stable.committed
    changed = [file for file in files if file.place > max(stable.place, of_state.place if of_state is not None else -1)]
    commit = f", after commit {stable.commit[:12]}" if stable.commit else ""
    if of_state is not None:
        commit = f", {'committed as' if of_state.place > stable.place else 'at commit'} {of_state.hash[:12]}"
    named = [file for file in stable.files if file.path]
    commands = names([file for file in stable.files if not file.path], 1)
    of_them = names(named, FILES_CITED, parts=PATH_PARTS) if len(named) <= FILES_CITED else counted(len(named), "file")
    by_then = " and ".join(filter(None, (of_them, commands)))
    with_files = f"; {by_then} changed by then" if by_then and of_state is None else ""
    fail_now = {typed(run.command) for run in open_failures(done)}
    failing = next((f"; `{clip_line(each, _SAID_OF_TESTS)}` still failed" for each in stable.failing if each in fail_now), "")
    command, said = typed(stable.command), f" ({stable.said})" if 0 < len(stable.said) <= _SAID_OF_TESTS else ""
    passed = (
        f"{'the tests of ' if stable.mixed else ''}`{command}` passed{said}"
        if stable.tests
        else f"`{command}` built; no test was seen to pass"
    )
    of_all = ""
    if stable.narrow and stable.tests:
        passed += ", a part of the tests"
        of_all = f"; all of them last: {stable.whole}" if stable.whole else ""
    clean = _clean_since(stable.place, files, done)
    checked = f"; {' and '.join(f'`{typed(run.command)}`' for run in clean)} went well after that" if clean else ""
    text, *longer = dict.fromkeys(
        f"{stable.at:%Y-%m-%d %H:%M}{commit}: {passed}"
        f"{f', since then {names(changed, most, parts=PATH_PARTS)}' if changed else ', nothing since'}"
        f"{of_all}{with_files}{checked}{failing}"
        for most in (FILES_CITED, 3 * FILES_CITED)
    )
    seen = (run.event.reference for run in clean)
    evidence = (stable.evidence, stable.whole_evidence, *(file.evidence for file in (changed or stable.files)[:1]), *seen)
    known = tuple(dict.fromkeys(filter(None, evidence)))
    yield BriefLine(part=BriefPart.STABLE, text=text, evidence=known, longer=tuple(longer))


def changes_files(run: Run) -> bool:
    """Return whether a run was to change what it checks, such as a formatter."""
    return any(write.formats for write in writes(run.command))


def _clean_since(place: int, files: Sequence[ChangedFile], done: Sequence[Run]) -> list[Run]:
    """Return the last lint and type check that went well after a place, with no code changed since."""
    changed = max((file.place for file in files if is_code(file)), default=-1)
    last: dict[frozenset[str], Run] = {}
    for run in done:
        if (
            run.place > place
            and run.place >= changed
            and run.outcome == "ok"
            and not changes_files(run)
            and run.kinds
            and run.kinds <= {"lint", "types"}
        ):
            last[run.kinds] = run
    return list(last.values())[-2:]


def changed_lines(files: Sequence[ChangedFile], made: Sequence[Commit]) -> Iterator[BriefLine]:
    committed = made[-1].place if made else -1
    since = [file for file in files if file.place > committed]
    when = " since the last commit" if made else ""
    for action, some in _by_action([file for file in since if file.path]):
        whole, short = (cited_files(BriefPart.CHANGED, f"{action}{when}", some, parts=parts) for parts in (0, PATH_PARTS))
        yield replace(short, longer=(whole.text,) if whole.text != short.text else ())
    if by_commands := [file for file in since if not file.path]:
        yield cited_files(BriefPart.CHANGED, f"files changed by commands{when}", by_commands)
    if made:
        yield cited(
            BriefPart.CHANGED, f"committed last: {clip_line(made[-1].subject, SUBJECT)} ({made[-1].hash[:12]})", made[-1].event
        )
        if before := [file for file in files if file.place <= committed and file.path]:
            yield cited_files(BriefPart.CHANGED, "changed up to that commit", before)


def _by_action(files: Sequence[ChangedFile]) -> list[tuple[str, list[ChangedFile]]]:
    grouped: dict[str, list[ChangedFile]] = {}
    for file in files:
        grouped.setdefault(file.action, []).append(file)
    return list(grouped.items())


def planned_checks(events: Sequence[Event], done: Sequence[Run]) -> Iterator[BriefLine]:
    """Yield how the last prompt, a plan, is to be verified, without the checks that went well since."""
    asked = max((place for place, event in enumerate(events) if opens_turn(event)), default=None)
    found = outline(events[asked].text) if asked is not None and len(events[asked].text) >= _LONG_PLAN else None
    if asked is None or found is None or not found.checks:
        return
    well = {kind for run in done if run.place > asked and run.outcome == "ok" for kind in run.kinds}
    left = [check for check in found.checks if not kinds_in(check) or not kinds_in(check) <= well or _BY_HAND.search(check)]
    if left:
        checks = "; ".join(clip_line(check, SUBJECT) for check in left[:_CHECKS])
        yield cited(BriefPart.VERIFY, f"as the plan says: {checks}", events[asked])


def steps_left(events: Sequence[Event], files: Sequence[ChangedFile]) -> Iterator[BriefLine]:
    """Yield the steps of the plan in hand that name a file not changed since, and those after the last that does not."""
    asked = next((event for event in reversed(events) if opens_turn(event)), None)
    found = outline(asked.text) if asked is not None and len(asked.text) >= A_TASK else None
    if asked is None or found is None:
        return
    changed = {PurePath(file.path).name.lower() for file in files if file.path and file.at >= asked.at}
    named = [{PurePath(name).name.lower() for name in _FILE_NAMED.findall(step)} for step in found.steps]
    begun = max((at for at, names in enumerate(named) if names & changed), default=None)
    if begun is None:
        return
    left = [
        (at + 1, step)
        for at, (step, names) in enumerate(zip(found.steps, named, strict=True))
        if ((names and not names & changed) or at > begun) and not NO_CHANGE.search(step)
    ]
    if left:
        shown = (first_of([f"({at}) {clip_line(step, most)}" for at, step in left], _CHECKS) for most in _STEP_LEFT)
        yield cited_in_lengths(BriefPart.NEXT, (f"left of the plan, by the files changed so far: {each}" for each in shown), asked)
