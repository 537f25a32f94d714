"""The list of titles that a session is shown as it starts, before its topic is known: the notes most likely to matter."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from kite_memory.model.hit import Hit
from kite_memory.model.note import Note, NoteKind, Scope
from kite_memory.model.plan import SimilarNote, Surroundings
from kite_memory.recall import scoring, titles
from kite_memory.recall.catalogue import Sight
from kite_memory.recall.cautions import Caution, concerns, read
from kite_memory.recall.index import Index
from kite_memory.recall.lexical import terms
from kite_memory.recall.prose import prose
from kite_memory.recall.search import best, name
from kite_memory.text.shell import Invocation, invocations

_KINDS = frozenset({NoteKind.DECISION, NoteKind.INSIGHT, NoteKind.FACT, NoteKind.PREFERENCE, NoteKind.QUESTION})
_TEXT = 4_000
"""Characters of a note whose words are used."""


def nearest(index: Index, note: Note, now: float, *, limit: int = 8) -> Surroundings:
    """Return the notes nearest to ``note`` within its own project, without the note itself.

    Notes that rank high both by meaning and by words come first: of labelled pairs in which one note contradicts the other, all 14
    have the older one among the newer one's first eight, and 12 among its first three.
    """
    signals = index.signals(_said(note), project=note.project)
    columns = signals.columns
    mask = scoring.found(columns, now) & scoring.of_kinds(columns, _KINDS)
    mask &= columns.notes["project"] == index.project_number(note.project)
    rows = np.flatnonzero(mask)
    if not len(rows):
        return Surroundings()
    by_meaning = _places(signals.cosine[rows])
    by_words = _places(signals.bm25[rows])
    first = rows[np.lexsort((by_meaning, by_meaning + by_words))][: limit + 2]
    numbers = [int(number) for number in columns.notes["number"][first]]
    notes = index.notes(numbers)
    near = [
        SimilarNote(note=found, cosine=float(signals.cosine[row]))
        for row, number in zip(first.tolist(), numbers, strict=True)
        if (found := notes.get(number)) is not None and found.id not in ("", note.id)
    ][:limit]
    words = {word for each in (note, *(one.note for one in near)) for word in terms(_said(each))}
    return Surroundings(near=tuple(near), rarity=index.rarities(words))


def _said(note: Note) -> str:
    return f"{note.title}\n{prose(note.body)}"[:_TEXT]


def _places(figures: npt.NDArray[np.float64] | npt.NDArray[np.float32]) -> npt.NDArray[np.intp]:
    """Return the rank of each figure; 0 for the greatest."""
    return np.argsort(np.argsort(-figures, kind="stable"), kind="stable")


def recent(index: Index, *, project: str, kinds: Collection[NoteKind], limit: int, sight: Sight, now: float) -> list[Note]:
    columns = index.columns(sight)
    if not len(columns):
        return []
    mask = scoring.found(columns, now)
    if project:
        mask &= scoring.within(columns, index.project_number(project))
    if kinds:
        mask &= scoring.of_kinds(columns, kinds)
    rows = np.flatnonzero(mask)
    newest = rows[np.lexsort((-rows, -columns.notes["created"][rows]))]
    chosen: dict[str, Note] = {}
    for start in range(0, len(newest), 2 * limit):  # copies share a name
        numbers = columns.notes["number"][newest[start : start + 2 * limit]].tolist()
        found = index.notes(numbers)
        for number in numbers:
            if (note := found.get(number)) is not None:
                chosen.setdefault(name(note), note)
        if len(chosen) >= limit:
            break
    return list(chosen.values())[:limit]


MOST = 15
_LASTING = 0.5
"""Bonus for a kind other than insight: decisions, preferences and facts stay useful, insights less so. Measured: half as many
insights are needed again.
"""
_ROUTINE = 1.0
"""Bonus for a note that warns of a command that this project's sessions run repeatedly."""
_TAKEN_UP = 10.0
"""Bonus for a note opened or used in two sessions or more: it ranks before all others."""
_RESTED = -0.25
"""Penalty for a note that five starts listed in vain: it ranks after its equals. An agent that opens nothing rests every note in
turn, so a greater penalty would replace the best notes by the next best. Measured: -5 loses 14 of 228 needs, -0.5 loses 4.
"""
_NEWER = 0.001
"""Penalty per week of age, so that of equal notes the newer one comes first."""
_WEEK = 7 * 86_400
_TRIED = 200
_AGAIN = 3
_COMMANDS_READ = 4_000

