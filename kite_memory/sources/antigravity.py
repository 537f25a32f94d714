"""Google Antigravity's conversations, of its command line and its editor: where they lie, and reading them on from a cursor."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from kite_memory.model.event import Session
from kite_memory.model.look import Cursor, Look, Problem
from kite_memory.sources.antigravity_places import Places
from kite_memory.sources.antigravity_steps import PROVIDER, Interpreter, Thread
from kite_memory.sources.jsonl import LINE_LIMIT, AppendOnlyFile, Damage, Found, Unreadable, objects
from kite_memory.sources.project import project_of

_PROBLEMS_AT_ONCE = 1_000
_EVENTS_AT_ONCE = 20_000
_FULL, _PLAIN = "transcript_full.jsonl", "transcript.jsonl"
_LOGS = (".system_generated", "logs")
_CONVERSATION = re.compile(r"[\w-]{1,128}")


class Antigravity:
    """Reads ``<root>/<program>/brain/<conversation>/.system_generated/logs``, where ``root`` is the folder ``~/.gemini``.

    Its own store, ``conversations/<id>.db`` or ``.pb``, is protobuf without a published schema, or encrypted: one without a
    transcript beside it is counted, not guessed at.
    """

    def __init__(self, root: Path, *, line_limit: int = LINE_LIMIT) -> None:
        self._programs = tuple(root / name for name in ("antigravity-cli", "antigravity", "antigravity-ide"))
        self._places = {program: Places(program) for program in self._programs}
        self._line_limit = line_limit

    @property
    def provider(self) -> str:
        return PROVIDER

    def roots(self) -> tuple[Path, ...]:
        return tuple(program / "brain" for program in self._programs)

    def transcripts(self) -> Iterator[Path]:
        for program in self._programs:
            told: set[str] = set()
            for name in _listed(program / "brain"):
                logs = (program / "brain" / name).joinpath(*_LOGS)
                found = next((path for path in (logs / _FULL, logs / _PLAIN) if self.owns(path) and path.exists()), None)
                if found is not None:
                    told.add(name)
                    yield found
            for name in _listed(program / "conversations"):
                path = program / "conversations" / name
                if path.stem not in told and self.owns(path):
                    yield path

    def owns(self, path: Path) -> bool:
        for program in self._programs:
            try:
                parts = path.relative_to(program).parts
            except ValueError:
                continue
            match parts:
                case ("brain", name, *folders, file) if tuple(folders) == _LOGS and file in (_FULL, _PLAIN):
                    return bool(_CONVERSATION.fullmatch(name))
                case ("conversations", file) if path.suffix in (".db", ".pb"):
                    return bool(_CONVERSATION.fullmatch(path.stem))
                case _:
                    return False
        return False

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        return sorted(paths)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> Look:
        program = next((program for program in self._programs if path.is_relative_to(program)), path.parent)
        try:
            with AppendOnlyFile(path, within=program, line_limit=self._line_limit) as file:
                if path.parent.name == "conversations":
                    return _unread(path, file, "conversation without a transcript")
                if path.name == _PLAIN and path.with_name(_FULL).exists():
                    return _unread(path, file, "")
                return self._look(path, file, cursor, budget, self._places[program])
        except Unreadable as error:
            reason = str(error)
        except OSError:
            reason = "file cannot be read"
        unmoved = cursor or Cursor(position=0, size=0, mtime_ns=0)
        problem = Problem(file=str(path), position=unmoved.position, reason=reason)
        return Look(path=str(path), session=None, events=(), problems=(problem,), cursor=unmoved)

    def _look(self, path: Path, file: AppendOnlyFile, cursor: Cursor | None, budget: int, places: Places) -> Look:
        name = path.parent.parent.parent.name
        position, thread, changed = _resumed(file, cursor)
        if not position:
            thread.parent = places.parent_of(name)
        thread.cwd = thread.cwd or places.workspace_of(name)
        interpreter = Interpreter(file=str(path), session=name, thread=thread)
        if changed:
            interpreter.problem(0, changed)
        stretch = file.lines(position, budget)
        if stretch.too_long:
            interpreter.problem(position, "line too long")
            position = stretch.end
        elif stretch.end > position:
            position = _read_lines(stretch.data, position, interpreter)
        more = stretch.more or position < stretch.end
        return Look(
            path=str(path),
            session=_session(name, thread),
            events=tuple(interpreter.events),
            problems=tuple(interpreter.problems),
            cursor=Cursor(
                position=position,
                size=0 if more else file.size,
                mtime_ns=0 if more else file.mtime_ns,
                identity=file.identity(position),
                carry=thread.carried(),
            ),
            more=more,
        )


def _unread(path: Path, file: AppendOnlyFile, reason: str) -> Look:
    """Looked at and left, until it changes."""
    cursor = Cursor(position=file.size, size=file.size, mtime_ns=file.mtime_ns)
    problems = (Problem(file=str(path), position=0, reason=reason),) if reason else ()
    return Look(path=str(path), session=None, events=(), problems=problems, cursor=cursor)


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
                    interpreter.step(row, position + start, position + end)
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
        parent=thread.parent,
    )


def _listed(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except OSError:
        return []
