"""Chats, and what opens a later session of their project: is the chat that decided the matter found and quoted, the newer first?

    python -m bench.timeline.openings CASES.jsonl [--half first|second]

A line of CASES is a project: its ``chats`` with their messages, the ``opening`` of a later session, the ``deciding`` chat, the one
that it ``superseded`` if any, and in what words the matter was ``settled``. The chats of all projects go into one real timeline.
Beside our cards, the same openings are asked of a plain FTS5 over the same project's messages.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import json
import re
import sqlite3
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kite_memory.app.searching import TimelineConversations
from kite_memory.model.event import Cursor, Event, EventType, ReadResult, RedactedResult, Session, Where
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.recall.rendering import estimated_tokens
from kite_memory.timeline.conversations import CardQuery, ConversationEmbedder
from kite_memory.timeline.store import Timeline
from kite_memory.wiring.models import meaning_of

Json = dict[str, Any]
PROVIDER = "claude-code"


def look_of(project: str, chat: Json) -> RedactedResult:
    """One chat, as a transcript would bring it."""
    began = datetime.fromisoformat(chat["date"]).replace(tzinfo=UTC, hour=9)
    session = Session(id=chat["id"], provider=PROVIDER, started=began, project=project, cwd=f"/home/ada/{project}")
    path = f"/chats/{chat['id']}.jsonl"
    events = tuple(
        Event(
            id=f"{number:08x}-{chat['id']}",
            session=session.id,
            provider=PROVIDER,
            ordinal=number,
            at=began + timedelta(minutes=2 * number),
            role="user" if message["role"] == "user" else "assistant",
            type=EventType.USER_MESSAGE if message["role"] == "user" else EventType.ASSISTANT_MESSAGE,
            text=message["text"],
            where=Where(file=path, start=number, end=number),
        )
        for number, message in enumerate(chat["messages"])
    )
    return RedactedResult(
        ReadResult(path=path, session=session, events=events, problems=(), cursor=Cursor(position=1, size=1, mtime_ns=1))
    )


def filled(folder: Path, cases: Sequence[Json]) -> Timeline:
    timeline = Timeline(folder / "timeline.sqlite")
    for case in cases:
        timeline.commit([look_of(case["project"], chat) for chat in case["chats"]], PROVIDER)
    while timeline.cards.rebuild():
        pass
    for _ in cases:
        timeline.cards.rebuild()  # the thresholds of some projects at a time
    return timeline


def plain(case: Json) -> list[str]:
    """The project's chats by the best of their messages, as FTS5 has them."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE m USING fts5(text, chat UNINDEXED, tokenize = 'porter unicode61')")
    database.executemany(
        "INSERT INTO m VALUES (?, ?)", [(each["text"], chat["id"]) for chat in case["chats"] for each in chat["messages"]]
    )
    wanted = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"[^\W_]+", case["opening"].lower())))
    return list(dict.fromkeys(chat for (chat,) in database.execute("SELECT chat FROM m WHERE m MATCH ? ORDER BY rank", (wanted,))))


def places(ranked: Sequence[Sequence[str]], cases: Sequence[Json]) -> str:
    found = [list(ids).index(case["deciding"]) if case["deciding"] in ids else 99 for ids, case in zip(ranked, cases, strict=True)]
    both = [(ids, case) for ids, case in zip(ranked, cases, strict=True) if case["superseded"]]
    newer = sum(_before(ids, case["deciding"], case["superseded"]) for ids, case in both)
    return "  ".join(f"{sum(place < most for place in found):3}" for most in (1, 2, 5)) + f"   newer first {newer} of {len(both)}"


def _before(ids: Sequence[str], one: str, other: str) -> bool:
    return one in ids and (other not in ids or ids.index(one) < ids.index(other))


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.lower()))


def settled_share(case: Json, texts: Sequence[str]) -> float:
    wanted = words_of(case["settled"])
    return max((len(wanted & words_of(text)) / len(wanted) for text in texts), default=0.0)


def measure(timeline: Timeline, cases: Sequence[Json], meaning: ConversationEmbedder) -> None:
    voices = TimelineConversations(cards=timeline.cards, meaning=meaning)
    plainly, ours, pointed, quoting, quoted, well, superseded, tokens = [], [], 0, 0, 0, 0, 0, []
    for case in cases:
        plainly.append(plain(case))
        hits = timeline.cards.find(CardQuery(text=case["opening"], within=case["project"], limit=10), meaning)
        ours.append(list(dict.fromkeys(hit.session.id for hit in hits)))
        quotes, pointers = voices.opening(case["opening"], project=case["project"], session="now")
        pointed += case["deciding"] in [*(each.session for each in quotes), *(each.session for each in pointers)]
        quoting += bool(quotes)
        tokens += [estimated_tokens(quote.text) for quote in quotes]
        if texts := [quote.text for quote in quotes if quote.session == case["deciding"]]:
            quoted += 1
            well += settled_share(case, texts) >= 0.8
        first = [*(each.session for each in quotes), *(each.session for each in pointers)][:1]
        superseded += bool(case["superseded"]) and first == [case["superseded"]]
    print(f"plain FTS5 over messages   first/two/five {places(plainly, cases)}")
    print(f"cards                      first/two/five {places(ours, cases)}   of {len(cases)}")
    print(f"openings above the project's own bar {quoting}; deciding chat pointed at or quoted {pointed}, quoted {quoted}")
    print(
        f"quotes with .8 of the settled words {well}; superseded first {superseded}; longest quote {max(tokens, default=0)} tokens"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--half", choices=("first", "second"))
    asked = parser.parse_args()
    cases = [json.loads(line) for line in asked.cases.read_text(encoding="utf-8").splitlines()]
    local = LocalEmbedder()
    meaning = meaning_of(local)
    middle = len(cases) // 2
    with tempfile.TemporaryDirectory() as folder:
        timeline = filled(Path(folder), cases)
        while timeline.vectors.embed(meaning, 200, per_day=10**9):
            pass
        for half, part in (("first", cases[:middle]), ("second", cases[middle:])):
            if asked.half in (None, half):
                print(f"{half} half: {len(part)} projects, {sum(len(case['chats']) for case in part)} chats")
                measure(timeline, part, meaning)
        timeline.close()


if __name__ == "__main__":
    main()
