"""Google Antigravity's conversations, of its command line and its editor: where they lie, and reading them on from a cursor."""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kite_memory.model.event import Session
from kite_memory.model.look import Cursor, Look, Problem
from kite_memory.projects.project import project_of
from kite_memory.sources.antigravity.places import Places
from kite_memory.sources.antigravity.steps import PROVIDER, Interpreter, Thread
from kite_memory.sources.common.growing import look_at, looked, read_on, resumed
from kite_memory.sources.common.jsonl import LINE_LIMIT, AppendOnlyFile, Found
from kite_memory.system.listing import is_file, names_in

_FULL, _PLAIN = "transcript_full.jsonl", "transcript.jsonl"
_LOGS = (".system_generated", "logs")
_CONVERSATION = re.compile(r"[\w-]{1,128}")
_ANSWER = b'"PLANNER_RESPONSE"'
_BEGINNING = 1 << 20
_FRESH = 60.0
"""Seconds within which a prompt without an answer may be a helper's, of whom its agent's transcript has not told yet."""


class Antigravity:
    """Reads ``<root>/<program>/brain/<conversation>/.system_generated/logs``, where ``root`` is the folder ``~/.gemini``.

    Its own store, ``conversations/<id>.db`` or ``.pb``, is protobuf without a published schema, or encrypted: one without a
    transcript beside it is counted, not guessed at.
    """

    def __init__(
        self,
        root: Path,
        *,
        line_limit: int = LINE_LIMIT,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._programs = tuple(root / name for name in ("antigravity-cli", "antigravity", "antigravity-ide"))
        self._places = {program: Places(program, clock=clock) for program in self._programs}
        self._line_limit = line_limit
        self._now = now

    @property
    def provider(self) -> str:
        return PROVIDER

    def roots(self) -> tuple[Path, ...]:
        return tuple(program / "brain" for program in self._programs)

    def transcripts(self) -> Iterator[Path]:
        for program in self._programs:
            told: set[str] = set()
            for name in names_in(program / "brain"):
                logs = (program / "brain" / name).joinpath(*_LOGS)
                found = next((path for path in (logs / _FULL, logs / _PLAIN) if self.owns(path) and is_file(path)), None)
                if found is not None:
                    told.add(name)
                    yield found
            for name in names_in(program / "conversations"):
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
        return look_at(
            path,
            cursor,
            within=program,
            line_limit=self._line_limit,
            look=lambda file: self._look(path, file, cursor, budget, program),
        )

    def _look(self, path: Path, file: AppendOnlyFile, cursor: Cursor | None, budget: int, program: Path) -> Look:
        if path.parent.name == "conversations":
            return _left(path, file, "conversation without a transcript")
        if path.name == _PLAIN and is_file(path.with_name(_FULL)):
            return _left(path, file, "")
        name, places = path.parent.parent.parent.name, self._places[program]
        position, thread, changed = resumed(file, cursor, Thread, Thread.resumed)
        if not position:
            waited = cursor is not None
            thread.parent = places.parent_of(name, anew=waited)
            if not thread.parent and places.one_is_begun and self._may_be_a_helpers(file):
                waiting = cursor or Cursor(position=0, size=0, mtime_ns=0)
                return Look(path=str(path), session=None, events=(), problems=(), cursor=waiting)
        thread.cwd = thread.cwd or places.workspace_of(name)
        interpreter = Interpreter(file=str(path), session=name, thread=thread)
        if changed:
            interpreter.problem(0, changed)

        def tell(found: Found, at: int, line: bytes) -> None:
            interpreter.step(found.row, at + found.start, at + found.end)

        position, more = read_on(file, position, interpreter, tell, budget=budget)
        return looked(path, file, interpreter, session=_session(name, thread), position=position, carry=thread.carried(), more=more)

    def _may_be_a_helpers(self, file: AppendOnlyFile) -> bool:
        fresh = 0 <= self._now() - file.mtime_ns / 1e9 < _FRESH
        return fresh and _ANSWER not in file.between(0, min(file.size, _BEGINNING))


def _left(path: Path, file: AppendOnlyFile, reason: str) -> Look:
    """Looked at and left, until it changes."""
    cursor = Cursor(position=file.size, size=file.size, mtime_ns=file.mtime_ns)
    problems = (Problem(file=str(path), position=0, reason=reason),) if reason else ()
    return Look(path=str(path), session=None, events=(), problems=problems, cursor=cursor)


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
