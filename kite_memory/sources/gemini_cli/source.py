"""Gemini CLI's sessions: their location, and reading both formats from a cursor."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from kite_memory.model.event import Cursor, ReadResult, Session
from kite_memory.projects import project_of
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common import documents
from kite_memory.sources.common.documents import DOCUMENT_LIMIT, ParsedDocument
from kite_memory.sources.common.jsonl import AppendOnlyFile, FoundObject, Unreadable, open_regular
from kite_memory.sources.common.line_source import continue_reading, read_growing, result_up_to, starting_point
from kite_memory.sources.common.words import is_inside
from kite_memory.sources.gemini_cli.messages import PROVIDER, GeminiInterpreter, GeminiState, folder_of
from kite_memory.system.private_files import folders_in, is_text

_SMALL = 1 << 20
_PER_MESSAGE = 1_000


class Gemini:
    """Source that reads ``<root>/tmp/<project>/chats``, where ``root`` is ``${GEMINI_CLI_HOME:-~}/.gemini``.

    Until 0.39 a session was one JSON document, rewritten at every change. Since then it is a file of lines: a changed message is
    written again under its id, and sometimes all messages together, shortened and with the current time. Events repeated by such a
    checkpoint stay as first returned, so reading stops before and after it. A resumed document continues as lines, in the same
    session and with the same ids. ``own_state`` is our state folder.
    """

    provider = PROVIDER

    def __init__(self, root: Path, *, own_state: Path, document_limit: int = DOCUMENT_LIMIT) -> None:
        self._root = root
        self._tmp = root / "tmp"
        self._own_folders = (own_state, own_state.resolve())
        self._document_limit = document_limit

    def roots(self) -> tuple[Path, ...]:
        return (self._tmp,)

    def transcripts(self) -> Iterator[Path]:
        for project in folders_in(self._tmp):
            found = (Path(folder, name) for folder, _, files in os.walk(project / "chats") for name in files)
            yield from self.in_order(path for path in found if self.owns(path))

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        """Sort sessions by the time in their names, before their sub-agents; a document before its lines."""
        return sorted(paths, key=lambda path: (len(path.parts), path.stem, path.suffix, str(path)))

    def owns(self, path: Path) -> bool:
        if path.suffix not in (".json", ".jsonl") or not path.is_relative_to(self._tmp):
            return False
        inside = path.relative_to(self._tmp).parts
        return len(inside) in (3, 4) and inside[1] == "chats" and ".." not in inside and is_text(path)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        if path.suffix == ".json":
            return documents.read_rewritten(
                path, cursor, within=self._tmp, limit=self._document_limit, parse=partial(self._document, path)
            )
        return read_growing(
            path,
            cursor,
            within=self._tmp,
            read=lambda file: self._read_next(path, file, cursor, budget),
            amends=True,
        )

    # A document

    def _document(self, path: Path, document: object, note: str) -> ParsedDocument | str:
        if not isinstance(document, dict) or not isinstance(messages := document.get("messages"), list):
            return "not a session"
        state = GeminiState()
        state.describe(document)
        self._settle(path, state)
        interpreter = GeminiInterpreter(file=str(path), state=state)
        for index, message in enumerate(messages):
            if isinstance(message, dict):
                interpreter.message(message, index, index, ordinal=index * _PER_MESSAGE)
            else:
                interpreter.unknown(index, "not a message")
        self._settle(path, state)
        if state.own_session or self._is_own(state):
            return ParsedDocument(session=None, messages=len(messages))
        return ParsedDocument(
            session=_session(path, state) if interpreter.events else None,
            messages=len(messages),
            events=interpreter.events,
            problems=interpreter.problems,
        )

    # Lines

    def _read_next(self, path: Path, file: AppendOnlyFile, cursor: Cursor | None, budget: int) -> ReadResult:
        position, state, changed = starting_point(file, cursor, GeminiState, GeminiState.from_carry)
        reading = _Lines(path, state, settle=self._settle)
        if changed:
            reading.interpreter.problem(0, changed)
        wanted = not state.own_session
        position, more = continue_reading(file, position, reading.interpreter, reading.read_line, budget=budget, wanted=wanted)
        state.own_session = state.own_session or self._is_own(state)
        return result_up_to(
            path,
            file,
            reading.interpreter,
            session=_session(path, state),
            position=position,
            carry=state.to_carry(),
            more=more,
            wanted=not state.own_session,
            amends=not reading.checkpoint,
        )

    # Files beside the sessions

    def _settle(self, path: Path, state: GeminiState) -> None:
        """Fill in the session's id and folder if the file does not name them."""
        state.id = state.id or path.stem[-128:]
        state.sub_agent = state.sub_agent or path.parent.parent.name == "chats"
        if not state.cwd:
            state.cwd = beginning(self._folder(path, state.hash), 4096)

    def _folder(self, path: Path, hash: str) -> str:
        """Return the project's folder from the client's notes: beside its sessions, or in the list of all projects."""
        project = self._tmp / path.relative_to(self._tmp).parts[0]
        if noted := _small_text(project / ".project_root", self._root).strip():
            return noted
        known = _projects(_small_text(self._root / "projects.json", self._root))
        by_name = next((folder for folder, name in known.items() if name == project.name), "")
        return by_name or folder_of(hash or project.name, list(known))

    def _is_own(self, state: GeminiState) -> bool:
        return is_inside(state.cwd, self._own_folders)


