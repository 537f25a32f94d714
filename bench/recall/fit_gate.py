"""Fit the gate's weights on labelled prompts, and say honestly how well they do on prompts they have not seen.

    python -m bench.recall.recall_gold --gold DIR --transcripts DIR --out OUT.jsonl --figures FIGURES.jsonl
    python -m bench.recall.fit_gate --gold DIR --figures FIGURES.jsonl [--write] [--features a,b,c | --select]
    python -m bench.recall.fit_gate --gold DIR --figures FIGURES.jsonl --pointing OUT.jsonl

A logistic regression over the figures of every candidate (is this note among those that help with this prompt?), held down by a
penalty. Cross-validated by project (fitted on the others) and by session. The thresholds are chosen on the cross-validated
probabilities, in a replay where no note is shown twice in a session, so that of the prompts that need nothing at most so many get
something: 1 % quiet, 2 % normal, 10 % eager; of the unrelated ones 1, 1 and 10 %; and so that, but for eager, at least .6 of what
each project is shown is right. ``--write`` then fits on everything and writes the weights. It keeps the shipped thresholds, some of
which were set by hand, unless ``--thresholds`` is given too: they are then the ones found with the project left out.

``--pointing`` replays the pointers of the predictions' sessions with many settings of `pointing.PointerThresholds`. For each
project it fits the gate on the others, takes the setting that `chosen_bars` finds there, and prints what both do on the project
left out; below that, the shipped gate and bars.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import itertools
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.recall.opening import predictions_of
from bench.recall.recall_gold import Labelled, labelled, rows
from kite_memory.model.hit import Hit, Pointer
from kite_memory.model.note import Note, NoteKind
from kite_memory.recall import lexical, pointing
from kite_memory.recall.gate import _FILE, FEATURES, Dial, shipped
from kite_memory.recall.pointing import PointerThresholds
from kite_memory.recall.rendering import block, likely_tokens, render_prompt_block
from kite_memory.recall.select import _FAINT, _TELLING_WORDS, POINTED, Needless, bounded, why_needless

Floats = npt.NDArray[np.float64]

_CANDIDATES = 8
_NOTES = 2
_STEPS = 60
_CHOSEN = ("score", "margin", "importance", "title", "named", "covered", "confirmation", "question")
"""What ``--select`` and judgement left of `FEATURES`: others fit these prompts better and unseen ones no better."""
_DIALS: dict[Dial, tuple[tuple[float, float], float]] = {
    "quiet": ((0.01, 0.01), 0.6),
    "normal": ((0.02, 0.01), 0.6),
    "eager": ((0.10, 0.10), 0.0),
}
"""Most false injections, of prompts that need nothing and of unrelated ones, and least precision on each project."""
_FINEST = 100
"""Thresholds are tried in steps of this part."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A labelled prompt: its candidates' figures, and which of them help."""

    project: str
    session: str
    needed: bool
    notes: tuple[str, ...]
    figures: Floats
    right: npt.NDArray[np.bool_]

    @property
    def unrelated(self) -> bool:
        """Made up, and answered by no note: of no session."""
        return "/unrelated" in self.session


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Shares: of prompts that need none and got something, and of unrelated ones; of those that need one and got it, or had one in
    context by then; of what was shown and was right."""

    false: float
    unrelated: float
    right: float
    context: float
    precision: float
    shown: int


def cases(gold: Path, figures: Path) -> list[Case]:
    held: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows(figures):
        held[row["project"], row["session"], row["event"]].append(row)
    found = []
    for project in labelled(gold):
        for prompt in project.rows("prompts.jsonl"):
            mine = held[project.name, prompt["session"], prompt["event"]]
            needed = prompt["need"] != "none"
            found.append(_case(project.name, prompt["session"], mine, needed=needed, relevant=prompt["relevant"]))
        unrelated = sorted({key for key in held if key[0] == project.name and key[1].startswith("unrelated")})
        found += [_case(project.name, key[1], held[key], needed=False, relevant=()) for key in unrelated]
    return found


def _case(project: str, session: str, held: Sequence[dict[str, Any]], *, needed: bool, relevant: Sequence[str]) -> Case:
    mine = sorted(held, key=lambda row: row["figures"][FEATURES.index("rank")])[:_CANDIDATES]
    notes = tuple(row["note"] for row in mine)
    return Case(
        project=project,
        session=f"{project}/{session}",
        needed=needed,
        notes=notes,
        figures=np.array([row["figures"] for row in mine]).reshape(-1, len(FEATURES)),
        right=np.array([note in relevant for note in notes], bool),
    )


def fitted(rows: Floats, right: Floats, penalty: float) -> Floats:
    """Newton's steps; ``rows`` are standardised and end with a column of ones, which is not held down."""
    weights = np.zeros(rows.shape[1])
    held = np.full(rows.shape[1], penalty)
    held[-1] = 0
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (likely - right) + held * weights
        bend = (rows * (likely * (1 - likely))[:, None]).T @ rows + np.diag(held) + 1e-9 * np.eye(len(weights))
        step = np.linalg.solve(bend, slope)
        weights -= step
        if np.abs(step).max() < 1e-8:
            break
    return weights


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    columns: tuple[int, ...]
    weights: Floats
    bias: float

    def __call__(self, figures: Floats) -> Floats:
        return np.asarray(1 / (1 + np.exp(-(figures[:, self.columns] @ self.weights + self.bias))))


