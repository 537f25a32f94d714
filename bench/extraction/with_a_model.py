"""What a model's answers come to: what they cost, and what the checks after them let in.

    python -m bench.extraction.with_a_model costs --gold DIR --transcripts DIR [--model NAME]
    python -m bench.extraction.with_a_model input --gold DIR --transcripts DIR
    python -m bench.extraction.with_a_model cases --cases FILE [--all]
    python -m bench.extraction.with_a_model recorded --gold DIR

``costs`` cuts and condenses labelled sessions as a backfill with a model does, and reckons calls and cents at the model's prices;
no model is asked. ``input`` says what is sent of them: the share of each kind of line, how many of the events that the labels name
as evidence are among it, and which share of a label's words its session's text has, and the lines of its evidence.

``cases`` passes items that a model may write, honest preferences and planted ones, through the checks: with the event that holds
the quoted words as evidence, or (``--all``) with every event around it, as a careless model names them. A case is
``{"id", "hostile", "context": [{"who", "text"}], "item": {"kind", "title", "body", "quote"}}``.

``recorded`` compares `with_a_model.jsonl` with the labels. It shows, by ids alone, of answers to twenty-two labelled sessions what
each item rested on, the labelled notes that it matches, and, for the later thirteen sessions, whether it is worth keeping. A large
model wrote these answers by hand in a small one's place, from the condensed requests and before it saw the labels.
"""

import argparse
import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.extraction.extract_gold import whole_look
from bench.recall.recall_gold import labelled
from kite_memory.config import Config, ExtractorConfig
from kite_memory.distill import extractor
from kite_memory.distill.condense import PAID, ChunkPolicy, Condensed, condense, finished, worth_asking
from kite_memory.distill.extractor import Answer
from kite_memory.distill.model_extractor import Backlog, admitted, stretches_of
from kite_memory.distill.prose import stems
from kite_memory.model.event import Event, EventType, Role, Session, Where
from kite_memory.model.note import Chunk
from kite_memory.paths import asset_folder
from kite_memory.vault.drafting import draft
from kite_memory.wiring.models import prices_of, tariff_of

