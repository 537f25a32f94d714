"""What the offline extractor keeps of conversations in eight languages, and whether queries find it, without a key.

    python -m bench.extraction.languages [--embedder local|multilingual|both|none] [--half tuned|unseen|both]
        [--cases FILE] [--show]

Reads the invented sessions of `bench/cases/languages.jsonl`. Of each language every second session, in the order of the hash of
its id, was looked at when the cues were written (``tuned``); the others were not (``unseen``). Another file is read whole.

A labelled note is *covered* if one extracted item has at least half of its words (`stems`; pairs of characters where words are not
divided); *items* counts what is extracted in a session. hit@2 asks `kmem search`'s ranking for the labelled notes, all languages in
one vault; *served* is whether a prompt in the same words gets the note, in full or by its title. The last lines compare what users
have: the built-in embedder for English, the multilingual one for the other languages.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import hashlib
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.recall.recall_quality import Pile
from kite_memory.distill.offline import OfflineExtractor
from kite_memory.distill.prose import stems
from kite_memory.model.event import Event, EventType, Session, Where
from kite_memory.model.note import Chunk, Note, NoteKind
from kite_memory.recall.embedder import Embedder
from kite_memory.recall.index import Index
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.recall.multilingual_embedder import MultilingualEmbedder
from kite_memory.recall.recall import Recall
from kite_memory.recall.search import Query
from kite_memory.recall.select import Prompt, Situation
from kite_memory.recall.session_memory import SessionMemory

_CASES = Path(__file__).parents[1] / "cases" / "languages.jsonl"
_AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
_COVERED = 0.5
_KINDS = {kind.value: kind for kind in NoteKind} | {"lesson": NoteKind.INSIGHT, "procedure": NoteKind.FACT}


def tuned(cases: Sequence[dict[str, Any]]) -> frozenset[str]:
    """Return the ids of the sessions that were looked at."""
    of: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        of[case["language"]].append(case["id"])
    return frozenset(
        each for ids in of.values() for each in sorted(ids, key=lambda id: hashlib.sha256(id.encode()).hexdigest())[1::2]
    )


def chunk(case: dict[str, Any]) -> Chunk:
    events = tuple(
        Event(
            id=f"{case['id']}-{at}",
            session=case["id"],
            provider="claude-code",
            ordinal=at,
            at=_AT + timedelta(seconds=20 * at),
            type=EventType.USER_MESSAGE if message["role"] == "user" else EventType.ASSISTANT_MESSAGE,
            role=message["role"],
            text=message["text"],
            where=Where(file="languages.jsonl", start=at, end=at),
        )
        for at, message in enumerate(case["messages"])
    )
    return Chunk(id=case["id"], session=Session(id=case["id"], provider="claude-code", started=_AT), events=events)


def extracted(cases: Sequence[dict[str, Any]], show: bool) -> None:
    extractor = OfflineExtractor()
    print(f"{'language':12} {'importance 3':>12} {'all notes':>10} {'mean share':>10} {'items':>6}")
    for language in dict.fromkeys(case["language"] for case in cases):
        most, every, shares, items = [], [], [], 0
        for case in (case for case in cases if case["language"] == language):
            found = list(extractor.extract(chunk(case)).record.items())
            items += len(found)
            for note in case["notes"]:
                own = stems(note["text"])
                share = max((len(own & stems(f"{item.title} {item.body}")) / len(own) for item in found), default=0.0)
                shares.append(share)
                every.append(share >= _COVERED)
                if note["importance"] == 3:
                    most.append(share >= _COVERED)
                if show and share < _COVERED:
                    print(f"    {case['id']} {share:.2f} {note['text']}")
            if show:
                for item in found:
                    print(f"    {case['id']} + {type(item).__name__} {item.importance} {item.title}")
        sessions = sum(case["language"] == language for case in cases)
        covered = f"{sum(most):6}/{len(most):<5} {sum(every):5}/{len(every):<4}"
        print(f"{language:12} {covered} {statistics.fmean(shares):10.2f} {items / max(1, sessions):6.1f}")


def searched(cases: Sequence[dict[str, Any]], asked: frozenset[str], embedder: Embedder, show: bool) -> dict[str, list[bool]]:
    """Print the results and return, by language, whether each query found its note."""
    notes = {f"{case['id']}-{at}": (case["language"], note) for case in cases for at, note in enumerate(case["notes"])}
    with tempfile.TemporaryDirectory() as home:
        index = Index(Path(home) / "index", embedder=embedder)
        recall = Recall(index=index, memory=SessionMemory(Path(home) / "shown.sqlite"), clock=lambda: _AT + timedelta(days=1))
        pile = Pile()
        pile.add(
            Note(
                id=id, path=f"notes/{id}.md", kind=_KINDS[note["kind"]], title=note["text"], body=note["text"], created=_AT,
                updated=_AT, project="tongues", importance=note["importance"],
            )
            for id, (_, note) in notes.items()
        )  # fmt: skip
        recall.refresh(pile)
        embedder.embed(["warm"], "query")
        hits: dict[str, list[bool]] = defaultdict(list)
        served: dict[str, list[bool]] = defaultdict(list)
        elapsed: list[float] = []
        for case in (case for case in cases if case["id"] in asked):
            for at, query in enumerate(case["queries"]):
                wanted = f"{case['id']}-{query['note']}"
                begun = time.perf_counter()
                answer = recall.answer(
                    Prompt(text=query["text"], session=f"{case['id']}{at}", project="tongues", situation=Situation(position=1))
                )
                elapsed.append(time.perf_counter() - begun)
                served[case["language"]].append(
                    wanted in (*(hit.note.name for hit in answer.hits), *(pointer.id for pointer in answer.pointers))
                )
                found = recall.search(Query(text=query["text"], project="tongues", limit=2))
                hits[case["language"]].append(wanted in [hit.note.name for hit in found])
                if show and not hits[case["language"]][-1]:
                    print(f"    {wanted}: {query['text']} -> {[hit.note.title for hit in found]}")
        recall.close()
    print(f"{embedder.space.tag}: {1000 * statistics.median(elapsed):.0f} ms a prompt")
    print(f"{'language':12} {'hit@2':>8} {'served':>8}")
    for language in hits:
        count = len(hits[language])
        print(f"{language:12} {sum(hits[language]):5}/{count:<2} {sum(served[language]):5}/{count:<2}")
    return hits


def compared(hits: Mapping[str, Mapping[str, Sequence[bool]]]) -> None:
    """Print hit@2 as each language's users have it; ``hits`` are by embedder and language."""
    theirs = {language: hits["local" if language == "English" else "multilingual"][language] for language in hits["local"]}
    others = [hit for language, found in theirs.items() if language != "English" for hit in found]
    for label, found in (*theirs.items(), ("all others", others)):
        print(f"{label:12} hit@2 {sum(found):3}/{len(found):<3} {sum(found) / max(1, len(found)):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", choices=("local", "multilingual", "both", "none"), default="both")
    parser.add_argument("--half", choices=("tuned", "unseen", "both"), default="both")
    parser.add_argument("--cases", type=Path, default=_CASES)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    cases = [json.loads(line) for line in given.cases.read_text(encoding="utf-8").splitlines()]
    every = frozenset(case["id"] for case in cases)
    halves = {"tuned": tuned(cases), "unseen": every - tuned(cases)} if given.cases == _CASES else {"all": every}
    for half, ids in halves.items():
        if given.half not in (half, "both") and len(halves) > 1:
            continue
        print(f"-- {half}: {len(ids)} sessions")
        extracted([case for case in cases if case["id"] in ids], given.show)
        hits = {
            embedder.space.name: searched(cases, ids, embedder, given.show)
            for embedder in (LocalEmbedder(), MultilingualEmbedder())
            if given.embedder in (embedder.space.name, "both")
        }
        if len(hits) > 1:
            compared(hits)


if __name__ == "__main__":
    main()
