"""Codex's rollouts, of its CLI, desktop app and editor extension: their location, and reading them from a cursor."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from kite_memory.model.event import Cursor, Problem, ReadResult, Session
from kite_memory.projects import project_with_remote
from kite_memory.sources.codex.lines import PROVIDER, CodexInterpreter
from kite_memory.sources.codex.records import RolloutState
from kite_memory.sources.common.jsonl import (
    LINE_LIMIT,
    AppendOnlyFile,
    CompressedLines,
    Damage,
    FoundObject,
    Stretch,
    Unreadable,
    objects,
)
from kite_memory.sources.common.words import is_inside
from kite_memory.system.private_files import is_text

_PROBLEMS_AT_ONCE = 1_000
_EVENTS_AT_ONCE = 20_000
_ENDINGS = (".jsonl", ".jsonl.zst")
_ID_AT_END = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


class Codex:
    """Source that reads ``<root>/sessions`` and ``<root>/archived_sessions``, where ``root`` is ``${CODEX_HOME:-~/.codex}``.

    A session is a thread, with its id in the file's first line. A fork's file repeats the messages before it; their events belong
    to the session they were first written in, with the same ids. Reading such a file stops where another session begins.
    ``own_state`` is our state folder, whose sessions are never read.
    """

    provider = PROVIDER

    def __init__(self, root: Path, *, own_state: Path, line_limit: int = LINE_LIMIT) -> None:
        self._root = root
        self._folders = (root / "sessions", root / "archived_sessions")
        self._own_folders = (own_state, own_state.resolve())
        self._line_limit = line_limit
        self._unpacking: tuple[Path, CompressedLines] | None = None

    def roots(self) -> tuple[Path, ...]:
        return self._folders

    def transcripts(self) -> Iterator[Path]:
        found = (
            (name, folder)
            for root in self._folders
            for folder, _, names in os.walk(root)
            for name in names
            if name.endswith(_ENDINGS) and is_text(folder + name)
        )
        yield from (Path(folder, name) for name, folder in sorted(found))

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        """Sort transcripts by the time in their names, so that a fork comes after the session it was forked from."""
        return sorted(paths, key=lambda path: (path.name, str(path)))

    def owns(self, path: Path) -> bool:
        inside = any(path.is_relative_to(folder) for folder in self._folders)
        return inside and path.name.endswith(_ENDINGS) and is_text(path) and ".." not in path.parts

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        try:
            if path.suffix == ".zst":
                return self._read_compressed(path, cursor, budget)
            with AppendOnlyFile(path, within=self._around(path), line_limit=self._line_limit) as file:
                return self._read(path, file, cursor, budget)
        except Unreadable as error:
            reason = str(error)
        except OSError:
            reason = "file cannot be read"
        unmoved = cursor or Cursor(position=0, size=0, mtime_ns=0)
        problem = Problem(file=str(path), position=unmoved.position, reason=reason)
        return ReadResult(path=str(path), session=None, events=(), problems=(problem,), cursor=unmoved)

    def _around(self, path: Path) -> Path:
        """Return the folder of sessions that contains a rollout: it may be a link, and links must not lead out of it."""
        return next((folder for folder in self._folders if path.is_relative_to(folder)), self._root)

    def _read(self, path: Path, file: AppendOnlyFile, cursor: Cursor | None, budget: int) -> ReadResult:
        position, state, changed = 0, None, ""
        if cursor is not None and cursor.position:
            changed = file.changed(cursor.identity, cursor.position)
            state = None if changed else RolloutState.from_carry(cursor.carry)
            changed = changed or ("" if state else "unknown cursor")
            position = cursor.position if state else 0
        read_result, position = self._read_next(
            path, position, state or RolloutState(), file.lines(position, budget, to_the_end=True), changed
        )
        mtime_ns = 0 if file.unfinished else file.mtime_ns
        moved = replace(read_result.cursor, position=position, size=file.size, mtime_ns=mtime_ns, identity=file.identity(position))
        return replace(read_result, cursor=moved)

    def _read_compressed(self, path: Path, cursor: Cursor | None, budget: int) -> ReadResult:
        """Read a compressed file, which no longer grows: it is read once, and again if it is another file."""
        file = self._unpack(path)
        identity = file.identity()
        position, state = 0, None
        if cursor is not None and cursor.identity.startswith(identity):
            state = RolloutState.from_carry(cursor.carry)
            position = _unpacked(cursor.identity, identity) if state else 0
        if cursor is not None and state is not None and cursor.position == file.size:
            self._release()
            return ReadResult(path=str(path), session=_session(state), events=(), problems=(), cursor=cursor)
        read_result, position = self._read_next(path, position, state or RolloutState(), file.lines(position, budget), "")
        problems = read_result.problems
        if file.damage and not read_result.more:
            problems = (*problems, Problem(file=str(path), position=position, reason=file.damage))
        done = file.read_of_it if read_result.more else file.size
        if not read_result.more:
            self._release()
        moved = replace(
            read_result.cursor, position=done, size=file.size, mtime_ns=file.mtime_ns, identity=f"{identity}@{position}"
        )
        return replace(read_result, cursor=moved, problems=problems)

    def _unpack(self, path: Path) -> CompressedLines:
        """Return the file, still open where the last read ended, since unpacking cannot start in the middle."""
        if self._unpacking is not None:
            known, file = self._unpacking
            if known == path and file.is_still(path):
                return file
            self._release()
        file = CompressedLines(path, within=self._around(path), line_limit=self._line_limit)
        self._unpacking = (path, file)
        return file

    def _release(self) -> None:
        if self._unpacking is not None:
            self._unpacking[1].close()
            self._unpacking = None

    def _read_next(self, path: Path, position: int, state: RolloutState, stretch: Stretch, changed: str) -> tuple[ReadResult, int]:
        interpreter = CodexInterpreter(file=str(path), file_id=_id_of(path), state=state)
        if changed:
            interpreter.problem(0, changed)
        if stretch.too_long and not state.own_session:
            interpreter.problem(position, "line too long")
        if stretch.torn and not state.own_session:
            interpreter.problem(stretch.end, "unfinished line")
        if not (stretch.too_long or state.own_session or stretch.end == position):
            position = min(self._read_lines(stretch.data, position, interpreter, state), stretch.end)
        else:
            position = stretch.end
        read_result = ReadResult(
            path=str(path),
            session=_session(state),
            events=() if state.own_session else tuple(interpreter.events),
            problems=() if state.own_session else tuple(interpreter.problems),
            cursor=Cursor(position=position, size=0, mtime_ns=0, carry=state.to_carry()),
            more=stretch.more or position < stretch.end,
        )
        return read_result, position

    def _read_lines(self, data: bytes, position: int, interpreter: CodexInterpreter, state: RolloutState) -> int:
        """Parse lines and return the position after the last object that was read.

        This is the end of ``data``, unless another session begins or a limit is reached.
        """
        for line in data.split(b"\n"):
            if len(interpreter.problems) >= _PROBLEMS_AT_ONCE or len(interpreter.events) >= _EVENTS_AT_ONCE:
                return position
            for found in objects(line) if line else ():
                match found:
                    case Damage(start=start, reason=reason):
                        interpreter.problem(position + start, reason)
                    case FoundObject(start=start, end=end, row=row):
                        if interpreter.ends_here(row):
                            return position + start
                        interpreter.line(row, position + start, position + end)
                        state.own_session = state.own_session or self._is_ours(state)
            position += len(line) + 1
        return position

    def _is_ours(self, state: RolloutState) -> bool:
        cwd = state.headers[0].cwd if state.headers and not state.message else ""
        return is_inside(cwd, self._own_folders)


def _id_of(path: Path) -> str:
    stem = path.name.removesuffix(".zst").removesuffix(".jsonl")
    found = _ID_AT_END.search(stem)
    return found[0] if found else stem[-128:]


def _unpacked(identity: str, known: str) -> int:
    """Return the unpacked position appended to a file's identity."""
    size = identity.removeprefix(known).removeprefix("@")
    return int(size) if size.isdecimal() and len(size) < 20 else 0


def _session(state: RolloutState) -> Session | None:
    if not state.headers or state.own_session:
        return None
    header = state.header
    return Session(
        id=header.id,
        provider=PROVIDER,
        started=header.started,
        project=project_with_remote(header.cwd, header.repository_url),
        cwd=header.cwd,
        branch=header.branch,
        parent=header.parent,
        title=state.title if not state.speaking else "",
    )
