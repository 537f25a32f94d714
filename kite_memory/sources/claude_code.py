"""Claude Code's transcripts: where they lie, and reading them on from a cursor."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kite_memory.model.event import Session
from kite_memory.model.look import Cursor, Look, Problem
from kite_memory.sources.claude_lines import PROVIDER, Interpreter
from kite_memory.sources.claude_thread import Thread
from kite_memory.sources.jsonl import LINE_LIMIT, AppendOnlyFile, Damage, Found, Unreadable, objects
from kite_memory.sources.own import made_by_our_extractor
from kite_memory.sources.project import project_of

_PROBLEMS_AT_ONCE = 1_000
_EVENTS_AT_ONCE = 20_000
_OTHERS_FOLDERS = frozenset({"memory", "tool-results"})


class ClaudeCode:
    """Reads ``<root>/projects``, where ``root`` is ``${CLAUDE_CONFIG_DIR:-~/.claude}``.

    A session is a file: its id is the file's stem, since the lines of a sub-agent name their parent's session and those
    of a fork may name the old one. ``own_state`` is our state folder, whose sessions are never read.
    """

    def __init__(self, root: Path, *, own_state: Path, line_limit: int = LINE_LIMIT) -> None:
        self._projects = root / "projects"
        self._own_folders = (own_state, own_state.resolve())
        self._line_limit = line_limit

    @property
    def provider(self) -> str:
        return PROVIDER

    def roots(self) -> tuple[Path, ...]:
        return (self._projects,)

    def transcripts(self) -> Iterator[Path]:
        for folder, folders, files in os.walk(self._projects):
            folders[:] = sorted(set(folders) - _OTHERS_FOLDERS)
            paths = [path for name in sorted(files) if self.owns(path := Path(folder, name))]
            yield from self.in_order(paths)

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        """Sub-agents come after the sessions they work for: some inherit their lines."""
        return sorted(paths, key=lambda path: (_is_sub_agent(path), str(path)))

    def owns(self, path: Path) -> bool:
        if path.suffix != ".jsonl" or path.name == "journal.jsonl":
            return False
        try:
            folders = path.relative_to(self._projects).parts[:-1]
        except ValueError:
            return False
        return ".." not in folders and _OTHERS_FOLDERS.isdisjoint(folders) and _is_text(path)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> Look:
        try:
            with AppendOnlyFile(path, within=self._projects, line_limit=self._line_limit) as file:
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
        interpreter = Interpreter(file=str(path), session=path.stem, sub_agent=_is_sub_agent(path), thread=thread)
        if changed:
            interpreter.problem(0, changed)
        stretch = file.lines(position, budget)
        if stretch.too_long and not thread.ours:
            interpreter.problem(position, "line too long")
        if not (stretch.too_long or thread.ours or stretch.end == position):
            position = self._read_lines(stretch.data, position, interpreter, thread)
        else:
            position = stretch.end
        events, problems = interpreter.events, interpreter.problems
        return Look(
            path=str(path),
            session=_session(path, thread),
            events=() if thread.ours else tuple(events),
            problems=() if thread.ours else tuple(problems),
            cursor=Cursor(
                position=position,
                size=file.size,
                mtime_ns=file.mtime_ns,
                identity=file.identity(position),
                carry=thread.carried(),
            ),
            more=stretch.more or position < stretch.end,
        )

    def _read_lines(self, data: bytes, position: int, interpreter: Interpreter, thread: Thread) -> int:
        """The position after the last line that was read: the end, unless a hostile file yields too much at once."""
        for line in data.split(b"\n"):
            if len(interpreter.problems) >= _PROBLEMS_AT_ONCE or len(interpreter.events) >= _EVENTS_AT_ONCE:
                return position
            if line:
                self._read_line(line, position, interpreter, thread)
            position += len(line) + 1
        return position

    def _read_line(self, line: bytes, position: int, interpreter: Interpreter, thread: Thread) -> None:
        for found in objects(line):
            match found:
                case Damage(start=start, reason=reason):
                    interpreter.problem(position + start, reason)
                case Found(start=start, end=end, row=row):
                    if not thread.answered and not thread.ours:
                        cwd = thread.cwd or row.get("cwd")
                        first_cwd = cwd if isinstance(cwd, str) else ""
                        thread.ours = made_by_our_extractor(row, line, first_cwd=first_cwd, own_folders=self._own_folders)
                    if not thread.ours:
                        interpreter.line(row, position + start, position + end, line[start:end])


def _resumed(file: AppendOnlyFile, cursor: Cursor | None) -> tuple[int, Thread, str]:
    """Where to go on and with what; from the beginning, and why, when the file is not the one that was read."""
    if cursor is None or not cursor.position:
        return 0, Thread(), ""
    changed = file.changed(cursor.identity, cursor.position)
    if changed:
        return 0, Thread(), changed

    def read_again(start: int, end: int) -> Mapping[str, Any]:
        return next((found.row for found in objects(file.between(start, end)) if isinstance(found, Found)), {})

    thread = Thread.resumed(cursor.carry, read_again)
    return (0, Thread(), "unknown cursor") if thread is None else (cursor.position, thread, "")


def _is_text(path: Path) -> bool:
    """Names that are not UTF-8 cannot be written down, so such files cannot be read on from where we were."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_sub_agent(path: Path) -> bool:
    return path.name.startswith("agent-")


def _session(path: Path, thread: Thread) -> Session | None:
    if thread.started is None or thread.ours:
        return None
    parent = thread.parent
    if not parent and "subagents" in path.parts[1:]:
        parent = path.parts[path.parts.index("subagents") - 1]
    return Session(
        id=path.stem,
        provider=PROVIDER,
        started=thread.started,
        project=project_of(thread.cwd),
        cwd=thread.cwd,
        branch=thread.branch,
        parent=parent,
        title=thread.title,
    )
