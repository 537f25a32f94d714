"""What was reported as a person's prompt, beside what somebody labelled as one."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

QUEUED, REFUSING = "typed while the agent worked", "said in refusing a tool call"
INTERRUPTED, SHELL, STOPPED = "an interruption, which has no words", "a command past the agent", "said by a hook"
_MARKS = {"[Request interrupted": INTERRUPTED, "<bash-input>": SHELL, "Operation stopped by hook": STOPPED}
_REFUSED = "the user said:"


@dataclass(slots=True, kw_only=True)
class PromptCounts:
    """``both`` are events that are read and labelled. The kinds in ``persons`` are a person's words all the same, as the source's
    own line says; those in ``not_prompts`` are none, whatever the label.
    """

    prompts: int = 0
    labelled: int = 0
    both: int = 0
    missed: Counter[str] = field(default_factory=Counter)
    besides: Counter[str] = field(default_factory=Counter)
    persons = frozenset({QUEUED, REFUSING})
    not_prompts = frozenset(_MARKS.values())


def prompts_reported(database: sqlite3.Connection, gold: Path) -> Iterator[tuple[str, PromptCounts]]:
    """By labelled project. Only sessions that were labelled count: the first of each project was not."""
    for labels in sorted(gold.glob("*/prompts.jsonl")):
        rows = [json.loads(line) for line in labels.read_text(encoding="utf-8").splitlines() if line.strip()]
        sessions: dict[str, dict[str, str]] = {}
        for row in rows:
            sessions.setdefault(row["session"], {})[row["event"]] = row["prompt"]
        files = [line.split("\t") for line in labels.with_name("sessions.tsv").read_text(encoding="utf-8").splitlines()]
        result = PromptCounts()
        for number, _, name, *_ in files:
            if number in sessions:
                _compare(database, name.removesuffix(".jsonl"), sessions[number], result)
        yield labels.parent.name, result


def _compare(database: sqlite3.Connection, session: str, labelled: dict[str, str], counts: PromptCounts) -> None:
    prompts = {
        event[:8]: (file, start, end)
        for event, file, start, end in database.execute(
            "SELECT e.id, f.path, e.start, e.end FROM events AS e JOIN sessions AS s ON s.key = e.session"
            " JOIN files AS f ON f.key = e.file WHERE s.id = ? AND e.type = 'user_message'",
            (session,),
        )
    }
    counts.prompts += len(prompts)
    counts.labelled += len(labelled)
    counts.both += len(prompts.keys() & labelled.keys())
    for event in labelled.keys() - prompts.keys():
        said = labelled[event]
        counts.missed[next((kind for mark, kind in _MARKS.items() if said.startswith(mark)), "a prompt that was missed")] += 1
    for event in prompts.keys() - labelled.keys():
        counts.besides[_kind(*prompts[event])] += 1


def _kind(file: str, start: int, end: int) -> str:
    """What the agent's own line says of words that no one labelled."""
    with Path(file).open("rb") as lines:
        lines.seek(start)
        row: Any = json.loads(lines.read(end - start))
    match row:
        case {"type": "queue-operation", "operation": "enqueue"}:
            return QUEUED
        case {"type": "attachment", "attachment": {"type": "queued_command", "commandMode": "prompt"}}:
            return QUEUED
        case {"type": "user", "message": {"content": [{"type": "tool_result"}, *beside]}} if _has_words(beside):
            return QUEUED
        case {"type": "user", "message": {"content": [{"type": "tool_result", "content": str(said)}]}}:
            return REFUSING if _REFUSED in said else "in a tool's result"
        case _:
            return "no prompt, as far as anybody can tell"


def _has_words(blocks: list[Any]) -> bool:
    """Since 2.1.19 what was typed meanwhile may stand on the line of a tool's result, in a block of its own."""
    return any(block.get("type") == "text" and not block.get("text", "").startswith("<") for block in blocks)
