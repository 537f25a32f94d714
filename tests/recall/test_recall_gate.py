import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.errors import StateDamaged
from kite_memory.model.note import Note, NoteKind
from kite_memory.recall import gate
from kite_memory.recall.embedder import Space
from kite_memory.recall.gate import FEATURES, Candidate, Gate
from kite_memory.recall.local_embedder import LocalEmbedder
from tests.recall.notes import QUEUE, note

TEXT = "where do the workers of the orchard keep their ladders"
SHIPPED = gate.shipped()


def figures(*candidates: Candidate, text: str = TEXT, terms: int = 9, position: int = 5) -> list[dict[str, float]]:
    rows = gate.figures(text, terms, position, candidates)
    return [dict(zip(FEATURES, row, strict=True)) for row in rows.tolist()]


def figure(name: str, text: str = TEXT, *, of: Note = QUEUE, terms: int = 9, position: int = 5, **spoke: float) -> float:
    (row,) = figures(Candidate(note=of, **{"score": 0.5, **spoke}), text=text, terms=terms, position=position)
    return row[name]


def of_kind(kind: NoteKind, title: str = "Something") -> Note:
    return note("n", title, kind=kind)


@pytest.mark.parametrize("name", ["score", "meaning", "words", "around", "title", "named", "covered"])
def test_what_spoke_for_a_note_is_a_figure_as_it_is(name: str) -> None:
    content: dict[str, Any] = {name: 0.375}

    assert figure(name, **content) == 0.375


def test_how_much_a_note_matters_is_a_figure() -> None:
    assert figure("importance", of=note("n", "T", importance=3)) == 3


def test_the_margin_is_taken_from_the_eighth_candidate() -> None:
    rows = figures(*(Candidate(note=QUEUE, score=score / 10) for score in range(19, -1, -1)))

    assert [round(row["margin"] * 10) for row in rows] == list(range(7, -13, -1))


@pytest.mark.parametrize("count", range(1, 20))
def test_where_fewer_stand_beside_it_a_note_stands_out_no_less(count: int) -> None:
    """The only note of a vault has nothing to be compared with, which says nothing against it."""
    among_many = figures(*[Candidate(note=QUEUE, score=0.8)] + [Candidate(note=QUEUE, score=0.26)] * 19)
    among_few = figures(*[Candidate(note=QUEUE, score=0.8)] + [Candidate(note=QUEUE, score=0.0)] * (count - 1))

    assert among_few[0]["margin"] == pytest.approx(among_many[0]["margin"])


def test_the_ninth_and_all_behind_it_have_one_rank() -> None:
    assert [row["rank"] for row in figures(*[Candidate(note=QUEUE, score=0.1)] * 11)] == [*range(8), 8, 8, 8]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("why PostgreSQL?", NoteKind.DECISION, 1),
        ("why PostgreSQL", NoteKind.DECISION, 0),
        ("why PostgreSQL?", NoteKind.FACT, 0),
    ],
)
def test_a_question_may_ask_for_a_decision(text: str, kind: NoteKind, value: int) -> None:
    assert figure("decision asked about", text, of=of_kind(kind)) == value


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("ok, commit it", NoteKind.PREFERENCE, 1),
        ("can you please open a pull request", NoteKind.PREFERENCE, 1),
        ("the commit is broken", NoteKind.PREFERENCE, 0),
        ("ok, commit it", NoteKind.FACT, 0),
    ],
)
def test_who_asks_to_act_may_have_preferences(text: str, kind: NoteKind, value: int) -> None:
    assert figure("preference and instruction", text, of=of_kind(kind)) == value
    assert figure("preference", text, of=of_kind(kind)) == (kind is NoteKind.PREFERENCE)


@pytest.mark.parametrize(
    ("text", "title", "share"),
    [
        ("commit and push", "Commits are signed", 1.0),
        ("commit it", "Reviewing before pushing", 0.0),
        ("push it", "Review before you push", 0.5),
        ("push it", "Nothing of that sort", 0.0),
    ],
)
def test_a_title_may_be_about_the_step_of_work_that_is_asked_for(text: str, title: str, share: float) -> None:
    assert figure("rite", text, of=of_kind(NoteKind.FACT, title)) == share
    assert figure("rite preferred", text, of=of_kind(NoteKind.FACT, title)) == 0
    assert figure("rite preferred", text, of=of_kind(NoteKind.PREFERENCE, title)) == share


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("it panics: FATAL: out of ladders", NoteKind.INSIGHT, 1),
        ("the server answers 502", NoteKind.FACT, 1),
        ("✗ picks apples", NoteKind.FACT, 1),
        ("it failed again", NoteKind.DECISION, 0),
        ("all is well, 5020 apples", NoteKind.INSIGHT, 0),
    ],
)
def test_an_insight_or_a_fact_may_explain_a_failure(text: str, kind: NoteKind, value: int) -> None:
    assert figure("failure explained", text, of=of_kind(kind)) == value


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("confirmation", "Yes, with ladders", 1),
        ("confirmation", "  let's do that", 1),
        ("confirmation", "yesterday it rained", 0),
        ("question", "is it?", 1),
        ("question", "x" * 400 + "?", 0),
        ("paste", "line\n" * 7, 1),
        ("paste", "line\n" * 6, 0),
    ],
)
def test_a_prompt_is_of_a_kind(name: str, text: str, value: int) -> None:
    assert figure(name, text) == value


