"""Claude Code's transcripts: their location, and reading them from a cursor."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kite_memory.model.event import Cursor, ReadResult, Session
from kite_memory.projects import project_of
from kite_memory.sources.claude_code.lines import PROVIDER, ClaudeCodeInterpreter
from kite_memory.sources.claude_code.thread import TranscriptState
from kite_memory.sources.common.jsonl import LINE_LIMIT, AppendOnlyFile, FoundObject, objects
from kite_memory.sources.common.line_source import continue_reading, read_growing, result_up_to, starting_point
from kite_memory.sources.common.words import made_by_our_extractor
from kite_memory.system.private_files import is_text

_OTHERS_FOLDERS = frozenset({"memory", "tool-results"})


class ClaudeCode:
    """Source that reads ``<root>/projects``, where ``root`` is ``${CLAUDE_CONFIG_DIR:-~/.claude}``.

    Each file is a session, and its id is the file's stem: the lines of a sub-agent name their parent's session, and those of a fork
    may name the old one. ``own_state`` is our state folder, whose sessions are never read.
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
        """Sort sub-agents after the sessions they work for: some repeat their lines."""
        return sorted(paths, key=lambda path: (_is_sub_agent(path), str(path)))

    def owns(self, path: Path) -> bool:
        if path.suffix != ".jsonl" or path.name == "journal.jsonl":
            return False
        try:
            folders = path.relative_to(self._projects).parts[:-1]
        except ValueError:
            return False
        return ".." not in folders and _OTHERS_FOLDERS.isdisjoint(folders) and is_text(path)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        return read_growing(
            path,
            cursor,
            within=self._projects,
            line_limit=self._line_limit,
            read=lambda file: self._read_next(path, file, cursor, budget),
        )

    def _read_next(self, path: Path, file: AppendOnlyFile, cursor: Cursor | None, budget: int) -> ReadResult:
        def read_again(start: int, end: int) -> Mapping[str, Any]:
            return next((found.row for found in objects(file.between(start, end)) if isinstance(found, FoundObject)), {})

        position, state, changed = starting_point(
            file, cursor, TranscriptState, lambda carry: TranscriptState.from_carry(carry, read_again)
        )
        interpreter = ClaudeCodeInterpreter(file=str(path), session=path.stem, sub_agent=_is_sub_agent(path), state=state)
        if changed:
            interpreter.problem(0, changed)

        def read_line(found: FoundObject, at: int, line: bytes) -> None:
            if not state.answered and not state.own_session:
                cwd = state.cwd or found.row.get("cwd")
                first_cwd = cwd if isinstance(cwd, str) else ""
                state.own_session = made_by_our_extractor(found.row, line, first_cwd=first_cwd, own_folders=self._own_folders)
            if not state.own_session:
                interpreter.line(found.row, at + found.start, at + found.end, line[found.start : found.end])

        position, more = continue_reading(file, position, interpreter, read_line, budget=budget, wanted=not state.own_session)
        return result_up_to(
            path,
            file,
            interpreter,
            session=self._session(path, state),
            position=position,
            carry=state.to_carry(),
            more=more,
            wanted=not state.own_session,
            passages=interpreter.passages,
        )

    def _session(self, path: Path, state: TranscriptState) -> Session | None:
        if state.started is None or state.own_session:
            return None
        parent, folders = state.parent, path.relative_to(self._projects).parts[1:-1]
        if not parent and "subagents" in folders[1:]:
            parent = folders[folders.index("subagents", 1) - 1]
        return Session(
            id=path.stem,
            provider=PROVIDER,
            started=state.started,
            project=project_of(state.cwd),
            cwd=state.cwd,
            branch=state.branch,
            parent=parent,
            title=state.title,
        )


def _is_sub_agent(path: Path) -> bool:
    return path.name.startswith("agent-")
