"""Read transcripts that only grow, from a cursor; and the base class for agents that append JSON lines to one file per session.

A source derived from `LineSource` only defines what each line means.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

import orjson

from kite_memory.model.event import Cursor, Event, EventType, Passage, Problem, ReadResult, Session, Status
from kite_memory.projects import project_of
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.event_builder import TITLE_LIMIT, EventBuilder, OpenCalls, Toolbox, keep_latest, title_of
from kite_memory.sources.common.jsonl import (
    LINE_LIMIT,
    AppendOnlyFile,
    Damage,
    FoundObject,
    Unreadable,
    objects,
)
from kite_memory.sources.common.tool_text import COMMAND_LIMIT, PATH_LIMIT, as_id, digest, moment, safe, short, shortened
from kite_memory.sources.common.words import OWN_EXTRACTOR_MARK, is_inside
from kite_memory.system.private_files import is_file, is_text, names_in

PROBLEMS_AT_ONCE = 1_000
EVENTS_AT_ONCE = 20_000
"""Limit of events in one result, since a malicious line may hold a thousand of them."""
Carried = TypeVar("Carried")


class EventCollector(Protocol):
    """Collector of events and problems while lines are parsed."""

    @property
    def events(self) -> Sequence[Event]: ...

    @property
    def problems(self) -> Sequence[Problem]: ...

    def problem(self, position: int, reason: str) -> None: ...


def read_growing(
    path: Path,
    cursor: Cursor | None,
    *,
    within: Path,
    line_limit: int = LINE_LIMIT,
    read: Callable[[AppendOnlyFile], ReadResult],
    amends: bool = False,
) -> ReadResult:
    """Open the file and call ``read``. If it cannot be read, return a problem and the same cursor."""
    try:
        with AppendOnlyFile(path, within=within, line_limit=line_limit) as file:
            return read(file)
    except Unreadable as error:
        reason = str(error)
    except OSError:
        reason = "file cannot be read"
    return failed_read(path, cursor, reason, amends=amends)


def failed_read(path: Path, cursor: Cursor | None, reason: str, *, amends: bool = False) -> ReadResult:
    """Return a result that holds only a problem and the same cursor."""
    unmoved = cursor or Cursor(position=0, size=0, mtime_ns=0)
    problem = Problem(file=str(path), position=unmoved.position, reason=reason)
    return ReadResult(path=str(path), session=None, events=(), problems=(problem,), cursor=unmoved, amends=amends)


def starting_point(
    file: AppendOnlyFile, cursor: Cursor | None, begin: Callable[[], Carried], resume: Callable[[str], Carried | None]
) -> tuple[int, Carried, str]:
    """Return the position and state to continue with, and why reading starts over if the file is not the one that was read."""
    if cursor is None or not cursor.position:
        return 0, begin(), ""
    if changed := file.changed(cursor.identity, cursor.position):
        return 0, begin(), changed
    to_carry = resume(cursor.carry)
    return (0, begin(), "unknown cursor") if to_carry is None else (cursor.position, to_carry, "")


def continue_reading(
    file: AppendOnlyFile,
    position: int,
    collector: EventCollector,
    read_line: Callable[[FoundObject, int, bytes], bool | None],
    *,
    budget: int,
    wanted: bool = True,
) -> tuple[int, bool]:
    """Parse the next lines and call ``read_line`` with each object, the position of its line, and the line.

    If ``read_line`` returns true, reading stops before that object. Returns the position after the last object that was read, and
    whether there is more. Lines are skipped unless ``wanted``.
    """
    stretch = file.lines(position, budget, to_the_end=True)
    if stretch.torn and wanted:
        collector.problem(stretch.end, "unfinished line")
    if stretch.too_long and wanted:
        collector.problem(position, "line too long")
    reached = stretch.end
    if stretch.data and wanted:
        reached = min(_read_lines(stretch.data, position, collector, read_line), stretch.end)
    return reached, stretch.more or reached < stretch.end


def _read_lines(
    data: bytes, position: int, collector: EventCollector, read_line: Callable[[FoundObject, int, bytes], bool | None]
) -> int:
    for line in data.split(b"\n"):
        if len(collector.problems) >= PROBLEMS_AT_ONCE or len(collector.events) >= EVENTS_AT_ONCE:
            return position
        for found in objects(line) if line else ():
            match found:
                case Damage(start=start, reason=reason):
                    collector.problem(position + start, reason)
                case FoundObject():
                    if read_line(found, position, line):
                        return position + found.start
        position += len(line) + 1
    return position


def result_up_to(
    path: Path,
    file: AppendOnlyFile,
    collector: EventCollector,
    *,
    session: Session | None,
    position: int,
    carry: str,
    more: bool,
    wanted: bool = True,
    amends: bool = False,
    passages: Sequence[Passage] = (),
) -> ReadResult:
    """Return the result of reading up to ``position``; only its cursor if it was not ``wanted``.

    While the file ends within a line, the cursor keeps no time, so that it is read again once it no longer changes.
    """
    mtime_ns = 0 if file.unfinished else file.mtime_ns
    return ReadResult(
        path=str(path),
        session=session if wanted else None,
        events=tuple(collector.events) if wanted else (),
        problems=tuple(collector.problems) if wanted else (),
        cursor=Cursor(position=position, size=file.size, mtime_ns=mtime_ns, identity=file.identity(position), carry=carry),
        more=more,
        amends=amends,
        passages=tuple(passages) if wanted else (),
    )


_VERSION = 2
_DEEPEST = 8
_RUNNING = 8


@dataclass(slots=True, kw_only=True)
class Progress:
    """What is known of a session after the lines that were read; kept in the cursor between reads.

    ``running`` are commands that still run, by the name under which a later call requests their output.
    """

    started: datetime | None = None
    last_at: datetime = field(default=datetime.fromtimestamp(0, UTC))
    ordinal: int = 0
    cwd: str = ""
    branch: str = ""
    title: str = ""
    parent: str = ""
    own_session: bool = False
    answered: bool = False
    note: str = ""
    calls: OpenCalls = field(default_factory=OpenCalls)
    running: dict[str, str] = field(default_factory=dict)

    def keep_running(self, name: str, command: str) -> None:
        keep_latest(self.running, name, command, _RUNNING)

    def to_carry(self) -> str:
        return orjson.dumps(
            {
                "v": _VERSION,
                "started": self.started,
                "at": self.last_at,
                "ordinal": self.ordinal,
                "where": [self.cwd, self.branch, self.title, self.parent],
                "ours": self.own_session,
                "answered": self.answered,
                "note": self.note,
                "calls": self.calls.to_carry(),
                "running": self.running,
            }
        ).decode()

    @staticmethod
    def from_carry(carry: str) -> "Progress | None":
        """Parse what `to_carry` returned; return ``None`` if another version wrote it."""
        try:
            known: dict[str, Any] = orjson.loads(carry)
            if known["v"] != _VERSION:
                return None
            cwd, branch, title, parent = known["where"]
            return Progress(
                started=datetime.fromisoformat(known["started"]) if known["started"] else None,
                last_at=datetime.fromisoformat(known["at"]),
                ordinal=known["ordinal"],
                cwd=cwd,
                branch=branch,
                title=title,
                parent=parent,
                own_session=known["ours"],
                answered=known["answered"],
                note=known.get("note", ""),
                calls=OpenCalls.from_carry(known["calls"]),
                running=dict(known.get("running", {})),
            )
        except (ValueError, KeyError, TypeError):
            return None


class Line:
    """The line being read. Its methods record what happened; their arguments are checked and bounded.

    Sources of this package that need more use ``builder``, ``progress`` and ``start``, the line's position in the file.
    """

    def __init__(self, *, provider: str, file: str, session: str, tools: Toolbox, progress: Progress) -> None:
        self.progress = progress
        self.builder = EventBuilder(
            provider=provider, session=session, file=file, tools=tools, calls=progress.calls, ordinal=progress.ordinal
        )
        self.start = 0

    @property
    def events(self) -> list[Event]:
        return self.builder.events

    @property
    def problems(self) -> list[Problem]:
        return self.builder.problems

    def problem(self, position: int, reason: str) -> None:
        self.builder.problem(position, reason)

    def begin(self, name: str, at: datetime | None, start: int, end: int) -> None:
        if at is not None:
            self.progress.last_at = at
            self.progress.started = self.progress.started or at
        self.start = start
        self.builder.record(name, self.progress.last_at, start, end)

    def unknown(self, kind: object) -> None:
        """Count the line as one of an unknown kind."""
        self.builder.problem(self.start, f"unknown type {safe(kind)}")

    def in_folder(self, cwd: object, branch: object = "") -> None:
        """Set where the session runs, unless it is known."""
        progress = self.progress
        if not progress.cwd and isinstance(cwd, str):
            progress.cwd = beginning(cwd, PATH_LIMIT)
        if not progress.branch and isinstance(branch, str):
            progress.branch = beginning(branch, TITLE_LIMIT)

    def titled(self, title: object) -> None:
        self.progress.title = title_of(title) or self.progress.title

    def works_for(self, session: object) -> None:
        """Set the session that this one is a sub-agent or a fork of."""
        self.progress.parent = as_id(session)

    @property
    def note(self) -> str:
        """The note that earlier lines kept; empty if there was none."""
        return self.progress.note

    def keep(self, note: str) -> None:
        """Keep a short note for later lines of the session; every cursor holds it."""
        self.progress.note = beginning(note, TITLE_LIMIT)

    def user(self, text: object, *, parent: str = "") -> None:
        """Add what the person wrote. A prompt of our own extractor, before any answer, marks the session as not to be read."""
        if not isinstance(text, str):
            return
        if OWN_EXTRACTOR_MARK in text and not self.progress.answered:
            self.progress.own_session = True
        self.builder.said(text, parent=parent)

    def ran(self, command: object) -> None:
        """Add a command that the person ran without the agent."""
        if isinstance(command, str) and (bounded := shortened(command, COMMAND_LIMIT).strip()):
            self.builder.add(EventType.COMMAND, "user", bounded, command=bounded)

    def interrupted(self) -> None:
        """Record that the person stopped the agent."""
        self.builder.resume_point("Interrupted by the user", status="interrupted")

    def assistant(self, text: object, *, parent: str = "") -> str:
        """Add what the agent wrote; return the id of its event, or ``parent`` if it wrote nothing."""
        self.progress.answered = True
        return self.builder.answered(text, parent=parent) if isinstance(text, str) else parent

    def called(self, call: object, tool: object, arguments: object) -> None:
        """Add a tool call under the agent's own id for it."""
        self.progress.answered = True
        if (name := short(call)) and (named := short(tool)) and name not in self.progress.calls.by_name:
            self.builder.called(name, named, arguments if isinstance(arguments, dict) else {})

    def returned(self, call: object, text: object, status: Status = "ok") -> None:
        """Add the result of a call."""
        name = short(call)
        self.builder.returned(name, self.progress.calls.close(name), text if isinstance(text, str) else "", status)

    def summary(self, text: object) -> None:
        """Add the summary with which the agent compacted or handed over the session."""
        if isinstance(text, str):
            self.builder.resume_point(text)

    def end(self) -> None:
        self.progress.ordinal = self.builder.ordinal


