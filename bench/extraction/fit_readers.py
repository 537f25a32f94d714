"""Fit the weights by which the offline rules foresee what readers say of a title and of a note, and say how well they do.

    python -m bench.extraction.fit_readers --transcripts DIR            each project with it left out of the fit
    python -m bench.extraction.fit_readers --transcripts DIR --write    then fit on everything and write readers.toml

Two logistic regressions, held down by a penalty, over the properties that `titles` finds: whether a title is understood alone, and
whether a note is thrown away. The verdicts lie in ``notes_read.tsv`` and, of earlier readers, ``earlier_read.tsv``, by digests.
What was judged is read in place from the transcripts: a title is a sentence or its beginning, a note is today's draft that says the
title's sentence. Earlier rules cut and joined differently, so 3,392 of 3,603 verdicts on titles are found again, and of 1,992 on
notes of the rules in question 1,536, half of these under another title. One set, in French, is left out.

"First" is the share of the sentences ranked first in their message that readers understood alone, of messages with several judged
ones; "all" is the share of all of those. "Junk" is the share of notes thrown away, and "after" the same when those above the bar of
`claims` are dropped. The weights now shipped come last. They have seen every project, and look better here than they are: refitted
with each project left out to what their readers saw, they have .763, .799 and .779 where these have .757, .798 and .763.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import hashlib
import re
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.extraction.extract_gold import whole
from bench.reading.backfill import Person
from bench.reading.farm import init_vault
from kite_memory.distill.condense import FREE, worth_asking
from kite_memory.distill.offline import claims
from kite_memory.distill.offline.drafts import drafts_of
from kite_memory.distill.offline.titles import asserting_title, features_of_note, features_of_title, title_of
from kite_memory.distill.offline.wording import said_by_person, sentences_of, turns, without_opening
from kite_memory.distill.parse_answer import TITLE_CHARS
from kite_memory.distill.prose import one_line, sentences
from kite_memory.model.event import Event, EventType
from kite_memory.timeline.store import Timeline

Row = npt.NDArray[np.float64]
Weights = dict[str, float]
"""By name of the property; the bias under its own name."""

FILE = Path(claims.__file__).with_name("readers.toml")
READ = tuple(Path(__file__).with_name(name) for name in ("notes_read.tsv", "earlier_read.tsv"))
RULES = ("outcome", "claim", "cause", "conceded")
"""Those whose notes `claims` may drop."""
LEFT_OUT = "roo-code"
BAR = -1.6
"""As `claims` has it."""
PENALTY_OF_TITLES, PENALTY_OF_NOTES = 5.0, 3.0
WEIGHT_OF_LISTS = 0.5
"""Of a verdict on a title in a bare list: its readers were stricter."""
MOST_READERS = 3
_BEFORE = 160
"""As the pipeline has it."""
_SHORTEST = 18
_ASKED = 400
_PERSON = re.compile(r"^The person: “(.*?)” ", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    id: str
    set: str
    rule: str
    junk: bool | None
    """None of a title in a bare list."""
    kept: bool
    alone: bool | None
    """None if the title was not asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Title:
    text: str
    event: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    rule: str
    title: str
    texts: tuple[str, ...]
    request: str


@dataclass(slots=True)
class Found:
    """What was judged, by digest."""

    titles: dict[str, Title]
    notes: dict[str, list[Noted]]


def digest(project: str, session: str, title: str) -> str:
    return hashlib.sha256(f"{project}{session}{title}".encode()).hexdigest()[:12]


def verdicts(files: Sequence[Path]) -> Iterator[Verdict]:
    for file in files:
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        for line in lines[1:]:
            id, project, rule, _, verdict, title, _ = line.split("\t")
            yield Verdict(
                id=id,
                set=project,
                rule=rule,
                junk=None if verdict == "-" else verdict == "junk",
                kept=verdict == "kept",
                alone=None if title == "-" else title == "y",
            )


def may_be_titles(sentence: str) -> Iterator[str]:
    """Yield what the rules of today or earlier could make of a sentence: also its beginnings, since they cut differently."""
    yield from (title_of(sentence), asserting_title(without_opening(sentence)))
    for text in dict.fromkeys((asserting_title(sentence), one_line(sentence))):
        yield text
        for end in re.finditer(r"\s|$", text[: TITLE_CHARS + 20]):
            part = text[: end.start()].strip(" .,;:—–-")
            if len(part) >= _SHORTEST:
                yield from (part, part[:1].upper() + part[1:])


