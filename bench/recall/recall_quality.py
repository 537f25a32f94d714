"""How well recall finds and how well it keeps silent, on labelled notes and prompts.

    python -m bench.recall.recall_quality --gold DIR --devnotes DIR

The rankers beside one another, and the gate on prompts that stand alone. `bench.recall.recall_gold` replays whole sessions, and
`bench.recall.fit_gate` shows how the gate does on labels it has not seen; here it has seen the gold ones, and never DEVNOTES.
Everything runs through the real index, session by session where there are sessions, so that a prompt can only be given
what was known before it. BM25 alone is measured in the same run. Prints tables; nothing of the data is written anywhere.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from kite_memory.model.note import Entry, Note, NoteKind
from kite_memory.recall import gate, search
from kite_memory.recall.index import Index
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.recall.select import Prompt, Requirement, weigh

_START = datetime(2026, 1, 1, tzinfo=UTC)
_NOW = datetime(2026, 6, 1, tzinfo=UTC)

Rank = Callable[[Index, str], list[str]]


class Pile:
    """A vault in memory."""

    def __init__(self) -> None:
        self.notes: dict[str, Note] = {}

    def add(self, notes: Iterable[Note]) -> None:
        self.notes |= {note.path: note for note in notes}

    def entries(self) -> list[Entry]:
        return [Entry(path=path, size=len(note.body), mtime_ns=1) for path, note in self.notes.items()]

    def read(self, path: str) -> Note | None:
        return self.notes.get(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A prompt, what would help with it, what was ranked for it, and the margin of the best over the threshold."""

    category: str
    relevant: frozenset[str]
    ranked: tuple[str, ...]
    margins: tuple[float, ...]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def gold_note(row: dict[str, Any], project: str) -> Note:
    rejected = "".join(f"\n\n**Rejected:** {text}" for text in row["rejected"])
    created = _START + timedelta(days=int(row["session"]))
    return Note(
        id=row["id"],
        path=f"notes/{row['id']}.md",
        kind=NoteKind(row["kind"]),
        title=row["title"],
        body=row["body"] + rejected,
        entities=tuple(row["entities"]),
        created=created,
        updated=created,
        project=project,
        importance=row["importance"],
        supersedes=tuple(row["supersedes"]),
    )


def dev_note(row: dict[str, Any]) -> Note:
    return Note(
        id=row["id"],
        path=f"notes/{row['id']}.md",
        kind=NoteKind(row["type"]) if row["type"] in set(NoteKind) else NoteKind.FACT,
        title=row["title"],
        body=row["text"],
        created=_START,
        updated=_START,
    )


def by_fusion(index: Index, text: str) -> list[str]:
    signals = index.signals(text)
    scores = search.fused(signals.cosine, signals.bm25, notes=len(signals.columns), terms=len(signals.terms))
    return _named(index, signals.columns.notes["number"], scores)


def by_words(index: Index, text: str) -> list[str]:
    signals = index.signals(text, meaning=False)
    return _named(index, signals.columns.notes["number"], np.where(signals.bm25 > 0, signals.bm25, -1))


def by_meaning(index: Index, text: str) -> list[str]:
    signals = index.signals(text, words=False)
    return _named(index, signals.columns.notes["number"], signals.cosine.astype(np.float64))


RANKERS: dict[str, Rank] = {"BM25 alone": by_words, "meaning alone": by_meaning, "fused": by_fusion}


def _named(index: Index, numbers: Any, scores: Any) -> list[str]:
    best = np.argsort(-scores, kind="stable")[:5]
    notes = index.notes(numbers[best].tolist())
    return [notes[number].id for number in numbers[best].tolist()]


def asked(index: Index, text: str, category: str, relevant: Iterable[str], project: str, limit: int = 20) -> Asked:
    prompt, bar = Prompt(text=text, project=project), Requirement(gate=gate.shipped())
    weighed = weigh(index, prompt, bar, shown=(), now=_NOW.timestamp(), limit=limit, explain_all=True)
    return Asked(
        category=category,
        relevant=frozenset(relevant),
        ranked=tuple(hit.note.id for hit in weighed.candidates),
        margins=tuple(hit.score - weighed.threshold for hit in weighed.candidates),
    )


def share(hits: Iterable[bool]) -> str:
    values = list(hits)
    return f"{100 * sum(values) / len(values):5.1f} %" if values else "    –  "


