"""Fit the weights by which `redaction.weighed` recognizes a secret in a sentence, and say how well they do on cases left out.

    python -m bench.reading.fit_weights FOLDER …           what each list of cases loses with it left out
    python -m bench.reading.fit_weights FOLDER … --write   then fit on everything and write weights.txt
    python -m bench.reading.fit_weights … --talk FILE …    with the texts of JSON files in which people talk

A logistic regression over the properties of every word that may be a secret, held down by a penalty. The secrets are those of
``tests/redaction/people.txt``, some of them also in each other's sentences. The rest of those texts, the innocents, the standard
library and whatever lies under the folders, which must hold no secrets, are what must stay. So must what people say to each
other: of that there is little beside the output of programs, so it counts `TALK` times. The threshold is chosen so that of the
clean text at most `ALARMS` words a megabyte go.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from bench.reading.redaction import texts
from kite_memory.redaction import redact, weighed
from kite_memory.redaction.chance import words_of
from kite_memory.redaction.cleaning import bare, clean
from kite_memory.redaction.spoken import labels_of
from tests.goals.test_goal_08_secrets import clean_text
from tests.redaction.people import Case, cases
from tests.redaction.test_redaction_assigned import NO_PASSWORDS
from tests.redaction.test_redaction_innocents import INNOCENTS

ALARMS = 0.15
"""Most words that go of a megabyte of clean text."""
TALK = 20
"""How often a word that people say counts in the fit."""
PENALTY = 0.25
ROUNDS = 400
FEWEST = 3
"""A property of fewer words gets no weight."""
FILE = Path(weighed.__file__).with_name("weights.txt")
CASES = Path(__file__).resolve().parent.parent / "cases"
_SIGNED_IN_ADDRESS = re.compile(r"token=eyJ")
_PLAIN = re.compile(r"[!-~]{5,24}")
_IN_PROSE = re.compile(r"sentence|labels|english|language|later yet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    properties: tuple[str, ...]
    secret: bool
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    weights: dict[str, float]
    bias: float

    def sum(self, properties: Iterable[str]) -> float:
        return self.bias + sum(self.weights.get(each, 0.0) for each in properties)


def candidates(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    raw = bare(clean(text))
    small = raw.lower()
    words = words_of(small)
    for line in weighed.lines(raw, small, words, labels_of(raw, small, words), len(raw)):
        for start, end, properties in weighed.candidates(raw, small, line):
            yield start, end, tuple(sorted(set(properties)))


def words_in(case: Case) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The candidates of a case; those that are a part of a secret, or hold little else, are left out."""
    text = clean(case.text)
    places = [found.span() for secret in case.secrets for found in re.finditer(re.escape(secret), text)]
    for start, end, properties in candidates(case.text):
        shared = [(min(end, last) - max(start, first), last - first) for first, last in places if first < end and start < last]
        if all(2 * both >= length and 2 * both >= end - start for both, length in shared):
            yield properties, bool(shared)


def learned(some: Sequence[Case]) -> list[Word]:
    chance = Random(5)
    pool = [case.secrets[0] for case in some if len(case.secrets) == 1 and _may_move(case.secrets[0])]
    found: list[Word] = []
    for case in some:
        kind = 4.0 if not case.secrets else 0.25
        found += (Word(properties=each, secret=secret, weight=1.0 if secret else kind) for each, secret in words_in(case))
        if len(case.secrets) == 1 and _may_move(case.secrets[0]) and _IN_PROSE.search(case.group):
            for _ in range(4):
                other = chance.choice(pool)
                moved = Case(group="", tuned=True, text=case.text.replace(case.secrets[0], other), secrets=(other,))
                found += (Word(properties=each, secret=secret, weight=0.3 if secret else 0.075) for each, secret in words_in(moved))
    return found


def _may_move(secret: str) -> bool:
    return _PLAIN.fullmatch(secret) is not None and not secret.isdigit()


@dataclass(frozen=True, slots=True, kw_only=True)
class Clean:
    counts: Counter[tuple[str, ...]]
    """The properties of candidates, each with how often they are there."""
    megabytes: float


def stayed(folders: Sequence[Path], talk: Sequence[Path]) -> Clean:
    some = [clean_text(30), *(text for folder in folders for text in dict.fromkeys(texts(folder)) if "\0" not in text)]
    counts = Counter(properties for text in some for _, _, properties in candidates(text))
    said = {text for file in (*talk, *CASES.glob("*.jsonl")) for text in _said(file)}
    for text in said:
        counts.update({properties: TALK for _, _, properties in candidates(text)})
    return Clean(counts=counts, megabytes=sum(map(len, some)) / 1e6)