class _Lines:
    """Parses lines up to the budget's end, or to the next checkpoint or its end: a checkpoint is returned separately."""

    def __init__(self, path: Path, state: GeminiState, *, settle: Callable[[Path, GeminiState], None]) -> None:
        self.checkpoint = False
        self._path = path
        self._state = state
        self._settle = settle
        self._settled = False
        self.interpreter = GeminiInterpreter(file=str(path), state=state)

    def read_line(self, found: FoundObject, at: int, line: bytes) -> bool:
        """Parse a line, or return true if reading must stop before it."""
        row, begun = found.row, bool(self.interpreter.events)
        if self._state.own_session:
            return False
        if begun and _is_checkpoint(row) != self.checkpoint and _is_message(row):
            return True
        self.checkpoint = self.checkpoint if begun else _is_checkpoint(row)
        self._line(row, at + found.start, at + found.end)
        return False

    def _line(self, row: Mapping[str, Any], start: int, end: int) -> None:
        state = self._state
        ordinal = max(start, state.ordinal)
        match row:
            case {"$set": dict(changes)}:
                state.describe(changes)
                messages = changes.get("messages")
                self._begin()
                for message in messages if isinstance(messages, list) else ():
                    if isinstance(message, dict):
                        self.interpreter.message(message, start, end, ordinal=ordinal)
            case {"$rewindTo": str()}:
                pass
            case {"sessionId": str()} if "type" not in row:
                state.describe(row)
                self._begin()
            case {"type": str(), "id": str()} | {"type": str(), "timestamp": str()}:
                self._begin()
                self.interpreter.message(row, start, end, ordinal=ordinal)
            case _:
                self.interpreter.unknown(start, "unknown line")

    def _begin(self) -> None:
        """Determine the session before the first event."""
        if not self._settled:
            self._settle(self._path, self._state)
            self._settled = True


def _is_checkpoint(row: Mapping[str, Any]) -> bool:
    match row:
        case {"$set": {"messages": list()}}:
            return True
        case _:
            return False


def _is_message(row: Mapping[str, Any]) -> bool:
    return "type" in row or _is_checkpoint(row)


def _session(path: Path, state: GeminiState) -> Session | None:
    if state.started is None or not state.id:
        return None
    parent = path.parent.name if path.parent.parent.name == "chats" else ""
    return Session(
        id=state.id,
        provider=PROVIDER,
        started=state.started,
        project=project_of(state.cwd),
        cwd=state.cwd,
        parent="" if parent == state.id else parent,
        title=state.title,
    )


def _small_text(path: Path, within: Path) -> str:
    try:
        with os.fdopen(open_regular(path, within), "rb") as file:
            return file.read(_SMALL).decode("utf-8", "replace")
    except (Unreadable, OSError):
        return ""


def _projects(text: str) -> dict[str, str]:
    """Return ``{folder: name}``."""
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    match content:
        case {"projects": dict(projects)}:
            return {folder: name for folder, name in projects.items() if isinstance(name, str)}
        case _:
            return {}
