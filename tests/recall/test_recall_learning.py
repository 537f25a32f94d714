import sqlite3
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kite_memory.recall import gate
from kite_memory.recall.gate import FEATURES, LEAST, Gate, JudgedCandidate, LoggedVerdict, personal
from tests.recall.services import Services

NOW = datetime(2026, 11, 20, tzinfo=UTC)
FIGURES = tuple(0.5 if name == "score" else 0.0 for name in FEATURES)


def ruling(probability: float, *, figures: tuple[float, ...] = FIGURES) -> LoggedVerdict:
    notes = (
        JudgedCandidate(note="first", score=0.2, probability=probability),
        JudgedCandidate(note="second", score=0.1, probability=0.0),
    )
    return LoggedVerdict(at=NOW, session="s", project="mycelia", features=figures, anything=1.0, notes=notes)


@pytest.fixture
def shipped() -> Gate:
    return gate.shipped()


def test_few_verdicts_teach_nothing(shipped: Gate) -> None:
    assert personal(shipped, [ruling(1.0)] * (LEAST - 1)) is shipped


def test_where_maybes_help_the_gate_becomes_more_willing(shipped: Gate) -> None:
    assert personal(shipped, [ruling(0.9)] * LEAST).bias > shipped.bias


def test_where_they_never_help_it_becomes_less_willing(shipped: Gate) -> None:
    doubtful = replace(shipped, bias=0.0)

    assert personal(doubtful, [ruling(0.0)] * LEAST).bias < doubtful.bias


def test_it_is_never_moved_far(shipped: Gate) -> None:
    assert personal(shipped, [ruling(1.0)] * 100_000).bias == pytest.approx(shipped.bias + 1.5)


def test_its_weights_stay(shipped: Gate) -> None:
    assert personal(shipped, [ruling(1.0)] * LEAST).weights == shipped.weights


def test_verdicts_on_other_figures_are_left_out(shipped: Gate) -> None:
    assert personal(shipped, [ruling(1.0, figures=(1.0,))] * LEAST) is shipped


def test_nothing_helping_overrules_a_note_that_would(shipped: Gate) -> None:
    doubtful = replace(shipped, bias=0.0)
    nothing = [replace(ruling(1.0), anything=0.0)] * LEAST

    assert personal(doubtful, nothing).bias < doubtful.bias


def test_a_gate_that_could_not_be_refitted_is_with_the_next_refresh(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[datetime] = []

    def since(start: datetime) -> tuple[LoggedVerdict, ...]:
        asked.append(start)
        if len(asked) == 1:
            raise sqlite3.OperationalError("database is locked")
        return ()

    monkeypatch.setattr(services.recall.memory.verdicts, "since", since)

    for _ in range(3):
        services.over()

    assert len(asked) == 2
