"""Run the real distillation over labelled sessions, and say how much of what is worth keeping it found.

    python -m bench.extraction.extract_gold --gold DIR --transcripts DIR --extractor offline --out DIR
        [--cut sessions|live] [--no-gate]
    python -m bench.extraction.extract_gold --gold DIR --transcripts DIR --extractor recorded:ANSWERS --out DIR
    python -m bench.extraction.extract_gold --settled bench/cases/settled.jsonl

DIR holds one labelled project (notes.jsonl, sessions.tsv), or one folder for each; `score.py` lies beside the labels. Every session
is read by the real source, redacted, committed to a real timeline, cut into chunks, distilled, passed through the gate, drafted and
planned into a real vault, one for each project. Notes that wait for review are notes; the table says how many there are.

``--cut sessions`` distils what is over, as a backfill does; ``live`` cuts wherever the daemon would have while the session ran, by
the times of its events. ``recorded:ANSWERS`` asks no one: a model's answer to a chunk is read from ``ANSWERS/<key>.json`` (or
``.txt``), where the key is a hash of the chunk's condensed text and of the prompt with its schema. A missing one is counted,
and what would have been asked is written to ``OUT/missing/<key>.json``, so that no matter who has a model can answer it. A model's
chunks are cut by the policy for what costs.

OUT/<project>/notes.jsonl and order.jsonl are what the scorer reads; beside them is the same with a simple card for each turn.
Last comes what the gate makes of the labelled notes themselves, which people wrote: with the evidence they name, and with that of
another note of the same session.

``--fit`` chooses the bar of the offline extractor by two of the projects and reports the one left out, for each of them; then
nothing else is printed. A bar is the better, the nearer the two projects come to what is wanted of them. ``--settled`` takes
invented chats in which a person settles a rule, and prints which share of the rule's words one note of the offline extractor has.
"""

import argparse
import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from bench.extraction.recorded import Answers
from bench.recall.recall_gold import Labelled, labelled
from kite_memory.app.pipeline import redacted
from kite_memory.distill.condense import FREE, ChunkPolicy, Span, finished, worth_asking
from kite_memory.distill.extractor import Answer, Extractor, Outcome, Refused, Usage, load_prompt
from kite_memory.distill.model_extractor import NOTHING, admitted, question, stretches_of
from kite_memory.distill.offline import OfflineExtractor
from kite_memory.distill.offline.extractor import WorthThreshold
from kite_memory.distill.offline.wording import sentences_of, turns
from kite_memory.distill.quality_gate import PROPOSED, apply_quality_gate
from kite_memory.extensions.contract import extractor_contract
from kite_memory.extensions.contract import extractor_contract as invented
from kite_memory.model.event import Event, EventType, EvidenceReference, Provenance, ReadResult, RedactedResult, Session
from kite_memory.model.note import (
    Amend,
    Chunk,
    Create,
    Decision,
    Fact,
    Insight,
    Note,
    NoteStatus,
    Origin,
    Preference,
    Record,
    RecordItem,
    Topic,
)
from kite_memory.paths import asset_folder
from kite_memory.sources.claude_code.source import ClaudeCode
from kite_memory.timeline.store import Timeline
from kite_memory.vault import Vault
from kite_memory.vault.drafting import draft

Json = dict[str, Any]
Cut = Callable[[Sequence[Event], ChunkPolicy], Iterator[Span]]

_LIMIT = 60_000
_WORTH_A_CARD, _ASKED, _SAID = 80, 300, 700
_BEFORE = 160
"""As the pipeline has it."""