def _said(file: Path) -> Iterator[str]:
    content = file.read_text(encoding="utf-8")
    for each in map(json.loads, content.splitlines() if file.suffix == ".jsonl" else [content]):
        yield from (text for text in _strings(each) if not _SIGNED_IN_ADDRESS.search(text))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)


def fitted(some: Sequence[Word], clean_ones: Clean) -> Model:
    """Fit by gradient descent, with a step of its own for each weight (Adam)."""
    rows = [each.properties for each in some] + list(clean_ones.counts)
    counted = Counter(name for row in rows for name in row)
    number = {name: at for at, name in enumerate(name for name, count in counted.items() if count >= FEWEST)}
    known = [[number[name] for name in row if name in number] for row in rows]
    row = np.repeat(np.arange(len(rows)), [len(each) for each in known])
    column = np.concatenate([np.array(each, dtype=np.int64) for each in known])
    target = np.array([float(each.secret) for each in some] + [0.0] * len(clean_ones.counts))
    weight = np.array([each.weight for each in some] + [min(count, 20) ** 0.5 for count in clean_ones.counts.values()])
    at = np.append(np.zeros(len(number)), -2.0)
    mean, square = np.zeros_like(at), np.zeros_like(at)
    for turn in range(1, ROUNDS + 1):
        sums = np.bincount(row, at[column], len(rows)) + at[-1]
        error = weight * (1 / (1 + np.exp(-sums)) - target)
        slope = np.append(np.bincount(column, error[row], len(number)) + PENALTY * at[:-1], error.sum())
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        step = 0.08 if turn < ROUNDS * 5 / 8 else 0.02
        at -= step * (mean / (1 - 0.9**turn)) / (np.sqrt(square / (1 - 0.999**turn)) + 1e-8)
    weights = {name: round(float(at[place]), 2) for name, place in number.items()}
    return Model(weights={name: each for name, each in weights.items() if abs(each) >= 0.05}, bias=round(float(at[-1]), 2))


def threshold_of(model: Model, clean_ones: Clean) -> float:
    alarms = 0
    for total, count in sorted(((model.sum(each), count) for each, count in clean_ones.counts.items()), reverse=True):
        alarms += count
        if alarms > ALARMS * clean_ones.megabytes:
            return round(total - model.bias + 0.01, 2)
    return 0.0


def ship(model: Model, threshold: float) -> None:
    weighed.WEIGHTS.clear()
    weighed.WEIGHTS.update(model.weights)
    weighed.THRESHOLD = threshold


def left_out(every: Sequence[Case], clean_ones: Clean) -> None:
    lists = dict.fromkeys(case.group.rpartition(",")[0] for case in every if case.group.startswith("fitted"))
    for name in filter(None, lists):
        held = [case for case in every if case.group.startswith(name)]
        model = fitted(learned([case for case in every if not case.group.startswith(name)]), clean_ones)
        ship(model, threshold_of(model, clean_ones))
        planted, found, changed = Counter[str](), Counter[str](), 0
        for case in held:
            planted[case.group] += bool(case.secrets)
            found[case.group] += bool(case.secrets) and not case.left()
            changed += not case.secrets and redact(case.text) != case.text
        print(f"{name}: {found.total()} of {planted.total()} with the list left out, {changed} innocents changed")
        for group in filter(planted.__getitem__, planted):
            print(f"  {found[group]:4} of {planted[group]:4}  {group}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--talk", nargs="*", type=Path, default=[], metavar="FILE")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    every = [*cases(), *(Case(group="", tuned=True, text=text, secrets=()) for text in (*INNOCENTS.values(), *NO_PASSWORDS))]
    clean_ones = stayed(chosen.folders, chosen.talk)
    print(f"{clean_ones.megabytes:.0f} MB of clean text")
    left_out(every, clean_ones)
    if chosen.write:
        model = fitted(learned(every), clean_ones)
        head = "# How much each property of a word speaks for a secret, see weighed.py. Written by bench.reading.fit_weights.\n"
        lines = [f"{name} = {model.weights[name]}" for name in sorted(model.weights)]
        fit = f"[fit]\nthreshold = {threshold_of(model, clean_ones)}\n\n[weights]\n"
        FILE.write_text(f"{head}\n{fit}" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
