"""What a vault of few notes says to prompts that speak of them, and to prompts that don't.

    python -m bench.recall.young_vault --cases FILE [--show]

FILE holds a vault, or one on each line: ``notes`` (id, title, body, kind, trigger, entities, importance), ``speak`` (prompt, note)
and ``silent`` (prompts). For each prompt that speaks of a note, that one and the first others are put into a vault of 5, 10 and 30;
each prompt is a session's second, so that a start's list plays no part. Prints shares and the tokens of a prompt, and with
``--show`` what was missed or said for nothing.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.recall.recall_quality import Pile
from kite_memory.model.hit import Injection
from kite_memory.model.note import Note, NoteKind
from kite_memory.recall.index import Index
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.recall.recall import Recall
from kite_memory.recall.rendering import likely_tokens
from kite_memory.recall.select import Prompt, Situation
from kite_memory.recall.session_memory import SessionMemory

_SIZES = (5, 10, 30)
_WRITTEN = datetime(2026, 6, 1, tzinfo=UTC)
_KINDS = {kind.value: kind for kind in NoteKind}


def note(row: dict[str, Any]) -> Note:
    at = _WRITTEN - timedelta(days=int(row["id"][1:]))
    return Note(
        id=row["id"],
        path=f"notes/{row['id']}.md",
        kind=_KINDS.get(row["kind"], NoteKind.FACT),
        title=row["title"],
        body=row["body"],
        triggers=(row["trigger"],) if "trigger" in row else (),
        entities=tuple(row["entities"]),
        created=at,
        updated=at,
        project="young",
        importance=row["importance"],
    )


def asked(notes: list[Note], prompt: str) -> Injection:
    with tempfile.TemporaryDirectory() as home:
        index = Index(Path(home) / "index", embedder=_EMBEDDER)
        recall = Recall(index=index, memory=SessionMemory(Path(home) / "shown.sqlite"), clock=lambda: _WRITTEN + timedelta(days=1))
        pile = Pile()
        pile.add(notes)
        recall.refresh(pile)
        injection = recall.answer(Prompt(text=prompt, session="one", project="young", situation=Situation(position=1)))
        recall.close()
        return injection


_EMBEDDER = LocalEmbedder()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    text = given.cases.read_text(encoding="utf-8")
    for cases in [json.loads(text)] if given.cases.suffix == ".json" else map(json.loads, text.splitlines()):
        print(cases.get("project", given.cases.stem))
        measure(cases, show=given.show)


def measure(cases: dict[str, Any], *, show: bool) -> None:
    notes = {row["id"]: note(row) for row in cases["notes"]}
    print("notes  reached  in full  first  printed where nothing is needed   tokens of a prompt that needs one, and of the others")
    for size in _SIZES:
        reached = full = first = printed = spent = wasted = 0
        for case in cases["speak"]:
            others = [each for each in notes.values() if each.id != case["note"]]
            said = asked([notes[case["note"]], *others[: size - 1]], case["prompt"])
            pointed = [pointer.id for pointer in said.pointers]
            told = [hit.note.name for hit in said.hits]
            reached += case["note"] in (*told, *pointed)
            full += case["note"] in told
            first += case["note"] in (*told, *pointed)[:1]
            spent += likely_tokens(said.block)
            if show and case["note"] not in (*told, *pointed):
                print(f"    missed: {case['prompt']} -> {told} {pointed} ({said.reason})")
        for prompt in cases["silent"]:
            said = asked(list(notes.values())[:size], prompt)
            printed += not said.silent
            wasted += likely_tokens(said.block)
            if show and not said.silent:
                print(f"    for nothing: {prompt} -> {said.reason} {[pointer.title for pointer in said.pointers]}")
        speak, silent = len(cases["speak"]), len(cases["silent"])
        print(
            f"{min(size, len(notes)):5}  {reached:3}/{speak}   {full:3}/{speak}  {first:3}/{speak}  {printed:3}/{silent}"
            f"   {spent / speak:5.0f} {wasted / silent:5.0f}"
        )


if __name__ == "__main__":
    main()