def model(train: Sequence[Case], columns: tuple[int, ...], penalty: float) -> Model:
    figures = np.concatenate([case.figures for case in train])[:, columns]
    right = np.concatenate([case.right for case in train]).astype(np.float64)
    mean, spread = figures.mean(0), figures.std(0) + 1e-9
    weights = fitted(np.c_[(figures - mean) / spread, np.ones(len(figures))], right, penalty)
    return Model(columns=columns, weights=weights[:-1] / spread, bias=float(weights[-1] - (weights[:-1] * mean / spread).sum()))


def held_out(every: Sequence[Case], columns: tuple[int, ...], penalty: float, fold: Callable[[Case], str]) -> list[Floats]:
    """Each prompt's probabilities from a model that has not seen its fold."""
    models = {
        left_out: model([case for case in every if fold(case) != left_out], columns, penalty)
        for left_out in {fold(case) for case in every}
    }
    return [models[fold(case)](case.figures) for case in every]


def replayed(every: Sequence[Case], probabilities: Sequence[Floats], threshold: float, second: float) -> Outcome:
    """In order, at most two notes a prompt, none twice in a session."""
    seen: dict[str, set[str]] = defaultdict(set)
    none = needed = false = right = context = shown = useful = strange = stray = 0
    for case, likely in zip(every, probabilities, strict=True):
        mine = seen[case.session]
        order = [at for at in np.argsort(-likely, kind="stable") if case.notes[at] not in mine and likely[at] >= threshold][:_NOTES]
        if len(order) > 1 and likely[order[1]] < min(1.0, second * threshold):
            order = order[:1]
        mine.update(case.notes[at] for at in order)
        hit = [bool(case.right[at]) for at in order]
        if case.unrelated:
            strange += 1
            stray += bool(hit)
            continue
        shown += len(hit)
        useful += sum(hit)
        if case.needed:
            needed += 1
            right += any(hit)
            context += any(note in mine for note, helps in zip(case.notes, case.right, strict=True) if helps)
        else:
            none += 1
            false += bool(hit)
    return Outcome(
        false=false / none,
        unrelated=stray / max(1, strange),
        right=right / needed,
        context=context / needed,
        precision=useful / max(1, shown),
        shown=shown,
    )


def threshold_for(
    every: Sequence[Case], probabilities: Sequence[Floats], most: tuple[float, float], precise: float, second: float
) -> tuple[float, Outcome]:
    """The lowest one from which on, up to one that shows nothing, both shares of false injections are within ``most``, and of what
    each project is shown at least ``precise`` is right.
    """
    projects = [[at for at, case in enumerate(every) if case.project == name] for name in sorted({case.project for case in every})]
    best = (1.0, replayed(every, probabilities, 1.0, second))
    for step in range(_FINEST - 1, 0, -1):
        threshold = step / _FINEST
        outcome = replayed(every, probabilities, threshold, second)
        listed = [replayed([every[at] for at in mine], [probabilities[at] for at in mine], threshold, second) for mine in projects]
        if (
            outcome.false > most[0]
            or outcome.unrelated > most[1]
            or any(each.shown and each.precision < precise for each in listed)
        ):
            break
        best = (threshold, outcome)
    return best