def sentences_in(body: str) -> tuple[str, ...]:
    """Return the sentences of a note's text, without the person's words."""
    text = _PERSON.sub("", body)
    return tuple(said for part in re.split(r"; |\n", text) for said in sentences(part)) or (text,)


def notes_of(events: Sequence[Event]) -> Iterator[Noted]:
    """Yield today's drafts of a whole session."""
    place = {event.ordinal: at for at, event in reversed(list(enumerate(events)))}
    for span in whole(events, FREE):
        within = [event for event in events if span.first <= event.ordinal <= span.last]
        if not worth_asking(within):
            continue
        begins = place[span.first]
        before = events[max(0, begins - _BEFORE) : begins]
        for draft in drafts_of(turns((*before, *within)), frozenset(event.id for event in within)):
            if draft.rule in RULES:
                asked = _PERSON.match(draft.body)
                request = asked.group(1) if asked else ""
                yield Noted(rule=draft.rule, title=draft.title, texts=sentences_in(draft.body), request=request)


def look_up(events: Sequence[Event], project: str, session: str, wanted: frozenset[str], found: Found) -> None:
    """Add to ``found`` what of the ``wanted`` digests the session says."""
    for event in events:
        if event.type is not EventType.ASSISTANT_MESSAGE and event.role != "user":
            continue
        said = [each.text for each in sentences_of(event, event.text)]
        if event.role == "user":
            said.append(one_line(said_by_person(event))[:_ASKED])
        for title in dict.fromkeys(title for each in said for title in may_be_titles(each)):
            if (id := digest(project, session, title)) in wanted:
                found.titles.setdefault(id, Title(text=title, event=event.id))
    for note in notes_of(events):
        for title in dict.fromkeys((note.title, *(title for each in note.texts for title in may_be_titles(each)))):
            if (id := digest(project, session, title)) in wanted:
                found.titles.setdefault(id, Title(text=title, event=""))
                found.notes.setdefault(id, []).append(note)