def test_a_prompt_may_be_short_and_among_the_first() -> None:
    assert [figure("short", terms=terms) for terms in (4, 5)] == [1, 0]
    assert [figure("first", position=position) for position in (0, 1, 2)] == [1, 1, 0]


@given(st.text() | st.just("ok " * 5_000) | st.just("\ud800" * 10), st.integers(0, 500), st.integers(0, 500))
def test_every_prompt_has_figures(text: str, terms: int, position: int) -> None:
    rows = gate.figures(text, terms, position, [Candidate(note=QUEUE, score=0.4)])

    assert rows.shape == (1, len(FEATURES))
    assert np.isfinite(rows).all()


def test_without_candidates_there_are_no_figures() -> None:
    assert gate.figures(TEXT, 9, 0, []).shape == (0, len(FEATURES))
    assert SHIPPED.probabilities(gate.figures(TEXT, 9, 0, [])).tolist() == []


ROWS = gate.figures(TEXT, 9, 0, [Candidate(note=QUEUE, score=score / 10) for score in range(10, 0, -1)])


def test_a_probability_lies_between_nothing_and_one() -> None:
    assert all(0 < probability < 1 for probability in SHIPPED.probabilities(ROWS))


@pytest.mark.parametrize("name", ["score", "margin", "title", "named", "covered", "importance"])
def test_what_speaks_for_a_note_makes_it_more_probable(name: str) -> None:
    more = ROWS.copy()
    more[:, FEATURES.index(name)] += 0.1

    assert (SHIPPED.probabilities(more) > SHIPPED.probabilities(ROWS)).all()


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_a_note_that_was_used_before_is_more_probable_and_only_mildly(one: float, other: float) -> None:
    first, second = SHIPPED.probabilities(ROWS[:1], [one])[0], SHIPPED.probabilities(ROWS[:1], [other])[0]

    assert (first - second) * (one - other) >= 0
    assert abs(gate.logit(first) - gate.logit(second)) <= 1.0001


@given(st.floats(-1, 1))
def test_the_parts_add_up_to_the_probability(habit: float) -> None:
    for row, probability in zip(ROWS, SHIPPED.probabilities(ROWS, [habit] * len(ROWS)), strict=True):
        assert sum(SHIPPED.parts(row.tolist(), habit).values()) == pytest.approx(gate.logit(probability))


def test_a_part_is_reported_for_every_weight_for_habit_and_for_what_was_there_before() -> None:
    assert set(SHIPPED.parts(ROWS[0].tolist())) == {*SHIPPED.weights, "habit", "bias"}


def test_the_dial_goes_from_quiet_to_eager() -> None:
    assert 1 > SHIPPED.thresholds["quiet"] >= SHIPPED.thresholds["normal"] >= SHIPPED.thresholds["eager"] > SHIPPED.doubt > 0
    assert SHIPPED.second >= 1


def test_the_shipped_gate_is_for_the_local_space_and_no_other() -> None:
    assert SHIPPED.fits(LocalEmbedder().space)
    assert not SHIPPED.fits(Space(name="voyage", dim=4, version="1", threshold=0.4))


def held(**changed: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        "fitted": "2026-03-01",
        "space": "local",
        "weights": {"score": 2.0},
        "bias": -1,
        "thresholds": {"quiet": 0.5, "normal": 0.3, "eager": 0.1},
        "second": 1.5,
        "doubt": 0.03,
    }
    return content | changed


def test_a_gate_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "gate.json"
    file.write_text(json.dumps(held()), encoding="utf-8")

    assert gate.read(file) == Gate(
        fitted="2026-03-01",
        space="local",
        weights={"score": 2.0},
        bias=-1.0,
        thresholds={"quiet": 0.5, "normal": 0.3, "eager": 0.1},
        second=1.5,
        doubt=0.03,
    )


DAMAGED = {
    "empty": "",
    "cut short": json.dumps(held())[:-20],
    "not text": "\x00\ufffd",
    "a list": "[]",
    "of an unknown figure": json.dumps(held(weights={"luck": 1.0})),
    "weights that are none": json.dumps(held(weights=[1, 2])),
    "a weight that is none": json.dumps(held(weights={"score": None})),
    "without a dial": json.dumps(held(thresholds={"normal": 0.3})),
    "without a bias": json.dumps({name: value for name, value in held().items() if name != "bias"}),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_gate_says_what_to_do(tmp_path: Path, content: str) -> None:
    file = tmp_path / "gate.json"
    file.write_text(content, encoding="utf-8")

    with pytest.raises(StateDamaged) as raised:
        gate.read(file)

    assert "install kite-memory again" in raised.value.hint


def test_a_gate_that_is_gone_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StateDamaged):
        gate.read(tmp_path / "gate.json")


@given(st.floats(0.001, 0.999))
def test_logits_are_probabilities_on_a_line(probability: float) -> None:
    assert 1 / (1 + math.exp(-gate.logit(probability))) == pytest.approx(probability)