def loss(every: Sequence[Case], probabilities: Sequence[Floats]) -> float:
    likely = np.clip(np.concatenate(list(probabilities)), 1e-9, 1 - 1e-9)
    right = np.concatenate([case.right for case in every])
    return float(-np.mean(np.where(right, np.log(likely), np.log(1 - likely))))


def ranked(every: Sequence[Case], probabilities: Sequence[Floats]) -> float:
    hits = [
        case.right[np.argsort(-likely, kind="stable")[:2]].any()
        for case, likely in zip(every, probabilities, strict=True)
        if case.needed
    ]
    return float(np.mean(hits))


def by_project(case: Case) -> str:
    return case.project


def by_session(case: Case) -> str:
    return case.session


def selected(every: Sequence[Case], penalty: float) -> list[str]:
    """Forward: each time the figure that helps most on the projects left out, until none does."""
    chosen: list[str] = []
    best = float("inf")
    while True:
        trials = {
            name: loss(every, held_out(every, tuple(FEATURES.index(each) for each in [*chosen, name]), penalty, by_project))
            for name in FEATURES
            if name not in chosen
        }
        name = min(trials, key=trials.__getitem__)
        if trials[name] > best - 1e-5:
            return chosen
        chosen.append(name)
        best = trials[name]
        print(f"  + {name:24} loss {best:.4f}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Told:
    """A prompt of a replay: what could be pointed at with it. ``pointers`` has none for a note that no line may name; ``earlier``
    is the number of notes of earlier sessions, ``asks`` whether it `asks_of_the_past`.
    """

    session: str
    needed: bool
    relevant: frozenset[str]
    full: tuple[str, ...]
    full_tokens: int
    notes: tuple[str, ...]
    figures: Floats
    pointers: Mapping[str, Pointer]
    earlier: int
    asks: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sessions:
    """A project's replay. ``lists`` holds the notes that each session's start named, and the tokens of that."""

    name: str
    lists: Mapping[str, tuple[tuple[str, ...], int]]
    prompts: tuple[Told, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointed:
    """Needs that had a title in context, and those pointed at with this very prompt; prompts that need none and got something."""

    needs: int
    context: int
    now: int
    others: int
    printed: int
    tokens: float
    prompts: float

    @property
    def most_tokens(self) -> float:
        return _SHORT_SESSION if self.prompts < _LONG else _LONG_SESSION

    @property
    def excess(self) -> float:
        """Return how far this is above the limits, as a share of them; 0 if it is within."""
        return max(0.0, self.tokens / self.most_tokens - 1) + max(0.0, self.printed / max(1, self.others) / _PRINTED - 1)

    def __str__(self) -> str:
        shares = (self.context / self.needs, self.now / self.needs, self.printed / max(1, self.others))
        return "  ".join(f"{share:10.3f}" for share in shares) + f"  {self.tokens:8.0f}"


_LONG, _SHORT_SESSION, _LONG_SESSION, _PRINTED = 10, 450.0, 850.0, 0.25
"""Limits a little below those to be kept, since a project left out is never quite like the others."""
_WRITTEN = datetime(2026, 1, 1, tzinfo=UTC)
_TRIED = itertools.product((0.04, 0.05, 0.06), (0.02, 0.03), (1.03, 1.05, 1.07, 1.1), (0.03, 0.04))
_SETTINGS = tuple(PointerThresholds(opens=opens, least=least, rise=rise, listed=listed) for opens, least, rise, listed in _TRIED)


def sessions_of(project: Labelled, figures: Path, predictions: Sequence[dict[str, Any]]) -> Sessions:
    held: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows(figures):
        if row["project"] == project.name:
            held[row["session"], row["event"]].append(row)
    notes = {row["id"]: _note(row) for row in project.rows("notes.jsonl")}
    labels = {(row["session"], row["event"]): row for row in project.rows("prompts.jsonl")}
    prompts = []
    for row in predictions:
        if "event" not in row:
            continue
        key = row["session"], row["event"]
        text = row.get("prompt", "")
        mine = held[key] if why_needless(bounded(text)) in (None, Needless.TERSE) else []
        tells = len(lexical.terms(lexical.essence(text))) >= _TELLING_WORDS
        near = [each for each in mine if _is_near(each["figures"], tells)]
        found = pointing.candidates(text, [Hit(note=notes[each["note"]], score=0.0, why="") for each in near])
        shown = block([Hit(note=notes[each], score=1.0, why="") for each in row["notes"]])
        prompts.append(
            Told(
                session=row["session"],
                needed=labels[key]["need"] != "none",
                relevant=frozenset(labels[key]["relevant"]),
                full=tuple(row["notes"]),
                full_tokens=likely_tokens(shown.text),
                notes=tuple(each["note"] for each in near),
                figures=np.array([each["figures"] for each in near]).reshape(-1, len(FEATURES)),
                pointers={pointer.id: pointer for pointer in found},
                asks=pointing.asks_of_the_past(text),
                earlier=sum(each["session"] < row["session"] for each in project.rows("notes.jsonl")),
            )
        )
    lists = {row["session"]: (tuple(row["brief"]), int(row["tokens"])) for row in predictions if "brief" in row}
    return Sessions(name=project.name, lists=lists, prompts=tuple(prompts))


def _is_near(figures: Sequence[float], tells: bool) -> bool:
    by_name = dict(zip(FEATURES, figures, strict=True))
    return by_name["words"] > 0 or (tells and by_name["meaning"] >= _FAINT)


def _note(row: dict[str, Any]) -> Note:
    return Note(
        id=row["id"],
        path=f"notes/{row['id']}.md",
        kind=NoteKind(row["kind"]),
        title=row["title"],
        body=row["body"],
        created=_WRITTEN,
        updated=_WRITTEN,
    )


def pointed(project: Sessions, probabilities: Sequence[Floats], bars: PointerThresholds) -> Pointed:
    """Replay the pointers of a project. What was said in full is taken from the predictions."""
    listed = {session: dict.fromkeys(notes, bars.listed) for session, (notes, _) in project.lists.items()}
    context = {session: set(notes) for session, (notes, _) in project.lists.items()}
    shown: dict[str, set[str]] = defaultdict(set)
    tokens = sum(spent for _, spent in project.lists.values())
    needs = known = now = others = printed = 0
    for prompt, likely in zip(project.prompts, probabilities, strict=True):
        mine, known_here = listed.setdefault(prompt.session, {}), context.setdefault(prompt.session, set())
        shown[prompt.session].update(prompt.full)
        order = [at for at in np.argsort(-likely, kind="stable") if prompt.notes[at] not in shown[prompt.session]][:POINTED]
        named = [at for at in order if prompt.notes[at] in prompt.pointers]
        found = [replace(prompt.pointers[prompt.notes[at]], score=float(likely[at])) for at in named]
        scores = [float(likely[at]) for at in order]
        said = render_prompt_block(
            (), (), pointing.pointers(found, scores, notes=prompt.earlier, listed=mine, asks=prompt.asks, thresholds=bars)
        )
        given = [pointer.id for pointer in said.pointers]
        mine |= {pointer.id: max(pointer.score, mine.get(pointer.id, 0.0)) for pointer in said.pointers}
        known_here.update(given, prompt.full)
        tokens += prompt.full_tokens + said.tokens
        if prompt.needed:
            needs += 1
            known += not prompt.relevant.isdisjoint(known_here)
            now += not prompt.relevant.isdisjoint((*prompt.full, *given))
        else:
            others += 1
            printed += bool(prompt.full or given)
    sessions = len({prompt.session for prompt in project.prompts})
    return Pointed(
        needs=needs,
        context=known,
        now=now,
        others=others,
        printed=printed,
        tokens=tokens / sessions,
        prompts=len(project.prompts) / sessions,
    )


def chosen_bars(projects: Sequence[Sessions], likely: Callable[[Sessions], Sequence[Floats]]) -> PointerThresholds:
    """Return the setting that is within the limits on each project, or nearest to them, and then has the most needs in context,
    half as much counting those pointed at with the very prompt; of equals the one of fewer tokens.
    """

    def worth(bars: PointerThresholds) -> tuple[float, float, float]:
        told = [pointed(project, probabilities, bars) for project, probabilities in known]
        return (
            -round(max(each.excess for each in told), 2),
            sum((each.context + each.now / 2) / each.needs for each in told),
            -sum(each.tokens for each in told),
        )

    known = [(project, likely(project)) for project in projects]
    return max(_SETTINGS, key=worth)


def print_pointing(gold: Path, figures: Path, predictions: Path, columns: tuple[int, ...], penalty: float) -> None:
    found = labelled(gold)
    projects = [sessions_of(each, figures, predictions_of(each, predictions, len(found) == 1)) for each in found]
    every = cases(gold, figures)
    print("left out             in context  this prompt  on none    tokens   opens  least  rise  listed")
    for project in projects:
        fold = model([case for case in every if case.project != project.name], columns, penalty)

        def likely(each: Sessions, fold: Model = fold) -> list[Floats]:
            return [fold(prompt.figures) for prompt in each.prompts]

        bars = chosen_bars([each for each in projects if each is not project], likely)
        told = pointed(project, likely(project), bars)
        print(f"{project.name:20} {told}   {bars.opens:5}  {bars.least:5}  {bars.rise:4}  {bars.listed:6}")
    gate = shipped()
    print("as shipped")
    for project in projects:
        probabilities = [gate.probabilities(prompt.figures) for prompt in project.prompts]
        print(f"{project.name:20} {pointed(project, probabilities, pointing.POINTER_THRESHOLDS)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True)
    parser.add_argument("--figures", type=Path, required=True)
    parser.add_argument("--features", default="")
    parser.add_argument("--select", action="store_true")
    parser.add_argument("--penalty", type=float, default=30.0)
    parser.add_argument("--second", type=float, default=1.5)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--thresholds", action="store_true")
    parser.add_argument("--pointing", type=Path)
    given = parser.parse_args()
    every = cases(given.gold, given.figures)
    names = [name.strip() for name in given.features.split(",") if name.strip()] or list(_CHOSEN)
    if unknown := set(names) - set(FEATURES):
        sys.exit(f"error: no such figures: {', '.join(unknown)}")
    if given.select:
        names = selected(every, given.penalty)
    columns = tuple(FEATURES.index(name) for name in names)
    if given.pointing:
        print_pointing(given.gold, given.figures, given.pointing, columns, given.penalty)
        return
    print(
        f"{len(every)} prompts, {sum(case.needed for case in every)} of which need a note; {len(names)} figures: {', '.join(names)}"
    )
    print("left out   dial     threshold     false unrelated     right   context precision  shown")
    thresholds: dict[Dial, float] = {}
    final = model(every, columns, given.penalty)
    predictions = {
        fold.__name__.removeprefix("by_"): held_out(every, columns, given.penalty, fold) for fold in (by_session, by_project)
    }
    predictions["none"] = [final(case.figures) for case in every]
    for label, probabilities in predictions.items():
        text = f"loss {loss(every, probabilities):.4f}, right one ranked in the first two {ranked(every, probabilities):.3f}"
        print(f"{label:10} {text}")
        for dial, (most, precise) in _DIALS.items():
            threshold, outcome = threshold_for(every, probabilities, most, precise, given.second)
            if label == "project":  # the nearest thing here to a person never seen
                thresholds[dial] = threshold
            shares = (outcome.false, outcome.unrelated, outcome.right, outcome.context, outcome.precision)
            text = " ".join(f"{share:9.3f}" for share in (threshold, *shares))
            print(f"{label:10} {dial:8} {text} {outcome.shown:6}")
    last = [case.figures[0, FEATURES.index("score")] - case.figures[0, FEATURES.index("margin")] for case in every if case.notes]
    print(f"the {_CANDIDATES}th candidate scores {np.mean(last):.3f} on average: `gate._BYSTANDER`")
    for name, weight, spread in zip(
        names, final.weights, np.concatenate([c.figures for c in every])[:, columns].std(0), strict=True
    ):
        print(f"  {name:24} weight {weight:8.3f}   a spread of it {weight * spread:+.2f}")
    if given.write:
        projects = len({case.project for case in every})
        kept = shipped()
        bars: Mapping[Dial, float] = thresholds if given.thresholds else kept.thresholds
        file = {
            "fitted": f"{datetime.now(UTC):%Y-%m-%d}, on {len(every)} labelled prompts of {projects} projects",
            "space": "local",
            "weights": {name: round(float(weight), 4) for name, weight in zip(names, final.weights, strict=True)},
            "bias": round(final.bias, 4),
            "thresholds": {dial: round(value, 4) for dial, value in bars.items()},
            "second": given.second,
            "doubt": kept.doubt,
        }
        _FILE.write_text(json.dumps(file, indent=2) + "\n", encoding="utf-8")
        print(f"written to {_FILE}")


if __name__ == "__main__":
    main()
