"""What becomes of notes that contradict or repeat one another when they go through the planner.

    python -m bench.vault.lifecycle --gold DIR [--recorded ANSWERS --out DIR] [--transcripts DIR --orders 5] [--every]

With ``--pairs FILE`` instead of ``--gold``, invented pairs of notes are taken: a line of JSON each, with ``older``, ``newer`` and
whether the one ``replaces`` the other. All go into one vault, the older ones first; then each pair into a vault of its own.

DIR holds one labelled project (notes.jsonl with ``supersedes``), or one folder for each. Every labelled note is drafted, held
against what the real recall finds near to it, planned into a real vault and made findable, in the order of its sessions; so each
labelled pair ends up as replaced outright, as a conflict for review, or as nothing. Once without a model, and once with an oracle
in its place, which answers what it is asked from the labels: what the machinery itself would give. With ``--recorded`` also with a
model's answers, kept as files as `bench.extraction.recorded` has them; what is not answered yet is written to ``OUT/missing``. All
labelled notes are taken for the person's word.

The weights of the signals are fitted to these labels, and are few; ``left out`` fits them to the other project alone, and says how
many labelled pairs are among as many as are put to review with those that ship.

With ``--transcripts`` the offline extractor reads the labelled sessions, and what it makes goes into one vault for each project: in
the order of time and in random ones, planned without looking around, and with. A note repeats another of its project and kind that
comes within a cosine of 0.92 or shares 0.8 of its words; the share of notes that repeat an earlier one is printed.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.extraction.extract_gold import whole
from bench.recall.recall_gold import Labelled, commit, events_of, labelled
from kite_memory.distill.condense import FREE, worth_asking
from kite_memory.distill.extractor import Answer
from kite_memory.distill.offline import OfflineExtractor
from kite_memory.model.note import (
    Amend,
    Chunk,
    Contest,
    Create,
    Note,
    NoteKind,
    NoteStatus,
    Rejected,
    Ruling,
    Supersede,
    Surroundings,
)
from kite_memory.paths import asset_folder
from kite_memory.recall.embedder import Embedder, Purpose, Space, Vectors
from kite_memory.recall.index import Index
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.recall.prose import passages
from kite_memory.recall.recall import Recall
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.timeline.store import Timeline
from kite_memory.vault import Vault
from kite_memory.vault.drafting import Draft, Memo, draft, entities_of, remembered
from kite_memory.vault.lifecycle import Likeness, likeness, nearer
from kite_memory.vault.notefile import FOLDERS
from kite_memory.vault.wording import note_id, note_stem, words
from kite_memory.vault.writing import AlreadyWritten, Amended, Superseded, Written

Json = dict[str, Any]
Pair = tuple[str, str]
Rulings = dict[Pair, Ruling]
Reader = Callable[[Sequence[Contest], Collection[str]], Rulings]
"""Says of each contest what the newer note does; it knows the ids of the older notes that are replaced by the labels."""

_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_BEFORE = 160
_COSINE, _WORDS = 0.92, 0.8


class Remembering:
    """An embedder that reckons each text once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[tuple[str, str], Vectors] = {}

    @property
    def space(self) -> Space:
        return self._embedder.space

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        missing = [text for text in dict.fromkeys(texts) if (text, purpose) not in self._known]
        if missing:
            for text, vector in zip(missing, self._embedder.embed(missing, purpose), strict=True):
                self._known[text, purpose] = vector
        return np.stack([self._known[text, purpose] for text in texts])


@contextmanager
def opened(embedder: Embedder) -> Iterator[tuple[Vault, Recall]]:
    with tempfile.TemporaryDirectory(prefix="kmem-bench-") as folder:
        home = Path(folder)
        with Vault(home / "vault", home / "vault.sqlite") as vault:
            vault.ensure(Path(asset_folder("vault_template")))
            recall = Recall(index=Index(home / "index", embedder=embedder), memory=SessionMemory(home / "index" / "shown.sqlite"))
            try:
                yield vault, recall
            finally:
                recall.close()


