"""claude-session-search (PyPI): the query of its web page, without the page."""

from collections.abc import Sequence
from pathlib import Path

from cc_search import indexer, server

from bench.peers.interface import serve, sessions_of


class ClaudeSessionSearch:
    def index(self, home: Path) -> None:
        self._home = home
        indexer.reindex()

    def search(self, query: str, project: str) -> Sequence[str]:
        there = sessions_of(self._home, project)
        found = server.api_search({"q": query, "limit": "200"})["results"]
        return [row["session_id"] for row in found if row["session_id"] in there]


if __name__ == "__main__":
    serve(ClaudeSessionSearch())
