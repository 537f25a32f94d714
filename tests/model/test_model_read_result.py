"""Times that cannot be are replaced by those beside them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kite_memory.extensions.contract.extractor_contract import SESSION, event
from kite_memory.model.event import IMPOSSIBLE_TIME, Cursor, ReadResult, in_time

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
LATEST = NOON + timedelta(days=1)
NEVER = datetime(9999, 12, 31, tzinfo=UTC)


def look(*times: datetime, started: datetime = NOON) -> ReadResult:
    values = tuple(replace(event(number), at=at) for number, at in enumerate(times))
    session = replace(SESSION, started=started)
    return ReadResult(path="a.jsonl", session=session, events=values, problems=(), cursor=Cursor(position=0, size=0, mtime_ns=0))


@pytest.mark.parametrize("wrong", [NEVER, LATEST + timedelta(seconds=1), datetime(2019, 12, 31, tzinfo=UTC)])
def test_an_impossible_time_becomes_that_of_the_event_before_and_is_counted(wrong: datetime) -> None:
    later = NOON + timedelta(minutes=1)

    result = in_time(look(NOON, wrong, later), latest=LATEST, before=None)

    assert [each.at for each in result.events] == [NOON, NOON, later]
    assert [problem.reason for problem in result.problems] == [IMPOSSIBLE_TIME]


def test_the_first_of_all_takes_the_next_ones_time() -> None:
    result = in_time(look(NEVER, NOON, started=NEVER), latest=LATEST, before=None)

    assert [each.at for each in result.events] == [NOON, NOON]
    assert result.session is not None
    assert result.session.started == NOON


def test_a_look_with_no_possible_time_takes_that_of_the_look_before() -> None:
    assert [each.at for each in in_time(look(NEVER), latest=LATEST, before=NOON).events] == [NOON]


def test_where_no_time_is_known_it_stays() -> None:
    result = in_time(look(NEVER, started=NEVER), latest=LATEST, before=None)

    assert [each.at for each in result.events] == [NEVER]


def test_an_event_without_a_time_is_no_problem() -> None:
    result = in_time(look(NOON, datetime.fromtimestamp(0, UTC)), latest=LATEST, before=None)

    assert [each.at for each in result.events] == [NOON, NOON]
    assert result.problems == ()


def test_possible_times_stay_as_they_are() -> None:
    result = look(NOON, LATEST)

    assert in_time(result, latest=LATEST, before=None) is result
    assert in_time(replace(result, session=None), latest=LATEST, before=None).events == result.events
