"""claude-session-index (PyPI): its full-text search of whole sessions."""

from collections.abc import Sequence
from pathlib import Path

from session_index.indexer import SessionIndexer
from session_index.search import SessionSearch

from bench.peers.interface import serve, sessions_of


class ClaudeSessionIndex:
    def index(self, home: Path) -> None:
        self._home = home
        indexer = SessionIndexer()
        indexer.connect()
        indexer.backfill_all()
        indexer.close()
        self._search = SessionSearch()
        self._search.connect()

    def search(self, query: str, project: str) -> Sequence[str]:
        there = sessions_of(self._home, project)
        return [row["session_id"] for row in self._search.search(query, limit=200) if row["session_id"] in there]


if __name__ == "__main__":
    serve(ClaudeSessionIndex())
