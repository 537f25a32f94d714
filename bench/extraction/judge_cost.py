"""How large the judge's call is.

    python -m bench.extraction.judge_cost --gold DIR [--judged 0.6]

For every labelled prompt of DIR/<project>/prompts.jsonl the question is put together as the judge would send it: with twenty
notes of earlier sessions, those that share most words with the prompt first, and filled up with others where there are
fewer; with what the agent said last at its full bound, for the labels do not hold it. Nothing is sent.

Tokens are reckoned at four characters each, as for English prose, and at most, as the budget books them. `--judged` is the
share of prompts that come before the judge at all.
"""

import argparse
import json
import re
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kite_memory.distill import extractor
from kite_memory.distill.extractor import tokens_at_most
from kite_memory.distill.judge import MOST_CANDIDATES, judge_prompt
from kite_memory.model.hit import Hit, Question
from kite_memory.model.note import Note, NoteKind
from kite_memory.paths import asset_folder

_AT = datetime(2026, 1, 1, tzinfo=UTC)
_EXCHANGE = "What the agent said last, in words of ordinary length, as a summary of work would have them. " * 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Tokens of one call: ``plain`` at four characters each, ``booked`` at most."""

    plain: float
    booked: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True, metavar="DIR")
    parser.add_argument("--judged", type=float, default=0.6, metavar="SHARE", help="of all prompts (0.6)")
    arguments = parser.parse_args()
    prompt = extractor.load_prompt([Path(asset_folder("prompts"))], "judge")
    fixed = prompt.system + json.dumps(prompt.schema)

    print(f"the fixed part alone: {len(fixed) / 4:.0f} tokens at four characters each")
    print(f"{'project':16} {'prompts':>7}   {'mean':>6} {'median':>6} {'p95':>6} {'most':>6}   {'booked: mean':>12} {'most':>6}")
    everything: list[Size] = []
    for folder in sorted(path.parent for path in arguments.gold.glob("*/prompts.jsonl")):
        sizes = list(_sizes(folder, fixed))
        everything += sizes
        _print(folder.name, sizes)
    if not everything:
        print("no labelled prompts there", file=sys.stderr)
        return 1
    _print("all", everything)
    mean = statistics.mean(size.plain for size in everything)
    print(f"tokens for each prompt of a session, where {arguments.judged:.0%} are judged: {mean * arguments.judged:.0f}")
    return 0


def _sizes(folder: Path, fixed: str) -> Iterator[Size]:
    notes = [(row["session"], _hit(row, folder.name)) for row in _rows(folder / "notes.jsonl")]
    for row in _rows(folder / "prompts.jsonl"):
        words = _words(row["prompt"])
        earlier_first = sorted(notes, key=lambda note: (note[0] >= row["session"], -len(words & _words(note[1].note.body))))
        question = Question(
            session=row["session"],
            project=folder.name,
            prompt=row["prompt"],
            exchange=_EXCHANGE,
            candidates=tuple(hit for _, hit in earlier_first[:MOST_CANDIDATES]),
        )
        text = judge_prompt(question)
        yield Size(plain=len(fixed + text) / 4, booked=tokens_at_most(fixed) + tokens_at_most(text))


def _hit(row: dict[str, Any], project: str) -> Hit:
    rejected = "; ".join(row.get("rejected", []))
    body = f"{row['body']}\n\n**Rejected:** {rejected}" if rejected else row["body"]
    kind = NoteKind(row["kind"])
    note = Note(
        id=row["id"], path=f"{row['id']}.md", kind=kind, title=row["title"], body=body, created=_AT, updated=_AT, project=project
    )
    return Hit(note=note, score=0.5, why="")


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9_./-]{4,}", text.lower()))


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


def _print(name: str, sizes: Sequence[Size]) -> None:
    plain = sorted(size.plain for size in sizes)
    booked = [size.booked for size in sizes]
    spread = (
        f"{statistics.mean(plain):6.0f} {statistics.median(plain):6.0f} {plain[int(0.95 * (len(plain) - 1))]:6.0f} {plain[-1]:6.0f}"
    )
    print(f"{name:16} {len(sizes):7}   {spread}   {statistics.mean(booked):12.0f} {max(booked):6}")


if __name__ == "__main__":
    sys.exit(main())
