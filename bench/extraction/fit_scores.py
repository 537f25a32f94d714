"""Fit the scores of sentences, titles and notes to readers' verdicts, and say how well they do on projects left out.

    python -m bench.extraction.fit_scores --transcripts DIR [--write]

``messages_read.tsv`` holds what readers said of agents' messages beside the requests that they answer: whether the note made of one
is kept, poor or junk, and the numbers of the sentences that carry what is worth keeping for months. ``titles_read.tsv`` says of
titles alone whether one stands alone. Neither holds a text: a message and a title are the start of the SHA-256 of theirs, found
again in the transcripts. Prints the area under the curve for each project by the weights of the others, and how many of the best
notes were kept; ``--write`` fits on everything and writes the weights.
"""

import argparse
import csv
import hashlib
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.reading.backfill import Person
from bench.reading.farm import init_vault
from kite_memory.distill.offline import claims, scores
from kite_memory.distill.offline.claims import Source
from kite_memory.distill.offline.wording import Sentence, asserting_title, said_by_person, sentences_of, turns
from kite_memory.distill.prose import one_line, stems
from kite_memory.model.event import Event, EventType
from kite_memory.timeline.store import Timeline

Floats = npt.NDArray[np.float64]
Weights = dict[str, float]

_HERE = Path(__file__).parent
_SHIPPED = Path(scores.__file__).with_name("scores.json")
_RIDGE = {"title": 4.0, "text": 4.0, "note": 3.0}
_SENTENCES, _REQUEST = 24, 400
_PARTS = (0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True)
class Example:
    project: str
    wanted: bool
    features: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Message:
    """An agent's message with what it answers, and what a reader said of the note made of it by ``source``."""

    project: str
    said: tuple[Sentence, ...]
    request: str
    source: Source
    verdict: str
    kept: frozenset[int]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def rows(name: str) -> Iterator[dict[str, str]]:
    with (_HERE / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t")


def fitted(examples: Sequence[Example], ridge: float) -> Weights:
    """Return the weights of a logistic regression held down by a ridge, by Newton's method; the constant has no name."""
    names = sorted({name for each in examples for name in each.features})
    x: Floats = np.array([[1.0, *(each.features.get(name, 0.0) for name in names)] for each in examples])
    y: Floats = np.array([float(each.wanted) for each in examples])
    held: Floats = np.array([1e-6] + [ridge] * len(names))
    weights: Floats = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        step = np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + np.diag(held), x.T @ (p - y) + held * weights)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return {name: round(float(weight), 3) for name, weight in zip(("", *names), weights, strict=True)}


def scored(weights: Weights, features: Mapping[str, float]) -> float:
    return weights[""] + sum(weights.get(name, 0.0) * value for name, value in features.items())


def area(wanted: Sequence[bool], found: Sequence[float]) -> float:
    """Return the area under the ROC curve: how often a wanted one is above one that is not."""
    order = np.argsort(np.array(found))
    ranks = np.empty(len(found))
    ranks[order] = np.arange(1, len(found) + 1)
    good = sum(wanted)
    return float((ranks[np.array(wanted)].sum() - good * (good + 1) / 2) / max(1, good * (len(wanted) - good)))


def of_titles(titles: Mapping[str, tuple[str, str, str]]) -> list[Example]:
    read = {row["title"]: row["alone"] == "y" for row in rows("titles_read.tsv")}
    return [
        Example(project, read[key], scores.title_features(title, sentence))
        for key, (project, title, sentence) in titles.items()
        if key in read
    ]


def of_texts(messages: Sequence[Message]) -> list[Example]:
    return [
        Example(each.project, at + 1 in each.kept, scores.text_features(each.said, at, stems(each.request)))
        for each in messages
        for at in range(len(each.said))
    ]


def of_notes(messages: Sequence[Message], title: Weights, text: Weights) -> list[Example]:
    """Return the examples of notes as the extractor makes them with these weights."""
    found = []
    for each in messages:
        about = stems(each.request)
        odds = {sentence: scored(text, scores.text_features(each.said, at, about)) for at, sentence in enumerate(each.said)}
        kept = claims.worth_keeping(each.said, odds)
        titles = [
            scored(title, scores.title_features(one, sentence.text)) + claims.TEXT_IN_TITLE * odds[sentence]
            for sentence in kept
            for one in claims.titles_of(sentence.text)
        ]
        if not titles:
            continue
        words = " ".join(sentence.text for sentence in kept)
        features = scores.note_features(words, each.request, tuple(odds.values()), max(titles), each.source)
        found.append(Example(each.project, each.verdict == "kept", features))
    return found


