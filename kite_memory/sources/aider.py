"""Aider: find chat histories in known projects, divide them into blocks, and read these from a cursor as events."""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import orjson

from kite_memory.model.event import Cursor, Event, EventType, Problem, ReadResult, Session
from kite_memory.projects import project_of, repository_of
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.event_builder import DETAIL_LIMIT, EventBuilder, OpenCall, OpenCalls, Toolbox
from kite_memory.sources.common.jsonl import LINE_LIMIT, AppendOnlyFile
from kite_memory.sources.common.line_source import EVENTS_AT_ONCE, PROBLEMS_AT_ONCE, read_growing, result_up_to, starting_point
from kite_memory.sources.common.tool_text import COMMAND_LIMIT, PATH_LIMIT, digest, shortened
from kite_memory.system.git import Git, GitFailed
from kite_memory.system.private_files import is_file, is_text, stamp_of
from kite_memory.text import lazy_regex

HEADER = b"# aider chat started at "
_SAID, _PRINTED = b"####", b">"
_MARK = b"  "
_FENCES = (b"```", b"~~~")
_UNMISTAKABLE = re.compile(
    rb"> (?:Tokens: |Applied edit to |Commit [0-9a-f]{7}|\^C|litellm\.|Retrying in |Add file to the chat\?|Aider v\d"
    rb"|The LLM did not conform|Only \d{1,4} reflections allowed|Model \S{1,100} has hit a token limit)"
)
"""Lines that Aider prints after an answer, even after one that was cut off within a code block, and when it starts."""
_OWN = re.compile(
    _UNMISTAKABLE.pattern + rb"|> (?:No files edited|Cost: |Did not apply edit to |Committing .{1,400} before applying edits"
    rb"|Creating empty file |Skipping edits to |Failed to apply edit to |Allow edits to file that|Create new file\?"
    rb"|Edit the files\?|Attempt to fix (?:lint|test) errors\?"
    rb"|Add (?:URL|command output|[\d.]{1,12}k? tokens of command output) to the chat\?"
    rb"|Run shell commands?\?|Added .{1,400} to the chat|Dropping .{1,400} from the chat|You can use /undo |Unable to commit: "
    rb"|Empty response received from LLM|#? ?\d{1,4} SEARCH/REPLACE block|Warning: it's best to only add files"
    rb"|The API provider|Your estimated chat context of |Finished summarizing chat history|https://aider\.chat/)"
)
"""Lines of Aider's own after an answer; within a code block most of them may be the agent's."""
_REPORTS = re.compile(rb"> (?:Tokens: |Aider v(?:[1-9]|0\.(?:4[6-9]|[5-9]\d|\d{3})\.))")
"""What only versions print that report the tokens after every answer."""
_RUNS = re.compile(rb"#### (?:/(?:run|test|git) |!)")
"""Start of a user's line that runs a command, whose output follows."""