class LineSource(ABC):
    """Source of an agent that appends JSON lines to ``folder/**/<session>.jsonl``, ``depth`` folders down.

    A subclass sets ``provider`` and ``tools`` and implements `line`.
    """

    provider: str
    tools: Toolbox = Toolbox()
    suffix = ".jsonl"
    depth = 0

    def __init__(self, folder: Path, *, own_state: Path | None = None, line_limit: int = LINE_LIMIT) -> None:
        self._folder = folder
        self._own_folders = (own_state, own_state.resolve()) if own_state else ()
        self._line_limit = line_limit

    @abstractmethod
    def line(self, row: Mapping[str, Any], line: Line) -> None:
        """Parse one object of the transcript. Must not raise, whatever ``row`` holds: match its shape."""

    def time_of(self, row: Mapping[str, Any]) -> datetime | None:
        """Return when the line was written; ``None`` if it has no time."""
        return moment(row.get("timestamp"))

    def id_of(self, row: Mapping[str, Any]) -> str:
        """Return the agent's own id for the line; empty if it has none."""
        return as_id(row.get("id"))

    def session_of(self, path: Path) -> str:
        """Return the session's id, by the path alone."""
        return path.name.removesuffix(self.suffix)

    def _event_id(self, row: Mapping[str, Any], session: str, data: bytes) -> str:
        return self.id_of(row) or digest(data)

    def _within(self, path: Path) -> Path:
        """Return the folder that links must not lead out of."""
        return self._folder

    def roots(self) -> tuple[Path, ...]:
        return (self._folder,)

    def transcripts(self) -> Iterator[Path]:
        yield from self._below(self._folder, self.depth)

    def _below(self, folder: Path, depth: int) -> Iterator[Path]:
        for name in names_in(folder):
            path = folder / name
            if depth:
                yield from self._below(path, depth - 1)
            elif self.owns(path) and is_file(path):
                yield path

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        return sorted(paths)

    def owns(self, path: Path) -> bool:
        if not path.is_relative_to(self._folder) or not is_text(path):
            return False
        parts = path.relative_to(self._folder).parts
        return ".." not in parts and len(parts) == self.depth + 1 <= _DEEPEST and path.name.endswith(self.suffix)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        return read_growing(
            path,
            cursor,
            within=self._within(path),
            line_limit=self._line_limit,
            read=lambda file: self._read(path, file, cursor, budget),
        )

    def _read(self, path: Path, file: AppendOnlyFile, cursor: Cursor | None, budget: int) -> ReadResult:
        position, progress, changed = starting_point(file, cursor, Progress, Progress.from_carry)
        return self._read_from(path, file, position, progress, changed, budget)

    def _read_from(
        self, path: Path, file: AppendOnlyFile, position: int, progress: Progress, changed: str, budget: int
    ) -> ReadResult:
        name = short(self.session_of(path))
        line = Line(provider=self.provider, file=str(path), session=name, tools=self.tools, progress=progress)
        if changed:
            line.problem(0, changed)

        def tell(found: FoundObject, at: int, text: bytes) -> None:
            row, data = found.row, text[found.start : found.end]
            line.begin(self._event_id(row, name, data), self.time_of(row), at + found.start, at + found.end)
            if not progress.own_session:
                self.line(row, line)
            progress.own_session = progress.own_session or is_inside(progress.cwd, self._own_folders)
            line.end()

        position, more = continue_reading(file, position, line, tell, budget=budget, wanted=not progress.own_session)
        return result_up_to(
            path,
            file,
            line,
            session=self._session(name, progress),
            position=position,
            carry=progress.to_carry(),
            more=more,
            wanted=not progress.own_session,
        )

    def _session(self, name: str, progress: Progress) -> Session | None:
        if progress.started is None:
            return None
        return Session(
            id=name,
            provider=self.provider,
            started=progress.started,
            project=project_of(progress.cwd),
            cwd=progress.cwd,
            branch=progress.branch,
            parent=progress.parent,
            title=progress.title,
        )