def print_ranking(name: str, index: Index, questions: Sequence[tuple[str, str, Sequence[str]]]) -> None:
    print(f"\n{name}: right note among the first k ({len(questions)} questions)")
    for ranker, rank in RANKERS.items():
        ranked = [(style, relevant, rank(index, text)) for style, text, relevant in questions]
        for style in dict.fromkeys(style for style, _, _ in questions):
            mine = [(relevant, ids) for each, relevant, ids in ranked if each == style]
            at = [share(any(one in relevant for one in ids[:k]) for relevant, ids in mine) for k in (1, 2, 5)]
            print(f"  {ranker:14} {style:12} hit@1 {at[0]}   hit@2 {at[1]}   hit@5 {at[2]}")


def print_gate(name: str, prompts: Sequence[Asked]) -> None:
    need = [prompt for prompt in prompts if prompt.relevant]
    none = [prompt for prompt in prompts if not prompt.relevant]
    print(f"\n{name}: the gate ({len(need)} prompts need a note, {len(none)} need none)")
    print(f"  right one among the first two ranked       {share(bool(prompt.relevant & {*prompt.ranked[:2]}) for prompt in need)}")
    print(f"  at the shipped threshold: right one shown  {share(bool(prompt.relevant & _shown(prompt, 0.0)) for prompt in need)}")
    for category in dict.fromkeys(prompt.category for prompt in none):
        mine = [prompt for prompt in none if prompt.category == category]
        wrong = share(bool(_shown(prompt, 0.0)) for prompt in mine)
        print(f"    false injection, {category:12}            {wrong}  of {len(mine)}")
    shown = [one in prompt.relevant for prompt in prompts for one in _shown(prompt, 0.0)]
    print(f"    precision of what is shown               {share(shown)}  of {len(shown)}")
    for bound in (0.05, 0.10, 0.20):
        offset = _offset_for(none, bound)
        right = share(bool(prompt.relevant & _shown(prompt, offset)) for prompt in need)
        print(f"  with at most {bound:4.0%} false injection: right one shown {right}  (threshold {offset:+.3f})")


def _shown(prompt: Asked, offset: float) -> set[str]:
    return {one for one, margin in list(zip(prompt.ranked, prompt.margins, strict=True))[:2] if margin >= offset}


def _offset_for(none: Sequence[Asked], bound: float) -> float:
    """The lowest threshold, relative to the shipped one, that keeps false injection on these prompts within the bound."""
    best = sorted((prompt.margins[0] if prompt.margins else -1.0 for prompt in none), reverse=True)
    return best[int(bound * len(best))] + 1e-6


def measure_devnotes(folder: Path, index: Index) -> None:
    pile = Pile()
    pile.add(dev_note(row) for row in rows(folder / "corpus.jsonl"))
    index.refresh(pile)
    queries = rows(folder / "queries.jsonl")
    print_ranking("devnotes", index, [(row["cat"], row["text"], row["gold"]) for row in queries if row["answerable"]])
    print_gate("devnotes", [asked(index, row["text"], row["cat"], row["gold"], "") for row in queries])


def measure_gold(folder: Path, index: Index) -> None:
    project = folder.name
    notes = rows(folder / "notes.jsonl")
    prompts = rows(folder / "prompts.jsonl")
    pile = Pile()
    outcomes = []
    for session in sorted({row["session"] for row in [*notes, *prompts]}):
        outcomes += [
            asked(index, row["prompt"], "own prompts", row["relevant"], project) for row in prompts if row["session"] == session
        ]
        pile.add(gold_note(row, project) for row in notes if row["session"] == session)
        index.refresh(pile)
    questions = [(row["style"], row["query"], row["relevant"]) for row in rows(folder / "queries.jsonl")]
    print_ranking(project, index, questions)
    unrelated = [asked(index, row["prompt"], "unrelated", (), project) for row in rows(folder / "unrelated.jsonl")]
    print_gate(project, [*outcomes, *unrelated])
    print_gate(f"{project}, own prompts only", outcomes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--gold", type=Path, help="a folder of labelled projects, each with notes, prompts, queries and unrelated")
    parser.add_argument("--devnotes", type=Path, help="a folder with corpus.jsonl and queries.jsonl")
    arguments = parser.parse_args()
    if not arguments.gold and not arguments.devnotes:
        parser.print_usage(sys.stderr)
        sys.exit(2)
    embedder = LocalEmbedder()
    folders = sorted(path.parent for path in arguments.gold.glob("*/notes.jsonl")) if arguments.gold else []
    for measure, folder in [
        *([(measure_devnotes, arguments.devnotes)] if arguments.devnotes else []),
        *((measure_gold, folder) for folder in folders),
    ]:
        with tempfile.TemporaryDirectory() as temporary:
            index = Index(Path(temporary), embedder=embedder)
            measure(folder, index)
            index.close()


if __name__ == "__main__":
    main()
