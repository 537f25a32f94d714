"""Cline's and Roo Code's tasks, in editors and in the terminal."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from kite_memory.model.event import Cursor, ReadResult, Session
from kite_memory.projects import project_of
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.cline.messages import ClineInterpreter, Origin, Shown, shown_of
from kite_memory.sources.common.documents import DOCUMENT_LIMIT, ParsedDocument, read_document, read_rewritten
from kite_memory.sources.common.event_builder import title_of
from kite_memory.sources.common.jsonl import Unreadable
from kite_memory.sources.common.tool_text import moment
from kite_memory.sources.common.words import is_inside
from kite_memory.system.private_files import folders_in, is_file, is_text

HISTORY = "api_conversation_history.json"
SHOWN = "ui_messages.json"

_FACTS_LIMIT = 8 * 1024 * 1024
_EPOCH = datetime.fromtimestamp(0, UTC)


class VscodeTasks:
    """Source that reads ``<storage>/tasks/<task>/``, one session each; a storage is the folder that an editor gives the extension.

    The transcript is the conversation with the model, or, if it is missing, the messages shown. A task's other documents only add
    to it. ``own_state`` is our state folder: sessions that ran there are never read.
    """

    def __init__(self, provider: str, storages: Iterable[Path], *, own_state: Path, limit: int = DOCUMENT_LIMIT) -> None:
        self._provider = provider
        self._storages = tuple(dict.fromkeys(storages))
        self._tasks = tuple(storage / "tasks" for storage in self._storages)
        self._own_folders = (own_state, own_state.resolve())
        self._limit = limit

    @property
    def provider(self) -> str:
        return self._provider

    def roots(self) -> tuple[Path, ...]:
        return self._tasks

    def flat_roots(self) -> tuple[Path, ...]:
        return ()

    def stamp(self, path: Path) -> tuple[int, int]:
        """Return size and time; the time also changes when the editor has shown more messages."""
        found = path.stat()
        return found.st_size, max(found.st_mtime_ns, _changed(path.with_name(SHOWN)))

    def transcripts(self) -> Iterator[Path]:
        for root in self.roots():
            for task in folders_in(root):
                path = next((path for name in (HISTORY, SHOWN) if is_file(path := task / name)), None)
                if path is not None and is_text(path):
                    yield path

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        """Sort transcripts, without shown messages that have a conversation beside them."""
        return sorted(path for path in paths if path.name != SHOWN or not is_file(path.with_name(HISTORY)))

    def owns(self, path: Path) -> bool:
        return path.name in (HISTORY, SHOWN) and is_text(path) and path.parent.parent in self._tasks and path.parent.name != ".."

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        """Read a document as a whole, whatever the budget."""
        beside = _changed(path.with_name(SHOWN))
        read_result = read_rewritten(path, cursor, within=path.parent.parent, limit=self._limit, parse=partial(self._parse, path))
        return (
            replace(read_result, cursor=replace(read_result.cursor, mtime_ns=max(read_result.cursor.mtime_ns, beside)))
            if read_result.cursor.size
            else read_result
        )

    def _parse(self, path: Path, document: object, note: str) -> ParsedDocument | str:
        shown = document if path.name == SHOWN else self._document(path.with_name(SHOWN))
        if isinstance(shown, str):
            return shown
        if not isinstance(document, list):
            return "not a list of messages"
        facts = self._facts(path.parent)
        origin = Origin(
            provider=self._provider,
            session=path.parent.name,
            file=str(path),
            cwd=facts.get("workspace", ""),
            started=_named_moment(path.parent.name),
            by_an_agent=bool(facts.get("parentTaskId")),
        )
        return self.read_document(origin, document, shown_of(shown), facts, note, alone=path.name == SHOWN)

    def read_document(
        self, origin: Origin, messages: list[Any], shown: list[Shown], facts: Mapping[str, str], note: str, *, alone: bool = False
    ) -> ParsedDocument:
        interpreter = ClineInterpreter(origin, shown, reported_to=int(note) if note.isdecimal() else 0)
        if alone:
            interpreter.shown_only()
        else:
            interpreter.history(messages)
        cwd = interpreter.cwd
        if is_inside(cwd, self._own_folders):
            return ParsedDocument(session=None, messages=len(messages))
        session = Session(
            id=origin.session,
            provider=self._provider,
            started=moment(facts.get("started")) or interpreter.started or _EPOCH,
            project=project_of(cwd),
            cwd=cwd,
            branch=facts.get("branch", ""),
            parent=facts.get("parentTaskId", ""),
            title=title_of(facts.get("task", "")),
        )
        return ParsedDocument(
            session=session if interpreter.events else None,
            messages=len(messages),
            events=interpreter.events,
            problems=interpreter.problems,
            note=str(interpreter.last),
        )

    def _document(self, path: Path) -> object:
        """Return another document of a task, a reason to wait while it is being written, or nothing if it is missing."""
        if not is_file(path):
            return []
        try:
            value = read_document(path, within=path.parent.parent, limit=self._limit).value
        except (Unreadable, OSError):
            return []
        return "half-written document" if value is None else value

    def _facts(self, task: Path) -> dict[str, str]:
        """Return a task's folder, parent task and title."""
        facts = texts_of(self._fact(task / "history_item.json"))
        if not facts:
            listed = self._fact(task.parent.parent / "state" / "taskHistory.json")
            entries = listed if isinstance(listed, list) else []
            facts = next((texts_of(entry) for entry in entries if isinstance(entry, dict) and entry.get("id") == task.name), {})
        facts.setdefault("workspace", facts.pop("cwdOnTaskInitialization", ""))
        if not facts["workspace"]:
            facts["workspace"] = texts_of(self._fact(task / "task_metadata.json")).get("workspace", "")
        return facts

    def _fact(self, path: Path) -> object:
        return fact(path, within=path.parent.parent)


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _named_moment(task: str) -> datetime | None:
    """Return when a task began: Cline names it after the millisecond."""
    return moment(int(task)) if task.isdecimal() and 12 <= len(task) <= 14 else None