def written(vault: Vault, recall: Recall, drafts: Sequence[Draft], **how: Any) -> list[Create | Amend | Supersede]:
    """Planned, carried out, and findable."""
    actions = vault.planner.plan(drafts, **how)
    outcomes = vault.planner.carry_out(actions)
    paths = {outcome.path for outcome in outcomes if isinstance(outcome, Written | Amended | AlreadyWritten | Superseded)}
    paths |= {outcome.old_path for outcome in outcomes if isinstance(outcome, Superseded)}
    recall.refresh(vault.notes, hint=paths)
    return [action for action in actions if isinstance(action, Create | Amend | Supersede)]


@dataclass(slots=True, kw_only=True)
class Ended:
    """What became of a project's labelled pairs: by labels' ids, the newer first."""

    notes: int = 0
    labelled: set[Pair] = field(default_factory=set)
    replaced: set[Pair] = field(default_factory=set)
    reviewed: set[Pair] = field(default_factory=set)
    absorbed: set[str] = field(default_factory=set)
    asked: int = 0
    pairs: list[tuple[Likeness, bool]] = field(default_factory=list)


def label_drafts(project: Labelled) -> Iterator[tuple[Json, Draft]]:
    for place, row in enumerate(project.rows("notes.jsonl")):
        at = _BEGAN + timedelta(days=int(row["session"]), seconds=place)
        kind = NoteKind(row["kind"])
        entities = entities_of(row["entities"])
        rejected = tuple(
            Rejected(alternative=one.get("alternative", ""), reason=one.get("reason", ""))
            if isinstance(one, dict)
            else Rejected(alternative=str(one), reason="")
            for one in row.get("rejected") or ()
        )
        note = Note(
            id=note_id(at, project.name, str(row["id"])),
            path=f"{FOLDERS[kind]}/{note_stem(row['title'], at)}.md",
            kind=kind,
            title=row["title"],
            body=row["body"],
            created=at,
            updated=at,
            aliases=(row["title"],),
            entities=tuple(entity.name for entity in entities),
            project=project.name,
            evidence=(f"labels:{row['session']}#{place:08x}",),
            origin="user",
            importance=row["importance"],
        )
        yield row, Draft(note=note, rejected=rejected, entities=entities)


def oracle(contests: Sequence[Contest], replaced: Collection[str]) -> Rulings:
    return {(each.newer.id, each.older.id): "replaces" if each.older.id in replaced else "neither" for each in contests}


def superseded(project: Labelled, embedder: Embedder, reader: Reader | None) -> Ended:
    ended = Ended()
    label_of: dict[str, str] = {}
    with opened(embedder) as (vault, recall):
        for row, made in label_drafts(project):
            label = str(row["id"])
            gold = {(label, str(old)) for old in row.get("supersedes") or ()}
            ended.notes += 1
            ended.labelled |= gold
            around = vault.planner.around([made], recall.nearest)
            _figures(ended, made.note, around.get(made.note.id), label, label_of, gold)
            contests = vault.planner.contests([made], around)
            rulings: Rulings = {}
            if reader is not None:
                ended.asked += len(contests)
                rulings = reader(contests, {id for id, other in label_of.items() if (label, other) in gold})
            label_of[made.note.id] = label
            stems = {Path(known.path).stem: label_of[known.id] for known in vault.known.all() if known.id in label_of}
            for action in written(vault, recall, [made], around=around, rulings=rulings):
                match action:
                    case Supersede(old_id=old) if old in label_of:
                        ended.replaced.add((label, label_of[old]))
                    case Amend(absorbs=absorbed) if absorbed:
                        ended.absorbed.add(label)
                if isinstance(action, Create | Supersede):
                    ended.reviewed |= {(label, stems[stem]) for stem in action.note.conflicts if stem in stems}
    return ended


def _figures(
    ended: Ended, note: Note, around: Surroundings | None, label: str, label_of: Mapping[str, str], gold: set[Pair]
) -> None:
    for near, by in zip(around.near, nearer(around), strict=True) if around else ():
        alike = likeness(note, near.note, by) if near.note.status is NoteStatus.ACCEPTED else None
        if alike is not None:
            ended.pairs.append((alike, (label, label_of.get(near.note.id, "")) in gold))


