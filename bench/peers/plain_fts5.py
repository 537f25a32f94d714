"""SQLite's FTS5 over the messages of the transcripts, and nothing else: what a peer must beat to be worth its packages."""

import json
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.peers.interface import serve


class PlainFts5:
    def index(self, home: Path) -> None:
        self._database = sqlite3.connect(home / "plain.sqlite")
        self._database.execute(
            "CREATE VIRTUAL TABLE m USING fts5(text, project UNINDEXED, session UNINDEXED, tokenize = 'porter unicode61')"
        )
        for file in sorted((home / ".claude" / "projects").glob("*/*.jsonl")):
            project = file.parent.name.removeprefix("-home-ada-")
            with file.open(encoding="utf-8") as lines:
                texts = [text for line in lines if (text := _text(json.loads(line)))]
            self._database.executemany("INSERT INTO m VALUES (?, ?, ?)", [(text, project, file.stem) for text in texts])
        self._database.commit()

    def search(self, query: str, project: str) -> Sequence[str]:
        wanted = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"[^\W_]+", query.lower())))
        asked = "SELECT session FROM m WHERE m MATCH ? AND project = ? ORDER BY rank LIMIT 50"
        return [session for (session,) in self._database.execute(asked, (wanted, project))]


def _text(line: dict[str, Any]) -> str:
    if line.get("type") not in ("user", "assistant"):
        return ""
    content = line.get("message", {}).get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part.get("type") == "text")


if __name__ == "__main__":
    serve(PlainFts5())