_KINDS: dict[str, type[Decision | Insight | Fact | Preference]] = {
    "decision": Decision,
    "insight": Insight,
    "fact": Fact,
    "preference": Preference,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A model whose answers are kept as files."""

    answers: Answers
    name: str = "recorded"

    @property
    def version(self) -> str:
        return f"recorded:{self.answers.prompt.version}"

    def estimate(self, chunk: Chunk) -> Usage:
        return Usage()

    def extract(self, chunk: Chunk) -> Outcome:
        stretches = stretches_of([chunk], limit_chars=_LIMIT)
        text = self.answers.to(question(stretches)) if stretches[0].condensed.ids else None
        return next(admitted(text, stretches, self.answers.prompt)) if text is not None else NOTHING


@dataclass(slots=True)
class Tally:
    sessions: int = 0
    chunks: int = 0
    seconds: float = 0.0
    notes: int = 0
    most: int = 0
    proposed: int = 0
    skipped: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def summary(self, name: str) -> str:
        per = f"{self.notes / max(1, self.sessions):.1f} notes a session (at most {self.most})"
        speed = f"{1000 * self.seconds / max(1, self.chunks):.1f} ms a chunk"
        return (
            f"{name:10} {self.sessions} sessions, {self.chunks} chunks, {speed}; {self.notes} notes, {per};"
            f" {self.proposed} of them wait for review; {self.skipped} planned away"
        )


def whole(events: Sequence[Event], policy: ChunkPolicy) -> Iterator[Span]:
    """A session that is over."""
    yield from finished(events, policy, quiet_for=float("inf"))


def live(events: Sequence[Event], policy: ChunkPolicy) -> Iterator[Span]:
    """A session as it ran: after each event there was silence until the next one."""
    begun = 0
    for at, event in enumerate(events):
        quiet = (events[at + 1].at - event.at).total_seconds() if at + 1 < len(events) else float("inf")
        if quiet < policy.idle:
            continue
        last = None
        for last in finished(events[begun : at + 1], policy, quiet_for=quiet):
            yield last
        while last is not None and begun <= at and events[begun].ordinal <= last.last:
            begun += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    extractor: Extractor
    transcripts: Path
    out: Path
    cut: Cut
    policy: ChunkPolicy

    def project(self, project: Labelled) -> Tally:
        tally = Tally()
        folder = self.out / project.name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        notes: list[Json] = []
        order: list[Json] = []
        cards: list[Json] = []
        with (
            tempfile.TemporaryDirectory(prefix="kmem-bench-") as home,
            Vault(Path(home, "vault"), Path(home, "vault.sqlite")) as vault,
        ):
            vault.ensure(Path(asset_folder("vault_template")))
            timeline = Timeline(Path(home, "timeline.sqlite"))
            try:
                for number, file in project.sessions():
                    whole = whole_look(self.transcripts, file)
                    assert whole.session is not None
                    session = replace(whole.session, project=project.name)
                    whole = replace(whole, session=session)
                    timeline.commit([RedactedResult(whole)], session.provider)
                    events = timeline.events.of_session(session.provider, session.id)
                    cards += cards_of(number, events)
                    order.append({"session": number, "events": list(dict.fromkeys(event.id[:8] for event in events))})
                    made = self._session(vault, timeline, session, events, tally)
                    notes += [scored_form(note, number, session) for note in made]
                    tally.sessions += 1
                    tally.notes += len(made)
                    tally.most = max(tally.most, len(made))
                    tally.proposed += sum(note.status is NoteStatus.PROPOSED for note in made)
            finally:
                timeline.close()
        _write(folder / "notes.jsonl", notes)
        _write(folder / "order.jsonl", order)
        beside = folder / "with-cards"
        beside.mkdir(mode=0o700, exist_ok=True)
        _write(beside / "notes.jsonl", notes + cards)
        _write(beside / "order.jsonl", order)
        return tally

    def _session(self, vault: Vault, timeline: Timeline, session: Session, events: Sequence[Event], tally: Tally) -> list[Note]:
        """What the session gave: notes of its own, and what an earlier note was amended with."""
        place = {event.ordinal: at for at, event in reversed(list(enumerate(events)))}
        provenance = timeline.provenance(session.project)
        made: dict[str, Note] = {}
        for span in self.cut(events, self.policy):
            within = tuple(event for event in events if span.first <= event.ordinal <= span.last)
            if not worth_asking(within):
                continue
            begins = place[span.first]
            chunk = Chunk(
                id=span.id,
                session=session,
                events=within,
                before=tuple(events[max(0, begins - _BEFORE) : begins]),
                noted=len(made),
                provenance=provenance,
            )
            started = time.perf_counter()
            outcome = self.extractor.extract(chunk)
            tally.seconds += time.perf_counter() - started
            tally.chunks += 1
            match outcome:
                case Answer(record=record, refused_items=refused):
                    tally.refused.update(map(str, refused))
                case Refused(reason=reason):
                    tally.refused[reason] += 1
                    continue
                case _:
                    sys.exit(f"error: {outcome}")
            drafts = {each.note.id: each.note for each in draft(record, chunk)}
            actions = vault.planner.plan(draft(record, chunk))
            ids = {action.note.id for action in actions if isinstance(action, Create)}
            ids |= {action.absorbs for action in actions if isinstance(action, Amend)}
            made |= {id: note for id, note in drafts.items() if id in ids}
            tally.skipped += len(drafts.keys() - ids)
            vault.planner.carry_out(actions)
        return list(made.values())


def cards_of(number: str, events: Sequence[Event]) -> list[Json]:
    """A card for each turn, as the timeline may have one: what was asked, and how the agent's last word begins."""
    cards: list[Json] = []
    for turn in turns(tuple(events)):
        last = next((each for each in reversed(turn.events) if each.type is EventType.ASSISTANT_MESSAGE), None)
        if last is None or len(last.text) < _WORTH_A_CARD:
            continue
        asked = turn.events[0].text[:_ASKED] if turn.events[0].role == "user" else ""
        said = " ".join(each.text for each in sentences_of(last, last.text))[:_SAID]
        cards.append(
            {"session": number, "kind": "card", "title": asked, "body": said, "evidence": [last.id[:8], turn.events[0].id[:8]]}
        )
    return cards


def scored_form(note: Note, number: str, session: Session) -> Json:
    references = [EvidenceReference.parse(text) for text in note.evidence]
    return {
        "session": number,
        "kind": note.kind.value,
        "title": note.title,
        "body": note.body,
        "evidence": [each.event for each in references if each is not None and each.session == session.id],
    }


def _write(path: Path, rows: Sequence[Json]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def script(project: Labelled) -> Path | None:
    return next((path for folder in (project.folder, project.folder.parent) if (path := folder / "score.py").exists()), None)


def scored(scorer: Path, gold: Path, made: Path) -> str:
    asked = [sys.executable, str(scorer), "extract", str(gold), str(made / "notes.jsonl"), str(made / "order.jsonl")]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


def together(projects: Sequence[Labelled], out: Path) -> Path:
    """All projects as one: the scorer knows sessions by number only."""
    whole_gold = out / "all"
    whole_gold.mkdir(mode=0o700, parents=True, exist_ok=True)
    gold: list[Json] = []
    for name in ("notes", "order"):
        made = []
        for project in projects:
            text = (out / project.name / f"{name}.jsonl").read_text(encoding="utf-8")
            made += [_of(project, json.loads(line)) for line in text.splitlines()]
        _write(whole_gold / f"{name}.jsonl", made)
    for project in projects:
        gold += [_of(project, row) for row in project.rows("notes.jsonl")]
    (whole_gold / "gold").mkdir(mode=0o700, exist_ok=True)
    _write(whole_gold / "gold" / "notes.jsonl", gold)
    return whole_gold


def _of(project: Labelled, row: Json) -> Json:
    return {**row, "session": f"{project.name}/{row['session']}"}


def gate_on_labels(projects: Sequence[Labelled], transcripts: Path) -> dict[str, Counter[str]]:
    """What the gate says to notes that people wrote, with their own evidence and with that of the third note after them.

    All sessions of a project have been read before, also those after a note's own. Whose word a note is, the labels do not say: of
    the claims that its evidence allows, the one counts that the gate has least against.
    """
    found: dict[str, Counter[str]] = {"its own": Counter(), "another's": Counter()}
    for project in projects:
        with tempfile.TemporaryDirectory(prefix="kmem-bench-") as home:
            timeline = Timeline(Path(home, "timeline.sqlite"))
            try:
                _gate_on_labels_of(project, transcripts, timeline, found)
            finally:
                timeline.close()
    return found


def _gate_on_labels_of(project: Labelled, transcripts: Path, timeline: Timeline, found: Mapping[str, Counter[str]]) -> None:
    files = dict(project.sessions())
    looks = {number: whole_look(transcripts, file) for number, file in files.items()}
    for look in looks.values():
        assert look.session is not None
        timeline.commit([RedactedResult(replace(look, session=replace(look.session, project=project.name)))], look.session.provider)
    provenance = timeline.provenance(project.name)
    for number, look in looks.items():
        labels = [row for row in project.rows("notes.jsonl") if row["session"] == number]
        known = {event.id: event for event in look.events}
        for at, label in enumerate(labels):
            other = labels[(at + 3) % len(labels)]
            for name, evidence in (("its own", label["evidence"]), ("another's", other["evidence"])):
                items = _as_items(label, [event for event in look.events if event.id[:8] in evidence])
                records = (Record(topics=(Topic(name="label", summary="", items=(item,)),)) for item in items)
                verdicts = min((apply_quality_gate(record, known, frozenset(), provenance)[1] for record in records), key=len)
                found[name].update(map(str, verdicts or ("let through",)))


def _as_items(label: Json, evidence: Sequence[Event]) -> tuple[RecordItem, ...]:
    """Return a label as an item of each origin that its evidence allows."""
    roles = {event.role for event in evidence}
    spoken: tuple[Origin, ...] = ("user", "assistant")
    claims: tuple[Origin, ...] = tuple(origin for origin in spoken if origin in roles) or ("tool",)
    return tuple(
        _KINDS[label["kind"]](
            title=label["title"],
            body=label["body"],
            evidence=tuple(event.id for event in evidence),
            importance=label["importance"],
            origin=origin,
        )
        for origin in claims
    )


@cache
def whole_look(transcripts: Path, file: str) -> ReadResult:
    """Of a whole transcript what the pipeline would commit."""
    path = next(transcripts.rglob(file))
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "projects" / "here" / file
        copy.parent.mkdir(parents=True)
        shutil.copyfile(path, copy)
        return redacted(ClaudeCode(Path(scratch), own_state=Path(scratch) / "state").read(copy, None, budget=1 << 30))


def _open(
    record: Record, events: Mapping[str, Event], prompt: frozenset[str], provenance: Provenance | None = None
) -> tuple[Record, tuple[str, ...]]:
    """In the gate's place: everything may pass."""
    return record, ()


_WANTED = {"importance 3": 0.45, "all": 0.36, "preference": 0.30, "matching": 0.45}
_LEAST, _INCREASE = (2.5, 2.7, 2.9), (0.12, 0.13, 0.14)
_COUNTED = re.compile(r"^covered (?P<what>.+?): (?P<part>\d+)/(?P<whole>\d+)", re.MULTILINE)
_NOTES = re.compile(r"that match a gold note (?P<part>\d+)/(?P<whole>\d+)")

Counts = Mapping[str, tuple[int, int]]


def counts_of(report: str) -> Counts:
    """What the scorer counted: parts and wholes by name."""
    found = {each["what"]: (int(each["part"]), int(each["whole"])) for each in _COUNTED.finditer(report)}
    ranks = [found.get(f"importance {rank}", (0, 0)) for rank in (1, 2, 3)]
    found["all"] = (sum(part for part, _ in ranks), sum(whole for _, whole in ranks))
    if notes := _NOTES.search(report):
        found["matching"] = (int(notes["part"]), int(notes["whole"]))
    return found


def shares(counts: Sequence[Counts]) -> dict[str, float]:
    return {
        name: sum(each[name][0] for each in counts if name in each) / max(1, sum(each[name][1] for each in counts if name in each))
        for name in _WANTED
    }


def nearness(found: Mapping[str, float]) -> float:
    """How near the shares are to the wanted ones. More than wanted counts a little, so that there is one best bar."""
    return sum(min(1.0, found[name] / wanted) + 0.05 * found[name] for name, wanted in _WANTED.items())


def fit(bench: Bench, projects: Sequence[Labelled], scorer: Path) -> None:
    """Print each project by the bar that suits the others best."""
    counts: dict[tuple[WorthThreshold, str], Counts] = {}
    most: dict[tuple[WorthThreshold, str], int] = {}
    bars = [WorthThreshold(least=least, increase=increase) for least, increase in itertools.product(_LEAST, _INCREASE)]
    for bar, project in itertools.product(bars, projects):
        tried = replace(bench, extractor=OfflineExtractor(gate=_open, threshold=bar), out=bench.out / f"{bar.least}-{bar.increase}")
        most[bar, project.name] = tried.project(project).most
        counts[bar, project.name] = counts_of(scored(scorer, project.folder, tried.out / project.name))
    print(f"{'left out':18} {'least':>6} {'increase':>8} " + " ".join(f"{name:>12}" for name in _WANTED) + f" {'most':>6}")
    for out in projects:
        others = [project.name for project in projects if project is not out]
        best = max(bars, key=lambda bar: nearness(shares([counts[bar, name] for name in others])))
        found = shares([counts[best, out.name]])
        row = " ".join(f"{found[name]:12.3f}" for name in _WANTED)
        print(f"{out.name:18} {best.least:6} {best.increase:8} {row} {most[best, out.name]:6}")
    best = max(bars, key=lambda bar: nearness(shares([counts[bar, project.name] for project in projects])))
    print(f"all together: {best}")


_OF_THE_RULE = 0.6


def settled(file: Path) -> None:
    """Print which share of each chat's rule its best note has."""
    found = 0
    chats = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for case in chats:
        kinds = {"user": EventType.USER_MESSAGE, "assistant": EventType.ASSISTANT_MESSAGE}
        events = tuple(invented.event(at, said["text"], kinds[said["role"]]) for at, said in enumerate(case["messages"], 1))
        items = OfflineExtractor().extract(extractor_contract.chunk(events)).record.items()
        rule = _words(case["rule"])
        best = max((len(rule & _words(f"{item.title} {item.body}")) / len(rule) for item in items), default=0.0)
        found += best >= _OF_THE_RULE
        print(f"{case['id']:12} {best:5.2f}  {len(items)} notes")
    print(f"a note with {_OF_THE_RULE} of the rule's words: {found} of {len(chats)}")


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", text.lower()))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    settling = "--settled" in (sys.argv[1:] if arguments is None else arguments)
    parser.add_argument("--settled", type=Path, help="invented chats, instead of labelled sessions")
    parser.add_argument("--gold", type=Path, required=not settling)
    parser.add_argument("--transcripts", type=Path, required=not settling)
    parser.add_argument("--extractor", required=not settling, metavar="offline|recorded:DIR")
    parser.add_argument("--out", type=Path, required=not settling)
    parser.add_argument("--cut", choices=("sessions", "live"), default="sessions")
    parser.add_argument("--no-gate", action="store_true", help="the offline extractor without its gate, to see what that keeps out")
    parser.add_argument("--fit", action="store_true", help="report each project by the bar fitted to the others")
    given = parser.parse_args(arguments)
    if given.settled is not None:
        settled(given.settled)
        return
    projects = labelled(given.gold)
    name, _, answers = given.extractor.partition(":")
    if not projects or name not in ("offline", "recorded") or (name == "recorded") != bool(answers):
        sys.exit("error: no labels there, or no such extractor\nhint: --extractor offline, or recorded:FOLDER")
    given.out.mkdir(mode=0o700, parents=True, exist_ok=True)
    recorded: Answers | None = None
    extractor: Extractor = OfflineExtractor(gate=_open) if given.no_gate else OfflineExtractor()
    if name == "recorded":
        prompt = load_prompt([Path(asset_folder("prompts"))])
        recorded = Answers(folder=Path(answers), missing_to=given.out / "missing", prompt=prompt)
        extractor = Recorded(answers=recorded)
    bench = Bench(
        extractor=extractor,
        transcripts=given.transcripts,
        out=given.out,
        cut=live if given.cut == "live" else whole,
        policy=FREE if name == "offline" else ChunkPolicy(),
    )
    if given.fit:
        if (known := script(projects[0])) is None or len(projects) < 3:
            sys.exit("error: there is nothing to fit\nhint: --gold with score.py and three projects")
        fit(bench, projects, known)
        return
    tallies = {project.name: bench.project(project) for project in projects}
    for project in projects:
        print(tallies[project.name].summary(project.name))
    scorer = script(projects[0])
    if scorer is None:
        print("no score.py beside the labels: nothing is scored")
    else:
        for project in projects:
            print(f"\n{project.name}\n{scored(scorer, project.folder, given.out / project.name)}", end="")
            print(f"  with a card for each turn\n{scored(scorer, project.folder, given.out / project.name / 'with-cards')}", end="")
        if len(projects) > 1:
            made = together(projects, given.out)
            print(f"\nall\n{scored(scorer, made / 'gold', made)}", end="")
    if recorded is not None:
        print(f"\n{recorded.summary()}")
    print("\nthe gate, over what was extracted")
    for reason, count in sum((tally.refused for tally in tallies.values()), Counter[str]()).most_common():
        print(f"  {count:5}  {reason}")
    print("\nthe gate, over the labelled notes")
    for evidence, verdicts in gate_on_labels(projects, given.transcripts).items():
        print(f"  {', '.join(f'{count} {what}' for what, count in verdicts.most_common())}")
        through, proposed = verdicts["let through"], sum(count for what, count in verdicts.items() if what.startswith(PROPOSED))
        refused = verdicts.total() - through - proposed
        print(f"  with {evidence} evidence: {through} let through, {proposed} proposed, {refused} refused")


if __name__ == "__main__":
    main()
