"""Kite Memory's search of conversations; with ``opening``, what it quotes unasked at the first prompt of a session."""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.peers.interface import serve
from bench.recall.recall_gold import events_of
from kite_memory.app.searching import TimelineConversations
from kite_memory.model.event import Cursor, ReadResult, RedactedResult
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.timeline.conversations import CardQuery, ConversationEmbedder
from kite_memory.timeline.store import Timeline


class Ours:
    def __init__(self, *, opening: bool) -> None:
        self._opening = opening
        local = LocalEmbedder()
        self._meaning = ConversationEmbedder(
            space=local.space.tag,
            of_texts=lambda texts: local.embed(texts, "document"),
            of_question=lambda text: local.embed([text], "query")[0],
        )

    def index(self, home: Path) -> None:
        self._timeline = Timeline(home / "timeline.sqlite")
        cursor = Cursor(position=1, size=1, mtime_ns=1)
        for file in sorted((home / ".claude" / "projects").glob("*/*.jsonl")):
            session, events = events_of(file.parent, file.name)
            changed = replace(session, project=file.parent.name.removeprefix("-home-ada-"))
            result = ReadResult(path=str(file), session=changed, events=tuple(events), problems=(), cursor=cursor)
            self._timeline.commit([RedactedResult(result)], changed.provider)
        while self._timeline.cards.rebuild():
            pass
        for _ in (home / ".claude" / "projects").iterdir():
            self._timeline.cards.rebuild()  # the thresholds of some projects at a time
        while self._timeline.vectors.embed(self._meaning, 200, per_day=10**9):
            pass

    def search(self, query: str, project: str) -> Sequence[str]:
        if self._opening:
            voices = TimelineConversations(cards=self._timeline.cards, meaning=self._meaning)
            quotes, _ = voices.opening(query, project=project, session="now")
            return [quote.session for quote in quotes]
        hits = self._timeline.cards.find(CardQuery(text=query, within=project, limit=10), self._meaning)
        return [hit.session.id for hit in hits]


if __name__ == "__main__":
    serve(Ours(opening="opening" in sys.argv))