def _columns(pairs: Sequence[tuple[Likeness, bool]]) -> npt.NDArray[np.float64]:
    return np.array([[each.nearer, *astuple(each.difference)] for each, _ in pairs])


def fitted(pairs: Sequence[tuple[Likeness, bool]]) -> npt.NDArray[np.float64]:
    """Weights and level of a logistic regression, a little held back."""
    result, labels = _columns(pairs), np.array([gold for _, gold in pairs], np.float64)
    mean, spread = result.mean(axis=0), result.std(axis=0) + 1e-9
    rows = np.column_stack([(result - mean) / spread, np.ones(len(result))])
    held = np.append(np.ones(result.shape[1]), 0.0)
    weights = np.zeros(rows.shape[1])
    for _ in range(60):
        likely = 1 / (1 + np.exp(-rows @ weights))
        curve = (rows * (likely * (1 - likely))[:, None]).T @ rows + np.diag(held + 1e-9)
        weights -= np.linalg.solve(curve, rows.T @ (likely - labels) + held * weights)
    slopes = weights[:-1] / spread
    return np.append(slopes, weights[-1] - float(slopes @ mean))


def found_when_left_out(ends: Mapping[str, Ended]) -> tuple[int, list[npt.NDArray[np.float64]]]:
    """Labelled pairs among as many as are put to review or replaced, by weights fitted to the other projects."""
    ranked: list[tuple[float, bool]] = []
    weights = []
    for name, ended in ends.items():
        others = [pair for other, each in ends.items() if other != name for pair in each.pairs]
        learned = fitted(others)
        weights.append(learned)
        scores = _columns(ended.pairs) @ learned[:-1] + learned[-1]
        ranked += [(float(score), gold) for score, (_, gold) in zip(scores, ended.pairs, strict=True)]
    room = sum(len(each.replaced | each.reviewed) for each in ends.values())
    return sum(gold for _, gold in sorted(ranked, key=lambda each: -each[0])[:room]), weights


def summary_of(name: str, ends: Sequence[Ended]) -> str:
    labels = sum(len(each.labelled) for each in ends)
    notes = sum(each.notes for each in ends)
    outright = sum(len(each.labelled & each.replaced) for each in ends)
    right = sum(len(each.labelled & (each.replaced | each.reviewed)) for each in ends)
    wrongly = sum(len(each.replaced - each.labelled) for each in ends)
    doubted = sum(len(each.reviewed - each.labelled) for each in ends)
    asked = sum(each.asked for each in ends)
    return (
        f"{name:24} {labels:6} {outright:9} {outright / max(1, labels):6.2f} {right:9} {right / max(1, labels):6.2f}"
        f" {100 * wrongly / max(1, notes):9.1f} {100 * doubted / max(1, notes):9.1f} {100 * asked / max(1, notes):9.1f}"
    )


def records(project: Labelled, transcripts: Path) -> list[list[list[Draft]]]:
    """Of each session, of each chunk, the drafts."""
    extractor = OfflineExtractor()
    sessions: list[list[list[Draft]]] = []
    with tempfile.TemporaryDirectory(prefix="kmem-bench-") as home:
        timeline = Timeline(Path(home, "timeline.sqlite"))
        try:
            for _, file in project.sessions():
                session, read = events_of(transcripts, file)
                commit(timeline, session, read)
                session = replace(session, project=project.name)
                events = timeline.events.of_session(session.provider, session.id)
                chunks: list[list[Draft]] = []
                for span in whole(events, FREE):
                    within = tuple(event for event in events if span.first <= event.ordinal <= span.last)
                    if not worth_asking(within):
                        continue
                    before = [event for event in events if event.ordinal < span.first][-_BEFORE:]
                    noted = sum(map(len, chunks))
                    outcome = extractor.extract(
                        Chunk(id=span.id, session=session, events=within, before=tuple(before), noted=noted)
                    )
                    if isinstance(outcome, Answer):
                        chunks.append(draft(outcome.record, Chunk(id=span.id, session=session, events=within)))
                sessions.append(chunks)
        finally:
            timeline.close()
    return sessions