Kind = Literal["run", "said", "printed", "answer", "foreign", "blank"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryBlock:
    """A block of a history: the bytes ``[start, end)`` without their last newline. ``foreign`` is text before the first run."""

    kind: Kind
    start: int
    end: int
    lines: tuple[bytes, ...]


@dataclass(slots=True)
class HistoryPlace:
    """State of a history before a block, needed to classify the next one.

    ``marked`` means that lines in this file end with blanks; tools that strip them remove these marks. ``after_answer`` means that
    Aider has printed no line of its own since: until then a heading is the agent's if ``reports``, which means that Aider's version
    prints such a line after every answer. ``gathers`` means that the output of the user's command may follow, whose lines belong
    together.
    """

    in_run: bool = False
    marked: bool = False
    after_answer: bool = False
    gathers: bool = False
    reports: bool = False


def blocks(data: bytes, position: int, place: HistoryPlace, *, forced: bool = False) -> Iterator[HistoryBlock]:
    """Yield every complete block in ``data``, whole lines that start at ``position``.

    ``place`` moves past a block when the next one is requested. With ``forced`` the last block counts as complete, too.
    """
    lines = data.split(b"\n")
    at = 0
    while at < len(lines):
        line = lines[at].rstrip(b"\r")
        kind = _kind(line, place)
        end = _end(lines, at, kind, place)
        if end is None and not forced:
            return
        taken = lines[at : len(lines) if end is None else end]
        size = sum(map(len, taken)) + len(taken)
        yield HistoryBlock(kind=kind, start=position, end=position + size - 1, lines=tuple(each.rstrip(b"\r") for each in taken))
        _move(place, kind, line)
        position += size
        at += len(taken)


def _kind(line: bytes, place: HistoryPlace) -> Kind:
    if not line.strip():
        return "blank"
    if line.startswith(HEADER):
        return "run"
    if not place.in_run:
        return "foreign"
    if _begins(_SAID, line) and (
        not (place.reports and place.after_answer) if _marked(line) else not (place.marked or place.after_answer)
    ):
        return "said"
    if _begins(_PRINTED, line) and (_marked(line) or not place.marked or not place.after_answer):
        return "printed"
    return "answer"


def _move(place: HistoryPlace, kind: Kind, line: bytes) -> None:
    match kind:
        case "blank":
            place.gathers = False
        case "run":
            place.in_run, place.marked, place.gathers = True, False, False
        case _:
            place.marked |= kind in ("said", "printed") and _marked(line)
            place.reports |= kind == "printed" and _REPORTS.match(line) is not None
            place.after_answer = kind == "answer" or (place.after_answer and place.reports and not _OWN.match(line))
            place.gathers = kind == "said" and _RUNS.match(line) is not None


def _end(lines: list[bytes], at: int, kind: Kind, place: HistoryPlace) -> int | None:
    """Return the index of the line after the block that starts with line ``at``; ``None`` while that is unknown."""
    match kind:
        case "run" | "foreign" | "blank":
            return at + 1
        case "printed" if place.gathers:
            return next((index for index in range(at + 1, len(lines)) if not _begins(_PRINTED, lines[index])), None)
        case "printed" if place.marked and not _marked(lines[at]):
            return _end_of_output(lines, at)
        case "printed":
            return at + 1
        case "said":
            return next((index for index in range(at + 1, len(lines)) if not _begins(_SAID, lines[index])), None)
        case _:
            return _end_of_answer(lines, at, place)


def _end_of_output(lines: list[bytes], at: int) -> int | None:
    """Return the index after output of several lines, which has its mark only at its start and its blanks only at its end."""
    for index in range(at + 1, len(lines)):
        line = lines[index]
        if line.startswith(HEADER) or (_begins(_SAID, line) and _marked(line)):
            return index
        if _marked(line):
            return index + 1
    return None


def _end_of_answer(lines: list[bytes], at: int, place: HistoryPlace) -> int | None:
    """Return the end of an answer, without the blank lines after it."""
    fence = b""
    inside = HistoryPlace(in_run=True, marked=place.marked, after_answer=True, reports=place.reports)
    full = at + 1
    for index in range(at, len(lines)):
        line = lines[index].rstrip(b"\r")
        if line.startswith(HEADER):
            return full
        if fence:
            if _UNMISTAKABLE.match(line) and (_marked(line) or not place.marked):
                return full
            fence = b"" if line.startswith(fence) and not line.strip(fence[:1] + b" ") else fence
        elif line.startswith(_FENCES):
            fence = line[: len(line) - len(line.lstrip(line[:1]))]
        elif index > at and _kind(line, inside) in ("said", "printed"):
            return full
        if line.strip():
            full = index + 1
    return None


def _begins(sign: bytes, line: bytes) -> bool:
    return line.startswith(sign + b" ") or line.rstrip() == sign


def _marked(line: bytes) -> bool:
    return line.rstrip(b"\r").endswith(_MARK)


PROVIDER = "aider"

_VERSION = 2
_EPOCH = datetime.fromtimestamp(0, UTC)

_SHELL = "run"
_EDITOR = "edit"
_DOCUMENT = "history"
TOOLS = Toolbox(shells=frozenset({_SHELL}))


@dataclass(slots=True, kw_only=True)
class AiderRun:
    """State of a cursor: the current run of Aider. ``began`` is the position of its header.

    Text before ``foreign_to`` was not observed while it was written; -1 while that is unknown. ``seen`` is the Unix time of the
    first read of the file.
    """

    session: str = ""
    started: datetime = _EPOCH
    began: int = 0
    ordinal: int = 0
    reported: bool = False
    foreign_to: int = -1
    seen: float = 0.0
    place: HistoryPlace = field(default_factory=HistoryPlace)
    calls: OpenCalls = field(default_factory=OpenCalls)

    def to_carry(self) -> str:
        return orjson.dumps(
            {
                "v": _VERSION,
                "session": self.session,
                "started": self.started,
                "began": self.began,
                "ordinal": self.ordinal,
                "told": self.reported,
                "foreign_to": self.foreign_to,
                "seen": self.seen,
                "place": astuple(self.place),
                "calls": self.calls.to_carry(),
            }
        ).decode()

    @staticmethod
    def from_carry(carry: str) -> "AiderRun | None":
        """Parse what `to_carry` returned; return ``None`` if another version wrote it."""
        try:
            known: dict[str, Any] = orjson.loads(carry)
            if known["v"] != _VERSION:
                return None
            return AiderRun(
                session=known["session"],
                started=datetime.fromisoformat(known["started"]),
                began=known["began"],
                ordinal=known["ordinal"],
                reported=known["told"],
                foreign_to=known["foreign_to"],
                seen=known["seen"],
                place=HistoryPlace(*known["place"]),
                calls=OpenCalls.from_carry(known["calls"]),
            )
        except (ValueError, KeyError, TypeError, IndexError):
            return None


_COMMAND = lazy_regex(r"(?:/(?:run|test)\s+|!)(?P<run>.+)|/(?P<git>git\s.+)", re.DOTALL)
_ADDRESSED = lazy_regex(r"/(?:ask|code|architect|context|help)\s+\S")
"""Commands with a message to the model; the words after other commands are arguments."""
_CHOICE = lazy_regex(r"\(Y\)es/\(N\)o.{0,80}\]: ?\w{0,10}\Z")
_AIDERS_OWN = (
    "# Fix any errors below",
    "# Fix any linting errors below",
    "I ran this command:",
    "The LLM did not conform to the edit format",
    "I updated the files in git",
    "# 1 SEARCH/REPLACE block failed",
)
"""Texts that some versions write in the user's role, although Aider itself sends them to the model."""

_EDITED = lazy_regex(r"Applied edit to (?P<path>.+)")
_CREATED = lazy_regex(r"Creating empty file (?P<path>.+)")
_ADDED = lazy_regex(r"Added (?!\d+ lines? of output)(?P<path>\S.*?) to the chat(?: \(read-only\))?\.?")
_COMMITTED = lazy_regex(r"Commit [0-9a-f]{7,40} \S")
_STOPPED = lazy_regex(r"\^C(?: KeyboardInterrupt| again to exit)?")
_NOT_APPLIED = lazy_regex(
    r"The LLM did not conform to the edit format\.|#? ?\d{1,4} SEARCH/REPLACE blocks? failed to match!"
    r"|Only \d{1,4} reflections allowed"
)
_ABOUT_OUTPUT = lazy_regex(r"Add [\d.]{1,12}k? tokens of command output to the chat\?|Added \d{1,9} lines? of output to the chat")
_CODE = lazy_regex(r"(?:exit|exited with|return) (?:code|status):? (\d{1,5})\b")


class HistoryReading:
    """One read of a history: blocks in order, up to the next run after any events, or to the limit."""

    def __init__(self, *, path: Path, run: AiderRun) -> None:
        self.run = run
        self.problems: list[Problem] = []
        self.stopped = False
        self._path = path
        self._folder = str(path.parent)
        self._builder = self._builder_of_run()

    @property
    def events(self) -> list[Event]:
        return self._builder.events

    @property
    def session(self) -> Session | None:
        """The run that was read; ``None`` for one without events."""
        run = self.run
        if not run.reported:
            return None
        return Session(id=run.session, provider=PROVIDER, started=run.started, project=project_of(self._folder), cwd=self._folder)

    def problem(self, position: int, reason: str) -> None:
        self.problems.append(Problem(file=str(self._path), position=position, reason=reason))

    def read(self, data: bytes, position: int, *, forced: bool) -> int:
        """Read blocks and return the position after the last one."""
        for block in blocks(data, position, self.run.place, forced=forced):
            full = len(self.events) >= EVENTS_AT_ONCE or len(self.problems) >= PROBLEMS_AT_ONCE
            if full or (block.kind == "run" and self.events):
                self.stopped = True
                return position
            self._block(block)
            position = block.end + 1
        return position

    def _block(self, block: HistoryBlock) -> None:
        run, builder = self.run, self._builder
        if block.kind == "blank":
            return
        text = self._text(block)
        if block.kind == "run":
            self._begin(text, block.start)
            return
        name = digest(f"{run.session}\n{block.start - run.began}\n{text}".encode())
        builder.record(name, run.started, block.start, block.end)
        known = len(builder.events)
        match block.kind:
            case "foreign":
                self.problem(block.start, "text before the first run")
            case "said":
                self._said("\n".join(line.removeprefix("####").removeprefix(" ").removesuffix("  ") for line in text.split("\n")))
            case "printed":
                self._printed([line.removeprefix(">").removeprefix(" ").rstrip() for line in text.split("\n")])
            case _:
                builder.answered(text)
        if block.start < run.foreign_to:
            builder.events[known:] = map(_as_document, builder.events[known:])
        run.ordinal = builder.ordinal
        run.reported = run.reported or bool(builder.events)

    def _text(self, block: HistoryBlock) -> str:
        data = b"\n".join(block.lines)
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.problem(block.start, "invalid UTF-8")
            return data.decode(errors="replace")

    def _begin(self, header: str, position: int) -> None:
        run, began = self.run, header.removeprefix(HEADER.decode()).strip()
        if (started := _moment(began)) is None:
            self.problem(position, "unreadable date")
        owner = project_of(self._folder) or self._folder
        self.run = AiderRun(
            session=digest(f"{owner}\n{began}".encode()),
            started=started or run.started,
            began=position,
            ordinal=run.ordinal,
            foreign_to=run.foreign_to,
            seen=run.seen,
            place=run.place,
        )
        self._builder = self._builder_of_run()

    def _builder_of_run(self) -> EventBuilder:
        run = self.run
        return EventBuilder(
            provider=PROVIDER, session=run.session, file=str(self._path), tools=TOOLS, calls=run.calls, ordinal=run.ordinal
        )

    def _said(self, text: str) -> None:
        text = text.strip()
        self.run.calls.by_name.clear()
        if not text or text == "<blank>" or text.startswith(_AIDERS_OWN) or _CHOICE.search(text[-200:]):
            return
        if text[0] in "/!":
            if command := _COMMAND.match(text):
                ran = shortened((command["run"] or command["git"]).strip(), COMMAND_LIMIT)
                event = self._builder.add(EventType.COMMAND, "user", ran, tool=_SHELL, command=ran)
                self.run.calls.open(_SHELL, OpenCall(event=event, tool=_SHELL, detail=ran))
            elif _ADDRESSED.match(text):
                self._builder.said(text)
            return
        self._builder.said(text)

    def _printed(self, lines: list[str]) -> None:
        builder = self._builder
        if _SHELL in self.run.calls.by_name:
            ran = self.run.calls.close(_SHELL)
            output = "\n".join(line for line in lines if not _ABOUT_OUTPUT.match(line)).strip()
            if output:
                code = _CODE.search(output[-400:])
                builder.returned("", ran, output, "failed" if code and int(code[1]) else "ok")
            return
        line = lines[0].strip()
        for pattern, how in ((_EDITED, "edited"), (_CREATED, "created"), (_ADDED, "read")):
            if (found := pattern.fullmatch(line)) and (path := self._whole(found["path"])):
                builder.add(EventType.FILE_ACTION, "tool", how, tool=_EDITOR, path=path, status="ok")
                return
        short = beginning(line, DETAIL_LIMIT)
        if _COMMITTED.match(line):
            builder.add(EventType.COMMAND, "tool", short, tool=_SHELL, command="git commit", status="ok")
        elif _STOPPED.fullmatch(line):
            builder.resume_point("Interrupted", status="interrupted")
        elif _NOT_APPLIED.match(line):
            builder.add(EventType.ERROR, "tool", short, tool=_EDITOR, status="failed")

    def _whole(self, named: str) -> str:
        """Return the full path of a file that Aider names relative to its history's folder."""
        if "\x00" in named or len(named) > PATH_LIMIT:
            return ""
        return os.path.normpath(Path(self._folder, named))


def _as_document(event: Event) -> Event:
    """Return the event as part of a document: no role, command or status in it can be trusted."""
    text = event.text or event.command or event.path
    plain = replace(event, role="tool", type=EventType.TOOL_RESULT, text=text, tool=_DOCUMENT)
    return replace(plain, command="", path="", status="", parent="", call="")


def _moment(began: str) -> datetime | None:
    """Parse local time in this machine's current time zone."""
    try:
        return datetime.strptime(began, "%Y-%m-%d %H:%M:%S").astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


HISTORY = ".aider.chat.history.md"
_MOST_FOLDERS = 1 << 15
"""Size of the cache of repositories: if it were smaller than their number, each comparison would look all of them up again."""
_ARRIVES = 60.0
"""Seconds in which a file that is being copied or unpacked may still grow."""
_PIECE = 16 * 1024
"""Bytes read at once: runs are short, and reading stops after each."""


class Aider:
    """Source that reads ``.aider.chat.history.md`` in the repository, or the folder, that Aider was started in.

    There is no list of these folders, and the home folder is not searched: ``folders`` returns those that other agents have worked
    in, ``always`` are those that the user configured. ``history`` is the file's name if the user chose another, or its full path. A
    run of Aider is a session; reading stops where another run begins.

    A file in a project folder may have been written by anyone: it may come from a clone or an archive. Its content at the first
    read, and all of a file that git tracks, becomes events of a document without a user; only what is written while it is watched
    is the user's. In the folders of ``own``, and in a file that ``history`` names by its full path, the earlier content is the
    user's, too.
    """

    provider = PROVIDER

    def __init__(
        self,
        folders: Callable[[], Iterable[str]],
        *,
        always: Iterable[Path] = (),
        own: Iterable[Path] = (),
        own_state: Path,
        history: str = HISTORY,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folders = folders
        self._always = tuple(always)
        self._own = frozenset(own)
        self._git = Git(os.environ)
        self._clock = clock
        self._own_folders = (own_state, own_state.resolve())
        self._history = Path(history)

    def roots(self) -> tuple[Path, ...]:
        return ()

    def flat_roots(self) -> tuple[Path, ...]:
        """Return only the folders that contain a history; changes in their subfolders are irrelevant."""
        return tuple(dict.fromkeys((*self._always, *(path.parent for path in self.transcripts()))))

    def stamp(self, path: Path) -> tuple[int, int]:
        return stamp_of(path)

    def transcripts(self) -> Iterator[Path]:
        seen: set[str] = set()
        for folder in (*map(str, self._always), *sorted(set(self._folders()))):
            for place in _places(folder):
                if (name := os.path.join(place, self._history)) not in seen:  # noqa: PTH118 - ten thousand of them each time
                    seen.add(name)
                    if is_file(path := Path(name)) and self.owns(path):
                        yield path

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        return sorted(paths)

    def owns(self, path: Path) -> bool:
        named = path == self._history if self._history.is_absolute() else path.name == self._history.name
        return named and is_text(path) and ".." not in path.parts and not any(path.is_relative_to(own) for own in self._own_folders)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        return read_growing(
            path,
            cursor,
            within=path.parent,
            read=lambda file: self._read_next(path, file, cursor, budget),
        )

    def _read_next(self, path: Path, file: AppendOnlyFile, cursor: Cursor | None, budget: int) -> ReadResult:
        position, run, changed = starting_point(file, cursor, AiderRun, AiderRun.from_carry)
        self._mark_foreign(path, file, run)
        reading = HistoryReading(path=path, run=run)
        if changed:
            reading.problem(0, changed)
        left = budget
        while True:
            reached, more = self._piece(file, position, min(left, _PIECE), reading)
            left -= max(1, reached - position)
            moved, position = reached > position, reached
            if left <= 0 or not (moved and more) or reading.stopped:
                break
        more = reading.stopped or (more and moved)
        carry = reading.run.to_carry()
        return result_up_to(path, file, reading, session=reading.session, position=position, carry=carry, more=more)

    def _mark_foreign(self, path: Path, file: AppendOnlyFile, run: AiderRun) -> None:
        if run.foreign_to < 0:
            is_own = path.parent in self._own or path == self._history
            run.foreign_to = 0 if is_own else file.size
            run.seen = self._clock() if run.foreign_to else 0.0
        elif run.foreign_to and self._clock() - run.seen < _ARRIVES:
            run.foreign_to = max(run.foreign_to, file.size)
        if self._is_tracked(path):
            run.foreign_to = file.size

    def _is_tracked(self, path: Path) -> bool:
        """Return whether git tracks the file; true if git cannot be asked."""
        repository = _repository(str(path.parent))
        if not repository:
            return False
        name = path.relative_to(repository).as_posix()
        try:
            return bool(self._git.ask(Path(repository), ["ls-files", "-z", "--", f":(top,literal,icase){name}"]))
        except GitFailed:
            return True

    def _piece(self, file: AppendOnlyFile, position: int, size: int, reading: HistoryReading) -> tuple[int, bool]:
        """Read about ``size`` bytes, or one block if it is longer; return the position reached, and whether there is more."""
        while True:
            stretch = file.lines(position, size)
            if stretch.too_long:
                reading.problem(position, "line too long")
                return stretch.end, stretch.more
            if stretch.end == position:
                return position, False
            reached = reading.read(stretch.data, position, forced=size >= LINE_LIMIT)
            if reached > position or reading.stopped or not stretch.more:
                return reached, stretch.more or reached < stretch.end
            size *= 2


def _places(folder: str) -> Iterator[str]:
    """Yield the folders that may contain a history for work in ``folder``: itself, and the repository around it."""
    if not Path(folder).is_absolute() or folder.startswith(("\\\\", "//")) or "\x00" in folder:
        return  # a path of another system, or on a network share, which a lookup would contact
    yield folder
    repository = _repository(folder)
    if repository and repository != folder:
        yield repository


@lru_cache(maxsize=_MOST_FOLDERS)
def _repository(folder: str) -> str:
    return str(repository_of(folder) or "")