Commands = Callable[[str], Sequence[Sequence[str]]]
"""Returns the commands that a project's last sessions ran, one list for each session."""


def nothing_run(project: str) -> Sequence[Sequence[str]]:
    return ()


def contents(
    index: Index,
    *,
    project: str,
    shown: Collection[str],
    now: float,
    taken_up: Collection[str] = (),
    at_rest: Collection[str] = (),
    commands: Commands = nothing_run,
    session: str = "",
    branch: str = "",
) -> tuple[tuple[Hit, str], ...]:
    """Return the notes of this project, and of none, that most likely matter for any topic, each with its line; preferences first.

    Notes of another project, of another unmerged branch, with changed files, or that describe an outdated state are omitted.
    """
    columns = index.columns()
    if not len(columns) or not project:
        return ()
    mask = scoring.spoken(columns, now) & scoring.within(columns, index.project_number(project))
    notes = columns.notes
    scores = notes["importance"].astype(np.float64)
    scores += _LASTING * ~scoring.of_kinds(columns, {NoteKind.INSIGHT})
    scores -= _NEWER * np.clip((now - notes["created"]) / _WEEK, 0, 500)
    for called in taken_up:
        scores[columns.rows_of(np.array(index.numbers(called), np.int64))] += _TAKEN_UP
    rows = best(np.where(mask, scores, -np.inf), notes["created"], _TRIED)
    today = datetime.fromtimestamp(now, UTC)
    routine = _again_and_again(commands(project))
    ranked: dict[str, tuple[float, Hit, str]] = {}
    found = index.notes(notes["number"][rows].tolist())
    for row in rows.tolist():
        note = found.get(int(notes["number"][row]))
        if note is None or name(note) in shown or name(note) in ranked or (note.scope is Scope.SESSION and note.session != session):
            continue
        line = titles.line(note)
        elsewhere = note.branch and branch and note.branch != branch
        if note.drifted or elsewhere or not line or titles.is_past(note, today):
            continue
        score = float(scores[row]) + (_RESTED if name(note) in at_rest else 0.0)
        if routine and _warns_of(note, routine):
            score += _ROUTINE
        ranked[name(note)] = (
            score,
            Hit(note=note, score=round(max(0.0, min(1.0, score / 5)), 4), why="matters in this project"),
            line,
        )
    best_first = sorted(ranked.values(), key=lambda each: -each[0])[:MOST]
    best_first.sort(key=lambda each: each[1].note.kind is not NoteKind.PREFERENCE)
    return tuple((hit, line) for _, hit, line in best_first)


def _again_and_again(sessions: Sequence[Sequence[str]]) -> tuple[Invocation, ...]:
    """Return one example of each command that was run in at least three of the sessions."""
    seen: Counter[str] = Counter()
    example: dict[str, Invocation] = {}
    for commands in sessions:
        run = {each.purpose: each for line in commands for each in invocations(line[:_COMMANDS_READ])}
        seen.update(run.keys())
        example |= run
    return tuple(example[purpose] for purpose, count in seen.items() if count >= _AGAIN)


def _warns_of(note: Note, routine: Sequence[Invocation]) -> bool:
    return any(_of(caution, command) for caution in read(note).cautions for command in routine)


def _of(caution: Caution, command: Invocation) -> bool:
    warned = caution.command
    if warned.program == command.program:
        return warned.words[: warned.depth] == command.words[: warned.depth]
    return concerns(caution, command, folder="")
