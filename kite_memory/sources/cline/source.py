"""Cline's tasks, in editors and in the terminal."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from kite_memory.model.look import Cursor, Look
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.cline.messages import Origin
from kite_memory.sources.cline.tasks import VscodeTasks, fact, texts_of
from kite_memory.sources.common.documents import Told, look_at
from kite_memory.sources.common.fields import moment
from kite_memory.system.listing import folders_in, is_file, is_text

PROVIDER = "cline"
EXTENSION = "saoudrizwan.claude-dev"

_MESSAGES = ".messages.json"


class Cline(VscodeTasks):
    """``storages`` are the folders named `EXTENSION` that editors keep, and Cline's own ``~/.cline/data``.

    The last also has ``sessions/<session>/<session>.messages.json``, each with its facts beside it.
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

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> Look:
        if path.name.endswith(_MESSAGES):
            within = path.parent.parent
            return look_at(path, cursor, within=within, limit=self._limit, tell=partial(self._tell_session, path))
        return super().read(path, cursor, budget=budget)

    def _tell_session(self, path: Path, document: Any, note: str) -> Told | str:
        messages = document.get("messages") if isinstance(document, dict) else document
        if not isinstance(messages, list):
            return "not a list of messages"
        name = path.parent.name
        told = fact(path.with_name(f"{name}.json"), within=path.parent.parent)
        facts = texts_of(told)
        match told:
            case {"metadata": {"title": str(title)}}:
                facts["task"] = title
            case _:
                pass
        match told:
            case {"metadata": {"git": {"branch": str(branch)}}}:
                facts["branch"] = beginning(branch, 200)
            case _:
                pass
        started = facts.pop("started_at", "") or facts.pop("created_at", "")
        if moment(started):
            facts["started"] = started
        cwd = facts.get("cwd") or facts.get("workspace_root", "")
        origin = Origin(provider=PROVIDER, session=name, file=str(path), cwd=cwd, bare=True)
        return self.told(origin, messages, [], facts, note)