def fact(path: Path, *, within: Path) -> object:
    """Return the content of a small document; ``None`` if it is missing or still being written."""
    try:
        return read_document(path, within=within, limit=_FACTS_LIMIT).value if is_file(path) else None
    except (Unreadable, OSError):
        return None


def texts_of(value: object) -> dict[str, str]:
    return {key: beginning(text, 4096) for key, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}


ROO_PROVIDER = "roo-code"


class RooCode(VscodeTasks):
    """Roo Code's tasks. ``storages`` are the editors' folders named ``rooveterinaryinc.roo-cline``."""

    def __init__(self, storages: Iterable[Path], *, own_state: Path) -> None:
        super().__init__(ROO_PROVIDER, storages, own_state=own_state)


PROVIDER = "cline"

_MESSAGES = ".messages.json"


class Cline(VscodeTasks):
    """Cline's tasks. ``storages`` are the editors' folders named ``saoudrizwan.claude-dev``, and Cline's own ``~/.cline/data``.

    The latter also has ``sessions/<session>/<session>.messages.json``, each with its metadata beside it.
    """

    def __init__(self, storages: Iterable[Path], *, own_state: Path) -> None:
        super().__init__(PROVIDER, storages, own_state=own_state)
        self._sessions = tuple(storage / "sessions" for storage in self._storages)

    def roots(self) -> tuple[Path, ...]:
        return (*super().roots(), *self._sessions)

    def transcripts(self) -> Iterator[Path]:
        yield from super().transcripts()
        for root in self._sessions:
            for session in folders_in(root):
                path = session / f"{session.name}{_MESSAGES}"
                if is_file(path) and self.owns(path):
                    yield path

    def owns(self, path: Path) -> bool:
        if path.parent.parent in self._sessions:
            return path.name == f"{path.parent.name}{_MESSAGES}" and path.parent.name != ".." and is_text(path)
        return super().owns(path)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        if path.name.endswith(_MESSAGES):
            within = path.parent.parent
            return read_rewritten(path, cursor, within=within, limit=self._limit, parse=partial(self._parse_session, path))
        return super().read(path, cursor, budget=budget)

    def _parse_session(self, path: Path, document: Any, note: str) -> ParsedDocument | str:
        messages = document.get("messages") if isinstance(document, dict) else document
        if not isinstance(messages, list):
            return "not a list of messages"
        name = path.parent.name
        header = fact(path.with_name(f"{name}.json"), within=path.parent.parent)
        facts = texts_of(header)
        match header:
            case {"metadata": {"title": str(title)}}:
                facts["task"] = title
            case _:
                pass
        match header:
            case {"metadata": {"git": {"branch": str(branch)}}}:
                facts["branch"] = beginning(branch, 200)
            case _:
                pass
        started = facts.pop("started_at", "") or facts.pop("created_at", "")
        if moment(started):
            facts["started"] = started
        cwd = facts.get("cwd") or facts.get("workspace_root", "")
        origin = Origin(provider=PROVIDER, session=name, file=str(path), cwd=cwd, bare=True)
        return self.read_document(origin, messages, [], facts, note)