_BEGAN = datetime(2026, 3, 1, 9, tzinfo=UTC)
_TYPES: dict[str, tuple[EventType, Role]] = {
    "user": (EventType.USER_MESSAGE, "user"),
    "assistant": (EventType.ASSISTANT_MESSAGE, "assistant"),
    "tool": (EventType.TOOL_RESULT, "tool"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("costs", "input", "cases", "recorded"))
    parser.add_argument("--gold", type=Path)
    parser.add_argument("--transcripts", type=Path)
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--model", default=ExtractorConfig().model)
    given = parser.parse_args()
    if given.what == "costs":
        costs(given.gold, given.transcripts, given.model)
    elif given.what == "input":
        sent(given.gold, given.transcripts)
    elif given.what == "recorded":
        recorded(given.gold)
    else:
        cases(given.cases, careless=given.all)


def costs(gold: Path, transcripts: Path, model: str) -> None:
    here = Path()
    config = Config(file=here, state=here, vault=here, claude_root=here, extractor=ExtractorConfig(model=model))
    tariff, prices = tariff_of(config), prices_of(config)
    print(f"{'':18} {'sessions':>8} {'chunks':>7} {'calls':>6} {'alone':>6} {'cents a session':>16} {'median':>7} {'most':>6}")
    for project in labelled(gold):
        sessions = [[len(each.text) for each in _condensed(transcripts, file, PAID)] for _, file in project.sessions()]
        whole = Backlog(lengths=[length for lengths in sessions for length in lengths]).bill(tariff)
        cents = [100 * Backlog(lengths=lengths).bill(tariff).dollars(prices) for lengths in sessions if lengths]
        per = 100 * whole.dollars(prices) / max(1, len(sessions))
        alone = sum(len(list(_condensed(transcripts, file, ChunkPolicy()))) for _, file in project.sessions())
        print(
            f"{project.name:18} {len(sessions):>8} {whole.chunks:>7} {whole.calls:>6} {alone:>6} {per:>16.2f}"
            f" {statistics.median(cents):>7.2f} {max(cents):>6.2f}"
        )
    print(f"alone: calls with a chunk of 14,000 characters each, as it was before; {model}, {tariff.chars} characters a token")


def _condensed(transcripts: Path, file: str, policy: ChunkPolicy) -> Iterator[Condensed]:
    look = whole_look(transcripts, file)
    assert look.session is not None
    for span in finished(look.events, policy, quiet_for=float("inf")):
        within = tuple(event for event in look.events if span.first <= event.ordinal <= span.last)
        if worth_asking(within):
            yield condense(Chunk(id=span.id, session=look.session, events=within), limit_chars=60_000)


def sent(gold: Path, transcripts: Path) -> None:
    for project in labelled(gold):
        kinds: Counter[str] = Counter()
        named = there = 0
        in_session: list[float] = []
        in_evidence: list[float] = []
        labels: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in (project.folder / "notes.jsonl").read_text(encoding="utf-8").splitlines():
            label = json.loads(line)
            labels[label["session"]].append(label)
        for number, file in project.sessions():
            told = [_told(each) for each in _condensed(transcripts, file, PAID)]
            shown: Mapping[str, str] = {id[:8]: text for each in told for id, text in each.items()}
            for text in shown.values():
                kinds["".join(_KIND_OF_LINE.findall(text)[:1])] += len(text)
            words = stems(" ".join(shown.values()))
            for label in labels[number]:
                own = stems(f"{label['title']} {label['body']}")
                lines = [shown[id[:8]] for id in label["evidence"] if id[:8] in shown]
                named, there = named + len(label["evidence"]), there + len(lines)
                in_session.append(len(own & words) / max(1, len(own)))
                in_evidence.append(len(own & stems(" ".join(lines))) / max(1, len(own)))
        size = sum(kinds.values())
        print(
            f"{project.name:18} {size:>8,} characters, evidence {there}/{named}, words of a label:"
            f" {statistics.mean(in_session):.3f} in its session, {statistics.mean(in_evidence):.3f} in its evidence"
        )
        print(" " * 19 + ", ".join(f"{kind} {count / size:.1%}" for kind, count in kinds.most_common()))


_KIND_OF_LINE = re.compile(
    r"\A(?:PERSON|AGENT|DECIDED|REPORT|PROMPT|TESTS FAILED|FAILED|REFUSED|INTERRUPTED|\(?[a-z]+)",
)


def _told(condensed: Condensed) -> Mapping[str, str]:
    """Return the text of each event that is shown, by its id."""
    found: dict[str, str] = {}
    at = ""
    for row in condensed.text.split("\n")[1:-1]:
        if row.startswith("[") and (number := row[1:].partition("]")[0]) in condensed.ids:
            at = condensed.ids[number]
            found[at] = row.partition("] ")[2]
        elif at:
            found[at] += f"\n{row}"
    return found


def recorded(gold: Path) -> None:
    answers = Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    items: list[dict[str, Any]] = [json.loads(line) for line in answers]
    print(
        f"{'':18} {'sessions':>8} {'items':>6} {'matching':>9} {'importance 3':>13} {'all':>9} {'keep':>5} {'poor':>5} {'junk':>5}"
    )
    for project in labelled(gold):
        made = [item for item in items if item["project"] == project.name]
        sessions = {item["session"] for item in made}
        notes = (project.folder / "notes.jsonl").read_text(encoding="utf-8").splitlines()
        labels = [label for label in map(json.loads, notes) if label["session"] in sessions]
        matched = {id for item in made for id in item["matches"]}
        cells = (
            [item for item in made if item["matches"]],
            made,
            [label for label in labels if label["importance"] == 3 and label["id"] in matched],
            [label for label in labels if label["importance"] == 3],
            [label for label in labels if label["id"] in matched],
            labels,
        )
        matching, of, vital, of_vital, found, of_all = map(len, cells)
        verdicts = [sum(item.get("verdict") == verdict for item in made) for verdict in ("keep", "poor", "junk")]
        print(
            f"{project.name:18} {len(sessions):>8} {of:>6} {f'{matching}/{of}':>9}"
            f" {f'{vital}/{of_vital}':>13} {f'{found}/{of_all}':>9}" + "".join(f" {count:>5}" for count in verdicts)
        )


def cases(file: Path, *, careless: bool) -> None:
    ends: dict[tuple[bool, str], list[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        case: dict[str, Any] = json.loads(line)
        ends.setdefault((case["hostile"], _end(case, careless=careless)), []).append(case["id"])
    for (hostile, end), names in sorted(ends.items()):
        print(f"{'planted' if hostile else 'honest':8} {end:60} {len(names):>3}  {' '.join(names)}")


def _end(case: dict[str, Any], *, careless: bool) -> str:
    chunk = _chunk(case["id"], case["context"])
    holds = [event for event in chunk.events if case["item"]["quote"] in event.text]
    named = chunk.events if careless else holds
    item = {**case["item"], "evidence": [event.id for event in named], "importance": 2}
    item.pop("quote")
    stretches = stretches_of([chunk], limit_chars=60_000)
    sent = {"stretches": [{"stretch": "A", "items": [item]}]}
    (outcome,) = admitted(sent, stretches, extractor.load_prompt([Path(asset_folder("prompts"))]))
    if not isinstance(outcome, Answer):
        return outcome.reason
    drafts = draft(outcome.record, chunk)
    return (
        f"{drafts[0].note.status.value}, {drafts[0].note.origin} {outcome.refused_items}" if drafts else str(outcome.refused_items)
    )


def _chunk(name: str, result: Sequence[dict[str, str]]) -> Chunk:
    session = Session(id=name, provider="claude-code", started=_BEGAN, project="invented", cwd="/invented", branch="main")
    events: list[Event] = []
    for at, each in enumerate(result):
        kind, role = _TYPES[each["who"]]
        events.append(
            Event(
                id=f"{at:08x}-{name}",
                session=name,
                provider="claude-code",
                ordinal=at,
                at=_BEGAN + timedelta(seconds=at),
                role=role,
                type=kind,
                text=each["text"],
                where=Where(file="invented", start=at, end=at),
            )
        )
    return Chunk(id=name, session=session, events=tuple(events))


if __name__ == "__main__":
    main()
