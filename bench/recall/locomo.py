"""How much of what a question about long conversations needs is among the first notes found: LoCoMo, by kind of question.

    python -m bench.recall.locomo --data DIR [--forms turns sessions observations] [--samples 2] [--cache DIR]

DIR holds `locomo10.json` of snap-research/locomo (CC BY-NC 4.0: to measure with, not to ship). Each conversation becomes a vault of
its own, its turns, its sessions or its observations being the notes; questions go through the real index and the real search,
hybrid, by words alone and by meaning alone. ``--samples`` takes the first conversations only; ``--cache`` keeps vectors from one
run to the next.

Recall is the share of a question's evidence (turns; whole sessions, where sessions are the notes) that the first k notes hold.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import hashlib
import json
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from bench.recall.recall_quality import Pile
from kite_memory.model.note import Note, NoteKind
from kite_memory.recall.embedder import Embedder, Purpose, Space, Vectors
from kite_memory.recall.index import Index
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.recall.search import Mode, Query, search

Form = Literal["turns", "sessions", "observations"]

_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_MODES: tuple[Mode, ...] = ("hybrid", "keyword", "semantic")
_FIRST = (1, 2, 5, 10)
_DATE = "%I:%M %p on %d %B, %Y"
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_TURN = re.compile(r"D(\d+):(\d+)")
_SESSION = re.compile(r"session_(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A note, and the evidence behind it."""

    note: Note
    holds: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """``found`` says for each note found, best first, which of the ``wanted`` evidence it holds."""

    kind: str
    wanted: frozenset[str]
    found: tuple[frozenset[str], ...]

    def recall(self, first: int) -> float:
        return len(frozenset().union(*self.found[:first])) / len(self.wanted)

    def any(self, first: int) -> float:
        return float(any(self.found[:first]))


class Kept:
    """The embedder's vectors, remembered by text, and on disk between runs if there is a folder for them."""

    def __init__(self, embedder: Embedder, folder: Path | None) -> None:
        self._embedder = embedder
        self._file = folder / f"{embedder.space.tag}.npz" if folder else None
        self._known: dict[str, Vectors] = {}
        if self._file and self._file.exists():
            with np.load(self._file, allow_pickle=False) as held:
                self._known = dict(zip(held["names"].tolist(), held["vectors"], strict=True))

    @property
    def space(self) -> Space:
        return self._embedder.space

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        names = [f"{purpose} {hashlib.sha256(text.encode()).hexdigest()}" for text in texts]
        unknown = {name: text for name, text in zip(names, texts, strict=True) if name not in self._known}
        self._known |= dict(zip(unknown, self._embedder.embed(list(unknown.values()), purpose), strict=True))
        return np.stack([self._known[name] for name in names])

    def save(self) -> None:
        if self._file and self._known:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            np.savez(self._file, names=np.array(list(self._known)), vectors=np.stack(list(self._known.values())))


def pieces(sample: Mapping[str, Any], form: Form) -> Iterator[Piece]:
    match form:
        case "turns":
            for _, at, turns in _sessions(sample):
                for turn in turns:
                    name = turn["dia_id"]
                    title = f'{turn["speaker"]} said, "{turn["text"]}"'
                    yield Piece(note=_note(name, title, _shared(turn), at), holds=frozenset(_turns_in(name)))
        case "sessions":
            for number, at, turns in _sessions(sample):
                body = "\n".join(f"{turn['speaker']}: {turn['text']} {_shared(turn)}" for turn in turns)
                yield Piece(note=_note(f"S{number}", f"Session on {at:%d %B %Y}", body, at), holds=frozenset({f"S{number}"}))
        case "observations":
            for number, at, _ in _sessions(sample):
                result = sample["observation"].get(f"session_{number}_observation", {})
                for speaker, observed in result.items():
                    for place, (text, seen) in enumerate(observed):
                        name = f"O{number}-{speaker}-{place}"
                        yield Piece(note=_note(name, text, "", at), holds=frozenset(_turns_in(str(seen))))