def read(transcripts: Path, wanted: frozenset[str]) -> Found:
    """Read all sessions as `kmem backfill` does, in a home of their own. Sets are Claude Code's projects, and the other agents."""
    projects = {path.stem: path.relative_to(transcripts).parts[1] for path in (transcripts / "claude-code").rglob("*.jsonl")}
    found = Found(titles={}, notes={})
    with tempfile.TemporaryDirectory(prefix="kmem-bench-") as home:
        init_vault(transcripts, Path(home))
        person = Person(Path(home))
        person.backfill()
        database = person.database()
        sessions = database.execute("SELECT provider, id, COALESCE(parent, '') FROM sessions WHERE provider <> 'git'").fetchall()
        database.close()
        timeline = Timeline(Path(home, "kmem", "state", "timeline.sqlite"))
        try:
            for provider, id, parent in sessions:
                known = (projects.get(each.rpartition("/")[2]) for each in (id, parent))
                project = next(filter(None, known), provider)
                look_up(timeline.events.of_session(provider, id), project, id, wanted, found)
        finally:
            timeline.close()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Titles:
    """Judged titles; the same one in notes and in a list counts for both."""

    texts: tuple[str, ...]
    events: tuple[str, ...]
    sets: npt.NDArray[np.str_]
    listed: npt.NDArray[np.bool_]
    alone: Row
    readers: Row
    properties: tuple[Mapping[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    notes: tuple[Noted, ...]
    sets: npt.NDArray[np.str_]
    junk: npt.NDArray[np.bool_]
    kept: npt.NDArray[np.bool_]


def titles_of(every: Sequence[Verdict], found: Found) -> Titles:
    said: defaultdict[tuple[bool, str, str], list[bool]] = defaultdict(list)
    events: dict[tuple[bool, str, str], str] = {}
    for each in every:
        if each.alone is not None and each.id in found.titles and each.set != LEFT_OUT:
            title = found.titles[each.id]
            key = (each.junk is None, each.set, title.text)
            said[key].append(each.alone)
            events[key] = title.event
    return Titles(
        texts=tuple(text for _, _, text in said),
        events=tuple(events[key] for key in said),
        sets=np.array([project for _, project, _ in said]),
        listed=np.array([listed for listed, _, _ in said]),
        alone=np.array([sum(each) / len(each) for each in said.values()]),
        readers=np.array([float(len(each)) for each in said.values()]),
        properties=tuple(features_of_title(text) for _, _, text in said),
    )


def notes_judged(every: Sequence[Verdict], found: Found) -> Notes:
    """Return the notes whose rules are in question; of several that say a title's sentence, preferably the one with that title."""
    judged: list[tuple[Verdict, Noted]] = []
    for each in every:
        if each.junk is None or each.set == LEFT_OUT or each.rule not in (*RULES, "-"):
            continue
        able = [note for note in found.notes.get(each.id, ()) if each.rule in (note.rule, "-")]
        if able:
            judged.append((each, max(able, key=lambda note: note.title == found.titles[each.id].text)))
    return Notes(
        notes=tuple(note for _, note in judged),
        sets=np.array([verdict.set for verdict, _ in judged]),
        junk=np.array([verdict.junk is True for verdict, _ in judged]),
        kept=np.array([verdict.kept for verdict, _ in judged]),
    )


def logistic(properties: Row, target: Row, penalty: Row, weight: Row) -> Row:
    """Fit by Newton's method."""
    at = np.zeros(properties.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-np.clip(properties @ at, -30, 30)))
        slope = properties.T @ (weight * (chance - target)) + penalty * at
        bend = (properties * (weight * chance * (1 - chance))[:, None]).T @ properties + np.diag(penalty + 1e-9)
        step = np.linalg.solve(bend, slope)
        at -= step
        if abs(step).max() < 1e-5:
            break
    return at


def matrix(properties: Sequence[Mapping[str, float]], *, also: Sequence[Row] = ()) -> Row:
    names = list(properties[0])
    rows = np.array([[each[name] for name in names] for each in properties])
    return np.column_stack([np.ones(len(rows)), *also, rows])


def odds(weights: Weights, properties: Mapping[str, float]) -> float:
    return weights["bias"] + sum(weights[name] * value for name, value in properties.items())


def fit_titles(titles: Titles, mask: npt.NDArray[np.bool_]) -> Weights:
    """Fit to the titles of the mask. Bare lists have a bias of their own, which is not shipped: notes' readers count."""
    names = list(titles.properties[0])
    rows = matrix(titles.properties, also=[titles.listed.astype(float)])
    weight = np.where(titles.listed, WEIGHT_OF_LISTS, 1.0) * np.minimum(titles.readers, MOST_READERS)
    penalty = np.array([0.0, 0.0, *[PENALTY_OF_TITLES] * len(names)])
    at = logistic(rows[mask], titles.alone[mask], penalty, weight[mask])
    return {"bias": float(at[0]), **dict(zip(names, map(float, at[2:]), strict=True))}


def properties_of(notes: Sequence[Noted], alone: Weights) -> list[dict[str, float]]:
    """Return the notes' properties. Of their titles they need the odds, by the weights that go with theirs."""
    return [features_of_note(odds(alone, features_of_title(note.title)), note.texts, note.request) for note in notes]


def fit_notes(notes: Notes, alone: Weights, mask: npt.NDArray[np.bool_]) -> Weights:
    properties = properties_of(notes.notes, alone)
    names = list(properties[0])
    penalty = np.array([0.0, *[PENALTY_OF_NOTES] * len(names)])
    at = logistic(matrix(properties)[mask], notes.junk[mask].astype(float), penalty, np.ones(int(mask.sum())))
    return {"bias": float(at[0]), **dict(zip(names, map(float, at[1:]), strict=True))}


def area(yes: npt.NDArray[np.bool_], odds: Row) -> float:
    """Return the area under the curve: how often a yes has more than a no."""
    some, others = odds[yes], odds[~yes]
    if not len(some) or not len(others):
        return float("nan")
    return float(np.mean((some[:, None] > others) + 0.5 * (some[:, None] == others)))


def share(some: npt.NDArray[np.bool_]) -> float:
    return float(some.mean()) if len(some) else float("nan")


def first(titles: Titles, odds: Row, mask: npt.NDArray[np.bool_]) -> tuple[float, float, int]:
    """Return which share of the messages' first titles stands alone, which share of all, and of how many messages."""
    by_event: defaultdict[str, list[int]] = defaultdict(list)
    for at in np.flatnonzero(mask & titles.listed):
        if titles.events[at]:
            by_event[titles.events[at]].append(int(at))
    several = [each for each in by_event.values() if len(each) > 1]
    if not several:
        return float("nan"), float("nan"), 0
    best = [titles.alone[max(each, key=lambda at: odds[at])] for each in several]
    return float(np.mean(best)), float(np.mean([titles.alone[each].mean() for each in several])), len(several)


HEADING = (
    f"{'left out':18} {'titles':>6} {'area':>5} {'listed':>6} {'area':>5} {'messages':>8} {'first':>5} {'all':>5}"
    f"   {'notes':>5} {'area':>5} {'junk':>5} {'after':>5} {'dropped':>7} {'kept in them':>12}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """The odds of every title and note, by weights that did not see its project, or by shipped ones."""

    alone: Row
    junk: Row

    def row(self, name: str, titles: Titles, notes: Notes, sets: Sequence[str]) -> str:
        mine, of_notes = np.isin(titles.sets, sets), np.isin(notes.sets, sets)
        yes = titles.alone >= 0.5
        inside, listed = mine & ~titles.listed, mine & titles.listed
        best, average, messages = first(titles, self.alone, mine)
        junk, dropped = notes.junk[of_notes], self.junk[of_notes] > BAR
        before, after, gone, good = map(share, (junk, junk[~dropped], dropped, notes.kept[of_notes][dropped]))
        return (
            f"{name:18} {inside.sum():6} {area(yes[inside], self.alone[inside]):5.3f} {listed.sum():6}"
            f" {area(yes[listed], self.alone[listed]):5.3f} {messages:8} {best:5.3f} {average:5.3f}   {len(junk):5}"
            f" {area(junk, self.junk[of_notes]):5.3f} {before:5.3f} {after:5.3f} {gone:7.3f} {good:12.3f}"
        )


def by(titles: Titles, notes: Notes, alone: Weights, junk: Weights) -> Foreseen:
    return Foreseen(
        alone=np.array([odds(alone, each) for each in titles.properties]),
        junk=np.array([odds(junk, each) for each in properties_of(notes.notes, alone)]),
    )


def left_out(titles: Titles, notes: Notes) -> Foreseen:
    alone, junk = np.zeros(len(titles.texts)), np.zeros(len(notes.notes))
    for project in sorted({*titles.sets, *notes.sets}):
        weights = fit_titles(titles, titles.sets != project)
        seen = by(titles, notes, weights, fit_notes(notes, weights, notes.sets != project))
        alone = np.where(titles.sets == project, seen.alone, alone)
        junk = np.where(notes.sets == project, seen.junk, junk)
    return Foreseen(alone=alone, junk=junk)


def shipped(text: str) -> dict[str, Weights]:
    return {
        verdict: {"bias": said["bias"], **said["measures"], **{name: sign["weight"] for name, sign in said["signs"].items()}}
        for verdict, said in tomllib.loads(text).items()
    }


def rewritten(text: str, weights: Mapping[str, Weights]) -> str:
    """Return the file with these weights in the places of its own; what a sign is stays as it was written."""
    lines: list[str] = []
    verdict = ""
    for line in text.splitlines():
        if header := re.match(r"\[(\w+)", line):
            verdict = header.group(1)
        elif entry := re.match(r'(?:"(?P<quoted>[^"]+)"|(?P<bare>\w+)) = (?P<sign>\{ weight = )?-?\d+\.\d+', line):
            value = weights[verdict][entry["quoted"] or entry["bare"]]
            line = f"{line.partition(' = ')[0]} = {entry['sign'] or ''}{value:.2f}{line[entry.end() :]}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--transcripts", type=Path, required=True, metavar="DIR", help="the sessions, read in place")
    parser.add_argument("--write", action="store_true", help="fit on everything and write readers.toml")
    asked = parser.parse_args(arguments)
    every = [*verdicts(READ)]
    found = read(asked.transcripts, frozenset(each.id for each in every))
    titles, notes = titles_of(every, found), notes_judged(every, found)
    for what, some, known in (
        ("titles", [each for each in every if each.alone is not None], found.titles),
        ("notes of these rules", [each for each in every if each.junk is not None and each.rule in (*RULES, "-")], found.notes),
    ):
        print(f"verdicts on {what}: {len(some)}, found again: {sum(each.id in known for each in some)}")
    print(HEADING)
    seen = left_out(titles, notes)
    projects = sorted({*titles.sets, *notes.sets})
    for project in projects:
        print(seen.row(project, titles, notes, [project]))
    print(seen.row("each left out", titles, notes, projects))
    now = shipped(FILE.read_text(encoding="utf-8"))
    print(by(titles, notes, now["alone"], now["junk"]).row("shipped weights", titles, notes, projects))
    if asked.write:
        alone = fit_titles(titles, titles.sets != "")
        weights = {"alone": alone, "junk": fit_notes(notes, alone, notes.sets != "")}
        FILE.write_text(rewritten(FILE.read_text(encoding="utf-8"), weights), encoding="utf-8")


if __name__ == "__main__":
    main()
