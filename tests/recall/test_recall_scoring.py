import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.recall import search
from kite_memory.recall.embedder import Space

SPACE = Space(name="tiny", dim=4, version="1", threshold=0.42)


def fused(cosine: float, bm25: float, *, notes: int = 1000, terms: int = 4) -> float:
    return float(search.fused(np.array([cosine], np.float32), np.array([bm25]), notes=notes, terms=terms)[0])


def test_nothing_said_is_nothing_scored() -> None:
    assert fused(0, 0) == 0


def test_both_together_weigh_what_the_study_gave_them() -> None:
    assert fused(1, 0) == pytest.approx(0.65)
    assert fused(0, 1e9) == pytest.approx(0.35)
    assert fused(0.5, 2 * np.log(1001)) == pytest.approx(0.65 * 0.5 + 0.35 * (1 - np.exp(-1)))


@given(st.floats(-1, 1), st.floats(0, 200), st.integers(0, 10**6), st.integers(0, 24))
def test_a_score_lies_between_nothing_and_one(cosine: float, bm25: float, notes: int, terms: int) -> None:
    assert 0 <= fused(cosine, bm25, notes=notes, terms=terms) <= 1.0001


@given(st.floats(0, 1), st.floats(0, 100), st.floats(0, 1), st.floats(0, 100))
def test_more_never_scores_less(cosine: float, bm25: float, more_cosine: float, more_bm25: float) -> None:
    assert fused(min(1, cosine + more_cosine), bm25 + more_bm25) >= fused(cosine, bm25) - 1e-6


def test_a_long_prompt_does_not_win_by_its_length() -> None:
    assert fused(0, 20, terms=24) < fused(0, 20, terms=8) == fused(0, 20, terms=2)


@pytest.mark.parametrize(
    ("notes", "expected"),
    [(0, 0.42), (1, 0.42), (100, 0.42), (1000, 0.50), (10_000, 0.58), (100_000, 0.66), (10**7, 0.66)],
)
def test_the_threshold_rises_with_the_vault_up_to_a_point(notes: int, expected: float) -> None:
    assert search.threshold(SPACE, notes) == pytest.approx(expected)


def settled(scores: list[float], *pairs: tuple[int, int]) -> list[float]:
    found: list[float] = search.settled(np.array(scores), np.array(pairs, np.int64).reshape(-1, 2)).tolist()
    return found


def test_without_replacements_nothing_changes() -> None:
    assert settled([0.1, 0.9]) == [0.1, 0.9]


def test_what_replaces_a_note_answers_in_its_place() -> None:
    old, new, other = settled([0.8, 0.3, 0.5], (0, 1))

    assert new == 0.8
    assert old < new
    assert other == 0.5


def test_a_better_successor_keeps_its_score_and_the_old_one_its_own() -> None:
    assert settled([0.3, 0.8], (0, 1)) == [0.3, 0.8]


def test_a_chain_ends_in_its_newest_whatever_its_order() -> None:
    oldest, middle, newest = settled([0.9, 0.2, 0.1], (1, 2), (0, 1))

    assert newest == 0.9
    assert newest > middle > oldest


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.data())
def test_an_old_note_never_stands_before_its_successor(scores: list[float], data: st.DataObject) -> None:
    rows = st.integers(0, len(scores) - 1)
    pairs = data.draw(st.lists(st.tuples(rows, rows).map(sorted).filter(lambda pair: pair[0] < pair[1]), max_size=6))

    found = settled(scores, *((old, new) for old, new in pairs))

    assert all(found[old] < found[new] for old, new in pairs)


def test_a_circle_comes_to_an_end() -> None:
    assert max(settled([0.5, 0.6], (0, 1), (1, 0))) <= 0.6