def _sessions(sample: Mapping[str, Any]) -> Iterator[tuple[int, datetime, list[dict[str, Any]]]]:
    conversation = sample["conversation"]
    for key, turns in conversation.items():
        if (found := _SESSION.fullmatch(key)) and turns:
            at = datetime.strptime(conversation[f"{key}_date_time"], _DATE).replace(tzinfo=UTC)
            yield int(found.group(1)), at, turns


def _shared(turn: Mapping[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"(shares {caption})" if caption else ""


def _note(name: str, title: str, body: str, at: datetime) -> Note:
    return Note(id=name, path=f"{name}.md", kind=NoteKind.FACT, title=title, body=body, created=at, updated=at)


def _turns_in(text: str) -> Iterator[str]:
    """Evidence is written in more than one way: `D1:3`, `D8:6; D9:17`, `D01:03`."""
    for session, turn in _TURN.findall(text):
        yield f"D{int(session)}:{int(turn)}"


def _wanted(question: Mapping[str, Any], there: frozenset[str], form: Form) -> frozenset[str]:
    turns = there.intersection(name for evidence in question["evidence"] for name in _turns_in(str(evidence)))
    return frozenset(f"S{turn[1:].partition(':')[0]}" for turn in turns) if form == "sessions" else turns


def asked(sample: Mapping[str, Any], form: Form, embedder: Embedder, notes: list[int]) -> Iterator[tuple[Mode, Asked]]:
    """Questions whose evidence the conversation does not have are left out."""
    holds = {piece.note.id: piece for piece in pieces(sample, form)}
    there = frozenset().union(*(piece.holds for piece in pieces(sample, "turns")))
    notes.append(len(holds))
    vault = Pile()
    vault.add(piece.note for piece in holds.values())
    with tempfile.TemporaryDirectory() as temporary:
        index = Index(Path(temporary), embedder=embedder)
        index.refresh(vault)
        for question in sample["qa"]:
            wanted = _wanted(question, there, form)
            if not wanted:
                continue
            for mode in _MODES:
                hits = search(index, Query(text=question["question"], mode=mode, limit=_FIRST[-1]), _NOW)
                found = tuple(holds[hit.note.id].holds & wanted for hit in hits)
                yield mode, Asked(kind=_KINDS[question["category"]], wanted=wanted, found=found)
        index.close()


def print_table(form: Form, notes: Sequence[int], outcomes: Sequence[tuple[Mode, Asked]]) -> None:
    count = len(outcomes) // len(_MODES)
    print(f"\n{form} as notes: {count} questions, {sum(notes)} notes in {len(notes)} vaults")
    print(f"  {'':22}{'':>6}" + "".join(f"{f'recall@{first}':>11}" for first in _FIRST) + f"{'any@1':>9}{'any@5':>9}{'any@10':>9}")
    for kind in (*_KINDS.values(), "all"):
        for mode in _MODES:
            mine = [each for theirs, each in outcomes if theirs == mode and kind in (each.kind, "all")]
            if not mine:
                continue
            shares = [_mean([each.recall(first) for each in mine]) for first in _FIRST]
            ever = [_mean([each.any(first) for each in mine]) for first in (1, 5, 10)]
            print(
                f"  {kind:12}{mode:10}{len(mine):>6}"
                + "".join(f"{share:>11.1%}" for share in shares)
                + "".join(f"{share:>9.1%}" for share in ever)
            )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of locomo10.json")
    parser.add_argument("--forms", nargs="+", choices=get_args(Form), default=list(get_args(Form)))
    parser.add_argument("--samples", type=int, help="how many conversations, of ten")
    parser.add_argument("--cache", type=Path, help="a folder that keeps vectors between runs")
    arguments = parser.parse_args()
    samples = json.loads((arguments.data / "locomo10.json").read_text(encoding="utf-8"))[: arguments.samples]
    embedder = Kept(LocalEmbedder(), arguments.cache)
    for form in arguments.forms:
        start = time.perf_counter()
        notes: list[int] = []
        outcomes = [outcome for sample in samples for outcome in asked(sample, form, embedder, notes)]
        embedder.save()
        print_table(form, notes, outcomes)
        print(f"  in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
