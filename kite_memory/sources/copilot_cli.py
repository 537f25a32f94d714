"""GitHub Copilot CLI's sessions: where they lie, and reading them on from a cursor."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kite_memory.model.event import Session
from kite_memory.model.look import Cursor, Look, Problem
from kite_memory.sources.copilot_lines import PROVIDER, Interpreter, Thread
from kite_memory.sources.jsonl import LINE_LIMIT, AppendOnlyFile, Damage, Found, Unreadable, objects
from kite_memory.sources.project import project_of

_PROBLEMS_AT_ONCE = 1_000
_EVENTS_AT_ONCE = 20_000
_EVENTS_FILE = "events.jsonl"


class CopilotCli:
    """Reads ``<root>/session-state``, where ``root`` is ``${COPILOT_HOME:-~/.copilot}``.

    A session is a folder with an ``events.jsonl`` beside its checkpoints and files; before 1.0 it was a file by itself. Either
    is named after the session.
    """

    def __init__(self, root: Path, *, own_state: Path, line_limit: int = LINE_LIMIT) -> None:
        self._sessions = root / "session-state"
        self._own_folders = (own_state, own_state.resolve())
        self._line_limit = line_limit

    @property
    def provider(self) -> str:
        return PROVIDER

    def roots(self) -> tuple[Path, ...]:
        return (self._sessions,)

    def transcripts(self) -> Iterator[Path]:
        try:
            with os.scandir(self._sessions) as entries:
                found = sorted((entry.name, entry.is_dir()) for entry in entries)
        except OSError:
            return
        for name, is_folder in found:
            path = self._sessions / name / _EVENTS_FILE if is_folder else self._sessions / name
            if self.owns(path) and path.exists():
                yield path

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        return sorted(paths)

    def owns(self, path: Path) -> bool:
        try:
            parts = path.relative_to(self._sessions).parts
            str(path).encode()
        except ValueError:  # elsewhere, or a name that cannot be written down
            return False
        if ".." in parts:
            return False
        return (len(parts) == 1 and path.suffix == ".jsonl") or (len(parts) == 2 and path.name == _EVENTS_FILE)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> Look:
        try:
            with AppendOnlyFile(path, within=self._sessions, line_limit=self._line_limit) as file:
                return self._look(path, file, cursor, budget)
        except Unreadable as error:
            reason = str(error)
        except OSError:
            reason = "file cannot be read"
        unmoved = cursor or Cursor(position=0, size=0, mtime_ns=0)
        problem = Problem(file=str(path), position=unmoved.position, reason=reason)
        return Look(path=str(path), session=None, events=(), problems=(problem,), cursor=unmoved)

    def _look(self, path: Path, file: AppendOnlyFile, cursor: Cursor | None, budget: int) -> Look:
        position, thread, changed = _resumed(file, cursor)
        name = path.parent.name if path.name == _EVENTS_FILE else path.stem
        interpreter = Interpreter(file=str(path), session=name, thread=thread, own_folders=self._own_folders)
        if changed:
            interpreter.problem(0, changed)
        stretch = file.lines(position, budget)
        if stretch.too_long and not thread.ours:
            interpreter.problem(position, "line too long")
        if stretch.too_long or thread.ours or stretch.end == position:
            position = stretch.end
        else:
            position = _read_lines(stretch.data, position, interpreter)
        return Look(
            path=str(path),
            session=None if thread.started is None or thread.ours else _session(name, thread),
            events=() if thread.ours else tuple(interpreter.events),
            problems=() if thread.ours else tuple(interpreter.problems),
            cursor=Cursor(
                position=position,
                size=file.size,
                mtime_ns=file.mtime_ns,
                identity=file.identity(position),
                carry=thread.carried(),
            ),
            more=stretch.more or position < stretch.end,
        )


def _read_lines(data: bytes, position: int, interpreter: Interpreter) -> int:
    """The position after the last line that was read: the end, unless a hostile file yields too much at once."""
    for line in data.split(b"\n"):
        if len(interpreter.problems) >= _PROBLEMS_AT_ONCE or len(interpreter.events) >= _EVENTS_AT_ONCE:
            return position
        for found in objects(line) if line else []:
            match found:
                case Damage(start=start, reason=reason):
                    interpreter.problem(position + start, reason)
                case Found(start=start, end=end, row=row):
                    interpreter.line(row, position + start, position + end, line[start:end])
        position += len(line) + 1
    return position


def _resumed(file: AppendOnlyFile, cursor: Cursor | None) -> tuple[int, Thread, str]:
    """Where to go on and with what; from the beginning, and why, when the file is not the one that was read."""
    if cursor is None or not cursor.position:
        return 0, Thread(), ""
    if changed := file.changed(cursor.identity, cursor.position):
        return 0, Thread(), changed
    thread = Thread.resumed(cursor.carry)
    return (0, Thread(), "unknown cursor") if thread is None else (cursor.position, thread, "")


def _session(name: str, thread: Thread) -> Session | None:
    if thread.started is None:
        return None
    return Session(
        id=name,
        provider=PROVIDER,
        started=thread.started,
        project=project_of(thread.cwd),
        cwd=thread.cwd,
        branch=thread.branch,
        title=thread.title,
    )
