"""What a timeline holds, beside what the transcripts hold, read with no code of ours."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

_ENDS = {
    "claude-code": (frozenset({"tool_use"}), "id", frozenset({"tool_result"}), "tool_use_id"),
    "codex": (
        frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call", "web_search_call"}),
        "call_id",
        frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"}),
        "call_id",
    ),
    "copilot-cli": (frozenset({"tool.execution_start"}), "toolCallId", frozenset({"tool.execution_complete"}), "toolCallId"),
}
"""How calls and results are called, and named, in the lines of agents that write them apart. The others write them in one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """``answered`` are the names of those whose result is reported too."""

    total: int = 0
    answered: frozenset[str] = frozenset()
    with_result: int = 0


def counted(database: sqlite3.Connection, query: str) -> dict[str, int]:
    return dict(database.execute(query).fetchall())


def twice(database: sqlite3.Connection, real: Set[Path]) -> list[tuple[str, str, str]]:
    """Provider, type and words of events from ``real`` files that stand under several ids and are one thing all the same."""
    seen: set[tuple[str, str, str, str]] = set()
    doubled: list[tuple[str, str, str]] = []
    for provider, file, kind, call, at, text in database.execute(
        "SELECT s.provider, f.path, e.type, e.call, e.at, e.text FROM events AS e JOIN sessions AS s ON s.key = e.session"
        " JOIN files AS f ON f.key = e.file WHERE e.type IN ('user_message', 'assistant_message')"
        " OR e.type IN ('tool_call', 'tool_result') AND e.call <> ''"
    ):
        if Path(file) not in real or provider not in _ENDS:
            continue
        it = (provider, kind, call, "") if call else (provider, kind, at, text)
        if it in seen:
            doubled.append((provider, kind, call or text))
        seen.add(it)
    return doubled


def calls(database: sqlite3.Connection) -> dict[str, Calls]:
    """By provider."""
    answered: dict[str, set[str]] = defaultdict(set)
    counts: dict[str, Counter[bool]] = defaultdict(Counter)
    for provider, name, with_result in database.execute(
        "SELECT s.provider, c.call, EXISTS (SELECT 1 FROM events AS r WHERE r.session = c.session AND r.parent = c.id"
        " AND r.type = 'tool_result') FROM events AS c JOIN sessions AS s ON s.key = c.session WHERE c.type = 'tool_call'"
    ):
        counts[provider][bool(with_result)] += 1
        if with_result:
            answered[provider].add(name)
    return {
        provider: Calls(total=count.total(), with_result=count[True], answered=frozenset(answered[provider]))
        for provider, count in counts.items()
    }


def in_both(provider: str, paths: Iterable[Path]) -> set[str]:
    """The names of calls of which the lines hold both call and result; none for agents that write them in one."""
    called: set[str] = set()
    answered: set[str] = set()
    if provider not in _ENDS:
        return called
    calling, call_name, answering, answer_name = _ENDS[provider]
    for path in paths:
        for line in path.read_bytes().splitlines():
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            for kind, part in _parts(row):
                if kind in calling and isinstance(name := part.get(call_name), str):
                    called.add(name)
                if kind in answering and isinstance(name := part.get(answer_name), str):
                    answered.add(name)
    return called & answered


def _parts(row: Any) -> Iterator[tuple[object, dict[str, Any]]]:
    """What a line is called and what it holds: its payload, its data, the blocks of its message."""
    match row:
        case {"payload": dict(payload)}:
            yield payload.get("type"), payload
        case {"type": kind, "data": dict(data)}:
            yield kind, data
        case {"type": "user" | "assistant", "message": {"content": list(content)}}:
            yield from ((block.get("type"), block) for block in content if isinstance(block, dict))
        case {"type": kind}:
            yield kind, row
        case _:
            return