@dataclass(slots=True, kw_only=True)
class Repeated:
    drafts: int = 0
    notes: int = 0
    repeats: int = 0
    replaced: int = 0
    reviewed: int = 0
    shown: list[tuple[str, str, float, float]] = field(default_factory=list)

    def __str__(self) -> str:
        rate = 100 * self.repeats / max(1, self.notes)
        return f"{self.drafts:7} {self.notes:7} {self.repeats:8} {rate:7.2f} % {self.replaced:9} {self.reviewed:9}"


def repeated(sessions: Sequence[Sequence[Sequence[Draft]]], embedder: Embedder, *, looks: bool) -> Repeated:
    count = Repeated()
    with opened(embedder) as (vault, recall):
        for chunks in sessions:
            for drafts in chunks:
                count.drafts += len(drafts)
                written(vault, recall, drafts, around=vault.planner.around(drafts, recall.nearest) if looks else None)
        notes = [
            note
            for entry in vault.notes.entries()
            if (note := vault.notes.read(entry.path)) is not None and note.kind is not NoteKind.ENTITY
        ]
    count.notes = len(notes)
    count.replaced = sum(note.status is NoteStatus.SUPERSEDED for note in notes)
    count.reviewed = sum(bool(note.conflicts) for note in notes)
    vectors = embedder.embed([passages(note)[0] for note in notes], "document")
    said = [words(f"{note.title}\n{note.body}") for note in notes]
    for place, note in enumerate(notes):
        for other in range(place):
            if (note.kind, note.project) != (notes[other].kind, notes[other].project):
                continue
            cosine = float(vectors[place] @ vectors[other])
            shared = len(said[place] & said[other]) / max(1, min(len(said[place]), len(said[other])))
            if cosine >= _COSINE or shared >= _WORDS:
                count.repeats += 1
                count.shown.append((note.path, notes[other].path, cosine, shared))
                break
    return count


@dataclass(slots=True, kw_only=True)
class Met:
    """What became of invented pairs: how many real ones were put to review, and how many others."""

    pairs: int = 0
    true: int = 0
    replaced: int = 0
    surfaced: int = 0
    wrongly: int = 0
    missed: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        precision = self.surfaced / max(1, self.surfaced + self.wrongly)
        return f"{self.pairs:6} {self.true:6} {self.replaced:9} {self.surfaced:9} {self.wrongly:8} {precision:10.2f}"


def stated(fields: Json | str, at: datetime) -> Draft:
    if isinstance(fields, str):
        fields = {"title": fields.split(". ")[0].rstrip("."), "body": fields, "kind": "fact", "entities": []}
    entities = entities_of(fields["entities"])
    memo = Memo(
        text=fields["body"],
        kind=NoteKind(fields["kind"]) if fields["kind"] in set(NoteKind) else NoteKind.FACT,
        title=fields["title"],
        project="invented",
        evidence=(f"labels:{at:%Y%m%d%H}#00000001",),
    )
    made = remembered(memo, at)
    return Draft(note=replace(made, entities=tuple(each.name for each in entities)), entities=entities)


def met(rows: Sequence[Json], embedder: Embedder) -> Met:
    found = Met(pairs=len(rows), true=sum(bool(row["replaces"]) for row in rows))
    ids: dict[str, str] = {}
    with opened(embedder) as (vault, recall):
        for place, (name, row) in enumerate([("older", row) for row in rows] + [("newer", row) for row in rows]):
            made = stated(row[name], _BEGAN + timedelta(hours=place))
            around = vault.planner.around([made], recall.nearest)
            actions = written(vault, recall, [made], around=around)
            ids |= {f"{name} {row['id']}": Path(each.note.path).stem for each in actions if isinstance(each, Create | Supersede)}
            if name == "older":
                continue
            found.replaced += any(isinstance(each, Supersede) for each in actions)
            listed = {stem for each in actions if isinstance(each, Create | Supersede) for stem in each.note.conflicts}
            right = ids.get(f"older {row['id']}") in listed
            found.surfaced += right and bool(row["replaces"])
            found.wrongly += len(listed) - (right and bool(row["replaces"]))
            if right != bool(row["replaces"]) or len(listed) > right:
                found.missed.append(f"{row['id']} {'missed' if not listed else 'reported'}: {json.dumps(row)}")
    return found