def read_again(transcripts: Path) -> tuple[list[Message], dict[str, tuple[str, str, str]]]:
    """Return the messages that were read, and every title that could be made of a sentence, by its digest."""
    by_message = defaultdict(list)
    for row in rows("messages_read.tsv"):
        by_message[row["message"]].append(row)
    messages: list[Message] = []
    titles: dict[str, tuple[str, str, str]] = {}
    with tempfile.TemporaryDirectory(prefix="kmem-bench-") as home:
        person = Person(Path(home))
        init_vault(transcripts, person.home)
        person.backfill()
        timeline = Timeline(person.home / "kmem" / "state" / "timeline.sqlite")
        try:
            for provider, session in sessions_in(person):
                project = project_of(transcripts, provider, session)
                for turn in turns(tuple(timeline.events.of_session(provider, session))):
                    request = said_by_person(turn.asked)[:_REQUEST] if turn.asked else ""
                    note_titles(titles, project, [one_line(request)])
                    for event in turn.events:
                        if event.type is EventType.ASSISTANT_MESSAGE:
                            said = sentences_of(event, event.text)[:_SENTENCES]
                            note_titles(titles, project, [each.text for each in said])
                            messages += (message_of(row, project, said, request) for row in by_message.pop(key_of(event), ()))
        finally:
            timeline.close()
    return messages, titles


def key_of(event: Event) -> str:
    return digest(event.text)


def message_of(row: Mapping[str, str], project: str, said: tuple[Sentence, ...], request: str) -> Message:
    source: Source = "cause" if row["source"] == "cause" else "claim" if row["source"] == "claim" else "outcome"
    return Message(project, said, request, source, row["verdict"], frozenset(map(int, row["kept"].split())))


def note_titles(titles: dict[str, tuple[str, str, str]], project: str, texts: Sequence[str]) -> None:
    for text in texts:
        title = asserting_title(text)
        titles.setdefault(digest(title), (project, title, text))


def sessions_in(person: Person) -> list[tuple[str, str]]:
    database = person.database()
    try:
        return [(provider, session) for provider, session in database.execute("SELECT provider, id FROM sessions")]
    finally:
        database.close()


def project_of(transcripts: Path, provider: str, session: str) -> str:
    """Return the folder of a transcript of Claude Code; other agents are a project each."""
    found = next(transcripts.glob(f"claude-code/*/{session}.jsonl"), None) if provider == "claude-code" else None
    return found.parent.name if found else provider


def report(name: str, examples: Sequence[Example], left_out: Mapping[str, Weights]) -> None:
    print(f"\n{name}: {len(examples)} read, {sum(each.wanted for each in examples)} wanted")
    pairs = [(each.project, each.wanted, scored(left_out[each.project], each.features)) for each in examples]
    for project in sorted(left_out):
        mine = [(wanted, odds) for where, wanted, odds in pairs if where == project]
        if len({wanted for wanted, _ in mine}) == 2:
            print(f"  {project:20} {len(mine):>5}  area {area(*map(list, zip(*mine, strict=True))):.2f}")
    print(
        f"  {'all, left out':20} {len(pairs):>5}  area {area([wanted for _, wanted, _ in pairs], [odds for *_, odds in pairs]):.2f}"
    )
    best = sorted(pairs, key=lambda pair: -pair[2])
    for part in _PARTS:
        top = best[: int(part * len(best))]
        share = sum(wanted for _, wanted, _ in top) / len(top)
        print(f"  wanted of the best {part:.0%}: {share:.2f} (from {top[-1][2]:+.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transcripts", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    messages, found = read_again(given.transcripts)
    titles, texts = of_titles(found), of_texts(messages)
    weights: dict[str, dict[str, Weights]] = {"title": {}, "text": {}, "note": {}}
    notes: list[Example] = []
    for project in sorted({each.project for each in (*titles, *texts)}):
        title = fitted([each for each in titles if each.project != project], _RIDGE["title"])
        text = fitted([each for each in texts if each.project != project], _RIDGE["text"])
        made = of_notes(messages, title, text)
        notes += [each for each in made if each.project == project]
        note = fitted([each for each in made if each.project != project], _RIDGE["note"])
        weights["title"][project], weights["text"][project], weights["note"][project] = title, text, note
    for name, examples in (("title", titles), ("text", texts), ("note", notes)):
        report(name, examples, weights[name])
    if given.write:
        title, text = fitted(titles, _RIDGE["title"]), fitted(texts, _RIDGE["text"])
        note = fitted(of_notes(messages, title, text), _RIDGE["note"])
        _SHIPPED.write_text(json.dumps({"title": title, "text": text, "note": note}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
