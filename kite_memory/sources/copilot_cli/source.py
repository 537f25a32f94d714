"""GitHub Copilot CLI's sessions: where they lie, and reading them on from a cursor."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from kite_memory.model.event import Session
from kite_memory.model.look import Cursor, Look
from kite_memory.projects.project import project_of
from kite_memory.sources.common.growing import look_at, looked, read_on, resumed
from kite_memory.sources.common.jsonl import LINE_LIMIT, AppendOnlyFile, Found
from kite_memory.sources.copilot_cli.lines import PROVIDER, Interpreter, Thread
from kite_memory.system.listing import is_file, is_text, names_in

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
        for name in names_in(self._sessions):
            places = (name, f"{name}/{_EVENTS_FILE}") if name.endswith(".jsonl") else (f"{name}/{_EVENTS_FILE}",)
            for place in places:
                path = self._sessions / place
                if is_text(path) and is_file(path):
                    yield path

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        return sorted(paths)

    def owns(self, path: Path) -> bool:
        if not path.is_relative_to(self._sessions) or not is_text(path):
            return False
        parts = path.relative_to(self._sessions).parts
        if ".." in parts:
            return False
        return (len(parts) == 1 and path.suffix == ".jsonl") or (len(parts) == 2 and path.name == _EVENTS_FILE)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> Look:
        return look_at(
            path,
            cursor,
            within=self._sessions,
            line_limit=self._line_limit,
            look=lambda file: self._look(path, file, cursor, budget),
        )

    def _look(self, path: Path, file: AppendOnlyFile, cursor: Cursor | None, budget: int) -> Look:
        position, thread, changed = resumed(file, cursor, Thread, Thread.resumed)
        name = path.parent.name if path.name == _EVENTS_FILE else path.stem
        interpreter = Interpreter(file=str(path), session=name, thread=thread, own_folders=self._own_folders)
        if changed:
            interpreter.problem(0, changed)

        def tell(found: Found, at: int, line: bytes) -> None:
            interpreter.line(found.row, at + found.start, at + found.end, line[found.start : found.end])

        position, more = read_on(file, position, interpreter, tell, budget=budget, wanted=not thread.ours)
        return looked(
            path,
            file,
            interpreter,
            session=_session(name, thread),
            position=position,
            carry=thread.carried(),
            more=more,
            wanted=not thread.ours,
        )


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