def of_pairs(rows: Sequence[Json], *, every: bool) -> None:
    embedder = Remembering(LocalEmbedder())
    print(f"{'':22} {'pairs':>6} {'true':>6} {'replaced':>9} {'surfaced':>9} {'wrongly':>8} {'precision':>10}")
    together = met(rows, embedder)
    print(f"{'in one vault':22} {together}")
    alone = [met([row], embedder) for row in rows]
    summed = Met(
        pairs=len(rows),
        true=sum(each.true for each in alone),
        replaced=sum(each.replaced for each in alone),
        surfaced=sum(each.surfaced for each in alone),
        wrongly=sum(each.wrongly for each in alone),
    )
    print(f"{'each in one of its own':22} {summed}")
    if every:
        print("\n".join(together.missed))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path)
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--transcripts", type=Path)
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--every", action="store_true", help="each labelled pair and each wrong one, by name")
    given = parser.parse_args(arguments)
    if given.pairs is not None:
        of_pairs([json.loads(line) for line in given.pairs.read_text(encoding="utf-8").splitlines()], every=given.every)
        return
    projects = labelled(given.gold) if given.gold is not None else []
    if not projects:
        sys.exit("error: no labels there")
    embedder = Remembering(LocalEmbedder())
    print(f"{'':24} {'labels':>6} {'replaced':>9} {'':>6} {'or put to':>9} {'':>6} {'wrongly':>9} {'wrongly':>9} {'asked':>9}")
    print(f"{'':24} {'':>6} {'outright':>9} {'share':>6} {'review':>9} {'share':>6} {'per 100':>9} {'reviewed':>9} {'per 100':>9}")
    readers: dict[str, Reader | None] = {"without a model": None, "with an oracle": oracle}
    for name, reader in readers.items():
        ends = {project.name: superseded(project, embedder, reader) for project in projects}
        for each, ended in ends.items():
            print(summary_of(f"{name}, {each}", [ended]), flush=True)
        print(summary_of(name, list(ends.values())))
        print(f"{'':24} {sum(len(each.absorbed) for each in ends.values())} labelled notes went into another one")
        if reader is None and len(ends) > 1:
            right, weights = found_when_left_out(ends)
            print(f"{'left out':24} {right} labelled pairs among as many put to review or replaced")
            for learned in weights:
                print(f"{'':24} weights {np.round(learned, 1)}")
            print(f"{'':24} all together {np.round(fitted([pair for each in ends.values() for pair in each.pairs]), 1)}")
        if given.every:
            for each, ended in ends.items():
                for pair in sorted(ended.labelled | ended.replaced | ended.reviewed):
                    marks = (
                        "label" if pair in ended.labelled else "",
                        "replaced" if pair in ended.replaced else "review" if pair in ended.reviewed else "",
                    )
                    print(f"    {each} {pair[0]} -> {pair[1]} {' '.join(filter(None, marks))}")
    if given.transcripts is None:
        return
    shuffled = random.Random(6)
    print(f"\n{'order':12} {'looks':8} {'drafts':>7} {'notes':>7} {'repeats':>8} {'':>9} {'replaced':>9} {'conflicts':>9}")
    made = {project.name: records(project, given.transcripts) for project in projects}
    for order in range(given.orders + 1):
        counts = {looks: Repeated() for looks in (False, True)}
        for sessions in made.values():
            ordered = list(sessions)
            if order:
                shuffled.shuffle(ordered)
            for looks, count in counts.items():
                of_one = repeated(ordered, embedder, looks=looks)
                count.drafts += of_one.drafts
                count.notes += of_one.notes
                count.repeats += of_one.repeats
                count.replaced += of_one.replaced
                count.reviewed += of_one.reviewed
                if given.every:
                    for one, other, cosine, shared in of_one.shown:
                        print(f"    {cosine:.2f} {shared:.2f} {one} | {other}")
        for looks, count in counts.items():
            print(f"{'time' if not order else f'random {order}':12} {'around' if looks else 'no':8} {count}", flush=True)


if __name__ == "__main__":
    main()
