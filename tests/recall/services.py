"""A recall with a vault, and a clock that stands still."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from kite_memory.model.hit import Injection
from kite_memory.model.note import Note
from kite_memory.recall.index import Index
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.recall.recall import Recall
from kite_memory.recall.select import Prompt, Weighed
from kite_memory.recall.session_memory import SessionMemory
from tests.recall.notes import DAY, Pile

LOCAL = LocalEmbedder()


class Services:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = DAY + timedelta(days=1)
        self.recall = self.opened()

    def opened(self, **settings: Any) -> Recall:
        return Recall(
            index=Index(self.folder / "index", embedder=LOCAL),
            memory=SessionMemory(self.folder / "memory.db"),
            clock=self._clock,
            **settings,
        )

    def reopened(self, **settings: Any) -> "Services":
        self.recall.close()
        self.recall = self.opened(**settings)
        return self

    def _clock(self) -> datetime:
        return self.now

    def over(self, *notes: Note) -> "Services":
        self.recall.refresh(Pile(*notes))
        return self

    def says(self, text: str, session: str = "one", project: str = "mycelia", **how: Any) -> Injection:
        return self.recall.answer(Prompt(text=text, session=session, project=project, head=text[:40]), **how)

    def ids(self, text: str, **how: Any) -> list[str]:
        return [hit.note.id for hit in self.says(text, **how).hits]

    def weighed(self, text: str, **prompt: Any) -> Weighed:
        return self.recall.weigh(Prompt(text=text, **({"project": "mycelia"} | prompt)))
